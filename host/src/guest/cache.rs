//! Compiled components of users, kept so that each is compiled once. The folder is code: it is used only if nobody but
//! this user can write to it, and an entry that is not exactly what was written is a miss.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::engine::Engine;
use crate::probes::Digest;

const MAGIC: &[u8; 8] = b"mcpeval1";

/// Feeds a `Hash` value into SHA-256, so that the key does not depend on a hasher that may change.
struct Sha(Sha256);

impl Hasher for Sha {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

/// Where the compiled form of a component stands, if there is a usable cache.
pub(super) struct Slot {
    path: PathBuf,
    folder: PathBuf,
}

impl Slot {
    pub(super) fn new(engine: &Engine, digest: Digest) -> Option<Self> {
        let folder = engine.cache.clone()?;
        let mut sha = Sha(Sha256::new());
        engine.inner.precompile_compatibility_hash().hash(&mut sha);
        env!("CARGO_PKG_VERSION").hash(&mut sha);
        let engine_key = Digest(sha.0.finalize().into());
        Some(Self { path: folder.join(format!("{digest}-{engine_key}.bin")), folder })
    }

    /// The compiled bytes, if the entry is whole and nobody else could have written it.
    pub(super) fn read(&self) -> Option<Vec<u8>> {
        if !is_private(&self.folder) || !is_private(&self.path) {
            return None;
        }
        let bytes = fs::read(&self.path).ok()?;
        let (head, compiled) = bytes.split_at_checked(MAGIC.len() + 32)?;
        let (magic, sum) = head.split_at_checked(MAGIC.len())?;
        (magic == MAGIC && sum == Sha256::digest(compiled).as_slice()).then(|| compiled.to_vec())
    }

    /// Keep the compiled bytes. Not being able to is no error: the next run compiles again.
    pub(super) fn write(&self, compiled: &[u8]) {
        if let Err(error) = self.try_write(compiled) {
            tracing::debug!("a compiled component was not kept: {error}");
        }
    }

    fn try_write(&self, compiled: &[u8]) -> std::io::Result<()> {
        create_private(&self.folder)?;
        if !is_private(&self.folder) {
            return Err(std::io::Error::other("others can write to the cache folder"));
        }
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(MAGIC)?;
        file.write_all(&Sha256::digest(compiled))?;
        file.write_all(compiled)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

#[cfg(unix)]
fn create_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create_private(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)
}

/// Ours, and no symlink, and not writable for others.
#[cfg(unix)]
fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::symlink_metadata(path).is_ok_and(|metadata| {
        !metadata.file_type().is_symlink()
            && metadata.uid() == rustix::process::geteuid().as_raw()
            && metadata.mode() & 0o022 == 0
    })
}

#[cfg(not(unix))]
fn is_private(path: &Path) -> bool {
    path.exists()
}

/// The user's cache folder for compiled components.
pub fn user_folder() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")).filter(|p| p.is_absolute()))?;
    Some(base.join("mcpeval").join("compiled"))
}
