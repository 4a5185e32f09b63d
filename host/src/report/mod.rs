//! Documents and renderings. What may be shared is decided where the document is built ([`assemble`]), not where it
//! is printed.

pub mod assemble;
pub mod canonical;
pub mod catalogue;
pub mod check;
pub mod compare;
pub mod contract;
pub mod corpus;
pub mod describe;
pub mod diff;
pub mod document;
pub mod explain;
pub mod html;
pub mod junit;
pub mod markdown;
pub mod output;
pub mod read;
pub mod render;
pub mod sarif;
pub mod schema;
#[cfg(test)]
pub(crate) mod tests_support;
pub mod text;
pub mod trend;
pub mod view;
pub mod words;
