//! Whose turn it is on a connection: the caller's, who sends a request, or ours, who answer it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

/// Shared by the gate and whoever answers.
#[derive(Debug, Clone)]
pub struct Turn(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    deadline: Instant,
    is_ours: bool,
    /// The connection, which may read on once the answer is over.
    waker: Option<Waker>,
}

impl Turn {
    pub(super) fn new(deadline: Instant) -> Self {
        Self(Arc::new(Mutex::new(Inner { deadline, is_ours: false, waker: None })))
    }

    /// By when the body of the present request must be complete.
    pub fn deadline(&self) -> Instant {
        self.lock().deadline
    }

    pub(super) fn extend(&self, deadline: Instant) {
        self.lock().deadline = deadline;
    }

    pub(super) fn begin(&self) {
        self.lock().is_ours = true;
    }

    /// Whether the answer is still being given; if so, its end wakes the task.
    pub(super) fn is_ours(&self, cx: &Context<'_>) -> bool {
        let mut inner = self.lock();
        if inner.is_ours {
            inner.waker = Some(cx.waker().clone());
        }
        inner.is_ours
    }

    /// The body of the answer, whose end passes the turn on.
    pub(super) fn hold<B>(&self, body: B) -> Held<B> {
        Held { body, _answer: Answer(self.clone()) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer under way.
#[derive(Debug)]
struct Answer(Turn);

impl Drop for Answer {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.is_ours = false;
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The body of an answer.
#[derive(Debug)]
pub struct Held<B> {
    body: B,
    _answer: Answer,
}

impl<B: Body + Unpin> Body for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
