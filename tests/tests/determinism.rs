//! The same server, arguments and version give the same bytes.

use mcpeval_tests::programs;
use mcpeval_tests::run::{PATIENCE, Place, Running};
use mcpeval_tests::servers::answers::CANARY;

#[test]
fn two_runs_give_the_same_document() {
    for server in ["good", "surfaces", "unannotated", "bad-name", "always-fails", "schema-enormous"] {
        let place = Place::new(programs!());
        let (first, second) = (place.score(&[], server), place.score(&[], server));
        let (one, two) = (first.report(), second.report());
        assert_eq!(one.without_latency(), two.without_latency(), "{server}");
        // Where the machine was quick enough both times there is nothing to leave aside.
        if one == two {
            assert_eq!(first.stdout, second.stdout, "{server}");
        }
    }
}

#[test]
fn a_document_has_sorted_keys_two_spaces_and_no_trace_of_the_run() {
    let place = Place::new(programs!());
    let text = place.score(&["--server", "shop"], "good").stdout;
    let value: serde_json::Value = serde_json::from_str(&text).expect("a JSON document");
    assert_eq!(text, sorted(&value, 0) + "\n");
    for trace in [place.path().to_str().unwrap_or("/"), programs!().server, "fixture-server", "mcpeval.txt"] {
        assert!(!text.contains(trace), "{trace} is in the report");
    }
}

#[test]
fn http_and_stdio_give_the_same_areas() {
    for server in ["good", "paged", "surfaces", "wrong-code"] {
        let place = Place::new(programs!());
        let (stdio, http) = (place.score(&[], server).report(), place.score_http(&[], server).report());
        for area in ["protocol", "catalog", "context", "error-honesty", "coverage"] {
            assert_eq!(stdio.area_score(area), http.area_score(area), "{server} {area}");
            assert!(stdio.area_score(area).is_some(), "{server} has no {area}");
        }
    }
}

#[test]
fn a_canary_does_not_reach_the_report() {
    let place = Place::new(programs!());
    let arguments = format!(r#"{{"find_item": {{"query": "{CANARY}"}}}}"#);
    let arguments = place.file("arguments.json", arguments).display().to_string();
    for format in ["json", "text"] {
        let options = ["--full", "--confirm-read-only", "--arguments", &arguments, "--format", format];
        let mut command = place.mcpeval(["score"]);
        command.args(options).env("MCPEVAL_CANARY", CANARY).args(["--", programs!().server, "canary"]);
        let outcome = Running::start(command).finish(PATIENCE);
        assert!(!outcome.stdout.is_empty(), "{}", outcome.stderr);
        for stream in [&outcome.stdout, &outcome.stderr] {
            assert!(!stream.contains(CANARY), "{format}: {stream}");
        }
    }
}

/// The value as the documents are written: keys by code point, two spaces.
fn sorted(value: &serde_json::Value, depth: usize) -> String {
    let pad = "  ".repeat(depth + 1);
    let end = "  ".repeat(depth);
    match value {
        serde_json::Value::Object(members) if !members.is_empty() => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|one, two| one.0.cmp(two.0));
            let lines: Vec<String> = members
                .iter()
                .map(|(key, value)| {
                    let key = serde_json::Value::from(key.as_str());
                    format!("{pad}{key}: {}", sorted(value, depth + 1))
                })
                .collect();
            format!("{{\n{}\n{end}}}", lines.join(",\n"))
        }
        serde_json::Value::Array(items) if !items.is_empty() => {
            let lines: Vec<String> = items.iter().map(|item| format!("{pad}{}", sorted(item, depth + 1))).collect();
            format!("[\n{}\n{end}]", lines.join(",\n"))
        }
        other => other.to_string(),
    }
}
