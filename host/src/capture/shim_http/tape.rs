//! Copies of what passed, on their way to the [listener](super::listener). The queue is bounded by count and bytes:
//! when the listener lags, copies are dropped and counted, and traffic goes on.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::headers::{Content, SESSION};
use super::listener::Listener;
use crate::capture::record::{Recorder, Summary};
use crate::wire::http::Response;

/// Copies that wait at most.
pub const QUEUE_COUNT: usize = 1024;
/// Bytes of the copies that wait, at most.
pub const QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// A session by the digest of its id, which is as long as the server likes.
pub(super) type Name = [u8; 32];

fn name(id: &[u8]) -> Name {
    Sha256::digest(id).into()
}

/// What a request is for.
#[derive(Debug)]
pub enum Asked {
    /// The body of a POST.
    Message(Bytes),
    /// A GET, for a stream of events.
    Stream,
    /// A DELETE, which ends the session.
    End,
}

/// How the answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// With its last byte.
    Complete,
    /// The server broke off.
    Broken,
    /// The caller left, or there was no answer.
    Dropped,
}

/// What happened to one exchange.
#[derive(Debug)]
pub(super) enum Step {
    /// It was sent on.
    Request { session: Option<Name>, asked: Asked },
    /// The head of its answer is here.
    Head { session: Option<Name>, status: u16, content: Content },
    /// Some bytes of its answer's body, and whether bytes before them were dropped.
    Chunk { bytes: Vec<u8>, after_gap: bool },
    /// It is over; some bytes at the end may have been dropped.
    End { ending: Ending, is_cut: bool },
}

impl Step {
    /// What it takes of the queue.
    fn bytes(&self) -> usize {
        match self {
            Self::Request { asked: Asked::Message(body), .. } => body.len(),
            Self::Chunk { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }
}

/// A step, of which exchange, and when.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) exchange: u64,
    pub(super) at: Instant,
    pub(super) step: Step,
}

#[derive(Debug, Default)]
struct Waiting {
    items: VecDeque<Item>,
    bytes: usize,
    exchanges: u64,
    dropped: u64,
    is_closed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an item in, unless it may be dropped and there is no room; whether it is in. Items that must arrive are as
    /// many as there are exchanges in the queue and at work, and without weight.
    fn put(&self, item: Item, must_arrive: bool) -> bool {
        let mut waiting = self.lock();
        let bytes = item.step.bytes();
        let is_full = waiting.items.len() >= QUEUE_COUNT || waiting.bytes + bytes > QUEUE_BYTES;
        if waiting.is_closed || (is_full && !must_arrive) {
            waiting.dropped += 1;
            return false;
        }
        waiting.bytes += bytes;
        waiting.items.push_back(item);
        drop(waiting);
        self.filled.notify_one();
        true
    }

    /// Waits for the next item; none once the queue is closed and empty.
    pub(super) fn take(&self) -> Option<Item> {
        let mut waiting = self.lock();
        loop {
            if let Some(item) = waiting.items.pop_front() {
                waiting.bytes -= item.step.bytes();
                return Some(item);
            }
            if waiting.is_closed {
                return None;
            }
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What takes the copies. Clones share it.
#[derive(Debug, Clone)]
pub struct Tape(Arc<Queue>);

/// The thread that reads the copies.
#[derive(Debug)]
pub struct Reading {
    queue: Arc<Queue>,
    thread: JoinHandle<Summary>,
}

impl Tape {
    /// Starts to record. `session` names the session of requests without a session id.
    pub fn start(recorder: Recorder, session: Option<&str>) -> (Self, Reading) {
        let queue = Arc::new(Queue::default());
        let listener = Listener::new(recorder, session);
        let thread = {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || listener.read(&queue))
        };
        (Self(Arc::clone(&queue)), Reading { queue, thread })
    }

    /// Takes no copies: everything is dropped and counted.
    pub fn without_recorder() -> Self {
        let queue = Queue::default();
        queue.lock().is_closed = true;
        Self(Arc::new(queue))
    }

    /// How many copies were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }

    /// A request that is about to be sent on, with the value of its session header.
    pub fn exchange(&self, session: Option<&[u8]>, asked: Asked) -> Exchange {
        let number = {
            let mut waiting = self.0.lock();
            waiting.exchanges += 1;
            waiting.exchanges
        };
        let step = Step::Request { session: session.map(name), asked };
        let is_heard = self.0.put(Item { exchange: number, at: Instant::now(), step }, false);
        Exchange { queue: Arc::clone(&self.0), number, is_heard, has_gap: false, ending: Ending::Dropped }
    }
}

impl Reading {
    /// Waits until everything that passed is recorded. What passes from now on is dropped.
    pub fn finish(self) -> Summary {
        self.queue.lock().is_closed = true;
        self.queue.filled.notify_one();
        // A listener that panicked has recorded what it had.
        self.thread.join().unwrap_or_default()
    }
}

/// One exchange that is recorded, from the request to the end of the answer.
#[derive(Debug)]
pub struct Exchange {
    queue: Arc<Queue>,
    number: u64,
    /// The listener knows of it.
    is_heard: bool,
    /// Bytes of the answer were dropped since the last that were not.
    has_gap: bool,
    ending: Ending,
}

impl Exchange {
    /// The head of the answer.
    pub fn head(&mut self, response: &Response, content: Content) {
        let session = response.header(SESSION.as_str()).map(|id| name(id.as_bytes()));
        self.put(response.at, Step::Head { session, status: response.status, content }, true);
    }

    /// The next bytes of its body.
    pub fn chunk(&mut self, bytes: &[u8], at: Instant) {
        if self.is_heard && !bytes.is_empty() {
            // A copy, as the bytes may be a small part of a large buffer.
            let step = Step::Chunk { bytes: bytes.to_vec(), after_gap: self.has_gap };
            self.has_gap = !self.put(at, step, false);
        }
    }

    /// The answer is complete.
    pub fn complete(&mut self) {
        self.ending = Ending::Complete;
    }

    /// The server broke the answer off.
    pub fn broken(&mut self) {
        self.ending = Ending::Broken;
    }

    fn put(&self, at: Instant, step: Step, must_arrive: bool) -> bool {
        self.is_heard && self.queue.put(Item { exchange: self.number, at, step }, must_arrive)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.put(Instant::now(), Step::End { ending: self.ending, is_cut: self.has_gap }, true);
    }
}
