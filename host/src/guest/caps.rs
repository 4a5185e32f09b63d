//! The only door from a component to wires, sessions, ledger and transcript. Each capability is charged to the run's
//! ledger and checked by its policy before anything is sent.
//!
//! A [`Fault`] is data for the component; a `wasmtime::Error` ends it.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Resource;

use super::state::{Place, Run, State};
use crate::ledger::Allowance;
use crate::outcome::{AreaScore, ExchangeId, Finding, Measurement};
use crate::services::synthesis;
use crate::session::{
    Answer, Cause, Fault, Incoming, Options, Pending, Refusal, Session, Tally, message, object, wait_any,
};

/// The server under test, as one component holds it.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct TargetHandle;

/// A conversation, as one component holds it.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct SessionHandle {
    session: Session,
    /// The shared conversation outlives its handles.
    is_primary: bool,
}

/// A request under way, as one component holds it.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct PendingHandle {
    pending: Arc<Pending>,
}

/// Facts of the server.
pub(super) struct Facts {
    pub(super) transport: &'static str,
    pub(super) revision: &'static str,
    pub(super) lifecycle: &'static str,
    pub(super) own_process: bool,
    pub(super) startup: Duration,
    pub(super) greeting: Arc<str>,
}

/// A broken rule of the contract: ends the component.
pub(super) fn violation(text: impl Into<String>) -> wasmtime::Error {
    wasmtime::Error::msg(text.into())
}

/// A value for the component, a fault for the component, or its end.
pub(super) type Given<T> = wasmtime::Result<Result<T, Fault>>;

impl State {
    pub(super) fn run(&mut self) -> wasmtime::Result<&mut Run> {
        self.run.as_mut().ok_or_else(|| violation("describe may only write to the log"))
    }

    pub(super) fn note<T>(&mut self, outcome: Result<T, Fault>) -> Result<T, Fault> {
        if let (Err(Fault { cause: Cause::Refused(Refusal::Budget(_)), .. }), Some(run)) = (&outcome, self.run.as_mut())
        {
            run.refused_by_budget = true;
        }
        outcome
    }

    fn json(text: &str) -> wasmtime::Result<String> {
        message::one_line(text).ok_or_else(|| violation("a value it gave as JSON is not one JSON value"))
    }

    fn wait(run: &Run, timeout_ms: Option<u32>) -> Duration {
        timeout_ms.map_or(run.timeout, |millis| Duration::from_millis(millis.into()))
    }

    fn session_of(&self, handle: &Resource<SessionHandle>) -> wasmtime::Result<Session> {
        Ok(self.table.get(handle)?.session.clone())
    }

    fn pending_of(&self, handle: &Resource<PendingHandle>) -> wasmtime::Result<Arc<Pending>> {
        Ok(Arc::clone(&self.table.get(handle)?.pending))
    }

    // The target.

    pub(super) async fn facts(&mut self) -> wasmtime::Result<Facts> {
        let run = self.run()?;
        let primary = run.target.current().await;
        let transport = run.target.transport();
        Ok(Facts {
            transport,
            revision: primary.as_ref().map_or("", Session::revision),
            lifecycle: primary.as_ref().map_or("handshake", |session| session.lifecycle().word()),
            own_process: transport == "stdio",
            startup: primary.as_ref().map_or(Duration::ZERO, Session::startup),
            greeting: primary.map_or_else(|| "{}".into(), |session| session.greeting()),
        })
    }

    pub(super) fn remaining(&mut self) -> wasmtime::Result<Allowance> {
        Ok(self.run()?.context.ledger.remaining())
    }

    pub(super) fn entry(&mut self, position: u32) -> wasmtime::Result<String> {
        let run = self.run()?;
        let entry = usize::try_from(position).ok().and_then(|position| run.catalog.entries.get(position));
        entry.map(|entry| entry.raw.to_string()).ok_or_else(|| violation("it asked for an entry beyond the catalog"))
    }

    pub(super) async fn arguments(&mut self, tool: String) -> wasmtime::Result<Option<String>> {
        let run = self.run()?;
        if let Some(given) = run.arguments.get(&tool) {
            return Ok(Some(given.clone()));
        }
        let Some(entry) = run.catalog.find(&tool) else {
            return Err(violation("it asked for arguments of a tool that the catalog does not list"));
        };
        let raw = Arc::clone(&entry.raw);
        let place = run.place.clone();
        self.compute(move || {
            let schema: serde_json::Value = serde_json::from_str(object::at(&raw, &["inputSchema"])?).ok()?;
            let place = match &place {
                Place::Scratch(path) => synthesis::Place::Scratch(path),
                Place::Remote => synthesis::Place::Remote,
            };
            synthesis::arguments(&schema, &tool, &place).map(|value| value.to_string())
        })
        .await
    }

    pub(super) async fn primary(&mut self) -> Given<Resource<SessionHandle>> {
        let run = self.run()?;
        let (target, context) = (Arc::clone(&run.target), run.context.clone());
        let session = target.primary(&context).await;
        self.hand_out(session, true)
    }

    pub(super) async fn open(&mut self, options: Options) -> Given<Resource<SessionHandle>> {
        let options = Self::check_options(options)?;
        let run = self.run()?;
        let (target, context) = (Arc::clone(&run.target), run.context.clone());
        let session = target.open(&context, &options).await;
        self.hand_out(session, false)
    }

    fn hand_out(&mut self, session: Result<Session, Fault>, is_primary: bool) -> Given<Resource<SessionHandle>> {
        match self.note(session) {
            Ok(session) => {
                if !is_primary {
                    self.run()?.opened.push(session.clone());
                }
                Ok(Ok(self.table.push(SessionHandle { session, is_primary })?))
            }
            Err(fault) => Ok(Err(fault)),
        }
    }

    pub(super) async fn greet(&mut self, options: Options) -> Given<Answer> {
        let options = Self::check_options(options)?;
        let run = self.run()?;
        let (target, context) = (Arc::clone(&run.target), run.context.clone());
        let answer = target.greet(&context, &options).await;
        Ok(self.note(answer))
    }

    fn check_options(options: Options) -> wasmtime::Result<Options> {
        let capabilities = options.capabilities.as_deref().map(Self::json).transpose()?;
        if capabilities.as_deref().is_some_and(|text| !text.trim_start().starts_with('{')) {
            return Err(violation("the capabilities it wants to declare are no JSON object"));
        }
        Ok(Options { capabilities, ..options })
    }

    // Conversations.

    pub(super) fn greeting(&mut self, handle: &Resource<SessionHandle>) -> wasmtime::Result<String> {
        Ok(self.session_of(handle)?.greeting().to_string())
    }

    pub(super) async fn request(
        &mut self,
        handle: &Resource<SessionHandle>,
        method: &str,
        params: Option<String>,
        timeout_ms: Option<u32>,
    ) -> Given<Answer> {
        let session = self.session_of(handle)?;
        let params = params.as_deref().map(Self::json).transpose()?;
        let run = self.run()?;
        let (context, timeout) = (run.context.clone(), Self::wait(run, timeout_ms));
        let answer = session.request(&context, method, params.as_deref(), timeout).await;
        if let Ok(answer) = &answer {
            self.remember_listing(method, answer);
        }
        Ok(self.note(answer))
    }

    /// Names that a list reply held may be subjects of findings.
    fn remember_listing(&mut self, method: &str, answer: &Answer) {
        let (list, key) = match method {
            "prompts/list" => ("prompts", "name"),
            "resources/list" => ("resources", "uri"),
            _ => return,
        };
        let (Ok(result), Some(run)) = (&answer.reply, self.run.as_mut()) else { return };
        let Ok(result) = serde_json::from_str::<serde_json::Value>(result) else { return };
        let items = result.get(list).and_then(serde_json::Value::as_array).into_iter().flatten();
        for name in items.filter_map(|item| item.get(key).and_then(serde_json::Value::as_str)) {
            run.recorder.list(name.to_owned());
        }
    }

    pub(super) async fn start(
        &mut self,
        handle: &Resource<SessionHandle>,
        method: &str,
        params: Option<String>,
        timeout_ms: Option<u32>,
    ) -> Given<Resource<PendingHandle>> {
        let session = self.session_of(handle)?;
        let params = params.as_deref().map(Self::json).transpose()?;
        let run = self.run()?;
        let (context, timeout) = (run.context.clone(), Self::wait(run, timeout_ms));
        let pending = session.start(&context, method, params.as_deref(), timeout).await;
        match self.note(pending) {
            Ok(pending) => Ok(Ok(self.table.push(PendingHandle { pending: Arc::new(pending) })?)),
            Err(fault) => Ok(Err(fault)),
        }
    }

    pub(super) async fn notify(
        &mut self,
        handle: &Resource<SessionHandle>,
        method: &str,
        params: Option<String>,
    ) -> Given<ExchangeId> {
        let session = self.session_of(handle)?;
        let params = params.as_deref().map(Self::json).transpose()?;
        let run = self.run()?;
        let (context, timeout) = (run.context.clone(), run.timeout);
        let outcome = session.notify(&context, method, params.as_deref(), timeout).await;
        Ok(self.note(outcome))
    }

    pub(super) async fn listen(&mut self, handle: &Resource<SessionHandle>) -> Given<bool> {
        let session = self.session_of(handle)?;
        let run = self.run()?;
        let (context, timeout) = (run.context.clone(), run.timeout);
        let outcome = session.listen(&context, timeout).await;
        Ok(self.note(outcome))
    }

    pub(super) async fn receive(&mut self, handle: &Resource<SessionHandle>, wait_ms: u32) -> Given<Option<Incoming>> {
        let session = self.session_of(handle)?;
        let context = self.run()?.context.clone();
        let outcome = session.receive(&context, Duration::from_millis(wait_ms.into())).await;
        Ok(self.note(outcome))
    }

    pub(super) async fn reply(
        &mut self,
        handle: &Resource<SessionHandle>,
        request: ExchangeId,
        outcome: Result<String, String>,
    ) -> Given<ExchangeId> {
        let session = self.session_of(handle)?;
        let outcome = match &outcome {
            Ok(result) => Ok(Self::json(result)?),
            Err(error) => Err(Self::json(error)?),
        };
        let run = self.run()?;
        let (context, timeout) = (run.context.clone(), run.timeout);
        let outcome = outcome.as_deref().map_err(String::as_str);
        let sent = session.reply(&context, request, outcome, timeout).await;
        Ok(self.note(sent))
    }

    pub(super) fn tally(&mut self, handle: &Resource<SessionHandle>) -> wasmtime::Result<Tally> {
        Ok(self.session_of(handle)?.tally())
    }

    pub(super) async fn drop_session(&mut self, handle: Resource<SessionHandle>) -> wasmtime::Result<()> {
        let SessionHandle { session, is_primary } = self.table.delete(handle)?;
        if !is_primary {
            session.end().await;
            if let Some(run) = self.run.as_mut() {
                run.opened.retain(|other| other.number() != session.number());
            }
        }
        Ok(())
    }

    // Requests under way.

    pub(super) fn pending_id(&mut self, handle: &Resource<PendingHandle>) -> wasmtime::Result<String> {
        Ok(self.pending_of(handle)?.id().to_string())
    }

    pub(super) async fn pending_wait(
        &mut self,
        handle: &Resource<PendingHandle>,
        wait_ms: u32,
    ) -> Given<Option<Answer>> {
        let pending = self.pending_of(handle)?;
        let context = self.run()?.context.clone();
        let outcome = pending.wait(&context, Duration::from_millis(wait_ms.into())).await;
        Ok(self.note(outcome))
    }

    pub(super) async fn pending_cancel(
        &mut self,
        handle: &Resource<PendingHandle>,
        reason: Option<&str>,
    ) -> Given<ExchangeId> {
        let pending = self.pending_of(handle)?;
        let context = self.run()?.context.clone();
        let outcome = pending.cancel(&context, reason).await;
        Ok(self.note(outcome))
    }

    pub(super) async fn wait_any(
        &mut self,
        handles: &[Resource<PendingHandle>],
        wait_ms: u32,
    ) -> wasmtime::Result<Vec<u32>> {
        let pending: Vec<Arc<Pending>> =
            handles.iter().map(|handle| self.pending_of(handle)).collect::<wasmtime::Result<_>>()?;
        let run = self.run()?;
        let (hub, context) = (Arc::clone(run.target.hub()), run.context.clone());
        let pending: Vec<&Pending> = pending.iter().map(Arc::as_ref).collect();
        let ready = wait_any(&hub, &context, &pending, Duration::from_millis(wait_ms.into())).await;
        Ok(ready.into_iter().filter_map(|index| u32::try_from(index).ok()).collect())
    }

    // Reports.

    pub(super) fn submit(&mut self, finding: Finding) -> wasmtime::Result<()> {
        let run = self.run()?;
        run.recorder.submit(finding, &run.target.hub().transcript).map_err(violation)
    }

    pub(super) fn measure(&mut self, measurement: Measurement) -> wasmtime::Result<()> {
        self.run()?.recorder.measure(measurement).map_err(violation)
    }

    pub(super) fn score(&mut self, area: String, score: AreaScore) -> wasmtime::Result<()> {
        self.run()?.recorder.score(area, score).map_err(violation)
    }

    pub(super) fn progress(&mut self, finished: u32, total: u32) -> wasmtime::Result<()> {
        let run = self.run()?;
        run.recorder.progress(finished, total);
        (run.on_progress)(finished, total);
        Ok(())
    }
}
