//! The report document, `mcpeval.probe-report/v2`, as types: every string in it is of a class that may be shared.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::read::fields;
use super::words::{Grammar as _, Unit};
use crate::outcome::NoVerdict;

pub use super::words::{
    AreaName, Badge, BoundName, CaseId, CaseResult, CheckId, Class, ComponentName, Hex16, Hex64, Hint, Identifier,
    KindName, Label, Metric, Reason, StandardLabel, Subject, Version, Word,
};

/// The value of `schema`.
pub const SCHEMA: &str = "mcpeval.probe-report/v2";
/// The value of `schema` in documents of earlier versions, whose score compares with nothing.
pub const EARLIER_SCHEMA: &str = "mcpeval.probe-report/v1";
/// The value of `measurement_profile.schema`.
pub const PROFILE_SCHEMA: &str = "mcpeval.measurement-profile/v2";
/// The same in documents of earlier versions.
pub const EARLIER_PROFILE_SCHEMA: &str = "mcpeval.measurement-profile/v1";
/// The version in reports.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The measurement that holds an area's score with latency at its best.
pub const UNTIMED: &str = "score_without_latency";
/// The measurement that holds the size of the whole catalog.
pub const CATALOG_TOKENS: &str = "catalog_tokens";

/// A string that a document's definition fixes.
pub type Constant = &'static str;

/// 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Percent(#[schemars(range(min = 0, max = 100))] pub u8);

/// The score of a check that is lost: 0 to 99.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct LostScore(#[schemars(range(min = 0, max = 99))] pub u8);

/// Whether a number that was not read is to be left out again.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Everything one run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Report {
    /// Version of this document.
    #[serde(deserialize_with = "fields::report_schema")]
    #[schemars(extend("const" = SCHEMA))]
    pub schema: Constant,
    /// What wrote it.
    pub generator: Generator,
    /// Given by the user.
    pub server: Label,
    /// Digest of the manifest; null without one.
    pub manifest_sha256: Option<Hex64>,
    /// True exactly when the run exits 0.
    pub passed: bool,
    /// Cases passed and selected; null without a manifest.
    pub gate: Option<Gate>,
    /// Null when not measured or not finished.
    pub readiness: Option<Readiness>,
    /// Why there is no readiness.
    pub readiness_error: Option<NoVerdictLabel>,
    /// What was finished, when the battery started and did not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_partial: Option<Partial>,
    /// The floors; null without any.
    pub readiness_gate: Option<FloorGate>,
    /// What callers rely on; null when the catalog was not listed to its end.
    pub catalog: Option<Contract>,
    /// Digest of every component that took part.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "fields::named::<ComponentName, _, _>"
    )]
    #[schemars(extend("propertyNames" = {"$ref": "#/$defs/ComponentName"}))]
    pub components: BTreeMap<String, Hex64>,
    /// In manifest order.
    pub cases: Vec<Case>,
    /// The score of a document of [`EARLIER_SCHEMA`], the part of its cases that passed; none in those of today.
    #[serde(skip)]
    pub legacy_score: Option<Percent>,
}

/// What wrote a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Generator {
    /// Always `mcpeval`.
    #[serde(deserialize_with = "fields::generator_name")]
    #[schemars(extend("const" = "mcpeval"))]
    pub name: Constant,
    /// Its version.
    pub version: Version,
}

/// A no-verdict label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoVerdictLabel(pub NoVerdict);

impl Serialize for NoVerdictLabel {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.label())
    }
}

impl JsonSchema for NoVerdictLabel {
    fn schema_name() -> Cow<'static, str> {
        "NoVerdict".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"enum": NoVerdict::ALL.map(NoVerdict::label)})
    }
}

/// Cases passed and selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Gate {
    /// Passed.
    pub passed: u32,
    /// Selected.
    pub total: u32,
}

/// One case of a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Case {
    /// Its id.
    pub id: CaseId,
    /// Its kind.
    pub probe: KindName,
    /// The tool it names, if its kind names one.
    pub tool: Option<Label>,
    /// Whether it passed.
    pub passed: bool,
    /// Requests the verdict rests on.
    pub attempts: u32,
    /// 1-based number of the one that failed.
    #[serde(default, deserialize_with = "fields::optional_positive")]
    #[schemars(range(min = 1))]
    pub first_failure: Option<u32>,
    /// Null on a pass; a no-verdict label means that it errored.
    pub reason: Option<Reason>,
    /// Text of the reason.
    pub hint: Option<Hint>,
    /// The broken bound.
    pub detail: Option<Detail>,
    /// Declared values.
    #[serde(deserialize_with = "fields::named::<Metric, _, _>")]
    #[schemars(extend("propertyNames" = {"$ref": "#/$defs/Metric"}))]
    pub measurements: BTreeMap<String, Measured>,
}

/// A broken bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Detail {
    /// Its name.
    pub bound: BoundName,
    /// What it allows.
    pub limit: u32,
    /// What was seen.
    pub observed: u32,
}

/// A measured value of a case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Measured {
    /// A whole number.
    Whole(u64),
    /// A finite number.
    Number(f64),
    /// A declared word.
    Word(Word),
    /// One entry per tool, largest first, then by name.
    PerTool(Vec<PerTool>),
}

/// A tool's entry of a list: `{"tool": ..., "<unit>": ...}`.
#[derive(Debug, Clone, PartialEq)]
pub struct PerTool {
    /// The tool.
    pub tool: Subject,
    /// The unit, as the component declares it.
    pub unit: String,
    /// The value.
    pub value: serde_json::Number,
}

impl Serialize for PerTool {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([
            ("tool", serde_json::Value::from(self.tool.as_str())),
            (self.unit.as_str(), serde_json::Value::Number(self.value.clone())),
        ])
    }
}

impl JsonSchema for PerTool {
    fn schema_name() -> Cow<'static, str> {
        "PerTool".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {"tool": generator.subschema_for::<Subject>()},
            "required": ["tool"],
            "propertyNames": {"pattern": Unit::PATTERN},
            "additionalProperties": {"type": "number"},
            "minProperties": 2,
            "maxProperties": 2
        })
    }
}

/// A finished battery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Readiness {
    /// The areas and weights used.
    pub standard: StandardLabel,
    /// The score.
    pub score: Percent,
    /// The same with latency at its best.
    pub score_without_latency: Percent,
    /// Computed from the score.
    pub badge: Badge,
    /// Unannotated tools were attested to be read-only.
    pub attested_read_only: bool,
    /// What the catalog holds.
    pub surface: Surface,
    /// In the order of the standard.
    pub areas: Vec<AreaReport>,
    /// What makes scores comparable.
    pub measurement_profile: Profile,
    /// How far the verdict goes.
    pub assessment: Assessment,
}

/// What the catalog holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Surface {
    /// Valid entries, of equal names one.
    pub tools: u32,
    /// Tools that are no writers.
    pub read_only: u32,
    /// Tools that declare to write.
    pub writers: u32,
    /// Tools with a success.
    pub exercised: u32,
    /// Entries that are no tools; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "fields::optional_positive")]
    #[schemars(range(min = 1))]
    pub invalid_entries: Option<u32>,
}

/// One area's part of the score.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AreaReport {
    /// Its name.
    pub name: AreaName,
    /// Its share of the score.
    #[serde(deserialize_with = "fields::percent")]
    #[schemars(range(min = 0, max = 100))]
    pub weight: u32,
    /// 0 to 100.
    pub score: Percent,
    /// Declared values.
    #[serde(deserialize_with = "fields::named::<Metric, _, _>")]
    #[schemars(extend("propertyNames" = {"$ref": "#/$defs/Metric"}))]
    pub measurements: BTreeMap<String, u64>,
    /// The lost checks, in catalog then table order.
    pub checks: Vec<LostCheck>,
}

/// A check that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LostCheck {
    /// Its id.
    pub id: CheckId,
    /// The tool it is about; null when it is about the server.
    pub tool: Option<Subject>,
    /// 0 to 99.
    pub score: LostScore,
    /// What was counted.
    pub observed: Option<u32>,
    /// Why it is lost.
    pub reason: Reason,
    /// Text of the reason.
    pub hint: Hint,
}

/// What makes scores comparable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of this object.
    #[serde(deserialize_with = "fields::profile_schema")]
    #[schemars(extend("const" = PROFILE_SCHEMA))]
    pub schema: Constant,
    /// Version of mcpeval.
    pub evaluator_version: Version,
    /// Operating system.
    pub platform: Identifier,
    /// Processor.
    pub architecture: Identifier,
    /// The battery declares none.
    #[serde(deserialize_with = "fields::no_capabilities")]
    #[schemars(extend("const" = "none"))]
    pub client_capabilities: Constant,
    /// Unannotated tools were attested to be read-only.
    pub attested_read_only: bool,
    /// Tools never called, sorted.
    pub skip_tools: Vec<Label>,
    /// Wait for every answer but the handshake's.
    #[serde(deserialize_with = "fields::positive")]
    #[schemars(range(min = 1))]
    pub call_timeout_ms: u32,
    /// Valid calls per tool.
    #[serde(deserialize_with = "fields::positive")]
    #[schemars(range(min = 1))]
    pub repeats: u32,
    /// Configured maximum of sessions that share the calls; 0 in [`EARLIER_PROFILE_SCHEMA`], which had no such field.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "fields::positive")]
    #[schemars(required, range(min = 1))]
    pub lanes: u32,
    /// Digest of the arguments file's canonical JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_sha256: Option<Hex64>,
}

/// How far the verdict goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Assessment {
    /// What was looked at.
    #[serde(deserialize_with = "fields::scope")]
    #[schemars(extend("const" = "read-only-structural"))]
    pub scope: Constant,
    /// What it would take to judge answers.
    #[serde(deserialize_with = "fields::semantic_correctness")]
    #[schemars(extend("const" = "requires-reviewed-oracle"))]
    pub semantic_correctness: Constant,
    /// Tools with a success.
    pub tools_exercised: u32,
    /// Tools that are no writers.
    pub read_only_tools: u32,
    /// Tools that are, and were not called.
    pub writer_tools_excluded: u32,
}

/// What an unfinished battery did finish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Partial {
    /// The areas and weights used.
    pub standard: StandardLabel,
    /// The finished ones.
    pub areas: Vec<AreaReport>,
    /// Callable tools.
    pub tools: PartialTools,
}

/// Callable tools of an unfinished battery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PartialTools {
    /// What the components reported as finished.
    pub finished: u32,
    /// All of them.
    pub total: u32,
}

/// The floors and whether they are met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FloorGate {
    /// Least score.
    pub min_score: Option<Percent>,
    /// Least score per area.
    #[serde(deserialize_with = "fields::named::<AreaName, _, _>")]
    #[schemars(extend("propertyNames" = {"$ref": "#/$defs/AreaName"}))]
    pub min_areas: BTreeMap<String, Percent>,
    /// Latency does not count towards the floors.
    pub exclude_latency: bool,
    /// Null when nothing was measured.
    pub passed: Option<bool>,
    /// The floors that are missed; null when nothing was measured.
    pub shortfalls: Option<Vec<Shortfall>>,
}

/// A floor that is missed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Shortfall {
    /// `score`, or an area.
    pub subject: AreaName,
    /// What was measured.
    pub observed: Percent,
    /// What was asked for.
    pub floor: Percent,
}

/// What callers of a server rely on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Contract {
    /// Sorted by name.
    pub tools: Vec<ContractTool>,
}

/// What callers of one tool rely on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ContractTool {
    /// Its name.
    pub name: Label,
    /// Its class.
    pub class: Class,
    /// Digests of the required parameter names, sorted.
    pub required: Vec<Hex16>,
    /// Digest of each name to digest of its constraint.
    #[serde(deserialize_with = "fields::keyed")]
    #[schemars(extend("propertyNames" = {"$ref": "#/$defs/Hex16"}))]
    #[schemars(with = "BTreeMap<String, Hex16>")]
    pub parameters: BTreeMap<Hex16, Hex16>,
    /// Digest of the result's constraint.
    pub output_schema: Option<Hex16>,
}

impl Case {
    /// How it ended: an error where the reason is a no-verdict label.
    pub fn result(&self) -> CaseResult {
        let no_verdict = self.reason.as_ref().and_then(|reason| NoVerdict::from_label(reason.as_str()));
        match (no_verdict, self.passed) {
            (Some(_), _) => CaseResult::Error,
            (None, true) => CaseResult::Pass,
            (None, false) => CaseResult::Fail,
        }
    }
}

impl Report {
    /// Whether an earlier mcpeval wrote it, whose score compares with nothing of today.
    pub fn is_legacy(&self) -> bool {
        self.schema != SCHEMA
    }

    /// Reads the exit code from the verdicts, as a reader of the stored document does: 3 outranks 1.
    pub fn exit_code(&self) -> u8 {
        let any = |result| self.cases.iter().any(|case| case.result() == result);
        let floors_missed = self.readiness_gate.as_ref().is_some_and(|gate| gate.passed == Some(false));
        if self.readiness_error.is_some() || any(CaseResult::Error) {
            3
        } else {
            u8::from(floors_missed || any(CaseResult::Fail))
        }
    }

    /// The document, keys sorted, indented, with a newline at the end.
    ///
    /// # Errors
    /// None for values made here; a library's fault would show as a component of the machine that failed.
    pub fn to_json(&self) -> crate::error::Result<String> {
        let mut value = serde_json::to_value(self)
            .map_err(|error| crate::error::Error::unfinished(format!("the report cannot be written: {error}")))?;
        if let Some(Percent(score)) = self.legacy_score {
            value["readiness"] = serde_json::json!({"score": score});
        }
        Ok(super::canonical::document(&value))
    }

    /// A measurement, of whatever area has one of that name.
    pub fn measurement(&self, name: &str) -> Option<u64> {
        self.readiness.as_ref().and_then(|readiness| readiness.measurement(name))
    }
}

impl Readiness {
    /// A measurement, of whatever area has one of that name.
    pub fn measurement(&self, name: &str) -> Option<u64> {
        measurement(&self.areas, name)
    }

    /// What a floor on the score is held against.
    pub fn observed(&self, exclude_latency: bool) -> Percent {
        if exclude_latency { self.score_without_latency } else { self.score }
    }
}

impl AreaReport {
    /// What a floor on this area is held against.
    pub fn observed(&self, exclude_latency: bool) -> Percent {
        let untimed = self.measurements.get(UNTIMED).filter(|_| exclude_latency);
        untimed.and_then(|value| u8::try_from(*value).ok()).map_or(self.score, |value| Percent(value.min(100)))
    }
}

/// A measurement, of whatever area has one of that name.
pub(crate) fn measurement(areas: &[AreaReport], name: &str) -> Option<u64> {
    areas.iter().find_map(|area| area.measurements.get(name).copied())
}

impl Profile {
    /// The fields of every version.
    pub const FIELDS: [&str; 11] = [
        "schema",
        "evaluator_version",
        "platform",
        "architecture",
        "client_capabilities",
        "attested_read_only",
        "skip_tools",
        "call_timeout_ms",
        "repeats",
        "lanes",
        "arguments_sha256",
    ];

    /// Whether scores measured so compare: all is equal, of the evaluator's version major and minor.
    pub fn compares_with(&self, other: &Self) -> bool {
        self.difference(other).is_none()
    }

    /// The first field, of [`FIELDS`](Self::FIELDS), for which scores measured so do not compare.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let equal = [
            self.schema == other.schema,
            self.evaluator_version.minor() == other.evaluator_version.minor(),
            self.platform == other.platform,
            self.architecture == other.architecture,
            self.client_capabilities == other.client_capabilities,
            self.attested_read_only == other.attested_read_only,
            self.skip_tools == other.skip_tools,
            self.call_timeout_ms == other.call_timeout_ms,
            self.repeats == other.repeats,
            self.lanes == other.lanes,
            self.arguments_sha256 == other.arguments_sha256,
        ];
        Self::FIELDS.into_iter().zip(equal).find_map(|(field, equal)| (!equal).then_some(field))
    }
}

impl Generator {
    /// This program.
    pub fn this() -> Self {
        Self { name: "mcpeval", version: Version(VERSION.to_owned()) }
    }
}
