//! What the commands that evaluate one server share: running the plan, and telling how it went.

use std::sync::Arc;
use std::time::Instant;

use super::battery::Components;
use super::settings::Settings;
use super::{console, progress, signals, usage};
use crate::error::{Error, Result};
use crate::report::assemble::Assembled;
use crate::report::corpus::Corpus;
use crate::report::output::{Destination, Outputs};
use crate::report::render::Timings;
use crate::report::sarif::{self, Rule};
use crate::runner::{self, Evaluation, Plan};

/// The measurement that counts valid calls without an answer.
const TRANSPORT_ERRORS: &str = "transport_errors";

/// Threads for one command.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::unfinished(format!("no threads can be started: {error}")))
}

/// What a run left.
pub(super) struct Done<T> {
    pub(super) evaluation: Evaluation,
    /// How long it took, and each case.
    timings: Timings,
    /// What its components may say.
    rules: Vec<Rule>,
    /// What was made beside the plan.
    pub(super) beside: T,
}

/// Makes a plan with the loaded components and runs it, with a progress line, until it is done or a signal comes.
pub(super) fn run<T>(
    settings: &Settings,
    prepare: impl AsyncFnOnce() -> Result<(Components, Plan, T)>,
) -> Result<Done<T>> {
    let line = Arc::new(progress::Line::new(settings.quiet));
    let begun = Instant::now();
    let (evaluation, rules, beside) = signals::until_interrupted(runtime()?, async {
        let (components, plan, beside) = prepare().await?;
        let rules = sarif::rules(plan.components().map(|component| component.manifest.as_ref()));
        let sink = Arc::clone(&line);
        let work = runner::evaluate(plan, components.engine(), Arc::new(move |progress| sink.update(progress)));
        Ok((Box::pin(line.during(work)).await?, rules, beside))
    })?;
    let cases = evaluation.cases.iter().flatten().map(|run| (run.case.id.clone(), run.elapsed)).collect();
    let timings = Timings { total: begun.elapsed(), cases };
    Ok(Done { evaluation, timings, rules, beside })
}

/// Where the result and what lies beside it go.
pub(super) struct Delivery<'a> {
    pub(super) settings: &'a Settings,
    pub(super) outputs: Outputs,
    pub(super) run_log: Option<Destination>,
    pub(super) corpus: Option<Corpus>,
    pub(super) with_timings: bool,
}

impl Delivery<'_> {
    /// Writes the result and gives the exit code.
    pub(super) fn finish<T>(mut self, done: Done<T>, assembled: &Assembled) -> Result<u8> {
        let Done { evaluation, timings, rules, .. } = done;
        let own = assembled.report.readiness.as_ref();
        let options = &mut self.outputs.options;
        options.placement = self.corpus.take().zip(own).map(|(corpus, own)| corpus.place(own));
        options.timings = self.with_timings.then_some(timings);
        options.rules = rules;
        // Free text of components and diagnostics.
        let private: Vec<String> = evaluation.log.iter().chain(&assembled.breaches).cloned().collect();
        keep_private(self.settings, self.run_log.as_ref(), &private)?;
        tell(&evaluation, assembled);
        self.outputs.write(&assembled.report)?;
        Ok(assembled.report.exit_code())
    }
}

/// Writes free text where it was asked for, or shows it with `-v`; otherwise it is dropped.
pub(super) fn keep_private(settings: &Settings, run_log: Option<&Destination>, lines: &[String]) -> Result<()> {
    if let Some(destination) = run_log {
        return destination.write_lines(lines);
    }
    if settings.verbose > 0 {
        for line in lines {
            console::note(line);
        }
    }
    Ok(())
}

/// What a person should know beside the result: why there is no verdict, and what the server said last.
fn tell(evaluation: &Evaluation, assembled: &Assembled) {
    for breach in &assembled.breaches {
        console::warning(breach);
    }
    if let Some(fault) = &evaluation.fault {
        console::error(fault);
    }
    let calls_lost = assembled.report.measurement(TRANSPORT_ERRORS).is_some_and(|count| count > 0);
    if evaluation.fault.is_some() || assembled.report.exit_code() == 3 || calls_lost {
        console::server_stderr(&evaluation.stderr);
    }
    tip(evaluation);
}

/// What may be wrong with the command line, if the server was never seen.
pub(super) fn tip(evaluation: &Evaluation) {
    if evaluation.catalog.is_none()
        && let Some(tip) = usage::tip()
    {
        console::note(&tip);
    }
}
