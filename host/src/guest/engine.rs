//! The engine: settings, the ticker that interrupts compute, and the doors through which component bytes come in.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::config;

/// How often a running component is interrupted to see whether it may go on.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// Everything that is compiled or run shares one engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    pub(super) inner: wasmtime::Engine,
    pub(super) cache: Option<PathBuf>,
    ticker: Arc<OnceLock<()>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine that keeps compiled components of users in `cache`, or nowhere.
    pub fn new(cache: Option<PathBuf>) -> Result<Self, String> {
        let inner = wasmtime::Engine::new(&config::settings())
            .map_err(|error| format!("this machine cannot run WebAssembly components: {error}"))?;
        Ok(Self { inner, cache, ticker: Arc::default() })
    }

    /// Interrupts happen only while this thread ticks. It is an OS thread, since a task would starve exactly when a
    /// component keeps the workers busy, and it ends with the engine.
    pub(super) fn tick(&self) {
        self.ticker.get_or_init(|| {
            let engine = self.inner.weak();
            let ticking = std::thread::Builder::new().name("epochs".into()).spawn(move || {
                while let Some(engine) = engine.upgrade() {
                    engine.increment_epoch();
                    drop(engine);
                    std::thread::sleep(TICK);
                }
            });
            if let Err(error) = ticking {
                // Without the ticker no component could be stopped, so none may run: the epoch stays at the deadline.
                tracing::error!("the thread that interrupts components cannot be started: {error}");
            }
        });
    }
}
