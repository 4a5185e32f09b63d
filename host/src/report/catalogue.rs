//! What components are loaded, and what one says of itself.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::canonical;
use super::explain::level;
use crate::probes::{Access, Digest, Loaded, Manifest, Power};

/// A component as it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// What it says of itself.
    pub manifest: &'a Manifest,
    /// Digest of its bytes.
    pub digest: Digest,
    /// The powers below the protocol that it imports.
    pub powers: &'a BTreeSet<Power>,
    /// Whether it is of the shipped battery.
    pub shipped: bool,
}

impl<'a> From<&'a Loaded> for Shown<'a> {
    fn from(loaded: &'a Loaded) -> Self {
        Self { manifest: &loaded.manifest, digest: loaded.digest, powers: &loaded.powers, shipped: loaded.shipped }
    }
}

impl Shown<'_> {
    /// The kind, or its areas where it has any: `area:<name>` each.
    pub fn names(&self) -> Vec<String> {
        let areas = self.manifest.areas();
        if areas.is_empty() {
            vec![self.manifest.kind.clone()]
        } else {
            areas.into_iter().map(|area| format!("area:{area}")).collect()
        }
    }

    fn powers(&self) -> Vec<&'static str> {
        self.powers.iter().map(|power| power.word()).collect()
    }

    /// Whether this is the component of that kind or area.
    pub fn is(&self, name: &str) -> bool {
        let area = name.strip_prefix("area:").unwrap_or(name);
        self.manifest.kind == name || self.manifest.areas().contains(&area)
    }

    fn entry(&self) -> Value {
        json!({
            "kind": self.manifest.kind,
            "areas": self.manifest.areas(),
            "version": self.manifest.version,
            "title": self.manifest.title,
            "sha256": self.digest.to_string(),
            "needs": self.manifest.needs,
            "powers": self.powers(),
            "shipped": self.shipped,
        })
    }

    /// The component's manifest and its digest, ready to pin.
    pub fn document(&self) -> String {
        let manifest = self.manifest;
        let (requests, sessions, milliseconds) = manifest.asks;
        let mut document = self.entry();
        if let Value::Object(fields) = &mut document {
            let checks = manifest.checks.iter().map(|check| {
                json!({"id": check.id, "area": check.area, "level": level(check.level), "title": check.title,
                    "reference": check.reference})
            });
            let reasons = manifest
                .reasons
                .iter()
                .map(|reason| json!({"label": reason.label, "hint": reason.hint, "checks": reason.checks}));
            let metrics = manifest.metrics.iter().map(|metric| {
                json!({"name": metric.name, "unit": metric.unit, "area": metric.area, "labels": metric.labels})
            });
            let access = match manifest.access {
                Access::ReadOnly => "read-only",
                Access::MayMutate => "may-mutate",
            };
            fields.extend([
                ("summary".to_owned(), manifest.summary.clone().into()),
                (
                    "config_schema".to_owned(),
                    serde_json::from_str(&manifest.config_schema)
                        .unwrap_or_else(|_| manifest.config_schema.clone().into()),
                ),
                ("checks".to_owned(), checks.collect()),
                ("reasons".to_owned(), reasons.collect()),
                ("metrics".to_owned(), metrics.collect()),
                ("access".to_owned(), access.into()),
                ("asks".to_owned(), json!({"requests": requests, "sessions": sessions, "milliseconds": milliseconds})),
            ]);
        }
        canonical::document(&document)
    }
}

/// One line per component.
pub fn text(components: &[Shown<'_>]) -> String {
    let mut out = String::new();
    for shown in components {
        let or_none = |words: &[&str]| if words.is_empty() { "none".to_owned() } else { words.join(",") };
        let needs: Vec<&str> = shown.manifest.needs.iter().map(String::as_str).collect();
        _ = writeln!(
            out,
            "{} component={} version={} needs={} powers={} sha256={}",
            shown.names().join(","),
            shown.manifest.kind,
            shown.manifest.version,
            or_none(&needs),
            or_none(&shown.powers()),
            shown.digest
        );
    }
    out
}

/// The same as a document.
pub fn json(components: &[Shown<'_>]) -> String {
    canonical::document(&components.iter().map(Shown::entry).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::battery;
    use super::*;

    #[test]
    fn lists_areas_with_version_digest_needs_and_powers() {
        let manifests = battery();
        let powers = BTreeSet::from([Power::Http, Power::Pipe]);
        let none = BTreeSet::new();
        let digest = Digest([0xab; 32]);
        let shown = |manifest, powers| Shown { manifest, digest, powers, shipped: true };
        let components = [shown(&manifests[0], &none), shown(&manifests[3], &powers)];
        let hex = "ab".repeat(32);
        assert_eq!(
            text(&components),
            format!(
                "area:protocol component=protocol version=1.2.3 needs=tools powers=none sha256={hex}\n\
                 area:error-honesty,area:reliability,area:coverage component=exercise version=1.2.3 needs=tools powers=pipe,http sha256={hex}\n"
            )
        );
        let list: Value = serde_json::from_str(&json(&components)).unwrap();
        assert_eq!(list[1]["areas"], json!(["error-honesty", "reliability", "coverage"]));
        assert_eq!(list[1]["powers"], json!(["pipe", "http"]));
        for name in ["exercise", "area:coverage", "coverage"] {
            assert!(components[1].is(name) && !components[0].is(name), "{name}");
        }
    }

    #[test]
    fn shows_a_whole_manifest() {
        let manifests = battery();
        let none = BTreeSet::new();
        let shown = Shown { manifest: &manifests[2], digest: Digest([1; 32]), powers: &none, shipped: false };
        let document: Value = serde_json::from_str(&shown.document()).unwrap();
        assert_eq!(document["sha256"], "01".repeat(32));
        assert_eq!(document["config_schema"], json!({}));
        assert_eq!(document["checks"][1]["id"], "context.heaviest-tool");
        assert_eq!(document["checks"][1]["level"], "should");
        assert_eq!(document["reasons"][0]["checks"], json!(["context.catalog"]));
        assert_eq!(document["metrics"][0]["name"], "catalog_tokens");
        assert_eq!(document["access"], "read-only");
        assert_eq!(document["asks"], json!({"requests": 1, "sessions": 2, "milliseconds": 3}));
    }
}
