//! A call with a very long string: whether it is answered or refused, and whether the session lives on.

use std::ops::ControlFlow;

use serde_json::Value;

use super::attend::{attend, unread};
use crate::{Answer, CallClass, Cause, ExchangeId, Fault, Incoming, IncomingKind, Json, Session, View};

/// Codes with which a server that could not read the request refuses it without an id.
const UNREADABLE: [i64; 2] = [-32600, -32700];

/// What became of the call.
#[derive(Clone, Debug, PartialEq)]
pub enum Handling {
    /// It succeeded, in this many microseconds.
    Done(u32),
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
    /// Requests that were made.
    pub requests: u32,
    /// What to cite.
    pub evidence: Vec<ExchangeId>,
}

/// The parameters of a call of `tool` with these arguments, one of them set to `size` times `a`. A payload of megabytes
/// is written once.
pub fn long_params(tool: &str, arguments: View<'_>, field: &str, size: usize) -> Json {
    let head = format!(r#"{{"name":{},"arguments":{{"#, Value::from(tool));
    let mut text = String::with_capacity(head.len() + arguments.text().len() + field.len() + size + 64);
    text.push_str(&head);
    for (name, value) in arguments.members().unwrap_or_default() {
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

fn is_client_error(status: u16) -> bool {
    (400..500).contains(&status)
}

/// The handling that an outcome shows.
fn handling(outcome: Result<Answer, Fault>) -> Handling {
    let class = CallClass::of(&outcome);
    match outcome {
        Ok(answer) if class == CallClass::Success => Handling::Done(answer.elapsed_us),
        Ok(answer) if class.is_structured() || answer.status.is_some_and(is_client_error) => Handling::Refused,
        Ok(answer) => Handling::Unhandled(Fault {
            cause: Cause::Malformed,
            exchange: Some(answer.exchange),
            detail: "the answer to the long call is no result of a call".to_owned(),
        }),
        Err(fault) => match fault.cause {
            Cause::Status(status) if is_client_error(status) => Handling::Refused,
            Cause::Unreachable => Handling::Unsent(fault),
            _ => Handling::Unhandled(fault),
        },
    }
}

/// Makes the call with a very long string, and if that was handled, sends `ping` on the same session.
///
/// # Errors
///
/// A refusal of the host.
pub fn payload(session: &Session, params: &Json) -> Result<Payload, Fault> {
    // What lies there from earlier says nothing about this call.
    let _: ControlFlow<()> = unread(session, |_| Ok(ControlFlow::Continue(())))?;
    let pending = match session.start("tools/call", params) {
        Ok(pending) => pending,
        Err(fault) => {
            let fault = fault.unless_refused()?;
            let evidence = fault.exchange.into_iter().collect();
            return Ok(Payload { handling: Handling::Unsent(fault), alive: false, requests: 1, evidence });
        }
    };
    let unreadable = |incoming: Incoming| {
        let refused = incoming.kind == IncomingKind::StrayReply && is_unreadable(incoming.message.view());
        Ok(if refused { ControlFlow::Break(incoming.exchange) } else { ControlFlow::Continue(()) })
    };
    let (handling, answered) = match attend(session, &pending, unreadable) {
        Ok(ControlFlow::Break(exchange)) => (Handling::Refused, Some(exchange)),
        Ok(ControlFlow::Continue(answer)) => {
            let exchange = answer.exchange;
            (handling(Ok(answer)), Some(exchange))
        }
        Err(fault) => {
            let fault = fault.unless_refused()?;
            let exchange = fault.exchange;
            (handling(Err(fault)), exchange)
        }
    };
    drop(pending);
    let mut evidence: Vec<ExchangeId> = answered.into_iter().collect();
    if matches!(handling, Handling::Unhandled(_) | Handling::Unsent(_)) {
        return Ok(Payload { handling, alive: false, requests: 1, evidence });
    }
    let (alive, pong) = match session.request("ping", ()) {
        Ok(answer) => (true, Some(answer.exchange)),
        Err(fault) => {
            let fault = fault.unless_refused()?;
            (fault.is_reply(), fault.exchange)
        }
    };
    evidence.extend(pong);
    Ok(Payload { handling, alive, requests: 2, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

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
        let params = |arguments: Value, field: &str, size| {
            long_params("t", Json::from(arguments).view(), field, size).parse().unwrap()
        };
        assert_eq!(params(json!({"q": "x", "n": 1}), "q", 2), json!({"name": "t", "arguments": {"q": "aa", "n": 1}}));
        assert_eq!(params(json!({}), "q", 3), json!({"name": "t", "arguments": {"q": "aaa"}}));
    }
}
