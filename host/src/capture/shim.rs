//! The recorder between the pipes of a stdio server: every byte passes at once and unchanged, and a copy of it is read
//! beside the traffic.
//!
//! Both ways have a thread that does nothing but pass on and leave a copy. It waits for the reader of its bytes, as
//! without the shim the writer would, but for nothing else. What either end of a pipe can tell the other passes too: its
//! end, and that nobody reads.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};
use tokio::signal::unix::{SignalKind, signal};

use super::copies::{Copies, Found, Lines, Side};
use super::record::{Capture, Recorder};
use crate::error::{Error, Result};
use crate::store::Home;
use crate::wire::launch::{Launch, LaunchError};
use crate::wire::passage::{Ending, Passage, Pipes};
use crate::wire::sandbox::Guardian;

/// Bytes that are passed on at once, as many as a pipe holds.
const PIECE: usize = 64 * 1024;
/// After the end of the server, how long its output may be silent though somebody else holds it open.
const LINGER: Duration = Duration::from_millis(500);
/// How long the end waits for the recorder, beyond the time that it gives the disk.
const RECORDER_WAIT: Duration = Duration::from_secs(10);

/// A server to start, and where to record what passes.
#[derive(Debug)]
pub struct Shim {
    /// The server.
    pub launch: Launch,
    /// Its label.
    pub server: String,
    /// Where to record; nowhere if there is none.
    pub home: Option<Home>,
    /// The raw name of the session; a random one if there is none.
    pub session: Option<String>,
}

impl Shim {
    /// Passes everything between the standard streams of this process and the server until it ends; tells how. Whatever
    /// recording meets is a sentence for `note` and changes nothing.
    ///
    /// # Errors
    /// Unfinished if the server cannot be started.
    pub fn run(self, guardian: &Guardian, note: impl Fn(&str) + Send + Sync + 'static) -> Result<Ending> {
        let cannot = |error: io::Error| Error::unfinished(format!("the shim cannot be started: {error}"));
        let signals = Signals::listen().map_err(cannot)?;
        let (passage, Pipes { stdin: input, stdout: output }) = Passage::start(&self.launch, guardian)
            .map_err(|error: LaunchError| Error::unfinished(error.to_string()))?;
        let passage = Arc::new(passage);
        signals.pass_on(Arc::clone(&passage)).map_err(cannot)?;

        let copies = Arc::new(Copies::default());
        let of_client = Arc::clone(&copies);
        let from_client = move || {
            let ended = pass(stdin(), &input, &Progress::default(), |bytes, came, left| {
                of_client.leave(Side::Client, bytes, came, left);
            });
            drop(input);
            if ended == Ended::Output {
                instead(|nothing| dup2_stdin(nothing));
            }
        };
        let (of_server, progress) = (Arc::clone(&copies), Arc::new(Progress::default()));
        let watched = Arc::clone(&progress);
        let (done, is_done) = mpsc::channel::<()>();
        let from_server = move || {
            let ended = pass(&output, stdout(), &progress, |bytes, came, left| {
                of_server.leave(Side::Server, bytes, came, left);
            });
            // If the client is gone, the server learns it when it writes next.
            drop(output);
            if ended == Ended::Input {
                instead(|nothing| dup2_stdout(nothing));
            }
            drop(done);
        };
        spawn("client", from_client).map_err(cannot)?;
        spawn("server", from_server).map_err(cannot)?;

        let (note, of_recorder) = (Arc::new(note), Arc::clone(&copies));
        let (recorded, is_recorded) = mpsc::channel::<()>();
        let of_recording = Arc::clone(&note);
        let record = move || {
            if let Some(sentence) = record(self.home, self.server, self.session.as_deref(), &of_recorder) {
                of_recording(&sentence);
            }
            // Whoever leaves copies keeps none for nobody.
            of_recorder.close();
            drop(recorded);
        };
        if let Err(error) = spawn("recorder", record) {
            copies.close();
            note(&format!("nothing is recorded: {error}"));
        }

        let ending = passage.wait();
        watched.drained(&is_done);
        copies.close();
        if is_recorded.recv_timeout(RECORDER_WAIT) == Err(RecvTimeoutError::Timeout) {
            note("recording did not end in time; the last records may be missing");
        }
        Ok(ending)
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

/// Reads the copies until there are no more; tells what is missing from the record.
fn record(home: Option<Home>, server: String, session: Option<&str>, copies: &Copies) -> Option<String> {
    let recorder = match home.map(|home| Recorder::start(home, server))? {
        Ok(recorder) => recorder,
        Err(error) => return Some(format!("nothing is recorded: {error}")),
    };
    let capture = recorder.capture(session);
    let (mut client, mut server) = (Lines::default(), Lines::default());
    while let Some(queue) = copies.take() {
        for copy in queue {
            let lines = if copy.side == Side::Client { &mut client } else { &mut server };
            let at = if copy.side == Side::Client { copy.left } else { copy.came };
            let added = Some(copy.left.saturating_duration_since(copy.came));
            lines.read(&copy, |found| take(&recorder, &capture, copy.side, &found, at, added));
        }
    }
    for (side, lines) in [(Side::Client, &mut client), (Side::Server, &mut server)] {
        lines.end(|found| take(&recorder, &capture, side, &found, Instant::now(), None));
    }
    recorder.lost(copies.lost());
    capture.end();
    recorder.finish().sentence()
}

fn take(recorder: &Recorder, capture: &Capture, side: Side, found: &Found<'_>, at: Instant, added: Option<Duration>) {
    match (found, side) {
        (Found::Line(line), Side::Client) => capture.outbound(line, at, added),
        (Found::Line(line), Side::Server) => capture.inbound(line, at, added),
        (Found::TooLong, side) => capture.unparsed(side == Side::Client, at),
        (Found::Torn, _) => recorder.lost(1),
    }
}

/// Why passing on has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// There is nothing more to read.
    Input,
    /// Nobody reads any more.
    Output,
}

/// How far a thread that passes on has come.
#[derive(Debug, Default)]
struct Progress {
    pieces: AtomicU64,
    is_passing: AtomicBool,
}

impl Progress {
    /// Waits until all that the server wrote is passed on. It may have left others behind that hold its output open: when
    /// they are silent for a while, it is over.
    fn drained(&self, is_done: &mpsc::Receiver<()>) {
        let mut before = None;
        while is_done.recv_timeout(LINGER) == Err(RecvTimeoutError::Timeout) {
            let now = self.pieces.load(Ordering::Acquire);
            if before == Some(now) && !self.is_passing.load(Ordering::Acquire) {
                return;
            }
            before = Some(now);
        }
    }
}

/// Passes bytes on as they come, and leaves a copy of each piece afterwards.
fn pass(from: impl AsFd, to: impl AsFd, progress: &Progress, copy: impl Fn(&[u8], Instant, Instant)) -> Ended {
    let mut buffer = vec![0; PIECE];
    loop {
        let read = match rustix::io::read(&from, &mut buffer) {
            Ok(0) => return Ended::Input,
            Ok(read) => read,
            Err(error) if again(error, &from, PollFlags::IN) => continue,
            Err(_) => return Ended::Input,
        };
        let came = Instant::now();
        progress.is_passing.store(true, Ordering::Release);
        let piece = buffer.get(..read).unwrap_or_default();
        let written = write(&to, piece);
        copy(piece, came, Instant::now());
        progress.pieces.fetch_add(1, Ordering::AcqRel);
        progress.is_passing.store(false, Ordering::Release);
        if written.is_err() {
            return Ended::Output;
        }
    }
}

fn write(to: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(&to, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if again(error, &to, PollFlags::OUT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether to try again; waits until it may help. Whoever gave us the stream may have made it one that does not wait.
fn again(error: Errno, stream: impl AsFd, ready: PollFlags) -> bool {
    if error == Errno::AGAIN {
        // If it is interrupted, the next try tells.
        _ = poll(&mut [PollFd::new(&stream, ready)], None);
    }
    matches!(error, Errno::AGAIN | Errno::INTR)
}

/// Puts nothing in the place of a standard stream, so that whoever is at its other end learns that it has ended.
fn instead(replace: impl FnOnce(File) -> rustix::io::Result<()>) {
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        // It then learns it a little later, when this process ends.
        _ = replace(nothing);
    }
}

/// Signals that are passed on.
struct Signals {
    runtime: tokio::runtime::Runtime,
    streams: [(Signal, tokio::signal::unix::Signal); 2],
}

impl Signals {
    /// From now on they do not end this process.
    fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let streams = {
            let _entered = runtime.enter();
            // A parent that ignores SIGCHLD hands that down, and then nobody tells how a child ended; a handler, any
            // handler, undoes it.
            drop(signal(SignalKind::child())?);
            [(Signal::INT, signal(SignalKind::interrupt())?), (Signal::TERM, signal(SignalKind::terminate())?)]
        };
        Ok(Self { runtime, streams })
    }

    /// Passes them on, those that came meanwhile too.
    fn pass_on(self, passage: Arc<Passage>) -> io::Result<()> {
        spawn("signals", move || {
            let [(interrupt, mut interrupts), (terminate, mut terminations)] = self.streams;
            self.runtime.block_on(async {
                loop {
                    let (signal, came) = tokio::select! {
                        came = interrupts.recv() => (interrupt, came),
                        came = terminations.recv() => (terminate, came),
                    };
                    if came.is_none() {
                        return;
                    }
                    passage.signal(signal);
                }
            });
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn pieces_pass_at_once_and_their_ends_are_told_apart() {
        let (client, from) = UnixStream::pair().unwrap();
        let (to, server) = UnixStream::pair().unwrap();
        // Both of a kind that does not wait.
        from.set_nonblocking(true).unwrap();
        to.set_nonblocking(true).unwrap();
        thread::scope(|scope| {
            let passing = scope.spawn(move || {
                let copied = RefCell::new(Vec::new());
                let ended = pass(&from, &to, &Progress::default(), |bytes, came, left| {
                    assert!(came <= left);
                    copied.borrow_mut().extend_from_slice(bytes);
                });
                (ended, copied.into_inner())
            });
            let mut buffer = [0; 8];
            write(&client, b"half").unwrap();
            assert_eq!(rustix::io::read(&server, &mut buffer), Ok(4));
            // More than any buffer between them holds, so that both sides wait for each other in turn.
            let large = vec![b'x'; 4 << 20];
            let sent = large.clone();
            scope.spawn(move || {
                write(&client, &sent).unwrap();
                drop(client);
            });
            let mut got = Vec::new();
            io::Read::read_to_end(&mut &server, &mut got).unwrap();
            assert!(got == large);
            let (ended, copied) = passing.join().unwrap();
            assert_eq!((ended, copied.len()), (Ended::Input, large.len() + 4));
        });

        let (client, from) = UnixStream::pair().unwrap();
        let (to, server) = UnixStream::pair().unwrap();
        drop(server);
        write(&client, b"lost").unwrap();
        let copied = RefCell::new(0);
        let ended = pass(from, to, &Progress::default(), |bytes, _, _| *copied.borrow_mut() += bytes.len());
        assert_eq!((ended, copied.into_inner()), (Ended::Output, 4));
    }

    #[test]
    fn output_that_others_hold_open_is_given_up_only_when_it_is_silent() {
        let progress = Progress::default();
        let (done, is_done) = mpsc::channel();
        progress.is_passing.store(true, Ordering::Release);
        thread::scope(|scope| {
            let progress = &progress;
            let waiting = scope.spawn(move || progress.drained(&is_done));
            thread::sleep(LINGER * 3);
            assert!(!waiting.is_finished(), "a reader that is slow is waited for");
            progress.is_passing.store(false, Ordering::Release);
            waiting.join().unwrap();
        });
        drop(done);
        let (done, is_done) = mpsc::channel();
        drop(done);
        progress.is_passing.store(true, Ordering::Release);
        progress.drained(&is_done);
    }
}
