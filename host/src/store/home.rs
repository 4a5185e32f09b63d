//! The home folder: where its files are, who may read them, and the locks on them (docs/findings.md).

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Wait for `index.lock`.
pub const INDEX_WAIT: Duration = Duration::from_secs(30);
/// Wait for the lock of a journal.
pub const JOURNAL_WAIT: Duration = Duration::from_secs(5);

/// Between two tries of a lock that somebody else holds.
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Mode of every file.
const FILE_MODE: u32 = 0o600;
/// Mode of every folder.
const FOLDER_MODE: u32 = 0o700;

/// The home folder. It need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

/// A lock that ends when it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Home {
    /// The home at this folder, which is not touched.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of the journals.
    pub fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    /// The journal of trend points.
    pub fn history(&self) -> PathBuf {
        self.store().join("probes").join("history.jsonl")
    }

    /// The 32 bytes that make hashes of this home unlike those of any other.
    pub fn salt_file(&self) -> PathBuf {
        self.root.join(".salt")
    }

    /// What `index` and `promote` derive from the journals.
    pub fn index_db(&self) -> PathBuf {
        self.root.join("index.db")
    }

    /// The states of findings, and the evidence for them; derived from nothing.
    pub fn lifecycle_db(&self) -> PathBuf {
        self.root.join("lifecycle.db")
    }

    /// A cache over the trend points.
    pub fn trends_db(&self) -> PathBuf {
        self.root.join("trends.db")
    }

    /// What the user set for this home.
    pub fn config_file(&self) -> PathBuf {
        self.root.join("config.json")
    }

    /// Makes the folders for whoever is about to write, each for its owner alone whatever the umask; those that are
    /// wider and the user's own are tightened.
    ///
    /// # Errors
    /// Unfinished, with the path and the cause.
    pub fn prepare(&self) -> Result<()> {
        if let Some(parent) = self.root.parent().filter(|parent| *parent != Path::new("")) {
            fs::create_dir_all(parent).map_err(|error| fault(parent, &error))?;
        }
        for folder in [self.root.clone(), self.store(), self.store().join("probes")] {
            private_folder(&folder).map_err(|error| fault(&folder, &error))?;
        }
        Ok(())
    }

    /// Opens a file of the home for reading and writing, at its start; created for its owner alone if it is missing, and
    /// tightened if it is wider. Links are not followed.
    ///
    /// # Errors
    /// Unfinished, with the path and the cause.
    pub fn open_file(&self, path: &Path) -> Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        open_private(path, &mut options).map_err(|error| fault(path, &error))
    }

    /// Opens a file of the home to append to it, as [`Home::open_file`] does otherwise.
    ///
    /// # Errors
    /// Unfinished, with the path and the cause.
    pub fn open_append(&self, path: &Path) -> Result<File> {
        open_private(path, OpenOptions::new().read(true).append(true).create(true)).map_err(|error| fault(path, &error))
    }

    /// The lock of whoever derives from the journals. The home must be prepared.
    ///
    /// # Errors
    /// Unfinished if somebody else held it for [`INDEX_WAIT`].
    pub fn lock_index(&self) -> Result<Lock> {
        let path = self.root.join("index.lock");
        let file = self.open_file(&path)?;
        lock(&file, INDEX_WAIT).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Error::unfinished(format!(
                "{}: another index or promote has been running for {} seconds; try again when it has ended",
                path.display(),
                INDEX_WAIT.as_secs()
            )),
            _ => fault(&path, &error),
        })?;
        Ok(Lock { _file: file })
    }
}

/// Takes an advisory lock, or fails with `WouldBlock` after that wait.
pub(super) fn lock(file: &File, wait: Duration) -> io::Result<()> {
    let until = Instant::now() + wait;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
        }
    }
}

/// Makes a folder for its owner alone, or tightens it.
pub(super) fn private_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        // The umask may have taken more than the others' share.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::metadata(path)?;
            if !found.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            tighten(&found, FOLDER_MODE, |mode| fs::set_permissions(path, mode))
        }
        Err(error) => Err(error),
    }
}

/// Opens a regular file that is, or from now on is, its owner's alone. Links are not followed.
pub(super) fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    let file = options.mode(FILE_MODE).custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file"));
    }
    tighten(&found, FILE_MODE, |mode| file.set_permissions(mode))?;
    Ok(file)
}

fn tighten(found: &fs::Metadata, mode: u32, set: impl FnOnce(Permissions) -> io::Result<()>) -> io::Result<()> {
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if is_ours && found.mode() & 0o777 != mode { set(Permissions::from_mode(mode)) } else { Ok(()) }
}

/// What a failed access to a file of the home tells.
pub(super) fn fault(path: &Path, error: &io::Error) -> Error {
    let why = if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        "this is a symbolic link; files of the home folder must be files".to_owned()
    } else {
        error.to_string()
    };
    Error::unfinished(format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn everything_is_its_owners_and_nothing_is_made_before_it_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("deep/home"));
        assert!(!home.root().exists());
        home.prepare().unwrap();
        let file = home.store().join("calls-2027-01-15.jsonl");
        drop(home.open_append(&file).unwrap());
        assert_eq!([home.root(), &home.store(), &home.store().join("probes")].map(mode), [0o700; 3]);
        assert_eq!(mode(&file), 0o600);
    }

    #[test]
    fn what_is_wider_is_tightened() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let file = folder.path().join("old");
        fs::write(&file, "kept").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        home.prepare().unwrap();
        drop(home.open_file(&file).unwrap());
        assert_eq!((mode(folder.path()), mode(&file)), (0o700, 0o600));
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    }

    #[test]
    fn links_and_folders_in_the_place_of_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        home.prepare().unwrap();
        let (link, target) = (home.root().join("link"), folder.path().join("elsewhere"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(home.open_append(&link).unwrap_err().to_string().contains("symbolic link"));
        assert!(!target.exists());
        assert!(home.open_file(&home.store()).is_err());
        let taken = Home::at(target);
        fs::write(taken.root(), "a file").unwrap();
        assert_eq!(taken.prepare().unwrap_err().exit_code(), 3);
    }

    #[test]
    fn a_lock_is_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        home.prepare().unwrap();
        let path = home.root().join("index.lock");
        let held = home.lock_index().unwrap();
        let other = home.open_file(&path).unwrap();
        assert_eq!(lock(&other, Duration::ZERO).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        lock(&other, Duration::ZERO).unwrap();
    }
}
