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
use crate::probes::Loaded;
use crate::report::catalogue::{self, Shown};
use crate::report::{describe, explain, output, schema};
use crate::{nearest, shown};

const EXPLAIN: &str = "\
Examples:
  mcpeval explain catalog-short-description
  mcpeval explain catalog
  mcpeval explain latency-budget

Exit codes:
  0  explained
  2  usage: arguments, an unknown reason, area or kind, a component";
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

/// Explain a reason, an area or a kind, or list all reasons
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN)]
pub(super) struct Explain {
    /// A reason as a report names it, an area or a kind [default: list all reasons by component]
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
        let components: Vec<_> = loaded.iter().map(Shown::from).collect();
        let text = match &self.reason {
            None if self.format == ListFormat::Text => explain::list(&all),
            None => explain::json(&all.iter().collect::<Vec<_>>())?,
            Some(name) => match (explain::find(&all, name), describe::find(&components, name), self.format) {
                (Some(reason), _, ListFormat::Text) => explain::text(&[reason]),
                (Some(reason), _, ListFormat::Json) => explain::json(&[reason])?,
                (None, Some(component), ListFormat::Text) => describe::text(component, name),
                (None, Some(component), ListFormat::Json) => component.document(),
                (None, None, _) => return Err(explain::unknown(&all, &describe::names(&components), name)),
            },
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
    let hint = nearest::choices(name, names.iter().map(String::as_str));
    Err(Error::usage(format!(
        "no component is loaded as \"{}\"{hint}; mcpeval probes list names all",
        shown::word(name)
    )))
}

fn reasons(current: &OsStr) -> Vec<CompletionCandidate> {
    let loaded = shipped();
    let all = explain::all(loaded.iter().map(|component| component.manifest.as_ref()));
    let mut all: Vec<String> = all.into_iter().map(|explanation| explanation.reason).collect();
    all.extend(describe::names(&loaded.iter().map(Shown::from).collect::<Vec<_>>()));
    all.sort_unstable();
    candidates(current, all)
}

fn documents(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, schema::Document::ALL.map(|document| document.name().to_owned()))
}

fn kinds(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, shipped().iter().flat_map(|component| Shown::from(component).names()))
}
