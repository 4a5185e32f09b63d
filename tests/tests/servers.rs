//! The expectation table over the fixture servers, and its completeness.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::thread;

use mcpeval_tests::expect::{ROWS, Row, compare};
use mcpeval_tests::programs;
use mcpeval_tests::run::Place;
use mcpeval_tests::servers;
use serde_json::Value;

/// Runs at a time. Most wait for a timeout of the program most of their time.
const WORKERS: usize = 8;

/// Checks that exist to be lost: they stand in a report only when there is nothing to judge, so no server can keep them.
const ONLY_LOST: [&str; 5] =
    ["catalog.entry", "catalog.empty", "error-honesty.untestable", "reliability.none-exercised", "reliability.skipped"];

fn verify(rows: impl Iterator<Item = Row> + Send) -> Vec<String> {
    let work = Mutex::new(rows);
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(row) = { work.lock().expect("no thread panics with it").next() } {
                    let place = Place::new(programs!());
                    let faults = faults_of(&row, &place);
                    failures.lock().expect("no thread panics with it").extend(faults);
                }
            });
        }
    });
    failures.into_inner().expect("no thread panics with it")
}

/// What is wrong with a row, and with the place that it leaves.
fn faults_of(row: &Row, place: &Place) -> Vec<String> {
    let verdict = row.verify(place).err();
    let left = place.clean().err().map(|left| format!("{} over http {}: {left}", row.server, row.http));
    verdict.into_iter().chain(left).collect()
}

#[test]
fn every_server_loses_what_it_must_and_nothing_else() {
    let failures = verify(ROWS.iter().copied());
    assert!(failures.is_empty(), "{} of {} rows:\n{}", failures.len(), ROWS.len(), failures.concat());
}

#[test]
fn lanes_cost_no_points() {
    let servers = ["good", "slow", "fails-once", "always-fails", "dies-mid-line", "rejects-valid", "paged"];
    let rows = ROWS.iter().filter(|row| servers.contains(&row.server) && row.options == ["--lanes", "1"]);
    let failures = verify(rows.map(|row| Row { options: &["--lanes", "8"], ..*row }));
    assert!(failures.is_empty(), "{}", failures.concat());
}

#[test]
fn every_fixture_has_a_name_of_its_own_and_a_row_or_a_test() {
    // Servers that a test of their own uses, and processes that are no servers.
    let elsewhere = [
        "hangs-with-children",
        "hangs-at-call",
        "hangs-at-initialize",
        "crashes-often",
        "linger",
        "linger-own-session",
        "tools-1000",
        "tools-3000",
        "tools-by-capability",
        "drops-with-roots",
        "dies-with-sampling",
        "page-lost-with-roots",
        "refuses-capabilities",
        "asks-before-listing",
        "asks-on-stream",
        "faults-first",
        "dies-for-good",
        "tools-4200-failing",
        "names-without-letter",
        "paths",
        "writer-twin",
        "turns-writer",
    ];
    let cases = mcpeval_tests::cases::rows();
    let mut seen = BTreeSet::new();
    for fixture in servers::all() {
        assert!(seen.insert(fixture.name), "{} is there twice", fixture.name);
        let used = elsewhere.contains(&fixture.name)
            || ROWS.iter().any(|row| row.server == fixture.name)
            || cases.iter().any(|row| row.server == fixture.name);
        assert!(used, "no row uses {}", fixture.name);
    }
    for row in ROWS {
        assert!(seen.contains(row.server), "a row names {}, which does not exist", row.server);
    }
    assert!(seen.len() >= 30, "only {} servers", seen.len());
}

/// Check to reasons, of all areas of the shipped components.
fn shipped_checks() -> BTreeMap<String, BTreeSet<String>> {
    let place = Place::new(programs!());
    let document = |arguments: &[&str]| -> Value {
        serde_json::from_str(&place.run(arguments).stdout).expect("probes prints JSON")
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut checks: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for listed in list(&document(&["probes", "list", "--format", "json"])) {
        let Some(area) = listed["areas"][0].as_str() else { continue };
        for reason in list(&document(&["probes", "show", &format!("area:{area}")])["reasons"]) {
            let label = reason["label"].as_str().unwrap_or_default();
            for check in list(&reason["checks"]).iter().filter_map(Value::as_str) {
                checks.entry(check.to_owned()).or_default().insert(label.to_owned());
            }
        }
    }
    checks
}

#[test]
fn every_shipped_check_has_a_row_that_keeps_it_and_one_that_loses_it() {
    let checks = shipped_checks();
    assert!(checks.len() > 20, "the shipped components name only {} checks of the battery", checks.len());
    let mut gaps = Vec::new();
    for check in checks.keys() {
        if !ROWS.iter().any(|row| row.loses(check)) {
            gaps.push(format!("no server loses {check}"));
        }
        if !ONLY_LOST.contains(&check.as_str()) && !ROWS.iter().any(|row| row.keeps(check)) {
            gaps.push(format!("no server keeps {check}"));
        }
    }
    for check in ONLY_LOST {
        assert!(checks.contains_key(check), "{check} is not shipped");
    }
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

/// Reasons that manifests declare for a check and that no server can be made to give: `reliability.skipped` stands for
/// the first, the second is explained and never given, and where no session can be opened nothing is completed, so that
/// `protocol.ping` stands for the third.
const NEVER_GIVEN: [(&str, &str); 3] = [
    ("reliability.none-exercised", "coverage-skipped"),
    ("reliability.none-exercised", "reliability-none-exercised"),
    ("protocol.notification-status", "protocol-call-failed"),
];

#[test]
fn every_shipped_reason_is_given_by_some_server() {
    let mut gaps = Vec::new();
    for (check, reasons) in shipped_checks() {
        for reason in reasons {
            let pair = (check.as_str(), reason.as_str());
            let given = ROWS.iter().any(|row| row.gives(&check, &reason));
            if given == NEVER_GIVEN.contains(&pair) {
                gaps.push(format!("{check} {reason}"));
            }
        }
    }
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

#[test]
fn a_row_names_only_checks_and_reasons_that_are_shipped() {
    let checks = shipped_checks();
    for row in ROWS {
        if let mcpeval_tests::expect::Verdict::Loses(lost) = row.verdict {
            for (check, _, reason) in lost {
                let known = checks.get(*check).is_some_and(|reasons| reasons.contains(*reason));
                assert!(known, "{} expects {check} {reason}, which no manifest declares", row.server);
            }
        }
    }
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let nothing = BTreeSet::new();
    assert!(compare(&[("protocol.ping", "-", "protocol-ping-failed")], &nothing).is_err());
    let place = Place::new(programs!());
    let losses = place.score(&["--lanes", "1"], "no-ping").report().losses();
    assert!(compare(&[], &losses).is_err());
    assert!(compare(&[("protocol.ping", "find_item", "protocol-ping-failed")], &losses).is_err());
    assert!(compare(&[("protocol.ping", "-", "protocol-call-failed")], &losses).is_err());
}
