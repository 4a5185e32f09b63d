//! JSON Schema: does a schema compile, is an instance valid.
//!
//! The dialect is the declared one, else 2020-12; formats are asserted; references reach no further than the
//! document. A schema comes from the server under test, so what it asks for is counted before it is compiled, and
//! what a validation asks for before it runs.

mod document;
mod graph;

use std::borrow::Cow;

use jsonschema::PatternOptions;
use serde_json::Value;

pub(super) use document::{Document, Index};
use graph::{Cost, Graph};

use super::on_stack;

/// Errors that are listed for one instance.
pub const MAX_ERRORS: usize = 64;
/// Longest instance path in an error, in characters.
const MAX_PATH: usize = 256;
/// Largest compiled pattern, in bytes.
const MAX_PATTERN: usize = 8 << 20;
/// Steps back before a backtracking match is left undecided.
const MAX_BACKTRACKS: usize = 20_000;
/// Work of a validation whose errors are all collected; past it only the first one is.
const MAX_DETAILED: u64 = 1 << 18;
/// Work times bytes of the instance up to which errors are told at all: each error may copy the part it is about, and
/// each branch of a choice gives one.
const MAX_COPIED: u64 = 64 << 20;
/// Targets of references that the compiler nests on one stack before it queues them.
const NESTED_TARGETS: usize = 9;

/// Whether the schema compiles: it is valid in its declared dialect (default 2020-12), and inside the bounds. A
/// schema that applies a part of itself to the same value without end does not, nor one that refers to anything
/// outside. The error is one sentence.
pub fn check(schema: &Value) -> Result<(), String> {
    Validator::new(schema).map(drop)
}

/// Full validation. Errors are lines of `<instance path>: <keyword>`, sorted, at most [`MAX_ERRORS`], without any
/// value of the instance; a schema that does not compile, or a validation past the bounds, is one line that says so.
pub fn validate(schema: &Value, instance: &Value) -> Result<(), Vec<String>> {
    Validator::new(schema).map_err(|error| vec![error])?.errors(instance)
}

/// A compiled schema.
#[derive(Debug)]
pub struct Validator {
    compiled: Option<Box<jsonschema::Validator>>,
    graph: Graph,
    depth: usize,
}

/// What is known of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Valid,
    Invalid,
    /// Past the bounds.
    Undecided,
}

impl Validator {
    /// Compiles a schema; see [`check`].
    pub fn new(schema: &Value) -> Result<Self, String> {
        Self::of(&Document::open(schema)?)
    }

    pub(super) fn of(document: &Document<'_>) -> Result<Self, String> {
        let graph = Graph::of(document)?;
        let depth = document.depth() * NESTED_TARGETS.min(1 + graph.references());
        let compiled = on_stack(depth, || {
            jsonschema::options()
                .with_draft(document.draft())
                .should_validate_formats(true)
                .offline()
                .with_pattern_options(
                    PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS).size_limit(MAX_PATTERN),
                )
                .build(document.root())
                .map_err(|error| {
                    let (path, keyword) = (short(error.instance_path().as_str()), error.kind().keyword().to_owned());
                    format!("the schema is not valid in its dialect at {path:?}: {keyword}")
                })
        })
        .ok_or("the schema is too deep to compile here")??;
        Ok(Self { compiled: Some(Box::new(compiled)), graph, depth })
    }

    /// Whether the instance is valid; one past the bounds is not.
    pub fn is_valid(&self, instance: &Value) -> bool {
        self.verdict(instance, &mut { graph::MAX_WORK }) == Verdict::Valid
    }

    /// The verdict, paid from `allowance`; [`Verdict::Undecided`] if that or the bounds do not suffice.
    pub(super) fn verdict(&self, instance: &Value, allowance: &mut u64) -> Verdict {
        let Some((compiled, cost)) = self.weighed(instance) else { return Verdict::Undecided };
        let Some(rest) = allowance.checked_sub(cost.work) else { return Verdict::Undecided };
        *allowance = rest;
        match on_stack(cost.depth, || compiled.is_valid(instance)) {
            Some(true) => Verdict::Valid,
            Some(false) => Verdict::Invalid,
            None => Verdict::Undecided,
        }
    }

    /// Whether the instance is invalid beyond doubt.
    pub(super) fn refutes(&self, instance: &Value, allowance: &mut u64) -> bool {
        self.verdict(instance, allowance) == Verdict::Invalid
    }

    /// The pointers to what is wrong; none if that cannot be told within the bounds.
    pub(super) fn faulty(&self, instance: &Value, allowance: &mut u64) -> Option<Vec<String>> {
        match self.verdict(instance, allowance) {
            Verdict::Valid => Some(Vec::new()),
            Verdict::Invalid => Some(self.faults(instance).ok()?.into_iter().map(|fault| fault.path).collect()),
            Verdict::Undecided => None,
        }
    }

    /// The errors of an instance, as [`validate`] gives them.
    pub fn errors(&self, instance: &Value) -> Result<(), Vec<String>> {
        let lines = self.faults(instance)?;
        if lines.is_empty() {
            return Ok(());
        }
        let mut lines: Vec<String> =
            lines.into_iter().map(|fault| format!("{}: {}", short(&fault.path), fault.keyword)).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.truncate(MAX_ERRORS);
        Err(lines)
    }

    /// Every fault of an instance as far as the bounds allow, else the first.
    pub(crate) fn faults(&self, instance: &Value) -> Result<Vec<Fault>, Vec<String>> {
        let beyond = || vec![": beyond the bounds of validation".to_owned()];
        let (compiled, cost) = self.weighed(instance).ok_or_else(beyond)?;
        let copied = cost.work.saturating_mul(bytes_of(instance));
        if copied > MAX_COPIED {
            let valid = on_stack(cost.depth, || compiled.is_valid(instance)).ok_or_else(beyond)?;
            return if valid { Ok(Vec::new()) } else { Err(vec![": invalid, and too large to say where".to_owned()]) };
        }
        on_stack(cost.depth, || {
            if compiled.is_valid(instance) {
                Vec::new()
            } else if cost.work <= MAX_DETAILED {
                compiled.iter_errors(instance).map(|error| Fault::of(&error)).collect()
            } else {
                compiled.validate(instance).err().iter().map(Fault::of).collect()
            }
        })
        .ok_or_else(beyond)
    }

    fn weighed(&self, instance: &Value) -> Option<(&jsonschema::Validator, Cost)> {
        Some((self.compiled.as_deref()?, self.graph.weigh(instance)?))
    }
}

impl Drop for Validator {
    fn drop(&mut self) {
        // What was compiled nests as deep as the schema does.
        let compiled = self.compiled.take();
        on_stack(self.depth, move || drop(compiled));
    }
}

/// A measure of what a copy of a value takes, near its bytes as JSON. Values are parsed with a bound on depth, so this may recurse.
fn bytes_of(value: &Value) -> u64 {
    const NODE: u64 = 2;
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() as u64 + bytes_of(value)).sum(),
    }
}

/// Where an instance is wrong, and the keyword that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) path: String,
    pub(crate) keyword: String,
}

impl Fault {
    fn of(error: &jsonschema::ValidationError<'_>) -> Self {
        Self { path: error.instance_path().as_str().to_owned(), keyword: error.kind().keyword().to_owned() }
    }
}

/// A path cut to what a line can hold.
fn short(path: &str) -> Cow<'_, str> {
    match path.char_indices().nth(MAX_PATH) {
        Some((end, _)) => Cow::Owned(format!("{}…", path.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(path),
    }
}

#[cfg(test)]
mod tests;
