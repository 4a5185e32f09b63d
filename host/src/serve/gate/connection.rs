//! One connection from its first byte to its last: the gate, hyper behind it, and an end that lets the caller read the
//! answer.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HeaderValue, TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::turn::Turn;
use super::{Gate, Limits};

/// How much of an unread request is still taken after its answer. A connection that is closed with unread bytes is
/// reset, and the answer is lost.
pub const DRAIN_BYTES: u64 = 1024 * 1024;
/// For how long.
pub const DRAIN_TIME: Duration = Duration::from_secs(1);

/// Serves the requests of one connection until either side ends it. Heads are judged before `answer` is asked; after a
/// chunked request the connection closes, as the gate does not look for a request behind the chunks. If the caller
/// leaves, the answer under way is dropped.
pub async fn attend<S, A, F, B>(stream: S, limits: Limits, answer: A)
where
    S: AsyncRead + AsyncWrite + Unpin,
    A: Fn(Request<Incoming>, Turn) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (gate, turn) = Gate::new(stream, limits);
    let service = service_fn(|request: Request<Incoming>| {
        let turn = turn.clone();
        let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let answer = answer(request, turn.clone());
        Box::pin(async move {
            let mut response = answer.await;
            if is_chunked {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|body| turn.hold(body)))
        })
    });
    let connection = http1::Builder::new()
        // One more line than the gate lets through, and room for its largest head.
        .max_headers(limits.lines + 1)
        .max_buf_size(limits.head.max(super::CHUNK) + super::CHUNK)
        .serve_connection(TokioIo::new(gate), service);
    // What went wrong on the connection concerns its caller alone, who has left or broken off.
    let Ok(parts) = connection.without_shutdown().await else { return };
    let (mut stream, refusal) = parts.io.into_inner().open();
    if let Some((refusal, to_head)) = refusal {
        let written = timeout(DRAIN_TIME, stream.write_all(&refusal.bytes(to_head))).await;
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
    let linger = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut (&mut stream).take(DRAIN_BYTES), &mut tokio::io::sink()).await
    };
    // Whether anything was left to read makes no difference.
    _ = timeout(DRAIN_TIME, linger).await;
}
