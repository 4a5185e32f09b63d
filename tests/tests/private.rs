//! A secret in every place where a client, a server or a user can put one, and then every command that tells of what
//! was recorded: it is nowhere under the home, in no output, in no file that is written.

use std::fs;
use std::path::{Path, PathBuf};

use mcpeval::store::hash;
use mcpeval_tests::client::Client;
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use mcpeval_tests::servers::answers::CANARY;
use mcpeval_tests::traffic::home;
use serde_json::{Value, json};

/// A number that nobody else would write.
const NUMBER: &str = "4915112345678";

/// In whatever case, and what mcpeval 0.8 made of it as the name of a session.
fn secrets() -> Vec<Vec<u8>> {
    let token = hash::unsalted_session(CANARY);
    let hex = token.trim_start_matches(hash::SESSION_PREFIX).to_owned();
    [CANARY.to_owned(), CANARY.to_lowercase(), CANARY.to_uppercase(), NUMBER.to_owned(), hex]
        .map(String::into_bytes)
        .to_vec()
}

fn holds(bytes: &[u8]) -> bool {
    secrets().iter().any(|secret| bytes.windows(secret.len()).any(|window| window == secret))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// No file below that folder has it, in its name or in its bytes. Gives how many there are.
fn assert_clean_folder(folder: &Path) -> usize {
    let found = files(folder);
    for file in &found {
        assert!(!holds(file.as_os_str().as_encoded_bytes()), "the name {}", file.display());
        let bytes = fs::read(file).expect("a file");
        assert!(!holds(&bytes), "{} has it:\n{}", file.display(), String::from_utf8_lossy(&bytes));
    }
    found.len()
}

/// Runs a command, whose output must not have it.
fn quiet(place: &Place, arguments: &[&str], codes: &[i32]) -> Outcome {
    let outcome = place.run(arguments);
    assert!(outcome.code.is_some_and(|code| codes.contains(&code)), "{arguments:?}: {outcome:?}");
    assert!(!holds(outcome.stdout.as_bytes()) && !holds(outcome.stderr.as_bytes()), "{arguments:?}: {outcome:?}");
    outcome
}

fn number() -> u64 {
    NUMBER.parse().expect("a number")
}

/// Arguments with secrets as keys and values of every kind, at every depth.
fn arguments() -> Value {
    json!({
        CANARY: CANARY,
        format!("{CANARY}@example.com"): true,
        NUMBER: null,
        "query": format!("Bearer {CANARY}"),
        "phone": number(),
        "negative": -4_915_112_345_678_i64,
        "fraction": 4_915_112_345_678.5,
        "link": format!("https://user:{CANARY}@{CANARY}.example.com/{CANARY}?token={CANARY}#{CANARY}"),
        "socket": format!("ftp://{CANARY}.example/{NUMBER}"),
        "list": [{CANARY: [CANARY, number()]}, CANARY],
        "deep": {"deeper": {CANARY: {"a": {CANARY: CANARY}}}},
    })
}

/// What a server can say, all of it with the secret, in answer to the request of that id.
fn answers(id: &Value) -> Vec<String> {
    let of = |body: Value| {
        let mut answer = body;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.clone();
        answer.to_string()
    };
    let words = json!([{"type": "text", "text": "it says"}, {"type": "text", "text": format!("{CANARY} {NUMBER}")}]);
    let data = json!({
        CANARY: CANARY, "retryable": CANARY, "layer": format!("layer {CANARY}"), "kind": format!("{CANARY} {NUMBER}"),
        "phone": number()
    });
    let message = format!("Cannot open /home/{CANARY}/x for \"{CANARY}\" {CANARY} {NUMBER}");
    vec![
        of(json!({"result": {"content": words, "structuredContent": {CANARY: number()}, "_meta": {CANARY: CANARY}}})),
        of(json!({"result": {"content": words, "isError": true}})),
        of(json!({"error": {"code": -32_001, "message": message, "data": data}})),
        of(json!({"error": {"code": format!("{CANARY} is the code"), "message": CANARY, "retryable": true}})),
        of(json!({"error": {"code": 4_915_112_345_678.5, "message": CANARY}})),
        of(json!({"result": CANARY})),
        of(json!({"result": {"content": CANARY, CANARY: {}}})),
        of(json!({"error": CANARY})),
        format!("{CANARY} is no message"),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"text\":\"{CANARY}"),
        of(json!({"method": format!("ask {CANARY}"), "params": {CANARY: CANARY}})),
    ]
}

/// A session through `shim` in which everything is said.
fn session(place: &Place, name: &str) {
    let mut command = place.mcpeval(["shim", "--server", "shop", "--", "env", &format!("TOKEN={CANARY}")]);
    command.args([programs!().server, "dictated"]);
    command.env("MCPEVAL_SESSION", name).env("API_KEY", CANARY).env("MCPEVAL_HTTP_AUTHORIZATION", CANARY);
    let mut client = Client::start(command);
    client.greet();
    let mut number = 0;
    let mut ask = |client: &mut Client, tool: &str, pick: usize| {
        number += 1;
        let id = json!(format!("{CANARY} {number}"));
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": CANARY}});
        let answer = answers(&id).swap_remove(pick);
        let meta =
            json!({"progressToken": CANARY, CANARY: CANARY, "log": CANARY, "lines": [notice.to_string(), answer]});
        let params = json!({"name": tool, "arguments": arguments(), "_meta": meta});
        client.line(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
        for _ in 0..2 {
            assert!(client.next_line().is_some(), "an answer for each");
        }
    };
    for pick in 0..answers(&Value::Null).len() {
        ask(&mut client, "find_item", pick);
        ask(&mut client, &format!("tool {CANARY}"), pick);
    }
    // Enough of one failure for a finding.
    for _ in 0..6 {
        ask(&mut client, "find_item", 2);
    }
    client.line(&format!("{CANARY} is no message either"));
    client.line(&json!({"jsonrpc": "2.0", "id": 1, "method": format!("{CANARY} 1"), "params": CANARY}).to_string());
    client.line(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": CANARY, "reason": CANARY}})
        .to_string(),
    );
    client.line(&json!({"jsonrpc": "2.0", "id": CANARY, "result": {CANARY: CANARY}}).to_string());
    let ended = client.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // The server's own words pass; mcpeval adds none of them.
    for line in ended.stderr.lines().filter(|line| line.starts_with("mcpeval")) {
        assert!(!holds(line.as_bytes()), "{line}");
    }
}

/// The finding about the shop's tool.
fn finding(place: &Place) -> String {
    quiet(place, &["index"], &[0]);
    quiet(place, &["promote", "--threshold", "0"], &[0]);
    let found: Value =
        serde_json::from_str(&quiet(place, &["findings", "--format", "json"], &[0]).stdout).expect("JSON");
    let found = found.as_array().expect("findings");
    let ours = found.iter().find(|finding| finding["tool"] == "find_item" && finding["err_code"] == "-32001");
    ours.and_then(|finding| finding["finding_id"].as_str()).unwrap_or_else(|| panic!("{found:?}")).to_owned()
}

/// Acceptance check 1 and the canary of the whole: recorded, indexed, promoted, shown, written, shared.
#[test]
fn it_is_nowhere_once_it_was_recorded() {
    let place = Place::new(programs!());
    let home = home(&place);
    for name in [CANARY, "another"] {
        session(&place, name);
    }
    assert!(assert_clean_folder(home.root()) >= 2);
    let id = finding(&place);
    for format in ["agent", "md", "json"] {
        let shown = quiet(&place, &["findings", "--format", format], &[0]).stdout;
        assert!(shown.contains(&id), "{shown}");
    }
    let manifest = place.path().join("generated.json").display().to_string();
    quiet(&place, &["generate", "--finding", &id, "--output", &manifest, "--confirm-read-only"], &[0]);
    let issues = place.path().join("issues");
    quiet(&place, &["export-issues", "--dir", &issues.display().to_string()], &[0]);
    let envelope = place.path().join("envelope");
    quiet(&place, &["annotate", "--session", CANARY, "--seq", "3", "--kind", "workaround", "--note", ""], &[0]);
    quiet(&place, &["index"], &[0]);
    quiet(&place, &["doctor"], &[0]);
    let options = ["--include-annotation-notes", "--include-probe-history"];
    quiet(&place, &[&["share", "--dir", &envelope.display().to_string()][..], &options].concat(), &[0]);
    let verify =
        ["verify", "--finding", &id, "--case", &id, "--manifest", &manifest, "--", programs!().server, "canary"];
    quiet(&place, &verify, &[0, 1]);
    for format in ["text", "json", "html"] {
        quiet(&place, &["trends", "--format", format], &[0]);
    }
    assert!(!holds(&fs::read(&manifest).expect("a manifest")));
    assert!(assert_clean_folder(&issues) >= 1 && assert_clean_folder(&envelope) >= 2);
    assert!(assert_clean_folder(home.root()) >= 4);
}

/// The calls that mcpeval makes itself are recorded like those of others, and their points of trends say no more.
#[test]
fn it_is_nowhere_once_mcpeval_itself_sent_it() {
    let place = Place::new(programs!());
    let home = home(&place);
    let case = |id: &str, arguments: Value| {
        json!({
            "probe": "instruction-fidelity", "id": id, "access": "read_only", "tool": "find_item", "arguments": arguments,
            "expect": {"outcome": "ok", "text_contains": CANARY}
        })
    };
    let cases = json!([case("words", json!({"query": CANARY})), case("others", arguments())]);
    let manifest = place.file("manifest.json", json!({"version": 1, "probes": cases}).to_string());
    let file = place.file("arguments.json", json!({"find_item": {"query": CANARY}}).to_string()).display().to_string();
    let manifest = manifest.display().to_string();
    let fixture = place.serve("canary");
    for target in
        [&["--url", &fixture.url][..], &["--env", &format!("KEY={CANARY}"), "--", programs!().server, "canary"]]
    {
        for command in [&["probe", "--manifest", &manifest][..], &["score"]] {
            let options = ["--confirm-read-only", "--arguments", &file];
            let mut run = place.mcpeval([command, &options, target].concat());
            run.env("MCPEVAL_HTTP_AUTHORIZATION", format!("Bearer {CANARY}")).env("MCPEVAL_SESSION", CANARY);
            let outcome = Running::start(run).finish(PATIENCE);
            assert!(matches!(outcome.code, Some(0 | 1)), "{command:?} {target:?}: {}", outcome.stderr);
        }
    }
    let journals: String = files(&home.store())
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|file| fs::read_to_string(file).expect("a journal"))
        .collect();
    assert!(journals.contains("synthetic") && journals.contains("manifest_sha256"), "{journals}");
    for format in ["text", "json", "html"] {
        quiet(&place, &["trends", "--format", format], &[0]);
    }
    quiet(&place, &["index"], &[0]);
    quiet(&place, &["doctor"], &[0]);
    let envelope = place.path().join("envelope");
    quiet(&place, &["share", "--dir", &envelope.display().to_string(), "--include-probe-history"], &[0]);
    assert!(assert_clean_folder(&envelope) >= 2 && assert_clean_folder(home.root()) >= 3);
}

/// Headers, addresses and streams of `shim-http`.
#[test]
fn it_is_nowhere_once_it_passed_over_http() {
    let place = Place::new(programs!());
    let home = home(&place);
    let fixture = place.serve("canary");
    let upstream = format!("{}?token={CANARY}", fixture.url);
    let mut shell = place.command("sh");
    shell.args(["-c", "exec \"$@\" 2>&1", "sh", programs!().mcpeval, "shim-http", "--server", "shop"]);
    shell.args(["--listen", "127.0.0.1:0", "--upstream", &upstream]).env("MCPEVAL_SESSION", CANARY);
    let recorder = Client::start(shell);
    let line = recorder.next_line().expect("it says where it listens");
    assert!(!holds(line.as_bytes()), "{line}");
    let start = line.find("http://").expect("an address");
    let url: String = line[start..].chars().take_while(|next| !next.is_whitespace()).collect();
    let manifest = json!({"version": 1, "probes": [{
        "probe": "degradation-over-n", "id": "words", "access": "read_only", "tool": "find_item",
        "arguments": arguments(), "max_attempts": 3
    }]});
    let file = place.file("manifest.json", manifest.to_string()).display().to_string();
    let mut run = place.mcpeval(["probe", "--no-store", "--case", "words", "--manifest", &file]);
    run.args(["--url", &url]).args(["--header-env", "Mcp-Param-Key=SHOP_KEY"]).env("SHOP_KEY", CANARY);
    run.env("MCPEVAL_HTTP_AUTHORIZATION", format!("Bearer {CANARY}"));
    let outcome = Running::start(run).finish(PATIENCE);
    assert!(matches!(outcome.code, Some(0 | 1)), "{}", outcome.stderr);
    recorder.signal(rustix::process::Signal::TERM);
    let ended = recorder.finish();
    assert!(ended.lines.iter().all(|line| !holds(line.as_bytes())), "{:?}", ended.lines);
    assert!(assert_clean_folder(home.root()) >= 2);
    let indexed = quiet(&place, &["index"], &[0]).stdout;
    assert!(!indexed.starts_with("indexed 0 calls"), "{indexed}");
    assert_clean_folder(home.root());
}
