//! Building findings.

use crate::{Bound, ExchangeId, Finding, Verdict, report};

/// A finding cites no more exchanges than this; the host refuses longer lists.
pub(crate) const MAX_EVIDENCE: usize = 64;

impl Finding {
    fn new(check: &str, verdict: Verdict, reason: Option<&str>) -> Self {
        Self {
            check: check.to_owned(),
            subject: None,
            step: None,
            verdict,
            score: None,
            reason: reason.map(str::to_owned),
            bound: None,
            observed: None,
            evidence: Vec::new(),
        }
    }

    /// The check holds.
    pub fn pass(check: &str) -> Self {
        Self::new(check, Verdict::Pass, None)
    }

    /// The check does not hold, for a declared reason.
    pub fn fail(check: &str, reason: &str) -> Self {
        Self::new(check, Verdict::Fail, Some(reason))
    }

    /// No verdict could be reached, for a declared reason or a no-verdict label such as `transport-timeout`. Where a
    /// fault stops the whole run, return it instead.
    pub fn error(check: &str, reason: &str) -> Self {
        Self::new(check, Verdict::Error, Some(reason))
    }

    /// The check did not apply or was not reached.
    pub fn untested(check: &str) -> Self {
        Self::new(check, Verdict::Untested, None)
    }

    /// A tool as [`Target::tools`](crate::Target::tools) names it, or a prompt or resource that a list showed.
    #[must_use]
    pub fn subject(mut self, subject: &str) -> Self {
        self.subject = Some(subject.to_owned());
        self
    }

    /// The position in a list of the case's own.
    #[must_use]
    pub fn step(mut self, step: u32) -> Self {
        self.step = Some(step);
        self
    }

    /// Partial credit: rounded half away from zero, at most 99, since a lost check is never shown whole.
    #[must_use]
    pub fn partial(mut self, score: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=99")]
        let whole = (score + 1e-9).round().clamp(0.0, 99.0) as u8;
        self.score = Some(whole);
        self
    }

    /// The number that was judged.
    #[must_use]
    pub fn observed(mut self, observed: u32) -> Self {
        self.observed = Some(observed);
        self
    }

    /// The broken bound of a case.
    #[must_use]
    pub fn bound(mut self, name: &str, limit: u32, observed: u32) -> Self {
        self.bound = Some(Bound { name: name.to_owned(), limit, observed });
        self
    }

    /// The exchanges it rests on; of more than 64 the first.
    #[must_use]
    pub fn evidence(mut self, exchanges: impl IntoIterator<Item = ExchangeId>) -> Self {
        let room = MAX_EVIDENCE.saturating_sub(self.evidence.len());
        self.evidence.extend(exchanges.into_iter().take(room));
        self
    }

    /// Hands it to the host, which keeps it whatever happens to the probe afterwards.
    pub fn submit(self) {
        report::submit(&self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_credit_is_rounded_once_and_never_whole() {
        for (score, shown) in [(66.666, 67), (0.4, 0), (0.5, 1), (99.9, 99), (100.0, 99), (-3.0, 0), (f64::NAN, 0)] {
            assert_eq!(Finding::fail("a", "b").partial(score).score, Some(shown), "{score}");
        }
    }

    #[test]
    fn evidence_is_capped() {
        let finding = Finding::fail("a", "b").evidence(0..60).evidence(60..200);
        assert_eq!(finding.evidence.len(), MAX_EVIDENCE);
    }
}
