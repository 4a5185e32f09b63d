//! Findings: recurring failures of real calls, what each is, and whether it has been verified to be gone.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::store::lifecycle::State;

/// One promoted finding with its state, as `findings --format json` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// `finding-` and 16 hex digits.
    pub finding_id: String,
    /// Where it stands.
    pub state: State,
    /// The case that verifies it, if one did.
    pub probe_id: Option<String>,
    /// Green verifications in a row.
    pub consecutive_passes: u32,
    /// The server's label.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Its most frequent error code.
    pub err_code: String,
    /// All its error codes, sorted.
    pub err_codes: Vec<String>,
    /// The id of the error text's skeleton, or what stands for it.
    pub err_template_id: String,
    /// Failed calls.
    pub failures: u64,
    /// Calls of the tool.
    pub calls: u64,
    /// Sessions with a failure.
    pub sessions: u64,
    /// When it failed last: RFC 3339.
    pub last_seen: String,
    /// Median of the records around a failure.
    pub cost: f64,
    /// Tools around its failures.
    pub blast: u64,
    /// Failures per call.
    pub rate: f64,
    /// Lower bound of the rate.
    pub confidence: f64,
    /// How much of it time has left.
    pub recency: f64,
    /// The product.
    pub score: f64,
    /// What it had to reach.
    pub threshold: f64,
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub class: Class,
    /// What its errors say of trying again, if they agree.
    pub retryable: Option<bool>,
    /// What to do about it.
    pub hint: String,
    /// The shape of the arguments of its earliest failure.
    pub repro: Value,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Above the threshold.
    Low,
    /// Twice the threshold.
    Medium,
    /// Four times the threshold.
    High,
}

/// What a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// One text, several codes.
    UnstableErrorCode,
    /// It said that it succeeded and had not.
    FalseSuccess,
    /// The direct call should have worked.
    BlockedOptimalPath,
    /// A later call of the tool succeeded.
    RecoversOnRetry,
    /// It says that trying again helps, and that did not.
    RetryDidNotRecover,
    /// None of these.
    RecurringError,
}
