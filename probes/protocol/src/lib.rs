//! Area `protocol`: does the server keep to the protocol where any client can see it?
//!
//! Score: passed over applicable checks. Requests, in this order: an unknown method, `ping`, an unknown tool, the pages
//! of declared surfaces, one to three openings for the negotiation less the run's own. Pagination of the tools is
//! judged from the listing the run began with.

mod negotiation;
mod surfaces;
mod talk;

use std::borrow::Cow;
use std::collections::HashSet;

use mcpeval_probe::{
    Answer, CallClass, Case, Check, ExchangeId, Fault, Finding, Level, Manifest, Outcome, Probe, Target, ToolClass,
    View, json, report,
};
use negotiation::negotiation;
use surfaces::surfaces;
use talk::Talk;

const AREA: &str = "protocol";
const METHOD_NOT_FOUND: i64 = -32601;

const UNKNOWN_METHOD: &str = "protocol.unknown-method";
const PING: &str = "protocol.ping";
const UNKNOWN_TOOL: &str = "protocol.unknown-tool";
const PAGINATION: &str = "protocol.pagination";
const SURFACES: &str = "protocol.surfaces";
const NEGOTIATION: &str = "protocol.negotiation";
const NOTIFICATION_STATUS: &str = "protocol.notification-status";

const CALL_FAILED: &str = "protocol-call-failed";

/// Names that begin so may be called though unlisted.
const NO_TOOL: &str = "mcpeval-unknown-tool";

/// What one check came to: the reason of its loss, if it is lost, and what to cite.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Judged {
    lost: Option<&'static str>,
    evidence: Vec<ExchangeId>,
}

impl Judged {
    fn new(lost: Option<&'static str>, evidence: impl IntoIterator<Item = ExchangeId>) -> Self {
        Self { lost, evidence: evidence.into_iter().collect() }
    }

    /// Judges an answer; none is a failed call.
    fn of(asked: &Result<Answer, Fault>, judge: impl FnOnce(&Answer) -> Option<&'static str>) -> Self {
        match asked {
            Ok(answer) => Self::new(judge(answer), [answer.exchange]),
            Err(fault) => Self::new(Some(CALL_FAILED), fault.exchange),
        }
    }

    fn finding(self, check: &str) -> Finding {
        let finding = match self.lost {
            Some(reason) => Finding::fail(check, reason),
            None => Finding::pass(check),
        };
        finding.evidence(self.evidence)
    }
}

fn unknown_method(answer: &Answer) -> Option<&'static str> {
    (answer.error_code() != Some(METHOD_NOT_FOUND)).then_some("protocol-unknown-method-answered")
}

fn ping(answer: &Answer) -> Option<&'static str> {
    answer.object().is_none().then_some("protocol-ping-failed")
}

fn unknown_tool(asked: &Result<Answer, Fault>) -> Judged {
    let class = CallClass::of(asked);
    Judged::of(asked, |_| match class {
        CallClass::Success => Some("protocol-unknown-tool-accepted"),
        CallClass::Transport => Some(CALL_FAILED),
        CallClass::ToolError | CallClass::Rejected | CallClass::RpcError => None,
    })
}

/// The listing ended in order and no name came twice, names that are invalid included.
fn pagination(target: &Target) -> Judged {
    let listing = target.listing();
    let mut names = HashSet::new();
    let mut unique = true;
    for (position, tool) in (0..).zip(target.tools()) {
        let name = if tool.class == ToolClass::Invalid {
            // Findings name it by its position: what it calls itself stands in the entry alone.
            let entry = target.entry(position);
            entry.view().member("name").and_then(View::string).map(Cow::into_owned)
        } else {
            Some(tool.name)
        };
        unique &= name.is_none_or(|name| names.insert(name));
    }
    let lost = (listing.fault.is_some() || !unique).then_some("protocol-pagination-invalid");
    Judged::new(lost, listing.pages.into_iter().chain(listing.fault.and_then(|fault| fault.exchange)))
}

/// A tool's name that this server does not list.
fn unlisted(target: &Target) -> String {
    let listed: HashSet<String> = target.tools().into_iter().map(|tool| tool.name).collect();
    let numbered = (2..).map(|number: u32| format!("{NO_TOOL}-{number}"));
    std::iter::once(NO_TOOL.to_owned()).chain(numbered).find(|name| !listed.contains(name)).unwrap_or_default()
}

/// The component of area `protocol`.
#[derive(Clone, Copy, Debug)]
pub struct Protocol;

impl Probe for Protocol {
    fn manifest() -> Manifest {
        let page = |path: &str| format!("https://modelcontextprotocol.io/specification/2025-11-25/{path}");
        let check = |id, level, title, path| Check::new(id, level, title).area(AREA).reference(&page(path));
        Manifest::new("protocol", env!("CARGO_PKG_VERSION"), "Protocol conduct")
            .summary("Asks for what no server has, pings, lists declared surfaces and offers an unknown revision.")
            .config(json!({
                "type": "object",
                "properties": {"areas": {"type": "array", "items": {"const": AREA}}, "lanes": {"type": "integer"}},
                "additionalProperties": false
            }))
            .check(check(UNKNOWN_METHOD, Level::Must, "An unknown method gives -32601", "basic"))
            .check(check(PING, Level::Must, "ping gives an object", "basic/utilities/ping"))
            .check(check(UNKNOWN_TOOL, Level::Must, "An unknown tool gives an error", "server/tools#error-handling"))
            .check(check(PAGINATION, Level::Must, "tools/list ends, each name once", "server/utilities/pagination"))
            .check(check(SURFACES, Level::Must, "Declared surfaces can be listed", "server/utilities/pagination"))
            .check(check(
                NEGOTIATION,
                Level::Must,
                "An unknown revision is answered with a known one",
                "basic/lifecycle#version-negotiation",
            ))
            .check(check(
                NOTIFICATION_STATUS,
                Level::Must,
                "Accepted notifications get HTTP 202",
                "basic/transports#sending-messages-to-the-server",
            ))
            .reason(
                "protocol-unknown-method-answered",
                "A method that does not exist was not answered with error -32601; answer unknown methods with \"Method not \
                 found\", so that clients can tell what is missing.",
                &[UNKNOWN_METHOD],
            )
            .reason(
                "protocol-ping-failed",
                "ping did not give an object; answer ping with an empty result at any time.",
                &[PING],
            )
            .reason(
                "protocol-unknown-tool-accepted",
                "A call of a tool that is not listed succeeded; answer it with an error or isError: true.",
                &[UNKNOWN_TOOL],
            )
            .reason(
                "protocol-pagination-invalid",
                "tools/list has an unusable page, a name twice, or a cursor that never ends; list every tool once and leave \
                 nextCursor out on the last page.",
                &[PAGINATION],
            )
            .reason(
                "protocol-surface-invalid",
                "A declared surface cannot be listed: no array, an error, or a cursor that never ends; implement \
                 resources/list and prompts/list, or do not declare them.",
                &[SURFACES],
            )
            .reason(
                "protocol-negotiation-echoed-unknown",
                "initialize accepted a protocol revision that does not exist; answer with a revision the server supports.",
                &[NEGOTIATION],
            )
            .reason(
                "protocol-negotiation-invalid-version",
                "initialize with an unknown revision was not answered with one of the form YYYY-MM-DD; answer with the \
                 latest the server supports.",
                &[NEGOTIATION],
            )
            .reason(
                "protocol-negotiation-inconsistent-support",
                "The revision that initialize answered is declined or replaced when a client offers it; answer only with \
                 revisions the server supports.",
                &[NEGOTIATION],
            )
            .reason(
                "protocol-notification-status",
                "An accepted notification was answered with another status than 202; answer 202 Accepted with no body.",
                &[NOTIFICATION_STATUS],
            )
            .reason(
                CALL_FAILED,
                "The request for this check was not completed: timeout, closed connection, or an answer that is none; make \
                 the server answer every request, and look at its log for a crash.",
                &[UNKNOWN_METHOD, PING, UNKNOWN_TOOL, SURFACES, NEGOTIATION, NOTIFICATION_STATUS],
            )
            .asks(6, 2, 1_000)
    }

    fn run(target: &Target, _case: &Case) -> Result<Outcome, Fault> {
        let facts = target.facts();
        let mut talk = Talk::new(target);
        let mut checks: Vec<(&str, Judged)> = Vec::new();

        let asked = talk.ask("mcpeval/unknown", ())?;
        checks.push((UNKNOWN_METHOD, Judged::of(&asked, unknown_method)));
        let asked = talk.ask("ping", ())?;
        checks.push((PING, Judged::of(&asked, ping)));
        let asked = talk.ask("tools/call", json!({"name": unlisted(target), "arguments": {}}))?;
        checks.push((UNKNOWN_TOOL, unknown_tool(&asked)));
        checks.push((PAGINATION, pagination(target)));
        if let Some(judged) = surfaces(&mut talk, facts.greeting.view())? {
            checks.push((SURFACES, judged));
        }
        // Without an opening there is nothing to negotiate.
        if facts.lifecycle == "handshake" {
            checks.push((NEGOTIATION, negotiation(&facts.revision, |offer| talk.greet(offer))?));
        }
        if facts.transport == "http" {
            let lost = match talk.odd_acks() {
                Some(0) => None,
                Some(_) => Some("protocol-notification-status"),
                None => Some(CALL_FAILED),
            };
            checks.push((NOTIFICATION_STATUS, Judged::new(lost, None)));
        }

        let attempts = talk.requests();
        if !talk.completed_any() {
            // Nothing was answered: one loss says it all.
            let evidence =
                checks.into_iter().filter(|(check, _)| *check == PING).flat_map(|(_, judged)| judged.evidence);
            Finding::fail(PING, CALL_FAILED).evidence(evidence).submit();
            report::score(AREA, 0.0);
            return Ok(Outcome { attempts, first_failure: None });
        }
        let (mut passed, mut applicable) = (0_u32, 0_u32);
        for (check, judged) in checks {
            applicable += 1;
            passed += u32::from(judged.lost.is_none());
            judged.finding(check).submit();
        }
        report::score(AREA, 100.0 * f64::from(passed) / f64::from(applicable));
        Ok(Outcome { attempts, first_failure: None })
    }
}

mcpeval_probe::export!(Protocol);

#[cfg(test)]
mod tests;
