//! Servers and toolchains of other authors, in pinned versions, as `tests/real/setup` installs them.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::run::{PATIENCE, Place};

/// The variable that names their folder.
pub const FOLDER: &str = "MCPEVAL_TEST_REAL_DIR";

/// The variable that, when it is `required`, makes their absence a failure.
pub const WANTED: &str = "MCPEVAL_TEST_REAL";

/// What is installed.
#[derive(Debug, Clone)]
pub struct Real {
    folder: PathBuf,
}

impl Real {
    /// The installed servers; without them a line on standard error, which no test runner captures, says so.
    ///
    /// # Panics
    /// When they are required and missing.
    pub fn find(what: &str) -> Option<Self> {
        Self::with(what, &[&Self::script("memory"), "python/bin/mcp-server-time"])
    }

    /// The installed toolchains of guest languages; without them the same as without servers.
    ///
    /// # Panics
    /// When they are required and missing.
    pub fn find_toolchains(what: &str) -> Option<Self> {
        Self::with(what, &["npm/node_modules/.bin/componentize-qjs", "python/bin/componentize-py"])
    }

    /// The installed validators, with the published schemas of SARIF and `JUnit`; without them the same as without servers.
    ///
    /// # Panics
    /// When they are required and missing.
    pub fn find_validators(what: &str) -> Option<Self> {
        Self::with(what, &["python/bin/check-jsonschema", "schemas/sarif-2.1.0.json", "schemas/junit-10.xsd"])
    }

    /// What drives a browser and reads markdown; without it the same as without servers.
    ///
    /// # Panics
    /// When it is required and missing.
    pub fn find_browser(what: &str) -> Option<Self> {
        Self::with(
            what,
            &["puppeteer-core", "axe-core", "marked"]
                .map(|name| format!("npm/node_modules/{name}"))
                .each_ref()
                .map(String::as_str),
        )
    }

    /// The installed validator of documents by published schemas; without it the same as without servers.
    ///
    /// # Panics
    /// When it is required and missing.
    pub fn find_validator(what: &str) -> Option<Self> {
        Self::with(what, &["python/bin/check-jsonschema"])
    }

    /// Whether the machine has a program; without it a line says so, or the test fails, as for servers.
    ///
    /// # Panics
    /// When it is required and missing.
    pub fn has_program(program: &str) -> bool {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&paths).any(|folder| folder.join(program).is_file());
        if !found {
            Self::skip(&format!("SKIPPED a test: {program} is not installed\n"));
        }
        found
    }

    /// Says that a test could not be made here, or fails, as for servers.
    ///
    /// # Panics
    /// When everything is required.
    pub fn skipped(what: &str) {
        Self::skip(&format!("SKIPPED {what}\n"));
    }

    fn skip(line: &str) {
        assert!(std::env::var_os(WANTED).is_none_or(|wanted| wanted != "required"), "{line}");
        // Not captured, and lost only when nobody could read it.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn with(what: &str, files: &[&str]) -> Option<Self> {
        let folder = std::env::var_os(FOLDER)
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("real/installed"), PathBuf::from);
        let missing: Vec<String> = files
            .iter()
            .map(|file| folder.join(file))
            .filter(|path| !path.exists())
            .map(|path| path.display().to_string())
            .collect();
        if missing.is_empty() {
            return Some(Self { folder });
        }
        Self::skip(&format!("SKIPPED {what}: {} is missing; tests/real/setup installs it\n", missing.join(" and ")));
        None
    }

    /// The official clients of Python and TypeScript, with the published servers; without them the same as without servers.
    ///
    /// # Panics
    /// When they are required and missing.
    pub fn find_clients(what: &str) -> Option<Self> {
        Self::with(
            what,
            &[
                &Self::script("memory"),
                "python/bin/mcp-server-time",
                "python/bin/mcp",
                "npm/node_modules/@modelcontextprotocol/sdk",
            ],
        )
    }

    /// The command of the official Python client that makes the calls of a file; the target follows.
    pub fn python_client(&self, calls: &Path) -> Vec<OsString> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("real/client.py");
        vec![self.tool("python/bin/python").into(), script.into(), calls.into()]
    }

    /// The command of the official TypeScript client that makes the calls of a file; the target follows.
    pub fn node_client(&self, calls: &Path) -> Vec<OsString> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("real/client.mjs");
        let sdk = self.tool("npm/node_modules/@modelcontextprotocol/sdk");
        vec!["node".into(), script.into(), sdk.into(), calls.into()]
    }

    fn script(name: &str) -> String {
        format!("npm/node_modules/@modelcontextprotocol/server-{name}/dist/index.js")
    }

    /// A file of what is installed.
    pub fn tool(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// The command of a server on Node.
    pub fn node(&self, name: &str) -> Vec<OsString> {
        vec!["node".into(), self.tool(&Self::script(name)).into()]
    }

    /// The command of a server on Python.
    pub fn python(&self, name: &str) -> Vec<OsString> {
        vec![self.tool(&format!("python/bin/mcp-server-{name}")).into()]
    }

    /// The command of the earlier version of a server on Node.
    pub fn earlier(&self, name: &str) -> Vec<OsString> {
        let script = format!("npm/earlier/node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
        vec!["node".into(), self.tool(&script).into()]
    }

    /// `server-everything` over HTTP.
    ///
    /// # Panics
    /// When it does not start.
    pub fn everything_over_http(&self, place: &Place) -> Listening {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let port = port.expect("a port that was free a moment ago").port();
        let command = self.node("everything");
        let mut node = place.command(command.first().expect("the program"));
        node.args(command.get(1..).unwrap_or_default()).arg("streamableHttp").env("PORT", port.to_string());
        Listening::start(node, port)
    }
}

/// A server over HTTP, ended when dropped.
#[derive(Debug)]
pub struct Listening {
    /// Where it listens.
    pub url: String,
    child: Child,
}

impl Listening {
    fn start(mut command: Command, port: u16) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("node");
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, lines) = mpsc::channel();
        // Reads to the end, so that the server never waits for a reader.
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        while !lines.recv_timeout(PATIENCE).expect("the server says that it listens").contains("listening") {}
        Self { url: format!("http://127.0.0.1:{port}/mcp"), child }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
