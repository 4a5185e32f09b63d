//! The GitHub Action: what it refuses, what it runs, what it tells the runner, and its one comment per server.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use mcpeval::notation::{Document, Notation};
use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// A runner's job: a place with programs of its own before those of the machine.
struct Job {
    place: Place,
    bin: PathBuf,
}

impl Job {
    fn new() -> Self {
        let place = Place::new(programs!());
        let bin = place.path().join("bin");
        fs::create_dir(&bin).expect("a folder");
        Self { place, bin }
    }

    /// Puts a program before those of the machine.
    fn program(&self, name: &str, script: &str) {
        let path = self.place.file(&format!("bin/{name}"), format!("#!/bin/bash\n{script}"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
    }

    fn command(&self, step: &str, variables: &[(&str, &str)]) -> Command {
        let mut command = self.place.command(root().join(".github/action/mcpeval-ci"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path: OsString = [self.bin.clone().into(), OsString::from(":"), path].into_iter().collect();
        for name in ["GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "RUNNER_TOOL_CACHE", "GH_TOKEN"] {
            command.env_remove(name);
        }
        command
            .arg(step)
            .env("PATH", path)
            .env("RUNNER_OS", "Linux")
            .env("RUNNER_ARCH", "X64")
            .env("RUNNER_TEMP", self.place.path())
            .env("GITHUB_OUTPUT", self.place.path().join("output"))
            .env("GITHUB_STEP_SUMMARY", self.place.path().join("summary"))
            .env("GITHUB_REPOSITORY", "acme/shop")
            .env("ACTION_PATH", root())
            .env("ACTION_REPOSITORY", "acme/mcpeval")
            .env("PROGRAM", programs!().mcpeval);
        command.envs(variables.iter().copied());
        command
    }

    /// Runs one step.
    fn run(&self, step: &str, variables: &[(&str, &str)]) -> Outcome {
        let _ = fs::remove_file(self.place.path().join("output"));
        Running::start(self.command(step, variables)).finish(PATIENCE)
    }

    /// What the last step gave to those after it.
    fn given(&self) -> BTreeMap<String, String> {
        let text = fs::read_to_string(self.place.path().join("output")).unwrap_or_default();
        let pairs = text.lines().map(|line| line.split_once('=').expect("NAME=VALUE"));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Runs the evaluation of a target, which stands in `args`, one argument a line.
    fn evaluate(&self, args: &str, variables: &[(&str, &str)]) -> (BTreeMap<String, String>, Outcome) {
        let outcome = self.run("evaluate", &[&[("INPUT_ARGS", args)], variables].concat());
        assert_eq!(outcome.code, Some(0), "a later step ends with the code: {}{}", outcome.stdout, outcome.stderr);
        (self.given(), outcome)
    }
}

/// Whether the machine has jq, as runners do; the same as [`Real`] where it has not.
fn has_jq() -> bool {
    Real::has_program("jq")
}

#[test]
fn wrong_inputs_are_refused_before_anything_is_built() {
    let job = Job::new();
    for (variables, words) in [
        (&[("INPUT_COMMAND", "run")][..], "the command run is not part of this version of mcpeval; use score or probe"),
        (&[("INPUT_COMMAND", "scroe")], "the input command must be score or probe"),
        (&[("RUNNER_OS", "Windows")], "Windows runners are not supported"),
        (&[("INPUT_FAIL_ON_REGRESSION", "true")], "the input fail-on-regression needs the input baseline"),
        (&[("INPUT_FAIL_ON_BREAKING", "true")], "the input fail-on-breaking needs the input baseline"),
        (&[("INPUT_BASELINE", "no.json")], "the input baseline names no file"),
        (&[("INPUT_SARIF", "yes")], "the input sarif must be true or false"),
        (&[("INPUT_COMMENT", "1")], "the input comment must be true or false"),
        (&[("INPUT_VERSION", "latest")], "the input version must be a version such as 0.1.0"),
        (&[("INPUT_VERSION", "0.1.0 --git x")], "the input version must be a version such as 0.1.0"),
        (&[("INPUT_VERSION", "./no/mcpeval")], "the input version names no program"),
    ] {
        let outcome = job.run("check", variables);
        assert_eq!(outcome.code, Some(2), "{variables:?}: {}", outcome.stdout);
        assert!(outcome.stdout.starts_with("::error title=mcpeval::"), "{}", outcome.stdout);
        assert!(outcome.stdout.contains(words) && outcome.stdout.lines().count() == 1, "{}", outcome.stdout);
    }
    let baseline = job.place.file("base.json", "{}");
    let outcome =
        job.run("check", &[("INPUT_BASELINE", baseline.to_str().expect("a path")), ("INPUT_FAIL_ON_BREAKING", "true")]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
}

#[test]
fn a_program_is_built_once_for_what_it_is_built_from() {
    let job = Job::new();
    assert_eq!(job.run("check", &[]).code, Some(0));
    let own = job.given();
    assert_eq!(job.run("check", &[]).code, Some(0));
    assert_eq!(own, job.given());
    assert!(own["key"].starts_with("mcpeval-Linux-X64-") && own["key"].len() > 64, "{own:?}");
    assert_eq!(job.run("check", &[("INPUT_VERSION", "v0.1.0")]).code, Some(0));
    let tagged = job.given();
    assert_eq!(tagged["key"], "mcpeval-Linux-X64-v0.1.0");

    job.program("rustup", "echo \"rustup $*\" >&2");
    job.program(
        "cargo",
        "echo \"cargo $* on $RUSTUP_TOOLCHAIN\" >&2\nmkdir -p \"$4/bin\"\nprintf '#!/bin/sh\\necho 0\\n' > \"$4/bin/mcpeval\"\nchmod +x \"$4/bin/mcpeval\"",
    );
    let folder = job.place.path().join("built");
    let folder = folder.to_str().expect("a path");
    let install = |version: &str| job.run("install", &[("INPUT_VERSION", version), ("FOLDER", folder)]);
    let outcome = install("v0.1.0");
    let words = format!(
        "cargo install --locked --root {folder} --git https://github.com/acme/mcpeval --tag v0.1.0 mcpeval on 1."
    );
    assert!(outcome.stderr.contains(&words), "{}", outcome.stderr);
    assert_eq!(job.given()["program"], format!("{folder}/bin/mcpeval"));
    assert!(!install("0.1.0").stderr.contains("cargo install"), "it is there already");
    fs::remove_dir_all(folder).expect("the built program");
    let outcome = install("");
    let words = format!("cargo install --locked --root {folder} --path {}/host on 1.", root().display());
    assert!(outcome.stderr.contains(&words), "{}", outcome.stderr);

    let outcome = job.run("install", &[("INPUT_VERSION", "bin/cargo")]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let program = PathBuf::from(&job.given()["program"]);
    assert!(program.is_absolute() && program.ends_with("bin/cargo"), "{program:?}");
}

#[test]
fn a_score_is_told_to_the_steps_after_it() {
    if !has_jq() {
        return;
    }
    let job = Job::new();
    let (given, outcome) = job.evaluate("--demo\n--lanes\n1\n", &[("INPUT_SARIF", "true")]);
    assert_eq!((given["code"].as_str(), given["passed"].as_str()), ("0", "true"), "{}", outcome.stderr);
    assert_eq!((given["score"].as_str(), given["label"].as_str()), ("100", "demo"));
    let report: Value = serde_json::from_slice(&fs::read(&given["report"]).expect("the report")).expect("JSON");
    assert_eq!(report["server"], "demo");
    let sarif: Value = serde_json::from_slice(&fs::read(&given["sarif"]).expect("SARIF")).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    let summary = fs::read_to_string(job.place.path().join("summary")).expect("the summary");
    assert_eq!(summary, fs::read_to_string(&given["markdown"]).expect("markdown"));
    assert!(summary.contains("demo"), "{summary}");
    job.place.assert_clean();
}

#[test]
fn every_end_of_mcpeval_is_the_end_of_the_action() {
    if !has_jq() {
        return;
    }
    let job = Job::new();
    for (args, floor, code, score, reported) in [
        ("--demo\n--broken\nbloated", "100", "1", true, true),
        ("--demo", "101", "2", false, false),
        ("", "", "2", false, false),
        ("--\n/no/such/server", "", "3", false, true),
    ] {
        let (given, outcome) = job.evaluate(args, &[("INPUT_MIN_READINESS", floor)]);
        assert_eq!((given["code"].as_str(), given["passed"].as_str()), (code, "false"), "{}", outcome.stderr);
        assert_eq!((!given["score"].is_empty(), !given["report"].is_empty()), (score, reported), "{args}");
        let end = job.run("end", &[("CODE", code)]);
        assert_eq!(end.code, code.parse().ok());
        assert!(end.stdout.starts_with("::error title=mcpeval::"), "{}", end.stdout);
    }
    let end = job.run("end", &[("CODE", "0")]);
    assert_eq!((end.code, end.stdout.as_str()), (Some(0), ""));
}

#[test]
fn inputs_are_arguments_and_never_code() {
    if !has_jq() {
        return;
    }
    let job = Job::new();
    let odd = "--server\n$(touch hacked)`touch hacked`\"; touch hacked; \"\n--demo";
    let (given, outcome) = job.evaluate(odd, &[("INPUT_MIN_READINESS", "$(touch hacked)")]);
    assert_eq!(given["code"], "2", "{}", outcome.stderr);
    assert!(!job.place.path().join("hacked").exists());
    let (given, _) = job.evaluate("--\n/bin/sh\n-c\ntouch 'a b'; exit 3", &[]);
    assert_eq!(given["code"], "3");
    assert!(job.place.path().join("a b").exists(), "a line is one argument, blanks and all");
}

#[test]
fn a_server_cannot_speak_to_the_runner() {
    if !has_jq() {
        return;
    }
    let job = Job::new();
    let script = "env | grep ^GITHUB_ >&2; echo '::add-mask::x' >&2; exit 3";
    let (_, outcome) =
        job.evaluate(&format!("--\n/bin/sh\n-c\n{script}"), &[("GITHUB_ENV", "e"), ("GITHUB_PATH", "p")]);
    for file in ["GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"] {
        assert!(!outcome.stderr.contains(file), "{}", outcome.stderr);
    }
    assert!(outcome.stderr.contains("GITHUB_REPOSITORY=acme/shop"), "the rest it has: {}", outcome.stderr);
    let mut lines = outcome.stdout.lines();
    let token = lines.next().and_then(|line| line.strip_prefix("::stop-commands::")).expect("no words from here");
    assert_eq!(token.len(), 32);
    assert!(lines.any(|line| line == format!("::{token}::")), "{}", outcome.stdout);
}

#[test]
fn what_passed_is_compared_with_the_baseline() {
    if !has_jq() {
        return;
    }
    let job = Job::new();
    let (before, _) = job.evaluate("--demo", &[]);
    let gates = |baseline: &str, gate: &str| -> Vec<(String, String)> {
        vec![("INPUT_BASELINE".to_owned(), baseline.to_owned()), (gate.to_owned(), "true".to_owned())]
    };
    let compare = |baseline: &str, gate: &str| {
        let gates = gates(baseline, gate);
        let gates: Vec<(&str, &str)> = gates.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (given, outcome) = job.evaluate("--demo", &gates);
        (
            given["code"].clone(),
            given["passed"].clone(),
            fs::read_to_string(&given["markdown"]).expect("markdown"),
            outcome,
        )
    };
    let alone = fs::read_to_string(&before["markdown"]).expect("markdown");
    let (code, passed, markdown, outcome) = compare(&before["report"], "INPUT_FAIL_ON_BREAKING");
    assert_eq!((code.as_str(), passed.as_str()), ("0", "true"), "{}", outcome.stderr);
    assert!(markdown.starts_with(&alone) && markdown.len() > alone.len(), "the comparison follows the report");

    // A tool that was there before is gone.
    let mut richer: Value = serde_json::from_slice(&fs::read(&before["report"]).expect("the report")).expect("JSON");
    let tools = richer["catalog"]["tools"].as_array_mut().expect("tools");
    tools.last_mut().expect("a tool")["name"] = "zz_gone".into();
    let richer = job.place.file("richer.json", richer.to_string());
    let richer = richer.to_str().expect("a path");
    let (code, passed, markdown, outcome) = compare(richer, "INPUT_FAIL_ON_BREAKING");
    assert_eq!((code.as_str(), passed.as_str()), ("1", "false"), "{}", outcome.stderr);
    assert!(markdown.contains("zz_gone") && outcome.stdout.contains("zz_gone"), "{markdown}");
    let (code, _, _, outcome) = compare(richer, "INPUT_FAIL_ON_REGRESSION");
    assert_eq!(code, "0", "no case regressed: {}", outcome.stderr);

    let broken = job.place.file("broken.json", "{}");
    let (code, ..) = compare(broken.to_str().expect("a path"), "INPUT_FAIL_ON_BREAKING");
    assert_eq!(code, "2", "a baseline that is no report");
}

/// Comments of a pull request as GitHub lists them.
fn comments() -> String {
    let comment = |id: u32, kind: &str, body: &str| json!({"id": id, "user": {"type": kind}, "body": body});
    let pages = [
        json!([
            comment(1, "User", "<!-- mcpeval: shop -->\nby a person"),
            comment(2, "Bot", "<!-- mcpeval: shop-2 -->\nof another server"),
            comment(3, "Bot", "<!-- mcpeval: shop -->\nof this server"),
        ]),
        json!([
            comment(4, "Bot", "<!-- mcpeval: shop -->\nand once more"),
            comment(5, "Bot", "quotes <!-- mcpeval: shop -->")
        ]),
    ];
    pages.map(|page| page.to_string()).concat()
}

/// Runs the step `comment` with those comments, and gives what gh was asked for and the body it was given.
fn comment(job: &Job, comments: &str, event: &Value, markdown: &str) -> (Outcome, Vec<String>, String) {
    job.program(
        "gh",
        "echo \"$*\" >> \"$RUNNER_TEMP/asked\"
[ \"$GH_TOKEN\" = token ] || exit 1
for word; do case $word in body=@*) cp \"${word#body=@}\" \"$RUNNER_TEMP/body\" ;; esac; done
case $* in *--paginate*) cat \"$RUNNER_TEMP/comments\" ;; esac",
    );
    for file in ["asked", "body"] {
        let _ = fs::remove_file(job.place.path().join(file));
    }
    job.place.file("comments", comments);
    let event = job.place.file("event.json", event.to_string());
    let markdown = job.place.file("report.md", markdown);
    let path = |path: &Path| path.to_str().expect("a path").to_owned();
    let outcome = job.run(
        "comment",
        &[
            ("GITHUB_EVENT_PATH", &path(&event)),
            ("MARKDOWN", &path(&markdown)),
            ("LABEL", "shop"),
            ("GH_TOKEN", "token"),
        ],
    );
    let read = |name: &str| fs::read_to_string(job.place.path().join(name)).unwrap_or_default();
    (outcome, read("asked").lines().map(str::to_owned).collect(), read("body"))
}

#[test]
fn one_comment_per_server_is_replaced_at_the_next_run() {
    if !has_jq() {
        return;
    }
    let job = Job::new();
    let event = json!({"pull_request": {"number": 7}});
    let (outcome, asked, body) = comment(&job, "[]", &event, "# shop\n");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{}", outcome.stderr);
    assert_eq!(body, "<!-- mcpeval: shop -->\n# shop\n");
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[0], "api --paginate repos/acme/shop/issues/7/comments?per_page=100");
    assert!(asked[1].starts_with("api --silent --method POST repos/acme/shop/issues/7/comments --field body=@"));

    let (outcome, asked, body) = comment(&job, &comments(), &event, "# better\n");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(body, "<!-- mcpeval: shop -->\n# better\n");
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked[1].starts_with("api --silent --method PATCH repos/acme/shop/issues/comments/3 --field body=@"));
    assert_eq!(asked[2], "api --silent --method DELETE repos/acme/shop/issues/comments/4");
}

#[test]
fn a_comment_that_cannot_be_made_is_no_verdict() {
    if !has_jq() {
        return;
    }
    let job = Job::new();
    let (outcome, asked, _) = comment(&job, "[]", &json!({"ref": "main"}), "# shop\n");
    assert_eq!(outcome.code, Some(0));
    assert!(asked.is_empty() && outcome.stdout.contains("::warning title=mcpeval::there is no pull request"));
    let long = "\u{e9}".repeat(70_000);
    let (_, _, body) = comment(&job, "[]", &json!({"pull_request": {"number": 7}}), &long);
    assert!(body.chars().count() < 65_536 && body.contains("cut here"), "{}", body.len());

    job.program("gh", "exit 1");
    let event = job.place.path().join("event.json");
    let variables =
        [("GITHUB_EVENT_PATH", event.to_str().expect("a path")), ("MARKDOWN", "report.md"), ("LABEL", "shop")];
    let outcome = job.run("comment", &variables);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("needs the permission pull-requests: write"), "{}", outcome.stdout);
}

fn action() -> Value {
    let document = Document::read(&root().join("action.yml"), &[Notation::Yaml]).expect("action.yml");
    document.root().node().to_value()
}

#[test]
fn inputs_reach_the_shell_only_as_variables() {
    let action = action();
    let keys = |pointer: &str| -> Vec<String> {
        action.pointer(pointer).and_then(Value::as_object).expect(pointer).keys().cloned().collect()
    };
    assert_eq!(
        keys("/inputs"),
        [
            "args",
            "baseline",
            "command",
            "comment",
            "fail-on-breaking",
            "fail-on-regression",
            "min-readiness",
            "sarif",
            "version"
        ]
    );
    assert_eq!(keys("/outputs"), ["passed", "report", "score"]);
    assert_eq!(action["runs"]["using"], "composite");
    let steps = action["runs"]["steps"].as_array().expect("steps");
    let scripts: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    let named: Vec<&str> = scripts.iter().filter_map(|script| script.rsplit(' ').next()).collect();
    assert_eq!(named, ["check", "install", "evaluate", "comment", "end"]);
    assert!(scripts.iter().all(|script| !script.contains("${{")), "{scripts:?}");
    for step in steps.iter().filter(|step| !step["env"]["GH_TOKEN"].is_null()) {
        assert_eq!(step["name"], "Comment on the pull request", "the server under test sees no token");
    }
}

#[test]
fn the_action_is_valid_by_the_published_schema() {
    let Some(real) = Real::find_validator("the schema of actions") else { return };
    let place = Place::new(programs!());
    let validate = |file: &Path| {
        let mut command = place.command(real.tool("python/bin/check-jsonschema"));
        command.args(["--builtin-schema", "vendor.github-actions"]).arg(file);
        Running::start(command).finish(PATIENCE)
    };
    let outcome = validate(&root().join("action.yml"));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    let broken = fs::read_to_string(root().join("action.yml")).expect("action.yml").replace("using:", "usings:");
    assert_ne!(validate(&place.file("action.yml", broken)).code, Some(0), "it judges");
}
