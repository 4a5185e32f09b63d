//! Sins of what is answered, over either transport.

use std::thread;

use serde_json::{Value, json};

use super::good::{Good, Message, Reply, RpcError, SLOW};
use super::{Fixture, Sin};

/// What is answered instead; none leaves it to the good server.
pub type Answer = fn(&Good, &Message) -> Option<Reply>;

const fn fixture(name: &'static str, about: &'static str, answer: Answer) -> Fixture {
    Fixture { name, about, sin: Sin::Answer(answer) }
}

pub(super) const FIXTURES: &[Fixture] = &[
    fixture("unknown-method-answered", "answers every unknown method with an empty result", |_, message| {
        (message.method == "mcpeval/unknown").then(|| Ok(json!({})))
    }),
    fixture("no-ping", "refuses ping", |_, message| {
        (message.method == "ping").then(|| Err(RpcError::new(-32601, "Method not found")))
    }),
    fixture("dies-of-ping", "exits at ping", |_, message| exit_if(message.method == "ping")),
    fixture("dies-of-unknown-method", "exits at a method it does not know", |_, message| {
        exit_if(message.method == "mcpeval/unknown")
    }),
    fixture("dies-of-unknown-tool", "exits at a call of a tool it does not have", |good, message| {
        exit_if(message.method == "tools/call" && good.entry(message.tool()).is_none())
    }),
    fixture("dies-of-revision", "exits at a revision it does not know", |_, message| {
        exit_if(message.params["protocolVersion"] == "2000-01-01")
    }),
    fixture("surface-dies", "declares resources and exits when they are to be listed", |good, message| {
        match message.method.as_str() {
            "initialize" => declare(good, message),
            method => exit_if(method == "resources/list"),
        }
    }),
    fixture("unknown-tool-accepted", "calls a tool that it does not list", |good, message| {
        (message.method == "tools/call" && good.entry(message.tool()).is_none()).then(|| Ok(text("done")))
    }),
    fixture("echoes-unknown-revision", "takes any revision it is offered", |good, message| {
        greet(good, message, str::to_owned)
    }),
    fixture("revision-no-date", "answers an unknown revision with the word latest", |good, message| {
        greet(good, message, |offered| if offered == "2000-01-01" { "latest" } else { offered }.to_owned())
    }),
    fixture("revision-inconsistent", "names a revision and then does not take it", |good, message| {
        greet(good, message, |offered| {
            match offered {
                "2000-01-01" => "2024-11-05",
                _ => "2025-11-25",
            }
            .to_owned()
        })
    }),
    fixture("wrong-revision", "chooses a revision that nobody speaks", |good, message| {
        greet(good, message, |_| "1999-01-01".to_owned())
    }),
    fixture("handshake-declined", "declines initialize without saying what it speaks", |_, message| {
        (message.method == "initialize").then(|| Err(RpcError::new(-32603, "not today")))
    }),
    fixture("handshake-supported", "declines all revisions but one, which it names", |_, message| {
        let offered = &message.params["protocolVersion"];
        (message.method == "initialize" && offered != "2025-06-18").then(|| {
            Err(RpcError {
                code: -32602,
                message: "Unsupported protocol version".to_owned(),
                data: Some(json!({"supported": ["2025-06-18"], "requested": offered})),
            })
        })
    }),
    fixture("surface-no-list", "declares resources and lists them as an object", |good, message| {
        match message.method.as_str() {
            "initialize" => declare(good, message),
            "resources/list" => Some(Ok(json!({"resources": {}}))),
            _ => None,
        }
    }),
    fixture("surface-stalled", "declares resources and never ends their list", |good, message| {
        match message.method.as_str() {
            "initialize" => declare(good, message),
            "resources/list" => Some(Ok(json!({"resources": [], "nextCursor": "again"}))),
            _ => None,
        }
    }),
    fixture("surfaces", "declares resources and lists them rightly, in two pages", |good, message| {
        match message.method.as_str() {
            "initialize" => declare(good, message),
            "resources/list" if message.params["cursor"].is_null() => Some(Ok(json!({
                "resources": [{"uri": "shop://catalog", "name": "catalog"}], "nextCursor": "2",
            }))),
            "resources/list" => Some(Ok(json!({"resources": [{"uri": "shop://terms", "name": "terms"}]}))),
            _ => None,
        }
    }),
    fixture("empty-error", "answers invalid arguments with an error that says nothing", |good, message| {
        invalid(good, message).then(|| Ok(json!({"content": [{"type": "text", "text": " "}], "isError": true})))
    }),
    fixture("wrong-code", "answers invalid arguments with an internal error", |good, message| {
        invalid(good, message).then(|| Err(RpcError::new(-32603, "oops")))
    }),
    fixture("accepts-invalid", "takes arguments that its schema forbids", |good, message| {
        invalid(good, message).then(|| Ok(json!({"content": [], "structuredContent": {"price": 0}})))
    }),
    fixture("honest-tool-error", "answers invalid arguments with a tool error in words", |good, message| {
        invalid(good, message).then(|| {
            Ok(json!({
                "content": [{"type": "text", "text": "item must be a string"}], "isError": true,
            }))
        })
    }),
    fixture("rejects-valid", "refuses arguments that its schema allows", |_, message| {
        (message.tool() == "get_price").then(|| Err(RpcError::new(-32602, "the shop does not know this item")))
    }),
    fixture("always-fails", "answers each valid call with a tool error", |good, message| {
        (valid(good, message)).then(|| {
            Ok(json!({
                "content": [{"type": "text", "text": "the shop is closed"}], "isError": true,
            }))
        })
    }),
    fixture("fails-once", "answers one of three valid calls with a tool error", |_, message| {
        message.last.then(|| Ok(json!({"content": [{"type": "text", "text": "try again"}], "isError": true})))
    }),
    fixture("rpc-error-once", "answers one of three valid calls with an internal error", |_, message| {
        message.last.then(|| Err(RpcError::new(-32603, "oops")))
    }),
    fixture("canary", "nothing is wrong: says one word wherever prose may stand", |good, message| {
        Some(canary(good, message))
    }),
    fixture("slow", "takes more than 100 ms for a call", |good, message| {
        if valid(good, message) {
            thread::sleep(SLOW);
        }
        None
    }),
    fixture("output-broken", "returns structured content that its schema forbids", |good, message| {
        valid(good, message).then(|| Ok(json!({"content": [], "structuredContent": {"price": "a lot"}})))
    }),
    fixture("output-missing", "declares an output schema and returns no structured content", |good, message| {
        valid(good, message).then(|| Ok(text("12.50")))
    }),
    fixture("is-error-no-boolean", "says isError with a string in one answer", |_, message| {
        message.last.then(|| Ok(json!({"content": [], "structuredContent": {"price": 1}, "isError": "false"})))
    }),
    fixture("content-missing", "leaves the content out", |good, message| {
        valid(good, message).then(|| Ok(json!({"structuredContent": {"price": 1}})))
    }),
    fixture("result-no-object", "answers one call with an array as result", |_, message| {
        message.last.then(|| Ok(json!([])))
    }),
    fixture("result-huge", "answers one call with 9 MiB of text", |_, message| {
        message.last.then(|| Ok(text(&"x".repeat(9 << 20))))
    }),
    fixture("dies-of-payload", "exits when a message is larger than 100,000 bytes", |_, message| {
        exit_if(message.size > 100_000)
    }),
    fixture("tools-no-array", "lists its tools as an object", |_, message| {
        (message.method == "tools/list").then(|| Ok(json!({"tools": {}})))
    }),
    fixture("no-tools", "declares no tools and knows no tools/list", |good, message| match message.method.as_str() {
        "initialize" => good.answer(message).ok().map(|mut greeting| {
            greeting["capabilities"] = json!({});
            Ok(greeting)
        }),
        "tools/list" => Some(Err(RpcError::new(-32601, "Method not found"))),
        _ => None,
    }),
    fixture("list-refused", "declares tools and answers tools/list with an error", |_, message| {
        (message.method == "tools/list").then(|| Err(RpcError::new(-32603, "no list today")))
    }),
    fixture("stalled-cursor", "gives the same cursor for ever", |good, message| {
        paged(good, message, |_| Ok(json!({"tools": [], "nextCursor": "again"})), "again")
    }),
    fixture("cursor-cycle", "gives two cursors in turn, for ever", |good, message| {
        paged(
            good,
            message,
            |cursor| Ok(json!({"tools": [], "nextCursor": if cursor == "a" { "b" } else { "a" }})),
            "a",
        )
    }),
    fixture("empty-cursor", "ends its list with an empty cursor", |good, message| {
        paged(good, message, |_| Ok(json!({"tools": []})), "")
    }),
    fixture("page-error", "answers the second page with an error", |good, message| {
        paged(good, message, |_| Err(RpcError::new(-32603, "page lost")), "2")
    }),
];

/// The word that no report may hold.
pub const CANARY: &str = "swordfish-7f3a";

fn canary(good: &Good, message: &Message) -> Reply {
    let mut reply = match message.method.as_str() {
        "resources/list" => Ok(json!({"resources": [{"uri": format!("shop://{CANARY}"), "name": CANARY}]})),
        "prompts/list" => Ok(json!({"prompts": [{"name": CANARY, "arguments": [{"name": CANARY}]}]})),
        "resources/read" => Ok(json!({"contents": [{"uri": format!("shop://{CANARY}"), "text": CANARY}]})),
        "completion/complete" => Ok(json!({"completion": {"values": [CANARY]}})),
        _ => good.answer(message),
    };
    match &mut reply {
        Err(error) => {
            error.message.push_str(CANARY);
            error.data = Some(json!({"detail": CANARY, "supported": [CANARY]}));
        }
        Ok(result) => match message.method.as_str() {
            "initialize" => {
                result["instructions"] = CANARY.into();
                result["serverInfo"]["title"] = CANARY.into();
                result["serverInfo"]["version"] = CANARY.into();
                result["capabilities"]["experimental"] = json!({CANARY: {}});
                result["capabilities"]["resources"] = json!({"subscribe": true});
                result["capabilities"]["prompts"] = json!({});
                result["capabilities"]["completions"] = json!({});
            }
            "tools/list" => {
                for entry in result["tools"].as_array_mut().into_iter().flatten() {
                    let prose = format!("{} {CANARY}", entry["description"].as_str().unwrap_or_default());
                    entry["description"] = prose.into();
                    entry["title"] = CANARY.into();
                    entry["_meta"] = json!({CANARY: CANARY});
                    entry["inputSchema"]["title"] = CANARY.into();
                    entry["inputSchema"]["$comment"] = CANARY.into();
                    entry["outputSchema"]["description"] = CANARY.into();
                }
            }
            "tools/call" => {
                result["content"] = json!([{"type": "text", "text": CANARY}]);
                result["structuredContent"]["canary"] = CANARY.into();
                result["_meta"] = json!({CANARY: CANARY});
            }
            _ => {}
        },
    }
    reply
}

/// A result with one text block.
fn text(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}]})
}

/// Ends the process without an answer, or leaves the answer to the good server.
fn exit_if(fatal: bool) -> Option<Reply> {
    if fatal { std::process::exit(1) } else { None }
}

/// Whether it is a valid call of `get_price`.
fn valid(good: &Good, message: &Message) -> bool {
    message.tool() == "get_price" && good.answer(message).is_ok()
}

/// Whether it is a call of `get_price` with arguments that its schema forbids.
fn invalid(good: &Good, message: &Message) -> bool {
    message.tool() == "get_price" && good.answer(message).is_err()
}

/// The good greeting with another revision.
fn greet(good: &Good, message: &Message, choose: fn(&str) -> String) -> Option<Reply> {
    if message.method != "initialize" {
        return None;
    }
    let mut greeting = good.answer(message).ok()?;
    greeting["protocolVersion"] = choose(message.params["protocolVersion"].as_str()?).into();
    Some(Ok(greeting))
}

/// The good greeting with resources declared.
fn declare(good: &Good, message: &Message) -> Option<Reply> {
    let mut greeting = good.answer(message).ok()?;
    greeting["capabilities"]["resources"] = json!({});
    Some(Ok(greeting))
}

/// The good listing as first page with a cursor, and something else for every later page.
fn paged(good: &Good, message: &Message, later: fn(&str) -> Reply, cursor: &str) -> Option<Reply> {
    if message.method != "tools/list" {
        return None;
    }
    match message.params["cursor"].as_str() {
        Some(given) => Some(later(given)),
        None => good.answer(message).ok().map(|mut page| {
            page["nextCursor"] = cursor.into();
            Ok(page)
        }),
    }
}
