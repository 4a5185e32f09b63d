//! Two ways to write JSON that depend on the value alone: for documents, and for digests.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::probes::Digest;

/// A document: keys sorted by code point, two-space indent, a newline at the end.
pub fn document(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, Some(0));
    out.push('\n');
    out
}

/// Canonical JSON: compact, keys sorted by code point, only necessary escapes, integers as integers, other numbers as
/// the shortest decimal that reads back equal, with a fraction or exponent.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, None);
    out
}

/// SHA-256.
pub fn digest(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// First 16 hexadecimal digits of SHA-256.
pub fn short_digest(bytes: &[u8]) -> String {
    let mut hex = digest(bytes).to_string();
    hex.truncate(16);
    hex
}

/// `indent` is the depth of the value in a document, none in canonical JSON.
fn write(out: &mut String, value: &Value, indent: Option<usize>) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            write_all(out, ['[', ']'], indent, items, write);
        }
        Value::Object(entries) => {
            write_all(out, ['{', '}'], indent, sorted(entries), |out, (key, item), indent| {
                write_string(out, key);
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write(out, item, indent);
            });
        }
    }
}

fn write_all<T>(
    out: &mut String,
    [open, close]: [char; 2],
    indent: Option<usize>,
    items: impl IntoIterator<Item = T>,
    mut each: impl FnMut(&mut String, T, Option<usize>),
) {
    let inner = indent.map(|depth| depth + 1);
    out.push(open);
    let mut empty = true;
    for item in items {
        if !empty {
            out.push(',');
        }
        empty = false;
        line(out, inner);
        each(out, item, inner);
    }
    if !empty {
        line(out, indent);
    }
    out.push(close);
}

fn line(out: &mut String, indent: Option<usize>) {
    if let Some(depth) = indent {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

/// UTF-8 bytes sort as code points do.
fn sorted(entries: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

fn write_number(out: &mut String, number: &serde_json::Number) {
    match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(whole), _, _) => _ = write!(out, "{whole}"),
        (_, Some(whole), _) => _ = write!(out, "{whole}"),
        // The standard library's debug form is the shortest that reads back equal, and always has a fraction or exponent.
        (_, _, Some(real)) => _ = write!(out, "{real:?}"),
        _ => _ = write!(out, "{number}"),
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => _ = write!(out, "\\u{:04x}", u32::from(c)),
            _ => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(text: &str) -> String {
        canonical(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn numbers_are_written_one_way() {
        for (text, expected) in [
            ("0", "0"),
            ("-7", "-7"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1.0", "1.0"),
            ("1.50", "1.5"),
            ("0.1", "0.1"),
            ("1e2", "100.0"),
            ("1E300", "1e300"),
            ("1e-7", "1e-7"),
            ("-0.0", "-0.0"),
            ("123456789012345678901234567890", "1.2345678901234568e29"),
            ("0.30000000000000004", "0.30000000000000004"),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn strings_have_only_necessary_escapes() {
        assert_eq!(of(r#""\u00e9\/\u0001\u001f\u007f\n\b\f\r\t\"\\\ud83d\ude00\u2028""#), {
            "\"é/\\u0001\\u001f\u{7f}\\n\\b\\f\\r\\t\\\"\\\\😀\u{2028}\""
        });
    }

    #[test]
    fn keys_sort_by_code_point_whatever_the_order_given() {
        // U+FFFD sorts before U+1F600 by code point, after it by UTF-16 unit.
        assert_eq!(of(r#"{"😀":1,"\ufffd":2,"b":{"z":[],"a":{}},"B":3,"":4}"#), {
            "{\"\":4,\"B\":3,\"b\":{\"a\":{},\"z\":[]},\"\u{fffd}\":2,\"😀\":1}"
        });
    }

    #[test]
    fn documents_are_indented_and_end_with_a_newline() {
        let text = document(&json!({"b": [1, {"c": null}], "a": {}, "d": []}));
        assert_eq!(
            text,
            "{\n  \"a\": {},\n  \"b\": [\n    1,\n    {\n      \"c\": null\n    }\n  ],\n  \"d\": []\n}\n"
        );
    }

    #[test]
    fn digests_are_lowercase_hex() {
        assert_eq!(digest(b"").to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(short_digest(b""), "e3b0c44298fc1c14");
    }

    /// A small deterministic generator, so that a failure can be repeated.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % sides
        }

        fn text(&mut self) -> String {
            (0..self.roll(6)).filter_map(|_| char::from_u32(u32::try_from(self.roll(0x11_0000)).unwrap())).collect()
        }

        fn value(&mut self, depth: u32) -> Value {
            match self.roll(if depth == 0 { 6 } else { 8 }) {
                0 => Value::Null,
                1 => Value::from(self.roll(2) == 0),
                2 => Value::from(self.roll(1 << 30)),
                3 => Value::from(-i64::try_from(self.roll(1 << 30)).unwrap()),
                4 => {
                    let bits = (self.roll(1 << 31) << 33) | (self.roll(1 << 31) << 2);
                    Value::from(Some(f64::from_bits(bits)).filter(|real| real.is_finite()).unwrap_or(0.5))
                }
                5 => Value::from(self.text()),
                6 => (0..self.roll(5)).map(|_| self.value(depth - 1)).collect(),
                _ => Value::Object((0..self.roll(5)).map(|_| (self.text(), self.value(depth - 1))).collect()),
            }
        }
    }

    #[test]
    fn both_forms_read_back_equal_and_do_not_change_when_written_again() {
        let mut dice = Dice(7);
        for round in 0..2_000 {
            let value = dice.value(4);
            for text in [canonical(&value), document(&value)] {
                let back: Value =
                    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{round}: {error}: {text}"));
                assert_eq!(back, value, "{round}: {text}");
            }
            let again: Value = serde_json::from_str(&document(&value)).unwrap();
            assert_eq!(canonical(&again), canonical(&value));
        }
    }

    #[test]
    fn canonical_json_forgets_the_order_of_keys() {
        let mut dice = Dice(11);
        for _ in 0..200 {
            let entries: Vec<(String, Value)> =
                (0..8).map(|n| (format!("{}{n}", dice.text()), dice.value(1))).collect();
            let forward = Value::Object(entries.iter().cloned().collect());
            let backward = Value::Object(entries.into_iter().rev().collect());
            assert_eq!(canonical(&forward), canonical(&backward));
        }
    }
}
