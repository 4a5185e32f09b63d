//! Version negotiation: an offer is answered with a revision that the server then stands by.

use mcpeval_probe::judge::{Breach, negotiate};
use mcpeval_probe::{Answer, Fault, cited};

use crate::{CALL_FAILED, Judged};

/// A revision that never existed.
const UNKNOWN: &str = "2000-01-01";

const ECHOED: &str = "protocol-negotiation-echoed-unknown";
const INVALID: &str = "protocol-negotiation-invalid-version";
const INCONSISTENT: &str = "protocol-negotiation-inconsistent-support";

/// Judges the negotiation; `first` is what the primary session's opening was answered with, the first opening of this
/// check.
pub(crate) fn negotiation(
    first: &str,
    mut greet: impl FnMut(&str) -> Result<Result<Answer, Fault>, Fault>,
) -> Result<Judged, Fault> {
    let mut evidence = Vec::new();
    let negotiated = negotiate(Some(first), UNKNOWN, |revision| {
        let asked = greet(revision).flatten();
        evidence.extend(cited(&asked));
        asked
    });
    let lost = match negotiated {
        Ok(negotiation) => negotiation.breach.map(|breach| match breach {
            Breach::Invalid => INVALID,
            Breach::Echoed => ECHOED,
            Breach::Inconsistent => INCONSISTENT,
        }),
        Err(fault) => {
            fault.unless_refused()?;
            Some(CALL_FAILED)
        }
    };
    Ok(Judged::new(lost, evidence))
}

#[cfg(test)]
mod tests {
    use mcpeval_probe::{Cause, Json, Value, json};

    use super::*;

    /// A server that answers offers from a table.
    fn judged(first: &str, answers: &[(&str, Result<Value, Value>)]) -> (Option<&'static str>, Vec<String>) {
        let mut offered = Vec::new();
        let judged = negotiation(first, |offer| {
            offered.push(offer.to_owned());
            let known = answers.iter().find(|(revision, _)| *revision == offer);
            let Some((_, reply)) = known else {
                return Ok(Err(Fault { cause: Cause::Closed, exchange: None, detail: String::new() }));
            };
            let reply = reply.clone().map(Json::from).map_err(Json::from);
            Ok(Ok(Answer { exchange: 1, elapsed_us: 1, status: None, reply }))
        });
        (judged.unwrap().lost, offered)
    }

    fn chooses(revision: &str) -> Value {
        json!({"protocolVersion": revision, "capabilities": {}})
    }

    fn declines(code: i64, supported: &[&str]) -> Value {
        json!({"code": code, "message": "no", "data": {"supported": supported}})
    }

    #[test]
    fn a_current_server_costs_one_opening() {
        let (lost, offered) = judged("2025-11-25", &[("2000-01-01", Ok(chooses("2025-11-25")))]);
        assert_eq!((lost, offered), (None, vec!["2000-01-01".to_owned()]));
    }

    #[test]
    fn an_older_server_is_asked_to_stand_by_its_answer() {
        let (lost, offered) = judged(
            "2024-11-05",
            &[("2024-11-05", Ok(chooses("2024-11-05"))), ("2000-01-01", Ok(chooses("2024-11-05")))],
        );
        assert_eq!((lost, offered.len()), (None, 2));
        let (lost, _) = judged("2024-11-05", &[("2024-11-05", Ok(chooses("2025-03-26")))]);
        assert_eq!(lost, Some(INCONSISTENT));
    }

    #[test]
    fn another_answer_to_the_unknown_is_confirmed() {
        let other = [("2000-01-01", Ok(chooses("2025-06-18"))), ("2025-06-18", Ok(chooses("2025-06-18")))];
        let (lost, offered) = judged("2025-11-25", &other);
        assert_eq!((lost, offered.len()), (None, 2));
        let moved = [("2000-01-01", Ok(chooses("2025-06-18"))), ("2025-06-18", Ok(chooses("2025-11-25")))];
        assert_eq!(judged("2025-11-25", &moved).0, Some(INCONSISTENT));
    }

    #[test]
    fn the_unknown_must_not_come_back() {
        assert_eq!(judged("2025-11-25", &[("2000-01-01", Ok(chooses("2000-01-01")))]).0, Some(ECHOED));
    }

    #[test]
    fn a_refusal_that_lists_revisions_is_an_answer() {
        for code in [-32602, -32022] {
            let lists = [("2000-01-01", Err(declines(code, &["2025-11-25"])))];
            assert_eq!(judged("2025-11-25", &lists).0, None);
        }
        let lists = [("2000-01-01", Err(declines(-32602, &["latest"])))];
        assert_eq!(judged("2025-11-25", &lists).0, Some(INVALID));
        let other = [("2000-01-01", Err(declines(-32603, &["2025-11-25"])))];
        assert_eq!(judged("2025-11-25", &other).0, Some(INVALID));
    }

    #[test]
    fn the_answer_must_be_a_date() {
        for odd in ["1.0", "", "2025-11-25T", "2025/11/25"] {
            assert_eq!(judged("2025-11-25", &[("2000-01-01", Ok(chooses(odd)))]).0, Some(INVALID), "{odd}");
        }
    }

    #[test]
    fn silence_is_a_failed_call() {
        assert_eq!(judged("2025-11-25", &[]).0, Some(CALL_FAILED));
    }
}
