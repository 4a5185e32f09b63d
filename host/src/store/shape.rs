//! The words in which a home remembers arguments, and the sanitizer that lets no other through (docs/findings.md).
//!
//! A shape is a JSON value of these words, objects of them, and `{"array": n, "items": shape}`. What an older version
//! or a stranger wrote becomes a shape, whatever it was; a shape stays as it is.

use serde_json::{Map, Value, json};

/// Objects and arrays within one another.
pub const MAX_DEPTH: usize = 16;
/// Keys of one object.
pub const MAX_KEYS: usize = 256;
/// What stands for whatever lies deeper.
pub const DEEP: &str = "deep";
/// A whole number of at least 0.
pub const INT: &str = "int";
/// A whole number below 0.
pub const NEGATIVE: &str = "int:neg";
/// A number with a point or an exponent.
pub const NUM: &str = "num";
/// Null.
pub const NULL: &str = "null";
/// What a string is that is a UUID.
pub const UUID: &str = "uuid";

const SIZES: [(&str, usize); 5] =
    [("str<8", 8), ("str<32", 32), ("str<128", 128), ("str<512", 512), ("str<4096", 4096)];
const LONGEST: &str = "str>4096";
const URL_WORDS: [&str; 4] = ["ip", "localhost", "host", "public-suffix"];

/// The size bucket of a text, by its UTF-8 bytes.
pub fn size(text: &str) -> &'static str {
    SIZES.iter().find(|(_, most)| text.len() <= *most).map_or(LONGEST, |(word, _)| word)
}

/// The word of a number as it stands in JSON text.
pub fn number(text: &str) -> &'static str {
    if text.contains(['.', 'e', 'E']) {
        NUM
    } else if text.starts_with('-') {
        NEGATIVE
    } else {
        INT
    }
}

/// `bool:true` or `bool:false`.
pub const fn boolean(value: bool) -> &'static str {
    if value { "bool:true" } else { "bool:false" }
}

/// The key that stands for an undeclared one.
pub fn anonymous_key(n: usize) -> String {
    format!("key#{n}")
}

/// Whether a word is one of the shapes of a value that is neither object nor array.
pub fn is_word(word: &str) -> bool {
    if let Some(value) = word.strip_prefix("enum:") {
        return is_enum_value(value);
    }
    if let Some(place) = word.strip_prefix("enum#") {
        return is_count(place);
    }
    if let Some(host) = word.strip_prefix("url:") {
        return URL_WORDS.contains(&host) || is_domain(host);
    }
    [INT, NEGATIVE, NUM, NULL, UUID, DEEP, LONGEST, "bool:true", "bool:false", "empty"].contains(&word)
        || SIZES.iter().any(|(size, _)| *size == word)
}

/// A value of an `enum` that may be kept: `[A-Za-z0-9_.:/-]{1,64}`.
pub fn is_enum_value(value: &str) -> bool {
    is_text(value, 64, "_.:/-")
}

/// A key of a schema that may be kept: `[A-Za-z0-9_.:$-]{1,64}`.
pub fn is_declared_key(key: &str) -> bool {
    is_text(key, 64, "_.:$-")
}

/// A key that the sanitizer lets through: `[A-Za-z_][A-Za-z0-9_.-]{0,63}`, or one that stands for another.
pub fn is_stored_key(key: &str) -> bool {
    key.strip_prefix("key#").is_some_and(is_count)
        || (is_text(key, 64, "_.-") && key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'))
}

fn is_text(text: &str, most: usize, beside: &str) -> bool {
    (1..=most).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || beside.as_bytes().contains(&byte))
}

fn is_count(digits: &str) -> bool {
    (1..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0')
}

fn is_domain(host: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    let is_part = |part: &str| (1..=63).contains(&part.len()) && part.chars().all(is_letter);
    host.len() <= 253 && host.contains('.') && host.split('.').all(is_part)
}

/// The shape of whatever stands in a record; a shape is its own.
pub fn sanitized(value: &Value) -> Value {
    at_depth(value, 0)
}

fn at_depth(value: &Value, depth: usize) -> Value {
    match value {
        Value::Null => NULL.into(),
        Value::Bool(value) => boolean(*value).into(),
        Value::Number(value) => number(&value.to_string()).into(),
        Value::String(text) => word(text).into(),
        Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => DEEP.into(),
        Value::Array(items) => {
            json!({"array": items.len(), "items": items.first().map_or("empty".into(), |item| at_depth(item, depth + 1))})
        }
        Value::Object(members) => match array(members) {
            Some((length, items)) => json!({"array": length, "items": at_depth(items, depth + 1)}),
            None => Value::Object(object(members, depth)),
        },
    }
}

/// Length and items of a shape that stands for an array.
fn array(members: &Map<String, Value>) -> Option<(u64, &Value)> {
    let length = members.get("array").and_then(Value::as_u64)?;
    (members.len() == 2).then(|| Some((length, members.get("items")?)))?
}

fn object(members: &Map<String, Value>, depth: usize) -> Map<String, Value> {
    let kept = || members.iter().take(MAX_KEYS);
    let is_taken = |key: &String| kept().any(|(other, _)| other == key);
    let mut counted = 0;
    let mut fresh = || loop {
        counted += 1;
        let key = anonymous_key(counted);
        if !is_taken(&key) {
            return key;
        }
    };
    kept()
        .map(|(key, value)| {
            let key = if is_stored_key(key) { key.clone() } else { fresh() };
            (key, at_depth(value, depth + 1))
        })
        .collect()
}

fn word(text: &str) -> String {
    if is_word(text) {
        return text.to_owned();
    }
    match text.strip_prefix("num:") {
        Some(literal) if serde_json::from_str::<serde_json::Number>(literal).is_ok() => number(literal).to_owned(),
        _ => size(text).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_stands_there_becomes_a_shape_and_stays_one() {
        let mut nested = json!("secret value");
        for _ in 0..20 {
            nested = json!([nested]);
        }
        for (found, expected) in [
            (json!({"limit": "num:4915112345678"}), json!({"limit": "int"})),
            (
                json!({"a": "num:-3", "b": "num:1e9", "c": "num:1.5", "d": "num:x"}),
                json!({"a": "int:neg", "b": "num", "c": "num", "d": "str<8"}),
            ),
            (
                json!({"a": 5, "b": -5, "c": 0.5, "d": true, "e": null}),
                json!({"a": "int", "b": "int:neg", "c": "num", "d": "bool:true", "e": "null"}),
            ),
            (json!({"a@b.example": "int"}), json!({"key#1": "int"})),
            (json!({"key#1": "int", "49 151": "uuid"}), json!({"key#1": "int", "key#2": "uuid"})),
            (json!({"path": "/home/ada/notes.txt and more"}), json!({"path": "str<32"})),
            (
                json!({"u": "url:example.com", "v": "url:ip", "w": "url:http://a:b@c/"}),
                json!({"u": "url:example.com", "v": "url:ip", "w": "str<32"}),
            ),
            (
                json!({"mode": "enum:fast", "other": "enum#3", "bad": "enum:a b"}),
                json!({"mode": "enum:fast", "other": "enum#3", "bad": "str<8"}),
            ),
            (json!({"array": 3, "items": "str<8"}), json!({"array": 3, "items": "str<8"})),
            (json!(["x", "y"]), json!({"array": 2, "items": "str<8"})),
            (
                json!({"u": "url:b\u{fc}cher.example", "v": "url:\u{fc} my secret.example", "w": "url:\u{fc}@b.example"}),
                json!({"u": "url:b\u{fc}cher.example", "v": "str<32", "w": "str<32"}),
            ),
            (json!([]), json!({"array": 0, "items": "empty"})),
        ] {
            let shape = sanitized(&found);
            assert_eq!(shape, expected, "{found}");
            assert_eq!(sanitized(&shape), shape, "{found}");
        }
        let deep = sanitized(&nested);
        assert!(deep.to_string().contains(DEEP) && !deep.to_string().contains("secret"));
        assert_eq!(sanitized(&deep), deep);
        let many: Value = (0..300).map(|n| (format!("k{n:03}"), json!(n))).collect::<Map<_, _>>().into();
        assert_eq!(sanitized(&many).as_object().unwrap().len(), MAX_KEYS);
    }

    #[test]
    fn texts_have_sizes_and_numbers_have_signs() {
        let sizes =
            [(0, "str<8"), (8, "str<8"), (9, "str<32"), (128, "str<128"), (4096, "str<4096"), (4097, "str>4096")];
        for (length, word) in sizes {
            assert_eq!(size(&"x".repeat(length)), word);
        }
        for (text, word) in [("0", "int"), ("-1", "int:neg"), ("1.0", "num"), ("1e2", "num"), ("-1E2", "num")] {
            assert_eq!(number(text), word);
        }
    }
}
