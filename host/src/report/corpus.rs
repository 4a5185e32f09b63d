//! Where a server stands among others, from a file of their scores.

use std::path::Path;

use serde_json::Value;

use super::document::{CATALOG_TOKENS, EARLIER_PROFILE_SCHEMA, PROFILE_SCHEMA, Profile, Readiness};
use crate::error::Result;
use crate::notation::{At, Document, Notation};

/// The value of `schema`.
pub const SCHEMA: &str = "mcpeval.corpus/v1";
/// Bytes of a corpus file.
pub const CORPUS_LIMIT: usize = 16 * 1024 * 1024;

/// Scores of other servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Corpus {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    standard: String,
    score: u32,
    profile: Value,
    tokens: u32,
}

/// Where a server stands; a part is absent if the server or the corpus lacks its numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// By size of the catalog, smallest first.
    pub tokens: Option<Place>,
    /// By score among comparable entries, best first.
    pub score: Option<Place>,
}

/// A rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The server's own value.
    pub value: u64,
    /// 1 is best; equal values share the better rank.
    pub rank: usize,
    /// How many are ranked, the server included.
    pub of: usize,
    /// The lower median of the others.
    pub median: u64,
}

impl Corpus {
    /// Reads a file, JSON, YAML or TOML.
    ///
    /// # Errors
    /// A usage error with the place.
    pub fn read(path: &Path) -> Result<Self> {
        let accepted = [Notation::Json, Notation::Yaml, Notation::Toml];
        Self::parse(&Document::read_within(path, &accepted, CORPUS_LIMIT)?)
    }

    fn parse(document: &Document) -> Result<Self> {
        let root = document.root();
        root.only(&["$schema", "schema", "entries"])?;
        let schema = root.required("schema")?;
        if schema.text()? != SCHEMA {
            return Err(schema.fault(format!("must be \"{SCHEMA}\"")));
        }
        let entries = root.required("entries")?.items()?.map(|entry| Entry::parse(&entry)).collect::<Result<_>>()?;
        Ok(Self { entries })
    }

    /// Where a server stands.
    pub fn place(&self, readiness: &Readiness) -> Placement {
        let profile = comparable(&serde_json::to_value(&readiness.measurement_profile).unwrap_or_default());
        let tokens = readiness.measurement(CATALOG_TOKENS).and_then(|value| {
            Place::among(value, self.entries.iter().map(|entry| entry.tokens.into()), |own, other| other < own)
        });
        let equal = self
            .entries
            .iter()
            .filter(|entry| entry.standard == readiness.standard.as_str() && comparable(&entry.profile) == profile);
        let score =
            Place::among(readiness.score.0.into(), equal.map(|entry| entry.score.into()), |own, other| other > own);
        Placement { tokens, score }
    }
}

impl Entry {
    fn parse(entry: &At<'_>) -> Result<Self> {
        entry.only(&["server", "standard", "score", "measurement_profile", CATALOG_TOKENS])?;
        entry.required("server")?.text()?;
        let profile = entry.required("measurement_profile")?;
        profile.only(&Profile::FIELDS)?;
        let schema = profile.required("schema")?;
        if ![PROFILE_SCHEMA, EARLIER_PROFILE_SCHEMA].contains(&schema.text()?) {
            return Err(schema.fault(format!("must be \"{PROFILE_SCHEMA}\"")));
        }
        Ok(Self {
            standard: entry.required("standard")?.text()?.to_owned(),
            score: entry.required("score")?.integer(0, 100)?,
            profile: profile.node().to_value(),
            tokens: entry.required(CATALOG_TOKENS)?.integer(0, u32::MAX)?,
        })
    }
}

impl Place {
    fn among(value: u64, others: impl Iterator<Item = u64>, better: fn(u64, u64) -> bool) -> Option<Self> {
        let mut others: Vec<u64> = others.collect();
        others.sort_unstable();
        let median = *others.get(others.len().checked_sub(1)? / 2)?;
        let rank = 1 + others.iter().filter(|other| better(value, **other)).count();
        Some(Self { value, rank, of: others.len() + 1, median })
    }
}

/// A profile as it compares: of the evaluator's version only major and minor count.
fn comparable(profile: &Value) -> Value {
    let mut profile = profile.clone();
    if let Some(Value::String(version)) = profile.get_mut("evaluator_version") {
        let end = version.match_indices('.').nth(1).map_or(version.len(), |(at, _)| at);
        version.truncate(end);
    }
    profile
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::assemble::{Floors, assemble};
    use super::super::document::Label;
    use super::super::tests_support::Example;
    use super::*;

    fn readiness() -> Readiness {
        assemble(&Example::worked().facts(), Label::new("shop").unwrap(), &Floors::default()).report.readiness.unwrap()
    }

    fn corpus(entries: &Value) -> Result<Corpus> {
        let text = json!({"schema": SCHEMA, "entries": entries}).to_string();
        Corpus::parse(&Document::parse("c", text, Notation::Json)?)
    }

    fn entry(score: u32, tokens: u32, change: impl FnOnce(&mut Value)) -> Value {
        let mut entry = json!({"server": "x", "standard": "mcpeval-standard/3", "score": score, "catalog_tokens": tokens,
            "measurement_profile": readiness().measurement_profile});
        change(&mut entry);
        entry
    }

    #[test]
    fn ranks_tokens_among_all_and_scores_among_equals() {
        let corpus = corpus(&json!([
            entry(90, 1000, |_| ()),
            entry(65, 3000, |entry| {
                let version = entry["measurement_profile"]["evaluator_version"].as_str().unwrap().to_owned() + "9";
                entry["measurement_profile"]["evaluator_version"] = version.into();
            }),
            entry(99, 2000, |entry| entry["standard"] = "acme/1".into()),
            entry(99, 9000, |entry| entry["measurement_profile"]["lanes"] = 1.into()),
            entry(99, 9000, |entry| entry["measurement_profile"]["schema"] = EARLIER_PROFILE_SCHEMA.into()),
        ]))
        .unwrap();
        let placement = corpus.place(&readiness());
        assert_eq!(placement.tokens, Some(Place { value: 3000, rank: 3, of: 6, median: 3000 }));
        assert_eq!(placement.score, Some(Place { value: 65, rank: 2, of: 3, median: 65 }));
    }

    #[test]
    fn an_empty_corpus_places_nobody() {
        assert_eq!(corpus(&json!([])).unwrap().place(&readiness()), Placement::default());
    }

    #[test]
    fn refuses_unknown_fields_and_schemas() {
        for (change, words) in [
            (json!({"scores": 1}), "/entries/0/scores: unknown field; the nearest is \"score\""),
            (json!({"score": 101}), "/entries/0/score: must be an integer from 0 to 100"),
            (json!({"measurement_profile": {"lane": 1}}), "/measurement_profile/lane: unknown field"),
            (json!({"measurement_profile": {"schema": "x"}}), "/measurement_profile/schema: must be"),
        ] {
            let entry = entry(1, 1, |entry| {
                for (key, value) in change.as_object().unwrap() {
                    entry[key] = value.clone();
                }
            });
            let fault = corpus(&json!([entry])).unwrap_err().to_string();
            assert!(fault.contains(words), "{fault}");
        }
    }
}
