//! A call with a very long string: whether it is answered or refused, and whether the session lives on.

use std::ops::ControlFlow;

use serde_json::Value;

use super::attend::{attend, unread};
use crate::{Answer, Cause, ExchangeId, Fault, Incoming, IncomingKind, Json, Session, Target, View, cited};

/// Codes with which a server that could not read the request refuses it without an id.
const UNREADABLE: [i64; 2] = [-32600, -32700];

/// What became of the call.
#[derive(Clone, Debug, PartialEq)]
pub enum Handling {
    /// It succeeded.
    Done,
    /// It was refused: by an error, a tool error, HTTP 4xx, or an error for no request in particular because none was
    /// read.
    Refused,
    /// No answer, or one that is none.
    Unhandled(Fault),
    /// It was never sent.
    Unsent(Fault),
}

/// What a very long string came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// What became of the call.
    pub handling: Handling,
    /// Whether the session answered a `ping` afterwards; false if none was sent.
    pub alive: bool,
    /// From sending the call to its answer or refusal, in whole milliseconds.
    pub latency_ms: u32,
    /// Requests that were made.
    pub requests: u32,
    /// What to cite.
    pub evidence: Vec<ExchangeId>,
}

/// The parameters of a call with its argument `field` set to `size` times `a`. A payload of megabytes is written once.
pub fn lengthened(params: &Json, field: &str, size: usize) -> Json {
    let [tool, arguments] = params.view().pick(["name", "arguments"]).unwrap_or_default();
    let head = format!(r#"{{"name":{},"arguments":{{"#, tool.map_or("null", View::text));
    let mut text = String::with_capacity(head.len() + params.as_str().len() + field.len() + size + 64);
    text.push_str(&head);
    for (name, value) in arguments.and_then(View::members).unwrap_or_default() {
        if name != field {
            text.push_str(&Value::from(name).to_string());
            text.push(':');
            text.push_str(value.text());
            text.push(',');
        }
    }
    text.push_str(&Value::from(field).to_string());
    text.push_str(":\"");
    text.extend(std::iter::repeat_n('a', size));
    text.push_str("\"}}");
    Json::from_contract(text)
}

/// A refusal that names no request, because the server read none.
fn is_unreadable(message: View<'_>) -> bool {
    let Some([id, error]) = message.pick(["id", "error"]) else { return false };
    let code = error.and_then(|error| error.member("code")).and_then(View::integer);
    id.is_none_or(View::is_null) && code.is_some_and(|code| UNREADABLE.contains(&code))
}

/// Stops at a refusal of the call by an error for no request in particular.
fn refusal(incoming: &Incoming) -> ControlFlow<ExchangeId> {
    let refused = incoming.kind == IncomingKind::StrayReply && is_unreadable(incoming.message.view());
    if refused { ControlFlow::Break(incoming.exchange) } else { ControlFlow::Continue(()) }
}

fn is_client_error(status: u16) -> bool {
    (400..500).contains(&status)
}

/// The handling that an outcome shows.
fn handling(outcome: Result<Answer, Fault>) -> Handling {
    let fault = match outcome {
        Ok(answer) if answer.succeeded() => return Handling::Done,
        Ok(answer) if answer.status.is_some_and(is_client_error) => return Handling::Refused,
        Ok(answer) => match answer.structured() {
            Ok(_) => return Handling::Refused,
            Err(fault) => fault,
        },
        Err(fault) => fault,
    };
    match fault.cause {
        Cause::Status(status) if is_client_error(status) => Handling::Refused,
        Cause::Unreachable => Handling::Unsent(fault),
        _ => Handling::Unhandled(fault),
    }
}

/// Makes the call with a very long string on a session of `target`, and if that was handled, sends `ping` after it.
///
/// # Errors
///
/// A refusal of the host.
pub fn payload(target: &Target, session: &Session, params: &Json) -> Result<Payload, Fault> {
    // What lies there from earlier says nothing about this call.
    let _: ControlFlow<()> = unread(session, |_| Ok(ControlFlow::Continue(())))?;
    let began = target.remaining().millis;
    let outcome = session
        .start("tools/call", params)
        .and_then(|pending| attend(session, &pending, |incoming| Ok(refusal(incoming))));
    let (latency_ms, handling, exchange) = match outcome {
        Ok(ControlFlow::Continue(answer)) => {
            let (latency_ms, exchange) = (answer.elapsed_us / 1000, answer.exchange);
            (latency_ms, handling(Ok(answer)), Some(exchange))
        }
        Ok(ControlFlow::Break(refusal)) => {
            (began.saturating_sub(target.remaining().millis), Handling::Refused, Some(refusal))
        }
        Err(fault) => {
            let fault = fault.unless_refused()?;
            let exchange = fault.exchange;
            // Without a number nothing left this machine.
            let handling = if exchange.is_some() { handling(Err(fault)) } else { Handling::Unsent(fault) };
            (began.saturating_sub(target.remaining().millis), handling, exchange)
        }
    };
    let mut payload =
        Payload { handling, alive: false, latency_ms, requests: 1, evidence: exchange.into_iter().collect() };
    if matches!(payload.handling, Handling::Done | Handling::Refused) {
        let pong = match session.request("ping", ()) {
            Ok(pong) => Ok(pong),
            Err(fault) => Err(fault.unless_refused()?),
        };
        payload.alive = pong.as_ref().map_or_else(Fault::is_reply, |_| true);
        payload.requests = 2;
        payload.evidence.extend(cited(&pong));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{call_params, json};

    #[test]
    fn only_errors_without_id_are_unreadable() {
        let judged = |message: Value| is_unreadable(Json::from(message).view());
        assert!(judged(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "x"}})));
        assert!(judged(json!({"error": {"code": -32600}})));
        assert!(!judged(json!({"id": 7, "error": {"code": -32700}})));
        assert!(!judged(json!({"id": null, "error": {"code": -32603}})));
        assert!(!judged(json!({"id": null, "result": {}})));
    }

    #[test]
    fn a_refusal_of_http_handles_a_payload() {
        let of = |cause| handling(Err(Fault { cause, exchange: None, detail: String::new() }));
        assert_eq!(of(Cause::Status(413)), Handling::Refused);
        assert!(matches!(of(Cause::Status(502)), Handling::Unhandled(_)));
        assert!(matches!(of(Cause::Closed), Handling::Unhandled(_)));
        assert!(matches!(of(Cause::Unreachable), Handling::Unsent(_)), "nothing left this machine");
        let odd = Answer { exchange: 1, elapsed_us: 1, status: Some(413), reply: Ok(Json::from(json!([]))) };
        assert_eq!(handling(Ok(odd)), Handling::Refused);
    }

    #[test]
    fn an_argument_is_replaced_or_added() {
        let lengthened = |arguments: Value, field: &str, size| {
            lengthened(&call_params("t", &Json::from(arguments)), field, size).parse().unwrap()
        };
        assert_eq!(
            lengthened(json!({"q": "x", "n": 1}), "q", 2),
            json!({"name": "t", "arguments": {"q": "aa", "n": 1}})
        );
        assert_eq!(lengthened(json!({}), "q\"", 3), json!({"name": "t", "arguments": {"q\"": "aaa"}}));
    }
}
