//! Contract 0.1: generated bindings, and nothing but conversions between its types and ours.

use wasmtime::component::{HasSelf, Linker, Resource};

use super::below::{self, HttpHandle, PipeHandle};
use super::caps::{self, PendingHandle, SessionHandle, TargetHandle};
use super::state::State;
use crate::ledger;
use crate::outcome;
use crate::probes;
use crate::services::text::Dialect;
use crate::session::catalog::ToolClass;
use crate::session::{self, Denial};
use crate::wire::stdio::Ending;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../wit/v0.1",
        world: "mcpeval:probe/wire-probe",
        imports: { default: async | trappable },
        exports: { default: async },
        with: {
            "mcpeval:probe/session.target": super::super::caps::TargetHandle,
            "mcpeval:probe/session.session": super::super::caps::SessionHandle,
            "mcpeval:probe/session.pending": super::super::caps::PendingHandle,
            "mcpeval:probe/pipe.pipe": super::super::below::PipeHandle,
            "mcpeval:probe/http.response": super::super::below::HttpHandle,
        },
    });
}

use bindings::mcpeval::probe::{http, log, pipe, report, schema, session as wit, text, types};
pub(super) use bindings::{WireProbe, WireProbePre};
pub(super) use types::{Case, Manifest};

/// Link the interfaces of the contract. `pipe` and `http` exist only in the linker of a component that may use them.
pub(super) fn link(
    linker: &mut Linker<State>,
    powers: &std::collections::BTreeSet<probes::Power>,
) -> wasmtime::Result<()> {
    type Data = HasSelf<State>;
    types::add_to_linker::<_, Data>(linker, |state| state)?;
    wit::add_to_linker::<_, Data>(linker, |state| state)?;
    report::add_to_linker::<_, Data>(linker, |state| state)?;
    log::add_to_linker::<_, Data>(linker, |state| state)?;
    schema::add_to_linker::<_, Data>(linker, |state| state)?;
    text::add_to_linker::<_, Data>(linker, |state| state)?;
    if powers.contains(&probes::Power::Pipe) {
        pipe::add_to_linker::<_, Data>(linker, |state| state)?;
    }
    if powers.contains(&probes::Power::Http) {
        http::add_to_linker::<_, Data>(linker, |state| state)?;
    }
    Ok(())
}

fn millis(duration: std::time::Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

fn budget_refusal(refusal: ledger::Refusal) -> types::Refusal {
    match refusal {
        ledger::Refusal::Requests => types::Refusal::Requests,
        ledger::Refusal::Sessions => types::Refusal::Sessions,
        ledger::Refusal::Bytes => types::Refusal::Bytes,
        ledger::Refusal::Deadline => types::Refusal::Deadline,
    }
}

fn policy_refusal(denial: Denial) -> types::Refusal {
    match denial {
        Denial::NotGranted => types::Refusal::NotGranted,
        Denial::WriterTool | Denial::TurnedTool => types::Refusal::WriterTool,
        Denial::UnattestedTool => types::Refusal::UnattestedTool,
        Denial::SkippedTool => types::Refusal::SkippedTool,
        Denial::InvalidTool => types::Refusal::InvalidTool,
        Denial::UnlistedTool => types::Refusal::UnlistedTool,
    }
}

fn fault(fault: session::Fault) -> types::Fault {
    let cause = match fault.cause {
        session::Cause::Refused(session::Refusal::Budget(refusal)) => types::Cause::Refused(budget_refusal(refusal)),
        session::Cause::Refused(session::Refusal::Policy(denial)) => types::Cause::Refused(policy_refusal(denial)),
        session::Cause::Unreachable => types::Cause::Unreachable,
        session::Cause::Handshake => types::Cause::Handshake,
        session::Cause::Closed => types::Cause::Closed,
        session::Cause::TimedOut => types::Cause::TimedOut,
        session::Cause::Malformed => types::Cause::Malformed,
        session::Cause::Status(status) => types::Cause::Status(status),
        session::Cause::TooLarge => types::Cause::TooLarge,
        session::Cause::Other => types::Cause::Other,
    };
    types::Fault { cause, exchange: fault.exchange, detail: fault.detail }
}

/// What a returned fault makes of a run. A refusal counts only if the host made it.
pub(super) fn label(fault: &types::Fault, refused_by_budget: bool) -> outcome::NoVerdict {
    use outcome::NoVerdict;
    match fault.cause {
        types::Cause::Refused(
            types::Refusal::Requests | types::Refusal::Sessions | types::Refusal::Bytes | types::Refusal::Deadline,
        ) if refused_by_budget => NoVerdict::BudgetExceeded,
        types::Cause::Refused(_) => NoVerdict::ComponentFault,
        types::Cause::Handshake => NoVerdict::HandshakeFailed,
        types::Cause::Closed => NoVerdict::TransportClosed,
        types::Cause::TimedOut => NoVerdict::TransportTimeout,
        types::Cause::Unreachable
        | types::Cause::Malformed
        | types::Cause::Status(_)
        | types::Cause::TooLarge
        | types::Cause::Other => NoVerdict::TransportError,
    }
}

fn answer(answer: session::Answer) -> wit::Answer {
    wit::Answer {
        exchange: answer.exchange,
        elapsed_us: answer.elapsed_us,
        status: answer.status,
        reply: match answer.reply {
            Ok(result) => Ok(result.as_ref().into()),
            Err(error) => Err(error.as_ref().into()),
        },
    }
}

fn incoming(incoming: &session::Incoming) -> wit::Incoming {
    let kind = match incoming.kind {
        session::IncomingKind::Request => wit::IncomingKind::Request,
        session::IncomingKind::AnsweredRequest => wit::IncomingKind::AnsweredRequest,
        session::IncomingKind::Notification => wit::IncomingKind::Notification,
        session::IncomingKind::StrayReply => wit::IncomingKind::StrayReply,
        session::IncomingKind::Noise => wit::IncomingKind::Noise,
    };
    wit::Incoming { exchange: incoming.exchange, kind, message: incoming.message.as_ref().into() }
}

fn options(options: wit::Options) -> session::Options {
    session::Options { revision: options.revision, capabilities: options.capabilities, manual: options.manual }
}

fn chunk(chunk: below::Chunk) -> types::Chunk {
    types::Chunk { exchange: chunk.exchange, bytes: chunk.bytes, last: chunk.last }
}

fn to_guest<T, U>(given: caps::Given<T>, convert: impl FnOnce(T) -> U) -> wasmtime::Result<Result<U, types::Fault>> {
    Ok(match given? {
        Ok(value) => Ok(convert(value)),
        Err(error) => Err(fault(error)),
    })
}

/// Runs a host call and marks where wasm goes on, so that the host's time is not charged as compute.
macro_rules! host_call {
    ($state:expr, $call:expr) => {{
        let outcome = $call;
        $state.clock.resume();
        outcome
    }};
}

impl types::Host for State {}

impl wit::HostTarget for State {
    async fn facts(&mut self, _: Resource<TargetHandle>) -> wasmtime::Result<wit::Facts> {
        let facts = host_call!(self, self.facts().await?);
        Ok(wit::Facts {
            transport: facts.transport.into(),
            revision: facts.revision.into(),
            lifecycle: facts.lifecycle.into(),
            isolation: if facts.own_process { wit::Isolation::Process } else { wit::Isolation::Server },
            startup_ms: millis(facts.startup),
            greeting: facts.greeting.as_ref().into(),
        })
    }

    async fn remaining(&mut self, _: Resource<TargetHandle>) -> wasmtime::Result<types::Allowance> {
        let allowance = self.remaining()?;
        Ok(types::Allowance {
            requests: allowance.requests,
            sessions: allowance.sessions,
            millis: millis(allowance.time),
        })
    }

    async fn tools(&mut self, _: Resource<TargetHandle>) -> wasmtime::Result<Vec<wit::Tool>> {
        let run = self.run()?;
        let tool = |entry: &session::catalog::Entry| wit::Tool {
            name: entry.label.as_str().into(),
            class: match entry.class {
                ToolClass::ReadOnly => wit::ToolClass::ReadOnly,
                ToolClass::Writer => wit::ToolClass::Writer,
                ToolClass::Unannotated => wit::ToolClass::Unannotated,
                ToolClass::Invalid => wit::ToolClass::Invalid,
            },
            blocked: run.context.policy.blocked(&entry.label).map(policy_refusal),
        };
        Ok(run.catalog.entries.iter().map(tool).collect())
    }

    async fn entry(&mut self, _: Resource<TargetHandle>, position: u32) -> wasmtime::Result<types::Json> {
        self.entry(position)
    }

    async fn listing(&mut self, _: Resource<TargetHandle>) -> wasmtime::Result<wit::Listing> {
        let catalog = &self.run()?.catalog;
        Ok(wit::Listing { pages: catalog.pages.clone(), fault: catalog.fault.clone().map(fault) })
    }

    async fn arguments(&mut self, _: Resource<TargetHandle>, tool: String) -> wasmtime::Result<Option<types::Json>> {
        host_call!(self, self.arguments(tool).await)
    }

    async fn primary(
        &mut self,
        _: Resource<TargetHandle>,
    ) -> wasmtime::Result<Result<Resource<SessionHandle>, types::Fault>> {
        host_call!(self, to_guest(self.primary().await, |handle| handle))
    }

    async fn open(
        &mut self,
        _: Resource<TargetHandle>,
        given: wit::Options,
    ) -> wasmtime::Result<Result<Resource<SessionHandle>, types::Fault>> {
        host_call!(self, to_guest(self.open(options(given)).await, |handle| handle))
    }

    async fn greet(
        &mut self,
        _: Resource<TargetHandle>,
        given: wit::Options,
    ) -> wasmtime::Result<Result<wit::Answer, types::Fault>> {
        host_call!(self, to_guest(self.greet(options(given)).await, answer))
    }

    async fn drop(&mut self, handle: Resource<TargetHandle>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}

impl wit::HostSession for State {
    async fn greeting(&mut self, handle: Resource<SessionHandle>) -> wasmtime::Result<types::Json> {
        self.greeting(&handle)
    }

    async fn request(
        &mut self,
        handle: Resource<SessionHandle>,
        method: String,
        params: Option<types::Json>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<wit::Answer, types::Fault>> {
        host_call!(self, to_guest(self.request(&handle, &method, params, timeout_ms).await, answer))
    }

    async fn start(
        &mut self,
        handle: Resource<SessionHandle>,
        method: String,
        params: Option<types::Json>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<Resource<PendingHandle>, types::Fault>> {
        host_call!(self, to_guest(self.start(&handle, &method, params, timeout_ms).await, |handle| handle))
    }

    async fn notify(
        &mut self,
        handle: Resource<SessionHandle>,
        method: String,
        params: Option<types::Json>,
    ) -> wasmtime::Result<Result<types::ExchangeId, types::Fault>> {
        host_call!(self, to_guest(self.notify(&handle, &method, params).await, |exchange| exchange))
    }

    async fn listen(&mut self, handle: Resource<SessionHandle>) -> wasmtime::Result<Result<bool, types::Fault>> {
        host_call!(self, to_guest(self.listen(&handle).await, |opened| opened))
    }

    async fn receive(
        &mut self,
        handle: Resource<SessionHandle>,
        wait_ms: u32,
    ) -> wasmtime::Result<Result<Option<wit::Incoming>, types::Fault>> {
        host_call!(self, to_guest(self.receive(&handle, wait_ms).await, |given| given.as_ref().map(incoming)))
    }

    async fn reply(
        &mut self,
        handle: Resource<SessionHandle>,
        request: types::ExchangeId,
        outcome: Result<types::Json, types::Json>,
    ) -> wasmtime::Result<Result<types::ExchangeId, types::Fault>> {
        host_call!(self, to_guest(self.reply(&handle, request, outcome).await, |exchange| exchange))
    }

    async fn tally(&mut self, handle: Resource<SessionHandle>) -> wasmtime::Result<wit::Tally> {
        let tally = self.tally(&handle)?;
        Ok(wit::Tally {
            requests: tally.requests,
            notifications: tally.notifications,
            stray_replies: tally.stray_replies,
            noise: tally.noise,
            dropped: tally.dropped,
            odd_acks: tally.odd_acks,
        })
    }

    async fn drop(&mut self, handle: Resource<SessionHandle>) -> wasmtime::Result<()> {
        host_call!(self, self.drop_session(handle).await)
    }
}

impl wit::HostPending for State {
    async fn id(&mut self, handle: Resource<PendingHandle>) -> wasmtime::Result<types::Json> {
        self.pending_id(&handle)
    }

    async fn wait(
        &mut self,
        handle: Resource<PendingHandle>,
        wait_ms: u32,
    ) -> wasmtime::Result<Result<Option<wit::Answer>, types::Fault>> {
        host_call!(self, to_guest(self.pending_wait(&handle, wait_ms).await, |given| given.map(answer)))
    }

    async fn cancel(
        &mut self,
        handle: Resource<PendingHandle>,
        reason: Option<String>,
    ) -> wasmtime::Result<Result<types::ExchangeId, types::Fault>> {
        host_call!(self, to_guest(self.pending_cancel(&handle, reason.as_deref()).await, |exchange| exchange))
    }

    async fn drop(&mut self, handle: Resource<PendingHandle>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}

impl wit::Host for State {
    async fn wait_any(&mut self, pending: Vec<Resource<PendingHandle>>, wait_ms: u32) -> wasmtime::Result<Vec<u32>> {
        host_call!(self, self.wait_any(&pending, wait_ms).await)
    }
}

impl pipe::HostPipe for State {
    async fn send(
        &mut self,
        handle: Resource<PipeHandle>,
        bytes: Vec<u8>,
    ) -> wasmtime::Result<Result<types::ExchangeId, types::Fault>> {
        host_call!(self, to_guest(self.pipe_send(&handle, bytes).await, |exchange| exchange))
    }

    async fn receive(
        &mut self,
        handle: Resource<PipeHandle>,
        wait_ms: u32,
    ) -> wasmtime::Result<Result<Option<types::Chunk>, types::Fault>> {
        host_call!(self, to_guest(self.pipe_receive(&handle, wait_ms).await, |given| given.map(chunk)))
    }

    async fn close_input(&mut self, handle: Resource<PipeHandle>) -> wasmtime::Result<()> {
        let wire = self.pipe_wire(&handle)?;
        wire.close_input().await;
        self.clock.resume();
        Ok(())
    }

    async fn ending(&mut self, handle: Resource<PipeHandle>, wait_ms: u32) -> wasmtime::Result<pipe::Ending> {
        let ending = host_call!(self, self.pipe_ending(&handle, wait_ms).await?);
        Ok(match ending {
            None => pipe::Ending::Alive,
            Some(Ending::Exited(code)) => pipe::Ending::Exited(code),
            Some(Ending::Signalled(signal)) => pipe::Ending::Signalled(signal),
        })
    }

    async fn stderr_bytes(&mut self, handle: Resource<PipeHandle>) -> wasmtime::Result<u32> {
        Ok(u32::try_from(self.pipe_wire(&handle)?.stderr().total).unwrap_or(u32::MAX))
    }

    async fn survivors(&mut self, handle: Resource<PipeHandle>) -> wasmtime::Result<u32> {
        let wire = self.pipe_wire(&handle)?;
        Ok(host_call!(self, wire.survivors().await))
    }

    async fn drop(&mut self, handle: Resource<PipeHandle>) -> wasmtime::Result<()> {
        host_call!(self, self.drop_pipe(handle).await)
    }
}

impl pipe::Host for State {
    async fn open(
        &mut self,
        _: Resource<TargetHandle>,
    ) -> wasmtime::Result<Result<Resource<PipeHandle>, types::Fault>> {
        host_call!(self, to_guest(self.open_pipe(), |handle| handle))
    }
}

impl http::HostResponse for State {
    async fn head(
        &mut self,
        handle: Resource<HttpHandle>,
        wait_ms: u32,
    ) -> wasmtime::Result<Result<Option<http::Head>, types::Fault>> {
        let head =
            |head: below::Head| http::Head { exchange: head.exchange, status: head.status, headers: head.headers };
        host_call!(self, to_guest(self.http_head(&handle, wait_ms).await, |given| given.map(head)))
    }

    async fn read(
        &mut self,
        handle: Resource<HttpHandle>,
        wait_ms: u32,
    ) -> wasmtime::Result<Result<Option<types::Chunk>, types::Fault>> {
        host_call!(self, to_guest(self.http_read(&handle, wait_ms).await, |given| given.map(chunk)))
    }

    async fn drop(&mut self, handle: Resource<HttpHandle>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}

impl http::Host for State {
    async fn send(
        &mut self,
        _: Resource<TargetHandle>,
        request: http::Request,
    ) -> wasmtime::Result<Result<Resource<HttpHandle>, types::Fault>> {
        let http::Request { method, headers, body } = request;
        host_call!(self, to_guest(self.send_http(method, headers, body), |handle| handle))
    }
}

impl report::Host for State {
    async fn submit(&mut self, finding: types::Finding) -> wasmtime::Result<()> {
        let verdict = match finding.verdict {
            types::Verdict::Pass => outcome::Verdict::Pass,
            types::Verdict::Fail => outcome::Verdict::Fail,
            types::Verdict::Error => outcome::Verdict::Error,
            types::Verdict::Untested => outcome::Verdict::Untested,
        };
        let bound =
            |bound: types::Bound| outcome::Bound { name: bound.name, limit: bound.limit, observed: bound.observed };
        self.submit(outcome::Finding {
            check: finding.check,
            subject: finding.subject,
            step: finding.step,
            verdict,
            score: finding.score,
            reason: finding.reason,
            bound: finding.bound.map(bound),
            observed: finding.observed,
            evidence: finding.evidence,
        })
    }

    async fn measure(&mut self, measurement: types::Measurement) -> wasmtime::Result<()> {
        let value = match measurement.value {
            types::Reading::Number(number) => outcome::Reading::Number(number),
            types::Reading::Label(label) => outcome::Reading::Label(label),
        };
        self.measure(outcome::Measurement { metric: measurement.metric, subject: measurement.subject, value })
    }

    async fn score(&mut self, area: types::AreaScore) -> wasmtime::Result<()> {
        self.score(area.area, outcome::AreaScore { score: area.score, untimed: area.untimed })
    }

    async fn progress(&mut self, finished: u32, total: u32) -> wasmtime::Result<()> {
        self.progress(finished, total)
    }
}

impl log::Host for State {
    async fn line(&mut self, severity: log::Severity, text: String) -> wasmtime::Result<()> {
        let severity = match severity {
            log::Severity::Debug => "debug",
            log::Severity::Info => "info",
            log::Severity::Warn => "warn",
        };
        self.log.line(severity, &text);
        Ok(())
    }
}

impl schema::Host for State {
    async fn validate(
        &mut self,
        schema: types::Json,
        instance: types::Json,
    ) -> wasmtime::Result<Result<(), Vec<String>>> {
        host_call!(self, self.validate(schema, instance).await)
    }

    async fn check(&mut self, schema: types::Json) -> wasmtime::Result<Result<(), String>> {
        host_call!(self, self.check_schema(schema).await)
    }

    async fn example(&mut self, schema: types::Json) -> wasmtime::Result<Option<types::Json>> {
        host_call!(self, self.example(schema).await)
    }

    async fn counterexample(&mut self, schema: types::Json) -> wasmtime::Result<Option<types::Json>> {
        host_call!(self, self.counterexample(schema).await)
    }
}

impl text::Host for State {
    async fn matches(
        &mut self,
        pattern: String,
        subject: String,
        dialect: text::Dialect,
    ) -> wasmtime::Result<Result<bool, String>> {
        let dialect = match dialect {
            text::Dialect::Linear => Dialect::Linear,
            text::Dialect::Backtracking => Dialect::Backtracking,
        };
        host_call!(self, self.matches(pattern, subject, dialect).await)
    }
}

/// A manifest as ours.
pub(super) fn manifest(manifest: Manifest) -> probes::Manifest {
    let level = |level: types::Level| match level {
        types::Level::Must => outcome::Level::Must,
        types::Level::Should => outcome::Level::Should,
        types::Level::Advice => outcome::Level::Advice,
    };
    probes::Manifest {
        kind: manifest.kind,
        version: manifest.version,
        title: manifest.title,
        summary: manifest.summary,
        config_schema: manifest.config_schema,
        checks: manifest
            .checks
            .into_iter()
            .map(|check| probes::Check {
                id: check.id,
                level: level(check.level),
                title: check.title,
                reference: check.reference,
                area: check.area,
            })
            .collect(),
        reasons: manifest
            .reasons
            .into_iter()
            .map(|reason| probes::Reason { label: reason.label, hint: reason.hint, checks: reason.checks })
            .collect(),
        metrics: manifest
            .metrics
            .into_iter()
            .map(|metric| probes::Metric {
                name: metric.name,
                unit: metric.unit,
                area: metric.area,
                labels: metric.labels,
            })
            .collect(),
        needs: manifest.needs,
        access: match manifest.access {
            types::Access::ReadOnly => probes::Access::ReadOnly,
            types::Access::MayMutate => probes::Access::MayMutate,
        },
        asks: (manifest.asks.requests, manifest.asks.sessions, manifest.asks.millis),
    }
}

/// A case as the contract's.
pub(super) fn case(job: &super::run::Case) -> Case {
    Case {
        id: job.id.clone(),
        config: job.config.clone(),
        access: if job.may_mutate { types::Access::MayMutate } else { types::Access::ReadOnly },
        timeout_ms: millis(job.timeout),
        seed: job.seed,
    }
}
