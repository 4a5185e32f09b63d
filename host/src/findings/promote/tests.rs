use jiff::SignedDuration;

use super::*;
use crate::store::index::Neighbour;

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 5e-7, "{found} is not {expected}");
}

fn now() -> Timestamp {
    "2027-01-15T12:00:00Z".parse().unwrap()
}

fn neighbour(tool: &str) -> Neighbour {
    Neighbour { tool: Some(tool.to_owned()), is_ok: true, is_real: true, is_later: false }
}

fn member(session: &str, days_ago: i64, neighbours: Vec<Neighbour>) -> Member {
    Member {
        server: "files".to_owned(),
        tool: "read_doc".to_owned(),
        template_id: Some("9f21c07ab3d4e58c".to_owned()),
        code: Some("-32001".to_owned()),
        retryable: None,
        session: session.to_owned(),
        ts: (now() - SignedDuration::from_hours(24 * days_ago)).to_string(),
        args: Some(format!("{{\"day\":\"enum:{days_ago}\"}}")),
        is_blocked: false,
        neighbours,
    }
}

fn group(kind: Kind, members: Vec<Member>) -> Group {
    let mut group = Group::new(Key::of(kind, &members[0]));
    for member in members {
        group.add(member);
    }
    group
}

#[test]
fn the_worked_example_of_the_documents() {
    let measures = Measures::of(6, 24, 7.0, 4.5, 2);
    close(measures.rate, 0.25);
    close(measures.confidence, 0.119_994);
    close(measures.recency, std::f64::consts::FRAC_1_SQRT_2);
    close(measures.score, 0.417_357);

    let costs = [1, 2, 3, 4, 4, 5];
    let members = costs.iter().enumerate().map(|(n, neighbours)| {
        let around = (0..*neighbours).map(|_| neighbour(if n == 0 { "list_docs" } else { "read_doc" })).collect();
        member(if n < 3 { "session:a" } else { "session:b" }, 7 + i64::try_from(n).unwrap(), around)
    });
    let group = group(Kind::Errors, members.collect());
    let issue = group.issue(24, THRESHOLD, now(), false);
    close(issue.score, 0.417_357);
    close(issue.cost, 4.5);
    assert_eq!((issue.sessions, issue.blast, issue.severity.as_str()), (2, 2, "low"));
    assert_eq!(issue.last_seen, "2027-01-08T12:00:00Z");
    assert_eq!(issue.args.as_deref(), Some("{\"day\":\"enum:12\"}"));
    assert_eq!(issue.class, "recurring-error");
}

#[test]
fn measures_keep_their_bounds() {
    for (failures, calls, age, cost, blast, score) in [
        // One call, one failure, now: the lower bound is 1 / (1 + z²).
        (1, 1, 0.0, 1.0, 1, 1.0 / (1.0 + Z * Z)),
        (1, 1, -9.0, 1.0, 1, 1.0 / (1.0 + Z * Z)),
        (1, 1, 14.0, 1.0, 1, 0.5 / (1.0 + Z * Z)),
        (1, 1, 0.0, 3.0, 1, 2.0 / (1.0 + Z * Z)),
        (1, 1, 0.0, 1.0, 4, 3.0 / (1.0 + Z * Z)),
        (1, 1, 0.0, 1.0, 0, 1.0 / (1.0 + Z * Z)),
        (0, 5, 0.0, 1.0, 1, 0.0),
        (0, 0, 0.0, 1.0, 1, 0.0),
        // Fewer calls than failures are none.
        (1, 0, 0.0, 1.0, 1, 1.0 / (1.0 + Z * Z)),
    ] {
        close(Measures::of(failures, calls, age, cost, blast).score, score);
    }
    close(Measures::of(1_000_000, 1_000_000, 0.0, 1.0, 1).confidence, 0.999_996);
}

#[test]
fn a_median_is_the_middle_one_or_between_the_middle_two() {
    for (values, expected) in [
        (&[1][..], 1.0),
        (&[1, 9], 5.0),
        (&[2, 3, 4, 5, 5, 6], 4.5),
        (&[1, 1, 9], 1.0),
        (&[3, 3, 4, 4], 3.5),
        (&[], 0.0),
    ] {
        let mut counts = [0; MOST_COST + 1];
        for value in values {
            counts[*value] += 1;
        }
        close(median(&counts), expected);
    }
}

#[test]
fn age_is_never_negative() {
    close(age_days(now() - SignedDuration::from_hours(36), now()), 1.5);
    close(age_days(now() + SignedDuration::from_hours(36), now()), 0.0);
}

#[test]
fn codes_count_and_ties_go_to_the_smallest() {
    let with = |codes: &[&str]| {
        let members =
            codes.iter().map(|code| Member { code: Some((*code).to_owned()), ..member("session:a", 1, vec![]) });
        let issue = group(Kind::Errors, members.collect()).issue(9, 1.0, now(), false);
        (issue.err_code, issue.err_codes.join(" "), issue.class)
    };
    let is = |code: &str, codes: &str, class: &str| (code.to_owned(), codes.to_owned(), class.to_owned());
    assert_eq!(with(&["b", "a", "b"]), is("b", "a b", "unstable-error-code"));
    assert_eq!(with(&["b", "a", "a", "b", "c"]), is("a", "a b c", "unstable-error-code"));
    assert_eq!(with(&["a", "a"]), is("a", "a", "recurring-error"));
}

#[test]
fn retrying_is_what_all_errors_say() {
    let later = Neighbour { is_later: true, ..neighbour("read_doc") };
    let with = |words: &[Option<bool>], around: &[Neighbour]| {
        let members =
            words.iter().map(|retryable| Member { retryable: *retryable, ..member("session:a", 1, around.to_vec()) });
        let issue = group(Kind::Errors, members.collect()).issue(9, 1.0, now(), false);
        (issue.retryable, issue.class)
    };
    let (recovers, did_not, recurring) = ("recovers-on-retry", "retry-did-not-recover", "recurring-error");
    for (words, around, retryable, class) in [
        (&[Some(true), Some(true)][..], vec![later.clone()], Some(true), recovers),
        (&[Some(true)], vec![Neighbour { is_later: false, ..later.clone() }], Some(true), did_not),
        (&[Some(true)], vec![Neighbour { is_ok: false, ..later.clone() }], Some(true), did_not),
        (&[Some(true)], vec![Neighbour { tool: Some("other".to_owned()), ..later.clone() }], Some(true), did_not),
        (&[Some(true), None], vec![later.clone()], None, recurring),
        (&[Some(true), Some(false)], vec![later.clone()], None, recurring),
        (&[Some(false), Some(false)], vec![later], Some(false), recurring),
    ] {
        assert_eq!(with(words, &around), (retryable, class.to_owned()), "{words:?}");
    }
}

#[test]
fn only_real_records_cost_and_every_tool_counts_once() {
    let synthetic = Neighbour { is_real: false, ..neighbour("other") };
    let other = Neighbour { tool: None, ..neighbour("") };
    let issue = group(Kind::Errors, vec![member("session:a", 1, vec![synthetic, other, neighbour("other")])]).issue(
        9,
        1.0,
        now(),
        false,
    );
    close(issue.cost, 3.0);
    assert_eq!(issue.blast, 2);
}

#[test]
fn false_successes_are_of_one_tool_whatever_their_errors_and_have_words_for_what_they_lack() {
    let fine = Member { template_id: None, code: None, ..member("session:a", 1, vec![]) };
    let issue = group(Kind::FalseSuccesses, vec![fine.clone()]).issue(9, 1.0, now(), false);
    assert_eq!(
        (issue.class.as_str(), issue.err_code.as_str(), issue.err_template_id.as_str()),
        (FALSE_SUCCESS, FALSE_SUCCESS, FALSE_SUCCESS)
    );
    assert_eq!(issue.finding_id, hash::false_success("files", "read_doc"));
    let issue = group(Kind::FalseSuccesses, vec![fine, member("session:b", 1, vec![])]).issue(9, 1.0, now(), false);
    assert_eq!((issue.failures, issue.err_codes), (2, vec!["-32001".to_owned()]));
}
