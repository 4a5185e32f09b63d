//! What a person does after `init`: why tools were left out, how to let them in, what to run next.

use std::path::Path;

use crate::manifest::scaffold::{Decision, Scaffold};
use crate::report::document::Label;

/// Tools that one line names.
const MAX_NAMED: usize = 8;
/// The decisions that leave a tool out, in the order in which they are told; [`reason`] says why.
const LEFT_OUT: [Decision; 7] = [
    Decision::CallFailed,
    Decision::NeedsArguments,
    Decision::NeedsAttestation,
    Decision::NotReadOnly,
    Decision::Destructive,
    Decision::OverLimit,
    Decision::NotSelected,
];

/// Why tools with a decision are left out, and how that can be changed; none for those that are taken.
fn reason(decision: Decision) -> Option<&'static str> {
    Some(match decision {
        Decision::Candidate | Decision::Attested => return None,
        Decision::CallFailed => {
            "their one call was no success; give better arguments with --arguments FILE, and see with -v what was said"
        }
        Decision::NeedsArguments => {
            "no valid arguments can be built from their input schemas; give them with --arguments FILE"
        }
        Decision::NeedsAttestation => {
            "they do not say whether they write; let the server declare readOnlyHint, or attest with --confirm-read-only \
             that they only read"
        }
        Decision::NotReadOnly => {
            "they declare that they write, and init never calls such tools; let the server declare readOnlyHint: true \
             where nothing is changed, or write cases with access mutating by hand, as docs/manifests.md shows, and run \
             them with --allow-mutation; sampling, elicitation and resource-subscription have no such cases"
        }
        Decision::Destructive => {
            "they declare that they destroy, and init never calls such tools; write cases with access mutating by hand, as \
             docs/manifests.md shows, and run them with --allow-mutation"
        }
        Decision::OverLimit => "the manifest is full; choose its tools with --tool NAME",
        Decision::NotSelected => "--tool names others, or skip_tools of the configuration names them",
    })
}

/// The lines for standard error. `target` is how the server is named on a command line, such as `--target shop`;
/// `default` is the file that `probe` reads if none is named.
pub(super) fn lines(found: &Scaffold, path: &Path, default: &Path, target: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let is_any_taken = found.decisions.iter().any(|(_, decision)| decision.is_taken());
    if found.decisions.is_empty() {
        lines.push("the server lists no tool that a case could name".to_owned());
    } else if !is_any_taken {
        let verb = if found.manifest.is_some() { "could be verified" } else { "would be called" };
        lines.push(format!("no tool {verb}, of {} listed", found.decisions.len()));
    }
    for decision in LEFT_OUT {
        // Who chose tools knows which ones, unless nothing is left.
        if decision == Decision::NotSelected && is_any_taken {
            continue;
        }
        let tools: Vec<&Label> =
            found.decisions.iter().filter(|(_, made)| *made == decision).map(|(tool, _)| tool).collect();
        if let (false, Some(reason)) = (tools.is_empty(), reason(decision)) {
            lines.push(format!("left out, {}: {}: {reason}", decision.word(), named(&tools)));
        }
    }
    let file = path.display();
    if let (Some(_), false) = (&found.manifest, is_any_taken) {
        lines.push(format!("{file} holds cases of the catalog and the protocol only, none that calls a tool"));
    }
    lines.push(if found.manifest.is_none() {
        format!("next: the same without --dry-run writes {file}")
    } else if path == default {
        format!("next: mcpeval probe {target}")
    } else {
        format!("next: mcpeval probe --manifest {file} {target}")
    });
    lines
}

/// The first names, and how many more there are.
fn named(tools: &[&Label]) -> String {
    let mut names: Vec<String> = tools.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    if let Some(more) = tools.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(decisions: &[(&str, Decision)]) -> Scaffold {
        Scaffold {
            manifest: None,
            decisions: decisions.iter().map(|(tool, decision)| (Label::new(tool).unwrap(), *decision)).collect(),
            verified: 0,
            unnamed: 0,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn every_decision_that_leaves_a_tool_out_is_told() {
        use Decision::{Attested, Candidate};
        assert!([Candidate, Attested].into_iter().all(|taken| reason(taken).is_none()));
        for decision in LEFT_OUT {
            let lines = lines(&found(&[("tea", decision)]), Path::new("m.json"), Path::new("m.json"), "-- CMD");
            assert_eq!(lines[0], "no tool would be called, of 1 listed");
            assert!(lines[1].starts_with(&format!("left out, {}: tea: ", decision.word())), "{lines:?}");
            assert_eq!(lines[2..], ["next: the same without --dry-run writes m.json"]);
        }
    }

    #[test]
    fn many_tools_are_counted_and_a_choice_is_not_explained() {
        let names: Vec<String> = (0..10).map(|number| format!("tool_{number}")).collect();
        let mut decisions: Vec<_> = names.iter().map(|name| (name.as_str(), Decision::NeedsArguments)).collect();
        decisions.extend([("tea", Decision::Candidate), ("milk", Decision::NotSelected)]);
        let lines = lines(&found(&decisions), Path::new("m.json"), Path::new("m.json"), "-- CMD");
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("tool_6, tool_7, and 2 more: no valid arguments"), "{lines:?}");
    }
}
