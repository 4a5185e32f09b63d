//! The fields of the kinds: which cases their config schemas take, to the edge of every bound.

use mcpeval_probe::testing::Declared;
use mcpeval_probe::{Access, Probe, Value, json};

/// Whether the schema takes a case.
struct Fields {
    kind: String,
    schema: jsonschema::Validator,
}

impl Fields {
    fn of<P: Probe>() -> Self {
        let declared = Declared::of::<P>();
        let schema = jsonschema::options().should_validate_formats(true).build(&declared.config);
        Self { kind: declared.kind, schema: schema.expect("the config schema compiles") }
    }

    #[expect(clippy::needless_pass_by_value, reason = "made for json!")]
    fn takes(&self, case: Value) -> &Self {
        assert!(self.schema.is_valid(&case), "{} refuses {case}", self.kind);
        self
    }

    #[expect(clippy::needless_pass_by_value, reason = "made for json!")]
    fn refuses(&self, case: Value) -> &Self {
        assert!(!self.schema.is_valid(&case), "{} takes {case}", self.kind);
        self
    }

    /// Takes the case with the field at either bound, and refuses it beyond them, with a fraction, and without.
    fn bounded(&self, case: &Value, field: &str, least: u64, most: u64) -> &Self {
        let with = |value: Value| {
            let mut case = case.clone();
            case[field] = value;
            case
        };
        self.takes(with(json!(least))).takes(with(json!(most)));
        for outside in [json!(least - 1), json!(most + 1), json!(1.5), json!("1"), json!(true)] {
            self.refuses(with(outside));
        }
        let mut without = case.clone();
        without.as_object_mut().unwrap().remove(field);
        self.refuses(without)
    }
}

#[test]
fn catalog_costs() {
    let case = json!({"max_tools": 10, "max_schema_bytes": 1000});
    Fields::of::<probe_discovery_cost::DiscoveryCost>()
        .bounded(&case, "max_tools", 1, 10_000)
        .bounded(&case, "max_schema_bytes", 1, 10_000_000)
        .refuses(json!({"max_tools": 10, "max_schema_bytes": 1000, "tool": "a"}));

    let case = json!({"max_total_tokens": 100});
    let with = |tokens: u64| json!({"max_total_tokens": 100, "max_tool_tokens": tokens});
    Fields::of::<probe_token_cost::TokenCost>()
        .bounded(&case, "max_total_tokens", 1, 1_000_000)
        .takes(with(1))
        .takes(with(100_000))
        .refuses(with(0))
        .refuses(with(100_001));
}

#[test]
fn calls_of_one_tool() {
    let long = |length: usize| json!({"tool": "x".repeat(length)});
    for fields in [
        Fields::of::<probe_schema_guessability::SchemaGuessability>(),
        Fields::of::<probe_output_schema::OutputSchema>(),
    ] {
        fields
            .takes(long(1))
            .takes(long(128))
            .takes(json!({"tool": "a.b:c-d_1", "arguments": {"any": [null]}}))
            .refuses(long(0))
            .refuses(long(129))
            .refuses(json!({"tool": "a/b"}))
            .refuses(json!({"tool": "a\n"}))
            .refuses(json!({"tool": "a", "arguments": []}))
            .refuses(json!({"tool": "a", "argument": {}}))
            .refuses(json!({}));
    }
    let case = json!({"tool": "a", "max_attempts": 3, "expect_retryable": true});
    Fields::of::<probe_error_honesty::ErrorHonesty>()
        .bounded(&case, "max_attempts", 2, 20)
        .refuses(json!({"tool": "a", "max_attempts": 3}))
        .refuses(json!({"tool": "a", "max_attempts": 3, "expect_retryable": "true"}));
    let case = json!({"tool": "a", "max_attempts": 3});
    Fields::of::<probe_degradation_over_n::DegradationOverN>().bounded(&case, "max_attempts", 2, 100);
    let case = json!({"tool": "a", "attempts": 3, "max_latency_ms": 100});
    Fields::of::<probe_latency_budget::LatencyBudget>().bounded(&case, "attempts", 1, 20).bounded(
        &case,
        "max_latency_ms",
        1,
        600_000,
    );
}

#[test]
fn calls_of_several_tools() {
    Fields::of::<probe_state_recovery::StateRecovery>()
        .takes(json!({"failure_tool": "a", "recovery_tool": "b", "validation_tool": "c", "recovery_arguments": {}}))
        .refuses(json!({"failure_tool": "a", "recovery_tool": "b"}))
        .refuses(json!({"failure_tool": "a", "recovery_tool": "b", "validation_tool": "c", "arguments": {}}));

    let step = || json!({"tool": "a", "arguments": {"n": 1}, "expect": {"outcome": "ok"}});
    let steps = |count: usize| json!({"repetitions": 1, "steps": vec![step(); count]});
    Fields::of::<probe_workflow::Workflow>()
        .takes(steps(2))
        .takes(steps(32))
        .refuses(steps(1))
        .refuses(steps(33))
        .refuses(json!({"repetitions": 1, "steps": [step(), {"tool": "a"}]}))
        .refuses(json!({"repetitions": 1, "steps": [step(), {"tool": "a", "expect": {"outcome": "ok"}, "step": 2}]}))
        .bounded(&steps(2), "repetitions", 1, 20);
}

#[test]
fn lists_and_openings() {
    for fields in [Fields::of::<probe_pagination::Pagination>(), Fields::of::<probe_surface_listing::SurfaceListing>()]
    {
        fields.bounded(&json!({"max_pages": 5}), "max_pages", 1, 1_000).refuses(json!({"max_pages": 5, "pages": 1}));
    }
    let offers = |revision: &str| json!({"bogus_version": revision});
    Fields::of::<probe_protocol_negotiation::ProtocolNegotiation>()
        .takes(offers("2000-01-01"))
        .takes(offers("2024-11-05"))
        .refuses(offers("2025-11-25"))
        .refuses(offers("2025-06-18"))
        .refuses(offers("2000-1-1"))
        .refuses(offers("2000-01-01\n"))
        .refuses(json!({"bogus_version": 20_000_101}))
        .refuses(json!({}));
}

#[test]
fn completions() {
    let case = json!({
        "ref_type": "ref/prompt",
        "ref_uri": "plan",
        "argument_name": "style",
        "argument_value": "b",
        "max_values": 5
    });
    let with = |field: &str, value: Value| {
        let mut case = case.clone();
        case[field] = value;
        case
    };
    Fields::of::<probe_completion::Completion>()
        .bounded(&case, "max_values", 1, 100)
        .takes(with("ref_type", json!("ref/resource")))
        .refuses(with("ref_type", json!("ref/tool")))
        .takes(with("ref_uri", json!("é".repeat(512))))
        .refuses(with("ref_uri", json!("x".repeat(513))))
        .refuses(with("ref_uri", json!("")))
        .takes(with("argument_name", json!("x".repeat(64))))
        .refuses(with("argument_name", json!("x".repeat(65))))
        .refuses(with("argument_value", json!("")))
        .refuses(with("argument_value", json!("1")));
}

#[test]
fn calls_under_strain() {
    Fields::of::<probe_contention::Contend>()
        .takes(json!({"tool": "a", "arguments": {"n": 1}}))
        .refuses(json!({"tool": "a", "sessions": 2}));

    let case = json!({"tool": "a", "field": "text", "size_bytes": 9, "expect_handled": false});
    Fields::of::<probe_payload_bounds::PayloadBounds>()
        .bounded(&case, "size_bytes", 1, 16_000_000)
        .refuses(json!({"tool": "a", "field": "a b", "size_bytes": 9, "expect_handled": false}))
        .refuses(json!({"tool": "a", "field": "text", "size_bytes": 9}));

    let case = json!({"tool": "a", "grace_seconds": 5, "reason": "enough"});
    Fields::of::<probe_cancellation::Cancellation>()
        .bounded(&case, "grace_seconds", 1, 60)
        .takes(json!({"tool": "a", "grace_seconds": 5, "reason": "enough", "require_honored": false}))
        .refuses(json!({"tool": "a", "grace_seconds": 5, "reason": "no more", "require_honored": false}))
        .refuses(json!({"tool": "a", "grace_seconds": 5, "reason": "enough", "require_honored": 0}))
        .refuses(json!({"tool": "a", "grace_seconds": 5}));
}

#[test]
fn what_a_server_asks_and_tells() {
    Fields::of::<probe_sampling::Sampling>().bounded(&json!({"tool": "a", "max_requests": 2}), "max_requests", 1, 10);
    let responds = |respond: &str| json!({"tool": "a", "max_requests": 2, "respond": respond});
    Fields::of::<probe_elicitation::Elicitation>()
        .bounded(&responds("accept"), "max_requests", 1, 10)
        .takes(responds("decline"))
        .takes(responds("cancel"))
        .refuses(responds("refuse"))
        .refuses(json!({"tool": "a", "max_requests": 2}));

    let uri = |length: usize| json!({"uri": "u".repeat(length), "max_wait_seconds": 1});
    Fields::of::<probe_resource_subscription::ResourceSubscription>()
        .bounded(&uri(1), "max_wait_seconds", 1, 60)
        .takes(uri(512))
        .refuses(uri(513))
        .refuses(uri(0))
        .takes(json!({"uri": "a:b", "max_wait_seconds": 1, "trigger_tool": "t", "trigger_arguments": {"n": 1}}))
        .refuses(json!({"uri": "a:b", "max_wait_seconds": 1, "trigger_tool": "t u"}))
        .refuses(json!({"uri": "a:b", "max_wait_seconds": 1, "tool": "t"}));
}

#[test]
fn expectations() {
    let fields = Fields::of::<probe_instruction_fidelity::InstructionFidelity>();
    let expect = |expect: Value| json!({"tool": "a", "expect": expect});
    let string = "x".repeat(65_536);
    for taken in [
        json!({"outcome": "ok"}),
        json!({"outcome": "error", "error_code": -32602}),
        json!({"outcome": "ok", "required_result_fields": ["content", "isError"]}),
        json!({"outcome": "ok", "required_result_paths": ["", "/content/0/text", "/a~1b"]}),
        json!({"outcome": "ok", "equals": {"isError": null, "structuredContent": {"n": [1]}}}),
        json!({"outcome": "ok", "equals_paths": {"/content": []}}),
        json!({"outcome": "error", "text_equals": string}),
        json!({"outcome": "ok", "text_contains": "a", "text_not_contains": ["b", "c"], "text_matches": ["^a$"]}),
        json!({"outcome": "ok", "schema": {"type": "object"}}),
        json!({"outcome": "ok", "schema": true}),
        json!({"outcome": "error", "max_latency_ms": 1}),
        // What asks for nothing may stand under either outcome, as mcpeval 0.8 has it.
        json!({"outcome": "error", "equals": {}, "equals_paths": {}, "required_result_fields": [], "required_result_paths": []}),
        json!({"outcome": "ok", "max_latency_ms": 600_000}),
    ] {
        fields.takes(expect(taken));
    }
    for refused in [
        json!({}),
        json!({"outcome": "fine"}),
        json!({"outcome": "ok", "error_code": -32602}),
        json!({"outcome": "error", "required_result_fields": ["content"]}),
        json!({"outcome": "error", "required_result_paths": ["/content"]}),
        json!({"outcome": "error", "equals": {"isError": true}}),
        json!({"outcome": "error", "equals_paths": {"/isError": true}}),
        json!({"outcome": "error", "schema": {}}),
        json!({"outcome": "error", "error_code": 1.5}),
        json!({"outcome": "ok", "required_result_fields": ["content", "content"]}),
        json!({"outcome": "ok", "required_result_paths": ["content"]}),
        json!({"outcome": "ok", "equals_paths": {"content": 1}}),
        json!({"outcome": "ok", "text_equals": format!("{string}x")}),
        json!({"outcome": "ok", "text_contains": ["a", 1]}),
        json!({"outcome": "ok", "schema": "object"}),
        json!({"outcome": "ok", "max_latency_ms": 0}),
        json!({"outcome": "ok", "max_latency_ms": 600_001}),
        json!({"outcome": "ok", "text": "a"}),
    ] {
        fields.refuses(expect(refused));
    }
}

#[test]
fn who_may_mutate() {
    let may = |declared: Declared| (declared.kind, declared.access == Access::MayMutate);
    for (kind, expected) in [
        (may(Declared::of::<probe_schema_guessability::SchemaGuessability>()), true),
        (may(Declared::of::<probe_instruction_fidelity::InstructionFidelity>()), true),
        (may(Declared::of::<probe_degradation_over_n::DegradationOverN>()), true),
        (may(Declared::of::<probe_error_honesty::ErrorHonesty>()), true),
        (may(Declared::of::<probe_state_recovery::StateRecovery>()), true),
        (may(Declared::of::<probe_latency_budget::LatencyBudget>()), false),
        (may(Declared::of::<probe_output_schema::OutputSchema>()), false),
        (may(Declared::of::<probe_workflow::Workflow>()), false),
        (may(Declared::of::<probe_discovery_cost::DiscoveryCost>()), false),
        (may(Declared::of::<probe_token_cost::TokenCost>()), false),
        (may(Declared::of::<probe_contention::Contend>()), true),
        (may(Declared::of::<probe_pagination::Pagination>()), false),
        (may(Declared::of::<probe_surface_listing::SurfaceListing>()), false),
        (may(Declared::of::<probe_protocol_negotiation::ProtocolNegotiation>()), false),
        (may(Declared::of::<probe_completion::Completion>()), false),
        (may(Declared::of::<probe_payload_bounds::PayloadBounds>()), false),
        (may(Declared::of::<probe_cancellation::Cancellation>()), false),
        (may(Declared::of::<probe_sampling::Sampling>()), false),
        (may(Declared::of::<probe_elicitation::Elicitation>()), false),
        (may(Declared::of::<probe_resource_subscription::ResourceSubscription>()), false),
    ] {
        assert_eq!(kind.1, expected, "{}", kind.0);
    }
}
