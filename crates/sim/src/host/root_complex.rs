//! The root complex between cores and root port: accepts requests in order and acknowledges posted writes.
//!
//! Ports: `from_cores` carries requests, `completions` return to cores, and acknowledgments are passed to each core
//! with their arrival time. Downstream, the link's transmitter is its queue.
//!
//! Stall cause recorded with an acknowledgment: the cause for which the queue was full, if it was.

use crate::steady::Survey;
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::Wire;
use lanemark_machine::Cause;
use lanemark_units::Ticks;

/// Constants of the root complex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Latency from each core; the return path has the same latency.
    pub from_core: Vec<Ticks>,
    /// Capacity of the queue to the link, in requests.
    pub queue_entries: usize,
}

/// Acknowledgment of a posted write: it is ordered, and the core may free its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Tag of the request.
    pub tag: u16,
    /// Stall cause besides the latency.
    pub because: Option<Cause>,
}

/// State of the root complex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootComplex {
    spec: Spec,
    /// Requests in flight from cores.
    pub from_cores: Wire<Tlp>,
    /// Completions in flight to cores.
    pub completions: Wire<Tlp>,
    /// Time at which the queue last had space, and the stall cause of the TLP that left.
    freed: (Ticks, Option<Cause>),
}

impl RootComplex {
    /// Creates an idle root complex.
    #[must_use]
    pub fn new(spec: Spec) -> RootComplex {
        RootComplex { spec, from_cores: Wire::default(), completions: Wire::default(), freed: (Ticks::ZERO, None) }
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let RootComplex { spec: _, from_cores, completions, freed: (freed_at, because) } = self;
        from_cores.visit(view, Survey::tlp);
        completions.visit(view, Survey::tlp);
        view.time(freed_at);
        view.count(because.map_or(0, |because| because.index() + 1));
    }

    /// Returns the latency of the core of a TLP.
    #[inline]
    fn way_of(&self, tlp: &Tlp) -> Ticks {
        self.spec.from_core.get(usize::from(tlp.requester)).copied().unwrap_or(Ticks::ZERO)
    }

    /// Receives a request of a core.
    #[inline]
    pub fn request(&mut self, now: Ticks, tlp: Tlp) {
        self.from_cores.join(now + self.way_of(&tlp), tlp);
    }

    /// Returns when the next request is accepted, if the link holds `queued` TLPs.
    #[inline]
    #[must_use]
    pub fn due(&self, queued: usize) -> Ticks {
        if queued < self.spec.queue_entries { self.from_cores.due().max(self.freed.0) } else { Ticks::NEVER }
    }

    /// Accepts the next request. For a posted write, also returns its acknowledgment and when that reaches the core.
    #[inline]
    pub fn take(&mut self, now: Ticks) -> Option<(Tlp, Option<(Ticks, Ack)>)> {
        let arrived = self.from_cores.due();
        let tlp = self.from_cores.take(now)?;
        let ack = (tlp.kind == TlpKind::MWr).then(|| {
            let because = if now > arrived { self.freed.1.or(Some(Cause::RootComplex)) } else { None };
            (now + self.way_of(&tlp), Ack { tag: tlp.tag, because })
        });
        Some((tlp, ack))
    }

    /// Records that a TLP left for the link at `now` after a stall for `because`.
    #[inline]
    pub fn left(&mut self, now: Ticks, because: Option<Cause>) {
        self.freed = (now, because);
    }

    /// Receives a completion from the link.
    #[inline]
    pub fn complete(&mut self, now: Ticks, tlp: Tlp) {
        self.completions.join(now + self.way_of(&tlp), tlp);
    }
}
