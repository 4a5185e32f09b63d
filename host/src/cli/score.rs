//! `mcpeval score`.

use clap::{ArgGroup, Args};

use super::battery::Components;
use super::evaluation::{self, Delivery};
use super::options::{
    BatteryOptions, ComponentOptions, DemoOptions, FloorOptions, ReportOptions, RunLogOptions, TargetOptions,
};
use super::settings::Settings;
use crate::error::Result;
use crate::report::assemble;
use crate::report::output::Places;
use crate::runner::Plan;

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
        let standard = self.battery.standard(settings)?;
        let floors = self.floors.floors(&standard)?;
        let arguments = self.battery.arguments(chosen.named)?;
        let corpus = self.floors.corpus(settings)?;
        let profile = self.battery.profile(settings, chosen.named, &arguments);
        let mut inputs = settings.inputs(&self.components);
        self.battery.add_to(&mut inputs, settings, chosen.named, &standard);
        self.floors.add_to(&mut inputs, settings);
        let mut places = Places::new(&inputs);
        let outputs = self.report.outputs(settings, &mut places)?;
        let run_log = self.run_log.destination(settings, &mut places)?;
        let delivery = Delivery { settings, outputs, run_log, corpus, with_timings: self.report.timings() };

        let done = evaluation::run(settings, async move || {
            let components = Components::load(&self.components, settings).await?;
            let plan = Plan {
                target: chosen.target,
                startup_timeout: chosen.startup_timeout,
                battery: Some(components.battery(standard, &[]).await?),
                cases: None,
                profile,
                arguments: arguments.by_tool,
            };
            Ok((components, plan, ()))
        })?;
        let assembled = assemble::report(&done.evaluation, chosen.server, &floors, None);
        delivery.finish(done, &assembled)
    }
}
