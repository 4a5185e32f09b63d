//! From trials to areas: pure judgement.

use mcpeval_probe::{CallClass, ExchangeId, Finding};

use crate::manifest::{
    CONSISTENT, EXERCISED, INVALID_ARGUMENTS, LATENCY, NO_TOOLS, NONE_EXERCISED, OUTPUT_SCHEMA, SKIPPED, SUCCESS,
    UNTESTABLE, WAS_SKIPPED,
};
use crate::surface::Standing;
use crate::trial::{Call, REPEATS, Trial};

/// What is known of one tool of the surface when the calls are over.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub(crate) name: String,
    pub(crate) standing: Standing,
    /// Of a callable tool.
    pub(crate) trial: Option<Trial>,
    /// Of a skipped tool: it could have been called with invalid arguments.
    pub(crate) testable: bool,
}

/// One area: its score, the same with latency at its best, and its findings in order.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    pub(crate) score: f64,
    pub(crate) untimed: f64,
    pub(crate) findings: Vec<Finding>,
}

impl Area {
    fn lost(finding: Finding) -> Self {
        Self { score: 0.0, untimed: 0.0, findings: vec![finding] }
    }
}

#[expect(clippy::cast_precision_loss, reason = "tools are far fewer than 2^52")]
fn number(count: usize) -> f64 {
    count as f64
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * number(part) / number(whole)
}

fn evidence(trial: Option<&Trial>) -> impl Iterator<Item = ExchangeId> {
    trial.into_iter().flat_map(Trial::calls).filter_map(|call| call.exchange)
}

/// Why no valid call of a tool succeeded, in the words of coverage.
fn uncovered(tried: &Tried) -> &'static str {
    let trial = match (tried.standing, &tried.trial) {
        (Standing::Unattested, _) => return "coverage-unannotated",
        (Standing::Skipped, _) => return WAS_SKIPPED,
        (Standing::Callable, Some(trial)) if !trial.abandoned() => trial,
        (Standing::Callable, _) => return "coverage-call-failed",
    };
    if trial.valid().is_none() {
        "coverage-unsynthesizable"
    } else if trial.calls().iter().any(|call| call.class == CallClass::Rejected) {
        "coverage-rejected-arguments"
    } else {
        "coverage-call-failed"
    }
}

fn succeeded(tried: &Tried) -> bool {
    tried.trial.as_ref().is_some_and(|trial| trial.successes() > 0)
}

/// Tools with a success.
pub(crate) fn exercised(tried: &[Tried]) -> usize {
    tried.iter().filter(|tried| succeeded(tried)).count()
}

/// Area `coverage`.
pub(crate) fn coverage(tried: &[Tried]) -> Area {
    if tried.is_empty() {
        return Area::lost(Finding::fail(EXERCISED, NO_TOOLS));
    }
    let lost = |tried: &Tried| {
        Finding::fail(EXERCISED, uncovered(tried)).subject(&tried.name).evidence(evidence(tried.trial.as_ref()))
    };
    let score = percent(exercised(tried), tried.len());
    Area { score, untimed: score, findings: tried.iter().filter(|tried| !succeeded(tried)).map(lost).collect() }
}

/// Area `error-honesty`.
pub(crate) fn error_honesty(tried: &[Tried]) -> Area {
    let (mut judged, mut honest) = (0, 0);
    let mut findings = Vec::new();
    for tried in tried {
        if tried.standing == Standing::Skipped && tried.testable {
            judged += 1;
            findings.push(Finding::fail(INVALID_ARGUMENTS, WAS_SKIPPED).subject(&tried.name));
        }
        let Some(honesty) = tried.trial.as_ref().and_then(Trial::honesty) else { continue };
        judged += 1;
        match honesty.lost {
            None => honest += 1,
            Some(reason) => findings.push(
                Finding::fail(INVALID_ARGUMENTS, reason)
                    .subject(&tried.name)
                    .evidence(honesty.evidence.iter().copied()),
            ),
        }
    }
    if judged == 0 {
        let callable = tried.iter().any(|tried| tried.standing == Standing::Callable);
        return Area::lost(Finding::fail(UNTESTABLE, if callable { "honesty-untestable" } else { NO_TOOLS }));
    }
    let score = percent(honest, judged);
    Area { score, untimed: score, findings }
}

/// Points for a median latency in whole milliseconds.
fn latency_points(millis: u32) -> f64 {
    match millis {
        0..=100 => 100.0,
        101..=300 => 80.0,
        301..=1_000 => 50.0,
        1_001..=3_000 => 20.0,
        _ => 0.0,
    }
}

/// The median; of two the larger.
fn median(mut millis: Vec<u32>) -> Option<u32> {
    millis.sort_unstable();
    millis.get(millis.len() / 2).copied()
}

/// How reliable one tool is that was exercised.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Conduct {
    successes: usize,
    consistent: bool,
    latency: f64,
    /// Of a tool that declares an output schema and had a success.
    well_formed: Option<bool>,
}

impl Conduct {
    /// `None` unless a valid call was answered and not rejected.
    fn of(trial: &Trial) -> Option<Self> {
        let calls = trial.calls();
        let answered = |call: &Call| call.class.is_structured() && call.class != CallClass::Rejected;
        if !calls.iter().any(answered) {
            return None;
        }
        let first = calls.first().map(|call| call.class);
        let successes = trial.successes();
        let structured = calls.iter().filter(|call| call.class.is_structured()).map(|call| call.millis);
        Some(Self {
            successes,
            consistent: calls.len() == REPEATS && calls.iter().all(|call| Some(call.class) == first),
            latency: median(structured.collect()).map_or(0.0, latency_points),
            well_formed: (trial.has_output_schema() && successes > 0)
                .then(|| calls.iter().all(|call| call.well_formed)),
        })
    }

    fn score(self, latency: f64) -> f64 {
        let points = |holds: bool| if holds { 100.0 } else { 0.0 };
        let parts = [Some(points(self.consistent)), Some(latency), self.well_formed.map(points)];
        let counted = parts.iter().flatten();
        let (sum, count) = counted.fold((0.0, 0.0), |(sum, count), part| (sum + part, count + 1.0));
        number(self.successes) / number(REPEATS) * sum / count
    }

    fn findings(self, tried: &Tried) -> impl Iterator<Item = Finding> {
        let partly = percent(self.successes, REPEATS);
        let successes = u32::try_from(self.successes).unwrap_or(u32::MAX);
        let lost = [
            (self.successes < REPEATS)
                .then(|| Finding::fail(SUCCESS, "reliability-call-failed").partial(partly).observed(successes)),
            (!self.consistent).then(|| Finding::fail(CONSISTENT, "reliability-inconsistent")),
            (self.latency < 100.0).then(|| Finding::fail(LATENCY, "reliability-slow").partial(self.latency)),
            (self.well_formed == Some(false)).then(|| Finding::fail(OUTPUT_SCHEMA, "reliability-output-schema-broken")),
        ];
        lost.into_iter().flatten().map(|finding| finding.subject(&tried.name).evidence(evidence(tried.trial.as_ref())))
    }
}

/// What one of the two steps after the trials came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strain {
    pub(crate) check: &'static str,
    pub(crate) subject: Option<String>,
    /// The reason of the loss.
    pub(crate) lost: Option<&'static str>,
    pub(crate) evidence: Vec<ExchangeId>,
}

/// Area `reliability`: a mean over the tools of the surface and the strains.
pub(crate) fn reliability(tried: &[Tried], strains: &[Strain]) -> Area {
    if tried.is_empty() {
        return Area::lost(Finding::fail(NONE_EXERCISED, NO_TOOLS));
    }
    let (mut score, mut untimed) = (0.0, 0.0);
    let mut findings = Vec::new();
    for tried in tried {
        if let Some(conduct) = tried.trial.as_ref().and_then(Conduct::of) {
            score += conduct.score(conduct.latency);
            untimed += conduct.score(100.0);
            findings.extend(conduct.findings(tried));
        } else if tried.standing == Standing::Skipped {
            findings.push(Finding::fail(SKIPPED, WAS_SKIPPED).subject(&tried.name));
        } else {
            findings.push(
                Finding::fail(NONE_EXERCISED, uncovered(tried))
                    .subject(&tried.name)
                    .evidence(evidence(tried.trial.as_ref())),
            );
        }
    }
    for strain in strains {
        let points = if strain.lost.is_some() { 0.0 } else { 100.0 };
        score += points;
        untimed += points;
        let finding = match strain.lost {
            Some(reason) => Finding::fail(strain.check, reason),
            None => Finding::pass(strain.check),
        };
        let finding = Finding { subject: strain.subject.clone(), ..finding };
        findings.push(finding.evidence(strain.evidence.iter().copied()));
    }
    let entries = number(tried.len() + strains.len());
    Area { score: score / entries, untimed: untimed / entries, findings }
}

/// Valid calls by outcome, and tools that were not exercised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) successes: u32,
    pub(crate) tool_errors: u32,
    pub(crate) rejected: u32,
    pub(crate) rpc_errors: u32,
    pub(crate) transport: u32,
    pub(crate) untested: u32,
}

pub(crate) fn counters(tried: &[Tried]) -> Counters {
    let mut counters = Counters::default();
    for tried in tried {
        let trial = tried.trial.as_ref();
        for call in trial.into_iter().flat_map(Trial::calls) {
            *match call.class {
                CallClass::Success => &mut counters.successes,
                CallClass::ToolError => &mut counters.tool_errors,
                CallClass::Rejected => &mut counters.rejected,
                CallClass::RpcError => &mut counters.rpc_errors,
                CallClass::Transport => &mut counters.transport,
            } += 1;
        }
        let lost = trial.and_then(Conduct::of).is_none() && tried.standing != Standing::Skipped;
        counters.untested += u32::from(lost);
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_has_bands() {
        let points =
            [0, 100, 101, 300, 301, 1_000, 1_001, 3_000, 3_001].map(|millis| latency_points(millis).to_string());
        assert_eq!(points, ["100", "100", "80", "80", "50", "50", "20", "20", "0"]);
    }

    #[test]
    fn the_median_of_two_is_the_larger() {
        assert_eq!([vec![], vec![7], vec![9, 4], vec![9, 1, 5]].map(median), [None, Some(7), Some(9), Some(5)]);
    }

    #[test]
    fn conduct_is_weighed_by_successes() {
        let conduct = Conduct { successes: 3, consistent: true, latency: 80.0, well_formed: Some(true) };
        assert!((conduct.score(80.0) - 93.333).abs() < 0.001);
        let conduct = Conduct { successes: 2, consistent: false, latency: 100.0, well_formed: None };
        assert!((conduct.score(100.0) - 33.333).abs() < 0.001);
        let conduct = Conduct { successes: 3, consistent: true, latency: 100.0, well_formed: Some(false) };
        assert!((conduct.score(100.0) - 66.666).abs() < 0.001);
    }
}
