//! What the commands share that look at one server by themselves, without components.

use std::sync::Arc;
use std::time::Duration;

use super::settings::Settings;
use super::{console, evaluation, progress, signals, usage};
use crate::error::{Error, Result};
use crate::report::output::Destination;
use crate::runner::site::Site;
use crate::runner::{Sink, Target};

/// A server, and how to look at it.
pub(super) struct Visit<'a> {
    pub(super) settings: &'a Settings,
    pub(super) target: Target,
    pub(super) startup_timeout: Duration,
    pub(super) run_log: Option<Destination>,
}

impl Visit<'_> {
    /// Does the work, with a progress line, until it is done or a signal comes. After a fault of the server the last lines
    /// that it wrote to stderr are shown; `warnings` are those that the work survived.
    pub(super) fn run<T>(
        self,
        work: impl AsyncFnOnce(&Site, Sink) -> Result<T>,
        warnings: impl FnOnce(&T) -> &[String],
    ) -> Result<T> {
        let Self { settings, target, startup_timeout, run_log } = self;
        let line = Arc::new(progress::Line::new(settings.quiet));
        let left = signals::until_interrupted(evaluation::runtime()?, async {
            let sink = Arc::clone(&line);
            let work = async |site: &Site| work(site, Arc::new(move |progress| sink.update(progress))).await;
            Box::pin(line.during(Site::visit(target, startup_timeout, work))).await
        })?;
        evaluation::keep_private(settings, run_log.as_ref(), &left.log)?;
        let is_faulty = match &left.outcome {
            Ok(result) => {
                let warnings = warnings(result);
                for warning in warnings {
                    console::warning(warning);
                }
                !warnings.is_empty()
            }
            Err(error) => matches!(error, Error::Unfinished(_)),
        };
        if is_faulty {
            console::server_stderr(&left.stderr);
        }
        if let Err(Error::Unfinished(_)) = &left.outcome
            && let Some(tip) = usage::tip()
        {
            console::note(&tip);
        }
        left.outcome
    }
}
