//! `mcpeval.toml`: where it is found, what it changes, what it cannot.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::thread;

use mcpeval_tests::guests::{self, AREA, Guest};
use mcpeval_tests::programs;
use mcpeval_tests::run::{Outcome, PATIENCE, Place, Running};
use sha2::{Digest as _, Sha256};

fn run(command: Command) -> Outcome {
    Running::start(command).finish(PATIENCE)
}

/// A target whose command is a fixture server.
fn target(name: &str, server: &str) -> String {
    format!("[targets.{name}]\ncommand = ['{}', '{server}']\n", programs!().server)
}

#[test]
fn a_target_brings_its_choices() {
    let place = Place::new(programs!());
    let more = "server = \"Shop.1\"\nskip_tools = [\"find_item\"]\nconfirm_read_only = true\n";
    place.file("mcpeval.toml", format!("[defaults]\nformat = \"json\"\nlanes = 2\n{}{more}", target("shop", "good")));
    let outcome = place.run(["score", "--target", "shop"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let report = outcome.report();
    assert_eq!(report.at("/server"), "Shop.1");
    let profile = "/readiness/measurement_profile";
    assert_eq!(report.number(&format!("{profile}/lanes")), Some(2));
    assert_eq!(report.at(&format!("{profile}/skip_tools/0")), "find_item");
    assert_eq!(report.at(&format!("{profile}/attested_read_only")), true);
    assert!(!place.journal_lines().iter().any(|line| line.contains("tools/call find_item")));
    place.assert_clean();
}

#[test]
fn the_file_is_found_where_it_is_named_else_here_and_nowhere_above() {
    let place = Place::new(programs!());
    place.file("mcpeval.toml", target("here", "good"));
    let other = place.file("other.toml", target("named", "good"));
    let third = place.file("third.toml", target("varied", "good"));
    // Which file was read shows in the nearest name.
    let nearest = |change: &dyn Fn(&mut Command)| {
        let mut command = place.mcpeval(["score", "--target", "xyz"]);
        change(&mut command);
        let outcome = run(command);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
        outcome.stderr
    };
    assert!(nearest(&|_| ()).contains("the only one is here"));
    assert!(nearest(&|command| _ = command.env("MCPEVAL_CONFIG", &third)).contains("the only one is varied"));
    assert!(nearest(&|command| _ = command.env("MCPEVAL_CONFIG", "")).contains("the only one is here"));
    let both = |command: &mut Command| _ = command.env("MCPEVAL_CONFIG", &third).arg("--config").arg(&other);
    assert!(nearest(&both).contains("the only one is named"));
    let below = place.path().join("home");
    assert!(nearest(&|command| _ = command.current_dir(&below)).contains("no target is configured"));
    assert!(nearest(&|command| _ = command.arg("--config").arg("no.toml")).contains("no.toml: No such file"));
}

#[test]
fn a_broken_file_stops_what_it_concerns_and_nothing_else() {
    let place = Place::new(programs!());
    place.file("mcpeval.toml", "[defaults]\nlane = 3\n");
    let outcome = place.run(["score", "--demo"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""));
    let words = "mcpeval.toml:2:1: /defaults/lane: unknown field; the nearest is \"lanes\"";
    assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    for command in [&["man"][..], &["completions", "bash"], &["demo", "--list-broken"]] {
        let outcome = place.run(command);
        assert_eq!(outcome.code, Some(0), "{command:?}: {}", outcome.stderr);
    }
    let outcome = place.run(["--config", "/dev/null", "score", "--demo", "--lanes", "1"]);
    assert_eq!(outcome.code, Some(0), "the demo does not read it either: {}", outcome.stderr);
}

#[test]
fn a_command_of_the_file_runs_in_its_folder_with_its_variables_and_without_secrets() {
    let place = Place::new(programs!());
    std::fs::create_dir(place.path().join("nest")).expect("a folder");
    let script = "pwd >&2; env | grep -E '^(TOKEN|OTHER|GIVEN|MCPEVAL)' >&2; exit 3";
    let file = place.file(
        "nest/mcpeval.toml",
        format!(
            "[targets.shell]\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]\n\
             env = {{ GIVEN = \"file\", OTHER = \"given\", MCPEVAL_GIVEN = \"yes\" }}\n\
             [targets.cloud]\nurl = \"https://mcp.example.com/\"\n\
             headers_env = {{ Authorization = \"TOKEN\", X-Other = \"OTHER\" }}\n"
        ),
    );
    let mut command = place.mcpeval(["score", "--target", "shell", "--env", "GIVEN=option", "--config"]);
    command.arg(file).env("TOKEN", "swordfish").env("OTHER", "swordfish").env("MCPEVAL_LOG", "warn");
    let outcome = run(command);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    let nest = place.path().join("nest").canonicalize().expect("the folder").display().to_string();
    let lines: Vec<&str> = outcome.stderr.lines().map(|line| line.trim_start_matches([' ', '|'])).collect();
    for line in [nest.as_str(), "GIVEN=option", "OTHER=given", "MCPEVAL_GIVEN=yes"] {
        assert!(lines.contains(&line), "{line} is missing: {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("swordfish") && !outcome.stderr.contains("MCPEVAL_LOG"), "{}", outcome.stderr);
}

/// The `authorization` and `x-key` headers of the one request that `mcpeval score` sends before it gives up.
fn headers_sent(place: &Place, change: impl FnOnce(&mut Command, &str)) -> Vec<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("its address"));
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        let lines = BufReader::new(stream.try_clone().expect("the stream")).lines();
        let head: Vec<String> =
            lines.map_while(Result::ok).take_while(|line| !line.is_empty()).map(|line| line.to_lowercase()).collect();
        let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer.as_bytes()).expect("an answer");
        head
    });
    let mut command = place.mcpeval(["score"]);
    change(&mut command, &url);
    let outcome = run(command);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    let head = serving.join().expect("the request");
    let mut sent: Vec<String> =
        head.into_iter().filter(|line| line.starts_with("authorization") || line.starts_with("x-key")).collect();
    sent.sort();
    sent
}

#[test]
fn values_of_headers_come_from_option_environment_and_file_in_this_order() {
    let place = Place::new(programs!());
    let written = |command: &mut Command, url: &str| {
        let file =
            format!("[targets.near]\nurl = \"{url}\"\nheaders_env = {{ authorization = \"FILE\", X-Key = \"KEY\" }}\n");
        place.file("mcpeval.toml", file);
        command.args(["--target", "near"]).env("FILE", "file").env("KEY", "key").env("OPTION", "option");
    };
    let sent = headers_sent(&place, written);
    assert_eq!(sent, ["authorization: file", "x-key: key"]);
    let sent = headers_sent(&place, |command, url| {
        written(command, url);
        command.env("MCPEVAL_HTTP_AUTHORIZATION", "environment");
    });
    assert_eq!(sent, ["authorization: environment", "x-key: key"]);
    let sent = headers_sent(&place, |command, url| {
        written(command, url);
        command.env("MCPEVAL_HTTP_AUTHORIZATION", "environment").args(["--header-env", "AUTHORIZATION=OPTION"]);
    });
    assert_eq!(sent, ["authorization: option", "x-key: key"]);
}

#[test]
fn a_component_is_loaded_by_its_pin_and_its_grants_hold() {
    let place = Place::new(programs!());
    let source = include_str!("../guests/pipe.wat");
    let component = guests::build(&Guest { name: "pipe", source, manifest: |_| {} });
    let digest = Sha256::digest(&component).iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    place.file("pipe.wasm", &component);
    let listed = place.run(["probes", "show", "pipe.wasm"]).stdout;
    let manifest: serde_json::Value = serde_json::from_str(&listed).expect("what the component says of itself");
    let kind = manifest.pointer("/kind").and_then(serde_json::Value::as_str).expect("its kind").to_owned();
    let configure = |pin: &str, grants: &str| {
        let table = format!("[components.\"{kind}\"]\npath = \"pipe.wasm\"\nsha256 = \"{pin}\"\ngrants = [{grants}]\n");
        place.file("mcpeval.toml", table);
    };
    configure(&digest, "");
    let outcome = place.run(["probes", "show", &kind]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.contains(&digest), "{}", outcome.stdout);
    assert!(place.run(["probes", "list"]).stdout.contains(&kind));

    let standard = format!(
        "schema: mcpeval.standard/v1\nlabel: acme/1\nareas:\n  - {{name: {AREA}, weight: 100, component: {{path: pipe.wasm, sha256: {digest}}}}}\n"
    );
    place.file("standard.yaml", standard);
    let outcome = place.score(&["--standard", "standard.yaml"], "good");
    assert_eq!(outcome.code, Some(2), "nobody granted it: {}", outcome.stderr);
    configure(&digest, "\"pipe\"");
    let outcome = place.score(&["--standard", "standard.yaml"], "good");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.report().area_score(AREA), Some(100));

    configure(&"0".repeat(64), "\"pipe\"");
    let outcome = place.score(&["--standard", "standard.yaml"], "good");
    assert_eq!(outcome.code, Some(2), "powers are granted to other bytes: {}", outcome.stderr);
    let outcome = place.run(["probes", "list"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("is not the pinned one"), "{}", outcome.stderr);
}

#[test]
fn names_of_targets_complete_from_the_file_that_the_line_names() {
    let place = Place::new(programs!());
    place.file("mcpeval.toml", target("shop", "good"));
    place.file("other.toml", target("ship", "good"));
    let complete = |words: &[&str]| {
        let mut command = place.mcpeval(["--"]);
        command.args(words).env("MCPEVAL_COMPLETE", "bash");
        let last = words.len() - 1;
        command.env("_CLAP_COMPLETE_INDEX", last.to_string()).env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true");
        run(command).stdout
    };
    assert_eq!(complete(&["mcpeval", "score", "--target", "sh"]).trim(), "shop");
    assert_eq!(complete(&["mcpeval", "score", "--config", "other.toml", "--target", "sh"]).trim(), "ship");
}

#[test]
fn a_document_may_come_through_a_pipe() {
    let place = Place::new(programs!());
    let script = "exec \"$0\" score --format json --lanes 1 --arguments <(echo '{}') -- \"$1\" good";
    let mut command = place.command("/bin/bash");
    command.args(["-c", script, programs!().mcpeval, programs!().server]);
    let outcome = run(command);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.report().at("/readiness/measurement_profile/arguments_sha256").is_string());
}

#[test]
fn no_option_waits_for_a_pipe_that_nobody_writes_to() {
    let place = Place::new(programs!());
    let pipe = place.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).expect("a named pipe");
    for option in ["--standard", "--arguments", "--corpus", "--config"] {
        let outcome = place.run(["score", "--demo", option, "pipe"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{option}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("pipe: nobody writes to this pipe"), "{option}: {}", outcome.stderr);
    }
    let outcome = place.run(["score", "--demo", "--component", "acme.a=pipe"]);
    assert!(outcome.stderr.contains("the component pipe is no regular file"), "{}", outcome.stderr);
}
