//! What a string should be, by its format or by the name of its property.

use std::path::Path;

use super::Place;

/// The value of a format.
pub(super) fn format(name: &str) -> Option<&'static str> {
    Some(match name {
        "date-time" => "2026-01-01T00:00:00Z",
        "date" => "2026-01-01",
        "time" => "00:00:00Z",
        "duration" => "P1D",
        "email" | "idn-email" => "user@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "iri" | "uri-reference" | "iri-reference" => "https://example.com",
        "json-pointer" => "/mcpeval",
        "regex" => ".*",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        _ => return None,
    })
}

/// What a name stands for: words, and the value if any of them occurs.
const HINTS: [(&[&str], &str); 13] = [
    (&["timezone", "tz"], "UTC"),
    (&["url", "uri", "link", "endpoint"], "https://example.com"),
    (&["email"], "user@example.com"),
    (&["path", "file", "filename", "dir", "directory", "folder", "cwd", "root", "workspace"], PATH),
    (&["language", "lang", "locale"], "en"),
    (&["datetime", "timestamp"], "2026-01-01T00:00:00Z"),
    (&["date"], "2026-01-01"),
    (&["time"], "12:00"),
    (&["host", "hostname"], "example.com"),
    (&["ip"], "192.0.2.1"),
    (&["branch"], "main"),
    (&["ref", "revision", "commit"], "HEAD"),
    (&["expression"], "1+1"),
];
/// Stands for the path value, which depends on the place.
const PATH: &str = "";
/// The same for numbers.
const NUMBERS: [(&[&str], u32); 3] = [(&["year"], 2026), (&["port"], 80), (&["latitude", "longitude"], 0)];

/// The words of a name, split at case changes and at `_`, `-`, `.`, in lower case; then what two neighbours make
/// when joined, as `timeZone` means a timezone.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last: Option<char> = None;
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        if matches!(letter, '_' | '-' | '.') || letter.is_whitespace() {
            last = None;
            continue;
        }
        // `fooBar` is `foo bar`, `URLPath` is `url path`.
        let rises =
            last.is_some_and(|last| !last.is_uppercase()) || letters.peek().is_some_and(|next| next.is_lowercase());
        if last.is_none() || letter.is_uppercase() && rises {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
        last = Some(letter);
    }
    let pairs: Vec<String> = words.windows(2).map(<[String]>::concat).collect();
    words.extend(pairs);
    words
}

/// The value that the words of a name hint at.
pub(super) fn hint(words: &[String], tool: &str, place: &Place<'_>) -> Option<String> {
    let (_, value) = HINTS.iter().find(|(hints, _)| holds(words, hints))?;
    Some(if *value == PATH { path(words, tool, place) } else { (*value).to_owned() })
}

/// The number that the words of a name hint at.
pub(super) fn number_hint(words: &[String]) -> Option<u32> {
    NUMBERS.iter().find(|(hints, _)| holds(words, hints)).map(|(_, value)| *value)
}

fn holds(words: &[String], wanted: &[&str]) -> bool {
    words.iter().any(|word| wanted.contains(&word.as_str()))
}

fn path(property: &[String], tool: &str, place: &Place<'_>) -> String {
    let Place::Scratch(folder) = place else { return ".".to_owned() };
    let tool = words(tool);
    let either = |wanted: &[&str]| holds(property, wanted) || holds(&tool, wanted);
    let file = either(&["file", "filename", "read"]) && !either(&["dir", "directory", "folder", "list", "tree"]);
    let path = if file { folder.join(super::SCRATCH_FILE) } else { Path::to_path_buf(folder) };
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_into_words() {
        let first = |name, count: usize| {
            let mut words = words(name);
            words.truncate(count);
            words
        };
        assert_eq!(first("source_timezone", 2), ["source", "timezone"]);
        assert_eq!(first("filePath", 2), ["file", "path"]);
        assert_eq!(first("URLPath.next-one", 4), ["url", "path", "next", "one"]);
        assert_eq!(first("HTTP", 1), ["http"]);
        assert_eq!(words("timeZone"), ["time", "zone", "timezone"]);
        assert!(words("__--").is_empty() && words("").is_empty());
    }

    #[test]
    fn names_hint_at_values() {
        let scratch = Path::new("/s");
        let here = Place::Scratch(scratch);
        let table = [
            ("timezone", "t", Some("UTC")),
            ("userTimeZone", "t", Some("UTC")),
            ("tz", "t", Some("UTC")),
            ("callback_url", "t", Some("https://example.com")),
            ("endpoint", "t", Some("https://example.com")),
            ("email", "t", Some("user@example.com")),
            ("lang", "t", Some("en")),
            ("timestamp", "t", Some("2026-01-01T00:00:00Z")),
            ("start_date", "t", Some("2026-01-01")),
            ("time", "t", Some("12:00")),
            ("hostname", "t", Some("example.com")),
            ("ip", "t", Some("192.0.2.1")),
            ("branch", "t", Some("main")),
            ("commit", "t", Some("HEAD")),
            ("expression", "t", Some("1+1")),
            ("query", "t", None),
            ("pathology", "t", None),
            ("path", "t", Some("/s")),
            ("path", "read_text_file", Some("/s/mcpeval.txt")),
            ("path", "list_directory", Some("/s")),
            ("path", "read_directory", Some("/s")),
            ("path", "search_files", Some("/s")),
            ("file", "t", Some("/s/mcpeval.txt")),
            ("filename", "t", Some("/s/mcpeval.txt")),
            ("fileDir", "t", Some("/s")),
            ("cwd", "getTree", Some("/s")),
        ];
        for (name, tool, expected) in table {
            assert_eq!(hint(&words(name), tool, &here).as_deref(), expected, "{name} of {tool}");
        }
        assert_eq!(hint(&words("path"), "read_file", &Place::Remote).as_deref(), Some("."));
        assert_eq!(number_hint(&words("startYear")), Some(2026));
        assert_eq!(number_hint(&words("port")), Some(80));
        assert_eq!(number_hint(&words("latitude")), Some(0));
        assert_eq!(number_hint(&words("count")), None);
    }
}
