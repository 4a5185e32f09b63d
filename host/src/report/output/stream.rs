//! What is written to as it is: standard output, pipes, devices.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// Time in which somebody must have opened a pipe to read it.
const PIPE_PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks for a reader, for whom no event is given.
const PIPE_TICK: Duration = Duration::from_millis(10);

/// Writes a result to standard output, and waits while its reader does. A reader that has gone is no fault.
///
/// # Errors
/// Unfinished if the output cannot be written for another reason.
pub fn stdout(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.flush().and_then(|()| whole(stdout.as_fd(), bytes)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(fault("standard output", None, &error)),
        _ => Ok(()),
    }
}

/// Writes all bytes, however long the reader takes, also where somebody else made the stream one that does not wait.
///
/// # Errors
/// What the system says.
pub(super) fn whole(stream: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(stream, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                rustix::io::retry_on_intr(|| poll(&mut [PollFd::from_borrowed_fd(stream, PollFlags::OUT)], None))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Opens a pipe or a device. A pipe that nobody reads is waited for, but not for long.
///
/// # Errors
/// Unfinished, with the path and the cause.
pub(super) fn open(path: &Path, is_pipe: bool) -> Result<File> {
    let until = Instant::now() + PIPE_PATIENCE;
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            // What was opened here is nobody else's, so this changes no one's terminal.
            Ok(opened) => {
                let cannot = |error: Errno| told(path, &error.into());
                rustix::fs::fcntl_setfl(&opened, OFlags::empty()).map_err(cannot)?;
                return Ok(File::from(opened));
            }
            Err(Errno::NXIO) if is_pipe && Instant::now() < until => thread::sleep(PIPE_TICK),
            Err(Errno::NXIO) if is_pipe => {
                let path = path.display();
                return Err(Error::unfinished(format!(
                    "{path}: nobody reads this pipe; start its reader first, or write to a file"
                )));
            }
            Err(error) => return Err(told(path, &error.into())),
        }
    }
}

/// Why a path cannot be written, and the way out.
pub(super) fn told(path: &Path, error: &io::Error) -> Error {
    fault(&path.display().to_string(), Some(path), error)
}

/// The same of anything with a name.
pub(super) fn fault(name: &str, path: Option<&Path>, error: &io::Error) -> Error {
    use io::ErrorKind;
    let words = match error.kind() {
        ErrorKind::StorageFull => "the disk is full; make room, or write elsewhere".to_owned(),
        ErrorKind::QuotaExceeded => "the disk quota is used up; make room, or write elsewhere".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "this file system is read-only; write elsewhere".to_owned(),
        ErrorKind::PermissionDenied => match path {
            Some(path) => {
                let folder = super::file::folder(path);
                format!("permission to write in the folder {} is missing; write elsewhere", folder.display())
            }
            None => "permission to write is missing".to_owned(),
        },
        ErrorKind::InvalidFilename => "this name is too long; choose a shorter one".to_owned(),
        ErrorKind::FileTooLarge => "the result is larger than a file may be here; write elsewhere".to_owned(),
        ErrorKind::ResourceBusy => {
            "this file is mounted by itself, so that it cannot be replaced; write to another in a mounted folder"
                .to_owned()
        }
        ErrorKind::BrokenPipe => "whoever read this pipe has gone; write to a file instead".to_owned(),
        _ if Errno::from_io_error(error) == Some(Errno::LOOP) => {
            "these links lead in a circle; write elsewhere".to_owned()
        }
        _ => format!("this cannot be written: {error}"),
    };
    Error::unfinished(format!("{name}: {words}"))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_stream_that_does_not_wait_is_waited_for() {
        let (mut reader, writer) = io::pipe().unwrap();
        rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
        // More than a pipe holds.
        let bytes = vec![b'a'; 4 * 1024 * 1024];
        let length = bytes.len();
        let written = thread::spawn(move || whole(writer.as_fd(), &bytes));
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        written.join().unwrap().unwrap();
        assert_eq!(read.len(), length);
    }

    #[test]
    fn each_cause_is_told_with_the_path_and_the_way_out() {
        let path = Path::new("shop/out.json");
        for (errno, words) in [
            (Errno::NOSPC, "the disk is full; make room, or write elsewhere"),
            (Errno::DQUOT, "the disk quota is used up; make room, or write elsewhere"),
            (Errno::ROFS, "this file system is read-only; write elsewhere"),
            (Errno::ACCESS, "permission to write in the folder shop is missing; write elsewhere"),
            (Errno::NAMETOOLONG, "this name is too long; choose a shorter one"),
            (Errno::LOOP, "these links lead in a circle; write elsewhere"),
            (Errno::PIPE, "whoever read this pipe has gone; write to a file instead"),
        ] {
            let error = told(path, &errno.into());
            assert_eq!((error.to_string(), error.exit_code()), (format!("shop/out.json: {words}"), 3));
        }
        let full = open(Path::new("/dev/full"), false).unwrap();
        let error = whole(full.as_fd(), b"a").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
