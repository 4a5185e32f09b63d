//! Which part of a case's `expect` a failed case missed, told from the manifest and the reason: what the server said is
//! not needed for it, and not shown.

use serde_json::Value;

/// Reasons that tell of fields of `expect`, the fields, and how an answer misses one.
const MISSES: [(&str, &[&str], &str); 6] = [
    ("error-code-mismatch", &["error_code"], "the error has another code"),
    (
        "missing-field",
        &["required_result_fields", "required_result_paths", "equals", "equals_paths"],
        "the result lacks a member that it names",
    ),
    ("value-mismatch", &["equals", "equals_paths"], "a member that it names has another value"),
    (
        "text-mismatch",
        &["text_equals", "text_contains", "text_not_contains", "text_matches"],
        "the text is not what it asks for",
    ),
    ("schema-mismatch", &["schema"], "the result is not valid against it"),
    ("latency-budget-exceeded", &["max_latency_ms"], "the answer took longer"),
];
/// The reason that tells of the outcome.
const OUTCOME: &str = "unexpected-outcome";

/// A sentence that begins with the field of `expect` that was missed, or with those of which one was; none for a case
/// without `expect`, whose only judgement the reason names. `config` is the JSON of the case's own fields.
pub fn missed(config: &str, reason: &str) -> Option<String> {
    let config: Value = serde_json::from_str(config).ok()?;
    let expect = config.get("expect")?.as_object()?;
    if reason == OUTCOME {
        return match expect.get("outcome")?.as_str()? {
            "ok" => Some("expect.outcome: wanted ok, got error".to_owned()),
            "error" => Some("expect.outcome: wanted error, got ok".to_owned()),
            _ => None,
        };
    }
    let (_, fields, how) = MISSES.iter().find(|(label, ..)| *label == reason)?;
    let given: Vec<String> =
        fields.iter().filter(|field| expect.contains_key(**field)).map(|field| format!("expect.{field}")).collect();
    (!given.is_empty()).then(|| format!("{}: {how}", given.join(" or ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_missed_field_is_named_without_a_value() {
        let expect =
            json!({"tool": "search", "expect": {"outcome": "error", "error_code": -32602, "equals": {"a": "s3cret"},
            "required_result_paths": ["/a"], "text_contains": "s3cret", "text_matches": "s3cret", "schema": {},
            "max_latency_ms": 5}})
            .to_string();
        for (reason, sentence) in [
            (OUTCOME, "expect.outcome: wanted error, got ok"),
            ("error-code-mismatch", "expect.error_code: the error has another code"),
            ("missing-field", "expect.required_result_paths or expect.equals: the result lacks a member that it names"),
            ("value-mismatch", "expect.equals: a member that it names has another value"),
            ("text-mismatch", "expect.text_contains or expect.text_matches: the text is not what it asks for"),
            ("schema-mismatch", "expect.schema: the result is not valid against it"),
            ("latency-budget-exceeded", "expect.max_latency_ms: the answer took longer"),
        ] {
            assert_eq!(missed(&expect, reason).as_deref(), Some(sentence));
        }
        assert_eq!(
            missed(r#"{"expect": {"outcome": "ok"}}"#, OUTCOME).as_deref(),
            Some("expect.outcome: wanted ok, got error")
        );
    }

    #[test]
    fn what_is_not_of_expect_is_not_told_of() {
        for (config, reason) in [
            (r#"{"expect": {"outcome": "ok"}}"#, "text-mismatch"),
            (r#"{"expect": {"outcome": "ok"}}"#, "transport-closed"),
            (r#"{"expect": {"outcome": 3}}"#, OUTCOME),
            (r#"{"tool": "search"}"#, OUTCOME),
            ("no JSON", OUTCOME),
        ] {
            assert_eq!(missed(config, reason), None, "{config} {reason}");
        }
    }
}
