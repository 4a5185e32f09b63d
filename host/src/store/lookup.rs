//! Looking for one call in the journals, for whoever has something to say of it.

use std::fs::File;

use regex::bytes::{Regex, RegexBuilder};

use super::home::{Home, fault};
use super::journal::{Journal, Line, Lines, files};
use super::record::Record;
use crate::error::{Error, Result};

/// Different calls that are looked for; one more than one is too many already.
pub const MAX_FOUND: usize = 8;

/// What is known of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// Its event: a UUID.
    Event(String),
    /// Its number in a session, whose token is one of these.
    Place {
        /// Tokens of the session.
        sessions: Vec<String>,
        /// The number.
        seq: u64,
    },
}

impl Known {
    /// What a line must hold to be worth reading.
    fn needle(&self) -> Result<Regex, regex::Error> {
        let words = match self {
            Self::Event(event) => regex::escape(event),
            Self::Place { sessions, .. } => {
                sessions.iter().map(|token| regex::escape(token)).collect::<Vec<_>>().join("|")
            }
        };
        RegexBuilder::new(&words).case_insensitive(matches!(self, Self::Event(_))).build()
    }

    fn fits(&self, record: &Record) -> bool {
        match self {
            Self::Event(event) => {
                record.identity.as_ref().is_some_and(|identity| identity.event_id.eq_ignore_ascii_case(event))
            }
            Self::Place { sessions, seq } => record.seq == *seq && sessions.contains(&record.session),
        }
    }
}

/// The calls that fit, each once, up to [`MAX_FOUND`]. A line that is no record fits nothing.
///
/// # Errors
/// Unfinished if a journal cannot be read.
pub fn find(home: &Home, known: &Known) -> Result<Vec<Record>> {
    let needle = known.needle().map_err(|error| Error::unfinished(format!("nothing can be looked for: {error}")))?;
    let mut found: Vec<Record> = Vec::new();
    for path in files(home, Journal::Calls)? {
        let failed = |error: std::io::Error| fault(&path, &error);
        let mut lines = Lines::new(File::open(&path).map_err(failed)?);
        while let Some(line) = lines.next(&mut |_| {}).map_err(failed)? {
            let Line::Whole(line) = line else { continue };
            if !needle.is_match(line) {
                continue;
            }
            let Some(record) = Record::read(line).filter(|record| known.fits(record)) else { continue };
            if !found.iter().any(|other| is_same(other, &record)) {
                found.push(record);
            }
            if found.len() == MAX_FOUND {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// Whether two records are of one event, written twice.
fn is_same(left: &Record, right: &Record) -> bool {
    match (&left.identity, &right.identity) {
        (Some(left), Some(right)) => left.event_id.eq_ignore_ascii_case(&right.event_id),
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::journal::append;
    use super::*;

    fn event(n: u64) -> String {
        format!("00000000-0000-4000-8000-{n:012x}")
    }

    fn token(n: u64) -> String {
        format!("session:{n:064x}")
    }

    fn call(n: u64, session: u64, seq: u64) -> Value {
        json!({
            "identity": {"capture_id": event(1_000 + session), "event_id": event(n)}, "ts": "2027-01-15T09:30:00.250Z",
            "session": token(session), "seq": seq, "server": "files", "method": "tools/call", "tool": "read_doc",
            "outcome": "ok", "kind": "real"
        })
    }

    fn place(sessions: &[u64], seq: u64) -> Known {
        Known::Place { sessions: sessions.iter().map(|n| token(*n)).collect(), seq }
    }

    #[test]
    fn a_call_is_found_by_its_event_and_by_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        assert!(find(&home, &place(&[1], 1)).unwrap().is_empty() && !home.root().exists());
        home.prepare().unwrap();
        let mut nameless = call(0, 3, 1);
        nameless.as_object_mut().unwrap().remove("identity");
        let lines = [call(10, 1, 1), call(11, 1, 2), call(11, 1, 2), call(12, 2, 1), nameless.clone(), nameless];
        let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        text.push_str(&format!("{{ torn {}\n", event(10)));
        append(&home, &home.store().join("calls-2027-01-15.jsonl"), text.as_bytes()).unwrap();
        let of = |known: &Known| find(&home, known).unwrap().len();
        assert_eq!(of(&Known::Event(event(10))), 1);
        assert_eq!(of(&Known::Event(event(11).to_uppercase())), 1);
        assert_eq!(of(&Known::Event(event(99))), 0);
        assert_eq!(
            (of(&place(&[1], 2)), of(&place(&[1], 3)), of(&place(&[1, 2], 1)), of(&place(&[3], 1))),
            (1, 0, 2, 1)
        );
        let many: String = (100..200).map(|n| format!("{}\n", call(n, 4, 1))).collect();
        append(&home, &home.store().join("calls-2027-01-16.jsonl"), many.as_bytes()).unwrap();
        assert_eq!(of(&place(&[4], 1)), MAX_FOUND);
    }
}
