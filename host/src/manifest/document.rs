//! The file of a manifest: what it holds before its kinds are loaded, and the check once they are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::fields::Fields;
use super::{Access, COMMON_FIELDS, Case, DEFAULT_TIMEOUT_MS, MAX_DESCRIPTION, Manifest, TIMEOUT_MS, VERSION};
use crate::error::{Error, Result};
use crate::notation::{At, DOCUMENT_LIMIT, Document, Kind, Notation, read_text};
use crate::probes::{self, Digest};
use crate::report::canonical;
use crate::{nearest, shown};

/// The files that are looked for where none is named.
pub const DEFAULT_FILES: [&str; 3] = ["mcp-eval.manifest.json", "mcp-eval.manifest.yaml", "mcp-eval.manifest.yml"];

/// A component that a manifest names for one of its kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The file; in the manifest relative to its folder.
    pub path: PathBuf,
    /// SHA-256 that it must have.
    pub sha256: Digest,
}

/// A manifest that was read; its cases are not checked yet, since that takes their kinds.
#[derive(Debug)]
pub struct Draft {
    document: Document,
    sha256: Digest,
    timeout: Duration,
    sandboxes: BTreeSet<String>,
    pins: BTreeMap<String, Pin>,
    kinds: BTreeSet<String>,
}

impl Draft {
    /// Reads a JSON or YAML file of at most [`DOCUMENT_LIMIT`] bytes.
    ///
    /// # Errors
    /// A usage error with line, column and JSON Pointer, never with a value.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read_text(path, DOCUMENT_LIMIT)?;
        let notation = match Notation::of(path, &text) {
            Notation::Toml => {
                return Err(Error::usage(format!("{}: a manifest is written in JSON or YAML", path.display())));
            }
            notation => notation,
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&path.display().to_string(), text, notation, folder)
    }

    /// Reads a text. Paths of components are taken from `folder`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(name: &str, text: String, notation: Notation, folder: &Path) -> Result<Self> {
        let sha256 = canonical::digest(text.as_bytes());
        let document = Document::parse(name, text, notation)?;
        let root = document.root();
        root.only(&["$schema", "version", "timeout_ms", "sandboxes", "components", "probes"])?;
        if let Some(schema) = root.optional("$schema")? {
            schema.text()?;
        }
        root.required("version")?.integer(VERSION, VERSION)?;
        let timeout = match root.optional("timeout_ms")? {
            Some(at) => at.integer(*TIMEOUT_MS.start(), *TIMEOUT_MS.end())?,
            None => DEFAULT_TIMEOUT_MS,
        };
        let sandboxes = sandboxes(&root)?;
        let pins = pins(&root, folder)?;
        let cases = root.required("probes")?;
        if cases.items()?.len() == 0 {
            return Err(cases.fault("must hold at least one case"));
        }
        let mut kinds = BTreeSet::new();
        for case in cases.items()? {
            kinds.insert(case.required("probe")?.text()?.to_owned());
        }
        let timeout = Duration::from_millis(timeout.into());
        Ok(Self { document, sha256, timeout, sandboxes, pins, kinds })
    }

    /// The kinds that its cases name, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(String::as_str)
    }

    /// The components that it names, by kind.
    pub fn pins(&self) -> &BTreeMap<String, Pin> {
        &self.pins
    }

    /// The line of each case's id, 1-based.
    ///
    /// # Errors
    /// A usage error if a case has none.
    pub fn lines(&self) -> Result<BTreeMap<String, u64>> {
        let mut lines = BTreeMap::new();
        for case in self.document.root().required("probes")?.items()? {
            let id = case.required("id")?;
            lines.insert(id.text()?.to_owned(), id.place().line);
        }
        Ok(lines)
    }

    /// A usage error about the first case of a kind that is not loaded; `known` are those that could be.
    pub fn unknown<'a>(&self, kind: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Error {
        let sentence = {
            let list = known.clone().into_iter().map(shown::word).collect::<Vec<_>>().join(", ");
            format!("there is no kind of this name{}; known kinds: {list}", nearest::hint(kind, known))
        };
        let place = || -> Result<Option<At<'_>>> {
            for case in self.document.root().required("probes")?.items()? {
                let at = case.required("probe")?;
                if at.text()? == kind {
                    return Ok(Some(at));
                }
            }
            Ok(None)
        };
        match place() {
            Ok(Some(at)) => at.fault(sentence),
            _ => Error::usage(sentence),
        }
    }

    /// Checks every case against its kind.
    ///
    /// # Errors
    /// A usage error with line, column and JSON Pointer, never with a value.
    pub fn check(&self, kinds: &BTreeMap<String, &probes::Manifest>) -> Result<Manifest> {
        let fields = kinds
            .iter()
            .map(|(kind, declared)| Ok((kind.as_str(), Fields::of(declared)?)))
            .collect::<Result<HashMap<&str, Fields>, String>>()
            .map_err(Error::usage)?;
        let mut cases: Vec<Case> = Vec::new();
        let mut ids: HashMap<String, u64> = HashMap::new();
        for at in self.document.root().required("probes")?.items()? {
            let kind = at.required("probe")?.text()?;
            let (Some(declared), Some(fields)) = (kinds.get(kind), fields.get(kind)) else {
                return Err(self.unknown(kind, kinds.keys().map(String::as_str)));
            };
            let case = self.case(&at, declared, fields)?;
            if let Some(line) = ids.insert(case.id.clone(), case.line) {
                return Err(at.required("id")?.fault(format!("another case has this id, on line {line}")));
            }
            cases.push(case);
        }
        Ok(Manifest { sha256: self.sha256, timeout: self.timeout, cases })
    }

    fn case(&self, at: &At<'_>, declared: &probes::Manifest, fields: &Fields) -> Result<Case> {
        let id = at.required("id")?;
        if !super::is_identifier(id.text()?) {
            return Err(id.fault("must be an identifier: a letter, then up to 63 letters, digits or _ . : -"));
        }
        let (access, sandbox) = self.access(at, declared)?;
        let (config, tools) = fields.check(at, &COMMON_FIELDS)?;
        let tool = fields.reported_tool(&config);
        let place = id.place();
        Ok(Case {
            kind: at.required("probe")?.text()?.to_owned(),
            id: id.text()?.to_owned(),
            access,
            sandbox,
            config: Value::Object(config).to_string(),
            tool,
            tools,
            place: format!("{}:{}:{}", self.document.name(), place.line, place.column),
            line: place.line,
        })
    }

    fn access(&self, at: &At<'_>, declared: &probes::Manifest) -> Result<(Access, Option<String>)> {
        let access = at.required("access")?;
        let sandbox = at.optional("sandbox")?;
        match access.text()? {
            "read_only" => match sandbox {
                None => Ok((Access::ReadOnly, None)),
                Some(sandbox) => Err(sandbox.fault("a read_only case names no sandbox; leave it out")),
            },
            "mutating" => {
                if declared.access == probes::Access::ReadOnly {
                    return Err(access.fault("cases of this kind are read_only"));
                }
                let Some(sandbox) = sandbox else {
                    return Err(at.fault("a mutating case names the sandbox it runs in; add \"sandbox\""));
                };
                let name = sandbox.text()?;
                if !self.sandboxes.contains(name) {
                    let hint = nearest::choices(name, self.sandboxes.iter().map(String::as_str));
                    return Err(sandbox.fault(format!("the manifest declares no sandbox of this name{hint}")));
                }
                Ok((Access::Mutating, Some(name.to_owned())))
            }
            other => {
                let hint = nearest::hint(other, ["read_only", "mutating"]);
                Err(access.fault(format!("must be \"read_only\" or \"mutating\"{hint}")))
            }
        }
    }
}

fn sandboxes(root: &At<'_>) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let Some(sandboxes) = root.optional("sandboxes")? else { return Ok(names) };
    for (name, sandbox) in sandboxes.entries()? {
        if !super::is_identifier(name) {
            return Err(sandbox.fault("its key must be an identifier: a letter, then letters, digits or _ . : -"));
        }
        sandbox.only(&["description"])?;
        let description = sandbox.required("description")?;
        let text = description.text()?;
        if text.chars().count() > MAX_DESCRIPTION || text.chars().any(char::is_control) {
            return Err(
                description.fault(format!("must have at most {MAX_DESCRIPTION} characters and no control characters"))
            );
        }
        names.insert(name.to_owned());
    }
    Ok(names)
}

fn pins(root: &At<'_>, folder: &Path) -> Result<BTreeMap<String, Pin>> {
    let mut pins = BTreeMap::new();
    let Some(components) = root.optional("components")? else { return Ok(pins) };
    for (kind, component) in components.entries()? {
        if !probes::is_foreign_kind(kind) {
            return Err(component.fault("its key must be a kind of the form vendor.name, in lower case"));
        }
        component.only(&["path", "sha256"])?;
        let path = component.required("path")?;
        if path.text()?.is_empty() {
            return Err(path.fault("must name a file"));
        }
        let at = component.required("sha256")?;
        let sha256 = Digest::from_hex(at.text()?)
            .ok_or_else(|| at.fault("must be a SHA-256 of 64 hexadecimal digits; mcpeval probes show prints it"))?;
        let pin = Pin { path: folder.join(path.text()?), sha256 };
        pins.insert(kind.to_owned(), pin);
    }
    Ok(pins)
}

/// Whether a node is null, which in an optional field means absent.
pub(super) fn is_null(at: &At<'_>) -> bool {
    at.node().kind == Kind::Scalar(Value::Null)
}
