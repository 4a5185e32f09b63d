//! The good server: answers to requests, the same on every transport.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, ContentBlock,
    CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, Implementation, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, ServerRequest, SubscribeRequestParams,
    UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use super::notebook::{Note, Notebook};
use super::surfaces::{self, SNAPSHOT};
use super::tools::{self, Act, Tool};

/// A job that is not done yet; asking again helps.
const JOB_BUSY: ErrorCode = ErrorCode(-32010);
/// A job that is gone for good.
const JOB_LOST: ErrorCode = ErrorCode(-32011);
/// Most tokens that `summarize` asks the client's model for.
const SUMMARY_TOKENS: u32 = 200;
/// Longest summary and longest word in an answer, in characters.
const MAX_ANSWER_CHARS: usize = 200;
/// How many steps `wait` reports.
const WAIT_STEPS: u32 = 4;
/// Methods this server knows; parameters of theirs that do not parse are the caller's mistake.
const METHODS: [&str; 13] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
];

/// One session of the good server.
#[derive(Debug, Default)]
pub(super) struct Demo {
    notebook: Mutex<Notebook>,
}

/// Why a call did not succeed.
enum Failure {
    /// The tool says so, in words for a model.
    Tool(String),
    /// The protocol says so.
    Protocol(ErrorData),
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self::Tool(text.to_owned())
    }
}

impl Demo {
    fn notebook(&self) -> MutexGuard<'_, Notebook> {
        // A notebook is whole after each of its methods, so a panic elsewhere does not spoil it.
        self.notebook.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(
        &self,
        tool: &Tool,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, Failure> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| arguments.get(name).and_then(whole).unwrap_or_default();
        match tool.act {
            Act::ListNotes => {
                let limit = arguments
                    .get("limit")
                    .and_then(whole)
                    .map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
                let titles: Vec<String> =
                    self.notebook().notes().take(limit).map(|(_, note)| note.title.clone()).collect();
                Ok(json!({"titles": titles}))
            }
            Act::SearchNotes => {
                let query = text("query").to_lowercase();
                let holds = |text: &str| text.to_lowercase().contains(&query);
                let titles: Vec<String> = self
                    .notebook()
                    .notes()
                    .filter(|(_, note)| holds(&note.title) || holds(&note.text))
                    .map(|(_, note)| note.title.clone())
                    .collect();
                Ok(json!({"titles": titles}))
            }
            Act::GetNote => {
                let notebook = self.notebook();
                let note = notebook.note(number("id")).ok_or("There is no note with this number.")?;
                Ok(json!({"title": note.title, "text": note.text}))
            }
            Act::WriteNote => {
                let note = Note { title: text("title").to_owned(), text: text("text").to_owned() };
                let id = self.notebook().write(note).ok_or("The notebook is full; delete a note first.")?;
                Ok(json!({"id": id}))
            }
            Act::DeleteNote => {
                let id = number("id");
                if !self.notebook().delete(id) {
                    return Err("There is no note with this number.".into());
                }
                self.tell_update(&surfaces::note_uri(id), context).await;
                Ok(json!({"deleted": true}))
            }
            Act::WordStats => {
                let longest = text("text").split_whitespace().max_by_key(|word| word.len()).unwrap_or_default();
                Ok(json!({"words": text("text").split_whitespace().count(), "longest": shortened(longest)}))
            }
            Act::Add => {
                let float = |name: &str| arguments.get(name).and_then(Value::as_f64).unwrap_or_default();
                let sum = float("a") + float("b");
                if !sum.is_finite() {
                    return Err("The sum is too large for a number.".into());
                }
                Ok(json!({"sum": sum}))
            }
            Act::Wait => wait(number("milliseconds"), context).await,
            Act::PollJob => self.poll(text("job")),
            Act::ReadSnapshot => {
                let taken = self.notebook().refreshed();
                if text("which") == "stale" && taken == 0 {
                    return Err("The snapshot is stale. Call refresh_snapshot, then read it again.".into());
                }
                Ok(json!({"taken": taken}))
            }
            Act::RefreshSnapshot => {
                let taken = self.notebook().refresh();
                self.tell_update(SNAPSHOT, context).await;
                Ok(json!({"taken": taken}))
            }
            Act::Summarize => summarize(text("text"), context).await,
            Act::ChooseColor => choose_color(text("question"), context).await,
        }
    }

    fn poll(&self, job: &str) -> Result<Value, Failure> {
        match job {
            "busy" if !self.notebook().poll_busy() => Err(Failure::Protocol(ErrorData::new(
                JOB_BUSY,
                "The job is still busy; ask again.",
                Some(json!({"retryable": true})),
            ))),
            "lost" => Err(Failure::Protocol(ErrorData::new(
                JOB_LOST,
                "The job is lost; asking again does not help.",
                Some(json!({"retryable": false})),
            ))),
            _ => Ok(json!({"state": "done"})),
        }
    }

    async fn tell_update(&self, uri: &str, context: &RequestContext<RoleServer>) {
        if self.notebook().is_subscribed(uri) {
            // A client that is gone needs no update.
            let _ = context.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
        }
    }
}

/// A JSON number with a whole, non-negative value; `3.0` is one.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0)?;
        format!("{float:.0}").parse().ok()
    })
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_ANSWER_CHARS).collect()
}

async fn wait(milliseconds: u64, context: &RequestContext<RoleServer>) -> Result<Value, Failure> {
    let step = Duration::from_millis(milliseconds) / WAIT_STEPS;
    let token = context.meta.get_progress_token();
    for done in 1..=WAIT_STEPS {
        tokio::select! {
            () = tokio::time::sleep(step) => {}
            // Nobody reads the answer to a cancelled call.
            () = context.ct.cancelled() => return Err("Cancelled.".into()),
        }
        if let Some(token) = &token {
            let progress = ProgressNotificationParam::new(token.clone(), f64::from(done));
            let _ = context.peer.notify_progress(progress.with_total(f64::from(WAIT_STEPS))).await;
        }
    }
    Ok(json!({"waited": milliseconds}))
}

/// Asks the client, if it declared that it can be asked.
async fn ask(
    capability: &str,
    method: &str,
    params: Value,
    context: &RequestContext<RoleServer>,
) -> Result<Option<Value>, Failure> {
    let declared = serde_json::to_value(context.client_capabilities()).unwrap_or_default();
    if declared.get(capability).is_none_or(Value::is_null) {
        return Ok(None);
    }
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    let answer = tokio::select! {
        answer = context.peer.send_request(request) => answer,
        () = context.ct.cancelled() => return Err("Cancelled.".into()),
    };
    match answer {
        Ok(answer) => Ok(serde_json::to_value(answer).ok()),
        Err(error) => Err(Failure::Tool(format!("The client did not answer the question: {error}"))),
    }
}

async fn summarize(text: &str, context: &RequestContext<RoleServer>) -> Result<Value, Failure> {
    let question = format!("Summarize in one sentence:\n\n{text}");
    let params = json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": question}}],
        "maxTokens": SUMMARY_TOKENS,
    });
    let Some(answer) = ask("sampling", "sampling/createMessage", params, context).await? else {
        let sentence = text.split_inclusive(['.', '!', '?']).next().unwrap_or_default();
        return Ok(json!({"summary": shortened(sentence.trim()), "by": "server"}));
    };
    let said = answer.pointer("/content/text").or_else(|| answer.pointer("/content/0/text")).and_then(Value::as_str);
    let summary = said.ok_or("The client's model answered without text.")?;
    Ok(json!({"summary": shortened(summary), "by": "client"}))
}

async fn choose_color(question: &str, context: &RequestContext<RoleServer>) -> Result<Value, Failure> {
    let params = json!({
        "message": if question.is_empty() { "Which color?" } else { question },
        "requestedSchema": {
            "type": "object",
            "properties": {"color": {"type": "string", "description": "Name of a color."}},
            "required": ["color"],
        },
    });
    let answer = ask("elicitation", "elicitation/create", params, context).await?;
    let accepted = answer.as_ref().filter(|answer| answer.get("action").is_some_and(|action| action == "accept"));
    match accepted {
        Some(answer) => {
            let color = answer.pointer("/content/color").and_then(Value::as_str);
            let color = color.ok_or("The user's answer holds no color.")?;
            Ok(json!({"color": shortened(color), "by": "user"}))
        }
        // Not asked, or the user would not say.
        None => Ok(json!({"color": "green", "by": "server"})),
    }
}

impl ServerHandler for Demo {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .build();
        let mut info = ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("mcpeval-demo", env!("CARGO_PKG_VERSION")))
            .with_instructions("A small notebook. Start with `list_notes`; `poll_job` shows errors worth a retry.");
        info.protocol_version = ProtocolVersion::V_2025_11_25;
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let start = match request.and_then(|request| request.cursor) {
            None => 0,
            Some(cursor) => page_start(&cursor).ok_or_else(|| ErrorData::invalid_params("No such cursor.", None))?,
        };
        let page = tools::TOOLS.iter().skip(start).take(tools::PAGE).map(Tool::entry).collect();
        let mut result = ListToolsResult::with_all_items(page);
        let next = start + tools::PAGE;
        result.next_cursor = (next < tools::TOOLS.len()).then(|| cursor(next));
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = tools::find(&request.name).ok_or_else(|| ErrorData::invalid_params("No such tool.", None))?;
        let arguments = request.arguments.unwrap_or_default();
        let outcome = match tool.complaint(&arguments) {
            Some(complaint) => Err(Failure::Tool(complaint)),
            None => self.run(tool, &arguments, &context).await,
        };
        match outcome {
            Ok(value) => Ok(CallToolResult::structured(value).into()),
            Err(Failure::Tool(text)) => Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into()),
            Err(Failure::Protocol(error)) => Err(error),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(surfaces::resources(&self.notebook())))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(surfaces::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        surfaces::read(&self.notebook(), &request.uri).map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut notebook = self.notebook();
        surfaces::read(&notebook, &request.uri)?;
        if notebook.subscribe(request.uri) {
            Ok(())
        } else {
            Err(ErrorData::invalid_request("Too many subscriptions; end one first.", None))
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.notebook().unsubscribe(&request.uri);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(surfaces::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        surfaces::prompt(&self.notebook(), &request).map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        surfaces::complete(&self.notebook(), &request)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // rmcp hands known methods over as custom ones when their parameters do not parse.
        if METHODS.contains(&request.method.as_str()) {
            Err(ErrorData::invalid_params("The parameters do not fit the method.", None))
        } else {
            Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "No such method.", None))
        }
    }
}

/// The cursor of the page that begins with this tool.
pub(super) fn cursor(start: usize) -> String {
    format!("from-{start}")
}

/// The tool a page begins with, if this server gave the cursor.
fn page_start(text: &str) -> Option<usize> {
    let start = text.strip_prefix("from-")?.parse().ok()?;
    (start % tools::PAGE == 0 && (1..tools::TOOLS.len()).contains(&start)).then_some(start)
}
