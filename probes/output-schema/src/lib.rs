//! Kind `output-schema`: structured content keeps to the output schema that the tool declares.

use mcpeval_probe::judge::{Fields, ToolCall, Trial, UNEXPECTED_OUTCOME};
use mcpeval_probe::{Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target, View, schema};

const SUCCESS: &str = "output-schema.success";
const PRESENT: &str = "output-schema.present";
const FIELDS: &str = "output-schema.fields";
const VALID: &str = "output-schema.valid";

const MISSING: &str = "output-schema-declared-but-missing";
const FIELD_MISSING: &str = "output-schema-field-missing";
const INVALID: &str = "output-schema-invalid-result";

/// The component of kind `output-schema`.
#[derive(Clone, Copy, Debug)]
pub struct OutputSchema;

impl Probe for OutputSchema {
    fn manifest() -> Manifest {
        let reference = "https://modelcontextprotocol.io/specification/2025-11-25/server/tools#output-schema";
        let check = |id, title| Check::new(id, Level::Must, title).reference(reference);
        Manifest::new("output-schema", env!("CARGO_PKG_VERSION"), "Structured content keeps to the output schema")
            .summary("Calls a tool once if it declares an output schema, and holds its structured content to that.")
            .config(Fields::new().call().schema())
            .check(check(SUCCESS, "The call succeeds"))
            .check(check(PRESENT, "The result has structuredContent"))
            .check(check(FIELDS, "structuredContent has every required name"))
            .check(check(VALID, "structuredContent is valid"))
            .common_reason(UNEXPECTED_OUTCOME, &[SUCCESS])
            .reason(
                MISSING,
                "The tool declares an output schema, yet the result has no structuredContent. Return it with every success, beside \
                 the text; or remove outputSchema from the tool.",
                &[PRESENT],
            )
            .reason(
                FIELD_MISSING,
                "structuredContent lacks a name that the output schema requires. Return it every time, or take it out of the \
                 schema's required.",
                &[FIELDS],
            )
            .reason(
                INVALID,
                "structuredContent is not valid against the output schema, or that schema does not compile. Validate results in the \
                 tool's own tests; return what the schema says, or correct the schema.",
                &[VALID],
            )
            .asks(1, 0, 200)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let call = ToolCall::of(case)?;
        let entry = call.entry(target)?;
        let mut trial = Trial::new(&[SUCCESS, PRESENT, FIELDS, VALID]);
        let Some(declared) = entry.view().member("outputSchema").filter(|declared| !declared.is_null()) else {
            // Nothing is promised, so nothing is asked for.
            return Ok(Outcome { attempts: 0, first_failure: None });
        };
        let answer = call.call(&target.primary()?)?;
        trial.attempt([answer.exchange]);
        let lost = if answer.succeeded() {
            let structured = answer.tool_result().and_then(|result| result.structured);
            broken(declared, structured.filter(|structured| !structured.is_null()))
        } else {
            Some((SUCCESS, UNEXPECTED_OUTCOME.label))
        };
        Ok(match lost {
            Some((check, reason)) => trial.fail(Finding::fail(check, reason).subject(call.tool())),
            None => trial.pass(),
        })
    }
}

/// The check that structured content loses, and why.
fn broken(declared: View<'_>, structured: Option<View<'_>>) -> Option<(&'static str, &'static str)> {
    let Some(structured) = structured else { return Some((PRESENT, MISSING)) };
    let required = declared.member("required").and_then(View::items).unwrap_or_default();
    let lacks = |name: View<'_>| name.string().is_some_and(|name| structured.member(&name).is_none());
    // Names are an object's; what is no object has another fault.
    if structured.is_object() && required.into_iter().any(lacks) {
        return Some((FIELDS, FIELD_MISSING));
    }
    let valid = structured.is_object() && schema::validate(declared.text(), structured.text()).is_ok();
    (!valid).then_some((VALID, INVALID))
}

mcpeval_probe::export!(OutputSchema);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};
    use mcpeval_probe::{Cause, Value, json};

    use super::*;

    fn tool() -> Value {
        json!({"name": "t", "inputSchema": {}, "annotations": {"readOnlyHint": true}})
    }

    fn declaring(output: Value) -> Value {
        let mut tool = tool();
        tool["outputSchema"] = output;
        tool
    }

    fn strict() -> Value {
        declaring(json!({"type": "object", "required": ["n"]}))
    }

    /// Content is valid if its `n` is a number.
    fn run(tool: Value, reply: Reply) -> Run {
        Script::new([json!({"name": "other"}), tool])
            .on_validate(|schema, instance| {
                let valid = schema.is_object() && instance["n"].is_number();
                if valid { Ok(()) } else { Err(vec!["/n: type".to_owned()]) }
            })
            .on_request(move |_| reply.clone())
            .run::<OutputSchema>(json!({"tool": "t"}))
    }

    #[expect(clippy::needless_pass_by_value, reason = "made for json!")]
    fn structured(content: Value) -> Reply {
        Reply::result(json!({"content": [], "structuredContent": content}))
    }

    #[test]
    fn valid_content_passes() {
        let run = run(strict(), structured(json!({"n": 1})));
        assert_eq!(run.lost(), []);
        assert_eq!(run.outcome.unwrap(), Outcome { attempts: 1, first_failure: None });
    }

    #[test]
    fn without_a_schema_nothing_is_called() {
        for tool in [tool(), declaring(json!(null))] {
            let run = run(tool, Reply::fault(Cause::Closed));
            assert_eq!(run.requests(), 0);
            assert_eq!(run.outcome.unwrap(), Outcome { attempts: 0, first_failure: None });
        }
    }

    #[test]
    fn each_reason_can_be_given() {
        for (tool, reply, check, reason) in [
            (strict(), Reply::error(-32603, "no"), SUCCESS, "unexpected-outcome"),
            (
                strict(),
                Reply::result(json!({"isError": true, "structuredContent": {"n": 1}})),
                SUCCESS,
                "unexpected-outcome",
            ),
            (strict(), Reply::result(json!({"content": []})), PRESENT, MISSING),
            (strict(), structured(json!(null)), PRESENT, MISSING),
            (strict(), structured(json!({"m": 1})), FIELDS, FIELD_MISSING),
            (strict(), structured(json!({"n": "1"})), VALID, INVALID),
            (strict(), structured(json!([1])), VALID, INVALID),
            (declaring(json!("object")), structured(json!({"n": 1})), VALID, INVALID),
        ] {
            let run = run(tool, reply);
            assert_eq!(run.lost(), [(check.into(), Some("t".into()), reason.into())]);
            assert_eq!(run.outcome.unwrap(), Outcome { attempts: 1, first_failure: Some(1) });
        }
    }

    #[test]
    fn a_call_without_answer_is_no_verdict() {
        let run = run(strict(), Reply::fault(Cause::TimedOut));
        assert_eq!(run.outcome.unwrap_err().cause, Cause::TimedOut);
        assert!(run.findings.is_empty());
    }
}
