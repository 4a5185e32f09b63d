//! Examples that a description gives in words.

/// Characters of a description that are read.
const MAX_READ: usize = 4_096;
/// Characters between a marker and its example.
const MAX_GAP: usize = 24;
/// Characters of an example.
const MAX_TOKEN: usize = 256;
/// Examples of one description.
const MAX_EXAMPLES: usize = 8;
/// Words that announce an example.
const MARKERS: [&str; 4] = ["e.g.", "for example", "such as", "default"];

/// An example as the description writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    pub(super) token: String,
    /// Without quotes: for numbers only.
    pub(super) bare: bool,
}

/// The examples of a description in their order: tokens in quotes, and numbers without.
pub(super) fn examples(description: &str) -> Vec<Example> {
    let text: Vec<char> = description.chars().take(MAX_READ).collect();
    let mut found: Vec<Example> = Vec::new();
    let mut at = 0;
    while at < text.len() && found.len() < MAX_EXAMPLES {
        let Some(length) = marker(&text, at) else {
            at += 1;
            continue;
        };
        at += length;
        let before = found.len();
        let mut next = at;
        let mut start = (at..=at + MAX_GAP).find_map(|place| quoted(&text, place));
        while let Some((token, end)) = start {
            found.push(Example { token, bare: false });
            next = end;
            start = joined(&text, end).and_then(|place| quoted(&text, place));
        }
        if found.len() == before {
            let mut start = (at..=at + MAX_GAP).find_map(|place| number(&text, place));
            while let Some((token, end)) = start {
                found.push(Example { token, bare: true });
                next = end;
                start = joined(&text, end).and_then(|place| number(&text, place));
            }
        }
        at = next;
    }
    found.truncate(MAX_EXAMPLES);
    found
}

/// The length of the marker that begins here, if one does.
fn marker(text: &[char], at: usize) -> Option<usize> {
    if at > 0 && text.get(at - 1).is_some_and(|before| before.is_alphanumeric()) {
        return None;
    }
    MARKERS.iter().map(|marker| (marker, marker.chars().count())).find_map(|(marker, length)| {
        let here = text.get(at..at + length)?;
        marker.chars().zip(here).all(|(wanted, found)| wanted == found.to_ascii_lowercase()).then_some(length)
    })
}

/// The token in quotes that begins here, and where it ends.
fn quoted(text: &[char], at: usize) -> Option<(String, usize)> {
    let open = *text.get(at)?;
    let closing: &[char] = match open {
        '"' | '\'' | '`' => &[open],
        '“' | '„' | '”' => &['”', '“'],
        '‘' | '‚' | '’' => &['’', '‘'],
        '«' => &['»'],
        '»' => &['«'],
        '‹' => &['›'],
        _ => return None,
    };
    // An apostrophe is no quotation mark.
    if at > 0 && matches!(open, '\'' | '’') && text.get(at - 1).is_some_and(|before| before.is_alphanumeric()) {
        return None;
    }
    let rest = text.get(at + 1..)?;
    let length = rest.iter().take(MAX_TOKEN + 1).position(|next| closing.contains(next))?;
    let token: String = rest.get(..length)?.iter().collect();
    (length > 0 && !token.chars().any(char::is_control)).then_some((token, at + length + 2))
}

/// The number that begins here, and where it ends.
fn number(text: &[char], at: usize) -> Option<(String, usize)> {
    if at > 0 && text.get(at - 1).is_some_and(|before| before.is_alphanumeric() || matches!(before, '.' | '-' | '_')) {
        return None;
    }
    let rest = text.get(at..)?;
    let length = rest
        .iter()
        .take(MAX_TOKEN)
        .enumerate()
        .take_while(|(place, next)| {
            let digit_follows = || rest.get(place + 1).is_some_and(char::is_ascii_digit);
            next.is_ascii_digit()
                || (matches!(next, '-' if *place == 0) || **next == '.' && *place > 0) && digit_follows()
        })
        .count();
    let token: String = rest.get(..length)?.iter().collect();
    let ends = rest.get(length).is_none_or(|next| !next.is_alphanumeric() && *next != '_');
    (ends && serde_json::from_str::<serde_json::Number>(&token).is_ok()).then_some((token, at + length))
}

/// Where the example after a `,` or an `or` begins.
fn joined(text: &[char], at: usize) -> Option<usize> {
    let skip = |mut at: usize| {
        while text.get(at).is_some_and(|next| next.is_whitespace()) {
            at += 1;
        }
        at
    };
    let mut next = skip(at);
    let comma = text.get(next) == Some(&',');
    if comma {
        next = skip(next + 1);
    }
    let or = text.get(next..next + 2).is_some_and(|word| word.iter().collect::<String>().eq_ignore_ascii_case("or"));
    if or && text.get(next + 2).is_some_and(|after| after.is_whitespace()) {
        return Some(skip(next + 2));
    }
    comma.then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_give_examples() {
        let table: &[(&str, &[&str])] = &[
            (
                "IANA timezone name (e.g., 'America/New_York', 'Europe/London'). Use 'UTC' as local timezone if none.",
                &["America/New_York", "Europe/London"],
            ),
            ("The unit, for example \"celsius\" or \"kelvin\"", &["celsius", "kelvin"]),
            ("Such as `a`, `b`, or `c`; not `d`", &["a", "b", "c"]),
            ("E.G. “x y” and ‘z’", &["x y"]),
            ("for example ‘left’, «right»", &["left", "right"]),
            ("Defaults to 'main'.", &["main"]),
            ("default: 10, at most 100", &["10"]),
            ("e.g. 1, 2.5 or -3", &["1", "2.5", "-3"]),
            ("e.g. the user's 'name'", &["name"]),
            ("e.g. a very long way to go before the 'example'", &[]),
            ("e.g. ''", &[]),
            ("e.g. 'a\nb'", &[]),
            ("a 'quoted' word without a marker", &[]),
            ("the predefault 'x'", &[]),
            ("default version v2, port8", &[]),
            ("such as", &[]),
            ("e.g. '", &[]),
            ("such as 1, 2, 3, 4, 5, 6, 7, 8, 9", &["1", "2", "3", "4", "5", "6", "7", "8"]),
        ];
        for (description, expected) in table {
            let found: Vec<String> = examples(description).into_iter().map(|example| example.token).collect();
            assert_eq!(&found, expected, "{description}");
        }
        assert_eq!(examples(&format!("{} e.g. 'late'", "x".repeat(MAX_READ))), []);
        assert_eq!(examples(&format!("e.g. '{}'", "x".repeat(MAX_TOKEN + 1))), []);
        assert_eq!(examples(&format!("e.g. '{}'", "x".repeat(MAX_TOKEN))).len(), 1);
    }
}
