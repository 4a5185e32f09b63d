//! `mcpeval init`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueHint};
use serde_json::json;

use super::battery::Components;
use super::components::ListFormat;
use super::options::{ComponentOptions, RunLogOptions, TargetOptions, label};
use super::settings::Settings;
use super::visit::Visit;
use super::{advice, console};
use crate::arguments::Arguments;
use crate::error::{Error, Result};
use crate::manifest::document::DEFAULT_FILES;
use crate::manifest::scaffold::{self, Order, Scaffold};
use crate::notation::Notation;
use crate::report::canonical;
use crate::report::document::Label;
use crate::report::output::{self, Destination, Places};
use crate::report::text::neutralised;

const EXAMPLE: &str = "\
Example:
  mcpeval init --confirm-read-only --output shop.manifest.yaml -- node dist/index.js

Exit codes:
  0  written; with --dry-run, decided
  2  usage: arguments, an existing file, arguments file, a tool that is not listed
  3  could not complete: unreachable target, failed handshake, exhausted budget, I/O; nothing is written
  130, 143  ended by SIGINT, SIGTERM";

/// Write a first manifest: the cases that a server passes today
///
/// Each tool that says it only reads is called once. What it answers with success gets cases, with the very arguments of
/// that call.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLE,
    override_usage = "mcpeval init [OPTIONS] <--target <NAME> | --url <URL> | -- CMD [ARGS]...>",
    group = ArgGroup::new("scaffolded").required(true).args(TargetOptions::CHOICE)
)]
pub(super) struct Init {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    scaffold: ScaffoldOptions,
    #[command(flatten)]
    components: ComponentOptions,
    #[command(flatten)]
    run_log: RunLogOptions,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Manifest")]
struct ScaffoldOptions {
    /// File to write: YAML if it ends in .yaml or .yml, else JSON; - is standard output, and the decisions go to stderr
    /// [default: the target's manifest, else mcp-eval.manifest.json]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Attest that tools without annotations are read-only, so that they are called
    #[arg(long)]
    confirm_read_only: bool,
    /// Consider only this tool; it must be listed; repeatable
    #[arg(long, value_name = "NAME", value_parser = label)]
    tool: Vec<Label>,
    /// Arguments per tool, a JSON or YAML object of at most 1 MiB [default: the target's, else built from schemas]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    arguments: Option<PathBuf>,
    /// Say what would be called, call nothing and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Rendering of the decisions
    #[arg(long, value_enum, default_value_t = ListFormat::Text, value_name = "F")]
    format: ListFormat,
}

impl ScaffoldOptions {
    /// How the file is written.
    fn notation(path: &Path) -> Result<Notation> {
        match Notation::of(path, "{") {
            Notation::Toml => {
                let path = path.display();
                Err(Error::usage(format!("{path}: a manifest is written in JSON or YAML; name it .json or .yaml")))
            }
            notation => Ok(notation),
        }
    }

    /// Where it goes, checked before anything is called for its sake; nowhere in a dry run.
    fn destination(&self, path: &Path, places: &mut Places<'_>) -> Result<Option<Destination>> {
        if self.dry_run {
            return Ok(None);
        }
        let destination = places.result(Some(path))?;
        if !self.force && destination.file().is_some() && path.symlink_metadata().is_ok() {
            let path = path.display();
            return Err(Error::usage(format!("{path} exists; replace it with --force, or name another with --output")));
        }
        Ok(Some(destination))
    }
}

impl Init {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let options = &self.scaffold;
        let chosen = self.target.resolve(settings)?;
        let named = chosen.named;
        let default = named.and_then(|named| named.manifest.as_deref()).unwrap_or(Path::new(DEFAULT_FILES[0]));
        let path = options.output.clone().unwrap_or_else(|| default.to_owned());
        let notation = ScaffoldOptions::notation(&path)?;
        let given = options.arguments.as_deref().or_else(|| named.and_then(|named| named.arguments.as_deref()));
        let mut inputs = settings.inputs(&self.components);
        inputs.add("the arguments file", given);
        let mut places = Places::new(&inputs);
        let destination = options.destination(&path, &mut places)?;
        let run_log = self.run_log.destination(settings, &mut places)?;
        let arguments = given.map_or_else(|| Ok(Arguments::default()), Arguments::read)?;
        let order = Order {
            attested_read_only: options.confirm_read_only || named.is_some_and(|named| named.confirm_read_only),
            tools: options.tool.iter().cloned().collect(),
            skip_tools: named.map(|named| named.skip_tools.iter().cloned().collect()).unwrap_or_default(),
            arguments: arguments.by_tool,
            dry_run: options.dry_run,
        };
        let visit = Visit { settings, target: chosen.target, startup_timeout: chosen.startup_timeout, run_log };
        let work = async |site: &_, sink| {
            if !(self.components.component.is_empty() && self.components.grant.is_empty()) {
                // No case of theirs is written; but what cannot be loaded is told now.
                Components::load(&self.components, settings).await?.check_grants(std::iter::empty())?;
            }
            scaffold::scaffold(site, order, sink).await
        };
        let found = visit.run(work, |found| &found.warnings)?;
        match found.unnamed {
            0 => {}
            1 => console::warning("1 entry has no name that a case could give"),
            count => console::warning(&format!("{count} entries have no name that a case could give")),
        }
        if let (Some(manifest), Some(destination)) = (&found.manifest, &destination) {
            destination.write(manifest.text(notation)?.as_bytes())?;
        }
        let text = match options.format {
            ListFormat::Text => lines(&found, &path),
            ListFormat::Json => document(&found),
        };
        let is_piped = destination.is_some_and(|destination| destination.is_standard_output());
        if is_piped {
            // There the manifest is the result, and nothing may follow it.
            text.lines().filter(|_| !settings.quiet).for_each(console::note);
        } else {
            output::stdout(text.as_bytes())?;
        }
        if !settings.quiet {
            // Where it is kept is known to whoever reads it.
            let file = if is_piped { Path::new("FILE") } else { &path };
            for line in advice::lines(&found, file, default, &self.target.spelled()) {
                console::note(&line);
            }
        }
        Ok(0)
    }
}

/// One line a tool, then what was written.
fn lines(found: &Scaffold, path: &Path) -> String {
    let decisions = found.decisions.iter().map(|(tool, decision)| format!("{tool} {}\n", decision.word()));
    let path = neutralised(&path.display().to_string());
    let end = match &found.manifest {
        Some(manifest) => format!("wrote {path} tools={} cases={}\n", found.verified, manifest.len()),
        None => "dry run: nothing called, nothing written\n".to_owned(),
    };
    decisions.chain([end]).collect()
}

fn document(found: &Scaffold) -> String {
    let decisions = found.decisions.iter().map(|(tool, decision)| json!({"tool": tool, "decision": decision.word()}));
    canonical::document(&json!({
        "decisions": decisions.collect::<Vec<_>>(),
        "written": found.manifest.is_some(),
        "tools": found.verified,
        "cases": found.manifest.as_ref().map_or(0, scaffold::Manifest::len),
    }))
}
