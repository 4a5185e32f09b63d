//! Version negotiation: an offer is answered with a revision that the server then stands by.

use std::borrow::Cow;

use mcpeval_probe::{Answer, Fault, View};

use crate::{CALL_FAILED, Judged};

/// What the run offered when it opened its primary session, the first opening of this check.
const FIRST_OFFER: &str = "2025-11-25";
/// A revision that never existed.
const UNKNOWN: &str = "2000-01-01";
/// Error codes whose `data.supported` is an answer like any other: parameters declined, revision not supported.
const DECLINED: [i64; 2] = [-32602, -32022];

const ECHOED: &str = "protocol-negotiation-echoed-unknown";
const INVALID: &str = "protocol-negotiation-invalid-version";
const INCONSISTENT: &str = "protocol-negotiation-inconsistent-support";

fn is_date_shaped(revision: &str) -> bool {
    let bytes = revision.as_bytes();
    bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { *byte == b'-' } else { byte.is_ascii_digit() })
}

/// The date-shaped revision that an answer to an opening chooses, or that a refusal lists first.
fn chosen(answer: &Answer) -> Option<String> {
    let date = |revision: Cow<'_, str>| is_date_shaped(&revision).then(|| revision.into_owned());
    match &answer.reply {
        Ok(result) => result.view().member("protocolVersion").and_then(View::string).and_then(date),
        Err(error) if answer.error_code().is_some_and(|code| DECLINED.contains(&code)) => {
            let supported = error.view().member("data")?.member("supported")?.items()?;
            supported.into_iter().filter_map(View::string).find_map(date)
        }
        Err(_) => None,
    }
}

/// Judges the negotiation; `first` is what the primary session's opening was answered with.
pub(crate) fn negotiation(
    first: &str,
    mut greet: impl FnMut(&str) -> Result<Result<Answer, Fault>, Fault>,
) -> Result<Judged, Fault> {
    let mut evidence = Vec::new();
    // Offers a revision and gives what was chosen, or the failed call.
    let mut offer = |revision: &str| -> Result<Result<Option<String>, ()>, Fault> {
        Ok(match greet(revision)? {
            Ok(answer) => {
                evidence.push(answer.exchange);
                Ok(chosen(&answer))
            }
            Err(fault) => {
                evidence.extend(fault.exchange);
                Err(())
            }
        })
    };
    let mut judge = || -> Result<Option<&'static str>, Fault> {
        if !is_date_shaped(first) {
            return Ok(Some(INVALID));
        }
        if first != FIRST_OFFER {
            match offer(first)? {
                Err(()) => return Ok(Some(CALL_FAILED)),
                Ok(again) if again.as_deref() != Some(first) => return Ok(Some(INCONSISTENT)),
                Ok(_) => {}
            }
        }
        let answered = match offer(UNKNOWN)? {
            Err(()) => return Ok(Some(CALL_FAILED)),
            Ok(None) => return Ok(Some(INVALID)),
            Ok(Some(revision)) if revision == UNKNOWN => return Ok(Some(ECHOED)),
            Ok(Some(revision)) => revision,
        };
        // The first revision has already come back when it was offered.
        if answered == first {
            return Ok(None);
        }
        Ok(match offer(&answered)? {
            Err(()) => Some(CALL_FAILED),
            Ok(again) if again.as_ref() != Some(&answered) => Some(INCONSISTENT),
            Ok(_) => None,
        })
    };
    let lost = judge()?;
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
        for code in DECLINED {
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
