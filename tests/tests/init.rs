//! The first manifest: what is called for it, what is written, and when nothing is.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use mcpeval::manifest::Draft;
use mcpeval::notation::{Document, Notation};
use mcpeval::services::schema::validate;
use mcpeval_tests::programs;
use mcpeval_tests::real::Real;
use mcpeval_tests::run::{Bell, Outcome, Place, Running, SETTLING};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Where a manifest is written unless told otherwise.
const FILE: &str = "mcp-eval.manifest.json";

fn decisions(outcome: &Outcome) -> Vec<&str> {
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.split_last().map(|(_, tools)| tools.to_vec()).unwrap_or_default()
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let document = Document::parse("manifest", text.clone(), Notation::of(path, &text));
    document.unwrap_or_else(|fault| panic!("{fault}\n{text}")).root().node().to_value()
}

fn manifest(place: &Place) -> Value {
    read(&place.path().join(FILE))
}

fn ids(manifest: &Value) -> Vec<&str> {
    let cases = manifest["probes"].as_array().expect("cases");
    cases.iter().map(|case| case["id"].as_str().expect("an id")).collect()
}

fn case<'a>(manifest: &'a Value, id: &str) -> &'a Value {
    let cases = manifest["probes"].as_array().expect("cases");
    cases.iter().find(|case| case["id"] == id).unwrap_or_else(|| panic!("no {id} in {:?}", ids(manifest)))
}

/// The tools that were called, in order.
fn called(place: &Place) -> Vec<String> {
    let lines = place.journal_lines();
    lines.iter().filter_map(|line| line.strip_prefix("tools/call ")).map(str::to_owned).collect()
}

fn count(place: &Place, method: &str) -> usize {
    place.journal_lines().iter().filter(|line| *line == method).count()
}

#[test]
fn a_dry_run_calls_and_writes_nothing() {
    let place = Place::new(programs!());
    let outcome = place.on("init", &["--dry-run"], "unannotated");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let expected =
        ["find_item candidate", "get_price candidate", "delete_item destructive", "odd_tool needs-attestation"];
    assert_eq!(decisions(&outcome), expected);
    assert_eq!((called(&place), place.path().join(FILE).exists()), (vec![], false));
    let document = place.on("init", &["--dry-run", "--format", "json"], "unannotated");
    let document: Value = serde_json::from_str(&document.stdout).expect("a document");
    assert_eq!(document["decisions"][2], json!({"tool": "delete_item", "decision": "destructive"}));
    assert_eq!((&document["written"], &document["tools"], &document["cases"]), (&json!(false), &json!(0), &json!(0)));
    place.assert_clean();
}

#[test]
fn each_candidate_is_called_once_in_catalog_order() {
    for http in [false, true] {
        let place = Place::new(programs!());
        let outcome = if http { place.on_http("init", &[], "good") } else { place.on("init", &[], "good") };
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(called(&place), ["find_item", "get_price"]);
        assert_eq!(outcome.stdout.lines().last(), Some("wrote mcp-eval.manifest.json tools=2 cases=14"));
        let manifest = manifest(&place);
        let expected = [
            "discovery-budget",
            "token-budget",
            "catalog-pagination",
            "protocol-negotiation",
            "find_item-guessable",
            "find_item-repeat",
            "find_item-latency",
            "find_item-output",
            "get_price-guessable",
            "get_price-repeat",
            "get_price-latency",
            "get_price-output",
            "find_item-contention",
            "find_item-payload",
        ];
        assert_eq!((ids(&manifest), &manifest["version"]), (expected.to_vec(), &json!(1)));
        assert_eq!(case(&manifest, "find_item-payload")["field"], "query");
        assert_eq!(case(&manifest, "find_item-latency")["max_latency_ms"], 1_000);
        assert!(manifest["probes"].as_array().expect("cases").iter().all(|case| case["access"] == "read_only"));
        place.assert_clean();
    }
}

#[test]
fn a_destructive_tool_is_never_called() {
    for options in [&["--confirm-read-only"][..], &["--confirm-read-only", "--tool", "delete_item"]] {
        for server in ["good", "undeclared-writer", "undeclared-destruction"] {
            let place = Place::new(programs!());
            let outcome = place.on("init", options, server);
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
            assert!(
                called(&place).iter().all(|tool| tool == "find_item" || tool == "get_price"),
                "{server} {options:?}"
            );
        }
    }
}

#[test]
fn a_tool_without_hints_is_called_when_attested() {
    let place = Place::new(programs!());
    let outcome = place.on("init", &["--confirm-read-only"], "unannotated");
    assert_eq!(decisions(&outcome).last(), Some(&"odd_tool attested"));
    assert_eq!(called(&place), ["find_item", "get_price", "odd_tool"]);
    case(&manifest(&place), "odd_tool-guessable");
}

#[test]
fn arguments_are_those_that_are_given() {
    let place = Place::new(programs!());
    place.file("arguments.yaml", "get_price: {item: tea, currency: USD}\n");
    let outcome = place.on("init", &["--arguments", "arguments.yaml", "--tool", "get_price"], "good");
    assert_eq!((outcome.code, called(&place)), (Some(0), vec!["get_price".to_owned()]), "{}", outcome.stderr);
    let expected = ["find_item not-selected", "get_price candidate", "delete_item not-selected"];
    assert_eq!(decisions(&outcome), expected);
    let manifest = manifest(&place);
    assert_eq!(case(&manifest, "get_price-repeat")["arguments"], json!({"item": "tea", "currency": "USD"}));
    for (text, words) in [
        ("get_price: {item: 5}\n", "get_price at"),
        ("get_prices: {}\n", "the nearest is \"get_price\""),
        ("delete_item: {query: s3cret}\n", "delete_item, which is not called"),
    ] {
        place.file("arguments.yaml", text);
        let outcome = place.on("init", &["--arguments", "arguments.yaml", "--force"], "good");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{text}");
        assert!(outcome.stderr.contains(words) && !outcome.stderr.contains("s3cret"), "{text} {}", outcome.stderr);
    }
    assert_eq!(called(&place).len(), 1);
}

#[test]
fn what_cannot_be_called_gets_no_case() {
    for (server, line) in [
        ("unsynthesizable", "odd_tool needs-arguments"),
        ("schema-invalid", "odd_tool needs-arguments"),
        ("always-fails", "get_price call-failed"),
        ("rejects-valid", "get_price call-failed"),
    ] {
        let place = Place::new(programs!());
        let outcome = place.on("init", &[], server);
        assert_eq!((outcome.code, decisions(&outcome).contains(&line)), (Some(0), true), "{server} {outcome:?}");
        let tool = line.split(' ').next().expect("a name");
        let manifest = manifest(&place);
        assert!(ids(&manifest).iter().all(|id| !id.starts_with(tool)), "{server} {:?}", ids(&manifest));
        assert!(ids(&manifest).contains(&"find_item-repeat"), "{server}");
    }
    let place = Place::new(programs!());
    let outcome = place.on("init", &[], "bad-name");
    assert!(outcome.stderr.contains("1 entry has no name that a case could give"), "{}", outcome.stderr);
    assert_eq!(decisions(&outcome).len(), 3);
}

#[test]
fn what_is_left_out_and_what_comes_next_is_told() {
    let place = Place::new(programs!());
    let program = programs!().mcpeval;
    let outcome = place.run(["init", "--", program, "demo", "--broken", "writers-only"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for words in [
        "no tool could be verified, of 13 listed\n",
        "left out, not-read-only: ",
        "mcp-eval.manifest.json holds cases of the catalog and the protocol only, none that calls a tool\n",
        "next: mcpeval probe -- CMD, with the same command\n",
    ] {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    let outcome = place.on("init", &["--output", "own.yaml"], "unannotated");
    for words in [
        "left out, needs-attestation: odd_tool: ",
        "left out, destructive: delete_item: ",
        "next: mcpeval probe --manifest own.yaml -- CMD",
    ] {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("no tool could"), "{}", outcome.stderr);
    let quiet = place.on("init", &["--quiet", "--force"], "unannotated");
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""));
    place
        .file("mcpeval.toml", format!("[targets.shop]\ncommand = [{program:?}, \"demo\"]\nmanifest = \"shop.yaml\"\n"));
    let outcome = place.run(["init", "--target", "shop"]);
    assert!(outcome.stderr.ends_with("next: mcpeval probe --target shop\n"), "{}", outcome.stderr);
}

#[test]
fn after_a_fault_the_next_tool_gets_a_fresh_session() {
    let place = Place::new(programs!());
    let outcome = place.on("init", &[], "faults-first");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let expected = [
        "crash call-failed",
        "odd_answer call-failed",
        "find_item candidate",
        "get_price candidate",
        "delete_item destructive",
    ];
    assert_eq!(decisions(&outcome), expected);
    assert_eq!(called(&place), ["crash", "odd_answer", "find_item", "get_price"]);
    assert_eq!((count(&place, "initialize"), count(&place, "tools/list")), (3, 1));
    assert!(outcome.stderr.contains("warning: crash: "), "{}", outcome.stderr);
    case(&manifest(&place), "find_item-contention");
    place.assert_clean();
}

#[test]
fn a_server_that_does_not_come_back_still_gets_the_cases_of_its_catalog() {
    let place = Place::new(programs!());
    let outcome = place.on("init", &[], "dies-for-good");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(decisions(&outcome), ["find_item call-failed", "get_price call-failed", "delete_item destructive"]);
    assert_eq!(called(&place), ["find_item"]);
    assert_eq!(ids(&manifest(&place)).len(), 4);
    assert!(outcome.stderr.contains("no further session could be opened"), "{}", outcome.stderr);
}

#[test]
fn twenty_verified_tools_are_enough() {
    let place = Place::new(programs!());
    let outcome = place.on("init", &[], "tools-1000");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let lines = decisions(&outcome);
    assert_eq!(
        (lines[19], lines[20], lines[999]),
        ("tool_0019 candidate", "tool_0020 over-limit", "tool_0999 over-limit")
    );
    assert_eq!(called(&place).len(), 20);
    let manifest = manifest(&place);
    assert_eq!(ids(&manifest).len(), 4 + 20 * 4 + 2);
    assert_eq!(case(&manifest, "discovery-budget")["max_tools"], 2_000);
    assert_eq!(case(&manifest, "catalog-pagination")["max_pages"], 5, "four pages are listed");
}

#[test]
fn an_existing_file_is_replaced_when_told_so() {
    let place = Place::new(programs!());
    let file = place.file(FILE, "mine");
    let outcome = place.on("init", &[], "good");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""));
    assert!(outcome.stderr.contains("--force"), "{}", outcome.stderr);
    assert_eq!((fs::read_to_string(&file).expect("it is there"), place.journal_lines()), ("mine".to_owned(), vec![]));
    assert_eq!(place.on("init", &["--dry-run"], "good").code, Some(0));
    let outcome = place.on("init", &["--force"], "good");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(manifest(&place)["version"], 1);
}

#[test]
fn places_that_cannot_be_written_are_told_before_anything_is_called() {
    let place = Place::new(programs!());
    for (output, code) in [("no/such/file.json", 3), (".", 3), ("manifest.toml", 2)] {
        let outcome = place.on("init", &["--output", output], "good");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(code), ""), "{output} {}", outcome.stderr);
    }
    assert_eq!(place.journal_lines(), Vec::<String>::new());
}

#[test]
fn yaml_and_json_hold_the_same() {
    let place = Place::new(programs!());
    for output in ["a.json", "a.yaml", "a.yml", "a"] {
        let outcome = place.on("init", &["--output", output], "surfaces");
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
    let json = read(&place.path().join("a.json"));
    assert_eq!(case(&json, "declared-surfaces")["max_pages"], 5);
    for output in ["a.yaml", "a.yml", "a"] {
        assert_eq!(read(&place.path().join(output)), json, "{output}");
    }
    let text = |name: &str| fs::read_to_string(place.path().join(name)).expect("it was written");
    assert!(text("a.yaml").starts_with("version: 1\nprobes:\n- probe: discovery-cost\n"), "{}", text("a.yaml"));
    assert_eq!(text("a"), text("a.json"), "written twice, it is the same");
}

#[test]
fn no_path_of_the_machine_is_written() {
    let place = Place::new(programs!());
    let outcome = place.on("init", &[], "paths");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(case(&manifest(&place), "list_files-guessable")["arguments"], json!({"directory": ".", "file": "."}));
    let text = fs::read_to_string(place.path().join(FILE)).expect("it was written");
    assert!(!text.contains(&place.path().display().to_string()), "{text}");
}

#[test]
fn a_name_that_makes_no_id_gets_a_number() {
    let place = Place::new(programs!());
    let outcome = place.on("init", &[], "names-without-letter");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let manifest = manifest(&place);
    let ids = ids(&manifest);
    assert_eq!((ids[4], ids[8], ids.len()), ("case-schema-guessability-5", "case-schema-guessability-9", 14));
    assert_eq!(case(&manifest, "case-schema-guessability-5")["tool"], "_find");
}

#[test]
fn an_exhausted_budget_writes_nothing() {
    let place = Place::new(programs!());
    let outcome = place.on("init", &[], "tools-4200-failing");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("requests are used up"), "{}", outcome.stderr);
    assert!(!place.path().join(FILE).exists());
    // One opening, five pages.
    assert_eq!(called(&place).len(), 4_096 - 6);
}

#[test]
fn a_listing_that_breaks_off_is_told() {
    let place = Place::new(programs!());
    let outcome = place.on("init", &["--tool", "get_price", "--tool", "unseen"], "page-error");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("the catalog was not listed to its end"), "{}", outcome.stderr);
    case(&manifest(&place), "get_price-latency");
}

#[test]
fn who_cannot_be_reached_leaves_only_the_cause() {
    for (server, words) in [
        ("exits-at-once", "missing API_KEY"),
        ("wrong-revision", "revision"),
        ("dies-at-initialize", "cannot open the shop"),
    ] {
        let place = Place::new(programs!());
        let outcome = place.on("init", &[], server);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{server}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{server}: {}", outcome.stderr);
        assert!(!place.path().join(FILE).exists(), "{server}");
        place.assert_clean();
    }
    let place = Place::new(programs!());
    let outcome = place.on("init", &["--tool", "get_prize"], "good");
    assert_eq!((outcome.code, called(&place)), (Some(2), vec![]));
    assert!(outcome.stderr.contains("the nearest is \"get_price\""), "{}", outcome.stderr);
}

#[test]
fn a_named_target_says_where_its_manifest_is() {
    let place = Place::new(programs!());
    let config = format!(
        "[targets.shop]\ncommand = [{:?}, \"unannotated\"]\nmanifest = \"shop.yaml\"\nconfirm_read_only = true\nskip_tools = [\"get_price\"]\n",
        programs!().server
    );
    place.file("mcpeval.toml", config);
    let outcome = place.run(["init", "--target", "shop"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(called(&place), ["find_item", "odd_tool"]);
    let written = read(&place.path().join("shop.yaml"));
    assert!(ids(&written).contains(&"odd_tool-repeat") && !ids(&written).contains(&"get_price-repeat"), "{written}");
}

#[test]
fn a_signal_ends_everything_and_writes_nothing() {
    let place = Place::new(programs!());
    let bell = Bell::hang(&place);
    let mut command = place.mcpeval(["init", "--"]);
    command.args([programs!().server, "hangs-with-children"]);
    let run = Running::start(command);
    bell.wait_for("tools/call find_item");
    run.signal(Signal::TERM);
    let outcome = run.finish(SETTLING);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(143), ""), "{}", outcome.stderr);
    assert!(!place.path().join(FILE).exists());
    place.assert_clean();
}

#[test]
fn the_run_log_holds_what_was_said() {
    let place = Place::new(programs!());
    let outcome = place.on("init", &["--run-log", "log"], "good");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let log = fs::read_to_string(place.path().join("log")).expect("a log");
    assert!(log.contains("tools/call"), "{log}");
}

#[test]
fn the_demo_gets_a_manifest_with_all_that_it_reads() {
    let place = Place::new(programs!());
    let outcome = place.run(["init", "--", programs!().mcpeval, "demo"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(decisions(&outcome).iter().filter(|line| line.ends_with(" candidate")).count(), 11);
    let manifest = manifest(&place);
    assert_eq!(case(&manifest, "search_notes-payload")["field"], "query");
    assert_eq!(ids(&manifest).len(), 5 + 11 * 4 + 2);
}

/// Writes a manifest and runs it on the same server: every case passes, and the file keeps its schema.
fn passes_what_it_wrote(place: &Place, options: &[&str], target: &[OsString]) -> usize {
    let words = |command: &str, options: &[&str]| -> Vec<OsString> {
        [command].iter().chain(options).map(OsString::from).chain(target.iter().cloned()).collect()
    };
    let outcome = place.run(words("init", options));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let schema = place.run(["schema", "manifest"]);
    let schema: Value = serde_json::from_str(&schema.stdout).expect("a schema");
    let manifest = manifest(place);
    validate(&schema, &manifest).unwrap_or_else(|faults| panic!("{faults:?}"));
    let outcome = place.run(words("probe", &["--gate-only"]));
    assert_eq!(outcome.code, Some(0), "{}\n{}", outcome.stdout, outcome.stderr);
    let passed = outcome.stdout.lines().filter(|line| line.contains(" pass attempts=")).count();
    assert_eq!(passed, ids(&manifest).len(), "{}", outcome.stdout);
    passed
}

#[test]
fn the_demo_passes_what_was_written_for_it() {
    let place = Place::new(programs!());
    let target = ["--", programs!().mcpeval, "demo"].map(OsString::from);
    assert_eq!(passes_what_it_wrote(&place, &[], &target), 5 + 11 * 4 + 2);
    place.assert_clean();
}

#[test]
fn fixtures_pass_what_was_written_for_them() {
    for server in ["good", "paged", "surfaces", "unannotated", "paths", "names-without-letter", "faults-first"] {
        let place = Place::new(programs!());
        let target = ["--", programs!().server, server].map(OsString::from);
        assert!(passes_what_it_wrote(&place, &["--confirm-read-only"], &target) > 4, "{server}");
        let place = Place::new(programs!());
        if server != "faults-first" {
            let served = place.serve(server);
            let target = ["--url", &served.url].map(OsString::from);
            assert!(passes_what_it_wrote(&place, &["--confirm-read-only"], &target) > 4, "{server}");
        }
    }
}

#[test]
fn published_servers_pass_what_was_written_for_them() {
    // One tool of the first takes ten seconds a call, for which nothing is gained by waiting.
    let quick = ["echo", "get-sum", "get-structured-content"].map(|tool| ["--tool", tool]).concat();
    for (server, selected, cases) in [("everything", &quick[..], 17), ("memory", &[], 19), ("filesystem", &[], 34)] {
        let Some(real) = Real::find(&format!("a first manifest of server-{server}")) else { return };
        let place = Place::new(programs!());
        let file = format!("MEMORY_FILE_PATH={}", place.path().join("memory.json").display());
        let command = [real.node(server), if server == "filesystem" { vec![".".into()] } else { vec![] }].concat();
        let options = [&["--confirm-read-only"], selected].concat();
        let target: Vec<OsString> = ["--env", &file, "--"].iter().map(OsString::from).chain(command).collect();
        assert_eq!(passes_what_it_wrote(&place, &options, &target), cases, "{server}");
        place.assert_clean();
    }
}

#[test]
fn the_guide_shows_manifests_of_every_kind() {
    let guide = include_str!("../../docs/manifests.md");
    let place = Place::new(programs!());
    let schema = place.run(["schema", "manifest"]);
    let schema: Value = serde_json::from_str(&schema.stdout).expect("a schema");
    let mut shown = BTreeSet::new();
    for block in guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let draft = Draft::parse("guide", block.to_owned(), Notation::Yaml, Path::new(""));
        let draft = draft.unwrap_or_else(|fault| panic!("{fault}\n{block}"));
        if draft.pins().is_empty() {
            let value =
                Document::parse("guide", block, Notation::Yaml).expect("it was read before").root().node().to_value();
            validate(&schema, &value).unwrap_or_else(|faults| panic!("{faults:?}\n{block}"));
            shown.extend(draft.kinds().map(str::to_owned));
        }
    }
    let listed: Value =
        serde_json::from_str(&place.run(["probes", "list", "--format", "json"]).stdout).expect("a list");
    let kinds = listed.as_array().expect("a list").iter().filter(|component| component["areas"] == json!([]));
    let kinds: BTreeSet<String> = kinds.filter_map(|component| component["kind"].as_str().map(str::to_owned)).collect();
    assert_eq!(shown, kinds);
    for kind in kinds {
        assert!(guide.contains(&format!("| `{kind}`")), "the tables leave {kind} out");
    }
}
