//! What listens on a socket of this machine.
