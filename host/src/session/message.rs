//! One JSON-RPC message as it came: what kind it is, whose reply it is, and why it is none. Nothing is repaired.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::object;

/// A member that may be absent, stand once, or stand several times.
#[derive(Debug, Clone, Copy, Default)]
enum Member<'a> {
    #[default]
    Absent,
    Once(&'a RawValue),
    Repeated,
}

impl<'a> Member<'a> {
    fn put(&mut self, value: &'a RawValue) {
        *self = match self {
            Self::Absent => Self::Once(value),
            _ => Self::Repeated,
        };
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::Once(value) => Some(value.get()),
            _ => None,
        }
    }

    const fn is_absent(self) -> bool {
        matches!(self, Self::Absent)
    }

    const fn is_repeated(self) -> bool {
        matches!(self, Self::Repeated)
    }
}

/// The members of a JSON object that JSON-RPC gives a meaning.
#[derive(Debug, Default)]
struct Envelope<'a> {
    jsonrpc: Member<'a>,
    id: Member<'a>,
    method: Member<'a>,
    params: Member<'a>,
    result: Member<'a>,
    error: Member<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Envelope<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Envelope<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut envelope = Envelope::default();
                while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                    let value = map.next_value::<&'de RawValue>()?;
                    match key.as_ref() {
                        "jsonrpc" => envelope.jsonrpc.put(value),
                        "id" => envelope.id.put(value),
                        "method" => envelope.method.put(value),
                        "params" => envelope.params.put(value),
                        "result" => envelope.result.put(value),
                        "error" => envelope.error.put(value),
                        _ => {}
                    }
                }
                Ok(envelope)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// What a message is.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A response with a number as id. `Err` says why it is no valid response.
    Reply {
        /// The id's value; none if it is no whole number that we could have sent.
        id: Option<u64>,
        /// The outcome.
        outcome: Result<Reply<'a>, &'static str>,
    },
    /// A response without a usable id: null, absent, a string.
    Unaddressed {
        /// The `error` object, if it is one.
        error: Option<&'a str>,
    },
    /// A request of the server.
    Request {
        /// Its id, exactly as it came.
        id: &'a str,
        /// Its method.
        method: String,
    },
    /// A notification of the server.
    Notification {
        /// Its method.
        method: String,
    },
}

/// A valid response.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The text of `result`.
    Result(&'a str),
    /// The text of the `error` object.
    Error(&'a str),
}

/// Read one message. `None` means noise: no JSON object, or one that is no message of JSON-RPC.
pub fn read(bytes: &[u8]) -> Option<Message<'_>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
    classify(&envelope)
}

/// The messages of a JSON array, for the one revision that has batches. `None` if it is no array of them.
pub fn read_batch(bytes: &[u8]) -> Option<Vec<&str>> {
    object::items(std::str::from_utf8(bytes).ok()?)
}

fn classify<'a>(envelope: &Envelope<'a>) -> Option<Message<'a>> {
    if !envelope.method.is_absent() {
        let method: String = serde_json::from_str(envelope.method.text()?).ok()?;
        return match envelope.id {
            Member::Absent => Some(Message::Notification { method }),
            Member::Once(id) if is_request_id(id.get()) => Some(Message::Request { id: id.get(), method }),
            _ => None,
        };
    }
    if envelope.result.is_absent() && envelope.error.is_absent() {
        return None;
    }
    match envelope.id.text() {
        Some(id) if is_number(id) => Some(Message::Reply { id: whole(id), outcome: outcome(envelope) }),
        _ => Some(Message::Unaddressed { error: envelope.error.text().filter(|error| is_error_object(error)) }),
    }
}

fn outcome<'a>(envelope: &Envelope<'a>) -> Result<Reply<'a>, &'static str> {
    let members = [envelope.jsonrpc, envelope.id, envelope.result, envelope.error];
    if members.iter().any(|member| member.is_repeated()) {
        return Err("the reply repeats a member");
    }
    if envelope.jsonrpc.text() != Some("\"2.0\"") {
        return Err("the reply is not marked as JSON-RPC 2.0");
    }
    match (envelope.result.text(), envelope.error.text()) {
        (Some(result), None) => Ok(Reply::Result(result)),
        (None, Some(error)) if is_error_object(error) => Ok(Reply::Error(error)),
        (None, Some(_)) => Err("the reply's error is no object with an integer code and a message"),
        (Some(_), Some(_)) => Err("the reply has both a result and an error"),
        (None, None) => Err("the reply has neither a result nor an error"),
    }
}

fn is_number(raw: &str) -> bool {
    raw.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

fn is_request_id(raw: &str) -> bool {
    is_number(raw) || raw.starts_with('"')
}

/// The value of a number that is whole, however it is written: ids are equal in value and JSON type.
fn whole(raw: &str) -> Option<u64> {
    if let Ok(value) = raw.parse() {
        return Some(value);
    }
    let value: f64 = raw.parse().ok()?;
    let limit = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
    (value.fract() == 0.0 && (0.0..limit).contains(&value)).then_some(value as u64)
}

fn is_error_object(raw: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct ErrorObject<'a> {
        #[serde(borrow)]
        code: &'a RawValue,
        #[serde(rename = "message")]
        _message: String,
    }
    // A string, array or number must not pass as an error object.
    raw.starts_with('{')
        && serde_json::from_str::<ErrorObject<'_>>(raw).is_ok_and(|error| error.code.get().parse::<i64>().is_ok())
}

/// The code of an error object.
pub fn error_code(raw: &str) -> Option<i64> {
    #[derive(serde::Deserialize)]
    struct Code {
        code: i64,
    }
    serde_json::from_str::<Code>(raw).ok().map(|error| error.code)
}

/// Put a guest's or operator's JSON value on one line: line breaks between tokens become blanks, nothing else is
/// touched. `None` if it is not exactly one JSON value.
pub fn one_line(json: &str) -> Option<String> {
    let value: &RawValue = serde_json::from_str(json).ok()?;
    // A JSON string cannot hold a raw line break, so every one of them stands between tokens.
    Some(value.get().replace(['\n', '\r'], " "))
}

/// The bytes of a request, one line, without the line break at its end. `params` must be one JSON value on one line.
pub fn request(id: u64, method: &str, params: Option<&str>) -> Vec<u8> {
    frame(Some(&id.to_string()), method, params)
}

/// The bytes of a notification.
pub fn notification(method: &str, params: Option<&str>) -> Vec<u8> {
    frame(None, method, params)
}

fn frame(id: Option<&str>, method: &str, params: Option<&str>) -> Vec<u8> {
    let params_length = params.map_or(0, str::len);
    let mut bytes = Vec::with_capacity(params_length + method.len() + 64);
    bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        bytes.extend_from_slice(b",\"id\":");
        bytes.extend_from_slice(id.as_bytes());
    }
    bytes.extend_from_slice(b",\"method\":");
    bytes.extend_from_slice(quoted(method).as_bytes());
    if let Some(params) = params {
        bytes.extend_from_slice(b",\"params\":");
        bytes.extend_from_slice(params.as_bytes());
    }
    bytes.push(b'}');
    bytes
}

/// The bytes of a response to a request of the server. `id` and the outcome are JSON values on one line.
pub fn response(id: &str, outcome: Result<&str, &str>) -> Vec<u8> {
    let (member, value) = match outcome {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":{value}}}").into_bytes()
}

/// A string as JSON.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Option<Message<'_>> {
        read(text.as_bytes())
    }

    #[test]
    fn ids_match_by_value_and_type() {
        for (raw, id) in
            [("7", Some(7)), ("7.0", Some(7)), ("70e-1", Some(7)), ("-7", None), ("7.5", None), ("1e99", None)]
        {
            let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{raw},\"result\":{{}}}}");
            assert_eq!(reply(&text), Some(Message::Reply { id, outcome: Ok(Reply::Result("{}")) }), "{raw}");
        }
        for raw in ["\"7\"", "null", "[7]"] {
            let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{raw},\"result\":{{}}}}");
            assert_eq!(reply(&text), Some(Message::Unaddressed { error: None }), "{raw}");
        }
    }

    #[test]
    fn a_reply_that_is_no_valid_response_is_malformed_not_noise() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
        ] {
            assert!(matches!(reply(text), Some(Message::Reply { id: Some(1), outcome: Err(_) })), "{text}");
        }
    }

    #[test]
    fn noise_is_what_is_no_message() {
        for bytes in [
            b"Starting server...".as_slice(),
            b"",
            b"[]",
            b"42",
            b"{\"status\":200}",
            b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}{}",
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
        ] {
            assert_eq!(read(bytes), None, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn deep_nesting_is_carried_without_recursion() {
        let depth = 200_000;
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(
            matches!(reply(&text), Some(Message::Reply { id: Some(1), outcome: Ok(Reply::Result(raw)) }) if raw.len() == 2 * depth)
        );
    }

    #[test]
    fn requests_keep_their_id_as_it_came() {
        let text = r#"{"jsonrpc":"2.0","id":"a\u0062","method":"roots/list"}"#;
        assert_eq!(reply(text), Some(Message::Request { id: r#""a\u0062""#, method: "roots/list".into() }));
        let text = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\r";
        assert_eq!(reply(text), Some(Message::Notification { method: "notifications/x".into() }));
    }

    #[test]
    fn an_error_without_id_keeps_its_object() {
        let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}"#;
        assert_eq!(reply(text), Some(Message::Unaddressed { error: Some(r#"{"code":-32700,"message":"parse"}"#) }));
    }

    #[test]
    fn what_we_send_is_one_line() {
        assert_eq!(one_line("{\n\"a\":\r\n\"b\\n\"}").as_deref(), Some("{ \"a\":  \"b\\n\"}"));
        assert_eq!(one_line("{}{}"), None);
        assert_eq!(one_line(""), None);
        let bytes = request(3, "a\"b\n", Some("{}"));
        assert_eq!(bytes, br#"{"jsonrpc":"2.0","id":3,"method":"a\"b\n","params":{}}"#);
        assert_eq!(notification("x", None), br#"{"jsonrpc":"2.0","method":"x"}"#);
    }

    #[test]
    fn a_batch_is_split_verbatim() {
        assert_eq!(read_batch(br#"[{"a": 1}, 2]"#), Some(vec![r#"{"a": 1}"#, "2"]));
        assert_eq!(read_batch(b"{}"), None);
    }
}
