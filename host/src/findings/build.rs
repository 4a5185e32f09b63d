//! The files of a server's command by their content, so that green checks in a row are of one build.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::probes::Digest;
use crate::runner::Target;
use crate::store::hash::hex;

/// Bytes of all files of one command together.
const MAX_BYTES: u64 = 16 << 30;
/// Bytes that are read at a time.
const PIECE: usize = 1 << 18;

/// The executable, and every argument that names a regular file: where each really is, and what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Build {
    files: Vec<(PathBuf, Digest)>,
}

impl Build {
    /// Reads the files of a target; one that is reached over HTTP has none, nor has a command that is not found.
    ///
    /// # Errors
    /// Unfinished if a file cannot be read, or they are larger than 16 GiB together.
    pub fn of(target: &Target) -> Result<Self> {
        let Target::Stdio(launch) = target else { return Ok(Self::default()) };
        let mut left = MAX_BYTES;
        let mut files: Vec<(PathBuf, Digest)> = Vec::new();
        for path in launch.executable().into_iter().chain(launch.argument_files()) {
            let path = path.canonicalize().map_err(|error| unreadable(&path, &error))?;
            if !files.iter().any(|(known, _)| *known == path) {
                let digest = digest(&path, &mut left)?;
                files.push((path, digest));
            }
        }
        Ok(Self { files })
    }

    /// Path and digest of each.
    pub(super) fn files(&self) -> Value {
        let one = |(path, digest): &(PathBuf, Digest)| json!({"path": Self::word(path.as_os_str()), "sha256": digest.to_string()});
        self.files.iter().map(one).collect()
    }

    /// A word of a command as text that no other word has.
    pub(super) fn word(word: &OsStr) -> String {
        word.to_str().map_or_else(|| format!("\0{}", hex(word.as_encoded_bytes())), str::to_owned)
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::unfinished(format!(
        "{}: this file of the server's command cannot be read, so that checks of one build cannot be told from those of another: {error}",
        path.display()
    ))
}

fn digest(path: &Path, left: &mut u64) -> Result<Digest> {
    let failed = |error: io::Error| unreadable(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        let read = match file.read(&mut piece) {
            Ok(0) => return Ok(Digest(hash.finalize().into())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        *left = left.checked_sub(read as u64).ok_or_else(|| {
            Error::unfinished(format!(
                "{}: the files of the server's command are larger than {} GiB together; start it by a smaller file",
                path.display(),
                MAX_BYTES >> 30
            ))
        })?;
        hash.update(piece.get(..read).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::wire::launch::Launch;

    fn target(folder: &Path, args: &[&str]) -> Target {
        Target::Stdio(Launch {
            program: "sh".into(),
            args: args.iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: Some(folder.to_owned()),
            withheld: Vec::new(),
        })
    }

    #[test]
    fn a_build_is_its_files_and_their_content() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("serve.sh"), "one").unwrap();
        let of = |args: &[&str]| Build::of(&target(&root, args)).unwrap();
        let first = of(&["serve.sh", "--fast", "."]);
        assert_eq!(first.files.len(), 2);
        let expected = (root.join("serve.sh"), Digest(Sha256::digest("one").into()));
        assert_eq!(first.files.last(), Some(&expected));
        assert_eq!(of(&["./serve.sh", "serve.sh"]), first, "one file is one, however it is called");
        fs::write(root.join("serve.sh"), "two").unwrap();
        assert_ne!(of(&["serve.sh"]), first);
        let mut left = 2;
        assert!(digest(&root.join("serve.sh"), &mut left).unwrap_err().to_string().contains("larger than 16 GiB"));
    }

    #[test]
    fn every_word_is_told_from_every_other() {
        use std::os::unix::ffi::OsStrExt as _;
        let words =
            [OsStr::from_bytes(b"a\xff"), OsStr::from_bytes(b"a\xfe"), OsStr::new("a\u{fffd}"), OsStr::new("61ff")];
        let texts: std::collections::BTreeSet<String> = words.iter().map(|word| Build::word(word)).collect();
        assert_eq!(texts.len(), words.len());
    }
}
