//! Records the bytes of all sessions of a run in the order they were sent, and sends them again.
//!
//! A log is a list of events, one a line: `open N`, `> N line` to the server, `< N` from it, `close N` of its input,
//! `end N`; N is the process that recorded.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

/// Stands between standard input and output and a server, and appends the events to the log.
pub fn record(log: &Path, command: &[String]) -> io::Result<()> {
    let number = std::process::id();
    let open = || OpenOptions::new().create(true).append(true).open(log);
    let (mut sent, mut received) = (open()?, open()?);
    note(&mut sent, &format!("open {number}\n").into_bytes())?;
    let (mut child, mut input, mut output) = start(command)?;
    let back = thread::spawn(move || -> io::Result<()> {
        let mut line = Vec::new();
        let mut out = io::stdout().lock();
        while next(&mut output, &mut line)? {
            note(&mut received, &format!("< {number}\n").into_bytes())?;
            out.write_all(&line)?;
            out.flush()?;
        }
        Ok(())
    });
    let mut line = Vec::new();
    let mut from = io::stdin().lock();
    while next(&mut from, &mut line)? {
        note(&mut sent, &[format!("> {number} ").as_bytes(), &line].concat())?;
        input.write_all(&line)?;
        input.flush()?;
    }
    note(&mut sent, &format!("close {number}\n").into_bytes())?;
    drop(input);
    child.wait()?;
    note(&mut sent, &format!("end {number}\n").into_bytes())?;
    back.join().map_err(|_| io::Error::other("the reader panicked"))?
}

/// One event in one write, so that those of several processes do not mix.
fn note(log: &mut File, event: &[u8]) -> io::Result<()> {
    log.write_all(event)
}

fn next(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    Ok(from.read_until(b'\n', line)? > 0)
}

fn start(command: &[String]) -> io::Result<(Child, ChildStdin, BufReader<ChildStdout>)> {
    let (program, arguments) = command.split_first().ok_or_else(|| io::Error::other("no command"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => Ok((child, input, BufReader::new(output))),
        _ => Err(io::Error::other("no pipes")),
    }
}

/// A session under way; its input is none once it was closed.
struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Goes through the log once.
pub fn replay(log: &Path, command: &[String]) -> io::Result<()> {
    let mut events = BufReader::new(File::open(log)?);
    let mut sessions = BTreeMap::new();
    let (mut event, mut answer) = (Vec::new(), Vec::new());
    while next(&mut events, &mut event)? {
        let mut words = event.splitn(3, |byte| *byte == b' ');
        let (Some(verb), Some(number)) = (words.next(), words.next()) else { continue };
        let number = number.trim_ascii_end();
        if verb == b"open" {
            let (child, input, output) = start(command)?;
            sessions.insert(number.to_vec(), Session { child, input: Some(input), output });
            continue;
        }
        // The last answer may come after the end was noted.
        let Some(session) = sessions.get_mut(number) else { continue };
        match (verb, &mut session.input) {
            (b">", Some(input)) => {
                input.write_all(words.next().unwrap_or_default())?;
                input.flush()?;
            }
            (b"<", _) => {
                next(&mut session.output, &mut answer)?;
            }
            (b"close", input) => *input = None,
            (b"end", _) => {
                session.child.wait()?;
                sessions.remove(number);
            }
            _ => return Err(io::Error::other("the log says what cannot be")),
        }
    }
    Ok(())
}
