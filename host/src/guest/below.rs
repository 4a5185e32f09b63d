//! The two powers below the protocol: bytes on a child's pipes, and HTTP of any shape to the target's own address. They
//! pass the same ledger and the same policy as everything else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Mutex;
use wasmtime::component::Resource;

use super::caps::Given;
use super::state::State;
use crate::outcome::ExchangeId;
use crate::session::policy::LineGate;
use crate::session::target::Reach;
use crate::session::{Cause, Fault};
use crate::transcript::Direction;
use crate::wire::http::{HttpError, Response};
use crate::wire::stdio::{Ending, StdioReader, StdioWire};

/// A child's pipes, as one component holds them.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct PipeHandle {
    wire: StdioWire,
    reader: Arc<Mutex<StdioReader>>,
    gate: LineGate,
    number: u32,
}

/// An HTTP exchange, as one component holds it.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct HttpHandle {
    exchange: Arc<Mutex<HttpExchange>>,
    number: u32,
}

#[derive(Debug)]
enum HttpExchange {
    UnderWay(tokio::task::JoinHandle<Result<Response, HttpError>>),
    Answered(Response),
    Failed,
}

impl Drop for HttpExchange {
    fn drop(&mut self) {
        if let Self::UnderWay(task) = self {
            task.abort();
        }
    }
}

/// What a component may receive as head and body of an HTTP answer.
pub(super) struct Head {
    pub(super) exchange: ExchangeId,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, Vec<u8>)>,
}

/// Bytes as they came.
pub(super) struct Chunk {
    pub(super) exchange: ExchangeId,
    pub(super) bytes: Vec<u8>,
    pub(super) last: bool,
}

impl State {
    // Bytes on a child's pipes.

    pub(super) fn open_pipe(&mut self) -> Given<Resource<PipeHandle>> {
        let run = self.run()?;
        let Reach::Stdio { launch, guardian } = run.target.reach() else {
            return Ok(Err(Fault::new(Cause::Other, "the target has no pipes: it is reached over HTTP")));
        };
        if let Err(refusal) = run.context.ledger.session() {
            return Ok(self.note(Err(refusal.into())));
        }
        let (wire, reader) = match StdioWire::launch(launch, guardian) {
            Ok(launched) => launched,
            Err(error) => return Ok(Err(Fault::new(Cause::Unreachable, error.to_string()))),
        };
        let number = run.target.hub().next_conversation();
        run.pipes.push(wire.clone());
        let reader = Arc::new(Mutex::new(reader));
        Ok(Ok(self.table.push(PipeHandle { wire, reader, gate: LineGate::default(), number })?))
    }

    pub(super) async fn pipe_send(&mut self, handle: &Resource<PipeHandle>, bytes: Vec<u8>) -> Given<ExchangeId> {
        let run = self.run()?;
        let (context, timeout, target) = (run.context.clone(), run.timeout, Arc::clone(&run.target));
        let pipe = self.table.get_mut(handle)?;
        if let Err(denial) = pipe.gate.permits(&context.policy, &bytes) {
            return Ok(self.note(Err(denial.into())));
        }
        let (wire, number) = (pipe.wire.clone(), pipe.number);
        let lines = bytes.split(|byte| *byte == b'\n').count().saturating_sub(1).max(1);
        for _ in 0..lines {
            if let Err(refusal) = context.ledger.request() {
                return Ok(self.note(Err(refusal.into())));
            }
        }
        let exchange = target.hub().transcript.record(Direction::Sent, number, &bytes);
        let sent = tokio::time::timeout(timeout, wire.send(Bytes::from(bytes))).await;
        Ok(match sent {
            Ok(Ok(())) => Ok(exchange),
            Ok(Err(_)) => Err(Fault::new(Cause::Closed, "the server has closed its stdin").citing(exchange)),
            Err(_) => Err(Fault::new(Cause::TimedOut, "the server does not read its stdin").citing(exchange)),
        })
    }

    pub(super) async fn pipe_receive(&mut self, handle: &Resource<PipeHandle>, wait_ms: u32) -> Given<Option<Chunk>> {
        let run = self.run()?;
        let (context, target) = (run.context.clone(), Arc::clone(&run.target));
        let pipe = self.table.get(handle)?;
        let (reader, number) = (Arc::clone(&pipe.reader), pipe.number);
        if let Err(refusal) = context.ledger.open() {
            return Ok(self.note(Err(refusal.into())));
        }
        let wait = Duration::from_millis(wait_ms.into()).min(context.ledger.remaining().time);
        let mut reader = reader.lock().await;
        Ok(Ok(match tokio::time::timeout(wait, reader.chunk()).await {
            Err(_) => None,
            Ok(received) => {
                let bytes = received.map(|(bytes, _)| bytes);
                let last = bytes.is_none();
                let bytes = bytes.unwrap_or_default().to_vec();
                context.ledger.received(bytes.len() as u64);
                let exchange = target.hub().transcript.record(Direction::Received, number, &bytes);
                Some(Chunk { exchange, bytes, last })
            }
        }))
    }

    pub(super) fn pipe_wire(&self, handle: &Resource<PipeHandle>) -> wasmtime::Result<StdioWire> {
        Ok(self.table.get(handle)?.wire.clone())
    }

    pub(super) async fn pipe_ending(
        &mut self,
        handle: &Resource<PipeHandle>,
        wait_ms: u32,
    ) -> wasmtime::Result<Option<Ending>> {
        let wire = self.pipe_wire(handle)?;
        let wait = Duration::from_millis(wait_ms.into()).min(self.run()?.context.ledger.remaining().time);
        Ok(wire.ending(wait).await)
    }

    pub(super) async fn drop_pipe(&mut self, handle: Resource<PipeHandle>) -> wasmtime::Result<()> {
        let pipe = self.table.delete(handle)?;
        pipe.wire.end().await;
        Ok(())
    }

    // HTTP of any shape.

    pub(super) fn send_http(
        &mut self,
        method: String,
        headers: Vec<(String, Vec<u8>)>,
        body: Vec<u8>,
    ) -> Given<Resource<HttpHandle>> {
        let run = self.run()?;
        let Reach::Http(wire) = run.target.reach() else {
            return Ok(Err(Fault::new(Cause::Other, "the target speaks over pipes, not HTTP")));
        };
        let wire = wire.clone();
        let context = run.context.clone();
        let hub = Arc::clone(run.target.hub());
        let allowed: Result<(), Fault> = context
            .policy
            .permits_http(&headers, &body)
            .map_err(Fault::from)
            .and_then(|()| context.ledger.request().map_err(Fault::from));
        if let Err(fault) = allowed {
            return Ok(self.note(Err(fault)));
        }
        let number = hub.next_conversation();
        hub.transcript.record(Direction::Sent, number, &body);
        let task = tokio::spawn(async move { wire.raw(&method, headers, Bytes::from(body)).await });
        let exchange = Arc::new(Mutex::new(HttpExchange::UnderWay(task)));
        Ok(Ok(self.table.push(HttpHandle { exchange, number })?))
    }

    pub(super) async fn http_head(&mut self, handle: &Resource<HttpHandle>, wait_ms: u32) -> Given<Option<Head>> {
        let outcome = self.http_answer(handle, wait_ms).await?;
        let HttpHandle { number, .. } = self.table.get(handle)?;
        let number = *number;
        let run = self.run()?;
        Ok(match outcome {
            Ok(Some((status, headers))) => {
                let line = format!("HTTP {status}");
                let exchange = run.target.hub().transcript.record(Direction::Received, number, line.as_bytes());
                Ok(Some(Head { exchange, status, headers }))
            }
            Ok(None) => Ok(None),
            Err(fault) => Err(fault),
        })
    }

    async fn http_answer(
        &mut self,
        handle: &Resource<HttpHandle>,
        wait_ms: u32,
    ) -> Given<Option<(u16, Vec<(String, Vec<u8>)>)>> {
        let context = self.run()?.context.clone();
        let exchange = Arc::clone(&self.table.get(handle)?.exchange);
        if let Err(refusal) = context.ledger.open() {
            return Ok(self.note(Err(refusal.into())));
        }
        let wait = Duration::from_millis(wait_ms.into()).min(context.ledger.remaining().time);
        let mut exchange = exchange.lock().await;
        if let HttpExchange::UnderWay(task) = &mut *exchange {
            match tokio::time::timeout(wait, task).await {
                Err(_) => return Ok(Ok(None)),
                Ok(Ok(Ok(response))) => *exchange = HttpExchange::Answered(response),
                Ok(Ok(Err(error))) => {
                    *exchange = HttpExchange::Failed;
                    return Ok(Err(crate::session::http_fault(&error)));
                }
                Ok(Err(_)) => *exchange = HttpExchange::Failed,
            }
        }
        Ok(match &*exchange {
            HttpExchange::Answered(response) => Ok(Some((response.status, response.headers.clone()))),
            _ => Err(Fault::new(Cause::Closed, "this exchange has ended")),
        })
    }

    pub(super) async fn http_read(&mut self, handle: &Resource<HttpHandle>, wait_ms: u32) -> Given<Option<Chunk>> {
        let began = Instant::now();
        match self.http_answer(handle, wait_ms).await? {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Ok(None)),
            Err(fault) => return Ok(Err(fault)),
        }
        let run = self.run()?;
        let (context, hub) = (run.context.clone(), Arc::clone(run.target.hub()));
        let HttpHandle { exchange, number } = self.table.get(handle)?;
        let (exchange, number) = (Arc::clone(exchange), *number);
        let wait = Duration::from_millis(wait_ms.into()).saturating_sub(began.elapsed());
        let wait = wait.min(context.ledger.remaining().time);
        let mut exchange = exchange.lock().await;
        let HttpExchange::Answered(response) = &mut *exchange else {
            return Ok(Err(Fault::new(Cause::Closed, "this exchange has ended")));
        };
        Ok(match tokio::time::timeout(wait, response.chunk()).await {
            Err(_) => Ok(None),
            Ok(Err(error)) => Err(crate::session::http_fault(&error)),
            Ok(Ok(received)) => {
                let last = received.is_none();
                let bytes = received.map(|(bytes, _)| bytes.to_vec()).unwrap_or_default();
                context.ledger.received(bytes.len() as u64);
                let exchange = hub.transcript.record(Direction::Received, number, &bytes);
                Ok(Some(Chunk { exchange, bytes, last }))
            }
        })
    }
}
