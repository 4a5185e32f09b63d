//! Journals: files of lines that only grow. A line is written at once and under a lock, so that a killed writer leaves
//! at most one torn line, and whoever comes next seals it.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use regex::Regex;

use super::home::{Home, JOURNAL_WAIT, fault, lock};
use super::record::{Annotation, MAX_LINE, Record};
use crate::error::{Error, Result};

/// Which journals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Journal {
    /// Of calls.
    Calls,
    /// Of annotations.
    Annotations,
}

impl Journal {
    const fn word(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Annotations => "annotations",
        }
    }

    /// The file of the day (UTC) in which a record's `ts` lies.
    pub fn file(self, home: &Home, ts: &str) -> PathBuf {
        let day: String = ts.chars().take(10).collect();
        home.store().join(format!("{}-{day}.jsonl", self.word()))
    }
}

/// Appends a record to the journal of its day. The home must be prepared.
///
/// # Errors
/// Unfinished if it is longer than a line may be, the lock was not free for [`JOURNAL_WAIT`], or the disk refuses it.
pub fn append_call(home: &Home, record: &Record) -> Result<()> {
    let line = record.line().ok_or_else(too_long)?;
    append(home, &Journal::Calls.file(home, &record.ts), &line)
}

/// Appends an annotation to the journal of its day. The home must be prepared.
///
/// # Errors
/// As [`append_call`].
pub fn append_annotation(home: &Home, annotation: &Annotation) -> Result<()> {
    let line = annotation.line().ok_or_else(too_long)?;
    append(home, &Journal::Annotations.file(home, &annotation.ts), &line)
}

fn too_long() -> Error {
    Error::unfinished(format!("a record is longer than the {MAX_LINE} bytes of a journal's line"))
}

/// Appends one or more whole lines to a file of the home, in one write.
///
/// # Errors
/// As [`append_call`].
pub fn append(home: &Home, path: &Path, lines: &[u8]) -> Result<()> {
    let mut file = home.open_append(path)?;
    lock(&file, JOURNAL_WAIT).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Error::unfinished(format!(
            "{}: somebody else has held its lock for {} seconds",
            path.display(),
            JOURNAL_WAIT.as_secs()
        )),
        _ => fault(path, &error),
    })?;
    write(&mut file, lines).map_err(|error| fault(path, &error))
}

fn write(file: &mut File, lines: &[u8]) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut last = [b'\n'];
    if length > 0 {
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
    }
    // A torn line ends here; a whole record that lacks only its newline is saved.
    let sealed = (last != *b"\n").then(|| [b"\n", lines].concat());
    let lines = sealed.as_deref().unwrap_or(lines);
    if file.write(lines)? == lines.len() {
        return Ok(());
    }
    // The disk is full: half a line is worth less than none.
    _ = file.set_len(length);
    Err(io::ErrorKind::StorageFull.into())
}

/// The journals of that kind, oldest day first, each a regular file. A missing store has none.
///
/// # Errors
/// Unfinished if the folder cannot be read.
pub fn files(home: &Home, journal: Journal) -> Result<Vec<PathBuf>> {
    static NAME: OnceLock<Option<Regex>> = OnceLock::new();
    let name = NAME.get_or_init(|| Regex::new(r"^(calls|annotations)-\d{4}-\d{2}-\d{2}\.jsonl$").ok());
    let store = home.store();
    let entries = match fs::read_dir(&store) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fault(&store, &error)),
    };
    let is_journal =
        |file: &str| file.starts_with(journal.word()) && name.as_ref().is_some_and(|name| name.is_match(file));
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| fault(&store, &error))?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && entry.file_name().to_str().is_some_and(is_journal) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Reads whole lines of a journal, one after another, in bounded memory.
#[derive(Debug)]
pub struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// Bytes of the whole lines read so far.
    pub consumed: u64,
}

/// One whole line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Its bytes without the newline.
    Whole(&'a [u8]),
    /// It is longer than [`MAX_LINE`], of this many bytes.
    TooLong(u64),
}

impl<R: Read + Seek> Lines<R> {
    /// From wherever the reader stands.
    pub fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(1 << 16, reader), line: Vec::new(), consumed: 0 }
    }

    /// The next line that has its newline; none at the end, where a writer may still be at work. `on_bytes` sees all
    /// bytes of whole lines, newlines included, in pieces.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn next(&mut self, on_bytes: &mut impl FnMut(&[u8])) -> io::Result<Option<Line<'_>>> {
        let most = MAX_LINE as u64;
        self.line.clear();
        let read = (&mut self.reader).take(most).read_until(b'\n', &mut self.line)? as u64;
        if self.line.last() == Some(&b'\n') {
            on_bytes(&self.line);
            self.consumed += read;
            return Ok(Some(Line::Whole(self.line.strip_suffix(b"\n").unwrap_or_default())));
        }
        if read < most {
            return Ok(None);
        }
        // Its bytes count only if it ends, which is known when they have been read: they are read twice.
        let rest = self.reader.skip_until(b'\n')? as u64;
        let back = i64::try_from(read + rest).map_err(io::Error::other)?;
        self.reader.seek_relative(-1)?;
        let mut last = [0];
        self.reader.read_exact(&mut last)?;
        if last != *b"\n" {
            return Ok(None);
        }
        self.reader.seek_relative(-back)?;
        let mut left = read + rest;
        while left > 0 {
            self.line.clear();
            let piece = (&mut self.reader).take(most.min(left)).read_to_end(&mut self.line)? as u64;
            if piece == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            on_bytes(&self.line);
            left -= piece;
        }
        self.line.clear();
        self.consumed += read + rest;
        Ok(Some(Line::TooLong(read + rest)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        home.prepare().unwrap();
        (folder, home)
    }

    fn read(bytes: &[u8]) -> (Vec<Result<Vec<u8>, u64>>, u64, Vec<u8>) {
        let (mut lines, mut seen, mut found) = (Lines::new(Cursor::new(bytes)), Vec::new(), Vec::new());
        while let Some(line) = lines.next(&mut |bytes: &[u8]| seen.extend_from_slice(bytes)).unwrap() {
            found.push(match line {
                Line::Whole(line) => Ok(line.to_vec()),
                Line::TooLong(length) => Err(length),
            });
        }
        (found, lines.consumed, seen)
    }

    #[test]
    fn a_torn_line_is_sealed_and_a_whole_one_is_saved() {
        let (_folder, home) = home();
        let path = home.store().join("calls-2027-01-15.jsonl");
        append(&home, &path, b"one\n").unwrap();
        home.open_append(&path).unwrap().write_all(b"to").unwrap();
        append(&home, &path, b"three\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\nto\nthree\n");
    }

    #[test]
    fn writers_at_the_same_time_leave_whole_lines() {
        let (_folder, home) = home();
        let path = home.store().join("calls-2027-01-15.jsonl");
        let text = |writer: usize| format!("{}\n", writer.to_string().repeat(5_000));
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (home, path) = (&home, &path);
                scope.spawn(move || (0..50).for_each(|_| append(home, path, text(writer).as_bytes()).unwrap()));
            }
        });
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(written.lines().count(), 200);
        assert!(written.lines().all(|line| line.len() == 5_000 && line.bytes().all(|byte| byte == line.as_bytes()[0])));
    }

    #[test]
    fn a_line_counts_when_it_has_its_newline() {
        let (found, consumed, seen) = read(b"one\n\ntwo\nthr");
        assert_eq!(found, [Ok(b"one".to_vec()), Ok(vec![]), Ok(b"two".to_vec())]);
        assert_eq!((consumed, seen.as_slice()), (9, &b"one\n\ntwo\n"[..]));
    }

    #[test]
    fn a_line_beyond_the_bound_is_passed_over() {
        let mut bytes = vec![b'x'; 9 << 20];
        bytes.extend_from_slice(b"\nnext\n");
        let (found, consumed, seen) = read(&bytes);
        assert_eq!(found, [Err((9 << 20) + 1), Ok(b"next".to_vec())]);
        assert!(consumed == bytes.len() as u64 && seen == bytes);
        bytes.truncate(9 << 20);
        assert_eq!(read(&bytes), (vec![], 0, vec![]));
        let exact = [vec![b'x'; MAX_LINE - 1], b"\n".to_vec()].concat();
        assert_eq!(read(&exact).0, [Ok(vec![b'x'; MAX_LINE - 1])]);
    }

    #[test]
    fn only_journals_are_read_and_a_missing_store_has_none() {
        let (folder, home) = home();
        for name in [
            "calls-2027-01-16.jsonl",
            "calls-2027-01-15.jsonl",
            "calls-2027-01-15.jsonl.bak",
            "annotations-2027-01-15.jsonl",
        ] {
            fs::write(home.store().join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("/dev/zero", home.store().join("calls-2027-01-17.jsonl")).unwrap();
        let names: Vec<_> =
            files(&home, Journal::Calls).unwrap().iter().map(|file| file.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["calls-2027-01-15.jsonl", "calls-2027-01-16.jsonl"]);
        assert!(files(&Home::at(folder.path().join("none")), Journal::Calls).unwrap().is_empty());
    }
}
