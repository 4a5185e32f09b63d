//! Nothing is left behind: no process, no folder, no descriptor; not after many runs, not after any kind of end.

use mcpeval_tests::programs;
use mcpeval_tests::run::{Bell, Place, Running, SETTLING};
use rustix::process::Signal;

/// Runs after which a leak of one thing a run would show.
const RUNS: usize = 50;

#[test]
fn fifty_runs_leave_nothing() {
    let place = Place::new(programs!());
    let servers = ["good", "orphan", "orphan-own-session", "exits-at-once", "wrong-revision"];
    for server in servers.iter().cycle().take(RUNS) {
        let outcome = place.score(&["--lanes", "2"], server);
        assert!(matches!(outcome.code, Some(0 | 3)), "{server}: {}", outcome.stderr);
    }
    place.assert_clean();
}

#[test]
fn a_run_holds_no_more_descriptors_at_its_end_than_at_its_start() {
    // Each session is a process with three pipes; with 48 descriptors allowed, a leak in any of the sessions that
    // replace broken ones ends the run early.
    let place = Place::new(programs!());
    let server = programs!().server;
    let script = "ulimit -n 48; exec \"$0\" score --format json --lanes 1 --confirm-read-only -- \"$1\" crashes-often";
    let mut command = place.command("/bin/sh");
    command.args(["-c", script, programs!().mcpeval, server]);
    let outcome = Running::start(command).finish(mcpeval_tests::run::PATIENCE);
    let report = outcome.report();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(report.measurement("transport_errors"), Some(40), "{}", outcome.stderr);
    place.assert_clean();
}

#[test]
fn interrupt_and_termination_end_everything() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let place = Place::new(programs!());
        let bell = Bell::hang(&place);
        let run = Running::start(place.score_command(&["--lanes", "1"], "hangs-with-children"));
        bell.wait_for("tools/call find_item");
        run.signal(signal);
        let outcome = run.finish(SETTLING);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(code), ""), "{}", outcome.stderr);
        place.assert_clean();
    }
}

#[test]
fn a_second_signal_does_not_leave_more_than_the_first() {
    let place = Place::new(programs!());
    let bell = Bell::hang(&place);
    let run = Running::start(place.score_command(&["--lanes", "1"], "hangs-with-children"));
    bell.wait_for("tools/call find_item");
    run.signal(Signal::TERM);
    run.signal(Signal::INT);
    let outcome = run.finish(SETTLING);
    // Either may be heard first.
    assert!(matches!(outcome.code, Some(130 | 143)), "{:?} {}", outcome.code, outcome.stderr);
    assert_eq!(outcome.stdout, "");
    place.assert_clean();
}

#[test]
fn a_kill_that_cannot_be_caught_ends_everything_too() {
    for server in ["hangs-with-children", "hangs-at-call"] {
        let place = Place::new(programs!());
        let bell = Bell::hang(&place);
        let run = Running::start(place.score_command(&["--lanes", "1"], server));
        bell.wait_for("tools/call find_item");
        assert!(!place.leftovers().is_empty(), "there is a scratch folder during the run");
        run.signal(Signal::KILL);
        let outcome = run.finish(SETTLING);
        assert_eq!(outcome.signal, Some(9));
        place.assert_clean();
    }
}

#[test]
fn a_signal_during_the_handshake_ends_everything() {
    let place = Place::new(programs!());
    let bell = Bell::hang(&place);
    let run = Running::start(place.score_command(&[], "hangs-at-initialize"));
    bell.wait_for("initialize");
    run.signal(Signal::TERM);
    let outcome = run.finish(SETTLING);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(143), ""), "{}", outcome.stderr);
    place.assert_clean();
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let place = Place::new(programs!());
    let script = "\"$0\" score -- \"$1\" good | true";
    let mut command = place.command("/bin/sh");
    command.args(["-c", script, programs!().mcpeval, programs!().server]);
    let outcome = Running::start(command).finish(mcpeval_tests::run::PATIENCE);
    assert!(!outcome.stderr.contains("panicked") && !outcome.stderr.contains("Broken pipe"), "{}", outcome.stderr);
    place.assert_clean();
}
