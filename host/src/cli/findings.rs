//! `mcpeval index`, `promote` and `findings`: from what was recorded to what should be fixed.

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::console;
use super::settings::Settings;
use crate::error::Result;
use crate::findings::promote::{THRESHOLD, promote};
use crate::findings::{read, render};
use crate::report::output;
use crate::store::index::index;
use crate::store::lifecycle::State;
use crate::store::settings::is_threshold;

const INDEX: &str = "\
Example:
  mcpeval index

Exit codes:
  0  indexed
  2  usage: arguments
  3  could not complete: records that contradict one another, another index or promote at work, I/O;
     the index stays as it was";
const PROMOTE: &str = "\
Example:
  mcpeval index && mcpeval promote

Exit codes:
  0  promoted, whatever was found
  2  usage: arguments, config.json of the home folder
  3  could not complete: no index yet, a damaged one, another index or promote at work, I/O;
     findings stay as they were";
const FINDINGS: &str = "\
Example:
  mcpeval findings --format md --state open

Exit codes:
  0  shown, even if there are none
  2  usage: arguments
  3  could not complete: a damaged or incomplete index, I/O";

/// Read the journals of recorded calls into the index
///
/// Only what was added since the last time is read. If anything has changed that was read before, all of it is read
/// again. Lines that are no records are skipped and counted.
#[derive(Debug, Args)]
#[command(after_help = INDEX)]
pub(super) struct Index {
    /// Read all journals from their beginning
    #[arg(long)]
    rebuild: bool,
}

impl Index {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let counts = index(&settings.store()?, self.rebuild)?;
        let skipped = if counts.skipped > 0 { format!(", skipped {} lines", counts.skipped) } else { String::new() };
        let (calls, failures, annotations) = (counts.calls, counts.failures, counts.annotations);
        let text = format!("indexed {calls} calls, {failures} failures, {annotations} annotations{skipped}\n");
        output::stdout(text.as_bytes())?;
        Ok(0)
    }
}

/// Turn recurring failures of the index into findings
///
/// Failures of one tool with the same error text are one group. A group that failed in two sessions and scores at least
/// the threshold becomes a finding.
#[derive(Debug, Args)]
#[command(after_help = PROMOTE)]
pub(super) struct Promote {
    /// Score that makes a group a finding, at least 0 [default: `promotion_threshold` in config.json of the home folder,
    /// else 0.324250563780762]
    #[arg(long, value_name = "X", value_parser = threshold, allow_negative_numbers = true)]
    threshold: Option<f64>,
}

impl Promote {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let promoted = promote(&settings.store()?, self.threshold, jiff::Timestamp::now())?;
        let text = format!("promoted {} of {} issues\n", promoted.findings, promoted.issues);
        output::stdout(text.as_bytes())?;
        Ok(0)
    }
}

/// A rendering of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A line each, for agents
    Agent,
    /// A page in Markdown, with what to do and the next commands
    Md,
    /// A document; mcpeval schema findings describes it
    Json,
}

/// List the findings of the last promote, and where each stands
#[derive(Debug, Args)]
#[command(after_help = FINDINGS)]
pub(super) struct Findings {
    /// Rendering of the result
    #[arg(long, value_enum, default_value_t = Format::Agent, value_name = "F")]
    format: Format,
    /// Only findings that stand there [default: all]
    #[arg(long, value_enum, value_name = "S")]
    state: Option<ChosenState>,
}

impl Findings {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let mut findings = read::list(&settings.store()?)?;
        if findings.is_empty() && self.format != Format::Json && !settings.quiet {
            console::note("no findings; mcpeval index and then mcpeval promote look for them in what was recorded");
        }
        if let Some(ChosenState(state)) = self.state {
            findings.retain(|finding| finding.state == state);
        }
        let text = match self.format {
            Format::Agent => render::agent(&findings),
            Format::Md => render::markdown(&findings),
            Format::Json => render::json(&findings)?,
        };
        output::stdout(text.as_bytes())?;
        Ok(0)
    }
}

/// A state as an option names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChosenState(State);

impl ValueEnum for ChosenState {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ChosenState; 4] = {
            let [open, claimed, verifying, closed] = State::ALL;
            [ChosenState(open), ChosenState(claimed), ChosenState(verifying), ChosenState(closed)]
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            State::Open => "Not fixed yet",
            State::FixClaimed => "A fix was tried, the last check was red",
            State::Verifying => "One or two green checks in a row",
            State::Closed => "Three green checks in a row",
        };
        Some(PossibleValue::new(self.0.word()).help(help))
    }
}

fn threshold(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if is_threshold(value) => Ok(value),
        _ => Err(format!("must be a number of at least 0, such as {THRESHOLD}")),
    }
}
