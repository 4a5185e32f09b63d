//! What the copies say, and to which session it belongs. One thread reads them, in the order in which they came.

use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::headers::Content;
use super::tape::{Asked, Ending, Item, Name, Queue, Step};
use crate::capture::record::{Capture, Recorder, Summary};
use crate::wire::events::EventStream;

/// Bytes of one message that is read; a longer one is recorded as unparsed.
pub const MESSAGE_LIMIT: usize = 4 * 1024 * 1024;
/// Sessions that are kept apart. Beyond, the one that was quiet for longest is taken for ended.
pub const SESSION_LIMIT: usize = 1024;

/// The reader of the copies.
#[derive(Debug)]
pub(super) struct Listener {
    recorder: Recorder,
    /// Of requests without a session id.
    plain: Capture,
    sessions: HashMap<Name, Session>,
    exchanges: HashMap<u64, Exchange>,
    /// Counts the uses of sessions.
    uses: u64,
}

#[derive(Debug)]
struct Session {
    capture: Capture,
    /// Exchanges that are not over.
    open: usize,
    /// When it was used last.
    used: u64,
    /// The client ended it, or the server knows it no more.
    is_over: bool,
}

#[derive(Debug)]
struct Exchange {
    asked: Option<Asked>,
    since: Instant,
    /// Known with the request, or else with the head of the answer, which may begin a session.
    belongs: Option<Belongs>,
    is_post: bool,
    is_end: bool,
    /// The status of the answer.
    status: Option<u16>,
    body: Body,
    /// Copies of the answer were dropped.
    has_gaps: bool,
}

#[derive(Debug)]
struct Belongs {
    session: Option<Name>,
    capture: Capture,
}

/// What is read of a body.
#[derive(Debug)]
enum Body {
    Json(Vec<u8>, Instant),
    TooLong,
    Events(Box<EventStream>),
    Opaque { is_empty: bool },
}

impl Exchange {
    fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

impl Listener {
    pub(super) fn new(recorder: Recorder, session: Option<&str>) -> Self {
        let plain = recorder.capture(session);
        Self { recorder, plain, sessions: HashMap::new(), exchanges: HashMap::new(), uses: 0 }
    }

    /// Reads until the queue is closed and empty; then whatever is unanswered stays so.
    pub(super) fn read(mut self, queue: &Queue) -> Summary {
        while let Some(item) = queue.take() {
            self.take(item);
        }
        for session in self.sessions.values() {
            session.capture.end();
        }
        self.plain.end();
        self.recorder.finish()
    }

    fn take(&mut self, Item { exchange: number, at, step }: Item) {
        match step {
            Step::Request { session, asked } => self.request(number, session, asked, at),
            Step::Head { session, status, content } => {
                let Some(mut exchange) = self.exchanges.remove(&number) else { return };
                exchange.status = Some(status);
                exchange.body = match content {
                    Content::Json => Body::Json(Vec::new(), at),
                    Content::Events => Body::Events(Box::default()),
                    Content::Opaque => Body::Opaque { is_empty: true },
                };
                self.settle(number, &mut exchange, session);
                self.exchanges.insert(number, exchange);
            }
            Step::Chunk { bytes, after_gap } => {
                if let Some(exchange) = self.exchanges.get_mut(&number) {
                    exchange.chunk(&bytes, at, after_gap);
                }
            }
            Step::End { ending, is_cut } => {
                if let Some(exchange) = self.exchanges.remove(&number) {
                    self.end(number, exchange, ending, is_cut);
                }
            }
        }
    }

    fn request(&mut self, number: u64, session: Option<Name>, asked: Asked, at: Instant) {
        let mut exchange = Exchange {
            since: at,
            belongs: None,
            is_post: matches!(asked, Asked::Message(_)),
            is_end: matches!(asked, Asked::End),
            asked: Some(asked),
            status: None,
            body: Body::Opaque { is_empty: true },
            has_gaps: false,
        };
        if session.is_some() {
            self.settle(number, &mut exchange, session);
        }
        self.exchanges.insert(number, exchange);
    }

    /// Decides where an exchange belongs, unless that is known, and records its request there.
    fn settle(&mut self, number: u64, exchange: &mut Exchange, session: Option<Name>) {
        if exchange.belongs.is_none() {
            let capture = match session {
                Some(name) => self.join(name),
                None => self.plain.clone(),
            };
            let capture = capture.within(number);
            if let Some(Asked::Message(body)) = exchange.asked.take() {
                request(&capture, &body, exchange.since);
            }
            exchange.belongs = Some(Belongs { session, capture });
        }
    }

    fn join(&mut self, name: Name) -> Capture {
        self.uses += 1;
        if !self.sessions.contains_key(&name) && self.sessions.len() >= SESSION_LIMIT {
            let quiet = self.sessions.iter().filter(|(_, session)| session.open == 0);
            if let Some(oldest) = quiet.min_by_key(|(_, session)| session.used).map(|(name, _)| *name)
                && let Some(session) = self.sessions.remove(&oldest)
            {
                session.capture.end();
            }
        }
        let recorder = &self.recorder;
        let session = self.sessions.entry(name).or_insert_with(|| Session {
            capture: recorder.capture(None),
            open: 0,
            used: 0,
            is_over: false,
        });
        session.open += 1;
        session.used = self.uses;
        session.capture.clone()
    }

    fn end(&mut self, number: u64, mut exchange: Exchange, ending: Ending, is_cut: bool) {
        self.settle(number, &mut exchange, None);
        exchange.has_gaps |= is_cut;
        exchange.finish(ending);
        let Some(Belongs { session, .. }) = exchange.belongs else { return };
        let Some(name) = session else { return };
        if let Some(session) = self.sessions.get_mut(&name) {
            session.open = session.open.saturating_sub(1);
            session.is_over |= (exchange.is_end && exchange.status.is_some_and(|status| (200..300).contains(&status)))
                || exchange.status == Some(404);
            if session.is_over && session.open == 0 {
                session.capture.end();
                self.sessions.remove(&name);
            }
        }
    }
}

impl Exchange {
    fn chunk(&mut self, bytes: &[u8], at: Instant, after_gap: bool) {
        self.has_gaps |= after_gap;
        let Some(Belongs { capture, .. }) = &self.belongs else { return };
        match &mut self.body {
            Body::Json(whole, last) if whole.len() + bytes.len() <= MESSAGE_LIMIT => {
                whole.extend_from_slice(bytes);
                *last = at;
            }
            Body::Json(..) => self.body = Body::TooLong,
            Body::TooLong => {}
            Body::Opaque { is_empty } => *is_empty = false,
            Body::Events(stream) => {
                if after_gap {
                    stream.resynchronise();
                }
                let is_too_long = stream.push(bytes).is_err();
                for event in stream.by_ref() {
                    // An event without data is a sign of life, or a place to resume from.
                    if event.data.len() > MESSAGE_LIMIT {
                        capture.unparsed_inbound();
                    } else if !event.data.is_empty() {
                        capture.from_server(&event.data, at);
                    }
                }
                if is_too_long {
                    capture.unparsed_inbound();
                    stream.resynchronise();
                }
            }
        }
    }

    /// What the end of the answer tells.
    fn finish(&self, ending: Ending) {
        let Some(Belongs { session, capture }) = &self.belongs else { return };
        let succeeded = self.succeeded();
        match &self.body {
            // It says nothing of what was asked.
            _ if !self.is_post => {}
            Body::Json(..) if self.has_gaps => {}
            Body::Json(whole, at) if ending == Ending::Complete && !whole.is_empty() => {
                // A refusal need not be a message; what else is answered must be.
                if succeeded || is_message(whole) {
                    capture.from_server(whole, *at);
                }
            }
            Body::Json(whole, _) if ending == Ending::Broken && !whole.is_empty() => capture.unparsed_inbound(),
            Body::TooLong => capture.unparsed_inbound(),
            Body::Opaque { is_empty: false } if succeeded && ending != Ending::Dropped => capture.unparsed_inbound(),
            _ => {}
        }
        if self.has_gaps {
            // Its answer may have been among what was dropped.
            capture.forget();
        } else if self.is_post && (session.is_none() || !succeeded) {
            // No other stream can bring the answer.
            capture.unanswered();
        }
    }
}

fn request(capture: &Capture, body: &Bytes, at: Instant) {
    if body.len() > MESSAGE_LIMIT {
        capture.unparsed_outbound();
    } else {
        capture.from_client(body, at);
    }
}

/// Whether it is meant as a JSON-RPC message.
fn is_message(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message {
        #[serde(rename = "jsonrpc")]
        _version: IgnoredAny,
    }
    serde_json::from_slice::<Message>(body).is_ok() || serde_json::from_slice::<Vec<Message>>(body).is_ok()
}
