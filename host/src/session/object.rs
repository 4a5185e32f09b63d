//! A server's JSON object, one level of it. What one member holds, half a surrogate pair or a thousand arrays, hides no
//! other member; and nothing but an object is read as one.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object in the order of the text, repeated ones included.
#[derive(Debug, Default)]
pub struct Object<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Object<'a> {
    /// `None` if the text is no JSON object.
    pub fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The value of that name, of a repeated one the last, as JSON parsers and the kit of probes' authors have it.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.all(name).last()
    }

    /// Every value of that name.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a str> + 's {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| *value)
    }

    /// Whether that name stands more than once.
    pub fn repeats(&self, name: &str) -> bool {
        self.all(name).nth(1).is_some()
    }
}

/// The value that these names lead to, one object in another.
pub fn at<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(text, |value, name| Object::read(value)?.get(name))
}

/// Whether the value is an object.
pub fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// The items of an array; `None` if it is none.
pub fn items(text: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// A string; none if it is no string, or holds half a surrogate pair.
pub fn string(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                // Keys as they stand in the text: one with half a surrogate pair is no name that anybody looks for.
                while let Some(key) = map.next_key::<&'de RawValue>()? {
                    let value = map.next_value::<&'de RawValue>()?;
                    if let Ok(Name(key)) = serde_json::from_str(key.get()) {
                        members.push((key, value.get()));
                    }
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A key, borrowed where nothing in it is escaped.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_hides_no_other() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        let text = format!(r#" {{"a":"\ud800","\udc00":1,"b":{deep},"c":{{"d":[1, 2]}},"\u0063d":"x"}} "#);
        let object = Object::read(&text).unwrap();
        assert_eq!(object.get("cd"), Some(r#""x""#));
        assert_eq!((object.get("b"), string(object.get("a").unwrap())), (Some(deep.as_str()), None));
        assert_eq!(at(&text, &["c", "d"]).and_then(items), Some(vec!["1", "2"]));
        assert_eq!(at(&text, &["a", "d"]), None);
    }

    #[test]
    fn the_last_of_repeated_members_is_its_value() {
        let object = Object::read(r#"{"a":1,"b":2,"\u0061":3}"#).unwrap();
        assert_eq!((object.get("a"), object.repeats("a"), object.repeats("b")), (Some("3"), true, false));
        assert_eq!(object.all("a").collect::<Vec<_>>(), ["1", "3"]);
    }

    #[test]
    fn nothing_but_an_object_is_one() {
        for text in ["[]", r#"[{"a":1}]"#, "null", "7", "\"a\"", "{", "{}{}", ""] {
            assert!(Object::read(text).is_none(), "{text}");
        }
        for text in ["{}", r#"{"0":1}"#, "null", "7"] {
            assert!(items(text).is_none(), "{text}");
        }
    }
}
