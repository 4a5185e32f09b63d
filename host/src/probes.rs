//! The registry of components: the battery and what the user names; digests, pins, grants, manifests.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::outcome::Level;

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
