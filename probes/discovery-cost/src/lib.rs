//! Kind `discovery-cost`: the catalog stays within a number of tools and bytes. Makes no request of its own.
//!
//! Every entry counts, invalid and repeated ones too, since a client loads them all.

use mcpeval_probe::judge::{Fields, Trial, integer};
use mcpeval_probe::{Case, Check, Fault, Finding, Level, Manifest, Metric, Outcome, Probe, Target, report};

const LIMITS: &str = "discovery-cost.limits";
const MAX_TOOLS: &str = "max_tools";
const MAX_BYTES: &str = "max_schema_bytes";

/// The component of kind `discovery-cost`.
#[derive(Clone, Copy, Debug)]
pub struct DiscoveryCost;

impl Probe for DiscoveryCost {
    fn manifest() -> Manifest {
        Manifest::new("discovery-cost", env!("CARGO_PKG_VERSION"), "The catalog stays within tools and bytes")
            .summary("Counts the entries of tools/list and the bytes of their array as compact JSON.")
            .config(
                Fields::new()
                    .required(MAX_TOOLS, integer(1, 10_000))
                    .required(MAX_BYTES, integer(1, 10_000_000))
                    .schema(),
            )
            .check(Check::new(LIMITS, Level::Must, "Entries and their bytes are within max_tools and max_schema_bytes"))
            .reason(
                "discovery-limit-exceeded",
                "tools/list gives more tools or bytes than the case allows, and every client loads them all. Merge or remove \
                 tools and shorten descriptions and schemas; raise the bound only if the growth was meant.",
                &[LIMITS],
            )
            .metric(Metric::number("tool_count", "tools"))
            .metric(Metric::number("schema_bytes", "bytes"))
            .asks(0, 0, 0)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let (max_tools, max_bytes) = (case.number(MAX_TOOLS)?, case.number(MAX_BYTES)?);
        let listing = target.listing();
        if let Some(fault) = listing.fault {
            return Err(fault);
        }
        let lengths = (0..).zip(target.tools()).map(|(position, _)| target.entry(position).view().compact_len());
        let (count, bytes) = array_of(lengths);
        report::measure("tool_count", f64::from(count));
        report::measure("schema_bytes", f64::from(bytes));

        let mut trial = Trial::new(&[LIMITS]);
        trial.attempt(listing.pages);
        let broken = [(MAX_TOOLS, max_tools, count), (MAX_BYTES, max_bytes, bytes)];
        Ok(match broken.into_iter().find(|(_, limit, observed)| observed > limit) {
            Some((name, limit, observed)) => {
                trial.fail(Finding::fail(LIMITS, "discovery-limit-exceeded").bound(name, limit, observed))
            }
            None => trial.pass(),
        })
    }
}

/// The number of entries with these lengths, and the length of the array they make: brackets, and commas between.
fn array_of(lengths: impl Iterator<Item = usize>) -> (u32, u32) {
    let (count, bytes) = lengths.fold((0_usize, 0_usize), |(count, bytes), length| (count + 1, bytes + length));
    let whole = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    (whole(count), whole(bytes + 2 + count.saturating_sub(1)))
}

mcpeval_probe::export!(DiscoveryCost);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Run, Script};
    use mcpeval_probe::{Bound, Cause, Value, json};

    use super::*;

    /// Entries of 8 bytes each.
    fn run(entries: usize, max_tools: u32, max_bytes: u32) -> Run {
        let entries: Vec<Value> = (0..entries).map(|_| json!({"n": 12})).collect();
        Script::new(entries).run::<DiscoveryCost>(json!({"max_tools": max_tools, "max_schema_bytes": max_bytes}))
    }

    fn bound(run: &Run) -> Option<(&str, u32, u32)> {
        let Bound { name, limit, observed } = run.findings[0].bound.as_ref()?;
        Some((name, *limit, *observed))
    }

    #[test]
    fn both_bounds_are_inclusive() {
        let run = run(3, 3, 2 + 3 * 8 + 2);
        assert_eq!(run.lost(), []);
        assert_eq!(run.outcome.as_ref().unwrap(), &Outcome { attempts: 1, first_failure: None });
        assert_eq!((run.number("tool_count"), run.number("schema_bytes")), (Some(3.0), Some(28.0)));
        assert_eq!(run.requests(), 0);
    }

    #[test]
    fn a_broken_bound_is_named_and_the_number_of_tools_first() {
        for (max_tools, max_bytes, broken) in
            [(2, 28, ("max_tools", 2, 3)), (3, 27, ("max_schema_bytes", 27, 28)), (1, 1, ("max_tools", 1, 3))]
        {
            let run = run(3, max_tools, max_bytes);
            assert_eq!(run.lost(), [(LIMITS.into(), None, "discovery-limit-exceeded".into())]);
            assert_eq!(bound(&run), Some(broken));
            assert_eq!(run.number("tool_count"), Some(3.0), "measured all the same");
            assert_eq!(run.outcome.unwrap(), Outcome { attempts: 1, first_failure: Some(1) });
        }
    }

    #[test]
    fn an_array_has_brackets_and_commas() {
        assert_eq!(array_of([].into_iter()), (0, "[]".len().try_into().unwrap()));
        assert_eq!(array_of([2].into_iter()), (1, "[{}]".len().try_into().unwrap()));
        assert_eq!(array_of([2, 2, 1].into_iter()), (3, "[{},{},1]".len().try_into().unwrap()));
    }

    #[test]
    fn a_listing_that_broke_off_is_no_verdict() {
        let script = Script::new([]).listing_fault(Cause::TimedOut);
        let run = script.run::<DiscoveryCost>(json!({"max_tools": 1, "max_schema_bytes": 1}));
        assert_eq!(run.outcome.unwrap_err().cause, Cause::TimedOut);
        assert!(run.findings.is_empty() && run.measurements.is_empty());
    }
}
