//! The fixed answers to requests that are not served. None repeats a byte of the request.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};

/// Why a request is not served, and how that is answered: `{"error":"LABEL"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// The word in the body.
    pub label: &'static str,
    /// The methods that are served, where that is the matter.
    pub allow: Option<&'static str>,
    /// Whether the connection ends with the answer.
    pub close: bool,
}

impl Refusal {
    /// The head, or the framing of the body, is not HTTP/1.0 or 1.1.
    pub const BAD_REQUEST: Self = Self::closing(StatusCode::BAD_REQUEST, "bad-request");
    /// The head is too long.
    pub const HEAD_LARGE: Self = Self::closing(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers-too-large");
    /// The head was not complete in time.
    pub const HEAD_LATE: Self = Self::closing(StatusCode::REQUEST_TIMEOUT, "headers-too-late");
    /// `Host`, `Origin` or `Content-Type` more than once.
    pub const REPEATED: Self = Self::closing(StatusCode::BAD_REQUEST, "repeated-header");
    /// An origin that is not this machine.
    pub const ORIGIN: Self = Self::closing(StatusCode::FORBIDDEN, "foreign-origin");
    /// No `Host`.
    pub const NO_HOST: Self = Self::closing(StatusCode::BAD_REQUEST, "host-missing");
    /// A host that is not this machine, in `Host` or in the target.
    pub const HOST: Self = Self::closing(StatusCode::FORBIDDEN, "foreign-host");
    /// The body is not JSON, by its `Content-Type`.
    pub const NOT_JSON: Self = Self::of(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content-type-not-json");
    /// Nothing is at this path.
    pub const PATH: Self = Self::of(StatusCode::NOT_FOUND, "no-such-path");
    /// The body is too long.
    pub const BODY_LARGE: Self = Self::closing(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large");
    /// The body was not complete in time.
    pub const BODY_LATE: Self = Self::closing(StatusCode::REQUEST_TIMEOUT, "body-too-late");

    /// An answer after which the connection may go on.
    pub const fn of(status: StatusCode, label: &'static str) -> Self {
        Self { status, label, allow: None, close: false }
    }

    /// An answer with which the connection ends.
    pub const fn closing(status: StatusCode, label: &'static str) -> Self {
        Self { status, label, allow: None, close: true }
    }

    /// Another method than these, which are listed as in an `Allow` header.
    pub const fn method(allow: &'static str) -> Self {
        Self { status: StatusCode::METHOD_NOT_ALLOWED, label: "method-not-allowed", allow: Some(allow), close: false }
    }

    fn body(self) -> String {
        format!("{{\"error\":\"{}\"}}", self.label)
    }

    /// For hyper to write.
    pub fn response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.body())));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// As bytes, for a connection that hyper does not see; it ends with them. The answer to a HEAD has no body.
    pub(super) fn bytes(self, to_head: bool) -> Vec<u8> {
        let body = self.body();
        let allow = self.allow.map(|methods| format!("allow: {methods}\r\n")).unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncache-control: no-store\r\n\
             x-content-type-options: nosniff\r\n{allow}content-length: {}\r\nconnection: close\r\n\r\n",
            self.status.as_u16(),
            self.status.canonical_reason().unwrap_or_default(),
            body.len(),
        );
        let mut bytes = head.into_bytes();
        if !to_head {
            bytes.extend_from_slice(body.as_bytes());
        }
        bytes
    }
}
