//! Sins of how the bytes of an answer look on standard output. Where the sin makes an answer unusable, it is the third
//! valid call of `get_price` that suffers, so that one verdict suffers and no other.

use std::io;
use std::process;

use serde_json::Value;

use super::good::Message;
use super::stdio::write;
use super::{Fixture, Sin};

/// Writes one answer, given as its line, in another way. The line is empty after a message that wants no answer.
pub type Line = fn(&Message, Vec<u8>) -> io::Result<()>;

const fn fixture(name: &'static str, about: &'static str, bend: Line) -> Fixture {
    Fixture { name, about, sin: Sin::Line(bend) }
}

pub(super) const FIXTURES: &[Fixture] = &[
    fixture("noise", "prints a banner, a log line and a stray JSON value before each answer", |_, line| {
        write("🚀 started\ninfo: Shop.Hosting[0]\n[1,2]\n\"text\"\n42\n\n".as_bytes())?;
        write(&line)
    }),
    fixture("json-no-rpc", "prints a JSON object that is no message before each answer", |_, line| {
        write(b"{\"status\":200,\"message\":\"Success\",\"results\":[]}\n")?;
        write(&line)
    }),
    fixture("crlf", "ends its lines with carriage return and line feed", |_, mut line| {
        if line.pop().is_some() {
            line.extend_from_slice(b"\r\n");
        }
        write(&line)
    }),
    fixture("split-writes", "writes each answer byte after byte", |_, line| line.chunks(1).try_for_each(write)),
    fixture("bom", "begins one answer with a byte order mark", |message, line| {
        spoil(message, line, |line| [b"\xef\xbb\xbf", line].concat())
    }),
    fixture("half-message", "ends the line of one answer in its middle", |message, line| {
        spoil(message, line, |line| [&line[..line.len() / 2], b"\n"].concat())
    }),
    fixture("pretty", "prints one answer over several lines", |message, line| {
        spoil(message, line, |line| {
            let value: Value = serde_json::from_slice(line).unwrap_or_default();
            format!("{value:#}\n").into_bytes()
        })
    }),
    fixture("huge-line", "prints one answer of 5 MiB", |message, line| {
        spoil(message, line, |line| replace(line, b"\"content\":[", &pad(5 << 20)))
    }),
    fixture("non-utf8", "writes one answer in another encoding", |message, line| {
        spoil(message, line, |line| replace(line, b"\"text\":\"", b"\"text\":\"\xb0\xa1"))
    }),
    fixture("nul", "writes zero bytes before one answer", |message, line| {
        spoil(message, line, |line| [b"\0\0\0", line].concat())
    }),
    fixture("deep-noise", "prints arrays nested 10,000 times before each answer", |_, line| {
        write(format!("{}{}\n", "[".repeat(10_000), "]".repeat(10_000)).as_bytes())?;
        write(&line)
    }),
    fixture("deep", "puts objects nested 10,000 times into one answer", |message, line| {
        spoil(message, line, |line| {
            let nested = format!("\"_meta\":{}1{},\"content\":", "{\"a\":".repeat(10_000), "}".repeat(10_000));
            replace(line, b"\"content\":", nested.as_bytes())
        })
    }),
    fixture(
        "deep-structured",
        "puts objects nested 10,000 times into the structured content of one answer",
        |message, line| {
            spoil(message, line, |line| {
                let nested = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
                replace(
                    line,
                    b"\"structuredContent\":{",
                    format!("\"structuredContent\":{{\"more\":{nested},").as_bytes(),
                )
            })
        },
    ),
    fixture("duplicate-keys", "repeats a member of the message in one answer", |message, line| {
        spoil(message, line, |line| replace(line, b"\"jsonrpc\"", b"\"jsonrpc\":\"2.0\",\"jsonrpc\""))
    }),
    fixture("duplicate-result-keys", "repeats a member of the result in each answer to a call", |_, line| {
        write(&replace(&line, b"\"content\"", b"\"content\":[],\"content\""))
    }),
    fixture("id-as-float", "writes its ids with a fraction of zero", |message, line| {
        let id = message.id.clone().unwrap_or_default();
        write(&replace(&line, format!("\"id\":{id},").as_bytes(), format!("\"id\":{id}.0,").as_bytes()))
    }),
    fixture("wrong-id", "answers one call under another number", |message, line| {
        respond_as(message, line, |id| format!("{}", id.as_i64().unwrap_or(0) + 1_000_000))
    }),
    fixture("id-as-text", "answers one call under its number as a string", |message, line| {
        respond_as(message, line, |id| format!("\"{id}\""))
    }),
    fixture("id-null", "answers one call under no number", |message, line| {
        respond_as(message, line, |_| "null".to_owned())
    }),
    fixture("duplicate-replies", "answers everything twice", |_, line| {
        write(&line)?;
        write(&line)
    }),
    fixture("unasked-replies", "answers what nobody asked before each answer", |_, line| {
        write(b"{\"jsonrpc\":\"2.0\",\"id\":424242,\"result\":{}}\n")?;
        write(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n")?;
        write(&line)
    }),
    fixture("result-and-error", "puts a result and an error into one answer", |message, line| {
        spoil(message, line, |line| {
            replace(line, b"\"jsonrpc\"", b"\"error\":{\"code\":-32603,\"message\":\"both\"},\"jsonrpc\"")
        })
    }),
    fixture("neither", "puts neither a result nor an error into one answer", |message, line| {
        spoil(message, line, |line| replace(line, b"\"result\"", b"\"outcome\""))
    }),
    fixture("late", "answers one call after it was cancelled", |message, line| {
        if message.method == "notifications/cancelled" {
            let id = &message.params["requestId"];
            write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n").as_bytes())
        } else {
            spoil(message, line, |_| Vec::new())
        }
    }),
    fixture("never-answers", "does not answer one call", |message, line| spoil(message, line, |_| Vec::new())),
    fixture("dies-mid-line", "exits in the middle of an answer", |message, line| {
        if message.last {
            write(&line[..line.len() / 2])?;
            process::exit(1);
        }
        write(&line)
    }),
    fixture("pretty-always", "prints every answer over several lines", |_, line| {
        let value: Value = serde_json::from_slice(&line).unwrap_or_default();
        write(format!("{value:#}\n").as_bytes())
    }),
    fixture("lsp-framing", "frames its answers with Content-Length", |_, line| {
        let body = line.strip_suffix(b"\n").unwrap_or(&line);
        write(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes())?;
        write(body)
    }),
    fixture("prints-text", "answers in plain words", |_, _| write(b"hello, how can I help you?\n")),
    fixture("only-initialize", "answers initialize and nothing else", |message, line| {
        if message.method == "initialize" { write(&line) } else { Ok(()) }
    }),
];

/// Writes the line, changed if it is the answer to be spoiled.
fn spoil(message: &Message, line: Vec<u8>, change: impl FnOnce(&[u8]) -> Vec<u8>) -> io::Result<()> {
    write(&if message.last { change(&line) } else { line })
}

/// Answers the call to be spoiled under another id.
fn respond_as(message: &Message, line: Vec<u8>, other: fn(&Value) -> String) -> io::Result<()> {
    let id = message.id.clone().unwrap_or_default();
    spoil(message, line, |line| {
        replace(line, format!("\"id\":{id}").as_bytes(), format!("\"id\":{}", other(&id)).as_bytes())
    })
}

/// The line with the first occurrence of some bytes replaced.
fn replace(line: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    match line.windows(from.len()).position(|window| window == from) {
        Some(at) => [&line[..at], to, &line[at + from.len()..]].concat(),
        None => line.to_vec(),
    }
}

/// The beginning of a content list with one text block of that many bytes.
fn pad(bytes: usize) -> Vec<u8> {
    let mut block = b"\"content\":[{\"type\":\"text\",\"text\":\"".to_vec();
    block.resize(block.len() + bytes, b'x');
    block.extend_from_slice(b"\"},");
    block
}
