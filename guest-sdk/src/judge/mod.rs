//! What kinds of a manifest share.

mod attend;
mod contention;
mod negotiation;
mod pages;
mod payload;
mod questions;

pub use attend::{attend, unread};
pub use contention::{Contention, contend};
pub use negotiation::{Breach, FIRST_OFFER, Negotiation, negotiate};
pub use pages::{End, Followed, Surface, follow, page_params, surfaces};
pub use payload::{Handling, Payload, long_params, payload};
pub use questions::{Dialogue, Ending, Misasked, converse};
