//! The demo server as its clients see it, on both transports.

mod battery;
mod cases;
mod client;
mod good;
mod transport;
