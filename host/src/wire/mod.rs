//! Bytes and headers to and from one server; nothing dropped, nothing repaired.
//!
//! | module | owns |
//! |---|---|
//! | [`launch`] | what to start and why it could not be started |
//! | [`stdio`] | a child's pipes: queued writing, the tail of stderr, the stepwise ending |
//! | [`lines`] | stdout as timed chunks and lines |
//! | [`http`] | exchanges with one endpoint, pooled or raw |
//! | [`endpoint`] | which addresses may be asked, and the operator's headers |
//! | [`events`] | event streams, read as they arrive |
//! | [`passage`] | a child whose pipes somebody else carries on |
//! | [`sandbox`] | the scratch folder, and the guardian that tidies up if mcpeval is killed |

mod dial;
pub mod endpoint;
pub mod events;
mod guardian;
pub mod http;
mod kin;
pub mod launch;
pub mod lines;
pub mod passage;
mod process;
pub mod sandbox;
pub mod stdio;
