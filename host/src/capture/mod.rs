//! Recording real traffic: its shape, never its content.
//!
//! | module | owns |
//! |---|---|
//! | [`record`] | recorders and captures: what a message of either side becomes a record of |
//! | `message` | JSON-RPC as it came, read from its text without copying its content |
//! | `shape` | arguments to shapes |
//! | `schemas` | what tools declare, learnt from the same capture |
//! | [`shim_http`] | the recorder between clients and a server over HTTP |
//! | `skeleton` | error texts to what they share |
//! | `writer` | the bounded queue in front of the journals |

mod message;
pub mod record;
mod schemas;
mod shape;
pub mod shim_http;
mod skeleton;
mod writer;
