//! The server of one evaluation and what exists beside it: guardian, scratch folder, the conversation that runs share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Target;
use crate::error::{Error, Result};
use crate::guest::Place;
use crate::ledger::Ledger;
use crate::session::catalog::Catalog;
use crate::session::target::Reach;
use crate::session::{Context, Fault, Options, Session, Target as Server, listing};
use crate::wire::http::HttpWire;
use crate::wire::sandbox::{Guardian, Scratch};

/// Wait for every answer but the handshake's, where nobody asks for another.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(CALL_TIMEOUT_MS as u64);
/// The same, in milliseconds.
pub(crate) const CALL_TIMEOUT_MS: u32 = 15_000;

/// What work on a site brought, and what is left of it for people.
#[derive(Debug)]
pub(crate) struct Visit<T> {
    /// What it brought.
    pub outcome: Result<T>,
    /// The server's last stderr bytes, for stderr only.
    pub stderr: Vec<u8>,
    /// Diagnostics, for the private run log.
    pub log: Vec<String>,
}

/// The server, and what exists beside it while it is evaluated.
pub(crate) struct Site {
    /// The server.
    pub(crate) server: Arc<Server>,
    /// Where example paths point.
    pub(crate) place: Place,
    _scratch: Option<Scratch>,
    _guardian: Option<Guardian>,
}

impl Site {
    /// Everything but the server itself, which is started or contacted by the first conversation.
    pub(crate) fn prepare(target: Target, startup_timeout: Duration) -> Result<Self> {
        match target {
            Target::Http(endpoint) => {
                let wire = HttpWire::new(endpoint)
                    .map_err(|error| Error::unfinished(format!("no HTTP client can be made: {error}")))?;
                let server = Arc::new(Server::new(Reach::Http(wire), startup_timeout));
                Ok(Self { server, place: Place::Remote, _scratch: None, _guardian: None })
            }
            Target::Stdio(launch) => {
                let failed = |error: std::io::Error| Error::unfinished(format!("no sandbox can be made: {error}"));
                let guardian = Guardian::start().map_err(failed)?;
                let scratch = Scratch::create(&guardian).map_err(failed)?;
                let place = Place::Scratch(scratch.path().to_path_buf());
                let reach = Reach::Stdio { launch, guardian: guardian.clone() };
                let server = Arc::new(Server::new(reach, startup_timeout));
                Ok(Self { server, place, _scratch: Some(scratch), _guardian: Some(guardian) })
            }
        }
    }

    /// Does some work on a server, and leaves nothing of it behind. `Err` if nothing could be made ready for it.
    pub(crate) async fn visit<T>(
        target: Target,
        startup_timeout: Duration,
        work: impl AsyncFnOnce(&Self) -> Result<T>,
    ) -> Result<Visit<T>> {
        let site = Self::prepare(target, startup_timeout)?;
        let outcome = work(&site).await;
        site.server.end().await;
        Ok(Visit { outcome, stderr: site.stderr(), log: site.server.hub().transcript.lines() })
    }

    /// Opens the conversation that runs share and lists the catalog on it. No tool is listed before, so none may be
    /// called meanwhile. `Err` if there is nothing to evaluate.
    pub(crate) async fn list(
        &self,
        ledger: &Arc<Ledger>,
        timeout: Duration,
        on_open: impl FnOnce(),
    ) -> Result<(Session, Catalog), Fault> {
        let context = Context { ledger: Arc::clone(ledger), policy: Arc::default() };
        let session = self.server.primary(&context).await?;
        on_open();
        match listing::list(&session, &context, timeout).await {
            Ok(catalog) => Ok((session, catalog)),
            Err(fault) => {
                let detail = format!("tools/list got no answer: {}", fault.detail);
                Err(Fault { detail, ..fault })
            }
        }
    }

    /// What a client with these capabilities is shown, on a conversation of its own, joined to what every client is
    /// shown. If it cannot be listed, the catalog says why.
    pub(crate) async fn list_wider(
        &self,
        ledger: &Arc<Ledger>,
        timeout: Duration,
        plain: &Catalog,
        capabilities: BTreeSet<String>,
    ) -> Catalog {
        let context = Context { ledger: Arc::clone(ledger), policy: Arc::default() };
        let declared: serde_json::Map<String, serde_json::Value> =
            capabilities.into_iter().map(|capability| (capability, serde_json::json!({}))).collect();
        let capabilities = Some(serde_json::Value::from(declared).to_string());
        let listed = match self.server.open(&context, &Options { capabilities, ..Options::default() }).await {
            Ok(session) => {
                let listed = listing::list(&session, &context, timeout).await;
                session.end().await;
                listed
            }
            Err(fault) => Err(fault),
        };
        listing::join(plain, listed.unwrap_or_else(|fault| Catalog { fault: Some(fault), ..Catalog::default() }))
    }

    /// The end of what the server wrote to stderr, for people.
    pub(crate) fn stderr(&self) -> Vec<u8> {
        self.server.hub().last_stderr()
    }
}
