//! TOML 1: read into a tree, and its faults as sentences with their place.

use std::ops::Range;

use serde_json::{Number, Value};
use toml::de::{DeTable, DeValue};

use super::{Fault, Kind, Mark, NOT_FINITE, Node, TOO_DEEP};
use crate::shown;

/// What the parser says of a key that stands twice.
const REPEATED: &str = "duplicate key";
/// Takes the place of a key that stands twice, to find the table it stands in.
const STAND_IN: &str = "mcpeval-stands-twice";

pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let (root, errors) = DeTable::parse_recoverable(text);
    match errors.first() {
        Some(error) => Err(fault(text, root.get_ref(), error)),
        None => Ok(Node { mark: Mark::START, kind: table(root.get_ref(), "")? }),
    }
}

fn fault(text: &str, root: &DeTable<'_>, error: &toml::de::Error) -> Fault {
    let span = error.span().unwrap_or_default();
    let offset = span.start.min(text.len());
    let (pointer, what) = match error.message() {
        REPEATED => (repeated(text, span), "this key stands twice in its table; keep one".to_owned()),
        words if words.contains("recursi") => (holding(root, offset), TOO_DEEP.to_owned()),
        words => (holding(root, offset), words.to_owned()),
    };
    Fault { mark: Mark::Offset(offset), pointer, what }
}

/// The way to a key that stands twice: to the one of another name in its place, and then the key's own.
fn repeated(text: &str, span: Range<usize>) -> String {
    let parts = (text.get(..span.start), text.get(span.clone()), text.get(span.end..));
    let (Some(before), Some(key), Some(after)) = parts else { return String::new() };
    let renamed = format!("{before}{STAND_IN}{after}");
    let (root, _) = DeTable::parse_recoverable(&renamed);
    let mut pointer = way(root.get_ref(), &mut |key: &Range<usize>, _: &Range<usize>| key.start == span.start);
    if let Some(end) = pointer.rfind('/') {
        pointer.truncate(end);
        let assigned = format!("{key} = 0");
        if let Some(name) = DeTable::parse_recoverable(&assigned).0.get_ref().keys().next() {
            shown::step(&mut pointer, name.get_ref());
        }
    }
    pointer
}

/// The way to the deepest value or key that an offset lies in.
fn holding(root: &DeTable<'_>, offset: usize) -> String {
    way(root, &mut |key: &Range<usize>, value: &Range<usize>| {
        (key.start..=key.end).contains(&offset) || (value.start..=value.end).contains(&offset)
    })
}

/// The way to the deepest entry for which this holds, given the spans of its key and its value.
fn way(root: &DeTable<'_>, holds: &mut dyn FnMut(&Range<usize>, &Range<usize>) -> bool) -> String {
    type Holds<'h> = dyn FnMut(&Range<usize>, &Range<usize>) -> bool + 'h;
    fn in_table(table: &DeTable<'_>, holds: &mut Holds<'_>) -> Option<Vec<String>> {
        table.iter().find_map(|(key, value)| {
            let inner = within(value.get_ref(), holds);
            let way = inner.or_else(|| holds(&key.span(), &value.span()).then(Vec::new))?;
            Some([vec![key.get_ref().to_string()], way].concat())
        })
    }
    fn within(value: &DeValue<'_>, holds: &mut Holds<'_>) -> Option<Vec<String>> {
        match value {
            DeValue::Table(inner) => in_table(inner, holds),
            DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
                let span = item.span();
                let inner = within(item.get_ref(), holds);
                let way = inner.or_else(|| holds(&span, &span).then(Vec::new))?;
                Some([vec![index.to_string()], way].concat())
            }),
            _ => None,
        }
    }
    let mut pointer = String::new();
    for step in in_table(root, holds).unwrap_or_default() {
        shown::step(&mut pointer, &step);
    }
    pointer
}

fn table(table: &DeTable<'_>, pointer: &str) -> Result<Kind, Fault> {
    let entries = table.iter().map(|(key, value)| {
        let mut pointer = pointer.to_owned();
        shown::step(&mut pointer, key.get_ref());
        Ok((key.get_ref().to_string(), node(Mark::Offset(key.span().start), value.get_ref(), &pointer)?))
    });
    entries.collect::<Result<_, Fault>>().map(Kind::Map)
}

fn node(mark: Mark, value: &DeValue<'_>, pointer: &str) -> Result<Node, Fault> {
    let fault = |what: &str| Fault { mark, pointer: pointer.to_owned(), what: what.to_owned() };
    let kind = match value {
        DeValue::String(text) => Kind::Scalar(Value::from(text.as_ref())),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix());
            Kind::Scalar(Value::from(number.map_err(|_| fault("an integer must fit 64 bits; write a smaller one"))?))
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(Number::from_f64);
            Kind::Scalar(Value::Number(number.ok_or_else(|| fault(NOT_FINITE))?))
        }
        DeValue::Boolean(value) => Kind::Scalar(Value::from(*value)),
        DeValue::Datetime(_) => return Err(fault("a date is of no use here; put it in quotes")),
        DeValue::Array(items) => {
            let items = items.iter().enumerate().map(|(index, item)| {
                node(Mark::Offset(item.span().start), item.get_ref(), &format!("{pointer}/{index}"))
            });
            Kind::List(items.collect::<Result<_, Fault>>()?)
        }
        DeValue::Table(inner) => table(inner, pointer)?,
    };
    Ok(Node { mark, kind })
}
