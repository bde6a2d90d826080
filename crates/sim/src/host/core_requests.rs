//! Requests of cores at the root complex: accepted in order, queued for the links, posted writes acknowledged.
//!
//! Ports: `from_cores` carries requests, `completions` return to cores, and acknowledgments are passed to each core
//! with their arrival time. The inputs of the links below the root ports are the queue; its length is counted here.
//!
//! Stall cause recorded with an acknowledgment: the cause for which the queue was full, if it was.

use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::events::Events;
use crate::ports::Port;
use crate::steady::Survey;
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::Wire;
use lanemark_machine::Cause;
use lanemark_platform::Platform;
use lanemark_units::Ticks;

/// Constants of the requests of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Latency from each core; the return path has the same latency.
    pub from_core: Vec<Ticks>,
    /// Capacity of the queue to the links, in requests.
    pub queue_entries: usize,
}

impl Spec {
    /// Reads the constants of a platform.
    #[must_use]
    pub fn new(platform: &Platform) -> Spec {
        let root = &platform.root_complex;
        let from_core = |core| root.core_round_trip_ns.value / 2 + platform.core_distance(core);
        Spec {
            from_core: (0..platform.core.cores.value).map(from_core).collect(),
            queue_entries: root.posted_queue_entries.value as usize,
        }
    }
}

/// Acknowledgment of a posted write: it is ordered, and the core may free its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Tag of the request.
    pub tag: u16,
    /// Stall cause besides the latency.
    pub because: Option<Cause>,
    /// Its arrival at the core.
    pub milestone: Milestone,
}

/// State of the requests of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreRequests {
    spec: Spec,
    /// Requests in flight from cores.
    pub from_cores: Wire<Tlp>,
    /// Completions in flight to cores.
    pub completions: Wire<Tlp>,
    /// Time at which the queue last had space, and the stall cause of the TLP that left.
    freed: (Ticks, Option<Cause>),
    /// Departure of that TLP.
    departed: Milestone,
    /// Number of requests in the queue.
    queued: usize,
}

impl CoreRequests {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(spec: Spec) -> CoreRequests {
        let (from_cores, completions) = (Wire::default(), Wire::default());
        CoreRequests { spec, from_cores, completions, freed: (Ticks::ZERO, None), departed: Milestone::NONE, queued: 0 }
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let CoreRequests { spec: _, from_cores, completions, freed: (freed_at, because), departed: _, queued } = self;
        from_cores.visit(view, Survey::tlp);
        completions.visit(view, Survey::tlp);
        view.time(freed_at);
        view.count(because.map_or(0, |because| because.index() + 1));
        view.count(*queued);
    }

    /// Returns the latency of the core of a TLP.
    #[inline]
    fn way_of(&self, tlp: &Tlp) -> Ticks {
        self.spec.from_core.get(usize::from(tlp.requester)).copied().unwrap_or(Ticks::ZERO)
    }

    /// Receives a request of a core.
    #[inline]
    pub fn request(&mut self, now: Ticks, mut tlp: Tlp, path: &mut CriticalPath) {
        let arrives = now + self.way_of(&tlp);
        tlp.milestone = path.add(tlp.milestone, arrives, Place::ROOT_COMPLEX, Cause::Transit);
        self.from_cores.join(arrives, tlp);
    }

    /// Returns when the next request is accepted.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        if self.queued < self.spec.queue_entries { self.from_cores.due().max(self.freed.0) } else { Ticks::NEVER }
    }

    /// Schedules the next request.
    #[inline]
    pub(crate) fn refresh(&self, events: &mut Events) {
        events.set(Port::Requests, self.due());
    }

    /// Counts a request that enters the queue.
    #[inline]
    pub fn queue(&mut self) {
        self.queued += 1;
    }

    /// Accepts the next request. For a posted write, also returns its acknowledgment and when that reaches the core.
    #[inline]
    pub fn take(&mut self, now: Ticks, path: &mut CriticalPath) -> Option<(Tlp, Option<(Ticks, Ack)>)> {
        let arrived = self.from_cores.due();
        let mut tlp = self.from_cores.take(now)?;
        if now > arrived {
            tlp.milestone =
                path.add_after(Cause::RootComplex, self.departed, now, Place::ROOT_COMPLEX, Cause::RootComplex);
        }
        let ack = (tlp.kind == TlpKind::MWr).then(|| {
            let because = if now > arrived { self.freed.1.or(Some(Cause::RootComplex)) } else { None };
            let at_core = now + self.way_of(&tlp);
            let milestone = path.add(tlp.milestone, at_core, Place::ROOT_COMPLEX, Cause::Transit);
            (at_core, Ack { tag: tlp.tag, because, milestone })
        });
        Some((tlp, ack))
    }

    /// Records that a request left the queue at `now` after a stall for `because`; returns whether the queue was
    /// full, so that the next request may have waited for it.
    #[inline]
    pub fn left(&mut self, now: Ticks, because: Option<Cause>, departed: Milestone) -> bool {
        let was_full = self.queued >= self.spec.queue_entries;
        self.queued -= 1;
        (self.freed, self.departed) = ((now, because), departed);
        was_full
    }

    /// Receives a completion from a root port, and schedules its arrival at its core.
    #[inline]
    pub(crate) fn complete(&mut self, events: &mut Events, mut tlp: Tlp) {
        let at_core = events.now + self.way_of(&tlp);
        tlp.milestone = events.path.add(tlp.milestone, at_core, Place::ROOT_COMPLEX, Cause::Transit);
        self.completions.join(at_core, tlp);
        events.set(Port::Completions, self.completions.due());
    }
}
