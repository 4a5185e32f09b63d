//! A file that takes the place of another at once. Of one that does not get there nothing is left, however the program
//! ends.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

/// What the name of an unfinished file begins with.
const PREFIX: &str = ".mcpeval-";

/// Unfinished files that have a name. Whoever gives a name or takes it away holds this.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is unfinished, and lets nothing be begun any more: only for a program that ends now.
pub fn abandon() {
    let unfinished = unfinished();
    remove(unfinished.iter());
    std::mem::forget(unfinished);
}

fn remove<'a>(paths: impl Iterator<Item = &'a PathBuf>) {
    for path in paths {
        // One that is gone already needs no removal, and for any other there is nobody left to tell.
        _ = fs::remove_file(path);
    }
}

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Whoever the umask lets, or whoever might read the file that was there before.
    Shared,
    /// Its owner alone.
    Private,
}

impl Access {
    /// The permissions that a file is created with, before the umask.
    fn mode(self) -> u32 {
        match self {
            Self::Shared => 0o666,
            Self::Private => 0o600,
        }
    }

    /// The permissions that a file must have in the end; none for those that it is created with.
    fn of_replaced(self, place: &Path) -> Option<Permissions> {
        match self {
            Self::Shared => fs::metadata(place).ok().map(|existing| existing.permissions()),
            Self::Private => None,
        }
    }
}

/// Puts bytes at a place, which is a file or free; a reader sees the old file or the new one.
///
/// # Errors
/// What the system says.
pub(super) fn put(place: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    if let Some(file) = unnamed(&folder(place), access)
        && put_unnamed(file, place, bytes, access)?
    {
        return Ok(());
    }
    put_named(place, bytes, access)
}

/// Writes a file without a name, so that not even a kill leaves anything, and names it then. False if it cannot be named.
fn put_unnamed(mut file: File, place: &Path, bytes: &[u8], access: Access) -> io::Result<bool> {
    file.write_all(bytes)?;
    if let Some(permissions) = access.of_replaced(place) {
        file.set_permissions(permissions)?;
    }
    match link(&file, place) {
        Ok(()) => return Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(_) => return Ok(false),
    }
    // A link replaces nothing, a rename does.
    match temporary(&folder(place), |path| link(&file, path)) {
        Ok(named) => persist(named, place).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Writes a file under a name of its own, and renames it then.
fn put_named(place: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let mut named = temporary(&folder(place), |path| {
        OpenOptions::new().write(true).create_new(true).mode(access.mode()).open(path)
    })?;
    // The file itself, since errors of the named one tell its passing name.
    let file = named.as_file_mut();
    file.write_all(bytes)?;
    if let Some(permissions) = access.of_replaced(place) {
        file.set_permissions(permissions)?;
    }
    persist(named, place)
}

/// Makes something under a passing name.
fn temporary<T>(folder: &Path, mut make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<NamedTempFile<T>> {
    tempfile::Builder::new().prefix(PREFIX).make_in(folder, |path| {
        let mut unfinished = unfinished();
        let file = make(path)?;
        unfinished.insert(path.to_owned());
        Ok(file)
    })
}

fn persist<T>(named: NamedTempFile<T>, place: &Path) -> io::Result<()> {
    let mut unfinished = unfinished();
    unfinished.remove(named.path());
    named.persist(place).map(drop).map_err(|error| error.error)
}

/// A file without a name, if the file system has such.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path, access: Access) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::from_bits_truncate(access.mode())).ok()?);
    // Kernels before 6.0 forget the umask here on some file systems.
    (file.metadata().ok()?.permissions().mode() & umask()? == 0).then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path, _: Access) -> Option<File> {
    None
}

/// The umask. Asking the system for it would change it for a moment.
#[cfg(target_os = "linux")]
fn umask() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let octal = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(octal.trim(), 8).ok()
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    use rustix::fs::{AtFlags, CWD, linkat};
    // Of the ways to name an open file the one that takes no privilege.
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// The folder that a path lies in.
pub(super) fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn count(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn both_ways_of_writing_keep_the_rules_of_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let usual = folder.path().join("usual");
        fs::write(&usual, "").unwrap();
        for (way, is_named) in [("named", true), ("as the file system can", false)] {
            let put = |place: &Path, bytes: &[u8], access| {
                if is_named { put_named(place, bytes, access) } else { put(place, bytes, access) }.unwrap();
            };
            let file = folder.path().join(way);
            put(&file, b"new", Access::Shared);
            assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"new".to_vec(), mode(&usual)), "{way}");
            fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
            put(&file, b"newer", Access::Shared);
            assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"newer".to_vec(), 0o640), "{way}");
            put(&file, b"mine", Access::Private);
            assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"mine".to_vec(), 0o600), "{way}");
        }
        assert_eq!(count(folder.path()), 3, "nothing is left behind");
    }

    #[test]
    fn a_file_without_a_name_is_seen_by_nobody_until_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut file) = unnamed(folder.path(), Access::Private) else {
            // This file system has none: what is written has a name, as `put_named` shows.
            assert!(put(&folder.path().join("a"), b"a", Access::Private).is_ok());
            return;
        };
        file.write_all(b"half").unwrap();
        assert_eq!(count(folder.path()), 0);
        drop(file);
        assert_eq!(count(folder.path()), 0);
    }

    #[test]
    fn what_cannot_take_its_place_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(put(&taken, b"a", Access::Shared).is_err());
        assert!(put_named(&taken, b"a", Access::Shared).is_err());
        assert_eq!(count(folder.path()), 1);
        assert!(!unfinished().iter().any(|path| path.starts_with(folder.path())));
    }

    #[test]
    fn an_unfinished_file_is_known_while_it_has_a_passing_name() {
        let folder = tempfile::tempdir().unwrap();
        let named = temporary(folder.path(), |path| File::create_new(path)).unwrap();
        let path = named.path().to_owned();
        assert!(unfinished().contains(&path));
        persist(named, &folder.path().join("a")).unwrap();
        assert!(!unfinished().contains(&path));

        let abandoned = temporary(folder.path(), |path| File::create_new(path)).unwrap();
        remove(unfinished().iter().filter(|path| path.starts_with(folder.path())));
        assert_eq!(count(folder.path()), 1, "only what was finished is left");
        drop(abandoned);
    }
}
