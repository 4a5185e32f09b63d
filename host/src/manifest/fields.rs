//! A kind's own fields: checked against the schema that its component declares, with the place of every fault.

use serde_json::{Map, Value};

use super::Named;
use super::document::is_null;
use crate::error::Result;
use crate::nearest;
use crate::notation::{At, DEPTH_LIMIT, Kind};
use crate::probes;
use crate::report::document::Label;
use crate::services::schema::{self, Validator};
use crate::services::text::{self, Dialect};

/// Format of names that the catalog must list and the case's access must allow.
const TOOL: &str = "tool";
/// Format of regular expressions without look-around and back-references.
const LINEAR_REGEX: &str = "linear-regex";
/// Format of values that must themselves be schemas.
const JSON_SCHEMA: &str = "json-schema";
/// Schemas that may describe one value together: members of `allOf`, branches, targets of references.
const MAX_PARTS: usize = 256;

/// What is said of a value that only other fields forbid.
const BESIDE: &str = "does not go with the fields beside it";

/// The fields of one kind.
pub(super) struct Fields {
    schema: Value,
    validator: Validator,
}

/// The parts of a schema that describe one value.
type Parts<'a> = Vec<&'a Value>;

/// What a walk over a case has gathered.
struct Walk<'a> {
    tools: Vec<Named>,
    skipped: &'a [&'a str],
}

impl Fields {
    /// The fields that a component declares.
    pub(super) fn of(declared: &probes::Manifest) -> Result<Self, String> {
        let broken = |why: String| format!("the config schema of {} cannot be used: {why}", declared.kind);
        let schema: Value = serde_json::from_str(&declared.config_schema).map_err(|error| broken(error.to_string()))?;
        let validator = Validator::new(&schema).map_err(broken)?;
        Ok(Self { schema, validator })
    }

    /// Checks the fields of a case but those `skipped`; gives them with absent ones left out, and the tools they name.
    pub(super) fn check(&self, at: &At<'_>, skipped: &[&str]) -> Result<(Map<String, Value>, Vec<Named>)> {
        let mut walk = Walk { tools: Vec::new(), skipped };
        let Value::Object(config) = self.walk(&[&self.schema], at, 0, &mut walk)? else {
            return Err(at.fault("must be an object"));
        };
        let config = Value::Object(config);
        let faults = self
            .validator
            .faults(&config)
            .map_err(|_| largest(at.clone()).fault("too large to be checked with the fields beside it; shorten it"))?;
        // The deepest of the first place: branches fail as a whole for what is wrong inside them.
        if let Some(fault) = faults.iter().min_by_key(|fault| (fault.path.as_str(), fault.keyword.as_str())) {
            let (parts, place) = self.find(at, &fault.path);
            return Err(place.fault(sentence(&parts, &fault.keyword, &place)));
        }
        let Value::Object(config) = config else { return Err(at.fault("must be an object")) };
        Ok((config, walk.tools))
    }

    /// The first tool field at the top, by its name.
    pub(super) fn reported_tool(&self, config: &Map<String, Value>) -> Option<String> {
        let properties = self.schema.get("properties")?.as_object()?;
        let mut names: Vec<&String> =
            properties.iter().filter(|(_, schema)| format_of(schema) == Some(TOOL)).map(|(name, _)| name).collect();
        names.sort_unstable();
        names.into_iter().find_map(|name| config.get(name)?.as_str().map(str::to_owned))
    }

    /// The value at a place without its optional nulls; refuses unknown fields and what breaks a format of ours.
    fn walk(&self, schemas: &[&Value], at: &At<'_>, depth: usize, walk: &mut Walk<'_>) -> Result<Value> {
        if depth > DEPTH_LIMIT {
            return Err(at.fault(format!("nested deeper than {DEPTH_LIMIT}")));
        }
        let parts = self.parts(schemas);
        for part in &parts {
            if let Some(format) = format_of(part) {
                check_format(format, at, walk)?;
            }
        }
        match &at.node().kind {
            Kind::Scalar(value) => Ok(value.clone()),
            Kind::List(_) => {
                let items: Parts<'_> = parts.iter().filter_map(|part| part.get("items")).collect();
                let walked = at.items()?.map(|item| self.walk(&items, &item, depth + 1, walk));
                walked.collect::<Result<Vec<_>>>().map(Value::Array)
            }
            Kind::Map(_) => {
                let skipped = if depth == 0 { walk.skipped } else { &[] };
                let mut object = Map::new();
                for (key, child) in at.entries()?.filter(|(key, _)| !skipped.contains(key)) {
                    let under = children(&parts, key);
                    if under.is_empty() && (depth == 0 || is_closed(&parts)) {
                        let known = property_names(&parts).chain(skipped.iter().copied());
                        return Err(child.fault(format!("unknown field{}", nearest::choices(key, known))));
                    }
                    let is_required = parts.iter().any(|part| required(part).any(|name| name == key));
                    if is_null(&child) && !is_required && !under.is_empty() && !self.accepts_null(&under) {
                        continue;
                    }
                    object.insert(key.to_owned(), self.walk(&under, &child, depth + 1, walk)?);
                }
                Ok(Value::Object(object))
            }
        }
    }

    /// The schemas themselves, and what they refer to, join and choose from.
    fn parts<'s>(&'s self, schemas: &[&'s Value]) -> Parts<'s> {
        let mut parts: Parts<'s> = Vec::new();
        let mut open: Vec<&'s Value> = schemas.iter().rev().copied().collect();
        while let Some(schema) = open.pop() {
            if parts.len() >= MAX_PARTS || parts.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            parts.push(schema);
            let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
            open.extend(target.and_then(|pointer| self.schema.pointer(pointer)));
            for joined in ["allOf", "anyOf", "oneOf"] {
                open.extend(schema.get(joined).and_then(Value::as_array).into_iter().flatten());
            }
        }
        parts
    }

    fn accepts_null(&self, schemas: &[&Value]) -> bool {
        self.parts(schemas).iter().any(|part| match part.get("type") {
            Some(Value::String(name)) => name == "null",
            Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
            _ => ["$ref", "allOf", "anyOf", "oneOf", "enum", "const", "properties"]
                .iter()
                .all(|keyword| part.get(keyword).is_none()),
        })
    }

    /// What describes the value at a pointer, and its place in the document; of one that is not there, its parent's.
    fn find<'s, 'd>(&'s self, at: &At<'d>, pointer: &str) -> (Parts<'s>, At<'d>) {
        let mut parts = self.parts(&[&self.schema]);
        let mut place = at.clone();
        for step in pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")) {
            let under: Parts<'s> = match &place.node().kind {
                Kind::List(_) => parts.iter().filter_map(|part| part.get("items")).collect(),
                _ => children(&parts, &step),
            };
            let Some(next) = place.step(&step) else { break };
            (parts, place) = (self.parts(&under), next);
        }
        (parts, place)
    }
}

/// The innermost value that makes up most of the one it stands in.
fn largest(mut at: At<'_>) -> At<'_> {
    let size = |at: &At<'_>| at.node().to_value().to_string().len();
    let mut whole = size(&at);
    loop {
        let fields = at.entries().into_iter().flatten().map(|(_, field)| field);
        let children: Vec<At<'_>> = fields.chain(at.items().into_iter().flatten()).collect();
        let sized = children.into_iter().map(|child| (size(&child), child));
        match sized.into_iter().find(|(size, _)| *size > whole / 2) {
            Some((size, child)) => (whole, at) = (size, child),
            None => return at,
        }
    }
}

fn format_of(schema: &Value) -> Option<&str> {
    schema.get("format").and_then(Value::as_str)
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn property_names<'s>(parts: &'s [&Value]) -> impl Iterator<Item = &'s str> {
    parts.iter().filter_map(|part| properties(part)).flat_map(|properties| properties.keys().map(String::as_str))
}

fn is_closed(parts: &[&Value]) -> bool {
    parts.iter().any(|part| part.get("additionalProperties") == Some(&Value::Bool(false)))
}

/// The schemas of one member of an object.
fn children<'s>(parts: &[&'s Value], key: &str) -> Parts<'s> {
    let named: Parts<'s> = parts.iter().filter_map(|part| properties(part)?.get(key)).collect();
    if !named.is_empty() {
        return named;
    }
    let open = |part: &&'s Value| part.get("additionalProperties").filter(|schema| **schema != Value::Bool(false));
    let patterned = |part: &&'s Value| part.get("patternProperties").filter(|schemas| schemas.is_object());
    parts.iter().filter_map(|part| open(part).or_else(|| patterned(part))).collect()
}

fn check_format(format: &str, at: &At<'_>, walk: &mut Walk<'_>) -> Result<()> {
    let text = match &at.node().kind {
        Kind::Scalar(Value::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match (format, text) {
        (TOOL, Some(tool)) => {
            if !Label::is_valid(tool) {
                return Err(at.fault("must be a tool's name: 1 to 128 letters, digits or _ . : -"));
            }
            walk.tools.push(Named { tool: tool.to_owned(), place: at.to_string() });
            Ok(())
        }
        (LINEAR_REGEX, Some(pattern)) => {
            text::matches(pattern, "", Dialect::Linear).map(drop).map_err(|why| at.fault(why))
        }
        (JSON_SCHEMA, _) if !is_null(at) => schema::check(&at.node().to_value()).map_err(|why| at.fault(why)),
        _ => Ok(()),
    }
}

/// What a keyword asks for, in words.
fn sentence(parts: &[&Value], keyword: &str, place: &At<'_>) -> String {
    let with = |key: &str| parts.iter().find_map(|part| part.get(key));
    let bounds = |least: &str, most: &str, of: &str| match (with(least), with(most)) {
        (Some(least), Some(most)) => format!("must be from {least} to {most}{of}"),
        (Some(least), None) => format!("must be at least {least}{of}"),
        (None, Some(most)) => format!("must be at most {most}{of}"),
        // What asks for it stands under a condition.
        (None, None) => BESIDE.to_owned(),
    };
    match keyword {
        "required" => {
            let absent = |name: &&str| place.step(name).is_none_or(|child| is_null(&child));
            let missing = parts.iter().flat_map(|part| required(part)).find(absent);
            missing.map_or_else(
                || "a field that goes with the others is missing".to_owned(),
                |name| format!("the field \"{name}\" is missing"),
            )
        }
        "type" | "minimum" | "maximum" => {
            let kinds = match with("type") {
                Some(Value::String(name)) => article(name),
                Some(Value::Array(names)) => {
                    names.iter().filter_map(Value::as_str).map(article).collect::<Vec<_>>().join(" or ")
                }
                _ => return bounds("minimum", "maximum", ""),
            };
            match (with("minimum"), with("maximum")) {
                (Some(least), Some(most)) => format!("must be {kinds} from {least} to {most}"),
                (Some(least), None) => format!("must be {kinds} of at least {least}"),
                (None, Some(most)) => format!("must be {kinds} of at most {most}"),
                (None, None) => format!("must be {kinds}"),
            }
        }
        "enum" | "const" => {
            let words = with("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let words: Vec<String> = words.iter().chain(with("const")).map(Value::to_string).collect();
            format!("must be {}", words.join(" or "))
        }
        "pattern" => with("pattern").and_then(Value::as_str).map_or_else(
            || "does not have the form that the kind declares".to_owned(),
            |pattern| format!("must have the form {pattern}"),
        ),
        "minLength" | "maxLength" => bounds("minLength", "maxLength", " characters long"),
        "minItems" | "maxItems" => bounds("minItems", "maxItems", " elements long"),
        "minProperties" | "maxProperties" => bounds("minProperties", "maxProperties", " fields long"),
        "uniqueItems" => "no element may stand twice".to_owned(),
        "falseSchema" | "false" | "not" => BESIDE.to_owned(),
        "format" => {
            format!("must be a {}", with("format").and_then(Value::as_str).unwrap_or("value of the declared format"))
        }
        other => format!("does not fit what the kind declares ({other})"),
    }
}

fn article(kind: &str) -> String {
    match kind {
        "array" | "integer" | "object" => format!("an {kind}"),
        "null" => "null".to_owned(),
        other => format!("a {other}"),
    }
}
