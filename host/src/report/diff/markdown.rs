//! A difference as GitHub-flavoured markdown, for comments and job summaries.

use std::fmt::{self, Write as _};

use super::super::markdown::{Page, code};
use super::{CaseDiff, Diff, Pair, Verdict};

/// The document.
pub fn render(diff: &Diff) -> String {
    let mut page = Page { out: String::new() };
    // Writing to a string cannot fail.
    _ = write(&mut page, diff);
    page.out
}

fn write(page: &mut Page, diff: &Diff) -> fmt::Result {
    writeln!(page.out, "# mcpeval: what changed\n")?;
    page.head(&["#Regressed", "#Fixed", "#Changed", "#Unchanged", "#Errored", "#Removed", "#Added"])?;
    page.row(&diff.summary.counts().map(|(_, count)| count.to_string()))?;

    page.section("Readiness")?;
    let readiness = &diff.readiness;
    page.head(&["", "#Baseline", "#Current"])?;
    let score = |score: Option<super::Percent>| score.map_or_else(|| "none".to_owned(), |score| score.0.to_string());
    page.row(&["Score".to_owned(), score(readiness.baseline), score(readiness.current)])?;
    let standard = |label: &Option<super::StandardLabel>| label.as_ref().map_or_else(|| "none".to_owned(), code);
    let standards = [standard(&readiness.baseline_standard), standard(&readiness.current_standard)];
    page.row(&["Standard".to_owned(), standards[0].clone(), standards[1].clone()])?;
    if !readiness.comparable {
        writeln!(page.out, "\nThe scores do not compare: they were not measured by one standard in the same way.")?;
    }
    if let Some(gate) = &diff.readiness_gate {
        let result = if gate.passed { "pass" } else { "fail" };
        let latency = if gate.exclude_latency { ", latency left aside" } else { "" };
        writeln!(page.out, "\nDrop {} of at most {}{latency}: {result}.", gate.drop.0, gate.max_drop.0)?;
    }

    let told: Vec<&CaseDiff> = diff.cases.iter().filter(|case| case.verdict != Verdict::Unchanged).collect();
    if !(told.is_empty() && diff.removed.is_empty() && diff.added.is_empty()) {
        page.section("Cases")?;
        page.head(&["Case", "Kind", "Verdict", "Baseline", "Current", "Measured"])?;
        for case in told {
            let reason = |reason: &Option<super::Reason>| reason.as_ref().map_or_else(|| "pass".to_owned(), code);
            page.row(&[
                code(&case.id),
                code(&case.probe),
                case.verdict.word().to_owned(),
                reason(&case.baseline_reason),
                reason(&case.current_reason),
                case.measured()
                    .map(|(name, pair)| format!("{} {}", code(name), arrow(pair)))
                    .collect::<Vec<_>>()
                    .join(", "),
            ])?;
        }
        for (ids, verdict) in [(&diff.removed, "removed"), (&diff.added, "added")] {
            for id in ids {
                page.row(&[code(id), String::new(), verdict.to_owned(), String::new(), String::new(), String::new()])?;
            }
        }
    }

    page.section("Catalog")?;
    if !diff.catalog.comparable {
        return writeln!(page.out, "Not comparable: one of the reports holds no catalog.");
    }
    if diff.catalog.changes.is_empty() {
        return writeln!(page.out, "Nothing changed that callers would notice.");
    }
    page.head(&["Severity", "Tool", "Change", "#Count", "From", "To"])?;
    for change in &diff.catalog.changes {
        let class = |class: Option<super::Class>| class.map_or("", super::Class::word).to_owned();
        page.row(&[
            change.severity.word().to_owned(),
            code(&change.tool),
            change.change.word().to_owned(),
            change.count.to_string(),
            class(change.from),
            class(change.to),
        ])?;
    }
    Ok(())
}

fn arrow(pair: &Pair) -> String {
    format!("{} → {}", pair.baseline, pair.current)
}
