use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rusqlite::Connection;

use super::*;

const ID: &str = "finding-0123456789abcdef";

struct Place {
    _folder: tempfile::TempDir,
    home: Home,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    home.prepare().unwrap();
    Place { _folder: folder, home }
}

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + 60 * minute).unwrap()
}

fn found(minute: i64) -> Found {
    Found {
        finding_id: ID.to_owned(),
        server: "files".to_owned(),
        tool: "read_doc".to_owned(),
        err_code: "-32001".to_owned(),
        err_template_id: "9f21c07ab3d4e58c".to_owned(),
        newest_failure: at(minute),
    }
}

fn verified<'a>(
    found: &'a Found,
    definition_id: &'a str,
    passed: bool,
    run_id: &'a str,
    minute: i64,
) -> Verification<'a> {
    Verification { found, probe_id: "case-a", definition_id, passed, run_id, at: at(minute) }
}

fn stands(home: &Home) -> (State, u32) {
    let standing = Lifecycle::to_read(home).unwrap().unwrap().standing().unwrap().remove(ID).unwrap();
    (standing.state, standing.consecutive_passes)
}

fn history(home: &Home) -> u32 {
    let connection = Connection::open(home.lifecycle_db()).unwrap();
    connection.query_row("SELECT count(*) FROM probe_history", [], |row| row.get(0)).unwrap()
}

#[test]
fn three_greens_close_and_a_red_reopens() {
    let Place { home, .. } = &place();
    let found = found(0);
    let mut lifecycle = Lifecycle::to_write(home).unwrap();
    lifecycle.register(std::slice::from_ref(&found), at(1)).unwrap();
    assert_eq!(stands(home), (State::Open, 0));
    for (run, passed, expected) in [
        ("r1", true, (State::Verifying, 1)),
        ("r2", true, (State::Verifying, 2)),
        ("r3", true, (State::Closed, 3)),
        ("r4", false, (State::Open, 0)),
    ] {
        let (_, after) = lifecycle.record(&verified(&found, "d", passed, run, 2)).unwrap();
        assert_eq!((after.state, after.consecutive_passes), expected);
        assert_eq!(stands(home), expected);
    }
    assert_eq!(history(home), 4);
    assert_eq!(fs::metadata(home.lifecycle_db()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn another_definition_or_case_begins_anew() {
    let Place { home, .. } = &place();
    let found = found(0);
    let mut lifecycle = Lifecycle::to_write(home).unwrap();
    // A finding that nobody registered is opened by its first verification.
    lifecycle.record(&verified(&found, "d", true, "r1", 1)).unwrap();
    lifecycle.record(&verified(&found, "d", true, "r2", 2)).unwrap();
    let (before, after) = lifecycle.record(&verified(&found, "rebuilt", true, "r3", 3)).unwrap();
    assert_eq!((before.consecutive_passes, after.state, after.consecutive_passes), (2, State::Verifying, 1));
    let other = Verification { probe_id: "case-b", ..verified(&found, "rebuilt", true, "r4", 4) };
    let (_, after) = lifecycle.record(&other).unwrap();
    assert_eq!(
        (after.state, after.consecutive_passes, after.probe_id.as_deref()),
        (State::Verifying, 1, Some("case-b"))
    );
}

#[test]
fn a_run_counts_once_and_history_is_only_added_to() {
    let Place { home, .. } = &place();
    let found = found(0);
    let mut lifecycle = Lifecycle::to_write(home).unwrap();
    lifecycle.record(&verified(&found, "d", true, "run", 1)).unwrap();
    let error = lifecycle.record(&verified(&found, "d", true, "run", 1)).unwrap_err();
    assert!(error.to_string().contains("run_id") && error.exit_code() == 3, "{error}");
    assert_eq!((stands(home), history(home)), ((State::Verifying, 1), 1));
    let connection = Connection::open(home.lifecycle_db()).unwrap();
    for statement in ["UPDATE probe_history SET passed = 0", "DELETE FROM probe_history"] {
        assert!(connection.execute(statement, []).unwrap_err().to_string().contains("only added to"));
    }
}

#[test]
fn a_closed_finding_reopens_by_a_failure_after_its_closing() {
    let Place { home, .. } = &place();
    let mut lifecycle = Lifecycle::to_write(home).unwrap();
    let old = found(0);
    for (run, minute) in [("r1", 10), ("r2", 20), ("r3", 30), ("r4", 50)] {
        lifecycle.record(&verified(&old, "d", true, run, minute)).unwrap();
    }
    assert_eq!(stands(home), (State::Closed, 4));
    lifecycle.register(&[found(30)], at(60)).unwrap();
    assert_eq!(stands(home), (State::Closed, 4));
    // It was closed at 30; the check at 50 does not hide that it failed at 40.
    lifecycle.register(&[found(40)], at(61)).unwrap();
    assert_eq!(stands(home), (State::Open, 0));
    // An open one stays as it is, and its streak too.
    lifecycle.record(&verified(&old, "d", true, "r5", 70)).unwrap();
    lifecycle.register(&[found(80)], at(90)).unwrap();
    assert_eq!(stands(home), (State::Verifying, 1));
}

#[test]
fn a_newer_version_is_refused_and_left_as_it_is() {
    let Place { home, .. } = &place();
    let connection = Connection::open(home.lifecycle_db()).unwrap();
    connection.execute_batch("PRAGMA user_version = 2; CREATE TABLE finding_lifecycle (other);").unwrap();
    drop(connection);
    fs::set_permissions(home.lifecycle_db(), fs::Permissions::from_mode(0o644)).unwrap();
    let before = fs::read(home.lifecycle_db()).unwrap();
    for error in [Lifecycle::to_write(home).unwrap_err(), Lifecycle::to_read(home).unwrap_err()] {
        assert!(error.to_string().contains("version 2") && error.exit_code() == 3, "{error}");
    }
    assert!(fs::read(home.lifecycle_db()).unwrap() == before);
    assert_eq!(fs::metadata(home.lifecycle_db()).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(fs::read_dir(home.root()).unwrap().count(), 2, "nothing is made beside it but the store");
}

#[test]
fn version_0_stays_version_0() {
    let Place { home, .. } = &place();
    let connection = Connection::open(home.lifecycle_db()).unwrap();
    connection.execute_batch(TABLES).unwrap();
    connection.execute_batch("PRAGMA user_version = 0;").unwrap();
    drop(connection);
    let mut lifecycle = Lifecycle::to_write(home).unwrap();
    lifecycle.record(&verified(&found(0), "d", true, "r", 1)).unwrap();
    drop(lifecycle);
    assert_eq!(database::version(&Connection::open(home.lifecycle_db()).unwrap()).unwrap(), 0);
    assert_eq!(stands(home), (State::Verifying, 1));
}

#[test]
fn a_state_of_nobody_is_told() {
    let Place { home, .. } = &place();
    Lifecycle::to_write(home).unwrap().register(&[found(0)], at(1)).unwrap();
    let connection = Connection::open(home.lifecycle_db()).unwrap();
    connection.execute("UPDATE finding_lifecycle SET state = 'pending'", []).unwrap();
    let error = Lifecycle::to_read(home).unwrap().unwrap().standing().unwrap_err();
    assert!(error.to_string().contains("does not know") && error.exit_code() == 3, "{error}");
}

#[test]
fn a_reader_finds_nothing_and_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    assert!(Lifecycle::to_read(&home).unwrap().is_none() && !home.root().exists());
    home.prepare().unwrap();
    drop(home.open_file(&home.lifecycle_db()).unwrap());
    assert!(Lifecycle::to_read(&home).unwrap().unwrap().standing().unwrap().is_empty());
}

#[test]
fn states_in_an_old_index_are_taken_over_once() {
    let Place { home, .. } = &place();
    let old = Connection::open(home.index_db()).unwrap();
    old.execute_batch(
        "CREATE TABLE finding_lifecycle (finding_id TEXT PRIMARY KEY, server TEXT, tool TEXT, probe_id TEXT, state TEXT,
           consecutive_passes INTEGER, updated_at TEXT);
         CREATE TABLE probe_history (id INTEGER PRIMARY KEY, finding_id TEXT, probe_id TEXT, passed INTEGER, ts TEXT);
         INSERT INTO finding_lifecycle VALUES
           ('finding-0123456789abcdef', 'files', 'read_doc', 'case-a', 'verifying', 2, '2027-01-15T09:30:00Z'),
           ('finding-1111111111111111', 'files', 'read_doc', NULL, 'half-done', 9, 'yesterday'),
           ('../../elsewhere', 'files', 'read_doc', NULL, 'open', 0, '2027-01-15T09:30:00Z');
         INSERT INTO probe_history VALUES (5, 'finding-0123456789abcdef', 'case-a', 1, '2027-01-15T09:20:00Z'),
           (6, 'finding-0123456789abcdef', 'case-a', 1, '2027-01-15T09:30:00Z');",
    )
    .unwrap();
    drop(Lifecycle::to_write(home).unwrap());
    assert_eq!((stands(home), history(home)), ((State::Verifying, 2), 2));
    let standing = Lifecycle::to_read(home).unwrap().unwrap().standing().unwrap();
    assert_eq!(standing.len(), 2);
    assert_eq!(standing["finding-1111111111111111"].state, State::Open);

    // The definition was of 0.8, so that this is the first green of a new streak.
    let mut lifecycle = Lifecycle::to_write(home).unwrap();
    let (_, after) = lifecycle.record(&verified(&found(0), "d", true, "r", 1)).unwrap();
    assert_eq!((after.state, after.consecutive_passes), (State::Verifying, 1));
    drop(lifecycle);
    old.execute(
        "INSERT INTO finding_lifecycle VALUES ('finding-3333333333333333', 'f', 't', NULL, 'closed', 3, '')",
        [],
    )
    .unwrap();
    drop(Lifecycle::to_write(home).unwrap());
    assert_eq!(Lifecycle::to_read(home).unwrap().unwrap().standing().unwrap().len(), 2);
    assert_eq!(history(home), 3);
}

#[test]
fn an_index_that_is_none_has_nothing_to_take_over() {
    let Place { home, .. } = &place();
    fs::write(home.index_db(), "no database at all, but long enough to be looked at".repeat(99)).unwrap();
    Lifecycle::to_write(home).unwrap().register(&[found(0)], at(1)).unwrap();
    assert_eq!(stands(home), (State::Open, 0));
}
