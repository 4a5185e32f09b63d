//! What mcpeval keeps between runs: files and databases, their permissions, locks and migrations. Knows nothing of
//! components and terminals.
//!
//! Commands that only read treat a missing home folder as empty and create nothing in it; whoever writes calls
//! [`Home::prepare`] first.

pub mod database;
pub mod hash;
pub mod home;
pub mod index;
pub mod journal;
pub mod lifecycle;
pub mod lookup;
pub mod record;
pub mod settings;
pub mod shape;

pub use home::Home;
