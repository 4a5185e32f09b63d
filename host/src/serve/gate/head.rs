//! What the head of a request must look like: rows 2, 3 and 5 to 8 of the table of answers.

use hyper::Uri;

use super::Limits;
use super::local::{is_local_host, is_local_origin};
use super::refusal::Refusal;

/// How the body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// So many bytes; none if nothing is said.
    Length(u64),
    /// As chunks.
    Chunked,
}

/// How far a head has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Incomplete,
    /// It is complete and good.
    Complete {
        /// Its bytes, with the empty line.
        head: usize,
        /// What follows.
        body: Body,
    },
}

/// How far a head has been looked at, so that a slow sender does not make us look twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Bytes that were looked at.
    seen: usize,
    /// Where the last line that is complete ends.
    line: usize,
}

impl Scan {
    /// Looks at what has come since the last time. `raw` begins with the request line.
    pub(super) fn judge(&mut self, raw: &[u8], limits: &Limits) -> Result<Progress, Refusal> {
        while let Some(at) = raw.get(self.seen..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n')) {
            let end = self.seen + at + 1;
            let line = bare(raw.get(self.line..end).unwrap_or_default());
            if self.line == 0 {
                request_line(line)?;
            }
            (self.seen, self.line) = (end, end);
            if end > limits.head {
                return Err(Refusal::HEAD_LARGE);
            }
            if line.is_empty() {
                let body = judge(raw.get(..end).unwrap_or_default(), limits)?;
                return Ok(Progress::Complete { head: end, body });
            }
        }
        let rest = raw.get(self.seen..).unwrap_or_default();
        if self.line == 0 && rest.iter().any(|byte| *byte < b' ' && *byte != b'\r') {
            // Another protocol, such as TLS; its end of line may never come.
            return Err(Refusal::BAD_REQUEST);
        }
        self.seen = raw.len();
        if raw.len() > limits.head { Err(Refusal::HEAD_LARGE) } else { Ok(Progress::Incomplete) }
    }
}

/// Judges a complete head.
///
/// # Errors
/// The first row that matches.
pub fn judge(head: &[u8], limits: &Limits) -> Result<Body, Refusal> {
    let mut lines = head.split_inclusive(|byte| *byte == b'\n').map(bare).take_while(|line| !line.is_empty());
    let request = request_line(lines.next().unwrap_or_default())?;
    let mut fields = Fields::default();
    let mut count = 0_usize;
    for line in lines {
        count += 1;
        fields.take(line)?;
    }
    let body = fields.framing(request.is_1_0)?;
    if count > limits.lines || head.len() > limits.head {
        return Err(Refusal::HEAD_LARGE);
    }
    fields.isolation(request.authority.as_deref())?;
    Ok(body)
}

/// A line without its end.
fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

struct RequestLine {
    is_1_0: bool,
    /// The host of a target that names one.
    authority: Option<String>,
}

fn request_line(line: &[u8]) -> Result<RequestLine, Refusal> {
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::BAD_REQUEST);
    };
    let is_1_0 = match version {
        b"HTTP/1.0" => true,
        b"HTTP/1.1" => false,
        _ => return Err(Refusal::BAD_REQUEST),
    };
    let uri = str::from_utf8(target).ok().and_then(|target| target.parse::<Uri>().ok());
    let Some(uri) = uri.filter(|_| is_token(method) && target.iter().all(u8::is_ascii_graphic)) else {
        return Err(Refusal::BAD_REQUEST);
    };
    let authority = uri.authority().map(ToString::to_string);
    // An absolute target is a URL; nothing else but a path, a host, or an asterisk is a target at all.
    match uri.scheme_str() {
        Some("http" | "https") | None => Ok(RequestLine { is_1_0, authority }),
        Some(_) => Err(Refusal::BAD_REQUEST),
    }
}

/// The headers that decide.
#[derive(Default)]
struct Fields<'a> {
    host: Vec<&'a [u8]>,
    origin: Vec<&'a [u8]>,
    content_type: usize,
    length: Option<u64>,
    is_chunked: bool,
}

impl<'a> Fields<'a> {
    fn take(&mut self, line: &'a [u8]) -> Result<(), Refusal> {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(Refusal::BAD_REQUEST)?;
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or_default().trim_ascii();
        // A line that begins with a blank would go on with the one before; readers differ on whether it does.
        if !is_token(name) || !value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..)) {
            return Err(Refusal::BAD_REQUEST);
        }
        match name.to_ascii_lowercase().as_slice() {
            b"host" => self.host.push(value),
            b"origin" => self.origin.push(value),
            b"content-type" => self.content_type += 1,
            b"content-length" => {
                let length = length(value).ok_or(Refusal::BAD_REQUEST)?;
                if self.length.replace(length).is_some_and(|other| other != length) {
                    return Err(Refusal::BAD_REQUEST);
                }
            }
            b"transfer-encoding" => {
                if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Refusal::BAD_REQUEST);
                }
                self.is_chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn framing(&self, is_1_0: bool) -> Result<Body, Refusal> {
        match (self.length, self.is_chunked) {
            (length, false) => Ok(Body::Length(length.unwrap_or(0))),
            (None, true) if !is_1_0 => Ok(Body::Chunked),
            (_, true) => Err(Refusal::BAD_REQUEST),
        }
    }

    /// Keeps pages of other hosts out.
    fn isolation(&self, authority: Option<&str>) -> Result<(), Refusal> {
        if self.host.len() > 1 || self.origin.len() > 1 || self.content_type > 1 {
            return Err(Refusal::REPEATED);
        }
        if self.origin.iter().any(|origin| !is_local_origin(origin)) {
            return Err(Refusal::ORIGIN);
        }
        let host = self.host.first().ok_or(Refusal::NO_HOST)?;
        if is_local_host(host) && authority.is_none_or(|target| is_local_host(target.as_bytes())) {
            Ok(())
        } else {
            Err(Refusal::HOST)
        }
    }
}

fn length(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}
