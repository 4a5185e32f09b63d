//! The arguments that an operator gives for tools, which replace those built from schemas.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Result;
use crate::notation::{Document, Kind, Notation};
use crate::probes::Digest;
use crate::report::canonical;

/// Arguments per tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// JSON text of each tool's arguments.
    pub by_tool: BTreeMap<String, String>,
    /// SHA-256 of the canonical JSON of the whole: all that a report says of them.
    pub digest: Option<Digest>,
}

impl Arguments {
    /// Reads a JSON or YAML object, tool to object, of at most [`crate::notation::DOCUMENT_LIMIT`] bytes.
    ///
    /// # Errors
    /// A usage error with the place, never with a value.
    pub fn read(path: &Path) -> Result<Self> {
        Self::parse(&Document::read(path, &[Notation::Json, Notation::Yaml])?)
    }

    fn parse(document: &Document) -> Result<Self> {
        let root = document.root();
        let mut by_tool = BTreeMap::new();
        for (tool, arguments) in root.entries()? {
            if !matches!(arguments.node().kind, Kind::Map(_)) {
                return Err(arguments.fault("must be an object, the tool's arguments"));
            }
            by_tool.insert(tool.to_owned(), canonical::canonical(&arguments.node().to_value()));
        }
        let whole = canonical::canonical(&root.node().to_value());
        Ok(Self { by_tool, digest: Some(canonical::digest(whole.as_bytes())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, notation: Notation) -> Result<Arguments> {
        Arguments::parse(&Document::parse("a", text, notation)?)
    }

    #[test]
    fn notation_and_order_do_not_change_the_digest() {
        let json = parse(r#"{"search": {"q": "tea", "n": 2}, "list": {}}"#, Notation::Json).unwrap();
        let yaml = parse("list: {}\nsearch:\n  n: 2\n  q: tea\n", Notation::Yaml).unwrap();
        assert_eq!(json, yaml);
        assert_eq!(json.by_tool["search"], r#"{"n":2,"q":"tea"}"#);
        assert_eq!(json.digest, Some(canonical::digest(br#"{"list":{},"search":{"n":2,"q":"tea"}}"#)));
    }

    #[test]
    fn refuses_what_is_no_object_without_quoting_it() {
        for (text, words) in [
            (r#"{"search": "s3cret"}"#, "a:1:12: /search: must be an object"),
            (r#"["s3cret"]"#, "a:1:1: the document: must be an object"),
            (r#"{"search": {"q": 1, "q": "s3cret"}}"#, "a:1:21: /search/q: this key stands twice"),
        ] {
            let fault = parse(text, Notation::Json).unwrap_err().to_string();
            assert!(fault.contains(words) && !fault.contains("s3cret"), "{fault}");
        }
    }
}
