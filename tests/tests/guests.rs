//! Hostile components as areas of a standard: each gets its verdict, within bounds, and the area after it is scored as
//! if nothing had happened.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use mcpeval_tests::guests::{self, AREA, CHECK, Guest, Manifest, REASON};
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, Place};
use sha2::{Digest as _, Sha256};

/// More than one component may take of compute, and slack for a busy machine.
const LONGEST: Duration = Duration::from_secs(150);

/// Most memory of a run with one component: its 256 MiB and the program's own, in bytes.
const MOST_MEMORY: u64 = 512 << 20;

/// What must come of a component.
#[derive(Debug, Clone, Copy)]
enum Verdict {
    /// It is run, and its area is scored in full.
    Scored,
    /// It is run and breaks: exit code 3, `component-fault`, and its area is not finished.
    Faulted,
    /// It breaks after it finished its area, which stays.
    FaultedLate,
    /// It is not run: exit code 2 and a sentence with this word.
    Refused(&'static str),
    /// It cannot be described: no run, exit code 2 or 3, and a sentence.
    Undescribed,
}

macro_rules! guest {
    ($name:literal) => {
        guest!($name, |_| {})
    };
    ($name:literal, $manifest:expr) => {
        Guest { name: $name, source: include_str!(concat!("../guests/", $name, ".wat")), manifest: $manifest }
    };
}

const TABLE: &[(Guest, Verdict)] = &[
    // The two that take long come first, so that the rest runs beside them.
    (guest!("spin"), Verdict::Faulted),
    (guest!("spin-describe"), Verdict::Undescribed),
    (guest!("honest"), Verdict::Scored),
    (guest!("trap-describe"), Verdict::Undescribed),
    (guest!("call-in-describe"), Verdict::Undescribed),
    (guest!("grow"), Verdict::Faulted),
    (guest!("recurse"), Verdict::Faulted),
    (guest!("flood-log"), Verdict::Scored),
    (guest!("flood-findings"), Verdict::Faulted),
    (guest!("flood-measurements"), Verdict::Faulted),
    (guest!("forge-evidence"), Verdict::Faulted),
    (guest!("undeclared-reason"), Verdict::Faulted),
    (guest!("undeclared-check"), Verdict::Faulted),
    (guest!("host-reason"), Verdict::Faulted),
    (guest!("unknown-subject"), Verdict::Faulted),
    (guest!("undeclared-word"), Verdict::Faulted),
    (guest!("score-nan"), Verdict::Faulted),
    (guest!("score-above"), Verdict::Faulted),
    (guest!("score-untimed"), Verdict::Faulted),
    (guest!("score-foreign"), Verdict::FaultedLate),
    (guest!("score-none"), Verdict::Faulted),
    (guest!("trap-after-submit"), Verdict::FaultedLate),
    (guest!("use-after-drop"), Verdict::Faulted),
    (guest!("drop-twice"), Verdict::Faulted),
    (guest!("forge-handle"), Verdict::Faulted),
    (guest!("keep-handles"), Verdict::Faulted),
    (guest!("keep-one-handle"), Verdict::Scored),
    (guest!("huge-string"), Verdict::Faulted),
    (guest!("stray-pointer"), Verdict::Faulted),
    (guest!("bad-utf8"), Verdict::Faulted),
    (guest!("bad-json"), Verdict::Faulted),
    (guest!("call-writer"), Verdict::Scored),
    (guest!("pattern-bomb"), Verdict::Scored),
    (guest!("pipe"), Verdict::Refused("pipe")),
    (guest!("unknown-import"), Verdict::Refused("acme:evil/door")),
    (guest!("sockets"), Verdict::Scored),
    (guest!("environment"), Verdict::Scored),
    (guest!("honest", |manifest| "Hostile!".clone_into(&mut manifest.kind)), Verdict::Refused("kind")),
    (guest!("honest", |manifest| "ping".clone_into(&mut manifest.kind)), Verdict::Refused("kind")),
    (guest!("honest", |manifest| "{".clone_into(&mut manifest.config_schema)), Verdict::Undescribed),
    (guest!("honest", |manifest| r#"{"type":"objekt"}"#.clone_into(&mut manifest.config_schema)), Verdict::Undescribed),
    (guest!("honest", |manifest| manifest.needs = vec!["transport.pigeon".to_owned()]), Verdict::Refused("needs")),
    (
        guest!("honest", |manifest| manifest.needs = vec!["transport.http".to_owned()]),
        Verdict::Refused("transport.http"),
    ),
    (guest!("honest", many_checks), Verdict::Undescribed),
    (guest!("honest", |manifest| manifest.checks = vec!["catalog.entry".to_owned()]), Verdict::Undescribed),
    (guest!("honest", |manifest| "broken".clone_into(&mut manifest.reasons[0].0)), Verdict::Undescribed),
    (guest!("honest", |manifest| "acme.Broken words".clone_into(&mut manifest.reasons[0].0)), Verdict::Undescribed),
    (guest!("honest", |manifest| manifest.reasons[0].1 = "x".repeat(401)), Verdict::Undescribed),
];

fn many_checks(manifest: &mut Manifest) {
    manifest.checks = (0..65).map(|number| format!("{AREA}.check-{number}")).collect();
}

/// Writes a standard of the component's area and, after it, the catalog.
fn standard(place: &Place, component: &[u8], area: &str) -> String {
    place.file("guest.wasm", component);
    standard_for(place, "guest.wasm", component, area)
}

fn standard_for(place: &Place, path: &str, component: &[u8], area: &str) -> String {
    let digest = Sha256::digest(component).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let text = format!(
        "schema = \"mcpeval.standard/v1\"\nlabel = \"hostile/1\"\n\n\
         [[areas]]\nname = \"{area}\"\nweight = 50\ncomponent = {{ path = \"{path}\", sha256 = \"{digest}\" }}\n\n\
         [[areas]]\nname = \"catalog\"\nweight = 50\ncomponent = \"catalog\"\n"
    );
    place.file("standard.toml", text).display().to_string()
}

fn score(place: &Place, component: &[u8], options: &[&str]) -> Outcome {
    let standard = standard(place, component, AREA);
    place.score(&[&["--standard", &standard], options].concat(), "good")
}

fn judge(place: &Place, verdict: Verdict, outcome: &Outcome) -> Result<(), String> {
    let told = || {
        let report = mcpeval_tests::report::Report::read(&outcome.stdout);
        let areas = report.as_ref().map(|report| format!("{:?}", report.areas())).unwrap_or_default();
        format!("exit code {:?}, {areas}; stderr: {}", outcome.code, outcome.stderr)
    };
    let expect = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}: {}", told())) };
    expect(outcome.usage.rusage.maxrss <= MOST_MEMORY, "too much memory")?;
    expect(outcome.wall <= LONGEST, "too long")?;
    expect(!outcome.stdout.contains("swordfish") && !outcome.stderr.contains("panicked"), "something leaks")?;
    expect(!place.journal_lines().iter().any(|line| line.contains("delete_item")), "a writer was called")?;
    let sentence = outcome.stderr.trim();
    match verdict {
        Verdict::Refused(word) => {
            expect(outcome.code == Some(2) && outcome.stdout.is_empty(), "not refused")?;
            return expect(sentence.contains(word) && sentence.lines().count() == 1, "no such sentence");
        }
        Verdict::Undescribed => {
            expect(matches!(outcome.code, Some(2 | 3)), "not refused")?;
            return expect(!sentence.is_empty(), "no sentence");
        }
        Verdict::Scored | Verdict::Faulted | Verdict::FaultedLate => {}
    }
    let report =
        mcpeval_tests::report::Report::read(&outcome.stdout).map_err(|error| format!("{error}: {}", told()))?;
    expect(report.area_score("catalog") == Some(100), "the next area suffers")?;
    let fault = report.at("/readiness_error") == "component-fault" && outcome.code == Some(3);
    match verdict {
        Verdict::Scored => {
            expect(outcome.code == Some(0) && report.area_score(AREA) == Some(100), "not scored in full")?;
            expect(report.number("/readiness/score") == Some(100), "the score is not the fold of its areas")
        }
        Verdict::Faulted => expect(fault && report.area(AREA).is_none(), "no component-fault"),
        _ => expect(fault && report.area(AREA).is_some(), "no component-fault, or its finished area is lost"),
    }
}

#[test]
fn every_component_gets_its_verdict_and_the_next_area_is_unaffected() {
    let work = Mutex::new(TABLE.iter());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((guest, verdict)) = { work.lock().expect("no thread panics with it").next() } {
                    let place = Place::new(programs!());
                    let outcome = score(&place, &guests::build(guest), &["--lanes", "1"]);
                    if let Err(error) = judge(&place, *verdict, &outcome).and_then(|()| place.clean()) {
                        let line = format!("{} ({verdict:?}): {error}\n", guest.name);
                        failures.lock().expect("no thread panics with it").push(line);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no thread panics with it");
    assert!(failures.is_empty(), "{}", failures.concat());
}

#[test]
fn a_finding_outlives_the_trap_after_it() {
    let place = Place::new(programs!());
    let outcome = score(&place, &guests::build(&guest!("trap-after-submit")), &[]);
    let report = outcome.report();
    assert_eq!(report.area_score(AREA), Some(50));
    let loss = report.losses().into_iter().find(|loss| loss.check == CHECK).expect("the finding before the trap");
    assert_eq!((loss.tool.as_deref(), loss.reason.as_str()), (Some("find_item"), REASON));
}

#[test]
fn a_power_is_used_only_with_a_grant_and_not_for_writers() {
    let place = Place::new(programs!());
    let component = guests::build(&guest!("pipe"));
    let outcome = score(&place, &component, &["--grant", "area:hostile=pipe"]);
    assert_eq!(outcome.report().area_score(AREA), Some(100), "{}", outcome.stderr);
    assert!(!place.journal_lines().iter().any(|line| line.contains("delete_item")), "{:?}", place.journal_lines());
    let outcome = score(&place, &component, &["--grant", "area:hostile=http"]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
}

#[test]
fn a_component_for_another_contract_is_told_so() {
    let place = Place::new(programs!());
    let outcome = score(&place, &guests::build_for_version(&guest!("honest"), "0.9.0"), &[]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("contract 0.9") && outcome.stderr.contains("0.1"), "{}", outcome.stderr);
}

#[test]
fn what_is_no_component_is_refused() {
    let honest = guests::build(&guest!("honest"));
    let files: [(&str, Vec<u8>); 4] = [
        ("a core module", guests::core_module(&guest!("honest"))),
        ("no WebAssembly", b"#!/bin/sh\necho no\n".to_vec()),
        ("half a component", honest[..honest.len() / 2].to_vec()),
        ("nothing", Vec::new()),
    ];
    for (what, bytes) in files {
        let place = Place::new(programs!());
        let outcome = score(&place, &bytes, &[]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{what}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.trim().lines().count(), 1, "{what}: {}", outcome.stderr);
    }
}

#[test]
fn a_pin_that_does_not_match_is_refused() {
    let place = Place::new(programs!());
    let honest = guests::build(&guest!("honest"));
    let standard = standard(&place, b"something else", AREA);
    place.file("guest.wasm", honest);
    let outcome = place.score(&["--standard", &standard], "good");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
}

#[test]
fn an_area_that_a_component_does_not_declare_is_refused() {
    let place = Place::new(programs!());
    let standard = standard(&place, &guests::build(&guest!("honest")), "friendly");
    let outcome = place.score(&["--standard", &standard], "good");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("friendly"), "{}", outcome.stderr);
}

#[test]
fn a_file_above_the_limit_is_refused_without_reading_it_all() {
    let place = Place::new(programs!());
    let path = place.file("large.wasm", b"\0asm");
    let file = std::fs::File::options().write(true).open(&path).expect("the file just written");
    file.set_len(70 << 20).expect("a sparse file");
    let standard = standard_for(&place, Path::new("large.wasm").to_str().unwrap_or_default(), b"", AREA);
    let outcome = place.score(&["--standard", &standard], "good");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("64 MiB"), "{}", outcome.stderr);
    assert!(outcome.usage.rusage.maxrss < 100 << 20, "it took {} bytes", outcome.usage.rusage.maxrss);
}
