//! Renderings of a report: which there are, and what they are told beside it.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::corpus::Placement;
use super::document::Report;
use super::sarif::Rule;
use super::{html, junit, markdown, sarif, text};
use crate::error::Result;

/// What stands in the path of a URI as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    Text,
    /// The document itself.
    Json,
    /// For comments and summaries.
    Markdown,
    /// For code scanning, SARIF 2.1.0.
    Sarif,
    /// For the test results of CI.
    Junit,
    /// A page for people.
    Html,
}

/// What renderings show beside the report, and how much of it.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// No hints.
    pub brief: bool,
    /// Every subject, score and count.
    pub full: bool,
    /// Measured times; they are not share-safe.
    pub timings: Option<Timings>,
    /// Price of a million tokens, in US dollars, at least 0.
    pub price_per_mtok: Option<f64>,
    /// Where the server stands among others.
    pub placement: Option<Placement>,
    /// Colours, for a terminal.
    pub styled: bool,
    /// What of its expectations each failed case missed, by id of the case, for text.
    pub missed: BTreeMap<String, String>,
    /// Where SARIF places what it says.
    pub locations: Option<Locations>,
    /// What the loaded components can say, for SARIF.
    pub rules: Vec<Rule>,
}

/// Measured times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timings {
    /// Of the run.
    pub total: Duration,
    /// By id of the case.
    pub cases: BTreeMap<String, Duration>,
}

/// A file to place results in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locations {
    /// Its address.
    pub uri: String,
    /// The line, from 1, of each case's id; what has none is placed at line 1.
    pub lines: BTreeMap<String, u64>,
}

impl Locations {
    /// Places results in a file: by a URI relative to the working directory, or by its name alone if it lies outside.
    pub fn new(file: &Path, lines: BTreeMap<String, u64>) -> Self {
        let folder = std::env::current_dir().unwrap_or_default();
        Self { uri: relative(file, &folder), lines }
    }
}

/// The URI of a file, relative to a folder.
fn relative(file: &Path, folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    // A file that is yet to be written has no canonical path, but its folder may.
    let file = file.canonicalize().unwrap_or_else(|_| {
        let place = file.parent().and_then(|parent| folder.join(parent).canonicalize().ok());
        place.zip(file.file_name()).map_or_else(|| folder.join(file), |(place, name)| place.join(name))
    });
    let path = file.strip_prefix(&folder).unwrap_or_else(|_| file.file_name().map_or(file.as_path(), Path::new));
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(utf8_percent_encode(&name.to_string_lossy(), ENCODED).to_string()),
        _ => None,
    });
    parts.collect::<Vec<String>>().join("/")
}

/// One rendering.
///
/// # Errors
/// See [`Report::to_json`].
pub fn render(report: &Report, format: Format, options: &Options) -> Result<String> {
    match format {
        Format::Text => Ok(text::render(report, options)),
        Format::Json => report.to_json(),
        Format::Markdown => Ok(markdown::render(report, options)),
        Format::Sarif => Ok(sarif::render(report, options)),
        Format::Junit => junit::render(report, options),
        Format::Html => html::render(report, options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_relative_encoded_and_never_lead_outside() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("work");
        std::fs::create_dir_all(folder.join("evals")).unwrap();
        std::fs::write(folder.join("evals/a b.yaml"), "").unwrap();
        std::fs::write(place.path().join("secret.json"), "").unwrap();
        assert_eq!(relative(&folder.join("evals/a b.yaml"), &folder), "evals/a%20b.yaml");
        assert_eq!(relative(&folder.join("evals/../evals/new:é#.json"), &folder), "evals/new%3A%C3%A9%23.json");
        assert_eq!(relative(Path::new("evals/absent.json"), &folder), "evals/absent.json");
        assert_eq!(relative(&folder.join("../secret.json"), &folder), "secret.json");
        assert_eq!(relative(Path::new("../secret.json"), &folder), "secret.json");
        assert_eq!(relative(Path::new("/no/such/folder/file.json"), &folder), "file.json");
    }
}
