//! Declared surfaces besides tools: their lists are arrays and end.

use mcpeval_probe::judge::{End, follow, page_params, surfaces as declared};
use mcpeval_probe::{Fault, View};

use crate::talk::Talk;
use crate::{CALL_FAILED, Judged};

/// Pages after which a list counts as endless.
const MAX_PAGES: u32 = 1_000;

const INVALID: &str = "protocol-surface-invalid";

/// Lists every declared surface; `None` if none is declared.
pub(crate) fn surfaces(talk: &mut Talk<'_>, greeting: View<'_>) -> Result<Option<Judged>, Fault> {
    let mut judged: Option<Judged> = None;
    for surface in declared(greeting) {
        let listed = list(talk, surface.method, surface.key)?;
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
    let ask = |cursor: Option<&str>| match cursor {
        None => talk.ask(method, ()).flatten(),
        Some(_) => talk.ask(method, page_params(cursor)).flatten(),
    };
    Ok(match follow(key, MAX_PAGES, ask, |_| None::<()>) {
        Ok(list) if list.end == End::Reached => Judged::new(None, list.evidence),
        Ok(list) => Judged::new(Some(INVALID), list.evidence.last().copied()),
        Err(fault) => Judged::new(Some(CALL_FAILED), fault.unless_refused()?.exchange),
    })
}
