//! The root complex between cores and root port: takes requests in order, acknowledges posted writes.
//!
//! Ports: `from_cores` carries requests, `completions` go back to cores, and acknowledgments are handed to
//! each core with the time they reach it; downstream it feeds the link's transmitter, which is its queue.
//!
//! Waits recorded with an acknowledgment: what kept the queue full, if it was.

use crate::steady::Survey;
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::Wire;
use lanemark_machine::Cause;
use lanemark_units::Ticks;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// From each core to here; the way back takes as long.
    pub from_core: Vec<Ticks>,
    /// Requests held on their way to the link.
    pub queue_entries: usize,
}

/// A posted write was taken: it is ordered now, and the core's buffer may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Which of its requests.
    pub tag: u16,
    /// What it had to wait for besides the way here.
    pub because: Option<Cause>,
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootComplex {
    spec: Spec,
    /// Requests on their way from cores.
    pub from_cores: Wire<Tlp>,
    /// Completions on their way to cores.
    pub completions: Wire<Tlp>,
    /// When the queue had room last, and what for.
    freed: (Ticks, Option<Cause>),
}

impl RootComplex {
    /// With nothing under way.
    #[must_use]
    pub fn new(spec: Spec) -> RootComplex {
        RootComplex { spec, from_cores: Wire::default(), completions: Wire::default(), freed: (Ticks::ZERO, None) }
    }

    /// Shows everything that changes.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let RootComplex { spec: _, from_cores, completions, freed: (freed_at, because) } = self;
        from_cores.visit(view, Survey::tlp);
        completions.visit(view, Survey::tlp);
        view.time(freed_at);
        view.count(because.map_or(0, |because| because.index() + 1));
    }

    /// From the core that a TLP is of to here.
    #[inline]
    fn way_of(&self, tlp: &Tlp) -> Ticks {
        self.spec.from_core.get(usize::from(tlp.requester)).copied().unwrap_or(Ticks::ZERO)
    }

    /// A core sends a request.
    #[inline]
    pub fn request(&mut self, now: Ticks, tlp: Tlp) {
        self.from_cores.join(now + self.way_of(&tlp), tlp);
    }

    /// When the next request can be taken, if the link holds `queued` TLPs.
    #[inline]
    #[must_use]
    pub fn due(&self, queued: usize) -> Ticks {
        if queued < self.spec.queue_entries { self.from_cores.due().max(self.freed.0) } else { Ticks::NEVER }
    }

    /// Takes the next request; if it is a posted write, its acknowledgment reaches the core at the time
    /// that comes with it.
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

    /// A TLP left for the link at `now`, having waited for `because`.
    #[inline]
    pub fn left(&mut self, now: Ticks, because: Option<Cause>) {
        self.freed = (now, because);
    }

    /// A completion came from the link.
    #[inline]
    pub fn complete(&mut self, now: Ticks, tlp: Tlp) {
        self.completions.join(now + self.way_of(&tlp), tlp);
    }
}
