//! What the commands that evaluate one server share: running the plan, and telling how it went.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::battery::Components;
use super::settings::Settings;
use super::{console, progress, signals};
use crate::error::{Error, Result};
use crate::report::assemble::Assembled;
use crate::report::corpus::Corpus;
use crate::report::output::{self, Outputs};
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

/// Makes a plan with the loaded components and runs it, with a progress line, until it is done or a signal comes.
pub(super) fn run<T>(
    settings: &Settings,
    prepare: impl AsyncFnOnce() -> Result<(Components, Plan, T)>,
) -> Result<(Evaluation, Duration, T)> {
    let line = Arc::new(progress::Line::new(settings.quiet));
    let begun = Instant::now();
    let (evaluation, beside) = signals::until_interrupted(runtime()?, async {
        let (components, plan, beside) = prepare().await?;
        let sink = Arc::clone(&line);
        let work = runner::evaluate(plan, components.engine(), Arc::new(move |progress| sink.update(progress)));
        Ok((Box::pin(line.during(work)).await?, beside))
    })?;
    Ok((evaluation, begun.elapsed(), beside))
}

/// Where the result and what lies beside it go.
pub(super) struct Delivery<'a> {
    pub(super) settings: &'a Settings,
    pub(super) outputs: Outputs,
    pub(super) run_log: Option<&'a Path>,
    pub(super) corpus: Option<Corpus>,
}

impl Delivery<'_> {
    /// Writes the result and gives the exit code.
    pub(super) fn finish(mut self, evaluation: &Evaluation, assembled: &Assembled) -> Result<u8> {
        let own = assembled.report.readiness.as_ref();
        self.outputs.text.placement = self.corpus.take().zip(own).map(|(corpus, own)| corpus.place(own));
        // Free text of components and diagnostics.
        let private: Vec<String> = evaluation.log.iter().chain(&assembled.breaches).cloned().collect();
        if let Some(path) = self.run_log {
            output::private(path, &private)?;
        } else if self.settings.verbose > 0 {
            for line in &private {
                console::note(line);
            }
        }
        tell(evaluation, assembled);
        self.outputs.write(&assembled.report)?;
        Ok(assembled.report.exit_code())
    }
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
}
