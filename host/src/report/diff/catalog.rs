//! What callers of a server would notice, from two contracts.

use std::collections::{BTreeMap, BTreeSet};

use super::super::document::{Class, Contract, ContractTool, Hex16, Label};
use super::{CatalogChange, CatalogDiff, Change, Severity};

/// The changes, worst first, then by tool and change; none if a contract is missing.
pub(super) fn compare(baseline: Option<&Contract>, current: Option<&Contract>) -> CatalogDiff {
    let (Some(baseline), Some(current)) = (baseline, current) else { return CatalogDiff::default() };
    let (before, after) = (by_name(baseline), by_name(current));
    let mut changes = Vec::new();
    for (name, tool) in &before {
        match after.get(name) {
            Some(now) => compare_tool(&mut changes, tool, now),
            None => changes.push(change(name, Change::ToolRemoved, 1)),
        }
    }
    let added = after.keys().filter(|name| !before.contains_key(*name));
    changes.extend(added.map(|name| change(name, Change::ToolAdded, 1)));
    changes.sort_by(|a, b| (a.severity, &a.tool, a.change.word()).cmp(&(b.severity, &b.tool, b.change.word())));
    CatalogDiff { comparable: true, changes }
}

fn by_name(contract: &Contract) -> BTreeMap<&Label, &ContractTool> {
    contract.tools.iter().map(|tool| (&tool.name, tool)).collect()
}

fn change(tool: &Label, change: Change, count: usize) -> CatalogChange {
    CatalogChange {
        tool: tool.clone(),
        change,
        severity: severity(change),
        count: u32::try_from(count).unwrap_or(u32::MAX),
        from: None,
        to: None,
    }
}

/// What a change means; that of a class depends on the classes.
const fn severity(change: Change) -> Severity {
    match change {
        Change::ToolRemoved | Change::ParameterRemoved | Change::ParameterRequired | Change::OutputSchemaRemoved => {
            Severity::Breaking
        }
        Change::ParameterChanged | Change::OutputSchemaChanged => Severity::Review,
        Change::ClassChanged
        | Change::ToolAdded
        | Change::ParameterAdded
        | Change::ParameterOptional
        | Change::OutputSchemaAdded => Severity::Compatible,
    }
}

fn compare_tool(changes: &mut Vec<CatalogChange>, before: &ContractTool, after: &ContractTool) {
    if before.class != after.class {
        let severity = match (before.class, after.class) {
            (_, Class::Writer) | (Class::ReadOnly, Class::Unannotated) => Severity::Breaking,
            _ => Severity::Compatible,
        };
        let (from, to) = (Some(before.class), Some(after.class));
        changes.push(CatalogChange { severity, from, to, ..change(&before.name, Change::ClassChanged, 1) });
    }
    let output = match (&before.output_schema, &after.output_schema) {
        (Some(_), None) => Some(Change::OutputSchemaRemoved),
        (None, Some(_)) => Some(Change::OutputSchemaAdded),
        (Some(then), Some(now)) if then != now => Some(Change::OutputSchemaChanged),
        _ => None,
    };
    changes.extend(output.map(|output| change(&before.name, output, 1)));

    let required = |tool: &ContractTool| tool.required.iter().cloned().collect::<BTreeSet<Hex16>>();
    let (required_before, required_after) = (required(before), required(after));
    let removed = |name: &&Hex16| before.parameters.contains_key(*name) && !after.parameters.contains_key(*name);
    // Each name counts once: a new one that is required is not also added, a removed one not also optional.
    let counts = [
        (Change::ParameterRemoved, before.parameters.keys().filter(removed).count()),
        (Change::ParameterRequired, required_after.difference(&required_before).count()),
        (Change::ParameterOptional, required_before.difference(&required_after).filter(|name| !removed(name)).count()),
        (
            Change::ParameterAdded,
            after
                .parameters
                .keys()
                .filter(|name| !before.parameters.contains_key(*name))
                .filter(|name| required_before.contains(*name) || !required_after.contains(*name))
                .count(),
        ),
        (
            Change::ParameterChanged,
            after
                .parameters
                .iter()
                .filter(|(name, now)| before.parameters.get(*name).is_some_and(|then| then != *now))
                .count(),
        ),
    ];
    let seen = counts.into_iter().filter(|(_, count)| *count > 0);
    changes.extend(seen.map(|(parameter, count)| change(&before.name, parameter, count)));
}
