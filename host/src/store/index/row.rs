//! A record as a row of `calls`.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::tables::int;
use crate::store::hash::UNANSWERED;
use crate::store::record::{CALL, Kind, Outcome, Record, UNLISTED, moment, timestamp};

/// A call that was answered by nothing is a failure from this age on, in milliseconds.
const UNANSWERED_AFTER: u64 = 10_000;
/// Numbers above it are no numbers of records: others could not read them.
const MOST: i64 = 1 << 53;
/// The code of an error that has none.
const UNKNOWN: &str = "unknown";

/// A row of `calls`, and what tells it from others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// The capture and the event; none in records of older versions.
    pub(super) identity: Option<Identity>,
    pub(super) ts: String,
    pub(super) session: String,
    pub(super) seq: i64,
    pub(super) server: String,
    pub(super) method: String,
    pub(super) tool: Option<String>,
    pub(super) latency_ms: i64,
    pub(super) outcome: &'static str,
    pub(super) err_code: Option<String>,
    pub(super) err_template: Option<String>,
    pub(super) err_template_id: Option<String>,
    pub(super) err_retryable: Option<bool>,
    pub(super) args: Option<String>,
    pub(super) kind: &'static str,
}

/// Which observation a row is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity {
    pub(super) capture: String,
    pub(super) event: Uuid,
    /// Of everything the record says.
    pub(super) digest: [u8; 32],
}

impl Row {
    /// The row of a line; none if the line is no record.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        Record::read(line).and_then(Self::of)
    }

    fn of(record: Record) -> Option<Self> {
        let seq = i64::try_from(record.seq).ok().filter(|seq| *seq <= MOST)?;
        let identity = match &record.identity {
            Some(identity) => Some(Identity {
                capture: identity.capture_id.to_ascii_lowercase(),
                event: Uuid::try_parse(&identity.event_id).ok()?,
                digest: Sha256::digest(serde_json::to_vec(&record).ok()?).into(),
            }),
            None => None,
        };
        let is_call = record.method == CALL;
        let is_unanswered_failure = is_call
            && record.outcome == Outcome::Unanswered
            && record.latency_ms >= UNANSWERED_AFTER
            && !record.cancelled;
        let error = record.error.filter(|_| record.outcome == Outcome::Error);
        let (err_code, err_template_id) = match (&error, record.outcome) {
            (Some(error), _) => (Some(error.code.to_string()), Some(error.template_id.clone())),
            (None, Outcome::Error) => (Some(UNKNOWN.to_owned()), Some(String::new())),
            (None, _) if is_unanswered_failure => (Some(UNANSWERED.to_owned()), Some(UNANSWERED.to_owned())),
            (None, _) => (None, None),
        };
        Some(Self {
            identity,
            ts: normal(record.ts)?,
            session: record.session,
            seq,
            server: record.server,
            tool: if is_call { Some(record.tool.unwrap_or_else(|| UNLISTED.to_owned())) } else { None },
            method: record.method,
            latency_ms: int(record.latency_ms).min(MOST),
            outcome: outcome(record.outcome),
            err_code,
            err_retryable: error.as_ref().and_then(|error| error.retryable),
            err_template: error.map(|error| error.template),
            err_template_id,
            args: record.args.map(|args| args.to_string()),
            kind: kind(record.kind),
        })
    }
}

/// A moment as records write it, whoever wrote it.
fn normal(ts: String) -> Option<String> {
    // What has this form is in it already: the record was read as a moment before.
    let is_normal = ts.len() == 24 && ts.ends_with('Z') && ts.as_bytes().get(10) == Some(&b'T');
    if is_normal { Some(ts) } else { moment(&ts).map(timestamp) }
}

const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Error => "error",
        Outcome::Unparsed => "unparsed",
        Outcome::Unknown => "unknown",
        Outcome::Unanswered => "unanswered",
    }
}

const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Real => "real",
        Kind::Synthetic => "synthetic",
        Kind::Unparsed => "unparsed",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn example() -> Value {
        json!({
            "identity": {
                "capture_id": "0B7F3C52-3a4e-4a55-9a0e-0c5f6d1f7a10",
                "event_id": "5d0c0a3e-8f07-4c2e-b0a4-64b2f6b1c9d2"
            },
            "ts": "2027-01-15T09:30:00.250Z", "session": format!("session:{}", "a".repeat(64)), "seq": 7,
            "server": "files", "method": "tools/call", "tool": "read_doc", "args": {"limit": "num:12"},
            "latency_ms": 41, "outcome": "error",
            "error": {"code": -32001, "retryable": true, "template": "{message}", "template_id": "9f21c07ab3d4e58c"},
            "kind": "real"
        })
    }

    fn row(changes: &[(&str, Value)]) -> Option<Row> {
        let mut record = example();
        for (key, value) in changes {
            record[*key] = value.clone();
        }
        Row::read(record.to_string().as_bytes())
    }

    #[test]
    fn a_record_becomes_a_row_without_its_numbers() {
        let row = row(&[]).unwrap();
        assert_eq!(row.args.as_deref(), Some("{\"limit\":\"int\"}"));
        assert_eq!((row.err_code.as_deref(), row.err_retryable), (Some("-32001"), Some(true)));
        assert_eq!(row.identity.unwrap().capture, "0b7f3c52-3a4e-4a55-9a0e-0c5f6d1f7a10");
    }

    #[test]
    fn what_fails_has_a_code() {
        let code = |changes: &[(&str, Value)]| row(changes).unwrap().err_code;
        let outcome = |word: &str, latency: u64| [("outcome", json!(word)), ("latency_ms", json!(latency))];
        assert_eq!(code(&outcome("ok", 41)), None);
        assert_eq!(code(&outcome("unanswered", 9_999)), None);
        assert_eq!(code(&outcome("unanswered", 10_000)).as_deref(), Some("unanswered"));
        assert_eq!(code(&[&outcome("unanswered", 10_000)[..], &[("cancelled", json!(true))]].concat()), None);
        assert_eq!(code(&[&outcome("unanswered", 10_000)[..], &[("method", json!("ping"))]].concat()), None);
        assert_eq!(code(&[("error", Value::Null)]).as_deref(), Some("unknown"));
    }

    #[test]
    fn equal_records_are_equal_however_they_are_written() {
        let digest = |row: Option<Row>| row.unwrap().identity.unwrap().digest;
        let one = digest(row(&[]));
        assert_eq!(digest(row(&[("args", json!({"limit": "int"})), ("unheard", json!("of"))])), one);
        assert_ne!(digest(row(&[("latency_ms", json!(42))])), one);
        assert_ne!(digest(row(&[("seq", json!(8))])), one);
    }

    #[test]
    fn moments_are_written_alike_and_names_that_lack_have_a_word() {
        let ts = |text: &str| row(&[("ts", json!(text))]).unwrap().ts;
        assert_eq!(ts("2027-01-15T09:30:00.250Z"), "2027-01-15T09:30:00.250Z");
        assert_eq!(ts("2027-01-15T10:30:00.250123+01:00"), "2027-01-15T09:30:00.250Z");
        assert_eq!(ts("2027-01-15T09:30:00Z"), "2027-01-15T09:30:00.000Z");
        assert_eq!(row(&[("tool", Value::Null)]).unwrap().tool.as_deref(), Some(UNLISTED));
        assert_eq!(row(&[("method", json!("ping"))]).unwrap().tool, None);
        assert!(row(&[("seq", json!(u64::MAX))]).is_none());
    }
}
