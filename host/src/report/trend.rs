//! What a run adds to the history of its server.

use serde::Serialize;

use super::document::{Hex64, Label, Percent, Profile, Report, StandardLabel};

/// Which command a point is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A manifest and the battery.
    Probe,
    /// The battery alone.
    Score,
}

/// One point of a server's history; its time is added by whoever keeps it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The server's label.
    pub server: Label,
    /// The command.
    pub kind: Kind,
    /// Whether everything asked for passed.
    pub passed: bool,
    /// Cases selected.
    pub cases_total: u32,
    /// Cases passed.
    pub cases_passed: u32,
    /// The score.
    pub score: Percent,
    /// Digest of the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_sha256: Option<Hex64>,
    /// The standard.
    pub standard: StandardLabel,
    /// What makes scores comparable.
    pub measurement_profile: Profile,
}

impl Report {
    /// The point of a whole run without errors; none for a selection of cases, a run without the battery, or one in which
    /// something reached no verdict: such a run says nothing of how the server does over time.
    pub fn trend_point(&self) -> Option<Point> {
        let readiness = self.readiness.as_ref().filter(|_| self.exit_code() != 3)?;
        let gate = self.gate;
        Some(Point {
            server: self.server.clone(),
            kind: if gate.is_some() { Kind::Probe } else { Kind::Score },
            passed: self.passed,
            cases_total: gate.map_or(0, |gate| gate.total),
            cases_passed: gate.map_or(0, |gate| gate.passed),
            score: readiness.score,
            manifest_sha256: self.manifest_sha256.clone(),
            standard: readiness.standard.clone(),
            measurement_profile: readiness.measurement_profile.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::assemble::{Floors, assemble};
    use super::super::document::Gate;
    use super::super::tests_support::Example;
    use super::*;

    #[test]
    fn a_whole_run_adds_a_point_and_others_add_none() {
        let example = Example::worked();
        let label = || Label::new("shop").unwrap();
        let mut report = assemble(&example.facts(), label(), &Floors::default()).report;
        let point = report.trend_point().unwrap();
        assert_eq!((point.kind, point.score.0, point.cases_total), (Kind::Score, 65, 0));
        report.gate = Some(Gate { passed: 2, total: 3 });
        let value = serde_json::to_value(report.trend_point().unwrap()).unwrap();
        assert_eq!(value["kind"], "probe");
        assert_eq!((value["cases_passed"].as_u64(), value["cases_total"].as_u64()), (Some(2), Some(3)));
        assert!(value.get("manifest_sha256").is_none() && value["measurement_profile"]["lanes"].is_u64());
        report.readiness = None;
        assert_eq!(report.trend_point(), None);
    }
}
