//! A client of a few lines: JSON in, JSON out, on pipes or over HTTP.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, Response, StatusCode, body::Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use crate::demo::faults::Fault;
use crate::demo::{serve_http, serve_pipes};
use crate::error::Result;

/// Far above what any answer takes; a test that reaches it fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
const PIPE: usize = 1 << 16;
pub(super) const LATEST: &str = "2025-11-25";

/// Waits for something that must happen.
pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("the server did not do it in time")
}

/// A server to connect to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    Pipes(Option<Fault>),
    Http(SocketAddr),
}

/// Starts a server over HTTP that lives as long as the test.
pub(super) async fn http(fault: Option<Fault>) -> Target {
    let (ready, address) = tokio::sync::oneshot::channel();
    tokio::spawn(serve_http("127.0.0.1:0".parse().unwrap(), fault, |address| ready.send(address).unwrap()));
    Target::Http(soon(address).await.unwrap())
}

/// One session.
pub(super) struct Session {
    link: Link,
    last: u64,
    /// Messages of the server that were no reply.
    pub(super) heard: VecDeque<Value>,
    pub(super) greeting: Value,
    /// Statuses of accepted notifications over HTTP.
    pub(super) accepted: Vec<u16>,
}

enum Link {
    Pipes(Pipes),
    Http(Http),
}

pub(super) struct Pipes {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(super) server: JoinHandle<Result<()>>,
}

struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    id: Option<String>,
    revision: Option<String>,
}

impl Pipes {
    pub(super) fn new(fault: Option<Fault>) -> Self {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (read, write) = tokio::io::split(theirs);
        let server = tokio::spawn(serve_pipes(read, write, fault));
        let (output, input) = tokio::io::split(ours);
        Self { input, output: BufReader::new(output).lines(), server }
    }

    /// Writes one message; a server that has left does not hear it.
    pub(super) async fn write(&mut self, message: &Value) {
        let _ = self.input.write_all(format!("{message}\n").as_bytes()).await;
    }

    pub(super) async fn read(&mut self) -> Option<Value> {
        let line = soon(self.output.next_line()).await.ok()??;
        Some(serde_json::from_str(&line).unwrap())
    }

    pub(super) fn input(&mut self) -> &mut WriteHalf<DuplexStream> {
        &mut self.input
    }

    /// Closes the input and waits for the server to end.
    pub(super) async fn close(mut self) -> Result<()> {
        self.input.shutdown().await.unwrap();
        soon(self.server).await.unwrap()
    }
}

impl Http {
    fn request(&self, method: Method, body: Option<&Value>) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}/mcp", self.address))
            .header("accept", "application/json, text/event-stream");
        if let Some(id) = &self.id {
            request = request.header("mcp-session-id", id);
        }
        if let Some(revision) = &self.revision {
            request = request.header("mcp-protocol-version", revision);
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        request.body(Full::new(body)).unwrap()
    }

    async fn send(&self, method: Method, body: Option<&Value>) -> Response<Incoming> {
        soon(self.client.request(self.request(method, body))).await.unwrap()
    }
}

/// The status that a page of this origin gets for a message.
pub(super) async fn status(address: SocketAddr, origin: &str, message: &Value) -> u16 {
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let http = Http { client, address, id: None, revision: None };
    let mut request = http.request(Method::POST, Some(message));
    request.headers_mut().insert("origin", origin.parse().unwrap());
    soon(http.client.request(request)).await.unwrap().status().as_u16()
}

/// The JSON of the events in a piece of an event stream.
fn events(text: &str) -> impl Iterator<Item = Value> {
    text.lines().filter_map(|line| line.strip_prefix("data:")).filter_map(|data| serde_json::from_str(data).ok())
}

fn greeting(revision: &str, capabilities: &Value) -> Value {
    json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}})
}

impl Session {
    /// Opens a session as a client that declares nothing.
    pub(super) async fn open(target: Target) -> Self {
        Self::open_with(target, &json!({})).await
    }

    pub(super) async fn open_with(target: Target, capabilities: &Value) -> Self {
        let mut session = Self::greet(target, LATEST, capabilities).await;
        session.notify("notifications/initialized", &json!({})).await;
        session
    }

    /// Offers a revision and reads the answer, no more.
    pub(super) async fn greet(target: Target, revision: &str, capabilities: &Value) -> Self {
        let link = match target {
            Target::Pipes(fault) => Link::Pipes(Pipes::new(fault)),
            Target::Http(address) => {
                let mut connector = HttpConnector::new();
                connector.set_nodelay(true);
                let client = Client::builder(TokioExecutor::new()).build(connector);
                Link::Http(Http { client, address, id: None, revision: None })
            }
        };
        let mut session = Self { link, last: 0, heard: VecDeque::new(), greeting: Value::Null, accepted: Vec::new() };
        let reply = session.request("initialize", greeting(revision, capabilities)).await;
        session.greeting = reply.expect("initialize is answered");
        if let Link::Http(http) = &mut session.link {
            http.revision =
                session.greeting.pointer("/result/protocolVersion").and_then(Value::as_str).map(str::to_owned);
        }
        session
    }

    /// Sends a request and waits for its reply; none if the server ends the session first. Questions of the server are
    /// answered by `answer`.
    pub(super) async fn request_with(
        &mut self,
        method: &str,
        params: Value,
        answer: impl Fn(&Value) -> Option<Value>,
    ) -> Option<Value> {
        self.last += 1;
        let id = self.last;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        match &mut self.link {
            Link::Pipes(pipes) => {
                pipes.write(&message).await;
                loop {
                    let message = pipes.read().await?;
                    if is_reply(&message, id) {
                        return Some(message);
                    }
                    if let Some(result) = question(&message).and_then(&answer) {
                        pipes.write(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).await;
                    }
                    self.heard.push_back(message);
                }
            }
            Link::Http(http) => {
                let mut response = http.send(Method::POST, Some(&message)).await;
                if let Some(session) = response.headers().get("mcp-session-id") {
                    http.id = Some(session.to_str().unwrap().to_owned());
                }
                if response.status() != StatusCode::OK {
                    return None;
                }
                let mut text = String::new();
                loop {
                    let Some(Ok(frame)) = soon(response.frame()).await else { return None };
                    let Ok(data) = frame.into_data() else { continue };
                    text.push_str(std::str::from_utf8(&data).unwrap());
                    let Some(whole) = text.rfind("\n\n") else { continue };
                    let rest = text.split_off(whole + 2);
                    for message in events(&std::mem::replace(&mut text, rest)) {
                        if is_reply(&message, id) {
                            return Some(message);
                        }
                        if let Some(result) = question(&message).and_then(&answer) {
                            let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                            http.send(Method::POST, Some(&reply)).await;
                        }
                        self.heard.push_back(message);
                    }
                }
            }
        }
    }

    pub(super) async fn request(&mut self, method: &str, params: Value) -> Option<Value> {
        self.request_with(method, params, |_| None).await
    }

    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Option<Value> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// The structured content of a call that succeeds.
    pub(super) async fn value(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.call(tool, arguments).await.expect("the call is answered");
        assert!(is_success(&reply), "{tool} failed: {reply}");
        reply["result"]["structuredContent"].clone()
    }

    pub(super) async fn notify(&mut self, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        match &mut self.link {
            Link::Pipes(pipes) => pipes.write(&message).await,
            Link::Http(http) => self.accepted.push(http.send(Method::POST, Some(&message)).await.status().as_u16()),
        }
    }

    /// Id that the next request will have.
    pub(super) fn next_id(&self) -> u64 {
        self.last + 1
    }

    /// Ends the session the way its transport does.
    pub(super) async fn close(self) -> StatusCode {
        match self.link {
            Link::Pipes(pipes) => {
                pipes.close().await.unwrap();
                StatusCode::OK
            }
            Link::Http(http) => http.send(Method::DELETE, None).await.status(),
        }
    }

    /// Another client of the same HTTP session.
    pub(super) fn sibling(&self) -> Self {
        let Link::Http(http) = &self.link else { panic!("pipes have one client") };
        Self {
            link: Link::Http(Http {
                client: http.client.clone(),
                id: http.id.clone(),
                revision: http.revision.clone(),
                ..*http
            }),
            last: self.last + 1_000,
            heard: VecDeque::new(),
            greeting: self.greeting.clone(),
            accepted: Vec::new(),
        }
    }

    /// The pipes below, for messages of any shape.
    pub(super) fn pipes(&mut self) -> &mut Pipes {
        match &mut self.link {
            Link::Pipes(pipes) => pipes,
            Link::Http(_) => panic!("the session is no pair of pipes"),
        }
    }

    /// The first message of the stream that belongs to no request, once `then` has happened.
    pub(super) async fn overheard(&mut self, then: impl AsyncFnOnce(&mut Self)) -> Value {
        let Link::Http(http) = &self.link else { panic!("the session has no such stream") };
        let mut stream = http.send(Method::GET, None).await;
        assert_eq!(stream.status(), StatusCode::OK);
        then(self).await;
        let mut text = String::new();
        loop {
            let frame = soon(stream.frame()).await.expect("the stream goes on").unwrap();
            let Ok(data) = frame.into_data() else { continue };
            text.push_str(std::str::from_utf8(&data).unwrap());
            if text.ends_with("\n\n")
                && let Some(message) = events(&text).next()
            {
                return message;
            }
        }
    }
}

fn is_reply(message: &Value, id: u64) -> bool {
    message["id"] == id && message.get("method").is_none()
}

fn question(message: &Value) -> Option<&Value> {
    (message.get("id").is_some() && message.get("method").is_some()).then_some(message)
}

pub(super) fn is_success(reply: &Value) -> bool {
    reply["result"].is_object() && reply["result"]["isError"] != true
}

/// All text of a tool result.
pub(super) fn text(reply: &Value) -> String {
    let blocks = reply["result"]["content"].as_array().cloned().unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
