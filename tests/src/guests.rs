//! Hostile components.
