//! Loads the components that the options name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use clap_complete::CompletionCandidate;

use super::options::ComponentOptions;
use super::settings::Settings;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::guest::{self, Engine};
use crate::manifest::Draft;
use crate::probes::{Digest, Loaded, Manifest, Power, Registry};
use crate::runner::Battery;
use crate::standard::{Source, Standard};
use crate::{nearest, shown};

/// The battery, what `--component` adds, and what the configuration could add.
pub(super) struct Components {
    registry: Registry,
    added: Vec<Loaded>,
    grants: Vec<(String, Power)>,
    config: Config,
}

impl Components {
    /// Loads what `--component` names. Components of the configuration are only loaded when they are asked for.
    pub(super) async fn load(options: &ComponentOptions, settings: &Settings) -> Result<Self> {
        let registry = Registry::new(Engine::new(guest::user_folder()).map_err(Error::Unfinished)?);
        let mut added: Vec<Loaded> = Vec::new();
        for (kind, path) in &options.component {
            let loaded = of_kind(&registry, kind, path, None).await?;
            if added.iter().any(|earlier| earlier.manifest.kind == *kind) {
                return Err(Error::usage(format!("--component {kind} is given twice")));
            }
            added.push(loaded);
        }
        Ok(Self { registry, added, grants: options.grant.clone(), config: settings.config.clone() })
    }

    /// The engine that they run in.
    pub(super) fn engine(&self) -> &Engine {
        self.registry.engine()
    }

    /// A component that is no part of the battery.
    pub(super) async fn file(&self, path: &Path) -> Result<Loaded> {
        self.registry.file(path, None).await
    }

    /// The components that mcpeval brings.
    pub(super) async fn shipped(&self) -> Result<Vec<Loaded>> {
        self.registry.shipped().await
    }

    /// All that can be loaded, the battery first.
    pub(super) async fn all(&self) -> Result<Vec<Loaded>> {
        let mut all = self.registry.shipped().await?;
        all.extend(self.added.iter().cloned());
        for kind in self.config.components.keys().filter(|kind| !self.is_added(kind)) {
            all.extend(self.foreign(kind, None).await?);
        }
        Ok(all)
    }

    fn is_added(&self, kind: &str) -> bool {
        self.added.iter().any(|added| added.manifest.kind == kind)
    }

    /// The component of a third party's kind: of `--component`, else the given file with its pin, else of the
    /// configuration; none if nobody names one.
    pub(super) async fn foreign(&self, kind: &str, pinned: Option<(&Path, Digest)>) -> Result<Option<Loaded>> {
        if let Some(added) = self.added.iter().find(|added| added.manifest.kind == kind) {
            return Ok(Some(added.clone()));
        }
        let configured = || self.config.components.get(kind).map(|entry| (entry.path.as_path(), entry.sha256));
        match pinned.or_else(configured) {
            Some((path, pin)) => of_kind(&self.registry, kind, path, Some(pin)).await.map(Some),
            None => Ok(None),
        }
    }

    /// The component of every kind that a manifest names: shipped, or a third party's.
    pub(super) async fn of_manifest(&self, draft: &Draft) -> Result<BTreeMap<String, Loaded>> {
        let mut kinds = BTreeMap::new();
        for kind in draft.kinds() {
            let pinned = draft.pins().get(kind).map(|pin| (pin.path.as_path(), pin.sha256));
            let loaded = match self.registry.shipped_kind(kind).await? {
                Some(shipped) => Some(shipped),
                None => self.foreign(kind, pinned).await?,
            };
            let Some(loaded) = loaded else { return Err(self.unknown(draft, kind).await) };
            if !loaded.is_kind() {
                return Err(Error::usage(format!(
                    "the component of kind {kind} serves areas of a standard; it has no cases"
                )));
            }
            kinds.insert(kind.to_owned(), loaded);
        }
        Ok(kinds)
    }

    async fn unknown(&self, draft: &Draft, kind: &str) -> Error {
        let shipped = match self.registry.shipped().await {
            Ok(shipped) => shipped,
            Err(error) => return error,
        };
        let kinds = shipped.iter().chain(&self.added).filter(|loaded| loaded.is_kind());
        let names = kinds.map(|loaded| loaded.manifest.kind.as_str());
        let others = draft.pins().keys().chain(self.config.components.keys()).map(String::as_str);
        let known: BTreeSet<&str> = names.chain(others).collect();
        draft.unknown(kind, known)
    }

    /// The powers granted to a component: by `--grant` to its kind or `area:<name>`, by the configuration to its bytes.
    pub(super) fn powers(&self, name: &str, component: &Loaded) -> BTreeSet<Power> {
        let given = self.grants.iter().filter(|(kind, _)| kind == name).map(|(_, power)| *power);
        given.chain(self.config.granted(component.digest)).collect()
    }

    /// Checks that every `--grant` is for something that is loaded; `others` are kinds beside those that the options
    /// and the configuration name.
    pub(super) fn check_grants<'a>(&'a self, others: impl Iterator<Item = &'a str>) -> Result<()> {
        let added = self.added.iter().map(|added| added.manifest.kind.as_str());
        let configured = self.config.components.keys().map(String::as_str);
        let known: Vec<&str> = others.chain(added).chain(configured).collect();
        match self.grants.iter().find(|(kind, _)| !known.contains(&kind.as_str())) {
            Some((kind, _)) => {
                let hint = nearest::choices(kind, known.iter().copied());
                Err(Error::usage(format!("--grant: no component is loaded as \"{}\"{hint}", shown::word(kind))))
            }
            None => Ok(()),
        }
    }

    /// One component per area of a standard, in its order; each declares its area.
    async fn of_standard(&self, standard: &Standard) -> Result<Vec<Loaded>> {
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

    /// The battery of a standard with what is granted to its components; `kinds` run beside it.
    pub(super) async fn battery(&self, standard: Standard, kinds: &[&str]) -> Result<Battery> {
        let components = self.of_standard(&standard).await?;
        let names: Vec<String> = standard.areas.iter().map(|area| format!("area:{}", area.name)).collect();
        self.check_grants(names.iter().map(String::as_str).chain(kinds.iter().copied()))?;
        let areas = standard.areas.iter().zip(&names).zip(&components);
        let grants = areas.map(|((area, name), component)| (area.name.clone(), self.powers(name, component))).collect();
        Ok(Battery { standard, components, grants })
    }
}

/// A file, which must be of that kind.
async fn of_kind(registry: &Registry, kind: &str, path: &Path, pin: Option<Digest>) -> Result<Loaded> {
    let loaded = registry.file(path, pin.map(|pin| pin.to_string()).as_deref()).await?;
    if loaded.manifest.kind == kind {
        return Ok(loaded);
    }
    let found = &loaded.manifest.kind;
    Err(Error::usage(format!("the component {} is of the kind {found}, not {kind}", shown::path(path))))
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
    let (options, settings) = (ComponentOptions::default(), Settings::default());
    block_on(async { Components::load(&options, &settings).await?.all().await }).unwrap_or_default()
}
