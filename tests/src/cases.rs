//! The table of kinds: a server, the fields of a case, and what must come of it. Every kind has a row that passes, and
//! every reason of every kind a row that gives it.

mod protocol;
mod steps;
mod tools;

use serde_json::{Value, json};

use crate::report::Report;
use crate::run::{Outcome, Place};

/// All rows.
pub fn rows() -> Vec<Row> {
    [protocol::ROWS, tools::ROWS, steps::ROWS].concat()
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Over standard input and output.
    Stdio,
    /// Over HTTP.
    Http,
}

impl Way {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Stdio, Self::Http];
}

/// What must come of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Passes,
    /// It fails, with that reason, at the request of that number; without one before any request.
    Fails(&'static str, Option<u64>),
    /// It has no verdict, and that label.
    Errs(&'static str),
}

/// What must be measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measured {
    /// That number.
    Number(u64),
    /// A number of at least so much.
    AtLeast(u64),
    /// That word.
    Word(&'static str),
    /// A list of so many tools.
    List(usize),
}

/// One case.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Name of the fixture.
    pub server: &'static str,
    /// Only that way; without it both.
    pub way: Option<Way>,
    /// Its kind.
    pub kind: &'static str,
    /// Its fields as JSON, but for kind and id. Without `access` it is `read_only`.
    pub fields: &'static str,
    /// What must come of it.
    pub verdict: Verdict,
    /// Requests that the verdict rests on.
    pub attempts: u64,
    /// The broken bound: its name, the limit, what was observed.
    pub detail: Option<(&'static str, u64, u64)>,
    /// What must be measured, and nothing else.
    pub measured: &'static [(&'static str, Measured)],
}

/// A case on the workshop, over both transports, that passes after one request.
const fn case(kind: &'static str, fields: &'static str) -> Row {
    Row {
        server: "workshop",
        way: None,
        kind,
        fields,
        verdict: Verdict::Passes,
        attempts: 1,
        detail: None,
        measured: &[],
    }
}

impl Row {
    const fn on(self, server: &'static str) -> Self {
        Self { server, ..self }
    }

    const fn only(self, way: Way) -> Self {
        Self { way: Some(way), ..self }
    }

    const fn after(self, attempts: u64) -> Self {
        Self { attempts, ..self }
    }

    /// Fails at its last request.
    const fn fails(self, reason: &'static str, attempts: u64) -> Self {
        Self { verdict: Verdict::Fails(reason, Some(attempts)), attempts, ..self }
    }

    /// Fails at a request that is not its last.
    const fn fails_at(self, reason: &'static str, number: u64, attempts: u64) -> Self {
        Self { verdict: Verdict::Fails(reason, Some(number)), attempts, ..self }
    }

    /// Fails without a request.
    const fn fails_unasked(self, reason: &'static str) -> Self {
        Self { verdict: Verdict::Fails(reason, None), attempts: 0, ..self }
    }

    const fn errs(self, label: &'static str) -> Self {
        Self { verdict: Verdict::Errs(label), attempts: 0, ..self }
    }

    const fn bound(self, name: &'static str, limit: u64, observed: u64) -> Self {
        Self { detail: Some((name, limit, observed)), ..self }
    }

    const fn measures(self, measured: &'static [(&'static str, Measured)]) -> Self {
        Self { measured, ..self }
    }

    /// The case as a manifest has it.
    ///
    /// # Panics
    /// When the fields of the row are no JSON object.
    pub fn entry(&self, id: &str) -> Value {
        let mut entry: Value = serde_json::from_str(self.fields).unwrap_or_else(|error| panic!("{self:?}: {error}"));
        entry["probe"] = self.kind.into();
        entry["id"] = id.into();
        if entry["access"].is_null() {
            entry["access"] = "read_only".into();
        }
        entry
    }

    /// Compares the entry of a report; the error says what came out instead.
    fn judge(&self, found: &Value) -> Result<(), String> {
        let (passed, reason, first_failure) = match self.verdict {
            Verdict::Passes => (true, Value::Null, Value::Null),
            Verdict::Fails(reason, number) => (false, reason.into(), number.into()),
            Verdict::Errs(label) => (false, label.into(), Value::Null),
        };
        let detail = self.detail.map_or(Value::Null, |(bound, limit, observed)| {
            // What time decides is only known to be more than the limit.
            let observed =
                if bound == "max_latency_ms" { found["detail"]["observed"].clone() } else { observed.into() };
            json!({"bound": bound, "limit": limit, "observed": observed})
        });
        let expected = [
            ("passed", passed.into()),
            ("reason", reason),
            ("attempts", self.attempts.into()),
            ("first_failure", first_failure),
            ("detail", detail),
        ];
        let mut faults: Vec<String> = expected
            .iter()
            .filter(|(key, value)| found[*key] != *value)
            .map(|(key, value)| format!("{key} is {} and not {value}", found[*key]))
            .collect();
        if found["hint"].is_null() != passed {
            faults.push(format!("the hint is {}", found["hint"]));
        }
        faults.extend(self.compare_measurements(&found["measurements"]).err());
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    }

    fn compare_measurements(&self, found: &Value) -> Result<(), String> {
        let fits = |(name, measured): &(&str, Measured)| match *measured {
            Measured::Number(number) => found[name] == number,
            Measured::AtLeast(number) => found[name].as_u64().is_some_and(|found| found >= number),
            Measured::Word(word) => found[name] == word,
            Measured::List(length) => found[name].as_array().is_some_and(|list| list.len() == length),
        };
        let count = found.as_object().map_or(0, serde_json::Map::len);
        if count == self.measured.len() && self.measured.iter().all(fits) {
            return Ok(());
        }
        Err(format!("the measurements are {found} and not {:?}", self.measured))
    }
}

/// Rows that share one server and one manifest.
#[derive(Debug, Clone)]
pub struct Group {
    /// Name of the fixture.
    pub server: &'static str,
    /// How it is reached.
    pub way: Way,
    /// The cases, in order.
    pub rows: Vec<Row>,
}

/// The rows by server and way, the largest group first.
pub fn groups(rows: &[Row]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        for way in Way::ALL.into_iter().filter(|way| row.way.is_none_or(|only| only == *way)) {
            match groups.iter_mut().find(|group| (group.server, group.way) == (row.server, way)) {
                Some(group) => group.rows.push(*row),
                None => groups.push(Group { server: row.server, way, rows: vec![*row] }),
            }
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.rows.len()));
    groups
}

/// A manifest of those cases, whose requests wait for two seconds.
pub fn manifest(cases: &[Value]) -> Value {
    json!({"version": 1, "timeout_ms": 2_000, "sandboxes": {"bench": {"description": "A bench."}}, "probes": cases})
}

impl Group {
    fn id(row: &Row, position: usize) -> String {
        format!("{}-{position}", row.kind)
    }

    /// Its cases as a manifest has them.
    pub fn entries(&self) -> Vec<Value> {
        self.rows.iter().enumerate().map(|(position, row)| row.entry(&Self::id(row, position))).collect()
    }

    /// Runs the cases and compares; the list says what came out instead.
    pub fn verify(&self, place: &Place) -> Vec<String> {
        let outcome = self.run(place);
        let told = |fault: String| format!("{} over {:?}: {fault}\n", self.server, self.way);
        match Report::read(&outcome.stdout) {
            Ok(report) => self.judge(&report, &outcome).into_iter().map(told).collect(),
            Err(error) => {
                vec![told(format!("{error}; exit code {:?}; stderr: {}", outcome.code, outcome.stderr))]
            }
        }
    }

    fn run(&self, place: &Place) -> Outcome {
        let (manifest, options) = (manifest(&self.entries()), ["--gate-only", "--allow-mutation"]);
        match self.way {
            Way::Stdio => place.probe(&manifest, &options, self.server),
            Way::Http => place.probe_http(&manifest, &options, self.server),
        }
    }

    fn judge(&self, report: &Report, outcome: &Outcome) -> Vec<String> {
        let cases = report.at("/cases").as_array().map(Vec::as_slice).unwrap_or_default();
        let mut faults = Vec::new();
        for (position, row) in self.rows.iter().enumerate() {
            let found = cases.get(position).unwrap_or(&Value::Null);
            if found["id"] != Self::id(row, position) {
                faults.push(format!("case {position} is {}", found["id"]));
            } else if let Err(fault) = row.judge(found) {
                faults.push(format!("{} {}: {fault}", row.kind, row.fields));
            }
        }
        let any = |holds: fn(&Row) -> bool| self.rows.iter().any(holds);
        let code = match () {
            () if any(|row| matches!(row.verdict, Verdict::Errs(_))) => 3,
            () if any(|row| matches!(row.verdict, Verdict::Fails(..))) => 1,
            () => 0,
        };
        if outcome.code != Some(code) {
            faults.push(format!("exit code {:?} and not {code}; stderr: {}", outcome.code, outcome.stderr));
        }
        faults
    }
}
