//! Lists that come in pages: followed to their end, or to what stands in its way.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{Answer, ExchangeId, Json, View, json};

/// A list of something other than tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// The method that lists it.
    pub method: &'static str,
    /// Key of the list in its result, which is also the capability.
    pub key: &'static str,
}

const SURFACES: [Surface; 2] =
    [Surface { method: "resources/list", key: "resources" }, Surface { method: "prompts/list", key: "prompts" }];

/// The surfaces that a greeting declares.
pub fn surfaces(greeting: View<'_>) -> impl Iterator<Item = Surface> {
    let capabilities = greeting.member("capabilities");
    SURFACES.into_iter().filter(move |surface| {
        capabilities.and_then(|all| all.member(surface.key)).is_some_and(|value| !value.is_null())
    })
}

/// How following a list ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<R> {
    /// The last page named no other.
    Reached,
    /// A page is an error, has no array under its key, or a cursor that is no string.
    Invalid,
    /// A cursor came twice.
    Repeated,
    /// After the most pages there may be, there is still one more.
    Endless,
    /// The entries of a page were not taken.
    Declined(R),
}

/// What following a list came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed<R> {
    /// How it ended; anything but [`End::Reached`] is the fault of the last page.
    pub end: End<R>,
    /// Requests, each for one page.
    pub pages: u32,
    /// Entries of all pages.
    pub items: u32,
    /// The pages, to cite.
    pub evidence: Vec<ExchangeId>,
}

/// The parameters that ask for a page: the first one, or that of a cursor.
pub fn page_params(cursor: Option<&str>) -> Json {
    Json::from(cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor})))
}

/// Follows the list under `key` for at most `max_pages` pages. `ask` fetches a page; `judge` sees the entries of each and
/// may decline them.
///
/// An empty cursor is a cursor and is followed once; when that gives an error or nothing new, it meant the end.
///
/// # Errors
///
/// Those of `ask`.
pub fn follow<R, E>(
    key: &str,
    max_pages: u32,
    mut ask: impl FnMut(Option<&str>) -> Result<Answer, E>,
    mut judge: impl FnMut(&[View<'_>]) -> Option<R>,
) -> Result<Followed<R>, E> {
    let mut seen = Seen::default();
    let mut followed = Followed { end: End::Endless, pages: 0, items: 0, evidence: Vec::new() };
    let mut cursor: Option<String> = None;
    while followed.pages < max_pages {
        let answer = ask(cursor.as_deref())?;
        followed.pages += 1;
        followed.evidence.push(answer.exchange);
        let result = answer.reply.as_ref().ok().map(Json::view);
        let Next { entries, end } = seen.read(result, key, cursor.as_deref());
        followed.items = followed.items.saturating_add(u32::try_from(entries.len()).unwrap_or(u32::MAX));
        if let Some(reason) = judge(&entries) {
            followed.end = End::Declined(reason);
            return Ok(followed);
        }
        match end {
            Ok(next) => cursor = Some(next),
            Err(end) => {
                followed.end = end;
                return Ok(followed);
            }
        }
    }
    Ok(followed)
}

/// What a page holds, and the cursor that follows or the end.
#[derive(Debug, PartialEq, Eq)]
struct Next<'a, R> {
    entries: Vec<View<'a>>,
    end: Result<String, End<R>>,
}

impl<R> Next<'_, R> {
    fn end(end: End<R>) -> Self {
        Self { entries: Vec::new(), end: Err(end) }
    }
}

/// What the pages of one list have shown so far.
#[derive(Debug, Default)]
struct Seen {
    cursors: HashSet<String>,
    /// Digests of entries, enough to see whether a page brings anything new.
    entries: HashSet<u64>,
}

impl Seen {
    /// Reads the page asked for with that cursor, `None` for an error.
    fn read<'a, R>(&mut self, result: Option<View<'a>>, key: &str, cursor: Option<&str>) -> Next<'a, R> {
        let after_empty = cursor == Some("");
        let Some(result) = result else {
            return Next::end(if after_empty { End::Reached } else { End::Invalid });
        };
        let Some([Some(entries), next]) = result.pick([key, "nextCursor"]) else { return Next::end(End::Invalid) };
        let Some(entries) = entries.items() else { return Next::end(End::Invalid) };
        let mut news = false;
        for entry in &entries {
            let mut hasher = DefaultHasher::new();
            entry.text().hash(&mut hasher);
            news |= self.entries.insert(hasher.finish());
        }
        if after_empty && !news {
            return Next::end(End::Reached);
        }
        let end = match next.filter(|next| !next.is_null()).map(View::string) {
            None => Err(End::Reached),
            Some(None) => Err(End::Invalid),
            Some(Some(next)) if self.cursors.insert(next.clone().into_owned()) => Ok(next.into_owned()),
            Some(Some(_)) => Err(End::Repeated),
        };
        Next { entries, end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    /// Follows a list of prompts that is answered from a table, in order.
    fn followed(max_pages: u32, pages: Vec<Result<Value, Value>>) -> (Followed<&'static str>, Vec<Option<String>>) {
        let mut asked = Vec::new();
        let mut pages = pages.into_iter().zip(1..);
        let ask = |cursor: Option<&str>| {
            asked.push(cursor.map(str::to_owned));
            let (reply, exchange) = pages.next().ok_or("asked too often")?;
            let reply = reply.map(Json::from).map_err(Json::from);
            Ok::<_, &str>(Answer { exchange, elapsed_us: 1, status: None, reply })
        };
        let judge = |entries: &[View<'_>]| entries.iter().any(|entry| entry.is_null()).then_some("null");
        (follow("prompts", max_pages, ask, judge).unwrap(), asked)
    }

    fn end(pages: Vec<Result<Value, Value>>) -> End<&'static str> {
        followed(9, pages).0.end
    }

    #[test]
    fn a_list_ends_without_cursor() {
        for last in [json!({"prompts": []}), json!({"prompts": [{"name": "a"}], "nextCursor": null})] {
            assert_eq!(end(vec![Ok(last)]), End::Reached);
        }
        let pages = vec![Ok(json!({"prompts": [1, 2], "nextCursor": "b"})), Ok(json!({"prompts": [3]}))];
        let (list, asked) = followed(2, pages);
        assert_eq!(list, Followed { end: End::Reached, pages: 2, items: 3, evidence: vec![1, 2] });
        assert_eq!(asked, [None, Some("b".to_owned())]);
    }

    #[test]
    fn unusable_pages_are_invalid() {
        for page in [json!({}), json!({"prompts": {}}), json!([]), json!({"prompts": [], "nextCursor": 7})] {
            assert_eq!(end(vec![Ok(page.clone())]), End::Invalid, "{page}");
        }
        assert_eq!(end(vec![Err(json!({"code": -32601, "message": "no"}))]), End::Invalid);
    }

    #[test]
    fn a_repeated_cursor_never_ends() {
        let page = |entry: u32| Ok(json!({"prompts": [entry], "nextCursor": "2"}));
        assert_eq!(end(vec![page(1), page(2)]), End::Repeated);
    }

    #[test]
    fn one_page_too_many_is_not_asked_for() {
        let page = |number: u32| Ok(json!({"prompts": [number], "nextCursor": number.to_string()}));
        let (list, asked) = followed(2, vec![page(1), page(2)]);
        assert_eq!((list.end, list.pages, asked.len()), (End::Endless, 2, 2));
    }

    #[test]
    fn declined_entries_end_the_list_before_its_cursor_does() {
        let (list, asked) = followed(9, vec![Ok(json!({"prompts": [null], "nextCursor": 7}))]);
        assert_eq!((list.end, list.items, asked.len()), (End::Declined("null"), 1, 1));
    }

    #[test]
    fn an_empty_cursor_is_followed_once() {
        let first = || Ok(json!({"prompts": [1], "nextCursor": ""}));
        let (list, asked) = followed(9, vec![first(), Err(json!({"code": -32602, "message": "no"}))]);
        assert_eq!((list.end, asked[1].as_deref()), (End::Reached, Some("")), "an error to it is no loss");
        assert_eq!(end(vec![first(), first()]), End::Reached, "nothing new");
        assert_eq!(end(vec![first(), Ok(json!({"prompts": [2], "nextCursor": ""}))]), End::Repeated);
    }
}
