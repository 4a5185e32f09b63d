//! Everything that one launch brought to life: its process group, and descendants that left it.
//!
//! A process can leave its group (`setsid`) and its parents (by outliving them). What it cannot lose is a
//! resource limit. On Linux every launch is branded with a limit on real-time CPU time that no process ever
//! reaches (tens of thousands of years) and whose exact value is its own; fork and exec inherit it, and an
//! ordinary process cannot raise it again. Parent links are followed too, for what was started before the brand
//! was set, or where it could not be.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// Pause between two looks at processes that were told to end.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How long processes that were killed are awaited, beyond the grace.
const KILL_WAIT: Duration = Duration::from_secs(5);

#[cfg(target_os = "linux")]
pub(super) use linux::{Kin, adopt_orphans};
#[cfg(not(target_os = "linux"))]
pub(super) use portable::{Kin, adopt_orphans};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::{fs, thread};

    use rustix::process::{
        PidfdFlags, Resource, Rlimit, WaitOptions, getpid, getrlimit, kill_process, kill_process_group, pidfd_open,
        pidfd_send_signal, prlimit, set_child_subreaper, waitpid,
    };

    use super::{Duration, Instant, KILL_WAIT, LOOK_AGAIN, Pid, Signal};

    /// Brands are `level | pid | salt | count`; an mcpeval that is itself a server under test is one level lower,
    /// since a limit can only be lowered.
    const LEVEL_SHIFT: u32 = 58;
    const TOP_LEVEL: u64 = 15;

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
        /// Of a leader that was just started and not yet awaited.
        pub(in crate::wire) fn of(leader: Pid) -> Self {
            let since = Entry::read(leader).map_or(0, |entry| entry.start);
            let brand = next_brand().filter(|brand| set_brand(leader, *brand));
            let kin = Self { group: leader, brand, since, seen: Mutex::default() };
            if let Some(brand) = brand.filter(|_| may_have_children(leader)) {
                // Whatever it managed to start before.
                for entry in kin.scan().iter().filter(|entry| entry.pid != leader) {
                    set_brand(entry.pid, brand);
                }
            }
            kin
        }

        /// Of a group that another process launched.
        pub(in crate::wire) fn known(group: Pid, brand: Option<u64>, since: u64) -> Self {
            Self { group, brand, since, seen: Mutex::default() }
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

        /// Ends every one of them, politely during `grace`, then not; collects those that became our children. The
        /// leader is left to its owner. Blocking.
        pub(in crate::wire) fn sweep(&self, grace: Duration) {
            let began = Instant::now();
            let mut asked = HashMap::new();
            loop {
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
                if !again || began.elapsed() > grace + KILL_WAIT {
                    return;
                }
                thread::sleep(LOOK_AGAIN);
            }
        }

        /// The kin in the process table, zombies included.
        fn scan(&self) -> Vec<Entry> {
            let mut others = Vec::new();
            let mut kin = Vec::new();
            let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let table = fs::read_dir("/proc").into_iter().flatten().flatten();
            let pids = table.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
            for entry in pids.filter_map(Entry::read).filter(|entry| entry.start >= self.since) {
                let ours = entry.group == self.group.as_raw_nonzero().get()
                    || seen.get(&entry.pid.as_raw_nonzero().get()) == Some(&entry.start)
                    || self.brand.is_some_and(|brand| read_brand(entry.pid) == Some(brand));
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
            let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
            // The command's name may hold anything, a closing parenthesis too.
            let fields = stat.get(stat.iter().rposition(|byte| *byte == b')')? + 1..)?;
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

    /// False only where the kernel says that it has none, which spares a look at the whole table.
    fn may_have_children(pid: Pid) -> bool {
        let pid = pid.as_raw_nonzero();
        fs::read(format!("/proc/{pid}/task/{pid}/children")).map_or(true, |children| !children.is_empty())
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

    fn set_brand(pid: Pid, brand: u64) -> bool {
        prlimit(Some(pid), Resource::Rttime, Rlimit { current: Some(brand), maximum: Some(brand) }).is_ok()
    }

    fn read_brand(pid: Pid) -> Option<u64> {
        let limits = fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero())).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
        line.split_ascii_whitespace().nth(1)?.parse().ok()
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
    use std::thread;

    use rustix::process::{kill_process_group, test_kill_process_group};

    use super::{Duration, Instant, KILL_WAIT, LOOK_AGAIN, Pid, Signal};

    /// Init collects orphans here.
    pub(in crate::wire) fn adopt_orphans() {}

    /// The processes of one launch: its group, where the process table cannot be read.
    #[derive(Debug)]
    pub(in crate::wire) struct Kin {
        group: Pid,
    }

    impl Kin {
        pub(in crate::wire) fn of(leader: Pid) -> Self {
            Self { group: leader }
        }

        pub(in crate::wire) fn known(group: Pid, _brand: Option<u64>, _since: u64) -> Self {
            Self { group }
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
