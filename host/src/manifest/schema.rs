//! The JSON Schema of manifests, made of the schemas that the loaded kinds declare.

use serde_json::{Map, Value, json};

use super::{COMMON_FIELDS, MAX_DESCRIPTION, TIMEOUT_MS, VERSION};
use crate::probes::{self, Access};

/// Identifiers of cases and sandboxes.
const IDENTIFIER: &str = "^[A-Za-z][A-Za-z0-9_.:-]{0,63}$";

/// The schema of manifests with cases of these kinds; components that serve areas have no cases.
pub fn schema(manifests: &[&probes::Manifest]) -> Value {
    let mut kinds: Vec<&probes::Manifest> =
        manifests.iter().copied().filter(|manifest| manifest.areas().is_empty()).collect();
    kinds.sort_by(|left, right| left.kind.cmp(&right.kind));
    let names: Vec<&str> = kinds.iter().map(|manifest| manifest.kind.as_str()).collect();
    let known = json!({"required": ["probe", "id", "access"], "properties": {"probe": {"enum": names}}});
    let cases: Vec<Value> = std::iter::once(known)
        .chain(kinds.iter().map(|manifest| {
            let is_kind = json!({"properties": {"probe": {"const": manifest.kind}}, "required": ["probe"]});
            json!({"if": is_kind, "then": case(manifest)})
        }))
        .collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["version", "probes"],
        "properties": {
            "$schema": {"type": ["string", "null"]},
            "version": {"const": VERSION},
            "timeout_ms": {"type": ["integer", "null"], "minimum": TIMEOUT_MS.start(), "maximum": TIMEOUT_MS.end()},
            "sandboxes": {
                "type": ["object", "null"],
                "propertyNames": {"pattern": IDENTIFIER},
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["description"],
                    "properties": {
                        "description": {"type": "string", "maxLength": MAX_DESCRIPTION, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"}
                    }
                }
            },
            "components": {
                "type": ["object", "null"],
                "propertyNames": {"pattern": "^[a-z][a-z0-9-]{0,31}\\.[a-z][a-z0-9-]{0,31}$"},
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["path", "sha256"],
                    "properties": {
                        "path": {"type": "string", "minLength": 1},
                        "sha256": {"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"}
                    }
                }
            },
            "probes": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "object", "allOf": cases}
            }
        }
    })
}

/// A kind's schema with the fields that every case has.
fn case(manifest: &probes::Manifest) -> Value {
    let mut schema: Value = serde_json::from_str(&manifest.config_schema).unwrap_or_default();
    optional_nulls(&mut schema);
    let Value::Object(fields) = &mut schema else { return schema };
    // An identity of its own keeps the references inside it.
    fields.insert("$id".to_owned(), format!("urn:mcpeval:kind:{}", manifest.kind).into());
    fields.insert("title".to_owned(), manifest.title.clone().into());
    fields.insert("additionalProperties".to_owned(), false.into());
    let access: &[&str] = match manifest.access {
        Access::ReadOnly => &["read_only"],
        Access::MayMutate => &["read_only", "mutating"],
    };
    let properties = fields.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(properties) = properties {
        properties.insert("probe".to_owned(), json!({"const": manifest.kind}));
        properties.insert("id".to_owned(), json!({"type": "string", "pattern": IDENTIFIER}));
        properties.insert("access".to_owned(), json!({"enum": access}));
        properties.insert("sandbox".to_owned(), json!({"type": ["string", "null"], "pattern": IDENTIFIER}));
    }
    debug_assert!(COMMON_FIELDS.iter().all(|name| schema["properties"].get(name).is_some()));
    let is_mutating = json!({"properties": {"access": {"const": "mutating"}}, "required": ["access"]});
    let rule = json!({
        "if": is_mutating,
        "then": {"required": ["sandbox"], "properties": {"sandbox": {"type": "string"}}},
        "else": {"properties": {"sandbox": {"type": "null"}}}
    });
    if let Value::Object(fields) = &mut schema
        && let Value::Array(all) = fields.entry("allOf").or_insert_with(|| Value::Array(Vec::new()))
    {
        all.push(rule);
    }
    schema
}

/// An optional field may be null, which means absent: as the reader of manifests has it.
fn optional_nulls(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(optional_nulls),
        Value::Object(fields) => {
            let required: Vec<String> = fields
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect();
            for (keyword, part) in fields.iter_mut() {
                match (keyword.as_str(), part) {
                    ("properties", Value::Object(properties)) => {
                        for (name, property) in properties {
                            optional_nulls(property);
                            if !required.contains(name) && property.is_object() {
                                *property = json!({"anyOf": [property.take(), {"type": "null"}]});
                            }
                        }
                    }
                    ("$defs" | "definitions", Value::Object(parts)) => parts.values_mut().for_each(optional_nulls),
                    ("items" | "allOf" | "anyOf" | "oneOf" | "additionalProperties", part) => optional_nulls(part),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}
