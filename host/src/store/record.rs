//! Records: one line of a journal each. What is written has this form and no more; what is read may come from an older
//! version or from a stranger, and is made safe.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hash::SESSION_PREFIX;
use super::shape;

/// One line with its newline, at most.
pub const MAX_LINE: usize = 4 << 20;
/// What stands in the place of a name or method that may not be kept.
pub const UNLISTED: &str = "unlisted";
/// What stands in the place of an error's text.
pub const TEMPLATE: &str = "{message}";
/// The code of a tool's result with `isError`.
pub const TOOL_ERROR: &str = "tool-error";
/// The method whose records are about a tool.
pub const CALL: &str = "tools/call";
/// Characters of a note.
pub const MAX_NOTE: usize = 240;

/// One observed exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which observation this is; absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// When it was complete: RFC 3339, UTC.
    pub ts: String,
    /// The session's token.
    pub session: String,
    /// Its number within the capture, from 1, in the order of completion.
    pub seq: u64,
    /// The server's label.
    pub server: String,
    /// The method, or [`UNLISTED`].
    pub method: String,
    /// The tool of a `tools/call`, or [`UNLISTED`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The shape of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// From request to answer, in milliseconds.
    #[serde(default)]
    pub latency_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What kind of error it ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// The client withdrew the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// What the recorder added to the exchange, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shim_self_us: Option<u64>,
    /// Who made the call.
    #[serde(default)]
    pub kind: Kind,
}

/// Names of one observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The recorded session of one server; a UUID.
    pub capture_id: String,
    /// The observation; a UUID.
    pub event_id: String,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// With a result.
    Ok,
    /// With an error of the protocol or the tool.
    Error,
    /// It was no message.
    Unparsed,
    /// A notification, or a tool's result that is none.
    Unknown,
    /// Not at all.
    Unanswered,
}

/// Who made a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An agent, seen by a recorder.
    #[default]
    Real,
    /// mcpeval itself.
    Synthetic,
    /// Nobody knows; older versions wrote it.
    Unparsed,
}

/// An error without its words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallError {
    /// Its code.
    pub code: Code,
    /// Whether it says that trying again may help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Where it arose, where the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// Its kind, where the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Always [`TEMPLATE`].
    #[serde(default)]
    pub template: String,
    /// The salted id of its text's skeleton.
    #[serde(default)]
    pub template_id: String,
}

/// The code of an error.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Code {
    /// As the protocol has it.
    Number(i64),
    /// [`TOOL_ERROR`], an identifier, or the size of something else.
    Text(String),
}

impl Code {
    /// A code that a server gave as text: identifiers are kept, of anything else the size.
    pub fn of_text(text: &str) -> Self {
        Self::Text(if is_identifier(text) { text.to_owned() } else { shape::size(text).to_owned() })
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(code) => code.fmt(f),
            Self::Text(code) => code.fmt(f),
        }
    }
}

/// What somebody noted about one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// When: RFC 3339, UTC.
    pub ts: String,
    /// The call by its event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// The call by its session's token and number, if not by its event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its number in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What was noted.
    pub kind: AnnotationKind,
    /// In words: at most [`MAX_NOTE`] characters, none of them a control character.
    #[serde(default)]
    pub note: String,
}

/// What a call was noted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnnotationKind {
    /// The direct call should have worked and did not.
    BlockedOptimalPath,
    /// It does what nothing says.
    UndocumentedBehavior,
    /// It said that it succeeded and had not.
    FalseSuccess,
    /// What the instructions say is not so.
    InstructionDivergence,
    /// A way around was taken.
    Workaround,
}

impl AnnotationKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::BlockedOptimalPath,
        Self::UndocumentedBehavior,
        Self::FalseSuccess,
        Self::InstructionDivergence,
        Self::Workaround,
    ];

    /// The word in files and on command lines.
    pub const fn word(self) -> &'static str {
        match self {
            Self::BlockedOptimalPath => "blocked-optimal-path",
            Self::UndocumentedBehavior => "undocumented-behavior",
            Self::FalseSuccess => "false-success",
            Self::InstructionDivergence => "instruction-divergence",
            Self::Workaround => "workaround",
        }
    }
}

impl Record {
    /// Reads a line of a journal and makes it safe; none if it is no record.
    pub fn read(line: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(line).ok()?;
        let identity = record.identity.as_ref();
        let is_known = identity.is_none_or(|identity| is_uuid(&identity.capture_id) && is_uuid(&identity.event_id));
        let is_record =
            is_known && is_label(&record.server) && is_session(&record.session) && moment(&record.ts).is_some();
        is_record.then(|| record.sanitized())
    }

    /// The same with nothing in it that may not be kept. What is safe stays as it is.
    #[must_use]
    pub fn sanitized(self) -> Self {
        let is_call = self.method == CALL;
        Self {
            method: if is_method(&self.method) { self.method } else { UNLISTED.to_owned() },
            tool: self.tool.filter(|_| is_call).map(|tool| if is_label(&tool) { tool } else { UNLISTED.to_owned() }),
            args: self.args.filter(|args| is_call && !args.is_null()).map(|args| shape::sanitized(&args)),
            error: self.error.map(CallError::sanitized),
            ..self
        }
    }

    /// Its line, newline included. None if it is longer than [`MAX_LINE`].
    pub fn line(&self) -> Option<Vec<u8>> {
        line(self)
    }
}

impl CallError {
    fn sanitized(self) -> Self {
        let identifier = |text: Option<String>| text.filter(|text| is_identifier(text));
        let is_id = |id: &str| id.len() == 16 && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        Self {
            code: match self.code {
                Code::Text(text) if shape::is_word(&text) => Code::Text(text),
                Code::Text(text) => Code::of_text(&text),
                number @ Code::Number(_) => number,
            },
            retryable: self.retryable,
            layer: identifier(self.layer),
            kind: identifier(self.kind),
            template: TEMPLATE.to_owned(),
            template_id: if is_id(&self.template_id) { self.template_id } else { String::new() },
        }
    }
}

impl Annotation {
    /// Reads a line of a journal; none if it is no annotation, or names no call.
    pub fn read(line: &[u8]) -> Option<Self> {
        let annotation: Self = serde_json::from_slice(line).ok()?;
        let names_event = annotation.event_id.as_deref().is_some_and(is_uuid);
        let names_place = annotation.session.as_deref().is_some_and(is_session) && annotation.seq.is_some();
        let is_noted = moment(&annotation.ts).is_some() && is_note(&annotation.note);
        (is_noted && (names_event || names_place)).then_some(annotation)
    }

    /// Its line, newline included.
    pub fn line(&self) -> Option<Vec<u8>> {
        line(self)
    }
}

fn line(value: &impl Serialize) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(value).ok()?;
    line.push(b'\n');
    (line.len() <= MAX_LINE).then_some(line)
}

/// `[A-Za-z0-9_.:-]{1,128}`: labels of servers and names of tools that may be kept.
pub fn is_label(name: &str) -> bool {
    crate::report::document::Label::is_valid(name)
}

/// `[A-Za-z0-9_/.-]{1,64}`: methods that may be kept.
pub fn is_method(method: &str) -> bool {
    (1..=64).contains(&method.len())
        && method.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/' | b'.' | b'-'))
}

/// Whether a text has the form of a session's token.
pub fn is_session(token: &str) -> bool {
    token.strip_prefix(SESSION_PREFIX).is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// Whether a text may be the note of an annotation.
pub fn is_note(note: &str) -> bool {
    note.chars().count() <= MAX_NOTE && !note.chars().any(char::is_control)
}

/// Whether a text names an event or a capture.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// `[A-Za-z][A-Za-z0-9_.:-]{0,63}`.
fn is_identifier(text: &str) -> bool {
    (1..=64).contains(&text.len()) && is_label(text) && text.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// The moment that a record's `ts` names.
pub fn moment(ts: &str) -> Option<jiff::Timestamp> {
    ts.parse().ok()
}

/// A moment as records write it: RFC 3339 in UTC, with milliseconds.
pub fn timestamp(moment: jiff::Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn example() -> Value {
        json!({
            "identity": {"capture_id": "0b7f3c52-3a4e-4a55-9a0e-0c5f6d1f7a10", "event_id": "5d0c0a3e-8f07-4c2e-b0a4-64b2f6b1c9d2"},
            "ts": "2027-01-15T09:30:00.250Z", "session": format!("session:{}", "a".repeat(64)), "seq": 7, "server": "files",
            "method": "tools/call", "tool": "read_doc", "args": {"path": "str<32", "limit": "int"}, "latency_ms": 41,
            "outcome": "error",
            "error": {"code": -32001, "retryable": true, "template": "{message}", "template_id": "9f21c07ab3d4e58c"},
            "shim_self_us": 60, "kind": "real"
        })
    }

    fn read(value: &Value) -> Option<Record> {
        Record::read(value.to_string().as_bytes())
    }

    #[test]
    fn a_record_is_written_as_it_was_read() {
        let record = read(&example()).unwrap();
        let line = record.line().unwrap();
        assert_eq!(line.last(), Some(&b'\n'));
        assert_eq!(serde_json::from_slice::<Value>(&line).unwrap(), example());
        assert_eq!(timestamp(moment(&record.ts).unwrap()), record.ts);
    }

    #[test]
    fn what_strangers_write_is_made_safe() {
        let mut strange = example();
        for (place, value) in [
            ("/method", json!("tools/call")),
            ("/tool", json!("rm -rf /\u{1b}[2J")),
            ("/args", json!({"path": "/home/ada", "limit": "num:42"})),
            ("/error/code", json!("Cannot open /home/ada/x")),
            ("/error/template", json!("Cannot open /home/ada/x")),
            ("/error/template_id", json!("no hex")),
        ] {
            *strange.pointer_mut(place).unwrap() = value;
        }
        strange["extra"] = json!("secret");
        let record = read(&strange).unwrap();
        let text = String::from_utf8(record.line().unwrap()).unwrap();
        assert!(!text.contains("ada") && !text.contains("secret") && !text.contains("42"), "{text}");
        assert_eq!(
            (record.tool.as_deref(), record.args.clone()),
            (Some(UNLISTED), Some(json!({"path": "str<32", "limit": "int"})))
        );
        assert_eq!(record.clone().sanitized(), record);
    }

    #[test]
    fn records_of_older_versions_are_read_and_others_are_none() {
        let mut old = example();
        for key in ["identity", "kind", "shim_self_us"] {
            old.as_object_mut().unwrap().remove(key);
        }
        let record = read(&old).unwrap();
        assert_eq!((record.identity, record.kind), (None, Kind::Real));
        for (key, value) in [
            ("session", json!("ada")),
            ("server", json!("a b")),
            ("ts", json!("yesterday")),
            ("seq", json!(-1)),
            ("outcome", json!("fine")),
            ("identity", json!({"capture_id": "x", "event_id": "y"})),
        ] {
            let mut broken = example();
            broken[key] = value;
            assert_eq!(read(&broken), None, "{key}");
        }
        assert_eq!(Record::read(b"{"), None);
    }

    #[test]
    fn an_annotation_names_a_call_and_keeps_its_note_short() {
        let good = json!({"ts": "2027-01-15T09:30:00.250Z", "event_id": "5d0c0a3e-8f07-4c2e-b0a4-64b2f6b1c9d2", "kind": "false-success", "note": "not saved"});
        let annotation = Annotation::read(good.to_string().as_bytes()).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&annotation.line().unwrap()).unwrap(), good);
        for (key, value) in [
            ("event_id", Value::Null),
            ("kind", json!("other")),
            ("note", json!("a\nb")),
            ("note", json!("x".repeat(241))),
        ] {
            let mut broken = good.clone();
            broken[key] = value;
            assert_eq!(Annotation::read(broken.to_string().as_bytes()), None, "{key}");
        }
    }
}
