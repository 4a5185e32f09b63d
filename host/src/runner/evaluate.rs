//! The evaluation of one server: preflight, the cases of a manifest, the battery, and what is left when something did
//! not finish.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::site::Site;
use super::{BatteryRun, CaseRun, Cases, Evaluation, Plan, Progress, battery, cases};
use crate::error::{Error, Result};
use crate::guest::{self, Engine};
use crate::ledger::{self, Ledger};
use crate::outcome::RunRecord;
use crate::probes::{Loaded, Manifest, Power};
use crate::services::schema;
use crate::session::catalog::Catalog;
use crate::session::{Context, Fault, Policy, Session, object};
use crate::{nearest, shown};

/// Progress goes here; called from any thread.
pub type Sink = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Evaluate one server. `Err` is for what the operator asked wrongly, found before or after connecting; whatever the
/// server does is part of the evaluation.
pub async fn evaluate(plan: Plan, engine: &Engine, on_progress: Sink) -> Result<Evaluation> {
    if let Some(battery) = &plan.battery {
        battery::check_grants(battery)?;
    }
    if let Some(cases) = &plan.cases {
        cases::check_grants(cases)?;
    }
    let ledger = Ledger::new(ledger::EVALUATION);
    let progress = Arc::new(Tracker::new(on_progress, Arc::clone(&ledger)));
    progress.step("start");
    let Plan { target, startup_timeout, battery, cases, profile, arguments } = plan;
    let site = Site::prepare(target, startup_timeout)?;
    let log = Mutex::default();
    let outcome = run_all(&site, engine, &ledger, &progress, &log, Order { battery, cases, profile, arguments }).await;
    progress.step("end");
    site.server.end().await;
    let outcome = outcome?;
    let mut log = log.into_inner().unwrap_or_else(PoisonError::into_inner);
    log.extend(site.server.hub().transcript.lines());
    let mut components = outcome.battery.as_ref().map(BatteryRun::components).unwrap_or_default();
    components.extend(outcome.cases.iter().flatten().map(|run| (run.case.kind.clone(), run.component.digest)));
    Ok(Evaluation {
        catalog: outcome.catalog,
        battery: outcome.battery,
        cases: outcome.cases,
        fault: outcome.fault,
        stderr: site.stderr(),
        log,
        components,
    })
}

struct Order {
    battery: Option<super::Battery>,
    cases: Option<Cases>,
    profile: super::Profile,
    arguments: BTreeMap<String, String>,
}

struct Outcome {
    catalog: Option<Catalog>,
    battery: Option<BatteryRun>,
    cases: Option<Vec<CaseRun>>,
    fault: Option<String>,
}

impl Outcome {
    /// Nothing ran: every case and the battery have the same label.
    fn unreached(order: Order, fault: &Fault) -> Self {
        let battery = order.battery.map(|battery| BatteryRun {
            error: Some(fault.cause.label()),
            ..BatteryRun::unreached(battery.standard, order.profile)
        });
        let cases = order.cases.map(|cases| CaseRun::all_unreached(cases, fault));
        Self { catalog: None, battery, cases, fault: Some(fault.detail.clone()) }
    }
}

async fn run_all(
    site: &Site,
    engine: &Engine,
    ledger: &Arc<Ledger>,
    progress: &Arc<Tracker>,
    log: &Mutex<Vec<String>>,
    order: Order,
) -> Result<Outcome> {
    let patience = match (&order.battery, &order.cases) {
        (None, Some(cases)) => cases.timeout,
        _ => Duration::from_millis(order.profile.call_timeout_ms.into()),
    };
    let (session, catalog) = match site.list(ledger, patience, || progress.step("list")).await {
        Ok(listed) => listed,
        Err(fault) => return Ok(Outcome::unreached(order, &fault)),
    };
    let Order { battery, cases, profile, arguments } = order;
    let skipped: BTreeSet<String> = profile.skip_tools.iter().cloned().collect();
    for tool in &skipped {
        check_listed(tool, &catalog, "--skip-tool")?;
    }
    let policy =
        Arc::new(Policy::new(&catalog, profile.attested_read_only, skipped.clone(), site.server.hub().watch()));
    check_arguments(&arguments, &catalog, &policy)?;
    if let Some(battery) = &battery {
        battery::check_needs(battery, &session, site.server.transport())?;
    }
    let mut wider = None;
    if let Some(cases) = &cases {
        if let Some(capabilities) = cases::missing_capabilities(cases, &catalog) {
            wider = Some(site.list_wider(ledger, patience, &catalog, capabilities).await);
        }
        cases::check_access(cases, &catalog, wider.as_ref(), &skipped)?;
    }
    drop(session);

    let desk = Desk {
        site,
        engine,
        ledger,
        progress,
        log,
        catalog: Arc::new(catalog),
        wider: wider.map(Arc::new),
        arguments: Arc::new(arguments),
    };
    let (cases, lost) = match cases {
        Some(cases) => {
            let (runs, lost) = cases::run(&desk, cases, &policy).await;
            (Some(runs), lost)
        }
        None => (None, None),
    };
    let battery = match (battery, &lost) {
        (None, _) => None,
        (Some(battery), None) => Some(battery::run(&desk, battery, profile, policy).await),
        (Some(battery), Some(fault)) => {
            Some(BatteryRun { error: Some(fault.cause.label()), ..BatteryRun::unreached(battery.standard, profile) })
        }
    };
    let first_error = || {
        let run = cases.iter().flatten().find(|run| run.no_verdict().is_some())?;
        run.no_verdict().map(|(_, detail)| format!("case {}: {detail}", run.case.id))
    };
    let fault = lost
        .map(|fault| fault.detail)
        .or_else(|| battery.as_ref().and_then(|battery| battery.fault.clone()))
        .or_else(first_error);
    Ok(Outcome { catalog: Some(Arc::unwrap_or_clone(desk.catalog)), battery, cases, fault })
}

/// What every run of one evaluation shares.
pub(super) struct Desk<'a> {
    site: &'a Site,
    engine: &'a Engine,
    ledger: &'a Arc<Ledger>,
    pub(super) progress: &'a Arc<Tracker>,
    log: &'a Mutex<Vec<String>>,
    pub(super) catalog: Arc<Catalog>,
    /// What clients with more capabilities are shown, if a case had to know.
    pub(super) wider: Option<Arc<Catalog>>,
    arguments: Arc<BTreeMap<String, String>>,
}

impl Desk<'_> {
    /// The word of the server's transport in the contract.
    pub(super) fn transport(&self) -> &'static str {
        self.site.server.transport()
    }

    /// The conversation that runs share, opened if there is none.
    pub(super) async fn open(&self) -> Result<Session, Fault> {
        self.ledger.open()?;
        let context = Context { ledger: Arc::clone(self.ledger), policy: Arc::default() };
        self.site.server.primary(&context).await
    }

    /// Ends the conversation that runs share; the next run has a fresh one.
    pub(super) async fn retire(&self) {
        self.site.server.end().await;
    }

    /// A line for the private log.
    pub(super) fn note(&self, line: String) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// One run of one component on what it may see of the catalog.
    pub(super) async fn run(
        &self,
        component: &Loaded,
        catalog: &Arc<Catalog>,
        case: guest::Case,
        granted: BTreeSet<Power>,
        policy: Arc<Policy>,
    ) -> RunRecord {
        let tracker = Arc::clone(self.progress);
        let job = guest::Job {
            target: Arc::clone(&self.site.server),
            context: Context { ledger: self.ledger.share(), policy },
            catalog: Arc::clone(catalog),
            manifest: Arc::clone(&component.manifest),
            arguments: Arc::clone(&self.arguments),
            place: self.site.place.clone(),
            case,
            granted,
            on_progress: Arc::new(move |finished, total| tracker.count(finished, total)),
        };
        let done = guest::run(self.engine, &component.component, job).await;
        let name = &component.manifest.kind;
        for line in done.log {
            self.note(format!("{name}: {line}"));
        }
        done.record
    }
}

/// A name that a complete catalog does not list is the operator's mistake.
pub(crate) fn check_listed(tool: &str, catalog: &Catalog, place: &str) -> Result<()> {
    if catalog.find(tool).is_some() || !catalog.is_complete() {
        return Ok(());
    }
    let names = catalog.entries.iter().map(|entry| entry.label.as_str());
    let hint = nearest::choices(tool, names);
    Err(Error::usage(format!("{place}: the server lists no tool \"{}\"{hint}", shown::word(tool))))
}

/// Every tool of the operator's arguments is listed, callable and satisfied. Values are never quoted.
pub(crate) fn check_arguments(arguments: &BTreeMap<String, String>, catalog: &Catalog, policy: &Policy) -> Result<()> {
    for (tool, given) in arguments {
        let place = "--arguments";
        check_listed(tool, catalog, place)?;
        let Some(entry) = catalog.find(tool) else { continue };
        let tool = &entry.label;
        if let Some(denial) = policy.blocked(tool) {
            return Err(Error::usage(format!("{place} has an entry for {tool}, which is not called: {denial}")));
        }
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
        let declared = parse(&entry.raw);
        let input = declared.get("inputSchema").cloned().unwrap_or_default();
        if let Err(errors) = schema::validate(&input, &parse(given)) {
            let first = errors.first().map_or("", String::as_str);
            let first =
                first.strip_prefix(": ").map_or_else(|| first.to_owned(), |keyword| format!("the top: {keyword}"));
            return Err(Error::usage(format!("{place} does not satisfy the input schema of {tool} at {first}")));
        }
    }
    Ok(())
}

/// The first thing that a component needs and this server does not have.
pub(super) fn unmet_need<'a>(manifest: &'a Manifest, session: &Session, transport: &str) -> Option<&'a str> {
    let greeting = session.greeting();
    let lifecycle = session.lifecycle().word();
    let is_met = |need: &str| match need.split_once('.') {
        Some(("transport", word)) => word == transport,
        Some(("lifecycle", word)) => word == lifecycle,
        // Whoever runs the case can declare it.
        Some(("client", _)) => true,
        _ => {
            let path: Vec<&str> = std::iter::once("capabilities").chain(need.split('.')).collect();
            object::at(&greeting, &path).is_some_and(|value| object::is_object(value) || value == "true")
        }
    };
    manifest.needs.iter().map(String::as_str).find(|need| !is_met(need))
}

/// Where the evaluation stands.
pub(crate) struct Tracker {
    sink: Sink,
    ledger: Arc<Ledger>,
    now: Mutex<Progress>,
}

impl Tracker {
    pub(crate) fn new(sink: Sink, ledger: Arc<Ledger>) -> Self {
        Self { sink, ledger, now: Mutex::default() }
    }

    pub(crate) fn step(&self, step: &str) {
        self.change(|progress| {
            step.clone_into(&mut progress.step);
            (progress.finished, progress.total) = (0, 0);
        });
    }

    pub(crate) fn count(&self, finished: u32, total: u32) {
        self.change(|progress| (progress.finished, progress.total) = (finished, total));
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut now);
        now.requests = (self.ledger.requests_spent(), ledger::EVALUATION.requests);
        (self.sink)(&now);
    }
}
