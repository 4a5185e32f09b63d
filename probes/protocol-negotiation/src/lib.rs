//! Kind `protocol-negotiation`: what a server answers to offers of revisions, each on a fresh connection.
//!
//! A revision that exists is offered, then one that does not; what is answered instead must come back when it is offered.

use mcpeval_probe::judge::{Breach, FIRST_OFFER, Fields, Trial, negotiate};
use mcpeval_probe::{Case, Check, Fault, Finding, Level, Manifest, Options, Outcome, Probe, Target, json};

const BOGUS_VERSION: &str = "bogus_version";

const VERSION: &str = "protocol-negotiation.version";
const CONSISTENT: &str = "protocol-negotiation.consistent";
const UNKNOWN: &str = "protocol-negotiation.unknown";

const INVALID_VERSION: &str = "negotiation-invalid-version";
const INCONSISTENT: &str = "negotiation-inconsistent-support";
const ECHOED_UNKNOWN: &str = "negotiation-echoed-unknown";

/// The component of kind `protocol-negotiation`.
#[derive(Clone, Copy, Debug)]
pub struct ProtocolNegotiation;

impl Probe for ProtocolNegotiation {
    fn manifest() -> Manifest {
        let negotiation =
            "https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation";
        let check = |id, title| Check::new(id, Level::Must, title).reference(negotiation);
        let bogus = json!({
            "type": "string",
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            "not": {"enum": [FIRST_OFFER, "2025-06-18"]}
        });
        Manifest::new("protocol-negotiation", env!("CARGO_PKG_VERSION"), "Protocol revisions are negotiated soundly")
            .summary("Offers a current and an unknown revision, and every answer again, each on a fresh connection.")
            .config(Fields::new().required(BOGUS_VERSION, bogus).schema())
            .check(check(VERSION, "Every offer is answered with a revision"))
            .check(check(CONSISTENT, "A revision that was answered is agreed to when it is offered"))
            .check(check(UNKNOWN, "An unknown revision is not agreed to"))
            .reason(
                INVALID_VERSION,
                "initialize was not answered with a protocolVersion of the form YYYY-MM-DD; answer every offer with the \
                 revision itself where you support it, else with the latest that you do support.",
                &[VERSION],
            )
            .reason(
                INCONSISTENT,
                "initialize answered with a revision and then declined or replaced the same revision when a client offered \
                 it; answer only with revisions that you agree to when they are offered.",
                &[CONSISTENT],
            )
            .reason(
                ECHOED_UNKNOWN,
                "initialize agreed to a revision that does not exist; compare the offer with the revisions you support and \
                 answer with one of those in place of repeating what the client sent.",
                &[UNKNOWN],
            )
            .needs("lifecycle.handshake")
            .asks(3, 3, 3_000)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let mut trial = Trial::new(&[VERSION, CONSISTENT, UNKNOWN]);
        let negotiation = negotiate(None, &case.string(BOGUS_VERSION)?, |revision| {
            let answer = target.greet(Options::offer(revision))?;
            trial.attempt([answer.exchange]);
            Ok(answer)
        })?;
        Ok(match negotiation.breach {
            None => trial.pass(),
            Some(Breach::Invalid) => trial.fail(Finding::fail(VERSION, INVALID_VERSION)),
            Some(Breach::Inconsistent) => trial.fail(Finding::fail(CONSISTENT, INCONSISTENT)),
            Some(Breach::Echoed) => trial.fail(Finding::fail(UNKNOWN, ECHOED_UNKNOWN)),
        })
    }
}

mcpeval_probe::export!(ProtocolNegotiation);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Cause, Value};

    use super::*;

    /// A server that answers offers with what this makes of them.
    fn run(answer: impl Fn(&str) -> Reply + 'static) -> Run {
        let script = Script::new([]).on_greet(move |options| answer(options.revision.as_deref().unwrap()));
        script.run::<ProtocolNegotiation>(json!({"bogus_version": "2000-01-01"}))
    }

    fn chooses(revision: impl Into<Value>) -> Reply {
        let revision: Value = revision.into();
        Reply::result(json!({"protocolVersion": revision, "capabilities": {}}))
    }

    fn judged(run: &Run) -> (Vec<String>, u32, Option<u32>) {
        let outcome = run.outcome.as_ref().unwrap();
        let lost = run.lost().into_iter().map(|(_, _, reason)| reason).collect();
        (lost, outcome.attempts, outcome.first_failure)
    }

    #[test]
    fn a_current_server_passes_with_two_handshakes() {
        assert_eq!(judged(&run(|_| chooses("2025-11-25"))), (vec![], 2, None));
    }

    #[test]
    fn an_older_server_confirms_its_answer() {
        let run = run(|_| chooses("2024-11-05"));
        assert_eq!((judged(&run), run.openings), ((vec![], 3, None), 3));
    }

    #[test]
    fn a_refusal_that_lists_what_is_supported_is_an_answer() {
        let declining = |offer: &str| match offer {
            "2025-11-25" => chooses(offer),
            _ => Reply::failure(json!({"code": -32602, "message": "no", "data": {"supported": ["2025-11-25"]}})),
        };
        assert_eq!(judged(&run(declining)), (vec![], 2, None));
    }

    #[test]
    fn each_breach_has_its_reason_and_handshake() {
        let one = |reason: &str, attempts| (vec![reason.to_owned()], attempts, Some(attempts));
        assert_eq!(judged(&run(|_| chooses("latest"))), one(INVALID_VERSION, 1));
        assert_eq!(judged(&run(|_| Reply::error(-32603, "no"))), one(INVALID_VERSION, 1));
        assert_eq!(judged(&run(|offer| chooses(offer))), one(ECHOED_UNKNOWN, 2));
        let drifting = |offer: &str| chooses(if offer == "2024-11-05" { "2025-03-26" } else { "2024-11-05" });
        assert_eq!(judged(&run(drifting)), one(INCONSISTENT, 2));
        let words = |offer: &str| if offer == "2025-11-25" { chooses(offer) } else { chooses(json!(20)) };
        assert_eq!(judged(&run(words)), one(INVALID_VERSION, 2));
        let late = |offer: &str| chooses(if offer == "2000-01-01" { "2025-06-18" } else { "2025-11-25" });
        assert_eq!(judged(&run(late)), one(INCONSISTENT, 3));
    }

    #[test]
    fn a_revision_in_use_may_come_back() {
        let script = Script::new([]).on_greet(|options| chooses(options.revision.clone().unwrap()));
        let run = script.run::<ProtocolNegotiation>(json!({"bogus_version": "2024-11-05"}));
        assert_eq!(judged(&run), (vec![], 2, None));
    }

    #[test]
    fn without_an_answer_there_is_no_verdict() {
        assert_eq!(run(|_| Reply::fault(Cause::Closed)).outcome.unwrap_err().cause, Cause::Closed);
    }
}
