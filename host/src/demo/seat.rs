//! The one place that a quarrelsome server has for clients: a lock that processes and sessions compete for.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;

/// Who competes: the servers of one parent process, or the sessions of one server.
#[derive(Debug, Clone)]
pub(super) struct Scope(PathBuf);

impl Scope {
    /// The servers that one client started.
    pub(super) fn siblings() -> Self {
        #[cfg(unix)]
        let client = std::os::unix::process::parent_id();
        #[cfg(not(unix))]
        let client = std::process::id();
        Self::new(&format!("stdio-{client}"))
    }

    /// The sessions of the server that listens on this port.
    pub(super) fn port(port: u16) -> Self {
        Self::new(&format!("http-{port}"))
    }

    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("mcpeval-demo-{name}.lock")))
    }

    /// Takes the seat, unless somebody has it.
    pub(super) fn take(&self) -> Option<Seat> {
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&self.0).ok()?;
        lock.try_lock().ok()?;
        Some(Seat { _lock: lock, path: self.0.clone() })
    }
}

/// The seat, free again when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    _lock: File,
    path: PathBuf,
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Somebody else may have cleaned up the folder; the lock itself ends with the file handle.
        let _ = std::fs::remove_file(&self.path);
    }
}
