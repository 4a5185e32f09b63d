//! Every rendering of real runs, held to published schemas, a browser and a markdown parser that others wrote.

use std::path::{Path, PathBuf};
use std::process::Command;

use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use serde_json::{Value, json};

/// Every rendering, and the extension of its file.
const FORMATS: [(&str, &str); 6] =
    [("text", "txt"), ("json", "json"), ("markdown", "md"), ("sarif", "sarif"), ("junit", "xml"), ("html", "html")];
/// Where screenshots are kept for a person to look at; a folder that is removed, if it is not set.
const SCREENSHOTS: &str = "MCPEVAL_TEST_SCREENSHOTS";

/// One run with all six renderings.
fn run(place: &Place, name: &str, command: &str, options: &[&str], target: &[&str]) -> Outcome {
    let mut arguments = vec![command.to_owned()];
    for (format, extension) in FORMATS {
        arguments.extend(["--report".to_owned(), format!("{format}={name}.{extension}")]);
    }
    arguments.extend(options.iter().chain(target).map(|&word| word.to_owned()));
    Running::start(place.mcpeval(arguments)).finish(PATIENCE)
}

/// Name, command, options, target, exit code.
type Row<'a> = (&'static str, &'a str, &'a [&'a str], &'a [&'a str], i32);

/// Runs that end in every way: their names, and the document of each is in the place.
fn runs(place: &Place) -> Vec<&'static str> {
    let program = programs!().mcpeval;
    let init = place.run(["init", "--", program, "demo"]);
    assert_eq!(init.code, Some(0), "{}", init.stderr);
    let demo = ["--", program, "demo"];
    let broken = ["--", program, "demo", "--broken", "bloated"];
    let labels = ["--server", "A.b_c:d-9"];
    let rows: [Row<'_>; 6] = [
        ("good", "probe", &labels, &demo, 0),
        ("bloated", "probe", &["--min-readiness", "99", "--min-area", "context=90", "--full"], &broken, 1),
        ("gone", "probe", &[], &["--", "/nowhere/at-all"], 3),
        ("gate", "probe", &["--gate-only", "--brief"], &broken, 1),
        ("score", "score", &["--price-per-mtok", "3"], &["--demo", "--broken", "lying-errors"], 0),
        ("unattested", "score", &["--timings"], &["--", programs!().server, "good"], 0),
    ];
    rows.map(|(name, command, options, target, code)| {
        let outcome = run(place, name, command, options, target);
        assert_eq!(outcome.code, Some(code), "{name}: {}", outcome.stderr);
        name
    })
    .to_vec()
}

fn document(place: &Place, name: &str) -> Value {
    let text = std::fs::read_to_string(place.path().join(format!("{name}.json"))).expect("a document");
    serde_json::from_str(&text).expect("JSON")
}

/// Runs a tool of others to its end, which must be good.
fn good(place: &Place, program: &Path, arguments: &[PathBuf]) -> String {
    let mut command = place.command(program);
    command.args(arguments);
    finish(command)
}

fn finish(command: Command) -> String {
    let shown = format!("{command:?}");
    let outcome = Running::start(command).finish(PATIENCE);
    assert_eq!(outcome.code, Some(0), "{shown}\n{}{}", outcome.stdout, outcome.stderr);
    outcome.stdout
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("real").join(name)
}

#[test]
fn sarif_junit_and_the_documents_keep_their_published_schemas() {
    let Some(real) = Real::find_validators("published schemas of renderings") else { return };
    let place = Place::new(programs!());
    let names = runs(&place);
    let files = |extension: &str| -> Vec<PathBuf> {
        names.iter().map(|name| place.path().join(format!("{name}.{extension}"))).collect()
    };
    let validator = real.tool("python/bin/check-jsonschema");
    let check = |schema: &Path, files: Vec<PathBuf>| {
        let mut command = place.command(&validator);
        // The published schema of SARIF holds a pattern that newer dialects of regular expressions refuse.
        command.args(["--regex-variant", "nonunicode", "--schemafile"]).arg(schema).args(files);
        Running::start(command).finish(PATIENCE)
    };
    let valid = |schema: &Path, files: Vec<PathBuf>| {
        let outcome = check(schema, files);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    };
    valid(&real.tool("schemas/sarif-2.1.0.json"), files("sarif"));
    let mut arguments = vec![script("xsd.py"), real.tool("schemas/junit-10.xsd")];
    arguments.extend(files("xml"));
    good(&place, &real.tool("python/bin/python"), &arguments);

    // Our own schemas, by a validator that is not ours; and it does refuse.
    let schema = |document: &str| {
        let outcome = place.run(["schema", document]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        place.file(&format!("{document}.schema.json"), outcome.stdout)
    };
    let report = schema("report");
    valid(&report, files("json"));
    let manifest = schema("manifest");
    let written = place.path().join("mcp-eval.manifest.json");
    valid(&manifest, vec![written.clone()]);
    let mut planted = document(&place, "good");
    planted["cases"][0]["hint"] = "what the server said".into();
    let planted = place.file("planted.json", planted.to_string());
    assert_eq!(check(&report, vec![planted]).code, Some(1));
    let text = std::fs::read_to_string(written).expect("the manifest");
    let wrong = place.file("wrong.json", text.replace("\"max_pages\": 5", "\"max_pages\": 0"));
    assert_eq!(check(&manifest, vec![wrong]).code, Some(1));
    for (name, arguments) in [
        ("diff", vec!["diff", "good.json", "good.json", "--format", "json"]),
        ("guidance", vec!["guidance", "--format", "json", "--settle-ms", "0", "--", programs!().mcpeval, "demo"]),
    ] {
        let outcome = place.run(arguments);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let file = place.file(&format!("{name}.json"), outcome.stdout);
        valid(&schema(name), vec![file]);
    }
    place.assert_clean();
}

#[test]
fn every_rendering_tells_the_same_facts() {
    let place = Place::new(programs!());
    for name in runs(&place) {
        let report = document(&place, name);
        let read = |extension: &str| {
            std::fs::read_to_string(place.path().join(format!("{name}.{extension}"))).expect("a rendering")
        };
        let sarif: Value = serde_json::from_str(&read("sarif")).expect("JSON");
        let run = &sarif["runs"][0];
        let results = run["results"].as_array().expect("results");
        let cases = report["cases"].as_array().expect("cases");
        let failed = |case: &&Value| case["passed"] == false && case["first_failure"] != Value::Null;
        let errored = cases.iter().filter(|case| case["passed"] == false && case["first_failure"] == Value::Null);
        let of_cases = results.iter().filter(|result| !result["partialFingerprints"]["mcpevalCaseId"].is_null());
        assert_eq!(of_cases.count(), cases.iter().filter(failed).count(), "{name}");
        assert_eq!(
            run["invocations"][0]["executionSuccessful"],
            errored.count() == 0 && report["readiness_error"].is_null(),
            "{name}"
        );
        let lost: usize = report["readiness"]["areas"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|area| area["checks"].as_array().map_or(0, Vec::len))
            .sum();
        let checks = results.iter().filter(|result| !result["partialFingerprints"]["mcpevalCheck"].is_null());
        assert_eq!(checks.count(), lost, "{name}");

        let (text, markdown, html, junit) = (read("txt"), read("md"), read("html"), read("xml"));
        if let Some(score) = report["readiness"]["score"].as_u64() {
            assert!(text.contains(&format!("readiness {score}/100")), "{name}: {text}");
            assert!(markdown.contains(&format!("![mcpeval {score}/100]")), "{name}: {markdown}");
            assert!(html.contains(&format!("<b>{score}</b>")), "{name}");
            assert!(junit.contains(&format!("name=\"score\" value=\"{score}\"")), "{name}: {junit}");
        }
        if let (Some(passed), Some(total)) = (report["gate"]["passed"].as_u64(), report["gate"]["total"].as_u64()) {
            assert!(text.contains(&format!("gate {passed}/{total}")), "{name}: {text}");
            assert!(markdown.contains(&format!("{passed} of {total} cases pass")), "{name}: {markdown}");
            assert!(html.contains(&format!("{passed} of {total} pass")), "{name}");
        }
        for case in cases {
            let id = case["id"].as_str().expect("an id");
            for rendering in [&text, &markdown, &html, &junit] {
                assert!(rendering.contains(id), "{name}: {id} is missing");
            }
        }
        // A stored document renders as the run did.
        for (format, extension) in FORMATS.iter().filter(|(format, _)| !matches!(*format, "sarif" | "text")) {
            if ["bloated", "gate", "score", "unattested"].contains(&name) {
                continue;
            }
            let file = format!("{name}.json");
            let again = place.run(["report", &file, "--format", format]);
            assert_eq!(again.stdout, read(extension), "{name} as {format}");
        }
    }
}

#[test]
fn tables_of_markdown_hold_a_row_per_case() {
    let Some(real) = Real::find_browser("markdown") else { return };
    let place = Place::new(programs!());
    runs(&place);
    for name in ["good", "bloated", "gone"] {
        let mut command = place.command("node");
        command.arg(script("tables.mjs")).arg(place.path().join(format!("{name}.md")));
        command.env("NODE_MODULES_OF", real.tool("npm"));
        let tables: Value = serde_json::from_str(&finish(command)).expect("JSON");
        let table = tables.as_array().expect("tables").iter().find(|table| table[0][0] == "Case");
        let rows = table.and_then(Value::as_array).expect("a table of cases");
        let ids: Vec<String> = rows.iter().skip(1).map(|row| row[0].as_str().unwrap_or_default().to_owned()).collect();
        let report = document(&place, name);
        let wanted: Vec<String> = report["cases"]
            .as_array()
            .expect("cases")
            .iter()
            .map(|case| format!("`{}`", case["id"].as_str().unwrap_or_default()))
            .collect();
        assert_eq!(ids, wanted, "{name}");
    }
}

#[test]
fn pages_ask_for_nothing_and_are_accessible() {
    let Some(real) = Real::find_browser("pages") else { return };
    if !Real::has_program("chromium") {
        return;
    }
    let place = Place::new(programs!());
    let names = runs(&place);
    let differences = [
        ("diff", vec!["diff", "gate.json", "gate.json", "--format", "html", "--output", "diff.html"]),
        (
            "guide",
            vec![
                "diff",
                "score.json",
                "score.json",
                "--max-readiness-drop",
                "0",
                "--format",
                "html",
                "--output",
                "guide.html",
            ],
        ),
    ];
    for (_, arguments) in &differences {
        assert_eq!(place.run(arguments).code, Some(0));
    }
    let program = programs!().mcpeval;
    let targets = format!(
        "[targets.good]\ncommand = [{program:?}, \"demo\"]\n[targets.bloated]\ncommand = [{program:?}, \"demo\", \"--broken\", \"bloated\"]\n"
    );
    place.file("mcpeval.toml", targets);
    let compared = place.run([
        "compare",
        "--target",
        "good",
        "--target",
        "bloated",
        "--format",
        "html",
        "--output",
        "compare.html",
    ]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    let mut pages: Vec<&str> = names;
    pages.extend(differences.iter().map(|(name, _)| *name));
    pages.push("compare");

    let kept = std::env::var_os(SCREENSHOTS).map_or_else(|| place.temp(), PathBuf::from);
    let mut command = place.command("node");
    command.arg(script("page.mjs")).arg("/usr/bin/chromium").arg(&kept);
    command.args(pages.iter().map(|name| place.path().join(format!("{name}.html"))));
    command.env("NODE_MODULES_OF", real.tool("npm"));
    let found: Value = serde_json::from_str(&finish(command)).expect("JSON");
    for name in pages {
        let page = &found[name];
        for what in ["requests", "console", "violations", "unreached", "overflowing"] {
            assert_eq!(page[what], json!([]), "{name}: {what}");
        }
        let headings: Vec<u64> =
            page["headings"].as_array().expect("headings").iter().filter_map(Value::as_u64).collect();
        assert_eq!(headings.iter().filter(|level| **level == 1).count(), 1, "{name}: {headings:?}");
        assert!(headings.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{name}: {headings:?}");
        assert!(page["text"].as_str().is_some_and(|text| text.contains("mcpeval")), "{name}");
    }
}
