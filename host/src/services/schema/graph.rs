//! What a schema may cost: its subschemas, and which of them apply to the same value or to a part of it.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::document::{Document, MAX_DEPTH, Slot, each_subschema};
use crate::services::pattern::Price;

/// Subschemas of one schema.
const MAX_SUBSCHEMAS: usize = 16_384;
/// Subschemas that apply one another to the same value, in a row.
const MAX_CHAIN: usize = 128;
/// Evaluations of one value, without those of its parts.
const MAX_PATHS: u64 = 1 << 16;
/// States of all patterns of one schema; to compile as many takes about a tenth of a second.
const MAX_STATES: u64 = 1 << 18;
/// Evaluations, comparisons and characters of one validation; about a second at the worst.
pub(super) const MAX_WORK: u64 = 1 << 25;
type Id = usize;

#[derive(Debug, Default)]
struct Node {
    same: Vec<Id>,
    properties: HashMap<String, Id>,
    patterns: Vec<(Id, Price)>,
    additional: Vec<Id>,
    unevaluated_properties: Vec<Id>,
    names: Vec<Id>,
    prefix: Vec<Id>,
    rest: Vec<Id>,
    any_item: Vec<Id>,
    /// Values to compare with, for any value.
    comparisons: u64,
    /// Of `pattern`, for a string.
    pattern: Option<Price>,
    /// Whether what applies to the same value is asked twice: for its verdict, and for what it evaluated.
    unevaluated: bool,
    unique: bool,
    longest: usize,
}

/// The subschemas of one schema, each before those that it applies to the same value.
#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    root: Id,
    references: usize,
}

/// What one validation may cost.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) work: u64,
    /// Nested evaluations.
    pub(super) depth: usize,
}

impl Graph {
    /// Errors are one sentence: past a bound, a part that applies itself without end, a reference outside.
    pub(super) fn of(document: &Document<'_>) -> Result<Self, String> {
        let index = document.index();
        let mut ids: HashMap<*const Value, Id> = HashMap::from([(std::ptr::from_ref(document.root()), 0)]);
        let mut nodes = vec![Node::default()];
        let mut open = vec![(0, document.root())];
        let mut states: u64 = 0;
        let mut references = 0;
        while let Some((id, schema)) = open.pop() {
            let Value::Object(map) = schema else { continue };
            let mut node = Node::default();
            let mut add = |schema, nodes: &mut Vec<Node>| {
                *ids.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
                    nodes.push(Node::default());
                    open.push((nodes.len() - 1, schema));
                    nodes.len() - 1
                })
            };
            let alone = document.ref_stands_alone() && map.contains_key("$ref");
            for reference in document.references(map) {
                let target = index.find(reference).ok_or("the schema refers to something outside itself")?;
                let target = add(target, &mut nodes);
                node.same.push(target);
                references += 1;
            }
            let tuple = map.get("items").is_some_and(Value::is_array) || map.contains_key("prefixItems");
            each_subschema(map, &mut |slot, keyword, _, each| {
                let child = add(each, &mut nodes);
                if !alone {
                    states = states.saturating_add(node.attach(slot, child, keyword == "additionalItems" && !tuple));
                }
            });
            if !alone {
                states = states.saturating_add(node.weigh_keywords(map));
            }
            if nodes.len() > MAX_SUBSCHEMAS {
                return Err(format!("the schema has more than {MAX_SUBSCHEMAS} subschemas"));
            }
            if states > MAX_STATES {
                return Err("the patterns of the schema are too large when compiled".to_owned());
            }
            if let Some(place) = nodes.get_mut(id) {
                *place = node;
            }
        }
        Self::sorted(nodes, references)
    }

    /// Puts every node before those that it applies to the same value, or finds that this is impossible.
    fn sorted(mut nodes: Vec<Node>, references: usize) -> Result<Self, String> {
        const OPEN: Id = Id::MAX;
        let mut place: Vec<Option<Id>> = vec![None; nodes.len()];
        let mut finished: Vec<Id> = Vec::with_capacity(nodes.len());
        let mut paths: Vec<u64> = vec![1; nodes.len()];
        for start in 0..nodes.len() {
            let mut stack = vec![(start, 0)];
            while let Some((id, next)) = stack.pop() {
                if next == 0 {
                    if place[id].is_some_and(|place| place != OPEN) {
                        continue;
                    }
                    place[id] = Some(OPEN);
                }
                if let Some(&child) = nodes[id].same.get(next) {
                    stack.push((id, next + 1));
                    match place[child] {
                        None => stack.push((child, 0)),
                        Some(OPEN) => {
                            return Err("the schema applies a part of itself to the same value without end".to_owned());
                        }
                        Some(_) => {}
                    }
                    continue;
                }
                place[id] = Some(finished.len());
                finished.push(id);
                let factor = if nodes[id].unevaluated { 2 } else { 1 };
                paths[id] = nodes[id]
                    .same
                    .iter()
                    .fold(1, |sum: u64, &child| sum.saturating_add(factor * paths[child].min(MAX_PATHS)));
                nodes[id].longest = nodes[id].same.iter().map(|&child| nodes[child].longest + 1).max().unwrap_or(0);
                if paths[id] > MAX_PATHS || nodes[id].longest > MAX_CHAIN {
                    return Err("the schema applies too many parts of itself to the same value".to_owned());
                }
            }
        }
        let last = nodes.len() - 1;
        let rank = |id: Id| place[id].map_or(0, |place| last - place);
        for node in &mut nodes {
            node.rename(&rank);
        }
        let mut sorted: Vec<Node> = nodes.iter().map(|_| Node::default()).collect();
        for (id, node) in nodes.into_iter().enumerate() {
            sorted[rank(id)] = node;
        }
        Ok(Self { nodes: sorted, root: rank(0), references })
    }

    /// How many references it has.
    pub(super) fn references(&self) -> usize {
        self.references
    }

    /// An upper bound of what it takes to validate `instance`, or none if it is past the bounds.
    pub(super) fn weigh(&self, instance: &Value) -> Option<Cost> {
        let mut scale = Scale { graph: self, cost: Cost::default() };
        scale.value(instance, &[(self.root, 1, 1)], 0)?;
        Some(scale.cost)
    }
}

impl Node {
    /// Files a subschema under its slot; gives the states of its pattern, if it has one.
    fn attach(&mut self, slot: Slot<'_>, child: Id, idle: bool) -> u64 {
        match slot {
            Slot::Same => self.same.push(child),
            Slot::Property(name) => drop(self.properties.insert(name.to_owned(), child)),
            Slot::Pattern(pattern) => {
                let price = Price::of(pattern);
                self.patterns.push((child, price));
                return price.states;
            }
            Slot::Additional => self.additional.push(child),
            Slot::UnevaluatedProperties => {
                self.unevaluated_properties.push(child);
                self.unevaluated = true;
            }
            Slot::Names => self.names.push(child),
            Slot::Prefix(_) => self.prefix.push(child),
            Slot::Rest if idle => {}
            Slot::Rest => self.rest.push(child),
            Slot::Contains => self.any_item.push(child),
            Slot::UnevaluatedItems => {
                self.any_item.push(child);
                self.unevaluated = true;
            }
            Slot::Held => {}
        }
        0
    }

    fn weigh_keywords(&mut self, map: &Map<String, Value>) -> u64 {
        self.comparisons = 1 + map.len() as u64;
        for keyword in ["enum", "const", "required", "dependentRequired", "dependencies"] {
            self.comparisons += map.get(keyword).map_or(0, size);
        }
        self.unique = map.get("uniqueItems").is_some_and(|unique| unique == &Value::Bool(true));
        self.pattern = map.get("pattern").and_then(Value::as_str).map(Price::of);
        self.pattern.map_or(0, |price| price.states)
    }

    fn rename(&mut self, rank: &impl Fn(Id) -> Id) {
        let lists = [
            &mut self.same,
            &mut self.additional,
            &mut self.unevaluated_properties,
            &mut self.names,
            &mut self.prefix,
            &mut self.rest,
            &mut self.any_item,
        ];
        lists.into_iter().flatten().chain(self.properties.values_mut()).for_each(|id| *id = rank(*id));
        self.patterns.iter_mut().for_each(|(id, _)| *id = rank(*id));
    }
}

/// Values in a value.
fn size(value: &Value) -> u64 {
    match value {
        Value::Array(all) => all.iter().map(size).sum::<u64>() + 1,
        Value::Object(all) => all.values().map(size).sum::<u64>() + 1,
        _ => 1,
    }
}

struct Scale<'a> {
    graph: &'a Graph,
    cost: Cost,
}

/// A subschema, how often it is asked about one value, and how deep at most.
type Asked = (Id, u64, usize);

impl Scale<'_> {
    fn charge(&mut self, work: u64) -> Option<()> {
        self.cost.work = self.cost.work.saturating_add(work);
        (self.cost.work <= MAX_WORK).then_some(())
    }

    fn value(&mut self, value: &Value, asked: &[Asked], level: usize) -> Option<()> {
        if level > MAX_DEPTH {
            return None;
        }
        let mut open: BTreeMap<Id, (u64, usize)> = BTreeMap::new();
        let join = |open: &mut BTreeMap<Id, (u64, usize)>, id, times: u64, depth: usize| {
            let entry = open.entry(id).or_default();
            *entry = (entry.0.saturating_add(times), entry.1.max(depth));
        };
        for &(id, times, depth) in asked {
            join(&mut open, id, times, depth);
        }
        let mut all: Vec<(&Node, u64, usize)> = Vec::new();
        while let Some((id, (times, depth))) = open.pop_first() {
            let node = self.graph.nodes.get(id)?;
            let length = value.as_str().map_or(0, str::len);
            let text = node.pattern.map_or(0, |price| price.work(length)).saturating_add(length as u64 / 16);
            let items = if node.unique { value.as_array().map_or(0, |_| size(value)) * 8 } else { 0 };
            let once = (node.comparisons + items).saturating_add(text);
            self.charge(times.saturating_mul(once).max(times))?;
            self.cost.depth = self.cost.depth.max(depth);
            let again = if node.unevaluated { 2 } else { 1 };
            for &child in &node.same {
                join(&mut open, child, times.saturating_mul(again), depth + 1);
            }
            all.push((node, times, depth));
        }
        match value {
            Value::Object(map) => map.iter().try_for_each(|(name, each)| self.property(name, each, &all, level)),
            Value::Array(list) => list.iter().enumerate().try_for_each(|(place, each)| {
                let mut asked = Vec::new();
                for &(node, times, depth) in &all {
                    let placed = node.prefix.get(place);
                    let rest = if placed.is_none() { node.rest.as_slice() } else { &[] };
                    asked.extend(
                        placed.iter().copied().chain(rest).chain(&node.any_item).map(|&id| (id, times, depth + 1)),
                    );
                }
                self.part(each, &asked, level)
            }),
            _ => Some(()),
        }
    }

    fn property(&mut self, name: &str, value: &Value, all: &[(&Node, u64, usize)], level: usize) -> Option<()> {
        let mut asked = Vec::new();
        let mut about_name = Vec::new();
        for &(node, times, depth) in all {
            let known = node.properties.get(name);
            let matching: u64 =
                node.patterns.iter().fold(0, |sum, (_, price)| sum.saturating_add(price.work(name.len())));
            self.charge(times.saturating_mul(matching))?;
            let others = if known.is_none() {
                [node.additional.as_slice(), node.unevaluated_properties.as_slice()]
            } else {
                [&[][..], &[][..]]
            };
            let patterns = node.patterns.iter().map(|(id, _)| id);
            asked.extend(
                known.into_iter().chain(patterns).chain(others.into_iter().flatten()).map(|&id| (id, times, depth + 1)),
            );
            about_name.extend(node.names.iter().map(|&id| (id, times, depth + 1)));
        }
        if !about_name.is_empty() {
            self.part(&Value::String(name.to_owned()), &about_name, level)?;
        }
        self.part(value, &asked, level)
    }

    fn part(&mut self, value: &Value, asked: &[Asked], level: usize) -> Option<()> {
        self.charge(1)?;
        if asked.is_empty() { Some(()) } else { self.value(value, asked, level + 1) }
    }
}
