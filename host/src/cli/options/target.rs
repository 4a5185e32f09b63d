//! The server that a command is about.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;

use super::super::battery;
use super::super::settings::{self, Settings};
use super::label;
use crate::config::{self, Reach, is_token, is_variable};
use crate::demo::Fault;
use crate::error::{Error, Result};
use crate::report::document::Label;
use crate::runner::Target;
use crate::wire::http::Endpoint;
use crate::wire::launch::Launch;
use crate::{nearest, shown};

/// The `Authorization` value of the one HTTP target.
const AUTHORIZATION: &str = "MCPEVAL_HTTP_AUTHORIZATION";
/// The header that it is for.
const AUTHORIZATION_HEADER: &str = "Authorization";
/// Wait for the handshake, in seconds.
const STARTUP_TIMEOUT: u32 = 30;
/// What a server is called that nobody named.
const LABEL: &str = "probed";

/// The server to evaluate.
#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub(in crate::cli) struct TargetOptions {
    /// Label of the server in reports, of A-Z a-z 0-9 _ . : - [default: the target's name, else probed]
    #[arg(long, value_name = "LABEL", value_parser = label)]
    server: Option<Label>,
    /// Target of this name in mcpeval.toml
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(targets))]
    target: Option<String>,
    /// Streamable HTTP endpoint; loopback unless --allow-remote-http
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    url: Option<String>,
    /// Permit a remote https:// URL; remote plain http:// is always refused
    #[arg(long, conflicts_with = "command")]
    allow_remote_http: bool,
    /// HTTP header NAME with the value of the environment variable VAR; repeatable
    #[arg(long, value_name = "NAME=VAR", conflicts_with = "command")]
    header_env: Vec<String>,
    /// Environment variable of the child process; repeatable
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "url")]
    env: Vec<OsString>,
    /// Working directory of the child process [default: the current one]
    #[arg(long, value_name = "DIR", conflicts_with = "url", value_hint = ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// Wait for the handshake, 1 to 300 seconds [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = startup_timeout())]
    startup_timeout: Option<u32>,
    /// Command of a stdio server and its arguments
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// The program of a server's command and its arguments; none if no command is given.
///
/// # Errors
/// A usage error if an option stands where the program should.
pub(in crate::cli) fn server_command(command: &[OsString]) -> Result<Option<(&OsString, &[OsString])>> {
    match command.split_first() {
        Some((program, _)) if program.as_encoded_bytes().starts_with(b"-") => Err(Error::usage(
            "after -- stands the server's command, and an option stands there instead; put mcpeval's options before --, \
             and those of the server after the name of its program",
        )),
        split => Ok(split),
    }
}

/// The parser of `--startup-timeout`.
pub(in crate::cli) fn startup_timeout() -> impl clap::builder::TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=i64::from(config::MAX_STARTUP_TIMEOUT))
}

/// A target, ready to be reached.
#[derive(Debug)]
pub(in crate::cli) struct Chosen<'a> {
    /// Its label in reports.
    pub(in crate::cli) server: Label,
    /// How to reach it.
    pub(in crate::cli) target: Target,
    /// Wait for the handshake.
    pub(in crate::cli) startup_timeout: Duration,
    /// What the configuration says of it, if it was named: the defaults of other options.
    pub(in crate::cli) named: Option<&'a config::Target>,
}

/// What is the same for every target of a command.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Terms<'a> {
    /// Global options and the configuration.
    pub(in crate::cli) settings: &'a Settings,
    /// A remote https:// URL is permitted.
    pub(in crate::cli) allow_remote_http: bool,
    /// It is the only HTTP target of the command, so that the one `Authorization` value is meant for it.
    pub(in crate::cli) alone: bool,
}

impl TargetOptions {
    /// The arguments of which exactly one must be given.
    pub(in crate::cli) const CHOICE: [&'static str; 3] = ["target", "url", "command"];

    /// The target that the options and the configuration describe.
    ///
    /// # Errors
    /// A usage error for an unknown name, an option that does not fit the target, a value that cannot be used.
    pub(in crate::cli) fn resolve<'a>(&self, settings: &'a Settings) -> Result<Chosen<'a>> {
        let named = self.target.as_deref().map(|name| settings.config.target(name)).transpose()?;
        let terms = Terms { settings, allow_remote_http: self.allow_remote_http, alone: true };
        let target = match (named, &self.url, server_command(&self.command)?) {
            (Some(named), ..) => self.adapted(terms, &named.reach)?,
            (None, Some(url), _) => terms.http(url, &self.headers()?, &BTreeMap::new())?,
            (None, None, Some((program, args))) => terms.command(Launch {
                program: program.clone(),
                args: args.to_vec(),
                env: self.environment()?,
                cwd: self.cwd.clone(),
                withheld: Vec::new(),
            }),
            (None, None, None) => return Err(Error::usage("no target is given: --target NAME, --url URL, or -- CMD")),
        };
        Ok(Chosen {
            server: self.label(named.map_or(LABEL, |named| named.server.as_str()))?,
            target,
            startup_timeout: settings.startup_timeout(self.startup_timeout, named),
            named,
        })
    }

    /// A configured target with what the options change.
    fn adapted(&self, terms: Terms<'_>, reach: &Reach) -> Result<Target> {
        match reach {
            Reach::Command { .. } if self.allow_remote_http || !self.header_env.is_empty() => {
                Err(Error::usage("--allow-remote-http and --header-env are for a url, and this target has a command"))
            }
            Reach::Url { .. } if self.cwd.is_some() || !self.env.is_empty() => {
                Err(Error::usage("--cwd and --env are for a command, and this target has a url"))
            }
            Reach::Command { program, args, cwd, env } => {
                let mut launch = child(program, args, self.cwd.as_ref().unwrap_or(cwd), env);
                launch.env.extend(self.environment()?);
                Ok(terms.command(launch))
            }
            Reach::Url { url, headers_env } => terms.http(url, &self.headers()?, headers_env),
        }
    }

    /// The demo server as the target.
    ///
    /// # Errors
    /// A usage error if the fault is unknown.
    pub(in crate::cli) fn resolve_demo<'a>(&self, demo: &DemoOptions, settings: &'a Settings) -> Result<Chosen<'a>> {
        let terms = Terms { settings, allow_remote_http: false, alone: true };
        Ok(Chosen {
            server: self.label("demo")?,
            target: terms.command(demo.launch()?),
            startup_timeout: settings.startup_timeout(self.startup_timeout, None),
            named: None,
        })
    }

    /// The target as a command line names it; a command and its arguments may hold secrets and are not repeated.
    pub(in crate::cli) fn spelled(&self) -> String {
        match (&self.target, &self.url) {
            (Some(name), _) => format!("--target {name}"),
            (None, Some(_)) => "--url URL, with the same URL".to_owned(),
            (None, None) => "-- CMD, with the same command".to_owned(),
        }
    }

    fn label(&self, default: &str) -> Result<Label> {
        self.server.clone().or_else(|| Label::new(default)).ok_or_else(|| Error::usage("--server is no label"))
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

    /// Header and variable of each `--header-env`.
    fn headers(&self) -> Result<Vec<(&str, &str)>> {
        let mut headers: Vec<(&str, &str)> = Vec::new();
        for pair in &self.header_env {
            let (name, variable) = pair
                .split_once('=')
                .filter(|(name, variable)| is_token(name) && is_variable(variable))
                .ok_or_else(|| Error::usage("--header-env wants NAME=VAR, the name of a header and of a variable"))?;
            if headers.iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
                return Err(Error::usage(format!("--header-env {name} is given twice")));
            }
            headers.push((name, variable));
        }
        Ok(headers)
    }
}

/// The child process of a configured target.
fn child(program: &str, args: &[String], cwd: &Path, env: &BTreeMap<String, String>) -> Launch {
    Launch {
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
        env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: Some(cwd.to_owned()),
        withheld: Vec::new(),
    }
}

impl Settings {
    /// How long to wait for the handshake: as given, else as the target says, else the defaults.
    pub(in crate::cli) fn startup_timeout(&self, given: Option<u32>, named: Option<&config::Target>) -> Duration {
        let seconds = given
            .or_else(|| named.and_then(|named| named.startup_timeout))
            .or(self.config.defaults.startup_timeout)
            .unwrap_or(STARTUP_TIMEOUT);
        Duration::from_secs(seconds.into())
    }
}

impl Terms<'_> {
    /// A target of the configuration.
    ///
    /// # Errors
    /// A usage error if its address is refused or a variable of a header is not set.
    pub(in crate::cli) fn named(self, reach: &Reach) -> Result<Target> {
        match reach {
            Reach::Url { url, headers_env } => self.http(url, &[], headers_env),
            Reach::Command { program, args, cwd, env } => Ok(self.command(child(program, args, cwd, env))),
        }
    }

    /// A child process, which inherits no variable that holds a header's value.
    pub(in crate::cli) fn command(self, mut launch: Launch) -> Target {
        launch.withheld.extend(self.settings.withheld());
        Target::Stdio(launch)
    }

    /// An endpoint. Of each header the first found holds: given, environment, file.
    ///
    /// # Errors
    /// A usage error if the address is refused or a variable is not set.
    pub(in crate::cli) fn http(
        self,
        url: &str,
        given: &[(&str, &str)],
        file: &BTreeMap<String, String>,
    ) -> Result<Target> {
        let mut headers: Vec<(String, String)> = Vec::new();
        let stands = |headers: &[(String, String)], name: &str| {
            headers.iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name))
        };
        let value = |source: &str, name: &str, variable: &str| {
            std::env::var(variable)
                .map_err(|_| Error::usage(format!("{source} {name}: the variable {variable} is not set to text")))
        };
        for (name, variable) in given {
            headers.push(((*name).to_owned(), value("--header-env", name, variable)?));
        }
        if self.alone
            && !stands(&headers, AUTHORIZATION_HEADER)
            && let Some(value) = std::env::var_os(AUTHORIZATION)
        {
            let value = value.into_string().map_err(|_| Error::usage(format!("{AUTHORIZATION} is not set to text")))?;
            headers.push((AUTHORIZATION_HEADER.to_owned(), value));
        }
        for (name, variable) in file {
            if !stands(&headers, name) {
                headers.push((name.clone(), value("headers_env", name, variable)?));
            }
        }
        let endpoint = Endpoint::new(url, headers, self.allow_remote_http);
        endpoint.map(Target::Http).map_err(|error| Error::usage(error.to_string()))
    }
}

/// The demo server as the target.
#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub(in crate::cli) struct DemoOptions {
    /// The demo server; its label is demo
    #[arg(long, conflicts_with_all = ["allow_remote_http", "header_env", "env", "cwd"])]
    pub(in crate::cli) demo: bool,
    /// Give the demo server this fault; `mcpeval demo --list-broken` names them [default: no fault]
    #[arg(long, value_name = "NAME", requires = "demo", conflicts_with_all = TargetOptions::CHOICE, add = ArgValueCompleter::new(faults))]
    broken: Option<String>,
}

impl DemoOptions {
    fn launch(&self) -> Result<Launch> {
        let program = std::env::current_exe()
            .map_err(|error| Error::unfinished(format!("the path of this program is unknown: {error}")))?;
        let mut args = vec![OsString::from("demo")];
        if let Some(name) = &self.broken {
            args.extend([OsString::from("--broken"), fault(name)?.name().into()]);
        }
        Ok(Launch { program: program.into(), args, env: Vec::new(), cwd: None, withheld: Vec::new() })
    }
}

/// The demo's fault of that name.
pub(in crate::cli) fn fault(name: &str) -> Result<Fault> {
    Fault::from_name(name).ok_or_else(|| {
        let hint = nearest::choices(name, Fault::ALL.iter().map(|fault| fault.name()));
        let name = shown::word(name);
        Error::usage(format!("--broken: the demo has no fault \"{name}\"{hint}; --list-broken names all"))
    })
}

pub(in crate::cli) fn faults(current: &OsStr) -> Vec<CompletionCandidate> {
    battery::candidates(current, Fault::ALL.iter().map(|fault| fault.name().to_owned()))
}

/// The names of the configured targets, for completion.
pub(in crate::cli) fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    battery::candidates(current, settings::for_completion().targets.into_keys())
}

/// Splits at a byte that is an ASCII sign; both parts may be any text of the system.
fn split_os(text: &OsString, at: usize) -> Option<(OsString, OsString)> {
    use std::os::unix::ffi::OsStrExt as _;
    let (name, value) = text.as_bytes().split_at_checked(at)?;
    let part = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    Some((part(name), part(value.get(1..)?)))
}
