//! JSON Schemas of the documents, from their types and the loaded components: closed, every string an enumeration or a
//! pattern.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::compare::Comparison;
use super::diff::Diff;
use super::document::{
    AreaName, ComponentName, EARLIER_PROFILE_SCHEMA, EARLIER_SCHEMA, Hex16, Metric, PROFILE_SCHEMA, Report,
};
use super::words::Grammar as _;
use super::{canonical, corpus};
use crate::error::{Error, Result};
use crate::manifest;
use crate::probes::Manifest;
use crate::standard;
use crate::{nearest, shown};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A document that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// A file of `--manifest`.
    Manifest,
    /// `mcpeval.probe-report/v2`.
    Report,
    /// `mcpeval.probe-diff/v2`.
    Diff,
    /// The reports of several targets.
    Compare,
    /// A file of `--standard`.
    Standard,
    /// A file of `--arguments`.
    Arguments,
    /// A file of `--corpus`.
    Corpus,
    /// `mcpeval.toml`.
    Config,
    /// `mcpeval.guidance-report/v1`.
    Guidance,
}

impl Document {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Manifest,
        Self::Report,
        Self::Diff,
        Self::Compare,
        Self::Standard,
        Self::Arguments,
        Self::Corpus,
        Self::Config,
        Self::Guidance,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Report => "report",
            Self::Diff => "diff",
            Self::Compare => "compare",
            Self::Standard => "standard",
            Self::Arguments => "arguments",
            Self::Corpus => "corpus",
            Self::Config => "config",
            Self::Guidance => "guidance",
        }
    }

    /// What it describes.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Manifest => "manifest v1, cases of every loaded kind for --manifest",
            Self::Report => "mcpeval.probe-report/v2, the result of an evaluation",
            Self::Diff => "mcpeval.probe-diff/v2, what changed between two reports",
            Self::Compare => "the reports of several targets",
            Self::Standard => "mcpeval.standard/v1, areas and weights for --standard",
            Self::Arguments => "arguments per tool for --arguments",
            Self::Corpus => "mcpeval.corpus/v1, scores of other servers for --corpus",
            Self::Config => "mcpeval.toml, defaults, targets and components for --config",
            Self::Guidance => "mcpeval.guidance-report/v1, what a server tells and gives to clients of several kinds",
        }
    }

    /// The document of that name.
    ///
    /// # Errors
    /// A usage error with the nearest name.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|document| document.name() == name).ok_or_else(|| {
            let hint = nearest::choices(name, Self::ALL.map(Self::name));
            Error::usage(format!("there is no schema \"{}\"{hint}", shown::word(name)))
        })
    }

    /// Its schema.
    pub fn schema(self, manifests: &[&Manifest]) -> Value {
        let mut schema = match self {
            Self::Manifest => manifest::schema::schema(manifests),
            Self::Report => narrowed::<Report>(manifests),
            Self::Diff => diff(manifests),
            Self::Compare => narrowed::<Comparison>(manifests),
            Self::Standard => standard(),
            Self::Arguments => json!({"type": "object", "additionalProperties": {"type": "object"}}),
            Self::Corpus => corpus(),
            Self::Config => crate::config::schema::schema(),
            Self::Guidance => generated::<crate::guidance::Guidance>(),
        };
        if let Value::Object(fields) = &mut schema {
            fields.insert("$schema".to_owned(), DIALECT.into());
            fields.insert("$id".to_owned(), format!("urn:mcpeval:{}", self.name()).into());
            fields.insert("title".to_owned(), self.title().into());
        }
        schema
    }

    /// Its schema as text.
    pub fn text(self, manifests: &[&Manifest]) -> String {
        canonical::document(&self.schema(manifests))
    }
}

/// The names of all documents, one a line, with what they describe.
pub fn list() -> String {
    Document::ALL.map(|document| format!("{}: {}\n", document.name(), document.title())).concat()
}

fn generated<T: schemars::JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// The schema of a document by the grammars of its strings alone.
pub(crate) fn plain<T: schemars::JsonSchema>() -> Value {
    let mut schema = generated::<T>();
    let text = schema.to_string();
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        // Types that only name members are mentioned by no field.
        for (name, pattern) in [
            ("AreaName", AreaName::PATTERN),
            ("ComponentName", ComponentName::PATTERN),
            ("Hex16", Hex16::PATTERN),
            ("Metric", Metric::PATTERN),
        ] {
            if !definitions.contains_key(name) && text.contains(&format!("\"#/$defs/{name}\"")) {
                definitions.insert(name.to_owned(), json!({"type": "string", "pattern": pattern}));
            }
        }
    }
    schema
}

/// The same with the words that the loaded components can say in the place of their grammars.
fn narrowed<T: schemars::JsonSchema>(manifests: &[&Manifest]) -> Value {
    let mut schema = plain::<T>();
    let words = |each: &dyn Fn(&Manifest) -> Vec<&str>| -> BTreeSet<String> {
        manifests.iter().flat_map(|manifest| each(manifest)).map(str::to_owned).collect()
    };
    let areas = words(&|manifest| manifest.areas());
    let kinds = words(&|manifest| if manifest.areas().is_empty() { vec![&manifest.kind] } else { vec![] });
    let components =
        areas.iter().map(|area| format!("area:{area}")).chain(kinds.iter().cloned()).collect::<BTreeSet<_>>();
    let reasons = words(&|manifest| manifest.reasons.iter().map(|reason| reason.label.as_str()).collect());
    let hosts = crate::outcome::NoVerdict::ALL;
    let all_reasons = reasons.iter().cloned().chain(hosts.map(|reason| reason.label().to_owned())).collect();
    let hints = words(&|manifest| manifest.reasons.iter().map(|reason| reason.hint.as_str()).collect())
        .into_iter()
        .chain(hosts.map(|reason| reason.hint().to_owned()))
        .collect();
    let metrics = words(&|manifest| manifest.metrics.iter().map(|metric| metric.name.as_str()).collect())
        .into_iter()
        .chain([super::document::UNTIMED.to_owned()])
        .collect();
    let labels =
        words(&|manifest| manifest.metrics.iter().flat_map(|metric| &metric.labels).map(String::as_str).collect());
    let subjects = areas.iter().cloned().chain(["score".to_owned()]).collect();
    let checks = words(&|manifest| {
        manifest.checks.iter().filter(|check| check.area.is_some()).map(|check| check.id.as_str()).collect()
    });
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        // `AreaName` names areas, and `score` where a floor is meant.
        for (name, words) in [
            ("AreaName", subjects),
            ("KindName", kinds),
            ("ComponentName", components),
            ("Reason", all_reasons),
            ("Hint", hints),
            ("Metric", metrics),
            ("Word", labels),
            ("CheckId", checks),
        ] {
            enumerate(definitions, name, &words);
        }
    }
    schema
}

/// Narrows a string type to the words that the loaded components can say; its grammar stays where they say none.
fn enumerate(definitions: &mut Map<String, Value>, name: &str, words: &BTreeSet<String>) {
    if let (Some(definition), false) = (definitions.get_mut(name), words.is_empty()) {
        *definition = json!({"type": "string", "enum": words});
    }
}

fn diff(manifests: &[&Manifest]) -> Value {
    with_earlier_profiles(narrowed::<Diff>(manifests))
}

/// The schema of a difference by the grammars of its strings alone.
pub(crate) fn plain_diff() -> Value {
    with_earlier_profiles(plain::<Diff>())
}

/// The schema of a stored report, of whatever profile, by the grammars of its strings alone.
pub(crate) fn stored() -> Value {
    with_earlier_profiles(plain::<Report>())
}

/// The schema of `mcpeval.probe-report/v1` by the grammars of its strings alone: cases, and a score.
pub(crate) fn earlier() -> Value {
    let mut schema = plain::<Report>();
    if let Some(properties) = schema.get_mut("properties") {
        properties["schema"] = json!({"const": EARLIER_SCHEMA});
        properties["readiness"] = json!({"properties": {"score": {"type": "integer"}}});
    }
    schema
}

fn with_earlier_profiles(mut schema: Value) -> Value {
    if let Some(profile) = schema.get_mut("$defs").and_then(|definitions| definitions.get_mut("Profile")) {
        allow_earlier(profile);
        if let Some(Value::Array(required)) = profile.get_mut("required") {
            required.retain(|field| field != "lanes");
        }
    }
    schema
}

/// Lets a profile be one of an earlier version.
fn allow_earlier(profile: &mut Value) {
    if let Some(schema) = profile.get_mut("properties").and_then(|properties| properties.get_mut("schema")) {
        *schema = json!({"enum": [PROFILE_SCHEMA, EARLIER_PROFILE_SCHEMA]});
    }
}

fn standard() -> Value {
    let shipped = standard::Standard::shipped().map(|standard| standard.areas).unwrap_or_default();
    let names: Vec<String> = shipped.into_iter().map(|area| area.name).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["schema", "label", "areas"],
        "properties": {
            "$schema": {"type": "string"},
            "schema": {"const": standard::SCHEMA},
            "label": {
                "type": "string",
                "pattern": "^[a-z0-9][a-z0-9.-]{0,63}/[0-9]{1,4}$",
                "not": {"pattern": format!("^{}", standard::RESERVED_PREFIX)}
            },
            "areas": {
                "type": "array",
                "minItems": 1,
                "maxItems": standard::MAX_AREAS,
                "description": "The weights add up to 100; no name stands twice.",
                "items": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["name", "weight", "component"],
                    "properties": {
                        "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,31}$"},
                        "weight": {"type": "integer", "minimum": 0, "maximum": 100},
                        "component": {"oneOf": [
                            {"enum": names},
                            {
                                "type": "object",
                                "additionalProperties": false,
                                "required": ["path", "sha256"],
                                "properties": {
                                    "path": {"type": "string", "minLength": 1},
                                    "sha256": {"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"}
                                }
                            }
                        ]}
                    }
                }
            }
        }
    })
}

fn corpus() -> Value {
    let profile = generated::<super::document::Profile>();
    let definitions = profile.get("$defs").cloned().unwrap_or_default();
    let mut profile = profile;
    allow_earlier(&mut profile);
    if let Value::Object(fields) = &mut profile {
        for outer in ["$defs", "$schema", "title"] {
            fields.remove(outer);
        }
        fields.insert("required".to_owned(), json!(["schema"]));
    }
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["schema", "entries"],
        "properties": {
            "$schema": {"type": "string"},
            "schema": {"const": corpus::SCHEMA},
            "entries": {"type": "array", "items": {
                "type": "object",
                "additionalProperties": false,
                "required": ["server", "standard", "score", "measurement_profile", "catalog_tokens"],
                "properties": {
                    "server": {"type": "string"},
                    "standard": {"type": "string"},
                    "score": {"type": "integer", "minimum": 0, "maximum": 100},
                    "measurement_profile": profile,
                    "catalog_tokens": {"type": "integer", "minimum": 0, "maximum": u32::MAX}
                }
            }}
        },
        "$defs": definitions
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::assemble::{Floors, assemble};
    use super::super::document::Label;
    use super::super::tests_support::{Example, battery, stopped};
    use super::*;
    use crate::outcome::NoVerdict;

    fn validator() -> (Value, jsonschema::Validator) {
        let battery = battery();
        let schema = Document::Report.schema(&battery.iter().collect::<Vec<_>>());
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        (schema, validator)
    }

    fn report(example: &Example) -> Value {
        let floors = Floors {
            min_score: Some(90),
            min_areas: BTreeMap::from([("catalog".to_owned(), 90)]),
            exclude_latency: true,
        };
        serde_json::to_value(assemble(&example.facts(), Label::new("shop").unwrap(), &floors).report).unwrap()
    }

    fn partial() -> Value {
        let mut example = Example::worked();
        let mut record = example.records[3].clone();
        record.areas.remove("coverage");
        example.records[3] = stopped(record, NoVerdict::TransportClosed, Some((1, 2)));
        report(&example)
    }

    #[test]
    fn our_own_reports_are_valid() {
        let (_, validator) = validator();
        let mut unreachable = Example::worked();
        (unreachable.catalog, unreachable.error) = (None, Some(NoVerdict::HandshakeFailed));
        unreachable.records.clear();
        for report in [report(&Example::worked()), partial(), report(&unreachable)] {
            let errors: Vec<String> =
                validator.iter_errors(&report).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(errors.is_empty(), "{errors:#?}");
        }
    }

    #[test]
    fn the_schema_is_closed_and_every_string_an_enumeration_or_a_pattern() {
        fn walk(pointer: &str, schema: &Value, faults: &mut Vec<String>) {
            if let Value::Object(fields) = schema {
                let kind = fields.get("type");
                let is = |name: &str| {
                    kind.is_some_and(|kind| {
                        kind == name || kind.as_array().is_some_and(|kinds| kinds.contains(&name.into()))
                    })
                };
                let closed = fields.get("additionalProperties").is_some_and(|rest| *rest != json!(true));
                if is("object") && !closed {
                    faults.push(format!("{pointer} is open"));
                }
                let bound = ["enum", "const", "pattern"].iter().any(|keyword| fields.contains_key(*keyword));
                if is("string") && !bound {
                    faults.push(format!("{pointer} is any string"));
                }
            }
            let members: Vec<(String, &Value)> = match schema {
                Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
                Value::Array(items) => items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect(),
                _ => Vec::new(),
            };
            for (key, value) in members {
                walk(&format!("{pointer}/{key}"), value, faults);
            }
        }
        let (schema, _) = validator();
        let mut faults = Vec::new();
        walk("", &schema, &mut faults);
        assert!(faults.is_empty(), "{faults:#?}");
        assert_eq!(schema["$id"], "urn:mcpeval:report");
    }

    #[test]
    fn whatever_is_changed_in_a_report_is_found() {
        let (_, validator) = validator();
        let changes: [(&str, Value); 12] = [
            ("/server", json!("a b")),
            ("/generator/version", json!("free text")),
            ("/readiness/score", json!(101)),
            ("/readiness/badge", json!("https://example.com/")),
            ("/readiness/areas/0/name", json!("other")),
            ("/readiness/areas/0/checks/0/reason", json!("other-reason")),
            ("/readiness/areas/0/checks/0/hint", json!("Another hint.")),
            ("/readiness/areas/0/checks/0/score", json!(100)),
            ("/readiness/areas/1/checks/0/tool", json!("a b")),
            ("/readiness/areas/2/measurements/catalog_tokens", json!(-1)),
            ("/readiness/assessment/scope", json!("everything")),
            ("/catalog/tools/0/class", json!("invalid")),
        ];
        for (pointer, value) in changes {
            let mut report = report(&Example::worked());
            *report.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
            assert!(!validator.is_valid(&report), "{pointer}");
        }
        for pointer in ["", "/readiness", "/readiness/areas/0", "/readiness/areas/0/checks/0", "/generator", "/catalog"]
        {
            let mut added = report(&Example::worked());
            added.pointer_mut(pointer).unwrap()["more"] = json!(1);
            assert!(!validator.is_valid(&added), "{pointer} is closed");
        }
        for field in ["readiness_error", "gate", "cases", "passed", "catalog"] {
            let mut less = report(&Example::worked());
            less.as_object_mut().unwrap().remove(field);
            assert!(!validator.is_valid(&less), "{field} is required");
        }
    }

    #[test]
    fn the_standard_schema_agrees_with_the_reader() {
        let validator = jsonschema::draft202012::new(&Document::Standard.schema(&[])).unwrap();
        let ours: Value = toml::from_str(include_str!("../../../probes/standard-3.toml")).unwrap();
        let mut theirs = ours.clone();
        theirs["label"] = json!("acme/1");
        assert!(validator.is_valid(&theirs));
        assert!(!validator.is_valid(&ours), "our label is reserved");
        theirs["areas"][0]["component"] = json!("other");
        assert!(!validator.is_valid(&theirs));
        theirs["areas"][0]["component"] = json!({"path": "a.wasm", "sha256": "0".repeat(64)});
        assert!(validator.is_valid(&theirs));
    }

    #[test]
    fn every_document_is_named_and_its_schema_compiles() {
        for document in Document::ALL {
            assert_eq!(Document::named(document.name()).unwrap(), document);
            jsonschema::draft202012::new(&document.schema(&[])).unwrap();
        }
        let profile = report(&Example::worked())["readiness"]["measurement_profile"].clone();
        let corpus = json!({"schema": corpus::SCHEMA, "entries": [{"server": "a", "standard": "a/1", "score": 1,
            "measurement_profile": profile, "catalog_tokens": 3}]});
        assert!(jsonschema::draft202012::new(&Document::Corpus.schema(&[])).unwrap().is_valid(&corpus));
        assert!(
            Document::named("repotr")
                .unwrap_err()
                .to_string()
                .contains("the nearest is \"report\"; there are manifest, report")
        );
    }
}
