//! The cases of a first manifest. The names of kinds are data here: nothing in this program runs them by name.

use std::ops::RangeInclusive;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};

use super::super::{Access, VERSION, is_identifier};
use crate::error::{Error, Result};
use crate::notation::Notation;
use crate::report::document::Label;

/// A revision that no server speaks.
const BOGUS_VERSION: &str = "2000-01-01";
/// Pages that a list may take.
const PAGES: usize = 5;
/// Pages that a case can ask for.
const MAX_PAGES: usize = 1_000;
/// Calls in a row.
const REPEATS: u32 = 5;
/// Calls that are timed.
const TIMED: u32 = 3;
/// What a call may take more than it took.
const LATENCY_FACTOR: u32 = 4;
/// What a timed call may take, in milliseconds.
const LATENCY_MS: RangeInclusive<u32> = 1_000..=60_000;
/// Bytes of the long string.
const PAYLOAD: u32 = 1_000_000;
/// What a catalog may grow by.
const GROWTH: usize = 2;
/// Entries of a catalog.
const TOOLS: RangeInclusive<usize> = 10..=10_000;
/// Bytes of a catalog.
const SCHEMA_BYTES: RangeInclusive<usize> = 1_000..=10_000_000;
/// Estimated tokens of a catalog.
const TOTAL_TOKENS: RangeInclusive<usize> = 100..=1_000_000;
/// Estimated tokens of an entry.
const TOOL_TOKENS: RangeInclusive<usize> = 100..=100_000;
/// Bytes of a token, by mcpeval's estimate.
const TOKEN_BYTES: usize = 4;

/// What was seen of a server.
pub(super) struct Measured {
    /// Bytes of each entry as compact JSON.
    pub(super) sizes: Vec<usize>,
    /// Answers that made the listing.
    pub(super) pages: usize,
    /// Whether it declares resources or prompts.
    pub(super) surfaces: bool,
    /// In catalog order.
    pub(super) verified: Vec<Verified>,
}

/// A tool that was called with success.
pub(super) struct Verified {
    pub(super) tool: Label,
    pub(super) arguments: Map<String, Value>,
    /// How long the call took, rounded up.
    pub(super) milliseconds: u32,
    pub(super) declares_output: bool,
    /// Its first string property, by name.
    pub(super) text_field: Option<String>,
}

/// A manifest, its fields in the order in which people read them.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Manifest {
    version: u32,
    probes: Vec<Case>,
}

/// One case: the fields that every case has, then those of its kind.
#[derive(Debug, Clone, PartialEq)]
struct Case {
    probe: &'static str,
    id: String,
    fields: Vec<(&'static str, Value)>,
}

impl Serialize for Case {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("probe", self.probe)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("access", Access::ReadOnly.word())?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Manifest {
    /// A manifest of one `read_only` case; the id must be an identifier.
    pub fn of_case(probe: &'static str, id: &str, fields: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let mut manifest = Self { version: VERSION, probes: Vec::new() };
        manifest.add(probe, id, fields);
        manifest
    }

    pub(super) fn of(measured: &Measured) -> Self {
        let mut manifest = Self { version: VERSION, probes: Vec::new() };
        manifest.add_catalog(measured);
        for verified in &measured.verified {
            manifest.add_tool(verified);
        }
        if let Some(first) = measured.verified.first() {
            manifest.add_call("contention", "contention", first, []);
        }
        let text = measured.verified.iter().find_map(|verified| Some((verified, verified.text_field.as_deref()?)));
        if let Some((verified, field)) = text {
            let fields = [("field", field.into()), ("size_bytes", PAYLOAD.into()), ("expect_handled", false.into())];
            manifest.add_call("payload-bounds", "payload", verified, fields);
        }
        manifest
    }

    /// The cases that need no call.
    fn add_catalog(&mut self, measured: &Measured) {
        let Measured { sizes, pages, surfaces, .. } = measured;
        let within = |value: usize, bounds: &RangeInclusive<usize>| value.clamp(*bounds.start(), *bounds.end());
        let grown = |value: usize, bounds| Value::from(within(value.saturating_mul(GROWTH), bounds));
        // Brackets, and a comma between two.
        let bytes = sizes.iter().sum::<usize>() + sizes.len().saturating_sub(1) + 2;
        let tokens: Vec<usize> = sizes.iter().map(|bytes| bytes.div_ceil(TOKEN_BYTES)).collect();
        let hundreds =
            |tokens: usize, bounds| Value::from(within(tokens.saturating_mul(GROWTH).next_multiple_of(100), bounds));
        self.add(
            "discovery-cost",
            "discovery-budget",
            [("max_tools", grown(sizes.len(), &TOOLS)), ("max_schema_bytes", grown(bytes, &SCHEMA_BYTES))],
        );
        self.add(
            "token-cost",
            "token-budget",
            [
                ("max_total_tokens", hundreds(tokens.iter().sum(), &TOTAL_TOKENS)),
                ("max_tool_tokens", hundreds(tokens.iter().copied().max().unwrap_or(0), &TOOL_TOKENS)),
            ],
        );
        let pages = within(pages.saturating_add(1), &(PAGES..=MAX_PAGES));
        self.add("pagination", "catalog-pagination", [("max_pages", pages.into())]);
        self.add("protocol-negotiation", "protocol-negotiation", [("bogus_version", BOGUS_VERSION.into())]);
        if *surfaces {
            self.add("surface-listing", "declared-surfaces", [("max_pages", PAGES.into())]);
        }
    }

    /// The cases that every verified tool has.
    fn add_tool(&mut self, verified: &Verified) {
        let limit = verified.milliseconds.saturating_mul(LATENCY_FACTOR);
        let limit = limit.min(*LATENCY_MS.end()).next_multiple_of(100).max(*LATENCY_MS.start());
        self.add_call("schema-guessability", "guessable", verified, []);
        self.add_call("degradation-over-n", "repeat", verified, [("max_attempts", REPEATS.into())]);
        let timed = [("attempts", TIMED.into()), ("max_latency_ms", limit.into())];
        self.add_call("latency-budget", "latency", verified, timed);
        if verified.declares_output {
            self.add_call("output-schema", "output", verified, []);
        }
    }

    fn add_call<const N: usize>(
        &mut self,
        probe: &'static str,
        purpose: &str,
        verified: &Verified,
        fields: [(&'static str, Value); N],
    ) {
        let tool = &verified.tool;
        let call = [("tool", tool.as_str().into()), ("arguments", verified.arguments.clone().into())];
        self.add(probe, &format!("{tool}-{purpose}"), call.into_iter().chain(fields));
    }

    fn add(&mut self, probe: &'static str, id: &str, fields: impl IntoIterator<Item = (&'static str, Value)>) {
        // No other id ends with a number, and no two cases have the same one.
        let id = if is_identifier(id) { id.to_owned() } else { format!("case-{probe}-{}", self.probes.len() + 1) };
        self.probes.push(Case { probe, id, fields: fields.into_iter().collect() });
    }

    /// How many cases it has.
    pub fn len(&self) -> usize {
        self.probes.len()
    }

    /// Whether it has none; no server is that bare.
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty()
    }

    /// The text of the file.
    ///
    /// # Errors
    /// Unfinished if it cannot be written in this notation, which is not so for JSON and YAML.
    pub fn text(&self, notation: Notation) -> Result<String> {
        let cannot = |why: String| Error::unfinished(format!("the manifest cannot be written: {why}"));
        match notation {
            Notation::Json => {
                serde_json::to_string_pretty(self).map(|text| text + "\n").map_err(|error| cannot(error.to_string()))
            }
            Notation::Yaml => {
                // One line a string, so that no reader folds what was not folded.
                let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
                serde_saphyr::to_string_with_options(self, options).map_err(|error| cannot(error.to_string()))
            }
            Notation::Toml => Err(cannot("a manifest is JSON or YAML".to_owned())),
        }
    }
}

/// The length of an entry as compact JSON, in bytes.
pub(super) fn compact_bytes(raw: &str) -> usize {
    serde_json::from_str::<Value>(raw).map_or(raw.len(), |entry| entry.to_string().len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::notation::Document;

    fn verified(tool: &str, arguments: &Value, milliseconds: u32) -> Verified {
        Verified {
            tool: Label::new(tool).unwrap(),
            arguments: arguments.as_object().cloned().unwrap_or_default(),
            milliseconds,
            declares_output: false,
            text_field: None,
        }
    }

    fn measured(sizes: &[usize], verified: Vec<Verified>) -> Measured {
        Measured { sizes: sizes.to_vec(), pages: 1, surfaces: false, verified }
    }

    fn value(manifest: &Manifest, notation: Notation) -> Value {
        let text = manifest.text(notation).unwrap();
        Document::parse("m", text.clone(), notation)
            .unwrap_or_else(|fault| panic!("{fault}\n{text}"))
            .root()
            .node()
            .to_value()
    }

    fn case(manifest: &Manifest, id: &str) -> Value {
        let cases = value(manifest, Notation::Json);
        let found = cases["probes"].as_array().unwrap().iter().find(|case| case["id"] == id).cloned();
        found.unwrap_or_else(|| panic!("no case {id} in {cases:#}"))
    }

    #[test]
    fn the_cases_of_a_catalog_keep_their_bounds() {
        let bare = Manifest::of(&measured(&[], vec![]));
        assert_eq!(
            value(&bare, Notation::Json),
            json!({"version": 1, "probes": [
                {"probe": "discovery-cost", "id": "discovery-budget", "access": "read_only", "max_tools": 10, "max_schema_bytes": 1000},
                {"probe": "token-cost", "id": "token-budget", "access": "read_only", "max_total_tokens": 100, "max_tool_tokens": 100},
                {"probe": "pagination", "id": "catalog-pagination", "access": "read_only", "max_pages": 5},
                {"probe": "protocol-negotiation", "id": "protocol-negotiation", "access": "read_only", "bogus_version": "2000-01-01"},
            ]})
        );
        let sizes = [401, 2_000, 3];
        let usual = Manifest::of(&Measured { pages: 7, surfaces: true, ..measured(&sizes, vec![]) });
        let budget = case(&usual, "discovery-budget");
        assert_eq!((&budget["max_tools"], &budget["max_schema_bytes"]), (&json!(10), &json!(2 * 2_408)));
        let budget = case(&usual, "token-budget");
        // 101 and 500 and 1 tokens.
        assert_eq!((&budget["max_total_tokens"], &budget["max_tool_tokens"]), (&json!(1_300), &json!(1_000)));
        assert_eq!(case(&usual, "catalog-pagination")["max_pages"], 8);
        assert_eq!(case(&usual, "declared-surfaces")["max_pages"], 5);
        let huge = Manifest::of(&Measured { pages: 1_000, ..measured(&vec![1_000_000; 6_000], vec![]) });
        let budget = case(&huge, "discovery-budget");
        assert_eq!((&budget["max_tools"], &budget["max_schema_bytes"]), (&json!(10_000), &json!(10_000_000)));
        let budget = case(&huge, "token-budget");
        assert_eq!((&budget["max_total_tokens"], &budget["max_tool_tokens"]), (&json!(1_000_000), &json!(100_000)));
        assert_eq!(case(&huge, "catalog-pagination")["max_pages"], 1_000);
    }

    #[test]
    fn each_tool_has_its_cases_and_the_first_ones_more() {
        let second = Verified {
            declares_output: true,
            text_field: Some("query".to_owned()),
            ..verified("find", &json!({"query": "tea"}), 301)
        };
        let manifest = Manifest::of(&measured(&[10, 10], vec![verified("list", &json!({}), 3), second]));
        let ids: Vec<String> =
            manifest.probes.iter().skip(4).map(|case| format!("{} {}", case.probe, case.id)).collect();
        assert_eq!(
            ids,
            [
                "schema-guessability list-guessable",
                "degradation-over-n list-repeat",
                "latency-budget list-latency",
                "schema-guessability find-guessable",
                "degradation-over-n find-repeat",
                "latency-budget find-latency",
                "output-schema find-output",
                "contention list-contention",
                "payload-bounds find-payload",
            ]
        );
        assert_eq!(case(&manifest, "list-latency")["max_latency_ms"], 1_000);
        assert_eq!(case(&manifest, "find-latency")["max_latency_ms"], 1_300);
        assert_eq!(
            case(&manifest, "find-payload"),
            json!({"probe": "payload-bounds", "id": "find-payload", "access": "read_only", "tool": "find",
                "arguments": {"query": "tea"}, "field": "query", "size_bytes": 1_000_000, "expect_handled": false})
        );
        let text = manifest.text(Notation::Json).unwrap();
        assert!(
            text.contains("\"id\": \"find-repeat\",\n      \"access\": \"read_only\",\n      \"tool\": \"find\",\n"),
            "{text}"
        );
        let slow = Manifest::of(&measured(&[], vec![verified("slow", &json!({}), u32::MAX)]));
        assert_eq!(case(&slow, "slow-latency")["max_latency_ms"], 60_000);
    }

    #[test]
    fn a_name_that_makes_no_id_gets_a_number() {
        let long = "x".repeat(60);
        let manifest =
            Manifest::of(&measured(&[], vec![verified("_find", &json!({}), 1), verified(&long, &json!({}), 1)]));
        let ids: Vec<&str> = manifest.probes.iter().map(|case| case.id.as_str()).skip(4).collect();
        let expected = [
            "case-schema-guessability-5",
            "case-degradation-over-n-6",
            "case-latency-budget-7",
            "case-schema-guessability-8",
            "case-degradation-over-n-9",
            "case-latency-budget-10",
            "case-contention-11",
        ];
        assert_eq!(ids, expected);
        assert!(ids.iter().all(|id| is_identifier(id)));
        assert_eq!(manifest.len(), 11);
    }

    #[test]
    fn yaml_and_json_say_the_same_whatever_a_string_looks_like() {
        let words = [
            "",
            " ",
            "~",
            "null",
            "Null",
            "true",
            "False",
            "yes",
            "no",
            "on",
            "off",
            "y",
            "n",
            "1",
            "-1",
            "+1",
            "1_000",
            "0x1f",
            "0o17",
            "017",
            "1.0",
            "1e3",
            ".5",
            ".inf",
            "-.Inf",
            ".nan",
            "2026-01-01",
            "12:30:45",
            "<<",
            "=",
            "-",
            "- a",
            "?",
            "? a",
            ":",
            "a: b",
            "a:",
            "a #b",
            "#a",
            "&a",
            "*a",
            "!a",
            "!!str a",
            "|",
            ">",
            "%a",
            "@a",
            "`a`",
            "'",
            "\"",
            "'a'",
            "\"a\"",
            "\\",
            "\\n",
            "{",
            "}",
            "{a: 1}",
            "[",
            "]",
            "[a]",
            ",",
            "---",
            "...",
            "--- a",
            " a",
            "a ",
            "\ta",
            "a\t",
            "\n",
            "a\nb",
            "a\n",
            "\na",
            "a\n\n",
            " a\n  b",
            "a\r\nb",
            "\r",
            "\u{0}",
            "\u{1b}",
            "\u{7f}",
            "\u{85}",
            "\u{a0}",
            "\u{2028}",
            "\u{feff}",
            "\u{feff}a",
            "\u{fffe}",
            "\u{d7ff}",
            "\u{1f980}",
            "ä",
        ];
        let long = ["word ".repeat(60), "x".repeat(5_000), format!("{}\n{}", "a b ".repeat(40), "c".repeat(100))];
        let words: Vec<&str> = words.into_iter().chain(long.iter().map(String::as_str)).collect();
        // A key of more than 1,024 characters is beyond what YAML promises.
        let keys: Map<String, Value> =
            words.iter().filter(|word| word.len() < 1_000).map(|word| ((*word).to_owned(), json!(word))).collect();
        let numbers = json!([0, -1, u64::MAX, i64::MIN, 0.1, 1.0, -0.5, 1e300, 5e-324, 1e21, 123_456_789.25]);
        let arguments = json!({
            "words": words, "keys": keys, "numbers": numbers, "nothing": null, "flags": [true, false],
            "empty": [{}, [], [[]], {"a": {}}], "deep": [[["a"], {"b": [{"c": []}]}]],
        });
        let manifest = Manifest::of(&measured(&[], vec![verified("find", &arguments, 1)]));
        let (yaml, json) = (value(&manifest, Notation::Yaml), value(&manifest, Notation::Json));
        assert_eq!(json["probes"][4]["arguments"], arguments);
        for (place, word) in words.iter().enumerate() {
            assert_eq!(yaml["probes"][4]["arguments"]["words"][place], **word);
        }
        assert_eq!(yaml, json);
        let text = manifest.text(Notation::Yaml).unwrap();
        assert!(text.starts_with("version: 1\nprobes:\n- probe: discovery-cost\n  id: discovery-budget\n"), "{text}");
    }
}
