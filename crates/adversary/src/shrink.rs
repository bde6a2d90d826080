//! The shortest case that breaks the same rule.

use crate::case::Case;
use crate::rule::Rule;

/// Most runs of a search.
const MOST_RUNS: u32 = 200;

/// Shortens a case as long as `breaks` returns its rule.
/// Numbers of bytes stay multiples of `alignment`.
pub(crate) fn shortest(case: &Case, rule: Rule, alignment: u64, mut breaks: impl FnMut(&Case) -> Option<Rule>) -> Case {
    let mut best = case.clone();
    let mut runs = 0;
    let mut is_better = |candidate: &Case| {
        runs += 1;
        runs <= MOST_RUNS && breaks(candidate) == Some(rule)
    };
    // Half of the steps, a quarter, and at last single ones.
    let mut size = best.steps.len().div_ceil(2);
    while size > 0 {
        let mut place = 0;
        while place < best.steps.len() {
            let mut candidate = best.clone();
            candidate.steps.drain(place..(place + size).min(best.steps.len()));
            if is_better(&candidate) { best = candidate } else { place += size }
        }
        size /= 2;
    }
    for place in 0..best.steps.len() {
        let mut situation = 0;
        while situation < best.steps[place].legal.len() {
            let mut candidate = best.clone();
            candidate.steps[place].legal.remove(situation);
            if is_better(&candidate) { best = candidate } else { situation += 1 }
        }
        let mut candidate = best.clone();
        candidate.steps[place].illegal = None;
        candidate.steps[place].has_interrupt = false;
        if is_better(&candidate) {
            best = candidate;
        }
        loop {
            let mut candidate = best.clone();
            let bytes = &mut candidate.steps[place].bytes;
            *bytes = *bytes / 2 / alignment * alignment;
            if candidate.steps[place].bytes == 0 || !is_better(&candidate) {
                break;
            }
            best = candidate;
        }
    }
    best
}
