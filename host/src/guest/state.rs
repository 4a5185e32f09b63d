//! What one store holds.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::clock::Clock;
use super::limits;
use super::log::Log;
use super::record::Recorder;
use crate::session::catalog::Catalog;
use crate::session::{Context, Session, Target};

/// Where a tool's example paths point.
#[derive(Debug, Clone)]
pub enum Place {
    /// The scratch folder of a child.
    Scratch(PathBuf),
    /// No folder is shared with the server.
    Remote,
}

/// Called with finished and total tools or steps.
pub type ProgressSink = Arc<dyn Fn(u32, u32) + Send + Sync>;

/// The capabilities of one run.
pub(super) struct Run {
    pub(super) target: Arc<Target>,
    pub(super) context: Context,
    pub(super) catalog: Arc<Catalog>,
    pub(super) arguments: Arc<BTreeMap<String, String>>,
    pub(super) place: Place,
    pub(super) timeout: Duration,
    pub(super) recorder: Recorder,
    pub(super) on_progress: ProgressSink,
    /// Conversations this run opened, to be ended with it.
    pub(super) opened: Vec<Session>,
    /// Pipes this run opened, to be ended with it.
    pub(super) pipes: Vec<crate::wire::stdio::StdioWire>,
    /// Whether the host has refused something for the budget.
    pub(super) refused_by_budget: bool,
}

/// The data of a store. `run` is absent while a component describes itself: then no capability exists.
pub(super) struct State {
    pub(super) table: ResourceTable,
    pub(super) memory: MemoryLimit,
    pub(super) wasi: WasiCtx,
    pub(super) log: Log,
    pub(super) clock: Clock,
    pub(super) run: Option<Run>,
}

impl State {
    pub(super) fn new(log: Log, clock: Clock, seed: u32, run: Option<Run>) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits::HANDLES);
        Self { table, memory: MemoryLimit::default(), wasi: super::wasi::sealed(&log, seed), log, clock, run }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Names that findings may have as subjects.
pub(super) fn subjects(catalog: &Catalog) -> HashSet<String> {
    catalog.entries.iter().map(|entry| entry.label.clone()).collect()
}

/// Bounds the memory of all instances of a store together; a component may have several.
#[derive(Debug, Default)]
pub(super) struct MemoryLimit {
    used: usize,
}

impl wasmtime::ResourceLimiter for MemoryLimit {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        if used > limits::MEMORY {
            // A refusal would only be an allocation failure inside; a trap says what happened.
            return Err(wasmtime::Error::msg(format!("it wants more than {} MiB of memory", limits::MEMORY >> 20)));
        }
        self.used = used;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > limits::TABLE_ELEMENTS {
            return Err(wasmtime::Error::msg(format!(
                "it wants a table of more than {} elements",
                limits::TABLE_ELEMENTS
            )));
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        limits::INSTANCES
    }

    fn tables(&self) -> usize {
        limits::TABLES
    }

    fn memories(&self) -> usize {
        limits::MEMORIES
    }
}
