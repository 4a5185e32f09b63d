//! Numbers of benchmarks.

use std::time::Duration;

use crate::run::Outcome;

/// The middle of several times.
pub fn median(durations: impl Iterator<Item = Duration>) -> Duration {
    let mut durations: Vec<Duration> = durations.collect();
    durations.sort();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

/// Median time from start to end.
pub fn wall(outcomes: &[Outcome]) -> Duration {
    median(outcomes.iter().map(|outcome| outcome.wall))
}

/// Median processor time, that of the servers included.
pub fn processor(outcomes: &[Outcome]) -> Duration {
    median(outcomes.iter().map(|outcome| outcome.usage.rusage.utime + outcome.usage.rusage.stime))
}

/// A time in milliseconds, for people.
pub fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1_000.0)
}

/// The highest peak of any of the runs, the servers' own included where theirs is higher.
pub fn peak(outcomes: &[Outcome]) -> String {
    let most = outcomes.iter().map(|outcome| outcome.usage.rusage.maxrss).max().unwrap_or_default();
    format!("{} MB", most.div_ceil(1_000_000))
}
