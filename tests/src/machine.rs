//! What is left on the machine: processes that carry the mark of a place in their environment, however far they went
//! from their parent.

use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// A living process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its command line, blanks between the words.
    pub command: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.pid, self.command)
    }
}

impl Process {
    /// Waits until it has ended; false if it lives longer than that.
    pub fn ends_within(&self, limit: Duration) -> bool {
        let Some(pidfd) = Pid::from_raw(self.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            return true;
        };
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(wait) = Timespec::try_from(left) else { return false };
            match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&wait)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// Living processes, but for zombies and this one, whose environment holds that path.
pub fn processes_of(place: &Path) -> Vec<Process> {
    let mark = place.as_os_str().as_bytes();
    let own = std::process::id().cast_signed();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| *pid != own)
        // The environment of a zombie is empty; that of a foreign user's process cannot be read.
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| environment.windows(mark.len()).any(|window| window == mark))
        })
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            Process { pid, command: String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned() }
        })
        .collect()
}

/// Waits until no process of that place is left, and gives those that live longer than that.
pub fn survivors_of(place: &Path, limit: Duration) -> Vec<Process> {
    let deadline = Instant::now() + limit;
    loop {
        let left = processes_of(place);
        let Some(first) = left.first() else { return left };
        if !first.ends_within(deadline.saturating_duration_since(Instant::now())) {
            return left;
        }
    }
}

/// Ends whatever is left of a place, so that a failed test leaves nothing behind.
pub fn sweep(place: &Path) {
    for pid in processes_of(place).iter().filter_map(|process| Pid::from_raw(process.pid)) {
        // It may have ended in between.
        let _ = kill_process(pid, Signal::KILL);
    }
}
