//! The gate: what may be called, in which order and on which connection cases run, and what is left of a run that could
//! not go on.

use mcpeval_tests::cases::manifest;
use mcpeval_tests::programs;
use mcpeval_tests::report::Report;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use serde_json::{Value, json};

const GATE: &[&str] = &["--gate-only"];

/// A case that calls one tool once.
fn fidelity(id: &str, tool: &str) -> Value {
    json!({
        "probe": "instruction-fidelity", "id": id, "access": "read_only", "tool": tool,
        "arguments": {"query": "saw"}, "expect": {"outcome": "ok"},
    })
}

fn pagination(id: &str) -> Value {
    json!({"probe": "pagination", "id": id, "access": "read_only", "max_pages": 5})
}

fn mutating(case: Value) -> Value {
    let mut case = case;
    case["access"] = "mutating".into();
    case["sandbox"] = "bench".into();
    case
}

/// Id and reason of every case; an empty reason for a pass.
fn verdicts(report: &Report) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let cases = report.at("/cases").as_array().map(Vec::as_slice).unwrap_or_default();
    cases.iter().map(|case| (text(&case["id"]), text(&case["reason"]))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, reason)| ((*id).to_owned(), (*reason).to_owned())).collect()
}

fn count(place: &Place, line: &str) -> usize {
    place.journal_lines().iter().filter(|noted| *noted == line).count()
}

/// Refused by one sentence that holds those words, and no tool was called.
#[track_caller]
fn assert_refused(place: &Place, outcome: &Outcome, words: &[&str]) {
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.trim().lines().count(), 1, "{}", outcome.stderr);
    for word in words {
        assert!(outcome.stderr.contains(word), "{word:?} is missing: {}", outcome.stderr);
    }
    let called: Vec<String> = place.journal_lines().into_iter().filter(|line| line.starts_with("tools/call")).collect();
    assert!(called.is_empty(), "{called:?}");
}

#[test]
fn a_tool_that_a_later_listing_declares_to_write_is_not_called_again() {
    let find = |id: &str| fidelity(id, "find_item");
    let cases = manifest(&[find("mild"), pagination("pages"), find("turned"), pagination("again")]);
    for way in ["stdio", "http"] {
        let place = Place::new(programs!());
        let run = if way == "http" { Place::probe_http } else { Place::probe };
        let outcome = run(&place, &cases, GATE, "turns-writer");
        assert_eq!(outcome.code, Some(3), "{way}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("a later listing of this run declares"), "{way}: {}", outcome.stderr);
        let expected = pairs(&[("mild", ""), ("pages", ""), ("turned", "component-fault"), ("again", "")]);
        assert_eq!(verdicts(&outcome.report()), expected, "{way}");
        assert_eq!(count(&place, "tools/call find_item"), 1, "{way}");

        // Whoever authorized the case to write may call it.
        let place = Place::new(programs!());
        let cases = manifest(&[pagination("pages"), mutating(find("turned"))]);
        let outcome = run(&place, &cases, &["--gate-only", "--allow-mutation"], "turns-writer");
        assert_eq!(count(&place, "tools/call find_item"), 1, "{way}: {}", outcome.stderr);
    }
}

#[test]
fn a_read_only_case_of_a_writer_is_refused_before_any_call() {
    for way in ["stdio", "http"] {
        let place = Place::new(programs!());
        let manifest = manifest(&[fidelity("first", "find_item"), fidelity("second", "delete_item")]);
        let outcome = match way {
            "stdio" => place.probe(&manifest, &[], "good"),
            _ => place.probe_http(&manifest, &[], "good"),
        };
        assert_refused(&place, &outcome, &["manifest.json:1:", "/probes/1/tool", "read_only", "delete_item"]);
        assert!(count(&place, "tools/list") > 0, "{:?}", place.journal_lines());
    }
}

#[test]
fn every_field_that_names_a_tool_is_held_to_the_access() {
    let step = |tool: &str| json!({"tool": tool, "expect": {"outcome": "ok"}});
    for (case, field) in [
        (json!({"probe": "workflow", "repetitions": 1, "steps": [step("plain"), step("erase")]}), "/steps/1/tool"),
        (
            json!({"probe": "state-recovery", "failure_tool": "jam", "recovery_tool": "erase", "validation_tool": "plain"}),
            "/recovery_tool",
        ),
        (
            json!({"probe": "resource-subscription", "uri": "shop://shelf", "trigger_tool": "erase", "max_wait_seconds": 1}),
            "/trigger_tool",
        ),
        (json!({"probe": "contention", "tool": "erase"}), "/tool"),
        (json!({"probe": "sampling", "tool": "erase", "max_requests": 1}), "/tool"),
    ] {
        let place = Place::new(programs!());
        let mut case = case;
        case["id"] = "it".into();
        case["access"] = "read_only".into();
        // The way out is one that the kind has.
        let kind = case["probe"].as_str().expect("a kind").to_owned();
        let may_mutate = ["state-recovery", "contention"].contains(&kind.as_str());
        let never = format!("no option lets a case of kind {kind} call it");
        let way_out =
            if may_mutate { "access mutating and a sandbox, and run it with --allow-mutation" } else { &never };
        assert_refused(&place, &place.probe(&manifest(&[case]), GATE, "workshop"), &[field, "erase", way_out]);
    }
}

#[test]
fn a_writer_cannot_hide_on_a_later_page_or_behind_its_twin() {
    let place = Place::new(programs!());
    let outcome = place.probe(&manifest(&[fidelity("it", "delete_item")]), GATE, "paged");
    assert_refused(&place, &outcome, &["read_only", "delete_item"]);
    // Of two entries of one name the second is a writer.
    let place = Place::new(programs!());
    let outcome = place.probe(&manifest(&[fidelity("it", "find_item")]), GATE, "writer-twin");
    assert_refused(&place, &outcome, &["read_only", "find_item"]);
}

#[test]
fn a_tool_without_annotations_is_attested_by_the_manifest() {
    let place = Place::new(programs!());
    let outcome = place.probe(&manifest(&[fidelity("it", "odd_tool")]), GATE, "unannotated");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(count(&place, "tools/call odd_tool"), 1);
}

#[test]
fn an_entry_that_is_invalid_by_its_schema_only_may_be_called() {
    let place = Place::new(programs!());
    let outcome = place.probe(&manifest(&[fidelity("it", "odd_tool")]), GATE, "schema-invalid");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(count(&place, "tools/call odd_tool"), 1);
}

#[test]
fn a_skipped_or_unlisted_tool_is_refused() {
    let place = Place::new(programs!());
    let outcome = place.probe(&manifest(&[fidelity("it", "get_prices")]), GATE, "good");
    assert_refused(&place, &outcome, &["manifest.json:1:", "/probes/0/tool", "\"get_prices\"", "\"get_price\""]);
    let cases = manifest(&[fidelity("it", "find_item"), fidelity("other", "get_price")]);
    let outcome = place.probe(&cases, &["--gate-only", "--skip-tool", "get_price"], "good");
    assert_refused(&place, &outcome, &["/probes/1/tool", "get_price", "--skip-tool"]);
}

#[test]
fn only_what_is_selected_is_checked_and_run() {
    let place = Place::new(programs!());
    let cases = manifest(&[pagination("pages"), fidelity("find", "find_item"), fidelity("wipe", "delete_item")]);
    let run = |options: &[&str]| place.probe(&cases, options, "good");
    for (options, ids) in [
        (&["--case", "find"][..], &[("find", "")][..]),
        (&["--case", "find", "--case", "pages"], &[("pages", ""), ("find", "")]),
        (&["--probe", "pagination"], &[("pages", "")]),
        (&["--probe", "instruction-fidelity", "--case", "find"], &[("find", "")]),
    ] {
        let outcome = run(options);
        let report = outcome.report();
        assert_eq!((outcome.code, verdicts(&report)), (Some(0), pairs(ids)), "{options:?}");
        assert_eq!(report.at("/gate"), &json!({"passed": ids.len(), "total": ids.len()}));
        assert!(
            report.at("/readiness").is_null() && report.at("/readiness_error").is_null(),
            "a selection has no battery"
        );
    }
    assert_eq!(count(&place, "tools/call delete_item"), 0);
    for (options, words) in [
        (&["--case", "fnd"][..], &["--case", "\"find\""][..]),
        (&["--probe", "paginatoin"], &["--probe", "\"pagination\""]),
        (&["--probe", "workflow"], &["--probe"]),
        (&["--case", "find", "--probe", "pagination"], &["--probe", "--case"]),
    ] {
        let place = Place::new(programs!());
        assert_refused(&place, &place.probe(&cases, options, "good"), words);
    }
}

#[test]
fn mutating_cases_need_permission_and_then_call_writers() {
    let place = Place::new(programs!());
    let cases = manifest(&[fidelity("find", "find_item"), mutating(fidelity("wipe", "delete_item"))]);
    assert_refused(&place, &place.probe(&cases, GATE, "good"), &["wipe", "--allow-mutation"]);
    // Another selection needs no permission.
    let outcome = place.probe(&cases, &["--case", "find"], "good");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(count(&place, "tools/call delete_item"), 0);
    let outcome = place.probe(&cases, &["--gate-only", "--allow-mutation"], "good");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(count(&place, "tools/call delete_item"), 1);
    // Permission is for cases that declare it, and the battery calls no writer even then.
    let place = Place::new(programs!());
    let outcome = place.probe(&manifest(&[fidelity("wipe", "delete_item")]), &["--allow-mutation"], "good");
    assert_refused(&place, &outcome, &["read_only"]);
    let place = Place::new(programs!());
    let outcome = place.probe(&cases, &["--allow-mutation"], "good");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(count(&place, "tools/call delete_item"), 1, "{:?}", place.journal_lines());
}

#[test]
fn where_a_later_page_is_lost_the_listed_tools_are_judged() {
    let place = Place::new(programs!());
    let cases = manifest(&[
        fidelity("listed", "find_item"),
        fidelity("unlisted", "far_away"),
        json!({"probe": "discovery-cost", "id": "cost", "access": "read_only", "max_tools": 9, "max_schema_bytes": 9}),
        pagination("pages"),
        fidelity("listed-too", "get_price"),
    ]);
    let outcome = place.probe(&cases, GATE, "page-error");
    let report = outcome.report();
    let label = "transport-error";
    let expected = [
        ("listed", ""),
        ("unlisted", label),
        ("cost", label),
        ("pages", "pagination-invalid-entry"),
        ("listed-too", "unexpected-outcome"),
    ];
    assert_eq!((outcome.code, verdicts(&report)), (Some(3), pairs(&expected)), "{}", outcome.stderr);
    assert_eq!(report.at("/gate"), &json!({"passed": 1, "total": 5}));
    assert!(report.at("/catalog").is_null(), "it was not listed to its end");
    assert_eq!(count(&place, "tools/call far_away"), 0);
    // What it declares is held against it even so.
    let place = Place::new(programs!());
    let outcome = place.probe(&manifest(&[fidelity("wipe", "delete_item")]), GATE, "page-error");
    assert_refused(&place, &outcome, &["delete_item"]);
}

#[test]
fn cases_run_in_order_on_one_connection() {
    let place = Place::new(programs!());
    let price = json!({
        "probe": "degradation-over-n", "id": "price", "access": "read_only", "tool": "get_price",
        "arguments": {"item": "saw"}, "max_attempts": 2,
    });
    let cases = manifest(&[price, pagination("pages"), fidelity("find", "find_item")]);
    let outcome = place.probe(&cases, GATE, "good");
    let expected = pairs(&[("price", ""), ("pages", ""), ("find", "")]);
    assert_eq!((outcome.code, verdicts(&outcome.report())), (Some(0), expected), "{}", outcome.stderr);
    let lines = place.journal_lines();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let calls = ["tools/call get_price", "tools/call get_price", "tools/list", "tools/call find_item"];
    let whole = [&["initialize", "notifications/initialized", "tools/list"][..], &calls].concat();
    assert_eq!(lines, whole);
}

#[test]
fn a_case_without_verdict_costs_only_itself() {
    let place = Place::new(programs!());
    let call = |id: &str, tool: &str| fidelity(id, tool);
    let cases = manifest(&[
        call("one", "plain"),
        call("dies", "hang_up"),
        call("two", "plain"),
        call("mute", "silent"),
        call("three", "plain"),
    ]);
    let outcome = place.probe(&cases, GATE, "workshop");
    let expected =
        [("one", ""), ("dies", "transport-closed"), ("two", ""), ("mute", "transport-timeout"), ("three", "")];
    let report = outcome.report();
    assert_eq!((outcome.code, verdicts(&report)), (Some(3), pairs(&expected)), "{}", outcome.stderr);
    assert_eq!(count(&place, "initialize"), 3, "each errored case is followed by a connection of its own");
    for case in [1, 3] {
        let at = |key: &str| report.at(&format!("/cases/{case}/{key}")).clone();
        assert_eq!((at("passed"), at("first_failure"), at("attempts")), (json!(false), Value::Null, json!(0)));
        assert!(at("hint").as_str().is_some_and(|hint| !hint.is_empty()));
    }
    assert_eq!(report.at("/gate"), &json!({"passed": 3, "total": 5}));
    assert!(outcome.stderr.contains("dies"), "it does not say which case: {}", outcome.stderr);
    place.assert_clean();
}

#[test]
fn a_server_that_does_not_start_again_leaves_the_rest_without_verdict() {
    let place = Place::new(programs!());
    let cases = manifest(&[pagination("one"), fidelity("dies", "find_item"), pagination("two"), pagination("three")]);
    let outcome = place.probe(&cases, &[], "dies-for-good");
    let report = outcome.report();
    let closed = "transport-closed";
    let expected = [("one", ""), ("dies", closed), ("two", closed), ("three", closed)];
    assert_eq!((outcome.code, verdicts(&report)), (Some(3), pairs(&expected)), "{}", outcome.stderr);
    assert_eq!(report.at("/readiness_error"), closed, "there is nothing left to score");
    assert!(report.at("/readiness").is_null());
}

#[test]
fn an_unreachable_server_gives_a_report_all_the_same() {
    let cases = manifest(&[fidelity("one", "find_item"), pagination("two")]);
    for (server, label, words) in
        [("exits-at-once", "transport-closed", "missing API_KEY"), ("wrong-revision", "handshake-failed", "")]
    {
        let place = Place::new(programs!());
        let extra = place.path().join("extra.json");
        let option = format!("json={}", extra.display());
        let outcome = place.probe(&cases, &["--report", &option], server);
        let report = outcome.report();
        let expected = pairs(&[("one", label), ("two", label)]);
        assert_eq!((outcome.code, verdicts(&report)), (Some(3), expected), "{}", outcome.stderr);
        assert_eq!((report.at("/readiness_error"), report.at("/passed")), (&json!(label), &json!(false)));
        assert_eq!(report.at("/gate"), &json!({"passed": 0, "total": 2}));
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
        assert_eq!(std::fs::read_to_string(extra).expect("the other report"), outcome.stdout);
    }
    let place = Place::new(programs!());
    let file = place.file("manifest.json", cases.to_string()).display().to_string();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let url = format!("http://{port}/mcp");
    let outcome = place.run(["probe", "--format", "json", "--manifest", &file, "--url", &url]);
    let label = "transport-error";
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert_eq!(verdicts(&outcome.report()), pairs(&[("one", label), ("two", label)]));
    assert!(!outcome.stderr.trim().is_empty());
}

#[test]
fn an_exhausted_budget_keeps_the_finished_verdicts() {
    let place = Place::new(programs!());
    let many = |id: String| json!({"probe": "degradation-over-n", "id": id, "access": "read_only", "tool": "plain", "max_attempts": 100});
    let mut cases = vec![fidelity("first", "plain"), fidelity("bad", "complain")];
    cases.extend((0..45).map(|number| many(format!("many-{number}"))));
    cases.push(fidelity("last", "plain"));
    let outcome = place.probe(&manifest(&cases), GATE, "workshop");
    let found = verdicts(&outcome.report());
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    let label = "evaluation-budget-exceeded";
    let at = found.iter().position(|(_, reason)| reason == label).expect("4,096 requests are less than 4,500");
    assert_eq!(found[..2], pairs(&[("first", ""), ("bad", "unexpected-outcome")]));
    assert!(at > 35 && found[2..at].iter().all(|(_, reason)| reason.is_empty()), "{found:?}");
    assert!(found[at..].iter().all(|(_, reason)| reason == label), "{found:?}");
    assert_eq!(found.len(), 48);
}

#[test]
fn floors_need_the_battery() {
    let cases = manifest(&[pagination("pages")]);
    for options in [
        &["--gate-only", "--min-readiness", "1"][..],
        &["--gate-only", "--min-area", "catalog=1"],
        &["--case", "pages", "--min-readiness", "1"],
        &["--probe", "pagination", "--exclude-latency"],
    ] {
        let place = Place::new(programs!());
        assert_refused(&place, &place.probe(&cases, options, "good"), &["floors", "--gate-only"]);
        assert!(place.journal_lines().is_empty(), "the server need not be started for this");
    }
    let place = Place::new(programs!());
    let outcome = place.probe(&cases, &["--min-area", "coverage=100", "--skip-tool", "find_item"], "good");
    let report = outcome.report();
    assert_eq!((outcome.code, report.at("/gate/passed")), (Some(1), &json!(1)), "{}", outcome.stderr);
    assert_eq!((report.at("/readiness_gate/passed"), report.at("/passed")), (&json!(false), &json!(false)));
}

#[test]
fn the_battery_follows_the_cases() {
    let place = Place::new(programs!());
    let outcome = place.probe(&manifest(&[pagination("pages")]), &["--lanes", "1"], "no-ping");
    let report = outcome.report();
    assert_eq!((outcome.code, verdicts(&report)), (Some(0), pairs(&[("pages", "")])), "{}", outcome.stderr);
    let losses: Vec<String> = report.losses().iter().map(|loss| loss.check.clone()).collect();
    assert!(losses.contains(&"protocol.ping".to_owned()), "{losses:?}");
    let components = report.at("/components").as_object().expect("components");
    assert!(components.contains_key("pagination") && components.contains_key("area:catalog"), "{components:?}");
    // A failed case fails the run, whatever the score is.
    let outcome = place.probe(&manifest(&[pagination("pages")]), &["--min-readiness", "1"], "duplicate-page");
    assert_eq!((outcome.code, outcome.report().at("/passed")), (Some(1), &json!(false)), "{}", outcome.stderr);
}

#[test]
fn without_a_manifest_there_is_nothing_to_probe() {
    let place = Place::new(programs!());
    let outcome = place.run(["probe", "--", programs!().server, "good"]);
    assert_refused(&place, &outcome, &["mcp-eval.manifest.json", "mcpeval init", "mcpeval score"]);
    let outcome = place.run(["probe", "--manifest", "none.yaml", "--", programs!().server, "good"]);
    assert_refused(&place, &outcome, &["none.yaml"]);
    for name in ["mcp-eval.manifest.yml", "mcp-eval.manifest.yaml", "mcp-eval.manifest.json"] {
        place.file(name, manifest(&[pagination("pages")]).to_string());
        let outcome = place.run(["probe", "--gate-only", "--", programs!().server, "good"]);
        assert_eq!(outcome.code, Some(0), "{name}: {}", outcome.stderr);
    }
}

#[test]
fn tools_that_only_able_clients_are_shown_can_be_named() {
    let asks = |kind: &str, tool: &str| {
        let mut case = json!({"probe": kind, "id": format!("{kind}-{tool}"), "access": "read_only", "tool": tool, "max_requests": 1});
        if kind == "elicitation" {
            case["respond"] = "accept".into();
        }
        case
    };
    for way in ["stdio", "http"] {
        let place = Place::new(programs!());
        let run = |cases: &Value| match way {
            "stdio" => place.probe(cases, GATE, "tools-by-capability"),
            _ => place.probe_http(cases, GATE, "tools-by-capability"),
        };
        let outcome = run(&manifest(&[
            asks("sampling", "sum_up"),
            asks("elicitation", "ask_user"),
            fidelity("find", "find_item"),
        ]));
        let expected = pairs(&[("sampling-sum_up", ""), ("elicitation-ask_user", ""), ("find", "")]);
        assert_eq!((outcome.code, verdicts(&outcome.report())), (Some(0), expected), "{}", outcome.stderr);
    }
    // A tool that is shown to other clients than those of the case is as good as none.
    for case in [asks("sampling", "ask_user"), fidelity("it", "sum_up")] {
        let place = Place::new(programs!());
        let outcome = place.probe(&manifest(&[case]), GATE, "tools-by-capability");
        assert_refused(&place, &outcome, &["/probes/0/tool", "lists no tool"]);
    }
}

#[test]
fn two_runs_give_the_same_bytes() {
    let cases = manifest(&[
        pagination("pages"),
        fidelity("find", "plain"),
        fidelity("fails", "complain"),
        json!({"probe": "token-cost", "id": "tokens", "access": "read_only", "max_total_tokens": 1}),
        json!({"probe": "sampling", "id": "asks", "access": "read_only", "tool": "ask_model", "max_requests": 1}),
        json!({"probe": "surface-listing", "id": "lists", "access": "read_only", "max_pages": 3}),
        fidelity("mute", "silent"),
    ]);
    let place = Place::new(programs!());
    let (first, second) = (place.probe(&cases, GATE, "workshop"), place.probe(&cases, GATE, "workshop"));
    assert_eq!(first.report().at("/gate"), &json!({"passed": 3, "total": 7}), "{}", first.stderr);
    assert_eq!(first.stdout, second.stdout);
    let http = place.probe_http(&cases, GATE, "workshop");
    assert_eq!(first.stdout, http.stdout, "the way does not show");
    for trace in [place.path().to_str().unwrap_or("/"), programs!().server, "manifest.json", "ask-0"] {
        assert!(!first.stdout.contains(trace), "{trace} is in the report");
    }
}

#[test]
fn the_report_names_the_manifest_by_its_bytes() {
    let place = Place::new(programs!());
    let digest = |text: &str, name: &str| {
        let file = place.file(name, text);
        let outcome = Running::start(place.probe_command(&file, GATE, "good")).finish(PATIENCE);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        outcome.report().at("/manifest_sha256").as_str().map(str::to_owned).expect("a digest")
    };
    let yaml = "version: 1\nprobes:\n  - {probe: pagination, id: pages, access: read_only, max_pages: 2}\n";
    assert_ne!(digest(yaml, "one.yaml"), digest(&format!("{yaml}# words\n"), "two.yaml"));
    assert_eq!(digest(yaml, "one.yaml"), digest(yaml, "other.yml"));
}

#[test]
fn interrupted_cases_leave_nothing() {
    let place = Place::new(programs!());
    let bell = mcpeval_tests::run::Bell::hang(&place);
    let file = place.file("manifest.json", manifest(&[fidelity("hangs", "find_item")]).to_string());
    let run = Running::start(place.probe_command(&file, GATE, "hangs-with-children"));
    bell.wait_for("tools/call find_item");
    run.signal(rustix::process::Signal::TERM);
    let outcome = run.finish(mcpeval_tests::run::SETTLING);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(143), ""), "{}", outcome.stderr);
    place.assert_clean();
}
