//! What a component gets that its toolchain links against WASI: an empty, sealed context. No files, no environment, no
//! arguments, no sockets, no stdin; stdout and stderr are lines of the private log; the calendar stands still and random
//! bytes are the same in every run, so that a verdict cannot depend on them.

use std::time::Duration;

use wasmtime_wasi::{Deterministic, HostWallClock, WasiCtx, WasiCtxBuilder};

use super::limits;
use super::log::{Log, LogStream};

/// The only date a component sees.
struct Standstill;

impl HostWallClock for Standstill {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

/// A context with nothing in it.
pub(super) fn sealed(log: &Log, seed: u32) -> WasiCtx {
    // The stream repeats after its length, which is prime so that no reader meets the same offsets again soon.
    let bytes = |salt: u32| -> Vec<u8> {
        let mut state = u64::from(seed ^ salt) | 1 << 40;
        (0..4_093)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect()
    };
    WasiCtxBuilder::new()
        .stdout(LogStream { log: log.clone(), name: "stdout" })
        .stderr(LogStream { log: log.clone(), name: "stderr" })
        .secure_random(Deterministic::new(bytes(1)))
        .insecure_random(Deterministic::new(bytes(2)))
        .insecure_random_seed(u128::from(seed))
        .max_random_size(limits::RANDOM)
        .wall_clock(Standstill)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .allow_blocking_current_thread(false)
        .build()
}
