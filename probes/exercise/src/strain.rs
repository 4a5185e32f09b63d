//! After the trials: two sessions at once, and a very long string.

use mcpeval_probe::{
    Answer, CallClass, Cause, ExchangeId, Fault, IncomingKind, Json, Options, Pending, Session, Target, Value, View,
};

use crate::judge::{Strain, Tried};
use crate::lanes::unless_refused;
use crate::manifest::{CONTENTION, PAYLOAD, WAS_SKIPPED};
use crate::surface::{Standing, Tool, with_argument};
use crate::trial::{REPEATS, Trial};

/// Characters of the long string.
const PAYLOAD_SIZE: usize = 1_000_000;
/// One wait for messages that answer nothing, in milliseconds; it ends early when the answer is there.
const LISTEN_MS: u32 = 1_000;
/// Messages left over from earlier that are set aside before the long string is sent; the host keeps no more.
const MAX_LEFTOVER: usize = 128;
/// Codes with which a server that could not read the request refuses it without an id.
const UNREADABLE: [i64; 2] = [-32600, -32700];

/// Runs both steps. `tools` are those of the surface, as `tried` names them.
pub(crate) fn strains(
    target: &Target,
    tools: &[Tool],
    tried: &[Tried],
    requests: &mut u32,
) -> Result<Vec<Strain>, Fault> {
    if tried.iter().any(|tried| tried.standing == Standing::Skipped) {
        let skipped = |check| Strain { check, subject: None, lost: Some(WAS_SKIPPED), evidence: Vec::new() };
        return Ok(vec![skipped(CONTENTION), skipped(PAYLOAD)]);
    }
    let params = |tried: &Tried| {
        let trial = tried.trial.as_ref().filter(|trial| trial.successes() == REPEATS);
        trial.and_then(Trial::valid).cloned()
    };
    let mut steady = tools.iter().zip(tried).filter_map(|(tool, tried)| Some((tool, params(tried)?))).peekable();
    let mut strains = Vec::new();
    if let Some((tool, params)) = steady.peek() {
        let (held, evidence) = contention(target, params, requests)?;
        let lost = (!held).then_some("reliability-contention-failed");
        strains.push(Strain { check: CONTENTION, subject: Some(tool.name.clone()), lost, evidence });
    }
    let long = Json::from(Value::from("a".repeat(PAYLOAD_SIZE)));
    for (tool, params) in steady {
        let Some(property) = tool.string_property(target) else { continue };
        let Some(params) = with_argument(&params, &property, &long) else { continue };
        let (held, evidence) = payload(target, &params, requests)?;
        let lost = (!held).then_some("reliability-payload-unhandled");
        strains.push(Strain { check: PAYLOAD, subject: Some(tool.name.clone()), lost, evidence });
        break;
    }
    Ok(strains)
}

/// A fault that is the server's; a refusal ends the run.
fn kept<T>(outcome: Result<T, Fault>) -> Result<Result<T, Fault>, Fault> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(fault) => Ok(Err(unless_refused(fault)?)),
    }
}

/// Waits until the request is over, one way or the other.
fn settle(pending: &Pending) -> Result<Answer, Fault> {
    loop {
        if let Some(answer) = pending.wait(LISTEN_MS)? {
            return Ok(answer);
        }
    }
}

fn exchange(outcome: &Result<Answer, Fault>) -> Option<ExchangeId> {
    match outcome {
        Ok(answer) => Some(answer.exchange),
        Err(fault) => fault.exchange,
    }
}

/// One call on each of two sessions, started together.
fn contention(target: &Target, params: &Json, requests: &mut u32) -> Result<(bool, Vec<ExchangeId>), Fault> {
    let failed = |fault: Fault| Ok((false, fault.exchange.into_iter().collect()));
    *requests += 1;
    let second = match kept(target.open(Options::default()))? {
        Ok(session) => session,
        Err(fault) => return failed(fault),
    };
    let first = match kept(target.primary())? {
        Ok(session) => session,
        Err(fault) => return failed(fault),
    };
    *requests += 2;
    let started = [&first, &second].map(|session| session.start("tools/call", params));
    let mut held = true;
    let mut evidence = Vec::new();
    for pending in started {
        let outcome = kept(pending.and_then(|pending| settle(&pending)))?;
        held &= CallClass::of(&outcome) == CallClass::Success;
        evidence.extend(exchange(&outcome));
    }
    Ok((held, evidence))
}

/// A refusal that names no request, because the server read none.
fn is_unreadable(message: View<'_>) -> bool {
    let Some([id, error]) = message.pick(["id", "error"]) else { return false };
    let code = error.and_then(|error| error.member("code")).and_then(View::integer);
    id.is_none_or(View::is_null) && code.is_some_and(|code| UNREADABLE.contains(&code))
}

/// What a very long request came to: whether it was answered or refused in the protocol's terms.
fn is_handled(outcome: &Result<Answer, Fault>) -> bool {
    match outcome {
        Ok(answer) => CallClass::of(outcome).is_structured() || answer.status.is_some_and(is_client_error),
        Err(fault) => matches!(fault.cause, Cause::Status(status) if is_client_error(status)),
    }
}

fn is_client_error(status: u16) -> bool {
    (400..500).contains(&status)
}

/// Waits for the answer or for a refusal without id.
fn listen(session: &Session, pending: &Pending) -> Result<(bool, Option<ExchangeId>), Fault> {
    loop {
        // A server may go on sending: the request's own end is looked for after every message.
        let incoming = kept(session.receive(LISTEN_MS))?;
        if let Ok(Some(incoming)) = &incoming
            && incoming.kind == IncomingKind::StrayReply
            && is_unreadable(incoming.message.view())
        {
            return Ok((true, Some(incoming.exchange)));
        }
        let outcome = match kept(pending.wait(0))? {
            Ok(Some(answer)) => Ok(answer),
            Err(fault) => Err(fault),
            Ok(None) => match incoming {
                Ok(_) => continue,
                Err(fault) => Err(fault),
            },
        };
        return Ok((is_handled(&outcome), exchange(&outcome)));
    }
}

/// A call with a very long string, then `ping` on the same session.
fn payload(target: &Target, params: &Json, requests: &mut u32) -> Result<(bool, Vec<ExchangeId>), Fault> {
    let failed = |fault: Fault| Ok((false, fault.exchange.into_iter().collect()));
    let session = match kept(target.primary())? {
        Ok(session) => session,
        Err(fault) => return failed(fault),
    };
    for _ in 0..MAX_LEFTOVER {
        if !matches!(kept(session.receive(0))?, Ok(Some(_))) {
            break;
        }
    }
    *requests += 1;
    let pending = match kept(session.start("tools/call", params))? {
        Ok(pending) => pending,
        Err(fault) => return failed(fault),
    };
    let (handled, answered) = listen(&session, &pending)?;
    drop(pending);
    let mut evidence: Vec<ExchangeId> = answered.into_iter().collect();
    if !handled {
        return Ok((false, evidence));
    }
    *requests += 1;
    let pong = kept(session.request("ping", ()))?;
    let alive = match &pong {
        Ok(_) => true,
        Err(fault) => fault.is_reply(),
    };
    evidence.extend(exchange(&pong));
    Ok((alive, evidence))
}

#[cfg(test)]
mod tests {
    use mcpeval_probe::json;

    use super::*;

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
        let fault = |cause| Err(Fault { cause, exchange: None, detail: String::new() });
        assert!(is_handled(&fault(Cause::Status(413))));
        assert!(!is_handled(&fault(Cause::Status(502))));
        assert!(!is_handled(&fault(Cause::Closed)));
    }
}
