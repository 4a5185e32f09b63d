//! Manifests of mcpeval 0.8 load and run unchanged.

use mcpeval_tests::programs;
use mcpeval_tests::run::Place;
use serde_json::Value;

fn manifest(text: &str) -> Value {
    serde_json::from_str(text).expect("a manifest in JSON")
}

/// Cases, and the ids of those that did not pass.
fn run(text: &str, server: &str, http: bool) -> (usize, Vec<String>) {
    let place = Place::new(programs!());
    let (manifest, options) = (manifest(text), ["--gate-only", "--allow-mutation"]);
    let outcome =
        if http { place.probe_http(&manifest, &options, server) } else { place.probe(&manifest, &options, server) };
    let report = outcome.report();
    let cases = report.at("/cases").as_array().expect("cases");
    assert_eq!(cases.len(), manifest["probes"].as_array().map_or(0, Vec::len));
    let failed = cases.iter().filter(|case| case["passed"] != true).map(|case| case["id"].to_string());
    (cases.len(), failed.collect())
}

#[test]
fn what_it_scaffolded_passes() {
    let text = include_str!("../fixtures/manifests-0.8/scaffolded.json");
    for http in [false, true] {
        assert_eq!(run(text, "good", http), (14, Vec::new()));
    }
}

#[test]
fn every_kind_has_the_fields_that_it_had() {
    let text = include_str!("../fixtures/manifests-0.8/every-kind.json");
    for http in [false, true] {
        // The workshop lists a schema that does not compile, which 0.8 did not look at.
        assert_eq!(run(text, "workshop", http), (25, vec!["\"pages\"".to_owned()]));
    }
}

#[test]
fn its_bounds_are_taken() {
    let place = Place::new(programs!());
    let every: Value = manifest(include_str!("../fixtures/manifests-0.8/every-kind.json"));
    for (field, value) in [
        ("/timeout_ms", 100),
        ("/timeout_ms", 600_000),
        ("/probes/2/max_pages", 1_000),
        ("/probes/10/attempts", 20),
        ("/probes/10/max_latency_ms", 600_000),
        ("/probes/14/size_bytes", 16_000_000),
        ("/probes/15/grace_seconds", 60),
        ("/probes/19/repetitions", 20),
    ] {
        let mut changed = every.clone();
        *changed.pointer_mut(field).unwrap_or_else(|| panic!("no {field}")) = value.into();
        let outcome = place.probe(&changed, &["--gate-only", "--allow-mutation"], "exits-at-once");
        assert_eq!(outcome.code, Some(3), "{field} {value}: {}", outcome.stderr);
    }
}
