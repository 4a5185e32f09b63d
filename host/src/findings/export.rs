//! A page for each finding, to be filed as an issue. Every value in it is a word, a label or a number, or stands as code, so
//! that nothing of a server's means anything there.

use std::fmt::Write as _;

use super::render::{code, commands, evidence, standing};
use super::{Class, Finding};
use crate::error::{Error, Result};
use crate::store::hash::is_finding;
use crate::store::lifecycle::State;
use crate::store::shape;

/// A page and the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// `<finding-id>.md`.
    pub file: String,
    /// Markdown.
    pub text: String,
}

/// The pages of all findings that are not closed, or of all.
///
/// # Errors
/// Unfinished if an id could name a file elsewhere, which those of this version cannot.
pub fn pages(findings: &[Finding], with_closed: bool) -> Result<Vec<Page>> {
    findings.iter().filter(|finding| with_closed || finding.state != State::Closed).map(page).collect()
}

fn page(finding: &Finding) -> Result<Page> {
    let id = &finding.finding_id;
    if !is_finding(id) {
        return Err(Error::unfinished(
            "a finding has an id that is none; run mcpeval index --rebuild, then mcpeval promote",
        ));
    }
    let labels = [
        "mcpeval".to_owned(),
        format!("server:{}", finding.server),
        format!("class:{}", finding.class.word()),
        format!("severity:{}", finding.severity.word()),
        format!("state:{}", finding.state.word()),
    ];
    let labels: Vec<String> = labels.iter().map(|label| code(label)).collect();
    let mut text = format!(
        "# {} {}\n\nFinding {}. {}\n\nLabels: {}\n\n## Evidence\n\n{}- Score: {:.3}, promoted from {:.3}\n",
        code(&finding.tool),
        title(finding.class),
        code(id),
        standing(finding),
        labels.join(", "),
        evidence(finding),
        finding.score,
        finding.threshold,
    );
    _ = write!(text, "\n## {}\n\n{}\n", finding.class.word(), finding.hint);
    text.push_str("\n## Shape of the arguments\n\nOf the earliest failure; values were never kept.\n\n```json\n");
    // Whatever the index says, these are words of shapes and nothing else.
    let shape = if finding.repro.is_null() { finding.repro.clone() } else { shape::sanitized(&finding.repro) };
    text.push_str(&serde_json::to_string_pretty(&shape).map_err(|error| Error::unfinished(error.to_string()))?);
    text.push_str("\n```\n\n## Next\n\n```\n");
    for command in commands(finding) {
        _ = writeln!(text, "{command}");
    }
    text.push_str("```\n");
    Ok(Page { file: format!("{id}.md"), text })
}

/// What happens, as the end of a sentence about the tool.
const fn title(class: Class) -> &'static str {
    match class {
        Class::UnstableErrorCode => "fails with changing error codes",
        Class::FalseSuccess => "reports successes that are none",
        Class::BlockedOptimalPath => "refuses the direct call",
        Class::RecoversOnRetry => "fails until it is called again",
        Class::RetryDidNotRecover => "says that trying again helps, and it does not",
        Class::RecurringError => "keeps failing",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::render::tests::example;
    use super::*;

    #[test]
    fn a_page_says_what_was_seen_and_what_comes_next() {
        let [page] = pages(&[example()], false).unwrap().try_into().unwrap();
        assert_eq!(page.file, "finding-0123456789abcdef.md");
        for part in [
            "# `read_doc` keeps failing\n\nFinding `finding-0123456789abcdef`. 2 of 3 green checks.\n",
            "Labels: `mcpeval`, `server:files`, `class:recurring-error`, `severity:low`, `state:verifying`\n",
            "- Failed: 6 of 24 calls in 2 sessions, last at 2027-01-15T09:30:00.250Z\n- Error codes: `-32001`, `str<32`\n",
            "- Score: 0.417, promoted from 0.320\n",
            "## recurring-error\n\nCalls of this shape keep failing",
            "```json\n{\n  \"limit\": \"int\",\n  \"tags\": {\n    \"array\": 2,\n    \"items\": \"str<8\"\n  }\n}\n```\n",
            "mcpeval verify --finding finding-0123456789abcdef --case ",
        ] {
            assert!(page.text.contains(part), "{part}\n{}", page.text);
        }
    }

    #[test]
    fn closed_ones_are_left_out_unless_asked_for() {
        let closed = Finding { state: State::Closed, consecutive_passes: 3, ..example() };
        let both = [closed, example()];
        assert_eq!((pages(&both, false).unwrap().len(), pages(&both, true).unwrap().len()), (1, 2));
    }

    #[test]
    fn whatever_got_into_the_index_means_nothing_in_a_page() {
        let hostile = "x`\n\n# Heading\n\n<img src=x> [a](http://b) @everyone ```\u{1b}[2J";
        let finding = Finding {
            server: hostile.to_owned(),
            tool: hostile.to_owned(),
            err_codes: vec![hostile.to_owned()],
            last_seen: hostile.to_owned(),
            repro: json!({hostile: hostile, "a": format!("enum:{hostile}")}),
            ..example()
        };
        let text = pages(&[finding], false).unwrap().remove(0).text;
        assert!(!text.contains('\u{1b}') && !text.contains("\n# Heading"), "{text}");
        // Each line that shows it shows it between backticks.
        for line in text.lines().filter(|line| line.contains("<img")) {
            let outside: String = line.split('`').step_by(2).collect();
            assert!(!outside.contains("<img") && line.matches('`').count() % 2 == 0, "{line}");
        }
        assert_eq!(text.lines().filter(|line| line.starts_with("```")).count(), 4, "{text}");
        let stray = Finding { finding_id: "../../etc/x".to_owned(), ..example() };
        assert_eq!(pages(&[stray], false).unwrap_err().exit_code(), 3);
    }
}
