//! The states of findings and the evidence for them, in `lifecycle.db`. Nothing else says what they were: the database is
//! derived from nothing, so that it is written with full synchronisation and never made anew.

mod legacy;
mod transition;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use super::database::{self, Reading, broken};
use super::home::Home;
use super::record::{moment, timestamp};
use crate::error::{Error, Result};

pub use transition::{GREEN_CHECKS, after};

/// Where a finding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not fixed yet.
    Open,
    /// A fix was tried, the last check was red.
    FixClaimed,
    /// Some green checks, fewer than three in a row.
    Verifying,
    /// Three green checks in a row.
    Closed,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Open, Self::FixClaimed, Self::Verifying, Self::Closed];

    /// The word in files and on command lines.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::FixClaimed => "fix-claimed",
            Self::Verifying => "verifying",
            Self::Closed => "closed",
        }
    }

    /// The state of that word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// The version of the tables, in `user_version`. Those of version 0 are the same, by mcpeval 0.8.
const VERSION: i64 = 1;

/// Whatever of it is missing is made. History is only added to: a line of it that could change would prove nothing.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS finding_lifecycle (
  finding_id TEXT PRIMARY KEY, server TEXT NOT NULL, tool TEXT NOT NULL, err_code TEXT, err_template_id TEXT, probe_id TEXT,
  definition_id TEXT, state TEXT NOT NULL, consecutive_passes INTEGER NOT NULL, updated_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS probe_history (
  id INTEGER PRIMARY KEY, finding_id TEXT NOT NULL, probe_id TEXT NOT NULL, passed INTEGER NOT NULL, definition_id TEXT,
  run_id TEXT NOT NULL UNIQUE, ts TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS evidence_metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS probe_history_finding ON probe_history (finding_id);
CREATE TRIGGER IF NOT EXISTS probe_history_keeps BEFORE UPDATE ON probe_history
  BEGIN SELECT RAISE(ABORT, 'the history of verifications is only added to'); END;
CREATE TRIGGER IF NOT EXISTS probe_history_stays BEFORE DELETE ON probe_history
  BEGIN SELECT RAISE(ABORT, 'the history of verifications is only added to'); END;
";

/// The states of findings.
#[derive(Debug)]
pub struct Lifecycle {
    held: Held,
    path: PathBuf,
}

#[derive(Debug)]
enum Held {
    ToWrite(Connection),
    ToRead(Reading),
}

/// A finding that a promotion found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// `finding-` and 16 hex digits.
    pub finding_id: String,
    /// The server's label.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Its most frequent error code.
    pub err_code: String,
    /// The id of the error text's skeleton, or what stands for it.
    pub err_template_id: String,
    /// When it failed last.
    pub newest_failure: Timestamp,
}

/// Where a finding stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: State,
    /// The case that verified it last, if one did.
    pub probe_id: Option<String>,
    /// What that case was run on and by.
    pub definition_id: Option<String>,
    /// Green verifications in a row.
    pub consecutive_passes: u32,
    /// When that changed: RFC 3339.
    pub updated_at: String,
}

/// One verification that came to a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification<'a> {
    /// The finding, as it is opened if nothing is known of it.
    pub found: &'a Found,
    /// The case.
    pub probe_id: &'a str,
    /// What it was run on and by.
    pub definition_id: &'a str,
    /// Whether it passed.
    pub passed: bool,
    /// The run; no two have the same.
    pub run_id: &'a str,
    /// When it ended.
    pub at: Timestamp,
}

impl Lifecycle {
    /// Opens the states of a prepared home for writing. Those that mcpeval 0.8 kept in its index are taken over first, once.
    ///
    /// # Errors
    /// Unfinished if they are of a newer version, which is left as it is, or cannot be opened.
    pub fn to_write(home: &Home) -> Result<Self> {
        // What is newer is not even tightened.
        drop(Self::to_read(home)?);
        let path = home.lifecycle_db();
        let mut connection = database::open_to_write(home, &path)?;
        let failed = |error: rusqlite::Error| broken(&path, &error);
        // Extra is full, and makes sure of the end of a transaction too.
        connection.execute_batch("PRAGMA synchronous = EXTRA;").map_err(failed)?;
        let transaction = begin(&mut connection).map_err(failed)?;
        make(&transaction).map_err(failed)?;
        legacy::import(home, &transaction, &path)?;
        transaction.commit().map_err(failed)?;
        Ok(Self { held: Held::ToWrite(connection), path })
    }

    /// Opens the states of a home for reading; none if there are none.
    ///
    /// # Errors
    /// Unfinished if they are of a newer version, or cannot be opened.
    pub fn to_read(home: &Home) -> Result<Option<Self>> {
        let path = home.lifecycle_db();
        let Some(reading) = database::open_to_read(&path)? else { return Ok(None) };
        let version = database::version(&reading.connection).map_err(|error| broken(&path, &error))?;
        if !(0..=VERSION).contains(&version) {
            return Err(Error::unfinished(format!(
                "{}: it is of version {version}, and this mcpeval knows {VERSION}; use the mcpeval that wrote it",
                path.display()
            )));
        }
        Ok(Some(Self { held: Held::ToRead(reading), path }))
    }

    fn connection(&self) -> &Connection {
        match &self.held {
            Held::ToWrite(connection) => connection,
            Held::ToRead(reading) => &reading.connection,
        }
    }

    /// Does something in one transaction, which nobody else's comes between.
    fn change<T>(&mut self, change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        let path = &self.path;
        let Held::ToWrite(connection) = &mut self.held else {
            return Err(Error::unfinished(format!("{}: it was opened to be read", path.display())));
        };
        let done = begin(connection).and_then(|transaction| {
            let done = change(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        done.map_err(|error| broken(path, &error))
    }

    /// Opens new findings, and reopens closed ones that failed after they were closed.
    ///
    /// # Errors
    /// Unfinished if the database does not take it; nothing has changed then.
    pub fn register(&mut self, found: &[Found], now: Timestamp) -> Result<()> {
        self.change(|transaction| {
            for one in found {
                let Some(standing) = standing(transaction, &one.finding_id)? else {
                    open(transaction, one, now)?;
                    continue;
                };
                if standing.state == State::Closed && fails_since(transaction, one, &standing)? {
                    let query = "UPDATE finding_lifecycle SET state = ?2, consecutive_passes = 0, updated_at = ?3 \
                                 WHERE finding_id = ?1";
                    transaction.execute(query, (&one.finding_id, State::Open.word(), timestamp(now)))?;
                }
            }
            Ok(())
        })
    }

    /// Adds a verification to the history and changes the state by it, both or neither. Gives where the finding stood and
    /// where it stands.
    ///
    /// # Errors
    /// Unfinished if the database does not take it, as for a run that is in the history; nothing has changed then.
    pub fn record(&mut self, done: &Verification<'_>) -> Result<(Standing, Standing)> {
        let id = done.found.finding_id.as_str();
        self.change(|transaction| {
            let before = match standing(transaction, id)? {
                Some(standing) => standing,
                None => open(transaction, done.found, done.at)?,
            };
            let is_same = before.probe_id.as_deref() == Some(done.probe_id)
                && before.definition_id.as_deref() == Some(done.definition_id);
            let (state, passes) = after(before.state, before.consecutive_passes, done.passed, is_same);
            let ts = timestamp(done.at);
            transaction.execute(
                "INSERT INTO probe_history (finding_id, probe_id, passed, definition_id, run_id, ts) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![id, done.probe_id, done.passed, done.definition_id, done.run_id, ts],
            )?;
            transaction.execute(
                "UPDATE finding_lifecycle SET state = ?2, consecutive_passes = ?3, probe_id = ?4, definition_id = ?5, \
                 updated_at = ?6 WHERE finding_id = ?1",
                params![id, state.word(), passes, done.probe_id, done.definition_id, ts],
            )?;
            let after = Standing {
                state,
                probe_id: Some(done.probe_id.to_owned()),
                definition_id: Some(done.definition_id.to_owned()),
                consecutive_passes: passes,
                updated_at: ts,
            };
            Ok((before, after))
        })
    }

    /// Where every finding stands, by its id.
    ///
    /// # Errors
    /// Unfinished if the database cannot be read.
    pub fn standing(&self) -> Result<BTreeMap<String, Standing>> {
        let read = || -> rusqlite::Result<BTreeMap<String, Standing>> {
            let connection = self.connection();
            // Nothing stands there yet if whoever made the file was killed over it.
            if !has_table(connection, "finding_lifecycle")? {
                return Ok(BTreeMap::new());
            }
            let query = format!("SELECT {COLUMNS}, finding_id FROM finding_lifecycle");
            let mut statement = connection.prepare(&query)?;
            let rows = statement.query_map([], |row| Ok((row.get(5)?, of_row(row)?)))?;
            rows.collect()
        };
        read().map_err(|error| broken(&self.path, &error))
    }
}

fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    // Of two that read before they write, one would be refused instead of waiting.
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Makes the tables that are missing. A database that has some keeps its version, a new one gets ours.
fn make(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let is_new = !has_table(transaction, "finding_lifecycle")?;
    transaction.execute_batch(TABLES)?;
    if is_new {
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(())
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let query = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";
    connection.query_row(query, [name], |row| row.get(0))
}

const COLUMNS: &str = "state, probe_id, definition_id, consecutive_passes, updated_at";

fn of_row(row: &Row<'_>) -> rusqlite::Result<Standing> {
    let unknown = || {
        let why = "a finding has a state that this mcpeval does not know; use the mcpeval that wrote it";
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, why.into())
    };
    Ok(Standing {
        state: State::of(row.get_ref(0)?.as_str()?).ok_or_else(unknown)?,
        probe_id: row.get(1)?,
        definition_id: row.get(2)?,
        consecutive_passes: row.get(3)?,
        updated_at: row.get(4)?,
    })
}

fn standing(connection: &Connection, finding_id: &str) -> rusqlite::Result<Option<Standing>> {
    let query = format!("SELECT {COLUMNS} FROM finding_lifecycle WHERE finding_id = ?1");
    connection.query_row(&query, [finding_id], of_row).optional()
}

fn open(transaction: &Transaction<'_>, found: &Found, now: Timestamp) -> rusqlite::Result<Standing> {
    let standing = Standing {
        state: State::Open,
        probe_id: None,
        definition_id: None,
        consecutive_passes: 0,
        updated_at: timestamp(now),
    };
    transaction.execute(
        "INSERT INTO finding_lifecycle (finding_id, server, tool, err_code, err_template_id, state, consecutive_passes, \
         updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)",
        params![
            found.finding_id,
            found.server,
            found.tool,
            found.err_code,
            found.err_template_id,
            standing.state.word(),
            standing.updated_at,
        ],
    )?;
    Ok(standing)
}

/// Whether a closed finding failed after it was closed: after the last of the green checks that closed it, not after
/// those that came later.
fn fails_since(connection: &Connection, found: &Found, closed: &Standing) -> rusqlite::Result<bool> {
    let later = closed.consecutive_passes.saturating_sub(GREEN_CHECKS);
    let query = "SELECT ts FROM probe_history WHERE finding_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2";
    let closing: Option<String> =
        connection.query_row(query, (&found.finding_id, later), |row| row.get(0)).optional()?;
    let closing = closing.as_deref().and_then(moment).or_else(|| moment(&closed.updated_at));
    Ok(closing.is_none_or(|closing| found.newest_failure > closing))
}

#[cfg(test)]
mod tests;
