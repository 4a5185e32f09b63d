//! The tools, each named after what it does right or wrong. Counts are those of calls with the same arguments on one
//! session, so that cases with different arguments do not disturb each other.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::talk::{Call, lock, updated};
use super::{End, dialogs};
use crate::servers::good::RpcError;

/// A text of more bytes is long.
const LONG: usize = 1_000;

/// One tool.
pub(super) struct Tool {
    name: &'static str,
    about: &'static str,
    /// Bends its entry, which is that of a read-only tool that takes any object.
    shape: fn(&mut Value),
    run: fn(&Call<'_>) -> End,
}

pub(super) const fn tool(name: &'static str, about: &'static str, run: fn(&Call<'_>) -> End) -> Tool {
    Tool { name, about, shape: |_| {}, run }
}

const fn shaped(name: &'static str, about: &'static str, shape: fn(&mut Value), run: fn(&Call<'_>) -> End) -> Tool {
    Tool { name, about, shape, run }
}

const TOOLS: &[Tool] = &[
    shaped(
        "echo",
        "Says what it is told.",
        |entry| {
            entry["inputSchema"]["required"] = json!(["text"]);
            entry["outputSchema"] = promise();
        },
        |call| match call.arguments()["text"].as_str() {
            Some(text) => End::Reply(Ok(json!({
                "content": [{"type": "text", "text": text}],
                "structuredContent": {"text": text},
            }))),
            None => End::error(-32602, "text is missing"),
        },
    ),
    tool("plain", "Succeeds.", |_| End::ok("done")),
    tool("refuse", "Is always refused.", |_| End::error(-32602, "no such item")),
    tool("complain", "Always fails in words.", |_| End::failed("the drill is broken")),
    tool("silent", "Never answers.", |_| End::Silence),
    tool("hang_up", "Ends the connection.", |_| End::Hangup),
    tool("two_blocks", "Says two things.", |_| {
        End::Reply(Ok(json!({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]})))
    }),
    tool("json_text", "Says JSON in words.", |_| End::ok(r#"{"price": 12.0}"#)),
    tool("tally", "Counts its calls.", |call| {
        End::Reply(Ok(json!({
            "content": [{"type": "text", "text": format!("call {}", call.count)}],
            "structuredContent": {"count": call.count, "list": [{"a/b": 1}]},
        })))
    }),
    tool("wear_out", "Succeeds so many times.", |call| {
        if u64::from(call.count) <= call.number("good", 3) { End::ok("done") } else { End::failed("worn out") }
    }),
    tool("pause", "Takes its time.", |call| {
        thread::sleep(Duration::from_millis(call.number("ms", 100)));
        End::ok("done")
    }),
    tool("slow_down", "Takes its time from the second call on.", |call| {
        if call.count > 1 {
            thread::sleep(Duration::from_millis(call.number("ms", 100)));
        }
        End::ok("done")
    }),
    // Errors and retries.
    tool("lasting", "Fails for good and says so.", |_| retryable(-32010, false)),
    tool("passing", "Fails twice and says that a retry helps.", |call| {
        if call.count <= 2 { retryable(-32011, true) } else { End::ok("done") }
    }),
    tool("stuck", "Says that a retry helps, and it does not.", |_| retryable(-32012, true)),
    tool("wavering", "Fails with another code each time.", |call| retryable(-32020 - i64::from(call.count), false)),
    tool("surprising", "Says that no retry helps, and one does.", |call| {
        if call.count == 1 { retryable(-32013, false) } else { End::ok("done") }
    }),
    tool("outspoken", "Says beside its data that no retry helps.", |_| {
        End::Error(json!({"code": -32014, "message": "no", "retryable": false}))
    }),
    tool("two_tongued", "Says both.", |_| {
        End::Error(json!({"code": -32015, "message": "no", "retryable": false, "data": {"retryable": true}}))
    }),
    // Input schemas.
    shaped(
        "list_schema",
        "Wants a list.",
        |entry| entry["inputSchema"] = json!({"type": "array"}),
        |_| End::ok("done"),
    ),
    shaped(
        "hidden_name",
        "Requires what it does not declare.",
        |entry| entry["inputSchema"]["required"] = json!(["secret"]),
        |_| End::ok("done"),
    ),
    shaped(
        "broken_schema",
        "Declares a type that does not exist.",
        |entry| entry["inputSchema"]["properties"]["text"]["type"] = "words".into(),
        |_| End::ok("done"),
    ),
    // Output schemas.
    shaped("forgotten", "Promises and gives nothing.", |entry| entry["outputSchema"] = promise(), |_| End::ok("done")),
    shaped(
        "partial",
        "Leaves out what it promised.",
        |entry| entry["outputSchema"] = promise(),
        |_| End::Reply(Ok(json!({"content": [], "structuredContent": {"other": 1}}))),
    ),
    shaped(
        "mistaken",
        "Gives a number for a promised text.",
        |entry| entry["outputSchema"] = promise(),
        |_| End::Reply(Ok(json!({"content": [], "structuredContent": {"text": 1}}))),
    ),
    shaped(
        "vain_promise",
        "Promises by a schema that is none.",
        |entry| entry["outputSchema"] = json!({"type": "words"}),
        |_| End::Reply(Ok(json!({"content": [], "structuredContent": {"text": "done"}}))),
    ),
    shaped(
        "promise_broken_by_error",
        "Promises and fails.",
        |entry| entry["outputSchema"] = promise(),
        |_| End::failed("no"),
    ),
    // Long arguments.
    tool("swallow", "Takes any text.", |call| End::ok(&format!("{} bytes", call.text("text").len()))),
    tool("strict", "Refuses a long text.", |call| long(call, End::error(-32602, "too long"))),
    tool("grumble", "Complains of a long text.", |call| long(call, End::failed("too long"))),
    tool("unread", "Cannot read a long message.", |call| long(call, End::Unread)),
    tool("too_large", "Refuses a long message.", |call| long(call, End::TooLarge)),
    tool("fragile", "Ends with a long text.", |call| long(call, End::Hangup)),
    tool("mute", "Never answers a long text.", |call| long(call, End::Silence)),
    tool("deaf", "Answers a long text, and no ping after it.", |call| {
        call.session.deaf.store(call.text("text").len() > LONG, Ordering::Relaxed);
        End::ok("done")
    }),
    // Cancellation: the first call succeeds at once, the second works until it is cancelled.
    tool("patient", "Works until it is cancelled, and then stops.", |call| working(call, || End::Silence)),
    tool("closing", "Ends its stream when it is cancelled.", |call| working(call, || End::Closed)),
    tool("polite", "Says that it was cancelled.", |call| working(call, || End::error(-32800, "cancelled"))),
    tool("cross", "Fails when it is cancelled.", |call| working(call, || End::error(-32603, "interrupted"))),
    tool("stubborn", "Is done when it is cancelled.", |call| working(call, || End::ok("done"))),
    tool("hurt", "Is never well again after a cancellation.", |call| {
        if call.count > 2 { End::failed("it still hurts") } else { working(call, || End::Silence) }
    }),
    // Two clients at once.
    tool("first_client", "Serves the client that came first.", |call| {
        if call.session.number == 1 { End::ok("done") } else { End::failed("one client at a time") }
    }),
    tool("late_client", "Serves any client but the one that came first.", |call| {
        if call.session.number > 1 { End::ok("done") } else { End::failed("come again") }
    }),
    // State.
    tool("jam", "Jams the shop and fails.", |call| {
        call.session.jammed.store(true, Ordering::Relaxed);
        End::failed("jammed")
    }),
    tool("unjam", "Makes the shop work again.", |call| {
        call.session.jammed.store(false, Ordering::Relaxed);
        End::ok("done")
    }),
    tool("inspect", "Succeeds if the shop works.", |call| {
        if call.session.jammed.load(Ordering::Relaxed) { End::failed("jammed") } else { End::ok("all well") }
    }),
    // Updates.
    tool("touch", "Changes a resource and tells who subscribed to it.", |call| {
        call.update_later(call.text("uri"), Duration::from_millis(call.number("after_ms", 0)));
        End::ok("done")
    }),
    tool("touch_aloud", "Changes a resource and tells it before it answers.", |call| {
        if lock(&call.session.subscriptions).contains(call.text("uri")) {
            // The client has gone: then it need not be told.
            let _ = (call.line)(&updated(call.text("uri")));
        }
        End::ok("done")
    }),
    // Access.
    shaped(
        "erase",
        "Erases everything for good.",
        |entry| entry["annotations"] = json!({"readOnlyHint": false, "destructiveHint": true}),
        |_| End::ok("gone"),
    ),
    shaped("unmarked", "Says nothing of what it does.", |entry| entry["annotations"] = json!({}), |_| End::ok("done")),
];

fn all() -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().chain(dialogs::TOOLS)
}

/// The entries, in order.
pub(super) fn catalog() -> Vec<Value> {
    all().map(Tool::entry).collect()
}

/// Runs the tool that a call names.
pub(super) fn call(call: &Call<'_>) -> End {
    match all().find(|tool| call.params["name"] == tool.name) {
        Some(tool) => (tool.run)(call),
        None => End::error(-32602, "Unknown tool"),
    }
}

impl Tool {
    fn entry(&self) -> Value {
        let mut entry = json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string", "description": "Words."}}},
            "annotations": {"readOnlyHint": true},
        });
        (self.shape)(&mut entry);
        entry
    }
}

fn promise() -> Value {
    json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
}

fn retryable(code: i64, retryable: bool) -> End {
    End::Reply(Err(RpcError { data: Some(json!({"retryable": retryable})), ..RpcError::new(code, "not now") }))
}

/// That end for a long text, else a success.
fn long(call: &Call<'_>, end: End) -> End {
    if call.text("text").len() > LONG { end } else { End::ok("done") }
}

/// Succeeds at once, but the second time works until it is cancelled and ends like that.
fn working(call: &Call<'_>, end: fn() -> End) -> End {
    if call.count == 2 && call.is_cancelled() { end() } else { End::ok("done") }
}
