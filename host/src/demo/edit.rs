//! What each fault changes in the messages of a good server.

use rmcp::ErrorData;
use rmcp::model::{ErrorCode, JsonObject};
use serde_json::{Value, json};

use super::faults::Fault;
use super::handler;
use super::tools::{self, Tool};

/// Padding that makes a catalog too heavy while each of its tools stays within bounds, in characters.
const BLOAT_CHARS: usize = 1_200;
/// Padding that makes one tool too heavy while its catalog stays within bounds, in characters.
const HEAVY_CHARS: usize = 1_700;
/// Values of a completion that floods; the protocol allows 100.
const FLOOD_VALUES: usize = 150;
/// Calls of `list_notes` that a session takes before it fails; more than a battery makes.
const ENDURANCE: u32 = 12;
/// A revision that never existed.
const DRIFTED: &str = "2024-10-07";
/// The revision a drifting server falls back to in the end.
const SETTLED: &str = "2025-11-25";

/// A call of a listed tool.
pub(super) struct Call {
    pub(super) tool: &'static Tool,
    /// Whether the arguments satisfy the schema that the good server lists.
    pub(super) valid: bool,
    /// How many valid calls of this tool the session has seen, with this one.
    pub(super) nth: u32,
}

/// A request that awaits its reply.
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) call: Option<Call>,
    /// Whether this session came before all others that are open.
    pub(super) seated: bool,
}

impl Asked {
    fn param(&self, pointer: &str) -> Option<&str> {
        self.params.pointer(pointer).and_then(Value::as_str)
    }
}

/// Result or error of a request.
pub(super) type Reply = Result<Value, ErrorData>;

/// The reply of a server with that fault, given the good one.
pub(super) fn reply(fault: Fault, asked: &Asked, reply: Reply) -> Reply {
    match (asked.method.as_str(), fault) {
        ("initialize", _) => reply.map(|result| negotiate(fault, asked, result)),
        ("tools/list", _) => reply.map(|result| list(fault, asked, result)),
        ("tools/call", _) => match &asked.call {
            Some(call) => answer(fault, asked, call, reply),
            None if fault == Fault::UnknownTool => Ok(json!({"content": [{"type": "text", "text": "Done."}]})),
            None => reply,
        },
        ("ping", Fault::Ping) => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "No such method.", None)),
        ("resources/list", Fault::Surface) => Ok(json!({"resources": {}})),
        ("prompts/list", Fault::SurfaceCursor) => reply.map(|mut result| {
            result["nextCursor"] = json!("again");
            result
        }),
        ("resources/read", Fault::Unreadable) => Err(ErrorData::internal_error("The shelf is locked.", None)),
        ("resources/subscribe", Fault::SubscriptionRejected) => {
            Err(ErrorData::invalid_request("Subscriptions are not taken today.", None))
        }
        ("completion/complete", Fault::Completion) => {
            let values: Vec<String> = (1..=FLOOD_VALUES).map(|value| value.to_string()).collect();
            Ok(json!({"completion": {"values": values}}))
        }
        ("completion/complete", Fault::CompletionUnknown) => {
            let name = asked.param("/argument/name").unwrap_or_default();
            Err(ErrorData::invalid_params(format!("There is no argument {name} to complete."), None))
        }
        (_, Fault::UnknownMethod) => reply.or_else(|error| match error.code {
            ErrorCode::METHOD_NOT_FOUND => Ok(json!({})),
            _ => Err(error),
        }),
        _ => reply,
    }
}

fn negotiate(fault: Fault, asked: &Asked, mut result: Value) -> Value {
    let offered = asked.param("/protocolVersion").unwrap_or_default();
    if result.get("protocolVersion").is_some_and(|agreed| agreed != offered) {
        match fault {
            Fault::Negotiation => result["protocolVersion"] = json!(offered),
            Fault::NegotiationWord => result["protocolVersion"] = json!("latest"),
            Fault::NegotiationDrift => {
                result["protocolVersion"] = json!(if offered == DRIFTED { SETTLED } else { DRIFTED });
            }
            _ => {}
        }
    }
    result
}

fn list(fault: Fault, asked: &Asked, mut result: Value) -> Value {
    let cursor = asked.param("/cursor");
    match fault {
        Fault::NoTools => return json!({"tools": []}),
        Fault::StalledCursor if result.get("nextCursor").is_none_or(Value::is_null) => {
            result["nextCursor"] = json!(cursor);
        }
        _ => {}
    }
    if let Some(entries) = result.get_mut("tools").and_then(Value::as_array_mut) {
        let second = handler::cursor(tools::PAGE);
        if fault == Fault::DuplicatePage && cursor == Some(second.as_str()) {
            let repeated = tools::TOOLS.get(tools::PAGE - 1).and_then(|tool| serde_json::to_value(tool.entry()).ok());
            entries.splice(0..0, repeated);
        }
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            edit_entry(fault, entry);
        }
    }
    result
}

fn edit_entry(fault: Fault, entry: &mut JsonObject) {
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    match (fault, name.as_str()) {
        (Fault::Bloated, _) => pad(entry, BLOAT_CHARS),
        (Fault::HeavyTool, "word_stats") => pad(entry, HEAVY_CHARS),
        (Fault::WritersOnly, _) => {
            entry.insert("annotations".to_owned(), json!({"readOnlyHint": false, "destructiveHint": false}));
        }
        (Fault::Shapeless, _) => {
            entry.insert("inputSchema".to_owned(), json!({"type": "object"}));
        }
        (Fault::Schema, "add") => remove(entry, "inputSchema", "", "type"),
        (Fault::InvalidEntry, "add") => drop(entry.remove("inputSchema")),
        (Fault::InvalidName, "add") => {
            entry.insert("name".to_owned(), json!("add numbers"));
        }
        (Fault::UncompilableSchema, "add") => {
            entry.insert("inputSchema".to_owned(), json!({"type": "objekt"}));
        }
        (Fault::ShortDescription, "word_stats") => {
            entry.insert("description".to_owned(), json!("Counts words."));
        }
        (Fault::Untyped, "word_stats") => remove(entry, "inputSchema", "/properties/text", "type"),
        (Fault::Undescribed, "word_stats") => remove(entry, "inputSchema", "/properties/text", "description"),
        (Fault::NoOutputSchema, "word_stats") => drop(entry.remove("outputSchema")),
        (Fault::Unannotated, "word_stats") => drop(entry.remove("annotations")),
        (Fault::ReadOnlyUndeclared, "delete_note") => remove(entry, "annotations", "", "readOnlyHint"),
        (Fault::DestructiveUndeclared, "write_note") => remove(entry, "annotations", "", "destructiveHint"),
        (Fault::Unsynthesizable, "wait") => {
            let bounds = entry.get_mut("inputSchema").and_then(|schema| schema.pointer_mut("/properties/milliseconds"));
            if let Some(Value::Object(bounds)) = bounds {
                bounds.insert("minimum".to_owned(), json!(20));
                bounds.insert("maximum".to_owned(), json!(10));
            }
        }
        _ => {}
    }
}

/// Removes a key of an object inside a member of the entry.
fn remove(entry: &mut JsonObject, member: &str, pointer: &str, key: &str) {
    if let Some(Value::Object(place)) = entry.get_mut(member).and_then(|member| member.pointer_mut(pointer)) {
        place.remove(key);
    }
}

fn pad(entry: &mut JsonObject, chars: usize) {
    const FILLER: &str = " It does so with great care and says so at length.";
    if let Some(Value::String(description)) = entry.get_mut("description") {
        description.extend(FILLER.chars().cycle().take(chars));
    }
}

fn answer(fault: Fault, asked: &Asked, call: &Call, reply: Reply) -> Reply {
    if !call.valid {
        return match fault {
            Fault::EmptyError => Ok(json!({"content": [], "isError": true})),
            Fault::WrongCode => Err(ErrorData::internal_error("Something went wrong.", None)),
            Fault::LyingErrors => reply.map(|mut result| {
                result["isError"] = json!(false);
                result
            }),
            _ => reply,
        };
    }
    match (fault, call.tool.name) {
        (Fault::Contention, _) if !asked.seated => Ok(failure("Another session came first; end it.")),
        (Fault::Flaky, "word_stats") if call.nth % 3 == 2 => Ok(failure("Out of ink; call again.")),
        (Fault::Failing, "word_stats") => Ok(failure("Out of ink.")),
        (Fault::Degradation, "list_notes") if call.nth > ENDURANCE => Ok(failure("Tired.")),
        (Fault::Recovery, "read_snapshot") if asked.param("/arguments/which") == Some("stale") => {
            Ok(failure("The snapshot is stale."))
        }
        (Fault::Rejecting, "word_stats") => Err(ErrorData::invalid_params("The text is not to my taste.", None)),
        (Fault::OutputSchema, "word_stats") => structured(reply, |content| {
            content.insert("words".to_owned(), json!("several"));
        }),
        (Fault::OutputField, "word_stats") => structured(reply, |content| drop(content.remove("longest"))),
        (Fault::OutputMissing, "word_stats") => reply.map(|mut result| {
            if let Some(result) = result.as_object_mut() {
                result.remove("structuredContent");
            }
            result
        }),
        (Fault::Fidelity, "add") => structured(reply, |content| {
            let sum = content.get("sum").and_then(Value::as_f64).unwrap_or_default();
            content.insert("sum".to_owned(), json!(sum + 1.0));
        }),
        (Fault::UnstableErrors, "poll_job") => reply.map_err(|mut error| {
            error.code.0 -= i32::from(call.nth.is_multiple_of(2));
            error
        }),
        (Fault::Retryability, "poll_job") => reply.map_err(|mut error| {
            if let Some(Value::Bool(retryable)) = error.data.as_mut().and_then(|data| data.get_mut("retryable")) {
                *retryable = !*retryable;
            }
            error
        }),
        _ => reply,
    }
}

/// Changes the structured content of a result, and its text to match.
fn structured(reply: Reply, change: impl FnOnce(&mut JsonObject)) -> Reply {
    reply.map(|mut result| {
        if let Some(Value::Object(content)) = result.get_mut("structuredContent") {
            change(content);
            let text = Value::Object(content.clone()).to_string();
            result["content"] = json!([{"type": "text", "text": text}]);
        }
        result
    })
}

fn failure(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

/// Changes what the server asks its client.
pub(super) fn question(fault: Fault, method: &str, params: &mut Value) {
    match (fault, method) {
        (Fault::Sampling, "sampling/createMessage") => params["messages"] = json!([]),
        (Fault::Elicitation, "elicitation/create") => {
            params["requestedSchema"] = json!({
                "type": "object",
                "properties": {"color": {"type": "object", "properties": {"red": {"type": "integer"}}}},
                "required": ["color"],
            });
        }
        _ => {}
    }
}

/// Whether this question is asked over and over.
pub(super) fn floods(fault: Fault, method: &str) -> bool {
    matches!(
        (fault, method),
        (Fault::SamplingFlood, "sampling/createMessage") | (Fault::ElicitationFlood, "elicitation/create")
    )
}
