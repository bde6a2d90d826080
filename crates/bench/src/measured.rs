//! The samples of one plan, collected over its visits.

use lanemark_machine::{Plan, Sample, Samples};
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
}

impl Measured {
    /// An empty collection for `plan`; `name` distinguishes it from other plans of its question.
    pub(crate) fn of(name: String, plan: Plan) -> Measured {
        let raw = RawSamples { plan: name, ..RawSamples::default() };
        let (samples, round, timer_costs, others) = (Samples::wanted(1), Vec::new(), Vec::new(), Vec::new());
        Measured { plan, samples, round, raw, timer_costs, latencies_ns: None, others }
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
        let rounds = self.by_round_ns();
        rounds.iter().find(|(other, _)| *other == round).map_or(f64::NAN, |(_, times)| median(times))
    }

    /// Issue times per iteration minus those of `other`, by pairs of samples of the same round.
    pub(crate) fn minus_by_round_ns(&self, other: &Measured) -> Vec<f64> {
        let others = other.by_round_ns();
        let same_round = |round: u64| others.iter().find(|(other, _)| *other == round).map(|(_, times)| times);
        let rounds = self.by_round_ns();
        let pairs = rounds.iter().filter_map(|(round, times)| Some(times.iter().zip(same_round(*round)?)));
        pairs.flatten().map(|(with, without)| with - without).collect()
    }

    /// Issue times per iteration in each round, in order.
    pub(crate) fn by_round_ns(&self) -> Vec<(u64, Vec<f64>)> {
        let mut rounds: Vec<(u64, Vec<f64>)> = Vec::new();
        for (round, ns) in self.round.iter().zip(self.per_pass_issue_ns()) {
            match rounds.last_mut().filter(|(last, _)| last == round) {
                Some((_, times)) => times.push(ns),
                None => rounds.push((*round, vec![ns])),
            }
        }
        rounds
    }
}

/// The median; NaN without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    Summary::of(values).map_or(f64::NAN, |summary| summary.median)
}
