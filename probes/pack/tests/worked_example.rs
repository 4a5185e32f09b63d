//! The worked example of the score's definition, through all components of the battery.

use std::cell::Cell;

use mcpeval_probe::testing::{Reply, Run, Script, Sent};
use mcpeval_probe::{Json, Value, json};

const DESCRIPTION: &str = "Says in forty or more characters what the tool is for.";

/// Lengthens the description until the entry's compact JSON has this many bytes.
fn padded(mut entry: Value, bytes: usize) -> Value {
    let missing = bytes - Json::from(&entry).view().compact_len();
    let description = format!("{}{}", entry["description"].as_str().unwrap(), "x".repeat(missing));
    entry["description"] = Value::from(description);
    entry
}

fn catalog() -> Vec<Value> {
    let typed = json!({"type": "string", "description": "Name of the item"});
    vec![
        padded(
            json!({
                "name": "find_item",
                "description": DESCRIPTION,
                "inputSchema": {"type": "object", "properties": {"name": typed}, "required": ["name"]},
                "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": true}
            }),
            3_600,
        ),
        padded(
            json!({
                "name": "get_price",
                "description": DESCRIPTION,
                "inputSchema": {"type": "object", "properties": {"item": {}}, "required": ["item"]},
                "annotations": {"readOnlyHint": true}
            }),
            2_800,
        ),
        padded(json!({"name": "list_stores", "description": DESCRIPTION, "inputSchema": {"type": "object"}}), 2_800),
        padded(
            json!({
                "name": "delete_item",
                "description": DESCRIPTION,
                "inputSchema": {"type": "object", "properties": {"name": {"description": "Name of the item"}}},
                "annotations": {"readOnlyHint": false, "destructiveHint": true}
            }),
            2_000,
        ),
        padded(json!({"name": "bad/name", "description": "", "inputSchema": {"type": "object"}}), 800),
    ]
}

/// The server: no `ping`, prices for anything, the third of them broken.
fn server() -> impl FnMut(&Sent) -> Reply {
    let prices = Cell::new(0);
    move |sent| match (sent.method.as_str(), sent.tool()) {
        ("tools/call", Some("find_item")) => match sent.params["arguments"]["name"].as_str() {
            Some(_) => Reply::result(json!({"content": [], "structuredContent": {"found": true}})).after_ms(140),
            None => Reply::error(-32602, "name is required"),
        },
        ("tools/call", Some("get_price")) => {
            prices.set(prices.get() + 1);
            let reply = if prices.get() == 4 {
                Reply::error(-32603, "out of prices")
            } else {
                Reply::result(json!({"content": []}))
            };
            reply.after_ms(40)
        }
        ("tools/call", _) => Reply::error(-32602, "unknown tool"),
        _ => Reply::error(-32601, "method not found"),
    }
}

fn script() -> Script {
    Script::new(catalog())
        .arguments("find_item", json!({"name": "tea"}))
        .arguments("get_price", json!({"item": "tea"}))
        .on_counterexample(|schema| schema["required"].is_array().then(|| json!({})))
        .on_validate(|_, instance| if instance.is_object() { Ok(()) } else { Err(vec!["type".to_owned()]) })
        .on_request(server())
}

fn rounded(run: &Run, area: &str) -> u32 {
    let score = run.score(area).unwrap();
    (0..=100).find(|whole| f64::from(*whole) >= score - 0.5).unwrap()
}

#[test]
fn the_worked_example_comes_out_exactly() {
    let config = |areas: &[&str]| json!({"areas": areas, "lanes": 4});
    let exercised = ["error-honesty", "reliability", "coverage"];
    let exercise = script().run::<probe_exercise::Exercise>(config(&exercised));
    let protocol = script().run::<probe_protocol::Protocol>(config(&["protocol"]));
    let catalog = script().run::<probe_catalog::Catalog>(config(&["catalog"]));
    let context = script().run::<probe_context::Context>(config(&["context"]));

    let areas = [
        (15, rounded(&protocol, "protocol"), 80),
        (20, rounded(&catalog, "catalog"), 48),
        (15, rounded(&context, "context"), 83),
        (15, rounded(&exercise, "error-honesty"), 50),
        (20, rounded(&exercise, "reliability"), 65),
        (15, rounded(&exercise, "coverage"), 67),
    ];
    for (_, score, expected) in areas {
        assert_eq!(score, expected);
    }
    let total: u32 = areas.iter().map(|(weight, score, _)| weight * score).sum();
    assert_eq!(total, 6_460, "64.6, shown as 65");
    let untimed = exercise.number("score_without_latency").unwrap();
    assert_eq!(untimed.to_string(), "67");
    assert_eq!(
        exercise.scores.iter().find(|(area, ..)| area == "reliability").unwrap().2.unwrap().round().to_string(),
        "67"
    );
    let untimed_total: u32 = areas.iter().map(|(weight, score, _)| weight * score).sum::<u32>() + 20 * (67 - 65);
    assert_eq!(untimed_total, 6_500, "65");

    assert_eq!(context.number("catalog_tokens"), Some(3_000.0));
    assert_eq!(context.number("heaviest_tool_tokens"), Some(900.0));
    assert_eq!(exercise.requests(), 4 + 4 + 3 + 2);
    assert_eq!(protocol.requests(), 3 + 1);
    let run_itself = 1 + 1;
    assert_eq!(run_itself + exercise.requests() + protocol.requests() + catalog.requests() + context.requests(), 19);
}

#[test]
fn the_worked_example_names_its_losses() {
    let run = script().run::<probe_exercise::Exercise>(json!({}));
    let lost: Vec<_> = run.lost().into_iter().map(|(check, tool, reason)| (check, tool.unwrap(), reason)).collect();
    let expected = [
        ("error-honesty.invalid-arguments", "get_price", "honesty-accepted-invalid"),
        ("coverage.exercised", "list_stores", "coverage-unannotated"),
        ("reliability.latency", "find_item", "reliability-slow"),
        ("reliability.success", "get_price", "reliability-call-failed"),
        ("reliability.consistent", "get_price", "reliability-inconsistent"),
        ("reliability.none-exercised", "list_stores", "coverage-unannotated"),
    ];
    assert_eq!(lost, expected.map(|(check, tool, reason)| (check.to_owned(), tool.to_owned(), reason.to_owned())));
    assert_eq!(run.loss("reliability.success", Some("get_price")).unwrap().observed, Some(2));
    assert_eq!(run.loss("reliability.success", Some("get_price")).unwrap().score, Some(67));
    assert_eq!(run.loss("reliability.latency", Some("find_item")).unwrap().score, Some(80));
    for (metric, count) in [
        ("successful_calls", 5.0),
        ("tool_errors", 0.0),
        ("rejected_calls", 0.0),
        ("rpc_errors", 1.0),
        ("transport_errors", 0.0),
        ("untested_tools", 1.0),
        ("exercised", 2.0),
    ] {
        assert_eq!(run.number(metric), Some(count), "{metric}");
    }
    assert_eq!(run.progress, [(0, 2), (1, 2), (2, 2)]);
}
