//! A server that answers with given bytes, however wrong.

use std::net::SocketAddr;
use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use super::*;

/// No test waits longer than this for anything.
const PATIENCE: Duration = Duration::from_secs(30);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// What one connection answers, request by request; then it is closed, or held open.
#[derive(Clone)]
struct Plan {
    answers: Vec<Vec<u8>>,
    hold: bool,
}

fn closing(answers: &[&[u8]]) -> Plan {
    Plan { answers: answers.iter().map(|answer| answer.to_vec()).collect(), hold: false }
}

fn holding(answers: &[&[u8]]) -> Plan {
    Plan { hold: true, ..closing(answers) }
}

#[derive(Default)]
struct Log {
    /// Connection and text of each request.
    requests: Mutex<Vec<(usize, String)>>,
    /// Told when a client closes a connection that is held open.
    left: Notify,
}

impl Log {
    fn requests(&self) -> Vec<(usize, String)> {
        self.requests.lock().unwrap().clone()
    }

    fn connections(&self) -> Vec<usize> {
        self.requests().into_iter().map(|(connection, _)| connection).collect()
    }
}

/// One plan per connection; the last one is repeated.
fn serve_on(listener: TcpListener, plans: Vec<Plan>, tls: Option<TlsAcceptor>) -> Arc<Log> {
    let log = Arc::new(Log::default());
    let shared = Arc::clone(&log);
    tokio::spawn(async move {
        for connection in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            let plan = plans.get(connection).or(plans.last()).unwrap().clone();
            let (log, tls) = (Arc::clone(&shared), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => talk(stream, connection, plan, &log).await,
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => talk(stream, connection, plan, &log).await,
                        Err(_) => log.left.notify_one(),
                    },
                }
            });
        }
    });
    log
}

async fn serve(plans: Vec<Plan>) -> (SocketAddr, Arc<Log>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (listener.local_addr().unwrap(), serve_on(listener, plans, None))
}

async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, connection: usize, plan: Plan, log: &Log) {
    for answer in plan.answers {
        let Some(request) = request(&mut stream).await else { return };
        log.requests.lock().unwrap().push((connection, request));
        if stream.write_all(&answer).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
    if plan.hold {
        let _ = stream.read(&mut [0; 1]).await;
        log.left.notify_one();
    }
}

/// Head and body, framed by length or as chunks.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.ok()?;
        text.push(byte[0]);
        let Some(head) = text.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let lower = String::from_utf8_lossy(&text[..head]).to_lowercase();
        let length: Option<usize> =
            lower.lines().find_map(|line| line.strip_prefix("content-length: ")).map(|n| n.parse().unwrap());
        let complete = match length {
            Some(length) => text.len() == head + 4 + length,
            None => !lower.contains("transfer-encoding") || text.ends_with(b"0\r\n\r\n"),
        };
        if complete {
            return Some(String::from_utf8_lossy(&text).into_owned());
        }
    }
}

fn wire(address: SocketAddr) -> HttpWire {
    wire_with(&format!("http://{address}/mcp"), &[])
}

fn wire_with(url: &str, headers: &[(&str, &str)]) -> HttpWire {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    HttpWire::new(Endpoint::new(url, headers, false).unwrap()).unwrap()
}

async fn post(wire: &HttpWire) -> Result<Response, HttpError> {
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    tokio::time::timeout(PATIENCE, wire.send("POST", &headers, Bytes::from_static(b"{}"))).await.unwrap()
}

async fn body(response: &mut Response) -> Result<String, HttpError> {
    let (bytes, _) = tokio::time::timeout(PATIENCE, response.read_all(BODY_LIMIT)).await.unwrap()?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

/// The body of the one answer of a fresh server.
async fn answered(answer: &[u8]) -> Result<String, HttpError> {
    let (address, _log) = serve(vec![closing(&[answer])]).await;
    body(&mut post(&wire(address)).await?).await
}

async fn patiently(notify: &Notify) {
    tokio::time::timeout(PATIENCE, notify.notified()).await.unwrap();
}

#[tokio::test]
async fn bodies_are_read_however_they_are_framed() {
    assert_eq!(answered(OK).await.unwrap(), "ok");
    assert_eq!(
        answered(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: 1\r\n\r\n"
        )
        .await
        .unwrap(),
        "abcde"
    );
    assert_eq!(answered(b"HTTP/1.1 200 OK\r\n\r\nuntil the end").await.unwrap(), "until the end");
    assert_eq!(answered(b"HTTP/1.0 200 OK\r\n\r\nold").await.unwrap(), "old");
    assert_eq!(answered(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap(), "");
    assert_eq!(
        answered(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await.unwrap(),
        "x"
    );
}

#[tokio::test]
async fn what_breaks_off_is_told() {
    assert_eq!(answered(b"").await, Err(HttpError::Closed));
    assert_eq!(answered(b"HTTP/1.1 20").await, Err(HttpError::Closed));
    assert_eq!(answered(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").await, Err(HttpError::Closed));
    assert_eq!(
        answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf").await,
        Err(HttpError::Closed)
    );

    let (address, _log) = serve(vec![closing(&[b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])]).await;
    let mut response = post(&wire(address)).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().map(|(bytes, _)| bytes), Some(Bytes::from_static(b"half")));
    assert_eq!([response.chunk().await, response.chunk().await], [Err(HttpError::Closed), Err(HttpError::Closed)]);
}

#[tokio::test]
async fn what_is_no_http_is_told() {
    for garbage in [
        &b"{\"jsonrpc\":\"2.0\"}\n\n"[..],
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nbad header line\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
    ] {
        let error = answered(garbage).await.unwrap_err();
        assert!(matches!(error, HttpError::BadHead(_)), "{error:?} for {}", String::from_utf8_lossy(garbage));
    }
    let framing = answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").await.unwrap_err();
    assert!(matches!(framing, HttpError::Other(_)), "{framing:?}");
}

#[tokio::test]
async fn heads_are_bounded() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(HEAD_LIMIT));
    assert!(matches!(answered(long.as_bytes()).await, Err(HttpError::BadHead(_))));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(HEADER_LIMIT + 1));
    assert!(matches!(answered(many.as_bytes()).await, Err(HttpError::BadHead(_))));
    let most = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{}\r\n", "X: y\r\n".repeat(HEADER_LIMIT - 1));
    assert_eq!(answered(most.as_bytes()).await.unwrap(), "");
}

#[tokio::test]
async fn bodies_are_bounded_where_they_are_read_whole() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let (address, log) = serve(vec![holding(&[&[head, vec![b'x'; 4 * 1024 * 1024]].concat()])]).await;
    let mut response = post(&wire(address)).await.unwrap();
    assert_eq!(response.read_all(1024 * 1024).await, Err(HttpError::Oversize));
    drop(response);
    patiently(&log.left).await;
}

#[tokio::test]
async fn headers_are_given_as_they_came() {
    let answer = b"HTTP/1.1 404 Nope\r\nX-A: 1\r\nMcp-Session-Id: s\r\nX-A: \xFF2\r\nContent-Length: 0\r\n\r\n";
    let (address, _log) = serve(vec![closing(&[answer])]).await;
    let response = post(&wire(address)).await.unwrap();
    assert_eq!(response.status, 404);
    let repeated: Vec<_> =
        response.headers.iter().filter(|(name, _)| name == "x-a").map(|(_, value)| value.as_slice()).collect();
    assert_eq!(repeated, [&b"1"[..], b"\xFF2"]);
    assert_eq!(response.header("MCP-session-id"), Some("s"));
    assert_eq!(response.header("missing"), None);
}

#[tokio::test]
async fn connections_are_reused_one_request_at_a_time() {
    let (address, log) = serve(vec![holding(&[OK; 3])]).await;
    let wire = wire(address);
    for _ in 0..3 {
        assert_eq!(body(&mut post(&wire).await.unwrap()).await.unwrap(), "ok");
    }
    assert_eq!(log.connections(), [0, 0, 0]);

    let (address, log) = serve(vec![holding(&[OK, OK])]).await;
    let wire = self::wire(address);
    let (one, two) = tokio::join!(post(&wire), post(&wire));
    let (mut one, mut two) = (one.unwrap(), two.unwrap());
    assert_eq!((body(&mut one).await.unwrap(), body(&mut two).await.unwrap()), ("ok".into(), "ok".into()));
    let mut connections = log.connections();
    connections.sort_unstable();
    assert_eq!(connections, [0, 1]);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_replaced() {
    let (address, log) = serve(vec![closing(&[OK])]).await;
    let wire = wire(address);
    for _ in 0..5 {
        assert_eq!(body(&mut post(&wire).await.unwrap()).await.unwrap(), "ok");
    }
    assert_eq!(log.connections(), [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn what_is_asked_for_is_sent() {
    let (address, log) = serve(vec![holding(&[OK])]).await;
    let url = format!("http://localhost:{}/a%20b/mcp?x=1&y", address.port());
    let wire = wire_with(&url, &[("Authorization", "Bearer secret"), ("Accept", "overridden")]);
    post(&wire).await.unwrap();
    let (_, request) = log.requests().pop().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head.split("\r\n").collect();
    assert_eq!(lines.remove(0), "POST /a%20b/mcp?x=1&y HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: localhost:{}", address.port());
    assert_eq!(
        lines,
        [
            "accept: overridden",
            "authorization: Bearer secret",
            "content-length: 2",
            "content-type: application/json",
            &host
        ]
    );
    assert_eq!(body, "{}");
    assert!(!format!("{wire:?}").contains("secret"));
}

#[tokio::test]
async fn redirects_within_the_origin_are_followed_for_post_only() {
    let redirect = |status: u16, location: &str| {
        format!("HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    };
    for status in [307, 308] {
        let hop = redirect(status, "/mcp/?x");
        let (address, log) = serve(vec![closing(&[&hop]), closing(&[OK])]).await;
        let response = post(&wire(address)).await.unwrap();
        assert_eq!(response.status, 200);
        let requests = log.requests();
        assert!(requests[0].1.starts_with("POST /mcp HTTP") && requests[1].1.starts_with("POST /mcp/?x HTTP"));
        assert!(requests[1].1.ends_with("\r\n\r\n{}"));

        let (address, log) = serve(vec![closing(&[&hop])]).await;
        let error = wire(address).send("GET", &[], Bytes::new()).await.unwrap_err();
        assert_eq!(error, HttpError::Redirect { location: "/mcp/?x".into() });
        assert_eq!(log.requests().len(), 1);
    }
    for (status, location) in [
        (301, "/mcp/"),
        (302, "/mcp/"),
        (303, "/mcp/"),
        (307, "https://127.0.0.1/"),
        (308, "//u:p@127.0.0.1/"),
        (307, "http://["),
    ] {
        let (address, log) = serve(vec![closing(&[&redirect(status, location)])]).await;
        assert_eq!(post(&wire(address)).await.unwrap_err(), HttpError::Redirect { location: location.into() });
        assert_eq!(log.requests().len(), 1);
    }
    // Another port is another origin.
    let (other, untouched) = serve(vec![closing(&[OK])]).await;
    let (address, _log) = serve(vec![closing(&[&redirect(307, &format!("http://{other}/mcp"))])]).await;
    assert!(matches!(post(&wire(address)).await, Err(HttpError::Redirect { .. })));
    assert_eq!(untouched.requests(), []);
}

#[tokio::test]
async fn redirects_end() {
    let round = b"HTTP/1.1 307 X\r\nLocation: /mcp\r\nContent-Length: 0\r\n\r\n";
    let (address, log) = serve(vec![closing(&[round])]).await;
    assert!(matches!(post(&wire(address)).await, Err(HttpError::Redirect { .. })));
    assert_eq!(log.requests().len(), 1 + MAX_REDIRECTS as usize);
    let (address, _log) = serve(vec![closing(&[b"HTTP/1.1 301 X\r\nContent-Length: 0\r\n\r\n"])]).await;
    assert_eq!(post(&wire(address)).await.unwrap().status, 301, "without a target it is an answer");
}

#[tokio::test]
async fn raw_requests_are_sent_as_they_are_on_their_own_connections() {
    let (address, log) = serve(vec![holding(&[OK, OK])]).await;
    let wire = wire_with(&format!("http://{address}/mcp"), &[("Authorization", "Bearer secret")]);
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    let headers = vec![
        header("Host", "evil.example"),
        header("Origin", "http://evil.example"),
        header("authorization", "guess"),
        header("X", "1"),
        header("X", "2"),
    ];
    for _ in 0..2 {
        let mut response = wire.raw("BREW", headers.clone(), Bytes::from_static(b"tea")).await.unwrap();
        assert_eq!(body(&mut response).await.unwrap(), "ok");
    }
    let requests = log.requests();
    assert_eq!(log.connections(), [0, 1]);
    for part in [
        "BREW /mcp HTTP/1.1\r\n",
        "host: evil.example\r\n",
        "origin: http://evil.example\r\n",
        "x: 1\r\nx: 2\r\n",
        "authorization: Bearer secret\r\n",
        "\r\n\r\ntea",
    ] {
        assert!(requests[0].1.contains(part), "{part:?} in {:?}", requests[0].1);
    }
    assert!(!requests[0].1.contains("guess"));
}

#[tokio::test]
async fn raw_redirects_are_answers_and_chunked_bodies_are_sent() {
    let (address, log) = serve(vec![closing(&[b"HTTP/1.1 307 X\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"])]).await;
    let chunked = vec![("Transfer-Encoding".to_owned(), b"chunked".to_vec())];
    let response = wire(address).raw("POST", chunked, Bytes::from_static(b"{}")).await.unwrap();
    assert_eq!((response.status, response.header("location")), (307, Some("/x")));
    let (_, request) = log.requests().pop().unwrap();
    assert!(
        request.contains("transfer-encoding: chunked\r\n") && request.ends_with("2\r\n{}\r\n0\r\n\r\n"),
        "{request}"
    );
    assert!(!request.contains("content-length"));
}

#[tokio::test]
async fn raw_requests_that_frame_another_message_are_refused() {
    let (address, log) = serve(vec![closing(&[OK])]).await;
    let wire = wire(address);
    let refused: &[&[(&str, &str)]] = &[
        &[("Content-Length", "3")],
        &[("content-length", "2"), ("Content-Length", "2")],
        &[("Content-Length", "2"), ("Transfer-Encoding", "chunked")],
        &[("Transfer-Encoding", "gzip, chunked")],
        &[("Transfer-Encoding", "identity")],
        &[("Content-Encoding", "gzip")],
        &[("X", "a\r\nY: b")],
        &[("X Y", "a")],
    ];
    for refused in refused {
        let headers = refused.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        assert!(
            matches!(wire.raw("POST", headers, Bytes::from_static(b"{}")).await, Err(HttpError::Other(_))),
            "{refused:?}"
        );
    }
    let many = vec![("X".to_owned(), Vec::new()); HEADER_LIMIT + 1];
    assert!(wire.raw("POST", many, Bytes::new()).await.is_err());
    let large = vec![("X".to_owned(), vec![b'x'; HEAD_LIMIT])];
    assert!(wire.raw("POST", large, Bytes::new()).await.is_err());
    assert!(wire.raw("CONNECT", Vec::new(), Bytes::new()).await.is_err());
    assert!(wire.raw("A B", Vec::new(), Bytes::new()).await.is_err());
    assert_eq!(log.requests(), []);
    let exact = vec![("Content-Length".to_owned(), b"2".to_vec())];
    assert!(wire.raw("POST", exact, Bytes::from_static(b"{}")).await.is_ok());
}

#[tokio::test]
async fn an_open_event_stream_is_read_as_it_comes_and_closed_when_dropped() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: x\r\n\r\n2\r\n\r\n\r\n";
    let (address, log) = serve(vec![holding(&[answer])]).await;
    let sent = Instant::now();
    let mut response = post(&wire(address)).await.unwrap();
    assert!(response.at >= sent);
    let mut stream = EventStream::new();
    let event = loop {
        let (bytes, at) = response.chunk().await.unwrap().unwrap();
        assert!(at >= response.at && at <= Instant::now());
        stream.push(&bytes).unwrap();
        if let Some(event) = stream.next() {
            break event;
        }
    };
    assert_eq!(event.data, b"x");
    assert!(tokio::time::timeout(Duration::from_millis(100), response.chunk()).await.is_err(), "it stays open");
    drop(response);
    patiently(&log.left).await;
}

#[tokio::test]
async fn giving_up_before_the_answer_closes_the_connection() {
    let (address, log) = serve(vec![holding(&[b""])]).await;
    let wire = wire(address);
    assert!(
        tokio::time::timeout(Duration::from_millis(200), wire.send("POST", &[], Bytes::from_static(b"{}")))
            .await
            .is_err()
    );
    patiently(&log.left).await;
    assert_eq!(log.requests().len(), 1);
}

#[tokio::test]
async fn who_does_not_listen_is_told_apart_from_who_has_no_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    assert_eq!(post(&wire(address)).await.unwrap_err(), HttpError::Refused);
    assert_eq!(
        post(&wire_with(&format!("http://localhost:{}", address.port()), &[])).await.unwrap_err(),
        HttpError::Refused
    );
    // Too long a label for any name service.
    let nowhere = Endpoint::new(&format!("https://{}.invalid/", "a".repeat(64)), Vec::new(), true).unwrap();
    let answer = match HttpWire::new(nowhere) {
        Ok(wire) => post(&wire).await.map(|response| response.status),
        Err(error) => Err(error),
    };
    assert_eq!(answer, Err(HttpError::Unresolved));
}

#[tokio::test]
async fn localhost_means_both_families() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        // A machine without IPv6 has one family to try.
        let Ok(listener) = TcpListener::bind(address).await else { continue };
        let port = listener.local_addr().unwrap().port();
        let _log = serve_on(listener, vec![closing(&[OK])], None);
        let mut response = post(&wire_with(&format!("http://localhost:{port}/"), &[])).await.unwrap();
        assert_eq!(body(&mut response).await.unwrap(), "ok");
    }
}

/// Presents a certificate for `localhost` and `127.0.0.1`, made for these tests alone and valid until 2126.
fn acceptor() -> TlsAcceptor {
    let chain = vec![CertificateDer::from(&include_bytes!("tls/leaf.der")[..])];
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(&include_bytes!("tls/leaf.key.der")[..]));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    TlsAcceptor::from(Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap()))
}

fn trusting(url: &str) -> HttpWire {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(&include_bytes!("tls/root.der")[..])).unwrap();
    let endpoint = Endpoint::new(url, Vec::new(), false).unwrap();
    let dial = Arc::new(Dial::new(endpoint.url(), Some(roots)).unwrap());
    HttpWire(Arc::new(Inner { endpoint, dial }))
}

#[tokio::test]
async fn https_is_spoken_with_those_who_can_prove_their_name() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let log = serve_on(listener, vec![holding(&[OK, OK])], Some(acceptor()));
    for host in ["localhost", "127.0.0.1"] {
        let wire = trusting(&format!("https://{host}:{port}/mcp"));
        for _ in 0..2 {
            assert_eq!(body(&mut post(&wire).await.unwrap()).await.unwrap(), "ok");
        }
    }
    assert_eq!(log.connections(), [0, 0, 1, 1]);
    let stranger = post(&trusting(&format!("https://127.0.0.2:{port}/mcp"))).await.unwrap_err();
    assert!(matches!(&stranger, HttpError::Tls(why) if why.contains("not valid for name")), "{stranger:?}");
    let untrusted = post(&wire_with(&format!("https://localhost:{port}/mcp"), &[])).await.unwrap_err();
    assert!(matches!(&untrusted, HttpError::Tls(why) if why.contains("UnknownIssuer")), "{untrusted:?}");

    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let error = post(&trusting(&format!("https://{address}/mcp"))).await.unwrap_err();
    assert!(matches!(error, HttpError::Tls(_)), "{error:?}");
}
