//! Compiles the battery ahead of time, so that nobody waits for a compiler when the program runs, and embeds both forms.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/guest/config.rs"]
mod config;

fn main() {
    let battery = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../probes/dist");
    println!("cargo::rerun-if-changed={}", battery.display());
    println!("cargo::rerun-if-changed=src/guest/config.rs");
    println!("cargo::rerun-if-changed=build.rs");

    let mut settings = config::settings();
    // The baseline of the target, not this machine's processor: the program may run on an older one.
    settings.target(&env::var("TARGET").expect("cargo sets it")).expect("the target has a code generator");
    let engine = wasmtime::Engine::new(&settings).expect("the engine's settings fit together");

    let mut components: Vec<PathBuf> = fs::read_dir(&battery)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    components.retain(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    components.sort();
    assert!(!components.is_empty(), "probes/dist holds no components; run probes/rebuild");

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut table = String::from("&[\n");
    for path in components {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("names of components are plain").to_owned();
        let bytes = fs::read(&path).expect("a listed file can be read");
        let compiled = engine
            .precompile_component(&bytes)
            .unwrap_or_else(|error| panic!("{} does not compile: {error:#}", path.display()));
        let target = out.join(format!("{name}.bin"));
        fs::write(&target, compiled).expect("the build folder can be written to");
        let path = path.canonicalize().expect("a listed file has a path");
        let (path, target) = (literal(&path), literal(&target));
        writeln!(table, "    ({name:?}, include_bytes!({path}), include_bytes!({target})),").expect("a string");
    }
    table.push_str("]\n");
    fs::write(out.join("battery.rs"), table).expect("the build folder can be written to");
}

/// A path as a Rust string.
fn literal(path: &Path) -> String {
    format!("{:?}", path.to_str().expect("the build's paths are UTF-8"))
}
