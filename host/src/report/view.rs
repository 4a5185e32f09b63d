//! What renderings show alike: the words for a verdict, losses in groups, floors, what the catalog costs.

use std::collections::HashMap;

use super::document::{
    AreaReport, CATALOG_TOKENS, CaseResult, CheckId, Hint, LostCheck, Measured, Percent, Reason, Report, Subject,
    measurement,
};

/// Subjects shown of one group of losses, unless all are asked for.
pub const SUBJECTS_SHOWN: usize = 8;
/// How far every verdict on readiness goes.
pub const NOTE: &str = "these checks are structural; semantic correctness needs a reviewed oracle";
/// The best band of scores begins here, and its badge is green.
const GOOD: u8 = 80;
/// The band below it begins here, and its badge is yellow.
const FAIR: u8 = 50;

/// How a run ended, as its exit code says.
pub fn result(report: &Report) -> CaseResult {
    match report.exit_code() {
        0 => CaseResult::Pass,
        1 => CaseResult::Fail,
        _ => CaseResult::Error,
    }
}

/// How a run ended, to be shown as its verdict; none of a run that asked for nothing, neither cases nor floors, and was
/// measured: there `pass` would praise any score.
pub fn verdict(report: &Report) -> Option<CaseResult> {
    let result = result(report);
    let is_gated = report.gate.is_some() || !report.cases.is_empty() || report.readiness_gate.is_some();
    (is_gated || result != CaseResult::Pass).then_some(result)
}

/// The band of a score, as badges colour it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Band {
    /// 80 and more.
    Good,
    /// 50 and more.
    Fair,
    /// Less.
    Poor,
}

impl From<Percent> for Band {
    fn from(score: Percent) -> Self {
        match score.0 {
            GOOD.. => Self::Good,
            FAIR.. => Self::Fair,
            _ => Self::Poor,
        }
    }
}

impl Band {
    /// A word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Poor => "poor",
        }
    }
}

/// Losses of the same check and reason.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// The check.
    pub check: &'a CheckId,
    /// Why it is lost.
    pub reason: &'a Reason,
    /// What to change.
    pub hint: &'a Hint,
    /// How many times it is lost.
    pub count: usize,
    /// The scores, of a single loss or when all are asked for.
    pub scores: Vec<u8>,
    /// What was counted, when every loss shown by its score has a count.
    pub observed: Vec<u32>,
    /// The tools that are shown.
    pub subjects: Vec<&'a str>,
    /// How many more there are.
    pub more: usize,
}

impl<'a> Group<'a> {
    fn of(checks: &[&'a LostCheck], full: bool) -> Option<Self> {
        let first = *checks.first()?;
        let mut subjects: Vec<&str> =
            checks.iter().filter_map(|check| check.tool.as_ref()).map(Subject::as_str).collect();
        let shown = if full { subjects.len() } else { subjects.len().min(SUBJECTS_SHOWN) };
        let more = subjects.len() - shown;
        subjects.truncate(shown);
        let detailed = if full || checks.len() == 1 { checks } else { &[] };
        let observed: Vec<u32> = detailed.iter().filter_map(|check| check.observed).collect();
        Some(Self {
            check: &first.id,
            reason: &first.reason,
            hint: &first.hint,
            count: checks.len(),
            scores: detailed.iter().map(|check| check.score.0).collect(),
            observed: if observed.len() == detailed.len() { observed } else { Vec::new() },
            subjects,
            more,
        })
    }
}

/// The groups of losses, in the order of their first; all subjects and scores of each, if `full`.
pub fn groups<'a>(areas: impl IntoIterator<Item = &'a AreaReport>, full: bool) -> Vec<Group<'a>> {
    let mut places = HashMap::new();
    let mut groups: Vec<Vec<&LostCheck>> = Vec::new();
    for check in areas.into_iter().flat_map(|area| &area.checks) {
        let place = *places.entry((check.id.as_str(), check.reason.as_str())).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(check),
            None => groups.push(vec![check]),
        }
    }
    groups.iter().filter_map(|group| Group::of(group, full)).collect()
}

/// The areas that have a score, of a finished battery or not.
pub fn areas(report: &Report) -> &[AreaReport] {
    match (&report.readiness, &report.readiness_partial) {
        (Some(readiness), _) => &readiness.areas,
        (None, Some(partial)) => &partial.areas,
        (None, None) => &[],
    }
}

/// A floor and what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor<'a> {
    /// `score`, or an area.
    pub subject: &'a str,
    /// None when nothing was measured.
    pub observed: Option<Percent>,
    /// What was asked for.
    pub floor: Percent,
    /// Whether it is met.
    pub result: CaseResult,
}

/// The floors of a report, the score's first.
pub fn floors(report: &Report) -> Vec<Floor<'_>> {
    let Some(gate) = &report.readiness_gate else { return Vec::new() };
    let readiness = report.readiness.as_ref();
    let score = gate
        .min_score
        .map(|floor| ("score", readiness.map(|readiness| readiness.observed(gate.exclude_latency)), floor));
    let areas = gate.min_areas.iter().map(|(name, floor)| {
        let area = readiness.and_then(|readiness| readiness.areas.iter().find(|area| area.name.as_str() == name));
        (name.as_str(), area.map(|area| area.observed(gate.exclude_latency)), *floor)
    });
    let judged = |(subject, observed, floor): (_, Option<Percent>, _)| {
        let result = match observed {
            Some(observed) if observed >= floor => CaseResult::Pass,
            Some(_) => CaseResult::Fail,
            None => CaseResult::Error,
        };
        Floor { subject, observed, floor, result }
    };
    score.into_iter().chain(areas).map(judged).collect()
}

/// What one reading of the catalog costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Its size.
    pub tokens: u64,
    /// US dollars.
    pub usd: f64,
}

/// What the catalog costs at a price per million tokens, if its size was measured.
pub fn cost(report: &Report, price_per_mtok: f64) -> Option<Cost> {
    let tokens = measurement(areas(report), CATALOG_TOKENS)?;
    #[expect(clippy::cast_precision_loss, reason = "a count of tokens is far below 2^52")]
    let usd = tokens as f64 * price_per_mtok / 1e6;
    Some(Cost { tokens, usd })
}

/// Reasons and their hints, each once: of cases, of a readiness without verdict, of losses.
pub fn hints(report: &Report) -> Vec<(&str, &str)> {
    let cases =
        report.cases.iter().filter_map(|case| Some((case.reason.as_ref()?.as_str(), case.hint.as_ref()?.as_str())));
    let readiness = report.readiness_error.map(|error| (error.0.label(), error.0.hint()));
    let losses = areas(report).iter().flat_map(|area| &area.checks);
    let losses = losses.map(|check| (check.reason.as_str(), check.hint.as_str()));
    let mut seen = std::collections::HashSet::new();
    cases.chain(readiness).chain(losses).filter(|(reason, _)| seen.insert(*reason)).collect()
}

/// A measured value as text; none for a list.
pub fn scalar(value: &Measured) -> Option<String> {
    match value {
        Measured::Whole(value) => Some(value.to_string()),
        Measured::Number(value) => Some(value.to_string()),
        Measured::Word(word) => Some(word.to_string()),
        Measured::PerTool(_) => None,
    }
}

/// Numbers as text.
pub fn listed(numbers: &[impl ToString]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<String>>().join(",")
}
