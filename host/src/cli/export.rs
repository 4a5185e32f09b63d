//! `mcpeval export-issues`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::settings::Settings;
use crate::error::Result;
use crate::findings::export::pages;
use crate::findings::read;
use crate::report::output;
use crate::report::text::neutralised;

const EXAMPLE: &str = "\
Example:
  mcpeval export-issues --dir issues

Exit codes:
  0  written, even if there is nothing to write
  2  usage: arguments, a file that exists; nothing is written
  3  could not complete: a damaged or incomplete index, I/O";

/// Write a page in Markdown for every finding that is not closed
///
/// Each is <finding-id>.md: labels, evidence, what to do, the shape of the arguments, the commands that come next. All of
/// them are written or none.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct ExportIssues {
    /// Folder to write to, made if it is missing
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// Write pages of closed findings too
    #[arg(long)]
    include_closed: bool,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

impl ExportIssues {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let findings = read::list(&settings.store()?)?;
        let pages = pages(&findings, self.include_closed)?;
        let files = pages.iter().map(|page| (page.file.as_str(), page.text.as_bytes()));
        output::replace_all(&self.dir, &files.collect::<Vec<_>>(), self.force)?;
        let count = pages.len();
        let noun = if count == 1 { "issue" } else { "issues" };
        let to =
            if count == 0 { String::new() } else { format!(" to {}", neutralised(&self.dir.display().to_string())) };
        output::stdout(format!("exported {count} {noun}{to}\n").as_bytes())?;
        Ok(0)
    }
}
