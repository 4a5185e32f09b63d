//! A request under way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Answer, Cause, Context, Fault, Hub, Inner, Link, Waiting, message};
use crate::outcome::ExchangeId;

/// How long a notification that tells the server of a cancellation may take to leave.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);

/// A request under way. Dropping it abandons the answer and closes its stream.
#[derive(Debug)]
pub struct Pending {
    session: Arc<Inner>,
    id: u64,
    exchange: ExchangeId,
    deadline: Instant,
    /// Whether the protocol allows to cancel it; the opening may not be.
    cancellable: bool,
    taken: std::sync::atomic::AtomicBool,
}

impl Pending {
    pub(super) fn new(
        session: Arc<Inner>,
        id: u64,
        exchange: ExchangeId,
        deadline: Instant,
        cancellable: bool,
    ) -> Self {
        Self { session, id, exchange, deadline, cancellable, taken: false.into() }
    }

    /// Its JSON-RPC id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether [`Pending::wait`] would return something at once.
    fn is_ready(&self, now: Instant) -> bool {
        let state = self.session.state();
        !matches!(state.waiting.get(&self.id), Some(Waiting::Sent { .. })) || now >= self.deadline
    }

    /// The outcome, if it is there.
    fn take(&self) -> Option<Result<Answer, Fault>> {
        let mut state = self.session.state();
        match state.waiting.get(&self.id) {
            Some(Waiting::Sent { .. }) => None,
            Some(Waiting::Done { .. }) => {
                let Some(Waiting::Done { outcome, at }) = state.waiting.remove(&self.id) else { return None };
                self.taken.store(true, std::sync::atomic::Ordering::Relaxed);
                Some(if at > self.deadline && outcome.is_ok() { Err(self.late()) } else { outcome })
            }
            None => Some(Err(
                Fault::new(Cause::Other, "the answer to this request was already given").citing(self.exchange)
            )),
        }
    }

    fn late(&self) -> Fault {
        Fault::new(Cause::TimedOut, "the server did not answer in time").citing(self.exchange)
    }

    /// Wait for the answer until its deadline.
    pub(super) async fn answer(&self, context: &Context) -> Result<Answer, Fault> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            if let Some(answer) = self.wait(context, left).await? {
                return Ok(answer);
            }
        }
    }

    /// Wait for the answer. None when the wait ran out.
    pub async fn wait(&self, context: &Context, wait: Duration) -> Result<Option<Answer>, Fault> {
        let until = Instant::now() + wait;
        loop {
            let activity = self.session.hub.activity.notified();
            tokio::pin!(activity);
            activity.as_mut().enable();
            if let Some(outcome) = self.take() {
                return self.session.note(outcome).map(Some);
            }
            context.ledger.open()?;
            let now = Instant::now();
            if now >= self.deadline {
                self.give_up().await;
                return self.session.note(Err(self.late()));
            }
            if now >= until {
                return Ok(None);
            }
            let wake = until.min(self.deadline).min(context.ledger.deadline());
            let _ = tokio::time::timeout_at(wake.into(), activity).await;
        }
    }

    async fn give_up(&self) {
        self.session.abandon(self.id);
        if self.cancellable {
            // Whether the server takes it changes nothing any more.
            let _ = self.tell_cancelled(Some("timed out")).await;
        }
    }

    /// Send `notifications/cancelled`; [`Pending::wait`] still tells what came.
    pub async fn cancel(&self, context: &Context, reason: Option<&str>) -> Result<ExchangeId, Fault> {
        context.ledger.open()?;
        let outcome = self.tell_cancelled(reason).await;
        self.session.note(outcome)
    }

    async fn tell_cancelled(&self, reason: Option<&str>) -> Result<ExchangeId, Fault> {
        let reason = reason.map_or_else(String::new, |reason| format!(",\"reason\":{}", message::quoted(reason)));
        let params = format!("{{\"requestId\":{}{reason}}}", self.id);
        let bytes = message::notification("notifications/cancelled", Some(&params));
        self.session.deliver(bytes, true, CANCEL_PATIENCE).await
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.taken.load(std::sync::atomic::Ordering::Relaxed) {
            self.session.abandon(self.id);
        }
    }
}

impl Inner {
    /// Nobody waits for this answer any more: should it come, it is a stray reply.
    fn abandon(&self, id: u64) {
        self.state().waiting.remove(&id);
        if let Link::Http(link) = &self.link {
            link.abandon(id);
        }
    }
}

/// Wait for the first of several requests; gives the positions for which [`Pending::wait`] would not say none.
pub async fn wait_any(hub: &Hub, context: &Context, pending: &[&Pending], wait: Duration) -> Vec<usize> {
    let until = Instant::now() + wait;
    loop {
        let activity = hub.activity.notified();
        tokio::pin!(activity);
        activity.as_mut().enable();
        let now = Instant::now();
        let refused = context.ledger.open().is_err();
        let ready: Vec<usize> = pending
            .iter()
            .enumerate()
            .filter(|(_, pending)| refused || pending.is_ready(now))
            .map(|(index, _)| index)
            .collect();
        if !ready.is_empty() || now >= until || pending.is_empty() {
            return ready;
        }
        let first = pending.iter().map(|pending| pending.deadline).min().unwrap_or(until);
        let wake = until.min(first).min(context.ledger.deadline());
        let _ = tokio::time::timeout_at(wake.into(), activity).await;
    }
}
