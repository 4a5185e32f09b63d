//! After the trials: two sessions at once, and a very long string.

use mcpeval_probe::judge::{Contention, Handling, contend, lengthened, payload};
use mcpeval_probe::{ExchangeId, Fault, Json, Target, View};

use crate::judge::{Strain, Tried};
use crate::manifest::{CONTENTION, PAYLOAD, WAS_SKIPPED};
use crate::surface::{Standing, Tool};
use crate::trial::{REPEATS, Trial};

/// Characters of the long string.
const PAYLOAD_SIZE: usize = 1_000_000;

/// Runs both steps. `tools` are those of the surface, as `tried` names them.
pub(crate) fn strains(
    target: &Target,
    tools: &[Tool],
    tried: &[Tried],
    requests: &mut u32,
) -> Result<Vec<Strain>, Fault> {
    if tried.iter().any(|tried| tried.standing == Standing::Skipped) {
        let skipped = |check| Strain { check, subject: None, lost: Some(WAS_SKIPPED), evidence: Vec::new() };
        return Ok(vec![skipped(CONTENTION), skipped(PAYLOAD)]);
    }
    let params = |tried: &Tried| {
        let trial = tried.trial.as_ref().filter(|trial| trial.successes() == REPEATS);
        trial.and_then(Trial::valid).cloned()
    };
    let mut steady = tools.iter().zip(tried).filter_map(|(tool, tried)| Some((tool, params(tried)?))).peekable();
    let mut strains = Vec::new();
    if let Some((tool, params)) = steady.peek() {
        let (held, evidence) = contention(target, params, requests)?;
        let lost = (!held).then_some("reliability-contention-failed");
        strains.push(Strain { check: CONTENTION, subject: Some(tool.name.clone()), lost, evidence });
    }
    for (tool, params) in steady {
        let Some(property) = tool.string_property(target) else { continue };
        if !params.view().member("arguments").is_some_and(View::is_object) {
            continue;
        }
        let params = lengthened(&params, &property, PAYLOAD_SIZE);
        let (held, evidence) = long_call(target, &params, requests)?;
        let lost = (!held).then_some("reliability-payload-unhandled");
        strains.push(Strain { check: PAYLOAD, subject: Some(tool.name.clone()), lost, evidence });
        break;
    }
    Ok(strains)
}

/// One call on each of two sessions, started together.
fn contention(target: &Target, params: &Json, requests: &mut u32) -> Result<(bool, Vec<ExchangeId>), Fault> {
    *requests += 1;
    Ok(match contend(target, params)? {
        Contention::Called(succeeded, evidence) => {
            *requests += 2;
            (succeeded == [true, true], evidence)
        }
        Contention::NoSecond(fault) | Contention::NoFirst(fault) => (false, fault.exchange.into_iter().collect()),
    })
}

/// A call with a very long string, then `ping` on the same session.
fn long_call(target: &Target, params: &Json, requests: &mut u32) -> Result<(bool, Vec<ExchangeId>), Fault> {
    let session = match target.primary() {
        Ok(session) => session,
        Err(fault) => return Ok((false, fault.unless_refused()?.exchange.into_iter().collect())),
    };
    let payload = payload(target, &session, params)?;
    *requests += payload.requests;
    let handled = matches!(payload.handling, Handling::Done | Handling::Refused);
    Ok((handled && payload.alive, payload.evidence))
}
