//! The good server: a catalog of three tools, and right answers to every request.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Fixture, Sin};

/// The variable that names a file to which every received method, and for calls the tool, is appended.
pub const JOURNAL: &str = "FIXTURE_JOURNAL";

/// Revisions with an `initialize`, newest first.
pub const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// How many valid calls a tool gets before the steps that follow.
const VALID_CALLS: u32 = 3;

/// The tool whose third valid call many sins spoil.
const SPOILED: &str = "get_price";

pub(super) const FIXTURES: &[Fixture] =
    &[Fixture { name: "good", about: "nothing is wrong with it", sin: Sin::Catalog(|_| {}) }];

/// An error of JSON-RPC.
#[derive(Debug, Clone)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// The message.
    pub message: String,
    /// The data, if any.
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: &str) -> Self {
        Self { code, message: message.to_owned(), data: None }
    }
}

/// What is answered to a request.
pub type Reply = Result<Value, RpcError>;

/// One received message.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its method; empty for a response.
    pub method: String,
    /// Its id; none for a notification.
    pub id: Option<Value>,
    /// Its parameters.
    pub params: Value,
    /// The result in a response; null in anything else.
    pub result: Value,
    /// Length of its text in bytes.
    pub size: usize,
    /// Whether it is the third valid call of `get_price`, which is also its last.
    pub last: bool,
}

impl Message {
    /// Reads one message; none if the text is no JSON object.
    pub fn read(text: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let object = value.as_object()?;
        Some(Self {
            method: object.get("method").and_then(Value::as_str).unwrap_or_default().to_owned(),
            id: object.get("id").cloned(),
            params: object.get("params").cloned().unwrap_or_default(),
            result: object.get("result").cloned().unwrap_or_default(),
            size: text.len(),
            last: false,
        })
    }

    /// The tool it calls; empty for anything else.
    pub fn tool(&self) -> &str {
        if self.method == "tools/call" { self.params["name"].as_str().unwrap_or_default() } else { "" }
    }

    /// The arguments of a call.
    pub fn arguments(&self) -> &Value {
        &self.params["arguments"]
    }

    /// Whether it wants a reply.
    pub fn is_request(&self) -> bool {
        self.id.is_some() && !self.method.is_empty()
    }
}

/// The state of the good server.
#[derive(Debug)]
pub struct Good {
    /// The listing, in order.
    pub tools: Vec<Value>,
    /// How many tools a page holds.
    pub page: usize,
    /// Declared capabilities.
    pub capabilities: Value,
    /// What the client of the newest session declared.
    pub client: Value,
    /// Valid calls so far, by tool.
    pub calls: BTreeMap<String, u32>,
    journal: Option<File>,
}

impl Good {
    /// The good server, with the journal of the environment.
    pub fn new() -> Self {
        let journal =
            std::env::var_os(JOURNAL).and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok());
        Self {
            tools: vec![find_item(), get_price(), delete_item()],
            page: usize::MAX,
            capabilities: json!({"tools": {}}),
            client: Value::Null,
            calls: BTreeMap::new(),
            journal,
        }
    }

    /// Appends one line to the journal.
    pub fn note(&mut self, line: &str) {
        if let Some(file) = &mut self.journal {
            // One write, so that lines of several processes do not mix. A full disk must not end the server.
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Whether a line of the journal begins so.
    pub fn journal_holds(&self, beginning: &str) -> bool {
        let text = std::env::var_os(JOURNAL).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        text.lines().any(|line| line.starts_with(beginning))
    }

    /// Notes a message and counts it if it is a valid call.
    pub fn receive(&mut self, message: &mut Message) {
        let tool = message.tool().to_owned();
        self.note(format!("{} {tool}", message.method).trim_end());
        if message.method == "initialize" {
            self.client = message.params["capabilities"].clone();
        }
        let valid = self.entry(&tool).is_some_and(|entry| fits(&entry["inputSchema"], message.arguments()));
        if valid && message.is_request() {
            let count = self.calls.entry(tool.clone()).or_default();
            *count += 1;
            message.last = tool == SPOILED && *count == VALID_CALLS;
        }
    }

    /// The entry of a tool.
    pub fn entry(&self, tool: &str) -> Option<&Value> {
        self.tools.iter().find(|entry| entry["name"] == tool)
    }

    /// The right answer.
    pub fn answer(&self, message: &Message) -> Reply {
        match message.method.as_str() {
            "initialize" => Ok(self.greeting(message.params["protocolVersion"].as_str().unwrap_or_default())),
            "ping" => Ok(json!({})),
            "tools/list" => self.list(&message.params),
            "tools/call" => self.call(message.tool(), message.arguments()),
            _ => Err(RpcError::new(-32601, "Method not found")),
        }
    }

    fn greeting(&self, offered: &str) -> Value {
        let revision = if REVISIONS.contains(&offered) { offered } else { REVISIONS[0] };
        json!({
            "protocolVersion": revision,
            "capabilities": self.capabilities,
            "serverInfo": {"name": "fixture", "version": "1.0.0"},
        })
    }

    fn list(&self, params: &Value) -> Reply {
        let start = match &params["cursor"] {
            Value::Null => 0,
            cursor => cursor
                .as_str()
                .and_then(|text| text.parse::<usize>().ok())
                .filter(|start| *start < self.tools.len())
                .ok_or_else(|| RpcError::new(-32602, "Invalid cursor"))?,
        };
        let end = start.saturating_add(self.page).min(self.tools.len());
        let mut page = json!({"tools": self.tools.get(start..end).unwrap_or_default()});
        if end < self.tools.len() {
            page["nextCursor"] = Value::from(end.to_string());
        }
        Ok(page)
    }

    fn call(&self, tool: &str, arguments: &Value) -> Reply {
        let entry = self.entry(tool).ok_or_else(|| RpcError::new(-32602, "Unknown tool"))?;
        if !fits(&entry["inputSchema"], arguments) {
            return Err(RpcError::new(-32602, "Invalid arguments"));
        }
        let structured = match tool {
            "get_price" => json!({"price": 12.5}),
            _ => json!({"found": true}),
        };
        Ok(json!({"content": [{"type": "text", "text": structured.to_string()}], "structuredContent": structured}))
    }
}

impl Default for Good {
    fn default() -> Self {
        Self::new()
    }
}

/// A server that takes this long to answer is slow: well above the first latency band of 100 ms.
pub(super) const SLOW: Duration = Duration::from_millis(160);

/// A response as one line without its end.
pub fn response(id: &Value, reply: &Reply) -> Vec<u8> {
    let outcome = match reply {
        Ok(result) => format!("\"result\":{result}"),
        Err(error) => {
            let mut body = json!({"code": error.code, "message": error.message});
            if let Some(data) = &error.data {
                body["data"] = data.clone();
            }
            format!("\"error\":{body}")
        }
    };
    // Put together by hand: the sins of lines want members at known places.
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{outcome}}}").into_bytes()
}

/// Whether arguments fit the few keywords that the catalogs here use: `required`, `additionalProperties`, `type`,
/// `enum` of properties.
fn fits(schema: &Value, arguments: &Value) -> bool {
    let Some(arguments) = arguments.as_object() else { return false };
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !required.iter().filter_map(Value::as_str).all(|name| arguments.contains_key(name)) {
        return false;
    }
    let closed = schema["additionalProperties"] == false;
    arguments.iter().all(|(name, value)| match schema["properties"].get(name) {
        None => !closed,
        Some(property) => {
            let kind = match property["type"].as_str() {
                Some("string") => value.is_string(),
                Some("number") => value.is_number(),
                Some("boolean") => value.is_boolean(),
                Some("object") => value.is_object(),
                _ => true,
            };
            kind && property["enum"].as_array().is_none_or(|members| members.contains(value))
        }
    })
}

fn find_item() -> Value {
    tool("find_item", "Finds the item of the shop that matches the words of a query best.")
}

fn get_price() -> Value {
    json!({
        "name": SPOILED,
        "description": "Tells what one item of the shop costs today, in the currency asked for.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "item": {"type": "string", "description": "Name of the item."},
                "currency": {"type": "string", "enum": ["EUR", "USD"], "description": "Currency of the price."},
            },
            "required": ["item"],
            "additionalProperties": false,
        },
        "outputSchema": {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]},
        "annotations": {"readOnlyHint": true},
    })
}

fn delete_item() -> Value {
    let mut entry = tool("delete_item", "Deletes one item from the shop for good; it cannot be restored.");
    entry["annotations"] = json!({"readOnlyHint": false, "destructiveHint": true});
    entry
}

/// A read-only tool with one required string, `query`, that loses no check of the catalog.
pub fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Words to look for."}},
            "required": ["query"],
            "additionalProperties": false,
        },
        "outputSchema": {"type": "object", "properties": {"found": {"type": "boolean"}}, "required": ["found"]},
        "annotations": {"readOnlyHint": true},
    })
}
