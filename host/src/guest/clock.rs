//! The compute clock of one run: counts time inside wasm and in borrowed services, not the host's waiting.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::engine::TICK;

#[derive(Debug)]
struct Inner {
    spent: Duration,
    limit: Duration,
    resumed: Instant,
}

/// Shared by the store's interrupt callback and the host calls.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    inner: Arc<Mutex<Inner>>,
}

impl Clock {
    pub(super) fn new(limit: Duration) -> Self {
        Self { inner: Arc::new(Mutex::new(Inner { spent: Duration::ZERO, limit, resumed: Instant::now() })) }
    }

    /// Wasm goes on after a host call.
    pub(super) fn resume(&self) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).resumed = Instant::now();
    }

    /// An interrupt: whether the component may go on. A host call that did not mark its return (WASI) counts as two
    /// ticks at most.
    pub(super) fn interrupted(&self) -> bool {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let used = now.saturating_duration_since(inner.resumed).min(2 * TICK);
        inner.resumed = now;
        inner.spent += used;
        inner.spent <= inner.limit
    }

    /// Charge the time of a service that computes for the component; whether it may go on.
    pub(super) fn charge(&self, used: Duration) -> bool {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.spent += used;
        inner.spent <= inner.limit
    }

    /// What is left.
    pub(super) fn left(&self) -> Duration {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.limit.saturating_sub(inner.spent)
    }
}
