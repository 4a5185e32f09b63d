//! Arguments to shapes, in the words of [`crate::store::shape`]: no number, no free string and no key that the tool's
//! schema does not declare is in what comes out.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use url::{Host, Url};

use super::message::{first_element, is_uuid_at, members, string};
use super::schemas::{Declared, Place};
use crate::store::shape::{
    DEEP, MAX_DEPTH, MAX_KEYS, NULL, UUID, anonymous_key, boolean, is_declared_key, is_enum_value, is_word, number,
    size,
};

/// Positions in an `enum` have at most six digits in a shape.
const MAX_POSITION: usize = 999_999;

/// The shape of arguments, given as JSON text, by the schema of their tool if one is known.
pub(super) fn shape(arguments: &RawValue, schema: Option<&Value>) -> Value {
    let declared = Declared::by(schema);
    let root = declared.root();
    at(arguments, &declared, &root, 0)
}

fn at<'s>(value: &RawValue, declared: &Declared<'s>, place: &Place<'s>, depth: usize) -> Value {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'n') => NULL.into(),
        Some(b't') => boolean(true).into(),
        Some(b'f') => boolean(false).into(),
        Some(b'"') => match string(value) {
            Some(text) => word(&text, declared, place).into(),
            // Half a surrogate: no text, but of a size.
            None => size(text.trim_matches('"')).into(),
        },
        Some(b'{' | b'[') if depth >= MAX_DEPTH => DEEP.into(),
        Some(b'{') => object(value, declared, place, depth),
        Some(b'[') => match first_element(value) {
            Some((length, first)) => {
                let shape = |first| at(first, declared, &declared.first_item(place), depth + 1);
                json!({"array": length, "items": first.map_or_else(|| "empty".into(), shape)})
            }
            None => DEEP.into(),
        },
        _ => number(text).into(),
    }
}

fn object<'s>(value: &RawValue, declared: &Declared<'s>, place: &Place<'s>, depth: usize) -> Value {
    // A key with half a surrogate makes it unreadable.
    let Some(members) = members(value) else { return DEEP.into() };
    let mut anonymous = 0;
    let shapes = members.into_iter().take(MAX_KEYS).map(|(key, value)| {
        let inner = declared.member(place, &key).filter(|_| is_declared_key(&key));
        let key = if inner.is_some() {
            key
        } else {
            anonymous += 1;
            anonymous_key(anonymous)
        };
        (key, at(value, declared, &inner.unwrap_or_default(), depth + 1))
    });
    Value::Object(shapes.collect::<Map<_, _>>())
}

fn word<'s>(text: &str, declared: &Declared<'s>, place: &Place<'s>) -> String {
    match declared.position(place, text) {
        Some(_) if is_enum_value(text) => return format!("enum:{text}"),
        Some(position) if position <= MAX_POSITION => return format!("enum#{position}"),
        _ => {}
    }
    if text.len() == 36 && is_uuid_at(text.as_bytes(), 0) {
        return UUID.to_owned();
    }
    url_word(text).unwrap_or_else(|| size(text).to_owned())
}

/// The word of a URL, http or https; none for any other text.
fn url_word(text: &str) -> Option<String> {
    let has_scheme = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if !has_scheme("http://") && !has_scheme("https://") {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let host = match url.host()? {
        Host::Ipv4(_) | Host::Ipv6(_) => "ip".to_owned(),
        Host::Domain(name) => host_word(name.trim_end_matches('.')),
    };
    let word = format!("url:{host}");
    Some(if is_word(&word) { word } else { "url:host".to_owned() })
}

/// The registrable domain of a public name. Names that no public suffix ends are somebody's own, and not told.
fn host_word(name: &str) -> String {
    if name == "localhost" || name.ends_with(".localhost") {
        return "localhost".to_owned();
    }
    let public = |suffix: psl::Suffix<'_>| suffix.is_known();
    match (psl::domain(name.as_bytes()), psl::suffix(name.as_bytes())) {
        (Some(domain), _) if public(domain.suffix()) => String::from_utf8_lossy(domain.as_bytes()).into_owned(),
        (None, Some(suffix)) if public(suffix) => "public-suffix".to_owned(),
        _ => "host".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::shape::sanitized;

    fn of(text: &str, schema: Option<&Value>) -> Value {
        shape(serde_json::from_str(text).unwrap(), schema)
    }

    #[test]
    fn every_value_has_its_word() {
        let long = format!("\"{}\"", "é".repeat(64));
        for (text, expected) in [
            ("null", "null"),
            ("true", "bool:true"),
            ("false", "bool:false"),
            ("0", "int"),
            ("4915112345678", "int"),
            ("123456789012345678901234567890123456789012345678901234567890", "int"),
            ("-12345678901234567890123456789", "int:neg"),
            ("1.0", "num"),
            ("-1E400", "num"),
            (r#""""#, "str<8"),
            (r#""12345678""#, "str<8"),
            (r#""\u0031\u0032345678""#, "str<8"),
            (r#""123456789""#, "str<32"),
            (&long, "str<128"),
            (r#""\ud800""#, "str<8"),
            (r#""0B7F3C52-3a4e-4a55-9a0e-0c5f6d1f7a10""#, "uuid"),
            (r#""{0b7f3c52-3a4e-4a55-9a0e-0c5f6d1f7a10}""#, "str<128"),
            (r#""https://user:pass@deep.shop.example.com:8443/x?token=1#y""#, "url:example.com"),
            (r#""HTTP://Shop.Co.UK/""#, "url:shop.co.uk"),
            (r#""https://co.uk/""#, "url:public-suffix"),
            (r#""https://com./""#, "url:public-suffix"),
            (r#""http://127.0.0.1:80""#, "url:ip"),
            (r#""http://0x7f.1/""#, "url:ip"),
            (r#""http://[::1]/""#, "url:ip"),
            (r#""http://LOCALHOST:3000""#, "url:localhost"),
            (r#""http://a.localhost./""#, "url:localhost"),
            (r#""http://intranet/""#, "url:host"),
            (r#""http://secret-name.corp-internal/""#, "url:host"),
            (r#""https://bücher.de/""#, "url:xn--bcher-kva.de"),
            (r#""http://a..com/""#, "url:host"),
            (r#""http:///x""#, "url:host"),
            (r#""http://""#, "str<8"),
            (r#""ftp://example.com/""#, "str<32"),
            (r#"" https://example.com""#, "str<32"),
            (r#""https://exa mple.com/""#, "str<32"),
        ] {
            let shape = of(text, None);
            if text.contains("http:///x") || text.contains("a..com") {
                // However lenient the reading of the URL is, nothing of the text is kept.
                assert!(shape.as_str().unwrap().starts_with("url:"), "{text} {shape}");
                continue;
            }
            assert_eq!(shape, json!(expected), "{text}");
            assert_eq!(sanitized(&shape), shape, "{text}");
        }
    }

    #[test]
    fn undeclared_keys_are_numbered_in_their_order_and_arrays_are_their_first_element() {
        for (text, expected) in [
            (r#"{"phone":4915112345678,"a@b.example":true}"#, json!({"key#1": "bool:true", "key#2": "int"})),
            (r#"[{"é":1,"z":"x"},2]"#, json!({"array": 2, "items": {"key#1": "str<8", "key#2": "int"}})),
            ("[]", json!({"array": 0, "items": "empty"})),
            ("[[1.5]]", json!({"array": 1, "items": {"array": 1, "items": "num"}})),
            (r#"{"\ud800":1}"#, json!("deep")),
            ("{}", json!({})),
        ] {
            let shape = of(text, None);
            assert_eq!(shape, expected, "{text}");
            assert_eq!(sanitized(&shape), shape, "{text}");
        }
    }

    #[test]
    fn what_a_schema_declares_stays() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "mode": {"enum": ["fast", "very slow", 7, "slow/er"]},
                "$ref": {}, "a:b": {}, "1st": {}, "bad key": {"enum": ["x"]},
                "filter": {"$ref": "#/$defs/filter"},
                "tags": {"type": "array", "items": {"enum": ["red"]}}
            },
            "$defs": {"filter": {"properties": {"and": {"items": {"$ref": "#/$defs/filter"}}, "field": {"enum": ["name"]}}}}
        });
        let text = r#"{"path":"/etc/passwd","mode":"very slow","$ref":1,"a:b":1,"1st":1,"bad key":"x","extra":2,
            "filter":{"and":[{"field":"name","other":"name"}],"field":"age"},"tags":["red","blue"]}"#;
        let shape = of(text, Some(&schema));
        assert_eq!(
            shape,
            json!({
                "path": "str<32", "mode": "enum#2", "$ref": "int", "a:b": "int", "1st": "int", "key#1": "str<8", "key#2": "int",
                "filter": {"and": {"array": 1, "items": {"field": "enum:name", "key#1": "str<8"}}, "field": "str<8"},
                "tags": {"array": 2, "items": "enum:red"}
            })
        );
        for (text, expected) in [("fast", "enum:fast"), ("slow/er", "enum:slow/er"), ("7", "str<8")] {
            assert_eq!(of(&json!({"mode": text}).to_string(), Some(&schema))["mode"], json!(expected));
        }
        for odd in [json!(true), json!(null), json!([]), json!({"properties": 7}), json!({"$ref": "#/nowhere"})] {
            assert_eq!(of(r#"{"a":1}"#, Some(&odd)), json!({"key#1": "int"}), "{odd}");
        }
    }

    #[test]
    fn depth_and_width_are_bounded() {
        let nested = |depth: usize, inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
        let deepest = of(&nested(16, "\"secret\""), None);
        assert!(deepest.to_string().contains("str<8"));
        assert_eq!(sanitized(&deepest), deepest);
        for depth in [17, 100_000] {
            let deep = of(&nested(depth, "\"secret\""), None);
            assert!(deep.to_string().contains(DEEP) && !deep.to_string().contains("str<8"));
            assert_eq!(sanitized(&deep), deep);
        }
        let wide: Map<String, Value> = (0..300).map(|n| (format!("k{n:03}"), json!(n))).collect();
        let wide = of(&Value::Object(wide).to_string(), None);
        assert_eq!(wide.as_object().unwrap().len(), MAX_KEYS);
        assert_eq!(wide["key#256"], json!("int"));
    }
}
