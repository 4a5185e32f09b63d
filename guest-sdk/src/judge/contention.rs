//! Two sessions that call at once.

use crate::{CallClass, ExchangeId, Fault, Json, Options, Target, cited};

/// What two calls at once came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Contention {
    /// Both calls were made; which of them succeeded, that of the shared session first.
    Called([bool; 2], Vec<ExchangeId>),
    /// No second session could be opened beside the shared one.
    NoSecond(Fault),
    /// The shared session could not be had.
    NoFirst(Fault),
}

/// Makes the same call on the shared session and on a second one, started together.
///
/// # Errors
///
/// A refusal of the host.
pub fn contend(target: &Target, params: &Json) -> Result<Contention, Fault> {
    let second = match target.open(Options::default()) {
        Ok(session) => session,
        Err(fault) => return Ok(Contention::NoSecond(fault.unless_refused()?)),
    };
    let first = match target.primary() {
        Ok(session) => session,
        Err(fault) => return Ok(Contention::NoFirst(fault.unless_refused()?)),
    };
    let started = [&first, &second].map(|session| session.start("tools/call", params));
    let mut succeeded = [false; 2];
    let mut evidence = Vec::new();
    for (started, succeeded) in started.into_iter().zip(&mut succeeded) {
        let outcome = match started.and_then(|pending| pending.answer()) {
            Ok(answer) => Ok(answer),
            Err(fault) => Err(fault.unless_refused()?),
        };
        *succeeded = CallClass::of(&outcome) == CallClass::Success;
        evidence.extend(cited(&outcome));
    }
    Ok(Contention::Called(succeeded, evidence))
}
