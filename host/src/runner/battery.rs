//! The standard battery: one run per component, for all the areas it serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::evaluate::{Desk, unmet_need};
use super::{AreaRun, Battery, BatteryRun, Profile};
use crate::error::{Error, Result};
use crate::guest;
use crate::outcome::{Ended, NoVerdict, Verdict};
use crate::probes::Loaded;
use crate::session::{Policy, Session};

/// A component that is not of the battery needs a grant for each power it imports, before anything runs.
pub(super) fn check_grants(battery: &Battery) -> Result<()> {
    for (area, component) in battery.standard.areas.iter().zip(&battery.components) {
        let granted = battery.grants.get(&area.name);
        let missing = component.powers.iter().find(|power| granted.is_none_or(|granted| !granted.contains(power)));
        if let (Some(power), false) = (missing, component.shipped) {
            return Err(Error::usage(format!(
                "the component of area {} wants the power {power}, which works below the protocol; allow it with --grant area:{}={power}",
                area.name, area.name
            )));
        }
    }
    Ok(())
}

/// Whatever a component needs of the server is there.
pub(super) fn check_needs(battery: &Battery, session: &Session, transport: &str) -> Result<()> {
    for (area, component) in battery.standard.areas.iter().zip(&battery.components) {
        if let Some(need) = unmet_need(&component.manifest, session, transport) {
            return Err(Error::usage(format!(
                "the component of area {} needs {need}, which this server does not have; leave the area out",
                area.name
            )));
        }
    }
    Ok(())
}

/// Runs every component of the battery on a listed server.
pub(super) async fn run(desk: &Desk<'_>, battery: Battery, profile: Profile, policy: Arc<Policy>) -> BatteryRun {
    let areas = battery.standard.areas.iter().map(|area| area.name.clone()).collect();
    let catalog = &desk.catalog;
    let callable = catalog.entries.iter().filter(|entry| !entry.repeated && policy.blocked(&entry.label).is_none());
    let mut outcome = BatteryRun {
        callable: u32::try_from(callable.count()).unwrap_or(u32::MAX),
        ..BatteryRun::unreached(battery.standard, profile)
    };
    for (component, areas) in group(battery.components, areas) {
        desk.progress.step(&areas.join(", "));
        let case = guest::Case {
            id: "battery".into(),
            config: serde_json::json!({"areas": areas, "lanes": outcome.profile.lanes}).to_string(),
            may_mutate: false,
            timeout: std::time::Duration::from_millis(outcome.profile.call_timeout_ms.into()),
            seed: 0,
        };
        let record = desk.run(&component, &desk.catalog, case, component.powers.clone(), Arc::clone(&policy)).await;
        let run = AreaRun { component, areas, record };
        if let Some((reason, detail)) = unfinished(&run) {
            let detail = format!("{} ({}): {detail}", run.component.manifest.kind, run.component.digest);
            desk.note(detail.clone());
            // The budget outranks everything: what came after it could not be judged any more.
            let outranks = reason == NoVerdict::BudgetExceeded && outcome.error != Some(NoVerdict::BudgetExceeded);
            if outcome.error.is_none() || outranks {
                outcome.error = Some(reason);
                outcome.fault = Some(detail);
            }
        }
        outcome.runs.push(run);
    }
    if let Some(fault) = &catalog.fault
        && fault.cause.label() == NoVerdict::BudgetExceeded
    {
        outcome.error = Some(NoVerdict::BudgetExceeded);
        outcome.fault = Some(fault.detail.clone());
    }
    outcome
}

impl BatteryRun {
    /// A battery of which nothing ran.
    pub(super) fn unreached(standard: crate::standard::Standard, profile: Profile) -> Self {
        Self { standard, profile, runs: Vec::new(), error: None, fault: None, callable: 0 }
    }

    /// `area:<name>` to digest of every component that took part.
    pub(super) fn components(&self) -> BTreeMap<String, crate::probes::Digest> {
        let of = |run: &AreaRun| {
            let digest = run.component.digest;
            run.areas.iter().map(move |area| (format!("area:{area}"), digest)).collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(of).collect()
    }
}

/// Why a run leaves no verdict, if so.
fn unfinished(run: &AreaRun) -> Option<(NoVerdict, String)> {
    if let Ended::Stopped { reason, detail } = &run.record.ended {
        return Some((*reason, detail.clone()));
    }
    if let Some(finding) = run.record.findings.iter().find(|finding| finding.verdict == Verdict::Error) {
        let label = finding.reason.as_deref().and_then(NoVerdict::from_label);
        return Some((label.unwrap_or(NoVerdict::ComponentFault), format!("{} reached no verdict", finding.check)));
    }
    let missing = run.areas.iter().find(|area| !run.record.areas.contains_key(*area))?;
    Some((NoVerdict::ComponentFault, format!("it returned without a score for {missing}")))
}

/// One run per component with all its areas. What makes the most requests runs first: the calls of tools come before
/// whatever disturbs a conversation on purpose, and what needs no request loses nothing by waiting.
fn group(components: Vec<Loaded>, areas: Vec<String>) -> Vec<(Loaded, Vec<String>)> {
    let mut runs: Vec<(Loaded, Vec<String>)> = Vec::new();
    for (component, area) in components.into_iter().zip(areas) {
        match runs.iter_mut().find(|(known, _)| known.digest == component.digest) {
            Some((_, areas)) => areas.push(area),
            None => runs.push((component, vec![area])),
        }
    }
    runs.sort_by_key(|(component, _)| std::cmp::Reverse(component.manifest.asks.0));
    runs
}
