//! JSON: read into a tree, and its faults as sentences with their place.

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::{DEPTH_LIMIT, Fault, Kind, Mark, Node, Place, STANDS_TWICE, TOO_DEEP};
use crate::shown;

/// Sentences for what the reader says, by what its words begin with.
const SENTENCES: [(&str, &str); 18] = [
    (REPEATED, STANDS_TWICE),
    ("EOF while parsing a list", "the text ends inside an array; close it with ]"),
    ("EOF while parsing an object", "the text ends inside an object; close it with }"),
    ("EOF while parsing a string", "the text ends inside a string; close it with a double quote"),
    ("EOF while parsing a value", "the text ends where a value is due; add the value"),
    ("expected `:`", "a colon is missing after this key; add it"),
    ("expected `,` or `]`", "a comma or the ] of the array is missing here; add it"),
    ("expected `,` or `}`", "a comma or the } of the object is missing here; add it"),
    (
        "expected ident",
        "no JSON value stands here; write true, false or null in lower case, or put text in double quotes",
    ),
    ("expected value", "no JSON value begins here; text takes double quotes, and comments must go"),
    ("invalid escape", "a backslash here begins no escape of JSON; write two for a backslash itself"),
    ("invalid number", "this number has a form that JSON lacks; write it like 12, -1.5 or 2e3"),
    ("number out of range", "this number is too large to be held; write a smaller one"),
    (CONTROL, "a line break or control character stands in a string; write its escape, \\n for a line break"),
    ("key must be a string", "a key must stand in double quotes; add them"),
    ("trailing characters", "something follows the end of the document; remove it"),
    ("recursion limit exceeded", TOO_DEEP),
    ("EOF", "the text ends too early; complete it"),
];
/// The one fault of our own among those of JSON's reader.
const REPEATED: &str = "repeated key";
/// How the reader begins what it says of a raw control character in a string.
const CONTROL: &str = "control character";
/// What a wrong `\u` escape is called, in whatever words the reader finds for it.
const ESCAPE: &str = "an escape that begins with \\u is no character; write the character itself";

/// A sentence about what the reader says of the text, without a word of either; it says what to do.
pub fn sentence(text: &str, error: &serde_json::Error) -> &'static str {
    if text.trim().is_empty() {
        return "the document is empty; write a JSON value";
    }
    let (before, after) = text.split_at_checked(offset(text, error)).unwrap_or_default();
    if before.trim_end().ends_with(',') && after.starts_with(['}', ']']) {
        return "a comma stands before the closing bracket; remove it";
    }
    let words = error.to_string();
    let known = SENTENCES.iter().find(|(start, _)| words.starts_with(start));
    known.map_or(ESCAPE, |(_, plain)| plain)
}

/// Where the reader of a text stopped, as an offset in bytes: where the text ends too early, the end of what it holds.
pub fn offset(text: &str, error: &serde_json::Error) -> usize {
    if error.classify() == Category::Eof {
        return text.trim_end().len();
    }
    let line: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    // Of most faults it has read the byte that is wrong, of this one all before it.
    let read = usize::from(!error.to_string().starts_with(CONTROL));
    let mut at = (line + error.column().saturating_sub(read)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The same as line and column.
pub fn place(text: &str, error: &serde_json::Error) -> Place {
    Place::of_offset(text, offset(text, error))
}

/// An object or array that is open where a text is cut off.
enum Open<'a> {
    List(usize),
    /// The key whose value is due or has begun, in quotes.
    Map(Option<&'a str>),
}

/// The keys and indices that lead to the value that an offset of a text lies in or right after, as far as they are known
/// there.
pub fn way(text: &str, offset: usize) -> Vec<String> {
    let before = text.get(..offset).unwrap_or(text);
    let mut open: Vec<Open<'_>> = Vec::new();
    // What is deeper than any document may be is counted only.
    let mut deeper = 0_usize;
    let mut bytes = before.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'{' | b'[' if open.len() > DEPTH_LIMIT => deeper += 1,
            b'}' | b']' if deeper > 0 => deeper -= 1,
            b'{' => open.push(Open::Map(None)),
            b'[' => open.push(Open::List(0)),
            b'}' | b']' => drop(open.pop()),
            b',' if deeper == 0 => match open.last_mut() {
                Some(Open::List(index)) => *index += 1,
                Some(Open::Map(key)) => *key = None,
                None => {}
            },
            b'"' => {
                let end = loop {
                    match bytes.next() {
                        Some((_, b'\\')) => drop(bytes.next()),
                        Some((end, b'"')) => break Some(end),
                        Some(_) => {}
                        None => break None,
                    }
                };
                if let (0, Some(end), Some(Open::Map(key @ None))) = (deeper, end, open.last_mut()) {
                    *key = before.get(at..=end);
                }
            }
            _ => {}
        }
    }
    let step = |open: Open<'_>| match open {
        Open::List(index) => Some(index.to_string()),
        Open::Map(quoted) => quoted.and_then(|quoted| serde_json::from_str(quoted).ok()),
    };
    open.into_iter().map_while(step).collect()
}

fn pointer(text: &str, offset: usize) -> String {
    let mut pointer = String::new();
    for step in &way(text, offset) {
        shown::step(&mut pointer, step);
    }
    pointer
}

/// Every raw value is a slice of the text it was read from: so its distance from the start is its place.
pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| fault(text, 0, &error))?;
    node(text, raw, 0)
}

/// What the reader says of the slice that begins at an offset, placed in the whole.
fn fault(text: &str, start: usize, error: &serde_json::Error) -> Fault {
    let slice = text.get(start..).unwrap_or_default();
    let at = start + offset(slice, error);
    let what = sentence(slice, error).to_owned();
    if error.is_data() {
        // The reader has just read the key that stands twice, and stopped at its closing quote.
        let escaped =
            |quote: usize| text.as_bytes().iter().take(quote).rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1;
        let key = text.get(..at).unwrap_or_default().rmatch_indices('"').find(|(quote, _)| !escaped(*quote));
        return Fault { mark: Mark::Offset(key.map_or(at, |(quote, _)| quote)), pointer: pointer(text, at + 1), what };
    }
    Fault { mark: Mark::Offset(at), pointer: pointer(text, at), what }
}

fn node(text: &str, raw: &RawValue, depth: usize) -> Result<Node, Fault> {
    let slice = raw.get();
    let offset = (slice.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let mark = Mark::Offset(offset);
    if depth > DEPTH_LIMIT {
        let what = format!("nested deeper than {DEPTH_LIMIT} objects and arrays; flatten it");
        return Err(Fault { mark, pointer: pointer(text, offset), what });
    }
    let broken = |error| fault(text, offset, &error);
    let kind = match slice.as_bytes().first() {
        Some(b'{') => {
            let Entries(entries) = serde_json::from_str(slice).map_err(broken)?;
            let entries = entries.into_iter().map(|(key, raw)| Ok((key, node(text, raw, depth + 1)?)));
            Kind::Map(entries.collect::<Result<_, Fault>>()?)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(slice).map_err(broken)?;
            Kind::List(items.into_iter().map(|raw| node(text, raw, depth + 1)).collect::<Result<_, Fault>>()?)
        }
        _ => Kind::Scalar(serde_json::from_str(slice).map_err(broken)?),
    };
    Ok(Node { mark, kind })
}

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
                while let Some(key) = map.next_key::<String>()? {
                    // Before its value, so that the place is that of the key.
                    if !seen.insert(key.clone()) {
                        return Err(de::Error::custom(REPEATED));
                    }
                    entries.push((key, map.next_value()?));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
