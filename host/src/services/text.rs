//! Pattern matching within bounds.

use super::pattern::Price;

/// Longest pattern, in bytes; the bound of manifests (wit/README.md).
pub const MAX_PATTERN: usize = 64 << 10;
/// Largest compiled pattern, in bytes.
const MAX_COMPILED: usize = 8 << 20;
/// Steps back before a backtracking match is given up.
const MAX_BACKTRACKS: usize = 100_000;
/// What one match may cost, see [`Price`]; about a second at the worst.
const MAX_WORK: u64 = 1 << 28;

/// The two families of regular expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Without look-around and back-references; the time grows with the text only.
    Linear,
    /// With both, and a limit of steps.
    Backtracking,
}

/// Whether `pattern` matches somewhere in `text`. Errors are one sentence, without the pattern: too long, too
/// large, no regular expression of the dialect, or given up.
pub fn matches(pattern: &str, text: &str, dialect: Dialect) -> Result<bool, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("the pattern is longer than {MAX_PATTERN} bytes"));
    }
    let mut price = Price::of(pattern);
    price.backtracks &= dialect == Dialect::Backtracking;
    if price.work(text.len()) > MAX_WORK {
        return Err("the pattern is too large for a text of this length".to_owned());
    }
    // The engines are known to panic on rare patterns, which is no reason to lose a run.
    std::panic::catch_unwind(|| {
        if price.backtracks { backtracking(pattern, text) } else { Ok(linear(pattern)?.is_match(text)) }
    })
    .unwrap_or_else(|_| Err("the engine failed on this pattern".to_owned()))
}

fn backtracking(pattern: &str, text: &str) -> Result<bool, String> {
    fancy_regex::RegexBuilder::new(pattern)
        .backtrack_limit(MAX_BACKTRACKS)
        .delegate_size_limit(MAX_COMPILED)
        .build()
        .map_err(|_| "the pattern is no regular expression, or too large".to_owned())?
        .is_match(text)
        .map_err(|_| "the match was given up after too many steps".to_owned())
}

fn linear(pattern: &str) -> Result<regex::Regex, String> {
    regex::RegexBuilder::new(pattern).size_limit(MAX_COMPILED).build().map_err(|error| {
        match error {
            regex::Error::CompiledTooBig(_) => "the pattern is too large when compiled",
            _ => "the pattern is no regular expression without look-around and back-references",
        }
        .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_differ_in_look_around() {
        for (pattern, text, linear, backtracking) in [
            ("b+", "abbc", Some(true), Some(true)),
            ("^b", "abbc", Some(false), Some(false)),
            ("(?=b)b", "abbc", None, Some(true)),
            ("(a|b)\\1", "abbc", None, Some(true)),
            ("(", "abbc", None, None),
            ("ß$", "Gruß", Some(true), Some(true)),
        ] {
            assert_eq!(matches(pattern, text, Dialect::Linear).ok(), linear, "{pattern}");
            assert_eq!(matches(pattern, text, Dialect::Backtracking).ok(), backtracking, "{pattern}");
        }
    }

    #[test]
    fn hostile_patterns_are_refused_or_given_up() {
        let long = "a".repeat(MAX_PATTERN + 1);
        assert!(matches(&long, "a", Dialect::Linear).is_err());
        assert!(matches("(a{1000}){1000}", "a", Dialect::Linear).is_err());
        assert!(matches("(\\w{1000}){10}", "a", Dialect::Backtracking).is_err());
        let text = "a".repeat(40);
        assert_eq!(matches("^(a+)+$", &format!("{text}!"), Dialect::Linear), Ok(false));
        assert_eq!(matches("^(a+)+$", &format!("{text}!"), Dialect::Backtracking), Ok(false));
        assert!(matches("^(?:(a+)\\1?)+$", &format!("{text}!"), Dialect::Backtracking).is_err());
        assert!(matches("(?=(a*))\\1b", &"a".repeat(1 << 18), Dialect::Backtracking).is_err());
        assert_eq!(matches("(?=(a*))\\1b", &"a".repeat(1 << 10), Dialect::Backtracking), Ok(false));
        assert!(matches(&"(".repeat(60_000), "a", Dialect::Backtracking).is_err());
    }

    #[test]
    fn a_plain_pattern_searches_a_whole_result() {
        let text = "x".repeat(8 << 20);
        assert_eq!(matches("needle \\d+", &text, Dialect::Linear), Ok(false));
    }
}
