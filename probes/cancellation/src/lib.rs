//! Kind `cancellation`: a call that the client cancels ends without an answer.

use mcpeval_probe::judge::{Fields, RECOVERY_FAILED, ToolCall, Trial, UNEXPECTED_OUTCOME, identifier, integer};
use mcpeval_probe::{
    Answer, Case, Cause, Check, ExchangeId, Fault, Finding, Level, Manifest, Metric, Outcome, Probe, Session, Target,
    View, json, report,
};

/// The error that says that a request was cancelled.
const REQUEST_CANCELLED: i64 = -32800;
/// Over HTTP the cancellation is a POST of its own and may overtake the call; after so many milliseconds without an
/// answer it is said once more.
const AGAIN_MS: u32 = 200;
/// How much longer than the grace the call may take, in milliseconds: its own timeout must not cut in.
const MARGIN_MS: u32 = 1_000;

const PREFLIGHT: &str = "cancellation.preflight";
const HONORED: &str = "cancellation.honored";
const RECOVERY: &str = "cancellation.recovery";

const IGNORED: &str = "cancellation-ignored";
const ERRORED: &str = "cancellation-errored";

const OUTCOME: &str = "cancellation_outcome";
const NO_RESULT: &str = "no-result";
const COMPLETED: &str = "completed";
const ERROR: &str = "error";

/// The component of kind `cancellation`.
#[derive(Clone, Copy, Debug)]
pub struct Cancellation;

/// What came of a cancelled call: the word for it, and the reason if it is not as it should be.
fn judge(answer: Option<&Answer>) -> (&'static str, Option<&'static str>) {
    match answer.map(|answer| (&answer.reply, answer.error_code())) {
        None => (NO_RESULT, None),
        Some((Ok(_), _)) => (COMPLETED, Some(IGNORED)),
        Some((Err(_), Some(REQUEST_CANCELLED))) => (ERROR, None),
        Some((Err(_), _)) => (ERROR, Some(ERRORED)),
    }
}

/// What a cancelled call brought, and what to cite.
struct Cancelled {
    answer: Option<Answer>,
    evidence: Vec<ExchangeId>,
}

/// Calls, cancels at once, and waits for `grace_ms`.
fn cancelled(
    session: &Session,
    call: &ToolCall,
    reason: &str,
    grace_ms: u32,
    timeout_ms: u32,
    over_http: bool,
) -> Result<Cancelled, Fault> {
    let pending = session.start_within("tools/call", call.params(), timeout_ms)?;
    let mut evidence = vec![pending.cancel(Some(reason))?];
    let mut wait = || {
        if !over_http {
            return pending.wait(grace_ms);
        }
        let first_ms = AGAIN_MS.min(grace_ms);
        let answer = pending.wait(first_ms)?;
        if answer.is_some() {
            return Ok(answer);
        }
        match pending.cancel(Some(reason)) {
            Ok(exchange) => evidence.push(exchange),
            // It was taken once.
            Err(fault) => drop(fault.unless_refused()?),
        }
        pending.wait(grace_ms - first_ms)
    };
    let answer = match wait() {
        Ok(answer) => answer,
        // The stream of this call ended; over stdio the server did.
        Err(fault) if fault.cause == Cause::Closed && over_http => {
            evidence.extend(fault.exchange);
            None
        }
        Err(fault) => return Err(fault),
    };
    evidence.extend(answer.as_ref().map(|answer| answer.exchange));
    Ok(Cancelled { answer, evidence })
}

impl Probe for Cancellation {
    fn manifest() -> Manifest {
        let cancellation = "https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation";
        let config = Fields::new()
            .call()
            .required("grace_seconds", integer(1, 60))
            .required("reason", identifier())
            .optional("require_honored", json!({"type": "boolean", "default": true}));
        Manifest::new("cancellation", env!("CARGO_PKG_VERSION"), "A cancelled call ends without an answer")
            .summary("Makes a call, makes it again and cancels it at once, then waits whether it is answered all the same.")
            .config(config.schema())
            .check(Check::new(PREFLIGHT, Level::Should, "The call succeeds when nobody cancels it"))
            .check(Check::new(HONORED, Level::Should, "Cancelled, it is not answered").reference(cancellation))
            .check(Check::new(RECOVERY, Level::Must, "After a cancellation the call succeeds again"))
            .common_reason(UNEXPECTED_OUTCOME, &[PREFLIGHT])
            .reason(
                IGNORED,
                "A cancelled call was answered with a result; stop the work when notifications/cancelled names the request, \
                 and send nothing for it. If the tool is faster than any cancellation, give arguments that keep it busy for \
                 longer than grace_seconds, or set require_honored to false.",
                &[HONORED],
            )
            .reason(
                ERRORED,
                "A cancelled call was answered with an error; send no response for a request that the client cancelled, or \
                 error -32800 if there must be one.",
                &[HONORED],
            )
            .common_reason(RECOVERY_FAILED, &[RECOVERY])
            .metric(Metric::label(OUTCOME, &[NO_RESULT, COMPLETED, ERROR]))
            .asks(3, 0, 5_000)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let call = ToolCall::of(case)?;
        let grace_ms = case.number("grace_seconds")?.saturating_mul(1_000);
        let timeout_ms = case.timeout_ms.max(grace_ms.saturating_add(MARGIN_MS));
        let must_honor = case.field("require_honored").and_then(View::bool).unwrap_or(true);
        let over_http = target.facts().transport == "http";
        let session = target.primary()?;
        let mut trial = Trial::new(if must_honor { &[PREFLIGHT, HONORED] } else { &[PREFLIGHT, HONORED, RECOVERY] });

        let preflight = call.call(&session)?;
        trial.attempt([preflight.exchange]);
        if !preflight.succeeded() {
            return Ok(trial.fail(Finding::fail(PREFLIGHT, UNEXPECTED_OUTCOME.label)));
        }

        let Cancelled { answer, evidence } =
            cancelled(&session, &call, &case.string("reason")?, grace_ms, timeout_ms, over_http)?;
        trial.attempt(evidence);
        let (word, lost) = judge(answer.as_ref());
        report::measure_label(OUTCOME, word);
        if let Some(reason) = lost.filter(|reason| must_honor || *reason != IGNORED) {
            return Ok(trial.fail(Finding::fail(HONORED, reason)));
        }
        if must_honor {
            return Ok(trial.pass());
        }

        let again = match call.call(&session) {
            Ok(answer) => Ok(answer),
            Err(fault) => Err(fault.unless_refused()?),
        };
        trial.attempt(mcpeval_probe::cited(&again));
        Ok(match again {
            Ok(answer) if answer.succeeded() => trial.pass(),
            _ => trial.fail(Finding::fail(RECOVERY, RECOVERY_FAILED.label)),
        })
    }
}

mcpeval_probe::export!(Cancellation);

#[cfg(test)]
mod tests {
    use mcpeval_probe::Reading;
    use mcpeval_probe::testing::{Reply, Run, Script, Sent};

    use super::*;

    fn script() -> Script {
        Script::new([json!({"name": "wait", "inputSchema": {}, "annotations": {"readOnlyHint": true}})])
    }

    fn done() -> Reply {
        Reply::result(json!({"content": []}))
    }

    /// Answers the calls in this order.
    fn answers(script: Script, replies: Vec<Reply>) -> Script {
        let mut replies = replies.into_iter();
        script.on_request(move |_: &Sent| replies.next().expect("no further call"))
    }

    fn run(script: Script, require_honored: Option<bool>) -> Run {
        script.run::<Cancellation>(json!({
            "tool": "wait",
            "arguments": {"ms": 5_000},
            "grace_seconds": 2,
            "reason": "enough",
            "require_honored": require_honored
        }))
    }

    fn judged(run: &Run) -> (Option<String>, u32, Option<u32>, Option<String>) {
        let outcome = run.outcome.as_ref().unwrap();
        let word = run.measurements.iter().find_map(|(_, _, reading)| match reading {
            Reading::Label(word) => Some(word.clone()),
            Reading::Number(_) => None,
        });
        (run.lost().pop().map(|(_, _, reason)| reason), outcome.attempts, outcome.first_failure, word)
    }

    fn verdict(
        reason: Option<&str>,
        attempts: u32,
        word: Option<&str>,
    ) -> (Option<String>, u32, Option<u32>, Option<String>) {
        (reason.map(str::to_owned), attempts, reason.map(|_| attempts), word.map(str::to_owned))
    }

    #[test]
    fn silence_honours_a_cancellation() {
        let run = run(answers(script(), vec![done(), done().after_ms(2_001)]), None);
        assert_eq!(judged(&run), verdict(None, 2, Some("no-result")));
        assert_eq!(run.notified.len(), 1);
        let cancelled = &run.notified[0];
        assert_eq!(cancelled.method, "notifications/cancelled");
        assert_eq!(cancelled.params, json!({"requestId": 2, "reason": "enough"}));
        assert_eq!(cancelled.at_us, run.sent[1].at_us, "at once");
    }

    #[test]
    fn a_call_outlasts_its_grace() {
        let waits =
            |script: Script| run(answers(script, vec![done(), done().after_ms(9_000)]), None).sent[1].timeout_ms;
        assert_eq!(waits(script().timeout_ms(1_000)), Some(3_000));
        assert_eq!(waits(script().timeout_ms(8_000)), Some(8_000));
    }

    #[test]
    fn what_comes_within_the_grace_is_judged() {
        let second = |reply: Reply| judged(&run(answers(script(), vec![done(), reply.after_ms(2_000)]), Some(true)));
        assert_eq!(second(done()), verdict(Some(IGNORED), 2, Some("completed")));
        let failed = Reply::result(json!({"isError": true}));
        assert_eq!(second(failed), verdict(Some(IGNORED), 2, Some("completed")));
        assert_eq!(second(Reply::error(-32800, "cancelled")), verdict(None, 2, Some("error")));
        assert_eq!(second(Reply::error(-32603, "no")), verdict(Some(ERRORED), 2, Some("error")));
    }

    #[test]
    fn over_http_it_is_said_twice_and_a_closed_stream_honours_it() {
        let closed = || vec![done(), Reply::fault(Cause::Closed).after_ms(900)];
        let over_http = run(answers(script().http(), closed()), None);
        assert_eq!(judged(&over_http), verdict(None, 2, Some("no-result")));
        let said: Vec<_> = over_http.notified.iter().map(|sent| sent.at_us - over_http.sent[1].at_us).collect();
        assert_eq!(said, [0, 200_000]);
        let over_pipes = run(answers(script(), closed()), None);
        assert_eq!(over_pipes.outcome.unwrap_err().cause, Cause::Closed, "the server died");
        let heard = run(answers(script().http(), vec![done(), done().after_ms(100)]), None);
        assert_eq!((judged(&heard).0.as_deref(), heard.notified.len()), (Some(IGNORED), 1));
        let silent = run(answers(script().http(), vec![done(), done().after_ms(2_001)]), None);
        assert_eq!(judged(&silent), verdict(None, 2, Some("no-result")));
        let late = run(answers(script().http(), vec![done(), done().after_ms(2_000)]), None);
        assert_eq!(judged(&late), verdict(Some(IGNORED), 2, Some("completed")));
    }

    #[test]
    fn the_call_must_succeed_when_it_is_not_cancelled() {
        let run = run(answers(script(), vec![Reply::result(json!({"isError": true}))]), None);
        assert_eq!(judged(&run), verdict(Some(UNEXPECTED_OUTCOME.label), 1, None));
    }

    #[test]
    fn where_it_need_not_be_honoured_a_third_call_must_succeed() {
        let third = |reply: Reply| judged(&run(answers(script(), vec![done(), done(), reply]), Some(false)));
        assert_eq!(third(done()), verdict(None, 3, Some("completed")));
        for failure in [
            Reply::error(-32603, "no"),
            Reply::result(json!({"isError": true})),
            Reply::fault(Cause::TimedOut),
            Reply::fault(Cause::Closed),
        ] {
            assert_eq!(third(failure), verdict(Some(RECOVERY_FAILED.label), 3, Some("completed")));
        }
        let silent = answers(script(), vec![done(), done().after_ms(9_000), done()]);
        assert_eq!(judged(&run(silent, Some(false))), verdict(None, 3, Some("no-result")));
        let errored = answers(script(), vec![done(), Reply::error(-32603, "no")]);
        assert_eq!(judged(&run(errored, Some(false))), verdict(Some(ERRORED), 2, Some("error")));
    }

    #[test]
    fn other_faults_give_no_verdict() {
        for replies in [vec![Reply::fault(Cause::TimedOut)], vec![done(), Reply::fault(Cause::Malformed)]] {
            assert!(run(answers(script(), replies), None).outcome.is_err());
        }
        assert!(run(answers(script(), vec![done(), done()]).budget(2, 0, 9_000), Some(false)).outcome.is_err());
    }
}
