//! The contract's imports as the scripted server offers them: the same names and signatures as the generated ones.

#![expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "the signatures are the contract's")]

use std::cell::RefCell;
use std::rc::Rc;

use super::state::State;

type Shared = Rc<RefCell<State>>;

thread_local! {
    /// The run that free functions such as `report::submit` belong to; one thread runs one probe at a time.
    static CURRENT: RefCell<Option<Shared>> = const { RefCell::new(None) };
}

/// Runs a probe over this state and gives back what it left behind.
pub(super) fn within<R>(state: State, run: impl FnOnce(session::Target) -> R) -> (R, State) {
    let shared = Rc::new(RefCell::new(state));
    CURRENT.set(Some(Rc::clone(&shared)));
    let result = run(session::Target(Rc::clone(&shared)));
    CURRENT.set(None);
    let state = Rc::try_unwrap(shared).map_or_else(|_| panic!("a handle outlived the run"), RefCell::into_inner);
    (result, state)
}

fn current<R>(act: impl FnOnce(&mut State) -> R) -> R {
    let shared = CURRENT.with_borrow(Clone::clone).expect("host functions work only while a script runs the probe");
    act(&mut shared.borrow_mut())
}

pub(crate) mod session {
    use std::cell::RefCell;
    use std::fmt;
    use std::rc::Rc;

    use super::super::incoming;
    use super::super::state::{Conversation, Unread, Waiting};
    use super::Shared;
    use crate::bindings::mcpeval::probe::session::{Answer, Facts, Incoming, Listing, Options, Tally, Tool};
    use crate::{Allowance, ExchangeId, Fault};

    pub(crate) struct Target(pub(super) Shared);
    pub(crate) struct Session(Shared, u32);
    pub(crate) struct Pending(Shared, Rc<RefCell<Waiting>>, u32);

    macro_rules! opaque {
        ($($name:ident)*) => {$(
            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(stringify!($name))
                }
            }
        )*};
    }
    opaque!(Target Session Pending);

    impl Target {
        pub(crate) fn facts(&self) -> Facts {
            self.0.borrow().facts.clone()
        }

        pub(crate) fn remaining(&self) -> Allowance {
            let state = self.0.borrow();
            Allowance { millis: state.budget.millis.saturating_sub(state.spent_ms()), ..state.budget }
        }

        pub(crate) fn tools(&self) -> Vec<Tool> {
            self.0.borrow().tools.clone()
        }

        pub(crate) fn entry(&self, position: u32) -> String {
            self.0.borrow().entries[position as usize].clone()
        }

        pub(crate) fn listing(&self) -> Listing {
            let mut state = self.0.borrow_mut();
            let cause = state.listing_fault;
            Listing { pages: vec![2], fault: cause.map(|cause| state.fault(cause)) }
        }

        pub(crate) fn arguments(&self, tool: &str) -> Option<String> {
            self.0.borrow().arguments.get(tool).map(|arguments| arguments.as_str().to_owned())
        }

        pub(crate) fn primary(&self) -> Result<Session, Fault> {
            let number = self.0.borrow_mut().primary()?;
            Ok(Session(Rc::clone(&self.0), number))
        }

        pub(crate) fn open(&self, options: &Options) -> Result<Session, Fault> {
            let mut state = self.0.borrow_mut();
            state.opened.push(read_options(options));
            let number = state.open()?;
            Ok(Session(Rc::clone(&self.0), number))
        }

        pub(crate) fn greet(&self, options: &Options) -> Result<Answer, Fault> {
            self.0.borrow_mut().greet(&read_options(options))
        }
    }

    fn read_options(options: &Options) -> crate::Options {
        crate::Options {
            revision: options.revision.clone(),
            capabilities: options.capabilities.clone().map(crate::Json::from_contract),
            manual: options.manual,
        }
    }

    impl Session {
        pub(crate) fn greeting(&self) -> String {
            self.0.borrow().facts.greeting.clone()
        }

        pub(crate) fn request(&self, method: &str, params: Option<&str>, ms: Option<u32>) -> Result<Answer, Fault> {
            let pending = self.start(method, params, ms)?;
            loop {
                if let Some(answer) = pending.wait(u32::MAX)? {
                    return Ok(answer);
                }
            }
        }

        pub(crate) fn start(&self, method: &str, params: Option<&str>, ms: Option<u32>) -> Result<Pending, Fault> {
            let waiting = self.0.borrow_mut().start(self.1, method, params, ms)?;
            // Ids count up over all sessions.
            let id = u32::try_from(self.0.borrow().sent.len()).unwrap_or(u32::MAX);
            Ok(Pending(Rc::clone(&self.0), Rc::new(RefCell::new(waiting)), id))
        }

        pub(crate) fn notify(&self, method: &str, params: Option<&str>) -> Result<ExchangeId, Fault> {
            self.0.borrow_mut().notify(self.1, method, params)
        }

        pub(crate) fn listen(&self) -> Result<bool, Fault> {
            let mut state = self.0.borrow_mut();
            state.listened.push(self.1);
            Ok(state.has_stream && state.facts.transport == "http")
        }

        pub(crate) fn receive(&self, wait_ms: u32) -> Result<Option<Incoming>, Fault> {
            let mut state = self.0.borrow_mut();
            let Conversation { inbox, due_us, .. } = &state.sessions[self.1 as usize];
            let (arrival, answer) = (inbox.first().map(|first| first.at_us), due_us.iter().copied().min());
            let first_us = [arrival, answer].into_iter().flatten().min();
            if !state.sleep(first_us, wait_ms) {
                return Ok(None);
            }
            let now_us = state.now_us;
            let inbox = &mut state.sessions[self.1 as usize].inbox;
            if inbox.first().is_none_or(|first| first.at_us > now_us) {
                return Ok(None);
            }
            let Unread { exchange, kind, message, .. } = inbox.remove(0);
            Ok(Some(incoming(exchange, kind, &message)))
        }

        pub(crate) fn reply(&self, request: ExchangeId, outcome: Result<&str, &str>) -> Result<ExchangeId, Fault> {
            self.0.borrow_mut().reply(request, outcome)
        }

        pub(crate) fn tally(&self) -> Tally {
            let odd_acks = self.0.borrow().odd_acks;
            Tally { requests: 0, notifications: 0, stray_replies: 0, noise: 0, dropped: 0, odd_acks }
        }
    }

    impl Pending {
        pub(crate) fn id(&self) -> String {
            self.2.to_string()
        }

        pub(crate) fn wait(&self, wait_ms: u32) -> Result<Option<Answer>, Fault> {
            let mut state = self.0.borrow_mut();
            let mut waiting = self.1.borrow_mut();
            if !state.sleep(Some(waiting.ready_us), wait_ms) {
                return Ok(None);
            }
            let outcome = waiting.outcome.take().expect("an answer is taken once");
            state.settle(&waiting, &outcome);
            outcome.map(Some)
        }

        pub(crate) fn cancel(&self, reason: Option<&str>) -> Result<ExchangeId, Fault> {
            let mut params = serde_json::json!({"requestId": self.2});
            if let Some(reason) = reason {
                params["reason"] = reason.into();
            }
            let session = self.1.borrow().session;
            self.0.borrow_mut().notify(session, "notifications/cancelled", Some(&params.to_string()))
        }
    }

    pub(crate) fn wait_any(pending: &[&Pending], wait_ms: u32) -> Vec<u32> {
        let Some(first) = pending.first() else { return Vec::new() };
        let mut state = first.0.borrow_mut();
        let next = pending.iter().map(|pending| pending.1.borrow().ready_us).min();
        state.sleep(next, wait_ms);
        let ready = |pending: &&Pending| pending.1.borrow().ready_us <= state.now_us;
        (0..).zip(pending).filter(|(_, pending)| ready(pending)).map(|(place, _)| place).collect()
    }
}

pub(crate) mod report {
    use super::current;
    use crate::Finding;
    use crate::bindings::mcpeval::probe::types::{AreaScore, Measurement};

    pub(crate) fn submit(finding: &Finding) {
        current(|state| state.submit(finding));
    }

    pub(crate) fn measure(measurement: &Measurement) {
        current(|state| state.measure(measurement));
    }

    pub(crate) fn score(area: &AreaScore) {
        current(|state| state.score(area));
    }

    pub(crate) fn progress(finished: u32, total: u32) {
        current(|state| state.progress.push((finished, total)));
    }
}

pub(crate) mod log {
    use super::current;
    use crate::log::Severity;

    pub(crate) fn line(severity: Severity, text: &str) {
        current(|state| state.log.push((severity, text.to_owned())));
    }
}

pub(crate) mod schema {
    use super::current;
    use serde_json::Value;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).expect("the schema service is given JSON")
    }

    pub(crate) fn validate(schema: &str, instance: &str) -> Result<(), Vec<String>> {
        current(|state| (state.on_validate)(&read(schema), &read(instance)))
    }

    pub(crate) fn check(schema: &str) -> Result<(), String> {
        current(|state| (state.on_check)(&read(schema)))
    }

    pub(crate) fn example(schema: &str) -> Option<String> {
        current(|state| (state.on_example)(&read(schema))).map(|value| value.to_string())
    }

    pub(crate) fn counterexample(schema: &str) -> Option<String> {
        current(|state| (state.on_counterexample)(&read(schema))).map(|value| value.to_string())
    }
}

pub(crate) mod text {
    use super::current;
    use crate::text::Dialect;

    pub(crate) fn matches(pattern: &str, text: &str, _dialect: Dialect) -> Result<bool, String> {
        current(|state| (state.on_matches)(pattern, text))
    }
}

pub(crate) mod pipe {
    use std::cell::{Cell, RefCell};

    use super::{current, session::Target};
    use crate::pipe::Ending;
    use crate::{Chunk, ExchangeId, Fault};

    #[derive(Debug)]
    pub(crate) struct Pipe {
        output: RefCell<Vec<u8>>,
        open: Cell<bool>,
    }

    pub(crate) fn open(_target: &Target) -> Result<Pipe, Fault> {
        Ok(Pipe { output: RefCell::default(), open: Cell::new(true) })
    }

    impl Pipe {
        pub(crate) fn send(&self, bytes: &[u8]) -> Result<ExchangeId, Fault> {
            current(|state| {
                let answer = (state.on_bytes)(bytes);
                self.output.borrow_mut().extend(answer);
                Ok(state.exchange())
            })
        }

        pub(crate) fn receive(&self, wait_ms: u32) -> Result<Option<Chunk>, Fault> {
            let bytes = self.output.take();
            let last = bytes.is_empty() && !self.open.get();
            current(|state| {
                if bytes.is_empty() && !last {
                    state.sleep(None, wait_ms);
                    return Ok(None);
                }
                Ok(Some(Chunk { exchange: state.exchange(), bytes, last }))
            })
        }

        pub(crate) fn close_input(&self) {
            self.open.set(false);
        }

        pub(crate) fn ending(&self, wait_ms: u32) -> Ending {
            if self.open.get() {
                current(|state| state.sleep(None, wait_ms));
                return Ending::Alive;
            }
            Ending::Exited(0)
        }

        pub(crate) fn stderr_bytes(&self) -> u32 {
            0
        }

        pub(crate) fn survivors(&self) -> u32 {
            u32::from(self.open.get())
        }
    }
}

pub(crate) mod http {
    use std::cell::RefCell;

    use super::{current, session::Target};
    use crate::http::{Head, Request};
    use crate::{Chunk, Fault};

    #[derive(Debug)]
    pub(crate) struct Response {
        head: Head,
        body: RefCell<Option<Vec<u8>>>,
    }

    pub(crate) fn send(_target: &Target, request: &Request) -> Result<Response, Fault> {
        current(|state| {
            let (status, headers, body) = (state.on_http)(request);
            let head = Head { exchange: state.exchange(), status, headers };
            Ok(Response { head, body: RefCell::new(Some(body)) })
        })
    }

    impl Response {
        pub(crate) fn head(&self, _wait_ms: u32) -> Result<Option<Head>, Fault> {
            Ok(Some(self.head.clone()))
        }

        pub(crate) fn read(&self, _wait_ms: u32) -> Result<Option<Chunk>, Fault> {
            let bytes = self.body.borrow_mut().take().unwrap_or_default();
            current(|state| Ok(Some(Chunk { exchange: state.exchange(), bytes, last: true })))
        }
    }
}
