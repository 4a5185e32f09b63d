//! Kind `instruction-fidelity`: one call meets what a case expects of it.

use mcpeval_probe::judge::{Expect, Fields, ToolCall, Trial};
use mcpeval_probe::{Access, Case, Check, Fault, Level, Manifest, Outcome, Probe, Target};

const MET: &str = "instruction-fidelity.met";
const EXPECT: &str = "expect";

/// The component of kind `instruction-fidelity`.
#[derive(Clone, Copy, Debug)]
pub struct InstructionFidelity;

impl Probe for InstructionFidelity {
    fn manifest() -> Manifest {
        let manifest = Manifest::new("instruction-fidelity", env!("CARGO_PKG_VERSION"), "One call meets expectations")
            .summary("Calls a tool once and judges the answer by expect: outcome, members, text, schema, latency.")
            .config(Fields::new().call().required(EXPECT, Expect::field()).schema())
            .check(Check::new(MET, Level::Must, "The answer meets expect"))
            .access(Access::MayMutate)
            .asks(1, 0, 200);
        Expect::reasons(manifest, MET)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let call = ToolCall::of(case)?;
        let expect = Expect::read(case.required(EXPECT)?)?;
        let answer = call.call(&target.primary()?)?;
        let mut trial = Trial::new(&[MET]);
        trial.attempt([answer.exchange]);
        Ok(match expect.miss(MET, &answer)? {
            Some(finding) => trial.fail(finding),
            None => trial.pass(),
        })
    }
}

mcpeval_probe::export!(InstructionFidelity);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Cause, Value, json};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "made for json!")]
    fn run(expect: Value, reply: Reply) -> Run {
        Script::new([json!({"name": "t", "inputSchema": {}, "annotations": {"readOnlyHint": true}})])
            .on_validate(|_, _| Err(vec!["never".to_owned()]))
            .on_request(move |_| reply.clone())
            .run::<InstructionFidelity>(json!({"tool": "t", "arguments": {"of": "tea"}, "expect": expect}))
    }

    fn good() -> Reply {
        Reply::result(json!({"content": [{"type": "text", "text": "Sencha"}], "structuredContent": {"name": "Sencha"}}))
    }

    #[test]
    fn what_is_expected_passes() {
        let run = run(json!({"outcome": "ok", "equals": {"structuredContent": {"name": "Sencha"}}}), good());
        assert_eq!(run.lost(), []);
        assert_eq!(run.sent[0].params, json!({"name": "t", "arguments": {"of": "tea"}}));
        assert_eq!(run.outcome.unwrap(), Outcome { attempts: 1, first_failure: None });
    }

    #[test]
    fn an_expected_error_passes() {
        let expect = json!({"outcome": "error", "error_code": -32602, "text_contains": "of"});
        assert_eq!(run(expect, Reply::error(-32602, "of is required")).lost(), []);
    }

    #[test]
    fn each_reason_can_be_given() {
        for (expect, reply, reason) in [
            (json!({"outcome": "error"}), good(), "unexpected-outcome"),
            (json!({"outcome": "error", "error_code": 7}), Reply::error(8, ""), "error-code-mismatch"),
            (json!({"outcome": "ok", "required_result_paths": ["/structuredContent/price"]}), good(), "missing-field"),
            (json!({"outcome": "ok", "equals_paths": {"/structuredContent/name": "Assam"}}), good(), "value-mismatch"),
            (json!({"outcome": "ok", "text_not_contains": "Sencha"}), good(), "text-mismatch"),
            (json!({"outcome": "ok", "schema": {"required": ["price"]}}), good(), "schema-mismatch"),
            (json!({"outcome": "ok", "max_latency_ms": 5}), good().after_ms(6), "latency-budget-exceeded"),
        ] {
            let run = run(expect, reply);
            assert_eq!(run.lost(), [(MET.into(), None, reason.into())]);
            assert_eq!(run.outcome.unwrap(), Outcome { attempts: 1, first_failure: Some(1) });
        }
    }

    #[test]
    fn a_call_without_answer_is_no_verdict() {
        let run = run(json!({"outcome": "error"}), Reply::fault(Cause::Closed));
        assert_eq!(run.outcome.unwrap_err().cause, Cause::Closed);
        assert!(run.findings.is_empty());
    }
}
