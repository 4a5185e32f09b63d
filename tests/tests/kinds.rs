//! Kinds of third parties: how they are named, pinned and loaded, and what becomes of one that breaks its word. The case
//! after it is judged as if nothing had happened.

use std::fmt::Write as _;

use mcpeval_tests::guests::{self, Guest, Manifest, REASON};
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The kind that they all declare.
const KIND: &str = "acme.hostile";

/// A word that components try to bring into the report.
const CANARY: &str = "swordfish";

macro_rules! kind {
    ($name:literal) => {
        kind!($name, |_| {})
    };
    ($name:literal, $manifest:expr) => {
        Guest {
            name: $name,
            source: include_str!(concat!("../guests/", $name, ".wat")),
            manifest: |manifest| {
                manifest.serves_area = false;
                let edit: fn(&mut Manifest) = $manifest;
                edit(manifest);
            },
        }
    };
}

const PASSES: Guest = kind!("kind-passes");

fn digest(component: &[u8]) -> String {
    Sha256::digest(component).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn case(fields: Value) -> Value {
    let mut case = json!({"probe": KIND, "id": "theirs", "access": "read_only"});
    if let (Some(case), Value::Object(fields)) = (case.as_object_mut(), fields) {
        case.extend(fields);
    }
    case
}

/// Their case and one of ours after it.
fn manifest(case: &Value, components: &Value) -> Value {
    let ours = json!({"probe": "pagination", "id": "ours", "access": "read_only", "max_pages": 3});
    json!({
        "version": 1, "sandboxes": {"bench": {"description": "A bench."}},
        "components": components, "probes": [case, ours],
    })
}

/// Runs their case, the component pinned by the manifest.
fn probe(place: &Place, guest: &Guest, fields: Value, options: &[&str]) -> Outcome {
    let component = guests::build(guest);
    place.file("theirs.wasm", &component);
    let components = json!({KIND: {"path": "theirs.wasm", "sha256": digest(&component)}});
    place.probe(&manifest(&case(fields), &components), &[&["--gate-only"], options].concat(), "good")
}

fn wrote_to_the_server(place: &Place) -> bool {
    place.journal_lines().iter().any(|line| line == "tools/call delete_item")
}

#[track_caller]
fn assert_refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.trim().lines().count(), 1, "{}", outcome.stderr);
    for word in words {
        assert!(outcome.stderr.contains(word), "{word:?} is missing: {}", outcome.stderr);
    }
}

/// A component, its label; none for a pass.
const TABLE: &[(Guest, Option<&str>)] = &[
    (PASSES, None),
    (kind!("kind-fails"), Some(REASON)),
    (kind!("kind-error"), Some("transport-timeout")),
    (kind!("kind-fault"), Some("transport-timeout")),
    (kind!("kind-calls-writer"), None),
    (kind!("kind-error-own"), Some("component-fault")),
    (kind!("kind-fails-later"), Some("component-fault")),
    (kind!("kind-bound"), Some("component-fault")),
    (kind!("kind-measures-twice"), Some("component-fault")),
    (kind!("kind-measures-other"), Some("component-fault")),
    (kind!("kind-measures-number"), Some("component-fault")),
    (kind!("kind-scores"), Some("component-fault")),
    (kind!("kind-trap"), Some("component-fault")),
    (kind!("undeclared-word"), Some("component-fault")),
    (kind!("undeclared-reason"), Some("component-fault")),
    (kind!("undeclared-check"), Some("component-fault")),
    (kind!("host-reason"), Some("component-fault")),
    (kind!("unknown-subject"), Some("component-fault")),
    (kind!("forge-evidence"), Some("component-fault")),
    (kind!("forge-handle"), Some("component-fault")),
    (kind!("keep-handles"), Some("component-fault")),
    (kind!("grow"), Some("component-fault")),
    (kind!("recurse"), Some("component-fault")),
    (kind!("stray-pointer"), Some("component-fault")),
    (kind!("bad-utf8"), Some("component-fault")),
    (kind!("flood-measurements"), Some("component-fault")),
];

#[test]
fn every_kind_gets_its_label_and_the_next_case_is_unaffected() {
    let mut faults = Vec::new();
    for (guest, label) in TABLE {
        let place = Place::new(programs!());
        let outcome = probe(&place, guest, json!({}), &[]);
        let code = match label {
            None => 0,
            Some(REASON) => 1,
            Some(_) => 3,
        };
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        let (theirs, ours) = (&report["cases"][0], &report["cases"][1]);
        let right = outcome.code == Some(code)
            && theirs["reason"].as_str() == *label
            && ours["passed"] == true
            && !wrote_to_the_server(&place)
            && ![&outcome.stdout, &outcome.stderr].iter().any(|text| text.contains(CANARY));
        if !right || outcome.stderr.contains("panicked") {
            faults
                .push(format!("{}: exit code {:?}, {theirs}, {ours}, {}\n", guest.name, outcome.code, outcome.stderr));
        }
        faults.extend(place.clean().err());
    }
    assert!(faults.is_empty(), "{}", faults.concat());
}

#[test]
fn a_kind_that_never_ends_is_ended() {
    let place = Place::new(programs!());
    let outcome = probe(&place, &kind!("spin"), json!({}), &[]);
    let report = outcome.report();
    assert_eq!((outcome.code, report.at("/cases/0/reason")), (Some(3), &json!("component-fault")));
    assert_eq!(report.at("/cases/1/passed"), true, "{}", outcome.stderr);
    place.assert_clean();
}

#[test]
fn a_failed_case_shows_what_the_component_declares() {
    let place = Place::new(programs!());
    let outcome = probe(&place, &kind!("kind-fails"), json!({}), &[]);
    let report = outcome.report();
    let case = report.at("/cases/0");
    assert_eq!(
        (case["hint"].as_str(), case["first_failure"].as_u64()),
        (Some("Something is broken; mend it."), Some(1))
    );
    let components = report.at("/components").as_object().expect("components");
    assert_eq!(components.keys().collect::<Vec<_>>(), [KIND, "pagination"]);
    assert_eq!(components[KIND], digest(&guests::build(&kind!("kind-fails"))));
}

#[test]
fn a_writer_is_called_only_in_a_case_that_may() {
    let mutating = || json!({"access": "mutating", "sandbox": "bench"});
    let may = kind!("kind-calls-writer", |manifest| manifest.may_mutate = true);
    let place = Place::new(programs!());
    let outcome = probe(&place, &may, json!({}), &["--allow-mutation"]);
    assert_eq!((outcome.code, wrote_to_the_server(&place)), (Some(0), false), "{}", outcome.stderr);
    let outcome = probe(&place, &may, mutating(), &[]);
    assert_refused(&outcome, &["--allow-mutation"]);
    let outcome = probe(&place, &kind!("kind-calls-writer"), mutating(), &["--allow-mutation"]);
    assert_refused(&outcome, &["/probes/0/access", "read_only"]);
    assert!(!wrote_to_the_server(&place));
    let outcome = probe(&place, &may, mutating(), &["--allow-mutation"]);
    assert_eq!((outcome.code, wrote_to_the_server(&place)), (Some(1), true), "{}", outcome.stderr);
}

#[test]
fn a_need_that_is_not_met_is_a_pass_without_requests() {
    let place = Place::new(programs!());
    let needy = kind!("kind-fails", |manifest| manifest.needs = vec!["completions".to_owned()]);
    let outcome = probe(&place, &needy, json!({}), &[]);
    let report = outcome.report();
    assert_eq!((outcome.code, report.at("/cases/0/attempts")), (Some(0), &json!(0)), "{}", outcome.stderr);
}

#[test]
fn fields_are_held_to_the_schema_of_the_component() {
    let strict = kind!("kind-passes", |manifest| {
        manifest.config_schema = r#"{
            "type": "object", "additionalProperties": false, "required": ["zeal_tool"],
            "properties": {
                "zeal_tool": {"type": "string", "format": "tool"}, "alpha_tool": {"type": "string", "format": "tool"},
                "depth": {"type": "integer", "minimum": 1, "maximum": 3}
            }
        }"#
        .to_owned();
    });
    let place = Place::new(programs!());
    let run = |fields: Value| probe(&place, &strict, fields, &[]);
    let outcome = run(json!({"zeal_tool": "get_price", "alpha_tool": "find_item", "depth": 3}));
    assert_eq!(
        (outcome.code, outcome.report().at("/cases/0/tool")),
        (Some(0), &json!("find_item")),
        "{}",
        outcome.stderr
    );
    let outcome = run(json!({"zeal_tool": "get_price", "alpha_tool": null}));
    assert_eq!(outcome.report().at("/cases/0/tool"), "get_price");
    assert_refused(&run(json!({})), &["/probes/0", "zeal_tool"]);
    assert_refused(&run(json!({"zeal_tool": "get_price", "dpth": 1})), &["/probes/0/dpth", "\"depth\""]);
    assert_refused(&run(json!({"zeal_tool": "get_price", "depth": 4})), &["/probes/0/depth", "from 1 to 3"]);
    assert_refused(&run(json!({"zeal_tool": "get_prices"})), &["/probes/0/zeal_tool", "\"get_price\""]);
    assert_refused(&run(json!({"zeal_tool": "delete_item"})), &["/probes/0/zeal_tool", "read_only"]);
    // A schema that allows them does not open the door to fields it does not name.
    let open = kind!("kind-passes");
    assert_refused(&probe(&place, &open, json!({"anything": 1}), &[]), &["/probes/0/anything"]);
}

#[test]
fn a_component_that_cannot_be_used_is_refused_before_the_server_starts() {
    let place = Place::new(programs!());
    let passes = guests::build(&PASSES);
    let area = guests::build(&Guest { manifest: |_| {}, ..PASSES });
    let module = guests::core_module(&PASSES);
    let other = guests::build(&kind!("kind-passes", |manifest| "acme.other".clone_into(&mut manifest.kind)));
    let foreign = guests::build(&kind!("kind-passes", |manifest| "zeta.broken".clone_into(&mut manifest.reasons[0].0)));
    let pipe = guests::build(&kind!("pipe"));
    let door = guests::build(&kind!("unknown-import"));
    for (name, bytes) in [
        ("passes.wasm", &passes),
        ("area.wasm", &area),
        ("module.wasm", &module),
        ("other.wasm", &other),
        ("foreign.wasm", &foreign),
        ("pipe.wasm", &pipe),
        ("door.wasm", &door),
    ] {
        place.file(name, bytes);
    }
    let pin = |path: &str, bytes: &[u8]| json!({KIND: {"path": path, "sha256": digest(bytes)}});
    for (components, words) in [
        (pin("passes.wasm", &area), &["passes.wasm"][..]),
        (pin("none.wasm", &passes), &["none.wasm"]),
        (pin("area.wasm", &area), &["areas"]),
        (pin("module.wasm", &module), &["module.wasm"]),
        (pin("other.wasm", &other), &[KIND, "acme.other"]),
        (pin("foreign.wasm", &foreign), &["zeta.broken"]),
        (pin("pipe.wasm", &pipe), &["pipe", "--grant acme.hostile=pipe"]),
        (pin("door.wasm", &door), &["acme:evil/door"]),
        (json!({KIND: {"path": "passes.wasm"}}), &["/components/acme.hostile", "sha256"]),
        (json!({KIND: {"path": "passes.wasm", "sha256": CANARY}}), &["/components/acme.hostile/sha256"]),
        (json!({KIND: {"path": "", "sha256": digest(&passes)}}), &["/components/acme.hostile/path"]),
        (json!({KIND: {"path": "passes.wasm", "sha256": digest(&passes), "pth": 1}}), &["/pth", "\"path\""]),
        (json!({"pagination": {"path": "passes.wasm", "sha256": digest(&passes)}}), &["/components/pagination"]),
        (json!({"Acme.hostile": {"path": "passes.wasm", "sha256": digest(&passes)}}), &["/components/Acme.hostile"]),
        (json!({"acme.host.ile": {"path": "passes.wasm", "sha256": digest(&passes)}}), &["/components/acme.host.ile"]),
        (json!({}), &["/probes/0/probe", "known kinds"]),
    ] {
        let outcome = place.probe(&manifest(&case(json!({})), &components), &["--gate-only"], "good");
        assert_refused(&outcome, words);
        assert!(!outcome.stderr.contains(CANARY), "{}", outcome.stderr);
    }
    assert_eq!(place.journal_lines(), Vec::<String>::new());
}

#[test]
fn a_component_comes_from_an_option_before_the_manifest() {
    let place = Place::new(programs!());
    let fails = place.file("fails.wasm", guests::build(&kind!("kind-fails"))).display().to_string();
    let passes = guests::build(&PASSES);
    place.file("passes.wasm", &passes);
    let components = json!({KIND: {"path": "passes.wasm", "sha256": digest(&passes)}});
    let option = format!("{KIND}={fails}");
    let outcome =
        place.probe(&manifest(&case(json!({})), &components), &["--gate-only", "--component", &option], "good");
    assert_eq!((outcome.code, outcome.report().at("/cases/0/reason")), (Some(1), &json!(REASON)), "{}", outcome.stderr);
    // An option needs no pin, and a manifest without components works with it.
    let outcome =
        place.probe(&manifest(&case(json!({})), &Value::Null), &["--gate-only", "--component", &option], "good");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    // Built-in kinds are not replaced.
    let option = format!("pagination={fails}");
    let outcome =
        place.probe(&manifest(&case(json!({})), &components), &["--gate-only", "--component", &option], "good");
    assert_refused(&outcome, &["pagination"]);
}

#[test]
fn paths_are_relative_to_the_manifest() {
    let place = Place::new(programs!());
    let folder = place.path().join("gates");
    std::fs::create_dir(&folder).expect("a folder");
    let passes = guests::build(&PASSES);
    place.file("gates/passes.wasm", &passes);
    let components = json!({KIND: {"path": "./passes.wasm", "sha256": digest(&passes).to_uppercase()}});
    let file = place.file("gates/manifest.json", manifest(&case(json!({})), &components).to_string());
    let outcome = Running::start(place.probe_command(&file, &["--gate-only"], "good")).finish(PATIENCE);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(!outcome.stdout.contains("passes.wasm"), "a path is in the report");
}

#[test]
fn a_power_needs_its_grant() {
    let place = Place::new(programs!());
    let pipe = kind!("pipe");
    let outcome = probe(&place, &pipe, json!({}), &["--grant", "acme.hostile=http"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    let outcome = probe(&place, &pipe, json!({}), &["--grant", "acme.hostil=pipe"]);
    assert_refused(&outcome, &["acme.hostile"]);
}
