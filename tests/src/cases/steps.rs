//! Kinds of several steps.

use super::Measured::Number;
use super::{Row, Way, case};

const fn recovery(fields: &'static str) -> Row {
    case("state-recovery", fields)
}

const fn workflow(fields: &'static str) -> Row {
    case("workflow", fields)
}

const fn sampling(fields: &'static str) -> Row {
    case("sampling", fields)
}

const fn elicitation(fields: &'static str) -> Row {
    case("elicitation", fields)
}

const NEVER: &[(&str, super::Measured)] = &[("server_requests", Number(0))];
const ONCE: &[(&str, super::Measured)] = &[("server_requests", Number(1))];
const TWICE: &[(&str, super::Measured)] = &[("server_requests", Number(2))];

const fn subscription(fields: &'static str) -> Row {
    case("resource-subscription", fields)
}

pub(super) const ROWS: &[Row] = &[
    recovery(r#"{"failure_tool": "jam", "recovery_tool": "unjam", "validation_tool": "inspect"}"#).after(3),
    recovery(
        r#"{"failure_tool": "refuse", "failure_arguments": {}, "recovery_tool": "erase", "recovery_arguments": null,
            "validation_tool": "plain", "access": "mutating", "sandbox": "bench"}"#,
    )
    .after(3),
    recovery(r#"{"failure_tool": "plain", "recovery_tool": "unjam", "validation_tool": "inspect"}"#)
        .fails("failure-not-observed", 1),
    recovery(r#"{"failure_tool": "jam", "recovery_tool": "complain", "validation_tool": "inspect"}"#)
        .fails("recovery-failed", 2),
    recovery(r#"{"failure_tool": "jam", "recovery_tool": "plain", "validation_tool": "inspect"}"#)
        .fails("validation-failed", 3),
    // Workflows begin on a session where nothing was counted yet.
    workflow(
        r#"{"repetitions": 1, "steps": [
            {"tool": "tally", "expect": {"outcome": "ok", "text_equals": "call 1"}},
            {"tool": "tally", "expect": {"outcome": "ok", "text_equals": "call 2"}}]}"#,
    )
    .after(2),
    workflow(
        r#"{"repetitions": 20, "steps": [
            {"tool": "plain", "expect": {"outcome": "ok"}}, {"tool": "refuse", "expect": {"outcome": "error"}}]}"#,
    )
    .after(40),
    workflow(
        r#"{"repetitions": 2, "steps": [
            {"tool": "tally", "expect": {"outcome": "ok", "text_equals": "call 1"}},
            {"tool": "plain", "expect": {"outcome": "ok"}}]}"#,
    )
    .fails("text-mismatch", 3),
    workflow(
        r#"{"repetitions": 1, "steps": [
            {"tool": "plain", "expect": {"outcome": "ok"}}, {"tool": "complain", "expect": {"outcome": "ok"}}]}"#,
    )
    .fails("unexpected-outcome", 2),
    workflow(
        r#"{"repetitions": 1, "steps": [
            {"tool": "refuse", "expect": {"outcome": "error", "error_code": 1}},
            {"tool": "plain", "expect": {"outcome": "ok"}}]}"#,
    )
    .fails("error-code-mismatch", 1),
    workflow(
        r#"{"repetitions": 1, "steps": [
            {"tool": "plain", "expect": {"outcome": "ok", "required_result_paths": ["/structuredContent"]}},
            {"tool": "plain", "expect": {"outcome": "ok"}}]}"#,
    )
    .fails("missing-field", 1),
    workflow(
        r#"{"repetitions": 1, "steps": [
            {"tool": "plain", "expect": {"outcome": "ok"}},
            {"tool": "tally", "expect": {"outcome": "ok", "equals_paths": {"/structuredContent/count": 2}}}]}"#,
    )
    .fails("value-mismatch", 2),
    workflow(
        r#"{"repetitions": 1, "steps": [
            {"tool": "plain", "expect": {"outcome": "ok"}},
            {"tool": "json_text", "expect": {"outcome": "ok", "schema": {"type": "array"}}}]}"#,
    )
    .fails("schema-mismatch", 2),
    workflow(
        r#"{"repetitions": 1, "steps": [
            {"tool": "pause", "expect": {"outcome": "ok", "max_latency_ms": 50}},
            {"tool": "plain", "expect": {"outcome": "ok"}}]}"#,
    )
    .fails("latency-budget-exceeded", 1)
    .bound("max_latency_ms", 50, 100),
    // There is no second try on another session.
    workflow(
        r#"{"repetitions": 1, "steps": [
            {"tool": "plain", "expect": {"outcome": "ok"}}, {"tool": "hang_up", "expect": {"outcome": "error"}}]}"#,
    )
    .only(Way::Stdio)
    .errs("transport-closed"),
    // Asking the model.
    sampling(r#"{"tool": "ask_model", "max_requests": 1}"#).measures(ONCE),
    sampling(r#"{"tool": "ask_model", "arguments": {"times": 2}, "max_requests": 10}"#).measures(TWICE),
    sampling(r#"{"tool": "plain", "max_requests": 1}"#).measures(NEVER),
    sampling(r#"{"tool": "ask_no_messages", "max_requests": 1}"#).fails("sampling-invalid-request", 1).measures(ONCE),
    sampling(r#"{"tool": "ask_no_tokens", "max_requests": 1}"#).fails("sampling-invalid-request", 1).measures(ONCE),
    sampling(r#"{"tool": "ask_model", "arguments": {"times": 2}, "max_requests": 1}"#)
        .fails("sampling-request-flood", 1)
        .measures(TWICE),
    sampling(r#"{"tool": "ask_and_stall", "max_requests": 1}"#).fails("sampling-stalled-call", 1).measures(ONCE),
    sampling(r#"{"tool": "ask_and_fail", "max_requests": 1}"#).fails("unexpected-outcome", 1).measures(ONCE),
    sampling(r#"{"tool": "complain", "max_requests": 1}"#).fails("unexpected-outcome", 1).measures(NEVER),
    // It declares sampling and nothing else.
    sampling(r#"{"tool": "ask_user", "max_requests": 1}"#).fails("unexpected-outcome", 1).measures(NEVER),
    sampling(r#"{"tool": "silent", "max_requests": 1}"#).errs("transport-timeout"),
    // Asking the user.
    elicitation(r#"{"tool": "ask_user", "max_requests": 1, "respond": "accept"}"#).measures(ONCE),
    elicitation(r#"{"tool": "ask_user", "max_requests": 1, "respond": "decline"}"#).measures(ONCE),
    elicitation(r#"{"tool": "ask_user", "max_requests": 1, "respond": "cancel"}"#).measures(ONCE),
    elicitation(r#"{"tool": "plain", "max_requests": 1, "respond": "decline"}"#).measures(NEVER),
    elicitation(r#"{"tool": "ask_by_url", "max_requests": 1, "respond": "accept"}"#)
        .fails("elicitation-invalid-request", 1)
        .measures(ONCE),
    elicitation(r#"{"tool": "ask_nested", "max_requests": 1, "respond": "decline"}"#)
        .fails("elicitation-invalid-request", 1)
        .measures(ONCE),
    elicitation(r#"{"tool": "ask_wordless", "max_requests": 1, "respond": "cancel"}"#)
        .fails("elicitation-invalid-request", 1)
        .measures(ONCE),
    elicitation(r#"{"tool": "ask_user", "arguments": {"times": 2}, "max_requests": 1, "respond": "accept"}"#)
        .fails("elicitation-request-flood", 1)
        .measures(TWICE),
    elicitation(r#"{"tool": "ask_user_and_stall", "max_requests": 1, "respond": "accept"}"#)
        .fails("elicitation-stalled-call", 1)
        .measures(ONCE),
    elicitation(r#"{"tool": "ask_user_and_fail", "max_requests": 1, "respond": "accept"}"#)
        .fails("unexpected-outcome", 1)
        .measures(ONCE),
    elicitation(r#"{"tool": "ask_user_or_refuse", "max_requests": 1, "respond": "decline"}"#)
        .fails("unexpected-outcome", 1)
        .measures(ONCE),
    elicitation(r#"{"tool": "complain", "max_requests": 1, "respond": "decline"}"#)
        .fails("unexpected-outcome", 1)
        .measures(NEVER),
    elicitation(r#"{"tool": "ask_model", "max_requests": 1, "respond": "accept"}"#)
        .fails("unexpected-outcome", 1)
        .measures(NEVER),
    // Updates. Over HTTP they come on the stream that GET opens.
    subscription(
        r#"{"uri": "shop://shelf", "trigger_tool": "touch", "trigger_arguments": {"uri": "shop://shelf", "after_ms": 2000},
            "max_wait_seconds": 60}"#,
    )
    .after(5),
    subscription(r#"{"uri": "shop://clock", "max_wait_seconds": 30}"#).after(4),
    subscription(
        r#"{"uri": "shop://shelf", "trigger_tool": "touch_aloud", "trigger_arguments": {"uri": "shop://shelf"},
            "max_wait_seconds": 30}"#,
    )
    .on("workshop-no-stream")
    .only(Way::Http)
    .after(5),
    subscription(r#"{"uri": "shop://shelf", "max_wait_seconds": 1}"#).on("good").after(0),
    subscription(r#"{"uri": "shop://missing", "max_wait_seconds": 1}"#).fails("resource-unreadable", 1),
    subscription(r#"{"uri": "shop://empty", "max_wait_seconds": 1}"#).fails("resource-unreadable", 1),
    subscription(r#"{"uri": "shop://locked", "max_wait_seconds": 1}"#).fails("subscription-rejected", 2),
    subscription(r#"{"uri": "shop://shelf", "trigger_tool": "complain", "max_wait_seconds": 1}"#)
        .fails("unexpected-outcome", 3),
    subscription(r#"{"uri": "shop://shelf", "trigger_tool": "plain", "max_wait_seconds": 1}"#)
        .fails("subscription-notification-missing", 4),
    subscription(
        r#"{"uri": "shop://shelf", "trigger_tool": "touch", "trigger_arguments": {"uri": "shop://shelf", "after_ms": 20000},
            "max_wait_seconds": 1}"#,
    )
    .fails("subscription-notification-missing", 4),
    subscription(
        r#"{"uri": "shop://sticky", "trigger_tool": "touch", "trigger_arguments": {"uri": "shop://sticky"},
            "max_wait_seconds": 30}"#,
    )
    .fails("subscription-rejected", 5),
];
