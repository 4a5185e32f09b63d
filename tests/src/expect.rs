//! The expectation table: what each fixture server must lose, and nothing else.
//!
//! Every check of the battery needs a row in which it is not lost although it was judged, and a row in which it is.
//! Latency is left aside wherever a row does not name it: a busy machine may be slow.

use std::collections::BTreeSet;

use crate::report::{Loss, Report};
use crate::run::{Outcome, Place};

/// The check that time decides.
const LATENCY: &str = "reliability.latency";

/// One server, the way it is reached, and what must come out.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Name of the fixture.
    pub server: &'static str,
    /// Over HTTP instead of standard input and output.
    pub http: bool,
    /// Options of `score`.
    pub options: &'static [&'static str],
    /// What must come out.
    pub verdict: Verdict,
}

/// What must come out of a row.
#[derive(Debug, Clone, Copy)]
pub enum Verdict {
    /// A readiness, exit code 0, and exactly these losses: check, tool, reason.
    Loses(&'static [Lost]),
    /// A readiness, exit code 0, and losses of this tool only.
    LosesOnlyOf(&'static str),
    /// No readiness, exit code 3, this label, and these words on standard error.
    Unmeasured(&'static str, &'static str),
}

/// A check, its tool (`-` for none, `*` for any or none), and the reason.
pub type Lost = (&'static str, &'static str, &'static str);

/// Nothing is lost.
const NOTHING: Verdict = Verdict::Loses(&[]);

/// The third valid call of `get_price` did not complete.
const LAST_CALL: Verdict = Verdict::Loses(&[
    ("reliability.success", "get_price", "reliability-call-failed"),
    ("reliability.consistent", "get_price", "reliability-inconsistent"),
]);

const fn stdio(server: &'static str, verdict: Verdict) -> Row {
    Row { server, http: false, options: &["--lanes", "1"], verdict }
}

const fn impatient(server: &'static str, verdict: Verdict) -> Row {
    Row { server, http: false, options: &["--lanes", "1", "--startup-timeout", "2"], verdict }
}

const fn http(server: &'static str, verdict: Verdict) -> Row {
    Row { server, http: true, options: &["--lanes", "1"], verdict }
}

const fn skipping(server: &'static str, verdict: Verdict) -> Row {
    Row { server, http: false, options: &["--lanes", "1", "--skip-tool", "find_item"], verdict }
}

const fn attested(server: &'static str, verdict: Verdict) -> Row {
    Row { server, http: false, options: &["--lanes", "1", "--confirm-read-only"], verdict }
}

/// The table over the fixture servers.
pub const ROWS: &[Row] = &[
    // The good server and variants of it.
    stdio("good", NOTHING),
    http("good", NOTHING),
    stdio("paged", NOTHING),
    http("paged", NOTHING),
    stdio("surfaces", NOTHING),
    http("surfaces", NOTHING),
    stdio("wide-description", NOTHING),
    stdio("schema-recursive", NOTHING),
    stdio("schema-deep", NOTHING),
    stdio("schema-catastrophic", NOTHING),
    stdio("honest-tool-error", NOTHING),
    stdio("content-missing", NOTHING),
    stdio("canary", NOTHING),
    http("canary", NOTHING),
    stdio("empty-cursor", NOTHING),
    stdio("handshake-supported", NOTHING),
    http("handshake-supported", NOTHING),
    // protocol
    stdio(
        "unknown-method-answered",
        Verdict::Loses(&[("protocol.unknown-method", "-", "protocol-unknown-method-answered")]),
    ),
    http(
        "unknown-method-answered",
        Verdict::Loses(&[("protocol.unknown-method", "-", "protocol-unknown-method-answered")]),
    ),
    stdio("no-ping", Verdict::Loses(&[("protocol.ping", "-", "protocol-ping-failed")])),
    stdio("unknown-tool-accepted", Verdict::Loses(&[("protocol.unknown-tool", "-", "protocol-unknown-tool-accepted")])),
    stdio("duplicate-page", Verdict::Loses(&[("protocol.pagination", "-", "protocol-pagination-invalid")])),
    stdio("stalled-cursor", Verdict::Loses(&[("protocol.pagination", "-", "protocol-pagination-invalid")])),
    stdio("cursor-cycle", Verdict::Loses(&[("protocol.pagination", "-", "protocol-pagination-invalid")])),
    stdio("page-error", Verdict::Loses(&[("protocol.pagination", "-", "protocol-pagination-invalid")])),
    http("page-error", Verdict::Loses(&[("protocol.pagination", "-", "protocol-pagination-invalid")])),
    stdio("surface-no-list", Verdict::Loses(&[("protocol.surfaces", "*", "protocol-surface-invalid")])),
    stdio("surface-stalled", Verdict::Loses(&[("protocol.surfaces", "*", "protocol-surface-invalid")])),
    stdio(
        "echoes-unknown-revision",
        Verdict::Loses(&[("protocol.negotiation", "-", "protocol-negotiation-echoed-unknown")]),
    ),
    http(
        "echoes-unknown-revision",
        Verdict::Loses(&[("protocol.negotiation", "-", "protocol-negotiation-echoed-unknown")]),
    ),
    stdio("revision-no-date", Verdict::Loses(&[("protocol.negotiation", "-", "protocol-negotiation-invalid-version")])),
    stdio(
        "revision-inconsistent",
        Verdict::Loses(&[("protocol.negotiation", "-", "protocol-negotiation-inconsistent-support")]),
    ),
    http("notify-200", Verdict::Loses(&[("protocol.notification-status", "-", "protocol-notification-status")])),
    http("notify-204", Verdict::Loses(&[("protocol.notification-status", "-", "protocol-notification-status")])),
    stdio(
        "dies-of-ping",
        Verdict::Loses(&[
            ("protocol.ping", "-", "protocol-call-failed"),
            ("reliability.payload", "*", "reliability-payload-unhandled"),
        ]),
    ),
    stdio("dies-of-unknown-method", Verdict::Loses(&[("protocol.unknown-method", "-", "protocol-call-failed")])),
    stdio("dies-of-unknown-tool", Verdict::Loses(&[("protocol.unknown-tool", "-", "protocol-call-failed")])),
    stdio("dies-of-revision", Verdict::Loses(&[("protocol.negotiation", "-", "protocol-call-failed")])),
    stdio("surface-dies", Verdict::Loses(&[("protocol.surfaces", "*", "protocol-call-failed")])),
    // catalog
    stdio("short-description", Verdict::Loses(&[("catalog.description", "odd_tool", "catalog-short-description")])),
    stdio(
        "undescribed-param",
        Verdict::Loses(&[("catalog.params-described", "odd_tool", "catalog-undescribed-params")]),
    ),
    stdio("untyped-param", Verdict::Loses(&[("catalog.params-typed", "odd_tool", "catalog-untyped-params")])),
    stdio(
        "undeclared-writer",
        Verdict::Loses(&[("catalog.read-only-declared", "odd_tool", "catalog-read-only-undeclared")]),
    ),
    stdio(
        "undeclared-destruction",
        Verdict::Loses(&[("catalog.destructive-declared", "odd_tool", "catalog-destructive-undeclared")]),
    ),
    stdio("no-output-schema", Verdict::Loses(&[("catalog.output-schema", "odd_tool", "catalog-no-output-schema")])),
    stdio("bad-name", Verdict::Loses(&[("catalog.entry", "invalid-name#3", "catalog-invalid-entry")])),
    stdio("entry-no-object", Verdict::Loses(&[("catalog.entry", "invalid-name#3", "catalog-invalid-entry")])),
    stdio("no-input-schema", INVALID_ENTRY),
    stdio("schema-boolean", INVALID_ENTRY),
    stdio("schema-invalid", INVALID_ENTRY),
    stdio("schema-remote", INVALID_ENTRY),
    stdio("schema-dangling", INVALID_ENTRY),
    stdio("schema-itself", INVALID_ENTRY),
    stdio("schema-dialect", INVALID_ENTRY),
    stdio("schema-fanout", Verdict::LosesOnlyOf("odd_tool")),
    stdio(
        "boolean-property",
        Verdict::Loses(&[
            ("catalog.params-described", "odd_tool", "catalog-undescribed-params"),
            ("catalog.params-typed", "odd_tool", "catalog-untyped-params"),
        ]),
    ),
    stdio("empty-catalog", EMPTY),
    stdio("no-tools", EMPTY),
    stdio("tools-no-array", EMPTY_UNUSABLE),
    stdio("list-refused", EMPTY_UNUSABLE),
    // context
    stdio("heavy-tool", Verdict::Loses(&[("context.heaviest-tool", "odd_tool", "context-tool-heavy")])),
    stdio("heavy-catalog", Verdict::Loses(&[("context.catalog", "-", "context-catalog-heavy")])),
    stdio(
        "schema-enormous",
        Verdict::Loses(&[
            ("context.catalog", "-", "context-catalog-heavy"),
            ("context.heaviest-tool", "odd_tool", "context-tool-heavy"),
        ]),
    ),
    // error-honesty
    stdio("empty-error", Verdict::Loses(&[("error-honesty.invalid-arguments", "get_price", "honesty-empty-error")])),
    stdio("wrong-code", Verdict::Loses(&[("error-honesty.invalid-arguments", "get_price", "honesty-wrong-code")])),
    http("wrong-code", Verdict::Loses(&[("error-honesty.invalid-arguments", "get_price", "honesty-wrong-code")])),
    stdio(
        "accepts-invalid",
        Verdict::Loses(&[("error-honesty.invalid-arguments", "get_price", "honesty-accepted-invalid")]),
    ),
    stdio("untestable", Verdict::Loses(&[("error-honesty.untestable", "-", "honesty-untestable")])),
    // reliability and coverage
    stdio(
        "always-fails",
        Verdict::Loses(&[
            ("reliability.success", "get_price", "reliability-call-failed"),
            ("coverage.exercised", "get_price", "coverage-call-failed"),
        ]),
    ),
    stdio("fails-once", LAST_CALL),
    stdio("rpc-error-once", LAST_CALL),
    http("fails-once", LAST_CALL),
    stdio("slow", Verdict::Loses(&[(LATENCY, "get_price", "reliability-slow")])),
    stdio(
        "output-broken",
        Verdict::Loses(&[("reliability.output-schema", "get_price", "reliability-output-schema-broken")]),
    ),
    stdio(
        "output-missing",
        Verdict::Loses(&[("reliability.output-schema", "get_price", "reliability-output-schema-broken")]),
    ),
    http("second-session", Verdict::Loses(&[("reliability.contention", "*", "reliability-contention-failed")])),
    stdio("dies-of-payload", Verdict::Loses(&[("reliability.payload", "*", "reliability-payload-unhandled")])),
    http("payload-closed", Verdict::Loses(&[("reliability.payload", "*", "reliability-payload-unhandled")])),
    stdio(
        "rejects-valid",
        Verdict::Loses(&[
            ("reliability.none-exercised", "get_price", "coverage-rejected-arguments"),
            ("coverage.exercised", "get_price", "coverage-rejected-arguments"),
        ]),
    ),
    stdio(
        "unsynthesizable",
        Verdict::Loses(&[
            ("reliability.none-exercised", "odd_tool", "coverage-unsynthesizable"),
            ("coverage.exercised", "odd_tool", "coverage-unsynthesizable"),
        ]),
    ),
    stdio("unannotated", UNANNOTATED),
    stdio("hint-no-boolean", UNANNOTATED),
    attested(
        "unannotated",
        Verdict::Loses(&[("catalog.read-only-declared", "odd_tool", "catalog-read-only-undeclared")]),
    ),
    skipping(
        "good",
        Verdict::Loses(&[
            ("error-honesty.invalid-arguments", "find_item", "coverage-skipped"),
            ("reliability.skipped", "find_item", "coverage-skipped"),
            ("reliability.contention", "*", "coverage-skipped"),
            ("reliability.payload", "*", "coverage-skipped"),
            ("coverage.exercised", "find_item", "coverage-skipped"),
        ]),
    ),
    stdio("only-writers", NO_SURFACE),
    attested("only-writers", NO_SURFACE),
    stdio(
        "dies-at-call",
        Verdict::Loses(&[
            ("protocol.unknown-tool", "-", "protocol-call-failed"),
            ("error-honesty.invalid-arguments", "find_item", "honesty-call-failed"),
            ("error-honesty.invalid-arguments", "get_price", "honesty-call-failed"),
            ("reliability.none-exercised", "find_item", "coverage-call-failed"),
            ("reliability.none-exercised", "get_price", "coverage-call-failed"),
            ("coverage.exercised", "find_item", "coverage-call-failed"),
            ("coverage.exercised", "get_price", "coverage-call-failed"),
        ]),
    ),
    stdio("is-error-no-boolean", LAST_CALL),
    stdio("result-no-object", LAST_CALL),
    stdio("result-huge", LAST_CALL),
    http("result-huge", LAST_CALL),
    // Bytes on standard output.
    stdio("noise", NOTHING),
    stdio("json-no-rpc", NOTHING),
    stdio("crlf", NOTHING),
    stdio("split-writes", NOTHING),
    stdio("deep-noise", NOTHING),
    stdio("deep", NOTHING),
    stdio("deep-structured", Verdict::LosesOnlyOf("get_price")),
    stdio("duplicate-result-keys", NOTHING),
    stdio("id-as-float", NOTHING),
    stdio("duplicate-replies", NOTHING),
    stdio("unasked-replies", NOTHING),
    stdio("bom", LAST_CALL),
    stdio("half-message", LAST_CALL),
    stdio("pretty", LAST_CALL),
    stdio("huge-line", LAST_CALL),
    stdio("non-utf8", LAST_CALL),
    stdio("nul", LAST_CALL),
    stdio("duplicate-keys", LAST_CALL),
    stdio("wrong-id", LAST_CALL),
    stdio("id-as-text", LAST_CALL),
    stdio("id-null", LAST_CALL),
    stdio("result-and-error", LAST_CALL),
    stdio("neither", LAST_CALL),
    stdio("late", LAST_CALL),
    stdio("never-answers", LAST_CALL),
    stdio("dies-mid-line", LAST_CALL),
    // Lives.
    stdio("floods-stdout", NOTHING),
    stdio("floods-stderr", NOTHING),
    stdio("floods-notifications", NOTHING),
    stdio("floods-requests", NOTHING),
    stdio("needs-ping", NOTHING),
    stdio("early-notification", NOTHING),
    stdio("answers-initialized", NOTHING),
    stdio("orphan", NOTHING),
    stdio("orphan-own-session", NOTHING),
    stdio("ignores-eof", NOTHING),
    stdio("ignores-end", NOTHING),
    stdio("slow-start", NOTHING),
    impatient("silent", Verdict::Unmeasured("transport-timeout", "")),
    impatient("pretty-always", Verdict::Unmeasured("transport-timeout", "")),
    impatient("lsp-framing", Verdict::Unmeasured("transport-timeout", "")),
    impatient("prints-text", Verdict::Unmeasured("transport-timeout", "")),
    stdio("only-initialize", Verdict::Unmeasured("transport-timeout", "")),
    stdio("exits-at-once", Verdict::Unmeasured("transport-closed", "missing API_KEY")),
    stdio("dies-at-initialize", Verdict::Unmeasured("transport-closed", "cannot open the shop")),
    stdio("closes-stdin", Verdict::Unmeasured("transport-closed", "")),
    stdio("wrong-revision", Verdict::Unmeasured("handshake-failed", "")),
    stdio("handshake-declined", Verdict::Unmeasured("handshake-failed", "")),
    http("handshake-declined", Verdict::Unmeasured("handshake-failed", "")),
    // HTTP.
    http("html-404", Verdict::Unmeasured("transport-error", "404")),
    http("html-200", Verdict::Unmeasured("transport-error", "")),
    http("status-500", Verdict::Unmeasured("transport-error", "500")),
    http("status-401", Verdict::Unmeasured("transport-error", "401")),
    http("status-405", Verdict::Unmeasured("transport-error", "405")),
    http("notify-400", Verdict::Unmeasured("transport-error", "400")),
    http("notify-500", Verdict::Unmeasured("transport-error", "500")),
    http("redirect-foreign", Verdict::Unmeasured("transport-error", "redirect")),
    http("redirect-loop", Verdict::Unmeasured("transport-error", "redirect")),
    http("redirect-302", Verdict::Unmeasured("transport-error", "redirect")),
    http("redirect-307", NOTHING),
    http("get-stream", NOTHING),
    http("delete-405", NOTHING),
    http("payload-413", NOTHING),
    http("closes-connections", NOTHING),
    http("no-session", NOTHING),
    http("charset", NOTHING),
    http("error-in-400", NOTHING),
    http("plain-text", LAST_CALL),
    http("events", NOTHING),
    http("events-cr", NOTHING),
    http("events-open", NOTHING),
    http("events-end", LAST_CALL),
    http("body-cut", LAST_CALL),
    http("body-open", LAST_CALL),
    http("head-huge", LAST_CALL),
    http("status-once", LAST_CALL),
    http("garbage-head", LAST_CALL),
    // Nothing is completed after the fault, and of the protocol one loss says so.
    http(
        "opens-once",
        Verdict::Loses(&[
            ("protocol.ping", "-", "protocol-call-failed"),
            ("reliability.success", "get_price", "reliability-call-failed"),
            ("reliability.consistent", "get_price", "reliability-inconsistent"),
            ("reliability.contention", "*", "reliability-contention-failed"),
            ("reliability.payload", "*", "reliability-payload-unhandled"),
        ]),
    ),
];

const INVALID_ENTRY: Verdict = Verdict::Loses(&[("catalog.entry", "odd_tool", "catalog-invalid-entry")]);

const UNANNOTATED: Verdict = Verdict::Loses(&[
    ("catalog.read-only-declared", "odd_tool", "catalog-read-only-undeclared"),
    ("reliability.none-exercised", "odd_tool", "coverage-unannotated"),
    ("coverage.exercised", "odd_tool", "coverage-unannotated"),
]);

/// There is a catalog, and nothing in it may be called.
const NO_SURFACE: Verdict = Verdict::Loses(&[
    ("error-honesty.untestable", "-", "no-read-only-tools"),
    ("reliability.none-exercised", "-", "no-read-only-tools"),
    ("coverage.exercised", "-", "no-read-only-tools"),
]);

const EMPTY: Verdict = Verdict::Loses(&[
    ("catalog.empty", "-", "catalog-no-tools"),
    ("error-honesty.untestable", "-", "no-read-only-tools"),
    ("reliability.none-exercised", "-", "no-read-only-tools"),
    ("coverage.exercised", "-", "no-read-only-tools"),
]);

const EMPTY_UNUSABLE: Verdict = Verdict::Loses(&[
    ("protocol.pagination", "-", "protocol-pagination-invalid"),
    ("catalog.empty", "-", "catalog-no-tools"),
    ("error-honesty.untestable", "-", "no-read-only-tools"),
    ("reliability.none-exercised", "-", "no-read-only-tools"),
    ("coverage.exercised", "-", "no-read-only-tools"),
]);

impl Row {
    /// Runs the row and compares; the error says what came out instead.
    pub fn verify(&self, place: &Place) -> Result<(), String> {
        let outcome = if self.http {
            place.score_http(self.options, self.server)
        } else {
            place.score(self.options, self.server)
        };
        self.judge(&outcome).map_err(|error| {
            let way = if self.http { "http" } else { "stdio" };
            format!("{} over {way} {:?}: {error}\n", self.server, self.options)
        })
    }

    fn judge(&self, outcome: &Outcome) -> Result<(), String> {
        let report = Report::read(&outcome.stdout)
            .map_err(|error| format!("{error}; exit code {:?}; stderr: {}", outcome.code, outcome.stderr))?;
        let error = report.at("/readiness_error").as_str();
        match self.verdict {
            Verdict::Unmeasured(label, words) => {
                if (outcome.code, error, report.at("/readiness").is_null()) != (Some(3), Some(label), true) {
                    return Err(format!(
                        "exit code {:?}, readiness error {error:?}; stderr: {}",
                        outcome.code, outcome.stderr
                    ));
                }
                if outcome.stderr.contains(words) {
                    Ok(())
                } else {
                    Err(format!("stderr does not hold {words:?}: {}", outcome.stderr))
                }
            }
            Verdict::Loses(_) | Verdict::LosesOnlyOf(_) if (outcome.code, error) != (Some(0), None) => {
                Err(format!("exit code {:?}, readiness error {error:?}; stderr: {}", outcome.code, outcome.stderr))
            }
            Verdict::Loses(lost) => compare(lost, &report.losses()),
            Verdict::LosesOnlyOf(tool) => {
                let others: Vec<String> = report
                    .losses()
                    .iter()
                    .filter(|loss| loss.tool.as_deref() != Some(tool) && loss.check != LATENCY)
                    .map(ToString::to_string)
                    .collect();
                if others.is_empty() { Ok(()) } else { Err(format!("lost too: {}", others.join("; "))) }
            }
        }
    }

    /// Whether the row loses that check.
    pub fn loses(&self, check: &str) -> bool {
        matches!(self.verdict, Verdict::Loses(lost) if lost.iter().any(|(id, ..)| *id == check))
    }

    /// Whether the row loses that check for that reason.
    pub fn gives(&self, check: &str, reason: &str) -> bool {
        matches!(self.verdict, Verdict::Loses(lost) if lost.iter().any(|(id, _, label)| (*id, *label) == (check, reason)))
    }

    /// Whether the row judges that check and does not lose it.
    pub fn keeps(&self, check: &str) -> bool {
        let judged = match check {
            "protocol.notification-status" => self.http,
            "protocol.surfaces" => self.server == "surfaces",
            "catalog.destructive-declared" | "error-honesty.invalid-arguments" => self.server == "good",
            _ => true,
        };
        judged && matches!(self.verdict, Verdict::Loses(_)) && !self.loses(check)
    }
}

/// Compares what must be lost with what was.
pub fn compare(expected: &[Lost], actual: &BTreeSet<Loss>) -> Result<(), String> {
    let named = expected.iter().any(|(check, ..)| *check == LATENCY);
    let fits = |lost: &Lost, loss: &Loss| {
        let (check, tool, reason) = *lost;
        check == loss.check && reason == loss.reason && (tool == "*" || tool == loss.tool.as_deref().unwrap_or("-"))
    };
    let surplus = actual
        .iter()
        .filter(|loss| !expected.iter().any(|lost| fits(lost, loss)) && (named || loss.check != LATENCY))
        .map(|loss| format!("lost too: {loss}"));
    let missing = expected
        .iter()
        .filter(|lost| !actual.iter().any(|loss| fits(lost, loss)))
        .map(|(check, tool, reason)| format!("not lost: {check} {tool} {reason}"));
    let differences: Vec<String> = surplus.chain(missing).collect();
    if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
}
