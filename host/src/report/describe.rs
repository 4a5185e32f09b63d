//! What a component judges, or one area of it, for people: its checks, reasons, measurements and fields.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::catalogue::Shown;
use super::explain::level;
use crate::probes::{Access, Manifest};

/// The component of that kind, or area with or without its `area:`; of equal names the kind.
pub fn find<'a, 'b>(components: &'b [Shown<'a>], name: &str) -> Option<&'b Shown<'a>> {
    let goes_by = |shown: &&Shown<'_>| shown.names().iter().any(|own| own == name);
    components.iter().find(goes_by).or_else(|| components.iter().find(|shown| shown.is(name)))
}

/// The names that [`find`] knows: kinds, and areas without their `area:`.
pub fn names(components: &[Shown<'_>]) -> Vec<String> {
    let bare = |name: String| name.strip_prefix("area:").map_or_else(|| name.clone(), str::to_owned);
    components.iter().flat_map(Shown::names).map(bare).collect()
}

/// A component by one of its names; of several areas only the one that is named.
pub fn text(shown: &Shown<'_>, name: &str) -> String {
    let manifest = shown.manifest;
    let bare = name.strip_prefix("area:").unwrap_or(name);
    let area = manifest.areas().into_iter().find(|area| *area == bare);
    let mut out = String::new();
    // Writing to a string cannot fail.
    _ = writeln!(out, "{}", area.map_or_else(|| manifest.kind.clone(), |area| format!("area:{area}")));
    _ = writeln!(out, "  judges:    {}", manifest.title);
    if !manifest.summary.is_empty() {
        _ = writeln!(out, "  how:       {}", manifest.summary);
    }
    _ = writeln!(out, "  component: {} {}", manifest.kind, manifest.version);
    if !manifest.needs.is_empty() {
        _ = writeln!(out, "  needs:     {}", manifest.needs.join(", "));
    }
    if manifest.areas().is_empty() {
        let access = match manifest.access {
            Access::ReadOnly => "read_only",
            Access::MayMutate => "read_only or mutating",
        };
        _ = writeln!(out, "  access:    {access}");
        fields(&mut out, manifest);
    }
    checks(&mut out, manifest, area);
    measurements(&mut out, manifest, area);
    out
}

/// The checks, with the reasons that each may give.
fn checks(out: &mut String, manifest: &Manifest, area: Option<&str>) {
    let mut told = HashSet::new();
    for check in manifest.checks.iter().filter(|check| area.is_none() || check.area.as_deref() == area) {
        let reference = check.reference.as_ref().map(|reference| format!(" [{reference}]")).unwrap_or_default();
        _ = writeln!(out, "check {} {}: {}{reference}", level(check.level), check.id, check.title);
        for reason in manifest.reasons.iter().filter(|reason| reason.checks.contains(&check.id)) {
            // One that several checks give is explained at the first.
            let hint = if told.insert(&reason.label) { format!(": {}", reason.hint) } else { String::new() };
            _ = writeln!(out, "  reason {}{hint}", reason.label);
        }
    }
}

fn measurements(out: &mut String, manifest: &Manifest, area: Option<&str>) {
    for metric in manifest.metrics.iter().filter(|metric| area.is_none() || metric.area.as_deref() == area) {
        let value = if metric.labels.is_empty() { metric.unit.clone() } else { metric.labels.join(" or ") };
        _ = writeln!(out, "measurement {}: {value}", metric.name);
    }
}

/// The fields that a case of the kind takes beside those of every case.
fn fields(out: &mut String, manifest: &Manifest) {
    let schema: Value = serde_json::from_str(&manifest.config_schema).unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array);
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let must = required.is_some_and(|names| names.iter().any(|required| required == name));
        let said = field.get("description").and_then(Value::as_str).map(|said| format!("; {said}")).unwrap_or_default();
        let must = if must { "required" } else { "optional" };
        _ = writeln!(out, "field {name}: {}, {must}{said}", value_of(&schema, field));
    }
}

/// What a field takes, in a few words.
fn value_of(root: &Value, field: &Value) -> String {
    let target = field.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    let field = target.and_then(|pointer| root.pointer(pointer)).unwrap_or(field);
    if field.get("format").is_some_and(|format| format == "tool") {
        return "a tool's name".to_owned();
    }
    let words = field.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words: Vec<String> = words.iter().chain(field.get("const")).map(Value::to_string).collect();
    if !words.is_empty() {
        return words.join(" or ");
    }
    let kind = match field.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any of several forms".to_owned(),
    };
    match (field.get("minimum"), field.get("maximum")) {
        (Some(least), Some(most)) => format!("{kind} from {least} to {most}"),
        (Some(least), None) => format!("{kind} of at least {least}"),
        (None, Some(most)) => format!("{kind} of at most {most}"),
        (None, None) => kind,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::super::tests_support::{battery, kind};
    use super::*;
    use crate::probes::{Digest, Metric};

    fn with_shown<T>(manifests: &[Manifest], then: impl FnOnce(&[Shown<'_>]) -> T) -> T {
        let powers = BTreeSet::new();
        let shown = |manifest| Shown { manifest, digest: Digest([1; 32]), powers: &powers, shipped: true };
        then(&manifests.iter().map(shown).collect::<Vec<_>>())
    }

    #[test]
    fn an_area_shows_its_own_checks_reasons_and_measurements() {
        with_shown(&battery(), |components| {
            for name in ["coverage", "area:coverage"] {
                assert_eq!(
                    text(find(components, name).unwrap(), name),
                    "area:coverage\n\
                     \x20 judges:    Title of exercise\n\
                     \x20 how:       Summary of exercise.\n\
                     \x20 component: exercise 1.2.3\n\
                     \x20 needs:     tools\n\
                     check should coverage.exercised: Title of coverage.exercised [docs/standard.md]\n\
                     \x20 reason coverage-skipped: What coverage-skipped means, and what to change.\n\
                     \x20 reason coverage-unannotated: What coverage-unannotated means, and what to change.\n\
                     measurement exercised: 1\n"
                );
            }
            let whole = text(find(components, "exercise").unwrap(), "exercise");
            assert!(
                whole.contains("check should reliability.success") && whole.contains("check should coverage.exercised")
            );
            assert!(find(components, "area:exercise").is_none() && find(components, "none").is_none());
            assert_eq!(
                names(components),
                ["protocol", "catalog", "context", "error-honesty", "reliability", "coverage"]
            );
        });
    }

    #[test]
    fn a_kind_shows_its_fields_too() {
        let mut latency = kind("latency-budget", &["latency-budget-exceeded"]);
        latency.config_schema = json!({"required": ["tool", "max_latency_ms"], "properties": {
            "tool": {"type": "string", "format": "tool"},
            "max_latency_ms": {"type": "integer", "minimum": 1, "maximum": 9},
            "outcome": {"enum": ["ok", "error"], "description": "What must come."},
            "more": {"$ref": "#/$defs/more"}
        }, "$defs": {"more": {"type": ["object", "null"]}}})
        .to_string();
        latency.metrics.push(Metric {
            name: "end".to_owned(),
            unit: "1".to_owned(),
            area: None,
            labels: vec!["done".to_owned(), "late".to_owned()],
        });
        let text =
            with_shown(&[latency], |components| text(find(components, "latency-budget").unwrap(), "latency-budget"));
        for line in [
            "latency-budget\n",
            "  access:    read_only\n",
            "field tool: a tool's name, required\n",
            "field max_latency_ms: integer from 1 to 9, required\n",
            "field outcome: \"ok\" or \"error\", optional; What must come.\n",
            "field more: object or null, optional\n",
            "check should latency-budget.holds: ",
            "measurement end: done or late\n",
        ] {
            assert!(text.contains(line), "{line:?}\n{text}");
        }
    }
}
