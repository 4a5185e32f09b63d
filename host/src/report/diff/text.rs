//! A difference as lines for people and for `grep`; what is unchanged is only counted.

use std::fmt::{self, Display, Write as _};

use anstyle::Style;

use super::super::document::{Percent, StandardLabel};
use super::super::text::{BAD, FAIR, GOOD};
use super::{CaseDiff, Diff, Pair, Severity, Verdict};

/// The lines, each with its newline; in colours, if `styled`.
pub fn render(diff: &Diff, styled: bool) -> String {
    let mut lines = Lines { out: String::new(), styled };
    // Writing to a string cannot fail.
    _ = lines.diff(diff);
    lines.out
}

struct Lines {
    out: String,
    styled: bool,
}

impl Lines {
    fn diff(&mut self, diff: &Diff) -> fmt::Result {
        for case in diff.cases.iter().filter(|case| case.verdict != Verdict::Unchanged) {
            self.case(case)?;
        }
        for id in &diff.removed {
            writeln!(self.out, "removed {id}")?;
        }
        for id in &diff.added {
            writeln!(self.out, "added {id}")?;
        }
        self.readiness(diff)?;
        if let Some(gate) = &diff.readiness_gate {
            let verdict = if gate.passed { self.paint(GOOD, "pass") } else { self.paint(BAD, "fail") };
            let latency = if gate.exclude_latency { " exclude_latency" } else { "" };
            writeln!(self.out, "drop observed={} max={}{latency} {verdict}", gate.drop.0, gate.max_drop.0)?;
        }
        if !diff.catalog.comparable {
            writeln!(self.out, "catalog not comparable")?;
        }
        for change in &diff.catalog.changes {
            let severity = self.paint(style(change.severity), change.severity.word());
            write!(self.out, "catalog {severity} {} {} count={}", change.tool, change.change.word(), change.count)?;
            if let (Some(from), Some(to)) = (change.from, change.to) {
                write!(self.out, " from={} to={}", from.word(), to.word())?;
            }
            self.out.push('\n');
        }
        let summary = &diff.summary;
        writeln!(
            self.out,
            "summary regressed={} fixed={} changed={} unchanged={} errored={} removed={} added={}",
            summary.regressed,
            summary.fixed,
            summary.changed,
            summary.unchanged,
            summary.errored,
            summary.removed,
            summary.added
        )
    }

    fn case(&mut self, case: &CaseDiff) -> fmt::Result {
        let style = match case.verdict {
            Verdict::Regressed => BAD,
            Verdict::Fixed | Verdict::Unchanged => GOOD,
            Verdict::Changed | Verdict::Errored => FAIR,
        };
        let verdict = self.paint(style, case.verdict.word());
        write!(self.out, "{} {} {verdict}", case.id, case.probe)?;
        for (name, reason) in [("baseline_reason", &case.baseline_reason), ("reason", &case.current_reason)] {
            if let Some(reason) = reason {
                write!(self.out, " {name}={reason}")?;
            }
        }
        let measured =
            [("total_tokens", &case.measurements.total_tokens), ("latency_ms", &case.measurements.latency_ms)];
        for (name, pair) in measured {
            if let Some(Pair { baseline, current }) = pair {
                write!(self.out, " {name}={baseline}->{current}")?;
            }
        }
        self.out.push('\n');
        Ok(())
    }

    fn readiness(&mut self, diff: &Diff) -> fmt::Result {
        let readiness = &diff.readiness;
        if readiness.baseline.is_none() && readiness.current.is_none() {
            return Ok(());
        }
        let score = |score: Option<Percent>| score.map_or_else(|| "none".to_owned(), |score| score.0.to_string());
        write!(self.out, "readiness {}->{}", score(readiness.baseline), score(readiness.current))?;
        // A score without a standard is the part of the cases that passed, as an earlier version had it.
        let standard = |score: Option<Percent>, standard: &Option<StandardLabel>| {
            let legacy = score.map(|_| "legacy".to_owned());
            standard.as_ref().map(ToString::to_string).or(legacy).unwrap_or_else(|| "none".to_owned())
        };
        let then = standard(readiness.baseline, &readiness.baseline_standard);
        let now = standard(readiness.current, &readiness.current_standard);
        if then == now {
            write!(self.out, " {then}")?;
        } else {
            write!(self.out, " {then}->{now}")?;
        }
        if let Some(obstacle) = (!readiness.comparable).then(|| readiness.obstacle()) {
            write!(self.out, " not comparable: {obstacle}")?;
        }
        self.out.push('\n');
        Ok(())
    }

    fn paint(&self, style: Style, text: impl Display) -> String {
        if self.styled { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}

const fn style(severity: Severity) -> Style {
    match severity {
        Severity::Breaking => BAD,
        Severity::Review => FAIR,
        Severity::Compatible => GOOD,
    }
}
