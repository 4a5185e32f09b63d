//! Reasons that several kinds give.

use crate::Manifest;

/// A reason with one hint for every kind that gives it, so that a report and `mcpeval explain` say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonReason {
    /// What stands in findings.
    pub label: &'static str,
    /// What is wrong and what to change.
    pub hint: &'static str,
}

impl Manifest {
    /// One more reason that other kinds give, too.
    #[must_use]
    pub fn common_reason(self, reason: CommonReason, checks: &[&str]) -> Self {
        self.reason(reason.label, reason.hint, checks)
    }
}

/// A call failed where success is wanted, or succeeded where an error is.
pub const UNEXPECTED_OUTCOME: CommonReason = CommonReason {
    label: "unexpected-outcome",
    hint: "The call failed where the case wants success, or succeeded where it wants an error. Call the tool by hand with the \
           case's arguments and mend the tool; if it is right, correct the case's arguments or outcome.",
};

/// A member of the result that a case asks for is not there.
pub const MISSING_FIELD: CommonReason = CommonReason {
    label: "missing-field",
    hint: "The result lacks a member that the case asks for. Return it every time, null if it is empty; if it was renamed or \
           moved, clients have to follow, so change the case only together with them.",
};

/// A member of the result has another value.
pub const VALUE_MISMATCH: CommonReason = CommonReason {
    label: "value-mismatch",
    hint: "A member of the result has another value or type than the case asks for. Correct the tool, or the case if the value \
           was meant to change; for values that vary, ask for the member's presence or a schema instead.",
};

/// The text does not keep to the rules of a case.
pub const TEXT_MISMATCH: CommonReason = CommonReason {
    label: "text-mismatch",
    hint: "The text of the result or error is not what the case asks for: words are missing, forbidden or different. Correct the \
           text, which is all that a model reads; for texts that vary, ask for less with text_contains or text_matches.",
};

/// The result does not validate.
pub const SCHEMA_MISMATCH: CommonReason = CommonReason {
    label: "schema-mismatch",
    hint: "The structured content, or the text read as JSON, is not valid against the case's schema. Return what the schema \
           promises, or widen the schema if the new shape is intended.",
};

/// An error has another code.
pub const ERROR_CODE_MISMATCH: CommonReason = CommonReason {
    label: "error-code-mismatch",
    hint: "The error has another code than the case asks for; a result with isError: true counts as -32000. Keep one code for \
           one cause, since clients decide by it, or correct the case.",
};

/// An answer took longer than its case allows.
pub const LATENCY_BUDGET_EXCEEDED: CommonReason = CommonReason {
    label: "latency-budget-exceeded",
    hint: "An answer took longer than max_latency_ms. Look for slow requests to other services, cold caches and locks in the \
           tool; raise the bound only if its users can wait that long.",
};

/// The call that should have worked again did not.
pub const RECOVERY_FAILED: CommonReason = CommonReason {
    label: "recovery-failed",
    hint: "The call after a failure or a cancellation did not succeed. Undo partial changes and release locks and connections on \
           every way out of the tool, so that the next call finds a clean state.",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_fit_a_manifest() {
        for reason in [
            UNEXPECTED_OUTCOME,
            MISSING_FIELD,
            VALUE_MISMATCH,
            TEXT_MISMATCH,
            SCHEMA_MISMATCH,
            ERROR_CODE_MISMATCH,
            LATENCY_BUDGET_EXCEEDED,
            RECOVERY_FAILED,
        ] {
            let length = reason.hint.chars().count();
            assert!((40..=400).contains(&length), "{}: {length}", reason.label);
        }
    }
}
