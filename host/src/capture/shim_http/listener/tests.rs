//! What becomes of copies that were dropped, and of sessions that end or are forgotten. What passes over a real
//! connection is tested with the program itself.

use serde_json::{Value, json};

use super::super::tape::{QUEUE_BYTES, QUEUE_COUNT};
use super::*;
use crate::store::Home;
use crate::store::journal::{self, Journal};
use crate::store::record::Record;

struct Bench {
    _folder: tempfile::TempDir,
    home: Home,
    listener: Listener,
    last: u64,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    let recorder = Recorder::start(home.clone(), "shop".into()).unwrap();
    Bench { _folder: folder, home, listener: Listener::new(recorder, None), last: 0 }
}

fn name(session: u64) -> Name {
    let mut name = [0; 32];
    name[..8].copy_from_slice(&session.to_be_bytes());
    name
}

fn call(tool: &str) -> Asked {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}});
    Asked::Message(Bytes::from(call.to_string()))
}

fn answer() -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}).to_string().into_bytes()
}

const WHOLE: Step = Step::End { ending: Ending::Complete, is_cut: false };

impl Bench {
    fn take(&mut self, exchange: u64, step: Step) {
        self.listener.take(Item { exchange, at: Instant::now(), step });
    }

    /// One exchange from its request to its end.
    fn exchange(&mut self, session: Option<u64>, asked: Asked, status: u16, content: Content, rest: Vec<Step>) {
        self.last += 1;
        let number = self.last;
        self.take(number, Step::Request { session: session.map(name), asked });
        self.take(number, Step::Head { session: None, status, content });
        for step in rest {
            self.take(number, step);
        }
    }

    /// Tool, or else method, and outcome of all that was recorded.
    fn told(self) -> Vec<String> {
        assert_eq!(self.listener.exchanges.len(), 0, "exchanges are left");
        let queue = Queue::default();
        queue.close();
        self.listener.read(&queue);
        let mut told = Vec::new();
        for file in journal::files(&self.home, Journal::Calls).unwrap() {
            for line in std::fs::read_to_string(file).unwrap().lines() {
                let record = Record::read(line.as_bytes()).unwrap();
                let outcome: Value = serde_json::to_value(record.outcome).unwrap();
                told.push(format!("{} {}", record.tool.unwrap_or(record.method), outcome.as_str().unwrap()));
            }
        }
        told
    }
}

fn chunk(bytes: impl Into<Vec<u8>>, after_gap: bool) -> Step {
    Step::Chunk { bytes: bytes.into(), after_gap }
}

#[test]
fn an_answer_of_which_copies_were_dropped_is_neither_answered_nor_unanswered() {
    for session in [None, Some(1)] {
        let mut bench = bench();
        let event = |text: &[u8]| [b"data: ", text, b"\n\n"].concat();
        let note = |method: &str| event(json!({"jsonrpc": "2.0", "method": method}).to_string().as_bytes());
        let cut = Step::End { ending: Ending::Complete, is_cut: true };
        bench.exchange(session, call("json"), 200, Content::Json, vec![chunk(answer(), true), WHOLE]);
        bench.exchange(session, call("end"), 200, Content::Json, vec![chunk("{", false), cut]);
        // Behind the gap the stream is read on from the next empty line.
        let after = [b"tail of something\n\n".as_slice(), &note("b")].concat();
        bench.exchange(
            session,
            call("events"),
            200,
            Content::Events,
            vec![chunk([note("a"), b"data: {".to_vec()].concat(), false), chunk(after, true), WHOLE],
        );
        assert_eq!(bench.told(), ["a unknown", "b unknown"], "{session:?}");
    }
}

#[test]
fn a_request_stays_open_only_as_long_as_somebody_may_answer_it() {
    let mut bench = bench();
    let nothing = || vec![WHOLE];
    // Without a session, or refused, nobody will.
    bench.exchange(None, call("plain"), 202, Content::Opaque, nothing());
    bench.exchange(Some(1), call("refused"), 401, Content::Json, vec![chunk("{\"error\":\"no\"}", false), WHOLE]);
    bench.exchange(Some(1), call("accepted"), 202, Content::Opaque, nothing());
    bench.exchange(Some(2), call("other"), 202, Content::Opaque, nothing());
    bench.exchange(Some(1), Asked::End, 405, Content::Opaque, nothing());
    bench.exchange(Some(1), call("after"), 200, Content::Json, vec![chunk(answer(), false), WHOLE]);
    // A session ends by a DELETE that succeeds, once its streams are over, or when the server knows it no more.
    bench.take(100, Step::Request { session: Some(name(1)), asked: Asked::Stream });
    bench.exchange(Some(1), Asked::End, 204, Content::Opaque, nothing());
    assert_eq!(bench.listener.sessions.len(), 2);
    bench.take(100, Step::End { ending: Ending::Dropped, is_cut: false });
    assert_eq!(bench.listener.sessions.len(), 1);
    bench.exchange(Some(2), Asked::Stream, 404, Content::Opaque, nothing());
    assert_eq!(bench.listener.sessions.len(), 0);
    // Without a head the request was sent all the same.
    bench.take(200, Step::Request { session: None, asked: call("lost") });
    bench.take(200, Step::End { ending: Ending::Dropped, is_cut: false });
    // Of two requests with one id the answer is that of its own exchange.
    assert_eq!(
        bench.told(),
        [
            "plain unanswered",
            "refused unanswered",
            "after ok",
            "accepted unanswered",
            "other unanswered",
            "lost unanswered"
        ]
    );
}

#[test]
fn the_sessions_that_are_kept_apart_are_bounded() {
    let mut bench = bench();
    bench.take(0, Step::Request { session: Some(name(0)), asked: Asked::Stream });
    for session in 1..SESSION_LIMIT as u64 + 10 {
        bench.exchange(Some(session), call("find"), 200, Content::Json, vec![chunk(answer(), false), WHOLE]);
    }
    assert_eq!(bench.listener.sessions.len(), SESSION_LIMIT);
    // The oldest is in use.
    assert!(bench.listener.sessions.contains_key(&name(0)) && !bench.listener.sessions.contains_key(&name(1)));
}

#[test]
fn the_queue_is_bounded_and_ends_always_arrive() {
    let queue = Queue::default();
    let put = |step, must_arrive| queue.put(Item { exchange: 1, at: Instant::now(), step }, must_arrive);
    assert!(put(chunk(vec![0; QUEUE_BYTES], false), false));
    assert!(!put(chunk([0], false), false) && put(WHOLE, true));
    assert_eq!(queue.dropped(), 1);
    queue.take().unwrap();
    queue.take().unwrap();
    let taken = (0..QUEUE_COUNT + 5).filter(|_| put(chunk([0], false), false)).count();
    assert_eq!((taken, queue.dropped()), (QUEUE_COUNT, 6));
    assert!(put(WHOLE, true));
    queue.close();
    assert!(!put(WHOLE, true), "what comes after the end is dropped");
    assert_eq!(std::iter::from_fn(|| queue.take()).count(), QUEUE_COUNT + 1);
}
