//! The committed components are what the sources say.

use std::collections::BTreeSet;

use pack::{COMPONENTS, Lock, dist, imports, inputs, root, sha256};

fn component(name: &str) -> Vec<u8> {
    std::fs::read(dist(&root()).join(format!("{name}.wasm"))).unwrap()
}

#[test]
fn every_component_is_locked_and_fresh() {
    let root = root();
    let lock = Lock::read(&dist(&root)).unwrap();
    let names: Vec<_> = lock.component.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names, COMPONENTS);
    for locked in &lock.component {
        let name = &locked.name;
        assert_eq!(locked.sha256, sha256(&component(name)), "{name}.wasm is not the locked file");
        let sources = inputs(&root, name).unwrap();
        assert_eq!(locked.inputs, sources, "{name}.wasm is older than its sources: run probes/rebuild");
    }
}

#[test]
fn nothing_else_lies_in_dist() {
    let expected = COMPONENTS.iter().map(|name| format!("{name}.wasm")).chain(["battery.lock".to_owned()]);
    let found =
        std::fs::read_dir(dist(&root())).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(found.collect::<BTreeSet<_>>(), expected.collect());
}

#[test]
fn a_component_imports_what_it_calls_and_no_more() {
    for (name, called) in [
        ("protocol", &["log", "report", "session", "types"][..]),
        ("catalog", &["log", "report", "session", "types"]),
        ("context", &["log", "report", "session", "types"]),
        ("exercise", &["log", "report", "schema", "session", "types"]),
        ("discovery-cost", &["log", "report", "session", "types"]),
        ("token-cost", &["log", "report", "session", "types"]),
        ("schema-guessability", &["log", "report", "schema", "session", "types"]),
        ("instruction-fidelity", &["log", "report", "schema", "session", "text", "types"]),
        ("degradation-over-n", &["log", "report", "session", "types"]),
        ("latency-budget", &["log", "report", "session", "types"]),
        ("error-honesty", &["log", "report", "session", "types"]),
        ("output-schema", &["log", "report", "schema", "session", "types"]),
        ("state-recovery", &["log", "report", "session", "types"]),
        ("workflow", &["log", "report", "schema", "session", "text", "types"]),
    ] {
        let expected = called.iter().map(|interface| format!("mcpeval:probe/{interface}@0.1.0"));
        assert_eq!(imports(&component(name)).unwrap(), expected.collect(), "{name}");
    }
}
