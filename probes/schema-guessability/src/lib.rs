//! Kind `schema-guessability`: whoever goes by the input schema alone makes a call that succeeds.

use std::collections::HashSet;

use mcpeval_probe::judge::{Fields, ToolCall, Trial, UNEXPECTED_OUTCOME};
use mcpeval_probe::{Access, Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target, View, schema};

const SCHEMA: &str = "schema-guessability.schema";
const ARGUMENTS: &str = "schema-guessability.arguments";
const SUCCESS: &str = "schema-guessability.success";

const INVALID_SCHEMA: &str = "invalid-schema";
const MISSING_REQUIRED: &str = "missing-required-argument";

/// The component of kind `schema-guessability`.
#[derive(Clone, Copy, Debug)]
pub struct SchemaGuessability;

impl Probe for SchemaGuessability {
    fn manifest() -> Manifest {
        Manifest::new("schema-guessability", env!("CARGO_PKG_VERSION"), "The input schema leads to a call that succeeds")
            .summary("Reads a tool's input schema, sees that the arguments have all it requires, and calls the tool once.")
            .config(Fields::new().call().schema())
            .check(Check::new(SCHEMA, Level::Must, "The input schema compiles and declares what it requires"))
            .check(Check::new(ARGUMENTS, Level::Must, "The arguments have every required name"))
            .check(Check::new(SUCCESS, Level::Must, "The call succeeds"))
            .reason(
                INVALID_SCHEMA,
                "The input schema is not of type object, does not compile, or requires a name that its properties lack, so nobody \
                 can make arguments from it. Declare type: object and every required property.",
                &[SCHEMA],
            )
            .reason(
                MISSING_REQUIRED,
                "The input schema requires a name that the case's arguments lack: it became required, or was renamed, and callers \
                 who know the old schema fail. Make it optional with a default, or add it to the case.",
                &[ARGUMENTS],
            )
            .common_reason(UNEXPECTED_OUTCOME, &[SUCCESS])
            .access(Access::MayMutate)
            .asks(1, 0, 200)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let call = ToolCall::of(case)?;
        let entry = call.entry(target)?;
        let mut trial = Trial::new(&[SCHEMA, ARGUMENTS, SUCCESS]);
        let Some(required) = entry.view().member("inputSchema").and_then(required_names) else {
            return Ok(trial.fail(Finding::fail(SCHEMA, INVALID_SCHEMA).subject(call.tool())));
        };
        let given = call.arguments().map(names).unwrap_or_default();
        if !required.is_subset(&given) {
            return Ok(trial.fail(Finding::fail(ARGUMENTS, MISSING_REQUIRED).subject(call.tool())));
        }
        let answer = call.call(&target.primary()?)?;
        trial.attempt([answer.exchange]);
        Ok(if answer.succeeded() {
            trial.pass()
        } else {
            trial.fail(Finding::fail(SUCCESS, UNEXPECTED_OUTCOME.label).subject(call.tool()))
        })
    }
}

/// What a schema of type `object` that compiles requires; `None` if it is none, or requires what it does not declare.
fn required_names(input: View<'_>) -> Option<HashSet<String>> {
    let [kind, properties, required] = input.pick(["type", "properties", "required"])?;
    if kind?.string()? != "object" || schema::check(input.text()).is_err() {
        return None;
    }
    let declared = properties.map(names).unwrap_or_default();
    let required = required.and_then(View::items).unwrap_or_default();
    let required: HashSet<String> = required.into_iter().filter_map(|name| Some(name.string()?.into_owned())).collect();
    required.is_subset(&declared).then_some(required)
}

fn names(object: View<'_>) -> HashSet<String> {
    object.members().unwrap_or_default().into_iter().map(|(name, _)| name.into_owned()).collect()
}

mcpeval_probe::export!(SchemaGuessability);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Cause, Refusal, Value, json};

    use super::*;

    fn script(input: &Value) -> Script {
        Script::new([json!({"name": "t", "inputSchema": input, "annotations": {"readOnlyHint": true}})]).mutating()
    }

    #[expect(clippy::needless_pass_by_value, reason = "made for json!")]
    fn run(input: Value, arguments: Value, reply: Reply) -> Run {
        let script = script(&input).on_request(move |_| reply.clone());
        script.run::<SchemaGuessability>(json!({"tool": "t", "arguments": arguments}))
    }

    fn ok() -> Reply {
        Reply::result(json!({"content": []}))
    }

    fn assert_lost(run: &Run, check: &str, reason: &str, attempts: u32) {
        assert_eq!(run.lost(), [(check.into(), Some("t".into()), reason.into())]);
        assert_eq!(run.requests(), attempts);
        let first_failure = (attempts > 0).then_some(attempts);
        assert_eq!(run.outcome.as_ref().unwrap(), &Outcome { attempts, first_failure });
    }

    #[test]
    fn arguments_by_the_schema_and_a_success_pass() {
        for (input, arguments) in [
            (json!({"type": "object"}), json!({})),
            (json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}), json!({"a": 1})),
        ] {
            let run = run(input, arguments, ok());
            assert_eq!(run.lost(), []);
            assert_eq!(run.outcome.unwrap(), Outcome { attempts: 1, first_failure: None });
        }
    }

    #[test]
    fn a_schema_that_leads_nowhere_is_lost_without_a_call() {
        for input in [
            json!(null),
            json!(true),
            json!({}),
            json!({"type": "array"}),
            json!({"type": ["object"]}),
            json!({"type": "object", "required": ["a"]}),
            json!({"type": "object", "properties": {"b": {}}, "required": ["a"]}),
        ] {
            assert_lost(&run(input, json!({"a": 1}), ok()), SCHEMA, INVALID_SCHEMA, 0);
        }
        let script = script(&json!({"type": "object"})).on_check(|_| Err("no schema".to_owned()));
        assert_lost(&script.run::<SchemaGuessability>(json!({"tool": "t"})), SCHEMA, INVALID_SCHEMA, 0);
    }

    #[test]
    fn a_required_argument_that_is_missing_is_lost_without_a_call() {
        let input = json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]});
        assert_lost(&run(input, json!({"a": 1}), ok()), ARGUMENTS, MISSING_REQUIRED, 0);
    }

    #[test]
    fn a_call_that_fails_is_lost() {
        for reply in [Reply::error(-32602, "no"), Reply::result(json!({"isError": true}))] {
            assert_lost(&run(json!({"type": "object"}), json!({}), reply), SUCCESS, "unexpected-outcome", 1);
        }
    }

    #[test]
    fn an_unlisted_tool_and_a_call_without_answer_are_no_verdict() {
        let case = json!({"tool": "none"});
        let unlisted = script(&json!({})).run::<SchemaGuessability>(case.clone());
        assert_eq!(unlisted.outcome.unwrap_err().cause, Cause::Refused(Refusal::UnlistedTool));
        let broken = script(&json!({})).listing_fault(Cause::TimedOut).run::<SchemaGuessability>(case);
        assert_eq!(broken.outcome.unwrap_err().cause, Cause::TimedOut);
        let silent = run(json!({"type": "object"}), json!({}), Reply::fault(Cause::TimedOut));
        assert_eq!(silent.outcome.unwrap_err().cause, Cause::TimedOut);
        assert!(silent.findings.is_empty());
    }
}
