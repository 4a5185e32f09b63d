//! What the demo offers besides tools: resources, prompts, completion.

use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResult, Prompt,
    PromptArgument, PromptMessage, ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate, Role,
};
use serde_json::json;

use super::notebook::Notebook;

/// URI of the snapshot, which `refresh_snapshot` updates.
pub(super) const SNAPSHOT: &str = "demo://snapshot";
const NOTE_TEMPLATE: &str = "demo://notes/{id}";
const NOTE_PREFIX: &str = "demo://notes/";
const PLAIN: &str = "text/plain";
/// Styles of the prompt `plan_day`.
const STYLES: [&str; 3] = ["brief", "brisk", "calm"];

/// URI of a note.
pub(super) fn note_uri(id: u64) -> String {
    format!("{NOTE_PREFIX}{id}")
}

pub(super) fn resources(notebook: &Notebook) -> Vec<Resource> {
    let snapshot = Resource::new(SNAPSHOT, "snapshot")
        .with_description("How often this session's snapshots were taken anew.")
        .with_mime_type(PLAIN);
    let notes = notebook.notes().map(|(id, note)| {
        Resource::new(note_uri(id), note.title.clone()).with_description("The text of a note.").with_mime_type(PLAIN)
    });
    std::iter::once(snapshot).chain(notes).collect()
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(NOTE_TEMPLATE, "note")
            .with_description("The text of the note with this number.")
            .with_mime_type(PLAIN),
    ]
}

/// Text of a resource, or the error for a URI that names none.
pub(super) fn read(notebook: &Notebook, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let text = if uri == SNAPSHOT {
        Some(format!("Taken anew {} times.", notebook.refreshed()))
    } else {
        uri.strip_prefix(NOTE_PREFIX)
            .and_then(|id| id.parse().ok())
            .and_then(|id| notebook.note(id))
            .map(|note| note.text.clone())
    };
    let text = text.ok_or_else(|| ErrorData::resource_not_found("No such resource.", None))?;
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]))
}

pub(super) fn prompts() -> Vec<Prompt> {
    let id = PromptArgument::new("id").with_description("Number of the note.").with_required(true);
    let style = PromptArgument::new("style").with_description("One of brief, brisk, calm.").with_required(false);
    vec![
        Prompt::new("review_note", Some("Asks for a review of one note."), Some(vec![id])),
        Prompt::new("plan_day", Some("Asks for a plan of the day from all notes."), Some(vec![style])),
    ]
}

pub(super) fn prompt(notebook: &Notebook, request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        value.and_then(|value| value.as_str())
    };
    let text = match request.name.as_str() {
        "review_note" => {
            let note = argument("id").and_then(|id| id.parse().ok()).and_then(|id| notebook.note(id));
            let note =
                note.ok_or_else(|| ErrorData::invalid_params("The argument id is not the number of a note.", None))?;
            format!("Please review this note.\n\n# {}\n\n{}", note.title, note.text)
        }
        "plan_day" => {
            let style = argument("style").unwrap_or("calm");
            let style = STYLES
                .into_iter()
                .find(|known| *known == style)
                .ok_or_else(|| ErrorData::invalid_params("The argument style is none of brief, brisk, calm.", None))?;
            let titles: Vec<&str> = notebook.notes().map(|(_, note)| note.title.as_str()).collect();
            format!("Please write a {style} plan of the day around these notes: {}.", titles.join(", "))
        }
        _ => return Err(ErrorData::invalid_params("No such prompt.", None)),
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

pub(super) fn complete(notebook: &Notebook, request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let name = request.argument.name.as_str();
    let known: Vec<String> = match (&request.r#ref, name) {
        (Reference::Prompt(prompt), "style") if prompt.name == "plan_day" => {
            STYLES.into_iter().map(str::to_owned).collect()
        }
        (Reference::Prompt(prompt), "id") if prompt.name == "review_note" => ids(notebook),
        (Reference::Resource(resource), "id") if resource.uri == NOTE_TEMPLATE => ids(notebook),
        _ => {
            return Err(ErrorData::invalid_params(
                "Nothing to complete: no such reference, or no such argument.",
                Some(json!({"retryable": false})),
            ));
        }
    };
    let fitting: Vec<String> = known.into_iter().filter(|value| value.starts_with(&request.argument.value)).collect();
    let total = u32::try_from(fitting.len()).ok();
    let more = fitting.len() > CompletionInfo::MAX_VALUES;
    let shown = fitting.into_iter().take(CompletionInfo::MAX_VALUES).collect();
    let info =
        CompletionInfo::with_pagination(shown, total, more).map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(info))
}

fn ids(notebook: &Notebook) -> Vec<String> {
    notebook.notes().map(|(id, _)| id.to_string()).collect()
}
