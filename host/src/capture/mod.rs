//! Recording real traffic: its shape, never its content.

pub mod record;
pub mod shim_http;
