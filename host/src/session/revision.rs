//! The one table of protocol revisions: which are spoken, and what each means for a conversation.

/// How a conversation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// `initialize`, then `notifications/initialized`.
    Handshake,
}

impl Lifecycle {
    /// The word in the contract.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
        }
    }
}

/// One revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision {
    /// Its date, which is its name on the wire.
    pub date: &'static str,
    /// How a conversation begins.
    pub lifecycle: Lifecycle,
    /// Whether a receiver must accept several messages in one JSON array.
    pub batches: bool,
    /// Whether a stream that ends early may be taken up again with `Last-Event-ID`.
    pub resumes: bool,
}

/// Every revision spoken, oldest first (docs/standard.md).
pub const REVISIONS: [Revision; 4] = [
    Revision { date: "2024-11-05", lifecycle: Lifecycle::Handshake, batches: false, resumes: false },
    Revision { date: "2025-03-26", lifecycle: Lifecycle::Handshake, batches: true, resumes: true },
    Revision { date: "2025-06-18", lifecycle: Lifecycle::Handshake, batches: false, resumes: true },
    Revision { date: "2025-11-25", lifecycle: Lifecycle::Handshake, batches: false, resumes: true },
];

/// The revision offered when nothing else is asked for.
pub const OFFERED: Revision = REVISIONS[REVISIONS.len() - 1];

/// The row of a revision, if it is spoken.
pub fn find(date: &str) -> Option<Revision> {
    REVISIONS.into_iter().find(|revision| revision.date == date)
}

/// The newest spoken revision among those a server says it supports.
pub fn newest_of<'a>(supported: impl IntoIterator<Item = &'a str>) -> Option<Revision> {
    supported.into_iter().filter_map(find).max_by_key(|revision| revision.date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_offered_and_picked() {
        assert_eq!(OFFERED.date, "2025-11-25");
        let picked = newest_of(["2024-11-05", "2025-06-18", "2026-07-28", "nonsense"]);
        assert_eq!(picked.map(|revision| revision.date), Some("2025-06-18"));
        assert_eq!(newest_of(["2026-07-28"]), None);
    }
}
