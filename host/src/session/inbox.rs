//! What the server sent that answers nothing, kept within bounds.

use std::collections::VecDeque;
use std::sync::Arc;

use super::fault::{Incoming, IncomingKind};
use crate::outcome::ExchangeId;

/// Messages kept of one conversation (docs/standard.md).
pub(super) const KEPT_MESSAGES: usize = 128;
/// Bytes of them.
pub(super) const KEPT_BYTES: usize = 4 << 20;
/// Requests that wait for the probe are kept beside the rest, so that no flood of notifications can push one out.
pub(super) const KEPT_REQUESTS: usize = 128;

/// Messages in the order they came. Beyond its bounds the later ones are dropped.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    messages: VecDeque<Incoming>,
    requests: usize,
    others: usize,
    bytes: usize,
}

impl Inbox {
    /// Keep a message; false if there is no place for it.
    pub(super) fn put(&mut self, kind: IncomingKind, bytes: &[u8], exchange: ExchangeId) -> bool {
        let (count, most) = if kind == IncomingKind::Request {
            (&mut self.requests, KEPT_REQUESTS)
        } else {
            (&mut self.others, KEPT_MESSAGES)
        };
        if *count >= most || self.bytes + bytes.len() > KEPT_BYTES {
            return false;
        }
        *count += 1;
        self.bytes += bytes.len();
        let message = Arc::from(String::from_utf8_lossy(bytes));
        self.messages.push_back(Incoming { exchange, kind, message });
        true
    }

    /// The oldest message's text, left in place.
    pub(super) fn first(&self) -> Option<&str> {
        self.messages.front().map(|incoming| incoming.message.as_ref())
    }

    /// The oldest message.
    pub(super) fn take(&mut self) -> Option<Incoming> {
        let incoming = self.messages.pop_front()?;
        let count = if incoming.kind == IncomingKind::Request { &mut self.requests } else { &mut self.others };
        *count = count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(incoming.message.len());
        Some(incoming)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_pushes_no_request_out() {
        let mut inbox = Inbox::default();
        let kept = (0..1_000).filter(|n| inbox.put(IncomingKind::Notification, b"{}", *n)).count();
        assert_eq!(kept, KEPT_MESSAGES);
        assert!(inbox.put(IncomingKind::Request, b"{}", 1_000));
        assert_eq!(inbox.take().map(|incoming| incoming.exchange), Some(0));
        assert!(inbox.put(IncomingKind::Noise, b"x", 1_001));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut inbox = Inbox::default();
        assert!(inbox.put(IncomingKind::Notification, &vec![b'a'; KEPT_BYTES], 1));
        assert!(!inbox.put(IncomingKind::Notification, b"a", 2));
        assert!(inbox.take().is_some());
        assert!(inbox.put(IncomingKind::Notification, b"a", 3));
    }
}
