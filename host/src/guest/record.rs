//! What a run has submitted so far. Everything is checked against the manifest, the catalog and the transcript when it is
//! given; what breaks the contract ends the run.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::outcome::{AreaScore, Ended, Finding, Measurement, NoVerdict, Reading, RunRecord, Verdict};
use crate::probes::Manifest;
use crate::transcript::Transcript;

use super::limits;

/// How far beyond 0 to 100 a score may lie through rounding.
const SCORE_TOLERANCE: f64 = 1e-6;

/// Collects one run.
#[derive(Debug)]
pub(super) struct Recorder {
    manifest: Arc<Manifest>,
    bounds: HashSet<String>,
    subjects: Arc<HashSet<String>>,
    listed: HashSet<String>,
    findings: Vec<Finding>,
    measurements: Vec<Measurement>,
    areas: BTreeMap<String, AreaScore>,
    progress: Option<(u32, u32)>,
}

impl Recorder {
    pub(super) fn new(manifest: Arc<Manifest>, subjects: Arc<HashSet<String>>) -> Self {
        let schema: serde_json::Value = serde_json::from_str(&manifest.config_schema).unwrap_or_default();
        let mut bounds = HashSet::new();
        collect_properties(&schema, &mut bounds);
        Self {
            manifest,
            bounds,
            subjects,
            listed: HashSet::new(),
            findings: Vec::new(),
            measurements: Vec::new(),
            areas: BTreeMap::new(),
            progress: None,
        }
    }

    /// A prompt or resource that a list reply of this run held.
    pub(super) fn list(&mut self, subject: String) {
        if self.listed.len() < limits::SUBJECTS {
            self.listed.insert(subject);
        }
    }

    fn knows(&self, subject: &str) -> bool {
        self.subjects.contains(subject) || self.listed.contains(subject)
    }

    pub(super) fn submit(&mut self, finding: Finding, transcript: &Transcript) -> Result<(), String> {
        let declared = self.manifest.checks.iter().any(|check| check.id == finding.check);
        if !declared {
            return Err("a finding names a check that the manifest does not declare".into());
        }
        if finding.subject.as_deref().is_some_and(|subject| !self.knows(subject)) {
            return Err(format!("a finding of {} names a subject that no listing held", finding.check));
        }
        let is_host_label = finding.reason.as_deref().and_then(NoVerdict::from_label).is_some();
        let reason_holds = match (&finding.reason, finding.verdict) {
            (None, Verdict::Fail) => false,
            (None, _) => true,
            (Some(_), Verdict::Error) if is_host_label => true,
            (Some(label), _) => self
                .manifest
                .reasons
                .iter()
                .any(|reason| reason.label == *label && reason.checks.contains(&finding.check)),
        };
        if !reason_holds {
            return Err(format!("a finding of {} gives no reason that the manifest declares for it", finding.check));
        }
        if finding.score.is_some_and(|score| score > 100) {
            return Err(format!("a finding of {} has a score above 100", finding.check));
        }
        if finding.bound.as_ref().is_some_and(|bound| !self.bounds.contains(&bound.name)) {
            return Err(format!("a finding of {} names a bound that the config schema does not have", finding.check));
        }
        if finding.evidence.len() > limits::EVIDENCE {
            return Err(format!("a finding of {} cites more than {} exchanges", finding.check, limits::EVIDENCE));
        }
        if finding.evidence.iter().any(|exchange| !transcript.contains(*exchange)) {
            return Err(format!("a finding of {} cites an exchange that never happened", finding.check));
        }
        if self.findings.len() >= limits::FINDINGS {
            return Err(format!("more than {} findings", limits::FINDINGS));
        }
        self.findings.push(finding);
        Ok(())
    }

    pub(super) fn measure(&mut self, measurement: Measurement) -> Result<(), String> {
        let metric = self.manifest.metrics.iter().find(|metric| metric.name == measurement.metric);
        let Some(metric) = metric else {
            return Err("a measurement names a metric that the manifest does not declare".into());
        };
        let fits = match &measurement.value {
            Reading::Number(value) => metric.labels.is_empty() && value.is_finite(),
            Reading::Label(word) => metric.labels.contains(word),
        };
        if !fits {
            return Err(format!("a measurement of {} is neither a finite number nor a declared word", metric.name));
        }
        if measurement.subject.as_deref().is_some_and(|subject| !self.knows(subject)) {
            return Err(format!("a measurement of {} names a subject that no listing held", metric.name));
        }
        if self.measurements.len() >= limits::MEASUREMENTS {
            return Err(format!("more than {} measurements", limits::MEASUREMENTS));
        }
        self.measurements.push(measurement);
        Ok(())
    }

    pub(super) fn score(&mut self, area: String, score: AreaScore) -> Result<(), String> {
        let declared = self.manifest.checks.iter().any(|check| check.area.as_deref() == Some(area.as_str()));
        if !declared {
            return Err("a score names an area that the manifest does not declare".into());
        }
        let in_range = |value: f64| (-SCORE_TOLERANCE..=100.0 + SCORE_TOLERANCE).contains(&value);
        if !in_range(score.score) || !score.untimed.is_none_or(in_range) {
            return Err(format!("the score of {area} is not within 0 to 100"));
        }
        if self.areas.contains_key(&area) {
            return Err(format!("the area {area} was scored twice"));
        }
        self.areas.insert(area, score);
        Ok(())
    }

    pub(super) fn progress(&mut self, finished: u32, total: u32) {
        self.progress = Some((finished, total));
    }

    pub(super) fn finish(self, ended: Ended) -> RunRecord {
        RunRecord {
            findings: self.findings,
            measurements: self.measurements,
            areas: self.areas,
            progress: self.progress,
            ended,
        }
    }
}

/// The names of all properties in a schema, those of the objects inside included: a bound may stand in one.
fn collect_properties(schema: &serde_json::Value, names: &mut HashSet<String>) {
    match schema {
        serde_json::Value::Object(members) => {
            if let Some(serde_json::Value::Object(properties)) = members.get("properties") {
                names.extend(properties.keys().cloned());
            }
            members.values().for_each(|inner| collect_properties(inner, names));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|inner| collect_properties(inner, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_may_stand_in_an_object_inside() {
        let steps = serde_json::json!({"items": {"properties": {"max_latency_ms": {"type": "integer"}}}});
        let mut names = HashSet::new();
        collect_properties(&serde_json::json!({"properties": {"steps": steps}, "required": ["tool"]}), &mut names);
        assert_eq!(names, HashSet::from(["steps".to_owned(), "max_latency_ms".to_owned()]));
    }
}
