//! What `index` and `promote` cost for 200,000 records, beside reading their journals plainly. Everything in one run,
//! as numbers and ratios: `cargo bench --workspace --bench findings`.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use mcpeval::store::Home;
use mcpeval::store::journal::Journal;
use mcpeval_tests::bench::{median, millis, peak};
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use mcpeval_tests::traffic::{call, days_ago, failed, home};
use serde_json::json;

/// Records in all.
const RECORDS: u64 = 200_000;
/// Records of one session.
const SESSION: u64 = 200;
/// One of so many calls fails.
const FAILS: u64 = 10;
/// Runs of which the median is taken: fewer than elsewhere, as each takes seconds.
const RUNS: usize = 5;

fn main() -> io::Result<()> {
    // Cargo says `--bench`; a test run of all targets does not mean to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let profile = if cfg!(debug_assertions) { ", debug build: the targets are for `cargo bench`" } else { "" };
    writeln!(out, "median of {RUNS} runs each, target in brackets{profile}")?;
    let place = Place::new(programs!());
    let home = home(&place);
    let bytes = generate(&home)?;
    writeln!(out, "{RECORDS} records of {} bytes on average, one of {FAILS} a failure", bytes / RECORDS)?;

    let plain = median((0..RUNS).map(|_| read(&home)).collect::<io::Result<Vec<_>>>()?.into_iter());
    let mut line = |what: &str, outcomes: &[Outcome], target: &str| {
        let wall = median(outcomes.iter().map(|outcome| outcome.wall));
        let ratio = wall.as_secs_f64() / plain.as_secs_f64();
        writeln!(out, "  {what}: {}, {ratio:.1} times reading the lines [{target}], {}", millis(wall), peak(outcomes))
    };
    let rebuilds: Vec<Outcome> = (0..RUNS).map(|_| run(&place, &["index", "--rebuild"])).collect();
    line("index of all", &rebuilds, "3000 ms, 64 MB")?;
    let again: Vec<Outcome> = (0..RUNS).map(|_| run(&place, &["index"])).collect();
    line("index when nothing has changed", &again, "100 ms")?;
    let added: Vec<Outcome> = (0..RUNS)
        .map(|n| {
            let capture = RECORDS / SESSION + 1 + n as u64;
            append(&home, capture).expect("a journal");
            run(&place, &["index"])
        })
        .collect();
    line(&format!("index after {SESSION} more"), &added, "no target")?;
    let promotions: Vec<Outcome> = (0..RUNS).map(|_| run(&place, &["promote"])).collect();
    line("promote", &promotions, "1500 ms")?;
    let findings: Vec<Outcome> = (0..RUNS).map(|_| run(&place, &["findings"])).collect();
    line("findings", &findings, "no target")?;
    writeln!(out, "reading the lines: {}", millis(plain))
}

/// Writes the journal of one day; gives its bytes.
fn generate(home: &Home) -> io::Result<u64> {
    home.prepare().map_err(io::Error::other)?;
    (0..RECORDS / SESSION).try_for_each(|capture| append(home, capture))?;
    journals(home)?.iter().map(|file| fs::metadata(file).map(|found| found.len())).sum()
}

/// Appends the records of one session.
fn append(home: &Home, capture: u64) -> io::Result<()> {
    let at = days_ago(1);
    let file = File::options().create(true).append(true).open(Journal::Calls.file(home, &at.to_string()))?;
    let mut file = BufWriter::new(file);
    for seq in 1..=SESSION {
        let at = at + SignedDuration::from_millis(i64::try_from(seq).unwrap_or_default());
        let mut line = call(capture, capture, seq, at);
        line["tool"] = format!("tool_{}", (capture * 7 + seq) % 40).into();
        line["server"] = format!("server-{}", capture % 10).into();
        if seq % FAILS == 0 {
            line = failed(line, -32_001);
            line["error"]["template_id"] = json!(format!("{:016x}", (seq / FAILS) % 5));
        }
        writeln!(file, "{line}")?;
    }
    file.flush()
}

fn journals(home: &Home) -> io::Result<Vec<std::path::PathBuf>> {
    mcpeval::store::journal::files(home, Journal::Calls).map_err(io::Error::other)
}

/// Reads the lines and does nothing with them.
fn read(home: &Home) -> io::Result<Duration> {
    let started = Instant::now();
    let mut line = Vec::new();
    for file in journals(home)? {
        let mut reader = BufReader::new(File::open(file)?);
        while reader.read_until(b'\n', &mut line)? > 0 {
            line.clear();
        }
    }
    Ok(started.elapsed())
}

fn run(place: &Place, arguments: &[&str]) -> Outcome {
    let outcome = Running::start(place.mcpeval(arguments)).finish(PATIENCE);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome
}
