//! Every message sent to and received from the server, numbered in the order seen. A probe cites numbers, so that
//! evidence cannot be forged.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::outcome::ExchangeId;

/// Bytes kept of one message, for the private run log.
pub const KEPT_OF_A_MESSAGE: usize = 512;
/// Messages kept; later ones are numbered and counted only, so that a flood costs no memory.
pub const KEPT_MESSAGES: usize = 16_384;

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From us to the server.
    Sent,
    /// From the server to us.
    Received,
}

#[derive(Debug)]
struct Record {
    direction: Direction,
    session: u32,
    length: usize,
    head: Box<[u8]>,
}

#[derive(Debug, Default)]
struct Inner {
    count: u32,
    records: Vec<Record>,
}

/// The record of one evaluation.
#[derive(Debug, Default)]
pub struct Transcript {
    inner: Mutex<Inner>,
}

impl Transcript {
    /// Number a message. `session` is the number of the conversation it belongs to.
    pub fn record(&self, direction: Direction, session: u32, bytes: &[u8]) -> ExchangeId {
        let mut inner = self.lock();
        inner.count = inner.count.saturating_add(1);
        if inner.records.len() < KEPT_MESSAGES {
            let head = bytes.get(..KEPT_OF_A_MESSAGE).unwrap_or(bytes).into();
            inner.records.push(Record { direction, session, length: bytes.len(), head });
        }
        inner.count
    }

    /// Whether a number was issued.
    pub fn contains(&self, exchange: ExchangeId) -> bool {
        (1..=self.lock().count).contains(&exchange)
    }

    /// Messages numbered so far.
    pub fn len(&self) -> u32 {
        self.lock().count
    }

    /// Whether nothing was sent or received yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One line a message, for the private run log: number, session, direction, length and beginning.
    pub fn lines(&self) -> Vec<String> {
        let inner = self.lock();
        let mut lines: Vec<String> = inner
            .records
            .iter()
            .enumerate()
            .map(|(index, record)| {
                let arrow = match record.direction {
                    Direction::Sent => "->",
                    Direction::Received => "<-",
                };
                let mut line = format!(
                    "#{} session {} {arrow} {} bytes: {}",
                    index + 1,
                    record.session,
                    record.length,
                    String::from_utf8_lossy(&record.head)
                );
                if record.length > record.head.len() {
                    line.push_str(" ...");
                }
                line
            })
            .collect();
        let more = (inner.count as usize).saturating_sub(inner.records.len());
        if more > 0 {
            let mut line = String::new();
            // Writing to a string cannot fail.
            let _ = write!(line, "{more} more messages were numbered but not kept");
            lines.push(line);
        }
        lines
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_at_one_and_only_issued_ones_are_evidence() {
        let transcript = Transcript::default();
        assert!(!transcript.contains(1));
        assert_eq!(transcript.record(Direction::Sent, 1, b"{}"), 1);
        assert_eq!(transcript.record(Direction::Received, 1, b"{}"), 2);
        assert!(transcript.contains(1) && transcript.contains(2));
        assert!(!transcript.contains(0) && !transcript.contains(3));
    }

    #[test]
    fn a_flood_is_counted_but_not_kept() {
        let transcript = Transcript::default();
        let total = u32::try_from(KEPT_MESSAGES).expect("small") + 5;
        for _ in 0..total {
            transcript.record(Direction::Received, 1, &[b'a'; 2 * KEPT_OF_A_MESSAGE]);
        }
        assert_eq!(transcript.len(), total);
        assert!(transcript.contains(total));
        let lines = transcript.lines();
        assert_eq!(lines.len(), KEPT_MESSAGES + 1);
        assert!(lines.last().is_some_and(|line| line.starts_with("5 more")));
        assert!(lines.first().is_some_and(|line| line.ends_with("...") && line.len() < KEPT_OF_A_MESSAGE + 64));
    }
}
