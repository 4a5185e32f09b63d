//! The read-only surface: which tools there are to call, and with what.

use std::borrow::Cow;
use std::collections::HashSet;

use mcpeval_probe::{Refusal, Target, ToolClass, View, call_params, schema};

use crate::trial::Trial;

/// Whether a tool of the surface is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Callable,
    /// Callable but for skipping.
    Skipped,
    /// Says nothing of itself, and nobody attested it.
    Unattested,
}

/// A tool of the read-only surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) position: u32,
    pub(crate) name: String,
    pub(crate) standing: Standing,
}

/// Tools that are no declared writers and no invalid entries, in catalog order; of a repeated name the first.
pub(crate) fn surface(target: &Target) -> Vec<Tool> {
    let tools = target.tools();
    let mut seen = HashSet::new();
    let mut surface = Vec::new();
    for (position, tool) in (0..).zip(&tools) {
        if !seen.insert(tool.name.as_str()) || matches!(tool.class, ToolClass::Writer | ToolClass::Invalid) {
            continue;
        }
        let standing = match tool.blocked {
            None => Standing::Callable,
            Some(Refusal::SkippedTool) => Standing::Skipped,
            Some(_) => Standing::Unattested,
        };
        surface.push(Tool { position, name: tool.name.clone(), standing });
    }
    surface
}

/// Which calls the wanted areas rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) invalid: bool,
    pub(crate) valid: bool,
}

impl Tool {
    /// Prepares the trial of a callable tool.
    pub(crate) fn trial(&self, target: &Target, wanted: Wanted) -> Trial {
        let entry = target.entry(self.position);
        let [input, output] = entry.view().pick(["inputSchema", "outputSchema"]).unwrap_or_default();
        let invalid = input.filter(|_| wanted.invalid).and_then(|input| schema::counterexample(input.text()));
        let valid = if wanted.valid { target.arguments(&self.name) } else { None };
        Trial::new(
            invalid.map(|arguments| call_params(&self.name, &arguments)),
            valid.map(|arguments| call_params(&self.name, &arguments)),
            output.filter(|output| output.is_object()).map(View::to_json),
        )
    }

    /// Whether its schema forbids anything.
    pub(crate) fn is_testable(&self, target: &Target) -> bool {
        let entry = target.entry(self.position);
        entry.view().member("inputSchema").and_then(|input| schema::counterexample(input.text())).is_some()
    }

    /// Its first top-level property, by name, that is declared a string.
    pub(crate) fn string_property(&self, target: &Target) -> Option<String> {
        let entry = target.entry(self.position);
        first_string_property(entry.view())
    }
}

fn first_string_property(entry: View<'_>) -> Option<String> {
    let properties = entry.member("inputSchema")?.member("properties")?.members()?;
    let is_string =
        |schema: View<'_>| schema.member("type").and_then(View::string).is_some_and(|kind| kind == "string");
    let strings = properties.into_iter().filter(|(_, schema)| is_string(*schema)).map(|(name, _)| name);
    strings.min().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use mcpeval_probe::{Json, json};

    use super::*;

    #[test]
    fn the_first_string_by_name_is_chosen() {
        let entry = |properties| Json::from(json!({"inputSchema": {"type": "object", "properties": properties}}));
        let chosen = |properties| first_string_property(entry(properties).view());
        assert_eq!(
            chosen(json!({"b": {"type": "string"}, "a": {"type": ["string", "null"]}, "c": {"type": "string"}})),
            Some("b".to_owned())
        );
        assert_eq!(chosen(json!({"a": {"type": "integer"}, "b": true})), None);
    }
}
