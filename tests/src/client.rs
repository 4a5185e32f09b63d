//! A client that writes lines to a program and reads the lines that come back, and waits for each answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::run::PATIENCE;

/// A program at the other end of two pipes; killed when dropped.
#[derive(Debug)]
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    stderr: Option<thread::JoinHandle<String>>,
    next_id: u64,
}

/// How the program ended, and what it wrote besides answers.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Lines that nobody asked for or waited for.
    pub lines: Vec<String>,
    /// Standard error.
    pub stderr: String,
}

impl Client {
    /// Starts a program.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let (sender, lines) = mpsc::channel();
        let stdout = child.stdout.take().expect("it is piped");
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        let mut stderr = child.stderr.take().expect("it is piped");
        let stderr = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = std::io::Read::read_to_end(&mut stderr, &mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let input = child.stdin.take();
        Self { child, input, lines, stderr: Some(stderr), next_id: 0 }
    }

    /// Writes one line; false if nobody reads any more.
    pub fn line(&mut self, text: &str) -> bool {
        self.input.as_mut().is_some_and(|input| input.write_all(format!("{text}\n").as_bytes()).is_ok())
    }

    /// The next line of the program; none at its end.
    ///
    /// # Panics
    /// When neither comes.
    pub fn next_line(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("neither a line nor the end came"),
        }
    }

    /// Sends a request and waits for its answer; none if the program ended without it.
    pub fn ask(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        while let Some(line) = self.next_line() {
            if let Ok(answer) = serde_json::from_str::<Value>(&line)
                && answer["id"] == json!(id)
                && answer.get("method").is_none()
            {
                return Some(answer);
            }
        }
        None
    }

    /// Calls a tool.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Option<Value> {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Opens the session and lists the tools, as every client does.
    ///
    /// # Panics
    /// When the server does not answer.
    pub fn greet(&mut self) {
        let client = json!({"name": "tests", "version": "1.0.0"});
        let offer = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        assert!(self.ask("initialize", &offer).is_some(), "no answer to initialize");
        self.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(self.ask("tools/list", &json!({})).is_some(), "no answer to tools/list");
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        // A process that has ended needs none.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Closes its input and waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    pub fn finish(mut self) -> Ended {
        drop(self.input.take());
        let mut lines = Vec::new();
        while let Some(line) = self.next_line() {
            lines.push(line);
        }
        let deadline = std::time::Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(std::time::Instant::now() < deadline, "it closed its output and did not end");
            thread::sleep(Duration::from_millis(2));
        };
        let stderr = self.stderr.take().map(|thread| thread.join().unwrap_or_default()).unwrap_or_default();
        Ended { code: status.code(), lines, stderr }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
