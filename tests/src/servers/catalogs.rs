//! Sins of what is listed, over either transport. Most stand in one more tool, `odd_tool`.

use serde_json::{Map, Value, json};

use super::good::{Good, tool};
use super::{Fixture, Sin};

/// The tool that carries the sin.
pub const ODD: &str = "odd_tool";

const fn fixture(name: &'static str, about: &'static str, edit: fn(&mut Good)) -> Fixture {
    Fixture { name, about, sin: Sin::Catalog(edit) }
}

pub(super) const FIXTURES: &[Fixture] = &[
    fixture("paged", "nothing is wrong: one tool a page", |good| good.page = 1),
    fixture("empty-catalog", "lists no tool", |good| good.tools.clear()),
    fixture("only-writers", "lists no tool that may be called", |good| {
        good.tools.retain(|entry| entry["name"] == "delete_item");
    }),
    fixture("duplicate-page", "lists a tool twice", |good| good.tools.push(good.tools[0].clone())),
    fixture("writer-twin", "lists a tool a second time, as a writer", |good| {
        let mut twin = good.tools[0].clone();
        twin["annotations"] = json!({"readOnlyHint": false});
        good.tools.push(twin);
    }),
    fixture("short-description", "describes a tool with 39 characters", |good| {
        odd(good, |entry| entry["description"] = "x".repeat(39).into());
    }),
    fixture("wide-description", "nothing is wrong: 40 characters of two bytes each", |good| {
        odd(good, |entry| entry["description"] = "ä".repeat(40).into());
    }),
    fixture("undescribed-param", "leaves a parameter without description", |good| {
        odd(good, |entry| entry["inputSchema"]["properties"]["query"] = json!({"type": "string"}));
    }),
    fixture("untyped-param", "leaves a parameter without type", |good| {
        odd(good, |entry| entry["inputSchema"]["properties"]["query"] = json!({"description": "Words to look for."}));
    }),
    fixture("undeclared-writer", "says of a writer only that it is destructive", |good| {
        odd(good, |entry| entry["annotations"] = json!({"destructiveHint": true}));
    }),
    fixture("undeclared-destruction", "says of a writer only that it is not read-only", |good| {
        odd(good, |entry| entry["annotations"] = json!({"readOnlyHint": false}));
    }),
    fixture("unannotated", "says nothing of a tool", |good| odd(good, |entry| remove(entry, "annotations"))),
    fixture("hint-no-boolean", "says readOnlyHint with a string", |good| {
        odd(good, |entry| entry["annotations"] = json!({"readOnlyHint": "true"}));
    }),
    fixture("no-output-schema", "declares no output schema", |good| {
        odd(good, |entry| remove(entry, "outputSchema"));
    }),
    fixture("bad-name", "names a tool with a slash", |good| odd(good, |entry| entry["name"] = "odd/tool".into())),
    fixture("entry-no-object", "lists a number among its tools", |good| good.tools.push(json!(7))),
    fixture("no-input-schema", "declares no input schema", |good| odd(good, |entry| remove(entry, "inputSchema"))),
    fixture("schema-boolean", "declares true as input schema", |good| {
        odd(good, |entry| entry["inputSchema"] = true.into());
    }),
    fixture("schema-invalid", "declares a type that does not exist", |good| {
        odd(good, |entry| entry["inputSchema"]["properties"]["query"]["type"] = "words".into());
    }),
    fixture("schema-remote", "refers to a schema on another machine", |good| {
        odd(good, |entry| entry["inputSchema"] = json!({"$ref": "https://example.com/schema.json"}));
    }),
    fixture("schema-dangling", "refers to a definition that is not there", |good| {
        odd(good, |entry| entry["inputSchema"] = json!({"type": "object", "allOf": [{"$ref": "#/$defs/none"}]}));
    }),
    fixture("schema-itself", "declares a schema that is nothing but a reference to itself", |good| {
        odd(good, |entry| entry["inputSchema"] = json!({"$ref": "#"}));
    }),
    fixture("schema-dialect", "declares a dialect nobody knows", |good| {
        odd(good, |entry| entry["inputSchema"]["$schema"] = "https://example.com/dialect".into());
    }),
    fixture("schema-recursive", "nothing is wrong: a tree of nodes", |good| {
        odd(good, |entry| {
            entry["inputSchema"]["properties"]["child"] = json!({"$ref": "#", "description": "The next node."});
        });
    }),
    fixture("schema-fanout", "doubles a schema twenty-four times by reference", |good| {
        odd(good, |entry| {
            let mut definitions = Map::new();
            for level in 0..24 {
                let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
                definitions.insert(format!("d{level}"), json!({"allOf": [next, next]}));
            }
            definitions.insert("d24".to_owned(), json!({"type": "object"}));
            entry["inputSchema"] = json!({"type": "object", "$defs": definitions, "$ref": "#/$defs/d0"});
        });
    }),
    fixture("schema-deep", "nothing is wrong: a parameter nested thirty times", |good| {
        odd(good, |entry| {
            let mut schema = json!({"type": "string"});
            for _ in 0..30 {
                schema = json!({"type": "object", "properties": {"in": schema}});
            }
            schema["description"] = "A box in a box.".into();
            entry["inputSchema"]["properties"]["nested"] = schema;
        });
    }),
    fixture("schema-enormous", "declares three thousand parameters", |good| {
        odd(good, |entry| {
            for index in 0..3_000 {
                entry["inputSchema"]["properties"][format!("parameter_{index:04}")] =
                    json!({"type": "string", "description": "One of very many parameters."});
            }
        });
    }),
    fixture("schema-catastrophic", "asks for a pattern that ruins a backtracking engine", |good| {
        odd(good, |entry| entry["inputSchema"]["properties"]["query"]["pattern"] = "^(a+)+(a+)+b$".into());
    }),
    fixture("boolean-property", "declares true as schema of a parameter", |good| {
        odd(good, |entry| entry["inputSchema"]["properties"]["anything"] = true.into());
    }),
    fixture("unsynthesizable", "asks for a value that no value can be", |good| {
        odd(good, |entry| {
            entry["inputSchema"]["properties"]["query"] =
                json!({"type": "string", "minLength": 2, "maxLength": 1, "description": "Nothing fits."});
        });
    }),
    fixture("untestable", "lists a tool that takes every object", |good| {
        good.tools.clear();
        odd(good, |entry| entry["inputSchema"] = json!({"type": "object"}));
    }),
    fixture("heavy-tool", "describes a tool with 700 tokens", |good| {
        odd(good, |entry| entry["description"] = "word ".repeat(500).into());
    }),
    fixture("heavy-catalog", "lists twenty-five tools of 120 tokens", |good| {
        for index in 0..25 {
            good.tools.push(tool(&format!("tool_{index:02}"), &"one of many tools ".repeat(8)));
        }
    }),
    fixture("tools-1000", "nothing is wrong but the number: 1,000 instant tools", |good| many(good, 1_000)),
    fixture("tools-3000", "nothing is wrong but the number: 3,000 instant tools", |good| many(good, 3_000)),
];

fn odd(good: &mut Good, edit: impl FnOnce(&mut Value)) {
    let mut entry = tool(ODD, "Does what the other tools do, but is listed in an odd way.");
    edit(&mut entry);
    good.tools.push(entry);
}

fn remove(entry: &mut Value, member: &str) {
    if let Some(object) = entry.as_object_mut() {
        object.remove(member);
    }
}

fn many(good: &mut Good, count: usize) {
    good.page = 250;
    good.tools = (0..count)
        .map(|index| tool(&format!("tool_{index:04}"), "One of very many tools that all do the same."))
        .collect();
}
