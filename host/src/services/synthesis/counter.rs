//! Arguments that should be refused.

use serde_json::{Value, json};

use super::Synthesis;
use super::shape::Shape;

/// The candidates in order: nothing; each property with a value that its type forbids; each enumerated property
/// with an unknown member; an unknown property. Lazily, as the first one usually serves.
pub(super) fn candidates<'a>(synthesis: &'a Synthesis<'a>) -> impl Iterator<Item = Value> + 'a {
    let shape: Shape<'a> = synthesis.shape(synthesis.document.root()).unwrap_or_default();
    let names: Vec<(&'a str, Vec<&'a Value>)> = shape.properties.into_iter().collect();
    let of = move |schemas: &[&'a Value]| {
        let mut shape = Shape::default();
        schemas.iter().try_for_each(|schema| shape.absorb(synthesis, schema, 0)).map(|()| shape)
    };
    let enumerated = names.clone();
    let mistyped = names.into_iter().filter_map(move |(name, schemas)| {
        let allowed = of(&schemas)?.allowed(synthesis)?;
        let values = [json!(12345), json!("mcpeval"), json!(true), json!(null), json!([]), json!({})];
        let wrong = values.into_iter().find(|value| !allowed.iter().any(|kind| kind.holds(value)))?;
        Some(json!({ name: wrong }))
    });
    let unlisted = enumerated
        .into_iter()
        .filter_map(move |(name, schemas)| of(&schemas)?.is_enumerated().then(|| json!({ name: "mcpeval-invalid" })));
    std::iter::once(json!({}))
        .chain(mistyped)
        .chain(unlisted)
        .chain(std::iter::once_with(|| json!({"mcpeval_unknown": 1})))
}
