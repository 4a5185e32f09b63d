//! Homes that are full, read-only, of another time, of strangers, or of a version to come: traffic flows on, whole lines
//! stay, every refusal is one sentence, and what is not understood is left as it is.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use jiff::Timestamp;
use mcpeval::store::Home;
use mcpeval::store::journal::{self, Journal};
use mcpeval::store::record::Record;
use mcpeval_tests::client::Client;
use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use mcpeval_tests::traffic::{call, days_ago, failed, home, worked_example, write};
use serde_json::{Value, json};

/// Calls of one session, many more than a small disk can take.
const CALLS: usize = 400;

fn good(place: &Place, arguments: &[&str]) -> String {
    let outcome = place.run(arguments);
    assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.stderr);
    outcome.stdout
}

/// It failed with that code, and said why in one line that holds that.
fn assert_refused(outcome: &Outcome, code: i32, told: &str) {
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(code), ""), "{}", outcome.stderr);
    let lines = outcome.stderr.lines().count();
    assert!(lines == 1 && outcome.stderr.contains(told), "{told} is not in {}", outcome.stderr);
}

/// A file with a session of many calls, and how many of its lines are answered.
fn requests(place: &Place) -> (String, usize) {
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "tests", "version": "1.0.0"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    for id in 0..CALLS {
        let params = json!({"name": "find_item", "arguments": {"query": "tea"}});
        lines.push(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    (place.file("requests", text).display().to_string(), CALLS + 1)
}

/// Runs a script in a shell, with the program as `$mcpeval`, the good server as `$server` and the home as `$home`.
fn script(place: &Place, shell: &[&str], text: &str) -> Outcome {
    let mut command: Command = place.command(shell[0]);
    command.args(&shell[1..]).args(["sh", "-c", text]).env("mcpeval", programs!().mcpeval);
    command.env("server", programs!().server).env("home", home(place).root());
    Running::start(command).finish(PATIENCE)
}

/// Whole lines of the text that are records; fails if another line is among them.
fn whole(text: &str) -> usize {
    assert!(text.is_empty() || text.ends_with('\n'), "half a line at the end of {text}");
    for line in text.lines() {
        assert!(Record::read(line.as_bytes()).is_some(), "no record: {line}");
    }
    text.lines().count()
}

/// A limit on the size of files stands in for a full disk wherever nobody may mount one.
#[test]
fn traffic_flows_on_when_files_cannot_grow() {
    let place = Place::new(programs!());
    let (requests, answered) = requests(&place);
    let text = format!(
        "trap '' XFSZ; ulimit -f 16; \"$mcpeval\" shim --server shop -- \"$server\" good < {requests} | wc -l; \
         cat \"$home\"/store/*.jsonl >&2"
    );
    // The journal follows on standard error, after what the recorder itself says there.
    let outcome = script(&place, &["env"], &text);
    assert_eq!(outcome.stdout.trim(), answered.to_string(), "{}", outcome.stderr);
    let (told, lines): (Vec<&str>, Vec<&str>) = outcome.stderr.lines().partition(|line| !line.starts_with('{'));
    let kept = whole(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    assert!(kept > 10 && kept < answered, "{kept} of {answered}");
    assert!(
        told.iter().any(|line| line.contains(&(answered - kept).to_string())),
        "what was lost is counted: {told:?}"
    );
    // A session later all is well again, and nothing of what was kept is lost.
    let mut client = Client::start(place.mcpeval(["shim", "--server", "shop", "--", programs!().server, "good"]));
    client.greet();
    assert_eq!(client.finish().code, Some(0));
    assert_eq!(good(&place, &["index"]), format!("indexed {} calls, 0 failures, 0 annotations\n", kept + 2));
    place.assert_clean();
}

/// A disk of 64 KiB in a mount namespace of its own.
#[test]
fn traffic_flows_on_when_the_disk_is_full() {
    let place = Place::new(programs!());
    let namespace = ["unshare", "--user", "--map-root-user", "--mount"];
    if !script(&place, &namespace, "true").code.is_some_and(|code| code == 0) {
        Real::skipped("a disk of 64 KiB: this machine gives no user namespace");
        return;
    }
    let (requests, answered) = requests(&place);
    fs::create_dir(home(&place).root()).expect("a folder");
    let text = format!(
        "mount -t tmpfs -o size=64k,mode=700 none \"$home\" || exit 9
         \"$mcpeval\" shim --server shop -- \"$server\" good < {requests} > answers; echo shim $?
         cat \"$home\"/store/*.jsonl > kept
         \"$mcpeval\" index; echo index $?
         \"$mcpeval\" findings --format json; echo findings $?
         \"$mcpeval\" annotate --session s --seq 1 --kind workaround --note ''; echo annotate $?
         mount -o remount,size=4m \"$home\" || exit 9
         \"$mcpeval\" index; echo index $?
         cat \"$home\"/store/*.jsonl | cmp - kept && echo the same"
    );
    let outcome = script(&place, &namespace, &text);
    let read = |name: &str| fs::read_to_string(place.path().join(name)).expect("a file");
    let kept = whole(&read("kept"));
    assert_eq!(read("answers").lines().count(), answered, "{}", outcome.stderr);
    assert!(kept > 10 && kept < answered, "{kept} of {answered}");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let indexed = format!("indexed {kept} calls, 0 failures, 0 annotations");
    let wanted = ["shim 0", "index 3", "[]", "findings 0", "annotate 3", &indexed, "index 0", "the same"];
    assert_eq!(lines, wanted, "{}", outcome.stderr);
    assert!(outcome.stderr.contains(&(answered - kept).to_string()), "what was lost is counted: {}", outcome.stderr);
}

/// Whoever only reads needs no right to write.
#[test]
fn a_read_only_home_can_be_read() {
    let place = Place::new(programs!());
    let namespace = ["unshare", "--user", "--map-root-user", "--mount"];
    if !script(&place, &namespace, "true").code.is_some_and(|code| code == 0) {
        Real::skipped("a read-only home: this machine gives no user namespace");
        return;
    }
    let home = home(&place);
    write(&home, Journal::Calls, &worked_example(2));
    good(&place, &["index"]);
    good(&place, &["promote"]);
    let found = good(&place, &["findings", "--format", "json"]);
    let (requests, answered) = requests(&place);
    let text = format!(
        "mount --bind \"$home\" \"$home\" && mount -o remount,bind,ro \"$home\" || exit 9
         \"$mcpeval\" findings --format json || exit 8
         \"$mcpeval\" trends --format json >&2 || exit 7
         \"$mcpeval\" doctor >&2 || exit 6
         \"$mcpeval\" share --dir envelope >&2 || exit 5
         \"$mcpeval\" shim --server shop -- \"$server\" good < {requests} > answers || exit 4
         for command in index promote 'annotate --session s --seq 1 --kind workaround --note x'; do
           \"$mcpeval\" $command; test $? = 3 || exit 2
         done"
    );
    let outcome = script(&place, &namespace, &text);
    assert_eq!((outcome.code, outcome.stdout), (Some(0), found), "{}", outcome.stderr);
    let answers = fs::read_to_string(place.path().join("answers")).expect("answers");
    assert_eq!(answers.lines().count(), answered);
}

/// A home that nobody can make is no reason to hold up traffic, and for everybody else a clear refusal.
#[test]
fn a_home_that_cannot_be_made_is_refused_but_by_recorders() {
    let place = Place::new(programs!());
    let nowhere = place.file("taken", "a file").join("home").display().to_string();
    let mut command = place.mcpeval(["shim", "--server", "shop", "--", programs!().server, "good"]);
    command.env("MCPEVAL_HOME", &nowhere);
    let mut client = Client::start(command);
    client.greet();
    assert!(client.call("find_item", &json!({"query": "tea"})).is_some());
    let ended = client.finish();
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("taken"), "it says why nothing is recorded: {}", ended.stderr);
    for arguments in [
        &["index"][..],
        &["promote"],
        &["annotate", "--session", "s", "--seq", "1", "--kind", "workaround", "--note", "x"],
        &["share", "--dir", "envelope"],
    ] {
        let mut command = place.mcpeval(arguments);
        command.env("MCPEVAL_HOME", &nowhere);
        let outcome = Running::start(command).finish(PATIENCE);
        assert!(matches!(outcome.code, Some(2 | 3)), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("taken") && outcome.stderr.lines().count() == 1, "{}", outcome.stderr);
    }
}

/// Clocks that stand at the beginning or the end of time, run backwards, and write leap seconds.
#[test]
fn a_jumping_clock_makes_no_finding_wrong() {
    let place = Place::new(programs!());
    let home = home(&place);
    let moments = [
        "1970-01-01T00:00:00.000Z",
        "9999-12-30T21:59:59.999Z",
        "2016-12-31T23:59:60.000Z",
        "2100-02-28T12:00:00.000Z",
        "2000-02-29T00:00:00.000+14:00",
        "0001-01-01T00:00:00.000Z",
    ];
    let mut lines = Vec::new();
    for (capture, ts) in (1..).zip(moments) {
        for (seq, ts) in (1..).zip([ts, "2020-06-01T00:00:00.000Z", ts]) {
            let mut line = failed(call(capture, capture, seq, days_ago(1)), -32_001);
            line["ts"] = ts.into();
            lines.push(line);
        }
    }
    write(&home, Journal::Calls, &lines);
    assert_eq!(good(&place, &["index"]), "indexed 18 calls, 18 failures, 0 annotations\n");
    assert_eq!(good(&place, &["promote"]), "promoted 1 of 1 issues\n");
    let found: Value = serde_json::from_str(&good(&place, &["findings", "--format", "json"])).expect("findings");
    assert_eq!(found[0]["recency"], json!(1.0), "what fails in the future fails now: {found}");
    let newest: Timestamp = found[0]["last_seen"].as_str().and_then(|ts| ts.parse().ok()).expect("a moment");
    assert_eq!(newest, moments[1].parse().expect("a moment"));
    for moment in ["", "yesterday", "2020-06-01", "2020-13-01T00:00:00Z", "99999-01-01T00:00:00Z"] {
        let mut line = call(90, 90, 1, days_ago(0));
        line["ts"] = moment.into();
        fs::write(home.store().join("calls-2020-06-02.jsonl"), format!("{line}\n")).expect("a journal");
        assert!(good(&place, &["index"]).ends_with("skipped 1 lines\n"), "{moment}");
    }
    let mut command = place.mcpeval(["shim", "--server", "shop", "--", programs!().server, "good"]);
    command.env("TZ", "Pacific/Kiritimati");
    let mut client = Client::start(command);
    client.greet();
    client.finish();
    let days: Vec<String> = journal::files(&home, Journal::Calls)
        .expect("a store")
        .iter()
        .map(|file| file.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    let today = |moment: Timestamp| moment.strftime("calls-%Y-%m-%d.jsonl").to_string();
    let now = Timestamp::now();
    let an_hour_ago = now - jiff::SignedDuration::from_hours(1);
    assert!(days.contains(&today(now)) || days.contains(&today(an_hour_ago)), "the day is that of UTC: {days:?}");
}

/// Whatever lies in the folder of the journals.
#[test]
fn strangers_in_the_store_are_passed_over() {
    let place = Place::new(programs!());
    let home = home(&place);
    write(&home, Journal::Calls, &worked_example(2));
    let store = home.store();
    let mut foreign = Vec::new();
    for line in [
        &b"[]"[..],
        b"7",
        b"\"a text\"",
        b"null",
        b"{}",
        b"{\"ts\":1}",
        b"\xff\xfe\x00",
        b"",
        b"{\"identity\":{\"capture_id\":\"x\",\"event_id\":\"y\"}}",
        &b"[".repeat(100_000),
        &[b"{\"a\":\"", vec![b'x'; 5 << 20].as_slice(), b"\"}"].concat(),
    ] {
        foreign.extend_from_slice(line);
        foreign.push(b'\n');
    }
    fs::write(store.join("calls-2020-01-01.jsonl"), &foreign).expect("a journal");
    fs::write(store.join("calls-2020-01-02.jsonl"), &call(50, 50, 1, days_ago(0)).to_string()[..80])
        .expect("a journal");
    fs::write(store.join("notes.txt"), "not a journal").expect("a file");
    symlink("/dev/zero", store.join("calls-2020-01-03.jsonl")).expect("a link");
    symlink(store.join("calls-2020-01-05.jsonl"), store.join("calls-2020-01-05.jsonl")).expect("a link");
    fs::create_dir(store.join("calls-2020-01-04.jsonl")).expect("a folder");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let pipe = store.join("calls-2020-01-06.jsonl");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).expect("a named pipe");
    let indexed = good(&place, &["index"]);
    assert!(indexed.starts_with("indexed 25 calls, 6 failures, 0 annotations, skipped 1"), "{indexed}");
    assert_eq!(good(&place, &["index", "--rebuild"]), indexed);
    assert_eq!(good(&place, &["promote"]), "promoted 1 of 1 issues\n");
    let doctor = place.run(["doctor"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.stderr);
    for file in
        ["calls-2020-01-01.jsonl:1 ", "calls-2020-01-02.jsonl", "calls-2020-01-03.jsonl", "calls-2020-01-05.jsonl"]
    {
        assert!(doctor.stdout.contains(file), "{file} is not in {}", doctor.stdout);
    }
    assert!(!doctor.stdout.contains("a text"), "{}", doctor.stdout);
    let envelope = place.path().join("envelope");
    let shared = place.run(["share", "--dir", &envelope.display().to_string()]);
    assert_eq!(shared.code, Some(0), "{}", shared.stderr);
    for file in
        fs::read_dir(envelope.join("store")).or_else(|_| fs::read_dir(&envelope)).expect("an envelope").flatten()
    {
        assert!(file.file_type().is_ok_and(|kind| !kind.is_symlink()), "{:?}", file.path());
        assert!(file.file_name() != "notes.txt");
    }
}

/// What a command says of a home whose file is not of this version.
fn with_lifecycle(bytes: impl Fn(Vec<u8>) -> Vec<u8>, told: &str) {
    let place = Place::new(programs!());
    let home: Home = home(&place);
    write(&home, Journal::Calls, &worked_example(2));
    good(&place, &["index"]);
    good(&place, &["promote"]);
    let found: Value = serde_json::from_str(&good(&place, &["findings", "--format", "json"])).expect("findings");
    let id = found[0]["finding_id"].as_str().expect("an id").to_owned();
    let changed = bytes(fs::read(home.lifecycle_db()).expect("states"));
    fs::write(home.lifecycle_db(), &changed).expect("a file");
    let manifest = place.path().join("generated.json").display().to_string();
    let issues = place.path().join("issues").display().to_string();
    for arguments in [
        &["promote"][..],
        &["findings"],
        &["generate", "--finding", &id, "--output", &manifest, "--confirm-read-only"],
        &["export-issues", "--dir", &issues],
        &["verify", "--finding", &id, "--case", &id, "--", programs!().server, "good"],
    ] {
        let outcome = place.run(arguments);
        // Without a manifest, verify may be refused for that.
        let codes: &[i32] = if arguments[0] == "verify" { &[2, 3] } else { &[3] };
        assert!(outcome.code.is_some_and(|code| codes.contains(&code)), "{arguments:?}: {}", outcome.stderr);
        if outcome.code == Some(3) {
            assert_refused(&outcome, 3, told);
        }
        assert!(fs::read(home.lifecycle_db()).expect("states") == changed, "{arguments:?} changed it");
    }
    assert!(!place.path().join("generated.json").exists());
}

#[test]
fn states_of_a_version_to_come_are_left_as_they_are() {
    with_lifecycle(
        |mut bytes| {
            bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
            bytes
        },
        "of version 99",
    );
}

#[test]
fn damaged_states_are_left_as_they_are() {
    with_lifecycle(|bytes| b"no database at all".iter().copied().cycle().take(bytes.len()).collect(), "lifecycle.db");
}

#[test]
fn a_cache_of_a_version_to_come_is_made_anew() {
    let place = Place::new(programs!());
    let home = home(&place);
    home.prepare().expect("a home");
    let point = |score: u64, ts: &str| {
        json!({"ts": ts, "server": "shop", "kind": "score", "passed": true, "cases_total": 1, "cases_passed": 1,
            "score": score, "standard": "mcpeval-standard/3"})
    };
    let points = [point(70, "2027-01-14T09:30:00.250Z"), point(90, "2027-01-15T09:30:00.250Z")];
    fs::write(home.history(), points.map(|point| format!("{point}\n")).concat()).expect("a journal");
    let wanted = good(&place, &["trends", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&wanted).expect("JSON")["points"].as_array().map(Vec::len), Some(2));
    for bytes in [&b"no database"[..], &[0; 4096], b""] {
        fs::write(home.trends_db(), bytes).expect("a file");
        assert_eq!(good(&place, &["trends", "--format", "json"]), wanted);
    }
}
