//! The bytes of documents: files, and pipes that somebody writes to.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

use crate::error::{Error, Result};

/// Time in which somebody must have opened a pipe to write to it.
const PIPE_PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text without a byte order mark before it.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Reads a whole UTF-8 file of at most `limit` bytes. It may be a pipe that somebody writes to.
///
/// # Errors
/// A usage error if it is missing, too large or no UTF-8.
pub fn read_text(path: &Path, limit: usize) -> Result<String> {
    let fault = |error: io::Error| {
        Error::usage(match error.kind() {
            io::ErrorKind::IsADirectory => format!("{}: this is a folder, not a file", path.display()),
            io::ErrorKind::TimedOut => format!("{}: nobody writes to this pipe", path.display()),
            _ => format!("{}: {error}", path.display()),
        })
    };
    let mut first = Vec::new();
    let file = open(path).and_then(|file| await_writer(file, PIPE_PATIENCE, &mut first)).map_err(fault)?;
    read_text_from(first.as_slice().chain(file), path.display(), limit)
}

/// The same from anything that can be read; `name` is what it is called in errors.
///
/// # Errors
/// As [`read_text`].
pub fn read_text_from(source: impl io::Read, name: impl std::fmt::Display, limit: usize) -> Result<String> {
    let fault = |what: String| Error::usage(format!("{name}: {what}"));
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    source.take(most).read_to_end(&mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => fault("this is a folder, not a file".to_owned()),
        _ => fault(error.to_string()),
    })?;
    if bytes.len() > limit {
        return Err(fault(format!("the file is larger than {limit} bytes")));
    }
    decode(bytes).map_err(|what| fault(what.to_owned()))
}

/// The text of a document's bytes.
///
/// # Errors
/// What it is instead, for people.
pub fn decode(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("the file is UTF-16; save it as UTF-8");
    }
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8")
}

/// Opens a file for reading, and never waits for the writer of a pipe. What is no regular file is left such that a read
/// does not wait either.
///
/// # Errors
/// What the system says.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::from(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?);
    if file.metadata()?.is_file() {
        rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    }
    Ok(file)
}

/// Whoever writes to a pipe may take any time, but must be there soon. One byte is read to know.
fn await_writer(mut file: File, patience: Timespec, bytes: &mut Vec<u8>) -> io::Result<File> {
    if file.metadata()?.file_type().is_fifo() {
        let arrived = rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&patience)))?;
        let mut first = [0];
        match file.read(&mut first) {
            Ok(0) if arrived == 0 => return Err(io::ErrorKind::TimedOut.into()),
            Ok(count) => bytes.extend_from_slice(first.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fifo(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        path
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let fault = read_text(&fifo(folder.path()), 10).unwrap_err().to_string();
        assert!(fault.ends_with("pipe: nobody writes to this pipe"), "{fault}");
        let fault = read_text(folder.path(), 10).unwrap_err().to_string();
        assert!(fault.ends_with("this is a folder, not a file"), "{fault}");
    }

    #[test]
    fn a_pipe_is_read_to_its_end_however_slow_its_writer() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        for written in ["", "{\"a\""] {
            let reader = open(&path).unwrap();
            let mut writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            writer.write_all(written.as_bytes()).unwrap();
            let mut bytes = Vec::new();
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut reader = await_writer(reader, now, &mut bytes).unwrap();
            let writing = std::thread::spawn(move || writer.write_all(b":1}"));
            reader.read_to_end(&mut bytes).unwrap();
            writing.join().unwrap().unwrap();
            assert_eq!(bytes, format!("{written}:1}}").as_bytes());
        }
    }
}
