//! Observation of a board: completions of injected reads, accepted TLPs, traces, traffic of links and stalls of cores.

use super::Board;
use crate::error::BoardError;
use crate::fabric::carried::Carried;
use crate::fabric::link::Crossed;
use crate::host::core::Seen;
use crate::index::CardIndex;
use crate::observation::{Completed, Crossing};
use crate::observer::{Line, Observer};
use lanemark_machine::{Cause, Trace};
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use lanemark_wire::config::AerError;
use std::collections::VecDeque;

impl Board {
    /// Returns the completions of injected reads, for taking them.
    pub fn outbox(&mut self) -> &mut VecDeque<Completed> {
        &mut self.observation.outbox
    }

    /// Records the TLPs that endpoints accept, from now on.
    pub fn record_crossings(&mut self) {
        self.observation.crossings = Some(Vec::new());
    }

    /// Returns the recorded TLPs that endpoints accepted.
    #[must_use]
    pub fn crossings(&self) -> &[Crossing] {
        self.observation.crossings.as_deref().unwrap_or_default()
    }

    /// Returns the TLPs recorded since the last call, and forgets them.
    pub fn take_crossings(&mut self) -> Vec<Crossing> {
        self.observation.crossings.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records the loads of core `number` from now on.
    pub fn observe_loads(&mut self, number: usize) {
        self.cores[number].seen = Some(Vec::new());
    }

    /// Returns the recorded loads of core `number`.
    #[must_use]
    pub fn loads_seen(&self, number: usize) -> &[Seen] {
        self.cores[number].seen.as_deref().unwrap_or_default()
    }

    /// Starts a trace of the last `most` frames and as many stalls; at most [`Trace::MOST`].
    ///
    /// # Errors
    /// [`BoardError`] if `platform`, the one of the board, has more buses than a trace can name.
    pub fn observe(&mut self, platform: &Platform, most: usize) -> Result<(), BoardError> {
        let lines = self.fabric.directions.iter().map(|line| Line { from: line.from, to: line.to }).collect();
        let observer = Observer::new(platform, lines, self.endpoints.bars_at(), self.events.now, most)?;
        self.observation.observe(observer);
        Ok(())
    }

    /// Also records the last `most` DLLPs of each direction.
    pub fn observe_dllps(&mut self, most: usize) {
        let most = most.min(Trace::MOST);
        self.fabric.watch_dllps(most);
    }

    /// Ends the trace and returns it; empty without [`Board::observe`]. On an idle board it includes the DLLPs that
    /// no sender waits for.
    pub fn take_trace(&mut self) -> Trace {
        self.fabric.deliver_all_dllps(&mut self.events);
        self.quiesce();
        self.observation.take_trace(self.fabric.take_watched())
    }

    /// Returns the traffic of a card's link, downstream and upstream.
    pub fn crossed(&mut self, card: CardIndex) -> (Crossed, Crossed) {
        self.fabric.deliver_all_dllps(&mut self.events);
        self.fabric.crossed(card)
    }

    /// Returns the number of TLPs on links, counted on each link.
    #[must_use]
    pub fn hops(&self) -> u64 {
        self.fabric.hops()
    }

    /// Returns the stall times of core `number` since its start, by [`Cause::index`].
    #[must_use]
    pub fn waits(&self, number: usize) -> [Ticks; Cause::ALL.len()] {
        self.cores[number].waits
    }

    /// Returns the traffic of each direction of each link up to now, link after link, the downstream direction first.
    pub fn carried(&mut self) -> Vec<Carried> {
        self.fabric.deliver_all_dllps(&mut self.events);
        self.fabric.carried(self.events.now)
    }

    /// Returns the name of the component below each link.
    #[must_use]
    pub fn link_names(&self) -> Vec<&str> {
        self.fabric.link_names()
    }

    /// Returns the errors that links have corrected since the last reset: port, error and number.
    pub fn corrected(&self) -> impl Iterator<Item = (&str, AerError, u64)> {
        self.fabric.corrected()
    }
}
