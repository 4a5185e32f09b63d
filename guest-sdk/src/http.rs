//! Power: HTTP requests of any shape to the target's own address. A probe that calls anything here needs a grant.

use crate::backend::http;
pub use crate::bindings::mcpeval::probe::http::{Head, Request};
use crate::{Chunk, Fault, Target};

/// A request under way and its answer. Dropping it closes the connection.
#[derive(Debug)]
pub struct Response(http::Response);

/// Sends a request and returns at once, so that several can be under way.
pub fn send(target: &Target, request: &Request) -> Result<Response, Fault> {
    http::send(target.contract(), request).map(Response)
}

impl Request {
    /// A request with these headers.
    pub fn new(method: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        Self { method: method.to_owned(), headers, body: body.into() }
    }
}

impl Response {
    /// Status and headers; `None` when the wait ran out.
    pub fn head(&self, wait_ms: u32) -> Result<Option<Head>, Fault> {
        self.0.head(wait_ms)
    }

    /// The next bytes of the body; `None` when the wait ran out.
    pub fn read(&self, wait_ms: u32) -> Result<Option<Chunk>, Fault> {
        self.0.read(wait_ms)
    }
}
