//! `battery.lock`: what each committed component is and was made of.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{LOCK, Result, read_text};

/// The whole lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The compiler, as `rustc --version` names it.
    pub rustc: String,
    /// Digest of the standard library that was linked: only against the same one can bytes be compared.
    pub std: String,
    /// The components.
    pub component: Vec<Component>,
}

/// One component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Its name; the file is `<name>.wasm`.
    pub name: String,
    /// Digest of the file.
    pub sha256: String,
    /// Digest of everything it was built from.
    pub inputs: String,
}

impl Lock {
    /// Reads the lock of a folder.
    pub fn read(dist: &Path) -> Result<Self> {
        let path = dist.join(LOCK);
        toml::from_str(&read_text(&path)?).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Writes it.
    pub fn write(&self, dist: &Path) -> Result<()> {
        let path = dist.join(LOCK);
        let text = toml::to_string(self).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = format!("# Written by probes/rebuild. What the components beside it are and were made of.\n{text}");
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}
