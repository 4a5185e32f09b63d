//! Commands, options, help. One file per group of commands; what they do lives elsewhere.

mod advice;
mod battery;
mod compare;
mod components;
mod console;
mod demo;
mod diff;
mod evaluation;
mod guidance;
mod init;
mod options;
mod probe;
mod progress;
mod report;
mod score;
mod settings;
mod shell;
mod signals;
mod usage;
mod visit;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint};

use settings::Settings;

use crate::error::{Error, Result};
use crate::wire::sandbox::{GUARDIAN_ARGUMENT, guardian_main};

const EXAMPLE: &str = "\
Examples:
  mcpeval score --demo
  mcpeval score --server shop -- node dist/index.js
  mcpeval score --url http://127.0.0.1:3000/mcp --min-readiness 80 --report json=report.json

Exit codes:
  0  done; everything asked for passed
  1  verdict: a floor is missed
  2  usage: arguments, standard, document, component, unknown tool
  3  could not complete: unreachable target, failed handshake, exhausted budget, component fault, I/O
  130, 143  ended by SIGINT, SIGTERM";

/// Scores MCP servers, gates them in CI, and tells what to fix.
#[derive(Debug, Parser)]
#[command(name = "mcpeval", bin_name = "mcpeval", version, propagate_version = true, after_help = EXAMPLE, max_term_width = 120)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
struct Global {
    /// Configuration [default: `$MCPEVAL_CONFIG`, else mcpeval.toml in the working directory, if present]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Global options", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Folder of mcpeval's own files [default: `$MCPEVAL_HOME`, else ~/.mcp-eval]
    #[arg(long, value_name = "DIR", global = true, help_heading = "Global options", value_hint = ValueHint::DirPath)]
    home: Option<PathBuf>,
    /// Colours, on a terminal only unless always [default: auto]
    #[arg(long, value_enum, value_name = "WHEN", global = true, help_heading = "Global options")]
    color: Option<Colour>,
    /// No progress; only errors and the result
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Global options")]
    quiet: bool,
    /// More on stderr, none of it share-safe: messages of the server, free text of components; twice for more
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = "Global options")]
    verbose: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Colour {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Score a server: every tool examined, no writer called
    Score(Box<score::Score>),
    /// Run the cases of a manifest, then the battery
    Probe(Box<probe::Probe>),
    /// Write a first manifest: the cases that a server passes today
    Init(Box<init::Init>),
    /// Compare what a server tells its clients to call with what it lists for them
    Guidance(Box<guidance::Guidance>),
    /// Run the same checks on several targets at the same time
    Compare(Box<compare::Compare>),
    /// Serve a good MCP server, or one with one fault
    Demo(demo::Demo),
    /// Render a stored report, or check that it may be shared
    Report(Box<report::Report>),
    /// Compare two reports of one server, and gate on what got worse
    Diff(diff::Diff),
    /// Explain a reason, or list all of them
    Explain(components::Explain),
    /// Print the JSON Schema of a document
    Schema(components::Schema),
    /// Show the components that judge
    Probes(components::Probes),
    /// Print a completion script for a shell
    Completions(shell::Completions),
    /// Print the manual page, or write one per command
    Man(shell::Man),
}

/// Parses the command line, runs the command, and says how it ended.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|first| first == GUARDIAN_ARGUMENT) {
        return guardian_main();
    }
    if let Some(code) = shell::complete() {
        return code;
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let command = Cli::command().color(console::early_choice(&arguments));
    let cli = match command.try_get_matches_from(&arguments).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let error = usage::explained(error, &arguments);
            // Help goes to stdout, whose reader may have gone; neither stream is worth failing for.
            _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Whoever ends the program does not wait for a reader of stderr that has stopped.
            if !matches!(error, Error::Interrupted(_)) || console::stderr_takes_a_line() {
                console::error(&error);
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: Cli) -> Result<u8> {
    let settings = match cli.command {
        // The first is a child of ours in a folder of somebody else.
        Command::Demo(_) | Command::Completions(_) | Command::Man(_) => Settings::without_file(&cli.global),
        _ => Settings::load(&cli.global)?,
    };
    console::set_colour(settings.color);
    console::start_log(&settings)?;
    match cli.command {
        Command::Score(score) => score.run(&settings),
        Command::Probe(probe) => probe.run(&settings),
        Command::Compare(compare) => compare.run(&settings),
        Command::Init(init) => init.run(&settings),
        Command::Guidance(guidance) => guidance.run(&settings),
        Command::Demo(demo) => demo.run(),
        Command::Report(report) => report.run(&settings),
        Command::Diff(diff) => diff.run(&settings),
        Command::Explain(explain) => explain.run(&settings),
        Command::Schema(schema) => schema.run(&settings),
        Command::Probes(probes) => probes.run(&settings),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    }
}

#[cfg(test)]
mod tests;
