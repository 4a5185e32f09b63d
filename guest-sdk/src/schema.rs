//! JSON Schema as a service of the host: dialect aware, without references outside the document.

use crate::Json;
use crate::backend::schema;

/// Validates an instance; the error lists instance paths and keywords.
pub fn validate(schema: &str, instance: &str) -> Result<(), Vec<String>> {
    schema::validate(schema, instance)
}

/// Whether the schema compiles.
pub fn check(schema: &str) -> Result<(), String> {
    schema::check(schema)
}

/// A valid instance, the same every time, if one can be built.
pub fn example(schema: &str) -> Option<Json> {
    schema::example(schema).map(Json::from_contract)
}

/// An instance that verifiably violates the schema, if there is one.
pub fn counterexample(schema: &str) -> Option<Json> {
    schema::counterexample(schema).map(Json::from_contract)
}
