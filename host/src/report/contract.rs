//! What callers of a server rely on, as digests: so that two reports can be compared without disclosing schemas.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::canonical::{canonical, short_digest};
use super::document::{Class, Contract, ContractTool, Hex16, Label};
use crate::session::catalog::Catalog;

/// References replaced by their targets along one path; deeper ones stay.
const REFERENCE_DEPTH: usize = 8;
/// What may be written out of one schema while references are replaced, in values and 16 bytes of text. Eight levels
/// of a few references each could otherwise grow without end; past it references stay, as the deep ones do.
const INLINE_LIMIT: usize = 65_536;
/// Keywords that constrain nothing.
const ANNOTATIONS: [&str; 5] = ["description", "title", "examples", "$comment", "default"];
/// Keywords whose members are names of schemas.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Keywords whose value is a schema or an array of schemas.
const NESTED: [&str; 18] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
    "extends",
    "disallow",
];

/// The contract of a catalog that was listed to its end: valid entries, of equal names the first, sorted by name.
pub fn contract(catalog: &Catalog) -> Contract {
    let mut tools: Vec<ContractTool> = catalog
        .entries
        .iter()
        .filter(|entry| !entry.repeated)
        .filter_map(|entry| {
            let raw: Value = serde_json::from_str(&entry.raw).ok()?;
            Some(tool(Label::new(&entry.label)?, Class::of(entry.class)?, &raw))
        })
        .collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    Contract { tools }
}

fn tool(name: Label, class: Class, entry: &Value) -> ContractTool {
    let input = entry.get("inputSchema").unwrap_or(&Value::Null);
    let top = resolved(input);
    let names = |key: &str| top.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let properties = top.get("properties").and_then(Value::as_object);
    ContractTool {
        name,
        class,
        required: names("required").map(name_digest).collect::<BTreeSet<_>>().into_iter().collect(),
        parameters: properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name_digest(name), constraint_digest(input, schema)))
            .collect::<BTreeMap<_, _>>(),
        output_schema: entry
            .get("outputSchema")
            .filter(|schema| schema.is_object())
            .map(|schema| constraint_digest(schema, schema)),
    }
}

/// The schema that a chain of references at the top leads to.
fn resolved(root: &Value) -> &Value {
    let mut schema = root;
    for _ in 0..REFERENCE_DEPTH {
        match schema.get("$ref").and_then(|reference| target(root, reference)) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

fn name_digest(name: &str) -> Hex16 {
    Hex16(short_digest(name.as_bytes()))
}

fn constraint_digest(root: &Value, schema: &Value) -> Hex16 {
    let mut inline = Inline { root, left: INLINE_LIMIT };
    Hex16(short_digest(canonical(&inline.schema(schema, 0)).as_bytes()))
}

/// What a local reference points at.
fn target<'a>(root: &'a Value, reference: &Value) -> Option<&'a Value> {
    let pointer = reference.as_str()?.strip_prefix('#')?;
    let pointer = percent_decoded(pointer)?;
    root.pointer(&pointer).filter(|target| target.is_object() || target.is_boolean())
}

/// A URI fragment may escape any byte, and must escape some that a JSON Pointer may hold.
fn percent_decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' {
            let (hex, tail) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// What a value costs of [`INLINE_LIMIT`].
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 16,
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => {
            1 + members.iter().map(|(key, value)| 1 + key.len() / 16 + size(value)).sum::<usize>()
        }
        _ => 1,
    }
}

/// Rewrites a schema: annotations and inlined definitions gone, local references replaced.
struct Inline<'a> {
    root: &'a Value,
    left: usize,
}

impl Inline<'_> {
    fn schema(&mut self, schema: &Value, hops: usize) -> Value {
        let Value::Object(keywords) = schema else { return schema.clone() };
        self.left = self.left.saturating_sub(1);
        let mut kept = Map::new();
        let mut keys: Vec<&String> = keywords.keys().collect();
        // In one order, so that the limit is reached at the same place whatever the order in the answer.
        keys.sort_unstable();
        for key in keys {
            let (key, value) = (key.as_str(), &keywords[key]);
            if ANNOTATIONS.contains(&key) || matches!(key, "$defs" | "definitions") {
                continue;
            }
            let value = if key == "$ref" {
                match target(self.root, value).filter(|_| hops < REFERENCE_DEPTH && self.left > 0) {
                    Some(target) => self.schema(target, hops + 1),
                    None => value.clone(),
                }
            } else if NAMED.contains(&key) {
                self.named(value, hops)
            } else if NESTED.contains(&key) {
                self.nested(value, hops)
            } else {
                self.left = self.left.saturating_sub(size(value));
                value.clone()
            };
            kept.insert(key.to_owned(), value);
        }
        // A reference that stands alone is its target; beside other keywords both hold, and so both stay.
        match kept.get("$ref") {
            Some(target) if kept.len() == 1 && !target.is_string() => target.clone(),
            _ => Value::Object(kept),
        }
    }

    fn named(&mut self, value: &Value, hops: usize) -> Value {
        let Value::Object(members) = value else { return value.clone() };
        let mut members: Vec<_> = members.iter().collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        Value::Object(members.into_iter().map(|(name, schema)| (name.clone(), self.schema(schema, hops))).collect())
    }

    fn nested(&mut self, value: &Value, hops: usize) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.schema(item, hops)).collect(),
            _ => self.schema(value, hops),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests_support::catalog;
    use super::*;
    use crate::session::catalog::ToolClass;

    fn constraint(root: &Value, pointer: &str) -> Hex16 {
        constraint_digest(root, root.pointer(pointer).unwrap())
    }

    #[test]
    fn a_tool_becomes_digests_of_names_and_constraints() {
        let catalog = catalog(&[
            (
                ToolClass::Writer,
                json!({"name": "z", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}),
            ),
            (
                ToolClass::ReadOnly,
                json!({"name": "a", "inputSchema": {"properties": {"q": {"type": "string", "title": "Q"}}, "required": ["q", "q"]}}),
            ),
            (ToolClass::Invalid, json!({"name": "b"})),
        ]);
        let tools = contract(&catalog).tools;
        let names: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.class.word())).collect();
        assert_eq!(names, [("a", "read-only"), ("z", "writer")]);
        let q = name_digest("q");
        assert_eq!(q.0, short_digest(b"q"));
        assert_eq!(tools[0].required, std::slice::from_ref(&q));
        assert_eq!(tools[0].parameters[&q].0, short_digest(br#"{"type":"string"}"#));
        assert_eq!(tools[1].output_schema.as_ref().unwrap().0, short_digest(br#"{"type":"object"}"#));
        assert_eq!(tools[0].output_schema, None);
    }

    #[test]
    fn annotations_do_not_count_but_names_and_data_do() {
        let plain = json!({"p": {"type": "object", "properties": {"title": {"type": "string"}}}});
        let noted = json!({"p": {"type": "object", "description": "x", "default": {}, "$comment": "c", "examples": [1],
            "properties": {"title": {"type": "string", "title": "T"}}}});
        assert_eq!(constraint(&plain, "/p"), constraint(&noted, "/p"));
        let unnamed = json!({"p": {"type": "object", "properties": {}}});
        assert_ne!(constraint(&plain, "/p"), constraint(&unnamed, "/p"));
        let data = |title: &str| json!({"p": {"enum": [{"title": title}]}});
        assert_ne!(constraint(&data("a"), "/p"), constraint(&data("b"), "/p"), "members of enum are data");
    }

    #[test]
    fn references_are_replaced_to_depth_8() {
        let inline = json!({"p": {"type": "array", "items": {"minLength": 1}}});
        let referred = json!({"p": {"$ref": "#/$defs/a~1%62", "description": "d"}, "$defs": {
            "a/b": {"type": "array", "items": {"$ref": "#/$defs/c"}}, "c": {"minLength": 1, "title": "C"}}});
        assert_eq!(constraint(&inline, "/p"), constraint(&referred, "/p"));
        let beside = json!({"p": {"$ref": "#/$defs/c", "maxLength": 3}, "$defs": {"c": {"minLength": 1}}});
        assert_ne!(constraint(&beside, "/p"), constraint(&json!({"p": {"maxLength": 3}}), "/p"));
        let chain = |length: usize| {
            let defs: Map<_, _> = (0..length)
                .map(|n| (n.to_string(), json!({"not": {"$ref": format!("#/$defs/{}", n + 1)}})))
                .chain([(length.to_string(), json!({"type": "null"}))])
                .collect();
            json!({"p": {"$ref": "#/$defs/0"}, "$defs": defs})
        };
        let mut nested = json!({"type": "null"});
        for _ in 0..7 {
            nested = json!({"not": nested});
        }
        assert_eq!(constraint(&chain(7), "/p"), constraint_digest(&nested, &nested));
        let deeper = json!({"not": nested});
        assert_ne!(constraint(&chain(8), "/p"), constraint_digest(&deeper, &deeper), "the ninth stays");
        let foreign = json!({"p": {"$ref": "https://example.com/x"}});
        assert_eq!(constraint(&foreign, "/p").0, short_digest(br#"{"$ref":"https://example.com/x"}"#));
    }

    #[test]
    fn references_cannot_multiply_without_end() {
        let level = |n: usize| -> Value { json!({"allOf": vec![json!({"$ref": format!("#/$defs/{}", n + 1)}); 60]}) };
        let defs: Map<_, _> = (0..9).map(|n| (n.to_string(), level(n))).collect();
        let root = json!({"p": {"$ref": "#/$defs/0"}, "q": {"$ref": "#"}, "$defs": defs});
        assert_eq!(constraint(&root, "/p"), constraint(&root, "/p"));
        assert_eq!(constraint(&root, "/q").0.len(), 16, "a cycle ends");
    }

    #[test]
    fn a_root_that_is_a_reference_still_has_parameters() {
        let catalog = catalog(&[(
            ToolClass::ReadOnly,
            json!({"name": "a", "inputSchema": {"$ref": "#/definitions/A", "definitions": {"A": {"properties": {"q": {}}, "required": ["q"]}}}}),
        )]);
        let tools = contract(&catalog).tools;
        assert_eq!(tools[0].parameters.len(), 1);
        assert_eq!(tools[0].required.len(), 1);
    }
}
