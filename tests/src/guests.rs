//! Components for areas of a standard and kinds of cases, most of them hostile. Each is a few lines of core WebAssembly text in
//! `tests/guests`; what they share is put around them here: imports by name, memory, the manifest, exports, and the
//! component around the module.
//!
//! In those texts `'words'` stands for pointer and length of that string, `$run` gets the target, and returns
//! `(call $finish)` when it is done. The names in [`IMPORTS`] may be called without importing them.

use std::fmt::Write as _;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The contract that components are built against.
const CONTRACT: &str = include_str!("../../wit/v0.1/probe.wit");

/// Its version.
const VERSION: &str = "0.1.0";

/// The area that the components serve.
pub const AREA: &str = "hostile";

/// The check of that area.
pub const CHECK: &str = "hostile.holds";

/// The reason declared for it.
pub const REASON: &str = "acme.broken";

/// Where the data of the manifest and of strings begins; below lies scratch space.
const DATA: u32 = 4_096;

/// The core functions of the contract: name in the text, interface, name there, parameters.
const IMPORTS: &[(&str, &str, &str, &str)] = &[
    ("$submit", "mcpeval:probe/report@0.1.0", "submit", "i32"),
    ("$measure", "mcpeval:probe/report@0.1.0", "measure", "i32 i32 i32 i32 i32 i32 i64 i32"),
    ("$score", "mcpeval:probe/report@0.1.0", "score", "i32 i32 f64 i32 f64"),
    ("$progress", "mcpeval:probe/report@0.1.0", "progress", "i32 i32"),
    ("$log", "mcpeval:probe/log@0.1.0", "line", "i32 i32 i32"),
    ("$matches", "mcpeval:probe/text@0.1.0", "matches", "i32 i32 i32 i32 i32 i32"),
    ("$facts", "mcpeval:probe/session@0.1.0", "[method]target.facts", "i32 i32"),
    ("$primary", "mcpeval:probe/session@0.1.0", "[method]target.primary", "i32 i32"),
    ("$request", "mcpeval:probe/session@0.1.0", "[method]session.request", "i32 i32 i32 i32 i32 i32 i32 i32 i32"),
    ("$notify", "mcpeval:probe/session@0.1.0", "[method]session.notify", "i32 i32 i32 i32 i32 i32 i32"),
    ("$drop-target", "mcpeval:probe/session@0.1.0", "[resource-drop]target", "i32"),
    ("$drop-session", "mcpeval:probe/session@0.1.0", "[resource-drop]session", "i32"),
    ("$open-pipe", "mcpeval:probe/pipe@0.1.0", "open", "i32 i32"),
    ("$send-pipe", "mcpeval:probe/pipe@0.1.0", "[method]pipe.send", "i32 i32 i32 i32"),
    ("$open-door", "acme:evil/door", "open", ""),
    ("$create-tcp", "wasi:sockets/tcp-create-socket@0.2.0", "create-tcp-socket", "i32 i32"),
    (
        "$connect-tcp",
        "wasi:sockets/tcp@0.2.0",
        "[method]tcp-socket.start-connect",
        "i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32",
    ),
    ("$environment", "wasi:cli/environment@0.2.0", "get-environment", "i32"),
    ("$directories", "wasi:filesystem/preopens@0.2.0", "get-directories", "i32"),
];

/// Functions that return what the contract does not have: the network handle.
const NETWORK: &str =
    r#"(import "wasi:sockets/instance-network@0.2.0" "instance-network" (func $network (result i32)))"#;

/// The few functions of WASI that hostile components ask for. Only what is named is imported.
const WASI: &[(&str, &str)] = &[
    (
        "sockets.wit",
        "package wasi:sockets@0.2.0;
        interface network {
            resource network;
            enum error-code { unknown, access-denied, not-supported, invalid-argument, out-of-memory, timeout,
                concurrency-conflict, not-in-progress, would-block, invalid-state, new-socket-limit,
                address-not-bindable, address-in-use, remote-unreachable, connection-refused, connection-reset,
                connection-aborted, datagram-too-large, name-unresolvable, temporary-resolver-failure,
                permanent-resolver-failure }
            enum ip-address-family { ipv4, ipv6 }
            type ipv4-address = tuple<u8, u8, u8, u8>;
            type ipv6-address = tuple<u16, u16, u16, u16, u16, u16, u16, u16>;
            record ipv4-socket-address { port: u16, address: ipv4-address }
            record ipv6-socket-address { port: u16, flow-info: u32, address: ipv6-address, scope-id: u32 }
            variant ip-socket-address { ipv4(ipv4-socket-address), ipv6(ipv6-socket-address) }
        }
        interface instance-network { use network.{network}; instance-network: func() -> network; }
        interface tcp {
            use network.{network, error-code, ip-socket-address};
            resource tcp-socket {
                start-connect: func(network: borrow<network>, remote-address: ip-socket-address)
                    -> result<_, error-code>;
            }
        }
        interface tcp-create-socket {
            use network.{error-code, ip-address-family};
            use tcp.{tcp-socket};
            create-tcp-socket: func(address-family: ip-address-family) -> result<tcp-socket, error-code>;
        }",
    ),
    (
        "cli.wit",
        "package wasi:cli@0.2.0;
        interface environment { get-environment: func() -> list<tuple<string, string>>; }",
    ),
    (
        "filesystem.wit",
        "package wasi:filesystem@0.2.0;
        interface types { resource descriptor; }
        interface preopens {
            use types.{descriptor};
            get-directories: func() -> list<tuple<descriptor, string>>;
        }",
    ),
];

/// The world of all components here; what a module does not import is left out of its component.
const WORLD: &str = "package acme:evil;
    interface door { open: func(); }
    world evil {
        include mcpeval:probe/wire-probe@0.1.0;
        import door;
        import wasi:sockets/instance-network@0.2.0;
        import wasi:sockets/tcp@0.2.0;
        import wasi:sockets/tcp-create-socket@0.2.0;
        import wasi:cli/environment@0.2.0;
        import wasi:filesystem/preopens@0.2.0;
    }";

/// What stands around every guest: scratch space below the data, a `realloc` that only grows, and the exports.
const PRELUDE: &str = r#"
  (memory (export "memory") 4)
  (func (export "cabi_realloc") (param $old i32) (param $size i32) (param $align i32) (param $new i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get $new)))
    (block $fits
      (br_if $fits (i32.le_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536))))
      (br_if $fits (i32.ne (i32.const -1)
        (memory.grow (i32.add (i32.const 1) (i32.div_u (local.get $new) (i32.const 65536))))))
      unreachable)
    (local.get $at))
  (func (export "mcpeval:probe/probe@0.1.0#run")
    (param $target i32) (param i32 i32 i32 i32 i32 i32 i32) (result i32)
    (call $run (local.get $target)))
  (func (export "mcpeval:probe/probe@0.1.0#describe") (result i32) (call $describe))
  ;; A finished run: Ok, one attempt, no failure.
  (func $finish (result i32)
    (i32.store8 (i32.const 64) (i32.const 0))
    (i32.store (i32.const 68) (i32.const 1))
    (i32.store8 (i32.const 72) (i32.const 0))
    (i32.const 64))
"#;

/// The manifest as it is.
const DESCRIBE: &str = "(func $describe (result i32) (global.get $manifest))";

/// Submits a failed check: names, tool (length 0: none) and cited exchange (-1: none).
const FAIL: &str = r"
  (func $fail (param $check i32) (param $check-len i32) (param $tool i32) (param $tool-len i32)
    (param $reason i32) (param $reason-len i32) (param $exchange i32)
    (memory.fill (i32.const 128) (i32.const 0) (i32.const 96))
    (i32.store (i32.const 128) (local.get $check))
    (i32.store (i32.const 132) (local.get $check-len))
    (i32.store8 (i32.const 136) (i32.ne (local.get $tool-len) (i32.const 0)))
    (i32.store (i32.const 140) (local.get $tool))
    (i32.store (i32.const 144) (local.get $tool-len))
    (i32.store8 (i32.const 156) (i32.const 1))
    (i32.store8 (i32.const 160) (i32.const 1))
    (i32.store (i32.const 164) (local.get $reason))
    (i32.store (i32.const 168) (local.get $reason-len))
    (i32.store (i32.const 208) (local.get $exchange))
    (i32.store (i32.const 200) (i32.const 208))
    (i32.store (i32.const 204) (i32.ne (local.get $exchange) (i32.const -1)))
    (call $submit (i32.const 128)))
";

/// What a component says of itself.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Kind.
    pub kind: String,
    /// JSON Schema of the case fields.
    pub config_schema: String,
    /// Check ids, all of the area.
    pub checks: Vec<String>,
    /// Reasons: label and hint.
    pub reasons: Vec<(String, String)>,
    /// What must be true of the server.
    pub needs: Vec<String>,
    /// Whether it serves the area; without it is a kind for cases.
    pub serves_area: bool,
    /// Whether its cases may be mutating.
    pub may_mutate: bool,
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            kind: "acme.hostile".to_owned(),
            config_schema: r#"{"type":"object"}"#.to_owned(),
            checks: vec![CHECK.to_owned()],
            reasons: vec![(REASON.to_owned(), "Something is broken; mend it.".to_owned())],
            needs: Vec::new(),
            serves_area: true,
            may_mutate: false,
        }
    }
}

/// A component in short form.
#[derive(Debug, Clone, Copy)]
pub struct Guest {
    /// Its name.
    pub name: &'static str,
    /// Core WebAssembly text.
    pub source: &'static str,
    /// Changes to the manifest.
    pub manifest: fn(&mut Manifest),
}

/// Builds the component.
///
/// # Panics
/// When the text is wrong.
pub fn build(guest: &Guest) -> Vec<u8> {
    build_for_version(guest, VERSION)
}

/// Builds the component for another version of the contract.
///
/// # Panics
/// When the text is wrong.
pub fn build_for_version(guest: &Guest, version: &str) -> Vec<u8> {
    let at = |text: &str| text.replace(&format!("@{VERSION}"), &format!("@{version}"));
    let mut module = assemble(&at(&source(guest)), guest.name);
    let mut resolve = Resolve::default();
    let mut push =
        |name: &str, text: &str| resolve.push_str(name, text).unwrap_or_else(|error| panic!("{name}: {error:#}"));
    push("probe.wit", &at(CONTRACT));
    for (name, text) in WASI {
        push(name, text);
    }
    let package = push("evil.wit", &at(WORLD));
    let world = resolve.select_world(&[package], Some("evil")).expect("the world that was just parsed");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .unwrap_or_else(|error| panic!("{}: {error:#}", guest.name));
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(ComponentEncoder::encode)
        .unwrap_or_else(|error| panic!("{}: {error:#}", guest.name))
}

/// The core module of a guest.
///
/// # Panics
/// When the text is wrong.
pub fn core_module(guest: &Guest) -> Vec<u8> {
    assemble(&source(guest), guest.name)
}

fn assemble(text: &str, name: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The whole text of a guest's core module.
fn source(guest: &Guest) -> String {
    let mut manifest = Manifest::default();
    (guest.manifest)(&mut manifest);
    let mut data = Data::default();
    let at = data.manifest(&manifest);
    let mut body = String::from(PRELUDE);
    // A whole name, so that `$score` does not also ask for `$score-all`.
    let uses = |name: &str| {
        let follows = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '-');
        guest.source.match_indices(name).any(|(start, _)| follows(&guest.source[start + name.len()..]))
    };
    if uses("$fail") {
        body.push_str(FAIL);
    }
    if !guest.source.contains("(func $describe") {
        body.push_str(DESCRIBE);
    }
    body.push_str(&data.intern(guest.source));
    let mut text = String::from("(module\n");
    for (name, interface, function, params) in IMPORTS {
        if uses(name) || (*name == "$submit" && uses("$fail")) {
            let param = if params.is_empty() { String::new() } else { format!("(param {params})") };
            let _ = writeln!(text, r#"(import "{interface}" "{function}" (func {name} {param}))"#);
        }
    }
    if uses("$network") {
        text.push_str(NETWORK);
    }
    let heap = DATA + data.len();
    let _ = writeln!(text, "(global $manifest i32 (i32.const {at}))(global $heap (mut i32) (i32.const {heap}))");
    text.push_str(&body);
    let _ = writeln!(text, "(data (i32.const {DATA}) \"{}\"))", data.escaped());
    text
}

/// The data segment: strings and records in the layout of the canonical ABI.
#[derive(Debug, Default)]
struct Data(Vec<u8>);

impl Data {
    fn len(&self) -> u32 {
        u32::try_from(self.0.len()).expect("the data of a fixture is small")
    }

    fn put(&mut self, bytes: &[u8]) -> u32 {
        let at = DATA + self.len();
        self.0.extend_from_slice(bytes);
        at
    }

    /// Pointer and length of a string.
    fn string(&mut self, text: &str) -> [u32; 2] {
        let at = self.put(text.as_bytes());
        [at, u32::try_from(text.len()).expect("the data of a fixture is small")]
    }

    fn words(&mut self, words: &[u32]) -> u32 {
        while !self.len().is_multiple_of(4) {
            self.0.push(0);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(&bytes)
    }

    /// Pointer and length of a list whose elements are made of words.
    fn list(&mut self, elements: &[Vec<u32>]) -> [u32; 2] {
        let words: Vec<u32> = elements.iter().flatten().copied().collect();
        [self.words(&words), u32::try_from(elements.len()).expect("the data of a fixture is small")]
    }

    fn strings(&mut self, texts: &[String]) -> [u32; 2] {
        let elements: Vec<Vec<u32>> = texts.iter().map(|text| self.string(text).to_vec()).collect();
        self.list(&elements)
    }

    fn manifest(&mut self, manifest: &Manifest) -> u32 {
        let name = self.string(AREA);
        let area = if manifest.serves_area { [1, name[0], name[1]] } else { [0, 0, 0] };
        let title = self.string("A component of the tests.");
        let version = self.string("1.0.0");
        let kind = self.string(&manifest.kind);
        let schema = self.string(&manifest.config_schema);
        let checks: Vec<Vec<u32>> = manifest
            .checks
            .iter()
            .map(|id| {
                let [at, len] = self.string(id);
                // Id, level `must`, title, no reference, the area if any.
                vec![at, len, 0, title[0], title[1], 0, 0, 0, area[0], area[1], area[2]]
            })
            .collect();
        let checks_list = self.list(&checks);
        let reasons: Vec<Vec<u32>> = manifest
            .reasons
            .iter()
            .map(|(label, hint)| {
                let checks = self.strings(&manifest.checks);
                [self.string(label), self.string(hint), checks].concat()
            })
            .collect();
        let reasons_list = self.list(&reasons);
        let needs = self.strings(&manifest.needs);
        let metric = [self.string("words"), self.string("words")].concat();
        let word = self.strings(&["known".to_owned()]);
        let metrics = self.list(&[[metric, area.to_vec(), word.to_vec()].concat()]);
        let record = [kind, version, title, title, schema, checks_list, reasons_list, metrics, needs].concat();
        // Access, then what it asks for.
        self.words(&[record, vec![manifest.may_mutate.into(), 10, 1, 1_000]].concat())
    }

    /// Replaces `'words'` by pointer and length.
    fn intern(&mut self, source: &str) -> String {
        let mut text = String::new();
        for line in source.lines().filter(|line| !line.trim_start().starts_with(";;")) {
            for (position, part) in line.split('\'').enumerate() {
                if position.is_multiple_of(2) {
                    text.push_str(part);
                } else {
                    let [at, len] = self.string(part);
                    let _ = write!(text, "(i32.const {at}) (i32.const {len})");
                }
            }
            text.push('\n');
        }
        text
    }

    fn escaped(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "\\{byte:02x}");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_a_component_that_imports_what_it_uses_and_no_more() {
        let source = include_str!("../guests/honest.wat");
        let bytes = build(&Guest { name: "honest", source, manifest: |_| {} });
        assert_eq!(bytes.get(..8), Some(b"\0asm\x0d\0\x01\0".as_slice()));
        let holds = |name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
        assert!(holds("mcpeval:probe/report@0.1.0"));
        assert!(holds("mcpeval:probe/probe@0.1.0"));
        assert!(!holds("mcpeval:probe/pipe"));
        assert!(!holds("wasi:"));
    }

    #[test]
    fn another_version_leaves_no_trace_of_this_one() {
        let source = include_str!("../guests/honest.wat");
        let bytes = build_for_version(&Guest { name: "honest", source, manifest: |_| {} }, "0.9.0");
        let holds = |name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
        assert!(holds("mcpeval:probe/report@0.9.0"));
        assert!(!holds("mcpeval:probe/report@0.1.0"));
    }
}
