//! The JSON Schema of `mcpeval.toml`.

use serde_json::{Value, json};

use super::{COLOURS, FORMATS, MAX_CONCURRENCY, MAX_LANES, MAX_STARTUP_TIMEOUT, MAX_STEP_TIMEOUT};
use crate::probes::Power;

const LABEL: &str = "^[A-Za-z0-9_.:-]{1,128}$";
const KIND: &str = "^[a-z][a-z0-9-]{0,31}\\.[a-z][a-z0-9-]{0,31}$";
const HEADER: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
const VARIABLE: &str = "^[^=\\u0000]+$";

/// Its schema, without dialect and title.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "defaults": {"$ref": "#/$defs/defaults"},
            "targets": {
                "type": "object",
                "propertyNames": {"pattern": LABEL},
                "additionalProperties": {"$ref": "#/$defs/target"},
                "description": "Servers by the name that --target takes."
            },
            "components": {
                "type": "object",
                "propertyNames": {"pattern": KIND},
                "additionalProperties": {"$ref": "#/$defs/component"},
                "description": "Components of third parties by kind, <vendor>.<name>."
            },
            "fixtures": {"$ref": "#/$defs/fixtures"}
        },
        "$defs": {
            "path": {
                "type": "string",
                "minLength": 1,
                "description": "Relative to the folder of this file; a leading ~/ is the user's."
            },
            "label": {"type": "string", "pattern": LABEL},
            "startup_timeout": {
                "type": "integer", "minimum": 1, "maximum": MAX_STARTUP_TIMEOUT,
                "description": "Wait for the handshake, in seconds."
            },
            "defaults": {
                "type": "object",
                "additionalProperties": false,
                "description": "Values for options that are not given.",
                "properties": {
                    "format": {"enum": FORMATS, "description": "Rendering of a report, --format."},
                    "lanes": {"type": "integer", "minimum": 1, "maximum": MAX_LANES},
                    "startup_timeout": {"$ref": "#/$defs/startup_timeout"},
                    "brief": {"type": "boolean"},
                    "full": {"type": "boolean"},
                    "price_per_mtok": {"type": "number", "minimum": 0, "description": "USD per million tokens."},
                    "color": {"enum": COLOURS},
                    "standard": {"$ref": "#/$defs/path"},
                    "corpus": {"$ref": "#/$defs/path"},
                    "home": {"$ref": "#/$defs/path"}
                }
            },
            "target": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "command": {
                        "type": "array", "minItems": 1,
                        "prefixItems": [{"type": "string", "minLength": 1}], "items": {"type": "string"},
                        "description": "Program of a stdio server and its arguments."
                    },
                    "url": {"type": "string", "description": "Streamable HTTP endpoint."},
                    "cwd": {"$ref": "#/$defs/path"},
                    "env": {
                        "type": "object",
                        "propertyNames": {"pattern": VARIABLE},
                        "additionalProperties": {"type": "string"},
                        "description": "Variables of the child beside the inherited ones."
                    },
                    "server": {"$ref": "#/$defs/label"},
                    "manifest": {"$ref": "#/$defs/path"},
                    "arguments": {"$ref": "#/$defs/path"},
                    "skip_tools": {"type": "array", "items": {"$ref": "#/$defs/label"}},
                    "confirm_read_only": {"type": "boolean"},
                    "startup_timeout": {"$ref": "#/$defs/startup_timeout"},
                    "headers_env": {
                        "type": "object",
                        "propertyNames": {"pattern": HEADER},
                        "additionalProperties": {"type": "string", "pattern": VARIABLE},
                        "description": "Header to the variable that holds its value."
                    }
                },
                "oneOf": [
                    {"required": ["command"], "properties": {"url": false, "headers_env": false}},
                    {"required": ["url"], "properties": {"command": false, "cwd": false, "env": false}}
                ]
            },
            "component": {
                "type": "object",
                "additionalProperties": false,
                "required": ["path", "sha256"],
                "properties": {
                    "path": {"$ref": "#/$defs/path"},
                    "sha256": {"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"},
                    "grants": {
                        "type": "array",
                        "items": {"enum": Power::ALL.map(Power::word)},
                        "description": "Powers below the protocol."
                    }
                }
            },
            "fixtures": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "dir": {"$ref": "#/$defs/path"},
                    "db": {"$ref": "#/$defs/path"},
                    "timeout": {
                        "type": "integer", "minimum": 1, "maximum": MAX_STEP_TIMEOUT,
                        "description": "Wait for a step, in milliseconds."
                    },
                    "concurrency": {"type": "integer", "minimum": 1, "maximum": MAX_CONCURRENCY},
                    "library_dirs": {"type": "array", "items": {"$ref": "#/$defs/path"}}
                }
            }
        }
    })
}
