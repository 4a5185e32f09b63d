use std::ffi::OsString;

use clap::Parser as _;

use super::*;
use crate::error::Error;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

fn score(line: &str) -> Box<score::Score> {
    match parse(line).unwrap_or_else(|error| panic!("{line}: {error}")).command {
        Command::Score(score) => score,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definitions_agree_with_themselves() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_shows_an_example_and_its_exit_codes() {
    fn walk(command: &mut clap::Command) {
        let help = command.render_long_help().to_string();
        assert!(help.contains("Example"), "{help}");
        assert!(help.contains("Exit codes:\n  0  "), "{help}");
        command.get_subcommands_mut().filter(|inner| inner.get_name() != "help").for_each(walk);
    }
    let mut command = Cli::command();
    command.build();
    walk(&mut command);
}

#[test]
fn exactly_one_target_is_asked_for() {
    for line in [
        "mcpeval score",
        "mcpeval score --demo -- node a.js",
        "mcpeval score --demo --url http://127.0.0.1:1/mcp",
        "mcpeval score --url http://127.0.0.1:1/mcp -- node",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
    score("mcpeval score --demo");
    score("mcpeval score -- node --flag -x");
}

#[test]
fn options_that_mean_nothing_for_a_target_are_refused() {
    for line in [
        "mcpeval score --demo --env A=b",
        "mcpeval score --demo --cwd /",
        "mcpeval score --demo --allow-remote-http",
        "mcpeval score --broken slow -- node",
        "mcpeval score --header-env A=B -- node",
        "mcpeval score --allow-remote-http -- node",
        "mcpeval score --url http://127.0.0.1:1/ --broken slow",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn values_outside_their_range_are_refused() {
    for option in [
        "--lanes 0",
        "--lanes 17",
        "--startup-timeout 0",
        "--startup-timeout 301",
        "--min-readiness 101",
        "--min-readiness -1",
        "--min-area catalog",
        "--min-area catalog=101",
        "--price-per-mtok -1",
        "--price-per-mtok NaN",
        "--price-per-mtok inf",
        "--server a/b",
        "--skip-tool a/b",
        "--format xml",
        "--report xml=a",
        "--report json=",
        "--component a",
        "--grant a=socket",
        "--color blue",
        "-q -v",
    ] {
        let line = format!("mcpeval score --demo {option}");
        assert_eq!(parse(&line).unwrap_err().exit_code(), 2, "{line}");
    }
    score(
        "mcpeval score --demo --lanes 16 --startup-timeout 300 --min-readiness 100 --price-per-mtok 0 --color never -vv",
    );
}

#[test]
fn a_near_miss_is_named() {
    let fault = parse("mcpeval score --demo --report jsno=a").unwrap_err().to_string();
    assert!(fault.contains("the nearest is \"json\""), "{fault}");
    let fault = parse("mcpeval score --demo --min-readines 3").unwrap_err().to_string();
    assert!(fault.contains("--min-readiness"), "{fault}");
}

#[test]
fn floors_name_areas_of_the_standard_once() {
    let run = |line: &str| score(line).run(&Settings { color: Colour::Never, quiet: true, ..Settings::default() });
    for (line, words) in [
        (
            "mcpeval score --demo --min-area catalogue=3",
            "--min-area: mcpeval-standard/3 has no area \"catalogue\"; the nearest is \"catalog\"; there are protocol, catalog, context, error-honesty, reliability, coverage",
        ),
        ("mcpeval score --demo --min-area catalog=3 --min-area catalog=4", "--min-area catalog is given twice"),
        ("mcpeval score --demo --exclude-latency", "--exclude-latency needs a floor, --min-readiness or --min-area"),
        (
            "mcpeval score --demo --broken slwo",
            "--broken: the demo has no fault \"slwo\"; the nearest is \"slow\"; --list-broken names all",
        ),
        ("mcpeval score --env =s3cret -- node", "--env wants KEY=VALUE, with a name before the sign"),
        (
            "mcpeval score --url http://127.0.0.1:1/ --header-env a:b=X",
            "--header-env wants NAME=VAR, the name of a header and of a variable",
        ),
        (
            "mcpeval score --url http://127.0.0.1:1/ --header-env A=MCPEVAL_SURELY_UNSET",
            "--header-env A: the variable MCPEVAL_SURELY_UNSET is not set to text",
        ),
        (
            "mcpeval score --demo --grant area:catalogue=pipe",
            "--grant: no component is loaded as \"area:catalogue\"; the nearest is \"area:catalog\"; there are area:protocol, area:catalog, area:context, area:error-honesty, area:reliability, area:coverage",
        ),
    ] {
        match run(line) {
            Err(Error::Usage(fault)) => assert_eq!(fault, words, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn colour_is_known_before_the_options_are() {
    let choice = |line: &str| console::early_choice(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
    assert_eq!(choice("mcpeval --color always score"), clap::ColorChoice::Always);
    assert_eq!(choice("mcpeval score --color=never"), clap::ColorChoice::Never);
    assert_ne!(choice("mcpeval score -- node --color=always"), clap::ColorChoice::Always);
}

#[test]
fn every_command_has_a_page_and_pages_do_not_change() {
    let pages = shell::pages().unwrap();
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["mcpeval.1", "mcpeval-score.1", "mcpeval-probes-show.1", "mcpeval-man.1"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(names.first(), Some(&"mcpeval.1"));
    assert_eq!(pages, shell::pages().unwrap());
}

/// Runs a command over stored documents: its exit code, and what it wrote to a file.
fn over(folder: &std::path::Path, line: &str) -> (Result<u8>, String) {
    let output = folder.join("out");
    let words = line.split_whitespace().map(|word| match word.strip_prefix('@') {
        Some(name) => folder.join(name).display().to_string(),
        None => word.to_owned(),
    });
    let words = words.chain(["--output".to_owned(), output.display().to_string()]);
    let command = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}")).command;
    let settings = Settings { quiet: true, ..Settings::default() };
    let code = match command {
        Command::Report(report) => report.run(&settings),
        Command::Diff(diff) => diff.run(&settings),
        other => panic!("{other:?}"),
    };
    (code, std::fs::read_to_string(output).unwrap_or_default())
}

#[test]
fn stored_documents_are_rendered_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let base = r#"{"schema": "mcpeval.probe-report/v2", "generator": {"name": "mcpeval", "version": "1.0.0"}, "server": "shop",
        "manifest_sha256": "DIGEST", "passed": true, "gate": {"passed": 1, "total": 1}, "readiness": null, "readiness_error": null,
        "readiness_gate": null, "catalog": {"tools": []}, "cases": [{"id": "a", "probe": "acme.echo", "tool": null, "passed": true,
        "attempts": 1, "first_failure": null, "reason": null, "hint": null, "detail": null, "measurements": {}}]}"#;
    let manifest =
        "{\n\"version\": 1, \"probes\": [\n{\"probe\": \"acme.echo\", \"id\": \"a\", \"access\": \"read_only\"}]}";
    let digest = crate::report::canonical::digest(manifest.as_bytes()).to_string();
    let base = base.replace("DIGEST", &digest);
    let failed = base
        .replace("\"passed\": true", "\"passed\": false")
        .replace("\"gate\": {\"passed\": 1", "\"gate\": {\"passed\": 0")
        .replace("\"reason\": null, \"hint\": null", "\"reason\": \"acme.differs\", \"hint\": \"Echo it.\"");
    let errored = failed.replace("acme.differs", "transport-closed");
    for (name, text) in [
        ("base", base.as_str()),
        ("failed", &failed),
        ("errored", &errored),
        ("manifest.json", manifest),
        ("other.json", "no manifest at all"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let run = |line: &str| over(folder.path(), line);
    for (line, code) in [
        ("mcpeval report @base", 0),
        ("mcpeval report @failed", 1),
        ("mcpeval report @errored", 3),
        ("mcpeval diff @base @failed", 0),
        ("mcpeval diff @base @failed --fail-on-regression", 1),
        ("mcpeval diff @base @errored --fail-on-regression", 3),
        ("mcpeval diff @base @base --fail-on-breaking --fail-on-removed", 0),
    ] {
        assert_eq!(run(line).0.unwrap(), code, "{line}");
    }
    for (line, words) in [
        ("mcpeval diff - -", "only one of the two reports can be standard input"),
        ("mcpeval diff @base @none", "none: "),
        ("mcpeval diff @base @base --max-readiness-drop 3", "--max-readiness-drop: the baseline holds no score"),
        ("mcpeval report @manifest.json", "/schema: must be"),
        ("mcpeval report @other.json", "other.json:1:"),
        ("mcpeval report @base --manifest @none", "none: "),
    ] {
        let fault = run(line).0.unwrap_err();
        assert_eq!(fault.exit_code(), 2, "{line}");
        assert!(fault.to_string().contains(words), "{line}: {fault}");
    }
    assert_eq!(
        run("mcpeval report @failed").1,
        "a acme.echo fail attempts=1 reason=acme.differs\n    Echo it.\nshop gate 0/1\n"
    );
    assert!(run("mcpeval diff @base @failed").1.starts_with("a acme.echo regressed reason=acme.differs\n"));
    let document: serde_json::Value = serde_json::from_str(&run("mcpeval diff @base @failed --format json").1).unwrap();
    assert_eq!(document["summary"]["regressed"], 1);
    let placed = run("mcpeval report @failed --format sarif --manifest @manifest.json").1;
    assert!(placed.contains("manifest.json") && placed.contains("\"startLine\": 3"), "{placed}");
    let ignored = run("mcpeval report @failed --format sarif --manifest @other.json").1;
    assert!(!ignored.contains("other.json"), "a manifest that has changed is ignored: {ignored}");
}

#[test]
fn gates_and_checks_refuse_what_makes_no_sense() {
    for line in [
        "mcpeval diff a",
        "mcpeval diff a b c",
        "mcpeval diff a b --exclude-latency",
        "mcpeval diff a b --max-readiness-drop 101",
        "mcpeval diff a b --max-readiness-drop -1",
        "mcpeval diff a b --format sarif",
        "mcpeval report",
        "mcpeval report a --check --format json",
        "mcpeval report a --check --output b",
        "mcpeval report a --check --manifest b",
        "mcpeval report a --min-readiness 3",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}
