//! The tools of the demo: one table of names, hints, schemas, and an example call of each.

use std::sync::{Arc, LazyLock, OnceLock};

use jsonschema::Validator;
use rmcp::model::{JsonObject, Tool as Entry, ToolAnnotations};
use serde_json::{Value, json};

/// Tools on one page of `tools/list`.
pub(super) const PAGE: usize = 5;
/// Most characters of an argument error, so that no refusal repeats a huge argument.
const MAX_COMPLAINT_CHARS: usize = 300;
/// Longest wait that `wait` accepts, in milliseconds.
const MAX_WAIT_MS: u64 = 60_000;
/// Longest title `write_note` accepts, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// Longest text `write_note` accepts, in characters.
const MAX_TEXT_CHARS: usize = 10_000;

/// What a tool does when called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    ListNotes,
    SearchNotes,
    GetNote,
    WriteNote,
    DeleteNote,
    WordStats,
    Add,
    Wait,
    PollJob,
    ReadSnapshot,
    RefreshSnapshot,
    Summarize,
    ChooseColor,
}

/// What a tool declares of its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hints {
    Reads,
    Adds,
    Destroys,
}

impl Hints {
    fn annotations(self) -> ToolAnnotations {
        match self {
            Self::Reads => ToolAnnotations::new().read_only(true),
            Self::Adds => ToolAnnotations::new().read_only(false).destructive(false),
            Self::Destroys => ToolAnnotations::new().read_only(false).destructive(true),
        }
    }
}

/// One tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) act: Act,
    pub(super) hints: Hints,
    about: &'static str,
    input: Value,
    output: Value,
    example: Value,
    validator: OnceLock<Option<Validator>>,
}

/// All tools, in catalog order.
pub(super) static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(table);

/// The tool of that name.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// The catalog entry.
    pub(super) fn entry(&self) -> Entry {
        let mut entry = Entry::new(self.name, self.about, Arc::new(object(&self.input)));
        entry.output_schema = Some(Arc::new(object(&self.output)));
        entry.annotations = Some(self.hints.annotations());
        entry
    }

    /// Arguments that succeed.
    pub(super) fn example(&self) -> JsonObject {
        object(&self.example)
    }

    /// What is wrong with these arguments, in one sentence for the caller; values are not repeated.
    pub(super) fn complaint(&self, arguments: &JsonObject) -> Option<String> {
        let validator = self.validator.get_or_init(|| jsonschema::validator_for(&self.input).ok()).as_ref()?;
        let arguments = Value::Object(arguments.clone());
        let error = validator.validate(&arguments).err()?;
        let place = match error.instance_path().as_str() {
            "" => "the arguments",
            pointer => pointer,
        };
        let text = format!("Invalid arguments for {}: at {place}: {}", self.name, error.masked());
        Some(text.chars().take(MAX_COMPLAINT_CHARS).collect())
    }
}

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

/// A closed object schema that requires all of its properties.
fn closed(properties: &Value) -> Value {
    let mut schema = open(properties);
    schema["additionalProperties"] = json!(false);
    schema
}

/// An object schema that requires all of its properties.
fn open(properties: &Value) -> Value {
    let required: Vec<String> = object(properties).keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn table() -> Vec<Tool> {
    let tool = |name, act, hints, about, input, output: Value, example| Tool {
        name,
        act,
        hints,
        about,
        input,
        output: open(&output),
        example,
        validator: OnceLock::new(),
    };
    let note_id = json!({"id": {"type": "integer", "minimum": 1, "description": "Number of the note."}});
    let text = |about: &str| json!({"text": {"type": "string", "description": about}});
    let titles = json!({"titles": {"type": "array", "items": {"type": "string"}}});
    vec![
        tool(
            "list_notes",
            Act::ListNotes,
            Hints::Reads,
            "Lists the titles of all notes of this session, oldest first.",
            json!({"type": "object", "additionalProperties": false, "properties":
                {"limit": {"type": "integer", "minimum": 1, "description": "Most titles to list."}}}),
            titles.clone(),
            json!({}),
        ),
        tool(
            "search_notes",
            Act::SearchNotes,
            Hints::Reads,
            "Finds the notes whose title or text holds the given words.",
            closed(&json!({"query": {"type": "string", "description": "Words to look for."}})),
            titles,
            json!({"query": "tea"}),
        ),
        tool(
            "get_note",
            Act::GetNote,
            Hints::Reads,
            "Reads one note by its number; note 1 always exists at first.",
            closed(&note_id),
            json!({"title": {"type": "string"}, "text": {"type": "string"}}),
            json!({"id": 1}),
        ),
        tool(
            "write_note",
            Act::WriteNote,
            Hints::Adds,
            "Adds a note to this session and answers with its number.",
            closed(&json!({
                "title": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE_CHARS, "description": "Its title."},
                "text": {"type": "string", "maxLength": MAX_TEXT_CHARS, "description": "Its text."},
            })),
            json!({"id": {"type": "integer"}}),
            json!({"title": "Milk", "text": "Two bottles."}),
        ),
        tool(
            "delete_note",
            Act::DeleteNote,
            Hints::Destroys,
            "Deletes one note of this session for good, by its number.",
            closed(&note_id),
            json!({"deleted": {"type": "boolean"}}),
            json!({"id": 2}),
        ),
        tool(
            "word_stats",
            Act::WordStats,
            Hints::Reads,
            "Counts the words of a text and names the longest of them.",
            closed(&text("Text to count in.")),
            json!({"words": {"type": "integer"}, "longest": {"type": "string"}}),
            json!({"text": "a cup of tea"}),
        ),
        tool(
            "add",
            Act::Add,
            Hints::Reads,
            "Adds two numbers and answers with their sum as a number.",
            closed(&json!({
                "a": {"type": "number", "description": "First number."},
                "b": {"type": "number", "description": "Second number."},
            })),
            json!({"sum": {"type": "number"}}),
            json!({"a": 1, "b": 2}),
        ),
        tool(
            "wait",
            Act::Wait,
            Hints::Reads,
            "Waits, tells its progress if asked to, and can be cancelled.",
            closed(&json!({"milliseconds": {"type": "integer", "minimum": 10, "maximum": MAX_WAIT_MS,
                "description": "How long to wait."}})),
            json!({"waited": {"type": "integer"}}),
            json!({"milliseconds": 10}),
        ),
        tool(
            "poll_job",
            Act::PollJob,
            Hints::Reads,
            "Asks for a job. Errors say in data.retryable if asking again helps.",
            closed(
                &json!({"job": {"enum": ["done", "busy", "lost"], "description": "Busy is done when asked again."}}),
            ),
            json!({"state": {"type": "string"}}),
            json!({"job": "done"}),
        ),
        tool(
            "read_snapshot",
            Act::ReadSnapshot,
            Hints::Reads,
            "Reads a snapshot; the stale one fails until it is refreshed.",
            closed(&json!({"which": {"enum": ["current", "stale"], "description": "Which snapshot."}})),
            json!({"taken": {"type": "integer"}}),
            json!({"which": "current"}),
        ),
        tool(
            "refresh_snapshot",
            Act::RefreshSnapshot,
            Hints::Reads,
            "Takes this session's snapshots anew; changes no note. Subscribers of demo://snapshot are told.",
            closed(&json!({})),
            json!({"taken": {"type": "integer"}}),
            json!({}),
        ),
        tool(
            "summarize",
            Act::Summarize,
            Hints::Reads,
            "Shortens a text with the client's model, or by itself where there is none.",
            closed(&text("Text to shorten.")),
            json!({"summary": {"type": "string"}, "by": {"enum": ["client", "server"]}}),
            json!({"text": "Tea is hot. Drink it slowly."}),
        ),
        tool(
            "choose_color",
            Act::ChooseColor,
            Hints::Reads,
            "Asks the user for a color, or takes green where nobody can be asked.",
            closed(&json!({"question": {"type": "string", "maxLength": 500, "description": "What to ask."}})),
            json!({"color": {"type": "string"}, "by": {"enum": ["user", "server"]}}),
            json!({"question": "Which color?"}),
        ),
    ]
}
