//! Which case verifies a finding, what a verification was run on and by, and what is remembered of it.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::build::Build;
use super::{Class, Finding};
use crate::error::{Error, Result};
use crate::manifest::{self, Case, Manifest};
use crate::probes::{Digest, is_foreign_kind};
use crate::report::canonical::canonical;
use crate::runner::Target;
use crate::store::Home;
use crate::store::hash::Salt;
use crate::store::lifecycle::{Found, Lifecycle, Standing, Verification};
use crate::store::record::moment;

/// The fields of the shipped kinds that name a tool whose call the verdict is about. Names of kinds and fields are data
/// here: nothing in this program runs them by name.
const CALLED: [&str; 3] = ["tool", "failure_tool", "trigger_tool"];
/// The kinds that can tell whether something really happened.
const TELLING: [&str; 2] = ["instruction-fidelity", "workflow"];
/// What an expectation can ask of a result. How long it took says nothing about what it did.
const ASSERTIONS: [&str; 9] = [
    "required_result_fields",
    "required_result_paths",
    "equals",
    "equals_paths",
    "text_equals",
    "text_contains",
    "text_not_contains",
    "text_matches",
    "schema",
];

/// Checks that a case can show that the finding is fixed.
///
/// # Errors
/// A usage error with the case's place and what it lacks.
pub fn check_case(finding: &Finding, case: &Case) -> Result<()> {
    let config: Value = serde_json::from_str(&case.config).unwrap_or_default();
    let about = format!("{}: case {}", case.place, case.id);
    if !calls(case, &config, &finding.tool) {
        return Err(Error::usage(format!(
            "{about} does not call the tool {}, which the finding is about; choose one that does, or make one with mcpeval generate",
            finding.tool
        )));
    }
    if finding.class == Class::FalseSuccess && !tells_effects(case, &config) {
        return Err(Error::usage(format!(
            "{about} cannot tell a false success: it must be of the kind {}, and expect an error or more of a result than that \
             there is one",
            TELLING.join(" or ")
        )));
    }
    Ok(())
}

fn calls(case: &Case, config: &Value, tool: &str) -> bool {
    let names = |value: &Value, field: &str| value.get(field).and_then(Value::as_str) == Some(tool);
    CALLED.iter().any(|field| names(config, field))
        || steps(config).any(|step| names(step, "tool"))
        || (is_foreign_kind(&case.kind) && case.tool.as_deref() == Some(tool))
}

fn tells_effects(case: &Case, config: &Value) -> bool {
    let expectations = config.get("expect").into_iter().chain(steps(config).filter_map(|step| step.get("expect")));
    TELLING.contains(&case.kind.as_str()) && expectations.into_iter().any(asserts)
}

fn steps(config: &Value) -> impl Iterator<Item = &Value> {
    config.get("steps").and_then(Value::as_array).into_iter().flatten()
}

/// Whether an expectation asks for more than that the call succeeds.
pub(super) fn asserts(expect: &Value) -> bool {
    let is_something = |value: &Value| match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Null | Value::Bool(_) => false,
        Value::Number(_) => true,
    };
    expect.get("outcome").and_then(Value::as_str) == Some("error")
        || ASSERTIONS.iter().any(|field| match (*field, expect.get(field)) {
            // That a text is empty is as much of an assertion as any other.
            ("text_equals", Some(value)) => value.is_string(),
            (_, value) => value.is_some_and(is_something),
        })
}

/// What a verification was run on and by, as canonical JSON, of which the salted digest is kept.
pub fn definition(manifest: &Manifest, case: &Case, component: Digest, target: &Target, build: &Build) -> String {
    let sandbox = case.sandbox.as_ref().map(|label| {
        let description = manifest.sandboxes.get(label).map(String::as_str).unwrap_or_default();
        json!({"label": label, "description": description})
    });
    let target = match target {
        Target::Stdio(launch) => {
            let words = std::iter::once(&launch.program).chain(&launch.args).map(|word| Build::word(word));
            json!({"command": words.collect::<Vec<_>>(), "files": build.files()})
        }
        Target::Http(endpoint) => json!({"url": endpoint.url().as_str()}),
    };
    canonical(&json!({
        "evaluator": EVALUATOR,
        "manifest_version": manifest::VERSION,
        "timeout_ms": u64::try_from(manifest.timeout.as_millis()).unwrap_or(u64::MAX),
        "case": {
            "probe": case.kind,
            "id": case.id,
            "access": case.access.word(),
            "config": serde_json::from_str::<Value>(&case.config).unwrap_or_default(),
        },
        "sandbox": sandbox,
        "components": {case.kind.as_str(): component.to_string()},
        "target": target,
    }))
}

/// Remembers that a case came out green or red, and gives where the finding stood and where it stands.
///
/// # Errors
/// Unfinished if the home does not take it; nothing is remembered then.
pub fn record(
    home: &Home,
    finding: &Finding,
    case: &str,
    definition: &str,
    is_green: bool,
) -> Result<(Standing, Standing)> {
    home.prepare()?;
    let at = Timestamp::now();
    let found = Found {
        finding_id: finding.finding_id.clone(),
        server: finding.server.clone(),
        tool: finding.tool.clone(),
        err_code: finding.err_code.clone(),
        err_template_id: finding.err_template_id.clone(),
        newest_failure: moment(&finding.last_seen).unwrap_or(at),
    };
    let definition_id = Salt::of(home)?.definition(definition);
    Lifecycle::to_write(home)?.record(&Verification {
        found: &found,
        probe_id: case,
        definition_id: &definition_id,
        passed: is_green,
        run_id: &uuid::Uuid::new_v4().to_string(),
        at,
    })
}

/// Major and minor version: what a later one judges otherwise is another definition.
const EVALUATOR: &str = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::render::tests::example;
    use super::*;
    use crate::manifest::Access;
    use crate::wire::launch::Launch;

    fn case(kind: &str, config: &Value) -> Case {
        Case {
            kind: kind.to_owned(),
            id: "c".to_owned(),
            access: Access::ReadOnly,
            sandbox: None,
            config: config.to_string(),
            tool: config.get("tool").and_then(Value::as_str).map(str::to_owned),
            tools: Vec::new(),
            place: "m.json:3:5".to_owned(),
            line: 3,
        }
    }

    #[test]
    fn the_case_must_call_the_tool() {
        let finding = example();
        for (kind, config, fits) in [
            ("degradation-over-n", json!({"tool": "read_doc"}), true),
            ("degradation-over-n", json!({"tool": "list_docs"}), false),
            ("state-recovery", json!({"failure_tool": "read_doc", "recovery_tool": "a", "validation_tool": "b"}), true),
            (
                "state-recovery",
                json!({"failure_tool": "a", "recovery_tool": "read_doc", "validation_tool": "b"}),
                false,
            ),
            ("resource-subscription", json!({"uri": "x", "trigger_tool": "read_doc"}), true),
            ("workflow", json!({"steps": [{"tool": "a"}, {"tool": "read_doc"}]}), true),
            ("workflow", json!({"steps": [{"tool": "a"}]}), false),
            ("discovery-cost", json!({}), false),
            ("acme.check", json!({"tool": "read_doc"}), true),
            ("acme.check", json!({"other": "read_doc"}), false),
        ] {
            let checked = check_case(&finding, &case(kind, &config));
            assert_eq!(checked.is_ok(), fits, "{kind} {config}");
            if let Err(error) = checked {
                assert!(error.to_string().starts_with("m.json:3:5: case c does not call the tool read_doc"), "{error}");
                assert_eq!(error.exit_code(), 2);
            }
        }
        // The tool of a third party's case may have any name.
        let named = Case { tool: Some("read_doc".to_owned()), ..case("acme.check", &json!({"subject": "read_doc"})) };
        assert!(check_case(&finding, &named).is_ok());
    }

    #[test]
    fn a_false_success_needs_a_case_that_looks_at_the_effect() {
        let finding = Finding { class: Class::FalseSuccess, ..example() };
        let of = |kind: &str, expect: &Value| case(kind, &json!({"tool": "read_doc", "expect": expect}));
        for (expect, fits) in [
            (json!({"outcome": "error"}), true),
            (json!({"outcome": "ok"}), false),
            (json!({"outcome": "ok", "max_latency_ms": 5}), false),
            (json!({"outcome": "ok", "text_contains": []}), false),
            (json!({"outcome": "ok", "text_contains": ""}), false),
            (json!({"outcome": "ok", "equals": {}}), false),
            (json!({"outcome": "ok", "schema": {}}), false),
            (json!({"outcome": "ok", "schema": true}), false),
            (json!({"outcome": "ok", "text_equals": ""}), true),
            (json!({"outcome": "ok", "text_not_contains": "saved"}), true),
            (json!({"outcome": "ok", "equals_paths": {"/structuredContent/n": 1}}), true),
            (json!({"outcome": "ok", "required_result_fields": ["structuredContent"]}), true),
        ] {
            assert_eq!(check_case(&finding, &of("instruction-fidelity", &expect)).is_ok(), fits, "{expect}");
            assert!(check_case(&finding, &of("degradation-over-n", &expect)).is_err());
        }
        let steps = |expect: Value| json!({"steps": [{"tool": "read_doc", "expect": {"outcome": "ok"}}, {"tool": "a", "expect": expect}]});
        assert!(
            check_case(&finding, &case("workflow", &steps(json!({"outcome": "ok", "text_contains": "x"})))).is_ok()
        );
        assert!(check_case(&finding, &case("workflow", &steps(json!({"outcome": "ok"})))).is_err());
    }

    #[test]
    fn whatever_the_definition_covers_changes_it() {
        let manifest = |timeout| Manifest {
            sha256: Digest([0; 32]),
            timeout: Duration::from_millis(timeout),
            sandboxes: BTreeMap::from([("box".to_owned(), "A box.".to_owned())]),
            cases: Vec::new(),
        };
        let launch = |argument: &str| Launch {
            program: "/bin/sh".into(),
            args: vec![argument.into()],
            env: Vec::new(),
            cwd: None,
            withheld: Vec::new(),
        };
        let target = |argument: &str| Target::Stdio(launch(argument));
        let whole = case("workflow", &json!({"steps": []}));
        let none = Build::default();
        let one = Digest([1; 32]);
        let base = definition(&manifest(1), &whole, one, &target("a"), &none);
        let described: Value = serde_json::from_str(&base).unwrap();
        assert_eq!(described["evaluator"], EVALUATOR);
        assert_eq!(described["target"], json!({"command": ["/bin/sh", "a"], "files": []}));
        let boxed = Case { sandbox: Some("box".to_owned()), ..whole.clone() };
        let renamed = Case { id: "d".to_owned(), ..whole.clone() };
        let changed = case("workflow", &json!({"steps": [1]}));
        let files = Build::of(&target("a")).unwrap();
        assert_eq!(files.files().as_array().unwrap().len(), 1);
        for other in [
            definition(&manifest(2), &whole, one, &target("a"), &none),
            definition(&manifest(1), &boxed, one, &target("a"), &none),
            definition(&manifest(1), &renamed, one, &target("a"), &none),
            definition(&manifest(1), &changed, one, &target("a"), &none),
            definition(&manifest(1), &whole, Digest([2; 32]), &target("a"), &none),
            definition(&manifest(1), &whole, one, &target("b"), &none),
            definition(&manifest(1), &whole, one, &target("a"), &files),
        ] {
            assert_ne!(other, base);
        }
        assert_eq!(definition(&manifest(1), &whole, one, &target("a"), &none), base);
    }
}
