//! What surrounds a child: the scratch folder it may use, and the guardian that tidies up if mcpeval is killed.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::guardian::Registered;
pub use super::guardian::{GUARDIAN_ARGUMENT, Guardian, guardian_main};

/// The only file of a fresh scratch folder (docs/standard.md).
const FILE: &str = "mcpeval.txt";
/// Its content, 8 bytes.
const CONTENT: &str = "mcpeval\n";
/// Start of the folder's name; the guardian removes no other.
pub(super) const PREFIX: &str = "mcpeval-";

/// A folder that holds only `mcpeval.txt` and is removed on drop, whatever a server put there.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _registered: Registered,
}

impl Scratch {
    /// Makes the folder in the system's folder for temporary files, for this user only.
    pub fn create(guardian: &Guardian) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        fs::write(folder.path().join(FILE), CONTENT)?;
        let path = folder.path().canonicalize()?;
        let registered = guardian.folder(&path);
        // From here on it is ours to remove; the crate's own removal gives up on folders without permissions.
        let _ = folder.keep();
        Ok(Self { path, _registered: registered })
    }

    /// Its canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the scratch folder could not be removed");
        }
    }
}

/// Removes a folder and all in it, following no link. A server may have taken permissions away: they are given back.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path);
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn open_up(root: &Path) {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_one_file_and_vanishes_with_all_that_was_added() {
        let scratch = Scratch::create(&Guardian::none()).unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(path, path.canonicalize().unwrap());
        let names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [FILE]);
        assert_eq!(fs::read(path.join(FILE)).unwrap(), b"mcpeval\n");

        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), path.join("link")).unwrap();
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/c"), "").unwrap();
        fs::set_permissions(path.join("a"), fs::Permissions::from_mode(0o000)).unwrap();
        drop(scratch);
        assert!(!path.exists());
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn a_folder_that_the_server_removed_is_no_error() {
        let scratch = Scratch::create(&Guardian::none()).unwrap();
        fs::remove_dir_all(scratch.path()).unwrap();
        assert!(remove(scratch.path()).is_ok());
    }
}

#[cfg(test)]
#[path = "tests/guardian.rs"]
mod guarded;
