//! The gate before an HTTP server: it reads the head of every request on the raw connection, judges it, and only then
//! lets hyper see it.
//!
//! hyper would take a repeated `Host`, take a length together with chunks, and close without a word when a head comes
//! late. Behind the gate it sees well-formed requests of this machine alone: heads within the [`Limits`], each field
//! that decides once, `Host`, `Origin` and target of loopback. That keeps web pages out, directly and through names
//! that change their address.
//!
//! | module | owns |
//! |---|---|
//! | [`head`] | what a head must look like |
//! | [`local`] | which hosts and origins are this machine |
//! | [`refusal`] | the fixed answers |
//! | [`turn`] | whose turn it is on a connection: the caller's or ours |
//! | [`connection`] | one connection from its first byte to its last |

pub mod connection;
pub mod head;
pub mod local;
pub mod refusal;
pub mod turn;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use head::{Body, Progress, Scan};
use refusal::Refusal;
use turn::Turn;

/// Read from the connection at once, in bytes.
const CHUNK: usize = 8 * 1024;

/// What a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the request line and the headers, with the empty line.
    pub head: usize,
    /// Header lines.
    pub lines: usize,
    /// From the connection's acceptance, later from a request's first byte, to the end of its head. The same moment
    /// holds for the end of its body, which whoever reads it enforces: [`Turn::deadline`].
    pub request: Duration,
    /// From an answer's end to the first byte of the next request.
    pub idle: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No byte of the next request is here.
    Quiet,
    /// A head comes in.
    Head,
    /// This many bytes of the judged head and its body are still to be let through; at zero the answer is awaited.
    Passing(u64),
    /// A chunked body: everything passes, and the connection ends with the answer.
    Unframed,
    /// Nothing more is let through.
    Over,
}

/// A connection of which only judged requests can be read. What is written passes unchanged.
#[derive(Debug)]
pub struct Gate<S> {
    stream: S,
    limits: Limits,
    /// Read, and not let through yet.
    raw: BytesMut,
    scan: Scan,
    state: State,
    timer: Pin<Box<Sleep>>,
    /// The time of the request runs already, as it does from the connection's acceptance.
    timed: bool,
    turn: Turn,
    refusal: Option<(Refusal, bool)>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Gate<S> {
    /// Before a connection that was accepted just now.
    pub fn new(stream: S, limits: Limits) -> (Self, Turn) {
        let deadline = Instant::now() + limits.request;
        let turn = Turn::new(deadline);
        let gate = Self {
            stream,
            limits,
            raw: BytesMut::new(),
            scan: Scan::default(),
            state: State::Quiet,
            timer: Box::pin(sleep_until(deadline)),
            timed: true,
            turn: turn.clone(),
            refusal: None,
        };
        (gate, turn)
    }

    /// The connection, and the refusal that is still to be written to it: whether its request was a HEAD as well.
    fn open(self) -> (S, Option<(Refusal, bool)>) {
        (self.stream, self.refusal)
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.refusal = Some((refusal, self.raw.starts_with(b"HEAD ")));
        self.state = State::Over;
    }

    fn time(&mut self, deadline: Instant) {
        self.timer.as_mut().reset(deadline);
    }

    /// Reads more; the number of bytes, none at the end.
    fn fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut chunk = [0; CHUNK];
        let mut read = ReadBuf::new(&mut chunk);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        self.raw.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Lets at most so many bytes through.
    fn pass(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>, most: u64) -> Poll<io::Result<u64>> {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(buf.remaining());
        let passed = if !self.raw.is_empty() {
            let passed = most.min(self.raw.len());
            buf.put_slice(self.raw.get(..passed).unwrap_or_default());
            self.raw.advance(passed);
            passed
        } else if most == buf.remaining() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
            buf.filled().len() - before
        } else {
            let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
            let passed = part.filled().len();
            buf.advance(passed);
            passed
        };
        Poll::Ready(Ok(passed as u64))
    }

    /// Judges what has come of a head.
    fn judge(&mut self) {
        let blank = self.raw.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        if self.scan == Scan::default() && blank > 0 {
            // Some callers end a body with an empty line that belongs to nothing.
            self.raw.advance(blank);
        }
        match self.scan.judge(&self.raw, &self.limits) {
            Ok(Progress::Incomplete) => {}
            Ok(Progress::Complete { head, body }) => {
                self.scan = Scan::default();
                self.timed = false;
                self.turn.begin();
                self.state = match body {
                    Body::Length(length) => State::Passing(length.saturating_add(head as u64)),
                    Body::Chunked => State::Unframed,
                };
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    /// One step towards the next request; ready when the state has changed.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.state == State::Head {
            self.judge();
            if self.state != State::Head {
                return Poll::Ready(Ok(()));
            }
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            if self.raw.is_empty() {
                self.state = State::Over;
            } else {
                self.refuse(Refusal::HEAD_LATE);
            }
            return Poll::Ready(Ok(()));
        }
        if ready!(self.fill(cx))? == 0 {
            if self.raw.is_empty() {
                self.state = State::Over;
            } else {
                self.refuse(Refusal::BAD_REQUEST);
            }
            return Poll::Ready(Ok(()));
        }
        self.start_head();
        Poll::Ready(Ok(()))
    }

    /// The first bytes of a request are here.
    fn start_head(&mut self) {
        self.state = State::Head;
        if !std::mem::replace(&mut self.timed, true) {
            let deadline = Instant::now() + self.limits.request;
            self.turn.extend(deadline);
            self.time(deadline);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Gate<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let gate = self.get_mut();
        loop {
            match gate.state {
                State::Over => return Poll::Ready(Ok(())),
                State::Quiet | State::Head => ready!(gate.step(cx))?,
                State::Unframed => return gate.pass(cx, buf, u64::MAX).map_ok(|_| ()),
                State::Passing(0) if gate.turn.is_ours(cx) => {
                    // A caller that leaves is seen; what it sends ahead waits, within bounds.
                    if gate.raw.len() >= gate.limits.head {
                        return Poll::Pending;
                    }
                    if ready!(gate.fill(cx))? == 0 {
                        gate.state = State::Over;
                    }
                }
                State::Passing(0) if gate.raw.is_empty() => {
                    gate.state = State::Quiet;
                    gate.time(Instant::now() + gate.limits.idle);
                }
                State::Passing(0) => gate.start_head(),
                State::Passing(left) => {
                    let passed = ready!(gate.pass(cx, buf, left))?;
                    gate.state = if passed == 0 { State::Over } else { State::Passing(left - passed) };
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
