//! What may still be spent: requests, sessions, bytes, time. A ledger refuses, it never knows what is bought.
//! A child ledger spends from its parent as well, so that no run can have more than the evaluation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Upper bounds of one ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// JSON-RPC requests sent.
    pub requests: u32,
    /// Conversations opened.
    pub sessions: u32,
    /// Bytes received.
    pub bytes: u64,
    /// Wall time from the ledger's birth.
    pub wall: Duration,
}

/// The budget of one evaluation (docs/standard.md).
pub const EVALUATION: Limits =
    Limits { requests: 4_096, sessions: 4_096, bytes: 1 << 30, wall: Duration::from_mins(5) };

/// What ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No request is left.
    Requests,
    /// No session is left.
    Sessions,
    /// More was received than the budget allows.
    Bytes,
    /// The time is over.
    Deadline,
}

/// What may still be spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Requests.
    pub requests: u32,
    /// Sessions.
    pub sessions: u32,
    /// Time.
    pub time: Duration,
}

/// What is charged one by one.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Request,
    Session,
}

#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    requests: u32,
    sessions: u32,
    bytes: u64,
}

/// One account. Shared by everything that spends from it.
#[derive(Debug)]
pub struct Ledger {
    limits: Limits,
    deadline: Instant,
    spent: Mutex<Spent>,
    parent: Option<Arc<Self>>,
}

impl Ledger {
    /// The root of an evaluation; its time starts now.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, deadline: Instant::now() + limits.wall, spent: Mutex::default(), parent: None })
    }

    /// An account of its own that also spends from this one.
    pub fn child(self: &Arc<Self>, limits: Limits) -> Arc<Self> {
        let deadline = self.deadline.min(Instant::now() + limits.wall);
        Arc::new(Self { limits, deadline, spent: Mutex::default(), parent: Some(Arc::clone(self)) })
    }

    /// A child with no bounds of its own.
    pub fn share(self: &Arc<Self>) -> Arc<Self> {
        self.child(self.limits)
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charge one request before it is sent.
    pub fn request(&self) -> Result<(), Refusal> {
        self.charge(Unit::Request)
    }

    /// Charge one session before it is opened.
    pub fn session(&self) -> Result<(), Refusal> {
        self.charge(Unit::Session)
    }

    fn charge(&self, unit: Unit) -> Result<(), Refusal> {
        self.open()?;
        let mut spent = self.spent();
        let (count, limit, refusal) = match unit {
            Unit::Request => (&mut spent.requests, self.limits.requests, Refusal::Requests),
            Unit::Session => (&mut spent.sessions, self.limits.sessions, Refusal::Sessions),
        };
        if *count >= limit {
            return Err(refusal);
        }
        if let Some(parent) = &self.parent {
            parent.charge(unit)?;
        }
        *count += 1;
        Ok(())
    }

    /// Charge bytes that have arrived. They are spent even if that is too much; from then on everything is refused.
    pub fn received(&self, bytes: u64) {
        if let Some(parent) = &self.parent {
            parent.received(bytes);
        }
        let mut spent = self.spent();
        spent.bytes = spent.bytes.saturating_add(bytes);
    }

    /// Whether anything may still be spent: refused once the bytes or the time are used up.
    pub fn open(&self) -> Result<(), Refusal> {
        if Instant::now() >= self.deadline {
            return Err(Refusal::Deadline);
        }
        if self.spent().bytes > self.limits.bytes {
            return Err(Refusal::Bytes);
        }
        self.parent.as_ref().map_or(Ok(()), |parent| parent.open())
    }

    /// When the time is over.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What may still be spent, here and above.
    pub fn remaining(&self) -> Allowance {
        let (requests, sessions) = {
            let spent = self.spent();
            (self.limits.requests.saturating_sub(spent.requests), self.limits.sessions.saturating_sub(spent.sessions))
        };
        let own = Allowance { requests, sessions, time: self.deadline.saturating_duration_since(Instant::now()) };
        match &self.parent {
            None => own,
            Some(parent) => {
                let above = parent.remaining();
                Allowance {
                    requests: own.requests.min(above.requests),
                    sessions: own.sessions.min(above.sessions),
                    time: own.time,
                }
            }
        }
    }

    /// Requests charged here so far.
    pub fn requests_spent(&self) -> u32 {
        self.spent().requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(requests: u32) -> Limits {
        Limits { requests, ..EVALUATION }
    }

    #[test]
    fn a_child_never_exceeds_its_parent() {
        let root = Ledger::new(small(3));
        let child = root.child(small(10));
        for _ in 0..3 {
            child.request().expect("within the parent's three");
        }
        assert_eq!(child.request(), Err(Refusal::Requests));
        assert_eq!((child.requests_spent(), root.requests_spent()), (3, 3));
        assert_eq!(child.remaining().requests, 0);
    }

    #[test]
    fn a_refused_child_costs_the_parent_nothing() {
        let root = Ledger::new(small(3));
        let child = root.child(small(1));
        child.request().expect("the first");
        assert_eq!(child.request(), Err(Refusal::Requests));
        assert_eq!(root.remaining().requests, 2);
    }

    #[test]
    fn sessions_have_an_account_of_their_own() {
        let root = Ledger::new(Limits { sessions: 1, ..small(2) });
        let child = root.share();
        child.session().expect("the only one");
        assert_eq!(child.session(), Err(Refusal::Sessions));
        child.request().expect("requests are left");
        let left = root.remaining();
        assert_eq!((left.requests, left.sessions), (1, 0));
    }

    #[test]
    fn too_many_bytes_refuse_everything_after_them() {
        let root = Ledger::new(Limits { bytes: 10, ..EVALUATION });
        let child = root.share();
        child.received(10);
        child.request().expect("ten of ten bytes are allowed");
        child.received(1);
        assert_eq!(child.request(), Err(Refusal::Bytes));
        assert_eq!(root.session(), Err(Refusal::Bytes));
    }

    #[test]
    fn time_ends_a_ledger_and_its_children() {
        let root = Ledger::new(Limits { wall: Duration::ZERO, ..EVALUATION });
        assert_eq!(root.share().session(), Err(Refusal::Deadline));
        assert_eq!(root.remaining().time, Duration::ZERO);
    }
}
