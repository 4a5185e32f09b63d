//! Everything that is no tool: the greeting, lists, resources, completions.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::talk::{Call, lock};
use super::{End, tools};
use crate::servers::good::REVISIONS;

/// How soon after a subscription the clock strikes.
const CLOCK: Duration = Duration::from_millis(200);

/// What ends a request.
pub(super) fn answer(method: &str, call: &Call<'_>) -> End {
    match method {
        "initialize" => greet(call),
        "ping" if call.session.deaf.swap(false, Ordering::Relaxed) => End::Silence,
        "ping" => End::Reply(Ok(json!({}))),
        "tools/list" => End::Reply(Ok(json!({"tools": tools::catalog()}))),
        "tools/call" => tools::call(call),
        "completion/complete" => complete(call.params),
        "resources/list" => End::Reply(Ok(json!({
            "resources": [{"uri": "shop://clock", "name": "clock"}, {"uri": "shop://shelf", "name": "shelf"}],
        }))),
        "prompts/list" => End::Reply(Ok(json!({"prompts": [{"name": "review"}]}))),
        "resources/read" => read(call.params),
        "resources/subscribe" => subscribe(call),
        "resources/unsubscribe" => unsubscribe(call),
        _ => End::error(-32601, "Method not found"),
    }
}

fn greet(call: &Call<'_>) -> End {
    call.session.capabilities.lock().map(|mut known| *known = call.params["capabilities"].clone()).unwrap_or_default();
    let offered = call.params["protocolVersion"].as_str().unwrap_or_default();
    let revision = if REVISIONS.contains(&offered) { offered } else { REVISIONS[0] };
    End::Reply(Ok(json!({
        "protocolVersion": revision,
        "capabilities": {"tools": {}, "completions": {}, "prompts": {}, "resources": {"subscribe": true}},
        "serverInfo": {"name": "workshop", "version": "1.0.0"},
    })))
}

fn uri(params: &Value) -> &str {
    params["uri"].as_str().unwrap_or_default()
}

fn read(params: &Value) -> End {
    match uri(params) {
        "shop://missing" => End::error(-32002, "Resource not found"),
        "shop://empty" => End::Reply(Ok(json!({}))),
        uri => End::Reply(Ok(json!({"contents": [{"uri": uri, "text": "twelve"}]}))),
    }
}

fn subscribe(call: &Call<'_>) -> End {
    let uri = uri(call.params);
    if uri == "shop://locked" {
        return End::error(-32603, "no subscriptions here");
    }
    lock(&call.session.subscriptions).insert(uri.to_owned());
    if uri == "shop://clock" {
        call.update_later(uri, CLOCK);
    }
    End::Reply(Ok(json!({})))
}

fn unsubscribe(call: &Call<'_>) -> End {
    let uri = uri(call.params);
    if uri == "shop://sticky" {
        return End::error(-32603, "it does not come off");
    }
    lock(&call.session.subscriptions).remove(uri);
    End::Reply(Ok(json!({})))
}

fn complete(params: &Value) -> End {
    let values = |values: Value| End::Reply(Ok(json!({"completion": {"values": values}})));
    let argument = &params["argument"];
    match argument["name"].as_str().unwrap_or_default() {
        "language" if params["ref"]["name"] == "review" => values(json!(["ruby", "rust"])),
        "item" if params["ref"]["uri"] == "shop://items/{item}" => values(json!(["saw"])),
        "flood" => values((0..11).map(|number| number.to_string()).collect()),
        "numbers" => values(json!([1, 2])),
        "nothing" => End::Reply(Ok(json!({"completion": {}}))),
        "mute" => End::Silence,
        "topic" => End::error(-32602, "no argument topic"),
        _ => End::error(-32602, "Invalid params"),
    }
}
