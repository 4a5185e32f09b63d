//! Documents that people write, in JSON, YAML or TOML, read into one tree that knows where each value stands.
//!
//! Repeated keys are refused in every notation, nothing is templated, and an error names file, line, column and
//! JSON Pointer, never a value.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use crate::error::{Error, Result};
use crate::nearest;

/// Bytes of one written document.
pub const DOCUMENT_LIMIT: usize = 1024 * 1024;
/// Nested objects and arrays; the reader recurses once for each.
pub const DEPTH_LIMIT: usize = 100;
/// Events that YAML aliases may add.
const ALIAS_LIMIT: usize = 4096;
/// Time in which somebody must have opened a pipe to write to it.
const PIPE_PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// JSON.
    Json,
    /// YAML 1.2, core schema.
    Yaml,
    /// TOML 1.
    Toml,
}

impl Notation {
    /// By the file's extension, else JSON if the first non-blank byte is `{`, else YAML.
    pub fn of(path: &Path, text: &str) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => Self::Json,
            Some("yaml" | "yml") => Self::Yaml,
            Some("toml") => Self::Toml,
            _ if text.trim_start_matches(BYTE_ORDER_MARK).trim_start().starts_with('{') => Self::Json,
            _ => Self::Yaml,
        }
    }
}

/// 1-based line and column, in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: u64,
    /// Column.
    pub column: u64,
}

impl Place {
    fn of_offset(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let count = |text: &str| u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        Self {
            line: u64::try_from(before.matches('\n').count()).unwrap_or(u64::MAX).saturating_add(1),
            column: count(before.get(line_start..).unwrap_or_default()).saturating_add(1),
        }
    }
}

/// Where a node begins. Lines are only counted when an error asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Offset(usize),
    Place(Place),
}

impl Mark {
    const START: Self = Self::Offset(0);

    fn place(self, text: &str) -> Place {
        match self {
            Self::Offset(offset) => Place::of_offset(text, offset),
            Self::Place(place) => place,
        }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    mark: Mark,
    /// What it is.
    pub kind: Kind,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Null, boolean, number or string.
    Scalar(Value),
    /// An array.
    List(Vec<Node>),
    /// An object, its keys in the order written.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The value without its places.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Kind::Map(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.clone(), node.to_value())).collect::<Map<_, _>>())
            }
        }
    }
}

/// A document that was read, and what it is called in errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    name: String,
    text: String,
    root: Node,
}

impl Document {
    /// Reads a file of at most [`DOCUMENT_LIMIT`] bytes; `accepted` are the notations it may be in.
    ///
    /// # Errors
    /// A usage error if it cannot be read, is too large, or is not of that notation.
    pub fn read(path: &Path, accepted: &[Notation]) -> Result<Self> {
        Self::read_within(path, accepted, DOCUMENT_LIMIT)
    }

    /// The same with another limit, in bytes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_within(path: &Path, accepted: &[Notation], limit: usize) -> Result<Self> {
        let name = path.display().to_string();
        let text = read_text(path, limit)?;
        let notation = Notation::of(path, &text);
        if !accepted.contains(&notation) {
            return Err(Error::usage(format!("{name}: this document cannot be written in {notation:?}")));
        }
        Self::parse(&name, text, notation)
    }

    /// Reads a text; a byte order mark before it is no part of it.
    ///
    /// # Errors
    /// A usage error with line and column.
    pub fn parse(name: &str, text: impl Into<String>, notation: Notation) -> Result<Self> {
        let mut text = text.into();
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len_utf8());
        }
        let root = match notation {
            Notation::Json => json(&text),
            Notation::Yaml => yaml(&text),
            Notation::Toml => toml(&text),
        };
        let root = root.map_err(|(mark, what)| {
            let place = mark.place(&text);
            Error::usage(format!("{name}:{}:{}: {what}", place.line, place.column))
        })?;
        Ok(Self { name: name.to_owned(), text, root })
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The root, for reading.
    pub fn root(&self) -> At<'_> {
        At { document: self, pointer: String::new(), node: &self.root }
    }
}

/// Reads a whole UTF-8 file of at most `limit` bytes. It may be a pipe that somebody writes to.
///
/// # Errors
/// A usage error if it is missing, too large or no UTF-8.
pub fn read_text(path: &Path, limit: usize) -> Result<String> {
    let fault = |error: io::Error| {
        Error::usage(match error.kind() {
            io::ErrorKind::IsADirectory => format!("{}: this is a folder, not a file", path.display()),
            io::ErrorKind::TimedOut => format!("{}: nobody writes to this pipe", path.display()),
            _ => format!("{}: {error}", path.display()),
        })
    };
    let mut first = Vec::new();
    let file = open(path).and_then(|file| await_writer(file, PIPE_PATIENCE, &mut first)).map_err(fault)?;
    read_text_from(first.as_slice().chain(file), path.display(), limit)
}

/// The same from anything that can be read; `name` is what it is called in errors.
///
/// # Errors
/// As [`read_text`].
pub fn read_text_from(source: impl io::Read, name: impl std::fmt::Display, limit: usize) -> Result<String> {
    let fault = |what: String| Error::usage(format!("{name}: {what}"));
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    source.take(most).read_to_end(&mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => fault("this is a folder, not a file".to_owned()),
        _ => fault(error.to_string()),
    })?;
    if bytes.len() > limit {
        return Err(fault(format!("the file is larger than {limit} bytes")));
    }
    decode(bytes).map_err(|what| fault(what.to_owned()))
}

/// The text of a document's bytes.
///
/// # Errors
/// What it is instead, for people.
pub fn decode(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("the file is UTF-16; save it as UTF-8");
    }
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8")
}

/// Opens a file for reading, and never waits for the writer of a pipe. What is no regular file is left such that a read
/// does not wait either.
///
/// # Errors
/// What the system says.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::from(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?);
    if file.metadata()?.is_file() {
        rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    }
    Ok(file)
}

/// Whoever writes to a pipe may take any time, but must be there soon. One byte is read to know.
fn await_writer(mut file: File, patience: Timespec, bytes: &mut Vec<u8>) -> io::Result<File> {
    if file.metadata()?.file_type().is_fifo() {
        let arrived = rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&patience)))?;
        let mut first = [0];
        match file.read(&mut first) {
            Ok(0) if arrived == 0 => return Err(io::ErrorKind::TimedOut.into()),
            Ok(count) => bytes.extend_from_slice(first.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// A node while it is read: it knows the way to itself.
#[derive(Debug, Clone)]
pub struct At<'a> {
    document: &'a Document,
    pointer: String,
    node: &'a Node,
}

impl<'a> At<'a> {
    /// The node.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// Where the node begins.
    pub fn place(&self) -> Place {
        self.node.mark.place(&self.document.text)
    }

    /// The member of an object or the element of an array.
    pub fn step(&self, step: &str) -> Option<Self> {
        let node = match &self.node.kind {
            Kind::Map(entries) => entries.iter().find(|(key, _)| key == step).map(|(_, node)| node),
            Kind::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            Kind::Scalar(_) => None,
        };
        node.map(|node| self.child(step, node))
    }

    /// A usage error about this node.
    pub fn fault(&self, what: impl std::fmt::Display) -> Error {
        Error::usage(format!("{self}: {what}"))
    }

    fn child(&self, step: &str, node: &'a Node) -> Self {
        let mut pointer = self.pointer.clone();
        let _ = write!(pointer, "/{}", step.replace('~', "~0").replace('/', "~1"));
        Self { document: self.document, pointer, node }
    }

    /// The entries of an object.
    ///
    /// # Errors
    /// A usage error if it is none.
    pub fn entries(&self) -> Result<impl Iterator<Item = (&'a str, At<'a>)>> {
        match &self.node.kind {
            Kind::Map(entries) => Ok(entries.iter().map(|(key, node)| (key.as_str(), self.child(key, node)))),
            _ => Err(self.fault("must be an object")),
        }
    }

    /// The elements of an array.
    ///
    /// # Errors
    /// A usage error if it is none.
    pub fn items(&self) -> Result<impl ExactSizeIterator<Item = At<'a>>> {
        match &self.node.kind {
            Kind::List(items) => Ok(items.iter().enumerate().map(|(index, node)| self.child(&index.to_string(), node))),
            _ => Err(self.fault("must be an array")),
        }
    }

    /// Refuses fields other than these.
    ///
    /// # Errors
    /// A usage error that names the unknown field and the nearest known one, or that this is no object.
    pub fn only(&self, known: &[&str]) -> Result<()> {
        for (key, field) in self.entries()? {
            if !known.contains(&key) {
                return Err(field.fault(format!("unknown field{}", nearest::hint(key, known.iter().copied()))));
            }
        }
        Ok(())
    }

    /// A field that may be absent; null counts as absent.
    ///
    /// # Errors
    /// A usage error if this is no object.
    pub fn optional(&self, key: &str) -> Result<Option<Self>> {
        Ok(self
            .entries()?
            .find(|(name, field)| *name == key && field.node.kind != Kind::Scalar(Value::Null))
            .map(|(_, field)| field))
    }

    /// A field that must be there.
    ///
    /// # Errors
    /// A usage error if it is absent.
    pub fn required(&self, key: &str) -> Result<Self> {
        self.optional(key)?.ok_or_else(|| self.fault(format!("the field \"{key}\" is missing")))
    }

    /// A string.
    ///
    /// # Errors
    /// A usage error if it is none.
    pub fn text(&self) -> Result<&'a str> {
        match &self.node.kind {
            Kind::Scalar(Value::String(text)) => Ok(text),
            _ => Err(self.fault("must be a string")),
        }
    }

    /// True or false.
    ///
    /// # Errors
    /// A usage error if it is neither.
    pub fn boolean(&self) -> Result<bool> {
        match &self.node.kind {
            Kind::Scalar(Value::Bool(value)) => Ok(*value),
            _ => Err(self.fault("must be true or false")),
        }
    }

    /// A finite number.
    ///
    /// # Errors
    /// A usage error if it is none.
    pub fn number(&self) -> Result<f64> {
        match &self.node.kind {
            Kind::Scalar(Value::Number(number)) => number.as_f64().filter(|number| number.is_finite()),
            _ => None,
        }
        .ok_or_else(|| self.fault("must be a number"))
    }

    /// An integer within bounds, both inclusive.
    ///
    /// # Errors
    /// A usage error if it is none or outside.
    pub fn integer(&self, least: u32, most: u32) -> Result<u32> {
        let number = match &self.node.kind {
            Kind::Scalar(Value::Number(number)) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            _ => None,
        };
        number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            let only = format!("must be {least}");
            let range = format!("must be an integer from {least} to {most}");
            self.fault(if least == most { only } else { range })
        })
    }
}

/// `file:line:column: pointer`.
impl std::fmt::Display for At<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Place { line, column } = self.place();
        let pointer = if self.pointer.is_empty() { "the document" } else { &self.pointer };
        write!(f, "{}:{line}:{column}: {pointer}", self.document.name)
    }
}

type Fault = (Mark, String);

/// Every raw value is a slice of the text it was read from: so its distance from the start is its place.
fn json(text: &str) -> Result<Node, Fault> {
    /// What serde says of a slice of the text, placed in the whole; it may quote a value it cannot hold.
    fn fault(text: &str, offset: usize, error: &serde_json::Error) -> Fault {
        let slice = text.get(offset..).unwrap_or_default();
        let line = slice.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
        let mut at = (offset + line + error.column().saturating_sub(1)).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let words = error.to_string();
        let words = words.rsplit_once(" at line ").map_or(words.as_str(), |(words, _)| words);
        let quotes = error.is_data() && words != REPEATED;
        (Mark::Offset(at), if quotes { "a value that JSON cannot hold".to_owned() } else { words.to_owned() })
    }
    fn node(text: &str, raw: &RawValue, depth: usize) -> Result<Node, Fault> {
        let slice = raw.get();
        let offset = (slice.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let mark = Mark::Offset(offset);
        if depth > DEPTH_LIMIT {
            return Err((mark, format!("nested deeper than {DEPTH_LIMIT}")));
        }
        let kind = match slice.as_bytes().first() {
            Some(b'{') => {
                let Entries(entries) = serde_json::from_str(slice).map_err(|error| fault(text, offset, &error))?;
                let entries = entries.into_iter().map(|(key, raw)| Ok((key, node(text, raw, depth + 1)?)));
                Kind::Map(entries.collect::<Result<_, Fault>>()?)
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(slice).map_err(|error| fault(text, offset, &error))?;
                Kind::List(items.into_iter().map(|raw| node(text, raw, depth + 1)).collect::<Result<_, Fault>>()?)
            }
            _ => Kind::Scalar(serde_json::from_str(slice).map_err(|error| fault(text, offset, &error))?),
        };
        Ok(Node { mark, kind })
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| fault(text, 0, &error))?;
    node(text, raw, 0)
}

/// The one fault of our own among those of JSON's reader.
const REPEATED: &str = "repeated key";

/// The entries of a JSON object, a repeated key refused.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut seen = std::collections::HashSet::new();
                let mut entries = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if !seen.insert(key.clone()) {
                        return Err(de::Error::custom(REPEATED));
                    }
                    entries.push((key, value));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A YAML node before its place is known.
struct Yaml(Kind);

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Build;
        fn scalar(value: impl Into<Value>) -> Yaml {
            Yaml(Kind::Scalar(value.into()))
        }
        fn placed(spanned: serde_saphyr::Spanned<Yaml>) -> Node {
            Node { mark: located(spanned.referenced), kind: spanned.value.0 }
        }
        impl<'de> Visitor<'de> for Build {
            type Value = Yaml;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value")
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Yaml, E> {
                Ok(scalar(value))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Yaml, E> {
                Ok(scalar(value))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Yaml, E> {
                Ok(scalar(value))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Yaml, E> {
                Number::from_f64(value).map(scalar).ok_or_else(|| E::custom("a number must be finite"))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Yaml, E> {
                Ok(scalar(value))
            }

            fn visit_string<E: de::Error>(self, value: String) -> Result<Yaml, E> {
                Ok(scalar(value))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Yaml, E> {
                Ok(scalar(Value::Null))
            }

            fn visit_none<E: de::Error>(self) -> Result<Yaml, E> {
                Ok(scalar(Value::Null))
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Yaml, D::Error> {
                Yaml::deserialize(deserializer)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Yaml, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(placed(item));
                }
                Ok(Yaml(Kind::List(items)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Yaml, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, _>()? {
                    entries.push((key, placed(value)));
                }
                Ok(Yaml(Kind::Map(entries)))
            }
        }
        deserializer.deserialize_any(Build)
    }
}

fn located(location: serde_saphyr::Location) -> Mark {
    Mark::Place(Place { line: location.line(), column: location.column() })
}

fn yaml(text: &str) -> Result<Node, Fault> {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::Error;
    options.merge_keys = serde_saphyr::MergeKeyPolicy::AsOrdinary;
    options.alias_limits.max_total_replayed_events = ALIAS_LIMIT;
    options.strict_booleans = true;
    options.reject_unsupported_tags = true;
    options.budget = serde_saphyr::budget! { max_depth: DEPTH_LIMIT };
    let spanned: serde_saphyr::Spanned<Yaml> = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let mark = error.location().map_or(Mark::START, located);
        let words = error.without_snippet().to_string();
        (mark, format!("not usable YAML: {}", plain_words(words.lines().next().unwrap_or_default())))
    })?;
    Ok(Node { mark: located(spanned.referenced), kind: spanned.value.0 })
}

/// The parser's sentences where they speak to its callers, in words for whoever wrote the file.
fn plain_words(words: &str) -> String {
    let known = [
        ("duplicate mapping key", "a key is given twice"),
        ("multiple", "more than one document"),
        ("alias replay limit", "its aliases expand to too many nodes"),
        ("budget breached: Depth", "it is nested too deeply"),
        ("recursion limit", "it is nested too deeply"),
        ("unsupported tag", "it has a tag that means nothing here; leave it out"),
        ("budget breached", "it is too large"),
    ];
    known
        .iter()
        .find(|(part, _)| words.contains(part))
        .map_or_else(|| words.to_owned(), |(_, plain)| (*plain).to_owned())
}

fn toml(text: &str) -> Result<Node, Fault> {
    use toml::de::{DeTable, DeValue};
    fn table(table: &DeTable<'_>) -> Result<Kind, Fault> {
        let entries = table.iter().map(|(key, value)| {
            Ok((key.get_ref().to_string(), node(Mark::Offset(key.span().start), value.get_ref())?))
        });
        entries.collect::<Result<_, Fault>>().map(Kind::Map)
    }
    fn node(mark: Mark, value: &DeValue<'_>) -> Result<Node, Fault> {
        let fault = |what: &str| (mark, what.to_owned());
        let kind = match value {
            DeValue::String(text) => Kind::Scalar(Value::from(text.as_ref())),
            DeValue::Integer(integer) => {
                let number = i64::from_str_radix(integer.as_str(), integer.radix());
                Kind::Scalar(Value::from(number.map_err(|_| fault("an integer outside 64 bits"))?))
            }
            DeValue::Float(float) => {
                let number = float.as_str().parse().ok().and_then(Number::from_f64);
                Kind::Scalar(Value::Number(number.ok_or_else(|| fault("a number must be finite"))?))
            }
            DeValue::Boolean(value) => Kind::Scalar(Value::from(*value)),
            DeValue::Datetime(_) => return Err(fault("a date is of no use here")),
            DeValue::Array(items) => {
                let items = items.iter().map(|item| node(Mark::Offset(item.span().start), item.get_ref()));
                Kind::List(items.collect::<Result<_, Fault>>()?)
            }
            DeValue::Table(inner) => table(inner)?,
        };
        Ok(Node { mark, kind })
    }
    let parsed = DeTable::parse(text)
        .map_err(|error| (Mark::Offset(error.span().map_or(0, |span| span.start)), error.message().to_owned()))?;
    Ok(Node { mark: Mark::START, kind: table(parsed.get_ref())? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str, notation: Notation) -> Result<Value> {
        Document::parse("d", text, notation).map(|document| document.root().node().to_value())
    }

    fn fault(text: &str, notation: Notation) -> String {
        read(text, notation).expect_err("refused").to_string()
    }

    #[test]
    fn reads_the_same_tree_from_every_notation() {
        let expected = json!({"a": [1, -2, 1.5, true, "x\n"], "b": {"c": "é"}});
        assert_eq!(read(r#"{"a":[1,-2,1.5,true,"x\n"],"b":{"c":"\u00e9"}}"#, Notation::Json).unwrap(), expected);
        assert_eq!(read("a: [1, -2, 1.5, true, \"x\\n\"]\nb:\n  c: é\n", Notation::Yaml).unwrap(), expected);
        assert_eq!(read("a = [1, -2, 1.5, true, \"x\\n\"]\n[b]\nc = 'é'\n", Notation::Toml).unwrap(), expected);
        assert_eq!(read("a: no\nb: ~\n", Notation::Yaml).unwrap(), json!({"a": "no", "b": null}), "YAML 1.2 core");
    }

    #[test]
    fn knows_where_each_value_stands() {
        for (text, notation) in [
            ("{\n  \"é\": {\"wieght\": 1}\n}", Notation::Json),
            ("é:\n  {  wieght: 1}\n", Notation::Yaml),
            ("# one\n\"é\" = { wieght = 1 }\n", Notation::Toml),
        ] {
            let document = Document::parse("d", text, notation).unwrap();
            let inner = document.root().required("é").unwrap();
            let fault = inner.only(&["name", "weight"]).unwrap_err().to_string();
            assert!(fault.starts_with("d:2:"), "{fault}");
            assert!(fault.ends_with("/é/wieght: unknown field; the nearest is \"weight\""), "{fault}");
        }
        let document = Document::parse("d", "[1,\n {\"a/~b\": 7}]", Notation::Json).unwrap();
        let second = document.root().items().unwrap().nth(1).unwrap();
        let fault = second.required("a/~b").unwrap().text().unwrap_err().to_string();
        assert_eq!(fault, "d:2:11: /1/a~1~0b: must be a string");
    }

    #[test]
    fn refuses_repeated_keys_everywhere() {
        assert_eq!(fault("{\"a\": 1,\n \"a\": 2}", Notation::Json).split(": ").nth(1), Some("repeated key"));
        assert!(fault("[{\"x\":{\"a\":1,\"\\u0061\":2}}]", Notation::Json).contains("repeated key"));
        assert!(fault("a: 1\na: 2\n", Notation::Yaml).starts_with("d:2:"));
        assert!(fault("a = 1\na = 2\n", Notation::Toml).starts_with("d:2:"));
    }

    #[test]
    fn refuses_what_it_cannot_hold_without_quoting_it() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        assert!(fault(&deep, Notation::Json).contains("nested deeper"));
        assert!(read(&deep, Notation::Yaml).is_err());
        assert!(read(&deep, Notation::Toml).is_err());
        let huge = fault("{\"secret\": 1e999}", Notation::Json);
        assert!(!huge.contains("999"), "{huge}");
        assert!(read("a: 1\n---\nb: 2\n", Notation::Yaml).is_err(), "one document only");
        assert!(read("a: !mine 1\n", Notation::Yaml).is_err(), "no custom tags");
        assert!(read("a = 2020-01-01\n", Notation::Toml).is_err());
        assert!(read("a = nan\n", Notation::Toml).is_err());
        assert!(read("a: .inf\n", Notation::Yaml).is_err());
        assert!(read("", Notation::Json).is_err());
        let mut bomb = String::from("a0: &a0 [1,1,1,1,1,1,1,1,1]\n");
        for level in 1..12 {
            let inner = vec![format!("*a{}", level - 1); 9].join(",");
            let _ = writeln!(bomb, "a{level}: &a{level} [{inner}]");
        }
        assert!(read(&bomb, Notation::Yaml).is_err(), "aliases cannot multiply without end");
    }

    fn fifo(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        path
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let fault = read_text(&fifo(folder.path()), 10).unwrap_err().to_string();
        assert!(fault.ends_with("pipe: nobody writes to this pipe"), "{fault}");
        let fault = read_text(folder.path(), 10).unwrap_err().to_string();
        assert!(fault.ends_with("this is a folder, not a file"), "{fault}");
    }

    #[test]
    fn a_pipe_is_read_to_its_end_however_slow_its_writer() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        for written in ["", "{\"a\""] {
            let reader = open(&path).unwrap();
            let mut writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            writer.write_all(written.as_bytes()).unwrap();
            let mut bytes = Vec::new();
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut reader = await_writer(reader, now, &mut bytes).unwrap();
            let writing = std::thread::spawn(move || writer.write_all(b":1}"));
            reader.read_to_end(&mut bytes).unwrap();
            writing.join().unwrap().unwrap();
            assert_eq!(bytes, format!("{written}:1}}").as_bytes());
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for text in ["\u{feff}{\"a\":1}", "\u{feff}a: 1\n"] {
            std::fs::write(&path, text).unwrap();
            let accepted = [Notation::Json, Notation::Yaml];
            assert_eq!(Document::read(&path, &accepted).unwrap().root().node().to_value(), json!({"a": 1}));
        }
        for bytes in [b"\xff\xfe{\0}\0".as_slice(), b"\xfe\xff\0{\0}"] {
            std::fs::write(&path, bytes).unwrap();
            assert!(read_text(&path, 100).unwrap_err().to_string().ends_with("UTF-16; save it as UTF-8"));
        }
        std::fs::write(&path, b"\xff").unwrap();
        assert!(read_text(&path, 100).unwrap_err().to_string().ends_with("the file is not UTF-8"));
    }

    #[test]
    fn tells_the_notation_by_extension_or_content() {
        assert_eq!(Notation::of(Path::new("a.json"), ""), Notation::Json);
        assert_eq!(Notation::of(Path::new("a.yml"), "{"), Notation::Yaml);
        assert_eq!(Notation::of(Path::new("a.toml"), ""), Notation::Toml);
        assert_eq!(Notation::of(Path::new("a"), " \n{"), Notation::Json);
        assert_eq!(Notation::of(Path::new("-"), "a: 1"), Notation::Yaml);
    }
}
