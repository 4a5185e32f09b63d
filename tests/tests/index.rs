//! `mcpeval index`: what the journals say, in a database that survives whatever happens to it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpeval::store::Home;
use mcpeval::store::journal::Journal;
use mcpeval_tests::programs;
use mcpeval_tests::run::{PATIENCE, Place, Running};
use mcpeval_tests::traffic::{call, days_ago, failed, home, note, session, worked_example, write};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Kills of one command.
const KILLS: u64 = 12;

fn place(lines: &[Value]) -> (Place, Home) {
    let place = Place::new(programs!());
    let home = home(&place);
    write(&home, Journal::Calls, lines);
    (place, home)
}

fn good(place: &Place, arguments: &[&str]) -> String {
    let outcome = place.run(arguments);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    outcome.stdout
}

fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            found.extend(everything(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

fn number(home: &Home, query: &str) -> i64 {
    let reading = mcpeval::store::index::open(home).expect("an index").expect("an index");
    reading.connection.query_row(query, [], |row| row.get(0)).expect("a number")
}

/// Acceptance check 2, as far as it concerns `index` and `promote`.
#[test]
fn whatever_the_umask_all_is_the_owners_alone() {
    let (place, home) = place(&worked_example(2));
    for command in ["index", "index --rebuild", "promote"] {
        let mut shell = place.command("sh");
        shell.args(["-c", &format!("umask 000; exec {} {command}", programs!().mcpeval)]);
        assert_eq!(Running::start(shell).finish(PATIENCE).code, Some(0));
    }
    let all = everything(home.root());
    for name in ["index.db", "lifecycle.db", "index.lock"] {
        assert!(all.contains(&home.root().join(name)), "{name}: {all:?}");
    }
    for path in all {
        let mode = fs::metadata(&path).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
    place.assert_clean();
}

/// Acceptance check 12.
#[test]
fn the_second_run_reads_what_was_added_and_counts_the_same() {
    let lines = worked_example(2);
    let (place, home) = place(&lines);
    assert_eq!(good(&place, &["index"]), "indexed 25 calls, 6 failures, 0 annotations\n");
    assert_eq!(good(&place, &["index"]), "indexed 25 calls, 6 failures, 0 annotations\n");
    let replayed = "SELECT replayed_events FROM index_checkpoint";
    assert_eq!(number(&home, replayed), 25);
    // The same records once more, and one that is new: 26 lines more are read, and one record is.
    write(&home, Journal::Calls, &[lines, vec![failed(call(9, 9, 1, days_ago(1)), 7)]].concat());
    for _ in 0..2 {
        assert_eq!(good(&place, &["index"]), "indexed 26 calls, 7 failures, 0 annotations\n");
        assert_eq!(number(&home, replayed), 51);
    }
    assert_eq!(good(&place, &["index", "--rebuild"]), "indexed 26 calls, 7 failures, 0 annotations\n");
}

#[test]
fn a_line_that_is_no_record_is_counted_and_a_torn_one_waits() {
    let (place, home) = place(&[call(1, 1, 1, days_ago(0))]);
    let file = Journal::Calls.file(&home, call(1, 1, 1, days_ago(0))["ts"].as_str().expect("a moment"));
    let add = |bytes: &[u8]| {
        fs::File::options().append(true).open(&file).and_then(|mut file| file.write_all(bytes)).expect("a journal");
    };
    add(b"{\"torn\n\xff\xfe\n");
    add(&[vec![b'x'; 5 << 20], b"\n".to_vec()].concat());
    let whole = failed(call(1, 1, 2, days_ago(0)), 7).to_string();
    let (first, second) = whole.split_at(50);
    add(first.as_bytes());
    assert_eq!(good(&place, &["index"]), "indexed 1 calls, 0 failures, 0 annotations, skipped 3 lines\n");
    add(second.as_bytes());
    add(b"\n");
    assert_eq!(good(&place, &["index"]), "indexed 2 calls, 1 failures, 0 annotations, skipped 3 lines\n");
}

#[test]
fn a_contradiction_ends_it_with_the_place_and_the_old_index_answers() {
    let (place, home) = place(&worked_example(2));
    good(&place, &["index"]);
    good(&place, &["promote"]);
    let before = good(&place, &["findings", "--format", "json"]);
    assert!(before.contains("finding-"));
    let mut other = call(1, 1, 9, days_ago(0));
    other["server"] = json!("elsewhere");
    write(&home, Journal::Calls, &[other]);
    for options in [&["index"][..], &["index", "--rebuild"]] {
        let outcome = place.run(options);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""));
        assert!(
            outcome.stderr.contains(".jsonl:1: the capture") && outcome.stderr.lines().count() == 1,
            "{}",
            outcome.stderr
        );
    }
    assert_eq!(good(&place, &["findings", "--format", "json"]), before);
}

/// Acceptance check 13, for every command that writes the index.
#[test]
fn a_killed_writer_leaves_the_previous_answer() {
    let (place, home) = place(&worked_example(2));
    good(&place, &["index"]);
    good(&place, &["promote"]);
    let before = good(&place, &["findings", "--format", "json"]);
    let mut killed = 0;
    for round in 0..KILLS {
        for (n, options) in [&["index"][..], &["index", "--rebuild"]].iter().enumerate() {
            let capture = 100 + round * 2 + n as u64;
            let at = days_ago(0);
            let lines: Vec<Value> = (1..=400).map(|seq| failed(call(capture, capture, seq, at), 7)).collect();
            write(&home, Journal::Calls, &lines);
            let run = Running::start(place.mcpeval(*options));
            std::thread::sleep(Duration::from_millis(7 * round));
            run.signal(Signal::KILL);
            let outcome = run.finish(PATIENCE);
            killed += u64::from(outcome.signal.is_some());
            let files = || fs::read(home.index_db()).expect("an index");
            let (at_first, answer) = (files(), good(&place, &["findings", "--format", "json"]));
            assert_eq!(answer, before, "round {round}");
            assert!(files() == at_first, "a reader changed the index");
        }
    }
    assert!(killed >= KILLS / 2, "only {killed} runs were killed at work");
    let count = 25 + KILLS * 2 * 400;
    let expected = format!("indexed {count} calls, {} failures, 0 annotations\n", count - 19);
    assert_eq!(good(&place, &["index"]), expected);
    assert_eq!(good(&place, &["index", "--rebuild"]), expected);
    assert!(!home.root().join("index.db.new").exists());
    // Nothing of what time changes.
    let answer = || {
        let mut found: Vec<Value> =
            serde_json::from_str(&good(&place, &["findings", "--format", "json"])).expect("findings");
        for finding in &mut found {
            (finding["recency"], finding["score"], finding["severity"]) = (Value::Null, Value::Null, Value::Null);
        }
        found
    };
    let mut previous = answer();
    for round in 0..KILLS {
        let promote = ["promote", "--threshold", if round % 2 == 0 { "0.1" } else { "0.2" }];
        let run = Running::start(place.mcpeval(promote));
        std::thread::sleep(Duration::from_millis(7 * round));
        run.signal(Signal::KILL);
        run.finish(PATIENCE);
        let left = answer();
        assert_eq!(good(&place, &promote), "promoted 1 of 1 issues\n");
        let next = answer();
        assert_ne!(previous, next);
        assert!(left == previous || left == next, "neither the previous nor the next: {left:?}");
        previous = next;
    }
}

#[test]
fn two_at_the_same_time_wait_for_one_another() {
    let (place, _) = place(&worked_example(2));
    let runs: Vec<Running> = (0..4)
        .map(|n| {
            Running::start(place.mcpeval(["index"].iter().chain(if n % 2 == 0 { &[][..] } else { &["--rebuild"] })))
        })
        .collect();
    for run in runs {
        let outcome = run.finish(PATIENCE);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "indexed 25 calls, 6 failures, 0 annotations\n"));
    }
}

#[test]
fn a_damaged_or_future_database_is_made_anew_by_index_alone() {
    let (place, home) = place(&worked_example(2));
    good(&place, &["index"]);
    let good_one = fs::read(home.index_db()).expect("an index");
    let mut future = good_one.clone();
    // The version that the user gives, in the head of the file.
    future[60..64].copy_from_slice(&99_u32.to_be_bytes());
    for bytes in [future, good_one[..good_one.len() / 2].to_vec(), b"no database".repeat(500), Vec::new()] {
        fs::write(home.index_db(), &bytes).expect("a file");
        for command in ["findings", "promote"] {
            let outcome = place.run([command]);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{command}");
            assert!(outcome.stderr.contains("run mcpeval index, then mcpeval promote"), "{}", outcome.stderr);
            assert!(fs::read(home.index_db()).expect("a file") == bytes, "{command} changed it");
        }
        assert_eq!(good(&place, &["index"]), "indexed 25 calls, 6 failures, 0 annotations\n");
        assert_eq!(good(&place, &["promote"]), "promoted 1 of 1 issues\n");
    }
}

/// Acceptance check 19, as far as it concerns the journals.
#[test]
fn journals_of_an_older_version_are_read_in_place_and_no_number_of_theirs_comes_out() {
    let place = Place::new(programs!());
    let home = home(&place);
    fs::create_dir_all(home.store()).expect("a folder");
    let error = json!({"code": -32001, "template": "{message}", "template_id": "9f21c07ab3d4e58c"});
    let lines: String = (1..=6)
        .flat_map(|n| [(n, 1), (n, 2)])
        .map(|(n, seq)| {
            // No identity, no kind, an unsalted session, numbers and keys as they were.
            let line = json!({
                "ts": "2026-11-15T09:30:00.250Z", "session": session(n), "seq": seq, "server": "files",
                "method": "tools/call", "tool": "read_doc", "latency_ms": 12,
                "args": {"phone": "num:4915112345678", "a@b.example": "bool:true"},
                "outcome": if seq == 2 { "error" } else { "ok" },
                "error": if seq == 2 { error.clone() } else { Value::Null },
                "shim_self_us": 60
            });
            [line.to_string(), "\n".to_owned()].concat()
        })
        .collect();
    let file = home.store().join("calls-2026-11-15.jsonl");
    fs::write(&file, &lines).expect("a journal");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
    fs::write(home.index_db(), "").expect("an empty index");
    let outcome = place.run(["findings"]);
    assert!(outcome.code == Some(3) && outcome.stderr.contains("mcpeval index"), "{}", outcome.stderr);
    assert_eq!(good(&place, &["index"]), "indexed 12 calls, 6 failures, 0 annotations\n");
    good(&place, &["promote", "--threshold", "0.01"]);
    let found = good(&place, &["findings", "--format", "json"]);
    let findings: Value = serde_json::from_str(&found).expect("findings");
    let id = mcpeval::store::hash::finding("files", "read_doc", "9f21c07ab3d4e58c");
    assert_eq!((&findings[0]["finding_id"], &findings[0]["cost"]), (&json!(id), &json!(2.0)));
    assert_eq!(findings[0]["repro"], json!({"phone": "int", "key#1": "bool:true"}));
    assert_eq!(fs::read_to_string(&file).expect("a journal"), lines, "journals are never rewritten");
    for path in everything(home.root()).iter().filter(|path| path.is_file() && **path != file) {
        let bytes = fs::read(path).expect("a file");
        let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!holds("4915112345678") && !holds("a@b.example"), "{}", path.display());
    }
}

#[test]
fn annotations_are_counted_with_their_calls() {
    let (place, home) = place(&worked_example(2));
    write(&home, Journal::Annotations, &[note(&mcpeval_tests::traffic::event(1, 2), "workaround")]);
    assert_eq!(good(&place, &["index"]), "indexed 25 calls, 6 failures, 1 annotations\n");
    assert_eq!(number(&home, "SELECT count(call_id) FROM annotations"), 1);
}

#[test]
fn a_journal_that_cannot_be_read_is_named() {
    let (place, home) = place(&worked_example(2));
    good(&place, &["index"]);
    // A folder in the place of a file is no journal; a file in the place of the folder is a fault.
    fs::create_dir(home.store().join("calls-2027-01-15.jsonl")).expect("a folder");
    assert_eq!(good(&place, &["index"]), "indexed 25 calls, 6 failures, 0 annotations\n");
    fs::rename(home.store(), home.root().join("away")).expect("a folder");
    fs::write(home.store(), "").expect("a file");
    let outcome = place.run(["index"]);
    assert!(outcome.code == Some(3) && outcome.stderr.contains("store"), "{}", outcome.stderr);
}
