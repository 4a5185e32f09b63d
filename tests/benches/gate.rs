//! What the gate costs: 300 cases on one fast server beside a bare client that sends the same bytes to the same server,
//! and four targets at once beside the slowest of them. Everything in one run, as numbers and ratios:
//! `cargo bench -p mcpeval-tests --bench gate`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::time::Duration;

use mcpeval_tests::measure::{median, millis, peak, processor, wall};
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use serde_json::{Value, json};

/// Runs of which the median is taken.
const RUNS: usize = 7;

/// Cases of one manifest.
const CASES: u32 = 300;

const BARE: &str = env!("CARGO_BIN_EXE_bare-client");

fn main() -> io::Result<()> {
    // Cargo says `--bench`; a test run of all targets does not mean to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let profile = if cfg!(debug_assertions) { ", debug build: numbers are for `cargo bench`" } else { "" };
    writeln!(out, "median of {RUNS} runs each{profile}")?;
    cases(&mut out)?;
    targets(&mut out)
}

/// Cases of six kinds in turn, all of which pass.
fn manifest() -> Value {
    let case = |number: u32| {
        let query = json!({"query": format!("saw {number}")});
        let mut case = match number % 6 {
            0 => json!({"probe": "schema-guessability", "tool": "find_item", "arguments": query}),
            1 => json!({"probe": "instruction-fidelity", "tool": "find_item", "arguments": query,
                "expect": {"outcome": "ok", "equals_paths": {"/structuredContent/found": true}}}),
            2 => json!({"probe": "output-schema", "tool": "find_item", "arguments": query}),
            3 => {
                json!({"probe": "latency-budget", "tool": "find_item", "arguments": query, "attempts": 1, "max_latency_ms": 10_000})
            }
            4 => json!({"probe": "pagination", "max_pages": 5}),
            _ => json!({"probe": "discovery-cost", "max_tools": 10, "max_schema_bytes": 10_000}),
        };
        case["id"] = format!("case-{number}").into();
        case["access"] = "read_only".into();
        case
    };
    json!({"version": 1, "probes": (0..CASES).map(case).collect::<Vec<_>>()})
}

fn finish(command: std::process::Command) -> Outcome {
    let outcome = Running::start(command).finish(PATIENCE);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome
}

/// Records one run, then runs the gate and the bare client in turn.
fn cases(out: &mut impl io::Write) -> io::Result<()> {
    let place = Place::new(programs!());
    let file = place.file("manifest.json", manifest().to_string());
    let log = place.path().join("log");
    let server: Vec<OsString> = vec![programs!().server.into(), "good".into()];
    let probe = |before: &[OsString]| {
        let mut command = place.mcpeval(["probe", "--gate-only", "--format", "json", "--manifest"]);
        command.arg(&file).arg("--").args(before).args(&server);
        finish(command)
    };
    probe(&[BARE.into(), "record".into(), log.clone().into(), "--".into()]);
    let (mut gated, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        gated.push(probe(&[]));
        let mut command = place.command(BARE);
        command.arg("replay").arg(&log).arg("--").args(&server);
        bare.push(finish(command));
    }
    let sent = fs::read(&log)?.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"> ")).count();
    let report = gated.last().map(Outcome::report).expect("it ran");
    assert_eq!(report.at("/gate"), &json!({"passed": CASES, "total": CASES}));
    let (mine, theirs) = (wall(&gated), wall(&bare));
    writeln!(out, "{CASES} cases, {sent} messages, probe against the bare client:")?;
    writeln!(
        out,
        "  wall: {} against {}, ratio {:.2}",
        millis(mine),
        millis(theirs),
        mine.as_secs_f64() / theirs.as_secs_f64()
    )?;
    let (mine, theirs) = (processor(&gated), processor(&bare));
    let own = mine.saturating_sub(theirs);
    writeln!(
        out,
        "  processor time with the server: {} against {}, ratio {:.2}; its own is {} a case",
        millis(mine),
        millis(theirs),
        mine.as_secs_f64() / theirs.as_secs_f64(),
        millis(own / CASES),
    )?;
    writeln!(out, "  peak {}", peak(&gated))
}

/// Four targets that take their time, alone and at once.
fn targets(out: &mut impl io::Write) -> io::Result<()> {
    let place = Place::new(programs!());
    let pause = |number: u32| {
        json!({
            "probe": "instruction-fidelity", "id": format!("pause-{number}"), "access": "read_only", "tool": "pause",
            "arguments": {"ms": 100}, "expect": {"outcome": "ok"},
        })
    };
    let cases: Vec<Value> = (0..10).map(pause).collect();
    let file = place.file("manifest.json", json!({"version": 1, "probes": cases}).to_string());
    let served: Vec<_> = (0..4).map(|_| place.serve("workshop")).collect();
    let alone: Vec<Duration> = served
        .iter()
        .map(|served| {
            median((0..3).map(|_| {
                let mut command = place.mcpeval(["probe", "--gate-only", "--manifest"]);
                command.arg(&file).args(["--url", &served.url]);
                finish(command).wall
            }))
        })
        .collect();
    let together = median((0..3).map(|_| {
        let mut command = place.mcpeval(["compare", "--gate-only", "--manifest"]);
        command.arg(&file);
        for (number, served) in served.iter().enumerate() {
            command.arg("--endpoint").arg(format!("shop-{number}={}", served.url));
        }
        finish(command).wall
    }));
    let slowest = alone.iter().max().copied().unwrap_or_default();
    writeln!(
        out,
        "compare of {} targets: {} against {} for the slowest alone, ratio {:.2}; one after another {}",
        alone.len(),
        millis(together),
        millis(slowest),
        together.as_secs_f64() / slowest.as_secs_f64(),
        millis(alone.iter().sum()),
    )
}
