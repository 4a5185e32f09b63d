//! A well-formed MCP conversation over a wire: ids and correlation, pending requests, inbox, the answers the host
//! gives by itself, the catalog and the policy. Knows nothing of components and verdicts.
//!
//! Everything a server sends is numbered in the transcript before it is understood. No number of requests,
//! notifications, stray replies or lines of noise ends a conversation.

pub mod catalog;
pub mod fault;
mod handshake;
mod inbox;
mod link_http;
mod link_stdio;
pub mod listing;
pub mod message;
pub mod object;
mod pending;
pub mod policy;
pub mod revision;
pub mod target;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};

use crate::ledger::Ledger;
use crate::outcome::ExchangeId;
use crate::transcript::{Direction, Transcript};

pub use fault::{Answer, Cause, Fault, Incoming, IncomingKind, Refusal, Tally};
pub use handshake::Options;
pub(crate) use link_http::fault as http_fault;
pub use pending::{Pending, wait_any};
pub use policy::{Denial, Policy, Watch};
pub use target::Target;

use inbox::Inbox;
use message::{Message, Reply};
use revision::Revision;

/// Answers of the host to requests of the server that may wait to be sent. Beyond it the server is flooding, and
/// further answers are not given.
const WAITING_ANSWERS: usize = 256;

/// The error that the host gives to a request nobody invited.
const METHOD_NOT_FOUND: &str = r#"{"code":-32601,"message":"Method not found"}"#;

/// What one run may spend and do. Each run has its own, also on a conversation that runs share.
#[derive(Debug, Clone)]
pub struct Context {
    /// What is left.
    pub ledger: Arc<Ledger>,
    /// Which tools may be called.
    pub policy: Arc<Policy>,
}

/// What all conversations of one evaluation share.
#[derive(Debug, Default)]
pub struct Hub {
    /// The record.
    pub transcript: Transcript,
    /// Rung whenever something arrived or ended, on any conversation.
    activity: Notify,
    /// The end of stderr of the process that ended last, for people.
    last_stderr: Mutex<Vec<u8>>,
    conversations: AtomicU32,
    watch: Arc<Watch>,
}

impl Hub {
    /// What the listings on all conversations declared so far, for the policy.
    pub fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }

    pub(crate) fn next_conversation(&self) -> u32 {
        self.conversations.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    fn ring(&self) {
        self.activity.notify_waiters();
    }

    /// The end of stderr of the process that ended last.
    pub fn last_stderr(&self) -> Vec<u8> {
        self.last_stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A conversation. Cheap to clone: every clone is the same conversation. [`Session::end`] ends it in steps; a
/// conversation whose last clone is dropped before that is cut off.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    number: u32,
    hub: Arc<Hub>,
    link: Link,
    state: Mutex<State>,
    opening: OnceLock<Opening>,
    answers: mpsc::Sender<Vec<u8>>,
}

#[derive(Debug)]
enum Link {
    Stdio(link_stdio::StdioLink),
    Http(link_http::HttpLink),
}

#[derive(Debug)]
struct Opening {
    revision: Revision,
    greeting: Arc<str>,
    /// From launch to the end of the opening; known a little later than the rest.
    startup: Mutex<Duration>,
}

#[derive(Debug)]
struct State {
    next_id: u64,
    waiting: HashMap<u64, Waiting>,
    inbox: Inbox,
    tally: Tally,
    /// Raw ids of the server's requests that wait for the probe's reply.
    unanswered: HashMap<ExchangeId, String>,
    closed: Option<Fault>,
    tainted: bool,
    invited: Invited,
    batches: bool,
    payer: Arc<Ledger>,
}

#[derive(Debug)]
enum Waiting {
    Sent { at: Instant, exchange: ExchangeId, lists: bool },
    Done { outcome: Result<Answer, Fault>, at: Instant },
}

/// Requests of the server, by the client capability that invites them.
const INVITATIONS: [(&str, &str); 3] =
    [("sampling", "sampling/createMessage"), ("elicitation", "elicitation/create"), ("roots", "roots/list")];

/// Which requests of the server wait for the probe.
#[derive(Debug, Clone)]
enum Invited {
    Everything,
    Methods(Vec<&'static str>),
}

impl Invited {
    fn from_capabilities(capabilities: &str, manual: bool) -> Self {
        if manual {
            return Self::Everything;
        }
        let declared: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(capabilities).unwrap_or_default();
        let invited = INVITATIONS.into_iter().filter(|(capability, _)| declared.contains_key(*capability));
        Self::Methods(invited.map(|(_, method)| method).collect())
    }

    fn covers(&self, method: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Methods(methods) => methods.contains(&method),
        }
    }
}

/// Where a message came from.
#[derive(Debug, Clone, Copy, Default)]
struct Origin {
    /// The request whose HTTP response it stood in.
    request: Option<u64>,
    /// The status of that response.
    status: Option<u16>,
}

impl Session {
    /// Number of this conversation in the transcript.
    pub fn number(&self) -> u32 {
        self.inner.number
    }

    /// The server's result to the opening, as it came.
    pub fn greeting(&self) -> Arc<str> {
        self.inner.opening.get().map_or_else(|| "{}".into(), |opening| Arc::clone(&opening.greeting))
    }

    /// The negotiated revision.
    pub fn revision(&self) -> &'static str {
        self.inner.opening.get().map_or(revision::OFFERED.date, |opening| opening.revision.date)
    }

    /// How this conversation began.
    pub fn lifecycle(&self) -> revision::Lifecycle {
        self.inner.opening.get().map_or(revision::OFFERED.lifecycle, |opening| opening.revision.lifecycle)
    }

    /// From launch to the end of the opening.
    pub fn startup(&self) -> Duration {
        self.inner
            .opening
            .get()
            .map_or(Duration::ZERO, |opening| *opening.startup.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the next step should have a fresh conversation: a fault happened here, or the connection ended.
    pub fn is_tainted(&self) -> bool {
        let state = self.inner.state();
        state.tainted || state.closed.is_some()
    }

    /// Totals so far.
    pub fn tally(&self) -> Tally {
        self.inner.state().tally
    }

    /// Send a request and wait for its answer.
    pub async fn request(
        &self,
        context: &Context,
        method: &str,
        params: Option<&str>,
        timeout: Duration,
    ) -> Result<Answer, Fault> {
        let pending = self.start(context, method, params, timeout).await?;
        pending.answer(context).await
    }

    /// Send a request. `params` is one JSON value on one line.
    pub async fn start(
        &self,
        context: &Context,
        method: &str,
        params: Option<&str>,
        timeout: Duration,
    ) -> Result<Pending, Fault> {
        context.policy.permits(method, params)?;
        self.inner.start(context, method, params, timeout).await
    }

    /// Send a notification; over HTTP this waits until the server has taken it.
    pub async fn notify(
        &self,
        context: &Context,
        method: &str,
        params: Option<&str>,
        timeout: Duration,
    ) -> Result<ExchangeId, Fault> {
        context.policy.permits(method, params)?;
        context.ledger.open()?;
        self.inner.pay_with(context);
        let outcome = self.inner.deliver(message::notification(method, params), true, timeout).await;
        self.inner.note(outcome)
    }

    /// Open the HTTP stream for messages that belong to no request; false where there is none to open.
    pub async fn listen(&self, context: &Context, timeout: Duration) -> Result<bool, Fault> {
        context.ledger.open()?;
        self.inner.pay_with(context);
        match &self.inner.link {
            Link::Stdio(_) => Ok(false),
            Link::Http(link) => link.listen(&self.inner, timeout).await,
        }
    }

    /// The next message that answers nothing. None when the wait ran out, or as soon as an answer is ready.
    pub async fn receive(&self, context: &Context, wait: Duration) -> Result<Option<Incoming>, Fault> {
        let until = Instant::now() + wait;
        loop {
            let activity = self.inner.hub.activity.notified();
            tokio::pin!(activity);
            activity.as_mut().enable();
            {
                let mut state = self.inner.state();
                if let Some(incoming) = state.inbox.take() {
                    return Ok(Some(incoming));
                }
                if state.waiting.values().any(|waiting| matches!(waiting, Waiting::Done { .. })) {
                    return Ok(None);
                }
                if let Some(fault) = &state.closed {
                    return Err(fault.clone());
                }
            }
            context.ledger.open()?;
            if Instant::now() >= until {
                return Ok(None);
            }
            let wake = until.min(context.ledger.deadline());
            let _ = tokio::time::timeout_at(wake.into(), activity).await;
        }
    }

    /// Answer a request that [`Session::receive`] gave. The outcome is one JSON value on one line.
    pub async fn reply(
        &self,
        context: &Context,
        request: ExchangeId,
        outcome: Result<&str, &str>,
        timeout: Duration,
    ) -> Result<ExchangeId, Fault> {
        context.ledger.open()?;
        let id = self.inner.state().unanswered.remove(&request);
        let Some(id) = id else {
            return Err(Fault::new(Cause::Other, "no request of the server with this number waits for a reply"));
        };
        let outcome = self.inner.deliver(message::response(&id, outcome), false, timeout).await;
        self.inner.note(outcome)
    }

    /// End the conversation: over stdio the process in steps, over HTTP with DELETE. Returns when nothing is left.
    pub async fn end(&self) {
        match &self.inner.link {
            Link::Stdio(link) => {
                link.end().await;
                let tail = link.wire().stderr().tail;
                *self.inner.hub.last_stderr.lock().unwrap_or_else(PoisonError::into_inner) = tail;
            }
            Link::Http(link) => link.end().await,
        }
        self.inner.close(Fault::new(Cause::Closed, "the conversation was ended"));
    }

    /// The last bytes of the server's stderr; empty over HTTP.
    pub fn stderr(&self) -> Vec<u8> {
        match &self.inner.link {
            Link::Stdio(link) => link.wire().stderr().tail,
            Link::Http(_) => Vec::new(),
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pay_with(&self, context: &Context) {
        let mut state = self.state();
        if !Arc::ptr_eq(&state.payer, &context.ledger) {
            state.payer = Arc::clone(&context.ledger);
        }
    }

    fn note<T>(&self, outcome: Result<T, Fault>) -> Result<T, Fault> {
        if outcome.as_ref().is_err_and(|fault| fault.cause.taints()) {
            self.state().tainted = true;
        }
        outcome
    }

    fn record_sent(&self, bytes: &[u8]) -> ExchangeId {
        self.hub.transcript.record(Direction::Sent, self.number, bytes)
    }

    /// Charge and send a request.
    async fn start(
        self: &Arc<Self>,
        context: &Context,
        method: &str,
        params: Option<&str>,
        timeout: Duration,
    ) -> Result<Pending, Fault> {
        if let Some(fault) = &self.state().closed {
            return Err(Fault { exchange: None, ..fault.clone() });
        }
        context.ledger.request()?;
        self.pay_with(context);
        let id = {
            let mut state = self.state();
            state.next_id += 1;
            state.next_id
        };
        let bytes = message::request(id, method, params);
        let exchange = self.record_sent(&bytes);
        let at = Instant::now();
        self.state().waiting.insert(id, Waiting::Sent { at, exchange, lists: method == listing::LIST });
        match &self.link {
            Link::Stdio(link) => link.start(self, id, bytes).await,
            Link::Http(link) => link.start(self, id, bytes),
        }
        Ok(Pending::new(Arc::clone(self), id, exchange, at + timeout, method != handshake::INITIALIZE))
    }

    /// Send a notification or a response.
    async fn deliver(
        self: &Arc<Self>,
        bytes: Vec<u8>,
        is_notification: bool,
        timeout: Duration,
    ) -> Result<ExchangeId, Fault> {
        if let Some(fault) = &self.state().closed {
            return Err(Fault { exchange: None, ..fault.clone() });
        }
        let exchange = self.record_sent(&bytes);
        let sending = async {
            match &self.link {
                Link::Stdio(link) => link.send(bytes).await,
                Link::Http(link) => link.deliver(self, bytes, is_notification).await,
            }
        };
        match tokio::time::timeout(timeout, sending).await {
            Ok(Ok(())) => Ok(exchange),
            Ok(Err(fault)) => Err(Fault { exchange: fault.exchange.or(Some(exchange)), ..fault }),
            Err(_) => Err(Fault::new(Cause::TimedOut, "the server did not take a message in time").citing(exchange)),
        }
    }

    /// Take in one message as it came. Tells whether it answered the request it came for.
    fn take_in(self: &Arc<Self>, bytes: &[u8], at: Instant, origin: Origin) -> bool {
        self.state().payer.received(bytes.len() as u64);
        let exchange = self.hub.transcript.record(Direction::Received, self.number, bytes);
        let answered = self.understand(bytes, exchange, at, origin);
        self.hub.ring();
        answered
    }

    /// Take in bytes that are no message whatever they hold.
    fn take_in_noise(&self, bytes: &[u8]) {
        self.state().payer.received(bytes.len() as u64);
        let exchange = self.hub.transcript.record(Direction::Received, self.number, bytes);
        self.keep(IncomingKind::Noise, bytes, exchange);
        self.hub.ring();
    }

    fn understand(self: &Arc<Self>, bytes: &[u8], exchange: ExchangeId, at: Instant, origin: Origin) -> bool {
        let Some(message) = message::read(bytes) else {
            let batch = self.state().batches.then(|| message::read_batch(bytes)).flatten();
            let Some(items) = batch else {
                self.keep(IncomingKind::Noise, bytes, exchange);
                return false;
            };
            let mut answered = false;
            for item in items.into_iter().map(str::as_bytes) {
                // One level: the elements of a batch are no batches.
                match message::read(item) {
                    Some(message) => answered |= self.sort(message, item, exchange, at, origin),
                    None => drop(self.keep(IncomingKind::Noise, item, exchange)),
                }
            }
            return answered;
        };
        self.sort(message, bytes, exchange, at, origin)
    }

    fn sort(
        self: &Arc<Self>,
        message: Message<'_>,
        bytes: &[u8],
        exchange: ExchangeId,
        at: Instant,
        origin: Origin,
    ) -> bool {
        match message {
            Message::Reply { id: Some(id), outcome } if self.is_waiting(id) => {
                let outcome = match outcome {
                    Ok(Reply::Result(text)) => {
                        if matches!(self.state().waiting.get(&id), Some(Waiting::Sent { lists: true, .. })) {
                            self.hub.watch.see(listing::writers(text));
                        }
                        Ok(Ok(text))
                    }
                    Ok(Reply::Error(text)) => Ok(Err(text)),
                    Err(why) => Err(Fault::new(Cause::Malformed, why).citing(exchange)),
                };
                self.settle(id, exchange, at, origin.status, outcome);
                origin.request == Some(id)
            }
            Message::Unaddressed { error: Some(error) } if origin.request.is_some_and(|id| self.is_waiting(id)) => {
                let Some(id) = origin.request else { return false };
                self.settle(id, exchange, at, origin.status, Ok(Err(error)));
                true
            }
            Message::Reply { .. } | Message::Unaddressed { .. } => {
                self.keep(IncomingKind::StrayReply, bytes, exchange);
                false
            }
            Message::Notification { .. } => {
                self.keep(IncomingKind::Notification, bytes, exchange);
                false
            }
            Message::Request { id, method } => {
                self.take_request(id, &method, bytes, exchange);
                false
            }
        }
    }

    fn take_request(&self, id: &str, method: &str, bytes: &[u8], exchange: ExchangeId) {
        let is_invited = self.state().invited.covers(method);
        if is_invited {
            if self.keep(IncomingKind::Request, bytes, exchange) {
                self.state().unanswered.insert(exchange, id.to_owned());
            }
            return;
        }
        self.keep(IncomingKind::AnsweredRequest, bytes, exchange);
        let outcome = if method == "ping" { Ok("{}") } else { Err(METHOD_NOT_FOUND) };
        // Full means that the server asks faster than it reads.
        let _ = self.answers.try_send(message::response(id, outcome));
    }

    fn keep(&self, kind: IncomingKind, bytes: &[u8], exchange: ExchangeId) -> bool {
        let mut state = self.state();
        let tally = &mut state.tally;
        let counter = match kind {
            IncomingKind::Request | IncomingKind::AnsweredRequest => &mut tally.requests,
            IncomingKind::Notification => &mut tally.notifications,
            IncomingKind::StrayReply => &mut tally.stray_replies,
            IncomingKind::Noise => &mut tally.noise,
        };
        *counter = counter.saturating_add(1);
        let kept = state.inbox.put(kind, bytes, exchange);
        if !kept {
            state.tally.dropped = state.tally.dropped.saturating_add(1);
        }
        kept
    }

    fn is_waiting(&self, id: u64) -> bool {
        matches!(self.state().waiting.get(&id), Some(Waiting::Sent { .. }))
    }

    fn settle(
        &self,
        id: u64,
        exchange: ExchangeId,
        at: Instant,
        status: Option<u16>,
        outcome: Result<Result<&str, &str>, Fault>,
    ) {
        let mut state = self.state();
        let Some(Waiting::Sent { at: sent, .. }) = state.waiting.get(&id) else { return };
        let elapsed = at.saturating_duration_since(*sent);
        let elapsed_us = u32::try_from(elapsed.as_micros()).unwrap_or(u32::MAX);
        let outcome = outcome.map(|reply| Answer {
            exchange,
            elapsed_us,
            status,
            reply: reply.map(Arc::from).map_err(Arc::from),
        });
        state.waiting.insert(id, Waiting::Done { outcome, at });
    }

    /// End the wait of one request with a fault.
    fn fail(&self, id: u64, fault: Fault) {
        {
            let mut state = self.state();
            let Some(Waiting::Sent { exchange, .. }) = state.waiting.get(&id) else { return };
            let fault = Fault { exchange: fault.exchange.or(Some(*exchange)), ..fault };
            state.waiting.insert(id, Waiting::Done { outcome: Err(fault), at: Instant::now() });
        }
        self.hub.ring();
    }

    /// The connection is over: every request that waits fails.
    fn close(&self, fault: Fault) {
        {
            let mut state = self.state();
            if state.closed.is_some() {
                return;
            }
            let now = Instant::now();
            for waiting in state.waiting.values_mut() {
                if let Waiting::Sent { exchange, .. } = waiting {
                    let fault = Fault { exchange: Some(*exchange), ..fault.clone() };
                    *waiting = Waiting::Done { outcome: Err(fault), at: now };
                }
            }
            state.closed = Some(fault);
        }
        self.hub.ring();
    }
}
