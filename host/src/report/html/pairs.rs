//! Reports beside each other as a page: what changed between two of them, and several targets.

use askama::Template;

use super::super::compare::{Comparison, Row, RowSubject};
use super::super::diff::{CaseDiff, Diff, Verdict};
use super::super::document::{CaseId, Label, Percent, StandardLabel, VERSION};
use super::super::view::Band;
use crate::error::Result;

/// What changed, as a page.
///
/// # Errors
/// As for a report.
pub fn diff(diff: &Diff) -> Result<String> {
    let readiness = &diff.readiness;
    super::page(&DiffPage {
        version: VERSION,
        diff,
        scores: [
            Side::of("baseline", readiness.baseline, readiness.baseline_standard.as_ref()),
            Side::of("current", readiness.current, readiness.current_standard.as_ref()),
        ],
        told: diff.cases.iter().filter(|case| case.verdict != Verdict::Unchanged).collect(),
        lists: [("removed", &diff.removed), ("added", &diff.added)],
    })
}

/// Several targets, as a page.
///
/// # Errors
/// As for a report.
pub fn compare(comparison: &Comparison) -> Result<String> {
    let rows = comparison.rows();
    super::page(&ComparePage {
        version: VERSION,
        endpoints: comparison.entries.iter().map(|entry| &entry.endpoint).collect(),
        differing: rows.iter().filter(|row| row.differs()).count(),
        rows,
    })
}

#[derive(Template)]
#[template(path = "diff.html")]
struct DiffPage<'a> {
    version: &'static str,
    diff: &'a Diff,
    scores: [Side<'a>; 2],
    told: Vec<&'a CaseDiff>,
    lists: [(&'static str, &'a Vec<CaseId>); 2],
}

/// One of two reports.
struct Side<'a> {
    name: &'static str,
    measured: Option<Measured>,
    standard: Option<&'a StandardLabel>,
}

/// The engine hands fields on as they are, and variables as references.
struct Measured {
    score: Percent,
}

impl<'a> Side<'a> {
    fn of(name: &'static str, score: Option<Percent>, standard: Option<&'a StandardLabel>) -> Self {
        Self { name, measured: score.map(|score| Measured { score }), standard }
    }
}

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparePage<'a> {
    version: &'static str,
    endpoints: Vec<&'a Label>,
    rows: Vec<Row<'a>>,
    differing: usize,
}

#[cfg(test)]
mod tests {
    use super::super::super::assemble::{Floors, assemble};
    use super::super::super::compare::{Entry, markdown as compare_markdown};
    use super::super::super::diff::{Gates, compare as difference, markdown as diff_markdown};
    use super::super::super::tests_support::Example;
    use super::*;

    #[test]
    fn a_drop_and_a_difference_are_told_in_both_renderings() {
        let label = |name: &str| Label::new(name).unwrap();
        let report = |example: &Example| assemble(&example.facts(), label("shop"), &Floors::default()).report;
        let (then, mut now) = (report(&Example::worked()), report(&Example::worked()));
        let readiness = now.readiness.as_mut().unwrap();
        readiness.score = Percent(40);
        let gates = Gates { max_drop: Some(5), ..Gates::default() };
        let judged = difference(&then, &now, gates).unwrap();
        assert_eq!(judged.exit_code, 1);
        let page = diff(&judged.diff).unwrap();
        assert!(page.contains("a drop of 25, at most 5 is allowed") && page.contains(">fail<"), "{page}");
        let text = diff_markdown::render(&judged.diff);
        assert!(text.contains("| Score | 65 | 40 |") && text.contains("Drop 25 of at most 5: fail."), "{text}");

        let entry = |name, report: &super::super::super::document::Report| Entry {
            endpoint: label(name),
            report: report.clone(),
        };
        let comparison = Comparison { entries: vec![entry("old", &then), entry("new", &now)] };
        let page = compare(&comparison).unwrap();
        assert!(page.contains("<strong>1</strong> of <strong>7</strong> rows differ"), "{page}");
        let text = compare_markdown::render(&comparison);
        assert!(text.contains("|  | `old` | `new` |") && text.contains("| readiness | 65 | 40 |"), "{text}");
    }
}
