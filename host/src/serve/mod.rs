//! What listens on a socket of this machine.

pub mod gate;
