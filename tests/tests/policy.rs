//! What may be called: never a declared writer, never a skipped tool, an unannotated one only when attested.

use std::collections::BTreeSet;

use mcpeval_tests::programs;
use mcpeval_tests::run::Place;

/// The tools that were called, by the journal of the server.
fn called(place: &Place) -> BTreeSet<String> {
    let lines = place.journal_lines();
    lines.iter().filter_map(|line| line.strip_prefix("tools/call ")).map(str::to_owned).collect()
}

fn set(tools: &[&str]) -> BTreeSet<String> {
    tools.iter().map(|tool| (*tool).to_owned()).collect()
}

#[test]
fn a_writer_is_never_called() {
    for options in [&[][..], &["--confirm-read-only"], &["--confirm-read-only", "--lanes", "8"]] {
        for server in ["good", "undeclared-writer", "undeclared-destruction"] {
            let place = Place::new(programs!());
            let outcome = place.score(options, server);
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
            assert_eq!(
                called(&place),
                set(&["find_item", "get_price", "mcpeval-unknown-tool"]),
                "{server} {options:?}"
            );
        }
    }
}

#[test]
fn arguments_for_a_writer_are_refused() {
    let place = Place::new(programs!());
    let file = place.file("arguments.json", r#"{"delete_item": {"query": "swordfish"}}"#).display().to_string();
    let outcome = place.score(&["--arguments", &file, "--confirm-read-only"], "good");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("delete_item") && !outcome.stderr.contains("swordfish"), "{}", outcome.stderr);
    assert_eq!(called(&place), set(&[]));
}

#[test]
fn an_unannotated_tool_is_called_only_when_attested() {
    let place = Place::new(programs!());
    place.score(&[], "unannotated");
    assert!(!called(&place).contains("odd_tool"));
    place.score(&["--confirm-read-only"], "unannotated");
    assert!(called(&place).contains("odd_tool"));
}

#[test]
fn a_skipped_tool_is_not_called_and_must_be_listed() {
    let place = Place::new(programs!());
    place.score(&["--skip-tool", "get_price"], "good");
    assert_eq!(called(&place), set(&["find_item", "mcpeval-unknown-tool"]));
    let outcome = place.score(&["--skip-tool", "get_prices"], "good");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("get_price"), "the nearest name is missing: {}", outcome.stderr);
}

#[test]
fn invalid_and_repeated_entries_are_not_called() {
    for server in ["bad-name", "schema-invalid", "schema-remote"] {
        let place = Place::new(programs!());
        place.score(&["--confirm-read-only"], server);
        assert_eq!(called(&place), set(&["find_item", "get_price", "mcpeval-unknown-tool"]), "{server}");
    }
}
