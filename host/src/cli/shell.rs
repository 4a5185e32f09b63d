//! `mcpeval completions` and `man`, from the same definitions as `--help`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, ValueHint};
use clap_complete::env::{CompleteEnv, Shells};

use super::{Cli, signals};
use crate::error::{Error, Result};
use crate::report::output;

/// Set by completion scripts, to the name of the shell that asks.
const COMPLETE: &str = "MCPEVAL_COMPLETE";
const NAME: &str = "mcpeval";

const COMPLETIONS: &str = "\
Example:
  mcpeval completions bash > ~/.local/share/bash-completion/completions/mcpeval

Exit codes:
  0  printed
  2  usage: an unknown shell";
const MAN: &str = "\
Example:
  mcpeval man --dir ~/.local/share/man/man1

Exit codes:
  0  printed or written
  2  usage: arguments
  3  a page cannot be written
  130, 143  ended by SIGINT, SIGTERM";

/// Answers a completion script, if one asks.
pub(super) fn complete() -> Option<ExitCode> {
    std::env::var_os(COMPLETE)?;
    let directory = std::env::current_dir().ok();
    match CompleteEnv::with_factory(Cli::command)
        .var(COMPLETE)
        .bin(NAME)
        .completer(NAME)
        .try_complete(std::env::args_os(), directory.as_deref())
    {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        Err(_) => Some(ExitCode::from(2)),
    }
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS)]
pub(super) struct Completions {
    /// The shell; names that depend on what is loaded are asked for when the script runs
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn run(&self) -> Result<u8> {
        let shells = Shells::builtins();
        let name = self.shell.to_string();
        let shell = shells.completer(&name).ok_or_else(|| Error::usage(format!("no script is known for {name}")))?;
        let mut script = Vec::new();
        shell.write_registration(COMPLETE, NAME, NAME, NAME, &mut script).map_err(|error| unwritten(&error))?;
        output::stdout(&script)?;
        Ok(0)
    }
}

/// Print the manual page, or write one per command
#[derive(Debug, Args)]
#[command(after_help = MAN)]
pub(super) struct Man {
    /// Write mcpeval.1 and one page per command into this folder [default: the main page to stdout]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(&self) -> Result<u8> {
        let pages = pages()?;
        if let Some(folder) = &self.dir {
            signals::listen()?;
            for (name, page) in &pages {
                output::replace(&folder.join(name), page)?;
            }
        } else if let Some((_, main)) = pages.first() {
            output::stdout(main)?;
        }
        Ok(0)
    }
}

/// The pages and their file names, the main one first.
pub(super) fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    fn add(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
        let man = clap_mangen::Man::new(command.clone());
        let mut page = Vec::new();
        man.render(&mut page)?;
        pages.push((man.get_filename(), page));
        command.get_subcommands().filter(|inner| !inner.is_hide_set()).try_for_each(|inner| add(inner, pages))
    }
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages).map_err(|error| unwritten(&error))?;
    Ok(pages)
}

fn unwritten(error: &io::Error) -> Error {
    Error::unfinished(format!("the text cannot be written: {error}"))
}
