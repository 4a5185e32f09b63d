//! The digest of everything that decides a component's bytes, except the standard library.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use toml::{Table, Value};

use crate::build::FLAGS;
use crate::{Result, read, read_text, sha256};

/// Digest of a component's inputs: its crate, the SDK, the contract, the settings of the workspace that reach it, and
/// the locked dependencies it uses. Dependencies of the host alone do not disturb it.
pub fn inputs(root: &Path, component: &str) -> Result<String> {
    let mut listed = String::new();
    for folder in [&format!("probes/{component}"), "guest-sdk", "wit/v0.1"] {
        for file in files(root, folder)? {
            let _ = writeln!(listed, "file {file} {}", sha256(&read(&root.join(&file))?));
        }
    }
    let manifest = parse(&root.join("Cargo.toml"))?;
    let lock = Locked::read(&root.join("Cargo.lock"))?;
    let used = lock.closure(&[&format!("probe-{component}"), "wit-component"])?;
    for package in &used {
        let _ = writeln!(listed, "package {package}");
    }
    let names: BTreeSet<&str> = used.iter().filter_map(|package| package.split(' ').next()).collect();
    for (path, keep) in [
        ("workspace.package", None),
        ("workspace.dependencies", Some(&names)),
        ("profile.release", None),
        ("profile.guest", None),
    ] {
        let _ = writeln!(listed, "setting {path} {}", setting(&manifest, path, keep));
    }
    for flag in FLAGS {
        let _ = writeln!(listed, "flag {flag}");
    }
    Ok(sha256(listed.as_bytes()))
}

/// Everything in the folder that Cargo compiles or reads, by name.
fn files(root: &Path, folder: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let path = root.join(&folder);
        let entries = std::fs::read_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("{}: {error}", path.display()))?;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                // Templates and integration tests are in no component.
                if !name.ends_with("/templates") && !name.ends_with("/tests") && !name.ends_with("/testing") {
                    open.push(name);
                }
            } else if [".rs", ".wit", ".toml"].iter().any(|end| name.ends_with(end)) && !name.ends_with("/tests.rs") {
                found.push(name);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn parse(path: &Path) -> Result<Table> {
    read_text(path)?.parse().map_err(|error| format!("{}: {error}", path.display()))
}

/// One table of the workspace's manifest, keys sorted, only the named ones.
fn setting(manifest: &Table, path: &str, keep: Option<&BTreeSet<&str>>) -> String {
    let mut names = path.split('.');
    let first = names.next().and_then(|name| manifest.get(name));
    let table = names.fold(first, |value, name| value.and_then(|value| value.get(name))).and_then(Value::as_table);
    let kept = table.into_iter().flatten().filter(|(name, _)| keep.is_none_or(|keep| keep.contains(name.as_str())));
    kept.map(|(name, value)| (name, value.to_string())).collect::<BTreeMap<_, _>>().into_iter().fold(
        String::new(),
        |mut text, (name, value)| {
            let _ = write!(text, "{name}={value};");
            text
        },
    )
}

/// The packages of a lock file.
struct Locked(Vec<Package>);

struct Package {
    name: String,
    version: String,
    checksum: String,
    dependencies: Vec<String>,
}

impl Locked {
    fn read(path: &Path) -> Result<Self> {
        let lock = parse(path)?;
        let packages = lock.get("package").and_then(Value::as_array).into_iter().flatten();
        let text = |package: &Value, key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let read = |package: &Value| Package {
            name: text(package, "name"),
            version: text(package, "version"),
            checksum: text(package, "checksum"),
            dependencies: package
                .get("dependencies")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        };
        Ok(Self(packages.map(read).collect()))
    }

    /// What a dependency line means: `name`, or `name version` where several versions are locked.
    fn find(&self, line: &str) -> impl Iterator<Item = &Package> {
        let mut words = line.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next());
        self.0
            .iter()
            .filter(move |package| package.name == name && version.is_none_or(|version| package.version == version))
    }

    /// Name, version and checksum of everything these packages use, themselves included.
    fn closure(&self, roots: &[&str]) -> Result<BTreeSet<String>> {
        let mut used = BTreeSet::new();
        let mut open: Vec<&Package> = Vec::new();
        for root in roots {
            let before = open.len();
            open.extend(self.find(root));
            if open.len() == before {
                return Err(format!("Cargo.lock has no {root}"));
            }
        }
        while let Some(package) = open.pop() {
            if used.insert(format!("{} {} {}", package.name, package.version, package.checksum)) {
                open.extend(package.dependencies.iter().flat_map(|line| self.find(line)));
            }
        }
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closure_follows_versions() {
        let text = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\ndependencies = [\"b 2.0.0\"]\n\
                    [[package]]\nname = \"b\"\nversion = \"1.0.0\"\nchecksum = \"11\"\n\
                    [[package]]\nname = \"b\"\nversion = \"2.0.0\"\nchecksum = \"22\"\ndependencies = [\"a\"]\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Cargo.lock");
        std::fs::write(&path, text).unwrap();
        let used = Locked::read(&path).unwrap().closure(&["a"]).unwrap();
        assert_eq!(used.into_iter().collect::<Vec<_>>(), ["a 1.0.0 ", "b 2.0.0 22"]);
        assert!(Locked::read(&path).unwrap().closure(&["c"]).is_err());
    }

    #[test]
    fn settings_of_others_do_not_count() {
        let digest = |text: &str| {
            let manifest: Table = text.parse().unwrap();
            setting(&manifest, "workspace.dependencies", Some(&BTreeSet::from(["serde"])))
        };
        let before = digest("[workspace.dependencies]\nserde = \"1\"\n");
        assert_eq!(before, digest("[workspace.dependencies]\naxum = \"2\"\nserde = \"1\"\n"));
        assert_ne!(before, digest("[workspace.dependencies]\nserde = \"2\"\n"));
    }
}
