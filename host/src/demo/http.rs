//! The demo over Streamable HTTP, on a loopback address.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::HeaderName;
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::serve::ListenerExt;
use futures_core::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::faults::Fault;
use super::handler::Demo;
use super::seat::Scope;
use super::wire::{self, Wire};
use crate::error::{Error, Result};

/// Largest request body, in bytes; a larger one is answered 413.
const MAX_BODY: usize = 32 * 1024 * 1024;
/// Where the endpoint is.
const PATH: &str = "/mcp";
/// Pages that may use the server: those of this machine, so that no other page can reach it through a browser.
const ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Serves sessions at `http://ADDRESS/mcp` until cancelled. `ready` is told the address once it listens, with the real
/// port in place of port 0.
///
/// # Errors
///
/// [`Error::Usage`] for an address that is not loopback, [`Error::Unfinished`] for one that cannot be listened on.
pub async fn serve_http(address: SocketAddr, fault: Option<Fault>, ready: impl FnOnce(SocketAddr)) -> Result<()> {
    if !address.ip().is_loopback() {
        return Err(Error::usage(format!("the demo server listens on loopback addresses only, and {address} is none")));
    }
    let listener = TcpListener::bind(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Error::unfinished(format!("the address {address} is in use")),
        _ => Error::unfinished(format!("cannot listen on {address}: {error}")),
    })?;
    let address =
        listener.local_addr().map_err(|error| Error::unfinished(format!("cannot listen on {address}: {error}")))?;
    let sessions = Sessions { local: LocalSessionManager::default(), fault, scope: Scope::port(address.port()) };
    let config =
        StreamableHttpServerConfig::default().with_max_request_body_bytes(MAX_BODY).with_allowed_origins(ORIGINS);
    let service = StreamableHttpService::new(|| Ok(Demo::default()), Arc::new(sessions), config);
    let router = axum::Router::new()
        .route_service(PATH, service)
        .layer(middleware::from_fn(move |request, next| around(fault, request, next)));
    // Without it, each small event waits for an acknowledgement.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    ready(address);
    axum::serve(listener, router).await.map_err(|error| Error::unfinished(format!("the demo server stopped: {error}")))
}

/// Faults of HTTP itself.
async fn around(fault: Option<Fault>, mut request: Request, next: Next) -> Response {
    if matches!(fault, Some(Fault::Negotiation | Fault::NegotiationWord | Fault::NegotiationDrift)) {
        // What such a server agreed to, it also accepts in the header.
        request.headers_mut().remove(PROTOCOL_VERSION);
    }
    let posted = request.method() == Method::POST;
    let mut response = next.run(request).await;
    if posted && fault == Some(Fault::NotificationStatus) && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::OK;
    }
    response
}

/// Sessions in memory, each behind a [`Wire`].
struct Sessions {
    local: LocalSessionManager,
    fault: Option<Fault>,
    scope: Scope,
}

type Local = LocalSessionManager;

impl SessionManager for Sessions {
    type Error = <Local as SessionManager>::Error;
    type Transport = Wire<<Local as SessionManager>::Transport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.local.create_session().await?;
        Ok((id, Wire::new(transport, self.fault, self.scope.clone(), None)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        // The session closes the stream of a cancelled call before the wire hears of it.
        if wire::is_unheard(self.fault, &message) {
            return Ok(());
        }
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.resume(id, last_event_id).await
    }
}
