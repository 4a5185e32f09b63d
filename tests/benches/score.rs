//! What `score` costs beside a bare client that sends the same bytes to the same server; what a first run costs beside
//! a later one; memory; start; a thousand tools. Everything in one run, as numbers and ratios, with the targets beside
//! them: `cargo bench -p mcpeval-tests`.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::time::Duration;

use mcpeval_tests::bench::{Bare, RUNS, median, millis, peak};
use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};

/// What the program may add: processor time, wall.
const OWN: (Duration, Duration) = (Duration::from_millis(60), Duration::from_millis(40));
const BARE: Bare = Bare(env!("CARGO_BIN_EXE_bare-client"));

fn main() -> io::Result<()> {
    // Cargo says `--bench`; a test run of all targets does not mean to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let profile = if cfg!(debug_assertions) { ", debug build: the targets are for `cargo bench`" } else { "" };
    writeln!(out, "median of {RUNS} runs each, target in brackets{profile}")?;
    let fixture: Vec<OsString> = vec![programs!().server.into(), "good".into()];
    let place = || Place::new(programs!());
    BARE.against(&mut out, "fixture server, score", &place(), &fixture, score, OWN)?;
    if let Some(real) = Real::find("the benchmark on server-memory") {
        BARE.against(&mut out, "server-memory, score", &place(), &real.node("memory"), score, OWN)?;
    }
    first_run(&mut out, &fixture)?;
    let place = Place::new(programs!());
    let version = median((0..RUNS).map(|_| place.run(["--version"]).wall));
    writeln!(out, "--version: {} [10 ms]", millis(version))?;
    let many: Vec<Outcome> = (0..3).map(|_| place.score(&[], "tools-1000")).collect();
    for outcome in &many {
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
    let wall = median(many.iter().map(|outcome| outcome.wall));
    writeln!(out, "1,000 instant tools: {} [2000 ms], peak {}", millis(wall), peak(&many))
}

fn score(place: &Place, server: &[OsString]) -> Outcome {
    let file = place.path().join("memory.json");
    let mut command = place.mcpeval(["score", "--format", "json", "--confirm-read-only", "--env"]);
    command.arg(format!("MEMORY_FILE_PATH={}", file.display())).arg("--").args(server);
    let outcome = Running::start(command).finish(PATIENCE);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome
}

/// A home that never saw the program against one that did.
fn first_run(out: &mut impl io::Write, server: &[OsString]) -> io::Result<()> {
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let place = Place::new(programs!());
        first.push(score(&place, server));
        later.push(score(&place, server));
    }
    let wall = |outcomes: &[Outcome]| median(outcomes.iter().map(|outcome| outcome.wall));
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
