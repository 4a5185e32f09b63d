//! What `diff` and `compare` find between two versions of one published server, and between its two transports.

use std::ffi::OsString;

use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use serde_json::Value;

fn run(place: &Place, arguments: &[&str], server: &[OsString]) -> Outcome {
    let mut command = place.mcpeval(arguments);
    if !server.is_empty() {
        command.arg("--").args(server);
    }
    Running::start(command).finish(PATIENCE)
}

#[test]
fn two_versions_of_a_server_differ_in_every_severity() {
    let Some(real) = Real::find("two versions of server-filesystem") else { return };
    let place = Place::new(programs!());
    let folder: OsString = place.temp().into();
    let versions = [("earlier.json", real.earlier("filesystem")), ("now.json", real.node("filesystem"))];
    for (file, command) in &versions {
        let server = [command.clone(), vec![folder.clone()]].concat();
        let options = ["score", "--server", "files", "--confirm-read-only", "--format", "json", "--output", file];
        let outcome = run(&place, &options, &server);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
    let diff = run(&place, &["diff", "earlier.json", "now.json", "--fail-on-breaking", "--format", "json"], &[]);
    assert_eq!(diff.code, Some(1), "{}", diff.stderr);
    let document: Value = serde_json::from_str(&diff.stdout).expect("a document");
    let changes = document["catalog"]["changes"].as_array().expect("a list of changes");
    let holds = |tool: &str, change: &str, severity: &str| {
        changes.iter().any(|entry| entry["tool"] == tool && entry["change"] == change && entry["severity"] == severity)
    };
    assert!(holds("write_file", "class-changed", "breaking"), "{changes:#?}");
    assert!(holds("edit_file", "parameter-changed", "review"), "{changes:#?}");
    assert!(holds("directory_tree", "parameter-added", "compatible"), "{changes:#?}");
    assert!(holds("get_file_info", "output-schema-added", "compatible"), "{changes:#?}");
    let same = run(&place, &["diff", "now.json", "now.json", "--fail-on-breaking", "--max-readiness-drop", "0"], &[]);
    assert_eq!(same.code, Some(0), "{}{}", same.stdout, same.stderr);
    place.assert_clean();
}

#[test]
fn both_transports_of_a_server_compare_as_equal() {
    let Some(real) = Real::find("both transports of server-everything") else { return };
    let place = Place::new(programs!());
    let stdio = [real.node("everything"), vec!["stdio".into()]].concat();
    let init = run(&place, &["init", "--tool", "get-sum", "--tool", "echo"], &stdio);
    assert_eq!(init.code, Some(0), "{}", init.stderr);
    let http = real.everything_over_http(&place);
    let endpoint = format!("http={}", http.url);
    let options = ["compare", "--server", "everything", "--endpoint", &endpoint, "--format", "json"];
    let outcome = run(&place, &options, &stdio);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let entries: Value = serde_json::from_str(&outcome.stdout).expect("a document");
    let of = |place: usize| entries.get(place).unwrap_or_else(|| panic!("two entries in {entries:#}"));
    assert_eq!((&of(0)["endpoint"], &of(1)["endpoint"]), (&Value::from("http"), &Value::from("stdio")));
    let cases = |place: usize| {
        let cases = of(place)["report"]["cases"].as_array().expect("cases").iter();
        cases.map(|case| (case["id"].to_string(), case["passed"] == true)).collect::<Vec<_>>()
    };
    assert!(cases(0).len() > 10, "{:?}", cases(0));
    assert_eq!(cases(0), cases(1));
    assert!(cases(0).iter().all(|(_, passed)| *passed), "{:?}", cases(0));
    let areas = |place: usize| {
        let areas = of(place)["report"]["readiness"]["areas"].as_array().expect("areas").iter();
        areas.map(|area| (area["name"].to_string(), area["measurements"]["catalog_tokens"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(areas(0), areas(1));
    drop(http);
    place.assert_clean();
}
