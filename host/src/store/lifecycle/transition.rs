//! What a verification makes of a finding: pure.

use super::State;

/// Green checks in a row that close a finding.
pub const GREEN_CHECKS: u32 = 3;

/// State and green checks in a row after a verification that was green or red, of the same case and definition as the last
/// one or not.
pub const fn after(state: State, passes: u32, is_green: bool, is_same: bool) -> (State, u32) {
    match (state, is_green, is_same) {
        (State::Open | State::FixClaimed, false, _) => (State::FixClaimed, 0),
        (State::Verifying | State::Closed, false, _) => (State::Open, 0),
        // Whatever was green before was another build, or another question.
        (_, true, false) | (State::Open, true, true) => (State::Verifying, 1),
        (State::FixClaimed, true, true) => (State::Verifying, passes.saturating_add(1)),
        (State::Verifying, true, true) => {
            let passes = passes.saturating_add(1);
            (if passes >= GREEN_CHECKS { State::Closed } else { State::Verifying }, passes)
        }
        (State::Closed, true, true) => (State::Closed, passes.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::State::{Closed, FixClaimed, Open, Verifying};
    use super::*;

    #[test]
    fn every_field_of_the_table_is_as_it_stands_there() {
        // State and passes before; after green of the same, green of another, red of the same, red of another.
        let table = [
            ((Open, 0), [(Verifying, 1), (Verifying, 1), (FixClaimed, 0), (FixClaimed, 0)]),
            ((FixClaimed, 0), [(Verifying, 1), (Verifying, 1), (FixClaimed, 0), (FixClaimed, 0)]),
            ((Verifying, 1), [(Verifying, 2), (Verifying, 1), (Open, 0), (Open, 0)]),
            ((Verifying, 2), [(Closed, 3), (Verifying, 1), (Open, 0), (Open, 0)]),
            ((Verifying, 7), [(Closed, 8), (Verifying, 1), (Open, 0), (Open, 0)]),
            ((Closed, 3), [(Closed, 4), (Verifying, 1), (Open, 0), (Open, 0)]),
            ((Closed, u32::MAX), [(Closed, u32::MAX), (Verifying, 1), (Open, 0), (Open, 0)]),
        ];
        for ((state, passes), expected) in table {
            let found = [(true, true), (true, false), (false, true), (false, false)]
                .map(|(is_green, is_same)| after(state, passes, is_green, is_same));
            assert_eq!(found, expected, "{state:?} {passes}");
        }
    }

    #[test]
    fn no_way_leads_to_closed_but_three_greens_of_the_same() {
        // Every walk of six checks from every state but closed.
        for start in [Open, FixClaimed, Verifying] {
            for walk in 0_u32..4_u32.pow(6) {
                let (mut state, mut passes, mut streak) = (start, 0, 0);
                for step in 0..6 {
                    let (is_green, is_same) = (walk >> (2 * step) & 1 == 1, walk >> (2 * step + 1) & 1 == 1);
                    streak = match (is_green, is_same) {
                        (false, _) => 0,
                        (true, true) => streak + 1,
                        (true, false) => 1,
                    };
                    (state, passes) = after(state, passes, is_green, is_same);
                    assert_eq!(passes, streak, "{start:?} {walk} {step}");
                    assert_eq!(state == Closed, streak >= GREEN_CHECKS, "{start:?} {walk} {step}");
                }
            }
        }
    }
}
