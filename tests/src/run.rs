//! Runs the program under test in a place of its own: home, temporary folder, journal. Every wait is bounded.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use wait4::{ResUse, Wait4 as _};

use crate::machine;
use crate::report::Report;
use crate::servers::good::JOURNAL;

/// The longest that one run may take. Far above what any needs, so that only a hang meets it.
pub const PATIENCE: Duration = Duration::from_mins(4);

/// The longest that processes and folders may outlive the program: the steps of ending a server, and slack.
pub const SETTLING: Duration = Duration::from_secs(20);

/// The programs that Cargo built for a test; made by [`programs!`](crate::programs).
#[derive(Debug, Clone, Copy)]
pub struct Programs {
    /// mcpeval.
    pub mcpeval: &'static str,
    /// The fixture servers.
    pub server: &'static str,
}

/// The programs that Cargo built for this test.
#[macro_export]
macro_rules! programs {
    () => {
        $crate::run::Programs {
            mcpeval: env!("CARGO_BIN_EXE_mcpeval-under-test"),
            server: env!("CARGO_BIN_EXE_fixture-server"),
        }
    };
}

/// How a run ended and what it wrote.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// From start to end.
    pub wall: Duration,
    /// What it and the processes that it waited for used.
    pub usage: ResUse,
}

impl Outcome {
    /// The report on standard output.
    ///
    /// # Panics
    /// When there is none.
    pub fn report(&self) -> Report {
        Report::read(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}; exit code {:?}, stderr:\n{}", self.code, self.stderr))
    }
}

/// A run under way.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    started: Instant,
    ended: mpsc::Receiver<ResUse>,
    stdout: thread::JoinHandle<Vec<u8>>,
    stderr: thread::JoinHandle<Vec<u8>>,
}

impl Running {
    /// Starts a command with nothing on its standard input.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let pid = Pid::from_child(&child);
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || child.wait4().map(|usage| sender.send(usage)));
        Self { pid, started, ended, stdout, stderr }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        // A process that has ended needs none; the outcome tells.
        let _ = kill_process(self.pid, signal);
    }

    /// The process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When it takes longer than the limit; the process is then killed.
    pub fn finish(self, limit: Duration) -> Outcome {
        let Ok(usage) = self.ended.recv_timeout(limit) else {
            self.signal(Signal::KILL);
            let _ = self.ended.recv_timeout(SETTLING);
            let stderr = self.stderr.join().unwrap_or_default();
            panic!("it ran longer than {limit:?}; stderr:\n{}", String::from_utf8_lossy(&stderr));
        };
        let wall = self.started.elapsed();
        let text = |thread: thread::JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&thread.join().unwrap_or_default()).into_owned()
        };
        Outcome {
            code: usage.status.code(),
            signal: usage.status.signal(),
            stdout: text(self.stdout),
            stderr: text(self.stderr),
            wall,
            usage,
        }
    }
}

fn drain(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What was read before an error is still worth showing.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// A place of its own for the runs of one test, removed with all its processes when dropped.
#[derive(Debug)]
pub struct Place {
    root: TempDir,
    programs: Programs,
}

impl Place {
    /// A fresh place.
    ///
    /// # Panics
    /// When the machine gives no temporary folder.
    pub fn new(programs: Programs) -> Self {
        let root = tempfile::Builder::new().prefix("mcpeval-tests-").tempdir().expect("a temporary folder");
        for folder in ["home", "tmp"] {
            fs::create_dir(root.path().join(folder)).expect("a folder in a fresh temporary folder");
        }
        Self { root, programs }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// The temporary folder that the program sees.
    pub fn temp(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// The file in which fixture servers note what they receive.
    pub fn journal(&self) -> PathBuf {
        self.root.path().join("journal")
    }

    /// The lines of the journal.
    pub fn journal_lines(&self) -> Vec<String> {
        fs::read_to_string(self.journal()).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Writes a file here and gives its path.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.path().join(name);
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        path
    }

    /// The program of the fixture servers.
    pub fn fixture(&self) -> &'static str {
        self.programs.server
    }

    /// A command with the environment of this place.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for name in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MCPEVAL_")) {
            command.env_remove(name);
        }
        command
            .current_dir(self.root.path())
            .env("HOME", self.root.path().join("home"))
            .env("TMPDIR", self.temp())
            .env("NO_COLOR", "1")
            .env(JOURNAL, self.journal());
        command
    }

    /// mcpeval with those arguments.
    pub fn mcpeval<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.command(self.programs.mcpeval);
        command.args(arguments);
        command
    }

    /// Runs mcpeval to its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Outcome {
        Running::start(self.mcpeval(arguments)).finish(PATIENCE)
    }

    /// `mcpeval score --format json OPTIONS -- fixture-server NAME`.
    pub fn score_command(&self, options: &[&str], server: &str) -> Command {
        let mut command = self.mcpeval(["score", "--format", "json"]);
        command.args(options).args(["--", self.programs.server, server]);
        command
    }

    /// Scores a fixture server over standard input and output.
    pub fn score(&self, options: &[&str], server: &str) -> Outcome {
        Running::start(self.score_command(options, server)).finish(PATIENCE)
    }

    /// Runs `mcpeval COMMAND OPTIONS -- fixture-server NAME`.
    pub fn on(&self, command: &str, options: &[&str], server: &str) -> Outcome {
        let mut command = self.mcpeval([command]);
        command.args(options).args(["--", self.programs.server, server]);
        Running::start(command).finish(PATIENCE)
    }

    /// Runs `mcpeval COMMAND OPTIONS --url` on a fixture server over HTTP.
    pub fn on_http(&self, command: &str, options: &[&str], server: &str) -> Outcome {
        let fixture = self.serve(server);
        self.run([&[command][..], options, &["--url", &fixture.url]].concat())
    }

    /// Scores a fixture server over HTTP.
    pub fn score_http(&self, options: &[&str], server: &str) -> Outcome {
        let fixture = self.serve(server);
        self.score_url(options, &fixture.url)
    }

    /// Scores what answers at a URL.
    pub fn score_url(&self, options: &[&str], url: &str) -> Outcome {
        let mut command = self.mcpeval(["score", "--format", "json"]);
        command.args(options).args(["--url", url]);
        Running::start(command).finish(PATIENCE)
    }

    /// `mcpeval probe --format json OPTIONS --manifest FILE -- fixture-server NAME`.
    pub fn probe_command(&self, manifest: &Path, options: &[&str], server: &str) -> Command {
        let mut command = self.mcpeval(["probe", "--format", "json"]);
        command.args(options).arg("--manifest").arg(manifest).args(["--", self.programs.server, server]);
        command
    }

    /// Runs the cases of a manifest on a fixture server over standard input and output.
    pub fn probe(&self, manifest: &Value, options: &[&str], server: &str) -> Outcome {
        let file = self.file("manifest.json", manifest.to_string());
        Running::start(self.probe_command(&file, options, server)).finish(PATIENCE)
    }

    /// Runs the cases of a manifest on a fixture server over HTTP.
    pub fn probe_http(&self, manifest: &Value, options: &[&str], server: &str) -> Outcome {
        let file = self.file("manifest.json", manifest.to_string());
        let fixture = self.serve(server);
        let mut command = self.mcpeval(["probe", "--format", "json"]);
        command.args(options).arg("--manifest").arg(file).args(["--url", &fixture.url]);
        Running::start(command).finish(PATIENCE)
    }

    /// Starts a fixture server over HTTP.
    ///
    /// # Panics
    /// When it does not start.
    pub fn serve(&self, server: &str) -> Served {
        let mut child = self
            .command(self.programs.server)
            .args([server, "--http"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start the fixture server: {error}"));
        let mut url = String::new();
        if let Some(stdout) = child.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut url);
        }
        let input = child.stdin.take();
        assert!(url.starts_with("http://"), "the fixture server {server} did not say where it listens");
        Served { url: url.trim_end().to_owned(), input, child }
    }

    /// What is left in the temporary folder.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        fs::read_dir(self.temp())
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default()
    }

    /// Whether every process has ended and the temporary folder is empty again; the error lists what is left.
    pub fn clean(&self) -> Result<(), String> {
        let left = machine::survivors_of(self.path(), SETTLING);
        let folders = self.leftovers();
        if left.is_empty() && folders.is_empty() {
            return Ok(());
        }
        let list: Vec<String> = left.iter().map(ToString::to_string).collect();
        Err(format!("these processes are left: {}; these folders: {folders:?}\n", list.join(", ")))
    }

    /// Fails unless the place is [clean](Self::clean).
    ///
    /// # Panics
    /// When something is left.
    pub fn assert_clean(&self) {
        if let Err(left) = self.clean() {
            panic!("{left}");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        machine::sweep(self.path());
    }
}

/// A fixture server over HTTP, ended when dropped.
#[derive(Debug)]
pub struct Served {
    /// Where it listens.
    pub url: String,
    input: Option<ChildStdin>,
    child: Child,
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A pipe with a name, to be woken by what a server notes in it instead of waiting for time to pass.
#[derive(Debug)]
pub struct Bell {
    lines: mpsc::Receiver<String>,
}

impl Bell {
    /// Makes the journal of a place such a pipe.
    ///
    /// # Panics
    /// When the pipe cannot be made.
    pub fn hang(place: &Place) -> Self {
        let path = place.journal();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).expect("a named pipe");
        // Open for both, so that neither side waits for the other.
        let pipe = File::options().read(true).write(true).open(&path).expect("the named pipe");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { lines }
    }

    /// Waits for a line.
    ///
    /// # Panics
    /// When it does not come.
    pub fn wait_for(&self, wanted: &str) {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if line == wanted {
                return;
            }
        }
        panic!("no server noted {wanted}");
    }
}
