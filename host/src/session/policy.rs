//! The one place that decides whether a tool may be called: by a request, a notification, or bytes below the protocol.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::catalog::{Catalog, Entry, ToolClass};

/// Tools with names that begin so may be called though no catalog lists them: no server has them.
pub const RESERVED_PREFIX: &str = "mcpeval-";

/// The method that the policy is about.
const CALL: &str = "tools/call";

/// Bytes of an unfinished line that the gate remembers: `tools/call` with every character escaped has 60.
const REMEMBERED: usize = 256;

/// Why a call is refused. Nothing was sent. Where several entries of the catalog have one name, the later of these holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// The component has no grant for this power.
    NotGranted,
    /// No catalog lists it.
    UnlistedTool,
    /// The operator said not to call it.
    SkippedTool,
    /// The tool says nothing, and nobody attested that it only reads.
    UnattestedTool,
    /// The entry is invalid, or the parameters are no object with one tool name.
    InvalidTool,
    /// The tool says that it writes.
    WriterTool,
    /// A later listing says that it writes, whatever the first one said.
    TurnedTool,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotGranted => "this power was not granted to the component",
            Self::WriterTool => "the tool declares that it writes, and this run is read-only",
            Self::TurnedTool => {
                "a later listing of this run declares that the tool writes, and this run is read-only; \
                 give the tool the same hints in every listing"
            }
            Self::UnattestedTool => "the tool does not declare that it only reads, and nobody attested it",
            Self::SkippedTool => "the operator asked not to call this tool",
            Self::InvalidTool => "the call names no tool that can be called safely",
            Self::UnlistedTool => "the catalog does not list this tool",
        })
    }
}

/// Names that any listing of one evaluation declared to write. A server may change its mind between two of them, and a
/// call must not count on the milder one.
#[derive(Debug, Default)]
pub struct Watch(Mutex<HashSet<String>>);

impl Watch {
    pub(super) fn see(&self, writers: Vec<String>) {
        if !writers.is_empty() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(writers);
        }
    }

    fn declares(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }
}

/// The rules of one run.
#[derive(Debug, Default, Clone)]
pub struct Policy {
    /// Unannotated tools are attested to be read-only.
    pub attested: bool,
    /// Tools the operator excluded.
    pub skipped: BTreeSet<String>,
    /// The case may mutate.
    pub may_mutate: bool,
    verdicts: HashMap<String, Option<Denial>>,
    watch: Arc<Watch>,
}

impl Policy {
    /// The rules for a catalog, and for what later listings declare. Where a name is listed several times, the strictest
    /// entry decides: which of them the server would run is its secret.
    pub fn new(catalog: &Catalog, attested: bool, skipped: BTreeSet<String>, watch: Arc<Watch>) -> Self {
        let mut policy = Self { attested, skipped, may_mutate: false, verdicts: HashMap::new(), watch };
        for entry in &catalog.entries {
            let verdict = policy.judge(entry);
            policy
                .verdicts
                .entry(entry.label.clone())
                .and_modify(|known| *known = (*known).max(verdict))
                .or_insert(verdict);
        }
        policy
    }

    /// The rules of one case: it may also call the tools it names, which its manifest attests, as far as their hints and
    /// the operator allow. A mutating case may call any tool that the operator did not exclude.
    #[must_use]
    pub fn for_case(&self, catalog: &Catalog, named: &BTreeSet<&str>, may_mutate: bool) -> Self {
        let mut policy = Self { may_mutate, ..self.clone() };
        for label in named {
            let verdicts =
                catalog.entries.iter().filter(|entry| entry.label == **label).map(|entry| match entry.hinted {
                    ToolClass::Writer => Some(Denial::WriterTool),
                    ToolClass::Invalid => Some(Denial::InvalidTool),
                    ToolClass::ReadOnly | ToolClass::Unannotated if self.skipped.contains(*label) => {
                        Some(Denial::SkippedTool)
                    }
                    ToolClass::ReadOnly | ToolClass::Unannotated => None,
                });
            if let Some(verdict) = verdicts.max() {
                policy.verdicts.insert((*label).to_owned(), verdict);
            }
        }
        policy
    }

    fn judge(&self, entry: &Entry) -> Option<Denial> {
        match entry.class {
            ToolClass::Writer => Some(Denial::WriterTool),
            ToolClass::Invalid => Some(Denial::InvalidTool),
            ToolClass::Unannotated if !self.attested => Some(Denial::UnattestedTool),
            ToolClass::ReadOnly | ToolClass::Unannotated if self.skipped.contains(&entry.label) => {
                Some(Denial::SkippedTool)
            }
            ToolClass::ReadOnly | ToolClass::Unannotated => None,
        }
    }

    /// Why this run would refuse to call a listed tool; `SkippedTool` only if nothing else forbids it.
    pub fn blocked(&self, label: &str) -> Option<Denial> {
        if self.may_mutate {
            return self.skipped.contains(label).then_some(Denial::SkippedTool);
        }
        self.verdict(label, Some(Denial::UnlistedTool))
    }

    /// What the first listing says of a name, made stricter by what later ones say; `unlisted` if no listing has it.
    fn verdict(&self, name: &str, unlisted: Option<Denial>) -> Option<Denial> {
        match self.verdicts.get(name).copied() {
            Some(Some(denial)) => Some(denial),
            Some(None) | None if self.watch.declares(name) => Some(Denial::TurnedTool),
            Some(None) => None,
            None => unlisted,
        }
    }

    /// Whether a request or notification of the session layer may be sent.
    pub fn permits(&self, method: &str, params: Option<&str>) -> Result<(), Denial> {
        if method != CALL {
            return Ok(());
        }
        let params: OnceEach<'_> = serde_json::from_str(params.unwrap_or("null")).map_err(|_| Denial::InvalidTool)?;
        let name: Option<String> = params.get("name").and_then(|raw| serde_json::from_str(raw).ok());
        if self.may_mutate {
            return match name {
                Some(name) if self.skipped.contains(&name) => Err(Denial::SkippedTool),
                _ => Ok(()),
            };
        }
        self.permits_name(&name.ok_or(Denial::InvalidTool)?)
    }

    fn permits_name(&self, name: &str) -> Result<(), Denial> {
        let unlisted = (!name.starts_with(RESERVED_PREFIX)).then_some(Denial::UnlistedTool);
        self.verdict(name, unlisted).map_or(Ok(()), Err)
    }

    /// Whether a whole frame below the protocol may be sent: a JSON object that calls a tool must do so strictly, on one
    /// line for every reader, and mention `tools/call` nowhere but as its method. Whoever cuts the frame elsewhere, at a
    /// lone carriage return say, then finds no call in the pieces.
    fn permits_frame(&self, frame: &[u8]) -> Result<(), Denial> {
        match mentions(frame) {
            0 => return Ok(()),
            1 => {}
            _ => return Err(Denial::InvalidTool),
        }
        if frame.trim_ascii().iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            return Err(Denial::InvalidTool);
        }
        let frame: OnceEach<'_> = serde_json::from_slice(frame).map_err(|_| Denial::InvalidTool)?;
        let method: String =
            frame.get("method").and_then(|raw| serde_json::from_str(raw).ok()).ok_or(Denial::InvalidTool)?;
        if method != CALL {
            return Err(Denial::InvalidTool);
        }
        self.permits(&method, frame.get("params"))
    }

    /// Whether an HTTP request below the protocol may be sent.
    pub fn permits_http(&self, headers: &[(String, Vec<u8>)], body: &[u8]) -> Result<(), Denial> {
        let header = |name: &'static str| headers.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name));
        let mut types = header("content-type").map(|(_, value)| value);
        let is_plain = types.next().is_none_or(|value| is_utf8_type(value)) && types.next().is_none();
        if !is_plain || header("content-encoding").next().is_some() || body.contains(&0) {
            // What cannot be read here cannot be judged.
            return Err(Denial::InvalidTool);
        }
        for (_, value) in header("mcp-name") {
            let name = std::str::from_utf8(value).map_err(|_| Denial::InvalidTool)?;
            if !self.may_mutate && self.verdict(name, None).is_some() {
                return self.permits_name(name);
            }
            if name.starts_with("=?") {
                return Err(Denial::InvalidTool);
            }
        }
        if header("mcp-method").any(|(_, value)| mentions(value) > 0) && mentions(body) == 0 {
            return Err(Denial::InvalidTool);
        }
        self.permits_frame(body)
    }
}

/// The gate of one pipe. Lines may be sent in pieces, so it remembers the end of what was sent.
#[derive(Debug, Default)]
pub struct LineGate {
    unfinished: Vec<u8>,
}

impl LineGate {
    /// Whether these bytes may be sent next. `tools/call` may only travel in a send of whole lines.
    pub fn permits(&mut self, policy: &Policy, bytes: &[u8]) -> Result<(), Denial> {
        let mut joined = self.unfinished.clone();
        joined.extend_from_slice(bytes);
        if mentions(&joined) > 0 {
            if !self.unfinished.is_empty() || !bytes.ends_with(b"\n") {
                return Err(Denial::InvalidTool);
            }
            bytes.split(|byte| *byte == b'\n').try_for_each(|line| policy.permits_frame(line))?;
        }
        let tail = joined.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        self.unfinished = tail.get(tail.len().saturating_sub(REMEMBERED)..).unwrap_or_default().to_vec();
        Ok(())
    }
}

/// Whether a content type leaves no doubt that the body is UTF-8.
fn is_utf8_type(value: &[u8]) -> bool {
    let Ok(value) = std::str::from_utf8(value) else { return false };
    value.split([';', ',']).skip(1).all(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        !name.trim().eq_ignore_ascii_case("charset")
            || matches!(value.trim().trim_matches('"').to_ascii_lowercase().as_str(), "utf-8" | "utf8")
    })
}

/// How often `tools/call` stands in the bytes, JSON escapes undone.
fn mentions(bytes: &[u8]) -> usize {
    if !bytes.contains(&b'\\') {
        return count(bytes, CALL.as_bytes());
    }
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'\\', [b'u' | b'U', a, b, c, d, after @ ..]) => match hex([*a, *b, *c, *d]) {
                Some(code) => (u8::try_from(code).unwrap_or(0), after),
                None => (first, rest.get(1..).unwrap_or_default()),
            },
            (b'\\', [escaped, after @ ..]) => (*escaped, after),
            _ => (first, after),
        };
        plain.push(byte);
        rest = after;
    }
    count(&plain, CALL.as_bytes())
}

fn hex(digits: [u8; 4]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
}

fn count(haystack: &[u8], needle: &[u8]) -> usize {
    haystack.windows(needle.len()).filter(|window| *window == needle).count()
}

/// A key as readers take it that do not tell cases apart; some of them fold more than ASCII.
fn folded(key: &str) -> String {
    key.to_uppercase().to_lowercase()
}

/// A JSON object in which no key stands twice, whatever the case of its letters.
struct OnceEach<'a>(HashMap<String, &'a RawValue>);

impl<'a> OnceEach<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).map(|value| value.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for OnceEach<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = OnceEach<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object without repeated keys")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = HashMap::new();
                let mut keys = std::collections::HashSet::new();
                while let Some(key) = map.next_key::<String>()? {
                    let is_first = keys.insert(folded(&key));
                    members.insert(key, map.next_value::<&'de RawValue>()?);
                    if !is_first {
                        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        return Err(serde::de::Error::custom("a repeated key"));
                    }
                }
                Ok(OnceEach(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(label: &str, class: ToolClass) -> Entry {
        Entry { label: label.into(), class, repeated: false, hinted: class, raw: "{}".into() }
    }

    fn policy() -> Policy {
        let catalog = Catalog {
            entries: vec![
                entry("find", ToolClass::ReadOnly),
                entry("drop", ToolClass::Writer),
                entry("maybe", ToolClass::Unannotated),
                entry("slow", ToolClass::ReadOnly),
                entry("twin", ToolClass::ReadOnly),
                entry("twin", ToolClass::Writer),
                entry("invalid-name#6", ToolClass::Invalid),
                entry("pair", ToolClass::Unannotated),
                entry("pair", ToolClass::ReadOnly),
                entry("broken-pair", ToolClass::Invalid),
                entry("broken-pair", ToolClass::Unannotated),
            ],
            ..Catalog::default()
        };
        Policy::new(&catalog, false, BTreeSet::from(["slow".into(), "drop".into()]), Arc::default())
    }

    #[test]
    fn each_class_has_its_answer() {
        let policy = policy();
        for (label, expected) in [
            ("find", None),
            ("drop", Some(Denial::WriterTool)),
            ("maybe", Some(Denial::UnattestedTool)),
            ("slow", Some(Denial::SkippedTool)),
            ("twin", Some(Denial::WriterTool)),
            ("invalid-name#6", Some(Denial::InvalidTool)),
            ("pair", Some(Denial::UnattestedTool)),
            ("broken-pair", Some(Denial::InvalidTool)),
            ("absent", Some(Denial::UnlistedTool)),
        ] {
            assert_eq!(policy.blocked(label), expected, "{label}");
        }
    }

    #[test]
    fn a_call_names_one_permitted_tool_in_one_object() {
        let policy = policy();
        let call = |params: &str| policy.permits(CALL, Some(params));
        assert_eq!(call(r#"{"name":"find"}"#), Ok(()));
        assert_eq!(call(r#"{"name":"mcpeval-unknown-tool"}"#), Ok(()));
        assert_eq!(call(r#"{"name":"absent"}"#), Err(Denial::UnlistedTool));
        assert_eq!(call(r#"{"name":"find","name":"drop"}"#), Err(Denial::InvalidTool));
        assert_eq!(call(r#"{"n\u0061me":"drop"}"#), Err(Denial::WriterTool));
        for params in ["null", "[]", "\"find\"", "{}", r#"{"name":7}"#] {
            assert_eq!(call(params), Err(Denial::InvalidTool), "{params}");
        }
        assert_eq!(policy.permits(CALL, None), Err(Denial::InvalidTool));
        assert_eq!(policy.permits("ping", None), Ok(()));
    }

    #[test]
    fn a_mutating_case_may_call_writers_but_not_send_riddles() {
        let policy = Policy { may_mutate: true, ..policy() };
        assert_eq!(policy.permits(CALL, Some(r#"{"name":"twin"}"#)), Ok(()));
        assert_eq!(
            policy.permits(CALL, Some(r#"{"name":"drop"}"#)),
            Err(Denial::SkippedTool),
            "the operator's word holds"
        );
        assert_eq!(policy.permits(CALL, Some(r#"{"name":"twin","name":"find"}"#)), Err(Denial::InvalidTool));
    }

    #[test]
    fn bytes_on_a_pipe_pass_the_same_gate() {
        let policy = policy();
        let mut gate = LineGate::default();
        let find = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find"}}"#;
        let mut whole = find.to_vec();
        whole.push(b'\n');
        assert_eq!(gate.permits(&policy, &whole), Ok(()));
        assert_eq!(gate.permits(&policy, find), Err(Denial::InvalidTool), "half a line");
        let drop = b"{\"method\":\"tools\\u002fcall\",\"params\":{\"name\":\"drop\"}}\n";
        assert_eq!(gate.permits(&policy, drop), Err(Denial::WriterTool));
        let drop = b"{\"method\":\"tools\\/c\\u0061ll\",\"params\":{\"name\":\"drop\"}}\n";
        assert_eq!(gate.permits(&policy, drop), Err(Denial::WriterTool));
        assert_eq!(
            gate.permits(&policy, b"Content-Length: 9\r\n\r\n{\"method\":\"tools/call\"}\n"),
            Err(Denial::InvalidTool)
        );
        assert_eq!(gate.permits(&policy, b"[{\"method\":\"tools/call\"}]\n"), Err(Denial::InvalidTool));
        // Readers that end a line at a carriage return, or do not tell cases apart, see another frame.
        for frame in [
            "{\"method\":\"ping\",\"a\":\r{\"method\":\"tools/call\",\"params\":{\"name\":\"drop\"}}\r}\n",
            "{\"method\":\"ping\",\"a\":{\"method\":\"tools/call\",\"params\":{\"name\":\"drop\"}}}\n",
            "{\"method\":\"tools/call\",\"params\":\r{\"name\":\"find\"}}\n",
            "{\"method\":\"ping\",\"Method\":\"tools/call\",\"params\":{\"name\":\"drop\"}}\n",
            "{\"method\":\"tools/call\",\"params\":{\"name\":\"find\",\"Name\":\"drop\"}}\n",
            "{\"method\":\"tools/call\",\"params\":{\"name\":\"find\"},\"PARAM\u{17f}\":{\"name\":\"drop\"}}\n",
        ] {
            assert_eq!(gate.permits(&policy, frame.as_bytes()), Err(Denial::InvalidTool), "{frame}");
        }
        assert_eq!(gate.permits(&policy, b"not json\n{\"id\":"), Ok(()));
        assert_eq!(gate.permits(&policy, b"1}\n"), Ok(()));
    }

    #[test]
    fn a_call_in_pieces_is_refused_at_the_piece_that_completes_it() {
        let policy = policy();
        let mut gate = LineGate::default();
        assert_eq!(gate.permits(&policy, b"{\"method\":\"tools\\u002"), Ok(()));
        assert_eq!(gate.permits(&policy, b"fcall\",\"params\":{\"name\":\"find\"}}\n"), Err(Denial::InvalidTool));
    }

    #[test]
    fn http_bodies_pass_the_same_gate() {
        let policy = policy();
        let body = br#"{"method":"tools/call","params":{"name":"drop"}}"#;
        let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        assert_eq!(policy.permits_http(&[], body), Err(Denial::WriterTool));
        assert_eq!(policy.permits_http(&[], br#"{"method":"ping"}"#), Ok(()));
        assert_eq!(policy.permits_http(&[], b"{\0\"method\":1}"), Err(Denial::InvalidTool));
        assert_eq!(policy.permits_http(&[header("Content-Encoding", "gzip")], b""), Err(Denial::InvalidTool));
        assert_eq!(policy.permits_http(&[header("mcp-name", "drop")], b"{}"), Err(Denial::WriterTool));
        assert_eq!(policy.permits_http(&[header("Mcp-Method", "tools/call")], b"{}"), Err(Denial::InvalidTool));
        let kind = |value: &str| header("Content-Type", value);
        for types in [
            vec![kind("application/json; charset=utf-7")],
            vec![kind("application/json;x=1; Charset = \"cp037\"")],
            vec![kind("application/json"), kind("application/json; charset=utf-7")],
        ] {
            assert_eq!(policy.permits_http(&types, b"{}"), Err(Denial::InvalidTool), "{types:?}");
        }
        assert_eq!(policy.permits_http(&[kind("application/json; charset=\"UTF-8\"")], b"{}"), Ok(()));
        let find = br#"{"method":"tools/call","params":{"name":"find"}}"#;
        assert_eq!(
            policy.permits_http(&[header("Mcp-Method", "tools/call"), header("Mcp-Name", "find")], find),
            Ok(())
        );
    }
}
