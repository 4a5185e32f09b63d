//! From crates to components.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::WorldItem;

use crate::{COMPONENTS, Component, Lock, Result, inputs, read, sha256};

const TARGET: &str = "wasm32-unknown-unknown";
const FLAGS_VARIABLE: &str = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS";

/// How the guests are compiled, beyond the profile of the workspace.
pub(crate) const FLAGS: [&str; 3] = ["--locked", "--profile=guest", "--target=wasm32-unknown-unknown"];

/// The standard library for the target.
#[derive(Debug)]
pub struct Std {
    flags: Vec<String>,
    /// Digest of its libraries.
    pub digest: String,
}

impl Std {
    /// Finds it: beside the compiler, or where the environment's flags for the target point.
    pub fn find() -> Result<Self> {
        let flags: Vec<String> =
            std::env::var(FLAGS_VARIABLE).unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        let sysroot = match flags.iter().find_map(|flag| flag.strip_prefix("--sysroot=")) {
            Some(path) => PathBuf::from(path),
            None => PathBuf::from(output(Command::new("rustc").args(["--print", "sysroot"]))?),
        };
        let folder = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        let entries = std::fs::read_dir(&folder)
            .map_err(|error| format!("no standard library for {TARGET}: {}: {error}", folder.display()))?;
        let mut libraries = BTreeSet::new();
        for entry in entries {
            let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
            if path.extension().is_some_and(|extension| extension == "rlib") {
                libraries.insert(sha256(&read(&path)?));
            }
        }
        let digest = sha256(libraries.into_iter().collect::<String>().as_bytes());
        Ok(Self { flags, digest })
    }
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if !output.status.success() {
        return Err(format!("{}: {}", command.get_program().display(), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Builds every component into the folder and says what they are.
pub fn build(root: &Path, std: &Std, folder: &Path) -> Result<Lock> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let home = match std::env::var("CARGO_HOME") {
        Ok(home) => home,
        Err(_) => format!("{}/.cargo", std::env::var("HOME").map_err(|error| format!("HOME: {error}"))?),
    };
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(target) => PathBuf::from(target),
        None => root.join("target"),
    };
    // Panic messages hold paths of sources; those of one machine have no place in the bytes.
    let mut flags = std.flags.clone();
    flags.push(format!("--remap-path-prefix={home}=/cargo"));
    flags.push(format!("--remap-path-prefix={}=/mcpeval", root.display()));

    let mut command = Command::new(cargo);
    command.current_dir(root).arg("build").args(FLAGS);
    for component in COMPONENTS {
        command.args(["--package", &format!("probe-{component}")]);
    }
    command.env_remove("RUSTFLAGS").env_remove(FLAGS_VARIABLE).env("CARGO_TARGET_DIR", &target);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("cargo build: {status}"));
    }

    let rustc = output(Command::new("rustc").arg("--version"))?;
    let mut lock = Lock { rustc, std: std.digest.clone(), component: Vec::new() };
    for name in COMPONENTS {
        let module = read(&target.join(TARGET).join("guest").join(format!("probe_{}.wasm", name.replace('-', "_"))))?;
        let component = componentize(&module).map_err(|error| format!("{name}: {error}"))?;
        let path = folder.join(format!("{name}.wasm"));
        std::fs::write(&path, &component).map_err(|error| format!("{}: {error}", path.display()))?;
        lock.component.push(Component {
            name: name.to_owned(),
            sha256: sha256(&component),
            inputs: inputs(root, name)?,
        });
    }
    Ok(lock)
}

/// A component from a core module that carries its world.
fn componentize(module: &[u8]) -> Result<Vec<u8>> {
    let encoded = ComponentEncoder::default().validate(true).module(module).and_then(ComponentEncoder::encode);
    encoded.map_err(|error| format!("{error:#}"))
}

/// The interfaces a component imports: all that it can ever do.
pub fn imports(component: &[u8]) -> Result<BTreeSet<String>> {
    let decoded = wit_component::decode(component).map_err(|error| format!("{error:#}"))?;
    let DecodedWasm::Component(resolve, world) = decoded else { return Err("not a component".to_owned()) };
    let name = |item: &WorldItem, key: &wit_parser::WorldKey| match item {
        WorldItem::Interface { id, .. } => resolve.id_of(*id).unwrap_or_else(|| resolve.name_world_key(key)),
        _ => resolve.name_world_key(key),
    };
    Ok(resolve.worlds[world].imports.iter().map(|(key, item)| name(item, key)).collect())
}
