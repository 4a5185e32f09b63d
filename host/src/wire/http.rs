//! Exchanges with one endpoint.
//!
//! No proxy of the environment is used, nothing is decompressed, and only HTTP/1.1 is spoken: what a probe sees is
//! what the server sent.

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, TRANSFER_ENCODING,
};
use hyper::{Method, Request, StatusCode, Uri};
use tokio::sync::mpsc;
use url::{Position, Url};

use super::dial::{Dial, Link};
pub use super::endpoint::{Endpoint, EndpointError};
pub use super::events::{Event, EventStream, Oversize};

/// Most bytes of a body that is read whole, and of one event.
pub const BODY_LIMIT: usize = 8 * 1024 * 1024;
/// Most redirects followed in a row (docs/standard.md).
pub const MAX_REDIRECTS: u32 = 3;
/// Most headers of a response, and of a raw request.
pub const HEADER_LIMIT: usize = 128;
/// Most bytes of a response's head, and of the headers of a raw request; no chunk of a body is larger either.
pub const HEAD_LIMIT: usize = 64 * 1024;
/// Chunks of a body read ahead of their consumer; beyond, the server has to wait.
const AHEAD: usize = 16;
/// How long a connection may take to be ready for the next exchange once one is over.
const READY_WAIT: Duration = Duration::from_millis(50);
/// How much of a redirect's target is kept for people.
const LOCATION_SHOWN: usize = 300;

/// Why an exchange did not come about or broke off. No sentence holds the value of a header that was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Nobody listens.
    #[error("the connection was refused; check that the server runs and listens on this port")]
    Refused,
    /// The host has no address.
    #[error("the host name could not be resolved; check its spelling")]
    Unresolved,
    /// No encrypted connection came about.
    #[error("no TLS connection could be made: {0}")]
    Tls(String),
    /// A redirect that is not followed.
    #[error("the server redirects to {location}, which is not followed; check the address")]
    Redirect {
        /// Where to, as the server wrote it, cut after 300 characters.
        location: String,
    },
    /// The server ended the connection before the response was complete.
    #[error("the server closed the connection before its response was complete")]
    Closed,
    /// The body is longer than the limit.
    #[error("the response is larger than allowed")]
    Oversize,
    /// What came is no HTTP/1.1 response, or its head is too large.
    #[error("the response is no valid HTTP: {0}")]
    BadHead(String),
    /// Anything else.
    #[error("the HTTP exchange failed: {0}")]
    Other(String),
}

impl HttpError {
    pub(super) fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Other(error.to_string()),
        }
    }

    pub(super) fn of(error: &hyper::Error) -> Self {
        if error.is_parse() {
            return Self::BadHead(error.to_string());
        }
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            return Self::Closed;
        }
        let mut source = error.source();
        while let Some(cause) = source {
            if let Some(io) = cause.downcast_ref::<io::Error>() {
                return Self::of_io(io);
            }
            source = cause.source();
        }
        Self::Other(error.to_string())
    }

    fn refuse(sentence: &str) -> Self {
        Self::Other(sentence.to_owned())
    }
}

/// A client of one endpoint. Cheap to clone; clones share the pool of connections.
#[derive(Clone)]
pub struct HttpWire(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    dial: Arc<Dial>,
}

impl std::fmt::Debug for HttpWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HttpWire").field(&self.0.endpoint).finish()
    }
}

impl HttpWire {
    /// Connects to nothing yet. For https the machine's root certificates are loaded.
    pub fn new(endpoint: Endpoint) -> Result<Self, HttpError> {
        let dial = Arc::new(Dial::new(endpoint.url(), None)?);
        Ok(Self(Arc::new(Inner { endpoint, dial })))
    }

    /// Where it sends.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// One well-formed exchange. The endpoint's headers are added; connections are reused; 307 and 308 to the same
    /// origin are followed for POST. Dropping the future closes the connection.
    ///
    /// # Errors
    /// Other redirects among them: following those would send secrets to strangers, or turn a POST into a GET.
    pub async fn send(&self, method: &str, headers: &[(&str, &str)], body: Bytes) -> Result<Response, HttpError> {
        let method = parse_method(method)?;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let value =
                HeaderValue::from_str(value).map_err(|_| HttpError::refuse("a header's value is not one line"))?;
            map.append(parse_name(name)?, value);
        }
        let mut url = self.0.endpoint.url().clone();
        for _ in 0..=MAX_REDIRECTS {
            let request = self.request(&method, &url, map.clone(), body.clone())?;
            let (response, link) = self.exchange(request, true).await?;
            let Some(location) = redirect(&response) else {
                return Ok(Response::new(response, link, Some(&self.0.dial)));
            };
            url = match next_hop(response.status(), &url, location).filter(|_| method == Method::POST) {
                Some(next) => next,
                None => return Err(refused_redirect(location)),
            };
        }
        Err(refused_redirect(url.as_str().as_bytes()))
    }

    /// One exchange passed on for somebody else: these headers and those of the endpoint, on a connection that is reused.
    /// 307 and 308 to the same origin are followed whatever the method, since who asked does not know the address.
    /// Dropping the future closes the connection.
    ///
    /// # Errors
    /// Other redirects among them.
    pub async fn forward(&self, method: &Method, headers: &HeaderMap, body: Bytes) -> Result<Response, HttpError> {
        let mut url = self.0.endpoint.url().clone();
        for _ in 0..=MAX_REDIRECTS {
            let request = self.request(method, &url, headers.clone(), body.clone())?;
            let (response, link) = self.exchange(request, true).await?;
            let Some(location) = redirect(&response) else {
                return Ok(Response::new(response, link, Some(&self.0.dial)));
            };
            url = next_hop(response.status(), &url, location).ok_or_else(|| refused_redirect(location))?;
        }
        Err(refused_redirect(url.as_str().as_bytes()))
    }

    /// One exchange of any shape on a connection of its own: any method, headers (`Host` and `Origin` too) and body,
    /// no redirects. The endpoint's headers replace those of the same name.
    ///
    /// # Errors
    /// Also for what would frame another message than the body given, and for encoded bodies, which nobody could look
    /// into.
    pub async fn raw(&self, method: &str, headers: Vec<(String, Vec<u8>)>, body: Bytes) -> Result<Response, HttpError> {
        let method = parse_method(method)?;
        let size = headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
        if headers.len() > HEADER_LIMIT || size > HEAD_LIMIT {
            return Err(HttpError::refuse("the request has more headers than allowed"));
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let value =
                HeaderValue::from_bytes(&value).map_err(|_| HttpError::refuse("a header's value is not one line"))?;
            map.append(parse_name(&name)?, value);
        }
        check_framing(&map, &body)?;
        let request = self.request(&method, self.0.endpoint.url(), map, body)?;
        let (response, link) = self.exchange(request, false).await?;
        Ok(Response::new(response, link, None))
    }

    /// With the endpoint's headers, and a `Host` unless there is one.
    fn request(
        &self,
        method: &Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, HttpError> {
        let added = self.0.endpoint.headers();
        for name in added.keys() {
            headers.remove(name);
        }
        headers.extend(added.iter().map(|(name, value)| (name.clone(), value.clone())));
        if !headers.contains_key(HOST) {
            let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
            headers.insert(HOST, host.map_err(|_| HttpError::Unresolved)?);
        }
        let target: Uri = url[Position::BeforePath..Position::AfterQuery]
            .parse()
            .map_err(|_| HttpError::refuse("the URL's path cannot be sent"))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = target;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Sends, on an idle connection first if one may be reused. A request is sent again only if the connection turned
    /// out to be closed before a byte of it was written.
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        reuse: bool,
    ) -> Result<(hyper::Response<Incoming>, Link), HttpError> {
        let dial = &self.0.dial;
        let mut request = request;
        while let Some(mut link) = reuse.then(|| dial.idle()).flatten() {
            match link.sender.try_send_request(request).await {
                Ok(response) => return Ok((response, link)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(HttpError::of(&error.into_error())),
                },
            }
        }
        let mut link = dial.connect().await?;
        let response = link.sender.send_request(request).await.map_err(|error| HttpError::of(&error))?;
        Ok((response, link))
    }
}

fn parse_method(method: &str) -> Result<Method, HttpError> {
    match Method::from_bytes(method.as_bytes()) {
        Ok(Method::CONNECT) => Err(HttpError::refuse("CONNECT asks for a tunnel, not the endpoint")),
        Ok(method) => Ok(method),
        Err(_) => Err(HttpError::refuse("the method is no HTTP token")),
    }
}

fn parse_name(name: &str) -> Result<HeaderName, HttpError> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| HttpError::refuse("a header's name is no HTTP token"))
}

/// A body may be framed by its length or as chunks, once, and as it is.
fn check_framing(headers: &HeaderMap, body: &Bytes) -> Result<(), HttpError> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(HttpError::refuse("Content-Encoding is not sent"));
    }
    let all = |name| headers.get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
    match (all(CONTENT_LENGTH).as_slice(), all(TRANSFER_ENCODING).as_slice()) {
        ([], []) => Ok(()),
        ([length], []) if *length == body.len().to_string().as_bytes() => Ok(()),
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") && !body.is_empty() => Ok(()),
        _ => Err(HttpError::refuse("Content-Length or Transfer-Encoding contradicts the body")),
    }
}

fn redirect(response: &hyper::Response<Incoming>) -> Option<&[u8]> {
    matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308)
        .then(|| response.headers().get(LOCATION))?
        .map(HeaderValue::as_bytes)
}

/// Where a redirect leads, if it keeps the method and the origin.
fn next_hop(status: StatusCode, from: &Url, location: &[u8]) -> Option<Url> {
    let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let next = from.join(str::from_utf8(location).ok()?).ok()?;
    let same = next.origin() == from.origin() && next.username().is_empty() && next.password().is_none();
    (keeps_method && same).then_some(next)
}

fn refused_redirect(location: &[u8]) -> HttpError {
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let location = String::from_utf8_lossy(location).chars().take(LOCATION_SHOWN).map(printable).collect();
    HttpError::Redirect { location }
}

/// A response whose body comes in. Dropping it before the end closes the connection.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// In the order and with the repetitions of the server; names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// When the head was read.
    pub at: Instant,
    body: mpsc::Receiver<Result<(Bytes, Instant), HttpError>>,
    /// How the body ended, if not well.
    failure: Option<HttpError>,
}

impl Response {
    fn new(response: hyper::Response<Incoming>, link: Link, pool: Option<&Arc<Dial>>) -> Self {
        let (head, mut incoming) = response.into_parts();
        let headers = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
        let (chunks, body) = mpsc::channel(AHEAD);
        let received =
            Self { status: head.status.as_u16(), headers: headers.collect(), at: Instant::now(), body, failure: None };
        let pool = pool.map(Arc::clone);
        // Reads ahead, so that the time of a chunk is when it came, not when it was asked for.
        tokio::spawn(async move {
            let pump = async {
                while let Some(frame) = incoming.frame().await {
                    let chunk = frame.map(|frame| frame.into_data().ok()).map_err(|error| HttpError::of(&error));
                    let failed = chunk.is_err();
                    if let Some(chunk) = chunk.transpose() {
                        let stamped = chunk.map(|bytes| (bytes, Instant::now()));
                        if chunks.send(stamped).await.is_err() || failed {
                            return false;
                        }
                    }
                }
                true
            };
            let complete = tokio::select! {
                complete = pump => complete,
                () = chunks.closed() => false,
            };
            // Before the end is told, so that the next request finds the connection.
            let mut link = link;
            if let Some(dial) = pool.filter(|_| complete)
                && matches!(tokio::time::timeout(READY_WAIT, link.sender.ready()).await, Ok(Ok(())))
            {
                dial.keep(link);
            }
        });
        received
    }

    /// The first header of that name, in any case, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        str::from_utf8(value).ok()
    }

    /// The next bytes of the body, at most [`HEAD_LIMIT`], with the time they were read; `None` at its end. Nothing is
    /// lost if the future is dropped. A failure is told every time.
    pub async fn chunk(&mut self) -> Result<Option<(Bytes, Instant)>, HttpError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        self.body.recv().await.transpose().inspect_err(|failure| self.failure = Some(failure.clone()))
    }

    /// As [`Response::chunk`], for a body that is passed on.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<(Bytes, Instant)>, HttpError>> {
        if let Some(failure) = &self.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        let chunk = ready!(self.body.poll_recv(cx)).transpose();
        Poll::Ready(chunk.inspect_err(|failure| self.failure = Some(failure.clone())))
    }

    /// The rest of the body, at most `limit` bytes, and when its last bytes were read. If the future is dropped, what
    /// it had read is lost.
    pub async fn read_all(&mut self, limit: usize) -> Result<(Bytes, Instant), HttpError> {
        let mut last = self.at;
        let mut whole = Bytes::new();
        let mut parts = BytesMut::new();
        while let Some((bytes, at)) = self.chunk().await? {
            last = at;
            if whole.len() + parts.len() + bytes.len() > limit {
                return Err(HttpError::Oversize);
            }
            if whole.is_empty() && parts.is_empty() {
                // Most bodies come in one piece.
                whole = bytes;
            } else {
                parts.extend_from_slice(&std::mem::take(&mut whole));
                parts.extend_from_slice(&bytes);
            }
        }
        Ok((if parts.is_empty() { whole } else { parts.freeze() }, last))
    }
}

#[cfg(test)]
#[path = "tests/http.rs"]
mod tests;
