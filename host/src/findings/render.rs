//! Findings as lines for agents, as a page for people, and as a document.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Class, Finding, in_words};
use crate::error::{Error, Result};
use crate::report::text::neutralised;
use crate::store::lifecycle::State;

/// One line each; `[]` if there are none.
pub fn agent(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "[]\n".to_owned();
    }
    let mut out = String::new();
    for finding in findings {
        let state = match finding.state {
            State::Verifying => format!("verifying({}/3)", finding.consecutive_passes),
            state => state.word().to_owned(),
        };
        let line = format!(
            "{} {}/{} state={state} severity={} class={} probe={} failures={}/{} sessions={} repro={}",
            finding.finding_id,
            finding.server,
            finding.tool,
            finding.severity.word(),
            finding.class.word(),
            finding.probe_id.as_deref().unwrap_or("none"),
            finding.failures,
            finding.calls,
            finding.sessions,
            finding.repro,
        );
        out.push_str(&neutralised(&line));
        out.push('\n');
    }
    out
}

/// A JSON array, best score first.
///
/// # Errors
/// If a number is none, which none is.
pub fn json(findings: &[Finding]) -> Result<String> {
    let text = serde_json::to_string_pretty(findings).map_err(|error| Error::unfinished(error.to_string()))?;
    Ok(text + "\n")
}

/// A table, then each finding with what to do about it and the commands that come next.
pub fn markdown(findings: &[Finding]) -> String {
    let mut out = "# Findings\n\n".to_owned();
    if findings.is_empty() {
        out.push_str("None.\n");
        return out;
    }
    out.push_str("| Finding | Tool | State | Severity | Class | Failed | Sessions | Last seen | Score |\n");
    out.push_str("|---|---|---|---|---|---:|---:|---|---:|\n");
    for finding in findings {
        let columns = [
            code(&finding.finding_id),
            code(&tool(finding)),
            in_words(finding.state, finding.consecutive_passes),
            finding.severity.word().to_owned(),
            finding.class.word().to_owned(),
            format!("{} of {}", finding.failures, finding.calls),
            finding.sessions.to_string(),
            finding.last_seen.chars().take(10).collect(),
            format!("{:.3}", finding.score),
        ];
        out.extend(["| ", &columns.join(" | "), " |\n"]);
    }
    for finding in findings {
        details(&mut out, finding);
    }
    out
}

fn details(out: &mut String, finding: &Finding) {
    let codes: Vec<String> = finding.err_codes.iter().map(|one| code(one)).collect();
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    // Nothing fails that is written into a text.
    _ = write!(
        out,
        "\n## {}: {}\n\n{} **What to do.** {}\n\n- Failed: {} of {} calls in {} session{}, last at {}\n\
         - Error code{}: {}\n- Arguments of the first failure: {}\n- Says that trying again helps: {}\n",
        code(&finding.finding_id),
        code(&tool(finding)),
        standing(finding),
        finding.hint,
        finding.failures,
        finding.calls,
        finding.sessions,
        plural(finding.sessions),
        neutralised(&finding.last_seen),
        plural(codes.len() as u64),
        codes.join(", "),
        if finding.repro == Value::Null { "none".to_owned() } else { code(&finding.repro.to_string()) },
        match finding.retryable {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not always told",
        },
    );
    out.push_str("\nNext:\n\n```\n");
    for command in commands(finding) {
        _ = writeln!(out, "{}", neutralised(&command));
    }
    out.push_str("```\n");
}

fn standing(finding: &Finding) -> String {
    let words = in_words(finding.state, finding.consecutive_passes);
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase()).into_iter();
    format!("{}.", first.chain(letters).collect::<String>())
}

/// The commands that come next for a finding.
pub fn commands(finding: &Finding) -> Vec<String> {
    let (id, file) = (&finding.finding_id, format!("{}.json", finding.finding_id));
    let verify = |case: &str, manifest: &str| {
        format!("mcpeval verify --finding {id} --case {case}{manifest} -- COMMAND OF THE SERVER")
    };
    if let Some(case) = &finding.probe_id {
        // The user knows where the manifest is.
        return vec![verify(case, " --manifest FILE")];
    }
    let expect = if needs_expectation(finding) { " --expect FILE" } else { "" };
    let generate = format!("mcpeval generate --finding {id} --output {file} --confirm-read-only{expect}");
    vec![generate, verify(id, &format!(" --manifest {file}"))]
}

/// Whether a case can be made only by somebody who says what the tool should do.
fn needs_expectation(finding: &Finding) -> bool {
    match finding.class {
        Class::FalseSuccess | Class::BlockedOptimalPath => true,
        Class::UnstableErrorCode => finding.retryable.is_none(),
        Class::RecoversOnRetry | Class::RetryDidNotRecover | Class::RecurringError => false,
    }
}

fn tool(finding: &Finding) -> String {
    format!("{}/{}", finding.server, finding.tool)
}

/// As code, in which nothing else is meant.
fn code(text: &str) -> String {
    format!("`{}`", neutralised(text).replace('`', "'").replace('|', "\\|"))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::super::Severity;
    use super::*;

    pub(in crate::findings) fn example() -> Finding {
        Finding {
            finding_id: "finding-0123456789abcdef".to_owned(),
            state: State::Verifying,
            probe_id: None,
            consecutive_passes: 2,
            server: "files".to_owned(),
            tool: "read_doc".to_owned(),
            err_code: "-32001".to_owned(),
            err_codes: vec!["-32001".to_owned(), "str<32".to_owned()],
            err_template_id: "9f21c07ab3d4e58c".to_owned(),
            failures: 6,
            calls: 24,
            sessions: 2,
            last_seen: "2027-01-15T09:30:00.250Z".to_owned(),
            cost: 4.5,
            blast: 2,
            rate: 0.25,
            confidence: 0.12,
            recency: 0.7,
            score: 0.417_357,
            threshold: 0.32,
            severity: Severity::Low,
            class: Class::RecurringError,
            retryable: Some(true),
            hint: Class::RecurringError.hint().to_owned(),
            repro: json!({"limit": "int", "tags": {"array": 2, "items": "str<8"}}),
        }
    }

    #[test]
    fn an_agent_reads_a_line() {
        assert_eq!(
            agent(&[example()]),
            "finding-0123456789abcdef files/read_doc state=verifying(2/3) severity=low class=recurring-error probe=none \
             failures=6/24 sessions=2 repro={\"limit\":\"int\",\"tags\":{\"array\":2,\"items\":\"str<8\"}}\n"
        );
        assert_eq!(agent(&[]), "[]\n");
        assert_eq!(json(&[]).unwrap(), "[]\n");
    }

    #[test]
    fn a_person_reads_what_to_do_and_which_command_comes_next() {
        let page = markdown(&[example()]);
        for part in [
            "| `finding-0123456789abcdef` | `files/read_doc` | 2 of 3 green checks | low | recurring-error | 6 of 24 | 2 | 2027-01-15 | 0.417 |",
            "2 of 3 green checks. **What to do.** Calls of this shape keep failing",
            "- Error codes: `-32001`, `str<32`",
            "mcpeval generate --finding finding-0123456789abcdef --output finding-0123456789abcdef.json --confirm-read-only\n",
            "mcpeval verify --finding finding-0123456789abcdef --case finding-0123456789abcdef --manifest",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        let checked = Finding { probe_id: Some("case-7".to_owned()), ..example() };
        assert_eq!(commands(&checked).len(), 1);
        let blocked = Finding { class: Class::BlockedOptimalPath, ..example() };
        assert!(commands(&blocked)[0].ends_with("--expect FILE"));
        assert_eq!(markdown(&[]), "# Findings\n\nNone.\n");
    }

    #[test]
    fn whatever_got_in_does_nothing_to_a_terminal_or_a_table() {
        let hostile = Finding { tool: "a|b`\u{1b}[2J\n".to_owned(), ..example() };
        for text in [agent(std::slice::from_ref(&hostile)), markdown(&[hostile])] {
            assert!(!text.contains('\u{1b}'), "{text}");
        }
    }
}
