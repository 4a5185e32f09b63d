//! The run's private log: never part of a report.

use crate::backend::log;
pub use crate::bindings::mcpeval::probe::log::Severity;

/// One line of the log; the host keeps 4 KiB of it.
pub fn line(severity: Severity, text: &str) {
    log::line(severity, text);
}

/// For whoever debugs the probe.
pub fn debug(text: &str) {
    line(Severity::Debug, text);
}

/// For whoever reads the run.
pub fn info(text: &str) {
    line(Severity::Info, text);
}

/// Something went another way than planned.
pub fn warn(text: &str) {
    line(Severity::Warn, text);
}

/// A panic becomes a trap without words; this sends the words to the log first.
#[cfg(target_family = "wasm")]
pub(crate) fn panics() {
    std::panic::set_hook(Box::new(|info| warn(&info.to_string())));
}
