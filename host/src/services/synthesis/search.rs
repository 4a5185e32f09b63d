//! Building a value from shapes, and trying the next alternative where it is not valid.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::describe::{self, Example};
use super::number::Decimal;
use super::shape::{Shape, Type};
use super::{
    MAX_BYTES, MAX_CANDIDATES, MAX_COUNT, MAX_DEPTH, MAX_LENGTH, MAX_MERGES, MAX_NODES, MAX_PATTERN, MAX_VALIDATIONS,
    MAX_WORK, Place, Synthesis, string,
};
use crate::services::pattern::Pattern;
use crate::services::text::{self, Dialect};

/// Values that are begun for one schema; more than validations, as some cannot be finished.
const MAX_ATTEMPTS: usize = 2 * MAX_VALIDATIONS;
/// Bytes of a candidate that cost as much as one node.
const BYTES_PER_NODE: usize = 256;
/// Faults of one validation that are acted on.
const MAX_FAULTS: usize = 16;
/// Property names that are matched with the patterns of `patternProperties`, for one value.
const MAX_MATCHES: usize = MAX_NODES;
/// What a string is that nothing is known of.
const WORD: &str = "mcpeval";
/// The same in base64.
const WORD_BASE64: &str = "bWNwZXZhbA==";

/// One way to make a value.
enum Alternative<'a> {
    Value(Value),
    Way(Option<&'a Value>),
    Object,
    Array,
}

/// A choice that the value under way contains.
struct Choice {
    key: String,
    path: String,
    index: usize,
    count: usize,
}

/// Where a value stands: its pointer, and the same with the branches that were chosen on the way.
#[derive(Clone, Default)]
struct At {
    path: String,
    key: String,
    /// Enclosing objects, arrays and `$ref` hops.
    depth: usize,
}

impl At {
    fn below(&self, name: &str, depth: usize) -> Self {
        let name = name.replace('~', "~0").replace('/', "~1");
        Self { path: format!("{}/{name}", self.path), key: format!("{}/{name}", self.key), depth }
    }
}

/// The pointer to where no value could be made.
struct DeadEnd(String);

pub(super) struct Search<'s, 'a> {
    synthesis: &'s Synthesis<'a>,
    tool: &'s str,
    place: Place<'s>,
    decisions: HashMap<String, usize>,
    /// Alternatives that validation has found wrong in their own place.
    refuted: HashSet<(String, usize)>,
    choices: Vec<Choice>,
    /// By the address of the description, which many properties may share.
    examples: HashMap<*const str, Vec<Example>>,
    values: usize,
    bytes: usize,
    matches: usize,
}

impl<'s, 'a> Search<'s, 'a> {
    pub(super) fn new(synthesis: &'s Synthesis<'a>, tool: &'s str, place: Place<'s>) -> Self {
        Self {
            synthesis,
            tool,
            place,
            decisions: HashMap::new(),
            refuted: HashSet::new(),
            choices: Vec::new(),
            examples: HashMap::new(),
            values: 0,
            bytes: 0,
            matches: 0,
        }
    }

    /// The first valid value.
    pub(super) fn run(mut self, shape: &Shape<'a>) -> Option<Value> {
        let mut allowance = MAX_WORK;
        let mut validations = 0;
        let mut merges = MAX_MERGES;
        for _ in 0..MAX_ATTEMPTS {
            self.choices.clear();
            (self.values, self.bytes, self.matches) = (0, 0, 0);
            self.synthesis.nodes.set(MAX_NODES);
            self.synthesis.spend(shape.weight())?;
            let built = self.value(shape.clone(), At::default(), &[]);
            merges = merges.checked_sub(MAX_NODES - self.synthesis.nodes.get())?;
            let mut faults = match built {
                Err(DeadEnd(path)) => vec![path],
                Ok(value) => {
                    validations += 1;
                    match self.synthesis.validator.faulty(&value, &mut allowance)? {
                        faults if faults.is_empty() => return Some(value),
                        _ if validations == MAX_VALIDATIONS => return None,
                        faults => faults,
                    }
                }
            };
            faults.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            faults.dedup();
            if !self.advance(&faults) {
                return None;
            }
        }
        None
    }

    /// Goes to the next alternative of the last choice that each fault depends on, or of any if they have none left.
    fn advance(&mut self, faults: &[String]) -> bool {
        let mut changed = HashSet::new();
        let mut any = false;
        for fault in faults.iter().take(MAX_FAULTS) {
            any |= self.advance_at(fault, &mut changed);
        }
        any || self.advance_at("", &mut changed)
    }

    fn advance_at(&mut self, fault: &str, changed: &mut HashSet<String>) -> bool {
        let related: Vec<&Choice> = self
            .choices
            .iter()
            .filter(|choice| is_within(&choice.path, fault) || is_within(fault, &choice.path))
            .collect();
        if related.iter().any(|choice| changed.contains(&choice.key)) {
            return true;
        }
        if let Some(last) = related.last()
            && is_within(fault, &last.path)
        {
            self.refuted.insert((last.key.clone(), last.index));
        }
        for (place, choice) in related.iter().enumerate().rev() {
            let open = |index: &usize| !self.refuted.contains(&(choice.key.clone(), *index));
            if let Some(next) = (choice.index + 1..choice.count).find(open) {
                self.decisions.insert(choice.key.clone(), next);
                changed.insert(choice.key.clone());
                for later in related.iter().skip(place + 1) {
                    self.decisions.remove(&later.key);
                    changed.insert(later.key.clone());
                }
                return true;
            }
        }
        false
    }

    fn value(&mut self, mut shape: Shape<'a>, mut at: At, words: &[String]) -> Result<Value, DeadEnd> {
        self.values += 1;
        if self.values > MAX_NODES {
            return Err(DeadEnd(at.path));
        }
        let base = at.depth;
        loop {
            let mut alternatives = self.alternatives(&shape, words);
            let count = alternatives.len();
            let decided = self.decisions.get(&at.key).copied().unwrap_or(0);
            let index = (decided..count)
                .find(|index| !self.refuted.contains(&(at.key.clone(), *index)))
                .unwrap_or(count.saturating_sub(1));
            if count == 0 {
                return Err(DeadEnd(at.path));
            }
            self.choices.push(Choice { key: at.key.clone(), path: at.path.clone(), index, count });
            at.depth = base + shape.hops;
            match alternatives.swap_remove(index) {
                Alternative::Value(value) => {
                    self.bytes += size_of(&value, MAX_BYTES);
                    if self.bytes > MAX_BYTES || at.depth + depth_of(&value) > MAX_DEPTH {
                        return Err(DeadEnd(at.path));
                    }
                    return Ok(value);
                }
                Alternative::Way(way) => {
                    at.key = format!("{}#{index}", at.key);
                    let offered = alternatives.into_iter().filter_map(|alternative| match alternative {
                        Alternative::Value(value) => Some(value),
                        _ => None,
                    });
                    shape.offered.extend(offered);
                    shape.choose(self.synthesis, way).ok_or_else(|| DeadEnd(at.path.clone()))?;
                }
                Alternative::Object | Alternative::Array if at.depth >= MAX_DEPTH => return Err(DeadEnd(at.path)),
                Alternative::Object => return self.object(shape, &at),
                Alternative::Array => return self.array(&shape, &at, words),
            }
        }
    }

    fn alternatives(&mut self, shape: &Shape<'a>, words: &[String]) -> Vec<Alternative<'a>> {
        if self.synthesis.spend(shape.weight()).is_none() {
            return Vec::new();
        }
        let mut values: Vec<Value> = Vec::new();
        let named = shape.is_enumerated();
        let offer = |value: Cow<'_, Value>, values: &mut Vec<Value>| {
            let size = size_of(&value, MAX_BYTES);
            if size < MAX_BYTES
                && self.synthesis.spend(size / BYTES_PER_NODE).is_some()
                && values.len() < MAX_CANDIDATES
                && !values.contains(&value)
                && !shape.offered.contains(&value)
                && shape.admits(&value)
            {
                values.push(value.into_owned());
            }
        };
        shape.fixed().take(MAX_CANDIDATES).for_each(|value| offer(Cow::Borrowed(value), &mut values));
        if !named {
            for value in described(shape, &mut self.examples) {
                offer(Cow::Owned(value), &mut values);
            }
        }
        let ways = shape.ways();
        if !ways.is_empty() {
            let values = values.into_iter().map(Alternative::Value);
            return values.chain(ways.into_iter().map(Alternative::Way)).take(MAX_CANDIDATES).collect();
        }
        let mut all: Vec<Alternative<'a>> = std::mem::take(&mut values).into_iter().map(Alternative::Value).collect();
        for kind in if named { Vec::new() } else { shape.types() } {
            match kind {
                Type::Object => all.push(Alternative::Object),
                Type::Array => all.push(Alternative::Array),
                Type::String => {
                    self.strings(shape, words).into_iter().for_each(|text| offer(Cow::Owned(text.into()), &mut values));
                }
                Type::Number | Type::Integer => {
                    let hint = string::number_hint(words).map(Value::from);
                    let first = shape.range.first(kind == Type::Integer).and_then(Decimal::value);
                    hint.into_iter().chain(first).for_each(|number| offer(Cow::Owned(number), &mut values));
                }
                Type::Boolean => [false, true].into_iter().for_each(|flag| offer(Cow::Owned(flag.into()), &mut values)),
                Type::Null => offer(Cow::Owned(Value::Null), &mut values),
            }
            all.extend(std::mem::take(&mut values).into_iter().map(Alternative::Value));
        }
        all.truncate(MAX_CANDIDATES);
        all
    }

    fn strings(&self, shape: &Shape<'a>, words: &[String]) -> Vec<String> {
        let Some(min) = usize::try_from(shape.min_length).ok().filter(|min| *min <= MAX_LENGTH) else {
            return Vec::new();
        };
        let max = shape.max_length.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
        let mut all: Vec<String> =
            shape.formats.iter().filter_map(|name| string::format(name)).map(str::to_owned).collect();
        all.extend(string::hint(words, self.tool, &self.place));
        if shape.encoded {
            all.push(WORD_BASE64.to_owned());
        }
        let patterns = shape.patterns.iter().filter(|pattern| pattern.len() <= MAX_PATTERN);
        all.extend(patterns.filter_map(|pattern| Pattern::parse(pattern)?.sample(min)));
        let padded = WORD.chars().chain(std::iter::repeat('x'));
        all.push(padded.take(WORD.len().max(min).min(max)).collect());
        all
    }

    fn object(&mut self, mut shape: Shape<'a>, at: &At) -> Result<Value, DeadEnd> {
        let dead = || DeadEnd(at.path.clone());
        let Some(least) = usize::try_from(shape.min_properties).ok().filter(|least| *least <= MAX_COUNT) else {
            return Err(dead());
        };
        let mut made: Map<String, Value> = Map::new();
        loop {
            self.close(&mut shape).ok_or_else(dead)?;
            let missing: Vec<&'a str> =
                shape.required.iter().copied().filter(|name| !made.contains_key(*name)).collect();
            for name in &missing {
                let value = self.property(&shape, name, at)?;
                made.insert((*name).to_owned(), value);
            }
            if !missing.is_empty() {
                continue;
            }
            // What is optional becomes wanted, and may want more.
            let mut optional = shape.properties.keys().copied().filter(|name| !shape.required.contains(name));
            let next = optional.find(|name| self.is_possible(&shape, name));
            match next.filter(|_| made.len() < least) {
                Some(name) => shape.required.insert(name),
                None => break,
            };
        }
        let mut number = 1;
        while made.len() < least {
            let name = format!("mcpeval_{number}");
            number += 1;
            if !made.contains_key(&name) {
                let value = self.property(&shape, &name, at)?;
                made.insert(name, value);
            }
        }
        // By code point, whatever order the map keeps.
        let mut sorted: Vec<(String, Value)> = made.into_iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Value::Object(sorted.into_iter().collect()))
    }

    /// Adds what the required properties require.
    fn close(&self, shape: &mut Shape<'a>) -> Option<()> {
        loop {
            self.synthesis.spend(shape.weight() + (shape.wanted_with.len() + shape.applied_with.len()) / 16)?;
            let before = shape.required.len();
            let wanted = shape.wanted_with.iter().filter(|(name, _)| shape.required.contains(name));
            let wanted: Vec<&'a str> = wanted.flat_map(|(_, names)| names.iter().filter_map(Value::as_str)).collect();
            shape.required.extend(wanted);
            let (applied, waiting): (Vec<_>, Vec<_>) =
                shape.applied_with.drain(..).partition(|(name, _)| shape.required.contains(name));
            shape.applied_with = waiting;
            for (_, schema) in &applied {
                shape.absorb(self.synthesis, schema, shape.hops)?;
            }
            if applied.is_empty() && shape.required.len() == before {
                return Some(());
            }
        }
    }

    /// Whether a property is not ruled out by `false`.
    fn is_possible(&self, shape: &Shape<'a>, name: &str) -> bool {
        shape.properties.get(name).is_some_and(|all| all.iter().all(|schema| self.synthesis.shape(schema).is_some()))
    }

    fn property(&mut self, shape: &Shape<'a>, name: &str, at: &At) -> Result<Value, DeadEnd> {
        let place = at.below(name, at.depth + 1);
        self.bytes += name.len();
        let mut schemas: Vec<&'a Value> = shape.properties.get(name).cloned().unwrap_or_default();
        for (pattern, schema) in &shape.patterned {
            self.matches += 1;
            if self.matches > MAX_MATCHES || pattern.len() > MAX_PATTERN {
                break;
            }
            if text::matches(pattern, name, Dialect::Backtracking) == Ok(true) {
                schemas.push(schema);
            }
        }
        if schemas.is_empty() {
            schemas.clone_from(&shape.additional);
        }
        match self.merged(&schemas) {
            Some(shape) => self.value(shape, place, &string::words(name)),
            None => Err(DeadEnd(place.path)),
        }
    }

    fn merged(&self, schemas: &[&'a Value]) -> Option<Shape<'a>> {
        let mut shape = Shape::default();
        schemas.iter().try_for_each(|schema| shape.absorb(self.synthesis, schema, 0))?;
        Some(shape)
    }

    fn array(&mut self, shape: &Shape<'a>, at: &At, words: &[String]) -> Result<Value, DeadEnd> {
        let bounded = |count: u64| usize::try_from(count).ok().filter(|count| *count <= MAX_COUNT);
        let dead = || DeadEnd(at.path.clone());
        let least = bounded(shape.min_items).ok_or_else(dead)?;
        let most = shape.max_items.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let placed = shape.prefixes.iter().map(|prefix| prefix.len()).max().unwrap_or(0).min(most);
        let mut plan: Vec<Vec<&'a Value>> = (0..placed)
            .map(|place| {
                shape
                    .prefixes
                    .iter()
                    .map(|prefix| prefix.get(place))
                    .flat_map(|own| match own {
                        Some(schema) => vec![schema],
                        None => shape.items.clone(),
                    })
                    .collect()
            })
            .collect();
        let mut contained: Vec<&'a Value> = Vec::new();
        for (schema, count) in &shape.contains {
            let count = bounded(*count).ok_or_else(dead)?;
            contained.extend(std::iter::repeat_n(schema, count));
        }
        contained.truncate(most.saturating_sub(placed));
        for _ in placed..least.saturating_sub(contained.len()) {
            plan.push(shape.items.clone());
        }
        for schema in contained {
            plan.push(shape.items.iter().copied().chain([schema]).collect());
        }
        let words = singular(words);
        let mut made: Vec<Value> = Vec::new();
        for (place, schemas) in plan.iter().enumerate() {
            let below = at.below(&place.to_string(), at.depth + 1);
            let Some(item) = self.merged(schemas) else { return Err(DeadEnd(below.path)) };
            let mut value = self.value(item.clone(), below.clone(), &words)?;
            if shape.unique && made.contains(&value) {
                value = self.another(&item, &below, &words, &value, &made)?;
            }
            made.push(value);
        }
        Ok(Value::Array(made))
    }

    /// An item that is not among those made: the next candidate, a suffix, or the next number.
    fn another(
        &mut self,
        shape: &Shape<'a>,
        at: &At,
        words: &[String],
        taken: &Value,
        made: &[Value],
    ) -> Result<Value, DeadEnd> {
        let own = self.choices.iter().rfind(|choice| choice.path == at.path).map_or(0, |choice| choice.index);
        let next =
            self.alternatives(shape, words).into_iter().skip(own + 1).find_map(|alternative| match alternative {
                Alternative::Value(value) if !made.contains(&value) => Some(value),
                _ => None,
            });
        if let Some(value) = next {
            return Ok(value);
        }
        let fresh = match taken {
            Value::String(text) => (2..=made.len() + 2)
                .map(|number| Value::from(format!("{text}-{number}")))
                .find(|text| !made.contains(text)),
            Value::Number(number) => {
                let integer = shape.types().contains(&Type::Integer);
                let after = |value: &Value| shape.range.after(value.as_number()?, integer);
                let first = shape.range.after(number, integer);
                std::iter::successors(first, after).take(made.len() + 1).find(|number| !made.contains(number))
            }
            _ => return self.varied(shape, at, words, made).ok_or_else(|| DeadEnd(at.path.clone())),
        };
        fresh.ok_or_else(|| DeadEnd(at.path.clone()))
    }

    /// A structure that differs in what one of its own choices gives.
    fn varied(&mut self, shape: &Shape<'a>, at: &At, words: &[String], made: &[Value]) -> Option<Value> {
        let inner: Vec<(String, usize, usize)> = self
            .choices
            .iter()
            .filter(|choice| is_within(&choice.path, &at.path))
            .map(|choice| (choice.key.clone(), choice.index, choice.count))
            .collect();
        for (key, index, count) in inner.into_iter().rev() {
            for next in index + 1..count {
                let kept = self.decisions.insert(key.clone(), next);
                let value = self.value(shape.clone(), at.clone(), words).ok();
                if let Some(value) = value.filter(|value| !made.contains(value)) {
                    return Some(value);
                }
                match kept {
                    Some(kept) => self.decisions.insert(key.clone(), kept),
                    None => self.decisions.remove(&key),
                };
            }
        }
        None
    }
}

/// Whether a pointer is `outer` or below it.
fn is_within(pointer: &str, outer: &str) -> bool {
    pointer.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What an item of a list of that name is called.
fn singular(words: &[String]) -> Vec<String> {
    words.iter().map(|word| word.strip_suffix('s').unwrap_or(word).to_owned()).collect()
}

/// Nested objects and arrays.
fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(all) => 1 + all.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(all) => 1 + all.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

/// About the bytes of the compact form, counted no further than `limit`.
fn size_of(value: &Value, limit: usize) -> usize {
    let within = |size: usize, more: usize| (size < limit).then(|| size + more);
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(all) => {
            all.iter().try_fold(2, |size, each| within(size, 1 + size_of(each, limit))).unwrap_or(limit)
        }
        Value::Object(all) => all
            .iter()
            .try_fold(2, |size, (name, each)| within(size, 4 + name.len() + size_of(each, limit)))
            .unwrap_or(limit),
        _ => 8,
    }
}

/// The examples of the description, as values: text as it stands, anything else read as JSON.
fn described(shape: &Shape<'_>, known: &mut HashMap<*const str, Vec<Example>>) -> Vec<Value> {
    let Some(description) = shape.description else { return Vec::new() };
    let types = shape.types();
    let examples = known.entry(std::ptr::from_ref(description)).or_insert_with(|| describe::examples(description));
    let mut values = Vec::new();
    for Example { token, bare } in examples {
        for kind in &types {
            match kind {
                Type::String if !*bare => values.push(Value::String(token.clone())),
                Type::Array if !*bare => {
                    let list = serde_json::from_str(token).ok().filter(Value::is_array);
                    let listed = || serde_json::from_str(&format!("[{token}]")).ok();
                    values.push(list.or_else(listed).unwrap_or_else(|| Value::Array(vec![token.clone().into()])));
                }
                Type::Number | Type::Integer => {
                    values.extend(serde_json::from_str(token).ok().filter(|value| kind.holds(value)));
                }
                Type::Object | Type::Boolean | Type::Null if !*bare => {
                    values.extend(serde_json::from_str(token).ok().filter(|value| kind.holds(value)));
                }
                Type::String | Type::Array | Type::Object | Type::Boolean | Type::Null => {}
            }
        }
    }
    values
}
