//! A server as a child process: its pipes, its stderr, its end.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use super::guardian::Guardian;
use super::launch::{Launch, LaunchError};
pub use super::lines::{CHUNK_LIMIT, LINE_HEAD, LINE_LIMIT, LineKind, Received, StdioReader};
use super::lines::{DRAIN_GRACE, read};
pub use super::process::Ending;
use super::process::{Gone, Process};

/// How much of stderr's end is kept (docs/standard.md).
pub const STDERR_TAIL: usize = 64 * 1024;
/// Time to end by itself once its input has ended.
pub const END_GRACE: Duration = Duration::from_secs(2);
/// Time to end after SIGTERM.
pub const TERM_GRACE: Duration = Duration::from_secs(1);
/// Most bytes waiting to be written; a bigger send waits until it is alone.
pub const QUEUE_LIMIT: u32 = 16 * 1024 * 1024;
/// How long [`StdioWire::close_input`] waits for what is still being written.
const CLOSE_WAIT: Duration = Duration::from_millis(100);

/// The server reads no more: its input is closed, by us, by it or by its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server's input is closed")]
pub struct WireClosed;

/// What a child wrote to stderr so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stderr {
    /// Bytes in all.
    pub total: u64,
    /// The last of them, at most [`STDERR_TAIL`].
    pub tail: Vec<u8>,
}

/// A running child. Cheap to clone; when the last handle is dropped without [`Self::end`], the child and its group
/// are killed at once.
#[derive(Clone)]
pub struct StdioWire(Arc<Inner>);

struct Inner {
    process: Process,
    writer: Writer,
    stderr: Arc<Mutex<Tail>>,
    /// Becomes true when stderr has been read to its end.
    drained: watch::Receiver<bool>,
    /// One ending at a time.
    turn: tokio::sync::Mutex<()>,
}

impl fmt::Debug for StdioWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioWire").finish_non_exhaustive()
    }
}

impl StdioWire {
    /// Starts a child as the leader of its own process group. Needs a runtime with I/O and time.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn launch(launch: &Launch, guardian: &Guardian) -> Result<(Self, StdioReader), LaunchError> {
        let error = |source| launch.error(source);
        let (child, process) = Process::start(&mut launch.command(), guardian).map_err(error)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin, child.stdout, child.stderr) else {
            return Err(error(std::io::Error::other("the system gave no pipes")));
        };
        let stdin = ChildStdin::from_std(stdin).map_err(error)?;
        let stdout = ChildStdout::from_std(stdout).map_err(error)?;
        let stderr = ChildStderr::from_std(stderr).map_err(error)?;

        let reader = StdioReader::new(stdout, process.gone());
        let writer = Writer::new(stdin, process.gone());
        let (tail, drained) = Tail::keep(stderr, process.gone());
        let inner = Inner { process, writer, stderr: tail, drained, turn: tokio::sync::Mutex::default() };
        Ok((Self(Arc::new(inner)), reader))
    }

    /// Writes all the bytes, in order; resolves when they are written. If the future is dropped they are written
    /// still, or not at all, so that half a line is never followed by another one. A server that does not read keeps
    /// it waiting without end.
    ///
    /// # Errors
    /// When the input is closed.
    pub async fn send(&self, bytes: Bytes) -> Result<(), WireClosed> {
        self.0.writer.send(bytes).await
    }

    /// Ends the server's input after what was sent before. Waits for that, but not long: if the server does not read,
    /// it happens when it does.
    pub async fn close_input(&self) {
        self.0.writer.close();
        let mut done = self.0.writer.done.clone();
        let _ = tokio::time::timeout(CLOSE_WAIT, done.wait_for(|done| *done)).await;
    }

    /// What it wrote to stderr so far; after [`Self::end`], all of it.
    pub fn stderr(&self) -> Stderr {
        let tail = self.0.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        Stderr { total: tail.total, tail: tail.bytes.iter().copied().collect() }
    }

    /// How it ended, if it does within that time. Others of its group may live on.
    pub async fn ending(&self, wait: Duration) -> Option<Ending> {
        self.0.process.ending(wait).await
    }

    /// Living processes of its group, itself included.
    pub async fn survivors(&self) -> u32 {
        self.0.process.survivors().await
    }

    /// Ends it in steps: end of input, [`END_GRACE`], SIGTERM to the group, [`TERM_GRACE`], SIGKILL to the group.
    /// What outlives the leader, also outside the group, gets SIGTERM, [`TERM_GRACE`], SIGKILL. Afterwards nothing of it
    /// is left. May be called several times and at the same time.
    pub async fn end(&self) -> Ending {
        let Inner { process, writer, drained, turn, .. } = &*self.0;
        let _turn = turn.lock().await;
        writer.close();
        if process.ending(END_GRACE).await.is_none() {
            process.remember().await;
            process.signal(Signal::TERM);
            if process.ending(TERM_GRACE).await.is_none() {
                process.remember().await;
                process.signal(Signal::KILL);
            }
        }
        let ending = process.tidy(TERM_GRACE).await;
        let _ = tokio::time::timeout(DRAIN_GRACE * 2, drained.clone().wait_for(|drained| *drained)).await;
        ending
    }
}

/// Writes one send after the other, whoever waits for them.
struct Writer {
    /// `None` once the input is closed by us.
    queue: Mutex<Option<mpsc::UnboundedSender<Item>>>,
    /// Bytes that still have room in the queue.
    room: Arc<Semaphore>,
    /// Becomes true when the pipe is closed.
    done: watch::Receiver<bool>,
}

struct Item {
    bytes: Bytes,
    written: oneshot::Sender<()>,
    /// Gives the room back.
    _permit: OwnedSemaphorePermit,
}

impl Writer {
    fn new(mut stdin: ChildStdin, mut gone: Gone) -> Self {
        let (queue, mut sends) = mpsc::unbounded_channel::<Item>();
        let (finished, done) = watch::channel(false);
        let room = Arc::new(Semaphore::new(QUEUE_LIMIT as usize));
        let closing = Arc::clone(&room);
        tokio::spawn(async move {
            let write = async {
                while let Some(send) = sends.recv().await {
                    if stdin.write_all(&send.bytes).await.is_err() {
                        break;
                    }
                    // Nobody may wait for it any more.
                    let _ = send.written.send(());
                }
            };
            tokio::select! {
                () = write => {}
                () = gone.wait() => {}
            }
            drop((stdin, sends));
            closing.close();
            finished.send_replace(true);
        });
        Self { queue: Mutex::new(Some(queue)), room, done }
    }

    async fn send(&self, bytes: Bytes) -> Result<(), WireClosed> {
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX).min(QUEUE_LIMIT);
        let permit = Arc::clone(&self.room).acquire_many_owned(size).await.map_err(|_| WireClosed)?;
        let (written, confirmed) = oneshot::channel();
        {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let queue = queue.as_ref().ok_or(WireClosed)?;
            queue.send(Item { bytes, written, _permit: permit }).map_err(|_| WireClosed)?;
        }
        confirmed.await.map_err(|_| WireClosed)
    }

    fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// The end of what was written to stderr.
#[derive(Debug, Default)]
struct Tail {
    total: u64,
    bytes: VecDeque<u8>,
}

impl Tail {
    /// Reads always, so that a server never waits for its own log to be read.
    fn keep(
        mut stderr: impl AsyncRead + Unpin + Send + 'static,
        mut gone: Gone,
    ) -> (Arc<Mutex<Self>>, watch::Receiver<bool>) {
        let tail = Arc::new(Mutex::new(Self::default()));
        let (finished, drained) = watch::channel(false);
        let kept = Arc::clone(&tail);
        tokio::spawn(async move {
            let mut buffer = vec![0; CHUNK_LIMIT];
            while let Some(count) = read(&mut stderr, &mut buffer, &mut gone).await {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(buffer.get(..count).unwrap_or_default());
            }
            finished.send_replace(true);
        });
        (tail, drained)
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let last = bytes.get(bytes.len().saturating_sub(STDERR_TAIL)..).unwrap_or(bytes);
        let excess = (self.bytes.len() + last.len()).saturating_sub(STDERR_TAIL);
        self.bytes.drain(..excess);
        self.bytes.extend(last);
    }
}

#[cfg(test)]
#[path = "tests/stdio.rs"]
mod tests;
