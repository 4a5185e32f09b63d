//! `mcpeval shim`.

use std::ffi::OsString;

use clap::Args;

use super::console;
use super::options::label;
use super::settings::Settings;
use crate::capture::shim;
use crate::error::Result;
use crate::report::document::Label;
use crate::store::Home;
use crate::wire::launch::Launch;
use crate::wire::passage::Ending;
use crate::wire::sandbox::Guardian;

/// The raw name of the recorded session.
const SESSION: &str = "MCPEVAL_SESSION";

const EXAMPLE: &str = "\
Example, in the configuration of an MCP client, in the place of the server's own command:
  mcpeval shim --server shop -- node dist/index.js

Every byte passes unchanged. What is recorded, in the home folder, is the shape of each call: never a value of an
argument, a result, or the text of an error. $MCPEVAL_SESSION names the session; only a salted hash of it is kept.

Exit codes:
  that of the server, or 128 and the number of the signal that ended it
  2  usage: arguments, configuration
  3  the server could not be started";

/// Record what passes between a client and a stdio server
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Shim {
    /// Label of the server in records and findings, of A-Z a-z 0-9 _ . : -
    #[arg(long, value_name = "LABEL", value_parser = label)]
    server: Label,
    /// Command of the server and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Shim {
    pub(super) fn run(self, settings: &Settings) -> Result<u8> {
        let mut words = self.command.into_iter();
        let launch = Launch {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            env: Vec::new(),
            cwd: None,
            withheld: settings.withheld(),
        };
        if settings.home.is_none() {
            console::warning("nothing is recorded: there is no home folder; name one by --home or MCPEVAL_HOME");
        }
        let guardian = Guardian::start().unwrap_or_else(|error| {
            // All that is lost is the tidying if we are killed.
            tracing::warn!(%error, "no guardian");
            Guardian::none()
        });
        let session = std::env::var_os(SESSION).filter(|name| !name.is_empty());
        let shim = shim::Shim {
            launch,
            server: self.server.as_str().to_owned(),
            home: settings.home.clone().map(Home::at),
            session: session.map(|name| name.to_string_lossy().into_owned()),
        };
        Ok(match shim.run(&guardian, console::warning)? {
            Ending::Exited(code) => u8::try_from(code).unwrap_or(u8::MAX),
            Ending::Signalled(number) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        })
    }
}
