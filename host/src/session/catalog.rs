//! The catalog of one server: entries of `tools/list` as they came, their classes, and what makes one invalid.

use std::sync::Arc;

use super::Fault;
use crate::outcome::ExchangeId;

/// What the hints of an entry make of it, docs/standard.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolClass {
    /// `readOnlyHint` is true.
    ReadOnly,
    /// `destructiveHint` is true or `readOnlyHint` is false.
    Writer,
    /// Says nothing.
    Unannotated,
    /// No usable entry.
    Invalid,
}

impl ToolClass {
    /// The word in reports; an invalid entry has none there.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Writer => "writer",
            Self::Unannotated => "unannotated",
            Self::Invalid => "invalid",
        }
    }
}

/// One entry of the listing.
#[derive(Debug, Clone)]
pub struct Entry {
    /// How findings name it: its name, or `invalid-name#<position>`.
    pub label: String,
    /// The class.
    pub class: ToolClass,
    /// Whether an earlier entry has the same name; the first counts.
    pub repeated: bool,
    /// The class its hints alone would give, for entries that are invalid by their schema only.
    pub hinted: ToolClass,
    /// The whole entry, exactly as it came.
    pub raw: Arc<str>,
}

/// The listing of one server.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// In listing order, repeated names included.
    pub entries: Vec<Entry>,
    /// The answers that made it.
    pub pages: Vec<ExchangeId>,
    /// Why the listing stopped before its end, if it did.
    pub fault: Option<Fault>,
}

impl Catalog {
    /// Whether it was listed to its end.
    pub fn is_complete(&self) -> bool {
        self.fault.is_none()
    }

    /// The first entry of that name.
    pub fn find(&self, label: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.label == label)
    }
}
