//! The report as `JUnit` XML, in the dialect of the common schema. `quick-junit` would write an attribute that the schema
//! does not know.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::document::{Case, CaseResult, Report};
use super::render::{Options, Timings};
use super::text;
use super::view::{self, Floor};
use crate::error::{Error, Result};

/// The type of a missed floor.
const FLOOR: &str = "readiness/floor";

/// A group of testcases.
#[derive(Debug)]
struct Suite {
    name: String,
    properties: Vec<(String, String)>,
    cases: Vec<Testcase>,
    time: Option<Duration>,
    output: String,
}

#[derive(Debug)]
struct Testcase {
    class: String,
    name: String,
    time: Option<Duration>,
    /// Why it did not pass: verdict, type, message, hint.
    problem: Option<Problem>,
}

#[derive(Debug)]
struct Problem {
    verdict: CaseResult,
    reason: String,
    message: String,
    hint: Option<String>,
}

/// The document.
///
/// # Errors
/// None for values made here; a library's fault would show as something that could not be completed.
pub fn render(report: &Report, options: &Options) -> Result<String> {
    let suites: Vec<Suite> = [manifest(report, options), readiness(report, options)].into_iter().flatten().collect();
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    let written = write(&mut writer, &suites, options.timings.as_ref());
    let mut bytes = written.map(|()| writer.into_inner()).map_err(|error| unfinished(&error))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(|error| unfinished(&error))
}

fn unfinished(error: &dyn std::error::Error) -> Error {
    Error::unfinished(format!("the report cannot be written as JUnit XML: {error}"))
}

/// A testcase per case; none without a manifest.
fn manifest(report: &Report, options: &Options) -> Option<Suite> {
    report.gate?;
    let times = options.timings.as_ref().map(|timings| &timings.cases);
    let cases: Vec<Testcase> = report
        .cases
        .iter()
        .map(|case| Testcase {
            class: format!("{}.{}", report.server, case.probe),
            name: case.id.to_string(),
            time: times.and_then(|times| times.get(case.id.as_str())).copied(),
            problem: Problem::of(case, options),
        })
        .collect();
    let time = times.map(|times| times.values().sum());
    Some(Suite {
        name: format!("{}.manifest", report.server),
        properties: marked(options),
        cases,
        time,
        output: String::new(),
    })
}

/// The battery as one testcase, and one per floor; none if neither was asked for.
fn readiness(report: &Report, options: &Options) -> Option<Suite> {
    let floors = view::floors(report);
    if report.readiness.is_none() && report.readiness_error.is_none() && floors.is_empty() {
        return None;
    }
    let name = format!("{}.readiness", report.server);
    let standard = match (&report.readiness, &report.readiness_partial) {
        (Some(readiness), _) => Some(&readiness.standard),
        (None, partial) => partial.as_ref().map(|partial| &partial.standard),
    };
    let mut properties = marked(options);
    properties.extend(standard.map(|standard| ("standard".to_owned(), standard.to_string())));
    if let Some(readiness) = &report.readiness {
        properties.push(("score".to_owned(), readiness.score.0.to_string()));
        properties.push(("score_without_latency".to_owned(), readiness.score_without_latency.0.to_string()));
    }
    let areas = view::areas(report).iter();
    properties.extend(areas.map(|area| (format!("area.{}", area.name), area.score.0.to_string())));

    let unmeasured = report.readiness_error.map(|error| Problem {
        verdict: CaseResult::Error,
        reason: error.0.label().to_owned(),
        message: report.readiness_partial.as_ref().map_or_else(
            || "not measured".to_owned(),
            |partial| {
                let (areas, tools) = (partial.areas.len(), &partial.tools);
                format!("not finished: areas={areas} tools={}/{}", tools.finished, tools.total)
            },
        ),
        hint: (!options.brief).then(|| error.0.hint().to_owned()),
    });
    let mut cases =
        vec![Testcase { class: name.clone(), name: "readiness".to_owned(), time: None, problem: unmeasured }];
    cases.extend(floors.iter().map(|floor| Testcase {
        class: name.clone(),
        name: format!("floor.{}", floor.subject),
        time: None,
        problem: Problem::of_floor(floor, report),
    }));
    let plain = Options { styled: false, ..options.clone() };
    Some(Suite { name, properties, cases, time: None, output: text::losses(report, &plain) })
}

/// Says that measured times are no part of what may be shared.
fn marked(options: &Options) -> Vec<(String, String)> {
    options.timings.iter().map(|_| ("timings".to_owned(), "not share-safe".to_owned())).collect()
}

impl Problem {
    fn of(case: &Case, options: &Options) -> Option<Self> {
        let verdict = case.result();
        if verdict == CaseResult::Pass {
            return None;
        }
        let reason = case.reason.as_ref().map(ToString::to_string).unwrap_or_default();
        // Writing to a string cannot fail.
        let mut message = format!("{reason} attempts={}", case.attempts);
        if let Some(first_failure) = case.first_failure {
            _ = write!(message, " first_failure={first_failure}");
        }
        for (name, value) in &case.measurements {
            if let Some(value) = view::scalar(value) {
                _ = write!(message, " {name}={value}");
            }
        }
        if let Some(detail) = &case.detail {
            _ = write!(message, " bound={} limit={} observed={}", detail.bound, detail.limit, detail.observed);
        }
        let hint = case.hint.as_ref().filter(|_| !options.brief).map(ToString::to_string);
        Some(Self { verdict, reason, message, hint })
    }

    fn of_floor(floor: &Floor<'_>, report: &Report) -> Option<Self> {
        let reason = match floor.result {
            CaseResult::Pass => return None,
            CaseResult::Fail => FLOOR,
            CaseResult::Error => report.readiness_error.map_or(FLOOR, |error| error.0.label()),
        };
        let observed = floor.observed.map_or_else(|| "none".to_owned(), |observed| observed.0.to_string());
        Some(Self {
            verdict: floor.result,
            reason: reason.to_owned(),
            message: format!("observed={observed} floor={}", floor.floor.0),
            hint: None,
        })
    }
}

impl Suite {
    fn count(&self, verdict: CaseResult) -> usize {
        self.cases.iter().filter(|case| case.problem.as_ref().is_some_and(|problem| problem.verdict == verdict)).count()
    }
}

type Xml = Writer<Vec<u8>>;

fn write(xml: &mut Xml, suites: &[Suite], timings: Option<&Timings>) -> io::Result<()> {
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let sum = |count: &dyn Fn(&Suite) -> usize| suites.iter().map(count).sum::<usize>().to_string();
    xml.create_element("testsuites")
        .with_attribute(("name", "mcpeval"))
        .with_attribute(("tests", sum(&|suite| suite.cases.len()).as_str()))
        .with_attribute(("failures", sum(&|suite| suite.count(CaseResult::Fail)).as_str()))
        .with_attribute(("errors", sum(&|suite| suite.count(CaseResult::Error)).as_str()))
        .with_attributes(time(timings.map(|timings| timings.total)).as_ref().map(|time| ("time", time.as_str())))
        .write_inner_content(|xml| suites.iter().try_for_each(|suite| write_suite(xml, suite)))?;
    Ok(())
}

fn write_suite(xml: &mut Xml, suite: &Suite) -> io::Result<()> {
    xml.create_element("testsuite")
        .with_attribute(("name", held(&suite.name).as_str()))
        .with_attribute(("tests", suite.cases.len().to_string().as_str()))
        .with_attribute(("failures", suite.count(CaseResult::Fail).to_string().as_str()))
        .with_attribute(("errors", suite.count(CaseResult::Error).to_string().as_str()))
        .with_attributes(time(suite.time).as_ref().map(|time| ("time", time.as_str())))
        .write_inner_content(|xml| {
            if !suite.properties.is_empty() {
                xml.create_element("properties").write_inner_content(|xml| {
                    suite.properties.iter().try_for_each(|(name, value)| {
                        let property = xml.create_element("property").with_attribute(("name", held(name).as_str()));
                        property.with_attribute(("value", held(value).as_str())).write_empty().map(drop)
                    })
                })?;
            }
            suite.cases.iter().try_for_each(|case| write_case(xml, case))?;
            if !suite.output.is_empty() {
                xml.create_element("system-out").write_text_content(BytesText::new(&held(&suite.output)))?;
            }
            Ok(())
        })?;
    Ok(())
}

fn write_case(xml: &mut Xml, case: &Testcase) -> io::Result<()> {
    let element = xml
        .create_element("testcase")
        .with_attribute(("classname", held(&case.class).as_str()))
        .with_attribute(("name", held(&case.name).as_str()))
        .with_attributes(time(case.time).as_ref().map(|time| ("time", time.as_str())));
    let Some(problem) = &case.problem else { return element.write_empty().map(drop) };
    element.write_inner_content(|xml| {
        let name = if problem.verdict == CaseResult::Error { "error" } else { "failure" };
        let problem_element = xml
            .create_element(name)
            .with_attribute(("type", held(&problem.reason).as_str()))
            .with_attribute(("message", held(&problem.message).as_str()));
        match &problem.hint {
            Some(hint) => problem_element.write_text_content(BytesText::new(&held(hint))).map(drop),
            None => problem_element.write_empty().map(drop),
        }
    })?;
    Ok(())
}

/// Seconds.
fn time(duration: Option<Duration>) -> Option<String> {
    duration.map(|duration| format!("{:.3}", duration.as_secs_f64()))
}

/// The text with what XML 1.0 cannot hold replaced.
fn held(text: &str) -> String {
    let holds = |c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if holds(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}
