//! What the journals say, in tables: `index.db`, which holds nothing that they do not, and is made anew from them
//! whenever it is not what it should be.

mod evidence;
mod load;
mod row;
mod sources;
mod tables;
mod windows;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};

pub use evidence::{Calls, Evidence, Issue, Member, Neighbour, Rewriting, issues};
use load::{Stop, load};
use tables::{Completeness, IS_FAILURE, completeness};
use windows::Touched;

use super::database::{self, Reading, broken};
use super::home::{Home, fault};
use super::lifecycle::Lifecycle;
use crate::error::{Error, Result};

/// The way out for whoever finds the index unfit.
const WAY_OUT: &str = "run mcpeval index, then mcpeval promote";

/// What an index holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records of any method, each once.
    pub calls: u64,
    /// Calls of tools that failed.
    pub failures: u64,
    /// Annotations.
    pub annotations: u64,
    /// Lines of the journals that are none of a journal.
    pub skipped: u64,
}

/// Brings `index.db` to what the journals say: by what was added to them, or from their beginning if something has
/// changed that was read before, the database is not fit, or `rebuild` asks for it.
///
/// # Errors
/// Unfinished if records contradict one another, with the place of the later one, or a file cannot be read or written.
/// The index is then what it was.
pub fn index(home: &Home, rebuild: bool) -> Result<Counts> {
    home.prepare()?;
    let _lock = home.lock_index()?;
    let path = home.index_db();
    let exists = match fs::symlink_metadata(&path) {
        Ok(_) => {
            // What is no file of the home is told before anything is put in its place.
            drop(home.open_file(&path)?);
            true
        }
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(fault(&path, &error)),
    };
    if exists
        && !rebuild
        && let Some(counts) = extend(home, &path)?
    {
        return Ok(counts);
    }
    anew(home, &path, exists)
}

/// Opens the index for reading; none if there is none. Nothing is created or changed.
///
/// # Errors
/// Unfinished, naming the command to run, if it is damaged, of another version, or not whole.
pub fn open(home: &Home) -> Result<Option<Reading>> {
    let path = home.index_db();
    let Some(reading) = database::open_to_read(&path).map_err(|error| unfit_by(&path, error))? else { return Ok(None) };
    check(&reading.connection, &path)?;
    Ok(Some(reading))
}

fn check(connection: &Connection, path: &Path) -> Result<()> {
    match completeness(connection) {
        Ok(Completeness::Whole) => Ok(()),
        Ok(Completeness::Other) => Err(Error::unfinished(format!(
            "{}: this index is of another version, or not whole; {WAY_OUT}",
            path.display()
        ))),
        Err(error) => Err(unfit(path, &error)),
    }
}

/// What a fault of SQLite in the index tells.
fn unfit(path: &Path, error: &rusqlite::Error) -> Error {
    if is_passing(error) { broken(path, error) } else { unfit_by(path, broken(path, error)) }
}

fn unfit_by(path: &Path, error: Error) -> Error {
    match error {
        Error::Unfinished(text) => Error::Unfinished(format!(
            "{}; if the index is damaged, {WAY_OUT}",
            text.strip_suffix('.').unwrap_or(&text)
        )),
        other => other.about(&path.display().to_string()),
    }
}

/// Whether a fault lies in the circumstances, so that a database made anew would have it too.
fn is_passing(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::CannotOpen
        )
    )
}

/// Adds to an index what was added to the journals, in one transaction; none if it must be made anew.
fn extend(home: &Home, path: &Path) -> Result<Option<Counts>> {
    // A file that SQLite does not even open is none of an index.
    let Ok(mut connection) = database::open_to_write(home, path) else { return Ok(None) };
    let extended = || -> Result<Option<Counts>, Stop> {
        if completeness(&connection)? != Completeness::Whole {
            return Ok(None);
        }
        // Nothing is locked or written before there is something to write.
        let transaction = connection.transaction()?;
        load(&transaction, home, Touched::default())?.relate(&transaction)?;
        let counts = counts(&transaction)?;
        transaction.commit()?;
        Ok(Some(counts))
    };
    let mut extended = extended;
    match extended() {
        Ok(counts) => Ok(counts),
        Err(Stop::Told(error)) => Err(error),
        Err(Stop::Database(error)) if is_passing(&error) => Err(broken(path, &error)),
        Err(Stop::Rewritten | Stop::Database(_)) => Ok(None),
    }
}

/// Makes the index from the beginning of the journals, beside the old one, and puts it in its place.
fn anew(home: &Home, path: &Path, exists: bool) -> Result<Counts> {
    if exists && holds_states(path) {
        // An index of mcpeval 0.8 is the only place that has them.
        drop(Lifecycle::to_write(home)?);
    }
    let aside = Aside::make(home)?;
    let built = aside.build(home, exists.then_some(path)).map_err(|stop| match stop {
        Stop::Told(error) => error,
        Stop::Database(error) => broken(&aside.path, &error),
        Stop::Rewritten => Error::unfinished("the journals changed while they were read; run mcpeval index again"),
    })?;
    File::open(&aside.path).and_then(|file| file.sync_all()).map_err(|error| fault(&aside.path, &error))?;
    if exists {
        settle(home, path)?;
    }
    fs::rename(&aside.path, path).map_err(|error| fault(path, &error))?;
    File::open(home.root()).and_then(|folder| folder.sync_all()).map_err(|error| fault(home.root(), &error))?;
    Ok(built)
}

/// Whether an index holds the states of findings, as those of mcpeval 0.8 do.
fn holds_states(path: &Path) -> bool {
    database::open_to_read(path).ok().flatten().is_some_and(|reading| {
        ["finding_lifecycle", "probe_history"]
            .iter()
            .any(|table| tables::has_table(&reading.connection, table).unwrap_or(false))
    })
}

/// Ends what a killed writer of the old index left: its rollback journal must never meet the new one.
fn settle(home: &Home, path: &Path) -> Result<()> {
    let is_rolled_back = database::open_to_write(home, path)
        .is_ok_and(|connection| connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).is_ok());
    if is_rolled_back {
        return Ok(());
    }
    // The old one is damaged: there is nothing to go back to.
    remove(&journal_of(path))
}

fn journal_of(path: &Path) -> PathBuf {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    journal.into()
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(fault(path, &error)),
        _ => Ok(()),
    }
}

/// The place of an index in the making, emptied at the end whatever comes of it.
struct Aside {
    path: PathBuf,
}

impl Aside {
    fn make(home: &Home) -> Result<Self> {
        let path = home.root().join("index.db.new");
        // A killed one may have left its own.
        remove(&path)?;
        remove(&journal_of(&path))?;
        Ok(Self { path })
    }

    fn build(&self, home: &Home, old: Option<&Path>) -> Result<Counts, Stop> {
        let connection = database::open_to_write(home, &self.path).map_err(Stop::Told)?;
        // Nobody sees it before it is whole: a torn one is thrown away.
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA secure_delete = OFF; PRAGMA cache_size = -16384; BEGIN;",
        )?;
        tables::create(&connection)?;
        let loaded = load(&connection, home, Touched::everything())?;
        tables::complete(&connection)?;
        loaded.relate(&connection)?;
        let counts = counts(&connection)?;
        connection.execute_batch("COMMIT;")?;
        if let Some(old) = old {
            keep_findings(&connection, old)?;
        }
        connection.close().map_err(|(_, error)| error)?;
        Ok(counts)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.path);
    }
}

/// Takes over what the last promote found, so that it stays until the next. An old index that is not fit has nothing to
/// give.
fn keep_findings(connection: &Connection, old: &Path) -> rusqlite::Result<()> {
    let Ok(Some(reading)) = database::open_to_read(old) else { return Ok(()) };
    if completeness(&reading.connection).ok() != Some(Completeness::Whole) {
        return Ok(());
    }
    connection.execute_batch("BEGIN;")?;
    let is_kept = evidence::copy(&reading.connection, connection).is_ok();
    // Half of them would be worse than none.
    connection.execute_batch(if is_kept { "COMMIT;" } else { "DELETE FROM findings; DELETE FROM issues; COMMIT;" })
}

fn counts(connection: &Connection) -> rusqlite::Result<Counts> {
    let count = |query: &str| connection.query_row(query, [], |row| tables::count(row, 0));
    Ok(Counts {
        calls: count("SELECT count(*) FROM calls")?,
        failures: count(&format!("SELECT count(*) FROM calls WHERE {IS_FAILURE}"))?,
        annotations: count("SELECT count(*) FROM annotations")?,
        skipped: count("SELECT coalesce(sum(skipped), 0) FROM index_stamps")?,
    })
}

#[cfg(test)]
mod tests;
