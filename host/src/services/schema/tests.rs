use std::time::{Duration, Instant};

use serde_json::{Map, json};

use super::*;

/// As long as an unoptimised build may take for what is bounded, and far less than what is not.
const PATIENCE: Duration = Duration::from_secs(30);

fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!({"type": "string"}), |inner, _| wrap(inner))
}

/// A schema whose definitions `d0`, `d1`, .. are made from the reference to the next one.
fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut defs: Map<String, Value> = (0..length)
        .map(|number| (format!("d{number}"), link(json!({"$ref": format!("#/$defs/d{}", number + 1)}))))
        .collect();
    defs.insert(format!("d{length}"), json!({"type": "string"}));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

#[test]
fn dialects_are_told_apart() {
    for (schema, compiles) in [
        (json!(true), true),
        (json!(false), true),
        (json!({}), true),
        (json!({"type": "text"}), false),
        (json!({"type": 5}), false),
        (json!({"required": "a"}), false),
        (json!({"pattern": "("}), false),
        (json!({"pattern": "^(?=a)\\p{L}$"}), true),
        (json!("text"), false),
        (json!([]), false),
        (json!(null), false),
        // 2020-12 by default: there, exclusive bounds are numbers and tuples have another name.
        (json!({"exclusiveMinimum": true}), false),
        (json!({"items": [{}]}), false),
        (json!({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true}), true),
        (json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}]}), true),
        (json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "items": [{}]}), true),
        (json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {}}), true),
        (json!({"$schema": "http://json-schema.org/draft-03/schema#"}), false),
        (json!({"$schema": "https://example.com/mine"}), false),
        (json!({"$schema": 7}), false),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}}),
            false,
        ),
    ] {
        assert_eq!(check(&schema).is_ok(), compiles, "{schema}: {:?}", check(&schema));
    }
}

#[test]
fn references_stay_inside() {
    for (schema, compiles) in [
        (json!({"$ref": "https://example.com/schema"}), false),
        (json!({"$ref": "file:///etc/passwd"}), false),
        (json!({"$ref": "other.json"}), false),
        (json!({"$ref": "#/nowhere"}), false),
        (json!({"$ref": "#nowhere"}), false),
        (json!({"$ref": "#/%zz"}), false),
        (json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}), false),
        (json!({"properties": {"a": {"$ref": "#/components/x"}}, "components": {"x": {"type": "string"}}}), true),
        (json!({"properties": {"a": {"$ref": "#/components/x"}}, "components": {"x": {"$ref": "http://a/"}}}), false),
        (json!({"properties": {"$ref": {"type": "string"}}}), true),
        (json!({"enum": [{"$ref": "https://example.com/schema"}]}), true),
        (json!({"$id": "https://a.example/root", "$ref": "https://a.example/root#/$defs/x", "$defs": {"x": {}}}), true),
        (json!({"$id": "http://[", "type": "object"}), false),
        (json!({"$id": 5}), false),
    ] {
        assert_eq!(check(&schema).is_ok(), compiles, "{schema}: {:?}", check(&schema));
    }
}

#[test]
fn embedded_resources_are_followed() {
    let schema = json!({
        "$id": "https://a.example/root",
        "properties": {"a": {"$ref": "item"}, "b": {"$ref": "item#part"}, "c": {"$ref": "urn:x:y#/$defs/z"}},
        "$defs": {
            "i/1": {"$id": "item", "type": "integer", "$defs": {"p": {"$anchor": "part", "type": "string"}}},
            "u": {"$id": "urn:x:y", "$defs": {"z": {"type": "null"}}}
        }
    });
    assert_eq!(validate(&schema, &json!({"a": 1, "b": "x", "c": null})), Ok(()));
    let wrong = validate(&schema, &json!({"a": "x", "b": 1, "c": 1}));
    assert_eq!(wrong, Err(vec!["/a: type".to_owned(), "/b: type".to_owned(), "/c: type".to_owned()]));
}

#[test]
fn errors_name_places_and_keywords_only() {
    let schema = json!({"type": "object", "required": ["id"], "properties": {
        "n": {"type": "integer"}, "when": {"type": "string", "format": "date"}, "list": {"items": {"maxLength": 2}}}});
    let instance = json!({"n": "secret", "when": "secret", "list": ["ok", "secret"]});
    let expected = ["/list/1: maxLength", "/n: type", "/when: format", ": required"].map(str::to_owned);
    assert_eq!(validate(&schema, &instance), Err(expected.to_vec()));
    assert_eq!(validate(&json!({"type": "x"}), &json!(1)).map_err(|lines| lines.len()), Err(1));
    let many: Vec<Value> = (0..1_000).map(|_| json!(1)).collect();
    let lines = validate(&json!({"items": {"type": "string"}}), &json!(many));
    assert_eq!(lines.map_err(|lines| lines.len()), Err(MAX_ERRORS));
    let name = "k".repeat(100_000);
    let lines = validate(&json!({"additionalProperties": {"type": "null"}}), &json!({name: 1}));
    assert!(lines.is_err_and(|lines| lines.iter().all(|line| line.len() < 2 * MAX_PATH)));
}

#[test]
fn schemas_that_go_nowhere_do_not_compile() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"anyOf": [{"type": "string"}, {"$ref": "#"}]}),
        json!({"if": {"$ref": "#"}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        json!({"$dynamicAnchor": "x", "$dynamicRef": "#x"}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "allOf": [{"$recursiveRef": "#"}]}),
        json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"oneOf": [{"$ref": "#/$defs/a"}]}}}),
    ] {
        assert!(check(&schema).is_err(), "{schema}");
    }
    let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}, "all": {"items": {"$ref": "#"}}}});
    assert_eq!(validate(&tree, &json!({"next": {"all": [{}, {"next": {}}]}})), Ok(()));
    assert_eq!(validate(&tree, &json!({"next": {"all": [{}, 1]}})), Err(vec!["/next/all/1: type".to_owned()]));
}

#[test]
fn hostile_schemas_are_refused_or_end_soon() {
    let twice = |reference: Value| json!({"allOf": [reference.clone(), reference]});
    let anchors: Map<String, Value> =
        (0..5_000).map(|number| (format!("d{number}"), json!({"$anchor": format!("a{number}")}))).collect();
    let resources: Map<String, Value> = (0..20)
        .flat_map(|level| {
            ["x", "y"].map(|side| {
                let next = level + 1;
                let both = json!([{"$ref": format!("https://a.example/x{next}")}, {"$ref": format!("https://a.example/y{next}")}]);
                let body = if level == 19 { json!({}) } else { json!({ "properties": {"p": {"anyOf": both}} }) };
                let mut body = body;
                body["$id"] = json!(format!("https://a.example/{side}{level}"));
                (format!("{side}{level}"), body)
            })
        })
        .collect();
    for (name, schema, compiles) in [
        ("long row", chain(200, |next| json!({"allOf": [next]})), false),
        ("fan-out", chain(40, twice), false),
        ("list", chain(5_000, |next| json!({"properties": {"next": next}})), true),
        ("deep", nested(126, |inner| json!({"not": inner})), true),
        ("deeper", nested(130, |inner| json!({"not": inner})), false),
        ("deep and far", chain(9, |next| (0..60).fold(next, |inner, _| json!({"properties": {"p": inner}}))), true),
        ("large", json!({"enum": ["x".repeat(1 << 20)]}), false),
        (
            "wide",
            json!({"properties": (0..12_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect::<Map<_, _>>()}),
            true,
        ),
        ("wider", json!({"anyOf": (0..20_000).map(|_| json!({})).collect::<Vec<_>>()}), false),
        ("long name", json!({"properties": {("k".repeat(500_000)): {"enum": (0..10_000).collect::<Vec<_>>()}}}), false),
        ("large pattern", json!({"pattern": "(a{1000}){1000}"}), false),
        (
            "many patterns",
            json!({"allOf": (0..9_000).map(|n| json!({"pattern": format!("{n}(x{{999}}){{9}}")})).collect::<Vec<_>>()}),
            false,
        ),
        ("nested pattern", json!({"pattern": "(".repeat(300_000)}), false),
        ("anchors", json!({"$defs": anchors}), true),
        ("resources", json!({"$ref": "https://a.example/x0", "$defs": resources}), true),
        ("required", json!({"required": (0..50_000).map(|n| n.to_string()).collect::<Vec<_>>()}), true),
        ("surrogate", json!({"pattern": "^\\ud800$"}), false),
        ("proto", json!({"properties": {"__proto__": {"type": "string"}, "constructor": {}}}), true),
        ("step", json!({"multipleOf": 1e-300}), true),
        ("no step", json!({"multipleOf": 0}), false),
    ] {
        let start = Instant::now();
        let result = check(&schema);
        assert_eq!(result.is_ok(), compiles, "{name}: {result:?}");
        assert!(start.elapsed() < PATIENCE, "{name}");
    }
}

#[test]
fn hostile_pairs_end_soon() {
    let part = json!({"properties": {"a": {"$ref": "#"}}});
    let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
    let letters = "a".repeat(30);
    for (name, schema, instance, expected) in [
        ("doubling", json!({"anyOf": [part, part]}), deep(100), false),
        ("doubling, shallow", json!({"anyOf": [part, part]}), deep(10), true),
        ("deep instance", json!({"properties": {"a": {"$ref": "#"}}}), deep(120), true),
        ("too deep", json!({"properties": {"a": {"$ref": "#"}}}), deep(200), false),
        (
            "rows at each level",
            {
                let mut row = chain(60, |next| json!({"allOf": [next]}));
                row["$defs"]["d60"] = json!({"properties": {"a": {"$ref": "#"}}});
                row
            },
            deep(100),
            true,
        ),
        ("backtracking", json!({"pattern": "^(?:(a+)\\1?)+$"}), json!(format!("{letters}!")), false),
        ("linear", json!({"pattern": "^(a+)+$"}), json!(format!("{letters}!")), false),
        ("long text", json!({"pattern": "^(a|b)*c"}), json!("a".repeat(1 << 20)), false),
        ("unique", json!({"uniqueItems": true}), json!((0..50_000).collect::<Vec<_>>()), true),
        (
            "unique, nested",
            json!({"uniqueItems": true}),
            json!((0..50_000).map(|n| json!({"a": [n]})).collect::<Vec<_>>()),
            true,
        ),
        ("enum", json!({"items": {"enum": (0..5_000).collect::<Vec<_>>()}}), json!(vec![5_001; 50_000]), false),
        ("step", json!({"multipleOf": 1e-300}), json!(1e300), true),
        (
            "unevaluated",
            json!({"unevaluatedProperties": false, "anyOf": [{"properties": {"a": {"$ref": "#"}}}, part]}),
            deep(60),
            false,
        ),
        (
            "large result",
            json!({"items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}}),
            json!((0..200_000).map(|id| json!({"id": id})).collect::<Vec<_>>()),
            true,
        ),
    ] {
        let start = Instant::now();
        let result = validate(&schema, &instance);
        assert_eq!(result.is_ok(), expected, "{name}: {result:?}");
        assert!(start.elapsed() < PATIENCE, "{name}");
    }
}

#[test]
fn many_threads_with_small_stacks_survive() {
    let deep = nested(126, |inner| json!({"not": inner}));
    let row = chain(60, |next| json!({"allOf": [next]}));
    let list = chain(5_000, |next| json!({"properties": {"next": next}}));
    std::thread::scope(|scope| {
        for schema in [&deep, &row, &list] {
            let work = || (check(schema).is_ok(), validate(schema, &json!(1)).is_ok());
            let thread = std::thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, work);
            let ended = thread.map(|thread| thread.join().is_ok_and(|(compiles, _)| compiles));
            assert!(ended.is_ok_and(|compiles| compiles));
        }
    });
}
