//! How a conversation begins: the opening, the one retry it may have, and what to say when there is none.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::revision::{self, OFFERED, Revision};
use super::{
    Answer, Cause, Context, Fault, Hub, Inner, Invited, Link, Session, State, Tally, WAITING_ANSWERS, link_http,
    link_stdio, message, object,
};
use crate::wire::http::HttpWire;
use crate::wire::launch::Launch;
use crate::wire::sandbox::Guardian;
use crate::wire::stdio::StdioWire;

pub(super) const INITIALIZE: &str = "initialize";
const INITIALIZED: &str = "notifications/initialized";
/// How long a notification of the opening may take over HTTP.
const NOTIFY_PATIENCE: Duration = Duration::from_secs(15);

/// How to open a conversation.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Revision to offer; [`OFFERED`] when absent.
    pub revision: Option<String>,
    /// Client capabilities to declare, one JSON object on one line; `{}` when absent.
    pub capabilities: Option<String>,
    /// Leave every request of the server to the probe, `ping` included.
    pub manual: bool,
}

/// How a server is reached.
#[derive(Debug)]
pub enum Reach {
    /// A child for each conversation.
    Stdio {
        /// What to start.
        launch: Launch,
        /// Who ends it if we cannot.
        guardian: Guardian,
    },
    /// One endpoint.
    Http(HttpWire),
}

/// Open a conversation, with one more try if the server names a spoken revision instead (docs/standard.md).
pub(super) async fn open(
    reach: &Reach,
    hub: &Arc<Hub>,
    context: &Context,
    options: &Options,
    timeout: Duration,
) -> Result<Session, Fault> {
    let began = Instant::now();
    let offered = options.revision.as_deref().unwrap_or(OFFERED.date);
    let (session, answer) = offer(reach, hub, context, options, offered, timeout).await?;
    match judge(&answer) {
        Ok(revision) => complete(session, context, revision, &answer, began).await,
        Err(declined) => {
            session.end().await;
            let Some(other) = declined.instead.filter(|other| other.date != offered) else {
                return Err(declined.fault);
            };
            let (session, answer) = offer(reach, hub, context, options, other.date, timeout).await?;
            match judge(&answer) {
                Ok(revision) => complete(session, context, revision, &answer, began).await,
                Err(declined) => {
                    session.end().await;
                    Err(declined.fault)
                }
            }
        }
    }
}

/// Only the opening, on a connection of its own that then ends.
pub(super) async fn greet(
    reach: &Reach,
    hub: &Arc<Hub>,
    context: &Context,
    options: &Options,
    timeout: Duration,
) -> Result<Answer, Fault> {
    let offered = options.revision.as_deref().unwrap_or(OFFERED.date);
    let (session, answer) = offer(reach, hub, context, options, offered, timeout).await?;
    session.end().await;
    Ok(answer)
}

/// Connect and send `initialize`.
async fn offer(
    reach: &Reach,
    hub: &Arc<Hub>,
    context: &Context,
    options: &Options,
    revision: &str,
    timeout: Duration,
) -> Result<(Session, Answer), Fault> {
    // Both are charged before anything is started; the request's own charge is the one that counts it.
    context.ledger.session()?;
    let session = connect(reach, hub, context, options)?;
    let capabilities = options.capabilities.as_deref().unwrap_or("{}");
    let params = format!(
        "{{\"protocolVersion\":{},\"capabilities\":{capabilities},\"clientInfo\":{{\"name\":\"mcpeval\",\"version\":{}}}}}",
        message::quoted(revision),
        message::quoted(env!("CARGO_PKG_VERSION")),
    );
    match session.request(context, INITIALIZE, Some(&params), timeout).await {
        Ok(answer) => Ok((session, answer)),
        Err(fault) => {
            let detail = explain(&session, reach, &fault, timeout);
            let fault = Fault { detail, ..fault };
            session.end().await;
            Err(fault)
        }
    }
}

fn connect(reach: &Reach, hub: &Arc<Hub>, context: &Context, options: &Options) -> Result<Session, Fault> {
    let (link, reader) = match reach {
        Reach::Stdio { launch, guardian } => {
            let (wire, reader) = StdioWire::launch(launch, guardian)
                .map_err(|error| Fault::new(Cause::Unreachable, error.to_string()))?;
            (Link::Stdio(link_stdio::StdioLink::new(wire)), Some(reader))
        }
        Reach::Http(wire) => (Link::Http(link_http::HttpLink::new(wire.clone())), None),
    };
    let (answers, waiting_answers) = mpsc::channel(WAITING_ANSWERS);
    let capabilities = options.capabilities.as_deref().unwrap_or("{}");
    let inner = Arc::new(Inner {
        number: hub.next_conversation(),
        hub: Arc::clone(hub),
        link,
        state: Mutex::new(State {
            next_id: 0,
            waiting: std::collections::HashMap::new(),
            inbox: super::Inbox::default(),
            tally: Tally::default(),
            unanswered: std::collections::HashMap::new(),
            closed: None,
            tainted: false,
            invited: Invited::from_capabilities(capabilities, options.manual),
            batches: false,
            payer: Arc::clone(&context.ledger),
        }),
        opening: OnceLock::new(),
        answers,
    });
    if let (Link::Stdio(link), Some(reader)) = (&inner.link, reader) {
        link.read(Arc::downgrade(&inner), reader);
    }
    tokio::spawn(give_answers(Arc::downgrade(&inner), waiting_answers));
    Ok(Session { inner })
}

/// Send the host's own answers to requests of the server, one after another.
async fn give_answers(session: std::sync::Weak<Inner>, mut waiting: mpsc::Receiver<Vec<u8>>) {
    while let Some(answer) = waiting.recv().await {
        let Some(session) = session.upgrade() else { return };
        // A server that does not take an answer to its own request has itself to blame.
        let _ = session.deliver(answer, false, NOTIFY_PATIENCE).await;
    }
}

async fn complete(
    session: Session,
    context: &Context,
    revision: Revision,
    answer: &Answer,
    began: Instant,
) -> Result<Session, Fault> {
    if let Link::Http(link) = &session.inner.link {
        link.negotiated(revision.date);
    }
    session.inner.state().batches = revision.batches;
    let greeting = answer.reply.clone().unwrap_or_else(|_| "{}".into());
    let opening = super::Opening { revision, greeting, startup: Mutex::default() };
    // A second opening of one conversation does not happen: it is made in `connect` and completed here.
    let _ = session.inner.opening.set(opening);
    if let Err(fault) = session.notify(context, INITIALIZED, None, NOTIFY_PATIENCE).await {
        session.end().await;
        let detail = format!("{INITIALIZED} was not taken: {}", fault.detail);
        return Err(Fault { detail, ..fault });
    }
    session.inner.started(began.elapsed());
    Ok(session)
}

impl Inner {
    fn started(&self, startup: Duration) {
        if let Some(opening) = self.opening.get() {
            *opening.startup.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = startup;
        }
    }
}

struct Declined {
    fault: Fault,
    instead: Option<Revision>,
}

/// Which revision the server chose, or why none.
fn judge(answer: &Answer) -> Result<Revision, Declined> {
    let declined = |detail: String, instead| Declined {
        fault: Fault::new(Cause::Handshake, detail).citing(answer.exchange),
        instead,
    };
    match &answer.reply {
        Ok(result) => {
            let Some(chosen) = object::at(result, &["protocolVersion"]).and_then(object::string) else {
                return Err(declined("the server's answer to initialize names no protocolVersion".into(), None));
            };
            revision::find(&chosen).ok_or_else(|| {
                let version: String = chosen.chars().filter(|c| !c.is_control()).take(32).collect();
                declined(
                    format!("the server chose protocol revision \"{version}\", which mcpeval does not speak"),
                    None,
                )
            })
        }
        Err(error) => {
            let code = message::error_code(error).unwrap_or_default();
            let supported = object::at(error, &["data", "supported"]).and_then(object::items).unwrap_or_default();
            let supported: Vec<String> = supported.into_iter().filter_map(object::string).collect();
            let instead = revision::newest_of(supported.iter().map(String::as_str));
            Err(declined(format!("the server declined initialize with error {code}"), instead))
        }
    }
}

/// Say in one sentence why there was no answer to the opening, and what to look at.
fn explain(session: &Session, reach: &Reach, fault: &Fault, timeout: Duration) -> String {
    match reach {
        Reach::Stdio { .. } => explain_stdio(session, fault, timeout),
        Reach::Http(wire) => explain_http(wire, fault, timeout),
    }
}

fn explain_stdio(session: &Session, fault: &Fault, timeout: Duration) -> String {
    let tally = session.tally();
    let noise = match tally.noise {
        0 => String::new(),
        1 => "; before that it printed a line that is no JSON-RPC message".to_owned(),
        lines => format!("; before that it printed {lines} lines that are no JSON-RPC messages"),
    };
    let seconds = timeout.as_secs();
    match fault.cause {
        Cause::Closed => format!(
            "{} before it answered initialize{noise}; run the command by hand and look at its last stderr lines",
            fault.detail
        ),
        Cause::TimedOut if tally.noise > 0 => format!(
            "the server prints no JSON: {} line{} on stdout within {seconds} s, none of them an answer to initialize; send logs to stderr, stdout is for protocol messages only{}",
            tally.noise,
            plural(tally.noise),
            session.inner.first_noise(),
        ),
        Cause::TimedOut => format!(
            "the server is silent: it started, but did not answer initialize within {seconds} s; check that the command speaks MCP over stdio, or raise --startup-timeout"
        ),
        _ => format!("{}{noise}", fault.detail),
    }
}

fn explain_http(wire: &HttpWire, fault: &Fault, timeout: Duration) -> String {
    let url = wire.endpoint().url();
    match fault.cause {
        Cause::Status(401 | 403) => {
            format!("{url} wants authorization ({}); set MCPEVAL_HTTP_AUTHORIZATION or --header-env", fault.detail)
        }
        Cause::Status(_) | Cause::Malformed => {
            format!(
                "{url} is no MCP endpoint: it answered initialize with {}; check the path, often /mcp",
                fault.detail
            )
        }
        Cause::Unreachable => format!("{url} cannot be reached: {}", fault.detail),
        Cause::TimedOut => {
            format!(
                "{url} did not answer initialize within {} s; raise --startup-timeout if it is slow",
                timeout.as_secs()
            )
        }
        _ => format!("{url}: {}", fault.detail),
    }
}

const fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

impl Inner {
    /// A hint at what kind of noise came first.
    fn first_noise(&self) -> &'static str {
        let state = self.state();
        let first = state.inbox.first();
        match first {
            Some(text) if text.starts_with('\u{feff}') => {
                " (the first line begins with a byte order mark, which JSON forbids)"
            }
            Some(text) if text.to_ascii_lowercase().starts_with("content-length:") => {
                " (it speaks with Content-Length headers; MCP wants one message a line)"
            }
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(reply: Result<&str, &str>) -> Result<&'static str, Option<&'static str>> {
        let reply = reply.map(Arc::from).map_err(Arc::from);
        judge(&Answer { exchange: 1, elapsed_us: 1, status: None, reply })
            .map(|revision| revision.date)
            .map_err(|declined| declined.instead.map(|revision| revision.date))
    }

    #[test]
    fn only_an_object_names_a_revision() {
        assert_eq!(judged(Ok(r#"{"serverInfo":{"name":"\ud800"},"protocolVersion":"2025-06-18"}"#)), Ok("2025-06-18"));
        for result in [r#"["2025-06-18"]"#, r#"{"protocolVersion":["2025-06-18"]}"#, "null", "{}"] {
            assert_eq!(judged(Ok(result)), Err(None), "{result}");
        }
        let data = |data: &str| format!(r#"{{"code":-32602,"message":"no","data":{data}}}"#);
        assert_eq!(judged(Err(&data(r#"{"supported":["1999-01-01","2025-03-26",7]}"#))), Err(Some("2025-03-26")));
        assert_eq!(judged(Err(&data(r#"["2025-03-26"]"#))), Err(None));
    }
}
