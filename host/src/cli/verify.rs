//! `mcpeval verify`.

use clap::{ArgGroup, Args};

use super::battery::Components;
use super::evaluation;
use super::options::{ComponentOptions, ReachOptions, RunLogOptions};
use super::probe::{ManifestOptions, Selection};
use super::settings::Settings;
use super::{console, signals};
use crate::error::{Error, Result};
use crate::findings::build::Build;
use crate::findings::verify::{check_case, definition, record};
use crate::findings::{Finding, in_words, read};
use crate::manifest::Draft;
use crate::manifest::document::DEFAULT_FILES;
use crate::outcome::NoVerdict;
use crate::report::assemble::{self, Assembled, Floors};
use crate::report::document::{Case, Label};
use crate::report::output;
use crate::runner::{Plan, Profile, Target};
use crate::store::lifecycle::{GREEN_CHECKS, Standing, State};

const EXAMPLE: &str = "\
Example:
  mcpeval verify --finding finding-0123456789abcdef --case read-again -- node dist/index.js

Exit codes:
  0  green: the case passed
  1  red: the case failed
  2  usage: arguments, manifest, no such finding, a case that cannot show a fix, refused access
  3  no verdict, nothing recorded: unreachable target, errored case, exhausted budget, a server
     that was rebuilt meanwhile, I/O
  130, 143  ended by SIGINT, SIGTERM";

/// Check by one case whether a finding is fixed, and remember the outcome
///
/// Three green checks in a row, by one case on one build of the server, close the finding; a red one reopens it. Only green
/// and red are remembered.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLE,
    override_usage = "mcpeval verify [OPTIONS] --finding <ID> --case <ID> <--target <NAME> | --url <URL> | -- CMD [ARGS]...>",
    group = ArgGroup::new("verified").required(true).args(ReachOptions::CHOICE)
)]
pub(super) struct Verify {
    /// The finding, as mcpeval findings names it
    #[arg(long, value_name = "ID")]
    finding: String,
    /// The case of the manifest; it must call the tool of the finding
    #[arg(long, value_name = "ID")]
    case: String,
    #[command(flatten)]
    target: ReachOptions,
    #[command(flatten)]
    manifest: ManifestOptions,
    #[command(flatten)]
    components: ComponentOptions,
    #[command(flatten)]
    run_log: RunLogOptions,
}

/// What is known before the run, to be compared and kept after it.
struct Basis {
    build: Build,
    definition: String,
}

impl Verify {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let home = settings.store()?;
        let finding = read::find(&home, &self.finding)?;
        let label =
            Label::new(&finding.server).ok_or_else(|| Error::unfinished("the finding's server has no label"))?;
        let reached = self.target.resolve(settings)?;
        let run_log = self.run_log.path(settings)?;
        let file = self.manifest.file(reached.named.and_then(|named| named.manifest.as_deref())).ok_or_else(|| {
            let file = DEFAULT_FILES[0];
            Error::usage(format!(
                "there is no manifest {file}; write one with mcpeval generate, or name one with --manifest"
            ))
        })?;
        let draft = Draft::read(&file)?;
        let mut skip_tools: Vec<String> =
            reached.named.map(|named| named.skip_tools.iter().map(ToString::to_string).collect()).unwrap_or_default();
        skip_tools.sort();
        let again = again(&reached.target);

        let done = evaluation::run(settings, async || {
            let components = Components::load(&self.components, settings).await?;
            let (manifest, cases) = self.manifest.plan(&draft, &components, &Selection::case(&self.case)).await?;
            components.check_grants(draft.kinds())?;
            let Some(planned) = cases.planned.first() else { return Err(Error::usage("--case selects no case")) };
            check_case(&finding, &planned.case)?;
            let (target, build) = build(reached.target).await?;
            let definition = definition(&manifest, &planned.case, planned.component.digest, &target, &build);
            // What the case calls is journaled where every call of a case is: in the runner.
            let plan = Plan {
                target,
                startup_timeout: reached.startup_timeout,
                battery: None,
                cases: Some(cases),
                profile: Profile { skip_tools, ..Profile::default() },
                arguments: std::collections::BTreeMap::new(),
            };
            Ok((components, plan, Basis { build, definition }))
        })?;
        let assembled = assemble::report(&done.evaluation, label, &Floors::default(), None);
        let private: Vec<String> = done.evaluation.log.iter().chain(&assembled.breaches).cloned().collect();
        evaluation::keep_private(settings, run_log, &private)?;
        let case = match measured(&assembled, done.evaluation.fault.as_deref()) {
            Ok(case) => case,
            Err(error) => {
                console::server_stderr(&done.evaluation.stderr);
                return Err(error);
            }
        };
        if case.passed && case.attempts == 0 {
            return Err(Error::usage(format!(
                "case {} passed without a call, since what it checks is not there; choose one that calls the tool {}",
                self.case, finding.tool
            )));
        }
        let (_, built) = signals::until_interrupted(evaluation::runtime()?, build(again))?;
        if built != done.beside.build {
            return Err(Error::unfinished(
                "files of the server's command changed while it was checked, so that nothing was recorded; try again when it is built",
            ));
        }
        let (before, after) = record(&home, &finding, &self.case, &done.beside.definition, case.passed)?;
        output::stdout(told(&finding, case, &before, &after).as_bytes())?;
        Ok(u8::from(!case.passed))
    }
}

/// The same target, for its files alone.
fn again(target: &Target) -> Target {
    match target {
        Target::Stdio(launch) => Target::Stdio(launch.clone()),
        Target::Http(endpoint) => Target::Http(endpoint.clone()),
    }
}

/// Reads the files of a target on a thread of its own, so that a signal need not wait for them.
async fn build(target: Target) -> Result<(Target, Build)> {
    let work = move || Build::of(&target).map(|build| (target, build));
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::unfinished(format!("the files of the server's command were not read: {error}")))?
}

/// The case, if it came to a verdict.
fn measured<'a>(assembled: &'a Assembled, fault: Option<&str>) -> Result<&'a Case> {
    let nothing = "nothing was recorded";
    let Some(case) = assembled.report.cases.first() else {
        return Err(Error::unfinished(format!("the case did not run; {nothing}")));
    };
    let label = case.reason.as_ref().and_then(|reason| NoVerdict::from_label(&reason.0));
    match label {
        None => Ok(case),
        Some(label) => {
            let why = fault.or(assembled.breaches.first().map(String::as_str)).unwrap_or(label.hint());
            Err(Error::unfinished(format!("not measured ({label}): {}; {nothing}", why.trim_end_matches('.'))))
        }
    }
}

/// What happened, in plain words.
fn told(finding: &Finding, case: &Case, before: &Standing, after: &Standing) -> String {
    let requests = if case.attempts == 1 { "1 request".to_owned() } else { format!("{} requests", case.attempts) };
    let verdict = match (&case.reason, &case.hint) {
        _ if case.passed => format!("green: case {} passed ({requests})", case.id.0),
        (Some(reason), Some(hint)) => format!("red: case {} failed ({requests}): {}; {}", case.id.0, reason.0, hint.0),
        _ => format!("red: case {} failed ({requests})", case.id.0),
    };
    let stands = |standing: &Standing| {
        let words = in_words(standing.state, standing.consecutive_passes);
        format!("{}: {words}", standing.state.word())
    };
    let begins_anew = case.passed && before.consecutive_passes > 0 && after.consecutive_passes == 1;
    let closes = after.state == State::Closed && before.state != State::Closed;
    let left = GREEN_CHECKS.saturating_sub(after.consecutive_passes);
    let note = if begins_anew {
        "the case, the server or mcpeval is another than at the last check, so that the count begins anew\n".to_owned()
    } else if closes {
        "the finding is closed; a later failure in real traffic, or a red check, reopens it\n".to_owned()
    } else if after.state == State::Verifying && left > 0 {
        format!("{left} more green in a row {} it\n", if left == 1 { "closes" } else { "close" })
    } else {
        String::new()
    };
    format!(
        "{verdict}\n{} {}/{}\nbefore  {}\nafter   {}\n{note}",
        finding.finding_id,
        finding.server,
        finding.tool,
        stands(before),
        stands(after)
    )
}
