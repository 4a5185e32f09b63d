//! A word that a server says wherever prose may stand, and that a manifest says wherever a value may stand, is in no
//! rendering of the run, and on standard error only when that is asked for.

use std::fs;

use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use mcpeval_tests::servers::answers::CANARY;
use serde_json::{Value, json};

/// All renderings, each in a file of its own.
const FORMATS: [&str; 6] = ["text", "json", "markdown", "sarif", "junit", "html"];

/// One case of each kind, most of which fail, with the word in every value that may be any.
fn manifest() -> Value {
    let uri = format!("shop://{CANARY}");
    let words = json!({"query": CANARY});
    let expect = |expect: Value| json!({"tool": "find_item", "arguments": words, "expect": expect});
    let kinds = [
        ("discovery-cost", json!({"max_tools": 1, "max_schema_bytes": 1})),
        ("token-cost", json!({"max_total_tokens": 1})),
        ("pagination", json!({"max_pages": 1})),
        ("surface-listing", json!({"max_pages": 1})),
        ("protocol-negotiation", json!({"bogus_version": "2000-01-01"})),
        (
            "completion",
            json!({
                "ref_type": "ref/prompt", "ref_uri": CANARY, "argument_name": CANARY, "argument_value": CANARY,
                "max_values": 1,
            }),
        ),
        ("schema-guessability", json!({"tool": "get_price", "arguments": {CANARY: CANARY}})),
        ("schema-guessability", json!({"tool": "find_item", "arguments": words})),
        ("instruction-fidelity", expect(json!({"outcome": "error", "text_contains": CANARY}))),
        ("instruction-fidelity", expect(json!({"outcome": "ok", "text_equals": format!("not {CANARY}")}))),
        ("instruction-fidelity", expect(json!({"outcome": "ok", "equals": {CANARY: CANARY}}))),
        ("instruction-fidelity", expect(json!({"outcome": "ok", "equals_paths": {format!("/{CANARY}"): CANARY}}))),
        ("instruction-fidelity", expect(json!({"outcome": "ok", "equals": {"structuredContent": CANARY}}))),
        ("instruction-fidelity", expect(json!({"outcome": "ok", "schema": {"required": [format!("{CANARY}!")]}}))),
        ("instruction-fidelity", expect(json!({"outcome": "ok", "text_matches": format!("^no {CANARY}")}))),
        (
            "degradation-over-n",
            json!({"tool": "get_price", "arguments": {"item": 7, "note": CANARY}, "max_attempts": 2}),
        ),
        ("latency-budget", json!({"tool": "find_item", "arguments": words, "attempts": 1, "max_latency_ms": 60_000})),
        (
            "error-honesty",
            json!({"tool": "find_item", "arguments": {CANARY: 1}, "max_attempts": 2, "expect_retryable": true}),
        ),
        ("output-schema", json!({"tool": "get_price", "arguments": {"item": CANARY}})),
        (
            "payload-bounds",
            json!({"tool": "find_item", "arguments": words, "field": CANARY, "size_bytes": 9, "expect_handled": true}),
        ),
        (
            "cancellation",
            json!({"tool": "find_item", "arguments": words, "grace_seconds": 1, "reason": CANARY, "require_honored": true}),
        ),
        ("contention", json!({"tool": "find_item", "arguments": words})),
        (
            "state-recovery",
            json!({
                "failure_tool": "find_item", "failure_arguments": {}, "recovery_tool": "find_item",
                "recovery_arguments": words, "validation_tool": "get_price", "validation_arguments": {CANARY: CANARY},
            }),
        ),
        (
            "workflow",
            json!({"repetitions": 1, "steps": [expect(json!({"outcome": "ok"})), expect(json!({"outcome": "error"}))]}),
        ),
        ("sampling", json!({"tool": "find_item", "arguments": words, "max_requests": 1})),
        ("elicitation", json!({"tool": "find_item", "arguments": {CANARY: 1}, "max_requests": 1, "respond": "accept"})),
        (
            "resource-subscription",
            json!({"uri": uri, "trigger_tool": "find_item", "trigger_arguments": words, "max_wait_seconds": 1}),
        ),
    ];
    let cases = kinds.into_iter().enumerate().map(|(number, (kind, mut case))| {
        case["probe"] = kind.into();
        case["id"] = format!("case-{number}").into();
        case["access"] = "read_only".into();
        case
    });
    json!({
        "version": 1, "$schema": format!("./{CANARY}.json"), "timeout_ms": 5_000,
        "sandboxes": {"bench": {"description": CANARY}}, "probes": cases.collect::<Vec<_>>(),
    })
}

/// Runs all cases and the battery, with every rendering.
fn probe(place: &Place, server: &[&str], options: &[&str]) -> Outcome {
    let manifest = place.file("manifest.json", manifest().to_string());
    let arguments = place.file("arguments.json", json!({"find_item": {"query": CANARY}}).to_string());
    let mut command = place.mcpeval(["probe", "--format", "text", "--full", "--confirm-read-only"]);
    command.args(options).arg("--manifest").arg(manifest).arg("--arguments").arg(arguments);
    for format in FORMATS {
        command.arg("--report").arg(format!("{format}={}", place.path().join(format).display()));
    }
    command.env("MCPEVAL_CANARY", CANARY).args(server);
    Running::start(command).finish(PATIENCE)
}

#[test]
fn no_rendering_holds_it() {
    for way in ["stdio", "http"] {
        let place = Place::new(programs!());
        let over_http = (way == "http").then(|| place.serve("canary"));
        let server = match &over_http {
            Some(fixture) => vec!["--url", &fixture.url],
            None => vec!["--", programs!().server, "canary"],
        };
        let outcome = probe(&place, &server, &["--lanes", "1"]);
        assert!(matches!(outcome.code, Some(1 | 3)), "{}", outcome.stderr);
        let report = fs::read_to_string(place.path().join("json")).expect("the report");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let reasons: Vec<&str> =
            report["cases"].as_array().expect("cases").iter().filter_map(|case| case["reason"].as_str()).collect();
        assert!(reasons.len() > 15, "most cases fail: {reasons:?}");
        assert!(report["readiness"]["score"].is_u64(), "and the battery ran: {}", outcome.stderr);
        let renderings = FORMATS.map(|format| fs::read_to_string(place.path().join(format)).expect("a rendering"));
        for text in renderings.iter().chain([&outcome.stdout, &outcome.stderr]) {
            assert!(!text.contains(CANARY), "{way}: {text}");
        }
        for text in &renderings {
            assert!(text.contains("instruction-fidelity"), "a rendering without its cases: {text}");
        }
        let json = place.path().join("json").display().to_string();
        let checked = place.run(["report", "--check", &json]);
        assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
    }
}

#[test]
fn where_it_is_asked_for_it_can_be_read() {
    let place = Place::new(programs!());
    let log = place.path().join("log").display().to_string();
    let outcome = probe(&place, &["--", programs!().server, "canary"], &["--run-log", &log]);
    let log = fs::read_to_string(log).expect("the run log");
    assert!(log.contains(CANARY), "the private log is the place for it");
    assert!(!outcome.stdout.contains(CANARY) && !outcome.stderr.contains(CANARY), "{}", outcome.stderr);
}

#[test]
fn a_refused_manifest_does_not_say_it_either() {
    let place = Place::new(programs!());
    for (path, value) in [
        ("/probes/0/max_tools", json!(CANARY)),
        ("/probes/5/argument_name", json!(format!("{CANARY} {CANARY}"))),
        ("/probes/8/expect/text_matches", json!(format!("({CANARY}"))),
        ("/probes/13/expect/schema", json!({"type": CANARY})),
        ("/probes/23/steps/1/expect/outcome", json!(CANARY)),
    ] {
        let mut manifest = manifest();
        match manifest.pointer_mut(path) {
            Some(place) => *place = value,
            None => manifest["probes"][8]["expect"]["text_matches"] = value,
        }
        let outcome = place.probe(&manifest, &[], "canary");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{path}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(path) && !outcome.stderr.contains(CANARY), "{path}: {}", outcome.stderr);
    }
}
