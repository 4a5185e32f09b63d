//! The report as lines for people and for `grep`.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use anstyle::{AnsiColor, Style};

use super::corpus::Placement;
use super::document::{CATALOG_TOKENS, Case, CaseResult, Report};
use super::render::Options;
use super::view::{self, Band, Group, NOTE};

const INDENT: &str = "    ";
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const FAIR: Style = AnsiColor::Yellow.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();

/// The lines, each with its newline.
pub fn render(report: &Report, options: &Options) -> String {
    let mut lines = Lines { out: String::new(), options, hinted: HashSet::new() };
    // Writing to a string cannot fail.
    _ = lines.report(report);
    lines.out
}

/// The lines about losses alone.
pub(super) fn losses(report: &Report, options: &Options) -> String {
    let mut lines = Lines { out: String::new(), options, hinted: HashSet::new() };
    _ = lines.losses(report);
    lines.out
}

/// Text from a server or a component, fit for a terminal: control characters, and those that reorder or hide text,
/// are shown as escapes.
pub fn neutralised(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let hides =
            matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        match c {
            '\t' => out.push(' '),
            c if c.is_control() || hides => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

struct Lines<'a> {
    out: String,
    options: &'a Options,
    /// Reasons whose hint has been shown.
    hinted: HashSet<&'a str>,
}

impl<'a> Lines<'a> {
    fn report(&mut self, report: &'a Report) -> fmt::Result {
        for case in &report.cases {
            self.case(case)?;
        }
        if let Some(gate) = &report.gate {
            writeln!(self.out, "{} gate {}/{}", report.server, gate.passed, gate.total)?;
        }
        self.readiness(report)?;
        self.losses(report)?;
        self.floors(report)?;
        self.placement(report)?;
        if report.readiness.is_some() || report.readiness_error.is_some() {
            writeln!(self.out, "note {NOTE}")?;
        }
        if let Some(timings) = &self.options.timings {
            for (id, time) in &timings.cases {
                writeln!(self.out, "timing case={id} ms={} not share-safe", time.as_millis())?;
            }
            writeln!(self.out, "timing total_ms={} not share-safe", timings.total.as_millis())?;
        }
        Ok(())
    }

    fn paint(&self, style: Style, text: impl fmt::Display) -> String {
        if self.options.styled { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    fn verdict(&self, verdict: CaseResult) -> String {
        let style = match verdict {
            CaseResult::Pass => GOOD,
            CaseResult::Fail => BAD,
            CaseResult::Error => FAIR,
        };
        self.paint(style, verdict.word())
    }

    fn hint(&mut self, reason: &'a str, hint: &str) -> fmt::Result {
        if self.options.brief || !self.hinted.insert(reason) {
            return Ok(());
        }
        let hint = self.paint(FAINT, hint);
        writeln!(self.out, "{INDENT}{hint}")
    }

    fn case(&mut self, case: &'a Case) -> fmt::Result {
        let reason = case.reason.as_ref();
        let verdict = self.verdict(case.result());
        write!(self.out, "{} {} {verdict} attempts={}", case.id, case.probe, case.attempts)?;
        if let Some(first_failure) = case.first_failure {
            write!(self.out, " first_failure={first_failure}")?;
        }
        if let Some(reason) = reason {
            write!(self.out, " reason={reason}")?;
        }
        for (name, value) in &case.measurements {
            if let Some(value) = view::scalar(value) {
                write!(self.out, " {name}={value}")?;
            }
        }
        if let Some(detail) = &case.detail {
            write!(self.out, " bound={} limit={} observed={}", detail.bound, detail.limit, detail.observed)?;
        }
        self.out.push('\n');
        if let Some(missed) = self.options.missed.get(case.id.as_str()) {
            writeln!(self.out, "{INDENT}missed {missed}")?;
        }
        match (reason, &case.hint) {
            (Some(reason), Some(hint)) => self.hint(reason.as_str(), hint.as_str()),
            _ => Ok(()),
        }
    }

    fn readiness(&mut self, report: &'a Report) -> fmt::Result {
        let server = &report.server;
        if let Some(readiness) = &report.readiness {
            let style = match Band::from(readiness.score) {
                Band::Good => GOOD,
                Band::Fair => FAIR,
                Band::Poor => BAD,
            };
            let score = self.paint(style, format_args!("{}/100", readiness.score.0));
            write!(self.out, "{server} readiness {score} {}", readiness.standard)?;
            for area in &readiness.areas {
                write!(self.out, " {}={}", area.name, area.score.0)?;
            }
            self.out.push('\n');
            let surface = &readiness.surface;
            write!(
                self.out,
                "surface tools={} read_only={} writers={} exercised={}",
                surface.tools, surface.read_only, surface.writers, surface.exercised
            )?;
            if let Some(invalid) = surface.invalid_entries {
                write!(self.out, " invalid_entries={invalid}")?;
            }
            self.out.push('\n');
        } else if let Some(score) = report.legacy_score {
            // The part of a manifest's cases that passed, as an earlier version had it.
            writeln!(self.out, "{server} readiness legacy {}/100", score.0)?;
        } else if let Some(error) = report.readiness_error {
            write!(self.out, "{server} readiness {} reason={}", self.paint(BAD, "none"), error.0.label())?;
            if let Some(partial) = &report.readiness_partial {
                let (areas, tools) = (partial.areas.len(), &partial.tools);
                write!(self.out, ", partial areas={areas} tools={}/{}", tools.finished, tools.total)?;
            }
            self.out.push('\n');
            self.hint(error.0.label(), error.0.hint())?;
        }
        Ok(())
    }

    fn losses(&mut self, report: &'a Report) -> fmt::Result {
        view::groups(view::areas(report), self.options.full).iter().try_for_each(|group| self.loss(group))
    }

    fn loss(&mut self, group: &Group<'a>) -> fmt::Result {
        let lost = self.paint(FAIR, "lost");
        write!(self.out, "{lost} {} {} count={}", group.check, group.reason, group.count)?;
        for (name, numbers) in [("score", view::listed(&group.scores)), ("observed", view::listed(&group.observed))] {
            if !numbers.is_empty() {
                write!(self.out, " {name}={numbers}")?;
            }
        }
        if !group.subjects.is_empty() {
            write!(self.out, " tools={}", group.subjects.join(","))?;
        }
        if group.more > 0 {
            write!(self.out, "(+{})", group.more)?;
        }
        self.out.push('\n');
        self.hint(group.reason.as_str(), group.hint.as_str())
    }

    fn floors(&mut self, report: &Report) -> fmt::Result {
        for floor in view::floors(report) {
            let observed = floor.observed.map_or_else(|| "none".to_owned(), |observed| observed.0.to_string());
            let verdict = self.verdict(floor.result);
            writeln!(self.out, "floor {} observed={observed} floor={} {verdict}", floor.subject, floor.floor.0)?;
        }
        Ok(())
    }

    fn placement(&mut self, report: &Report) -> fmt::Result {
        if let Some(Placement { tokens, score }) = &self.options.placement {
            if let Some(place) = tokens {
                let (rank, of, median) = (place.rank, place.of, place.median);
                writeln!(self.out, "corpus {CATALOG_TOKENS}={} rank={rank}/{of} median={median}", place.value)?;
            }
            if let Some(place) = score {
                writeln!(self.out, "corpus score={} rank={}/{}", place.value, place.rank, place.of)?;
            }
        }
        let price = self.options.price_per_mtok;
        if let Some((price, cost)) = price.and_then(|price| Some((price, view::cost(report, price)?))) {
            writeln!(self.out, "cost {CATALOG_TOKENS}={} usd_per_mtok={price} usd={:.6}", cost.tokens, cost.usd)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::assemble::{Floors, assemble};
    use super::super::document::{BoundName, CaseId, Detail, Gate, Hint, KindName, Label, Measured, Reason};
    use super::super::render::Timings;
    use super::super::tests_support::{Example, lost, stopped};
    use super::*;
    use crate::outcome::NoVerdict;

    fn report(example: &Example, floors: &Floors) -> Report {
        assemble(&example.facts(), Label::new("shop").unwrap(), floors).report
    }

    #[test]
    fn the_worked_example_reads_so() {
        let text = render(&report(&Example::worked(), &Floors::default()), &Options::default());
        assert_eq!(
            text,
            "\
shop readiness 65/100 mcpeval-standard/3 protocol=80 catalog=48 context=83 error-honesty=50 reliability=65 coverage=67
surface tools=4 read_only=3 writers=1 exercised=2 invalid_entries=1
lost protocol.ping protocol-ping-failed count=1 score=0
    What protocol-ping-failed means, and what to change.
lost catalog.description catalog-short-description count=1 score=0 observed=12 tools=get_price
    What catalog-short-description means, and what to change.
lost catalog.output-schema catalog-no-output-schema count=2 tools=get_price,list_stores
    What catalog-no-output-schema means, and what to change.
lost catalog.entry catalog-invalid-entry count=1 score=0 tools=invalid-name#4
    What catalog-invalid-entry means, and what to change.
lost context.heaviest-tool context-tool-heavy count=1 score=74 observed=900 tools=find_item
    What context-tool-heavy means, and what to change.
lost context.catalog context-catalog-heavy count=1 score=86 observed=3000
    What context-catalog-heavy means, and what to change.
lost error-honesty.invalid-arguments honesty-accepted-invalid count=1 score=0 tools=get_price
    What honesty-accepted-invalid means, and what to change.
lost reliability.latency reliability-slow count=1 score=80 observed=0 tools=find_item
    What reliability-slow means, and what to change.
lost reliability.success reliability-call-failed count=1 score=67 observed=2 tools=get_price
    What reliability-call-failed means, and what to change.
lost reliability.none-exercised coverage-unannotated count=1 score=0 tools=list_stores
    What coverage-unannotated means, and what to change.
lost coverage.exercised coverage-unannotated count=1 score=0 tools=list_stores
note these checks are structural; semantic correctness needs a reviewed oracle
"
        );
    }

    #[test]
    fn brief_drops_hints_and_full_shows_everything() {
        let mut example = Example::worked();
        let mut entries = example.catalog.take().unwrap().entries;
        example.records[1].findings.clear();
        for n in 0..11 {
            let mut entry = entries[0].clone();
            entry.label = format!("tool_{n:02}");
            entries.push(entry);
            let mut finding = lost("catalog.description", Some(&format!("tool_{n:02}")), "catalog-short-description");
            finding.observed = Some(n);
            example.records[1].findings.push(finding);
        }
        example.catalog = Some(crate::session::catalog::Catalog { entries, pages: vec![], fault: None });
        let report = report(&example, &Floors::default());
        let brief = render(&report, &Options { brief: true, ..Options::default() });
        assert!(!brief.contains("What "), "{brief}");
        assert!(
            brief.contains(
                "lost catalog.description catalog-short-description count=11 tools=tool_00,tool_01,tool_02,tool_03,tool_04,tool_05,tool_06,tool_07(+3)\n"
            ),
            "{brief}"
        );
        let full = render(&report, &Options { brief: true, full: true, ..Options::default() });
        assert!(full.contains("score=0,0,0,0,0,0,0,0,0,0,0 observed=0,1,2,3,4,5,6,7,8,9,10 tools=tool_00,"), "{full}");
        assert!(full.contains(",tool_10\n"), "{full}");
    }

    #[test]
    fn an_unfinished_battery_says_how_far_it_came() {
        let mut example = Example::worked();
        let mut record = example.records[3].clone();
        record.areas.remove("coverage");
        example.records[3] = stopped(record, NoVerdict::BudgetExceeded, Some((1, 2)));
        let floors = Floors { min_score: Some(60), ..Floors::default() };
        let text = render(&report(&example, &floors), &Options { brief: true, ..Options::default() });
        assert!(
            text.starts_with(
                "shop readiness none reason=evaluation-budget-exceeded, partial areas=5 tools=1/2\nlost protocol.ping"
            ),
            "{text}"
        );
        assert!(text.contains("\nfloor score observed=none floor=60 error\n"), "{text}");
        example.records.clear();
        example.error = Some(NoVerdict::HandshakeFailed);
        let text = render(&report(&example, &Floors::default()), &Options { brief: true, ..Options::default() });
        assert!(text.starts_with("shop readiness none reason=handshake-failed\nnote "), "{text}");
    }

    #[test]
    fn floors_price_and_time_have_their_lines() {
        let floors = Floors {
            min_score: Some(65),
            min_areas: BTreeMap::from([("catalog".to_owned(), 90), ("coverage".to_owned(), 10)]),
            exclude_latency: false,
        };
        let options = Options {
            brief: true,
            price_per_mtok: Some(2.5),
            timings: Some(Timings {
                total: Duration::from_millis(1234),
                cases: BTreeMap::from([("search-fast".to_owned(), Duration::from_millis(56))]),
            }),
            ..Options::default()
        };
        let text = render(&report(&Example::worked(), &floors), &options);
        let tail: Vec<&str> = text.lines().rev().take(7).collect();
        assert_eq!(
            tail,
            [
                "timing total_ms=1234 not share-safe",
                "timing case=search-fast ms=56 not share-safe",
                "note these checks are structural; semantic correctness needs a reviewed oracle",
                "cost catalog_tokens=3000 usd_per_mtok=2.5 usd=0.007500",
                "floor coverage observed=67 floor=10 pass",
                "floor catalog observed=48 floor=90 fail",
                "floor score observed=65 floor=65 pass",
            ]
        );
    }

    #[test]
    fn a_case_is_one_line_and_its_hint() {
        let mut report = report(&Example::worked(), &Floors::default());
        (report.readiness, report.gate) = (None, Some(Gate { passed: 0, total: 1 }));
        report.cases = vec![Case {
            id: CaseId("search-fast".to_owned()),
            probe: KindName("latency-budget".to_owned()),
            tool: Label::new("search"),
            passed: false,
            attempts: 3,
            first_failure: Some(3),
            reason: Some(Reason("latency-budget-exceeded".to_owned())),
            hint: Some(Hint("Make it faster.".to_owned())),
            detail: Some(Detail { bound: BoundName("max_latency_ms".to_owned()), limit: 800, observed: 1240 }),
            measurements: BTreeMap::from([("latency_ms".to_owned(), Measured::Whole(1240))]),
        }];
        assert_eq!(report.exit_code(), 1);
        assert_eq!(
            render(&report, &Options::default()),
            "search-fast latency-budget fail attempts=3 first_failure=3 reason=latency-budget-exceeded latency_ms=1240 bound=max_latency_ms limit=800 observed=1240\n    Make it faster.\nshop gate 0/1\n"
        );
        report.cases[0].reason = Some(Reason("transport-timeout".to_owned()));
        assert_eq!(report.exit_code(), 3);
        assert!(render(&report, &Options::default()).starts_with("search-fast latency-budget error attempts=3"));
    }

    #[test]
    fn colours_only_wrap_what_is_there() {
        let report = report(&Example::worked(), &Floors::default());
        let styled = render(&report, &Options { styled: true, ..Options::default() });
        assert!(styled.contains('\u{1b}'));
        assert_eq!(anstream::adapter::strip_str(&styled).to_string(), render(&report, &Options::default()));
    }

    #[test]
    fn nothing_from_a_server_moves_the_cursor() {
        assert_eq!(neutralised("a\u{1b}[2J\tb\r\u{9b}c\u{202e}é"), "a\\u{1b}[2J b\\u{d}\\u{9b}c\\u{202e}é");
    }
}
