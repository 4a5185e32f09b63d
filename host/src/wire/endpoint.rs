//! Which addresses may be asked, and what the operator adds to every request.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use url::{Host, Url};

/// Most headers an operator may add.
const HEADER_COUNT: usize = 64;
/// Most bytes of one header's value.
const VALUE_LIMIT: usize = 16 * 1024;
/// Headers that frame the message, which is not the operator's business.
const FRAMING: [HeaderName; 4] = [CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING];

/// Where a server is asked over HTTP. Cheap enough to clone; its `Debug` shows no header value.
#[derive(Clone)]
pub struct Endpoint {
    url: Url,
    headers: HeaderMap,
}

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It cannot be read as a URL.
    #[error("this is no URL ({0}); write it with its scheme, like http://127.0.0.1:8000/mcp")]
    Malformed(String),
    /// Neither http nor https.
    #[error("the URL's scheme is {0}; only http and https are spoken")]
    Scheme(String),
    /// It holds a user name or password.
    #[error("the URL holds a user name or password; give credentials in MCPEVAL_HTTP_AUTHORIZATION")]
    Credentials,
    /// It holds a fragment.
    #[error("the URL holds a fragment, which is never sent; leave out the # and what follows")]
    Fragment,
    /// Not on this machine, and that was not allowed.
    #[error("{0} is not this machine; add --allow-remote-http to evaluate a remote server")]
    Remote(String),
    /// Remote and not encrypted.
    #[error("{0} is not this machine, so its URL must start with https://")]
    Plain(String),
    /// The name or value of an added header cannot be sent. The value is never shown.
    #[error("the header {0} cannot be sent; check its name and that its value is one line of at most 16 KiB")]
    Header(String),
    /// The header frames the message.
    #[error("the header {0} belongs to the transport and cannot be set")]
    Framing(String),
    /// More headers than allowed.
    #[error("more than {HEADER_COUNT} headers were given")]
    Headers,
}

impl Endpoint {
    /// Loopback addresses (127.0.0.0/8, `::1`, `localhost`) over http and https; others over https only, and only if
    /// `allow_remote`. The headers are taken for secrets.
    pub fn new(url: &str, headers: Vec<(String, String)>, allow_remote: bool) -> Result<Self, EndpointError> {
        let url = Url::parse(url).map_err(|error| EndpointError::Malformed(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EndpointError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::Credentials);
        }
        if url.fragment().is_some() {
            return Err(EndpointError::Fragment);
        }
        let host = url.host().ok_or_else(|| EndpointError::Malformed("it has no host".into()))?;
        if !is_loopback(&host) {
            let host = host.to_string();
            if !allow_remote {
                return Err(EndpointError::Remote(host));
            }
            if url.scheme() != "https" {
                return Err(EndpointError::Plain(host));
            }
        }
        Ok(Self { headers: added(headers)?, url })
    }

    /// The address.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// What is added to every request.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may hold a key.
        let mut url = self.url.clone();
        url.set_query(None);
        let names: Vec<_> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Endpoint").field("url", &url.as_str()).field("headers", &names).finish()
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Both loopback addresses: what `localhost` means is not left to a name service.
pub(super) const LOCALHOST: [IpAddr; 2] = [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)];

fn added(headers: Vec<(String, String)>) -> Result<HeaderMap, EndpointError> {
    if headers.len() > HEADER_COUNT {
        return Err(EndpointError::Headers);
    }
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let value = HeaderValue::from_str(&value).ok().filter(|value| value.len() <= VALUE_LIMIT);
        let (Ok(key), Some(mut value)) = (HeaderName::from_bytes(name.as_bytes()), value) else {
            return Err(EndpointError::Header(name.escape_debug().to_string()));
        };
        if FRAMING.contains(&key) {
            return Err(EndpointError::Framing(name));
        }
        value.set_sensitive(true);
        map.append(key, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str, allow_remote: bool) -> EndpointError {
        Endpoint::new(url, Vec::new(), allow_remote).unwrap_err()
    }

    #[test]
    fn loopback_is_allowed_in_every_spelling() {
        for url in [
            "http://127.0.0.1:1/mcp",
            "http://127.8.9.1/",
            "https://[::1]:2/mcp",
            "http://localhost:3/mcp?x=1",
            "http://LOCALHOST",
            "http://2130706433/",
        ] {
            assert!(Endpoint::new(url, Vec::new(), false).is_ok(), "{url}");
        }
    }

    #[test]
    fn others_need_leave_and_encryption() {
        for url in [
            "http://example.com/",
            "https://192.168.1.1/",
            "http://localhost.example.com/",
            "https://[::ffff:127.0.0.1]/",
            "http://0.0.0.0/",
        ] {
            assert!(matches!(refusal(url, false), EndpointError::Remote(_)), "{url}");
        }
        assert!(matches!(refusal("http://example.com/", true), EndpointError::Plain(_)));
        assert!(Endpoint::new("https://example.com/mcp", Vec::new(), true).is_ok());
    }

    #[test]
    fn what_is_no_plain_address_is_refused() {
        assert!(matches!(refusal("127.0.0.1:80", false), EndpointError::Malformed(_)));
        assert!(matches!(refusal("http://", false), EndpointError::Malformed(_)));
        assert!(matches!(refusal("ftp://127.0.0.1/", false), EndpointError::Scheme(_)));
        assert!(matches!(refusal("file:///etc/passwd", true), EndpointError::Scheme(_)));
        assert!(matches!(refusal("http://u:hunter2@127.0.0.1/", false), EndpointError::Credentials));
        assert!(matches!(refusal("http://127.0.0.1/#a", false), EndpointError::Fragment));
    }

    #[test]
    fn header_values_are_never_shown() {
        let with = |name: &str, value: &str| {
            Endpoint::new("http://127.0.0.1/?key=hunter2", vec![(name.into(), value.into())], false)
        };
        let endpoint = with("Authorization", "Bearer hunter2").unwrap();
        assert!(!format!("{endpoint:?} {:?}", endpoint.headers()).contains("hunter2"));
        let error = with("Authorization", "hunter2\r\nX: 1").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        assert!(matches!(with("a b", ""), Err(EndpointError::Header(_))));
        assert!(matches!(with("Transfer-Encoding", "chunked"), Err(EndpointError::Framing(_))));
        let many = vec![("a".to_owned(), String::new()); HEADER_COUNT + 1];
        assert_eq!(Endpoint::new("http://127.0.0.1/", many, false).unwrap_err(), EndpointError::Headers);
    }
}
