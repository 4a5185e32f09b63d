//! JSON-RPC messages, read from their text one level at a time: of what is not recorded nothing is copied.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// Longer ids are known by their hash.
const MAX_ID: usize = 256;

/// One message.
#[derive(Debug)]
pub(super) enum Message<'a> {
    /// Asks for an answer.
    Request {
        /// Equal for equal ids, however they are written.
        id: String,
        /// Its method.
        method: Cow<'a, str>,
        /// Its parameters.
        params: Option<&'a RawValue>,
    },
    /// Asks for none.
    Notification {
        /// Its method.
        method: Cow<'a, str>,
        /// Its parameters.
        params: Option<&'a RawValue>,
    },
    /// A good answer.
    Result {
        /// As in the request.
        id: String,
        /// What was asked for.
        result: &'a RawValue,
    },
    /// A bad one.
    Error {
        /// As in the request.
        id: String,
        /// Usually an object.
        error: &'a RawValue,
    },
}

/// The messages of a frame: one, or those of a batch. None stands for what is no message.
pub(super) fn read(frame: &[u8]) -> Vec<Option<Message<'_>>> {
    let Ok(frame) = serde_json::from_slice::<&RawValue>(frame) else { return vec![None] };
    match elements(frame) {
        Some(batch) if !batch.is_empty() => batch.into_iter().map(one).collect(),
        _ => vec![one(frame)],
    }
}

fn one(text: &RawValue) -> Option<Message<'_>> {
    let members = members(text)?;
    let get = |key: &str| members.get(key).copied();
    let id = get("id").map(identity);
    let params = get("params");
    if let Some(method) = get("method") {
        let method = string(method)?;
        return Some(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        });
    }
    // Some servers write `"error": null` beside a result.
    let error = get("error").filter(|error| error.get() != "null");
    match (error, get("result")) {
        (Some(error), _) => Some(Message::Error { id: id?, error }),
        (None, Some(result)) => Some(Message::Result { id: id?, result }),
        (None, None) => None,
    }
}

/// Equal for equal values: numbers by their value where it is whole, strings without their escapes.
pub(super) fn identity(id: &RawValue) -> String {
    let text = id.get();
    let canonical = match text.as_bytes().first() {
        Some(b'"' | b'{' | b'[') => serde_json::from_str::<serde_json::Value>(text).map(|value| value.to_string()).ok(),
        _ => whole(text),
    };
    let canonical = canonical.unwrap_or_else(|| text.to_owned());
    if canonical.len() <= MAX_ID { canonical } else { format!("{:x}", Sha256::digest(canonical)) }
}

/// `7.0` and `70e-1` are 7 to most who read JSON.
fn whole(number: &str) -> Option<String> {
    let is_whole = !number.contains(['.', 'e', 'E']);
    let value: f64 = number.parse().ok().filter(|_| !is_whole)?;
    (value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0).then(|| format!("{value:.0}"))
}

/// The members of an object, in byte order of their keys; of equal keys the last one counts. None if it is no object.
pub(super) fn members(text: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    if !text.get().starts_with('{') {
        return None;
    }
    serde_json::from_str(text.get()).ok()
}

/// The elements of an array; none if it is no array.
pub(super) fn elements(text: &RawValue) -> Option<Vec<&RawValue>> {
    if !text.get().starts_with('[') {
        return None;
    }
    serde_json::from_str(text.get()).ok()
}

/// How many elements an array has, and the first of them; none if it is no array.
pub(super) fn first_element(text: &RawValue) -> Option<(u64, Option<&RawValue>)> {
    struct Elements;
    impl<'de> Visitor<'de> for Elements {
        type Value = (u64, Option<&'de RawValue>);

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
            let first = elements.next_element()?;
            let mut count = u64::from(first.is_some());
            while elements.next_element::<IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok((count, first))
        }
    }
    serde_json::Deserializer::from_str(text.get()).deserialize_seq(Elements).ok()
}

/// The value of a string; none if it is no string, or has half a surrogate.
pub(super) fn string(text: &RawValue) -> Option<Cow<'_, str>> {
    let inner = text.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(text.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The value of a boolean.
pub(super) fn boolean(text: &RawValue) -> Option<bool> {
    text.get().parse().ok()
}

/// Whether the form of a UUID stands at that place: `8-4-4-4-12` hexadecimal digits.
pub(super) fn is_uuid_at(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..at + 36).is_some_and(|uuid| {
        uuid.iter().enumerate().all(|(n, byte)| match n {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn messages_are_told_apart() {
        let kind = |frame: &str| -> String {
            let words = read(frame.as_bytes()).into_iter().map(|message| match message {
                None => "none".to_owned(),
                Some(Message::Request { id, method, .. }) => format!("request {id} {method}"),
                Some(Message::Notification { method, .. }) => format!("notification {method}"),
                Some(Message::Result { id, .. }) => format!("result {id}"),
                Some(Message::Error { id, .. }) => format!("error {id}"),
            });
            words.collect::<Vec<_>>().join(", ")
        };
        for (frame, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping"),
            (r#" {"id":null,"method":"a\/b"} "#, "request null a/b"),
            (r#"{"method":"notifications/x","params":{}}"#, "notification notifications/x"),
            (r#"{"id":"a","result":{}}"#, "result \"a\""),
            (r#"{"id":"a","result":null}"#, "result \"a\""),
            (r#"{"id":2,"result":{},"error":null}"#, "result 2"),
            (r#"{"id":2,"result":{},"error":{}}"#, "error 2"),
            (r#"{"id":{"b":1,"a":2},"error":"x"}"#, r#"error {"a":2,"b":1}"#),
            (r#"[{"id":1,"method":"a"},7,{"method":"b"}]"#, "request 1 a, none, notification b"),
            ("[]", "none"),
            ("{}", "none"),
            (r#"{"id":1}"#, "none"),
            (r#"{"result":1}"#, "none"),
            (r#"{"id":1,"method":7}"#, "none"),
            ("listening on port 3", "none"),
            (r#"{"id":1,"method":"x"}{"#, "none"),
            ("7", "none"),
            ("\u{feff}{}", "none"),
        ] {
            assert_eq!(kind(frame), expected, "{frame}");
        }
        assert!(read(b"\"\xff\"")[0].is_none());
    }

    #[test]
    fn equal_ids_are_equal_however_they_are_written() {
        for (one, other) in [("1", "1.0"), ("1", "10e-1"), (r#""a""#, r#""\u0061""#), ("[1]", "[ 1 ]")] {
            assert_eq!(identity(raw(one)), identity(raw(other)), "{one}");
        }
        for (one, other) in [("1", "\"1\""), ("1", "1.5"), ("null", "0"), ("9007199254740993", "9007199254740992")] {
            assert_ne!(identity(raw(one)), identity(raw(other)), "{one}");
        }
        let long = format!("\"{}\"", "x".repeat(10_000));
        assert!(identity(raw(&long)).len() <= MAX_ID);
    }

    #[test]
    fn values_are_read_one_level_at_a_time() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let (count, first) = first_element(raw(&deep)).unwrap();
        assert_eq!((count, first.map(|first| first.get().len())), (1, Some(deep.len() - 2)));
        assert!(first_element(raw("[]")).unwrap().1.is_none() && first_element(raw("{}")).is_none());
        assert_eq!(string(raw(r#""a\n\"""#)).unwrap(), "a\n\"");
        assert!(string(raw(r#""\ud800""#)).is_none() && string(raw("1")).is_none());
        let found = members(raw(r#"{"b":1,"a":2,"b":3}"#)).unwrap();
        assert_eq!(found.iter().map(|(key, value)| format!("{key}{}", value.get())).collect::<String>(), "a2b3");
        assert_eq!((boolean(raw("true")), boolean(raw("1"))), (Some(true), None));
    }
}
