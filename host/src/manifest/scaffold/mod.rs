//! The first manifest of a server: what its catalog and one call of each safe tool give.
//!
//! | module | owns |
//! |---|---|
//! | [`decide`] | which tools may be called, and with what |
//! | [`document`] | the cases, and the file that holds them |

mod decide;
mod document;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::ledger::{self, Ledger};
use crate::outcome::NoVerdict;
use crate::report::document::Label;
use crate::runner::site::{CALL_TIMEOUT, Site};
use crate::runner::{Sink, Tracker, check_arguments, check_listed};
use crate::session::catalog::Catalog;
use crate::session::object::{self, Object};
use crate::session::{Answer, Context, Fault, Policy};

pub use decide::Decision;
pub use document::Manifest;

use decide::Tool;
use document::{Measured, Verified};

/// Verified tools of one manifest.
pub const MAX_VERIFIED: usize = 20;
/// Capabilities of a server whose lists have a case.
const SURFACES: [&str; 2] = ["resources", "prompts"];

/// What the operator chose.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// Unannotated tools are attested to be read-only.
    pub attested_read_only: bool,
    /// The tools to consider; all when empty.
    pub tools: BTreeSet<Label>,
    /// Tools that are never called.
    pub skip_tools: BTreeSet<Label>,
    /// JSON text of each tool's arguments, in the place of synthesized ones.
    pub arguments: BTreeMap<String, String>,
    /// Only decide: call no tool.
    pub dry_run: bool,
}

/// What became of it.
#[derive(Debug)]
pub struct Scaffold {
    /// The manifest; none after a dry run.
    pub manifest: Option<Manifest>,
    /// Every tool that the catalog lists, in its order, with what was decided.
    pub decisions: Vec<(Label, Decision)>,
    /// Tools that entered the manifest.
    pub verified: usize,
    /// Entries without a name that a case could give.
    pub unnamed: usize,
    /// What was lost on the way, in words for stderr only.
    pub warnings: Vec<String>,
}

/// Lists the catalog, decides for every tool, and calls each candidate once, with the very arguments that its cases
/// will have.
///
/// # Errors
/// A usage error for a tool or arguments that do not fit the catalog. Unfinished if the server cannot be reached or the
/// budget runs out.
pub(crate) async fn scaffold(site: &Site, order: Order, on_progress: Sink) -> Result<Scaffold> {
    let ledger = Ledger::new(ledger::EVALUATION);
    let progress = Tracker::new(on_progress, Arc::clone(&ledger));
    progress.step("start");
    let listed = site.list(&ledger, CALL_TIMEOUT, || progress.step("list")).await;
    let (session, catalog) = listed.map_err(|fault| Error::unfinished(fault.detail))?;
    let mut warnings = Vec::new();
    if let Some(fault) = &catalog.fault {
        within_budget(fault)?;
        warnings.push(format!("the catalog was not listed to its end: {fault}"));
    }
    for tool in &order.tools {
        check_listed(tool.as_str(), &catalog, "--tool")?;
    }
    for tool in &order.skip_tools {
        check_listed(tool.as_str(), &catalog, "skip_tools")?;
    }
    let skipped = order.skip_tools.iter().map(ToString::to_string).collect();
    let policy = Arc::new(Policy::new(&catalog, order.attested_read_only, skipped, site.server.hub().watch()));
    check_arguments(&order.arguments, &catalog, &policy)?;
    let surfaces = declares_surfaces(&session.greeting());
    drop(session);

    let dry_run = order.dry_run;
    let catalog = Arc::new(catalog);
    let mut tools = {
        let (catalog, policy) = (Arc::clone(&catalog), Arc::clone(&policy));
        // Synthesis is work for a thread that may block.
        let deciding = tokio::task::spawn_blocking(move || decide::decide(&catalog, &policy, &order));
        deciding.await.map_err(|_| Error::unfinished("the arguments of the tools could not be made"))?
    };
    let (mut manifest, mut verified) = (None, 0);
    if !dry_run {
        progress.step("call");
        let context = Context { ledger, policy };
        let found = verify(site, &context, &progress, &mut tools, &mut warnings).await?;
        verified = found.len();
        manifest = Some(Manifest::of(&measure(&catalog, surfaces, found)));
    }
    Ok(Scaffold {
        manifest,
        verified,
        unnamed: catalog.entries.iter().filter(|entry| !Label::is_valid(&entry.label)).count(),
        decisions: tools.into_iter().map(|tool| (tool.name, tool.decision)).collect(),
        warnings,
    })
}

fn measure(catalog: &Catalog, surfaces: bool, verified: Vec<Verified>) -> Measured {
    let sizes = catalog.entries.iter().map(|entry| document::compact_bytes(&entry.raw)).collect();
    Measured { sizes, pages: catalog.pages.len(), surfaces, verified }
}

/// Calls the candidates one after another. What a fault leaves of a session is no concern of the next tool.
async fn verify(
    site: &Site,
    context: &Context,
    progress: &Tracker,
    tools: &mut [Tool],
    warnings: &mut Vec<String>,
) -> Result<Vec<Verified>> {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let total = count(tools.iter().filter(|tool| tool.arguments.is_some()).count());
    let mut verified: Vec<Verified> = Vec::new();
    let mut is_lost = false;
    let mut finished = 0;
    for tool in tools {
        let Some(arguments) = tool.arguments.take() else { continue };
        if is_lost {
            tool.decision = Decision::CallFailed;
        } else if verified.len() == MAX_VERIFIED {
            tool.decision = Decision::OverLimit;
        } else {
            match call(site, context, &tool.name, &arguments).await {
                Called::Success { milliseconds } => verified.push(Verified {
                    tool: tool.name.clone(),
                    arguments,
                    milliseconds,
                    declares_output: tool.declares_output,
                    text_field: tool.text_field.take(),
                }),
                Called::Failed => tool.decision = Decision::CallFailed,
                Called::Fault(fault) => {
                    within_budget(&fault)?;
                    warnings.push(format!("{}: {fault}", tool.name));
                    tool.decision = Decision::CallFailed;
                }
                Called::Unopened(fault) => {
                    within_budget(&fault)?;
                    warnings.push(format!("no further session could be opened: {fault}"));
                    tool.decision = Decision::CallFailed;
                    is_lost = true;
                }
            }
        }
        finished += 1;
        progress.count(count(finished), total);
    }
    Ok(verified)
}

/// How a call came out.
enum Called {
    Success { milliseconds: u32 },
    Failed,
    Fault(Fault),
    Unopened(Fault),
}

async fn call(site: &Site, context: &Context, tool: &Label, arguments: &Map<String, Value>) -> Called {
    let session = match site.server.primary(context).await {
        Ok(session) => session,
        Err(fault) => return Called::Unopened(fault),
    };
    let params = json!({"name": tool, "arguments": arguments}).to_string();
    match session.request(context, "tools/call", Some(&params), CALL_TIMEOUT).await {
        Err(fault) => Called::Fault(fault),
        Ok(answer) => match is_error(&answer) {
            Some(true) => Called::Failed,
            Some(false) => Called::Success { milliseconds: answer.elapsed_us.div_ceil(1_000) },
            None => {
                // Such a server may have lost its way; the next tool begins anew.
                session.end().await;
                Called::Failed
            }
        },
    }
}

/// Whether an answer to a call is an error; none if it is no such answer.
fn is_error(answer: &Answer) -> Option<bool> {
    let Ok(result) = &answer.reply else { return Some(true) };
    match Object::read(result)?.get("isError") {
        None | Some("false") => Some(false),
        Some("true") => Some(true),
        Some(_) => None,
    }
}

/// The end of the budget is the end of the whole: what was found so far would depend on how fast the server is.
fn within_budget(fault: &Fault) -> Result<()> {
    if fault.cause.label() == NoVerdict::BudgetExceeded { Err(Error::unfinished(fault.detail.clone())) } else { Ok(()) }
}

fn declares_surfaces(greeting: &str) -> bool {
    SURFACES.iter().any(|surface| object::at(greeting, &["capabilities", surface]).is_some_and(object::is_object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_result_object_without_an_error_is_a_success() {
        let outcome = |reply: Result<&str, &str>| {
            let reply = reply.map(Arc::from).map_err(Arc::from);
            is_error(&Answer { exchange: 1, elapsed_us: 1, status: None, reply })
        };
        assert_eq!(outcome(Ok("{}")), Some(false));
        assert_eq!(outcome(Ok(r#"{"isError":false}"#)), Some(false));
        assert_eq!(outcome(Ok(r#"{"isError":true}"#)), Some(true));
        assert_eq!(outcome(Err(r#"{"code":-32602,"message":""}"#)), Some(true));
        for broken in ["[]", "null", r#"{"isError":"false"}"#, r#"{"isError":null}"#] {
            assert_eq!(outcome(Ok(broken)), None, "{broken}");
        }
    }

    #[test]
    fn surfaces_are_declared_by_objects() {
        assert!(declares_surfaces(r#"{"capabilities":{"tools":{},"prompts":{}}}"#));
        assert!(declares_surfaces(r#"{"capabilities":{"resources":{"subscribe":true}}}"#));
        for none in [r#"{"capabilities":{"tools":{}}}"#, r#"{"capabilities":{"prompts":null}}"#, "{}", "[]"] {
            assert!(!declares_surfaces(none), "{none}");
        }
    }
}
