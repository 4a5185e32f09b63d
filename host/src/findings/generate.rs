//! The case that shows whether a finding is fixed, made from what is known of its failures: the shape of the arguments, and
//! how often they failed. The names of kinds and of their fields are data here.

use serde_json::{Map, Value, json};

use super::verify::asserts;
use super::{Class, Finding};
use crate::error::{Error, Result};
use crate::manifest::scaffold::Manifest;
use crate::store::record::UNLISTED;
use crate::store::shape;

/// The kind that an expectation makes.
pub const EXPECTING: &str = "instruction-fidelity";
/// The field of that kind that is the expectation.
pub const EXPECT: &str = "expect";
/// Bytes of the file of an expectation.
pub const MAX_EXPECT: usize = 64 << 10;

/// The probability that a tool that fails as before is not seen to fail.
const MISSED: f64 = 0.05;
/// Calls in a row that a case makes, at least and at most.
const ATTEMPTS: (u32, u32) = (3, 100);
/// The most of a case about the honesty of errors.
const HONEST_ATTEMPTS: u32 = 20;

/// A case, and what in it was guessed.
#[derive(Debug, PartialEq)]
pub struct Generated {
    /// The manifest of that one case.
    pub manifest: Manifest,
    /// Its kind.
    pub kind: &'static str,
    /// Places in the case and the shapes that stood there, in the order of the case.
    pub guesses: Vec<(String, String)>,
}

/// Makes the case; `expect` is what the call should bring, if somebody said.
///
/// # Errors
/// A usage error if the finding's class says too little of what would be right, the expectation too little of the effect, or
/// the name of the tool was not kept.
pub fn generate(finding: &Finding, expect: Option<Value>) -> Result<Generated> {
    if finding.tool == UNLISTED {
        return Err(Error::usage(
            "the name of this finding's tool could not be kept, so that no case can call it; write one by hand",
        ));
    }
    let (kind, own) = own(finding, expect)?;
    let mut guesses = Vec::new();
    let arguments = match &finding.repro {
        Value::Object(members) if array_of(members).is_none() => object(members, "/arguments", &mut guesses),
        _ => Map::new(),
    };
    let call = [("tool", finding.tool.as_str().into()), ("arguments", arguments.into())];
    let manifest = Manifest::of_case(kind, &finding.finding_id, call.into_iter().chain(own));
    Ok(Generated { manifest, kind, guesses })
}

/// The kind of the case and its own fields.
fn own(finding: &Finding, expect: Option<Value>) -> Result<(&'static str, Vec<(&'static str, Value)>)> {
    if let Some(expect) = expect {
        if finding.class == Class::FalseSuccess && !asserts(&expect) {
            return Err(Error::usage(
                "--expect: the finding is about false successes, so expect an error, or more of a result than that there is one",
            ));
        }
        return Ok((EXPECTING, vec![(EXPECT, expect)]));
    }
    let attempts = attempts(finding.rate);
    match (finding.class, finding.retryable) {
        (Class::RecurringError | Class::RecoversOnRetry | Class::RetryDidNotRecover, _) => {
            Ok(("degradation-over-n", vec![("max_attempts", attempts.into())]))
        }
        (Class::UnstableErrorCode, Some(retryable)) => Ok((
            "error-honesty",
            vec![("max_attempts", attempts.min(HONEST_ATTEMPTS).into()), ("expect_retryable", retryable.into())],
        )),
        (Class::UnstableErrorCode, None) => Err(Error::usage(
            "the errors of this finding do not agree on whether trying again helps; say with --expect FILE what the call should bring",
        )),
        (class @ (Class::FalseSuccess | Class::BlockedOptimalPath), _) => Err(Error::usage(format!(
            "what is right is not known of a finding of class {}; say with --expect FILE what the call should bring",
            class.word()
        ))),
    }
}

/// How many calls it takes to see a failure of that rate, in all but one of twenty cases.
fn attempts(rate: f64) -> u32 {
    let (least, most) = ATTEMPTS;
    if rate >= 1.0 {
        return least;
    }
    let needed = (MISSED.ln() / (1.0 - rate).ln()).ceil();
    // Without a rate there is no number, or none that is finite.
    if !(needed.is_finite() && needed >= 0.0) {
        return most;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the bounds")]
    let within = needed.clamp(f64::from(least), f64::from(most)) as u32;
    within
}

fn object(members: &Map<String, Value>, place: &str, guesses: &mut Vec<(String, String)>) -> Map<String, Value> {
    let mut object = Map::new();
    for (key, shape) in members {
        let at = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
        if key.starts_with("key#") {
            // The key itself is not known.
            guesses.push((at, told(shape)));
        } else if let Some(value) = value(shape, &at, guesses) {
            object.insert(key.clone(), value);
        }
    }
    object
}

/// What stands for a shape; none if nothing can.
fn value(shape: &Value, at: &str, guesses: &mut Vec<(String, String)>) -> Option<Value> {
    if let Value::Object(members) = shape {
        return Some(match array_of(members) {
            None => object(members, at, guesses).into(),
            // An empty array is what was there.
            Some(0) => json!([]),
            Some(_) => {
                guesses.push((at.to_owned(), told(shape)));
                json!([])
            }
        });
    }
    let word = shape.as_str().unwrap_or_default();
    let (known, guessed) = match word {
        shape::NULL => (Some(Value::Null), None),
        "bool:true" => (Some(true.into()), None),
        "bool:false" => (Some(false.into()), None),
        shape::INT => (None, Some(json!(1))),
        shape::NEGATIVE => (None, Some(json!(-1))),
        shape::NUM => (None, Some(json!(0.5))),
        shape::UUID => (None, Some(json!(uuid::Uuid::nil().to_string()))),
        _ if word.starts_with("str") => (None, Some(json!(""))),
        _ if word.starts_with("url:") => (None, Some(json!("https://example.com/"))),
        _ => (word.strip_prefix("enum:").map(Value::from), None),
    };
    if known.is_none() {
        guesses.push((at.to_owned(), told(shape)));
    }
    known.or(guessed)
}

/// The length of the array that a shape stands for.
fn array_of(members: &Map<String, Value>) -> Option<u64> {
    (members.len() == 2 && members.contains_key("items")).then(|| members.get("array")?.as_u64())?
}

fn told(shape: &Value) -> String {
    shape.as_str().map_or_else(|| shape.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::render::tests::example;
    use super::*;
    use crate::notation::Notation;

    fn case(finding: &Finding, expect: Option<Value>) -> Value {
        let generated = generate(finding, expect).unwrap();
        let manifest: Value = serde_json::from_str(&generated.manifest.text(Notation::Json).unwrap()).unwrap();
        assert_eq!((&manifest["version"], manifest["probes"].as_array().unwrap().len()), (&json!(1), 1));
        manifest["probes"][0].clone()
    }

    #[test]
    fn a_case_calls_often_enough_to_see_the_failure() {
        for (rate, expected) in [
            (0.25, 11),
            (1.0, 3),
            (0.99, 3),
            (0.632, 3),
            (0.5, 5),
            (0.03, 99),
            (0.0295, 100),
            (0.001, 100),
            (0.0, 100),
            (-1.0, 100),
            (f64::NAN, 100),
            (2.0, 3),
        ] {
            assert_eq!(attempts(rate), expected, "{rate}");
        }
    }

    #[test]
    fn each_class_has_its_kind() {
        let of = |class, retryable| Finding { class, retryable, rate: 0.05, ..example() };
        for class in [Class::RecurringError, Class::RecoversOnRetry, Class::RetryDidNotRecover] {
            let case = case(&of(class, None), None);
            assert_eq!((&case["probe"], &case["max_attempts"]), (&json!("degradation-over-n"), &json!(59)));
            assert_eq!((&case["id"], &case["access"]), (&json!("finding-0123456789abcdef"), &json!("read_only")));
        }
        let honest = case(&of(Class::UnstableErrorCode, Some(false)), None);
        let found = (&honest["probe"], &honest["max_attempts"], &honest["expect_retryable"]);
        assert_eq!(found, (&json!("error-honesty"), &json!(20), &json!(false)));
        for (class, retryable) in
            [(Class::UnstableErrorCode, None), (Class::FalseSuccess, Some(true)), (Class::BlockedOptimalPath, None)]
        {
            let error = generate(&of(class, retryable), None).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains("--expect FILE"), "{error}");
            let expected = json!({"outcome": "ok", "text_contains": "saved"});
            let case = case(&of(class, retryable), Some(expected.clone()));
            assert_eq!((&case["probe"], &case["expect"]), (&json!("instruction-fidelity"), &expected));
        }
        let weak = generate(&of(Class::FalseSuccess, None), Some(json!({"outcome": "ok"}))).unwrap_err();
        assert!(weak.to_string().contains("false successes"));
        let nameless = Finding { tool: UNLISTED.to_owned(), ..example() };
        assert_eq!(generate(&nameless, None).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn shapes_have_placeholders_and_guesses_are_told() {
        let repro = json!({
            "a": "int", "b": "int:neg", "c": "num", "d": "bool:true", "e": "bool:false", "f": "null", "g": "enum:fast",
            "h": "enum#2", "i": "str<32", "j": "str>4096", "k": "uuid", "l": "url:example.org", "m": {"array": 2, "items": "int"},
            "n": {"array": 0, "items": "empty"}, "o": {"p": "str<8", "key#1": "int"}, "q": "deep", "key#1": {"x": "int"},
            "r/s": "int", "items": "int", "t": {"array": "int", "items": "int"}
        });
        let finding = Finding { repro, ..example() };
        assert_eq!(
            case(&finding, None)["arguments"],
            json!({
                "a": 1, "b": -1, "c": 0.5, "d": true, "e": false, "f": null, "g": "fast", "i": "", "j": "",
                "k": "00000000-0000-0000-0000-000000000000", "l": "https://example.com/", "m": [], "n": [], "o": {"p": ""},
                "r/s": 1, "items": 1, "t": {"array": 1, "items": 1}
            })
        );
        let mut guesses: Vec<String> =
            generate(&finding, None).unwrap().guesses.iter().map(|(at, shape)| format!("{at} ({shape})")).collect();
        guesses.sort();
        assert_eq!(
            guesses,
            [
                "/arguments/a (int)",
                "/arguments/b (int:neg)",
                "/arguments/c (num)",
                "/arguments/h (enum#2)",
                "/arguments/i (str<32)",
                "/arguments/items (int)",
                "/arguments/j (str>4096)",
                "/arguments/k (uuid)",
                "/arguments/key#1 ({\"x\":\"int\"})",
                "/arguments/l (url:example.org)",
                "/arguments/m ({\"array\":2,\"items\":\"int\"})",
                "/arguments/o/key#1 (int)",
                "/arguments/o/p (str<8)",
                "/arguments/q (deep)",
                "/arguments/r~1s (int)",
                "/arguments/t/array (int)",
                "/arguments/t/items (int)",
            ]
        );
        for bare in [Value::Null, json!({"array": 1, "items": "int"}), json!("str<8")] {
            assert_eq!(case(&Finding { repro: bare, ..example() }, None)["arguments"], json!({}));
        }
    }
}
