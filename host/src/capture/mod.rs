//! Recording real traffic: its shape, never its content.
//!
//! | module | owns |
//! |---|---|
//! | [`record`] | recorders and captures: what a message of either side becomes a record of |
//! | [`shim`] | the recorder between the pipes of a stdio server |
//! | `message` | JSON-RPC as it came, read from its text without copying its content |
//! | `shape` | arguments to shapes |
//! | `schemas` | what tools declare, learnt from the same capture |
//! | `skeleton` | error texts to what they share |
//! | [`shim_http`] | the recorder in front of a Streamable HTTP server |
//! | `writer` | the bounded queue in front of the journals |
//! | `copies` | the bounded queue beside the traffic of a stdio server, and the lines in it |

mod copies;
mod message;
pub mod record;
mod schemas;
mod shape;
pub mod shim_http;
pub mod shim;
mod skeleton;
mod writer;
