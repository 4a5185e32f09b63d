//! Builds components as their authors do, each with the toolchain of its language.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::real::Real;
use crate::run::Place;

/// The target of Rust whose output is a component.
const TARGET: &str = "wasm32-wasip2";

/// How the build lines of starters name the contract.
const CONTRACT: &str = "../../../wit/v0.1";

/// Sets up the target where rustup does not have it, then runs the rest.
const WITH_TARGET: &str = r#"flags=$("$1" "$2") && eval "$flags" && shift 2 && exec "$@""#;

/// A path of the source tree.
pub fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Reads a file of the source tree.
///
/// # Panics
/// When it is not there.
pub fn read(path: &str) -> String {
    fs::read_to_string(source(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Builds a copy of a Rust crate with plain Cargo and gives the component's path; none where the target is missing and
/// need not be there. `scratch` is a folder that later builds use again.
///
/// # Panics
/// When it does not build.
pub fn rust(name: &str, folder: &str, scratch: &Path) -> Option<PathBuf> {
    if !has_target() {
        Real::find_toolchains(&format!("the crate {name}"))?;
    }
    let copy = scratch.join(name);
    fs::create_dir_all(copy.join("src")).expect("a folder of the target folder");
    let manifest = read(&format!("{folder}/Cargo.toml"));
    let (before, path) = manifest.split_once("mcpeval-probe = { path = \"").expect("it depends on the SDK");
    let (_, after) = path.split_once('"').expect("a path in quotes");
    let sdk = source("guest-sdk").canonicalize().expect("the SDK");
    let manifest = format!("{before}mcpeval-probe = {{ path = \"{}\"{after}", sdk.display());
    fs::write(copy.join("Cargo.toml"), manifest).expect("a file of the target folder");
    // The versions that everything else is built with.
    fs::write(copy.join("Cargo.lock"), read("Cargo.lock")).expect("a file of the target folder");
    fs::write(copy.join("src/lib.rs"), read(&format!("{folder}/src/lib.rs"))).expect("a file of the target folder");
    let target = scratch.join("target");
    let mut command = Command::new("bash");
    command.args(["-c", WITH_TARGET, "bash"]).arg(source("probes/wasm-std")).arg(TARGET);
    command.args(["cargo", "build", "--release", "--target", TARGET]).current_dir(&copy);
    // These would outrank the flags of the target.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env("CARGO_TARGET_DIR", &target);
    run(command);
    Some(target.join(TARGET).join("release").join(format!("{name}.wasm")))
}

fn has_target() -> bool {
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim_end()).is_dir())
}

/// Builds the JavaScript starter in a place with the line of its `package.json`.
///
/// # Panics
/// When it does not build.
pub fn javascript(real: &Real, place: &Place) -> PathBuf {
    let package: Value = serde_json::from_str(&read("guest-sdk/templates/javascript/package.json")).expect("JSON");
    let line = package["scripts"]["build"].as_str().expect("a script that builds");
    starter(place, "javascript/probe.js", &real.tool("npm/node_modules/.bin"), line)
}

/// Builds the Python starter in a place with the line of the starters' README.
///
/// # Panics
/// When it does not build.
pub fn python(real: &Real, place: &Place) -> PathBuf {
    let readme = read("guest-sdk/templates/README.md");
    let line = readme.split('`').find(|code| code.starts_with("componentize-py -d")).expect("a line that builds");
    starter(place, "python/app.py", &real.tool("python/bin"), line)
}

/// Runs the build line of a starter of one file.
fn starter(place: &Place, file: &str, tools: &Path, line: &str) -> PathBuf {
    let name = Path::new(file).file_name().and_then(|name| name.to_str()).expect("a file with a name");
    place.file(name, read(&format!("guest-sdk/templates/{file}")));
    let mut words = line.split_whitespace();
    let mut command = place.command(tools.join(words.next().expect("the name of a tool")));
    assert!(line.contains(CONTRACT), "the contract is not named in: {line}");
    for word in words {
        if word == CONTRACT {
            command.arg(source("wit/v0.1"))
        } else {
            command.arg(word)
        };
    }
    run(command);
    place.path().join("steady.wasm")
}

fn run(mut command: Command) {
    let output = command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{stderr}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
}
