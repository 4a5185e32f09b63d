//! What a reason means: the hints of components, and the host's own no-verdict labels.

use std::fmt::Write as _;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::guidance;
use crate::outcome::{Level, NoVerdict};
use crate::probes::Manifest;
use crate::{nearest, shown};

/// The command that gives reasons of its own.
const GUIDANCE: &str = "guidance";

/// A reason and who may give it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The label.
    pub reason: String,
    /// Kinds, `area:` and the area, or a command; none for a no-verdict label.
    pub components: Vec<String>,
    /// The checks that may give it.
    pub checks: Vec<String>,
    /// What is wrong and what to change.
    pub hint: String,
    /// What each check looks at, for people.
    #[serde(skip)]
    observed: Vec<String>,
}

/// Every reason of these components, then those of guidance and the no-verdict labels. A reason that several components
/// give stands once.
pub fn all<'a>(manifests: impl IntoIterator<Item = &'a Manifest>) -> Vec<Explanation> {
    let mut all: Vec<Explanation> = Vec::new();
    for manifest in manifests {
        for reason in &manifest.reasons {
            let place = all.iter().position(|earlier| earlier.reason == reason.label).unwrap_or_else(|| {
                all.push(Explanation {
                    reason: reason.label.clone(),
                    components: Vec::new(),
                    checks: Vec::new(),
                    hint: reason.hint.clone(),
                    observed: Vec::new(),
                });
                all.len() - 1
            });
            let Some(explanation) = all.get_mut(place) else { continue };
            for check in manifest.checks.iter().filter(|check| reason.checks.contains(&check.id)) {
                let component =
                    check.area.as_ref().map_or_else(|| manifest.kind.clone(), |area| format!("area:{area}"));
                if !explanation.components.contains(&component) {
                    explanation.components.push(component);
                }
                if !explanation.checks.contains(&check.id) {
                    explanation.checks.push(check.id.clone());
                    let reference = check.reference.as_ref().map(|reference| format!(" [{reference}]"));
                    explanation.observed.push(format!("{}{}", check.title, reference.unwrap_or_default()));
                }
            }
        }
    }
    all.extend(guidance::REASONS.iter().map(|(label, hint)| Explanation {
        reason: (*label).to_owned(),
        components: vec![GUIDANCE.to_owned()],
        checks: Vec::new(),
        hint: (*hint).to_owned(),
        observed: Vec::new(),
    }));
    all.extend(NoVerdict::ALL.map(|reason| Explanation {
        reason: reason.label().to_owned(),
        components: Vec::new(),
        checks: Vec::new(),
        hint: reason.hint().to_owned(),
        observed: Vec::new(),
    }));
    all
}

/// The explanation of one label, if there is one.
pub fn find<'a>(all: &'a [Explanation], label: &str) -> Option<&'a Explanation> {
    all.iter().find(|explanation| explanation.reason == label)
}

/// A usage error with the nearest of the reasons and of the `others` that can be explained.
pub fn unknown(all: &[Explanation], others: &[String], label: &str) -> Error {
    let reasons = all.iter().map(|explanation| explanation.reason.as_str());
    let hint = nearest::choices(label, reasons.chain(others.iter().map(String::as_str)));
    let label = shown::word(label);
    Error::usage(format!("no reason, area or kind is called \"{label}\"{hint}; mcpeval explain lists the reasons"))
}

/// Explanations for people, one after another.
pub fn text(explanations: &[&Explanation]) -> String {
    let mut out = String::new();
    for (position, explanation) in explanations.iter().enumerate() {
        if position > 0 {
            out.push('\n');
        }
        let components = &explanation.components;
        _ = writeln!(out, "{}", explanation.reason);
        let used_by = if components.is_empty() { "no verdict".to_owned() } else { components.join(", ") };
        _ = writeln!(out, "  used by: {used_by}");
        for (check, observed) in explanation.checks.iter().zip(&explanation.observed) {
            _ = writeln!(out, "  check:   {check}: {observed}");
        }
        _ = writeln!(out, "  hint:    {}", explanation.hint);
    }
    out
}

/// The labels alone, by component.
pub fn list(explanations: &[Explanation]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for explanation in explanations {
        let own = explanation.components.is_empty().then_some("no verdict");
        for component in explanation.components.iter().map(String::as_str).chain(own) {
            match groups.iter_mut().find(|(name, _)| *name == component) {
                Some((_, labels)) => labels.push(&explanation.reason),
                None => groups.push((component, vec![&explanation.reason])),
            }
        }
    }
    let mut out = String::new();
    for (component, labels) in groups {
        _ = writeln!(out, "{component}");
        for label in labels {
            _ = writeln!(out, "  {label}");
        }
    }
    out
}

/// The same as a document.
///
/// # Errors
/// None for values made here.
pub fn json(explanations: &[&Explanation]) -> Result<String> {
    let value = serde_json::to_value(explanations)
        .map_err(|error| Error::unfinished(format!("the explanations cannot be written: {error}")))?;
    Ok(super::canonical::document(&value))
}

/// The level as a word.
pub(crate) const fn level(level: Level) -> &'static str {
    match level {
        Level::Must => "must",
        Level::Should => "should",
        Level::Advice => "advice",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::battery;
    use super::*;

    #[test]
    fn a_reason_of_several_checks_stands_once() {
        let all = all(&battery());
        let skipped = find(&all, "coverage-skipped").unwrap();
        assert_eq!(skipped.components, ["area:error-honesty", "area:coverage"]);
        assert_eq!(skipped.checks, ["error-honesty.invalid-arguments", "coverage.exercised"]);
        assert_eq!(
            text(&[skipped]),
            "coverage-skipped\n  used by: area:error-honesty, area:coverage\n  check:   error-honesty.invalid-arguments: Title of error-honesty.invalid-arguments [docs/standard.md]\n  check:   coverage.exercised: Title of coverage.exercised [docs/standard.md]\n  hint:    What coverage-skipped means, and what to change.\n"
        );
        let mut labels: Vec<&str> = all.iter().map(|explanation| explanation.reason.as_str()).collect();
        let count = labels.len();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), count);
    }

    #[test]
    fn the_hosts_own_labels_are_explained_too() {
        let all = all(&battery());
        for reason in NoVerdict::ALL {
            assert_eq!(find(&all, reason.label()).unwrap().hint, reason.hint());
        }
        assert!(list(&all).contains("\nno verdict\n  evaluation-budget-exceeded\n"), "{}", list(&all));
    }

    #[test]
    fn what_guidance_says_is_explained() {
        let all = all(&battery());
        for (label, hint) in guidance::REASONS {
            assert_eq!(
                text(&[find(&all, label).unwrap()]),
                format!("{label}\n  used by: guidance\n  hint:    {hint}\n")
            );
        }
        assert!(list(&all).contains("\nguidance\n  required-tool-unavailable\n"), "{}", list(&all));
    }

    #[test]
    fn a_miss_names_the_nearest() {
        let all = all(&battery());
        assert_eq!(find(&all, "coverage-skiped"), None);
        let fault = |label: &str| unknown(&all, &["latency-budget".to_owned()], label);
        assert_eq!(fault("coverage-skiped").exit_code(), 2);
        for (label, nearest) in [("coverage-skiped", "coverage-skipped"), ("latency-bugdet", "latency-budget")] {
            assert_eq!(
                fault(label).to_string(),
                format!(
                    "no reason, area or kind is called \"{label}\"; the nearest is \"{nearest}\"; mcpeval explain lists the reasons"
                )
            );
        }
        assert!(fault(&"x".repeat(100_000)).to_string().len() < 1000);
    }

    #[test]
    fn the_document_holds_four_fields_each() {
        let all = all(&battery());
        let json: serde_json::Value = serde_json::from_str(&json(&[&all[0]]).unwrap()).unwrap();
        assert_eq!(
            json,
            serde_json::json!([{"reason": "protocol-ping-failed", "components": ["area:protocol"], "checks": ["protocol.ping"],
                "hint": "What protocol-ping-failed means, and what to change."}])
        );
    }
}
