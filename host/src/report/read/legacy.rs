//! `mcpeval.probe-report/v1`: cases, and a score that is the part of them that passed.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::document::{
    Case, CaseId, Detail, EARLIER_SCHEMA, Gate, Generator, Hex64, Hint, KindName, Label, Measured, Metric, Percent,
    Reason, Report, Version,
};
use super::{Vocabulary, fields};

/// What a report is about that does not say so.
const UNNAMED: &str = "unknown";

#[derive(Deserialize)]
pub(super) struct Document {
    server: Option<Label>,
    generator: Option<Generator>,
    manifest_sha256: Option<Hex64>,
    readiness: Option<Score>,
    cases: Vec<Entry>,
}

#[derive(Deserialize)]
struct Score {
    score: Option<Percent>,
}

#[derive(Deserialize)]
struct Entry {
    id: CaseId,
    probe: KindName,
    tool: Option<Label>,
    #[serde(default)]
    attempts: u32,
    #[serde(default, deserialize_with = "fields::optional_positive")]
    first_failure: Option<u32>,
    reason: Option<Reason>,
    hint: Option<Hint>,
    detail: Option<Detail>,
    #[serde(default, deserialize_with = "fields::named::<Metric, _, _>")]
    measurements: BTreeMap<String, Measured>,
}

impl Document {
    /// The same as far as today's document can hold it; what it does not say follows from its cases.
    pub(super) fn into_report(self, vocabulary: &Vocabulary<'_>) -> Report {
        let cases: Vec<Case> = self.cases.into_iter().map(|entry| entry.into_case(vocabulary)).collect();
        let count = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
        let passed = count(cases.iter().filter(|case| case.passed).count());
        let mut report = Report {
            schema: EARLIER_SCHEMA,
            generator: self.generator.unwrap_or(Generator { name: "mcpeval", version: Version("0.0.0".to_owned()) }),
            server: self.server.unwrap_or_else(|| Label(UNNAMED.to_owned())),
            manifest_sha256: self.manifest_sha256,
            passed: false,
            gate: (!cases.is_empty()).then_some(Gate { passed, total: count(cases.len()) }),
            readiness: None,
            readiness_error: None,
            readiness_partial: None,
            readiness_gate: None,
            catalog: None,
            components: BTreeMap::new(),
            cases,
            legacy_score: self.readiness.and_then(|readiness| readiness.score),
        };
        report.passed = report.exit_code() == 0;
        report
    }
}

impl Entry {
    fn into_case(self, vocabulary: &Vocabulary<'_>) -> Case {
        let hint =
            |reason: &Reason| vocabulary.hint(self.probe.as_str(), reason.as_str()).map(|hint| Hint(hint.to_owned()));
        Case {
            hint: self.hint.clone().or_else(|| self.reason.as_ref().and_then(hint)),
            passed: self.reason.is_none(),
            id: self.id,
            probe: self.probe,
            tool: self.tool,
            attempts: self.attempts,
            first_failure: self.first_failure,
            reason: self.reason,
            detail: self.detail,
            measurements: self.measurements,
        }
    }
}
