//! Kind `payload-bounds`: a call with a very long argument is answered or refused, and the session lives on.

use mcpeval_probe::judge::{
    Fields, Handling, ToolCall, Trial, UNEXPECTED_OUTCOME, identifier, integer, lengthened, payload,
};
use mcpeval_probe::{Case, Check, Fault, Finding, Level, Manifest, Metric, Outcome, Probe, Target, json, report};

/// Longest argument, in bytes.
const MAX_SIZE: u32 = 16_000_000;

const ANSWERED: &str = "payload-bounds.answered";
const OUTCOME: &str = "payload-bounds.outcome";
const ALIVE: &str = "payload-bounds.alive";

const UNHANDLED: &str = "payload-unhandled";

/// The component of kind `payload-bounds`.
#[derive(Clone, Copy, Debug)]
pub struct PayloadBounds;

impl Probe for PayloadBounds {
    fn manifest() -> Manifest {
        let config = Fields::new()
            .call()
            .required("field", identifier())
            .required("size_bytes", integer(1, MAX_SIZE))
            .required("expect_handled", json!({"type": "boolean"}));
        Manifest::new("payload-bounds", env!("CARGO_PKG_VERSION"), "A very long argument is handled or refused")
            .summary("Calls a tool with one argument set to a very long string, then pings the same session.")
            .config(config.schema())
            .check(Check::new(ANSWERED, Level::Must, "The call is answered or refused"))
            .check(Check::new(OUTCOME, Level::Should, "It succeeds where the case expects it"))
            .check(Check::new(ALIVE, Level::Must, "The session lives on"))
            .reason(
                UNHANDLED,
                "A call with a very long argument got no answer, or the session was dead afterwards; read messages of any \
                 length, and refuse what is too long with error -32602, isError: true or HTTP 413 in place of a crash, a \
                 hang or a closed connection.",
                &[ANSWERED, ALIVE],
            )
            .common_reason(UNEXPECTED_OUTCOME, &[OUTCOME])
            .metric(Metric::number("latency_ms", "ms"))
            .asks(2, 0, 2_000)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let call = ToolCall::of(case)?;
        let size = usize::try_from(case.number("size_bytes")?.min(MAX_SIZE)).unwrap_or_default();
        let must_succeed = case.flag("expect_handled")?;
        let params = lengthened(call.params(), &case.string("field")?, size);
        let payload = payload(target, &target.primary()?, &params)?;
        let mut trial = Trial::new(&[ANSWERED, OUTCOME, ALIVE]);
        trial.attempt(payload.evidence);
        let refused = match payload.handling {
            Handling::Unsent(fault) => return Err(fault),
            Handling::Unhandled(_) => return Ok(trial.fail(Finding::fail(ANSWERED, UNHANDLED))),
            Handling::Refused => true,
            Handling::Done => false,
        };
        report::measure("latency_ms", f64::from(payload.latency_ms));
        Ok(if refused && must_succeed {
            trial.fail(Finding::fail(OUTCOME, UNEXPECTED_OUTCOME.label))
        } else if payload.alive {
            trial.pass()
        } else {
            trial.fail(Finding::fail(ALIVE, UNHANDLED))
        })
    }
}

mcpeval_probe::export!(PayloadBounds);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script, Sent};
    use mcpeval_probe::{Cause, IncomingKind, Value};

    use super::*;

    fn script(reply: impl Fn(&Sent) -> Reply + 'static) -> Script {
        let tool = json!({
            "name": "count",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true}
        });
        Script::new([tool])
            .on_request(move |sent| if sent.method == "ping" { Reply::result(json!({})) } else { reply(sent) })
    }

    fn run(script: Script, size: u32, expect_handled: bool) -> Run {
        script.run::<PayloadBounds>(json!({
            "tool": "count",
            "arguments": {"text": "x", "n": 1},
            "field": "text",
            "size_bytes": size,
            "expect_handled": expect_handled
        }))
    }

    /// Check and reason of the loss when that reply is given to the long call.
    fn lost(reply: Reply, expect_handled: bool) -> Option<(String, String)> {
        let run = run(script(move |_| reply.clone()), 10, expect_handled);
        let outcome = run.outcome.as_ref().unwrap();
        let lost = run.lost().pop().map(|(check, _, reason)| (check, reason));
        assert_eq!((outcome.attempts, outcome.first_failure), (1, lost.as_ref().map(|_| 1)));
        lost
    }

    fn loss(check: &str, reason: &str) -> (String, String) {
        (check.to_owned(), reason.to_owned())
    }

    fn done() -> Reply {
        Reply::result(json!({"content": []}))
    }

    #[test]
    fn a_long_argument_that_is_handled_passes() {
        for size in [1, MAX_SIZE] {
            let length = usize::try_from(size).unwrap();
            let run = run(
                script(move |sent| {
                    let arguments = &sent.params["arguments"];
                    let text = arguments["text"].as_str().unwrap();
                    let right = text.len() == length && text.bytes().all(|byte| byte == b'a') && arguments["n"] == 1;
                    if right { done().after_ms(7) } else { Reply::error(-32602, "no") }
                }),
                size,
                true,
            );
            assert_eq!((run.lost(), run.methods()), (vec![], vec!["tools/call", "ping"]));
            assert_eq!(run.number("latency_ms"), Some(7.0));
        }
    }

    #[test]
    fn a_refusal_passes_unless_success_is_expected() {
        let stray = move |code: i64| json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": "x"}});
        let stray_then_silence = move |code| {
            Reply::fault(Cause::TimedOut).after_ms(15_000).beside(40, IncomingKind::StrayReply, stray(code))
        };
        for refusal in [
            Reply::error(-32602, "too long"),
            Reply::error(-32603, "too long"),
            Reply::result(json!({"isError": true})),
            Reply::fault(Cause::Status(413)),
            stray_then_silence(-32600),
            stray_then_silence(-32700),
        ] {
            assert_eq!(lost(refusal.clone(), false), None, "{refusal:?}");
            assert_eq!(lost(refusal, true), Some(loss(OUTCOME, UNEXPECTED_OUTCOME.label)));
        }
        let run = run(script(move |_| stray_then_silence(-32700)), 10, false);
        assert_eq!(run.number("latency_ms"), Some(40.0), "by the run's clock where no answer came");
    }

    #[test]
    fn no_answer_is_unhandled() {
        for fault in [Cause::Closed, Cause::TimedOut, Cause::Status(502), Cause::TooLarge] {
            assert_eq!(lost(Reply::fault(fault), false), Some(loss(ANSWERED, UNHANDLED)), "{fault:?}");
        }
        assert_eq!(lost(Reply::result(json!([])), false), Some(loss(ANSWERED, UNHANDLED)));
    }

    #[test]
    fn the_session_must_live_on() {
        let pinged = |pong: Reply| {
            let tool: Value = json!({"name": "count", "inputSchema": {}, "annotations": {"readOnlyHint": true}});
            let script =
                Script::new([tool]).on_request(move |sent| if sent.method == "ping" { pong.clone() } else { done() });
            run(script, 10, true).lost().pop().map(|(check, _, reason)| (check, reason))
        };
        assert_eq!(pinged(Reply::fault(Cause::Closed)), Some(loss(ALIVE, UNHANDLED)));
        assert_eq!(pinged(Reply::fault(Cause::TimedOut)), Some(loss(ALIVE, UNHANDLED)));
        assert_eq!(pinged(Reply::error(-32601, "no such method")), None, "any reply is a sign of life");
        assert_eq!(pinged(Reply::fault(Cause::Malformed)), None);
    }

    #[test]
    fn what_could_not_be_sent_says_nothing() {
        let unreachable = run(script(|_| Reply::fault(Cause::Unreachable)), 10, false);
        assert_eq!(unreachable.outcome.unwrap_err().cause, Cause::Unreachable);
        let refused = run(script(|_| done()).budget(0, 9, 9_000), 10, false);
        assert!(refused.outcome.unwrap_err().is_refusal());
    }
}
