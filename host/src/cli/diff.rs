//! `mcpeval diff`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};

use super::battery::{Components, block_on};
use super::options::ComponentOptions;
use super::settings::Settings;
use super::{console, signals};
use crate::error::{Error, Result};
use crate::report::diff::{self, Diff as Difference, Gates};
use crate::report::document::Report;
use crate::report::html;
use crate::report::output::Places;
use crate::report::read::{self, Vocabulary};

const EXAMPLE: &str = "\
Example:
  mcpeval diff base.json now.json --fail-on-regression --fail-on-breaking --fail-on-removed

Exit codes:
  0  compared; no gate is missed
  1  verdict: a gate is missed
  2  usage: arguments, documents that do not compare as a gate asks
  3  a case or the readiness has no verdict, so that a gate cannot be decided; I/O
  130, 143  ended by SIGINT, SIGTERM";

/// A rendering of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Lines for people
    Text,
    /// The difference as a document
    Json,
    /// Tables for comments and job summaries
    Markdown,
    /// A page for people, without scripts
    Html,
}

/// Compare two reports of one server, and gate on what got worse
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub(super) struct Diff {
    /// The earlier report; - is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    baseline: PathBuf,
    /// The later report; - is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    current: PathBuf,
    /// A case must not fail that passed
    #[arg(long)]
    fail_on_regression: bool,
    /// A case must not fail for another reason, or that passed
    #[arg(long)]
    fail_on_change: bool,
    /// A case of the baseline must not be missing
    #[arg(long)]
    fail_on_removed: bool,
    /// The catalog must not change in a way that breaks callers
    #[arg(long)]
    fail_on_breaking: bool,
    /// The score must not drop by more than this, 0 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100))]
    max_readiness_drop: Option<u8>,
    /// Compare the scores without latency
    #[arg(long, requires = "max_readiness_drop")]
    exclude_latency: bool,
    /// Rendering of the result
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "F")]
    format: Format,
    /// Write the result to this file, replaced at once; - is standard output [default: stdout]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

impl Diff {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        if [&self.baseline, &self.current].iter().all(|path| path.as_path() == Path::new("-")) {
            return Err(Error::usage("only one of the two reports can be standard input"));
        }
        let mut inputs = settings.inputs(&ComponentOptions::default());
        inputs.add_document("the baseline", &self.baseline);
        inputs.add_document("the current report", &self.current);
        signals::listen()?;
        let output = Places::new(&inputs).result(self.output.as_deref())?;
        let loaded =
            block_on(async { Components::load(&ComponentOptions::default(), settings).await?.shipped().await })?;
        let vocabulary = Vocabulary::new(loaded.iter().map(|component| component.manifest.as_ref()));
        let read = |path: &Path| -> Result<Report> {
            let (name, text) = read::source(path)?;
            read::report(&name, &text, &vocabulary)
        };
        let (baseline, current) = (read(&self.baseline)?, read(&self.current)?);
        let judged = diff::compare(&baseline, &current, self.gates())?;
        let styled = output.is_standard_output() && console::stdout_is_styled();
        output.write(self.render(&judged.diff, styled)?.as_bytes())?;
        Ok(judged.exit_code)
    }

    fn gates(&self) -> Gates {
        Gates {
            regression: self.fail_on_regression,
            change: self.fail_on_change,
            removed: self.fail_on_removed,
            breaking: self.fail_on_breaking,
            max_drop: self.max_readiness_drop,
            exclude_latency: self.exclude_latency,
        }
    }

    fn render(&self, diff: &Difference, styled: bool) -> Result<String> {
        match self.format {
            Format::Text => Ok(diff::text::render(diff, styled)),
            Format::Json => diff.to_json(),
            Format::Markdown => Ok(diff::markdown::render(diff)),
            Format::Html => html::pairs::diff(diff),
        }
    }
}
