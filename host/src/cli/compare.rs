//! `mcpeval compare`.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use futures_util::future::try_join_all;

use super::battery::Components;
use super::options::{
    BatteryOptions, ComponentOptions, RunLogOptions, Terms, label, server_command, startup_timeout, targets,
};
use super::probe::{CaseOptions, Selection, add_manifest};
use super::settings::Settings;
use super::{console, evaluation, progress, signals};
use crate::config;
use crate::error::{Error, Result};
use crate::manifest::Draft;
use crate::report::assemble::{self, Floors};
use crate::report::compare::{Comparison, Entry, markdown, text};
use crate::report::document::Label;
use crate::report::html;
use crate::report::output::Places;
use crate::runner::{self, Evaluation, Plan, Progress, Target};
use crate::wire::launch::Launch;

/// The label of the target that stands after `--`.
const COMMAND_LABEL: &str = "stdio";
/// The server's label, which all reports share.
const SERVER: &str = "probed";

const EXAMPLE: &str = "\
Example:
  mcpeval compare --endpoint http=http://127.0.0.1:3000/mcp -- node dist/index.js

Exit codes:
  0  compared; comparing does not gate
  2  usage: arguments, manifest, component, a tool that is not listed, refused access
  3  a target has no verdict: unreachable, errored case, exhausted budget, component fault; or I/O
  130, 143  ended by SIGINT, SIGTERM";

/// Run the same checks on several targets at the same time
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLE,
    override_usage = "mcpeval compare [OPTIONS] [--endpoint <LABEL=URL>]... [--target <NAME>]... [-- CMD [ARGS]...]"
)]
pub(super) struct Compare {
    #[command(flatten)]
    endpoints: Endpoints,
    #[command(flatten)]
    reach: ReachOptions,
    #[command(flatten)]
    cases: CaseOptions,
    #[command(flatten)]
    battery: BatteryOptions,
    #[command(flatten)]
    components: ComponentOptions,
    #[command(flatten)]
    run_log: RunLogOptions,
    /// Rendering of the result
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "F", help_heading = "Report")]
    format: Format,
    /// Write the result to this file, replaced at once; - is standard output [default: stdout]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Report")]
    output: Option<PathBuf>,
}

/// What holds for every target.
#[derive(Debug, Args)]
#[command(next_help_heading = "Targets (two or more)")]
struct ReachOptions {
    /// Label of the server in all reports
    #[arg(long, value_name = "LABEL", default_value = SERVER, value_parser = label)]
    server: Label,
    /// Permit remote https:// URLs; remote plain http:// is always refused
    #[arg(long)]
    allow_remote_http: bool,
    /// Wait for the handshake, 1 to 300 seconds [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = startup_timeout())]
    startup_timeout: Option<u32>,
    /// Command of a stdio server and its arguments; its label is stdio
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// A rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines for people
    Text,
    /// A table for comments and job summaries
    Markdown,
    /// An array of endpoint and report
    Json,
    /// A page for people, without scripts
    Html,
}

/// Targets in the order in which the command line names them, which no two separate options would tell.
#[derive(Debug, Default)]
struct Endpoints(Vec<Named>);

#[derive(Debug, Clone)]
enum Named {
    Endpoint(Label, String),
    Target(String),
}

impl FromArgMatches for Endpoints {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut endpoints = Self::default();
        endpoints.update_from_arg_matches(matches)?;
        Ok(endpoints)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let places = |id: &str| matches.indices_of(id).into_iter().flatten();
        let endpoints = matches.get_many::<(Label, String)>("endpoint").into_iter().flatten();
        let targets = matches.get_many::<String>("target").into_iter().flatten();
        let mut named: Vec<(usize, Named)> = places("endpoint")
            .zip(endpoints.map(|(label, url)| Named::Endpoint(label.clone(), url.clone())))
            .chain(places("target").zip(targets.map(|name| Named::Target(name.clone()))))
            .collect();
        named.sort_by_key(|(place, _)| *place);
        self.0 = named.into_iter().map(|(_, named)| named).collect();
        Ok(())
    }
}

impl Args for Endpoints {
    fn augment_args(command: Command) -> Command {
        let several = |id: &'static str, value: &'static str, parser: ValueParser| {
            let heading = "Targets (two or more)";
            Arg::new(id).long(id).value_name(value).action(ArgAction::Append).value_parser(parser).help_heading(heading)
        };
        command
            .arg(
                several("endpoint", "LABEL=URL", ValueParser::new(endpoint))
                    .help("Streamable HTTP endpoint and what to call it; repeatable"),
            )
            .arg(
                several("target", "NAME", ValueParser::string())
                    .help("Target of this name in mcpeval.toml; repeatable")
                    .add(ArgValueCompleter::new(targets)),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn endpoint(text: &str) -> Result<(Label, String), String> {
    let (name, url) = text.split_once('=').filter(|(_, url)| !url.is_empty()).ok_or("must be LABEL=URL")?;
    Ok((label(name)?, url.to_owned()))
}

/// One target, ready to be run.
struct Column<'a> {
    label: Label,
    target: Target,
    named: Option<&'a config::Target>,
    manifest: Option<(PathBuf, Draft)>,
}

impl Compare {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let columns = self.columns(settings)?;
        let standard = self.battery.standard(settings)?;
        let mut inputs = settings.inputs(&self.components);
        for column in &columns {
            self.battery.add_to(&mut inputs, settings, column.named, &standard);
            if let Some((file, draft)) = &column.manifest {
                add_manifest(&mut inputs, file, draft);
            }
        }
        let mut places = Places::new(&inputs);
        let output = places.result(self.output.as_deref())?;
        let run_log = self.run_log.destination(settings, &mut places)?;
        let labels: Vec<Label> = columns.iter().map(|column| column.label.clone()).collect();

        let line = Arc::new(progress::Line::new(settings.quiet));
        let evaluations = signals::until_interrupted(evaluation::runtime()?, async {
            let components = Components::load(&self.components, settings).await?;
            let mut plans = Vec::with_capacity(columns.len());
            for column in columns {
                plans.push(self.plan(settings, &components, column).await?);
            }
            let work = plans.into_iter().zip(&labels).map(|((plan, digest), label)| {
                let line = Arc::clone(&line);
                let name = label.to_string();
                let sink = Arc::new(move |progress: &Progress| {
                    line.update(&Progress { step: format!("{name}: {}", progress.step), ..progress.clone() });
                });
                let engine = components.engine();
                async move {
                    let evaluation = runner::evaluate(plan, engine, sink).await;
                    let evaluation = evaluation.map_err(|error| error.about(&format!("target {label}")))?;
                    Ok::<_, Error>((evaluation, digest))
                }
            });
            Box::pin(line.during(try_join_all(work))).await
        })?;

        let mut private = Vec::new();
        let mut entries = Vec::with_capacity(evaluations.len());
        for ((evaluation, digest), endpoint) in evaluations.iter().zip(labels) {
            let assembled = assemble::report(evaluation, self.reach.server.clone(), &Floors::default(), *digest);
            let lines = evaluation.log.iter().chain(&assembled.breaches);
            private.extend(lines.map(|line| format!("{endpoint}: {line}")));
            tell(&endpoint, evaluation, &assembled);
            if endpoint.as_str() == COMMAND_LABEL {
                evaluation::tip(evaluation);
            }
            entries.push(Entry { endpoint, report: assembled.report });
        }
        evaluation::keep_private(settings, run_log.as_ref(), &private)?;
        let comparison = Comparison { entries };
        let styled = output.is_standard_output() && console::stdout_is_styled();
        output.write(self.render(&comparison, styled)?.as_bytes())?;
        Ok(comparison.exit_code())
    }

    fn render(&self, comparison: &Comparison, styled: bool) -> Result<String> {
        match self.format {
            Format::Text => Ok(text::render(comparison, styled)),
            Format::Json => comparison.to_json(),
            Format::Markdown => Ok(markdown::render(comparison)),
            Format::Html => html::pairs::compare(comparison),
        }
    }

    /// The targets in the order of the command line, the command last.
    fn columns<'a>(&self, settings: &'a Settings) -> Result<Vec<Column<'a>>> {
        let mut given: Vec<(Label, Option<&config::Target>, Option<&str>)> = Vec::new();
        for named in &self.endpoints.0 {
            given.push(match named {
                Named::Endpoint(label, url) => (label.clone(), None, Some(url.as_str())),
                Named::Target(name) => {
                    let target = settings.config.target(name)?;
                    let label = Label::new(name).ok_or_else(|| Error::usage("--target is no label"))?;
                    (label, Some(target), None)
                }
            });
        }
        let is_http = |(_, named, url): &(Label, Option<&config::Target>, Option<&str>)| {
            url.is_some() || named.is_some_and(|named| matches!(named.reach, config::Reach::Url { .. }))
        };
        let alone = given.iter().filter(|entry| is_http(entry)).count() == 1;
        let terms = Terms { settings, allow_remote_http: self.reach.allow_remote_http, alone };
        let mut targets = Vec::new();
        for (label, named, url) in given {
            let target = match (named, url) {
                (Some(named), _) => terms.named(&named.reach),
                (None, url) => terms.http(url.unwrap_or_default(), &[], &BTreeMap::new()),
            };
            targets.push((label, target.map_err(|error| error.about("--endpoint"))?, named));
        }
        if let Some((program, args)) = server_command(&self.reach.command)? {
            let launch = Launch {
                program: program.clone(),
                args: args.to_vec(),
                env: Vec::new(),
                cwd: None,
                withheld: Vec::new(),
            };
            let label = Label::new(COMMAND_LABEL).ok_or_else(|| Error::usage("the command has no label"))?;
            targets.push((label, terms.command(launch), None));
        }
        if targets.len() < 2 {
            return Err(Error::usage(
                "two or more targets are compared: --endpoint LABEL=URL, --target NAME (both repeatable), -- CMD",
            ));
        }
        let mut labels = HashSet::new();
        if let Some((label, ..)) = targets.iter().find(|(label, ..)| !labels.insert(label.clone())) {
            return Err(Error::usage(format!("two targets are called {label}; give each a label of its own")));
        }
        targets
            .into_iter()
            .map(|(label, target, named)| {
                let file = self.cases.file(named.and_then(|named| named.manifest.as_deref()));
                let manifest = file.map(|file| Draft::read(&file).map(|draft| (file, draft))).transpose()?;
                if manifest.is_none() && self.cases.is_gate_only() {
                    return Err(Error::usage("--gate-only needs a manifest; name one with --manifest"));
                }
                Ok(Column { label, target, named, manifest })
            })
            .collect()
    }

    async fn plan(
        &self,
        settings: &Settings,
        components: &Components,
        column: Column<'_>,
    ) -> Result<(Plan, Option<crate::probes::Digest>)> {
        let arguments = self.battery.arguments(column.named)?;
        let (digest, cases) = match &column.manifest {
            Some((_, draft)) => {
                let (manifest, cases) = self.cases.plan(draft, components, &Selection::default()).await?;
                (Some(manifest.sha256), Some(cases))
            }
            None => (None, None),
        };
        let kinds: Vec<&str> = column.manifest.iter().flat_map(|(_, draft)| draft.kinds()).collect();
        let battery = if self.cases.is_gate_only() {
            components.check_grants(kinds.into_iter())?;
            None
        } else {
            Some(components.battery(self.battery.standard(settings)?, &kinds).await?)
        };
        let plan = Plan {
            target: column.target,
            startup_timeout: settings.startup_timeout(self.reach.startup_timeout, column.named),
            battery,
            cases,
            profile: self.battery.profile(settings, column.named, &arguments),
            arguments: arguments.by_tool,
        };
        Ok((plan, digest))
    }
}

/// What a person should know of one target beside the result.
fn tell(endpoint: &Label, evaluation: &Evaluation, assembled: &assemble::Assembled) {
    for breach in &assembled.breaches {
        console::warning(&format!("{endpoint}: {breach}"));
    }
    if let Some(fault) = &evaluation.fault {
        console::error(&format!("{endpoint}: {fault}"));
        console::server_stderr(&evaluation.stderr);
    }
}
