//! `mcpeval generate`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::battery::{Components, block_on};
use super::options::ComponentOptions;
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::findings::generate::{EXPECT, EXPECTING, MAX_EXPECT, generate};
use crate::findings::read;
use crate::manifest::{self, Draft};
use crate::notation::{Document, Notation, read_text};
use crate::report::output;
use crate::report::text::neutralised;

const EXAMPLE: &str = "\
Example:
  mcpeval generate --finding finding-0123456789abcdef --output again.json --confirm-read-only

Exit codes:
  0  written
  2  usage: arguments, no such finding, an existing file, a bad or missing expectation
  3  could not complete: a damaged or incomplete index, I/O; nothing is written";

/// Write a case that shows whether a finding is fixed
///
/// The case calls the finding's tool with arguments of the shape that failed. What mcpeval never kept, such as the text of
/// an argument, has a placeholder, which is told as fill: replace it with a value that the tool takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Generate {
    /// The finding, as mcpeval findings names it
    #[arg(long, value_name = "ID")]
    finding: String,
    /// File to write: YAML if it ends in .yaml or .yml, else JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Attest that the tool only reads, since the case will call it; required
    #[arg(long)]
    confirm_read_only: bool,
    /// What the call should bring, a JSON or YAML object of at most 64 KiB, as expect of the kind instruction-fidelity
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    expect: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

impl Generate {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        if !self.confirm_read_only {
            return Err(Error::usage(
                "the case will call the tool of the finding; attest that it only reads with --confirm-read-only",
            ));
        }
        let finding = read::find(&settings.store()?, &self.finding)?;
        let path = &self.output;
        let shown = path.display();
        let notation = match Notation::of(path, "{") {
            Notation::Toml => {
                return Err(Error::usage(format!(
                    "{shown}: a manifest is written in JSON or YAML; name it .json or .yaml"
                )));
            }
            notation => notation,
        };
        output::check(std::iter::once(path.as_path()))?;
        if !self.force && path.symlink_metadata().is_ok() {
            return Err(Error::usage(format!(
                "{shown} exists; replace it with --force, or name another with --output"
            )));
        }
        let (generated, text) = block_on(async {
            let components = Components::load(&ComponentOptions::default(), settings).await?;
            let expect = match &self.expect {
                Some(expect) => Some(expectation(&components, expect).await?),
                None => None,
            };
            let generated = generate(&finding, expect)?;
            let text = generated.manifest.text(notation)?;
            // What is written is read again first, as whoever runs it will.
            let draft = Draft::parse(&shown.to_string(), text.clone(), notation, Path::new(""))?;
            let kinds = components.of_manifest(&draft).await?;
            draft.check(&kinds.iter().map(|(kind, loaded)| (kind.clone(), loaded.manifest.as_ref())).collect())?;
            Ok((generated, text))
        })?;
        output::replace(path, text.as_bytes())?;
        let mut told = String::new();
        for (place, shape) in &generated.guesses {
            _ = writeln!(told, "fill: {place} ({shape})");
        }
        _ = writeln!(told, "wrote {shown} case={} kind={}", finding.finding_id, generated.kind);
        let told: String = told.lines().map(|line| neutralised(line) + "\n").collect();
        output::stdout(told.as_bytes())?;
        Ok(0)
    }
}

/// The expectation of a file, with the place of every fault in it.
async fn expectation(components: &Components, path: &Path) -> Result<serde_json::Value> {
    let text = read_text(path, MAX_EXPECT)?;
    let notation = Notation::of(path, &text);
    if notation == Notation::Toml {
        return Err(Error::usage(format!("{}: an expectation is written in JSON or YAML", path.display())));
    }
    let document = Document::parse(&path.display().to_string(), text, notation)?;
    let shipped = components.shipped().await?;
    let kind = shipped.iter().find(|loaded| loaded.is_kind() && loaded.manifest.kind == EXPECTING);
    let kind =
        kind.ok_or_else(|| Error::unfinished(format!("the kind {EXPECTING} is missing; install mcpeval again")))?;
    manifest::field_alone(&kind.manifest, EXPECT, &document)
}
