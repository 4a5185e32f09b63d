//! What kinds of a manifest share: their fields, calls of tools, and the way to a case's verdict.
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

mod call;
mod expect;
mod fields;
mod reasons;
mod trial;

pub use call::ToolCall;
pub use expect::Expect;
pub use fields::{Fields, identifier, integer};
pub use reasons::{
    CommonReason, ERROR_CODE_MISMATCH, LATENCY_BUDGET_EXCEEDED, MISSING_FIELD, RECOVERY_FAILED, SCHEMA_MISMATCH,
    TEXT_MISMATCH, UNEXPECTED_OUTCOME, VALUE_MISMATCH,
};
pub use trial::Trial;
