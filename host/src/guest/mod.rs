//! The guest host: the only user of wasmtime.
//!
//! One store per run, thrown away afterwards. Three clocks: compute (interrupts, only time inside wasm and in the
//! services it borrows), wall time, and the ledger. A component's only doors are the contract's interfaces; the ones
//! that toolchains bring along (`wasi:*`) are answered from an empty, sealed context.

mod below;
mod cache;
mod caps;
mod clock;
mod config;
mod engine;
mod lent;
pub mod limits;
mod load;
mod log;
mod manifest;
mod record;
mod run;
mod state;
mod v0_1;
mod wasi;

pub use cache::user_folder;
pub use engine::Engine;
pub use load::{Component, digest, foreign, shipped};
pub use run::{Case, Job, Outcome, Place, ProgressSink, describe, run};
