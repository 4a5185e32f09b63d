//! What the battery is made of, how its components are built, and the lock that proves both.

mod build;
mod inputs;
mod lock;

use std::path::{Path, PathBuf};

pub use build::{Std, build, imports};
pub use inputs::inputs;
pub use lock::{Component, Lock};

/// The components: those of the standard in the order in which it names their first areas, then the kinds.
pub const COMPONENTS: [&str; 24] = [
    "protocol",
    "catalog",
    "context",
    "exercise",
    "discovery-cost",
    "token-cost",
    "schema-guessability",
    "instruction-fidelity",
    "degradation-over-n",
    "latency-budget",
    "error-honesty",
    "output-schema",
    "state-recovery",
    "workflow",
    "pagination",
    "surface-listing",
    "protocol-negotiation",
    "completion",
    "payload-bounds",
    "cancellation",
    "contention",
    "sampling",
    "elicitation",
    "resource-subscription",
];

/// Name of the lock beside the components.
pub const LOCK: &str = "battery.lock";

/// Why packing stopped: a sentence.
pub type Result<T> = std::result::Result<T, String>;

/// The workspace.
pub fn root() -> PathBuf {
    // Where cargo runs it from, not where it was built: checkouts that share a target folder share the program too.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&manifest).ancestors().nth(2).unwrap_or(Path::new("/")).to_owned()
}

/// Where the committed components are.
pub fn dist(root: &Path) -> PathBuf {
    root.join("probes/dist")
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    format!("{:x}", Sha256::digest(bytes))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
