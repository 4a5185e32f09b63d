//! A well-formed MCP conversation over a wire: ids and correlation, pending requests, inbox, the answers the host
//! gives by itself, the catalog and the policy.

pub mod catalog;
