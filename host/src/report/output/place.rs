//! Where a path leads, and whether what is there may be written to.

use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::super::text;
use super::file::{self, Access, folder};
use super::stream;
use crate::error::{Error, Result};

/// The path that means standard output.
const STANDARD_OUTPUT: &str = "-";
/// What errors call it.
const STANDARD_OUTPUT_NAME: &str = "standard output";
/// Links that are followed one after the other, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// A file whatever its name: device and inode.
type Inode = (u64, u64);

fn inode(found: &Metadata) -> Inode {
    (found.dev(), found.ino())
}

/// Files that a command reads, none of which may be overwritten by its result.
#[derive(Debug, Default)]
pub struct Inputs(Vec<(&'static str, Inode)>);

impl Inputs {
    /// Adds a file, if one is named; `what` is what errors call it, such as "the manifest". One that is missing is left
    /// to whoever reads it.
    pub fn add(&mut self, what: &'static str, path: Option<&Path>) {
        self.keep(what, path.and_then(|path| fs::metadata(path).ok()));
    }

    /// Adds a document; `-` is standard input.
    pub fn add_document(&mut self, what: &'static str, path: &Path) {
        if path == Path::new("-") {
            self.keep(what, of_stream(io::stdin().as_fd()));
        } else {
            self.add(what, Some(path));
        }
    }

    fn keep(&mut self, what: &'static str, found: Option<Metadata>) {
        // A terminal may be both, and a device keeps nothing that could be lost.
        self.0.extend(found.filter(|found| !found.file_type().is_char_device()).map(|found| (what, inode(&found))));
    }

    fn refuse(&self, shown: &str, found: &Metadata) -> Result<()> {
        match self.0.iter().find(|(_, input)| *input == inode(found)) {
            Some((what, _)) => Err(Error::usage(format!("{shown}: this is {what} that is read; write elsewhere"))),
            None => Ok(()),
        }
    }
}

/// An open stream of this process.
fn of_stream(stream: BorrowedFd<'_>) -> Option<Metadata> {
    File::from(stream.try_clone_to_owned().ok()?).metadata().ok()
}

/// What only one output may have.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    Stream(Inode),
    File(PathBuf),
}

/// Checks the outputs of one command, before anything is spent on it.
#[derive(Debug)]
pub struct Places<'a> {
    inputs: &'a Inputs,
    taken: Vec<Taken>,
}

impl<'a> Places<'a> {
    /// For a command that reads these files.
    pub fn new(inputs: &'a Inputs) -> Self {
        Self { inputs, taken: Vec::new() }
    }

    /// Where a result goes: standard output without a path or for `-`.
    ///
    /// # Errors
    /// A usage error if the place is an input or another output; otherwise unfinished, if nothing can be written there.
    pub fn result(&mut self, path: Option<&Path>) -> Result<Destination> {
        match path {
            Some(path) if path != Path::new(STANDARD_OUTPUT) => self.path(path, Access::Shared),
            _ => {
                if let Some(found) = of_stream(io::stdout().as_fd()) {
                    self.take_stream(STANDARD_OUTPUT_NAME, &found)?;
                }
                Ok(Destination { path: None, kind: Kind::Standard, access: Access::Shared })
            }
        }
    }

    /// Where lines go that only the user may read.
    ///
    /// # Errors
    /// As [`result`](Self::result); a usage error for standard output, which carries results only.
    pub fn private(&mut self, path: &Path) -> Result<Destination> {
        if path == Path::new(STANDARD_OUTPUT) {
            return Err(no_log(STANDARD_OUTPUT));
        }
        self.path(path, Access::Private)
    }

    fn path(&mut self, path: &Path, access: Access) -> Result<Destination> {
        let shown = path.display().to_string();
        let kind = match find(path)? {
            Found::Stream(found) => {
                self.take_stream(&shown, &found)?;
                match own(&found) {
                    Some(Kind::Standard) if access == Access::Private => return Err(no_log(&shown)),
                    Some(own) => own,
                    None => Kind::Open(stream::open(path, found.file_type().is_fifo())?),
                }
            }
            Found::File(place, existing) => {
                if let Some(found) = &existing {
                    self.inputs.refuse(&shown, found)?;
                }
                match existing.as_ref().and_then(own) {
                    // A log would be as open there as that file is.
                    Some(_) if access == Access::Private => return Err(no_log(&shown)),
                    Some(own) => {
                        existing.map_or(Ok(()), |found| self.take_stream(&shown, &found))?;
                        own
                    }
                    None => {
                        self.take(&shown, Taken::File(place.clone()))?;
                        check_folder(path, &place)?;
                        Kind::File(place)
                    }
                }
            }
        };
        Ok(Destination { path: Some(path.to_owned()), kind, access })
    }

    fn take_stream(&mut self, shown: &str, found: &Metadata) -> Result<()> {
        // What goes to a device several can send, and it keeps nothing.
        if found.file_type().is_char_device() {
            return Ok(());
        }
        self.inputs.refuse(shown, found)?;
        self.take(shown, Taken::Stream(inode(found)))
    }

    fn take(&mut self, shown: &str, place: Taken) -> Result<()> {
        if self.taken.contains(&place) {
            return Err(shared(shown));
        }
        self.taken.push(place);
        Ok(())
    }
}

fn no_log(shown: &str) -> Error {
    Error::usage(format!("{shown}: what mcpeval prints goes there; name another file for the run log"))
}

fn shared(shown: &str) -> Error {
    Error::usage(format!("{shown}: two outputs cannot share one file; name another for one of them"))
}

/// One place that can be written to. A pipe is open from the check on, so that its reader stays.
#[derive(Debug)]
pub struct Destination {
    path: Option<PathBuf>,
    kind: Kind,
    access: Access,
}

#[derive(Debug)]
enum Kind {
    /// Standard output.
    Standard,
    /// Standard error.
    Diagnostics,
    /// A pipe or a device.
    Open(File),
    /// A file by the place that the path led to.
    File(PathBuf),
}

impl Destination {
    /// Whether this is standard output.
    pub fn is_standard_output(&self) -> bool {
        matches!(self.kind, Kind::Standard)
    }

    /// The file, links followed; none for what is not replaced but written to.
    pub fn file(&self) -> Option<&Path> {
        match &self.kind {
            Kind::File(place) => Some(place),
            _ => None,
        }
    }

    /// Puts a file in the place of another at once: a reader sees the old one or the new one. What is no file is
    /// written to as it is, as fast as its reader reads.
    ///
    /// # Errors
    /// Unfinished, with the path, the cause and the way out.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let written = match &self.kind {
            Kind::Standard => return stream::stdout(bytes),
            Kind::Diagnostics => stream::whole(io::stderr().as_fd(), bytes),
            Kind::Open(file) => stream::whole(file.as_fd(), bytes),
            Kind::File(place) => file::put(place, bytes, self.access),
        };
        written.map_err(|error| match &self.path {
            Some(path) => stream::told(path, &error),
            None => stream::fault(STANDARD_OUTPUT_NAME, None, &error),
        })
    }

    /// Writes lines, without the control characters that they may hold.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_lines(&self, lines: &[String]) -> Result<()> {
        let mut text = String::new();
        for line in lines {
            text.push_str(&text::neutralised(line));
            text.push('\n');
        }
        self.write(text.as_bytes())
    }
}

/// Writes one file of a command that reads none.
///
/// # Errors
/// As [`Destination::write`], and as [`Places::result`].
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    Places::new(&Inputs::default()).path(path, Access::Shared)?.write(bytes)
}

/// What a path leads to.
enum Found {
    /// What is written to as it is.
    Stream(Metadata),
    /// A place in a folder that exists, and the file that is there.
    File(PathBuf, Option<Metadata>),
}

fn find(path: &Path) -> Result<Found> {
    let fault = |words: String| Error::unfinished(format!("{}: {words}", path.display()));
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(fault("this is a folder, not a file to write to".to_owned())),
        Ok(found) if found.file_type().is_block_device() => {
            Err(fault("this is a disk, which a result would destroy; write to a file".to_owned()))
        }
        Ok(found) if found.is_file() => match fs::canonicalize(path) {
            Ok(place) => Ok(Found::File(place, Some(found))),
            // Open somewhere, but without a name.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Stream(found)),
            Err(error) => Err(stream::told(path, &error)),
        },
        Ok(found) if found.file_type().is_socket() && own(&found).is_none() => {
            Err(fault("this is a socket, which is not written to; write to a file".to_owned()))
        }
        Ok(found) => Ok(Found::Stream(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            if path.as_os_str().as_bytes().ends_with(b"/") {
                return Err(fault("this names a folder, not a file to write to".to_owned()));
            }
            let place = end_of_links(path).map_err(|error| stream::told(path, &error))?;
            let folder = folder(&place);
            match (folder.canonicalize(), place.file_name()) {
                (Ok(folder), Some(name)) if folder.is_dir() => Ok(Found::File(folder.join(name), None)),
                _ if place == path => Err(fault(format!("there is no folder {}", folder.display()))),
                _ => Err(fault(format!("this link leads to {}, and there is no folder for it", place.display()))),
            }
        }
        Err(error) => Err(stream::told(path, &error)),
    }
}

/// Where a path leads that leads to nothing yet: a link stays a link, and what it leads to is created.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&place) {
            Ok(next) => place = folder(&place).join(next),
            Err(_) => return Ok(place),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// The stream of this process that a file is, if it is one: what is written by its own descriptor goes after what is
/// there already, as the user who redirected it expects.
fn own(found: &Metadata) -> Option<Kind> {
    let is = |stream: BorrowedFd<'_>, is_terminal| {
        // Any other device is the same by whatever descriptor; of a terminal only this one may be permitted.
        let matters = is_terminal || !found.file_type().is_char_device();
        matters && of_stream(stream).is_some_and(|own| inode(&own) == inode(found))
    };
    let (stdout, stderr) = (io::stdout(), io::stderr());
    if is(stdout.as_fd(), stdout.is_terminal()) {
        Some(Kind::Standard)
    } else if is(stderr.as_fd(), stderr.is_terminal()) {
        Some(Kind::Diagnostics)
    } else {
        None
    }
}

/// A file is replaced by another of its folder, so that permission to write there is what counts.
fn check_folder(path: &Path, place: &Path) -> Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, folder(place), Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|error| stream::told(path, &error.into()))
}

#[cfg(test)]
mod tests;
