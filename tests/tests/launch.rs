//! Six ways to meet no server, told apart in six sentences; and what a child inherits.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};

use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, Place};

/// The first line on standard error: the cause.
fn sentence(outcome: &Outcome) -> String {
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert!(outcome.report().at("/readiness").is_null());
    outcome.stderr.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn six_ways_to_meet_no_server_are_six_sentences() {
    let place = Place::new(programs!());
    let impatient = ["--startup-timeout", "2"];
    let missing = place.run(["score", "--format", "json", "--", "/no/such/server"]);
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    let closed = format!("http://{}/mcp", closed.expect("a port that was free a moment ago"));
    let sentences = [
        ("not found", sentence(&missing)),
        ("code 3", sentence(&place.score(&impatient, "exits-at-once"))),
        ("JSON", sentence(&place.score(&impatient, "prints-text"))),
        ("2 s", sentence(&place.score(&impatient, "silent"))),
        ("404", sentence(&place.score_http(&impatient, "html-404"))),
        ("refused", sentence(&place.score_url(&impatient, &closed))),
    ];
    for (word, sentence) in &sentences {
        assert!(sentence.contains(word), "{word:?} is not in {sentence:?}");
    }
    // Names and numbers aside they differ too.
    let shapes: BTreeSet<String> = sentences
        .iter()
        .map(|(_, sentence)| sentence.split_whitespace().filter(|word| !word.contains(['/', '0', '3'])).collect())
        .collect();
    assert_eq!(shapes.len(), sentences.len(), "{sentences:#?}");
    place.assert_clean();
}

#[test]
fn the_last_words_of_a_server_are_shown_and_neutralised() {
    let place = Place::new(programs!());
    let script = "printf 'missing \\033[31mKEY\\033]0;owned\\007\\n' >&2; exit 3";
    let outcome = place.run(["score", "--format", "json", "--", "/bin/sh", "-c", script]);
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.stderr.contains("missing"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains(['\u{1b}', '\u{7}']), "{:?}", outcome.stderr);
    assert!(!outcome.stdout.contains("missing"), "standard error does not belong into a report");
}

#[test]
fn a_signal_is_named() {
    let place = Place::new(programs!());
    let outcome = place.run(["score", "--format", "json", "--", "/bin/sh", "-c", "kill -SEGV $$"]);
    assert!(sentence(&outcome).contains("SIGSEGV"), "{}", outcome.stderr);
}

#[test]
fn a_child_inherits_the_environment_without_what_belongs_to_the_program() {
    let place = Place::new(programs!());
    let mut command =
        place.mcpeval(["score", "--format", "json", "--env", "GIVEN=yes", "--env", "MCPEVAL_GIVEN=yes", "--"]);
    command.args(["/bin/sh", "-c", "env | grep -E '^(INHERITED|GIVEN|MCPEVAL)' >&2; exit 3"]);
    command.env("INHERITED", "yes").env("MCPEVAL_LOG", "warn").env("MCPEVAL_HTTP_AUTHORIZATION", "Bearer swordfish");
    let outcome = mcpeval_tests::run::Running::start(command).finish(mcpeval_tests::run::PATIENCE);
    for line in ["INHERITED=yes", "GIVEN=yes", "MCPEVAL_GIVEN=yes"] {
        assert!(
            outcome.stderr.lines().any(|printed| printed.trim_start_matches([' ', '|']) == line),
            "{line} is missing: {}",
            outcome.stderr
        );
    }
    assert!(!outcome.stderr.contains("MCPEVAL_LOG") && !outcome.stderr.contains("swordfish"), "{}", outcome.stderr);
}

#[test]
fn a_working_directory_that_is_not_there_is_told_apart() {
    let place = Place::new(programs!());
    let outcome = place.score(&["--cwd", "/no/such/folder"], "good");
    assert!(matches!(outcome.code, Some(2 | 3)), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("/no/such/folder"), "{}", outcome.stderr);
}
