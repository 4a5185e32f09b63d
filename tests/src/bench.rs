//! What benchmarks share: medians, and the bare client that sends the bytes of a run again.

use std::ffi::OsString;
use std::time::Duration;
use std::{fs, io};

use crate::run::{Outcome, PATIENCE, Place, Running};

/// Runs of which the median is taken.
pub const RUNS: usize = 7;

/// The bare client, which records the bytes of a run and sends them again.
#[derive(Debug, Clone, Copy)]
pub struct Bare(pub &'static str);

impl Bare {
    /// Records one run, then runs the program and the bare client in turn; gives the program's own processor time and
    /// its wall time. `own` is the target for the first, and what the program may take beyond 1.15 times the client's wall.
    ///
    /// # Errors
    /// When the numbers or the log cannot be written.
    ///
    /// # Panics
    /// When a run does not end well.
    pub fn against(
        self,
        out: &mut impl io::Write,
        name: &str,
        place: &Place,
        server: &[OsString],
        run: impl Fn(&Place, &[OsString]) -> Outcome,
        own: (Duration, Duration),
    ) -> io::Result<(Duration, Duration)> {
        let log = place.path().join("log");
        let recorder: Vec<OsString> = [self.0.into(), "record".into(), log.clone().into(), "--".into()].to_vec();
        run(place, &[recorder, server.to_vec()].concat());
        let (mut scored, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            scored.push(run(place, server));
            let mut command = place.command(self.0);
            command.arg("replay").arg(&log).arg("--").args(server);
            command.env("MEMORY_FILE_PATH", place.path().join("memory.json"));
            let outcome = Running::start(command).finish(PATIENCE);
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
            bare.push(outcome);
        }
        let sent = fs::read(&log)?.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"> ")).count();
        let wall = |outcomes: &[Outcome]| median(outcomes.iter().map(|outcome| outcome.wall));
        let cpu = |outcomes: &[Outcome]| {
            median(outcomes.iter().map(|outcome| outcome.usage.rusage.utime + outcome.usage.rusage.stime))
        };
        let (mine, theirs) = (wall(&scored), wall(&bare));
        let whole = mine;
        let limit = theirs.mul_f64(1.15) + own.1;
        writeln!(out, "{name}, {sent} messages, against the bare client:")?;
        writeln!(
            out,
            "  wall: {} against {}, ratio {:.2} [{}]",
            millis(mine),
            millis(theirs),
            mine.as_secs_f64() / theirs.as_secs_f64(),
            millis(limit),
        )?;
        let (mine, theirs) = (cpu(&scored), cpu(&bare));
        writeln!(
            out,
            "  processor time with the servers: {} against {}, so its own is {} [{}]",
            millis(mine),
            millis(theirs),
            millis(mine.saturating_sub(theirs)),
            millis(own.0),
        )?;
        Ok((mine.saturating_sub(theirs), whole))
    }
}

/// The middle one.
pub fn median(durations: impl Iterator<Item = Duration>) -> Duration {
    let mut durations: Vec<Duration> = durations.collect();
    durations.sort();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

/// In milliseconds.
pub fn millis(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1_000.0)
}

/// The highest peak of any of the runs, the servers' own included where theirs is higher.
pub fn peak(outcomes: &[Outcome]) -> String {
    let most = outcomes.iter().map(|outcome| outcome.usage.rusage.maxrss).max().unwrap_or_default();
    format!("{} MB", most.div_ceil(1_000_000))
}
