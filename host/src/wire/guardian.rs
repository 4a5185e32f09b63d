//! A tiny process that outlives mcpeval by a moment.
//!
//! It learns through a pipe which process groups and folders exist. When the pipe ends, which it does however
//! mcpeval ends, SIGKILL too, it kills the groups with all their descendants and removes the folders.
//!
//! Records are words and decimal numbers ended by a NUL byte: `group N BRAND SINCE`, `free N`, `folder PATH`,
//! `forget PATH`; a path may hold any other byte.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Pid;

use super::kin::{self, Kin};
use super::sandbox::{PREFIX, remove};

/// The hidden first argument of the program that makes it a guardian.
pub const GUARDIAN_ARGUMENT: &str = "__guardian";
/// A record longer than this is none of ours.
const RECORD_LIMIT: usize = 64 * 1024;

/// Handle of the guardian; cheap to clone. The last one dropped ends it and waits for it.
#[derive(Debug, Clone)]
pub struct Guardian(Option<Arc<Post>>);

#[derive(Debug)]
struct Post(Mutex<Option<(Child, ChildStdin)>>);

impl Guardian {
    /// Starts this program once more as a guardian, in its own process group and out of reach of signals from the
    /// terminal. The program must hand over to [`guardian_main`] if its first argument is [`GUARDIAN_ARGUMENT`].
    pub fn start() -> io::Result<Self> {
        // By this link it is the very same program even if the file was replaced since.
        let this = Path::new("/proc/self/exe");
        let this = if this.exists() { this.to_owned() } else { std::env::current_exe()? };
        let mut command = Command::new(this);
        command.arg0("mcpeval").arg(GUARDIAN_ARGUMENT);
        Self::spawn(command)
    }

    /// No guardian: for tests and users of the library, who then answer for the death of their own process.
    pub fn none() -> Self {
        Self(None)
    }

    /// The program is told by a variable which folder holds all it may remove.
    pub(super) fn spawn(mut command: Command) -> io::Result<Self> {
        let root = std::env::temp_dir().canonicalize()?;
        command
            .arg(root)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = kin::spawn_stranger(&mut command)?;
        let Some(pipe) = child.stdin.take() else { return Err(io::Error::other("the guardian has no pipe")) };
        Ok(Self(Some(Arc::new(Post(Mutex::new(Some((child, pipe))))))))
    }

    /// Ends the guardian and waits for it; whatever is still registered is killed and removed now. Blocking, usually
    /// for a millisecond.
    pub fn shutdown(&self) {
        if let Some(post) = &self.0 {
            post.close();
        }
    }

    /// Its process id.
    #[cfg(test)]
    pub(super) fn process(&self) -> Option<Pid> {
        let open = self.0.as_ref()?.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().and_then(|(child, _)| kin::pid_of(child))
    }

    /// A launch with this brand begins: until its group is told, whatever bears the brand is to be killed if we die.
    pub(super) fn expect(&self, brand: u64) {
        self.tell(format!("expect {brand}").into_bytes());
    }

    /// To be killed if we die, until the registration is dropped.
    pub(super) fn group(&self, kin: &Kin) -> Registered {
        let (brand, since) = kin.marks();
        let group = kin.group().as_raw_nonzero();
        self.tell(format!("group {group} {} {since}", brand.unwrap_or(0)).into_bytes());
        Registered { guardian: self.clone(), undo: format!("free {group}").into_bytes() }
    }

    /// To be removed if we die, until the registration is dropped.
    pub(super) fn folder(&self, path: &Path) -> Registered {
        let record = |word: &str| [word.as_bytes(), path.as_os_str().as_bytes()].concat();
        self.tell(record("folder "));
        Registered { guardian: self.clone(), undo: record("forget ") }
    }

    fn tell(&self, mut record: Vec<u8>) {
        let Some(post) = &self.0 else { return };
        record.push(0);
        let mut open = post.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pipe)) = open.as_mut()
            && let Err(error) = pipe.write_all(&record)
        {
            // Someone killed it. What it guards against has become no likelier, so the evaluation goes on.
            tracing::warn!(%error, "the guardian is gone");
        }
    }
}

impl Post {
    fn close(&self) {
        if let Some((mut child, pipe)) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(pipe);
            let _ = child.wait();
        }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.close();
    }
}

/// Something the guardian watches over; dropping it says that it is gone.
#[derive(Debug)]
pub(super) struct Registered {
    guardian: Guardian,
    undo: Vec<u8>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.guardian.tell(std::mem::take(&mut self.undo));
    }
}

/// What the program does if its first argument is [`GUARDIAN_ARGUMENT`]; the second is the folder for temporary files.
pub fn guardian_main() -> ExitCode {
    let Some(root) = std::env::args_os().skip_while(|argument| argument != GUARDIAN_ARGUMENT).nth(1) else {
        return ExitCode::FAILURE;
    };
    let _deaf = ignore_signals();
    let mut charge = Charge { root: root.into(), ..Charge::default() };
    let mut input = io::stdin().lock();
    let mut record = Vec::new();
    while let Ok(true) = read_record(&mut input, &mut record) {
        charge.note(&record);
    }
    charge.tidy();
    ExitCode::SUCCESS
}

/// Reads up to a NUL byte. False at the end, also in the middle of a record: half a path is no path.
fn read_record(input: &mut impl io::BufRead, record: &mut Vec<u8>) -> io::Result<bool> {
    record.clear();
    loop {
        let buffer = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            return Ok(false);
        }
        let end = buffer.iter().position(|byte| *byte == 0);
        let (taken, used) = end.map_or((buffer.len(), buffer.len()), |end| (end, end + 1));
        record.extend_from_slice(buffer.get(..taken).unwrap_or_default());
        input.consume(used);
        if record.len() > RECORD_LIMIT {
            return Ok(false);
        }
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Polite signals are meant for mcpeval; the guardian must outlive it to do its work. A handler that does nothing is
/// as good as ignoring, and stays once it is set.
fn ignore_signals() -> Option<tokio::runtime::Runtime> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().ok()?;
    let entered = runtime.enter();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()] {
        let _ = signal(kind);
    }
    drop(entered);
    Some(runtime)
}

/// What must not outlive mcpeval.
#[derive(Debug, Default)]
struct Charge {
    root: PathBuf,
    groups: BTreeMap<i32, (Option<u64>, u64)>,
    /// Brands of launches whose group is not known yet.
    expected: BTreeSet<u64>,
    folders: BTreeSet<OsString>,
}

impl Charge {
    fn note(&mut self, record: &[u8]) {
        let Some(space) = record.iter().position(|byte| *byte == b' ') else { return };
        let (word, rest) = record.split_at(space);
        let rest = rest.get(1..).unwrap_or_default();
        let numbers = || str::from_utf8(rest).ok()?.split(' ').map(|number| number.parse().ok()).collect();
        match word {
            b"group" => {
                let numbers: Option<Vec<u64>> = numbers();
                if let Some([group, brand, since]) = numbers.as_deref()
                    && let Ok(group) = i32::try_from(*group)
                {
                    self.expected.remove(brand);
                    self.groups.insert(group, ((*brand != 0).then_some(*brand), *since));
                }
            }
            b"expect" => {
                let numbers: Option<Vec<u64>> = numbers();
                self.expected.extend(numbers.iter().flatten());
            }
            b"free" => {
                let numbers: Option<Vec<u64>> = numbers();
                if let Some([group]) = numbers.as_deref()
                    && let Ok(group) = i32::try_from(*group)
                {
                    self.groups.remove(&group);
                }
            }
            b"folder" => drop(self.folders.insert(OsString::from_vec(rest.to_vec()))),
            b"forget" => drop(self.folders.remove(OsStr::from_bytes(rest))),
            _ => {}
        }
    }

    fn tidy(self) {
        for brand in self.expected {
            Kin::sweep_brand(brand);
        }
        for (group, (brand, since)) in self.groups {
            if let Some(group) = Pid::from_raw(group) {
                Kin::known(group, brand, since).sweep(Duration::ZERO);
            }
        }
        for folder in self.folders.iter().map(Path::new).filter(|folder| is_scratch(folder, &self.root)) {
            // Whoever could be told is gone.
            let _ = remove(folder);
        }
    }
}

/// A real folder, directly in the folder for temporary files, with the name of a scratch folder.
fn is_scratch(path: &Path, root: &Path) -> bool {
    path.parent() == Some(root)
        && path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()))
        && fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut input = io::BufReader::with_capacity(3, bytes);
        let mut record = Vec::new();
        let mut all = Vec::new();
        while read_record(&mut input, &mut record).unwrap() {
            all.push(record.clone());
        }
        all
    }

    #[test]
    fn half_a_record_is_none() {
        assert_eq!(
            records(b"free 1\0folder /tmp/a\nb\0folder /tm"),
            [b"free 1".to_vec(), b"folder /tmp/a\nb".to_vec()]
        );
        assert!(records(&vec![b'x'; RECORD_LIMIT * 2]).is_empty());
    }

    #[test]
    fn what_was_freed_or_forgotten_is_not_touched() {
        let mut charge = Charge::default();
        for record in [
            "expect 99",
            "expect 98",
            "group 7 0 5",
            "group 8 99 5",
            "free 7",
            "folder /t/a b",
            "folder /t/c",
            "forget /t/c",
            "x",
            "group a",
        ] {
            charge.note(record.as_bytes());
        }
        assert_eq!(charge.groups, BTreeMap::from([(8, (Some(99), 5))]));
        assert_eq!(charge.expected, BTreeSet::from([98]));
        assert_eq!(charge.folders, BTreeSet::from([OsString::from("/t/a b")]));
    }

    #[test]
    fn only_scratch_folders_are_ever_removed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let make = |name: &str| {
            let path = root.join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (scratch, other, target) = (make("mcpeval-1"), make("other"), make("mcpeval-2"));
        let link = root.join("mcpeval-3");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let inner = scratch.join("mcpeval-inner");
        fs::create_dir(&inner).unwrap();

        assert!(is_scratch(&scratch, &root));
        for path in [&other, &link, &inner, &root, &root.join("mcpeval-1/../other"), &root.join("mcpeval-none")] {
            assert!(!is_scratch(path, &root), "{}", path.display());
        }
    }
}
