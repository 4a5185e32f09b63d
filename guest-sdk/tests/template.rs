//! The Rust starter compiles against this SDK and passes its own tests.

#![expect(unreachable_pub, reason = "the starter is a crate of its own")]

#[path = "../templates/rust/src/lib.rs"]
mod steady;
