//! Area `catalog`: is every entry of `tools/list` described, typed and annotated? Makes no request.
//!
//! Score: the mean over entries of passed over applicable checks. Of entries with the same name the first counts.

use std::collections::HashSet;

use mcpeval_probe::{
    Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target, ToolClass, View, json, log, report,
};

const AREA: &str = "catalog";
/// Characters of a description that says something.
const FULL_DESCRIPTION: usize = 40;
/// Keywords by which a property schema says what it accepts.
const TYPING: [&str; 7] = ["type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"];
/// Losses shown; a larger catalog is scored all the same. Stays under the host's cap on findings.
const MAX_LOSSES: usize = 90_000;

/// One lost check of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loss {
    check: &'static str,
    reason: &'static str,
    observed: Option<u32>,
}

/// How one entry fares.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entry {
    passed: u32,
    losses: Vec<Loss>,
}

impl Entry {
    fn judge(&mut self, holds: bool, check: &'static str, reason: &'static str, observed: Option<u32>) {
        if holds {
            self.passed += 1;
        } else {
            self.losses.push(Loss { check, reason, observed });
        }
    }

    fn score(&self) -> f64 {
        let applicable = f64::from(self.passed) + f64::from(u32::try_from(self.losses.len()).unwrap_or(u32::MAX));
        100.0 * f64::from(self.passed) / applicable
    }
}

/// Judges one entry, in the order of the checks.
fn judge(class: ToolClass, entry: View<'_>) -> Entry {
    let mut judged = Entry::default();
    let parts = entry.pick(["description", "inputSchema", "annotations", "outputSchema"]);
    let Some([description, input, annotations, output]) = parts.filter(|_| class != ToolClass::Invalid) else {
        judged.judge(false, "catalog.entry", "catalog-invalid-entry", None);
        return judged;
    };

    let length = description.and_then(View::string).map_or(0, |text| text.chars().take(FULL_DESCRIPTION).count());
    let observed = u32::try_from(length).ok();
    judged.judge(length >= FULL_DESCRIPTION, "catalog.description", "catalog-short-description", observed);

    let properties = input.and_then(|schema| schema.member("properties")).and_then(View::members).unwrap_or_default();
    if !properties.is_empty() {
        let described = |property: View<'_>| {
            property.member("description").and_then(View::string).is_some_and(|text| !text.is_empty())
        };
        let typed = |property: View<'_>| property.pick(TYPING).is_some_and(|found| found.iter().any(Option::is_some));
        let every = |holds: &dyn Fn(View<'_>) -> bool| properties.iter().all(|(_, property)| holds(*property));
        judged.judge(every(&described), "catalog.params-described", "catalog-undescribed-params", None);
        judged.judge(every(&typed), "catalog.params-typed", "catalog-untyped-params", None);
    }

    let [read_only, destructive] = annotations
        .and_then(|hints| hints.pick(["readOnlyHint", "destructiveHint"]))
        .unwrap_or_default()
        .map(|hint| hint.and_then(View::bool).is_some());
    judged.judge(read_only, "catalog.read-only-declared", "catalog-read-only-undeclared", None);
    if class == ToolClass::Writer {
        judged.judge(destructive, "catalog.destructive-declared", "catalog-destructive-undeclared", None);
    }
    judged.judge(output.is_some_and(View::is_object), "catalog.output-schema", "catalog-no-output-schema", None);
    judged
}

/// The component of area `catalog`.
#[derive(Clone, Copy, Debug)]
pub struct Catalog;

impl Probe for Catalog {
    fn manifest() -> Manifest {
        let tools = "https://modelcontextprotocol.io/specification/2025-11-25/server/tools";
        let check = |id, level, title| Check::new(id, level, title).area(AREA).reference(tools);
        Manifest::new("catalog", env!("CARGO_PKG_VERSION"), "Catalog quality")
            .summary("Judges what tools/list says of each tool: descriptions, parameters, annotations, output schemas.")
            .config(json!({
                "type": "object",
                "properties": {"areas": {"type": "array", "items": {"const": AREA}}, "lanes": {"type": "integer"}},
                "additionalProperties": false
            }))
            .check(check("catalog.entry", Level::Must, "The entry is usable"))
            .check(check("catalog.description", Level::Advice, "The description has 40 or more characters"))
            .check(check("catalog.params-described", Level::Advice, "Every parameter is described"))
            .check(check("catalog.params-typed", Level::Advice, "Every parameter is typed"))
            .check(check("catalog.read-only-declared", Level::Should, "readOnlyHint is declared"))
            .check(check("catalog.destructive-declared", Level::Should, "A writer declares destructiveHint"))
            .check(check("catalog.output-schema", Level::Advice, "An output schema is declared"))
            .check(check("catalog.empty", Level::Should, "At least one tool is listed"))
            .reason(
                "catalog-invalid-entry",
                "The entry is no object, its name breaks [A-Za-z0-9_.:-]{1,128}, or its inputSchema is absent or does not \
                 compile; correct it, clients cannot call it.",
                &["catalog.entry"],
            )
            .reason(
                "catalog-short-description",
                "The description is missing or too short to choose the tool by; say in 40 or more characters what it does \
                 and when to use it.",
                &["catalog.description"],
            )
            .reason(
                "catalog-undescribed-params",
                "A top-level parameter has no description; give each one a description with its meaning and an example.",
                &["catalog.params-described"],
            )
            .reason(
                "catalog-untyped-params",
                "A top-level parameter does not say what it accepts; give each one a type, enum, const, $ref or a \
                 combination of schemas.",
                &["catalog.params-typed"],
            )
            .reason(
                "catalog-read-only-undeclared",
                "readOnlyHint is no boolean, so clients must assume a writer; declare annotations.readOnlyHint.",
                &["catalog.read-only-declared"],
            )
            .reason(
                "catalog-destructive-undeclared",
                "A writer does not say whether it destroys; declare annotations.destructiveHint as a boolean.",
                &["catalog.destructive-declared"],
            )
            .reason(
                "catalog-no-output-schema",
                "No outputSchema object is declared, so clients cannot rely on the result's shape; declare one and return \
                 structuredContent.",
                &["catalog.output-schema"],
            )
            .reason(
                "catalog-no-tools",
                "tools/list gave no tool; declare the tools capability and list the tools.",
                &["catalog.empty"],
            )
            .asks(0, 0, 0)
    }

    fn run(target: &Target, _case: &Case) -> Result<Outcome, Fault> {
        let pages = target.listing().pages;
        let tools = target.tools();
        if tools.is_empty() {
            Finding::fail("catalog.empty", "catalog-no-tools").evidence(pages).submit();
            report::score(AREA, 0.0);
            return Ok(Outcome { attempts: 0, first_failure: None });
        }

        let mut seen = HashSet::new();
        let (mut entries, mut sum, mut losses) = (0_u32, 0.0, 0_usize);
        for (position, tool) in (0..).zip(&tools) {
            if !seen.insert(tool.name.as_str()) {
                continue;
            }
            let entry = target.entry(position);
            let judged = judge(tool.class, entry.view());
            entries += 1;
            sum += judged.score();
            for loss in judged.losses {
                losses += 1;
                if losses <= MAX_LOSSES {
                    let finding = Finding::fail(loss.check, loss.reason).subject(&tool.name);
                    Finding { observed: loss.observed, ..finding }.submit();
                }
            }
        }
        if losses > MAX_LOSSES {
            log::warn(&format!("{losses} losses, of which {MAX_LOSSES} are shown"));
        }
        report::score(AREA, sum / f64::from(entries));
        Ok(Outcome { attempts: 0, first_failure: None })
    }
}

mcpeval_probe::export!(Catalog);

#[cfg(test)]
mod tests;
