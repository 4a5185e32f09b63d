//! Whether a stored document may be shared: every string in it must be a constant, a label, a
//! digest, or a word that a component declares.
//!
//! The grammar of each place comes from the document's own schema; what components can say comes from those that are
//! loaded. It takes any JSON that claims to be a report, also one that no reader would accept.

mod tree;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compare::Comparison;
use super::diff;
use super::document::{EARLIER_SCHEMA, SCHEMA};
use super::read::{self, Vocabulary};
use super::schema;
use crate::error::{Error, Result};
use crate::guidance::{self, Guidance};
use crate::notation;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// JSON Pointers of what must not be shared, and why.
    pub broken: BTreeMap<String, &'static str>,
    /// Labels of components that are not loaded; they keep their grammar, and no more is known.
    pub unknown: BTreeSet<String>,
}

impl Findings {
    /// 1 if something must not be shared.
    pub fn exit_code(&self) -> u8 {
        u8::from(!self.broken.is_empty())
    }

    /// A line for each finding, or one that there is none.
    pub fn text(&self) -> String {
        let broken = self.broken.iter().map(|(pointer, why)| {
            let pointer = if pointer.is_empty() { "the document" } else { pointer };
            format!("broken {pointer}: {why}\n")
        });
        let unknown = self.unknown.iter().map(|label| format!("unknown {label}: its component is not loaded\n"));
        let none = self.broken.is_empty().then(|| "every string is of a class that may be shared\n".to_owned());
        broken.chain(unknown).chain(none).collect()
    }

    fn breaks(&mut self, pointer: impl Into<String>, why: &'static str) {
        self.broken.entry(pointer.into()).or_insert(why);
    }
}

/// Checks a report, a difference, a comparison or a guidance report; `name` is what it is called in errors.
///
/// # Errors
/// A usage error with the place if the text is no JSON, repeats a name, or claims to be something else.
pub fn check(name: &str, text: &str, vocabulary: &Vocabulary<'_>) -> Result<Findings> {
    let text = notation::without_mark(text);
    let document = tree::parse(text).map_err(|error| read::fault(name, text, "", &error))?;
    let mut findings = Findings::default();
    let claim = document.get("schema").and_then(Value::as_str);
    match (&document, claim) {
        (Value::Array(entries), _) => {
            tree::walk(&schema::plain::<Comparison>(), &document, &mut findings);
            for (at, entry) in entries.iter().enumerate() {
                if let Some(report) = entry.get("report") {
                    words::check_report(report, &format!("/{at}/report"), vocabulary, &mut findings);
                }
            }
        }
        (_, Some(SCHEMA)) => {
            tree::walk(&schema::stored(), &document, &mut findings);
            words::check_report(&document, "", vocabulary, &mut findings);
        }
        (_, Some(EARLIER_SCHEMA)) => {
            tree::walk(&schema::earlier(), &document, &mut findings);
            words::check_report(&document, "", vocabulary, &mut findings);
        }
        (_, Some(diff::SCHEMA)) => {
            tree::walk(&schema::plain_diff(), &document, &mut findings);
            words::check_diff(&document, vocabulary, &mut findings);
        }
        (_, Some(guidance::SCHEMA)) => {
            tree::walk(&schema::plain::<Guidance>(), &document, &mut findings);
            words::check_guidance(&document, &mut findings);
        }
        _ => {
            return Err(Error::usage(format!(
                "{name}: /schema: must be \"{SCHEMA}\", \"{EARLIER_SCHEMA}\", \"{}\" or \"{}\"",
                diff::SCHEMA,
                guidance::SCHEMA
            )));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests;
