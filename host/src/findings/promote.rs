//! Which groups of failures are worth a finding.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;
use serde_json::Value;

use super::classify::{Traits, class, severity};
use crate::error::Result;
use crate::store::Home;
use crate::store::hash;
use crate::store::index::{Calls, Evidence, Issue, Member, Rewriting};
use crate::store::lifecycle::{Found, Lifecycle, Standing};
use crate::store::record::moment;
use crate::store::settings::Settings;

/// The threshold where nobody set another.
pub const THRESHOLD: f64 = 0.324_250_563_780_762;
/// Sessions in which a group must have failed.
pub const SESSIONS: usize = 2;

/// The normal quantile of a confidence of 95 per cent, both sides.
const Z: f64 = 1.959_963_984_540_054;
/// Days in which recency halves.
const HALF_LIFE_DAYS: f64 = 14.0;
const SECONDS_A_DAY: f64 = 86_400.0;
/// A call, and the most records that its window holds.
const MOST_COST: usize = 1 + 8;
/// What stands for the template and code of calls that were called false successes.
const FALSE_SUCCESS: &str = "false-success";

/// How many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Promoted {
    /// Findings.
    pub findings: u64,
    /// Groups, those that are findings included.
    pub issues: u64,
}

/// Groups the failures of the index, and keeps those as findings that reach the threshold: the given one, else the
/// home's, else [`THRESHOLD`].
///
/// # Errors
/// Unfinished if there is no index, it is not fit, or a database does not take the result; a usage error if the settings
/// of the home cannot be read. Issues and findings are then what they were.
pub fn promote(home: &Home, threshold: Option<f64>, now: Timestamp) -> Result<Promoted> {
    let threshold = match threshold {
        Some(threshold) => threshold,
        None => Settings::of(home)?.promotion_threshold.unwrap_or(THRESHOLD),
    };
    let mut evidence = Evidence::take(home)?;
    let standing = match Lifecycle::to_read(home)? {
        Some(lifecycle) => lifecycle.standing()?,
        None => BTreeMap::new(),
    };
    let rewriting = evidence.rewrite()?;
    let judge = Judge { rewriting: &rewriting, calls: rewriting.calls()?, standing, threshold, now };
    let mut outcome = Outcome::default();
    for kind in [Kind::Errors, Kind::FalseSuccesses] {
        judge.all(kind, &mut outcome)?;
    }
    if !outcome.found.is_empty() {
        // Before the findings are there for others: nobody finds one that has no state.
        Lifecycle::to_write(home)?.register(&outcome.found, now)?;
    }
    rewriting.commit()?;
    Ok(Promoted { findings: outcome.found.len() as u64, issues: outcome.issues })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Failures by server, tool and template.
    Errors,
    /// Annotated calls by server and tool.
    FalseSuccesses,
}

#[derive(Debug, Default)]
struct Outcome {
    found: Vec<Found>,
    issues: u64,
}

struct Judge<'a> {
    rewriting: &'a Rewriting<'a>,
    calls: Calls,
    standing: BTreeMap<String, Standing>,
    threshold: f64,
    now: Timestamp,
}

impl Judge<'_> {
    /// One group after another, so that only one is in memory.
    fn all(&self, kind: Kind, outcome: &mut Outcome) -> Result<()> {
        let mut group: Option<Group> = None;
        let mut visit = |member: Member| {
            let key = Key::of(kind, &member);
            if group.as_ref().is_none_or(|group| group.key != key)
                && let Some(done) = group.replace(Group::new(key))
            {
                self.judge(&done, outcome)?;
            }
            if let Some(group) = &mut group {
                group.add(member);
            }
            Ok(())
        };
        match kind {
            Kind::Errors => self.rewriting.failures(&mut visit)?,
            Kind::FalseSuccesses => self.rewriting.false_successes(&mut visit)?,
        }
        group.map_or(Ok(()), |last| self.judge(&last, outcome))
    }

    fn judge(&self, group: &Group, outcome: &mut Outcome) -> Result<()> {
        let has_probe = self.standing.get(&group.key.finding_id()).is_some_and(|standing| standing.probe_id.is_some());
        let calls = self.calls.of(&group.key.server, &group.key.tool);
        let issue = group.issue(calls, self.threshold, self.now, has_probe);
        let is_finding = group.sessions.len() >= SESSIONS && issue.score >= self.threshold;
        self.rewriting.add(&issue, is_finding)?;
        outcome.issues += 1;
        if is_finding {
            outcome.found.push(Found {
                newest_failure: group.newest,
                finding_id: issue.finding_id,
                server: issue.server,
                tool: issue.tool,
                err_code: issue.err_code,
                err_template_id: issue.err_template_id,
            });
        }
        Ok(())
    }
}

/// What the members of a group share.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    server: String,
    tool: String,
    /// None of false successes.
    template_id: Option<String>,
}

impl Key {
    fn of(kind: Kind, member: &Member) -> Self {
        let template_id = match kind {
            Kind::Errors => Some(member.template_id.clone().unwrap_or_default()),
            Kind::FalseSuccesses => None,
        };
        Self { server: member.server.clone(), tool: member.tool.clone(), template_id }
    }

    fn finding_id(&self) -> String {
        match &self.template_id {
            Some(template_id) => hash::finding(&self.server, &self.tool, template_id),
            None => hash::false_success(&self.server, &self.tool),
        }
    }
}

/// Failures that belong together.
#[derive(Debug)]
struct Group {
    key: Key,
    failures: u64,
    sessions: HashSet<String>,
    codes: BTreeMap<String, u64>,
    tools: BTreeSet<String>,
    /// Members by their cost.
    costs: [u64; MOST_COST + 1],
    /// Members that say true and false of trying again.
    retryable: [u64; 2],
    is_blocked: bool,
    recovers: bool,
    newest: Timestamp,
    last_seen: String,
    earliest: Option<(Timestamp, Option<String>)>,
}

impl Group {
    fn new(key: Key) -> Self {
        Self {
            tools: BTreeSet::from([key.tool.clone()]),
            key,
            failures: 0,
            sessions: HashSet::new(),
            codes: BTreeMap::new(),
            costs: [0; MOST_COST + 1],
            retryable: [0; 2],
            is_blocked: false,
            recovers: false,
            newest: Timestamp::MIN,
            last_seen: String::new(),
            earliest: None,
        }
    }

    fn add(&mut self, member: Member) {
        self.failures += 1;
        self.sessions.insert(member.session);
        if let Some(code) = member.code {
            *self.codes.entry(code).or_default() += 1;
        }
        let mut cost = 1;
        for neighbour in &member.neighbours {
            cost += usize::from(neighbour.is_real);
            let Some(tool) = &neighbour.tool else { continue };
            self.recovers |= neighbour.is_later && neighbour.is_ok && *tool == self.key.tool;
            if !self.tools.contains(tool) {
                self.tools.insert(tool.clone());
            }
        }
        if let Some(members) = self.costs.get_mut(cost.min(MOST_COST)) {
            *members += 1;
        }
        match member.retryable {
            Some(true) => self.retryable[0] += 1,
            Some(false) => self.retryable[1] += 1,
            None => {}
        }
        self.is_blocked |= member.is_blocked;
        // The index takes no record without a moment.
        let ts = moment(&member.ts).unwrap_or(Timestamp::MIN);
        if self.last_seen.is_empty() || ts > self.newest {
            (self.newest, self.last_seen) = (ts, member.ts);
        }
        if self.earliest.as_ref().is_none_or(|(earliest, _)| ts < *earliest) {
            self.earliest = Some((ts, member.args));
        }
    }

    fn traits(&self) -> Traits {
        Traits {
            is_false_success: self.key.template_id.is_none(),
            has_several_codes: self.codes.len() > 1,
            is_blocked: self.is_blocked,
            is_retryable: self.retryable[0] == self.failures,
            recovers: self.recovers,
        }
    }

    fn issue(&self, calls: u64, threshold: f64, now: Timestamp, has_probe: bool) -> Issue {
        let blast = self.tools.len() as u64;
        let measures = Measures::of(self.failures, calls, age_days(self.newest, now), median(&self.costs), blast);
        let traits = self.traits();
        // Of equally frequent ones the smallest: they come in order, and only a greater count replaces one.
        let most = self.codes.iter().fold(None, |most: Option<(&String, u64)>, (code, count)| match most {
            Some((_, before)) if before >= *count => most,
            _ => Some((code, *count)),
        });
        let none = || FALSE_SUCCESS.to_owned();
        let mut err_codes: Vec<String> = self.codes.keys().cloned().collect();
        if err_codes.is_empty() {
            err_codes.push(none());
        }
        Issue {
            finding_id: self.key.finding_id(),
            server: self.key.server.clone(),
            tool: self.key.tool.clone(),
            err_code: most.map_or_else(none, |(code, _)| code.clone()),
            err_codes,
            err_template_id: self.key.template_id.clone().unwrap_or_else(none),
            class: class(traits).word().to_owned(),
            failures: self.failures,
            calls,
            sessions: self.sessions.len() as u64,
            last_seen: self.last_seen.clone(),
            cost: measures.cost,
            blast,
            rate: measures.rate,
            confidence: measures.confidence,
            recency: measures.recency,
            score: measures.score,
            threshold,
            severity: severity(measures.score, threshold, traits, has_probe).word().to_owned(),
            args: self.earliest.as_ref().and_then(|(_, args)| args.clone()),
            retryable: match self.retryable {
                [yes, _] if yes == self.failures => Some(true),
                [_, no] if no == self.failures => Some(false),
                _ => None,
            },
        }
    }
}

/// What a group's score is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measures {
    /// Failures per call, 0 to 1.
    pub rate: f64,
    /// The lower bound of the rate, 0 to 1.
    pub confidence: f64,
    /// What time has left of it, 0 to 1.
    pub recency: f64,
    /// Records that a failure takes.
    pub cost: f64,
    /// The product.
    pub score: f64,
}

impl Measures {
    /// Of `failures` of `calls`, the newest that many days old, with the median cost, among that many tools.
    #[expect(clippy::cast_precision_loss, reason = "counts of records, far below 2^52")]
    pub fn of(failures: u64, calls: u64, age_days: f64, cost: f64, blast: u64) -> Self {
        let calls = calls.max(failures).max(1) as f64;
        let rate = failures as f64 / calls;
        let square = Z * Z;
        let spread = Z * (rate * (1.0 - rate) / calls + square / (4.0 * calls * calls)).sqrt();
        let confidence = ((rate + square / (2.0 * calls) - spread) / (1.0 + square / calls)).clamp(0.0, 1.0);
        let recency = 0.5_f64.powf(age_days.max(0.0) / HALF_LIFE_DAYS);
        let reach = 1.0 + (blast.max(1) as f64).log2();
        Self { rate, confidence, recency, cost, score: confidence * recency * (1.0 + cost).log2() * reach }
    }
}

/// Days between a failure and now, never fewer than 0.
fn age_days(failure: Timestamp, now: Timestamp) -> f64 {
    (now.duration_since(failure).as_secs_f64() / SECONDS_A_DAY).max(0.0)
}

/// The median of what is counted per value; of an even number the mean of the middle two.
#[expect(clippy::cast_precision_loss, reason = "values of at most 9")]
fn median(counts: &[u64]) -> f64 {
    let total: u64 = counts.iter().sum();
    let at = |rank: u64| {
        let mut passed = 0;
        let value = counts.iter().position(|count| {
            passed += count;
            passed > rank
        });
        value.unwrap_or_default() as f64
    };
    f64::midpoint(at(total.saturating_sub(1) / 2), at(total / 2))
}

/// The arguments of an issue as JSON.
pub(super) fn repro(args: Option<&str>) -> Value {
    args.and_then(|args| serde_json::from_str(args).ok()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests;
