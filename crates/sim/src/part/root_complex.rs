//! The root complex between cores and root port: takes requests in order, acknowledges posted writes.
//!
//! Ports: `from_cores` carries requests, `acks` and `completions` go back to cores; downstream it feeds
//! the link's transmitter, which is its queue.
//!
//! Waits recorded with an acknowledgment: what kept the queue full, if it was.

use crate::engine::Wire;
use crate::tlp::{Tlp, TlpKind};
use lanemark_machine::Cause;
use lanemark_units::Ticks;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// From a core to here; the way back takes as long.
    pub half_round_trip: Ticks,
    /// Requests held on their way to the link.
    pub queue_entries: usize,
}

/// A posted write was taken: it is ordered now, and the core's buffer may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Which core.
    pub core: u16,
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
    /// Acknowledgments on their way to cores.
    pub acks: Wire<Ack>,
    /// Completions on their way to cores.
    pub completions: Wire<Tlp>,
    /// When the queue had room last, and what for.
    freed: (Ticks, Option<Cause>),
}

impl RootComplex {
    /// With nothing under way.
    #[must_use]
    pub fn new(spec: Spec) -> RootComplex {
        RootComplex {
            spec,
            from_cores: Wire::default(),
            acks: Wire::default(),
            completions: Wire::default(),
            freed: (Ticks::ZERO, None),
        }
    }

    /// A core sends a request.
    #[inline]
    pub fn request(&mut self, now: Ticks, tlp: Tlp) {
        self.from_cores.send(now + self.spec.half_round_trip, tlp);
    }

    /// When the next request can be taken, if the link holds `queued` TLPs.
    #[inline]
    #[must_use]
    pub fn due(&self, queued: usize) -> Ticks {
        if queued < self.spec.queue_entries { self.from_cores.due().max(self.freed.0) } else { Ticks::NEVER }
    }

    /// Takes the next request and acknowledges it, if it is a posted write.
    #[inline]
    pub fn take(&mut self, now: Ticks) -> Option<Tlp> {
        let arrived = self.from_cores.due();
        let tlp = self.from_cores.take(now)?;
        if tlp.kind == TlpKind::MWr {
            let because = if now > arrived { self.freed.1.or(Some(Cause::RootComplex)) } else { None };
            let ack = Ack { core: tlp.requester, tag: tlp.tag, because };
            self.acks.send(now + self.spec.half_round_trip, ack);
        }
        Some(tlp)
    }

    /// A TLP left for the link at `now`, having waited for `because`.
    #[inline]
    pub fn left(&mut self, now: Ticks, because: Option<Cause>) {
        self.freed = (now, because);
    }

    /// A completion came from the link.
    #[inline]
    pub fn complete(&mut self, now: Ticks, tlp: Tlp) {
        self.completions.send(now + self.spec.half_round_trip, tlp);
    }
}
