//! Whether what a report says adds up: verdicts, totals, scores and floors, each from the parts that it is made of.

use super::super::assemble::{Floors, floor_gate};
use super::super::document::{
    AreaReport, Badge, Case, Contract, Measured, PerTool, Percent, Readiness, Report, SCHEMA, UNTIMED,
};
use super::vocabulary::Fault;
use crate::outcome::NoVerdict;
use crate::standard::{RESERVED_PREFIX, weighted};

type Checked = Result<(), Fault>;

/// Refuses with the JSON Pointer of what contradicts the rest. Of an earlier document, whose sums were not of this kind,
/// nothing is held against it.
pub(super) fn check(report: &Report) -> Checked {
    if report.schema != SCHEMA {
        return Ok(());
    }
    report.cases.iter().enumerate().try_for_each(|(at, case)| under(&format!("/cases/{at}"), check_case(case)))?;
    check_gate(report)?;
    check_parts(report)?;
    if let Some(readiness) = &report.readiness {
        under("/readiness", check_readiness(readiness))?;
    }
    check_floors(report)?;
    if let Some(catalog) = &report.catalog {
        check_catalog(catalog, report.readiness.as_ref())?;
    }
    let ended_well = report.exit_code() == 0;
    if report.passed != ended_well {
        let why = if ended_well { "every part of it passed" } else { "a part of it did not pass" };
        return fault("/passed", format!("must be {ended_well}: {why}"));
    }
    Ok(())
}

fn fault(pointer: &str, what: impl Into<String>) -> Checked {
    Err((pointer.to_owned(), what.into()))
}

fn under(pointer: &str, checked: Checked) -> Checked {
    checked.map_err(|(inner, what)| (format!("{pointer}{inner}"), what))
}

fn check_case(case: &Case) -> Checked {
    let errored = case.reason.as_ref().is_some_and(|reason| NoVerdict::from_label(reason.as_str()).is_some());
    match (case.passed, &case.reason) {
        (true, Some(_)) => return fault("/reason", "must be null: the case passed"),
        (false, None) => return fault("/reason", "must not be null: the case did not pass"),
        _ => {}
    }
    if case.hint.is_some() != case.reason.is_some() {
        return fault("/hint", "a case has a hint exactly if it has a reason");
    }
    let failed = !case.passed && !errored;
    if case.first_failure.is_some() && !failed {
        return fault("/first_failure", "must be null: the case did not fail");
    }
    if case.detail.is_some() && !failed {
        return fault("/detail", "must be null: the case did not fail");
    }
    if let Some(first) = case.first_failure.filter(|first| case.attempts > 0 && *first > case.attempts) {
        return fault("/first_failure", format!("{first} is more than the attempts, {}", case.attempts));
    }
    for (name, measured) in &case.measurements {
        if let Measured::PerTool(list) = measured
            && !list.is_sorted_by(in_order)
        {
            return fault(&format!("/measurements/{name}"), "must be sorted, largest first, then by tool");
        }
    }
    Ok(())
}

/// Larger values first, then by tool.
fn in_order(left: &PerTool, right: &PerTool) -> bool {
    let size = |entry: &PerTool| entry.value.as_f64().unwrap_or_default();
    size(right).total_cmp(&size(left)).then_with(|| left.tool.cmp(&right.tool)).is_le()
}

fn check_gate(report: &Report) -> Checked {
    let Some(gate) = report.gate else {
        return if report.cases.is_empty() { Ok(()) } else { fault("/gate", "must not be null: there are cases") };
    };
    let passed = report.cases.iter().filter(|case| case.passed).count();
    for (field, said, counted) in [("total", gate.total, report.cases.len()), ("passed", gate.passed, passed)] {
        if u32::try_from(counted) != Ok(said) {
            return fault(&format!("/gate/{field}"), format!("must be {counted}, the number of such cases"));
        }
    }
    Ok(())
}

/// A readiness that was measured has no error, and one that was not has one if anything of it is there.
fn check_parts(report: &Report) -> Checked {
    match (&report.readiness, &report.readiness_partial, &report.readiness_error) {
        (Some(_), _, Some(_)) => fault("/readiness_error", "must be null: the readiness was measured"),
        (Some(_), Some(_), _) => fault("/readiness_partial", "must be absent: the readiness was measured"),
        (None, Some(_), None) => fault("/readiness_error", "must say why the battery did not finish"),
        (None, Some(partial), Some(_)) if partial.tools.finished > partial.tools.total => {
            fault("/readiness_partial/tools/finished", "is more than the total")
        }
        _ => Ok(()),
    }
}

fn check_readiness(readiness: &Readiness) -> Checked {
    let areas = &readiness.areas;
    let sum: u32 = areas.iter().map(|area| area.weight).sum();
    if sum != 100 {
        return fault("/areas", format!("the weights add up to {sum}, not to 100"));
    }
    for (at, area) in areas.iter().enumerate() {
        if area.measurements.get(UNTIMED).is_some_and(|untimed| *untimed > 100) {
            return fault(&format!("/areas/{at}/measurements/{UNTIMED}"), "must be an integer from 0 to 100");
        }
    }
    for (field, said, untimed) in
        [("score", readiness.score, false), ("score_without_latency", readiness.score_without_latency, true)]
    {
        let folded = folded(areas, untimed);
        if said != folded {
            return fault(&format!("/{field}"), format!("must be {}, the weighted mean of the areas", folded.0));
        }
    }
    if readiness.badge != Badge::of(readiness.score.0) {
        return fault("/badge", "is not the badge of the score");
    }
    if readiness.attested_read_only != readiness.measurement_profile.attested_read_only {
        return fault("/attested_read_only", "is not what the measurement profile says");
    }
    let (surface, assessment) = (&readiness.surface, &readiness.assessment);
    if surface.read_only.checked_add(surface.writers) != Some(surface.tools) {
        return fault("/surface/tools", "must be the sum of read_only and writers");
    }
    if readiness.standard.as_str().starts_with(RESERVED_PREFIX) && surface.exercised > surface.read_only {
        return fault("/surface/exercised", "is more than the tools that may be called, read_only");
    }
    for (field, said, counted, of) in [
        ("tools_exercised", assessment.tools_exercised, surface.exercised, "exercised"),
        ("read_only_tools", assessment.read_only_tools, surface.read_only, "read_only"),
        ("writer_tools_excluded", assessment.writer_tools_excluded, surface.writers, "writers"),
    ] {
        if said != counted {
            return fault(&format!("/assessment/{field}"), format!("must be {counted}, as {of} of the surface"));
        }
    }
    Ok(())
}

/// The score that the areas add up to.
fn folded(areas: &[AreaReport], untimed: bool) -> Percent {
    Percent(weighted(areas.iter().map(|area| (area.weight, area.observed(untimed).0))))
}

fn check_floors(report: &Report) -> Checked {
    let Some(gate) = &report.readiness_gate else { return Ok(()) };
    if let Some(readiness) = &report.readiness {
        let has = |name: &str| readiness.areas.iter().any(|area| area.name.as_str() == name);
        if let Some(name) = gate.min_areas.keys().find(|name| !has(name)) {
            return fault(&format!("/readiness_gate/min_areas/{name}"), "the readiness has no such area");
        }
    }
    let floors = Floors {
        min_score: gate.min_score.map(|floor| floor.0),
        min_areas: gate.min_areas.iter().map(|(name, floor)| (name.clone(), floor.0)).collect(),
        exclude_latency: gate.exclude_latency,
    };
    let held = floor_gate(&floors, report.readiness.as_ref());
    if gate.shortfalls != held.shortfalls {
        return fault("/readiness_gate/shortfalls", "must hold exactly the floors that the readiness misses");
    }
    if gate.passed != held.passed {
        let must = held.passed.map_or_else(|| "null".to_owned(), |passed| passed.to_string());
        return fault("/readiness_gate/passed", format!("must be {must}, as the shortfalls say"));
    }
    Ok(())
}

fn check_catalog(catalog: &Contract, readiness: Option<&Readiness>) -> Checked {
    if !catalog.tools.is_sorted_by(|left, right| left.name <= right.name) {
        return fault("/catalog/tools", "must be sorted by name");
    }
    for (at, tool) in catalog.tools.iter().enumerate() {
        if !tool.required.is_sorted_by(|left, right| left < right) {
            return fault(&format!("/catalog/tools/{at}/required"), "must be sorted, and hold nothing twice");
        }
    }
    match readiness {
        Some(readiness) if catalog.tools.len() > usize::try_from(readiness.surface.tools).unwrap_or(usize::MAX) => {
            fault("/readiness/surface/tools", "is less than the tools of the catalog")
        }
        _ => Ok(()),
    }
}
