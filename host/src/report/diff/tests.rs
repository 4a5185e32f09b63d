use serde_json::{Value, json};

use super::super::assemble::{Floors, assemble};
use super::super::document::{Class, Contract, ContractTool, Hex16, Label};
use super::super::schema;
use super::super::tests_support::Example;
use super::*;

const LATE: &str = "latency-budget-exceeded";

fn report(cases: &[(&str, Option<&str>)]) -> Report {
    let mut report = assemble(&Example::worked().facts(), Label::new("shop").unwrap(), &Floors::default()).report;
    report.cases = cases
        .iter()
        .map(|(id, reason)| {
            serde_json::from_value(
                json!({"id": id, "probe": "latency-budget", "tool": "search", "passed": reason.is_none(),
                "attempts": 3, "first_failure": null, "reason": reason, "hint": null, "detail": null,
                "measurements": {"latency_ms": 100 + id.len(), "tool_count": 1}}),
            )
            .unwrap()
        })
        .collect();
    report
}

fn judge(baseline: &Report, current: &Report, gates: Gates) -> Judged {
    let judged = compare(baseline, current, gates).unwrap();
    let validator = jsonschema::draft202012::new(&schema::plain_diff()).unwrap();
    let document = serde_json::to_value(&judged.diff).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    judged
}

fn code(baseline: &Report, current: &Report, gates: Gates) -> u8 {
    compare(baseline, current, gates).map_or_else(|error| error.exit_code(), |judged| judged.exit_code)
}

#[test]
fn every_pair_of_results_has_its_verdict() {
    let states = [None, Some(LATE), Some("unexpected-outcome"), Some("transport-timeout")];
    let expected = [
        ["unchanged", "regressed", "regressed", "errored"],
        ["fixed", "unchanged", "changed", "errored"],
        ["fixed", "changed", "unchanged", "errored"],
        ["fixed", "changed", "changed", "errored"],
    ];
    for (then, row) in states.iter().zip(expected) {
        for (now, verdict) in states.iter().zip(row) {
            let judged = judge(&report(&[("a", *then)]), &report(&[("a", *now)]), Gates::default());
            assert_eq!(judged.diff.cases[0].verdict.word(), verdict, "{then:?} {now:?}");
            assert_eq!(judged.exit_code, 0, "nothing is asked");
        }
    }
}

#[test]
fn cases_match_by_id_and_kind_in_the_order_of_the_baseline() {
    let baseline = report(&[("z", None), ("gone", None), ("b", Some(LATE)), ("kind", None)]);
    let mut current = report(&[("new", None), ("b", None), ("kind", None), ("z", Some(LATE))]);
    current.cases[2].probe = KindName("token-cost".to_owned());
    current.cases[3].measurements.insert("total_tokens".to_owned(), Measured::Whole(4));
    let Judged { diff, .. } = judge(&baseline, &current, Gates::default());
    let ids = |ids: &[CaseId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(diff.cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), ["z", "b"]);
    assert_eq!(
        (ids(&diff.removed), ids(&diff.added)),
        (vec!["gone".into(), "kind".into()], vec!["new".into(), "kind".into()])
    );
    assert_eq!(
        serde_json::to_value(diff.summary).unwrap(),
        json!({"regressed": 1, "fixed": 1, "changed": 0, "unchanged": 0, "errored": 0, "removed": 2, "added": 2})
    );
    assert_eq!(
        serde_json::to_value(&diff.cases[0]).unwrap(),
        json!({"id": "z", "probe": "latency-budget", "verdict": "regressed", "baseline_reason": null, "current_reason": LATE,
            "measurements": {"latency_ms": {"baseline": 101, "current": 101}}}),
        "only what both measured"
    );
}

#[test]
fn gates_on_cases() {
    let gates = |regression, change, removed| Gates { regression, change, removed, ..Gates::default() };
    let pass = report(&[("a", None)]);
    let fail = report(&[("a", Some(LATE))]);
    let other = report(&[("a", Some("unexpected-outcome"))]);
    let error = report(&[("a", Some("transport-closed"))]);
    for (then, now, gates, expected) in [
        (&pass, &fail, gates(true, false, false), 1),
        (&pass, &fail, gates(false, true, false), 1),
        (&pass, &fail, gates(false, false, true), 0),
        (&fail, &other, gates(true, false, true), 0),
        (&fail, &other, gates(false, true, false), 1),
        (&error, &fail, gates(true, false, false), 0),
        (&error, &fail, gates(false, true, false), 1),
        (&fail, &fail, gates(true, true, true), 0),
        (&pass, &error, gates(true, false, false), 3),
        (&pass, &error, gates(false, true, false), 3),
        (&pass, &error, gates(false, false, true), 3),
        (&error, &error, gates(true, false, false), 3),
        (&pass, &error, Gates::default(), 0),
        (&pass, &report(&[]), gates(true, true, false), 0),
        (&pass, &report(&[]), gates(false, false, true), 1),
        (&report(&[]), &fail, gates(true, true, true), 0),
    ] {
        assert_eq!(code(then, now, gates), expected, "{gates:?} {:?} {:?}", then.cases, now.cases);
    }
    let (both, mixed) =
        (report(&[("a", None), ("b", None)]), report(&[("a", Some(LATE)), ("b", Some("transport-closed"))]));
    assert_eq!(code(&both, &mixed, gates(true, false, false)), 3, "3 outranks 1");
}

#[test]
fn scores_compare_when_measured_alike() {
    let drop = |max_drop, exclude_latency| Gates { max_drop: Some(max_drop), exclude_latency, ..Gates::default() };
    let mut baseline = report(&[]);
    let current = report(&[]);
    let readiness = baseline.readiness.as_mut().unwrap();
    (readiness.score, readiness.score_without_latency) = (Percent(75), Percent(66));
    readiness.measurement_profile.evaluator_version = super::super::document::Version("0.1.77".to_owned());
    let judged = judge(&baseline, &current, drop(10, false));
    assert!(judged.diff.readiness.comparable);
    assert_eq!(
        judged.diff.readiness_gate,
        Some(DropGate { max_drop: Percent(10), exclude_latency: false, drop: Percent(10), passed: true })
    );
    assert_eq!(judged.exit_code, 0, "bounds are inclusive");
    assert_eq!(code(&baseline, &current, drop(9, false)), 1);
    assert_eq!(code(&baseline, &current, drop(1, true)), 0);
    assert_eq!(code(&baseline, &current, drop(0, true)), 1);
    assert_eq!(judge(&current, &baseline, drop(0, false)).diff.readiness_gate.unwrap().drop, Percent(0), "it rose");

    let refused = |change: fn(&mut Report), words: &str| {
        let mut other = report(&[]);
        change(&mut other);
        for (then, now) in [(&other, &current), (&current, &other)] {
            let fault = compare(then, now, drop(100, false)).unwrap_err();
            assert_eq!(fault.exit_code(), 2);
            assert!(fault.to_string().contains(words), "{fault}");
            let judged = judge(then, now, Gates::default());
            assert!(!judged.diff.readiness.comparable);
            assert!(text::render(&judged.diff, false).contains(" not comparable: "));
        }
    };
    refused(|other| other.readiness.as_mut().unwrap().measurement_profile.lanes = 1, "different lanes");
    refused(
        |other| {
            other.readiness.as_mut().unwrap().measurement_profile.evaluator_version =
                super::super::document::Version("0.2.0".to_owned());
        },
        "different evaluator_version",
    );
    refused(
        |other| {
            let profile = &mut other.readiness.as_mut().unwrap().measurement_profile;
            (profile.schema, profile.lanes) = (super::super::document::EARLIER_PROFILE_SCHEMA, 0);
        },
        "different schema",
    );
    refused(
        |other| other.readiness.as_mut().unwrap().standard = StandardLabel("acme/1".to_owned()),
        "different standards",
    );
    refused(|other| other.readiness = None, "holds no score");
    refused(
        |other| {
            other.readiness = None;
            other.legacy_score = Some(Percent(3));
        },
        "a legacy score",
    );
}

#[test]
fn a_readiness_without_verdict_leaves_its_gate_undecided() {
    let gates = Gates { max_drop: Some(5), ..Gates::default() };
    let baseline = report(&[]);
    let mut current = report(&[]);
    (current.readiness, current.readiness_error) =
        (None, Some(super::super::document::NoVerdictLabel(crate::outcome::NoVerdict::TransportClosed)));
    let judged = judge(&baseline, &current, gates);
    assert_eq!((judged.exit_code, judged.diff.readiness_gate), (3, None));
    assert_eq!(code(&baseline, &current, Gates::default()), 0);
    assert_eq!(code(&current, &current, gates), 2, "a baseline without a score is a usage error");
    let breaking = Gates { breaking: true, ..gates };
    current.catalog = None;
    assert_eq!(code(&baseline, &current, breaking), 2, "2 outranks 3");
}

#[test]
fn reports_of_different_servers_do_not_compare() {
    let mut other = report(&[]);
    other.server = Label::new("mall").unwrap();
    let fault = compare(&report(&[]), &other, Gates::default()).unwrap_err();
    assert_eq!(
        (fault.exit_code(), fault.to_string().as_str()),
        (2, "the reports are of different servers, shop and mall")
    );
}

type Tools<'a> = &'a [(&'a str, Class, &'a [&'a str], &'a [(&'a str, u8)], Option<u8>)];

fn contract(tools: Tools<'_>) -> Contract {
    let hex = |text: &str| Hex16(super::super::canonical::short_digest(text.as_bytes()));
    let tools = tools.iter().map(|(name, class, required, parameters, output)| ContractTool {
        name: Label::new(name).unwrap(),
        class: *class,
        required: required.iter().map(|name| hex(name)).collect(),
        parameters: parameters.iter().map(|(name, constraint)| (hex(name), hex(&constraint.to_string()))).collect(),
        output_schema: output.map(|output| hex(&output.to_string())),
    });
    Contract { tools: tools.collect() }
}

fn changes(before: Tools<'_>, after: Tools<'_>) -> Vec<String> {
    let line = |change: &CatalogChange| {
        let classes = change.from.zip(change.to).map(|(from, to)| format!(" {}->{}", from.word(), to.word()));
        format!(
            "{} {} {} {}{}",
            change.severity.word(),
            change.tool,
            change.change.word(),
            change.count,
            classes.unwrap_or_default()
        )
    };
    let diff = catalog::compare(Some(&contract(before)), Some(&contract(after)));
    assert!(diff.comparable);
    diff.changes.iter().map(line).collect()
}

#[test]
fn changes_of_the_catalog_have_a_severity_and_an_order() {
    use Class::{ReadOnly, Unannotated, Writer};
    assert_eq!(
        changes(
            &[
                ("gone", ReadOnly, &[], &[], None),
                ("search", ReadOnly, &["q"], &[("q", 1), ("old", 1), ("old2", 1), ("lang", 1), ("opt", 1)], Some(1)),
                ("tidy", Writer, &[], &[], None),
            ],
            &[
                ("new", ReadOnly, &[], &[], None),
                (
                    "search",
                    Unannotated,
                    &["opt", "must"],
                    &[("q", 1), ("lang", 2), ("opt", 1), ("must", 1), ("free", 1)],
                    Some(2)
                ),
                ("tidy", ReadOnly, &[], &[], Some(1)),
            ],
        ),
        [
            "breaking gone tool-removed 1",
            "breaking search class-changed 1 read-only->unannotated",
            "breaking search parameter-removed 2",
            "breaking search parameter-required 2",
            "review search output-schema-changed 1",
            "review search parameter-changed 1",
            "compatible new tool-added 1",
            "compatible search parameter-added 1",
            "compatible search parameter-optional 1",
            "compatible tidy class-changed 1 writer->read-only",
            "compatible tidy output-schema-added 1",
        ]
    );
    for (then, now, line) in [
        (ReadOnly, Writer, "breaking a class-changed 1 read-only->writer"),
        (Unannotated, Writer, "breaking a class-changed 1 unannotated->writer"),
        (Unannotated, ReadOnly, "compatible a class-changed 1 unannotated->read-only"),
        (Writer, Unannotated, "compatible a class-changed 1 writer->unannotated"),
    ] {
        assert_eq!(changes(&[("a", then, &[], &[], None)], &[("a", now, &[], &[], None)]), [line]);
    }
    let changed = |before: (&[&str], &[(&str, u8)], Option<u8>), after: (&[&str], &[(&str, u8)], Option<u8>)| {
        changes(&[("a", ReadOnly, before.0, before.1, before.2)], &[("a", ReadOnly, after.0, after.1, after.2)])
    };
    assert_eq!(changed((&[], &[], Some(1)), (&[], &[], None)), ["breaking a output-schema-removed 1"]);
    assert_eq!(changed((&["p"], &[("p", 1)], None), (&[], &[], None)), ["breaking a parameter-removed 1"]);
    assert_eq!(changed((&[], &[], None), (&["p"], &[("p", 1)], None)), ["breaking a parameter-required 1"]);
    assert_eq!(changed((&["p"], &[], None), (&[], &[], None)), ["compatible a parameter-optional 1"]);
    assert_eq!(changed((&["p"], &[], None), (&["p"], &[("p", 1)], None)), ["compatible a parameter-added 1"]);
    assert!(changed((&["p"], &[("p", 1)], Some(1)), (&["p"], &[("p", 1)], Some(1))).is_empty());
}

#[test]
fn a_gate_on_the_catalog_needs_two_of_them() {
    let gates = Gates { breaking: true, ..Gates::default() };
    let (baseline, mut current) = (report(&[]), report(&[]));
    assert_eq!(code(&baseline, &current, gates), 0);
    current.catalog.as_mut().unwrap().tools.pop();
    assert_eq!(code(&baseline, &current, gates), 1);
    assert_eq!(code(&current, &baseline, gates), 0, "a new tool breaks nobody");
    current.catalog = None;
    for (then, now, which) in [(&baseline, &current, "the current report"), (&current, &baseline, "the baseline")] {
        let fault = compare(then, now, gates).unwrap_err().to_string();
        assert!(fault.contains(&format!("--fail-on-breaking: {which} holds no catalog")), "{fault}");
    }
    let judged = judge(&baseline, &current, Gates::default());
    assert_eq!(judged.diff.catalog, CatalogDiff::default());
}

#[test]
fn the_lines_say_what_changed() {
    let baseline = report(&[("same", None), ("slow", None), ("gone", None), ("late", Some(LATE))]);
    let mut current =
        report(&[("same", None), ("slow", Some(LATE)), ("late", Some("transport-closed")), ("new", None)]);
    current.catalog.as_mut().unwrap().tools[0].class = Class::ReadOnly;
    current.catalog.as_mut().unwrap().tools.pop();
    let gates = Gates { max_drop: Some(0), exclude_latency: true, ..Gates::default() };
    let diff = judge(&baseline, &current, gates).diff;
    assert_eq!(
        text::render(&diff, false),
        "\
slow latency-budget regressed reason=latency-budget-exceeded latency_ms=104->104
late latency-budget errored baseline_reason=latency-budget-exceeded reason=transport-closed latency_ms=104->104
removed gone
added new
readiness 65->65 mcpeval-standard/3
drop observed=0 max=0 exclude_latency pass
catalog breaking list_stores tool-removed count=1
catalog compatible delete_item class-changed count=1 from=writer to=read-only
summary regressed=1 fixed=0 changed=0 unchanged=1 errored=1 removed=1 added=1
"
    );
    let styled = text::render(&diff, true);
    assert_eq!(anstream::adapter::strip_str(&styled).to_string(), text::render(&diff, false));
    assert!(styled.contains('\u{1b}'));
    let document: Value = serde_json::from_str(&diff.to_json().unwrap()).unwrap();
    let mut fields: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["added", "cases", "catalog", "readiness", "readiness_gate", "removed", "schema", "summary"]);
    assert_eq!(document["catalog"]["changes"][1]["to"], "read-only");
    assert_eq!(document["readiness"]["baseline_profile"], document["readiness"]["current_profile"]);
}
