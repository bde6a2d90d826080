//! The records of a board for its caller: completions of injected reads, TLPs accepted by endpoints, and a trace.
//!
//! No simulation result depends on them. Only completions are always recorded.

use crate::fabric::dllp::Watch;
use crate::index::DirectionIndex;
use crate::observer::{Observer, Went};
use crate::tlp::{Flaw, Tlp};
use lanemark_engine::Slab;
use lanemark_machine::{Cause, StallSite, Trace};
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// A TLP delivered to an endpoint, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Time at which it was checked at the endpoint; it is listed once it is accepted.
    pub at: Ticks,
    /// The TLP; its payload slot is no longer valid.
    pub tlp: Tlp,
    /// The first eight bytes of its payload.
    pub head: [u8; 8],
}

/// The completion of an injected read: its time, the TLP, and the first 64 bytes of its payload.
pub type Completed = (Ticks, Tlp, [u8; 64]);

/// The records of a board.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    /// Completions of injected reads.
    pub(crate) outbox: VecDeque<Completed>,
    /// TLPs that endpoints accepted, while they are recorded.
    pub(crate) crossings: Option<Vec<Crossing>>,
    /// The observer that records a trace.
    observer: Option<Box<Observer>>,
}

impl Observation {
    /// Takes over the records of the board before a link reset; its trace ends.
    pub(crate) fn take_over(&mut self, used: &mut Observation) {
        self.outbox = std::mem::take(&mut used.outbox);
        self.crossings = used.crossings.take();
    }

    /// Records a trace by this observer from now on.
    pub(crate) fn observe(&mut self, observer: Observer) {
        self.observer = Some(Box::new(observer));
    }

    /// Ends the trace and returns it, with these DLLPs of each direction; empty without an observer.
    pub(crate) fn take_trace(&mut self, watched: impl Iterator<Item = (DirectionIndex, Watch, Ticks)>) -> Trace {
        self.observer.take().map_or_else(Trace::default, |observer| observer.into_trace(watched))
    }

    /// Returns whether a trace is recorded.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.observer.is_some()
    }

    /// Returns whether a trace or crossings are recorded.
    pub(crate) fn is_active(&self) -> bool {
        self.observer.is_some() || self.crossings.is_some()
    }

    /// Records a TLP that was sent.
    pub(crate) fn sent(&mut self, went: Went<'_>, slab: &Slab) {
        if let Some(observer) = &mut self.observer {
            observer.sent(went, slab);
        }
    }

    /// Adds a flaw to the record of the TLP that was sent last, by this direction.
    pub(crate) fn flawed(&mut self, direction: DirectionIndex, flaw: Flaw) {
        if let Some(observer) = &mut self.observer {
            observer.flawed(direction, flaw);
        }
    }

    /// Records the stalls of a part between two values of its stall times.
    #[cold]
    pub(crate) fn waited(
        &mut self,
        site: StallSite,
        now: Ticks,
        before: &[Ticks; Cause::ALL.len()],
        after: &[Ticks; Cause::ALL.len()],
    ) {
        if let Some(observer) = &mut self.observer {
            observer.waited(site, now, before, after);
        }
    }

    /// Records a TLP that an endpoint accepted.
    #[inline]
    pub(crate) fn accepted(&mut self, crossing: impl FnOnce() -> Crossing) {
        if let Some(crossings) = &mut self.crossings {
            crossings.push(crossing());
        }
    }
}
