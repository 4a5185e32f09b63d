//! What kinds of a manifest share: their fields, calls of tools, and the way to a case's verdict; and what they judge
//! alike with the areas of a standard.
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

mod attend;
mod call;
mod contention;
mod fields;
mod negotiation;
mod pages;
mod payload;
mod questions;
mod trial;

pub use attend::{attend, unread};
pub use call::ToolCall;
pub use contention::{Contention, contend};
pub use fields::{Fields, identifier, integer};
pub use negotiation::{Breach, FIRST_OFFER, Negotiation, negotiate};
pub use pages::{End, Followed, Surface, follow, page_params, surfaces};
pub use payload::{Handling, Payload, lengthened, payload};
pub use questions::Inquiry;
pub use trial::Trial;

/// Reason of a call that came out otherwise than wanted; every kind may give it.
pub const UNEXPECTED_OUTCOME: &str = "unexpected-outcome";
/// Reason of an answer that took longer than its case allows; every kind may give it.
pub const LATENCY_BUDGET_EXCEEDED: &str = "latency-budget-exceeded";
