//! What kinds of a manifest share: their fields, calls of tools, and the way to a case's verdict; and what they judge
//! alike with the areas of a standard.
//!
//! ```
//! use mcpeval_probe::judge::{Fields, ToolCall, Trial, UNEXPECTED_OUTCOME, integer};
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
//!             .common_reason(UNEXPECTED_OUTCOME, &[STEADY])
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
//!                 return Ok(trial.fail(Finding::fail(STEADY, UNEXPECTED_OUTCOME.label)));
//!             }
//!         }
//!         Ok(trial.pass())
//!     }
//! }
//! ```

mod attend;
mod call;
mod contention;
mod expect;
mod fields;
mod negotiation;
mod pages;
mod payload;
mod questions;
mod reasons;
mod trial;

pub use attend::{attend, unread};
pub use call::ToolCall;
pub use contention::{Contention, contend};
pub use expect::Expect;
pub use fields::{Fields, identifier, integer};
pub use negotiation::{Breach, FIRST_OFFER, Negotiation, negotiate};
pub use pages::{End, Followed, Surface, follow, page_params, surfaces};
pub use payload::{Handling, Payload, lengthened, payload};
pub use questions::Inquiry;
pub use reasons::{
    CommonReason, ERROR_CODE_MISMATCH, LATENCY_BUDGET_EXCEEDED, MISSING_FIELD, RECOVERY_FAILED, SCHEMA_MISMATCH,
    TEXT_MISMATCH, UNEXPECTED_OUTCOME, VALUE_MISMATCH,
};
pub use trial::Trial;
