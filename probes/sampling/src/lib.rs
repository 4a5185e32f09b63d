//! Kind `sampling`: a tool that asks the client's model does so properly, and ends once it was answered.

use mcpeval_probe::judge::{Fields, Inquiry, UNEXPECTED_OUTCOME, integer};
use mcpeval_probe::{Case, Check, Fault, Json, Level, Manifest, Metric, Outcome, Probe, Target, View, json};

const MAX_REQUESTS: &str = "max_requests";

const REQUESTS: &str = "sampling.requests";
const BOUNDED: &str = "sampling.bounded";
const COMPLETES: &str = "sampling.completes";
const OUTCOME: &str = "sampling.outcome";

const INVALID: &str = "sampling-invalid-request";
const FLOOD: &str = "sampling-request-flood";
const STALLED: &str = "sampling-stalled-call";

const INQUIRY: Inquiry = Inquiry {
    capability: "sampling",
    method: "sampling/createMessage",
    checks: &[REQUESTS, BOUNDED, COMPLETES, OUTCOME],
    reasons: [INVALID, FLOOD, STALLED],
};

/// The component of kind `sampling`.
#[derive(Clone, Copy, Debug)]
pub struct Sampling;

fn is_content(content: View<'_>) -> bool {
    let is_block = |block: View<'_>| block.member("type").and_then(View::string).is_some();
    content.items().map_or_else(|| is_block(content), |blocks| blocks.into_iter().all(is_block))
}

fn is_message(message: View<'_>) -> bool {
    let Some([role, content]) = message.pick(["role", "content"]) else { return false };
    role.and_then(View::string).is_some_and(|role| role == "user" || role == "assistant")
        && content.is_some_and(is_content)
}

/// The model's answer to a request, if that is valid.
fn reply(params: View<'_>) -> Option<Json> {
    let [messages, max_tokens] = params.pick(["messages", "maxTokens"])?;
    let messages = messages?.items()?;
    let valid = !messages.is_empty() && messages.into_iter().all(is_message) && max_tokens?.integer()? >= 1;
    valid.then(|| {
        Json::from(json!({
            "role": "assistant",
            "content": {"type": "text", "text": "mcpeval"},
            "model": "mcpeval",
            "stopReason": "endTurn"
        }))
    })
}

impl Probe for Sampling {
    fn manifest() -> Manifest {
        let sampling = "https://modelcontextprotocol.io/specification/2025-11-25/client/sampling";
        let check = |id, level, title| Check::new(id, level, title).reference(sampling);
        Manifest::new("sampling", env!("CARGO_PKG_VERSION"), "A tool asks the client's model properly")
            .summary("Calls a tool on a session that declares sampling, and answers as a client's model would.")
            .config(Fields::new().call().required(MAX_REQUESTS, integer(1, 10)).schema())
            .check(check(REQUESTS, Level::Must, "Sampling requests are valid"))
            .check(check(BOUNDED, Level::Should, "There are at most max_requests of them"))
            .check(check(COMPLETES, Level::Must, "The call ends once they are answered"))
            .check(check(OUTCOME, Level::Should, "The call succeeds"))
            .reason(
                INVALID,
                "The tool sent sampling/createMessage without messages that each have a role (user or assistant) and content \
                 blocks with a type, or without maxTokens of at least 1; send both, clients refuse the rest.",
                &[REQUESTS],
            )
            .reason(
                FLOOD,
                "One call sent more than max_requests sampling requests, which costs the user money and patience; ask once \
                 with all that is needed, and stop asking after an answer that cannot be used.",
                &[BOUNDED],
            )
            .reason(
                STALLED,
                "The tool got an answer from the client's model and its call did not end; match the answer to the request by \
                 its id, also over HTTP, where it comes as a POST of its own, and then answer the call.",
                &[COMPLETES],
            )
            .common_reason(UNEXPECTED_OUTCOME, &[OUTCOME])
            .metric(Metric::number("server_requests", "requests"))
            .needs("client.sampling")
            .asks(2, 1, 2_000)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        INQUIRY.run(target, case, case.number(MAX_REQUESTS)?, false, reply)
    }
}

mcpeval_probe::export!(Sampling);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Cause, IncomingKind, Value};

    use super::*;

    fn script(reply: impl Fn() -> Reply + 'static) -> Script {
        let tool = json!({"name": "sum", "inputSchema": {}, "annotations": {"readOnlyHint": true}});
        Script::new([tool]).on_request(move |_| reply())
    }

    fn run(reply: Reply) -> Run {
        script(move || reply.clone()).run::<Sampling>(json!({"tool": "sum", "max_requests": 2}))
    }

    fn judged(run: &Run) -> Option<String> {
        let outcome = run.outcome.as_ref().unwrap();
        let reason = run.lost().pop().map(|(_, _, reason)| reason);
        assert_eq!((outcome.attempts, outcome.first_failure), (1, reason.as_ref().map(|_| 1)));
        reason
    }

    fn asks_with(params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": params})
    }

    fn asks() -> Value {
        asks_with(&json!({"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 1}))
    }

    fn done() -> Reply {
        Reply::result(json!({"content": []}))
    }

    #[test]
    fn a_proper_question_is_answered_at_once() {
        let run = run(done().after_ms(50).beside(10, IncomingKind::Request, asks()));
        assert_eq!((judged(&run), run.number("server_requests")), (None, Some(1.0)));
        assert_eq!(run.replied[0].outcome.as_ref().unwrap()["content"], json!({"type": "text", "text": "mcpeval"}));
        assert_eq!(run.opened[0].capabilities.as_ref().unwrap().as_str(), r#"{"sampling":{}}"#);
        assert_eq!(run.sent[0].session, 1, "a session of its own");
    }

    #[test]
    fn who_never_asks_passes_and_shows_it() {
        let other = json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"});
        let run = run(done().before(IncomingKind::AnsweredRequest, other));
        assert_eq!((judged(&run), run.number("server_requests")), (None, Some(0.0)));
    }

    #[test]
    fn invalid_questions_are_declined() {
        let message = |message: Value| json!({"messages": [message], "maxTokens": 9});
        for params in [
            json!({}),
            json!({"messages": [], "maxTokens": 9}),
            json!({"messages": {}, "maxTokens": 9}),
            message(json!("hello")),
            message(json!({"content": {"type": "text", "text": "?"}})),
            message(json!({"role": "system", "content": {"type": "text", "text": "?"}})),
            message(json!({"role": "user"})),
            message(json!({"role": "user", "content": "?"})),
            message(json!({"role": "user", "content": [{"text": "?"}]})),
            json!({"messages": asks()["params"]["messages"]}),
            json!({"messages": asks()["params"]["messages"], "maxTokens": 0}),
            json!({"messages": asks()["params"]["messages"], "maxTokens": "9"}),
        ] {
            let run = run(done().before(IncomingKind::Request, asks_with(&params)));
            assert_eq!(judged(&run).as_deref(), Some(INVALID), "{params}");
            assert_eq!(run.replied[0].outcome.as_ref().unwrap_err()["code"], -32602);
        }
        let bare = json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage"});
        assert_eq!(judged(&run(done().before(IncomingKind::Request, bare))).as_deref(), Some(INVALID));
        let blocks = message(json!({"role": "assistant", "content": [{"type": "text", "text": "?"}]}));
        assert_eq!(judged(&run(done().before(IncomingKind::Request, asks_with(&blocks)))), None);
    }

    #[test]
    fn more_questions_than_the_bound_are_a_flood() {
        let many = |count: u32| (0..count).fold(done(), |reply, _| reply.before(IncomingKind::Request, asks()));
        assert_eq!(judged(&run(many(2))), None);
        let flood = run(many(3));
        assert_eq!((judged(&flood).as_deref(), flood.number("server_requests")), (Some(FLOOD), Some(3.0)));
        // As they come before the answer, they count even where it is there already.
        let burst = (0..3).fold(done().after_ms(0), |reply, _| reply.before(IncomingKind::Request, asks()));
        assert_eq!(judged(&run(burst)).as_deref(), Some(FLOOD));
    }

    #[test]
    fn a_call_that_stalls_after_an_answer_fails() {
        for cause in [Cause::TimedOut, Cause::Closed] {
            let stalled = run(Reply::fault(cause).after_ms(9_000).before(IncomingKind::Request, asks()));
            assert_eq!(judged(&stalled).as_deref(), Some(STALLED));
            let silent = run(Reply::fault(cause));
            assert_eq!(silent.outcome.unwrap_err().cause, cause, "nothing was asked");
        }
        let stalls = || Reply::fault(Cause::TimedOut).after_ms(9_000).before(IncomingKind::Request, asks());
        let untaken = script(stalls)
            .on_reply(|_| Err(Cause::Status(400)))
            .run::<Sampling>(json!({"tool": "sum", "max_requests": 2}));
        assert_eq!(untaken.outcome.unwrap_err().cause, Cause::Status(400), "nothing was answered");
    }

    #[test]
    fn the_call_must_succeed() {
        for reply in [Reply::result(json!({"isError": true})), Reply::error(-32603, "no")] {
            assert_eq!(judged(&run(reply.clone())).as_deref(), Some(UNEXPECTED_OUTCOME.label));
            assert_eq!(
                judged(&run(reply.before(IncomingKind::Request, asks()))).as_deref(),
                Some(UNEXPECTED_OUTCOME.label)
            );
        }
        assert_eq!(run(Reply::result(json!([]))).outcome.unwrap_err().cause, Cause::Malformed);
    }

    #[test]
    fn without_a_session_there_is_no_verdict() {
        let script = script(done).on_open(|_| Err(Cause::Handshake));
        let run = script.run::<Sampling>(json!({"tool": "sum", "max_requests": 1}));
        assert_eq!(run.outcome.unwrap_err().cause, Cause::Handshake);
    }
}
