//! The run's conversation: replaced after a fault, given up when none can be opened.

use mcpeval_probe::{Answer, Fault, Options, Params, Session, Target};

/// The primary session and what became of it.
#[derive(Debug)]
pub(crate) struct Talk<'a> {
    target: &'a Target,
    session: Option<Session>,
    /// Why no session can be opened any more.
    gone: Option<Fault>,
    requests: u32,
    completed: u32,
    /// Of the sessions that were replaced; none while no session was ever open.
    odd_acks: Option<u32>,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(target: &'a Target) -> Self {
        Self { target, session: None, gone: None, requests: 0, completed: 0, odd_acks: None }
    }

    /// Sends a request on the current session, or on a fresh one after a fault.
    pub(crate) fn ask(&mut self, method: &str, params: impl Params) -> Result<Result<Answer, Fault>, Fault> {
        if let Some(fault) = &self.gone {
            return Ok(Err(fault.clone()));
        }
        let session = match self.session.take() {
            Some(session) => session,
            None => match self.target.primary() {
                Ok(session) => session,
                Err(fault) => {
                    let fault = fault.unless_refused()?;
                    self.gone = Some(fault.clone());
                    return Ok(Err(fault));
                }
            },
        };
        self.requests += 1;
        match session.request(method, params) {
            Ok(answer) => {
                self.completed += 1;
                self.session = Some(session);
                Ok(Ok(answer))
            }
            Err(fault) => {
                self.odd_acks = Some(self.odd_acks.unwrap_or(0).saturating_add(session.tally().odd_acks));
                Ok(Err(fault.unless_refused()?))
            }
        }
    }

    /// Offers a revision on a connection of its own.
    pub(crate) fn greet(&mut self, revision: &str) -> Result<Result<Answer, Fault>, Fault> {
        if let Some(fault) = &self.gone {
            return Ok(Err(fault.clone()));
        }
        self.requests += 1;
        match self.target.greet(Options::offer(revision)) {
            Ok(answer) => {
                self.completed += 1;
                Ok(Ok(answer))
            }
            Err(fault) => Ok(Err(fault.unless_refused()?)),
        }
    }

    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    pub(crate) fn completed_any(&self) -> bool {
        self.completed > 0
    }

    /// Notifications of all sessions that were accepted with another status than 202; `None` if there was no session.
    pub(crate) fn odd_acks(&self) -> Option<u32> {
        let current = self.session.as_ref().map(|session| session.tally().odd_acks);
        match (self.odd_acks, current) {
            (None, None) => None,
            (before, now) => Some(before.unwrap_or(0).saturating_add(now.unwrap_or(0))),
        }
    }
}
