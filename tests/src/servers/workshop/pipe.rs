//! The loop over standard input and output: one session, one thread a request.

use std::process::{self, ExitCode};
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

use super::talk::{Call, Line, Session};
use super::{End, Shop, desk};
use crate::servers::good::{Message, RpcError, response};
use crate::servers::stdio::{next_line, write};

/// Serves until standard input ends.
pub(super) fn serve(shop: &Shop) -> ExitCode {
    let session = Arc::new(Session::new(shop.number()));
    let line: Arc<Line> = Arc::new(|message: &Value| write(format!("{message}\n").as_bytes()));
    session.listen(Some(Arc::clone(&line)));
    let mut text = Vec::new();
    while next_line(&mut text) {
        let Some(message) = Message::read(&text) else { continue };
        if message.method.is_empty() {
            session.deliver(&serde_json::from_slice(&text).unwrap_or_default());
            continue;
        }
        shop.note(format!("{} {}", message.method, message.tool()).trim_end());
        if message.method == "notifications/cancelled" {
            session.cancel(&message.params["requestId"]);
        }
        let Some(id) = message.id.clone() else { continue };
        // Counted in the order of arrival.
        let count = session.count(message.params["name"].as_str().unwrap_or_default(), message.arguments());
        let (session, line) = (Arc::clone(&session), Arc::clone(&line));
        thread::spawn(move || {
            let call = Call { session: &session, id: &id, params: &message.params, line: &*line, count };
            let bytes = match desk::answer(&message.method, &call) {
                End::Reply(reply) => response(&id, &reply),
                End::Error(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string().into_bytes(),
                End::Silence | End::Closed => return,
                End::Hangup => process::exit(1),
                End::Unread | End::TooLarge => response(&Value::Null, &Err(RpcError::new(-32700, "Parse error"))),
            };
            // A client that has gone reads nothing.
            let _ = write(&[&bytes[..], b"\n"].concat());
        });
    }
    ExitCode::SUCCESS
}
