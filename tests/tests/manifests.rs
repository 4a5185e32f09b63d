//! Manifests with every kind of mistake: one sentence with the place, exit code 2, no value quoted, and no server started.
//! And the bounds of every kind's fields, which are inclusive.

use std::collections::BTreeSet;

use mcpeval_tests::cases::{Verdict, manifest, rows};
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use serde_json::{Value, json};

/// A word that stands for every value of a manifest.
const CANARY: &str = "swordfish";

fn probe(place: &Place, name: &str, content: impl AsRef<[u8]>) -> Outcome {
    let file = place.file(name, content);
    let mut command = place.probe_command(&file, &["--gate-only", "--allow-mutation"], "good");
    command.current_dir(place.path());
    Running::start(command).finish(PATIENCE)
}

/// What is wrong with a refusal that must hold those words.
fn faults_of(name: &str, content: &[u8], words: &[&str]) -> Option<String> {
    let place = Place::new(programs!());
    let outcome = probe(&place, name, content);
    let said = &outcome.stderr;
    let sentence = said.trim().lines().count() == 1 && said.contains(name);
    let right = outcome.code == Some(2)
        && outcome.stdout.is_empty()
        && sentence
        && words.iter().all(|word| said.contains(word))
        && !said.to_lowercase().contains(CANARY)
        && place.journal_lines().is_empty();
    let shown: String = String::from_utf8_lossy(content).chars().take(300).collect();
    (!right).then(|| format!("{name} {shown}\n  must say {words:?}\n  but code {:?}: {said}\n", outcome.code))
}

#[track_caller]
fn assert_refused<'a>(rows: impl IntoIterator<Item = (&'a str, Vec<u8>, &'a [&'a str])>) {
    let faults: Vec<String> =
        rows.into_iter().filter_map(|(name, content, words)| faults_of(name, &content, words)).collect();
    assert!(faults.is_empty(), "{}", faults.concat());
}

/// A manifest in YAML with one case in flow style, on the fourth line.
fn yaml(fields: &str) -> Vec<u8> {
    format!("version: 1\nsandboxes: {{bench: {{description: {CANARY}}}}}\nprobes:\n- {{{fields}}}\n").into_bytes()
}

const FIDELITY: &str = "probe: instruction-fidelity, id: a, access: read_only, tool: find_item";

#[test]
fn mistakes_in_a_document() {
    let good = "version: 1\nprobes:\n- {probe: pagination, id: a, access: read_only, max_pages: 1}\n";
    let nested = |open: &str, close: &str, depth: usize| {
        format!("{{\"version\": 1, \"probes\": {}{}}}", open.repeat(depth), close.repeat(depth))
    };
    let large = |bytes: usize| format!("{good}# {CANARY}{}", "x".repeat(bytes));
    let bomb = "a: &a [x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n\
        c: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\n\
        version: 1\nprobes: [*d, *d, *d, *d, *d, *d, *d, *d]\n";
    let lines = |text: &str| text.as_bytes().to_vec();
    let rows: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("m.json", lines("{\"version\": 1, \"probes\": ["), &["m.json:1:"]),
        ("m.json", lines("{\"version\": 1,\n \"version\": 1, \"probes\": []}"), &["m.json:2:", "key"]),
        ("m.json", lines("{\"version\": 1} {\"version\": 2}"), &["m.json:1:"]),
        ("m.json", lines("{\"version\": 1, // words\n}"), &["m.json:1:"]),
        ("m.json", lines("swordfish"), &["m.json:1:1"]),
        ("m.json", lines(""), &["m.json"]),
        ("m.yaml", lines(""), &["m.yaml"]),
        ("m.json", lines("[]"), &["m.json:1:1", "object"]),
        ("m.yaml", lines("swordfish"), &["m.yaml:1:1"]),
        ("m.json", nested("[", "]", 3_000).into_bytes(), &["m.json:1:", "nested"]),
        ("m.json", nested("{\"a\":", "1}", 200).into_bytes(), &["m.json:1:"]),
        ("m.yaml", nested("[", "]", 3_000).into_bytes(), &["m.yaml:1:280", "nested"]),
        ("m.yaml", large(2 << 20).into_bytes(), &["m.yaml", "larger than 1048576 bytes"]),
        ("m.yaml", lines(bomb), &["m.yaml:", "aliases"]),
        ("m.yaml", lines(&format!("{good}---\n{good}")), &["m.yaml:", "document"]),
        ("m.yaml", lines("version: 1\nversion: 1\nprobes: []\n"), &["m.yaml:2:", "twice"]),
        ("m.yaml", lines("version: 1\nprobes: !swordfish []\n"), &["m.yaml:2:", "tag"]),
        ("m.yaml", lines("version: !!python/object:swordfish {}\nprobes: []\n"), &["m.yaml:1:"]),
        ("m.yaml", lines("version: 1\nprobes:\n\t- swordfish\n"), &["m.yaml:3:"]),
        ("m.yaml", lines("version: 1\nprobes: *swordfish\n"), &["m.yaml:2:"]),
        ("m.yaml", lines("version: 1\nprobes: \"swordfish\n"), &["m.yaml:"]),
        ("m.yaml", b"version: 1\nprobes: [\0]\n".to_vec(), &["m.yaml"]),
        ("m.json", b"{\"version\": 1, \"probes\": \0}".to_vec(), &["m.json:1:"]),
        ("m.yaml", b"version: 1\nprobes: \xff\xfe\n".to_vec(), &["m.yaml", "UTF-8"]),
        (
            "m.yaml",
            [&b"\xff\xfe"[..], &"version: 1".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()].concat(),
            &["UTF-16"],
        ),
        ("m.toml", lines("version = 1\n"), &["m.toml"]),
    ];
    assert_refused(rows);
}

#[test]
fn mistakes_around_the_cases() {
    let one = |text: &str| {
        format!("version: 1\n{text}\nprobes:\n- {{probe: pagination, id: a, access: read_only, max_pages: 1}}\n")
    };
    let rows: &[(&str, &[&str])] = &[
        ("owner: swordfish", &["m.yaml:2:8", "/owner"]),
        ("prbes: []", &["m.yaml:2:", "/prbes", "\"probes\""]),
        ("$schema: 7", &["/$schema", "string"]),
        ("timeout_ms: 99", &["m.yaml:2:13", "/timeout_ms", "100", "600000"]),
        ("timeout_ms: 600001", &["/timeout_ms", "600000"]),
        ("timeout_ms: swordfish", &["/timeout_ms", "integer"]),
        ("timeout_ms: 1.5", &["/timeout_ms", "integer"]),
        ("timeout_ms: 99999999999999999999999", &["/timeout_ms"]),
        ("sandboxes: [swordfish]", &["/sandboxes", "object"]),
        ("sandboxes: {1bench: {description: swordfish}}", &["/sandboxes/1bench", "identifier"]),
        ("sandboxes: {bench: {}}", &["/sandboxes/bench", "description"]),
        ("sandboxes: {bench: {description: \"swordfish\\u0007\"}}", &["/sandboxes/bench/description", "control"]),
        ("sandboxes: {bench: {description: swordfish, owner: x}}", &["/sandboxes/bench/owner"]),
        ("components: swordfish", &["/components", "object"]),
    ];
    let owned: Vec<(Vec<u8>, &[&str])> = rows.iter().map(|(text, words)| (one(text).into_bytes(), *words)).collect();
    assert_refused(owned.into_iter().map(|(content, words)| ("m.yaml", content, words)));
    let long = format!("sandboxes: {{bench: {{description: {}}}}}", "x".repeat(241));
    let rows: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("m.yaml", one(&long).into_bytes(), &["/sandboxes/bench/description", "240"]),
        ("m.yaml", b"version: 2\nprobes: []\n".to_vec(), &["m.yaml:1:10", "/version", "1"]),
        ("m.yaml", b"version: swordfish\nprobes: []\n".to_vec(), &["/version"]),
        ("m.yaml", b"version: null\nprobes: []\n".to_vec(), &["\"version\" is missing"]),
        ("m.yaml", b"probes: []\n".to_vec(), &["version"]),
        ("m.yaml", b"version: 1\n".to_vec(), &["probes"]),
        ("m.yaml", b"version: 1\nprobes: []\n".to_vec(), &["/probes", "at least one"]),
        ("m.yaml", b"version: 1\nprobes: {a: swordfish}\n".to_vec(), &["m.yaml:2:9", "/probes", "array"]),
        ("m.yaml", b"version: 1\nprobes: [swordfish]\n".to_vec(), &["m.yaml:2:10", "/probes/0", "object"]),
    ];
    assert_refused(rows);
}

#[test]
fn mistakes_in_a_case() {
    let rows: &[(&str, &[&str])] = &[
        ("id: a, access: read_only", &["m.yaml:4:3", "/probes/0", "probe"]),
        ("probe: swordfish, id: a, access: read_only", &["m.yaml:4:11", "/probes/0/probe", "known kinds", "workflow"]),
        ("probe: pagniation, id: a, access: read_only, max_pages: 1", &["/probes/0/probe", "\"pagination\""]),
        ("probe: catalog, id: a, access: read_only", &["m.yaml:4:11", "/probes/0/probe", "known kinds"]),
        ("probe: acme.swordfish_, id: a, access: read_only", &["/probes/0/probe"]),
        ("probe: pagination, access: read_only, max_pages: 1", &["/probes/0", "\"id\""]),
        ("probe: pagination, id: 9sword, access: read_only, max_pages: 1", &["/probes/0/id", "identifier"]),
        ("probe: pagination, id: 'sword fish', access: read_only, max_pages: 1", &["/probes/0/id", "identifier"]),
        ("probe: pagination, id: 7, access: read_only, max_pages: 1", &["/probes/0/id", "string"]),
        ("probe: pagination, id: a, max_pages: 1", &["/probes/0", "\"access\""]),
        ("probe: pagination, id: a, access: swordfish, max_pages: 1", &["/probes/0/access", "read_only", "mutating"]),
        ("probe: pagination, id: a, access: read_only", &["/probes/0", "\"max_pages\""]),
        ("probe: pagination, id: a, access: read_only, max_pages: null", &["/probes/0/max_pages"]),
        (
            "probe: pagination, id: a, access: read_only, max_pages: 1, max_page: 1",
            &["/probes/0/max_page:", "\"max_pages\""],
        ),
        (
            "probe: pagination, id: a, access: read_only, max_pages: '5'",
            &["m.yaml:4:60", "/probes/0/max_pages", "integer"],
        ),
        ("probe: pagination, id: a, access: read_only, max_pages: swordfish", &["/probes/0/max_pages", "integer"]),
        ("probe: pagination, id: a, access: read_only, max_pages: yes", &["/probes/0/max_pages", "integer"]),
        (
            "probe: pagination, id: a, access: read_only, sandbox: bench, max_pages: 1",
            &["/probes/0/sandbox", "read_only"],
        ),
        (
            "probe: pagination, id: a, access: mutating, sandbox: bench, max_pages: 1",
            &["/probes/0/access", "read_only"],
        ),
        ("probe: contention, id: a, access: mutating, tool: find_item", &["/probes/0", "sandbox"]),
        (
            "probe: contention, id: a, access: mutating, sandbox: bnch, tool: find_item",
            &["/probes/0/sandbox", "\"bench\""],
        ),
        ("probe: contention, id: a, access: read_only, tool: 'sword/fish'", &["/probes/0/tool", "tool"]),
        (
            "probe: contention, id: a, access: read_only, tool: find_item, arguments: [swordfish]",
            &["/probes/0/arguments", "object"],
        ),
        (
            "probe: protocol-negotiation, id: a, access: read_only, bogus_version: swordfish",
            &["/probes/0/bogus_version"],
        ),
        (
            "probe: protocol-negotiation, id: a, access: read_only, bogus_version: 2025-11-25",
            &["/probes/0/bogus_version"],
        ),
        (
            "probe: protocol-negotiation, id: a, access: read_only, bogus_version: 2025-06-18",
            &["/probes/0/bogus_version"],
        ),
        (
            "probe: elicitation, id: a, access: read_only, tool: find_item, max_requests: 1, respond: swordfish",
            &["/probes/0/respond", "\"decline\""],
        ),
        (
            "probe: completion, id: a, access: read_only, ref_type: swordfish, ref_uri: x, argument_name: a, argument_value: b, max_values: 1",
            &["/probes/0/ref_type", "ref/prompt"],
        ),
        (
            "probe: completion, id: a, access: read_only, ref_type: ref/prompt, ref_uri: '', argument_name: a, argument_value: b, max_values: 1",
            &["/probes/0/ref_uri", "512"],
        ),
        (
            "probe: completion, id: a, access: read_only, ref_type: ref/prompt, ref_uri: x, argument_name: 9sword, argument_value: b, max_values: 1",
            &["/probes/0/argument_name"],
        ),
        (
            "probe: payload-bounds, id: a, access: read_only, tool: find_item, field: query, size_bytes: 1, expect_handled: swordfish",
            &["/probes/0/expect_handled", "boolean"],
        ),
        (
            "probe: workflow, id: a, access: read_only, repetitions: 1, steps: [{tool: find_item, expect: {outcome: ok}}]",
            &["/probes/0/steps", "from 2 to 32"],
        ),
        (
            "probe: workflow, id: a, access: read_only, repetitions: 1, steps: [{tool: find_item, expect: {outcome: ok}}, {tool: find_item, expct: {}}]",
            &["/probes/0/steps/1/expct", "\"expect\""],
        ),
        (
            "probe: workflow, id: a, access: read_only, repetitions: 1, steps: [{tool: find_item, expect: {outcome: ok}}, {tool: find_item}]",
            &["/probes/0/steps/1", "\"expect\""],
        ),
        (
            "probe: state-recovery, id: a, access: read_only, failure_tool: find_item, recovery_tool: find_item",
            &["/probes/0", "\"validation_tool\""],
        ),
    ];
    let owned: Vec<(Vec<u8>, &[&str])> = rows.iter().map(|(fields, words)| (yaml(fields), *words)).collect();
    assert_refused(owned.into_iter().map(|(content, words)| ("m.yaml", content, words)));
    let long = format!("probe: pagination, id: {}, access: read_only, max_pages: 1", "x".repeat(65));
    let twice = "version: 1\nprobes:\n\
        - {probe: pagination, id: swordfish, access: read_only, max_pages: 1}\n\
        - {probe: surface-listing, id: swordfish, access: read_only, max_pages: 1}\n";
    assert_refused([
        ("m.yaml", yaml(&long), &["/probes/0/id", "identifier"][..]),
        ("m.yaml", twice.as_bytes().to_vec(), &["m.yaml:4:", "/probes/1/id", "line 3"]),
    ]);
}

#[test]
fn mistakes_in_an_expectation() {
    let rows: &[(&str, &[&str])] = &[
        ("{}", &["/probes/0/expect", "\"outcome\""]),
        ("{outcome: swordfish}", &["/probes/0/expect/outcome", "\"ok\""]),
        ("{outcome: ok, error_code: 1}", &["/probes/0/expect/error_code", "beside it"]),
        ("{outcome: error, equals: {a: swordfish}}", &["/probes/0/expect/equals", "beside it"]),
        ("{outcome: error, equals_paths: {/a: 1}}", &["/probes/0/expect/equals_paths", "beside it"]),
        ("{outcome: error, schema: {}}", &["/probes/0/expect/schema", "beside it"]),
        ("{outcome: error, required_result_fields: [a]}", &["/probes/0/expect/required_result_fields", "beside it"]),
        ("{outcome: error, required_result_paths: [/a]}", &["/probes/0/expect/required_result_paths", "beside it"]),
        ("{outcome: error, error_code: swordfish}", &["/probes/0/expect/error_code", "integer"]),
        (
            "{outcome: ok, text_matches: '(swordfish'}",
            &["m.yaml:4:", "/probes/0/expect/text_matches", "regular expression"],
        ),
        ("{outcome: ok, text_matches: [a, '(?=swordfish)']}", &["/probes/0/expect/text_matches/1", "look-around"]),
        ("{outcome: ok, text_matches: '(a)\\1swordfish'}", &["/probes/0/expect/text_matches"]),
        ("{outcome: ok, text_contains: 7}", &["/probes/0/expect/text_contains"]),
        ("{outcome: ok, text_contains: [a, 7]}", &["/probes/0/expect/text_contains"]),
        ("{outcome: ok, schema: {type: swordfish}}", &["/probes/0/expect/schema", "schema"]),
        ("{outcome: ok, schema: swordfish}", &["/probes/0/expect/schema"]),
        ("{outcome: ok, schema: {$ref: 'https://example.com/swordfish'}}", &["/probes/0/expect/schema"]),
        ("{outcome: ok, schema: {$ref: '#/swordfish'}}", &["/probes/0/expect/schema"]),
        ("{outcome: ok, schema: {$schema: 'https://example.com/swordfish'}}", &["/probes/0/expect/schema"]),
        ("{outcome: ok, required_result_fields: [a, a]}", &["/probes/0/expect/required_result_fields", "twice"]),
        ("{outcome: ok, required_result_paths: [swordfish]}", &["/probes/0/expect/required_result_paths"]),
        ("{outcome: ok, required_result_paths: ['/a~2swordfish']}", &["/probes/0/expect/required_result_paths"]),
        ("{outcome: ok, equals_paths: {swordfish: 1}}", &["/probes/0/expect/equals_paths"]),
        ("{outcome: ok, max_latency_ms: 0}", &["/probes/0/expect/max_latency_ms", "600000"]),
        ("{outcome: ok, max_latency_ms: 600001}", &["/probes/0/expect/max_latency_ms", "600000"]),
        ("{outcome: ok, text_equal: swordfish}", &["/probes/0/expect/text_equal", "\"text_equals\""]),
    ];
    let owned: Vec<(Vec<u8>, &[&str])> =
        rows.iter().map(|(expect, words)| (yaml(&format!("{FIDELITY}, expect: {expect}")), *words)).collect();
    assert_refused(owned.into_iter().map(|(content, words)| ("m.yaml", content, words)));
    let long = format!("{FIDELITY}, expect: {{outcome: ok, text_equals: {}}}", "x".repeat((64 << 10) + 1));
    let pattern = format!("{FIDELITY}, expect: {{outcome: ok, text_matches: {}}}", "x".repeat((64 << 10) + 1));
    let huge = format!("{FIDELITY}, expect: {{outcome: ok, text_matches: '(x{{1000}}){{1000}}swordfish'}}");
    assert_refused([
        ("m.yaml", yaml(&long), &["m.yaml:4:", "/probes/0/expect/text_equals: too large"][..]),
        ("m.yaml", yaml(&pattern), &["/probes/0/expect/text_matches"]),
        ("m.yaml", yaml(&huge), &["/probes/0/expect/text_matches"]),
    ]);
}

#[test]
fn odd_documents_that_are_none_the_worse_for_it() {
    let case = "{\"probe\": \"pagination\", \"id\": \"a\", \"access\": \"read_only\", \"max_pages\": 3";
    let flow = format!("{{\"version\": 1, \"probes\": [{case}}}]}}");
    let block = "version: 1\n$schema: words\ntimeout_ms: ~\nsandboxes: null\ncomponents:\nprobes:\n\
        - &one\n  probe: pagination\n  id: a\n  access: read_only\n  sandbox:\n  max_pages: 3\n";
    let anchored = "version: 1\nprobes:\n- probe: instruction-fidelity\n  id: a\n  access: read_only\n  tool: find_item\n\
        \x20 arguments: &arguments {query: saw}\n  expect: &expect {outcome: ok}\n\
        - {probe: instruction-fidelity, id: b, access: read_only, tool: find_item, arguments: *arguments, expect: *expect}\n";
    let place = Place::new(programs!());
    for (name, content) in [
        ("flow.json", flow.clone().into_bytes()),
        ("flow.yaml", flow.clone().into_bytes()),
        ("flow.manifest", format!("\n\n  {flow}\n").into_bytes()),
        ("marked.json", [b"\xef\xbb\xbf", flow.as_bytes()].concat()),
        ("marked.yaml", [b"\xef\xbb\xbf", block.as_bytes()].concat()),
        ("block.yaml", block.as_bytes().to_vec()),
        ("block", block.as_bytes().to_vec()),
        ("crlf.yaml", block.replace('\n', "\r\n").into_bytes()),
        ("started.yml", format!("%YAML 1.2\n---\n{block}...\n").into_bytes()),
        ("anchored.yaml", anchored.as_bytes().to_vec()),
        ("nulls.json", format!("{{\"version\": 1, \"$schema\": null, \"timeout_ms\": null, \"sandboxes\": null, \"components\": null, \"probes\": [{case}, \"sandbox\": null}}]}}").into_bytes()),
        ("large.yaml", format!("{block}# {}", "x".repeat((1 << 20) - block.len() - 2)).into_bytes()),
    ] {
        let outcome = probe(&place, name, content);
        assert_eq!(outcome.code, Some(0), "{name}: {}", outcome.stderr);
    }
}

#[test]
fn a_manifest_can_come_from_a_pipe_and_not_from_a_folder() {
    let place = Place::new(programs!());
    let folder = place.path().join("folder.yaml");
    std::fs::create_dir(&folder).expect("a folder");
    let outcome = Running::start(place.probe_command(&folder, &[], "good")).finish(PATIENCE);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("folder.yaml"), "{}", outcome.stderr);
    let good = "version: 1\nprobes:\n- {probe: pagination, id: a, access: read_only, max_pages: 3}\n";
    let script = format!(
        "printf '{}' | \"$0\" probe --gate-only --manifest /dev/stdin -- \"$1\" good",
        good.replace('\n', "\\n")
    );
    let mut command = place.command("/bin/sh");
    command.args(["-c", &script, programs!().mcpeval, programs!().server]);
    let outcome = Running::start(command).finish(PATIENCE);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

/// The built-in kinds with their fields' schema, and a case of each that is right.
fn kinds(place: &Place) -> Vec<(Value, Value)> {
    let names: BTreeSet<&str> = rows().iter().map(|row| row.kind).collect();
    let passing = |kind: &str| {
        let rows = rows();
        let row = rows.iter().find(|row| row.kind == kind && row.verdict == Verdict::Passes && row.attempts > 0);
        row.expect("a row that passes").entry(kind)
    };
    names
        .into_iter()
        .map(|kind| {
            let shown = place.run(["probes", "show", kind]);
            let shown: Value = serde_json::from_str(&shown.stdout).expect("a manifest");
            (shown["config_schema"].clone(), passing(kind))
        })
        .collect()
}

/// Integer fields at the top of a kind's schema: name, least, most.
fn integers(schema: &Value) -> Vec<(String, i64, i64)> {
    let properties = schema["properties"].as_object().expect("properties");
    properties
        .iter()
        .filter(|(_, schema)| schema["type"] == "integer")
        .map(|(name, schema)| {
            let bound = |key: &str| schema[key].as_i64().unwrap_or_else(|| panic!("{name} has no {key}"));
            (name.clone(), bound("minimum"), bound("maximum"))
        })
        .collect()
}

#[test]
fn bounds_are_those_of_the_specification_and_inclusive() {
    let place = Place::new(programs!());
    let kinds = kinds(&place);
    let mut found = BTreeSet::new();
    let run = |cases: &[Value]| place.probe(&manifest(cases), &["--gate-only"], "exits-at-once");
    let with = |case: &Value, name: &str, value: i64| {
        let mut case = case.clone();
        case[name] = value.into();
        case
    };
    let edge = |most: bool| -> Vec<Value> {
        kinds
            .iter()
            .map(|(schema, case)| {
                integers(schema)
                    .iter()
                    .fold(case.clone(), |case, (name, low, high)| with(&case, name, if most { *high } else { *low }))
            })
            .collect()
    };
    for most in [false, true] {
        // It is loaded, and then the server cannot be reached.
        let outcome = run(&edge(most));
        assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    }
    for (schema, case) in &kinds {
        let kind = case["probe"].as_str().unwrap_or_default();
        for (name, low, high) in integers(schema) {
            for beyond in [low - 1, high + 1] {
                let outcome = run(&[with(case, &name, beyond)]);
                let words = [format!("/probes/0/{name}"), format!("from {low} to {high}")];
                let told = words.iter().all(|word| outcome.stderr.contains(word));
                assert!(outcome.code == Some(2) && told, "{kind} {name} {beyond}: {}", outcome.stderr);
            }
            found.insert((kind.to_owned(), name, low, high));
        }
    }
    let specified = [
        ("discovery-cost", "max_tools", 1, 10_000),
        ("discovery-cost", "max_schema_bytes", 1, 10_000_000),
        ("token-cost", "max_total_tokens", 1, 1_000_000),
        ("token-cost", "max_tool_tokens", 1, 100_000),
        ("pagination", "max_pages", 1, 1_000),
        ("surface-listing", "max_pages", 1, 1_000),
        ("completion", "max_values", 1, 100),
        ("degradation-over-n", "max_attempts", 2, 100),
        ("latency-budget", "attempts", 1, 20),
        ("latency-budget", "max_latency_ms", 1, 600_000),
        ("error-honesty", "max_attempts", 2, 20),
        ("payload-bounds", "size_bytes", 1, 16_000_000),
        ("cancellation", "grace_seconds", 1, 60),
        ("workflow", "repetitions", 1, 20),
        ("sampling", "max_requests", 1, 10),
        ("elicitation", "max_requests", 1, 10),
        ("resource-subscription", "max_wait_seconds", 1, 60),
    ];
    let specified: BTreeSet<_> =
        specified.into_iter().map(|(kind, name, low, high)| (kind.to_owned(), name.to_owned(), low, high)).collect();
    assert_eq!(found, specified);
}

#[test]
fn only_the_specified_kinds_may_be_mutating() {
    let place = Place::new(programs!());
    let may = [
        "contention",
        "degradation-over-n",
        "error-honesty",
        "instruction-fidelity",
        "schema-guessability",
        "state-recovery",
    ];
    for (_, mut case) in kinds(&place) {
        case["access"] = "mutating".into();
        case["sandbox"] = "bench".into();
        let outcome = place.probe(&manifest(&[case.clone()]), &["--gate-only", "--allow-mutation"], "exits-at-once");
        let kind = case["probe"].as_str().unwrap_or_default();
        let code = if may.contains(&kind) { 3 } else { 2 };
        assert_eq!(outcome.code, Some(code), "{kind}: {}", outcome.stderr);
    }
}

#[test]
fn a_fault_names_its_place_in_json_too() {
    let place = Place::new(programs!());
    let text = format!(
        "{{\n  \"version\": 1,\n  \"probes\": [\n    {{\"probe\": \"pagination\", \"id\": \"a\", \"access\": \"read_only\",\n     \"max_pages\": \"{CANARY}\"}}\n  ]\n}}\n"
    );
    let outcome = probe(&place, "m.json", text);
    assert!(outcome.stderr.contains("m.json:5:19: /probes/0/max_pages"), "{}", outcome.stderr);
    let twice = json!({"version": 1, "probes": [{"probe": "workflow", "id": "a", "access": "read_only", "repetitions": 1,
        "steps": [{"tool": "find_item", "expect": {"outcome": "ok"}}, {"tool": "find_item", "expect": {"outcome": CANARY}}]}]});
    let outcome = probe(&place, "m.json", twice.to_string());
    assert!(outcome.stderr.contains("/probes/0/steps/1/expect/outcome"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains(CANARY), "{}", outcome.stderr);
}
