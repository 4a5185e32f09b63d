//! What goes over HTTP beside the messages: the end of sessions, streams that stay open, headers that must not travel.

use std::time::Duration;

use mcpeval_tests::programs;
use mcpeval_tests::run::{PATIENCE, Place, Running};

/// Far below any timeout of the program.
const QUICK: Duration = Duration::from_secs(10);

#[test]
fn every_session_is_ended() {
    let place = Place::new(programs!());
    let outcome = place.score_http(&["--lanes", "1"], "good");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let lines = place.journal_lines();
    let count = |wanted: &str| lines.iter().filter(|line| *line == wanted).count();
    assert!(count("initialize") >= 2, "{lines:?}");
    assert_eq!(count("DELETE"), count("initialize"), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("DELETE"), "{lines:?}");
}

#[test]
fn open_streams_do_not_delay_the_run() {
    for server in ["events-open", "get-stream"] {
        let place = Place::new(programs!());
        let outcome = place.score_http(&[], server);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(outcome.report().area_score("protocol"), Some(100), "{server}");
        assert!(outcome.wall < QUICK, "{server} took {:?}", outcome.wall);
    }
}

#[test]
fn a_redirect_to_another_server_is_not_followed() {
    let place = Place::new(programs!());
    let served = place.serve("redirect-foreign");
    let mut command = place.mcpeval(["score", "--format", "json", "--url", &served.url]);
    command.env("MCPEVAL_HTTP_AUTHORIZATION", "Bearer swordfish");
    let outcome = Running::start(command).finish(PATIENCE);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("127.0.0.2"), "the message does not say where to: {}", outcome.stderr);
    assert!(!outcome.stderr.contains("swordfish"), "{}", outcome.stderr);
}

#[test]
fn a_remote_address_needs_permission_and_encryption() {
    let place = Place::new(programs!());
    for options in [&["--url", "https://mcp.example.com/mcp"][..], &["--url", "http://mcp.example.com/mcp"]] {
        let outcome = place.run([&["score"], options].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    }
    let outcome = place.run(["score", "--allow-remote-http", "--url", "http://mcp.example.com/mcp"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
}

#[test]
fn a_host_name_stays_as_given() {
    let place = Place::new(programs!());
    let served = place.serve("good");
    let url = served.url.replace("127.0.0.1", "localhost");
    let outcome = place.score_url(&[], &url);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}
