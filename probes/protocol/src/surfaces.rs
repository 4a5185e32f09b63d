//! Declared surfaces besides tools: their lists are arrays and end.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use mcpeval_probe::{ExchangeId, Fault, View, json};

use crate::talk::Talk;
use crate::{CALL_FAILED, Judged};

/// Pages after which a list counts as endless.
const MAX_PAGES: usize = 1_000;
/// Capability, which is also the key of the list, and the method that lists it.
const SURFACES: [(&str, &str); 2] = [("resources", "resources/list"), ("prompts", "prompts/list")];

const INVALID: &str = "protocol-surface-invalid";

/// Lists every declared surface; `None` if none is declared.
pub(crate) fn surfaces(talk: &mut Talk<'_>, greeting: View<'_>) -> Result<Option<Judged>, Fault> {
    let capabilities = greeting.member("capabilities");
    let declared = |name: &str| capabilities.and_then(|all| all.member(name)).is_some_and(|value| !value.is_null());
    let mut judged: Option<Judged> = None;
    for (name, method) in SURFACES.into_iter().filter(|(name, _)| declared(name)) {
        let listed = list(talk, method, name)?;
        let so_far = judged.get_or_insert(Judged::new(None, None));
        // The first loss gives the reason.
        if so_far.lost.is_none() {
            *so_far = listed;
        }
    }
    Ok(judged)
}

/// Follows one list to its end.
fn list(talk: &mut Talk<'_>, method: &str, key: &str) -> Result<Judged, Fault> {
    let mut pages: Pages = Pages::default();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let asked = match &cursor {
            None => talk.ask(method, ())?,
            Some(cursor) => talk.ask(method, json!({"cursor": cursor}))?,
        };
        let answer = match asked {
            Ok(answer) => answer,
            Err(fault) => return Ok(Judged::new(Some(CALL_FAILED), fault.exchange)),
        };
        pages.evidence.push(answer.exchange);
        match pages.read(answer.reply.as_ref().ok().map(|result| result.view()), key) {
            Next::End => return Ok(Judged::new(None, pages.evidence)),
            Next::Invalid => break,
            Next::Follow(next) => cursor = Some(next),
        }
    }
    Ok(Judged::new(Some(INVALID), pages.evidence.last().copied()))
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    End,
    Invalid,
    Follow(String),
}

/// What the pages of one list have shown so far.
#[derive(Debug, Default)]
struct Pages {
    evidence: Vec<ExchangeId>,
    cursors: HashSet<String>,
    /// Digests of entries, enough to see whether a page brings anything new.
    entries: HashSet<u64>,
    /// The page was asked for with an empty cursor.
    after_empty: bool,
}

impl Pages {
    /// Reads one page, `None` for an error. An empty cursor is a cursor and is followed once; when that brings nothing,
    /// it meant the end.
    fn read(&mut self, result: Option<View<'_>>, key: &str) -> Next {
        let after_empty = std::mem::take(&mut self.after_empty);
        let page = result.and_then(|result| result.pick([key, "nextCursor"]));
        let Some([entries, next]) = page else {
            return if after_empty && result.is_none() { Next::End } else { Next::Invalid };
        };
        let Some(entries) = entries.and_then(View::items) else { return Next::Invalid };
        let mut news = false;
        for entry in entries {
            let mut hasher = DefaultHasher::new();
            entry.text().hash(&mut hasher);
            news |= self.entries.insert(hasher.finish());
        }
        if after_empty && !news {
            return Next::End;
        }
        let Some(next) = next.filter(|next| !next.is_null()) else { return Next::End };
        let Some(next) = next.string() else { return Next::Invalid };
        if !self.cursors.insert(next.clone().into_owned()) {
            return Next::Invalid;
        }
        self.after_empty = next.is_empty();
        Next::Follow(next.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use mcpeval_probe::{Json, Value};

    use super::*;

    fn read(pages: &mut Pages, result: Value) -> Next {
        pages.read(Some(Json::from(result).view()), "prompts")
    }

    #[test]
    fn a_list_ends_without_cursor() {
        for end in [json!({"prompts": []}), json!({"prompts": [{"name": "a"}], "nextCursor": null})] {
            assert_eq!(read(&mut Pages::default(), end), Next::End);
        }
    }

    #[test]
    fn unusable_pages_are_invalid() {
        for page in [json!({}), json!({"prompts": {}}), json!([]), json!({"prompts": [], "nextCursor": 7})] {
            assert_eq!(read(&mut Pages::default(), page.clone()), Next::Invalid, "{page}");
        }
        assert_eq!(Pages::default().read(None, "prompts"), Next::Invalid);
    }

    #[test]
    fn a_repeated_cursor_never_ends() {
        let mut pages = Pages::default();
        assert_eq!(read(&mut pages, json!({"prompts": [1], "nextCursor": "2"})), Next::Follow("2".to_owned()));
        assert_eq!(read(&mut pages, json!({"prompts": [2], "nextCursor": "2"})), Next::Invalid);
    }

    #[test]
    fn an_empty_cursor_is_followed_once() {
        let first = json!({"prompts": [1], "nextCursor": ""});
        let empty = || Next::Follow(String::new());
        let mut pages = Pages::default();
        assert_eq!(read(&mut pages, first.clone()), empty());
        assert_eq!(pages.read(None, "prompts"), Next::End, "an error to it is no loss");
        let mut pages = Pages::default();
        assert_eq!(read(&mut pages, first.clone()), empty());
        assert_eq!(read(&mut pages, first.clone()), Next::End, "nothing new");
        let mut pages = Pages::default();
        assert_eq!(read(&mut pages, first), empty());
        assert_eq!(read(&mut pages, json!({"prompts": [2], "nextCursor": ""})), Next::Invalid);
    }
}
