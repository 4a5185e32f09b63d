//! What a conversation brings: answers, what answers nothing, and why there is no answer.

use std::fmt;
use std::sync::Arc;

use crate::ledger;
use crate::outcome::{ExchangeId, NoVerdict};

use super::policy::Denial;

/// Why the host would not do it. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The budget's.
    Budget(ledger::Refusal),
    /// The policy's.
    Policy(Denial),
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The host would not.
    Refused(Refusal),
    /// The server could not be started or reached.
    Unreachable,
    /// The server declined the opening, or chose a revision nobody here speaks.
    Handshake,
    /// The connection, or the stream of this request, ended before the answer came.
    Closed,
    /// No answer in time.
    TimedOut,
    /// A reply to this very request that is no valid response.
    Malformed,
    /// An HTTP status whose body holds no message of the protocol.
    Status(u16),
    /// More than the host receives in one message.
    TooLarge,
    /// Anything else.
    Other,
}

impl Cause {
    /// The no-verdict label that a run ending with this fault gets (docs/standard.md).
    pub const fn label(self) -> NoVerdict {
        match self {
            Self::Refused(Refusal::Budget(_)) => NoVerdict::BudgetExceeded,
            Self::Refused(Refusal::Policy(_)) => NoVerdict::ComponentFault,
            Self::TimedOut => NoVerdict::TransportTimeout,
            Self::Closed => NoVerdict::TransportClosed,
            Self::Handshake => NoVerdict::HandshakeFailed,
            Self::Unreachable | Self::Malformed | Self::Status(_) | Self::TooLarge | Self::Other => {
                NoVerdict::TransportError
            }
        }
    }

    /// Whether the conversation it happened on should not be used for the next step. After a refusal nothing was
    /// sent, so it is as good as before.
    pub const fn taints(self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// Why there is no answer, with what to cite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub cause: Cause,
    /// The last message of this request, if anything was sent.
    pub exchange: Option<ExchangeId>,
    /// One sentence for people.
    pub detail: String,
}

impl Fault {
    /// A fault without a message to cite.
    pub fn new(cause: Cause, detail: impl Into<String>) -> Self {
        Self { cause, exchange: None, detail: detail.into() }
    }

    /// The same, citing a message.
    #[must_use]
    pub fn citing(mut self, exchange: ExchangeId) -> Self {
        self.exchange = Some(exchange);
        self
    }
}

impl From<ledger::Refusal> for Fault {
    fn from(refusal: ledger::Refusal) -> Self {
        let what = match refusal {
            ledger::Refusal::Requests => "requests",
            ledger::Refusal::Sessions => "sessions",
            ledger::Refusal::Bytes => "received bytes",
            ledger::Refusal::Deadline => "time",
        };
        Self::new(Cause::Refused(Refusal::Budget(refusal)), format!("the evaluation's {what} are used up"))
    }
}

impl From<Denial> for Fault {
    fn from(denial: Denial) -> Self {
        Self::new(Cause::Refused(Refusal::Policy(denial)), denial.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// What the server said to a request: a result, or an error object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Number of the reply.
    pub exchange: ExchangeId,
    /// From the moment it was sent to the moment its last byte was read, in microseconds.
    pub elapsed_us: u32,
    /// HTTP status where there is one.
    pub status: Option<u16>,
    /// Text of the `result`, or of the `error` object, as it travelled.
    pub reply: Result<Arc<str>, Arc<str>>,
}

/// What kind a message that answers nothing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncomingKind {
    /// A request that waits for the probe's reply.
    Request,
    /// A request that the host has answered.
    AnsweredRequest,
    /// A notification.
    Notification,
    /// A response with no id, or one nobody waits for.
    StrayReply,
    /// A line or event that is no message.
    Noise,
}

/// What the server sent that answers nothing we asked, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// Its number.
    pub exchange: ExchangeId,
    /// Its kind.
    pub kind: IncomingKind,
    /// Its text; bytes that are no UTF-8 are replaced.
    pub message: Arc<str>,
}

/// Totals of one session, kept or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests of the server.
    pub requests: u32,
    /// Its notifications.
    pub notifications: u32,
    /// Its stray replies.
    pub stray_replies: u32,
    /// Its noise.
    pub noise: u32,
    /// Of these, not kept.
    pub dropped: u32,
    /// Our notifications that HTTP accepted with another status than 202.
    pub odd_acks: u32,
}
