//! The server under test, conversations with it, and requests under way.

use crate::backend::session;
use crate::bindings::mcpeval::probe::session as contract;
use crate::{Allowance, Answer, Cause, ExchangeId, Fault, IncomingKind, Isolation, Json, Listing, Params, Tally, Tool};

impl Fault {
    /// The case lacks what its config schema requires, or has it in another type: a mistake of the host.
    pub(crate) fn incomplete(field: &str) -> Self {
        Self { cause: Cause::Other, exchange: None, detail: format!("the case has no usable {field}") }
    }

    /// Whether the host declined to act: nothing was sent, and nothing will be.
    pub fn is_refusal(&self) -> bool {
        matches!(self.cause, Cause::Refused(_))
    }

    /// Whether the server replied to this very request, although with no valid response: a sign of life.
    pub fn is_reply(&self) -> bool {
        matches!(self.cause, Cause::Malformed)
    }

    /// The server's fault, to be judged; a refusal is the error that ends the run: what was not sent says nothing about
    /// the server.
    pub fn unless_refused(self) -> Result<Self, Self> {
        if self.is_refusal() { Err(self) } else { Ok(self) }
    }
}

/// What is known of the server when the run begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `stdio` or `http`.
    pub transport: String,
    /// The negotiated protocol revision.
    pub revision: String,
    /// `handshake` or `stateless`.
    pub lifecycle: String,
    /// Whether a new session is a new process or the same server.
    pub isolation: Isolation,
    /// From launch to the end of the opening, in milliseconds.
    pub startup_ms: u32,
    /// The server's result to the opening.
    pub greeting: Json,
}

/// How to open a session; the default offers the run's revision and declares no capabilities.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Protocol revision to offer instead of the run's own.
    pub revision: Option<String>,
    /// Client capabilities to declare.
    pub capabilities: Option<Json>,
    /// Leave every request of the server to the probe, `ping` included.
    pub manual: bool,
}

impl Options {
    /// Offers this protocol revision.
    pub fn offer(revision: &str) -> Self {
        Self { revision: Some(revision.to_owned()), ..Self::default() }
    }

    fn into_contract(self) -> contract::Options {
        let capabilities = self.capabilities.map(|capabilities| capabilities.as_str().to_owned());
        contract::Options { revision: self.revision, capabilities, manual: self.manual }
    }
}

/// Something the server sent that answers nothing, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Its number in the transcript.
    pub exchange: ExchangeId,
    /// What it is.
    pub kind: IncomingKind,
    /// The message; no JSON if it is noise.
    pub message: Json,
}

/// The server under test, given for one run.
#[derive(Debug)]
pub struct Target(session::Target);

impl Target {
    pub(crate) fn new(target: session::Target) -> Self {
        Self(target)
    }

    pub(crate) fn contract(&self) -> &session::Target {
        &self.0
    }

    /// What is known of the server.
    pub fn facts(&self) -> Facts {
        let facts = self.0.facts();
        Facts {
            transport: facts.transport,
            revision: facts.revision,
            lifecycle: facts.lifecycle,
            isolation: facts.isolation,
            startup_ms: facts.startup_ms,
            greeting: Json::from_contract(facts.greeting),
        }
    }

    /// What may still be spent.
    pub fn remaining(&self) -> Allowance {
        self.0.remaining()
    }

    /// The catalog as listed when the run began, in listing order, repeated names included.
    pub fn tools(&self) -> Vec<Tool> {
        self.0.tools()
    }

    /// The whole entry at a position of [`Target::tools`]; a position beyond it traps.
    pub fn entry(&self, position: u32) -> Json {
        Json::from_contract(self.0.entry(position))
    }

    /// How the listing went.
    pub fn listing(&self) -> Listing {
        self.0.listing()
    }

    /// Valid arguments for a tool, if there are any to be had.
    pub fn arguments(&self, tool: &str) -> Option<Json> {
        self.0.arguments(tool).map(Json::from_contract)
    }

    /// The session that cases share, or a fresh one in its place after a fault.
    pub fn primary(&self) -> Result<Session, Fault> {
        self.0.primary().map(Session)
    }

    /// A session of its own.
    pub fn open(&self, options: Options) -> Result<Session, Fault> {
        self.0.open(&options.into_contract()).map(Session)
    }

    /// Only the opening, on a connection of its own that then ends.
    pub fn greet(&self, options: Options) -> Result<Answer, Fault> {
        self.0.greet(&options.into_contract()).map(Answer::from_contract)
    }
}

/// A conversation. Dropping it ends it in steps and waits for the process.
#[derive(Debug)]
pub struct Session(session::Session);

impl Session {
    /// The server's result to the opening.
    pub fn greeting(&self) -> Json {
        Json::from_contract(self.0.greeting())
    }

    /// Sends a request and waits for the answer as long as the case says.
    ///
    /// ```no_run
    /// # use mcpeval_probe::{Fault, Session, json};
    /// # fn example(session: &Session) -> Result<(), Fault> {
    /// let pong = session.request("ping", ())?;
    /// let page = session.request("resources/list", json!({"cursor": "2"}))?;
    /// # Ok(()) }
    /// ```
    pub fn request(&self, method: &str, params: impl Params) -> Result<Answer, Fault> {
        self.0.request(method, params.text().as_deref(), None).map(Answer::from_contract)
    }

    /// As [`Session::request`], with a wait of its own in milliseconds.
    pub fn request_within(&self, method: &str, params: impl Params, timeout_ms: u32) -> Result<Answer, Fault> {
        self.0.request(method, params.text().as_deref(), Some(timeout_ms)).map(Answer::from_contract)
    }

    /// Sends a request and returns at once.
    pub fn start(&self, method: &str, params: impl Params) -> Result<Pending, Fault> {
        self.0.start(method, params.text().as_deref(), None).map(Pending)
    }

    /// As [`Session::start`], with a wait of its own in milliseconds.
    pub fn start_within(&self, method: &str, params: impl Params, timeout_ms: u32) -> Result<Pending, Fault> {
        self.0.start(method, params.text().as_deref(), Some(timeout_ms)).map(Pending)
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: impl Params) -> Result<ExchangeId, Fault> {
        self.0.notify(method, params.text().as_deref())
    }

    /// Opens the HTTP stream for messages that belong to no request; false where there is none to open.
    pub fn listen(&self) -> Result<bool, Fault> {
        self.0.listen()
    }

    /// The next message that answers nothing; `None` when the wait ran out, or as soon as an answer of this session is
    /// ready.
    pub fn receive(&self, wait_ms: u32) -> Result<Option<Incoming>, Fault> {
        let incoming = self.0.receive(wait_ms)?;
        Ok(incoming.map(|incoming| Incoming {
            exchange: incoming.exchange,
            kind: incoming.kind,
            message: Json::from_contract(incoming.message),
        }))
    }

    /// Answers a request that [`Session::receive`] gave, with a result or an error object.
    pub fn reply(&self, request: ExchangeId, outcome: Result<&Json, &Json>) -> Result<ExchangeId, Fault> {
        self.0.reply(request, outcome.map(Json::as_str).map_err(Json::as_str))
    }

    /// Totals of this session.
    pub fn tally(&self) -> Tally {
        self.0.tally()
    }
}

/// A request under way. Dropping it abandons the answer.
#[derive(Debug)]
pub struct Pending(session::Pending);

impl Pending {
    /// The request's JSON-RPC id.
    pub fn id(&self) -> Json {
        Json::from_contract(self.0.id())
    }

    /// The answer; `None` when the wait ran out. To be taken once.
    pub fn wait(&self, wait_ms: u32) -> Result<Option<Answer>, Fault> {
        Ok(self.0.wait(wait_ms)?.map(Answer::from_contract))
    }

    /// The answer, however long the request may take. To be taken once.
    pub fn answer(&self) -> Result<Answer, Fault> {
        loop {
            if let Some(answer) = self.wait(u32::MAX)? {
                return Ok(answer);
            }
        }
    }

    /// Tells the server that the answer is no longer wanted; [`Pending::wait`] still tells what came.
    pub fn cancel(&self, reason: Option<&str>) -> Result<ExchangeId, Fault> {
        self.0.cancel(reason)
    }
}

/// Waits for the first of several; gives the positions of those that are ready.
pub fn wait_any(pending: &[&Pending], wait_ms: u32) -> Vec<u32> {
    let handles: Vec<&session::Pending> = pending.iter().map(|pending| &pending.0).collect();
    session::wait_any(&handles, wait_ms)
}
