//! What `promote` reads of the index and writes into it, and what others read of that.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Statement, Transaction, params, params_from_iter};

use super::tables::{IS_FAILURE, count, int};
use super::{check, open, unfit, unfit_by, windows};
use crate::error::{Error, Result};
use crate::store::database;
use crate::store::home::{Home, Lock};

/// The index, held against others who derive from the journals.
#[derive(Debug)]
pub struct Evidence {
    connection: Connection,
    path: PathBuf,
    _lock: Lock,
}

/// Issues and findings being replaced. Dropped before [`Rewriting::commit`], nothing has changed.
#[derive(Debug)]
pub struct Rewriting<'a> {
    transaction: Transaction<'a>,
    path: PathBuf,
}

/// One call that counts against a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The server's label.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The id of its error's text, or what stands for it; none if it did not fail.
    pub template_id: Option<String>,
    /// Its error's code; none if it did not fail.
    pub code: Option<String>,
    /// Whether its error says that trying again may help.
    pub retryable: Option<bool>,
    /// The session's token.
    pub session: String,
    /// When: RFC 3339.
    pub ts: String,
    /// The shape of its arguments, as JSON.
    pub args: Option<String>,
    /// Somebody noted that the direct call should have worked.
    pub is_blocked: bool,
    /// The records around it.
    pub neighbours: Vec<Neighbour>,
}

/// A record around a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// The tool, if it is a call of one.
    pub tool: Option<String>,
    /// Whether it ended with a result.
    pub is_ok: bool,
    /// Whether it is of real traffic.
    pub is_real: bool,
    /// Whether it came after the call.
    pub is_later: bool,
}

/// A row of `issues`. The words of classes and severities are those of whoever writes.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the columns of section 6 of the specification, each named in findings::Finding")]
pub struct Issue {
    pub finding_id: String,
    pub server: String,
    pub tool: String,
    pub err_code: String,
    pub err_codes: Vec<String>,
    pub err_template_id: String,
    pub class: String,
    pub failures: u64,
    pub calls: u64,
    pub sessions: u64,
    pub last_seen: String,
    pub cost: f64,
    pub blast: u64,
    pub rate: f64,
    pub confidence: f64,
    pub recency: f64,
    pub score: f64,
    pub threshold: f64,
    pub severity: String,
    pub args: Option<String>,
    pub retryable: Option<bool>,
}

/// Calls per tool, per server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls(HashMap<String, HashMap<String, u64>>);

impl Calls {
    /// Real calls of a tool.
    pub fn of(&self, server: &str, tool: &str) -> u64 {
        self.0.get(server).and_then(|tools| tools.get(tool)).copied().unwrap_or_default()
    }

    fn add(&mut self, server: &str, tool: &str) {
        match self.0.get_mut(server) {
            Some(tools) => match tools.get_mut(tool) {
                Some(count) => *count += 1,
                None => _ = tools.insert(tool.to_owned(), 1),
            },
            None => _ = self.0.insert(server.to_owned(), HashMap::from([(tool.to_owned(), 1)])),
        }
    }
}

impl Evidence {
    /// Takes the index of a home. A home without one is not touched.
    ///
    /// # Errors
    /// Unfinished, naming the command to run, if there is no index, it is not fit, or somebody else holds it for too
    /// long.
    pub fn take(home: &Home) -> Result<Self> {
        let path = home.index_db();
        if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Err(Error::unfinished(format!(
                "{}: there is no index yet; run mcpeval index first",
                path.display()
            )));
        }
        home.prepare()?;
        let lock = home.lock_index()?;
        let connection = database::open_to_write(home, &path).map_err(|error| unfit_by(&path, error))?;
        check(&connection, &path)?;
        connection.execute_batch("PRAGMA cache_size = -16384;").map_err(|error| unfit(&path, &error))?;
        Ok(Self { connection, path, _lock: lock })
    }

    /// Begins to replace issues and findings: there are none now.
    ///
    /// # Errors
    /// Unfinished if the database does not allow it.
    pub fn rewrite(&mut self) -> Result<Rewriting<'_>> {
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| unfit(&path, &error);
        let behavior = rusqlite::TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(failed)?;
        transaction.execute_batch("DELETE FROM findings; DELETE FROM issues;").map_err(failed)?;
        Ok(Rewriting { transaction, path })
    }
}

const COLUMNS: &str = "c.id, c.server, c.tool, c.err_template_id, c.err_code, c.err_retryable, c.session, c.ts, \
    c.args, EXISTS (SELECT 1 FROM annotations b WHERE b.call_id = c.id AND b.kind = 'blocked-optimal-path')";
const IS_FALSE_SUCCESS: &str =
    "EXISTS (SELECT 1 FROM annotations a WHERE a.call_id = c.id AND a.kind = 'false-success')";

impl Rewriting<'_> {
    /// Counts the real calls of every tool.
    ///
    /// # Errors
    /// Unfinished if the database cannot be read.
    pub fn calls(&self) -> Result<Calls> {
        let count = || -> rusqlite::Result<Calls> {
            let query =
                "SELECT server, tool FROM calls WHERE method = 'tools/call' AND kind = 'real' AND tool IS NOT NULL";
            let mut statement = self.transaction.prepare(query)?;
            let (mut rows, mut calls) = (statement.query([])?, Calls::default());
            while let Some(row) = rows.next()? {
                calls.add(row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
            }
            Ok(calls)
        };
        count().map_err(|error| unfit(&self.path, &error))
    }

    /// Shows every real failure that nobody called a false success; those of one server, tool and template follow one
    /// another.
    ///
    /// # Errors
    /// Unfinished if the database cannot be read, and whatever `visit` gives.
    pub fn failures(&self, visit: impl FnMut(Member) -> Result<()>) -> Result<()> {
        let failed = IS_FAILURE;
        let query = format!(
            "SELECT {COLUMNS} FROM calls c WHERE {failed} AND c.kind = 'real' AND NOT {IS_FALSE_SUCCESS} \
             ORDER BY c.server, c.tool, c.err_template_id"
        );
        self.members(&query, windows::OF_FAILURE, visit)
    }

    /// Shows every real call that somebody called a false success; those of one server and tool follow one another.
    ///
    /// # Errors
    /// As [`Rewriting::failures`].
    pub fn false_successes(&self, visit: impl FnMut(Member) -> Result<()>) -> Result<()> {
        let query = format!(
            "SELECT {COLUMNS} FROM calls c WHERE c.method = 'tools/call' AND c.kind = 'real' \
             AND c.id IN (SELECT call_id FROM annotations WHERE kind = 'false-success') ORDER BY c.server, c.tool"
        );
        self.members(&query, &windows::of_call(), visit)
    }

    fn members(&self, query: &str, around: &str, mut visit: impl FnMut(Member) -> Result<()>) -> Result<()> {
        let failed = |error: rusqlite::Error| unfit(&self.path, &error);
        let mut statement = self.transaction.prepare(query).map_err(failed)?;
        let mut around = self.transaction.prepare(around).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            visit(member(row, &mut around).map_err(failed)?)?;
        }
        Ok(())
    }

    /// Adds an issue, and a finding if it is one.
    ///
    /// # Errors
    /// Unfinished if the database does not take it.
    pub fn add(&self, issue: &Issue, is_finding: bool) -> Result<()> {
        let insert = || -> rusqlite::Result<()> {
            let query = "INSERT INTO issues VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, \
                         ?15, ?16, ?17, ?18, ?19, ?20, ?21)";
            self.transaction.prepare_cached(query)?.execute(params![
                issue.finding_id,
                issue.server,
                issue.tool,
                issue.err_code,
                serde_json::Value::from(issue.err_codes.clone()).to_string(),
                issue.err_template_id,
                issue.class,
                int(issue.failures),
                int(issue.calls),
                int(issue.sessions),
                issue.last_seen,
                issue.cost,
                int(issue.blast),
                issue.rate,
                issue.confidence,
                issue.recency,
                issue.score,
                issue.threshold,
                issue.severity,
                issue.args,
                issue.retryable,
            ])?;
            if is_finding {
                let id = self.transaction.last_insert_rowid();
                let query = "INSERT INTO findings VALUES (?1, ?2)";
                self.transaction.prepare_cached(query)?.execute((id, &issue.finding_id))?;
            }
            Ok(())
        };
        insert().map_err(|error| unfit(&self.path, &error))
    }

    /// Makes it so.
    ///
    /// # Errors
    /// Unfinished if the database does not allow it.
    pub fn commit(self) -> Result<()> {
        self.transaction.commit().map_err(|error| unfit(&self.path, &error))
    }
}

fn member(row: &Row<'_>, around: &mut Statement<'_>) -> rusqlite::Result<Member> {
    let id: i64 = row.get(0)?;
    let neighbours = around.query_map([id], |row| {
        Ok(Neighbour {
            tool: row.get(0)?,
            is_ok: row.get_ref(1)?.as_str()? == "ok",
            is_real: row.get_ref(2)?.as_str()? == "real",
            is_later: row.get::<_, i64>(3)? > 0,
        })
    })?;
    Ok(Member {
        server: row.get(1)?,
        tool: row.get(2)?,
        template_id: row.get(3)?,
        code: row.get(4)?,
        retryable: row.get(5)?,
        session: row.get(6)?,
        ts: row.get(7)?,
        args: row.get(8)?,
        is_blocked: row.get(9)?,
        neighbours: neighbours.collect::<Result<_, _>>()?,
    })
}

/// The issues that are findings, best score first; none if there is no index.
///
/// # Errors
/// Unfinished, naming the command to run, if the index is not fit.
pub fn issues(home: &Home) -> Result<Vec<Issue>> {
    let Some(reading) = open(home)? else { return Ok(Vec::new()) };
    let read = || -> rusqlite::Result<Vec<Issue>> {
        let query = "SELECT i.* FROM issues i JOIN findings f ON f.issue_id = i.id ORDER BY i.score DESC, i.finding_id";
        let mut statement = reading.connection.prepare(query)?;
        statement.query_map([], issue)?.collect()
    };
    read().map_err(|error| unfit(&home.index_db(), &error))
}

fn issue(row: &Row<'_>) -> rusqlite::Result<Issue> {
    let codes: String = row.get("err_codes")?;
    let codes = serde_json::from_str(&codes)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(5, rusqlite::types::Type::Text, error.into()))?;
    Ok(Issue {
        finding_id: row.get("finding_id")?,
        server: row.get("server")?,
        tool: row.get("tool")?,
        err_code: row.get("err_code")?,
        err_codes: codes,
        err_template_id: row.get("err_template_id")?,
        class: row.get("class")?,
        failures: count(row, "failures")?,
        calls: count(row, "calls")?,
        sessions: count(row, "sessions")?,
        last_seen: row.get("last_seen")?,
        cost: row.get("cost")?,
        blast: count(row, "blast")?,
        rate: row.get("rate")?,
        confidence: row.get("confidence")?,
        recency: row.get("recency")?,
        score: row.get("score")?,
        threshold: row.get("threshold")?,
        severity: row.get("severity")?,
        args: row.get("args")?,
        retryable: row.get("retryable")?,
    })
}

/// Copies issues and findings from one index into another that has none.
///
/// # Errors
/// Whatever SQLite says.
pub(super) fn copy(from: &Connection, into: &Connection) -> rusqlite::Result<()> {
    for table in ["issues", "findings"] {
        let mut select = from.prepare(&format!("SELECT * FROM {table}"))?;
        let places = vec!["?"; select.column_count()].join(", ");
        let mut insert = into.prepare(&format!("INSERT INTO {table} VALUES ({places})"))?;
        let columns = select.column_count();
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let values = (0..columns).map(|column| row.get(column)).collect::<rusqlite::Result<Vec<Value>>>()?;
            insert.execute(params_from_iter(values))?;
        }
    }
    Ok(())
}
