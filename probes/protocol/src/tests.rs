use mcpeval_probe::testing::{Reply, Run, Script, Sent};
use mcpeval_probe::{Cause, Value};

use super::*;

/// Answers as a good server does.
fn good(sent: &Sent) -> Reply {
    match sent.method.as_str() {
        "ping" => Reply::result(json!({})),
        "tools/call" => Reply::error(-32602, "Unknown tool"),
        "resources/list" => Reply::result(json!({"resources": []})),
        "prompts/list" => Reply::result(json!({"prompts": []})),
        _ => Reply::error(-32601, "Method not found"),
    }
}

fn run(script: Script) -> Run {
    script.run::<Protocol>(json!({"areas": ["protocol"], "lanes": 4}))
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

fn reasons(run: &Run) -> Vec<(String, String)> {
    run.lost().into_iter().map(|(check, _, reason)| (check, reason)).collect()
}

#[test]
fn a_good_server_passes_everything_in_order() {
    let greeting =
        json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}, "prompts": {}}});
    let run = run(Script::new([tool("a"), tool("b")]).http().greeting(greeting).on_request(good));
    assert_eq!(run.lost(), []);
    assert_eq!(run.score("protocol"), Some(100.0));
    assert_eq!(run.methods(), ["mcpeval/unknown", "ping", "tools/call", "resources/list", "prompts/list"]);
    assert_eq!(run.requests(), 6);
    let checks: Vec<_> = run.findings.iter().map(|finding| finding.check.as_str()).collect();
    assert_eq!(checks, [UNKNOWN_METHOD, PING, UNKNOWN_TOOL, PAGINATION, SURFACES, NEGOTIATION, NOTIFICATION_STATUS]);
}

#[test]
fn what_does_not_apply_does_not_count() {
    let run = run(Script::new([tool("a")]).stateless().on_request(good));
    assert_eq!(run.findings.len(), 4, "neither surfaces, negotiation nor notifications");
    assert_eq!(run.requests(), 3);
}

/// A server that differs from the good one in one method.
fn but(method: &'static str, reply: impl Fn() -> Reply + 'static) -> Script {
    Script::new([tool("a")]).on_request(move |sent| if sent.method == method { reply() } else { good(sent) })
}

#[test]
fn each_sin_costs_its_check() {
    for (script, check, reason) in [
        (but("mcpeval/unknown", || Reply::result(json!({}))), UNKNOWN_METHOD, "protocol-unknown-method-answered"),
        (but("mcpeval/unknown", || Reply::error(-32600, "no")), UNKNOWN_METHOD, "protocol-unknown-method-answered"),
        (but("ping", || Reply::error(-32601, "no")), PING, "protocol-ping-failed"),
        (but("ping", || Reply::result(json!("pong"))), PING, "protocol-ping-failed"),
        (but("tools/call", || Reply::result(json!({"content": []}))), UNKNOWN_TOOL, "protocol-unknown-tool-accepted"),
        (but("tools/call", || Reply::result(json!({"isError": 1}))), UNKNOWN_TOOL, CALL_FAILED),
        (but("ping", || Reply::fault(Cause::Malformed)), PING, CALL_FAILED),
        (Script::new([tool("a"), tool("a")]).on_request(good), PAGINATION, "protocol-pagination-invalid"),
        (Script::new([tool("a/b"), tool("a/b")]).on_request(good), PAGINATION, "protocol-pagination-invalid"),
        (
            Script::new([tool("a")]).on_request(good).listing_fault(Cause::TimedOut),
            PAGINATION,
            "protocol-pagination-invalid",
        ),
        (Script::new([]).on_request(good).on_greet(|_| Reply::fault(Cause::Closed)), NEGOTIATION, CALL_FAILED),
    ] {
        let run = run(script);
        assert_eq!(reasons(&run), [(check.to_owned(), reason.to_owned())]);
        assert_eq!(run.score("protocol"), Some(80.0));
    }
}

#[test]
fn tool_errors_for_an_unknown_tool_are_fine() {
    assert_eq!(run(but("tools/call", || Reply::result(json!({"isError": true})))).lost(), []);
}

#[test]
fn odd_acknowledgements_are_lost_over_http_only() {
    let script = || Script::new([tool("a")]).on_request(good).odd_acks(1);
    assert_eq!(reasons(&run(script().http())), [(NOTIFICATION_STATUS.into(), "protocol-notification-status".into())]);
    assert_eq!(run(script()).lost(), []);
}

#[test]
fn a_broken_surface_names_the_first_loss() {
    let greeting = || json!({"protocolVersion": "2025-11-25", "capabilities": {"resources": {}, "prompts": {}}});
    let bad = run(but("resources/list", || Reply::result(json!({"items": []}))).greeting(greeting()));
    assert_eq!(reasons(&bad), [(SURFACES.into(), "protocol-surface-invalid".into())]);
    assert_eq!(bad.methods().last(), Some(&"prompts/list"), "the other surface is still listed");
    let silent = run(but("prompts/list", || Reply::fault(Cause::TimedOut)).greeting(greeting()));
    assert_eq!(reasons(&silent), [(SURFACES.into(), CALL_FAILED.into())]);
}

#[test]
fn an_endless_surface_is_followed_a_thousand_pages() {
    let mut page = 0;
    let greeting = json!({"protocolVersion": "2025-11-25", "capabilities": {"prompts": {}}});
    let script = Script::new([tool("a")]).greeting(greeting).on_request(move |sent| {
        if sent.method != "prompts/list" {
            return good(sent);
        }
        page += 1;
        Reply::result(json!({"prompts": [page], "nextCursor": page.to_string()}))
    });
    let run = run(script);
    assert_eq!(run.methods().iter().filter(|method| **method == "prompts/list").count(), 1_000);
    assert_eq!(reasons(&run), [(SURFACES.into(), "protocol-surface-invalid".into())]);
}

#[test]
fn after_a_fault_the_next_request_gets_a_fresh_session() {
    let run = run(but("mcpeval/unknown", || Reply::fault(Cause::Closed)));
    assert_eq!(reasons(&run), [(UNKNOWN_METHOD.into(), CALL_FAILED.into())]);
    let sessions: Vec<_> = run.sent.iter().map(|sent| sent.session).collect();
    assert_eq!(sessions, [0, 1, 1]);
    assert_eq!(run.openings, 2, "one replacement, one for the negotiation");
}

#[test]
fn without_a_session_the_remaining_checks_fail() {
    let script = but("ping", || Reply::fault(Cause::Closed)).http().on_open(|_| Err(Cause::Unreachable));
    let run = run(script);
    let failed: Vec<_> = run.lost().into_iter().map(|(check, ..)| check).collect();
    assert_eq!(failed, [PING, UNKNOWN_TOOL, NEGOTIATION]);
    assert_eq!(run.openings, 1, "tried once");
}

#[test]
fn a_silent_server_has_one_loss() {
    let script = Script::new([tool("a")])
        .on_request(|_| Reply::fault(Cause::TimedOut).after_ms(15_000))
        .on_greet(|_| Reply::fault(Cause::TimedOut).after_ms(30_000));
    let run = run(script);
    assert_eq!(reasons(&run), [(PING.into(), CALL_FAILED.into())]);
    assert_eq!(run.score("protocol"), Some(0.0));
}

#[test]
fn a_refusal_of_the_budget_ends_the_run() {
    let run = run(Script::new([tool("a")]).on_request(good).budget(2, 10, 300_000));
    assert!(run.outcome.unwrap_err().is_refusal());
    assert!(run.scores.is_empty());
}
