//! A standard as data: areas and weights, and how area scores become a readiness score. Pure.

/// Areas with weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standard {
    /// Such as `mcpeval-standard/3`.
    pub label: String,
    /// In report order.
    pub areas: Vec<Area>,
}

/// One area of a standard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// Its name.
    pub name: String,
    /// Its share of the score; all add up to 100.
    pub weight: u32,
    /// Where its component comes from.
    pub source: Source,
}

/// Where an area's component comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An area of the shipped battery, by its name.
    Shipped(String),
    /// A file, its path already resolved, with its pinned SHA-256 in hexadecimal.
    File {
        /// Path of the component.
        path: std::path::PathBuf,
        /// The pin.
        sha256: String,
    },
}
