//! What the command line says to people: help, and tips that fit the mistake.

use mcpeval_tests::programs;
use mcpeval_tests::run::Place;

#[test]
fn help_and_version_are_results() {
    let place = Place::new(programs!());
    for line in ["--help", "-h", "help", "help score", "help probes show", "score --help", "probes list -h"] {
        let outcome = place.run(line.split(' '));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{line}");
        assert!(outcome.stdout.contains("Usage: mcpeval"), "{line}: {}", outcome.stdout);
    }
    for line in ["--version", "-V", "score --version", "probes show -V"] {
        let outcome = place.run(line.split(' '));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{line}");
        assert!(outcome.stdout.starts_with("mcpeval"), "{line}: {}", outcome.stdout);
        assert!(outcome.stdout.trim_end().ends_with(env!("CARGO_PKG_VERSION")), "{line}: {}", outcome.stdout);
    }
    let bare = place.run::<&str>([]);
    assert_eq!((bare.code, bare.stdout.as_str()), (Some(2), ""));
    assert!(bare.stderr.contains("Usage: mcpeval"), "{}", bare.stderr);
}

#[test]
fn mistakes_get_the_tip_that_fits() {
    let place = Place::new(programs!());
    for (line, tip) in [
        ("probe --manfest x -- server", "tip: the nearest option is --manifest"),
        ("scroe", "tip: the nearest command is score"),
        ("score --ouput x -- server", "tip: the nearest option is --output"),
        ("score server", "tip: the server's command and its options stand after --, as in: mcpeval score -- node"),
        ("score -- --lanes 2 server", "error: after -- stands the server's command, and an option stands there"),
        ("compare --target a -- --lanes 2", "error: after -- stands the server's command, and an option stands there"),
    ] {
        place.file("mcpeval.toml", "[targets.a]\ncommand = [\"a\"]\n");
        let outcome = place.run(line.split(' '));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{line}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(tip) && !outcome.stderr.contains("as a value"), "{line}: {}", outcome.stderr);
    }
}

#[test]
fn options_that_the_server_got_are_told_only_if_it_does_not_start() {
    let place = Place::new(programs!());
    place.file("m.yaml", "version: 1\nprobes:\n- {probe: pagination, id: a, access: read_only, max_pages: 3}\n");
    place.file("mcpeval.toml", "[targets.gone]\ncommand = [\"/nowhere/at-all\"]\n");
    let tip = "tip: --startup-timeout stands after --, so the server got it; put before -- what is meant for mcpeval";
    for command in ["score", "probe --manifest m.yaml --gate-only", "init", "guidance", "compare --target gone"] {
        let run = |server: &str| {
            let mut words: Vec<&str> = command.split(' ').collect();
            // The fixture takes no options; a shell drops them.
            words.extend(["--", "sh", "-c", "exec \"$0\" \"$1\"", programs!().server, server]);
            words.extend(["--startup-timeout", "3"]);
            place.run(words)
        };
        let outcome = run("exits-at-once");
        assert_eq!(outcome.code, Some(3), "{command}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.matches(tip).count(), 1, "{command}: {}", outcome.stderr);
        let outcome = run("good");
        assert!(!outcome.stderr.contains("tip:"), "{command}: {}", outcome.stderr);
    }
}
