//! `mcpeval shim`: what passes, what is recorded of it, and what is not. Points 1 to 7, 10 and 11 of the acceptance checks
//! of recording.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use mcpeval_tests::programs;
use mcpeval_tests::run::Place;
use mcpeval_tests::talk::{Ended, Talk, journal, records};
use rustix::process::Signal;
use serde_json::{Value, json};

const SERVER: &str = env!("CARGO_BIN_EXE_line-server");

/// The home folder of the runs of a place.
fn home(place: &Place) -> PathBuf {
    place.path().join("recorded")
}

fn command(place: &Place, server: &[&str]) -> Command {
    let mut command = place.mcpeval(["shim", "--server", "files", "--"]);
    command.args(server).env("MCPEVAL_HOME", home(place));
    command
}

/// A session with a server, through the shim.
fn shim(place: &Place, server: &[&str]) -> Talk {
    Talk::start(command(place, server))
}

fn script(place: &Place, script: &str) -> Talk {
    shim(place, &["sh", "-c", script])
}

fn place() -> Place {
    Place::new(programs!())
}

/// What is under a folder, itself included.
fn tree(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    if path.is_dir() {
        all.extend(fs::read_dir(path).unwrap().flatten().flat_map(|entry| tree(&entry.path())));
    }
    all
}

/// Whether any of these bytes are in a name or a file under a folder.
fn holds(path: &Path, needles: &[&str]) -> bool {
    tree(path).iter().any(|path| {
        let bytes = if path.is_file() { fs::read(path).unwrap() } else { Vec::new() };
        let text = format!("{} {}", path.display(), String::from_utf8_lossy(&bytes));
        needles.iter().any(|needle| text.contains(needle))
    })
}

fn good(ended: &Ended) {
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_call_leaves_its_shape_and_nothing_of_its_content() {
    let place = place();
    let mut talk = shim(&place, &[SERVER]);
    talk.call("save", &json!({"phone": 4_915_112_345_678_u64, "a@b.example": true}));
    let id = talk.send("tools/list", &json!({}));
    talk.answer(id);
    talk.call(
        "read",
        &json!({"path": "/home/canary", "mode": "fast", "canary": "https://canary:canary@x.canary.com/canary"}),
    );
    talk.call("large", &json!({"bytes": 100_000, "canary": ["canary"]}));
    talk.call("ca nary", &json!("canary"));
    talk.write(b"{\"method\":\"notifications/canary\",\"params\":\"canary\"}\ncanary\n").unwrap();
    good(&talk.end());
    let records = records(&home(&place));
    let told: Vec<Value> = records
        .iter()
        .map(|record| json!([record["method"], record["tool"], record["args"], record["outcome"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["tools/call", "save", {"key#1": "bool:true", "key#2": "int"}, "ok"]),
            json!(["tools/list", null, null, "ok"]),
            json!(["tools/call", "read", {"path": "str<32", "mode": "enum:fast", "key#1": "url:canary.com"}, "ok"]),
            json!(["tools/call", "large", {"key#1": "int", "key#2": {"array": 1, "items": "str<8"}}, "ok"]),
            json!(["tools/call", "unlisted", "str<8", "ok"]),
            json!(["unparsed/outbound", null, null, "unparsed"]),
        ]
    );
    for (n, record) in records.iter().enumerate() {
        assert_eq!(
            (&record["seq"], &record["kind"], &record["server"]),
            (&json!(n + 1), &json!("real"), &json!("files"))
        );
        assert_eq!(record["identity"]["capture_id"], records[0]["identity"]["capture_id"]);
        assert_eq!(record.get("shim_self_us").is_some(), record["outcome"] == "ok", "{record}");
    }
    // A registrable domain is told, by the rules of shapes; nothing else of a URL is.
    let text = journal(&home(&place)).join("\n").replace("url:canary.com", "");
    assert!(!text.contains("canary") && !text.contains("ca nary"), "{text}");
    assert!(!holds(&home(&place), &["4915112345678", "a@b.example"]));
}

#[test]
fn whatever_the_umask_the_record_is_its_owners_alone() {
    let place = place();
    let mut wide = place.command("sh");
    wide.args(["-c", "umask 000; exec \"$@\"", "sh", programs!().mcpeval, "shim", "--server", "files", "--", SERVER]);
    wide.env("MCPEVAL_HOME", home(&place));
    let mut talk = Talk::start(wide);
    talk.call("read", &json!({}));
    good(&talk.end());
    let all = tree(&home(&place));
    assert!(all.len() > 4, "{all:?}");
    for path in all {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, expected, "{}", path.display());
    }
}

#[test]
fn a_request_without_an_answer_is_recorded_when_it_is_over() {
    let place = place();
    let mut talk = shim(&place, &[SERVER]);
    talk.send("tools/call", &json!({"name": "silent", "arguments": {"a": 1}}));
    let withdrawn = talk.send("tools/call", &json!({"name": "silent"}));
    talk.call("read", &json!({}));
    let cancel = json!({"method": "notifications/cancelled", "params": {"requestId": withdrawn}});
    talk.write(format!("{cancel}\n").as_bytes()).unwrap();
    good(&talk.end());
    let told: Vec<Value> = records(&home(&place))
        .iter()
        .map(|record| json!([record["tool"], record["outcome"], record["cancelled"], record["args"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["read", "ok", null, {}]),
            json!(["silent", "unanswered", true, null]),
            json!(["silent", "unanswered", null, {"key#1": "int"}]),
        ]
    );
}

#[test]
fn errors_are_recorded_by_code_retryable_and_the_skeleton_of_all_their_text() {
    let place = place();
    let mut talk = shim(&place, &[SERVER]);
    talk.call("deny", &json!({"n": 1}));
    talk.call("deny", &json!({"n": 22}));
    talk.call("fail", &json!({"text": "no canary 7"}));
    talk.call("fail", &json!({"text": "other, /canary"}));
    talk.call("fail", &json!({"text": 12, "first": true}));
    talk.call("fail", &json!({"text": 345, "first": true}));
    talk.call("fail", &json!({"text": 345}));
    good(&talk.end());
    let records = records(&home(&place));
    let error = |n: usize| &records[n]["error"];
    assert!(records.iter().all(|record| record["outcome"] == "error" && record["error"]["template"] == "{message}"));
    assert_eq!((&error(0)["code"], &error(0)["retryable"]), (&json!(-32001), &json!(true)));
    assert_eq!((&error(2)["code"], error(2).get("retryable")), (&json!("tool-error"), None));
    let template = |n: usize| &error(n)["template_id"];
    assert_eq!(template(0), template(1));
    // Quoted, so that both texts in the second block are `q`; the numbers are `0`.
    assert_eq!(template(2), template(3));
    assert!(template(2) != template(6) && template(4) == template(5) && template(5) == template(6));
    assert!(!holds(&home(&place), &["canary"]));
}

#[test]
fn a_line_beyond_the_bound_passes_unchanged_and_is_recorded_as_no_message() {
    let place = place();
    let line = [vec![b'x'; 5 << 20], b"\n{\"method\":\"m\"}\n".to_vec()].concat();
    let file = place.file("large", &line);
    let ended = shim(&place, &["cat", file.to_str().unwrap()]).end();
    good(&ended);
    assert!(ended.rest == line, "{} bytes", ended.rest.len());
    let told: Vec<Value> = records(&home(&place)).iter().map(|record| record["method"].clone()).collect();
    assert_eq!(told, [json!("unparsed/inbound"), json!("m")]);
}

#[test]
fn the_largest_lines_pass_both_ways() {
    let place = place();
    let mut talk = shim(&place, &["cat"]);
    // One way would fill up if it waited for the other.
    let line = [vec![b'y'; 100 << 20], b"\n".to_vec()].concat();
    let sent = line.clone();
    let mut input = talk.take_input();
    let writer = std::thread::spawn(move || input.write_all(&sent));
    let got = talk.read(line.len());
    assert!(got == line);
    writer.join().unwrap().unwrap();
    let ended = talk.end();
    assert_eq!((ended.status.code(), ended.rest.len()), (Some(0), 0), "{}", ended.stderr);
}

#[test]
fn pieces_of_lines_pass_at_once_and_the_last_line_needs_no_end() {
    let place = place();
    let mut talk = shim(&place, &["cat"]);
    for piece in [&b"{\"meth"[..], b"od\":\"a\"", b"}\n{\"method\":", b"\"b\"}"] {
        talk.write(piece).unwrap();
        assert_eq!(talk.read(piece.len()), piece);
    }
    good(&talk.end());
    let told: Vec<Value> = records(&home(&place)).iter().map(|record| record["method"].clone()).collect();
    assert_eq!(told, [json!("a"), json!("b")]);
}

#[test]
fn the_exit_code_is_that_of_the_server() {
    for (text, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143), ("exit 255", 255)] {
        let place = place();
        // The input stays open meanwhile.
        let ended = script(&place, text).wait();
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(code), ""), "{text}");
        place.assert_clean();
    }
    let place = place();
    let mut talk = shim(&place, &[SERVER]);
    let id = talk.send("tools/call", &json!({"name": "die"}));
    assert_eq!(id, 1);
    assert_eq!(talk.wait().status.code(), Some(137));
    assert_eq!(records(&home(&place))[0]["outcome"], "unanswered");
}

#[test]
fn it_is_told_even_if_the_parent_ignores_the_end_of_children() {
    let place = place();
    let mut deaf = place.command("sh");
    deaf.args(["-c", "trap '' CHLD; exec \"$@\"", "sh", programs!().mcpeval, "shim", "--server", "a", "--"]);
    deaf.args(["sh", "-c", "exit 9"]).env("MCPEVAL_HOME", home(&place));
    assert_eq!(Talk::start(deaf).end().status.code(), Some(9));
}

#[test]
fn signals_are_passed_on() {
    for (signal, name) in [(Signal::INT, "INT"), (Signal::TERM, "TERM")] {
        let place = place();
        let mut talk =
            script(&place, &format!("trap 'echo caught; exit 5' {name}; echo ready; while :; do sleep 0.05; done"));
        assert_eq!(talk.line(), "ready");
        talk.signal(signal);
        assert_eq!(talk.line(), "caught");
        assert_eq!(talk.wait().status.code(), Some(5), "{name}");
        let mut talk = script(&place, "echo ready; exec sleep 60");
        assert_eq!(talk.line(), "ready");
        talk.signal(signal);
        assert_eq!(talk.wait().status.code(), Some(128 + signal.as_raw()));
        place.assert_clean();
    }
}

#[test]
fn the_server_does_not_outlive_a_shim_that_is_killed() {
    let place = place();
    let mut talk = script(&place, "trap '' TERM HUP INT; (sleep 60) & echo ready; while :; do sleep 60; done");
    assert_eq!(talk.line(), "ready");
    talk.signal(Signal::KILL);
    assert_eq!(talk.wait().status.signal(), Some(9));
    place.assert_clean();
}

#[test]
fn either_end_learns_what_happens_at_the_other() {
    let place = place();
    // The client reads no more.
    let mut talk = script(&place, "while echo x; do :; done");
    assert_eq!(talk.line(), "x");
    talk.close_output();
    assert_eq!(talk.wait().status.code(), Some(128 + Signal::PIPE.as_raw()));
    // The server reads no more.
    let mut talk = script(&place, "exec <&-; echo ready; sleep 60");
    assert_eq!(talk.line(), "ready");
    while talk.write(b"more\n").is_ok() {
        std::thread::yield_now();
    }
    talk.signal(Signal::TERM);
    talk.wait();
    // The server says no more.
    let mut talk = script(&place, "exec >&-; read line; exit 6");
    assert_eq!(talk.line(), "");
    talk.write(b"go\n").unwrap();
    assert_eq!(talk.wait().status.code(), Some(6));
    // The server has ended, and left behind somebody who holds its output.
    let talk = script(&place, "echo said; sleep 60 & exit 3");
    let ended = talk.wait_for_exit();
    assert_eq!(ended.code(), Some(3));
}

#[test]
fn stderr_is_the_servers_own() {
    let place = place();
    let ended = script(&place, "echo 'from the server' >&2").end();
    assert_eq!(ended.stderr, "from the server\n");
}

#[test]
fn the_session_is_named_by_a_hash_and_no_variable_of_ours_reaches_the_server() {
    let place = place();
    let mut sessions = Vec::new();
    for name in [Some("canary session"), Some("canary session"), None, None] {
        let mut named = command(&place, &[SERVER]);
        named.env("MCPEVAL_LOG", "warn").env("OTHER", "x");
        if let Some(name) = name {
            named.env("MCPEVAL_SESSION", name);
        }
        let mut talk = Talk::start(named);
        let answer = talk.call("environment", &json!({}));
        let names = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(names.contains("OTHER") && !names.contains("MCPEVAL_"), "{names}");
        good(&talk.end());
        sessions.push(records(&home(&place)).pop().unwrap()["session"].clone());
    }
    assert!(sessions[0] == sessions[1] && sessions[1] != sessions[2] && sessions[2] != sessions[3], "{sessions:?}");
    assert!(sessions[0].as_str().unwrap().starts_with("session:"));
    let captures: Vec<Value> =
        records(&home(&place)).iter().map(|record| record["identity"]["capture_id"].clone()).collect();
    assert_ne!(captures[0], captures[1]);
    assert!(!holds(&home(&place), &["canary"]));
}

#[test]
fn a_home_that_cannot_be_written_costs_one_sentence_and_nothing_else() {
    let place = place();
    fs::write(home(&place), "a file").unwrap();
    let mut talk = shim(&place, &[SERVER]);
    for _ in 0..100 {
        talk.call("read", &json!({}));
    }
    let ended = talk.end();
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.stderr.contains("nothing is recorded") && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("recorded:"), "the path: {}", ended.stderr);
    let mut talk = script(&place, "read line; exit 4");
    talk.write(b"x\n").unwrap();
    assert_eq!(talk.wait().status.code(), Some(4));
}

#[test]
fn a_disk_that_refuses_or_waits_stops_no_traffic() {
    let place = place();
    let mut talk = shim(&place, &[SERVER]);
    talk.call("read", &json!({}));
    good(&talk.end());
    // Somebody holds the journal for ever.
    let file = tree(&home(&place)).into_iter().find(|path| path.to_string_lossy().contains("calls-")).unwrap();
    let held = fs::File::open(file).unwrap();
    held.lock().unwrap();
    let mut talk = shim(&place, &[SERVER]);
    for _ in 0..2_000 {
        talk.call("read", &json!({}));
    }
    let ended = talk.end();
    assert_eq!(ended.status.code(), Some(0));
    let sentence = "recording is incomplete";
    assert!(ended.stderr.contains(sentence) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    drop(held);
    assert_eq!(journal(&home(&place)).len(), 1);
}

#[test]
fn a_recorder_that_is_killed_leaves_whole_lines() {
    let place = place();
    let mut whole = 0;
    for round in 0..10 {
        let mut talk = shim(&place, &[SERVER]);
        for _ in 0..50 * round + 1 {
            talk.call("read", &json!({"a": "b"}));
        }
        talk.signal(Signal::KILL);
        assert_eq!(talk.wait().status.signal(), Some(9));
        let lines = records(&home(&place));
        assert!(lines.len() >= whole);
        whole = lines.len();
    }
    place.assert_clean();
    // The end of an append of which only a part reached the disk.
    let mut talk = shim(&place, &[SERVER]);
    talk.call("read", &json!({}));
    good(&talk.end());
    let before = journal(&home(&place));
    let file = tree(&home(&place)).into_iter().filter(|path| path.to_string_lossy().contains("calls-")).max().unwrap();
    let mut torn = fs::OpenOptions::new().append(true).open(file).unwrap();
    torn.write_all(&before[0].as_bytes()[..40]).unwrap();
    let mut talk = shim(&place, &[SERVER]);
    talk.call("read", &json!({}));
    good(&talk.end());
    let after = journal(&home(&place));
    assert_eq!(after[..before.len()], before);
    assert_eq!((after.len(), &after[before.len()]), (before.len() + 2, &before[0][..40].to_owned()));
    assert!(serde_json::from_str::<Value>(after.last().unwrap()).is_ok());
}

#[test]
fn two_recorders_share_a_journal() {
    const CALLS: usize = 10_000;
    let place = place();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut talk = shim(&place, &[SERVER]);
                for n in 0..CALLS {
                    talk.call("read", &json!({"n": n}));
                }
                good(&talk.end());
            });
        }
    });
    let records = records(&home(&place));
    assert_eq!(records.len(), 2 * CALLS);
    let mut seqs: Vec<u64> = records.iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    seqs.sort_unstable();
    assert!(seqs.iter().copied().eq((1..=CALLS as u64).flat_map(|n| [n, n])));
}

#[test]
fn what_cannot_be_started_is_a_sentence() {
    let place = place();
    let ended = shim(&place, &["no-such-command-here"]).end();
    assert_eq!(ended.status.code(), Some(3));
    assert!(ended.stderr.contains("command not found: no-such-command-here"), "{}", ended.stderr);
    for arguments in
        [&["shim", "--server", "a b", "--", "true"][..], &["shim", "--server", "a"], &["shim", "--", "true"]]
    {
        assert_eq!(place.run(arguments).code, Some(2), "{arguments:?}");
    }
    assert!(!home(&place).exists());
}
