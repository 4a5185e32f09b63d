//! Version negotiation: an offer is answered with a revision that the server then stands by.

use std::borrow::Cow;

use crate::{Answer, View};

/// The revision that a conversation offers first.
pub const FIRST_OFFER: &str = "2025-11-25";

/// Revisions that mcpeval speaks: a server that agrees to one of them agrees to something that exists.
const SPOKEN: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", FIRST_OFFER];
/// Error codes whose `data.supported` is an answer like any other: parameters declined, revision not supported.
const DECLINED: [i64; 2] = [-32602, -32022];

/// What is wrong with a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// An offer was not answered with a revision.
    Invalid,
    /// A revision that does not exist was agreed to.
    Echoed,
    /// A revision that the server answered with is not answered with itself.
    Inconsistent,
}

/// What a negotiation came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiation {
    /// What is wrong with the answer to the last offer.
    pub breach: Option<Breach>,
    /// Offers that were made, each on a connection of its own.
    pub offers: u32,
}

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

/// Judges the negotiation: of [`FIRST_OFFER`], whose answer may already be known as `first`, then of the revision
/// `unknown`. What is answered must come back when it is offered.
///
/// # Errors
///
/// Those of `offer`, which makes one offer on a fresh connection.
pub fn negotiate<E>(
    first: Option<&str>,
    unknown: &str,
    mut offer: impl FnMut(&str) -> Result<Answer, E>,
) -> Result<Negotiation, E> {
    let mut offers = 0;
    let mut offer = |revision: &str| {
        offers += 1;
        offer(revision).map(|answer| chosen(&answer))
    };
    let mut judge = || -> Result<Option<Breach>, E> {
        let first = match first {
            Some(known) => Some(known.to_owned()).filter(|known| is_date_shaped(known)),
            None => offer(FIRST_OFFER)?,
        };
        let Some(first) = first else { return Ok(Some(Breach::Invalid)) };
        if first != FIRST_OFFER && offer(&first)?.as_ref() != Some(&first) {
            return Ok(Some(Breach::Inconsistent));
        }
        let Some(answered) = offer(unknown)? else { return Ok(Some(Breach::Invalid)) };
        if answered == unknown {
            return Ok((!SPOKEN.contains(&unknown)).then_some(Breach::Echoed));
        }
        // The first revision has already come back when it was offered.
        if answered != first && offer(&answered)?.as_ref() != Some(&answered) {
            return Ok(Some(Breach::Inconsistent));
        }
        Ok(None)
    };
    let breach = judge()?;
    Ok(Negotiation { breach, offers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, json};

    #[test]
    fn the_first_offer_may_be_made_here() {
        let mut offered = Vec::new();
        let agrees = |revision: &str| {
            offered.push(revision.to_owned());
            let chosen = if SPOKEN.contains(&revision) { revision } else { "2025-06-18" };
            let reply = Ok(Json::from(json!({"protocolVersion": chosen})));
            Ok::<_, ()>(Answer { exchange: 1, elapsed_us: 1, status: None, reply })
        };
        assert_eq!(negotiate(None, "2000-01-01", agrees), Ok(Negotiation { breach: None, offers: 3 }));
        assert_eq!(offered, ["2025-11-25", "2000-01-01", "2025-06-18"]);
    }

    #[test]
    fn an_unusable_first_answer_is_invalid_at_once() {
        let says = |_: &str| {
            let reply = Err(Json::from(json!({"code": -32603, "message": "no"})));
            Ok::<_, ()>(Answer { exchange: 1, elapsed_us: 1, status: None, reply })
        };
        assert_eq!(negotiate(None, "2000-01-01", says), Ok(Negotiation { breach: Some(Breach::Invalid), offers: 1 }));
        assert_eq!(negotiate(None, "2000-01-01", |_| Err(7)), Err(7));
    }

    #[test]
    fn a_spoken_revision_may_come_back() {
        let echoes = |revision: &str| {
            let reply = Ok(Json::from(json!({"protocolVersion": revision})));
            Ok::<_, ()>(Answer { exchange: 1, elapsed_us: 1, status: None, reply })
        };
        let breach = |unknown| negotiate(None, unknown, echoes).unwrap().breach;
        assert_eq!(breach("2024-11-05"), None);
        assert_eq!(breach("2024-11-06"), Some(Breach::Echoed));
    }
}
