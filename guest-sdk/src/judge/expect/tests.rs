use super::*;
use crate::judge::{Fields, ToolCall, Trial};
use crate::testing::{Reply, Run, Script};
use crate::{Bound, Case, Check, Level, Outcome, Probe, Target};

const MET: &str = "expecting.met";

struct Expecting;

impl Probe for Expecting {
    fn manifest() -> Manifest {
        let manifest = Manifest::new("expecting", "0.1.0", "One call meets what is expected")
            .config(Fields::new().call().required("expect", Expect::field()).schema())
            .check(Check::new(MET, Level::Must, "The call meets expect"));
        Expect::reasons(manifest, MET)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let expect = Expect::read(case.required("expect")?)?;
        let answer = ToolCall::of(case)?.call(&target.primary()?)?;
        let mut trial = Trial::new(&[MET]);
        trial.attempt([answer.exchange]);
        Ok(match expect.miss(MET, &answer)? {
            Some(finding) => trial.fail(finding),
            None => trial.pass(),
        })
    }
}

fn run(script: Script, expect: &str, reply: Reply) -> Run {
    let config: Value = serde_json::from_str(&format!(r#"{{"tool": "t", "expect": {expect}}}"#)).unwrap();
    script.on_request(move |_| reply.clone()).run::<Expecting>(config)
}

fn script() -> Script {
    Script::new([json!({"name": "t", "inputSchema": {}, "annotations": {"readOnlyHint": true}})])
}

/// The reason of the failure, if any.
fn judged(expect: &Value, reply: Reply) -> Option<String> {
    let run = run(script(), &expect.to_string(), reply);
    assert!(run.outcome.is_ok(), "{:?}", run.outcome);
    run.lost().pop().map(|(_, _, reason)| reason)
}

fn good() -> Reply {
    Reply::result(json!({
        "content": [{"type": "text", "text": "3 teas"}, {"type": "image"}, {"type": "text", "text": "Sencha"}],
        "structuredContent": {"teas": [{"name": "Sencha", "price": 4.0}], "next": null},
        "_meta": {"page": 1}
    }))
}

fn tool_error() -> Reply {
    Reply::result(json!({"isError": true, "content": [{"type": "text", "text": "no such tea"}]}))
}

fn rpc_error() -> Reply {
    Reply::error(-32602, "tea is required")
}

#[test]
fn each_field_is_met_or_missed_for_its_reason() {
    for (expect, reply, reason) in [
        (json!({"outcome": "ok"}), good(), None),
        (json!({"outcome": "ok"}), tool_error(), Some("unexpected-outcome")),
        (json!({"outcome": "ok"}), rpc_error(), Some("unexpected-outcome")),
        (json!({"outcome": "error"}), tool_error(), None),
        (json!({"outcome": "error"}), rpc_error(), None),
        (json!({"outcome": "error"}), good(), Some("unexpected-outcome")),
        (json!({"outcome": "error", "error_code": -32602}), rpc_error(), None),
        (json!({"outcome": "error", "error_code": -32603}), rpc_error(), Some("error-code-mismatch")),
        (json!({"outcome": "error", "error_code": -32000}), tool_error(), None),
        (json!({"outcome": "error", "error_code": -32602}), tool_error(), Some("error-code-mismatch")),
        (json!({"outcome": "error", "error_code": 0}), Reply::failure(json!({})), Some("error-code-mismatch")),
        (json!({"outcome": "ok", "required_result_fields": ["content", "_meta"]}), good(), None),
        (json!({"outcome": "ok", "required_result_fields": ["content", "teas"]}), good(), Some("missing-field")),
        (json!({"outcome": "ok", "required_result_paths": ["", "/structuredContent/next"]}), good(), None),
        (
            json!({"outcome": "ok", "required_result_paths": ["/structuredContent/teas/1"]}),
            good(),
            Some("missing-field"),
        ),
        (json!({"outcome": "ok", "equals": {"_meta": {"page": 1.0}}}), good(), None),
        (json!({"outcome": "ok", "equals": {"_meta": {}}}), good(), Some("value-mismatch")),
        (json!({"outcome": "ok", "equals": {"meta": null}}), good(), Some("missing-field")),
        (json!({"outcome": "ok", "equals_paths": {"/structuredContent/teas/0/price": 4}}), good(), None),
        (json!({"outcome": "ok", "equals_paths": {"/structuredContent/next": null}}), good(), None),
        (json!({"outcome": "ok", "equals_paths": {"/_meta/page": "1"}}), good(), Some("value-mismatch")),
        (json!({"outcome": "ok", "equals_paths": {"/_meta/size": 1}}), good(), Some("missing-field")),
        (json!({"outcome": "ok", "text_equals": "3 teas\nSencha"}), good(), None),
        (json!({"outcome": "ok", "text_equals": "3 teas"}), good(), Some("text-mismatch")),
        (json!({"outcome": "error", "text_equals": "no such tea"}), tool_error(), None),
        (json!({"outcome": "error", "text_equals": "tea is required"}), rpc_error(), None),
        (json!({"outcome": "error", "text_equals": ""}), Reply::failure(json!({"code": 1})), None),
        (json!({"outcome": "ok", "text_contains": "teas"}), good(), None),
        (json!({"outcome": "ok", "text_contains": ["teas", "Sencha"]}), good(), None),
        (json!({"outcome": "ok", "text_contains": ["teas", "sencha"]}), good(), Some("text-mismatch")),
        (json!({"outcome": "ok", "text_not_contains": ["coffee", "milk"]}), good(), None),
        (json!({"outcome": "ok", "text_not_contains": ["coffee", "tea"]}), good(), Some("text-mismatch")),
        (json!({"outcome": "ok", "text_matches": ["teas", "Sen"]}), good(), None),
        (json!({"outcome": "ok", "text_matches": ["teas", "Oolong"]}), good(), Some("text-mismatch")),
        (json!({"outcome": "ok", "max_latency_ms": 1}), good(), None),
        (json!({"outcome": "ok", "max_latency_ms": 1}), good().after_ms(2), Some("latency-budget-exceeded")),
        (json!({"outcome": "error", "max_latency_ms": 1}), rpc_error().after_ms(2), Some("latency-budget-exceeded")),
    ] {
        assert_eq!(judged(&expect, reply).as_deref(), reason, "{expect}");
    }
}

#[test]
fn the_first_miss_in_the_order_of_the_fields_is_the_reason() {
    let steps = [
        ("required_result_fields", json!(["none"]), "missing-field"),
        ("equals", json!({"_meta": 1}), "value-mismatch"),
        ("text_contains", json!("coffee"), "text-mismatch"),
        ("schema", json!(false), "schema-mismatch"),
        ("max_latency_ms", json!(1), "latency-budget-exceeded"),
    ];
    for first in 0..steps.len() {
        let mut expect = json!({"outcome": "ok"});
        for (field, value, _) in &steps[first..] {
            expect[field] = value.clone();
        }
        let script = script().on_validate(|_, _| Err(vec!["false".to_owned()]));
        let lost = run(script, &expect.to_string(), good().after_ms(5)).lost();
        assert_eq!(lost[0].2, steps[first].2, "{expect}");
    }
}

#[test]
fn a_schema_is_for_structured_content_or_else_for_the_text() {
    let judged = |reply: Reply| {
        let script = script().on_validate(|schema, instance| {
            assert_eq!(*schema, json!({"const": {"n": 1}}));
            if *instance == json!({"n": 1}) { Ok(()) } else { Err(vec!["const".to_owned()]) }
        });
        run(script, r#"{"outcome": "ok", "schema": {"const": {"n": 1}}}"#, reply).lost().pop().map(|lost| lost.2)
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let mismatch = Some("schema-mismatch".to_owned());
    assert_eq!(judged(Reply::result(json!({"structuredContent": {"n": 1}}))), None);
    assert_eq!(judged(Reply::result(json!({"structuredContent": {"n": 2}, "content": text("{\"n\": 1}")}))), mismatch);
    assert_eq!(judged(Reply::result(json!({"structuredContent": null, "content": text("{\"n\": 1}")}))), None);
    assert_eq!(judged(Reply::result(json!({"content": text(" {\"n\": 1} ")}))), None);
    assert_eq!(judged(Reply::result(json!({"content": text("n is 1")}))), mismatch);
    assert_eq!(judged(Reply::result(json!({"content": []}))), mismatch);
}

#[test]
fn a_broken_bound_is_told_in_milliseconds_begun() {
    let run = run(script(), r#"{"outcome": "ok", "max_latency_ms": 800}"#, good().after_ms(1_240));
    let bound = Bound { name: "max_latency_ms".to_owned(), limit: 800, observed: 1_240 };
    assert_eq!(run.findings[0].bound, Some(bound));
    assert_eq!(run.outcome.unwrap(), Outcome { attempts: 1, first_failure: Some(1) });
}

#[test]
fn what_cannot_be_told_is_no_verdict() {
    let fault = run(script(), r#"{"outcome": "error"}"#, Reply::result(json!({"isError": 1}))).outcome.unwrap_err();
    assert_eq!(fault.cause, Cause::Malformed);
    let script = script().on_matches(|_, _| Err("too large".to_owned()));
    let run = run(script, r#"{"outcome": "ok", "text_matches": "a"}"#, good());
    assert_eq!(run.outcome.unwrap_err().cause, Cause::Other);
    assert!(run.findings.is_empty());
}

#[test]
fn an_incomplete_case_is_a_fault_and_null_is_absent() {
    for expect in ["null", "{}", r#"{"outcome": "fine"}"#] {
        assert_eq!(run(script(), expect, good()).outcome.unwrap_err().cause, Cause::Other, "{expect}");
    }
    assert_eq!(judged(&json!({"outcome": "error", "error_code": null, "text_contains": null}), rpc_error()), None);
}
