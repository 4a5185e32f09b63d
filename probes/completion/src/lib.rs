//! Kind `completion`: one `completion/complete` for an argument of a prompt or a resource template.

use mcpeval_probe::judge::{Fields, Trial, identifier, integer};
use mcpeval_probe::{Answer, Case, Cause, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target, View, json};

const ANSWERED: &str = "completion.answered";
const VALUES: &str = "completion.values";
const BOUNDED: &str = "completion.bounded";

const STALLED: &str = "completion-stalled-request";
const INVALID: &str = "completion-invalid-request";
const UNKNOWN: &str = "completion-argument-unknown";
const FLOOD: &str = "completion-value-flood";

/// The component of kind `completion`.
#[derive(Clone, Copy, Debug)]
pub struct Completion;

/// The number of values, if they are an array of strings.
fn count(result: View<'_>) -> Option<u32> {
    let values = result.member("completion")?.member("values")?.items()?;
    let strings = values.iter().all(|value| value.string().is_some());
    strings.then(|| u32::try_from(values.len()).unwrap_or(u32::MAX))
}

/// What is wrong with an answer.
fn judge(answer: &Answer, argument: &str, max_values: u32) -> Option<Finding> {
    match &answer.reply {
        Err(error) => {
            let text = error.view().member("message").and_then(View::string).unwrap_or_default();
            Some(Finding::fail(VALUES, if text.contains(argument) { UNKNOWN } else { INVALID }))
        }
        Ok(result) => match count(result.view()) {
            None => Some(Finding::fail(VALUES, INVALID)),
            Some(count) => (count > max_values).then(|| Finding::fail(BOUNDED, FLOOD).observed(count)),
        },
    }
}

impl Probe for Completion {
    fn manifest() -> Manifest {
        let completion = "https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/completion";
        let check = |id, title| Check::new(id, Level::Must, title).reference(completion);
        let config = Fields::new()
            .required("ref_type", json!({"enum": ["ref/prompt", "ref/resource"]}))
            .required("ref_uri", json!({"type": "string", "minLength": 1, "maxLength": 512}))
            .required("argument_name", identifier())
            .required("argument_value", identifier())
            .required("max_values", integer(1, 100));
        Manifest::new("completion", env!("CARGO_PKG_VERSION"), "An argument is completed within bounds")
            .summary("Asks once for completions of an argument of a prompt or a resource template.")
            .config(config.schema())
            .check(check(ANSWERED, "The request is answered in time"))
            .check(check(VALUES, "completion.values is an array of strings"))
            .check(check(BOUNDED, "There are at most max_values of them"))
            .reason(
                STALLED,
                "completion/complete was not answered before the timeout; answer while a user is typing, with fewer values \
                 or none where a full search takes long.",
                &[ANSWERED],
            )
            .reason(
                INVALID,
                "completion/complete gave an error, or no completion.values that is an array of strings; answer a reference \
                 that prompts/list or resources/templates/list names with strings, and with an empty array if nothing fits.",
                &[VALUES],
            )
            .reason(
                UNKNOWN,
                "completion/complete declined the argument by its name; complete every argument that the prompt or template \
                 declares, or correct argument_name in the case.",
                &[VALUES],
            )
            .reason(
                FLOOD,
                "completion/complete gave more values than max_values; send the best ones, 100 at most, and say with total \
                 and hasMore that there are more.",
                &[BOUNDED],
            )
            .needs("completions")
            .asks(1, 0, 100)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let argument = case.string("argument_name")?;
        let kind = case.string("ref_type")?;
        let named_by = if kind == "ref/prompt" { "name" } else { "uri" };
        let params = json!({
            "ref": {"type": kind, named_by: case.string("ref_uri")?},
            "argument": {"name": argument, "value": case.string("argument_value")?},
        });
        let max_values = case.number("max_values")?;
        let mut trial = Trial::new(&[ANSWERED, VALUES, BOUNDED]);
        let answer = match target.primary()?.request("completion/complete", params) {
            Ok(answer) => answer,
            Err(fault) if fault.cause == Cause::TimedOut => {
                trial.attempt(fault.exchange);
                return Ok(trial.fail(Finding::fail(ANSWERED, STALLED)));
            }
            Err(fault) => return Err(fault),
        };
        trial.attempt([answer.exchange]);
        Ok(match judge(&answer, &argument, max_values) {
            None => trial.pass(),
            Some(finding) => trial.fail(finding),
        })
    }
}

mcpeval_probe::export!(Completion);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script};

    use super::*;

    fn run_as(ref_type: &str, reply: Reply) -> Run {
        Script::new([]).on_request(move |_| reply.clone()).run::<Completion>(json!({
            "ref_type": ref_type,
            "ref_uri": "plan",
            "argument_name": "style",
            "argument_value": "b",
            "max_values": 2
        }))
    }

    fn reason(reply: Reply) -> Option<String> {
        let run = run_as("ref/prompt", reply);
        let outcome = run.outcome.as_ref().unwrap();
        let reason = run.lost().pop().map(|(_, _, reason)| reason);
        assert_eq!((outcome.attempts, outcome.first_failure), (1, reason.as_ref().map(|_| 1)));
        reason
    }

    fn values(values: &[&str]) -> Reply {
        Reply::result(json!({"completion": {"values": values}}))
    }

    #[test]
    fn at_most_so_many_strings_pass() {
        assert_eq!(reason(values(&[])), None);
        assert_eq!(reason(values(&["brief", "brisk"])), None);
        assert_eq!(reason(values(&["a", "b", "c"])).as_deref(), Some(FLOOD));
    }

    #[test]
    fn what_is_no_list_of_strings_is_invalid() {
        for result in [
            json!({}),
            json!([]),
            json!({"completion": {}}),
            json!({"completion": {"values": "a"}}),
            json!({"completion": {"values": ["a", 1]}}),
            json!({"completion": {"values": [1, 2, 3]}}),
        ] {
            assert_eq!(reason(Reply::result(result.clone())).as_deref(), Some(INVALID), "{result}");
        }
    }

    #[test]
    fn an_error_that_names_the_argument_does_not_know_it() {
        assert_eq!(reason(Reply::error(-32602, "no argument style here")).as_deref(), Some(UNKNOWN));
        assert_eq!(reason(Reply::error(-32602, "no argument Style here")).as_deref(), Some(INVALID));
        assert_eq!(reason(Reply::error(-32601, "no such method")).as_deref(), Some(INVALID));
    }

    #[test]
    fn silence_stalls_and_other_faults_give_no_verdict() {
        assert_eq!(reason(Reply::fault(Cause::TimedOut)).as_deref(), Some(STALLED));
        let closed = run_as("ref/prompt", Reply::fault(Cause::Closed));
        assert_eq!(closed.outcome.unwrap_err().cause, Cause::Closed);
    }

    #[test]
    fn prompts_go_by_name_and_templates_by_uri() {
        let sent = |ref_type| run_as(ref_type, values(&[])).sent[0].params["ref"].clone();
        assert_eq!(sent("ref/prompt"), json!({"type": "ref/prompt", "name": "plan"}));
        assert_eq!(sent("ref/resource"), json!({"type": "ref/resource", "uri": "plan"}));
        let run = run_as("ref/prompt", values(&[]));
        assert_eq!(run.sent[0].params["argument"], json!({"name": "style", "value": "b"}));
    }
}
