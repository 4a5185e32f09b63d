//! The engine's settings. The build script includes this file: what is compiled at build time must have the same ones.

/// Native stack that one run of a component may use, in bytes.
pub(super) const WASM_STACK: usize = 512 << 10;
/// Stack of the fiber it runs on: the guest's share and room for the host's calls, in bytes.
pub(super) const FIBER_STACK: usize = 2 << 20;

/// Settings for running and for compiling. Whatever no probe needs is off: each proposal is attack surface.
pub(super) fn settings() -> wasmtime::Config {
    let mut config = wasmtime::Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(FIBER_STACK)
        .wasm_component_model(true)
        .concurrency_support(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        // A score must not depend on how a processor spells "not a number".
        .cranelift_nan_canonicalization(true)
        .generate_address_map(false);
    config
}
