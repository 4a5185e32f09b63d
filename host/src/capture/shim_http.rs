//! The recorder for Streamable HTTP: it listens on this machine, passes each request on to one server, and streams the
//! answer back as it comes. What it records it reads from copies, so that traffic never waits for it.
//!
//! | module | owns |
//! |---|---|
//! | [`headers`] | which headers pass |
//! | [`places`] | how much goes on at once |
//! | [`relay`] | the body of an answer on its way |
//! | [`tape`] | copies of what passed, in a bounded queue |
//! | [`listener`] | what the copies say, and to which session it belongs |

pub mod headers;
pub mod listener;
pub mod places;
pub mod relay;
pub mod tape;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout_at};

use crate::error::{Error, Result};
use crate::serve::gate::Limits;
use crate::serve::gate::connection::attend;
use crate::serve::gate::refusal::Refusal;
use crate::serve::gate::turn::Turn;
use crate::wire::http::{HttpError, HttpWire};

use headers::Form;
use places::Places;
use relay::Relay;
use tape::{Asked, Exchange, Tape};

/// What a request may take: 64 KiB of headers, and 5 seconds to be sent.
pub const LIMITS: Limits = Limits {
    head: 64 * 1024,
    lines: 200,
    request: Duration::from_secs(5),
    // Longer than most clients keep theirs, so that a request does not cross the end of its connection.
    idle: Duration::from_mins(1),
};
/// Bytes of a request's body.
pub const BODY_LIMIT: usize = 8 * 1024 * 1024;
/// Bytes of all the bodies that are held at once.
pub const BODIES_LIMIT: usize = 128 * 1024 * 1024;
/// Connections that are open at once; beyond, new ones are closed without a word. All the places together are 104.
pub const CONNECTION_LIMIT: usize = 512;
/// The methods of Streamable HTTP.
const METHODS: &str = "GET, POST, DELETE";
/// The paths that are passed on, whatever the server's own is, beside that one.
const PATHS: [&str; 3] = ["/mcp", "/mcp/", "/"];
/// After an error of the machine, such as too many open files, before the next connection is taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// No place is free.
const BUSY: Refusal = Refusal::of(StatusCode::SERVICE_UNAVAILABLE, "too-many-requests");
/// No place for an open stream is free.
const STREAMS: Refusal = Refusal::of(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams");
/// The server could not be reached, or gave no answer that is HTTP.
const UPSTREAM: Refusal = Refusal::of(StatusCode::BAD_GATEWAY, "upstream-failed");
/// The bodies that are held already leave no room. The rest of this one is not read.
const MEMORY: Refusal = Refusal::closing(StatusCode::SERVICE_UNAVAILABLE, "too-many-requests");

type Answer = Response<Either<Full<Bytes>, Relay>>;

/// Listens on a loopback address.
///
/// # Errors
/// [`Error::Usage`] for an address that is not loopback, [`Error::Unfinished`] for one that cannot be listened on.
pub async fn bind(address: SocketAddr) -> Result<TcpListener> {
    if !address.ip().is_loopback() {
        return Err(Error::usage(format!("the recorder listens on loopback addresses only, and {address} is none")));
    }
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Error::unfinished(format!("the address {address} is in use; choose another port")),
        _ => Error::unfinished(format!("cannot listen on {address}: {error}")),
    })
}

/// Passes requests on to one server, and records them.
#[derive(Debug)]
pub struct Shim {
    upstream: HttpWire,
    tape: Tape,
    places: Places,
    bodies: Arc<Semaphore>,
}

impl Shim {
    /// Before its first request.
    pub fn new(upstream: HttpWire, tape: Tape) -> Arc<Self> {
        Arc::new(Self { upstream, tape, places: Places::default(), bodies: Arc::new(Semaphore::new(BODIES_LIMIT)) })
    }

    /// Serves until it is dropped; connections go on until their runtime ends.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let connections = Arc::new(Semaphore::new(CONNECTION_LIMIT));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let Ok(open) = Arc::clone(&connections).try_acquire_owned() else { continue };
            // Without it, each small event waits for an acknowledgement. Not worth a connection if it fails.
            _ = stream.set_nodelay(true);
            let shim = Arc::clone(&self);
            tokio::spawn(async move {
                attend(stream, LIMITS, |request, turn| shim.answer(request, turn)).await;
                drop(open);
            });
        }
    }

    async fn answer(&self, request: Request<Incoming>, turn: Turn) -> Answer {
        self.exchange(request, &turn).await.unwrap_or_else(|refusal| refusal.response().map(Either::Left))
    }

    async fn exchange(&self, request: Request<Incoming>, turn: &Turn) -> Result<Answer, Refusal> {
        let (head, incoming) = request.into_parts();
        self.check(&head)?;
        let (body, held) = self.read(incoming, turn).await?;
        let place = self.places.enter().await.ok_or(BUSY)?;
        let session = head.headers.get(headers::SESSION).map(HeaderValue::as_bytes);
        let asked = match head.method {
            Method::POST => Asked::Message(body.clone()),
            Method::DELETE => Asked::End,
            _ => Asked::Stream,
        };
        let mut exchange: Exchange = self.tape.exchange(session, asked);
        let passed = headers::of_request(&head.headers);
        let response = self.upstream.forward(&head.method, &passed, body).await.map_err(|error| failed(&error))?;
        drop(held);
        let form = Form::of(&response);
        let place = if form.is_stream { self.places.stream(place).ok_or(STREAMS)? } else { place };
        let mut answer = Response::new(());
        // An informational status is never the answer to what was sent.
        *answer.status_mut() =
            StatusCode::from_u16(response.status).ok().filter(|code| !code.is_informational()).ok_or(UPSTREAM)?;
        *answer.headers_mut() = headers::of_response(&response);
        exchange.head(&response, form.content);
        Ok(answer.map(|()| Either::Right(Relay::new(response, exchange, place))))
    }

    /// What needs the head alone.
    fn check(&self, head: &Parts) -> Result<(), Refusal> {
        if ![Method::POST, Method::GET, Method::DELETE].contains(&head.method) {
            return Err(Refusal::method(METHODS));
        }
        let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if head.method == Method::POST && !headers::is_json(content_type) {
            return Err(Refusal::NOT_JSON);
        }
        let path = head.uri.path();
        if PATHS.contains(&path) || path == self.upstream.endpoint().url().path() { Ok(()) } else { Err(Refusal::PATH) }
    }

    /// The whole body, and the room that it takes.
    async fn read(
        &self,
        mut incoming: Incoming,
        turn: &Turn,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Refusal> {
        if incoming.size_hint().lower() > BODY_LIMIT as u64 {
            return Err(Refusal::BODY_LARGE);
        }
        let mut held: Option<OwnedSemaphorePermit> = None;
        let mut body = BytesMut::new();
        loop {
            let frame = timeout_at(turn.deadline(), incoming.frame()).await.map_err(|_| Refusal::BODY_LATE)?;
            let Some(frame) = frame else { return Ok((body.freeze(), held)) };
            // Chunks that are none, or a caller that left, who does not read this.
            let Ok(data) = frame.map_err(|_| Refusal::BAD_REQUEST)?.into_data() else { continue };
            if body.len() + data.len() > BODY_LIMIT {
                return Err(Refusal::BODY_LARGE);
            }
            let room = u32::try_from(data.len()).map_err(|_| MEMORY)?;
            let room = Arc::clone(&self.bodies).try_acquire_many_owned(room).map_err(|_| MEMORY)?;
            match &mut held {
                Some(held) => held.merge(room),
                None => held = Some(room),
            }
            body.extend_from_slice(&data);
        }
    }
}

fn failed(error: &HttpError) -> Refusal {
    tracing::warn!("the upstream server did not answer: {error}");
    UPSTREAM
}
