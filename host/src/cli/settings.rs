//! What holds for a whole command: global options, and the configuration under them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::options::ComponentOptions;
use super::{Colour, Global};
use crate::config::{Config, FILE};
use crate::error::Result;
use crate::report::output::Inputs;

/// The home folder.
const HOME: &str = "MCPEVAL_HOME";
/// The configuration file.
const CONFIG: &str = "MCPEVAL_CONFIG";
/// The home folder within the user's own.
const DEFAULT_HOME: &str = ".mcp-eval";

/// Global options, resolved, and the configuration.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    /// When to colour.
    pub(super) color: Colour,
    /// No progress; only errors and the result.
    pub(super) quiet: bool,
    /// How much more on stderr.
    pub(super) verbose: u8,
    /// The home folder, which need not exist; none if the user has none.
    pub(super) home: Option<PathBuf>,
    /// What the configuration file says.
    pub(super) config: Config,
    /// The configuration file, if one is read.
    pub(super) file: Option<PathBuf>,
}

impl Settings {
    /// Reads the configuration. Of each value the first found holds: option, environment, file, built-in default.
    pub(super) fn load(global: &Global) -> Result<Self> {
        let named = global.config.clone().or_else(|| variable(CONFIG).map(PathBuf::from));
        let config = Config::load(named.as_deref())?;
        let file = named.or_else(|| Some(PathBuf::from(FILE)).filter(|path| path.exists()));
        Ok(Self { file, ..Self::of(global, variable(HOME), config) })
    }

    /// For commands that no configuration concerns, so that a broken one does not stop them.
    pub(super) fn without_file(global: &Global) -> Self {
        Self::of(global, variable(HOME), Config::default())
    }

    fn of(global: &Global, environment: Option<OsString>, config: Config) -> Self {
        let own = || std::env::home_dir().map(|home| home.join(DEFAULT_HOME));
        let home = global.home.clone().or_else(|| environment.map(PathBuf::from));
        let color = || config.defaults.color.as_deref().and_then(|word| clap::ValueEnum::from_str(word, false).ok());
        Self {
            color: global.color.or_else(color).unwrap_or_default(),
            quiet: global.quiet,
            verbose: global.verbose,
            home: home.or_else(|| config.defaults.home.clone()).or_else(own),
            config,
            file: None,
        }
    }

    /// Files that a command reads: those of the configuration and of the options.
    pub(super) fn inputs(&self, components: &ComponentOptions) -> Inputs {
        let mut inputs = Inputs::default();
        inputs.add("the configuration", self.file.as_deref());
        let configured = self.config.components.values().map(|component| &component.path);
        for path in configured.chain(components.component.iter().map(|(_, path)| path)) {
            inputs.add("a component", Some(path));
        }
        inputs
    }

    /// Variables that no child inherits, beyond every `MCPEVAL_*`.
    pub(super) fn withheld(&self) -> Vec<OsString> {
        self.config.header_variables().map(OsString::from).collect()
    }

    /// The corpus of the home folder, if it is there.
    pub(super) fn home_corpus(&self) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join("corpus.json")).filter(|path| path.is_file())
    }
}

/// The configuration as far as a half-typed command line tells; nothing if it cannot be read.
pub(super) fn for_completion() -> Config {
    let words: Vec<OsString> = std::env::args_os().collect();
    Config::load(named_in(&words).or_else(|| variable(CONFIG).map(PathBuf::from)).as_deref()).unwrap_or_default()
}

/// What `--config` names among the words of a command line, before those of a server's command.
fn named_in(words: &[OsString]) -> Option<PathBuf> {
    // A completion script puts a `--` of its own before the words.
    let own = words.iter().position(|word| word == "--").map_or(words, |at| words.get(at + 1..).unwrap_or_default());
    let mut own = own.iter().take_while(|word| *word != "--");
    while let Some(word) = own.next() {
        if word == "--config" {
            return own.next().map(PathBuf::from);
        }
        if let Some(path) = word.to_str().and_then(|word| word.strip_prefix("--config=")) {
            return Some(Path::new(path).to_owned());
        }
    }
    None
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::{Document, Notation};

    #[test]
    fn what_is_given_wins_over_the_file() {
        let text = "[defaults]\ncolor = \"never\"\nhome = \"own\"\n";
        let document = Document::parse("mcpeval.toml", text, Notation::Toml).unwrap();
        let config = Config::parse(&document, Path::new("/base")).unwrap();
        let global = Global { config: None, home: None, color: None, quiet: true, verbose: 0 };
        let settings = Settings::of(&global, None, config.clone());
        assert_eq!((settings.color, settings.quiet), (Colour::Never, true));
        assert_eq!(settings.home.as_deref(), Some(Path::new("/base/own")));
        let environment = || Some("/env".into());
        assert_eq!(Settings::of(&global, environment(), config.clone()).home.as_deref(), Some(Path::new("/env")));
        let given = Global { home: Some("given".into()), color: Some(Colour::Always), ..global };
        let settings = Settings::of(&given, environment(), config);
        assert_eq!((settings.color, settings.home.as_deref()), (Colour::Always, Some(Path::new("given"))));
    }

    #[test]
    fn the_words_of_the_file_are_those_of_the_options() {
        use clap::ValueEnum as _;
        let colours: Vec<String> = Colour::value_variants()
            .iter()
            .filter_map(|colour| colour.to_possible_value().map(|value| value.get_name().to_owned()))
            .collect();
        assert_eq!(colours, crate::config::COLOURS);
    }

    #[test]
    fn a_half_typed_line_names_its_configuration() {
        let named = |line: &str| named_in(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(named("mcpeval -- mcpeval score --config a.toml --target"), Some("a.toml".into()));
        assert_eq!(named("mcpeval -- mcpeval --config=b.toml score --target s"), Some("b.toml".into()));
        assert_eq!(named("mcpeval -- mcpeval score -- node --config c.toml"), None);
    }
}
