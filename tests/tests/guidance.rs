//! What each kind of client is given and told.

use mcpeval::report::schema::Document;
use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use serde_json::{Value, json};

/// No fixture server changes its list after the opening.
const AT_ONCE: [&str; 2] = ["--settle-ms", "0"];

fn document(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", outcome.stdout, outcome.stderr))
}

fn guidance(place: &Place, options: &[&str], server: &str) -> Outcome {
    place.on("guidance", &[&AT_ONCE, &["--format", "json"], options].concat(), server)
}

/// Profile and tool of each entry.
fn pairs(document: &Value, list: &str) -> Vec<String> {
    let entries = document[list].as_array().expect("a list");
    entries.iter().map(|entry| format!("{} {}", entry["profile"], entry["tool"]).replace('"', "")).collect()
}

fn tools(document: &Value, profile: &str) -> Value {
    let profiles = document["profiles"].as_array().expect("a list");
    profiles.iter().find(|seen| seen["profile"] == profile).map(|seen| seen["tools"].clone()).expect(profile)
}

#[test]
fn a_tool_that_only_some_clients_get_is_found_where_it_is_missed() {
    for http in [false, true] {
        let place = Place::new(programs!());
        let options = [&AT_ONCE[..], &["--format", "json", "--server", "shop"]].concat();
        let server = "tools-by-capability";
        let outcome =
            if http { place.on_http("guidance", &options, server) } else { place.on("guidance", &options, server) };
        let found = document(&outcome);
        assert_eq!((outcome.code, &found["passed"]), (Some(0), &json!(true)), "{}", outcome.stderr);
        assert_eq!(tools(&found, "none"), json!(["delete_item", "find_item", "get_price"]));
        assert_eq!(tools(&found, "sampling"), json!(["delete_item", "find_item", "get_price", "sum_up"]));
        assert_eq!(tools(&found, "all"), json!(["ask_user", "delete_item", "find_item", "get_price", "sum_up"]));
        let missed = [
            "none ask_user",
            "none sum_up",
            "roots ask_user",
            "roots sum_up",
            "sampling ask_user",
            "elicitation sum_up",
        ];
        assert_eq!(pairs(&found, "candidates"), missed);
        assert_eq!(found["candidates"][1]["available_in"], json!(["sampling", "all"]));
        assert_eq!(found["candidates"][1]["reason"], "referenced-tool-unavailable");
        assert_eq!(
            (&found["server"], &found["settle_ms"], &found["unlisted_references"]),
            (&json!("shop"), &json!(0), &json!(1))
        );
        assert!(!outcome.stdout.contains("node") && !outcome.stdout.contains("unsure"), "{}", outcome.stdout);
        assert!(place.journal_lines().iter().all(|line| !line.starts_with("tools/call")));
        place.assert_clean();
    }
}

#[test]
fn the_document_keeps_its_schema_and_does_not_change() {
    let place = Place::new(programs!());
    let schema = place.run(["schema", "guidance"]);
    assert_eq!(serde_json::from_str::<Value>(&schema.stdout).expect("a schema"), Document::Guidance.schema(&[]));
    let first = guidance(&place, &["--require-tool", "sum_up"], "tools-by-capability");
    assert_eq!(first.stdout, guidance(&place, &["--require-tool", "sum_up"], "tools-by-capability").stdout);
    assert!(first.stdout.ends_with("}\n"));
}

#[test]
fn a_required_tool_must_be_listed_for_everyone() {
    let place = Place::new(programs!());
    let found = document(&guidance(&place, &["--require-tool", "find_item"], "good"));
    assert_eq!((&found["passed"], &found["required_tools"]), (&json!(true), &json!(["find_item"])));
    let outcome = guidance(&place, &["--require-tool", "get_price", "--require-tool", "find_item"], "drops-with-roots");
    let found = document(&outcome);
    assert_eq!((outcome.code, &found["passed"]), (Some(1), &json!(false)), "{}", outcome.stderr);
    assert_eq!(pairs(&found, "defects"), ["roots find_item", "roots get_price", "all find_item", "all get_price"]);
    let outcome = guidance(
        &place,
        &["--require-tool", "get_price", "--profile", "sampling", "--profile", "none"],
        "drops-with-roots",
    );
    let profiles: Vec<_> =
        document(&outcome)["profiles"].as_array().expect("a list").iter().map(|seen| seen["profile"].clone()).collect();
    assert_eq!((outcome.code, profiles), (Some(0), vec![json!("none"), json!("sampling")]));
}

#[test]
fn an_incomplete_profile_leaves_no_verdict() {
    for (server, lost) in [
        ("dies-with-sampling", &["sampling", "all"][..]),
        ("page-lost-with-roots", &["roots", "all"]),
        ("refuses-capabilities", &["roots", "sampling", "elicitation", "all"]),
    ] {
        let place = Place::new(programs!());
        let outcome = guidance(&place, &["--require-tool", "nothing"], server);
        let found = document(&outcome);
        assert_eq!(
            (outcome.code, &found["passed"], &found["complete"]),
            (Some(3), &json!(null), &json!(false)),
            "{server}"
        );
        assert_eq!((&found["candidates"], &found["defects"]), (&json!([]), &json!([])), "{server}");
        for seen in found["profiles"].as_array().expect("a list") {
            let is_lost = lost.iter().any(|lost| seen["profile"] == *lost);
            assert_eq!(
                seen["error"],
                if is_lost { json!("profile-incomplete") } else { json!(null) },
                "{server} {seen}"
            );
            assert_eq!(seen["tools"].is_null(), is_lost, "{server} {seen}");
            assert_eq!(
                seen["instructions_present"],
                if is_lost { json!(null) } else { json!(false) },
                "{server} {seen}"
            );
        }
        assert!(outcome.stderr.contains(&format!("the profile {} is incomplete", lost[0])), "{}", outcome.stderr);
        place.assert_clean();
    }
    let place = Place::new(programs!());
    let outcome = guidance(&place, &[], "dies-with-sampling");
    assert!(outcome.stderr.contains("no model, no shop"), "{}", outcome.stderr);
}

#[test]
fn questions_of_the_server_are_answered_as_declared() {
    let place = Place::new(programs!());
    let found = document(&guidance(&place, &[], "asks-before-listing"));
    let with = |more: &[&str]| {
        let mut names = [&["delete_item", "find_item", "get_price"], more].concat();
        names.sort_unstable();
        json!(names)
    };
    assert_eq!(tools(&found, "none"), with(&[]));
    assert_eq!(tools(&found, "all"), with(&["elicitation", "roots", "sampling"]));
    for profile in ["roots", "sampling", "elicitation"] {
        assert_eq!(tools(&found, profile), with(&[profile]));
    }
    let outcome = place.on_http("guidance", &AT_ONCE, "asks-on-stream");
    assert_eq!(outcome.code, Some(0), "{} {}", outcome.stdout, outcome.stderr);
    place.assert_clean();
}

#[test]
fn who_cannot_be_reached_leaves_only_the_cause() {
    for (server, options, words) in [
        ("exits-at-once", &[][..], "missing API_KEY"),
        ("silent", &["--startup-timeout", "1"], "silent"),
        ("handshake-declined", &[], "declined initialize"),
    ] {
        let place = Place::new(programs!());
        let outcome = guidance(&place, options, server);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{server}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{server}: {}", outcome.stderr);
        place.assert_clean();
    }
}

#[test]
fn the_demo_gives_and_tells_the_same_to_all() {
    let place = Place::new(programs!());
    let outcome = place.run(["guidance", "--settle-ms", "0", "--", programs!().mcpeval, "demo"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert_eq!(lines[5], "probed guidance pass candidates=0 defects=0");
}

#[test]
fn a_published_server_tells_all_of_tools_that_some_have() {
    let Some(real) = Real::find("guidance of server-everything") else { return };
    let place = Place::new(programs!());
    let mut command = place.mcpeval(["guidance", "--format", "json", "--require-tool", "echo", "--"]);
    command.args(real.node("everything"));
    let outcome = Running::start(command).finish(PATIENCE);
    let found = document(&outcome);
    assert_eq!((outcome.code, &found["passed"]), (Some(0), &json!(true)), "{}", outcome.stderr);
    let candidates = pairs(&found, "candidates");
    assert_eq!(candidates.len(), 9, "{candidates:?}");
    assert!(candidates.contains(&"sampling trigger-elicitation-request".to_owned()), "{candidates:?}");
    place.assert_clean();
}

#[test]
fn options_have_bounds() {
    let place = Place::new(programs!());
    for options in
        [&["--settle-ms", "5001"][..], &["--profile", "none-at-all"], &["--require-tool", "a b"], &["--demo"]]
    {
        let outcome = place.on("guidance", options, "good");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{options:?} {}", outcome.stderr);
    }
}
