//! Which hosts and origins are this machine. A name is judged as it stands, never looked up.

use std::net::Ipv4Addr;

/// Whether `HOST` or `HOST:PORT` is loopback: `localhost` in any case, a dotted quad of 127.0.0.0/8, or `[::1]`. Not so
/// `localhost.`, names below it, `0.0.0.0`, and numbers in other notations.
pub fn is_local_host(text: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(text) else { return false };
    // An address in brackets holds colons of its own.
    let at = text.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match text.get(at..).and_then(|rest| rest.find(':')) {
        Some(colon) => (text.get(..at + colon).unwrap_or_default(), text.get(at + colon + 1..)),
        None => (text, None),
    };
    let is_loopback = host.eq_ignore_ascii_case("localhost")
        || host == "[::1]"
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    is_loopback && port.is_none_or(is_port)
}

/// Whether an origin is `http` or `https` with such a host.
pub fn is_local_origin(text: &[u8]) -> bool {
    let end = text.windows(3).position(|part| part == b"://");
    let Some((scheme, rest)) = end.and_then(|end| Some((text.get(..end)?, text.get(end + 3..)?))) else {
        return false;
    };
    (scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")) && is_local_host(rest)
}

fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_judged_as_they_stand() {
        for host in ["localhost", "LocalHost:1", "127.0.0.1", "127.255.0.9:65535", "[::1]", "[::1]:8091"] {
            assert!(is_local_host(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            ":80",
            "localhost.",
            "localhost:",
            "localhost:65536",
            "localhost:+80",
            "localhost:80:80",
            "a.localhost",
            "localhost.example",
            "evil.example",
            "0.0.0.0",
            "2130706433",
            "0177.0.0.1",
            "127.1",
            "127.0.0.1.",
            "127.0.0.1.example",
            "128.0.0.1",
            "::1",
            "[::1",
            "[::1]x",
            "[::2]",
            "[::ffff:127.0.0.1]",
            "user@localhost",
            "localhost@evil.example",
            "localhost, evil.example",
            "localhost/",
            " localhost",
            "[::1]:",
            "[localhost]",
        ] {
            assert!(!is_local_host(host.as_bytes()), "{host}");
        }
        assert!(!is_local_host(b"localhost\xFF"));
    }

    #[test]
    fn origins_are_http_with_such_a_host() {
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1", "HTTP://LOCALHOST"] {
            assert!(is_local_origin(origin.as_bytes()), "{origin}");
        }
        for origin in [
            "",
            "null",
            "file://",
            "file://localhost",
            "chrome-extension://localhost",
            "localhost",
            "http:localhost",
            "http://",
            "http://localhost/",
            "http://localhost.evil.example",
            "http://evil.example",
            "http://a@localhost",
            "http://localhost http://localhost",
            "://localhost",
        ] {
            assert!(!is_local_origin(origin.as_bytes()), "{origin}");
        }
    }
}
