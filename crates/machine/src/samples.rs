//! What came out.

use crate::{Cause, Corrected, LinkUse, Steady};
use lanemark_units::Ticks;

/// One repetition of a plan, timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// From the first timestamp to the second: all instructions were issued, stores may still be buffered.
    pub issue: Ticks,
    /// From the first timestamp until the last byte was accepted where it was meant to go.
    pub delivered: Ticks,
}

/// Time lane 0 spent waiting, by what it waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// What for.
    pub cause: Cause,
    /// How long in all samples together.
    pub span: Ticks,
}

/// What crossed the link of the card, either way, while samples were taken (warm-up not counted).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Memory writes.
    pub write_tlps: u64,
    /// Memory reads.
    pub read_tlps: u64,
    /// Completions.
    pub completion_tlps: u64,
    /// Payload bytes of all of them.
    pub payload_bytes: u64,
}

/// What several devices moved in one sample that began together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Concurrent {
    /// From their beginning until the first of them was done: the time that all have in common.
    pub common: Ticks,
    /// Each, in the order of the plan's lanes.
    pub each: Vec<BytesMoved>,
}

/// What one of several devices moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BytesMoved {
    /// Until its last byte was at its end.
    pub delivered: Ticks,
    /// Bytes in all.
    pub bytes: u64,
    /// Those of them in the common time.
    pub common_bytes: u64,
}

/// Bytes that were to arrive, and those found to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Confirmed {
    /// Distinct bytes that one pass of the plan stores.
    pub claimed_bytes: u64,
    /// Those of them found at the far end with the values stored last.
    pub confirmed_bytes: u64,
}

/// How it is known that what a sample stored had arrived at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Delivery {
    /// The machine sees the arrival itself, or nothing was stored.
    #[default]
    Seen,
    /// A load from where was stored came back: `delivered` has one round trip of a read inside, so that it is an upper
    /// bound. It is not subtracted, because a part of it runs beside the last stores.
    ReadBack {
        /// The median of the same load with no store before it; zero where it was not taken.
        round_trip: Ticks,
    },
    /// It is not known: nothing there may be loaded. `delivered` is that of `issue` and means nothing.
    Unknown,
}

/// Samples that were taken and thrown away, because they tell of something else than the plan, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// The core was given to somebody else, or the thread to another core, while the sample ran.
    pub context_switches: u64,
    /// Two clocks disagree on how long the sample took: one was stepped, or a virtual machine was paused.
    pub clock_steps: u64,
}

impl Dropped {
    /// All of them.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.context_switches.saturating_add(self.clock_steps)
    }

    /// Counts one more.
    pub fn add(&mut self, disturbance: Disturbance) {
        let count = match disturbance {
            Disturbance::ContextSwitch => &mut self.context_switches,
            Disturbance::ClockStep => &mut self.clock_steps,
        };
        *count = count.saturating_add(1);
    }
}

/// Why a sample does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disturbance {
    /// See [`Dropped::context_switches`].
    ContextSwitch,
    /// See [`Dropped::clock_steps`].
    ClockStep,
}

impl Disturbance {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Disturbance::ContextSwitch => "context_switch",
            Disturbance::ClockStep => "clock_step",
        }
    }
}

/// What a machine fills: first made for a number of samples, then handed to
/// [`Machine::run`](crate::Machine::run).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Samples {
    wanted: usize,
    /// The samples, in the order they were taken.
    pub taken: Vec<Sample>,
    /// How many more there were that do not count; zero where time is virtual.
    pub dropped: Dropped,
    /// Those, in the order they were taken, each with how many of `taken` came before it.
    pub disturbed: Vec<(usize, Sample, Disturbance)>,
    /// The system's number of the processor on which each of both ended, in the order they were taken; empty where the machine
    /// does not tell.
    pub cpus: Vec<u32>,
    /// What lane 0 waited for; empty where the machine cannot see it.
    pub waits: Vec<Wait>,
    /// What crossed the link; `None` where the machine cannot see it.
    pub traffic: Option<Traffic>,
    /// What each direction of each link carried that carried anything; empty where the machine cannot see it.
    pub links: Vec<LinkUse>,
    /// Errors that links repaired in the samples; empty if there were none, or the machine cannot see them.
    pub corrected: Vec<Corrected>,
    /// How long single reads of a device took, those of lane 0's transfer in the order in which they ended and at most
    /// [`Samples::MOST_LATENCIES`] of a sample, if the transfer says how many may be under way; empty where it is not known.
    pub latencies: Vec<Ticks>,
    /// Whether the bytes arrived; `None` where nothing was moved that could be checked.
    pub confirmed: Option<Confirmed>,
    /// What each of several devices moved in the last sample; `None` unless the plan lets several move bytes.
    pub together: Option<Concurrent>,
    /// What was not simulated step by step; `None` where nothing could be left out, as on a real machine.
    pub steady: Option<Steady>,
    /// How the ends of the samples are known.
    pub delivery: Delivery,
    /// What an empty sample takes; already subtracted from `taken`.
    pub timer_cost: Ticks,
    /// What the whole run took in the machine's own time: preparing, warm-up, dropped samples and the check of the
    /// bytes too. Zero where the machine does not tell.
    pub spent: Ticks,
}

impl Samples {
    /// Room for `wanted` samples; at least one is taken.
    #[must_use]
    pub fn wanted(wanted: usize) -> Samples {
        let wanted = wanted.max(1);
        Samples {
            wanted,
            taken: Vec::with_capacity(wanted),
            dropped: Dropped::default(),
            disturbed: Vec::new(),
            cpus: Vec::new(),
            waits: Vec::new(),
            traffic: None,
            links: Vec::new(),
            corrected: Vec::new(),
            latencies: Vec::new(),
            confirmed: None,
            together: None,
            steady: None,
            delivery: Delivery::Seen,
            timer_cost: Ticks::ZERO,
            spent: Ticks::ZERO,
        }
    }

    /// How many samples the asker wants.
    #[must_use]
    pub fn count_wanted(&self) -> usize {
        self.wanted
    }

    /// Single latencies that a machine keeps of one sample.
    pub const MOST_LATENCIES: usize = 1 << 13;

    /// Dropped samples are replaced, but no more of them than were wanted, or than this where few were.
    const LEAST_REPLACED: usize = 4;

    /// Whether a machine goes on: fewer samples than wanted are taken, and not so many dropped that there would be no
    /// end of it. Then a run returns what it has.
    ///
    /// ```
    /// use lanemark_machine::{Disturbance, Sample, Samples};
    /// let mut samples = Samples::wanted(10);
    /// while samples.wants_more() {
    ///     samples.keep(Sample::default(), Some(Disturbance::ContextSwitch));
    /// }
    /// assert_eq!((samples.taken.len(), samples.dropped.context_switches), (0, 20));
    /// ```
    #[must_use]
    pub fn wants_more(&self) -> bool {
        let most_tries = self.wanted.saturating_add(self.wanted.max(Samples::LEAST_REPLACED));
        self.taken.len() < self.wanted && self.taken.len() + self.disturbed.len() < most_tries
    }

    /// Takes a sample, or drops and counts it if something disturbed it.
    pub fn keep(&mut self, sample: Sample, disturbance: Option<Disturbance>) {
        match disturbance {
            None => self.taken.push(sample),
            Some(disturbance) => {
                self.dropped.add(disturbance);
                self.disturbed.push((self.taken.len(), sample, disturbance));
            }
        }
    }

    /// Forgets what was taken and keeps the room.
    pub fn clear(&mut self) {
        self.taken.clear();
        self.dropped = Dropped::default();
        self.disturbed.clear();
        self.cpus.clear();
        self.spent = Ticks::ZERO;
        self.waits.clear();
        self.traffic = None;
        self.links.clear();
        self.corrected.clear();
        self.latencies.clear();
        self.confirmed = None;
        self.together = None;
        self.steady = None;
        self.delivery = Delivery::Seen;
        self.timer_cost = Ticks::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Option<Disturbance> = None;
    const SWITCHED: Option<Disturbance> = Some(Disturbance::ContextSwitch);

    /// How many are taken if only every `n`th sample is undisturbed.
    fn taken(wanted: usize, n: usize) -> (usize, u64) {
        let mut samples = Samples::wanted(wanted);
        for place in 1.. {
            if !samples.wants_more() {
                break;
            }
            samples.keep(Sample::default(), if place % n == 0 { QUIET } else { SWITCHED });
        }
        (samples.taken.len(), samples.dropped.count())
    }

    #[test]
    fn dropped_samples_are_replaced_as_often_as_samples_were_wanted_and_no_oftener() {
        assert_eq!(taken(10, 1), (10, 0));
        assert_eq!(taken(10, 2), (10, 10));
        assert_eq!(taken(10, 3), (6, 14), "twenty tries, every third of them undisturbed");
        assert_eq!(taken(1, 5), (1, 4), "five tries at the least");
        assert_eq!(taken(1, 6), (0, 5));
    }

    #[test]
    fn every_reason_has_its_count_and_a_cleared_set_has_none() {
        let mut samples = Samples::wanted(3);
        samples.keep(Sample::default(), Some(Disturbance::ClockStep));
        samples.keep(Sample::default(), None);
        samples.keep(Sample::default(), SWITCHED);
        assert_eq!(samples.dropped, Dropped { context_switches: 1, clock_steps: 1 });
        let places: Vec<usize> = samples.disturbed.iter().map(|(place, ..)| *place).collect();
        assert_eq!(places, [0, 1]);
        samples.clear();
        assert_eq!(samples, Samples::wanted(3));
    }
}
