use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Response;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::connection::attend;
use super::*;

/// Far above what any machine needs.
const PATIENCE: Duration = Duration::from_secs(30);
const LIMITS: Limits =
    Limits { head: 16 * 1024, lines: 200, request: Duration::from_secs(20), idle: Duration::from_secs(20) };
/// So short that it is waited for.
const SHORT: Duration = Duration::from_millis(150);

/// A caller's end of a connection that answers each request with its method, target and the length of its body.
fn connect(limits: Limits) -> DuplexStream {
    let (ours, theirs) = duplex(64 * 1024);
    tokio::spawn(attend(theirs, limits, |request: hyper::Request<hyper::body::Incoming>, _| async move {
        let (head, body) = request.into_parts();
        let length = body.collect().await.map_or(usize::MAX, |body| body.to_bytes().len());
        Response::new(Full::new(Bytes::from(format!("{} {} {length}", head.method, head.uri))))
    }));
    ours
}

async fn read_to_end(stream: &mut DuplexStream) -> String {
    let mut bytes = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an end").unwrap();
    String::from_utf8(bytes).unwrap()
}

/// What comes back on a connection whose caller sends these bytes in pieces of that size and then waits.
async fn pieces(bytes: &[u8], size: usize, limits: Limits) -> String {
    let mut stream = connect(limits);
    for piece in bytes.chunks(size) {
        // The other side may have ended the connection already, which the answer tells.
        if stream.write_all(piece).await.is_err() {
            break;
        }
        if size < bytes.len() {
            tokio::task::yield_now().await;
        }
    }
    read_to_end(&mut stream).await
}

async fn answer(bytes: impl AsRef<[u8]>) -> String {
    pieces(bytes.as_ref(), usize::MAX, LIMITS).await
}

/// A request that ends its connection, so that its answer has an end.
fn request(line: &str, headers: &str) -> String {
    format!("{line}\r\n{headers}Connection: close\r\n\r\n")
}

fn is_refused(answer: &str, status: u16, label: &str) -> bool {
    answer.starts_with(&format!("HTTP/1.1 {status} "))
        && answer.ends_with(&format!("\r\n\r\n{{\"error\":\"{label}\"}}"))
        && answer.contains("connection: close\r\n")
        && answer.contains("cache-control: no-store\r\n")
        && answer.contains("x-content-type-options: nosniff\r\n")
}

#[tokio::test]
async fn what_is_no_http_is_a_bad_request() {
    let post = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
    for raw in [
        "nonsense\r\n\r\n".to_owned(),
        "GET\r\n\r\n".into(),
        "GET /\r\nHost: localhost\r\n\r\n".into(),
        "GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        "GET / HTTP/1.1 \r\nHost: localhost\r\n\r\n".into(),
        " GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        "G(T / HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n".into(),
        "GET / HTTP/1.2\r\nHost: localhost\r\n\r\n".into(),
        "GET / http/1.1\r\nHost: localhost\r\n\r\n".into(),
        "GET /\u{e4} HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        "GET /\x7f HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        "GET ftp://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        "\x16\x03\x01\x02".into(),
        "GET / HTTP/1.1\r\nHost localhost\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n".into(),
        "GET / HTTP/1.1\r\n: x\r\nHost: localhost\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n".into(),
        "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x7fb\r\n\r\n".into(),
        format!("{post}Content-Length: x\r\n\r\n"),
        format!("{post}Content-Length: -1\r\n\r\n"),
        format!("{post}Content-Length: +1\r\n\r\n"),
        format!("{post}Content-Length:\r\n\r\n"),
        format!("{post}Content-Length: 1, 1\r\n\r\nx"),
        format!("{post}Content-Length: 18446744073709551616\r\n\r\n"),
        format!("{post}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
        format!("{post}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"),
        format!("{post}Transfer-Encoding: gzip\r\n\r\n"),
        format!("{post}Transfer-Encoding: gzip, chunked\r\n\r\n"),
        format!("{post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
        format!("{post}Transfer-Encoding: \x0bchunked\r\n\r\n"),
        "POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
        // What is bad comes before what is foreign or repeated.
        "GET / HTTP/1.1\r\nHost: evil.example\r\nHost: a\r\nOrigin: null\r\nbad\r\n\r\n".into(),
    ] {
        let answer = answer(&raw).await;
        assert!(is_refused(&answer, 400, "bad-request"), "{raw:?} gave {answer:?}");
    }
}

#[tokio::test]
async fn each_row_of_the_table_answers() {
    let close = |headers: &str| request("POST /mcp HTTP/1.1", headers);
    for (raw, status, label) in [
        (close("Host: localhost\r\nHost: localhost\r\n"), 400, "repeated-header"),
        (close("Host: localhost\r\nhost: evil.example\r\n"), 400, "repeated-header"),
        (close("Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://localhost\r\n"), 400, "repeated-header"),
        (close("Host: localhost\r\nContent-Type: a/b\r\nContent-Type: a/b\r\n"), 400, "repeated-header"),
        (close("Origin: http://a\r\nOrigin: http://a\r\n"), 400, "repeated-header"),
        (close("Host: localhost\r\nOrigin: null\r\n"), 403, "foreign-origin"),
        (close("Host: localhost\r\nOrigin:\r\n"), 403, "foreign-origin"),
        (close("Host: localhost\r\nOrigin: file://\r\n"), 403, "foreign-origin"),
        (close("Host: localhost\r\nOrigin: http://evil.example\r\n"), 403, "foreign-origin"),
        (close("Host: localhost\r\nOrigin: http://localhost.evil.example\r\n"), 403, "foreign-origin"),
        (close("Host: localhost\r\nOrigin: chrome-extension://localhost\r\n"), 403, "foreign-origin"),
        (close("Origin: null\r\n"), 403, "foreign-origin"),
        (close(""), 400, "host-missing"),
        (request("POST / HTTP/1.0", ""), 400, "host-missing"),
        (request("POST http://localhost/ HTTP/1.1", ""), 400, "host-missing"),
        (close("Host: evil.example\r\n"), 403, "foreign-host"),
        (close("Host:\r\n"), 403, "foreign-host"),
        (close("Host: localhost.\r\n"), 403, "foreign-host"),
        (close("Host: 0.0.0.0\r\n"), 403, "foreign-host"),
        (close("Host: localhost, localhost\r\n"), 403, "foreign-host"),
        (request("POST http://evil.example/mcp HTTP/1.1", "Host: localhost\r\n"), 403, "foreign-host"),
        (request("POST http://u@localhost/mcp HTTP/1.1", "Host: localhost\r\n"), 403, "foreign-host"),
        (request("CONNECT evil.example:443 HTTP/1.1", "Host: localhost\r\n"), 403, "foreign-host"),
        (request("GET / HTTP/1.1", "Host: localhost\r\nOrigin: http://evil.example\r\n"), 403, "foreign-origin"),
    ] {
        let answer = answer(&raw).await;
        assert!(is_refused(&answer, status, label), "{raw:?} gave {answer:?}");
    }
}

#[tokio::test]
async fn good_requests_pass_in_pieces_of_every_size() {
    let post = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
    for (raw, wanted) in [
        (request("GET /a?b HTTP/1.1", "Host: 127.0.0.1:80\r\n"), "GET /a?b 0"),
        (request("GET / HTTP/1.1", "HOST:[::1]:1 \r\nOrigin:\thttps://LOCALHOST:3000\r\n"), "GET / 0"),
        (request("GET http://127.0.0.2:9/a HTTP/1.1", "Host: localhost\r\n"), "GET http://127.0.0.2:9/a 0"),
        (request("OPTIONS * HTTP/1.1", "Host: localhost\r\n"), "OPTIONS * 0"),
        (request("GET / HTTP/1.1", "Host: localhost\r\nX:\r\nY: \u{e4} \t\"\r\n"), "GET / 0"),
        ("\r\n\r\nGET / HTTP/1.0\r\nHost: localhost\r\n\r\n".into(), "GET / 0"),
        ("GET / HTTP/1.1\nHost: localhost\nConnection: close\n\n".into(), "GET / 0"),
        (format!("{post}Connection: close\r\nContent-Length: 5\r\n\r\nab\r\nc"), "POST /mcp 5"),
        (format!("{post}Connection: close\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"), "POST /mcp 1"),
        // Chunks close the connection by themselves.
        (format!("{post}Transfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n3;x=y\r\ncde\r\n0\r\n\r\n"), "POST /mcp 5"),
    ] {
        for size in [1, 2, 7, usize::MAX] {
            let answer = pieces(raw.as_bytes(), size, LIMITS).await;
            assert!(answer.starts_with("HTTP/1.") && answer.contains(" 200 OK"), "{raw:?}: {answer:?}");
            assert!(answer.ends_with(&format!("\r\n\r\n{wanted}")), "{raw:?} gave {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_head_is_bounded_in_bytes_and_lines() {
    let head = |size: usize| {
        let start = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: ";
        format!("{start}{}\r\n\r\n", "x".repeat(size - start.len() - 4))
    };
    assert!(answer(head(LIMITS.head)).await.ends_with("GET / 0"));
    assert!(is_refused(&answer(head(LIMITS.head + 1)).await, 431, "headers-too-large"));
    assert!(is_refused(&answer(head(LIMITS.head * 4)).await, 431, "headers-too-large"));
    // Also when it never ends, and when it has no line at all.
    assert!(is_refused(&answer(&head(LIMITS.head * 2)[..LIMITS.head + 1]).await, 431, "headers-too-large"));
    assert!(is_refused(&answer("x".repeat(LIMITS.head + 1)).await, 431, "headers-too-large"));
    let lines = |count: usize| request("GET / HTTP/1.1", &format!("Host: localhost\r\n{}", "X: y\r\n".repeat(count)));
    assert!(answer(lines(LIMITS.lines - 2)).await.ends_with("GET / 0"));
    assert!(is_refused(&answer(lines(LIMITS.lines - 1)).await, 431, "headers-too-large"));
}

#[tokio::test]
async fn every_request_of_a_connection_is_judged() {
    let good = "POST /1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc";
    let evil = "POST /2 HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    for size in [1, usize::MAX] {
        let answer = pieces(format!("{good}{good}\r\n{evil}{good}").as_bytes(), size, LIMITS).await;
        assert_eq!(answer.matches("POST /1 3").count(), 2, "{answer}");
        assert!(answer.ends_with("{\"error\":\"foreign-host\"}"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 3, "{answer}");
    }
    // What hides behind the chunks of one request is not served.
    let chunked = "POST /1 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    let answer = answer(format!("{chunked}{evil}{good}")).await;
    assert_eq!((answer.matches("HTTP/1.1 ").count(), answer.contains("connection: close")), (1, true), "{answer}");
}

#[tokio::test]
async fn late_heads_are_told_and_silence_is_not() {
    let limits = Limits { request: SHORT, ..LIMITS };
    assert_eq!(pieces(b"", 1, limits).await, "");
    assert!(is_refused(&pieces(b"GET / HT", usize::MAX, limits).await, 408, "headers-too-late"));
    let partial = b"GET / HTTP/1.1\r\nHost: localhost\r\n";
    assert!(is_refused(&pieces(partial, usize::MAX, limits).await, 408, "headers-too-late"));
    // A kept connection ends without a word, or with one if a request has begun.
    let good = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let limits = Limits { request: SHORT, idle: SHORT, ..LIMITS };
    let kept = pieces(good.as_bytes(), usize::MAX, limits).await;
    assert!(kept.ends_with("GET / 0"), "{kept}");
    let begun = pieces(format!("{good}G").as_bytes(), usize::MAX, limits).await;
    assert!(begun.ends_with("{\"error\":\"headers-too-late\"}"), "{begun}");
}

#[tokio::test]
async fn a_caller_that_ends_in_the_middle_is_told_and_one_that_leaves_is_let_go() {
    let mut stream = connect(LIMITS);
    stream.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    stream.shutdown().await.unwrap();
    assert!(is_refused(&read_to_end(&mut stream).await, 400, "bad-request"));
    let mut stream = connect(LIMITS);
    stream.shutdown().await.unwrap();
    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test]
async fn a_caller_that_waits_for_leave_to_send_its_body_gets_it() {
    let mut stream = connect(LIMITS);
    let head =
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut leave = [0; 25];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut leave)).await.expect("leave").unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"abc").await.unwrap();
    assert!(read_to_end(&mut stream).await.ends_with("POST / 3"));
}

#[tokio::test]
async fn the_answer_to_a_head_request_has_no_body() {
    let answer = answer(request("HEAD / HTTP/1.1", "Host: evil.example\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_refusal_is_read_by_a_caller_that_is_still_sending() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        attend(stream, LIMITS, |_, _| async { Refusal::BODY_LARGE.response() }).await;
    });
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let body = vec![b'x'; 600 * 1024];
    let head = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.ends_with("{\"error\":\"body-too-large\"}"), "{answer}");
}

/// Counts the answers that were dropped before they came about.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_caller_that_leaves_drops_the_answer_even_if_it_sent_ahead() {
    for ahead in ["", "GET / HTTP/1.1\r\nHo"] {
        let (mut ours, theirs) = duplex(4096);
        let dropped = Arc::new(AtomicUsize::new(0));
        let guard = Arc::clone(&dropped);
        let served = tokio::spawn(attend(theirs, LIMITS, move |_, turn: Turn| {
            assert!(turn.deadline() > Instant::now());
            let guard = Dropped(Arc::clone(&guard));
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                Refusal::PATH.response()
            }
        }));
        ours.write_all(format!("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n{ahead}").as_bytes()).await.unwrap();
        tokio::task::yield_now().await;
        drop(ours);
        tokio::time::timeout(PATIENCE, served).await.expect("an end").unwrap();
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}
