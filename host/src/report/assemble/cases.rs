//! From one case's run to its entry in the document.

use std::collections::BTreeMap;

use super::super::canonical;
use super::super::document::{Case, Detail, Measured, PerTool};
use super::super::words::{
    BoundName, CaseId, Grammar as _, Hint, KindName, Label, Metric, Reason, Subject, Unit, Word,
};
use super::MEASUREMENT_LIMIT;
use crate::manifest;
use crate::outcome::{Ended, Measurement, NoVerdict, Reading, RunRecord, Verdict};
use crate::probes::Manifest;

/// The entry of a case, and how its component broke its contract, if so.
pub(super) fn entry(case: &manifest::Case, declared: &Manifest, record: &RunRecord) -> (Case, Option<String>) {
    match judged(case, declared, record) {
        Ok(entry) => (entry, None),
        Err(breach) => (errored(case, NoVerdict::ComponentFault), Some(breach)),
    }
}

fn blank(case: &manifest::Case) -> Case {
    Case {
        id: CaseId(case.id.clone()),
        probe: KindName(case.kind.clone()),
        tool: case.tool.as_deref().and_then(Label::new),
        passed: false,
        attempts: 0,
        first_failure: None,
        reason: None,
        hint: None,
        detail: None,
        measurements: BTreeMap::new(),
    }
}

/// A case without a verdict.
fn errored(case: &manifest::Case, label: NoVerdict) -> Case {
    Case { reason: Some(Reason(label.label().to_owned())), hint: Some(Hint(label.hint().to_owned())), ..blank(case) }
}

fn judged(case: &manifest::Case, declared: &Manifest, record: &RunRecord) -> Result<Case, String> {
    let (attempts, first_failure) = match record.ended {
        Ended::Stopped { reason, .. } => return Ok(errored(case, reason)),
        Ended::Finished { attempts, first_failure } => (attempts, first_failure),
    };
    let of = |verdict| record.findings.iter().find(|finding| finding.verdict == verdict);
    let measurements = measurements(declared, &record.measurements)?;
    if let Some(finding) = of(Verdict::Error) {
        let label = finding.reason.as_deref().and_then(NoVerdict::from_label);
        let label = label.ok_or("a finding without a verdict gives a reason that says something else")?;
        return Ok(Case { attempts, measurements, ..errored(case, label) });
    }
    let Some(finding) = of(Verdict::Fail) else {
        return Ok(Case { passed: true, attempts, measurements, ..blank(case) });
    };
    let reason = finding.reason.as_deref().unwrap_or_default();
    let hint = declared.hint(reason).ok_or("a failed finding gives a reason that is not declared")?;
    let bound = finding.bound.as_ref().map(|bound| {
        let name = BoundName::parse(&bound.name).ok_or("a bound has a name that cannot stand in a report")?;
        Ok::<_, String>(Detail { bound: name, limit: bound.limit, observed: bound.observed })
    });
    let first_failure = first_failure.filter(|number| *number > 0);
    if first_failure.is_some_and(|number| attempts > 0 && number > attempts) {
        return Err("it failed at a request that it did not make".to_owned());
    }
    Ok(Case {
        attempts,
        first_failure,
        reason: Some(Reason::parse(reason).ok_or("a reason cannot stand in a report")?),
        hint: Some(Hint::parse(hint).ok_or_else(|| format!("the hint of {reason} cannot stand in a report"))?),
        detail: bound.transpose()?,
        measurements,
        ..blank(case)
    })
}

fn measurements(declared: &Manifest, said: &[Measurement]) -> Result<BTreeMap<String, Measured>, String> {
    let mut values: BTreeMap<String, Measured> = BTreeMap::new();
    for measurement in said {
        let name = &measurement.metric;
        let metric = declared.metrics.iter().find(|metric| metric.name == *name);
        let metric = metric.ok_or("a measurement has a name that is not declared")?;
        Metric::parse(name).ok_or("a measurement has a name that cannot stand in a report")?;
        let twice = || format!("the measurement {name} is given twice");
        let Some(subject) = &measurement.subject else {
            let value = match &measurement.value {
                Reading::Number(value) => number(*value)?,
                Reading::Label(word) => Measured::Word(
                    Word::parse(word).ok_or_else(|| format!("a word of {name} cannot stand in a report"))?,
                ),
            };
            if values.insert(name.clone(), value).is_some() {
                return Err(twice());
            }
            continue;
        };
        let Reading::Number(value) = measurement.value else {
            return Err(format!("an entry of {name} is no number"));
        };
        Unit::parse(&metric.unit).ok_or_else(|| format!("the unit of {name} cannot stand in a report"))?;
        let value = match number(value)? {
            Measured::Whole(value) => value.into(),
            Measured::Number(value) => serde_json::Number::from_f64(value).ok_or("a number is not finite")?,
            Measured::Word(_) | Measured::PerTool(_) => return Err(format!("an entry of {name} is no number")),
        };
        let entry = PerTool { tool: shown(subject), unit: metric.unit.clone(), value };
        match values.entry(name.clone()).or_insert_with(|| Measured::PerTool(Vec::new())) {
            Measured::PerTool(list) => list.push(entry),
            _ => return Err(twice()),
        }
    }
    for value in values.values_mut() {
        if let Measured::PerTool(list) = value {
            let size = |entry: &PerTool| entry.value.as_f64().unwrap_or_default();
            list.sort_by(|left, right| size(right).total_cmp(&size(left)).then_with(|| left.tool.cmp(&right.tool)));
        }
    }
    Ok(values)
}

/// A tool or a prompt by its name; a resource, whose address may tell much, by its digest.
fn shown(subject: &str) -> Subject {
    Subject::new(subject).unwrap_or_else(|| {
        let digest = canonical::digest(subject.as_bytes()).to_string();
        Subject(format!("resource:{}", digest.get(..16).unwrap_or_default()))
    })
}

fn number(value: f64) -> Result<Measured, String> {
    if !value.is_finite() {
        return Err("a measurement is not finite".to_owned());
    }
    if value.fract() == 0.0 && (0.0..MEASUREMENT_LIMIT).contains(&value) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and within 2^53")]
        return Ok(Measured::Whole(value as u64));
    }
    Ok(Measured::Number(value))
}
