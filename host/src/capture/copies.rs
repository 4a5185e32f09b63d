//! Copies of what passes: a queue that never makes the traffic wait, and the lines in it.
//!
//! Whoever passes bytes on leaves a copy and goes. If the recorder lags, copies are dropped and counted, and the reader
//! of lines takes up again at the next line that it has from its beginning.

use std::collections::VecDeque;
use std::io::{BufRead as _, Read as _};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of copies that wait for the recorder.
pub(super) const MAX_BYTES: usize = 16 << 20;
/// Their number.
pub(super) const MAX_COPIES: usize = 16_384;
/// The longest line that is read; longer ones are no messages.
pub(super) const MAX_LINE: usize = 4 << 20;

/// While there is traffic the recorder looks for copies so often, and need not be woken by those who have work to do.
const LOOK: Duration = Duration::from_millis(2);
/// Looks in vain before it lets itself be woken.
const LOOKS: u32 = 25;
/// A buffer for lines beyond this is given back after use.
const KEPT: usize = 256 * 1024;

/// Who wrote the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// Bytes that have passed.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) side: Side,
    pub(super) bytes: Vec<u8>,
    /// When they came.
    pub(super) came: Instant,
    /// When they were passed on.
    pub(super) left: Instant,
    /// What is missing before them.
    gap: Option<Gap>,
}

/// Bytes are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// Up to the end of a line.
    WholeLine,
    /// Up to the middle of one.
    MidLine,
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Copies {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Copy>,
    bytes: usize,
    /// After what was dropped, per side.
    gaps: [Option<Gap>; 2],
    /// Lines that ended in what was dropped.
    lost: u64,
    is_closed: bool,
    /// The recorder waits to be woken.
    is_asleep: bool,
}

impl Copies {
    /// Leaves a copy, or counts the lines that are lost with it.
    pub(super) fn leave(&self, side: Side, bytes: &[u8], came: Instant, left: Instant) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        let gap = &mut state.gaps[side as usize];
        let before = gap.take();
        if state.bytes + bytes.len() > MAX_BYTES || state.queue.len() >= MAX_COPIES {
            let is_whole = bytes.last() == Some(&b'\n');
            state.gaps[side as usize] = Some(if is_whole { Gap::WholeLine } else { Gap::MidLine });
            state.lost += bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
            return;
        }
        state.bytes += bytes.len();
        state.queue.push_back(Copy { side, bytes: bytes.to_vec(), came, left, gap: before });
        // One that looks by itself is woken only if there is much to do.
        let is_needed = std::mem::take(&mut state.is_asleep) || state.bytes > MAX_BYTES / 4;
        drop(state);
        if is_needed {
            self.changed.notify_one();
        }
    }

    /// Waits for copies; none when the queue is closed and empty.
    pub(super) fn take(&self) -> Option<VecDeque<Copy>> {
        let mut state = self.lock();
        let mut looks = 0;
        while state.queue.is_empty() && !state.is_closed {
            state = if looks < LOOKS {
                looks += 1;
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0
            } else {
                state.is_asleep = true;
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
        }
        state.is_asleep = false;
        state.bytes = 0;
        Some(std::mem::take(&mut state.queue)).filter(|queue| !queue.is_empty())
    }

    /// Takes no more copies.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Lines that were lost with dropped copies so far.
    pub(super) fn lost(&self) -> u64 {
        self.lock().lost
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of one side.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    skipped: Option<Skipped>,
}

/// Why bytes up to the next newline are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skipped {
    /// Their line is told already.
    TooLong,
    /// Its beginning is missing.
    Torn,
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A line without its newline, and not blank.
    Line(&'a [u8]),
    /// One of more than [`MAX_LINE`] bytes.
    TooLong,
    /// One of which a part was dropped.
    Torn,
}

impl Lines {
    /// Reads the lines that end in a copy.
    pub(super) fn read(&mut self, copy: &Copy, mut found: impl FnMut(Found<'_>)) {
        if let Some(gap) = copy.gap {
            self.line.clear();
            self.skipped = (gap == Gap::MidLine).then_some(Skipped::Torn);
        }
        let mut rest = copy.bytes.as_slice();
        // Reading from memory does not fail.
        while !rest.is_empty() {
            if let Some(why) = self.skipped {
                let ends = rest.contains(&b'\n');
                _ = rest.skip_until(b'\n');
                if ends {
                    self.skipped = None;
                    if why == Skipped::Torn {
                        found(Found::Torn);
                    }
                }
                continue;
            }
            let room = MAX_LINE + 1 - self.line.len();
            _ = (&mut rest).take(room as u64).read_until(b'\n', &mut self.line);
            if let Some(line) = self.line.strip_suffix(b"\n") {
                tell(line, &mut found);
            } else if self.line.len() > MAX_LINE {
                found(Found::TooLong);
                self.skipped = Some(Skipped::TooLong);
            } else {
                return;
            }
            self.line.clear();
            self.line.shrink_to(KEPT);
        }
    }

    /// What stands behind the last newline, at the end.
    pub(super) fn end(&mut self, mut found: impl FnMut(Found<'_>)) {
        if self.skipped == Some(Skipped::Torn) {
            found(Found::Torn);
        }
        tell(&self.line, &mut found);
        self.line.clear();
    }
}

fn tell(line: &[u8], found: &mut impl FnMut(Found<'_>)) {
    if !line.trim_ascii().is_empty() {
        found(Found::Line(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(bytes: &[u8], gap: Option<Gap>) -> Copy {
        Copy { side: Side::Client, bytes: bytes.to_vec(), came: Instant::now(), left: Instant::now(), gap }
    }

    fn told(pieces: &[(&[u8], Option<Gap>)]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut told = Vec::new();
        let mut tell = |found: Found<'_>| {
            told.push(match found {
                Found::Line(line) if line.len() > 9 => format!("line of {}", line.len()),
                Found::Line(line) => String::from_utf8_lossy(line).into_owned(),
                Found::TooLong => "too long".to_owned(),
                Found::Torn => "torn".to_owned(),
            });
        };
        for (bytes, gap) in pieces {
            lines.read(&copy(bytes, *gap), &mut tell);
        }
        lines.end(&mut tell);
        told
    }

    #[test]
    fn lines_are_found_however_they_are_cut() {
        assert_eq!(told(&[(b"one\ntw", None), (b"o\n\n \r\nthr", None), (b"ee", None)]), ["one", "two", "three"]);
        let text = b"a\nbb\r\nccc";
        for cut in 0..text.len() {
            let (one, other) = text.split_at(cut);
            assert_eq!(told(&[(one, None), (other, None)]), ["a", "bb\r", "ccc"]);
        }
        assert!(told(&[(b"", None), (b"\n\n", None)]).is_empty());
    }

    #[test]
    fn a_line_too_long_is_told_once_and_the_next_is_read() {
        let (just, beyond) = (vec![b'x'; MAX_LINE], vec![b'x'; MAX_LINE + 1]);
        let whole = format!("line of {MAX_LINE}");
        assert_eq!(told(&[(&just, None), (b"\na\n", None)]), [&whole, "a"]);
        assert_eq!(told(&[(&beyond, None), (b"x", None), (b"xx\na\n", None)]), ["too long", "a"]);
        assert_eq!(told(&[(&beyond, None), (&beyond, None)]), ["too long"]);
        let mut lines = Lines::default();
        lines.read(&copy(&beyond, None), |_| ());
        assert!(lines.line.capacity() <= KEPT);
    }

    #[test]
    fn after_a_gap_the_next_whole_line_is_read() {
        let (whole, mid) = (Some(Gap::WholeLine), Some(Gap::MidLine));
        assert_eq!(told(&[(b"a\nb", None), (b"c\nd\n", mid), (b"e\n", None)]), ["a", "torn", "d", "e"]);
        assert_eq!(told(&[(b"a\nb", None), (b"c\nd\n", whole)]), ["a", "c", "d"]);
        assert_eq!(told(&[(b"x", mid), (b"y", None)]), ["torn"]);
        let beyond = vec![b'x'; MAX_LINE + 1];
        assert_eq!(told(&[(&beyond, None), (b"a\n", whole)]), ["too long", "a"]);
    }

    #[test]
    fn whoever_leaves_copies_never_waits_and_losses_are_counted() {
        let copies = Copies::default();
        let now = Instant::now();
        let large = vec![b'\n'; MAX_BYTES / 2];
        for bytes in [&large[..], &large, b"a\nb\nc", b"d\n"] {
            copies.leave(Side::Client, bytes, now, now);
        }
        copies.leave(Side::Server, b"x\ny", now, now);
        assert_eq!(copies.lost(), 4);
        assert_eq!(copies.take().unwrap().len(), 2);
        copies.leave(Side::Client, b"e\n", now, now);
        copies.leave(Side::Server, b"z\n", now, now);
        copies.leave(Side::Server, b"z\n", now, now);
        let gaps: Vec<_> = copies.take().unwrap().iter().map(|copy| copy.gap).collect();
        assert_eq!(gaps, [Some(Gap::WholeLine), Some(Gap::MidLine), None]);
        for _ in 0..MAX_COPIES + 5 {
            copies.leave(Side::Client, b"\n", now, now);
        }
        assert_eq!(copies.lost(), 9);
        copies.close();
        copies.leave(Side::Client, b"\n", now, now);
        assert_eq!(copies.take().unwrap().len(), MAX_COPIES);
        assert!(copies.take().is_none());
        assert_eq!(copies.lost(), 9);
    }

    #[test]
    fn a_reader_that_sleeps_is_woken() {
        let copies = Copies::default();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| copies.take().map(|queue| queue.len()));
            while !copies.lock().is_asleep {
                std::thread::yield_now();
            }
            copies.leave(Side::Server, b"a", Instant::now(), Instant::now());
            assert_eq!(reader.join().unwrap(), Some(1));
            let reader = scope.spawn(|| copies.take().is_none());
            while !copies.lock().is_asleep {
                std::thread::yield_now();
            }
            copies.close();
            assert!(reader.join().unwrap());
        });
    }
}
