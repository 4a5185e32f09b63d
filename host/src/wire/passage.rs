//! A child whose pipes somebody else carries on: it stands in the place of this process, and ends as it likes.
//!
//! Unlike a server under test it is not ended in steps, and what it leaves behind when it ends is its own business. Only
//! if this process is killed does the guardian kill it with all its descendants.

use std::io;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::guardian::{Guardian, Registered};
use super::kin::Kin;
use super::launch::{Launch, LaunchError};
pub use super::process::Ending;
use super::process::{UNTOLD, wait_for};

/// A running child with the stderr of this process.
#[derive(Debug)]
pub struct Passage {
    pid: Pid,
    /// None once it is collected, when its number may be a stranger's.
    child: Mutex<Option<(Child, Registered)>>,
}

/// Its ends of the pipes.
#[derive(Debug)]
pub struct Pipes {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it writes.
    pub stdout: ChildStdout,
}

impl Passage {
    /// Starts a child as the leader of its own process group, so that a terminal's signals reach it once: from here.
    /// SIGCHLD must not be ignored.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(launch: &Launch, guardian: &Guardian) -> Result<(Self, Pipes), LaunchError> {
        let mut command = launch.command();
        command.stderr(Stdio::inherit());
        let (mut child, kin) =
            Kin::spawn(&mut command, |brand| guardian.expect(brand)).map_err(|source| launch.error(source))?;
        let registered = guardian.group(&kin);
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(launch.error(io::Error::other("the system gave no pipes")));
        };
        Ok((Self { pid: kin.group(), child: Mutex::new(Some((child, registered))) }, Pipes { stdin, stdout }))
    }

    /// Passes a signal on: an interrupt to its group, as a terminal does, any other to the child alone, which passes it on
    /// itself if it stands for others.
    pub fn signal(&self, signal: Signal) {
        self.send(signal, if signal == Signal::INT { kill_process_group } else { kill_process });
    }

    fn send(&self, signal: Signal, send: impl FnOnce(Pid, Signal) -> rustix::io::Result<()>) {
        // Under the lock: the number is not given back in between.
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if child.is_some() {
            // It may have ended.
            _ = send(self.pid, signal);
        }
    }

    /// Waits until it has ended, and collects it. Blocking; the first call tells how it ended.
    pub fn wait(&self) -> Ending {
        if self.child.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return Ending::Exited(UNTOLD);
        }
        let ending = wait_for(self.pid);
        if let Some((mut child, registered)) = self.child.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Before the number is given back, so that the guardian never takes a stranger for ours.
            drop(registered);
            // How it ended is known.
            _ = child.wait();
        }
        ending
    }
}

impl Drop for Passage {
    /// Whoever could not stay to wait leaves nothing behind.
    fn drop(&mut self) {
        self.send(Signal::KILL, kill_process_group);
        self.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn start(script: &str) -> (Passage, Pipes) {
        let args = ["-c".into(), script.into()].to_vec();
        let launch = Launch { program: "sh".into(), args, env: Vec::new(), cwd: None, withheld: Vec::new() };
        Passage::start(&launch, &Guardian::none()).unwrap()
    }

    #[test]
    fn it_ends_as_it_likes_and_signals_are_passed_on() {
        assert_eq!(start("exit 7").0.wait(), Ending::Exited(7));
        for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::KILL, 9)] {
            let (child, _pipes) = start("exec cat");
            child.signal(signal);
            assert_eq!(child.wait(), Ending::Signalled(number));
            // Nobody is there any more.
            child.signal(signal);
        }
    }

    #[test]
    fn what_it_leaves_behind_lives_on() {
        let (child, mut pipes) = start("(read line; echo \"$line\") <&0 & exit 0");
        drop(pipes.stdin);
        assert_eq!(child.wait(), Ending::Exited(0));
        let mut said = String::new();
        pipes.stdout.read_to_string(&mut said).unwrap();
        assert_eq!(said, "\n");
    }
}
