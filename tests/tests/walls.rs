//! The walls of the architecture: which module may use which library; and the contract that is frozen.

use std::fs;
use std::path::{Path, PathBuf};

use mcpeval_tests::programs;
use sha2::{Digest as _, Sha256};

/// Library, as it stands in code, and the modules that may use it.
const WALLS: &[(&str, &[&str])] = &[
    ("wasmtime", &["guest"]),
    ("wasmtime_wasi", &["guest"]),
    ("rmcp", &["serve", "demo"]),
    ("axum", &["demo"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("rusqlite", &["store"]),
    ("hyper", &["wire", "serve", "capture"]),
    ("hyper_util", &["wire", "serve", "capture"]),
    ("jsonschema", &["services", "demo"]),
    ("fancy_regex", &["services"]),
    ("indicatif", &["cli"]),
];

/// Module of ours, and the modules that it must not know.
const ARROWS: &[(&str, &[&str])] = &[
    ("wire", &["session", "guest", "probes", "runner", "standard", "report", "cli", "ledger", "transcript", "outcome"]),
    ("session", &["guest", "probes", "runner", "standard", "report", "cli"]),
    ("ledger", &["wire", "session", "guest", "probes", "runner", "report", "cli"]),
    ("transcript", &["wire", "session", "guest", "probes", "runner", "report", "cli"]),
    ("services", &["wire", "session", "guest", "probes", "runner", "report", "cli"]),
    ("standard", &["wire", "session", "guest", "runner", "report", "cli"]),
    ("guest", &["runner", "report", "cli", "standard"]),
    ("runner", &["report", "cli"]),
    ("store", &["wire", "session", "guest", "runner", "capture", "findings", "serve", "cli"]),
    ("capture", &["session", "guest", "probes", "runner", "findings", "cli"]),
    ("report", &["cli", "wire"]),
    ("demo", &["session", "guest", "probes", "runner", "report", "cli", "wire"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Module and text without comments of every source file of the host.
fn modules() -> Vec<(String, PathBuf, String)> {
    let root = root().join("host/src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 20, "only {} files", files.len());
    files
        .into_iter()
        // Tests of a module may use anything, in files of their own too.
        .filter(|path| {
            let inner = path.strip_prefix(&root).expect("it was found there");
            !inner.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
        })
        .map(|path| {
            let first = path.strip_prefix(&root).expect("it was found there").components().next();
            let module = first.map(|part| part.as_os_str().to_string_lossy().into_owned()).unwrap_or_default();
            let text = fs::read_to_string(&path).expect("a source file");
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            (module.trim_end_matches(".rs").to_owned(), path, code.join("\n"))
        })
        .collect()
}

/// Whether the code names that path as a whole word followed by `::` or stands in a `use` of it.
fn names(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = &code[at + word.len()..];
        let starts = before.is_none_or(|before| !before.is_alphanumeric() && before != '_' && before != ':');
        starts && (after.starts_with("::") || code[..at].ends_with("use ") && after.starts_with([';', ' ']))
    })
}

#[test]
fn each_library_is_used_where_it_belongs() {
    let modules = modules();
    let mut breaches = Vec::new();
    for (library, homes) in WALLS {
        for (module, path, code) in &modules {
            if !homes.contains(&module.as_str()) && names(code, library) {
                breaches.push(format!("{} uses {library}", path.display()));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    let used = |library: &str| modules.iter().any(|(_, _, code)| names(code, library));
    assert!(used("wasmtime") && used("clap"), "the search finds nothing");
}

#[test]
fn arrows_point_one_way() {
    let mut breaches = Vec::new();
    for (module, path, code) in modules() {
        let forbidden = ARROWS.iter().filter(|(from, _)| *from == module).flat_map(|(_, others)| others.iter());
        for other in forbidden.filter(|other| code.contains(&format!("crate::{other}::"))) {
            breaches.push(format!("{} knows {other}", path.display()));
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn the_contract_is_frozen() {
    let text = fs::read(root().join("wit/v0.1/probe.wit")).expect("the contract");
    let digest: Vec<String> = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest.concat(), include_str!("../wit-v0.1.sha256").trim(), "a shipped contract does not change");
}

#[test]
fn no_component_of_ours_imports_more_than_the_contract() {
    let folder = root().join("probes/dist");
    let mut seen = 0;
    for path in fs::read_dir(folder).expect("the shipped components").flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "wasm") {
            seen += 1;
            let bytes = fs::read(&path).expect("a component");
            let decoded = wit_component::decode(&bytes).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
            let wit_component::DecodedWasm::Component(resolve, world) = decoded else {
                panic!("{} is no component", path.display());
            };
            for key in resolve.worlds[world].imports.keys() {
                let name = resolve.name_world_key(key);
                assert!(name.starts_with("mcpeval:probe/"), "{} imports {name}", path.display());
                assert!(!name.contains("/pipe@") && !name.contains("/http@"), "{} imports {name}", path.display());
            }
        }
    }
    assert!(seen >= 4, "only {seen} components are shipped");
}

#[test]
fn the_version_is_printed() {
    let place = mcpeval_tests::run::Place::new(programs!());
    let outcome = place.run(["--version"]);
    assert_eq!((outcome.code, outcome.stdout), (Some(0), format!("mcpeval {}\n", env!("CARGO_PKG_VERSION"))));
}
