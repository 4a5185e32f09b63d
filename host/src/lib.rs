//! mcpeval: scores MCP servers, gates them in CI, and tells what to fix.
//!
//! The host owns mechanism: bytes, time, money, memory, records. A probe owns judgement: what to ask and
//! what counts as right. The contract in `wit/` is the only thing they share.
//!
//! | module | owns |
//! |---|---|
//! | [`wire`] | bytes and headers to and from one server; process groups and their ending |
//! | [`session`] | a well-formed MCP conversation over a wire; the one place that decides whether a tool may be called |
//! | [`ledger`] | what may still be spent |
//! | [`transcript`] | every exchange, numbered |
//! | [`guest`] | wasmtime; the only door from a component to all of the above |
//! | [`services`] | what probes borrow instead of carrying: schemas, synthesis, patterns |
//! | [`arguments`] | what an operator gives tools to be called with |
//! | [`notation`] | documents that people write, with the place of every value |
//! | [`config`] | `mcpeval.toml` |
//! | [`nearest`] | what a misspelt name was meant to be |
//! | [`shown`] | words of others in our sentences: cut, and harmless to a terminal |
//! | [`probes`] | the registry of components, their digests and grants |
//! | [`manifest`] | the cases that a server's author commits, and the rules of their access |
//! | [`standard`] | areas and weights to a score |
//! | [`runner`] | plan, preflight, runs, events |
//! | [`guidance`] | what a server tells its clients to call, against what it lists for them |
//! | [`report`] | documents and renderings |
//! | [`demo`] | a good server, and the same with one fault |
//! | [`cli`] | commands, options, help |

pub mod arguments;
pub mod cli;
pub mod config;
pub mod demo;
pub mod error;
pub mod guest;
pub mod guidance;
pub mod ledger;
pub mod manifest;
pub mod nearest;
pub mod notation;
pub mod outcome;
pub mod probes;
pub mod report;
pub mod runner;
pub mod services;
pub mod session;
pub mod shown;
pub mod standard;
pub mod transcript;
pub mod wire;
