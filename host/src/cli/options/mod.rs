//! Options that several commands share, and what they and the configuration mean in the program's own types.

mod battery;
mod components;
mod report;
mod target;

use crate::report::document::Label;

pub(super) use battery::{BatteryOptions, FloorOptions};
pub(super) use components::{ComponentOptions, RunLogOptions};
pub(super) use report::ReportOptions;
pub(super) use target::{DemoOptions, TargetOptions, Terms, fault, faults, server_command, startup_timeout, targets};

pub(super) fn label(text: &str) -> Result<Label, String> {
    Label::new(text).ok_or_else(|| "must be 1 to 128 of A-Z a-z 0-9 _ . : -".to_owned())
}

#[cfg(test)]
mod tests;
