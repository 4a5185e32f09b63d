use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::{Access, Draft, Manifest, schema};
use crate::error::Result;
use crate::notation::Notation;
use crate::probes;
use crate::report::tests_support;
use crate::services::schema::validate;

fn kind(name: &str, access: probes::Access, config: &Value) -> probes::Manifest {
    let mut manifest = tests_support::manifest(name, &[]);
    manifest.access = access;
    manifest.config_schema = config.to_string();
    manifest
}

fn kinds() -> Vec<probes::Manifest> {
    let call = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["tool", "attempts"],
        "properties": {
            "tool": {"type": "string", "format": "tool"},
            "arguments": {"type": "object"},
            "attempts": {"type": "integer", "minimum": 1, "maximum": 20},
            "mood": {"enum": ["calm", "brisk"]},
            "pattern": {"anyOf": [
                {"type": "string", "format": "linear-regex"},
                {"type": "array", "items": {"type": "string", "format": "linear-regex"}}
            ]},
            "shape": {"format": "json-schema"},
            "names": {"type": "array", "uniqueItems": true, "minItems": 1, "items": {"type": "string"}}
        },
        "allOf": [{"if": {"properties": {"mood": {"const": "calm"}}, "required": ["mood"]}, "then": {"properties": {"names": false}}}]
    });
    let steps = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["steps"],
        "properties": {"steps": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/step"}}},
        "$defs": {"step": {
            "type": "object",
            "additionalProperties": false,
            "required": ["tool"],
            "properties": {"tool": {"type": "string", "format": "tool"}, "note": {"type": "string"}}
        }}
    });
    vec![
        kind("call", probes::Access::MayMutate, &call),
        kind("steps", probes::Access::ReadOnly, &steps),
        kind("bare", probes::Access::ReadOnly, &json!({"type": "object"})),
    ]
}

fn read(text: &str, notation: Notation) -> Result<Manifest> {
    let kinds = kinds();
    let kinds: BTreeMap<String, &probes::Manifest> = kinds.iter().map(|kind| (kind.kind.clone(), kind)).collect();
    Draft::parse("m", text.to_owned(), notation, Path::new("folder"))?.check(&kinds)
}

/// A manifest of one case in flow style, on lines of their own.
fn case(fields: &str) -> String {
    format!("version: 1\nsandboxes: {{box: {{description: a place}}}}\nprobes:\n- {{{fields}}}\n")
}

#[test]
fn a_case_is_read_with_its_tools_and_without_its_nulls() {
    let manifest = read(
        "version: 1\ntimeout_ms: null\nsandboxes:\n  box: {description: a place}\nprobes:\n\
         - {probe: call, id: a, access: mutating, sandbox: box, tool: search, attempts: 3, mood: null, arguments: {q: null}}\n\
         - {probe: steps, id: b, access: read_only, sandbox: null, steps: [{tool: one, note: null}, {tool: two}]}\n",
        Notation::Yaml,
    )
    .unwrap();
    assert_eq!(manifest.timeout.as_millis(), 30_000);
    let [a, b] = manifest.cases.as_slice() else { panic!("two cases") };
    assert_eq!(
        serde_json::from_str::<Value>(&a.config).unwrap(),
        json!({"tool": "search", "attempts": 3, "arguments": {"q": null}})
    );
    assert_eq!(
        (a.access, a.sandbox.as_deref(), a.tool.as_deref(), a.line),
        (Access::Mutating, Some("box"), Some("search"), 6)
    );
    assert_eq!(a.tools[0].place, "m:6:62: /probes/0/tool");
    assert_eq!(serde_json::from_str::<Value>(&b.config).unwrap(), json!({"steps": [{"tool": "one"}, {"tool": "two"}]}));
    assert_eq!((b.tool.as_deref(), b.tools.len()), (None, 2));
    assert_eq!(manifest.lines()["b"], 7);
}

#[test]
fn every_mistake_has_its_place_and_its_sentence_and_quotes_no_value() {
    let good = "probe: call, id: a, access: read_only, tool: t, attempts: 1";
    let rows: &[(&str, &str)] = &[
        (
            "probe: cal, id: a, access: read_only",
            "m:4:11: /probes/0/probe: there is no kind of this name; the nearest is \"call\"; known kinds: bare, call, steps",
        ),
        ("probe: call, id: 9x, access: read_only, tool: t, attempts: 1", "/probes/0/id: must be an identifier"),
        ("probe: call, id: a, tool: t, attempts: 1", "m:4:3: /probes/0: the field \"access\" is missing"),
        (
            "probe: call, id: a, access: readonly, tool: t, attempts: 1",
            "/probes/0/access: must be \"read_only\" or \"mutating\"; the nearest is \"read_only\"",
        ),
        (
            "probe: call, id: a, access: read_only, sandbox: box, tool: t, attempts: 1",
            "/probes/0/sandbox: a read_only case names no sandbox",
        ),
        ("probe: call, id: a, access: mutating, tool: t, attempts: 1", "/probes/0: a mutating case names the sandbox"),
        (
            "probe: call, id: a, access: mutating, sandbox: boxx, tool: t, attempts: 1",
            "/probes/0/sandbox: the manifest declares no sandbox of this name; the nearest is \"box\"",
        ),
        ("probe: bare, id: a, access: mutating, sandbox: box", "/probes/0/access: cases of this kind are read_only"),
        ("probe: bare, id: a, access: read_only, extra: 1", "/probes/0/extra: unknown field"),
        (
            "probe: call, id: a, access: read_only, tool: t, attemps: 1",
            "m:4:61: /probes/0/attemps: unknown field; the nearest is \"attempts\"",
        ),
        ("probe: call, id: a, access: read_only, attempts: 1", "/probes/0: the field \"tool\" is missing"),
        ("probe: call, id: a, access: read_only, tool: null, attempts: 1", "/probes/0/tool: must be a string"),
        (
            "probe: call, id: a, access: read_only, tool: t, attempts: 21",
            "/probes/0/attempts: must be an integer from 1 to 20",
        ),
        (
            "probe: call, id: a, access: read_only, tool: t, attempts: s3cret",
            "/probes/0/attempts: must be an integer from 1 to 20",
        ),
        ("probe: call, id: a, access: read_only, tool: s3 cret, attempts: 1", "/probes/0/tool: must be a tool's name"),
        (
            "probe: call, id: a, access: read_only, tool: t, attempts: 1, mood: s3cret",
            "/probes/0/mood: must be \"calm\" or \"brisk\"",
        ),
        (
            "probe: call, id: a, access: read_only, tool: t, attempts: 1, pattern: '(?=s3cret)'",
            "/probes/0/pattern: the pattern is no regular expression without look-around",
        ),
        (
            "probe: call, id: a, access: read_only, tool: t, attempts: 1, pattern: [a, '(']",
            "/probes/0/pattern/1: the pattern is no regular",
        ),
        (
            "probe: call, id: a, access: read_only, tool: t, attempts: 1, shape: {type: s3cret}",
            "/probes/0/shape: the schema is not valid",
        ),
        (
            "probe: call, id: a, access: read_only, tool: t, attempts: 1, names: [a, a]",
            "/probes/0/names: no element may stand twice",
        ),
        (
            "probe: call, id: a, access: read_only, tool: t, attempts: 1, names: []",
            "/probes/0/names: must be at least 1 elements long",
        ),
        (
            "probe: call, id: a, access: read_only, tool: t, attempts: 1, mood: calm, names: [a]",
            "/probes/0/names: does not go with the fields beside it",
        ),
        (
            "probe: steps, id: a, access: read_only, steps: [{tool: t}, {tool: t, nte: x}]",
            "/probes/0/steps/1/nte: unknown field; the nearest is \"note\"",
        ),
        (
            "probe: steps, id: a, access: read_only, steps: [{tool: t}, {}]",
            "/probes/0/steps/1: the field \"tool\" is missing",
        ),
    ];
    read(&case(good), Notation::Yaml).unwrap();
    for (fields, words) in rows {
        let fault = read(&case(fields), Notation::Yaml).expect_err(fields).to_string();
        assert!(fault.contains(words) && !fault.contains("cret"), "{fields}\n  gives {fault}\n  not {words}");
        assert!(fault.starts_with("m:"), "{fault}");
    }
}

#[test]
fn mistakes_outside_of_cases_are_found_too() {
    let rows: &[(&str, &str)] = &[
        ("version: 2\nprobes: [{}]", "m:1:10: /version: must be 1"),
        ("version: 1\nprobes: []", "/probes: must hold at least one case"),
        ("version: 1", "the field \"probes\" is missing"),
        ("version: 1\nprobe: []", "m:2:8: /probe: unknown field; the nearest is \"probes\""),
        ("version: 1\ntimeout_ms: 99\nprobes: [{}]", "/timeout_ms: must be an integer from 100 to 600000"),
        ("version: 1\nsandboxes: {'1': {description: x}}\nprobes: [{}]", "/sandboxes/1: its key must be an identifier"),
        ("version: 1\nsandboxes: {a: {}}\nprobes: [{}]", "the field \"description\" is missing"),
        (
            "version: 1\ncomponents: {call: {path: x, sha256: x}}\nprobes: [{}]",
            "/components/call: its key must be a kind of the form vendor.name",
        ),
        (
            "version: 1\ncomponents: {acme.x: {path: x, sha256: x}}\nprobes: [{}]",
            "/components/acme.x/sha256: must be a SHA-256",
        ),
        (
            "version: 1\nprobes:\n- {probe: bare, id: a, access: read_only}\n- {probe: bare, id: a, access: read_only}",
            "m:4:21: /probes/1/id: another case has this id, on line 3",
        ),
        ("version: 1\nversion: 1\nprobes: [{}]", "m:2:1: /version: this key stands twice"),
        ("version: 1\n---\nversion: 1", "m:3:1: the document: a second document begins here"),
        ("version: !!int 1\nprobes: !custom [{}]", "m:"),
        (
            "a: &a [x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\ne: [*d, *d, *d, *d, *d, *d]",
            "aliases expand to too many",
        ),
    ];
    for (text, words) in rows {
        let fault = read(text, Notation::Yaml).expect_err(text).to_string();
        assert!(fault.contains(words), "{text}\n  gives {fault}\n  not {words}");
    }
}

#[test]
fn the_schema_of_manifests_agrees_with_the_reader() {
    let kinds = kinds();
    let schema = schema::schema(&kinds.iter().collect::<Vec<_>>());
    let agree = |fields: &str, good: bool| {
        let text = case(fields);
        let value =
            crate::notation::Document::parse("m", text.as_str(), Notation::Yaml).unwrap().root().node().to_value();
        assert_eq!(validate(&schema, &value).is_ok(), good, "the schema on {fields}");
        assert_eq!(read(&text, Notation::Yaml).is_ok(), good, "the reader on {fields}");
    };
    for good in [
        "probe: call, id: a, access: read_only, sandbox: null, tool: t, attempts: 1, mood: null",
        "probe: call, id: a, access: mutating, sandbox: box, tool: t, attempts: 1, pattern: [a]",
        "probe: steps, id: a, access: read_only, steps: [{tool: t, note: null}, {tool: t}]",
        "probe: bare, id: a, access: read_only",
    ] {
        agree(good, true);
    }
    for bad in [
        "probe: none, id: a, access: read_only",
        "probe: call, id: a, access: read_only, tool: t",
        "probe: call, id: a, access: read_only, tool: null, attempts: 1",
        "probe: call, id: a, access: mutating, tool: t, attempts: 1",
        "probe: call, id: a, access: read_only, sandbox: box, tool: t, attempts: 1",
        "probe: bare, id: a, access: read_only, other: 1",
        "probe: bare, id: a, access: mutating, sandbox: box",
        "probe: steps, id: a, access: read_only, steps: [{tool: t}, {tool: t, other: x}]",
        "probe: call, id: a, access: read_only, tool: t, attempts: 1, mood: calm, names: [a]",
    ] {
        agree(bad, false);
    }
}
