//! The report as GitHub-flavoured markdown, for comments and job summaries. Labels stand in code spans, where nothing
//! is a mention, a reference or an emoji; sentences are escaped.

use std::fmt::{self, Display, Write as _};

use super::document::{Measured, PerTool, Report};
use super::render::Options;
use super::view::{self, NOTE, SUBJECTS_SHOWN};

/// The document.
pub fn render(report: &Report, options: &Options) -> String {
    let mut page = Page { out: String::new() };
    // Writing to a string cannot fail.
    _ = page.report(report, options);
    page.out
}

/// Text as a code span that nothing in it can end, fit for a table's cell.
pub(super) fn code(text: impl Display) -> String {
    let text = text.to_string().replace(['\n', '\r'], " ").replace('|', "\\|");
    let fence = "`".repeat(longest_run(&text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.trim().is_empty() { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A sentence as it reads, with nothing in it that means anything in markdown.
pub(super) fn sentence(text: impl Display) -> String {
    let mut out = String::new();
    for c in text.to_string().chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

fn longest_run(text: &str, wanted: char) -> usize {
    text.split(|c| c != wanted).map(str::len).max().unwrap_or_default()
}

/// A document under way.
pub(super) struct Page {
    pub(super) out: String,
}

impl Page {
    /// A heading, apart from what stands before it.
    pub(super) fn section(&mut self, title: &str) -> fmt::Result {
        writeln!(self.out, "\n## {title}\n")
    }

    /// A row whose cells are safe already.
    pub(super) fn row(&mut self, cells: &[String]) -> fmt::Result {
        writeln!(self.out, "| {} |", cells.join(" | "))
    }

    /// The head of a table; columns that begin with `#` hold numbers.
    pub(super) fn head(&mut self, columns: &[&str]) -> fmt::Result {
        let names: Vec<String> = columns.iter().map(|column| column.trim_start_matches('#').to_owned()).collect();
        self.row(&names)?;
        let rules = columns.iter().map(|column| if column.starts_with('#') { "---:" } else { "---" });
        self.row(&rules.map(str::to_owned).collect::<Vec<String>>())
    }

    fn report(&mut self, report: &Report, options: &Options) -> fmt::Result {
        let verdict = view::verdict(report).map(|verdict| format!(": {}", verdict.word())).unwrap_or_default();
        writeln!(self.out, "# mcpeval: {}{verdict}", code(&report.server))?;
        self.readiness(report)?;
        self.losses(report, options)?;
        if let Some(gate) = &report.gate {
            self.section("Gate")?;
            writeln!(self.out, "{} of {} cases pass.", gate.passed, gate.total)?;
        }
        self.floors(report)?;
        self.placement(report, options)?;
        self.cases(report)?;
        if !options.brief {
            self.remediation(report)?;
        }
        self.measurements(report, options)?;
        Ok(())
    }

    fn readiness(&mut self, report: &Report) -> fmt::Result {
        if let Some(readiness) = &report.readiness {
            let score = readiness.score.0;
            writeln!(self.out, "\n![mcpeval {score}/100]({}) {}", readiness.badge.as_str(), code(&readiness.standard))?;
        } else if let Some(error) = report.readiness_error {
            write!(self.out, "\nReadiness: error, {}", code(error.0.label()))?;
            if let Some(partial) = &report.readiness_partial {
                let (areas, tools) = (partial.areas.len(), &partial.tools);
                write!(self.out, "; {areas} areas and {} of {} tools finished", tools.finished, tools.total)?;
                write!(self.out, " under {}", code(&partial.standard))?;
            }
            writeln!(self.out, ".")?;
        } else {
            if let Some(score) = report.legacy_score {
                writeln!(self.out, "\nLegacy score: {} of 100, which compares with no score of today.", score.0)?;
            }
            return Ok(());
        }
        let areas = view::areas(report);
        if !areas.is_empty() {
            self.out.push('\n');
            self.head(&["Area", "#Weight", "#Score"])?;
            for area in areas {
                self.row(&[code(&area.name), area.weight.to_string(), area.score.0.to_string()])?;
            }
        }
        if let Some(readiness) = &report.readiness {
            let surface = &readiness.surface;
            write!(
                self.out,
                "\nSurface: {} tools, {} read-only, {} writers, {} exercised",
                surface.tools, surface.read_only, surface.writers, surface.exercised
            )?;
            if let Some(invalid) = surface.invalid_entries {
                write!(self.out, ", {invalid} invalid entries")?;
            }
            writeln!(self.out, ".")?;
        }
        writeln!(self.out, "\nNote: {NOTE}.")
    }

    fn losses(&mut self, report: &Report, options: &Options) -> fmt::Result {
        let groups = view::groups(view::areas(report), options.full);
        if groups.is_empty() {
            return Ok(());
        }
        self.section("Losses")?;
        self.head(&["Check", "Reason", "#Count", "#Score", "#Observed", "Tools"])?;
        for group in &groups {
            let mut tools: Vec<String> = group.subjects.iter().map(code).collect();
            tools.extend((group.more > 0).then(|| format!("+{}", group.more)));
            self.row(&[
                code(group.check),
                code(group.reason),
                group.count.to_string(),
                view::listed(&group.scores),
                view::listed(&group.observed),
                tools.join(", "),
            ])?;
        }
        Ok(())
    }

    fn floors(&mut self, report: &Report) -> fmt::Result {
        let floors = view::floors(report);
        if floors.is_empty() {
            return Ok(());
        }
        self.section("Floors")?;
        self.head(&["Subject", "#Observed", "#Floor", "Result"])?;
        for floor in &floors {
            let observed = floor.observed.map_or_else(|| "none".to_owned(), |observed| observed.0.to_string());
            self.row(&[code(floor.subject), observed, floor.floor.0.to_string(), floor.result.word().to_owned()])?;
        }
        Ok(())
    }

    fn placement(&mut self, report: &Report, options: &Options) -> fmt::Result {
        let tokens = options.placement.as_ref().and_then(|placement| placement.tokens.as_ref());
        let score = options.placement.as_ref().and_then(|placement| placement.score.as_ref());
        if tokens.is_some() || score.is_some() {
            self.section("Corpus")?;
        }
        if let Some(place) = tokens {
            let (rank, of, median) = (place.rank, place.of, place.median);
            writeln!(self.out, "- Catalog: {} tokens, rank {rank} of {of}, median {median}.", place.value)?;
        }
        if let Some(place) = score {
            writeln!(self.out, "- Score: {}, rank {} of {}.", place.value, place.rank, place.of)?;
        }
        let price = options.price_per_mtok;
        if let Some((price, cost)) = price.and_then(|price| Some((price, view::cost(report, price)?))) {
            self.section("Cost")?;
            let (tokens, usd) = (cost.tokens, cost.usd);
            writeln!(self.out, "The catalog of {tokens} tokens costs {usd:.6} USD at {price} USD per million tokens.")?;
        }
        Ok(())
    }

    fn cases(&mut self, report: &Report) -> fmt::Result {
        if report.cases.is_empty() {
            return Ok(());
        }
        self.section("Cases")?;
        self.head(&["Case", "Kind", "Result", "#Attempts", "#First failure", "Reason", "Bound"])?;
        for case in &report.cases {
            let bound = case
                .detail
                .as_ref()
                .map(|detail| format!("{}: limit {}, observed {}", code(&detail.bound), detail.limit, detail.observed));
            self.row(&[
                code(&case.id),
                code(&case.probe),
                case.result().word().to_owned(),
                case.attempts.to_string(),
                case.first_failure.map(|number| number.to_string()).unwrap_or_default(),
                case.reason.as_ref().map(code).unwrap_or_default(),
                bound.unwrap_or_default(),
            ])?;
        }
        Ok(())
    }

    fn remediation(&mut self, report: &Report) -> fmt::Result {
        let hints = view::hints(report);
        if hints.is_empty() {
            return Ok(());
        }
        self.section("Remediation")?;
        hints.iter().try_for_each(|(reason, hint)| writeln!(self.out, "- {}: {}", code(reason), sentence(hint)))
    }

    fn measurements(&mut self, report: &Report, options: &Options) -> fmt::Result {
        let areas = view::areas(report).iter().filter(|area| !area.measurements.is_empty());
        let mut rows: Vec<[String; 3]> = Vec::new();
        for case in &report.cases {
            rows.extend(
                case.measurements
                    .iter()
                    .map(|(name, value)| [code(&case.id), code(name), measured(value, options.full)]),
            );
        }
        for area in areas {
            rows.extend(
                area.measurements.iter().map(|(name, value)| [code(&area.name), code(name), value.to_string()]),
            );
        }
        if rows.is_empty() {
            return Ok(());
        }
        self.section("Measurements")?;
        self.head(&["Case or area", "Measurement", "Value"])?;
        rows.iter().try_for_each(|row| self.row(row))
    }
}

/// A value; of a list the largest entries, unless all are asked for.
fn measured(value: &Measured, full: bool) -> String {
    match value {
        Measured::Word(word) => code(word),
        Measured::PerTool(entries) => {
            let shown = if full { entries.len() } else { entries.len().min(SUBJECTS_SHOWN) };
            let entry = |entry: &PerTool| format!("{} {} {}", code(&entry.tool), entry.value, code(&entry.unit));
            let mut words: Vec<String> = entries.iter().take(shown).map(entry).collect();
            words.extend((entries.len() > shown).then(|| format!("+{}", entries.len() - shown)));
            words.join(", ")
        }
        number => view::scalar(number).unwrap_or_default(),
    }
}
