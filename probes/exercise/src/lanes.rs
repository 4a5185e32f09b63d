//! Who runs the trials: the primary session, and lanes beside it where they save time.
//!
//! A lane must not cost points: a tool without three successes there is tried again on the primary session, and that
//! counts. A timeout on stdio counts at once, since there a lane is a process of its own.

use std::collections::VecDeque;

use mcpeval_probe::{Answer, Fault, Isolation, Options, Pending, Session, Target, report, wait_any};

use crate::surface::{Tool, Wanted};
use crate::trial::{Ask, Trial};

/// Requests of one trial when all goes well.
const TRIAL_REQUESTS: usize = 4;
/// Requests of one trial at most: the invalid call and `ping` repeated, and the sessions between.
const WORST_TRIAL: usize = 8;
/// Requests kept back for what follows the trials, pages of other surfaces included.
const KEPT_BACK: usize = 100;

/// The primary session or a lane, and what it is doing.
#[derive(Default)]
struct Lane {
    session: Option<Session>,
    job: Option<Job>,
}

/// A trial under way; `tool` is its place in the list of callable tools.
struct Job {
    tool: usize,
    trial: Trial,
    pending: Option<Pending>,
}

/// All trials of a run.
pub(crate) struct Trials<'a> {
    target: &'a Target,
    tools: &'a [&'a Tool],
    wanted: Wanted,
    max_lanes: usize,
    /// Longest wait for an answer, in milliseconds.
    wait_ms: u32,
    isolation: Isolation,
    startup_ms: u32,
    next: usize,
    /// For the primary session alone: what has no valid arguments, and what a lane could not finish well.
    again: VecDeque<(usize, Trial)>,
    done: Vec<Option<Trial>>,
    finished: u32,
    spent_us: u64,
    /// Why the primary session cannot be opened any more.
    gone: bool,
    /// Requests sent, those of discarded trials included.
    pub(crate) requests: u32,
}

impl<'a> Trials<'a> {
    pub(crate) fn new(
        target: &'a Target,
        tools: &'a [&'a Tool],
        wanted: Wanted,
        max_lanes: usize,
        wait_ms: u32,
    ) -> Self {
        let facts = target.facts();
        Self {
            target,
            tools,
            wanted,
            max_lanes,
            wait_ms,
            isolation: facts.isolation,
            startup_ms: facts.startup_ms,
            next: 0,
            again: VecDeque::new(),
            done: vec![None; tools.len()],
            finished: 0,
            spent_us: 0,
            gone: false,
            requests: 0,
        }
    }

    /// Runs them all; one result per tool. A refusal of the host ends everything.
    pub(crate) fn run(mut self) -> Result<(Vec<Option<Trial>>, u32), Fault> {
        let mut primary = Lane::default();
        let mut lanes: Vec<Lane> = Vec::new();
        loop {
            self.open_lanes(&mut lanes)?;
            // Lanes first: what they give up is for the primary session, and must be seen before the end is.
            let mut at = 0;
            while at < lanes.len() {
                if self.feed_lane(&mut lanes[at])? {
                    at += 1;
                } else {
                    lanes.swap_remove(at);
                }
            }
            self.feed_primary(&mut primary)?;
            if !self.collect(&mut primary, &mut lanes)? {
                break;
            }
        }
        Ok((self.done, self.requests))
    }

    /// Tools that nobody has begun.
    fn left(&self) -> usize {
        self.tools.len() - self.next
    }

    /// Whether the rest of the plan fits the budget although one more lane's trial may have to be repeated.
    fn affords_lane(&self, lanes: usize) -> bool {
        let repeats = self.again.len() + lanes + 1;
        let plan = self.left() * TRIAL_REQUESTS + repeats * WORST_TRIAL + KEPT_BACK;
        usize::try_from(self.target.remaining().requests).is_ok_and(|requests| requests >= plan)
    }

    /// Opens lanes as long as the next one should save more than twice the start-up time seen.
    fn open_lanes(&mut self, lanes: &mut Vec<Lane>) -> Result<(), Fault> {
        while self.finished > 0 && !self.gone && 1 + lanes.len() < self.max_lanes {
            let left_us = self.spent_us / u64::from(self.finished) * self.left() as u64;
            let running = 1 + lanes.len() as u64;
            let saved_us = left_us / running - left_us / (running + 1);
            if saved_us <= 2000 * u64::from(self.startup_ms) || !self.affords_lane(lanes.len()) {
                return Ok(());
            }
            let before = self.target.remaining().millis;
            match self.target.open(Options::default()) {
                Ok(session) => lanes.push(Lane { session: Some(session), job: None }),
                Err(fault) if fault.is_refusal() => return Err(fault),
                // What cannot start once is not tried again.
                Err(_) => self.max_lanes = 1 + lanes.len(),
            }
            self.startup_ms = self.startup_ms.max(before.saturating_sub(self.target.remaining().millis));
        }
        Ok(())
    }

    /// Gives the primary session something to do and starts its next request.
    fn feed_primary(&mut self, lane: &mut Lane) -> Result<(), Fault> {
        loop {
            let Some(job) = &mut lane.job else {
                if let Some((tool, trial)) = self.again.pop_front() {
                    lane.job = Some(Job { tool, trial, pending: None });
                } else if self.left() > 0 {
                    let tool = self.next;
                    self.next += 1;
                    let trial = self.tools[tool].trial(self.target, self.wanted);
                    lane.job = Some(Job { tool, trial, pending: None });
                } else {
                    return Ok(());
                }
                continue;
            };
            if job.pending.is_some() {
                return Ok(());
            }
            if job.trial.next().is_some() && lane.session.is_none() && !self.gone {
                match self.target.primary() {
                    Ok(session) => lane.session = Some(session),
                    Err(fault) if fault.is_refusal() => return Err(fault),
                    Err(_) => self.gone = true,
                }
            }
            if self.gone {
                job.trial.abandon();
            }
            match (job.trial.next(), &lane.session) {
                (Some(ask), Some(session)) => match start(session, ask) {
                    Ok(pending) => {
                        job.pending = Some(pending);
                        return Ok(());
                    }
                    Err(fault) => {
                        job.trial.record(&Err(fault.unless_refused()?));
                        lane.session = None;
                    }
                },
                _ => {
                    if let Some(job) = lane.job.take() {
                        self.finish(job);
                    }
                }
            }
        }
    }

    /// The same for a lane; false when it has no more to do or no session.
    fn feed_lane(&mut self, lane: &mut Lane) -> Result<bool, Fault> {
        loop {
            let Some(job) = &mut lane.job else {
                // A lane's session is not replaced between tools: whether another one pays is decided anew.
                if lane.session.is_none() || self.gone || self.left() == 0 || !self.affords_lane(self.max_lanes) {
                    return Ok(false);
                }
                let tool = self.next;
                self.next += 1;
                let trial = self.tools[tool].trial(self.target, self.wanted);
                if trial.valid().is_some() {
                    lane.job = Some(Job { tool, trial, pending: None });
                } else {
                    // It could have no success here and would be tried again anyway.
                    self.again.push_back((tool, trial));
                }
                continue;
            };
            if job.pending.is_some() {
                return Ok(true);
            }
            let Some(ask) = job.trial.next() else {
                if let Some(job) = lane.job.take() {
                    self.finish_in_lane(job);
                }
                continue;
            };
            if lane.session.is_none() {
                match self.target.open(Options::default()) {
                    Ok(session) => lane.session = Some(session),
                    Err(fault) if fault.is_refusal() => return Err(fault),
                    Err(_) => {
                        self.max_lanes = 1;
                        if let Some(job) = lane.job.take() {
                            self.try_again(job);
                        }
                        return Ok(false);
                    }
                }
            }
            if let Some(session) = &lane.session {
                match start(session, ask) {
                    Ok(pending) => {
                        job.pending = Some(pending);
                        return Ok(true);
                    }
                    Err(fault) => {
                        job.trial.record(&Err(fault.unless_refused()?));
                        lane.session = None;
                    }
                }
            }
        }
    }

    /// Waits for the first answers and records them; false when nothing is under way.
    fn collect(&mut self, primary: &mut Lane, lanes: &mut [Lane]) -> Result<bool, Fault> {
        let pending = |lane: &'_ Lane| lane.job.as_ref().is_some_and(|job| job.pending.is_some());
        let mut busy: Vec<&mut Lane> =
            std::iter::once(primary).chain(lanes.iter_mut()).filter(|lane| pending(lane)).collect();
        if busy.is_empty() {
            return Ok(false);
        }
        let under_way: Vec<&Pending> =
            busy.iter().filter_map(|lane| lane.job.as_ref()).filter_map(|job| job.pending.as_ref()).collect();
        for ready in wait_any(&under_way, self.wait_ms) {
            let Some(lane) = usize::try_from(ready).ok().and_then(|ready| busy.get_mut(ready)) else { continue };
            let Some(job) = &mut lane.job else { continue };
            let outcome: Result<Answer, Fault> = match job.pending.as_ref().map(|pending| pending.wait(0)) {
                None | Some(Ok(None)) => continue,
                Some(Ok(Some(answer))) => Ok(answer),
                Some(Err(fault)) => Err(fault.unless_refused()?),
            };
            job.pending = None;
            if outcome.is_err() {
                // The next step starts on a fresh session.
                lane.session = None;
            }
            job.trial.record(&outcome);
        }
        Ok(true)
    }

    fn finish_in_lane(&mut self, job: Job) {
        let settled = self.isolation == Isolation::Process && job.trial.timed_out();
        if job.trial.is_sound() || settled || self.gone { self.finish(job) } else { self.try_again(job) }
    }

    fn try_again(&mut self, job: Job) {
        self.again.push_back((job.tool, job.trial.again()));
    }

    fn finish(&mut self, job: Job) {
        self.requests = self.requests.saturating_add(job.trial.requests());
        self.spent_us += job.trial.micros();
        if job.trial.timed_out() {
            self.spent_us += 1000 * u64::from(self.wait_ms);
        }
        self.finished += 1;
        if let Some(slot) = self.done.get_mut(job.tool) {
            *slot = Some(job.trial);
        }
        report::progress(self.finished, u32::try_from(self.tools.len()).unwrap_or(u32::MAX));
    }
}

fn start(session: &Session, ask: Ask<'_>) -> Result<Pending, Fault> {
    match ask {
        Ask::Call(params) => session.start("tools/call", params),
        Ask::Ping => session.start("ping", ()),
    }
}
