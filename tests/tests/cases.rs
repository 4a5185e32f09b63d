//! The table of kinds over the fixture servers, and its completeness.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::thread;

use mcpeval_tests::cases::{Group, Row, Verdict, groups, manifest, rows};
use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{PATIENCE, Place, Running};
use serde_json::Value;

/// Runs at a time. Most wait for a timeout most of their time.
const WORKERS: usize = 4;

#[test]
fn every_case_comes_out_as_it_must() {
    let groups = groups(&rows());
    let work = Mutex::new(groups.iter());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(group) = { work.lock().expect("no thread panics with it").next() } {
                    let faults = faults_of(group);
                    failures.lock().expect("no thread panics with it").extend(faults);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no thread panics with it");
    assert!(failures.is_empty(), "{} faults:\n{}", failures.len(), failures.concat());
}

/// What is wrong with the rows of a group, and with the place that they leave.
fn faults_of(group: &Group) -> Vec<String> {
    let place = Place::new(programs!());
    let mut faults = group.verify(&place);
    faults.extend(place.clean().err().map(|left| format!("{} over {:?}: {left}", group.server, group.way)));
    faults
}

/// Built-in kinds to their reasons, as the program shows them.
fn shipped() -> BTreeMap<String, BTreeSet<String>> {
    let place = Place::new(programs!());
    let json = |arguments: &[&str]| -> Value {
        let outcome = place.run(arguments);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        serde_json::from_str(&outcome.stdout).expect("JSON")
    };
    let list = json(&["probes", "list", "--format", "json"]);
    let mut kinds = BTreeMap::new();
    for entry in list.as_array().expect("a list") {
        let kind = entry["kind"].as_str().expect("a kind");
        if entry["areas"].get(0).is_some() {
            continue;
        }
        let shown = json(&["probes", "show", kind]);
        let reasons = shown["reasons"].as_array().expect("a list");
        let labels = reasons.iter().filter_map(|reason| reason["label"].as_str());
        kinds.insert(kind.to_owned(), labels.map(str::to_owned).collect());
    }
    kinds
}

#[test]
fn every_kind_passes_somewhere_and_every_reason_is_given_somewhere() {
    let (rows, kinds) = (rows(), shipped());
    assert_eq!(kinds.len(), 20, "{:?}", kinds.keys());
    let mut gaps = Vec::new();
    for (kind, reasons) in &kinds {
        let of_kind = || rows.iter().filter(|row| row.kind == kind);
        if !of_kind().any(|row| row.verdict == Verdict::Passes && row.attempts > 0) {
            gaps.push(format!("no server lets {kind} pass"));
        }
        assert!(!reasons.is_empty(), "{kind} shows no reasons");
        for reason in reasons {
            if !of_kind().any(|row| matches!(row.verdict, Verdict::Fails(given, _) if given == reason)) {
                gaps.push(format!("no server gives {reason} to {kind}"));
            }
        }
    }
    for Row { kind, verdict, .. } in &rows {
        let known = match verdict {
            Verdict::Fails(reason, _) => kinds.get(*kind).is_some_and(|reasons| reasons.contains(*reason)),
            Verdict::Passes | Verdict::Errs(_) => kinds.contains_key(*kind),
        };
        assert!(known, "a row expects {verdict:?} of {kind}, which does not declare it");
    }
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

#[test]
fn every_case_keeps_the_schema_of_manifests() {
    let Some(real) = Real::find_validator("the schema of manifests") else { return };
    let place = Place::new(programs!());
    let schema = place.file("schema.json", place.run(["schema", "manifest"]).stdout);
    let check = |name: &str, manifest: &Value| {
        let file = place.file(name, manifest.to_string());
        let mut command = place.command(real.tool("python/bin/check-jsonschema"));
        command.arg("--schemafile").arg(&schema).arg(file);
        Running::start(command).finish(PATIENCE)
    };
    let cases: Vec<Value> =
        rows().iter().enumerate().map(|(number, row)| row.entry(&format!("case-{number}"))).collect();
    let outcome = check("good.json", &manifest(&cases));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    for case in cases.iter().step_by(20) {
        let mut wrong = case.clone();
        wrong["handle"] = 1.into();
        assert_eq!(check("wrong.json", &manifest(&[wrong])).code, Some(1), "{case} has no such field");
    }
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let mut group = groups(&rows()).into_iter().find(|group| group.server == "paged").expect("it has rows");
    let place = Place::new(programs!());
    assert_eq!(group.verify(&place), Vec::<String>::new());
    for row in &mut group.rows {
        row.attempts += 1;
    }
    assert_eq!(group.verify(&place).len(), group.rows.len());
    for row in &mut group.rows {
        *row = Row { attempts: row.attempts - 1, verdict: Verdict::Fails("pagination-invalid-entry", Some(1)), ..*row };
    }
    assert!(!group.verify(&place).is_empty());
}
