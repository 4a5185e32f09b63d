//! `mcpeval.toml`: defaults, named targets, components with their pins, the folders of fixtures.
//!
//! A file can widen nothing that the command line guards: mutation, remote addresses and header values stay there, and
//! a target is only reached when it is named.

mod keys;
pub mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::notation::{At, DOCUMENT_LIMIT, Document, Notation, read_text};
use crate::probes::{self, Digest, Power};
use crate::report::document::Label;
use crate::{nearest, shown};
use keys::{COMPONENT, DEFAULTS, FIXTURES, ROOT, TARGET};

/// The file that is read without being named, from the working directory and from no folder above it.
pub const FILE: &str = "mcpeval.toml";
/// Renderings of a report, as `format` names them.
pub const FORMATS: [&str; 6] = ["text", "json", "markdown", "sarif", "junit", "html"];
/// When to colour, as `color` names it.
pub const COLOURS: [&str; 3] = ["auto", "always", "never"];
/// Most lanes.
pub const MAX_LANES: u32 = 16;
/// Longest wait for a handshake, in seconds.
pub const MAX_STARTUP_TIMEOUT: u32 = 300;
/// Longest wait for a step of a fixture, in milliseconds.
pub const MAX_STEP_TIMEOUT: u32 = 600_000;
/// Most fixtures at the same time.
pub const MAX_CONCURRENCY: u32 = 64;

/// What a configuration file says; nothing where there is none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// Values for options that are not given.
    pub defaults: Defaults,
    /// Servers by name.
    pub targets: BTreeMap<String, Target>,
    /// Components of third parties by kind.
    pub components: BTreeMap<String, Component>,
    /// Where fixtures are, and how they run.
    pub fixtures: Fixtures,
}

/// `[defaults]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Defaults {
    /// One of [`FORMATS`].
    pub format: Option<String>,
    /// 1 to [`MAX_LANES`].
    pub lanes: Option<u32>,
    /// Seconds, 1 to [`MAX_STARTUP_TIMEOUT`].
    pub startup_timeout: Option<u32>,
    /// No hints.
    pub brief: bool,
    /// Every subject of every loss.
    pub full: bool,
    /// Finite and not negative.
    pub price_per_mtok: Option<f64>,
    /// One of [`COLOURS`].
    pub color: Option<String>,
    /// Another standard.
    pub standard: Option<PathBuf>,
    /// Scores of other servers.
    pub corpus: Option<PathBuf>,
    /// The home folder.
    pub home: Option<PathBuf>,
}

/// `[targets.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// How it is reached.
    pub reach: Reach,
    /// Its label in reports.
    pub server: Label,
    /// Its cases.
    pub manifest: Option<PathBuf>,
    /// Arguments of its tools.
    pub arguments: Option<PathBuf>,
    /// Tools that are never called.
    pub skip_tools: Vec<Label>,
    /// Its tools without annotations are attested to be read-only.
    pub confirm_read_only: bool,
    /// Seconds, 1 to [`MAX_STARTUP_TIMEOUT`].
    pub startup_timeout: Option<u32>,
}

/// How a named target is reached.
#[derive(Clone, PartialEq)]
pub enum Reach {
    /// A child process.
    Command {
        /// A path, or a name looked up in `PATH`.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its working directory; the folder of the file unless it says another.
        cwd: PathBuf,
        /// Its variables beside the inherited ones.
        env: BTreeMap<String, String>,
    },
    /// A Streamable HTTP endpoint.
    Url {
        /// Its address.
        url: String,
        /// The name of a header to the variable that holds its value.
        headers_env: BTreeMap<String, String>,
    },
}

impl std::fmt::Debug for Reach {
    /// Arguments, variables and addresses may be secrets, so they are counted, not shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command { program, args, cwd, env } => f
                .debug_struct("Command")
                .field("program", program)
                .field("args", &args.len())
                .field("cwd", cwd)
                .field("env", &env.keys())
                .finish(),
            Self::Url { headers_env, .. } => f.debug_struct("Url").field("headers_env", headers_env).finish(),
        }
    }
}

/// `[components.KIND]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Its file.
    pub path: PathBuf,
    /// The pin.
    pub sha256: Digest,
    /// Powers below the protocol that whatever has that digest may use.
    pub grants: Vec<Power>,
}

/// `[fixtures]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fixtures {
    /// Where they are.
    pub dir: Option<PathBuf>,
    /// Where results go.
    pub db: Option<PathBuf>,
    /// Milliseconds, 1 to [`MAX_STEP_TIMEOUT`].
    pub timeout: Option<u32>,
    /// 1 to [`MAX_CONCURRENCY`].
    pub concurrency: Option<u32>,
    /// Where shared ones are.
    pub library_dirs: Vec<PathBuf>,
}

impl Config {
    /// Reads the file that is named, which must exist, else [`FILE`] in the working directory if it is there.
    ///
    /// # Errors
    /// A usage error with line, column and the nearest known name; never with a value.
    pub fn load(named: Option<&Path>) -> Result<Self> {
        match named {
            Some(path) => Self::read(path),
            None if Path::new(FILE).exists() => Self::read(Path::new(FILE)),
            None => Ok(Self::default()),
        }
    }

    /// Reads a file, TOML whatever its extension; paths in it are relative to it.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn read(path: &Path) -> Result<Self> {
        let document = Document::parse(&path.display().to_string(), read_text(path, DOCUMENT_LIMIT)?, Notation::Toml)?;
        // Whatever changes its folder later, a child say, still finds them.
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let base = std::path::absolute(folder)
            .map_err(|error| Error::unfinished(format!("the working directory is unknown: {error}")))?;
        Self::parse(&document, &base)
    }

    /// Reads a document; `base` is the folder that its paths are relative to.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(document: &Document, base: &Path) -> Result<Self> {
        let root = document.root();
        let reader = Reader { base };
        root.only(ROOT)?;
        let table = |key: &str| root.optional(key);
        Ok(Self {
            defaults: table("defaults")?.map(|at| reader.defaults(&at)).transpose()?.unwrap_or_default(),
            targets: named(table("targets")?, |name, at| reader.target(name, at))?,
            components: named(table("components")?, |kind, at| reader.component(kind, at))?,
            fixtures: table("fixtures")?.map(|at| reader.fixtures(&at)).transpose()?.unwrap_or_default(),
        })
    }

    /// The target of that name.
    ///
    /// # Errors
    /// A usage error that says which names there are.
    pub fn target(&self, name: &str) -> Result<&Target> {
        self.targets.get(name).ok_or_else(|| {
            let end = if self.targets.is_empty() {
                "; no target is configured; write one into mcpeval.toml or name the file with --config".to_owned()
            } else {
                nearest::choices(name, self.targets.keys().map(String::as_str))
            };
            Error::usage(format!("--target: there is no target \"{}\"{end}", shown::word(name)))
        })
    }

    /// Every variable that holds the value of a header, whichever target it is for: no child inherits them.
    pub fn header_variables(&self) -> impl Iterator<Item = &str> {
        self.targets.values().flat_map(|target| match &target.reach {
            Reach::Url { headers_env, .. } => headers_env.values().map(String::as_str).collect(),
            Reach::Command { .. } => Vec::new(),
        })
    }

    /// What the file grants to whatever has that digest.
    pub fn granted(&self, digest: Digest) -> impl Iterator<Item = Power> {
        self.components
            .values()
            .filter(move |component| component.sha256 == digest)
            .flat_map(|component| component.grants.iter().copied())
    }
}

/// The tables of a table, each with its name.
fn named<T>(table: Option<At<'_>>, read: impl Fn(&str, &At<'_>) -> Result<T>) -> Result<BTreeMap<String, T>> {
    let Some(table) = table else { return Ok(BTreeMap::new()) };
    table.entries()?.map(|(name, at)| Ok((name.to_owned(), read(name, &at)?))).collect()
}

/// Reads tables, knowing what paths are relative to.
struct Reader<'a> {
    base: &'a Path,
}

impl Reader<'_> {
    fn defaults(&self, at: &At<'_>) -> Result<Defaults> {
        at.only(DEFAULTS)?;
        Ok(Defaults {
            format: optional(at, "format", |at| word(at, &FORMATS))?,
            lanes: optional(at, "lanes", |at| at.integer(1, MAX_LANES))?,
            startup_timeout: startup_timeout(at)?,
            brief: flag(at, "brief")?,
            full: flag(at, "full")?,
            price_per_mtok: optional(at, "price_per_mtok", price)?,
            color: optional(at, "color", |at| word(at, &COLOURS))?,
            standard: self.path_in(at, "standard")?,
            corpus: self.path_in(at, "corpus")?,
            home: self.path_in(at, "home")?,
        })
    }

    fn target(&self, name: &str, at: &At<'_>) -> Result<Target> {
        let own =
            Label::new(name).ok_or_else(|| at.fault("the name of a target must be 1 to 128 of A-Z a-z 0-9 _ . : -"))?;
        at.only(TARGET)?;
        Ok(Target {
            reach: self.reach(at)?,
            server: optional(at, "server", label)?.unwrap_or(own),
            manifest: self.path_in(at, "manifest")?,
            arguments: self.path_in(at, "arguments")?,
            skip_tools: optional(at, "skip_tools", |at| list(at, label))?.unwrap_or_default(),
            confirm_read_only: flag(at, "confirm_read_only")?,
            startup_timeout: startup_timeout(at)?,
        })
    }

    fn reach(&self, at: &At<'_>) -> Result<Reach> {
        let (command, url) = (at.optional("command")?, at.optional("url")?);
        let foreign = |keys: &[&str], of: &str| {
            keys.iter().try_for_each(|key| match at.optional(key)? {
                Some(field) => Err(field.fault(format!("belongs to a target with {of}"))),
                None => Ok(()),
            })
        };
        match (command, url) {
            (Some(command), None) => {
                foreign(&["headers_env"], "a url")?;
                let mut words = list(&command, plain)?.into_iter();
                let program = words.next().filter(|program| !program.is_empty());
                Ok(Reach::Command {
                    program: program.ok_or_else(|| command.fault("must begin with a program"))?,
                    args: words.collect(),
                    cwd: self.path_in(at, "cwd")?.unwrap_or_else(|| self.base.to_owned()),
                    env: optional(at, "env", |at| map(at, is_variable, "the name of a variable", plain))?
                        .unwrap_or_default(),
                })
            }
            (None, Some(url)) => {
                foreign(&["cwd", "env"], "a command")?;
                let variable = |at: &At<'_>| {
                    let name = at.text()?;
                    let is_good = is_variable(name);
                    is_good.then(|| name.to_owned()).ok_or_else(|| at.fault("must be the name of a variable"))
                };
                let headers = optional(at, "headers_env", |at| map(at, is_token, "the name of a header", variable))?
                    .unwrap_or_default();
                let mut names = std::collections::HashSet::new();
                if let Some(twice) = headers.keys().find(|name| !names.insert(name.to_ascii_lowercase())) {
                    let place = at.required("headers_env")?.required(twice)?;
                    return Err(place.fault("the header stands twice, in other letters"));
                }
                Ok(Reach::Url { url: url.text()?.to_owned(), headers_env: headers })
            }
            (Some(_), Some(url)) => Err(url.fault("a target has a command or a url, not both")),
            (None, None) => Err(at.fault("the target has neither \"command\" nor \"url\"")),
        }
    }

    fn component(&self, kind: &str, at: &At<'_>) -> Result<Component> {
        if !probes::is_foreign_kind(kind) {
            return Err(at.fault(
                "a kind of your own is <vendor>.<name>, each 1 to 32 lowercase letters, digits and dashes, a letter first",
            ));
        }
        at.only(COMPONENT)?;
        let pin = at.required("sha256")?;
        Ok(Component {
            path: self.path(&at.required("path")?)?,
            sha256: Digest::from_hex(pin.text()?).ok_or_else(|| pin.fault("must be 64 hexadecimal digits"))?,
            grants: optional(at, "grants", |at| list(at, power))?.unwrap_or_default(),
        })
    }

    fn fixtures(&self, at: &At<'_>) -> Result<Fixtures> {
        at.only(FIXTURES)?;
        Ok(Fixtures {
            dir: self.path_in(at, "dir")?,
            db: self.path_in(at, "db")?,
            timeout: optional(at, "timeout", |at| at.integer(1, MAX_STEP_TIMEOUT))?,
            concurrency: optional(at, "concurrency", |at| at.integer(1, MAX_CONCURRENCY))?,
            library_dirs: optional(at, "library_dirs", |at| list(at, |at| self.path(at)))?.unwrap_or_default(),
        })
    }

    fn path_in(&self, at: &At<'_>, key: &str) -> Result<Option<PathBuf>> {
        optional(at, key, |at| self.path(at))
    }

    /// A leading `~/` is the user's folder: no shell has expanded it here.
    fn path(&self, at: &At<'_>) -> Result<PathBuf> {
        let text = at.text()?;
        if text.is_empty() || text.contains('\0') {
            return Err(at.fault("must be a path"));
        }
        match (text.strip_prefix("~/"), std::env::home_dir()) {
            (Some(rest), Some(home)) => Ok(home.join(rest)),
            _ => Ok(self.base.join(text)),
        }
    }
}

fn optional<T>(at: &At<'_>, key: &str, read: impl Fn(&At<'_>) -> Result<T>) -> Result<Option<T>> {
    at.optional(key)?.map(|field| read(&field)).transpose()
}

fn flag(at: &At<'_>, key: &str) -> Result<bool> {
    at.optional(key)?.map_or(Ok(false), |field| field.boolean())
}

fn startup_timeout(at: &At<'_>) -> Result<Option<u32>> {
    optional(at, "startup_timeout", |at| at.integer(1, MAX_STARTUP_TIMEOUT))
}

fn list<T>(at: &At<'_>, read: impl Fn(&At<'_>) -> Result<T>) -> Result<Vec<T>> {
    at.items()?.map(|item| read(&item)).collect()
}

fn map<T>(
    at: &At<'_>,
    is_key: fn(&str) -> bool,
    meaning: &str,
    read: impl Fn(&At<'_>) -> Result<T>,
) -> Result<BTreeMap<String, T>> {
    at.entries()?
        .map(|(key, field)| {
            if is_key(key) {
                Ok((key.to_owned(), read(&field)?))
            } else {
                Err(field.fault(format!("its key is not {meaning}")))
            }
        })
        .collect()
}

/// A text that the system can take.
fn plain(at: &At<'_>) -> Result<String> {
    let text = at.text()?;
    if text.contains('\0') { Err(at.fault("must not hold a NUL")) } else { Ok(text.to_owned()) }
}

fn label(at: &At<'_>) -> Result<Label> {
    Label::new(at.text()?).ok_or_else(|| at.fault("must be 1 to 128 of A-Z a-z 0-9 _ . : -"))
}

fn word(at: &At<'_>, known: &[&str]) -> Result<String> {
    let text = at.text()?;
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(at.fault(format!("must be one of {}{}", known.join(", "), nearest::hint(text, known.iter().copied()))))
}

fn power(at: &At<'_>) -> Result<Power> {
    let word = at.text()?;
    Power::from_word(word).ok_or_else(|| {
        let hint = nearest::hint(word, Power::ALL.map(Power::word));
        at.fault(format!("must be pipe or http{hint}"))
    })
}

fn price(at: &At<'_>) -> Result<f64> {
    at.number().ok().filter(|price| *price >= 0.0).ok_or_else(|| at.fault("must be a number of at least 0"))
}

/// Whether a text may name a variable of the environment.
pub fn is_variable(text: &str) -> bool {
    !text.is_empty() && !text.contains(['=', '\0'])
}

/// Whether a text may name a header.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
