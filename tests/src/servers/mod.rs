//! Fixture servers: one small good server, and the same with one sin each, as loops written by hand over standard
//! input and output or over HTTP/1.1.
//!
//! | module | owns |
//! |---|---|
//! | [`good`] | the catalog and the right answers |
//! | [`catalogs`] | sins of what is listed |
//! | [`dictated`] | a server that writes what a request tells it to |
//! | [`answers`] | sins of what is answered |
//! | [`lines`] | sins of how the bytes of an answer look on standard output |
//! | [`lives`] | sins of the process: start, end, floods, children, signals |
//! | [`profiles`] | sins that only some clients see, and catalogs for a first manifest |
//! | [`http`] | the HTTP loop, and the sins of status lines, headers, bodies and streams |
//! | [`workshop`] | a server whose tools each do one thing right or wrong, for the kinds of a manifest |

pub mod answers;
pub mod catalogs;
pub mod dictated;
pub mod good;
pub mod http;
pub mod lines;
pub mod lives;
pub mod profiles;
pub mod stdio;
pub mod workshop;

use std::process::ExitCode;

use good::Good;

/// A server with one sin.
#[derive(Debug, Clone, Copy)]
pub struct Fixture {
    /// The word on the command line.
    pub name: &'static str,
    /// What it does wrong, as one line.
    pub about: &'static str,
    /// The sin.
    pub sin: Sin,
}

/// Where the good server is bent.
#[derive(Debug, Clone, Copy)]
pub enum Sin {
    /// Another catalog.
    Catalog(fn(&mut Good)),
    /// Another answer to some request; `None` leaves it to the good server.
    Answer(answers::Answer),
    /// Other bytes for an answer on standard output.
    Line(lines::Line),
    /// Another life on standard input and output.
    Life(fn(&mut Good)),
    /// Another way over HTTP.
    Http(http::Bend),
    /// Another server: a workshop.
    Workshop(fn(&mut workshop::Shop)),
}

impl Fixture {
    /// Whether the sin can only be seen over HTTP.
    pub const fn is_http(&self) -> bool {
        matches!(self.sin, Sin::Http(_))
    }
}

/// All fixture servers.
pub fn all() -> impl Iterator<Item = &'static Fixture> {
    let all = [
        good::FIXTURES,
        catalogs::FIXTURES,
        answers::FIXTURES,
        lines::FIXTURES,
        lives::FIXTURES,
        profiles::FIXTURES,
        http::FIXTURES,
        workshop::FIXTURES,
        dictated::FIXTURES,
    ];
    all.into_iter().flatten()
}

/// The fixture of that name.
pub fn find(name: &str) -> Option<&'static Fixture> {
    all().find(|fixture| fixture.name == name)
}

/// Runs the server that the arguments name.
pub fn main(arguments: &[&str]) -> ExitCode {
    let (name, http) = match arguments {
        ["--list"] => {
            let list: Vec<String> = all().map(|fixture| format!("{}\t{}\n", fixture.name, fixture.about)).collect();
            return stdio::print(list.concat().as_bytes());
        }
        [name] => (*name, false),
        [name, "--http"] => (*name, true),
        _ => return stdio::complain("usage: fixture-server NAME [--http] | --list"),
    };
    let Some(fixture) = find(name) else {
        return stdio::complain(&format!("no fixture server is named {name}"));
    };
    let mut good = Good::new();
    if let Sin::Catalog(edit) = fixture.sin {
        edit(&mut good);
    }
    if let Sin::Workshop(edit) = fixture.sin {
        return workshop::serve(good, edit, http);
    }
    if http || fixture.is_http() {
        return http::serve(good, fixture.sin);
    }
    match fixture.sin {
        Sin::Life(live) => live(&mut good),
        sin => stdio::serve(&mut good, sin),
    }
    ExitCode::SUCCESS
}
