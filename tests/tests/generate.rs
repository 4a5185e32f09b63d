//! `mcpeval generate` and `export-issues`: from a finding to the case that shows whether it is fixed, and to an issue.

use std::fs;

use mcpeval_tests::finding::{TOOL, all, become_server, failing, good, promote, script, standing};
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, Place};
use mcpeval_tests::traffic::note;
use serde_json::{Value, json};

const OUTPUT: &str = "again.json";

fn place(edit: fn(&mut Value)) -> (Place, String) {
    let place = Place::new(programs!());
    let mut calls = failing();
    calls.iter_mut().for_each(edit);
    let (_, id) = promote(&place, &calls, &[]);
    (place, id)
}

fn generate(place: &Place, id: &str, options: &[&str]) -> Outcome {
    place.run([&["generate", "--finding", id, "--output", OUTPUT, "--confirm-read-only"], options].concat())
}

fn read(place: &Place, file: &str) -> Value {
    let text = fs::read_to_string(place.path().join(file)).expect("a file");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn refused(outcome: &Outcome, code: i32, told: &str) {
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(code), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
}

#[test]
fn a_case_is_made_that_passes_on_the_fixed_server_and_fails_on_the_old_one() {
    let (place, id) = place(|_| {});
    let outcome = generate(&place, &id, &[]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let told = format!("fill: /arguments/item (str<32)\nwrote {OUTPUT} case={id} kind=degradation-over-n\n");
    assert_eq!(outcome.stdout, told);
    let manifest = read(&place, OUTPUT);
    // Six of 24 failed: eleven calls see that in 19 of 20 cases.
    assert_eq!(
        manifest,
        json!({"version": 1, "probes": [{"probe": "degradation-over-n", "id": id, "access": "read_only", "tool": TOOL,
            "arguments": {"item": ""}, "max_attempts": 11}]})
    );
    let schema: Value = serde_json::from_str(&good(&place, &["schema", "manifest"])).expect("a schema");
    mcpeval::services::schema::validate(&schema, &manifest).unwrap_or_else(|errors| panic!("{errors:?}"));

    script(&place, "");
    for (server, code) in [("good", 0), ("always-fails", 1)] {
        become_server(&place, server);
        let probe = ["probe", "--manifest", OUTPUT, "--gate-only", "--quiet", "--", "sh", "serve.sh"];
        assert_eq!(place.run(probe).code, Some(code), "{server}");
        let verify = ["verify", "--finding", &id, "--case", &id, "--manifest", OUTPUT, "--", "sh", "serve.sh"];
        assert_eq!(place.run(verify).code, Some(code), "{server}");
    }
    assert_eq!(standing(&place), ("open".to_owned(), 0));
    assert_eq!(all(&place)[0]["probe_id"], json!(id));
}

#[test]
fn yaml_is_written_where_the_name_asks_for_it() {
    let (place, id) = place(|_| {});
    let options = ["generate", "--finding", &id, "--output", "again.yaml", "--confirm-read-only"];
    assert_eq!(place.run(options).code, Some(0));
    let text = fs::read_to_string(place.path().join("again.yaml")).expect("a file");
    assert!(text.starts_with("version: 1\nprobes:\n"), "{text}");
    let probe = ["probe", "--manifest", "again.yaml", "--gate-only", "--quiet", "--", place.fixture(), "good"];
    assert_eq!(place.run(probe).code, Some(0));
}

#[test]
fn changing_codes_make_a_case_about_honesty() {
    fn codes(call: &mut Value, retryable: Option<bool>) {
        if call["outcome"] == "error" {
            let seq = call["seq"].as_i64().unwrap_or_default();
            call["error"]["code"] = (-32_000 - seq % 2).into();
            if let Some(retryable) = retryable {
                call["error"]["retryable"] = retryable.into();
            }
        }
    }
    let (told, id) = place(|call| codes(call, Some(false)));
    assert_eq!(generate(&told, &id, &[]).code, Some(0));
    let case = &read(&told, OUTPUT)["probes"][0];
    assert_eq!(
        (&case["probe"], &case["max_attempts"], &case["expect_retryable"]),
        (&json!("error-honesty"), &json!(11), &json!(false))
    );
    let (untold, id) = place(|call| codes(call, None));
    refused(&generate(&untold, &id, &[]), 2, "--expect FILE");
    assert!(!untold.path().join(OUTPUT).exists());
}

#[test]
fn an_expectation_is_checked_where_it_stands() {
    let (place, id) = place(|_| {});
    let expect = |text: &str| {
        place.file("expect.json", text);
        generate(&place, &id, &["--expect", "expect.json"])
    };
    for (text, told) in [
        ("{\n \"outcme\": \"ok\"}", "expect.json:2:12: /outcme: unknown field"),
        ("{\"outcome\": \"fine\"}", "expect.json:1:13: /outcome: must be \"ok\" or \"error\""),
        ("{\"text_contains\": \"x\"}", "the field \"outcome\" is missing"),
        ("{\"outcome\": \"ok\", \"text_matches\": \"(\"}", "expect.json:1:"),
        ("{\"outcome\": \"ok\", \"error_code\": 5}", "expect.json:1:"),
        ("[1]", "must be an object"),
        ("{\"outcome\": ", "expect.json:1:"),
    ] {
        let outcome = expect(text);
        refused(&outcome, 2, told);
        assert!(outcome.stderr.contains("expect.json:"), "{}", outcome.stderr);
    }
    refused(&expect(&format!("{{\"outcome\": \"ok\"}}{}", " ".repeat(64 << 10))), 2, "larger than 65536 bytes");
    refused(&generate(&place, &id, &["--expect", "none.json"]), 2, "none.json");
    assert!(!place.path().join(OUTPUT).exists());

    let outcome =
        expect("{\"outcome\": \"ok\", \"equals_paths\": {\"/structuredContent/price\": 12.5}, \"error_code\": null}");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let case = &read(&place, OUTPUT)["probes"][0];
    assert_eq!(case["probe"], "instruction-fidelity");
    assert_eq!(case["expect"], json!({"outcome": "ok", "equals_paths": {"/structuredContent/price": 12.5}}));
    let verify = ["verify", "--finding", &id, "--case", &id, "--manifest", OUTPUT, "--", place.fixture(), "good"];
    assert_eq!(place.run(verify).code, Some(0));
}

#[test]
fn classes_that_say_too_little_ask_for_an_expectation() {
    for (kind, weak_is_fine) in [("false-success", false), ("blocked-optimal-path", true)] {
        let place = Place::new(programs!());
        let calls = failing();
        let notes: Vec<Value> =
            calls.iter().map(|call| note(call["identity"]["event_id"].as_str().expect("an event"), kind)).collect();
        let (_, id) = promote(&place, &calls, &notes);
        refused(&generate(&place, &id, &[]), 2, &format!("class {kind}; say with --expect FILE"));
        place.file("weak.json", "{\"outcome\": \"ok\"}");
        let weak = generate(&place, &id, &["--expect", "weak.json"]);
        assert_eq!(weak.code, Some(if weak_is_fine { 0 } else { 2 }), "{}", weak.stderr);
        place.file("strong.json", "{\"outcome\": \"error\"}");
        assert_eq!(generate(&place, &id, &["--expect", "strong.json", "--force"]).code, Some(0));
    }
}

#[test]
fn nothing_is_overwritten_or_attested_by_itself() {
    let (place, id) = place(|_| {});
    let unattested = ["generate", "--finding", &id, "--output", OUTPUT];
    refused(&place.run(unattested), 2, "--confirm-read-only");
    place.file(OUTPUT, "mine");
    refused(&generate(&place, &id, &[]), 2, "exists; replace it with --force");
    assert_eq!(fs::read_to_string(place.path().join(OUTPUT)).expect("a file"), "mine");
    assert_eq!(generate(&place, &id, &["--force"]).code, Some(0));
    refused(&generate(&place, "finding-0", &["--force"]), 2, "there is no such finding");
    let toml = ["generate", "--finding", &id, "--output", "again.toml", "--confirm-read-only"];
    refused(&place.run(toml), 2, "JSON or YAML");
    let nowhere = ["generate", "--finding", &id, "--output", "no/again.json", "--confirm-read-only"];
    refused(&place.run(nowhere), 3, "there is no folder no");
    let empty = Place::new(programs!());
    refused(&generate(&empty, &id, &[]), 2, "there are no findings yet");
    assert!(!empty.path().join("home/.mcp-eval").exists());
}

#[test]
fn issues_are_written_all_or_none() {
    let (place, id) = place(|_| {});
    let export = |options: &[&str]| place.run([&["export-issues", "--dir", "issues"], options].concat());
    let file = place.path().join("issues").join(format!("{id}.md"));
    let outcome = export(&[]);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (Some(0), "exported 1 issue to issues\n"),
        "{}",
        outcome.stderr
    );
    let text = fs::read_to_string(&file).expect("a page");
    for part in [
        "# `get_price` keeps failing\n",
        &format!("Finding `{id}`. Not fixed yet."),
        "`class:recurring-error`",
        "- Failed: 6 of 24 calls in 2 sessions",
        "```json\n{\n  \"item\": \"str<32\"\n}\n```",
        &format!("mcpeval generate --finding {id} "),
        &format!("mcpeval verify --finding {id} "),
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    fs::write(&file, "mine").expect("a page");
    refused(&export(&[]), 2, "exists; replace it with --force");
    assert_eq!(fs::read_to_string(&file).expect("a page"), "mine");
    assert_eq!(export(&["--force"]).code, Some(0));
    assert_eq!(fs::read_to_string(&file).expect("a page"), text);

    // A closed one is left out, unless it is asked for.
    assert_eq!(generate(&place, &id, &[]).code, Some(0));
    for _ in 0..3 {
        let verify = ["verify", "--finding", &id, "--case", &id, "--manifest", OUTPUT, "--", place.fixture(), "good"];
        assert_eq!(place.run(verify).code, Some(0));
    }
    assert_eq!(export(&[]).stdout, "exported 0 issues\n");
    assert_eq!(export(&["--include-closed", "--force"]).stdout, "exported 1 issue to issues\n");
    assert!(fs::read_to_string(&file).expect("a page").contains("Three green checks in a row."));

    let empty = Place::new(programs!());
    assert_eq!(empty.run(["export-issues", "--dir", "issues"]).stdout, "exported 0 issues\n");
    assert!(!empty.path().join("issues").exists() && !empty.path().join("home/.mcp-eval").exists());
}
