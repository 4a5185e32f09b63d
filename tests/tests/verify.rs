//! `mcpeval verify`: what counts as a check, and what becomes of a finding by it.

use std::fs;
use std::path::Path;

use mcpeval::store::{Home, database};
use mcpeval_tests::finding::{TOOL, become_server, failing, promote, script, standing};
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use mcpeval_tests::traffic::{self, note};
use serde_json::{Value, json};

/// A case of the finding's tool that passes on a good server.
fn repeat(id: &str) -> Value {
    json!({"probe": "degradation-over-n", "id": id, "access": "read_only", "tool": TOOL, "arguments": {"item": "tea"},
        "max_attempts": 3})
}

fn manifest(place: &Place, cases: &[Value]) -> String {
    let text = json!({"version": 1, "timeout_ms": 2_000, "sandboxes": {"bench": {"description": "A bench."}}, "probes": cases});
    place.file("cases.json", text.to_string()).display().to_string()
}

/// A place with a finding, a manifest of those cases, and a server that a file chooses.
fn place(cases: &[Value], notes: &[Value]) -> (Place, Home, String, String) {
    let place = Place::new(programs!());
    let (home, id) = promote(&place, &failing(), notes);
    let manifest = manifest(&place, cases);
    script(&place, "");
    become_server(&place, "good");
    (place, home, id, manifest)
}

fn verify(place: &Place, id: &str, case: &str, manifest: &str) -> Outcome {
    verify_with(place, id, case, &["--manifest", manifest], &["sh", "serve.sh"])
}

fn verify_with(place: &Place, id: &str, case: &str, options: &[&str], command: &[&str]) -> Outcome {
    place.run([&["verify", "--finding", id, "--case", case], options, &["--"], command].concat())
}

/// Verifications in the history.
fn history(home: &Home) -> i64 {
    let Some(reading) = database::open_to_read(&home.lifecycle_db()).expect("the states") else { return 0 };
    reading.connection.query_row("SELECT count(*) FROM probe_history", [], |row| row.get(0)).expect("a count")
}

fn stands(place: &Place, home: &Home, state: &str, passes: u64, checks: i64) {
    assert_eq!((standing(place), history(home)), ((state.to_owned(), passes), checks));
}

fn refused(outcome: &Outcome, code: i32, told: &str) {
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(code), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
}

/// Acceptance check 16.
#[test]
fn three_greens_close_a_finding_and_a_red_one_reopens_it() {
    let (place, home, id, manifest) = place(&[repeat("again")], &[]);
    let steps = [
        (
            "good",
            0,
            "green: case again passed (3 requests)",
            "open: not fixed yet",
            "verifying: 1 of 3 green checks",
            "verifying",
            1,
        ),
        (
            "good",
            0,
            "2 of 3 green checks\n1 more green in a row closes it",
            "verifying: 1 of 3",
            "verifying: 2 of 3",
            "verifying",
            2,
        ),
        ("good", 0, "the finding is closed", "verifying: 2 of 3", "closed: three green checks in a row", "closed", 3),
        (
            "always-fails",
            1,
            "red: case again failed (1 request): unexpected-outcome; ",
            "closed: three",
            "open: not fixed yet",
            "open",
            0,
        ),
        (
            "always-fails",
            1,
            "red: ",
            "open: not",
            "fix-claimed: a fix was tried, the last check was red",
            "fix-claimed",
            0,
        ),
        ("good", 0, "green: ", "fix-claimed: ", "verifying: 1 of 3 green checks", "verifying", 1),
    ];
    for (checks, (server, code, told, before, after, state, passes)) in (1..).zip(steps) {
        become_server(&place, server);
        let outcome = verify(&place, &id, "again", &manifest);
        assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
        for part in [told, &format!("{id} files/{TOOL}\nbefore  {before}"), &format!("\nafter   {after}")] {
            assert!(outcome.stdout.contains(part), "{part}\n{}", outcome.stdout);
        }
        stands(&place, &home, state, passes, checks);
    }
    place.assert_clean();
}

/// Acceptance check 17.
#[test]
fn a_rebuilt_server_begins_a_new_streak() {
    let (place, home, id, manifest) = place(&[repeat("again"), repeat("other")], &[]);
    for passes in 1..=2 {
        assert_eq!(verify(&place, &id, "again", &manifest).code, Some(0));
        stands(&place, &home, "verifying", passes, passes.cast_signed());
    }
    script(&place, "# another build");
    let outcome = verify(&place, &id, "again", &manifest);
    assert!(outcome.code == Some(0) && outcome.stdout.contains("the count begins anew"), "{}", outcome.stdout);
    stands(&place, &home, "verifying", 1, 3);
    // Neither does another case, nor another wait, continue it.
    assert_eq!(verify(&place, &id, "again", &manifest).code, Some(0));
    stands(&place, &home, "verifying", 2, 4);
    assert_eq!(verify(&place, &id, "other", &manifest).code, Some(0));
    stands(&place, &home, "verifying", 1, 5);
    let text = fs::read_to_string(&manifest).expect("the manifest");
    fs::write(&manifest, text.replace("2000", "2001")).expect("the manifest");
    assert_eq!(verify(&place, &id, "other", &manifest).code, Some(0));
    stands(&place, &home, "verifying", 1, 6);
}

/// Acceptance check 18.
#[test]
fn what_came_to_no_verdict_is_not_recorded() {
    let (place, home, id, manifest) = place(&[repeat("again")], &[]);
    for (server, told) in [
        ("dies-at-call", "transport-closed"),
        ("dies-at-initialize", "transport-closed"),
        ("exits-at-once", "transport-closed"),
        ("handshake-declined", "handshake-failed"),
        ("hangs-at-call", "transport-timeout"),
    ] {
        become_server(&place, server);
        let outcome = verify(&place, &id, "again", &manifest);
        refused(&outcome, 3, "nothing was recorded");
        assert!(outcome.stderr.contains(told), "{server}: {}", outcome.stderr);
        stands(&place, &home, "open", 0, 0);
    }
    refused(
        &verify_with(&place, &id, "again", &["--manifest", &manifest], &["no-such-command"]),
        3,
        "command not found: no-such-command",
    );
    let unreachable =
        ["verify", "--finding", &id, "--case", "again", "--manifest", &manifest, "--url", "http://127.0.0.1:9/mcp"];
    refused(&place.run(unreachable), 3, "nothing was recorded");
    stands(&place, &home, "open", 0, 0);
    place.assert_clean();
}

#[test]
fn a_build_that_changes_meanwhile_is_not_recorded() {
    let (place, home, id, manifest) = place(&[repeat("again")], &[]);
    script(&place, "echo '# built' >> serve.sh");
    refused(&verify(&place, &id, "again", &manifest), 3, "changed while it was checked");
    stands(&place, &home, "open", 0, 0);
}

#[test]
fn an_unknown_finding_creates_nothing() {
    let place = Place::new(programs!());
    let manifest = manifest(&place, &[repeat("again")]);
    refused(&verify(&place, "finding-0123456789abcdef", "again", &manifest), 2, "there are no findings yet");
    assert!(!traffic::home(&place).root().exists());

    let (home, id) = promote(&place, &failing(), &[]);
    fs::remove_file(home.lifecycle_db()).expect("the states");
    let listed = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
        names.sort();
        names
    };
    let before = listed(home.root());
    let wrong = format!("{}0", &id[..id.len() - 1]);
    let wrong = if wrong == id { format!("{}1", &id[..id.len() - 1]) } else { wrong };
    refused(&verify(&place, &wrong, "again", &manifest), 2, &id);
    assert_eq!((listed(home.root()), place.journal_lines()), (before, Vec::new()));
    // A finding whose states were lost is opened by its check.
    script(&place, "");
    become_server(&place, "good");
    assert_eq!(verify(&place, &id, "again", &manifest).code, Some(0));
    stands(&place, &home, "verifying", 1, 1);
}

#[test]
fn a_case_that_cannot_show_it_is_refused_before_anything_is_called() {
    let mutating = json!({"probe": "degradation-over-n", "id": "writes", "access": "mutating", "sandbox": "bench", "tool": TOOL,
        "arguments": {"item": "tea"}, "max_attempts": 2});
    let other = json!({"probe": "degradation-over-n", "id": "other-tool", "access": "read_only", "tool": "find_item",
        "arguments": {"query": "tea"}, "max_attempts": 2});
    let writer = json!({"probe": "workflow", "id": "writer", "access": "read_only", "repetitions": 1, "steps": [
        {"tool": TOOL, "arguments": {"item": "tea"}, "expect": {"outcome": "ok"}},
        {"tool": "delete_item", "arguments": {"item": "tea"}, "expect": {"outcome": "ok"}}]});
    let catalog = json!({"probe": "discovery-cost", "id": "catalog", "access": "read_only", "max_tools": 10, "max_schema_bytes": 10_000});
    let (place, home, id, manifest) = place(&[repeat("again"), mutating, other, writer, catalog], &[]);
    for (case, told) in [
        ("agian", "the manifest has no case \"agian\"; the nearest is \"again\""),
        ("writes", "permit it with --allow-mutation"),
        ("other-tool", "does not call the tool get_price"),
        ("catalog", "does not call the tool get_price"),
        ("writer", "this case is read_only, and the tool \"delete_item\" declares that it writes"),
    ] {
        refused(&verify(&place, &id, case, &manifest), 2, told);
    }
    assert!(place.journal_lines().iter().all(|line| !line.starts_with("tools/call")), "{:?}", place.journal_lines());
    stands(&place, &home, "open", 0, 0);
    let allowed = ["--manifest", &manifest, "--allow-mutation"];
    assert_eq!(verify_with(&place, &id, "writes", &allowed, &["sh", "serve.sh"]).code, Some(0));
    stands(&place, &home, "verifying", 1, 1);

    refused(&verify(&place, &id, "again", "no-such.json"), 2, "no-such.json");
    refused(&place.run(["verify", "--finding", &id, "--case", "again", "--", "sh"]), 2, "mcpeval generate");
    let labelled = ["verify", "--finding", &id, "--case", "again", "--server", "other", "--", "sh"];
    refused(&place.run(labelled), 2, "--server");
    place.assert_clean();
}

#[test]
fn a_pass_without_a_call_is_no_check() {
    let bare =
        json!({"probe": "output-schema", "id": "bare", "access": "read_only", "tool": "odd_tool", "arguments": {}});
    let place = Place::new(programs!());
    let mut calls = failing();
    for call in calls.iter_mut().filter(|call| call["tool"] == TOOL) {
        call["tool"] = "odd_tool".into();
    }
    let (home, id) = promote(&place, &calls, &[]);
    let manifest = manifest(&place, &[bare]);
    let server = place.fixture();
    let outcome = verify_with(&place, &id, "bare", &["--manifest", &manifest], &[server, "no-output-schema"]);
    refused(&outcome, 2, "passed without a call");
    stands(&place, &home, "open", 0, 0);
}

#[test]
fn a_false_success_is_verified_by_what_came_of_the_call() {
    let expecting = |id: &str, expect: Value| {
        json!({"probe": "instruction-fidelity", "id": id, "access": "read_only", "tool": TOOL,
            "arguments": {"item": "tea"}, "expect": expect})
    };
    let cases = [
        repeat("again"),
        expecting("weak", json!({"outcome": "ok", "max_latency_ms": 60_000})),
        expecting("strong", json!({"outcome": "ok", "equals_paths": {"/structuredContent/price": 12.5}})),
    ];
    let place = Place::new(programs!());
    // All its calls are noted, so that they are one group of false successes.
    let calls = failing();
    let notes: Vec<Value> = calls
        .iter()
        .map(|call| note(call["identity"]["event_id"].as_str().expect("an event"), "false-success"))
        .collect();
    let (home, id) = promote(&place, &calls, &notes);
    let manifest = manifest(&place, &cases);
    script(&place, "");
    become_server(&place, "good");
    for case in ["again", "weak"] {
        refused(&verify(&place, &id, case, &manifest), 2, "cannot tell a false success");
    }
    assert_eq!(verify(&place, &id, "strong", &manifest).code, Some(0));
    stands(&place, &home, "verifying", 1, 1);
}

#[test]
fn a_server_over_http_is_its_address() {
    let (place, home, id, manifest) = place(&[repeat("again")], &[]);
    let fixture = place.serve("good");
    for passes in 1..=2 {
        let arguments = ["verify", "--finding", &id, "--case", "again", "--manifest", &manifest, "--url", &fixture.url];
        let outcome = place.run(arguments);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        stands(&place, &home, "verifying", passes, passes.cast_signed());
    }
    // The same server by a command is another.
    assert_eq!(verify(&place, &id, "again", &manifest).code, Some(0));
    stands(&place, &home, "verifying", 1, 3);
}

#[test]
fn states_of_a_newer_version_are_left_alone() {
    let (place, home, id, manifest) = place(&[repeat("again")], &[]);
    // The version stands in the header of a database, big-endian.
    let mut bytes = fs::read(home.lifecycle_db()).expect("the states");
    bytes[60..64].copy_from_slice(&2_u32.to_be_bytes());
    fs::write(home.lifecycle_db(), &bytes).expect("the states");
    refused(&verify(&place, &id, "again", &manifest), 3, "version 2");
    assert!(fs::read(home.lifecycle_db()).expect("the states") == bytes);
    assert!(place.journal_lines().is_empty(), "{:?}", place.journal_lines());
}

#[test]
fn two_checks_at_the_same_time_count_both() {
    let (place, home, id, manifest) = place(&[repeat("again")], &[]);
    let running: Vec<Running> = (0..3)
        .map(|_| {
            let arguments =
                ["verify", "--finding", &id, "--case", "again", "--manifest", &manifest, "--", "sh", "serve.sh"];
            Running::start(place.mcpeval(arguments))
        })
        .collect();
    for run in running {
        let outcome = run.finish(PATIENCE);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
    stands(&place, &home, "closed", 3, 3);
}
