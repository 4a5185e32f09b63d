//! `mcpeval demo`.

use std::fmt::Write as _;
use std::net::SocketAddr;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::options::{fault, faults};
use super::{console, signals};
use crate::demo::{self, Fault};
use crate::error::{Error, Result};
use crate::report::output;

const EXAMPLE: &str = "\
Examples:
  mcpeval demo --http 127.0.0.1:3000
  mcpeval score -- mcpeval demo --broken slow

Exit codes:
  0  standard input ended, or the faults were listed
  2  usage: arguments, an address that is not loopback, an unknown fault
  3  the address is in use, I/O
  130, 143  ended by SIGINT, SIGTERM";

/// Serve a good MCP server, or one with one fault
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Demo {
    /// Serve Streamable HTTP at this loopback address, path /mcp; port 0 takes a free one [default: stdio]
    #[arg(long, value_name = "IP:PORT")]
    http: Option<SocketAddr>,
    /// Have this fault
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(faults))]
    broken: Option<String>,
    /// Name the faults and what each violates, one a line
    #[arg(long, conflicts_with_all = ["http", "broken"])]
    list_broken: bool,
}

impl Demo {
    pub(super) fn run(&self) -> Result<u8> {
        if self.list_broken {
            let mut list = String::new();
            for fault in Fault::ALL {
                _ = writeln!(list, "{}: {}", fault.name(), fault.violates());
            }
            output::stdout(list.as_bytes())?;
            return Ok(0);
        }
        let broken = self.broken.as_deref().map(fault).transpose()?;
        // One thread is enough to answer one client, and starts sooner than several.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::unfinished(format!("the server cannot be started: {error}")))?;
        signals::until_interrupted(runtime, async {
            match self.http {
                Some(address) => {
                    let ready = |address: SocketAddr| console::note(&format!("listening on http://{address}/mcp"));
                    demo::serve_http(address, broken, ready).await
                }
                None => demo::serve_stdio(broken).await,
            }
        })?;
        Ok(0)
    }
}
