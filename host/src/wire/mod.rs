//! Bytes and headers to and from one server; nothing dropped, nothing repaired.

pub mod http;
pub mod launch;
pub mod sandbox;
pub mod stdio;
