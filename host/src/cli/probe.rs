//! `mcpeval probe`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueHint};

use super::battery::Components;
use super::evaluation::{self, Delivery};
use super::options::{BatteryOptions, ComponentOptions, FloorOptions, ReportOptions, RunLogOptions, TargetOptions};
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::manifest::document::DEFAULT_FILES;
use crate::manifest::{Access, Case, Draft, Manifest, expectation};
use crate::report::assemble;
use crate::report::document::{CaseResult, Report};
use crate::report::output::{Inputs, Places};
use crate::report::render::Locations;
use crate::runner::{Cases, Plan, Planned};
use crate::{nearest, shown};

const EXAMPLE: &str = "\
Example:
  mcpeval probe --manifest shop.manifest.yaml --report sarif=out.sarif -- node dist/index.js

Exit codes:
  0  every case passed; every floor is met
  1  a case failed, or a floor is missed
  2  usage: arguments, manifest, component, a tool that is not listed, refused access
  3  no verdict: unreachable target, errored case, exhausted budget, component fault, I/O
  130, 143  ended by SIGINT, SIGTERM";

/// Run the cases of a manifest, then the battery
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLE,
    override_usage = "mcpeval probe [OPTIONS] <--target <NAME> | --url <URL> | -- CMD [ARGS]...>",
    group = ArgGroup::new("which").required(true).args(TargetOptions::CHOICE)
)]
pub(super) struct Probe {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    cases: CaseOptions,
    #[command(flatten)]
    selection: Selection,
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

/// Which cases run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cases")]
pub(super) struct CaseOptions {
    /// Manifest, JSON or YAML, of at most 1 MiB [default: the target's, else mcp-eval.manifest.json, .yaml or .yml]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    manifest: Option<PathBuf>,
    /// Permit cases whose access is mutating; without it they are refused
    #[arg(long)]
    allow_mutation: bool,
    /// Run no battery
    #[arg(long)]
    gate_only: bool,
}

/// Which of them.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Cases")]
pub(super) struct Selection {
    /// Run only cases of this kind, and no battery; repeatable
    #[arg(long = "probe", value_name = "KIND")]
    kind: Vec<String>,
    /// Run only the case of this id, and no battery; repeatable
    #[arg(long = "case", value_name = "ID")]
    id: Vec<String>,
}

impl Selection {
    /// Whether all cases run.
    fn is_everything(&self) -> bool {
        self.kind.is_empty() && self.id.is_empty()
    }

    fn holds(&self, case: &Case) -> bool {
        (self.id.is_empty() || self.id.contains(&case.id)) && (self.kind.is_empty() || self.kind.contains(&case.kind))
    }

    /// Every word of it selects something.
    fn check(&self, manifest: &Manifest) -> Result<()> {
        let ids = || manifest.cases.iter().map(|case| case.id.as_str());
        if let Some(id) = self.id.iter().find(|id| !ids().any(|known| known == *id)) {
            let hint = nearest::choices(id, ids());
            return Err(Error::usage(format!("--case: the manifest has no case \"{}\"{hint}", shown::word(id))));
        }
        let kinds = || manifest.cases.iter().map(|case| case.kind.as_str());
        if let Some(kind) = self.kind.iter().find(|kind| !kinds().any(|known| known == *kind)) {
            let hint = nearest::choices(kind, kinds());
            let kind = shown::word(kind);
            return Err(Error::usage(format!("--probe: the manifest has no case of kind \"{kind}\"{hint}")));
        }
        if !manifest.cases.iter().any(|case| self.holds(case)) {
            return Err(Error::usage("--probe and --case together select no case"));
        }
        Ok(())
    }
}

impl CaseOptions {
    /// Whether only cases run.
    pub(super) fn is_gate_only(&self) -> bool {
        self.gate_only
    }

    /// The file, if there is one: as named, else of the target, else the first of the default names that exists.
    pub(super) fn file(&self, of_target: Option<&Path>) -> Option<PathBuf> {
        let default = || DEFAULT_FILES.iter().map(PathBuf::from).find(|path| path.exists());
        self.manifest.clone().or_else(|| of_target.map(Path::to_owned)).or_else(default)
    }

    /// The selected cases, each with its component, and the manifest they are of.
    pub(super) async fn plan(
        &self,
        draft: &Draft,
        components: &Components,
        selection: &Selection,
    ) -> Result<(Manifest, Cases)> {
        let kinds = components.of_manifest(draft).await?;
        let declared = kinds.iter().map(|(kind, loaded)| (kind.clone(), loaded.manifest.as_ref())).collect();
        let manifest = draft.check(&declared)?;
        selection.check(&manifest)?;
        let mut planned = Vec::new();
        for case in manifest.cases.iter().filter(|case| selection.holds(case)) {
            let Some(component) = kinds.get(&case.kind) else { continue };
            if case.access == Access::Mutating && !self.allow_mutation {
                return Err(Error::usage(format!(
                    "{}: case {} is mutating; permit it with --allow-mutation, or select others with --case",
                    case.place, case.id
                )));
            }
            let granted =
                if component.shipped { component.powers.clone() } else { components.powers(&case.kind, component) };
            planned.push(Planned { case: case.clone(), component: component.clone(), granted });
        }
        let timeout = manifest.timeout;
        Ok((manifest, Cases { timeout, planned }))
    }
}

/// Adds a manifest and the components that it pins.
pub(super) fn add_manifest(inputs: &mut Inputs, file: &Path, draft: &Draft) {
    inputs.add("the manifest", Some(file));
    for pin in draft.pins().values() {
        inputs.add("a component", Some(&pin.path));
    }
}

impl Probe {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let with_battery = self.selection.is_everything() && !self.cases.is_gate_only();
        if self.floors.is_given() && !with_battery {
            return Err(Error::usage(
                "floors need the battery, which --gate-only, --case and --probe leave out; drop one or the other",
            ));
        }
        let chosen = self.target.resolve(settings)?;
        let file = self.cases.file(chosen.named.and_then(|named| named.manifest.as_deref())).ok_or_else(|| {
            Error::usage(format!(
                "there is no manifest {}; write one with mcpeval init, name one with --manifest, or use mcpeval score, which needs none",
                DEFAULT_FILES[0]
            ))
        })?;
        let draft = Draft::read(&file)?;
        let standard = self.battery.standard(settings)?;
        let floors = self.floors.floors(&standard)?;
        let arguments = self.battery.arguments(chosen.named)?;
        let corpus = self.floors.corpus(settings)?;
        let profile = self.battery.profile(settings, chosen.named, &arguments);
        let mut inputs = settings.inputs(&self.components);
        add_manifest(&mut inputs, &file, &draft);
        self.battery.add_to(&mut inputs, settings, chosen.named, &standard);
        self.floors.add_to(&mut inputs, settings);
        let mut places = Places::new(&inputs);
        let outputs = self.report.outputs(settings, &mut places)?;
        let run_log = self.run_log.destination(settings, &mut places)?;
        let mut delivery = Delivery { settings, outputs, run_log, corpus, with_timings: self.report.timings() };

        let done = evaluation::run(settings, async move || {
            let components = Components::load(&self.components, settings).await?;
            let (manifest, cases) = self.cases.plan(&draft, &components, &self.selection).await?;
            let kinds: Vec<&str> = draft.kinds().collect();
            let battery = if with_battery {
                Some(components.battery(standard, &kinds).await?)
            } else {
                components.check_grants(kinds.into_iter())?;
                None
            };
            let plan = Plan {
                target: chosen.target,
                startup_timeout: chosen.startup_timeout,
                battery,
                cases: Some(cases),
                profile,
                arguments: arguments.by_tool,
            };
            Ok((components, plan, manifest))
        })?;
        let assembled = assemble::report(&done.evaluation, chosen.server, &floors, Some(done.beside.sha256));
        delivery.outputs.options.missed = missed(&done.beside, &assembled.report);
        delivery.outputs.options.locations = Some(Locations::new(&file, done.beside.lines()));
        delivery.finish(done, &assembled)
    }
}

/// What each failed case missed of its expectations, by its id.
fn missed(manifest: &Manifest, report: &Report) -> BTreeMap<String, String> {
    let failed = report.cases.iter().filter(|case| case.result() == CaseResult::Fail);
    failed
        .filter_map(|case| {
            let written = manifest.cases.iter().find(|written| written.id == case.id.as_str())?;
            let sentence = expectation::missed(&written.config, case.reason.as_ref()?.as_str())?;
            Some((written.id.clone(), sentence))
        })
        .collect()
}
