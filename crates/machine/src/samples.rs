//! Samples: the results of a plan.

use crate::{Cause, Corrected, LinkUse, ResourceUse, Steady};
use lanemark_units::Ticks;

/// One timed repetition of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// From the first timestamp to the second: all instructions have been issued, but stores may still be buffered.
    pub issue: Ticks,
    /// From the first timestamp until the last byte was accepted at its destination.
    pub delivered: Ticks,
}

/// Stall time, by cause: of the core or the card that takes the times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The cause.
    pub cause: Cause,
    /// Total stall time over all samples.
    pub span: Ticks,
}

/// A part of the critical path: time that one place took, for one cause.
///
/// The spans of a path add up to the time until delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathShare {
    /// Where the time was spent, for example `memory` or `card up`.
    pub place: String,
    /// For what: the work of the place, or the limit of concurrency for which latency could not overlap with more.
    pub cause: Cause,
    /// Whether the time is latency, which other accesses could overlap, and not work of the place.
    pub is_latency: bool,
    /// Time over all samples.
    pub span: Ticks,
}

/// Traffic on the link of the card, in both directions, while samples were taken (without warm-up).
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

/// Data moved concurrently by several devices in one sample.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Concurrent {
    /// From the common start until the first device finished: the time during which all are active.
    pub common: Ticks,
    /// Each device, in the order of the plan's lanes.
    pub each: Vec<BytesMoved>,
}

/// Data moved by one of several devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BytesMoved {
    /// Time until its last byte arrived.
    pub delivered: Ticks,
    /// Total bytes.
    pub bytes: u64,
    /// Bytes moved while all devices were active.
    pub common_bytes: u64,
}

/// Verification of the data: bytes expected, and bytes that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Confirmed {
    /// Distinct bytes that one iteration of the plan stores.
    pub claimed_bytes: u64,
    /// Those found at the destination with the value stored last.
    pub confirmed_bytes: u64,
}

/// Pages of host memory that the kernel maps for a device, and their bounce buffer (swiotlb).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BounceBuffer {
    /// Pages of a mapping.
    pub mapped_pages: u64,
    /// Pages that are mapped through a bounce buffer, so that the kernel copies their bytes.
    pub bounced_pages: u64,
}

/// How the arrival of stored data is detected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Delivery {
    /// The machine observes the arrival, or nothing was stored.
    #[default]
    Seen,
    /// A load from the destination returned. `delivered` contains one read round trip and is therefore an upper
    /// bound. The round trip is not subtracted, because it partly overlaps the last stores.
    ReadBack {
        /// Median time of the same load without a store before it; zero if not measured.
        round_trip: Ticks,
    },
    /// The arrival cannot be detected, because the destination must not be read. `delivered` equals `issue` and is
    /// not meaningful.
    Unknown,
}

/// Discarded samples, which were disturbed by something other than the plan, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// The core was preempted, or the thread migrated, during the sample.
    pub context_switches: u64,
    /// Two clocks disagree on the duration of the sample: one was stepped, or a virtual machine was paused.
    pub clock_steps: u64,
}

impl Dropped {
    /// Total of all reasons.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.context_switches.saturating_add(self.clock_steps)
    }

    /// Counts one discarded sample.
    pub fn add(&mut self, disturbance: Disturbance) {
        let count = match disturbance {
            Disturbance::ContextSwitch => &mut self.context_switches,
            Disturbance::ClockStep => &mut self.clock_steps,
        };
        *count = count.saturating_add(1);
    }
}

/// The reason for discarding a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disturbance {
    /// See [`Dropped::context_switches`].
    ContextSwitch,
    /// See [`Dropped::clock_steps`].
    ClockStep,
}

impl Disturbance {
    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Disturbance::ContextSwitch => "context_switch",
            Disturbance::ClockStep => "clock_step",
        }
    }
}

/// The results of a run: created for a number of samples, filled by [`Machine::run`](crate::Machine::run).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Samples {
    wanted: usize,
    /// The samples in the order in which they were taken.
    pub taken: Vec<Sample>,
    /// Number of discarded samples; zero in virtual time.
    pub dropped: Dropped,
    /// The discarded samples in order, each with the number of `taken` samples before it.
    pub disturbed: Vec<(usize, Sample, Disturbance)>,
    /// Operating system's number of the CPU on which each sample ended, kept and discarded ones in order; empty if
    /// unknown.
    pub cpus: Vec<u32>,
    /// Stalls of the core or the card that takes the times; empty if not observable.
    pub waits: Vec<Wait>,
    /// The critical path of the samples until delivery, the longest share first; empty if not observable.
    pub path: Vec<PathShare>,
    /// Traffic on the link of the card; `None` if not observable.
    pub traffic: Option<Traffic>,
    /// Utilization of each direction of each link that carried traffic; empty if not observable.
    pub links: Vec<LinkUse>,
    /// Utilization of the other resources that were in use; empty if not observable.
    pub resources: Vec<ResourceUse>,
    /// Errors corrected by links during the samples; empty if none, or not observable.
    pub corrected: Vec<Corrected>,
    /// Latencies of single DMA reads of the first job, in the order of completion. At most
    /// [`Samples::MOST_LATENCIES`] per sample. Recorded if the transfer limits its outstanding reads; empty if not
    /// observable.
    pub latencies: Vec<Ticks>,
    /// Whether the data arrived; `None` if nothing that can be verified was moved.
    pub confirmed: Option<Confirmed>,
    /// The use of a bounce buffer by mappings for a device; `None` if nothing is mapped, or if it is not observable.
    pub bounce_buffer: Option<BounceBuffer>,
    /// Data moved by each of several devices in the last sample; `None` unless several devices transfer concurrently.
    pub together: Option<Concurrent>,
    /// Fast-forwarded transfers; `None` if the machine cannot fast-forward, as on real hardware.
    pub steady: Option<Steady>,
    /// How the arrival of data is detected.
    pub delivery: Delivery,
    /// Duration of an empty sample, already subtracted from `taken`.
    pub timer_cost: Ticks,
    /// Duration of the whole run on the machine's clock, including setup, warm-up, discarded samples and
    /// verification. Zero if unknown.
    pub spent: Ticks,
}

impl Samples {
    /// An empty result with capacity for `wanted` samples; at least one is taken.
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
            path: Vec::new(),
            traffic: None,
            links: Vec::new(),
            resources: Vec::new(),
            corrected: Vec::new(),
            latencies: Vec::new(),
            confirmed: None,
            bounce_buffer: None,
            together: None,
            steady: None,
            delivery: Delivery::Seen,
            timer_cost: Ticks::ZERO,
            spent: Ticks::ZERO,
        }
    }

    /// Number of requested samples.
    #[must_use]
    pub fn count_wanted(&self) -> usize {
        self.wanted
    }

    /// Maximum number of latencies kept per sample.
    pub const MOST_LATENCIES: usize = 1 << 13;

    /// Minimum limit of replaced samples. The limit is the number of requested samples, if that is larger.
    const LEAST_REPLACED: usize = 4;

    /// Whether a machine takes another sample: fewer than requested are kept, and the limit of discarded samples is
    /// not reached. When it is reached, the run returns the samples it has.
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

    /// Keeps a sample, or discards and counts it if it was disturbed.
    pub fn keep(&mut self, sample: Sample, disturbance: Option<Disturbance>) {
        match disturbance {
            None => self.taken.push(sample),
            Some(disturbance) => {
                self.dropped.add(disturbance);
                self.disturbed.push((self.taken.len(), sample, disturbance));
            }
        }
    }

    /// Adds the critical path of a sample.
    pub fn add_path(&mut self, shares: &[PathShare]) {
        for share in shares {
            let same = |other: &&mut PathShare| {
                (&other.place, other.cause, other.is_latency) == (&share.place, share.cause, share.is_latency)
            };
            match self.path.iter_mut().find(same) {
                Some(other) => other.span += share.span,
                None => self.path.push(share.clone()),
            }
        }
        self.path.sort_by_key(|share| std::cmp::Reverse(share.span));
    }

    /// Adds the use of a resource in a sample.
    pub fn add_resource(&mut self, used: ResourceUse) {
        let same = |other: &&mut ResourceUse| {
            (&other.place, other.cause, other.direction, other.servers)
                == (&used.place, used.cause, used.direction, used.servers)
        };
        match self.resources.iter_mut().find(same) {
            Some(other) => (other.span, other.busy) = (other.span + used.span, other.busy + used.busy),
            None => self.resources.push(used),
        }
    }

    /// Clears all results but keeps the allocations.
    pub fn clear(&mut self) {
        self.taken.clear();
        self.dropped = Dropped::default();
        self.disturbed.clear();
        self.cpus.clear();
        self.spent = Ticks::ZERO;
        self.waits.clear();
        self.path.clear();
        self.traffic = None;
        self.links.clear();
        self.resources.clear();
        self.corrected.clear();
        self.latencies.clear();
        self.confirmed = None;
        self.bounce_buffer = None;
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

    /// Numbers of kept and discarded samples if only every `n`th sample is undisturbed.
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
