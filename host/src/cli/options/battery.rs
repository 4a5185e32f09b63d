//! What the battery does and asks for.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;

use super::super::battery;
use super::super::settings::Settings;
use super::label;
use crate::arguments::Arguments;
use crate::config::{self, MAX_LANES};
use crate::error::{Error, Result};
use crate::report::assemble::Floors;
use crate::report::corpus::Corpus;
use crate::report::document::Label;
use crate::report::output::Inputs;
use crate::runner::Profile;
use crate::runner::site::CALL_TIMEOUT_MS;
use crate::standard::{Source, Standard};
use crate::{nearest, shown};

/// Valid calls per tool.
const REPEATS: u32 = 3;
/// Sessions that may share the calls.
const LANES: u32 = 4;

/// What the battery does.
#[derive(Debug, Args)]
#[command(next_help_heading = "Battery")]
pub(in crate::cli) struct BatteryOptions {
    /// Attest that tools without annotations are read-only, so that they are called
    #[arg(long)]
    confirm_read_only: bool,
    /// Never call this tool; it must be listed; repeatable
    #[arg(long, value_name = "NAME", value_parser = label)]
    skip_tool: Vec<Label>,
    /// Arguments per tool, a JSON or YAML object of at most 1 MiB [default: the target's, else built from schemas]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    arguments: Option<PathBuf>,
    /// Another standard, TOML, JSON or YAML [default: mcpeval-standard/3]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    standard: Option<PathBuf>,
    /// Sessions that may share the calls, 1 to 16; 1 is off [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_LANES)))]
    lanes: Option<u32>,
}

impl BatteryOptions {
    fn standard_file<'a>(&'a self, settings: &'a Settings) -> Option<&'a Path> {
        self.standard.as_deref().or(settings.config.defaults.standard.as_deref())
    }

    fn arguments_file<'a>(&'a self, named: Option<&'a config::Target>) -> Option<&'a Path> {
        self.arguments.as_deref().or_else(|| named.and_then(|named| named.arguments.as_deref()))
    }

    /// The standard that is named, here or in the configuration, else the shipped one.
    pub(in crate::cli) fn standard(&self, settings: &Settings) -> Result<Standard> {
        self.standard_file(settings).map_or_else(Standard::shipped, Standard::read)
    }

    /// The arguments that are given for a target.
    pub(in crate::cli) fn arguments(&self, named: Option<&config::Target>) -> Result<Arguments> {
        self.arguments_file(named).map_or_else(|| Ok(Arguments::default()), Arguments::read)
    }

    /// Adds the files that are read for a target; `standard` is the one that was read.
    pub(in crate::cli) fn add_to(
        &self,
        inputs: &mut Inputs,
        settings: &Settings,
        named: Option<&config::Target>,
        standard: &Standard,
    ) {
        inputs.add("the standard", self.standard_file(settings));
        inputs.add("the arguments file", self.arguments_file(named));
        for area in &standard.areas {
            if let Source::File { path, .. } = &area.source {
                inputs.add("a component", Some(path));
            }
        }
    }

    /// The choices for a target. Tools named by options replace those of the configuration.
    pub(in crate::cli) fn profile(
        &self,
        settings: &Settings,
        named: Option<&config::Target>,
        arguments: &Arguments,
    ) -> Profile {
        let configured = || named.map(|named| named.skip_tools.as_slice()).unwrap_or_default();
        let skipped = if self.skip_tool.is_empty() { configured() } else { &self.skip_tool };
        let mut skip_tools: Vec<String> = skipped.iter().map(ToString::to_string).collect();
        skip_tools.sort();
        skip_tools.dedup();
        Profile {
            attested_read_only: self.confirm_read_only || named.is_some_and(|named| named.confirm_read_only),
            skip_tools,
            call_timeout_ms: CALL_TIMEOUT_MS,
            repeats: REPEATS,
            lanes: self.lanes.or(settings.config.defaults.lanes).unwrap_or(LANES),
            arguments_sha256: arguments.digest,
        }
    }
}

/// What is asked of the score.
#[derive(Debug, Args)]
#[command(next_help_heading = "Battery")]
pub(in crate::cli) struct FloorOptions {
    /// Least score, 0 to 100; below it the exit code is 1 [default: no floor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100))]
    min_readiness: Option<u8>,
    /// Least score of an area, 0 to 100; repeatable, once per area [default: no floor]
    #[arg(long, value_name = "AREA=N", value_parser = area_floor, add = ArgValueCompleter::new(areas))]
    min_area: Vec<(String, u8)>,
    /// Latency does not count towards the floors
    #[arg(long)]
    exclude_latency: bool,
    /// Scores of other servers, to be placed among [default: corpus.json of the home folder, if present]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    corpus: Option<PathBuf>,
}

impl FloorOptions {
    /// Whether any floor is asked for, or a condition of one.
    pub(in crate::cli) fn is_given(&self) -> bool {
        self.min_readiness.is_some() || !self.min_area.is_empty() || self.exclude_latency
    }

    /// The floors; each area is one of the standard, and named once.
    pub(in crate::cli) fn floors(&self, standard: &Standard) -> Result<Floors> {
        let mut min_areas = BTreeMap::new();
        for (area, floor) in &self.min_area {
            let names = || standard.areas.iter().map(|area| area.name.as_str());
            if !names().any(|name| name == area) {
                let hint = nearest::choices(area, names());
                let area = shown::word(area);
                return Err(Error::usage(format!("--min-area: {} has no area \"{area}\"{hint}", standard.label)));
            }
            if min_areas.insert(area.clone(), *floor).is_some() {
                return Err(Error::usage(format!("--min-area {area} is given twice")));
            }
        }
        let floors = Floors { min_score: self.min_readiness, min_areas, exclude_latency: self.exclude_latency };
        if floors.exclude_latency && floors.is_empty() {
            return Err(Error::usage("--exclude-latency needs a floor, --min-readiness or --min-area"));
        }
        Ok(floors)
    }

    /// The corpus that is named, here or in the configuration, else the one of the home folder if it is there.
    pub(in crate::cli) fn corpus(&self, settings: &Settings) -> Result<Option<Corpus>> {
        self.corpus_file(settings).map(|path| Corpus::read(&path)).transpose()
    }

    /// Adds the corpus, if one is read.
    pub(in crate::cli) fn add_to(&self, inputs: &mut Inputs, settings: &Settings) {
        inputs.add("the corpus", self.corpus_file(settings).as_deref());
    }

    fn corpus_file(&self, settings: &Settings) -> Option<PathBuf> {
        let named = self.corpus.clone().or_else(|| settings.config.defaults.corpus.clone());
        named.or_else(|| settings.home_corpus())
    }
}

fn areas(current: &OsStr) -> Vec<CompletionCandidate> {
    let areas = Standard::shipped().map(|standard| standard.areas).unwrap_or_default();
    battery::candidates(current, areas.into_iter().map(|area| format!("{}=", area.name)))
}

fn area_floor(text: &str) -> Result<(String, u8), String> {
    let (area, floor) = text.split_once('=').ok_or("must be AREA=N")?;
    let floor = floor.parse().ok().filter(|floor| *floor <= 100).ok_or("N must be an integer from 0 to 100")?;
    Ok((area.to_owned(), floor))
}
