//! `acme.steady`, a probe for one area of a standard: the same call gives the same text twice.

use std::collections::BTreeSet;

use mcpeval_probe::{
    Answer, CallClass, Case, Cause, Check, Fault, Finding, Json, Level, Manifest, Outcome, Probe, Target, Verdict,
    call_params, json, report,
};

const AREA: &str = "steady";
const CHECK: &str = "steady.same";

/// The probe.
pub struct Steady;

impl Probe for Steady {
    fn manifest() -> Manifest {
        Manifest::new("acme.steady", env!("CARGO_PKG_VERSION"), "Equal calls give equal texts")
            .summary("Calls every callable tool twice with the same arguments and compares the texts of the results.")
            .config(json!({
                "type": "object",
                "properties": {"areas": {"type": "array", "items": {"const": AREA}}, "lanes": {"type": "integer"}},
                "additionalProperties": false
            }))
            .check(Check::new(CHECK, Level::Should, "Equal calls give equal texts").area(AREA))
            .reason("acme.call-failed", "A valid call did not succeed; call the tool by hand and see why.", &[CHECK])
            .reason(
                "acme.unsteady",
                "Two equal calls gave different texts; remove times, random numbers and unsorted lists from the result.",
                &[CHECK],
            )
            .asks(20, 0, 2_000)
    }

    fn run(target: &Target, _case: &Case) -> Result<Outcome, Fault> {
        // A set, since a catalog may name a tool twice.
        let tools: BTreeSet<String> =
            target.tools().into_iter().filter(|tool| tool.blocked.is_none()).map(|tool| tool.name).collect();
        let total = u32::try_from(tools.len()).unwrap_or(u32::MAX);
        let (mut judged, mut steady) = (0_u32, 0_u32);
        for (finished, tool) in (1..=total).zip(&tools) {
            let finding = match target.arguments(tool) {
                Some(arguments) => judge(target, &call_params(tool, &arguments))?,
                None => Finding::untested(CHECK),
            };
            judged += u32::from(finding.verdict != Verdict::Untested);
            steady += u32::from(finding.verdict == Verdict::Pass);
            finding.subject(tool).submit();
            report::progress(finished, total);
        }
        // Where no tool may be called none can be unsteady. Where some may and none could be, nothing was shown.
        let score = match judged {
            0 if tools.is_empty() => 100.0,
            0 => 0.0,
            _ => 100.0 * f64::from(steady) / f64::from(judged),
        };
        report::score(AREA, score);
        Ok(Outcome { attempts: 1, first_failure: (steady < judged).then_some(1) })
    }
}

/// Makes a call twice and compares the texts.
fn judge(target: &Target, params: &Json) -> Result<Finding, Fault> {
    let (mut answers, mut evidence) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        // Asked for every time: after a fault it is a fresh session.
        let outcome = target.primary().and_then(|session| session.request("tools/call", params));
        match &outcome {
            Ok(answer) => evidence.push(answer.exchange),
            // Nothing was sent, for the budget is spent: that is no verdict, and it ends the run.
            Err(fault) if matches!(fault.cause, Cause::Refused(_)) => return Err(fault.clone()),
            Err(fault) => evidence.extend(fault.exchange),
        }
        if CallClass::of(&outcome) != CallClass::Success {
            return Ok(Finding::fail(CHECK, "acme.call-failed").evidence(evidence));
        }
        answers.push(outcome?);
    }
    let mut texts = answers.iter().filter_map(Answer::tool_result).map(|result| result.texts());
    let same = texts.next() == texts.next();
    let finding = if same { Finding::pass(CHECK) } else { Finding::fail(CHECK, "acme.unsteady") };
    Ok(finding.evidence(evidence))
}

mcpeval_probe::export!(Steady);

#[cfg(test)]
mod tests {
    use mcpeval_probe::Refusal;
    use mcpeval_probe::testing::{Reply, Run, Script};

    use super::*;

    /// Runs it on a server with one tool that answers with these in turn.
    fn run(answers: impl IntoIterator<Item = Reply, IntoIter: 'static>) -> Run {
        let mut answers = answers.into_iter();
        let tool = json!({"name": "now", "inputSchema": {}, "annotations": {"readOnlyHint": true}});
        Script::new([tool])
            .arguments("now", json!({}))
            .on_request(move |_| answers.next().unwrap_or_else(|| Reply::error(-32603, "called too often")))
            .run::<Steady>(json!({"areas": [AREA], "lanes": 1}))
    }

    fn text(text: &str) -> Reply {
        Reply::result(json!({"content": [{"type": "text", "text": text}]}))
    }

    fn lost(reason: &str) -> [(String, Option<String>, String); 1] {
        [(CHECK.into(), Some("now".into()), reason.into())]
    }

    #[test]
    fn equal_texts_pass() {
        let run = run([text("noon"), text("noon")]);
        assert_eq!((run.lost(), run.score(AREA), run.progress), (vec![], Some(100.0), vec![(1, 1)]));
    }

    #[test]
    fn different_texts_fail() {
        let run = run([text("noon"), text("one")]);
        assert_eq!(run.lost(), lost("acme.unsteady"));
        assert_eq!(run.score(AREA), Some(0.0));
    }

    #[test]
    fn a_call_that_fails_costs_its_tool_and_a_refused_one_ends_the_run() {
        for reply in [Reply::error(-32603, "oops"), Reply::fault(Cause::TimedOut)] {
            assert_eq!(run([text("noon"), reply]).lost(), lost("acme.call-failed"));
        }
        let run = run([Reply::fault(Cause::Refused(Refusal::Requests))]);
        assert!(run.outcome.is_err() && run.findings.is_empty() && run.scores.is_empty());
    }

    #[test]
    fn without_a_judgement_the_score_tells_whether_there_was_something_to_judge() {
        let writer = json!({"name": "write", "inputSchema": {}, "annotations": {"readOnlyHint": false}});
        let reader = json!({"name": "read", "inputSchema": {}, "annotations": {"readOnlyHint": true}});
        assert_eq!(Script::new([writer]).run::<Steady>(json!({})).score(AREA), Some(100.0));
        assert_eq!(Script::new([reader]).run::<Steady>(json!({})).score(AREA), Some(0.0));
    }
}
