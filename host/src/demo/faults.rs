//! The table of faults: what each violates, and what it costs.

/// A lost check of the battery, and its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Id of the check, `<area>.<name>`.
    pub check: &'static str,
    /// Label of the reason.
    pub reason: &'static str,
}

macro_rules! faults {
    (@seen $what:literal costs $($check:literal : $reason:literal),+) => {
        concat!($what, "; costs", $(" ", $check, " (", $reason, ")"),+)
    };
    (@seen $what:literal case $kind:literal : $reason:literal) => {
        concat!($what, "; costs the battery nothing, a case of kind ", $kind, " sees it (", $reason, ")")
    };
    (@costs costs $($check:literal : $reason:literal),+) => {
        &[$(Cost { check: $check, reason: $reason }),+]
    };
    (@costs case $kind:literal : $reason:literal) => { &[] };
    ($($variant:ident $name:literal $what:literal $how:ident $($check:literal : $reason:literal),+;)+) => {
        /// What a demo server does wrong. Each is one thing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Fault {
            $(#[doc = $what] $variant,)+
        }

        impl Fault {
            /// Every fault, in the order of `--list-broken`.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What it violates, and which check or which kind of case sees it: one line.
            pub const fn violates(self) -> &'static str {
                match self { $(Self::$variant => faults!(@seen $what $how $($check : $reason),+)),+ }
            }

            /// The checks a battery without attestation loses over it, and nothing else; empty when only a case of
            /// a manifest can see it.
            pub const fn costs(self) -> &'static [Cost] {
                match self { $(Self::$variant => faults!(@costs $how $($check : $reason),+)),+ }
            }
        }
    };
}

faults! {
    Schema "schema" "the input schema of `add` does not say that it is of type object"
        case "schema-guessability": "invalid-schema";
    Fidelity "fidelity" "`add` answers with a sum that is one too large"
        case "instruction-fidelity": "value-mismatch";
    UnstableErrors "unstable-errors" "`poll_job` gives the same error under changing codes"
        case "error-honesty": "unstable-error-code";
    Bloated "bloated" "every tool has a description of more than a thousand characters"
        costs "context.catalog": "context-catalog-heavy";
    DuplicatePage "duplicate-page" "the second page of tools repeats the last tool of the first"
        costs "protocol.pagination": "protocol-pagination-invalid";
    StalledCursor "stalled-cursor" "the last page of tools names itself as the next"
        costs "protocol.pagination": "protocol-pagination-invalid";
    Slow "slow" "`word_stats` takes a third of a second"
        costs "reliability.latency": "reliability-slow";
    Cancellation "cancellation" "cancelled calls run on and are answered"
        case "cancellation": "cancellation-ignored";
    Negotiation "negotiation" "initialize agrees to any protocol revision"
        costs "protocol.negotiation": "protocol-negotiation-echoed-unknown";
    Sampling "sampling" "`summarize` asks the client's model without a message"
        case "sampling": "sampling-invalid-request";
    Elicitation "elicitation" "`choose_color` asks the user for a nested object"
        case "elicitation": "elicitation-invalid-request";
    Subscription "subscription" "updates of subscribed resources are not sent"
        case "resource-subscription": "subscription-notification-missing";
    Completion "completion" "completion answers with more than a hundred values"
        case "completion": "completion-value-flood";
    Surface "surface" "resources/list answers with an object in place of an array"
        costs "protocol.surfaces": "protocol-surface-invalid";
    OutputSchema "output-schema" "`word_stats` answers with text where its output schema has an integer"
        costs "reliability.output-schema": "reliability-output-schema-broken";
    Flaky "flaky" "one call of `word_stats` in three fails"
        costs "reliability.success": "reliability-call-failed", "reliability.consistent": "reliability-inconsistent";
    Undescribed "undescribed" "the parameter of `word_stats` has no description"
        costs "catalog.params-described": "catalog-undescribed-params";
    UnknownMethod "unknown-method" "unknown methods are answered with an empty result"
        costs "protocol.unknown-method": "protocol-unknown-method-answered";
    LyingErrors "lying-errors" "refusals of invalid arguments are marked as successes"
        costs "error-honesty.invalid-arguments": "honesty-accepted-invalid";

    Ping "ping" "ping is refused as an unknown method"
        costs "protocol.ping": "protocol-ping-failed";
    UnknownTool "unknown-tool" "calls of tools that do not exist succeed"
        costs "protocol.unknown-tool": "protocol-unknown-tool-accepted";
    SurfaceCursor "surface-cursor" "prompts/list names the same cursor for ever"
        costs "protocol.surfaces": "protocol-surface-invalid";
    NegotiationWord "negotiation-word" "initialize answers unknown revisions with a word that is no date"
        costs "protocol.negotiation": "protocol-negotiation-invalid-version";
    NegotiationDrift "negotiation-drift" "initialize proposes a revision that it then does not accept"
        costs "protocol.negotiation": "protocol-negotiation-inconsistent-support";
    NotificationStatus "notification-status" "over HTTP, notifications are accepted with 200 in place of 202"
        costs "protocol.notification-status": "protocol-notification-status";
    UnknownMethodDies "unknown-method-dies" "an unknown method ends the session without an answer"
        costs "protocol.unknown-method": "protocol-call-failed";
    InvalidEntry "invalid-entry" "the entry of `add` has no input schema"
        costs "catalog.entry": "catalog-invalid-entry";
    InvalidName "invalid-name" "the entry of `add` has a name with a space"
        costs "catalog.entry": "catalog-invalid-entry";
    UncompilableSchema "uncompilable-schema" "the input schema of `add` names a type that does not exist"
        costs "catalog.entry": "catalog-invalid-entry";
    ShortDescription "short-description" "`word_stats` is described in two words"
        costs "catalog.description": "catalog-short-description";
    Untyped "untyped" "the parameter of `word_stats` has no type"
        costs "catalog.params-typed": "catalog-untyped-params";
    ReadOnlyUndeclared "read-only-undeclared" "`delete_note` declares that it destroys, and not that it writes"
        costs "catalog.read-only-declared": "catalog-read-only-undeclared";
    DestructiveUndeclared "destructive-undeclared" "`write_note` declares that it writes, and not if it destroys"
        costs "catalog.destructive-declared": "catalog-destructive-undeclared";
    NoOutputSchema "no-output-schema" "`word_stats` has no output schema"
        costs "catalog.output-schema": "catalog-no-output-schema";
    NoTools "no-tools" "the list of tools is empty"
        costs "catalog.empty": "catalog-no-tools",
            "error-honesty.untestable": "no-read-only-tools",
            "reliability.none-exercised": "no-read-only-tools",
            "coverage.exercised": "no-read-only-tools";
    WritersOnly "writers-only" "every tool declares that it writes"
        costs "error-honesty.untestable": "no-read-only-tools",
            "reliability.none-exercised": "no-read-only-tools",
            "coverage.exercised": "no-read-only-tools";
    Unannotated "unannotated" "`word_stats` declares nothing of its effects (attested, it costs the first of these)"
        costs "catalog.read-only-declared": "catalog-read-only-undeclared",
            "reliability.none-exercised": "coverage-unannotated",
            "coverage.exercised": "coverage-unannotated";
    HeavyTool "heavy-tool" "`word_stats` has a description of seventeen hundred characters"
        costs "context.heaviest-tool": "context-tool-heavy";
    EmptyError "empty-error" "refusals of invalid arguments say nothing"
        costs "error-honesty.invalid-arguments": "honesty-empty-error";
    WrongCode "wrong-code" "invalid arguments are called an internal error"
        costs "error-honesty.invalid-arguments": "honesty-wrong-code";
    DiesOnInvalid "dies-on-invalid" "invalid arguments of `word_stats` end the session without an answer"
        costs "error-honesty.invalid-arguments": "honesty-call-failed";
    Shapeless "shapeless" "input schemas say nothing but object, and anything is accepted"
        costs "error-honesty.untestable": "honesty-untestable";
    Contention "contention" "calls fail while an earlier session is open"
        costs "reliability.contention": "reliability-contention-failed";
    UnhandledPayload "unhandled-payload" "an argument of a hundred thousand characters ends the session"
        costs "reliability.payload": "reliability-payload-unhandled";
    OutputMissing "output-missing" "`word_stats` answers without structured content"
        costs "reliability.output-schema": "reliability-output-schema-broken";
    OutputField "output-field" "`word_stats` leaves out a field that its output schema requires"
        costs "reliability.output-schema": "reliability-output-schema-broken";
    Failing "failing" "`word_stats` always fails"
        costs "reliability.success": "reliability-call-failed", "coverage.exercised": "coverage-call-failed";
    Rejecting "rejecting" "`word_stats` calls its valid arguments invalid"
        costs "reliability.none-exercised": "coverage-rejected-arguments",
            "coverage.exercised": "coverage-rejected-arguments";
    Unsynthesizable "unsynthesizable" "no value satisfies the parameter of `wait`"
        costs "reliability.none-exercised": "coverage-unsynthesizable",
            "coverage.exercised": "coverage-unsynthesizable";
    Dying "dying" "calls of `word_stats` end the session without an answer"
        costs "reliability.none-exercised": "coverage-call-failed", "coverage.exercised": "coverage-call-failed";

    SamplingFlood "sampling-flood" "`summarize` asks the client's model a dozen times at once"
        case "sampling": "sampling-request-flood";
    SamplingStall "sampling-stall" "`summarize` never ends once the client's model has answered"
        case "sampling": "sampling-stalled-call";
    ElicitationFlood "elicitation-flood" "`choose_color` asks the user a dozen times at once"
        case "elicitation": "elicitation-request-flood";
    ElicitationStall "elicitation-stall" "`choose_color` never ends once the user has answered"
        case "elicitation": "elicitation-stalled-call";
    Unreadable "unreadable" "no resource can be read"
        case "resource-subscription": "resource-unreadable";
    SubscriptionRejected "subscription-rejected" "subscriptions are declared and refused"
        case "resource-subscription": "subscription-rejected";
    CompletionUnknown "completion-unknown" "completion does not know the arguments of the prompts"
        case "completion": "completion-argument-unknown";
    Retryability "retryability" "`poll_job` says the opposite of whether asking again helps"
        case "error-honesty": "retryability-mismatch";
    Recovery "recovery" "the stale snapshot stays stale after `refresh_snapshot`"
        case "state-recovery": "validation-failed";
    Degradation "degradation" "`list_notes` fails from its thirteenth call of a session on"
        case "degradation-over-n": "unexpected-outcome";
}

impl Fault {
    /// The fault of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }

    /// Whether it shows over HTTP alone; over stdio such a server is good.
    pub const fn http_only(self) -> bool {
        matches!(self, Self::NotificationStatus)
    }
}
