//! Words of others in our sentences: cut to a length, and without characters that a terminal obeys.

use std::borrow::Cow;
use std::path::Path;

use crate::report::text::neutralised;

/// Characters of one word that are shown.
pub const LONGEST_WORD: usize = 128;
/// Characters of one JSON Pointer that are shown.
pub const LONGEST_POINTER: usize = 1024;

/// Stands for what is left out.
const ELLIPSIS: char = '…';

/// A word as a sentence quotes it: its first [`LONGEST_WORD`] characters, control characters as escapes.
pub fn word(word: &str) -> String {
    neutralised(&cut(word, LONGEST_WORD))
}

/// A path that a document names, in the same way.
pub fn path(path: &Path) -> String {
    word(&path.to_string_lossy())
}

/// Adds a step to a JSON Pointer, shown as a [`word`].
pub fn step(pointer: &mut String, key: &str) {
    pointer.push('/');
    pointer.push_str(&escaped(&word(key)));
}

/// A key as a step of a JSON Pointer (RFC 6901).
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A JSON Pointer as a sentence begins with it: its first [`LONGEST_POINTER`] characters; that of the root in words.
pub fn pointer(pointer: &str) -> Cow<'_, str> {
    if pointer.is_empty() { "the document".into() } else { cut(pointer, LONGEST_POINTER) }
}

fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}{ELLIPSIS}", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_cut_and_made_harmless() {
        assert_eq!(word("search"), "search");
        assert_eq!(word("a\u{1b}[2J\u{202e}b\n"), "a\\u{1b}[2J\\u{202e}b\\u{a}");
        assert_eq!(word(&"é".repeat(LONGEST_WORD)), "é".repeat(LONGEST_WORD), "the longest");
        assert_eq!(word(&"é".repeat(LONGEST_WORD + 1)), format!("{}…", "é".repeat(LONGEST_WORD)), "one more");
    }

    #[test]
    fn a_pointer_is_cut_step_by_step_and_as_a_whole() {
        let mut steps = String::new();
        step(&mut steps, "a/~b");
        step(&mut steps, &"x".repeat(1_000_000));
        assert_eq!(steps, format!("/a~1~0b/{}…", "x".repeat(LONGEST_WORD)));
        assert_eq!(pointer(&steps), steps);
        assert_eq!(pointer(""), "the document");
        assert_eq!(pointer(&"/a".repeat(600)), format!("{}…", "/a".repeat(512)));
    }
}
