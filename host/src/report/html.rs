//! The report as one page: no script, no request, everything escaped by the template engine.

pub mod pairs;

use askama::Template;

use super::corpus::Place;
use super::document::{AreaReport, Case, CaseId, CaseResult, Measured, PerTool, Report, VERSION};
use super::render::{Options, Timings};
use super::view::{self, Band, Floor, Group, NOTE, SUBJECTS_SHOWN};
use crate::error::{Error, Result};

/// Passing cases that are shown without being asked for.
const OPEN: usize = 12;

/// The page.
///
/// # Errors
/// None for values made here; a library's fault would show as something that could not be completed.
pub fn render(report: &Report, options: &Options) -> Result<String> {
    page(&ReportPage::new(report, options))
}

fn page(page: &impl Template) -> Result<String> {
    page.render().map_err(|error| Error::unfinished(format!("the page cannot be written: {error}")))
}

/// A report, in the order in which it is read.
#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'a> {
    version: &'static str,
    report: &'a Report,
    /// How the run ended, if anything was gated or has no verdict.
    verdict: Option<CaseResult>,
    brief: bool,
    attention: Vec<CaseRow<'a>>,
    passing: Vec<CaseRow<'a>>,
    /// The hint of a readiness without verdict.
    unmeasured: Option<&'a str>,
    areas: Vec<Area<'a>>,
    lost: usize,
    floors: Vec<Floor<'a>>,
    floors_met: usize,
    tokens: Option<&'a Place>,
    rank: Option<&'a Place>,
    cost: Option<String>,
    measurements: Vec<(&'a str, &'a str, u64)>,
    lists: Vec<List<'a>>,
    timings: Option<&'a Timings>,
    note: String,
}

struct CaseRow<'a> {
    case: &'a Case,
    measured: Vec<(&'a str, String)>,
    hint: Option<&'a str>,
}

struct Area<'a> {
    report: &'a AreaReport,
    losses: Vec<Loss<'a>>,
}

struct Loss<'a> {
    group: Group<'a>,
    scores: String,
    observed: String,
    hint: Option<&'a str>,
}

/// A list that a case measured, one entry per tool.
struct List<'a> {
    case: &'a CaseId,
    name: &'a str,
    entries: &'a [PerTool],
    more: usize,
}

/// Gives each hint once.
struct Hints {
    brief: bool,
    said: std::collections::HashSet<String>,
}

impl Hints {
    fn first<'a>(&mut self, reason: &str, hint: &'a str) -> Option<&'a str> {
        (!self.brief && self.said.insert(reason.to_owned())).then_some(hint)
    }
}

impl<'a> ReportPage<'a> {
    fn new(report: &'a Report, options: &'a Options) -> Self {
        let mut hints = Hints { brief: options.brief, said: std::collections::HashSet::new() };
        let mut row = |case: &'a Case| CaseRow {
            case,
            measured: case
                .measurements
                .iter()
                .filter_map(|(name, value)| Some((name.as_str(), view::scalar(value)?)))
                .collect(),
            hint: case
                .reason
                .as_ref()
                .zip(case.hint.as_ref())
                .and_then(|(reason, hint)| hints.first(reason.as_str(), hint.as_str())),
        };
        let (passing, attention): (Vec<&Case>, Vec<&Case>) =
            report.cases.iter().partition(|case| case.result() == CaseResult::Pass);
        let attention = attention.into_iter().map(&mut row).collect();
        let passing = passing.into_iter().map(&mut row).collect();
        let unmeasured = report.readiness_error.and_then(|error| hints.first(error.0.label(), error.0.hint()));

        let mut sorted: Vec<&AreaReport> = view::areas(report).iter().collect();
        sorted.sort_by_key(|area| (area.score, std::cmp::Reverse(area.weight)));
        let areas: Vec<Area<'_>> = sorted
            .iter()
            .map(|area| Area {
                report: area,
                losses: view::groups([*area], options.full)
                    .into_iter()
                    .map(|group| Loss {
                        scores: view::listed(&group.scores),
                        observed: view::listed(&group.observed),
                        hint: hints.first(group.reason.as_str(), group.hint.as_str()),
                        group,
                    })
                    .collect(),
            })
            .collect();
        let floors = view::floors(report);
        let placement = options.placement.as_ref();
        let cost = options.price_per_mtok.and_then(|price| {
            let cost = view::cost(report, price)?;
            Some(format!("{} tokens, {:.6} USD at {price} USD per million", cost.tokens, cost.usd))
        });
        let in_order = view::areas(report).iter();
        Self {
            version: VERSION,
            report,
            verdict: view::verdict(report),
            brief: options.brief,
            attention,
            passing,
            unmeasured,
            lost: areas.iter().map(|area| area.report.checks.len()).sum(),
            areas,
            floors_met: floors.iter().filter(|floor| floor.result == CaseResult::Pass).count(),
            floors,
            tokens: placement.and_then(|placement| placement.tokens.as_ref()),
            rank: placement.and_then(|placement| placement.score.as_ref()),
            cost,
            measurements: in_order
                .flat_map(|area| {
                    area.measurements.iter().map(|(name, value)| (area.name.as_str(), name.as_str(), *value))
                })
                .collect(),
            lists: report.cases.iter().flat_map(|case| lists(case, options.full)).collect(),
            timings: options.timings.as_ref(),
            note: capitalised(NOTE),
        }
    }
}

fn lists(case: &Case, full: bool) -> impl Iterator<Item = List<'_>> {
    case.measurements.iter().filter_map(move |(name, value)| {
        let Measured::PerTool(entries) = value else { return None };
        let shown = if full { entries.as_slice() } else { entries.get(..SUBJECTS_SHOWN).unwrap_or(entries) };
        Some(List { case: &case.id, name, entries: shown, more: entries.len() - shown.len() })
    })
}

/// A sentence of its own.
fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).chain(['.']).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::assemble::{Floors, assemble};
    use super::super::document::Label;
    use super::super::markdown;
    use super::super::tests_support::Example;
    use super::*;
    use crate::outcome::NoVerdict;

    #[test]
    fn a_verdict_is_shown_of_what_was_gated_or_not_measured() {
        let report = |example: &Example, min_score: Option<u8>| {
            let floors = Floors { min_score, ..Floors::default() };
            assemble(&example.facts(), Label::new("shop").unwrap(), &floors).report
        };
        let shown = |report: &Report| {
            let options = Options::default();
            let page = render(report, &options).unwrap();
            let heading = markdown::render(report, &options).lines().next().unwrap_or_default().to_owned();
            let words = ["pass", "fail", "error"];
            let word = words.into_iter().find(|word| page.contains(&format!(r#"<span class="pill big {word}">"#)));
            let end = word.map(|word| format!(": {word}")).unwrap_or_default();
            assert_eq!(heading, format!("# mcpeval: `shop`{end}"));
            word
        };
        let good = Example::worked();
        assert_eq!(shown(&report(&good, None)), None, "nothing was asked for");
        assert_eq!(shown(&report(&good, Some(1))), Some("pass"));
        assert_eq!(shown(&report(&good, Some(100))), Some("fail"));
        let unfinished = Example { error: Some(NoVerdict::BudgetExceeded), ..Example::worked() };
        assert_eq!(shown(&report(&unfinished, None)), Some("error"));
    }
}
