//! JSON as it travelled: text first, read only as far as a judgement needs.
//!
//! A server's answer may be megabytes or nested a thousand deep. [`View`] walks such text without building a tree and
//! without recursion, so neither memory nor stack depends on what the server sends.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// One JSON value as text, exactly as it travelled.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(String);

impl Json {
    pub(crate) fn from_contract(text: String) -> Self {
        Self(text)
    }

    /// Text that is one JSON value, kept as it is; `None` if it is not.
    pub fn read(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        serde_json::from_str::<&RawValue>(&text).is_ok().then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The whole value as a tree. An error where it nests deeper than 128 levels: use [`Json::view`] for a server's
    /// words.
    pub fn parse(&self) -> serde_json::Result<Value> {
        serde_json::from_str(&self.0)
    }

    /// The value, to look into without a tree.
    pub fn view(&self) -> View<'_> {
        View(self.0.trim_matches(BLANKS))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self(value.to_string())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

/// What can be sent as `params`: nothing, a tree, or text that is kept as it is.
pub trait Params {
    /// The text to send, if any.
    fn text(&self) -> Option<Cow<'_, str>>;
}

impl Params for () {
    fn text(&self) -> Option<Cow<'_, str>> {
        None
    }
}

impl Params for Value {
    fn text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(self.to_string()))
    }
}

impl Params for Json {
    fn text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self.as_str()))
    }
}

impl<P: Params + ?Sized> Params for &P {
    fn text(&self) -> Option<Cow<'_, str>> {
        (**self).text()
    }
}

/// The parameters of `tools/call`, with the arguments' text kept as it is.
pub fn call_params(tool: &str, arguments: &Json) -> Json {
    let name = Value::from(tool);
    Json(format!(r#"{{"name":{name},"arguments":{arguments}}}"#))
}

/// Bytes of compact JSON for one token.
const BYTES_PER_TOKEN: usize = 4;

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// One value inside JSON text. Looking into something that is not there, or is of another type, gives `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View<'a>(&'a str);

impl<'a> View<'a> {
    /// The text of this value.
    pub fn text(self) -> &'a str {
        self.0
    }

    /// This value as text of its own.
    pub fn to_json(self) -> Json {
        Json(self.0.to_owned())
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        self.0.starts_with('[')
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// A boolean.
    pub fn bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// An integer, as JSON-RPC codes are; one written with a fraction of zero is one, too.
    pub fn integer(self) -> Option<i64> {
        if let Ok(integer) = self.0.parse() {
            return Some(integer);
        }
        let number: f64 = self.0.parse().ok()?;
        // Beyond 2^53 a float no longer says which integer was meant.
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        (self.0.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
            && number.fract() == 0.0
            && number.abs() < 9e15)
            .then_some(number as i64)
    }

    /// A string, unescaped; half a surrogate pair becomes U+FFFD.
    pub fn string(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            Some(Cow::Owned(Units(inner).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()))
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// The member of that name; of a repeated name the last, as JSON parsers do.
    pub fn member(self, name: &str) -> Option<View<'a>> {
        self.pick([name])?[0]
    }

    /// Several members in one pass; `None` if this is no object.
    pub fn pick<const N: usize>(self, names: [&str; N]) -> Option<[Option<View<'a>>; N]> {
        let mut found = [None; N];
        self.each_member(|name, value| {
            if let Some(slot) = names.iter().position(|wanted| *wanted == name) {
                found[slot] = Some(value);
            }
        })?;
        Some(found)
    }

    /// All members in the order of the text, of a repeated name only the last; `None` if this is no object.
    pub fn members(self) -> Option<Vec<(Cow<'a, str>, View<'a>)>> {
        let mut members: Vec<(Cow<'a, str>, View<'a>)> = Vec::new();
        let mut places: HashMap<Cow<'a, str>, usize> = HashMap::new();
        self.each_member(|name, value| {
            let place = *places.entry(name.clone()).or_insert(members.len());
            match members.get_mut(place) {
                Some(member) => member.1 = value,
                None => members.push((name, value)),
            }
        })?;
        Some(members)
    }

    /// The items of an array; `None` if this is none.
    pub fn items(self) -> Option<Vec<View<'a>>> {
        if !self.is_array() {
            return None;
        }
        serde_json::Deserializer::from_str(self.0).deserialize_seq(Items).ok()
    }

    /// The value that a JSON Pointer (RFC 6901) leads to from here; the empty one leads here.
    pub fn pointer(self, pointer: &str) -> Option<View<'a>> {
        let mut tokens = pointer.split('/');
        if tokens.next() != Some("") {
            return None;
        }
        tokens.try_fold(self, |place, token| {
            if place.is_array() {
                // As the RFC has it: no sign, no leading zero, and `-` is never there.
                let plain = token == "0" || token.starts_with(|first: char| matches!(first, '1'..='9'));
                let index: usize = token.parse().ok().filter(|_| plain)?;
                return place.items()?.get(index).copied();
            }
            place.member(&token.replace("~1", "/").replace("~0", "~"))
        })
    }

    fn each_member(self, visit: impl FnMut(Cow<'a, str>, View<'a>)) -> Option<()> {
        if !self.is_object() {
            return None;
        }
        serde_json::Deserializer::from_str(self.0).deserialize_map(Members(visit)).ok()
    }

    /// mcpeval's estimate of the tokens this value takes: a quarter of [`View::compact_len`], rounded up.
    pub fn tokens(self) -> u32 {
        u32::try_from(self.compact_len().div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX)
    }

    /// Bytes of this value as compact JSON: UTF-8, no blanks, only necessary escapes, numbers and key order as they
    /// are.
    pub fn compact_len(self) -> usize {
        let mut bytes = 0;
        let mut rest = self.0;
        while let Some(start) = rest.find('"') {
            bytes += unblanked(&rest[..start]);
            let string = &rest[start + 1..];
            let end = string_end(string);
            let inner = &string[..end];
            bytes += 2 + if inner.contains('\\') { Units(inner).map(escaped_len).sum() } else { inner.len() };
            rest = string.get(end + 1..).unwrap_or_default();
        }
        bytes + unblanked(rest)
    }
}

/// Bytes outside strings that are no blanks.
fn unblanked(text: &str) -> usize {
    text.bytes().filter(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

/// Where the string ends whose opening quote was just passed.
fn string_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Bytes of one character in a string with only necessary escapes. Half a pair has no UTF-8 and stays `\uXXXX`.
fn escaped_len(unit: Result<char, u16>) -> usize {
    match unit {
        Err(_) => 6,
        Ok('"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}') => 2,
        Ok(control) if control < ' ' => 6,
        Ok(plain) => plain.len_utf8(),
    }
}

/// The characters of a string's inside; half a surrogate pair is an error.
struct Units<'a>(&'a str);

impl Units<'_> {
    fn hex(&mut self) -> Option<u16> {
        let digits = self.0.get(..4)?;
        let unit = u16::from_str_radix(digits, 16).ok()?;
        self.0 = &self.0[4..];
        Some(unit)
    }
}

impl Iterator for Units<'_> {
    type Item = Result<char, u16>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut take = || {
            let mut chars = self.0.chars();
            let next = chars.next()?;
            self.0 = chars.as_str();
            Some(next)
        };
        let first = take()?;
        if first != '\\' {
            return Some(Ok(first));
        }
        let kind = take()?;
        Some(match kind {
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'u' => {
                let Some(high) = self.hex() else { return Some(Ok('u')) };
                let after = self.0;
                let low = after.strip_prefix("\\u").and_then(|rest| {
                    self.0 = rest;
                    self.hex()
                });
                let pair = char::decode_utf16([high].into_iter().chain(low)).next();
                let whole = pair.unwrap_or(Ok(char::REPLACEMENT_CHARACTER)).map_err(|half| half.unpaired_surrogate());
                // The second escape belongs to this character only if both make a pair.
                if !whole.is_ok_and(|char| char > '\u{ffff}') {
                    self.0 = after;
                }
                whole
            }
            other => Ok(other),
        })
    }
}

struct Members<F>(F);

impl<'de, F: FnMut(Cow<'de, str>, View<'de>)> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        // Keys as raw text: one with half a surrogate pair must not hide its siblings.
        while let Some(key) = map.next_key_seed(Raw)? {
            let value = map.next_value_seed(Raw)?;
            if let Some(name) = key.string() {
                (self.0)(name, value);
            }
        }
        Ok(())
    }
}

struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<View<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Raw)? {
            items.push(item);
        }
        Ok(items)
    }
}

struct Raw;

impl<'de> DeserializeSeed<'de> for Raw {
    type Value = View<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<View<'de>, D::Error> {
        let raw: &'de RawValue = serde::Deserialize::deserialize(deserializer)?;
        Ok(View(raw.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json(text.to_owned())
    }

    #[test]
    fn members_are_found_without_a_tree() {
        let deep = format!(r#" {{"a": {}1{}, "b":"x", "a2":[1, {{}}]}} "#, "[".repeat(5000), "]".repeat(5000));
        let deep = json(&deep);
        let [b, list, none] = deep.view().pick(["b", "a2", "c"]).unwrap();
        assert_eq!(b.unwrap().string().unwrap(), "x");
        assert_eq!(list.unwrap().items().unwrap().len(), 2);
        assert!(none.is_none());
        assert!(deep.parse().is_err());
    }

    #[test]
    fn the_last_of_repeated_members_wins() {
        let repeated = json(r#"{"a":1,"b":2,"\u0061":3}"#);
        assert_eq!(repeated.view().member("a").unwrap().integer(), Some(3));
        let names: Vec<_> = repeated.view().members().unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn half_a_pair_hides_nothing() {
        let odd = json(r#"{"\ud800":1,"s":"\ud83d\ude00 \udc00\u0041"}"#);
        assert_eq!(odd.view().member("s").unwrap().string().unwrap(), "\u{1f600} \u{fffd}A");
    }

    #[test]
    fn types_are_not_confused() {
        let values = json(r#"["1", 1, 1.0, -32602, 1e2, 1.5, true, null, nan]"#);
        assert_eq!(values.view().items(), None, "not JSON");
        let values = json(r#"["1", 1, 1.0, -32602, 1e2, 1.5, true, null]"#);
        let integers: Vec<_> = values.view().items().unwrap().into_iter().map(View::integer).collect();
        assert_eq!(integers, [None, Some(1), Some(1), Some(-32602), Some(100), None, None, None]);
        assert_eq!(json("[]").view().member("a"), None);
        assert_eq!(json("{}").view().items(), None);
    }

    #[test]
    fn compact_length_counts_necessary_escapes_only() {
        for (text, compact) in [
            ("{ \"a\" : [ 1 , 2.50 ] }", r#"{"a":[1,2.50]}"#),
            (r#""\/\u0041\u00e9""#, "\"/Aé\""),
            (r#""\ud83d\ude00""#, "\"\u{1f600}\""),
            (r#""\u000a\u0001\u007f\"\\""#, "\"\\n\\u0001\u{7f}\\\"\\\\\""),
            (r#""a  b""#, r#""a  b""#),
        ] {
            assert_eq!(json(text).view().compact_len(), compact.len(), "{text}");
            if let Ok(tree) = serde_json::from_str::<Value>(text) {
                assert_eq!(tree.to_string().len(), compact.len() - usize::from(text.contains("2.50")), "{text}");
            }
        }
        assert_eq!(json(r#""\ud800x""#).view().compact_len(), r#""\ud800x""#.len());
    }

    #[test]
    fn pointers_lead_as_rfc_6901_has_it() {
        let document = json(r#"{"foo": ["bar", {"": 7}], "": 0, "a/b": 1, "m~n": 8, "~1": 9, "1": 2}"#);
        let at = |pointer: &str| document.view().pointer(pointer).map(View::text);
        assert_eq!(at("").unwrap().len(), document.as_str().len());
        for (pointer, text) in [
            ("/foo/0", r#""bar""#),
            ("/foo/1/", "7"),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/m~0n", "8"),
            ("/~01", "9"),
            ("/1", "2"),
        ] {
            assert_eq!(at(pointer), Some(text), "{pointer}");
        }
        for pointer in ["foo", "/foo/2", "/foo/-", "/foo/00", "/foo/01", "/foo/+1", "/foo/0/x", "/none", "//"] {
            assert_eq!(at(pointer), None, "{pointer}");
        }
    }

    #[test]
    fn tokens_are_rounded_up() {
        let tokens = |text: &str| json(text).view().tokens();
        assert_eq!([tokens("1"), tokens("1234"), tokens("12345"), tokens("[ 1, 2 ]")], [1, 1, 2, 2]);
    }

    #[test]
    fn parameters_keep_the_arguments_text() {
        let params = call_params("a\"b", &json(r#"{"n": 1.0}"#));
        assert_eq!(params.as_str(), r#"{"name":"a\"b","arguments":{"n": 1.0}}"#);
    }
}
