//! What kinds of a manifest share: their fields, calls of tools, and the way to a case's verdict.
//!
//! ```
//! use mcpeval_probe::judge::{Fields, ToolCall, Trial, integer};
//! use mcpeval_probe::{Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target};
//!
//! const STEADY: &str = "acme.steady.calls";
//! struct Steady;
//!
//! impl Probe for Steady {
//!     fn manifest() -> Manifest {
//!         Manifest::new("acme.steady", "0.1.0", "Every call succeeds")
//!             .config(Fields::new().call().required("calls", integer(1, 100)).schema())
//!             .check(Check::new(STEADY, Level::Must, "Every call succeeds"))
//!             .reason("unexpected-outcome", "A call failed; make the tool answer it.", &[STEADY])
//!     }
//!
//!     fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
//!         let call = ToolCall::of(case)?;
//!         let session = target.primary()?;
//!         let mut trial = Trial::new(&[STEADY]);
//!         for _ in 0..case.number("calls")? {
//!             let answer = call.call(&session)?;
//!             trial.attempt([answer.exchange]);
//!             if !answer.succeeded() {
//!                 return Ok(trial.fail(Finding::fail(STEADY, "unexpected-outcome")));
//!             }
//!         }
//!         Ok(trial.pass())
//!     }
//! }
//! ```

mod call;
mod fields;
mod trial;

pub use call::ToolCall;
pub use fields::{Fields, identifier, integer};
pub use trial::Trial;

/// Reason of a call that came out otherwise than wanted; every kind may give it.
pub const UNEXPECTED_OUTCOME: &str = "unexpected-outcome";
/// Reason of an answer that took longer than its case allows; every kind may give it.
pub const LATENCY_BUDGET_EXCEEDED: &str = "latency-budget-exceeded";
