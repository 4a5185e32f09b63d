//! What tools declare: the input schemas that a capture has seen listed, and the keys and enums that they have at each
//! place of the arguments.

use std::cell::Cell;
use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;
use serde_json::value::RawValue;

use super::message::{elements, members, string};

/// Tools of one capture whose schemas are kept; arguments of others have no declared keys.
pub(super) const MAX_TOOLS: usize = 2_048;
/// Text of all schemas of one capture, in bytes.
pub(super) const MAX_BYTES: usize = 4 << 20;
/// Schemas that hold at one place at once.
const MAX_AT_ONCE: usize = 256;
/// Steps through schemas for the arguments of one call; places beyond them have no declared keys.
const MAX_STEPS: u32 = 200_000;

/// The schemas of a capture.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    tools: HashMap<String, (Value, usize)>,
    bytes: usize,
}

impl Schemas {
    /// Learns from one page of `tools/list`. A later page says what holds.
    pub(super) fn learn(&mut self, result: &RawValue) {
        let tools = members(result).and_then(|result| elements(result.get("tools").copied()?));
        for tool in tools.into_iter().flatten() {
            let Some(tool) = members(tool) else { continue };
            let Some(name) = tool.get("name").and_then(|name| string(name)) else { continue };
            self.forget(&name);
            let Some(schema) = tool.get("inputSchema") else { continue };
            let bytes = name.len() + schema.get().len();
            if self.tools.len() < MAX_TOOLS
                && self.bytes + bytes <= MAX_BYTES
                && let Ok(schema) = serde_json::from_str(schema.get())
            {
                self.bytes += bytes;
                self.tools.insert(name.into_owned(), (schema, bytes));
            }
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some((_, bytes)) = self.tools.remove(name) {
            self.bytes -= bytes;
        }
    }

    /// The input schema of a tool.
    pub(super) fn of(&self, tool: &str) -> Option<&Value> {
        self.tools.get(tool).map(|(schema, _)| schema)
    }
}

/// The document in which references are resolved, and what may still be walked of it.
#[derive(Debug)]
pub(super) struct Declared<'s> {
    root: Option<&'s Value>,
    steps: Cell<u32>,
}

/// The schemas that hold at one place of the arguments.
#[derive(Debug, Default)]
pub(super) struct Place<'s>(Vec<&'s Value>);

impl<'s> Declared<'s> {
    /// By this schema; by none, nothing is declared.
    pub(super) const fn by(root: Option<&'s Value>) -> Self {
        Self { root, steps: Cell::new(MAX_STEPS) }
    }

    /// The place of the arguments themselves.
    pub(super) fn root(&self) -> Place<'s> {
        self.expanded(self.root.into_iter().collect())
    }

    /// The place of a member; none if no schema declares its key.
    pub(super) fn member(&self, place: &Place<'s>, key: &str) -> Option<Place<'s>> {
        let declared = |schema: &&'s Value| schema.get("properties")?.get(key);
        let schemas: Vec<&Value> = place.0.iter().filter_map(declared).collect();
        (self.step(place.0.len()) && !schemas.is_empty()).then(|| self.expanded(schemas))
    }

    /// The place of an array's first element.
    pub(super) fn first_item(&self, place: &Place<'s>) -> Place<'s> {
        let items = |schema: &&'s Value| match schema.get("items")? {
            Value::Array(items) => items.first(),
            items => Some(items),
        };
        if self.step(place.0.len()) {
            self.expanded(place.0.iter().filter_map(items).collect())
        } else {
            Place::default()
        }
    }

    /// The position of a string in an `enum` that lists it there, from 1.
    pub(super) fn position(&self, place: &Place<'s>, text: &str) -> Option<usize> {
        let lists = || place.0.iter().filter_map(|schema| schema.get("enum")?.as_array());
        lists().find_map(|list| {
            let found = self.step(list.len()).then(|| list.iter().position(|value| value.as_str() == Some(text)))?;
            found.map(|position| position + 1)
        })
    }

    /// These schemas and all that they refer to or are made of, each once.
    fn expanded(&self, mut schemas: Vec<&'s Value>) -> Place<'s> {
        let mut next = 0;
        while let Some(schema) = schemas.get(next).copied() {
            next += 1;
            let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
            let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| self.target(reference));
            for schema in target.into_iter().chain(parts) {
                if schemas.len() >= MAX_AT_ONCE || !self.step(1) {
                    return Place(schemas);
                }
                if !schemas.iter().any(|known| std::ptr::eq(*known, schema)) {
                    schemas.push(schema);
                }
            }
        }
        Place(schemas)
    }

    /// What a reference within the document names.
    fn target(&self, reference: &str) -> Option<&'s Value> {
        let pointer = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
        self.root?.pointer(&pointer)
    }

    fn step(&self, count: usize) -> bool {
        let left = u32::try_from(count).ok().and_then(|count| self.steps.get().checked_sub(count));
        self.steps.set(left.unwrap_or_default());
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn learn(schemas: &mut Schemas, result: &Value) {
        let text = result.to_string();
        schemas.learn(serde_json::from_str(&text).unwrap());
    }

    #[test]
    fn pages_add_up_and_the_last_word_holds() {
        let mut schemas = Schemas::default();
        learn(&mut schemas, &json!({"tools": [{"name": "a", "inputSchema": {"v": 1}}, 7, {"name": 8}, {"name": "c"}]}));
        learn(
            &mut schemas,
            &json!({"tools": [{"name": "b", "inputSchema": true}, {"name": "a", "inputSchema": {"v": 2}}]}),
        );
        assert_eq!(schemas.of("a"), Some(&json!({"v": 2})));
        assert_eq!((schemas.of("b"), schemas.of("c")), (Some(&json!(true)), None));
        learn(&mut schemas, &json!({"tools": [{"name": "a"}, {"name": "b"}]}));
        assert_eq!((schemas.of("a"), schemas.bytes), (None, 0));
        for nonsense in [json!(null), json!([]), json!({"tools": 7})] {
            learn(&mut schemas, &nonsense);
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut schemas = Schemas::default();
        for n in 0..MAX_TOOLS + 10 {
            learn(&mut schemas, &json!({"tools": [{"name": format!("t{n}"), "inputSchema": {}}]}));
        }
        assert_eq!(schemas.tools.len(), MAX_TOOLS);
        let mut schemas = Schemas::default();
        for n in 0..3 {
            let large = json!({"description": "x".repeat(MAX_BYTES / 2 - 100)});
            learn(&mut schemas, &json!({"tools": [{"name": format!("t{n}"), "inputSchema": large}]}));
        }
        assert!(schemas.tools.len() == 2 && schemas.bytes <= MAX_BYTES);
    }

    #[test]
    fn references_and_parts_are_followed_and_cycles_end() {
        let schema = json!({
            "allOf": [{"$ref": "#/$defs/base"}, {"$ref": "#"}, {"$ref": "https://else.example/x"}],
            "properties": {"list": {"items": {"anyOf": [{"enum": ["x"]}, {"properties": {"deep": {}}}]}}, "pair": {"items": [{"enum": [1, "y"]}]}},
            "$defs": {"base": {"oneOf": [{"properties": {"self": {"$ref": "#"}}}]}, "a b/c": {"properties": {"odd": {}}}},
            "anyOf": [{"$ref": "#/$defs/a%20b~1c"}]
        });
        let declared = Declared::by(Some(&schema));
        let root = declared.root();
        let mut place = declared.member(&root, "self").unwrap();
        for _ in 0..10 {
            place = declared.member(&place, "self").unwrap();
        }
        assert!(declared.member(&place, "odd").is_some() && declared.member(&place, "deep").is_none());
        let item = declared.first_item(&declared.member(&root, "list").unwrap());
        assert_eq!((declared.position(&item, "x"), declared.position(&item, "z")), (Some(1), None));
        assert!(declared.member(&item, "deep").is_some());
        let pair = declared.first_item(&declared.member(&root, "pair").unwrap());
        assert_eq!(declared.position(&pair, "y"), Some(2));
    }

    #[test]
    fn a_hostile_schema_costs_a_bounded_number_of_steps() {
        let parts: Vec<Value> = (0..300).map(|n| json!({"$ref": format!("#/allOf/{}", (n + 1) % 300)})).collect();
        let schema = json!({"allOf": parts, "properties": {"self": {"$ref": "#"}}});
        let declared = Declared::by(Some(&schema));
        let mut place = Some(declared.root());
        let mut walked = 0;
        while let Some(here) = place {
            place = declared.member(&here, "self");
            walked += 1;
        }
        assert!(walked > 1 && declared.steps.get() == 0);
    }
}
