//! What people are told of documents and names: where, in one plain sentence, short, and with what there is instead.

use mcpeval_tests::programs;
use mcpeval_tests::run::Place;
use serde_json::{Value, json};

/// Characters of the longest sentence about a document; words of the document are cut before it.
const LONGEST: usize = 1000;

#[test]
fn a_document_cannot_speak_through_an_error() {
    let place = Place::new(programs!());
    let key = format!("\u{1b}[2J{}", "k".repeat(300_000));
    let case = json!({"probe": "pagination", "id": "a", "access": "read_only", "max_pages": 3});
    let with = |name: &str, value: Value| {
        let mut case = case.clone();
        case[name] = value;
        json!({"version": 1, "probes": [case]})
    };
    let manifests = [
        json!({"version": 1, &key: 1, "probes": [case]}),
        with(&key, json!(1)),
        with("probe", json!(key)),
        with("id", json!(key)),
        with("access", json!(key)),
        with("tool", json!(key)),
        json!({"version": 1, "components": {&key: {}}, "probes": [case]}),
        json!({"version": 1, "components": {"acme.x": {"path": key.replace('\u{1b}', "e"), "sha256": "00".repeat(32)}},
            "probes": [{"probe": "acme.x", "id": "a", "access": "read_only"}]}),
        json!({"version": 1, "sandboxes": {&key: {}}, "probes": [case]}),
    ];
    for manifest in manifests {
        let path = place.file("m.json", manifest.to_string());
        let outcome =
            place.run(["probe".as_ref(), "--manifest".as_ref(), path.as_os_str(), "--".as_ref(), "true".as_ref()]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
        assert!(outcome.stderr.chars().count() < LONGEST, "{}", outcome.stderr);
        assert!(!outcome.stderr.trim_end().chars().any(char::is_control), "{:?}", outcome.stderr);
    }
    let long = "x".repeat(50_000);
    for arguments in [
        vec!["explain", &long],
        vec!["schema", &long],
        vec!["probes", "show", &long],
        vec!["score", "--target", &long],
        vec!["score", "--demo", "--broken", &long],
        vec!["score", "--demo", "--skip-tool", long.get(..128).unwrap_or_default()],
    ] {
        let outcome = place.run(&arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
        assert!(outcome.stderr.chars().count() < LONGEST, "{}", outcome.stderr);
    }
}

#[test]
fn explain_describes_reasons_areas_and_kinds() {
    let place = Place::new(programs!());
    for (name, lines) in [
        ("catalog-short-description", &["used by: area:catalog", "hint: "][..]),
        (
            "catalog",
            &["area:catalog\n", "judges: ", "check advice catalog.description: ", "reason catalog-short-description: "],
        ),
        ("area:coverage", &["area:coverage\n", "check advice coverage.exercised: ", "measurement exercised: "]),
        (
            "latency-budget",
            &[
                "latency-budget\n",
                "field max_latency_ms: integer from 1 to 600000, required\n",
                "measurement latency_ms: ms\n",
            ],
        ),
    ] {
        let outcome = place.run(["explain", name]);
        assert_eq!(outcome.code, Some(0), "{name}: {}", outcome.stderr);
        for line in lines {
            assert!(outcome.stdout.contains(line), "{name}: {line:?} is missing:\n{}", outcome.stdout);
        }
        let outcome = place.run(["explain", name, "--format", "json"]);
        let document: Value = serde_json::from_str(&outcome.stdout).expect("a document");
        assert!(document.is_array() || document["checks"].is_array(), "{name}: {document}");
    }
    let outcome = place.run(["explain", "latency-bugdet"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("the nearest is \"latency-budget\""), "{}", outcome.stderr);
}

#[test]
fn a_failed_case_names_the_expectation_that_it_missed() {
    let place = Place::new(programs!());
    let case = |id: &str, expect: Value| {
        json!({"probe": "instruction-fidelity", "id": id, "access": "read_only", "tool": "search_notes",
            "arguments": {"query": "tea"}, "expect": expect})
    };
    let manifest = json!({"version": 1, "probes": [
        case("outcome", json!({"outcome": "error"})),
        case("text", json!({"outcome": "ok", "text_contains": "s3cret", "max_latency_ms": 600_000})),
        case("met", json!({"outcome": "ok"})),
    ]});
    let path = place.file("m.json", manifest.to_string());
    let outcome = place.run([
        "probe".as_ref(),
        "--gate-only".as_ref(),
        "--manifest".as_ref(),
        path.as_os_str(),
        "--".as_ref(),
        programs!().mcpeval.as_ref(),
        "demo".as_ref(),
    ]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    let missed: Vec<&str> = outcome.stdout.lines().filter(|line| line.starts_with("    missed ")).collect();
    assert_eq!(
        missed,
        [
            "    missed expect.outcome: wanted error, got ok",
            "    missed expect.text_contains: the text is not what it asks for"
        ],
        "{}",
        outcome.stdout
    );
    assert!(!outcome.stdout.contains("s3cret"), "{}", outcome.stdout);
}

#[test]
fn a_stored_report_may_begin_with_a_mark_and_must_add_up() {
    let place = Place::new(programs!());
    let outcome = place.run(["score", "--demo", "--format", "json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    place.file("plain.json", &outcome.stdout);
    place.file("marked.json", format!("\u{feff}{}", outcome.stdout));
    for arguments in [
        &["report", "marked.json"][..],
        &["report", "marked.json", "--check"],
        &["diff", "marked.json", "plain.json", "--max-readiness-drop", "0"],
    ] {
        let outcome = place.run(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.stderr);
    }
    let mut wrong: Value = serde_json::from_str(&outcome.stdout).expect("a report");
    wrong["passed"] = json!(false);
    place.file("wrong.json", wrong.to_string());
    place.file("cut.json", outcome.stdout.get(..outcome.stdout.len() / 2).unwrap_or_default());
    place.file("empty.json", "");
    for (name, words) in [
        ("wrong.json", "wrong.json: /passed: must be true: every part of it passed"),
        ("cut.json", ": the text ends "),
        ("empty.json", "empty.json:1:1: the document: the document is empty"),
    ] {
        for arguments in [&["report", name][..], &["diff", "plain.json", name]] {
            let outcome = place.run(arguments);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{arguments:?}");
            assert!(outcome.stderr.contains(words), "{arguments:?}: {}", outcome.stderr);
        }
    }
}
