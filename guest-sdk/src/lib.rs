//! Write probes for mcpeval: one trait, one macro, one WebAssembly component.
//!
//! A probe asks a server questions and judges the answers. It gets the server under test as a [`Target`]; everything
//! it can do grows from that handle, spends a shared budget and is recorded. What it says are [`Finding`]s,
//! measurements and scores with the labels its [`Manifest`] declares, and numbers: never free text.
//!
//! ```
//! use mcpeval_probe::{Access, Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target, json};
//!
//! struct Greeter;
//!
//! impl Probe for Greeter {
//!     fn manifest() -> Manifest {
//!         Manifest::new("acme.greeter", "0.1.0", "The server introduces itself")
//!             .config(json!({"type": "object", "additionalProperties": false}))
//!             .check(Check::new("acme.instructions", Level::Advice, "Instructions are given"))
//!             .reason("acme.no-instructions", "Add instructions to the initialize result.", &["acme.instructions"])
//!             .access(Access::ReadOnly)
//!     }
//!
//!     fn run(target: &Target, _case: &Case) -> Result<Outcome, Fault> {
//!         let greeting = target.facts().greeting;
//!         let spoken = greeting.view().member("instructions").and_then(|text| text.string());
//!         if spoken.is_some_and(|text| !text.trim().is_empty()) {
//!             Finding::pass("acme.instructions").submit();
//!             return Ok(Outcome { attempts: 1, first_failure: None });
//!         }
//!         Finding::fail("acme.instructions", "acme.no-instructions").submit();
//!         Ok(Outcome { attempts: 1, first_failure: Some(1) })
//!     }
//! }
//!
//! mcpeval_probe::export!(Greeter);
//!
//! // Natively the same probe runs against a scripted server:
//! # #[cfg(not(target_family = "wasm"))]
//! # {
//! let run = mcpeval_probe::testing::Script::new([]).greeting(json!({"instructions": "Ask me."})).run::<Greeter>(json!({}));
//! assert!(run.lost().is_empty());
//! # }
//! ```
//!
//! Build the crate as a `cdylib` for `wasm32-wasip2`, whose output is a component, or for `wasm32-unknown-unknown`
//! followed by `wasm-tools component new`. A component imports only the interfaces whose functions it calls: one that
//! never touches [`pipe`] or [`http`] cannot do so, and everybody can see that before it runs.

mod answer;
#[doc(hidden)]
pub mod bindings;
mod equality;
mod finding;
mod json;
mod manifest;
mod session;

pub mod http;
pub mod judge;
pub mod log;
pub mod pipe;
pub mod report;
pub mod schema;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
pub mod text;

/// The other side of the contract: the generated imports, or natively the scripted server of [`testing`].
#[cfg(target_family = "wasm")]
use bindings::mcpeval::probe as backend;
#[cfg(not(target_family = "wasm"))]
use testing::backend;

pub use answer::{Answer, CallClass, ToolResult, cited};
pub use bindings::mcpeval::probe::session::{IncomingKind, Isolation, Listing, Tally, Tool, ToolClass};
pub use bindings::mcpeval::probe::types::{
    Access, Allowance, Bound, Cause, Check, Chunk, ExchangeId, Fault, Finding, Level, Metric, Outcome, Reading, Reason,
    Refusal, Verdict,
};
pub use json::{Json, Params, View, call_params};
pub use manifest::{Case, Manifest};
pub use serde_json::{Value, json};
pub use session::{Facts, Incoming, Options, Pending, Session, Target, wait_any};

/// A probe: what it says of itself, and one run of it.
pub trait Probe {
    /// Read once per digest, before anything is run. No import but [`log`] may be used in it.
    fn manifest() -> Manifest;

    /// One case of a manifest, or one run as the component of a standard's areas.
    ///
    /// # Errors
    ///
    /// The fault that stopped the run: no verdict. What was submitted before it counts.
    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault>;
}

/// Makes a [`Probe`] the component's export. Natively it expands to nothing that links, so that tests can use the type.
#[macro_export]
macro_rules! export {
    ($probe:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            type Component = $crate::__private::Component<$probe>;
    $crate::__private::bindings::export_component!(Component with_types_in $crate::__private::bindings);
        };
    };
}

/// What [`export!`] expands to; no part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::bindings;
    #[cfg(target_family = "wasm")]
    pub use guest::Component;

    #[cfg(target_family = "wasm")]
    mod guest {
        use std::marker::PhantomData;

        use crate::bindings::exports::mcpeval::probe::probe::{Case, Fault, Guest, Manifest, Outcome, Target};
        use crate::{Probe, log};

        #[derive(Debug)]
        pub struct Component<P>(PhantomData<P>);

        impl<P: Probe> Guest for Component<P> {
            fn describe() -> Manifest {
                log::panics();
                P::manifest().into_contract()
            }

            fn run(target: Target, case: Case) -> Result<Outcome, Fault> {
                log::panics();
                P::run(&crate::Target::new(target), &crate::Case::from_contract(case))
            }
        }
    }
}
