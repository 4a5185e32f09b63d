//! The loop over standard input and output.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use super::Sin;
use super::good::{Good, Message, Reply, response};

/// Serves until standard input ends or standard output is closed.
pub fn serve(good: &mut Good, sin: Sin) {
    let mut line = Vec::new();
    while next_line(&mut line) {
        if let Some(mut message) = Message::read(&line) {
            good.receive(&mut message);
            if step(good, sin, &message).is_err() {
                return;
            }
        }
    }
}

/// The reply to a message with the sin in it; none if the message wants none.
pub fn reply(good: &Good, sin: Sin, message: &Message) -> Option<Reply> {
    let bent = if let Sin::Answer(answer) = sin { answer(good, message) } else { None };
    message.is_request().then(|| bent.unwrap_or_else(|| good.answer(message)))
}

/// Answers one message.
pub fn step(good: &mut Good, sin: Sin, message: &Message) -> io::Result<()> {
    if let (Some(reply), Some(id)) = (reply(good, sin, message), &message.id) {
        let mut line = response(id, &reply);
        line.push(b'\n');
        if let Sin::Line(bend) = sin { bend(message, line) } else { write(&line) }
    } else if let Sin::Line(bend) = sin {
        bend(message, Vec::new())
    } else {
        Ok(())
    }
}

/// Reads the next line; false at the end of standard input.
pub fn next_line(line: &mut Vec<u8>) -> bool {
    line.clear();
    io::stdin().lock().read_until(b'\n', line).is_ok_and(|count| count > 0)
}

/// Writes bytes at once.
pub fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Writes to standard error.
pub fn log(text: &str) {
    // Nobody reads it any more: then nothing is left to be said.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

pub(super) fn print(bytes: &[u8]) -> ExitCode {
    if write(bytes).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Says what is wrong; exit code 2.
pub fn complain(text: &str) -> ExitCode {
    log(text);
    ExitCode::from(2)
}
