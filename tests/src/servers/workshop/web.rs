//! The loop over HTTP: a session id for each client, one thread a connection, a stream for what belongs to no request.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::talk::{Call, Session, lock};
use super::{End, Shop, desk};
use crate::servers::good::{Message, RpcError, response};
use crate::servers::http::{Handled, Request, read_request, respond};
use crate::servers::stdio;

#[derive(Debug)]
struct Web {
    shop: Shop,
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
}

/// Serves until standard input ends; the first line of standard output is the URL.
pub(super) fn serve(shop: Shop) -> ExitCode {
    let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) else { return stdio::complain("cannot listen") };
    let Ok(address) = listener.local_addr() else { return stdio::complain("cannot listen") };
    let web = Arc::new(Web { shop, sessions: Mutex::default() });
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let web = Arc::clone(&web);
            // A broken connection ends its thread and nothing else.
            thread::spawn(move || connection(&web, stream));
        }
    });
    stdio::print(format!("http://{address}/mcp\n").as_bytes());
    let mut line = Vec::new();
    while stdio::next_line(&mut line) {}
    ExitCode::SUCCESS
}

fn connection(web: &Web, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = read_request(&mut reader, &mut stream)? {
        if answer(web, &request, &mut stream)? == Handled::Close {
            break;
        }
    }
    stream.shutdown(std::net::Shutdown::Both)
}

fn answer(web: &Web, request: &Request, stream: &mut TcpStream) -> io::Result<Handled> {
    let name = request.header("mcp-session-id");
    let session = lock(&web.sessions).get(name).cloned();
    match (request.method.as_str(), session) {
        ("POST", session) => post(web, request, session, stream),
        ("DELETE", Some(session)) => {
            web.shop.note("DELETE");
            session.listen(None);
            lock(&web.sessions).remove(name);
            respond(stream, "200 OK", "", b"")
        }
        ("GET", Some(session)) if web.shop.listens => {
            web.shop.note("GET");
            listen(&session, stream)
        }
        _ => respond(stream, "405 Method Not Allowed", "Allow: POST, DELETE\r\n", b""),
    }
}

/// Sends what belongs to no request, until the session ends or nobody reads.
fn listen(session: &Session, stream: &mut TcpStream) -> io::Result<Handled> {
    let (sender, messages) = channel::<Value>();
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: open\n\n")?;
    session.listen(Some(Arc::new(move |message: &Value| sender.send(message.clone()).map_err(io::Error::other))));
    for message in messages {
        write!(stream, "data: {message}\n\n")?;
    }
    Ok(Handled::Close)
}

fn post(web: &Web, request: &Request, known: Option<Arc<Session>>, stream: &mut TcpStream) -> io::Result<Handled> {
    let Some(message) = Message::read(&request.body) else {
        let refusal = response(&Value::Null, &Err(RpcError::new(-32700, "Parse error")));
        return respond(stream, "400 Bad Request", "Content-Type: application/json\r\n", &refusal);
    };
    let opens = message.method == "initialize";
    let session = match known {
        Some(session) => session,
        None if opens => Arc::new(Session::new(web.shop.number())),
        None => return respond(stream, "404 Not Found", "", b""),
    };
    if message.method.is_empty() {
        session.deliver(&serde_json::from_slice(&request.body).unwrap_or_default());
        return respond(stream, "202 Accepted", "", b"");
    }
    web.shop.note(format!("{} {}", message.method, message.tool()).trim_end());
    if message.method == "notifications/cancelled" {
        session.cancel(&message.params["requestId"]);
    }
    let Some(id) = &message.id else { return respond(stream, "202 Accepted", "", b"") };
    let mut headers = String::new();
    if opens {
        let name = format!("session-{}", session.number);
        headers = format!("Mcp-Session-Id: {name}\r\n");
        lock(&web.sessions).insert(name, Arc::clone(&session));
    }
    let count = session.count(message.params["name"].as_str().unwrap_or_default(), message.arguments());
    let events = Arc::new(Events { stream: Mutex::new(stream.try_clone()?), begun: Mutex::new(false) });
    let line = {
        let events = Arc::clone(&events);
        move |message: &Value| events.send(message.to_string().as_bytes())
    };
    let call = Call { session: &session, id, params: &message.params, line: &line, count };
    let end = desk::answer(&message.method, &call);
    let bytes = match end {
        End::Reply(reply) => response(id, &reply),
        End::Error(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string().into_bytes(),
        End::Silence => {
            io::copy(stream, &mut io::sink())?;
            return Ok(Handled::Close);
        }
        End::Closed => {
            events.begin()?;
            return events.end();
        }
        End::Hangup => return Ok(Handled::Close),
        End::Unread => {
            let refusal = response(&Value::Null, &Err(RpcError::new(-32700, "Parse error")));
            return respond(stream, "400 Bad Request", "Content-Type: application/json\r\n", &refusal);
        }
        End::TooLarge => return respond(stream, "413 Content Too Large", "", b""),
    };
    if *lock(&events.begun) {
        events.send(&bytes)?;
        return events.end();
    }
    respond(stream, "200 OK", &format!("Content-Type: application/json\r\n{headers}"), &bytes)
}

/// The answer to a request as an event stream, which begins with its first message.
struct Events {
    stream: Mutex<TcpStream>,
    begun: Mutex<bool>,
}

impl Events {
    fn begin(&self) -> io::Result<()> {
        let mut begun = lock(&self.begun);
        if !*begun {
            *begun = true;
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            lock(&self.stream).write_all(head)?;
        }
        Ok(())
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        self.begin()?;
        let event = [b"data: ", message, b"\n\n"].concat();
        let chunk = [format!("{:x}\r\n", event.len()).as_bytes(), &event, b"\r\n"].concat();
        lock(&self.stream).write_all(&chunk)
    }

    fn end(&self) -> io::Result<Handled> {
        lock(&self.stream).write_all(b"0\r\n\r\n")?;
        Ok(Handled::Done)
    }
}
