//! What probes borrow instead of carrying: schema validation, argument synthesis, pattern matching.

pub mod schema;
pub mod synthesis;
pub mod text;
