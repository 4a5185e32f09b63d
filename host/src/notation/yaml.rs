//! YAML 1.2, core schema: read into a tree, and its faults as sentences with their place.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_path_to_error::{Segment, Track};
use serde_saphyr::Error;

use super::{DEPTH_LIMIT, Fault, Kind, Mark, NOT_FINITE, Node, Place, STANDS_TWICE, TOO_DEEP};
use crate::shown;

/// Events that YAML aliases may add.
const ALIAS_LIMIT: usize = 4096;
/// What is said where nothing better is known.
const UNREADABLE: &str =
    "this is not readable as YAML; look at the indentation, and put text with special signs in quotes";
/// Sentences for what the parser says, by a part of its words.
const SENTENCES: [(&str, &str); 30] = [
    (NOT_FINITE, NOT_FINITE),
    ("recursion limit", TOO_DEEP),
    ("unknown anchor", "this alias (*) names an anchor (&) that no earlier value has; write the value out"),
    ("anchor or alias", "an & or * stands before what is no name; put the text in quotes"),
    ("unclosed quote", "a quote is not closed; close it"),
    ("unclosed bracket", "a bracket is not closed; close it"),
    ("unexpected EOF while parsing a flow", "a bracket is not closed; close it"),
    ("unexpected eof", "the text ends too early; complete it"),
    ("unexpected EOF", "the text ends too early; complete it"),
    ("bracket", "a bracket closes what is not open; remove it or open it"),
    ("a flow mapping, did not", "a comma or the } of the object is missing; add it"),
    ("a flow sequence, expected", "a comma or the ] of the array is missing; add it"),
    ("tab", "a tab stands where only spaces may; indent with spaces"),
    ("simple key expected", "a colon is missing after this key, or the line is indented wrongly; mend it"),
    ("simple key is no longer", "a key must stand on one line with its colon; mend it"),
    (
        "mapping values are not allowed",
        "a second colon stands in this line, or it is indented too far; put text that holds a colon in quotes",
    ),
    ("mapping keys are not allowed", "no key may stand here; look at the indentation"),
    ("did not find expected key", "this line fits no open object; indent it like the keys beside it"),
    ("'-' indicator", "this line fits no open list; indent it like the elements beside it"),
    ("block sequence entries", "a list element may not begin here; put it on a line of its own"),
    ("\"-\" is only valid", "a dash has no place between brackets; separate the elements by commas"),
    ("'-' must be followed", "a dash must be followed by a space; add it"),
    ("':' must be followed", "a colon must be followed by a space; add it"),
    ("':'", "a colon stands where none may; put text that holds one in quotes"),
    ("comment", "a # begins a comment here; put a space before it, or the text in quotes"),
    ("escape", "a backslash in double quotes begins an unknown escape; write two, or use single quotes"),
    ("hexadecimal", "a backslash in double quotes begins an unknown escape; write two, or use single quotes"),
    ("surrogate", "an escape is no character; write the character itself"),
    ("indent", "this line is indented wrongly; indent it like the lines beside it"),
    ("directive", "a line that begins with % means nothing here; remove it"),
];

pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::Error;
    options.merge_keys = serde_saphyr::MergeKeyPolicy::Error;
    options.alias_limits.max_total_replayed_events = ALIAS_LIMIT;
    options.strict_booleans = true;
    options.reject_unsupported_tags = true;
    options.with_snippet = false;
    options.budget = serde_saphyr::budget! { max_depth: DEPTH_LIMIT };
    let mut track = Track::new();
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| {
        serde_saphyr::Spanned::<Yaml>::deserialize(serde_path_to_error::Deserializer::new(reader, &mut track))
    });
    let spanned = read.map_err(|error| {
        let (what, key) = sentence(text, &error);
        Fault {
            mark: error.location().map_or(Mark::START, located),
            pointer: pointer(&track.path(), key.as_deref()),
            what: what.to_owned(),
        }
    })?;
    Ok(Node { mark: located(spanned.referenced), kind: spanned.value.0 })
}

/// What a fault is called in words for whoever wrote the file, and the key that it is about, if it is about one.
fn sentence(text: &str, error: &Error) -> (&'static str, Option<String>) {
    let plain = match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => return sentence(text, error),
        Error::DuplicateMappingKey { key, .. } => {
            return (STANDS_TWICE, key.clone());
        }
        Error::MergeKeyNotAllowed { .. } => {
            return ("merge keys are not expanded; write the fields out", Some("<<".to_owned()));
        }
        Error::Eof { .. } if text.trim().is_empty() => "the document is empty; write a value",
        Error::MultipleDocuments { .. } => "a second document begins here; a file holds one, so remove the rest",
        Error::NonFiniteFloat { .. } => NOT_FINITE,
        Error::UnknownAnchor { .. } => {
            "this alias (*) names an anchor (&) that no earlier value has; write the value out"
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => "its aliases expand to too many values; write fewer",
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "this alias (*) stands inside the value that it names; write the value out"
        }
        Error::UnsupportedTag { .. }
        | Error::InvalidBinaryBase64 { .. }
        | Error::BinaryNotUtf8 { .. }
        | Error::TaggedScalarCannotDeserializeIntoString { .. }
        | Error::TaggedEnumMismatch { .. } => "tags (!) mean nothing here; leave it out, or put the text in quotes",
        Error::InvalidScalar { .. } | Error::InvalidBooleanStrict { .. } => {
            "this value is not of the type that its tag (!) says; leave the tag out"
        }
        Error::Budget { breach, .. } => match breach {
            serde_saphyr::budget::BudgetBreach::Depth { .. } => TOO_DEEP,
            _ => "the document holds more than can be read; make it smaller",
        },
        Error::Unexpected { .. } | Error::NullIntoString { .. } => {
            "a key must be a text; write it without brackets, or in quotes"
        }
        other => {
            let words = other.to_string();
            SENTENCES.iter().find(|(part, _)| words.contains(part)).map_or(UNREADABLE, |(_, plain)| plain)
        }
    };
    (plain, None)
}

/// The way to a fault. Every value stands in one field of a wrapper that knows its place, which is no step of the way.
fn pointer(path: &serde_path_to_error::Path, key: Option<&str>) -> String {
    let mut pointer = String::new();
    let mut last = None;
    for segment in path.iter().skip(1).step_by(2) {
        match segment {
            Segment::Seq { index } => shown::step(&mut pointer, &index.to_string()),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                shown::step(&mut pointer, key);
                last = Some(key.as_str());
            }
            Segment::Unknown => break,
        }
    }
    if let Some(key) = key.filter(|key| last != Some(*key)) {
        shown::step(&mut pointer, key);
    }
    pointer
}

fn located(location: serde_saphyr::Location) -> Mark {
    match (location.line(), location.column()) {
        (0, _) | (_, 0) => Mark::START,
        (line, column) => Mark::Place(Place { line, column }),
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
                Number::from_f64(value).map(scalar).ok_or_else(|| E::custom(NOT_FINITE))
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
