//! A scripted server: run a probe natively and see what it asked and said.
//!
//! The script has a clock of its own, so that waits and lanes are exact and take no time.
//!
//! ```
//! use mcpeval_probe::testing::{Reply, Script};
//! use mcpeval_probe::{Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target, json};
//!
//! struct Pong;
//!
//! impl Probe for Pong {
//!     fn manifest() -> Manifest {
//!         Manifest::new("acme.pong", "0.1.0", "ping is answered")
//!             .check(Check::new("acme.pong", Level::Must, "ping gives an object"))
//!             .reason("acme.no-pong", "Answer ping with an empty object.", &["acme.pong"])
//!     }
//!
//!     fn run(target: &Target, _case: &Case) -> Result<Outcome, Fault> {
//!         let answer = target.primary()?.request("ping", ())?;
//!         if answer.object().is_none() {
//!             Finding::fail("acme.pong", "acme.no-pong").evidence([answer.exchange]).submit();
//!             return Ok(Outcome { attempts: 1, first_failure: Some(1) });
//!         }
//!         Ok(Outcome { attempts: 1, first_failure: None })
//!     }
//! }
//!
//! let run = Script::new([]).on_request(|_| Reply::error(-32601, "no such method")).run::<Pong>(json!({}));
//! assert_eq!(run.lost(), [("acme.pong".into(), None, "acme.no-pong".into())]);
//! assert_eq!(run.requests(), 1);
//! ```

pub(crate) mod backend;
mod state;

use std::collections::HashSet;

use serde_json::Value;

use crate::bindings::mcpeval::probe::{session as contract, types};
use crate::http::Request as HttpRequest;
use crate::log::Severity;
use crate::{
    Access, Allowance, Case, Cause, Fault, Finding, Incoming, IncomingKind, Isolation, Json, Options, Outcome, Probe,
    Reading, Target, ToolClass, Verdict,
};
use state::State;

/// A request the probe sent, as the script sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// 0 is the first primary session; every further one counts up.
    pub session: u32,
    /// The method.
    pub method: String,
    /// The parameters, `Null` if none were sent.
    pub params: Value,
    /// When it was sent, in microseconds since the run began.
    pub at_us: u64,
    /// The wait it named, in milliseconds; by default the case's own.
    pub timeout_ms: Option<u32>,
}

impl Sent {
    /// The tool of a `tools/call`.
    pub fn tool(&self) -> Option<&str> {
        if self.method == "tools/call" { self.params["name"].as_str() } else { None }
    }
}

/// The probe's answer to a request of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Replied {
    /// The server's message.
    pub question: Value,
    /// The result, or the error object.
    pub outcome: Result<Value, Value>,
}

/// How the scripted server answers one request.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) outcome: Result<Result<Json, Json>, Cause>,
    pub(crate) status: Option<u16>,
    pub(crate) elapsed_us: u32,
    /// After how many milliseconds what else is sent.
    pub(crate) besides: Vec<(u32, IncomingKind, Json)>,
}

impl Reply {
    fn new(outcome: Result<Result<Json, Json>, Cause>) -> Self {
        Self { outcome, status: None, elapsed_us: 1000, besides: Vec::new() }
    }

    /// This result, after one millisecond.
    pub fn result(result: impl Into<Json>) -> Self {
        Self::new(Ok(Ok(result.into())))
    }

    /// A JSON-RPC error.
    pub fn error(code: i64, message: &str) -> Self {
        Self::failure(serde_json::json!({"code": code, "message": message}))
    }

    /// Any error object.
    pub fn failure(error: impl Into<Json>) -> Self {
        Self::new(Ok(Err(error.into())))
    }

    /// No answer, for this cause. Unless it is a reply after all (`malformed`, `status`), the session ends with it.
    pub fn fault(cause: Cause) -> Self {
        Self::new(Err(cause))
    }

    /// The answer comes after this many milliseconds.
    #[must_use]
    pub fn after_ms(mut self, millis: u32) -> Self {
        self.elapsed_us = millis.saturating_mul(1000);
        self
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// A message that the server sends before it answers.
    #[must_use]
    pub fn before(self, kind: IncomingKind, message: impl Into<Json>) -> Self {
        self.beside(0, kind, message)
    }

    /// A message that the server sends this many milliseconds after it got the request, before or after its answer.
    #[must_use]
    pub fn beside(mut self, after_ms: u32, kind: IncomingKind, message: impl Into<Json>) -> Self {
        self.besides.push((after_ms, kind, message.into()));
        self
    }
}

/// A scripted server under test.
pub struct Script {
    state: State,
    access: Access,
    timeout_ms: u32,
}

/// One lost check: its id, its subject and the reason.
pub type Loss = (String, Option<String>, String);

/// What a probe asked and said.
#[derive(Debug)]
pub struct Run {
    /// How it ended.
    pub outcome: Result<Outcome, Fault>,
    /// Everything submitted, in order.
    pub findings: Vec<Finding>,
    /// Metric, subject, reading.
    pub measurements: Vec<(String, Option<String>, Reading)>,
    /// Area, score and untimed score, in the order they were finished.
    pub scores: Vec<(String, f64, Option<f64>)>,
    /// Finished and total, as reported.
    pub progress: Vec<(u32, u32)>,
    /// Requests on sessions, openings not among them.
    pub sent: Vec<Sent>,
    /// Requests spent on openings of sessions, `greet` included.
    pub openings: u32,
    /// How sessions of the probe's own were opened.
    pub opened: Vec<Options>,
    /// Sessions whose HTTP stream the probe asked for.
    pub listened: Vec<u32>,
    /// Notifications the probe sent, those that cancel a request among them.
    pub notified: Vec<Sent>,
    /// Its answers to requests of the server.
    pub replied: Vec<Replied>,
    /// The private log.
    pub log: Vec<(Severity, String)>,
}

impl Run {
    /// What the run cost of the budget.
    pub fn requests(&self) -> u32 {
        u32::try_from(self.sent.len()).unwrap_or(u32::MAX).saturating_add(self.openings)
    }

    /// The failed checks in the order they were submitted.
    pub fn lost(&self) -> Vec<Loss> {
        let failed = self.findings.iter().filter(|finding| finding.verdict == Verdict::Fail);
        failed
            .map(|finding| (finding.check.clone(), finding.subject.clone(), finding.reason.clone().unwrap_or_default()))
            .collect()
    }

    /// The failed finding of that check about that subject.
    pub fn loss(&self, check: &str, subject: Option<&str>) -> Option<&Finding> {
        self.findings.iter().find(|finding| {
            finding.verdict == Verdict::Fail && finding.check == check && finding.subject.as_deref() == subject
        })
    }

    /// The score of a finished area.
    pub fn score(&self, area: &str) -> Option<f64> {
        self.scores.iter().find(|(name, ..)| name == area).map(|(_, score, _)| *score)
    }

    /// The number measured for a metric without subject.
    pub fn number(&self, metric: &str) -> Option<f64> {
        self.measurements.iter().find_map(|(name, subject, reading)| match reading {
            Reading::Number(number) if name == metric && subject.is_none() => Some(*number),
            _ => None,
        })
    }

    /// Methods in the order they were sent.
    pub fn methods(&self) -> Vec<&str> {
        self.sent.iter().map(|sent| sent.method.as_str()).collect()
    }
}

impl Script {
    /// A server over stdio with this catalog. Classes follow the hints of each entry, so an unannotated tool is
    /// blocked until [`Script::attest`]; an entry that is no object, or has no name or no object as `inputSchema`, is
    /// invalid. Without [`Script::on_request`] every request is answered with `{}`.
    pub fn new(tools: impl IntoIterator<Item = Value>) -> Self {
        let mut state = State::default();
        for (position, entry) in tools.into_iter().enumerate() {
            let tool = tool_of(position, &entry);
            state.subjects.insert(tool.name.clone());
            state.tools.push(tool);
            state.entries.push(entry.to_string());
        }
        Self { state, access: Access::ReadOnly, timeout_ms: 15_000 }
    }

    /// Over HTTP, where a new session is the same server.
    #[must_use]
    pub fn http(mut self) -> Self {
        "http".clone_into(&mut self.state.facts.transport);
        self.state.facts.isolation = Isolation::Server;
        self
    }

    /// Over HTTP without a stream for messages that belong to no request: GET is answered 405.
    #[must_use]
    pub fn no_stream(mut self) -> Self {
        self.state.has_stream = false;
        self.http()
    }

    /// In the lifecycle without sessions.
    #[must_use]
    pub fn stateless(mut self) -> Self {
        "stateless".clone_into(&mut self.state.facts.lifecycle);
        self
    }

    /// The server's result to the opening. Its `protocolVersion`, if any, is the negotiated revision.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "made for json!")]
    pub fn greeting(mut self, greeting: Value) -> Self {
        if let Some(revision) = greeting["protocolVersion"].as_str() {
            revision.clone_into(&mut self.state.facts.revision);
        }
        self.state.facts.greeting = greeting.to_string();
        self
    }

    /// The start-up time seen, in milliseconds.
    #[must_use]
    pub fn startup_ms(mut self, millis: u32) -> Self {
        self.state.facts.startup_ms = millis;
        self
    }

    /// Raw text in place of the entry at a position, for what a tree cannot hold.
    #[must_use]
    pub fn raw_entry(mut self, position: usize, text: &str) -> Self {
        if let Some(entry) = self.state.entries.get_mut(position) {
            text.clone_into(entry);
        }
        self
    }

    /// Makes unannotated tools callable, as `--confirm-read-only` does.
    #[must_use]
    pub fn attest(mut self) -> Self {
        for tool in &mut self.state.tools {
            if tool.class == ToolClass::Unannotated {
                tool.blocked = None;
            }
        }
        self
    }

    /// As [`Script::attest`], and the case may call writers and tools that are invalid by their schema only.
    #[must_use]
    pub fn mutating(mut self) -> Self {
        self.access = Access::MayMutate;
        for tool in &mut self.state.tools {
            tool.blocked = None;
        }
        self
    }

    /// The wait for an answer where a request names none, in milliseconds; 15,000 unless told.
    #[must_use]
    pub fn timeout_ms(mut self, millis: u32) -> Self {
        self.timeout_ms = millis;
        self
    }

    /// Skips a tool, as `--skip-tool` does.
    #[must_use]
    pub fn skip(mut self, name: &str) -> Self {
        for tool in self.state.tools.iter_mut().filter(|tool| tool.name == name) {
            tool.blocked = tool.blocked.or(Some(types::Refusal::SkippedTool));
        }
        self
    }

    /// Valid arguments for a tool; the others have none.
    #[must_use]
    pub fn arguments(mut self, tool: &str, arguments: impl Into<Json>) -> Self {
        self.state.arguments.insert(tool.to_owned(), arguments.into());
        self
    }

    /// The listing stopped before its end.
    #[must_use]
    pub fn listing_fault(mut self, cause: Cause) -> Self {
        self.state.listing_fault = Some(cause);
        self
    }

    /// What may be spent.
    #[must_use]
    pub fn budget(mut self, requests: u32, sessions: u32, millis: u32) -> Self {
        self.state.budget = Allowance { requests, sessions, millis };
        self
    }

    /// Notifications of every session that HTTP accepted with another status than 202.
    #[must_use]
    pub fn odd_acks(mut self, each: u32) -> Self {
        self.state.odd_acks = each;
        self
    }

    /// Answers requests.
    #[must_use]
    pub fn on_request(mut self, answer: impl FnMut(&Sent) -> Reply + 'static) -> Self {
        self.state.on_request = Box::new(answer);
        self
    }

    /// Answers `greet`; by default with the greeting.
    #[must_use]
    pub fn on_greet(mut self, answer: impl FnMut(&Options) -> Reply + 'static) -> Self {
        self.state.on_greet = Some(Box::new(answer));
        self
    }

    /// Decides whether the session with this number (1, 2, ...) can be opened; by default each can.
    #[must_use]
    pub fn on_open(mut self, open: impl FnMut(u32) -> Result<(), Cause> + 'static) -> Self {
        self.state.on_open = Box::new(open);
        self
    }

    /// Takes answers to requests of the server, or does not; by default it takes all.
    #[must_use]
    pub fn on_reply(mut self, take: impl FnMut(&Replied) -> Result<(), Cause> + 'static) -> Self {
        self.state.on_reply = Box::new(take);
        self
    }

    /// The schema service: validates an instance; by default everything is valid.
    #[must_use]
    pub fn on_validate(mut self, validate: impl FnMut(&Value, &Value) -> Result<(), Vec<String>> + 'static) -> Self {
        self.state.on_validate = Box::new(validate);
        self
    }

    /// The schema service: whether a schema compiles; by default every object and boolean does.
    #[must_use]
    pub fn on_check(mut self, check: impl FnMut(&Value) -> Result<(), String> + 'static) -> Self {
        self.state.on_check = Box::new(check);
        self
    }

    /// The schema service: an instance that violates the schema; by default there is none.
    #[must_use]
    pub fn on_counterexample(mut self, counterexample: impl FnMut(&Value) -> Option<Value> + 'static) -> Self {
        self.state.on_counterexample = Box::new(counterexample);
        self
    }

    /// The schema service: a valid instance; by default there is none.
    #[must_use]
    pub fn on_example(mut self, example: impl FnMut(&Value) -> Option<Value> + 'static) -> Self {
        self.state.on_example = Box::new(example);
        self
    }

    /// The text service; by default a pattern matches where it stands literally.
    #[must_use]
    pub fn on_matches(mut self, matches: impl FnMut(&str, &str) -> Result<bool, String> + 'static) -> Self {
        self.state.on_matches = Box::new(matches);
        self
    }

    /// Answers bytes on a pipe with bytes; by default with nothing.
    #[must_use]
    pub fn on_bytes(mut self, answer: impl FnMut(&[u8]) -> Vec<u8> + 'static) -> Self {
        self.state.on_bytes = Box::new(answer);
        self
    }

    /// Answers a raw HTTP request with a status, headers and a body; by default with an empty 404.
    #[must_use]
    pub fn on_http(
        mut self,
        answer: impl FnMut(&HttpRequest) -> (u16, Vec<(String, Vec<u8>)>, Vec<u8>) + 'static,
    ) -> Self {
        self.state.on_http = Box::new(answer);
        self
    }

    /// Runs the probe once.
    ///
    /// # Panics
    ///
    /// When the probe breaks the contract where a host would trap it: an undeclared check, reason, metric or area, an
    /// unknown subject, evidence that does not exist, too much evidence, a number that is not finite.
    #[expect(clippy::needless_pass_by_value, reason = "made for json!")]
    pub fn run<P: Probe>(self, config: Value) -> Run {
        let manifest = P::manifest();
        manifest_rules(manifest.contract());
        let mut state = self.state;
        state.manifest = Some(manifest.contract().clone());
        let case = Case::from_contract(types::Case {
            id: "case".to_owned(),
            config: config.to_string(),
            access: self.access,
            timeout_ms: self.timeout_ms,
            seed: 1,
        });
        let (outcome, state) = backend::within(state, |target| P::run(&Target::new(target), &case));
        Run {
            outcome,
            findings: state.findings,
            measurements: state.measurements,
            scores: state.scores,
            progress: state.progress,
            sent: state.sent,
            openings: state.openings,
            opened: state.opened,
            listened: state.listened,
            notified: state.notified,
            replied: state.replied,
            log: state.log,
        }
    }
}

/// What a probe declares, to be tested.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// Name of the kind.
    pub kind: String,
    /// JSON Schema of the case fields.
    pub config: Value,
    /// Ids of the checks.
    pub checks: Vec<String>,
    /// Label and hint of each reason.
    pub reasons: Vec<(String, String)>,
    /// Whether cases may call declared writers.
    pub access: Access,
}

impl Declared {
    /// Reads the probe's manifest.
    ///
    /// # Panics
    ///
    /// When it breaks a rule that a host applies.
    pub fn of<P: Probe>() -> Self {
        let manifest = P::manifest();
        let manifest = manifest.contract();
        manifest_rules(manifest);
        Self {
            kind: manifest.kind.clone(),
            config: serde_json::from_str(&manifest.config_schema).expect("the rules have seen to it"),
            checks: manifest.checks.iter().map(|check| check.id.clone()).collect(),
            reasons: manifest.reasons.iter().map(|reason| (reason.label.clone(), reason.hint.clone())).collect(),
            access: manifest.access,
        }
    }
}

/// The rules a host applies to a manifest when it loads a component.
///
/// # Panics
///
/// When one is broken.
fn manifest_rules(manifest: &types::Manifest) {
    const MAX_DECLARED: usize = 64;
    const MAX_HINT: usize = 400;
    assert!(manifest.checks.len() <= MAX_DECLARED, "more than {MAX_DECLARED} checks");
    assert!(manifest.reasons.len() <= MAX_DECLARED, "more than {MAX_DECLARED} reasons");
    let mut known = HashSet::new();
    for check in &manifest.checks {
        assert!(known.insert(&check.id), "check {} is declared twice", check.id);
        assert!(!check.title.is_empty(), "check {} has no title", check.id);
    }
    for reason in &manifest.reasons {
        let label = &reason.label;
        assert!(!reason.hint.is_empty() && reason.hint.chars().count() <= MAX_HINT, "hint of {label}");
        for check in &reason.checks {
            assert!(known.contains(check), "reason {label} names the undeclared check {check}");
        }
    }
    assert!(serde_json::from_str::<Value>(&manifest.config_schema).is_ok_and(|schema| schema.is_object()));
}

fn tool_of(position: usize, entry: &Value) -> contract::Tool {
    let valid_name = |name: &&str| {
        (1..=128).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
    };
    let name = entry["name"].as_str().filter(valid_name);
    let hints = &entry["annotations"];
    let class = if name.is_none() || !entry["inputSchema"].is_object() {
        ToolClass::Invalid
    } else if hints["destructiveHint"] == true || hints["readOnlyHint"] == false {
        ToolClass::Writer
    } else if hints["readOnlyHint"] == true {
        ToolClass::ReadOnly
    } else {
        ToolClass::Unannotated
    };
    let blocked = match class {
        ToolClass::ReadOnly => None,
        ToolClass::Writer => Some(types::Refusal::WriterTool),
        ToolClass::Unannotated => Some(types::Refusal::UnattestedTool),
        ToolClass::Invalid => Some(types::Refusal::InvalidTool),
    };
    let name = name.map_or_else(|| format!("invalid-name#{position}"), str::to_owned);
    contract::Tool { name, class, blocked }
}

pub(crate) fn incoming(exchange: u32, kind: IncomingKind, message: &Json) -> contract::Incoming {
    let Incoming { exchange, kind, message } = Incoming { exchange, kind, message: message.clone() };
    contract::Incoming { exchange, kind, message: message.as_str().to_owned() }
}
