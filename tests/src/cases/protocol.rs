//! Kinds of the catalog and the protocol.

use super::Measured::{List, Number};
use super::{Row, case};

const MUCH: &str = r#"{"max_tools": 10000, "max_schema_bytes": 10000000}"#;
const TOKENS: &str = r#"{"max_total_tokens": 1000000, "max_tool_tokens": 100000}"#;
const PAGES: &str = r#"{"max_pages": 5}"#;
const BOGUS: &str = r#"{"bogus_version": "2000-01-01"}"#;

const fn discovery(fields: &'static str) -> Row {
    case("discovery-cost", fields).on("good").measures(&[("tool_count", Number(3)), ("schema_bytes", Number(1_296))])
}

const fn tokens(fields: &'static str) -> Row {
    case("token-cost", fields).on("good").measures(&[
        ("tool_count", Number(3)),
        ("total_tokens", Number(324)),
        ("per_tool", List(3)),
    ])
}

const fn pagination(server: &'static str, fields: &'static str) -> Row {
    case("pagination", fields).on(server)
}

const fn surfaces(server: &'static str, fields: &'static str) -> Row {
    case("surface-listing", fields).on(server)
}

const fn negotiation(server: &'static str) -> Row {
    case("protocol-negotiation", BOGUS).on(server)
}

pub(super) const ROWS: &[Row] = &[
    discovery(r#"{"max_tools": 3, "max_schema_bytes": 1296}"#),
    discovery(r#"{"max_tools": 2, "max_schema_bytes": 1}"#).fails("discovery-limit-exceeded", 1).bound("max_tools", 2, 3),
    discovery(r#"{"max_tools": 3, "max_schema_bytes": 1295}"#)
        .fails("discovery-limit-exceeded", 1)
        .bound("max_schema_bytes", 1_295, 1_296),
    case("discovery-cost", MUCH).on("page-error").errs("transport-error"),
    case("discovery-cost", MUCH)
        .on("bad-name")
        .measures(&[("tool_count", Number(4)), ("schema_bytes", Number(1_681))]),
    tokens(r#"{"max_total_tokens": 324, "max_tool_tokens": 121}"#),
    tokens(r#"{"max_total_tokens": 324, "max_tool_tokens": null}"#),
    tokens(r#"{"max_total_tokens": 323, "max_tool_tokens": 1}"#)
        .fails("token-budget-exceeded", 1)
        .bound("max_total_tokens", 323, 324),
    tokens(r#"{"max_total_tokens": 324, "max_tool_tokens": 120}"#)
        .fails("token-budget-exceeded", 1)
        .bound("max_tool_tokens", 120, 121),
    case("token-cost", TOKENS).on("page-error").errs("transport-error"),
    // Pages.
    pagination("good", PAGES).measures(&[("tool_count", Number(3)), ("pages", Number(1))]),
    pagination("paged", r#"{"max_pages": 3}"#).after(3).measures(&[("tool_count", Number(3)), ("pages", Number(3))]),
    pagination("paged", r#"{"max_pages": 2}"#)
        .fails("pagination-stalled-cursor", 2)
        .bound("max_pages", 2, 3)
        .measures(&[("tool_count", Number(2)), ("pages", Number(2))]),
    pagination("empty-catalog", PAGES).measures(&[("tool_count", Number(0)), ("pages", Number(1))]),
    pagination("no-tools", PAGES).measures(&[("tool_count", Number(0)), ("pages", Number(1))]),
    pagination("empty-cursor", PAGES).after(2).measures(&[("tool_count", Number(3)), ("pages", Number(2))]),
    pagination("bad-name", PAGES)
        .fails("pagination-invalid-entry", 1)
        .measures(&[("tool_count", Number(4)), ("pages", Number(1))]),
    pagination("schema-invalid", PAGES)
        .fails("pagination-invalid-entry", 1)
        .measures(&[("tool_count", Number(4)), ("pages", Number(1))]),
    pagination("tools-no-array", PAGES)
        .fails("pagination-invalid-entry", 1)
        .measures(&[("tool_count", Number(0)), ("pages", Number(1))]),
    pagination("page-error", PAGES)
        .fails("pagination-invalid-entry", 2)
        .measures(&[("tool_count", Number(3)), ("pages", Number(2))]),
    pagination("duplicate-page", PAGES)
        .fails("pagination-duplicate-tool", 1)
        .measures(&[("tool_count", Number(4)), ("pages", Number(1))]),
    pagination("stalled-cursor", r#"{"max_pages": 1000}"#)
        .fails("pagination-stalled-cursor", 2)
        .measures(&[("tool_count", Number(3)), ("pages", Number(2))]),
    pagination("cursor-cycle", r#"{"max_pages": 1000}"#)
        .fails("pagination-stalled-cursor", 3)
        .measures(&[("tool_count", Number(3)), ("pages", Number(3))]),
    surfaces("good", PAGES).after(0),
    surfaces("surfaces", PAGES).after(2).measures(&[("tool_count", Number(2)), ("pages", Number(2))]),
    surfaces("workshop", PAGES).after(2).measures(&[("tool_count", Number(3)), ("pages", Number(2))]),
    surfaces("surface-no-list", PAGES)
        .fails("surface-invalid-envelope", 1)
        .measures(&[("tool_count", Number(0)), ("pages", Number(1))]),
    surfaces("surface-stalled", PAGES)
        .fails("surface-stalled-cursor", 2)
        .measures(&[("tool_count", Number(0)), ("pages", Number(2))]),
    surfaces("surfaces", r#"{"max_pages": 1}"#)
        .fails("surface-stalled-cursor", 1)
        .bound("max_pages", 1, 2)
        .measures(&[("tool_count", Number(1)), ("pages", Number(1))]),
    // Revisions.
    negotiation("good").after(2),
    negotiation("handshake-supported").after(3),
    negotiation("revision-no-date").fails("negotiation-invalid-version", 2),
    negotiation("echoes-unknown-revision").fails("negotiation-echoed-unknown", 2),
    negotiation("revision-inconsistent").fails("negotiation-inconsistent-support", 3),
    // Completion.
    case(
        "completion",
        r#"{"ref_type": "ref/prompt", "ref_uri": "review", "argument_name": "language", "argument_value": "r", "max_values": 2}"#,
    )
    .on("good")
    .after(0),
    case(
        "completion",
        r#"{"ref_type": "ref/prompt", "ref_uri": "review", "argument_name": "language", "argument_value": "r", "max_values": 2}"#,
    ),
    case(
        "completion",
        r#"{"ref_type": "ref/resource", "ref_uri": "shop://items/{item}", "argument_name": "item", "argument_value": "s", "max_values": 1}"#,
    ),
    case(
        "completion",
        r#"{"ref_type": "ref/prompt", "ref_uri": "review", "argument_name": "numbers", "argument_value": "r", "max_values": 9}"#,
    )
    .fails("completion-invalid-request", 1),
    case(
        "completion",
        r#"{"ref_type": "ref/prompt", "ref_uri": "review", "argument_name": "nothing", "argument_value": "r", "max_values": 9}"#,
    )
    .fails("completion-invalid-request", 1),
    case(
        "completion",
        r#"{"ref_type": "ref/prompt", "ref_uri": "none", "argument_name": "language", "argument_value": "r", "max_values": 9}"#,
    )
    .fails("completion-invalid-request", 1),
    case(
        "completion",
        r#"{"ref_type": "ref/prompt", "ref_uri": "review", "argument_name": "topic", "argument_value": "r", "max_values": 9}"#,
    )
    .fails("completion-argument-unknown", 1),
    case(
        "completion",
        r#"{"ref_type": "ref/prompt", "ref_uri": "review", "argument_name": "flood", "argument_value": "r", "max_values": 10}"#,
    )
    .fails("completion-value-flood", 1),
    case(
        "completion",
        r#"{"ref_type": "ref/prompt", "ref_uri": "review", "argument_name": "mute", "argument_value": "r", "max_values": 9}"#,
    )
    .fails("completion-stalled-request", 1),
];
