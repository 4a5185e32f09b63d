//! The reports of several targets beside each other.

pub mod markdown;
pub mod text;

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::document::{Case, CaseId, CaseResult, KindName, Label, Reason, Report};
use crate::error::{Error, Result};

/// The reports of several targets, in the order of the command line.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Comparison {
    /// One per target.
    pub entries: Vec<Entry>,
}

/// One target.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Entry {
    /// What the user calls it.
    pub endpoint: Label,
    /// What its run found.
    pub report: Report,
}

/// One line of the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    /// What it compares.
    pub subject: RowSubject<'a>,
    /// One cell per target.
    pub cells: Vec<Cell<'a>>,
}

/// What a line of the grid compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSubject<'a> {
    /// A case.
    Case {
        /// Its id.
        id: &'a CaseId,
        /// Its kind.
        probe: &'a KindName,
    },
    /// Cases passed of those selected.
    Gate,
    /// The score.
    Readiness,
    /// An area's score.
    Area(&'a str),
}

/// What a target has in a line of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'a> {
    /// How the case ended, and why.
    Case {
        /// How.
        result: CaseResult,
        /// Why it did not pass.
        reason: Option<&'a str>,
    },
    /// Cases passed and selected.
    Gate {
        /// Passed.
        passed: u32,
        /// Selected.
        total: u32,
    },
    /// A score, 0 to 100.
    Score(u8),
    /// Nothing was measured, for this reason.
    Error(&'a str),
    /// Nothing was asked.
    Absent,
}

impl Row<'_> {
    /// Whether the targets differ in it, in their results or in the reasons for them.
    pub fn differs(&self) -> bool {
        self.cells.windows(2).any(|pair| pair.first() != pair.last())
    }
}

impl Comparison {
    /// 3 if a target errored, else 0: comparing does not gate.
    pub fn exit_code(&self) -> u8 {
        if self.entries.iter().any(|entry| entry.report.exit_code() == 3) { 3 } else { 0 }
    }

    /// The grid: a line per case in the order they first stand, then gate, readiness, and a line per area; lines that
    /// no target has are left out.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut subjects: Vec<RowSubject<'_>> = Vec::new();
        let mut seen = HashSet::new();
        for case in self.reports().flat_map(|report| &report.cases) {
            if seen.insert((&case.id, &case.probe)) {
                subjects.push(RowSubject::Case { id: &case.id, probe: &case.probe });
            }
        }
        subjects.extend([RowSubject::Gate, RowSubject::Readiness]);
        let areas =
            self.reports().filter_map(|report| report.readiness.as_ref()).flat_map(|readiness| &readiness.areas);
        for area in areas {
            let subject = RowSubject::Area(area.name.as_str());
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        let columns: Vec<Column<'_>> = self.reports().map(Column::of).collect();
        let rows = subjects
            .into_iter()
            .map(|subject| Row { subject, cells: columns.iter().map(|column| column.cell(subject)).collect() });
        rows.filter(|row| row.cells.iter().any(|cell| *cell != Cell::Absent)).collect()
    }

    /// Why cells of rows that differ are as they are: row, endpoint, reason. An area has the reason of the readiness.
    pub fn differences<'a>(&'a self, rows: &'a [Row<'a>]) -> impl Iterator<Item = (&'a Row<'a>, &'a Label, &'a str)> {
        let told = rows.iter().filter(|row| row.differs() && !matches!(row.subject, RowSubject::Area(_)));
        told.flat_map(|row| {
            let cells = self.entries.iter().zip(&row.cells);
            cells.filter_map(move |(entry, cell)| Some((row, &entry.endpoint, cell.reason()?)))
        })
    }

    fn reports(&self) -> impl Iterator<Item = &Report> {
        self.entries.iter().map(|entry| &entry.report)
    }
}

/// A report, its cases by id and kind.
struct Column<'a> {
    report: &'a Report,
    cases: HashMap<(&'a CaseId, &'a KindName), &'a Case>,
}

impl<'a> Column<'a> {
    fn of(report: &'a Report) -> Self {
        Self { report, cases: report.cases.iter().map(|case| ((&case.id, &case.probe), case)).collect() }
    }

    fn cell(&self, subject: RowSubject<'a>) -> Cell<'a> {
        let report = self.report;
        let unmeasured = || report.readiness_error.map_or(Cell::Absent, |error| Cell::Error(error.0.label()));
        match subject {
            RowSubject::Case { id, probe } => self.cases.get(&(id, probe)).map_or(Cell::Absent, |case| case_cell(case)),
            RowSubject::Gate => {
                report.gate.map_or(Cell::Absent, |gate| Cell::Gate { passed: gate.passed, total: gate.total })
            }
            RowSubject::Readiness => {
                report.readiness.as_ref().map_or_else(unmeasured, |readiness| Cell::Score(readiness.score.0))
            }
            RowSubject::Area(name) => report.readiness.as_ref().map_or_else(unmeasured, |readiness| {
                let area = readiness.areas.iter().find(|area| area.name.as_str() == name);
                area.map_or(Cell::Absent, |area| Cell::Score(area.score.0))
            }),
        }
    }
}

fn case_cell(case: &Case) -> Cell<'_> {
    Cell::Case { result: case.result(), reason: case.reason.as_ref().map(Reason::as_str) }
}

impl Comparison {
    /// The document, keys sorted, indented, with a newline at the end.
    ///
    /// # Errors
    /// None for values made here; a library's fault would show as a component of the machine that failed.
    pub fn to_json(&self) -> Result<String> {
        let value = serde_json::to_value(self)
            .map_err(|error| Error::unfinished(format!("the comparison cannot be written: {error}")))?;
        Ok(super::canonical::document(&value))
    }
}

#[cfg(test)]
mod tests;
