//! Loads the components that the options name.

use std::ffi::OsStr;

use clap_complete::CompletionCandidate;

use super::options::ComponentOptions;
use crate::error::{Error, Result};
use crate::nearest;
use crate::probes::{Loaded, Manifest, Registry};
use crate::standard::{Source, Standard};

/// The battery and what `--component` adds.
pub(super) struct Components {
    registry: Registry,
    added: Vec<Loaded>,
}

impl Components {
    pub(super) fn load(options: &ComponentOptions) -> Result<Self> {
        let registry = Registry::shipped();
        let mut added: Vec<Loaded> = Vec::new();
        for (kind, path) in &options.component {
            let loaded = registry.load_file(path, None)?;
            if loaded.manifest.kind != *kind {
                let found = &loaded.manifest.kind;
                return Err(Error::usage(format!(
                    "{}: the component is of the kind {found}, not {kind}",
                    path.display()
                )));
            }
            if added.iter().any(|earlier| earlier.manifest.kind == *kind) {
                return Err(Error::usage(format!("--component {kind} is given twice")));
            }
            added.push(loaded);
        }
        Ok(Self { registry, added })
    }

    /// A component that is no part of the battery.
    pub(super) fn file(&self, path: &std::path::Path) -> Result<Loaded> {
        self.registry.load_file(path, None)
    }

    /// All that is loaded, the battery first.
    pub(super) fn all(&self) -> Vec<Loaded> {
        self.registry.all().into_iter().chain(self.added.iter().cloned()).collect()
    }

    /// One component per area of a standard, in its order; each declares its area, and has its powers granted.
    pub(super) fn of_standard(&self, standard: &Standard, options: &ComponentOptions) -> Result<Vec<Loaded>> {
        let load = |source: &Source| match source {
            Source::Shipped(area) => self.registry.load_area(area),
            Source::File { path, sha256 } => self.registry.load_file(path, Some(sha256)),
        };
        let components = standard.areas.iter().map(|area| load(&area.source)).collect::<Result<Vec<_>>>()?;
        standard.check(&components.iter().map(|component| component.manifest.as_ref()).collect::<Vec<&Manifest>>())?;
        let names: Vec<String> = standard.areas.iter().map(|area| format!("area:{}", area.name)).collect();
        let kinds =
            || names.iter().map(String::as_str).chain(self.added.iter().map(|added| added.manifest.kind.as_str()));
        for (kind, _) in &options.grant {
            if !kinds().any(|known| known == kind) {
                let hint = nearest::hint(kind, kinds());
                return Err(Error::usage(format!("--grant: no component is loaded as \"{kind}\"{hint}")));
            }
        }
        for (component, name) in components.iter().zip(&names).filter(|(component, _)| !component.shipped) {
            // A component that several areas name runs once: a grant for one of them is one for all.
            let same = |other: &str| {
                components.iter().zip(&names).any(|(each, name)| name == other && each.digest == component.digest)
            };
            for power in &component.powers {
                if !options.grant.iter().any(|(kind, granted)| granted == power && same(kind)) {
                    return Err(Error::usage(format!(
                        "{name}: the component {} works below the protocol; allow it with --grant {name}={power}",
                        component.manifest.kind
                    )));
                }
            }
        }
        Ok(components)
    }
}

/// The words that continue what has been typed.
pub(super) fn candidates(current: &OsStr, words: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    words.into_iter().filter(|word| word.starts_with(current)).map(CompletionCandidate::new).collect()
}

/// What the shipped battery can say, for completion; nothing if it cannot be loaded.
pub(super) fn shipped() -> Vec<Loaded> {
    Components::load(&ComponentOptions::default()).map(|components| components.all()).unwrap_or_default()
}
