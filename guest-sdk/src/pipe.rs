//! Power: bytes on a child's pipes. A probe that calls anything here needs a grant.

use crate::backend::pipe;
pub use crate::bindings::mcpeval::probe::pipe::Ending;
use crate::{Chunk, ExchangeId, Fault, Target};

/// A fresh server process, without an opening.
#[derive(Debug)]
pub struct Pipe(pipe::Pipe);

/// Starts the server over stdio. Where the target has no pipes this is a fault.
pub fn open(target: &Target) -> Result<Pipe, Fault> {
    pipe::open(target.contract()).map(Pipe)
}

impl Pipe {
    /// Writes bytes as they are; each line counts as a request.
    pub fn send(&self, bytes: &[u8]) -> Result<ExchangeId, Fault> {
        self.0.send(bytes)
    }

    /// The next bytes; `None` when the wait ran out.
    pub fn receive(&self, wait_ms: u32) -> Result<Option<Chunk>, Fault> {
        self.0.receive(wait_ms)
    }

    /// Ends the server's input.
    pub fn close_input(&self) {
        self.0.close_input();
    }

    /// How the process ended within the wait, if it did.
    pub fn ending(&self, wait_ms: u32) -> Ending {
        self.0.ending(wait_ms)
    }

    /// Bytes written to stderr so far.
    pub fn stderr_bytes(&self) -> u32 {
        self.0.stderr_bytes()
    }

    /// Processes of its group that are alive.
    pub fn survivors(&self) -> u32 {
        self.0.survivors()
    }
}
