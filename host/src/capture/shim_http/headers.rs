//! Which headers pass, and what they say of a body.

use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};

use crate::wire::http::Response;

/// The header that names a session.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Headers of a request that pass, beside those that begin with [`PARAMETER`].
static REQUEST: [HeaderName; 9] = [
    ACCEPT,
    CONTENT_TYPE,
    VERSION,
    SESSION,
    HeaderName::from_static("mcp-method"),
    HeaderName::from_static("mcp-name"),
    HeaderName::from_static("last-event-id"),
    AUTHORIZATION,
    ORIGIN,
];
const PARAMETER: &str = "mcp-param-";
/// Headers of an answer that pass.
static RESPONSE: [HeaderName; 9] = [
    CONTENT_TYPE,
    CONTENT_ENCODING,
    VERSION,
    SESSION,
    WWW_AUTHENTICATE,
    ALLOW,
    RETRY_AFTER,
    CACHE_CONTROL,
    HeaderName::from_static("x-accel-buffering"),
];

/// The headers of a request that are passed on, repetitions included. `Accept-Encoding` is not among them, so that the
/// server has no reason to encode what is recorded.
pub fn of_request(headers: &HeaderMap) -> HeaderMap {
    let passes = |name: &HeaderName| REQUEST.contains(name) || name.as_str().starts_with(PARAMETER);
    let passed = headers.iter().filter(|(name, _)| passes(name));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The headers of an answer that are passed back, repetitions included.
pub fn of_response(response: &Response) -> HeaderMap {
    let named = |(name, value): &(String, Vec<u8>)| {
        let name = RESPONSE.iter().find(|passed| passed.as_str() == name)?;
        Some((name.clone(), HeaderValue::from_bytes(value).ok()?))
    };
    response.headers.iter().filter_map(named).collect()
}

/// Whether a `Content-Type` is JSON, whatever its case and parameters.
pub fn is_json(content_type: &[u8]) -> bool {
    is_media_type(content_type, b"application/json")
}

fn is_media_type(content_type: &[u8], wanted: &[u8]) -> bool {
    let media_type = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    media_type.trim_ascii().eq_ignore_ascii_case(wanted)
}

/// How a body is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// One message, or an array of messages.
    Json,
    /// Messages as events.
    Events,
    /// Encoded, or something else.
    Opaque,
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Whether it is an event stream, which may stay open.
    pub is_stream: bool,
    /// How its copy is to be read.
    pub content: Content,
}

impl Form {
    /// As its headers say.
    pub fn of(response: &Response) -> Self {
        let content_type = response.header(CONTENT_TYPE.as_str()).unwrap_or_default().as_bytes();
        let is_stream = is_media_type(content_type, b"text/event-stream");
        let encoding = response.header(CONTENT_ENCODING.as_str()).unwrap_or("identity").trim();
        let content = if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
            Content::Opaque
        } else if is_stream {
            Content::Events
        } else if is_json(content_type) {
            Content::Json
        } else {
            Content::Opaque
        };
        Self { is_stream, content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_does_not_pass() {
        let mut sent = HeaderMap::new();
        let listed = "accept content-type mcp-protocol-version mcp-session-id mcp-method mcp-name mcp-param-region \
                      mcp-param-x last-event-id authorization origin";
        let others = "host content-length transfer-encoding connection cookie user-agent accept-encoding expect te \
                      upgrade proxy-authorization x-forwarded-for forwarded mcp-params mcp-other";
        for name in listed.split_whitespace().chain(others.split_whitespace()) {
            sent.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_static("x"));
        }
        sent.append(ACCEPT, HeaderValue::from_bytes(b"\xE4").unwrap());
        let passed = of_request(&sent);
        assert_eq!(passed.len(), listed.split_whitespace().count() + 1);
        assert!(listed.split_whitespace().all(|name| passed.contains_key(name)), "{passed:?}");
        assert_eq!(passed.get_all(ACCEPT).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>(), [b"x", b"\xE4"]);
    }

    #[test]
    fn json_is_told_by_its_media_type() {
        for json in ["application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;"] {
            assert!(is_json(json.as_bytes()), "{json}");
        }
        for other in ["", "text/plain", "application/jsonp", "application/json-patch+json", "a; application/json"] {
            assert!(!is_json(other.as_bytes()), "{other}");
        }
    }
}
