//! The registry of components: the battery and what the user names; digests, pins, grants, manifests.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::error::{Error, Result};
use crate::guest::{self, Engine, limits};
use crate::notation;
use crate::outcome::Level;

/// The shipped components: name, component, compiled form. A static, since every mention of a constant is a copy.
static BATTERY: &[(&str, &[u8], &[u8])] = include!(concat!(env!("OUT_DIR"), "/battery.rs"));

/// A check as a component declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// `<area>.<name>` for areas, else the kind's own id.
    pub id: String,
    /// How strongly the rule binds.
    pub level: Level,
    /// One line for people.
    pub title: String,
    /// Where the rule stands.
    pub reference: Option<String>,
    /// The area it counts towards; none for the kinds of a manifest.
    pub area: Option<String>,
}

/// A reason as a component declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The label in reports.
    pub label: String,
    /// What is wrong and what to change.
    pub hint: String,
    /// The checks that may give it.
    pub checks: Vec<String>,
}

/// A metric as a component declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The name in reports.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The area it belongs to.
    pub area: Option<String>,
    /// The words a reading may be; empty for a number.
    pub labels: Vec<String>,
}

/// Whether the cases of a component may call declared writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Never.
    ReadOnly,
    /// In a case that says so.
    MayMutate,
}

/// A power below the protocol, which needs a grant unless the component is of the battery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Power {
    /// Bytes on a child's pipes.
    Pipe,
    /// HTTP requests of any shape to the target's address.
    Http,
}

impl Power {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Pipe, Self::Http];

    /// The power of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|power| power.word() == word)
    }

    /// The word on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Http => "http",
        }
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What a component says of itself, read once per digest and without any capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Name of the kind, `<vendor>.<name>` for third parties.
    pub kind: String,
    /// Version of the component.
    pub version: String,
    /// One line for people.
    pub title: String,
    /// A few sentences for people.
    pub summary: String,
    /// JSON Schema of the case fields, as text.
    pub config_schema: String,
    /// Declared checks, in table order.
    pub checks: Vec<Check>,
    /// Declared reasons.
    pub reasons: Vec<Reason>,
    /// Declared metrics.
    pub metrics: Vec<Metric>,
    /// Paths into the server's capabilities, `transport.*` and `lifecycle.*` words.
    pub needs: Vec<String>,
    /// Whether its cases may mutate.
    pub access: Access,
    /// What one run usually spends: requests, sessions, milliseconds.
    pub asks: (u32, u32, u32),
}

impl Manifest {
    /// The areas its checks count towards, in the order of the checks.
    pub fn areas(&self) -> Vec<&str> {
        let mut areas: Vec<&str> = Vec::new();
        for area in self.checks.iter().filter_map(|check| check.area.as_deref()) {
            if !areas.contains(&area) {
                areas.push(area);
            }
        }
        areas
    }

    /// The hint of a declared reason.
    pub fn hint(&self, label: &str) -> Option<&str> {
        self.reasons.iter().find(|reason| reason.label == label).map(|reason| reason.hint.as_str())
    }
}

/// SHA-256 of a component's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// From 64 hexadecimal digits, in letters of either case.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let digit = |place: u8| char::from(place).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether a text may name an area, a shipped kind, or a part of a kind of a third party: `[a-z][a-z0-9-]{0,31}`.
pub fn is_word(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Whether a text may name a kind of a third party, `<vendor>.<name>`.
pub fn is_foreign_kind(text: &str) -> bool {
    text.split_once('.').is_some_and(|(vendor, name)| is_word(vendor) && is_word(name))
}

/// A component that can be run.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it says of itself.
    pub manifest: Arc<Manifest>,
    /// Digest of its bytes.
    pub digest: Digest,
    /// The powers below the protocol that it imports.
    pub powers: BTreeSet<Power>,
    /// Whether it is of the shipped battery.
    pub shipped: bool,
    /// The compiled form.
    pub component: crate::guest::Component,
}

impl Loaded {
    /// Whether cases of a manifest may name it: it serves no area of a standard.
    pub fn is_kind(&self) -> bool {
        self.manifest.areas().is_empty()
    }
}

/// Loads components, each of them once.
#[derive(Debug)]
pub struct Registry {
    engine: Engine,
    loaded: Mutex<HashMap<Digest, Loaded>>,
}

impl Registry {
    /// A registry with nothing loaded yet.
    pub fn new(engine: Engine) -> Self {
        Self { engine, loaded: Mutex::default() }
    }

    /// The engine that its components run in.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Every component of the battery, in the order of their names.
    pub async fn shipped(&self) -> Result<Vec<Loaded>> {
        let mut all = Vec::with_capacity(BATTERY.len());
        for position in 0..BATTERY.len() {
            all.extend(self.shipped_at(position).await?);
        }
        Ok(all)
    }

    /// The shipped component of a kind; none if there is no such kind.
    pub async fn shipped_kind(&self, kind: &str) -> Result<Option<Loaded>> {
        let Some(position) = BATTERY.iter().position(|(name, ..)| *name == kind) else { return Ok(None) };
        Ok(self.shipped_at(position).await?.filter(Loaded::is_kind))
    }

    /// The component of the battery that serves an area; none if there is no such area.
    pub async fn shipped_area(&self, area: &str) -> Result<Option<Loaded>> {
        // A component named like its area is the likeliest to serve it; the manifest decides.
        let mut order: Vec<usize> = (0..BATTERY.len()).collect();
        order.sort_by_key(|position| BATTERY.get(*position).is_none_or(|(name, ..)| *name != area));
        for position in order {
            if let Some(loaded) = self.shipped_at(position).await?
                && loaded.manifest.areas().contains(&area)
            {
                return Ok(Some(loaded));
            }
        }
        Ok(None)
    }

    async fn shipped_at(&self, position: usize) -> Result<Option<Loaded>> {
        let Some((name, bytes, compiled)) = BATTERY.get(position) else { return Ok(None) };
        let digest = guest::digest(bytes);
        let load = || guest::shipped(&self.engine, bytes, compiled);
        self.load(digest, true, load)
            .await
            .map(Some)
            .map_err(|why| Error::unfinished(format!("the shipped component {name} cannot be used: {why}")))
    }

    /// A component of a user. `pin` is its SHA-256 in hexadecimal.
    pub async fn file(&self, path: &Path, pin: Option<&str>) -> Result<Loaded> {
        let shown = crate::shown::path(path);
        let bytes = read_capped(path).map_err(|why| Error::usage(format!("the component {shown} {why}")))?;
        let digest = guest::digest(&bytes);
        if pin.is_some_and(|pin| !pin.eq_ignore_ascii_case(&digest.to_string())) {
            return Err(Error::usage(format!(
                "the component {shown} is not the pinned one: its sha256 is {digest}; check the file, then the pin"
            )));
        }
        let engine = self.engine.clone();
        let compiling = tokio::task::spawn_blocking(move || guest::foreign(&engine, &bytes, digest));
        let compiled =
            compiling.await.map_err(|_| Error::unfinished(format!("the component {shown} was not compiled")))?;
        self.load(digest, false, || compiled)
            .await
            .map_err(|why| Error::usage(format!("the component {shown} cannot be used: {why}")))
    }

    async fn load(
        &self,
        digest: Digest,
        shipped: bool,
        component: impl FnOnce() -> Result<guest::Component, String>,
    ) -> Result<Loaded, String> {
        let mut loaded = self.loaded.lock().await;
        if let Some(known) = loaded.get(&digest) {
            return Ok(known.clone());
        }
        let component = component()?;
        let manifest = Arc::new(guest::describe(&self.engine, &component, shipped).await?);
        let entry = Loaded { manifest, digest, powers: component.powers.clone(), shipped, component };
        loaded.insert(digest, entry.clone());
        Ok(entry)
    }
}

/// The bytes that are hashed are the bytes that are compiled, and no more of them than a component may have.
fn read_capped(path: &Path) -> Result<Vec<u8>, String> {
    let file = notation::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("is no regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(limits::COMPONENT_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > limits::COMPONENT_FILE {
        return Err(format!("is larger than {} MiB", limits::COMPONENT_FILE >> 20));
    }
    Ok(bytes)
}
