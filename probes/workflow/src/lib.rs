//! Kind `workflow`: a sequence of calls, each of which meets what is expected of it, on one session of its own.

use mcpeval_probe::judge::{Expect, Fields, ToolCall, Trial, integer};
use mcpeval_probe::{Case, Check, Fault, Level, Manifest, Options, Outcome, Probe, Target, Value, View, json, report};

const STEPS: &str = "workflow.steps";
const REPETITIONS: &str = "repetitions";

/// The component of kind `workflow`.
#[derive(Clone, Copy, Debug)]
pub struct Workflow;

fn steps() -> Value {
    let step = Fields::new().call().required("expect", Expect::field()).schema();
    json!({"type": "array", "items": step, "minItems": 2, "maxItems": 32})
}

/// One step: the call, and what is expected of it.
fn read(step: View<'_>) -> Result<(ToolCall, Expect<'_>), Fault> {
    let call = ToolCall::read(step, "tool", "arguments")?;
    // A step without expect has no outcome either, which reading tells.
    let expect = Expect::read(step.member("expect").unwrap_or(step))?;
    Ok((call, expect))
}

impl Probe for Workflow {
    fn manifest() -> Manifest {
        let manifest = Manifest::new("workflow", env!("CARGO_PKG_VERSION"), "A sequence of calls meets expectations")
            .summary("Calls tools one after another on a session of its own, repeatedly, and stops at the first miss.")
            .config(Fields::new().required(REPETITIONS, integer(1, 20)).required("steps", steps()).schema())
            .check(Check::new(STEPS, Level::Must, "Every step of every repetition meets its expect"))
            .asks(6, 1, 1_000);
        Expect::reasons(manifest, STEPS)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let steps = case.required("steps")?.items().unwrap_or_default();
        let steps: Vec<(ToolCall, Expect<'_>)> = steps.into_iter().map(read).collect::<Result<_, Fault>>()?;
        let repetitions = case.number(REPETITIONS)?;
        let total = repetitions.saturating_mul(u32::try_from(steps.len()).unwrap_or(u32::MAX));

        let session = target.open(Options::default())?;
        let mut trial = Trial::new(&[STEPS]);
        for _ in 0..repetitions {
            for (number, (call, expect)) in (0..).zip(&steps) {
                let answer = call.call(&session)?;
                trial.attempt([answer.exchange]);
                if let Some(finding) = expect.miss(STEPS, &answer)? {
                    return Ok(trial.fail(finding.step(number)));
                }
                report::progress(trial.attempts(), total);
            }
        }
        Ok(trial.pass())
    }
}

mcpeval_probe::export!(Workflow);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Cause, Refusal};

    use super::*;

    fn tool(name: &str) -> Value {
        json!({"name": name, "inputSchema": {}, "annotations": {"readOnlyHint": true}})
    }

    fn text(text: &str) -> Reply {
        Reply::result(json!({"content": [{"type": "text", "text": text}]}))
    }

    /// A session that counts its `take` calls, and answers the call with a certain number otherwise.
    fn script(otherwise: impl Fn(u32) -> Option<Reply> + 'static) -> Script {
        let mut calls = 0;
        Script::new([tool("take"), tool("count")]).on_request(move |sent| {
            calls += 1;
            otherwise(calls).unwrap_or_else(|| match sent.tool() {
                Some("take") => text("taken"),
                _ => text(&format!("{} taken", calls / 2)),
            })
        })
    }

    fn run(script: Script, repetitions: u32) -> Run {
        script.run::<Workflow>(json!({
            "repetitions": repetitions,
            "steps": [
                {"tool": "take", "arguments": {"tea": "Sencha"}, "expect": {"outcome": "ok", "text_equals": "taken"}},
                {"tool": "count", "expect": {"outcome": "ok", "text_contains": "taken", "max_latency_ms": 100}},
            ]
        }))
    }

    #[test]
    fn every_step_of_every_repetition_runs_on_one_session_of_its_own() {
        let run = run(script(|_| None), 20);
        assert_eq!(run.lost(), []);
        assert_eq!(run.outcome.as_ref().unwrap(), &Outcome { attempts: 40, first_failure: None });
        assert!(run.sent.iter().all(|sent| sent.session == 1), "not on the one that cases share");
        assert_eq!((run.openings, run.progress.last()), (1, Some(&(40, 40))));
        assert_eq!(run.sent[0].params["arguments"], json!({"tea": "Sencha"}));
        assert_eq!(run.sent[1].params["arguments"], json!({}));
    }

    #[test]
    fn the_first_miss_ends_it_and_names_its_step() {
        let run = run(script(|call| (call == 4).then(|| text("none"))), 3);
        assert_eq!(run.lost(), [(STEPS.into(), None, "text-mismatch".into())]);
        assert_eq!(run.findings[0].step, Some(1));
        assert_eq!(run.requests(), 5, "the opening and four calls");
        assert_eq!(run.outcome.unwrap(), Outcome { attempts: 4, first_failure: Some(4) });
    }

    #[test]
    fn a_step_may_be_too_slow_or_fail() {
        for (otherwise, reason) in [
            (text("1 taken").after_ms(101), "latency-budget-exceeded"),
            (Reply::error(-32603, "taken"), "unexpected-outcome"),
        ] {
            let run = run(script(move |call| (call == 2).then(|| otherwise.clone())), 1);
            assert_eq!(run.lost(), [(STEPS.into(), None, reason.into())]);
        }
    }

    #[test]
    fn without_session_or_answer_there_is_no_verdict() {
        let closed = run(script(|call| (call == 2).then(|| Reply::fault(Cause::Closed))), 2);
        assert_eq!(closed.outcome.unwrap_err().cause, Cause::Closed);
        assert_eq!(closed.sent.len(), 2, "no reconnect");
        let unopened = run(script(|_| None).on_open(|_| Err(Cause::Handshake)), 1);
        assert_eq!(unopened.outcome.unwrap_err().cause, Cause::Handshake);
        let spent = run(script(|_| None).budget(3, 1, 10_000), 2);
        assert_eq!(spent.outcome.unwrap_err().cause, Cause::Refused(Refusal::Requests));
        assert!(spent.findings.is_empty());
    }
}
