//! A comparison as a grid of words and numbers, and why the cells of a line differ.

use std::fmt::{self, Write as _};

use super::super::document::CaseResult;
use super::super::text::{BAD, FAIR, GOOD};
use super::{Cell, Comparison, RowSubject};

/// Between two columns.
const GAP: usize = 2;

/// The lines, each with its newline; in colours, if `styled`.
pub fn render(comparison: &Comparison, styled: bool) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    _ = write(&mut out, comparison, styled);
    out
}

fn write(out: &mut String, comparison: &Comparison, styled: bool) -> fmt::Result {
    let rows = comparison.rows();
    let endpoints: Vec<&str> = comparison.entries.iter().map(|entry| entry.endpoint.as_str()).collect();
    let first = rows.iter().map(|row| row.subject.to_string().len()).max().unwrap_or(0);
    // Every label is ASCII.
    let widths: Vec<usize> = endpoints
        .iter()
        .enumerate()
        .map(|(at, endpoint)| {
            let cells = rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| cell.to_string().len());
            cells.max().unwrap_or(0).max(endpoint.len())
        })
        .collect();
    let mut line = |first_cell: &str, cells: &mut dyn Iterator<Item = (String, String)>| -> fmt::Result {
        let mut pad = first - first_cell.len().min(first) + GAP;
        write!(out, "{first_cell}")?;
        for ((plain, shown), width) in cells.zip(&widths) {
            write!(out, "{:pad$}{shown}", "")?;
            pad = width - plain.len().min(*width) + GAP;
        }
        out.push('\n');
        Ok(())
    };
    line("", &mut endpoints.iter().map(|endpoint| ((*endpoint).to_owned(), (*endpoint).to_owned())))?;
    for row in &rows {
        let shown = |cell: &Cell<'_>| {
            let plain = cell.to_string();
            let painted = if styled { cell.painted() } else { plain.clone() };
            (plain, painted)
        };
        line(&row.subject.to_string(), &mut row.cells.iter().map(shown))?;
    }
    // A target without readiness has no area for the same reason.
    for row in rows.iter().filter(|row| row.differs() && !matches!(row.subject, RowSubject::Area(_))) {
        for (endpoint, cell) in endpoints.iter().zip(&row.cells) {
            if let Some(reason) = cell.reason() {
                writeln!(out, "differs {} {endpoint} {cell} reason={reason}", row.subject)?;
            }
        }
    }
    Ok(())
}

impl fmt::Display for RowSubject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Case { id, probe } => write!(f, "{id} {probe}"),
            Self::Gate => f.write_str("gate"),
            Self::Readiness => f.write_str("readiness"),
            Self::Area(name) => write!(f, "area:{name}"),
        }
    }
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Case { result, .. } => f.write_str(result.word()),
            Self::Gate { passed, total } => write!(f, "{passed}/{total}"),
            Self::Score(score) => write!(f, "{score}"),
            Self::Error(_) => f.write_str(CaseResult::Error.word()),
            Self::Absent => f.write_str("-"),
        }
    }
}

impl<'a> Cell<'a> {
    /// Why a case did not pass, or nothing was measured.
    pub fn reason(&self) -> Option<&'a str> {
        match self {
            Self::Case { reason, .. } => *reason,
            Self::Error(reason) => Some(reason),
            Self::Gate { .. } | Self::Score(_) | Self::Absent => None,
        }
    }

    /// The tone in which it is shown, if it has one.
    pub(in super::super) fn tone(&self) -> Option<&'static str> {
        match self {
            Self::Case { result, .. } => Some(result.word()),
            Self::Error(_) => Some(CaseResult::Error.word()),
            Self::Gate { .. } | Self::Score(_) | Self::Absent => None,
        }
    }

    fn painted(&self) -> String {
        let style = match self {
            Self::Case { result: CaseResult::Pass, .. } => GOOD,
            Self::Case { result: CaseResult::Fail, .. } => BAD,
            Self::Case { result: CaseResult::Error, .. } | Self::Error(_) => FAIR,
            Self::Gate { .. } | Self::Score(_) | Self::Absent => return self.to_string(),
        };
        format!("{style}{self}{style:#}")
    }
}
