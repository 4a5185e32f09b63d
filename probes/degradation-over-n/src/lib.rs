//! Kind `degradation-over-n`: equal calls keep succeeding.

use mcpeval_probe::judge::{Fields, ToolCall, Trial, UNEXPECTED_OUTCOME, integer};
use mcpeval_probe::{Access, Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target, report};

const REPEATED: &str = "degradation-over-n.repeated";
const MAX_ATTEMPTS: &str = "max_attempts";

/// The component of kind `degradation-over-n`.
#[derive(Clone, Copy, Debug)]
pub struct DegradationOverN;

impl Probe for DegradationOverN {
    fn manifest() -> Manifest {
        Manifest::new("degradation-over-n", env!("CARGO_PKG_VERSION"), "Equal calls keep succeeding")
            .summary("Makes the same call up to max_attempts times on one session and stops at the first that fails.")
            .config(Fields::new().call().required(MAX_ATTEMPTS, integer(2, 100)).schema())
            .check(Check::new(REPEATED, Level::Must, "Every one of max_attempts equal calls succeeds"))
            .common_reason(UNEXPECTED_OUTCOME, &[REPEATED])
            .access(Access::MayMutate)
            .asks(10, 0, 1_000)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let call = ToolCall::of(case)?;
        let attempts = case.number(MAX_ATTEMPTS)?;
        let session = target.primary()?;
        let mut trial = Trial::new(&[REPEATED]);
        for finished in 1..=attempts {
            let answer = call.call(&session)?;
            trial.attempt([answer.exchange]);
            if !answer.succeeded() {
                return Ok(trial.fail(Finding::fail(REPEATED, UNEXPECTED_OUTCOME.label)));
            }
            report::progress(finished, attempts);
        }
        Ok(trial.pass())
    }
}

mcpeval_probe::export!(DegradationOverN);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Cause, json};

    use super::*;

    /// Answers well until the call with that number.
    fn run(max_attempts: u32, fails_at: u32, failure: Reply) -> Run {
        let mut call = 0;
        Script::new([json!({"name": "t", "inputSchema": {}, "annotations": {"readOnlyHint": true}})])
            .on_request(move |_| {
                call += 1;
                if call == fails_at { failure.clone() } else { Reply::result(json!({"content": []})) }
            })
            .run::<DegradationOverN>(json!({"tool": "t", "arguments": {"a": 1}, "max_attempts": max_attempts}))
    }

    #[test]
    fn as_many_calls_as_asked_for_pass() {
        for attempts in [2, 100] {
            let run = run(attempts, attempts + 1, Reply::error(1, ""));
            assert_eq!(run.lost(), []);
            assert_eq!(run.outcome.as_ref().unwrap(), &Outcome { attempts, first_failure: None });
            assert_eq!((run.requests(), run.progress.last()), (attempts, Some(&(attempts, attempts))));
        }
    }

    #[test]
    fn the_first_failure_ends_it_and_is_cited() {
        for failure in [Reply::error(-32602, "no"), Reply::error(-32603, "no"), Reply::result(json!({"isError": true}))]
        {
            let run = run(100, 70, failure);
            assert_eq!(run.lost(), [(REPEATED.into(), None, "unexpected-outcome".into())]);
            let evidence = &run.findings[0].evidence;
            assert_eq!((evidence.len(), run.requests()), (64, 70), "of many exchanges the last ones");
            assert_eq!(evidence.last().unwrap() - evidence[0], 63);
            assert_eq!(run.outcome.unwrap(), Outcome { attempts: 70, first_failure: Some(70) });
        }
    }

    #[test]
    fn a_call_without_answer_is_no_verdict() {
        let run = run(5, 3, Reply::fault(Cause::TimedOut));
        assert_eq!(run.outcome.unwrap_err().cause, Cause::TimedOut);
        assert!(run.findings.is_empty());
    }
}
