//! What a person sees beside the result: colours, errors, the log.

use std::ffi::OsString;
use std::io::{self, Write};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Effects, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing_subscriber::EnvFilter;

use super::Colour;
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::report::text::neutralised;

/// The log filter on stderr.
const LOG_FILTER: &str = "MCPEVAL_LOG";
/// Lines of a server's stderr that are shown after a fault.
const STDERR_LINES: usize = 20;
const ERROR: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
const WARNING: Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);

/// The colour of help and of errors in arguments, which come before the options are known.
pub(super) fn early_choice(arguments: &[OsString]) -> clap::ColorChoice {
    let mut own = arguments.iter().take_while(|argument| *argument != "--").filter_map(|argument| argument.to_str());
    let given = own.find_map(|argument| argument.strip_prefix("--color")).and_then(|value| match value {
        "" => own.next(),
        value => value.strip_prefix('='),
    });
    match given {
        Some("always") => clap::ColorChoice::Always,
        Some("never") => clap::ColorChoice::Never,
        _ if std::env::var_os("NO_COLOR").is_some() => clap::ColorChoice::Never,
        _ => clap::ColorChoice::Auto,
    }
}

pub(super) fn set_colour(colour: Colour) {
    let choice = match colour {
        Colour::Always => ColorChoice::Always,
        Colour::Never => ColorChoice::Never,
        // Whatever its value, even an empty one.
        Colour::Auto if std::env::var_os("NO_COLOR").is_some() => ColorChoice::Never,
        Colour::Auto => ColorChoice::Auto,
    };
    choice.write_global();
}

/// Whether the result may be coloured.
pub(super) fn stdout_is_styled() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// Whether a line can be written to stderr without waiting for whoever reads it.
pub(super) fn stderr_takes_a_line() -> bool {
    let stderr = io::stderr();
    let mut polled = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Diagnostics go to stderr, from `warn` up; `-v` and `-vv` say more, `-q` less.
pub(super) fn start_log(settings: &Settings) -> Result<()> {
    let default = match (settings.quiet, settings.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, _) => "debug",
    };
    let filter = match std::env::var(LOG_FILTER) {
        Ok(filter) if !filter.is_empty() => EnvFilter::try_new(filter).map_err(|_| {
            Error::usage(format!("{LOG_FILTER} is no log filter, such as \"info\" or \"mcpeval=debug\""))
        })?,
        _ => EnvFilter::new(default),
    };
    // A program that embeds this one may have a subscriber of its own, which then stays.
    _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Neutral)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .try_init();
    Ok(())
}

/// Stderr for the log, which may quote a server.
struct Neutral;

impl Write for Neutral {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let mut stderr = io::stderr().lock();
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            write!(stderr, "{}{end}", neutralised(line))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A line on stderr. If nobody reads it, nobody misses it.
pub(super) fn note(text: &str) {
    _ = writeln!(anstream::stderr(), "{}", neutralised(text));
}

pub(super) fn warning(text: &str) {
    _ = writeln!(anstream::stderr(), "{WARNING}warning:{WARNING:#} {}", neutralised(text));
}

pub(super) fn error(text: &impl ToString) {
    _ = writeln!(anstream::stderr(), "{ERROR}error:{ERROR:#} {}", neutralised(&text.to_string()));
}

/// The last lines that a server wrote to its stderr.
pub(super) fn server_stderr(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return;
    }
    let shown = lines.get(lines.len().saturating_sub(STDERR_LINES)..).unwrap_or_default();
    note(&format!("the server's last stderr lines ({} of {}):", shown.len(), lines.len()));
    for line in shown {
        note(&format!("  | {line}"));
    }
}
