//! The thread that appends to the journals, and the bounded queue before it: whoever records never waits for the disk.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::store::journal::{self, Journal};
use crate::store::record::Record;
use crate::store::{Home, shape};

/// Records that wait for the disk; more are dropped.
pub(super) const MAX_QUEUE: usize = 1_024;
/// Their bytes.
const MAX_QUEUE_BYTES: usize = 16 << 20;
/// Bytes of one append, unless a single record is longer.
const MAX_APPEND: usize = 1 << 20;
/// How long the end waits for what is queued.
const FINISH_WAIT: Duration = Duration::from_secs(5);

/// What became of the records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records in the journals.
    pub written: u64,
    /// Records and messages that were dropped because the disk or the recorder lagged behind the traffic.
    pub dropped: u64,
    /// Records that could not be written.
    pub failed: u64,
    /// Why the first of them could not.
    pub fault: Option<String>,
}

impl Summary {
    /// What is missing from the record, as a sentence; none if nothing is.
    pub fn sentence(&self) -> Option<String> {
        let count = |n: u64| if n == 1 { "1 record".to_owned() } else { format!("{n} records") };
        let mut parts = Vec::new();
        if self.failed > 0 {
            let fault = self.fault.as_deref().unwrap_or("the journal refused them");
            parts.push(format!("{} could not be written ({fault})", count(self.failed)));
        }
        if self.dropped > 0 {
            parts.push(format!("{} dropped, as recording lagged behind the traffic", count(self.dropped)));
        }
        (!parts.is_empty())
            .then(|| format!("recording is incomplete: {}; the traffic itself was not changed", parts.join(", ")))
    }
}

/// The queue; shared by all captures.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Line>,
    bytes: usize,
    /// Records that the writer has taken and not yet written.
    in_hand: u64,
    is_closed: bool,
    is_done: bool,
    summary: Summary,
}

#[derive(Debug)]
struct Line {
    ts: String,
    bytes: Vec<u8>,
}

impl Queue {
    /// Starts the writer of a home that is prepared.
    pub(super) fn start(home: Home) -> Result<Arc<Self>> {
        let queue = Arc::new(Self { state: Mutex::default(), changed: Condvar::new() });
        let of_writer = Arc::clone(&queue);
        let write = move |ts: &str, lines: &[u8]| journal::append(&home, &Journal::Calls.file(&home, ts), lines);
        thread::Builder::new()
            .name("journal".into())
            .spawn(move || of_writer.write(write))
            .map_err(|error| Error::unfinished(format!("the recorder cannot be started: {error}")))?;
        Ok(queue)
    }

    /// Queues a record, or counts it as dropped.
    pub(super) fn push(&self, mut record: Record) {
        let mut line = record.line();
        if line.is_none() {
            // Arguments of millions of members; that they were called is still worth a record.
            record.args = record.args.map(|_| shape::DEEP.into());
            line = record.line();
        }
        let mut state = self.lock();
        let Some(bytes) = line else {
            state.summary.failed += 1;
            return;
        };
        if state.is_closed || state.lines.len() >= MAX_QUEUE || state.bytes + bytes.len() > MAX_QUEUE_BYTES {
            state.summary.dropped += 1;
            return;
        }
        state.bytes += bytes.len();
        state.lines.push_back(Line { ts: record.ts, bytes });
        drop(state);
        self.changed.notify_all();
    }

    /// Counts what was lost before it became a record.
    pub(super) fn lost(&self, count: u64) {
        self.lock().summary.dropped += count;
    }

    /// Takes nothing more, waits until all is written, but not long, and tells what became of it.
    pub(super) fn finish(&self) -> Summary {
        let until = Instant::now() + FINISH_WAIT;
        let mut state = self.lock();
        state.is_closed = true;
        self.changed.notify_all();
        while !state.is_done {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The writer hangs in the disk; what it holds is not known to be written.
                let missing = state.in_hand + state.lines.len() as u64;
                state.lines.clear();
                state.summary.dropped += missing;
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.summary.clone()
    }

    fn write(&self, write: impl Fn(&str, &[u8]) -> Result<()>) {
        loop {
            let mut state = self.lock();
            while state.lines.is_empty() && !state.is_closed {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(Line { ts, mut bytes }) = state.lines.pop_front() else {
                state.is_done = true;
                drop(state);
                return self.changed.notify_all();
            };
            state.bytes -= bytes.len();
            let mut count = 1;
            // What has gathered meanwhile goes with it, if it belongs to the same day.
            while let Some(next) = state
                .lines
                .pop_front_if(|next| next.ts.get(..10) == ts.get(..10) && bytes.len() + next.bytes.len() <= MAX_APPEND)
            {
                state.bytes -= next.bytes.len();
                bytes.extend_from_slice(&next.bytes);
                count += 1;
            }
            state.in_hand = count;
            drop(state);
            let written = write(&ts, &bytes);
            let mut state = self.lock();
            state.in_hand = 0;
            match written {
                Ok(()) => state.summary.written += count,
                Err(error) => {
                    state.summary.failed += count;
                    state.summary.fault.get_or_insert_with(|| error.to_string());
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::store::record::{Kind, Outcome};

    fn record(seq: u64, ts: &str) -> Record {
        Record {
            identity: None,
            ts: ts.into(),
            session: format!("session:{}", "a".repeat(64)),
            seq,
            server: "s".into(),
            method: "ping".into(),
            tool: None,
            args: None,
            latency_ms: 0,
            outcome: Outcome::Ok,
            error: None,
            cancelled: false,
            shim_self_us: None,
            kind: Kind::Real,
        }
    }

    const DAY: &str = "2027-01-15T09:30:00.250Z";

    #[test]
    fn records_reach_the_journals_of_their_days() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        home.prepare().unwrap();
        let queue = Queue::start(home.clone()).unwrap();
        for seq in 0..500 {
            queue.push(record(seq, if seq % 2 == 0 { DAY } else { "2027-01-16T00:00:00.000Z" }));
        }
        assert_eq!(queue.finish(), Summary { written: 500, ..Summary::default() });
        queue.push(record(1, DAY));
        assert_eq!(queue.finish().dropped, 1);
        for file in journal::files(&home, Journal::Calls).unwrap() {
            let text = std::fs::read_to_string(file).unwrap();
            assert_eq!(text.lines().filter(|line| Record::read(line.as_bytes()).is_some()).count(), 250);
        }
    }

    #[test]
    fn whoever_records_never_waits_and_everything_is_counted() {
        let queue = Queue { state: Mutex::default(), changed: Condvar::new() };
        let (started, of_writer) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                queue.write(move |_, _| {
                    started.send(()).unwrap();
                    released.recv().map_err(|_| Error::unfinished("the disk is full"))
                });
            });
            queue.push(record(0, DAY));
            of_writer.recv().unwrap();
            for seq in 0..MAX_QUEUE as u64 + 7 {
                queue.push(record(seq, DAY));
            }
            queue.lost(3);
            release.send(()).unwrap();
            of_writer.recv().unwrap();
            drop(release);
            let summary = queue.finish();
            assert_eq!((summary.written, summary.dropped, summary.failed), (1, 10, MAX_QUEUE as u64));
            let sentence = summary.sentence().unwrap();
            assert!(sentence.contains("the disk is full") && sentence.contains("10 records dropped"), "{sentence}");
        });
        assert_eq!(Summary { written: 7, ..Summary::default() }.sentence(), None);
    }

    #[test]
    fn arguments_too_large_for_a_line_leave_a_record_without_them() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        home.prepare().unwrap();
        let queue = Queue::start(home.clone()).unwrap();
        queue.push(Record { args: Some("x".repeat(5 << 20).into()), ..record(1, DAY) });
        assert_eq!(queue.finish().written, 1);
        let text = std::fs::read_to_string(Journal::Calls.file(&home, DAY)).unwrap();
        assert!(text.contains(r#""args":"deep""#), "{}", text.len());
    }
}
