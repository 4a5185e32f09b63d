//! Loading what the journals say into the tables.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{CachedStatement, Connection, Params, params};

use super::row::{Identity, Row};
use super::sources::{Consumed, Source};
use super::tables::{count, int};
use super::windows::Touched;
use crate::error::Error;
use crate::store::home::{Home, fault};
use crate::store::journal::{self, Journal};
use crate::store::record::{Annotation, is_session, is_uuid, moment, timestamp};

/// Captures whose session and server are remembered.
const MOST_CAPTURES: usize = 4_096;

/// Why a load came to no end.
#[derive(Debug)]
pub(super) enum Stop {
    /// What was read earlier has changed: everything must be read again.
    Rewritten,
    /// The database does not take it.
    Database(rusqlite::Error),
    /// What the user is told.
    Told(Error),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// What a load has added.
#[derive(Debug)]
pub(super) struct Loaded {
    touched: Touched,
    /// Records read, those seen before included.
    events: u64,
    /// Whether any row was added.
    is_changed: bool,
}

impl Loaded {
    /// Relates what was added to what is there, once the tables have their indices.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub(super) fn relate(&self, connection: &Connection) -> rusqlite::Result<()> {
        if self.events > 0 {
            let query = "UPDATE index_checkpoint SET replayed_events = replayed_events + ?1";
            connection.execute(query, [int(self.events)])?;
        }
        if self.is_changed {
            connection.execute(RESOLVE, [])?;
            self.touched.make(connection)?;
        }
        Ok(())
    }
}

/// Which call each annotation names. Coordinates that several records have name none.
const RESOLVE: &str = "UPDATE annotations SET call_id = CASE \
    WHEN event_id IS NOT NULL THEN (SELECT id FROM calls WHERE calls.event_id = annotations.event_id) \
    ELSE (SELECT CASE count(*) WHEN 1 THEN min(id) END FROM calls \
          WHERE calls.session = annotations.session AND calls.seq = annotations.seq) END";

/// Reads what the journals hold beyond what has been read. `touched` says for which captures windows are needed anyhow.
///
/// # Errors
/// When something that was read has changed, and for records that contradict one another.
pub(super) fn load(connection: &Connection, home: &Home, touched: Touched) -> Result<Loaded, Stop> {
    let mut known = known(connection)?;
    let files = |journal: Journal| journal::files(home, journal).map_err(Stop::Told);
    let (calls, annotations) = (files(Journal::Calls)?, files(Journal::Annotations)?);
    let is_there = |name: &String| calls.iter().chain(&annotations).any(|file| self::name(file) == *name);
    if !known.keys().all(is_there) {
        return Err(Stop::Rewritten);
    }
    let mut loader = Loader { connection, touched, captures: HashMap::new(), events: 0, is_changed: false };
    for (files, journal) in [(&calls, Journal::Calls), (&annotations, Journal::Annotations)] {
        for file in files {
            loader.source(file, journal, known.remove(&name(file)))?;
        }
    }
    let Loader { touched, events, is_changed, .. } = loader;
    Ok(Loaded { touched, events, is_changed })
}

/// What stands for a journal in the tables: its name, so that a home can be moved.
fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn known(connection: &Connection) -> rusqlite::Result<HashMap<String, Consumed>> {
    let query = "SELECT s.path, s.offset, s.digest, t.stamp, coalesce(t.lines, 0), coalesce(t.skipped, 0) \
                 FROM index_sources s LEFT JOIN index_stamps t ON t.path = s.path";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| {
        let consumed = Consumed {
            offset: count(row, 1)?,
            digest: row.get(2)?,
            stamp: row.get(3)?,
            lines: count(row, 4)?,
            skipped: count(row, 5)?,
        };
        Ok((row.get(0)?, consumed))
    })?;
    rows.collect()
}

/// One load under way.
struct Loader<'a> {
    connection: &'a Connection,
    touched: Touched,
    /// Session and server of captures seen of late.
    captures: HashMap<String, (String, String)>,
    /// Records read.
    events: u64,
    /// Whether any row was added.
    is_changed: bool,
}

const INSERT: &str = "INSERT INTO calls VALUES \
    (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

/// Where a record stands.
#[derive(Debug, Clone, Copy)]
struct Place<'a>(&'a Path, u64);

impl Place<'_> {
    fn contradiction(self, what: &str) -> Stop {
        Stop::Told(Error::unfinished(format!(
            "{}:{}: {what}; the index stays as it was: remove the line that is wrong, then run mcpeval index again",
            self.0.display(),
            self.1
        )))
    }
}

impl Loader<'_> {
    fn source(&mut self, file: &Path, journal: Journal, known: Option<Consumed>) -> Result<(), Stop> {
        let unreadable = |error: std::io::Error| Stop::Told(fault(file, &error));
        let before = known.clone();
        let mut rest = match Source::open(file, known).map_err(unreadable)? {
            Source::Unchanged => return Ok(()),
            Source::Rewritten => return Err(Stop::Rewritten),
            Source::Open(rest) => rest,
        };
        while let Some(line) = rest.next().map_err(unreadable)? {
            let place = Place(file, line.number);
            let is_taken = match (journal, line.bytes) {
                (_, None) => false,
                (Journal::Calls, Some(line)) => match Row::read(line) {
                    Some(row) => self.call(place, &row).map(|()| true)?,
                    None => false,
                },
                (Journal::Annotations, Some(line)) => match Annotation::read(line) {
                    Some(annotation) => self.annotation(&annotation)?,
                    None => false,
                },
            };
            if !is_taken {
                rest.skip();
            }
        }
        let consumed = rest.consumed();
        if before.as_ref() != Some(&consumed) {
            let name = name(file);
            let digest = &consumed.digest;
            self.run(
                "INSERT OR REPLACE INTO index_sources VALUES (?1, ?2, ?3)",
                (&name, int(consumed.offset), digest),
            )?;
            let stamp = (&name, &consumed.stamp, int(consumed.lines), int(consumed.skipped));
            self.run("INSERT OR REPLACE INTO index_stamps VALUES (?1, ?2, ?3, ?4)", stamp)?;
        }
        Ok(())
    }

    fn call(&mut self, place: Place<'_>, row: &Row) -> Result<(), Stop> {
        self.events += 1;
        match &row.identity {
            Some(identity) => {
                if !self.is_new(place, identity)? {
                    return Ok(());
                }
                self.check_capture(place, &identity.capture, row)?;
                self.touched.capture(&identity.capture, row.seq);
            }
            None => self.touched.unidentified(&row.session, &row.server),
        }
        self.is_changed = true;
        let mut event = uuid::Uuid::encode_buffer();
        let event = row.identity.as_ref().map(|identity| &*identity.event.as_hyphenated().encode_lower(&mut event));
        let inserted = self.statement(INSERT)?.execute(params![
            row.identity.as_ref().map(|identity| &identity.capture),
            event,
            row.ts,
            row.session,
            row.seq,
            row.server,
            row.method,
            row.tool,
            row.latency_ms,
            row.outcome,
            row.err_code,
            row.err_template,
            row.err_template_id,
            row.err_retryable,
            row.args,
            row.kind,
        ]);
        match inserted {
            Ok(_) => Ok(()),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
                Err(place.contradiction(&format!("another record of the same capture has the number {}", row.seq)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether an event was not seen before. Seen again with other content, it is a contradiction.
    fn is_new(&self, place: Place<'_>, identity: &Identity) -> Result<bool, Stop> {
        let event = identity.event.as_bytes();
        if self.run("INSERT OR IGNORE INTO index_events VALUES (?1, ?2)", (event, &identity.digest))? == 1 {
            return Ok(true);
        }
        let query = "SELECT digest FROM index_events WHERE event = ?1";
        let before: [u8; 32] = self.statement(query)?.query_row([event], |row| row.get(0))?;
        if before == identity.digest {
            return Ok(false);
        }
        Err(place.contradiction(&format!("the event {} stands in the journals with other content", identity.event)))
    }

    fn check_capture(&mut self, place: Place<'_>, capture: &str, row: &Row) -> Result<(), Stop> {
        if !self.captures.contains_key(capture) {
            let query = "INSERT OR IGNORE INTO index_captures VALUES (?1, ?2, ?3)";
            self.run(query, (capture, &row.session, &row.server))?;
            let query = "SELECT session, server FROM index_captures WHERE capture = ?1";
            let found = self.statement(query)?.query_row([capture], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if self.captures.len() >= MOST_CAPTURES {
                self.captures.clear();
            }
            self.captures.insert(capture.to_owned(), found);
        }
        match self.captures.get(capture) {
            Some((session, server)) if *session == row.session && *server == row.server => Ok(()),
            _ => Err(place.contradiction(&format!("the capture {capture} is of another session or server"))),
        }
    }

    /// Whether an annotation could be taken.
    fn annotation(&mut self, annotation: &Annotation) -> Result<bool, Stop> {
        let (Some(ts), Ok(seq)) = (moment(&annotation.ts), annotation.seq.map(i64::try_from).transpose()) else {
            return Ok(false);
        };
        self.is_changed = true;
        let event = annotation.event_id.as_deref().filter(|event| is_uuid(event)).map(str::to_ascii_lowercase);
        let session = annotation.session.as_deref().filter(|session| is_session(session));
        let values = (event, session, seq, timestamp(ts), annotation.kind.word(), &annotation.note);
        self.run("INSERT INTO annotations VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6)", values)?;
        Ok(true)
    }

    fn statement(&self, query: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(query)
    }

    fn run(&self, query: &str, values: impl Params) -> rusqlite::Result<usize> {
        self.statement(query)?.execute(values)
    }
}
