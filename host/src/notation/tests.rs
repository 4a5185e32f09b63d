use std::fmt::Write as _;

use serde_json::json;

use super::*;

fn read(text: &str, notation: Notation) -> Result<Value> {
    Document::parse("d", text, notation).map(|document| document.root().node().to_value())
}

fn fault(text: &str, notation: Notation) -> String {
    read(text, notation).expect_err("refused").to_string()
}

#[test]
fn reads_the_same_tree_from_every_notation() {
    let expected = json!({"a": [1, -2, 1.5, true, "x\n"], "b": {"c": "é"}});
    assert_eq!(read(r#"{"a":[1,-2,1.5,true,"x\n"],"b":{"c":"\u00e9"}}"#, Notation::Json).unwrap(), expected);
    assert_eq!(read("a: [1, -2, 1.5, true, \"x\\n\"]\nb:\n  c: é\n", Notation::Yaml).unwrap(), expected);
    assert_eq!(read("a = [1, -2, 1.5, true, \"x\\n\"]\n[b]\nc = 'é'\n", Notation::Toml).unwrap(), expected);
    assert_eq!(read("a: no\nb: ~\n", Notation::Yaml).unwrap(), json!({"a": "no", "b": null}), "YAML 1.2 core");
}

#[test]
fn knows_where_each_value_stands() {
    for (text, notation) in [
        ("{\n  \"é\": {\"wieght\": 1}\n}", Notation::Json),
        ("é:\n  {  wieght: 1}\n", Notation::Yaml),
        ("# one\n\"é\" = { wieght = 1 }\n", Notation::Toml),
    ] {
        let document = Document::parse("d", text, notation).unwrap();
        let inner = document.root().required("é").unwrap();
        let fault = inner.only(&["name", "weight"]).unwrap_err().to_string();
        assert!(fault.starts_with("d:2:"), "{fault}");
        assert!(
            fault.ends_with("/é/wieght: unknown field; the nearest is \"weight\"; there are name, weight"),
            "{fault}"
        );
    }
    let document = Document::parse("d", "[1,\n {\"a/~b\": 7}]", Notation::Json).unwrap();
    let second = document.root().items().unwrap().nth(1).unwrap();
    let fault = second.required("a/~b").unwrap().text().unwrap_err().to_string();
    assert_eq!(fault, "d:2:11: /1/a~1~0b: must be a string");
}

/// Texts, and the whole sentence about each but the document's name.
fn assert_sentences(notation: Notation, expected: &[(&str, &str)]) {
    let said: Vec<(&str, String)> = expected.iter().map(|(text, _)| (*text, fault(text, notation))).collect();
    let expected: Vec<(&str, String)> = expected.iter().map(|(text, words)| (*text, format!("d:{words}"))).collect();
    assert_eq!(said, expected, "{notation:?}");
}

#[test]
fn a_fault_of_json_has_place_pointer_and_sentence() {
    assert_sentences(
        Notation::Json,
        &[
            ("", "1:1: the document: the document is empty; write a JSON value"),
            (" \n\t\n", "1:1: the document: the document is empty; write a JSON value"),
            ("\u{feff}", "1:1: the document: the document is empty; write a JSON value"),
            ("{", "1:2: the document: the text ends inside an object; close it with }"),
            ("{\"a\": {\"é\": [1,\n 2\n\n", "2:3: /a/é/1: the text ends inside an array; close it with ]"),
            ("{\"a\":", "1:6: /a: the text ends where a value is due; add the value"),
            ("{\"a\": \"b", "1:9: /a: the text ends inside a string; close it with a double quote"),
            (
                "{\r\n  \"a\": 1,\r\n  \"b\": [true, tru]\r\n}",
                "3:18: /b/1: no JSON value stands here; write true, false or null in lower case, or put text in double quotes",
            ),
            ("{\"é\": 1 \"b\": 2}", "1:9: /é: a comma or the } of the object is missing here; add it"),
            ("[1 2]", "1:4: /0: a comma or the ] of the array is missing here; add it"),
            ("[1, 2", "1:6: /1: the text ends inside an array; close it with ]"),
            ("{\"a\" 1}", "1:6: /a: a colon is missing after this key; add it"),
            ("{\"a\": 1,}", "1:9: the document: a comma stands before the closing bracket; remove it"),
            ("{a: 1}", "1:2: the document: a key must stand in double quotes; add them"),
            ("{\"a\": 'b'}", "1:7: /a: no JSON value begins here; text takes double quotes, and comments must go"),
            ("{\"a\": NaN}", "1:7: /a: no JSON value begins here; text takes double quotes, and comments must go"),
            ("{\"a\": 01}", "1:8: /a: this number has a form that JSON lacks; write it like 12, -1.5 or 2e3"),
            ("{\"a\": 1e999}", "1:11: /a: this number is too large to be held; write a smaller one"),
            (
                "{\"a\": \"\\x\"}",
                "1:9: /a: a backslash here begins no escape of JSON; write two for a backslash itself",
            ),
            (
                "{\"a\": \"\\ud800\"}",
                "1:14: /a: an escape that begins with \\u is no character; write the character itself",
            ),
            (
                "{\"a\": \"b\nc\"}",
                "1:9: /a: a line break or control character stands in a string; write its escape, \\n for a line break",
            ),
            ("{} x", "1:4: the document: something follows the end of the document; remove it"),
            ("{\"a\": 1,\n \"a\": 2}", "2:2: /a: this key stands twice in its object; keep one"),
            (
                "[{\"x/y\":{\"a\\\"b\":1,  \"\\u0061\\\"b\":2}}]",
                "1:21: /0/x~1y/a\"b: this key stands twice in its object; keep one",
            ),
        ],
    );
    let deep = format!("{{\"a\": {}1{}}}", "[".repeat(DEPTH_LIMIT), "]".repeat(DEPTH_LIMIT));
    let pointer = "/0".repeat(DEPTH_LIMIT);
    assert_eq!(
        fault(&deep, Notation::Json),
        format!("d:1:107: /a{pointer}: nested deeper than {DEPTH_LIMIT} objects and arrays; flatten it")
    );
}

#[test]
fn a_fault_of_yaml_has_place_pointer_and_sentence() {
    assert_sentences(
        Notation::Yaml,
        &[
            ("a: 1\nb:\n  a: 2\n  a: 3\n", "4:3: /b/a: this key stands twice in its object; keep one"),
            (
                "x: [1, {value: .nan}]\n",
                "1:16: /x/1/value: a number must be finite; write one that is, or put text in quotes",
            ),
            ("x: -.inf\n", "1:4: /x: a number must be finite; write one that is, or put text in quotes"),
            (
                "base: &b {c: 1}\nx:\n  <<: *b\n  d: 2\n",
                "3:3: /x/<<: merge keys are not expanded; write the fields out",
            ),
            (
                "x: *nowhere\n",
                "1:4: the document: this alias (*) names an anchor (&) that no earlier value has; write the value out",
            ),
            ("x: !mine 1\n", "1:10: the document: tags (!) mean nothing here; leave it out, or put the text in quotes"),
            ("x: !!int a\n", "1:10: /x: this value is not of the type that its tag (!) says; leave the tag out"),
            (
                "a: 1\n---\nb: 2\n",
                "3:1: the document: a second document begins here; a file holds one, so remove the rest",
            ),
            ("é: \"b\n", "1:4: the document: a quote is not closed; close it"),
            ("a: [1, 2\n", "1:4: /a: a bracket is not closed; close it"),
            (
                "a: b: c\n",
                "1:5: the document: a second colon stands in this line, or it is indented too far; put text that holds a colon in quotes",
            ),
            ("a:\n\tb: 1\n", "2:2: the document: a tab stands where only spaces may; indent with spaces"),
            (
                "a:\r\n  - 1\r\n - 2\r\n",
                "3:2: the document: this line fits no open object; indent it like the keys beside it",
            ),
            (
                "a: 1\nb\nc: 2\n",
                "2:1: the document: a colon is missing after this key, or the line is indented wrongly; mend it",
            ),
            (
                "a: @b\n",
                "1:4: the document: this is not readable as YAML; look at the indentation, and put text with special signs in quotes",
            ),
            ("? [a]\n: 1\n", "1:3: the document: a key must be a text; write it without brackets, or in quotes"),
            (
                "a: \"\\q\"\n",
                "1:4: the document: a backslash in double quotes begins an unknown escape; write two, or use single quotes",
            ),
        ],
    );
    assert_eq!(read("\"<<\": 1\n", Notation::Yaml).unwrap(), json!({"<<": 1}), "quoted it is a key like any other");
    assert_eq!(read("a: &x [1]\nb: *x\n", Notation::Yaml).unwrap(), json!({"a": [1], "b": [1]}));
    assert_eq!(read("", Notation::Yaml).unwrap(), json!(null));
}

#[test]
fn a_fault_of_toml_has_place_pointer_and_sentence() {
    assert_sentences(
        Notation::Toml,
        &[
            ("a = 1\r\n'a' = 2\r\n", "2:1: /a: this key stands twice in its table; keep one"),
            (
                "[x.y]\na = 1\n[z]\n[x.w]\nb = { c = 1, c = 2 }\n",
                "5:14: /x/w/b/c: this key stands twice in its table; keep one",
            ),
            ("[x]\na = 1\n[x]\n", "3:2: /x: this key stands twice in its table; keep one"),
            ("[[l]]\na = 1\n[[l]]\na = 1\na = 2\n", "5:1: /l/1/a: this key stands twice in its table; keep one"),
            ("[x]\na = nan\n", "2:1: /x/a: a number must be finite; write one that is, or put text in quotes"),
            ("a = [1, 2020-01-01]\n", "1:9: /a/1: a date is of no use here; put it in quotes"),
            ("a = 9223372036854775808\n", "1:1: /a: an integer must fit 64 bits; write a smaller one"),
        ],
    );
    for text in ["a = ", "a", "[x", "a = \"b\n", "a = [1 2]\n", "a = {b = 1\n", "a = x\n"] {
        let fault = fault(text, Notation::Toml);
        assert!(fault.starts_with("d:1:") && !fault.contains(":0:"), "{text:?}: {fault}");
    }
}

#[test]
fn what_is_echoed_of_a_document_is_short_and_harmless() {
    let long = format!("{}\u{1b}]0;x\u{7}", "k".repeat(200_000));
    let control = "a\u{1b}[2Jb";
    for key in [long.as_str(), control] {
        for text in [json!({"a": {key: {"b": 1}}}).to_string(), json!({"a": {key: {"b": 1e300}}}).to_string()] {
            let document = Document::parse("d", text, Notation::Json).unwrap();
            let inner = document.root().required("a").unwrap().required(key).unwrap();
            for fault in [
                inner.only(&["c"]).unwrap_err(),
                inner.text().unwrap_err(),
                document.root().required("a").unwrap().only(&["c"]).unwrap_err(),
                document.root().only(&[key]).unwrap_err(),
            ] {
                let fault = fault.to_string();
                assert!(fault.chars().count() < 1000, "{}", fault.len());
                assert!(!fault.chars().any(char::is_control), "{fault:?}");
            }
        }
        for (text, notation) in [
            (format!("{{{0}: 1, {0}: 2}}", json!(key)), Notation::Json),
            (format!("{{{0}: 1, {0}: .nan}}", json!(key)), Notation::Yaml),
            (format!("{0} = 1\n{0} = 2\n", json!(key)), Notation::Toml),
        ] {
            let fault = fault(&text, notation);
            assert!(fault.chars().count() < 1000 && !fault.chars().any(char::is_control), "{notation:?} {fault:?}");
        }
    }
}

#[test]
fn refuses_what_it_cannot_hold_without_quoting_it() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    assert!(fault(&deep, Notation::Json).contains("nested deeper"));
    assert!(read(&deep, Notation::Yaml).is_err());
    assert!(read(&deep, Notation::Toml).is_err());
    let huge = fault("{\"secret\": 1e999}", Notation::Json);
    assert!(!huge.contains("999"), "{huge}");
    assert!(read("a: 1\n---\nb: 2\n", Notation::Yaml).is_err(), "one document only");
    assert!(read("a: !mine 1\n", Notation::Yaml).is_err(), "no custom tags");
    assert!(read("a = 2020-01-01\n", Notation::Toml).is_err());
    assert!(read("a = nan\n", Notation::Toml).is_err());
    assert!(read("a: .inf\n", Notation::Yaml).is_err());
    assert!(read("", Notation::Json).is_err());
    let mut bomb = String::from("a0: &a0 [1,1,1,1,1,1,1,1,1]\n");
    for level in 1..12 {
        let inner = vec![format!("*a{}", level - 1); 9].join(",");
        let _ = writeln!(bomb, "a{level}: &a{level} [{inner}]");
    }
    assert!(read(&bomb, Notation::Yaml).is_err(), "aliases cannot multiply without end");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    for text in ["\u{feff}{\"a\":1}", "\u{feff}a: 1\n"] {
        std::fs::write(&path, text).unwrap();
        let accepted = [Notation::Json, Notation::Yaml];
        assert_eq!(Document::read(&path, &accepted).unwrap().root().node().to_value(), json!({"a": 1}));
    }
    for bytes in [b"\xff\xfe{\0}\0".as_slice(), b"\xfe\xff\0{\0}"] {
        std::fs::write(&path, bytes).unwrap();
        assert!(read_text(&path, 100).unwrap_err().to_string().ends_with("UTF-16; save it as UTF-8"));
    }
    std::fs::write(&path, b"\xff").unwrap();
    assert!(read_text(&path, 100).unwrap_err().to_string().ends_with("the file is not UTF-8"));
}

#[test]
fn tells_the_notation_by_extension_or_content() {
    assert_eq!(Notation::of(Path::new("a.json"), ""), Notation::Json);
    assert_eq!(Notation::of(Path::new("a.yml"), "{"), Notation::Yaml);
    assert_eq!(Notation::of(Path::new("a.toml"), ""), Notation::Toml);
    assert_eq!(Notation::of(Path::new("a"), " \n{"), Notation::Json);
    assert_eq!(Notation::of(Path::new("-"), "a: 1"), Notation::Yaml);
}
