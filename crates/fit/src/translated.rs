//! Start of a trial with an IOMMU, which adds page walks to figures of large windows.

use crate::least_squares::sum_of_squares;
use crate::mechanism::{Mechanism, WALK_READ_NS, WALKERS};
use crate::trial::{PROMISING, Trial};

/// Ratios of the latency of memory to its value without an IOMMU, which includes some of the walks.
const LOWERED: [f64; 3] = [1.0, 0.8, 0.6];

/// Latency of memory, which a fit without an IOMMU takes for that of walks.
const READ_NS: &str = "memory.read_ns";

/// Sizes of the IOTLB that are fitted; the others promise less.
const SIZES: usize = 3;

/// Steps of the fits of these.
const STEPS: usize = 2;

/// Relative difference of two sums of squares below which two trials have the same effect.
const SAME: f64 = 1e-9;

/// Keys of a mechanism with their values.
type Set = Vec<(&'static str, f64)>;

/// The best trials with an IOMMU, each of another size, best first. Of several numbers of walkers with the same effect, the first
/// one stands for all.
///
/// All sizes and numbers are tried with some times of a walk and of memory, and again with the values of a fit of the best one.
/// Half of the walkers need half of the time for the same rate, so the best ones are fitted again with each other number and the
/// time that keeps the rate.
pub(crate) fn started(best: &Trial, mechanism: &Mechanism, sets: &[Set]) -> Vec<Trial> {
    let quick = best.for_quick_figures(true);
    let Ok(here) = quick.residuals(&quick.problem, &quick.values) else { return Vec::new() };
    let parameters = best.problem.parameters();
    let read = parameters.iter().position(|parameter| parameter.name == READ_NS);
    let of_set = |set: &Set| {
        let times = mechanism.times(|_| None).into_iter();
        let lowered = |(time, ratio): ((&'static str, f64), f64)| {
            let mut trial = quick.with(set, Some(time))?;
            if let Some(place) = read {
                let (low, high) = (parameters[place].low, parameters[place].high);
                trial.values[place] = (trial.values[place] * ratio).clamp(low, high);
            }
            let there = trial.residuals(&trial.problem, &trial.values).ok()?;
            let is_seen = there.iter().zip(&here).any(|(there, here)| (there - here).abs() > 1e-9);
            is_seen.then(|| (sum_of_squares(&there, None), trial))
        };
        let ratios = if read.is_some() { &LOWERED[..] } else { &LOWERED[..1] };
        let tried = times.flat_map(|time| ratios.iter().map(move |ratio| (time, *ratio))).filter_map(lowered);
        tried.min_by(|one, other| one.0.total_cmp(&other.0))
    };
    let with_set = |set| of_set(set).map(|(left, trial)| (left, set, trial));
    // The numbers without an IOMMU may be far from those with one: all sizes are tried again from those of the best.
    let first = best_sizes(sets.iter().filter_map(with_set).collect());
    let fitted = first.into_iter().filter_map(|(_, set, trial)| Some((set, trial.after_steps(STEPS)?)));
    let Some((of_it, (_, from))) = fitted.min_by(|one, other| one.1.0.total_cmp(&other.1.0)) else { return Vec::new() };
    let again = |set| at_rate(&quick, &from, of_it, set, 1).map(|(left, trial)| (left, set, trial));
    let of_size = |(_, set, trial): (f64, &Set, Trial)| {
        let (_, trial) = trial.for_figures_of(&best.problem).after_steps(STEPS)?;
        let others = sets.iter().filter(|other| is_of_size(other, set));
        let ends: Vec<(f64, Trial)> = others.filter_map(|other| at_rate(best, &trial, set, other, STEPS)).collect();
        let least = ends.iter().map(|(left, _)| *left).fold(f64::INFINITY, f64::min);
        ends.into_iter().find(|(left, _)| *left <= least * (1.0 + SAME))
    };
    let before = sum_of_squares(&here, None);
    let mut sizes = best_sizes(sets.iter().filter_map(again).collect());
    sizes.retain(|(left, ..)| *left < PROMISING * before);
    let mut ends: Vec<(f64, Trial)> = sizes.into_iter().filter_map(of_size).collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    ends.into_iter().map(|(_, trial)| trial).collect()
}

/// The best trials of the most promising sizes, best first.
fn best_sizes(mut tried: Vec<(f64, &Set, Trial)>) -> Vec<(f64, &Set, Trial)> {
    tried.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut sizes: Vec<(f64, &Set, Trial)> = Vec::new();
    for one in tried {
        if sizes.len() < SIZES && sizes.iter().all(|other| !is_of_size(one.1, other.1)) {
            sizes.push(one);
        }
    }
    sizes
}

/// Whether both sets differ in the number of walkers only.
fn is_of_size(one: &Set, other: &Set) -> bool {
    one.iter().zip(other).all(|(one, other)| one.0 == WALKERS || one.1.to_bits() == other.1.to_bits())
}

/// The trial with the values of `trial`, the number of walkers of `other` instead of that of `set`, and a walk as much longer,
/// after some steps of a fit; and its sum of squares.
fn at_rate(best: &Trial, trial: &Trial, set: &Set, other: &Set, steps: usize) -> Option<(f64, Trial)> {
    let walkers = |set: &Set| set.iter().find(|(key, _)| *key == WALKERS).map_or(1.0, |(_, value)| *value);
    let (time, others) = trial.values.split_last()?;
    let parameters = trial.problem.parameters();
    let time = (time * walkers(other) / walkers(set)).clamp(parameters.last()?.low, parameters.last()?.high);
    let mut next = best.with(other, Some((WALK_READ_NS, time)))?;
    next.values = others.iter().copied().chain([time]).collect();
    next.after_steps(steps)
}
