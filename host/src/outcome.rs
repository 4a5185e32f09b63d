//! What a run says: findings, measurements, scores, and how it ended. Plain data, shared by the guest host,
//! the runner, the standard and the report.

use std::collections::BTreeMap;
use std::fmt;

/// Number of one message in the transcript.
pub type ExchangeId = u32;

/// How strongly the rule behind a check binds, as its manifest declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The protocol's MUST.
    Must,
    /// The protocol's SHOULD.
    Should,
    /// Good practice.
    Advice,
}

/// One judgement's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Holds.
    Pass,
    /// Does not hold.
    Fail,
    /// No verdict could be reached.
    Error,
    /// Did not apply, or was not reached.
    Untested,
}

/// Why there is no verdict. These labels belong to the host and are declared by no component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoVerdict {
    /// The shared budget ran out.
    BudgetExceeded,
    /// No answer in time.
    TransportTimeout,
    /// The connection or process ended first.
    TransportClosed,
    /// Any other fault of the transport.
    TransportError,
    /// The opening was declined or answered with a revision nobody here speaks.
    HandshakeFailed,
    /// A component trapped, exceeded a limit or broke the contract.
    ComponentFault,
}

impl NoVerdict {
    /// All labels, in the order of docs/standard.md.
    pub const ALL: [Self; 6] = [
        Self::BudgetExceeded,
        Self::TransportTimeout,
        Self::TransportClosed,
        Self::TransportError,
        Self::HandshakeFailed,
        Self::ComponentFault,
    ];

    /// The label in reports.
    pub const fn label(self) -> &'static str {
        match self {
            Self::BudgetExceeded => "evaluation-budget-exceeded",
            Self::TransportTimeout => "transport-timeout",
            Self::TransportClosed => "transport-closed",
            Self::TransportError => "transport-error",
            Self::HandshakeFailed => "handshake-failed",
            Self::ComponentFault => "component-fault",
        }
    }

    /// The reason of that label.
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.label() == label)
    }

    /// What was observed, and what to do about it.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::BudgetExceeded => {
                "The evaluation's requests, sessions, bytes or time ran out; skip or speed up slow tools, or evaluate fewer of them."
            }
            Self::TransportTimeout => {
                "The server did not answer in time; check that it is not waiting for input, a lock or a remote service."
            }
            Self::TransportClosed => {
                "The connection or process ended before the answer came; look at the server's last stderr lines for a crash."
            }
            Self::TransportError => {
                "The server could not be reached or sent something that is no answer; check the command or URL and that only protocol messages reach stdout."
            }
            Self::HandshakeFailed => {
                "The server declined initialize or chose an unknown revision; answer with a protocol revision that clients speak."
            }
            Self::ComponentFault => {
                "The probe component trapped, exceeded a limit or broke its contract; report it to the component's author with the run log."
            }
        }
    }
}

impl fmt::Display for NoVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A broken bound of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// A property of the config schema.
    pub name: String,
    /// What it allows.
    pub limit: u32,
    /// What was seen.
    pub observed: u32,
}

/// One judgement: declared labels, names of the catalog, and numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Id of a declared check.
    pub check: String,
    /// A tool as the catalog names it, or a prompt or resource.
    pub subject: Option<String>,
    /// Position in a list of the case's own.
    pub step: Option<u32>,
    /// The outcome.
    pub verdict: Verdict,
    /// 0 to 100 where the check gives partial credit.
    pub score: Option<u8>,
    /// A declared label, or with `error` a no-verdict label.
    pub reason: Option<String>,
    /// The broken bound.
    pub bound: Option<Bound>,
    /// What was counted.
    pub observed: Option<u32>,
    /// The exchanges it rests on.
    pub evidence: Vec<ExchangeId>,
}

/// A measured value.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// A finite number.
    Number(f64),
    /// A declared word.
    Label(String),
}

/// A declared metric and its value; with a subject it is one entry of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Name of the metric.
    pub metric: String,
    /// The tool it belongs to.
    pub subject: Option<String>,
    /// The value.
    pub value: Reading,
}

/// The score of a finished area, unrounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AreaScore {
    /// 0 to 100.
    pub score: f64,
    /// The same with latency at its best, where latency took part.
    pub untimed: Option<f64>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The component returned.
    Finished {
        /// Requests the verdict rests on.
        attempts: u32,
        /// 1-based number of the one that failed.
        first_failure: Option<u32>,
    },
    /// It could not finish; what it had submitted by then counts.
    Stopped {
        /// The label.
        reason: NoVerdict,
        /// For people and the private log, never for a report.
        detail: String,
    },
}

/// Everything one component run said, in the order it said it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Judgements.
    pub findings: Vec<Finding>,
    /// Measured values.
    pub measurements: Vec<Measurement>,
    /// Finished areas by name.
    pub areas: BTreeMap<String, AreaScore>,
    /// Finished and total callable tools, as last reported.
    pub progress: Option<(u32, u32)>,
    /// How it ended.
    pub ended: Ended,
}

impl RunRecord {
    /// A run that said nothing and could not finish.
    pub fn stopped(reason: NoVerdict, detail: impl Into<String>) -> Self {
        Self::silent(Ended::Stopped { reason, detail: detail.into() })
    }

    /// A run that said nothing because there was nothing to ask.
    pub fn finished(attempts: u32) -> Self {
        Self::silent(Ended::Finished { attempts, first_failure: None })
    }

    fn silent(ended: Ended) -> Self {
        Self { findings: Vec::new(), measurements: Vec::new(), areas: BTreeMap::new(), progress: None, ended }
    }
}
