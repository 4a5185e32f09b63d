//! The cases of a manifest: which may run at all, and one run after another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::evaluate::{Desk, check_listed, unmet_need};
use super::{CaseRun, Cases, Planned};
use crate::error::{Error, Result};
use crate::guest;
use crate::manifest::Access;
use crate::outcome::{Ended, NoVerdict, RunRecord, Verdict};
use crate::probes::{self, Loaded};
use crate::session::catalog::{Catalog, ToolClass};
use crate::session::{Fault, Policy, Session};

/// A component that is not shipped needs a grant for each power it imports, before anything runs.
pub(super) fn check_grants(cases: &Cases) -> Result<()> {
    for Planned { case, component, granted } in &cases.planned {
        if let (Some(power), false) = (component.powers.difference(granted).next(), component.shipped) {
            let kind = &case.kind;
            return Err(Error::usage(format!(
                "the component of kind {kind} wants the power {power}, which works below the protocol; allow it with --grant {kind}={power}"
            )));
        }
    }
    Ok(())
}

/// The client capabilities with which a component opens its sessions.
fn declared(component: &Loaded) -> impl Iterator<Item = &str> {
    component.manifest.needs.iter().filter_map(|need| need.strip_prefix("client."))
}

/// What a client must declare to be shown the tools that cases name and nobody else is shown; none if every tool is
/// listed anyway, or no case would declare anything.
pub(super) fn missing_capabilities(cases: &Cases, catalog: &Catalog) -> Option<BTreeSet<String>> {
    let is_unlisted = |planned: &&Planned| planned.case.tools.iter().any(|named| catalog.find(&named.tool).is_none());
    let asking = cases.planned.iter().filter(|_| catalog.is_complete()).filter(is_unlisted);
    let missing: BTreeSet<String> =
        asking.flat_map(|planned| declared(&planned.component)).map(str::to_owned).collect();
    (!missing.is_empty()).then_some(missing)
}

/// The catalog as the sessions of a component see it.
fn shown<'a, C>(component: &Loaded, plain: &'a C, wider: Option<&'a C>) -> &'a C {
    wider.filter(|_| declared(component).next().is_some()).unwrap_or(plain)
}

/// Every case names tools that are listed and that it may call. Where the listing broke off, an unlisted name is no
/// fault of the operator.
pub(super) fn check_access(
    cases: &Cases,
    plain: &Catalog,
    wider: Option<&Catalog>,
    skipped: &BTreeSet<String>,
) -> Result<()> {
    for Planned { case, component, .. } in &cases.planned {
        let catalog = shown(component, plain, wider);
        for named in &case.tools {
            let (tool, place) = (&named.tool, &named.place);
            check_listed(tool, catalog, place)?;
            if skipped.contains(tool) {
                return Err(Error::usage(format!(
                    "{place}: the tool \"{tool}\" is not to be called; leave the case out or drop --skip-tool"
                )));
            }
            if case.access == Access::Mutating {
                continue;
            }
            // What is listed several times has the strictest class of all its entries.
            let classes = catalog.entries.iter().filter(|entry| entry.label == *tool).map(|entry| entry.hinted);
            for class in classes {
                let why = match class {
                    ToolClass::Writer => writer(component),
                    ToolClass::Invalid => "has an entry that cannot be used; mend it in the server".to_owned(),
                    ToolClass::ReadOnly | ToolClass::Unannotated => continue,
                };
                return Err(Error::usage(format!("{place}: this case is read_only, and the tool \"{tool}\" {why}")));
            }
        }
    }
    Ok(())
}

/// What to do about a read-only case that names a writer: not every kind has cases that may call one.
fn writer(component: &Loaded) -> String {
    let kind = &component.manifest.kind;
    match component.manifest.access {
        probes::Access::MayMutate => "declares that it writes; name another, or give the case access mutating and a \
            sandbox, and run it with --allow-mutation"
            .to_owned(),
        probes::Access::ReadOnly => format!(
            "declares that it writes; no option lets a case of kind {kind} call it: name another, or if it changes \
             nothing, let the server declare readOnlyHint: true"
        ),
    }
}

/// Runs the cases in their order. The second value is why no conversation could be opened any more, if so.
pub(super) async fn run(desk: &Desk<'_>, cases: Cases, policy: &Policy) -> (Vec<CaseRun>, Option<Fault>) {
    let mut runs = Vec::with_capacity(cases.planned.len());
    let mut lost: Option<Fault> = None;
    for planned in cases.planned {
        if let Some(fault) = &lost {
            runs.push(CaseRun::unreached(planned, fault));
            continue;
        }
        desk.progress.step(&planned.case.id);
        let session = match desk.open().await {
            Ok(session) => session,
            Err(fault) => {
                runs.push(CaseRun::unreached(planned, &fault));
                lost = Some(fault);
                continue;
            }
        };
        let run = one(desk, planned, policy, &session, cases.timeout).await;
        if let Some((reason, detail)) = run.no_verdict() {
            desk.note(format!("case {}: {reason}: {detail}", run.case.id));
            // Whatever disturbed this case is not handed on to the next.
            desk.retire().await;
        }
        runs.push(run);
    }
    (runs, lost)
}

async fn one(desk: &Desk<'_>, planned: Planned, policy: &Policy, session: &Session, timeout: Duration) -> CaseRun {
    let begun = Instant::now();
    let Planned { case, component, granted } = planned;
    let catalog = shown(&component, &desk.catalog, desk.wider.as_ref());
    let unlisted = case.tools.iter().any(|named| catalog.find(&named.tool).is_none());
    let record = if let (true, Some(fault)) = (unlisted, &catalog.fault) {
        RunRecord::stopped(fault.cause.label(), fault.detail.clone())
    } else if unmet_need(&component.manifest, session, desk.transport()).is_some() {
        RunRecord::finished(0)
    } else {
        let named: BTreeSet<&str> = case.tools.iter().map(|named| named.tool.as_str()).collect();
        let may_mutate = case.access == Access::Mutating;
        let policy = Arc::new(policy.for_case(catalog, &named, may_mutate));
        let job = guest::Case { id: case.id.clone(), config: case.config.clone(), may_mutate, timeout, seed: 0 };
        desk.run(&component, catalog, job, granted, policy).await
    };
    CaseRun { case, component, record, elapsed: begun.elapsed() }
}

impl CaseRun {
    fn unreached(planned: Planned, fault: &Fault) -> Self {
        let record = RunRecord::stopped(fault.cause.label(), fault.detail.clone());
        Self { case: planned.case, component: planned.component, record, elapsed: Duration::ZERO }
    }

    /// Cases of which none ran.
    pub(super) fn all_unreached(cases: Cases, fault: &Fault) -> Vec<Self> {
        cases.planned.into_iter().map(|planned| Self::unreached(planned, fault)).collect()
    }

    /// Why the case has no verdict, if so: its run was stopped, or a finding says so.
    pub fn no_verdict(&self) -> Option<(NoVerdict, &str)> {
        if let Ended::Stopped { reason, detail } = &self.record.ended {
            return Some((*reason, detail));
        }
        let finding = self.record.findings.iter().find(|finding| finding.verdict == Verdict::Error)?;
        let label = finding.reason.as_deref().and_then(NoVerdict::from_label);
        Some((label.unwrap_or(NoVerdict::ComponentFault), "the component reached no verdict"))
    }
}
