//! Whether what a server tells its clients to do fits the tools that it gives them: one session per profile of client
//! capabilities, its listing and its instructions. No tool is called.

mod document;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::ledger::{self, Ledger};
use crate::report::document::Label;
use crate::runner::site::{CALL_TIMEOUT, Site};
use crate::runner::{Sink, Tracker};
use crate::session::{Cause, Context, Fault, Incoming, IncomingKind, Options, Session, listing, object};

pub use document::{Guidance, Lack, REASONS, Reason, SCHEMA, Seen, text};

use document::Observed;

/// The longest wait between the opening and the listing, in milliseconds.
pub const MAX_SETTLE_MS: u32 = 5_000;
/// The usual one.
pub const SETTLE_MS: u32 = 1_500;

/// Which capabilities a client declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// None.
    None,
    /// `roots`.
    Roots,
    /// `sampling`.
    Sampling,
    /// `elicitation`.
    Elicitation,
    /// All three.
    All,
}

impl Profile {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 5] = [Self::None, Self::Roots, Self::Sampling, Self::Elicitation, Self::All];

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Roots => "roots",
            Self::Sampling => "sampling",
            Self::Elicitation => "elicitation",
            Self::All => "all",
        }
    }

    const fn capabilities(self) -> &'static str {
        match self {
            Self::None => "{}",
            Self::Roots => r#"{"roots":{}}"#,
            Self::Sampling => r#"{"sampling":{}}"#,
            Self::Elicitation => r#"{"elicitation":{}}"#,
            Self::All => r#"{"roots":{},"sampling":{},"elicitation":{}}"#,
        }
    }
}

/// What the operator chose.
#[derive(Debug, Clone)]
pub struct Order {
    /// The server's label.
    pub server: Label,
    /// The profiles to try.
    pub profiles: BTreeSet<Profile>,
    /// Tools that every profile must list.
    pub required_tools: BTreeSet<Label>,
    /// Wait between the opening and the listing, in milliseconds, at most [`MAX_SETTLE_MS`].
    pub settle_ms: u32,
}

/// What was found, and what a person should know beside it.
#[derive(Debug)]
pub struct Finding {
    /// The document.
    pub guidance: Guidance,
    /// Why profiles are incomplete, in words for stderr only.
    pub warnings: Vec<String>,
}

/// Opens a session per profile and compares what it lists with what it is told.
///
/// # Errors
/// Unfinished if no session can be opened at all.
pub(crate) async fn guidance(site: &Site, order: Order, on_progress: Sink) -> Result<Finding> {
    let ledger = Ledger::new(ledger::EVALUATION);
    let progress = Tracker::new(on_progress, Arc::clone(&ledger));
    let context = Context { ledger, policy: Arc::default() };
    let mut revision = None;
    let mut warnings = Vec::new();
    let mut observed = Vec::new();
    for &profile in &order.profiles {
        progress.step(profile.word());
        let options = Options { capabilities: Some(profile.capabilities().to_owned()), ..Options::default() };
        let seen = match site.server.open(&context, &options).await {
            Ok(session) => {
                revision.get_or_insert(session.revision());
                let seen = observe(&session, &context, order.settle_ms).await;
                session.end().await;
                seen
            }
            // Who does not answer at all would keep us waiting once for each profile.
            Err(fault) if revision.is_none() && matches!(fault.cause, Cause::Unreachable | Cause::TimedOut) => {
                return Err(Error::unfinished(fault.detail));
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = &seen {
            warnings.push(format!("the profile {} is incomplete: {fault}", profile.word()));
        }
        observed.push((profile, seen));
    }
    let Some(revision) = revision else {
        let first = observed.into_iter().find_map(|(_, seen)| seen.err());
        return Err(Error::unfinished(first.map_or_else(|| "no profile was tried".to_owned(), |fault| fault.detail)));
    };
    let observed: Vec<_> = observed.into_iter().map(|(profile, seen)| (profile, seen.ok())).collect();
    Ok(Finding { guidance: document::compare(order, revision, &observed), warnings })
}

/// Lets the server settle, lists its tools, and answers meanwhile what it asks.
async fn observe(session: &Session, context: &Context, settle_ms: u32) -> Result<Observed, Fault> {
    let listing = async {
        let settled = Instant::now() + Duration::from_millis(settle_ms.into());
        tokio::time::sleep_until(settled.min(context.ledger.deadline()).into()).await;
        listing::list(session, context, CALL_TIMEOUT).await
    };
    let catalog = tokio::select! {
        biased;
        catalog = listing => catalog?,
        never = answer(session, context) => match never {},
        never = listen(session, context) => match never {},
    };
    if let Some(fault) = catalog.fault {
        return Err(fault);
    }
    Ok(Observed {
        tools: catalog.entries.iter().filter_map(|entry| Label::new(&entry.label)).collect(),
        instructions: object::at(&session.greeting(), &["instructions"]).and_then(object::string),
    })
}

/// Requests of the server may also come on a stream of their own; a server that has none asks elsewhere.
async fn listen(session: &Session, context: &Context) -> std::convert::Infallible {
    _ = session.listen(context, CALL_TIMEOUT).await;
    std::future::pending().await
}

/// Answers what the declared capabilities invite, for as long as the session lives.
async fn answer(session: &Session, context: &Context) -> std::convert::Infallible {
    while let Ok(incoming) = session.receive(context, CALL_TIMEOUT).await {
        match incoming {
            Some(Incoming { exchange, kind: IncomingKind::Request, message }) => {
                if let Some(result) = reply(&message) {
                    // Whoever does not take the answer to its own request has itself to blame.
                    _ = session.reply(context, exchange, Ok(result), CALL_TIMEOUT).await;
                }
            }
            Some(_) => {}
            // An answer of the listing is there: it is first.
            None => tokio::task::yield_now().await,
        }
    }
    std::future::pending().await
}

/// What a client says that has no roots, no model and no user.
fn reply(request: &str) -> Option<&'static str> {
    match object::at(request, &["method"]).and_then(object::string)?.as_str() {
        "roots/list" => Some(r#"{"roots":[]}"#),
        "sampling/createMessage" => Some(
            r#"{"role":"assistant","content":{"type":"text","text":"mcpeval"},"model":"mcpeval","stopReason":"endTurn"}"#,
        ),
        "elicitation/create" => Some(r#"{"action":"decline"}"#),
        _ => None,
    }
}
