//! `mcpeval explain`, `schema` and `probes`: what the loaded components say of themselves.

use std::ffi::OsStr;
use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;

use super::battery::{Components, block_on, candidates, shipped};
use super::options::ComponentOptions;
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::nearest;
use crate::probes::Loaded;
use crate::report::catalogue::{self, Shown};
use crate::report::{explain, output, schema};

const EXPLAIN: &str = "\
Example:
  mcpeval explain catalog-short-description

Exit codes:
  0  explained
  2  usage: arguments, an unknown reason, a component";
const SCHEMA: &str = "\
Example:
  mcpeval schema report > report.schema.json

Exit codes:
  0  printed
  2  usage: arguments, an unknown document, a component";
const PROBES: &str = "\
Example:
  mcpeval probes show area:catalog

Exit codes:
  0  shown
  2  usage: arguments, an unknown kind, a component";

/// A rendering of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ListFormat {
    /// Lines for people
    Text,
    /// A JSON document
    Json,
}

/// Explain a reason, or list all of them
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN)]
pub(super) struct Explain {
    /// A reason as a report names it [default: list all by component]
    #[arg(add = ArgValueCompleter::new(reasons))]
    reason: Option<String>,
    /// Rendering of the result
    #[arg(long, value_enum, default_value_t = ListFormat::Text, value_name = "F")]
    format: ListFormat,
    #[command(flatten)]
    components: ComponentOptions,
}

impl Explain {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let loaded = all(&self.components, settings)?;
        let all = explain::all(loaded.iter().map(|component| component.manifest.as_ref()));
        let chosen = match &self.reason {
            Some(reason) => vec![explain::find(&all, reason)?],
            None => all.iter().collect(),
        };
        let text = match self.format {
            ListFormat::Json => explain::json(&chosen)?,
            ListFormat::Text if self.reason.is_none() => explain::list(&all),
            ListFormat::Text => explain::text(&chosen),
        };
        output::stdout(text.as_bytes())?;
        Ok(0)
    }
}

/// Print the JSON Schema of a document
#[derive(Debug, Args)]
#[command(after_help = SCHEMA)]
pub(super) struct Schema {
    /// Document that the schema describes
    #[arg(default_value = "manifest", add = ArgValueCompleter::new(documents))]
    document: String,
    /// Name all documents
    #[arg(long, conflicts_with = "document")]
    list: bool,
    #[command(flatten)]
    components: ComponentOptions,
}

impl Schema {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let text = if self.list {
            schema::list()
        } else {
            let document = schema::Document::named(&self.document)?;
            let loaded = all(&self.components, settings)?;
            let manifests: Vec<_> = loaded.iter().map(|component| component.manifest.as_ref()).collect();
            document.text(&manifests)
        };
        output::stdout(text.as_bytes())?;
        Ok(0)
    }
}

/// Show the components that judge
#[derive(Debug, Args)]
#[command(after_help = PROBES)]
pub(super) struct Probes {
    #[command(subcommand)]
    command: ProbesCommand,
}

#[derive(Debug, Subcommand)]
enum ProbesCommand {
    /// List kinds and areas with version, digest, needs and powers
    #[command(after_help = PROBES)]
    List {
        /// Rendering of the result
        #[arg(long, value_enum, default_value_t = ListFormat::Text, value_name = "F")]
        format: ListFormat,
        #[command(flatten)]
        components: ComponentOptions,
    },
    /// Print the manifest of one component and its sha256, ready to pin
    #[command(after_help = PROBES)]
    Show {
        /// A kind, area:<name>, or the path of a component file
        #[arg(value_name = "KIND|FILE.wasm", add = ArgValueCompleter::new(kinds))]
        name: String,
        #[command(flatten)]
        components: ComponentOptions,
    },
}

impl Probes {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let text = match &self.command {
            ProbesCommand::List { format, components } => {
                let loaded = all(components, settings)?;
                let shown: Vec<_> = loaded.iter().map(Shown::from).collect();
                match format {
                    ListFormat::Text => catalogue::text(&shown),
                    ListFormat::Json => catalogue::json(&shown),
                }
            }
            ProbesCommand::Show { name, components } => {
                let found = block_on(async { find(&Components::load(components, settings).await?, name).await })?;
                Shown::from(&found).document()
            }
        };
        output::stdout(text.as_bytes())?;
        Ok(0)
    }
}

/// All components that the options load.
fn all(options: &ComponentOptions, settings: &Settings) -> Result<Vec<Loaded>> {
    block_on(async { Components::load(options, settings).await?.all().await })
}

/// A loaded component of that name, else the file at that path.
async fn find(components: &Components, name: &str) -> Result<Loaded> {
    let all = components.all().await?;
    // A kind may have the name of an area, which then needs its prefix.
    let goes_by = |component: &&Loaded| Shown::from(*component).names().iter().any(|own| own == name);
    let is = |component: &&Loaded| Shown::from(*component).is(name);
    if let Some(found) = all.iter().find(goes_by).or_else(|| all.iter().find(is)) {
        return Ok(found.clone());
    }
    let path = Path::new(name);
    if path.extension().is_some_and(|extension| extension == "wasm") || path.is_file() {
        return components.file(path).await;
    }
    let names: Vec<String> = all.iter().flat_map(|component| Shown::from(component).names()).collect();
    let hint = nearest::hint(name, names.iter().map(String::as_str));
    Err(Error::usage(format!("no component is loaded as \"{name}\"{hint}")))
}

fn reasons(current: &OsStr) -> Vec<CompletionCandidate> {
    let loaded = shipped();
    let all = explain::all(loaded.iter().map(|component| component.manifest.as_ref()));
    let mut all: Vec<String> = all.into_iter().map(|explanation| explanation.reason).collect();
    all.sort_unstable();
    candidates(current, all)
}

fn documents(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, schema::Document::ALL.map(|document| document.name().to_owned()))
}

fn kinds(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, shipped().iter().flat_map(|component| Shown::from(component).names()))
}
