//! Everything a scripted run knows, and the rules it holds a probe to.

#![expect(clippy::type_complexity, reason = "each hook is named once")]

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Replied, Reply, Sent};
use crate::bindings::mcpeval::probe::{session as contract, types};
use crate::finding::MAX_EVIDENCE;
use crate::http::Request as HttpRequest;
use crate::log::Severity;
use crate::{
    Allowance, Cause, ExchangeId, Fault, Finding, IncomingKind, Isolation, Json, Options, Reading, Refusal, Verdict,
};

pub(super) struct Conversation {
    pub(super) alive: bool,
    /// In the order of arrival.
    pub(super) inbox: Vec<Unread>,
    /// When the answers under way will be ready.
    pub(super) due_us: Vec<u64>,
}

impl Conversation {
    fn new(alive: bool) -> Self {
        Self { alive, inbox: Vec::new(), due_us: Vec::new() }
    }
}

/// A message that answers nothing.
pub(super) struct Unread {
    pub(super) at_us: u64,
    pub(super) exchange: ExchangeId,
    pub(super) kind: IncomingKind,
    pub(super) message: Json,
}

pub(super) struct Waiting {
    pub(super) session: u32,
    pub(super) ready_us: u64,
    pub(super) outcome: Option<Result<contract::Answer, Fault>>,
}

type OnHttp = dyn FnMut(&HttpRequest) -> (u16, Vec<(String, Vec<u8>)>, Vec<u8>);

pub(super) struct State {
    pub(super) facts: contract::Facts,
    pub(super) tools: Vec<contract::Tool>,
    pub(super) entries: Vec<String>,
    pub(super) subjects: HashSet<String>,
    pub(super) arguments: HashMap<String, Json>,
    pub(super) listing_fault: Option<Cause>,
    pub(super) budget: Allowance,
    pub(super) odd_acks: u32,
    pub(super) on_request: Box<dyn FnMut(&Sent) -> Reply>,
    pub(super) on_greet: Option<Box<dyn FnMut(&Options) -> Reply>>,
    pub(super) on_open: Box<dyn FnMut(u32) -> Result<(), Cause>>,
    pub(super) on_reply: Box<dyn FnMut(&Replied) -> Result<(), Cause>>,
    pub(super) has_stream: bool,
    pub(super) on_validate: Box<dyn FnMut(&Value, &Value) -> Result<(), Vec<String>>>,
    pub(super) on_check: Box<dyn FnMut(&Value) -> Result<(), String>>,
    pub(super) on_counterexample: Box<dyn FnMut(&Value) -> Option<Value>>,
    pub(super) on_example: Box<dyn FnMut(&Value) -> Option<Value>>,
    pub(super) on_matches: Box<dyn FnMut(&str, &str) -> Result<bool, String>>,
    pub(super) on_bytes: Box<dyn FnMut(&[u8]) -> Vec<u8>>,
    pub(super) on_http: Box<OnHttp>,

    pub(super) manifest: Option<types::Manifest>,
    pub(super) now_us: u64,
    pub(super) exchanges: ExchangeId,
    pub(super) primary: u32,
    pub(super) sessions: Vec<Conversation>,
    pub(super) sent: Vec<Sent>,
    pub(super) openings: u32,
    pub(super) opened: Vec<Options>,
    pub(super) listened: Vec<u32>,
    pub(super) notified: Vec<Sent>,
    pub(super) replied: Vec<Replied>,
    /// Requests of the server that nobody has answered.
    unanswered: HashMap<ExchangeId, Value>,
    pub(super) findings: Vec<Finding>,
    pub(super) measurements: Vec<(String, Option<String>, Reading)>,
    pub(super) scores: Vec<(String, f64, Option<f64>)>,
    pub(super) progress: Vec<(u32, u32)>,
    pub(super) log: Vec<(Severity, String)>,
}

impl Default for State {
    fn default() -> Self {
        let facts = contract::Facts {
            transport: "stdio".to_owned(),
            revision: "2025-11-25".to_owned(),
            lifecycle: "handshake".to_owned(),
            isolation: Isolation::Process,
            startup_ms: 50,
            greeting: r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#.to_owned(),
        };
        Self {
            facts,
            tools: Vec::new(),
            entries: Vec::new(),
            subjects: HashSet::new(),
            arguments: HashMap::new(),
            listing_fault: None,
            budget: Allowance { requests: 4096, sessions: 4096, millis: 300_000 },
            odd_acks: 0,
            on_request: Box::new(|_| Reply::result(serde_json::json!({}))),
            on_greet: None,
            on_open: Box::new(|_| Ok(())),
            on_reply: Box::new(|_| Ok(())),
            has_stream: true,
            on_validate: Box::new(|_, _| Ok(())),
            on_check: Box::new(|schema| match schema {
                Value::Object(_) | Value::Bool(_) => Ok(()),
                _ => Err("no schema".to_owned()),
            }),
            on_counterexample: Box::new(|_| None),
            on_example: Box::new(|_| None),
            on_matches: Box::new(|pattern, text| Ok(text.contains(pattern))),
            on_bytes: Box::new(|_| Vec::new()),
            on_http: Box::new(|_| (404, Vec::new(), Vec::new())),
            manifest: None,
            now_us: 0,
            exchanges: 2,
            primary: 0,
            sessions: vec![Conversation::new(true)],
            sent: Vec::new(),
            openings: 0,
            opened: Vec::new(),
            listened: Vec::new(),
            notified: Vec::new(),
            replied: Vec::new(),
            unanswered: HashMap::new(),
            findings: Vec::new(),
            measurements: Vec::new(),
            scores: Vec::new(),
            progress: Vec::new(),
            log: Vec::new(),
        }
    }
}

impl State {
    pub(super) fn exchange(&mut self) -> ExchangeId {
        self.exchanges += 1;
        self.exchanges
    }

    pub(super) fn fault(&mut self, cause: Cause) -> Fault {
        let exchange = if matches!(cause, Cause::Refused(_)) { None } else { Some(self.exchange()) };
        Fault { cause, exchange, detail: "scripted".to_owned() }
    }

    fn refuse(&mut self, refusal: Refusal) -> Fault {
        self.fault(Cause::Refused(refusal))
    }

    pub(super) fn spent_ms(&self) -> u32 {
        u32::try_from(self.now_us / 1000).unwrap_or(u32::MAX)
    }

    /// Takes one request, and a session if it opens one, off the budget.
    fn charge(&mut self, opens: bool) -> Result<(), Fault> {
        if self.spent_ms() >= self.budget.millis {
            return Err(self.refuse(Refusal::Deadline));
        }
        if self.budget.requests == 0 {
            return Err(self.refuse(Refusal::Requests));
        }
        if opens && self.budget.sessions == 0 {
            return Err(self.refuse(Refusal::Sessions));
        }
        self.budget.requests -= 1;
        self.budget.sessions -= u32::from(opens);
        self.openings += u32::from(opens);
        Ok(())
    }

    pub(super) fn open(&mut self) -> Result<u32, Fault> {
        self.charge(true)?;
        let number = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX);
        self.now_us += u64::from(self.facts.startup_ms) * 1000;
        let opened = (self.on_open)(number);
        self.sessions.push(Conversation::new(opened.is_ok()));
        opened.map(|()| number).map_err(|cause| self.fault(cause))
    }

    pub(super) fn primary(&mut self) -> Result<u32, Fault> {
        if !self.sessions[self.primary as usize].alive {
            self.primary = self.open()?;
        }
        Ok(self.primary)
    }

    pub(super) fn greet(&mut self, options: &Options) -> Result<contract::Answer, Fault> {
        self.charge(true)?;
        let reply = match &mut self.on_greet {
            Some(answer) => answer(options),
            None => Reply::result(serde_json::from_str::<Value>(&self.facts.greeting).unwrap_or_default()),
        };
        self.now_us += u64::from(reply.elapsed_us);
        self.answer(&reply)
    }

    fn answer(&mut self, reply: &Reply) -> Result<contract::Answer, Fault> {
        match &reply.outcome {
            Ok(words) => Ok(contract::Answer {
                exchange: self.exchange(),
                elapsed_us: reply.elapsed_us,
                status: reply.status,
                reply: words
                    .as_ref()
                    .map(|result| result.as_str().to_owned())
                    .map_err(|error| error.as_str().to_owned()),
            }),
            Err(cause) => Err(self.fault(*cause)),
        }
    }

    /// The policy of a read-only run.
    fn allowed(&mut self, sent: &Sent) -> Result<(), Fault> {
        let Some(name) = sent.tool() else { return Ok(()) };
        let blocked = match self.tools.iter().find(|tool| tool.name == name) {
            Some(tool) => tool.blocked,
            None if name.starts_with("mcpeval-") => None,
            None => Some(Refusal::UnlistedTool),
        };
        blocked.map_or(Ok(()), |refusal| Err(self.refuse(refusal)))
    }

    pub(super) fn start(
        &mut self,
        session: u32,
        method: &str,
        params: Option<&str>,
        timeout_ms: Option<u32>,
    ) -> Result<Waiting, Fault> {
        let params = params.map_or(Value::Null, |text| serde_json::from_str(text).expect("params are one JSON value"));
        let sent = Sent { session, method: method.to_owned(), params, at_us: self.now_us, timeout_ms };
        self.allowed(&sent)?;
        self.charge(false)?;
        let alive = self.sessions[session as usize].alive;
        let reply = if alive { (self.on_request)(&sent) } else { Reply::fault(Cause::Closed) };
        self.sent.push(sent);
        for (after_ms, kind, message) in &reply.besides {
            let exchange = self.exchange();
            if *kind == IncomingKind::Request {
                self.unanswered.insert(exchange, message.parse().expect("a request of the server is JSON"));
            }
            let at_us = self.now_us + u64::from(*after_ms) * 1000;
            let inbox = &mut self.sessions[session as usize].inbox;
            inbox.push(Unread { at_us, exchange, kind: *kind, message: message.clone() });
            inbox.sort_by_key(|unread| unread.at_us);
        }
        let outcome = self.answer(&reply);
        let ready_us = self.now_us + u64::from(reply.elapsed_us);
        self.sessions[session as usize].due_us.push(ready_us);
        Ok(Waiting { session, ready_us, outcome: Some(outcome) })
    }

    pub(super) fn notify(&mut self, session: u32, method: &str, params: Option<&str>) -> Result<ExchangeId, Fault> {
        let params = params.map_or(Value::Null, |text| serde_json::from_str(text).expect("params are one JSON value"));
        let sent = Sent { session, method: method.to_owned(), params, at_us: self.now_us, timeout_ms: None };
        self.allowed(&sent)?;
        self.notified.push(sent);
        Ok(self.exchange())
    }

    /// A request of the server is answered once, with one JSON value.
    pub(super) fn reply(&mut self, request: ExchangeId, outcome: Result<&str, &str>) -> Result<ExchangeId, Fault> {
        let read = |text: &str| serde_json::from_str(text).expect("a reply is one JSON value");
        let question = self.unanswered.remove(&request).expect("a reply answers a request that waits for one");
        let replied = Replied { question, outcome: outcome.map(read).map_err(read) };
        let taken = (self.on_reply)(&replied);
        self.replied.push(replied);
        taken.map_err(|cause| self.fault(cause))?;
        Ok(self.exchange())
    }

    /// Moves the clock on by the wait, or to the moment something is ready within it.
    pub(super) fn sleep(&mut self, ready_us: Option<u64>, wait_ms: u32) -> bool {
        let limit = self.now_us + u64::from(wait_ms) * 1000;
        let ready = ready_us.is_some_and(|ready| ready <= limit);
        self.now_us = if ready { ready_us.unwrap_or(limit).max(self.now_us) } else { limit };
        ready
    }

    /// The outcome of a request has reached the probe; some faults end the session.
    pub(super) fn settle(&mut self, waiting: &Waiting, outcome: &Result<contract::Answer, Fault>) {
        let session = &mut self.sessions[waiting.session as usize];
        session.due_us.retain(|due| *due != waiting.ready_us);
        if let Err(fault) = outcome
            && !matches!(fault.cause, Cause::Refused(_) | Cause::Malformed | Cause::Status(_))
        {
            session.alive = false;
        }
    }

    fn declared(&self) -> &types::Manifest {
        self.manifest.as_ref().expect("a manifest is set before the run")
    }

    /// A declared check or metric of the run's own areas, a known tool, existing evidence: what a host traps for.
    pub(super) fn submit(&mut self, finding: &Finding) {
        let manifest = self.declared();
        let Finding { check, reason, .. } = finding;
        assert!(manifest.checks.iter().any(|declared| declared.id == *check), "undeclared check {check}");
        if let Some(reason) = reason {
            let declared = manifest.reasons.iter().any(|known| known.label == *reason && known.checks.contains(check));
            assert!(declared || finding.verdict == Verdict::Error, "{check} does not declare the reason {reason}");
        }
        assert!(reason.is_some() || finding.verdict != Verdict::Fail, "{check} fails without a reason");
        if let Some(bound) = &finding.bound {
            let schema: Value = serde_json::from_str(&manifest.config_schema).unwrap_or_default();
            assert!(has_property(&schema, &bound.name), "the config schema has no {}", bound.name);
        }
        self.known_subject(finding.subject.as_deref());
        assert!(finding.evidence.len() <= MAX_EVIDENCE, "more than {MAX_EVIDENCE} exchanges cited");
        assert!(finding.evidence.iter().all(|cited| (1..=self.exchanges).contains(cited)), "forged evidence");
        self.findings.push(finding.clone());
    }

    fn known_subject(&self, subject: Option<&str>) {
        let known = subject.is_none_or(|subject| self.subjects.contains(subject));
        assert!(known, "unknown subject {subject:?}");
    }

    pub(super) fn measure(&mut self, measurement: &types::Measurement) {
        let types::Measurement { metric, subject, value } = measurement;
        let declared = self.declared().metrics.iter().find(|known| known.name == *metric);
        let labels = &declared.unwrap_or_else(|| panic!("undeclared metric {metric}")).labels;
        match value {
            Reading::Number(number) => assert!(number.is_finite() && labels.is_empty(), "{metric} is {number}"),
            Reading::Label(label) => assert!(labels.contains(label), "{metric} is {label}"),
        }
        self.known_subject(subject.as_deref());
        self.measurements.push((metric.clone(), subject.clone(), value.clone()));
    }

    pub(super) fn score(&mut self, area: &types::AreaScore) {
        let types::AreaScore { area, score, untimed } = area;
        let declared = self.declared().checks.iter().any(|check| check.area.as_ref() == Some(area));
        assert!(declared, "undeclared area {area}");
        assert!(self.scores.iter().all(|(known, ..)| known != area), "area {area} is scored twice");
        let range = 0.0..=100.0;
        assert!(range.contains(score) && untimed.is_none_or(|untimed| range.contains(&untimed)), "score {score}");
        self.scores.push((area.clone(), *score, *untimed));
    }
}

/// Whether a schema, or one inside it, has a property of that name.
fn has_property(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Object(members) => {
            members.get("properties").is_some_and(|properties| properties.get(name).is_some())
                || members.values().any(|inner| has_property(inner, name))
        }
        Value::Array(items) => items.iter().any(|inner| has_property(inner, name)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::ToolClass;
    use crate::json;
    use crate::testing::Script;

    #[test]
    fn classes_follow_the_hints() {
        let schema = json!({"type": "object"});
        let script = Script::new([
            json!({"name": "a", "inputSchema": schema, "annotations": {"readOnlyHint": true}}),
            json!({"name": "b", "inputSchema": schema, "annotations": {"readOnlyHint": true, "destructiveHint": true}}),
            json!({"name": "c", "inputSchema": schema, "annotations": {"readOnlyHint": "yes"}}),
            json!({"name": "bad/name", "inputSchema": schema}),
            json!({"name": "d"}),
            json!(5),
        ]);
        let seen: Vec<_> = script.state.tools.iter().map(|tool| (tool.name.as_str(), tool.class)).collect();
        assert_eq!(
            seen,
            [
                ("a", ToolClass::ReadOnly),
                ("b", ToolClass::Writer),
                ("c", ToolClass::Unannotated),
                ("invalid-name#3", ToolClass::Invalid),
                ("d", ToolClass::Invalid),
                ("invalid-name#5", ToolClass::Invalid),
            ]
        );
    }
}
