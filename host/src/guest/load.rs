//! From bytes to a component that can be run: what it is, whether this host speaks its contract, what it imports.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use sha2::{Digest as _, Sha256};

use super::cache::Slot;
use super::engine::Engine;
use super::limits;
use super::state::State;
use super::v0_1::WireProbePre;
use crate::probes::{Digest, Power};

/// The contract this host speaks: `mcpeval:probe/probe@MAJOR.MINOR.x`.
const CONTRACT: &str = "mcpeval:probe/";
const SPOKEN: (u64, u64) = (0, 1);
/// Interfaces of the contract that a component may import.
const INTERFACES: [&str; 8] = ["types", "session", "pipe", "http", "report", "log", "schema", "text"];
/// Packages of WASI that are linked from an empty, sealed context.
const WASI: [&str; 6] = ["wasi:cli/", "wasi:io/", "wasi:clocks/", "wasi:filesystem/", "wasi:random/", "wasi:sockets/"];

/// A compiled component. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    pub(super) inner: wasmtime::component::Component,
    pub(super) wants_wasi: bool,
    /// Powers below the protocol that it imports.
    pub powers: BTreeSet<Power>,
    /// Its imports, looked up once for all runs.
    pub(super) linked: Arc<OnceLock<WireProbePre<State>>>,
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Component").field("powers", &self.powers).finish_non_exhaustive()
    }
}

/// SHA-256 of component bytes.
pub fn digest(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// A component of the shipped battery: the form compiled when this program was built, else its bytes.
pub fn shipped(engine: &Engine, bytes: &[u8], compiled: &[u8]) -> Result<Component, String> {
    match deserialize(engine, compiled) {
        Some(inner) => inspect(engine, inner),
        None => foreign(engine, bytes, digest(bytes)),
    }
}

/// A component of a user. Its bytes are compiled once and kept in the cache. May block.
pub fn foreign(engine: &Engine, bytes: &[u8], digest: Digest) -> Result<Component, String> {
    if bytes.len() as u64 > limits::COMPONENT_FILE {
        return Err(format!("it is larger than {} MiB", limits::COMPONENT_FILE >> 20));
    }
    recognise(bytes)?;
    let slot = Slot::new(engine, digest);
    if let Some(inner) = slot.as_ref().and_then(Slot::read).and_then(|compiled| deserialize(engine, &compiled)) {
        return inspect(engine, inner);
    }
    let inner = wasmtime::component::Component::from_binary(&engine.inner, bytes)
        .map_err(|error| format!("it is no valid component: {}", first_line(&error)))?;
    let component = inspect(engine, inner)?;
    if let (Some(slot), Ok(compiled)) = (slot, component.inner.serialize()) {
        slot.write(&compiled);
    }
    Ok(component)
}

/// Say what the bytes are where they are no component, before a validator says it worse.
fn recognise(bytes: &[u8]) -> Result<(), String> {
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        return Err("it is a compiled artifact; only .wasm components are accepted".into());
    }
    match bytes.get(..8) {
        Some([0, b'a', b's', b'm', 0x0d, 0, 1, 0]) => Ok(()),
        Some([0, b'a', b's', b'm', 1, 0, 0, 0]) => {
            Err("it is a core module, not a component; make one with wasm-tools component new or wasm32-wasip2".into())
        }
        _ => Err("it is no WebAssembly component".into()),
    }
}

#[expect(
    unsafe_code,
    reason = "the bytes come from this program's own build or from a folder only this user can write"
)]
fn deserialize(engine: &Engine, compiled: &[u8]) -> Option<wasmtime::component::Component> {
    if compiled.is_empty() {
        return None;
    }
    // SAFETY: compatibility with this engine and processor is checked by wasmtime. Trust is not: the callers pass only
    // what the build of this program embedded, or what `cache` found whole in a folder that nobody else can write to.
    unsafe { wasmtime::component::Component::deserialize(&engine.inner, compiled) }.ok()
}

fn inspect(engine: &Engine, inner: wasmtime::component::Component) -> Result<Component, String> {
    let kind = inner.component_type();
    let exported = kind
        .exports(&engine.inner)
        .find_map(|(name, _)| name.strip_prefix(CONTRACT)?.strip_prefix("probe@").map(version));
    match exported {
        None => return Err("it is no probe: it does not export mcpeval:probe/probe".into()),
        Some(Some(spoken)) if spoken == SPOKEN => {}
        Some(Some((major, minor))) => {
            let (our_major, our_minor) = SPOKEN;
            let way_out = if (major, minor) > SPOKEN {
                "update mcpeval, or rebuild the component with an older SDK"
            } else {
                "rebuild the component with the current SDK"
            };
            return Err(format!(
                "it was built for probe contract {major}.{minor}, and this mcpeval speaks {our_major}.{our_minor}; {way_out}"
            ));
        }
        Some(None) => return Err("it exports mcpeval:probe/probe without a usable version".into()),
    }
    let mut powers = BTreeSet::new();
    let mut wants_wasi = false;
    for (name, _) in kind.imports(&engine.inner) {
        if WASI.iter().any(|package| name.starts_with(package)) {
            wants_wasi = true;
            continue;
        }
        let interface = name.strip_prefix(CONTRACT).and_then(|rest| {
            let (interface, number) = rest.split_once('@')?;
            (version(number) == Some(SPOKEN) && INTERFACES.contains(&interface)).then_some(interface)
        });
        match interface {
            Some("pipe") => drop(powers.insert(Power::Pipe)),
            Some("http") => drop(powers.insert(Power::Http)),
            Some(_) => {}
            None => {
                let name: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
                return Err(format!("it imports {name}, which no probe is given"));
            }
        }
    }
    Ok(Component { inner, wants_wasi, powers, linked: Arc::default() })
}

/// Major and minor of a version.
fn version(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn first_line(error: &wasmtime::Error) -> String {
    let text = format!("{error:#}");
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}
