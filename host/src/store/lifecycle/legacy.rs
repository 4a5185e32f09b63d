//! What mcpeval 0.8 knew of findings: earlier ones of that line kept it in `index.db`, which is derived anew and would lose
//! it. It is taken over once.

use std::path::Path;

use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::{State, has_table};
use crate::error::{Error, Result};
use crate::store::database::{self, broken};
use crate::store::hash::is_finding;
use crate::store::home::Home;
use crate::store::record::{is_label, moment};

/// The key of `evidence_metadata` that says that nothing is left to be taken over.
const MARK: &str = "legacy-imported";
/// Bytes of a text that is taken over.
const MAX_TEXT: usize = 256;

/// Takes over states and history that the index has, unless that was done before. What is known already stays as it is.
///
/// # Errors
/// Unfinished if the index says that it has them and they cannot be read, or the database does not take them.
pub(super) fn import(home: &Home, transaction: &Transaction<'_>, path: &Path) -> Result<()> {
    let failed = |error: rusqlite::Error| broken(path, &error);
    if is_done(transaction).map_err(failed)? {
        return Ok(());
    }
    let index = home.index_db();
    // An index that SQLite does not open has nothing that could be taken over.
    let Ok(Some(reading)) = database::open_to_read(&index) else { return Ok(()) };
    let old = &reading.connection;
    let has = |table| has_table(old, table).unwrap_or(false);
    let (has_states, has_history) = (has("finding_lifecycle"), has("probe_history"));
    if !has_states && !has_history {
        return Ok(());
    }
    let taken = || -> rusqlite::Result<()> {
        if has_states {
            states(old, transaction)?;
        }
        if has_history {
            history(old, transaction)?;
        }
        transaction.execute(
            "INSERT OR REPLACE INTO evidence_metadata (key, value) VALUES (?1, ?2)",
            (MARK, super::timestamp(jiff::Timestamp::now())),
        )?;
        Ok(())
    };
    taken().map_err(|error| {
        Error::unfinished(format!(
            "{}: it holds the states of findings, and they cannot be taken over: {error}; restore it from a copy, or move \
             it away to begin anew",
            index.display()
        ))
    })
}

fn is_done(transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
    let query = "SELECT 1 FROM evidence_metadata WHERE key = ?1";
    Ok(transaction.query_row(query, [MARK], |_| Ok(())).optional()?.is_some())
}

fn states(old: &Connection, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(
        "INSERT OR IGNORE INTO finding_lifecycle (finding_id, server, tool, err_code, err_template_id, probe_id, \
         definition_id, state, consecutive_passes, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    let mut statement = old.prepare("SELECT * FROM finding_lifecycle")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (Some(id), Some(server), Some(tool)) = (finding(row)?, label(row, "server")?, label(row, "tool")?) else {
            continue;
        };
        let word = text(row, "state")?.unwrap_or_default().replace('_', "-");
        // What is said in words of nobody is not said to be fixed.
        let (state, passes) = match State::of(&word) {
            Some(state) => (state, number(row, "consecutive_passes")?),
            None => (State::Open, 0),
        };
        insert.execute(params![
            id,
            server,
            tool,
            text(row, "err_code")?,
            text(row, "err_template_id")?,
            label(row, "probe_id")?,
            text(row, "definition_id")?,
            state.word(),
            passes,
            when(row, "updated_at")?,
        ])?;
    }
    Ok(())
}

fn history(old: &Connection, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(
        "INSERT OR IGNORE INTO probe_history (finding_id, probe_id, passed, definition_id, run_id, ts) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let mut statement = old.prepare("SELECT * FROM probe_history ORDER BY rowid")?;
    let mut rows = statement.query([])?;
    let mut place = 0_u64;
    while let Some(row) = rows.next()? {
        place += 1;
        let (Some(id), Some(probe)) = (finding(row)?, label(row, "probe_id")?) else { continue };
        let run = text(row, "run_id")?.unwrap_or_else(|| format!("legacy-{place}"));
        let passed = number(row, "passed")? != 0;
        insert.execute(params![id, probe, passed, text(row, "definition_id")?, run, when(row, "ts")?])?;
    }
    Ok(())
}

/// A column that may not exist.
fn column<T: FromSql>(row: &Row<'_>, name: &str) -> rusqlite::Result<Option<T>> {
    match row.get_ref(name) {
        Ok(ValueRef::Null) | Err(rusqlite::Error::InvalidColumnName(_)) => Ok(None),
        Ok(_) => row.get(name).map(Some),
        Err(error) => Err(error),
    }
}

fn text(row: &Row<'_>, name: &str) -> rusqlite::Result<Option<String>> {
    let is_short = |text: &String| text.len() <= MAX_TEXT && !text.chars().any(char::is_control);
    Ok(column(row, name)?.filter(is_short))
}

fn label(row: &Row<'_>, name: &str) -> rusqlite::Result<Option<String>> {
    Ok(text(row, name)?.filter(|text| is_label(text)))
}

fn finding(row: &Row<'_>) -> rusqlite::Result<Option<String>> {
    Ok(text(row, "finding_id")?.filter(|id| is_finding(id)))
}

fn number(row: &Row<'_>, name: &str) -> rusqlite::Result<u32> {
    Ok(column::<i64>(row, name)?.and_then(|number| u32::try_from(number).ok()).unwrap_or_default())
}

/// A moment; of what is none, the beginning of time, after which everything is.
fn when(row: &Row<'_>, name: &str) -> rusqlite::Result<String> {
    let told = text(row, name)?.filter(|ts| moment(ts).is_some());
    Ok(told.unwrap_or_else(|| super::timestamp(jiff::Timestamp::UNIX_EPOCH)))
}
