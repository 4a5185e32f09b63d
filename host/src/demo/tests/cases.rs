//! What the faults that only a case of a manifest sees look like, and the table of faults itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::client::{Session, Target, http, is_success, soon};
use crate::demo::faults::Fault;

fn broken(fault: Fault) -> Target {
    Target::Pipes(Some(fault))
}

#[test]
fn the_table_of_faults_is_sound() {
    let names: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
    assert_eq!(names.len(), Fault::ALL.len());
    for name in "schema fidelity unstable-errors bloated duplicate-page stalled-cursor slow cancellation negotiation \
                 sampling elicitation subscription completion surface output-schema flaky undescribed unknown-method \
                 lying-errors"
        .split_whitespace()
    {
        assert!(names.contains(name), "{name}");
    }
    for fault in Fault::ALL.iter().copied() {
        assert_eq!(Fault::from_name(fault.name()), Some(fault));
        let line = fault.violates();
        assert!(!line.contains('\n') && line.contains("; costs"), "{line}");
        for cost in fault.costs() {
            assert!(line.contains(cost.check) && line.contains(cost.reason), "{line}");
        }
        assert_eq!(fault.costs().is_empty(), line.contains("a case of kind"), "{line}");
    }
    assert_eq!(Fault::from_name("schemas"), None);
}

#[test]
fn every_check_of_the_battery_that_a_server_can_lose_has_its_fault() {
    let covered: BTreeSet<_> = Fault::ALL.iter().flat_map(|fault| fault.costs()).map(|cost| cost.check).collect();
    let expected = "protocol.unknown-method protocol.ping protocol.unknown-tool protocol.pagination protocol.surfaces \
        protocol.negotiation protocol.notification-status catalog.entry catalog.description catalog.params-described \
        catalog.params-typed catalog.read-only-declared catalog.destructive-declared catalog.output-schema \
        catalog.empty context.catalog context.heaviest-tool error-honesty.invalid-arguments error-honesty.untestable \
        reliability.success reliability.consistent reliability.latency reliability.output-schema \
        reliability.contention reliability.payload reliability.none-exercised coverage.exercised";
    assert_eq!(covered, expected.split_whitespace().collect());
}

#[tokio::test]
async fn schema_leaves_out_the_type_of_the_object() {
    let mut session = Session::open(broken(Fault::Schema)).await;
    let mut entries = Vec::new();
    for params in [json!({}), json!({"cursor": "from-5"}), json!({"cursor": "from-10"})] {
        let reply = session.request("tools/list", params).await.unwrap();
        entries.extend(reply["result"]["tools"].as_array().unwrap().clone());
    }
    let without: Vec<_> = entries
        .iter()
        .filter(|entry| entry["inputSchema"]["type"] != "object")
        .map(|entry| (&entry["name"], &entry["inputSchema"]["required"]))
        .collect();
    assert_eq!(without, [(&json!("add"), &json!(["a", "b"]))]);
}

#[tokio::test]
async fn fidelity_adds_wrong() {
    let mut session = Session::open(broken(Fault::Fidelity)).await;
    assert_eq!(session.value("add", json!({"a": 1, "b": 2})).await, json!({"sum": 4.0}));
}

#[tokio::test]
async fn unstable_errors_change_their_code() {
    let mut session = Session::open(broken(Fault::UnstableErrors)).await;
    let mut replies = Vec::new();
    for _ in 0..3 {
        replies.push(session.call("poll_job", json!({"job": "lost"})).await.unwrap());
    }
    let codes: Vec<_> = replies.iter().map(|reply| reply["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [Some(-32011), Some(-32012), Some(-32011)]);
    assert!(replies.iter().all(|reply| reply["error"]["data"]["retryable"] == false));
}

#[tokio::test]
async fn retryability_is_told_the_wrong_way_round() {
    let mut session = Session::open(broken(Fault::Retryability)).await;
    for (job, told) in [("lost", true), ("busy", false)] {
        let reply = session.call("poll_job", json!({"job": job})).await.unwrap();
        assert_eq!(reply["error"]["data"]["retryable"], told);
    }
}

#[tokio::test]
async fn cancellation_is_not_heard_on_pipes() {
    let mut session = Session::open(broken(Fault::Cancellation)).await;
    let id = session.next_id() + 40;
    let pipes = session.pipes();
    pipes
        .write(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "wait", "arguments": {"milliseconds": 50}}}))
        .await;
    pipes.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})).await;
    let reply = pipes.read().await.unwrap();
    assert_eq!((&reply["id"], is_success(&reply)), (&json!(id), true));
}

/// What comes of a call over HTTP that is cancelled while it runs.
async fn cancelled_over_http(fault: Option<Fault>) -> Option<Value> {
    let Target::Http(address) = http(fault).await else { unreachable!("http servers have addresses") };
    let mut session = Session::open(Target::Http(address)).await;
    let mut canceller = session.sibling();
    let id = session.next_id();
    let call = session.call("wait", json!({"milliseconds": 300}));
    // Again and again, as the first may come before the call.
    let cancel = async {
        loop {
            canceller.notify("notifications/cancelled", &json!({"requestId": id})).await;
        }
    };
    tokio::select! {
        reply = call => reply,
        () = cancel => unreachable!("it cancels until the call ends"),
    }
}

#[tokio::test]
async fn cancellation_is_not_heard_over_http() {
    assert_eq!(cancelled_over_http(None).await, None);
    let reply = cancelled_over_http(Some(Fault::Cancellation)).await.unwrap();
    assert!(is_success(&reply), "{reply}");
}

const SAMPLING: (&str, &str) = ("sampling", "summarize");
const ELICITATION: (&str, &str) = ("elicitation", "choose_color");

fn answer(question: &Value) -> Option<Value> {
    Some(match question["method"].as_str()? {
        "sampling/createMessage" => {
            json!({"role": "assistant", "content": {"type": "text", "text": "t"}, "model": "m"})
        }
        _ => json!({"action": "accept", "content": {"color": "blue"}}),
    })
}

/// The questions that a call asks, and its reply.
async fn asked(fault: Fault, (capability, tool): (&str, &str), target: Target) -> (Vec<Value>, Value) {
    let mut session = Session::open_with(target, &json!({capability: {}})).await;
    let arguments = Value::Object(crate::demo::tools::find(tool).unwrap().example());
    let params = json!({"name": tool, "arguments": arguments});
    let reply = session.request_with("tools/call", params, answer).await.unwrap();
    assert!(is_success(&reply), "{}: {reply}", fault.name());
    let questions = session.heard.into_iter().map(|mut question| question["params"].take()).collect();
    (questions, reply)
}

#[tokio::test]
async fn questions_are_asked_wrongly() {
    let (questions, _) = asked(Fault::Sampling, SAMPLING, broken(Fault::Sampling)).await;
    assert_eq!(questions[0]["messages"], json!([]));
    let (questions, _) = asked(Fault::Elicitation, ELICITATION, broken(Fault::Elicitation)).await;
    assert_eq!(questions[0]["requestedSchema"]["properties"]["color"]["type"], "object");
}

#[tokio::test]
async fn floods_ask_again_and_again() {
    for (fault, kind) in [(Fault::SamplingFlood, SAMPLING), (Fault::ElicitationFlood, ELICITATION)] {
        for target in [broken(fault), http(Some(fault)).await] {
            let (questions, _) = asked(fault, kind, target).await;
            assert_eq!(questions.len(), 12, "{}", fault.name());
        }
    }
}

#[tokio::test]
async fn stalled_calls_never_end() {
    for (fault, (capability, tool)) in [(Fault::SamplingStall, SAMPLING), (Fault::ElicitationStall, ELICITATION)] {
        let mut session = Session::open_with(broken(fault), &json!({capability: {}})).await;
        let arguments = Value::Object(crate::demo::tools::find(tool).unwrap().example());
        let pipes = session.pipes();
        let call = json!({"jsonrpc": "2.0", "id": 70, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        pipes.write(&call).await;
        let question = pipes.read().await.unwrap();
        pipes.write(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer(&question)})).await;
        // The answer comes first, and would end the call.
        session.value("wait", json!({"milliseconds": 200})).await;
        assert!(session.heard.is_empty(), "{:?}", session.heard);
    }
}

#[tokio::test]
async fn subscription_tells_no_updates() {
    let mut session = Session::open(broken(Fault::Subscription)).await;
    session.request("resources/subscribe", json!({"uri": "demo://snapshot"})).await.unwrap();
    // A good server tells the update before it answers.
    session.value("refresh_snapshot", json!({})).await;
    assert!(session.heard.is_empty());
}

#[tokio::test]
async fn resources_are_refused() {
    let uri = json!({"uri": "demo://snapshot"});
    let mut session = Session::open(broken(Fault::Unreadable)).await;
    assert!(session.request("resources/read", uri.clone()).await.unwrap()["error"].is_object());
    assert!(session.request("resources/subscribe", uri.clone()).await.unwrap()["result"].is_object());
    let mut session = Session::open(broken(Fault::SubscriptionRejected)).await;
    assert!(session.request("resources/read", uri.clone()).await.unwrap()["result"].is_object());
    assert!(session.request("resources/subscribe", uri).await.unwrap()["error"].is_object());
}

#[tokio::test]
async fn completion_floods_or_does_not_know_its_arguments() {
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "plan_day"}, "argument": {"name": "style", "value": "b"}});
    let mut session = Session::open(broken(Fault::Completion)).await;
    let reply = session.request("completion/complete", params.clone()).await.unwrap();
    assert!(reply["result"]["completion"]["values"].as_array().unwrap().len() > 100);
    let mut session = Session::open(broken(Fault::CompletionUnknown)).await;
    let reply = session.request("completion/complete", params).await.unwrap();
    assert!(reply["error"]["message"].as_str().unwrap().contains("style"), "{reply}");
}

#[tokio::test]
async fn recovery_does_not_hold() {
    let mut session = Session::open(broken(Fault::Recovery)).await;
    session.value("refresh_snapshot", json!({})).await;
    assert!(!is_success(&session.call("read_snapshot", json!({"which": "stale"})).await.unwrap()));
    session.value("read_snapshot", json!({"which": "current"})).await;
}

#[tokio::test]
async fn degradation_sets_in_at_the_thirteenth_call() {
    let mut session = Session::open(broken(Fault::Degradation)).await;
    for _ in 0..12 {
        session.value("list_notes", json!({})).await;
    }
    assert!(!is_success(&session.call("list_notes", json!({})).await.unwrap()));
}

#[tokio::test]
async fn surface_and_outputs_are_wrong_in_their_own_ways() {
    let mut session = Session::open(broken(Fault::Surface)).await;
    let reply = session.request("resources/list", json!({})).await.unwrap();
    assert!(reply["result"]["resources"].is_object());
    let arguments = json!({"text": "a b"});
    let content = async |fault| {
        let mut session = Session::open(broken(fault)).await;
        session.call("word_stats", arguments.clone()).await.unwrap()["result"].clone()
    };
    assert_eq!(content(Fault::OutputSchema).await["structuredContent"], json!({"words": "several", "longest": "b"}));
    assert_eq!(content(Fault::OutputField).await["structuredContent"], json!({"words": 2}));
    assert!(content(Fault::OutputMissing).await.get("structuredContent").is_none());
}

#[tokio::test]
async fn a_server_that_hangs_up_ends() {
    let mut session = Session::open(broken(Fault::UnknownMethodDies)).await;
    assert_eq!(session.request("mcpeval/unknown", json!({})).await, None);
    soon(&mut session.pipes().server).await.unwrap().unwrap();
    // The client notices when it writes, too.
    assert!(session.pipes().input().write_all(b"{}\n").await.is_err());
}
