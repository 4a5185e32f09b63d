//! Arguments for a tool, from nothing but its schema (docs/standard.md).
//!
//! A [`shape`] is what all schemas for one value say together; the [`search`] builds a value from shapes, validates
//! it as a whole and goes on to the next alternative where validation finds fault.

mod counter;
mod describe;
mod number;
mod search;
mod shape;
mod string;

use std::cell::Cell;
use std::path::Path;

use serde_json::Value;

use super::schema::{Document, Index, Validator};
use search::Search;
use shape::{Shape, Type};

/// Nested objects, arrays and `$ref` hops of a value.
const MAX_DEPTH: usize = 8;
/// Subschemas that are merged, and values that are made, for one value.
const MAX_NODES: usize = 4_096;
/// The compact form of a value, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// `minItems` and `minProperties` that are satisfied.
const MAX_COUNT: usize = 256;
/// `minLength` that is satisfied, in characters.
const MAX_LENGTH: usize = 16_384;
/// Longest pattern a text is made for, in bytes.
const MAX_PATTERN: usize = 1_024;
/// Candidates for one property.
const MAX_CANDIDATES: usize = 32;
/// Full validations for one value.
const MAX_VALIDATIONS: usize = 256;
/// Subschemas that are merged for all attempts together.
const MAX_MERGES: usize = 16 * MAX_NODES;
/// What all validations for one value may cost together.
const MAX_WORK: u64 = 1 << 26;
/// The one file of the scratch folder.
pub const SCRATCH_FILE: &str = "mcpeval.txt";

/// Where the server looks for paths.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// On this machine; the scratch folder.
    Scratch(&'a Path),
    /// On another: paths are `.`.
    Remote,
}

/// Valid arguments for a tool, an object; none if the schema does not compile or nothing can be built within the
/// bounds.
pub fn arguments(schema: &Value, tool: &str, place: &Place<'_>) -> Option<Value> {
    Synthesis::open(schema, |synthesis| {
        let mut shape = synthesis.shape(schema_of(synthesis))?;
        shape.only(Type::Object);
        Search::new(synthesis, tool, *place).run(&shape)
    })
}

/// A valid instance of any type; none if the schema does not compile or nothing can be built within the bounds.
pub fn example(schema: &Value) -> Option<Value> {
    Synthesis::open(schema, |synthesis| {
        let shape = synthesis.shape(schema_of(synthesis))?;
        Search::new(synthesis, "", Place::Remote).run(&shape)
    })
}

/// Arguments that verifiably violate the schema: the first candidate of docs/standard.md that fails full
/// validation; none if the schema does not compile or accepts them all.
pub fn counterexample(schema: &Value) -> Option<Value> {
    Synthesis::open(schema, |synthesis| {
        let mut allowance = MAX_WORK;
        synthesis.nodes.set(MAX_MERGES);
        counter::candidates(synthesis)
            .take(MAX_VALIDATIONS)
            .find(|candidate| synthesis.validator.refutes(candidate, &mut allowance))
    })
}

fn schema_of<'a>(synthesis: &Synthesis<'a>) -> &'a Value {
    synthesis.document.root()
}

/// One schema that values are made for.
struct Synthesis<'a> {
    document: &'a Document<'a>,
    index: Index<'a>,
    validator: Validator,
    /// Subschemas that may still be merged for the value under way.
    nodes: Cell<usize>,
}

impl Synthesis<'_> {
    fn open<T>(schema: &Value, make: impl FnOnce(&Synthesis<'_>) -> Option<T>) -> Option<T> {
        let document = Document::open(schema).ok()?;
        let validator = Validator::of(&document).ok()?;
        make(&Synthesis { document: &document, index: document.index(), validator, nodes: Cell::new(MAX_NODES) })
    }
}

impl<'a> Synthesis<'a> {
    /// What a schema says of a value; none if there is no such value, or past the bounds.
    fn shape(&self, schema: &'a Value) -> Option<Shape<'a>> {
        let mut shape = Shape::default();
        shape.absorb(self, schema, 0)?;
        Some(shape)
    }

    /// Counts nodes, or what costs as much.
    fn spend(&self, nodes: usize) -> Option<()> {
        let rest = self.nodes.get().checked_sub(nodes);
        self.nodes.set(rest.unwrap_or(0));
        rest.map(drop)
    }
}

#[cfg(test)]
mod tests;
