//! The official clients of Python and TypeScript talk to published servers through the recorders: they are answered as
//! without, and every call is recorded.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use mcpeval::store::journal::{self, Journal};
use mcpeval::store::record::Record;
use mcpeval_tests::client::Client;
use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{PATIENCE, Place, Running};
use mcpeval_tests::traffic::home;
use serde_json::{Value, json};

/// What stands in every argument that can hold a text.
const CANARY: &str = "canary-7f3a91";

/// A call, and how it must be recorded: tool, arguments, outcome, shape of the arguments.
type Call = (&'static str, Value, &'static str, Value);

/// Both clients.
const CLIENTS: [&str; 2] = ["python", "typescript"];

fn client(real: &Real, name: &str, calls: &Path) -> Vec<OsString> {
    if name == "python" { real.python_client(calls) } else { real.node_client(calls) }
}

/// Runs a client; what it was answered.
fn answers(place: &Place, client: &[OsString], target: &[OsString]) -> Value {
    let mut command = place.command(client.first().expect("a program"));
    command.args(&client[1..]).args(target).env("MCPEVAL_HOME", home(place).root());
    let outcome = Running::start(command).finish(PATIENCE);
    assert_eq!(outcome.code, Some(0), "{target:?}: {}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {}", outcome.stdout))
}

/// All records of a home, as they were written.
fn records(place: &Place) -> Vec<Record> {
    let mut found = Vec::new();
    for file in journal::files(&home(place), Journal::Calls).expect("a store") {
        let text = fs::read_to_string(&file).expect("a journal");
        assert!(text.ends_with('\n') && !text.contains(CANARY), "{text}");
        found.extend(text.lines().map(|line| Record::read(line.as_bytes()).expect("a record")));
    }
    found
}

/// The recorded calls of tools are these, in their order and of one capture.
fn assert_recorded(records: &[Record], calls: &[Call], with_greeting: bool) {
    let found: Vec<(String, String, Value)> = records
        .iter()
        .filter(|record| record.method == "tools/call")
        .map(|record| {
            let outcome = serde_json::to_value(record.outcome).expect("a word");
            let tool = record.tool.clone().unwrap_or_default();
            (tool, outcome.as_str().unwrap_or_default().to_owned(), record.args.clone().unwrap_or_default())
        })
        .collect();
    let wanted: Vec<(String, String, Value)> = calls
        .iter()
        .map(|(tool, _, outcome, shape)| ((*tool).to_owned(), (*outcome).to_owned(), shape.clone()))
        .collect();
    assert_eq!(found, wanted);
    let captures = |only_calls: bool| {
        let mut ids: Vec<&str> = records
            .iter()
            .filter(|record| !only_calls || record.method == "tools/call")
            .map(|record| record.identity.as_ref().expect("an identity").capture_id.as_str())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    };
    assert_eq!(captures(true), 1, "one session is one capture");
    if with_greeting {
        assert_eq!(captures(false), 1);
        let methods: Vec<&str> = records.iter().map(|record| record.method.as_str()).collect();
        assert!(methods.contains(&"initialize") && methods.contains(&"tools/list"), "{methods:?}");
        assert!(records.iter().map(|record| record.seq).eq(1..=records.len() as u64), "in order of completion");
    }
}

fn file_of(place: &Place, calls: &[Call]) -> std::path::PathBuf {
    let calls: Vec<Value> = calls.iter().map(|(tool, arguments, ..)| json!([tool, arguments])).collect();
    place.file("calls.json", Value::from(calls).to_string())
}

/// Both clients, without and with the recorder, each time on a fresh server.
fn over_stdio(what: &str, calls: &[Call], server: impl Fn(&Real, &Place) -> Vec<OsString>) {
    let Some(real) = Real::find_clients(what) else { return };
    for name in CLIENTS {
        let plain = Place::new(programs!());
        let recorded = Place::new(programs!());
        let target = |place: &Place, shim: &[&str]| {
            let mut target: Vec<OsString> = vec!["--".into()];
            target.extend(shim.iter().map(OsString::from));
            target.extend(server(&real, place));
            target
        };
        let wanted = answers(&plain, &client(&real, name, &file_of(&plain, calls)), &target(&plain, &[]));
        let shim = [programs!().mcpeval, "shim", "--server", "real", "--"];
        let found = answers(&recorded, &client(&real, name, &file_of(&recorded, calls)), &target(&recorded, &shim));
        // The folders of the two places have different names.
        let text = |value: &Value, place: &Place| value.to_string().replace(&place.path().display().to_string(), "");
        assert_eq!(text(&found, &recorded), text(&wanted, &plain), "{name}");
        assert_eq!(wanted.as_array().map(Vec::len), Some(calls.len() + 1), "{name}");
        assert_recorded(&records(&recorded), calls, true);
        assert!(!home(&plain).root().exists());
        recorded.assert_clean();
    }
}

fn everything_calls() -> Vec<Call> {
    vec![
        ("echo", json!({"message": CANARY}), "ok", json!({"message": "str<32"})),
        ("get-sum", json!({"a": 4_915_112, "b": -3.5}), "ok", json!({"a": "int", "b": "num"})),
        ("echo", json!({"wrong": true, CANARY: null}), "error", json!({"key#1": "null", "key#2": "bool:true"})),
        (
            "get-resource-reference",
            json!({"resourceType": "Text", "resourceId": 1}),
            "ok",
            json!({"resourceType": "enum:Text", "resourceId": "int"}),
        ),
        ("no_such_tool", json!({"list": [CANARY, 2]}), "error", json!({"key#1": {"array": 2, "items": "str<32"}})),
        (
            "trigger-long-running-operation",
            json!({"duration": 1, "steps": 2}),
            "ok",
            json!({"duration": "int", "steps": "int"}),
        ),
    ]
}

#[test]
fn everything_over_stdio() {
    over_stdio("server-everything", &everything_calls(), |real, _| {
        [real.node("everything"), vec!["stdio".into()]].concat()
    });
}

#[test]
fn memory_over_stdio() {
    let entity = json!({"name": CANARY, "entityType": "word", "observations": [CANARY]});
    let shape = json!({"name": "str<32", "entityType": "str<8", "observations": {"array": 1, "items": "str<32"}});
    let calls = [
        ("create_entities", json!({"entities": [entity]}), "ok", json!({"entities": {"array": 1, "items": shape}})),
        ("search_nodes", json!({"query": CANARY}), "ok", json!({"query": "str<32"})),
        ("read_graph", json!({}), "ok", json!({})),
        ("open_nodes", json!({"names": 7}), "error", json!({"names": "int"})),
    ];
    over_stdio("server-memory", &calls, |real, place| {
        let file = place.path().join("memory.json");
        let variable = format!("MEMORY_FILE_PATH={}", file.display());
        [vec!["env".into(), variable.into()], real.node("memory")].concat()
    });
}

#[test]
fn time_over_stdio() {
    let calls = [
        ("get_current_time", json!({"timezone": CANARY}), "error", json!({"timezone": "str<32"})),
        ("convert_time", json!({"source_timezone": CANARY}), "error", json!({"source_timezone": "str<32"})),
    ];
    over_stdio("mcp-server-time", &calls, |real, _| {
        [real.python("time"), vec!["--local-timezone".into(), "UTC".into()]].concat()
    });
}

/// Both clients over HTTP, through `shim-http` to the same server as without.
#[test]
fn everything_over_http() {
    let Some(real) = Real::find_clients("server-everything over HTTP") else { return };
    for name in CLIENTS {
        let calls = everything_calls();
        let place = Place::new(programs!());
        let server = real.everything_over_http(&place);
        let command = client(&real, name, &file_of(&place, &calls));
        let wanted = answers(&place, &command, &["--url".into(), server.url.clone().into()]);
        let recorder = Recorder::start(&place, &server.url);
        let found = answers(&place, &command, &["--url".into(), recorder.url.clone().into()]);
        assert_eq!(found, wanted, "{name}");
        recorder.end();
        let records = records(&place);
        assert_recorded(&records, &calls, false);
        let methods: Vec<&str> = records.iter().map(|record| record.method.as_str()).collect();
        assert!(methods.contains(&"initialize") && methods.contains(&"tools/list"), "{methods:?}");
    }
}

/// `shim-http` at work.
struct Recorder {
    url: String,
    client: Client,
}

impl Recorder {
    fn start(place: &Place, upstream: &str) -> Self {
        // It says on standard error where it listens.
        let mut shell = place.command("sh");
        shell.args(["-c", "exec \"$@\" 2>&1", "sh", programs!().mcpeval, "shim-http", "--server", "real"]);
        shell.args(["--listen", "127.0.0.1:0", "--upstream", upstream]);
        let client = Client::start(shell);
        let line = client.next_line().expect("it says where it listens");
        let start = line.find("http://").unwrap_or_else(|| panic!("no address in {line}"));
        let url: String = line[start..].chars().take_while(|next| !next.is_whitespace()).collect();
        Self { url, client }
    }

    /// Ends it as a service manager does.
    fn end(self) {
        self.client.signal(rustix::process::Signal::TERM);
        let ended = self.client.finish();
        assert_eq!(ended.code, Some(143), "{:?}", ended.lines);
    }
}
