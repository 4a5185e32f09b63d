//! Kind `token-cost`: the catalog stays within an estimate of tokens. Makes no request of its own.
//!
//! Every entry counts, invalid and repeated ones too, since a client loads them all.

use mcpeval_probe::judge::{Fields, Trial, integer};
use mcpeval_probe::{Case, Check, Fault, Finding, Level, Manifest, Metric, Outcome, Probe, Target, log, report};

const BUDGET: &str = "token-cost.budget";
const MAX_TOTAL: &str = "max_total_tokens";
const MAX_TOOL: &str = "max_tool_tokens";
/// Entries that are listed one by one: as many as a catalog may have by `discovery-cost`, and fewer than the host takes.
const MAX_LISTED: usize = 10_000;

/// The component of kind `token-cost`.
#[derive(Clone, Copy, Debug)]
pub struct TokenCost;

impl Probe for TokenCost {
    fn manifest() -> Manifest {
        Manifest::new("token-cost", env!("CARGO_PKG_VERSION"), "The catalog stays within a budget of tokens")
            .summary("Estimates the tokens of each entry of tools/list: a quarter of its compact JSON, rounded up.")
            .config(
                Fields::new()
                    .required(MAX_TOTAL, integer(1, 1_000_000))
                    .optional(MAX_TOOL, integer(1, 100_000))
                    .schema(),
            )
            .check(Check::new(BUDGET, Level::Must, "The catalog and each tool are within their tokens"))
            .reason(
                "token-budget-exceeded",
                "The catalog, or one tool of it, takes more tokens of every conversation than the case allows. Shorten \
                 descriptions, flatten schemas, split or remove tools; raise the bound only if the growth was meant.",
                &[BUDGET],
            )
            .metric(Metric::number("tool_count", "tools"))
            .metric(Metric::number("total_tokens", "tokens"))
            .metric(Metric::number("per_tool", "tokens"))
            .asks(0, 0, 0)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let max_total = case.number(MAX_TOTAL)?;
        let max_tool = case.field(MAX_TOOL).map(|_| case.number(MAX_TOOL)).transpose()?;
        let listing = target.listing();
        if let Some(fault) = listing.fault {
            return Err(fault);
        }
        let weights = (0..).zip(target.tools());
        let weights =
            heaviest_first(weights.map(|(position, tool)| (tool.name, target.entry(position).view().tokens())));
        let total = weights.iter().fold(0_u32, |total, (_, tokens)| total.saturating_add(*tokens));
        report::measure("tool_count", f64::from(u32::try_from(weights.len()).unwrap_or(u32::MAX)));
        report::measure("total_tokens", f64::from(total));
        for (tool, tokens) in weights.iter().take(MAX_LISTED) {
            report::measure_for("per_tool", tool, f64::from(*tokens));
        }
        if weights.len() > MAX_LISTED {
            log::warn(&format!("of {} entries the {MAX_LISTED} heaviest are listed", weights.len()));
        }

        let mut trial = Trial::new(&[BUDGET]);
        trial.attempt(listing.pages);
        let lost = |name, limit, observed| Finding::fail(BUDGET, "token-budget-exceeded").bound(name, limit, observed);
        if total > max_total {
            return Ok(trial.fail(lost(MAX_TOTAL, max_total, total)));
        }
        Ok(match (max_tool, weights.first()) {
            (Some(limit), Some((tool, tokens))) if *tokens > limit => {
                trial.fail(lost(MAX_TOOL, limit, *tokens).subject(tool))
            }
            _ => trial.pass(),
        })
    }
}

/// Of equally heavy entries the first by name comes first.
fn heaviest_first(weights: impl Iterator<Item = (String, u32)>) -> Vec<(String, u32)> {
    let mut weights: Vec<_> = weights.collect();
    weights.sort_by(|(left, light), (right, heavy)| heavy.cmp(light).then_with(|| left.cmp(right)));
    weights
}

mcpeval_probe::export!(TokenCost);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Run, Script};
    use mcpeval_probe::{Bound, Cause, Reading, Value, json};

    use super::*;

    fn run(config: Value) -> Run {
        let tool = |name: &str, padding: usize| json!({"name": name, "inputSchema": {}, "d": "x".repeat(padding)});
        // 36 and 37 bytes of compact JSON, and an entry of one.
        Script::new([tool("b", 0), tool("a", 1), json!(1)]).run::<TokenCost>(config)
    }

    fn bound(run: &Run) -> Option<(&str, u32, u32)> {
        let Bound { name, limit, observed } = run.findings[0].bound.as_ref()?;
        Some((name, *limit, *observed))
    }

    #[test]
    fn both_bounds_are_inclusive_and_every_entry_is_measured() {
        let run = run(json!({"max_total_tokens": 20, "max_tool_tokens": 10}));
        assert_eq!(run.lost(), []);
        assert_eq!(run.outcome.as_ref().unwrap(), &Outcome { attempts: 1, first_failure: None });
        assert_eq!((run.number("tool_count"), run.number("total_tokens")), (Some(3.0), Some(20.0)));
        let list: Vec<_> = run.measurements.iter().filter(|(metric, ..)| metric == "per_tool").collect();
        let entry = |name: &str, tokens| ("per_tool".to_owned(), Some(name.to_owned()), Reading::Number(tokens));
        assert_eq!(list, [&entry("a", 10.0), &entry("b", 9.0), &entry("invalid-name#2", 1.0)]);
    }

    #[test]
    fn a_broken_bound_is_named_and_the_total_first() {
        for (config, broken, subject) in [
            (json!({"max_total_tokens": 19}), ("max_total_tokens", 19, 20), None),
            (json!({"max_total_tokens": 20, "max_tool_tokens": 9}), ("max_tool_tokens", 9, 10), Some("a".to_owned())),
            (json!({"max_total_tokens": 1, "max_tool_tokens": 1}), ("max_total_tokens", 1, 20), None),
        ] {
            let run = run(config);
            assert_eq!(run.lost(), [(BUDGET.into(), subject, "token-budget-exceeded".into())]);
            assert_eq!(bound(&run), Some(broken));
            assert_eq!(run.outcome.unwrap(), Outcome { attempts: 1, first_failure: Some(1) });
        }
    }

    #[test]
    fn without_a_bound_for_one_tool_any_may_be_heavy() {
        assert_eq!(run(json!({"max_total_tokens": 20})).lost(), []);
        assert_eq!(run(json!({"max_total_tokens": 20, "max_tool_tokens": null})).lost(), []);
    }

    #[test]
    fn of_equally_heavy_entries_the_first_by_name_is_named() {
        let weights = [("b", 7), ("c", 8), ("a", 7)].map(|(name, tokens)| (name.to_owned(), tokens));
        let names: Vec<_> = heaviest_first(weights.into_iter()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["c", "a", "b"]);
    }

    #[test]
    fn of_very_many_entries_the_heaviest_are_listed() {
        let many = (0..=MAX_LISTED).map(|number| if number == 0 { json!(1) } else { json!("12345") });
        let run = Script::new(many).run::<TokenCost>(json!({"max_total_tokens": 1_000_000}));
        let listed = run.measurements.iter().filter(|(metric, ..)| metric == "per_tool");
        assert_eq!(listed.count(), MAX_LISTED);
        let light = Some("invalid-name#0".to_owned());
        assert!(run.measurements.iter().all(|(_, subject, _)| *subject != light), "the lightest is left out");
        assert_eq!(run.number("tool_count"), Some(10_001.0));
        assert_eq!(run.log.len(), 1);
    }

    #[test]
    fn a_listing_that_broke_off_is_no_verdict() {
        let run = Script::new([]).listing_fault(Cause::Closed).run::<TokenCost>(json!({"max_total_tokens": 1}));
        assert_eq!(run.outcome.unwrap_err().cause, Cause::Closed);
        assert!(run.findings.is_empty() && run.measurements.is_empty());
    }
}
