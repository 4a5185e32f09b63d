//! The config schema of a kind.

use serde_json::{Map, Value, json};

/// Builds the schema of a kind's own fields: a closed object. The fields that every case has (`probe`, `id`, `access`,
/// `sandbox`) are the host's and not in it.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Fields {
    /// No field yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A field that a case must have.
    #[must_use]
    pub fn required(mut self, name: &str, schema: Value) -> Self {
        self.required.push(name.to_owned());
        self.optional(name, schema)
    }

    /// A field that a case may have.
    #[must_use]
    pub fn optional(mut self, name: &str, schema: Value) -> Self {
        self.properties.insert(name.to_owned(), schema);
        self
    }

    /// `tool`, and optionally `arguments`, as [`ToolCall::of`](super::ToolCall::of) reads them.
    #[must_use]
    pub fn call(self) -> Self {
        self.call_as("tool", "arguments")
    }

    /// The same under other names, as [`ToolCall::read`](super::ToolCall::read) reads them.
    #[must_use]
    pub fn call_as(self, tool: &str, arguments: &str) -> Self {
        self.required(tool, tool_name()).optional(arguments, tool_arguments())
    }

    /// A call that a case may leave out; without the tool no arguments are taken.
    #[must_use]
    pub fn optional_call_as(self, tool: &str, arguments: &str) -> Self {
        self.optional(tool, tool_name()).optional(arguments, tool_arguments())
    }

    /// The whole schema.
    pub fn schema(self) -> Value {
        json!({
            "type": "object",
            "properties": self.properties,
            "required": self.required,
            "additionalProperties": false
        })
    }
}

/// A whole number within inclusive bounds.
pub fn integer(min: u32, max: u32) -> Value {
    json!({"type": "integer", "minimum": min, "maximum": max})
}

/// An identifier: a letter, then at most 63 letters, digits, `_`, `.`, `:`, `-`.
pub fn identifier() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_.:-]{0,63}$"})
}

fn tool_name() -> Value {
    json!({"type": "string", "format": "tool", "pattern": "^[A-Za-z0-9_.:-]{1,128}$"})
}

fn tool_arguments() -> Value {
    json!({"type": "object", "default": {}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_closed_and_names_what_is_required() {
        let schema = Fields::new().call().optional("strict", json!({"type": "boolean"})).schema();
        assert_eq!(schema["required"], json!(["tool"]));
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["tool"]["format"], "tool");
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["arguments", "strict", "tool"]);
    }
}
