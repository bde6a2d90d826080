//! Sampling of several plans in rounds. Each round visits every plan once, in a random order, and
//! takes a few samples.
//!
//! A temporary disturbance, such as a frequency change or another program, then affects all plans
//! alike.

use crate::effort::Effort;
use crate::error::BenchError;
use crate::measured::Measured;
use crate::series::Series;
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, TimeBase, Work};
use lanemark_record::{LEAST_SAMPLES, Summary};
use lanemark_units::Ticks;

/// A plan to be sampled.
pub(crate) struct Wanted {
    /// Name of the plan within its question; empty if it is the only one.
    pub(crate) name: String,
    /// The plan of one sample, with its smallest number of iterations.
    pub(crate) plan: Plan,
    /// Largest number of iterations per sample in real time.
    pub(crate) most_passes: u64,
}

/// Called before every visit with the number of completed plans; returns whether to continue.
pub(crate) type GoOn<'a> = &'a mut dyn FnMut(usize) -> bool;

/// Runs the plans in rounds; in virtual time once each, in order, independent of each other.
///
/// Each plan ends with its samples or with an error. If the caller cancels, or the machine fails
/// permanently, plans with samples keep them. The others end with [`MachineError::Interrupted`] or
/// [`BenchError::NotAsked`].
///
/// `series` has the sizes of the plans, if some may be left out: where the budget does not suffice
/// for the least samples of all, some plans end with [`BenchError::LeftOut`].
pub(crate) fn in_rounds(
    machine: &mut dyn Machine,
    wanted: Vec<Wanted>,
    series: Option<&Series>,
    effort: &Effort,
    go_on: GoOn<'_>,
) -> Vec<Result<Measured, BenchError>> {
    let patient = |wanted: Wanted| {
        let timeout = wanted.plan.timeout.max(machine.slowest_sample(&wanted.plan));
        Wanted { plan: Plan { timeout, ..wanted.plan }, ..wanted }
    };
    let mut variants: Vec<Variant> = wanted.into_iter().map(|wanted| Variant::new(patient(wanted))).collect();
    match machine.facts().time_base {
        TimeBase::Simulated => once(machine, &mut variants, go_on),
        TimeBase::Real | TimeBase::Emulated => {
            Sampling { machine, effort, series, spent: Ticks::ZERO }.run(&mut variants, go_on);
        }
    }
    let name = &machine.facts().name;
    let has_failed = variants.iter().any(Variant::has_failed);
    variants.into_iter().map(|variant| variant.ended(name, has_failed)).collect()
}

fn once(machine: &mut dyn Machine, variants: &mut [Variant], go_on: GoOn<'_>) {
    for (place, variant) in variants.iter_mut().enumerate() {
        let mut samples = Samples::wanted(1);
        let done = if go_on(place) {
            let plan = warmed_up(&variant.measured.plan, machine.facts());
            machine.run(&plan, &mut samples)
        } else {
            Err(MachineError::Interrupted { machine: machine.facts().name.clone() })
        };
        match done {
            Ok(()) => variant.measured.add(0, &samples, 0),
            Err(error) => variant.error = Some(error.into()),
        }
        if variant.is_last() {
            break;
        }
    }
}

/// The plan with a warm-up of the length of a sample if it has none and an IOMMU translates its DMA, as the first sample
/// of a [visit](Sampling::visit) in real time. A simulated machine starts it without cached translations, whatever ran
/// before. The warm-up of a request to a runtime is one iteration.
fn warmed_up(plan: &Plan, facts: &Facts) -> Plan {
    let translates = facts.dma.is_some_and(|dma| dma.page_bytes.is_some());
    let warmup_passes = match &plan.work {
        _ if !translates || plan.warmup_passes > 0 => plan.warmup_passes,
        Work::Engines(_) | Work::Relay(_) => plan.passes,
        Work::Cores(_) if plan.work.dma_calls().next().is_some() => plan.passes,
        Work::Queue(_) => 1,
        Work::Cores(_) | Work::Exchange(_) => 0,
    };
    Plan { warmup_passes, ..plan.clone() }
}

/// A plan in progress.
struct Variant {
    most_passes: u64,
    measured: Measured,
    /// Samples per visit; zero until it is known.
    visit: usize,
    /// Total time of its visits, without the trials before the first one.
    spent: Ticks,
    /// Number of samples at the last check of the interval.
    looked_at: usize,
    is_done: bool,
    error: Option<BenchError>,
}

impl Variant {
    fn new(wanted: Wanted) -> Variant {
        Variant {
            most_passes: wanted.most_passes,
            measured: Measured::of(wanted.name, wanted.plan),
            visit: 0,
            spent: Ticks::ZERO,
            looked_at: 0,
            is_done: false,
            error: None,
        }
    }

    /// Whether the machine failed permanently in this plan.
    fn has_failed(&self) -> bool {
        self.error.as_ref().is_some_and(BenchError::is_for_good)
    }

    /// Whether no plan is visited after this one.
    fn is_last(&self) -> bool {
        self.has_failed() || is_interrupted(self.error.as_ref())
    }

    fn ended(self, machine: &str, has_failed: bool) -> Result<Measured, BenchError> {
        match self.error {
            Some(error) if !is_interrupted(Some(&error)) || !self.measured.has_run() => Err(error),
            _ if self.measured.has_run() => Ok(self.measured),
            _ if has_failed => Err(BenchError::NotAsked),
            _ => Err(MachineError::Interrupted { machine: machine.to_owned() }.into()),
        }
    }

    /// Number of visits until it has its least rounds and the samples of an interval. Dropped samples
    /// can delay these, but only for a few rounds.
    fn missing_visits(&self, effort: &Effort) -> u64 {
        let rounds = self.measured.rounds();
        if self.is_done || rounds >= effort.least_rounds.max(LEAST_SAMPLES as u64) {
            return 0;
        }
        let missing_samples = LEAST_SAMPLES.saturating_sub(self.measured.samples.taken.len());
        effort.least_rounds.saturating_sub(rounds).max(missing_samples.div_ceil(self.visit.max(1)) as u64)
    }

    /// Expected time of the missing visits, from those before.
    fn missing_time(&self, effort: &Effort) -> Ticks {
        let visit = self.spent.0.checked_div(self.measured.rounds()).unwrap_or(0);
        Ticks(visit.saturating_mul(self.missing_visits(effort)))
    }

    /// Whether sampling is complete. The interval is checked again only after a quarter more
    /// samples.
    fn is_settled(&mut self, effort: &Effort) -> bool {
        let times = self.measured.delivered_ns();
        // Rounds are counted too, because dropped samples may take no time and would never end.
        if times.len().max(self.measured.rounds() as usize) >= effort.most_samples {
            return true;
        }
        if self.measured.rounds() < effort.least_rounds || times.len() * 4 < self.looked_at * 5 {
            return false;
        }
        self.looked_at = times.len();
        let Some(summary) = Summary::of(&times) else { return false };
        let width = summary.ci95.and_then(|interval| interval.width_percent_of(summary.median));
        width.is_some_and(|percent| percent <= effort.interval_percent)
    }
}

/// Sampling in real time.
struct Sampling<'a> {
    machine: &'a mut dyn Machine,
    effort: &'a Effort,
    /// The sizes of the plans, if some may be left out.
    series: Option<&'a Series>,
    spent: Ticks,
}

impl Sampling<'_> {
    fn run(mut self, variants: &mut [Variant], go_on: GoOn<'_>) {
        for round in 0.. {
            // Decided once: the first round has the price of each variant, and noise in later rounds
            // must not discard variants that are almost complete.
            if round == 1 {
                self.leave_out(variants);
            }
            let mut order: Vec<usize> = (0..variants.len()).filter(|place| !variants[*place].is_done).collect();
            fastrand::Rng::with_seed(round).shuffle(&mut order);
            if round > 0 && self.spent >= self.effort.budget {
                order.retain(|place| self.exceeds_budget_for(&variants[*place]));
            }
            if order.is_empty() {
                return;
            }
            for place in order {
                if round > 0 && self.spent >= self.effort.budget && !self.exceeds_budget_for(&variants[place]) {
                    continue;
                }
                if !go_on(variants.iter().filter(|variant| variant.is_done).count()) {
                    return;
                }
                let variant = &mut variants[place];
                if let Err(error) = self.visit(variant, round) {
                    (variant.error, variant.is_done) = (Some(error.into()), true);
                    if variant.is_last() {
                        return;
                    }
                }
                variant.is_done = variant.is_done || variant.is_settled(self.effort);
            }
        }
    }

    /// Whether a variant is visited although the budget is spent.
    fn exceeds_budget_for(&self, variant: &Variant) -> bool {
        (self.effort.has_default_sizes || self.effort.needs_interval) && variant.missing_visits(self.effort) > 0
    }

    /// Leaves out variants if the remaining budget with its extension does not suffice for the missing
    /// visits of all, at the price of their visits so far.
    fn leave_out(&self, variants: &mut [Variant]) {
        let Some(series) = self.series else { return };
        let missing: Vec<Ticks> = variants.iter().map(|variant| variant.missing_time(self.effort)).collect();
        let most = self.effort.budget.0.saturating_add(self.effort.extension.0);
        let remaining = Ticks(most.saturating_sub(self.spent.0));
        for (variant, is_kept) in variants.iter_mut().zip(series.affordable(&missing, remaining)) {
            if !is_kept {
                (variant.error, variant.is_done) = (Some(BenchError::LeftOut), true);
            }
        }
    }

    /// Takes the samples of one visit.
    fn visit(&mut self, variant: &mut Variant, round: u64) -> Result<(), MachineError> {
        if variant.visit == 0 {
            let sample = self.settle_passes(&mut variant.measured.plan, variant.most_passes)?;
            variant.visit = self.effort.samples_of(sample);
        }
        let mut samples = Samples::wanted(variant.visit + 1);
        let before = self.spent;
        self.run_once(&variant.measured.plan, &mut samples)?;
        variant.spent += Ticks(self.spent.0.saturating_sub(before.0));
        // The first sample warms the caches after the other plans.
        variant.measured.add(round, &samples, 1);
        Ok(())
    }

    fn run_once(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let done = self.machine.run(plan, samples);
        let all = samples.taken.iter().chain(samples.disturbed.iter().map(|(_, sample, _)| sample));
        let in_samples = all.map(|sample| sample.delivered).sum();
        self.spent += samples.spent.max(in_samples);
        done
    }

    /// Increases iterations until a sample is much longer than the timer's resolution; returns its
    /// length.
    fn settle_passes(&mut self, plan: &mut Plan, most_passes: u64) -> Result<Ticks, MachineError> {
        let mut trial = Samples::wanted(1);
        let length = self.effort.sample_length.max(self.machine.least_sample(plan));
        loop {
            self.run_once(plan, &mut trial)?;
            // A dropped sample is too long, but still of the right order of magnitude.
            let all = trial.taken.iter().chain(trial.disturbed.iter().map(|(_, sample, _)| sample));
            let sample = all.map(|sample| sample.delivered).min().unwrap_or(Ticks::ZERO);
            if sample >= length || plan.passes >= most_passes {
                return Ok(sample);
            }
            let factor = length.0.checked_div(sample.0).unwrap_or(16).clamp(2, 16);
            plan.passes = plan.passes.saturating_mul(factor).min(most_passes);
            plan.timeout = plan.timeout.max(self.machine.slowest_sample(plan));
        }
    }
}

fn is_interrupted(error: Option<&BenchError>) -> bool {
    matches!(error, Some(BenchError::Machine(MachineError::Interrupted { .. })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_fixture;
    use lanemark_machine::{
        DmaFacts, EngineJob, EngineWork, HostMemory, Partner, Pattern, Step, Transfer, Verb, Window,
    };

    #[test]
    fn simulated_dma_behind_an_iommu_has_a_warm_up_of_the_length_of_a_sample() {
        let facts = |page_bytes| {
            let dma = DmaFacts {
                cards: 1,
                mapped_bytes: 1 << 30,
                page_bytes,
                cache: None,
                is_partial_dearer: false,
                has_remote: false,
                tags: 32,
                channels: 1,
                peer: None,
                relays_at: None,
                has_driver: false,
                has_flag: false,
                fetches_only: false,
            };
            Facts { dma: Some(dma), ..runtime_fixture::facts(&[]) }
        };
        let window = Window { offset: 0, len: 4096, pattern: Pattern::Sequential };
        let (verb, partner) = (Verb::Load, Partner::Host);
        let transfer = Transfer { card: 0, verb, partner, bytes: 64, count: 2, window, outstanding: None };
        let jobs = vec![EngineJob::Transfer(transfer)];
        let dma = Plan::new(EngineWork { jobs, memory: HostMemory::default() }, 5);
        let passes = |plan: &Plan, page_bytes| warmed_up(plan, &facts(page_bytes)).warmup_passes;
        assert_eq!((passes(&dma, Some(4096)), passes(&dma, None)), (5, 0));
        assert_eq!(passes(&Plan { warmup_passes: 2, ..dma }, Some(4096)), 2);
        let fence = Step::Fence(lanemark_machine::Fence::Sfence);
        assert_eq!(passes(&Plan::new(fence, 5), Some(4096)), 0, "a core needs no translation");
    }

    /// A real machine on which an iteration takes 10 us, and whose clock needs samples of this length.
    struct Coarse(Facts, Ticks);

    impl Machine for Coarse {
        fn facts(&self) -> &Facts {
            &self.0
        }

        fn supports(&self, _: &Plan) -> Result<(), lanemark_machine::Unsupported> {
            Ok(())
        }

        fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
            samples.clear();
            let time = Ticks::whole_ns(10_000 * plan.passes);
            while samples.wants_more() {
                samples.keep(lanemark_machine::Sample { issue: time, delivered: time }, None);
            }
            Ok(())
        }

        fn least_sample(&self, _: &Plan) -> Ticks {
            self.1
        }
    }

    #[test]
    fn samples_are_as_long_as_the_clock_of_the_machine_needs() {
        let passes = |least_ns| {
            let facts = Facts { time_base: TimeBase::Real, ..runtime_fixture::facts(&[]) };
            let plan = Plan::new(Step::Fence(lanemark_machine::Fence::Sfence), 1);
            let wanted = vec![Wanted { name: String::new(), plan, most_passes: 4096 }];
            let mut machine = Coarse(facts, Ticks::whole_ns(least_ns));
            let measured = in_rounds(&mut machine, wanted, None, &Effort::default(), &mut |_| true);
            measured[0].as_ref().unwrap().plan.passes
        };
        assert_eq!(passes(0), 2, "20 us, the usual length");
        let passes = passes(1_000_000);
        assert!((100..200).contains(&passes), "{passes} iterations of 10 us");
    }
}
