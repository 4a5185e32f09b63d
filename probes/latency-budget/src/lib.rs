//! Kind `latency-budget`: every call succeeds within a time limit.

use mcpeval_probe::judge::{Fields, LATENCY_BUDGET_EXCEEDED, ToolCall, Trial, UNEXPECTED_OUTCOME, integer};
use mcpeval_probe::{
    Answer, Case, Check, Fault, Finding, Level, Manifest, Metric, Outcome, Probe, Session, Target, report,
};

const SUCCESS: &str = "latency-budget.success";
const LATENCY: &str = "latency-budget.latency";
const ATTEMPTS: &str = "attempts";
const MAX_LATENCY: &str = "max_latency_ms";

/// The component of kind `latency-budget`.
#[derive(Clone, Copy, Debug)]
pub struct LatencyBudget;

impl Probe for LatencyBudget {
    fn manifest() -> Manifest {
        Manifest::new("latency-budget", env!("CARGO_PKG_VERSION"), "Every call succeeds within a time limit")
            .summary("Makes the same call several times, one after another, and stops at the first that is too slow.")
            .config(
                Fields::new()
                    .call()
                    .required(ATTEMPTS, integer(1, 20))
                    .required(MAX_LATENCY, integer(1, 600_000))
                    .schema(),
            )
            .check(Check::new(SUCCESS, Level::Must, "Every call succeeds"))
            .check(Check::new(LATENCY, Level::Must, "Every call takes max_latency_ms at most"))
            .common_reason(UNEXPECTED_OUTCOME, &[SUCCESS])
            .common_reason(LATENCY_BUDGET_EXCEEDED, &[LATENCY])
            .metric(Metric::number("latency_ms", "ms"))
            .asks(3, 0, 1_000)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let call = ToolCall::of(case)?;
        let (attempts, limit) = (case.number(ATTEMPTS)?, case.number(MAX_LATENCY)?);
        // A late answer is a verdict, none is not: so the wait is longer than the limit by that for any answer.
        let wait_ms = limit.saturating_add(case.timeout_ms);
        let session = target.primary()?;
        let mut slowest = None;
        let outcome = repeat(&call, &session, attempts, wait_ms, |answer| {
            slowest = slowest.max(Some(answer.elapsed_ms()));
            if !answer.succeeded() {
                return Some(Finding::fail(SUCCESS, UNEXPECTED_OUTCOME.label));
            }
            answer.slower_than(limit, LATENCY)
        });
        if let Some(slowest) = slowest {
            report::measure("latency_ms", f64::from(slowest));
        }
        outcome
    }
}

/// Calls until an answer is lost.
fn repeat(
    call: &ToolCall,
    session: &Session,
    attempts: u32,
    wait_ms: u32,
    mut lost: impl FnMut(&Answer) -> Option<Finding>,
) -> Result<Outcome, Fault> {
    let mut trial = Trial::new(&[SUCCESS, LATENCY]);
    for _ in 0..attempts {
        let answer = call.call_within(session, wait_ms)?;
        trial.attempt([answer.exchange]);
        if let Some(finding) = lost(&answer) {
            return Ok(trial.fail(finding));
        }
    }
    Ok(trial.pass())
}

mcpeval_probe::export!(LatencyBudget);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Bound, Cause, json};

    use super::*;

    fn run(replies: impl IntoIterator<Item = Reply, IntoIter: 'static>, attempts: u32, limit: u32) -> Run {
        let mut replies = replies.into_iter();
        Script::new([json!({"name": "t", "inputSchema": {}, "annotations": {"readOnlyHint": true}})])
            .timeout_ms(30_000)
            .on_request(move |_| replies.next().unwrap_or_else(|| Reply::error(1, "called too often")))
            .run::<LatencyBudget>(json!({"tool": "t", "attempts": attempts, "max_latency_ms": limit}))
    }

    fn after(millis: u32) -> Reply {
        Reply::result(json!({"content": []})).after_ms(millis)
    }

    #[test]
    fn the_limit_is_inclusive_and_the_slowest_call_is_measured() {
        let run = run([after(3), after(800), after(5)], 3, 800);
        assert_eq!(run.lost(), []);
        assert_eq!(run.number("latency_ms"), Some(800.0));
        assert_eq!(run.outcome.unwrap(), Outcome { attempts: 3, first_failure: None });
    }

    #[test]
    fn a_slow_call_ends_it() {
        let run = run([after(3), after(1_240), after(5)], 3, 800);
        assert_eq!(run.lost(), [(LATENCY.into(), None, "latency-budget-exceeded".into())]);
        let bound = Bound { name: MAX_LATENCY.to_owned(), limit: 800, observed: 1_240 };
        assert_eq!(run.loss(LATENCY, None).unwrap().bound, Some(bound));
        assert_eq!(run.number("latency_ms"), Some(1_240.0));
        assert_eq!(run.outcome.unwrap(), Outcome { attempts: 2, first_failure: Some(2) });
    }

    #[test]
    fn a_failure_counts_before_its_latency() {
        let run = run([after(3), Reply::error(-32603, "no").after_ms(900)], 20, 800);
        assert_eq!(run.lost(), [(SUCCESS.into(), None, "unexpected-outcome".into())]);
        assert_eq!(run.number("latency_ms"), Some(900.0));
        assert_eq!(run.outcome.unwrap(), Outcome { attempts: 2, first_failure: Some(2) });
    }

    #[test]
    fn the_wait_is_longer_than_the_limit() {
        let run = run([Reply::fault(Cause::TimedOut)], 1, 600_000);
        assert_eq!(run.sent[0].timeout_ms, Some(630_000));
        assert_eq!(run.outcome.unwrap_err().cause, Cause::TimedOut, "no answer at all is no verdict");
        assert!(run.findings.is_empty() && run.measurements.is_empty());
    }
}
