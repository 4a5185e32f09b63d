//! Reading journals from where the last reading ended, and telling whether what was read then is still the same.

use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use crate::store::journal::{Line, Lines};

/// A change of a file less than this ago may not show in its times when the next comes.
const SETTLED: Duration = Duration::from_millis(100);
/// The same on file systems that count whole seconds.
const SETTLED_COARSE: Duration = Duration::from_secs(3);
/// Read at once while a prefix is compared.
const PIECE: usize = 1 << 17;

/// How far a journal has been read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Consumed {
    /// Bytes of whole lines.
    pub(super) offset: u64,
    /// SHA-256 of those bytes.
    pub(super) digest: Vec<u8>,
    /// What the file looked like, if that tells it from any other content it may have had or come to have.
    pub(super) stamp: Option<String>,
    /// Lines read.
    pub(super) lines: u64,
    /// Those of them that were none of a journal.
    pub(super) skipped: u64,
}

/// A journal beside what is known of it.
#[derive(Debug)]
pub(super) enum Source {
    /// Nothing has changed.
    Unchanged,
    /// What was read is no longer what it was.
    Rewritten,
    /// There may be more to read.
    Open(Box<Rest>),
}

/// The part of a journal that has not been read.
#[derive(Debug)]
pub(super) struct Rest {
    lines: Lines<File>,
    hash: Sha256,
    consumed: Consumed,
}

/// A line of a journal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Numbered<'a> {
    /// From 1.
    pub(super) number: u64,
    /// Without its newline; none if it is too long to be one of a journal.
    pub(super) bytes: Option<&'a [u8]>,
}

impl Source {
    /// Opens a journal. One that was read before and looks as it did then is not read again; of any other, the part
    /// that was read is compared first.
    ///
    /// # Errors
    /// If it cannot be read, or is no regular file.
    pub(super) fn open(path: &Path, known: Option<Consumed>) -> io::Result<Self> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file"));
        }
        let mut consumed = known.unwrap_or_default();
        if consumed.stamp.as_ref().is_some_and(|before| *before == stamp(&found)) {
            return Ok(Self::Unchanged);
        }
        let Some(hash) = prefix(&file, consumed.offset)? else { return Ok(Self::Rewritten) };
        if consumed.offset > 0 && hash.clone().finalize().as_slice() != consumed.digest {
            return Ok(Self::Rewritten);
        }
        // Taken before anything is read: what is written meanwhile makes it another.
        consumed.stamp = is_settled(&found, SystemTime::now()).then(|| stamp(&found));
        Ok(Self::Open(Box::new(Rest { lines: Lines::new(file), hash, consumed })))
    }
}

impl Rest {
    /// The next line; none at the end.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Numbered<'_>>> {
        let hash = &mut self.hash;
        let Some(line) = self.lines.next(&mut |bytes: &[u8]| hash.update(bytes))? else { return Ok(None) };
        self.consumed.lines += 1;
        let bytes = match line {
            Line::Whole(bytes) => Some(bytes),
            Line::TooLong(_) => None,
        };
        Ok(Some(Numbered { number: self.consumed.lines, bytes }))
    }

    /// Counts the last line as none of a journal.
    pub(super) fn skip(&mut self) {
        self.consumed.skipped += 1;
    }

    /// How far it has been read now.
    pub(super) fn consumed(self) -> Consumed {
        Consumed {
            offset: self.consumed.offset + self.lines.consumed,
            digest: self.hash.finalize().to_vec(),
            ..self.consumed
        }
    }
}

/// Reads that many bytes, and leaves the file behind them; none if there are fewer.
fn prefix(file: &File, length: u64) -> io::Result<Option<Sha256>> {
    let mut hash = Sha256::new();
    let mut left = BufReader::with_capacity(0, file).take(length);
    let mut piece = vec![0; usize::try_from(length).unwrap_or(PIECE).min(PIECE)];
    while left.limit() > 0 {
        let read = left.read(&mut piece)?;
        if read == 0 {
            return Ok(None);
        }
        hash.update(piece.get(..read).unwrap_or_default());
    }
    let mut file = file;
    file.seek(SeekFrom::Start(length))?;
    Ok(Some(hash))
}

/// What a file looks like from outside. No write leaves it as it was, once the file is settled: nobody can set the time
/// of the last change.
fn stamp(found: &Metadata) -> String {
    format!("{}:{}:{}:{}.{:09}", found.dev(), found.ino(), found.len(), found.ctime(), found.ctime_nsec())
}

fn is_settled(found: &Metadata, now: SystemTime) -> bool {
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(found.ctime()), u32::try_from(found.ctime_nsec())) else {
        return false;
    };
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
    let enough = if nanos == 0 { SETTLED_COARSE } else { SETTLED };
    now.duration_since(changed).is_ok_and(|age| age >= enough)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    fn read(path: &Path, known: Option<Consumed>) -> (Vec<String>, Consumed) {
        let Source::Open(mut rest) = Source::open(path, known).unwrap() else { panic!("it was to be read") };
        let mut found = Vec::new();
        while let Some(line) = rest.next().unwrap() {
            found.push(
                line.bytes.map_or_else(|| "too long".to_owned(), |line| String::from_utf8(line.to_vec()).unwrap()),
            );
        }
        (found, rest.consumed())
    }

    #[test]
    fn only_what_was_added_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        fs::write(&path, "one\ntwo\nthr").unwrap();
        let (lines, consumed) = read(&path, None);
        assert_eq!((lines, consumed.offset, consumed.lines), (vec!["one".to_owned(), "two".to_owned()], 8, 2));
        assert_eq!(consumed.digest, Sha256::digest("one\ntwo\n").to_vec());
        File::options().append(true).open(&path).unwrap().write_all(b"ee\nfour\n").unwrap();
        let (lines, consumed) = read(&path, Some(consumed));
        assert_eq!((lines, consumed.lines), (vec!["three".to_owned(), "four".to_owned()], 4));
        assert_eq!(consumed.digest, Sha256::digest("one\ntwo\nthree\nfour\n").to_vec());
        assert_eq!(read(&path, Some(consumed)).0, Vec::<String>::new());
    }

    #[test]
    fn a_rewritten_or_shortened_journal_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        fs::write(&path, "one\ntwo\n").unwrap();
        let (_, consumed) = read(&path, None);
        for text in ["one\nTwo\nthree\n", "one\n", ""] {
            fs::write(&path, text).unwrap();
            assert!(matches!(Source::open(&path, Some(consumed.clone())).unwrap(), Source::Rewritten), "{text}");
        }
    }

    #[test]
    fn what_looks_as_it_did_is_not_read_and_what_has_just_changed_may_look_like_anything() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        fs::write(&path, "one\n").unwrap();
        let found = fs::metadata(&path).unwrap();
        let known = Consumed { offset: 4, digest: vec![0; 32], stamp: Some(stamp(&found)), lines: 1, skipped: 0 };
        assert!(matches!(Source::open(&path, Some(known.clone())).unwrap(), Source::Unchanged));
        fs::write(&path, "two\n").unwrap();
        fs::set_permissions(&path, fs::metadata(&path).unwrap().permissions()).unwrap();
        let other = Consumed { stamp: Some("other".to_owned()), ..known };
        assert!(matches!(Source::open(&path, Some(other)).unwrap(), Source::Rewritten));

        let found = fs::metadata(&path).unwrap();
        let changed = SystemTime::UNIX_EPOCH
            + Duration::new(found.ctime().try_into().unwrap(), found.ctime_nsec().try_into().unwrap());
        assert!(!is_settled(&found, changed) && !is_settled(&found, changed - Duration::from_secs(9)));
        assert!(is_settled(&found, changed + SETTLED_COARSE));
    }

    #[test]
    fn links_and_folders_are_no_journals() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("link")).unwrap();
        assert!(Source::open(&folder.path().join("link"), None).is_err());
        assert!(Source::open(folder.path(), None).is_err());
    }
}
