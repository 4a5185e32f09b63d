//! What a probe says besides findings: measurements, area scores, progress.

use crate::backend::report;
use crate::bindings::mcpeval::probe::types::{AreaScore, Measurement};
use crate::{Finding, Reading};

/// Hands over one finding.
pub fn submit(finding: &Finding) {
    report::submit(finding);
}

fn submit_reading(metric: &str, subject: Option<&str>, value: Reading) {
    report::measure(&Measurement { metric: metric.to_owned(), subject: subject.map(str::to_owned), value });
}

/// A number of a declared metric.
pub fn measure(metric: &str, value: f64) {
    submit_reading(metric, None, Reading::Number(value));
}

/// One entry of a list: a number for one tool.
pub fn measure_for(metric: &str, subject: &str, value: f64) {
    submit_reading(metric, Some(subject), Reading::Number(value));
}

/// A declared word of a declared metric.
pub fn measure_label(metric: &str, label: &str) {
    submit_reading(metric, None, Reading::Label(label.to_owned()));
}

/// This area is finished: 0 to 100, unrounded.
pub fn score(area: &str, score: f64) {
    report::score(&AreaScore { area: area.to_owned(), score, untimed: None });
}

/// As [`score`] for an area in which latency took part: `untimed` is its score with latency at its best.
pub fn score_timed(area: &str, score: f64, untimed: f64) {
    report::score(&AreaScore { area: area.to_owned(), score, untimed: Some(untimed) });
}

/// How many of the callable tools, or of a case's steps, are finished.
pub fn progress(finished: u32, total: u32) {
    report::progress(finished, total);
}
