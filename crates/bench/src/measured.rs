//! The samples of one plan, collected over its visits.

use lanemark_machine::{Cause, PathShare, Plan, Sample, Samples};
use lanemark_record::{DroppedSample, RawSamples, Summary};
use lanemark_units::Ticks;

/// Samples of a plan.
pub(crate) struct Measured {
    /// The plan as run.
    pub(crate) plan: Plan,
    /// Counted samples in order; stalls, traffic, bytes and delivery are those of the last visit.
    pub(crate) samples: Samples,
    /// The round of each of `samples.taken`.
    round: Vec<u64>,
    raw: RawSamples,
    timer_costs: Vec<Ticks>,
    /// Latencies that replace the samples' own times.
    pub(crate) latencies_ns: Option<Vec<f64>>,
    /// Samples of other plans for the same answer.
    others: Vec<RawSamples>,
    /// Critical path of the latencies, if they are differences of two plans.
    difference: Option<Vec<PathDifference>>,
}

/// A part of the critical path of a difference.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathDifference {
    pub(crate) place: String,
    pub(crate) cause: Cause,
    pub(crate) is_latency: bool,
    /// Nanoseconds of one sample; negative if the subtracted plan spends more time there.
    pub(crate) ns: f64,
}

/// Largest disagreement between the critical paths of two plans and the difference of their times that is rounding.
const ROUNDING_NS: f64 = 1e-3;

impl Measured {
    /// An empty collection for `plan`; `name` distinguishes it from other plans of its question.
    pub(crate) fn of(name: String, plan: Plan) -> Measured {
        let raw = RawSamples { plan: name, ..RawSamples::default() };
        let (samples, round, timer_costs, others) = (Samples::wanted(1), Vec::new(), Vec::new(), Vec::new());
        Measured { plan, samples, round, raw, timer_costs, latencies_ns: None, others, difference: None }
    }

    /// Adds the samples of a visit; the first `warm_up` ones do not count.
    pub(crate) fn add(&mut self, round: u64, visit: &Samples, warm_up: usize) {
        self.raw.passes = self.plan.passes;
        // If all samples were dropped, the warm-up is among them.
        let counts_from = if visit.taken.is_empty() { (warm_up, 0) } else { (0, warm_up) };
        let dropped = visit.disturbed.iter().enumerate().skip(counts_from.0);
        let mut dropped = dropped.filter(|(_, (before, ..))| *before >= counts_from.1).peekable();
        let cpu = |place: usize| visit.cpus.get(place).copied();
        for place in 0..=visit.taken.len() {
            while let Some((nth, (_, sample, reason))) = dropped.next_if(|(_, (before, ..))| *before == place) {
                let of_all = self.raw.round.len() as u64;
                self.raw.dropped.push(DroppedSample { place: of_all, reason: reason.name().to_owned() });
                self.samples.dropped.add(*reason);
                self.keep(round, sample, cpu(place + nth));
            }
            if let Some(sample) = visit.taken.get(place).filter(|_| place >= warm_up) {
                let cpu = cpu(place + visit.disturbed.partition_point(|(before, ..)| *before <= place));
                self.keep(round, sample, cpu);
                self.samples.cpus.extend(cpu);
                self.samples.taken.push(*sample);
                self.round.push(round);
            }
        }
        self.samples.path.clone_from(&visit.path);
        (self.samples.traffic, self.samples.confirmed) = (visit.traffic, visit.confirmed);
        self.samples.links.clone_from(&visit.links);
        self.samples.resources.clone_from(&visit.resources);
        self.samples.corrected.clone_from(&visit.corrected);
        self.samples.latencies.clone_from(&visit.latencies);
        self.samples.together.clone_from(&visit.together);
        self.samples.steady = visit.steady;
        self.samples.bounce_buffer = visit.bounce_buffer;
        self.samples.delivery = visit.delivery;
        self.timer_costs.push(visit.timer_cost);
        self.timer_costs.sort_unstable();
        self.samples.timer_cost = self.timer_costs[self.timer_costs.len() / 2];
    }

    fn keep(&mut self, round: u64, sample: &Sample, cpu: Option<u32>) {
        self.raw.round.push(round);
        self.raw.cpu.extend(cpu);
        // Rounds to picoseconds, below the resolution of any counter.
        let rounded = |time: Ticks| (time.as_ns() * 1e3).round() / 1e3;
        self.raw.issue_ns.push(rounded(sample.issue));
        self.raw.delivered_ns.push(rounded(sample.delivered));
    }

    /// Whether there was a visit.
    pub(crate) fn has_run(&self) -> bool {
        !self.timer_costs.is_empty()
    }

    /// Number of visits.
    pub(crate) fn rounds(&self) -> u64 {
        self.timer_costs.len() as u64
    }

    /// Iterations per sample.
    pub(crate) fn passes(&self) -> u64 {
        self.plan.passes
    }

    /// All lists of samples behind the answer.
    pub(crate) fn raw(&self) -> Vec<RawSamples> {
        std::iter::once(&self.raw).chain(&self.others).cloned().collect()
    }

    /// The same run with these latencies.
    pub(crate) fn with_latencies(mut self, latencies_ns: Vec<f64>) -> Measured {
        self.latencies_ns = Some(latencies_ns);
        self
    }

    /// The same run with the samples of other plans of its answer.
    pub(crate) fn beside(mut self, others: &[Measured]) -> Measured {
        for other in others {
            let dropped = other.samples.dropped;
            self.samples.dropped.context_switches += dropped.context_switches;
            self.samples.dropped.clock_steps += dropped.clock_steps;
            self.others.extend(other.raw());
        }
        self
    }

    /// Delivered time of every sample.
    pub(crate) fn delivered_ns(&self) -> Vec<f64> {
        self.samples.taken.iter().map(|sample| sample.delivered.as_ns()).collect()
    }

    /// Delivered time per iteration, sample by sample.
    pub(crate) fn per_pass_delivered_ns(&self) -> Vec<f64> {
        self.delivered_ns().iter().map(|ns| ns / self.plan.passes as f64).collect()
    }

    /// Issue time per iteration, sample by sample.
    pub(crate) fn per_pass_issue_ns(&self) -> Vec<f64> {
        self.samples.taken.iter().map(|sample| sample.issue.as_ns() / self.plan.passes as f64).collect()
    }

    /// Median issue time per iteration.
    pub(crate) fn median_issue_ns(&self) -> f64 {
        median(&self.per_pass_issue_ns())
    }

    /// Median issue time per iteration in one round; NaN without samples.
    pub(crate) fn median_issue_ns_in(&self, round: u64) -> f64 {
        let rounds = self.by_round_ns(|sample| sample.issue);
        rounds.iter().find(|(other, _)| *other == round).map_or(f64::NAN, |(_, times)| median(times))
    }

    /// The same run with latencies that are its times per iteration, minus those of `other` by pairs of samples of the
    /// same round, divided by `per`. `time` is the time of a sample that counts.
    ///
    /// In a simulation, the answer has the critical path of the difference if the paths of both plans add up to these
    /// times. Paths end with the delivery, so they do not if `time` ends earlier.
    pub(crate) fn minus(self, other: Option<&Measured>, time: fn(&Sample) -> Ticks, per: f64) -> Measured {
        let rounds = self.by_round_ns(time);
        let differences: Vec<f64> = match other {
            None => rounds.into_iter().flat_map(|(_, times)| times).collect(),
            Some(other) => {
                let others = other.by_round_ns(time);
                let same_round = |round: u64| others.iter().find(|(other, _)| *other == round).map(|(_, times)| times);
                let pairs = rounds.iter().filter_map(|(round, times)| Some(times.iter().zip(same_round(*round)?)));
                pairs.flatten().map(|(with, without)| with - without).collect()
            }
        };
        let mean_ns = differences.iter().sum::<f64>() / differences.len() as f64;
        let path = path_difference(&self, other);
        let sum_ns: f64 = path.iter().map(|part| part.ns).sum();
        let difference = ((sum_ns - mean_ns).abs() < ROUNDING_NS).then_some(path);
        let latencies_ns = Some(differences.iter().map(|ns| ns / per).collect());
        let others_before = self.others.len();
        let mut both = self.beside(other.map_or(&[][..], std::slice::from_ref));
        both.others.iter_mut().skip(others_before).for_each(|raw| raw.is_subtracted = true);
        Measured { latencies_ns, difference, ..both }
    }

    /// The critical path of a difference; `None` if the latencies are none, or if their paths do not add up to them.
    pub(crate) fn difference(&self) -> Option<&[PathDifference]> {
        self.difference.as_deref()
    }

    /// Times per iteration in each round, in order.
    pub(crate) fn by_round_ns(&self, time: fn(&Sample) -> Ticks) -> Vec<(u64, Vec<f64>)> {
        let mut rounds: Vec<(u64, Vec<f64>)> = Vec::new();
        let times = self.samples.taken.iter().map(|sample| time(sample).as_ns() / self.plan.passes as f64);
        for (round, ns) in self.round.iter().zip(times) {
            match rounds.last_mut().filter(|(last, _)| last == round) {
                Some((_, times)) => times.push(ns),
                None => rounds.push((*round, vec![ns])),
            }
        }
        rounds
    }
}

/// Critical path of one iteration of `with` minus that of one of `without`, the largest part first.
fn path_difference(with: &Measured, without: Option<&Measured>) -> Vec<PathDifference> {
    let per_pass = |measured: &Measured, share: &PathShare| {
        let passes = measured.samples.taken.len() as f64 * measured.plan.passes as f64;
        share.span.as_ns() / passes
    };
    let mut parts: Vec<PathDifference> = Vec::new();
    for (measured, sign) in [(Some(with), 1.0), (without, -1.0)] {
        let Some(measured) = measured else { continue };
        for share in &measured.samples.path {
            let ns = sign * per_pass(measured, share);
            let is_same = |part: &&mut PathDifference| {
                (&part.place, part.cause, part.is_latency) == (&share.place, share.cause, share.is_latency)
            };
            match parts.iter_mut().find(is_same) {
                Some(part) => part.ns += ns,
                None => parts.push(PathDifference {
                    place: share.place.clone(),
                    cause: share.cause,
                    is_latency: share.is_latency,
                    ns,
                }),
            }
        }
    }
    parts.retain(|part| part.ns.abs() >= ROUNDING_NS / 1e3);
    parts.sort_by(|one, other| other.ns.total_cmp(&one.ns));
    parts
}

/// The median; NaN without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    Summary::of(values).map_or(f64::NAN, |summary| summary.median)
}
