//! What a child writes to stdout, as chunks and as lines, each with the time it was read.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

use super::process::Gone;

/// Longest line given whole, without its newline.
pub const LINE_LIMIT: usize = 4 * 1024 * 1024;
/// How much of a longer line is given.
pub const LINE_HEAD: usize = 1024;
/// Most bytes of one chunk.
pub const CHUNK_LIMIT: usize = 64 * 1024;
/// Chunks read ahead of their consumer; beyond, the child has to wait. With the limit above, 1 MiB.
const AHEAD: usize = 16;
/// When nothing of the child is left, all it wrote lies in the pipe; only a stranger that was handed the pipe could
/// still write. Reads that take longer are the end.
pub(super) const DRAIN_GRACE: Duration = Duration::from_millis(50);

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Without the `\n`; a `\r` before it is kept.
    pub bytes: Bytes,
    /// When its last byte was read.
    pub at: Instant,
    /// Whether these are all its bytes.
    pub kind: LineKind,
}

/// Whether a line was received as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// All of it.
    Whole,
    /// The output ended without a newline.
    Unterminated,
    /// Longer than [`LINE_LIMIT`]: the first [`LINE_HEAD`] bytes are given, the rest was counted and thrown away.
    Oversize {
        /// Its length without the newline.
        length: u64,
    },
}

/// The single reader of a child's stdout.
#[derive(Debug)]
pub struct StdioReader {
    chunks: mpsc::Receiver<(Bytes, Instant)>,
    /// Read and not yet given.
    rest: Bytes,
    /// When `rest`, or at the end the last byte of `partial`, was read.
    at: Instant,
    /// The line that has begun.
    partial: BytesMut,
    /// Bytes of that line which were thrown away.
    discarded: u64,
}

impl StdioReader {
    /// Starts reading. Needs a runtime.
    pub(super) fn new(mut stdout: impl AsyncRead + Unpin + Send + 'static, mut gone: Gone) -> Self {
        let (sender, chunks) = mpsc::channel(AHEAD);
        tokio::spawn(async move {
            let mut buffer = vec![0; CHUNK_LIMIT];
            while let Some(count) = read(&mut stdout, &mut buffer, &mut gone).await {
                let chunk = Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default());
                if sender.send((chunk, Instant::now())).await.is_err() {
                    break;
                }
            }
        });
        Self { chunks, rest: Bytes::new(), at: Instant::now(), partial: BytesMut::new(), discarded: 0 }
    }

    /// The next line; `None` when the output has ended. Nothing is lost if the future is dropped.
    pub async fn line(&mut self) -> Option<Received> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let tail = self.rest.split_to(end);
                let _newline = self.rest.split_to(1);
                if self.partial.is_empty() && self.discarded == 0 && tail.len() <= LINE_LIMIT {
                    return Some(Received { bytes: tail, at: self.at, kind: LineKind::Whole });
                }
                self.gather(&tail);
                return Some(self.finish(LineKind::Whole));
            }
            let begun = std::mem::take(&mut self.rest);
            self.gather(&begun);
            match self.chunks.recv().await {
                Some((chunk, at)) => (self.rest, self.at) = (chunk, at),
                None if self.partial.is_empty() && self.discarded == 0 => return None,
                None => return Some(self.finish(LineKind::Unterminated)),
            }
        }
    }

    /// The next bytes as they came, at most [`CHUNK_LIMIT`]; `None` when the output has ended. Nothing is lost if
    /// the future is dropped. Of an oversize line that [`Self::line`] was reading, only the head is left.
    pub async fn chunk(&mut self) -> Option<(Bytes, Instant)> {
        self.discarded = 0;
        if !self.partial.is_empty() {
            let count = self.partial.len().min(CHUNK_LIMIT);
            return Some((self.partial.split_to(count).freeze(), self.at));
        }
        if self.rest.is_empty() {
            (self.rest, self.at) = self.chunks.recv().await?;
        }
        Some((std::mem::take(&mut self.rest), self.at))
    }

    fn gather(&mut self, bytes: &[u8]) {
        if self.discarded == 0 && self.partial.len() + bytes.len() <= LINE_LIMIT {
            self.partial.extend_from_slice(bytes);
            return;
        }
        let room = LINE_HEAD.saturating_sub(self.partial.len()).min(bytes.len());
        self.partial.extend_from_slice(bytes.get(..room).unwrap_or_default());
        let excess = self.partial.len().saturating_sub(LINE_HEAD) + bytes.len() - room;
        if self.partial.len() > LINE_HEAD {
            // A copy, so that the megabytes are given back.
            self.partial = BytesMut::from(self.partial.get(..LINE_HEAD).unwrap_or_default());
        }
        self.discarded += excess as u64;
    }

    fn finish(&mut self, kind: LineKind) -> Received {
        let bytes = std::mem::take(&mut self.partial).freeze();
        let discarded = std::mem::take(&mut self.discarded);
        let kind = match discarded {
            0 => kind,
            _ => LineKind::Oversize { length: discarded + bytes.len() as u64 },
        };
        Received { bytes, at: self.at, kind }
    }
}

/// Reads some bytes. `None` at the end: of the stream, or of everything that could write to it.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin), buffer: &mut [u8], gone: &mut Gone) -> Option<usize> {
    let count = tokio::select! {
        biased;
        read = from.read(buffer) => read,
        () = gone.wait() => tokio::time::timeout(DRAIN_GRACE, from.read(buffer)).await.ok()?,
    };
    count.ok().filter(|count| *count > 0)
}
