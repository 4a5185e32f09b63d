//! What the component declares: checks in table order, every reason with what to change.

use mcpeval_probe::{Check, Level, Manifest, Metric, json};

pub(crate) const HONESTY: &str = "error-honesty";
pub(crate) const RELIABILITY: &str = "reliability";
pub(crate) const COVERAGE: &str = "coverage";

pub(crate) const INVALID_ARGUMENTS: &str = "error-honesty.invalid-arguments";
pub(crate) const UNTESTABLE: &str = "error-honesty.untestable";
pub(crate) const SUCCESS: &str = "reliability.success";
pub(crate) const CONSISTENT: &str = "reliability.consistent";
pub(crate) const LATENCY: &str = "reliability.latency";
pub(crate) const OUTPUT_SCHEMA: &str = "reliability.output-schema";
pub(crate) const CONTENTION: &str = "reliability.contention";
pub(crate) const PAYLOAD: &str = "reliability.payload";
pub(crate) const NONE_EXERCISED: &str = "reliability.none-exercised";
pub(crate) const SKIPPED: &str = "reliability.skipped";
pub(crate) const EXERCISED: &str = "coverage.exercised";

pub(crate) const NO_TOOLS: &str = "no-read-only-tools";
pub(crate) const WAS_SKIPPED: &str = "coverage-skipped";

/// Lanes unless the case says otherwise.
pub(crate) const DEFAULT_LANES: usize = 4;

pub(crate) fn manifest() -> Manifest {
    let specification = "https://modelcontextprotocol.io/specification/2025-11-25";
    let errors = format!("{specification}/server/tools#error-handling");
    let structured = format!("{specification}/server/tools#output-schema");
    let check = |id: &str, level, title| {
        let area = id.split('.').next().unwrap_or_default();
        Check::new(id, level, title).area(area)
    };
    let counter = |name| Metric::number(name, "calls").area(RELIABILITY);
    Manifest::new("exercise", env!("CARGO_PKG_VERSION"), "Conduct of the tools")
        .summary(
            "Calls every tool that may be called, once with arguments its schema forbids and three times with valid ones, \
             then two sessions at once and a very long string.",
        )
        .config(json!({
            "type": "object",
            "properties": {
                "areas": {"type": "array", "items": {"enum": [HONESTY, RELIABILITY, COVERAGE]}},
                "lanes": {"type": "integer", "minimum": 1, "maximum": 16, "default": DEFAULT_LANES}
            },
            "additionalProperties": false
        }))
        .check(check(INVALID_ARGUMENTS, Level::Should, "Invalid arguments are declined as such").reference(&errors))
        .check(check(UNTESTABLE, Level::Advice, "A tool can be called with invalid arguments"))
        .check(check(SUCCESS, Level::Should, "Three valid calls succeed"))
        .check(check(CONSISTENT, Level::Should, "Three valid calls end alike"))
        .check(check(LATENCY, Level::Advice, "A valid call takes 100 ms or less"))
        .check(check(OUTPUT_SCHEMA, Level::Must, "Results are valid against outputSchema").reference(&structured))
        .check(check(CONTENTION, Level::Should, "Two sessions can call at once"))
        .check(check(PAYLOAD, Level::Should, "A string of a million characters is handled"))
        .check(check(NONE_EXERCISED, Level::Advice, "The tool could be exercised"))
        .check(check(SKIPPED, Level::Advice, "The tool was not skipped"))
        .check(check(EXERCISED, Level::Advice, "A valid call of the tool succeeded"))
        .reason(
            "honesty-empty-error",
            "Invalid arguments were answered with isError: true but no words; put into a text block what is wrong with the \
             arguments.",
            &[INVALID_ARGUMENTS],
        )
        .reason(
            "honesty-wrong-code",
            "Invalid arguments were answered with another JSON-RPC error than -32602; use -32602, or isError: true with a \
             text that says what to correct.",
            &[INVALID_ARGUMENTS],
        )
        .reason(
            "honesty-accepted-invalid",
            "A call whose arguments violate the tool's own inputSchema succeeded; validate arguments before acting, or widen \
             the schema to what is accepted.",
            &[INVALID_ARGUMENTS],
        )
        .reason(
            "honesty-call-failed",
            "A call with invalid arguments got no answer, or the session was dead afterwards; catch the error and answer it \
             with -32602 or isError: true.",
            &[INVALID_ARGUMENTS],
        )
        .reason(
            "honesty-untestable",
            "No callable tool has a schema that forbids anything; declare property types, required names and \
             additionalProperties: false.",
            &[UNTESTABLE],
        )
        .reason(
            "reliability-call-failed",
            "Not all of three valid calls succeeded; call the tool with arguments its schema allows and see what it answers, \
             or give working arguments with --arguments.",
            &[SUCCESS],
        )
        .reason(
            "reliability-inconsistent",
            "The same valid call ended in different ways, or its repetition was cut short; make the tool answer equal calls \
             alike.",
            &[CONSISTENT],
        )
        .reason(
            "reliability-slow",
            "The median of valid calls is above 100 ms; answer sooner, cache, or return a handle to a result that is still \
             being made.",
            &[LATENCY],
        )
        .reason(
            "reliability-output-schema-broken",
            "A successful result has no structuredContent that is valid against the declared outputSchema; return it, or \
             correct the schema.",
            &[OUTPUT_SCHEMA],
        )
        .reason(
            "reliability-contention-failed",
            "Of two sessions that called the same tool at once, not both succeeded; let sessions share no lock, file or port \
             that only one can hold.",
            &[CONTENTION],
        )
        .reason(
            "reliability-payload-unhandled",
            "A call with a string of a million characters was neither answered nor refused, or the session was dead \
             afterwards; answer it, or refuse it with an error.",
            &[PAYLOAD],
        )
        .reason(
            "reliability-none-exercised",
            "No valid call of the tool was answered. Reports name the reason in the words of coverage.",
            &[NONE_EXERCISED],
        )
        .reason(
            "coverage-unannotated",
            "The tool does not say whether it only reads and was not called; declare readOnlyHint, or attest it with \
             --confirm-read-only.",
            &[NONE_EXERCISED, EXERCISED],
        )
        .reason(
            "coverage-unsynthesizable",
            "No valid arguments could be made from the tool's schema; add examples or defaults to it, or give arguments with \
             --arguments.",
            &[NONE_EXERCISED, EXERCISED],
        )
        .reason(
            WAS_SKIPPED,
            "The tool was left out by --skip-tool and counts as not exercised; leave it in, or accept the loss.",
            &[INVALID_ARGUMENTS, CONTENTION, PAYLOAD, NONE_EXERCISED, SKIPPED, EXERCISED],
        )
        .reason(
            "coverage-rejected-arguments",
            "The server declined arguments that its own schema allows; state the missing rule in inputSchema, or give working \
             arguments with --arguments.",
            &[NONE_EXERCISED, EXERCISED],
        )
        .reason(
            "coverage-call-failed",
            "No valid call of the tool succeeded; see what it answers, or give working arguments with --arguments.",
            &[NONE_EXERCISED, EXERCISED],
        )
        .reason(
            NO_TOOLS,
            "There is no tool that may be called: none is read-only; declare readOnlyHint where it is true, or attest \
             unannotated tools with --confirm-read-only.",
            &[UNTESTABLE, NONE_EXERCISED, EXERCISED],
        )
        .metric(counter("successful_calls"))
        .metric(counter("tool_errors"))
        .metric(counter("rejected_calls"))
        .metric(counter("rpc_errors"))
        .metric(counter("transport_errors"))
        .metric(Metric::number("untested_tools", "tools").area(RELIABILITY))
        .metric(Metric::number("score_without_latency", "points").area(RELIABILITY))
        .metric(Metric::number("exercised", "tools").area(COVERAGE))
        .asks(100, 2, 10_000)
}
