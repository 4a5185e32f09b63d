//! What `score` costs beside a bare client that sends the same bytes to the same server; what a first run costs beside
//! a later one; memory; start; a thousand tools. Everything in one run, as numbers and ratios, with the targets beside
//! them: `cargo bench -p mcpeval-tests`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::time::Duration;

use mcpeval_tests::measure::{median, millis, peak, processor, wall};
use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};

/// Runs of which the median is taken.
const RUNS: usize = 7;

const BARE: &str = env!("CARGO_BIN_EXE_bare-client");

fn main() -> io::Result<()> {
    // Cargo says `--bench`; a test run of all targets does not mean to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let profile = if cfg!(debug_assertions) { ", debug build: the targets are for `cargo bench`" } else { "" };
    writeln!(out, "median of {RUNS} runs each, target in brackets{profile}")?;
    let fixture: Vec<OsString> = vec![programs!().server.into(), "good".into()];
    against_bare(&mut out, "fixture server", &fixture)?;
    if let Some(real) = Real::find("the benchmark on server-memory") {
        against_bare(&mut out, "server-memory", &real.node("memory"))?;
    }
    first_run(&mut out, &fixture)?;
    let place = Place::new(programs!());
    let version = median((0..RUNS).map(|_| place.run(["--version"]).wall));
    writeln!(out, "--version: {} [10 ms]", millis(version))?;
    let many: Vec<Outcome> = (0..3).map(|_| place.score(&[], "tools-1000")).collect();
    for outcome in &many {
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
    writeln!(out, "1,000 instant tools: {} [2000 ms], peak {}", millis(wall(&many)), peak(&many))
}

fn score(place: &Place, server: &[OsString]) -> Outcome {
    let file = place.path().join("memory.json");
    let mut command = place.mcpeval(["score", "--format", "json", "--confirm-read-only", "--env"]);
    command.arg(format!("MEMORY_FILE_PATH={}", file.display())).arg("--").args(server);
    let outcome = Running::start(command).finish(PATIENCE);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome
}

/// Records one run, then runs the program and the bare client in turn.
fn against_bare(out: &mut impl io::Write, name: &str, server: &[OsString]) -> io::Result<()> {
    let place = Place::new(programs!());
    let log = place.path().join("log");
    let recorder: Vec<OsString> = [BARE.into(), "record".into(), log.clone().into(), "--".into()].to_vec();
    score(&place, &[recorder, server.to_vec()].concat());
    let (mut scored, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        scored.push(score(&place, server));
        let mut command = place.command(BARE);
        command.arg("replay").arg(&log).arg("--").args(server);
        command.env("MEMORY_FILE_PATH", place.path().join("memory.json"));
        let outcome = Running::start(command).finish(PATIENCE);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        bare.push(outcome);
    }
    let sent = fs::read(&log)?.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"> ")).count();
    let (mine, theirs) = (wall(&scored), wall(&bare));
    let limit = theirs.mul_f64(1.15) + Duration::from_millis(40);
    writeln!(out, "{name}, {sent} messages, score against the bare client:")?;
    writeln!(
        out,
        "  wall: {} against {}, ratio {:.2} [{}]",
        millis(mine),
        millis(theirs),
        mine.as_secs_f64() / theirs.as_secs_f64(),
        millis(limit),
    )?;
    let (mine, theirs) = (processor(&scored), processor(&bare));
    writeln!(
        out,
        "  processor time with the servers: {} against {}, so its own is {} [60 ms]",
        millis(mine),
        millis(theirs),
        millis(mine.saturating_sub(theirs)),
    )
}

/// A home that never saw the program against one that did.
fn first_run(out: &mut impl io::Write, server: &[OsString]) -> io::Result<()> {
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let place = Place::new(programs!());
        first.push(score(&place, server));
        later.push(score(&place, server));
    }
    let (cold, warm) = (wall(&first), wall(&later));
    writeln!(
        out,
        "first run on an empty home: {} against {} on a warm one, {} more [30 ms]; peak {} [64 MB]",
        millis(cold),
        millis(warm),
        millis(cold.saturating_sub(warm)),
        peak(&first),
    )
}
