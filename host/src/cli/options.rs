//! Options that several commands share, and what they mean in the program's own types.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use super::{battery, console};
use crate::arguments::Arguments;
use crate::demo::Fault;
use crate::error::{Error, Result};
use crate::nearest;
use crate::probes::Power;
use crate::report::assemble::Floors;
use crate::report::corpus::Corpus;
use crate::report::document::Label;
use crate::report::output::Outputs;
use crate::report::render::{self, Locations};
use crate::runner::{Profile, Target};
use crate::standard::Standard;
use crate::wire::http::Endpoint;
use crate::wire::launch::Launch;

/// The `Authorization` value of the one HTTP target.
const AUTHORIZATION: &str = "MCPEVAL_HTTP_AUTHORIZATION";
/// The home folder.
const HOME: &str = "MCPEVAL_HOME";
/// Wait for every answer but the handshake's, in milliseconds.
const CALL_TIMEOUT_MS: u32 = 15_000;
/// Valid calls per tool.
const REPEATS: u32 = 3;

/// The server to evaluate.
#[derive(Debug, Args)]
#[command(next_help_heading = "Target (exactly one of --url, --demo, -- CMD)")]
pub(super) struct TargetOptions {
    /// Label of the server in reports, of A-Z a-z 0-9 _ . : - [default: probed, with --demo demo]
    #[arg(long, value_name = "LABEL", value_parser = label)]
    server: Option<Label>,
    /// Streamable HTTP endpoint; loopback unless --allow-remote-http
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    url: Option<String>,
    /// Permit a remote https:// URL; remote plain http:// is always refused
    #[arg(long, conflicts_with_all = ["demo", "command"])]
    allow_remote_http: bool,
    /// HTTP header NAME with the value of the environment variable VAR; repeatable
    #[arg(long, value_name = "NAME=VAR", conflicts_with_all = ["demo", "command"])]
    header_env: Vec<String>,
    /// The demo server
    #[arg(long)]
    demo: bool,
    /// Give the demo server this fault; `mcpeval demo --list-broken` names them
    #[arg(long, value_name = "NAME", conflicts_with_all = ["url", "command"], add = ArgValueCompleter::new(faults))]
    broken: Option<String>,
    /// Environment variable of the child process; repeatable
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["url", "demo"])]
    env: Vec<OsString>,
    /// Working directory of the child process [default: the current one]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "demo"], value_hint = ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// Wait for the handshake, 1 to 300 seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=300))]
    startup_timeout: u16,
    /// Command of a stdio server and its arguments
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

impl TargetOptions {
    /// The names of the arguments of which exactly one must be given.
    pub(super) const CHOICE: [&'static str; 3] = ["url", "demo", "command"];

    /// The server's label.
    pub(super) fn label(&self) -> Result<Label> {
        let default = if self.demo { "demo" } else { "probed" };
        self.server.clone().or_else(|| Label::new(default)).ok_or_else(|| Error::usage("--server is no label"))
    }

    pub(super) fn startup_timeout(&self) -> Duration {
        Duration::from_secs(self.startup_timeout.into())
    }

    /// How to reach the server.
    pub(super) fn target(&self) -> Result<Target> {
        if let Some(url) = &self.url {
            let endpoint = Endpoint::new(url, self.headers()?, self.allow_remote_http);
            return endpoint.map(Target::Http).map_err(|error| Error::usage(error.to_string()));
        }
        let launch = match self.command.split_first() {
            Some((program, args)) => Launch {
                program: program.clone(),
                args: args.to_vec(),
                env: self.environment()?,
                cwd: self.cwd.clone(),
                withheld: Vec::new(),
            },
            None => self.demo()?,
        };
        Ok(Target::Stdio(launch))
    }

    fn demo(&self) -> Result<Launch> {
        let program = std::env::current_exe()
            .map_err(|error| Error::unfinished(format!("the path of this program is unknown: {error}")))?;
        let mut args = vec![OsString::from("demo")];
        if let Some(name) = &self.broken {
            args.extend([OsString::from("--broken"), fault(name)?.name().into()]);
        }
        Ok(Launch { program: program.into(), args, env: Vec::new(), cwd: None, withheld: Vec::new() })
    }

    /// Values of the environment are never shown, not even when they are wrong.
    fn environment(&self) -> Result<Vec<(OsString, OsString)>> {
        self.env
            .iter()
            .map(|pair| {
                let bytes = pair.as_encoded_bytes();
                let end = bytes.iter().position(|byte| *byte == b'=').filter(|end| *end > 0);
                let split = end.and_then(|end| split_os(pair, end));
                split.ok_or_else(|| Error::usage("--env wants KEY=VALUE, with a name before the sign"))
            })
            .collect()
    }

    fn headers(&self) -> Result<Vec<(String, String)>> {
        let mut headers: Vec<(String, String)> = Vec::new();
        for pair in &self.header_env {
            let (name, variable) = pair
                .split_once('=')
                .filter(|(name, variable)| is_token(name) && !variable.is_empty())
                .ok_or_else(|| Error::usage("--header-env wants NAME=VAR, the name of a header and of a variable"))?;
            let value = std::env::var(variable).map_err(|_| {
                Error::usage(format!("--header-env {name}: the variable {variable} is not set to text"))
            })?;
            if headers.iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
                return Err(Error::usage(format!("--header-env {name} is given twice")));
            }
            headers.push((name.to_owned(), value));
        }
        let authorized = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if let (false, Some(value)) = (authorized, std::env::var_os(AUTHORIZATION)) {
            let value = value.into_string().map_err(|_| Error::usage(format!("{AUTHORIZATION} is not set to text")))?;
            headers.push(("Authorization".to_owned(), value));
        }
        Ok(headers)
    }
}

/// What the battery does and asks for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Battery")]
pub(super) struct BatteryOptions {
    /// Attest that tools without annotations are read-only, so that they are called
    #[arg(long)]
    confirm_read_only: bool,
    /// Never call this tool; it must be listed; repeatable
    #[arg(long, value_name = "NAME", value_parser = label)]
    skip_tool: Vec<Label>,
    /// Arguments per tool, a JSON or YAML object of at most 1 MiB
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    arguments: Option<PathBuf>,
    /// Another standard, TOML, JSON or YAML [default: mcpeval-standard/3]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    standard: Option<PathBuf>,
    /// Sessions that may share the calls, 1 to 16; 1 is off
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    lanes: u32,
    /// Least score, 0 to 100; below it the exit code is 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100))]
    min_readiness: Option<u8>,
    /// Least score of an area, 0 to 100; repeatable, once per area
    #[arg(long, value_name = "AREA=N", value_parser = area_floor, add = ArgValueCompleter::new(areas))]
    min_area: Vec<(String, u8)>,
    /// Latency does not count towards the floors
    #[arg(long)]
    exclude_latency: bool,
    /// Scores of other servers, to be placed among [default: corpus.json of the home folder, if present]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    corpus: Option<PathBuf>,
}

impl BatteryOptions {
    pub(super) fn standard(&self) -> Result<Standard> {
        self.standard.as_deref().map_or_else(Standard::shipped, Standard::read)
    }

    pub(super) fn arguments(&self) -> Result<Arguments> {
        self.arguments.as_deref().map_or_else(|| Ok(Arguments::default()), Arguments::read)
    }

    pub(super) fn floors(&self, standard: &Standard) -> Result<Floors> {
        let mut min_areas = BTreeMap::new();
        for (area, floor) in &self.min_area {
            let names = || standard.areas.iter().map(|area| area.name.as_str());
            if !names().any(|name| name == area) {
                let hint = nearest::hint(area, names());
                return Err(Error::usage(format!("--min-area: {} has no area \"{area}\"{hint}", standard.label)));
            }
            if min_areas.insert(area.clone(), *floor).is_some() {
                return Err(Error::usage(format!("--min-area {area} is given twice")));
            }
        }
        let floors = Floors { min_score: self.min_readiness, min_areas, exclude_latency: self.exclude_latency };
        if floors.exclude_latency && floors.is_empty() {
            return Err(Error::usage("--exclude-latency needs a floor, --min-readiness or --min-area"));
        }
        Ok(floors)
    }

    pub(super) fn profile(&self, arguments: &Arguments) -> Profile {
        let mut skip_tools: Vec<String> = self.skip_tool.iter().map(ToString::to_string).collect();
        skip_tools.sort();
        skip_tools.dedup();
        Profile {
            attested_read_only: self.confirm_read_only,
            skip_tools,
            call_timeout_ms: CALL_TIMEOUT_MS,
            repeats: REPEATS,
            lanes: self.lanes,
            arguments_sha256: arguments.digest,
        }
    }

    /// The corpus that is named, else the one of the home folder if it is there.
    pub(super) fn corpus(&self) -> Result<Option<Corpus>> {
        let default = || home().map(|home| home.join("corpus.json")).filter(|path| path.is_file());
        self.corpus.clone().or_else(default).map(|path| Corpus::read(&path)).transpose()
    }
}

/// What is written and where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub(super) struct ReportOptions {
    /// Rendering of the result
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "F")]
    format: Format,
    /// Write the result to this file, replaced at once [default: stdout]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// One more rendering, F as for --format; repeatable
    #[arg(long, value_name = "F=FILE", value_parser = report)]
    report: Vec<(Format, PathBuf)>,
    /// No hints
    #[arg(long)]
    brief: bool,
    /// Every tool, score and count of every loss
    #[arg(long)]
    full: bool,
    /// Add measured times to text, junit and html; they are not share-safe
    #[arg(long)]
    timings: bool,
    /// Price of a million tokens, to show what the catalog costs
    #[arg(long, value_name = "USD", value_parser = price)]
    price_per_mtok: Option<f64>,
    /// File that sarif places results in where there is no manifest
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    anchor: Option<PathBuf>,
}

/// A rendering, as an option names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Lines for people
    Text,
    /// The report document
    Json,
    /// For comments and job summaries
    Markdown,
    /// For code scanning, SARIF 2.1.0
    Sarif,
    /// For test results of CI
    Junit,
    /// A page for people, without scripts
    Html,
}

impl From<Format> for render::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Json => Self::Json,
            Format::Markdown => Self::Markdown,
            Format::Sarif => Self::Sarif,
            Format::Junit => Self::Junit,
            Format::Html => Self::Html,
        }
    }
}

impl ReportOptions {
    /// Whether measured times are wanted.
    pub(super) fn timings(&self) -> bool {
        self.timings
    }

    /// Where everything goes; checked, so that no evaluation is spent in vain.
    pub(super) fn outputs(&self, run_log: Option<&Path>) -> Result<Outputs> {
        let outputs = Outputs {
            format: self.format.into(),
            output: self.output.clone(),
            reports: self.report.iter().map(|(format, path)| ((*format).into(), path.clone())).collect(),
            options: render::Options {
                brief: self.brief,
                full: self.full,
                price_per_mtok: self.price_per_mtok,
                styled: self.output.is_none() && console::stdout_is_styled(),
                locations: self.anchor.as_deref().map(|anchor| Locations::new(anchor, BTreeMap::new())),
                ..render::Options::default()
            },
        };
        outputs.check(run_log)?;
        Ok(outputs)
    }
}

/// Components that are no part of the battery.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Components")]
pub(super) struct ComponentOptions {
    /// Load this component as KIND; repeatable
    #[arg(long, value_name = "KIND=PATH", value_parser = component)]
    pub(super) component: Vec<(String, PathBuf)>,
    /// Grant a component a power below the protocol, pipe or http; of an area's component KIND is area:<name>; repeatable
    #[arg(long, value_name = "KIND=POWER", value_parser = grant)]
    pub(super) grant: Vec<(String, Power)>,
}

/// The private log of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Components")]
pub(super) struct RunLogOptions {
    /// Keep free text of components and diagnostics in this file, for its owner alone; it is not share-safe
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    run_log: Option<PathBuf>,
}

impl RunLogOptions {
    /// The file, which must not lie in the home folder.
    pub(super) fn path(&self) -> Result<Option<&Path>> {
        let Some(path) = self.run_log.as_deref() else { return Ok(None) };
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let folder =
            folder.canonicalize().map_err(|error| Error::unfinished(format!("{}: {error}", path.display())))?;
        let home = home().and_then(|home| home.canonicalize().ok());
        if home.is_some_and(|home| folder.starts_with(home)) {
            return Err(Error::usage(format!(
                "{}: a run log must not lie in mcpeval's own folder ($MCPEVAL_HOME, ~/.mcp-eval)",
                path.display()
            )));
        }
        Ok(Some(path))
    }
}

/// The home folder, which need not exist.
fn home() -> Option<PathBuf> {
    std::env::var_os(HOME)
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".mcp-eval")))
}

/// The demo's fault of that name.
pub(super) fn fault(name: &str) -> Result<Fault> {
    Fault::from_name(name).ok_or_else(|| {
        let hint = nearest::hint(name, Fault::ALL.iter().map(|fault| fault.name()));
        Error::usage(format!("--broken: the demo has no fault \"{name}\"{hint}"))
    })
}

pub(super) fn faults(current: &std::ffi::OsStr) -> Vec<clap_complete::CompletionCandidate> {
    battery::candidates(current, Fault::ALL.iter().map(|fault| fault.name().to_owned()))
}

fn areas(current: &std::ffi::OsStr) -> Vec<clap_complete::CompletionCandidate> {
    let areas = Standard::shipped().map(|standard| standard.areas).unwrap_or_default();
    battery::candidates(current, areas.into_iter().map(|area| format!("{}=", area.name)))
}

fn label(text: &str) -> Result<Label, String> {
    Label::new(text).ok_or_else(|| "must be 1 to 128 of A-Z a-z 0-9 _ . : -".to_owned())
}

fn area_floor(text: &str) -> Result<(String, u8), String> {
    let (area, floor) = text.split_once('=').ok_or("must be AREA=N")?;
    let floor = floor.parse().ok().filter(|floor| *floor <= 100).ok_or("N must be an integer from 0 to 100")?;
    Ok((area.to_owned(), floor))
}

fn report(text: &str) -> Result<(Format, PathBuf), String> {
    let (format, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or("must be F=FILE")?;
    let format = Format::from_str(format, false).map_err(|_| {
        let values: Vec<_> = Format::value_variants().iter().filter_map(ValueEnum::to_possible_value).collect();
        let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        format!("F must be one of {}{}", names.join(", "), nearest::hint(format, names))
    })?;
    Ok((format, PathBuf::from(path)))
}

fn price(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|price: &f64| price.is_finite() && *price >= 0.0)
        .ok_or_else(|| "must be a number of at least 0".to_owned())
}

fn component(text: &str) -> Result<(String, PathBuf), String> {
    let (kind, path) =
        text.split_once('=').filter(|(kind, path)| !kind.is_empty() && !path.is_empty()).ok_or("must be KIND=PATH")?;
    Ok((kind.to_owned(), PathBuf::from(path)))
}

fn grant(text: &str) -> Result<(String, Power), String> {
    let (kind, power) = text.split_once('=').filter(|(kind, _)| !kind.is_empty()).ok_or("must be KIND=POWER")?;
    let powers = [Power::Pipe, Power::Http];
    let power = powers
        .into_iter()
        .find(|known| known.word() == power)
        .ok_or_else(|| format!("POWER must be pipe or http{}", nearest::hint(power, powers.map(Power::word))))?;
    Ok((kind.to_owned(), power))
}

/// Whether a text may name a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Splits at a byte that is an ASCII sign; both parts may be any text of the system.
#[cfg(unix)]
fn split_os(text: &OsString, at: usize) -> Option<(OsString, OsString)> {
    use std::os::unix::ffi::OsStrExt as _;
    let (name, value) = text.as_bytes().split_at_checked(at)?;
    let part = |bytes: &[u8]| std::ffi::OsStr::from_bytes(bytes).to_owned();
    Some((part(name), part(value.get(1..)?)))
}

#[cfg(not(unix))]
fn split_os(text: &OsString, at: usize) -> Option<(OsString, OsString)> {
    let (name, value) = text.to_str()?.split_at_checked(at)?;
    Some((name.into(), value.get(1..)?.into()))
}
