//! Manifests for published servers pass, and with one line changed they fail with the right reason.

use std::ffi::OsString;
use std::fs;

use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use serde_json::Value;

/// Case, words of the manifest, what stands there instead, and the reason that follows.
type Change = (&'static str, &'static str, &'static str, &'static str);

/// A server and how to reach it.
struct Subject<'a> {
    place: &'a Place,
    /// The manifest's text.
    text: String,
    options: Vec<OsString>,
    /// What stands at the end of the command line.
    target: Vec<OsString>,
}

impl Subject<'_> {
    fn run(&self, text: &str, selection: &[&str]) -> Outcome {
        let file = self.place.file("manifest.yaml", text);
        let mut command = self.place.mcpeval(["probe", "--format", "json", "--allow-mutation"]);
        command.args(selection).args(&self.options).arg("--manifest").arg(file).args(&self.target);
        Running::start(command).finish(PATIENCE)
    }

    fn passes(&self) {
        let outcome = self.run(&self.text, &["--gate-only"]);
        let report = outcome.report();
        let cases = report.at("/cases").as_array().expect("cases");
        let failed: Vec<&Value> = cases.iter().filter(|case| case["passed"] != true).collect();
        assert!(failed.is_empty() && outcome.code == Some(0), "{failed:#?}\n{}", outcome.stderr);
    }

    fn fails_when(&self, changes: &[Change]) {
        for (id, from, to, reason) in changes {
            let start = self.text.find(&format!("id: {id}")).unwrap_or_else(|| panic!("no case {id}"));
            let at = start + self.text[start..].find(from).unwrap_or_else(|| panic!("no {from} after {id}"));
            let edited = format!("{}{to}{}", &self.text[..at], &self.text[at + from.len()..]);
            let outcome = self.run(&edited, &["--case", id]);
            let report = outcome.report();
            let found = (outcome.code, report.at("/cases/0/id").as_str(), report.at("/cases/0/reason").as_str());
            assert_eq!(found, (Some(1), Some(*id), Some(*reason)), "{from} -> {to}: {}", outcome.stderr);
        }
    }

    /// Refused with those words.
    fn refuses(&self, id: &str, from: &str, to: &str, words: &[&str]) {
        let outcome = self.run(&self.text.replacen(from, to, 1), &["--case", id]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
        for word in words {
            assert!(outcome.stderr.contains(word), "{word} is missing: {}", outcome.stderr);
        }
    }
}

fn after_dashes(command: Vec<OsString>) -> Vec<OsString> {
    [vec!["--".into()], command].concat()
}

const EVERYTHING: &[Change] = &[
    ("tools", "max_tools: 13", "max_tools: 12", "discovery-limit-exceeded"),
    ("tokens", "max_total_tokens: 1915", "max_total_tokens: 1914", "token-budget-exceeded"),
    ("echo", "{message: tea}", "{messages: tea}", "missing-required-argument"),
    ("sum", "The sum", "A sum", "text-mismatch"),
    ("no-sum", "-32000", "-32602", "error-code-mismatch"),
    ("no-sum", "outcome: error, error_code: -32000", "outcome: ok", "unexpected-outcome"),
    ("sums", "b: 2", "b: two", "unexpected-outcome"),
    ("weather", "location: Chicago", "location: Atlantis", "unexpected-outcome"),
    ("cancel", "duration: 2", "duration: soon", "unexpected-outcome"),
    ("both", "b: 2", "b: two", "contended-client-failed"),
    ("recovers", "failure_arguments: {a: one}", "failure_arguments: {a: 1, b: 2}", "failure-not-observed"),
    ("recovers", "recovery_arguments: {a: 1, b: 2}", "recovery_arguments: {a: 1}", "recovery-failed"),
    ("recovers", "validation_arguments: {message: tea}", "validation_arguments: {}", "validation-failed"),
    ("steps", "^Echo: tea$", "^Echo tea$", "text-mismatch"),
    ("asks-no-model", "{message: tea}", "{}", "unexpected-outcome"),
];

#[test]
fn everything_over_either_transport() {
    let Some(real) = Real::find("server-everything with a manifest") else { return };
    let place = Place::new(programs!());
    let text = include_str!("../fixtures/manifests/everything.yaml").to_owned();
    let command = [real.node("everything"), vec!["stdio".into()]].concat();
    let stdio = Subject { place: &place, text, options: Vec::new(), target: after_dashes(command) };
    let server = real.everything_over_http(&place);
    let target = vec!["--url".into(), OsString::from(&server.url)];
    let http = Subject { place: &place, text: stdio.text.clone(), options: Vec::new(), target };
    for subject in [&stdio, &http] {
        subject.passes();
    }
    stdio.fails_when(EVERYTHING);
    http.fails_when(&[EVERYTHING[3], EVERYTHING[8], EVERYTHING[9]]);
    stdio.refuses("sum", "tool: get-sum", "tool: get-sun", &["\"get-sum\""]);
    stdio.refuses("sum", "tool: get-sum", "tool: toggle-simulated-logging", &["read_only", "toggle-simulated-logging"]);
    // It shows these two to clients that can be asked, and says of them that they write.
    for (id, tool) in [("asks-no-model", "trigger-sampling-request"), ("asks-no-user", "trigger-elicitation-request")] {
        let to = format!("id: {id}, access: read_only, tool: {tool}");
        stdio.refuses(
            id,
            &format!("id: {id}, access: read_only, tool: echo"),
            &to,
            &[tool, "declares that it writes; no option lets"],
        );
    }
}

#[test]
fn filesystem() {
    let Some(real) = Real::find("server-filesystem with a manifest") else { return };
    let place = Place::new(programs!());
    let folder = place.path().join("folder");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("note.txt"), "one\ntwo\n").expect("a file");
    let text = include_str!("../fixtures/manifests/filesystem.yaml").replace("FOLDER", &folder.display().to_string());
    let target = after_dashes([real.node("filesystem"), vec![folder.into()]].concat());
    let subject = Subject { place: &place, text, options: Vec::new(), target };
    subject.passes();
    subject.fails_when(&[
        ("tools", "max_tools: 14", "max_tools: 13", "discovery-limit-exceeded"),
        ("read", "head: 1", "head: 2", "value-mismatch"),
        ("outside", "text_contains: Access denied", "text_contains: ENOENT", "text-mismatch"),
        (
            "output",
            "tool: list_directory, arguments: {path:",
            "tool: list_directory, arguments: {pth:",
            "unexpected-outcome",
        ),
        ("edit", "oldText: two", "oldText: twelve", "recovery-failed"),
        ("see", "text_equals: three", "text_equals: four", "text-mismatch"),
    ]);
    subject.refuses(
        "write",
        "access: mutating\n    sandbox: scratch\n    tool: write_file",
        "access: read_only\n    tool: write_file",
        &["write_file", "read_only"],
    );
}

#[test]
fn memory() {
    let Some(real) = Real::find("server-memory with a manifest") else { return };
    let place = Place::new(programs!());
    let run = |text: &str, graph: &str| {
        let file = format!("MEMORY_FILE_PATH={}", place.path().join(graph).display());
        let (options, target) = (vec!["--env".into(), file.into()], after_dashes(real.node("memory")));
        Subject { place: &place, text: text.to_owned(), options, target }
    };
    let text = include_str!("../fixtures/manifests/memory.yaml");
    run(text, "first.json").passes();
    run(text, "second.json").fails_when(&[
        ("tokens", "max_total_tokens: 2688", "max_total_tokens: 2687", "token-budget-exceeded"),
        ("found", "query: tea", "query: coffee", "value-mismatch"),
        ("observe", "{name: tea, entityType", "{name: coffee, entityType", "validation-failed"),
        ("both", "tool: read_graph", "tool: open_nodes", "contended-client-failed"),
    ]);
    // What an earlier version of mcpeval wrote for it.
    run(include_str!("../fixtures/manifests-0.8/memory.json"), "third.json").passes();
}

#[test]
fn time() {
    let Some(real) = Real::find("mcp-server-time with a manifest") else { return };
    let place = Place::new(programs!());
    let text = include_str!("../fixtures/manifests/time.yaml").to_owned();
    let target = after_dashes(real.python("time"));
    let subject = Subject { place: &place, text, options: vec!["--env".into(), "TZ=UTC".into()], target };
    subject.passes();
    subject.fails_when(&[
        ("now", "Asia/Tokyo", "Moon/Base", "unexpected-outcome"),
        ("convert", "+9.0h", "+9h", "value-mismatch"),
        ("convert", "/structuredContent/target/is_dst", "/structuredContent/goal/is_dst", "missing-field"),
        ("no-such-hour", "99:00", "09:00", "unexpected-outcome"),
        ("tools", "max_schema_bytes: 4000", "max_schema_bytes: 400", "discovery-limit-exceeded"),
    ]);
}
