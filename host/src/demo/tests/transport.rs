//! Lifecycle, cancellation and endings, and what HTTP adds.

use std::net::SocketAddr;

use serde_json::json;

use super::client::{LATEST, Pipes, Session, Target, http, is_success, soon, status};
use crate::demo::serve_http;
use crate::error::Error;

const GOOD: Target = Target::Pipes(None);

#[tokio::test]
async fn spoken_revisions_are_echoed_and_others_answered_with_the_latest() {
    for target in [GOOD, http(None).await] {
        for offered in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let mut session = Session::greet(target, offered, &json!({})).await;
            assert_eq!(session.greeting["result"]["protocolVersion"], offered);
            assert!(is_success(&session.call("list_notes", json!({})).await.unwrap()));
        }
        for offered in ["2000-01-01", "2026-07-28", "2999-12-31", "latest", ""] {
            let session = Session::greet(target, offered, &json!({})).await;
            assert_eq!(session.greeting["result"]["protocolVersion"], LATEST, "{offered}");
        }
    }
}

#[tokio::test]
async fn what_comes_before_initialize_does_no_harm() {
    let mut pipes = Pipes::new(None);
    pipes.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    pipes.write(&json!({"jsonrpc": "2.0", "id": 5, "result": {}})).await;
    pipes.write(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    assert_eq!(pipes.read().await.unwrap(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    pipes.write(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await;
    assert!(pipes.read().await.unwrap()["error"]["code"].is_i64());
    pipes.close().await.unwrap();
}

#[tokio::test]
async fn answers_to_all_that_was_asked_come_before_the_end() {
    let mut session = Session::open(GOOD).await;
    let pipes = session.pipes();
    for id in 100..120 {
        pipes
            .write(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "list_notes", "arguments": {}}}))
            .await;
    }
    let mut answered = Vec::new();
    while answered.len() < 20 {
        answered.push(pipes.read().await.unwrap()["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, (100..120).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_end_of_input_ends_long_calls_too() {
    let mut session = Session::open_with(GOOD, &json!({"sampling": {}})).await;
    let call = |id, name, arguments| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": name, "arguments": arguments}})
    };
    let pipes = session.pipes();
    pipes.write(&call(50, "wait", json!({"milliseconds": 60_000}))).await;
    pipes.write(&call(51, "summarize", json!({"text": "Nobody answers."}))).await;
    assert_eq!(pipes.read().await.unwrap()["method"], "sampling/createMessage");
    let start = std::time::Instant::now();
    session.close().await;
    assert!(start.elapsed() < std::time::Duration::from_secs(4), "the server waited for its calls");
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered() {
    let mut session = Session::open(GOOD).await;
    let id = session.next_id() + 40;
    let pipes = session.pipes();
    pipes
        .write(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "wait", "arguments": {"milliseconds": 50}}}))
        .await;
    pipes.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})).await;
    // Longer than the cancelled call, so its answer would come first.
    session.value("wait", json!({"milliseconds": 400})).await;
    assert!(session.heard.is_empty(), "{:?}", session.heard);
}

#[tokio::test]
async fn http_accepts_notifications_with_202_and_ends_sessions_on_delete() {
    let target = http(None).await;
    let mut session = Session::open(target).await;
    session.notify("notifications/roots/list_changed", &json!({})).await;
    assert_eq!(session.accepted, [202, 202]);
    let mut kept = Session::open(target).await;
    assert!(session.close().await.is_success());
    // One session's end is not another's.
    assert!(is_success(&kept.call("list_notes", json!({})).await.unwrap()));
}

#[tokio::test]
async fn http_refuses_strange_pages_and_huge_bodies() {
    let Target::Http(address) = http(None).await else { unreachable!("http servers have addresses") };
    for (origin, size, expected) in
        [("http://localhost:3000", 0, 200), ("http://evil.example", 0, 403), ("http://127.0.0.1:80", 33 << 20, 413)]
    {
        let padding = "a".repeat(size);
        let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": LATEST, "capabilities": {}, "clientInfo": {"name": padding, "version": "1"}}});
        assert_eq!(status(address, origin, &greeting).await, expected, "{origin}");
    }
}

#[tokio::test]
async fn updates_reach_the_stream_of_an_http_session() {
    let mut session = Session::open(http(None).await).await;
    session.request("resources/subscribe", json!({"uri": "demo://snapshot"})).await.unwrap();
    let update = session
        .overheard(async |session| {
            session.value("refresh_snapshot", json!({})).await;
        })
        .await;
    assert_eq!(update["method"], "notifications/resources/updated");
}

#[tokio::test]
async fn only_free_loopback_addresses_are_served() {
    let serve = |address: SocketAddr| serve_http(address, None, |_| panic!("it does not listen"));
    let error = serve("192.0.2.1:0".parse().unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
    let Target::Http(taken) = http(None).await else { unreachable!("http servers have addresses") };
    let error = soon(serve(taken)).await.unwrap_err();
    assert!(matches!(&error, Error::Unfinished(text) if text.contains("in use")), "{error}");
}
