//! The strings of a report: a type for each class that may be shared, with its grammar.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::LazyLock;

use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::session::catalog::ToolClass;

/// A string type with a grammar.
pub(crate) trait Grammar: Sized {
    /// The grammar, as a regular expression.
    const PATTERN: &'static str;

    /// The text, if it keeps the grammar.
    fn parse(text: &str) -> Option<Self>;
}

/// Reads a string that keeps a grammar; what does not is never quoted.
struct Parse<T>(PhantomData<T>);

impl<T: Grammar> Visitor<'_> for Parse<T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::parse(text).ok_or_else(|| E::custom(format_args!("must match {}", T::PATTERN)))
    }
}

/// Names a string type with its grammar, so that the schema says of every string what it may be.
macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $pattern:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub(crate) String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Grammar for $name {
            const PATTERN: &'static str = $pattern;

            fn parse(text: &str) -> Option<Self> {
                static GRAMMAR: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($pattern).ok());
                GRAMMAR.as_ref()?.is_match(text).then(|| Self(text.to_owned()))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Parse(PhantomData))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "pattern": Self::PATTERN})
            }
        }
    };
}

text!(
    /// A label that the user gave or the catalog lists.
    Label,
    "^[A-Za-z0-9_.:-]{1,128}$"
);
text!(
    /// A tool as findings name it.
    Subject,
    "^([A-Za-z0-9_.:-]{1,128}|invalid-name#[0-9]{1,10})$"
);
text!(
    /// The id of a manifest's case.
    CaseId,
    "^[A-Za-z][A-Za-z0-9_.:-]{0,63}$"
);
text!(
    /// A kind that a component declares.
    KindName,
    "^[a-z][a-z0-9-]{0,31}(\\.[a-z][a-z0-9-]{0,31})?$"
);
text!(
    /// What a component takes part as: its kind, or `area:` and the area.
    ComponentName,
    "^(area:)?[a-z][a-z0-9-]{0,31}(\\.[a-z][a-z0-9-]{0,31})?$"
);
text!(
    /// A reason that a component declares.
    Reason,
    "^[a-z][a-z0-9.-]{0,127}$"
);
text!(
    /// The hint of a reason, as its component declares it.
    Hint,
    "^[^\\u0000-\\u001f\\u007f-\\u009f]{1,400}$"
);
text!(
    /// The id of a declared check.
    CheckId,
    "^[a-z][a-z0-9-]{0,31}\\.[a-z][a-z0-9.-]{0,95}$"
);
text!(
    /// The name of a declared measurement.
    Metric,
    "^[a-z][a-z0-9_]{0,63}$"
);
text!(
    /// What a list's values are counted in.
    Unit,
    "^[a-z][a-z0-9_-]{0,31}$"
);
text!(
    /// A declared word that a measurement may be.
    Word,
    "^[a-z][a-z0-9.-]{0,127}$"
);
text!(
    /// A property of a kind's config schema.
    BoundName,
    "^[A-Za-z_][A-Za-z0-9_.-]{0,63}$"
);
text!(
    /// An area of the standard.
    AreaName,
    "^[a-z][a-z0-9-]{0,31}$"
);
text!(
    /// A standard.
    StandardLabel,
    "^[a-z0-9][a-z0-9.-]{0,63}/[0-9]{1,4}$"
);
text!(
    /// An identifier of the machine's kind.
    Identifier,
    "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
);
text!(
    /// A version of mcpeval.
    Version,
    "^[0-9]{1,9}\\.[0-9]{1,9}\\.[0-9]{1,9}(-[A-Za-z0-9.-]{1,64})?$"
);
text!(
    /// The address of a badge that shows the score.
    Badge,
    "^https://img\\.shields\\.io/badge/mcpeval-(100|[1-9]?[0-9])%2F100-(brightgreen|yellow|red)$"
);
text!(
    /// SHA-256.
    Hex64,
    "^[0-9a-f]{64}$"
);
text!(
    /// First 16 digits of SHA-256.
    Hex16,
    "^[0-9a-f]{16}$"
);

/// What a tool says of its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It declares to change nothing.
    ReadOnly,
    /// It declares to write, or not to be read-only.
    Writer,
    /// It says nothing.
    Unannotated,
}

impl Class {
    /// The class of a valid entry; none for an invalid one.
    pub const fn of(class: ToolClass) -> Option<Self> {
        match class {
            ToolClass::ReadOnly => Some(Self::ReadOnly),
            ToolClass::Writer => Some(Self::Writer),
            ToolClass::Unannotated => Some(Self::Unannotated),
            ToolClass::Invalid => None,
        }
    }

    /// The word in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReadOnly => ToolClass::ReadOnly.word(),
            Self::Writer => ToolClass::Writer.word(),
            Self::Unannotated => ToolClass::Unannotated.word(),
        }
    }
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseResult {
    /// It passed.
    Pass,
    /// It failed.
    Fail,
    /// There is no verdict.
    Error,
}

impl CaseResult {
    /// The word in every rendering.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
        }
    }
}

impl Label {
    /// The longest label, in bytes.
    pub const MAX: usize = 128;

    /// The label, if it keeps the grammar.
    pub fn new(text: &str) -> Option<Self> {
        Self::is_valid(text).then(|| Self(text.to_owned()))
    }

    /// Whether a text is 1 to 128 of `A-Z a-z 0-9 _ . : -`.
    pub fn is_valid(text: &str) -> bool {
        (1..=Self::MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-'))
    }
}

impl Subject {
    /// The subject, if it is a label or the position of an entry whose name is none.
    pub fn new(text: &str) -> Option<Self> {
        let position = text.strip_prefix("invalid-name#");
        let positioned = position
            .is_some_and(|digits| (1..=10).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()));
        (positioned || Label::is_valid(text)).then(|| Self(text.to_owned()))
    }
}

impl Version {
    /// Major and minor.
    pub(crate) fn minor(&self) -> &str {
        let end = self.0.match_indices('.').nth(1).map_or(self.0.len(), |(at, _)| at);
        self.0.get(..end).unwrap_or(&self.0)
    }
}

impl Badge {
    /// Brightgreen from 80, yellow from 50, else red.
    pub fn of(score: u8) -> Self {
        let colour = match score {
            80.. => "brightgreen",
            50.. => "yellow",
            _ => "red",
        };
        Self(format!("https://img.shields.io/badge/mcpeval-{score}%2F100-{colour}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subjects_keep_their_grammar() {
        assert!(Label::is_valid("a.B_9:-"));
        assert!(Label::is_valid(&"x".repeat(128)));
        for bad in ["", "a b", "é", "a/b", "a\n", "invalid-name#1", &"x".repeat(129)] {
            assert!(!Label::is_valid(bad), "{bad:?}");
        }
        assert!(Subject::new("invalid-name#12").is_some());
        assert!(Subject::new("tool").is_some());
        for bad in ["invalid-name#", "invalid-name#x", "invalid-name#12345678901", "a b"] {
            assert!(Subject::new(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn every_grammar_reads_what_keeps_it_and_nothing_longer() {
        fn reads<T: Grammar>(good: &str) {
            assert!(T::parse(good).is_some(), "{good:?} of {}", T::PATTERN);
            for bad in [format!("{good}\n"), format!("\0{good}"), String::new(), good.repeat(200)] {
                assert!(T::parse(&bad).is_none(), "{bad:?} of {}", T::PATTERN);
            }
        }
        reads::<Label>("a.B_9:-");
        reads::<Subject>("invalid-name#4");
        reads::<CaseId>("search-fast");
        reads::<KindName>("acme.echo");
        reads::<ComponentName>("area:catalog");
        reads::<Reason>("acme.differs");
        reads::<Hint>("What it means, and what to change.");
        reads::<CheckId>("catalog.output-schema");
        reads::<Metric>("latency_ms");
        reads::<Unit>("tokens");
        reads::<Word>("no-result");
        reads::<BoundName>("max_tools");
        reads::<AreaName>("error-honesty");
        reads::<StandardLabel>("mcpeval-standard/3");
        reads::<Identifier>("x86_64");
        reads::<Version>("1.2.3-rc.1");
        reads::<Badge>(Badge::of(65).as_str());
        reads::<Hex64>(&"0f".repeat(32));
        reads::<Hex16>("0123456789abcdef");
    }

    #[test]
    fn badges_change_colour_at_80_and_50() {
        for (score, tail) in [(100, "100%2F100-brightgreen"), (80, "80%2F100-brightgreen"), (79, "79%2F100-yellow")] {
            assert!(Badge::of(score).as_str().ends_with(tail));
        }
        assert!(Badge::of(50).as_str().ends_with("yellow"));
        assert!(Badge::of(49).as_str().ends_with("red"));
    }
}
