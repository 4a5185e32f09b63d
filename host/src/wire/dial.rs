//! Connections to one endpoint: addresses, encryption, and the pool of idle ones.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::OnceCell;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use url::{Host, Url};

use super::endpoint::LOCALHOST;
use super::http::{HEAD_LIMIT, HEADER_LIMIT, HttpError};

/// Head start of one address over the next.
const STAGGER: Duration = Duration::from_millis(250);
/// Most addresses of one name that are tried.
const ADDRESS_LIMIT: usize = 8;
/// Most idle connections kept.
const IDLE_LIMIT: usize = 16;
/// How long an idle connection is kept. Servers close theirs after some seconds, and a request that crosses the
/// closing would look like a fault of the server.
const IDLE_TIME: Duration = Duration::from_secs(1);

/// How to connect to one endpoint. The addresses are looked up once, so that a name cannot change its meaning.
pub(super) struct Dial {
    host: Host,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    addresses: OnceCell<Vec<SocketAddr>>,
    idle: Mutex<Vec<(Link, Instant)>>,
}

/// A connection that can take one request at a time. Dropping it closes the connection.
pub(super) struct Link {
    pub(super) sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Dial {
    /// The roots are this machine's unless given; they are only loaded for https.
    pub(super) fn new(url: &Url, roots: Option<RootCertStore>) -> Result<Self, HttpError> {
        let host = url.host().ok_or(HttpError::Unresolved)?.to_owned();
        let port = url.port_or_known_default().ok_or(HttpError::Unresolved)?;
        let tls = match url.scheme() {
            "https" => Some((TlsConnector::from(Arc::new(config(roots)?)), server_name(&host)?)),
            _ => None,
        };
        Ok(Self { host, port, tls, addresses: OnceCell::new(), idle: Mutex::default() })
    }

    /// An idle connection that is still open.
    pub(super) fn idle(&self) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(link, since)| since.elapsed() < IDLE_TIME && !link.sender.is_closed());
        idle.pop().map(|(link, _)| link)
    }

    /// Keeps a connection whose last exchange is over, if it can take another one.
    pub(super) fn keep(&self, link: Link) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if link.sender.is_ready() && idle.len() < IDLE_LIMIT {
            idle.push((link, Instant::now()));
        }
    }

    /// A new connection.
    pub(super) async fn connect(&self) -> Result<Link, HttpError> {
        let addresses = self.addresses.get_or_try_init(|| self.resolve()).await?;
        let stream = first(addresses).await.map_err(|error| HttpError::of_io(&error))?;
        stream.set_nodelay(true).map_err(|error| HttpError::of_io(&error))?;
        match &self.tls {
            None => handshake(stream).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await.map_err(|error| match error.kind() {
                    // What the peer sent is no TLS, or its certificate is not good.
                    io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => HttpError::Tls(error.to_string()),
                    _ => HttpError::of_io(&error),
                })?;
                handshake(stream).await
            }
        }
    }

    async fn resolve(&self) -> Result<Vec<SocketAddr>, HttpError> {
        let ip = |ip: IpAddr| SocketAddr::new(ip, self.port);
        let addresses: Vec<_> = match &self.host {
            Host::Ipv4(address) => vec![ip((*address).into())],
            Host::Ipv6(address) => vec![ip((*address).into())],
            Host::Domain(name) if name == "localhost" => LOCALHOST.map(ip).to_vec(),
            Host::Domain(name) => {
                let found = lookup_host((name.as_str(), self.port)).await.map_err(|_| HttpError::Unresolved)?;
                found.take(ADDRESS_LIMIT).collect()
            }
        };
        if addresses.is_empty() { Err(HttpError::Unresolved) } else { Ok(addresses) }
    }
}

/// The first address that answers; each has a head start over the next. The error is the last one's.
async fn first(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut waiting = addresses.iter().copied();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        let more = waiting.next();
        if let Some(address) = more {
            attempts.spawn(TcpStream::connect(address));
        } else if attempts.is_empty() {
            return Err(last);
        }
        let attempt = attempts.join_next();
        let result = match more {
            Some(_) if waiting.len() > 0 => tokio::time::timeout(STAGGER, attempt).await.ok().flatten(),
            _ => attempt.await,
        };
        match result {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(error))) => last = error,
            Some(Err(_)) | None => {}
        }
    }
}

async fn handshake(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Link, HttpError> {
    let (sender, connection) = http1::Builder::new()
        .max_headers(HEADER_LIMIT)
        .max_header_size(HEAD_LIMIT)
        .max_buf_size(HEAD_LIMIT)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| HttpError::of(&error))?;
    // How it ended, the exchange tells.
    let driver = tokio::spawn(async { drop(connection.await) });
    Ok(Link { sender, driver })
}

fn config(roots: Option<RootCertStore>) -> Result<ClientConfig, HttpError> {
    let roots = roots.unwrap_or_else(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    });
    if roots.is_empty() {
        return Err(HttpError::Tls("this machine has no root certificates".into()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::Tls(error.to_string()))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn server_name(host: &Host) -> Result<ServerName<'static>, HttpError> {
    match host {
        Host::Domain(name) => ServerName::try_from(name.clone()).map_err(|_| HttpError::Unresolved),
        Host::Ipv4(address) => Ok(ServerName::from(IpAddr::from(*address))),
        Host::Ipv6(address) => Ok(ServerName::from(IpAddr::from(*address))),
    }
}
