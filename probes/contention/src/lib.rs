//! Kind `contention`: two sessions call a tool at once, and both succeed.

use mcpeval_probe::judge::{Contention, Fields, ToolCall, Trial, contend};
use mcpeval_probe::{Access, Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target};

const BOTH: &str = "contention.both";

const FAILED: &str = "contended-client-failed";

/// The component of kind `contention`.
#[derive(Clone, Copy, Debug)]
pub struct Contend;

impl Probe for Contend {
    fn manifest() -> Manifest {
        Manifest::new("contention", env!("CARGO_PKG_VERSION"), "Two clients can call a tool at once")
            .summary("Opens a second session beside the first and makes the same call on both at the same time.")
            .config(Fields::new().call().schema())
            .check(Check::new(BOTH, Level::Should, "A second session opens, and the calls of both succeed"))
            .reason(
                FAILED,
                "While one client was connected, a second could not connect, or one of two calls made at once failed; let \
                 sessions and processes share no lock, file, port or global state that only one can hold, or wait for it.",
                &[BOTH],
            )
            .access(Access::MayMutate)
            .asks(3, 1, 1_000)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let mut trial = Trial::new(&[BOTH]);
        Ok(match contend(target, ToolCall::of(case)?.params())? {
            Contention::NoFirst(fault) => return Err(fault),
            Contention::NoSecond(fault) => {
                trial.attempt(fault.exchange);
                trial.fail(Finding::fail(BOTH, FAILED))
            }
            Contention::Called(succeeded, evidence) => {
                trial.attempt(evidence);
                trial.attempt(None);
                let failed = |number| trial.clone().fail_at(Finding::fail(BOTH, FAILED), number);
                match succeeded {
                    [true, true] => trial.pass(),
                    [false, _] => failed(1),
                    [true, false] => failed(2),
                }
            }
        })
    }
}

mcpeval_probe::export!(Contend);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script, Sent};
    use mcpeval_probe::{Cause, json};

    use super::*;

    fn script(answer: impl FnMut(&Sent) -> Reply + 'static) -> Script {
        let tool = json!({"name": "book", "inputSchema": {}, "annotations": {"destructiveHint": true}});
        Script::new([tool]).mutating().on_request(answer)
    }

    fn run(script: Script) -> Run {
        script.run::<Contend>(json!({"tool": "book", "arguments": {"seat": 1}}))
    }

    fn judged(run: &Run) -> (Option<String>, u32, Option<u32>) {
        let outcome = run.outcome.as_ref().unwrap();
        (run.lost().pop().map(|(_, _, reason)| reason), outcome.attempts, outcome.first_failure)
    }

    fn done(_: &Sent) -> Reply {
        Reply::result(json!({"content": []})).after_ms(70)
    }

    #[test]
    fn two_calls_at_once_pass() {
        let run = run(script(done));
        assert_eq!(judged(&run), (None, 2, None));
        let calls: Vec<_> = run.sent.iter().map(|sent| (sent.session, sent.at_us)).collect();
        assert_eq!((calls[0].0, calls[1].0, calls[0].1), (0, 1, calls[1].1));
        assert!(run.sent.iter().all(|sent| sent.params["arguments"]["seat"] == 1));
    }

    #[test]
    fn the_client_that_failed_is_numbered() {
        for (session, number) in [(0, 1), (1, 2)] {
            for failure in [
                Reply::result(json!({"isError": true})),
                Reply::error(-32603, "busy"),
                Reply::fault(Cause::TimedOut),
                Reply::fault(Cause::Closed),
            ] {
                let run = run(script(move |sent| if sent.session == session { failure.clone() } else { done(sent) }));
                assert_eq!(judged(&run), (Some(FAILED.to_owned()), 2, Some(number)));
            }
        }
    }

    #[test]
    fn a_second_client_must_get_in() {
        let run = run(script(done).on_open(|_| Err(Cause::Handshake)));
        assert_eq!(judged(&run), (Some(FAILED.to_owned()), 1, Some(1)));
        assert!(run.sent.is_empty());
    }

    #[test]
    fn a_refusal_gives_no_verdict() {
        assert!(run(script(done).budget(9, 0, 9_000)).outcome.unwrap_err().is_refusal());
        assert!(run(script(done).budget(2, 9, 9_000)).outcome.unwrap_err().is_refusal());
    }
}
