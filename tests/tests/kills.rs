//! `kill -9` at any moment: of recorders, `index`, `promote`, `verify` and `share`, more than two hundred times. After
//! each kill what was written before is there, nothing is there by half, and no evidence counts twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use mcpeval::store::Home;
use mcpeval::store::journal::{self, Journal};
use mcpeval::store::lifecycle::{Lifecycle, State};
use mcpeval::store::record::Record;
use mcpeval_tests::client::Client;
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use mcpeval_tests::traffic::{call, days_ago, failed, home, write};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Kills of each command; together more than 200.
const SHIM: usize = 60;
const INDEX: usize = 50;
const PROMOTE: usize = 40;
const VERIFY: usize = 30;
const SHARE: usize = 40;
const _: () = assert!(SHIM + INDEX + PROMOTE + VERIFY + SHARE >= 200);

/// The shop's label, and the tool that its records are about.
const SHOP: &str = "shop";
const FIND: &str = "find_item";

/// Moments that are random and the same in every run.
struct Moments {
    state: u64,
    /// The longest of them.
    span: Duration,
    killed: usize,
}

impl Moments {
    fn new(seed: u64, span: Duration) -> Self {
        Self { state: seed | 1, span, killed: 0 }
    }

    /// Waits until the next.
    fn wait(&mut self) {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = f64::from(u32::try_from(self.state >> 32).unwrap_or_default()) / f64::from(u32::MAX);
        thread::sleep(self.span.mul_f64(share));
    }

    /// Starts a command and kills it at the next moment.
    fn kill(&mut self, place: &Place, arguments: &[&str]) -> Outcome {
        let run = Running::start(place.mcpeval(arguments));
        self.wait();
        run.signal(Signal::KILL);
        let outcome = run.finish(PATIENCE);
        self.killed += usize::from(outcome.signal == Some(Signal::KILL.as_raw()));
        outcome
    }

    /// Most runs were killed at work, not after it.
    fn tell(&self, what: &str, rounds: usize) {
        assert!(self.killed * 3 >= rounds, "only {} of {rounds} runs of {what} were killed at work", self.killed);
        println!("{what}: {rounds} kills, {} of them at work, all invariants held", self.killed);
    }
}

fn good(place: &Place, arguments: &[&str]) -> String {
    let outcome = place.run(arguments);
    assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.stderr);
    outcome.stdout
}

/// How long that takes when nobody disturbs it.
fn span(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn journals(home: &Home) -> BTreeMap<PathBuf, Vec<u8>> {
    [Journal::Calls, Journal::Annotations]
        .into_iter()
        .flat_map(|journal| journal::files(home, journal).expect("a store"))
        .map(|file| (file.clone(), fs::read(file).expect("a journal")))
        .collect()
}

/// Whole lines, and how many of them are no records.
fn records(journals: &BTreeMap<PathBuf, Vec<u8>>) -> (Vec<Record>, usize) {
    let (mut found, mut bad) = (Vec::new(), 0);
    for bytes in journals.values() {
        for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            match Record::read(line) {
                Some(record) => found.push(record),
                None => bad += 1,
            }
        }
    }
    (found, bad)
}

fn shim(place: &Place) -> Client {
    let mut client = Client::start(place.mcpeval(["shim", "--server", SHOP, "--", programs!().server, "good"]));
    client.greet();
    client
}

#[test]
fn of_recorders() {
    let place = Place::new(programs!());
    let home = home(&place);
    let mut moments = Moments::new(11, Duration::from_millis(60));
    // Recorders that were left alone; what they saw is complete.
    let mut steady = 0;
    let mut before = BTreeMap::new();
    for round in 0..SHIM {
        let mut other = shim(&place);
        let mut victim = shim(&place);
        let pid = rustix::process::Pid::from_raw(i32::try_from(victim.pid()).expect("a pid")).expect("a pid");
        let caller = thread::spawn(move || while victim.call(FIND, &json!({"query": "tea"})).is_some() {});
        for _ in 0..5 {
            assert!(other.call(FIND, &json!({"query": "tea"})).is_some(), "round {round}");
        }
        moments.wait();
        let at_kill = journals(&home);
        rustix::process::kill_process(pid, Signal::KILL).expect("it lives");
        moments.killed += 1;
        caller.join().expect("the victim's client");
        assert_eq!(other.finish().code, Some(0), "round {round}");
        steady += 1;
        let after = journals(&home);
        for (file, bytes) in before.iter().chain(&at_kill) {
            assert!(
                after.get(file).is_some_and(|now: &Vec<u8>| now.starts_with(bytes)),
                "round {round}: lines are gone"
            );
        }
        let (_, bad) = records(&after);
        assert!(bad <= round + 1, "round {round}: {bad} torn lines");
        before = after;
    }
    let (found, bad) = records(&journals(&home));
    let mut captures: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut events = BTreeSet::new();
    for record in &found {
        let identity = record.identity.as_ref().expect("an identity");
        captures.entry(identity.capture_id.clone()).or_default().push(record.seq);
        assert!(events.insert(&identity.event_id), "an event stands twice");
    }
    for seqs in captures.values() {
        assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "numbers are missing or twice: {seqs:?}");
    }
    // Greeting, listing and five calls each.
    assert!(captures.values().filter(|seqs| seqs.len() == 7).count() >= steady, "what nobody killed is incomplete");
    let skipped = if bad > 0 { format!(", skipped {bad} lines") } else { String::new() };
    assert_eq!(
        good(&place, &["index"]),
        format!("indexed {} calls, 0 failures, 0 annotations{skipped}\n", found.len())
    );
    place.assert_clean();
    moments.tell("shim", SHIM);
}

/// Calls of the shop's tool in one session, the last ones failed.
fn session(number: u64, calls: u64) -> Vec<Value> {
    (1..=calls)
        .map(|seq| {
            let call = call(number, number, seq, days_ago(0));
            let mut call = if seq * 2 > calls { failed(call, -32_001) } else { call };
            (call["server"], call["tool"], call["args"]) = (SHOP.into(), FIND.into(), json!({"query": "str<8"}));
            call
        })
        .collect()
}

/// A home with a finding about the shop's tool; gives the finding.
fn with_finding(place: &Place) -> (Home, String) {
    let home = home(place);
    write(&home, Journal::Calls, &[session(1, 12), session(2, 12)].concat());
    good(place, &["index"]);
    assert_eq!(good(place, &["promote"]), "promoted 1 of 1 issues\n");
    let found: Value = serde_json::from_str(&findings(place)).expect("findings");
    let id = found[0]["finding_id"].as_str().expect("an id").to_owned();
    (home, id)
}

fn findings(place: &Place) -> String {
    good(place, &["findings", "--format", "json"])
}

#[test]
fn of_index() {
    let place = Place::new(programs!());
    let (home, _) = with_finding(&place);
    let answer = findings(&place);
    let mut lines = 24;
    let mut moments = Moments::new(23, span(|| drop(good(&place, &["index"]))));
    for round in 0..INDEX {
        let number = 100 + round as u64;
        write(&home, Journal::Calls, &session(number, 40));
        lines += 40;
        let written = journals(&home);
        moments.kill(&place, if round % 3 == 0 { &["index", "--rebuild"] } else { &["index"] });
        assert_eq!(findings(&place), answer, "round {round}");
        assert!(journals(&home) == written, "round {round}: index wrote to a journal");
        if round % 10 == 9 {
            let failures = 12 + (lines - 24) / 2;
            let expected = format!("indexed {lines} calls, {failures} failures, 0 annotations\n");
            assert_eq!(good(&place, &["index"]), expected, "round {round}");
            assert_eq!(findings(&place), answer, "round {round}: the findings are those of the last promote");
        }
    }
    assert_eq!(good(&place, &["index", "--rebuild"]), good(&place, &["index"]));
    moments.tell("index", INDEX);
}

/// The findings without what time alone changes.
fn lasting(place: &Place) -> Vec<Value> {
    let mut found: Vec<Value> = serde_json::from_str(&findings(place)).expect("findings");
    for finding in &mut found {
        for member in ["recency", "score", "severity"] {
            finding[member] = Value::Null;
        }
    }
    found
}

#[test]
fn of_promote() {
    let place = Place::new(programs!());
    let (home, id) = with_finding(&place);
    let mut previous = lasting(&place);
    let mut moments = Moments::new(37, span(|| drop(good(&place, &["promote"]))));
    for round in 0..PROMOTE {
        // Beyond every score: the finding comes and goes.
        let promote = ["promote", "--threshold", if round % 2 == 0 { "1000" } else { "0.1" }];
        moments.kill(&place, &promote);
        let left = lasting(&place);
        good(&place, &promote);
        let next = lasting(&place);
        assert_ne!(previous, next, "round {round}");
        assert!(left == previous || left == next, "round {round}: neither the previous nor the next: {left:?}");
        let standing = Lifecycle::to_read(&home).expect("states").expect("states").standing().expect("states");
        let states: Vec<(&String, State, u32)> =
            standing.iter().map(|(id, standing)| (id, standing.state, standing.consecutive_passes)).collect();
        assert_eq!(states, [(&id, State::Open, 0)], "round {round}");
        previous = next;
    }
    moments.tell("promote", PROMOTE);
}

/// Rows of the history of verifications, and runs in it.
fn history(home: &Home) -> (i64, i64) {
    let reading = mcpeval::store::database::open_to_read(&home.lifecycle_db()).expect("states").expect("states");
    let query = "SELECT count(*), count(DISTINCT run_id) FROM probe_history";
    reading.connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("a history")
}

fn passes(home: &Home, id: &str) -> (State, u32) {
    let standing = Lifecycle::to_read(home).expect("states").expect("states").standing().expect("states");
    (standing[id].state, standing[id].consecutive_passes)
}

#[test]
fn of_verify() {
    let place = Place::new(programs!());
    let (home, id) = with_finding(&place);
    let case = json!({
        "probe": "degradation-over-n", "id": "tea", "access": "read_only", "tool": FIND, "arguments": {"query": "tea"},
        "max_attempts": 3
    });
    let manifest = place.file("manifest.json", json!({"version": 1, "probes": [case]}).to_string());
    let manifest = manifest.display().to_string();
    let verify =
        ["verify", "--finding", &id, "--case", "tea", "--manifest", &manifest, "--", programs!().server, "good"];
    good(&place, &verify);
    let mut moments = Moments::new(41, span(|| drop(good(&place, &verify))));
    let mut count = 2;
    assert_eq!(passes(&home, &id), (State::Verifying, count));
    for round in 0..VERIFY {
        moments.kill(&place, &verify);
        let (rows, runs) = history(&home);
        let (state, passes) = passes(&home, &id);
        assert!(passes == count || passes == count + 1, "round {round}: {count} became {passes}");
        assert_eq!((rows, runs), (i64::from(passes), i64::from(passes)), "round {round}: history and state disagree");
        assert_eq!(state, if passes < 3 { State::Verifying } else { State::Closed }, "round {round}");
        count = passes;
    }
    good(&place, &verify);
    assert_eq!(passes(&home, &id), (State::Closed, count + 1));
    assert_eq!(history(&home), (i64::from(count) + 1, i64::from(count) + 1));
    place.assert_clean();
    moments.tell("verify", VERIFY);
}

/// All files below a folder with what is in them.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.insert(path.clone(), fs::read(path).expect("a file"));
        }
    }
    found
}

#[test]
fn of_share() {
    let place = Place::new(programs!());
    let (home, _) = with_finding(&place);
    write(&home, Journal::Calls, &session(7, 600));
    let beside = place.path().join("given");
    fs::create_dir(&beside).expect("a folder");
    let target = beside.join("envelope");
    let named = target.display().to_string();
    let share = ["share", "--dir", &named, "--force"];
    let mut moments = Moments::new(53, span(|| drop(good(&place, &share))));
    let mut previous = tree(&target);
    assert!(previous.keys().any(|file| file.ends_with("SHARE.md")), "{:?}", previous.keys());
    let written = tree(home.root());
    for round in 0..SHARE {
        // Every second time something else is to be shared.
        if round % 2 == 0 {
            write(&home, Journal::Calls, &session(100 + round as u64, 20));
        }
        moments.kill(&place, &share);
        let left = tree(&target);
        good(&place, &share);
        let next = tree(&target);
        assert!(left == previous || left == next, "round {round}: half an envelope: {:?}", left.keys());
        let names: Vec<_> = fs::read_dir(&beside).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["envelope"], "round {round}: what a killed run left is still there");
        previous = next;
    }
    for (file, bytes) in written {
        let now = fs::read(&file).unwrap_or_default();
        assert!(now.starts_with(&bytes), "{} was changed", file.display());
    }
    moments.tell("share", SHARE);
}
