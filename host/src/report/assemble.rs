//! From what a run said to the report document. Share-safety is enforced here: only labels that a component's
//! manifest declares, subjects that the catalog lists, and numbers pass; anything else is a component's fault, and
//! nothing is dropped silently.

mod cases;

use std::collections::{BTreeMap, HashMap};

use super::contract::contract;
use super::document::{
    AreaName, AreaReport, Assessment, Badge, CheckId, FloorGate, Gate, Generator, Hex64, Hint, Identifier, Label,
    LostCheck, LostScore, NoVerdictLabel, PROFILE_SCHEMA, Partial, PartialTools, Percent, Profile, Readiness, Reason,
    Report, SCHEMA, Shortfall, StandardLabel, Subject, Surface, UNTIMED, VERSION, Version, measurement,
};
use crate::outcome::{AreaScore, Ended, Finding, NoVerdict, Reading, RunRecord, Verdict};
use crate::probes::{Digest, Manifest};
use crate::runner::{self, BatteryRun, Evaluation};
use crate::session::catalog::{Catalog, ToolClass};
use crate::standard::{AreaFold, Standard, rounded};

/// The measurement that says how many tools had a success.
const EXERCISED: &str = "exercised";
/// Whole numbers above this are not exact in every reader of JSON.
const MEASUREMENT_LIMIT: f64 = 9_007_199_254_740_992.0;

/// What the user asks of the scores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Floors {
    /// Least score.
    pub min_score: Option<u8>,
    /// Least score per area.
    pub min_areas: BTreeMap<String, u8>,
    /// Latency does not count towards the floors.
    pub exclude_latency: bool,
}

impl Floors {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.min_score.is_none() && self.min_areas.is_empty()
    }
}

/// A report, and what a person should know about how it came to be.
#[derive(Debug)]
pub struct Assembled {
    /// The document.
    pub report: Report,
    /// How components broke their contract; for stderr and the private log only.
    pub breaches: Vec<String>,
}

/// What a report is made of.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) standard: &'a Standard,
    pub(crate) catalog: Option<&'a Catalog>,
    pub(crate) runs: Vec<Said<'a>>,
    pub(crate) error: Option<NoVerdict>,
    pub(crate) callable: u32,
    pub(crate) profile: &'a runner::Profile,
    pub(crate) components: &'a BTreeMap<String, Digest>,
}

/// A lost check and where it stands: its catalog position, and its row in the manifest.
type Placed = ((usize, usize), LostCheck);

/// An area's own score and its part of the document.
type Scored<'a> = (&'a str, (AreaScore, AreaReport));

/// One component's run.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) areas: &'a [String],
    pub(crate) record: &'a RunRecord,
}

impl<'a> Facts<'a> {
    fn of(battery: &'a BatteryRun, evaluation: &'a Evaluation) -> Self {
        let said = |run: &'a runner::AreaRun| Said {
            manifest: &run.component.manifest,
            areas: &run.areas,
            record: &run.record,
        };
        Self {
            standard: &battery.standard,
            catalog: evaluation.catalog.as_ref(),
            runs: battery.runs.iter().map(said).collect(),
            error: battery.error,
            callable: battery.callable,
            profile: &battery.profile,
            components: &evaluation.components,
        }
    }
}

/// The report of a run, with the digest of its manifest if it had one.
pub fn report(evaluation: &Evaluation, server: Label, floors: &Floors, manifest: Option<Digest>) -> Assembled {
    let mut assembled = if let Some(battery) = &evaluation.battery {
        assemble(&Facts::of(battery, evaluation), server, floors)
    } else {
        let report = blank(server, evaluation.catalog.as_ref(), &evaluation.components);
        Assembled { report, breaches: Vec::new() }
    };
    let Assembled { report, breaches } = &mut assembled;
    report.manifest_sha256 = manifest.map(|digest| Hex64(digest.to_string()));
    if let Some(cases) = &evaluation.cases {
        for run in cases {
            let (case, breach) = cases::entry(&run.case, &run.component.manifest, &run.record);
            let broke = |breach| format!("the component {} broke its contract: {breach}", run.case.kind);
            breaches.extend(breach.map(broke));
            report.cases.push(case);
        }
        let passed = count(report.cases.iter().filter(|case| case.passed).count());
        report.gate = Some(Gate { passed, total: count(report.cases.len()) });
    }
    report.passed = report.exit_code() == 0;
    assembled
}

/// A report of which nothing is judged yet.
fn blank(server: Label, catalog: Option<&Catalog>, components: &BTreeMap<String, Digest>) -> Report {
    Report {
        schema: SCHEMA,
        generator: Generator::this(),
        server,
        manifest_sha256: None,
        passed: false,
        gate: None,
        readiness: None,
        readiness_error: None,
        readiness_partial: None,
        readiness_gate: None,
        catalog: catalog.filter(|catalog| catalog.is_complete()).map(contract),
        components: components.iter().map(|(name, digest)| (name.clone(), Hex64(digest.to_string()))).collect(),
        cases: Vec::new(),
        legacy_score: None,
    }
}

pub(crate) fn assemble(facts: &Facts<'_>, server: Label, floors: &Floors) -> Assembled {
    let subjects = facts.catalog.map(positions).unwrap_or_default();
    let mut breaches = Vec::new();
    let mut faults = facts.error.into_iter().collect::<Vec<_>>();
    let mut finished: BTreeMap<&str, (AreaScore, AreaReport)> = BTreeMap::new();
    for said in &facts.runs {
        match said.areas(&subjects) {
            Ok(areas) => finished.extend(areas),
            Err(breach) => {
                breaches.push(format!("the component {} broke its contract: {breach}", said.manifest.kind));
                faults.push(NoVerdict::ComponentFault);
            }
        }
        faults.extend(said.no_verdict());
    }
    let scores = finished.iter().map(|(name, (score, _))| ((*name).to_owned(), *score)).collect();
    let fold = facts.standard.fold(&scores);
    let areas: Vec<AreaReport> = facts
        .standard
        .areas
        .iter()
        .filter_map(|area| {
            let (_, mut report) = finished.remove(area.name.as_str())?;
            report.weight = area.weight;
            Some(report)
        })
        .collect();
    // An exhausted budget outranks all else; otherwise the first fault is the cause of the later ones.
    let error = faults
        .iter()
        .find(|fault| **fault == NoVerdict::BudgetExceeded)
        .or(faults.first())
        .copied()
        .or_else(|| fold.is_none().then(|| missing(facts, &areas, &mut breaches)));

    let (readiness, partial) = match (error, fold) {
        (None, Some(fold)) => {
            let surface = surface(facts.catalog, measurement(&areas, EXERCISED));
            let readiness = Readiness {
                standard: StandardLabel(facts.standard.label.clone()),
                score: Percent(fold.score),
                score_without_latency: Percent(fold.untimed),
                badge: Badge::of(fold.score),
                attested_read_only: facts.profile.attested_read_only,
                surface,
                areas,
                measurement_profile: profile(facts.profile),
                assessment: Assessment {
                    scope: "read-only-structural",
                    semantic_correctness: "requires-reviewed-oracle",
                    tools_exercised: surface.exercised,
                    read_only_tools: surface.read_only,
                    writer_tools_excluded: surface.writers,
                },
            };
            (Some(readiness), None)
        }
        _ => (None, (!facts.runs.is_empty()).then(|| partial(facts, areas))),
    };
    let readiness_gate = (!floors.is_empty()).then(|| floor_gate(floors, readiness.as_ref()));
    let mut report = Report {
        readiness,
        readiness_error: error.map(NoVerdictLabel),
        readiness_partial: partial,
        readiness_gate,
        ..blank(server, facts.catalog, facts.components)
    };
    report.passed = report.exit_code() == 0;
    Assembled { report, breaches }
}

/// A component that ended well and did not score an area it was asked for has broken its contract.
fn missing(facts: &Facts<'_>, finished: &[AreaReport], breaches: &mut Vec<String>) -> NoVerdict {
    let absent = facts.standard.areas.iter().map(|area| area.name.as_str());
    for name in absent.filter(|name| !finished.iter().any(|area| area.name.as_str() == *name)) {
        breaches.push(format!("no component gave a score for the area {name}"));
    }
    NoVerdict::ComponentFault
}

/// Where each subject of the catalog first stands.
fn positions(catalog: &Catalog) -> HashMap<&str, usize> {
    let mut positions = HashMap::with_capacity(catalog.entries.len());
    for (position, entry) in catalog.entries.iter().enumerate() {
        positions.entry(entry.label.as_str()).or_insert(position);
    }
    positions
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

fn surface(catalog: Option<&Catalog>, exercised: Option<u64>) -> Surface {
    let entries = catalog.map(|catalog| catalog.entries.as_slice()).unwrap_or_default();
    let classes = || entries.iter().filter(|entry| !entry.repeated).map(|entry| entry.class);
    let invalid = count(classes().filter(|class| *class == ToolClass::Invalid).count());
    let writers = count(classes().filter(|class| *class == ToolClass::Writer).count());
    let tools = count(classes().count()).saturating_sub(invalid);
    Surface {
        tools,
        read_only: tools.saturating_sub(writers),
        writers,
        exercised: exercised.map_or(0, |exercised| u32::try_from(exercised).unwrap_or(u32::MAX)),
        invalid_entries: (invalid > 0).then_some(invalid),
    }
}

fn profile(chosen: &runner::Profile) -> Profile {
    let mut skip_tools: Vec<Label> = chosen.skip_tools.iter().filter_map(|name| Label::new(name)).collect();
    skip_tools.sort();
    skip_tools.dedup();
    Profile {
        schema: PROFILE_SCHEMA,
        evaluator_version: Version(VERSION.to_owned()),
        platform: Identifier(std::env::consts::OS.to_owned()),
        architecture: Identifier(std::env::consts::ARCH.to_owned()),
        client_capabilities: "none",
        attested_read_only: chosen.attested_read_only,
        skip_tools,
        call_timeout_ms: chosen.call_timeout_ms,
        repeats: chosen.repeats,
        lanes: chosen.lanes,
        arguments_sha256: chosen.arguments_sha256.map(|digest| Hex64(digest.to_string())),
    }
}

fn partial(facts: &Facts<'_>, areas: Vec<AreaReport>) -> Partial {
    let finished = facts.runs.iter().filter_map(|said| said.record.progress).map(|(finished, _)| finished).max();
    Partial {
        standard: StandardLabel(facts.standard.label.clone()),
        areas,
        tools: PartialTools { finished: finished.unwrap_or(0).min(facts.callable), total: facts.callable },
    }
}

/// The floors held against what was measured.
pub(super) fn floor_gate(floors: &Floors, readiness: Option<&Readiness>) -> FloorGate {
    let shortfalls = readiness.map(|readiness| {
        let score = floors.min_score.map(|floor| ("score", readiness.observed(floors.exclude_latency), floor));
        let areas = readiness.areas.iter().filter_map(|area| {
            let floor = floors.min_areas.get(area.name.as_str())?;
            Some((area.name.as_str(), area.observed(floors.exclude_latency), *floor))
        });
        let missed = score.into_iter().chain(areas).filter(|(_, observed, floor)| observed.0 < *floor);
        missed
            .map(|(subject, observed, floor)| Shortfall {
                subject: AreaName(subject.to_owned()),
                observed,
                floor: Percent(floor),
            })
            .collect::<Vec<_>>()
    });
    FloorGate {
        min_score: floors.min_score.map(Percent),
        min_areas: floors.min_areas.iter().map(|(area, floor)| (area.clone(), Percent(*floor))).collect(),
        exclude_latency: floors.exclude_latency,
        passed: shortfalls.as_ref().map(Vec::is_empty),
        shortfalls,
    }
}

impl<'a> Said<'a> {
    /// Why this run has no verdict: it stopped, or a judgement did.
    fn no_verdict(&self) -> Option<NoVerdict> {
        let errored = self.record.findings.iter().find(|finding| finding.verdict == Verdict::Error).map(|finding| {
            finding.reason.as_deref().and_then(NoVerdict::from_label).unwrap_or(NoVerdict::ComponentFault)
        });
        match &self.record.ended {
            Ended::Stopped { reason, .. } => Some(*reason),
            Ended::Finished { .. } => errored,
        }
    }

    /// The finished areas it was asked for, their weights still 0. What it says of declared areas that the standard
    /// does not hold is no part of the report.
    fn areas(&self, subjects: &HashMap<&str, usize>) -> Result<Vec<Scored<'a>>, String> {
        let declared = self.manifest.areas();
        if let Some(name) = self.record.areas.keys().find(|name| !declared.contains(&name.as_str())) {
            return Err(format!("a score for an area that it does not declare, of {} bytes", name.len()));
        }
        let mut lost = self.lost(subjects)?;
        let mut measured = self.measured()?;
        let mut areas = Vec::new();
        for name in self.areas {
            let Some(score) = self.record.areas.get(name) else { continue };
            let bounded = |value: f64| (0.0..=100.0).contains(&value);
            if !bounded(score.score) || !score.untimed.is_none_or(bounded) {
                return Err(format!("a score of the area {name} that is not from 0 to 100"));
            }
            let fold = AreaFold::from(*score);
            let mut measurements = measured.remove(name.as_str()).unwrap_or_default();
            if score.untimed.is_some() {
                measurements.insert(UNTIMED.to_owned(), fold.untimed.into());
            }
            let report = AreaReport {
                name: AreaName(name.clone()),
                weight: 0,
                score: Percent(fold.score),
                measurements,
                checks: lost.remove(name.as_str()).unwrap_or_default(),
            };
            areas.push((name.as_str(), (*score, report)));
        }
        Ok(areas)
    }

    /// The lost checks per area, each list by catalog position, then by the manifest's order of checks; what concerns
    /// no tool comes last.
    fn lost(&self, subjects: &HashMap<&str, usize>) -> Result<HashMap<&'a str, Vec<LostCheck>>, String> {
        let table: HashMap<&str, (usize, &'a str)> = self
            .manifest
            .checks
            .iter()
            .enumerate()
            .filter_map(|(row, check)| Some((check.id.as_str(), (row, check.area.as_deref()?))))
            .collect();
        let mut keyed: HashMap<&'a str, Vec<Placed>> = HashMap::new();
        for finding in &self.record.findings {
            let (row, area) = *table
                .get(finding.check.as_str())
                .ok_or_else(|| format!("a check that it does not declare, of {} bytes", finding.check.len()))?;
            let position = match finding.subject.as_deref() {
                Some(subject) => *subjects
                    .get(subject)
                    .ok_or_else(|| format!("a subject of {} that the catalog does not list", finding.check))?,
                None => usize::MAX,
            };
            let reason = self.reason(finding)?;
            if finding.verdict == Verdict::Fail {
                keyed.entry(area).or_default().push(((position, row), Self::lost_check(finding, reason)?));
            }
        }
        let sorted = |(area, mut checks): (&'a str, Vec<_>)| {
            checks.sort_by_key(|(key, _)| *key);
            (area, checks.into_iter().map(|(_, check)| check).collect())
        };
        Ok(keyed.into_iter().map(sorted).collect())
    }

    /// The declared reason of a finding and its hint; none for one that needs none.
    fn reason(&self, finding: &Finding) -> Result<Option<(&'a str, &'a str)>, String> {
        let Some(label) = finding.reason.as_deref() else {
            return match finding.verdict {
                Verdict::Fail | Verdict::Error => Err(format!("{} without a reason", finding.check)),
                Verdict::Pass | Verdict::Untested => Ok(None),
            };
        };
        let declared = self.manifest.reasons.iter().find(|reason| reason.label == label);
        match declared {
            Some(reason) if reason.checks.contains(&finding.check) => Ok(Some((&reason.label, &reason.hint))),
            Some(_) => Err(format!("a reason that it does not declare for {}", finding.check)),
            None if finding.verdict == Verdict::Error && NoVerdict::from_label(label).is_some() => Ok(None),
            None => Err(format!("a reason of {} that it does not declare", finding.check)),
        }
    }

    fn lost_check(finding: &Finding, reason: Option<(&str, &str)>) -> Result<LostCheck, String> {
        let (label, hint) = reason.ok_or_else(|| format!("{} without a reason", finding.check))?;
        let tool = match finding.subject.as_deref() {
            Some(subject) => {
                Some(Subject::new(subject).ok_or_else(|| format!("a subject of {} that is no label", finding.check))?)
            }
            None => None,
        };
        Ok(LostCheck {
            id: CheckId(finding.check.clone()),
            tool,
            score: LostScore(finding.score.unwrap_or(0).min(99)),
            observed: finding.observed,
            reason: Reason(label.to_owned()),
            hint: Hint(hint.to_owned()),
        })
    }

    /// The measurements per area, as whole numbers.
    fn measured(&self) -> Result<HashMap<&'a str, BTreeMap<String, u64>>, String> {
        let mut measured: HashMap<&'a str, BTreeMap<String, u64>> = HashMap::new();
        for reading in &self.record.measurements {
            let name = &reading.metric;
            let metric = self.manifest.metrics.iter().find(|metric| metric.name == *name);
            let metric =
                metric.ok_or_else(|| format!("a measurement that it does not declare, of {} bytes", name.len()))?;
            let area = metric.area.as_deref().ok_or_else(|| format!("the measurement {name} belongs to no area"))?;
            let value = match &reading.value {
                Reading::Number(value) if reading.subject.is_none() => whole(*value),
                _ => None,
            };
            let value = value.ok_or_else(|| format!("the measurement {name} is no single whole number"))?;
            if measured.entry(area).or_default().insert(name.clone(), value).is_some() {
                return Err(format!("the measurement {name} stands twice"));
            }
        }
        Ok(measured)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the limit, both are exact")]
fn whole(value: f64) -> Option<u64> {
    let value = rounded(value);
    (0.0..MEASUREMENT_LIMIT).contains(&value).then_some(value as u64)
}

#[cfg(test)]
mod tests;
