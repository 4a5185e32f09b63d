//! One run of one component: a store of its own, three clocks, and an end that leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Linker;
use wasmtime::{Store, UpdateDeadline};

use super::caps::TargetHandle;
use super::clock::Clock;
use super::engine::Engine;
use super::load::Component;
use super::log::Log;
use super::record::Recorder;
pub use super::state::{Place, ProgressSink};
use super::state::{Run, State, subjects};
use super::{limits, v0_1};
use crate::outcome::{Ended, NoVerdict, RunRecord};
use crate::probes::{Manifest, Power, is_foreign_kind};
use crate::session::catalog::Catalog;
use crate::session::{Context, Target};

/// What a component is asked to do.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its id.
    pub id: String,
    /// Its fields as JSON; of a battery run `{"areas": [name], "lanes": n}`.
    pub config: String,
    /// Whether writers may be called.
    pub may_mutate: bool,
    /// The wait for an answer where a request names none.
    pub timeout: Duration,
    /// Equal in every run of the same case.
    pub seed: u32,
}

/// Everything one run is given.
pub struct Job {
    /// The server.
    pub target: Arc<Target>,
    /// What may be spent and called.
    pub context: Context,
    /// The listing.
    pub catalog: Arc<Catalog>,
    /// What the component said of itself.
    pub manifest: Arc<Manifest>,
    /// The operator's arguments by tool, as JSON.
    pub arguments: Arc<BTreeMap<String, String>>,
    /// Where example paths point.
    pub place: Place,
    /// What to do.
    pub case: Case,
    /// The powers below the protocol it may use.
    pub granted: BTreeSet<Power>,
    /// Where progress goes.
    pub on_progress: ProgressSink,
}

/// What a run left.
#[derive(Debug)]
pub struct Outcome {
    /// What it said, and how it ended.
    pub record: RunRecord,
    /// Its private log.
    pub log: Vec<String>,
}

/// Read what a component says of itself. No capability exists while it does.
pub async fn describe(engine: &Engine, component: &Component, shipped: bool) -> Result<Manifest, String> {
    engine.tick();
    let clock = Clock::new(limits::DESCRIBE_COMPUTE);
    let log = Log::default();
    let mut store = store(engine, State::new(log, clock, 0, None));
    let describing = async {
        let probe = instantiate(engine, component, &component.powers, &mut store).await?;
        probe.mcpeval_probe_probe().call_describe(&mut store).await
    };
    let manifest = match tokio::time::timeout(2 * limits::DESCRIBE_COMPUTE, describing).await {
        Err(_) => return Err("it does not describe itself in time".into()),
        Ok(Err(error)) => return Err(format!("it fails to describe itself: {}", why(&error))),
        Ok(Ok(manifest)) => v0_1::manifest(manifest),
    };
    super::manifest::check(&manifest, shipped)?;
    Ok(manifest)
}

/// Run a component. Whatever it does, this returns within the budget's time and [`limits::GRACE`], and no conversation
/// it opened is left.
pub async fn run(engine: &Engine, component: &Component, job: Job) -> Outcome {
    engine.tick();
    let log = Log::default();
    let clock = Clock::new(limits::COMPUTE);
    let wall = job.context.ledger.remaining().time + limits::GRACE;
    let case = v0_1::case(&job.case);
    let granted = job.granted.clone();
    let foreign = is_foreign_kind(&job.manifest.kind);
    let state = State::new(
        log.clone(),
        clock,
        job.case.seed,
        Some(Run {
            recorder: Recorder::new(Arc::clone(&job.manifest), Arc::new(subjects(&job.catalog))),
            target: job.target,
            context: job.context,
            catalog: job.catalog,
            arguments: job.arguments,
            place: job.place,
            timeout: job.case.timeout,
            on_progress: job.on_progress,
            opened: Vec::new(),
            pipes: Vec::new(),
            refused_by_budget: false,
        }),
    );
    let mut store = store(engine, state);
    let running = async {
        let probe = instantiate(engine, component, &granted, &mut store).await?;
        let target = store.data_mut().table.push(TargetHandle)?;
        probe.mcpeval_probe_probe().call_run(&mut store, target, &case).await
    };
    let returned = tokio::time::timeout(wall, running).await;
    let Some(run) = store.data_mut().run.take() else {
        // Nothing but this function takes it.
        let record = RunRecord::stopped(NoVerdict::ComponentFault, "the run lost its state");
        return Outcome { record, log: log.lines() };
    };
    // Handles die with the store, conversations in steps.
    drop(store);
    for session in &run.opened {
        session.end().await;
    }
    for pipe in &run.pipes {
        pipe.end().await;
    }
    let ended = match returned {
        Err(_) => stopped(NoVerdict::BudgetExceeded, "the evaluation's time is used up"),
        Ok(Err(error)) => stopped(NoVerdict::ComponentFault, why(&error)),
        Ok(Ok(Err(fault))) => {
            let label = v0_1::label(&fault, run.refused_by_budget);
            if foreign {
                // Whatever a third party writes belongs to the private log.
                log.line("fault", &fault.detail);
                stopped(label, "the component gave up; its words are in the run log")
            } else {
                stopped(label, fault.detail.chars().take(1_000).collect::<String>())
            }
        }
        Ok(Ok(Ok(outcome))) => Ended::Finished { attempts: outcome.attempts, first_failure: outcome.first_failure },
    };
    Outcome { record: run.recorder.finish(ended), log: log.lines() }
}

fn stopped(reason: NoVerdict, detail: impl Into<String>) -> Ended {
    Ended::Stopped { reason, detail: detail.into() }
}

fn store(engine: &Engine, state: State) -> Store<State> {
    let clock = state.clock.clone();
    let mut store = Store::new(&engine.inner, state);
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(limits::HOST_CALL_BYTES);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        if clock.interrupted() {
            // Yielding lets readers of the wire run, which are what the component waits for next.
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        } else {
            Err(wasmtime::Error::msg("it used more compute than it is given"))
        }
    });
    store
}

async fn instantiate(
    engine: &Engine,
    component: &Component,
    granted: &BTreeSet<Power>,
    store: &mut Store<State>,
) -> wasmtime::Result<v0_1::WireProbe> {
    if !component.powers.is_subset(granted) {
        return Err(wasmtime::Error::msg("it imports a power that it was not granted"));
    }
    let linked = match component.linked.get() {
        Some(linked) => linked,
        None => component.linked.get_or_init({
            let mut linker = Linker::new(&engine.inner);
            v0_1::link(&mut linker, &component.powers)?;
            if component.wants_wasi {
                wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
            }
            let imports = v0_1::WireProbePre::new(linker.instantiate_pre(&component.inner)?)?;
            || imports
        }),
    };
    store.data().clock.resume();
    linked.instantiate_async(store).await
}

/// The cause of a trap in one line.
fn why(error: &wasmtime::Error) -> String {
    let cause = error.root_cause().to_string();
    let line = cause.lines().next().unwrap_or_default();
    if line.is_empty() { "it trapped".into() } else { line.chars().take(300).collect() }
}
