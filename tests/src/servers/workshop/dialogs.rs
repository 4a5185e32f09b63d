//! The tools that ask their client, and need the answer before they can finish.

use serde_json::{Value, json};

use super::End;
use super::talk::{Call, lock};
use super::tools::{Tool, tool};

pub(super) const TOOLS: &[Tool] = &[
    tool("ask_model", "Asks the model so many times.", |call| ask_model(call, &good_prompt())),
    tool("ask_no_messages", "Asks the model nothing.", |call| {
        ask_model(call, &json!({"messages": [], "maxTokens": 10}))
    }),
    tool("ask_no_tokens", "Asks the model for an answer of no length.", |call| {
        ask_model(call, &json!({"messages": good_prompt()["messages"], "maxTokens": 0}))
    }),
    tool("ask_and_stall", "Asks the model and never answers.", |call| {
        ask_model(call, &good_prompt());
        End::Silence
    }),
    tool("ask_and_fail", "Asks the model and fails all the same.", |call| {
        ask_model(call, &good_prompt());
        End::failed("it does not help")
    }),
    tool("ask_user", "Asks the user to fill in a form.", |call| ask_user(call, &good_form())),
    tool("ask_by_url", "Sends the user to a page.", |call| {
        ask_user(
            call,
            &json!({"mode": "url", "message": "Sign in.", "url": "https://example.com", "elicitationId": "1"}),
        )
    }),
    tool("ask_nested", "Asks the user for an object in a form.", |call| {
        let schema = json!({"type": "object", "properties": {"box": {"type": "object"}}});
        ask_user(call, &json!({"message": "Which box?", "requestedSchema": schema}))
    }),
    tool("ask_wordless", "Shows the user a form without a word.", |call| {
        ask_user(call, &json!({"requestedSchema": good_form()["requestedSchema"]}))
    }),
    tool("ask_user_and_stall", "Asks the user and never answers.", |call| {
        ask_user(call, &good_form());
        End::Silence
    }),
    tool("ask_user_and_fail", "Asks the user and fails all the same.", |call| {
        ask_user(call, &good_form());
        End::failed("it does not help")
    }),
    tool("ask_user_or_refuse", "Is refused unless the user accepts.", |call| {
        match ask(call, "elicitation", &good_form()) {
            Some(answer) if answer["result"]["action"] == "accept" => End::ok("done"),
            _ => End::error(-32603, "the user declined"),
        }
    }),
];

fn good_prompt() -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": "Name a tool."}});
    json!({"messages": [message], "maxTokens": 20})
}

fn good_form() -> Value {
    json!({
        "message": "Which item, and how many?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "item": {"type": "string", "minLength": 2},
                "count": {"type": "integer", "minimum": 3, "maximum": 5},
                "gift": {"type": "boolean"},
                "color": {"type": "string", "enum": ["red", "blue"]},
            },
            "required": ["item", "count", "color"],
        },
    })
}

/// Asks once, if the client says that it can be asked.
fn ask(call: &Call<'_>, capability: &str, params: &Value) -> Option<Value> {
    lock(&call.session.capabilities).get(capability)?;
    call.ask(if capability == "sampling" { "sampling/createMessage" } else { "elicitation/create" }, params)
}

/// Asks the model `times` times and says its last answer.
fn ask_model(call: &Call<'_>, params: &Value) -> End {
    let mut last = None;
    for _ in 0..call.number("times", 1) {
        last = ask(call, "sampling", params);
        if last.is_none() {
            return End::failed("there is no model to ask");
        }
    }
    let result = last.map(|answer| answer["result"].clone()).unwrap_or_default();
    match (result["role"].as_str(), result["content"]["text"].as_str()) {
        (Some("assistant"), Some(text)) => End::ok(text),
        _ => End::failed("that was no answer"),
    }
}

/// Asks the user `times` times. Declined or cancelled, the tool fails in words.
fn ask_user(call: &Call<'_>, params: &Value) -> End {
    for _ in 0..call.number("times", 1) {
        let Some(answer) = ask(call, "elicitation", params) else {
            return End::failed("there is no user to ask");
        };
        let result = &answer["result"];
        if result["action"] != "accept" {
            return End::failed("the user did not want to");
        }
        let content = &result["content"];
        let item = content["item"].as_str().is_some_and(|item| item.chars().count() >= 2);
        let count = content["count"].as_i64().is_some_and(|count| (3..=5).contains(&count));
        let color = content["color"] == "red" || content["color"] == "blue";
        if !(item && count && color) {
            return End::failed("the form is not filled in");
        }
    }
    End::ok("done")
}
