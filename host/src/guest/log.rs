//! The private log of one run: what a component says in words, never part of a report.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use super::limits;

#[derive(Debug, Default)]
struct Inner {
    lines: Vec<String>,
    bytes: usize,
    dropped: u64,
}

/// A capped list of lines.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    inner: Arc<Mutex<Inner>>,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Add a line, cut to its cap; beyond the whole cap it is dropped and counted.
    pub(super) fn line(&self, severity: &str, text: &str) {
        let mut end = text.len().min(limits::LOG_LINE);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let line = format!("{severity}: {}", text.get(..end).unwrap_or_default());
        let mut inner = self.lock();
        if inner.bytes + line.len() > limits::LOG {
            inner.dropped += 1;
            return;
        }
        inner.bytes += line.len();
        inner.lines.push(line);
    }

    /// All lines, and a last one that tells how many are missing.
    pub(super) fn lines(&self) -> Vec<String> {
        let inner = self.lock();
        let mut lines = inner.lines.clone();
        if inner.dropped > 0 {
            lines.push(format!("{} more lines were dropped", inner.dropped));
        }
        lines
    }
}

/// A component's stdout or stderr: lines of its private log.
#[derive(Debug, Clone)]
pub(super) struct LogStream {
    pub(super) log: Log,
    pub(super) name: &'static str,
}

impl wasmtime_wasi::cli::IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl wasmtime_wasi::cli::StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        Box::new(LineWriter::new(self))
    }

    // Not by way of the former: its writer lives in a task, which may end after the log was read.
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(LineWriter::new(self))
    }
}

struct LineWriter {
    to: LogStream,
    unfinished: Vec<u8>,
}

impl LineWriter {
    fn new(to: &LogStream) -> Self {
        Self { to: to.clone(), unfinished: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                self.flush_line();
            } else if self.unfinished.len() < limits::LOG_LINE {
                self.unfinished.push(*byte);
            }
        }
    }

    fn flush_line(&mut self) {
        if !self.unfinished.is_empty() {
            let line = std::mem::take(&mut self.unfinished);
            self.to.log.line(self.to.name, &String::from_utf8_lossy(&line));
        }
    }
}

impl OutputStream for LineWriter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(limits::LOG_LINE)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LineWriter {
    async fn ready(&mut self) {}
}

impl tokio::io::AsyncWrite for LineWriter {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flush_line();
        Poll::Ready(Ok(()))
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        self.flush_line();
    }
}

#[cfg(test)]
mod tests {
    use wasmtime_wasi::cli::StdoutStream as _;

    use super::*;

    #[test]
    fn a_flood_is_dropped_and_counted() {
        let log = Log::default();
        for _ in 0..1_000 {
            log.line("info", &"\u{e4}".repeat(limits::LOG_LINE));
        }
        let lines = log.lines();
        let kept: usize = lines.iter().map(String::len).sum();
        assert!(kept <= limits::LOG + 64, "{kept}");
        assert!(lines.iter().all(|line| line.len() <= limits::LOG_LINE + 8));
        assert!(lines.last().is_some_and(|line| line.ends_with("more lines were dropped")));
    }

    #[test]
    fn an_unfinished_line_is_kept_when_its_stream_ends() {
        let log = Log::default();
        let mut stream = LogStream { log: log.clone(), name: "stdout" }.p2_stream();
        stream.write(Bytes::from_static(b"one\ntw")).unwrap();
        stream.write(Bytes::from_static(b"o")).unwrap();
        assert_eq!(log.lines(), ["stdout: one"]);
        drop(stream);
        assert_eq!(log.lines(), ["stdout: one", "stdout: two"]);
    }
}
