//! Every fault costs what its row says and nothing else, judged by the rules of the battery in small.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{LATEST, Session, Target, http, is_success, text};
use crate::demo::faults::{Cost, Fault};

type Lost = BTreeSet<(&'static str, &'static str)>;

/// A tool as the battery sees it.
struct Listed {
    name: String,
    input: Value,
    output: Option<Value>,
    class: Class,
}

#[derive(PartialEq)]
enum Class {
    Writer,
    Reader,
    Unannotated,
}

#[derive(PartialEq, Clone, Copy)]
enum Outcome {
    Success,
    ToolError,
    Rejected,
    RpcError,
    Transport,
}

fn outcome(reply: Option<&Value>) -> Outcome {
    match reply {
        None => Outcome::Transport,
        Some(reply) if is_success(reply) => Outcome::Success,
        Some(reply) if reply["result"].is_object() => Outcome::ToolError,
        Some(reply) if reply["error"]["code"] == -32602 => Outcome::Rejected,
        Some(_) => Outcome::RpcError,
    }
}

fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::validator_for(schema).is_ok_and(|validator| validator.is_valid(value))
}

/// The first value of a property, with no regard to whether it fits.
fn value_of(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => {
            let least = schema["minimum"].as_i64().unwrap_or(1);
            json!(schema["maximum"].as_i64().map_or(least, |most| least.min(most)))
        }
        _ => json!("mcpeval"),
    }
}

fn arguments(schema: &Value) -> Option<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let names = required.iter().filter_map(Value::as_str);
    let values: serde_json::Map<_, _> =
        names.map(|name| (name.to_owned(), value_of(&schema["properties"][name]))).collect();
    Some(Value::Object(values)).filter(|values| is_valid(schema, values))
}

fn counterexample(schema: &Value) -> Option<Value> {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let wrong = [json!(12345), json!("mcpeval"), json!(true), Value::Null, json!([]), json!({})];
    std::iter::once(json!({}))
        .chain(properties.keys().flat_map(|name| wrong.iter().map(move |value| json!({name: value}))))
        .chain(std::iter::once(json!({"mcpeval_unknown": 1})))
        .find(|candidate| !is_valid(schema, candidate))
}

fn tokens(entry: &Value) -> usize {
    entry.to_string().len().div_ceil(4)
}

struct Battery {
    target: Target,
    session: Session,
    lost: Lost,
}

impl Battery {
    /// What a server loses.
    async fn run(target: Target) -> Lost {
        let session = Session::open(target).await;
        let mut battery = Self { target, session, lost: Lost::new() };
        let tools = battery.catalog().await;
        battery.exercise(&tools).await;
        battery.protocol().await;
        if battery.session.accepted.iter().any(|status| *status != 202) {
            battery.lose("protocol.notification-status", "protocol-notification-status");
        }
        battery.session.close().await;
        battery.lost
    }

    fn lose(&mut self, check: &'static str, reason: &'static str) {
        self.lost.insert((check, reason));
    }

    async fn renew(&mut self) {
        self.session = Session::open(self.target).await;
    }

    async fn catalog(&mut self) -> Vec<Listed> {
        let mut entries: Vec<Value> = Vec::new();
        let mut cursors: Vec<String> = Vec::new();
        let mut sound = true;
        loop {
            let params = cursors.last().map_or(json!({}), |cursor| json!({"cursor": cursor}));
            let reply = self.session.request("tools/list", params).await.unwrap();
            entries.extend(reply["result"]["tools"].as_array().expect("tools").iter().cloned());
            let Some(cursor) = reply["result"]["nextCursor"].as_str() else { break };
            if cursors.iter().any(|seen| seen == cursor) {
                sound = false;
                break;
            }
            cursors.push(cursor.to_owned());
        }
        let total: usize = entries.iter().map(tokens).sum();
        if total > 2_000 {
            self.lose("context.catalog", "context-catalog-heavy");
        }
        if entries.iter().map(tokens).max() > Some(500) {
            self.lose("context.heaviest-tool", "context-tool-heavy");
        }
        if entries.is_empty() {
            self.lose("catalog.empty", "catalog-no-tools");
        }
        let mut tools: Vec<Listed> = Vec::new();
        for entry in &entries {
            let name = entry["name"].as_str().unwrap_or_default();
            if tools.iter().any(|tool| tool.name == name) {
                sound = false;
                continue;
            }
            tools.extend(self.entry(entry));
        }
        if !sound {
            self.lose("protocol.pagination", "protocol-pagination-invalid");
        }
        tools
    }

    fn entry(&mut self, entry: &Value) -> Option<Listed> {
        let name = entry["name"].as_str().unwrap_or_default();
        let input = &entry["inputSchema"];
        let named = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c));
        if !named || !input.is_object() || jsonschema::validator_for(input).is_err() {
            self.lose("catalog.entry", "catalog-invalid-entry");
            return None;
        }
        if entry["description"].as_str().unwrap_or_default().chars().count() < 40 {
            self.lose("catalog.description", "catalog-short-description");
        }
        for property in input["properties"].as_object().into_iter().flat_map(serde_json::Map::values) {
            if property["description"].as_str().unwrap_or_default().is_empty() {
                self.lose("catalog.params-described", "catalog-undescribed-params");
            }
            if ["type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"].iter().all(|key| property[key].is_null()) {
                self.lose("catalog.params-typed", "catalog-untyped-params");
            }
        }
        let reads = entry["annotations"]["readOnlyHint"].as_bool();
        let destroys = entry["annotations"]["destructiveHint"].as_bool();
        let class = match (reads, destroys) {
            (_, Some(true)) | (Some(false), _) => Class::Writer,
            (Some(true), _) => Class::Reader,
            (None, _) => Class::Unannotated,
        };
        if reads.is_none() {
            self.lose("catalog.read-only-declared", "catalog-read-only-undeclared");
        }
        if class == Class::Writer && destroys.is_none() {
            self.lose("catalog.destructive-declared", "catalog-destructive-undeclared");
        }
        let output = Some(entry["outputSchema"].clone()).filter(Value::is_object);
        if output.is_none() {
            self.lose("catalog.output-schema", "catalog-no-output-schema");
        }
        Some(Listed { name: name.to_owned(), input: input.clone(), output, class })
    }

    async fn exercise(&mut self, tools: &[Listed]) {
        let mut judged = 0;
        let mut steady: Vec<(&Listed, Value)> = Vec::new();
        for tool in tools {
            match tool.class {
                Class::Writer => {}
                Class::Unannotated => {
                    self.lose("reliability.none-exercised", "coverage-unannotated");
                    self.lose("coverage.exercised", "coverage-unannotated");
                }
                Class::Reader => {
                    if let Some(wrong) = counterexample(&tool.input) {
                        judged += 1;
                        self.honesty(tool, wrong).await;
                    }
                    match arguments(&tool.input) {
                        None => {
                            self.lose("reliability.none-exercised", "coverage-unsynthesizable");
                            self.lose("coverage.exercised", "coverage-unsynthesizable");
                        }
                        Some(arguments) => {
                            if self.reliability(tool, &arguments).await {
                                steady.push((tool, arguments));
                            }
                        }
                    }
                }
            }
        }
        if tools.iter().all(|tool| tool.class == Class::Writer) {
            for check in ["error-honesty.untestable", "reliability.none-exercised", "coverage.exercised"] {
                self.lose(check, "no-read-only-tools");
            }
        } else if judged == 0 {
            self.lose("error-honesty.untestable", "honesty-untestable");
        }
        if let Some((tool, arguments)) = steady.first() {
            let mut other = Session::open(self.target).await;
            let (ours, theirs) = tokio::join!(
                self.session.call(&tool.name, arguments.clone()),
                other.call(&tool.name, arguments.clone())
            );
            if [ours, theirs].iter().any(|reply| outcome(reply.as_ref()) != Outcome::Success) {
                self.lose("reliability.contention", "reliability-contention-failed");
            }
            other.close().await;
        }
        let strings = steady.iter().find_map(|(tool, arguments)| {
            let properties = tool.input["properties"].as_object()?;
            let (name, _) = properties.iter().find(|(_, property)| property["type"] == "string")?;
            Some((*tool, arguments.clone(), name.clone()))
        });
        if let Some((tool, mut arguments, name)) = strings {
            arguments[name] = json!("a".repeat(1_000_000));
            let answered = self.session.call(&tool.name, arguments).await.is_some();
            if !answered || self.session.request("ping", json!({})).await.is_none() {
                self.lose("reliability.payload", "reliability-payload-unhandled");
                self.renew().await;
            }
        }
    }

    async fn honesty(&mut self, tool: &Listed, wrong: Value) {
        const CHECK: &str = "error-honesty.invalid-arguments";
        let reply = self.session.call(&tool.name, wrong).await;
        match outcome(reply.as_ref()) {
            Outcome::Rejected => {}
            Outcome::ToolError if !text(&reply.unwrap_or_default()).trim().is_empty() => {}
            Outcome::ToolError => self.lose(CHECK, "honesty-empty-error"),
            Outcome::RpcError => self.lose(CHECK, "honesty-wrong-code"),
            Outcome::Success => self.lose(CHECK, "honesty-accepted-invalid"),
            Outcome::Transport => {
                self.lose(CHECK, "honesty-call-failed");
                self.renew().await;
            }
        }
    }

    /// Whether all three calls succeeded.
    async fn reliability(&mut self, tool: &Listed, arguments: &Value) -> bool {
        let mut outcomes = Vec::new();
        let mut times: Vec<Duration> = Vec::new();
        for _ in 0..3 {
            let start = Instant::now();
            let reply = self.session.call(&tool.name, arguments.clone()).await;
            let outcome = outcome(reply.as_ref());
            times.push(start.elapsed());
            outcomes.push(outcome);
            match (outcome, &tool.output, reply) {
                (Outcome::Success, Some(schema), Some(reply))
                    if !is_valid(schema, &reply["result"]["structuredContent"]) =>
                {
                    self.lose("reliability.output-schema", "reliability-output-schema-broken");
                }
                (Outcome::Transport, ..) => {
                    self.renew().await;
                    break;
                }
                (Outcome::Rejected, ..) => break,
                _ => {}
            }
        }
        let successes = outcomes.iter().filter(|outcome| **outcome == Outcome::Success).count();
        if successes == 0 {
            let reason = if outcomes.contains(&Outcome::Rejected) {
                "coverage-rejected-arguments"
            } else {
                "coverage-call-failed"
            };
            self.lose("coverage.exercised", reason);
            if matches!(outcomes.last(), Some(Outcome::Rejected | Outcome::Transport)) {
                self.lose("reliability.none-exercised", reason);
                return false;
            }
        }
        if successes < 3 {
            self.lose("reliability.success", "reliability-call-failed");
        }
        if outcomes.iter().any(|outcome| *outcome != outcomes[0]) {
            self.lose("reliability.consistent", "reliability-inconsistent");
        }
        // The fastest, so that a busy machine does not pass for a slow server.
        if times.iter().min() > Some(&Duration::from_millis(300)) {
            self.lose("reliability.latency", "reliability-slow");
        }
        successes == 3
    }

    async fn protocol(&mut self) {
        match self.session.request("mcpeval/unknown", json!({})).await {
            None => {
                self.lose("protocol.unknown-method", "protocol-call-failed");
                self.renew().await;
            }
            Some(reply) if reply["error"]["code"] == -32601 => {}
            Some(_) => self.lose("protocol.unknown-method", "protocol-unknown-method-answered"),
        }
        let ping = self.session.request("ping", json!({})).await.unwrap();
        if !ping["result"].is_object() {
            self.lose("protocol.ping", "protocol-ping-failed");
        }
        let unknown = self.session.call("mcpeval-unknown-tool", json!({})).await;
        if outcome(unknown.as_ref()) == Outcome::Success {
            self.lose("protocol.unknown-tool", "protocol-unknown-tool-accepted");
        }
        for (method, key) in [("resources/list", "resources"), ("prompts/list", "prompts")] {
            let mut cursor: Option<String> = None;
            let mut ends = false;
            for _ in 0..50 {
                let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
                let reply = self.session.request(method, params).await.unwrap();
                if !reply["result"][key].is_array() {
                    break;
                }
                cursor = reply["result"]["nextCursor"].as_str().map(str::to_owned);
                if cursor.is_none() {
                    ends = true;
                    break;
                }
            }
            if !ends {
                self.lose("protocol.surfaces", "protocol-surface-invalid");
            }
        }
        self.negotiation().await;
    }

    async fn negotiation(&mut self) {
        const CHECK: &str = "protocol.negotiation";
        let first = self.agreed(LATEST).await;
        assert_eq!(first, LATEST);
        let answer = self.agreed("2000-01-01").await;
        if answer == "2000-01-01" {
            self.lose(CHECK, "protocol-negotiation-echoed-unknown");
        } else if answer.len() != 10 || answer.split('-').any(|part| part.parse::<u16>().is_err()) {
            self.lose(CHECK, "protocol-negotiation-invalid-version");
        } else if answer != first && self.agreed(&answer).await != answer {
            self.lose(CHECK, "protocol-negotiation-inconsistent-support");
        }
    }

    async fn agreed(&self, revision: &str) -> String {
        let session = Session::greet(self.target, revision, &json!({})).await;
        let agreed = session.greeting["result"]["protocolVersion"].as_str().unwrap_or_default().to_owned();
        session.close().await;
        agreed
    }
}

fn costs(fault: Fault) -> Lost {
    fault.costs().iter().map(|Cost { check, reason }| (*check, *reason)).collect()
}

#[tokio::test]
async fn a_good_server_loses_nothing() {
    assert_eq!(Battery::run(Target::Pipes(None)).await, Lost::new());
    assert_eq!(Battery::run(http(None).await).await, Lost::new());
}

#[tokio::test]
async fn over_pipes_every_fault_costs_its_row_alone() {
    for fault in Fault::ALL.iter().copied() {
        let expected = if fault.http_only() { Lost::new() } else { costs(fault) };
        assert_eq!(Battery::run(Target::Pipes(Some(fault))).await, expected, "{}", fault.name());
    }
}

#[tokio::test]
async fn over_http_every_fault_costs_its_row_alone() {
    for fault in Fault::ALL.iter().copied() {
        assert_eq!(Battery::run(http(Some(fault)).await).await, costs(fault), "{}", fault.name());
    }
}
