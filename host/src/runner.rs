//! Plan, preflight, applicability, runs, events. Knows nothing of terminals and command lines.

mod battery;
mod cases;
mod evaluate;
pub(crate) mod site;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::manifest;
use crate::outcome::{NoVerdict, RunRecord};
use crate::probes::{Digest, Loaded, Power};
use crate::session::catalog::Catalog;
use crate::standard::Standard;

pub use evaluate::{Sink, evaluate};
pub(crate) use evaluate::{Tracker, check_arguments, check_listed};

/// Where a run stands, for a progress bar. Sent whenever it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, such as an area's name or a case's id.
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
    /// The listing; none if the server was not reached or its first page had a transport fault.
    pub catalog: Option<Catalog>,
    /// The battery; none if it was not asked for.
    pub battery: Option<BatteryRun>,
    /// The cases in the manifest's order; none without a manifest.
    pub cases: Option<Vec<CaseRun>>,
    /// The first fault in words, for stderr only.
    pub fault: Option<String>,
    /// The server's last stderr bytes, for stderr only.
    pub stderr: Vec<u8>,
    /// Free text of components and diagnostics, for the private run log.
    pub log: Vec<String>,
    /// Kind, or `area:<name>`, to digest of every component that took part.
    pub components: BTreeMap<String, Digest>,
}

/// What the battery brought.
#[derive(Debug)]
pub struct BatteryRun {
    /// The areas and weights used.
    pub standard: Standard,
    /// What the operator chose, for the measurement profile.
    pub profile: Profile,
    /// The components that took part, with the areas each ran for.
    pub runs: Vec<AreaRun>,
    /// Why there is no readiness, if there is none.
    pub error: Option<NoVerdict>,
    /// The fault in words, for stderr only.
    pub fault: Option<String>,
    /// Callable tools of the catalog.
    pub callable: u32,
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

/// One case's run.
#[derive(Debug)]
pub struct CaseRun {
    /// The case.
    pub case: manifest::Case,
    /// The component of its kind.
    pub component: Loaded,
    /// What it said.
    pub record: RunRecord,
    /// How long it took.
    pub elapsed: Duration,
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
    /// Wait for the handshake.
    pub startup_timeout: Duration,
    /// The battery, if it is to run; after the cases.
    pub battery: Option<Battery>,
    /// The selected cases of a manifest.
    pub cases: Option<Cases>,
    /// The operator's choices.
    pub profile: Profile,
    /// Arguments per tool, as JSON text of each value.
    pub arguments: BTreeMap<String, String>,
}

impl Plan {
    /// Every component that will take part.
    pub fn components(&self) -> impl Iterator<Item = &Loaded> {
        let battery = self.battery.iter().flat_map(|battery| &battery.components);
        battery.chain(self.cases.iter().flat_map(|cases| cases.planned.iter().map(|planned| &planned.component)))
    }
}

/// A standard and the components that serve it.
#[derive(Debug)]
pub struct Battery {
    /// The areas and weights.
    pub standard: Standard,
    /// One component per area of the standard, in its order; the same component may stand several times.
    pub components: Vec<Loaded>,
    /// Powers below the protocol granted to a component that is not of the battery, by area.
    pub grants: BTreeMap<String, BTreeSet<Power>>,
}

/// The cases to run.
#[derive(Debug)]
pub struct Cases {
    /// Wait per request.
    pub timeout: Duration,
    /// In the order of the manifest.
    pub planned: Vec<Planned>,
}

/// One case and the component of its kind.
#[derive(Debug)]
pub struct Planned {
    /// The case.
    pub case: manifest::Case,
    /// The component.
    pub component: Loaded,
    /// Powers below the protocol that it may use.
    pub granted: BTreeSet<Power>,
}

/// How a server is reached.
#[derive(Debug)]
pub enum Target {
    /// A child process.
    Stdio(crate::wire::launch::Launch),
    /// A Streamable HTTP endpoint.
    Http(crate::wire::http::Endpoint),
}
