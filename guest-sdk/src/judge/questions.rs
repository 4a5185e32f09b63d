//! Calls during which the server asks its client something back.

use std::ops::ControlFlow;

use super::attend::{attend, unread};
use super::{ToolCall, Trial, UNEXPECTED_OUTCOME};
use crate::{
    Answer, CallClass, Case, ExchangeId, Fault, Finding, Incoming, IncomingKind, Json, Options, Outcome, Session,
    Target, View, json, report,
};

/// The error for a question that is none: invalid parameters.
const INVALID_PARAMS: i64 = -32602;

/// A kind that calls a tool on a session of its own, which invites questions of one method.
#[derive(Clone, Copy, Debug)]
pub struct Inquiry {
    /// The capability that the session declares, and no other.
    pub capability: &'static str,
    /// The method of the questions it invites.
    pub method: &'static str,
    /// In this order: questions are valid, they are not too many, the call ends, it succeeds.
    pub checks: &'static [&'static str; 4],
    /// Reasons of the first three checks.
    pub reasons: [&'static str; 3],
}

/// What a call with questions came to.
#[derive(Debug)]
struct Dialogue {
    /// Questions that were asked, the one that broke a rule included.
    asked: u32,
    ending: Ending,
    /// The questions and the answer, to cite.
    evidence: Vec<ExchangeId>,
}

#[derive(Debug)]
enum Ending {
    /// A question was invalid.
    Invalid,
    /// There were more questions than there may be.
    Flood,
    /// The call was not completed although a question had been answered.
    Stalled,
    Answered(Answer),
}

impl Inquiry {
    /// Makes the call of a case and answers each question at once with what `reply` makes of its parameters; `None` says
    /// that they are invalid. `max_questions` are allowed. With `may_fail`, a tool that asked may answer with a tool
    /// error.
    ///
    /// Measures `server_requests`.
    ///
    /// # Errors
    ///
    /// The fault of a call that was not completed though no question of it was answered, and of an answer that is none.
    pub fn run(
        &self,
        target: &Target,
        case: &Case,
        max_questions: u32,
        may_fail: bool,
        reply: impl Fn(View<'_>) -> Option<Json>,
    ) -> Result<Outcome, Fault> {
        let call = ToolCall::of(case)?;
        let capabilities = Json::from(json!({self.capability: {}}));
        let session = target.open(Options { capabilities: Some(capabilities), ..Options::default() })?;
        let Dialogue { asked, ending, evidence } = self.converse(&session, call.params(), max_questions, reply)?;
        report::measure("server_requests", f64::from(asked));
        let mut trial = Trial::new(self.checks);
        trial.attempt(evidence);
        let [valid, bounded, completed, succeeded] = *self.checks;
        let [invalid, flood, stalled] = self.reasons;
        Ok(match ending {
            Ending::Invalid => trial.fail(Finding::fail(valid, invalid)),
            Ending::Flood => trial.fail(Finding::fail(bounded, flood).observed(asked)),
            Ending::Stalled => trial.fail(Finding::fail(completed, stalled)),
            Ending::Answered(answer) => match answer.structured()?.class() {
                CallClass::Success => trial.pass(),
                CallClass::ToolError if may_fail && asked > 0 => trial.pass(),
                _ => trial.fail(Finding::fail(succeeded, UNEXPECTED_OUTCOME.label)),
            },
        })
    }

    fn converse(
        &self,
        session: &Session,
        params: &Json,
        max_questions: u32,
        reply: impl Fn(View<'_>) -> Option<Json>,
    ) -> Result<Dialogue, Fault> {
        let mut asked = 0;
        let mut evidence = Vec::new();
        // The fault of a reply that the server did not take explains a call that does not end.
        let (mut replied, mut untaken) = (false, None);
        let mut heed = |incoming: &Incoming| {
            if !self.is_question(incoming) {
                return Ok(ControlFlow::Continue(()));
            }
            asked += 1;
            evidence.push(incoming.exchange);
            let answer = incoming.message.view().member("params").and_then(&reply);
            let declined = Json::from(json!({"code": INVALID_PARAMS, "message": "Invalid params"}));
            match session.reply(incoming.exchange, answer.as_ref().ok_or(&declined)) {
                Ok(_) => replied = true,
                Err(fault) => untaken = Some(fault.unless_refused()?),
            }
            Ok(if answer.is_none() {
                ControlFlow::Break(Ending::Invalid)
            } else if asked > max_questions {
                ControlFlow::Break(Ending::Flood)
            } else {
                ControlFlow::Continue(())
            })
        };
        let pending = session.start("tools/call", params)?;
        let ended = match attend(session, &pending, &mut heed) {
            Ok(ControlFlow::Break(ending)) => Ok(ending),
            // Questions that came before the answer count, read or not.
            Ok(ControlFlow::Continue(answer)) => Ok(match unread(session, &mut heed)? {
                ControlFlow::Break(ending) => ending,
                ControlFlow::Continue(()) => Ending::Answered(answer),
            }),
            Err(fault) => Err(fault.unless_refused()?),
        };
        let ending = match ended {
            Ok(ending) => ending,
            Err(fault) if replied => {
                evidence.extend(fault.exchange);
                Ending::Stalled
            }
            Err(fault) => return Err(untaken.unwrap_or(fault)),
        };
        if let Ending::Answered(answer) = &ending {
            evidence.push(answer.exchange);
        }
        Ok(Dialogue { asked, ending, evidence })
    }

    fn is_question(&self, incoming: &Incoming) -> bool {
        incoming.kind == IncomingKind::Request
            && incoming
                .message
                .view()
                .member("method")
                .and_then(View::string)
                .is_some_and(|method| method == self.method)
    }
}
