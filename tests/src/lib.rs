//! What the tests of mcpeval stand on.
//!
//! | module | owns |
//! |---|---|
//! | [`servers`] | fixture servers with one sin each |
//! | [`cases`] | the table of what must come of each kind of case |
//! | [`guests`] | hostile components |
//! | [`run`] | running the program under test in a place of its own, with bounded waits |
//! | [`real`] | pinned servers and toolchains of other authors |
//! | [`toolchains`] | building components in other languages |
//! | [`replay`] | recording the bytes of a run and sending them again |
//! | [`report`] | reading its reports |
//! | [`expect`] | the table of what each server must lose |
//! | [`bench`] | what benchmarks share |
//! | [`talk`] | one client and one server, line by line, to record |
//! | [`machine`] | which processes are left |

pub mod bench;
pub mod cases;
pub mod client;
pub mod expect;
pub mod finding;
pub mod guests;
pub mod machine;
pub mod real;
pub mod replay;
pub mod report;
pub mod run;
pub mod servers;
pub mod talk;
pub mod toolchains;
pub mod traffic;
pub mod upstream;
