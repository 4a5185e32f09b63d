//! The report as SARIF 2.1.0, for code scanning and editors. One run; what cannot be decided is a notification of the
//! tool, never a result.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::canonical;
use super::document::{Case, CaseResult, LostCheck, Report, Subject, VERSION};
use super::render::Options;
use super::view::{self, Floor};
use crate::probes::Manifest;

/// The published schema.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// The rule of missed floors.
const FLOOR: &str = "readiness/floor";
const FLOOR_HELP: &str = "The score is below the floor that was asked for; mend the losses, the heaviest area first.";

/// What a component can say: a kind whose cases may fail, or a reason for which readiness is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The kind, or `readiness/` and the reason.
    pub id: String,
    /// What it is about, in a few words.
    pub short: String,
    /// What to change.
    pub help: String,
    /// How bad it is.
    level: Level,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Error,
    Warning,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl Rule {
    fn of_kind(kind: &str, help: String) -> Self {
        Self { id: kind.to_owned(), short: format!("A case of the kind {kind} fails"), help, level: Level::Error }
    }

    fn of_reason(reason: &str, hint: &str) -> Self {
        // What is wrong stands before what to change.
        let short = hint.split_once("; ").or_else(|| hint.split_once(". ")).map_or(hint, |(observed, _)| observed);
        Self {
            id: format!("readiness/{reason}"),
            short: short.to_owned(),
            help: hint.to_owned(),
            level: Level::Warning,
        }
    }

    fn of_floors() -> Self {
        Self {
            id: FLOOR.to_owned(),
            short: "A floor is missed".to_owned(),
            help: FLOOR_HELP.to_owned(),
            level: Level::Error,
        }
    }

    fn descriptor(&self, brief: bool) -> Value {
        let mut rule = json!({
            "id": self.id,
            "shortDescription": {"text": self.short},
            "defaultConfiguration": {"level": self.level.word()},
        });
        if !brief && !self.help.is_empty() {
            rule["help"] = json!({"text": self.help});
        }
        rule
    }
}

/// The rules of the loaded components: one per kind, and one per reason of an area.
pub fn rules<'a>(manifests: impl IntoIterator<Item = &'a Manifest>) -> Vec<Rule> {
    let mut rules = Rules::default();
    for manifest in manifests {
        if manifest.areas().is_empty() {
            let help = manifest.reasons.iter().map(|reason| format!("{}: {}", reason.label, reason.hint));
            rules.add(Rule::of_kind(&manifest.kind, help.collect::<Vec<String>>().join("\n")));
        } else {
            manifest.reasons.iter().for_each(|reason| rules.add(Rule::of_reason(&reason.label, &reason.hint)));
        }
    }
    rules.list
}

/// Rules, of each id one.
#[derive(Debug, Default)]
struct Rules {
    list: Vec<Rule>,
    places: BTreeMap<String, usize>,
}

impl Rules {
    fn add(&mut self, rule: Rule) {
        if !self.places.contains_key(&rule.id) {
            self.places.insert(rule.id.clone(), self.list.len());
            self.list.push(rule);
        }
    }

    /// Those of the loaded components, and what a stored report needs beside them.
    fn of(report: &Report, options: &Options) -> Self {
        let mut rules = Self::default();
        options.rules.iter().cloned().for_each(|rule| rules.add(rule));
        for case in report.cases.iter().filter(|case| !case.passed) {
            let hint = case.hint.as_ref().map(ToString::to_string);
            rules.add(Rule::of_kind(case.probe.as_str(), hint.unwrap_or_default()));
        }
        for check in view::areas(report).iter().flat_map(|area| &area.checks) {
            rules.add(Rule::of_reason(check.reason.as_str(), check.hint.as_str()));
        }
        if report.readiness_gate.is_some() {
            rules.add(Rule::of_floors());
        }
        rules
    }
}

/// The log file.
pub fn render(report: &Report, options: &Options) -> String {
    let rules = Rules::of(report, options);
    let log = Log { report, options, rules: &rules };
    let failed = report.cases.iter().filter(|case| case.result() == CaseResult::Fail).map(|case| log.case(case));
    let lost = view::areas(report).iter().flat_map(|area| &area.checks).map(|check| log.loss(check));
    let floors = view::floors(report);
    let missed = floors.iter().filter(|floor| floor.result == CaseResult::Fail).map(|floor| log.floor(floor));
    let results: Vec<Value> = failed.chain(lost).chain(missed).collect();
    let notifications = log.notifications();
    let descriptors: Vec<Value> = rules.list.iter().map(|rule| rule.descriptor(options.brief)).collect();
    let mut invocation = json!({"executionSuccessful": notifications.is_empty()});
    if !notifications.is_empty() {
        invocation["toolExecutionNotifications"] = notifications.into();
    }
    canonical::document(&json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "mcpeval", "version": VERSION, "rules": descriptors}},
            "automationDetails": {"id": format!("mcpeval/{}/", report.server)},
            "invocations": [invocation],
            "results": results,
        }],
    }))
}

struct Log<'a> {
    report: &'a Report,
    options: &'a Options,
    rules: &'a Rules,
}

impl Log<'_> {
    fn case(&self, case: &Case) -> Value {
        let message = self.message(format!("case {}", case.id), case);
        let mut result = self.result(case.probe.as_str(), Level::Error, &message);
        result.insert("locations".to_owned(), self.locations(self.line(case), tool(case)));
        result.insert(
            "partialFingerprints".to_owned(),
            json!({"mcpevalCaseId": format!("{}/{}", self.report.server, case.id)}),
        );
        result.into()
    }

    fn loss(&self, check: &LostCheck) -> Value {
        let tool = check.tool.as_ref().map(Subject::as_str);
        // Writing to a string cannot fail.
        let mut message = format!("{} is lost", check.id);
        if let Some(tool) = tool {
            _ = write!(message, " by {tool}");
        }
        _ = write!(message, ": {}, score {}", check.reason, check.score.0);
        if let Some(observed) = check.observed {
            _ = write!(message, ", observed {observed}");
        }
        let message = self.hinted(message, check.hint.as_str());
        let mut result = self.result(&format!("readiness/{}", check.reason), Level::Warning, &message);
        result.insert("locations".to_owned(), self.locations(1, tool));
        let fingerprint = format!("{}/{}/{}", self.report.server, check.id, tool.unwrap_or_default());
        result.insert("partialFingerprints".to_owned(), json!({"mcpevalCheck": fingerprint}));
        result.into()
    }

    fn floor(&self, floor: &Floor<'_>) -> Value {
        let observed = floor.observed.map_or_else(|| "none".to_owned(), |observed| observed.0.to_string());
        let message = format!("{} {observed} is below the floor {}", floor.subject, floor.floor.0);
        let mut result = self.result(FLOOR, Level::Error, &message);
        result.insert("locations".to_owned(), self.locations(1, None));
        result.into()
    }

    /// What could not be decided, and why.
    fn notifications(&self) -> Vec<Value> {
        let errored = self.report.cases.iter().filter(|case| case.result() == CaseResult::Error).map(|case| {
            json!({
                "level": "error",
                "descriptor": {"id": case.reason.as_ref().map(ToString::to_string).unwrap_or_default()},
                "associatedRule": self.rule(case.probe.as_str()),
                "message": {"text": self.message(format!("case {}", case.id), case)},
                "locations": self.locations(self.line(case), tool(case)),
            })
        });
        let unfinished = self.report.readiness_error.map(|error| {
            let mut message = format!("readiness: {}", error.0.label());
            if let Some(partial) = &self.report.readiness_partial {
                let (areas, tools) = (partial.areas.len(), &partial.tools);
                _ = write!(message, ", {areas} areas and {} of {} tools finished", tools.finished, tools.total);
            }
            json!({
                "level": "error",
                "descriptor": {"id": error.0.label()},
                "message": {"text": self.hinted(message, error.0.hint())},
                "locations": self.locations(1, None),
            })
        });
        errored.chain(unfinished).collect()
    }

    fn message(&self, subject: String, case: &Case) -> String {
        let mut message = subject;
        if let Some(reason) = &case.reason {
            _ = write!(message, ": {reason}");
        }
        if let Some(first_failure) = case.first_failure {
            _ = write!(message, ", attempt {first_failure} of {}", case.attempts);
        }
        if let Some(detail) = &case.detail {
            _ = write!(message, ", {} {} but observed {}", detail.bound, detail.limit, detail.observed);
        }
        match &case.hint {
            Some(hint) => self.hinted(message, hint.as_str()),
            None => message,
        }
    }

    fn hinted(&self, message: String, hint: &str) -> String {
        if self.options.brief { message } else { format!("{message}. {hint}") }
    }

    fn result(&self, rule: &str, level: Level, message: &str) -> Map<String, Value> {
        let index = self.rules.places.get(rule);
        let members = [
            ("ruleId", Some(rule.into())),
            ("ruleIndex", index.map(|index| json!(index))),
            ("level", Some(level.word().into())),
            ("message", Some(json!({"text": message}))),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    fn rule(&self, id: &str) -> Value {
        match self.rules.places.get(id) {
            Some(index) => json!({"id": id, "index": index}),
            None => json!({"id": id}),
        }
    }

    fn line(&self, case: &Case) -> u64 {
        let lines = self.options.locations.as_ref().map(|locations| &locations.lines);
        lines.and_then(|lines| lines.get(case.id.as_str())).copied().unwrap_or(1)
    }

    fn locations(&self, line: u64, tool: Option<&str>) -> Value {
        let server = self.report.server.as_str();
        let name = tool.map_or_else(|| server.to_owned(), |tool| format!("{server}/{tool}"));
        let mut location = json!({"logicalLocations": [{"fullyQualifiedName": name}]});
        if let Some(locations) = &self.options.locations {
            location["physicalLocation"] =
                json!({"artifactLocation": {"uri": locations.uri}, "region": {"startLine": line}});
        }
        json!([location])
    }
}

fn tool(case: &Case) -> Option<&str> {
    case.tool.as_ref().map(super::document::Label::as_str)
}
