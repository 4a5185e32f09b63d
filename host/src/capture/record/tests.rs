//! Sessions said line by line, and what is recorded of them.

use serde_json::json;

use super::*;
use crate::store::journal::{self, Journal};

struct Bench {
    _folder: tempfile::TempDir,
    home: Home,
    recorder: Recorder,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    let recorder = Recorder::start(home.clone(), "files".into()).unwrap();
    Bench { _folder: folder, home, recorder }
}

impl Bench {
    /// All that was recorded, in the order of the journal.
    fn records(self) -> Vec<Record> {
        self.recorder.finish();
        let mut records = Vec::new();
        for file in journal::files(&self.home, Journal::Calls).unwrap() {
            for line in std::fs::read_to_string(file).unwrap().lines() {
                let written: Value = serde_json::from_str(line).unwrap();
                let record = Record::read(line.as_bytes()).unwrap();
                assert_eq!(serde_json::to_value(&record).unwrap(), written, "the sanitizer has nothing to do");
                records.push(record);
            }
        }
        records
    }
}

/// Messages of the client and the server, in turn, marked by their first character.
fn say(capture: &Capture, lines: &[&str]) {
    for line in lines {
        match line.split_at(1) {
            (">", message) => capture.from_client(message.as_bytes(), Instant::now()),
            (_, message) => capture.from_server(message.as_bytes(), Instant::now()),
        }
    }
}

fn recorded(lines: &[&str]) -> Vec<Record> {
    let bench = bench();
    let capture = bench.recorder.capture(None);
    say(&capture, lines);
    capture.end();
    bench.records()
}

/// The error of one call that was answered so.
fn error_of(answer: &Value) -> Option<CallError> {
    let mut answer = answer.clone();
    answer["id"] = 1.into();
    let call = r#">{"id":1,"method":"tools/call","params":{"name":"a"}}"#;
    recorded(&[call, &format!("<{answer}")]).remove(0).error
}

#[test]
fn what_is_recorded_and_what_is_not() {
    let records = recorded(&[
        r#">{"id":0,"method":"initialize","params":{"secret":"canary"}}"#,
        r#"<{"id":0,"result":{"secret":"canary"}}"#,
        r#">{"method":"notifications/initialized"}"#,
        r#"<{"method":"notifications/message","params":{"data":"canary"}}"#,
        r#"<{"id":"s1","method":"sampling/createMessage"}"#,
        r#">{"id":"s1","result":{}}"#,
        "<starting canary",
        ">{\"id\":1,",
        r#"<{"id":null,"error":{"code":-32700,"message":"x"}}"#,
        r#">{"id":"x","method":"odd method canary!"}"#,
        r#"<{"id":"x","result":7}"#,
        r#"<{"id":"x","result":7}"#,
        r#">[{"id":[1],"method":"ping"},{"id":{"a":1},"method":"tools/call","params":{"name":"can ary"}},3]"#,
        r#"<[{"id":{"a":1},"result":{"content":[]}},{"id":[1],"result":{}}]"#,
        r#">{"id":9,"method":"resources/list"}"#,
    ]);
    let told: Vec<String> =
        records.iter().map(|record| format!("{} {} {:?}", record.seq, record.method, record.outcome)).collect();
    assert_eq!(
        told,
        [
            "1 initialize Ok",
            "2 notifications/message Unknown",
            "3 unparsed/inbound Unparsed",
            "4 unparsed/outbound Unparsed",
            "5 unlisted Ok",
            "6 unparsed/outbound Unparsed",
            "7 tools/call Ok",
            "8 ping Ok",
            "9 resources/list Unanswered",
        ]
    );
    let text = serde_json::to_string(&records).unwrap();
    assert!(!text.contains("canary") && !text.contains("can ary"), "{text}");
    assert_eq!((records[6].tool.as_deref(), &records[6].args), (Some(UNLISTED), &None));
    assert!(records.iter().all(|record| record.kind == Kind::Real && record.server == "files"));
    let ids: std::collections::HashSet<_> =
        records.iter().map(|record| record.identity.clone().unwrap().event_id).collect();
    assert_eq!(ids.len(), records.len());
}

#[test]
fn schemas_are_learnt_from_the_pages_of_the_same_capture() {
    let bench = bench();
    let (one, other) = (bench.recorder.capture(Some("raw name")), bench.recorder.capture(None));
    let page = |n: u32| {
        let schema = json!({"properties": {"path": {}, "mode": {"enum": ["fast"]}}});
        let result = json!({"tools": [{"name": format!("t{n}"), "inputSchema": schema}]});
        json!({"id": n, "result": result}).to_string()
    };
    let call = |tool: &str| {
        let arguments = json!({"path": "/etc/passwd", "mode": "fast", "phone": 4_915_112_345_678_u64});
        json!({"id": "c", "method": "tools/call", "params": {"name": tool, "arguments": arguments}}).to_string()
    };
    for n in 1..=2 {
        one.from_client(format!(r#"{{"id":{n},"method":"tools/list"}}"#).as_bytes(), Instant::now());
        one.from_server(page(n).as_bytes(), Instant::now());
    }
    // Not asked for, so nothing is learnt of it.
    one.from_server(page(3).as_bytes(), Instant::now());
    for (capture, tool) in [(&one, "t1"), (&one, "t2"), (&one, "t3"), (&other, "t1")] {
        capture.from_client(call(tool).as_bytes(), Instant::now());
        capture.end();
    }
    let sessions = [one.shared.session.clone(), other.shared.session.clone()];
    assert_eq!(sessions[0], Salt::of(&bench.home).unwrap().session("raw name"));
    let records = bench.records();
    let known = json!({"path": "str<32", "mode": "enum:fast", "key#1": "int"});
    let unknown = json!({"key#1": "str<8", "key#2": "str<32", "key#3": "int"});
    let args: Vec<_> = records[2..].iter().map(|record| record.args.clone().unwrap()).collect();
    assert_eq!(args, [known.clone(), known, unknown.clone(), unknown]);
    let captures: Vec<_> = records.iter().map(|record| &record.identity.as_ref().unwrap().capture_id).collect();
    assert!(captures[0] == captures[4] && captures[4] != captures[5]);
    assert_eq!((records[5].seq, &records[5].session), (1, &sessions[1]));
}

#[test]
fn errors_keep_their_code_and_not_their_words() {
    for (error, code, retryable) in [
        (json!({"code": -32001, "message": "m", "data": {"retryable": true}}), Code::Number(-32001), Some(true)),
        (json!({"code": 5, "retryable": false}), Code::Number(5), Some(false)),
        (json!({"code": 5, "retryable": false, "data": {"retryable": true}}), Code::Number(5), None),
        (json!({"code": 5, "retryable": true, "data": {"retryable": true}}), Code::Number(5), Some(true)),
        (json!({"code": 5, "retryable": "yes", "data": {"retryable": false}}), Code::Number(5), Some(false)),
        (json!({"code": "E_BUSY", "data": "x"}), Code::Text("E_BUSY".into()), None),
        (json!({"code": "no such file"}), Code::Text("str<32".into()), None),
        (json!({"code": 1.5}), Code::Text("str<8".into()), None),
        (json!({"code": {"a": 1}}), Code::Text("str<8".into()), None),
        (json!({"code": null}), Code::Text("str<8".into()), None),
        (json!({"message": 7}), Code::Text("str<8".into()), None),
        (json!("boom"), Code::Text("str<8".into()), None),
        (json!({"code": true, "message": "m"}), Code::Text("str<8".into()), None),
    ] {
        let found = error_of(&json!({"error": error})).unwrap();
        assert_eq!((found.code, found.retryable), (code, retryable), "{error}");
        assert_eq!((found.template.as_str(), found.template_id.len()), (TEMPLATE, 16));
    }
}

#[test]
fn a_tools_error_is_the_text_of_all_its_blocks() {
    let bench = bench();
    let salt = Salt::of(&bench.home).unwrap();
    let capture = bench.recorder.capture(None);
    let image = json!({"type": "image", "data": "text"});
    for (n, result) in [
        json!({"isError": true, "content": [image, {"type": "text", "text": "No \"x\" today"}]}),
        json!({"isError": true, "content": [{"type": "text", "text": "No"}, image, {"type": "text", "text": "'x' today"}]}),
        json!({"isError": true, "content": []}),
        json!({"isError": false, "content": [image]}),
        json!({"content": [], "structuredContent": {}}),
        json!({"isError": true}),
        json!({"isError": "yes", "content": []}),
        json!({"content": [{"text": "x"}]}),
        json!({"content": [{"type": "text", "text": 7}]}),
        json!({"content": "x"}),
        json!(["x"]),
        json!(null),
    ]
    .iter()
    .enumerate()
    {
        let call = json!({"id": n, "method": "tools/call", "params": {"name": "a", "arguments": null}});
        capture.from_client(call.to_string().as_bytes(), Instant::now());
        capture.from_server(json!({"id": n, "result": result}).to_string().as_bytes(), Instant::now());
    }
    let records = bench.records();
    let template = |n: usize| records[n].error.as_ref().map(|error| error.template_id.clone());
    assert_eq!(template(0), Some(salt.template("no q today")));
    assert_eq!(template(1), Some(salt.template("no q today")));
    assert_eq!(template(2), Some(salt.template("")));
    assert_eq!(records[0].error.as_ref().unwrap().code, Code::Text(TOOL_ERROR.into()));
    let outcomes: Vec<_> = records.iter().map(|record| record.outcome).collect();
    use Outcome::{Error, Ok, Unknown};
    let unknown = [Unknown; 7];
    assert_eq!(outcomes, [&[Error, Error, Error, Ok, Ok][..], &unknown].concat());
    assert!(records.iter().all(|record| record.args.is_none()));
}

#[test]
fn requests_are_answered_in_their_order_withdrawn_or_given_up() {
    let call = |tool: &str| format!(r#">{{"id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#);
    let good = r#"<{"id":1.0,"result":{"content":[]}}"#;
    let cancel = r#">{"method":"notifications/cancelled","params":{"requestId":1,"reason":"x"}}"#;
    let records =
        recorded(&[cancel, &call("a"), &call("b"), good, good, &call("c"), cancel, good, &call("d"), &call("e")]);
    let told: Vec<_> =
        records.iter().map(|record| (record.tool.as_deref().unwrap(), record.outcome, record.cancelled)).collect();
    use Outcome::{Ok, Unanswered};
    assert_eq!(
        told,
        [
            ("a", Ok, false),
            ("b", Ok, false),
            ("c", Unanswered, true),
            ("d", Unanswered, false),
            ("e", Unanswered, false)
        ]
    );
}

#[test]
fn exchanges_of_one_capture_keep_their_requests_apart() {
    let bench = bench();
    let capture = bench.recorder.capture(None);
    let scopes: Vec<_> = (1..=4).map(|scope| capture.within(scope)).collect();
    for (scope, tool) in scopes.iter().zip(["a", "b", "c", "d"]) {
        say(scope, &[&format!(r#">{{"id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#)]);
    }
    let good = r#"<{"id":1,"result":{"content":[]}}"#;
    say(&scopes[1], &[good]);
    scopes[2].unanswered();
    scopes[3].forget();
    // By the way of another exchange.
    say(&scopes[1], &[good, good]);
    capture.end();
    let told: Vec<_> = bench.records().into_iter().map(|record| (record.tool.unwrap(), record.outcome)).collect();
    use Outcome::{Ok, Unanswered};
    assert_eq!(told, [("b".to_owned(), Ok), ("c".to_owned(), Unanswered), ("a".to_owned(), Ok)]);
}

#[test]
fn times_are_those_of_the_messages_not_of_the_recorder() {
    let bench = bench();
    let capture = bench.recorder.capture(None);
    let since = Instant::now();
    let answered = since + Duration::from_millis(41);
    let added = |micros| Some(Duration::from_micros(micros));
    capture.outbound(br#"{"id":1,"method":"ping"}"#, since, added(20));
    std::thread::sleep(Duration::from_millis(50));
    capture.inbound(br#"{"id":1,"result":{}}"#, answered, added(40));
    capture.inbound(br#"{"id":1,"result":{}}"#, answered, added(40));
    let before = jiff::Timestamp::now();
    let record = bench.records().remove(0);
    assert_eq!((record.latency_ms, record.shim_self_us), (41, Some(60)));
    assert!(crate::store::record::moment(&record.ts).unwrap() < before);
}

#[test]
fn what_waits_for_an_answer_is_bounded() {
    let bench = bench();
    let capture = bench.recorder.capture(None);
    for n in 0..MAX_PENDING + 5 {
        capture.from_client(format!(r#"{{"id":{n},"method":"ping"}}"#).as_bytes(), Instant::now());
    }
    assert_eq!(bench.recorder.finish().dropped, 5);
    let mut pending = Pending::default();
    let request =
        |bytes| Request { scope: 0, call: Call::new("ping", None, None), since: Instant::now(), added: None, bytes };
    assert!(pending.add("1".into(), request(MAX_PENDING_BYTES)) && !pending.add("2".into(), request(1)));
    assert!(pending.take("1", 0).is_some() && pending.add("2".into(), request(1)));
    assert_eq!((pending.remove(|_| true).len(), pending.count, pending.bytes), (1, 0, 0));
}

#[test]
fn calls_of_our_own_are_synthetic() {
    let bench = bench();
    let capture = bench.recorder.capture(None);
    capture.learn(r#"{"tools":[{"name":"read","inputSchema":{"properties":{"path":{}}}}]}"#);
    let made = |method, reply| Synthetic {
        method,
        tool: Some("read"),
        arguments: Some(r#"{"path":"/etc/passwd","x":1}"#),
        reply,
        latency: Duration::from_millis(7),
        at: Instant::now(),
    };
    for reply in [
        Reply::Result(r#"{"content":[]}"#),
        Reply::Error(r#"{"code":-32602,"message":"no"}"#),
        Reply::None,
        Reply::Result("no json"),
    ] {
        capture.synthetic(&made("tools/call", reply));
    }
    capture.synthetic(&made("tools/list", Reply::Result("{}")));
    let records = bench.records();
    use Outcome::{Error, Ok, Unanswered, Unparsed};
    let outcomes: Vec<_> = records.iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes, [Ok, Error, Unanswered, Unparsed, Ok]);
    assert!(records.iter().all(|record| record.kind == Kind::Synthetic && record.latency_ms == 7));
    assert_eq!(records[0].args, Some(json!({"path": "str<32", "key#1": "int"})));
    assert_eq!((&records[4].tool, &records[4].args), (&None, &None));
}

#[test]
fn nothing_a_stranger_sends_ends_the_recorder() {
    let bench = bench();
    let capture = bench.recorder.capture(None);
    let deep =
        format!(r#"{{"id":{0},"method":"tools/call","params":{{"name":{0},"arguments":{0}}}}}"#, "[".repeat(9_999));
    let closed = deep.replace(&"[".repeat(9_999), &format!("{}{}", "[".repeat(9_999), "]".repeat(9_999)));
    for frame in [&*deep, &closed, "", "\0", r#"{"id":"#, "[[[]]]", r#"{"error":1,"id":1}"#, r#""\ud800""#] {
        capture.from_client(frame.as_bytes(), Instant::now());
        capture.from_server(frame.as_bytes(), Instant::now());
    }
    capture.from_client(&[0xff; 10], Instant::now());
    capture.end();
    let records = bench.records();
    assert!(records.iter().any(|record| record.tool.as_deref() == Some(UNLISTED)), "{records:?}");
}
