//! Recorded traffic made up: calls of two tools of a server, as lines of the journals of a home.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use mcpeval::store::journal::{self, Journal};
use mcpeval::store::{Home, record};
use serde_json::{Value, json};

use crate::run::Place;

/// The template of every failure that is given no other.
pub const TEMPLATE: &str = "9f21c07ab3d4e58c";
/// The server's label.
pub const SERVER: &str = "files";
/// The tool that fails.
pub const TOOL: &str = "read_doc";

/// The home folder of a place, as the program finds it there.
pub fn home(place: &Place) -> Home {
    Home::at(place.path().join("home/.mcp-eval"))
}

/// So many days ago.
pub fn days_ago(days: i64) -> Timestamp {
    Timestamp::now() - SignedDuration::from_hours(24 * days)
}

/// The event of a call.
pub fn event(capture: u64, seq: u64) -> String {
    format!("00000000-0000-4000-8000-{:012x}", capture * 1_000_000 + seq)
}

/// The token of a session.
pub fn session(number: u64) -> String {
    format!("session:{number:064x}")
}

/// A call of [`TOOL`] that succeeded: its capture and session, its number there, and when.
pub fn call(capture: u64, of_session: u64, seq: u64, at: Timestamp) -> Value {
    json!({
        "identity": {"capture_id": format!("00000000-0000-4000-9000-{capture:012x}"), "event_id": event(capture, seq)},
        "ts": record::timestamp(at), "session": session(of_session), "seq": seq, "server": SERVER,
        "method": "tools/call", "tool": TOOL, "args": {"path": "str<32", "limit": "int"}, "latency_ms": 41,
        "outcome": "ok", "kind": "real"
    })
}

/// The same call, failed with that code.
#[must_use]
pub fn failed(mut call: Value, code: i64) -> Value {
    call["outcome"] = "error".into();
    call["error"] = json!({"code": code, "template": "{message}", "template_id": TEMPLATE});
    call
}

/// An annotation of one call.
pub fn note(event_id: &str, kind: &str) -> Value {
    json!({"ts": record::timestamp(Timestamp::now()), "event_id": event_id, "kind": kind, "note": "seen by hand"})
}

/// Appends lines to the journals of their days.
///
/// # Panics
/// When the home cannot be written.
pub fn write(home: &Home, journal: Journal, lines: &[Value]) {
    home.prepare().expect("a home");
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    for line in lines {
        let text = files.entry(journal.file(home, line["ts"].as_str().unwrap_or_default())).or_default();
        text.push_str(&line.to_string());
        text.push('\n');
    }
    for (file, text) in files {
        journal::append(home, &file, text.as_bytes()).expect("a journal");
    }
}

/// Six failures of 24 calls in that many sessions, the newest seven days old, with 1, 2, 3, 4, 4 and 5 records around
/// them, of two tools.
pub fn worked_example(sessions: u64) -> Vec<Value> {
    let mut lines = Vec::new();
    for (capture, around) in (1..).zip([1, 2, 3, 4, 4, 5]) {
        let of_session = capture % sessions;
        let at = days_ago(7) - SignedDuration::from_mins(i64::try_from(capture).unwrap_or_default() - 1);
        lines.extend((1..=around).map(|seq| call(capture, of_session, seq, at)));
        lines.push(failed(call(capture, of_session, around + 1, at), -32_001));
    }
    lines[0]["tool"] = "list_docs".into();
    lines
}
