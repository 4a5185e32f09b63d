//! `mcpeval annotate`.

use clap::builder::PossibleValue;
use clap::{ArgGroup, Args, ValueEnum};

use super::console;
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::report::output;
use crate::store::Home;
use crate::store::hash::{Salt, unsalted_session};
use crate::store::journal::append_annotation;
use crate::store::lookup::{Known, MAX_FOUND, find};
use crate::store::record::{
    Annotation, AnnotationKind, CALL, MAX_NOTE, Record, is_note, is_session, is_uuid, timestamp,
};

const EXAMPLE: &str = "\
Example:
  mcpeval annotate --session nightly-7 --seq 12 --kind false-success --note \"it answered ok and saved nothing\"

Exit codes:
  0  noted, even if no such call was recorded
  2  usage: arguments, a number that several calls of the session have
  3  could not complete: a damaged or unwritable home folder";

/// Note something about one recorded call
///
/// Notes are prose and stay in the home folder. The next mcpeval index counts them.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLE,
    override_usage = "mcpeval annotate --kind <K> --note <TEXT> <--event-id <UUID> | --session <S> --seq <N>>",
    group = ArgGroup::new("noted").required(true).args(["event_id", "session"])
)]
pub(super) struct Annotate {
    /// The call by its event
    #[arg(long, value_name = "UUID", value_parser = event)]
    event_id: Option<String>,
    /// The call's session: its name, as MCPEVAL_SESSION gave it, or its token
    #[arg(long, value_name = "S", requires = "seq", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    session: Option<String>,
    /// The call's number in its session
    #[arg(long, value_name = "N", requires = "session", conflicts_with = "event_id", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seq: Option<u64>,
    /// What it is noted for
    #[arg(long, value_enum, value_name = "K")]
    kind: ChosenKind,
    /// In words: 0 to 240 characters, no control characters; write nothing here that must stay secret
    #[arg(long, value_name = "TEXT", value_parser = note, allow_hyphen_values = true)]
    note: String,
}

/// A kind of annotation as an option names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChosenKind(AnnotationKind);

impl ValueEnum for ChosenKind {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ChosenKind; 5] = {
            let [blocked, undocumented, success, divergence, workaround] = AnnotationKind::ALL;
            [
                ChosenKind(blocked),
                ChosenKind(undocumented),
                ChosenKind(success),
                ChosenKind(divergence),
                ChosenKind(workaround),
            ]
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            AnnotationKind::BlockedOptimalPath => "The direct call should have worked and did not",
            AnnotationKind::UndocumentedBehavior => "It does what nothing says",
            AnnotationKind::FalseSuccess => "It said that it succeeded and had not",
            AnnotationKind::InstructionDivergence => "What the instructions say is not so",
            AnnotationKind::Workaround => "A way around was taken",
        };
        Some(PossibleValue::new(self.0.word()).help(help))
    }
}

impl Annotate {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let home = settings.store()?;
        let known = self.known(&home)?;
        let found = find(&home, &known)?;
        if found.len() > 1 {
            return Err(several(&found));
        }
        home.prepare()?;
        let (event_id, session, seq) = self.target(&home, found.first())?;
        let annotation = Annotation {
            ts: timestamp(jiff::Timestamp::now()),
            event_id,
            session,
            seq,
            kind: self.kind.0,
            note: self.note.clone(),
        };
        append_annotation(&home, &annotation)?;
        let kind = self.kind.0.word();
        let text = match found.first() {
            None => {
                console::warning(
                    "no such call was recorded here; the note is kept, and counts once the call is indexed",
                );
                format!("noted {kind}; mcpeval index counts it\n")
            }
            Some(record) => {
                if record.method != CALL {
                    console::warning("this is no call of a tool, and findings are made of those alone");
                }
                format!("noted {kind} on {}; mcpeval index counts it\n", told(record))
            }
        };
        output::stdout(text.as_bytes())?;
        Ok(0)
    }

    /// What is looked for. A session is given by its token or by its name, of which earlier versions made another token.
    fn known(&self, home: &Home) -> Result<Known> {
        match (&self.event_id, &self.session, self.seq) {
            (Some(event), ..) => Ok(Known::Event(event.clone())),
            (None, Some(session), Some(seq)) if is_session(session) => {
                Ok(Known::Place { sessions: vec![session.clone()], seq })
            }
            (None, Some(session), Some(seq)) => {
                // Nothing is made for the sake of a search: without a salt there is no salted token.
                let salted = Salt::existing(home)?.map(|salt| salt.session(session));
                Ok(Known::Place { sessions: salted.into_iter().chain([unsalted_session(session)]).collect(), seq })
            }
            _ => Err(Error::usage("name the call: --event-id UUID, or --session S with --seq N")),
        }
    }

    /// Event, or session and number, as the annotation names them.
    fn target(&self, home: &Home, found: Option<&Record>) -> Result<(Option<String>, Option<String>, Option<u64>)> {
        let Some(session) = &self.session else { return Ok((self.event_id.clone(), None, None)) };
        let token = match found {
            Some(record) => record.session.clone(),
            None if is_session(session) => session.clone(),
            None => Salt::of(home)?.session(session),
        };
        Ok((None, Some(token), self.seq))
    }
}

/// Which calls have the same number.
fn several(found: &[Record]) -> Error {
    let one = |record: &Record| {
        let event = record.identity.as_ref().map(|identity| format!(" {}", identity.event_id));
        format!("{}{}", told(record), event.unwrap_or_default())
    };
    let list: Vec<String> = found.iter().map(one).collect();
    let more = if found.len() == MAX_FOUND { " and perhaps more" } else { "" };
    Error::usage(format!(
        "several calls have this number in this session: {}{more}; name one with --event-id",
        list.join(", ")
    ))
}

fn told(record: &Record) -> String {
    format!("{}/{}", record.server, record.tool.as_deref().unwrap_or(&record.method))
}

fn event(text: &str) -> Result<String, String> {
    if is_uuid(text) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("must be a UUID, as a record's event_id is".to_owned())
    }
}

fn note(text: &str) -> Result<String, String> {
    if is_note(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("must have at most {MAX_NOTE} characters, none of them a control character"))
    }
}
