//! What components can say, and whether a report says nothing else.

use std::collections::{HashMap, HashSet};

use super::super::document::{AreaReport, Case, EARLIER_PROFILE_SCHEMA, PROFILE_SCHEMA, Profile, Report};
use crate::nearest;
use crate::outcome::NoVerdict;
use crate::probes::Manifest;
use crate::standard::RESERVED_PREFIX;

/// Where a report is wrong, as a JSON Pointer, and how.
pub(super) type Fault = (String, String);

/// What components can say.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary<'a> {
    kinds: HashMap<&'a str, &'a Manifest>,
    areas: HashMap<&'a str, &'a Manifest>,
}

impl<'a> Vocabulary<'a> {
    /// The words of these components; of equal names the first.
    pub fn new(manifests: impl IntoIterator<Item = &'a Manifest>) -> Self {
        let mut vocabulary = Self::default();
        for manifest in manifests {
            let areas = manifest.areas();
            if areas.is_empty() {
                vocabulary.kinds.entry(&manifest.kind).or_insert(manifest);
            }
            for area in areas {
                vocabulary.areas.entry(area).or_insert(manifest);
            }
        }
        vocabulary
    }

    /// The component of a kind.
    pub fn kind(&self, name: &str) -> Option<&'a Manifest> {
        self.kinds.get(name).copied()
    }

    /// The component that serves an area.
    pub fn area(&self, name: &str) -> Option<&'a Manifest> {
        self.areas.get(name).copied()
    }

    /// The hint of a reason that a kind gives, or the host for it.
    pub fn hint(&self, kind: &str, reason: &str) -> Option<&'a str> {
        let own = self.kind(kind).and_then(|manifest| manifest.hint(reason));
        own.or_else(|| NoVerdict::from_label(reason).map(NoVerdict::hint))
    }

    /// Whether what a report says of our standards and our kinds is what their components can say, and its names are
    /// what they must be: unique. Other names are their authors' to choose.
    pub(super) fn check(&self, report: &Report) -> Result<(), Fault> {
        let (mut ids, mut tools) = (HashSet::new(), HashSet::new());
        for (at, case) in report.cases.iter().enumerate() {
            if !ids.insert(&case.id) {
                return Err((format!("/cases/{at}/id"), "the id stands twice".to_owned()));
            }
            self.check_case(case).map_err(|(field, what)| (format!("/cases/{at}/{field}"), what))?;
        }
        let contract = report.catalog.iter().flat_map(|catalog| &catalog.tools).enumerate();
        if let Some((at, _)) = contract.into_iter().find(|(_, tool)| !tools.insert(&tool.name)) {
            return Err((format!("/catalog/tools/{at}/name"), "the name stands twice".to_owned()));
        }
        let finished = report.readiness.as_ref().map(|part| ("readiness", &part.standard, &part.areas));
        let partial = report.readiness_partial.as_ref().map(|part| ("readiness_partial", &part.standard, &part.areas));
        for (part, standard, areas) in finished.into_iter().chain(partial) {
            let mut names = HashSet::new();
            for (at, area) in areas.iter().enumerate() {
                let place = |(field, what): Fault| (format!("/{part}/areas/{at}/{field}"), what);
                if !names.insert(&area.name) {
                    return Err(place(("name".to_owned(), "the area stands twice".to_owned())));
                }
                if standard.as_str().starts_with(RESERVED_PREFIX) {
                    self.check_area(area).map_err(place)?;
                }
            }
            let floors = report.readiness_gate.as_ref().filter(|_| standard.as_str().starts_with(RESERVED_PREFIX));
            let floors = floors.into_iter().flat_map(|gate| gate.min_areas.keys());
            if let Some(unknown) = floors.into_iter().find(|area| self.area(area).is_none()) {
                return Err((format!("/readiness_gate/min_areas/{unknown}"), self.unknown_area(unknown)));
            }
        }
        report.readiness.as_ref().map_or(Ok(()), |readiness| check_profile(&readiness.measurement_profile))
    }

    fn check_case(&self, case: &Case) -> Result<(), Fault> {
        let kind = case.probe.as_str();
        if kind.contains('.') {
            return Ok(());
        }
        let Some(manifest) = self.kind(kind) else {
            let hint = nearest::choices(kind, sorted(&self.kinds));
            return Err(("probe".to_owned(), format!("is no built-in kind{hint}")));
        };
        match case.reason.as_ref().map(super::super::words::Reason::as_str) {
            Some(reason) if manifest.hint(reason).is_none() && NoVerdict::from_label(reason).is_none() => {
                Err(("reason".to_owned(), format!("is no reason of {kind}")))
            }
            _ => Ok(()),
        }
    }

    fn check_area(&self, area: &AreaReport) -> Result<(), Fault> {
        let name = area.name.as_str();
        let manifest = self.area(name).ok_or_else(|| ("name".to_owned(), self.unknown_area(name)))?;
        for (at, check) in area.checks.iter().enumerate() {
            let declared = manifest.checks.iter().any(|declared| declared.id == check.id.as_str());
            if !declared || !check.id.as_str().starts_with(&format!("{name}.")) {
                return Err((format!("checks/{at}/id"), format!("is no check of the area {name}")));
            }
            if manifest.hint(check.reason.as_str()).is_none() {
                return Err((format!("checks/{at}/reason"), format!("is no reason of the area {name}")));
            }
        }
        Ok(())
    }

    fn unknown_area(&self, name: &str) -> String {
        format!("is no area of our standards{}", nearest::choices(name, sorted(&self.areas)))
    }
}

fn sorted<'a>(names: &HashMap<&'a str, &Manifest>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.keys().copied().collect();
    names.sort_unstable();
    names
}

/// Lanes came with today's profile.
fn check_profile(profile: &Profile) -> Result<(), Fault> {
    let what = match (profile.schema, profile.lanes) {
        (PROFILE_SCHEMA, 0) => "the field \"lanes\" is missing".to_owned(),
        (EARLIER_PROFILE_SCHEMA, 1..) => format!("{EARLIER_PROFILE_SCHEMA} has no field \"lanes\""),
        _ => return Ok(()),
    };
    Err(("/readiness/measurement_profile".to_owned(), what))
}
