use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mcpeval_probe::testing::{Reply, Run, Script, Sent};
use mcpeval_probe::{Cause, IncomingKind, Value, json};

use super::*;

/// A read-only tool that wants a string.
fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        "annotations": {"readOnlyHint": true}
    })
}

/// A server with these tools, valid arguments for all, and schemas that forbid `{}`.
fn script(names: &[&str]) -> Script {
    let script = Script::new(names.iter().map(|name| tool(name)))
        .on_counterexample(|schema| schema["required"].is_array().then(|| json!({})));
    names.iter().fold(script, |script, name| script.arguments(name, json!({"q": "tea"})))
}

fn is_valid(sent: &Sent) -> bool {
    sent.params["arguments"]["q"].is_string()
}

/// Answers as a good server does.
fn good(sent: &Sent) -> Reply {
    if sent.method == "ping" || is_valid(sent) {
        Reply::result(json!({"content": []}))
    } else {
        Reply::error(-32602, "q is required")
    }
}

fn run(script: Script) -> Run {
    script.run::<Exercise>(json!({"areas": ["error-honesty", "reliability", "coverage"], "lanes": 4}))
}

fn scores(run: &Run) -> [Option<f64>; 3] {
    ["error-honesty", "reliability", "coverage"].map(|area| run.score(area))
}

fn lost(run: &Run) -> Vec<(String, String)> {
    run.lost().into_iter().map(|(check, _, reason)| (check, reason)).collect()
}

fn pair(check: &str, reason: &str) -> (String, String) {
    (check.to_owned(), reason.to_owned())
}

#[test]
fn a_good_server_loses_nothing() {
    let run = run(script(&["a", "b"]).on_request(good));
    assert_eq!(run.lost(), []);
    assert_eq!(scores(&run), [Some(100.0); 3]);
    assert_eq!(run.requests(), 4 + 4 + 3 + 2);
    let order: Vec<_> = run.scores.iter().map(|(area, ..)| area.as_str()).collect();
    assert_eq!(order, ["error-honesty", "coverage", "reliability"], "what is known is told at once");
    assert_eq!(run.outcome.as_ref().unwrap().attempts, run.requests());
}

#[test]
fn a_tool_without_valid_arguments_costs_two_requests() {
    let script = Script::new([tool("a")]).on_counterexample(|_| Some(json!({}))).on_request(good);
    let run = run(script);
    assert_eq!(run.methods(), ["tools/call", "ping"]);
    assert_eq!(scores(&run), [Some(100.0), Some(0.0), Some(0.0)]);
    assert_eq!(
        lost(&run),
        [
            pair("coverage.exercised", "coverage-unsynthesizable"),
            pair("reliability.none-exercised", "coverage-unsynthesizable")
        ]
    );
}

#[test]
fn an_empty_surface_has_one_loss_per_area() {
    let writer = json!({"name": "w", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}});
    for tools in [vec![], vec![writer], vec![json!({"name": "no schema"})]] {
        let run = run(Script::new(tools));
        assert_eq!(scores(&run), [Some(0.0); 3]);
        let expected = ["error-honesty.untestable", "coverage.exercised", "reliability.none-exercised"];
        assert_eq!(lost(&run), expected.map(|check| pair(check, "no-read-only-tools")));
        assert_eq!(run.requests(), 0);
    }
}

#[test]
fn unattested_tools_are_not_called() {
    let unannotated = || Script::new([json!({"name": "u", "inputSchema": {"type": "object"}})]).on_request(good);
    let closed = run(unannotated());
    assert_eq!(closed.requests(), 0);
    assert_eq!(
        lost(&closed),
        [
            pair("error-honesty.untestable", "no-read-only-tools"),
            pair("coverage.exercised", "coverage-unannotated"),
            pair("reliability.none-exercised", "coverage-unannotated")
        ]
    );
    let attested = run(unannotated().attest().arguments("u", json!({"q": "tea"})));
    assert_eq!(lost(&attested), [pair("error-honesty.untestable", "honesty-untestable")]);
    assert_eq!(attested.requests(), 3 + 3, "nothing is forbidden and there is no string to lengthen");
}

#[test]
fn skipping_costs_every_area() {
    let run = run(script(&["a", "b"]).skip("b").on_request(good));
    assert_eq!(run.requests(), 4, "neither contention nor payload");
    assert_eq!(
        lost(&run),
        [
            pair("error-honesty.invalid-arguments", "coverage-skipped"),
            pair("coverage.exercised", "coverage-skipped"),
            pair("reliability.skipped", "coverage-skipped"),
            pair("reliability.contention", "coverage-skipped"),
            pair("reliability.payload", "coverage-skipped"),
        ]
    );
    assert_eq!(scores(&run), [Some(50.0), Some(25.0), Some(50.0)]);
    assert_eq!(run.number("untested_tools"), Some(0.0));
}

#[test]
fn a_repeated_name_is_tried_once() {
    let run = run(script(&["a", "a"]).on_request(good));
    assert_eq!(run.requests(), 4 + 3 + 2);
    assert_eq!(scores(&run), [Some(100.0); 3]);
}

#[test]
fn rejected_arguments_are_named() {
    let run = run(script(&["a"]).on_request(|_| Reply::error(-32602, "no")));
    assert_eq!(run.requests(), 2, "a rejection ends the valid calls");
    assert_eq!(
        lost(&run),
        [
            pair("coverage.exercised", "coverage-rejected-arguments"),
            pair("reliability.none-exercised", "coverage-rejected-arguments")
        ]
    );
    assert_eq!(run.number("rejected_calls"), Some(1.0));
}

#[test]
fn a_tool_that_always_fails_is_consistent_and_worth_nothing() {
    let run = run(script(&["a"])
        .on_request(|sent| if is_valid(sent) { Reply::result(json!({"isError": true})) } else { good(sent) }));
    assert_eq!(scores(&run), [Some(100.0), Some(0.0), Some(0.0)]);
    assert_eq!(
        lost(&run),
        [pair("coverage.exercised", "coverage-call-failed"), pair("reliability.success", "reliability-call-failed")]
    );
    assert_eq!(run.number("tool_errors"), Some(3.0));
}

#[test]
fn a_result_must_keep_to_its_schema() {
    let entry = || {
        let mut entry = tool("a");
        entry["outputSchema"] = json!({"type": "object"});
        Script::new([entry])
            .arguments("a", json!({"q": "tea"}))
            .on_validate(|_, instance| if instance.is_object() { Ok(()) } else { Err(vec![String::new()]) })
    };
    let broken = pair("reliability.output-schema", "reliability-output-schema-broken");
    assert!(lost(&run(entry().on_request(good))).contains(&broken), "structuredContent is absent");
    let wrong = |_: &Sent| Reply::result(json!({"structuredContent": 7}));
    assert!(lost(&run(entry().on_request(wrong))).contains(&broken));
    let right = |_: &Sent| Reply::result(json!({"structuredContent": {}}));
    assert!(!lost(&run(entry().on_request(right))).contains(&broken));
}

#[test]
fn a_crash_is_paid_by_the_tool_that_caused_it() {
    let run = run(script(&["a", "b"]).on_request(|sent| {
        if sent.tool() == Some("a") && is_valid(sent) { Reply::fault(Cause::Closed) } else { good(sent) }
    }));
    let tools: Vec<_> = run.sent.iter().take(8).map(|sent| (sent.session, sent.tool().unwrap_or("ping"))).collect();
    assert_eq!(
        tools,
        [(0, "a"), (0, "a"), (1, "a"), (1, "ping"), (1, "b"), (1, "b"), (1, "b"), (1, "b")],
        "the invalid call is repeated on the next session and decides"
    );
    assert_eq!(scores(&run), [Some(100.0), Some(75.0), Some(50.0)]);
}

#[test]
fn when_no_session_can_be_had_the_remaining_tools_fail() {
    let opened = Rc::new(Cell::new(0));
    let counted = Rc::clone(&opened);
    let run = run(script(&["a", "b"]).on_request(|_| Reply::fault(Cause::Closed)).on_open(move |_| {
        counted.set(counted.get() + 1);
        Err(Cause::Unreachable)
    }));
    assert_eq!(opened.get(), 1, "one attempt to replace the session");
    assert_eq!(scores(&run), [Some(0.0); 3]);
    assert!(lost(&run).iter().all(|(_, reason)| reason == "honesty-call-failed" || reason == "coverage-call-failed"));
    assert_eq!(run.progress.last(), Some(&(2, 2)));
}

#[test]
fn contention_fails_if_one_of_two_calls_does() {
    let second_fails = |sent: &Sent| {
        if sent.session == 1 && is_valid(sent) { Reply::result(json!({"isError": true})) } else { good(sent) }
    };
    let busy = run(script(&["a"]).on_request(second_fails));
    assert_eq!(lost(&busy), [pair("reliability.contention", "reliability-contention-failed")]);
    assert!((busy.score("reliability").unwrap() - 200.0 / 3.0).abs() < 1e-9);
    let refused = run(script(&["a"]).on_request(good).on_open(|_| Err(Cause::Handshake)));
    assert_eq!(lost(&refused), [pair("reliability.contention", "reliability-contention-failed")]);
}

#[test]
fn contended_calls_start_together() {
    let run = run(script(&["a"]).on_request(|sent| good(sent).after_ms(70)));
    let contended: Vec<_> = run.sent[4..6].iter().map(|sent| (sent.session, sent.at_us)).collect();
    assert_eq!(contended[0].1, contended[1].1);
    assert_ne!(contended[0].0, contended[1].0);
}

/// A good server that answers long strings in its own way.
fn long(reply: impl Fn() -> Reply + 'static) -> Run {
    run(script(&["a"]).on_request(move |sent| {
        let is_long = sent.params["arguments"]["q"].as_str().is_some_and(|text| text.len() == 1_000_000);
        if is_long { reply() } else { good(sent) }
    }))
}

#[test]
fn refusing_a_payload_handles_it() {
    for refusal in [
        Reply::error(-32603, "too long"),
        Reply::fault(Cause::Status(413)),
        Reply::fault(Cause::TimedOut)
            .after_ms(15_000)
            .before(IncomingKind::Notification, json!({"method": "notifications/message"}))
            .before(IncomingKind::StrayReply, json!({"id": null, "error": {"code": -32700, "message": "x"}})),
    ] {
        let run = long(move || refusal.clone());
        assert_eq!(lost(&run), []);
        assert_eq!(run.methods().last(), Some(&"ping"));
    }
}

#[test]
fn an_unhandled_payload_is_lost() {
    let unhandled = [pair("reliability.payload", "reliability-payload-unhandled")];
    assert_eq!(lost(&long(|| Reply::fault(Cause::Closed))), unhandled);
    assert_eq!(lost(&long(|| Reply::fault(Cause::TimedOut).after_ms(15_000))), unhandled);
    assert_eq!(lost(&long(|| Reply::fault(Cause::Status(502)))), unhandled);
    let dead = run(script(&["a"]).on_request(|sent| {
        if sent.method == "ping" { Reply::fault(Cause::TimedOut).after_ms(15_000) } else { good(sent) }
    }));
    assert_eq!(lost(&dead), unhandled, "the session must live on");
    let no_ping = run(script(&["a"])
        .on_request(|sent| if sent.method == "ping" { Reply::error(-32601, "no such method") } else { good(sent) }));
    assert_eq!(lost(&no_ping), [], "any reply is a sign of life");
}

#[test]
fn an_exhausted_budget_keeps_what_is_finished() {
    let run = run(script(&["a", "b"]).on_request(good).budget(9, 100, 300_000));
    assert!(run.outcome.as_ref().unwrap_err().is_refusal());
    assert_eq!(scores(&run), [Some(100.0), None, Some(100.0)], "the trials were over");
    let run = super::tests::run(script(&["a", "b"]).on_request(good).budget(5, 100, 300_000));
    assert_eq!(scores(&run), [None; 3]);
    assert_eq!(run.progress.last(), Some(&(1, 2)));
}

#[test]
fn only_the_calls_of_the_wanted_areas_are_made() {
    let wanted = |area: &str| script(&["a"]).on_request(good).run::<Exercise>(json!({"areas": [area]}));
    assert_eq!(wanted("error-honesty").methods(), ["tools/call", "ping"]);
    assert_eq!(wanted("coverage").requests(), 3);
    assert_eq!(wanted("reliability").requests(), 3 + 3 + 2);
    assert_eq!(wanted("coverage").scores.len(), 1);
}

fn many() -> Vec<String> {
    (0..40).map(|number| format!("t{number:02}")).collect()
}

fn slow(reply: impl FnMut(&Sent) -> Reply + 'static, lanes: u32, http: bool) -> Run {
    let names = many();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let script = script(&names).on_request(reply);
    let script = if http { script.http() } else { script };
    script.run::<Exercise>(json!({"lanes": lanes}))
}

/// Sessions that served the trials.
fn sessions(run: &Run) -> Vec<u32> {
    let trials = run.sent.iter().filter(|sent| sent.params["arguments"]["q"] == "tea");
    let mut sessions: Vec<_> = trials.map(|sent| sent.session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    sessions
}

#[test]
fn slow_tools_share_lanes() {
    let alone = slow(|sent| good(sent).after_ms(90), 1, false);
    let shared = slow(|sent| good(sent).after_ms(90), 4, false);
    assert_eq!(sessions(&alone), [0, 1], "the second only for contention");
    assert_eq!(sessions(&shared).len(), 5);
    let last = |run: &Run| run.sent.last().unwrap().at_us;
    assert!(last(&shared) * 2 < last(&alone), "{} {}", last(&shared), last(&alone));
    assert_eq!(shared.lost(), []);
    assert_eq!(shared.requests(), alone.requests() + 3);
    assert_eq!(shared.progress.last(), Some(&(40, 40)));
}

#[test]
fn instant_tools_need_no_lane() {
    assert_eq!(sessions(&slow(|sent| good(sent).after_ms(0), 4, false)), [0, 1]);
}

#[test]
fn lanes_need_room_in_the_budget() {
    let names = many();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let run = run(script(&names).on_request(|sent| good(sent).after_ms(90)).budget(200, 100, 300_000));
    assert_eq!(scores(&run), [Some(100.0); 3]);
    assert_eq!(sessions(&run), [0, 1]);
}

#[test]
fn a_lane_costs_no_points() {
    // Everything but the primary session fails in its own way.
    for fault in [Reply::fault(Cause::Closed), Reply::error(-32603, "busy"), Reply::fault(Cause::TimedOut)] {
        let in_trial = Rc::new(RefCell::new(true));
        let run = slow(
            move |sent| {
                // The second session of contention comes after the last trial.
                let long = sent.params["arguments"]["q"].as_str().is_some_and(|text| text.len() > 3);
                *in_trial.borrow_mut() &= !long;
                let primary = sent.session == 0;
                if primary || sent.method == "ping" { good(sent).after_ms(90) } else { fault.clone().after_ms(90) }
            },
            4,
            true,
        );
        let trials: Vec<_> = run.lost().into_iter().filter(|(check, ..)| check != "reliability.contention").collect();
        assert_eq!(trials, []);
        assert_eq!(run.score("coverage"), Some(100.0));
        assert_eq!(run.score("error-honesty"), Some(100.0));
    }
}

#[test]
fn a_timeout_in_a_process_of_its_own_counts() {
    // The first tool that a lane takes hangs, wherever it is called.
    let stuck = || {
        let mut chosen: Option<String> = None;
        move |sent: &Sent| {
            if chosen.is_none() && sent.session == 1 {
                chosen = sent.tool().map(str::to_owned);
            }
            let hangs = is_valid(sent) && chosen.as_deref() == sent.tool();
            if hangs { Reply::fault(Cause::TimedOut).after_ms(15_000) } else { good(sent).after_ms(90) }
        }
    };
    let hung = |run: &Run| {
        let lane = run.sent.iter().find(|sent| sent.session == 1);
        let tool = lane.and_then(Sent::tool).map(str::to_owned);
        run.sent.iter().filter(|sent| sent.tool() == tool.as_deref() && is_valid(sent)).count()
    };
    let process = slow(stuck(), 4, false);
    let server = slow(stuck(), 4, true);
    assert_eq!((hung(&process), hung(&server)), (1, 2));
    assert_eq!(process.lost().len(), server.lost().len());
}

#[test]
fn a_lane_that_cannot_start_is_dropped() {
    let names = many();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let script = script(&names).on_request(|sent| good(sent).after_ms(90));
    let run = run(script.on_open(|number| if number == 1 { Err(Cause::Unreachable) } else { Ok(()) }));
    assert_eq!(run.lost(), []);
    assert_eq!(sessions(&run), [0, 2], "not tried again");
}
