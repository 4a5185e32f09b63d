//! The states of findings and the evidence for them, in `lifecycle.db`. Nothing else says what they were: the database is
//! derived from nothing.

use serde::{Deserialize, Serialize};

/// Where a finding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not fixed yet.
    Open,
    /// A fix was tried, the last check was red.
    FixClaimed,
    /// Some green checks, fewer than three in a row.
    Verifying,
    /// Three green checks in a row.
    Closed,
}
