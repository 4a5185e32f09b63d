use serde_json::{Value, json};

use super::super::assemble::{Floors, assemble};
use super::super::document::Label;
use super::super::tests_support::{Example, battery, kind, measuring};
use super::*;
use crate::outcome::NoVerdict;
use crate::probes::{Manifest, Metric};

const SECRET: &str = "S3CRET free text";

fn manifests() -> Vec<Manifest> {
    let mut manifests = battery();
    let mut latency = kind("latency-budget", &["latency-budget-exceeded"]);
    latency.config_schema = json!({"properties": {"max_latency_ms": {}}}).to_string();
    latency.metrics = ["latency_ms", "outcome", "per_tool"]
        .map(|name| Metric {
            name: name.to_owned(),
            unit: "ms".to_owned(),
            area: None,
            labels: vec!["done".to_owned()],
        })
        .to_vec();
    manifests.extend([latency, measuring(kind("other", &[]), &[])]);
    manifests
}

fn hint(reason: &str) -> String {
    format!("What {reason} means, and what to change.")
}

fn document() -> Value {
    let mut report = serde_json::to_value(
        assemble(&Example::worked().facts(), Label::new("shop").unwrap(), &Floors::default()).report,
    )
    .unwrap();
    report["cases"] = json!([{"id": "search-fast", "probe": "latency-budget", "tool": "search", "passed": false, "attempts": 3,
        "first_failure": 3, "reason": "latency-budget-exceeded", "hint": hint("latency-budget-exceeded"),
        "detail": {"bound": "max_latency_ms", "limit": 800, "observed": 1240},
        "measurements": {"latency_ms": 1240, "outcome": "done", "per_tool": [{"tool": "search", "ms": 3}]}}]);
    report
}

fn findings(document: &Value) -> Findings {
    let manifests = manifests();
    check("d", &document.to_string(), &Vocabulary::new(&manifests)).unwrap()
}

fn broken(document: &Value) -> Vec<String> {
    let findings = findings(document);
    assert!(!findings.text().contains("S3CRET"), "{}", findings.text());
    findings.broken.into_keys().collect()
}

#[test]
fn what_mcpeval_writes_may_be_shared() {
    let found = findings(&document());
    assert_eq!(found, Findings::default());
    assert_eq!((found.exit_code(), found.text().as_str()), (0, "every string is of a class that may be shared\n"));
    let report = document();
    let comparison = json!([{"endpoint": "blue", "report": report}]);
    assert_eq!(findings(&comparison), Findings::default());
    let diff = json!({"schema": "mcpeval.probe-diff/v2", "readiness": {"baseline_standard": "mcpeval-standard/2",
        "baseline_profile": {"schema": "mcpeval.measurement-profile/v1", "evaluator_version": "0.8.0"}},
        "catalog": {"changes": [{"tool": "a", "change": "class-changed", "severity": "breaking", "from": "writer"}]},
        "cases": [{"id": "a", "probe": "latency-budget", "verdict": "fixed", "baseline_reason": "latency-budget-exceeded"}],
        "removed": ["a"], "added": []});
    assert_eq!(findings(&diff), Findings::default());
    let earlier = json!({"schema": "mcpeval.probe-report/v1", "server": "shop", "readiness": {"score": 50}, "cases": report["cases"]});
    assert_eq!(findings(&earlier), Findings::default());
}

#[test]
fn every_planted_string_is_found_where_it_stands() {
    for pointer in [
        "/server",
        "/generator/version",
        "/manifest_sha256",
        "/passed",
        "/gate",
        "/readiness/score",
        "/readiness/standard",
        "/readiness/badge",
        "/readiness/surface/tools",
        "/readiness/areas/0/name",
        "/readiness/areas/0/weight",
        "/readiness/areas/0/checks/0/id",
        "/readiness/areas/0/checks/0/tool",
        "/readiness/areas/0/checks/0/observed",
        "/readiness/areas/0/checks/0/reason",
        "/readiness/areas/0/checks/0/hint",
        "/readiness/areas/2/measurements/catalog_tokens",
        "/readiness/measurement_profile/platform",
        "/readiness/measurement_profile/skip_tools",
        "/readiness/assessment/scope",
        "/readiness_error",
        "/readiness_gate",
        "/catalog/tools/0/name",
        "/catalog/tools/0/class",
        "/catalog/tools/0/required",
        "/catalog/tools/0/output_schema",
        "/components/area:catalog",
        "/cases/0/id",
        "/cases/0/probe",
        "/cases/0/tool",
        "/cases/0/attempts",
        "/cases/0/reason",
        "/cases/0/hint",
        "/cases/0/detail/bound",
        "/cases/0/detail/limit",
        "/cases/0/measurements/latency_ms",
        "/cases/0/measurements/per_tool/0/tool",
        "/cases/0/measurements/per_tool/0/ms",
    ] {
        for planted in [json!(SECRET), json!([SECRET]), json!({"a": [{"b": SECRET}]})] {
            let mut report = document();
            *report.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = planted.clone();
            let found = broken(&report);
            assert!(found.iter().any(|place| place.starts_with(pointer)), "{pointer} {planted}: {found:?}");
        }
    }
}

#[test]
fn unknown_members_break_it_with_every_string_in_them() {
    let mut report = document();
    report["readiness"]["notes"] = json!({"a/b": [1, SECRET], "n": 1});
    assert_eq!(
        broken(&report),
        ["/readiness/notes", "/readiness/notes/a~1b", "/readiness/notes/a~1b/1", "/readiness/notes/n"]
    );
    let mut report = document();
    report["cases"][0][SECRET] = json!(1);
    assert_eq!(broken(&report), ["/cases/0"], "a free name is not shown");
    let mut report = document();
    report["cases"][0]["measurements"][SECRET] = json!(1);
    assert_eq!(broken(&report), ["/cases/0/measurements"]);
    let mut report = document();
    report["components"]["Name"] = json!("00".repeat(32));
    assert_eq!(broken(&report), ["/components/Name"]);
}

#[test]
fn words_must_be_those_of_their_component() {
    for (pointer, value, place) in [
        ("/cases/0/hint", json!("Another hint."), "/cases/0/hint"),
        ("/cases/0/reason", json!("catalog-short-description"), "/cases/0/reason"),
        ("/cases/0/reason", json!("transport-closed"), "/cases/0/hint"),
        ("/cases/0/reason", json!(null), "/cases/0/hint"),
        ("/cases/0/probe", json!("latency"), "/cases/0/probe"),
        ("/cases/0/detail/bound", json!("max_tools"), "/cases/0/detail/bound"),
        ("/cases/0/measurements/outcome", json!("secret-word"), "/cases/0/measurements/outcome"),
        ("/cases/0/measurements", json!({"secret_name": 1}), "/cases/0/measurements/secret_name"),
        ("/cases/0/measurements/per_tool/0", json!({"tool": "a", "secret": 1}), "/cases/0/measurements/per_tool/0"),
        ("/readiness/areas/0/name", json!("secret-area"), "/readiness/areas/0/name"),
        ("/readiness/areas/0/checks/0/id", json!("protocol.secret"), "/readiness/areas/0/checks/0/id"),
        ("/readiness/areas/0/checks/0/reason", json!("secret-reason"), "/readiness/areas/0/checks/0/reason"),
        ("/readiness/areas/0/checks/0/hint", json!(hint("other")), "/readiness/areas/0/checks/0/hint"),
        ("/readiness/areas/0/measurements", json!({"secret_name": 1}), "/readiness/areas/0/measurements/secret_name"),
        ("/readiness/score", json!(64), "/readiness/badge"),
    ] {
        let mut report = document();
        *report.pointer_mut(pointer).unwrap() = value;
        let found = broken(&report);
        assert!(found.iter().any(|found| found == place), "{pointer}: {found:?}");
    }
}

#[test]
fn labels_of_components_that_are_not_loaded_are_listed() {
    let mut report = document();
    report["cases"][0]["probe"] = json!("acme.echo");
    report["cases"][0]["reason"] = json!("acme.differs");
    report["components"]["acme.echo"] = json!("00".repeat(32));
    report["readiness"]["standard"] = json!("acme/1");
    report["readiness"]["areas"][0] = json!({"name": "licence", "weight": 1, "score": 1, "measurements": {"files": 1}, "checks": [
        {"id": "licence.file", "tool": null, "score": 0, "observed": null, "reason": "acme.none", "hint": "Add one."}]});
    let hints = ["/cases/0/hint", "/readiness/areas/0/checks/0/hint"];
    let found = findings(&report);
    assert_eq!(broken(&report), hints, "nothing proves a text whose component is not loaded");
    assert!(found.text().contains("broken /cases/0/hint: its component is not loaded"), "{}", found.text());
    for label in ["acme.echo", "acme.differs", "licence", "licence.file", "acme.none", "files", "latency_ms"] {
        assert!(found.unknown.contains(label), "{label}: {:?}", found.unknown);
    }
    assert_eq!(found.exit_code(), 1);
    assert!(found.text().contains("unknown acme.echo: its component is not loaded\n"));
    report["cases"][0]["reason"] = json!("transport-closed");
    report["cases"][0]["hint"] = json!(NoVerdict::TransportClosed.hint());
    assert_eq!(broken(&report), hints.get(1..).unwrap(), "the host's own hints are known");
    for pointer in hints {
        *report.pointer_mut(pointer).unwrap() = json!(null);
    }
    assert_eq!(broken(&report), [""; 0], "labels keep their grammar, and no more is known");
}

#[test]
fn guidance_says_its_own_words() {
    let (reason, hint) = crate::guidance::REASONS[0];
    let mut guidance = json!({"schema": "mcpeval.guidance-report/v1", "server": "shop", "required_tools": ["search"],
        "profiles": [{"profile": "none", "tools": ["search"], "error": null}],
        "defects": [{"profile": "none", "tool": "search", "reason": reason, "hint": hint, "available_in": ["all"]}]});
    assert_eq!(findings(&guidance), Findings::default());
    guidance["defects"][0]["hint"] = json!("Another hint.");
    guidance["profiles"][0]["tools"][0] = json!(SECRET);
    assert_eq!(broken(&guidance), ["/defects/0/hint", "/profiles/0/tools/0"]);
}

#[test]
fn hostile_texts_are_refused_and_never_quoted() {
    let manifests = manifests();
    let vocabulary = Vocabulary::new(&manifests);
    for text in [
        String::new(),
        "nul".to_owned(),
        format!("\"{SECRET}\""),
        format!("{{\"schema\": \"{SECRET}\"}}"),
        format!("{{\"schema\": [\"{SECRET}\"]}}"),
        format!("{{\"schema\": \"mcpeval.probe-report/v2\", \"{SECRET}\": 1, \"{SECRET}\": 2}}"),
        format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
        "{\"schema\": \"mcpeval.probe-report/v2\", \"passed\": 1e999}".to_owned(),
    ] {
        let fault = check("d", &text, &vocabulary).unwrap_err();
        assert_eq!(fault.exit_code(), 2);
        assert!(fault.to_string().starts_with("d:") && !fault.to_string().contains("S3CRET"), "{fault}");
    }
    for value in [json!(null), json!(true), json!(-1), json!(1.5), json!("\0"), json!([[[[]]]]), json!({"a": {}})] {
        for member in ["server", "generator", "readiness", "readiness_gate", "components", "catalog", "cases"] {
            let mut report = document();
            report[member] = value.clone();
            let text = report.to_string();
            let found = check("d", &text, &vocabulary).unwrap();
            assert!(value != json!("\0") || found.broken.contains_key(&format!("/{member}")), "{member}");
        }
    }
}
