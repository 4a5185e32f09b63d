//! One session, which its requests share, and one request of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The longest that a tool waits for its client.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where a message of the server goes.
pub(super) type Line = dyn Fn(&Value) -> io::Result<()> + Send + Sync;

/// What the requests of one client share.
#[derive(Default)]
pub(super) struct Session {
    /// From 1, in the order of opening.
    pub(super) number: usize,
    /// Capabilities of the client.
    pub(super) capabilities: Mutex<Value>,
    /// Subscribed URIs.
    pub(super) subscriptions: Mutex<BTreeSet<String>>,
    /// Whether the shop is jammed for this client.
    pub(super) jammed: AtomicBool,
    /// Whether the next ping is not answered.
    pub(super) deaf: AtomicBool,
    calls: Mutex<BTreeMap<String, u32>>,
    asked: AtomicU32,
    waiting: Mutex<BTreeMap<String, Sender<Value>>>,
    cancelled: Mutex<BTreeSet<String>>,
    bell: Condvar,
    listener: Mutex<Option<Arc<Line>>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("number", &self.number).finish_non_exhaustive()
    }
}

/// What a lock guards; a thread that ended badly leaves it usable.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// A session with the number that it has in the order of opening.
    pub(super) fn new(number: usize) -> Self {
        Self { number, ..Self::default() }
    }

    /// How often this call was made, this one included.
    pub(super) fn count(&self, tool: &str, arguments: &Value) -> u32 {
        let mut calls = lock(&self.calls);
        let count = calls.entry(format!("{tool} {arguments}")).or_default();
        *count += 1;
        *count
    }

    /// Hands a response of the client to whoever waits for it.
    pub(super) fn deliver(&self, response: &Value) {
        if let Some(sender) = lock(&self.waiting).remove(&response["id"].to_string()) {
            // Who has stopped waiting needs it no more.
            let _ = sender.send(response.clone());
        }
    }

    /// Notes that a request is cancelled.
    pub(super) fn cancel(&self, id: &Value) {
        lock(&self.cancelled).insert(id.to_string());
        self.bell.notify_all();
    }

    /// Says where messages go that belong to no request; none takes that away.
    pub(super) fn listen(&self, line: Option<Arc<Line>>) {
        *lock(&self.listener) = line;
    }

    fn tell(&self, message: &Value) {
        let listener = lock(&self.listener).clone();
        // Nobody listens: then nobody is told.
        let _ = listener.map(|line| line(message));
    }
}

/// One request.
pub(super) struct Call<'a> {
    pub(super) session: &'a Arc<Session>,
    pub(super) id: &'a Value,
    pub(super) params: &'a Value,
    /// Where messages go that belong to it.
    pub(super) line: &'a Line,
    /// How often this call was made with these arguments, this one included.
    pub(super) count: u32,
}

impl Call<'_> {
    /// The arguments of a tool call.
    pub(super) fn arguments(&self) -> &Value {
        &self.params["arguments"]
    }

    /// A string among the arguments; empty without it.
    pub(super) fn text(&self, name: &str) -> &str {
        self.arguments()[name].as_str().unwrap_or_default()
    }

    /// A number among the arguments.
    pub(super) fn number(&self, name: &str, default: u64) -> u64 {
        self.arguments()[name].as_u64().unwrap_or(default)
    }

    /// Asks the client and waits for the answer: its whole message.
    pub(super) fn ask(&self, method: &str, params: &Value) -> Option<Value> {
        let id = Value::from(format!("ask-{}", self.session.asked.fetch_add(1, Ordering::Relaxed)));
        let (sender, answers) = channel();
        lock(&self.session.waiting).insert(id.to_string(), sender);
        (self.line)(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).ok()?;
        answers.recv_timeout(PATIENCE).ok()
    }

    /// Waits until the client cancels this request; false if it does not.
    pub(super) fn is_cancelled(&self) -> bool {
        let id = self.id.to_string();
        let cancelled = lock(&self.session.cancelled);
        let waited = self.session.bell.wait_timeout_while(cancelled, PATIENCE, |ids| !ids.contains(&id));
        waited.is_ok_and(|(ids, _)| ids.contains(&id))
    }

    /// Tells later, and to no request, that a resource was updated, if it is subscribed to.
    pub(super) fn update_later(&self, uri: &str, after: Duration) {
        let (session, uri) = (Arc::clone(self.session), uri.to_owned());
        thread::spawn(move || {
            thread::sleep(after);
            if lock(&session.subscriptions).contains(&uri) {
                session.tell(&updated(&uri));
            }
        });
    }
}

/// The notification of an update.
pub(super) fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}
