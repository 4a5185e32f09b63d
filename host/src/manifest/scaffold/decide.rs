//! Which tools a manifest may call, and with what: from the catalog alone.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::super::is_identifier;
use super::Order;
use crate::report::document::Label;
use crate::services::synthesis::{self, Place};
use crate::session::catalog::{Catalog, Entry, ToolClass};
use crate::session::{Denial, Policy};

/// What becomes of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The operator named other tools, or said not to call it.
    NotSelected,
    /// It says that it destroys.
    Destructive,
    /// It says that it writes.
    NotReadOnly,
    /// It says nothing, and nobody attested that it only reads.
    NeedsAttestation,
    /// No arguments are given, and none can be built from its schema.
    NeedsArguments,
    /// It says that it only reads.
    Candidate,
    /// The operator attested that it only reads.
    Attested,
    /// It was called, and there was no success.
    CallFailed,
    /// The manifest was full before its turn.
    OverLimit,
}

impl Decision {
    /// The word in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotSelected => "not-selected",
            Self::Destructive => "destructive",
            Self::NotReadOnly => "not-read-only",
            Self::NeedsAttestation => "needs-attestation",
            Self::NeedsArguments => "needs-arguments",
            Self::Candidate => "candidate",
            Self::Attested => "attested",
            Self::CallFailed => "call-failed",
            Self::OverLimit => "over-limit",
        }
    }

    /// Whether the tool enters the manifest, or would if its call succeeds.
    pub const fn is_taken(self) -> bool {
        matches!(self, Self::Candidate | Self::Attested)
    }
}

/// One tool and what its cases need.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: Label,
    pub(super) decision: Decision,
    /// Present exactly when it may be called.
    pub(super) arguments: Option<Map<String, Value>>,
    pub(super) declares_output: bool,
    /// Its first string property, by name.
    pub(super) text_field: Option<String>,
}

/// Decides for every name that a case could give, in catalog order; of entries with one name the first counts.
pub(super) fn decide(catalog: &Catalog, policy: &Policy, order: &Order) -> Vec<Tool> {
    let names = |is: fn(&Entry, &Value) -> bool| -> HashSet<&str> {
        let entries = catalog.entries.iter();
        entries.filter(|entry| is(entry, &parsed(&entry.raw))).map(|entry| entry.label.as_str()).collect()
    };
    // Which of several entries with one name the server would run is its secret.
    let destructive = names(|_, raw| raw["annotations"]["destructiveHint"] == true);
    let unannotated = names(|entry, _| entry.class == ToolClass::Unannotated);
    let is_selected =
        |name: &Label| (order.tools.is_empty() || order.tools.contains(name)) && !order.skip_tools.contains(name);

    let entries = catalog.entries.iter().filter(|entry| !entry.repeated);
    entries
        .filter_map(|entry| {
            let name = Label::new(&entry.label)?;
            let raw = parsed(&entry.raw);
            let input = &raw["inputSchema"];
            let mut arguments = None;
            let decision = if !is_selected(&name) {
                Decision::NotSelected
            } else if destructive.contains(name.as_str()) {
                Decision::Destructive
            } else {
                match (policy.blocked(name.as_str()), entry.hinted) {
                    (Some(Denial::WriterTool), _) | (_, ToolClass::Writer) => Decision::NotReadOnly,
                    (Some(Denial::UnattestedTool), _) => Decision::NeedsAttestation,
                    (Some(_), ToolClass::Unannotated) if !order.attested_read_only => Decision::NeedsAttestation,
                    (Some(_), _) => Decision::NeedsArguments,
                    (None, _) => {
                        let given = order.arguments.get(name.as_str()).map(|text| parsed(text));
                        let found = given.or_else(|| synthesis::arguments(input, name.as_str(), &Place::Remote));
                        arguments = found.and_then(|found| match found {
                            Value::Object(found) => Some(found),
                            _ => None,
                        });
                        match arguments {
                            None => Decision::NeedsArguments,
                            Some(_) if unannotated.contains(name.as_str()) => Decision::Attested,
                            Some(_) => Decision::Candidate,
                        }
                    }
                }
            };
            Some(Tool {
                name,
                decision,
                arguments,
                declares_output: raw["outputSchema"].is_object(),
                text_field: text_field(input),
            })
        })
        .collect()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// The first property by name that says it is a string, and that a case can name.
fn text_field(input: &Value) -> Option<String> {
    let properties = input["properties"].as_object()?;
    let fields = properties.iter().filter(|(name, schema)| schema["type"] == "string" && is_identifier(name));
    fields.map(|(name, _)| name.clone()).min()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::session::listing::read_entries;

    async fn catalog(entries: &[Value]) -> Catalog {
        let raws = entries.iter().map(ToString::to_string).collect();
        let mut entries = read_entries(raws, 0).await;
        let mut known = HashSet::new();
        for entry in &mut entries {
            entry.repeated = !known.insert(entry.label.clone());
        }
        Catalog { entries, ..Catalog::default() }
    }

    async fn decisions(entries: &[Value], order: &Order) -> Vec<(String, &'static str)> {
        let catalog = Arc::new(catalog(entries).await);
        let policy = Policy::new(&catalog, order.attested_read_only, BTreeSet::new(), Arc::default());
        let tools = decide(&catalog, &policy, order);
        for tool in &tools {
            assert_eq!(tool.arguments.is_some(), tool.decision.is_taken(), "{}", tool.name);
        }
        tools.into_iter().map(|tool| (tool.name.to_string(), tool.decision.word())).collect()
    }

    fn tool(name: &str, annotations: &Value) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}, "annotations": annotations})
    }

    fn table() -> Vec<Value> {
        let read_only = json!({"readOnlyHint": true});
        let impossible = json!({"type": "object", "properties": {"a": false}, "required": ["a"]});
        vec![
            tool("reads", &read_only),
            tool("silent", &json!({})),
            tool("writes", &json!({"readOnlyHint": false})),
            tool("destroys", &json!({"destructiveHint": true, "readOnlyHint": true})),
            json!({"name": "impossible", "inputSchema": impossible, "annotations": read_only}),
            json!({"name": "broken", "inputSchema": 7, "annotations": read_only}),
            json!({"name": "broken-writer", "inputSchema": 7, "annotations": {"readOnlyHint": false}}),
            json!({"name": "broken-silent", "inputSchema": 7}),
            json!({"name": "no name", "inputSchema": {}}),
            tool("reads", &read_only),
        ]
    }

    fn expected<'a>(pairs: &[(&str, &'a str)]) -> Vec<(String, &'a str)> {
        pairs.iter().map(|(tool, word)| ((*tool).to_owned(), *word)).collect()
    }

    #[tokio::test]
    async fn every_tool_gets_the_first_decision_that_fits() {
        let cautious = decisions(&table(), &Order::default()).await;
        let mut wanted = [
            ("reads", "candidate"),
            ("silent", "needs-attestation"),
            ("writes", "not-read-only"),
            ("destroys", "destructive"),
            ("impossible", "needs-arguments"),
            ("broken", "needs-arguments"),
            ("broken-writer", "not-read-only"),
            ("broken-silent", "needs-attestation"),
        ];
        assert_eq!(cautious, expected(&wanted));
        let attested = decisions(&table(), &Order { attested_read_only: true, ..Order::default() }).await;
        (wanted[1].1, wanted[7].1) = ("attested", "needs-arguments");
        assert_eq!(attested, expected(&wanted));
    }

    #[tokio::test]
    async fn a_selection_comes_before_all_else() {
        let tools = ["silent", "destroys"].map(|name| Label::new(name).unwrap()).into();
        let chosen = decisions(&table(), &Order { tools, ..Order::default() }).await;
        let taken: Vec<_> = chosen.iter().filter(|(_, word)| *word != "not-selected").cloned().collect();
        assert_eq!(taken, expected(&[("silent", "needs-attestation"), ("destroys", "destructive")]));
        assert_eq!(chosen.len(), 8);
    }

    #[tokio::test]
    async fn given_arguments_replace_synthesized_ones() {
        let entry = json!({"name": "find", "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}});
        let catalog = catalog(&[entry]).await;
        let policy = Policy::new(&catalog, false, BTreeSet::new(), Arc::default());
        let found = |order: &Order| decide(&catalog, &policy, order).remove(0).arguments.map(Value::Object);
        assert_eq!(found(&Order::default()), Some(json!({"path": "."})), "no path of this machine");
        let arguments = [("find".to_owned(), r#"{"path":"/srv"}"#.to_owned())].into();
        assert_eq!(found(&Order { arguments, ..Order::default() }), Some(json!({"path": "/srv"})));
    }

    #[tokio::test]
    async fn the_strictest_of_equal_names_decides() {
        let reads = tool("twin", &json!({"readOnlyHint": true}));
        for (other, attested, word) in [
            (tool("twin", &json!({"destructiveHint": true})), true, "destructive"),
            (tool("twin", &json!({"readOnlyHint": false})), true, "not-read-only"),
            (tool("twin", &json!({})), false, "needs-attestation"),
            (tool("twin", &json!({})), true, "attested"),
            (json!({"name": "twin"}), true, "needs-arguments"),
        ] {
            let order = Order { attested_read_only: attested, ..Order::default() };
            assert_eq!(decisions(&[reads.clone(), other], &order).await, expected(&[("twin", word)]));
        }
    }

    #[test]
    fn the_first_string_by_name_is_the_field() {
        let text = json!({"type": "string"});
        let input = json!({"properties": {"9": text, "b": text, "a b": text, "c": text, "a": {"type": ["string"]}}});
        assert_eq!(text_field(&input).as_deref(), Some("b"));
        assert_eq!(text_field(&json!({"properties": {"n": {"type": "number"}, "any": true}})), None);
        assert_eq!(text_field(&json!(true)), None);
    }
}
