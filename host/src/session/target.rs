//! The server under test as an evaluation sees it: how to reach it, and the conversation that runs share.

use std::sync::Arc;
use std::time::Duration;

use super::handshake::{self, Options};
use super::{Answer, Context, Fault, Hub, Session};

pub use super::handshake::Reach;

/// One server.
#[derive(Debug)]
pub struct Target {
    reach: Reach,
    hub: Arc<Hub>,
    startup_timeout: Duration,
    primary: tokio::sync::Mutex<Option<Session>>,
}

impl Target {
    /// A server that was not contacted yet.
    pub fn new(reach: Reach, startup_timeout: Duration) -> Self {
        Self { reach, hub: Arc::default(), startup_timeout, primary: tokio::sync::Mutex::default() }
    }

    /// What its conversations share.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// How it is reached.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The word of its transport in the contract.
    pub fn transport(&self) -> &'static str {
        match self.reach {
            Reach::Stdio { .. } => "stdio",
            Reach::Http(_) => "http",
        }
    }

    /// A conversation of its own.
    pub async fn open(&self, context: &Context, options: &Options) -> Result<Session, Fault> {
        handshake::open(&self.reach, &self.hub, context, options, self.startup_timeout).await
    }

    /// What the server says to an opening, on a connection that then ends.
    pub async fn greet(&self, context: &Context, options: &Options) -> Result<Answer, Fault> {
        handshake::greet(&self.reach, &self.hub, context, options, self.startup_timeout).await
    }

    /// The conversation that runs share, or a fresh one in its place after a fault. The old one is ended first: a server
    /// may hold a lock that its next process needs.
    pub async fn primary(&self, context: &Context) -> Result<Session, Fault> {
        let mut primary = self.primary.lock().await;
        if let Some(session) = primary.as_ref() {
            if !session.is_tainted() {
                return Ok(session.clone());
            }
            session.end().await;
            *primary = None;
        }
        let session = self.open(context, &Options::default()).await?;
        *primary = Some(session.clone());
        Ok(session)
    }

    /// The shared conversation as it is, without opening one.
    pub async fn current(&self) -> Option<Session> {
        self.primary.lock().await.clone()
    }

    /// End the shared conversation.
    pub async fn end(&self) {
        if let Some(session) = self.primary.lock().await.take() {
            session.end().await;
        }
    }
}
