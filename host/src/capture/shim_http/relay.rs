//! The body of an answer on its way back.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::CONTENT_LENGTH;

use super::places::Place;
use super::tape::Exchange;
use crate::wire::http::{HttpError, Response};

/// Each chunk goes out as it came, and a copy of it on the tape. If the server breaks off, so does this; if the caller
/// leaves, this is dropped, and the connection to the server with it.
#[derive(Debug)]
pub struct Relay {
    response: Response,
    exchange: Exchange,
    _place: Place,
    /// What the server announced, so that the answer is framed as it was.
    left: Option<u64>,
}

impl Relay {
    pub(super) fn new(response: Response, exchange: Exchange, place: Place) -> Self {
        let left = response.header(CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
        Self { response, exchange, _place: place, left }
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let relay = self.get_mut();
        Poll::Ready(match ready!(relay.response.poll_chunk(cx)) {
            Ok(Some((bytes, at))) => {
                relay.exchange.chunk(&bytes, at);
                relay.left = relay.left.map(|left| left.saturating_sub(bytes.len() as u64));
                Some(Ok(Frame::data(bytes)))
            }
            Ok(None) => {
                relay.exchange.complete();
                None
            }
            Err(error) => {
                tracing::warn!("the upstream server broke off its answer: {error}");
                relay.exchange.broken();
                Some(Err(error))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
