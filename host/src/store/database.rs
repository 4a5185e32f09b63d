//! Opening SQLite files: for a writer with the permissions of the home, for a reader without changing anything.
//!
//! Databases keep a rollback journal. A write-ahead log would make every reader create files beside the database; and
//! writers here are few, one at a time, and commit once.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::home::{Home, fault};
use crate::error::{Error, Result};

/// Wait for another connection.
const BUSY: Duration = Duration::from_secs(5);
/// The largest database a reader copies when a killed writer left it to be rolled back.
const MAX_COPY: u64 = 4 << 30;

/// A database as a reader has it.
#[derive(Debug)]
pub struct Reading {
    /// The connection.
    pub connection: Connection,
    /// Where the copy is that it reads, if it reads one.
    _copy: Option<tempfile::TempDir>,
}

/// Opens a database for writing, created for its owner alone if it is missing. The home must be prepared.
///
/// # Errors
/// Unfinished if it cannot be opened.
pub fn open_to_write(home: &Home, path: &Path) -> Result<Connection> {
    drop(home.open_file(path)?);
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // What was deleted is overwritten; what is temporary stays in memory, so that it lies nowhere else.
    connection
        .execute_batch("PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = ON;")
        .map_err(|error| broken(path, &error))?;
    Ok(connection)
}

/// Opens a database for reading; none if there is none. Nothing is created or changed, not even what a killed writer left
/// to be rolled back: that is done on a copy.
///
/// # Errors
/// Unfinished if it cannot be opened.
pub fn open_to_read(path: &Path) -> Result<Option<Reading>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(path, &error)),
        Ok(found) if !found.is_file() => {
            return Err(Error::unfinished(format!("{}: this is no regular file", path.display())));
        }
        Ok(_) => {}
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    match connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())) {
        Err(error) if needs_rollback(&error) => {
            let copy = copied(path)?;
            let name = path.file_name().unwrap_or_default();
            let connection = connect(&copy.path().join(name), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            Ok(Some(Reading { connection, _copy: Some(copy) }))
        }
        Err(error) => Err(broken(path, &error)),
        Ok(()) => Ok(Some(Reading { connection, _copy: None })),
    }
}

/// What a fault of SQLite tells.
pub fn broken(path: &Path, error: &rusqlite::Error) -> Error {
    Error::unfinished(format!("{}: {error}", path.display()))
}

/// Whether the file is no database, or one that is damaged.
pub fn is_corrupt(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase))
}

/// The version that a database says it has.
///
/// # Errors
/// Whatever SQLite says.
pub fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    // SQLite takes a link in any folder of the path for one in its last place.
    let whole = fs::canonicalize(path).map_err(|error| fault(path, &error))?;
    let connection = Connection::open_with_flags(whole, flags).map_err(|error| broken(path, &error))?;
    connection.busy_timeout(BUSY).map_err(|error| broken(path, &error))?;
    Ok(connection)
}

fn needs_rollback(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| {
        error.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK
            || error.extended_code == rusqlite::ffi::SQLITE_READONLY_RECOVERY
            || error.extended_code == rusqlite::ffi::SQLITE_READONLY_CANTINIT
            || error.code == rusqlite::ErrorCode::CannotOpen
    })
}

fn copied(path: &Path) -> Result<tempfile::TempDir> {
    let failed = |error: std::io::Error| fault(path, &error);
    let length = fs::metadata(path).map_err(failed)?.len();
    if length > MAX_COPY {
        return Err(Error::unfinished(format!(
            "{}: a writer was killed over it; run mcpeval index to repair it",
            path.display()
        )));
    }
    let folder = tempfile::Builder::new().prefix("mcpeval-").tempdir().map_err(failed)?;
    for suffix in ["", "-journal", "-wal"] {
        let mut from = path.as_os_str().to_owned();
        from.push(suffix);
        let from = Path::new(&from);
        let to = folder.path().join(from.file_name().unwrap_or_default());
        match fs::copy(from, to) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !suffix.is_empty() => {}
            Err(error) => return Err(failed(error)),
            Ok(_) => {}
        }
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_reader_creates_nothing_and_reads_past_a_killed_writer() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        let path = home.index_db();
        assert!(open_to_read(&path).unwrap().is_none() && !home.root().exists());
        home.prepare().unwrap();
        let mut writer = open_to_write(&home, &path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        writer.execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (1);").unwrap();

        // The state a writer leaves that is killed in the middle: pages of the database changed, their old selves in the
        // rollback journal.
        let transaction = writer.transaction().unwrap();
        transaction.execute_batch("PRAGMA cache_size = 2; PRAGMA cache_spill = 1;").unwrap();
        transaction
            .execute_batch(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO t SELECT hex(randomblob(50)) FROM n;",
            )
            .unwrap();
        let left = Home::at(folder.path().join("left"));
        left.prepare().unwrap();
        let journal = |path: &Path| path.with_file_name("index.db-journal");
        fs::copy(&path, left.index_db()).unwrap();
        fs::copy(journal(&path), journal(&left.index_db())).unwrap();
        drop(transaction);

        let before = fs::read(left.index_db()).unwrap();
        assert!(before.len() > 1 << 20, "the writer had begun to write");
        let reading = open_to_read(&left.index_db()).unwrap().unwrap();
        let count: u32 = reading.connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 1);
        assert!(fs::read(left.index_db()).unwrap() == before && journal(&left.index_db()).exists());
    }

    #[test]
    fn what_is_no_database_is_told_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        home.prepare().unwrap();
        fs::write(home.index_db(), "no database at all, but long enough to be looked at".repeat(99)).unwrap();
        let error = open_to_read(&home.index_db()).unwrap_err();
        assert!(error.to_string().contains("not a database") && error.exit_code() == 3, "{error}");
        std::os::unix::fs::symlink(home.index_db(), home.trends_db()).unwrap();
        assert!(open_to_read(&home.trends_db()).is_err() && open_to_write(&home, &home.trends_db()).is_err());
    }
}
