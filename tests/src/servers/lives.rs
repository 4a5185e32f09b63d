//! Sins of the process: how it starts, ends, floods, forks and ignores.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::good::{Good, Message, RpcError, response, tool};
use super::stdio::{log, next_line, serve, step, write};
use super::{Fixture, Sin};

/// How long a process that nobody ends lives on. Only a failed test sees it end by itself.
const LEFT_ALONE: Duration = Duration::from_mins(2);

/// How long the server with the slow start does nothing.
const SLOW_START: Duration = Duration::from_millis(1_200);

/// Bytes of a flood: many times what a pipe holds and what may be kept of it.
const FLOOD: usize = 24 << 20;

const fn fixture(name: &'static str, about: &'static str, live: fn(&mut Good)) -> Fixture {
    Fixture { name, about, sin: Sin::Life(live) }
}

/// The good server on standard input and output.
const GOOD: Sin = Sin::Catalog(|_| {});

pub(super) const FIXTURES: &[Fixture] = &[
    fixture("silent", "never writes anything", |_| {
        let mut line = Vec::new();
        while next_line(&mut line) {}
    }),
    fixture("exits-at-once", "says what is missing on standard error and exits with code 3", |_| {
        log("missing API_KEY");
        process::exit(3);
    }),
    fixture("dies-at-initialize", "exits with code 4 when it gets initialize", |_| {
        next_line(&mut Vec::new());
        log("cannot open the shop");
        process::exit(4);
    }),
    fixture("dies-at-call", "exits at every call", |good| {
        each(good, |_, message| {
            if message.method == "tools/call" {
                process::exit(1);
            }
            Ok(())
        });
    }),
    fixture("floods-stdout", "prints 24 MiB of lines before its first answer", |good| {
        if write(&b"this is no message, but there is a lot of it\n".repeat(FLOOD / 45)).is_ok() {
            serve(good, GOOD);
        }
    }),
    fixture("floods-stderr", "prints 24 MiB on standard error before its first answer", |good| {
        for _ in 0..FLOOD / (60 << 10) {
            log(&"e".repeat(60 << 10));
        }
        serve(good, GOOD);
    }),
    fixture("floods-notifications", "sends 100,000 notifications before the answer to its first call", |good| {
        each(good, |good, message| {
            if good.calls.values().sum::<u32>() == 1 && message.method == "tools/call" {
                let line = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\
                    \"params\":{\"level\":\"info\",\"data\":\"again\"}}\n";
                write(&line.repeat(100_000))?;
            }
            Ok(())
        });
    }),
    fixture("floods-requests", "sends 2,000 requests of its own before the answer to its first call", |good| {
        each(good, |good, message| {
            if good.calls.values().sum::<u32>() == 1 && message.method == "tools/call" {
                for id in 0..1_000 {
                    let pair = format!(
                        "{{\"jsonrpc\":\"2.0\",\"id\":\"p{id}\",\"method\":\"ping\"}}\n\
                         {{\"jsonrpc\":\"2.0\",\"id\":\"r{id}\",\"method\":\"roots/list\"}}\n"
                    );
                    write(pair.as_bytes())?;
                }
            }
            Ok(())
        });
    }),
    fixture(
        "needs-ping",
        "sends ping, and a method nobody knows, before each answer, and waits for the right replies",
        needs_ping,
    ),
    fixture("early-notification", "sends a notification before it is initialized", |good| {
        if write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n").is_ok() {
            serve(good, GOOD);
        }
    }),
    fixture("answers-initialized", "answers the notification that it is initialized with an error", |good| {
        each(good, |_, message| {
            if message.method == "notifications/initialized" {
                write(
                    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n",
                )?;
            }
            Ok(())
        });
    }),
    fixture("closes-stdin", "closes its standard input before it answers initialize, and lives on", |good| {
        let mut line = Vec::new();
        next_line(&mut line);
        // A file over it closes the pipe's only other end.
        let closed = File::open("/dev/null").is_ok_and(|null| rustix::stdio::dup2_stdin(null).is_ok());
        if closed && Message::read(&line).is_some_and(|message| step(good, GOOD, &message).is_ok()) {
            thread::sleep(LEFT_ALONE);
        }
    }),
    fixture("orphan", "starts a child that outlives it and holds its standard output open", |good| {
        if lingerer("linger").stdin(Stdio::null()).spawn().is_ok() {
            serve(good, GOOD);
        }
    }),
    fixture("orphan-own-session", "starts a child that outlives it in a session of its own", |good| {
        if lingerer("linger-own-session").stdin(Stdio::null()).stdout(Stdio::null()).spawn().is_ok() {
            serve(good, GOOD);
        }
    }),
    fixture(
        "hangs-with-children",
        "starts two children that outlive it, ignores SIGTERM, and never answers a call",
        |_| {
            for name in ["linger", "linger-own-session"] {
                let _ = lingerer(name).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
            }
            ignore_term("hangs-at-call");
        },
    ),
    fixture("hangs-at-initialize", "never answers initialize, and ignores the end of its input", |good| {
        each(good, |_, _| {
            thread::sleep(LEFT_ALONE);
            Ok(())
        });
    }),
    fixture("crashes-often", "lists 40 tools more, each of which ends the process", |good| {
        for index in 0..40 {
            good.tools.push(tool(&format!("crash_{index:02}"), "Ends the process instead of giving an answer."));
        }
        each(good, |good, message| {
            if message.tool().starts_with("crash_") && good.answer(message).is_ok() {
                process::exit(1);
            }
            Ok(())
        });
    }),
    fixture("hangs-at-call", "never answers a call, and ignores the end of its input", |good| {
        each(good, |_, message| {
            if message.method == "tools/call" {
                thread::sleep(LEFT_ALONE);
            }
            Ok(())
        });
        thread::sleep(LEFT_ALONE);
    }),
    fixture("ignores-end", "ignores the end of its input, and SIGTERM", |_| ignore_term("ignores-eof")),
    fixture("ignores-eof", "ignores the end of its input", |good| {
        serve(good, GOOD);
        thread::sleep(LEFT_ALONE);
    }),
    fixture("slow-start", "does nothing for more than a second at first", |good| {
        thread::sleep(SLOW_START);
        serve(good, GOOD);
    }),
    fixture("linger", "is no server: only lives", |_| thread::sleep(LEFT_ALONE)),
    fixture("linger-own-session", "is no server: only lives, in a session of its own", |_| {
        if rustix::process::setsid().is_ok() {
            thread::sleep(LEFT_ALONE);
        }
    }),
];

/// The loop of the good server with something done before each message is answered.
fn each(good: &mut Good, before: fn(&mut Good, &Message) -> io::Result<()>) {
    let mut line = Vec::new();
    while next_line(&mut line) {
        if let Some(mut message) = Message::read(&line) {
            good.receive(&mut message);
            if before(good, &message).and_then(|()| step(good, GOOD, &message)).is_err() {
                return;
            }
        }
    }
}

/// Becomes another fixture that ignores SIGTERM: an ignored signal stays ignored across exec, and a shell is the
/// shortest way to ignore one.
fn ignore_term(name: &str) {
    let own = std::env::current_exe().unwrap_or_default();
    let error = Command::new("/bin/sh").args(["-c", "trap '' TERM; exec \"$0\" \"$1\""]).arg(own).arg(name).exec();
    log(&error.to_string());
}

fn lingerer(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.arg(name);
    command
}

fn needs_ping(good: &mut Good) {
    let mut line = Vec::new();
    let mut asked = 0_u32;
    while next_line(&mut line) {
        let Some(mut message) = Message::read(&line) else { continue };
        good.receive(&mut message);
        if message.is_request() {
            asked += 1;
            let right = ask(asked, "ping", &mut line).is_some_and(|reply| reply["result"] == serde_json::json!({}))
                && ask(asked, "shop/unknown", &mut line).is_some_and(|reply| reply["error"]["code"] == -32601);
            if !right {
                let refusal = Err(RpcError::new(-32603, "my request was not answered rightly"));
                let mut bytes = response(&message.id.clone().unwrap_or_default(), &refusal);
                bytes.push(b'\n');
                if write(&bytes).is_err() {
                    return;
                }
                continue;
            }
        }
        if step(good, GOOD, &message).is_err() {
            return;
        }
    }
}

/// Sends a request of the server's own and reads until its reply.
pub(super) fn ask(number: u32, method: &str, line: &mut Vec<u8>) -> Option<Value> {
    let id = Value::from(format!("{method}-{number}"));
    write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n").as_bytes()).ok()?;
    while next_line(line) {
        let reply: Value = serde_json::from_slice(line).ok()?;
        if reply["id"] == id {
            return Some(reply);
        }
    }
    None
}
