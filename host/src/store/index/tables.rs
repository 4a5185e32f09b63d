//! The tables of `index.db`, and whether a database has them.

use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};

use crate::store::database;
use crate::store::hash::hex;

/// The version of these tables, in `user_version`. A database of any other is derived anew.
pub(super) const VERSION: i64 = 10;

/// What makes a row of `calls` a failure. Error codes of tool calls are stored for failures alone.
pub(super) const IS_FAILURE: &str = "method = 'tools/call' AND err_code IS NOT NULL";

/// Tables, and the indices that a load needs to tell what it has seen.
const TABLES: &str = "
CREATE TABLE calls (
  id INTEGER PRIMARY KEY, capture_id TEXT, event_id TEXT, ts TEXT NOT NULL, session TEXT NOT NULL, seq INTEGER NOT NULL,
  server TEXT NOT NULL, method TEXT NOT NULL, tool TEXT, latency_ms INTEGER NOT NULL, outcome TEXT NOT NULL,
  err_code TEXT, err_template TEXT, err_template_id TEXT, err_retryable INTEGER, args TEXT, kind TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX calls_place ON calls (capture_id, seq);
CREATE TABLE windows (
  failure_id INTEGER NOT NULL, neighbour_id INTEGER NOT NULL, offset INTEGER NOT NULL, PRIMARY KEY (failure_id, offset)
) STRICT, WITHOUT ROWID;
CREATE TABLE annotations (
  call_id INTEGER, event_id TEXT, session TEXT, seq INTEGER, ts TEXT NOT NULL, kind TEXT NOT NULL, note TEXT NOT NULL
) STRICT;
CREATE TABLE index_sources (path TEXT PRIMARY KEY, offset INTEGER NOT NULL, digest BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE index_stamps (path TEXT PRIMARY KEY, stamp TEXT, lines INTEGER NOT NULL, skipped INTEGER NOT NULL)
  STRICT, WITHOUT ROWID;
CREATE TABLE index_events (event BLOB PRIMARY KEY, digest BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE index_captures (capture TEXT PRIMARY KEY, session TEXT NOT NULL, server TEXT NOT NULL)
  STRICT, WITHOUT ROWID;
CREATE TABLE index_checkpoint (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1), version INTEGER NOT NULL, schema_digest TEXT NOT NULL,
  replayed_events INTEGER NOT NULL
) STRICT;
CREATE TABLE issues (
  id INTEGER PRIMARY KEY, finding_id TEXT NOT NULL UNIQUE, server TEXT NOT NULL, tool TEXT NOT NULL,
  err_code TEXT NOT NULL, err_codes TEXT NOT NULL, err_template_id TEXT NOT NULL, class TEXT NOT NULL,
  failures INTEGER NOT NULL, calls INTEGER NOT NULL, sessions INTEGER NOT NULL, last_seen TEXT NOT NULL,
  cost REAL NOT NULL, blast INTEGER NOT NULL, rate REAL NOT NULL, confidence REAL NOT NULL, recency REAL NOT NULL,
  score REAL NOT NULL, threshold REAL NOT NULL, severity TEXT NOT NULL, args TEXT, retryable INTEGER
) STRICT;
CREATE TABLE findings (issue_id INTEGER PRIMARY KEY, finding_id TEXT NOT NULL UNIQUE) STRICT;
";

/// Indices that are made faster at once than row by row.
const INDICES: &str = "
CREATE UNIQUE INDEX calls_event ON calls (event_id);
CREATE INDEX calls_seq ON calls (seq);
CREATE INDEX calls_failure ON calls (server, tool, err_template_id)
  WHERE method = 'tools/call' AND err_code IS NOT NULL;
CREATE INDEX calls_unidentified ON calls (session, server, seq) WHERE capture_id IS NULL;
CREATE INDEX annotations_call ON annotations (call_id);
";

/// How much of an index a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completeness {
    /// One of this version, whole.
    Whole,
    /// Empty, of another version, or of a writer that never came to its end.
    Other,
}

/// What a database is, as far as its own word goes.
///
/// # Errors
/// Whatever SQLite says, for a damaged file above all.
pub(super) fn completeness(connection: &Connection) -> rusqlite::Result<Completeness> {
    if database::version(connection)? != VERSION || !has_table(connection, "index_checkpoint")? {
        return Ok(Completeness::Other);
    }
    let query = "SELECT version = ?1 AND schema_digest = ?2 FROM index_checkpoint WHERE singleton = 1";
    let is_ours: Option<bool> = connection.query_row(query, (VERSION, schema_digest()), |row| row.get(0)).optional()?;
    Ok(if is_ours == Some(true) { Completeness::Whole } else { Completeness::Other })
}

/// A count as SQLite has it; those beyond its range are its largest.
pub(super) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A column that counts. What is below 0 counts nothing.
///
/// # Errors
/// Whatever SQLite says.
pub(super) fn count(row: &rusqlite::Row<'_>, column: impl rusqlite::RowIndex) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or_default())
}

/// Whether a database has a table of that name.
///
/// # Errors
/// Whatever SQLite says.
pub(super) fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let query = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";
    connection.query_row(query, [name], |row| row.get(0))
}

/// Makes the tables in an empty database.
///
/// # Errors
/// Whatever SQLite says.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)
}

/// Makes the indices once the rows are there, and says that the index is whole.
///
/// # Errors
/// Whatever SQLite says.
pub(super) fn complete(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(INDICES)?;
    connection.execute("INSERT INTO index_checkpoint VALUES (1, ?1, ?2, 0)", (VERSION, schema_digest()))?;
    connection.pragma_update(None, "user_version", VERSION)
}

fn schema_digest() -> String {
    hex(&Sha256::digest([TABLES, INDICES].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_index_of_this_version_is_one() {
        let connection = Connection::open_in_memory().unwrap();
        let is = |expected| assert_eq!(completeness(&connection).unwrap(), expected);
        is(Completeness::Other);
        create(&connection).unwrap();
        is(Completeness::Other);
        complete(&connection).unwrap();
        is(Completeness::Whole);
        connection.execute("UPDATE index_checkpoint SET schema_digest = 'other'", []).unwrap();
        is(Completeness::Other);
        connection.execute("UPDATE index_checkpoint SET schema_digest = ?1", [schema_digest()]).unwrap();
        connection.pragma_update(None, "user_version", VERSION + 1).unwrap();
        is(Completeness::Other);
    }

    #[test]
    fn the_index_of_failures_is_of_what_counts_as_one() {
        assert!(INDICES.contains(&format!("WHERE {IS_FAILURE};")));
        let connection = Connection::open_in_memory().unwrap();
        create(&connection).unwrap();
        complete(&connection).unwrap();
        let query = format!("EXPLAIN QUERY PLAN SELECT count(*) FROM calls WHERE {IS_FAILURE}");
        let plan: String = connection.query_row(&query, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("calls_failure"), "{plan}");
    }
}
