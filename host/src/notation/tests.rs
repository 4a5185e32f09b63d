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
        assert!(fault.ends_with("/é/wieght: unknown field; the nearest is \"weight\""), "{fault}");
    }
    let document = Document::parse("d", "[1,\n {\"a/~b\": 7}]", Notation::Json).unwrap();
    let second = document.root().items().unwrap().nth(1).unwrap();
    let fault = second.required("a/~b").unwrap().text().unwrap_err().to_string();
    assert_eq!(fault, "d:2:11: /1/a~1~0b: must be a string");
}

#[test]
fn refuses_repeated_keys_everywhere() {
    assert_eq!(fault("{\"a\": 1,\n \"a\": 2}", Notation::Json).split(": ").nth(1), Some("repeated key"));
    assert!(fault("[{\"x\":{\"a\":1,\"\\u0061\":2}}]", Notation::Json).contains("repeated key"));
    assert!(fault("a: 1\na: 2\n", Notation::Yaml).starts_with("d:2:"));
    assert!(fault("a = 1\na = 2\n", Notation::Toml).starts_with("d:2:"));
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
