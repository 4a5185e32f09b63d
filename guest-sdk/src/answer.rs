//! Answers, and the five classes into which every outcome of a `tools/call` falls.

use std::borrow::Cow;

use serde_json::Value;

use crate::bindings::mcpeval::probe::session;
use crate::{Cause, ExchangeId, Fault, Json, View};

/// What the server answered to one request, errors included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the answer in the transcript, to cite.
    pub exchange: ExchangeId,
    /// From the request to the whole answer, in microseconds.
    pub elapsed_us: u32,
    /// The HTTP status where there is one.
    pub status: Option<u16>,
    /// The `result`, or the `error` object, as it travelled.
    pub reply: Result<Json, Json>,
}

impl Answer {
    pub(crate) fn from_contract(answer: session::Answer) -> Self {
        Self {
            exchange: answer.exchange,
            elapsed_us: answer.elapsed_us,
            status: answer.status,
            reply: answer.reply.map(Json::from_contract).map_err(Json::from_contract),
        }
    }

    /// From the request to the whole answer, in milliseconds begun.
    pub fn elapsed_ms(&self) -> u32 {
        self.elapsed_us.div_ceil(1_000)
    }

    /// How it came out as an answer to `tools/call`.
    pub fn class(&self) -> CallClass {
        match &self.reply {
            Ok(_) => match self.tool_result() {
                Some(ToolResult { is_error: false, .. }) => CallClass::Success,
                Some(ToolResult { is_error: true, .. }) => CallClass::ToolError,
                None => CallClass::Transport,
            },
            Err(error) if !error.view().is_object() => CallClass::Transport,
            Err(_) if self.error_code() == Some(INVALID_PARAMS) => CallClass::Rejected,
            Err(_) => CallClass::RpcError,
        }
    }

    /// Whether it is the result of a `tools/call` that succeeded.
    pub fn succeeded(&self) -> bool {
        self.class() == CallClass::Success
    }

    /// The same if it answers a `tools/call` in the protocol's terms; what does not is a malformed reply, and thus a
    /// fault.
    pub fn structured(self) -> Result<Self, Fault> {
        if self.class().is_structured() {
            return Ok(self);
        }
        let detail = "the answer is neither a result of tools/call nor an error object".to_owned();
        Err(Fault { cause: Cause::Malformed, exchange: Some(self.exchange), detail })
    }

    /// The error object of a JSON-RPC error.
    pub fn error(&self) -> Option<View<'_>> {
        self.reply.as_ref().err().map(Json::view)
    }

    /// The code of a JSON-RPC error.
    pub fn error_code(&self) -> Option<i64> {
        self.error()?.member("code")?.integer()
    }

    /// The code of a failed `tools/call`, as a case compares it: that of the JSON-RPC error, -32000 if the tool told the
    /// error in its result. `None` for a success, and for an error without code.
    pub fn failure_code(&self) -> Option<Json> {
        match self.class() {
            CallClass::ToolError => Some(Json::from(Value::from(TOOL_ERROR))),
            _ => self.error()?.member("code").map(View::to_json),
        }
    }

    /// The `result` if it is an object.
    pub fn object(&self) -> Option<View<'_>> {
        self.reply.as_ref().ok().map(Json::view).filter(|result| result.is_object())
    }

    /// The result of a `tools/call`; `None` for an error and for what is no such result.
    pub fn tool_result(&self) -> Option<ToolResult<'_>> {
        ToolResult::read(self.reply.as_ref().ok()?.view())
    }
}

/// The exchange that shows how a request came out: the answer, or what the fault cites.
pub fn cited(outcome: &Result<Answer, Fault>) -> Option<ExchangeId> {
    match outcome {
        Ok(answer) => Some(answer.exchange),
        Err(fault) => fault.exchange,
    }
}

/// The code that stands for an error which a tool tells in its result.
const TOOL_ERROR: i64 = -32000;
/// The JSON-RPC code for parameters that the receiver declines.
const INVALID_PARAMS: i64 = -32602;

/// The result of a `tools/call`, read as far as judgements need.
#[derive(Clone, Copy, Debug)]
pub struct ToolResult<'a> {
    /// `isError`, absent meaning false.
    pub is_error: bool,
    /// `content`, if it is there.
    pub content: Option<View<'a>>,
    /// `structuredContent`, if it is there.
    pub structured: Option<View<'a>>,
}

impl<'a> ToolResult<'a> {
    fn read(result: View<'a>) -> Option<Self> {
        let [is_error, content, structured] = result.pick(["isError", "content", "structuredContent"])?;
        let is_error = match is_error {
            None => false,
            Some(flag) => flag.bool()?,
        };
        Some(Self { is_error, content, structured })
    }

    /// The texts of all text blocks.
    pub fn texts(&self) -> Vec<Cow<'a, str>> {
        let blocks = self.content.and_then(View::items).unwrap_or_default();
        let text = |block: View<'a>| {
            let [kind, text] = block.pick(["type", "text"])?;
            (kind?.string()? == "text").then_some(text?.string()?)
        };
        blocks.into_iter().filter_map(text).collect()
    }

    /// Whether a text block holds more than blanks.
    pub fn says_something(&self) -> bool {
        self.texts().iter().any(|text| !text.trim().is_empty())
    }
}

/// How a `tools/call` came out: docs/standard.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallClass {
    /// A result object whose `isError` is absent or false.
    Success,
    /// A result object with `isError: true`.
    ToolError,
    /// The JSON-RPC error -32602.
    Rejected,
    /// Any other JSON-RPC error.
    RpcError,
    /// No answer, or one that is no answer to a call.
    Transport,
}

impl CallClass {
    /// The class of one outcome.
    pub fn of(outcome: &Result<Answer, Fault>) -> Self {
        outcome.as_ref().map_or(Self::Transport, Answer::class)
    }

    /// Whether the server answered in the protocol's terms.
    pub fn is_structured(self) -> bool {
        self != Self::Transport
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn class(reply: Result<serde_json::Value, serde_json::Value>) -> CallClass {
        let reply = reply.map(Json::from).map_err(Json::from);
        CallClass::of(&Ok(Answer { exchange: 1, elapsed_us: 1, status: None, reply }))
    }

    #[test]
    fn every_outcome_has_one_class() {
        assert_eq!(class(Ok(json!({}))), CallClass::Success);
        assert_eq!(class(Ok(json!({"isError": false}))), CallClass::Success);
        assert_eq!(class(Ok(json!({"isError": true}))), CallClass::ToolError);
        assert_eq!(class(Ok(json!({"isError": "true"}))), CallClass::Transport);
        assert_eq!(class(Ok(json!(null))), CallClass::Transport);
        assert_eq!(class(Err(json!({"code": -32602, "message": ""}))), CallClass::Rejected);
        assert_eq!(class(Err(json!({"code": -32601, "message": ""}))), CallClass::RpcError);
        assert_eq!(class(Err(json!("no"))), CallClass::Transport);
        let fault = Fault { cause: Cause::TimedOut, exchange: None, detail: String::new() };
        assert_eq!(CallClass::of(&Err(fault)), CallClass::Transport);
    }

    #[test]
    fn every_failure_has_a_code_to_compare() {
        let code = |reply: Result<serde_json::Value, serde_json::Value>| {
            let reply = reply.map(Json::from).map_err(Json::from);
            Answer { exchange: 1, elapsed_us: 1, status: None, reply }.failure_code().map(|code| code.to_string())
        };
        assert_eq!(code(Ok(json!({"isError": true}))).as_deref(), Some("-32000"));
        assert_eq!(code(Err(json!({"code": -32602}))).as_deref(), Some("-32602"));
        assert_eq!(code(Ok(json!({}))), None);
        assert_eq!(code(Err(json!({}))), None);
    }

    #[test]
    fn what_is_no_answer_to_a_call_is_a_malformed_reply() {
        let answer = |reply| Answer { exchange: 7, elapsed_us: 1, status: None, reply: Ok(Json::from(reply)) };
        let fault = answer(json!([])).structured().unwrap_err();
        assert_eq!((fault.cause, fault.exchange), (Cause::Malformed, Some(7)));
        let error = answer(json!({"isError": true}));
        assert_eq!((error.succeeded(), error.structured().is_ok()), (false, true));
    }

    #[test]
    fn only_text_blocks_speak() {
        let says = |content| {
            let reply = Ok(Json::from(json!({"isError": true, "content": content})));
            let answer = Answer { exchange: 1, elapsed_us: 1, status: None, reply };
            answer.tool_result().unwrap().says_something()
        };
        assert!(says(json!([{"type": "image"}, {"type": "text", "text": "no such item"}])));
        assert!(!says(json!([{"type": "text", "text": " \n"}])));
        assert!(!says(json!([{"type": "image", "text": "x"}])));
        assert!(!says(json!("text")));
    }
}
