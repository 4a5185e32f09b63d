//! When two JSON values are equal: deeply, members in any order, strings as unescaped, numbers by value.

use std::collections::HashMap;

use crate::View;

impl View<'_> {
    /// Whether both are the same value. Numbers are compared by value, however they are written and however large:
    /// `1`, `1.0` and `10e-1` are equal.
    pub fn equals(self, other: View<'_>) -> bool {
        // A list of what is still to compare instead of recursion: a server decides how deep its values are.
        let mut open = vec![(self, other)];
        while let Some((left, right)) = open.pop() {
            if left == right {
                continue;
            }
            let same = match (left.text().as_bytes().first(), right.text().as_bytes().first()) {
                (Some(b'{'), Some(b'{')) => members(left, right, &mut open),
                (Some(b'['), Some(b'[')) => items(left, right, &mut open),
                (Some(b'"'), Some(b'"')) => left.string() == right.string(),
                (Some(b'-' | b'0'..=b'9'), Some(b'-' | b'0'..=b'9')) => numbers(left.text(), right.text()),
                _ => false,
            };
            if !same {
                return false;
            }
        }
        true
    }
}

fn members<'a>(left: View<'a>, right: View<'a>, open: &mut Vec<(View<'a>, View<'a>)>) -> bool {
    let (Some(left), Some(right)) = (left.members(), right.members()) else { return false };
    let mut named: HashMap<_, _> = right.into_iter().collect();
    for (name, value) in left {
        match named.remove(&name) {
            Some(other) => open.push((value, other)),
            None => return false,
        }
    }
    named.is_empty()
}

fn items<'a>(left: View<'a>, right: View<'a>, open: &mut Vec<(View<'a>, View<'a>)>) -> bool {
    let (Some(left), Some(right)) = (left.items(), right.items()) else { return false };
    let same = left.len() == right.len();
    open.extend(left.into_iter().zip(right));
    same
}

fn numbers(left: &str, right: &str) -> bool {
    match (Decimal::read(left), Decimal::read(right)) {
        (Some(left), Some(right)) => left == right,
        // An exponent beyond any arithmetic is compared as it is written.
        _ => left == right,
    }
}

/// A number as sign, significant digits and the power of ten of the last one; zero has no digits.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i128,
}

impl Decimal {
    /// `None` if the exponent is beyond an `i128`.
    fn read(text: &str) -> Option<Self> {
        let (negative, magnitude) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_end_matches('0');
        let shift = i128::try_from(all.len() - digits.len()).ok()? - i128::try_from(fraction.len()).ok()?;
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Self { negative: false, digits: String::new(), exponent: 0 });
        }
        let exponent = exponent.parse::<i128>().ok()?.checked_add(shift)?;
        Some(Self { negative, digits: digits.to_owned(), exponent })
    }
}

#[cfg(test)]
mod tests {
    use crate::Json;

    fn equal(left: &str, right: &str) -> bool {
        let [left, right] = [left, right].map(|text| Json::read(text).unwrap());
        let both = [left.view().equals(right.view()), right.view().equals(left.view())];
        assert_eq!(both[0], both[1], "equality has no direction");
        both[0]
    }

    #[test]
    fn numbers_are_equal_by_value() {
        for (left, right) in [
            ("1", "1.0"),
            ("1", "10e-1"),
            ("100", "1E+2"),
            ("0", "-0.0e9"),
            ("0", "0e99999999999999999999999999999999999999999"),
            ("12345678901234567890123", "1.2345678901234567890123e22"),
            ("1e400", "10e399"),
            ("-2.50", "-2.5"),
            ("0.001", "1e-3"),
            ("1e99999999999999999999999999999999999999999", "1e99999999999999999999999999999999999999999"),
        ] {
            assert!(equal(left, right), "{left} {right}");
        }
        for (left, right) in [
            ("1", "-1"),
            ("1", "10"),
            ("12345678901234567890123", "12345678901234567890124"),
            ("9007199254740993", "9007199254740992"),
            ("1e400", "1e401"),
            ("0.1", "0.10000000000000001"),
            ("1", "\"1\""),
            ("0", "false"),
            ("0", "null"),
        ] {
            assert!(!equal(left, right), "{left} {right}");
        }
    }

    #[test]
    fn composites_are_equal_member_by_member() {
        for (left, right) in [
            (r#"{"a": 1, "b": [true, null]}"#, r#"{"b":[true,null],"a":1.0}"#),
            (r#""\u0041\/""#, r#""A/""#),
            (r#"{"a": 1, "a": 2}"#, r#"{"\u0061": 2}"#),
            ("[ ]", "[]"),
        ] {
            assert!(equal(left, right), "{left} {right}");
        }
        for (left, right) in [
            (r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#),
            (r#"{"a": 1}"#, r#"{"b": 1}"#),
            ("[1, 2]", "[2, 1]"),
            ("[1]", "[1, 1]"),
            ("[]", "{}"),
            (r#"{"a": {"b": [1]}}"#, r#"{"a": {"b": [2]}}"#),
            (r#""a""#, r#""A""#),
        ] {
            assert!(!equal(left, right), "{left} {right}");
        }
    }

    #[test]
    fn depth_takes_no_stack() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(equal(&deep("1"), &deep("1.0")));
        assert!(!equal(&deep("1"), &deep("2")));
    }
}
