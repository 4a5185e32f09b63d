//! The guardian needs three processes: this test, one that plays mcpeval, and the guardian of that one. All are this
//! program; a variable tells each its part.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};

use super::*;
use crate::wire::launch::Launch;
use crate::wire::stdio::StdioWire;

const PART: &str = "WIRE_TEST_PART";
const PATIENCE: Duration = Duration::from_secs(20);

fn again(test: &str, part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(PART, part);
    command
}

/// Holds a scratch folder and a server with a stubborn child and a daemon; tells what must vanish.
async fn hold(test: &str) -> (Guardian, Scratch, StdioWire) {
    let mut command = again(test, "guardian");
    command.arg(GUARDIAN_ARGUMENT);
    let guardian = Guardian::spawn(command).unwrap();
    let scratch = Scratch::create(&guardian).unwrap();
    let script = "trap '' TERM HUP INT; sleep 600 & echo $!; \
        (setsid sh -c 'echo $$; exec sleep 600 </dev/null >/dev/null 2>&1' &); echo $$; sleep 600; sleep 600";
    let args = vec!["-c".into(), script.into()];
    let launch = Launch { program: "/bin/sh".into(), args, env: Vec::new(), cwd: None, withheld: Vec::new() };
    let (wire, mut reader) = StdioWire::launch(&launch, &guardian).unwrap();
    let mut told = format!("\nleft={}\n", scratch.path().display());
    for _ in 0..3 {
        let line = reader.line().await.unwrap();
        told.extend(["left=/proc/", str::from_utf8(&line.bytes).unwrap(), "\n"]);
    }
    std::io::Write::write_all(&mut std::io::stdout(), told.as_bytes()).unwrap();
    (guardian, scratch, wire)
}

/// Runs that part and gives how it ended and what it had told.
fn play(test: &str, part: &str) -> (std::process::ExitStatus, Vec<PathBuf>) {
    let mut child = again(test, part).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let left = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("left=").map(PathBuf::from)).collect();
    (child.wait().unwrap(), left)
}

/// A process that waits for its collection is as good as gone.
fn is_left(path: &Path) -> bool {
    match fs::read_to_string(path.join("stat")) {
        Ok(stat) => !stat.contains(") Z "),
        Err(_) => path.exists(),
    }
}

/// Whether its handlers are in place.
fn catches_terminate(process: rustix::process::Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 << (Signal::TERM.as_raw() - 1) != 0
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_outlives_an_mcpeval_that_is_killed() {
    const TEST: &str = "wire::sandbox::guarded::nothing_outlives_an_mcpeval_that_is_killed";
    match std::env::var(PART).as_deref() {
        Ok("guardian") => assert_eq!(guardian_main(), ExitCode::SUCCESS),
        Ok("killed") => {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let held = runtime.block_on(hold(TEST));
            kill_process(getpid(), Signal::KILL).unwrap();
            drop(held);
        }
        _ => {
            let (status, left) = play(TEST, "killed");
            assert_eq!((status.signal(), left.len()), (Some(9), 4));
            let began = Instant::now();
            for path in left {
                while is_left(&path) {
                    assert!(began.elapsed() < PATIENCE, "{} is still there", path.display());
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_guardian_hears_no_polite_signal_and_ends_when_told() {
    const TEST: &str = "wire::sandbox::guarded::the_guardian_hears_no_polite_signal_and_ends_when_told";
    match std::env::var(PART).as_deref() {
        Ok("guardian") => assert_eq!(guardian_main(), ExitCode::SUCCESS),
        Ok("shutdown") => {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let (guardian, scratch, wire) = runtime.block_on(hold(TEST));
            let number = guardian.process().unwrap();
            while !catches_terminate(number) {
                std::thread::sleep(Duration::from_millis(2));
            }
            for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
                kill_process(number, signal).unwrap();
            }
            let path = scratch.path().to_owned();
            // Still registered, so the guardian removes it, which shows that it lived.
            guardian.shutdown();
            assert!(!path.exists());
            assert!(kill_process(number, Signal::TERM).is_err(), "it was collected");
            drop((scratch, wire));
        }
        _ => {
            let (status, left) = play(TEST, "shutdown");
            assert!(status.success());
            assert_eq!(left.iter().filter(|path| is_left(path)).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
        }
    }
}
