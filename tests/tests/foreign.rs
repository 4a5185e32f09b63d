//! Components that other toolchains built: the starters in three languages, and one that pries.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::report::Report;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use mcpeval_tests::toolchains;
use serde_json::Value;
use wit_parser::decoding::{DecodedWasm, decode};

/// Where Cargo builds components, and finds them built the next time.
const SCRATCH: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/foreign");

/// Interfaces that a component imports.
fn imports(component: &Path) -> Vec<String> {
    let bytes = fs::read(component).unwrap_or_else(|error| panic!("{}: {error}", component.display()));
    let DecodedWasm::Component(resolve, world) = decode(&bytes).expect("a component") else {
        panic!("{} is no component", component.display());
    };
    resolve.worlds[world].imports.keys().map(|key| resolve.name_world_key(key)).collect()
}

/// Writes a standard of one area, with the digest that `probes show` prints.
fn standard(place: &Place, component: &Path, area: &str) -> String {
    let outcome = place.run(["probes".as_ref(), "show".as_ref(), component.as_os_str()]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let shown: Value = serde_json::from_str(&outcome.stdout).expect("a manifest as JSON");
    assert_eq!((&shown["areas"][0], shown["areas"].as_array().map(Vec::len)), (&Value::from(area), Some(1)));
    let text = format!(
        "schema = \"mcpeval.standard/v1\"\nlabel = \"acme/1\"\n\
         areas = [{{ name = \"{area}\", weight = 100, component = {{ path = \"{}\", sha256 = {} }} }}]\n",
        component.display(),
        shown["sha256"],
    );
    place.file("acme.toml", text).display().to_string()
}

fn demo(place: &Place, standard: &str, options: &[&str]) -> Outcome {
    place.run([&["score", "--format", "json", "--standard", standard, "--demo"], options].concat())
}

fn losses(report: &Report) -> Vec<String> {
    report.losses().iter().map(ToString::to_string).collect()
}

/// What every starter must say, whatever language it is written in.
fn judges_as_a_starter(place: &Place, component: &Path) {
    const UNSTEADY: &str = "steady.same refresh_snapshot acme.unsteady";
    let standard = standard(place, component, "steady");
    let expect = |outcome: Outcome, score: u64, lost: &[&str]| {
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let report = outcome.report();
        assert_eq!(losses(&report), lost);
        assert_eq!((report.area_score("steady"), report.number("/readiness/score")), (Some(score), Some(score)));
    };
    expect(place.score(&["--standard", &standard], "good"), 100, &[]);
    expect(demo(place, &standard, &["--skip-tool", "refresh_snapshot"]), 100, &[]);
    // That tool counts its calls. Eleven tools of the demo are callable.
    expect(demo(place, &standard, &[]), 91, &[UNSTEADY]);
    // An answer that is an error, and none at all, cost that tool alone.
    for fault in ["failing", "rejecting", "dying"] {
        let lost = [UNSTEADY, "steady.same word_stats acme.call-failed"];
        expect(demo(place, &standard, &["--broken", fault]), 82, &lost);
    }
    // Where nothing can be called nothing is lost; what cannot be called is not judged.
    expect(demo(place, &standard, &["--broken", "writers-only"]), 100, &[]);
    expect(demo(place, &standard, &["--broken", "unsynthesizable"]), 90, &[UNSTEADY]);
    // Two calls of each of 3,000 tools are more than the budget holds: the host's refusal ends the run as itself.
    let outcome = place.score(&["--standard", &standard], "tools-3000");
    let report = outcome.report();
    assert_eq!((outcome.code, report.at("/readiness_error").as_str()), (Some(3), Some("evaluation-budget-exceeded")));
    let tools = report.at("/readiness_partial/tools");
    assert_eq!(tools["total"], 3_000);
    assert!(tools["finished"].as_u64().is_some_and(|finished| (2_000..2_048).contains(&finished)), "{tools}");
    place.assert_clean();
}

/// The Rust starter; none where its target is missing.
fn rust_starter() -> Option<PathBuf> {
    toolchains::rust("steady", "guest-sdk/templates/rust", Path::new(SCRATCH))
}

#[test]
fn the_rust_starter_judges() {
    let Some(component) = rust_starter() else { return };
    let imports = imports(&component);
    assert!(imports.iter().any(|name| name.starts_with("wasi:")), "{imports:?}");
    assert!(!imports.iter().any(|name| name.contains("/pipe@") || name.contains("/http@")), "{imports:?}");
    judges_as_a_starter(&Place::new(programs!()), &component);
}

#[test]
fn the_javascript_starter_judges() {
    let Some(real) = Real::find_toolchains("the JavaScript starter") else { return };
    let place = Place::new(programs!());
    let component = toolchains::javascript(&real, &place);
    let imports = imports(&component);
    assert!(imports.iter().all(|name| name.starts_with("mcpeval:probe/")), "{imports:?}");
    judges_as_a_starter(&place, &component);
}

#[test]
fn the_python_starter_judges() {
    let Some(real) = Real::find_toolchains("the Python starter") else { return };
    let place = Place::new(programs!());
    let component = toolchains::python(&real, &place);
    let imports = imports(&component);
    assert!(imports.iter().all(|name| name.starts_with("mcpeval:probe/")), "{imports:?}");
    judges_as_a_starter(&place, &component);
}

#[test]
fn the_readme_shows_the_rust_starter_as_it_is() {
    let readme = toolchains::read("README.md");
    let (_, block) = readme.split_once("```rust\n").expect("a block of Rust");
    let (block, _) = block.split_once("```").expect("its end");
    assert!(block.lines().count() >= 10, "{block}");
    assert!(toolchains::read("guest-sdk/templates/rust/src/lib.rs").contains(block), "{block}");
}

/// One file of the folder of compiled components: its path, inode and bytes.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    path: PathBuf,
    inode: u64,
    bytes: Vec<u8>,
}

/// The only entry of a cache.
fn entry(cache: &Path) -> Entry {
    let folder = cache.join("mcpeval/compiled");
    let files: Vec<PathBuf> = fs::read_dir(&folder).expect("a cache").flatten().map(|file| file.path()).collect();
    let [path] = files.as_slice() else { panic!("not one entry: {files:?}") };
    let inode = fs::metadata(path).expect("an entry").ino();
    Entry { path: path.clone(), inode, bytes: fs::read(path).expect("an entry") }
}

#[test]
fn a_component_is_compiled_once_and_a_damaged_entry_is_compiled_again() {
    let Some(real) = Real::find_toolchains("the cache of compiled components") else { return };
    let place = Place::new(programs!());
    let standard = standard(&place, &toolchains::javascript(&real, &place), "steady");
    let cache = place.path().join("cache");
    let score = || {
        let mut command = place.mcpeval(["score", "--format", "json", "--standard", &standard, "--demo"]);
        command.env("XDG_CACHE_HOME", &cache);
        let outcome = Running::start(command).finish(PATIENCE);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        (outcome.stdout, entry(&cache))
    };
    let (report, first) = score();
    assert_eq!(losses(&Report::read(&report).expect("a report")), ["steady.same refresh_snapshot acme.unsteady"]);
    // What is compiled is put in the place of the entry, as a file of its own.
    assert_eq!(score(), (report.clone(), Entry { bytes: first.bytes.clone(), ..entry(&cache) }));
    assert_eq!(entry(&cache).inode, first.inode);
    let whole = first.bytes;
    let middle = whole.len() / 2;
    let flipped = |at: usize| whole.iter().enumerate().map(|(i, byte)| if i == at { !byte } else { *byte }).collect();
    let damages: [(&str, Vec<u8>); 6] = [
        ("another magic", flipped(0)),
        ("another sum", flipped(8)),
        ("a flipped byte", flipped(middle)),
        ("half of it", whole[..middle].to_vec()),
        ("one byte more", [whole.as_slice(), b"\0"].concat()),
        ("nothing", Vec::new()),
    ];
    for (what, bytes) in damages {
        let old = entry(&cache);
        fs::write(&old.path, &bytes).expect("the entry is ours");
        let (again, mended) = score();
        assert_eq!(again, report, "{what}");
        assert!(mended.inode != old.inode && mended.bytes != bytes, "{what} was used");
        let (again, kept) = score();
        assert_eq!((again, kept), (report.clone(), mended), "after {what}");
    }
    place.assert_clean();
}

#[expect(
    clippy::cast_precision_loss,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a crate of its own"
)]
#[path = "../foreign/sealed/src/lib.rs"]
mod sealed;

#[test]
fn a_component_that_pries_sees_nothing() {
    const KIND: &str = "acme.sealed: ";
    let Some(component) = toolchains::rust("sealed", "tests/foreign/sealed", Path::new(SCRATCH)) else { return };
    let wanted = imports(&component);
    for package in
        ["cli/environment", "cli/stdin", "clocks/wall-clock", "filesystem/preopens", "random/random", "sockets/tcp"]
    {
        assert!(wanted.iter().any(|name| name.starts_with(&format!("wasi:{package}@"))), "{package}: {wanted:?}");
    }
    let place = Place::new(programs!());
    let standard = standard(&place, &component, "sealed");
    let log = place.path().join("run.log");
    let score = || {
        let mut command =
            place.score_command(&["--standard", &standard, "--run-log", &log.display().to_string()], "good");
        command.env("SECRET", "swordfish");
        let outcome = Running::start(command).finish(PATIENCE);
        let text = fs::read_to_string(&log).expect("a run log");
        fs::remove_file(&log).expect("the run log is ours");
        let lines: Vec<String> = text.lines().filter_map(|line| line.strip_prefix(KIND)).map(str::to_owned).collect();
        (outcome, lines)
    };
    let (outcome, lines) = score();
    assert_eq!(outcome.code, Some(0), "{}\n{lines:#?}", outcome.stderr);
    let report = outcome.report();
    assert_eq!((losses(&report), report.area_score("sealed")), (vec![], Some(100)), "{lines:#?}");
    // Every word it printed is in the private log, and nowhere else.
    let said = |words: &str| lines.iter().filter(|line| line.starts_with(words)).count();
    for check in seen_natively().keys() {
        assert_eq!(said(&format!("stdout: {check}: Err(")), 1, "{check}: {lines:#?}");
    }
    assert_eq!((said("stdout: a line without an end"), said("stderr: random bytes: Ok(")), (1, 1), "{lines:#?}");
    for words in ["sealed.environment:", "a line without an end", "random bytes"] {
        assert!(!outcome.stdout.contains(words) && !outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    // Random bytes are in those lines, too.
    let (again, same) = score();
    assert_eq!((again.stdout, same), (outcome.stdout, lines));
    place.assert_clean();
}

/// Check by check, whether the same looks see something where nothing is sealed.
fn seen_natively() -> BTreeMap<String, bool> {
    let run = mcpeval_probe::testing::Script::new([]).run::<sealed::Sealed>(mcpeval_probe::json!({}));
    let failed = mcpeval_probe::Verdict::Fail;
    run.findings.into_iter().map(|finding| (finding.check, finding.verdict == failed)).collect()
}

#[test]
fn the_component_that_pries_would_see_what_there_is() {
    let seen = seen_natively();
    // A machine may have no names.
    let blind: Vec<&str> = seen.iter().filter(|(_, seen)| !**seen).map(|(check, _)| check.as_str()).collect();
    assert!(blind.iter().all(|check| *check == "sealed.names"), "it does not see {blind:?}");
    assert_eq!(seen.len(), 10);
}
