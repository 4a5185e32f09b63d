//! What the good server does, on pipes.

use serde_json::{Value, json};

use super::client::{Session, Target, http, is_success, text};
use crate::demo::tools::{self, Hints};

const GOOD: Target = Target::Pipes(None);

#[tokio::test]
async fn the_catalog_comes_in_pages_and_stays_light() {
    let mut session = Session::open(GOOD).await;
    let mut pages = Vec::new();
    let mut params = json!({});
    loop {
        let reply = session.request("tools/list", params).await.unwrap();
        pages.push(reply["result"]["tools"].as_array().unwrap().clone());
        match reply["result"].get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 3]);
    let bytes: usize = pages.concat().iter().map(|entry| entry.to_string().len()).sum();
    assert!(bytes < 1_500 * 4, "{bytes}");

    let reply = session.request("tools/list", json!({"cursor": "from-3"})).await.unwrap();
    assert_eq!(reply["error"]["code"], -32602);
}

#[tokio::test]
async fn examples_succeed_again_and_again_and_fit_their_schemas() {
    for target in [GOOD, http(None).await] {
        let mut session = Session::open(target).await;
        for tool in tools::TOOLS.iter() {
            let entry = serde_json::to_value(tool.entry()).unwrap();
            let output = jsonschema::validator_for(&entry["outputSchema"]).unwrap();
            let times = if tool.hints == Hints::Reads { 3 } else { 1 };
            for _ in 0..times {
                let content = session.value(tool.name, Value::Object(tool.example())).await;
                assert!(output.is_valid(&content), "{}: {content}", tool.name);
            }
        }
    }
}

#[tokio::test]
async fn invalid_arguments_are_refused_in_words() {
    let mut session = Session::open(GOOD).await;
    for tool in tools::TOOLS.iter() {
        let mut arguments = tool.example();
        arguments.insert("mcpeval_unknown".to_owned(), json!(1));
        let reply = session.call(tool.name, Value::Object(arguments)).await.unwrap();
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        assert!(text(&reply).starts_with("Invalid arguments for"), "{reply}");
    }
    let reply = session.call("get_note", json!({"id": "s".repeat(100_000)})).await.unwrap();
    assert!(text(&reply).contains("/id") && text(&reply).len() < 400, "{reply}");
    let reply = session.request("tools/call", json!({"name": "add", "arguments": [1, 2]})).await.unwrap();
    assert_eq!(reply["error"]["code"], -32602);
}

#[tokio::test]
async fn unknown_names_are_errors() {
    let mut session = Session::open(GOOD).await;
    for (method, params, code) in [
        ("tools/call", json!({"name": "nobody"}), -32602),
        ("tools/call", json!({"name": 5}), -32602),
        ("resources/read", json!({}), -32602),
        ("mcpeval/unknown", json!({}), -32601),
        ("logging/setLevel", json!({"level": "info"}), -32601),
        ("resources/read", json!({"uri": "demo://nowhere"}), -32002),
        ("resources/subscribe", json!({"uri": "demo://nowhere"}), -32002),
        ("prompts/get", json!({"name": "nobody"}), -32602),
        ("prompts/get", json!({"name": "review_note", "arguments": {"id": "99"}}), -32602),
        ("prompts/get", json!({"name": "plan_day", "arguments": {"style": "wild"}}), -32602),
    ] {
        let reply = session.request(method, params).await.unwrap();
        assert_eq!(reply["error"]["code"], code, "{method}: {reply}");
    }
    assert_eq!(session.request("ping", json!({})).await.unwrap()["result"], json!({}));
}

#[tokio::test]
async fn notes_are_written_found_and_deleted() {
    let mut session = Session::open(GOOD).await;
    let id = session.value("write_note", json!({"title": "Rain", "text": "Take a coat."})).await["id"].clone();
    assert_eq!(session.value("search_notes", json!({"query": "COAT"})).await, json!({"titles": ["Rain"]}));
    assert_eq!(session.value("get_note", json!({"id": id})).await["text"], "Take a coat.");
    assert_eq!(session.value("list_notes", json!({"limit": 1})).await, json!({"titles": ["Tea"]}));
    assert_eq!(session.value("delete_note", json!({"id": id})).await["deleted"], true);
    for tool in ["get_note", "delete_note"] {
        assert!(!is_success(&session.call(tool, json!({"id": id})).await.unwrap()));
    }
    // Another session starts anew.
    let mut other = Session::open(GOOD).await;
    assert_eq!(other.value("list_notes", json!({})).await["titles"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn numbers_and_words_are_right() {
    let mut session = Session::open(GOOD).await;
    assert_eq!(session.value("add", json!({"a": 0.5, "b": 2})).await, json!({"sum": 2.5}));
    let reply = session.call("add", json!({"a": 1e308, "b": 1e308})).await.unwrap();
    assert!(text(&reply).contains("too large"), "{reply}");
    let stats = session.value("word_stats", json!({"text": "a green\ntea"})).await;
    assert_eq!(stats, json!({"words": 3, "longest": "green"}));
    // A whole number may be written with a fraction of zero.
    assert_eq!(session.value("get_note", json!({"id": 1.0})).await["title"], "Tea");
}

#[tokio::test]
async fn errors_say_whether_a_retry_helps() {
    let mut session = Session::open(GOOD).await;
    for _ in 0..2 {
        let lost = session.call("poll_job", json!({"job": "lost"})).await.unwrap();
        assert_eq!((&lost["error"]["code"], &lost["error"]["data"]["retryable"]), (&json!(-32011), &json!(false)));
        let busy = session.call("poll_job", json!({"job": "busy"})).await.unwrap();
        assert_eq!((&busy["error"]["code"], &busy["error"]["data"]["retryable"]), (&json!(-32010), &json!(true)));
        assert_eq!(session.value("poll_job", json!({"job": "busy"})).await["state"], "done");
    }
}

#[tokio::test]
async fn a_stale_snapshot_recovers() {
    let mut session = Session::open(GOOD).await;
    let stale = json!({"which": "stale"});
    assert!(!is_success(&session.call("read_snapshot", stale.clone()).await.unwrap()));
    session.value("refresh_snapshot", json!({})).await;
    assert_eq!(session.value("read_snapshot", stale).await, json!({"taken": 1}));
}

#[tokio::test]
async fn subscribers_hear_of_updates_until_they_leave() {
    let mut session = Session::open(GOOD).await;
    let uri = json!({"uri": "demo://snapshot"});
    session.value("refresh_snapshot", json!({})).await;
    assert!(session.heard.is_empty());
    assert_eq!(session.request("resources/subscribe", uri.clone()).await.unwrap()["result"], json!({}));
    session.value("refresh_snapshot", json!({})).await;
    let update = session.heard.pop_front().unwrap();
    assert_eq!((&update["method"], &update["params"]), (&json!("notifications/resources/updated"), &uri));
    let contents = session.request("resources/read", uri.clone()).await.unwrap();
    assert_eq!(contents["result"]["contents"][0]["text"], "Taken anew 2 times.");
    assert_eq!(session.request("resources/unsubscribe", uri).await.unwrap()["result"], json!({}));
    session.value("refresh_snapshot", json!({})).await;
    assert!(session.heard.is_empty());
}

#[tokio::test]
async fn resources_and_prompts_are_listed_and_read() {
    let mut session = Session::open(GOOD).await;
    let resources = session.request("resources/list", json!({})).await.unwrap();
    for resource in resources["result"]["resources"].as_array().unwrap() {
        let read = session.request("resources/read", json!({"uri": resource["uri"]})).await.unwrap();
        assert_eq!(read["result"]["contents"][0]["uri"], resource["uri"]);
    }
    let templates = session.request("resources/templates/list", json!({})).await.unwrap();
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "demo://notes/{id}");
    let prompts = session.request("prompts/list", json!({})).await.unwrap();
    assert_eq!(prompts["result"]["prompts"].as_array().unwrap().len(), 2);
    let params = json!({"name": "review_note", "arguments": {"id": "1"}});
    let prompt = session.request("prompts/get", params).await.unwrap();
    assert!(prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("80 degrees"));
    let prompt = session.request("prompts/get", json!({"name": "plan_day"})).await.unwrap();
    assert!(prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("Tea, Bread"));
}

#[tokio::test]
async fn arguments_are_completed() {
    let mut session = Session::open(GOOD).await;
    let mut complete = async |reference: Value, name: &str, value: &str| {
        let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
        session.request("completion/complete", params).await.unwrap()
    };
    let plan = json!({"type": "ref/prompt", "name": "plan_day"});
    let note = json!({"type": "ref/resource", "uri": "demo://notes/{id}"});
    let styles = complete(plan.clone(), "style", "br").await;
    assert_eq!(styles["result"]["completion"]["values"], json!(["brief", "brisk"]));
    assert_eq!(complete(note, "id", "").await["result"]["completion"]["values"], json!(["1", "2"]));
    assert_eq!(complete(plan, "colour", "").await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_client_that_can_be_asked_is_asked() {
    for target in [GOOD, http(None).await] {
        let capabilities = json!({"sampling": {}, "elicitation": {}});
        let mut session = Session::open_with(target, &capabilities).await;
        let params = json!({"name": "summarize", "arguments": {"text": "Tea."}});
        let reply = session
            .request_with("tools/call", params, |question| {
                assert!(question["params"]["maxTokens"].as_u64() >= Some(1), "{question}");
                assert_eq!(question["params"]["messages"][0]["role"], "user");
                let content = json!({"type": "text", "text": "mcpeval"});
                Some(json!({"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn"}))
            })
            .await
            .unwrap();
        assert_eq!(reply["result"]["structuredContent"], json!({"summary": "mcpeval", "by": "client"}), "{reply}");
        for (answer, expected) in [
            (json!({"action": "accept", "content": {"color": "blue"}}), json!({"color": "blue", "by": "user"})),
            (json!({"action": "decline"}), json!({"color": "green", "by": "server"})),
            (json!({"action": "cancel"}), json!({"color": "green", "by": "server"})),
        ] {
            let params = json!({"name": "choose_color", "arguments": {"question": "Wall?"}});
            let reply = session
                .request_with("tools/call", params, |question| {
                    assert_eq!(question["params"]["message"], "Wall?");
                    assert_eq!(question["params"]["requestedSchema"]["properties"]["color"]["type"], "string");
                    Some(answer.clone())
                })
                .await
                .unwrap();
            assert_eq!(reply["result"]["structuredContent"], expected, "{reply}");
        }
        assert_eq!(session.heard.len(), 4);
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not() {
    let mut session = Session::open(GOOD).await;
    let summary = session.value("summarize", json!({"text": "Hot. Drink slowly."})).await;
    assert_eq!(summary, json!({"summary": "Hot.", "by": "server"}));
    let color = session.value("choose_color", json!({"question": "?"})).await;
    assert_eq!(color, json!({"color": "green", "by": "server"}));
    assert!(session.heard.is_empty());
}

#[tokio::test]
async fn progress_is_told_when_asked_for() {
    for target in [GOOD, http(None).await] {
        let mut session = Session::open(target).await;
        let params = json!({"name": "wait", "arguments": {"milliseconds": 20}, "_meta": {"progressToken": "p"}});
        session.request("tools/call", params).await.unwrap();
        let steps: Vec<_> = session.heard.iter().map(|message| message["params"]["progress"].as_f64()).collect();
        assert_eq!(steps, [Some(1.0), Some(2.0), Some(3.0), Some(4.0)]);
    }
}

#[tokio::test]
async fn long_arguments_are_handled() {
    let long = "a".repeat(1_000_000);
    for target in [GOOD, http(None).await] {
        let mut session = Session::open(target).await;
        for (tool, name) in [("search_notes", "query"), ("word_stats", "text"), ("summarize", "text")] {
            let reply = session.call(tool, json!({name: long})).await.unwrap();
            assert!(is_success(&reply) && reply.to_string().len() < 1_000, "{tool}");
        }
        let reply = session.call("choose_color", json!({"question": long})).await.unwrap();
        assert!(text(&reply).contains("/question"), "{tool}", tool = "choose_color");
        assert!(reply.to_string().len() < 1_000);
    }
}
