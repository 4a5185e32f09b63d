//! `mcpeval score`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use clap::{ArgGroup, Args};

use super::battery::Components;
use super::options::{BatteryOptions, ComponentOptions, ReportOptions, RunLogOptions, TargetOptions};
use super::{Global, console, progress, signals};
use crate::error::{Error, Result};
use crate::report::assemble::{self, Assembled};
use crate::report::render::Timings;
use crate::report::{output, sarif};
use crate::runner::{self, Battery, Evaluation, Plan};

/// The measurement that counts valid calls without an answer.
const TRANSPORT_ERRORS: &str = "transport_errors";

const EXAMPLE: &str = "\
Example:
  mcpeval score --server shop --min-readiness 80 --report json=report.json -- node dist/index.js

Exit codes:
  0  measured; every floor is met
  1  a floor is missed
  2  usage: arguments, standard, component, arguments file, a skipped tool that is not listed
  3  no verdict: unreachable target, failed handshake, exhausted budget, component fault, I/O
  130, 143  ended by SIGINT, SIGTERM";

/// Score a server: every tool examined, no writer called
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLE,
    override_usage = "mcpeval score [OPTIONS] <--url <URL> | --demo [--broken <NAME>] | -- CMD [ARGS]...>",
    group = ArgGroup::new("target").required(true).args(TargetOptions::CHOICE)
)]
pub(super) struct Score {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    battery: BatteryOptions,
    #[command(flatten)]
    report: ReportOptions,
    #[command(flatten)]
    components: ComponentOptions,
    #[command(flatten)]
    run_log: RunLogOptions,
}

impl Score {
    pub(super) fn run(&self, global: &Global) -> Result<u8> {
        let server = self.target.label()?;
        let run_log = self.run_log.path()?;
        let mut outputs = self.report.outputs(run_log)?;
        let standard = self.battery.standard()?;
        let floors = self.battery.floors(&standard)?;
        let arguments = self.battery.arguments()?;
        let corpus = self.battery.corpus()?;
        let target = self.target.target()?;
        let profile = self.battery.profile(&arguments);

        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::unfinished(format!("no threads can be started: {error}")))?;
        let line = Arc::new(progress::Line::new(global.quiet));
        let begun = Instant::now();
        let (evaluation, rules) = signals::until_interrupted(runtime, async {
            let components = Components::load(&self.components).await?;
            let judges = components.of_standard(&standard).await?;
            let rules = sarif::rules(judges.iter().map(|judge| judge.manifest.as_ref()));
            let plan = Plan {
                target,
                startup_timeout: self.target.startup_timeout(),
                battery: Some(Battery {
                    grants: components.grants(&self.components, &standard)?,
                    components: judges,
                    standard,
                }),
                cases: None,
                profile,
                arguments: arguments.by_tool,
            };
            let sink = Arc::clone(&line);
            let work = runner::evaluate(plan, components.engine(), Arc::new(move |progress| sink.update(progress)));
            Ok((Box::pin(line.during(work)).await?, rules))
        })?;
        let elapsed = begun.elapsed();

        let assembled = assemble::report(&evaluation, server, &floors, None);
        outputs.options.rules = rules;
        outputs.options.timings = self.report.timings().then(|| Timings { total: elapsed, cases: BTreeMap::new() });
        outputs.options.placement =
            corpus.zip(assembled.report.readiness.as_ref()).map(|(corpus, own)| corpus.place(own));
        let private = private_lines(&evaluation, &assembled.breaches);
        if let Some(path) = run_log {
            output::private(path, &private)?;
        } else if global.verbose > 0 {
            for line in &private {
                console::note(line);
            }
        }
        tell(&evaluation, &assembled);
        outputs.write(&assembled.report)?;
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

/// Free text of components and diagnostics.
fn private_lines(evaluation: &Evaluation, breaches: &[String]) -> Vec<String> {
    evaluation.log.iter().chain(breaches).cloned().collect()
}
