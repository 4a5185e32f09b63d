//! `mcpeval report`: a stored document again, or whether it may be shared.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::battery::{Components, block_on};
use super::options::{ComponentOptions, ReportOptions};
use super::settings::Settings;
use super::{console, signals};
use crate::error::Result;
use crate::manifest::Draft;
use crate::notation;
use crate::probes::{Loaded, Manifest};
use crate::report::document;
use crate::report::output::Places;
use crate::report::read::{self, Vocabulary};
use crate::report::render::Locations;
use crate::report::{canonical, check, output, sarif};

const EXAMPLE: &str = "\
Examples:
  mcpeval report report.json --format markdown
  mcpeval score --demo --format json | mcpeval report - --report html=report.html
  mcpeval report --check report.json

Exit codes:
  0  as the run ended: everything passed; with --check: it may be shared
  1  as the run ended: a case failed or a floor is missed; with --check: something in it must not be shared
  2  usage: arguments, a document that is no report, a component
  3  as the run ended: a case or the readiness has no verdict; I/O
  130, 143  ended by SIGINT, SIGTERM";

/// Render a stored report, or check that it may be shared
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Report {
    /// A report of at most 64 MiB; - is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    document: PathBuf,
    /// Name every string that must not be shared, by its JSON Pointer; also takes what diff, compare and guidance wrote
    #[arg(
        long,
        conflicts_with_all =
            ["manifest", "format", "output", "report", "brief", "full", "timings", "price_per_mtok", "anchor"]
    )]
    check: bool,
    /// Manifest of the run, for the lines in sarif; ignored if it has changed since
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    manifest: Option<PathBuf>,
    #[command(flatten)]
    renderings: ReportOptions,
    #[command(flatten)]
    components: ComponentOptions,
}

impl Report {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let mut inputs = settings.inputs(&self.components);
        inputs.add_document("the report", &self.document);
        inputs.add("the manifest", self.manifest.as_deref());
        signals::listen()?;
        let mut outputs = self.renderings.outputs(settings, &mut Places::new(&inputs))?;
        let loaded = block_on(async { Components::load(&self.components, settings).await?.all().await })?;
        let (name, text) = read::source(&self.document)?;
        if self.check {
            let findings = check::check(&name, &text, &Vocabulary::new(manifests(&loaded)))?;
            output::stdout(findings.text().as_bytes())?;
            return Ok(findings.exit_code());
        }
        let report = read::report(
            &name,
            &text,
            &Vocabulary::new(manifests(loaded.iter().filter(|component| component.shipped))),
        )?;
        if let Some(path) = &self.manifest {
            match locations(path, &report)? {
                Some(locations) => outputs.options.locations = Some(locations),
                None if settings.quiet => {}
                None => console::note(&format!("{}: not the manifest of this report, ignored", path.display())),
            }
        }
        outputs.options.rules = sarif::rules(manifests(&loaded));
        outputs.write(&report)?;
        Ok(report.exit_code())
    }
}

/// What the loaded components say of themselves.
fn manifests<'a>(loaded: impl IntoIterator<Item = &'a Loaded>) -> impl Iterator<Item = &'a Manifest> {
    loaded.into_iter().map(|component| component.manifest.as_ref())
}

/// The lines of a manifest, if it is the one that the report was made with.
fn locations(path: &Path, report: &document::Report) -> Result<Option<Locations>> {
    let text = notation::read_text(path, notation::DOCUMENT_LIMIT)?;
    let digest = canonical::digest(text.as_bytes()).to_string();
    if report.manifest_sha256.as_ref().is_none_or(|known| known.as_str() != digest) {
        return Ok(None);
    }
    Ok(Some(Locations::new(path, Draft::read(path)?.lines()?)))
}
