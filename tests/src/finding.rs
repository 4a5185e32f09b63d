//! A home with one finding, and a server whose behaviour a file decides.

use std::fs;
use std::path::PathBuf;

use mcpeval::store::Home;
use mcpeval::store::journal::Journal;
use serde_json::{Value, json};

use crate::run::Place;
use crate::traffic::{self, home, worked_example, write};

/// The tool of the finding; fixture servers list it.
pub const TOOL: &str = "get_price";

/// Runs mcpeval, which must end well, and gives what it printed.
///
/// # Panics
/// When it does not.
pub fn good(place: &Place, arguments: &[&str]) -> String {
    let outcome = place.run(arguments);
    assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.stderr);
    outcome.stdout
}

/// Calls of [`TOOL`], of which enough failed.
pub fn failing() -> Vec<Value> {
    let mut lines = worked_example(2);
    // Another tool stays beside it, by which it costs more.
    for line in lines.iter_mut().filter(|line| line["tool"] == traffic::TOOL) {
        line["tool"] = TOOL.into();
        line["args"] = json!({"item": "str<32"});
    }
    lines
}

/// Indexes and promotes these calls and notes, and gives the id of the one finding.
///
/// # Panics
/// When they do not make exactly one.
pub fn promote(place: &Place, calls: &[Value], notes: &[Value]) -> (Home, String) {
    let home = home(place);
    write(&home, Journal::Calls, calls);
    write(&home, Journal::Annotations, notes);
    good(place, &["index"]);
    good(place, &["promote"]);
    let findings = all(place);
    assert_eq!(findings.len(), 1, "{findings:?}");
    (home, findings[0]["finding_id"].as_str().unwrap_or_default().to_owned())
}

/// The findings as a document.
///
/// # Panics
/// When there is none.
pub fn all(place: &Place) -> Vec<Value> {
    let text = good(place, &["findings", "--format", "json"]);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// State and green checks in a row of the one finding.
///
/// # Panics
/// When there is none.
pub fn standing(place: &Place) -> (String, u64) {
    let findings = all(place);
    let state = findings[0]["state"].as_str().unwrap_or_default().to_owned();
    (state, findings[0]["consecutive_passes"].as_u64().unwrap_or_default())
}

/// A script that starts the fixture server whose name stands in the file `mode`, so that the server changes and its command
/// does not.
pub fn script(place: &Place, extra: &str) -> PathBuf {
    let server = place.fixture();
    place.file("serve.sh", format!("{extra}\nexec '{server}' \"$(cat mode)\"\n"))
}

/// Makes the script start another fixture server.
///
/// # Panics
/// When the file cannot be written.
pub fn become_server(place: &Place, name: &str) {
    fs::write(place.path().join("mode"), name).expect("a file of the place");
}
