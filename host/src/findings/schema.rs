//! The JSON Schema of `findings --format json`: closed, every string an enumeration or a pattern.

use serde_json::{Value, json};

use super::{Class, Severity};
use crate::store::lifecycle::State;

/// Labels of servers, names of tools and of cases.
const LABEL: &str = "^[A-Za-z0-9_.:-]{1,128}$";
/// Words of shapes.
const WORD: &str = "^(int|int:neg|num|null|uuid|deep|empty|bool:true|bool:false|str<(8|32|128|512|4096)|str>4096\
    |enum:[A-Za-z0-9_.:/-]{1,64}|enum#[1-9][0-9]{0,5}|url:[^\\s/@?#]{1,253})$";
const KEY: &str = "^([A-Za-z_][A-Za-z0-9_.-]{0,63}|key#[1-9][0-9]{0,5})$";
/// Numbers, identifiers, and words of shapes.
const CODE: &str = "^[^\\s\\x00-\\x1f\\x7f]{1,260}$";

/// The schema, without its heading.
pub fn schema() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    let measure = json!({"type": "number", "minimum": 0});
    let share = json!({"type": "number", "minimum": 0, "maximum": 1});
    let label = json!({"type": "string", "pattern": LABEL});
    let code = json!({"type": "string", "pattern": CODE});
    let properties = json!({
        "finding_id": {"type": "string", "pattern": "^finding-[0-9a-f]{16}$"},
        "state": {"type": "string", "enum": State::ALL.map(State::word)},
        "probe_id": {"anyOf": [label, {"type": "null"}]},
        "consecutive_passes": count,
        "server": label,
        "tool": label,
        "err_code": code,
        "err_codes": {"type": "array", "items": code, "minItems": 1},
        "err_template_id": {"type": "string", "pattern": "^([0-9a-f]{16}|unanswered|false-success|)$"},
        "failures": {"type": "integer", "minimum": 1},
        "calls": {"type": "integer", "minimum": 1},
        "sessions": {"type": "integer", "minimum": 2},
        "last_seen": {
            "type": "string",
            "pattern": "^-?[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"
        },
        "cost": {"type": "number", "minimum": 1, "maximum": 9},
        "blast": {"type": "integer", "minimum": 1},
        "rate": share,
        "confidence": share,
        "recency": share,
        "score": measure,
        "threshold": measure,
        "severity": {"type": "string", "enum": Severity::ALL.map(Severity::word)},
        "class": {"type": "string", "enum": Class::ALL.map(Class::word)},
        "retryable": {"type": ["boolean", "null"]},
        "hint": {"type": "string", "enum": Class::ALL.map(Class::hint)},
        "repro": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Shape"}]}
    });
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(|properties| properties.keys()).collect();
    json!({
        "type": "array",
        "items": {"$ref": "#/$defs/Finding"},
        "$defs": {
            "Finding": {
                "type": "object",
                "additionalProperties": false,
                "required": required,
                "properties": properties
            },
            "Shape": {"anyOf": [
                {"type": "string", "pattern": WORD},
                {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["array", "items"],
                    "properties": {"array": count, "items": {"$ref": "#/$defs/Shape"}}
                },
                {
                    "type": "object",
                    "maxProperties": crate::store::shape::MAX_KEYS,
                    "propertyNames": {"pattern": KEY},
                    "additionalProperties": {"$ref": "#/$defs/Shape"}
                }
            ]}
        }
    })
}

#[cfg(test)]
mod tests {
    use regex::Regex;
    use serde_json::Map;

    use super::super::render::tests::example;
    use super::*;

    #[test]
    fn it_names_every_member_of_a_finding_and_no_other() {
        let finding = serde_json::to_value(example()).unwrap();
        let schema = schema();
        let named = schema["$defs"]["Finding"]["properties"].as_object().unwrap();
        let keys = |members: &Map<String, Value>| members.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(named), keys(finding.as_object().unwrap()));
        assert_eq!(schema["$defs"]["Finding"]["required"].as_array().unwrap().len(), 25);
    }

    #[test]
    fn its_patterns_take_what_the_store_takes() {
        let word = Regex::new(WORD).unwrap();
        for text in ["int:neg", "str<4096", "str>4096", "enum:a/b", "enum#12", "url:example.com", "url:ip", "empty"] {
            assert!(word.is_match(text) && crate::store::shape::is_word(text), "{text}");
        }
        for text in ["secret", "str<9", "enum:a b", "url:http://x", "enum#0", "url:a@b.example"] {
            assert!(!word.is_match(text) && !crate::store::shape::is_word(text), "{text}");
        }
        let key = Regex::new(KEY).unwrap();
        for (text, is_key) in [("path", true), ("key#1", true), ("a b", false), ("key#0", false), ("9", false)] {
            assert_eq!((key.is_match(text), crate::store::shape::is_stored_key(text)), (is_key, is_key), "{text}");
        }
    }
}
