use serde_json::json;

use super::super::assemble::{Floors, assemble};
use super::super::document::{Gate, NoVerdictLabel};
use super::super::schema;
use super::super::tests_support::Example;
use super::*;
use crate::outcome::NoVerdict;

fn entry(endpoint: &str, cases: &[(&str, Option<&str>)]) -> Entry {
    let mut report = assemble(&Example::worked().facts(), Label::new("shop").unwrap(), &Floors::default()).report;
    report.cases = cases
        .iter()
        .map(|(id, reason)| {
            serde_json::from_value(
                json!({"id": id, "probe": "latency-budget", "tool": null, "passed": reason.is_none(),
                "attempts": 1, "reason": reason, "hint": null, "measurements": {}}),
            )
            .unwrap()
        })
        .collect();
    let passed = u32::try_from(report.cases.iter().filter(|case| case.passed).count()).unwrap();
    report.gate = Some(Gate { passed, total: u32::try_from(cases.len()).unwrap() });
    Entry { endpoint: Label::new(endpoint).unwrap(), report }
}

fn three() -> Comparison {
    let late = Some("latency-budget-exceeded");
    let mut down = entry("down", &[("search", Some("handshake-failed")), ("list", Some("handshake-failed"))]);
    (down.report.readiness, down.report.readiness_error) = (None, Some(NoVerdictLabel(NoVerdict::HandshakeFailed)));
    Comparison {
        entries: vec![
            entry("blue", &[("search", None), ("list", None)]),
            entry("green-2", &[("search", late), ("list", None)]),
            down,
        ],
    }
}

#[test]
fn the_grid_sets_cases_gates_and_scores_beside_each_other() {
    let comparison = three();
    assert_eq!(
        text::render(&comparison, false),
        "
                       blue  green-2  down
search latency-budget  pass  fail     error
list latency-budget    pass  pass     error
gate                   2/2   1/2      0/2
readiness              65    65       error
area:protocol          80    80       error
area:catalog           48    48       error
area:context           83    83       error
area:error-honesty     50    50       error
area:reliability       65    65       error
area:coverage          67    67       error
differs search latency-budget green-2 fail reason=latency-budget-exceeded
differs search latency-budget down error reason=handshake-failed
differs list latency-budget down error reason=handshake-failed
differs readiness down error reason=handshake-failed
"
        .strip_prefix('\n')
        .unwrap()
    );
    let styled = text::render(&comparison, true);
    assert_eq!(anstream::adapter::strip_str(&styled).to_string(), text::render(&comparison, false));
    assert_eq!(comparison.exit_code(), 3);
}

#[test]
fn comparing_does_not_gate() {
    let comparison = Comparison { entries: three().entries.into_iter().take(2).collect() };
    assert_eq!(comparison.exit_code(), 0);
}

#[test]
fn what_only_one_target_has_is_absent_in_the_others() {
    let comparison = Comparison { entries: vec![entry("a", &[("only-a", None)]), entry("b", &[("only-b", None)])] };
    let rows = comparison.rows();
    assert_eq!(rows[0].subject.to_string(), "only-a latency-budget");
    assert_eq!(rows[0].cells[1], Cell::Absent);
    assert_eq!(rows[1].cells[0], Cell::Absent);
    assert!(rows[0].differs());
    assert!(!rows[3].differs(), "equal scores");
}

#[test]
fn lines_that_no_target_has_are_left_out() {
    let mut comparison = Comparison { entries: vec![entry("a", &[]), entry("b", &[])] };
    for entry in &mut comparison.entries {
        (entry.report.gate, entry.report.readiness) = (None, None);
    }
    assert!(comparison.rows().is_empty());
}

#[test]
fn the_document_is_an_array_that_its_schema_describes() {
    let comparison = three();
    let document: serde_json::Value = serde_json::from_str(&comparison.to_json().unwrap()).unwrap();
    assert_eq!(document[1]["endpoint"], "green-2");
    assert_eq!(document[1]["report"]["schema"], "mcpeval.probe-report/v2");
    let validator = jsonschema::draft202012::new(&schema::plain::<Comparison>()).unwrap();
    assert_eq!(validator.iter_errors(&document).map(|error| error.instance_path().to_string()).next(), None);
    let mut open = document.clone();
    open[0]["more"] = json!(1);
    assert!(!validator.is_valid(&open));
}
