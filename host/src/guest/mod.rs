//! The guest host: the only user of wasmtime.

/// A compiled component.
#[derive(Clone, Debug)]
pub struct Component;
