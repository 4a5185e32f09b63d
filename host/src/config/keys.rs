//! The keys of each table: the reader refuses others, the schema describes these.

/// Tables.
pub(super) const ROOT: &[&str] = &["defaults", "targets", "components", "fixtures"];
/// Of `[defaults]`.
pub(super) const DEFAULTS: &[&str] =
    &["format", "lanes", "startup_timeout", "brief", "full", "price_per_mtok", "color", "standard", "corpus", "home"];
/// Of `[targets.NAME]`.
pub(super) const TARGET: &[&str] = &[
    "command",
    "url",
    "cwd",
    "env",
    "server",
    "manifest",
    "arguments",
    "skip_tools",
    "confirm_read_only",
    "startup_timeout",
    "headers_env",
];
/// Of `[components.KIND]`.
pub(super) const COMPONENT: &[&str] = &["path", "sha256", "grants"];
/// Of `[fixtures]`.
pub(super) const FIXTURES: &[&str] = &["dir", "db", "timeout", "concurrency", "library_dirs"];
