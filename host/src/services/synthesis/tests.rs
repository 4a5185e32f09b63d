use serde_json::json;

use super::*;
use crate::services::schema;

const SCRATCH: &str = "/scratch";

fn make(schema: &Value) -> Option<Value> {
    let value = example(schema);
    if let Some(value) = &value {
        assert_eq!(schema::validate(schema, value), Ok(()), "{schema} gave {value}");
    }
    value
}

fn table(rows: &[(Value, Value)]) {
    for (schema, expected) in rows {
        let wanted = (expected != "none").then(|| expected.clone());
        assert_eq!(make(schema), wanted, "{schema}");
    }
}

/// The one property `name` as a tool gets it.
fn property(name: &str, tool: &str, schema: &Value) -> Option<Value> {
    let whole = json!({"type": "object", "properties": {name: schema}, "required": [name]});
    let made = arguments(&whole, tool, &Place::Scratch(Path::new(SCRATCH)))?;
    assert_eq!(schema::validate(&whole, &made), Ok(()), "{whole} gave {made}");
    made.get(name).cloned()
}

#[test]
fn booleans_and_references_normalise() {
    let defs = json!({"a": {"type": "integer", "minimum": 3}, "b": {"$ref": "#/$defs/a"}, "s": {"const": "x"}});
    let with = |mut schema: Value| {
        schema["$defs"] = defs.clone();
        schema
    };
    table(&[
        (json!(true), json!("mcpeval")),
        (json!(false), json!("none")),
        (json!({}), json!("mcpeval")),
        (with(json!({"$ref": "#/$defs/b"})), json!(3)),
        (with(json!({"$ref": "#/$defs/b", "minimum": 5})), json!(5)),
        (with(json!({"$ref": "#/$defs/missing"})), json!("none")),
        (json!({"$ref": "https://example.com/schema"}), json!("none")),
        (json!({"$ref": "#"}), json!("none")),
        (json!({"$defs": {"x": {"$anchor": "here", "const": 1}}, "$ref": "#here"}), json!(1)),
        (json!({"$defs": {"x": {"$dynamicAnchor": "here", "const": 1}}, "$dynamicRef": "#here"}), json!(1)),
        (json!({"$id": "https://a.example/s", "$defs": {"x": {"$id": "x", "const": 1}}, "$ref": "x"}), json!(1)),
        (json!({"$ref": "#/%24defs/a~1b", "$defs": {"a/b": {"const": 1}}}), json!(1)),
    ]);
    // Up to draft-07 the siblings of a reference mean nothing.
    for (dialect, expected) in
        [("http://json-schema.org/draft-07/schema#", 3), ("https://json-schema.org/draft/2019-09/schema", 5)]
    {
        let schema = json!({"$schema": dialect, "properties": {"p": {"$ref": "#/definitions/a", "minimum": 5}},
            "definitions": {"a": {"type": "integer", "minimum": 3}}, "required": ["p"]});
        assert_eq!(make(&schema), Some(json!({"p": expected})), "{dialect}");
    }
}

#[test]
fn all_of_merges() {
    table(&[
        (json!({"allOf": [{"type": ["string", "integer"]}, {"type": ["number", "null"]}]}), json!(1)),
        (json!({"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}), json!("b")),
        (json!({"allOf": [{"minimum": 2}, {"minimum": 4}, {"multipleOf": 3}, {"multipleOf": 2}]}), json!(6)),
        (
            json!({"allOf": [{"required": ["a"], "properties": {"a": {"const": 1}}},
                {"required": ["b"], "properties": {"a": {}, "b": {"const": 2}}}]}),
            json!({"a": 1, "b": 2}),
        ),
        (json!({"allOf": [{"pattern": "^a"}, {"pattern": "^ab$"}]}), json!("ab")),
        (json!({"allOf": [{"type": "string"}, {"type": "integer"}]}), json!("none")),
        (json!({"allOf": [{"type": "string"}, false]}), json!("none")),
        (json!({"type": "object", "required": ["x"], "allOf": [{"additionalProperties": false}]}), json!("none")),
    ]);
}

#[test]
fn fixed_values_come_in_order() {
    table(&[
        (json!({"const": 7}), json!(7)),
        (json!({"const": {"a": [1]}}), json!({"a": [1]})),
        (json!({"enum": ["b", "a"], "default": "a"}), json!("b")),
        (json!({"default": "d", "examples": ["e"]}), json!("d")),
        (json!({"type": "string", "default": 5, "examples": [6, "e"]}), json!("e")),
        (json!({"type": "string", "default": null}), json!("mcpeval")),
        (json!({"enum": ["a", 1, null], "type": ["null", "integer"]}), json!(1)),
        (json!({"enum": ["ab", "abc"], "minLength": 3}), json!("abc")),
        (json!({"enum": [1, 2, 3], "not": {"enum": [1, 2]}}), json!(3)),
        (json!({"type": "array", "default": [1], "items": {"type": "string"}, "minItems": 1}), json!(["mcpeval"])),
    ]);
}

#[test]
fn descriptions_give_candidates() {
    let described = |kind: Value, text: &str| property("p", "t", &json!({"type": kind, "description": text}));
    for (kind, text, expected) in [
        (
            json!("string"),
            "IANA name (e.g., 'America/New_York', 'Europe/London'). Use 'UTC' if none.",
            json!("America/New_York"),
        ),
        (json!("string"), "such as “left” or “right”", json!("left")),
        (json!("string"), "Default `main`", json!("main")),
        (json!("string"), "default: 10", json!("mcpeval")),
        (json!("integer"), "default: 10", json!(10)),
        (json!("integer"), "e.g. '12'", json!(12)),
        (json!("integer"), "e.g. 1.5", json!(1)),
        (json!("number"), "e.g. 1.5", json!(1.5)),
        (json!("boolean"), "default \"true\"", json!(true)),
        (json!("array"), "e.g. '[1, 2]'", json!([1, 2])),
        (json!("array"), "e.g. '1, 2'", json!([1, 2])),
        (json!("array"), "e.g. 'red'", json!(["red"])),
        (json!("object"), "e.g. '{\"a\": 1}'", json!({"a": 1})),
        (json!(["null", "string"]), "e.g. 'x'", json!("x")),
    ] {
        assert_eq!(described(kind.clone(), text), Some(expected), "{kind} {text}");
    }
    let short = json!({"type": "string", "maxLength": 3, "description": "e.g. 'long', 'ok'"});
    assert_eq!(property("p", "t", &short), Some(json!("ok")));
}

#[test]
fn branches_are_tried_in_order() {
    table(&[
        (json!({"anyOf": [{"type": "null"}, {"type": "string"}]}), json!(null)),
        (json!({"anyOf": [false, {"type": "integer"}]}), json!(1)),
        (json!({"oneOf": [{"type": "integer"}, {"type": "integer", "minimum": 0}, {"const": "x"}]}), json!("x")),
        (json!({"type": "integer", "anyOf": [{"minimum": 10}, {"maximum": 0}], "oneOf": [{"maximum": 5}]}), json!(0)),
        (json!({"anyOf": [{"anyOf": [{"type": "string", "maxLength": 0, "minLength": 1}, {"const": 2}]}]}), json!(2)),
        (
            json!({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}},
                "oneOf": [{"required": ["a"], "not": {"required": ["a"]}}, {"required": ["b"]}]}),
            json!({"b": 2}),
        ),
        (json!({"type": "string", "if": {"maxLength": 9}, "then": {"pattern": "^x+$"}}), json!("x")),
        (json!({"type": "integer", "if": {"minimum": 5}, "else": {"const": 3}}), json!(3)),
        (
            json!({"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["file"]}, "path": {}},
                "if": {"properties": {"kind": {"const": "file"}}}, "then": {"required": ["path"]}}),
            json!({"kind": "file", "path": "."}),
        ),
    ]);
}

#[test]
fn types_are_tried_in_order() {
    table(&[
        (json!({"type": ["null", "integer"]}), json!(1)),
        (json!({"type": ["boolean", "string"]}), json!(false)),
        (json!({"type": "null"}), json!(null)),
        (json!({"type": "boolean", "not": {"const": false}}), json!(true)),
        (json!({"required": ["a"]}), json!({"a": "mcpeval"})),
        (json!({"minItems": 1}), json!(["mcpeval"])),
        (json!({"minimum": 2.5}), json!(2.5)),
        (json!({"maxLength": 3}), json!("mcp")),
        (json!({"type": ["string", "integer"], "not": {"type": "string"}}), json!(1)),
    ]);
}

#[test]
fn strings_follow_format_pattern_and_length() {
    table(&[
        (json!({"type": "string", "minLength": 10}), json!("mcpevalxxx")),
        (json!({"type": "string", "maxLength": 2}), json!("mc")),
        (json!({"type": "string", "minLength": 16_384}), json!(format!("mcpeval{}", "x".repeat(16_377)))),
        (json!({"type": "string", "minLength": 16_385}), json!("none")),
        (json!({"type": "string", "contentEncoding": "base64"}), json!("bWNwZXZhbA==")),
        (json!({"type": "string", "pattern": "^[A-Z]{2}-(x|y)?[0-9]+$"}), json!("AA-0")),
        (json!({"type": "string", "pattern": "^[a-z]+$", "minLength": 9}), json!("aaaaaaaaa")),
        (json!({"type": "string", "pattern": "^(?!mcp)[a-z]{3}$"}), json!("aaa")),
        (json!({"type": "string", "pattern": "^(?=b)[a-z]$"}), json!("none")),
        (json!({"type": "string", "pattern": "("}), json!("none")),
        (json!({"type": "string", "pattern": format!("^{}$", "a".repeat(1_022))}), json!("a".repeat(1_022))),
        (json!({"type": "string", "pattern": format!("^{}$", "a".repeat(1_023))}), json!("none")),
        (json!({"type": "string", "format": "email", "maxLength": 5}), json!("none")),
        (json!({"type": "string", "format": "unheard-of"}), json!("mcpeval")),
    ]);
    for (format, expected) in [
        ("date-time", "2026-01-01T00:00:00Z"),
        ("date", "2026-01-01"),
        ("time", "00:00:00Z"),
        ("duration", "P1D"),
        ("email", "user@example.com"),
        ("idn-email", "user@example.com"),
        ("hostname", "example.com"),
        ("idn-hostname", "example.com"),
        ("ipv4", "192.0.2.1"),
        ("ipv6", "2001:db8::1"),
        ("uri", "https://example.com"),
        ("uri-reference", "https://example.com"),
        ("iri", "https://example.com"),
        ("iri-reference", "https://example.com"),
        ("json-pointer", "/mcpeval"),
        ("regex", ".*"),
        ("uuid", "00000000-0000-4000-8000-000000000000"),
    ] {
        let schema = json!({"type": "string", "format": format});
        assert_eq!(make(&schema), Some(json!(expected)), "{format}");
    }
}

#[test]
fn names_hint_at_strings_and_numbers() {
    let string = json!({"type": "string"});
    for (name, tool, schema, expected) in [
        ("timezone", "t", &string, json!("UTC")),
        ("path", "t", &string, json!("/scratch")),
        ("path", "read_file", &string, json!("/scratch/mcpeval.txt")),
        ("url", "t", &json!({"type": "string", "format": "date"}), json!("2026-01-01")),
        ("time", "t", &json!({"type": "string", "description": "in 24-hour format (HH:MM)"}), json!("12:00")),
        ("year", "t", &json!({"type": "integer"}), json!(2026)),
        ("year", "t", &json!({"type": "integer", "maximum": 2000}), json!(1)),
        ("latitude", "t", &json!({"type": "number"}), json!(0)),
        ("urls", "t", &json!({"type": "array", "minItems": 1, "items": string}), json!(["https://example.com"])),
    ] {
        assert_eq!(property(name, tool, schema), Some(expected), "{name} {tool}");
    }
}

#[test]
fn numbers_follow_their_bounds() {
    table(&[
        (json!({"type": "integer"}), json!(1)),
        (json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}), json!(0.5)),
        (json!({"type": "number", "minimum": 0.05, "multipleOf": 0.1}), json!(0.1)),
        (json!({"type": "integer", "multipleOf": 0.4}), json!(2)),
        (json!({"type": "integer", "minimum": 3, "maximum": 3, "multipleOf": 2}), json!("none")),
        (json!({"type": "number", "multipleOf": 1e-300}), json!("none")),
        (
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 4,
                "exclusiveMinimum": true}),
            json!(5),
        ),
    ]);
}

#[test]
fn arrays_have_places_items_and_contents() {
    table(&[
        (json!({"type": "array"}), json!([])),
        (json!({"type": "array", "items": {"type": "integer"}, "minItems": 2}), json!([1, 1])),
        (json!({"prefixItems": [{"type": "integer"}, {"const": "x"}], "items": false}), json!([1, "x"])),
        (json!({"prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 3}), json!([1, 2, 2])),
        (json!({"prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 1}), json!([1])),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"const": 1}],
                "additionalItems": {"const": 2}, "minItems": 2}),
            json!([1, 2]),
        ),
        (json!({"contains": {"const": 5}}), json!([5])),
        (json!({"contains": {"const": 5}, "minContains": 2, "minItems": 3}), json!(["mcpeval", 5, 5])),
        (json!({"contains": {"const": 5}, "minContains": 0, "type": "array"}), json!([])),
        (
            json!({"uniqueItems": true, "minItems": 3, "items": {"type": "string"}}),
            json!(["mcpeval", "mcpeval-2", "mcpeval-3"]),
        ),
        (json!({"uniqueItems": true, "minItems": 3, "items": {"enum": ["a", "b", "c"]}}), json!(["a", "b", "c"])),
        (json!({"uniqueItems": true, "minItems": 3, "items": {"enum": ["a", "b"]}}), json!("none")),
        (
            json!({"uniqueItems": true, "minItems": 3, "items": {"type": "integer", "multipleOf": 5}}),
            json!([5, 10, 15]),
        ),
        (
            json!({"uniqueItems": true, "minItems": 2, "items": {"required": ["a"], "properties": {"a": {"enum": [1, 2]}}}}),
            json!([{"a": 1}, {"a": 2}]),
        ),
        (json!({"type": "array", "minItems": 256, "items": {"type": "null"}}), json!(vec![Value::Null; 256])),
        (json!({"type": "array", "minItems": 257, "items": {"type": "null"}}), json!("none")),
        (json!({"type": "array", "minItems": 1e300}), json!("none")),
    ]);
}

#[test]
fn objects_hold_what_is_required() {
    table(&[
        (json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]}), json!({"b": "mcpeval"})),
        (
            json!({"required": ["a"], "dependentRequired": {"a": ["b"], "b": ["c"]}, "properties": {"c": {"const": 3}}}),
            json!({"a": "mcpeval", "b": "mcpeval", "c": 3}),
        ),
        (
            json!({"required": ["a"], "dependentSchemas": {"a": {"required": ["z"], "properties": {"z": {"const": 1}}}}}),
            json!({"a": "mcpeval", "z": 1}),
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "required": ["a"],
                "dependencies": {"a": ["b"], "b": {"required": ["c"]}}}),
            json!({"a": "mcpeval", "b": "mcpeval", "c": "mcpeval"}),
        ),
        (json!({"required": ["n1"], "patternProperties": {"^n": {"type": "integer"}}}), json!({"n1": 1})),
        (json!({"required": ["x"], "additionalProperties": {"type": "boolean"}}), json!({"x": false})),
        (json!({"required": ["x"], "additionalProperties": false}), json!("none")),
        (
            json!({"minProperties": 2, "properties": {"b": {"const": 1}, "a": {"const": 2}, "c": {}}}),
            json!({"a": 2, "b": 1}),
        ),
        (
            json!({"minProperties": 2, "properties": {"a": false, "b": {"const": 1}}}),
            json!({"b": 1, "mcpeval_1": "mcpeval"}),
        ),
        (json!({"minProperties": 2}), json!({"mcpeval_1": "mcpeval", "mcpeval_2": "mcpeval"})),
        (json!({"minProperties": 257}), json!("none")),
        (json!({"required": ["__proto__", "constructor"]}), json!({"__proto__": "mcpeval", "constructor": "mcpeval"})),
        (
            json!({"required": ["a/b", "~"], "properties": {"a/b": {"enum": [1, 2], "not": {"const": 1}}}}),
            json!({"a/b": 2, "~": "mcpeval"}),
        ),
    ]);
}

#[test]
fn arguments_are_objects() {
    let here = Place::Remote;
    assert_eq!(arguments(&json!({}), "t", &here), Some(json!({})));
    assert_eq!(arguments(&json!(true), "t", &here), Some(json!({})));
    assert_eq!(arguments(&json!({"type": "string"}), "t", &here), None);
    assert_eq!(arguments(&json!({"type": "object", "default": {"a": 1}}), "t", &here), Some(json!({"a": 1})));
}

#[test]
fn depth_ends_at_eight() {
    let nest = |levels: usize| {
        (0..levels).fold(json!({"const": 1}), |inner, _| json!({"required": ["p"], "properties": {"p": inner}}))
    };
    assert!(make(&nest(8)).is_some());
    assert_eq!(make(&nest(9)), None);
    let tree = json!({"required": ["next"], "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}});
    assert!(make(&tree).is_some(), "a recursive schema that can end");
    assert_eq!(make(&json!({"required": ["next"], "properties": {"next": {"$ref": "#"}}})), None);
    let tree = json!({"required": ["all"], "properties": {"all": {"type": "array", "items": {"$ref": "#"}}}});
    assert_eq!(make(&tree), Some(json!({"all": []})));
}

#[test]
fn invalid_arguments_come_in_order() {
    for (schema, expected) in [
        (json!({"type": "object", "required": ["a"]}), Some(json!({}))),
        (json!({"properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}), Some(json!({"a": "mcpeval"}))),
        (json!({"properties": {"a": {"type": "string"}}}), Some(json!({"a": 12345}))),
        (json!({"properties": {"a": {"type": ["string", "number", "boolean"]}}}), Some(json!({"a": null}))),
        (
            json!({"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}),
            Some(json!({"a": "mcpeval"})),
        ),
        (json!({"properties": {"a": {"enum": ["x"]}}}), Some(json!({"a": "mcpeval-invalid"}))),
        (json!({"properties": {"a": {"const": 1}}}), Some(json!({"a": "mcpeval-invalid"}))),
        (json!({"type": "object", "additionalProperties": false}), Some(json!({"mcpeval_unknown": 1}))),
        (json!({"type": "object"}), None),
        (json!({}), None),
        (json!(true), None),
        (json!({"properties": {"a": {}}}), None),
        (json!({"$ref": "https://example.com/"}), None),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "number"}}}),
            Some(json!({"a": "mcpeval"})),
        ),
    ] {
        assert_eq!(counterexample(&schema), expected, "{schema}");
    }
}

/// A schema from a small grammar; `seed` decides everything.
struct Grammar {
    seed: u64,
}

impl Grammar {
    /// The next of `count` choices.
    fn pick(&mut self, count: u64) -> u64 {
        // xorshift64*.
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % count
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        let place = usize::try_from(self.pick(all.len() as u64)).unwrap_or(0);
        all[place].clone()
    }

    fn name(&mut self) -> &'static str {
        self.of(&["a", "b", "path", "year", "__proto__", "x/y", "ü"])
    }

    fn list(&mut self, depth: u32) -> Value {
        (0..=self.pick(3)).map(|_| self.schema(depth)).collect()
    }

    fn map(&mut self, depth: u32) -> Value {
        Value::Object((0..self.pick(4)).map(|_| (self.name().to_owned(), self.schema(depth))).collect())
    }

    fn scalar(&mut self) -> Value {
        self.of(&[json!("a"), json!(1), json!(2.5), json!(null), json!(true), json!([1]), json!({"a": 1}), json!("")])
    }

    fn schema(&mut self, depth: u32) -> Value {
        if depth == 0 || self.pick(12) == 0 {
            return self.of(&[
                json!(true),
                json!(false),
                json!({}),
                json!({"type": "string"}),
                json!({"type": "integer"}),
            ]);
        }
        let mut schema = serde_json::Map::new();
        for _ in 0..=self.pick(4) {
            let (keyword, value) = self.keyword(depth - 1);
            schema.insert(keyword.to_owned(), value);
        }
        Value::Object(schema)
    }

    fn keyword(&mut self, depth: u32) -> (&'static str, Value) {
        let number = self.of(&[json!(0), json!(1), json!(-3), json!(2.5), json!(1e300), json!(0.1)]);
        let count = self.of(&[json!(0), json!(1), json!(2), json!(3), json!(300), json!(1e300)]);
        match self.pick(38) {
            0..=5 => ("type", self.of(&["object", "array", "string", "number", "integer", "boolean", "null"]).into()),
            6 => ("type", json!(["null", "string", "object"])),
            7..=9 => ("properties", self.map(depth)),
            10 => ("required", json!([self.name(), "zz"])),
            11 => ("additionalProperties", self.schema(depth)),
            12 => ("patternProperties", json!({"^a|z": self.schema(depth)})),
            13 => ("dependentRequired", json!({"a": [self.name()]})),
            14 => ("dependentSchemas", self.map(depth)),
            15 => ("minProperties", count),
            16 => ("items", self.schema(depth)),
            17 => ("prefixItems", self.list(depth)),
            18 => ("contains", self.schema(depth)),
            19 => ("minItems", count),
            20 => ("maxItems", count),
            21 => ("uniqueItems", json!(true)),
            22 => ("minimum", number),
            23 => ("exclusiveMaximum", number),
            24 => ("multipleOf", self.of(&[json!(2), json!(0.1), json!(1e-300), json!(7)])),
            25 => ("minLength", count),
            26 => ("pattern", self.of(&["^[a-c]{2}$", "(?!a)b", "^(x|y)+\\d$", "(", "(a*)*$"]).into()),
            27 => ("format", self.of(&["date", "uri", "ipv6", "nonsense"]).into()),
            28 => ("const", self.scalar()),
            29 => ("enum", json!([self.scalar(), self.scalar(), "z"])),
            30 => ("default", self.scalar()),
            31 => ("description", self.of(&["e.g. 'b', '7'", "default \u{201c}", "such as 4"]).into()),
            32 => ("allOf", self.list(depth)),
            33 => ("anyOf", self.list(depth)),
            34 => ("oneOf", self.list(depth)),
            35 => ("not", self.schema(depth)),
            36 => ("$ref", self.of(&["#", "#/properties/a", "#/$defs/b", "#/items", "http://[", "#nowhere"]).into()),
            _ => (self.of(&["if", "then", "else", "propertyNames", "unevaluatedProperties"]), self.schema(depth)),
        }
    }
}

#[test]
fn whatever_the_schema_values_are_verified() {
    let (mut made, mut refuted, mut compiled) = (0, 0, 0);
    for seed in 1..=3_000 {
        let mut grammar = Grammar { seed: seed * 0x9E37_79B9 };
        let mut schema = grammar.schema(4);
        if let (Value::Object(map), true) = (&mut schema, grammar.pick(2) == 0) {
            map.insert("$defs".to_owned(), grammar.map(2));
        }
        compiled += u32::from(schema::check(&schema).is_ok());
        if let Some(value) = make(&schema) {
            made += 1;
            assert_eq!(example(&schema).as_ref(), Some(&value), "{schema}");
        }
        if let Some(value) = arguments(&schema, "read_file", &Place::Scratch(Path::new(SCRATCH))) {
            assert!(value.is_object() && schema::validate(&schema, &value).is_ok(), "{schema} gave {value}");
        }
        if let Some(value) = counterexample(&schema) {
            refuted += 1;
            assert!(schema::validate(&schema, &value).is_err(), "{schema} accepts {value}");
        }
    }
    // The grammar must reach all three; what it gives is the same in every run.
    assert!(compiled > 1_000 && made > 500 && refuted > 300, "{compiled} {made} {refuted}");
}

/// As long as an unoptimised build may take for what is bounded, and far less than what is not.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

#[test]
fn hostile_schemas_end_soon() {
    let many = |count: usize, each: &dyn Fn(usize) -> Value| -> Value {
        Value::Object((0..count).map(|number| (format!("p{number}"), each(number))).collect())
    };
    let names = |count: usize| (0..count).map(|number| format!("p{number}")).collect::<Vec<_>>();
    let long = format!("e.g. {}", "'a', 'b' e.g. ".repeat(280));
    let schemas = [
        json!({"required": names(40_000)}),
        json!({"required": names(4_000), "properties": many(4_000, &|_| json!({"$ref": "#/$defs/d"})),
            "$defs": {"d": {"type": "integer", "description": long, "not": {}}}}),
        json!({"required": names(2_000), "dependentSchemas": many(2_000, &|number| json!({"required": [format!("p{}", number + 1)]}))}),
        json!({"properties": many(7_000, &|_| json!({"not": {"type": "string"}})),
            "oneOf": (0..32).map(|number| json!({"required": [format!("p{number}")]})).collect::<Vec<_>>()}),
        json!({"enum": (0..100_000).collect::<Vec<_>>(), "not": {}}),
        json!({"type": "array", "minItems": 256, "items": {"type": "array", "minItems": 256, "items": {"minLength": 16_000}}}),
        json!({"type": "array", "minItems": 256, "uniqueItems": true, "items": {"enum": (0..255).collect::<Vec<_>>()}}),
        json!({"type": "array", "minItems": 250, "uniqueItems": true, "items": {"type": "number", "minimum": 1e17}}),
        json!({"required": names(64), "additionalProperties": {"type": ["string", "integer"], "pattern": "^(a+)+$", "not": {}}}),
        json!({"anyOf": (0..60).map(|_| json!({"anyOf": (0..60).map(|_| json!({"anyOf": [{"type": "null"}, {"not": {}}], "not": {}})).collect::<Vec<_>>()})).collect::<Vec<_>>()}),
        json!({"patternProperties": many(2_000, &|_| json!({})), "required": names(2_000)}),
        json!({"required": ["p0"], "properties": {"p0": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "object",
            "required": ["l", "r"], "properties": {"l": {"$ref": "#/$defs/t"}, "r": {"$ref": "#/$defs/t"}}}}}),
    ];
    for schema in schemas {
        let start = std::time::Instant::now();
        let made = (schema::check(&schema).is_ok(), example(&schema).is_some(), counterexample(&schema).is_some());
        assert!(start.elapsed() < PATIENCE, "{made:?}");
    }
}
