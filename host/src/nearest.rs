//! The one place that guesses what a misspelt name was meant to be.

/// Below this likeness (Jaro-Winkler, 0 to 1) a guess confuses more than it helps.
const LIKENESS: f64 = 0.7;

/// The known name most like `wanted`; of equally like ones the first. None if nothing comes near.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for name in known {
        let likeness = strsim::jaro_winkler(&wanted, &name.to_lowercase());
        if likeness >= LIKENESS && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, name));
        }
    }
    best.map(|(_, name)| name)
}

/// The end of an error sentence: `; the nearest is "x"`, or nothing.
pub fn hint<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, known).map(|name| format!("; the nearest is \"{name}\"")).unwrap_or_default()
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
        assert_eq!(hint("protocl", known), "; the nearest is \"protocol\"");
        assert_eq!(hint("", []), "");
    }
}
