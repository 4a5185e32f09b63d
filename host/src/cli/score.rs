//! `mcpeval score`.

use std::sync::Arc;
use std::time::Instant;

use clap::{ArgGroup, Args};

use super::battery::Components;
use super::options::{
    BatteryOptions, ComponentOptions, DemoOptions, FloorOptions, ReportOptions, RunLogOptions, TargetOptions,
};
use super::settings::Settings;
use super::{console, progress, signals};
use crate::error::{Error, Result};
use crate::report::assemble::{self, Assembled};
use crate::report::output;
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
    override_usage = "mcpeval score [OPTIONS] <--target <NAME> | --url <URL> | --demo [--broken <NAME>] | -- CMD [ARGS]...>",
    group = ArgGroup::new("choice").required(true).args(TargetOptions::CHOICE).arg("demo")
)]
pub(super) struct Score {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    demo: DemoOptions,
    #[command(flatten)]
    battery: BatteryOptions,
    #[command(flatten)]
    floors: FloorOptions,
    #[command(flatten)]
    report: ReportOptions,
    #[command(flatten)]
    components: ComponentOptions,
    #[command(flatten)]
    run_log: RunLogOptions,
}

impl Score {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let chosen = if self.demo.demo {
            self.target.resolve_demo(&self.demo, settings)?
        } else {
            self.target.resolve(settings)?
        };
        let run_log = self.run_log.path(settings)?;
        let mut outputs = self.report.outputs(settings, run_log)?;
        let standard = self.battery.standard(settings)?;
        let floors = self.floors.floors(&standard)?;
        let arguments = self.battery.arguments(chosen.named)?;
        let corpus = self.floors.corpus(settings)?;
        let profile = self.battery.profile(settings, chosen.named, &arguments);

        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::unfinished(format!("no threads can be started: {error}")))?;
        let line = Arc::new(progress::Line::new(settings.quiet));
        let begun = Instant::now();
        let evaluation = signals::until_interrupted(runtime, async {
            let components = Components::load(&self.components, settings).await?;
            let of_standard = components.of_standard(&standard).await?;
            let plan = Plan {
                target: chosen.target,
                startup_timeout: chosen.startup_timeout,
                battery: Some(Battery {
                    grants: components.grants(&standard, &of_standard)?,
                    components: of_standard,
                    standard,
                }),
                cases: None,
                profile,
                arguments: arguments.by_tool,
            };
            let sink = Arc::clone(&line);
            let work = runner::evaluate(plan, components.engine(), Arc::new(move |progress| sink.update(progress)));
            Box::pin(line.during(work)).await
        })?;
        let elapsed = begun.elapsed();

        let assembled = assemble::report(&evaluation, chosen.server, &floors, None);
        outputs.text.elapsed = self.report.timings().then_some(elapsed);
        outputs.text.placement = corpus.zip(assembled.report.readiness.as_ref()).map(|(corpus, own)| corpus.place(own));
        let private = private_lines(&evaluation, &assembled.breaches);
        if let Some(path) = run_log {
            output::private(path, &private)?;
        } else if settings.verbose > 0 {
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
