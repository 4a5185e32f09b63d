//! A schema as one document: its dialect, where its subschemas stand, and what its references point to.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use jsonschema::Draft;
use serde_json::{Map, Value};
use url::Url;

/// Largest schema, in bytes of its compact form.
const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting of objects and arrays, in a schema and in an instance; that of the JSON parser.
pub(in crate::services) const MAX_DEPTH: usize = 128;
/// Bytes of the pointers to all values of a schema: a compiled schema remembers where each part stands, and a
/// long name above many parts multiplies.
const MAX_POINTERS: usize = 16 << 20;
/// What relative identifiers of a schema without a base are relative to.
const BASE: &str = "mcpeval:///";

/// What a subschema applies to, seen from its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot<'a> {
    /// The same value.
    Same,
    /// The property of this name.
    Property(&'a str),
    /// Properties with names like this.
    Pattern(&'a str),
    /// Properties that `properties` does not name.
    Additional,
    /// Any property; only the evaluated ones are spared.
    UnevaluatedProperties,
    /// The names of properties.
    Names,
    /// The item at this place.
    Prefix(usize),
    /// Items after those with a place.
    Rest,
    /// Any item.
    Contains,
    /// Any item; only the evaluated ones are spared.
    UnevaluatedItems,
    /// Nothing, until something refers to it.
    Held,
}

/// Visits the direct subschemas of a schema with their keyword and their key or place below it.
pub(super) fn each_subschema<'a>(
    schema: &'a Map<String, Value>,
    visit: &mut impl FnMut(Slot<'a>, &str, Option<Cow<'a, str>>, &'a Value),
) {
    for (keyword, value) in schema {
        let one: Option<Slot<'_>> = match keyword.as_str() {
            "not" | "if" | "then" | "else" => Some(Slot::Same),
            "additionalProperties" => Some(Slot::Additional),
            "unevaluatedProperties" => Some(Slot::UnevaluatedProperties),
            "propertyNames" => Some(Slot::Names),
            "items" | "additionalItems" => Some(Slot::Rest),
            "contains" => Some(Slot::Contains),
            "unevaluatedItems" => Some(Slot::UnevaluatedItems),
            "contentSchema" => Some(Slot::Held),
            _ => None,
        };
        match (keyword.as_str(), value) {
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(all)) => {
                for (place, each) in all.iter().enumerate() {
                    let slot = if keyword.ends_with("Of") { Slot::Same } else { Slot::Prefix(place) };
                    visit(slot, keyword, Some(Cow::Owned(place.to_string())), each);
                }
            }
            (
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions",
                Value::Object(all),
            ) => {
                for (key, each) in all {
                    let slot = match keyword.as_str() {
                        "properties" => Slot::Property(key),
                        "patternProperties" => Slot::Pattern(key),
                        "dependentSchemas" | "dependencies" => Slot::Same,
                        _ => Slot::Held,
                    };
                    visit(slot, keyword, Some(Cow::Borrowed(key)), each);
                }
            }
            (_, Value::Object(_) | Value::Bool(_)) => {
                if let Some(slot) = one {
                    visit(slot, keyword, None, value);
                }
            }
            _ => {}
        }
    }
}

/// A schema within the bounds, all of whose references are fragments of itself.
#[derive(Debug)]
pub(in crate::services) struct Document<'a> {
    root: Cow<'a, Value>,
    draft: Draft,
    depth: usize,
}

impl<'a> Document<'a> {
    /// Errors are one sentence: past a bound, an unknown or mixed dialect, a reference to something outside.
    pub(in crate::services) fn open(schema: &'a Value) -> Result<Self, String> {
        let mut measure = Measure::default();
        measure.take(schema, 0, 0)?;
        let draft = Draft::default().detect(schema);
        let declared = schema.get("$schema");
        if draft == Draft::Unknown || declared.is_some_and(|declared| !declared.is_string()) {
            return Err("the schema declares an unknown dialect".to_owned());
        }
        let mut places = Places { draft, resources: BTreeMap::new(), anchors: BTreeMap::new(), all: Vec::new() };
        let base = Url::parse(BASE).map_err(|error| error.to_string())?;
        places.resources.insert(BASE.to_owned(), String::new());
        places.collect(schema, &base, "")?;
        let root =
            if places.resources.len() == 1 { Cow::Borrowed(schema) } else { Cow::Owned(places.flatten(schema)?) };
        Ok(Self { root, draft, depth: measure.depth })
    }

    pub(in crate::services) fn root(&self) -> &Value {
        &self.root
    }

    pub(in crate::services) fn draft(&self) -> Draft {
        self.draft
    }

    /// The deepest nesting of its objects and arrays.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether a `$ref` makes its siblings meaningless.
    pub(in crate::services) fn ref_stands_alone(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }

    /// The references of a schema, of every kind that its dialect knows.
    pub(in crate::services) fn references<'m>(&self, schema: &'m Map<String, Value>) -> impl Iterator<Item = &'m str> {
        let keywords: &[&str] = match self.draft {
            Draft::Draft201909 => &["$ref", "$recursiveRef"],
            Draft::Draft202012 => &["$ref", "$dynamicRef"],
            _ => &["$ref"],
        };
        keywords.iter().filter_map(|keyword| schema.get(*keyword)?.as_str())
    }

    /// Finds what references point to; made once, as anchors are looked for in the whole document.
    pub(in crate::services) fn index(&self) -> Index<'_> {
        let mut anchors = HashMap::new();
        find_anchors(&self.root, self.draft, &mut anchors);
        Index { root: &self.root, anchors }
    }
}

/// What the references of one document point to.
#[derive(Debug)]
pub(in crate::services) struct Index<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
}

impl<'a> Index<'a> {
    /// `None` for anything outside the document.
    pub(in crate::services) fn find(&self, reference: &str) -> Option<&'a Value> {
        let fragment = reference.strip_prefix('#')?;
        let fragment = decode(fragment)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(&fragment)
        } else {
            self.anchors.get(fragment.as_str()).copied()
        }
    }
}

/// The names by which the dialect lets a schema be referred to without its place.
fn anchors_of(schema: &Map<String, Value>, draft: Draft) -> impl Iterator<Item = &str> {
    let keywords: &[&str] = match draft {
        Draft::Draft4 => &["id"],
        Draft::Draft6 | Draft::Draft7 => &["$id"],
        _ => &["$anchor", "$dynamicAnchor"],
    };
    keywords.iter().filter_map(move |keyword| {
        let name = schema.get(*keyword)?.as_str()?;
        if keyword.ends_with("id") { name.strip_prefix('#') } else { Some(name) }
    })
}

fn find_anchors<'a>(schema: &'a Value, draft: Draft, anchors: &mut HashMap<&'a str, &'a Value>) {
    let Value::Object(map) = schema else { return };
    for name in anchors_of(map, draft) {
        anchors.entry(name).or_insert(schema);
    }
    each_subschema(map, &mut |_, _, _, each| find_anchors(each, draft, anchors));
}

/// The size of a schema.
#[derive(Default)]
struct Measure {
    bytes: usize,
    pointers: usize,
    depth: usize,
}

impl Measure {
    fn take(&mut self, value: &Value, depth: usize, pointer: usize) -> Result<(), String> {
        self.bytes += match value {
            Value::Null | Value::Bool(_) => 5,
            Value::Number(number) => number.to_string().len() + 1,
            Value::String(text) => text.len() + 3,
            Value::Array(_) | Value::Object(_) => 2,
        };
        self.pointers += pointer;
        self.depth = self.depth.max(depth);
        if depth > MAX_DEPTH {
            return Err(format!("the schema is nested deeper than {MAX_DEPTH}"));
        }
        if self.bytes > MAX_BYTES || self.pointers > MAX_POINTERS {
            return Err(format!("the schema is larger than {MAX_BYTES} bytes"));
        }
        match value {
            Value::Array(all) => all.iter().try_for_each(|each| self.take(each, depth + 1, pointer + 4)),
            Value::Object(all) => all.iter().try_for_each(|(key, each)| {
                self.bytes += key.len() + 4;
                self.take(each, depth + 1, pointer + key.len() + 1)
            }),
            _ => Ok(()),
        }
    }
}

/// Where the resources, anchors and subschemas of a document with identifiers stand.
///
/// Such a document is rewritten so that every reference is a pointer from its root and nothing has an identifier
/// left: a validator that keeps track of the resource it came from needs a copy of a schema for every such way.
struct Places {
    draft: Draft,
    /// Absolute identifier to pointer.
    resources: BTreeMap<String, String>,
    /// Identifier and anchor to pointer.
    anchors: BTreeMap<(String, String), String>,
    /// Pointer and base of every subschema.
    all: Vec<(String, Url)>,
}

impl Places {
    fn collect(&mut self, schema: &Value, base: &Url, pointer: &str) -> Result<(), String> {
        let Value::Object(map) = schema else { return Ok(()) };
        if self.draft.detect(schema) != self.draft {
            return Err("the schema mixes dialects".to_owned());
        }
        let mut base = Cow::Borrowed(base);
        if let Some(id) = map.get(self.draft.id_keyword()).and_then(Value::as_str)
            && !id.starts_with('#')
            && !(map.contains_key("$ref") && self.draft < Draft::Draft201909)
        {
            let mut own = base.join(id).map_err(|_| "the schema has an identifier that is no URI".to_owned())?;
            own.set_fragment(None);
            let other = self.resources.insert(own.to_string(), pointer.to_owned());
            if other.is_some_and(|other| other != pointer) {
                return Err("the schema has two parts of one identifier".to_owned());
            }
            base = Cow::Owned(own);
        }
        for name in anchors_of(map, self.draft) {
            self.anchors.insert((base.to_string(), name.to_owned()), pointer.to_owned());
        }
        self.all.push((pointer.to_owned(), base.clone().into_owned()));
        let mut result = Ok(());
        each_subschema(map, &mut |_, keyword, key, each| {
            if result.is_ok() {
                let key = key.map_or(String::new(), |key| format!("/{}", escape(&key)));
                result = self.collect(each, &base, &format!("{pointer}/{keyword}{key}"));
            }
        });
        result
    }

    fn flatten(&self, schema: &Value) -> Result<Value, String> {
        // The first is the place of a document without identifier, the second that of a root with one.
        let embedded = self.resources.values().any(|pointer| !pointer.is_empty());
        let mut flat = schema.clone();
        for (pointer, base) in &self.all {
            let Some(Value::Object(map)) = flat.pointer_mut(pointer) else { continue };
            if embedded && (map.contains_key("$dynamicRef") || map.contains_key("$recursiveRef")) {
                return Err("the schema has both embedded resources and dynamic references".to_owned());
            }
            let id = self.draft.id_keyword();
            if map.get(id).and_then(Value::as_str).is_some_and(|id| embedded || !id.starts_with('#')) {
                map.remove(id);
            }
            if embedded {
                map.remove("$anchor");
                map.remove("$dynamicAnchor");
            }
            if let Some(Value::String(reference)) = map.get_mut("$ref") {
                *reference = self
                    .pointer(reference, base)
                    .ok_or_else(|| "the schema refers to something outside itself".to_owned())?;
            }
        }
        Ok(flat)
    }

    /// A reference as a pointer from the root.
    fn pointer(&self, reference: &str, base: &Url) -> Option<String> {
        let mut target = base.join(reference).ok()?;
        let fragment = decode(target.fragment().unwrap_or_default())?;
        target.set_fragment(None);
        let resource = self.resources.get(target.as_str())?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return Some(format!("#{}", encode(&format!("{resource}{fragment}"))));
        }
        Some(format!("#{}", encode(self.anchors.get(&(target.to_string(), fragment))?)))
    }
}

/// A key as part of a pointer.
pub(super) fn escape(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) { Cow::Owned(key.replace('~', "~0").replace('/', "~1")) } else { Cow::Borrowed(key) }
}

fn decode(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digits = [char::from(rest.next()?).to_digit(16)?, char::from(rest.next()?).to_digit(16)?];
            u8::try_from(digits[0] * 16 + digits[1]).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

fn encode(pointer: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut text = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/$".contains(&byte) {
            text.push(byte.into());
        } else {
            let digits = [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
            text.extend(['%'].into_iter().chain(digits));
        }
    }
    text
}
