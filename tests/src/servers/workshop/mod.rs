//! A workshop: one server for the kinds of a manifest, each of whose tools, resources and completions does one thing
//! right or wrong. It talks back: it asks its client, tells of updates, and hears cancellations while a tool works.
//!
//! | module | owns |
//! |---|---|
//! | [`tools`] | the tools, and what each does |
//! | [`dialogs`] | the tools that ask their client |
//! | [`talk`] | one session: requests of the server's own, cancellations, updates |
//! | [`desk`] | everything that is no tool: the greeting, lists, resources, completions |
//! | [`pipe`], [`web`] | the loops over standard input and output, and over HTTP |

mod desk;
mod dialogs;
mod pipe;
mod talk;
mod tools;
mod web;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::good::{Good, Reply, RpcError};
use super::{Fixture, Sin};

pub(super) const FIXTURES: &[Fixture] = &[
    fixture("workshop", "nothing is wrong with it but what its tools are named after", |_| {}),
    fixture("workshop-no-stream", "has no stream for what belongs to no request", |shop| shop.listens = false),
];

const fn fixture(name: &'static str, about: &'static str, edit: fn(&mut Shop)) -> Fixture {
    Fixture { name, about, sin: Sin::Workshop(edit) }
}

/// The server.
#[derive(Debug)]
pub struct Shop {
    /// For the journal and the greeting.
    good: Mutex<Good>,
    /// Whether a stream can be opened with GET.
    listens: bool,
    /// Sessions that were opened.
    opened: AtomicUsize,
}

impl Shop {
    fn note(&self, line: &str) {
        self.good.lock().unwrap_or_else(std::sync::PoisonError::into_inner).note(line);
    }

    /// The number of the next session, from 1.
    fn number(&self) -> usize {
        self.opened.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// How a request ends.
#[derive(Debug)]
pub enum End {
    /// With a result or an error.
    Reply(Reply),
    /// With an error object as it stands.
    Error(Value),
    /// Never.
    Silence,
    /// With the end of its stream; over pipes never.
    Closed,
    /// With the end of the process, over HTTP with that of the connection.
    Hangup,
    /// With an error for a message that could not be read.
    Unread,
    /// With status 413; over pipes as [`End::Unread`].
    TooLarge,
}

impl End {
    fn ok(words: &str) -> Self {
        Self::Reply(Ok(serde_json::json!({"content": [{"type": "text", "text": words}]})))
    }

    fn failed(words: &str) -> Self {
        Self::Reply(Ok(serde_json::json!({"content": [{"type": "text", "text": words}], "isError": true})))
    }

    fn error(code: i64, words: &str) -> Self {
        Self::Reply(Err(RpcError::new(code, words)))
    }
}

/// Runs the workshop.
pub(super) fn serve(good: Good, edit: fn(&mut Shop), over_http: bool) -> ExitCode {
    let mut shop = Shop { good: Mutex::new(good), listens: true, opened: AtomicUsize::new(0) };
    edit(&mut shop);
    if over_http { web::serve(shop) } else { pipe::serve(&shop) }
}
