use mcpeval_probe::testing::Script;
use mcpeval_probe::{Json, Value};

use super::*;

const LONG: &str = "Finds an item of the shop by its name or number.";

fn good() -> Value {
    json!({
        "name": "find_item",
        "description": LONG,
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string", "description": "Its name"}}},
        "annotations": {"readOnlyHint": true},
        "outputSchema": {"type": "object"}
    })
}

fn lost(class: ToolClass, entry: Value) -> (u32, Vec<&'static str>) {
    let judged = judge(class, Json::from(entry).view());
    (judged.passed, judged.losses.iter().map(|loss| loss.reason).collect())
}

fn with(edit: impl FnOnce(&mut Value)) -> Value {
    let mut entry = good();
    edit(&mut entry);
    entry
}

#[test]
fn a_good_entry_loses_nothing() {
    assert_eq!(lost(ToolClass::ReadOnly, good()), (5, vec![]));
}

#[test]
fn each_check_is_lost_alone() {
    let read_only = |entry| lost(ToolClass::ReadOnly, entry);
    assert_eq!(read_only(with(|entry| entry["description"] = json!("Finds"))), (4, vec!["catalog-short-description"]));
    let property = |schema: Value| with(|entry| entry["inputSchema"]["properties"]["name"] = schema);
    assert_eq!(read_only(property(json!({"type": "string"}))), (4, vec!["catalog-undescribed-params"]));
    assert_eq!(read_only(property(json!({"type": "string", "description": ""}))).1, ["catalog-undescribed-params"]);
    assert_eq!(read_only(property(json!({"description": "Its name"}))), (4, vec!["catalog-untyped-params"]));
    assert_eq!(read_only(property(json!({"description": "x", "allOf": [{"type": "string"}]}))), (5, vec![]));
    assert_eq!(read_only(property(json!(true))).1, ["catalog-undescribed-params", "catalog-untyped-params"]);
    let hint = |hints: Value| with(|entry| entry["annotations"] = hints);
    assert_eq!(lost(ToolClass::Unannotated, hint(json!({"readOnlyHint": "yes"}))).1, ["catalog-read-only-undeclared"]);
    assert_eq!(lost(ToolClass::Writer, hint(json!({"readOnlyHint": false}))).1, ["catalog-destructive-undeclared"]);
    assert_eq!(lost(ToolClass::Writer, hint(json!({"readOnlyHint": false, "destructiveHint": false}))), (6, vec![]));
    assert_eq!(read_only(with(|entry| entry["outputSchema"] = json!(true))).1, ["catalog-no-output-schema"]);
}

#[test]
fn parameters_are_judged_only_where_there_are_some() {
    let bare = with(|entry| entry["inputSchema"] = json!({"type": "object"}));
    assert_eq!(lost(ToolClass::ReadOnly, bare), (3, vec![]));
    let empty = with(|entry| entry["inputSchema"]["properties"] = json!({}));
    assert_eq!(lost(ToolClass::ReadOnly, empty), (3, vec![]));
}

#[test]
fn an_invalid_entry_scores_nothing_else() {
    assert_eq!(lost(ToolClass::Invalid, good()), (0, vec!["catalog-invalid-entry"]));
    assert_eq!(lost(ToolClass::Invalid, json!(7)), (0, vec!["catalog-invalid-entry"]));
}

#[test]
fn descriptions_are_counted_in_characters() {
    let described =
        |text: &str| judge(ToolClass::ReadOnly, Json::from(with(|e| e["description"] = json!(text))).view());
    assert!(described(&"é".repeat(40)).losses.is_empty());
    assert_eq!(described(&"é".repeat(39)).losses[0].observed, Some(39));
}

#[test]
fn a_run_scores_the_mean_and_names_the_losers() {
    let invalid = json!({"name": "bad/name"});
    let run = Script::new([good(), invalid, good()]).run::<Catalog>(json!({"areas": ["catalog"], "lanes": 4}));
    assert_eq!(run.score("catalog"), Some(50.0), "the repeated entry does not count");
    assert_eq!(run.lost(), [("catalog.entry".into(), Some("invalid-name#1".into()), "catalog-invalid-entry".into())]);
    assert_eq!(run.requests(), 0);
}

#[test]
fn an_empty_catalog_scores_zero() {
    let run = Script::new([]).run::<Catalog>(json!({}));
    assert_eq!(run.score("catalog"), Some(0.0));
    assert_eq!(run.lost(), [("catalog.empty".into(), None, "catalog-no-tools".into())]);
}

#[test]
fn a_huge_catalog_stays_under_the_cap_on_findings() {
    let run = Script::new((0..MAX_LOSSES + 10).map(|_| json!({}))).run::<Catalog>(json!({}));
    assert_eq!(run.findings.len(), MAX_LOSSES);
    assert_eq!(run.score("catalog"), Some(0.0));
}
