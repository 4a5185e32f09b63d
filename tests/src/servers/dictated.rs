//! A server that says what it is told to say: whatever a request's `_meta` names, byte for byte. With it a test decides
//! what passes a recorder in both directions.

use serde_json::{Value, json};

use super::good::{Good, Message, response};
use super::stdio::{log, next_line, write};
use super::{Fixture, Sin};

/// The member of `params._meta` that holds the lines to write in place of an answer: an array of texts.
pub const LINES: &str = "lines";
/// The member of `params._meta` that holds what to write to standard error first.
pub const LOG: &str = "log";
/// The member of `params._meta` that ends the server, with that exit code, after its lines.
pub const EXIT: &str = "exit";

pub(super) const FIXTURES: &[Fixture] =
    &[Fixture { name: "dictated", about: "writes what a request's _meta dictates", sin: Sin::Life(serve) }];

fn serve(good: &mut Good) {
    let mut line = Vec::new();
    while next_line(&mut line) {
        let Some(mut message) = Message::read(&line) else { continue };
        good.receive(&mut message);
        if obey(good, &message).is_err() {
            return;
        }
    }
}

fn obey(good: &Good, message: &Message) -> std::io::Result<()> {
    let told = &message.params["_meta"];
    if let Some(text) = told[LOG].as_str() {
        log(text);
    }
    match (told[LINES].as_array(), &message.id) {
        (Some(lines), _) => {
            for text in lines.iter().filter_map(Value::as_str) {
                write(format!("{text}\n").as_bytes())?;
            }
        }
        (None, Some(id)) => {
            let reply = if message.tool().is_empty() { good.answer(message) } else { Ok(json!({"content": []})) };
            write(&[response(id, &reply).as_slice(), b"\n"].concat())?;
        }
        (None, None) => {}
    }
    if let Some(code) = told[EXIT].as_i64() {
        std::process::exit(i32::try_from(code).unwrap_or(1));
    }
    Ok(())
}
