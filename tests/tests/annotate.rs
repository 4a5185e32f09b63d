//! `mcpeval annotate`: which call a note is about, and what is kept of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use mcpeval::store::hash::{Salt, unsalted_session};
use mcpeval::store::journal::{Journal, files};
use mcpeval::store::{Home, record};
use mcpeval_tests::finding::good;
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, Place};
use mcpeval_tests::traffic::{call, days_ago, event, home, session, write};
use serde_json::{Value, json};

/// A place where these sessions were recorded, by their tokens.
fn place(calls: &[Value]) -> (Place, Home) {
    let place = Place::new(programs!());
    let home = home(&place);
    if !calls.is_empty() {
        write(&home, Journal::Calls, calls);
    }
    (place, home)
}

fn of_session(mut call: Value, token: &str) -> Value {
    call["session"] = token.into();
    call
}

fn annotate(place: &Place, call: &[&str]) -> Outcome {
    place.run([&["annotate", "--kind", "workaround", "--note", "went around"], call].concat())
}

/// The lines of the annotations, without their time.
fn notes(home: &Home) -> Vec<Value> {
    let mut notes = Vec::new();
    for path in files(home, Journal::Annotations).expect("the journals") {
        assert_eq!(fs::metadata(&path).expect("a journal").permissions().mode() & 0o777, 0o600);
        for line in fs::read_to_string(&path).expect("a journal").lines() {
            let mut note: Value = serde_json::from_str(line).expect("a line");
            let ts = note.as_object_mut().expect("an object").remove("ts").expect("a time");
            assert!(record::moment(ts.as_str().expect("a text")).is_some(), "{ts}");
            notes.push(note);
        }
    }
    notes
}

fn refused(outcome: &Outcome, told: &str) {
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
}

#[test]
fn a_call_is_named_by_its_event_or_its_place() {
    let (place, home) = place(&[call(1, 1, 1, days_ago(1)), call(1, 1, 2, days_ago(1))]);
    let outcome = annotate(&place, &["--event-id", &event(1, 1).to_uppercase()]);
    assert_eq!(outcome.stdout, "noted workaround on files/read_doc; mcpeval index counts it\n", "{}", outcome.stderr);
    assert_eq!(outcome.stderr, "");
    assert_eq!(annotate(&place, &["--session", &session(1), "--seq", "2"]).stderr, "");
    let expected = [
        json!({"event_id": event(1, 1), "kind": "workaround", "note": "went around"}),
        json!({"session": session(1), "seq": 2, "kind": "workaround", "note": "went around"}),
    ];
    assert_eq!(notes(&home), expected);
    assert_eq!(good(&place, &["index"]), "indexed 2 calls, 0 failures, 2 annotations\n");
}

#[test]
fn a_session_is_known_by_its_name_in_both_forms() {
    let (place, home) = place(&[]);
    home.prepare().expect("a home");
    let salted = Salt::of(&home).expect("a salt").session("nightly");
    let old = unsalted_session("weekly");
    let calls = [of_session(call(1, 1, 1, days_ago(1)), &salted), of_session(call(2, 2, 1, days_ago(1)), &old)];
    write(&home, Journal::Calls, &calls);
    for (name, warns) in [("nightly", false), ("weekly", false), ("yearly", true)] {
        let outcome = annotate(&place, &["--session", name, "--seq", "1"]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.contains("warning: no such call was recorded here"), warns, "{}", outcome.stderr);
    }
    // The stored one wins; without one, the salted form is written, and never the name.
    let fresh = Salt::of(&home).expect("a salt").session("yearly");
    let tokens: Vec<Value> = notes(&home).iter().map(|note| note["session"].clone()).collect();
    assert_eq!(tokens, [json!(salted), json!(old), json!(fresh)]);
    for path in files(&home, Journal::Annotations).expect("the journals") {
        let text = fs::read_to_string(path).expect("a journal");
        assert!(["nightly", "weekly", "yearly"].iter().all(|name| !text.contains(name)), "{text}");
    }
}

#[test]
fn a_number_that_several_calls_have_is_refused() {
    let mut other = call(2, 1, 1, days_ago(1));
    other["server"] = "notes".into();
    let (place, home) = place(&[call(1, 1, 1, days_ago(1)), other, call(1, 1, 2, days_ago(1))]);
    let outcome = annotate(&place, &["--session", &session(1), "--seq", "1"]);
    refused(&outcome, "several calls have this number in this session");
    assert!(outcome.stderr.contains(&event(1, 1)) && outcome.stderr.contains(&event(2, 1)), "{}", outcome.stderr);
    assert_eq!(annotate(&place, &["--session", &session(1), "--seq", "2"]).code, Some(0));
    assert_eq!(annotate(&place, &["--event-id", &event(2, 1)]).code, Some(0));
    assert_eq!(notes(&home).len(), 2);
}

#[test]
fn an_unknown_call_is_noted_with_a_warning_in_a_fresh_home() {
    let (place, home) = place(&[]);
    let outcome = annotate(&place, &["--event-id", &event(9, 9)]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no such call was recorded"), "{}", outcome.stderr);
    assert_eq!(notes(&home).len(), 1);
    let mut listing = call(1, 1, 1, days_ago(1));
    listing["method"] = "tools/list".into();
    listing.as_object_mut().expect("an object").remove("tool");
    write(&home, Journal::Calls, &[listing]);
    let outcome = annotate(&place, &["--event-id", &event(1, 1)]);
    assert!(outcome.stderr.contains("no call of a tool"), "{}", outcome.stderr);
}

#[test]
fn bad_notes_and_names_are_refused_and_create_nothing() {
    let (place, home) = place(&[]);
    let with = |arguments: &[&str]| place.run([&["annotate"], arguments].concat());
    let event = event(1, 1);
    for (arguments, told) in [
        (&["--kind", "workaround", "--note", "x"][..], "--event-id"),
        (&["--kind", "workaround", "--note", "x", "--event-id", "7"], "must be a UUID"),
        (&["--kind", "workaround", "--note", "x", "--session", "s"], "--seq"),
        (&["--kind", "workaround", "--note", "x", "--seq", "1"], "--session"),
        (&["--kind", "workaround", "--note", "x", "--session", "", "--seq", "1"], "--session"),
        (&["--kind", "workaround", "--note", "x", "--session", "s", "--seq", "-1"], "--seq"),
        (
            &["--kind", "workaround", "--note", "x", "--event-id", &event, "--session", "s", "--seq", "1"],
            "cannot be used with",
        ),
        (&["--kind", "rumour", "--note", "x", "--event-id", &event], "false-success"),
        (&["--kind", "workaround", "--event-id", &event], "--note"),
        (&["--kind", "workaround", "--note", "a\nb", "--event-id", &event], "240 characters"),
        (&["--kind", "workaround", "--note", &"x".repeat(241), "--event-id", &event], "240 characters"),
    ] {
        refused(&with(arguments), told);
    }
    assert!(!home.root().exists());
    for note in ["", "-", &"ö".repeat(240)] {
        assert_eq!(with(&["--kind", "false-success", "--note", note, "--event-id", &event]).code, Some(0), "{note}");
    }
    assert_eq!(notes(&home).len(), 3);
}
