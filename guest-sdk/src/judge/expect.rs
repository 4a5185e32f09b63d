//! `expect`: what a case asks of one call's answer.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{
    CommonReason, ERROR_CODE_MISMATCH, LATENCY_BUDGET_EXCEEDED, MISSING_FIELD, SCHEMA_MISMATCH, TEXT_MISMATCH,
    UNEXPECTED_OUTCOME, VALUE_MISMATCH, integer,
};
use crate::text::{self, Dialect};
use crate::{Answer, Cause, Fault, Finding, Json, Manifest, ToolResult, View, schema};

/// Characters of one string.
const MAX_STRING: usize = 64 << 10;
/// Milliseconds.
const MAX_LATENCY: u32 = 600_000;

/// Fields that only an answer of success can meet.
const OF_SUCCESS: [&str; 5] = ["required_result_fields", "required_result_paths", "equals", "equals_paths", "schema"];
/// Fields that only an error can meet.
const OF_ERROR: [&str; 1] = ["error_code"];

/// What is expected of one answer, judged in the order of the fields.
#[derive(Clone, Copy, Debug)]
pub struct Expect<'a> {
    success: bool,
    error_code: Option<View<'a>>,
    required_result_fields: Option<View<'a>>,
    required_result_paths: Option<View<'a>>,
    equals: Option<View<'a>>,
    equals_paths: Option<View<'a>>,
    text_equals: Option<View<'a>>,
    text_contains: Option<View<'a>>,
    text_not_contains: Option<View<'a>>,
    text_matches: Option<View<'a>>,
    schema: Option<View<'a>>,
    max_latency_ms: Option<View<'a>>,
}

impl<'a> Expect<'a> {
    /// The schema of `expect` as a field of a case.
    pub fn field() -> Value {
        let string = json!({"type": "string", "maxLength": MAX_STRING});
        let pointer = json!({"type": "string", "maxLength": MAX_STRING, "format": "json-pointer"});
        let pattern = json!({"type": "string", "maxLength": MAX_STRING, "format": "linear-regex"});
        let unique = |item: &Value| json!({"type": "array", "items": item, "uniqueItems": true});
        let one_or_more = |item: &Value| json!({"anyOf": [item, {"type": "array", "items": item}]});
        // A field under the wrong outcome can never be met, so it has no valid value there, but an empty list or object,
        // which asks for nothing.
        let without = |outcome: &str, fields: &[&str]| {
            let never = |field: &str| match field {
                "error_code" | "schema" => Value::Bool(false),
                _ => json!({"maxItems": 0, "maxProperties": 0}),
            };
            let never: serde_json::Map<_, _> = fields.iter().map(|&field| (field.to_owned(), never(field))).collect();
            json!({
                "if": {"properties": {"outcome": {"const": outcome}}, "required": ["outcome"]},
                "then": {"properties": never}
            })
        };
        json!({
            "type": "object",
            "properties": {
                "outcome": {"enum": ["ok", "error"]},
                "error_code": {"type": "integer"},
                "required_result_fields": unique(&string),
                "required_result_paths": unique(&pointer),
                "equals": {"type": "object", "propertyNames": {"maxLength": MAX_STRING}},
                "equals_paths": {"type": "object", "propertyNames": {"maxLength": MAX_STRING, "format": "json-pointer"}},
                "text_equals": string,
                "text_contains": one_or_more(&string),
                "text_not_contains": one_or_more(&string),
                "text_matches": one_or_more(&pattern),
                "schema": {"type": ["object", "boolean"], "format": "json-schema"},
                "max_latency_ms": integer(1, MAX_LATENCY)
            },
            "required": ["outcome"],
            "additionalProperties": false,
            "allOf": [without("ok", &OF_ERROR), without("error", &OF_SUCCESS)]
        })
    }

    /// Declares the reasons that a check may give which judges by `expect`.
    #[must_use]
    pub fn reasons(manifest: Manifest, check: &str) -> Manifest {
        [
            UNEXPECTED_OUTCOME,
            ERROR_CODE_MISMATCH,
            MISSING_FIELD,
            VALUE_MISMATCH,
            TEXT_MISMATCH,
            SCHEMA_MISMATCH,
            LATENCY_BUDGET_EXCEEDED,
        ]
        .into_iter()
        .fold(manifest, |manifest, reason| manifest.common_reason(reason, &[check]))
    }

    /// Reads the field's value. Null members are absent ones; without an outcome it is a fault.
    pub fn read(expect: View<'a>) -> Result<Self, Fault> {
        let member = |name: &str| expect.member(name).filter(|member| !member.is_null());
        let outcome = member("outcome").and_then(View::string);
        let success = match outcome.as_deref() {
            Some("ok") => true,
            Some("error") => false,
            _ => return Err(Fault::incomplete("outcome")),
        };
        Ok(Self {
            success,
            error_code: member("error_code"),
            required_result_fields: member("required_result_fields"),
            required_result_paths: member("required_result_paths"),
            equals: member("equals"),
            equals_paths: member("equals_paths"),
            text_equals: member("text_equals"),
            text_contains: member("text_contains"),
            text_not_contains: member("text_not_contains"),
            text_matches: member("text_matches"),
            schema: member("schema"),
            max_latency_ms: member("max_latency_ms"),
        })
    }

    /// How the answer to a call first misses what is expected, as the failed finding of that check; `None` if it meets
    /// all. A fault if that cannot be told: no answer in the protocol's terms, or a pattern too large for the text.
    pub fn miss(&self, check: &str, answer: &Answer) -> Result<Option<Finding>, Fault> {
        let lost = |reason: CommonReason| Some(Finding::fail(check, reason.label));
        if !answer.class().is_structured() {
            return answer.clone().structured().map(|_| None);
        }
        if answer.succeeded() != self.success {
            return Ok(lost(UNEXPECTED_OUTCOME));
        }
        let has_code = |expected: View<'_>| answer.failure_code().is_some_and(|code| expected.equals(code.view()));
        if self.error_code.is_some_and(|expected| !has_code(expected)) {
            return Ok(lost(ERROR_CODE_MISMATCH));
        }
        if let (true, Ok(result)) = (self.success, &answer.reply)
            && let Some(reason) = self.result_miss(result.view())
        {
            return Ok(lost(reason));
        }
        let text = text(answer);
        if self.text_miss(&text, answer)? {
            return Ok(lost(TEXT_MISMATCH));
        }
        if self.success && self.schema.is_some_and(|schema| !is_valid(schema, answer.tool_result(), &text)) {
            return Ok(lost(SCHEMA_MISMATCH));
        }
        let limit = self.max_latency_ms.and_then(View::integer).and_then(|limit| u32::try_from(limit).ok());
        Ok(limit.and_then(|limit| answer.slower_than(limit, check)))
    }

    fn result_miss(&self, result: View<'_>) -> Option<CommonReason> {
        let there = |pointer: Cow<'_, str>| result.pointer(&pointer).is_some();
        if !strings(self.required_result_fields).into_iter().all(|name| result.member(&name).is_some())
            || !strings(self.required_result_paths).into_iter().all(there)
        {
            return Some(MISSING_FIELD);
        }
        let members = |field: Option<View<'a>>| field.and_then(View::members).unwrap_or_default().into_iter();
        let by_name = members(self.equals).map(|(name, expected)| (expected, result.member(&name)));
        let by_path = members(self.equals_paths).map(|(path, expected)| (expected, result.pointer(&path)));
        by_name.chain(by_path).find_map(|(expected, found)| match found {
            None => Some(MISSING_FIELD),
            Some(found) => (!expected.equals(found)).then_some(VALUE_MISMATCH),
        })
    }

    fn text_miss(&self, text: &str, answer: &Answer) -> Result<bool, Fault> {
        let equal = self.text_equals.and_then(View::string).is_none_or(|whole| whole == text);
        let holds = |part: &Cow<'_, str>| text.contains(part.as_ref());
        if !equal || !strings(self.text_contains).iter().all(holds) || strings(self.text_not_contains).iter().any(holds)
        {
            return Ok(true);
        }
        for pattern in strings(self.text_matches) {
            let matches = text::matches(&pattern, text, Dialect::Linear).map_err(|detail| Fault {
                cause: Cause::Other,
                exchange: Some(answer.exchange),
                detail,
            })?;
            if !matches {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Answer {
    /// The failed finding of that check if the answer took more milliseconds than the case's `max_latency_ms`.
    pub fn slower_than(&self, max_latency_ms: u32, check: &str) -> Option<Finding> {
        let observed = self.elapsed_ms();
        (observed > max_latency_ms).then(|| {
            Finding::fail(check, LATENCY_BUDGET_EXCEEDED.label).bound("max_latency_ms", max_latency_ms, observed)
        })
    }
}

/// What a model would read: all text blocks, or the error's message.
fn text(answer: &Answer) -> String {
    match &answer.reply {
        Ok(_) => answer.tool_result().map(|result| result.texts().join("\n")).unwrap_or_default(),
        Err(error) => error.view().member("message").and_then(View::string).unwrap_or_default().into_owned(),
    }
}

/// Whether the structured content is valid, or where there is none the text read as JSON.
fn is_valid(schema: View<'_>, result: Option<ToolResult<'_>>, text: &str) -> bool {
    let structured = result.and_then(|result| result.structured).filter(|structured| !structured.is_null());
    let holds = |instance: &str| schema::validate(schema.text(), instance).is_ok();
    match structured {
        Some(structured) => holds(structured.text()),
        None => Json::read(text).is_some_and(|text| holds(text.as_str())),
    }
}

/// A string, or the strings of a list.
fn strings(field: Option<View<'_>>) -> Vec<Cow<'_, str>> {
    let Some(field) = field else { return Vec::new() };
    field.items().unwrap_or_else(|| vec![field]).into_iter().filter_map(View::string).collect()
}

#[cfg(test)]
mod tests;
