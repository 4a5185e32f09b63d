//! Stand-in.
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;

use crate::error::Result;
use crate::store::hash::Salt;
use crate::store::record::{CallError, Code, Identity, Kind, Outcome, Record, is_method, timestamp};
use crate::store::{Home, journal};

/// x
#[derive(Debug)]
pub struct Recorder {
    home: Home,
    server: String,
    salt: Salt,
}
/// x
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
    /// x
    pub dropped: u64,
}
impl Recorder {
    /// x
    pub fn start(home: Home, server: String) -> Result<Self> {
        home.prepare()?;
        let salt = Salt::of(&home)?;
        Ok(Self { home, server, salt })
    }
    /// x
    pub fn capture(&self, session: Option<&str>) -> Capture {
        let raw = session.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
        Capture {
            scope: 0,
            inner: Arc::new(Mutex::new(Inner {
                home: self.home.clone(),
                server: self.server.clone(),
                session: self.salt.session(&raw),
                id: uuid::Uuid::new_v4().to_string(),
                seq: 0,
                pending: HashMap::new(),
            })),
        }
    }
    /// x
    pub fn finish(self) -> Summary {
        Summary::default()
    }
}
#[derive(Debug)]
struct Inner {
    home: Home,
    server: String,
    session: String,
    id: String,
    seq: u64,
    pending: HashMap<(u64, String), (String, Option<String>, Instant)>,
}
/// x
#[derive(Debug, Clone)]
pub struct Capture {
    scope: u64,
    inner: Arc<Mutex<Inner>>,
}
impl Inner {
    fn write(&mut self, method: &str, tool: Option<String>, outcome: Outcome, error: Option<i64>, latency: u64) {
        self.seq += 1;
        let record = Record {
            identity: Some(Identity { capture_id: self.id.clone(), event_id: uuid::Uuid::new_v4().to_string() }),
            ts: timestamp(jiff::Timestamp::now()),
            session: self.session.clone(),
            seq: self.seq,
            server: self.server.clone(),
            method: if is_method(method) { method.into() } else { "unlisted".into() },
            tool,
            args: None,
            latency_ms: latency,
            outcome,
            error: error.map(|code| CallError {
                code: Code::Number(code),
                retryable: None,
                layer: None,
                kind: None,
                template: "{message}".into(),
                template_id: "0000000000000000".into(),
            }),
            cancelled: false,
            shim_self_us: None,
            kind: Kind::Real,
        };
        let _ = journal::append_call(&self.home, &record);
    }
}
impl Inner {
    fn take(&mut self, scope: u64, id: &str) -> Option<(String, Option<String>, Instant)> {
        let own = (scope, id.to_owned());
        if let Some(found) = self.pending.remove(&own) {
            return Some(found);
        }
        let other = self.pending.keys().find(|key| key.1 == id).cloned()?;
        self.pending.remove(&other)
    }
}
impl Capture {
    /// x
    pub fn forget(&self) {
        let scope = self.scope;
        self.inner.lock().unwrap().pending.retain(|key, _| key.0 != scope);
    }
    /// x
    #[must_use]
    pub fn within(&self, scope: u64) -> Self {
        Self { scope, inner: Arc::clone(&self.inner) }
    }
    /// x
    pub fn from_client(&self, message: &[u8], at: Instant) {
        let Ok(value) = serde_json::from_slice::<Value>(message) else { return self.unparsed_outbound() };
        let all = if let Value::Array(all) = value { all } else { vec![value] };
        for one in all {
            if let (Some(id), Some(method)) = (one.get("id"), one["method"].as_str()) {
                let tool = one["params"]["name"].as_str().map(str::to_owned).filter(|_| method == "tools/call");
                self.inner.lock().unwrap().pending.insert((self.scope, id.to_string()), (method.into(), tool, at));
            }
        }
    }
    /// x
    pub fn from_server(&self, message: &[u8], at: Instant) {
        let Ok(value) = serde_json::from_slice::<Value>(message) else { return self.unparsed_inbound() };
        let all = if let Value::Array(all) = value { all } else { vec![value] };
        let mut inner = self.inner.lock().unwrap();
        for one in all {
            match (one.get("id"), one["method"].as_str()) {
                (None, Some(method)) => inner.write(method, None, Outcome::Unknown, None, 0),
                (Some(id), None) => {
                    if let Some((method, tool, since)) = inner.take(self.scope, &id.to_string()) {
                        let error = one["error"]["code"].as_i64();
                        let outcome = if error.is_some() { Outcome::Error } else { Outcome::Ok };
                        let latency = at.duration_since(since).as_millis() as u64;
                        inner.write(&method, tool, outcome, error, latency);
                    }
                }
                _ => {}
            }
        }
    }
    /// x
    pub fn unparsed_outbound(&self) {
        self.inner.lock().unwrap().write("unparsed/outbound", None, Outcome::Unparsed, None, 0);
    }
    /// x
    pub fn unparsed_inbound(&self) {
        self.inner.lock().unwrap().write("unparsed/inbound", None, Outcome::Unparsed, None, 0);
    }
    /// x
    pub fn unanswered(&self) {
        let scope = self.scope;
        self.flush(|key| key.0 == scope);
    }
    /// x
    pub fn end(&self) {
        self.flush(|_| true);
    }
    fn flush(&self, which: impl Fn(&(u64, String)) -> bool) {
        let mut inner = self.inner.lock().unwrap();
        let keys: Vec<_> = inner.pending.keys().filter(|key| which(key)).cloned().collect();
        for key in keys {
            if let Some((method, tool, since)) = inner.pending.remove(&key) {
                inner.write(&method, tool, Outcome::Unanswered, None, since.elapsed().as_millis() as u64);
            }
        }
    }
}
