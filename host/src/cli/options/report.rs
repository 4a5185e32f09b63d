//! What is written and where.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::super::console;
use super::super::settings::Settings;
use crate::error::{Error, Result};
use crate::nearest;
use crate::report::output::{Outputs, Places};
use crate::report::render::{self, Locations};

/// What is written and where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub(in crate::cli) struct ReportOptions {
    /// Rendering of the result [default: text]
    #[arg(long, value_enum, value_name = "F")]
    format: Option<Format>,
    /// Write the result to this file, replaced at once; - is standard output [default: stdout]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// One more rendering, F as for --format; - as FILE is standard output; repeatable
    #[arg(long, value_name = "F=FILE", value_parser = report)]
    report: Vec<(Format, PathBuf)>,
    /// Leave out the hints that say what to change
    #[arg(long)]
    brief: bool,
    /// Show every tool, score and count of every loss, not only the first 8 of a group
    #[arg(long)]
    full: bool,
    /// Add measured times to text, junit and html; they are not share-safe
    #[arg(long)]
    timings: bool,
    /// Price of a million tokens in US dollars, 0 or more, to show what the catalog costs [default: not shown]
    #[arg(long, value_name = "USD", value_parser = price)]
    price_per_mtok: Option<f64>,
    /// File that sarif places results in where there is no manifest
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    anchor: Option<PathBuf>,
}

/// A rendering, as an option names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// Lines for people
    Text,
    /// The report document
    Json,
    /// For comments and job summaries
    Markdown,
    /// For code scanning, SARIF 2.1.0
    Sarif,
    /// For test results of CI
    Junit,
    /// A page for people, without scripts
    Html,
}

impl From<Format> for render::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Json => Self::Json,
            Format::Markdown => Self::Markdown,
            Format::Sarif => Self::Sarif,
            Format::Junit => Self::Junit,
            Format::Html => Self::Html,
        }
    }
}

impl ReportOptions {
    /// Whether measured times are wanted.
    pub(in crate::cli) fn timings(&self) -> bool {
        self.timings
    }

    /// The rendering that is named, here or in the configuration.
    pub(in crate::cli) fn format(&self, settings: &Settings) -> Result<Format> {
        match (self.format, &settings.config.defaults.format) {
            (Some(format), _) => Ok(format),
            (None, Some(name)) => Format::from_str(name, false)
                .map_err(|_| Error::usage(format!("mcpeval.toml: no report is rendered as {name}"))),
            (None, None) => Ok(Format::Text),
        }
    }

    /// Where everything goes; checked, so that no evaluation is spent in vain.
    pub(in crate::cli) fn outputs(&self, settings: &Settings, places: &mut Places<'_>) -> Result<Outputs> {
        let defaults = &settings.config.defaults;
        let output = places.result(self.output.as_deref())?;
        let mut reports = Vec::with_capacity(self.report.len());
        for (format, path) in &self.report {
            reports.push(((*format).into(), places.result(Some(path))?));
        }
        Ok(Outputs {
            format: self.format(settings)?.into(),
            options: render::Options {
                brief: self.brief || defaults.brief,
                full: self.full || defaults.full,
                price_per_mtok: self.price_per_mtok.or(defaults.price_per_mtok),
                styled: output.is_standard_output() && console::stdout_is_styled(),
                locations: self.anchor.as_deref().map(|anchor| Locations::new(anchor, BTreeMap::new())),
                ..render::Options::default()
            },
            output,
            reports,
        })
    }
}

fn report(text: &str) -> Result<(Format, PathBuf), String> {
    let (format, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or("must be F=FILE")?;
    let format = Format::from_str(format, false).map_err(|_| {
        let values: Vec<_> = Format::value_variants().iter().filter_map(ValueEnum::to_possible_value).collect();
        let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        format!("F must be one of {}{}", names.join(", "), nearest::hint(format, names))
    })?;
    Ok((format, PathBuf::from(path)))
}

fn price(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|price: &f64| price.is_finite() && *price >= 0.0)
        .ok_or_else(|| "must be a number of at least 0".to_owned())
}
