//! Waiting for an answer while the server says other things.

use std::ops::ControlFlow;

use crate::{Answer, Fault, Incoming, Pending, Session};

/// One wait for messages that answer nothing, in milliseconds; it ends early when the answer is there.
const LISTEN_MS: u32 = 1_000;
/// Messages that may lie unread on a session: the host keeps 128 requests of the server and 128 others.
const MAX_UNREAD: usize = 256;

/// Waits for the answer and hands over every message that comes meanwhile; stops as soon as `heed` breaks off. The
/// request's own deadline ends it.
///
/// # Errors
///
/// The fault that stands in place of the answer, or one of `heed`.
pub fn attend<T>(
    session: &Session,
    pending: &Pending,
    mut heed: impl FnMut(&Incoming) -> Result<ControlFlow<T>, Fault>,
) -> Result<ControlFlow<T, Answer>, Fault> {
    loop {
        // A server may go on sending: the request's own end is looked for after every message.
        let lost = match session.receive(LISTEN_MS) {
            Ok(None) => None,
            Ok(Some(incoming)) => match heed(&incoming)? {
                ControlFlow::Break(found) => return Ok(ControlFlow::Break(found)),
                ControlFlow::Continue(()) => None,
            },
            Err(fault) => Some(fault.unless_refused()?),
        };
        match (pending.wait(0)?, lost) {
            (Some(answer), _) => return Ok(ControlFlow::Continue(answer)),
            (None, Some(fault)) => return Err(fault),
            (None, None) => {}
        }
    }
}

/// Hands over what lies unread on a session, without waiting for more; stops as soon as `heed` breaks off.
///
/// # Errors
///
/// A refusal of the host, or a fault of `heed`.
pub fn unread<T>(
    session: &Session,
    mut heed: impl FnMut(&Incoming) -> Result<ControlFlow<T>, Fault>,
) -> Result<ControlFlow<T>, Fault> {
    for _ in 0..MAX_UNREAD {
        match session.receive(0) {
            Ok(Some(incoming)) => {
                if let ControlFlow::Break(found) = heed(&incoming)? {
                    return Ok(ControlFlow::Break(found));
                }
            }
            Ok(None) => break,
            Err(fault) => {
                fault.unless_refused()?;
                break;
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}
