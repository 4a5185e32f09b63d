//! What is asked of one tool and what came of it: a state machine that knows neither sessions nor lanes.
//!
//! An invalid call if there is one, then up to three valid ones; the next reply on the same session proves that the
//! invalid call did not kill it. Without valid arguments a `ping` proves it. A first valid call that gets no reply proves
//! nothing, so invalid call and `ping` are then repeated on the next session and decide.

use mcpeval_probe::{Answer, CallClass, Cause, ExchangeId, Fault, Json, cited, schema};

/// Valid calls of a tool.
pub(crate) const REPEATS: usize = 3;

const CALL_FAILED: &str = "honesty-call-failed";

/// One valid call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) class: CallClass,
    /// Whole milliseconds to the answer.
    pub(crate) millis: u32,
    /// Of a success, whether its structured content is valid against the declared schema; true without one.
    pub(crate) well_formed: bool,
    pub(crate) exchange: Option<ExchangeId>,
}

impl Call {
    fn of(outcome: &Result<Answer, Fault>, output_schema: Option<&Json>) -> Self {
        let class = CallClass::of(outcome);
        let millis = outcome.as_ref().map_or(0, |answer| answer.elapsed_us / 1000);
        let well_formed = match (output_schema, outcome) {
            (Some(schema), Ok(answer)) if class == CallClass::Success => {
                let structured = answer.tool_result().and_then(|result| result.structured);
                structured.is_some_and(|content| schema::validate(schema.as_str(), content.text()).is_ok())
            }
            _ => true,
        };
        Self { class, millis, well_formed, exchange: cited(outcome) }
    }
}

/// What is honest about the reply to invalid arguments; the reason if it is not.
fn honesty(outcome: &Result<Answer, Fault>) -> Option<&'static str> {
    match CallClass::of(outcome) {
        CallClass::Rejected => None,
        CallClass::ToolError => {
            let says =
                outcome.as_ref().ok().and_then(Answer::tool_result).is_some_and(|result| result.says_something());
            (!says).then_some("honesty-empty-error")
        }
        CallClass::RpcError => Some("honesty-wrong-code"),
        CallClass::Success => Some("honesty-accepted-invalid"),
        CallClass::Transport => Some(CALL_FAILED),
    }
}

/// The verdict on the invalid call.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Honesty {
    /// The reason of the loss.
    pub(crate) lost: Option<&'static str>,
    pub(crate) evidence: Vec<ExchangeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Invalid,
    Valid,
    Ping,
    InvalidAgain,
    PingAgain,
    Done,
}

/// One request of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask<'a> {
    Call(&'a Json),
    Ping,
}

/// One tool's trial.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    /// Parameters of the invalid call.
    invalid: Option<Json>,
    /// Parameters of the valid calls.
    valid: Option<Json>,
    output_schema: Option<Json>,
    step: Step,
    honesty: Honesty,
    /// The invalid call was answered and the next reply is still awaited.
    unproven: bool,
    calls: Vec<Call>,
    timed_out: bool,
    abandoned: bool,
    requests: u32,
    micros: u64,
}

impl Trial {
    /// A trial with parameters for `tools/call`.
    pub(crate) fn new(invalid: Option<Json>, valid: Option<Json>, output_schema: Option<Json>) -> Self {
        let step = match (&invalid, &valid) {
            (Some(_), _) => Step::Invalid,
            (None, Some(_)) => Step::Valid,
            (None, None) => Step::Done,
        };
        Self {
            invalid,
            valid,
            output_schema,
            step,
            honesty: Honesty::default(),
            unproven: false,
            calls: Vec::new(),
            timed_out: false,
            abandoned: false,
            requests: 0,
            micros: 0,
        }
    }

    /// The same trial from its beginning; what was spent stays spent.
    pub(crate) fn again(self) -> Self {
        let Self { requests, micros, .. } = self;
        Self { requests, micros, ..Self::new(self.invalid, self.valid, self.output_schema) }
    }

    /// The next request; `None` when the trial is over.
    pub(crate) fn next(&self) -> Option<Ask<'_>> {
        match self.step {
            Step::Invalid | Step::InvalidAgain => self.invalid.as_ref().map(Ask::Call),
            Step::Valid => self.valid.as_ref().map(Ask::Call),
            Step::Ping | Step::PingAgain => Some(Ask::Ping),
            Step::Done => None,
        }
    }

    /// Takes the outcome of that request.
    pub(crate) fn record(&mut self, outcome: &Result<Answer, Fault>) {
        self.requests += 1;
        match outcome {
            Ok(answer) => self.micros += u64::from(answer.elapsed_us),
            Err(fault) => self.timed_out |= fault.cause == Cause::TimedOut,
        }
        let alive = match outcome {
            Ok(_) => true,
            Err(fault) => fault.is_reply(),
        };
        let exchange = cited(outcome);
        self.step = match self.step {
            Step::Invalid => {
                self.honesty = Honesty { lost: honesty(outcome), evidence: exchange.into_iter().collect() };
                self.unproven = CallClass::of(outcome).is_structured();
                match (&self.valid, self.unproven) {
                    (Some(_), _) => Step::Valid,
                    (None, true) => Step::Ping,
                    (None, false) => Step::Done,
                }
            }
            Step::Valid => {
                let call = Call::of(outcome, self.output_schema.as_ref());
                let ends = matches!(call.class, CallClass::Rejected | CallClass::Transport);
                self.calls.push(call);
                self.unproven &= !alive;
                match (ends || self.calls.len() == REPEATS, self.unproven) {
                    (false, _) => Step::Valid,
                    (true, true) => Step::InvalidAgain,
                    (true, false) => Step::Done,
                }
            }
            Step::InvalidAgain => {
                self.honesty.lost = honesty(outcome);
                self.honesty.evidence.extend(exchange);
                self.unproven = CallClass::of(outcome).is_structured();
                if self.unproven { Step::PingAgain } else { Step::Done }
            }
            Step::Ping | Step::PingAgain => {
                self.unproven = false;
                if !alive {
                    self.honesty.lost = Some(CALL_FAILED);
                    self.honesty.evidence.extend(exchange);
                }
                Step::Done
            }
            Step::Done => Step::Done,
        };
    }

    /// No session can be had for what is left of it.
    pub(crate) fn abandon(&mut self) {
        if self.step == Step::Done {
            return;
        }
        if self.step == Step::Invalid || self.unproven {
            self.honesty.lost = Some(CALL_FAILED);
        }
        self.abandoned = true;
        self.step = Step::Done;
    }

    /// The verdict on the invalid call, if there was one to make.
    pub(crate) fn honesty(&self) -> Option<&Honesty> {
        self.invalid.as_ref().map(|_| &self.honesty)
    }

    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The parameters of its valid calls.
    pub(crate) fn valid(&self) -> Option<&Json> {
        self.valid.as_ref()
    }

    pub(crate) fn has_output_schema(&self) -> bool {
        self.output_schema.is_some()
    }

    pub(crate) fn successes(&self) -> usize {
        self.calls.iter().filter(|call| call.class == CallClass::Success).count()
    }

    /// Nothing was lost that a lane could have cost.
    pub(crate) fn is_sound(&self) -> bool {
        self.successes() == REPEATS && self.honesty.lost != Some(CALL_FAILED)
    }

    /// A request got no answer in time.
    pub(crate) fn timed_out(&self) -> bool {
        self.timed_out
    }

    pub(crate) fn abandoned(&self) -> bool {
        self.abandoned
    }

    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// The time its answers took, in microseconds.
    pub(crate) fn micros(&self) -> u64 {
        self.micros
    }
}

#[cfg(test)]
mod tests {
    use mcpeval_probe::{Value, json};

    use super::*;

    type Outcome = Result<Answer, Fault>;

    #[expect(clippy::unnecessary_wraps, reason = "an outcome, as faults are")]
    fn answer(reply: Result<Value, Value>) -> Outcome {
        let reply = reply.map(Json::from).map_err(Json::from);
        Ok(Answer { exchange: 1, elapsed_us: 1_999, status: None, reply })
    }

    fn success() -> Outcome {
        answer(Ok(json!({"content": []})))
    }

    fn rejected() -> Outcome {
        answer(Err(json!({"code": -32602, "message": "no"})))
    }

    fn fault(cause: Cause) -> Outcome {
        Err(Fault { cause, exchange: Some(9), detail: String::new() })
    }

    fn asks(trial: &Trial) -> &str {
        match trial.next() {
            Some(Ask::Ping) => "ping",
            Some(Ask::Call(params)) => params.as_str(),
            None => "",
        }
    }

    /// Feeds outcomes and gives what was asked for each.
    fn play(trial: &mut Trial, outcomes: &[Outcome]) -> Vec<String> {
        let mut asked = Vec::new();
        for outcome in outcomes {
            asked.push(asks(trial).to_owned());
            trial.record(outcome);
        }
        assert_eq!(trial.next(), None, "over after {asked:?}");
        asked
    }

    fn trial() -> Trial {
        Trial::new(Some(json!(0).into()), Some(json!(1).into()), None)
    }

    #[test]
    fn four_requests_when_all_is_well() {
        let mut trial = trial();
        assert_eq!(play(&mut trial, &[rejected(), success(), success(), success()]), ["0", "1", "1", "1"]);
        assert_eq!(trial.honesty().unwrap().lost, None);
        assert!(trial.is_sound());
        assert_eq!(trial.calls()[0].millis, 1, "whole milliseconds");
    }

    #[test]
    fn three_requests_when_nothing_is_forbidden() {
        let mut trial = Trial::new(None, Some(json!(1).into()), None);
        assert_eq!(play(&mut trial, &[success(), success(), success()]).len(), 3);
        assert!(trial.honesty().is_none());
    }

    #[test]
    fn ping_proves_life_without_valid_arguments() {
        let without = || Trial::new(Some(json!(0).into()), None, None);
        let mut trial = without();
        assert_eq!(play(&mut trial, &[rejected(), answer(Err(json!({"code": -32601})))]), ["0", "ping"]);
        assert_eq!(trial.honesty().unwrap().lost, None, "any reply is a sign of life");
        let mut trial = without();
        play(&mut trial, &[rejected(), fault(Cause::Closed)]);
        assert_eq!(trial.honesty().unwrap().lost, Some(CALL_FAILED));
        let mut trial = without();
        assert_eq!(play(&mut trial, &[fault(Cause::TimedOut)]), ["0"], "there is no session to ping");
        assert_eq!(trial.honesty().unwrap().lost, Some(CALL_FAILED));
    }

    #[test]
    fn rejection_and_transport_end_the_valid_calls() {
        let mut rejecting = trial();
        assert_eq!(play(&mut rejecting, &[rejected(), success(), rejected()]).len(), 3);
        let mut failing = trial();
        assert_eq!(play(&mut failing, &[rejected(), success(), fault(Cause::Closed)]).len(), 3);
        assert_eq!(failing.honesty().unwrap().lost, None, "the first valid call was answered");
    }

    #[test]
    fn a_silent_first_valid_call_repeats_the_invalid_one() {
        let silent = fault(Cause::TimedOut);
        let mut innocent = trial();
        let asked = play(&mut innocent, &[rejected(), silent.clone(), rejected(), answer(Ok(json!({})))]);
        assert_eq!(asked, ["0", "1", "0", "ping"]);
        assert_eq!(innocent.honesty().unwrap().lost, None);
        let mut guilty = trial();
        play(&mut guilty, &[rejected(), silent.clone(), rejected(), fault(Cause::Closed)]);
        assert_eq!(guilty.honesty().unwrap().lost, Some(CALL_FAILED));
        let mut changed = trial();
        play(&mut changed, &[rejected(), silent, success(), answer(Ok(json!({})))]);
        assert_eq!(changed.honesty().unwrap().lost, Some("honesty-accepted-invalid"), "the repetition decides");
    }

    #[test]
    fn a_malformed_reply_is_a_sign_of_life() {
        let mut trial = trial();
        assert_eq!(play(&mut trial, &[rejected(), fault(Cause::Malformed)]).len(), 2);
        assert_eq!(trial.honesty().unwrap().lost, None);
        assert_eq!(trial.calls()[0].class, CallClass::Transport);
    }

    #[test]
    fn after_an_unanswered_invalid_call_the_valid_ones_follow() {
        let mut trial = trial();
        assert_eq!(play(&mut trial, &[fault(Cause::Closed), success(), success(), success()]).len(), 4);
        assert_eq!(trial.honesty().unwrap().lost, Some(CALL_FAILED));
        assert!(!trial.is_sound());
    }

    #[test]
    fn every_reply_to_invalid_arguments_has_its_verdict() {
        let text = |text: &str| answer(Ok(json!({"isError": true, "content": [{"type": "text", "text": text}]})));
        for (outcome, lost) in [
            (rejected(), None),
            (text("item must be a string"), None),
            (text("  "), Some("honesty-empty-error")),
            (answer(Ok(json!({"isError": true}))), Some("honesty-empty-error")),
            (answer(Err(json!({"code": -32603, "message": "x"}))), Some("honesty-wrong-code")),
            (success(), Some("honesty-accepted-invalid")),
            (fault(Cause::Closed), Some(CALL_FAILED)),
            (answer(Ok(json!([]))), Some(CALL_FAILED)),
        ] {
            assert_eq!(honesty(&outcome), lost, "{outcome:?}");
        }
    }

    #[test]
    fn an_abandoned_trial_lost_what_it_had_not_proved() {
        let mut fresh = trial();
        fresh.abandon();
        assert_eq!(fresh.honesty().unwrap().lost, Some(CALL_FAILED));
        let mut unproven = trial();
        unproven.record(&rejected());
        unproven.abandon();
        assert_eq!(unproven.honesty().unwrap().lost, Some(CALL_FAILED));
        let mut proven = trial();
        proven.record(&rejected());
        proven.record(&success());
        proven.abandon();
        assert_eq!(proven.honesty().unwrap().lost, None);
        assert!(proven.abandoned());
        let again = proven.again();
        assert_eq!((asks(&again), again.requests(), again.abandoned()), ("0", 2, false));
    }
}
