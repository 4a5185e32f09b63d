//! The call of a tool that a case describes.

use crate::{Answer, Case, Cause, Fault, Json, Refusal, Session, Target, View, call_params};

/// A tool and the arguments to call it with, their text as the case has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    tool: String,
    params: Json,
}

impl ToolCall {
    /// The case's `tool` with its `arguments`, by default none.
    pub fn of(case: &Case) -> Result<Self, Fault> {
        Self::read(case.fields.view(), "tool", "arguments")
    }

    /// The call that two members of an object describe, such as one step of several.
    pub fn read(fields: View<'_>, tool: &str, arguments: &str) -> Result<Self, Fault> {
        let name = fields.member(tool).and_then(View::string).ok_or_else(|| Fault::incomplete(tool))?;
        let arguments = fields.member(arguments).filter(|arguments| !arguments.is_null());
        let arguments = arguments.map_or_else(|| Json::from_contract("{}".to_owned()), View::to_json);
        Ok(Self { params: call_params(&name, &arguments), tool: name.into_owned() })
    }

    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The parameters of `tools/call`, for a request that is not waited for at once.
    pub fn params(&self) -> &Json {
        &self.params
    }

    /// The arguments.
    pub fn arguments(&self) -> Option<View<'_>> {
        self.params.view().member("arguments")
    }

    /// Calls the tool. The answer is one in the protocol's terms: success, tool error, or JSON-RPC error. Anything
    /// else is a fault, as no answer is.
    pub fn call(&self, session: &Session) -> Result<Answer, Fault> {
        session.request("tools/call", &self.params)?.structured()
    }

    /// As [`ToolCall::call`], with a wait of its own in milliseconds.
    pub fn call_within(&self, session: &Session, timeout_ms: u32) -> Result<Answer, Fault> {
        session.request_within("tools/call", &self.params, timeout_ms)?.structured()
    }

    /// The tool's entry in the catalog, the first of that name. Where it is not listed: the fault that ended the
    /// listing, else a refusal.
    pub fn entry(&self, target: &Target) -> Result<Json, Fault> {
        let listed = (0..).zip(target.tools()).find(|(_, tool)| tool.name == self.tool);
        match listed {
            Some((position, _)) => Ok(target.entry(position)),
            None => Err(target.listing().fault.unwrap_or_else(|| Fault {
                cause: Cause::Refused(Refusal::UnlistedTool),
                exchange: None,
                detail: "the case names a tool that is not listed".to_owned(),
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_text_and_default_to_none() {
        let read = |text: &str| ToolCall::read(Json::read(text).unwrap().view(), "tool", "arguments");
        let call = read(r#"{"tool": "add", "arguments": {"n": 1.0}}"#).unwrap();
        assert_eq!(call.params().as_str(), r#"{"name":"add","arguments":{"n": 1.0}}"#);
        assert_eq!(call.arguments().unwrap().text(), r#"{"n": 1.0}"#);
        for absent in [r#"{"tool": "add"}"#, r#"{"tool": "add", "arguments": null}"#] {
            assert_eq!(read(absent).unwrap().params().as_str(), r#"{"name":"add","arguments":{}}"#);
        }
        for broken in ["{}", "null", r#"{"tool": 1}"#] {
            assert_eq!(read(broken).unwrap_err().cause, Cause::Other, "{broken}");
        }
    }
}
