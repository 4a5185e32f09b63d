//! Kinds that judge one tool.

use super::Measured::{AtLeast, Word};
use super::{Row, Way, case};

const fn guess(fields: &'static str) -> Row {
    case("schema-guessability", fields)
}

const fn fidelity(fields: &'static str) -> Row {
    case("instruction-fidelity", fields)
}

const fn degradation(fields: &'static str) -> Row {
    case("degradation-over-n", fields)
}

const fn latency(fields: &'static str) -> Row {
    case("latency-budget", fields).measures(&[("latency_ms", AtLeast(0))])
}

const fn honesty(fields: &'static str) -> Row {
    case("error-honesty", fields)
}

const fn output(fields: &'static str) -> Row {
    case("output-schema", fields)
}

const fn payload(fields: &'static str) -> Row {
    case("payload-bounds", fields)
}

const ANSWERED: &[(&str, super::Measured)] = &[("latency_ms", AtLeast(0))];

const fn cancellation(fields: &'static str) -> Row {
    case("cancellation", fields)
}

const NO_RESULT: &[(&str, super::Measured)] = &[("cancellation_outcome", Word("no-result"))];
const COMPLETED: &[(&str, super::Measured)] = &[("cancellation_outcome", Word("completed"))];
const ERROR: &[(&str, super::Measured)] = &[("cancellation_outcome", Word("error"))];

const fn contention(fields: &'static str) -> Row {
    case("contention", fields).after(2)
}

pub(super) const ROWS: &[Row] = &[
    guess(r#"{"tool": "echo", "arguments": {"text": "tea"}}"#),
    guess(r#"{"tool": "plain"}"#),
    guess(r#"{"tool": "unmarked"}"#),
    guess(r#"{"tool": "erase", "access": "mutating", "sandbox": "bench"}"#),
    guess(r#"{"tool": "list_schema"}"#).fails_unasked("invalid-schema"),
    guess(r#"{"tool": "broken_schema", "arguments": {"text": "tea"}}"#).fails_unasked("invalid-schema"),
    guess(r#"{"tool": "hidden_name", "arguments": {"secret": "tea"}}"#).fails_unasked("invalid-schema"),
    guess(r#"{"tool": "echo"}"#).fails_unasked("missing-required-argument"),
    guess(r#"{"tool": "complain"}"#).fails("unexpected-outcome", 1),
    guess(r#"{"tool": "silent"}"#).errs("transport-timeout"),
    // One call and what is expected of it.
    fidelity(
        r#"{"tool": "echo", "arguments": {"text": "green tea"}, "expect": {
            "outcome": "ok", "required_result_fields": ["content", "structuredContent"],
            "required_result_paths": ["/content/0/text", ""], "equals": {"structuredContent": {"text": "green tea"}},
            "equals_paths": {"/structuredContent/text": "green tea"}, "text_equals": "green tea",
            "text_contains": ["green", "tea"], "text_not_contains": "black", "text_matches": "^gr.*a$",
            "schema": {"type": "object", "required": ["text"]}, "max_latency_ms": 600000}}"#,
    ),
    fidelity(
        r#"{"tool": "tally", "arguments": {"of": "pointers"}, "expect": {"outcome": "ok",
            "equals_paths": {"/structuredContent/count": 1.0, "/structuredContent/list/0/a~1b": 1}}}"#,
    ),
    fidelity(r#"{"tool": "two_blocks", "expect": {"outcome": "ok", "text_equals": "one\ntwo"}}"#),
    fidelity(
        r#"{"tool": "json_text", "expect": {"outcome": "ok", "schema": {"properties": {"price": {"type": "integer"}}}}}"#,
    ),
    fidelity(
        r#"{"tool": "refuse", "expect": {"outcome": "error", "error_code": -32602, "text_equals": "no such item"}}"#,
    ),
    fidelity(r#"{"tool": "complain", "expect": {"outcome": "error", "error_code": -32000, "text_contains": "drill"}}"#),
    // Without a session that declares sampling there is nobody to ask.
    fidelity(r#"{"tool": "ask_model", "expect": {"outcome": "error", "text_equals": "there is no model to ask"}}"#),
    fidelity(r#"{"tool": "erase", "access": "mutating", "sandbox": "bench", "expect": {"outcome": "ok"}}"#),
    fidelity(r#"{"tool": "complain", "expect": {"outcome": "ok"}}"#).fails("unexpected-outcome", 1),
    fidelity(r#"{"tool": "plain", "expect": {"outcome": "error", "error_code": 1}}"#).fails("unexpected-outcome", 1),
    fidelity(r#"{"tool": "refuse", "expect": {"outcome": "error", "error_code": -32603, "text_equals": "other"}}"#)
        .fails("error-code-mismatch", 1),
    fidelity(r#"{"tool": "plain", "expect": {"outcome": "ok", "required_result_fields": ["structuredContent"]}}"#)
        .fails("missing-field", 1),
    fidelity(r#"{"tool": "plain", "expect": {"outcome": "ok", "equals_paths": {"/content/1/text": "done"}}}"#)
        .fails("missing-field", 1),
    fidelity(r#"{"tool": "plain", "expect": {"outcome": "ok", "equals_paths": {"/content/0/text": "undone"}}}"#)
        .fails("value-mismatch", 1),
    fidelity(r#"{"tool": "plain", "expect": {"outcome": "ok", "equals": {"content": []}, "text_equals": "other"}}"#)
        .fails("value-mismatch", 1),
    fidelity(r#"{"tool": "plain", "expect": {"outcome": "ok", "text_equals": "Done"}}"#).fails("text-mismatch", 1),
    fidelity(r#"{"tool": "plain", "expect": {"outcome": "ok", "text_contains": ["done", "more"]}}"#)
        .fails("text-mismatch", 1),
    fidelity(r#"{"tool": "plain", "expect": {"outcome": "ok", "text_not_contains": ["more", "on"]}}"#)
        .fails("text-mismatch", 1),
    fidelity(r#"{"tool": "plain", "expect": {"outcome": "ok", "text_matches": ["done", "^one"]}}"#)
        .fails("text-mismatch", 1),
    fidelity(r#"{"tool": "json_text", "expect": {"outcome": "ok", "schema": {"required": ["name"]}}}"#)
        .fails("schema-mismatch", 1),
    fidelity(r#"{"tool": "plain", "expect": {"outcome": "ok", "schema": {"type": "object"}}}"#)
        .fails("schema-mismatch", 1),
    fidelity(r#"{"tool": "pause", "expect": {"outcome": "ok", "max_latency_ms": 50}}"#)
        .fails("latency-budget-exceeded", 1)
        .bound("max_latency_ms", 50, 100),
    fidelity(r#"{"tool": "silent", "expect": {"outcome": "error"}}"#).errs("transport-timeout"),
    // Equal calls.
    degradation(r#"{"tool": "wear_out", "arguments": {"good": 5}, "max_attempts": 5}"#).after(5),
    degradation(r#"{"tool": "plain", "max_attempts": 100}"#).after(100),
    degradation(r#"{"tool": "erase", "max_attempts": 2, "access": "mutating", "sandbox": "bench"}"#).after(2),
    degradation(r#"{"tool": "wear_out", "arguments": {"good": 3}, "max_attempts": 100}"#)
        .fails("unexpected-outcome", 4),
    degradation(r#"{"tool": "hang_up", "max_attempts": 2}"#).errs("transport-closed").only(Way::Stdio),
    latency(r#"{"tool": "plain", "attempts": 20, "max_latency_ms": 600000}"#).after(20),
    latency(r#"{"tool": "pause", "attempts": 1, "max_latency_ms": 50}"#)
        .fails("latency-budget-exceeded", 1)
        .bound("max_latency_ms", 50, 100)
        .measures(&[("latency_ms", AtLeast(100))]),
    latency(r#"{"tool": "slow_down", "arguments": {"ms": 1500}, "attempts": 3, "max_latency_ms": 1200}"#)
        .fails("latency-budget-exceeded", 2)
        .bound("max_latency_ms", 1_200, 1_500)
        .measures(&[("latency_ms", AtLeast(1_500))]),
    // Later than the limit, and than the wait of other calls.
    latency(r#"{"tool": "pause", "arguments": {"ms": 2200}, "attempts": 1, "max_latency_ms": 1000}"#)
        .fails("latency-budget-exceeded", 1)
        .bound("max_latency_ms", 1_000, 2_200)
        .measures(&[("latency_ms", AtLeast(2_200))]),
    latency(r#"{"tool": "refuse", "attempts": 3, "max_latency_ms": 600000}"#).fails("unexpected-outcome", 1),
    // Errors and retries.
    honesty(r#"{"tool": "lasting", "max_attempts": 20, "expect_retryable": false}"#).after(2),
    honesty(r#"{"tool": "outspoken", "max_attempts": 2, "expect_retryable": false}"#).after(2),
    honesty(r#"{"tool": "passing", "max_attempts": 3, "expect_retryable": true}"#).after(3),
    honesty(r#"{"tool": "plain", "max_attempts": 2, "expect_retryable": true}"#).fails("expected-error", 1),
    honesty(r#"{"tool": "wavering", "max_attempts": 3, "expect_retryable": false}"#).fails("unstable-error-code", 2),
    honesty(r#"{"tool": "lasting", "max_attempts": 2, "expect_retryable": true}"#).fails("retryability-mismatch", 1),
    honesty(r#"{"tool": "two_tongued", "max_attempts": 2, "expect_retryable": true}"#)
        .fails("retryability-mismatch", 1),
    honesty(r#"{"tool": "refuse", "max_attempts": 2, "expect_retryable": false}"#).fails("retryability-mismatch", 1),
    honesty(r#"{"tool": "stuck", "max_attempts": 4, "expect_retryable": true}"#).fails("retry-did-not-recover", 4),
    honesty(r#"{"tool": "surprising", "max_attempts": 4, "expect_retryable": false}"#).fails("unexpected-outcome", 2),
    // Output schemas.
    output(r#"{"tool": "echo", "arguments": {"text": "tea"}}"#),
    output(r#"{"tool": "plain"}"#).after(0),
    output(r#"{"tool": "forgotten"}"#).fails("output-schema-declared-but-missing", 1),
    output(r#"{"tool": "partial"}"#).fails("output-schema-field-missing", 1),
    output(r#"{"tool": "mistaken"}"#).fails("output-schema-invalid-result", 1),
    output(r#"{"tool": "vain_promise"}"#).fails("output-schema-invalid-result", 1),
    output(r#"{"tool": "promise_broken_by_error"}"#).fails("unexpected-outcome", 1),
    // Long arguments.
    payload(r#"{"tool": "swallow", "field": "text", "size_bytes": 200000, "expect_handled": true}"#).measures(ANSWERED),
    payload(r#"{"tool": "swallow", "field": "text", "size_bytes": 1, "expect_handled": true}"#).measures(ANSWERED),
    payload(r#"{"tool": "swallow", "field": "text", "size_bytes": 16000000, "expect_handled": true}"#)
        .measures(ANSWERED),
    payload(r#"{"tool": "strict", "field": "text", "size_bytes": 200000, "expect_handled": false}"#).measures(ANSWERED),
    payload(r#"{"tool": "grumble", "field": "text", "size_bytes": 200000, "expect_handled": false}"#)
        .measures(ANSWERED),
    payload(r#"{"tool": "unread", "field": "text", "size_bytes": 200000, "expect_handled": false}"#).measures(ANSWERED),
    payload(r#"{"tool": "too_large", "field": "text", "size_bytes": 200000, "expect_handled": false}"#)
        .measures(ANSWERED),
    payload(r#"{"tool": "strict", "field": "text", "size_bytes": 200000, "expect_handled": true}"#)
        .fails("unexpected-outcome", 1)
        .measures(ANSWERED),
    payload(r#"{"tool": "mute", "field": "text", "size_bytes": 200000, "expect_handled": false}"#)
        .fails("payload-unhandled", 1),
    payload(r#"{"tool": "fragile", "field": "text", "size_bytes": 200000, "expect_handled": false}"#)
        .fails("payload-unhandled", 1),
    payload(r#"{"tool": "deaf", "field": "text", "size_bytes": 200000, "expect_handled": false}"#)
        .fails("payload-unhandled", 1)
        .measures(ANSWERED),
    // Cancellation.
    cancellation(r#"{"tool": "patient", "grace_seconds": 1, "reason": "enough"}"#).after(2).measures(NO_RESULT),
    cancellation(r#"{"tool": "closing", "grace_seconds": 1, "reason": "enough"}"#).after(2).measures(NO_RESULT),
    cancellation(r#"{"tool": "polite", "grace_seconds": 5, "reason": "enough"}"#).after(2).measures(ERROR),
    cancellation(r#"{"tool": "stubborn", "grace_seconds": 5, "reason": "enough", "require_honored": false}"#)
        .after(3)
        .measures(COMPLETED),
    cancellation(r#"{"tool": "stubborn", "arguments": {"again": 1}, "grace_seconds": 5, "reason": "enough"}"#)
        .fails("cancellation-ignored", 2)
        .measures(COMPLETED),
    cancellation(r#"{"tool": "cross", "grace_seconds": 5, "reason": "enough", "require_honored": false}"#)
        .fails("cancellation-errored", 2)
        .measures(ERROR),
    cancellation(r#"{"tool": "hurt", "grace_seconds": 1, "reason": "enough", "require_honored": false}"#)
        .fails("recovery-failed", 3)
        .measures(NO_RESULT),
    cancellation(r#"{"tool": "complain", "grace_seconds": 1, "reason": "enough"}"#).fails("unexpected-outcome", 1),
    // Two clients at once.
    contention(r#"{"tool": "plain"}"#),
    contention(r#"{"tool": "erase", "access": "mutating", "sandbox": "bench"}"#),
    contention(r#"{"tool": "find_item", "arguments": {"query": "saw"}}"#)
        .on("opens-once")
        .only(Way::Http)
        .fails("contended-client-failed", 1),
    contention(r#"{"tool": "first_client"}"#)
        .on("workshop-no-stream")
        .only(Way::Http)
        .fails("contended-client-failed", 2),
    contention(r#"{"tool": "late_client"}"#).on("workshop-no-stream").only(Way::Http).fails_at(
        "contended-client-failed",
        1,
        2,
    ),
    contention(r#"{"tool": "complain"}"#).only(Way::Stdio).fails_at("contended-client-failed", 1, 2),
];
