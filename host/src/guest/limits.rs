//! The limits of one component run, all of them.

use std::time::Duration;

/// Linear memory of all instances together, in bytes. `QuickJS` needs this much to parse a hostile answer of 8 MiB.
pub const MEMORY: usize = 256 << 20;
/// Linear memories, tables and core instances of one component.
pub const MEMORIES: usize = 32;
/// See [`MEMORIES`].
pub const TABLES: usize = 64;
/// See [`MEMORIES`].
pub const INSTANCES: usize = 128;
/// Elements of one table.
pub const TABLE_ELEMENTS: usize = 1 << 20;
/// Compute of one `run`, in wasm and in the services it borrows.
pub const COMPUTE: Duration = Duration::from_mins(1);
/// Compute of `describe`.
pub const DESCRIBE_COMPUTE: Duration = Duration::from_secs(5);
/// After the budget's time is over every call is refused; this long a component has to unwind.
pub const GRACE: Duration = Duration::from_secs(5);
/// Bytes a component gives in one host call. A payload of 16,000,000 bytes must pass.
pub const HOST_CALL_BYTES: usize = 32 << 20;
/// Open handles: targets, sessions, requests, pipes, HTTP exchanges.
pub const HANDLES: usize = 4_096;
/// Findings of one run.
pub const FINDINGS: usize = 100_000;
/// Measurements of one run.
pub const MEASUREMENTS: usize = 100_000;
/// Exchanges that one finding cites.
pub const EVIDENCE: usize = 64;
/// Bytes of the private log of one run; the rest is dropped and counted.
pub const LOG: usize = 1 << 20;
/// Bytes of one of its lines.
pub const LOG_LINE: usize = 4 << 10;
/// Bytes of a component file.
pub const COMPONENT_FILE: u64 = 64 << 20;
/// Bytes of one random request over WASI.
pub const RANDOM: u64 = 1 << 20;
/// Names of prompts and resources remembered as subjects.
pub const SUBJECTS: usize = 100_000;
/// Bytes of a description, hint, title or schema in a manifest.
pub const MANIFEST_TEXT: usize = 256 << 10;
