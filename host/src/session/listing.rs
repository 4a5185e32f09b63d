//! Listing the tools of a server: pages, cursors, and what makes an entry invalid (docs/standard.md).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::catalog::{Catalog, Entry, ToolClass};
use super::object::{self, Object};
use super::{Cause, Context, Fault, Session, message};
use crate::services::schema;

/// Pages of one listing (docs/standard.md).
pub const MAX_PAGES: usize = 1_000;

/// The method that lists.
pub(super) const LIST: &str = "tools/list";
const METHOD_NOT_FOUND: i64 = -32601;

/// One usable page.
struct Page {
    exchange: u32,
    tools: Vec<String>,
    next: Next,
}

/// Where a page says that the listing goes on.
enum Next {
    End,
    Cursor(String),
    /// Something that is no string.
    Unusable,
}

enum Reply {
    Page(Page),
    /// The server's error object has this code, or the result holds no array of tools.
    Unusable {
        fault: Fault,
        code: Option<i64>,
        exchange: u32,
    },
}

/// List the catalog. `Err` only if the first page had a fault of the transport or the budget: then there is nothing to
/// evaluate. A later page that fails keeps what was listed and stands as the catalog's fault.
pub async fn list(session: &Session, context: &Context, timeout: Duration) -> Result<Catalog, Fault> {
    let mut catalog = Catalog::default();
    let mut known: HashSet<String> = HashSet::new();
    let mut cursors: HashSet<String> = HashSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let reply = match page(session, context, cursor.as_deref(), timeout).await {
            Ok(reply) => reply,
            Err(fault) if catalog.pages.is_empty() => return Err(fault),
            Err(_) if cursor.as_deref() == Some("") && context.ledger.open().is_ok() => break,
            Err(fault) => {
                catalog.fault = Some(fault);
                break;
            }
        };
        let page = match reply {
            Reply::Page(page) => page,
            Reply::Unusable { fault, code, exchange } => {
                let is_first = catalog.pages.is_empty();
                catalog.pages.push(exchange);
                let excused = cursor.as_deref() == Some("")
                    || (is_first && code == Some(METHOD_NOT_FOUND) && !declares_tools(&session.greeting()));
                catalog.fault = (!excused).then_some(fault);
                break;
            }
        };
        catalog.pages.push(page.exchange);
        let first = catalog.entries.len();
        let mut entries = read_entries(page.tools, first).await;
        for entry in &mut entries {
            entry.repeated = !known.insert(entry.label.clone());
        }
        let brings_nothing_new = entries.iter().all(|entry| entry.repeated);
        if cursor.as_deref() == Some("") && brings_nothing_new {
            break;
        }
        catalog.entries.append(&mut entries);
        let next = match page.next {
            Next::Cursor(next) => next,
            Next::End => break,
            Next::Unusable => {
                let fault =
                    Fault::new(Cause::Malformed, "a nextCursor of tools/list is no string").citing(page.exchange);
                catalog.fault = Some(fault);
                break;
            }
        };
        if !cursors.insert(next.clone()) {
            // An empty cursor is followed once; given again it is the end.
            if !next.is_empty() {
                let fault = Fault::new(Cause::Other, "tools/list gave the same cursor twice").citing(page.exchange);
                catalog.fault = Some(fault);
            }
            break;
        }
        if catalog.pages.len() >= MAX_PAGES {
            let detail = format!("tools/list did not end within {MAX_PAGES} pages");
            catalog.fault = Some(Fault::new(Cause::Other, detail).citing(page.exchange));
            break;
        }
        cursor = Some(next);
    }
    suspect_twins(&mut catalog);
    Ok(catalog)
}

/// Which of several entries with one name the server would run is its secret: if any of them declares that it writes, a
/// call might, so all of them do.
fn suspect_twins(catalog: &mut Catalog) {
    let writers: HashSet<String> = catalog
        .entries
        .iter()
        .filter(|entry| entry.hinted == ToolClass::Writer)
        .map(|entry| entry.label.clone())
        .collect();
    for entry in catalog.entries.iter_mut().filter(|entry| writers.contains(&entry.label)) {
        entry.hinted = ToolClass::Writer;
        if entry.class != ToolClass::Invalid {
            entry.class = ToolClass::Writer;
        }
    }
}

/// What every client is shown, and beside it whatever else another listing of the same server has: entries of a known
/// name stand beside the known one, and count as its twins.
pub fn join(plain: &Catalog, other: Catalog) -> Catalog {
    let mut joined = plain.clone();
    let known: HashSet<&str> = plain.entries.iter().map(|entry| entry.label.as_str()).collect();
    let same: HashSet<&str> = plain.entries.iter().map(|entry| &*entry.raw).collect();
    let added = other.entries.into_iter().filter(|entry| !same.contains(&*entry.raw));
    joined
        .entries
        .extend(added.map(|entry| Entry { repeated: entry.repeated || known.contains(&*entry.label), ..entry }));
    joined.pages.extend(other.pages);
    joined.fault = joined.fault.or(other.fault);
    suspect_twins(&mut joined);
    joined
}

async fn page(session: &Session, context: &Context, cursor: Option<&str>, timeout: Duration) -> Result<Reply, Fault> {
    let params = cursor.map_or_else(|| "{}".into(), |cursor| format!("{{\"cursor\":{}}}", message::quoted(cursor)));
    let answer = session.request(context, LIST, Some(&params), timeout).await?;
    let unusable = |detail: String, code| {
        let fault = Fault::new(Cause::Malformed, detail).citing(answer.exchange);
        Ok(Reply::Unusable { fault, code, exchange: answer.exchange })
    };
    match &answer.reply {
        Ok(result) => match read_page(result) {
            Some((tools, next)) => Ok(Reply::Page(Page { exchange: answer.exchange, tools, next })),
            None => unusable("a result of tools/list holds no array of tools".into(), None),
        },
        Err(error) => {
            let code = message::error_code(error);
            unusable(format!("tools/list was answered with error {}", code.unwrap_or_default()), code)
        }
    }
}

/// The tools of a result, and where it says that the listing goes on; none if it has no array of tools.
fn read_page(result: &str) -> Option<(Vec<String>, Next)> {
    let result = Object::read(result)?;
    let tools = object::items(result.get("tools")?)?.into_iter().map(str::to_owned).collect();
    let next = match result.get("nextCursor") {
        None | Some("null") => Next::End,
        Some(next) => object::string(next).map_or(Next::Unusable, Next::Cursor),
    };
    Some((tools, next))
}

/// The names that a result of `tools/list` declares to write, of every array of tools in it and every name of a tool.
pub(super) fn writers(result: &str) -> Vec<String> {
    let Some(result) = Object::read(result) else { return Vec::new() };
    let tools = result.all("tools").filter_map(object::items).flatten().filter_map(Object::read);
    let writers = tools.filter(|tool| class(tool.all("annotations")) == ToolClass::Writer);
    writers.flat_map(|tool| tool.all("name").filter_map(object::string).collect::<Vec<_>>()).collect()
}

fn declares_tools(greeting: &str) -> bool {
    object::at(greeting, &["capabilities", "tools"]).is_some_and(object::is_object)
}

/// Compiling the schemas of a page is work for a thread that may block.
pub(crate) async fn read_entries(tools: Vec<String>, first: usize) -> Vec<Entry> {
    let reading = tokio::task::spawn_blocking(move || {
        tools.iter().enumerate().map(|(index, raw)| read_entry(raw, first + index)).collect()
    });
    reading.await.unwrap_or_default()
}

fn read_entry(raw: &str, position: usize) -> Entry {
    let tool = Object::read(raw).filter(|tool| !tool.repeats("name"));
    let is_object = tool.is_some();
    let tool = tool.unwrap_or_default();
    let name = tool.get("name").and_then(object::string).filter(|name| is_label(name));
    let hinted = class(tool.all("annotations"));
    let compiles = tool
        .get("inputSchema")
        .filter(|_| !tool.repeats("inputSchema"))
        .and_then(|input| serde_json::from_str::<serde_json::Value>(input).ok())
        .is_some_and(|input| input.is_object() && schema::check(&input).is_ok());
    let is_valid = is_object && name.is_some() && compiles;
    Entry {
        label: name.unwrap_or_else(|| format!("invalid-name#{position}")),
        class: if is_valid { hinted } else { ToolClass::Invalid },
        repeated: false,
        hinted,
        raw: Arc::from(raw),
    }
}

/// `[A-Za-z0-9_.:-]{1,128}`.
pub fn is_label(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-'))
}

/// The class that the hints of an entry give; hints that are no booleans count as absent. Where one stands several
/// times, every reader may pick another, so the strictest of them holds.
fn class<'a>(annotations: impl Iterator<Item = &'a str>) -> ToolClass {
    let (mut writes, mut reads, mut unsure) = (false, false, false);
    for hints in annotations.filter_map(Object::read) {
        writes |= hints.all("destructiveHint").any(|hint| hint == "true");
        for hint in hints.all("readOnlyHint") {
            match hint {
                "true" => reads = true,
                "false" => writes = true,
                _ => unsure = true,
            }
        }
    }
    match (writes, reads && !unsure) {
        (true, _) => ToolClass::Writer,
        (false, true) => ToolClass::ReadOnly,
        (false, false) => ToolClass::Unannotated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_the_first_matching_rule() {
        for (hints, expected) in [
            (r#"{"destructiveHint":true,"readOnlyHint":true}"#, ToolClass::Writer),
            (r#"{"readOnlyHint":false}"#, ToolClass::Writer),
            (r#"{"readOnlyHint":true,"destructiveHint":false}"#, ToolClass::ReadOnly),
            (r#"{"destructiveHint":false}"#, ToolClass::Unannotated),
            (r#"{"readOnlyHint":"false"}"#, ToolClass::Unannotated),
            (r#"{"readOnlyHint":false,"readOnlyHint":true}"#, ToolClass::Writer),
            (r#"{"destructiveHint":true,"destructiveHint":false,"readOnlyHint":true}"#, ToolClass::Writer),
            (r#"{"readOnlyHint":true,"readOnlyHint":1}"#, ToolClass::Unannotated),
            (r#"{"title":"\ud800","destructiveHint":true}"#, ToolClass::Writer),
            ("[false,true]", ToolClass::Unannotated),
            ("null", ToolClass::Unannotated),
        ] {
            assert_eq!(class([hints].into_iter()), expected, "{hints}");
        }
    }

    #[test]
    fn of_hints_given_twice_the_strictest_hold() {
        let mild = r#"{"readOnlyHint":true}"#;
        for other in [r#"{"destructiveHint":true}"#, r#"{"readOnlyHint":false}"#] {
            for (first, second) in [(mild, other), (other, mild)] {
                let raw = format!(r#"{{"name":"a","inputSchema":{{}},"annotations":{first},"annotations":{second}}}"#);
                assert_eq!(read_entry(&raw, 0).class, ToolClass::Writer, "{raw}");
            }
        }
    }

    #[test]
    fn a_page_is_an_object_with_an_array_of_tools() {
        let seen = |result: &str| {
            read_page(result).map(|(tools, next)| {
                let next = match next {
                    Next::End => "end".to_owned(),
                    Next::Cursor(cursor) => format!("cursor {cursor}"),
                    Next::Unusable => "unusable".to_owned(),
                };
                (tools.len(), next)
            })
        };
        for (result, expected) in [
            (r#"{"tools":[]}"#, Some((0, "end"))),
            (r#"{"tools":[1,{}],"nextCursor":null}"#, Some((2, "end"))),
            (r#"{"tools":[],"nextCursor":"b"}"#, Some((0, "cursor b"))),
            (r#"{"tools":[],"nextCursor":["b"]}"#, Some((0, "unusable"))),
            // As every kind reads it: the last one.
            (r#"{"tools":[1],"tools":[],"nextCursor":"a","nextCursor":"b"}"#, Some((0, "cursor b"))),
            (r#"{"_meta":"\ud800","tools":[1]}"#, Some((1, "end"))),
            (r#"[[{"name":"a","inputSchema":{}}],null]"#, None),
            (r#"{"tools":{"0":{}}}"#, None),
            (r#"{"tools":null}"#, None),
            ("{}", None),
            ("null", None),
        ] {
            assert_eq!(seen(result), expected.map(|(count, next)| (count, next.to_owned())), "{result}");
        }
    }

    #[test]
    fn whatever_a_listing_declares_to_write_is_noticed() {
        let listing = r#"{"tools":[{"name":"a","annotations":{"destructiveHint":true}},{"name":"b"},7],
            "tools":[{"name":"c","name":"d","annotations":{"readOnlyHint":false}}]}"#;
        assert_eq!(writers(listing), ["a", "c", "d"]);
        for none in ["[]", "null", r#"{"tools":7}"#, r#"[[{"name":"a","annotations":{"destructiveHint":true}}]]"#] {
            assert!(writers(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn an_entry_is_invalid_for_each_of_its_reasons() {
        let good = r#"{"name":"find","inputSchema":{"type":"object"}}"#;
        assert_eq!(read_entry(good, 0).class, ToolClass::Unannotated);
        for (raw, label) in [
            ("7", "invalid-name#3"),
            (r#"["name"]"#, "invalid-name#3"),
            (r#"{"name":"bad/name","inputSchema":{}}"#, "invalid-name#3"),
            (r#"{"name":"","inputSchema":{}}"#, "invalid-name#3"),
            (r#"{"name":"find","name":"find","inputSchema":{}}"#, "invalid-name#3"),
            (r#"{"name":"find"}"#, "find"),
            (r#"{"name":"find","inputSchema":{},"inputSchema":{}}"#, "find"),
            (r#"{"name":"find","inputSchema":true}"#, "find"),
            (r#"{"name":"find","inputSchema":{"type":"nothing"}}"#, "find"),
            (r#"{"name":"find","inputSchema":{"$ref":"https://example.com/schema"}}"#, "find"),
        ] {
            let entry = read_entry(raw, 3);
            assert_eq!((entry.class, entry.label.as_str()), (ToolClass::Invalid, label), "{raw}");
        }
    }

    #[test]
    fn an_entry_invalid_by_its_schema_keeps_what_its_hints_say() {
        let raw = r#"{"name":"drop","inputSchema":5,"annotations":{"destructiveHint":true}}"#;
        let entry = read_entry(raw, 0);
        assert_eq!((entry.class, entry.hinted), (ToolClass::Invalid, ToolClass::Writer));
    }

    #[test]
    fn a_name_that_any_entry_declares_to_write_is_a_writer() {
        let entries = [
            r#"{"name":"twin","inputSchema":{},"annotations":{"readOnlyHint":true}}"#,
            r#"{"name":"twin","inputSchema":7,"annotations":{"destructiveHint":true}}"#,
            r#"{"name":"other","inputSchema":{},"annotations":{"readOnlyHint":true}}"#,
        ];
        let entries = entries.iter().enumerate().map(|(position, raw)| read_entry(raw, position)).collect();
        let mut catalog = Catalog { entries, ..Catalog::default() };
        suspect_twins(&mut catalog);
        let classes: Vec<ToolClass> = catalog.entries.iter().map(|entry| entry.class).collect();
        assert_eq!(classes, [ToolClass::Writer, ToolClass::Invalid, ToolClass::ReadOnly]);
    }

    #[test]
    fn what_another_client_is_shown_joins_and_never_softens() {
        let catalog = |entries: &[&str]| Catalog {
            entries: entries.iter().enumerate().map(|(position, raw)| read_entry(raw, position)).collect(),
            ..Catalog::default()
        };
        let same = r#"{"name":"same","inputSchema":{},"annotations":{"readOnlyHint":true}}"#;
        let mild = r#"{"name":"two-faced","inputSchema":{},"annotations":{"readOnlyHint":true}}"#;
        let harmful = r#"{"name":"two-faced","inputSchema":{},"annotations":{"destructiveHint":true}}"#;
        let asks = r#"{"name":"asks","inputSchema":{}}"#;
        for (plain, other) in [([same, mild], [harmful, asks]), ([same, harmful], [mild, asks])] {
            let joined = join(&catalog(&plain), catalog(&[same, other[0], other[1]]));
            let seen: Vec<(&str, ToolClass, bool)> =
                joined.entries.iter().map(|entry| (entry.label.as_str(), entry.class, entry.repeated)).collect();
            let expected = [
                ("same", ToolClass::ReadOnly, false),
                ("two-faced", ToolClass::Writer, false),
                ("two-faced", ToolClass::Writer, true),
                ("asks", ToolClass::Unannotated, false),
            ];
            assert_eq!(seen, expected);
        }
        let broken = Catalog { fault: Some(Fault::new(Cause::Closed, "gone")), ..Catalog::default() };
        assert!(!join(&catalog(&[same]), broken).is_complete());
    }

    #[test]
    fn labels_have_a_grammar() {
        assert!(is_label("a.B_c:d-1") && is_label(&"a".repeat(128)));
        for bad in ["", "a b", "a/b", "\u{e4}", &"a".repeat(129)] {
            assert!(!is_label(bad), "{bad}");
        }
    }
}
