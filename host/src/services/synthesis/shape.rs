//! What several schemas say of one value, merged.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::number::Range;
use super::{MAX_CANDIDATES, MAX_DEPTH, Synthesis};

/// Small steps, such as a comparison or the copy of a reference, that cost as much as one node.
const PER_NODE: usize = 64;

/// The types of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    Object,
    Array,
    String,
    Number,
    Integer,
    Boolean,
    Null,
}

impl Type {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "null" => Self::Null,
            _ => return None,
        })
    }

    pub(super) fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Integer, Value::Number(number)) => {
                number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            (Self::Object, Value::Object(_))
            | (Self::Array, Value::Array(_))
            | (Self::String, Value::String(_))
            | (Self::Number, Value::Number(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::Null, Value::Null) => true,
            _ => false,
        }
    }

    /// The type of values that are of both.
    fn common(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Number, Self::Integer) | (Self::Integer, Self::Number) => Some(Self::Integer),
            _ => (self == other).then_some(self),
        }
    }
}

/// Keywords that tell the type of a schema without `type`.
const TELLING: [(Type, &[&str]); 4] = [
    (
        Type::Object,
        &[
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "dependentRequired",
            "dependentSchemas",
            "unevaluatedProperties",
        ],
    ),
    (Type::Array, &["items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"]),
    (Type::String, &["minLength", "maxLength", "pattern", "format", "contentEncoding"]),
    (Type::Number, &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
];

/// The merged schemas of one value. Subschemas of its parts are only listed: they are merged when a part is made.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape<'a> {
    types: Option<Vec<Type>>,
    told: BTreeSet<Type>,
    constants: Vec<&'a Value>,
    members: Option<Vec<&'a Value>>,
    defaults: Vec<&'a Value>,
    examples: Vec<&'a Value>,
    pub(super) description: Option<&'a str>,
    /// Alternatives still to be chosen from: those of `anyOf`, then those of `oneOf`.
    any: Vec<&'a [Value]>,
    one: Vec<&'a [Value]>,
    /// `then` and `else`.
    conditions: Vec<[Option<&'a Value>; 2]>,
    /// Values that were offered before a branch was chosen.
    pub(super) offered: Vec<Value>,
    /// `$ref` hops on the way to the farthest schema.
    pub(super) hops: usize,

    pub(super) properties: BTreeMap<&'a str, Vec<&'a Value>>,
    pub(super) required: BTreeSet<&'a str>,
    pub(super) patterned: Vec<(&'a str, &'a Value)>,
    pub(super) additional: Vec<&'a Value>,
    pub(super) wanted_with: Vec<(&'a str, &'a [Value])>,
    pub(super) applied_with: Vec<(&'a str, &'a Value)>,
    pub(super) min_properties: u64,

    pub(super) prefixes: Vec<&'a [Value]>,
    pub(super) items: Vec<&'a Value>,
    /// With how many of them.
    pub(super) contains: Vec<(&'a Value, u64)>,
    pub(super) min_items: u64,
    pub(super) max_items: Option<u64>,
    pub(super) unique: bool,

    pub(super) formats: Vec<&'a str>,
    pub(super) encoded: bool,
    pub(super) patterns: Vec<&'a str>,
    pub(super) min_length: u64,
    pub(super) max_length: Option<u64>,
    pub(super) range: Range,
}

impl<'a> Shape<'a> {
    /// Merges a schema; none if there is no value left, or past the bounds. `hops` counts `$ref`s on the way.
    pub(super) fn absorb(&mut self, synthesis: &Synthesis<'a>, schema: &'a Value, hops: usize) -> Option<()> {
        synthesis.spend(1)?;
        if hops > MAX_DEPTH {
            return None;
        }
        self.hops = self.hops.max(hops);
        let map = match schema {
            Value::Bool(true) => return Some(()),
            Value::Object(map) => map,
            _ => return None,
        };
        if !(synthesis.document.ref_stands_alone() && map.contains_key("$ref")) {
            self.keywords(synthesis, map)?;
            for each in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
                self.absorb(synthesis, each, hops)?;
            }
        }
        for reference in synthesis.document.references(map) {
            self.absorb(synthesis, synthesis.index.find(reference)?, hops + 1)?;
        }
        Some(())
    }

    fn keywords(&mut self, synthesis: &Synthesis<'a>, map: &'a Map<String, Value>) -> Option<()> {
        for (tells, keywords) in TELLING {
            if keywords.iter().any(|keyword| map.contains_key(*keyword)) {
                self.told.insert(tells);
            }
        }
        for (keyword, value) in map {
            match (keyword.as_str(), value) {
                ("type", Value::String(name)) => self.restrict_types(&[Type::named(name)?]),
                ("type", Value::Array(names)) => {
                    let types: Vec<Type> = names.iter().filter_map(Value::as_str).filter_map(Type::named).collect();
                    self.restrict_types(&types);
                }
                ("const", _) => self.constants.push(value),
                ("enum", Value::Array(members)) => {
                    let compared = self.members.as_ref().map_or(1, Vec::len);
                    synthesis.spend(compared.saturating_mul(members.len()) / PER_NODE)?;
                    match &mut self.members {
                        None => self.members = Some(members.iter().collect()),
                        Some(kept) => kept.retain(|kept| members.iter().any(|member| equal(kept, member))),
                    }
                }
                ("default", _) => self.defaults.push(value),
                ("examples", Value::Array(all)) => self.examples.extend(all.iter().take(MAX_CANDIDATES)),
                ("description", Value::String(text)) => self.description = self.description.or(Some(text)),
                ("anyOf", Value::Array(all)) => self.any.push(all),
                ("oneOf", Value::Array(all)) => self.one.push(all),
                ("if", _) => self.conditions.push([map.get("then"), map.get("else")]),

                ("properties", Value::Object(all)) => {
                    for (name, each) in all {
                        self.properties.entry(name).or_default().push(each);
                    }
                }
                ("required", Value::Array(names)) => self.required.extend(names.iter().filter_map(Value::as_str)),
                ("patternProperties", Value::Object(all)) => {
                    self.patterned.extend(all.iter().map(|(pattern, each)| (pattern.as_str(), each)));
                }
                ("additionalProperties", _) => self.additional.push(value),
                ("dependentRequired" | "dependencies", Value::Object(all)) => {
                    for (name, each) in all {
                        match each {
                            Value::Array(names) => self.wanted_with.push((name, names)),
                            _ => self.applied_with.push((name, each)),
                        }
                    }
                }
                ("dependentSchemas", Value::Object(all)) => {
                    self.applied_with.extend(all.iter().map(|(name, each)| (name.as_str(), each)));
                }
                ("minProperties", _) => self.min_properties = self.min_properties.max(count(value)),

                ("items" | "prefixItems", Value::Array(all)) => self.prefixes.push(all),
                ("items", _) => self.items.push(value),
                ("additionalItems", _) if map.get("items").is_some_and(Value::is_array) => self.items.push(value),
                ("contains", _) => self.contains.push((value, map.get("minContains").map_or(1, count))),
                ("minItems", _) => self.min_items = self.min_items.max(count(value)),
                ("maxItems", _) => self.max_items = Some(least(self.max_items, value)),
                ("uniqueItems", Value::Bool(true)) => self.unique = true,

                ("format", Value::String(name)) => self.formats.push(name),
                ("contentEncoding", Value::String(name)) => self.encoded |= name == "base64",
                ("pattern", Value::String(pattern)) => self.patterns.push(pattern),
                ("minLength", _) => self.min_length = self.min_length.max(count(value)),
                ("maxLength", _) => self.max_length = Some(least(self.max_length, value)),

                ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf", _) => {
                    let exclusive = match keyword.as_str() {
                        "minimum" => map.get("exclusiveMinimum"),
                        "maximum" => map.get("exclusiveMaximum"),
                        _ => None,
                    };
                    self.range.restrict(keyword, value, exclusive == Some(&Value::Bool(true)));
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Leaves no other type.
    pub(super) fn only(&mut self, kind: Type) {
        self.restrict_types(&[kind]);
    }

    fn restrict_types(&mut self, types: &[Type]) {
        self.types = Some(match &self.types {
            None => types.to_vec(),
            Some(kept) => kept.iter().filter_map(|kept| types.iter().find_map(|other| kept.common(*other))).collect(),
        });
    }

    /// The types to try, in order: those declared, `null` last, else those that keywords tell of, else string.
    pub(super) fn types(&self) -> Vec<Type> {
        let Some(types) = &self.types else {
            return if self.told.is_empty() { vec![Type::String] } else { self.told.iter().copied().collect() };
        };
        let mut types = types.clone();
        types.sort_by_key(|kind| *kind == Type::Null);
        types
    }

    /// The types that are allowed, those of every branch included; none if any is.
    pub(super) fn allowed(&self, synthesis: &Synthesis<'a>) -> Option<Vec<Type>> {
        let mut allowed = self.types.clone();
        for branches in self.any.iter().chain(&self.one) {
            let mut union = Some(Vec::new());
            for branch in *branches {
                // A branch without value allows nothing.
                let Some(shape) = synthesis.shape(branch) else { continue };
                union = union.zip(shape.allowed(synthesis)).map(|(mut union, more)| {
                    union.extend(more);
                    union
                });
            }
            let Some(union) = union else { continue };
            allowed = Some(match allowed {
                None => union,
                Some(kept) => kept.iter().filter_map(|a| union.iter().find_map(|b| a.common(*b))).collect(),
            });
        }
        allowed
    }

    /// Whether the schema names the values it accepts.
    pub(super) fn is_enumerated(&self) -> bool {
        self.members.is_some() || !self.constants.is_empty()
    }

    /// The values that the schema itself gives, in order. Where it names all it accepts, there are no others.
    pub(super) fn fixed(&self) -> impl Iterator<Item = &'a Value> {
        let named = self.constants.iter().chain(self.members.iter().flatten());
        let others = if self.is_enumerated() { [&[][..], &[]] } else { [&self.defaults[..], &self.examples] };
        named.chain(others.into_iter().flatten()).copied()
    }

    /// What it costs to copy the shape, or to look for its candidates, in nodes.
    pub(super) fn weight(&self) -> usize {
        let members = self.members.as_ref().map_or(0, Vec::len);
        (self.properties.len() + self.required.len() + self.patterned.len() + members + self.offered.len()) / PER_NODE
    }

    /// The ways to go on, of which one is to be chosen: a schema to merge, or none; no ways if there is no choice.
    pub(super) fn ways(&self) -> Vec<Option<&'a Value>> {
        if let Some(all) = self.any.first().or(self.one.first()) {
            return all.iter().take(MAX_CANDIDATES).map(Some).collect();
        }
        let Some([then, other]) = self.conditions.first() else { return Vec::new() };
        [None].into_iter().chain(then.map(Some)).chain(other.map(Some)).collect()
    }

    /// Goes one of the [`ways`](Self::ways); none if there is no value on it.
    pub(super) fn choose(&mut self, synthesis: &Synthesis<'a>, way: Option<&'a Value>) -> Option<()> {
        if !self.any.is_empty() {
            self.any.remove(0);
        } else if !self.one.is_empty() {
            self.one.remove(0);
        } else if !self.conditions.is_empty() {
            self.conditions.remove(0);
        }
        way.map_or(Some(()), |way| self.absorb(synthesis, way, self.hops))
    }

    /// Whether a candidate can be right, as far as can be seen without validation. Where there are members, only
    /// they and constants are candidates, and members need not be looked up.
    pub(super) fn admits(&self, value: &Value) -> bool {
        let is_member = self.constants.is_empty();
        self.types.as_ref().is_none_or(|types| types.iter().any(|kind| kind.holds(value)))
            && self.constants.iter().all(|constant| equal(constant, value))
            && (is_member
                || self.members.as_ref().is_none_or(|members| members.iter().any(|member| equal(member, value))))
            && match value {
                Value::String(text) => {
                    let length = text.chars().count() as u64;
                    length >= self.min_length && self.max_length.is_none_or(|max| length <= max)
                }
                Value::Number(number) => self.range.admits(number),
                _ => true,
            }
    }
}

/// Equality with numbers by value.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(_) | Value::Object(_), Value::Array(_) | Value::Object(_)) => true,
        _ => left == right,
    }
}

/// A keyword's count; JSON Schema lets it be written as `2.0`.
fn count(value: &Value) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, which is past any bound")]
    let whole = |float: f64| float as u64;
    value.as_u64().or_else(|| value.as_f64().map(whole)).unwrap_or(0)
}

fn least(old: Option<u64>, value: &Value) -> u64 {
    old.map_or(count(value), |old| old.min(count(value)))
}
