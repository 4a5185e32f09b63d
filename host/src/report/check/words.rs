//! What a document says in the words of components, held against what they declare.

use serde_json::Value;

use super::super::document::{Badge, UNTIMED};
use super::super::read::Vocabulary;
use super::super::words::{AreaName, ComponentName, Grammar, KindName, Metric, Reason, Word};
use super::Findings;
use crate::guidance::REASONS;
use crate::outcome::NoVerdict;
use crate::probes::Manifest;
use crate::standard::RESERVED_PREFIX;

const REASON: &str = "its component declares no such reason";
const HINT: &str = "this is not the hint of the reason";
const HINT_UNKNOWN: &str = "its component is not loaded, so that nothing proves this text; load it with --component";
const CHECK: &str = "its component declares no such check";
const METRIC: &str = "its component declares no such measurement";
const WORD: &str = "its component declares no such word";
const UNIT: &str = "its component counts in another unit";
const BOUND: &str = "its component has no such bound";
const KIND: &str = "there is no such built-in kind";
const AREA: &str = "our standards have no such area";
const BADGE: &str = "this is not the badge of the score";

/// What is wrong by its grammar has been found before; here it is passed over.
pub(super) fn check_report(report: &Value, pointer: &str, vocabulary: &Vocabulary<'_>, findings: &mut Findings) {
    let mut words = Words { vocabulary, findings };
    for (at, case) in list(report, "cases") {
        words.case(case, &format!("{pointer}/cases/{at}"));
    }
    for part in ["readiness", "readiness_partial"] {
        let Some(value) = report.get(part) else { continue };
        let ours = text(value, "standard").is_some_and(|standard| standard.starts_with(RESERVED_PREFIX));
        for (at, area) in list(value, "areas") {
            words.area(area, ours, &format!("{pointer}/{part}/areas/{at}"));
        }
        let score = value.get("score").and_then(Value::as_u64).and_then(|score| u8::try_from(score).ok());
        if let (Some(badge), Some(score)) = (text(value, "badge"), score)
            && Badge::of(score).as_str() != badge
        {
            words.findings.breaks(format!("{pointer}/{part}/badge"), BADGE);
        }
    }
    for name in names(report, "components") {
        if let (Some(_), Some(area)) = (ComponentName::parse(name), name.strip_prefix("area:")) {
            words.known(area, vocabulary.area(area).is_some());
        } else if ComponentName::parse(name).is_some() {
            words.kind(name, &format!("{pointer}/components/{name}"));
        }
    }
    if let Some(gate) = report.get("readiness_gate") {
        let subjects = list(gate, "shortfalls").filter_map(|(_, shortfall)| text(shortfall, "subject"));
        for area in names(gate, "min_areas").chain(subjects).filter(|area| *area != "score") {
            if AreaName::parse(area).is_some() {
                words.known(area, vocabulary.area(area).is_some());
            }
        }
    }
}

pub(super) fn check_diff(diff: &Value, vocabulary: &Vocabulary<'_>, findings: &mut Findings) {
    let mut words = Words { vocabulary, findings };
    for (at, case) in list(diff, "cases") {
        let manifest = words.case_kind(case, &format!("/cases/{at}"));
        for field in ["baseline_reason", "current_reason"] {
            if let Some(reason) = text(case, field) {
                words.reason(reason, manifest, &format!("/cases/{at}/{field}"));
            }
        }
    }
}

pub(super) fn check_guidance(guidance: &Value, findings: &mut Findings) {
    for part in ["candidates", "defects"] {
        for (at, lack) in list(guidance, part) {
            let Some(hint) = text(lack, "hint") else { continue };
            let reason = text(lack, "reason");
            if !REASONS.iter().any(|known| (reason, hint) == (Some(known.0), known.1)) {
                findings.breaks(format!("/{part}/{at}/hint"), HINT);
            }
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    value.get(name).and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn names<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    value.get(name).and_then(Value::as_object).into_iter().flat_map(|members| members.keys().map(String::as_str))
}

struct Words<'a> {
    vocabulary: &'a Vocabulary<'a>,
    findings: &'a mut Findings,
}

impl<'a> Words<'a> {
    fn known(&mut self, label: &str, loaded: bool) {
        if !loaded {
            self.findings.unknown.insert(label.to_owned());
        }
    }

    /// The component of a kind; one without a dot in its name is ours, and loaded.
    fn kind(&mut self, kind: &str, pointer: &str) -> Option<&'a Manifest> {
        let manifest = self.vocabulary.kind(kind);
        if manifest.is_none() && !kind.contains('.') {
            self.findings.breaks(pointer, KIND);
        } else {
            self.known(kind, manifest.is_some());
        }
        manifest
    }

    fn case_kind(&mut self, case: &Value, pointer: &str) -> Option<&'a Manifest> {
        let kind = text(case, "probe").filter(|kind| KindName::parse(kind).is_some())?;
        self.kind(kind, &format!("{pointer}/probe"))
    }

    fn case(&mut self, case: &Value, pointer: &str) {
        let manifest = self.case_kind(case, pointer);
        self.reason_and_hint(case, manifest, pointer);
        for (name, value) in case.get("measurements").and_then(Value::as_object).into_iter().flatten() {
            self.measurement(manifest, name, value, &format!("{pointer}/measurements/{name}"));
        }
        let bound = case.get("detail").and_then(|detail| text(detail, "bound"));
        if let (Some(bound), Some(manifest)) = (bound, manifest) {
            let schema: Value = serde_json::from_str(&manifest.config_schema).unwrap_or_default();
            if schema.get("properties").is_none_or(|properties| properties.get(bound).is_none()) {
                self.findings.breaks(format!("{pointer}/detail/bound"), BOUND);
            }
        }
    }

    fn measurement(&mut self, manifest: Option<&Manifest>, name: &str, value: &Value, pointer: &str) {
        if Metric::parse(name).is_none() {
            return;
        }
        let Some(manifest) = manifest else { return self.known(name, false) };
        let Some(metric) = manifest.metrics.iter().find(|metric| metric.name == name) else {
            return self.findings.breaks(pointer, METRIC);
        };
        if let Some(word) = value.as_str().filter(|word| Word::parse(word).is_some())
            && !metric.labels.iter().any(|label| label == word)
        {
            self.findings.breaks(pointer, WORD);
        }
        for (at, entry) in value.as_array().into_iter().flatten().enumerate() {
            let units = entry.as_object().into_iter().flat_map(|entry| entry.keys()).filter(|name| *name != "tool");
            if units.into_iter().any(|unit| *unit != metric.unit) {
                self.findings.breaks(format!("{pointer}/{at}"), UNIT);
            }
        }
    }

    fn area(&mut self, area: &Value, ours: bool, pointer: &str) {
        let Some(name) = text(area, "name").filter(|name| AreaName::parse(name).is_some()) else { return };
        let manifest = self.vocabulary.area(name);
        if manifest.is_none() && ours {
            self.findings.breaks(format!("{pointer}/name"), AREA);
        } else {
            self.known(name, manifest.is_some());
        }
        for measured in names(area, "measurements").filter(|measured| *measured != UNTIMED) {
            self.measurement(manifest, measured, &Value::Null, &format!("{pointer}/measurements/{measured}"));
        }
        for (at, check) in list(area, "checks") {
            let pointer = format!("{pointer}/checks/{at}");
            self.reason_and_hint(check, manifest, &pointer);
            let Some(id) = text(check, "id") else { continue };
            match manifest {
                Some(manifest) if !manifest.checks.iter().any(|check| check.id == id) => {
                    self.findings.breaks(format!("{pointer}/id"), CHECK);
                }
                Some(_) => {}
                None => self.known_text::<super::super::words::CheckId>(id),
            }
        }
    }

    fn known_text<T: Grammar>(&mut self, text: &str) {
        if T::parse(text).is_some() {
            self.known(text, false);
        }
    }

    fn reason(&mut self, reason: &str, manifest: Option<&Manifest>, pointer: &str) {
        if NoVerdict::from_label(reason).is_some() {
            return;
        }
        match manifest {
            Some(manifest) if manifest.hint(reason).is_none() => self.findings.breaks(pointer, REASON),
            Some(_) => {}
            None => self.known_text::<Reason>(reason),
        }
    }

    /// A hint is the text of its reason and nothing else. One of a component that is not loaded may be any text.
    fn reason_and_hint(&mut self, value: &Value, manifest: Option<&Manifest>, pointer: &str) {
        let reason = text(value, "reason");
        if let Some(reason) = reason {
            self.reason(reason, manifest, &format!("{pointer}/reason"));
        }
        let Some(hint) = text(value, "hint") else { return };
        let hosts = reason.and_then(NoVerdict::from_label).map(NoVerdict::hint);
        let declared = hosts.or_else(|| manifest?.hint(reason?));
        match (declared, manifest) {
            (Some(declared), _) if declared == hint => {}
            (None, None) => self.findings.breaks(format!("{pointer}/hint"), HINT_UNKNOWN),
            _ => self.findings.breaks(format!("{pointer}/hint"), HINT),
        }
    }
}
