//! Where results go: standard output, files that are replaced whole or not at all, and whatever else can be written to.

mod file;
mod place;
mod stream;

use super::document::Report;
use super::render::{Format, Options, render};
use crate::error::Result;

pub use file::abandon;
pub use place::{Destination, Inputs, Places, replace};
pub use stream::stdout;

/// What to write and where.
#[derive(Debug)]
pub struct Outputs {
    /// The rendering of the result.
    pub format: Format,
    /// Where it goes.
    pub output: Destination,
    /// More renderings.
    pub reports: Vec<(Format, Destination)>,
    /// What they show.
    pub options: Options,
}

impl Outputs {
    /// Writes all renderings; files first, so that whoever reads standard output finds them.
    ///
    /// # Errors
    /// Unfinished if one cannot be written.
    pub fn write(&self, report: &Report) -> Result<()> {
        let plain = Options { styled: false, ..self.options.clone() };
        for (format, destination) in &self.reports {
            destination.write(render(report, *format, &plain)?.as_bytes())?;
        }
        let options = if self.output.is_standard_output() { &self.options } else { &plain };
        self.output.write(render(report, self.format, options)?.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::assemble::{Floors, assemble};
    use super::super::document::Label;
    use super::super::tests_support::Example;
    use super::*;

    #[test]
    fn writes_every_rendering_and_never_colours_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (json, text) = (folder.path().join("a.json"), folder.path().join("a.txt"));
        let report = assemble(&Example::worked().facts(), Label::new("shop").unwrap(), &Floors::default()).report;
        let inputs = Inputs::default();
        let mut places = Places::new(&inputs);
        let mut take = |path: &Path| places.result(Some(path)).unwrap();
        let outputs = Outputs {
            format: Format::Json,
            output: take(&json),
            reports: vec![(Format::Text, take(&text))],
            options: Options { styled: true, ..Options::default() },
        };
        outputs.write(&report).unwrap();
        assert_eq!(fs::read_to_string(json).unwrap(), report.to_json().unwrap());
        let text = fs::read_to_string(text).unwrap();
        assert!(text.starts_with("shop readiness 65/100") && !text.contains('\u{1b}'), "{text}");
    }
}
