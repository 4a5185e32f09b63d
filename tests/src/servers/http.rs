//! The loop over HTTP/1.1, one thread a connection, and the sins of status lines, headers, bodies and streams.
//!
//! The good server wants its session id and the negotiated revision in every message after `initialize`, refuses both
//! with a status when they are missing or stale, answers GET with 405, and forgets a session at DELETE.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use super::good::{Good, Message, RpcError, response};
use super::{Fixture, Sin, stdio};

/// Most bytes of a line in a request's head.
const LINE: u64 = 64 << 10;

/// Most bytes of a request's body.
const BODY: usize = 64 << 20;

/// Where an HTTP sin acts.
#[derive(Debug, Clone, Copy)]
pub enum Bend {
    /// On a request as it came, before the server knows of it.
    Request(fn(&Request, &mut TcpStream) -> io::Result<Handled>),
    /// On the answer to a message.
    Reply(fn(&mut Exchange) -> io::Result<Handled>),
    /// There are no sessions.
    Sessionless,
}

/// What is left to do after a sin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// All of it.
    Not,
    /// Nothing; the connection lives on.
    Done,
    /// Nothing; the connection is closed.
    Close,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// A message and what is to be answered.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The message.
    pub message: &'a Message,
    /// 1 for the first session that called a tool, 2 for the next; 0 for calls of none.
    pub caller: usize,
    /// The response; none for a notification.
    pub reply: Option<Vec<u8>>,
    /// The session header to be sent, if any.
    pub session: Option<String>,
    /// The connection.
    pub stream: &'a mut TcpStream,
}

impl Exchange<'_> {
    fn headers(&self, kind: &str) -> String {
        let session = self.session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        format!("Content-Type: {kind}\r\n{session}")
    }

    fn send(&mut self, status: &str, kind: &str) -> io::Result<Handled> {
        let headers = self.headers(kind);
        let body = self.reply.take().unwrap_or_default();
        respond(self.stream, status, &headers, &body)
    }

    /// Begins an event stream, to be sent in chunks.
    pub(super) fn begin_events(&mut self) -> io::Result<()> {
        let headers = self.headers("text/event-stream");
        write!(self.stream, "HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\n\r\n")
    }

    pub(super) fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        write!(self.stream, "{:x}\r\n", bytes.len())?;
        self.stream.write_all(bytes)?;
        self.stream.write_all(b"\r\n")
    }

    /// Waits until the client closes the connection.
    fn hold(&mut self) -> io::Result<Handled> {
        io::copy(self.stream, &mut io::sink())?;
        Ok(Handled::Close)
    }

    fn refuse(&mut self) {
        if let Some(id) = &self.message.id {
            self.reply = Some(response(id, &Err(RpcError::new(-32603, "one session at a time"))));
        }
    }
}

const fn request(
    name: &'static str,
    about: &'static str,
    bend: fn(&Request, &mut TcpStream) -> io::Result<Handled>,
) -> Fixture {
    Fixture { name, about, sin: Sin::Http(Bend::Request(bend)) }
}

const fn reply(name: &'static str, about: &'static str, bend: fn(&mut Exchange) -> io::Result<Handled>) -> Fixture {
    Fixture { name, about, sin: Sin::Http(Bend::Reply(bend)) }
}

pub(super) const FIXTURES: &[Fixture] = &[
    request("html-404", "answers everything with a page that says 404", |_, stream| {
        respond(stream, "404 Not Found", "Content-Type: text/html\r\n", b"<!doctype html><title>404</title>")
    }),
    request("html-200", "answers everything with a web page", |_, stream| {
        respond(stream, "200 OK", "Content-Type: text/html\r\n", b"<!doctype html><title>Welcome</title>")
    }),
    request("status-500", "answers everything with 500", |_, stream| {
        respond(stream, "500 Internal Server Error", "", b"")
    }),
    request("status-401", "answers everything with 401", |_, stream| {
        respond(stream, "401 Unauthorized", "WWW-Authenticate: Bearer\r\n", b"")
    }),
    request("status-405", "answers everything with 405", |_, stream| {
        respond(stream, "405 Method Not Allowed", "Allow: GET\r\n", b"")
    }),
    request("redirect-307", "sends messages on to another path", |request, stream| match request.path.as_str() {
        "/mcp" => respond(stream, "307 Temporary Redirect", "Location: /moved\r\n", b""),
        _ => Ok(Handled::Not),
    }),
    request("redirect-foreign", "sends messages on to another server", |_, stream| {
        respond(stream, "307 Temporary Redirect", "Location: http://127.0.0.2:9/mcp\r\n", b"")
    }),
    request("redirect-loop", "sends messages on to where they came", |_, stream| {
        respond(stream, "308 Permanent Redirect", "Location: /mcp\r\n", b"")
    }),
    request("redirect-302", "redirects in a way that loses the body", |request, stream| match request.path.as_str() {
        "/mcp" => respond(stream, "302 Found", "Location: /moved\r\n", b""),
        _ => Ok(Handled::Not),
    }),
    request("get-stream", "leaves a stream open that holds nothing but comments", |request, stream| {
        if request.method != "GET" {
            return Ok(Handled::Not);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: nothing yet\n\n")?;
        io::copy(stream, &mut io::sink())?;
        Ok(Handled::Close)
    }),
    request("delete-405", "does not let a session be ended", |request, stream| match request.method.as_str() {
        "DELETE" => respond(stream, "405 Method Not Allowed", "Allow: POST\r\n", b""),
        _ => Ok(Handled::Not),
    }),
    request("payload-413", "refuses bodies above 100,000 bytes with 413", |request, stream| {
        if request.body.len() < 100_000 {
            return Ok(Handled::Not);
        }
        respond(stream, "413 Content Too Large", "", b"")
    }),
    request("payload-closed", "closes the connection at bodies above 100,000 bytes", |request, _| {
        Ok(if request.body.len() < 100_000 { Handled::Not } else { Handled::Close })
    }),
    reply("closes-connections", "nothing is wrong: says that it closes each connection, and does", |exchange| {
        let (status, headers) = match exchange.reply {
            Some(_) => ("200 OK", exchange.headers("application/json")),
            None => ("202 Accepted", String::new()),
        };
        let body = exchange.reply.take().unwrap_or_default();
        respond(exchange.stream, status, &format!("{headers}Connection: close\r\n"), &body)?;
        Ok(Handled::Close)
    }),
    Fixture { name: "no-session", about: "gives no session id", sin: Sin::Http(Bend::Sessionless) },
    reply("charset", "names a character set beside the content type", |exchange| {
        if exchange.reply.is_none() {
            return Ok(Handled::Not);
        }
        exchange.send("200 OK", "Application/JSON; charset=utf-8")
    }),
    reply("error-in-400", "sends errors with status 400", |exchange| {
        let reply = exchange.reply.as_deref().and_then(|reply| serde_json::from_slice::<Value>(reply).ok());
        if reply.is_some_and(|reply| reply.get("error").is_some()) {
            exchange.send("400 Bad Request", "application/json")
        } else {
            Ok(Handled::Not)
        }
    }),
    reply("notify-200", "answers notifications with 200", |exchange| notified(exchange, "200 OK")),
    reply("notify-204", "answers notifications with 204", |exchange| notified(exchange, "204 No Content")),
    reply("notify-400", "answers notifications with 400", |exchange| notified(exchange, "400 Bad Request")),
    reply("notify-500", "answers notifications with 500", |exchange| notified(exchange, "500 Internal Server Error")),
    reply("second-session", "refuses calls of every session but the first", |exchange| {
        if exchange.caller > 1 {
            exchange.refuse();
        }
        Ok(Handled::Not)
    }),
    reply("events", "streams its answers with every liberty of the format, byte after byte", |exchange| {
        let Some(events) = events(exchange, "\r\n") else { return Ok(Handled::Not) };
        exchange.begin_events()?;
        events.iter().try_for_each(|byte| exchange.chunk(&[*byte]))?;
        exchange.stream.write_all(b"0\r\n\r\n")?;
        Ok(Handled::Done)
    }),
    reply("events-cr", "streams its answers with lone carriage returns", |exchange| {
        let Some(events) = events(exchange, "\r") else { return Ok(Handled::Not) };
        exchange.begin_events()?;
        exchange.chunk(&events)?;
        exchange.stream.write_all(b"0\r\n\r\n")?;
        Ok(Handled::Done)
    }),
    reply("events-open", "leaves the stream open after its answer", |exchange| {
        let Some(events) = events(exchange, "\n") else { return Ok(Handled::Not) };
        exchange.begin_events()?;
        exchange.chunk(&events)?;
        exchange.hold()
    }),
    reply("events-end", "ends the stream of one answer before it", |exchange| {
        if !exchange.message.last {
            return Ok(Handled::Not);
        }
        exchange.begin_events()?;
        exchange.chunk(b": soon\n\n")?;
        exchange.stream.write_all(b"0\r\n\r\n")?;
        Ok(Handled::Done)
    }),
    reply("plain-text", "says of one answer that it is plain text", |exchange| {
        if exchange.message.last { exchange.send("200 OK", "text/plain") } else { Ok(Handled::Not) }
    }),
    reply("body-cut", "closes the connection before the end of one answer", |exchange| {
        if !exchange.message.last {
            return Ok(Handled::Not);
        }
        let body = exchange.reply.take().unwrap_or_default();
        let headers = exchange.headers("application/json");
        write!(exchange.stream, "HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", body.len() + 100)?;
        exchange.stream.write_all(&body)?;
        Ok(Handled::Close)
    }),
    reply("body-open", "never ends the body of one answer", |exchange| {
        if !exchange.message.last {
            return Ok(Handled::Not);
        }
        let headers = exchange.headers("application/json");
        write!(exchange.stream, "HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\n\r\n")?;
        exchange.chunk(b"{\"jsonrpc\":\"2.0\",")?;
        exchange.hold()
    }),
    reply("head-huge", "sends 8 MiB of headers with one answer", |exchange| {
        if !exchange.message.last {
            return Ok(Handled::Not);
        }
        let body = exchange.reply.take().unwrap_or_default();
        let line = format!("X-Filler: {}\r\n", "x".repeat(8 << 10));
        let headers = format!("{}{}", exchange.headers("application/json"), line.repeat(1 << 10));
        respond(exchange.stream, "200 OK", &headers, &body)
    }),
    reply("status-once", "answers one call with 503", |exchange| {
        if exchange.message.last {
            respond(exchange.stream, "503 Service Unavailable", "", b"")
        } else {
            Ok(Handled::Not)
        }
    }),
    reply("opens-once", "fails one call, and opens no second session", |exchange| {
        let opens = exchange.session.as_ref().is_some_and(|session| session != "session-1");
        if opens || exchange.message.last {
            respond(exchange.stream, "503 Service Unavailable", "", b"")
        } else {
            Ok(Handled::Not)
        }
    }),
    reply("garbage-head", "answers one call with something that is not HTTP", |exchange| {
        if exchange.message.last {
            exchange.stream.write_all(b"SSH-2.0-shop\r\n\r\n")?;
            return Ok(Handled::Close);
        }
        Ok(Handled::Not)
    }),
];

/// Sends one whole response.
pub(super) fn respond(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> io::Result<Handled> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n{headers}").into_bytes();
    if !status.starts_with("204") {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    stream.write_all(&bytes)?;
    Ok(Handled::Done)
}

fn notified(exchange: &mut Exchange, status: &str) -> io::Result<Handled> {
    if exchange.message.is_request() { Ok(Handled::Not) } else { respond(exchange.stream, status, "", b"") }
}

/// The answer as an event stream with comments, an event without data, a notification and data over two lines.
fn events(exchange: &mut Exchange, end: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8(exchange.reply.take()?).ok()?;
    let data = text.replacen(",\"id\"", &format!(",{end}data:\"id\""), 1);
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"🚀ä"}}"#;
    let lines = [
        ": a comment",
        "",
        "id: 1",
        "data:",
        "",
        "event: message",
        &format!("data: {notification}"),
        "retry: 1000",
        "",
        "unknown: field",
        "id: 2",
        "event: message",
        &format!("data: {data}"),
        "",
        "",
    ];
    Some(lines.join(end).into_bytes())
}

#[derive(Debug)]
struct State {
    good: Good,
    /// Session id to negotiated revision.
    sessions: BTreeMap<String, String>,
    opened: usize,
    /// Sessions in the order of their first call.
    callers: Vec<String>,
}

/// Serves until standard input ends; the first line of standard output is the URL.
pub(super) fn serve(good: Good, sin: Sin) -> ExitCode {
    let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) else { return stdio::complain("cannot listen") };
    let Ok(address) = listener.local_addr() else { return stdio::complain("cannot listen") };
    let state = Arc::new(Mutex::new(State { good, sessions: BTreeMap::new(), opened: 0, callers: Vec::new() }));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&state);
            // A broken connection ends its thread and nothing else.
            thread::spawn(move || connection(&state, sin, stream));
        }
    });
    stdio::print(format!("http://{address}/mcp\n").as_bytes());
    let mut line = Vec::new();
    while stdio::next_line(&mut line) {}
    ExitCode::SUCCESS
}

fn connection(state: &Mutex<State>, sin: Sin, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = read_request(&mut reader, &mut stream)? {
        let early = if let Sin::Http(Bend::Request(bend)) = sin { bend(&request, &mut stream)? } else { Handled::Not };
        let handled = if early == Handled::Not { answer(state, sin, &request, &mut stream)? } else { early };
        if handled == Handled::Close {
            break;
        }
    }
    stream.shutdown(std::net::Shutdown::Both)
}

fn answer(state: &Mutex<State>, sin: Sin, request: &Request, stream: &mut TcpStream) -> io::Result<Handled> {
    let mut guard = state.lock().unwrap_or_else(PoisonError::into_inner);
    let server = &mut *guard;
    let session = request.header("mcp-session-id").to_owned();
    if request.method != "POST" {
        server.good.note(&request.method);
        return match (request.method.as_str(), server.sessions.remove(&session)) {
            ("DELETE", Some(_)) => respond(stream, "200 OK", "", b""),
            ("DELETE", None) => respond(stream, "404 Not Found", "", b""),
            (_, Some(revision)) => {
                server.sessions.insert(session, revision);
                respond(stream, "405 Method Not Allowed", "Allow: POST, DELETE\r\n", b"")
            }
            (_, None) => respond(stream, "405 Method Not Allowed", "Allow: POST, DELETE\r\n", b""),
        };
    }
    let accept = request.header("accept");
    if !(accept.contains("application/json") && accept.contains("text/event-stream")) {
        return respond(stream, "406 Not Acceptable", "", b"");
    }
    if !request.header("content-type").starts_with("application/json") {
        return respond(stream, "415 Unsupported Media Type", "", b"");
    }
    let Some(mut message) = Message::read(&request.body) else {
        let refusal = response(&Value::Null, &Err(RpcError::new(-32700, "Parse error")));
        return respond(stream, "400 Bad Request", "Content-Type: application/json\r\n", &refusal);
    };
    let sessions = !matches!(sin, Sin::Http(Bend::Sessionless));
    if message.method != "initialize" && sessions {
        match server.sessions.get(&session) {
            None if session.is_empty() => return respond(stream, "400 Bad Request", "", b""),
            None => return respond(stream, "404 Not Found", "", b""),
            Some(revision) if *revision != request.header("mcp-protocol-version") => {
                return respond(stream, "400 Bad Request", "", b"");
            }
            Some(_) => {}
        }
    }
    server.good.receive(&mut message);
    let reply = stdio::reply(&server.good, sin, &message);
    let mut header = None;
    if let ("initialize", Some(Ok(greeting))) = (message.method.as_str(), &reply) {
        server.opened += 1;
        let id = format!("session-{}", server.opened);
        let revision = greeting["protocolVersion"].as_str().unwrap_or_default().to_owned();
        server.sessions.insert(id.clone(), revision);
        header = sessions.then_some(id);
    }
    let caller = caller(&mut server.callers, &message, &session);
    let reply = message.id.as_ref().and_then(|id| reply.map(|reply| response(id, &reply)));
    drop(guard);
    let mut exchange = Exchange { message: &message, caller, reply, session: header, stream };
    if let Sin::Http(Bend::Reply(bend)) = sin {
        let handled = bend(&mut exchange)?;
        if handled != Handled::Not {
            return Ok(handled);
        }
    }
    if exchange.reply.is_some() {
        exchange.send("200 OK", "application/json")
    } else {
        respond(exchange.stream, "202 Accepted", "", b"")
    }
}

fn caller(callers: &mut Vec<String>, message: &Message, session: &str) -> usize {
    if message.tool().is_empty() {
        return 0;
    }
    if let Some(at) = callers.iter().position(|known| known == session) {
        return at + 1;
    }
    callers.push(session.to_owned());
    callers.len()
}

/// Reads the next request; none at the end of the connection.
pub(super) fn read_request(reader: &mut BufReader<TcpStream>, stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let Some(start) = read_line(reader)? else { return Ok(None) };
    let mut words = start.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let mut request =
        Request { method: method.to_owned(), path: path.to_owned(), headers: BTreeMap::new(), body: Vec::new() };
    while let Some(line) = read_line(reader)?.filter(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(':') {
            request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    if request.header("expect").eq_ignore_ascii_case("100-continue") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if request.header("transfer-encoding").eq_ignore_ascii_case("chunked") {
        while let Some(size) = read_line(reader)? {
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            read_body(reader, &mut request.body, size)?;
            read_line(reader)?;
            if size == 0 {
                break;
            }
        }
    } else if let Ok(length) = request.header("content-length").parse() {
        read_body(reader, &mut request.body, length)?;
    }
    Ok(Some(request))
}

fn read_body(reader: &mut impl Read, body: &mut Vec<u8>, length: usize) -> io::Result<()> {
    if body.len().saturating_add(length) > BODY {
        return Err(io::Error::other("body too large"));
    }
    let start = body.len();
    body.resize(start + length, 0);
    reader.read_exact(&mut body[start..])
}

fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    reader.take(LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
}
