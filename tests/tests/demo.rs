//! Each fault of the demo server costs exactly the checks it names, and nothing else.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;

use mcpeval::demo::Fault;
use mcpeval_tests::programs;
use mcpeval_tests::report::Report;
use mcpeval_tests::run::{Outcome, Place};

/// Runs at a time.
const WORKERS: usize = 4;

/// Check and reason.
type Pair = (String, String);

/// What time decides is left aside, unless the fault is about time.
const LATENCY: &str = "reliability.latency";

fn score(place: &Place, fault: Option<Fault>, http: bool) -> Outcome {
    let broken = fault.map(|fault| ["--broken", fault.name()]);
    let broken = broken.as_ref().map(<[&str; 2]>::as_slice).unwrap_or_default();
    if !http {
        let options = [&["score", "--format", "json", "--lanes", "1", "--demo"], broken].concat();
        return place.run(options);
    }
    let mut command = place.mcpeval([&["demo", "--http", "127.0.0.1:0"], broken].concat());
    let mut demo = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the demo starts");
    let mut stderr = BufReader::new(demo.stderr.take().expect("it is piped"));
    let mut line = String::new();
    let read = stderr.read_line(&mut line);
    let url = line.split_whitespace().find(|word| word.starts_with("http://"));
    let outcome = url.map(|url| place.score_url(&["--lanes", "1"], url));
    let _ = demo.kill();
    let _ = demo.wait();
    outcome.unwrap_or_else(|| panic!("the demo does not say where it listens: {read:?} {line}"))
}

fn pairs(report: &Report) -> BTreeSet<Pair> {
    report.losses().into_iter().map(|loss| (loss.check, loss.reason)).collect()
}

/// What the fault costs beyond what the good demo loses, compared with what it says that it costs.
fn verify(fault: Fault, http: bool, good: &BTreeSet<Pair>) -> Result<(), String> {
    let place = Place::new(programs!());
    let outcome = score(&place, Some(fault), http);
    let told =
        |what: &str| format!("{} {what}; exit code {:?}; stderr: {}\n", fault.name(), outcome.code, outcome.stderr);
    let report = Report::read(&outcome.stdout).map_err(|error| told(&error))?;
    if outcome.code != Some(0) {
        return Err(told("has no readiness"));
    }
    let silent = fault.http_only() && !http;
    let costs: BTreeSet<Pair> =
        fault.costs().iter().filter(|_| !silent).map(|cost| (cost.check.to_owned(), cost.reason.to_owned())).collect();
    let timed = costs.iter().any(|(check, _)| check == LATENCY);
    let lost: BTreeSet<Pair> =
        pairs(&report).difference(good).filter(|(check, _)| timed || check != LATENCY).cloned().collect();
    if lost == costs { Ok(()) } else { Err(told(&format!("loses {lost:?} in place of {costs:?}"))) }
}

fn verify_all(faults: &[Fault], http: bool) {
    let place = Place::new(programs!());
    let outcome = score(&place, None, http);
    let mut good = pairs(&outcome.report());
    good.retain(|(check, _)| check != LATENCY);
    assert_eq!((outcome.code, &good), (Some(0), &BTreeSet::new()), "the good demo: {}", outcome.stderr);
    let work = Mutex::new(faults.iter());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(fault) = { work.lock().expect("no thread panics with it").next() } {
                    if let Err(error) = verify(*fault, http, &good) {
                        failures.lock().expect("no thread panics with it").push(error);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no thread panics with it");
    assert!(failures.is_empty(), "{}", failures.concat());
    place.assert_clean();
}

#[test]
fn every_fault_costs_what_it_says_over_stdio() {
    verify_all(Fault::ALL, false);
}

#[test]
fn faults_that_http_alone_shows_cost_what_they_say() {
    let faults: Vec<Fault> = Fault::ALL.iter().copied().filter(|fault| fault.http_only()).collect();
    assert!(!faults.is_empty());
    verify_all(&faults, true);
}

#[test]
fn the_list_names_every_fault_with_its_cost() {
    let place = Place::new(programs!());
    let outcome = place.run(["demo", "--list-broken"]);
    assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(0), Fault::ALL.len()), "{}", outcome.stderr);
    for (line, fault) in outcome.stdout.lines().zip(Fault::ALL) {
        assert_eq!(line.split(':').next(), Some(fault.name()), "{line}");
        for cost in fault.costs() {
            assert!(line.contains(cost.check) && line.contains(cost.reason), "{line}");
        }
    }
}

#[test]
fn an_unknown_fault_is_refused_with_the_nearest_name() {
    let place = Place::new(programs!());
    for arguments in [&["demo", "--broken", "slown"][..], &["score", "--demo", "--broken", "slown"]] {
        let outcome = place.run(arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("slow"), "{}", outcome.stderr);
    }
    let outcome = place.run(["score", "--broken", "slow", "--", programs!().server, "good"]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
}
