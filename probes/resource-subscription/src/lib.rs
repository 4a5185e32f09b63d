//! Kind `resource-subscription`: who subscribed to a resource is told that it changed.
//!
//! Read, subscribe, trigger, wait, unsubscribe: the steps that count, on a session of its own.

use std::convert::Infallible;
use std::ops::ControlFlow;

use mcpeval_probe::judge::{Fields, ToolCall, Trial, UNEXPECTED_OUTCOME, attend, integer, unread};
use mcpeval_probe::{
    Answer, Case, Cause, Check, ExchangeId, Fault, Finding, Incoming, IncomingKind, Level, Manifest, Options, Outcome,
    Params, Probe, Session, Target, View, json, log,
};

const READABLE: &str = "resource-subscription.readable";
const SUBSCRIBED: &str = "resource-subscription.subscribed";
const TRIGGERED: &str = "resource-subscription.triggered";
const NOTIFIED: &str = "resource-subscription.notified";
const UNSUBSCRIBED: &str = "resource-subscription.unsubscribed";

const UNREADABLE: &str = "resource-unreadable";
const REJECTED: &str = "subscription-rejected";
const MISSING: &str = "subscription-notification-missing";

const UPDATED: &str = "notifications/resources/updated";

/// The component of kind `resource-subscription`.
#[derive(Clone, Copy, Debug)]
pub struct ResourceSubscription;

/// Whether an update of `updated` is one of the resource or of a part of it.
fn covers(uri: &str, updated: &str) -> bool {
    let Some(rest) = updated.strip_prefix(uri) else { return false };
    rest.is_empty() || uri.ends_with('/') || rest.starts_with(['/', '?', '#'])
}

/// Listens for the first update of a resource.
struct Listener<'a> {
    uri: &'a str,
    session: &'a Session,
    heard: Option<ExchangeId>,
}

impl Listener<'_> {
    fn heed(&mut self, incoming: &Incoming) {
        let updates = |message: View<'_>| {
            let [method, params] = message.pick(["method", "params"])?;
            let updated = params?.member("uri")?.string()?;
            Some(method?.string()? == UPDATED && covers(self.uri, &updated))
        };
        if incoming.kind == IncomingKind::Notification && updates(incoming.message.view()) == Some(true) {
            self.heard.get_or_insert(incoming.exchange);
        }
    }

    /// Sends a request and listens until it is answered.
    fn request(&mut self, method: &str, params: impl Params) -> Result<Answer, Fault> {
        let session = self.session;
        let pending = session.start(method, params)?;
        let heed = |incoming: &Incoming| {
            self.heed(incoming);
            Ok(ControlFlow::<Infallible>::Continue(()))
        };
        match attend(session, &pending, heed)? {
            ControlFlow::Continue(answer) => Ok(answer),
            ControlFlow::Break(never) => match never {},
        }
    }

    /// Listens for so long, or until an update was heard.
    fn wait(&mut self, target: &Target, wait_ms: u32) -> Result<(), Fault> {
        let began = target.remaining().millis;
        let mut left = wait_ms;
        while self.heard.is_none() && left > 0 {
            if let Some(incoming) = self.session.receive(left)? {
                self.heed(&incoming);
            }
            left = wait_ms.saturating_sub(began.saturating_sub(target.remaining().millis));
        }
        Ok(())
    }
}

/// Opens the stream for messages that belong to no request. Where a server has none, it sends them on the streams of
/// requests.
fn open_stream(session: &Session) -> Result<(), Fault> {
    match session.listen() {
        Ok(_) => Ok(()),
        Err(fault) if matches!(fault.cause, Cause::Status(_)) => {
            log::info(&fault.detail);
            Ok(())
        }
        Err(fault) => Err(fault),
    }
}

impl Probe for ResourceSubscription {
    fn manifest() -> Manifest {
        let resources = "https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions";
        let check = |id, title| Check::new(id, Level::Must, title).reference(resources);
        let config = Fields::new()
            .required("uri", json!({"type": "string", "minLength": 1, "maxLength": 512}))
            .optional_call_as("trigger_tool", "trigger_arguments")
            .required("max_wait_seconds", integer(1, 60));
        Manifest::new("resource-subscription", env!("CARGO_PKG_VERSION"), "A subscriber is told of updates")
            .summary("Reads a resource, subscribes to it, calls the tool that changes it, and waits for the update.")
            .config(config.schema())
            .check(check(READABLE, "The resource can be read"))
            .check(check(SUBSCRIBED, "It can be subscribed to"))
            .check(Check::new(TRIGGERED, Level::Should, "The tool that changes it succeeds"))
            .check(check(NOTIFIED, "The update is notified in time"))
            .check(check(UNSUBSCRIBED, "The subscription can be ended"))
            .reason(
                UNREADABLE,
                "resources/read of the subscribed URI gave an error or no array contents; make every listed resource readable, \
                 or correct uri in the case.",
                &[READABLE],
            )
            .reason(
                REJECTED,
                "resources/subscribe or resources/unsubscribe gave an error although resources.subscribe is declared; answer \
                 both with an empty result for every resource that can be read, or do not declare subscribe.",
                &[SUBSCRIBED, UNSUBSCRIBED],
            )
            .common_reason(UNEXPECTED_OUTCOME, &[TRIGGERED])
            .reason(
                MISSING,
                "No notifications/resources/updated with the subscribed URI came within max_wait_seconds; send it to every \
                 session that subscribed, with the URI spelled as in the subscription, over HTTP on the stream that GET \
                 opens, or raise max_wait_seconds.",
                &[NOTIFIED],
            )
            .needs("resources.subscribe")
            .asks(5, 1, 3_000)
    }

    fn run(target: &Target, case: &Case) -> Result<Outcome, Fault> {
        let uri = case.string("uri")?;
        let wait_ms = case.number("max_wait_seconds")?.saturating_mul(1_000);
        let trigger = match case.field("trigger_tool") {
            Some(_) => Some(ToolCall::read(case.fields.view(), "trigger_tool", "trigger_arguments")?),
            None => None,
        };
        let mut trial = Trial::new(if trigger.is_some() {
            &[READABLE, SUBSCRIBED, TRIGGERED, NOTIFIED, UNSUBSCRIBED]
        } else {
            &[READABLE, SUBSCRIBED, NOTIFIED, UNSUBSCRIBED]
        });
        let session = target.open(Options::default())?;
        open_stream(&session)?;
        let resource = json!({"uri": uri});

        let read = session.request("resources/read", &resource)?;
        trial.attempt([read.exchange]);
        if !read.object().and_then(|result| result.member("contents")).is_some_and(View::is_array) {
            return Ok(trial.fail(Finding::fail(READABLE, UNREADABLE)));
        }

        // What came before is no answer to the subscription.
        let _: ControlFlow<()> = unread(&session, |_| Ok(ControlFlow::Continue(())))?;
        let mut listener = Listener { uri: &uri, session: &session, heard: None };
        let subscribed = listener.request("resources/subscribe", &resource)?;
        trial.attempt([subscribed.exchange]);
        if subscribed.object().is_none() {
            return Ok(trial.fail(Finding::fail(SUBSCRIBED, REJECTED)));
        }

        if let Some(trigger) = trigger {
            let triggered = listener.request("tools/call", trigger.params())?.structured()?;
            trial.attempt([triggered.exchange]);
            if !triggered.succeeded() {
                return Ok(trial.fail(Finding::fail(TRIGGERED, UNEXPECTED_OUTCOME.label)));
            }
        }

        listener.wait(target, wait_ms)?;
        trial.attempt(listener.heard);
        if listener.heard.is_none() {
            return Ok(trial.fail(Finding::fail(NOTIFIED, MISSING)));
        }

        let unsubscribed = session.request("resources/unsubscribe", &resource)?;
        trial.attempt([unsubscribed.exchange]);
        Ok(if unsubscribed.object().is_some() {
            trial.pass()
        } else {
            trial.fail(Finding::fail(UNSUBSCRIBED, REJECTED))
        })
    }
}

mcpeval_probe::export!(ResourceSubscription);

#[cfg(test)]
mod tests {
    use mcpeval_probe::Value;
    use mcpeval_probe::testing::{Reply, Run, Script, Sent};

    use super::*;

    const URI: &str = "demo://clock";

    fn update(uri: &str) -> Value {
        json!({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}})
    }

    /// A server that tells the update so long after the trigger.
    fn good(after_ms: u32) -> impl Fn(&Sent) -> Reply {
        move |sent| match sent.method.as_str() {
            "resources/read" => Reply::result(json!({"contents": [{"uri": URI, "text": "noon"}]})),
            "tools/call" => {
                Reply::result(json!({"content": []})).beside(after_ms, IncomingKind::Notification, update(URI))
            }
            _ => Reply::result(json!({})),
        }
    }

    fn script(answer: impl Fn(&Sent) -> Reply + 'static) -> Script {
        let tool = json!({"name": "tick", "inputSchema": {}, "annotations": {"readOnlyHint": true}});
        Script::new([tool]).on_request(answer)
    }

    fn run(script: Script) -> Run {
        script.run::<ResourceSubscription>(json!({"uri": URI, "trigger_tool": "tick", "max_wait_seconds": 2}))
    }

    fn judged(run: &Run) -> (Option<(String, String)>, u32, Option<u32>) {
        let outcome = run.outcome.as_ref().unwrap();
        let lost = run.lost().pop().map(|(check, _, reason)| (check, reason));
        (lost, outcome.attempts, outcome.first_failure)
    }

    fn failed(check: &str, reason: &str, step: u32) -> (Option<(String, String)>, u32, Option<u32>) {
        (Some((check.to_owned(), reason.to_owned())), step, Some(step))
    }

    /// A good server but for one method.
    fn but(method: &'static str, reply: impl Fn() -> Reply + 'static) -> Run {
        let good = good(1);
        run(script(move |sent| if sent.method == method { reply() } else { good(sent) }))
    }

    #[test]
    fn an_update_in_time_passes() {
        // The call takes a millisecond, and the wait counts from its end.
        for after_ms in [0, 1, 700, 2_001] {
            let run = run(script(good(after_ms)).http());
            assert_eq!(judged(&run), (None, 5, None), "{after_ms}");
            let steps = ["resources/read", "resources/subscribe", "tools/call", "resources/unsubscribe"];
            assert_eq!((run.methods(), &run.listened[..]), (steps.to_vec(), &[1][..]));
            assert!(run.sent.iter().all(|sent| sent.session == 1), "a session of its own");
        }
        assert_eq!(judged(&run(script(good(2_002)))), failed(NOTIFIED, MISSING, 4));
        assert_eq!(judged(&run(script(good(5)).no_stream())), (None, 5, None), "405 is no fault");
    }

    #[test]
    fn the_update_must_be_of_the_resource() {
        let told = |uri: &'static str| {
            let good = good(9_000);
            judged(&run(script(move |sent| good(sent).beside(1, IncomingKind::Notification, update(uri)))))
        };
        assert_eq!(told("demo://clock"), (None, 5, None));
        assert_eq!(told("demo://clock/hands"), (None, 5, None), "a part of it");
        assert_eq!(told("demo://clocks"), failed(NOTIFIED, MISSING, 4));
        assert_eq!(told("demo://"), failed(NOTIFIED, MISSING, 4));
        let other = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"uri": URI}});
        let listed = but("tools/call", move || {
            Reply::result(json!({"content": []})).before(IncomingKind::Notification, other.clone())
        });
        assert_eq!(judged(&listed), failed(NOTIFIED, MISSING, 4));
        assert!(covers("file:///a/", "file:///a/b"));
    }

    #[test]
    fn an_update_between_subscription_and_trigger_counts() {
        let early =
            but("resources/subscribe", || Reply::result(json!({})).before(IncomingKind::Notification, update(URI)));
        assert_eq!(judged(&early), (None, 5, None));
        let (before, good) = (json!({"contents": []}), good(9_000));
        let too_early = run(script(move |sent| match sent.method.as_str() {
            "resources/read" => Reply::result(before.clone()).before(IncomingKind::Notification, update(URI)),
            _ => good(sent),
        }));
        assert_eq!(judged(&too_early), failed(NOTIFIED, MISSING, 4));
    }

    #[test]
    fn without_a_trigger_the_update_is_awaited_all_the_same() {
        let wait = |after_ms: u32| {
            let good = good(0);
            let script = script(move |sent| match sent.method.as_str() {
                "resources/subscribe" => good(sent).beside(after_ms, IncomingKind::Notification, update(URI)),
                _ => good(sent),
            });
            script.run::<ResourceSubscription>(json!({"uri": URI, "trigger_tool": null, "max_wait_seconds": 1}))
        };
        assert_eq!(judged(&wait(900)), (None, 4, None));
        assert_eq!(judged(&wait(1_002)), failed(NOTIFIED, MISSING, 3));
    }

    #[test]
    fn every_step_has_its_reason() {
        let error = || Reply::error(-32603, "no");
        assert_eq!(judged(&but("resources/read", error)), failed(READABLE, UNREADABLE, 1));
        let empty = || Reply::result(json!({}));
        assert_eq!(judged(&but("resources/read", empty)), failed(READABLE, UNREADABLE, 1));
        assert_eq!(judged(&but("resources/subscribe", error)), failed(SUBSCRIBED, REJECTED, 2));
        assert_eq!(judged(&but("tools/call", error)), failed(TRIGGERED, UNEXPECTED_OUTCOME.label, 3));
        let tool_error = || Reply::result(json!({"isError": true}));
        assert_eq!(judged(&but("tools/call", tool_error)), failed(TRIGGERED, UNEXPECTED_OUTCOME.label, 3));
        assert_eq!(judged(&but("resources/unsubscribe", error)), failed(UNSUBSCRIBED, REJECTED, 5));
    }

    #[test]
    fn other_faults_give_no_verdict() {
        for method in ["resources/read", "resources/subscribe", "tools/call", "resources/unsubscribe"] {
            let run = but(method, || Reply::fault(Cause::Closed));
            assert_eq!(run.outcome.unwrap_err().cause, Cause::Closed, "{method}");
        }
        assert_eq!(
            run(script(good(0)).on_open(|_| Err(Cause::Unreachable))).outcome.unwrap_err().cause,
            Cause::Unreachable
        );
    }
}
