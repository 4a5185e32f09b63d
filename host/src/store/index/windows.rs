//! Windows: which records lie around a failure.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::tables::IS_FAILURE;

/// Captures of one run beyond which all windows are made anew.
const MOST_TOUCHED: usize = 10_000;

/// Sessions without identities in which no number repeats; in others nobody can tell what lies beside what.
const CLEAR: &str = "SELECT session, server FROM calls WHERE capture_id IS NULL";
const HAS_NO_REPEATS: &str = "GROUP BY session, server HAVING count(*) = count(DISTINCT seq)";

/// What makes `f` a failure.
const FAILED: &str = "f.method = 'tools/call' AND f.err_code IS NOT NULL";

/// Where records were added, so that only what lies around them is done again.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// Captures, and the smallest number that was added to each.
    captures: HashMap<String, i64>,
    /// Sessions and servers without identities.
    unidentified: HashSet<(String, String)>,
    /// There were too many.
    everything: bool,
}

impl Touched {
    /// Everything there is.
    pub(super) fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// Notes a record of a capture.
    pub(super) fn capture(&mut self, capture: &str, seq: i64) {
        if self.everything {
            return;
        }
        if let Some(least) = self.captures.get_mut(capture) {
            *least = seq.min(*least);
        } else if self.is_full() {
            *self = Self::everything();
        } else {
            self.captures.insert(capture.to_owned(), seq);
        }
    }

    /// Notes a record without identity.
    pub(super) fn unidentified(&mut self, session: &str, server: &str) {
        if self.everything {
            return;
        }
        if self.is_full() {
            *self = Self::everything();
        } else {
            self.unidentified.insert((session.to_owned(), server.to_owned()));
        }
    }

    fn is_full(&self) -> bool {
        self.captures.len() + self.unidentified.len() >= MOST_TOUCHED
    }

    /// Makes the windows that records were added to.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub(super) fn make(&self, connection: &Connection) -> rusqlite::Result<()> {
        if self.everything {
            connection.execute("DELETE FROM windows", [])?;
            // In the order of the failures' ids, which is that of the table to be filled.
            let all = identified("NOT INDEXED", &format!("{FAILED} AND f.capture_id IS NOT NULL"));
            connection.execute(&format!("INSERT INTO windows {all}"), [])?;
            let all = unidentified(&format!("{CLEAR} {HAS_NO_REPEATS}"), FAILED);
            connection.execute(&format!("INSERT INTO windows {all}"), [])?;
            return Ok(());
        }
        let around = "capture_id = ?1 AND seq >= ?2";
        let delete =
            format!("DELETE FROM windows WHERE failure_id IN (SELECT id FROM calls WHERE {IS_FAILURE} AND {around})");
        let insert = format!(
            "INSERT INTO windows {}",
            identified("", &format!("{FAILED} AND f.capture_id = ?1 AND f.seq >= ?2"))
        );
        let (mut delete, mut insert) = (connection.prepare(&delete)?, connection.prepare(&insert)?);
        for (capture, seq) in &self.captures {
            // A failure sees three records after it.
            let around = (capture, seq.saturating_sub(3));
            delete.execute(around)?;
            insert.execute(around)?;
        }
        let group = "capture_id IS NULL AND session = ?1 AND server = ?2";
        let delete =
            format!("DELETE FROM windows WHERE failure_id IN (SELECT id FROM calls WHERE {IS_FAILURE} AND {group})");
        let clear = format!("{CLEAR} AND session = ?1 AND server = ?2 {HAS_NO_REPEATS}");
        let insert = format!("INSERT INTO windows {}", unidentified(&clear, FAILED));
        let (mut delete, mut insert) = (connection.prepare(&delete)?, connection.prepare(&insert)?);
        for group in &self.unidentified {
            delete.execute((&group.0, &group.1))?;
            insert.execute((&group.0, &group.1))?;
        }
        Ok(())
    }
}

/// Calls `f`, neighbours and offsets, of the captures of those calls for which `which` holds.
fn identified(how: &str, which: &str) -> String {
    format!(
        "SELECT f.id, n.id, n.seq - f.seq FROM calls f {how} JOIN calls n \
         ON n.capture_id = f.capture_id AND n.seq BETWEEN f.seq - 5 AND f.seq + 3 AND n.seq <> f.seq WHERE {which}"
    )
}

/// The same of records without identity, in the sessions that `clear` gives.
fn unidentified(clear: &str, which: &str) -> String {
    format!(
        "SELECT f.id, n.id, n.seq - f.seq FROM ({clear}) g \
         JOIN calls f ON f.capture_id IS NULL AND f.session = g.session AND f.server = g.server \
         JOIN calls n ON n.capture_id IS NULL AND n.session = g.session AND n.server = g.server \
         AND n.seq BETWEEN f.seq - 5 AND f.seq + 3 AND n.seq <> f.seq WHERE {which}"
    )
}

/// Tool, outcome, kind and offset of the neighbours of a failure, whose id is parameter 1.
pub(super) const OF_FAILURE: &str = "SELECT n.tool, n.outcome, n.kind, w.offset FROM windows w \
     JOIN calls n ON n.id = w.neighbour_id WHERE w.failure_id = ?1";

/// The same of a call that need be none.
pub(super) fn of_call() -> String {
    let clear = format!(
        "{CLEAR} AND session = (SELECT session FROM calls WHERE id = ?1) \
         AND server = (SELECT server FROM calls WHERE id = ?1) {HAS_NO_REPEATS}"
    );
    format!(
        "WITH w (call, neighbour, distance) AS ({} UNION ALL {}) \
         SELECT n.tool, n.outcome, n.kind, w.distance FROM w JOIN calls n ON n.id = w.neighbour",
        identified("", "f.id = ?1 AND f.capture_id IS NOT NULL"),
        unidentified(&clear, "f.id = ?1")
    )
}
