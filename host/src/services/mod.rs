//! What probes borrow instead of carrying: schema validation, argument synthesis, pattern matching.
//!
//! Every function is pure and deterministic, and bounded in time, memory and stack whatever it is given: the
//! schemas, the instances and most of the patterns come from the server under test.

mod pattern;
pub mod schema;
pub mod synthesis;
pub mod text;

/// Stack for work on deep input, in bytes. Only the pages that are touched cost memory.
const DEEP_STACK: usize = 256 << 20;
/// Nested evaluations that the stack of any thread is known to hold.
const SHALLOW: usize = 256;

/// Runs `work`, on a stack of its own if `depth` nested evaluations would be too much for that of the caller:
/// a stack overflow ends the process, and a schema is enough to ask for one. `None` if there is no such stack.
fn on_stack<T: Send>(depth: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    if depth <= SHALLOW {
        return Some(work());
    }
    std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, work).ok()?.join().ok()
    })
}
