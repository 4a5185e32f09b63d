//! The report as lines for people and for `grep`.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::corpus::Placement;
use super::document::{AreaReport, CATALOG_TOKENS, Case, LostCheck, Measured, Report, Subject, measurement};
use crate::outcome::NoVerdict;

/// Subjects shown of one group of losses, unless all are asked for.
pub const SUBJECTS_SHOWN: usize = 8;
const INDENT: &str = "    ";
const GOOD: Style = AnsiColor::Green.on_default();
const FAIR: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();

/// What to show.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// No hints.
    pub brief: bool,
    /// Every subject, score and count.
    pub full: bool,
    /// The measured time of the run; it is not share-safe.
    pub elapsed: Option<Duration>,
    /// Price of a million tokens, in US dollars, at least 0.
    pub price_per_mtok: Option<f64>,
    /// Where the server stands among others.
    pub placement: Option<Placement>,
    /// Colours, for a terminal.
    pub styled: bool,
}

/// The lines, each with its newline.
pub fn render(report: &Report, options: &Options) -> String {
    let mut lines = Lines { out: String::new(), options, hinted: HashSet::new() };
    // Writing to a string cannot fail.
    _ = lines.report(report);
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
        for group in groups(areas(report)) {
            self.loss(&group)?;
        }
        self.floors(report)?;
        self.placement(report)?;
        if report.readiness.is_some() || report.readiness_error.is_some() {
            writeln!(self.out, "note these checks are structural; semantic correctness needs a reviewed oracle")?;
        }
        if let Some(elapsed) = self.options.elapsed {
            writeln!(self.out, "timing total_ms={} not share-safe", elapsed.as_millis())?;
        }
        Ok(())
    }

    fn paint(&self, style: Style, text: impl fmt::Display) -> String {
        if self.options.styled { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    fn verdict(&self, verdict: &str) -> String {
        let style = match verdict {
            "pass" => GOOD,
            "fail" => BAD,
            _ => FAIR,
        };
        self.paint(style, verdict)
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
        let errored = reason.is_some_and(|reason| NoVerdict::from_label(reason.as_str()).is_some());
        let verdict = self.verdict(if case.passed {
            "pass"
        } else if errored {
            "error"
        } else {
            "fail"
        });
        write!(self.out, "{} {} {verdict} attempts={}", case.id, case.probe, case.attempts)?;
        if let Some(first_failure) = case.first_failure {
            write!(self.out, " first_failure={first_failure}")?;
        }
        if let Some(reason) = reason {
            write!(self.out, " reason={reason}")?;
        }
        for (name, value) in &case.measurements {
            match value {
                Measured::Whole(value) => write!(self.out, " {name}={value}")?,
                Measured::Number(value) => write!(self.out, " {name}={value}")?,
                Measured::Word(word) => write!(self.out, " {name}={word}")?,
                Measured::PerTool(_) => {}
            }
        }
        if let Some(detail) = &case.detail {
            write!(self.out, " bound={} limit={} observed={}", detail.bound, detail.limit, detail.observed)?;
        }
        self.out.push('\n');
        match (reason, &case.hint) {
            (Some(reason), Some(hint)) => self.hint(reason.as_str(), hint.as_str()),
            _ => Ok(()),
        }
    }

    fn readiness(&mut self, report: &'a Report) -> fmt::Result {
        let server = &report.server;
        if let Some(readiness) = &report.readiness {
            let style = match readiness.score.0 {
                80.. => GOOD,
                50.. => FAIR,
                _ => BAD,
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

    fn loss(&mut self, group: &[&'a LostCheck]) -> fmt::Result {
        let Some(first) = group.first() else { return Ok(()) };
        let lost = self.paint(FAIR, "lost");
        write!(self.out, "{lost} {} {} count={}", first.id, first.reason, group.len())?;
        if group.len() == 1 || self.options.full {
            let scores: Vec<String> = group.iter().map(|check| check.score.0.to_string()).collect();
            write!(self.out, " score={}", scores.join(","))?;
            let observed: Vec<String> =
                group.iter().filter_map(|check| check.observed).map(|observed| observed.to_string()).collect();
            if observed.len() == group.len() {
                write!(self.out, " observed={}", observed.join(","))?;
            }
        }
        let tools: Vec<&str> = group.iter().filter_map(|check| check.tool.as_ref()).map(Subject::as_str).collect();
        let shown = if self.options.full { tools.len() } else { tools.len().min(SUBJECTS_SHOWN) };
        if let Some(names) = tools.get(..shown).filter(|names| !names.is_empty()) {
            write!(self.out, " tools={}", names.join(","))?;
            if tools.len() > shown {
                write!(self.out, "(+{})", tools.len() - shown)?;
            }
        }
        self.out.push('\n');
        self.hint(first.reason.as_str(), first.hint.as_str())
    }

    fn floors(&mut self, report: &Report) -> fmt::Result {
        let Some(gate) = &report.readiness_gate else { return Ok(()) };
        let readiness = report.readiness.as_ref();
        let score = gate
            .min_score
            .map(|floor| ("score", readiness.map(|readiness| readiness.observed(gate.exclude_latency)), floor));
        let areas = gate.min_areas.iter().map(|(name, floor)| {
            let area = readiness.and_then(|readiness| readiness.areas.iter().find(|area| area.name.as_str() == name));
            (name.as_str(), area.map(|area| area.observed(gate.exclude_latency)), *floor)
        });
        for (subject, observed, floor) in score.into_iter().chain(areas) {
            let verdict = match observed {
                Some(observed) if observed >= floor => "pass",
                Some(_) => "fail",
                None => "error",
            };
            let observed = observed.map_or_else(|| "none".to_owned(), |observed| observed.0.to_string());
            let verdict = self.verdict(verdict);
            writeln!(self.out, "floor {subject} observed={observed} floor={} {verdict}", floor.0)?;
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
        let tokens = measurement(areas(report), CATALOG_TOKENS);
        if let (Some(price), Some(tokens)) = (self.options.price_per_mtok, tokens) {
            #[expect(clippy::cast_precision_loss, reason = "a count of tokens is far below 2^52")]
            let cost = tokens as f64 * price / 1e6;
            writeln!(self.out, "cost {CATALOG_TOKENS}={tokens} usd_per_mtok={price} usd={cost:.6}")?;
        }
        Ok(())
    }
}

/// The areas that have a score, of a finished battery or not.
fn areas(report: &Report) -> &[AreaReport] {
    match (&report.readiness, &report.readiness_partial) {
        (Some(readiness), _) => &readiness.areas,
        (None, Some(partial)) => &partial.areas,
        (None, None) => &[],
    }
}

/// Losses of the same check and reason, in the order of their first.
fn groups(areas: &[AreaReport]) -> Vec<Vec<&LostCheck>> {
    let mut places = std::collections::HashMap::new();
    let mut groups: Vec<Vec<&LostCheck>> = Vec::new();
    for check in areas.iter().flat_map(|area| &area.checks) {
        let place = *places.entry((check.id.as_str(), check.reason.as_str())).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(check),
            None => groups.push(vec![check]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::assemble::{Floors, assemble};
    use super::super::document::{BoundName, CaseId, Detail, Gate, Hint, KindName, Label, Reason};
    use super::super::tests_support::{Example, lost, stopped};
    use super::*;

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
            elapsed: Some(Duration::from_millis(1234)),
            ..Options::default()
        };
        let text = render(&report(&Example::worked(), &floors), &options);
        let tail: Vec<&str> = text.lines().rev().take(6).collect();
        assert_eq!(
            tail,
            [
                "timing total_ms=1234 not share-safe",
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
