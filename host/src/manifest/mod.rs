//! Manifests: the cases that a server's author commits, read strictly, checked against the kinds that are loaded.
//!
//! | module | owns |
//! |---|---|
//! | [`document`] | the file: version, timeout, sandboxes, components, the common fields of a case |
//! | [`fields`] | a kind's own fields, checked against the schema that its component declares |
//! | [`scaffold`] | the first manifest of a server |
//! | [`schema`] | the JSON Schema of manifests with the kinds that are loaded |

pub mod document;
pub mod expectation;
mod fields;
pub mod scaffold;
pub mod schema;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::probes::Digest;

pub use document::{Draft, Pin};

#[cfg(test)]
mod tests;

/// The version of manifests.
pub const VERSION: u32 = 1;
/// Bounds of `timeout_ms`, in milliseconds.
pub const TIMEOUT_MS: std::ops::RangeInclusive<u32> = 100..=600_000;
/// The wait per request where a manifest says nothing, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u32 = 30_000;
/// Characters of a sandbox's description.
pub const MAX_DESCRIPTION: usize = 240;
/// The fields that every case has; a kind's own schema leaves them out.
pub const COMMON_FIELDS: [&str; 4] = ["probe", "id", "access", "sandbox"];

/// A manifest whose every case was checked against its kind.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// SHA-256 of the bytes of the file.
    pub sha256: Digest,
    /// Wait per request.
    pub timeout: Duration,
    /// In the order of the file.
    pub cases: Vec<Case>,
}

impl Manifest {
    /// The line of each case's id, 1-based.
    pub fn lines(&self) -> BTreeMap<String, u64> {
        self.cases.iter().map(|case| (case.id.clone(), case.line)).collect()
    }
}

/// What a case may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Call no tool that declares to write.
    ReadOnly,
    /// Call any, in a sandbox that the manifest declares, if the operator allows it.
    Mutating,
}

impl Access {
    /// The word in a manifest.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Mutating => "mutating",
        }
    }
}

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its kind.
    pub kind: String,
    /// Its id, unique in the manifest.
    pub id: String,
    /// What it may do.
    pub access: Access,
    /// The label of its sandbox.
    pub sandbox: Option<String>,
    /// The kind's own fields as JSON, absent ones left out.
    pub config: String,
    /// The tool that reports name: the first of its top-level tool fields, by the field's name.
    pub tool: Option<String>,
    /// Every tool it names, in the order of the file.
    pub tools: Vec<Named>,
    /// Where its id stands: `file:line:column`.
    pub place: String,
    /// The line of that, 1-based.
    pub line: u64,
}

/// A tool that a case names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub tool: String,
    /// Where: `file:line:column: pointer`.
    pub place: String,
}

/// Whether a text is an identifier: a letter, then up to 63 of `A-Z a-z 0-9 _ . : -`.
pub fn is_identifier(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-'))
}
