//! The one place that guesses what a misspelt name was meant to be.

use crate::shown;

/// Below this likeness (Jaro-Winkler, 0 to 1) a guess confuses more than it helps.
const LIKENESS: f64 = 0.7;
/// Bytes of a name that may be a misspelt one; a longer one is like nothing.
const LONGEST_WANTED: usize = 256;
/// Names that a sentence lists.
const MAX_LISTED: usize = 20;

/// The known name most like `wanted`; of equally like ones the first. None if nothing comes near.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if wanted.len() > LONGEST_WANTED {
        return None;
    }
    let wanted = wanted.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for name in known.into_iter().filter(|name| name.len() <= LONGEST_WANTED) {
        let likeness = strsim::jaro_winkler(&wanted, &name.to_lowercase());
        if likeness >= LIKENESS && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, name));
        }
    }
    best.map(|(_, name)| name)
}

/// The end of an error sentence that has named all choices: `; the nearest is "x"`, or nothing.
pub fn hint<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, known).map(|name| format!("; the nearest is \"{}\"", shown::word(name))).unwrap_or_default()
}

/// The end of an error sentence about an unknown name: the nearest one if any comes near, and all of them, in the order
/// given and each once, if they are few.
pub fn choices<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    names.extend(known.into_iter().filter(|name| seen.insert(*name)));
    let mut end = hint(wanted, names.iter().copied());
    match names.as_slice() {
        [only] if end.is_empty() => {
            end.push_str("; the only one is ");
            end.push_str(&shown::word(only));
        }
        [] | [_] => {}
        names if names.len() <= MAX_LISTED => {
            end.push_str("; there are ");
            end.push_str(&names.iter().map(|name| shown::word(name)).collect::<Vec<_>>().join(", "));
        }
        _ => {}
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_misspelt_name_and_admits_defeat() {
        let known = ["protocol", "catalog", "context"];
        assert_eq!(nearest("catalogue", known), Some("catalog"));
        assert_eq!(nearest("Context", known), Some("context"));
        assert_eq!(nearest("zzz", known), None);
        assert_eq!(nearest(&"catalog".repeat(1_000_000), known), None);
        assert_eq!(hint("protocl", known), "; the nearest is \"protocol\"");
        assert_eq!(hint("", []), "");
    }

    #[test]
    fn lists_what_there_is_if_it_is_little() {
        let known = ["protocol", "catalog", "catalog"];
        assert_eq!(choices("zzz", known), "; there are protocol, catalog");
        assert_eq!(choices("protocl", known), "; the nearest is \"protocol\"; there are protocol, catalog");
        assert_eq!(choices("zzz", ["a"]), "; the only one is a");
        assert_eq!(choices("search2", ["search"]), "; the nearest is \"search\"");
        assert_eq!(choices("zzz", []), "");
        let many: Vec<String> = (0..=MAX_LISTED).map(|number| format!("n{number}")).collect();
        assert_eq!(choices("zzz", many.iter().map(String::as_str)), "");
        assert!(choices("zzz", many.iter().take(MAX_LISTED).map(String::as_str)).ends_with(", n19"));
    }

    #[test]
    fn a_known_name_is_shown_harmless_too() {
        let long = format!("{}\u{1b}", "x".repeat(200));
        assert_eq!(hint(&long, [long.as_str()]), format!("; the nearest is \"{}…\"", "x".repeat(128)));
    }
}
