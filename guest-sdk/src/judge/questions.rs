//! A call during which the server asks its client something back.

use std::ops::ControlFlow;

use super::attend::{attend, unread};
use crate::{Answer, ExchangeId, Fault, Incoming, IncomingKind, Json, Session, View, json};

/// The error for a question that is none: invalid parameters.
const INVALID_PARAMS: i64 = -32602;

/// What is wrong with what the server asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misasked {
    /// The question's parameters are invalid.
    Invalid,
    /// More questions than there may be.
    Flood,
}

/// What a call with questions came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialogue {
    /// Questions that were asked, the one that broke a rule included.
    pub asked: u32,
    /// How the call ended, if the questions were in order.
    pub ending: Result<Ending, Misasked>,
    /// The questions and the answer, to cite.
    pub evidence: Vec<ExchangeId>,
}

/// How a call ended whose questions were in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// It was answered.
    Answered(Answer),
    /// It was not completed although at least one question had been answered.
    Stalled,
}

/// Makes a call on a session that invites the questions of `method`, and answers each at once with what `reply` makes of
/// its parameters; `None` says that they are invalid.
///
/// # Errors
///
/// A refusal of the host, and the fault of a call that was not completed though no question of it was answered.
pub fn converse(
    session: &Session,
    params: &Json,
    method: &str,
    max_questions: u32,
    reply: impl Fn(View<'_>) -> Option<Json>,
) -> Result<Dialogue, Fault> {
    let mut asked = 0;
    let mut evidence = Vec::new();
    // The fault of an answer that the server did not take, which explains a call that does not end.
    let (mut answered, mut untaken) = (false, None);
    let mut heed = |incoming: Incoming| {
        let is_question = incoming.kind == IncomingKind::Request && is_method(&incoming, method);
        if !is_question {
            return Ok(ControlFlow::Continue(()));
        }
        asked += 1;
        evidence.push(incoming.exchange);
        let answer = incoming.message.view().member("params").and_then(&reply);
        let misasked = match &answer {
            None => Some(Misasked::Invalid),
            Some(_) if asked > max_questions => Some(Misasked::Flood),
            Some(_) => None,
        };
        let declined = Json::from(json!({"code": INVALID_PARAMS, "message": "Invalid params"}));
        match session.reply(incoming.exchange, answer.as_ref().ok_or(&declined)) {
            Ok(_) => answered = true,
            Err(fault) => untaken = Some(fault.unless_refused()?),
        }
        Ok(misasked.map_or(ControlFlow::Continue(()), ControlFlow::Break))
    };
    let pending = session.start("tools/call", params)?;
    let ended = match attend(session, &pending, &mut heed) {
        Ok(ControlFlow::Break(misasked)) => Ok(Err(misasked)),
        // Questions that came before the answer count, read or not.
        Ok(ControlFlow::Continue(answer)) => match unread(session, &mut heed)? {
            ControlFlow::Break(misasked) => Ok(Err(misasked)),
            ControlFlow::Continue(()) => Ok(Ok(Ending::Answered(answer))),
        },
        Err(fault) => Err(fault.unless_refused()?),
    };
    let ending = match ended {
        Ok(ending) => ending,
        Err(fault) if answered => {
            evidence.extend(fault.exchange);
            Ok(Ending::Stalled)
        }
        Err(fault) => return Err(untaken.unwrap_or(fault)),
    };
    if let Ok(Ending::Answered(answer)) = &ending {
        evidence.push(answer.exchange);
    }
    Ok(Dialogue { asked, ending, evidence })
}

fn is_method(incoming: &Incoming, method: &str) -> bool {
    incoming.message.view().member("method").and_then(View::string).is_some_and(|asked| asked == method)
}
