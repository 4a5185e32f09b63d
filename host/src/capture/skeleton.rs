//! What error texts share: a text without its names, places and numbers (docs/findings.md). Only a salted hash of it is
//! kept, so that two failures are found alike, and neither can be read.

use super::message::is_uuid_at;

/// Bytes of an error's text that are looked at; the rest tells no more about which error it is.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// The skeleton of an error's text. Each step reads the text once.
pub(super) fn skeleton(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    let text = without_uuids(&text.to_lowercase());
    let text = without_quotes(&text);
    let text = without_urls(&text);
    let text = without_paths(&text);
    without_numbers(&text)
}

fn without_uuids(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut kept = String::with_capacity(text.len());
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        if is_uuid_at(bytes, at) {
            kept.push_str(&text[from..at]);
            kept.push('u');
            at += 36;
            from = at;
        } else {
            at += 1;
        }
    }
    kept.push_str(&text[from..]);
    kept
}

/// Quotes are read from left to right, whichever kind opens first; one that is never closed stays.
fn without_quotes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let opens = match first {
            '"' => true,
            '\'' => before.is_none_or(|before: char| before.is_whitespace() || matches!(before, '(' | '[')),
            _ => false,
        };
        let after = &rest[first.len_utf8()..];
        before = Some(first);
        rest = match after.find(first).filter(|_| opens) {
            Some(close) => {
                kept.push('q');
                &after[close + 1..]
            }
            None => {
                kept.push(first);
                after
            }
        };
    }
    kept
}

fn without_urls(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(colon) = rest.find("://") {
        let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let part = rest[..colon].chars().rev().take_while(is_part).count();
        // A scheme begins with a letter.
        let start =
            rest[colon - part..colon].find(|c: char| c.is_ascii_alphabetic()).map(|letter| colon - part + letter);
        let resume = match start {
            Some(start) => {
                kept.push_str(&rest[..start]);
                kept.push('l');
                blank_from(rest, colon)
            }
            None => {
                kept.push_str(&rest[..colon + 3]);
                colon + 3
            }
        };
        rest = &rest[resume..];
    }
    kept.push_str(rest);
    kept
}

fn without_paths(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut before = None;
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let after = at + first.len_utf8();
        let opens = first == '/'
            && before.is_none_or(|before: char| before.is_whitespace() || matches!(before, '(' | '[' | '"' | '\''))
            && text[after..].starts_with(|next: char| !next.is_whitespace());
        before = Some(first);
        if opens {
            kept.push('p');
            at = blank_from(text, after);
        } else {
            kept.push(first);
            at = after;
        }
    }
    kept
}

fn without_numbers(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut before = None;
    for c in text.trim().chars() {
        let c = match c {
            c if c.is_whitespace() => ' ',
            c if c.is_ascii_digit() => '0',
            c => c,
        };
        if !(matches!(c, ' ' | '0') && before == Some(c)) {
            kept.push(c);
        }
        before = Some(c);
    }
    kept
}

/// Where the next white space after that place begins, or the text ends.
fn blank_from(text: &str, at: usize) -> usize {
    text[at..].find(char::is_whitespace).map_or(text.len(), |blank| at + blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lose_what_differs_from_call_to_call() {
        for (text, expected) in [
            ("Cannot open \"a b\" (/tmp/x) in 12 s", "cannot open q (p in 0 s"),
            ("", ""),
            ("  Many\t\n blanks  ", "many blanks"),
            ("No 0B7F3C52-3a4e-4a55-9a0e-0c5f6d1f7a10!", "no u!"),
            ("x0b7f3c52-3a4e-4a55-9a0e-0c5f6d1f7a10", "xu"),
            ("0b7f3c52-3a4e-4a55-9a0e-0c5f6d1f7a1", "0b0f0c0-0a0e-0a0-0a0e-0c0f0d0f0a0"),
            ("say \"\" and \"x", "say q and \"x"),
            ("'one' ('two') ['three'] don't isn't", "q (q) [q] don't isn't"),
            ("it's 'open", "it's 'open"),
            ("'a''b'", "q'b'"),
            ("\"it's 'x\" 'y'", "q q"),
            ("'say \"x' y\"", "q y\""),
            ("GET https://a.example/b?c=1 failed", "get l failed"),
            ("(http://a.example) x", "(l x"),
            ("1http://a x", "0l x"),
            ("://nothing here", "://nothing here"),
            ("a://b://c d", "l d"),
            ("_file:///etc/x y", "_l y"),
            ("/ alone /x [/y] '/z a/b /é", "/ alone p [p 'p a/b p"),
            ("/", "/"),
            ("error 404: 12,5 of 0x1F", "error 0: 0,0 of 0x0f"),
            ("HTTP/1.1 500", "http/0.0 0"),
            ("Größe ÄÖ 3", "größe äö 0"),
        ] {
            assert_eq!(skeleton(text), expected, "{text}");
        }
    }

    #[test]
    fn long_texts_are_read_once_and_to_a_bound() {
        for piece in ["\"", "'", " '", "://", "a://", "/", " /", "0b7f3c52-", "é", "9 "] {
            let text = piece.repeat(1 << 20);
            assert!(skeleton(&text).len() <= MAX_TEXT, "{piece}");
        }
        let long = "x".repeat(MAX_TEXT);
        assert_eq!(skeleton(&format!("{long}a")), skeleton(&format!("{long}b")));
        assert_ne!(skeleton(&long[1..]), skeleton(&long));
    }
}
