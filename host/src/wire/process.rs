//! One child process from its start to the moment when nothing of it is left.
//!
//! A thread of its own waits for the leader without collecting it: as long as the leader is a zombie, its number,
//! which is also the number of its group, cannot pass to a stranger. The thread needs no runtime, so the tidying is
//! done even if the last handle is dropped while a runtime goes down.

use std::fmt;
use std::io;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, Once, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid};
use tokio::sync::watch;

use super::guardian::{Guardian, Registered};
use super::kin::{self, Kin};

/// How long a process that was killed is awaited, in case it hangs in the kernel.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// Exit code given where the system did not tell it, which no process can have.
pub(super) const UNTOLD: i32 = -1;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By the signal of this number.
    Signalled(i32),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signalled(number) => {
                write!(f, "was ended by signal {number}")?;
                signal_name(*number).map_or(Ok(()), |name| write!(f, " ({name})"))
            }
        }
    }
}

fn signal_name(number: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 15] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::SYS, "SIGSYS"),
    ];
    NAMES.into_iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| name)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// The leader has ended and is not collected; others of its group may live.
    Ended(Ending),
    /// Nothing is left.
    Gone(Ending),
}

/// The handle; dropping it kills the group at once.
pub(super) struct Process {
    shared: Arc<Shared>,
    state: watch::Receiver<State>,
    /// Asks the keeper to tidy up with this grace; its end asks without any.
    tidy: mpsc::Sender<Duration>,
}

struct Shared {
    kin: Kin,
    /// The group while it may be signalled, that is until the leader is collected.
    group: Mutex<Option<Pid>>,
}

/// Tells when nothing is left.
#[derive(Clone)]
pub(super) struct Gone(watch::Receiver<State>);

impl Process {
    /// Starts a child that leads its own group and takes charge of it.
    pub(super) fn start(command: &mut Command, guardian: &Guardian) -> io::Result<(Child, Self)> {
        collectable();
        let (mut child, kin) = Kin::spawn(command, |brand| guardian.expect(brand))?;
        let pid = kin.group();
        let registered = guardian.group(&kin);
        let shared = Arc::new(Shared { kin, group: Mutex::new(Some(pid)) });
        let (publish, state) = watch::channel(State::Running);
        let (tidy, asked) = mpsc::channel();
        let keeper = Arc::clone(&shared);
        let spawned =
            thread::Builder::new().name("keeper".into()).spawn(move || keeper.keep(pid, &publish, &asked, registered));
        if let Err(error) = spawned {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = child.wait();
            return Err(error);
        }
        Ok((child, Self { shared, state, tidy }))
    }

    /// How the leader ended, if it does within that time.
    pub(super) async fn ending(&self, wait: Duration) -> Option<Ending> {
        let mut state = self.state.clone();
        let ended = state.wait_for(|state| *state != State::Running);
        match *tokio::time::timeout(wait, ended).await.ok()?.ok()? {
            State::Running => None,
            State::Ended(ending) | State::Gone(ending) => Some(ending),
        }
    }

    /// Signals the group, if there still is one.
    pub(super) fn signal(&self, signal: Signal) {
        self.shared.signal(signal);
    }

    /// Looks at the process table before parents end.
    pub(super) async fn remember(&self) {
        self.look(Kin::remember).await;
    }

    /// Living processes of the group.
    pub(super) async fn survivors(&self) -> u32 {
        self.look(Kin::survivors).await.unwrap_or(0)
    }

    async fn look<T: Send + 'static>(&self, look: impl FnOnce(&Kin) -> T + Send + 'static) -> Option<T> {
        let shared = Arc::clone(&self.shared);
        // The table may be long.
        tokio::task::spawn_blocking(move || shared.alive().is_some().then(|| look(&shared.kin))).await.ok().flatten()
    }

    /// Ends what outlived the leader, and waits until nothing is left. The leader must have ended or been killed.
    pub(super) async fn tidy(&self, grace: Duration) -> Ending {
        // The keeper may be done already, and then there is nothing to ask for.
        let _ = self.tidy.send(grace);
        let mut state = self.state.clone();
        let gone = state.wait_for(|state| matches!(state, State::Gone(_)));
        let last = tokio::time::timeout(grace + KILL_WAIT * 2, gone).await;
        match last.ok().and_then(Result::ok).map(|state| *state) {
            Some(State::Ended(ending) | State::Gone(ending)) => ending,
            Some(State::Running) | None => Ending::Signalled(Signal::KILL.as_raw()),
        }
    }

    /// What its descendants can be told by, where there is such a thing.
    #[cfg(test)]
    pub(super) fn brand(&self) -> Option<u64> {
        self.shared.kin.marks().0
    }

    /// For the tasks that read and write its pipes.
    pub(super) fn gone(&self) -> Gone {
        Gone(self.state.clone())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.shared.signal(Signal::KILL);
    }
}

impl Gone {
    /// Resolves when nothing is left of the process.
    pub(super) async fn wait(&mut self) {
        // An error means that the keeper is gone, which it is only afterwards.
        let _ = self.0.wait_for(|state| matches!(state, State::Gone(_))).await;
    }
}

impl Shared {
    fn alive(&self) -> Option<Pid> {
        *self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        // Under the lock: the number is not given back in between.
        let group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = *group {
            let _ = kill_process_group(group, signal);
        }
    }

    fn keep(&self, pid: Pid, state: &watch::Sender<State>, asked: &mpsc::Receiver<Duration>, registered: Registered) {
        let ending = wait_for(pid);
        state.send_replace(State::Ended(ending));
        let grace = asked.recv().unwrap_or(Duration::ZERO);
        self.kin.sweep(grace);
        // Before the number is given back, so that the guardian never takes a stranger for ours.
        drop(registered);
        *self.group.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = waitpid(Some(pid), WaitOptions::empty());
        state.send_replace(State::Gone(ending));
    }
}

/// Waits until a child has ended, without collecting it. Blocking.
pub(super) fn wait_for(pid: Pid) -> Ending {
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                let code = status.exit_status().map(Ending::Exited);
                let signal = status.terminating_signal().map(Ending::Signalled);
                return code.or(signal).unwrap_or(Ending::Exited(UNTOLD));
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return Ending::Exited(UNTOLD),
        }
    }
}

/// What must hold in this process before its first child: ended children wait to be collected (a parent that ignores
/// SIGCHLD hands that down), and orphans come to us.
fn collectable() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A handler, any handler, undoes the ignoring.
        if let Err(error) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child()) {
            tracing::debug!(%error, "no handler for SIGCHLD");
        }
        kin::adopt_orphans();
    });
}
