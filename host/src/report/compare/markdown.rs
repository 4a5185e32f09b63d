//! A comparison as GitHub-flavoured markdown.

use std::fmt::{self, Write as _};

use super::super::markdown::{Page, code};
use super::{Comparison, RowSubject};

/// The document.
pub fn render(comparison: &Comparison) -> String {
    let mut page = Page { out: String::new() };
    // Writing to a string cannot fail.
    _ = write(&mut page, comparison);
    page.out
}

fn write(page: &mut Page, comparison: &Comparison) -> fmt::Result {
    writeln!(page.out, "# mcpeval: comparison\n")?;
    let endpoints: Vec<String> = comparison.entries.iter().map(|entry| code(&entry.endpoint)).collect();
    let rows = comparison.rows();
    let mut head = vec![String::new()];
    head.extend(endpoints.iter().cloned());
    page.head(&head.iter().map(String::as_str).collect::<Vec<_>>())?;
    for row in &rows {
        let subject = match row.subject {
            RowSubject::Case { id, probe } => format!("{} {}", code(id), code(probe)),
            other => other.to_string(),
        };
        let cells = row.cells.iter().map(ToString::to_string);
        page.row(&std::iter::once(subject).chain(cells).collect::<Vec<_>>())?;
    }
    let mut told = false;
    for (row, endpoint, reason) in comparison.differences(&rows) {
        if !told {
            page.section("Why cells differ")?;
            told = true;
        }
        writeln!(page.out, "- {} at {}: {}", code(row.subject), code(endpoint), code(reason))?;
    }
    Ok(())
}
