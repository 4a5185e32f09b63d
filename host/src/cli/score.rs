//! `mcpeval score`.

use std::time::Instant;

use clap::{ArgGroup, Args};

use super::battery::Components;
use super::options::{BatteryOptions, ComponentOptions, ReportOptions, RunLogOptions, TargetOptions};
use super::{Global, console, progress, signals};
use crate::error::{Error, Result};
use crate::outcome::Ended;
use crate::report::{assemble, output};
use crate::runner::{self, Evaluation, Plan};

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
        let mut outputs = self.report.outputs()?;
        let run_log = self.run_log.path()?;
        let standard = self.battery.standard()?;
        let floors = self.battery.floors(&standard)?;
        let arguments = self.battery.arguments()?;
        let corpus = self.battery.corpus()?;
        let plan = Plan {
            target: self.target.target()?,
            components: Components::load(&self.components)?.of_standard(&standard, &self.components)?,
            profile: self.battery.profile(&arguments),
            standard,
            arguments: arguments.by_tool,
            startup_timeout: self.target.startup_timeout(),
        };

        let begun = Instant::now();
        let evaluation = evaluate(plan, global)?;
        let elapsed = begun.elapsed();

        let assembled = assemble::score(&evaluation, server, &floors);
        outputs.text.elapsed = self.report.timings().then_some(elapsed);
        outputs.text.placement = corpus.zip(assembled.report.readiness.as_ref()).map(|(corpus, own)| corpus.place(own));
        let private = private_lines(&evaluation, &assembled.breaches);
        if let Some(path) = run_log {
            output::private(path, &private)?;
        } else if global.verbose > 0 {
            private.iter().for_each(|line| console::note(line));
        }
        tell(&evaluation, &assembled.breaches);
        outputs.write(&assembled.report)?;
        Ok(assembled.report.exit_code())
    }
}

fn evaluate(plan: Plan, global: &Global) -> Result<Evaluation> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::unfinished(format!("no threads can be started: {error}")))?;
    let engine = crate::guest::Engine::new()?;
    let line = progress::Line::new(global.quiet);
    let on_progress = |progress: &runner::Progress| line.update(progress);
    signals::until_interrupted(runtime, line.during(runner::evaluate(plan, &engine, &on_progress)))
}

/// What a person should know beside the result: why there is no verdict, and what the server said last.
fn tell(evaluation: &Evaluation, breaches: &[String]) {
    for breach in breaches {
        console::warning(breach);
    }
    if let Some(fault) = &evaluation.fault {
        console::error(fault);
    }
    if evaluation.fault.is_some() || evaluation.error.is_some() {
        console::server_stderr(&evaluation.stderr);
    }
}

/// Free text of components and diagnostics.
fn private_lines(evaluation: &Evaluation, breaches: &[String]) -> Vec<String> {
    let stopped = evaluation.runs.iter().filter_map(|run| match &run.record.ended {
        Ended::Stopped { reason, detail } => Some(format!("{}: {reason}: {detail}", run.component.manifest.kind)),
        Ended::Finished { .. } => None,
    });
    evaluation.log.iter().cloned().chain(stopped).chain(breaches.iter().cloned()).collect()
}
