//! Findings as others read them: what the last promotion found, and where each stands now.

use std::collections::BTreeMap;

use super::promote::repro;
use super::{Class, Finding, Severity};
use crate::error::{Error, Result};
use crate::nearest;
use crate::store::Home;
use crate::store::index::{Issue, issues};
use crate::store::lifecycle::{Lifecycle, Standing, State};

/// All findings of the last promotion, best score first, of equal ones by id. None before the first index. Nothing is
/// created or changed.
///
/// # Errors
/// Unfinished, naming the command to run, if the index is damaged or not whole.
pub fn list(home: &Home) -> Result<Vec<Finding>> {
    let issues = issues(home)?;
    if issues.is_empty() {
        return Ok(Vec::new());
    }
    let mut standing = match Lifecycle::to_read(home)? {
        Some(lifecycle) => lifecycle.standing()?,
        None => BTreeMap::new(),
    };
    issues
        .into_iter()
        .map(|issue| {
            let standing = standing.remove(&issue.finding_id);
            finding(issue, standing)
        })
        .collect()
}

/// The finding of that id.
///
/// # Errors
/// A usage error with the nearest id if there is none; otherwise as [`list`].
pub fn find(home: &Home, id: &str) -> Result<Finding> {
    let mut all = list(home)?;
    if let Some(at) = all.iter().position(|finding| finding.finding_id == id) {
        return Ok(all.swap_remove(at));
    }
    if all.is_empty() {
        return Err(Error::usage("there are no findings yet; run mcpeval index, then mcpeval promote"));
    }
    let hint = nearest::hint(id, all.iter().map(|finding| finding.finding_id.as_str()));
    Err(Error::usage(format!("there is no such finding{hint}; mcpeval findings lists all")))
}

fn finding(issue: Issue, standing: Option<Standing>) -> Result<Finding> {
    let class = Class::ALL.into_iter().find(|class| class.word() == issue.class);
    let severity = Severity::ALL.into_iter().find(|severity| severity.word() == issue.severity);
    let (Some(class), Some(severity)) = (class, severity) else {
        return Err(Error::unfinished(format!(
            "the finding {} is not one of this version; run mcpeval promote",
            issue.finding_id
        )));
    };
    let (state, probe_id, consecutive_passes) = standing
        .map_or((State::Open, None, 0), |standing| (standing.state, standing.probe_id, standing.consecutive_passes));
    Ok(Finding {
        state,
        probe_id,
        consecutive_passes,
        repro: repro(issue.args.as_deref()),
        hint: class.hint().to_owned(),
        class,
        severity,
        finding_id: issue.finding_id,
        server: issue.server,
        tool: issue.tool,
        err_code: issue.err_code,
        err_codes: issue.err_codes,
        err_template_id: issue.err_template_id,
        failures: issue.failures,
        calls: issue.calls,
        sessions: issue.sessions,
        last_seen: issue.last_seen,
        cost: issue.cost,
        blast: issue.blast,
        rate: issue.rate,
        confidence: issue.confidence,
        recency: issue.recency,
        score: issue.score,
        threshold: issue.threshold,
        retryable: issue.retryable,
    })
}
