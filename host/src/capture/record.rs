//! Recorders and captures: what either side of one MCP session says becomes records of its shape.
//!
//! Nothing of a message is kept but its method, the name of a tool, the shape of its arguments, and of an error its code,
//! whether it says that trying again helps, and a salted hash of its text's skeleton. A server's own words for layer and
//! kind of an error are left out: nothing reads them, and they could say anything.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;

use super::message::{self, Message, boolean, elements, identity, members, string};
use super::schemas::Schemas;
use super::shape::shape;
use super::skeleton::skeleton;
use super::writer::Queue;
pub use super::writer::Summary;
use crate::error::Result;
use crate::store::Home;
use crate::store::hash::Salt;
use crate::store::record::{
    CALL, CallError, Code, Identity, Kind, Outcome, Record, TEMPLATE, TOOL_ERROR, UNLISTED, is_label, is_method,
    timestamp,
};

/// Requests of one capture that wait for their answer; more are not recorded, and counted as dropped.
pub const MAX_PENDING: usize = 4_096;
/// Text of their arguments, in bytes.
pub const MAX_PENDING_BYTES: usize = 64 << 20;

const LIST: &str = "tools/list";
const CANCELLED: &str = "notifications/cancelled";
const OUTBOUND: &str = "unparsed/outbound";
const INBOUND: &str = "unparsed/inbound";

/// Records what captures see, in the journals of one home; one per process.
#[derive(Debug)]
pub struct Recorder {
    server: String,
    salt: Salt,
    queue: Arc<Queue>,
}

impl Recorder {
    /// Prepares the home and starts the thread that writes. The server's label must be one.
    ///
    /// # Errors
    /// Unfinished if the home cannot be written.
    pub fn start(home: Home, server: String) -> Result<Self> {
        home.prepare()?;
        let salt = Salt::of(&home)?;
        Ok(Self { server, salt, queue: Queue::start(home)? })
    }

    /// A new capture of a session with this raw name; without one, a random name is taken.
    pub fn capture(&self, session: Option<&str>) -> Capture {
        let session = session.map_or_else(|| self.salt.session(&fresh()), |raw| self.salt.session(raw));
        let shared = Shared {
            server: self.server.clone(),
            salt: self.salt.clone(),
            queue: Arc::clone(&self.queue),
            capture_id: fresh(),
            session,
            state: Mutex::default(),
        };
        Capture { scope: 0, shared: Arc::new(shared) }
    }

    /// Counts messages that were lost before any capture saw them.
    pub fn lost(&self, count: u64) {
        self.queue.lost(count);
    }

    /// Waits until the records are written, a few seconds at most, and tells what became of them.
    pub fn finish(self) -> Summary {
        self.queue.finish()
    }
}

/// One recorded MCP session. Clones are the same session.
#[derive(Debug, Clone)]
pub struct Capture {
    scope: u64,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    salt: Salt,
    queue: Arc<Queue>,
    capture_id: String,
    session: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    seq: u64,
    schemas: Schemas,
    pending: Pending,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Request {
    scope: u64,
    call: Call,
    since: Instant,
    added: Option<Duration>,
    /// The text of its arguments, for the bound.
    bytes: usize,
}

/// What a record tells of a request; no name in it that may not be kept.
#[derive(Debug)]
struct Call {
    method: String,
    tool: Option<String>,
    args: Option<Value>,
}

/// How an exchange ended.
#[derive(Debug)]
struct Ended {
    outcome: Outcome,
    error: Option<CallError>,
    at: Instant,
    latency: Duration,
    added: Option<Duration>,
    cancelled: bool,
    kind: Kind,
}

/// A reply to a call that mcpeval made itself.
#[derive(Debug, Clone, Copy)]
pub enum Reply<'a> {
    /// The JSON text of `result`.
    Result(&'a str),
    /// The JSON text of the `error` object.
    Error(&'a str),
    /// None came.
    None,
}

/// A call that mcpeval made itself.
#[derive(Debug, Clone, Copy)]
pub struct Synthetic<'a> {
    /// The method.
    pub method: &'a str,
    /// The tool of a `tools/call`.
    pub tool: Option<&'a str>,
    /// The JSON text of its arguments.
    pub arguments: Option<&'a str>,
    /// What came back.
    pub reply: Reply<'a>,
    /// From request to answer, or to the moment when none was awaited any more.
    pub latency: Duration,
    /// When it was complete.
    pub at: Instant,
}

impl Capture {
    /// The same capture, for an exchange of its own: answers are first sought among the requests of this scope. Of
    /// clients that share a session without a name, several may use one id.
    #[must_use]
    pub fn within(&self, scope: u64) -> Self {
        Self { scope, shared: Arc::clone(&self.shared) }
    }

    /// What the client said: one message, or a batch.
    pub fn from_client(&self, message: &[u8], at: Instant) {
        self.outbound(message, at, None);
    }

    /// What the server said: one message, or a batch.
    pub fn from_server(&self, message: &[u8], at: Instant) {
        self.inbound(message, at, None);
    }

    /// As [`Capture::from_client`], of a message that the recorder held for that time.
    pub(super) fn outbound(&self, frame: &[u8], at: Instant, added: Option<Duration>) {
        let mut state = self.lock();
        for message in message::read(frame) {
            match message {
                Some(Message::Request { id, method, params }) => {
                    let (call, bytes) = state.call(&method, params);
                    let request = Request { scope: self.scope, call, since: at, added, bytes };
                    if !state.pending.add(id, request) {
                        self.shared.queue.lost(1);
                    }
                }
                Some(Message::Notification { method, params }) if method == CANCELLED => {
                    let id = params.and_then(members).and_then(|params| params.get("requestId").copied().map(identity));
                    if let Some(request) = id.and_then(|id| state.pending.take(&id, self.scope)) {
                        self.write(&mut state, request.call, Ended::without_answer(request.since, at, true));
                    }
                }
                Some(Message::Notification { .. } | Message::Result { .. } | Message::Error { .. }) => {}
                None => self.notice(&mut state, OUTBOUND, Outcome::Unparsed, at),
            }
        }
    }

    /// As [`Capture::from_server`], of a message that the recorder held for that time.
    pub(super) fn inbound(&self, frame: &[u8], at: Instant, added: Option<Duration>) {
        let mut state = self.lock();
        for message in message::read(frame) {
            let (id, reply) = match message {
                Some(Message::Result { id, result }) => (id, Ok(result)),
                Some(Message::Error { id, error }) => (id, Err(error)),
                Some(Message::Notification { method, .. }) => {
                    self.notice(&mut state, &method, Outcome::Unknown, at);
                    continue;
                }
                // Who asks is the server; what it asks for is not what its tools do.
                Some(Message::Request { .. }) => continue,
                None => {
                    self.notice(&mut state, INBOUND, Outcome::Unparsed, at);
                    continue;
                }
            };
            let Some(request) = state.pending.take(&id, self.scope) else { continue };
            if let (LIST, Ok(result)) = (request.call.method.as_str(), reply) {
                state.schemas.learn(result);
            }
            let (outcome, error) = self.judged(&request.call.method, reply);
            let ended = Ended {
                outcome,
                error,
                at,
                latency: at.saturating_duration_since(request.since),
                added: request.added.zip(added).map(|(out, back)| out + back),
                cancelled: false,
                kind: Kind::Real,
            };
            self.write(&mut state, request.call, ended);
        }
    }

    /// The client sent what is no message.
    pub fn unparsed_outbound(&self) {
        self.unparsed(true, Instant::now());
    }

    /// The server sent what is no message.
    pub fn unparsed_inbound(&self) {
        self.unparsed(false, Instant::now());
    }

    pub(super) fn unparsed(&self, is_outbound: bool, at: Instant) {
        let method = if is_outbound { OUTBOUND } else { INBOUND };
        self.notice(&mut self.lock(), method, Outcome::Unparsed, at);
    }

    /// The requests of this scope are not answered any more.
    pub fn unanswered(&self) {
        let scope = self.scope;
        self.give_up(|request| request.scope == scope);
    }

    /// The requests of this scope were never the server's to answer; they leave no record.
    pub fn forget(&self) {
        let scope = self.scope;
        drop(self.lock().pending.remove(|request| request.scope == scope));
    }

    /// The session is over: what is not answered stays so.
    pub fn end(&self) {
        self.give_up(|_| true);
    }

    /// Learns schemas from the JSON text of a `tools/list` result that no capture saw.
    pub fn learn(&self, result: &str) {
        if let Ok(result) = serde_json::from_str(result) {
            self.lock().schemas.learn(result);
        }
    }

    /// Records a call that mcpeval made itself.
    pub fn synthetic(&self, made: &Synthetic<'_>) {
        let mut state = self.lock();
        let raw = |text| serde_json::from_str::<&RawValue>(text).ok();
        let (outcome, error) = match made.reply {
            Reply::Result(text) => raw(text).map(|result| self.judged(made.method, Ok(result))),
            Reply::Error(text) => raw(text).map(|error| self.judged(made.method, Err(error))),
            Reply::None => Some((Outcome::Unanswered, None)),
        }
        .unwrap_or((Outcome::Unparsed, None));
        let tool = made.tool.filter(|_| made.method == CALL);
        let arguments = made.arguments.filter(|_| tool.is_some()).and_then(raw);
        let args = arguments.map(|arguments| shape(arguments, tool.and_then(|tool| state.schemas.of(tool))));
        let call = Call::new(made.method, tool, args);
        let ended = Ended {
            outcome,
            error,
            at: made.at,
            latency: made.latency,
            added: None,
            cancelled: false,
            kind: Kind::Synthetic,
        };
        self.write(&mut state, call, ended);
    }

    fn give_up(&self, which: impl Fn(&Request) -> bool) {
        let mut state = self.lock();
        let now = Instant::now();
        for request in state.pending.remove(which) {
            self.write(&mut state, request.call, Ended::without_answer(request.since, now, false));
        }
    }

    /// A record of what was no answer.
    fn notice(&self, state: &mut State, method: &str, outcome: Outcome, at: Instant) {
        self.write(state, Call::new(method, None, None), Ended { outcome, ..Ended::without_answer(at, at, false) });
    }

    /// How a reply ends its request.
    fn judged(&self, method: &str, reply: Result<&RawValue, &RawValue>) -> (Outcome, Option<CallError>) {
        match reply {
            Err(error) => (Outcome::Error, Some(self.protocol_error(error))),
            Ok(result) if method == CALL => match ToolResult::of(result) {
                ToolResult::Good => (Outcome::Ok, None),
                ToolResult::Malformed => (Outcome::Unknown, None),
                ToolResult::Bad(text) => {
                    (Outcome::Error, Some(self.error(Code::Text(TOOL_ERROR.to_owned()), None, &text)))
                }
            },
            Ok(_) => (Outcome::Ok, None),
        }
    }

    fn protocol_error(&self, error: &RawValue) -> CallError {
        let Some(members) = members(error) else {
            return self.error(Code::of_text(""), None, &string(error).unwrap_or_default());
        };
        let inner = members.get("data").copied().and_then(message::members).unwrap_or_default();
        let code = members.get("code").map_or_else(
            || Code::of_text(""),
            |code| match (code.get().parse(), string(code)) {
                (Ok(number), _) => Code::Number(number),
                (_, Some(text)) => Code::of_text(&text),
                // Of any other value only the size may be told, whatever it looks like.
                _ => Code::Text(crate::store::shape::size(code.get()).to_owned()),
            },
        );
        let says = [inner.get("retryable"), members.get("retryable")].map(|value| boolean(value?));
        let retryable = match says {
            [Some(one), Some(other)] if one != other => None,
            [one, other] => one.or(other),
        };
        let text = members.get("message").and_then(|message| string(message)).unwrap_or_default();
        self.error(code, retryable, &text)
    }

    fn error(&self, code: Code, retryable: Option<bool>, text: &str) -> CallError {
        CallError {
            code,
            retryable,
            layer: None,
            kind: None,
            template: TEMPLATE.to_owned(),
            template_id: self.shared.salt.template(&skeleton(text)),
        }
    }

    /// Numbers and queues a record, under the lock, so that the order of numbers is that of completion.
    fn write(&self, state: &mut State, call: Call, ended: Ended) {
        state.seq += 1;
        self.shared.queue.push(Record {
            identity: Some(Identity { capture_id: self.shared.capture_id.clone(), event_id: fresh() }),
            ts: timestamp(moment(ended.at)),
            session: self.shared.session.clone(),
            seq: state.seq,
            server: self.shared.server.clone(),
            method: call.method,
            tool: call.tool,
            args: call.args,
            latency_ms: u64::try_from(ended.latency.as_millis()).unwrap_or(u64::MAX),
            outcome: ended.outcome,
            error: ended.error,
            cancelled: ended.cancelled,
            shim_self_us: ended.added.map(|added| u64::try_from(added.as_micros()).unwrap_or(u64::MAX)),
            kind: ended.kind,
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    fn new(method: &str, tool: Option<&str>, args: Option<Value>) -> Self {
        let listed = |name: &str, is_kept: fn(&str) -> bool| if is_kept(name) { name } else { UNLISTED }.to_owned();
        Self { method: listed(method, is_method), tool: tool.map(|tool| listed(tool, is_label)), args }
    }
}

impl Ended {
    const fn template(at: Instant) -> Self {
        Self {
            outcome: Outcome::Unanswered,
            error: None,
            at,
            latency: Duration::ZERO,
            added: None,
            cancelled: false,
            kind: Kind::Real,
        }
    }

    fn without_answer(since: Instant, at: Instant, cancelled: bool) -> Self {
        Self { latency: at.saturating_duration_since(since), cancelled, ..Self::template(at) }
    }
}

impl State {
    /// What a record will tell of a request, by the schemas known now, and the bytes of its arguments.
    fn call(&self, method: &str, params: Option<&RawValue>) -> (Call, usize) {
        if method != CALL {
            return (Call::new(method, None, None), 0);
        }
        let params = params.and_then(members).unwrap_or_default();
        let name = params.get("name").and_then(|name| string(name));
        let arguments = params.get("arguments").copied().filter(|arguments| arguments.get() != "null");
        let args = arguments.map(|arguments| shape(arguments, name.as_deref().and_then(|name| self.schemas.of(name))));
        let call = Call::new(method, Some(name.as_deref().unwrap_or(UNLISTED)), args);
        (call, arguments.map_or(0, |arguments| arguments.get().len()))
    }
}

/// Requests by their id; several may bear the same.
#[derive(Debug, Default)]
struct Pending {
    requests: HashMap<String, VecDeque<Request>>,
    count: usize,
    bytes: usize,
}

impl Pending {
    /// Whether there was room.
    fn add(&mut self, id: String, request: Request) -> bool {
        if self.count >= MAX_PENDING || self.bytes + request.bytes > MAX_PENDING_BYTES {
            return false;
        }
        self.count += 1;
        self.bytes += request.bytes;
        self.requests.entry(id).or_default().push_back(request);
        true
    }

    /// The oldest request of that id in the scope, else the oldest at all: an answer may come by another way.
    fn take(&mut self, id: &str, scope: u64) -> Option<Request> {
        let same = self.requests.get_mut(id)?;
        let own = same.iter().position(|request| request.scope == scope).unwrap_or(0);
        let request = same.remove(own)?;
        if same.is_empty() {
            self.requests.remove(id);
        }
        self.count -= 1;
        self.bytes -= request.bytes;
        Some(request)
    }

    /// Takes all of a kind, oldest first.
    fn remove(&mut self, which: impl Fn(&Request) -> bool) -> Vec<Request> {
        let mut removed = Vec::new();
        self.requests.retain(|_, same| {
            let (out, kept) = std::mem::take(same).into_iter().partition(&which);
            *same = kept;
            let out: VecDeque<Request> = out;
            removed.extend(out);
            !same.is_empty()
        });
        self.count -= removed.len();
        self.bytes -= removed.iter().map(|request| request.bytes).sum::<usize>();
        removed.sort_by_key(|request| request.since);
        removed
    }
}

/// What a tool's result says of the call.
enum ToolResult {
    Good,
    /// It failed, with all its text.
    Bad(String),
    /// It is no tool's result.
    Malformed,
}

impl ToolResult {
    fn of(result: &RawValue) -> Self {
        Self::read(result).unwrap_or(Self::Malformed)
    }

    fn read(result: &RawValue) -> Option<Self> {
        let result = members(result)?;
        let is_error = result.get("isError").map_or(Some(false), |value| boolean(value))?;
        let mut texts = Vec::new();
        for block in elements(result.get("content")?)? {
            let block = members(block)?;
            if string(block.get("type")?)? == "text" {
                texts.push(string(block.get("text")?)?.into_owned());
            }
        }
        Some(if is_error { Self::Bad(texts.join("\n")) } else { Self::Good })
    }
}

/// The wall clock's time of a moment that has passed.
fn moment(at: Instant) -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    jiff::SignedDuration::try_from(at.elapsed()).ok().and_then(|ago| now.checked_sub(ago).ok()).unwrap_or(now)
}

fn fresh() -> String {
    uuid::Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests;
