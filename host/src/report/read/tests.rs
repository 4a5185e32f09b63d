use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::assemble::{Floors, assemble};
use super::super::document::{Badge, Label, PerTool, Percent};
use super::super::tests_support::{Example, battery, kind, stopped};
use super::*;
use crate::outcome::NoVerdict;
use crate::probes::Manifest;

fn manifests() -> Vec<Manifest> {
    let mut manifests = battery();
    manifests.push(kind("latency-budget", &["unexpected-outcome", "latency-budget-exceeded"]));
    manifests.push(kind("token-cost", &["token-budget-exceeded"]));
    manifests
}

fn read(document: &Value) -> Result<Report> {
    read_text(&document.to_string())
}

fn read_text(text: &str) -> Result<Report> {
    let manifests = manifests();
    report("d", text, &Vocabulary::new(&manifests))
}

fn fault(document: &Value) -> String {
    let fault = read(document).expect_err("refused");
    assert_eq!(fault.exit_code(), 2);
    fault.to_string()
}

fn worked(change: impl FnOnce(&mut Example)) -> Value {
    let mut example = Example::worked();
    change(&mut example);
    let floors =
        Floors { min_score: Some(90), min_areas: BTreeMap::from([("catalog".to_owned(), 90)]), exclude_latency: true };
    serde_json::to_value(assemble(&example.facts(), Label::new("shop").unwrap(), &floors).report).unwrap()
}

fn with_cases() -> Value {
    let mut document = worked(|_| ());
    document["manifest_sha256"] = "cd".repeat(32).into();
    document["gate"] = json!({"passed": 1, "total": 3});
    document["cases"] = json!([
        {"id": "search-fast", "probe": "latency-budget", "tool": "search", "passed": false, "attempts": 3,
            "first_failure": 3, "reason": "latency-budget-exceeded", "hint": "Another hint than today's.",
            "detail": {"bound": "max_latency_ms", "limit": 800, "observed": 1240}, "measurements": {"latency_ms": 1240}},
        {"id": "tokens", "probe": "token-cost", "tool": null, "passed": true, "attempts": 1, "first_failure": null,
            "reason": null, "hint": null, "detail": null, "measurements": {"mean": 12.5, "total_tokens": 30, "outcome": "no-result",
            "per_tool": [{"tool": "search", "tokens": 20}, {"tool": "invalid-name#3", "tokens": 1.5}]}},
        {"id": "own", "probe": "acme.echo", "tool": null, "passed": false, "attempts": 1, "first_failure": null,
            "reason": "component-fault", "hint": "h", "detail": null, "measurements": {}},
    ]);
    document
}

#[test]
fn what_was_written_reads_back_the_same() {
    let unfinished = worked(|example| {
        let mut record = example.records[3].clone();
        record.areas.remove("coverage");
        example.records[3] = stopped(record, NoVerdict::TransportClosed, Some((1, 2)));
    });
    let unreachable = worked(|example| {
        (example.catalog, example.error) = (None, Some(NoVerdict::HandshakeFailed));
        example.records.clear();
    });
    for document in [worked(|_| ()), unfinished, unreachable, with_cases()] {
        let report = read(&document).unwrap();
        assert_eq!(report.to_json().unwrap(), super::super::canonical::document(&document));
        assert!(!report.is_legacy());
    }
    let report = read(&with_cases()).unwrap();
    assert_eq!(report.exit_code(), 3, "a case errored");
    let Some(super::super::document::Measured::PerTool(list)) = report.cases[1].measurements.get("per_tool") else {
        panic!("a list")
    };
    let PerTool { tool, unit, value } = &list[1];
    assert_eq!((tool.as_str(), unit.as_str(), value.as_f64()), ("invalid-name#3", "tokens", Some(1.5)));
}

#[test]
fn unknown_members_are_ignored_but_for_those_of_the_profile() {
    let mut document = with_cases();
    for pointer in ["", "/readiness", "/readiness/areas/0", "/cases/0", "/catalog/tools/0", "/generator"] {
        document.pointer_mut(pointer).unwrap()["more"] = json!({"deep": ["free text", 1]});
    }
    assert_eq!(read(&document).unwrap(), read(&with_cases()).unwrap());
    document["readiness"]["measurement_profile"]["more"] = json!(1);
    let fault = fault(&document);
    assert!(fault.contains("/readiness/measurement_profile"), "{fault}");
    assert!(fault.ends_with("a field that is not known here"), "{fault}");
}

#[test]
fn every_fault_names_its_place_and_no_value() {
    let secret = "s3cret, expected s3cret";
    for (pointer, value, words) in [
        ("/server", json!(secret), "/server: must match ^[A-Za-z0-9_.:-]{1,128}$"),
        ("/server", json!(7), "/server: must be a string"),
        ("/passed", json!(secret), "/passed: must be a boolean"),
        ("/generator", json!(secret), "/generator: must be an object"),
        ("/generator/name", json!(secret), "/generator/name: must be one of mcpeval"),
        ("/gate/passed", json!(-1), "/gate/passed: must be an integer from 0 to 4294967295"),
        ("/gate/passed", json!(1.5), "/gate/passed: must be an integer from 0 to 4294967295"),
        ("/gate/total", json!(4_294_967_296_u64), "/gate/total: must be an integer from 0 to 4294967295"),
        ("/readiness/score", json!(101), "/readiness/score: must be an integer from 0 to 100"),
        ("/readiness/badge", json!("https://example.com/"), "/readiness/badge: must match "),
        ("/readiness/areas", json!({"s3cret": 1}), "/readiness/areas: must be an array"),
        ("/readiness/areas/0/weight", json!(101), "/readiness/areas/0/weight: must be an integer from 0 to 100"),
        ("/readiness/areas/0/checks/0/score", json!(100), "/checks/0/score: must be an integer from 0 to 99"),
        ("/readiness/areas/0/checks/0/hint", json!("a\u{9b}b"), "/checks/0/hint: must match "),
        (
            "/readiness/areas/0/name",
            json!("protocl"),
            "/readiness/areas/0/name: is no area of our standards; the nearest is \"protocol\"; there are catalog, ",
        ),
        ("/readiness/areas/1/name", json!("protocol"), "/readiness/areas/1/name: the area stands twice"),
        (
            "/readiness/areas/0/checks/0/id",
            json!("catalog.entry"),
            "/areas/0/checks/0/id: is no check of the area protocol",
        ),
        (
            "/readiness/areas/0/checks/0/reason",
            json!("acme.own"),
            "/checks/0/reason: is no reason of the area protocol",
        ),
        ("/readiness/areas/2/measurements", json!({"a b": 1}), "/readiness/areas/2/measurements: must match "),
        ("/readiness/measurement_profile/lanes", json!(0), "/measurement_profile/lanes: must be an integer from 1 to"),
        (
            "/readiness/measurement_profile/schema",
            json!(secret),
            "/measurement_profile/schema: must be one of mcpeval.",
        ),
        ("/readiness/assessment/scope", json!(secret), "/scope: must be one of read-only-structural"),
        ("/readiness_error", json!(secret), "/readiness_error: must be one of evaluation-budget-exceeded, "),
        ("/readiness_gate/min_areas", json!({"s3cret": 1}), "/readiness_gate/min_areas/s3cret: is no area"),
        ("/catalog/tools/0/class", json!(secret), "/catalog/tools/0/class: must be one of "),
        ("/catalog/tools/1/name", json!("delete_item"), "/catalog/tools/1/name: the name stands twice"),
        ("/catalog/tools/0/parameters", json!({"0": "1"}), "/catalog/tools/0/parameters/0: must match "),
        ("/components", json!({"area:catalog": secret}), "/components/area:catalog: must match ^[0-9a-f]{64}$"),
        ("/cases", json!(null), "/cases: must be an array"),
        ("/cases/0/id", json!("0"), "/cases/0/id: must match "),
        ("/cases/1/id", json!("search-fast"), "/cases/1/id: the id stands twice"),
        (
            "/cases/0/probe",
            json!("latency-bugdet"),
            "/cases/0/probe: is no built-in kind; the nearest is \"latency-budget\"",
        ),
        ("/cases/0/reason", json!("token-budget-exceeded"), "/cases/0/reason: is no reason of latency-budget"),
        ("/cases/0/first_failure", json!(0), "/cases/0/first_failure: must be an integer from 1 to"),
        ("/cases/0/measurements/latency_ms", json!("Free text"), "/measurements/latency_ms: must match "),
        ("/cases/0/measurements/latency_ms", json!(true), "must be a number, a word or a list per tool"),
        (
            "/cases/1/measurements/per_tool",
            json!([{"tool": "a"}]),
            "/per_tool/0: must be an object of a tool and one value",
        ),
        (
            "/cases/1/measurements/per_tool",
            json!([{"tool": "a", "b": 1, "c": 2}]),
            "must be an object of a tool and one value",
        ),
        ("/schema", json!(secret), "/schema: must be \"mcpeval.probe-report/v2\" or \"mcpeval.probe-report/v1\""),
        ("/schema", json!(2), "/schema: must be a string"),
    ] {
        let mut document = with_cases();
        *document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        let fault = fault(&document);
        assert!(fault.contains(words), "{pointer}: {fault}");
        let pointed = fault.contains("/s3cret: ");
        assert!(pointed || !fault.contains("s3cret"), "{fault}");
    }
    for field in ["schema", "generator", "server", "passed", "cases"] {
        let mut document = with_cases();
        document.as_object_mut().unwrap().remove(field);
        assert!(fault(&document).contains(field), "{}", fault(&document));
    }
    for kind in [json!(null), json!(1), json!("x"), json!([])] {
        assert!(fault(&kind).starts_with("d:1:"), "{}", fault(&kind));
    }
}

#[test]
fn words_of_other_standards_and_vendors_need_only_keep_their_grammar() {
    let mut document = with_cases();
    document["readiness"]["standard"] = "acme/1".into();
    document["readiness"]["areas"][0]["name"] = "licence".into();
    document["readiness"]["areas"][0]["checks"][0]["id"] = "licence.file".into();
    document["readiness"]["areas"][0]["checks"][0]["reason"] = "acme.no-file".into();
    document["readiness_gate"]["min_areas"]["licence"] = 3.into();
    document["cases"][2]["reason"] = "acme.differs".into();
    document["components"]["acme.echo"] = "00".repeat(32).into();
    read(&document).unwrap();
    document["readiness"]["standard"] = "mcpeval-standard/4".into();
    assert!(fault(&document).contains("/readiness/areas/0/name: is no area"), "{}", fault(&document));
}

#[test]
fn a_document_of_the_first_version_shows_its_score_as_legacy() {
    let text = r#"{"schema": "mcpeval.probe-report/v1", "server": "shop", "readiness": {"score": 50, "more": "x"}, "cases": [
        {"id": "a", "probe": "latency-budget", "attempts": 3, "first_failure": 3, "reason": "latency-budget-exceeded",
            "measurements": {"latency_ms": 1240}},
        {"id": "b", "probe": "token-cost", "passed": true, "reason": null}]}"#;
    let report = read_text(text).unwrap();
    assert!(report.is_legacy() && report.readiness.is_none());
    assert_eq!(report.legacy_score, Some(Percent(50)));
    assert_eq!((report.exit_code(), report.passed), (1, false));
    assert_eq!(
        report.cases[0].hint.as_ref().unwrap().as_str(),
        "What latency-budget-exceeded means, and what to change."
    );
    let shown = super::super::text::render(&report, &super::super::render::Options::default());
    assert!(shown.contains("\nshop gate 1/2\nshop readiness legacy 50/100\n"), "{shown}");
    let again = report.to_json().unwrap();
    assert_eq!(read_text(&again).unwrap(), report, "it is written as what it is");
    assert!(!shown.contains("semantic"), "nothing was measured");
    let unnamed = read_text(r#"{"schema": "mcpeval.probe-report/v1", "cases": []}"#).unwrap();
    assert_eq!((unnamed.server.as_str(), unnamed.gate, unnamed.exit_code()), ("unknown", None, 0));
}

#[test]
fn the_earlier_profile_has_no_lanes() {
    let mut document = worked(|_| ());
    let profile = document["readiness"]["measurement_profile"].as_object_mut().unwrap();
    profile["schema"] = "mcpeval.measurement-profile/v1".into();
    assert!(fault(&document).contains("/readiness/measurement_profile: "), "{}", fault(&document));
    document["readiness"]["measurement_profile"].as_object_mut().unwrap().remove("lanes");
    let report = read(&document).unwrap();
    assert_eq!(serde_json::to_value(&report).unwrap(), document);
    document["readiness"]["measurement_profile"]["schema"] = "mcpeval.measurement-profile/v2".into();
    assert!(fault(&document).ends_with("the field \"lanes\" is missing"), "{}", fault(&document));
}

#[test]
fn hostile_texts_are_refused_with_their_place() {
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let unknown = |value: &str| with_cases().to_string().replacen('{', &format!("{{\"more\": {value}, "), 1);
    for (text, words) in [
        (String::new(), "d:1:1: the document: the document is empty; write a JSON value"),
        ("{".to_owned(), "d:1:2: the document: the text ends inside an object; close it with }"),
        ("\0".to_owned(), "d:1:1: "),
        ("{\"schema\": \"mcpeval.probe-report/v2\"} x".to_owned(), "d:1:"),
        (deep(100_000), "d:1:"),
        (
            with_cases().to_string().replacen("\"score\":", "\"score\":1e999, \"x\":", 1),
            "/checks/0/score: this number is too large to be held",
        ),
        (
            with_cases().to_string().replacen("\"passed\":false", "\"passed\":false,\"passed\":true", 1),
            "duplicate field",
        ),
        (
            with_cases().to_string().replacen("\"latency_ms\":1240", "\"latency_ms\":1,\"latency_ms\":2", 1),
            "/cases/0/measurements: a name is given twice",
        ),
    ] {
        let fault = read_text(&text).expect_err("refused").to_string();
        assert!(fault.contains(words), "{words}: {fault}");
    }
    read_text(&unknown(&deep(100))).unwrap();
    read_text(&format!("\u{feff}{}", with_cases())).unwrap();
    read_text(&unknown(&format!("\"{}\"", "\\u0000".repeat(100_000)))).unwrap();
}

#[test]
fn a_document_has_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.json");
    std::fs::File::create(&path).unwrap().set_len(DOCUMENT_LIMIT as u64 + 1).unwrap();
    let fault = source(&path).unwrap_err().to_string();
    assert!(fault.ends_with("large.json: the file is larger than 67108864 bytes"), "{fault}");
    std::fs::write(&path, [0xff]).unwrap();
    assert!(source(&path).unwrap_err().to_string().ends_with("the file is not UTF-8"));
    assert!(source(&folder.path().join("none")).unwrap_err().to_string().contains("none: "));
}

#[test]
fn no_changed_byte_is_worse_than_a_refusal() {
    let text = with_cases().to_string();
    for (at, _) in text.char_indices() {
        for change in ["", "\0", "\"", "[", "9", "-", "\u{10ffff}"] {
            let mut changed = text.clone();
            changed.replace_range(at..=at, change);
            match read_text(&changed) {
                Ok(report) => assert!(report.exit_code() <= 3),
                Err(fault) => assert!(fault.exit_code() == 2 && fault.to_string().starts_with("d:"), "{fault}"),
            }
        }
    }
}

#[test]
fn what_does_not_add_up_is_refused() {
    for (pointer, value, words) in [
        ("/passed", json!(true), "/passed: must be false: a part of it did not pass"),
        ("/gate", json!(null), "/gate: must not be null: there are cases"),
        ("/gate/total", json!(4), "/gate/total: must be 3, the number of such cases"),
        ("/gate/passed", json!(2), "/gate/passed: must be 1, the number of such cases"),
        ("/cases/0/passed", json!(true), "/cases/0/reason: must be null: the case passed"),
        ("/cases/2/passed", json!(true), "/cases/2/reason: must be null: the case passed"),
        ("/cases/1/passed", json!(false), "/cases/1/reason: must not be null: the case did not pass"),
        ("/cases/0/hint", json!(null), "/cases/0/hint: a case has a hint exactly if it has a reason"),
        ("/cases/1/hint", json!("A hint."), "/cases/1/hint: a case has a hint exactly if it has a reason"),
        ("/cases/0/first_failure", json!(4), "/cases/0/first_failure: 4 is more than the attempts, 3"),
        ("/cases/1/first_failure", json!(1), "/cases/1/first_failure: must be null: the case did not fail"),
        ("/cases/2/first_failure", json!(1), "/cases/2/first_failure: must be null: the case did not fail"),
        (
            "/cases/2/detail",
            json!({"bound": "max_latency_ms", "limit": 1, "observed": 2}),
            "/cases/2/detail: must be null: the case did not fail",
        ),
        (
            "/cases/1/measurements/per_tool",
            json!([{"tool": "a", "tokens": 1}, {"tool": "b", "tokens": 2}]),
            "/cases/1/measurements/per_tool: must be sorted, largest first, then by tool",
        ),
        ("/readiness_error", json!("transport-closed"), "/readiness_error: must be null: the readiness was measured"),
        ("/readiness/score", json!(66), "/readiness/score: must be 65, the weighted mean of the areas"),
        (
            "/readiness/score_without_latency",
            json!(66),
            "/readiness/score_without_latency: must be 65, the weighted mean of the areas",
        ),
        ("/readiness/badge", json!(Badge::of(64)), "/readiness/badge: is not the badge of the score"),
        ("/readiness/areas/1/score", json!(49), "/readiness_gate/shortfalls: must hold exactly"),
        ("/readiness/areas/1/score", json!(98), "/readiness/score: must be 75, the weighted mean of the areas"),
        ("/readiness/areas/1/weight", json!(21), "/readiness/areas: the weights add up to 101, not to 100"),
        (
            "/readiness/areas/4/measurements/score_without_latency",
            json!(101),
            "/areas/4/measurements/score_without_latency: must be an integer from 0 to 100",
        ),
        ("/readiness/attested_read_only", json!(true), "/readiness/attested_read_only: is not what the measurement"),
        ("/readiness/surface/tools", json!(5), "/readiness/surface/tools: must be the sum of read_only and writers"),
        ("/readiness/surface/exercised", json!(4), "/readiness/surface/exercised: is more than the tools"),
        ("/readiness/assessment/tools_exercised", json!(3), "/assessment/tools_exercised: must be 2, as exercised"),
        ("/readiness/assessment/read_only_tools", json!(0), "/assessment/read_only_tools: must be 3, as read_only"),
        ("/readiness/assessment/writer_tools_excluded", json!(0), "/writer_tools_excluded: must be 1, as writers"),
        ("/readiness_gate/passed", json!(true), "/readiness_gate/passed: must be false, as the shortfalls say"),
        ("/readiness_gate/passed", json!(null), "/readiness_gate/passed: must be false, as the shortfalls say"),
        ("/readiness_gate/shortfalls", json!([]), "/readiness_gate/shortfalls: must hold exactly the floors"),
        ("/readiness_gate/shortfalls/0/observed", json!(64), "/readiness_gate/shortfalls: must hold exactly"),
        ("/catalog/tools/0/name", json!("zzz"), "/catalog/tools: must be sorted by name"),
        (
            "/catalog/tools/0/required",
            json!(["00000000000000ff", "00000000000000aa"]),
            "/catalog/tools/0/required: must be sorted, and hold nothing twice",
        ),
    ] {
        let mut document = with_cases();
        *document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        let fault = fault(&document);
        assert!(fault.contains(words), "{pointer}: {fault}");
    }
    let mut document = with_cases();
    document["cases"] = json!([]);
    document["gate"] = json!({"passed": 0, "total": 0});
    read(&document).unwrap();
    document["readiness_gate"] = json!(null);
    assert!(fault(&document).ends_with("/passed: must be true: every part of it passed"), "{}", fault(&document));
    let (readiness, gate) = (document["readiness"].take(), with_cases()["readiness_gate"].clone());
    document["readiness_error"] = json!("transport-closed");
    document["readiness_partial"] = json!({"standard": readiness["standard"], "areas": readiness["areas"],
        "tools": {"finished": 1, "total": 2}});
    read(&document).unwrap();
    document["readiness_partial"]["tools"]["finished"] = json!(3);
    assert!(fault(&document).ends_with("/readiness_partial/tools/finished: is more than the total"));
    document["readiness_partial"]["tools"]["finished"] = json!(2);
    document["readiness_gate"] = gate;
    assert!(fault(&document).contains("/readiness_gate/shortfalls: "), "nothing was measured");
    document["readiness_gate"] = json!(null);
    document["readiness_error"] = json!(null);
    assert!(fault(&document).ends_with("/readiness_error: must say why the battery did not finish"));
}
