//! A stored report, read back: every string keeps its grammar, enumerations are closed, unknown members are ignored.
//! Errors name the place, never a value.

pub(crate) mod fields;
mod legacy;
mod sums;
mod vocabulary;

use std::fmt::Write as _;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_path_to_error::Segment;

use super::document::{EARLIER_SCHEMA, Report, SCHEMA};
use crate::error::{Error, Result};
use crate::notation::{self, json};
use crate::shown;

pub use vocabulary::Vocabulary;

/// Bytes of a stored document.
pub const DOCUMENT_LIMIT: usize = 64 * 1024 * 1024;

/// Bytes of the longest name of a member.
const LONGEST_NAME: usize = 128;

/// The text of a document and what it is called in errors; `-` is standard input.
///
/// # Errors
/// A usage error if it cannot be read, is larger than [`DOCUMENT_LIMIT`], or no UTF-8.
pub fn source(path: &Path) -> Result<(String, String)> {
    if path == Path::new("-") {
        let name = "standard input".to_owned();
        let text = notation::read_text_from(std::io::stdin().lock(), &name, DOCUMENT_LIMIT)?;
        return Ok((name, text));
    }
    Ok((path.display().to_string(), notation::read_text(path, DOCUMENT_LIMIT)?))
}

/// The report of a text; `name` is what it is called in errors, `vocabulary` what the shipped components can say.
///
/// # Errors
/// A usage error with line and column or a JSON Pointer.
pub fn report(name: &str, text: &str, vocabulary: &Vocabulary<'_>) -> Result<Report> {
    let text = notation::without_mark(text);
    let report = match schema(name, text)?.as_str() {
        SCHEMA => parse::<Report>(name, text)?,
        EARLIER_SCHEMA => parse::<legacy::Document>(name, text)?.into_report(vocabulary),
        _ => return Err(Error::usage(format!("{name}: /schema: must be \"{SCHEMA}\" or \"{EARLIER_SCHEMA}\""))),
    };
    vocabulary
        .check(&report)
        .and_then(|()| sums::check(&report))
        .map_err(|(pointer, what)| Error::usage(format!("{name}: {}: {what}", shown::pointer(&pointer))))?;
    Ok(report)
}

/// What a document says it is; empty if it says nothing.
///
/// # Errors
/// A usage error if the text is no JSON object.
pub(super) fn schema(name: &str, text: &str) -> Result<String> {
    struct Head(String);
    impl<'de> Deserialize<'de> for Head {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Object;
            impl<'de> Visitor<'de> for Object {
                type Value = Head;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head, A::Error> {
                    let mut head = Head(String::new());
                    while let Some(key) = map.next_key::<String>()? {
                        if key == "schema" {
                            head.0 = map.next_value()?;
                        } else {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                    Ok(head)
                }
            }
            deserializer.deserialize_map(Object)
        }
    }
    parse(name, text).map(|Head(schema)| schema)
}

fn parse<'a, T: Deserialize<'a>>(name: &str, text: &'a str) -> Result<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let pointer = pointer(error.path());
        fault(name, text, &pointer, error.inner())
    })?;
    reader.end().map_err(|error| fault(name, text, "", &error))?;
    Ok(value)
}

/// A sentence about an error of the reader, its place as exactly as it is known.
pub(super) fn fault(name: &str, text: &str, pointer: &str, error: &serde_json::Error) -> Error {
    let place = json::place(text, error);
    if !error.is_data() {
        let steps = json::way(text, json::offset(text, error)).into_iter().take_while(|key| is_shown(key));
        let pointer = steps.fold(String::new(), |pointer, key| pointer + "/" + &shown::escaped(&key));
        return notation::fault(name, place, &pointer, json::sentence(text, error));
    }
    let words = error.to_string();
    let words = words.rsplit_once(" at line ").map_or(words.as_str(), |(words, _)| words);
    notation::fault(name, place, pointer, &plain(words))
}

/// What serde says of a value, without the value, in words for whoever looks at the document.
fn plain(words: &str) -> String {
    let quotes = ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant "];
    if words.starts_with("unknown field ") {
        return "a field that is not known here".to_owned();
    }
    if !quotes.iter().any(|start| words.starts_with(start)) {
        return words.to_owned();
    }
    // What is expected stands last, and is the reader's own text.
    let Some((_, expected)) = words.rsplit_once(", expected ") else { return "of the wrong type".to_owned() };
    let expected = match expected {
        "u32" => "an integer from 0 to 4294967295",
        "u64" => "an integer of at least 0",
        "a sequence" => "an array",
        "a map" => "an object",
        expected if expected.starts_with("struct ") => "an object",
        expected => expected,
    };
    format!("must be {expected}")
}

/// The way to a value, as a JSON Pointer; it ends before a name that no document has.
fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        if matches!(segment, Segment::Map { key } if !is_shown(key)) {
            break;
        }
        // Writing to a string cannot fail.
        _ = match segment {
            Segment::Seq { index } => write!(pointer, "/{index}"),
            Segment::Map { key } | Segment::Enum { variant: key } => write!(pointer, "/{}", shown::escaped(key)),
            Segment::Unknown => Ok(()),
        };
    }
    pointer
}

/// Whether a member's name may be that of a document, and is no free text.
pub(super) fn is_shown(name: &str) -> bool {
    name.len() <= LONGEST_NAME && name.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests;
