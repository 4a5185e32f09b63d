//! Kind `surface-listing`: the resources and prompts that a server declares can be listed, and the lists end.

use mcpeval_probe::judge::{End, Fields, Trial, follow, integer, page_params, surfaces};
use mcpeval_probe::{Case, Check, Fault, Finding, Level, Manifest, Metric, Outcome, Probe, Target, report};

const MAX_PAGES: &str = "max_pages";

const ENVELOPE: &str = "surface-listing.envelope";
const ENDS: &str = "surface-listing.ends";

const INVALID_ENVELOPE: &str = "surface-invalid-envelope";
const STALLED_CURSOR: &str = "surface-stalled-cursor";

/// The component of kind `surface-listing`.
#[derive(Clone, Copy, Debug)]
pub struct SurfaceListing;

impl Probe for SurfaceListing {
    fn manifest() -> Manifest {
        let pages = "https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination";
        Manifest::new("surface-listing", env!("CARGO_PKG_VERSION"), "Declared resources and prompts can be listed")
            .summary("Follows resources/list and prompts/list to their end, as far as the server declares them.")
            .config(Fields::new().required(MAX_PAGES, integer(1, 1_000)).schema())
            .check(Check::new(ENVELOPE, Level::Must, "Declared surfaces give arrays").reference(pages))
            .check(Check::new(ENDS, Level::Must, "Each list ends within max_pages").reference(pages))
            .reason(
                INVALID_ENVELOPE,
                "A declared surface answers its list request with an error, without the array resources or prompts, or with \
                 a nextCursor that is no string; implement the method, or do not declare the capability.",
                &[ENVELOPE],
            )
            .reason(
                STALLED_CURSOR,
                "resources/list or prompts/list goes on after max_pages pages or names a cursor it named before; move the \
                 cursor on with every page and leave nextCursor out on the last.",
                &[ENDS],
            )
            .metric(Metric::number("tool_count", "items"))
            .metric(Metric::number("pages", "pages"))
            .asks(2, 0, 500)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let max_pages = case.number(MAX_PAGES)?;
        let session = target.primary()?;
        let mut trial = Trial::new(&[ENVELOPE, ENDS]);
        let (mut items, mut pages) = (0_u32, 0_u32);
        let mut lost = None;
        for surface in surfaces(session.greeting().view()) {
            let ask = |cursor: Option<&str>| {
                let answer = session.request(surface.method, page_params(cursor))?;
                trial.attempt([answer.exchange]);
                Ok(answer)
            };
            let followed = follow(surface.key, max_pages, ask, |_| None::<()>)?;
            items = items.saturating_add(followed.items);
            pages = pages.saturating_add(followed.pages);
            lost = match followed.end {
                End::Reached | End::Declined(()) => None,
                End::Invalid => Some(Finding::fail(ENVELOPE, INVALID_ENVELOPE)),
                End::Repeated => Some(Finding::fail(ENDS, STALLED_CURSOR)),
                End::Endless => {
                    let observed = max_pages.saturating_add(1);
                    Some(Finding::fail(ENDS, STALLED_CURSOR).bound(MAX_PAGES, max_pages, observed))
                }
            };
            if lost.is_some() {
                break;
            }
        }
        if trial.attempts() == 0 {
            return Ok(Outcome { attempts: 0, first_failure: None });
        }
        report::measure("tool_count", f64::from(items));
        report::measure("pages", f64::from(pages));
        Ok(match lost {
            Some(finding) => trial.fail(finding),
            None => trial.pass(),
        })
    }
}

mcpeval_probe::export!(SurfaceListing);

#[cfg(test)]
mod tests {
    use mcpeval_probe::testing::{Reply, Run, Script, Sent};
    use mcpeval_probe::{Cause, Value, json};

    use super::*;

    fn run(declared: &Value, max_pages: u32, answer: impl FnMut(&Sent) -> Reply + 'static) -> Run {
        let greeting = json!({"protocolVersion": "2025-11-25", "capabilities": declared});
        Script::new([]).greeting(greeting).on_request(answer).run::<SurfaceListing>(json!({"max_pages": max_pages}))
    }

    /// Two pages of resources, one of prompts.
    fn good(sent: &Sent) -> Reply {
        Reply::result(match (sent.method.as_str(), sent.params["cursor"].as_str()) {
            ("resources/list", None) => json!({"resources": [{"uri": "a:1"}, {"uri": "a:2"}], "nextCursor": "2"}),
            ("resources/list", _) => json!({"resources": [{"uri": "a:3"}]}),
            _ => json!({"prompts": [{"name": "p"}]}),
        })
    }

    fn lost(run: &Run) -> Vec<String> {
        run.lost().into_iter().map(|(_, _, reason)| reason).collect()
    }

    fn ended(run: &Run) -> (u32, Option<u32>) {
        let outcome = run.outcome.as_ref().unwrap();
        (outcome.attempts, outcome.first_failure)
    }

    #[test]
    fn declared_surfaces_are_listed_to_their_end() {
        let run = run(&json!({"resources": {}, "prompts": {}}), 2, good);
        assert_eq!((run.lost(), ended(&run)), (vec![], (3, None)));
        assert_eq!((run.number("tool_count"), run.number("pages")), (Some(4.0), Some(3.0)));
    }

    #[test]
    fn nothing_declared_is_nothing_to_judge() {
        let run = run(&json!({"tools": {}, "prompts": null}), 1, good);
        assert_eq!((ended(&run), run.requests(), run.findings.len()), ((0, None), 0, 0));
    }

    #[test]
    fn a_list_that_is_none_is_invalid() {
        for reply in [
            Reply::error(-32601, "no"),
            Reply::result(json!({"prompts": {}})),
            Reply::result(json!({"prompts": [], "nextCursor": 2})),
        ] {
            let bad = run(&json!({"prompts": {}}), 9, move |_| reply.clone());
            assert_eq!((lost(&bad), ended(&bad)), (vec![INVALID_ENVELOPE.to_owned()], (1, Some(1))));
        }
    }

    #[test]
    fn the_first_lost_surface_decides() {
        let bad = run(&json!({"resources": {}, "prompts": {}}), 9, |_| Reply::result(json!({"prompts": []})));
        assert_eq!((lost(&bad), bad.methods()), (vec![INVALID_ENVELOPE.to_owned()], vec!["resources/list"]));
    }

    #[test]
    fn a_cursor_must_end() {
        let endless = run(&json!({"resources": {}}), 1, good);
        assert_eq!((lost(&endless), ended(&endless)), (vec![STALLED_CURSOR.to_owned()], (1, Some(1))));
        let bound = endless.loss(ENDS, None).unwrap().bound.clone().unwrap();
        assert_eq!((bound.limit, bound.observed), (1, 2));
        let again = |_: &Sent| Reply::result(json!({"prompts": [], "nextCursor": "x"}));
        let stalled = run(&json!({"prompts": {}}), 1_000, again);
        assert_eq!((lost(&stalled), ended(&stalled)), (vec![STALLED_CURSOR.to_owned()], (2, Some(2))));
        assert_eq!(stalled.loss(ENDS, None).unwrap().bound, None);
    }

    #[test]
    fn without_an_answer_there_is_no_verdict() {
        let run = run(&json!({"prompts": {}}), 9, |_| Reply::fault(Cause::Closed));
        assert_eq!(run.outcome.unwrap_err().cause, Cause::Closed);
    }
}
