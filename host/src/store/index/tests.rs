use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::*;

const DAY: &str = "2027-01-15";

fn home() -> (tempfile::TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    home.prepare().unwrap();
    (folder, home)
}

fn uuid(n: u64) -> String {
    format!("00000000-0000-4000-8000-{n:012x}")
}

/// A record with identity; capture and number make its event.
fn record(capture: u64, seq: u64, outcome: &str) -> Value {
    let mut record = json!({
        "identity": {"capture_id": uuid(capture), "event_id": uuid(capture * 1_000 + seq)},
        "ts": format!("{DAY}T09:30:{:02}.250Z", seq % 60), "session": format!("session:{capture:064x}"), "seq": seq,
        "server": "files", "method": "tools/call", "tool": "read_doc", "args": {"path": "str<32"}, "latency_ms": 41,
        "outcome": outcome, "kind": "real"
    });
    if outcome == "error" {
        record["error"] = json!({"code": -32001, "template": "{message}", "template_id": "9f21c07ab3d4e58c"});
    }
    record
}

fn with(mut record: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        *record.pointer_mut(pointer).unwrap() = value.clone();
    }
    record
}

fn unidentified(session: u64, seq: u64, outcome: &str) -> Value {
    let mut record = record(session, seq, outcome);
    record.as_object_mut().unwrap().remove("identity");
    record
}

fn write(home: &Home, file: &str, text: &str) {
    let path = home.store().join(format!("{file}-{DAY}.jsonl"));
    fs::File::options().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn calls(home: &Home, records: &[Value]) {
    write(home, "calls", &records.iter().flat_map(|record| [record.to_string(), "\n".to_owned()]).collect::<String>());
}

fn counted(calls: u64, failures: u64, annotations: u64, skipped: u64) -> Counts {
    Counts { calls, failures, annotations, skipped }
}

/// Capture or session, number and offset of every neighbour of a failure.
fn windows(home: &Home) -> Vec<(String, i64, i64)> {
    let reading = open(home).unwrap().unwrap();
    let query = "SELECT coalesce(f.capture_id, f.session), f.seq, w.offset FROM windows w \
                 JOIN calls f ON f.id = w.failure_id \
                 JOIN calls n ON n.id = w.neighbour_id AND n.seq = f.seq + w.offset AND n.session = f.session \
                 ORDER BY 1, 2, 3";
    let mut statement = reading.connection.prepare(query).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn number(home: &Home, query: &str) -> i64 {
    open(home).unwrap().unwrap().connection.query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn records_count_once_and_only_new_ones_are_read() {
    let (_folder, home) = home();
    assert_eq!(index(&home, false).unwrap(), counted(0, 0, 0, 0));
    calls(&home, &[record(1, 1, "ok"), record(1, 2, "error")]);
    assert_eq!(index(&home, false).unwrap(), counted(2, 1, 0, 0));
    assert_eq!(index(&home, false).unwrap(), counted(2, 1, 0, 0));
    calls(&home, &[record(1, 2, "error"), record(1, 3, "error")]);
    assert_eq!(index(&home, false).unwrap(), counted(3, 2, 0, 0));
    // Four and not six: the two of the first time were not read again.
    assert_eq!(number(&home, "SELECT replayed_events FROM index_checkpoint"), 4);
    assert_eq!(index(&home, true).unwrap(), counted(3, 2, 0, 0));
    assert_eq!(fs::metadata(home.index_db()).unwrap().permissions().mode() & 0o777, 0o600);
    let left: Vec<_> = fs::read_dir(home.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| ["index.db", "index.lock", "store"].iter().any(|known| name == known)), "{left:?}");
}

#[test]
fn a_rewritten_shortened_or_missing_journal_is_read_anew() {
    let (_folder, home) = home();
    calls(&home, &[record(1, 1, "ok"), record(1, 2, "error")]);
    write(&home, "annotations", "");
    index(&home, false).unwrap();
    let path = home.store().join(format!("calls-{DAY}.jsonl"));
    fs::write(&path, format!("{}\n", record(1, 1, "error"))).unwrap();
    assert_eq!(index(&home, false).unwrap(), counted(1, 1, 0, 0));
    fs::rename(&path, home.store().join("calls-2027-01-16.jsonl")).unwrap();
    assert_eq!(index(&home, false).unwrap(), counted(1, 1, 0, 0));
    fs::remove_file(home.store().join("calls-2027-01-16.jsonl")).unwrap();
    assert_eq!(index(&home, false).unwrap(), counted(0, 0, 0, 0));
}

#[test]
fn contradictions_stop_it_and_leave_the_old_index() {
    for (records, told) in [
        (vec![with(record(1, 1, "ok"), &[("/latency_ms", json!(42))])], "stands in the journals with other content"),
        (
            vec![with(record(1, 9, "ok"), &[("/session", json!(format!("session:{}", "f".repeat(64))))])],
            "of another session",
        ),
        (vec![with(record(1, 9, "ok"), &[("/server", json!("other"))])], "of another session or server"),
        (vec![with(record(1, 1, "ok"), &[("/identity/event_id", json!(uuid(77)))])], "has the number 1"),
    ] {
        for rebuild in [false, true] {
            let (_folder, home) = home();
            calls(&home, &[record(1, 1, "ok"), record(1, 2, "error")]);
            let before = index(&home, false).unwrap();
            calls(&home, &[record(1, 3, "ok")]);
            calls(&home, &records);
            let error = index(&home, rebuild).unwrap_err();
            let text = error.to_string();
            assert!(error.exit_code() == 3 && text.contains(told) && text.contains("jsonl:4: "), "{text}");
            assert_eq!(number(&home, "SELECT count(*) FROM calls"), 2);
            assert!(!home.root().join("index.db.new").exists());
            let path = home.store().join(format!("calls-{DAY}.jsonl"));
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.split_inclusive('\n').take(2).collect::<String>()).unwrap();
            assert_eq!(index(&home, rebuild).unwrap(), before);
        }
    }
}

#[test]
fn torn_bad_and_foreign_lines_are_skipped_and_counted() {
    let (_folder, home) = home();
    calls(&home, &[record(1, 1, "ok")]);
    write(&home, "calls", "{\"torn\": \n\nnot json\n[]\n{}\n\u{0}\n");
    write(&home, "annotations", "no annotation\n");
    calls(&home, &[record(1, 2, "error")]);
    write(&home, "calls", "{\"at\": \"work");
    assert_eq!(index(&home, false).unwrap(), counted(2, 1, 0, 7));
    assert_eq!(index(&home, false).unwrap(), counted(2, 1, 0, 7));
    write(&home, "calls", "\"}\n");
    assert_eq!(index(&home, false).unwrap(), counted(2, 1, 0, 8));
    assert_eq!(index(&home, true).unwrap(), counted(2, 1, 0, 8));
}

#[test]
fn a_line_of_five_mebibytes_is_skipped() {
    let (_folder, home) = home();
    calls(&home, &[record(1, 1, "ok")]);
    write(&home, "calls", &format!("{}\n", "x".repeat(5 << 20)));
    calls(&home, &[record(1, 2, "ok")]);
    assert_eq!(index(&home, false).unwrap(), counted(2, 0, 0, 1));
}

#[test]
fn a_window_reaches_from_five_before_to_three_after_of_any_method() {
    let (_folder, home) = home();
    let mut records: Vec<Value> = (1..=12).map(|seq| record(1, seq, if seq == 7 { "error" } else { "ok" })).collect();
    records[5]["method"] = json!("resources/read");
    records.push(record(2, 7, "ok"));
    calls(&home, &records);
    index(&home, false).unwrap();
    let around = |of: &[i64]| of.iter().map(|offset| (uuid(1), 7, *offset)).collect::<Vec<_>>();
    assert_eq!(windows(&home), around(&[-5, -4, -3, -2, -1, 1, 2, 3]));
}

#[test]
fn windows_are_the_same_however_the_records_arrived() {
    let captures = 1..=3_u64;
    let all: Vec<Value> = captures
        .flat_map(|capture| {
            (1..=20).map(move |seq| record(capture, seq, if (seq + capture) % 4 == 0 { "error" } else { "ok" }))
        })
        .chain((1..=9).map(|seq| unidentified(9, seq, if seq % 3 == 0 { "error" } else { "ok" })))
        .collect();
    let (_folder, at_once) = home();
    calls(&at_once, &all);
    index(&at_once, false).unwrap();
    let expected = windows(&at_once);
    assert!(expected.len() > 80);
    for pieces in [1, 7] {
        let (_folder, piecemeal) = home();
        // Later ones first, so that neighbours come on both sides of what is there.
        for piece in all.rchunks(pieces) {
            calls(&piecemeal, piece);
            index(&piecemeal, false).unwrap();
        }
        assert_eq!(windows(&piecemeal), expected);
    }
}

#[test]
fn sessions_without_identities_have_windows_until_a_number_repeats() {
    let (_folder, home) = home();
    calls(
        &home,
        &[unidentified(1, 1, "ok"), unidentified(1, 2, "error"), unidentified(2, 1, "ok"), unidentified(2, 2, "error")],
    );
    assert_eq!(index(&home, false).unwrap(), counted(4, 2, 0, 0));
    let of = |session: u64| (format!("session:{session:064x}"), 2, -1);
    assert_eq!(windows(&home), [of(1), of(2)]);
    calls(&home, &[with(unidentified(1, 1, "ok"), &[("/server", json!("other"))])]);
    index(&home, false).unwrap();
    assert_eq!(windows(&home), [of(1), of(2)]);
    calls(&home, &[unidentified(1, 1, "ok")]);
    assert_eq!(index(&home, false).unwrap(), counted(6, 2, 0, 0));
    assert_eq!(windows(&home), [of(2)]);
    index(&home, true).unwrap();
    assert_eq!(windows(&home), [of(2)]);
}

#[test]
fn annotations_name_calls_that_may_come_later_and_only_one() {
    let (_folder, home) = home();
    let note = |place: Value| {
        let mut note = json!({"ts": format!("{DAY}T10:00:00.000Z"), "kind": "workaround", "note": "by hand"});
        note.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        format!("{note}\n")
    };
    let session = format!("session:{:064x}", 2);
    write(&home, "annotations", &note(json!({"event_id": uuid(1_002).to_uppercase()})));
    write(&home, "annotations", &note(json!({"session": session, "seq": 1})));
    assert_eq!(index(&home, false).unwrap(), counted(0, 0, 2, 0));
    let named = "SELECT count(call_id) FROM annotations";
    assert_eq!(number(&home, named), 0);
    calls(&home, &[record(1, 2, "ok"), unidentified(2, 1, "ok")]);
    index(&home, false).unwrap();
    assert_eq!(number(&home, named), 2);
    calls(&home, &[unidentified(2, 1, "error")]);
    index(&home, false).unwrap();
    assert_eq!(number(&home, named), 1);
}

/// What readers say, and the change that makes them say it.
type Change<'a> = (&'a str, &'a dyn Fn(&Path));

#[test]
fn what_is_no_index_is_made_anew_and_readers_name_the_command() {
    let (_folder, home) = home();
    calls(&home, &[record(1, 1, "error")]);
    let future = |connection: &Connection| connection.pragma_update(None, "user_version", 99).unwrap();
    let changes: [Change<'_>; 5] = [
        ("not a database", &|path| fs::write(path, "no database at all".repeat(999)).unwrap()),
        ("not whole", &|path| fs::write(path, "").unwrap()),
        ("another version", &|path| future(&Connection::open(path).unwrap())),
        ("malformed", &|path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[100..].fill(0xa5);
            fs::write(path, bytes).unwrap();
        }),
        ("not whole", &|path| Connection::open(path).unwrap().execute_batch("DELETE FROM index_checkpoint").unwrap()),
    ];
    for (told, change) in changes {
        index(&home, false).unwrap();
        change(&home.index_db());
        let before = fs::read(home.index_db()).unwrap();
        let text = open(&home).unwrap_err().to_string();
        assert!(text.contains(told) && text.contains("run mcpeval index, then mcpeval promote"), "{text}");
        assert!(fs::read(home.index_db()).unwrap() == before, "a reader changed it");
        assert_eq!(index(&home, false).unwrap(), counted(1, 1, 0, 0), "{told}");
        assert!(open(&home).unwrap().is_some());
    }
}

#[test]
fn a_damage_that_shows_late_is_repaired_too() {
    let (_folder, home) = home();
    let records: Vec<Value> = (1..=2_000).map(|seq| record(1, seq, "ok")).collect();
    calls(&home, &records);
    index(&home, false).unwrap();
    let mut bytes = fs::read(home.index_db()).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    fs::write(home.index_db(), bytes).unwrap();
    calls(&home, &[record(1, 2_001, "error")]);
    assert_eq!(index(&home, false).unwrap(), counted(2_001, 1, 0, 0));
}

#[test]
fn a_link_in_its_place_is_told_and_left() {
    let (folder, home) = home();
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, "kept").unwrap();
    std::os::unix::fs::symlink(&elsewhere, home.index_db()).unwrap();
    for rebuild in [false, true] {
        assert!(index(&home, rebuild).unwrap_err().to_string().contains("symbolic link"));
    }
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "kept");
}

#[test]
fn what_a_killed_writer_left_never_meets_the_new_index() {
    let (_folder, home) = home();
    calls(&home, &[record(1, 1, "ok")]);
    index(&home, false).unwrap();
    // A writer in the middle of a transaction that has reached the file, and its journal.
    let connection = Connection::open(home.index_db()).unwrap();
    let many = "INSERT INTO annotations (ts, kind, note) \
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
                SELECT '', '', hex(randomblob(50)) FROM n;";
    connection.execute_batch(&["PRAGMA cache_size = 2; BEGIN;", many].concat()).unwrap();
    let left = |name: &str| {
        let other = Home::at(home.root().join(name));
        other.prepare().unwrap();
        let journal = format!("store/calls-{DAY}.jsonl");
        for file in ["index.db", "index.db-journal", &journal] {
            fs::copy(home.root().join(file), other.root().join(file)).unwrap();
        }
        assert!(fs::metadata(other.index_db()).unwrap().len() > 1 << 20, "the writer had begun to write");
        fs::write(other.root().join("index.db.new"), "half").unwrap();
        calls(&other, &[record(1, 2, "error")]);
        other
    };
    for rebuild in [false, true] {
        let other = left(&rebuild.to_string());
        assert_eq!(index(&other, rebuild).unwrap(), counted(2, 1, 0, 0));
        assert!(!other.root().join("index.db-journal").exists());
        let reading = open(&other).unwrap().unwrap();
        let whole: String = reading.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok");
    }
    let other = left("promoted");
    drop(Evidence::take(&other).unwrap().rewrite().unwrap());
    assert_eq!(number(&other, "SELECT count(*) FROM annotations"), 0);
    assert!(!other.root().join("index.db-journal").exists());
}

#[test]
fn findings_of_the_last_promotion_stay_over_a_rebuild() {
    let (_folder, home) = home();
    calls(&home, &[record(1, 1, "error")]);
    index(&home, false).unwrap();
    let issue = Issue {
        finding_id: "finding-0123456789abcdef".to_owned(),
        server: "files".to_owned(),
        tool: "read_doc".to_owned(),
        err_code: "-32001".to_owned(),
        err_codes: vec!["-32001".to_owned()],
        err_template_id: "9f21c07ab3d4e58c".to_owned(),
        class: "recurring-error".to_owned(),
        failures: 1,
        calls: 1,
        sessions: 1,
        last_seen: format!("{DAY}T09:30:01.250Z"),
        cost: 1.0,
        blast: 1,
        rate: 1.0,
        confidence: 0.2,
        recency: 1.0,
        score: 0.25,
        threshold: 0.1,
        severity: "low".to_owned(),
        args: None,
        retryable: Some(false),
    };
    let mut evidence = Evidence::take(&home).unwrap();
    let rewriting = evidence.rewrite().unwrap();
    rewriting.add(&issue, true).unwrap();
    rewriting.add(&Issue { finding_id: "finding-1123456789abcdef".to_owned(), ..issue.clone() }, false).unwrap();
    rewriting.commit().unwrap();
    drop(evidence);
    assert_eq!(issues(&home).unwrap(), std::slice::from_ref(&issue));
    index(&home, true).unwrap();
    assert_eq!(issues(&home).unwrap(), std::slice::from_ref(&issue));
    // Not committed, it has not happened.
    let mut evidence = Evidence::take(&home).unwrap();
    drop(evidence.rewrite().unwrap());
    assert_eq!(issues(&home).unwrap(), [issue]);
}

#[test]
fn without_an_index_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    assert!(open(&home).unwrap().is_none() && issues(&home).unwrap().is_empty());
    assert!(Evidence::take(&home).unwrap_err().to_string().contains("run mcpeval index first"));
    assert!(!home.root().exists());
}
