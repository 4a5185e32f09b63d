//! A conversation over the pipes of a child.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::AbortHandle;

use super::{Cause, Fault, Inner, Origin};
use crate::wire::stdio::{LineKind, Received, StdioReader, StdioWire};

/// How long the exit code of a child that closed its stdout may take.
const EXIT_PATIENCE: Duration = Duration::from_millis(500);
/// How long what a child has written is awaited after it has ended.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// The sending half; the reading half is a task of its own.
#[derive(Debug)]
pub(super) struct StdioLink {
    wire: StdioWire,
    reading: OnceLock<AbortHandle>,
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        // The reading task holds the wire too; with the conversation gone it must not keep the child alive.
        if let Some(reading) = self.reading.get() {
            reading.abort();
        }
    }
}

impl StdioLink {
    pub(super) fn new(wire: StdioWire) -> Self {
        Self { wire, reading: OnceLock::new() }
    }

    /// Start to read; called once.
    pub(super) fn read(&self, session: Weak<Inner>, reader: StdioReader) {
        let task = tokio::spawn(read(session, self.wire.clone(), reader));
        let _ = self.reading.set(task.abort_handle());
    }

    pub(super) fn wire(&self) -> &StdioWire {
        &self.wire
    }

    /// Queue a request in order; the rest of the sending does not hold up the caller.
    pub(super) async fn start(&self, session: &Arc<Inner>, id: u64, bytes: Vec<u8>) {
        let wire = self.wire.clone();
        let mut sending = Box::pin(async move { wire.send(line(bytes)).await });
        // The first poll queues the line, so that lines leave in the order of the calls.
        let first = std::future::poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;
        if let Poll::Ready(Ok(())) = first {
            return;
        }
        let (session, wire) = (Arc::downgrade(session), self.wire.clone());
        tokio::spawn(async move {
            let sent = match first {
                Poll::Ready(sent) => sent,
                Poll::Pending => sending.await,
            };
            if sent.is_err() {
                let fault = refuses_input(&wire).await;
                if let Some(session) = session.upgrade() {
                    session.fail(id, fault);
                }
            }
        });
    }

    pub(super) async fn send(&self, bytes: Vec<u8>) -> Result<(), Fault> {
        match self.wire.send(line(bytes)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(refuses_input(&self.wire).await),
        }
    }

    pub(super) async fn end(&self) {
        let _ = self.wire.end().await;
    }
}

fn line(mut bytes: Vec<u8>) -> Bytes {
    bytes.push(b'\n');
    Bytes::from(bytes)
}

/// Nobody reads the pipe. Most often because the process is about to be gone, and then its ending says more.
async fn refuses_input(wire: &StdioWire) -> Fault {
    let detail = match wire.ending(EXIT_PATIENCE).await {
        Some(ending) => format!("the server {ending}"),
        None => "the server has closed its stdin".to_owned(),
    };
    Fault::new(Cause::Closed, detail)
}

/// Read until the child's stdout ends, or the child itself: what it started may hold its stdout open for ever. Holds the
/// conversation only while it takes a line in.
async fn read(session: Weak<Inner>, wire: StdioWire, mut reader: StdioReader) {
    let mut leaving = pin!(wire.ending(Duration::MAX));
    let mut ending = None;
    let mut drained = pin!(tokio::time::sleep(Duration::ZERO));
    loop {
        let received = tokio::select! {
            received = reader.line() => received,
            ended = &mut leaving, if ending.is_none() => {
                ending = ended;
                drained.as_mut().reset(tokio::time::Instant::now() + LAST_WORDS);
                continue;
            }
            () = &mut drained, if ending.is_some() => None,
        };
        let Some(received) = received else { break };
        let Some(session) = session.upgrade() else { return };
        take(&session, &received);
    }
    if ending.is_none() {
        ending = tokio::time::timeout(EXIT_PATIENCE, leaving).await.ok().flatten();
    }
    let Some(session) = session.upgrade() else { return };
    let detail = match ending {
        Some(ending) => format!("the server {ending}"),
        None => "the server has closed its stdout".to_owned(),
    };
    session.close(Fault::new(Cause::Closed, detail));
}

fn take(session: &Arc<Inner>, received: &Received) {
    match received.kind {
        LineKind::Whole | LineKind::Unterminated => {
            session.take_in(&received.bytes, received.at, Origin::default());
        }
        LineKind::Oversize { length } => session.take_oversize(&received.bytes, length),
    }
}

impl Inner {
    /// A message beyond the cap cannot be read, so nobody can say whose reply it is. With one request under way it is
    /// that one's.
    pub(super) fn take_oversize(self: &Arc<Self>, head: &[u8], length: u64) {
        self.state().payer.received(length);
        let exchange = self.hub.transcript.record(crate::transcript::Direction::Received, self.number, head);
        self.keep(super::IncomingKind::Noise, head, exchange);
        let ids: Vec<u64> = {
            let state = self.state();
            let sent = state.waiting.iter().filter(|(_, waiting)| matches!(waiting, super::Waiting::Sent { .. }));
            sent.map(|(id, _)| *id).collect()
        };
        if let [id] = ids.as_slice() {
            let detail = format!("the server sent a message of {length} bytes, more than is received in one");
            self.fail(*id, Fault::new(Cause::TooLarge, detail).citing(exchange));
        }
        self.hub.ring();
    }
}
