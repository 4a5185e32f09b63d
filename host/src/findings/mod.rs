//! Findings: recurring failures of real calls, what each is, and whether it has been verified to be gone.

pub mod build;
pub mod classify;
pub mod export;
pub mod generate;
pub mod promote;
pub mod read;
pub mod render;
pub mod schema;
pub mod verify;

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

impl Severity {
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// The word in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl Class {
    /// All of them, in the order in which the first that fits is taken.
    pub const ALL: [Self; 6] = [
        Self::UnstableErrorCode,
        Self::FalseSuccess,
        Self::BlockedOptimalPath,
        Self::RecoversOnRetry,
        Self::RetryDidNotRecover,
        Self::RecurringError,
    ];

    /// The word in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::UnstableErrorCode => "unstable-error-code",
            Self::FalseSuccess => "false-success",
            Self::BlockedOptimalPath => "blocked-optimal-path",
            Self::RecoversOnRetry => "recovers-on-retry",
            Self::RetryDidNotRecover => "retry-did-not-recover",
            Self::RecurringError => "recurring-error",
        }
    }

    /// What the author of the server can do about it.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::UnstableErrorCode => {
                "The same error text comes with several codes. Give each cause one stable code, so that a client can \
                 decide by it."
            }
            Self::FalseSuccess => {
                "Calls reported success, and somebody saw that nothing was done. Report the failure as an error \
                 (isError: true), or make the effect real before answering."
            }
            Self::BlockedOptimalPath => {
                "The direct call was right and failed, so that a longer way had to be taken. Let this call work with \
                 these arguments."
            }
            Self::RecoversOnRetry => {
                "The call fails, and a later one succeeds. Remove the transient cause, or retry inside the tool before \
                 answering."
            }
            Self::RetryDidNotRecover => {
                "The error says that trying again helps, and no call after it succeeded. Say retryable: false, or make \
                 a retry work."
            }
            Self::RecurringError => {
                "Calls of this shape keep failing in the same way. Fix the tool for these arguments, or say in its \
                 description and schema that they are not accepted."
            }
        }
    }
}

/// Where a finding stands, in words for people.
pub fn in_words(state: State, passes: u32) -> String {
    match state {
        State::Open => "not fixed yet".to_owned(),
        State::FixClaimed => "a fix was tried, the last check was red".to_owned(),
        State::Verifying => format!("{passes} of 3 green checks"),
        State::Closed => "three green checks in a row".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_documents() {
        for class in Class::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.word());
        }
        for severity in Severity::ALL {
            assert_eq!(serde_json::to_value(severity).unwrap(), severity.word());
        }
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        }
        assert_eq!(in_words(State::Verifying, 2), "2 of 3 green checks");
    }
}
