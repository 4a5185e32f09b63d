//! Documents that people write, in JSON, YAML or TOML, read into one tree that knows where each value stands.
//!
//! Repeated keys are refused in every notation, nothing is templated, and an error names file, line, column and
//! JSON Pointer, never a value.

pub mod json;
mod source;
#[cfg(test)]
mod tests;
mod toml;
mod yaml;

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::{nearest, shown};

pub use source::{decode, open, read_text, read_text_from, without_mark};

/// Bytes of one written document.
pub const DOCUMENT_LIMIT: usize = 1024 * 1024;
/// Nested objects and arrays; the reader recurses once for each.
pub const DEPTH_LIMIT: usize = 100;
/// What is said of a key that stands twice, in JSON and YAML.
const STANDS_TWICE: &str = "this key stands twice in its object; keep one";
/// What is said of infinite numbers and of what is no number, in YAML and TOML.
const NOT_FINITE: &str = "a number must be finite; write one that is, or put text in quotes";
/// What is said of anything that nests deeper than the reader can follow.
const TOO_DEEP: &str = "nested too deeply; flatten it";

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
            _ if without_mark(text).trim_start().starts_with('{') => Self::Json,
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
        let mark = text.len() - without_mark(&text).len();
        text.drain(..mark);
        let root = match notation {
            Notation::Json => json::read(&text),
            Notation::Yaml => yaml::read(&text),
            Notation::Toml => toml::read(&text),
        };
        let root = root.map_err(|Fault { mark, pointer, what }| fault(name, mark.place(&text), &pointer, &what))?;
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
        shown::step(&mut pointer, step);
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
                return Err(field.fault(format!("unknown field{}", nearest::choices(key, known.iter().copied()))));
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
        write!(f, "{}:{line}:{column}: {}", self.document.name, shown::pointer(&self.pointer))
    }
}

/// Why a text is no document.
#[derive(Debug)]
struct Fault {
    mark: Mark,
    /// JSON Pointer of the value that the place lies in, as far as it is known.
    pointer: String,
    /// What to do.
    what: String,
}

/// A usage error about a place of a document: `file:line:column: pointer: sentence`.
pub fn fault(name: &str, place: Place, pointer: &str, what: &str) -> Error {
    Error::usage(format!("{name}:{}:{}: {}: {what}", place.line, place.column, shown::pointer(pointer)))
}
