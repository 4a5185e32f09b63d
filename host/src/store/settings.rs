//! What a user set for one home, in `config.json`.

use super::home::Home;
use crate::error::Result;
use crate::notation::{Document, Notation};

/// The key of [`Settings::promotion_threshold`].
const PROMOTION_THRESHOLD: &str = "promotion_threshold";

/// The settings of one home.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Settings {
    /// The score that a group of failures must reach to become a finding: at least 0, finite.
    pub promotion_threshold: Option<f64>,
}

impl Settings {
    /// The settings of a home; those of a home without the file say nothing.
    ///
    /// # Errors
    /// A usage error with the place: a key that no document defines, a value that is none.
    pub fn of(home: &Home) -> Result<Self> {
        let path = home.config_file();
        if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return Ok(Self::default());
        }
        Self::parse(&Document::read(&path, &[Notation::Json])?)
    }

    fn parse(document: &Document) -> Result<Self> {
        let root = document.root();
        root.only(&[PROMOTION_THRESHOLD])?;
        let Some(threshold) = root.optional(PROMOTION_THRESHOLD)? else { return Ok(Self::default()) };
        let value = threshold.number()?;
        if !is_threshold(value) {
            return Err(threshold.fault("must be a number of at least 0"));
        }
        Ok(Self { promotion_threshold: Some(value) })
    }
}

/// Whether a number can be a threshold.
pub fn is_threshold(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_without_the_file_says_nothing_and_one_with_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert_eq!(Settings::of(&home).unwrap(), Settings::default());
        for (text, expected) in [("{}", None), ("{\"promotion_threshold\": 0.5}", Some(0.5))] {
            std::fs::write(home.config_file(), text).unwrap();
            assert_eq!(Settings::of(&home).unwrap().promotion_threshold, expected);
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        for (text, told) in [
            ("{\"promotion_treshold\": 0.5}", "promotion_threshold"),
            ("{\"promotion_threshold\": -1}", "at least 0"),
            ("{\"promotion_threshold\": 1e999}", "config.json"),
            ("{\"promotion_threshold\": \"0.5\"}", "config.json"),
            ("{\"promotion_threshold\": 1, \"promotion_threshold\": 2}", "config.json"),
            ("[]", "config.json"),
            ("", "config.json"),
        ] {
            std::fs::write(home.config_file(), text).unwrap();
            let error = Settings::of(&home).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(told), "{text}: {error}");
        }
    }
}
