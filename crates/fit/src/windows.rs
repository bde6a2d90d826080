//! Start of a trial whose mechanism replaces a time in some windows, such as hits in a last-level cache the latency of DRAM.

use crate::least_squares::sum_of_squares;
use crate::mechanism::Mechanism;
use crate::trial::Trial;

/// Ratios of the replaced time to its value without the mechanism, which lies between those of small and of large windows.
const RAISED: [f64; 4] = [1.0, 1.3, 1.8, 2.5];

/// The best trial with the mechanism, of some pairs of its time and the time at `replaced`; none if it has no effect.
///
/// A linear estimate from the best values without it finds no such pair: both change together.
pub(crate) fn started(
    best: &Trial,
    mechanism: &Mechanism,
    replaced: &str,
    set: &[(&'static str, f64)],
) -> Option<Trial> {
    let parameters = best.problem.parameters();
    let fitted = parameters.iter().position(|parameter| parameter.name == replaced);
    let now = fitted.map(|place| best.values[place]).or_else(|| best.problem.number(replaced))?;
    // A file may have the time as an unknown number, or an earlier round has added it: it is fitted already.
    let known = mechanism.time.and_then(|(key, _)| parameters.iter().position(|parameter| parameter.name == key));
    let clamped = |place: usize, value: f64| value.clamp(parameters[place].low, parameters[place].high);
    let with = |raising: &Trial, (key, time): (&'static str, f64)| match known {
        Some(place) => {
            let mut trial = raising.with(set, None)?;
            trial.values[place] = clamped(place, time);
            Some(trial)
        }
        None => raising.with(set, Some((key, time))),
    };
    let judged = |trial: Option<Trial>, here: &[f64]| {
        let trial = trial?;
        let there = trial.residuals(&trial.problem, &trial.values).ok()?;
        let is_seen = there.iter().zip(here).any(|(there, here)| (there - here).abs() > 1e-9);
        is_seen.then(|| (sum_of_squares(&there, None), trial))
    };
    let of_raised = |raised: f64| {
        let mut raising = best.clone();
        match fitted {
            Some(place) => raising.values[place] = clamped(place, now * raised),
            None if raised > 1.0 => return Vec::new(),
            None => {}
        }
        let Ok(here) = raising.residuals(&raising.problem, &raising.values) else { return Vec::new() };
        let times = mechanism.times(|_| Some(now)).into_iter();
        let mut trials: Vec<_> = times.filter_map(|time| judged(with(&raising, time), &here)).collect();
        if known.is_some() {
            trials.extend(judged(raising.with(set, None), &here));
        }
        trials
    };
    let least = RAISED.into_iter().flat_map(of_raised).min_by(|one, other| one.0.total_cmp(&other.0));
    least.map(|(_, trial)| trial)
}
