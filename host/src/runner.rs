//! Plan, preflight, applicability, runs, events. Knows nothing of terminals and command lines.

mod evaluate;
pub(crate) mod site;

use std::collections::{BTreeMap, BTreeSet};

use crate::outcome::{NoVerdict, RunRecord};
use crate::probes::{Digest, Loaded, Power};
use crate::session::catalog::Catalog;
use crate::standard::Standard;

pub use evaluate::{Sink, evaluate};

/// Where a run stands, for a progress bar. Sent whenever it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, such as an area's name.
    pub step: String,
    /// Finished callable tools or steps.
    pub finished: u32,
    /// All of them; 0 while unknown.
    pub total: u32,
    /// Requests spent so far, and the budget.
    pub requests: (u32, u32),
}

/// What the evaluation of one server brought, before it becomes a document.
#[derive(Debug)]
pub struct Evaluation {
    /// The areas and weights used.
    pub standard: Standard,
    /// The listing; none if the server was not reached or its first page had a transport fault.
    pub catalog: Option<Catalog>,
    /// The components that took part, with the areas each ran for.
    pub runs: Vec<AreaRun>,
    /// Why there is no readiness, if there is none.
    pub error: Option<NoVerdict>,
    /// The fault in words, for stderr only.
    pub fault: Option<String>,
    /// The server's last stderr bytes, for stderr only.
    pub stderr: Vec<u8>,
    /// Free text of components and diagnostics, for the private run log.
    pub log: Vec<String>,
    /// Callable tools of the catalog.
    pub callable: u32,
    /// What the operator chose, for the measurement profile.
    pub profile: Profile,
    /// `area:<name>` to digest of every component that took part.
    pub components: BTreeMap<String, Digest>,
}

/// One component's run for one or several areas.
#[derive(Debug)]
pub struct AreaRun {
    /// The component.
    pub component: Loaded,
    /// The areas it was asked for, in standard order.
    pub areas: Vec<String>,
    /// What it said.
    pub record: RunRecord,
}

/// The operator's choices that make scores comparable or not.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Unannotated tools are attested to be read-only.
    pub attested_read_only: bool,
    /// Tools never called, sorted.
    pub skip_tools: Vec<String>,
    /// Wait for every answer but the handshake's, in milliseconds.
    pub call_timeout_ms: u32,
    /// Valid calls per tool.
    pub repeats: u32,
    /// Configured maximum of lanes.
    pub lanes: u32,
    /// SHA-256 of the canonical JSON of the arguments file.
    pub arguments_sha256: Option<Digest>,
}

/// What to evaluate and how.
#[derive(Debug)]
pub struct Plan {
    /// How to reach the server.
    pub target: Target,
    /// The areas and weights.
    pub standard: Standard,
    /// One component per area of the standard, in its order; the same component may stand several times.
    pub components: Vec<Loaded>,
    /// The operator's choices.
    pub profile: Profile,
    /// Arguments per tool, as JSON text of each value.
    pub arguments: BTreeMap<String, String>,
    /// Powers below the protocol granted to a component that is not of the battery, by area.
    pub grants: BTreeMap<String, BTreeSet<Power>>,
    /// Wait for the handshake.
    pub startup_timeout: std::time::Duration,
}

/// How a server is reached.
#[derive(Debug)]
pub enum Target {
    /// A child process.
    Stdio(crate::wire::launch::Launch),
    /// A Streamable HTTP endpoint.
    Http(crate::wire::http::Endpoint),
}
