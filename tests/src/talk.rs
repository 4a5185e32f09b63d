//! One client and one server, line by line: to record what they say, and to measure what recording costs.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::process::{Pid, Signal, getpid, kill_process};
use serde_json::{Value, json};

use crate::run::PATIENCE;

/// The server: `line-server`. A tool's name says what its call does: `fail`, `deny`, `silent`, `die`, `large`,
/// `environment`; any other succeeds.
pub fn serve() -> ExitCode {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (Some(id), Some(method)) = (message.get("id"), message.get("method")) else { continue };
        let params = message.get("params").unwrap_or(&Value::Null);
        let text = |text: &str| json!({"type": "text", "text": text});
        let answer = match (method.as_str(), params["name"].as_str()) {
            (Some("tools/list"), _) => json!({"result": {"tools": [{"name": "read", "inputSchema": {"properties": {
                "path": {"type": "string"}, "mode": {"enum": ["fast", "slow"]}}}}]}}),
            (_, Some("fail")) => {
                let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
                let first = params["arguments"].get("first").map_or(image, |_| text(""));
                json!({"result": {"isError": true, "content": [first, text(&params["arguments"]["text"].to_string())]}})
            }
            (_, Some("deny")) => {
                json!({"error": {"code": -32001, "message": params["arguments"].to_string(), "data": {"retryable": true}}})
            }
            (_, Some("silent")) => continue,
            (_, Some("die")) => {
                // It does not return.
                _ = kill_process(getpid(), Signal::KILL);
                continue;
            }
            (_, Some("large")) => {
                let bytes = params["arguments"]["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
                json!({"result": {"content": [text(&"x".repeat(bytes.unwrap_or_default()))]}})
            }
            (_, Some("environment")) => {
                let names: Vec<String> =
                    std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
                json!({"result": {"content": [text(&names.join(" "))]}})
            }
            _ => json!({"result": {"content": []}}),
        };
        let mut answer = answer;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.clone();
        let written = writeln!(out, "{answer}").and_then(|()| out.flush());
        if written.is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The client: a process whose pipes it holds.
#[derive(Debug)]
pub struct Talk {
    child: Option<Child>,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    stderr: thread::JoinHandle<String>,
    next: u64,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// What it wrote on standard output that nobody read.
    pub rest: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl Talk {
    /// Starts a process.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stderr = child.stderr.take().expect("it is piped");
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            _ = BufReader::new(stderr).read_to_string(&mut text);
            text
        });
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child: Some(child), input, output, stderr, next: 0 }
    }

    /// Writes bytes; the error says that nobody reads them.
    ///
    /// # Errors
    /// When the other end is closed.
    ///
    /// # Panics
    /// When the input was closed.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes).and_then(|()| input.flush())
    }

    /// Reads that many bytes.
    ///
    /// # Panics
    /// When there are not as many.
    pub fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.output.as_mut().expect("the output is open").read_exact(&mut bytes).expect("as many bytes");
        bytes
    }

    /// Reads a line without its newline; empty at the end.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().expect("the output is open").read_line(&mut line).expect("a line");
        line.trim_end_matches('\n').to_owned()
    }

    /// Sends a request without waiting; gives its id.
    ///
    /// # Panics
    /// When nobody reads it.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.write(format!("{request}\n").as_bytes()).expect("a server that reads");
        self.next
    }

    /// Calls a tool and gives the answer.
    ///
    /// # Panics
    /// When the next line is not the answer.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.send("tools/call", &json!({"name": tool, "arguments": arguments}));
        self.answer(id)
    }

    /// The answer to a request, which must be the next line.
    ///
    /// # Panics
    /// When it is not.
    pub fn answer(&mut self, id: u64) -> Value {
        let line = self.line();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(answer["id"], json!(id), "{line}");
        answer
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            // One that has ended needs none.
            _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// Closes its input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Takes its input, to write from elsewhere; it ends when that is dropped.
    ///
    /// # Panics
    /// When the input was closed.
    pub fn take_input(&mut self) -> ChildStdin {
        self.input.take().expect("the input is open")
    }

    /// Closes its output.
    pub fn close_output(&mut self) {
        self.output = None;
    }

    /// Waits for its end with whatever is still open.
    ///
    /// # Panics
    /// When it does not end in time; it is then killed.
    pub fn wait(mut self) -> Ended {
        let child = self.child.take().expect("it was not waited for");
        let output = self.output.take();
        let rest = thread::spawn(move || {
            let mut rest = Vec::new();
            _ = output.map(|mut output| output.read_to_end(&mut rest));
            rest
        });
        let status = exit(child);
        drop(self.input.take());
        let rest = rest.join().expect("a thread that reads");
        Ended { status, rest, stderr: self.stderr.join().expect("a thread that reads") }
    }

    /// Waits for its end, whoever still holds its streams.
    ///
    /// # Panics
    /// When it does not end in time; it is then killed.
    pub fn wait_for_exit(mut self) -> ExitStatus {
        exit(self.child.take().expect("it was not waited for"))
    }

    /// Closes its input and waits for its end.
    ///
    /// # Panics
    /// As [`Talk::wait`].
    pub fn end(mut self) -> Ended {
        self.close_input();
        self.wait()
    }
}

fn exit(mut child: Child) -> ExitStatus {
    let pid = Pid::from_child(&child);
    let (ended, is_ended) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait()));
    let Ok(Ok(status)) = is_ended.recv_timeout(PATIENCE) else {
        _ = kill_process(pid, Signal::KILL);
        panic!("it did not end within {PATIENCE:?}");
    };
    status
}

/// The lines of all journals of calls in a home, oldest first.
///
/// # Panics
/// When one cannot be read.
pub fn journal(home: &Path) -> Vec<String> {
    let mut files: Vec<_> = fs::read_dir(home.join("store"))
        .map(|entries| entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect())
        .unwrap_or_default();
    files.sort();
    let read = |file| fs::read_to_string(file).expect("a journal");
    files.iter().map(read).collect::<String>().lines().map(str::to_owned).collect()
}

/// The records in a home.
///
/// # Panics
/// When a line is none.
pub fn records(home: &Path) -> Vec<Value> {
    let read = |line: &String| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    journal(home).iter().map(read).collect()
}
