//! The rules a component's manifest must keep before anything it says is used (wit/README.md).

use crate::probes::{Manifest, Metric, is_foreign_kind, is_word};
use crate::services::schema;
use crate::session::listing::is_label;

use super::limits;

const MAX_CHECKS: usize = 64;
const MAX_REASONS: usize = 64;
const MAX_METRICS: usize = 64;
const MAX_NEEDS: usize = 16;
const MAX_HINT: usize = 400;
/// Reasons that every kind may give.
const COMMON_REASONS: [&str; 7] = [
    "unexpected-outcome",
    "missing-field",
    "value-mismatch",
    "text-mismatch",
    "schema-mismatch",
    "error-code-mismatch",
    "latency-budget-exceeded",
];
const TRANSPORTS: [&str; 2] = ["transport.stdio", "transport.http"];
const LIFECYCLES: [&str; 2] = ["lifecycle.handshake", "lifecycle.stateless"];
const CLIENTS: [&str; 3] = ["client.elicitation", "client.roots", "client.sampling"];

/// Check a manifest. Components of the battery have plain names; the others carry their vendor's.
pub(super) fn check(manifest: &Manifest, shipped: bool) -> Result<(), String> {
    let vendor = manifest.kind.split_once('.').map(|(vendor, _)| vendor);
    if !is_kind(&manifest.kind, shipped) {
        return Err("its kind is not of the form vendor.name in lower case".into());
    }
    let texts = [&manifest.title, &manifest.summary, &manifest.version, &manifest.config_schema];
    if texts.iter().any(|text| text.len() > limits::MANIFEST_TEXT) {
        return Err("its manifest holds a text beyond 256 KiB".into());
    }
    if manifest.checks.len() > MAX_CHECKS
        || manifest.reasons.len() > MAX_REASONS
        || manifest.metrics.len() > MAX_METRICS
        || manifest.needs.len() > MAX_NEEDS
    {
        return Err(format!(
            "its manifest declares more than {MAX_CHECKS} checks, {MAX_REASONS} reasons, {MAX_METRICS} metrics or {MAX_NEEDS} needs"
        ));
    }
    if manifest.checks.is_empty() {
        return Err("its manifest declares no check".into());
    }
    check_config_schema(&manifest.config_schema)?;
    check_checks(manifest)?;
    for reason in &manifest.reasons {
        if !is_reason(&reason.label) {
            return Err("a reason of its manifest is no label".into());
        }
        let label = &reason.label;
        let is_ours = shipped
            || COMMON_REASONS.contains(&label.as_str())
            || vendor.is_some_and(|vendor| label.strip_prefix(vendor).is_some_and(|rest| rest.starts_with('.')));
        if !is_ours || crate::outcome::NoVerdict::from_label(label).is_some() {
            return Err(format!("its reason {label} does not begin with its vendor's name"));
        }
        if reason.hint.chars().count() > MAX_HINT || reason.hint.chars().any(char::is_control) {
            return Err(format!(
                "the hint of {label} is longer than {MAX_HINT} characters or holds control characters"
            ));
        }
        if reason.checks.iter().any(|id| !manifest.checks.iter().any(|check| check.id == *id)) {
            return Err(format!("its reason {label} belongs to a check that is not declared"));
        }
    }
    if !are_unique(manifest.reasons.iter().map(|reason| reason.label.as_str())) {
        return Err("its manifest declares a reason twice".into());
    }
    check_metrics(&manifest.metrics)?;
    for need in &manifest.needs {
        let reserved = ["transport.", "lifecycle.", "client."].iter().any(|space| need.starts_with(space));
        let known = TRANSPORTS.iter().chain(&LIFECYCLES).chain(&CLIENTS).any(|word| word == need);
        if !is_label(need) || (reserved && !known) {
            return Err("it needs something that this mcpeval does not know; update mcpeval".into());
        }
    }
    Ok(())
}

fn check_config_schema(text: &str) -> Result<(), String> {
    let schema: serde_json::Value =
        serde_json::from_str(text).map_err(|_| "its config schema is no JSON".to_owned())?;
    if !schema.is_object() {
        return Err("its config schema is no object".into());
    }
    schema::check(&schema).map_err(|why| format!("its config schema does not compile: {why}"))
}

fn check_checks(manifest: &Manifest) -> Result<(), String> {
    let areas = manifest.checks.iter().filter(|check| check.area.is_some()).count();
    if areas != 0 && areas != manifest.checks.len() {
        return Err("some of its checks name an area and others do not; a component serves areas or is a kind".into());
    }
    for check in &manifest.checks {
        if !is_label(&check.id) {
            return Err("a check of its manifest is no label".into());
        }
        if let Some(area) = &check.area {
            let named = check.id.strip_prefix(area.as_str()).and_then(|rest| rest.strip_prefix('.'));
            if !is_word(area) || named.is_none_or(str::is_empty) {
                return Err(format!("its check {} is not named after its area", check.id));
            }
        }
    }
    if !are_unique(manifest.checks.iter().map(|check| check.id.as_str())) {
        return Err("its manifest declares a check twice".into());
    }
    Ok(())
}

fn check_metrics(metrics: &[Metric]) -> Result<(), String> {
    let fits = |metric: &Metric| {
        is_metric(&metric.name)
            && metric.unit.len() <= 32
            && metric.unit.chars().all(|c| c.is_ascii_graphic())
            && metric.labels.len() <= MAX_REASONS
            && metric.labels.iter().all(|label| is_reason(label))
    };
    if !metrics.iter().all(fits) {
        return Err("a metric of its manifest has no plain name, unit or words".into());
    }
    if !are_unique(metrics.iter().map(|metric| metric.name.as_str())) {
        return Err("its manifest declares a metric twice".into());
    }
    Ok(())
}

fn are_unique<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().all(|name| seen.insert(name))
}

fn is_kind(kind: &str, shipped: bool) -> bool {
    if shipped { is_word(kind) } else { is_foreign_kind(kind) }
}

/// `[a-z][a-z0-9.-]{0,127}`.
fn is_reason(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
}

/// `[a-z][a-z0-9_]{0,63}`.
fn is_metric(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Level;
    use crate::probes::{Access, Check, Reason};

    fn good() -> Manifest {
        Manifest {
            kind: "acme.echo".into(),
            version: "1.0.0".into(),
            title: "t".into(),
            summary: "s".into(),
            config_schema: "{\"type\":\"object\"}".into(),
            checks: vec![Check {
                id: "echo.same".into(),
                level: Level::Must,
                title: "t".into(),
                reference: None,
                area: Some("echo".into()),
            }],
            reasons: vec![Reason { label: "acme.differs".into(), hint: "h".into(), checks: vec!["echo.same".into()] }],
            metrics: vec![],
            needs: vec!["tools".into(), "transport.stdio".into()],
            access: Access::ReadOnly,
            asks: (1, 1, 1),
        }
    }

    type Fault = fn(&mut Manifest);

    #[test]
    fn a_good_manifest_passes_and_each_fault_is_found() {
        assert_eq!(check(&good(), false), Ok(()));
        let faults: [(&str, Fault); 14] = [
            ("kind", |m| m.kind = "echo".into()),
            ("kind", |m| m.kind = "Acme.echo".into()),
            ("config schema", |m| m.config_schema = "{".into()),
            ("config schema", |m| m.config_schema = "{\"type\":\"none\"}".into()),
            ("no check", |m| m.checks.clear()),
            ("more than", |m| m.checks = vec![m.checks[0].clone(); 65]),
            ("twice", |m| m.checks = vec![m.checks[0].clone(); 2]),
            ("after its area", |m| m.checks[0].area = Some("other".into())),
            ("vendor", |m| m.reasons[0].label = "other.differs".into()),
            ("vendor", |m| m.reasons[0].label = "component-fault".into()),
            ("hint", |m| m.reasons[0].hint = "h".repeat(401)),
            ("not declared", |m| m.reasons[0].checks = vec!["echo.none".into()]),
            ("needs", |m| m.needs = vec!["transport.pigeon".into()]),
            ("needs", |m| m.needs = vec!["client.pigeon".into()]),
        ];
        for (word, fault) in faults {
            let mut manifest = good();
            fault(&mut manifest);
            let error = check(&manifest, false).expect_err(word);
            assert!(error.contains(word), "{error} should mention {word}");
        }
    }
}
