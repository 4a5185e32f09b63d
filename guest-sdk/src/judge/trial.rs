//! From requests to the verdict of a case.

use crate::finding::MAX_EVIDENCE;
use crate::{ExchangeId, Finding, Outcome};

/// Counts the requests a verdict rests on, and says the verdict.
#[derive(Clone, Debug)]
#[must_use = "a trial without verdict says nothing"]
pub struct Trial {
    checks: &'static [&'static str],
    attempts: u32,
    evidence: Vec<ExchangeId>,
}

impl Trial {
    /// Of a kind with these checks, in the order in which they are decided.
    pub const fn new(checks: &'static [&'static str]) -> Self {
        Self { checks, attempts: 0, evidence: Vec::new() }
    }

    /// One more request was made; these exchanges show what came of it.
    pub fn attempt(&mut self, exchanges: impl IntoIterator<Item = ExchangeId>) {
        self.attempts = self.attempts.saturating_add(1);
        self.cite(exchanges);
    }

    /// Exchanges that the verdict rests on beside the requests that count.
    pub fn cite(&mut self, exchanges: impl IntoIterator<Item = ExchangeId>) {
        self.evidence.extend(exchanges);
    }

    /// Requests made so far.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Every check holds.
    pub fn pass(self) -> Outcome {
        let evidence = self.newest();
        for check in self.checks {
            Finding::pass(check).evidence(evidence.iter().copied()).submit();
        }
        Outcome { attempts: self.attempts, first_failure: None }
    }

    /// The request made last failed that check, or if none was made, what was known before. Checks before it hold,
    /// those after it were not reached.
    pub fn fail(self, finding: Finding) -> Outcome {
        let number = self.attempts;
        self.fail_at(finding, number)
    }

    /// As [`Trial::fail`], for a request before the last: its number, from 1.
    pub fn fail_at(self, finding: Finding, number: u32) -> Outcome {
        let at = self.checks.iter().position(|check| *check == finding.check).unwrap_or_default();
        for check in &self.checks[..at] {
            Finding::pass(check).submit();
        }
        finding.evidence(self.newest()).submit();
        for check in self.checks.iter().skip(at + 1) {
            Finding::untested(check).submit();
        }
        Outcome { attempts: self.attempts, first_failure: (number > 0).then_some(number) }
    }

    /// The exchanges that can be cited: of too many the last, since the last one decides.
    fn newest(&self) -> Vec<ExchangeId> {
        self.evidence.iter().rev().take(MAX_EVIDENCE).rev().copied().collect()
    }
}
