//! Hand-made manifests, catalogs and runs for the tests of this folder.

use std::collections::BTreeMap;

use serde_json::Value;

use super::assemble::{Facts, Said};
use crate::outcome::{AreaScore, Ended, Finding, Level, Measurement, NoVerdict, Reading, RunRecord, Verdict};
use crate::probes::{Access, Check, Digest, Manifest, Metric, Reason};
use crate::runner::Profile;
use crate::session::catalog::{Catalog, Entry, ToolClass};
use crate::standard::Standard;

/// A component with checks `<area>.<name>` and the reasons each may give.
pub(crate) fn manifest(kind: &str, checks: &[(&str, &[&str])]) -> Manifest {
    let area = |check: &str| check.split('.').next().unwrap_or_default().to_owned();
    let mut reasons: Vec<Reason> = Vec::new();
    for (check, labels) in checks {
        for label in *labels {
            match reasons.iter_mut().find(|reason| reason.label == *label) {
                Some(reason) => reason.checks.push((*check).to_owned()),
                None => reasons.push(Reason {
                    label: (*label).to_owned(),
                    hint: format!("What {label} means, and what to change."),
                    checks: vec![(*check).to_owned()],
                }),
            }
        }
    }
    Manifest {
        kind: kind.to_owned(),
        version: "1.2.3".to_owned(),
        title: format!("Title of {kind}"),
        summary: format!("Summary of {kind}."),
        config_schema: "{}".to_owned(),
        checks: checks
            .iter()
            .map(|(id, _)| Check {
                id: (*id).to_owned(),
                level: Level::Should,
                title: format!("Title of {id}"),
                reference: Some("docs/standard.md".to_owned()),
                area: Some(area(id)),
            })
            .collect(),
        reasons,
        metrics: Vec::new(),
        needs: vec!["tools".to_owned()],
        access: Access::ReadOnly,
        asks: (1, 2, 3),
    }
}

/// A component that is a kind, with one check that may give any of its reasons.
pub(crate) fn kind(name: &str, reasons: &[&str]) -> Manifest {
    let check = format!("{name}.holds");
    let mut manifest = manifest(name, &[(check.as_str(), reasons)]);
    manifest.checks.iter_mut().for_each(|check| check.area = None);
    manifest
}

/// Adds measurements to a component.
pub(crate) fn measuring(mut manifest: Manifest, metrics: &[(&str, &str)]) -> Manifest {
    manifest.metrics = metrics
        .iter()
        .map(|(area, name)| Metric {
            name: (*name).to_owned(),
            unit: "1".to_owned(),
            area: Some((*area).to_owned()),
            labels: Vec::new(),
        })
        .collect();
    manifest
}

/// The battery's components, as far as the worked example needs them.
pub(crate) fn battery() -> Vec<Manifest> {
    vec![
        manifest("protocol", &[("protocol.ping", &["protocol-ping-failed", "protocol-call-failed"])]),
        manifest(
            "catalog",
            &[
                ("catalog.entry", &["catalog-invalid-entry"]),
                ("catalog.description", &["catalog-short-description"]),
                ("catalog.params-described", &["catalog-undescribed-params"]),
                ("catalog.output-schema", &["catalog-no-output-schema"]),
            ],
        ),
        measuring(
            manifest(
                "context",
                &[("context.catalog", &["context-catalog-heavy"]), ("context.heaviest-tool", &["context-tool-heavy"])],
            ),
            &[("context", "catalog_tokens"), ("context", "heaviest_tool_tokens")],
        ),
        measuring(
            manifest(
                "exercise",
                &[
                    ("error-honesty.invalid-arguments", &["honesty-accepted-invalid", "coverage-skipped"]),
                    ("reliability.success", &["reliability-call-failed"]),
                    ("reliability.latency", &["reliability-slow"]),
                    ("reliability.none-exercised", &["coverage-unannotated"]),
                    ("coverage.exercised", &["coverage-unannotated", "coverage-skipped"]),
                ],
            ),
            &[("reliability", "successful_calls"), ("reliability", "untested_tools"), ("coverage", "exercised")],
        ),
    ]
}

/// A complete catalog of these entries.
pub(crate) fn catalog(entries: &[(ToolClass, Value)]) -> Catalog {
    let mut seen = Vec::new();
    let entries = entries
        .iter()
        .enumerate()
        .map(|(position, (class, raw))| {
            let name = raw.get("name").and_then(Value::as_str).unwrap_or_default();
            let label = if super::document::Label::is_valid(name) {
                name.to_owned()
            } else {
                format!("invalid-name#{position}")
            };
            let repeated = seen.contains(&label);
            seen.push(label.clone());
            Entry { label, class: *class, repeated, hinted: *class, raw: raw.to_string().into() }
        })
        .collect();
    Catalog { entries, pages: vec![1], fault: None }
}

/// The catalog of the worked example.
pub(crate) fn example_catalog() -> Catalog {
    let entry = |name: &str| serde_json::json!({"name": name, "inputSchema": {"type": "object"}});
    catalog(&[
        (ToolClass::ReadOnly, entry("find_item")),
        (ToolClass::ReadOnly, entry("get_price")),
        (ToolClass::Unannotated, entry("list_stores")),
        (ToolClass::Writer, entry("delete_item")),
        (ToolClass::Invalid, entry("bad/name")),
    ])
}

/// A failed check.
pub(crate) fn lost(check: &str, subject: Option<&str>, reason: &str) -> Finding {
    Finding {
        check: check.to_owned(),
        subject: subject.map(str::to_owned),
        step: None,
        verdict: Verdict::Fail,
        score: None,
        reason: Some(reason.to_owned()),
        bound: None,
        observed: None,
        evidence: vec![3],
    }
}

/// A measured number.
pub(crate) fn measured(metric: &str, value: f64) -> Measurement {
    Measurement { metric: metric.to_owned(), subject: None, value: Reading::Number(value) }
}

/// A run that ended well.
pub(crate) fn record(
    scores: &[(&str, f64, Option<f64>)],
    findings: Vec<Finding>,
    measurements: Vec<Measurement>,
) -> RunRecord {
    RunRecord {
        findings,
        measurements,
        areas: scores
            .iter()
            .map(|(area, score, untimed)| ((*area).to_owned(), AreaScore { score: *score, untimed: *untimed }))
            .collect(),
        progress: None,
        ended: Ended::Finished { attempts: 1, first_failure: None },
    }
}

/// A run that was stopped.
pub(crate) fn stopped(mut record: RunRecord, reason: NoVerdict, progress: Option<(u32, u32)>) -> RunRecord {
    record.ended = Ended::Stopped { reason, detail: "private".to_owned() };
    record.progress = progress;
    record
}

/// Everything an evaluation holds, owned, so that a test can change a part of it.
pub(crate) struct Example {
    pub(crate) standard: Standard,
    pub(crate) catalog: Option<Catalog>,
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) areas: Vec<Vec<String>>,
    pub(crate) records: Vec<RunRecord>,
    pub(crate) error: Option<NoVerdict>,
    pub(crate) profile: Profile,
    pub(crate) components: BTreeMap<String, Digest>,
}

impl Example {
    /// The worked example of the specification.
    pub(crate) fn worked() -> Self {
        let with = |mut finding: Finding, score: Option<u8>, observed: u32| {
            (finding.score, finding.observed) = (score, Some(observed));
            finding
        };
        let records = vec![
            record(&[("protocol", 80.0, None)], vec![lost("protocol.ping", None, "protocol-ping-failed")], vec![]),
            record(
                &[("catalog", 48.0, None)],
                vec![
                    lost("catalog.entry", Some("invalid-name#4"), "catalog-invalid-entry"),
                    lost("catalog.output-schema", Some("get_price"), "catalog-no-output-schema"),
                    with(lost("catalog.description", Some("get_price"), "catalog-short-description"), None, 12),
                    lost("catalog.output-schema", Some("list_stores"), "catalog-no-output-schema"),
                ],
                vec![],
            ),
            record(
                &[("context", 83.47, None)],
                vec![
                    with(lost("context.catalog", None, "context-catalog-heavy"), Some(86), 3000),
                    with(lost("context.heaviest-tool", Some("find_item"), "context-tool-heavy"), Some(74), 900),
                ],
                vec![measured("catalog_tokens", 3000.0), measured("heaviest_tool_tokens", 900.0)],
            ),
            record(
                &[
                    ("error-honesty", 50.0, None),
                    ("reliability", 326.666_666 / 5.0, Some(333.333_333 / 5.0)),
                    ("coverage", 200.0 / 3.0, None),
                ],
                vec![
                    lost("error-honesty.invalid-arguments", Some("get_price"), "honesty-accepted-invalid"),
                    with(lost("reliability.success", Some("get_price"), "reliability-call-failed"), Some(67), 2),
                    with(lost("reliability.latency", Some("find_item"), "reliability-slow"), Some(80), 0),
                    lost("reliability.none-exercised", Some("list_stores"), "coverage-unannotated"),
                    lost("coverage.exercised", Some("list_stores"), "coverage-unannotated"),
                ],
                vec![measured("successful_calls", 5.0), measured("untested_tools", 1.0), measured("exercised", 2.0)],
            ),
        ];
        let areas = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Self {
            standard: Standard::shipped().expect("the shipped standard reads"),
            catalog: Some(example_catalog()),
            manifests: battery(),
            areas: vec![
                areas(&["protocol"]),
                areas(&["catalog"]),
                areas(&["context"]),
                areas(&["error-honesty", "reliability", "coverage"]),
            ],
            records,
            error: None,
            profile: Profile {
                attested_read_only: false,
                skip_tools: Vec::new(),
                call_timeout_ms: 15_000,
                repeats: 3,
                lanes: 4,
                arguments_sha256: None,
            },
            components: BTreeMap::from([("area:catalog".to_owned(), Digest([0xab; 32]))]),
        }
    }

    /// What [`super::assemble`] is given.
    pub(crate) fn facts(&self) -> Facts<'_> {
        let runs = self.manifests.iter().zip(&self.areas).zip(&self.records);
        Facts {
            standard: &self.standard,
            catalog: self.catalog.as_ref(),
            runs: runs.map(|((manifest, areas), record)| Said { manifest, areas, record }).collect(),
            error: self.error,
            callable: 2,
            profile: &self.profile,
            components: &self.components,
        }
    }
}
