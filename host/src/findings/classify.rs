//! What a group of failures is, and how bad: pure.

use super::{Class, Severity};

/// What is known of a group that decides what it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Traits {
    /// Its calls were called false successes.
    pub is_false_success: bool,
    /// Its errors have several codes.
    pub has_several_codes: bool,
    /// Somebody noted of a member that the direct call should have worked.
    pub is_blocked: bool,
    /// Every error says that trying again may help.
    pub is_retryable: bool,
    /// Around some member, the tool succeeded afterwards.
    pub recovers: bool,
}

/// What the group is: the first class that fits.
pub const fn class(traits: Traits) -> Class {
    if traits.has_several_codes && !traits.is_false_success {
        Class::UnstableErrorCode
    } else if traits.is_false_success {
        Class::FalseSuccess
    } else if traits.is_blocked {
        Class::BlockedOptimalPath
    } else if traits.is_retryable && traits.recovers {
        Class::RecoversOnRetry
    } else if traits.is_retryable {
        Class::RetryDidNotRecover
    } else {
        Class::RecurringError
    }
}

/// How bad the group is. Nothing is as bad as it gets before there is a case to check it with.
pub fn severity(score: f64, threshold: f64, traits: Traits, has_probe: bool) -> Severity {
    let by_score = if score >= 4.0 * threshold {
        Severity::High
    } else if score >= 2.0 * threshold {
        Severity::Medium
    } else {
        Severity::Low
    };
    let is_noted = traits.is_false_success || traits.is_blocked;
    let severity = match by_score {
        Severity::Low if is_noted => Severity::Medium,
        Severity::Medium if is_noted => Severity::High,
        other => other,
    };
    if has_probe { severity } else { severity.min(Severity::Medium) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Traits = Traits {
        is_false_success: false,
        has_several_codes: false,
        is_blocked: false,
        is_retryable: false,
        recovers: false,
    };

    #[test]
    fn the_first_class_that_fits_is_taken() {
        let all = Traits { has_several_codes: true, is_blocked: true, is_retryable: true, recovers: true, ..NONE };
        for (traits, expected) in [
            (all, Class::UnstableErrorCode),
            (Traits { is_false_success: true, ..all }, Class::FalseSuccess),
            (Traits { has_several_codes: false, ..all }, Class::BlockedOptimalPath),
            (Traits { has_several_codes: false, is_blocked: false, ..all }, Class::RecoversOnRetry),
            (Traits { is_retryable: true, ..NONE }, Class::RetryDidNotRecover),
            (Traits { recovers: true, ..NONE }, Class::RecurringError),
            (NONE, Class::RecurringError),
        ] {
            assert_eq!(class(traits), expected, "{traits:?}");
        }
    }

    #[test]
    fn severity_follows_the_threshold_the_notes_and_the_case() {
        let blocked = Traits { is_blocked: true, ..NONE };
        let false_success = Traits { is_false_success: true, ..NONE };
        for (score, traits, has_probe, expected) in [
            (1.0, NONE, true, Severity::Low),
            (1.99, NONE, true, Severity::Low),
            (2.0, NONE, true, Severity::Medium),
            (3.99, NONE, true, Severity::Medium),
            (4.0, NONE, true, Severity::High),
            (4.0, NONE, false, Severity::Medium),
            (1.0, blocked, false, Severity::Medium),
            (2.0, false_success, false, Severity::Medium),
            (2.0, false_success, true, Severity::High),
            (9.0, blocked, true, Severity::High),
        ] {
            assert_eq!(severity(score, 1.0, traits, has_probe), expected, "{score} {traits:?} {has_probe}");
        }
    }
}
