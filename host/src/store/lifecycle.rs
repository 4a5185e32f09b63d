//! The states of findings and the evidence for them, in `lifecycle.db`. Nothing else says what they were: the database is
//! derived from nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::database::{self, Reading, broken};
use super::home::Home;
use super::record::{moment, timestamp};
use crate::error::{Error, Result};

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

/// The version of the tables, in `user_version`; 0 are those that mcpeval 0.8 made.
const VERSION: i64 = 1;

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
PRAGMA user_version = 1;
";

/// The states of findings.
#[derive(Debug)]
pub struct Lifecycle {
    connection: Held,
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
    /// The case that verifies it, if one did.
    pub probe_id: Option<String>,
    /// Green verifications in a row.
    pub consecutive_passes: u32,
    /// When that changed: RFC 3339.
    pub updated_at: String,
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

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

impl Lifecycle {
    /// Opens the states of a prepared home for writing.
    ///
    /// # Errors
    /// Unfinished if they are of a newer version, or cannot be opened.
    pub fn to_write(home: &Home) -> Result<Self> {
        let path = home.lifecycle_db();
        let connection = database::open_to_write(home, &path)?;
        let lifecycle = Self { connection: Held::ToWrite(connection), path };
        lifecycle.check()?;
        let full = "PRAGMA synchronous = FULL;";
        lifecycle.connection().execute_batch(&[full, TABLES].concat()).map_err(|error| lifecycle.failed(&error))?;
        Ok(lifecycle)
    }

    /// Opens the states of a home for reading; none if there are none.
    ///
    /// # Errors
    /// Unfinished if they are of a newer version, or cannot be opened.
    pub fn to_read(home: &Home) -> Result<Option<Self>> {
        let path = home.lifecycle_db();
        let Some(reading) = database::open_to_read(&path)? else { return Ok(None) };
        let lifecycle = Self { connection: Held::ToRead(reading), path };
        lifecycle.check()?;
        Ok(Some(lifecycle))
    }

    fn connection(&self) -> &Connection {
        match &self.connection {
            Held::ToWrite(connection) => connection,
            Held::ToRead(reading) => &reading.connection,
        }
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        broken(&self.path, error)
    }

    fn check(&self) -> Result<()> {
        let version = database::version(self.connection()).map_err(|error| self.failed(&error))?;
        if version > VERSION {
            return Err(Error::unfinished(format!(
                "{}: it is of version {version}, and this mcpeval knows {VERSION}; use the mcpeval that wrote it",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Opens new findings, and reopens closed ones that failed after they were closed.
    ///
    /// # Errors
    /// Unfinished if the database does not take it.
    pub fn register(&mut self, found: &[Found], now: Timestamp) -> Result<()> {
        let path = self.path.clone();
        let Held::ToWrite(connection) = &mut self.connection else {
            return Err(Error::unfinished(format!("{}: it was opened to be read", path.display())));
        };
        let mut register = || -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            for one in found {
                let query = "SELECT state, updated_at FROM finding_lifecycle WHERE finding_id = ?1";
                let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
                let standing = transaction.query_row(query, [&one.finding_id], row).optional()?;
                match standing {
                    None => {
                        let query =
                            "INSERT INTO finding_lifecycle VALUES (?1, ?2, ?3, ?4, ?5, NULL, NULL, 'open', 0, ?6)";
                        let values = params![
                            one.finding_id,
                            one.server,
                            one.tool,
                            one.err_code,
                            one.err_template_id,
                            timestamp(now)
                        ];
                        transaction.execute(query, values)?;
                    }
                    Some((state, at)) if state == "closed" && moment(&at).is_none_or(|at| one.newest_failure > at) => {
                        let query = "UPDATE finding_lifecycle SET state = 'open', consecutive_passes = 0, updated_at = ?2 \
                                     WHERE finding_id = ?1";
                        transaction.execute(query, (&one.finding_id, timestamp(now)))?;
                    }
                    Some(_) => {}
                }
            }
            transaction.commit()
        };
        register().map_err(|error| broken(&path, &error))
    }

    /// Where every finding stands, by its id.
    ///
    /// # Errors
    /// Unfinished if the database cannot be read.
    pub fn standing(&self) -> Result<BTreeMap<String, Standing>> {
        let read = || -> rusqlite::Result<BTreeMap<String, Standing>> {
            let query = "SELECT finding_id, state, probe_id, consecutive_passes, updated_at FROM finding_lifecycle";
            let mut statement = self.connection().prepare(query)?;
            let rows = statement.query_map([], |row| {
                let state = State::of(row.get_ref(1)?.as_str()?).unwrap_or(State::Open);
                let standing =
                    Standing { state, probe_id: row.get(2)?, consecutive_passes: row.get(3)?, updated_at: row.get(4)? };
                Ok((row.get(0)?, standing))
            })?;
            rows.collect()
        };
        read().map_err(|error| self.failed(&error))
    }
}
