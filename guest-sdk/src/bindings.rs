//! The contract as generated code. Private: authors see the wrappers, so that a later contract can stand behind them.

#![allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    clippy::pedantic,
    reason = "generated; which lints fire depends on the target"
)]

wit_bindgen::generate!({
    path: "../wit/v0.1",
    world: "wire-probe",
    additional_derives: [PartialEq],
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "mcpeval_probe::__private::bindings",
});
