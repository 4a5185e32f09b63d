//! Where results go: what is refused before anything runs, and what holds a command up that a signal must end.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use mcpeval_tests::programs;
use mcpeval_tests::run::{PATIENCE, Place, Running, SETTLING};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;
use serde_json::json;

/// What the least pipe holds, so that no document fits.
const PIPE_SIZE: usize = 4096;

/// A named pipe in a place.
fn pipe(place: &Place) -> PathBuf {
    let path = place.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
    path
}

/// A reader that reads nothing.
fn stopped_reader(path: &Path) -> File {
    let reader = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let reader = File::from(reader.expect("the named pipe"));
    rustix::pipe::fcntl_setpipe_size(&reader, PIPE_SIZE).expect("a small pipe");
    reader
}

/// Waits until there is something to read: whoever writes more than fits waits for the reader then.
fn await_writing(reader: &File) {
    let patience = PATIENCE.try_into().expect("a time");
    let ready = rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(reader, PollFlags::IN)], Some(&patience)));
    assert_eq!(ready, Ok(1), "nothing was written");
}

/// What lies in a place, sorted.
fn names(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.path()).expect("a place");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn stored_report(place: &Place, name: &str) {
    let outcome = place.run(["score", "--demo", "--format", "json", "--output", name]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

/// A command whose standard output is a file or pipe of its place.
fn into(place: &Place, redirection: &str, arguments: &[&str]) -> Command {
    let mut command = place.command("/bin/sh");
    command.arg("-c").arg(format!("exec \"$0\" \"$@\" {redirection}")).arg(programs!().mcpeval).args(arguments);
    command
}

#[test]
fn a_signal_ends_whatever_waits_for_a_reader() {
    let place = Place::new(programs!());
    let pipe = pipe(&place);
    stored_report(&place, "report.json");
    let demo = ["--", programs!().mcpeval, "demo"];
    let target = |words: &'static [&'static str]| [words, &demo[..]].concat();
    place.file("mcpeval.toml", json_target());
    let compared = ["compare", "--format", "json", "--target", "shop", "--output", "pipe"];
    let rows = [
        ("", target(&["score", "--format", "json", "--output", "pipe"])),
        ("> pipe", target(&["score", "--format", "json"])),
        ("", target(&["score", "--report", "html=pipe"])),
        ("", target(&["init", "--output", "pipe"])),
        ("> pipe", target(&["init", "--output", "-"])),
        ("", [&compared[..], &demo].concat()),
        ("", vec!["report", "report.json", "--format", "html", "--output", "pipe"]),
        ("> pipe", vec!["report", "report.json", "--format", "html"]),
        ("", vec!["diff", "report.json", "report.json", "--format", "html", "--output", "pipe"]),
        // These write no file, so that the system may end them.
        ("> pipe", vec!["schema"]),
        ("> pipe", vec!["explain"]),
    ];
    let before = names(&place);
    for (row, (redirection, arguments)) in rows.iter().enumerate() {
        let signal = [Signal::TERM, Signal::INT, Signal::HUP][row % 3];
        let reader = stopped_reader(&pipe);
        let run = Running::start(into(&place, redirection, arguments));
        await_writing(&reader);
        run.signal(signal);
        let outcome = run.finish(SETTLING);
        let number = signal.as_raw();
        let ended = outcome.code == Some(128 + number) || outcome.signal == Some(number);
        assert!(ended, "{arguments:?}: {:?} {:?}", outcome.code, outcome.stderr);
        assert_eq!(names(&place), before, "{arguments:?}");
    }
    place.assert_clean();
}

/// A configuration with the demo as a target.
fn json_target() -> String {
    format!("[targets.shop]\ncommand = {}\n", json!([programs!().mcpeval, "demo"]))
}

#[test]
fn a_pipe_that_nobody_reads_is_told_before_anything_runs() {
    let place = Place::new(programs!());
    let pipe = pipe(&place);
    symlink("pipe", place.path().join("link")).unwrap();
    for (command, options) in [
        ("score", ["--output", "pipe"]),
        ("score", ["--report", "json=link"]),
        ("score", ["--run-log", "pipe"]),
        ("init", ["--output", "link"]),
    ] {
        let outcome = place.on(command, &options, "good");
        assert_eq!(outcome.code, Some(3), "{options:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(": nobody reads this pipe; start its reader first"), "{}", outcome.stderr);
    }
    assert_eq!(place.journal_lines(), Vec::<String>::new());
    assert!(fs::metadata(pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_reader_gets_all_that_is_written_to_its_pipe() {
    let place = Place::new(programs!());
    let pipe = pipe(&place);
    stored_report(&place, "report.json");
    // Opening waits for the writer, and the writer for the reader.
    let reader = std::thread::spawn(move || fs::read_to_string(pipe).expect("a text"));
    let outcome = place.run(["report", "report.json", "--report", "json=pipe"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(reader.join().unwrap(), fs::read_to_string(place.path().join("report.json")).unwrap());
}

#[test]
fn a_dash_and_every_name_of_standard_output_mean_it() {
    let place = Place::new(programs!());
    stored_report(&place, "report.json");
    let text = place.run(["report", "report.json"]).stdout;
    for name in ["-", "/dev/stdout", "/dev/fd/1"] {
        let outcome = place.run(["report", "report.json", "--output", name]);
        assert_eq!((outcome.code, &outcome.stdout), (Some(0), &text), "{name}: {}", outcome.stderr);
        // What is there already stays, since it was redirected so.
        place.file("kept", "kept\n");
        let command = into(&place, ">> kept", &["report", "report.json", "--output", name]);
        let outcome = Running::start(command).finish(PATIENCE);
        assert_eq!(outcome.code, Some(0), "{name}: {}", outcome.stderr);
        assert_eq!(fs::read_to_string(place.path().join("kept")).unwrap(), format!("kept\n{text}"), "{name}");
        let outcome = place.run(["report", "report.json", "--report", &format!("json={name}")]);
        assert_eq!(outcome.code, Some(2), "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("two outputs cannot share one file"), "{}", outcome.stderr);
    }
    let outcome = place.run(["score", "--demo", "--run-log", "-"]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    let outcome = place.run(["init", "--output", "-", "--", programs!().mcpeval, "demo"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let manifest: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("a manifest and nothing else");
    assert_eq!(manifest["version"], 1);
    assert!(outcome.stderr.lines().any(|line| line.starts_with("wrote - tools=")), "{}", outcome.stderr);
    assert!(!place.path().join("-").exists());
}

#[test]
fn what_is_read_is_not_overwritten() {
    let place = Place::new(programs!());
    for name in ["report.json", "other.json"] {
        stored_report(&place, name);
    }
    let manifest = json!({"version": 1, "probes": [{"id": "a", "probe": "handshake", "access": "read_only"}]});
    place.file("manifest.json", manifest.to_string());
    place.file("arguments.json", "{}");
    place.file("corpus.json", r#"{"schema": "mcpeval.corpus/v1", "entries": []}"#);
    place.file("mcpeval.toml", json_target());
    place.file("probe.wasm", "");
    let component = json!({"path": "probe.wasm", "sha256": "0".repeat(64)});
    let areas = json!([{"name": "catalog", "weight": 60, "component": "catalog"},
        {"name": "licence", "weight": 40, "component": component}]);
    place
        .file("standard.json", json!({"schema": "mcpeval.standard/v1", "label": "shop/1", "areas": areas}).to_string());
    let server = ["--", programs!().server, "good"];
    let on = |words: &'static [&'static str]| [words, &server[..]].concat();
    let rows = [
        (on(&["probe", "--manifest", "manifest.json", "--output", "NAME"]), "manifest.json", "the manifest"),
        (on(&["probe", "--manifest", "manifest.json", "--report", "json=NAME"]), "manifest.json", "the manifest"),
        (on(&["probe", "--manifest", "manifest.json", "--run-log", "NAME"]), "manifest.json", "the manifest"),
        (on(&["score", "--arguments", "arguments.json", "--output", "NAME"]), "arguments.json", "the arguments file"),
        (on(&["score", "--standard", "standard.json", "--output", "NAME"]), "standard.json", "the standard"),
        (on(&["score", "--standard", "standard.json", "--output", "NAME"]), "probe.wasm", "a component"),
        (on(&["score", "--component", "shop.stock=probe.wasm", "--output", "NAME"]), "probe.wasm", "a component"),
        (on(&["score", "--corpus", "corpus.json", "--output", "NAME"]), "corpus.json", "the corpus"),
        (on(&["score", "--output", "NAME"]), "mcpeval.toml", "the configuration"),
        (
            on(&["init", "--force", "--arguments", "arguments.json", "--output", "NAME"]),
            "arguments.json",
            "the arguments file",
        ),
        (on(&["compare", "--target", "shop", "--output", "NAME"]), "mcpeval.toml", "the configuration"),
        (
            on(&["compare", "--target", "shop", "--manifest", "manifest.json", "--output", "NAME"]),
            "manifest.json",
            "the manifest",
        ),
        (vec!["report", "report.json", "--output", "NAME"], "report.json", "the report"),
        (
            vec!["report", "report.json", "--manifest", "manifest.json", "--output", "NAME"],
            "manifest.json",
            "the manifest",
        ),
        (vec!["diff", "report.json", "other.json", "--output", "NAME"], "report.json", "the baseline"),
        (vec!["diff", "report.json", "other.json", "--output", "NAME"], "other.json", "the current report"),
    ];
    let (hard, link) = (place.path().join("hard"), place.path().join("link"));
    for (arguments, input, what) in rows {
        let before = fs::read(place.path().join(input)).unwrap();
        fs::hard_link(place.path().join(input), &hard).unwrap();
        symlink(input, &link).unwrap();
        for name in [input, "hard", "link"] {
            let arguments: Vec<String> = arguments.iter().map(|word| word.replace("NAME", name)).collect();
            let outcome = place.run(&arguments);
            assert_eq!(outcome.code, Some(2), "{arguments:?}: {}", outcome.stderr);
            let words = format!("{name}: this is {what} that is read; write elsewhere\n");
            assert!(outcome.stderr.ends_with(&words), "{arguments:?}: {}", outcome.stderr);
        }
        fs::remove_file(&hard).unwrap();
        fs::remove_file(&link).unwrap();
        assert_eq!(fs::read(place.path().join(input)).unwrap(), before, "{input}");
    }
    assert_eq!(place.journal_lines(), Vec::<String>::new(), "no server was started");
    // Standard input and standard output may be one file too.
    let command = into(&place, "< report.json >> report.json", &["report", "-"]);
    let outcome = Running::start(command).finish(PATIENCE);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
}

#[test]
fn a_device_stays_a_device_and_a_full_one_is_told() {
    let place = Place::new(programs!());
    stored_report(&place, "report.json");
    for name in ["/dev/full", "full"] {
        _ = symlink("/dev/full", place.path().join("full"));
        let outcome = place.run(["report", "report.json", "--output", name]);
        assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
        let words = format!("error: {name}: the disk is full; make room, or write elsewhere\n");
        assert!(outcome.stderr.ends_with(&words), "{}", outcome.stderr);
    }
    let outcome = Running::start(into(&place, "> /dev/full", &["report", "report.json"])).finish(PATIENCE);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("standard output: the disk is full"), "{}", outcome.stderr);
    let nothing = ["--output", "/dev/null", "--report", "json=/dev/null", "--run-log", "/dev/null"];
    let outcome = place.on("score", &nothing, "good");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn a_link_that_leads_to_nothing_yet_leads_to_the_result() {
    let place = Place::new(programs!());
    fs::create_dir(place.path().join("results")).unwrap();
    symlink("results/today.json", place.path().join("latest")).unwrap();
    stored_report(&place, "latest");
    let link = fs::symlink_metadata(place.path().join("latest")).unwrap();
    assert!(link.is_symlink() && place.path().join("results/today.json").is_file());
}
