//! Area `context`: how much of a context window the catalog takes. Makes no request.
//!
//! A quarter of an entry's compact JSON, rounded up, is the estimate of its tokens; every entry counts, invalid and
//! repeated ones too, since a client loads them all.

use mcpeval_probe::{Case, Check, Fault, Finding, Level, Manifest, Metric, Outcome, Probe, Target, json, report};

const AREA: &str = "context";
const WHOLE: Curve = Curve { full: 2_000.0, zero: 40_000.0 };
const HEAVIEST: Curve = Curve { full: 500.0, zero: 5_000.0 };
/// Share of the whole catalog's weight in the score; the heaviest entry has the rest.
const SHARE_OF_WHOLE: f64 = 0.75;

/// Falls with the logarithm from 100 at `full` to 0 at `zero`.
#[derive(Clone, Copy, Debug)]
struct Curve {
    full: f64,
    zero: f64,
}

impl Curve {
    fn at(self, tokens: u32) -> f64 {
        let tokens = f64::from(tokens);
        if tokens <= self.full {
            100.0
        } else if tokens >= self.zero {
            0.0
        } else {
            100.0 * (self.zero.ln() - tokens.ln()) / (self.zero.ln() - self.full.ln())
        }
    }
}

/// The weight of the whole and the heaviest entry; of equally heavy ones the first by name.
fn weigh(entries: impl Iterator<Item = (String, u32)>) -> (u32, Option<(String, u32)>) {
    let mut total = 0_u32;
    let mut heaviest: Option<(String, u32)> = None;
    for (name, tokens) in entries {
        total = total.saturating_add(tokens);
        let heavier = heaviest.as_ref().is_none_or(|(first, most)| tokens > *most || tokens == *most && name < *first);
        if heavier {
            heaviest = Some((name, tokens));
        }
    }
    (total, heaviest)
}

/// The component of area `context`.
#[derive(Clone, Copy, Debug)]
pub struct Context;

impl Probe for Context {
    fn manifest() -> Manifest {
        Manifest::new("context", env!("CARGO_PKG_VERSION"), "Context cost")
            .summary("Estimates the tokens that the catalog and its heaviest entry take in a client's context window.")
            .config(json!({
                "type": "object",
                "properties": {"areas": {"type": "array", "items": {"const": AREA}}, "lanes": {"type": "integer"}},
                "additionalProperties": false
            }))
            .check(Check::new("context.catalog", Level::Advice, "The catalog takes 2,000 tokens or fewer").area(AREA))
            .check(Check::new("context.heaviest-tool", Level::Advice, "No tool takes more than 500 tokens").area(AREA))
            .reason(
                "context-catalog-heavy",
                "The catalog fills much of a context window in every conversation; shorten descriptions and schemas, or \
                 list fewer tools.",
                &["context.catalog"],
            )
            .reason(
                "context-tool-heavy",
                "One tool's entry is very large; shorten its description, flatten its schemas, or split the tool.",
                &["context.heaviest-tool"],
            )
            .metric(Metric::number("catalog_tokens", "tokens").area(AREA))
            .metric(Metric::number("heaviest_tool_tokens", "tokens").area(AREA))
            .asks(0, 0, 0)
    }

    fn run(target: &Target, _case: &Case) -> Result<Outcome, Fault> {
        let weights =
            (0..).zip(target.tools()).map(|(position, tool)| (tool.name, target.entry(position).view().tokens()));
        let (total, heaviest) = weigh(weights);
        let most = heaviest.as_ref().map_or(0, |(_, tokens)| *tokens);
        report::measure("catalog_tokens", f64::from(total));
        report::measure("heaviest_tool_tokens", f64::from(most));

        let (whole, part) = (WHOLE.at(total), HEAVIEST.at(most));
        if whole < 100.0 {
            Finding::fail("context.catalog", "context-catalog-heavy")
                .partial(whole)
                .observed(total)
                .evidence(target.listing().pages)
                .submit();
        } else {
            Finding::pass("context.catalog").submit();
        }
        match heaviest {
            Some((name, tokens)) if part < 100.0 => Finding::fail("context.heaviest-tool", "context-tool-heavy")
                .subject(&name)
                .partial(part)
                .observed(tokens)
                .submit(),
            _ => Finding::pass("context.heaviest-tool").submit(),
        }
        report::score(AREA, SHARE_OF_WHOLE * whole + (1.0 - SHARE_OF_WHOLE) * part);
        Ok(Outcome { attempts: 0, first_failure: None })
    }
}

mcpeval_probe::export!(Context);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::Script;

    use super::*;

    #[test]
    fn the_curve_meets_its_ends() {
        for (tokens, points) in [(0, 100.0), (2_000, 100.0), (3_000, 86.47), (40_000, 0.0), (u32::MAX, 0.0)] {
            assert!((WHOLE.at(tokens) - points).abs() < 0.01, "{tokens}");
        }
        assert!((HEAVIEST.at(900) - 74.47).abs() < 0.01);
    }

    #[test]
    fn of_equally_heavy_entries_the_first_by_name_is_named() {
        let entries = [("b", 7), ("a", 7), ("c", 6), ("a", 7)].map(|(name, tokens)| (name.to_owned(), tokens));
        assert_eq!(weigh(entries.into_iter()), (27, Some(("a".to_owned(), 7))));
    }

    #[test]
    fn every_entry_counts_as_it_travelled() {
        let entry = json!({"name": "a", "inputSchema": {}});
        let spaced = format!("{{ \"name\": \"a\", \"description\": \"{}\" }}", "\\u00e9".repeat(2_000));
        let run = Script::new([entry.clone(), entry, json!(1)]).raw_entry(1, &spaced).run::<Context>(json!({}));
        // 29 and 4,029 bytes of compact JSON, and one.
        assert_eq!(run.number("catalog_tokens"), Some(f64::from(8 + 1_008 + 1)));
        assert_eq!(run.number("heaviest_tool_tokens"), Some(1_008.0));
        assert_eq!(run.lost(), [("context.heaviest-tool".into(), Some("a".into()), "context-tool-heavy".into())]);
        let score = run.score("context").unwrap();
        assert!((score - (75.0 + 0.25 * HEAVIEST.at(1_008))).abs() < 1e-9, "{score}");
    }

    #[test]
    fn a_heavy_catalog_is_partly_credited() {
        let entry = json!({"name": "a", "inputSchema": {}, "description": "x".repeat(1_900)});
        let run = Script::new((0..20).map(|_| entry.clone())).run::<Context>(json!({}));
        let loss = run.loss("context.catalog", None).unwrap();
        assert_eq!(run.lost().len(), 1, "no single tool is heavy");
        assert_eq!(loss.observed, Some(20 * 487));
        assert_eq!(loss.score, Some(47));
    }

    #[test]
    fn an_empty_catalog_is_light() {
        let run = Script::new([]).run::<Context>(json!({}));
        assert_eq!(run.score("context"), Some(100.0));
        assert!(run.lost().is_empty());
    }
}
