//! HTTP by hand on both sides of a recorder: servers that do what no library would, and callers that see every byte.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::run::{PATIENCE, Place};

/// A request as a server sees it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The request line and the headers, without the empty line.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// Reads one request; none at the end of the connection.
    fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let mut request = Self { head: head.trim_end().to_owned(), body: Vec::new() };
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        request.body = vec![0; length];
        stream.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// The value of the first header of that name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = |line: &'_ str| line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name));
        Some(self.head.lines().skip(1).find(|line| field(line))?.split_once(':')?.1.trim())
    }

    /// The names of its headers, in lower case and sorted.
    pub fn header_names(&self) -> Vec<String> {
        let names = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let mut names: Vec<String> = names.map(|(name, _)| name.to_ascii_lowercase()).collect();
        names.sort();
        names
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A server by hand. Its threads end with the test's process.
#[derive(Debug)]
pub struct Upstream {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Upstream {
    /// Gives each request to the handler with its connection, on a thread of the connection.
    ///
    /// # Panics
    /// When the machine gives no port.
    pub fn start(handler: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("a port");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (handler, list) = (Arc::new(handler), Arc::clone(&seen));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (handler, list) = (Arc::clone(&handler), Arc::clone(&list));
                thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    let Ok(mut writer) = stream.try_clone() else { return };
                    let mut reader = BufReader::new(stream);
                    while let Some(request) = Request::read(&mut reader) {
                        list.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
                        handler(&request, &mut writer);
                    }
                });
            }
        });
        Self { address, seen }
    }

    /// Its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What it received so far.
    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Writes an answer whose length is known.
pub fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: impl AsRef<[u8]>) {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    // A caller that has left is what some tests are about.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

/// Writes a JSON answer.
pub fn reply_json(stream: &mut TcpStream, body: &Value) {
    reply(stream, "200 OK", "Content-Type: application/json\r\n", body.to_string());
}

/// Begins a chunked event stream.
pub fn begin_events(stream: &mut TcpStream, headers: &str) {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n{headers}\r\n");
    let _ = stream.write_all(head.as_bytes());
}

/// Writes one chunk; an empty one ends the body. Whether it was taken.
pub fn chunk(stream: &mut TcpStream, bytes: impl AsRef<[u8]>) -> bool {
    let bytes = bytes.as_ref();
    let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    stream.write_all(&chunk).is_ok()
}

/// Waits until the other side has ended the connection.
pub fn wait_for_end(stream: &mut TcpStream) -> bool {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    match stream.read(&mut [0]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// `mcpeval shim-http` on a free port, killed when dropped.
#[derive(Debug)]
pub struct ShimHttp {
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
    stderr: Option<thread::JoinHandle<String>>,
}

impl ShimHttp {
    /// Starts it before a server, with the environment of a place.
    ///
    /// # Panics
    /// When it does not say where it listens.
    pub fn start(place: &Place, upstream: &str) -> Self {
        let arguments = ["shim-http", "--server", "shop", "--listen", "127.0.0.1:0", "--upstream", upstream];
        Self::of(place.mcpeval(arguments))
    }

    /// Starts that command, which says where it listens in the same words.
    ///
    /// # Panics
    /// When it does not say where it listens.
    pub fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stderr = child.stderr.take().expect("its stderr");
        let (sender, port) = mpsc::channel();
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some(address) = line.strip_prefix("listening on http://") {
                    let _ = sender.send(address.trim_end_matches("/mcp").parse());
                }
                text.push_str(&line);
                text.push('\n');
            }
            text
        });
        let Ok(Ok(address)) = port.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            panic!("it does not listen: {}", stderr.join().unwrap_or_default());
        };
        Self { address, child, stderr: Some(stderr) }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it by a signal; its exit code and stderr.
    ///
    /// # Panics
    /// When it does not end.
    pub fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
        let code = self.child.wait().expect("it ends").code();
        let stderr = self.stderr.take().and_then(|stderr| stderr.join().ok()).unwrap_or_default();
        (code, stderr)
    }

    /// A connection to it.
    ///
    /// # Panics
    /// When there is none.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        stream
    }

    /// Sends bytes and reads what comes until the end of the connection.
    pub fn raw(&self, bytes: impl AsRef<[u8]>) -> String {
        String::from_utf8_lossy(&self.bytes(bytes)).into_owned()
    }

    /// As [`ShimHttp::raw`], byte for byte.
    pub fn bytes(&self, bytes: impl AsRef<[u8]>) -> Vec<u8> {
        let mut stream = self.connect();
        // It may answer and close before everything is sent.
        let _ = stream.write_all(bytes.as_ref());
        let mut answer = Vec::new();
        // What was read before a reset counts.
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// A POST of a JSON text on a connection of its own; the whole answer.
    pub fn post(&self, headers: &str, body: &str) -> String {
        self.raw(post(headers, body))
    }
}

impl Drop for ShimHttp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request that ends its connection.
pub fn request(method: &str, headers: &str) -> String {
    format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
}

/// A POST of a JSON text that ends its connection.
pub fn post(headers: &str, body: &str) -> String {
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}\r\n{headers}", body.len());
    request("POST", &headers) + body
}

/// What comes until the end of the connection.
pub fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // What was read before a reset counts.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until that text has come; what was read.
///
/// # Panics
/// When the connection ends before.
pub fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(text.as_bytes()) {
        match stream.read(&mut byte) {
            Ok(1) => bytes.push(byte[0]),
            other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&bytes)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The body of a chunked answer, put together.
///
/// # Panics
/// When it is no such answer, or not complete.
pub fn unchunked(answer: &[u8]) -> String {
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").expect("a head");
    let (mut rest, mut whole) = (&answer[end + 4..], Vec::new());
    loop {
        let end = rest.windows(2).position(|part| part == b"\r\n").expect("the size of a chunk");
        let size = str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("the size of a chunk");
        if size == 0 {
            return String::from_utf8(whole).expect("text");
        }
        whole.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + size + 4..];
    }
}

/// Ends a connection, as a caller that leaves does.
pub fn leave(stream: TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

/// The records in the home of a place, in the order of the journals.
///
/// # Panics
/// When a line of a journal is none.
pub fn records(place: &Place) -> Vec<Value> {
    let store = place.path().join("home/.mcp-eval/store");
    let mut files: Vec<_> = fs::read_dir(store).map(|entries| entries.flatten().collect()).unwrap_or_default();
    files.sort_by_key(fs::DirEntry::file_name);
    let calls = files.iter().filter(|entry| entry.file_name().to_string_lossy().starts_with("calls-"));
    let text: String = calls.map(|entry| fs::read_to_string(entry.path()).unwrap_or_default()).collect();
    text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

/// Waits until there are so many records, which a thread of the recorder writes in its own time.
///
/// # Panics
/// When they do not come.
pub fn wait_for_records(place: &Place, count: usize) -> Vec<Value> {
    let mut found = Vec::new();
    for _ in 0..PATIENCE.as_millis() / 20 {
        found = records(place);
        if found.len() >= count {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{count} records were awaited, and these came: {found:?}")
}

/// Whether a text stands in any file of a folder.
pub fn occurs_in(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            occurs_in(&path, text)
        } else {
            fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        }
    })
}
