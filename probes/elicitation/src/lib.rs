//! Kind `elicitation`: a tool that asks the user does so with a form that can be filled in, and ends once it was answered.

use mcpeval_probe::judge::{Fields, Inquiry, UNEXPECTED_OUTCOME, integer};
use mcpeval_probe::{Case, Check, Fault, Json, Level, Manifest, Metric, Outcome, Probe, Target, View, json, schema};

const MAX_REQUESTS: &str = "max_requests";
const RESPOND: &str = "respond";
const ACCEPT: &str = "accept";

const REQUESTS: &str = "elicitation.requests";
const BOUNDED: &str = "elicitation.bounded";
const COMPLETES: &str = "elicitation.completes";
const OUTCOME: &str = "elicitation.outcome";

const INVALID: &str = "elicitation-invalid-request";
const FLOOD: &str = "elicitation-request-flood";
const STALLED: &str = "elicitation-stalled-call";

const INQUIRY: Inquiry = Inquiry {
    capability: "elicitation",
    method: "elicitation/create",
    checks: &[REQUESTS, BOUNDED, COMPLETES, OUTCOME],
    reasons: [INVALID, FLOOD, STALLED],
};

/// The component of kind `elicitation`.
#[derive(Clone, Copy, Debug)]
pub struct Elicitation;

fn is_type(schema: View<'_>, name: &str) -> bool {
    schema.member("type").and_then(View::string).is_some_and(|kind| kind == name)
}

/// A choice of several strings, the one array that a form may have.
fn is_selection(property: View<'_>) -> bool {
    let Some(items) = property.member("items") else { return false };
    let Some([values, options]) = items.pick(["enum", "anyOf"]) else { return false };
    let values = values.and_then(View::items).unwrap_or_default();
    let options = options.and_then(View::items).unwrap_or_default();
    let mut choices =
        values.into_iter().map(Some).chain(options.into_iter().map(|option| option.member("const"))).peekable();
    choices.peek().is_some() && choices.all(|choice| choice.and_then(View::string).is_some())
}

fn is_primitive(property: View<'_>) -> bool {
    ["string", "number", "integer", "boolean"].into_iter().any(|name| is_type(property, name))
        || (is_type(property, "array") && is_selection(property))
}

/// The schema of the form that a request shows, if the request is valid.
fn form(params: View<'_>) -> Option<View<'_>> {
    let [mode, message, requested] = params.pick(["mode", "message", "requestedSchema"])?;
    message?.string()?;
    let requested = requested?;
    let properties = requested.member("properties")?.members()?;
    let valid = mode.is_none_or(|mode| mode.string().is_some_and(|mode| mode == "form"))
        && is_type(requested, "object")
        && properties.into_iter().all(|(_, property)| is_primitive(property))
        && schema::check(requested.text()).is_ok();
    valid.then_some(requested)
}

/// What the user answers to a request, if that is valid. A form that cannot be filled in is not.
fn reply(params: View<'_>, action: &str) -> Option<Json> {
    let form = form(params)?;
    if action == ACCEPT {
        let content = schema::example(form.text())?;
        return Json::read(format!(r#"{{"action":"accept","content":{content}}}"#));
    }
    Some(Json::from(json!({"action": action})))
}

impl Probe for Elicitation {
    fn manifest() -> Manifest {
        let elicitation = "https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation";
        let check = |id, level, title| Check::new(id, level, title).reference(elicitation);
        let config = Fields::new()
            .call()
            .required(MAX_REQUESTS, integer(1, 10))
            .required(RESPOND, json!({"enum": [ACCEPT, "decline", "cancel"]}));
        Manifest::new("elicitation", env!("CARGO_PKG_VERSION"), "A tool asks the user properly")
            .summary("Calls a tool on a session that declares elicitation, and answers its forms as a user would.")
            .config(config.schema())
            .check(check(REQUESTS, Level::Must, "Elicitation requests are valid"))
            .check(check(BOUNDED, Level::Should, "There are at most max_requests of them"))
            .check(check(COMPLETES, Level::Must, "The call ends once they are answered"))
            .check(check(OUTCOME, Level::Should, "The call comes out well"))
            .reason(
                INVALID,
                "The tool sent elicitation/create without a message, in a mode other than form, or with a requestedSchema \
                 that is no object schema of string, number, integer, boolean or choice properties, or that no answer can \
                 satisfy; flatten the form to such fields.",
                &[REQUESTS],
            )
            .reason(
                FLOOD,
                "One call asked the user more than max_requests times; ask once for all fields, and take decline and cancel \
                 as an answer in place of asking again.",
                &[BOUNDED],
            )
            .reason(
                STALLED,
                "The user answered and the call did not end; match the answer to the request by its id, also over HTTP, where \
                 it comes as a POST of its own, and end the call after decline and cancel as well.",
                &[COMPLETES],
            )
            .common_reason(UNEXPECTED_OUTCOME, &[OUTCOME])
            .metric(Metric::number("server_requests", "requests"))
            .needs("client.elicitation")
            .asks(2, 1, 2_000)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let action = case.string(RESPOND)?;
        let may_fail = action != ACCEPT;
        INQUIRY.run(target, case, case.number(MAX_REQUESTS)?, may_fail, |params| reply(params, &action))
    }
}

mcpeval_probe::export!(Elicitation);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Cause, IncomingKind, Value};

    use super::*;

    fn run_as(respond: &str, reply: Reply) -> Run {
        let tool = json!({"name": "pick", "inputSchema": {}, "annotations": {"readOnlyHint": true}});
        Script::new([tool])
            .on_request(move |_| reply.clone())
            .on_example(|schema| (schema["properties"]["never"].is_null()).then(|| json!({"color": "x"})))
            .on_check(|schema| if schema["required"] == 7 { Err("required".to_owned()) } else { Ok(()) })
            .run::<Elicitation>(json!({"tool": "pick", "max_requests": 1, "respond": respond}))
    }

    fn judged(run: &Run) -> Option<String> {
        let outcome = run.outcome.as_ref().unwrap();
        let reason = run.lost().pop().map(|(_, _, reason)| reason);
        assert_eq!((outcome.attempts, outcome.first_failure), (1, reason.as_ref().map(|_| 1)));
        reason
    }

    fn asks_with(params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": params})
    }

    fn form_of(properties: &Value) -> Value {
        json!({"message": "Which?", "requestedSchema": {"type": "object", "properties": properties}})
    }

    fn asks() -> Value {
        asks_with(&form_of(&json!({"color": {"type": "string"}})))
    }

    fn done() -> Reply {
        Reply::result(json!({"content": []}))
    }

    #[test]
    fn the_user_answers_as_the_case_says() {
        for (respond, answer) in [
            ("accept", json!({"action": "accept", "content": {"color": "x"}})),
            ("decline", json!({"action": "decline"})),
            ("cancel", json!({"action": "cancel"})),
        ] {
            let run = run_as(respond, done().before(IncomingKind::Request, asks()));
            assert_eq!((judged(&run), run.number("server_requests")), (None, Some(1.0)));
            assert_eq!(run.replied[0].outcome, Ok(answer));
            assert_eq!(run.opened[0].capabilities.as_ref().unwrap().as_str(), r#"{"elicitation":{}}"#);
        }
    }

    #[test]
    fn primitive_fields_are_valid() {
        for properties in [
            json!({}),
            json!({"a": {"type": "number"}, "b": {"type": "integer"}, "c": {"type": "boolean"}}),
            json!({"a": {"type": "string", "enum": ["x"], "enumNames": ["X"]}}),
            json!({"a": {"type": "string", "oneOf": [{"const": "x", "title": "X"}]}}),
            json!({"a": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}}}),
            json!({"a": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}}}),
        ] {
            let run = run_as("accept", done().before(IncomingKind::Request, asks_with(&form_of(&properties))));
            assert_eq!(judged(&run), None, "{properties}");
        }
        let mut explicit = form_of(&json!({}));
        explicit["mode"] = json!("form");
        assert_eq!(judged(&run_as("accept", done().before(IncomingKind::Request, asks_with(&explicit)))), None);
    }

    #[test]
    fn invalid_questions_are_declined() {
        let requested = |schema: Value| json!({"message": "Which?", "requestedSchema": schema});
        for params in [
            json!({}),
            json!({"requestedSchema": {"type": "object", "properties": {}}}),
            json!({"message": 7, "requestedSchema": {"type": "object", "properties": {}}}),
            json!({"message": "Which?"}),
            requested(json!({"type": "string"})),
            requested(json!({"type": "object"})),
            requested(json!({"properties": {}})),
            requested(json!({"type": "object", "properties": {}, "required": 7})),
            form_of(&json!({"a": {"type": "object", "properties": {}}})),
            form_of(&json!({"a": {"type": "array", "items": {"type": "string"}}})),
            form_of(&json!({"a": {"type": "array", "items": {"enum": [1]}}})),
            form_of(&json!({"a": {"type": "array"}})),
            form_of(&json!({"a": {}})),
            form_of(&json!({"a": true})),
            json!({"mode": "url", "message": "Go", "url": "https://example.com", "elicitationId": "1"}),
        ] {
            for respond in ["accept", "cancel"] {
                let run = run_as(respond, done().before(IncomingKind::Request, asks_with(&params)));
                assert_eq!(judged(&run).as_deref(), Some(INVALID), "{params}");
                assert_eq!(run.replied[0].outcome.as_ref().unwrap_err()["code"], -32602);
            }
        }
    }

    #[test]
    fn a_form_that_cannot_be_filled_in_is_invalid() {
        let never = asks_with(&form_of(&json!({"never": {"type": "string"}})));
        let accepted = run_as("accept", done().before(IncomingKind::Request, never.clone()));
        assert_eq!(judged(&accepted).as_deref(), Some(INVALID));
        assert_eq!(judged(&run_as("decline", done().before(IncomingKind::Request, never))), None);
    }

    #[test]
    fn more_questions_than_the_bound_are_a_flood() {
        let twice = done().before(IncomingKind::Request, asks()).before(IncomingKind::Request, asks());
        let run = run_as("accept", twice);
        assert_eq!((judged(&run).as_deref(), run.number("server_requests")), (Some(FLOOD), Some(2.0)));
    }

    #[test]
    fn a_call_that_stalls_after_an_answer_fails() {
        let stalls = Reply::fault(Cause::TimedOut).after_ms(9_000).before(IncomingKind::Request, asks());
        assert_eq!(judged(&run_as("cancel", stalls)).as_deref(), Some(STALLED));
        assert_eq!(run_as("cancel", Reply::fault(Cause::Closed)).outcome.unwrap_err().cause, Cause::Closed);
    }

    #[test]
    fn a_tool_error_is_fine_after_no() {
        let failed = || Reply::result(json!({"isError": true, "content": []}));
        let asked = |reply: Reply| reply.before(IncomingKind::Request, asks());
        assert_eq!(judged(&run_as("decline", asked(failed()))), None);
        assert_eq!(judged(&run_as("cancel", asked(failed()))), None);
        for (respond, reply) in [
            ("accept", asked(failed())),
            ("decline", failed()),
            ("decline", asked(Reply::error(-32603, "no"))),
            ("accept", Reply::error(-32603, "no")),
        ] {
            assert_eq!(judged(&run_as(respond, reply)).as_deref(), Some(UNEXPECTED_OUTCOME.label), "{respond}");
        }
    }

    #[test]
    fn who_never_asks_passes_and_shows_it() {
        let run = run_as("accept", done());
        assert_eq!((judged(&run), run.number("server_requests")), (None, Some(0.0)));
    }
}
