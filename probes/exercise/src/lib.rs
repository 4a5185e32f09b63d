//! Areas `error-honesty`, `reliability` and `coverage`: what happens when the tools are called?
//!
//! One plan of calls serves all three. Every callable tool, in catalog order, is called once with arguments its schema
//! forbids and three times with valid ones; then two sessions call at once, and a very long string is sent. Each area is
//! reported as soon as nothing more can change it, so that an exhausted budget loses only what is unfinished.

mod judge;
mod lanes;
mod manifest;
mod strain;
mod surface;
mod trial;

use mcpeval_probe::{Case, Fault, Manifest, Outcome, Probe, Target, report};

use judge::{Area, Tried};
use lanes::Trials;
use manifest::{COVERAGE, DEFAULT_LANES, HONESTY, RELIABILITY};
use surface::{Standing, Tool, Wanted, surface};

/// The component of areas `error-honesty`, `reliability` and `coverage`.
#[derive(Clone, Copy, Debug)]
pub struct Exercise;

/// Submits what an area lost, then its score.
fn submit(name: &str, area: Area) {
    for finding in area.findings {
        finding.submit();
    }
    if name == RELIABILITY {
        report::score_timed(name, area.score, area.untimed);
    } else {
        report::score(name, area.score);
    }
}

/// Tries every callable tool; one entry per tool of the surface, in its order.
fn exercise(target: &Target, tools: &[Tool], wanted: Wanted, case: &Case) -> Result<(Vec<Tried>, u32), Fault> {
    let lanes = case.config["lanes"].as_u64().and_then(|lanes| usize::try_from(lanes).ok()).unwrap_or(DEFAULT_LANES);
    let callable: Vec<&Tool> = tools.iter().filter(|tool| tool.standing == Standing::Callable).collect();
    report::progress(0, u32::try_from(callable.len()).unwrap_or(u32::MAX));
    let (trials, requests) = Trials::new(target, &callable, wanted, lanes, case.timeout_ms).run()?;
    let mut trials = trials.into_iter();
    let tried = tools.iter().map(|tool| Tried {
        name: tool.name.clone(),
        standing: tool.standing,
        trial: if tool.standing == Standing::Callable { trials.next().flatten() } else { None },
        testable: wanted.invalid && tool.standing == Standing::Skipped && tool.is_testable(target),
    });
    Ok((tried.collect(), requests))
}

fn measure_calls(tried: &[Tried]) {
    let counters = judge::counters(tried);
    for (metric, count) in [
        ("successful_calls", counters.successes),
        ("tool_errors", counters.tool_errors),
        ("rejected_calls", counters.rejected),
        ("rpc_errors", counters.rpc_errors),
        ("transport_errors", counters.transport),
        ("untested_tools", counters.untested),
    ] {
        report::measure(metric, f64::from(count));
    }
}

impl Probe for Exercise {
    fn manifest() -> Manifest {
        manifest::manifest()
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let areas = case.areas();
        // Without a choice all three are meant.
        let wants = |area| areas.is_empty() || areas.contains(&area);
        let wanted = Wanted { invalid: wants(HONESTY), valid: wants(RELIABILITY) || wants(COVERAGE) };
        let tools = surface(target);
        let (tried, mut requests) = exercise(target, &tools, wanted, case)?;

        if wants(HONESTY) {
            submit(HONESTY, judge::error_honesty(&tried));
        }
        if wants(COVERAGE) {
            let exercised = u32::try_from(judge::exercised(&tried)).unwrap_or(u32::MAX);
            report::measure("exercised", f64::from(exercised));
            submit(COVERAGE, judge::coverage(&tried));
        }
        if wants(RELIABILITY) {
            measure_calls(&tried);
            let strains = strain::strains(target, &tools, &tried, &mut requests)?;
            let area = judge::reliability(&tried, &strains);
            // As an area's score is: rounded once, half away from zero.
            report::measure("score_without_latency", (area.untimed + 1e-9).round());
            submit(RELIABILITY, area);
        }
        Ok(Outcome { attempts: requests, first_failure: None })
    }
}

mcpeval_probe::export!(Exercise);

#[cfg(test)]
mod tests;
