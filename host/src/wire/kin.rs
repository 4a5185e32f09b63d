//! Everything that one launch brought to life: its process group, and descendants that left it.
//!
//! A process can leave its group (`setsid`) and its parents (by outliving them). What it cannot lose is a
//! resource limit. On Linux every launch is branded with a limit on real-time CPU time that no process ever
//! reaches (tens of thousands of years) and whose exact value is its own; fork and exec inherit it, and an
//! ordinary process cannot raise it again. Parent links are followed too, for where no brand could be set.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// Pause between two looks at processes that were told to end.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How long processes that were killed are awaited, beyond the grace.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// How long processes are chased that are too young for the process table.
#[cfg(target_os = "linux")]
const CHASE: Duration = Duration::from_secs(2);

#[cfg(target_os = "linux")]
pub(super) use linux::{Kin, adopt_orphans, spawn_stranger};
#[cfg(not(target_os = "linux"))]
pub(super) use portable::{Kin, adopt_orphans, spawn_stranger};

/// The process id of a child.
pub(super) fn pid_of(child: &std::process::Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::process::{Child, Command};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Mutex, PoisonError};
    use std::{fs, io, thread};

    use rustix::process::{
        PidfdFlags, Resource, Rlimit, WaitOptions, getpgrp, getpid, getrlimit, kill_process, kill_process_group,
        pidfd_open, pidfd_send_signal, prlimit, set_child_subreaper, setrlimit, waitpid,
    };

    use super::{CHASE, Duration, Instant, KILL_WAIT, LOOK_AGAIN, Pid, Signal, pid_of};

    /// Brands are `level | pid | salt | count`; an mcpeval that is itself a server under test is one level lower,
    /// since a limit can only be lowered.
    const LEVEL_SHIFT: u32 = 58;
    const TOP_LEVEL: u64 = 15;

    /// How many of the youngest processes are looked at in one step of a chase.
    const YOUNG: i32 = 8;

    /// Makes this process the parent of its descendants' orphans, so that none stays a zombie where no init
    /// collects them.
    pub(in crate::wire) fn adopt_orphans() {
        if let Err(error) = set_child_subreaper(Some(getpid())) {
            tracing::debug!(%error, "orphans of servers go to init");
        }
    }

    /// The processes of one launch.
    #[derive(Debug)]
    pub(in crate::wire) struct Kin {
        /// Process id of the leader, which is also the number of its group.
        group: Pid,
        brand: Option<u64>,
        /// When the leader started, in ticks since boot; none of its kin is older.
        since: u64,
        /// Start times of those seen before, since parent links end with the parent.
        seen: Mutex<HashMap<i32, u64>>,
    }

    /// One line of the process table.
    #[derive(Debug, Clone, Copy)]
    struct Entry {
        pid: Pid,
        parent: i32,
        group: i32,
        start: u64,
        zombie: bool,
    }

    impl Kin {
        /// Starts the leader of a group of its own, branded. The brand is announced before there is anything to find by
        /// it, so that no moment is left in which our death would orphan the child.
        pub(in crate::wire) fn spawn(command: &mut Command, announce: impl FnOnce(u64)) -> io::Result<(Child, Self)> {
            let brand = next_brand();
            if let Some(brand) = brand {
                announce(brand);
            }
            let (spawned, brand) = branded(brand, || command.spawn());
            let mut child = spawned?;
            let Some(group) = pid_of(&child) else {
                let _ = child.kill();
                return Err(io::Error::other("the system gave no process id"));
            };
            if let Some(brand) = brand {
                // From here on it cannot be raised any more.
                let limit = Rlimit { current: Some(brand), maximum: Some(brand) };
                let _ = prlimit(Some(group), Resource::Rttime, limit);
            }
            let since = Entry::read(group).map_or(0, |entry| entry.start);
            Ok((child, Self { group, brand, since, seen: Mutex::default() }))
        }

        /// Of a group that another process launched.
        pub(in crate::wire) fn known(group: Pid, brand: Option<u64>, since: u64) -> Self {
            Self { group, brand, since, seen: Mutex::default() }
        }

        /// Ends whatever bears a brand that was announced but whose leader is not known.
        pub(in crate::wire) fn sweep_brand(brand: u64) {
            let table = fs::read_dir("/proc").into_iter().flatten().flatten();
            let pids = table.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
            if let Some(first) = pids.filter(|pid| bears(*pid, brand)).find_map(Entry::read) {
                // Any bearer will do: the sweep finds the others by the brand.
                let group = Pid::from_raw(first.group).unwrap_or(first.pid);
                Self::known(group, Some(brand), 0).sweep(Duration::ZERO);
            }
        }

        /// The leader's process id, which is also the number of the group.
        pub(in crate::wire) fn group(&self) -> Pid {
            self.group
        }

        /// What another process needs to find them.
        pub(in crate::wire) fn marks(&self) -> (Option<u64>, u64) {
            (self.brand, self.since)
        }

        /// Looks around and remembers, before parents end.
        pub(in crate::wire) fn remember(&self) {
            self.scan();
        }

        /// Living processes of the group.
        pub(in crate::wire) fn survivors(&self) -> u32 {
            let group = self.group.as_raw_nonzero().get();
            let living = self.scan().iter().filter(|entry| entry.group == group && !entry.zombie).count();
            u32::try_from(living).unwrap_or(u32::MAX)
        }

        /// Living ones, in the group or not.
        #[cfg(test)]
        pub(in crate::wire) fn living(&self) -> usize {
            self.scan().iter().filter(|entry| !entry.zombie).count()
        }

        /// Ends every one of them, politely during `grace`, then not; collects those that became our children. The
        /// leader is left to its owner. Blocking.
        pub(in crate::wire) fn sweep(&self, grace: Duration) {
            let began = Instant::now();
            let mut asked = HashMap::new();
            loop {
                let youngest = youngest();
                let kin = self.scan();
                let mut again = false;
                let kill = began.elapsed() >= grace;
                if kill && kin.iter().any(|entry| entry.group == self.group.as_raw_nonzero().get() && !entry.zombie) {
                    // At once, so that a group that forks quickly cannot run ahead.
                    let _ = kill_process_group(self.group, Signal::KILL);
                }
                for entry in kin {
                    if entry.zombie {
                        if entry.parent == getpid().as_raw_nonzero().get() && entry.pid != self.group {
                            again |= waitpid(Some(entry.pid), WaitOptions::NOHANG).is_ok_and(|reaped| reaped.is_some());
                        }
                        continue;
                    }
                    again = true;
                    if kill {
                        entry.signal(Signal::KILL);
                    } else if asked.insert(entry.pid.as_raw_nonzero(), entry.start) != Some(entry.start) {
                        entry.signal(Signal::TERM);
                    }
                }
                again = again || youngest.is_some_and(|youngest| self.chase(youngest, kill));
                if !again || began.elapsed() > grace + KILL_WAIT {
                    return;
                }
                thread::sleep(LOOK_AGAIN);
            }
        }

        /// Looks for kin among the processes that began after the one with this number, and ends it if `kill`. The table
        /// is no picture of one moment: a chain of processes that each start the next one and end is always younger than
        /// the part that was read. So the look is over when none began while it lasted. Tells whether there was kin, or
        /// may be.
        fn chase(&self, mut known: i32, kill: bool) -> bool {
            let Some(brand) = self.brand else { return false };
            let began = Instant::now();
            let mut found = false;
            while let Some(last) = youngest().filter(|last| *last != known) {
                if last < known {
                    // The numbers began again: only the whole table tells.
                    return true;
                }
                // The youngest first, and few: the others of a chain have ended, and it does not wait for us.
                let oldest = known.saturating_add(1).max(last.saturating_sub(YOUNG - 1));
                found |= oldest - 1 > known;
                for pid in (oldest..=last).rev().filter_map(Pid::from_raw) {
                    let handle = pidfd_open(pid, PidfdFlags::empty());
                    if bears(pid, brand) {
                        found = true;
                        if let (true, Ok(handle)) = (kill, handle) {
                            let _ = pidfd_send_signal(handle, Signal::KILL);
                        }
                    }
                }
                if began.elapsed() > CHASE {
                    break;
                }
                known = last;
            }
            found
        }

        /// The kin in the process table, zombies included.
        fn scan(&self) -> Vec<Entry> {
            let mut others = Vec::new();
            let mut kin = Vec::new();
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let table = fs::read_dir("/proc").into_iter().flatten().flatten();
            let pids = table.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
            let own = getpgrp().as_raw_nonzero().get();
            for entry in pids.filter_map(Entry::read).filter(|entry| entry.start >= self.since && entry.group != own) {
                let ours = entry.group == self.group.as_raw_nonzero().get()
                    || seen.get(&entry.pid.as_raw_nonzero().get()) == Some(&entry.start)
                    || self.brand.is_some_and(|brand| bears(entry.pid, brand));
                if ours { &mut kin } else { &mut others }.push(entry);
            }
            // Children of kin are kin, to any depth.
            let mut next = 0;
            while let Some(parent) = kin.get(next).map(|entry: &Entry| entry.pid.as_raw_nonzero().get()) {
                kin.extend(others.extract_if(.., |entry| entry.parent == parent));
                next += 1;
            }
            seen.clear();
            seen.extend(kin.iter().map(|entry| (entry.pid.as_raw_nonzero().get(), entry.start)));
            kin
        }
    }

    impl Entry {
        /// A process that is gone, or a line that is none, is `None`.
        fn read(pid: Pid) -> Option<Self> {
            let line = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
            // The command's name may hold anything, a closing parenthesis too.
            let fields = line.get(line.iter().rposition(|byte| *byte == b')')? + 1..)?;
            let mut fields = str::from_utf8(fields).ok()?.split_ascii_whitespace();
            let zombie = matches!(fields.next()?, "Z" | "X");
            let parent = fields.next()?.parse().ok()?;
            let group = fields.next()?.parse().ok()?;
            // Field 22 of the line; the state was field 3.
            let start = fields.nth(16)?.parse().ok()?;
            Some(Self { pid, parent, group, start, zombie })
        }

        /// Signals this very process, never one that took over its number.
        fn signal(&self, signal: Signal) {
            let still = || Self::read(self.pid).is_some_and(|now| now.start == self.start);
            match pidfd_open(self.pid, PidfdFlags::empty()) {
                Ok(fd) if still() => drop(pidfd_send_signal(fd, signal)),
                // A kernel without process descriptors.
                Err(rustix::io::Errno::NOSYS) if still() => drop(kill_process(self.pid, signal)),
                _ => {}
            }
        }
    }

    /// The number of the process or thread that began last.
    fn youngest() -> Option<i32> {
        fs::read_to_string("/proc/loadavg").ok()?.rsplit(' ').next()?.trim_end().parse().ok()
    }

    fn next_brand() -> Option<u64> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let level = getrlimit(Resource::Rttime).maximum.map_or(TOP_LEVEL, |own| (own >> LEVEL_SHIFT).saturating_sub(1));
        let pid = u64::from(getpid().as_raw_nonzero().get().unsigned_abs()) & 0x3f_ffff;
        // Tells apart two lives of one process id.
        let salt = Entry::read(getpid()).map_or(0, |entry| entry.start) & 0x3_ffff;
        let count = COUNT.fetch_add(1, Ordering::Relaxed) & 0x3_ffff;
        (level > 0).then_some(level << LEVEL_SHIFT | pid << 36 | salt << 18 | count)
    }

    /// Starts something while our own soft limit is the brand, so that the child has it from its first moment.
    /// Whoever starts a process that is no kin must do so without one.
    fn branded<T>(brand: Option<u64>, start: impl FnOnce() -> T) -> (T, Option<u64>) {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let own = getrlimit(Resource::Rttime);
        let brand = brand.filter(|brand| {
            setrlimit(Resource::Rttime, Rlimit { current: Some(*brand), maximum: own.maximum }).is_ok()
        });
        let started = start();
        if brand.is_some()
            && let Err(error) = setrlimit(Resource::Rttime, own)
        {
            tracing::debug!(%error, "the limit on real-time CPU time stays");
        }
        (started, brand)
    }

    /// Starts a process that is no kin of any launch.
    pub(in crate::wire) fn spawn_stranger(command: &mut Command) -> io::Result<Child> {
        branded(None, || command.spawn()).0
    }

    /// Whether one of the two limits is the brand: the first moment sets the soft one only.
    fn bears(pid: Pid, brand: u64) -> bool {
        let limits = fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero())).unwrap_or_default();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout")).unwrap_or_default();
        line.split_ascii_whitespace().take(2).any(|limit| limit.parse() == Ok(brand))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_process_table_knows_us() {
            let me = Entry::read(getpid()).unwrap();
            assert_eq!(me.pid, getpid());
            assert_eq!(me.parent, rustix::process::getppid().unwrap().as_raw_nonzero().get());
            assert!(!me.zombie && me.start > 0);
        }

        #[test]
        fn brands_are_distinct_and_far_beyond_any_use() {
            let (one, two) = (next_brand().unwrap(), next_brand().unwrap());
            assert_ne!(one, two);
            // Microseconds: more than a thousand years.
            assert!(one.min(two) > 1000 * 365 * 86_400 * 1_000_000);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::process::{Child, Command};
    use std::{io, thread};

    use rustix::process::{kill_process_group, test_kill_process_group};

    use super::{Duration, Instant, KILL_WAIT, LOOK_AGAIN, Pid, Signal, pid_of};

    /// Starts a process that is no kin of any launch.
    pub(in crate::wire) fn spawn_stranger(command: &mut Command) -> io::Result<Child> {
        command.spawn()
    }

    /// Init collects orphans here.
    pub(in crate::wire) fn adopt_orphans() {}

    /// The processes of one launch: its group, where the process table cannot be read.
    #[derive(Debug)]
    pub(in crate::wire) struct Kin {
        group: Pid,
    }

    impl Kin {
        pub(in crate::wire) fn spawn(command: &mut Command, _announce: impl FnOnce(u64)) -> io::Result<(Child, Self)> {
            let child = command.spawn()?;
            let group = pid_of(&child).ok_or_else(|| io::Error::other("the system gave no process id"))?;
            Ok((child, Self { group }))
        }

        pub(in crate::wire) fn sweep_brand(_brand: u64) {}

        pub(in crate::wire) fn known(group: Pid, _brand: Option<u64>, _since: u64) -> Self {
            Self { group }
        }

        pub(in crate::wire) fn group(&self) -> Pid {
            self.group
        }

        #[expect(clippy::unused_self, reason = "the same face on every system")]
        pub(in crate::wire) fn marks(&self) -> (Option<u64>, u64) {
            (None, 0)
        }

        #[expect(clippy::unused_self, reason = "the same face on every system")]
        pub(in crate::wire) fn remember(&self) {}

        /// 1 if any process of the group lives.
        pub(in crate::wire) fn survivors(&self) -> u32 {
            u32::from(test_kill_process_group(self.group).is_ok())
        }

        pub(in crate::wire) fn sweep(&self, grace: Duration) {
            let began = Instant::now();
            let _ = kill_process_group(self.group, Signal::TERM);
            while test_kill_process_group(self.group).is_ok() && began.elapsed() <= grace + KILL_WAIT {
                if began.elapsed() >= grace {
                    let _ = kill_process_group(self.group, Signal::KILL);
                }
                thread::sleep(LOOK_AGAIN);
            }
        }
    }
}
