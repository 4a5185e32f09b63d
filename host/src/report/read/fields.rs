//! Fields that need more than their type to be read.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::super::document::{
    Constant, EARLIER_PROFILE_SCHEMA, Hex16, LostScore, Measured, NoVerdictLabel, PROFILE_SCHEMA, PerTool, Percent,
    SCHEMA, Subject, Word,
};
use super::super::words::{Grammar, Unit};
use crate::outcome::NoVerdict;

/// The member of a list's entry that is not its value.
const TOOL: &str = "tool";
const GIVEN_TWICE: &str = "a name is given twice";

/// Reads a string of a closed list.
struct OneOf(&'static [Constant]);

impl Visitor<'_> for OneOf {
    type Value = Constant;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}", self.0.join(", "))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Constant, E> {
        let known = self.0.iter().find(|known| **known == text);
        known.copied().ok_or_else(|| E::invalid_value(de::Unexpected::Other("another string"), &self))
    }
}

pub(crate) fn report_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Constant, D::Error> {
    deserializer.deserialize_str(OneOf(&[SCHEMA]))
}

pub(crate) fn generator_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Constant, D::Error> {
    deserializer.deserialize_str(OneOf(&["mcpeval"]))
}

pub(crate) fn profile_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Constant, D::Error> {
    deserializer.deserialize_str(OneOf(&[PROFILE_SCHEMA, EARLIER_PROFILE_SCHEMA]))
}

pub(crate) fn no_capabilities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Constant, D::Error> {
    deserializer.deserialize_str(OneOf(&["none"]))
}

pub(crate) fn scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Constant, D::Error> {
    deserializer.deserialize_str(OneOf(&["read-only-structural"]))
}

pub(crate) fn semantic_correctness<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Constant, D::Error> {
    deserializer.deserialize_str(OneOf(&["requires-reviewed-oracle"]))
}

impl<'de> Deserialize<'de> for NoVerdictLabel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const LABELS: [Constant; NoVerdict::ALL.len()] = {
            let mut labels = [""; NoVerdict::ALL.len()];
            let mut at = 0;
            while at < labels.len() {
                labels[at] = NoVerdict::ALL[at].label();
                at += 1;
            }
            labels
        };
        let label = deserializer.deserialize_str(OneOf(&LABELS))?;
        NoVerdict::from_label(label).map(Self).ok_or_else(|| de::Error::custom("no such label"))
    }
}

/// Reads an integer within bounds, both inclusive.
struct Between(u32, u32);

impl Visitor<'_> for Between {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer from {} to {}", self.0, self.1)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u32, E> {
        let bounded = u32::try_from(value).ok().filter(|value| (self.0..=self.1).contains(value));
        bounded.ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }
}

fn small<'de, D: Deserializer<'de>>(deserializer: D, most: u8) -> Result<u8, D::Error> {
    let value = deserializer.deserialize_u32(Between(0, most.into()))?;
    u8::try_from(value).map_err(de::Error::custom)
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        small(deserializer, 100).map(Self)
    }
}

impl<'de> Deserialize<'de> for LostScore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        small(deserializer, 99).map(Self)
    }
}

pub(crate) fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserializer.deserialize_u32(Between(0, 100))
}

pub(crate) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserializer.deserialize_u32(Between(1, u32::MAX))
}

pub(crate) fn optional_positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    struct Positive(u32);
    impl<'de> Deserialize<'de> for Positive {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            positive(deserializer).map(Self)
        }
    }
    Ok(Option::<Positive>::deserialize(deserializer)?.map(|Positive(value)| value))
}

/// Reads an object whose names keep a grammar, none of them twice.
struct Keyed<K, V>(PhantomData<(K, V)>);

impl<'de, K: Grammar + Ord + Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Keyed<K, V> {
    type Value = BTreeMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((key, value)) = map.next_entry::<K, V>()? {
            if entries.insert(key, value).is_some() {
                return Err(de::Error::custom(GIVEN_TWICE));
            }
        }
        Ok(entries)
    }
}

pub(crate) fn keyed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Hex16, Hex16>, D::Error> {
    deserializer.deserialize_map(Keyed(PhantomData))
}

/// The same where the document's type holds plain names; `K` says what they are.
pub(crate) fn named<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    K: Grammar + Ord + ToString + Deserialize<'de>,
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let entries: BTreeMap<K, V> = deserializer.deserialize_map(Keyed(PhantomData))?;
    Ok(entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
}

impl<'de> Deserialize<'de> for Measured {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Measured;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a word or a list per tool")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Measured, E> {
                Ok(Measured::Whole(value))
            }

            #[expect(clippy::cast_precision_loss, reason = "every reader of JSON may read it so")]
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Measured, E> {
                Ok(Measured::Number(value as f64))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Measured, E> {
                Ok(Measured::Number(value))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Measured, E> {
                let word = Word::parse(text).map(Measured::Word);
                word.ok_or_else(|| E::custom(format_args!("must match {}", Word::PATTERN)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Measured, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = seq.next_element()? {
                    entries.push(entry);
                }
                Ok(Measured::PerTool(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl<'de> Deserialize<'de> for PerTool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;
        impl<'de> Visitor<'de> for Entry {
            type Value = PerTool;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of a tool and one value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PerTool, A::Error> {
                let mut tool: Option<Subject> = None;
                let mut measured: Option<(Unit, Number)> = None;
                while let Some(key) = map.next_key::<Unit>()? {
                    let twice = if key.0 == TOOL {
                        tool.replace(map.next_value()?).is_some()
                    } else {
                        measured.replace((key, map.next_value()?)).is_some()
                    };
                    if twice {
                        return Err(de::Error::invalid_length(3, &self));
                    }
                }
                match (tool, measured) {
                    (Some(tool), Some((Unit(unit), value))) => Ok(PerTool { tool, unit, value }),
                    _ => Err(de::Error::invalid_length(1, &self)),
                }
            }
        }
        deserializer.deserialize_map(Entry)
    }
}
