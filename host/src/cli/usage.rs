//! What to say of a command line that cannot be understood, and of options that went to the server.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _};

use super::Cli;
use crate::nearest;

/// Ends mcpeval's own options; the server's command follows.
const END: &str = "--";
/// Words that every program understands, so that they say nothing about whom they were meant for.
const COMMON: [&str; 2] = ["help", "version"];
/// Options that one sentence names.
const MAX_NAMED: usize = 4;
/// Tips of the parser, which guesses among what has nothing to do with the mistake.
const GUESSES: [ContextKind; 4] = [
    ContextKind::SuggestedArg,
    ContextKind::SuggestedCommand,
    ContextKind::SuggestedSubcommand,
    ContextKind::Suggested,
];

/// All commands with what they inherit; made only where something has to be said of them.
fn definitions() -> Command {
    let mut root = Cli::command();
    root.build();
    root
}

/// The error with one tip that fits, or none.
pub(super) fn explained(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let root = definitions();
    let line = Line::read(&root, arguments);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let tip = match error.kind() {
        ErrorKind::UnknownArgument => line.about_argument(&text(ContextKind::InvalidArg)),
        ErrorKind::InvalidSubcommand => line.about_command(&text(ContextKind::InvalidSubcommand)),
        _ => return error,
    };
    for kind in GUESSES {
        error.remove(kind);
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// What may be wrong with our own command line, for when the server does not start.
pub(super) fn tip() -> Option<String> {
    misplaced(&std::env::args_os().collect::<Vec<_>>())
}

/// Options of the command in use that stand behind the server's command, so that the server got them.
fn misplaced(arguments: &[OsString]) -> Option<String> {
    let root = definitions();
    let line = Line::read(&root, arguments);
    let behind = arguments.iter().skip_while(|word| *word != END).skip(2);
    let mut names: Vec<&str> = Vec::new();
    for word in behind.filter_map(|word| word.to_str()?.strip_prefix("--")) {
        let name = word.split('=').next().unwrap_or_default();
        if names.len() < MAX_NAMED
            && !names.contains(&name)
            && !COMMON.contains(&name)
            && longs(line.command).any(|long| long == name)
        {
            names.push(name);
        }
    }
    let (verb, them) = if names.len() == 1 { ("stands", "it") } else { ("stand", "them") };
    let names: Vec<String> = names.into_iter().map(|name| format!("--{name}")).collect();
    (!names.is_empty()).then(|| {
        format!(
            "tip: {} {verb} after --, so the server got {them}; put before -- what is meant for mcpeval",
            names.join(" and ")
        )
    })
}

/// The command line as far as it is understood.
struct Line<'a> {
    root: &'a Command,
    /// The command in use.
    command: &'a Command,
    /// Its name with all names above it.
    path: String,
}

impl<'a> Line<'a> {
    fn read(root: &'a Command, arguments: &[OsString]) -> Self {
        let mut line = Self { root, command: root, path: root.get_name().to_owned() };
        let mut words = arguments.iter().skip(1).take_while(|word| *word != END);
        while let Some(word) = words.next() {
            let Some(word) = word.to_str() else { continue };
            if let Some(inner) = line.command.find_subcommand(word) {
                line.command = inner;
                line.path = format!("{} {}", line.path, inner.get_name());
            } else if word.strip_prefix("--").and_then(|long| argument(line.command, long)).is_some_and(takes_value) {
                words.next();
            }
        }
        line
    }

    fn about_argument(&self, word: &str) -> Option<String> {
        let server = || {
            let takes_server = self.command.get_positionals().any(Arg::is_last_set);
            let path = &self.path;
            takes_server.then(|| {
                format!("the server's command and its options stand after --, as in: {path} -- node dist/index.js")
            })
        };
        let Some(long) = word.strip_prefix("--") else { return server() };
        let mut holders = Vec::new();
        holders_of(self.root, "", long, &mut holders);
        if !holders.is_empty() {
            return Some(format!("{word} is an option of {}", holders.join(", ")));
        }
        let near = nearest::nearest(long, longs(self.command));
        near.map(|near| format!("the nearest option is --{near}")).or_else(server)
    }

    fn about_command(&self, word: &str) -> Option<String> {
        let names = self.command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(Command::get_name);
        let near = nearest::nearest(word, names).map(|near| format!("the nearest command is {near}"));
        near.or_else(|| {
            let is_root = std::ptr::eq(self.command, self.root);
            let path = &self.path;
            is_root.then(|| format!("a command of mcpeval comes first, as in: {path} score -- node dist/index.js"))
        })
    }
}

fn longs(command: &Command) -> impl Iterator<Item = &str> {
    command.get_arguments().filter(|argument| !argument.is_hide_set()).filter_map(Arg::get_long)
}

fn argument<'a>(command: &'a Command, long: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|argument| argument.get_long() == Some(long))
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

/// The commands that have this option, by their paths below the root.
fn holders_of(command: &Command, path: &str, long: &str, holders: &mut Vec<String>) {
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        let path = format!("{path} {}", inner.get_name()).trim_start().to_owned();
        if argument(inner, long).is_some() {
            holders.push(path.clone());
        }
        holders_of(inner, &path, long, holders);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn told(line: &str) -> String {
        let error = Cli::command().try_get_matches_from(words(line)).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        explained(error, &words(line)).to_string()
    }

    #[test]
    fn one_tip_fits_the_mistake() {
        let server = |command: &str| {
            format!(
                "the server's command and its options stand after --, as in: mcpeval {command} -- node dist/index.js"
            )
        };
        for (line, tip) in [
            ("mcpeval probe --manfest x -- server", "the nearest option is --manifest"),
            ("mcpeval score --ouput x -- a", "the nearest option is --output"),
            ("mcpeval --color never score --ouput=x", "the nearest option is --output"),
            ("mcpeval score --verison", "the nearest option is --version"),
            ("mcpeval score --manifest a -- b", "--manifest is an option of probe, compare, report"),
            ("mcpeval --demo", "--demo is an option of score"),
            ("mcpeval report x --fail-on-regression", "--fail-on-regression is an option of diff"),
            ("mcpeval score node a.js", &server("score")),
            ("mcpeval probe node -- a.js", &server("probe")),
            ("mcpeval init node", &server("init")),
            ("mcpeval guidance foo", &server("guidance")),
            ("mcpeval compare node", &server("compare")),
            ("mcpeval score --zzz -- node", &server("score")),
            ("mcpeval score -x --demo", &server("score")),
            ("mcpeval scroe", "the nearest command is score"),
            ("mcpeval help scor", "the nearest command is score"),
            ("mcpeval probes lst", "the nearest command is list"),
            ("mcpeval -- node a", "a command of mcpeval comes first, as in: mcpeval score -- node dist/index.js"),
        ] {
            let text = told(line);
            assert_eq!(text.matches("tip:").count(), 1, "{line}: {text}");
            assert!(text.contains(&format!("tip: {tip}\n")), "{line}: {text}");
        }
        for line in ["mcpeval diff a b c", "mcpeval report a b", "mcpeval probes zzz"] {
            assert!(!told(line).contains("tip:"), "{line}: {}", told(line));
        }
    }

    #[test]
    fn options_behind_the_servers_command_are_told() {
        let told = |line: &str| misplaced(&words(line));
        let one = told("mcpeval score -- node a.js --min-readiness=80 --help --port 3");
        assert_eq!(
            one.as_deref(),
            Some("tip: --min-readiness stands after --, so the server got it; put before -- what is meant for mcpeval")
        );
        let two = told("mcpeval probe -- node --gate-only --manifest m --gate-only").expect("two options");
        assert!(two.contains("--gate-only and --manifest stand after --, so the server got them"), "{two}");
        for line in [
            "mcpeval score --min-readiness 80 -- node a.js --port 3",
            "mcpeval score -- node --gate-only --version",
            "mcpeval score -- --lanes",
            "mcpeval score --demo --lanes 3",
            "mcpeval",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
    }
}
