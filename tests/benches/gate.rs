//! What `probe` costs per case beside a bare client that sends the same bytes, and what `compare` costs beside the slowest of
//! its targets. Everything in one run, as numbers and ratios: `cargo bench --workspace --bench gate`.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::time::Duration;

use mcpeval_tests::bench::{Bare, RUNS, median, millis};
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use serde_json::{Value, json};

const BARE: Bare = Bare(env!("CARGO_BIN_EXE_bare-client"));
/// What one case may add, start-up included: processor time, and wall.
const PER_CASE: Duration = Duration::from_micros(400);
/// Cases of the large manifest.
const CASES: u32 = 300;

fn main() -> io::Result<()> {
    // Cargo says `--bench`; a test run of all targets does not mean to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let profile = if cfg!(debug_assertions) { ", debug build: the targets are for `cargo bench`" } else { "" };
    writeln!(out, "median of {RUNS} runs each, target in brackets{profile}")?;
    let place = Place::new(programs!());
    let server: Vec<OsString> = vec![programs!().server.into(), "good".into()];
    place.file("many.json", manifest().to_string());
    let name = format!("{CASES} cases of six kinds on the fixture server");
    let (own, wall) = BARE.against(&mut out, &name, &place, &server, probe, (PER_CASE * CASES, PER_CASE * CASES))?;
    writeln!(out, "  own processor time per case: {:.3} ms, wall per case: {:.3} ms", per_case(own), per_case(wall))?;
    compare(&mut out)
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

fn per_case(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0 / f64::from(CASES)
}

fn good(place: &Place, arguments: &[&str], server: &[OsString]) -> Outcome {
    let mut command = place.mcpeval(arguments);
    if !server.is_empty() {
        command.arg("--").args(server);
    }
    let outcome = Running::start(command).finish(PATIENCE);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome
}

fn probe(place: &Place, server: &[OsString]) -> Outcome {
    good(place, &["probe", "--gate-only", "--format", "json", "--manifest", "many.json"], server)
}

/// Four targets of which the slowest decides, beside that one alone.
fn compare(out: &mut impl io::Write) -> io::Result<()> {
    let place = Place::new(programs!());
    let program = programs!().mcpeval;
    let targets: Vec<String> = [("a", ""), ("b", ""), ("c", ""), ("slow", ", \"--broken\", \"slow\"")]
        .iter()
        .map(|(name, fault)| format!("[targets.{name}]\ncommand = [{program:?}, \"demo\"{fault}]\n"))
        .collect();
    place.file("mcpeval.toml", targets.concat());
    let four = ["compare", "--target", "a", "--target", "b", "--target", "c", "--target", "slow", "--format", "json"];
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        together.push(good(&place, &four, &[]).wall);
        alone.push(good(&place, &["score", "--target", "slow", "--format", "json"], &[]).wall);
    }
    let (together, alone) = (median(together.into_iter()), median(alone.into_iter()));
    writeln!(
        out,
        "compare of 4 targets: {} against {} for the slowest alone, ratio {:.2} [1.25]",
        millis(together),
        millis(alone),
        together.as_secs_f64() / alone.as_secs_f64()
    )
}
