//! Real children, most of them badly behaved.

use std::time::Instant;

use rustix::process::{Pid, test_kill_process};

use super::*;

/// No test waits longer than this for anything.
const PATIENCE: Duration = Duration::from_secs(30);

fn sh(script: &str) -> Launch {
    Launch {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: Vec::new(),
        cwd: None,
        withheld: Vec::new(),
    }
}

fn start(script: &str) -> (StdioWire, StdioReader) {
    StdioWire::launch(&sh(script), &Guardian::none()).unwrap()
}

async fn line(reader: &mut StdioReader) -> Option<Received> {
    tokio::time::timeout(PATIENCE, reader.line()).await.unwrap()
}

async fn text(reader: &mut StdioReader) -> String {
    let line = line(reader).await.unwrap();
    assert_eq!(line.kind, LineKind::Whole);
    String::from_utf8(line.bytes.to_vec()).unwrap()
}

async fn pid(reader: &mut StdioReader) -> Pid {
    Pid::from_raw(text(reader).await.trim().parse().unwrap()).unwrap()
}

/// Zombies count.
fn exists(pid: Pid) -> bool {
    test_kill_process(pid).is_ok()
}

async fn vanishes(pid: Pid) {
    let began = Instant::now();
    while exists(pid) {
        assert!(began.elapsed() < PATIENCE, "{pid:?} is still there");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn stuck<T>(future: impl Future<Output = T>) -> bool {
    tokio::time::timeout(Duration::from_millis(300), future).await.is_err()
}

#[tokio::test]
async fn lines_come_as_they_were_written() {
    let (wire, mut reader) = start(r"printf 'a\r\n\000\377\n\n\357\273\277{}\nhalf'");
    for expected in [&b"a\r"[..], b"\0\xFF", b"", b"\xEF\xBB\xBF{}"] {
        let line = line(&mut reader).await.unwrap();
        assert_eq!((&line.bytes[..], line.kind), (expected, LineKind::Whole));
    }
    let last = line(&mut reader).await.unwrap();
    assert_eq!((&last.bytes[..], last.kind), (&b"half"[..], LineKind::Unterminated));
    assert_eq!(line(&mut reader).await, None);
    assert_eq!(wire.end().await, Ending::Exited(0));
}

#[tokio::test]
async fn a_line_in_two_writes_survives_an_impatient_reader() {
    let (wire, mut reader) = start(r"printf 'ab'; echo >&2; read go; printf 'cd\nef'; read go; printf 'gh\n'");
    while wire.stderr().total == 0 {
        assert!(stuck(reader.line()).await, "there is no whole line yet");
    }
    let sent = Instant::now();
    wire.send(Bytes::from_static(b"go\n")).await.unwrap();
    let first = line(&mut reader).await.unwrap();
    assert_eq!(&first.bytes[..], b"abcd");
    assert!(first.at >= sent && first.at <= Instant::now());
    assert!(stuck(reader.line()).await);
    // What was begun is given as chunks as well.
    assert_eq!(reader.chunk().await.map(|(bytes, _)| bytes), Some(Bytes::from_static(b"ef")));
    wire.send(Bytes::from_static(b"go\n")).await.unwrap();
    assert_eq!(text(&mut reader).await, "gh");
    assert_eq!(wire.end().await, Ending::Exited(0));
}

#[tokio::test]
async fn a_huge_line_is_counted_and_cut_and_the_next_is_whole() {
    let script = format!(
        r"zeros() {{ head -c $1 /dev/zero | tr '\0' x; }}; zeros {LINE_LIMIT}; echo; zeros $(({LINE_LIMIT} + 1)); echo; echo next; zeros 5242880"
    );
    let (wire, mut reader) = start(&script);
    let longest = line(&mut reader).await.unwrap();
    assert_eq!((longest.bytes.len(), longest.kind), (LINE_LIMIT, LineKind::Whole));
    let over = line(&mut reader).await.unwrap();
    assert_eq!((over.bytes.len(), over.kind), (LINE_HEAD, LineKind::Oversize { length: LINE_LIMIT as u64 + 1 }));
    assert_eq!(text(&mut reader).await, "next");
    let endless = line(&mut reader).await.unwrap();
    assert_eq!((endless.bytes.len(), endless.kind), (LINE_HEAD, LineKind::Oversize { length: 5_242_880 }));
    assert_eq!(line(&mut reader).await, None);
    wire.end().await;
}

#[tokio::test]
async fn a_flood_waits_for_its_reader() {
    let (wire, mut reader) = start("exec dd if=/dev/zero bs=65536 count=1000");
    assert_eq!(wire.ending(Duration::from_millis(500)).await, None, "nobody read, so it must be waiting");
    let mut total = 0;
    while let Some((bytes, _)) = reader.chunk().await {
        assert!(bytes.len() <= CHUNK_LIMIT);
        total += bytes.len();
    }
    assert_eq!(total, 65_536_000);
    assert_eq!(wire.end().await, Ending::Exited(0));
}

#[tokio::test]
async fn an_endless_flood_does_not_outlast_the_end() {
    let (wire, mut reader) = start("exec yes");
    for _ in 0..1000 {
        assert_eq!(text(&mut reader).await, "y");
    }
    let began = Instant::now();
    assert_eq!(wire.end().await, Ending::Signalled(15));
    assert!(began.elapsed() < PATIENCE);
    while reader.line().await.is_some() {}
}

#[tokio::test]
async fn stderr_is_always_drained_and_its_end_kept() {
    let (wire, mut reader) = start("head -c 10485760 /dev/zero >&2; echo the end >&2; echo done");
    assert_eq!(text(&mut reader).await, "done");
    assert_eq!(wire.end().await, Ending::Exited(0));
    let stderr = wire.stderr();
    assert_eq!((stderr.total, stderr.tail.len()), (10_485_768, STDERR_TAIL));
    assert!(stderr.tail.ends_with(b"\0the end\n"));
}

#[tokio::test]
async fn a_well_behaved_server_ends_at_once() {
    let (wire, mut reader) = start("exec cat");
    wire.send(Bytes::from_static(b"hello\n")).await.unwrap();
    assert_eq!(text(&mut reader).await, "hello");
    assert_eq!((wire.survivors().await, wire.ending(Duration::ZERO).await), (1, None));
    let began = Instant::now();
    assert_eq!(wire.end().await, Ending::Exited(0));
    assert!(began.elapsed() < END_GRACE / 2, "{:?}", began.elapsed());
    assert_eq!((wire.survivors().await, wire.end().await), (0, Ending::Exited(0)));
    assert_eq!(wire.send(Bytes::from_static(b"x\n")).await, Err(WireClosed));
}

#[tokio::test]
async fn an_early_exit_is_told_with_its_last_words() {
    let (wire, mut reader) = start("echo missing KEY >&2; exit 7");
    assert_eq!(line(&mut reader).await, None);
    let ending = wire.ending(PATIENCE).await.unwrap();
    assert_eq!((ending, ending.to_string().as_str()), (Ending::Exited(7), "exited with code 7"));
    assert_eq!(wire.end().await, ending);
    assert_eq!(wire.stderr(), Stderr { total: 12, tail: b"missing KEY\n".to_vec() });
}

#[tokio::test]
async fn a_crash_is_named() {
    let (wire, _reader) = start("kill -SEGV $$");
    let ending = wire.end().await;
    assert_eq!((ending, ending.to_string().as_str()), (Ending::Signalled(11), "was ended by signal 11 (SIGSEGV)"));
}

#[tokio::test]
async fn who_ignores_the_end_of_input_is_terminated() {
    let (wire, mut reader) = start("echo $$; exec sleep 600");
    let leader = pid(&mut reader).await;
    let began = Instant::now();
    assert_eq!(wire.end().await, Ending::Signalled(15));
    assert!(began.elapsed() >= END_GRACE);
    assert!(!exists(leader));
}

#[tokio::test]
async fn who_ignores_everything_is_killed_with_its_group() {
    let (wire, mut reader) = start("trap '' TERM INT HUP; sleep 600 & echo $!; echo $$; while :; do wait; done");
    let (child, leader) = (pid(&mut reader).await, pid(&mut reader).await);
    assert_eq!(wire.survivors().await, 2);
    let ends = tokio::join!(wire.end(), wire.end(), wire.end());
    assert_eq!(ends, (Ending::Signalled(9), Ending::Signalled(9), Ending::Signalled(9)));
    assert!(!exists(child) && !exists(leader));
}

#[tokio::test]
async fn a_child_that_outlives_its_leader_and_holds_the_pipes_is_ended() {
    let (wire, mut reader) = start("sleep 600 & echo $!; exit 3");
    let child = pid(&mut reader).await;
    assert_eq!(wire.ending(PATIENCE).await, Some(Ending::Exited(3)));
    assert_eq!(wire.survivors().await, 1);
    assert!(stuck(reader.line()).await, "the child holds stdout open");
    assert_eq!(wire.end().await, Ending::Exited(3));
    assert!(!exists(child));
    assert_eq!(line(&mut reader).await, None);
}

#[tokio::test]
async fn a_stopped_and_stubborn_child_is_ended_too() {
    let (wire, mut reader) =
        start("(trap '' TERM; echo stubborn; while :; do sleep 600; done) & echo $!; kill -STOP $$");
    let mut lines = [text(&mut reader).await, text(&mut reader).await];
    lines.sort();
    let child = Pid::from_raw(lines[0].parse().unwrap()).unwrap();
    let ending = wire.end().await;
    assert!(matches!(ending, Ending::Signalled(9 | 15)), "{ending}");
    assert!(!exists(child));
}

/// Leaves its group, its session and its parents, and tells its number.
#[cfg(target_os = "linux")]
const DAEMON: &str = "(setsid sh -c 'echo $$; exec sleep 600 </dev/null >/dev/null 2>&1' &); read wait";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn daemons_are_found_and_those_of_other_launches_left_alone() {
    let (one, mut first) = start(DAEMON);
    let (two, mut second) = start(DAEMON);
    let (mine, other) = (pid(&mut first).await, pid(&mut second).await);
    assert_eq!(one.end().await, Ending::Exited(1), "read fails at the end of input");
    assert!(!exists(mine), "the daemon was left behind");
    assert!(exists(other), "another launch was hit");
    drop(two);
    vanishes(other).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn descendants_without_number_do_not_run_away() {
    let swarm =
        "spawn() { setsid sh -c 'sleep 600 & sleep 600' & }; for i in 1 2 3 4 5 6 7 8; do spawn; done; echo $$; wait";
    let (wire, mut reader) = start(swarm);
    let leader = pid(&mut reader).await;
    wire.end().await;
    let kin = super::super::kin::Kin::known(leader, wire.0.process.brand(), 1);
    assert_eq!(kin.survivors(), 0);
    assert_eq!(kin.living(), 0);
}

/// Every process lives only until it has started the next one, in a session of its own.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_chain_of_processes_is_caught_up_with() {
    let folder = tempfile::tempdir().unwrap();
    let (link, mark) = (folder.path().join("link"), folder.path().join("mark"));
    std::fs::write(&link, "#!/bin/sh\n: > \"$1\"\nsetsid \"$0\" \"$1\" < /dev/null > /dev/null 2>&1 &\n").unwrap();
    std::fs::set_permissions(&link, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let script = format!("{} {} & echo $$; read wait", link.display(), mark.display());
    let (wire, mut reader) = start(&script);
    pid(&mut reader).await;
    while !mark.exists() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    wire.end().await;
    std::fs::remove_file(&mark).unwrap();
    // Whoever lived on would have made it again long before: a link takes a few milliseconds.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!mark.exists());
}

#[tokio::test]
async fn dropping_the_last_handle_kills_at_once() {
    let (wire, mut reader) = start("trap '' TERM; sleep 600 & echo $!; echo $$; wait; wait");
    let (child, leader) = (pid(&mut reader).await, pid(&mut reader).await);
    let other = wire.clone();
    drop(wire);
    assert!(exists(leader), "there is another handle");
    drop(other);
    vanishes(leader).await;
    assert!(!exists(child));
}

#[test]
fn a_runtime_that_goes_down_leaves_nothing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (wire, leader) = runtime.block_on(async {
        let (wire, mut reader) = start("echo $$; exec sleep 600");
        let leader = pid(&mut reader).await;
        (wire, leader)
    });
    drop(runtime);
    drop(wire);
    tokio::runtime::Runtime::new().unwrap().block_on(vanishes(leader));
}

#[tokio::test]
async fn closed_input_is_noticed_and_can_be_asked_for() {
    let (deaf, mut reader) = start("exec 0<&-; echo closed; exec sleep 600");
    assert_eq!(text(&mut reader).await, "closed");
    assert_eq!(deaf.send(Bytes::from_static(b"x\n")).await, Err(WireClosed));
    assert_eq!(deaf.send(Bytes::from_static(b"x\n")).await, Err(WireClosed));
    drop(deaf);

    let (wire, mut reader) = start("cat; echo end; exec sleep 600");
    wire.send(Bytes::from_static(b"last\n")).await.unwrap();
    wire.close_input().await;
    assert_eq!(wire.send(Bytes::from_static(b"x\n")).await, Err(WireClosed));
    assert_eq!([text(&mut reader).await, text(&mut reader).await], ["last", "end"]);
    assert_eq!(wire.ending(Duration::ZERO).await, None);
}

#[tokio::test]
async fn who_never_reads_keeps_its_own_senders_waiting_only() {
    let (wire, _reader) = start("exec sleep 600");
    let big = Bytes::from(vec![b'x'; 1024 * 1024]);
    assert!(stuck(wire.send(big.clone())).await);
    assert!(stuck(wire.send(big)).await);
    wire.close_input().await;
    assert_eq!(wire.end().await, Ending::Signalled(15));
}

#[tokio::test]
async fn a_send_that_is_given_up_leaves_no_half_line() {
    let (wire, mut reader) = start("exec cat");
    let mut long = vec![b'a'; LINE_LIMIT];
    long.push(b'\n');
    assert!(stuck(wire.send(Bytes::from(long))).await, "cat waits for us to read");
    let (sent, first) = tokio::join!(wire.send(Bytes::from_static(b"b\n")), reader.line());
    assert_eq!(sent, Ok(()));
    assert_eq!(first.map(|line| (line.bytes.len(), line.kind)), Some((LINE_LIMIT, LineKind::Whole)));
    assert_eq!(text(&mut reader).await, "b");
    wire.end().await;
}

#[tokio::test]
async fn a_send_larger_than_the_queue_arrives_whole() {
    let size = QUEUE_LIMIT as usize + 4096;
    let (wire, mut reader) = start("wc -c");
    wire.send(Bytes::from(vec![b'x'; size])).await.unwrap();
    wire.send(Bytes::new()).await.unwrap();
    wire.close_input().await;
    assert_eq!(text(&mut reader).await.trim(), size.to_string());
}

#[tokio::test]
async fn the_environment_is_ours_without_what_is_withheld() {
    let mut launch = sh(r#"echo "${PATH:+path}${CARGO_MANIFEST_DIR:+manifest}"; echo "$MCPEVAL_GIVEN"; pwd -P"#);
    let folder = tempfile::tempdir().unwrap();
    launch.withheld = vec!["CARGO_MANIFEST_DIR".into()];
    launch.env = vec![("MCPEVAL_GIVEN".into(), "on purpose".into())];
    launch.cwd = Some(folder.path().to_owned());
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "run by cargo");
    let (_wire, mut reader) = StdioWire::launch(&launch, &Guardian::none()).unwrap();
    assert_eq!([text(&mut reader).await, text(&mut reader).await], ["path", "on purpose"]);
    assert_eq!(text(&mut reader).await, folder.path().canonicalize().unwrap().to_str().unwrap());
}

#[tokio::test]
async fn fifty_launches_leave_no_descriptor_and_no_process() {
    let folder = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let before = folder();
    for _ in 0..50 {
        let (wire, mut reader) = start("echo up; exec cat");
        assert_eq!(text(&mut reader).await, "up");
        assert_eq!(wire.end().await, Ending::Exited(0));
    }
    // Other tests of this process come and go.
    assert!(folder() < before + 100, "{before} descriptors became {}", folder());
}
