//! The guidance document, `mcpeval.guidance-report/v1`: what profiles list, what instructions refer to, and what does not
//! fit. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::{MAX_SETTLE_MS, Order, Profile};
use crate::error::{Error, Result};
use crate::report::canonical;
use crate::report::document::{Generator, Hint, Label};
use crate::session::revision;

/// The value of `schema`.
pub const SCHEMA: &str = "mcpeval.guidance-report/v1";
/// The value of `reference_detection`.
const DETECTION: &str = "inline-code-known-tools";

/// Why something does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Reason {
    /// A profile lacks a tool that the operator requires.
    #[serde(rename = "required-tool-unavailable")]
    RequiredTool,
    /// A profile's instructions refer to a tool that only other profiles list.
    #[serde(rename = "referenced-tool-unavailable")]
    ReferencedTool,
    /// A profile could not be seen to its end.
    #[serde(rename = "profile-incomplete")]
    ProfileIncomplete,
}

/// Every reason with its hint.
pub const REASONS: &[(&str, &str)] = &[
    (Reason::RequiredTool.label(), Reason::RequiredTool.hint()),
    (Reason::ReferencedTool.label(), Reason::ReferencedTool.hint()),
    (Reason::ProfileIncomplete.label(), Reason::ProfileIncomplete.hint()),
];

impl Reason {
    /// The label in documents.
    pub const fn label(self) -> &'static str {
        match self {
            Self::RequiredTool => "required-tool-unavailable",
            Self::ReferencedTool => "referenced-tool-unavailable",
            Self::ProfileIncomplete => "profile-incomplete",
        }
    }

    /// What is wrong, and what to change.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::RequiredTool => {
                "A client with these capabilities does not get a tool that every client must have; list it whatever the client declares."
            }
            Self::ReferencedTool => {
                "The instructions name a tool that a client with these capabilities does not get; list it there too, or name it only where it is listed."
            }
            Self::ProfileIncomplete => {
                "The session of this profile did not open, or its tools were not listed to the end; look at the server's last stderr lines and at how it treats these capabilities."
            }
        }
    }
}

/// What a server gives and tells to clients of several kinds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Guidance {
    /// Version of this document.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// What wrote it.
    pub generator: Generator,
    /// Given by the user.
    pub server: Label,
    /// Of the first session.
    #[schemars(extend("enum" = revision::REVISIONS.map(|revision| revision.date)))]
    pub protocol_version: &'static str,
    /// How references are found.
    #[schemars(extend("const" = DETECTION))]
    pub reference_detection: &'static str,
    /// Wait between the opening and the listing, in milliseconds.
    #[schemars(range(min = 0, max = MAX_SETTLE_MS))]
    pub settle_ms: u32,
    /// Whether every profile was seen to its end.
    pub complete: bool,
    /// Whether every required tool is everywhere; null when incomplete.
    pub passed: Option<bool>,
    /// What every profile must list.
    pub required_tools: Vec<Label>,
    /// Different back-quoted words of the instructions that are no tool of any profile; absent when incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlisted_references: Option<u32>,
    /// One per profile, in the order tried.
    pub profiles: Vec<Seen>,
    /// References to tools that their readers do not have.
    pub candidates: Vec<Lack>,
    /// Required tools that are not there.
    pub defects: Vec<Lack>,
}

/// What one profile was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Seen {
    /// The profile.
    pub profile: Profile,
    /// Its tools, sorted by name; null when incomplete.
    pub tools: Option<Vec<Label>>,
    /// Whether it was told anything; null when incomplete.
    pub instructions_present: Option<bool>,
    /// Why there is nothing of it.
    #[schemars(extend("enum" = [Reason::ProfileIncomplete.label(), ()]))]
    pub error: Option<Reason>,
}

/// A tool that is not where it is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Lack {
    /// The profile that lacks it.
    pub profile: Profile,
    /// The tool.
    pub tool: Label,
    /// Why it is needed.
    pub reason: Reason,
    /// Text of the reason.
    pub hint: Hint,
    /// The profiles that have it.
    pub available_in: Vec<Profile>,
}

/// What was observed of one profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) tools: BTreeSet<Label>,
    pub(super) instructions: Option<String>,
}

/// Compares what each profile lists with what it is told and with what the operator requires. A profile that was not
/// seen to its end leaves nothing to compare.
pub(super) fn compare(order: Order, revision: &'static str, observed: &[(Profile, Option<Observed>)]) -> Guidance {
    let complete = observed.iter().all(|(_, seen)| seen.is_some());
    let mut listed: BTreeMap<&Label, Vec<Profile>> = BTreeMap::new();
    for (profile, seen) in observed {
        for tool in seen.iter().flat_map(|seen| &seen.tools) {
            listed.entry(tool).or_default().push(*profile);
        }
    }
    let lack = |profile: Profile, tool: &Label, reason: Reason| {
        let available_in = listed.get(tool).cloned().unwrap_or_default();
        let is_there = available_in.contains(&profile);
        let hint = Hint(reason.hint().to_owned());
        (!is_there).then(|| Lack { profile, tool: tool.clone(), reason, hint, available_in })
    };
    let (mut candidates, mut defects, mut unlisted) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (profile, seen) in observed.iter().filter(|_| complete) {
        defects.extend(order.required_tools.iter().filter_map(|tool| lack(*profile, tool, Reason::RequiredTool)));
        let instructions = seen.as_ref().and_then(|seen| seen.instructions.as_deref()).unwrap_or_default();
        let mut tools: BTreeSet<Label> = BTreeSet::new();
        for word in quoted_words(instructions) {
            match Label::new(word).filter(|word| listed.contains_key(word)) {
                Some(tool) => _ = tools.insert(tool),
                None => _ = unlisted.insert(word),
            }
        }
        candidates.extend(tools.iter().filter_map(|tool| lack(*profile, tool, Reason::ReferencedTool)));
    }
    Guidance {
        schema: SCHEMA,
        generator: Generator::this(),
        server: order.server,
        protocol_version: revision,
        reference_detection: DETECTION,
        settle_ms: order.settle_ms,
        complete,
        passed: complete.then_some(defects.is_empty()),
        required_tools: order.required_tools.into_iter().collect(),
        unlisted_references: complete.then(|| u32::try_from(unlisted.len()).unwrap_or(u32::MAX)),
        profiles: observed
            .iter()
            .map(|(profile, seen)| Seen {
                profile: *profile,
                tools: seen.as_ref().map(|seen| seen.tools.iter().cloned().collect()),
                instructions_present: seen.as_ref().map(Observed::is_told),
                error: seen.is_none().then_some(Reason::ProfileIncomplete),
            })
            .collect(),
        candidates,
        defects,
    }
}

impl Observed {
    fn is_told(&self) -> bool {
        self.instructions.as_ref().is_some_and(|text| !text.trim().is_empty())
    }
}

/// The single words in code spans of a text in Markdown: a run of back quotes up to the next run of the same length.
fn quoted_words(text: &str) -> Vec<&str> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some((_, end)) if *end == at => *end += 1,
            _ => runs.push((at, at + 1)),
        }
    }
    let mut later: HashMap<usize, usize> = HashMap::new();
    let mut partners: Vec<Option<usize>> = vec![None; runs.len()];
    for (index, (start, end)) in runs.iter().enumerate().rev() {
        if let Some(partner) = partners.get_mut(index) {
            *partner = later.insert(end - start, index);
        }
    }
    let mut words = Vec::new();
    let mut index = 0;
    while let Some((_, begin)) = runs.get(index) {
        let partner = partners.get(index).copied().flatten();
        let end = partner.and_then(|partner| runs.get(partner)).map(|(end, _)| *end);
        let content = end.and_then(|end| text.get(*begin..end)).map(str::trim);
        words.extend(content.filter(|word| !word.is_empty() && !word.contains(char::is_whitespace)));
        index = partner.unwrap_or(index) + 1;
    }
    words
}

impl Guidance {
    /// The document as JSON.
    ///
    /// # Errors
    /// None for values made here.
    pub fn to_json(&self) -> Result<String> {
        let value = serde_json::to_value(self)
            .map_err(|error| Error::unfinished(format!("the document cannot be written: {error}")))?;
        Ok(canonical::document(&value))
    }

    /// 0 if everything required is there, 1 if not, 3 if a profile is incomplete.
    pub fn exit_code(&self) -> u8 {
        match self.passed {
            Some(true) => 0,
            Some(false) => 1,
            None => 3,
        }
    }
}

/// The document as lines for people; each hint stands once, below the first line that has its reason.
pub fn text(guidance: &Guidance) -> String {
    let mut out = String::new();
    let mut hinted: Vec<Reason> = Vec::new();
    let mut hint = |reason: Reason| {
        let is_new = !hinted.contains(&reason);
        hinted.push(reason);
        if is_new { format!("    {}\n", reason.hint()) } else { String::new() }
    };
    for Seen { profile, tools, instructions_present, error } in &guidance.profiles {
        let profile = profile.word();
        // Writing to a string cannot fail.
        _ = if let (Some(tools), None) = (tools, error) {
            let told = if *instructions_present == Some(true) { "yes" } else { "no" };
            writeln!(out, "profile {profile} tools={} instructions={told}", tools.len())
        } else {
            let reason = Reason::ProfileIncomplete;
            write!(out, "profile {profile} error reason={}\n{}", reason.label(), hint(reason))
        };
    }
    for (word, lacks) in [("candidate", &guidance.candidates), ("defect", &guidance.defects)] {
        for Lack { profile, tool, reason, available_in, .. } in lacks {
            let places: Vec<&str> = available_in.iter().map(|profile| profile.word()).collect();
            let places = if places.is_empty() { "-".to_owned() } else { places.join(",") };
            let (profile, label) = (profile.word(), reason.label());
            _ = write!(out, "{word} {profile} {tool} reason={label} available_in={places}\n{}", hint(*reason));
        }
    }
    let verdict = match guidance.passed {
        Some(true) => "pass",
        Some(false) => "fail",
        None => "error",
    };
    let (candidates, defects) = (guidance.candidates.len(), guidance.defects.len());
    _ = writeln!(out, "{} guidance {verdict} candidates={candidates} defects={defects}", guidance.server);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::schema;

    fn labels(names: &[&str]) -> BTreeSet<Label> {
        names.iter().map(|name| Label::new(name).unwrap()).collect()
    }

    fn seen(tools: &[&str], instructions: &str) -> Observed {
        Observed { tools: labels(tools), instructions: Some(instructions.to_owned()) }
    }

    fn compared(required: &[&str], observed: &[(Profile, Option<Observed>)]) -> Guidance {
        let order = Order {
            server: Label::new("shop").unwrap(),
            profiles: Profile::ALL.into(),
            required_tools: labels(required),
            settle_ms: 20,
        };
        let guidance = compare(order, "2025-11-25", observed);
        let document: serde_json::Value = serde_json::from_str(&guidance.to_json().unwrap()).unwrap();
        let validator = jsonschema::draft202012::new(&schema::Document::Guidance.schema(&[])).unwrap();
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} {document:#}");
        guidance
    }

    fn differing() -> [(Profile, Option<Observed>); 3] {
        let told = "Call `find` first, then `ask`. Never `rm -rf`, and set `DEBUG`.";
        [
            (Profile::None, Some(seen(&["find"], told))),
            (Profile::Sampling, Some(seen(&["ask", "find"], told))),
            (Profile::All, Some(seen(&["ask"], ""))),
        ]
    }

    #[test]
    fn a_reference_is_judged_where_it_is_read() {
        let guidance = compared(&[], &differing());
        let found: Vec<_> = guidance.candidates.iter().map(|lack| (lack.profile, lack.tool.as_str())).collect();
        assert_eq!(found, [(Profile::None, "ask")], "the profile all lacks find, but is told nothing of it");
        assert_eq!(guidance.candidates[0].available_in, [Profile::Sampling, Profile::All]);
        assert_eq!((guidance.passed, guidance.exit_code(), guidance.unlisted_references), (Some(true), 0, Some(1)));
        let told: Vec<_> = guidance.profiles.iter().map(|seen| seen.instructions_present).collect();
        assert_eq!(told, [Some(true), Some(true), Some(false)]);
    }

    #[test]
    fn what_is_required_must_be_everywhere() {
        let guidance = compared(&["find", "gone"], &differing());
        let found: Vec<_> = guidance.defects.iter().map(|lack| (lack.profile.word(), lack.tool.as_str())).collect();
        assert_eq!(found, [("none", "gone"), ("sampling", "gone"), ("all", "find"), ("all", "gone")]);
        assert_eq!((guidance.passed, guidance.exit_code()), (Some(false), 1));
        assert_eq!(guidance.defects[0].available_in, []);
        let reason = Reason::RequiredTool;
        assert!(guidance.defects.iter().all(|lack| lack.reason == reason && lack.hint.as_str() == reason.hint()));
    }

    #[test]
    fn an_incomplete_profile_leaves_no_verdict() {
        let mut observed = differing();
        observed[2].1 = None;
        let guidance = compared(&["gone"], &observed);
        assert_eq!((guidance.complete, guidance.passed, guidance.exit_code()), (false, None, 3));
        assert!(guidance.candidates.is_empty() && guidance.defects.is_empty());
        assert_eq!(guidance.unlisted_references, None);
        let last = serde_json::to_value(&guidance.profiles[2]).unwrap();
        let nothing =
            json!({"profile": "all", "tools": null, "instructions_present": null, "error": "profile-incomplete"});
        assert_eq!(last, nothing);
    }

    #[test]
    fn a_word_is_what_one_code_span_holds() {
        let words: &[(&str, &[&str])] = &[
            ("", &[]),
            ("plain", &[]),
            ("`a` and `b`, `c`.", &["a", "b", "c"]),
            ("`a`.`b`", &["a", "b"]),
            ("``a`` and `` b ``", &["a", "b"]),
            ("two `of them` and ` one `", &["one"]),
            ("``` sh\nrun `a`\n``` then `b`", &["b"]),
            ("``a` still ``", &[]),
            ("open `` only, `a`", &["a"]),
            ("a lone ` here", &[]),
            ("` `", &[]),
            ("`ä` `x\u{a0}y`", &["ä"]),
        ];
        for (text, expected) in words {
            assert_eq!(quoted_words(text), *expected, "{text}");
        }
        // As long as a message may be, and every run of another length.
        let runs: String = (1..2_800).map(|length| "`".repeat(length) + " ").collect();
        assert_eq!(quoted_words(&runs), Vec::<&str>::new());
    }

    #[test]
    fn lines_name_profiles_lacks_and_each_hint_once() {
        let mut observed = differing();
        let lines = text(&compared(&["find", "gone"], &observed));
        let expected = [
            "profile none tools=1 instructions=yes\n",
            "profile sampling tools=2 instructions=yes\n",
            "profile all tools=1 instructions=no\n",
            "candidate none ask reason=referenced-tool-unavailable available_in=sampling,all\n",
            "    The instructions name a tool",
            "defect none gone reason=required-tool-unavailable available_in=-\n    A client with these",
            "defect all find reason=required-tool-unavailable available_in=none,sampling\n",
            "shop guidance fail candidates=1 defects=4\n",
        ];
        for part in expected {
            assert!(lines.contains(part), "{part} in {lines}");
        }
        assert_eq!(lines.lines().count(), 3 + 2 + 5 + 1, "{lines}");
        observed[0].1 = None;
        let lines = text(&compared(&[], &observed));
        assert!(lines.starts_with("profile none error reason=profile-incomplete\n    The session"), "{lines}");
        assert!(lines.ends_with("shop guidance error candidates=0 defects=0\n"), "{lines}");
    }

    #[test]
    fn reasons_are_explained_within_bounds() {
        assert_eq!(REASONS.len(), 3);
        for (label, hint) in REASONS {
            assert!(hint.len() <= 400 && hint.ends_with('.'), "{label}");
        }
        let words = [Reason::RequiredTool, Reason::ReferencedTool, Reason::ProfileIncomplete];
        for reason in words {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.label());
        }
    }
}
