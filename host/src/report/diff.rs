//! What changed between two reports of one server, `mcpeval.probe-diff/v2`.

mod catalog;
pub mod markdown;
pub mod text;

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::document::{
    Case, CaseId, CaseResult, Class, KindName, Label, Measured, Percent, Profile, Readiness, Reason, Report,
    StandardLabel,
};
use crate::error::{Error, Result};

/// The value of `schema`.
pub const SCHEMA: &str = "mcpeval.probe-diff/v2";

/// What changed between two reports.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Diff {
    /// Version of this document.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Both scores, and whether they compare.
    pub readiness: ReadinessDiff,
    /// Whether the score fell too far; null if that was not asked, or cannot be said.
    pub readiness_gate: Option<DropGate>,
    /// What callers of the server would notice.
    pub catalog: CatalogDiff,
    /// How many cases and ids of each kind.
    pub summary: Summary,
    /// The cases of both, in the baseline's order.
    pub cases: Vec<CaseDiff>,
    /// Cases of the baseline alone, in its order.
    pub removed: Vec<CaseId>,
    /// Cases of the current report alone, in its order.
    pub added: Vec<CaseId>,
}

/// Two scores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReadinessDiff {
    /// The earlier score; null if not measured.
    pub baseline: Option<Percent>,
    /// The later score; null if not measured.
    pub current: Option<Percent>,
    /// What the earlier was measured by.
    pub baseline_standard: Option<StandardLabel>,
    /// What the later was measured by.
    pub current_standard: Option<StandardLabel>,
    /// Both measured, by one standard, in the same way.
    pub comparable: bool,
    /// How the earlier was measured.
    pub baseline_profile: Option<Profile>,
    /// How the later was measured.
    pub current_profile: Option<Profile>,
}

/// Whether the score fell too far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DropGate {
    /// What is allowed.
    pub max_drop: Percent,
    /// The scores without latency are compared.
    pub exclude_latency: bool,
    /// By how much it fell; 0 where it rose.
    pub drop: Percent,
    /// It fell by no more than is allowed.
    pub passed: bool,
}

/// What callers of the server would notice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CatalogDiff {
    /// Both reports hold a catalog.
    pub comparable: bool,
    /// Worst first, then by tool and change.
    pub changes: Vec<CatalogChange>,
}

/// One change of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CatalogChange {
    /// The tool.
    pub tool: Label,
    /// What changed.
    pub change: Change,
    /// What it means for callers.
    pub severity: Severity,
    /// Parameters it concerns; 1 where it concerns none.
    #[schemars(range(min = 1))]
    pub count: u32,
    /// The class before, of a `class-changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Class>,
    /// The class after, of a `class-changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Class>,
}

/// Gives an enumeration of plain words its word for each member.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$member_doc:meta])* $member:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
        pub enum $name {
            $($(#[$member_doc])* #[serde(rename = $word)] $member,)*
        }

        impl $name {
            /// The word in documents.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$member => $word,)*
                }
            }
        }
    };
}

words! {
    /// What changed in the catalog.
    Change {
        /// A tool is gone.
        ToolRemoved = "tool-removed",
        /// A parameter is gone.
        ParameterRemoved = "parameter-removed",
        /// A parameter is required that was not.
        ParameterRequired = "parameter-required",
        /// A tool describes its results no more.
        OutputSchemaRemoved = "output-schema-removed",
        /// A tool says something else of its effects.
        ClassChanged = "class-changed",
        /// A parameter allows other values.
        ParameterChanged = "parameter-changed",
        /// A tool describes its results otherwise.
        OutputSchemaChanged = "output-schema-changed",
        /// A tool is new.
        ToolAdded = "tool-added",
        /// A parameter is new, and not required.
        ParameterAdded = "parameter-added",
        /// A parameter is required no more.
        ParameterOptional = "parameter-optional",
        /// A tool describes its results now.
        OutputSchemaAdded = "output-schema-added",
    }
}

words! {
    /// What a change means for callers, the worst first.
    Severity {
        /// Calls that worked may fail or do harm.
        Breaking = "breaking",
        /// A person should look.
        Review = "review",
        /// Calls that worked still do.
        Compatible = "compatible",
    }
}

words! {
    /// What became of a case.
    Verdict {
        /// Passed, and does not.
        Regressed = "regressed",
        /// Passes, and did not.
        Fixed = "fixed",
        /// Fails for another reason, or after an error.
        Changed = "changed",
        /// As before.
        Unchanged = "unchanged",
        /// Has no verdict now.
        Errored = "errored",
    }
}

/// How many of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Summary {
    /// Cases that regressed.
    pub regressed: u32,
    /// Cases that are fixed.
    pub fixed: u32,
    /// Cases that changed.
    pub changed: u32,
    /// Cases as before.
    pub unchanged: u32,
    /// Cases without a verdict now.
    pub errored: u32,
    /// Ids of the baseline alone.
    pub removed: u32,
    /// Ids of the current report alone.
    pub added: u32,
}

impl Summary {
    /// Each count with its word.
    pub fn counts(&self) -> [(&'static str, u32); 7] {
        [
            ("regressed", self.regressed),
            ("fixed", self.fixed),
            ("changed", self.changed),
            ("unchanged", self.unchanged),
            ("errored", self.errored),
            ("removed", self.removed),
            ("added", self.added),
        ]
    }
}

impl CaseDiff {
    /// What both reports measured, by name.
    pub fn measured(&self) -> impl Iterator<Item = (&'static str, &Pair)> {
        let measurements = &self.measurements;
        let named = [("total_tokens", &measurements.total_tokens), ("latency_ms", &measurements.latency_ms)];
        named.into_iter().filter_map(|(name, pair)| Some((name, pair.as_ref()?)))
    }

    /// The tone in which its verdict is shown.
    pub(super) fn tone(&self) -> &'static str {
        match self.verdict {
            Verdict::Fixed | Verdict::Unchanged => "pass",
            Verdict::Regressed => "fail",
            Verdict::Changed | Verdict::Errored => "error",
        }
    }
}

impl Severity {
    /// The tone in which it is shown.
    pub(super) const fn tone(self) -> &'static str {
        match self {
            Self::Breaking => "fail",
            Self::Review => "error",
            Self::Compatible => "plain",
        }
    }
}

/// A case of both reports.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CaseDiff {
    /// Its id.
    pub id: CaseId,
    /// Its kind.
    pub probe: KindName,
    /// What became of it.
    pub verdict: Verdict,
    /// Why it failed or errored; null if it passed.
    pub baseline_reason: Option<Reason>,
    /// Why it fails or errors; null if it passes.
    pub current_reason: Option<Reason>,
    /// What both measured.
    pub measurements: MeasurementDiff,
}

/// What both reports measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MeasurementDiff {
    /// Size of the catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<Pair>,
    /// Slowest call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Pair>,
}

/// A number then and now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Pair {
    /// Then.
    pub baseline: serde_json::Number,
    /// Now.
    pub current: serde_json::Number,
}

/// What is asked of a difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent options of the command line")]
pub struct Gates {
    /// No case may be `regressed`.
    pub regression: bool,
    /// No case may be `changed` or `regressed`.
    pub change: bool,
    /// No case of the baseline may be missing.
    pub removed: bool,
    /// No change of the catalog may be breaking.
    pub breaking: bool,
    /// The score may fall by no more than this, 0 to 100.
    pub max_drop: Option<u8>,
    /// The scores without latency are compared.
    pub exclude_latency: bool,
}

/// A difference, and the exit code that the gates make of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The document.
    pub diff: Diff,
    /// 0, 1 where a gate is missed, 3 where one cannot be decided.
    pub exit_code: u8,
}

/// Compares two reports of one server.
///
/// # Errors
/// A usage error if they are of different servers, or a gate asks for what a report does not hold.
pub fn compare(baseline: &Report, current: &Report, gates: Gates) -> Result<Judged> {
    if baseline.server != current.server {
        let (then, now) = (&baseline.server, &current.server);
        return Err(Error::usage(format!("the reports are of different servers, {then} and {now}")));
    }
    let readiness = compare_readiness(baseline, current);
    let catalog = catalog::compare(baseline.catalog.as_ref(), current.catalog.as_ref());
    if gates.breaking && !catalog.comparable {
        let which = if baseline.catalog.is_none() { "baseline" } else { "current report" };
        return Err(Error::usage(format!(
            "--fail-on-breaking: the {which} holds no catalog; use a report of a run that listed it to its end"
        )));
    }
    let readiness_gate = gates.max_drop.and_then(|max_drop| {
        let observed = |report: &Report| Some(report.readiness.as_ref()?.observed(gates.exclude_latency).0);
        let drop = observed(baseline)?.saturating_sub(observed(current)?);
        let gate = DropGate {
            max_drop: Percent(max_drop),
            exclude_latency: gates.exclude_latency,
            drop: Percent(drop),
            passed: drop <= max_drop,
        };
        readiness.comparable.then_some(gate)
    });
    let unmeasured = current.readiness_error.is_some() && baseline.readiness.is_some();
    if gates.max_drop.is_some() && readiness_gate.is_none() && !unmeasured {
        return Err(Error::usage(format!("--max-readiness-drop: {}", readiness.obstacle())));
    }

    let key = |case: &Case| (case.id.clone(), case.probe.clone());
    let now: HashMap<_, &Case> = current.cases.iter().map(|case| (key(case), case)).collect();
    let then: HashSet<_> = baseline.cases.iter().map(key).collect();
    let mut diff = Diff {
        schema: SCHEMA,
        readiness,
        readiness_gate,
        catalog,
        summary: Summary::default(),
        cases: Vec::new(),
        removed: Vec::new(),
        added: Vec::new(),
    };
    for case in &baseline.cases {
        match now.get(&key(case)) {
            Some(current) => diff.cases.push(compare_case(case, current)),
            None => diff.removed.push(case.id.clone()),
        }
    }
    diff.added.extend(current.cases.iter().filter(|case| !then.contains(&key(case))).map(|case| case.id.clone()));
    diff.summary = Summary::of(&diff);
    let exit_code = diff.exit_code(gates, unmeasured);
    Ok(Judged { diff, exit_code })
}

fn compare_readiness(baseline: &Report, current: &Report) -> ReadinessDiff {
    let (then, now) = (baseline.readiness.as_ref(), current.readiness.as_ref());
    let comparable = then.zip(now).is_some_and(|(then, now)| {
        then.standard == now.standard && then.measurement_profile.compares_with(&now.measurement_profile)
    });
    let score = |report: &Report| report.readiness.as_ref().map(|readiness| readiness.score).or(report.legacy_score);
    let standard = |readiness: Option<&Readiness>| readiness.map(|readiness| readiness.standard.clone());
    let profile = |readiness: Option<&Readiness>| readiness.map(|readiness| readiness.measurement_profile.clone());
    ReadinessDiff {
        baseline: score(baseline),
        current: score(current),
        baseline_standard: standard(then),
        current_standard: standard(now),
        comparable,
        baseline_profile: profile(then),
        current_profile: profile(now),
    }
}

fn compare_case(then: &Case, now: &Case) -> CaseDiff {
    use CaseResult::{Error, Fail, Pass};
    let verdict = match (then.result(), now.result()) {
        (_, Error) => Verdict::Errored,
        (Pass, Fail) => Verdict::Regressed,
        (Fail | Error, Pass) => Verdict::Fixed,
        (Pass, Pass) => Verdict::Unchanged,
        (Fail, Fail) if then.reason == now.reason => Verdict::Unchanged,
        (Fail | Error, Fail) => Verdict::Changed,
    };
    let pair = |name: &str| {
        let (baseline, current) = (number(then, name)?, number(now, name)?);
        Some(Pair { baseline, current })
    };
    CaseDiff {
        id: then.id.clone(),
        probe: then.probe.clone(),
        verdict,
        baseline_reason: then.reason.clone(),
        current_reason: now.reason.clone(),
        measurements: MeasurementDiff { total_tokens: pair("total_tokens"), latency_ms: pair("latency_ms") },
    }
}

fn number(case: &Case, name: &str) -> Option<serde_json::Number> {
    match case.measurements.get(name)? {
        Measured::Whole(value) => Some((*value).into()),
        Measured::Number(value) => serde_json::Number::from_f64(*value),
        Measured::Word(_) | Measured::PerTool(_) => None,
    }
}

impl Summary {
    fn of(diff: &Diff) -> Self {
        let count = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
        let cases = |verdict| count(diff.cases.iter().filter(|case| case.verdict == verdict).count());
        Self {
            regressed: cases(Verdict::Regressed),
            fixed: cases(Verdict::Fixed),
            changed: cases(Verdict::Changed),
            unchanged: cases(Verdict::Unchanged),
            errored: cases(Verdict::Errored),
            removed: count(diff.removed.len()),
            added: count(diff.added.len()),
        }
    }
}

impl ReadinessDiff {
    /// Why the scores do not compare, and what would.
    fn obstacle(&self) -> String {
        let unmeasured = [(self.baseline, "baseline"), (self.current, "current report")];
        if let Some((_, which)) = unmeasured.into_iter().find(|(score, _)| score.is_none()) {
            return format!("the {which} holds no score; use reports of runs that measured one");
        }
        if self.baseline_standard.is_none() || self.current_standard.is_none() {
            return "a legacy score compares with none of today; measure it again".to_owned();
        }
        if self.baseline_standard != self.current_standard {
            return "the scores are of different standards; measure both by one".to_owned();
        }
        let differing = self.baseline_profile.as_ref().zip(self.current_profile.as_ref());
        let field = differing.and_then(|(then, now)| then.difference(now)).unwrap_or("profiles");
        format!("the scores were measured with different {field}; measure both alike")
    }
}

impl Diff {
    /// 3 outranks 1: an errored case leaves the gates on cases undecided.
    fn exit_code(&self, gates: Gates, unmeasured: bool) -> u8 {
        let Summary { regressed, changed, errored, removed, .. } = self.summary;
        let gates_cases = gates.regression || gates.change || gates.removed;
        if (gates_cases && errored > 0) || (gates.max_drop.is_some() && unmeasured) {
            return 3;
        }
        let breaking = self.catalog.changes.iter().any(|change| change.severity == Severity::Breaking);
        let missed = (gates.regression && regressed > 0)
            || (gates.change && regressed + changed > 0)
            || (gates.removed && removed > 0)
            || (gates.breaking && breaking)
            || self.readiness_gate.is_some_and(|gate| !gate.passed);
        u8::from(missed)
    }

    /// The document, keys sorted, indented, with a newline at the end.
    ///
    /// # Errors
    /// None for values made here; a library's fault would show as a component of the machine that failed.
    pub fn to_json(&self) -> Result<String> {
        let value = serde_json::to_value(self)
            .map_err(|error| Error::unfinished(format!("the difference cannot be written: {error}")))?;
        Ok(super::canonical::document(&value))
    }
}

#[cfg(test)]
mod tests;
