//! `mcpeval shim-http`.

use std::net::SocketAddr;

use clap::Args;

use super::options::label;
use super::settings::Settings;
use super::{console, signals};
use crate::capture::record::Recorder;
use crate::capture::shim_http::tape::Tape;
use crate::capture::shim_http::{self, Shim};
use crate::error::{Error, Result};
use crate::report::document::Label;
use crate::wire::http::{Endpoint, EndpointError, HttpWire};

/// The name of the session of requests without a session id.
const SESSION: &str = "MCPEVAL_SESSION";

const EXAMPLE: &str = "\
Example:
  mcpeval shim-http --server shop --listen 127.0.0.1:8092 --upstream http://127.0.0.1:3000/mcp

Clients connect to http://127.0.0.1:8092/mcp. Each answer is passed on as it comes; what is recorded is the shape of the
traffic, never its content. A record that cannot be written is dropped and counted; traffic goes on.

Exit codes:
  2  usage: arguments, a listener that is not loopback, an upstream that is remote without leave or without TLS
  3  the address is in use, I/O
  130, 143  ended by SIGINT, SIGTERM";

/// Record what passes between clients and a server over HTTP
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct ShimHttp {
    /// Label of the server in records, of A-Z a-z 0-9 _ . : -
    #[arg(long, value_name = "LABEL", value_parser = label)]
    server: Label,
    /// Listen at this loopback address; port 0 takes a free one, which is printed on stderr
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
    /// Streamable HTTP endpoint of the server that requests are passed on to, loopback unless allowed otherwise
    #[arg(long, value_name = "URL")]
    upstream: String,
    /// Permit a remote HTTPS server; remote plain HTTP is always refused
    #[arg(long)]
    allow_remote_http: bool,
}

impl ShimHttp {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let endpoint = Endpoint::new(&self.upstream, Vec::new(), self.allow_remote_http).map_err(refused)?;
        let upstream = HttpWire::new(endpoint).map_err(|error| Error::unfinished(format!("--upstream: {error}")))?;
        // One thread passes everything on, another reads the copies: bytes do not change hands more often than they must.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::unfinished(format!("the recorder cannot be started: {error}")))?;
        let listener = runtime.block_on(shim_http::bind(self.listen))?;
        let address = listener
            .local_addr()
            .map_err(|error| Error::unfinished(format!("cannot listen on {}: {error}", self.listen)))?;
        let home = settings.store()?;
        let folder = home.root().display().to_string();
        let (tape, reading) = match Recorder::start(home, self.server.as_str().to_owned()) {
            Ok(recorder) => {
                console::note(&format!("recording {} in {folder}", self.server.as_str()));
                let session = std::env::var(SESSION).ok().filter(|session| !session.is_empty());
                let (tape, reading) = Tape::start(recorder, session.as_deref());
                (tape, Some(reading))
            }
            Err(error) => {
                console::warning(&format!("nothing is recorded: {error}"));
                (Tape::without_recorder(), None)
            }
        };
        console::note(&format!("listening on http://{address}/mcp"));
        let shim = Shim::new(upstream, tape.clone());
        let ended = signals::until_interrupted(runtime, async {
            shim.serve(listener).await;
            Ok(())
        });
        if let Some(reading) = reading {
            if let Some(sentence) = reading.finish().sentence() {
                console::warning(&sentence);
            }
            report(tape.dropped(), "copies of traffic were dropped: the recorder lagged behind");
        }
        ended.map(|()| 0)
    }
}

fn report(count: u64, what: &str) {
    if count > 0 {
        console::warning(&format!("{count} {what}"));
    }
}

fn refused(error: EndpointError) -> Error {
    Error::usage(match error {
        EndpointError::Credentials => "--upstream: the URL holds a user name or password; leave them out, as the \
            Authorization header of each client is passed on"
            .to_owned(),
        EndpointError::Remote(host) => {
            format!("--upstream: {host} is not this machine; add --allow-remote-http to record a remote server")
        }
        other => format!("--upstream: {other}"),
    })
}
