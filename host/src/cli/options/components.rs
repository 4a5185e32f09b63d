//! Components beside the battery, and where their free text goes.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::super::settings::Settings;
use crate::error::{Error, Result};
use crate::nearest;
use crate::probes::Power;
use crate::report::output::{Destination, Places};

/// Components that are no part of the battery.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Components")]
pub(in crate::cli) struct ComponentOptions {
    /// Load this component as KIND; repeatable
    #[arg(long, value_name = "KIND=PATH", value_parser = component)]
    pub(in crate::cli) component: Vec<(String, PathBuf)>,
    /// Grant a component a power below the protocol, pipe or http; of an area's component KIND is area:<name>; repeatable
    #[arg(long, value_name = "KIND=POWER", value_parser = grant)]
    pub(in crate::cli) grant: Vec<(String, Power)>,
}

/// The private log of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Components")]
pub(in crate::cli) struct RunLogOptions {
    /// Keep free text of components and diagnostics in this file, for its owner alone; it is not share-safe
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    run_log: Option<PathBuf>,
}

impl RunLogOptions {
    /// The file, which must not lie in the home folder.
    pub(in crate::cli) fn destination(
        &self,
        settings: &Settings,
        places: &mut Places<'_>,
    ) -> Result<Option<Destination>> {
        let Some(path) = self.run_log.as_deref() else { return Ok(None) };
        let destination = places.private(path)?;
        let home = settings.home.as_ref().and_then(|home| home.canonicalize().ok());
        if home.is_some_and(|home| destination.file().is_some_and(|file| file.starts_with(home))) {
            return Err(Error::usage(format!(
                "{}: a run log must not lie in mcpeval's own folder ($MCPEVAL_HOME, ~/.mcp-eval)",
                path.display()
            )));
        }
        Ok(Some(destination))
    }
}

fn component(text: &str) -> Result<(String, PathBuf), String> {
    let (kind, path) =
        text.split_once('=').filter(|(kind, path)| !kind.is_empty() && !path.is_empty()).ok_or("must be KIND=PATH")?;
    Ok((kind.to_owned(), PathBuf::from(path)))
}

fn grant(text: &str) -> Result<(String, Power), String> {
    let (kind, power) = text.split_once('=').filter(|(kind, _)| !kind.is_empty()).ok_or("must be KIND=POWER")?;
    let power = Power::from_word(power)
        .ok_or_else(|| format!("POWER must be pipe or http{}", nearest::hint(power, Power::ALL.map(Power::word))))?;
    Ok((kind.to_owned(), power))
}
