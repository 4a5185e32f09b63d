//! A standard as data: areas and weights, and how area scores become a readiness score. Pure, but for reading the
//! file that `--standard` names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::error::{Error, Result};
use crate::nearest;
use crate::notation::{At, Document, Kind, Notation};
use crate::outcome::AreaScore;
use crate::probes::{Manifest, is_word};

/// The value of `schema` in a standard's file.
pub const SCHEMA: &str = "mcpeval.standard/v1";
/// Labels that begin so are ours alone.
pub const RESERVED_PREFIX: &str = "mcpeval-standard/";
/// Areas of one standard.
pub const MAX_AREAS: usize = 32;
/// What is added before rounding, so that 64.5 reached by thirds is still rounded up.
const ROUNDING_SLACK: f64 = 1e-9;

/// Areas with weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standard {
    /// Such as `mcpeval-standard/3`.
    pub label: String,
    /// In report order.
    pub areas: Vec<Area>,
}

/// One area of a standard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// Its name.
    pub name: String,
    /// Its share of the score; all add up to 100.
    pub weight: u32,
    /// Where its component comes from.
    pub source: Source,
}

/// Where an area's component comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An area of the shipped battery, by its name.
    Shipped(String),
    /// A file, its path already resolved, with its pinned SHA-256 in hexadecimal.
    File {
        /// Path of the component.
        path: PathBuf,
        /// The pin.
        sha256: String,
    },
}

/// Readiness, and every area's part in it, in the order of the standard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// 0 to 100.
    pub score: u8,
    /// The same with latency at its best.
    pub untimed: u8,
    /// One per area.
    pub areas: Vec<AreaFold>,
}

/// An area's rounded scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AreaFold {
    /// 0 to 100.
    pub score: u8,
    /// The same with latency at its best; equal where latency takes no part.
    pub untimed: u8,
}

impl From<AreaScore> for AreaFold {
    fn from(area: AreaScore) -> Self {
        Self { score: percent(area.score), untimed: percent(area.untimed.unwrap_or(area.score)) }
    }
}

static SHIPPED: LazyLock<Result<Standard>> = LazyLock::new(|| {
    let text = include_str!("../../probes/standard-3.toml");
    parse(&Document::parse("standard-3.toml", text, Notation::Toml)?, Path::new(""), None)
});

impl Standard {
    /// `mcpeval-standard/3`.
    ///
    /// # Errors
    /// None as built: a test reads it.
    pub fn shipped() -> Result<Self> {
        SHIPPED.as_ref().cloned().map_err(|error| Error::unfinished(error.to_string()))
    }

    /// The standard of a file in TOML, JSON or YAML; paths in it are relative to it.
    ///
    /// # Errors
    /// A usage error with the place: unknown fields, weights, labels, reserved names.
    pub fn read(path: &Path) -> Result<Self> {
        let document = Document::read(path, &[Notation::Json, Notation::Yaml, Notation::Toml])?;
        parse(&document, path.parent().unwrap_or(Path::new("")), Some(&Self::shipped()?))
    }

    /// Checks that each area is one that its component declares; `manifests` stand in the order of the areas.
    ///
    /// # Errors
    /// A usage error that names the areas the component does declare.
    pub fn check(&self, manifests: &[&Manifest]) -> Result<()> {
        for (area, manifest) in self.areas.iter().zip(manifests) {
            let declared = manifest.areas();
            if !declared.contains(&area.name.as_str()) {
                let known = if declared.is_empty() { "none".to_owned() } else { declared.join(", ") };
                return Err(Error::usage(format!(
                    "{}: the component {} does not declare the area \"{}\"; it declares {known}",
                    self.label, manifest.kind, area.name
                )));
            }
        }
        Ok(())
    }

    /// Readiness from area scores; none while an area has none. Only here is anything rounded.
    pub fn fold(&self, scores: &BTreeMap<String, AreaScore>) -> Option<Fold> {
        let areas = self
            .areas
            .iter()
            .map(|area| scores.get(&area.name).map(|score| AreaFold::from(*score)))
            .collect::<Option<Vec<_>>>()?;
        let total = |part: fn(&AreaFold) -> u8| {
            weighted(self.areas.iter().zip(&areas).map(|(area, fold)| (area.weight, part(fold))))
        };
        Some(Fold { score: total(|area| area.score), untimed: total(|area| area.untimed), areas })
    }
}

/// The rounded mean of rounded scores, each with its weight; the weights add up to 100.
pub fn weighted(scores: impl Iterator<Item = (u32, u8)>) -> u8 {
    let sum = scores.fold(0_u32, |sum, (weight, score)| sum.saturating_add(weight.saturating_mul(score.into())));
    percent(f64::from(sum) / 100.0)
}

/// Rounds half away from zero after adding [`ROUNDING_SLACK`].
pub fn rounded(value: f64) -> f64 {
    (value + ROUNDING_SLACK).round()
}

/// A rounded score, 0 to 100 whatever it was given.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rounded value from 0 to 100")]
fn percent(value: f64) -> u8 {
    if value.is_nan() { 0 } else { rounded(value).clamp(0.0, 100.0) as u8 }
}

/// Whether a standard's label is well-formed: a name of 1 to 64, a slash, 1 to 4 digits.
pub fn is_label(label: &str) -> bool {
    let Some((name, version)) = label.split_once('/') else { return false };
    let (lower, tail) = ('a'..='z', |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-'));
    (1..=64).contains(&name.len())
        && name.starts_with(|c: char| lower.contains(&c) || c.is_ascii_digit())
        && name.chars().all(tail)
        && (1..=4).contains(&version.len())
        && version.chars().all(|c| c.is_ascii_digit())
}

/// `shipped` is none while the shipped standard itself is read.
fn parse(document: &Document, base: &Path, shipped: Option<&Standard>) -> Result<Standard> {
    let root = document.root();
    root.only(&["$schema", "schema", "label", "areas"])?;
    let schema = root.required("schema")?;
    if schema.text()? != SCHEMA {
        return Err(schema.fault(format!("must be \"{SCHEMA}\"")));
    }
    let label = root.required("label")?;
    if !is_label(label.text()?) {
        return Err(label.fault("must be a lowercase name, a slash and a version of 1 to 4 digits, such as \"acme/1\""));
    }
    if shipped.is_some() && label.text()?.starts_with(RESERVED_PREFIX) {
        return Err(label.fault(format!("labels that begin with \"{RESERVED_PREFIX}\" are reserved")));
    }
    let list = root.required("areas")?;
    let mut areas: Vec<Area> = Vec::new();
    for entry in list.items()? {
        let area = parse_area(&entry, base, shipped)?;
        if areas.iter().any(|earlier| earlier.name == area.name) {
            return Err(entry.fault(format!("the area \"{}\" stands twice", area.name)));
        }
        areas.push(area);
    }
    if areas.is_empty() || areas.len() > MAX_AREAS {
        return Err(list.fault(format!("must hold 1 to {MAX_AREAS} areas")));
    }
    let sum: u32 = areas.iter().map(|area| area.weight).sum();
    if sum != 100 {
        return Err(list.fault(format!("the weights add up to {sum}, not to 100")));
    }
    Ok(Standard { label: label.text()?.to_owned(), areas })
}

fn parse_area(entry: &At<'_>, base: &Path, shipped: Option<&Standard>) -> Result<Area> {
    entry.only(&["name", "weight", "component"])?;
    let name = entry.required("name")?;
    if !is_word(name.text()?) {
        return Err(name.fault("must be 1 to 32 lowercase letters, digits and dashes, a letter first"));
    }
    let weight = entry.required("weight")?.integer(0, 100)?;
    let component = entry.required("component")?;
    let source = if let Kind::Map(_) = component.node().kind {
        component.only(&["path", "sha256"])?;
        let (path, sha256) = (component.required("path")?, component.required("sha256")?);
        if path.text()?.is_empty() {
            return Err(path.fault("must not be empty"));
        }
        let pin = sha256.text()?.to_ascii_lowercase();
        if crate::probes::Digest::from_hex(&pin).is_none() {
            return Err(sha256.fault("must be 64 hexadecimal digits"));
        }
        Source::File { path: base.join(path.text()?), sha256: pin }
    } else {
        let wanted = component.text()?;
        if let Some(shipped) = shipped {
            let names = || shipped.areas.iter().map(|area| area.name.as_str());
            if !names().any(|name| name == wanted) {
                return Err(component.fault(format!(
                    "is no area of the built-in battery{}; give {{path, sha256}} for a component of your own",
                    nearest::choices(wanted, names())
                )));
            }
        }
        Source::Shipped(wanted.to_owned())
    };
    Ok(Area { name: name.text()?.to_owned(), weight, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(score: f64, untimed: Option<f64>) -> AreaScore {
        AreaScore { score, untimed }
    }

    fn read(text: &str, notation: Notation) -> Result<Standard> {
        let shipped = Standard::shipped()?;
        parse(&Document::parse("s", text, notation)?, Path::new("/base"), Some(&shipped))
    }

    fn fault(text: &str) -> String {
        read(text, Notation::Yaml).expect_err("refused").to_string()
    }

    #[test]
    fn the_shipped_standard_reads() {
        let standard = Standard::shipped().unwrap();
        assert_eq!(standard.label, "mcpeval-standard/3");
        let weights: Vec<_> = standard.areas.iter().map(|area| (area.name.as_str(), area.weight)).collect();
        assert_eq!(
            weights,
            [
                ("protocol", 15),
                ("catalog", 20),
                ("context", 15),
                ("error-honesty", 15),
                ("reliability", 20),
                ("coverage", 15)
            ]
        );
        assert!(standard.areas.iter().all(|area| area.source == Source::Shipped(area.name.clone())));
    }

    #[test]
    fn the_worked_example_folds_to_65() {
        let curve = |zero: f64, full: f64, v: f64| 100.0 * (zero.ln() - v.ln()) / (zero.ln() - full.ln());
        let context = 0.75 * curve(40_000.0, 2_000.0, 3_000.0) + 0.25 * curve(5_000.0, 500.0, 900.0);
        let scores = BTreeMap::from([
            ("protocol".to_owned(), score(80.0, None)),
            ("catalog".to_owned(), score(240.0 / 5.0 + 0.0, None)),
            ("context".to_owned(), score(context, None)),
            ("error-honesty".to_owned(), score(50.0, None)),
            ("reliability".to_owned(), score((280.0 / 3.0 + 100.0 / 3.0 + 200.0) / 5.0, Some(1000.0 / 3.0 / 5.0))),
            ("coverage".to_owned(), score(200.0 / 3.0, None)),
        ]);
        let fold = Standard::shipped().unwrap().fold(&scores).unwrap();
        let areas: Vec<_> = fold.areas.iter().map(|area| (area.score, area.untimed)).collect();
        assert_eq!(areas, [(80, 80), (48, 48), (83, 83), (50, 50), (65, 67), (67, 67)]);
        assert_eq!((fold.score, fold.untimed), (65, 65));
    }

    #[test]
    fn halves_round_up_even_when_reached_from_below() {
        assert_eq!(percent(64.5), 65);
        assert_eq!(percent(64.5 - 1e-10), 65);
        assert_eq!(percent(64.499_999), 64);
        assert_eq!(percent(0.1 * 3.0 * 15.0), 5, "4.5 short by one unit in the last place or not");
        assert_eq!(percent(1e9), 100);
        assert_eq!(percent(-3.0), 0);
        assert_eq!(percent(f64::NAN), 0);
    }

    #[test]
    fn a_missing_area_leaves_no_score() {
        let scores = BTreeMap::from([("protocol".to_owned(), score(80.0, None))]);
        assert_eq!(Standard::shipped().unwrap().fold(&scores), None);
    }

    #[test]
    fn reads_a_foreign_standard_in_every_notation() {
        let sha256 = "Ab".repeat(32);
        let expected = Standard {
            label: "acme/2".to_owned(),
            areas: vec![
                Area { name: "catalog".to_owned(), weight: 60, source: Source::Shipped("catalog".to_owned()) },
                Area {
                    name: "licence".to_owned(),
                    weight: 40,
                    source: Source::File { path: PathBuf::from("/base/l.wasm"), sha256: "ab".repeat(32) },
                },
            ],
        };
        let yaml = format!(
            "schema: mcpeval.standard/v1\nlabel: acme/2\nareas:\n  - {{name: catalog, weight: 60, component: catalog}}\n  - {{name: licence, weight: 40, component: {{path: l.wasm, sha256: {sha256}}}}}\n"
        );
        let toml = format!(
            "schema = \"mcpeval.standard/v1\"\nlabel = \"acme/2\"\n[[areas]]\nname = \"catalog\"\nweight = 60\ncomponent = \"catalog\"\n[[areas]]\nname = \"licence\"\nweight = 40\ncomponent = {{ path = \"l.wasm\", sha256 = \"{sha256}\" }}\n"
        );
        let json = format!(
            r#"{{"schema":"mcpeval.standard/v1","label":"acme/2","areas":[{{"name":"catalog","weight":60,"component":"catalog"}},{{"name":"licence","weight":40,"component":{{"path":"l.wasm","sha256":"{sha256}"}}}}]}}"#
        );
        for (text, notation) in [(yaml, Notation::Yaml), (toml, Notation::Toml), (json, Notation::Json)] {
            assert_eq!(read(&text, notation).unwrap(), expected);
        }
    }

    #[test]
    fn refuses_with_place_and_nearest_name() {
        let head = "schema: mcpeval.standard/v1\n";
        let one = "areas: [{name: catalog, weight: 100, component: catalog}]\n";
        for (text, words) in [
            (format!("{head}lable: a/1\n{one}"), "s:2:8: /lable: unknown field; the nearest is \"label\""),
            (format!("{head}{one}"), "s:1:1: the document: the field \"label\" is missing"),
            (format!("schema: x\nlabel: a/1\n{one}"), "/schema: must be \"mcpeval.standard/v1\""),
            (format!("{head}label: A/1\n{one}"), "s:2:8: /label: must be a lowercase name"),
            (format!("{head}label: mcpeval-standard/4\n{one}"), "/label: labels that begin with \"mcpeval-standard/\""),
            (format!("{head}label: a/1\nareas: []\n"), "/areas: must hold 1 to 32 areas"),
            (
                format!("{head}label: a/1\nareas: [{{name: catalog, weight: 99, component: catalog}}]\n"),
                "/areas: the weights add up to 99, not to 100",
            ),
            (
                format!("{head}label: a/1\nareas: [{{name: catalog, weight: 99.5, component: catalog}}]\n"),
                "/areas/0/weight: must be an integer from 0 to 100",
            ),
            (
                format!("{head}label: a/1\nareas: [{{name: catalog, weight: 100, component: catalogue}}]\n"),
                "/areas/0/component: is no area of the built-in battery; the nearest is \"catalog\"",
            ),
            (
                format!("{head}label: a/1\nareas: [{{name: c, weight: 100, component: {{path: a, sha256: zz}}}}]\n"),
                "/areas/0/component/sha256: must be 64 hexadecimal digits",
            ),
            (
                format!(
                    "{head}label: a/1\nareas: [{{name: catalog, weight: 50, component: catalog}}, {{name: catalog, weight: 50, component: catalog}}]\n"
                ),
                "/areas/1: the area \"catalog\" stands twice",
            ),
        ] {
            let fault = fault(&text);
            assert!(fault.contains(words), "{fault}\nlacks {words}");
        }
    }

    #[test]
    fn an_area_must_be_one_its_component_declares() {
        let manifest = crate::report::tests_support::manifest("demo", &[("demo.a", &["demo-a"])]);
        let area = |name: &str| Standard {
            label: "a/1".to_owned(),
            areas: vec![Area { name: name.to_owned(), weight: 100, source: Source::Shipped("demo".to_owned()) }],
        };
        assert!(area("demo").check(&[&manifest]).is_ok());
        let fault = area("other").check(&[&manifest]).unwrap_err().to_string();
        assert!(fault.ends_with("does not declare the area \"other\"; it declares demo"), "{fault}");
    }
}
