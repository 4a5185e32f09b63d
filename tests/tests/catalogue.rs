//! What the shipped components say of themselves: the catalogue of the folder, and words that mean one thing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use mcpeval_tests::programs;
use mcpeval_tests::run::Place;
use serde_json::Value;

/// The document that the program prints.
fn document(place: &Place, arguments: &[&str]) -> Value {
    let outcome = place.run(arguments);
    assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).expect("a JSON document")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

/// Every component as `probes show` prints it.
fn components(place: &Place) -> Vec<Value> {
    let listed = document(place, &["probes", "list", "--format", "json"]);
    let listed = listed.as_array().expect("a list");
    let name = |entry: &Value| match entry["areas"].get(0) {
        Some(area) => format!("area:{}", text(area)),
        None => text(&entry["kind"]).to_owned(),
    };
    listed.iter().map(|entry| document(place, &["probes", "show", &name(entry)])).collect()
}

#[test]
fn the_readme_lists_every_component_as_it_presents_itself() {
    let place = Place::new(programs!());
    let row = |component: &Value| {
        let (kind, title) = (text(&component["kind"]), text(&component["title"]));
        if component["areas"].get(0).is_some() {
            return format!("| `{kind}` | {title} |");
        }
        let mark = if component["access"] == "may-mutate" { " *mut*" } else { "" };
        format!("| `{kind}` | {title} |{mark} |")
    };
    let expected: BTreeSet<String> = components(&place).iter().map(row).collect();
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../probes/README.md"));
    let readme = readme.expect("the catalogue of probes");
    let listed: Vec<&str> = readme.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(listed.iter().map(|&line| line.to_owned()).collect::<BTreeSet<_>>(), expected);
    assert_eq!(listed.len(), expected.len(), "each component stands once");
}

#[test]
fn a_reason_has_one_hint_and_a_check_one_component() {
    let place = Place::new(programs!());
    let mut hints: BTreeMap<String, String> = BTreeMap::new();
    let mut checks: BTreeMap<String, String> = BTreeMap::new();
    for component in components(&place) {
        let kind = text(&component["kind"]);
        for reason in component["reasons"].as_array().expect("a list") {
            let (label, hint) = (text(&reason["label"]), text(&reason["hint"]));
            assert!(reason["checks"].get(0).is_some(), "{kind}: no check gives {label}");
            let known = hints.entry(label.to_owned()).or_insert_with(|| hint.to_owned());
            assert_eq!(known, hint, "{kind}: another component says something else of {label}");
        }
        for check in component["checks"].as_array().expect("a list") {
            let id = text(&check["id"]);
            assert_eq!(checks.insert(id.to_owned(), kind.to_owned()), None, "{kind}: {id} is declared elsewhere, too");
            let own = component["areas"].get(0).is_some() || id.starts_with(&format!("{kind}."));
            assert!(own, "{id} is not named after {kind}");
        }
    }
    assert!(hints.len() > 20 && checks.len() > 20, "only {} reasons and {} checks", hints.len(), checks.len());
}

#[test]
fn a_kind_is_shown_though_an_area_has_its_name() {
    let place = Place::new(programs!());
    let named = |name: &str| document(&place, &["probes", "show", name])["kind"].clone();
    assert_eq!(named("error-honesty"), "error-honesty");
    assert_eq!(named("area:error-honesty"), "exercise");
    assert_eq!(named("catalog"), "catalog", "an area can be named without its prefix where no kind has its name");
}
