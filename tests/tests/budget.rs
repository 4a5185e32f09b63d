//! What 4,096 requests are enough for, and what is left of a run that they are not enough for.

use std::time::Duration;

use mcpeval_tests::programs;
use mcpeval_tests::run::Place;

/// Most requests of one run.
const REQUESTS: usize = 4_096;

/// Most memory of a run against thousands of tools, in bytes.
const MOST_MEMORY: u64 = 256 << 20;

#[test]
fn a_thousand_tools_get_a_full_score() {
    let place = Place::new(programs!());
    let outcome = place.score(&["--lanes", "1"], "tools-1000");
    let report = outcome.report();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(report.number("/readiness/surface/exercised"), Some(1_000));
    for area in ["protocol", "catalog", "error-honesty", "coverage"] {
        assert_eq!(report.area_score(area), Some(100), "{area}");
    }
    assert_eq!(report.measurement("successful_calls"), Some(3_000));
    assert!(outcome.wall < Duration::from_mins(2), "{:?}", outcome.wall);
    assert!(outcome.usage.rusage.maxrss < MOST_MEMORY, "it took {} bytes", outcome.usage.rusage.maxrss);
    // One primary session; 4 pages; 4 calls a tool; contention, payload, three checks, negotiation.
    assert_eq!(requests(&place), 1 + 4 + 4_000 + 3 + 2 + 3 + 1);
}

#[test]
fn three_thousand_tools_keep_what_was_finished() {
    let place = Place::new(programs!());
    let outcome = place.score(&["--lanes", "1"], "tools-3000");
    let report = outcome.report();
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert_eq!(report.at("/passed"), false);
    assert_eq!(report.at("/readiness_error"), "evaluation-budget-exceeded");
    assert!(report.at("/readiness").is_null());
    assert_eq!(report.area_score("catalog"), Some(100));
    assert!(report.area_score("context").is_some());
    assert!(report.area_score("coverage").is_none());
    assert_eq!(report.number("/readiness_partial/tools/total"), Some(3_000));
    let finished = report.number("/readiness_partial/tools/finished").unwrap_or(0);
    assert!((1_000..=1_024).contains(&finished), "{finished} tools are finished");
    assert_eq!(report.at("/catalog/tools").as_array().map(Vec::len), Some(3_000));
    assert_eq!(requests(&place), REQUESTS);
}

/// Requests that the server received, by its journal.
fn requests(place: &Place) -> usize {
    place.journal_lines().iter().filter(|line| !line.starts_with("notifications/") && !line.is_empty()).count()
}

#[test]
fn the_worked_accounting_of_the_good_server_holds() {
    let place = Place::new(programs!());
    let outcome = place.score(&["--lanes", "1"], "good");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // Handshake, one page, two tools, contention, payload, three checks, and one handshake more for the negotiation:
    // the revision that answers the unknown one has come back before.
    assert_eq!(requests(&place), 1 + 1 + 8 + 3 + 2 + 3 + 1, "{:?}", place.journal_lines());
}
