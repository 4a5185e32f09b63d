//! SIGINT, SIGTERM and SIGHUP end an evaluation.

use std::pin::pin;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Error, Result};

/// Runs a future to its end, or drops it when a signal comes: what it holds, child processes and folders, is released
/// by then.
///
/// # Errors
/// What the future gives; [`Error::Interrupted`] with the signal's number.
pub(super) fn until_interrupted<T>(runtime: Runtime, work: impl Future<Output = Result<T>>) -> Result<T> {
    let result = runtime.block_on(async {
        let cannot = |error: std::io::Error| Error::unfinished(format!("signals cannot be received: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
        let mut hang_up = signal(SignalKind::hangup()).map_err(cannot)?;
        let work = pin!(work);
        tokio::select! {
            biased;
            _ = interrupt.recv() => Err(Error::Interrupted(SignalKind::interrupt().as_raw_value())),
            _ = terminate.recv() => Err(Error::Interrupted(SignalKind::terminate().as_raw_value())),
            _ = hang_up.recv() => Err(Error::Interrupted(SignalKind::hangup().as_raw_value())),
            result = work => result,
        }
    });
    // A thread that waits for standard input cannot be ended, only left.
    runtime.shutdown_background();
    result
}
