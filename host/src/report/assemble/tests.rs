use serde_json::{Value, json};

use super::super::tests_support::{Example, lost, measured, stopped};
use super::*;
use crate::outcome::Measurement;
use crate::session::{Cause, Fault};

fn assembled(example: &Example, floors: &Floors) -> Assembled {
    assemble(&example.facts(), Label::new("shop").unwrap(), floors)
}

fn report(example: &Example) -> Report {
    assembled(example, &Floors::default()).report
}

/// What an example becomes once `change` was made: the breach, and the error.
fn broken(change: impl FnOnce(&mut Example)) -> (Vec<String>, Report) {
    let mut example = Example::worked();
    change(&mut example);
    let Assembled { report, breaches } = assembled(&example, &Floors::default());
    (breaches, report)
}

#[test]
fn the_worked_example_becomes_this_document() {
    let report = report(&Example::worked());
    let json = report.to_json().unwrap().replace(std::env::consts::OS, "OS").replace(std::env::consts::ARCH, "ARCH");
    let json = json.replace(VERSION, "VERSION");
    assert_eq!(json, include_str!("../goldens/worked.json"), "\n{json}");
    assert_eq!(report.exit_code(), 0);
}

#[test]
fn scores_fold_by_weight_and_untimed_scores_are_measurements() {
    let report = report(&Example::worked());
    let readiness = report.readiness.unwrap();
    assert_eq!((readiness.score, readiness.score_without_latency), (Percent(65), Percent(65)));
    let scores: Vec<u8> = readiness.areas.iter().map(|area| area.score.0).collect();
    assert_eq!(scores, [80, 48, 83, 50, 65, 67]);
    assert_eq!(readiness.measurement(UNTIMED), Some(67));
    assert_eq!(
        readiness.surface,
        Surface { tools: 4, read_only: 3, writers: 1, exercised: 2, invalid_entries: Some(1) }
    );
}

#[test]
fn losses_stand_in_catalog_then_table_order() {
    let report = report(&Example::worked());
    let readiness = report.readiness.unwrap();
    let catalog: Vec<_> = readiness.areas[1]
        .checks
        .iter()
        .map(|check| (check.tool.as_ref().map_or("", Subject::as_str), check.id.as_str()))
        .collect();
    assert_eq!(
        catalog,
        [
            ("get_price", "catalog.description"),
            ("get_price", "catalog.output-schema"),
            ("list_stores", "catalog.output-schema"),
            ("invalid-name#4", "catalog.entry"),
        ]
    );
}

#[test]
fn a_lost_check_never_shows_100() {
    let (_, report) = broken(|example| example.records[0].findings[0].score = Some(100));
    assert_eq!(report.readiness.unwrap().areas[0].checks[0].score, LostScore(99));
}

#[test]
fn passed_and_untested_checks_are_not_listed() {
    let (breaches, report) = broken(|example| {
        let findings = &mut example.records[0].findings;
        findings[0].verdict = Verdict::Pass;
        findings[0].reason = None;
        findings.push(Finding { verdict: Verdict::Untested, ..lost("protocol.ping", None, "protocol-call-failed") });
    });
    assert!(breaches.is_empty(), "{breaches:?}");
    assert!(report.readiness.unwrap().areas[0].checks.is_empty());
}

#[test]
fn whatever_is_not_declared_or_listed_is_a_fault_of_the_component() {
    const SECRET: &str = "s3cret free text";
    type Change = Box<dyn FnOnce(&mut Example)>;
    let cases: Vec<(&str, Change)> = vec![
        ("check", Box::new(|example| example.records[0].findings[0].check = SECRET.to_owned())),
        ("reason", Box::new(|example| example.records[0].findings[0].reason = Some(SECRET.to_owned()))),
        ("no reason", Box::new(|example| example.records[0].findings[0].reason = None)),
        ("subject", Box::new(|example| example.records[0].findings[0].subject = Some(SECRET.to_owned()))),
        (
            "reason of another check",
            Box::new(|example| example.records[3].findings[1].reason = Some("honesty-accepted-invalid".to_owned())),
        ),
        (
            "no-verdict label on a failure",
            Box::new(|example| example.records[0].findings[0].reason = Some("transport-timeout".to_owned())),
        ),
        ("metric", Box::new(|example| example.records[2].measurements.push(measured(SECRET, 1.0)))),
        ("metric twice", Box::new(|example| example.records[2].measurements.push(measured("catalog_tokens", 1.0)))),
        ("NaN", Box::new(|example| example.records[2].measurements[0] = measured("catalog_tokens", f64::NAN))),
        ("negative", Box::new(|example| example.records[2].measurements[0] = measured("catalog_tokens", -1.0))),
        ("huge", Box::new(|example| example.records[2].measurements[0] = measured("catalog_tokens", 1e300))),
        (
            "word",
            Box::new(|example| {
                example.records[2].measurements[0] = Measurement {
                    metric: "catalog_tokens".to_owned(),
                    subject: None,
                    value: Reading::Label(SECRET.to_owned()),
                };
            }),
        ),
        (
            "area",
            Box::new(|example| {
                example.records[0].areas.insert(SECRET.to_owned(), AreaScore { score: 1.0, untimed: None });
            }),
        ),
        (
            "score",
            Box::new(|example| {
                example.records[0].areas.insert("protocol".to_owned(), AreaScore { score: f64::NAN, untimed: None });
            }),
        ),
        (
            "untimed score",
            Box::new(|example| {
                example.records[0].areas.insert("protocol".to_owned(), AreaScore { score: 1.0, untimed: Some(101.0) });
            }),
        ),
    ];
    for (what, change) in cases {
        let (breaches, report) = broken(change);
        assert_eq!(breaches.len(), 1, "{what}: {breaches:?}");
        assert!(!breaches[0].contains(SECRET), "{what}: a breach does not repeat the text: {breaches:?}");
        assert_eq!(report.readiness_error, Some(NoVerdictLabel(NoVerdict::ComponentFault)), "{what}");
        assert_eq!(report.readiness, None, "{what}");
        assert_eq!((report.passed, report.exit_code()), (false, 3), "{what}");
        assert!(!report.to_json().unwrap().contains(SECRET), "{what}");
        let finished = report.readiness_partial.unwrap().areas.len();
        assert!((3..6).contains(&finished), "{what}: the other components' areas stay: {finished}");
    }
}

#[test]
fn an_area_without_a_score_is_a_fault_of_the_component() {
    let (breaches, report) = broken(|example| _ = example.records[3].areas.remove("coverage"));
    assert_eq!(breaches, ["no component gave a score for the area coverage"]);
    assert_eq!(report.readiness_error, Some(NoVerdictLabel(NoVerdict::ComponentFault)));
    assert_eq!(report.readiness_partial.unwrap().areas.len(), 5);
}

#[test]
fn areas_that_the_standard_does_not_hold_are_no_part_of_the_report() {
    let (breaches, report) = broken(|example| {
        example.standard.areas.retain(|area| area.name != "coverage");
        example.standard.areas[0].weight += 15;
        example.areas[3].retain(|area| area != "coverage");
    });
    assert!(breaches.is_empty(), "{breaches:?}");
    let readiness = report.readiness.unwrap();
    assert_eq!(readiness.areas.len(), 5);
    assert_eq!(readiness.surface.exercised, 0, "nobody measured it");
}

#[test]
fn a_stopped_run_keeps_what_it_finished() {
    let (breaches, report) = broken(|example| {
        let mut record = example.records.remove(3);
        record.areas.remove("coverage");
        record.areas.remove("reliability");
        example.records.push(stopped(record, NoVerdict::TransportTimeout, Some((7, 9))));
    });
    assert!(breaches.is_empty());
    let partial = report.readiness_partial.as_ref().unwrap();
    assert_eq!(partial.areas.iter().map(|area| area.name.as_str()).collect::<Vec<_>>(), {
        ["protocol", "catalog", "context", "error-honesty"]
    });
    assert_eq!(partial.tools, PartialTools { finished: 2, total: 2 }, "never more than there are");
    assert_eq!(report.readiness_error, Some(NoVerdictLabel(NoVerdict::TransportTimeout)));
    assert!(report.catalog.is_some());
    assert_eq!(report.exit_code(), 3);
}

#[test]
fn an_exhausted_budget_outranks_an_earlier_fault() {
    let (_, report) = broken(|example| {
        for (position, reason) in [(0, NoVerdict::ComponentFault), (3, NoVerdict::BudgetExceeded)] {
            let record = example.records[position].clone();
            example.records[position] = stopped(record, reason, None);
        }
    });
    assert_eq!(report.readiness_error, Some(NoVerdictLabel(NoVerdict::BudgetExceeded)));
}

#[test]
fn a_judgement_without_verdict_leaves_none_for_the_battery() {
    let (breaches, report) = broken(|example| {
        example.records[0].findings[0].verdict = Verdict::Error;
        example.records[0].findings[0].reason = Some("transport-closed".to_owned());
    });
    assert!(breaches.is_empty());
    assert_eq!(report.readiness_error, Some(NoVerdictLabel(NoVerdict::TransportClosed)));
}

#[test]
fn an_unreachable_server_still_has_a_report() {
    let mut example = Example::worked();
    (example.catalog, example.error) = (None, Some(NoVerdict::TransportError));
    example.records.clear();
    let floors = Floors { min_score: Some(50), ..Floors::default() };
    let report = assembled(&example, &floors).report;
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["readiness"], Value::Null);
    assert_eq!(json["readiness_error"], "transport-error");
    assert_eq!(json["catalog"], Value::Null);
    assert_eq!(json.get("readiness_partial"), None);
    assert_eq!(json["readiness_gate"]["passed"], Value::Null);
    assert_eq!(json["readiness_gate"]["shortfalls"], Value::Null);
    assert_eq!((report.passed, report.exit_code()), (false, 3));
}

#[test]
fn an_incomplete_listing_is_no_contract() {
    let (_, report) = broken(|example| {
        if let Some(catalog) = &mut example.catalog {
            catalog.fault = Some(Fault::new(Cause::TimedOut, "private"));
        }
    });
    assert_eq!(report.catalog, None);
    assert!(report.readiness.is_some());
}

#[test]
fn floors_are_held_against_the_scores() {
    let example = Example::worked();
    let floors = |min_score, areas: &[(&str, u8)], exclude_latency| Floors {
        min_score,
        min_areas: areas.iter().map(|(area, floor)| ((*area).to_owned(), *floor)).collect(),
        exclude_latency,
    };
    let met = assembled(&example, &floors(Some(65), &[("coverage", 67)], false)).report;
    assert_eq!((met.passed, met.exit_code()), (true, 0));
    assert_eq!(met.readiness_gate.unwrap().shortfalls, Some(vec![]));

    let missed = assembled(&example, &floors(Some(66), &[("catalog", 90), ("reliability", 66)], false)).report;
    assert_eq!((missed.passed, missed.exit_code()), (false, 1));
    assert_eq!(
        serde_json::to_value(missed.readiness_gate).unwrap(),
        json!({"min_score": 66, "min_areas": {"catalog": 90, "reliability": 66}, "exclude_latency": false, "passed": false,
            "shortfalls": [{"subject": "score", "observed": 65, "floor": 66}, {"subject": "catalog", "observed": 48, "floor": 90},
                {"subject": "reliability", "observed": 65, "floor": 66}]})
    );
    let untimed = assembled(&example, &floors(None, &[("reliability", 67)], true)).report;
    assert!(untimed.passed, "without latency reliability is 67");
}

#[test]
fn skipped_tools_are_sorted_and_the_choices_recorded() {
    let (_, report) = broken(|example| {
        example.profile.skip_tools = vec!["b".to_owned(), "a".to_owned(), "b".to_owned()];
        example.profile.arguments_sha256 = Some(Digest([1; 32]));
        example.profile.attested_read_only = true;
    });
    let readiness = report.readiness.unwrap();
    assert!(readiness.attested_read_only && readiness.measurement_profile.attested_read_only);
    assert_eq!(readiness.measurement_profile.skip_tools.iter().map(Label::as_str).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(readiness.measurement_profile.arguments_sha256.unwrap().as_str(), "01".repeat(32));
}

#[test]
fn of_equal_names_the_first_counts_in_the_surface() {
    let (_, report) = broken(|example| {
        if let Some(catalog) = &mut example.catalog {
            let mut again = catalog.entries[0].clone();
            again.repeated = true;
            catalog.entries.push(again);
        }
    });
    assert_eq!(report.readiness.unwrap().surface.tools, 4);
}
