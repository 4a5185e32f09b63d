//! SIGINT, SIGTERM and SIGHUP end the program: an evaluation in order, everything else at once.

use std::io;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::report::output;

static LISTENER: Mutex<Listener> = Mutex::new(Listener { listens: false, work: None });

/// Who is told of a signal.
struct Listener {
    /// The thread runs.
    listens: bool,
    /// The work that is under way. Told once, it has itself to end.
    work: Option<oneshot::Sender<i32>>,
}

fn listener() -> MutexGuard<'static, Listener> {
    LISTENER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on a signal ends the program with the exit code that tells it, and leaves no unfinished file. While nothing
/// listens the system ends it, which is as good for a command that writes no file.
///
/// # Errors
/// Unfinished if the system gives no thread.
pub(super) fn listen() -> Result<()> {
    let mut listener = listener();
    if listener.listens {
        return Ok(());
    }
    start().map_err(|error| Error::unfinished(format!("signals cannot be received: {error}")))?;
    listener.listens = true;
    Ok(())
}

/// A thread of its own, since the others may be held up by whoever reads what they write.
fn start() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let within = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    drop(within);
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            loop {
                let kind = tokio::select! {
                    _ = interrupt.recv() => SignalKind::interrupt(),
                    _ = terminate.recv() => SignalKind::terminate(),
                    _ = hang_up.recv() => SignalKind::hangup(),
                };
                received(kind.as_raw_value());
            }
        });
    })?;
    Ok(())
}

fn received(number: i32) {
    let mut listener = listener();
    let undone = match listener.work.take() {
        Some(work) => work.send(number).is_err(),
        None => true,
    };
    if undone {
        output::abandon();
        std::process::exit(Error::Interrupted(number).exit_code().into());
    }
}

/// Runs a future to its end, or drops it when a signal comes: what it holds, child processes and folders, is released
/// by then. Another signal meanwhile ends the program at once, and the guardian does the rest.
///
/// # Errors
/// What the future gives; [`Error::Interrupted`] with the signal's number.
pub(super) fn until_interrupted<T>(runtime: Runtime, work: impl Future<Output = Result<T>>) -> Result<T> {
    listen()?;
    let (tell, mut told) = oneshot::channel();
    listener().work = Some(tell);
    let result = runtime.block_on(async {
        let work = pin!(work);
        tokio::select! {
            biased;
            Ok(number) = &mut told => Err(Error::Interrupted(number)),
            result = work => result,
        }
    });
    // A thread that waits for standard input cannot be ended, only left.
    runtime.shutdown_background();
    listener().work = None;
    // A signal may have come since the work was done.
    told.try_recv().map_or(result, |number| Err(Error::Interrupted(number)))
}
