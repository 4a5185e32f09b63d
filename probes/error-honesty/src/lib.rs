//! Kind `error-honesty`: a call's errors keep their code, and say truthfully whether a retry helps.

use mcpeval_probe::judge::{Fields, ToolCall, Trial, UNEXPECTED_OUTCOME, integer};
use mcpeval_probe::{Access, Answer, Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target, View, json};

const FAILS: &str = "error-honesty.fails";
const CODE: &str = "error-honesty.code";
const RETRYABLE: &str = "error-honesty.retryable";
const RETRY: &str = "error-honesty.retry";

const EXPECTED_ERROR: &str = "expected-error";
const UNSTABLE_CODE: &str = "unstable-error-code";
const RETRYABILITY_MISMATCH: &str = "retryability-mismatch";
const RETRY_DID_NOT_RECOVER: &str = "retry-did-not-recover";

/// Errors that show an error for which no retry helps.
const LASTING: u32 = 2;

/// The component of kind `error-honesty`.
#[derive(Clone, Copy, Debug)]
pub struct ErrorHonesty;

impl Probe for ErrorHonesty {
    fn manifest() -> Manifest {
        Manifest::new("error-honesty", env!("CARGO_PKG_VERSION"), "Errors say truthfully whether a retry helps")
            .summary(
                "Makes a call that must fail again and again: the error keeps its code and its retryable, and a retry \
                 succeeds exactly if that promises it.",
            )
            .config(
                Fields::new()
                    .call()
                    .required("max_attempts", integer(2, 20))
                    .required("expect_retryable", json!({"type": "boolean"}))
                    .schema(),
            )
            .check(Check::new(FAILS, Level::Must, "The first call fails with an error"))
            .check(Check::new(CODE, Level::Must, "Every error has the same code"))
            .check(Check::new(RETRYABLE, Level::Must, "Every error says what is expected of retryable"))
            .check(Check::new(RETRY, Level::Must, "A retry succeeds exactly if the error is retryable"))
            .reason(
                EXPECTED_ERROR,
                "The first call succeeded although the case is about its error. If the tool accepts what it must refuse, make it \
                 refuse; else give the case arguments that fail.",
                &[FAILS],
            )
            .reason(
                UNSTABLE_CODE,
                "The same call failed with different codes, so clients cannot tell what went wrong. Give one code to one cause; \
                 a result with isError: true counts as -32000.",
                &[CODE],
            )
            .reason(
                RETRYABILITY_MISMATCH,
                "The error's retryable is not what the case expects, is missing, or is said twice and differently. Put a boolean \
                 retryable into the data of a JSON-RPC error: true only if the same call can succeed later.",
                &[RETRYABLE],
            )
            .reason(
                RETRY_DID_NOT_RECOVER,
                "The error says that it is retryable, yet no attempt of the case succeeded. Say retryable: false, or make the \
                 cause pass within max_attempts calls.",
                &[RETRY],
            )
            .common_reason(UNEXPECTED_OUTCOME, &[RETRY])
            .access(Access::MayMutate)
            .asks(2, 0, 500)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let call = ToolCall::of(case)?;
        let (attempts, retryable) = (case.number("max_attempts")?, case.flag("expect_retryable")?);
        let session = target.primary()?;
        let mut trial = Trial::new(&[FAILS, CODE, RETRYABLE, RETRY]);
        let mut first: Option<Answer> = None;
        for number in 1..=attempts {
            let answer = call.call(&session)?;
            trial.attempt([answer.exchange]);
            let lost = |check, reason| Finding::fail(check, reason);
            if answer.succeeded() {
                return Ok(match (&first, retryable) {
                    (None, _) => trial.fail(lost(FAILS, EXPECTED_ERROR)),
                    (Some(_), true) => trial.pass(),
                    (Some(_), false) => trial.fail(lost(RETRY, UNEXPECTED_OUTCOME.label)),
                });
            }
            if first.as_ref().is_some_and(|first| !same_code(first, &answer)) {
                return Ok(trial.fail(lost(CODE, UNSTABLE_CODE)));
            }
            if !says(&answer, retryable) {
                return Ok(trial.fail(lost(RETRYABLE, RETRYABILITY_MISMATCH)));
            }
            if !retryable && number == LASTING {
                return Ok(trial.pass());
            }
            first.get_or_insert(answer);
        }
        Ok(trial.fail(Finding::fail(RETRY, RETRY_DID_NOT_RECOVER)))
    }
}

fn same_code(first: &Answer, other: &Answer) -> bool {
    match (first.failure_code(), other.failure_code()) {
        (Some(first), Some(other)) => first.view().equals(other.view()),
        (first, other) => first == other,
    }
}

/// Whether the error's `data`, or the error itself, has this `retryable`; where both have one, both.
fn says(answer: &Answer, expected: bool) -> bool {
    let Some([data, own]) = answer.error().and_then(|error| error.pick(["data", "retryable"])) else { return false };
    let said = [data.and_then(|data| data.member("retryable")), own];
    let mut said = said.into_iter().flatten().map(View::bool).peekable();
    said.peek().is_some() && said.all(|flag| flag == Some(expected))
}

mcpeval_probe::export!(ErrorHonesty);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Cause, Value};

    use super::*;

    fn run(max_attempts: u32, retryable: bool, replies: impl IntoIterator<Item = Reply, IntoIter: 'static>) -> Run {
        let mut replies = replies.into_iter();
        Script::new([json!({"name": "t", "inputSchema": {}, "annotations": {"readOnlyHint": true}})])
            .on_request(move |_| replies.next().unwrap_or_else(|| Reply::fault(Cause::Other)))
            .run::<ErrorHonesty>(json!({"tool": "t", "max_attempts": max_attempts, "expect_retryable": retryable}))
    }

    fn ok() -> Reply {
        Reply::result(json!({"content": []}))
    }

    fn error(code: i64, retryable: bool) -> Reply {
        Reply::failure(json!({"code": code, "message": "", "data": {"retryable": retryable}}))
    }

    fn raw(error: Value) -> Reply {
        Reply::failure(error)
    }

    fn assert_lost(run: &Run, check: &str, reason: &str, number: u32) {
        assert_eq!(run.lost(), [(check.into(), None, reason.into())]);
        let expected = Outcome { attempts: number, first_failure: Some(number) };
        assert_eq!(run.outcome.as_ref().unwrap(), &expected);
    }

    #[test]
    fn a_lasting_error_passes_at_the_second() {
        let run = run(20, false, [error(-32_001, false), error(-32_001, false)]);
        assert_eq!(run.lost(), []);
        assert_eq!(run.outcome.unwrap(), Outcome { attempts: 2, first_failure: None });
    }

    #[test]
    fn a_passing_error_passes_at_the_first_success_after_it() {
        let run = run(3, true, [error(-32_001, true), error(-32_001, true), ok()]);
        assert_eq!(run.lost(), []);
        assert_eq!(run.outcome.unwrap(), Outcome { attempts: 3, first_failure: None });
    }

    #[test]
    fn retryable_may_stand_in_the_error_itself() {
        let own = || raw(json!({"code": 1, "retryable": false}));
        assert_eq!(run(2, false, [own(), own()]).lost(), []);
        let both = || raw(json!({"code": 1, "retryable": false, "data": {"retryable": false}}));
        assert_eq!(run(2, false, [both(), both()]).lost(), []);
    }

    #[test]
    fn each_reason_can_be_given() {
        assert_lost(&run(2, true, [ok()]), FAILS, EXPECTED_ERROR, 1);
        let codes = [error(-32_001, true), error(-32_002, true)];
        assert_lost(&run(9, true, codes), CODE, UNSTABLE_CODE, 2);
        let kinds = [error(-32_001, false), Reply::result(json!({"isError": true}))];
        assert_lost(&run(9, false, kinds), CODE, UNSTABLE_CODE, 2);
        let errors = (0..20).map(|_| error(-32_001, true));
        assert_lost(&run(20, true, errors), RETRY, RETRY_DID_NOT_RECOVER, 20);
        assert_lost(&run(9, false, [error(-32_001, false), ok()]), RETRY, "unexpected-outcome", 2);
    }

    #[test]
    fn what_is_said_of_retries_must_be_what_is_expected() {
        for error in [
            json!({"code": 1}),
            json!({"code": 1, "data": {"retryable": true}}),
            json!({"code": 1, "data": {"retryable": "false"}}),
            json!({"code": 1, "data": {"retryable": false}, "retryable": true}),
            json!({"code": 1, "data": {"retryable": null}}),
            json!({"code": 1, "data": false}),
        ] {
            assert_lost(&run(2, false, [raw(error)]), RETRYABLE, RETRYABILITY_MISMATCH, 1);
        }
        let later = [error(1, true), error(1, false)];
        assert_lost(&run(2, true, later), RETRYABLE, RETRYABILITY_MISMATCH, 2);
        let told_in_a_result = [Reply::result(json!({"isError": true}))];
        assert_lost(&run(2, false, told_in_a_result), RETRYABLE, RETRYABILITY_MISMATCH, 1);
    }

    #[test]
    fn a_call_without_answer_is_no_verdict() {
        let run = run(2, true, [error(1, true), Reply::fault(Cause::Closed)]);
        assert_eq!(run.outcome.unwrap_err().cause, Cause::Closed);
        assert!(run.findings.is_empty());
    }
}
