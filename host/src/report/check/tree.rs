//! A JSON document held against the schema of its type: where a string stands that may not.

use std::collections::HashMap;
use std::fmt;

use regex::Regex;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::super::read::is_shown;
use super::Findings;
use crate::shown;

/// A string that nothing allows in its place.
const FREE_TEXT: &str = "this string is of no class that may be shared";
/// A member that no document has.
const UNKNOWN_MEMBER: &str = "no document of this kind has this member";
/// A member whose name does not keep its grammar.
const UNKNOWN_NAME: &str = "a member's name is of no class that may be shared";

/// A JSON text in which no object has a name twice: a reader that keeps one of two values would hide the other.
pub(super) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Once>(text).map(|Once(value)| value)
}

struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Build)
    }
}

struct Build;

impl<'de> Visitor<'de> for Build {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Once, E> {
        Ok(Once(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Once, E> {
        Ok(Once(text.into()))
    }

    fn visit_string<E>(self, text: String) -> Result<Once, E> {
        Ok(Once(text.into()))
    }

    fn visit_unit<E>(self) -> Result<Once, E> {
        Ok(Once(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Once, A::Error> {
        let mut items = Vec::new();
        while let Some(Once(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Once(items.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Once, A::Error> {
        let mut members = Map::new();
        while let Some((name, Once(value))) = map.next_entry::<String, Once>()? {
            if members.insert(name, value).is_some() {
                return Err(de::Error::custom("a name is given twice"));
            }
        }
        Ok(Once(members.into()))
    }
}

/// Finds every string that the schema does not allow in its place. What else the schema asks for is not looked at.
pub(super) fn walk(schema: &Value, document: &Value, findings: &mut Findings) {
    Walk { root: schema, patterns: HashMap::new(), findings }.value(&[schema], document, &mut String::new());
}

struct Walk<'a> {
    root: &'a Value,
    patterns: HashMap<&'a str, Option<Regex>>,
    findings: &'a mut Findings,
}

impl<'a> Walk<'a> {
    fn value(&mut self, schemas: &[&'a Value], value: &Value, pointer: &mut String) {
        let mut leaves = Vec::new();
        for schema in schemas {
            self.leaves(schema, &mut leaves);
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => {
                if !self.allows(&leaves, text) {
                    self.findings.breaks(pointer.as_str(), FREE_TEXT);
                }
            }
            Value::Array(items) => {
                let inner: Vec<&'a Value> = leaves.iter().filter_map(|leaf| leaf.get("items")).collect();
                for (at, item) in items.iter().enumerate() {
                    let outer = pointer.len();
                    pointer.push('/');
                    pointer.push_str(&at.to_string());
                    self.value(&inner, item, pointer);
                    pointer.truncate(outer);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    self.member(&leaves, name, value, pointer);
                }
            }
        }
    }

    fn member(&mut self, leaves: &[&'a Value], name: &str, value: &Value, pointer: &mut String) {
        let outer = pointer.len();
        let known: Vec<&'a Value> =
            leaves.iter().filter_map(|leaf| leaf.get("properties").and_then(|known| known.get(name))).collect();
        let rest = |leaf: &&'a Value| leaf.get("additionalProperties").filter(|rest| rest.is_object());
        let mut inner = known;
        let mut why = None;
        if inner.is_empty() {
            inner = leaves.iter().filter_map(rest).collect();
            let names: Vec<&'a Value> = leaves
                .iter()
                .filter(|leaf| rest(leaf).is_some())
                .filter_map(|leaf| leaf.get("propertyNames"))
                .collect();
            let mut grammars = Vec::new();
            for names in names {
                self.leaves(names, &mut grammars);
            }
            if inner.is_empty() {
                why = Some(UNKNOWN_MEMBER);
            } else if !self.allows(&grammars, name) {
                why = Some(UNKNOWN_NAME);
            }
        }
        // A name may be as free as any text, and is then not shown.
        if is_shown(name) {
            pointer.push('/');
            pointer.push_str(&shown::escaped(name));
        } else {
            why = Some(UNKNOWN_NAME);
        }
        if let Some(why) = why {
            self.findings.breaks(pointer.as_str(), why);
        }
        self.value(&inner, value, pointer);
        pointer.truncate(outer);
    }

    /// The schemas that are no mere reference or choice.
    fn leaves(&self, schema: &'a Value, leaves: &mut Vec<&'a Value>) {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        if let Some(target) = target.and_then(|pointer| self.root.pointer(pointer)) {
            self.leaves(target, leaves);
        }
        for choice in ["anyOf", "oneOf"] {
            for schema in schema.get(choice).and_then(Value::as_array).into_iter().flatten() {
                self.leaves(schema, leaves);
            }
        }
        leaves.push(schema);
    }

    fn allows(&mut self, leaves: &[&'a Value], text: &str) -> bool {
        leaves.iter().any(|leaf| {
            let listed =
                leaf.get("enum").and_then(Value::as_array).is_some_and(|words| words.iter().any(|word| word == text));
            let pattern = leaf.get("pattern").and_then(Value::as_str);
            listed
                || leaf.get("const").is_some_and(|constant| constant == text)
                || pattern.is_some_and(|pattern| {
                    let compiled = self.patterns.entry(pattern).or_insert_with(|| Regex::new(pattern).ok());
                    compiled.as_ref().is_some_and(|pattern| pattern.is_match(text))
                })
        })
    }
}
