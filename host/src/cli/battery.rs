//! Loads the components that the options name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use clap_complete::CompletionCandidate;

use super::options::ComponentOptions;
use crate::error::{Error, Result};
use crate::guest::{self, Engine};
use crate::nearest;
use crate::probes::{Loaded, Manifest, Power, Registry};
use crate::standard::{Source, Standard};

/// The battery and what `--component` adds.
pub(super) struct Components {
    registry: Registry,
    added: Vec<Loaded>,
}

impl Components {
    pub(super) async fn load(options: &ComponentOptions) -> Result<Self> {
        let registry = Registry::new(Engine::new(guest::user_folder()).map_err(Error::Unfinished)?);
        let mut added: Vec<Loaded> = Vec::new();
        for (kind, path) in &options.component {
            let loaded = registry.file(path, None).await?;
            if loaded.manifest.kind != *kind {
                let found = &loaded.manifest.kind;
                return Err(Error::usage(format!(
                    "the component {} is of the kind {found}, not {kind}",
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

    /// The engine that they run in.
    pub(super) fn engine(&self) -> &Engine {
        self.registry.engine()
    }

    /// A component that is no part of the battery.
    pub(super) async fn file(&self, path: &Path) -> Result<Loaded> {
        self.registry.file(path, None).await
    }

    /// All that is loaded, the battery first.
    pub(super) async fn all(&self) -> Result<Vec<Loaded>> {
        Ok(self.registry.shipped().await?.into_iter().chain(self.added.iter().cloned()).collect())
    }

    /// One component per area of a standard, in its order; each declares its area.
    pub(super) async fn of_standard(&self, standard: &Standard) -> Result<Vec<Loaded>> {
        let mut components = Vec::with_capacity(standard.areas.len());
        for area in &standard.areas {
            components.push(match &area.source {
                Source::File { path, sha256 } => self.registry.file(path, Some(sha256)).await?,
                Source::Shipped(name) => self.registry.shipped_area(name).await?.ok_or_else(|| {
                    Error::unfinished(format!("no shipped component serves the area {name}; install mcpeval again"))
                })?,
            });
        }
        standard.check(&components.iter().map(|component| component.manifest.as_ref()).collect::<Vec<&Manifest>>())?;
        Ok(components)
    }

    /// The powers granted to the components of areas.
    pub(super) fn grants(
        &self,
        options: &ComponentOptions,
        standard: &Standard,
    ) -> Result<BTreeMap<String, BTreeSet<Power>>> {
        let mut grants: BTreeMap<String, BTreeSet<Power>> = BTreeMap::new();
        let areas: Vec<String> = standard.areas.iter().map(|area| format!("area:{}", area.name)).collect();
        let kinds = || areas.iter().chain(self.added.iter().map(|added| &added.manifest.kind)).map(String::as_str);
        for (kind, power) in &options.grant {
            if !kinds().any(|known| known == kind) {
                let hint = nearest::hint(kind, kinds());
                return Err(Error::usage(format!("--grant: no component is loaded as \"{kind}\"{hint}")));
            }
            if let Some(area) = kind.strip_prefix("area:") {
                grants.entry(area.to_owned()).or_default().insert(*power);
            }
        }
        Ok(grants)
    }
}

/// Runs a short command's work on this thread.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Error::unfinished(format!("no work can be started: {error}")))?.block_on(work)
}

/// The words that continue what has been typed.
pub(super) fn candidates(current: &OsStr, words: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    words.into_iter().filter(|word| word.starts_with(current)).map(CompletionCandidate::new).collect()
}

/// What the shipped battery can say, for completion; nothing if it cannot be loaded.
pub(super) fn shipped() -> Vec<Loaded> {
    let options = ComponentOptions::default();
    block_on(async { Components::load(&options).await?.all().await }).unwrap_or_default()
}
