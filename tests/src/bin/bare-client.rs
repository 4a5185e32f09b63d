//! The barest client there can be, to measure against: `bare-client record LOG -- CMD...` stands between a client and
//! its server and writes down who sent what when; `bare-client replay LOG -- CMD...` sends the same bytes in the same
//! order to the same server and reads the answers, without a look at them.

use std::process::ExitCode;

use mcpeval_tests::replay;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [verb, log, dashes, command @ ..] if dashes == "--" && !command.is_empty() => match verb.as_str() {
            "record" => replay::record(log.as_ref(), command),
            "replay" => replay::replay(log.as_ref(), command),
            _ => Err(std::io::Error::other("the verb is record or replay")),
        },
        _ => Err(std::io::Error::other("usage: bare-client record|replay LOG -- CMD...")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => mcpeval_tests::servers::stdio::complain(&error.to_string()),
    }
}
