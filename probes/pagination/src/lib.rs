//! Kind `pagination`: its own listing of the tools, page by page. Every entry is valid, no name comes twice, and the last
//! page comes within the bound.

use std::collections::HashSet;

use mcpeval_probe::judge::{End, Fields, Trial, follow, integer, page_params};
use mcpeval_probe::{
    Case, Check, Fault, Finding, Level, Manifest, Metric, Outcome, Probe, Target, View, report, schema,
};

const METHOD_NOT_FOUND: i64 = -32601;
const MAX_PAGES: &str = "max_pages";

const ENTRIES: &str = "pagination.entries";
const UNIQUE: &str = "pagination.unique";
const ENDS: &str = "pagination.ends";

const INVALID_ENTRY: &str = "pagination-invalid-entry";
const DUPLICATE_TOOL: &str = "pagination-duplicate-tool";
const STALLED_CURSOR: &str = "pagination-stalled-cursor";

/// The component of kind `pagination`.
#[derive(Clone, Copy, Debug)]
pub struct Pagination;

/// The name of an entry that a client can use.
fn valid_name(entry: View<'_>) -> Option<String> {
    let [name, input] = entry.pick(["name", "inputSchema"])?;
    let name = name?.string().filter(|name| {
        (1..=128).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
    })?;
    let input = input.filter(|input| input.is_object())?;
    schema::check(input.text()).is_ok().then(|| name.into_owned())
}

/// What is wrong with the entries of a page: the check and the reason.
fn judge(entries: &[View<'_>], names: &mut HashSet<String>) -> Option<(&'static str, &'static str)> {
    let Some(valid) = entries.iter().copied().map(valid_name).collect::<Option<Vec<_>>>() else {
        return Some((ENTRIES, INVALID_ENTRY));
    };
    let unique = valid.into_iter().all(|name| names.insert(name));
    (!unique).then_some((UNIQUE, DUPLICATE_TOOL))
}

impl Probe for Pagination {
    fn manifest() -> Manifest {
        let pages = "https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination";
        let tools = "https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool";
        Manifest::new("pagination", env!("CARGO_PKG_VERSION"), "The list of tools is sound and ends")
            .summary("Lists the tools page by page and follows every cursor, as a client that wants all of them must.")
            .config(Fields::new().required(MAX_PAGES, integer(1, 1_000)).schema())
            .check(Check::new(ENTRIES, Level::Must, "Pages are arrays of valid entries").reference(tools))
            .check(Check::new(UNIQUE, Level::Must, "No tool is listed twice").reference(tools))
            .check(Check::new(ENDS, Level::Must, "The cursor ends within max_pages").reference(pages))
            .reason(
                INVALID_ENTRY,
                "A page of tools/list is an error or no array, has a nextCursor that is no string, or holds an entry whose \
                 name breaks [A-Za-z0-9_.:-]{1,128} or whose inputSchema is no object or does not compile; correct that \
                 page, clients cannot use it.",
                &[ENTRIES],
            )
            .reason(
                DUPLICATE_TOOL,
                "Two entries of tools/list have the same name, so a client cannot tell which one it calls; begin each page \
                 after the last tool of the page before, and give every tool a name of its own.",
                &[UNIQUE],
            )
            .reason(
                STALLED_CURSOR,
                "tools/list goes on after max_pages pages or names a cursor it named before, so a client never gets the \
                 whole list; move the cursor on with every page and leave nextCursor out on the last.",
                &[ENDS],
            )
            .metric(Metric::number("tool_count", "tools"))
            .metric(Metric::number("pages", "pages"))
            .asks(3, 0, 500)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let max_pages = case.number(MAX_PAGES)?;
        let session = target.primary()?;
        let greeting = session.greeting();
        let declared = greeting.view().member("capabilities").and_then(|all| all.member("tools"));
        let mut trial = Trial::new(&[ENTRIES, UNIQUE, ENDS]);
        let mut names = HashSet::new();
        let mut no_tools = false;
        let ask = |cursor: Option<&str>| {
            let answer = session.request("tools/list", page_params(cursor))?;
            trial.attempt([answer.exchange]);
            // Who has no tools and says so twice has an empty list.
            no_tools |= declared.is_none() && cursor.is_none() && answer.error_code() == Some(METHOD_NOT_FOUND);
            Ok(answer)
        };
        let list = follow("tools", max_pages, ask, |entries| judge(entries, &mut names))?;
        report::measure("tool_count", f64::from(list.items));
        report::measure("pages", f64::from(list.pages));
        Ok(match list.end {
            End::Reached => trial.pass(),
            End::Invalid if no_tools => trial.pass(),
            End::Invalid => trial.fail(Finding::fail(ENTRIES, INVALID_ENTRY)),
            End::Declined((check, reason)) => trial.fail(Finding::fail(check, reason)),
            End::Repeated => trial.fail(Finding::fail(ENDS, STALLED_CURSOR)),
            End::Endless => {
                trial.fail(Finding::fail(ENDS, STALLED_CURSOR).bound(MAX_PAGES, max_pages, max_pages.saturating_add(1)))
            }
        })
    }
}

mcpeval_probe::export!(Pagination);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script, Sent};
    use mcpeval_probe::{Cause, Value, json};

    use super::*;

    fn tool(name: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}})
    }

    /// Serves these pages, each but the last with a cursor to the next.
    fn script(pages: Vec<Vec<Value>>) -> Script {
        Script::new([]).on_request(move |sent: &Sent| {
            let at = sent.params["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let mut result = json!({"tools": pages[at]});
            if at + 1 < pages.len() {
                result["nextCursor"] = json!((at + 1).to_string());
            }
            Reply::result(result)
        })
    }

    fn run(script: Script, max_pages: u32) -> Run {
        script.run::<Pagination>(json!({"max_pages": max_pages}))
    }

    fn lost(run: &Run) -> Vec<String> {
        run.lost().into_iter().map(|(_, _, reason)| reason).collect()
    }

    fn ended(run: &Run) -> (u32, Option<u32>) {
        let outcome = run.outcome.as_ref().unwrap();
        (outcome.attempts, outcome.first_failure)
    }

    #[test]
    fn a_sound_list_passes_at_its_bound() {
        let run = run(script(vec![vec![tool("a"), tool("b")], vec![tool("c")]]), 2);
        assert_eq!(run.lost(), []);
        assert_eq!(ended(&run), (2, None));
        assert_eq!((run.number("tool_count"), run.number("pages")), (Some(3.0), Some(2.0)));
        assert_eq!(run.findings.len(), 3);
    }

    #[test]
    fn a_page_beyond_the_bound_names_it() {
        let run = run(script(vec![vec![tool("a")], vec![tool("b")]]), 1);
        assert_eq!(lost(&run), [STALLED_CURSOR]);
        assert_eq!(ended(&run), (1, Some(1)));
        let bound = run.loss(ENDS, None).unwrap().bound.clone().unwrap();
        assert_eq!((bound.name.as_str(), bound.limit, bound.observed), ("max_pages", 1, 2));
    }

    #[test]
    fn a_repeated_cursor_breaks_no_bound() {
        let again = json!({"tools": [], "nextCursor": "again"});
        let run = run(Script::new([]).on_request(move |_| Reply::result(again.clone())), 9);
        assert_eq!(lost(&run), [STALLED_CURSOR]);
        assert_eq!(ended(&run), (2, Some(2)));
        assert_eq!(run.loss(ENDS, None).unwrap().bound, None);
    }

    #[test]
    fn a_name_that_comes_twice_is_a_duplicate() {
        let run = run(script(vec![vec![tool("a")], vec![tool("b"), tool("a")]]), 9);
        assert_eq!(lost(&run), [DUPLICATE_TOOL]);
        assert_eq!(ended(&run), (2, Some(2)));
    }

    #[test]
    fn every_unusable_entry_is_invalid() {
        for entry in [
            json!(7),
            json!({"inputSchema": {}}),
            tool(""),
            tool("a b"),
            tool(&"x".repeat(129)),
            json!({"name": "a"}),
            json!({"name": "a", "inputSchema": true}),
            json!({"name": "a", "inputSchema": {"type": "objekt"}}),
        ] {
            let script = script(vec![vec![tool("good"), entry.clone()]])
                .on_check(|schema| if schema["type"] == "objekt" { Err("type".to_owned()) } else { Ok(()) });
            assert_eq!(lost(&run(script, 9)), [INVALID_ENTRY], "{entry}");
        }
        assert_eq!(lost(&run(script(vec![vec![tool(&"x".repeat(128))]]), 1)), [""; 0]);
    }

    #[test]
    fn unusable_pages_are_invalid() {
        for page in [json!({"tools": {}}), json!({}), json!({"tools": [], "nextCursor": 1})] {
            assert_eq!(
                lost(&run(Script::new([]).on_request(move |_| Reply::result(page.clone())), 9)),
                [INVALID_ENTRY]
            );
        }
        let refusing = || Script::new([]).on_request(|_| Reply::error(METHOD_NOT_FOUND, "no"));
        assert_eq!(lost(&run(refusing(), 9)), [INVALID_ENTRY]);
        let undeclared = run(refusing().greeting(json!({"capabilities": {}})), 9);
        assert_eq!((undeclared.lost(), ended(&undeclared)), (vec![], (1, None)));
    }

    #[test]
    fn without_an_answer_there_is_no_verdict() {
        let run = run(Script::new([]).on_request(|_| Reply::fault(Cause::TimedOut)), 9);
        assert_eq!(run.outcome.unwrap_err().cause, Cause::TimedOut);
        assert_eq!(run.findings, []);
    }
}
