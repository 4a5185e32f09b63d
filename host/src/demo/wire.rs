//! The transport between a client and the good server, where a fault takes effect.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomResult, JsonRpcMessage, JsonRpcRequest, RequestId,
    ServerJsonRpcMessage, ServerNotification, ServerRequest, ServerResult,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::edit::{self, Asked, Call};
use super::faults::Fault;
use super::seat::{Scope, Seat};
use super::tools::{self, Act};

/// How long a slow tool takes.
const SLOW: Duration = Duration::from_millis(350);
/// An argument too long for a server that does not expect it, in bytes.
const LONG_ARGUMENT: usize = 100_000;
/// How often a server that floods asks again.
const FLOOD: u32 = 11;

/// A message on its way.
type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// A transport, good or with one fault.
pub(super) struct Wire<T> {
    inner: T,
    broken: Option<Broken>,
    opened: bool,
    /// Ends what is still running once the client has left.
    closing: Option<CancellationToken>,
}

impl<T> Wire<T> {
    pub(super) fn new(inner: T, fault: Option<Fault>, scope: Scope, closing: Option<CancellationToken>) -> Self {
        let broken =
            fault.map(|fault| Broken { fault, scope, seat: None, asked: HashMap::new(), calls: HashMap::new() });
        Self { inner, broken, opened: false, closing }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Wire<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (messages, delay) = match &mut self.broken {
            None => (vec![message], Duration::ZERO),
            Some(broken) => broken.outgoing(message),
        };
        let mut sends: Vec<Sending<T::Error>> = Vec::with_capacity(messages.len());
        for message in messages {
            sends.push(Box::pin(self.inner.send(message)));
        }
        async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            for send in sends {
                send.await?;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // Cancel-safe: the receive of the inner transport is the only await, and what it gave is used up at once.
        loop {
            let step = match self.inner.receive().await {
                None => Step::HangUp,
                // rmcp ends a session that begins with anything but a request; a good server ignores it.
                Some(message) if !self.opened && !matches!(message, JsonRpcMessage::Request(_)) => Step::Skip,
                Some(message) => match &mut self.broken {
                    None => Step::Pass(message),
                    Some(broken) => broken.incoming(message),
                },
            };
            match step {
                Step::Skip => {}
                Step::HangUp => {
                    if let Some(closing) = &self.closing {
                        closing.cancel();
                    }
                    return None;
                }
                Step::Pass(message) => {
                    self.opened |= is_initialize(&message);
                    return Some(message);
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[expect(clippy::large_enum_variant, reason = "one at a time, moved at once")]
enum Step {
    Pass(ClientJsonRpcMessage),
    Skip,
    /// End the session as if the client had left.
    HangUp,
}

fn is_initialize(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(JsonRpcRequest { request: ClientRequest::InitializeRequest(_), .. }))
}

/// Whether a message cancels a request, which a server with that fault does not hear.
pub(super) fn is_unheard(fault: Option<Fault>, message: &ClientJsonRpcMessage) -> bool {
    fault == Some(Fault::Cancellation)
        && matches!(message, JsonRpcMessage::Notification(notification)
            if matches!(notification.notification, ClientNotification::CancelledNotification(_)))
}

/// What a server with a fault knows of its session.
struct Broken {
    fault: Fault,
    scope: Scope,
    seat: Option<Seat>,
    /// Requests without a reply so far.
    asked: HashMap<RequestId, Asked>,
    /// Valid calls so far, by tool.
    calls: HashMap<&'static str, u32>,
}

impl Broken {
    fn incoming(&mut self, message: ClientJsonRpcMessage) -> Step {
        if is_unheard(Some(self.fault), &message) {
            return Step::Skip;
        }
        match message {
            JsonRpcMessage::Request(request) => self.request(request),
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
                if matches!(self.fault, Fault::SamplingStall | Fault::ElicitationStall) =>
            {
                Step::Skip
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.asked.remove(id);
                }
                Step::Pass(JsonRpcMessage::Notification(notification))
            }
            message => Step::Pass(message),
        }
    }

    fn request(&mut self, mut message: JsonRpcRequest<ClientRequest>) -> Step {
        let call = match &mut message.request {
            ClientRequest::CallToolRequest(call) => {
                let tool = tools::find(&call.params.name);
                let arguments = call.params.arguments.get_or_insert_default();
                if self.fault == Fault::Shapeless
                    && arguments.is_empty()
                    && let Some(tool) = tool
                {
                    *arguments = tool.example();
                }
                if self.fault == Fault::UnhandledPayload && arguments.values().any(is_long) {
                    return Step::HangUp;
                }
                let valid = tool.is_some_and(|tool| tool.complaint(arguments).is_none());
                if tool.is_some_and(|tool| tool.act == Act::WordStats)
                    && self.fault == (if valid { Fault::Dying } else { Fault::DiesOnInvalid })
                {
                    return Step::HangUp;
                }
                tool.map(|tool| {
                    let seen = self.calls.entry(tool.name).or_default();
                    *seen = seen.saturating_add(u32::from(valid));
                    Call { tool, valid, nth: *seen }
                })
            }
            ClientRequest::ListPromptsRequest(list) if self.fault == Fault::SurfaceCursor => {
                list.params = None;
                None
            }
            ClientRequest::CustomRequest(_) if self.fault == Fault::UnknownMethodDies => return Step::HangUp,
            _ => None,
        };
        if self.fault == Fault::Contention && self.seat.is_none() {
            self.seat = self.scope.take();
        }
        let mut request = serde_json::to_value(&message.request).unwrap_or_default();
        let asked = Asked {
            method: message.request.method().to_owned(),
            params: request.get_mut("params").map(Value::take).unwrap_or_default(),
            call,
            seated: self.seat.is_some(),
        };
        self.asked.insert(message.id.clone(), asked);
        Step::Pass(JsonRpcMessage::Request(message))
    }

    /// The messages to send in place of this one, and when.
    fn outgoing(&mut self, message: ServerJsonRpcMessage) -> (Vec<ServerJsonRpcMessage>, Duration) {
        let messages = match message {
            JsonRpcMessage::Response(response) => {
                let Some(asked) = self.asked.remove(&response.id) else {
                    return (vec![JsonRpcMessage::Response(response)], Duration::ZERO);
                };
                let late = self.fault == Fault::Slow
                    && asked.call.as_ref().is_some_and(|call| call.valid && call.tool.act == Act::WordStats);
                let good = serde_json::to_value(&response.result).unwrap_or_default();
                let reply = edit::reply(self.fault, &asked, Ok(good));
                return (vec![message_of(reply, response.id)], if late { SLOW } else { Duration::ZERO });
            }
            JsonRpcMessage::Error(error) => {
                let asked = error.id.as_ref().and_then(|id| Some((id.clone(), self.asked.remove(id)?)));
                match asked {
                    Some((id, asked)) => vec![message_of(edit::reply(self.fault, &asked, Err(error.error)), id)],
                    None => vec![JsonRpcMessage::Error(error)],
                }
            }
            JsonRpcMessage::Request(request) => self.questions(request),
            JsonRpcMessage::Notification(notification) => {
                let unsent = self.fault == Fault::Subscription
                    && matches!(notification.notification, ServerNotification::ResourceUpdatedNotification(_));
                if unsent { Vec::new() } else { vec![JsonRpcMessage::Notification(notification)] }
            }
        };
        (messages, Duration::ZERO)
    }

    fn questions(&self, mut message: JsonRpcRequest<ServerRequest>) -> Vec<ServerJsonRpcMessage> {
        let mut again = 0;
        if let ServerRequest::CustomRequest(question) = &mut message.request {
            if let Some(params) = &mut question.params {
                edit::question(self.fault, &question.method, params);
            }
            if edit::floods(self.fault, &question.method) {
                again = FLOOD;
            }
        }
        let copies = (1..=again).map(|copy| {
            let id = RequestId::String(format!("{}-again-{copy}", message.id).into());
            JsonRpcMessage::Request(JsonRpcRequest::new(id, message.request.clone()))
        });
        // The question whose answer ends the call comes last, so that all of them are out before it can.
        let mut messages: Vec<_> = copies.collect();
        messages.push(JsonRpcMessage::Request(message));
        messages
    }
}

fn message_of(reply: edit::Reply, id: RequestId) -> ServerJsonRpcMessage {
    match reply {
        Ok(result) => JsonRpcMessage::response(ServerResult::CustomResult(CustomResult(result)), id),
        Err(error) => JsonRpcMessage::error(error, Some(id)),
    }
}

fn is_long(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() >= LONG_ARGUMENT)
}
