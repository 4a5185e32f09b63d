//! The evaluation of one server: preflight, one run per component, and what is left when something did not finish.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::site::Site;
use super::{AreaRun, Evaluation, Plan, Profile, Progress};
use crate::error::{Error, Result};
use crate::guest::{self, Engine};
use crate::ledger::{self, Ledger};
use crate::nearest;
use crate::outcome::{Ended, NoVerdict, Verdict};
use crate::probes::Loaded;
use crate::services::schema;
use crate::session::catalog::Catalog;
use crate::session::{Context, Fault, Policy, Session};

/// Progress goes here; called from any thread.
pub type Sink = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Evaluate one server. `Err` is for what the operator asked wrongly, found before or after connecting; whatever the
/// server does is part of the evaluation.
pub async fn evaluate(plan: Plan, engine: &Engine, on_progress: Sink) -> Result<Evaluation> {
    check_grants(&plan)?;
    let ledger = Ledger::new(ledger::EVALUATION);
    let progress = Arc::new(Tracker::new(on_progress, Arc::clone(&ledger)));
    progress.step("start");
    let site = Site::prepare(plan.target, plan.startup_timeout)?;
    let outcome = run_all(
        &site,
        engine,
        &ledger,
        &progress,
        Order {
            components: plan.components,
            areas: plan.standard.areas.iter().map(|area| area.name.clone()).collect(),
            arguments: plan.arguments,
            profile: &plan.profile,
        },
    )
    .await;
    progress.step("end");
    site.server.end().await;
    let outcome = outcome?;
    let mut log = outcome.log;
    log.extend(site.server.hub().transcript.lines());
    let components = outcome
        .runs
        .iter()
        .flat_map(|run| run.areas.iter().map(|area| (format!("area:{area}"), run.component.digest)))
        .collect();
    Ok(Evaluation {
        standard: plan.standard,
        catalog: outcome.catalog,
        runs: outcome.runs,
        error: outcome.error,
        fault: outcome.fault,
        stderr: site.stderr(),
        log,
        callable: outcome.callable,
        profile: plan.profile,
        components,
    })
}

/// A component that is not of the battery needs a grant for each power it imports, before anything runs.
fn check_grants(plan: &Plan) -> Result<()> {
    for (area, component) in plan.standard.areas.iter().zip(&plan.components) {
        let granted = plan.grants.get(&area.name);
        let missing = component.powers.iter().find(|power| granted.is_none_or(|granted| !granted.contains(power)));
        if let (Some(power), false) = (missing, component.shipped) {
            return Err(Error::usage(format!(
                "the component of area {} wants the power {power}, which works below the protocol; allow it with --grant area:{}={power}",
                area.name, area.name
            )));
        }
    }
    Ok(())
}

struct Order<'a> {
    components: Vec<Loaded>,
    areas: Vec<String>,
    arguments: BTreeMap<String, String>,
    profile: &'a Profile,
}

#[derive(Default)]
struct Outcome {
    catalog: Option<Catalog>,
    runs: Vec<AreaRun>,
    error: Option<NoVerdict>,
    fault: Option<String>,
    log: Vec<String>,
    callable: u32,
}

impl Outcome {
    fn unreached(fault: &Fault) -> Self {
        Self { error: Some(fault.cause.label()), fault: Some(fault.detail.clone()), ..Self::default() }
    }
}

async fn run_all(
    site: &Site,
    engine: &Engine,
    ledger: &Arc<Ledger>,
    progress: &Arc<Tracker>,
    order: Order<'_>,
) -> Result<Outcome> {
    let timeout = Duration::from_millis(order.profile.call_timeout_ms.into());
    let (session, catalog) = match site.list(ledger, timeout, || progress.step("list")).await {
        Ok(listed) => listed,
        Err(fault) => return Ok(Outcome::unreached(&fault)),
    };
    let skipped: BTreeSet<String> = order.profile.skip_tools.iter().cloned().collect();
    let policy = Arc::new(Policy::new(&catalog, order.profile.attested_read_only, skipped));
    check_skipped(order.profile, &catalog)?;
    check_arguments(&order.arguments, &catalog, &policy)?;
    let runs = group(order.components, order.areas);
    check_needs(&runs, &session, site.server.transport())?;
    drop(session);

    let callable = catalog.entries.iter().filter(|entry| !entry.repeated && policy.blocked(&entry.label).is_none());
    let mut outcome = Outcome { callable: u32::try_from(callable.count()).unwrap_or(u32::MAX), ..Outcome::default() };
    let catalog = Arc::new(catalog);
    let arguments = Arc::new(order.arguments);
    for (component, areas) in runs {
        progress.step(&areas.join(", "));
        let tracker = Arc::clone(progress);
        let done = guest::run(
            engine,
            &component.component,
            guest::Job {
                target: Arc::clone(&site.server),
                context: Context { ledger: ledger.share(), policy: Arc::clone(&policy) },
                catalog: Arc::clone(&catalog),
                manifest: Arc::clone(&component.manifest),
                arguments: Arc::clone(&arguments),
                place: site.place.clone(),
                case: guest::Case {
                    id: "battery".into(),
                    config: serde_json::json!({"areas": areas, "lanes": order.profile.lanes}).to_string(),
                    may_mutate: false,
                    timeout,
                    seed: 0,
                },
                granted: component.powers.clone(),
                on_progress: Arc::new(move |finished, total| tracker.count(finished, total)),
            },
        )
        .await;
        let name = component.manifest.kind.clone();
        outcome.log.extend(done.log.into_iter().map(|line| format!("{name}: {line}")));
        let run = AreaRun { component, areas, record: done.record };
        if let Some((reason, detail)) = unfinished(&run) {
            let detail = format!("{name} ({}): {detail}", run.component.digest);
            outcome.log.push(detail.clone());
            // The budget outranks everything: what came after it could not be judged any more.
            let outranks = reason == NoVerdict::BudgetExceeded && outcome.error != Some(NoVerdict::BudgetExceeded);
            if outcome.error.is_none() || outranks {
                outcome.error = Some(reason);
                outcome.fault = Some(detail);
            }
        }
        outcome.runs.push(run);
    }
    if let Some(fault) = &catalog.fault
        && fault.cause.label() == NoVerdict::BudgetExceeded
    {
        outcome.error = Some(NoVerdict::BudgetExceeded);
        outcome.fault = Some(fault.detail.clone());
    }
    outcome.catalog = Some(Arc::unwrap_or_clone(catalog));
    Ok(outcome)
}

/// Why a run leaves no verdict, if so.
fn unfinished(run: &AreaRun) -> Option<(NoVerdict, String)> {
    if let Ended::Stopped { reason, detail } = &run.record.ended {
        return Some((*reason, detail.clone()));
    }
    if let Some(finding) = run.record.findings.iter().find(|finding| finding.verdict == Verdict::Error) {
        let label = finding.reason.as_deref().and_then(NoVerdict::from_label);
        return Some((label.unwrap_or(NoVerdict::ComponentFault), format!("{} reached no verdict", finding.check)));
    }
    let missing = run.areas.iter().find(|area| !run.record.areas.contains_key(*area))?;
    Some((NoVerdict::ComponentFault, format!("it returned without a score for {missing}")))
}

/// One run per component with all its areas. What makes the most requests runs first: the calls of tools come before
/// whatever disturbs a conversation on purpose, and what needs no request loses nothing by waiting.
fn group(components: Vec<Loaded>, areas: Vec<String>) -> Vec<(Loaded, Vec<String>)> {
    let mut runs: Vec<(Loaded, Vec<String>)> = Vec::new();
    for (component, area) in components.into_iter().zip(areas) {
        match runs.iter_mut().find(|(known, _)| known.digest == component.digest) {
            Some((_, areas)) => areas.push(area),
            None => runs.push((component, vec![area])),
        }
    }
    runs.sort_by_key(|(component, _)| std::cmp::Reverse(component.manifest.asks.0));
    runs
}

fn check_skipped(profile: &Profile, catalog: &Catalog) -> Result<()> {
    for tool in &profile.skip_tools {
        check_listed(tool, catalog, "--skip-tool")?;
    }
    Ok(())
}

fn check_listed(tool: &str, catalog: &Catalog, place: &str) -> Result<()> {
    if catalog.find(tool).is_some() || !catalog.is_complete() {
        return Ok(());
    }
    let names = catalog.entries.iter().map(|entry| entry.label.as_str());
    let hint = nearest::hint(tool, names);
    Err(Error::usage(format!("{place}: the server lists no tool \"{tool}\"{hint}")))
}

/// Every tool of the operator's arguments is listed, callable and satisfied. Values are never quoted.
fn check_arguments(arguments: &BTreeMap<String, String>, catalog: &Catalog, policy: &Policy) -> Result<()> {
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

/// Whatever a component needs of the server is there.
fn check_needs(runs: &[(Loaded, Vec<String>)], session: &Session, transport: &str) -> Result<()> {
    let greeting: serde_json::Value = serde_json::from_str(&session.greeting()).unwrap_or_default();
    let lifecycle = session.lifecycle().word();
    for (component, areas) in runs {
        let is_met = |need: &str| match need.split_once('.') {
            Some(("transport", word)) => word == transport,
            Some(("lifecycle", word)) => word == lifecycle,
            _ => greeting
                .pointer(&format!("/capabilities/{}", need.replace('.', "/")))
                .is_some_and(|value| value.is_object() || value.as_bool() == Some(true)),
        };
        if let Some(need) = component.manifest.needs.iter().find(|need| !is_met(need)) {
            let areas = areas.join(", ");
            return Err(Error::usage(format!(
                "the component of area {areas} needs {need}, which this server does not have; leave the area out"
            )));
        }
    }
    Ok(())
}

/// Where the evaluation stands.
struct Tracker {
    sink: Sink,
    ledger: Arc<Ledger>,
    now: Mutex<Progress>,
}

impl Tracker {
    fn new(sink: Sink, ledger: Arc<Ledger>) -> Self {
        Self { sink, ledger, now: Mutex::default() }
    }

    fn step(&self, step: &str) {
        self.change(|progress| {
            step.clone_into(&mut progress.step);
            (progress.finished, progress.total) = (0, 0);
        });
    }

    fn count(&self, finished: u32, total: u32) {
        self.change(|progress| (progress.finished, progress.total) = (finished, total));
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut now);
        now.requests = (self.ledger.requests_spent(), ledger::EVALUATION.requests);
        (self.sink)(&now);
    }
}
