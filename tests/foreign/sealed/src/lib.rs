//! `acme.sealed`: uses everything that WASI offers, and says as findings what it could see. In words it says so on
//! standard output and standard error.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::SystemTime;

use mcpeval_probe::{Case, Check, Fault, Finding, Level, Manifest, Outcome, Probe, Target, json, report};

const AREA: &str = "sealed";
const SEEN: &str = "acme.seen";

/// Where to look: the check, and what was seen there, in words.
type Look = (&'static str, fn() -> Result<String, String>);

/// What is there is `Ok`; what is denied or empty is `Err`.
const LOOKS: [Look; 10] = [
    ("sealed.environment", || some(env::vars_os().count())),
    ("sealed.arguments", || some(env::args_os().count())),
    // Natively it would wait for whoever runs the tests.
    ("sealed.input", || {
        if cfg!(not(target_family = "wasm")) {
            return Ok("not tried".to_owned());
        }
        some(io::stdin().read_to_end(&mut Vec::new()).unwrap_or_default())
    }),
    ("sealed.folders", || first([fs::read_dir("/").map(drop), fs::read_dir(".").map(drop)])),
    ("sealed.files", || first([File::open("/etc/hosts").map(drop), File::create("/dev/null").map(drop)])),
    ("sealed.connecting", || denied(TcpStream::connect("127.0.0.1:9").map(drop))),
    ("sealed.listening", || denied(TcpListener::bind("127.0.0.1:0").map(drop))),
    ("sealed.datagrams", || denied(UdpSocket::bind("127.0.0.1:0").map(drop))),
    ("sealed.names", || match ("localhost", 9).to_socket_addrs() {
        Ok(found) => Ok(format!("{found:?}")),
        Err(error) => Err(error.to_string()),
    }),
    ("sealed.calendar", || match SystemTime::now() {
        SystemTime::UNIX_EPOCH => Err("it stands still".to_owned()),
        now => Ok(format!("{now:?}")),
    }),
];

fn some(count: usize) -> Result<String, String> {
    if count == 0 { Err("nothing".to_owned()) } else { Ok(count.to_string()) }
}

/// Whether any of these succeeded.
fn first(tries: [io::Result<()>; 2]) -> Result<String, String> {
    let errors: Vec<String> = tries.into_iter().filter_map(|attempt| Some(attempt.err()?.to_string())).collect();
    if errors.len() == 2 { Err(errors.join(", ")) } else { Ok("opened".to_owned()) }
}

/// Only a permission that is missing is a denial: whoever learns that a connection was refused was on the network.
fn denied(attempt: io::Result<()>) -> Result<String, String> {
    match attempt {
        Ok(()) => Ok("opened".to_owned()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error.to_string()),
        Err(error) => Ok(error.to_string()),
    }
}

/// The probe.
pub struct Sealed;

impl Probe for Sealed {
    fn manifest() -> Manifest {
        let checks = LOOKS.map(|(check, _)| check);
        let manifest = Manifest::new("acme.sealed", env!("CARGO_PKG_VERSION"), "The machine cannot be seen")
            .config(json!({"type": "object"}))
            .reason(SEEN, "A component saw what it must not see.", &checks);
        checks.into_iter().fold(manifest, |manifest, check| {
            manifest.check(Check::new(check, Level::Must, "It cannot be seen").area(AREA))
        })
    }

    fn run(_target: &Target, _case: &Case) -> Result<Outcome, Fault> {
        let mut hidden = 0_u32;
        for (check, look) in LOOKS {
            let sight = look();
            println!("{check}: {sight:?}");
            hidden += u32::from(sight.is_err());
            let finding = if sight.is_err() { Finding::pass(check) } else { Finding::fail(check, SEEN) };
            finding.submit();
        }
        // Whether these differ can be told by comparing runs.
        eprintln!("random bytes: {:?}", getrandom::u32());
        print!("a line without an end");
        let _ = io::stdout().flush();
        report::score(AREA, 100.0 * f64::from(hidden) / LOOKS.len() as f64);
        Ok(Outcome { attempts: 1, first_failure: None })
    }
}

mcpeval_probe::export!(Sealed);
