//! A conversation over Streamable HTTP: each message we send is a POST of its own, and the answer comes as JSON or as an
//! event stream that is read as it arrives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::{AbortHandle, JoinSet};

use super::{Cause, Fault, Inner, Origin};
use crate::wire::http::{BODY_LIMIT, EventStream, HttpError, HttpWire, Response};

/// What we accept as the body of an answer.
const ACCEPT: &str = "application/json, text/event-stream";
const EVENTS: &str = "text/event-stream";
/// How long a stream may stay open after its answer before it is closed.
const LINGER: Duration = Duration::from_millis(100);
/// How long DELETE may take.
const DELETE_PATIENCE: Duration = Duration::from_secs(2);
/// How often a stream that ended early is taken up again without anything new.
const MAX_RESUMES: u32 = 3;
/// The wait before that where the server asks for none, and the longest it may ask for.
const RESUME_WAIT: Duration = Duration::from_millis(500);
const MAX_RESUME_WAIT: Duration = Duration::from_secs(5);

/// The client half of one conversation.
#[derive(Debug)]
pub(super) struct HttpLink {
    wire: HttpWire,
    state: Mutex<HttpState>,
}

#[derive(Debug, Default)]
struct HttpState {
    session_id: Option<String>,
    revision: Option<&'static str>,
    tasks: JoinSet<()>,
    requests: HashMap<u64, AbortHandle>,
    ended: bool,
}

impl HttpLink {
    pub(super) fn new(wire: HttpWire) -> Self {
        Self { wire, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, HttpState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on every request carries the negotiated revision.
    pub(super) fn negotiated(&self, revision: &'static str) {
        self.state().revision = Some(revision);
    }

    /// Post a request; a task of its own reads the answer.
    pub(super) fn start(&self, session: &Arc<Inner>, id: u64, bytes: Vec<u8>) {
        let task = post_request(Arc::clone(session), id, bytes);
        let mut state = self.state();
        if state.ended {
            return;
        }
        let handle = state.tasks.spawn(task);
        state.requests.insert(id, handle);
        while state.tasks.try_join_next().is_some() {}
        state.requests.retain(|_, handle| !handle.is_finished());
    }

    /// Close the stream of a request nobody waits for.
    pub(super) fn abandon(&self, id: u64) {
        if let Some(handle) = self.state().requests.remove(&id) {
            handle.abort();
        }
    }

    /// Post a notification or a response and see that the server takes it.
    pub(super) async fn deliver(
        &self,
        session: &Arc<Inner>,
        bytes: Vec<u8>,
        is_notification: bool,
    ) -> Result<(), Fault> {
        let response = self.post(bytes).await?;
        match response.status {
            202 => {}
            200 | 204 => {
                let mut state = session.state();
                state.tally.odd_acks = state.tally.odd_acks.saturating_add(u32::from(is_notification));
            }
            status => {
                let what = if is_notification { "a notification" } else { "a response" };
                return Err(Fault::new(
                    Cause::Status(status),
                    format!("the server answered {what} with HTTP {status}"),
                ));
            }
        }
        Ok(())
    }

    /// Open the stream for messages that belong to no request.
    pub(super) async fn listen(&self, session: &Arc<Inner>, timeout: Duration) -> Result<bool, Fault> {
        let opening = self.get(None);
        let response = tokio::time::timeout(timeout, opening)
            .await
            .map_err(|_| Fault::new(Cause::TimedOut, "the server did not open an event stream in time"))??;
        match (response.status, is_events(&response)) {
            (405, _) => Ok(false),
            (200, true) => {
                let weak = Arc::downgrade(session);
                let task = async move {
                    let mut stream = Stream::new(response);
                    while let Ok(Some((data, at))) = stream.next().await {
                        let Some(session) = weak.upgrade() else { return };
                        session.take_in(&data, at, Origin::default());
                    }
                };
                let mut state = self.state();
                if !state.ended {
                    state.tasks.spawn(task);
                }
                Ok(true)
            }
            (200, false) => Err(Fault::new(Cause::Malformed, "the server answered GET with no event stream")),
            (status, _) => {
                Err(Fault::new(Cause::Status(status), format!("the server answered GET with HTTP {status}")))
            }
        }
    }

    /// End the conversation: close every stream, then DELETE, whatever its status.
    pub(super) async fn end(&self) {
        let (mut tasks, id) = {
            let mut state = self.state();
            if std::mem::replace(&mut state.ended, true) {
                return;
            }
            state.requests.clear();
            (std::mem::take(&mut state.tasks), state.session_id.clone())
        };
        tasks.shutdown().await;
        if id.is_some() {
            let headers = self.headers(&[]);
            let deleting = async {
                let mut response = self.wire.send("DELETE", &borrowed(&headers), Bytes::new()).await?;
                response.read_all(BODY_LIMIT).await
            };
            let _ = tokio::time::timeout(DELETE_PATIENCE, deleting).await;
        }
    }

    fn headers(&self, more: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
        let state = self.state();
        let mut headers: Vec<(&'static str, String)> =
            more.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        if let Some(id) = &state.session_id {
            headers.push(("mcp-session-id", id.clone()));
        }
        if let Some(revision) = state.revision {
            headers.push(("mcp-protocol-version", revision.to_owned()));
        }
        headers
    }

    async fn post(&self, bytes: Vec<u8>) -> Result<Response, Fault> {
        let headers = self.headers(&[("content-type", "application/json"), ("accept", ACCEPT)]);
        let response = self.wire.send("POST", &borrowed(&headers), Bytes::from(bytes)).await.map_err(|error| fault(&error))?;
        if let Some(id) = response.header("mcp-session-id") {
            self.state().session_id.get_or_insert_with(|| id.to_owned());
        }
        Ok(response)
    }

    async fn get(&self, last_event: Option<&str>) -> Result<Response, Fault> {
        let mut more = vec![("accept", EVENTS)];
        more.extend(last_event.map(|id| ("last-event-id", id)));
        let headers = self.headers(&more);
        self.wire.send("GET", &borrowed(&headers), Bytes::new()).await.map_err(|error| fault(&error))
    }
}

fn borrowed<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

fn link(session: &Inner) -> Option<&HttpLink> {
    match &session.link {
        super::Link::Http(link) => Some(link),
        super::Link::Stdio(_) => None,
    }
}

async fn post_request(session: Arc<Inner>, id: u64, bytes: Vec<u8>) {
    let Some(link) = link(&session) else { return };
    let outcome = match link.post(bytes).await {
        Ok(response) => read_answer(&session, link, id, response).await,
        Err(fault) => Err(fault),
    };
    if let Err(fault) = outcome {
        session.fail(id, fault);
    }
}

async fn read_answer(session: &Arc<Inner>, link: &HttpLink, id: u64, mut response: Response) -> Result<(), Fault> {
    let status = response.status;
    let origin = Origin { request: Some(id), status: Some(status) };
    if (200..300).contains(&status) && is_events(&response) {
        return read_stream(session, link, origin, response).await;
    }
    let kind = response.header("content-type").map(media_type).unwrap_or_default();
    let (body, at) = response.read_all(BODY_LIMIT).await.map_err(|error| fault(&error))?;
    let is_success = (200..300).contains(&status);
    if is_success && kind != "application/json" && !body.is_empty() {
        // Clients take JSON or an event stream; what comes under another name is no reply to them, nor to us.
        session.take_in_noise(&body);
        let what = describe_body(&kind, &body);
        return Err(Fault::new(Cause::Malformed, format!("HTTP {status} with {what} instead of a reply")));
    }
    if session.take_in(&body, at, origin) {
        return Ok(());
    }
    // The body was recorded as noise or as a stray reply; the request itself has no answer.
    let what = describe_body(&kind, &body);
    if is_success {
        return Err(Fault::new(Cause::Malformed, format!("HTTP {status} with {what} instead of a reply")));
    }
    Err(Fault::new(Cause::Status(status), format!("HTTP {status} with {what}")))
}

fn describe_body(kind: &str, body: &[u8]) -> &'static str {
    let start = body.trim_ascii_start();
    let is_page = kind == "text/html" || start.starts_with(b"<");
    match kind {
        _ if body.is_empty() => "an empty body",
        _ if is_page => "a web page",
        "application/json" => "JSON that is no reply to the request",
        _ => "a body that is neither application/json nor text/event-stream",
    }
}

async fn read_stream(session: &Arc<Inner>, link: &HttpLink, origin: Origin, response: Response) -> Result<(), Fault> {
    let resumes = session.opening.get().is_some_and(|opening| opening.revision.resumes);
    let mut stream = Stream::new(response);
    let mut fruitless = 0;
    loop {
        let ended = loop {
            match stream.next().await {
                Ok(Some((data, at))) => {
                    fruitless = 0;
                    if session.take_in(&data, at, origin) {
                        linger(session, stream, origin).await;
                        return Ok(());
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let Some(last) = stream.last_event().filter(|_| resumes && fruitless < MAX_RESUMES) else {
            return Err(match ended {
                Some(error) => fault(&error),
                None => Fault::new(Cause::Closed, "the event stream ended before the answer came"),
            });
        };
        fruitless += 1;
        tokio::time::sleep(stream.retry().unwrap_or(RESUME_WAIT).min(MAX_RESUME_WAIT)).await;
        let response = link.get(Some(&last)).await?;
        if response.status != 200 || !is_events(&response) {
            return Err(Fault::new(Cause::Closed, "the event stream ended before the answer came"));
        }
        stream.resume(response);
    }
}

/// The answer is there. Give the server a moment to end the stream, so that the connection can be used again.
async fn linger(session: &Arc<Inner>, mut stream: Stream, origin: Origin) {
    let rest = async {
        while let Ok(Some((data, at))) = stream.next().await {
            session.take_in(&data, at, origin);
        }
    };
    let _ = tokio::time::timeout(LINGER, rest).await;
}

/// Events of one response, with the id and delay to take it up again.
struct Stream {
    response: Response,
    events: EventStream,
    at: Instant,
    last_event: Option<String>,
    retry: Option<Duration>,
}

impl Stream {
    fn new(response: Response) -> Self {
        Self { response, events: EventStream::new(), at: Instant::now(), last_event: None, retry: None }
    }

    fn resume(&mut self, response: Response) {
        self.remember();
        self.response = response;
        self.events = EventStream::new();
    }

    fn remember(&mut self) {
        if let Some(id) = self.events.last_id() {
            self.last_event = Some(id.to_owned());
        }
        self.retry = self.events.retry().map(Duration::from_millis).or(self.retry);
    }

    fn last_event(&mut self) -> Option<String> {
        self.remember();
        self.last_event.clone().filter(|id| !id.is_empty())
    }

    fn retry(&self) -> Option<Duration> {
        self.retry
    }

    async fn next(&mut self) -> Result<Option<(Vec<u8>, Instant)>, HttpError> {
        loop {
            if let Some(event) = self.events.next() {
                if event.data.is_empty() {
                    continue;
                }
                return Ok(Some((event.data, self.at)));
            }
            match self.response.chunk().await? {
                Some((bytes, at)) => {
                    self.at = at;
                    self.events.push(&bytes).map_err(|_| HttpError::Oversize)?;
                }
                None => return Ok(None),
            }
        }
    }
}

fn is_events(response: &Response) -> bool {
    response.header("content-type").is_some_and(|value| media_type(value) == EVENTS)
}

fn media_type(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(crate) fn fault(error: &HttpError) -> Fault {
    let cause = match error {
        HttpError::Refused | HttpError::Unresolved | HttpError::Tls(_) => Cause::Unreachable,
        HttpError::Closed => Cause::Closed,
        HttpError::Oversize => Cause::TooLarge,
        _ => Cause::Other,
    };
    Fault::new(cause, error.to_string())
}
