//! Published servers get exactly these numbers, over either transport.

use std::ffi::OsString;
use std::path::Path;

use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::report::Report;
use mcpeval_tests::run::{PATIENCE, Place, Running};

/// What a report must say: the first word is an area, a surface count or a measurement.
type Numbers = &'static [(&'static str, u64)];

const EVERYTHING: Numbers = &[
    ("tools", 13),
    ("writers", 4),
    ("catalog_tokens", 1_915),
    ("protocol", 100),
    ("catalog", 72),
    ("context", 100),
    ("error-honesty", 100),
    ("coverage", 100),
];

fn number(report: &Report, name: &str) -> Option<u64> {
    report
        .area_score(name)
        .or_else(|| report.number(&format!("/readiness/surface/{name}")))
        .or_else(|| report.measurement(name))
}

fn check(server: &str, report: &Report, numbers: Numbers) {
    let found: Vec<(&str, Option<u64>)> = numbers.iter().map(|(name, _)| (*name, number(report, name))).collect();
    let wanted: Vec<(&str, Option<u64>)> = numbers.iter().map(|(name, value)| (*name, Some(*value))).collect();
    let losses: Vec<String> = report.losses().iter().map(ToString::to_string).collect();
    assert_eq!(found, wanted, "{server} loses\n{}", losses.join("\n"));
}

fn score(place: &Place, options: &[&str], server: Vec<OsString>) -> Report {
    let mut command = place.mcpeval(["score", "--format", "json", "--confirm-read-only"]);
    command.args(options).arg("--").args(server);
    let outcome = Running::start(command).finish(PATIENCE);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.report()
}

#[test]
fn everything_over_stdio() {
    let Some(real) = Real::find("server-everything") else { return };
    let place = Place::new(programs!());
    let server = [real.node("everything"), vec!["stdio".into()]].concat();
    check("server-everything", &score(&place, &[], server), EVERYTHING);
    place.assert_clean();
}

#[test]
fn everything_over_http() {
    let Some(real) = Real::find("server-everything over HTTP") else { return };
    let place = Place::new(programs!());
    let server = real.everything_over_http(&place);
    let outcome = place.score_url(&["--confirm-read-only"], &server.url);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    check("server-everything over HTTP", &outcome.report(), EVERYTHING);
}

#[test]
fn filesystem() {
    let Some(real) = Real::find("server-filesystem") else { return };
    let place = Place::new(programs!());
    let server = [real.node("filesystem"), vec![place.temp().into()]].concat();
    check(
        "server-filesystem",
        &score(&place, &[], server),
        &[
            ("tools", 14),
            ("catalog_tokens", 3_246),
            ("protocol", 100),
            ("catalog", 84),
            ("context", 88),
            ("error-honesty", 100),
        ],
    );
}

#[test]
fn memory() {
    let Some(real) = Real::find("server-memory") else { return };
    let place = Place::new(programs!());
    let file = format!("MEMORY_FILE_PATH={}", place.path().join("memory.json").display());
    let report = score(&place, &["--env", &file], real.node("memory"));
    let numbers: Numbers =
        &[("catalog_tokens", 2_688), ("protocol", 100), ("catalog", 89), ("context", 93), ("coverage", 100)];
    check("server-memory", &report, numbers);
    let unreliable: Vec<String> = report
        .losses()
        .iter()
        .filter(|loss| loss.check.starts_with("reliability.") && loss.check != "reliability.latency")
        .map(ToString::to_string)
        .collect();
    assert_eq!(unreliable, Vec::<String>::new());
    if report.losses().iter().all(|loss| loss.check != "reliability.latency") {
        check("server-memory", &report, &[("reliability", 100)]);
    }
}

#[test]
fn sequential_thinking() {
    let Some(real) = Real::find("server-sequential-thinking") else { return };
    let place = Place::new(programs!());
    let report = score(&place, &[], real.node("sequential-thinking"));
    let numbers: Numbers = &[("catalog_tokens", 1_160), ("protocol", 100), ("catalog", 100), ("context", 91)];
    check("server-sequential-thinking", &report, numbers);
}

#[test]
fn time() {
    let Some(real) = Real::find("mcp-server-time") else { return };
    let place = Place::new(programs!());
    // The local time zone stands in the descriptions.
    let report = score(&place, &["--env", "TZ=UTC"], real.python("time"));
    let numbers: Numbers = &[("catalog_tokens", 566), ("protocol", 100), ("catalog", 80), ("coverage", 100)];
    check("mcp-server-time", &report, numbers);
}

#[test]
fn git() {
    let Some(real) = Real::find("mcp-server-git") else { return };
    let place = Place::new(programs!());
    let repository = place.path().join("repository");
    repository_at(&place, &repository);
    let path = repository.display().to_string();
    let mut arguments = serde_json::Map::new();
    for tool in ["git_status", "git_diff_unstaged", "git_diff_staged", "git_log"] {
        arguments.insert(tool.to_owned(), serde_json::json!({"repo_path": path}));
    }
    arguments.insert("git_diff".to_owned(), serde_json::json!({"repo_path": path, "target": "HEAD"}));
    arguments.insert("git_show".to_owned(), serde_json::json!({"repo_path": path, "revision": "HEAD"}));
    arguments.insert("git_branch".to_owned(), serde_json::json!({"repo_path": path, "branch_type": "local"}));
    let file = place.file("arguments.json", serde_json::Value::from(arguments).to_string()).display().to_string();
    let report = score(&place, &["--arguments", &file], real.python("git"));
    check("mcp-server-git", &report, &[("catalog", 54), ("context", 100), ("coverage", 100)]);
}

/// A repository with one commit.
fn repository_at(place: &Place, folder: &Path) {
    std::fs::create_dir(folder).expect("a folder in a place of its own");
    std::fs::write(folder.join("readme"), "words\n").expect("a file in it");
    for arguments in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["add", "readme"],
        &["-c", "user.name=mcpeval", "-c", "user.email=mcpeval@example.com", "commit", "--quiet", "--message", "Begin"],
    ] {
        let status = place.command("git").current_dir(folder).args(arguments).status().expect("git");
        assert!(status.success(), "git {arguments:?}");
    }
}
