//! Event streams as the HTML standard describes them, read as they arrive.

use std::collections::VecDeque;

use super::http::BODY_LIMIT;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `message` unless the server named it.
    pub kind: String,
    /// The data lines, joined by `\n`, byte for byte. Empty for an event with one empty data line, which is dispatched.
    pub data: Vec<u8>,
    /// The last id seen up to this event.
    pub id: Option<String>,
}

/// An event grew beyond [`BODY_LIMIT`]; the stream cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {BODY_LIMIT} bytes")]
pub struct Oversize;

/// The reader: bytes are pushed, events are iterated over.
#[derive(Debug, Default)]
pub struct EventStream {
    /// The line that has begun.
    line: Vec<u8>,
    /// The last byte was a CR, so an LF now belongs to it.
    after_cr: bool,
    /// The first line is complete, so no byte order mark is expected any more.
    begun: bool,
    data: Option<Vec<u8>>,
    kind: String,
    id: Option<String>,
    retry: Option<u64>,
    ready: VecDeque<Event>,
    oversize: bool,
    /// Nothing counts until the next empty line.
    skipping: bool,
}

impl EventStream {
    /// At the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Some bytes of the stream are missing from here on: what has begun is given up, and reading goes on behind the
    /// next empty line. An event that was too long is left behind in the same way.
    pub fn resynchronise(&mut self) {
        // Where the missing bytes end nobody knows, so that the first end of line may be that of any line.
        self.line = vec![0];
        (self.data, self.kind) = (None, String::new());
        (self.after_cr, self.begun, self.oversize, self.skipping) = (false, true, false, true);
    }

    /// Takes the next bytes. A character may be split anywhere.
    ///
    /// # Errors
    /// When an event is too long; then always.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Oversize> {
        let mut rest = bytes;
        while !rest.is_empty() && !self.oversize {
            if std::mem::take(&mut self.after_cr) && rest.first() == Some(&b'\n') {
                rest = rest.get(1..).unwrap_or_default();
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            if !self.skipping && self.line.len() + self.data.as_ref().map_or(0, Vec::len) + part.len() > BODY_LIMIT {
                (self.line, self.data, self.oversize) = (Vec::new(), None, true);
                break;
            }
            if self.skipping {
                // Only whether the line is empty matters.
                self.line.extend_from_slice(part.get(..1).filter(|_| self.line.is_empty()).unwrap_or_default());
            } else {
                self.line.extend_from_slice(part);
            }
            let Some((end, after)) = after.split_first() else { break };
            self.after_cr = *end == b'\r';
            rest = after;
            self.end_line();
        }
        if self.oversize { Err(Oversize) } else { Ok(()) }
    }

    /// The last id seen, also of an event without data.
    pub fn last_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The reconnection time the server asked for, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line =
            if std::mem::replace(&mut self.begun, true) { &line } else { line.strip_prefix(BOM).unwrap_or(&line) };
        if self.skipping {
            self.skipping = !line.is_empty();
            return;
        }
        if line.is_empty() {
            self.dispatch();
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = str::from_utf8(value).ok().and_then(|digits| digits.parse().ok()).or(self.retry);
            }
            // Comments, and what nobody knows.
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        let kind = std::mem::take(&mut self.kind);
        if let Some(data) = self.data.take() {
            let kind = if kind.is_empty() { "message".to_owned() } else { kind };
            let id = self.id.clone().filter(|id| !id.is_empty());
            self.ready.push_back(Event { kind, data, id });
        }
    }
}

impl Iterator for EventStream {
    type Item = Event;

    /// The next complete event; `None` until more bytes are pushed.
    fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<Event> {
        let mut stream = EventStream::new();
        let mut events = Vec::new();
        for chunk in chunks {
            stream.push(chunk).unwrap();
            events.extend(stream.by_ref());
        }
        events
    }

    fn event(kind: &str, data: &str, id: Option<&str>) -> Event {
        Event { kind: kind.into(), data: data.as_bytes().to_vec(), id: id.map(str::to_owned) }
    }

    /// Every rule at once.
    const TRICKY: &str = "\u{feff}data: ä€🦀\r\n\r\n: comment\ndata:a\rdata:  b\ndata\n\n\
        event: other\nid: 7\ndata: {\"x\":\"y: z\"}\r\r\
        id: 8\nevent: lost\n\ndata:\n\nid: no\0\nid\nretry: 1500\nretry: 15x\nnonsense: 1\nnonsense\n\u{feff}data: no\n\
        data: last\n\r\n\n\r\rdata: unfinished\n";

    fn tricky() -> Vec<Event> {
        vec![
            event("message", "ä€🦀", None),
            event("message", "a\n b\n", None),
            event("other", "{\"x\":\"y: z\"}", Some("7")),
            event("message", "", Some("8")),
            event("message", "last", None),
        ]
    }

    #[test]
    fn every_split_gives_the_same_events() {
        let bytes = TRICKY.as_bytes();
        assert_eq!(read(&[bytes]), tricky());
        for first in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(first);
            assert_eq!(read(&[head, tail]), tricky(), "split at {first}");
            let (middle, end) = tail.split_at(tail.len().min(1));
            assert_eq!(read(&[head, middle, b"", end]), tricky(), "split around {first}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), tricky());
    }

    #[test]
    fn an_event_is_ready_at_its_empty_line_whatever_ends_it() {
        for end in ["\n\n", "\r\r", "\r\n\r\n", "\r\n\n", "\n\r"] {
            assert_eq!(read(&[format!("data: x{end}").as_bytes()]), [event("message", "x", None)], "{end:?}");
        }
        assert_eq!(read(&[b"data: x\n"]), []);
    }

    #[test]
    fn reading_goes_on_behind_a_gap() {
        for (before, after) in [
            ("data: a\n\nda", "ta: b\n\ndata: c\n\n"),
            ("data: a\n\n", "data: b\n\ndata: c\n\n"),
            ("data: a\r\n\r\ndata: x", "\r\nid: 9\r\n\r\ndata: c\r\n\r\n"),
            ("data: a\n\ndata: x\n", "\n\ndata: c\n\n"),
            ("data: a\n\ndata: x\r", "\n\r\ndata: c\n\n"),
            ("data: a\n\nevent: x\ndata: y\n", "data: z\r\rdata: c\r\r"),
        ] {
            for size in [1, 3, usize::MAX] {
                let mut stream = EventStream::new();
                stream.push(before.as_bytes()).unwrap();
                stream.resynchronise();
                after.as_bytes().chunks(size).for_each(|chunk| stream.push(chunk).unwrap());
                let events: Vec<Event> = stream.collect();
                assert_eq!(events, [event("message", "a", None), event("message", "c", None)], "{before:?} {after:?}");
            }
        }
    }

    #[test]
    fn an_event_that_is_too_long_can_be_left_behind() {
        let mut stream = EventStream::new();
        stream.push(b"data: ").unwrap();
        assert_eq!(stream.push(&vec![b'x'; BODY_LIMIT]), Err(Oversize));
        stream.resynchronise();
        // What is left behind takes no room.
        stream.push(&vec![b'x'; BODY_LIMIT + 1]).unwrap();
        stream.push(b"\ndata: y\n\ndata: z\n\n").unwrap();
        assert_eq!(stream.collect::<Vec<_>>(), [event("message", "z", None)]);
    }

    #[test]
    fn ids_and_times_are_kept_without_data() {
        let mut stream = EventStream::new();
        stream.push(b"id: 1\nretry: 300\n\n").unwrap();
        assert_eq!((stream.next(), stream.last_id(), stream.retry()), (None, Some("1"), Some(300)));
        stream.push(b"data: x\n\nretry: 99999999999999999999\n\n").unwrap();
        assert_eq!(stream.next(), Some(event("message", "x", Some("1"))));
        assert_eq!(stream.retry(), Some(300));
    }

    #[test]
    fn data_that_is_not_unicode_is_not_repaired() {
        let events = read(&[b"data: \xFF\x00\xC3\n\n"]);
        assert_eq!(events.first().map(|event| event.data.as_slice()), Some(&b"\xFF\x00\xC3"[..]));
    }

    #[test]
    fn one_event_is_bounded_but_not_their_number() {
        let half = vec![b'x'; BODY_LIMIT / 2];
        let mut stream = EventStream::new();
        for _ in 0..4 {
            stream.push(b"data:").unwrap();
            stream.push(&half).unwrap();
            stream.push(b"\n\n").unwrap();
            assert_eq!(stream.next().map(|event| event.data.len()), Some(half.len()));
        }
        let mut endless = EventStream::new();
        let fed = (0..4).flat_map(|_| endless.push(&half)).count();
        assert_eq!(fed, 2);
        let mut many = EventStream::new();
        let line = [b"data:", half.as_slice(), b"\n"].concat();
        assert_eq!((0..4).map(|_| many.push(&line)).filter(Result::is_err).count(), 3);
        assert_eq!(many.push(b"\n\ndata: x\n\n"), Err(Oversize));
        assert_eq!(many.next(), None);
    }
}
