//! Regular expressions as a service of the host.

use crate::backend::text;
pub use crate::bindings::mcpeval::probe::text::Dialect;

/// Whether the pattern matches somewhere in the text; an error for a pattern that does not compile or, when
/// backtracking, takes too long.
pub fn matches(pattern: &str, text: &str, dialect: Dialect) -> Result<bool, String> {
    text::matches(pattern, text, dialect)
}
