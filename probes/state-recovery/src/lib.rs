//! Kind `state-recovery`: after a call that fails, one that recovers succeeds, and one that validates finds all well.

use mcpeval_probe::judge::{Fields, RECOVERY_FAILED, ToolCall, Trial};
use mcpeval_probe::{Access, Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target};

const FAILURE: &str = "state-recovery.failure";
const RECOVERY: &str = "state-recovery.recovery";
const VALIDATION: &str = "state-recovery.validation";

const FAILURE_NOT_OBSERVED: &str = "failure-not-observed";
const VALIDATION_FAILED: &str = "validation-failed";

/// One of the three calls.
struct Step {
    tool: &'static str,
    arguments: &'static str,
    succeeds: bool,
    check: &'static str,
    reason: &'static str,
}

const STEPS: [Step; 3] = [
    Step {
        tool: "failure_tool",
        arguments: "failure_arguments",
        succeeds: false,
        check: FAILURE,
        reason: FAILURE_NOT_OBSERVED,
    },
    Step {
        tool: "recovery_tool",
        arguments: "recovery_arguments",
        succeeds: true,
        check: RECOVERY,
        reason: RECOVERY_FAILED.label,
    },
    Step {
        tool: "validation_tool",
        arguments: "validation_arguments",
        succeeds: true,
        check: VALIDATION,
        reason: VALIDATION_FAILED,
    },
];

/// The component of kind `state-recovery`.
#[derive(Clone, Copy, Debug)]
pub struct StateRecovery;

impl Probe for StateRecovery {
    fn manifest() -> Manifest {
        let fields = STEPS.iter().fold(Fields::new(), |fields, step| fields.call_as(step.tool, step.arguments));
        Manifest::new("state-recovery", env!("CARGO_PKG_VERSION"), "The server recovers from a failed call")
            .summary("Makes a call that must fail, one that recovers and one that validates, on one session.")
            .config(fields.schema())
            .check(Check::new(FAILURE, Level::Must, "The first call fails with an error"))
            .check(Check::new(RECOVERY, Level::Must, "The call that recovers succeeds"))
            .check(Check::new(VALIDATION, Level::Must, "The call that validates succeeds"))
            .reason(
                FAILURE_NOT_OBSERVED,
                "The call that was to fail succeeded, so nothing was recovered from. If the tool accepts what it must refuse, \
                 make it refuse; else give the case arguments that fail.",
                &[FAILURE],
            )
            .common_reason(RECOVERY_FAILED, &[RECOVERY])
            .reason(
                VALIDATION_FAILED,
                "The server recovered, yet the call that looks at its state afterwards failed: something of the failed call was \
                 left behind. Make failing calls change nothing, or undo all that they changed.",
                &[VALIDATION],
            )
            .access(Access::MayMutate)
            .asks(3, 0, 500)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let calls = STEPS.map(|step| (ToolCall::read(case.fields.view(), step.tool, step.arguments), step));
        let session = target.primary()?;
        let mut trial = Trial::new(&[FAILURE, RECOVERY, VALIDATION]);
        for (call, step) in calls {
            let answer = call?.call(&session)?;
            trial.attempt([answer.exchange]);
            if answer.succeeded() != step.succeeds {
                return Ok(trial.fail(Finding::fail(step.check, step.reason)));
            }
        }
        Ok(trial.pass())
    }
}

mcpeval_probe::export!(StateRecovery);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Cause, Verdict, json};

    use super::*;

    fn run(replies: [Reply; 3]) -> Run {
        let mut replies = replies.into_iter();
        let tool = |name| json!({"name": name, "inputSchema": {}, "annotations": {"readOnlyHint": false}});
        Script::new([tool("pay"), tool("refund"), tool("balance")])
            .mutating()
            .on_request(move |_| replies.next().unwrap_or_else(|| Reply::fault(Cause::Other)))
            .run::<StateRecovery>(json!({
                "failure_tool": "pay", "failure_arguments": {"amount": -1},
                "recovery_tool": "refund", "recovery_arguments": {"amount": 1},
                "validation_tool": "balance"
            }))
    }

    fn ok() -> Reply {
        Reply::result(json!({"content": []}))
    }

    fn failed() -> Reply {
        Reply::result(json!({"content": [], "isError": true}))
    }

    #[test]
    fn error_success_success_passes() {
        for first in [failed(), Reply::error(-32602, "no")] {
            let run = run([first, ok(), ok()]);
            assert_eq!(run.lost(), []);
            let sent: Vec<_> = run.sent.iter().map(|sent| (sent.tool().unwrap(), &sent.params["arguments"])).collect();
            let expected = [json!({"amount": -1}), json!({"amount": 1}), json!({})];
            assert_eq!(sent, [("pay", &expected[0]), ("refund", &expected[1]), ("balance", &expected[2])]);
            assert_eq!(run.outcome.unwrap(), Outcome { attempts: 3, first_failure: None });
        }
    }

    #[test]
    fn each_call_has_its_reason() {
        for (replies, check, reason, number) in [
            ([ok(), ok(), ok()], FAILURE, FAILURE_NOT_OBSERVED, 1),
            ([failed(), failed(), ok()], RECOVERY, "recovery-failed", 2),
            ([failed(), ok(), Reply::error(-32603, "no")], VALIDATION, VALIDATION_FAILED, 3),
        ] {
            let run = run(replies);
            assert_eq!(run.lost(), [(check.into(), None, reason.into())]);
            assert_eq!(run.sent.len(), number as usize, "what follows is not called");
            let untested = run.findings.iter().filter(|finding| finding.verdict == Verdict::Untested).count();
            assert_eq!(untested, 3 - number as usize);
            assert_eq!(run.outcome.unwrap(), Outcome { attempts: number, first_failure: Some(number) });
        }
    }

    #[test]
    fn no_answer_is_no_failure_to_recover_from() {
        let run = run([Reply::fault(Cause::TimedOut), ok(), ok()]);
        assert_eq!(run.outcome.unwrap_err().cause, Cause::TimedOut);
        assert!(run.findings.is_empty());
    }
}
