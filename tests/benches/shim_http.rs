//! What `shim-http` adds to the first byte of an answer, and whether its memory stays flat:
//! `cargo bench --workspace --bench shim_http`.

use std::fs;
use std::io::{self, BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use mcpeval_tests::bench::median;
use mcpeval_tests::programs;
use mcpeval_tests::run::Place;
use mcpeval_tests::upstream::{ShimHttp, Upstream, begin_events, chunk, reply_json};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Requests each way, in turn.
const ROUNDS: u32 = 2_000;
/// Requests between the two looks at the memory.
const MANY: u32 = 10_000;
const EVENTS: &str = "text/event-stream";

fn main() -> io::Result<()> {
    // Cargo says `--bench`; a test run of all targets does not mean to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let upstream = Upstream::start(|request, stream| {
        let answer = json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": {"content": []}});
        if request.header("accept") == Some(EVENTS) {
            begin_events(stream, "");
            chunk(stream, format!("data: {answer}\n\n"));
            chunk(stream, "");
        } else {
            reply_json(stream, &answer);
        }
    });
    let place = Place::new(programs!());
    let shim = ShimHttp::start(&place, &upstream.url());
    for (name, accept) in [("JSON", "application/json"), ("event stream", EVENTS)] {
        let (mut direct, mut through) = (Caller::new(upstream.address, accept)?, Caller::new(shim.address, accept)?);
        let (mut alone, mut recorded) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            alone.push(direct.first_byte()?);
            recorded.push(through.first_byte()?);
        }
        let (alone, recorded) = (median(alone.into_iter()), median(recorded.into_iter()));
        writeln!(
            out,
            "first byte of a {name} answer, median of {ROUNDS}: {} us against {} us direct, ratio {:.2}, added {} us",
            recorded.as_micros(),
            alone.as_micros(),
            recorded.as_secs_f64() / alone.as_secs_f64(),
            recorded.saturating_sub(alone).as_micros(),
        )?;
    }
    let mut caller = Caller::new(shim.address, "application/json")?;
    let before = resident(shim.pid());
    for _ in 0..MANY {
        caller.first_byte()?;
    }
    let after = resident(shim.pid());
    writeln!(
        out,
        "memory over {MANY} requests more: {before} KiB before, {after} KiB after, ratio {:.2} [1.10]",
        f64::from(after) / f64::from(before.max(1)),
    )?;
    let (_, stderr) = shim.end(Signal::TERM);
    if stderr.contains("incomplete") {
        writeln!(out, "{}", stderr.trim_end())?;
    }
    Ok(())
}

/// The resident memory of a process, in KiB.
fn resident(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// A caller on a connection that is kept.
struct Caller {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    /// What the answer ends with.
    end: &'static [u8],
}

impl Caller {
    fn new(address: SocketAddr, accept: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let params = json!({"name": "find", "arguments": {"query": "saw", "limit": 3}});
        let body: Value = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let body = body.to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let end: &[u8] = if accept == EVENTS { b"\r\n0\r\n\r\n" } else { b"}}" };
        Ok(Self { stream: BufReader::new(stream), request: request.into_bytes(), end })
    }

    /// Asks, and reads the whole answer; how long its first byte took.
    fn first_byte(&mut self) -> io::Result<Duration> {
        let since = Instant::now();
        self.stream.get_mut().write_all(&self.request)?;
        let mut answer = vec![0];
        self.stream.read_exact(&mut answer)?;
        let delay = since.elapsed();
        while !answer.ends_with(self.end) {
            let mut byte = [0];
            self.stream.read_exact(&mut byte)?;
            answer.extend(byte);
        }
        Ok(delay)
    }
}
