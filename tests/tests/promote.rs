//! `mcpeval promote` and `findings`: from recorded failures to what should be fixed.

use std::fs;

use mcpeval::report::schema::Document;
use mcpeval::services::schema;
use mcpeval::store::Home;
use mcpeval::store::hash;
use mcpeval::store::journal::Journal;
use mcpeval::store::lifecycle::Lifecycle;
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, Place};
use mcpeval_tests::traffic::{
    SERVER, TEMPLATE, TOOL, call, days_ago, event, failed, home, note, worked_example, write,
};
use serde_json::{Value, json};

fn place(lines: &[Value], notes: &[Value]) -> (Place, Home) {
    let place = Place::new(programs!());
    let home = home(&place);
    write(&home, Journal::Calls, lines);
    write(&home, Journal::Annotations, notes);
    good(&place, &["index"]);
    (place, home)
}

fn good(place: &Place, arguments: &[&str]) -> String {
    let outcome = place.run(arguments);
    assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.stderr);
    outcome.stdout
}

/// The findings as a document, which keeps its schema.
fn findings(place: &Place, options: &[&str]) -> Vec<Value> {
    let text = good(place, &[&["findings", "--format", "json"], options].concat());
    let document: Value = serde_json::from_str(&text).expect("a document");
    schema::validate(&Document::Findings.schema(&[]), &document).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    document.as_array().expect("an array").clone()
}

fn refused(outcome: &Outcome, code: i32, told: &str) {
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(code), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
}

fn near(found: &Value, expected: f64) {
    let found = found.as_f64().expect("a number");
    // The newest failure grows older while the test runs.
    assert!((found - expected).abs() < 2e-5, "{found} is not {expected}");
}

/// Acceptance check 14.
#[test]
fn the_worked_example() {
    let (place, home) = place(&worked_example(2), &[]);
    assert_eq!(good(&place, &["promote"]), "promoted 1 of 1 issues\n");
    let found = findings(&place, &[]);
    let finding = &found[0];
    near(&finding["score"], 0.417_357);
    near(&finding["confidence"], 0.119_994);
    near(&finding["recency"], std::f64::consts::FRAC_1_SQRT_2);
    let expected = json!({
        "finding_id": hash::finding(SERVER, TOOL, TEMPLATE), "state": "open", "probe_id": null, "consecutive_passes": 0,
        "server": SERVER, "tool": TOOL, "err_code": "-32001", "err_codes": ["-32001"], "err_template_id": TEMPLATE,
        "failures": 6, "calls": 24, "sessions": 2, "cost": 4.5, "blast": 2, "rate": 0.25,
        "threshold": 0.324_250_563_780_762,
        "severity": "low", "class": "recurring-error", "retryable": null, "repro": {"path": "str<32", "limit": "int"}
    });
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&finding[key], value, "{key}");
    }
    assert_eq!(found.len(), 1);
    let standing = Lifecycle::to_read(&home).unwrap().unwrap().standing().unwrap();
    assert_eq!(standing.keys().collect::<Vec<_>>(), [&hash::finding(SERVER, TOOL, TEMPLATE)]);
    place.assert_clean();
}

/// Acceptance check 15.
#[test]
fn a_note_of_a_false_success_moves_the_call_that_it_names_and_no_other() {
    let lines: Vec<Value> = (1..=12)
        .map(|n| {
            let mut line = failed(call(n, n, 1, days_ago(1)), -32_001);
            line["error"]["retryable"] = json!(true);
            line
        })
        .collect();
    let (place, home) = place(&lines, &[]);
    assert_eq!(good(&place, &["promote"]), "promoted 1 of 1 issues\n");
    let before = findings(&place, &[])[0].clone();
    assert_eq!((&before["failures"], &before["class"]), (&json!(12), &json!("retry-did-not-recover")));
    write(&home, Journal::Annotations, &[note(&event(5, 1), "false-success")]);
    good(&place, &["index"]);
    assert_eq!(good(&place, &["promote"]), "promoted 1 of 2 issues\n");
    let found = findings(&place, &[]);
    assert_eq!((found.len(), &found[0]["failures"], &found[0]["class"]), (1, &json!(11), &before["class"]));
    assert_eq!(found[0]["finding_id"], before["finding_id"]);
    let reading = mcpeval::store::index::open(&home).unwrap().unwrap();
    let query = "SELECT failures, calls, finding_id FROM issues WHERE class = 'false-success'";
    let row: (i64, i64, String) =
        reading.connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    assert_eq!(row, (1, 12, hash::false_success(SERVER, TOOL)));

    // A call that succeeded, in another session, belongs to the same group.
    write(&home, Journal::Calls, &[call(13, 13, 1, days_ago(1)), call(13, 13, 2, days_ago(1))]);
    write(&home, Journal::Annotations, &[note(&event(13, 1), "false-success")]);
    good(&place, &["index"]);
    assert_eq!(good(&place, &["promote", "--threshold", "0"]), "promoted 2 of 2 issues\n");
    let found = findings(&place, &[]);
    let group = found.iter().find(|finding| finding["class"] == "false-success").expect("a group");
    assert_eq!(
        (&group["failures"], &group["calls"], &group["sessions"], &group["cost"], &group["err_code"]),
        (&json!(2), &json!(14), &json!(2), &json!(1.5), &json!("-32001"))
    );
}

/// Acceptance check 21.
#[test]
fn an_empty_home_has_no_findings_and_stays_as_it_is() {
    let place = Place::new(programs!());
    for options in [&["findings"][..], &["findings", "--format", "json"], &["findings", "--state", "open", "--quiet"]] {
        assert_eq!(good(&place, options), "[]\n");
    }
    assert!(good(&place, &["findings", "--format", "md"]).contains("None."));
    assert!(!home(&place).root().exists());
    fs::create_dir(home(&place).root()).expect("a folder");
    assert_eq!(good(&place, &["findings"]), "[]\n");
    assert_eq!(fs::read_dir(home(&place).root()).expect("a folder").count(), 0);
    refused(&place.run(["promote"]), 3, "run mcpeval index");
    assert_eq!(fs::read_dir(home(&place).root()).expect("a folder").count(), 0);
}

/// Acceptance check 22.
#[test]
fn one_session_promotes_nothing() {
    let (place, home) = place(&worked_example(1), &[]);
    assert_eq!(good(&place, &["promote"]), "promoted 0 of 1 issues\n");
    assert_eq!(good(&place, &["promote", "--threshold", "0"]), "promoted 0 of 1 issues\n");
    assert_eq!(findings(&place, &[]), Vec::<Value>::new());
    assert!(!home.lifecycle_db().exists(), "nothing has a state");
}

#[test]
fn the_threshold_is_the_options_the_homes_or_its_own() {
    let (place, home) = place(&worked_example(2), &[]);
    assert_eq!(good(&place, &["promote", "--threshold", "0.42"]), "promoted 0 of 1 issues\n");
    fs::write(home.config_file(), "{\"promotion_threshold\": 0.42}").expect("a file");
    assert_eq!(good(&place, &["promote"]), "promoted 0 of 1 issues\n");
    assert_eq!(good(&place, &["promote", "--threshold", "0.1"]), "promoted 1 of 1 issues\n");
    let found = findings(&place, &[]);
    // Four times the threshold, and no case yet to check it with.
    assert_eq!((&found[0]["threshold"], &found[0]["severity"]), (&json!(0.1), &json!("medium")));
    for (text, told) in [
        ("{\"promotion_treshold\": 1}", "promotion_threshold"),
        ("{\"promotion_threshold\": -1}", "at least 0"),
        ("{", "config.json"),
    ] {
        fs::write(home.config_file(), text).expect("a file");
        refused(&place.run(["promote"]), 2, told);
    }
    assert_eq!(findings(&place, &[]), found);
    for wrong in ["-1", "NaN", "inf", "x", ""] {
        refused(&place.run(["promote", "--threshold", wrong]), 2, "at least 0");
    }
}

#[test]
fn classes_of_real_windows() {
    let retryable = |mut line: Value, template: &str| {
        line["error"]["retryable"] = json!(true);
        line["error"]["template_id"] = json!(template);
        line
    };
    let lines: Vec<Value> = (1..=4)
        .flat_map(|n| {
            let at = |seq: u64| call(n, n, seq, days_ago(1));
            let mut unanswered = at(20);
            unanswered["outcome"] = json!("unanswered");
            unanswered["latency_ms"] = json!(10_000);
            let mut withdrawn = unanswered.clone();
            withdrawn["identity"]["event_id"] = json!(event(n, 30));
            (withdrawn["seq"], withdrawn["cancelled"]) = (json!(30), json!(true));
            let mut synthetic = failed(at(40), 1);
            synthetic["kind"] = json!("synthetic");
            let mut unstable = failed(at(50), i64::try_from(n).unwrap());
            unstable["error"]["template_id"] = json!("00000000000000cc");
            [
                retryable(failed(at(1), 1), "00000000000000aa"),
                at(2),
                retryable(failed(at(10), 1), "00000000000000bb"),
                unanswered,
                withdrawn,
                synthetic,
                unstable,
                failed(at(60), 1),
            ]
        })
        .collect();
    let (place, _) = place(&lines, &[note(&event(1, 60), "blocked-optimal-path")]);
    assert_eq!(good(&place, &["promote", "--threshold", "0"]), "promoted 5 of 5 issues\n");
    let mut found: Vec<String> = findings(&place, &[])
        .iter()
        .map(|finding| {
            let word = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            format!("{} {} {} of {}", word("err_template_id"), word("class"), finding["failures"], finding["calls"])
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "00000000000000aa recovers-on-retry 4 of 28",
            "00000000000000bb retry-did-not-recover 4 of 28",
            "00000000000000cc unstable-error-code 4 of 28",
            "9f21c07ab3d4e58c blocked-optimal-path 4 of 28",
            "unanswered recurring-error 4 of 28",
        ]
    );
}

#[test]
fn findings_are_shown_to_agents_and_people_and_by_state() {
    let mut other = failed(call(20, 20, 1, days_ago(1)), 5);
    other["tool"] = json!("save_doc");
    let mut again = failed(call(21, 21, 1, days_ago(1)), 5);
    again["tool"] = json!("save_doc");
    let (place, _) = place(&[worked_example(2), vec![other, again]].concat(), &[]);
    assert_eq!(good(&place, &["promote"]), "promoted 2 of 2 issues\n");
    let found = findings(&place, &[]);
    let score = |n: usize| found[n]["score"].as_f64().expect("a score");
    assert!(score(0) >= score(1), "best score first");
    let lines = good(&place, &["findings"]);
    assert_eq!(lines.lines().count(), 2);
    let id = hash::finding(SERVER, TOOL, TEMPLATE);
    let line = format!(
        "{id} files/read_doc state=open severity=low class=recurring-error probe=none failures=6/24 sessions=2 \
         repro={{\"limit\":\"int\",\"path\":\"str<32\"}}"
    );
    assert!(lines.lines().any(|one| one == line), "{lines}");
    let page = good(&place, &["findings", "--format", "md"]);
    for part in ["not fixed yet", "**What to do.**", &format!("mcpeval generate --finding {id}")] {
        assert!(page.contains(part), "{page}");
    }
    assert_eq!(findings(&place, &["--state", "open"]), found);
    assert_eq!(findings(&place, &["--state", "closed"]), Vec::<Value>::new());
    refused(&place.run(["findings", "--state", "shut"]), 2, "possible values");
    let schema = good(&place, &["schema", "findings"]);
    assert_eq!(serde_json::from_str::<Value>(&schema).expect("a schema"), Document::Findings.schema(&[]));
}

#[test]
fn a_promotion_answers_the_same_twice_and_follows_the_journals() {
    let (place, home) = place(&worked_example(2), &[]);
    good(&place, &["promote"]);
    let without_age = || {
        let mut found = findings(&place, &[]);
        for finding in &mut found {
            for key in ["recency", "score"] {
                finding[key] = Value::Null;
            }
        }
        found
    };
    let before = without_age();
    good(&place, &["promote"]);
    assert_eq!(without_age(), before);
    fs::remove_dir_all(home.store()).expect("a folder");
    assert_eq!(good(&place, &["index"]), "indexed 0 calls, 0 failures, 0 annotations\n");
    // The answer of the last promote, until the next.
    assert_eq!(without_age(), before);
    assert_eq!(good(&place, &["promote"]), "promoted 0 of 0 issues\n");
    assert_eq!(without_age(), Vec::<Value>::new());
}
