//! `mcpeval shim-http`: what passes, what is refused, what is recorded, and what is left when somebody leaves.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};
use std::{fs, thread};

use mcpeval_tests::programs;
use mcpeval_tests::run::{PATIENCE, Place};
use mcpeval_tests::upstream::{
    ShimHttp, Upstream, begin_events, body_of, chunk, leave, occurs_in, post, read_until, records, reply, reply_json,
    request, rest, wait_for_end, wait_for_records,
};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A call of a tool.
fn call(id: u32) -> String {
    let params = json!({"name": "find", "arguments": {"query": "saw"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// A good answer to a request.
fn result(request: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}})
}

/// A server that answers each POST with JSON at once.
fn plain() -> Upstream {
    Upstream::start(|request, stream| reply_json(stream, &result(&request.json())))
}

fn start(upstream: &Upstream) -> (Place, ShimHttp) {
    let place = Place::new(programs!());
    let shim = ShimHttp::start(&place, &upstream.url());
    (place, shim)
}

/// Method and outcome of each record, sorted.
fn outcomes(records: &[Value]) -> Vec<String> {
    let word = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
    let mut outcomes: Vec<String> =
        records.iter().map(|record| format!("{} {}", word(record, "method"), word(record, "outcome"))).collect();
    outcomes.sort();
    outcomes
}

/// How many different values stand in that place.
fn different(records: &[Value], pointer: &str) -> usize {
    records.iter().map(|record| record.pointer(pointer).map(Value::to_string)).collect::<BTreeSet<_>>().len()
}

/// Ends the recorder and gives what it recorded.
fn finish(place: &Place, shim: ShimHttp) -> Vec<Value> {
    let (code, stderr) = shim.end(Signal::TERM);
    assert_eq!(code, Some(143), "{stderr}");
    assert!(!stderr.contains("dropped"), "{stderr}");
    records(place)
}

fn assert_status(answer: &str, status: u16) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status} was awaited, and this came: {answer}");
}

#[test]
fn each_event_of_a_get_stream_arrives_before_the_next_is_sent() {
    let (sender, turns) = mpsc::channel::<()>();
    let turns = Mutex::new(turns);
    let upstream = Upstream::start(move |request, stream| {
        if request.method() == "GET" {
            begin_events(stream, "");
            for number in 0.. {
                // Only once the caller has what was sent before.
                if turns.lock().expect("one stream").recv().is_err() {
                    break;
                }
                chunk(stream, format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/n{number}\"}}\n\n"));
            }
        }
    });
    let (place, shim) = start(&upstream);
    let mut stream = shim.connect();
    stream.write_all(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").unwrap();
    let head = read_until(&mut stream, "\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("text/event-stream"), "{head}");
    for number in 0..5 {
        sender.send(()).unwrap();
        read_until(&mut stream, &format!("n{number}\"}}\n\n"));
    }
    let records = wait_for_records(&place, 5);
    assert!(records.iter().all(|record| record["outcome"] == "unknown"), "{records:?}");
    assert_eq!(records[4]["method"], "notifications/n4");
}

#[test]
fn events_six_seconds_apart_arrive_at_once() {
    let (sender, sent) = mpsc::channel();
    let upstream = Upstream::start(move |_, stream| {
        begin_events(stream, "");
        for number in 0..3 {
            if number > 0 {
                thread::sleep(Duration::from_secs(6));
            }
            let _ = sender.send(Instant::now());
            chunk(stream, format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/n{number}\"}}\n\n"));
        }
        chunk(stream, "");
    });
    let (place, shim) = start(&upstream);
    let mut stream = shim.connect();
    stream.write_all(request("GET", "Accept: text/event-stream\r\n").as_bytes()).unwrap();
    let delays: Vec<Duration> = (0..3)
        .map(|number| {
            read_until(&mut stream, &format!("n{number}\"}}\n\n"));
            let here = Instant::now();
            here.duration_since(sent.recv().unwrap())
        })
        .collect();
    // A busy machine may delay one, never all.
    assert!(delays.iter().min() < Some(&Duration::from_millis(100)), "{delays:?}");
    assert!(rest(&mut stream).ends_with("0\r\n\r\n"), "the end of the stream does not pass");
    assert_eq!(finish(&place, shim).len(), 3);
}

#[test]
fn a_post_stream_with_two_answers_and_a_notification_makes_three_records() {
    let upstream = Upstream::start(|request, stream| {
        begin_events(stream, "");
        chunk(stream, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n");
        for asked in request.json().as_array().into_iter().flatten().rev() {
            chunk(stream, format!("event: message\ndata: {}\n\n", result(asked)));
        }
        chunk(stream, "");
    });
    let (place, shim) = start(&upstream);
    let list = r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#;
    let answer = shim.post("", &format!("[{},{list}]", call(1)));
    assert_status(&answer, 200);
    let records = finish(&place, shim);
    assert_eq!(outcomes(&records), ["notifications/progress unknown", "tools/call ok", "tools/list ok"]);
    assert_eq!((different(&records, "/identity/capture_id"), different(&records, "/seq")), (1, 3));
    let of_call = records.iter().find(|record| record["tool"] == "find").expect("the call");
    assert_eq!((&of_call["server"], &of_call["kind"]), (&json!("shop"), &json!("real")));
}

#[test]
fn events_are_read_however_they_are_written_and_split() {
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/a"}"#;
    let text = format!(
        "\u{feff}: a comment\r\ndata: {notification}\r\n\r\n:\n\nevent: message\rid: 7\rdata: {}\rdata: {}\r\r\
         retry: 10\ndata:\n\nid: 8\ndata:{notification}\n\ndata: no message\n\ndata: {}\n\ndata: unfinished",
        r#"{"jsonrpc":"2.0","id":1,"#,
        r#""result":{"content":[]}}"#,
        notification.replace("/a", "/\u{20ac}"),
    );
    for size in [1, 5, usize::MAX] {
        let sent = text.clone();
        let upstream = Upstream::start(move |_, stream| {
            begin_events(stream, "");
            for piece in sent.as_bytes().chunks(size) {
                chunk(stream, piece);
            }
            chunk(stream, "");
        });
        let (place, shim) = start(&upstream);
        let answer = shim.post("", &call(1));
        assert_eq!(body_of(&answer), text);
        assert_eq!(
            outcomes(&finish(&place, shim)),
            [
                "notifications/a unknown",
                "notifications/a unknown",
                "tools/call ok",
                "unlisted unknown",
                "unparsed/inbound unparsed"
            ],
            "in pieces of {size}"
        );
    }
}

#[test]
fn the_head_and_each_chunk_pass_before_the_answer_ends() {
    let (sender, turns) = mpsc::channel::<()>();
    let turns = Mutex::new(turns);
    let upstream = Upstream::start(move |request, stream| {
        let turns = turns.lock().expect("one request");
        let body = result(&request.json()).to_string();
        let (first, second) = body.split_at(9);
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        for part in [head.as_str(), first, second] {
            let _ = turns.recv();
            let _ = stream.write_all(part.as_bytes());
        }
    });
    let (place, shim) = start(&upstream);
    let mut stream = shim.connect();
    stream.write_all(post("", &call(1)).as_bytes()).unwrap();
    sender.send(()).unwrap();
    let head = read_until(&mut stream, "\r\n\r\n").to_ascii_lowercase();
    assert!(head.contains("content-length: ") && !head.contains("chunked"), "the framing changed: {head}");
    sender.send(()).unwrap();
    read_until(&mut stream, "{\"id\":1,\"");
    sender.send(()).unwrap();
    assert!(rest(&mut stream).ends_with('}'));
    assert_eq!(outcomes(&finish(&place, shim)), ["tools/call ok"]);
}

#[test]
fn only_the_listed_headers_pass() {
    let upstream = Upstream::start(|request, stream| {
        let headers = "Content-Type: application/json\r\nMCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: s\r\n\
            WWW-Authenticate: Bearer a\r\nWWW-Authenticate: Basic\r\nAllow: POST\r\nRetry-After: 3\r\n\
            Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\nSet-Cookie: c=1\r\nServer: x\r\n\
            Access-Control-Allow-Origin: *\r\nLocation: http://elsewhere.example/\r\nX-Other: x\r\n";
        reply(stream, "200 OK", headers, result(&request.json()).to_string());
    });
    let (place, shim) = start(&upstream);
    let passed = "Accept: application/json\r\nMCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: s\r\n\
        Mcp-Method: tools/call\r\nMcp-Name: find\r\nMcp-Param-Region: eu\r\nLast-Event-ID: 7\r\n\
        Authorization: Bearer swordfish\r\nOrigin: http://localhost:6274\r\n";
    let others = "Cookie: a=b\r\nUser-Agent: x\r\nAccept-Encoding: gzip\r\nX-Forwarded-For: 127.0.0.1\r\n\
        Proxy-Authorization: Basic x\r\nMcp-Other: x\r\n";
    let answer = shim.post(&format!("{passed}{others}"), &call(1)).to_ascii_lowercase();
    let seen = upstream.seen();
    let mut wanted: Vec<&str> =
        "accept authorization content-length content-type host last-event-id mcp-method mcp-name \
        mcp-param-region mcp-protocol-version mcp-session-id origin"
            .split_whitespace()
            .collect();
    wanted.sort_unstable();
    assert_eq!(seen[0].header_names(), wanted);
    assert_eq!(seen[0].header("authorization"), Some("Bearer swordfish"));
    assert_eq!(seen[0].header("host"), Some(upstream.address.to_string().as_str()));
    let (head, _) = answer.split_once("\r\n\r\n").unwrap();
    let mut names: Vec<&str> =
        head.lines().skip(1).filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    names.sort_unstable();
    let ours = "allow cache-control connection content-length content-type date mcp-protocol-version mcp-session-id \
        retry-after www-authenticate www-authenticate x-accel-buffering";
    assert_eq!(names.join(" "), ours, "{head}");
    finish(&place, shim);
    assert!(!occurs_in(place.path(), "swordfish") && !occurs_in(place.path(), "saw"));
}

#[test]
fn what_is_not_for_the_server_is_refused_and_never_sent_on() {
    let upstream = plain();
    let (place, shim) = start(&upstream);
    let json = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    let head = |line: &str, headers: &str| format!("{line}\r\n{headers}Connection: close\r\n\r\n{{}}");
    let over = 8 * 1024 * 1024 + 1;
    for (raw, status, label) in [
        (head("POST /mcp HTTP/1.1", &format!("Host: localhost\r\n{json}Content-Length: 3\r\n")), 400, "bad-request"),
        (head("POST /mcp HTTP/1.1", &format!("Host: localhost\r\nHost: localhost\r\n{json}")), 400, "repeated-header"),
        (
            head("POST /mcp HTTP/1.1", &format!("Host: localhost\r\nContent-Type: a/b\r\n{json}")),
            400,
            "repeated-header",
        ),
        (head("POST /mcp HTTP/1.1", json), 400, "host-missing"),
        (head("POST /mcp HTTP/1.1", &format!("Host: evil.example\r\n{json}")), 403, "foreign-host"),
        (head("POST http://evil.example/ HTTP/1.1", &format!("Host: localhost\r\n{json}")), 403, "foreign-host"),
        (head("POST /mcp HTTP/1.1", &format!("Host: localhost\r\nOrigin: null\r\n{json}")), 403, "foreign-origin"),
        (head("GET /mcp HTTP/1.1", "Host: localhost\r\nOrigin: http://evil.example\r\n"), 403, "foreign-origin"),
        (head("PUT /mcp HTTP/1.1", &format!("Host: localhost\r\n{json}")), 405, "method-not-allowed"),
        (head("OPTIONS /mcp HTTP/1.1", "Host: localhost\r\n"), 405, "method-not-allowed"),
        (head("POST /mcp HTTP/1.1", "Host: localhost\r\nContent-Length: 2\r\n"), 415, "content-type-not-json"),
        (
            head("POST /mcp HTTP/1.1", "Host: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n"),
            415,
            "content-type-not-json",
        ),
        (head("GET /other HTTP/1.1", "Host: localhost\r\n"), 404, "no-such-path"),
        (
            head("GET /mcp HTTP/1.1", &format!("Host: localhost\r\nX: {}\r\n", "x".repeat(65536))),
            431,
            "headers-too-large",
        ),
        (
            head("POST /mcp HTTP/1.1", &format!("Host: localhost\r\n{}", json.replace('2', &over.to_string()))),
            413,
            "body-too-large",
        ),
        (
            head(
                "POST /mcp HTTP/1.1",
                "Host: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n",
            ) + "no size\r\n",
            400,
            "bad-request",
        ),
    ] {
        let answer = shim.raw(&raw);
        let shown: String = raw.chars().take(200).collect();
        assert_status(&answer, status);
        assert!(answer.ends_with(&format!("{{\"error\":\"{label}\"}}")), "{shown:?} gave {answer}");
        assert!(status != 405 || answer.contains("allow: GET, POST, DELETE"), "{answer}");
    }
    assert_eq!(upstream.seen().len(), 0);
    assert_eq!(finish(&place, shim).len(), 0);
}

#[test]
fn a_body_passes_up_to_its_limit_and_in_chunks() {
    let upstream = plain();
    let (_place, shim) = start(&upstream);
    let chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
    let whole = call(1);
    let mut raw = request("POST", chunked);
    for piece in whole.as_bytes().chunks(3) {
        let _ = write!(raw, "{:x};a=b\r\n{}\r\n", piece.len(), String::from_utf8_lossy(piece));
    }
    assert_status(&shim.raw(format!("{raw}0\r\n\r\n")), 200);
    assert_eq!(upstream.seen()[0].body, whole.as_bytes());
    assert_eq!(upstream.seen()[0].header("content-length"), Some(whole.len().to_string().as_str()));
    // Exactly the limit, and one byte more in chunks that announce nothing.
    let limit = 8 * 1024 * 1024;
    let whole = format!("{}{}", call(2), " ".repeat(limit - call(2).len()));
    assert_status(&shim.post("", &whole), 200);
    assert_eq!(upstream.seen()[1].body.len(), limit);
    let answer = shim.raw(format!("{}{:x}\r\n{whole} \r\n0\r\n\r\n", request("POST", chunked), limit + 1));
    assert_status(&answer, 413);
    assert_eq!(upstream.seen().len(), 2);
}

#[test]
fn slow_senders_are_told_and_hold_nothing_up() {
    let upstream = plain();
    let (_place, shim) = start(&upstream);
    let mut slow = Vec::new();
    for _ in 0..60 {
        let mut stream = shim.connect();
        let head = post("", &call(1));
        stream.write_all(&head.as_bytes()[..head.len() - 1]).unwrap();
        slow.push(stream);
    }
    let mut headless = shim.connect();
    headless.write_all(b"POST /mcp HTTP/1.1\r\nHost:").unwrap();
    let mut silent = shim.connect();
    assert_status(&shim.post("", &call(2)), 200);
    for mut stream in slow {
        let answer = rest(&mut stream);
        assert_status(&answer, 408);
        assert!(answer.ends_with("{\"error\":\"body-too-late\"}"), "{answer}");
    }
    assert!(rest(&mut headless).ends_with("{\"error\":\"headers-too-late\"}"));
    assert_eq!(rest(&mut silent), "");
    assert_eq!(upstream.seen().len(), 1);
}

#[test]
fn a_server_that_fails_is_a_bad_gateway() {
    let upstream = Upstream::start(|request, stream| {
        if request.json()["id"] == 1 {
            let _ = stream.write_all(b"nonsense\r\n\r\n");
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let (place, shim) = start(&upstream);
    for id in [1, 2] {
        let answer = shim.post("", &call(id));
        assert_status(&answer, 502);
        assert!(answer.ends_with("{\"error\":\"upstream-failed\"}"), "{answer}");
    }
    assert_eq!(outcomes(&finish(&place, shim)), ["tools/call unanswered", "tools/call unanswered"]);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let shim = ShimHttp::start(&place, &format!("http://{nobody}/mcp"));
    assert_status(&shim.post("", &call(1)), 502);
}

#[test]
fn a_server_that_breaks_off_is_seen_to_break_off() {
    let upstream = Upstream::start(|request, stream| {
        if request.json()["id"] == 1 {
            begin_events(stream, "");
            chunk(stream, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/a\"}\n\ndata: {\"json");
        } else {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\"";
            let _ = stream.write_all(head.as_bytes());
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let (place, shim) = start(&upstream);
    let answer = shim.post("", &call(1));
    assert!(answer.contains("notifications/a") && !answer.ends_with("0\r\n\r\n"), "{answer}");
    let answer = shim.post("", &call(2));
    assert!(answer.ends_with("{\"jsonrpc\""), "{answer}");
    assert_eq!(
        outcomes(&finish(&place, shim)),
        ["notifications/a unknown", "tools/call unanswered", "tools/call unanswered", "unparsed/inbound unparsed"]
    );
}

#[test]
fn a_caller_that_leaves_takes_the_exchange_with_it_at_every_moment() {
    let (sender, events) = mpsc::channel();
    let upstream = Upstream::start(move |request, stream| {
        let id = request.json()["id"].as_u64();
        let _ = sender.send((id, "asked"));
        match id {
            // Before the head, within a JSON answer, within a stream.
            Some(1) => {}
            Some(2) => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
                let _ = stream.write_all(head.as_bytes());
            }
            _ => {
                begin_events(stream, "");
                chunk(stream, ": here\n\n");
            }
        }
        let _ = sender.send((id, if wait_for_end(stream) { "left" } else { "stayed" }));
    });
    let (place, shim) = start(&upstream);
    for (id, until) in [(1, ""), (2, "\r\n\r\n{"), (3, ": here\n\n")] {
        let mut stream = shim.connect();
        stream.write_all(post("", &call(id)).as_bytes()).unwrap();
        assert_eq!(events.recv_timeout(PATIENCE), Ok((Some(id.into()), "asked")));
        read_until(&mut stream, until);
        leave(stream);
        assert_eq!(events.recv_timeout(PATIENCE), Ok((Some(id.into()), "left")));
    }
    let mut stream = shim.connect();
    stream.write_all(request("GET", "").as_bytes()).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok((None, "asked")));
    read_until(&mut stream, ": here\n\n");
    leave(stream);
    assert_eq!(events.recv_timeout(PATIENCE), Ok((None, "left")));
    // In the middle of a request nothing is asked.
    for part in [10, 80, 150] {
        let mut stream = shim.connect();
        stream.write_all(&post("", &call(4)).as_bytes()[..part]).unwrap();
        leave(stream);
    }
    assert_eq!(outcomes(&wait_for_records(&place, 3)), ["tools/call unanswered"; 3]);
    assert_eq!(finish(&place, shim).len(), 3);
    assert_eq!(upstream.seen().len(), 4);
}

#[test]
fn eight_work_and_thirty_two_wait_and_the_rest_is_refused() {
    let gate = std::sync::Arc::new((Mutex::new(false), std::sync::Condvar::new()));
    let opened = std::sync::Arc::clone(&gate);
    let upstream = Upstream::start(move |request, stream| {
        let (open, changed) = &*opened;
        drop(changed.wait_while(open.lock().expect("the gate"), |open| !*open));
        reply_json(stream, &result(&request.json()));
    });
    let (place, shim) = start(&upstream);
    let mut streams: Vec<_> = (0..60)
        .map(|id| {
            let mut stream = shim.connect();
            stream.write_all(post("", &call(id)).as_bytes()).unwrap();
            stream
        })
        .collect();
    // Those that are refused have their answer before any other.
    let (refusals, refused) = mpsc::channel();
    thread::scope(|scope| {
        let readers: Vec<_> = streams
            .iter_mut()
            .map(|stream| {
                let refusals = refusals.clone();
                scope.spawn(move || {
                    let answer = rest(stream);
                    let is_refused = answer.starts_with("HTTP/1.1 503 ");
                    if is_refused {
                        let _ = refusals.send(());
                    }
                    assert!(is_refused || answer.starts_with("HTTP/1.1 200 "), "{answer}");
                    is_refused
                })
            })
            .collect();
        for _ in 0..20 {
            refused.recv_timeout(PATIENCE).expect("a refusal");
        }
        assert!(upstream.seen().len() <= 8, "{} at once", upstream.seen().len());
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
        let count =
            readers.into_iter().filter_map(|reader| reader.join().ok()).filter(|is_refused| *is_refused).count();
        assert_eq!(count, 20);
    });
    assert_eq!(outcomes(&finish(&place, shim)), ["tools/call ok"; 40]);
}

#[test]
fn sixty_four_streams_are_open_and_the_next_is_refused() {
    let upstream = Upstream::start(|request, stream| {
        if request.method() == "GET" {
            begin_events(stream, "");
            wait_for_end(stream);
        } else {
            reply_json(stream, &result(&request.json()));
        }
    });
    let (_place, shim) = start(&upstream);
    let open = || {
        let mut stream = shim.connect();
        stream.write_all(request("GET", "").as_bytes()).unwrap();
        let head = read_until(&mut stream, "\r\n\r\n");
        (stream, head)
    };
    let streams: Vec<_> = (0..64).map(|_| open()).collect();
    assert!(streams.iter().all(|(_, head)| head.starts_with("HTTP/1.1 200 ")));
    let (mut refused, head) = open();
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(rest(&mut refused).contains("too-many-streams"));
    // Streams take no place of exchanges, and give theirs back.
    assert_status(&shim.post("", &call(1)), 200);
    drop(streams);
    let deadline = Instant::now() + PATIENCE;
    while !open().1.starts_with("HTTP/1.1 200 ") {
        assert!(Instant::now() < deadline, "no place came back");
    }
}

#[test]
fn two_hundred_callers_at_once_are_all_answered() {
    let upstream = plain();
    let (place, shim) = start(&upstream);
    let served = thread::scope(|scope| {
        let shim = &shim;
        let callers: Vec<_> = (0..200)
            .map(|_| {
                // All use one id, as independent clients do.
                scope.spawn(move || {
                    loop {
                        let answer = shim.post("", &call(1));
                        if answer.starts_with("HTTP/1.1 200 ") {
                            break;
                        }
                        assert_status(&answer, 503);
                    }
                })
            })
            .collect();
        callers.into_iter().map(thread::ScopedJoinHandle::join).filter(Result::is_ok).count()
    });
    assert_eq!(served, 200);
    let records = finish(&place, shim);
    assert_eq!(outcomes(&records), vec!["tools/call ok"; 200]);
    assert_eq!((different(&records, "/seq"), different(&records, "/session")), (200, 1));
}

#[test]
fn each_session_is_its_own_until_it_ends() {
    let upstream = Upstream::start(|request, stream| {
        let asked = request.json();
        match (request.method(), asked["method"].as_str()) {
            ("POST", Some("initialize")) => {
                let id = asked["params"]["name"].as_str().unwrap_or_default();
                let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {id}\r\n");
                reply(stream, "200 OK", &headers, result(&asked).to_string());
            }
            ("POST", Some("tools/call")) if asked["id"] == 9 => reply(stream, "202 Accepted", "", ""),
            ("POST", _) => reply_json(stream, &result(&asked)),
            _ => reply(stream, "200 OK", "", ""),
        }
    });
    let (place, shim) = start(&upstream);
    let initialize = |name: &str| json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"name": name}});
    for session in ["one", "two"] {
        assert_status(&shim.post("", &initialize(session).to_string()), 200);
    }
    for session in ["one", "two", "one"] {
        assert_status(&shim.post(&format!("Mcp-Session-Id: {session}\r\n"), &call(2)), 200);
    }
    // What one session leaves unanswered is told at its end; the other session goes on.
    assert_status(&shim.post("Mcp-Session-Id: one\r\n", &call(9)), 202);
    assert_eq!(wait_for_records(&place, 5).len(), 5);
    assert_status(&shim.raw(request("DELETE", "Mcp-Session-Id: one\r\n")), 200);
    assert_eq!(
        outcomes(&wait_for_records(&place, 6))[3..],
        ["tools/call ok", "tools/call ok", "tools/call unanswered"]
    );
    assert_status(&shim.post("Mcp-Session-Id: two\r\n", &call(9)), 202);
    // Without a session nothing else can bring the answer.
    assert_status(&shim.post("", &call(9)), 202);
    wait_for_records(&place, 7);
    let records = finish(&place, shim);
    assert_eq!(records.len(), 8, "{records:?}");
    assert_eq!((different(&records, "/identity/capture_id"), different(&records, "/session")), (3, 3));
    for capture in records.iter().map(|record| &record["identity"]["capture_id"]) {
        let own: Vec<&Value> = records.iter().filter(|record| &record["identity"]["capture_id"] == capture).collect();
        let numbers: Vec<u64> = own.iter().filter_map(|record| record["seq"].as_u64()).collect();
        assert_eq!(numbers, (1..=own.len() as u64).collect::<Vec<_>>());
    }
}

#[test]
fn an_answer_on_another_stream_of_the_session_counts() {
    let (sender, answers) = mpsc::channel::<Value>();
    let answers = Mutex::new(answers);
    let sender = Mutex::new(sender);
    let upstream = Upstream::start(move |request, stream| {
        if request.method() == "GET" {
            begin_events(stream, "");
            for answer in answers.lock().expect("one stream").iter() {
                chunk(stream, format!("data: {answer}\n\n"));
            }
        } else {
            let _ = sender.lock().expect("the sender").send(result(&request.json()));
            reply(stream, "202 Accepted", "", "");
        }
    });
    let (place, shim) = start(&upstream);
    let mut stream = shim.connect();
    stream.write_all(request("GET", "Mcp-Session-Id: one\r\n").as_bytes()).unwrap();
    read_until(&mut stream, "\r\n\r\n");
    for id in [1, 2] {
        assert_status(&shim.post("Mcp-Session-Id: one\r\n", &call(id)), 202);
        read_until(&mut stream, "\n\n");
    }
    wait_for_records(&place, 2);
    assert_eq!(outcomes(&finish(&place, shim)), ["tools/call ok", "tools/call ok"]);
}

#[test]
fn what_cannot_be_read_passes_and_is_recorded_as_such() {
    let encoded = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
    let upstream = Upstream::start(move |request, stream| match request.json()["id"].as_u64() {
        Some(1) => {
            reply(stream, "200 OK", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", encoded);
        }
        Some(2) => reply(stream, "200 OK", "Content-Type: application/json\r\n", "{\"jsonrpc\": "),
        Some(3) => reply(stream, "200 OK", "Content-Type: text/html\r\n", "<p>hello</p>"),
        Some(4) => reply(stream, "401 Unauthorized", "Content-Type: application/json\r\n", "{\"error\":\"no\"}"),
        Some(5) => {
            let error = json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -32000, "message": "no"}}).to_string();
            reply(stream, "400 Bad Request", "Content-Type: application/json\r\n", error);
        }
        _ => reply(stream, "202 Accepted", "", ""),
    });
    let (place, shim) = start(&upstream);
    let mut stream = shim.connect();
    stream.write_all(post("", &call(1)).as_bytes()).unwrap();
    let head = read_until(&mut stream, "\r\n\r\n");
    let mut body = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut body).unwrap();
    assert!(head.contains("content-encoding: gzip") && body == encoded, "{head} {body:?}");
    for (id, status) in [(2, 200), (3, 200), (4, 401), (5, 400)] {
        assert_status(&shim.post("", &call(id)), status);
    }
    assert_status(&shim.post("", "{no json"), 202);
    assert_status(&shim.post("", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), 202);
    let records = finish(&place, shim);
    assert_eq!(
        outcomes(&records),
        [
            "tools/call error",
            "tools/call unanswered",
            "tools/call unanswered",
            "tools/call unanswered",
            "tools/call unanswered",
            "unparsed/inbound unparsed",
            "unparsed/inbound unparsed",
            "unparsed/inbound unparsed",
            "unparsed/outbound unparsed"
        ]
    );
}

#[test]
fn messages_longer_than_a_record_pass_and_are_unparsed() {
    let long = 5 * 1024 * 1024;
    let upstream = Upstream::start(move |request, stream| {
        let padding = " ".repeat(long);
        if request.body.len() > long {
            reply(
                stream,
                "200 OK",
                "Content-Type: application/json\r\n",
                format!("{}{padding}", result(&request.json())),
            );
        } else {
            begin_events(stream, "");
            chunk(stream, format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/long\"}}{padding}\n\n"));
            chunk(stream, format!("data: {}\n\n", result(&request.json())));
            chunk(stream, "");
        }
    });
    let (place, shim) = start(&upstream);
    let answer = shim.post("", &format!("{}{}", call(1), " ".repeat(long)));
    assert!(answer.len() > long);
    let answer = shim.post("", &call(2));
    assert!(body_of(&answer).len() > long);
    assert_eq!(
        outcomes(&finish(&place, shim)),
        ["tools/call ok", "unparsed/inbound unparsed", "unparsed/inbound unparsed", "unparsed/outbound unparsed"]
    );
}

#[test]
fn a_redirect_within_the_server_is_followed_and_no_other() {
    let upstream = Upstream::start(|request, stream| match request.head.split(' ').nth(1) {
        Some("/mcp") if request.method() == "DELETE" => {
            reply(stream, "307 Temporary Redirect", "Location: http://127.0.0.2:9/mcp\r\n", "");
        }
        Some("/mcp") => reply(stream, "307 Temporary Redirect", "Location: /mcp/\r\n", ""),
        _ => reply_json(stream, &result(&request.json())),
    });
    let (_place, shim) = start(&upstream);
    assert_status(&shim.post("", &call(1)), 200);
    assert_status(&shim.raw(request("GET", "")), 200);
    assert_status(&shim.raw(request("DELETE", "")), 502);
}

#[test]
fn many_requests_go_over_one_connection() {
    let upstream = plain();
    let (place, shim) = start(&upstream);
    let mut stream = shim.connect();
    for id in 0..50 {
        let request = post("", &call(id)).replace("Connection: close\r\n", "");
        stream.write_all(request.as_bytes()).unwrap();
        read_until(&mut stream, "\r\n\r\n");
        read_until(&mut stream, "}}");
    }
    // The rules hold for the last as for the first.
    stream.write_all(b"GET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n").unwrap();
    assert_status(&rest(&mut stream), 403);
    assert_eq!(finish(&place, shim).len(), 50);
}

#[test]
fn the_demo_server_is_recorded_as_it_is_used() {
    let place = Place::new(programs!());
    let demo = ShimHttp::of(place.mcpeval(["demo", "--http", "127.0.0.1:0"]));
    let shim = ShimHttp::start(&place, &format!("http://{}/mcp", demo.address));
    let outcome = place.run(["score", "--format", "json", "--url", &format!("http://{}/mcp", shim.address)]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let direct = place.run(["score", "--format", "json", "--url", &format!("http://{}/mcp", demo.address)]);
    assert_eq!(outcome.report().area_score("protocol"), direct.report().area_score("protocol"));
    let records = finish(&place, shim);
    let listed = outcomes(&records);
    for wanted in ["initialize ok", "tools/list ok", "tools/call ok"] {
        assert!(listed.iter().any(|outcome| outcome == wanted), "{wanted} is missing: {listed:?}");
    }
    assert!(different(&records, "/identity/capture_id") > 1, "every session of the battery is one capture");
}

#[test]
fn the_options_are_checked_before_anything_listens() {
    let place = Place::new(programs!());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let (here, free) = ("http://127.0.0.1:9/mcp", "127.0.0.1:0");
    for (listen, upstream, more, code, word) in [
        ("0.0.0.0:0", here, "", 2, "loopback"),
        ("192.0.2.1:80", here, "", 2, "loopback"),
        ("[::ffff:127.0.0.1]:0", here, "", 2, "loopback"),
        ("localhost:0", here, "", 2, "--listen"),
        ("127.0.0.1", here, "", 2, "--listen"),
        (free, "https://mcp.example.com/mcp", "", 2, "--allow-remote-http"),
        (free, "http://mcp.example.com/mcp", "--allow-remote-http", 2, "https://"),
        (free, "http://192.0.2.1/mcp", "--allow-remote-http", 2, "https://"),
        (free, "http://user:swordfish@127.0.0.1/", "", 2, "user name"),
        (free, "ftp://127.0.0.1/", "", 2, "scheme"),
        (free, "nonsense", "", 2, "URL"),
        (taken.as_str(), here, "", 3, "in use"),
    ] {
        let mut arguments = vec!["shim-http", "--server", "shop", "--listen", listen, "--upstream", upstream];
        arguments.extend(Some(more).filter(|more| !more.is_empty()));
        let outcome = place.run(&arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(word) && !outcome.stderr.contains("swordfish"),
            "{arguments:?}: {}",
            outcome.stderr
        );
    }
    let outcome = place.run(["shim-http", "--server", "a b", "--listen", free, "--upstream", here]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(!place.path().join("home/.mcp-eval").exists());
}

#[test]
fn a_signal_ends_it_and_what_is_open_with_it() {
    let upstream = Upstream::start(|_, stream| {
        begin_events(stream, "");
        wait_for_end(stream);
    });
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (place, shim) = start(&upstream);
        let mut stream = shim.connect();
        stream.write_all(post("Mcp-Session-Id: one\r\n", &call(1)).as_bytes()).unwrap();
        read_until(&mut stream, "\r\n\r\n");
        let (ended, stderr) = shim.end(signal);
        assert_eq!(ended, Some(code), "{stderr}");
        assert!(!rest(&mut stream).contains("0\r\n\r\n"), "a stream that was cut off looks complete");
        assert_eq!(outcomes(&records(&place)), ["tools/call unanswered"]);
    }
}

#[test]
fn traffic_goes_on_where_nothing_can_be_recorded() {
    let upstream = plain();
    let place = Place::new(programs!());
    // A file where the home folder would be, which holds for every user.
    fs::write(place.path().join("home/.mcp-eval"), "").unwrap();
    let shim = ShimHttp::start(&place, &upstream.url());
    assert_status(&shim.post("", &call(1)), 200);
    let (code, stderr) = shim.end(Signal::INT);
    assert_eq!(code, Some(130));
    assert!(stderr.contains("nothing is recorded") && stderr.contains(".mcp-eval"), "{stderr}");
}

#[test]
fn files_are_the_users_alone_whatever_the_umask() {
    let upstream = plain();
    let place = Place::new(programs!());
    let mut command = Command::new("sh");
    let inner =
        place.mcpeval(["shim-http", "--server", "shop", "--listen", "127.0.0.1:0", "--upstream", &upstream.url()]);
    command.current_dir(place.path()).arg("-c").arg("umask 000; exec \"$0\" \"$@\"").arg(inner.get_program());
    command.args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let shim = ShimHttp::of(command);
    assert_status(&shim.post("", &call(1)), 200);
    assert_eq!(finish(&place, shim).len(), 1);
    let mut folders = vec![place.path().join("home/.mcp-eval")];
    while let Some(folder) = folders.pop() {
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
        for path in fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
            }
        }
    }
}
