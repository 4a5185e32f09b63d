//! `acme.steady`: the same call gives the same text twice.

use mcpeval_probe::{CallClass, Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target, json};

/// The probe.
pub struct Steady;

impl Probe for Steady {
    fn manifest() -> Manifest {
        Manifest::new("acme.steady", env!("CARGO_PKG_VERSION"), "Equal calls give equal texts")
            .summary("Calls a tool twice with the same arguments and compares the texts of the results.")
            .config(json!({
                "type": "object",
                "properties": {
                    "tool": {"type": "string", "format": "tool"},
                    "arguments": {"type": "object"}
                },
                "required": ["tool"],
                "additionalProperties": false
            }))
            .check(Check::new("acme.steady", Level::Should, "Equal calls give equal texts"))
            .reason("unexpected-outcome", "The call did not succeed; call the tool by hand and see why.", &["acme.steady"])
            .reason(
                "acme.unsteady",
                "Two equal calls gave different texts; remove times, random numbers and unsorted lists from the result.",
                &["acme.steady"],
            )
            .asks(2, 0, 2_000)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let arguments = case.config.get("arguments").cloned().unwrap_or(json!({}));
        let params = json!({"name": case.config["tool"], "arguments": arguments});
        let session = target.primary()?;
        let mut texts = Vec::new();
        let mut evidence = Vec::new();
        for attempt in 1..=2 {
            // A fault is no verdict: `?` hands it to the host.
            let outcome = Ok(session.request("tools/call", &params)?);
            if CallClass::of(&outcome) != CallClass::Success {
                Finding::fail("acme.steady", "unexpected-outcome").submit();
                return Ok(Outcome { attempts: attempt, first_failure: Some(attempt) });
            }
            let answer = outcome?;
            evidence.push(answer.exchange);
            let result = answer.tool_result();
            texts.push(result.map(|result| result.texts().iter().map(ToString::to_string).collect::<Vec<_>>()));
        }
        let steady = texts.first() == texts.last();
        let finding = if steady { Finding::pass("acme.steady") } else { Finding::fail("acme.steady", "acme.unsteady") };
        finding.evidence(evidence).submit();
        Ok(Outcome { attempts: 2, first_failure: (!steady).then_some(2) })
    }
}

mcpeval_probe::export!(Steady);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};

    use super::*;

    fn run(texts: [&'static str; 2]) -> Run {
        let mut texts = texts.into_iter();
        let tool = json!({"name": "now", "inputSchema": {}, "annotations": {"readOnlyHint": true}});
        Script::new([tool])
            .on_request(move |_| match texts.next() {
                Some(text) => Reply::result(json!({"content": [{"type": "text", "text": text}]})),
                None => Reply::error(-32603, "called too often"),
            })
            .run::<Steady>(json!({"tool": "now"}))
    }

    #[test]
    fn equal_texts_pass() {
        assert!(run(["noon", "noon"]).lost().is_empty());
    }

    #[test]
    fn different_texts_fail() {
        let run = run(["noon", "one"]);
        assert_eq!(run.lost(), [("acme.steady".into(), None, "acme.unsteady".into())]);
        assert_eq!(run.outcome.unwrap().first_failure, Some(2));
    }
}
