//! A descriptor fetcher: reads descriptors from host memory ahead of the requests that need them.
//!
//! ```text
//!  ring --> asked for, one by one --link--> host memory
//!           held, in order <------link------ completion
//! ```
//!
//! Ports: [`DescriptorFetcher::want`] takes a list, [`DescriptorFetcher::ask`] gives the next read, as far as there is room
//! for what it brings, [`DescriptorFetcher::arrive`] takes what came, [`DescriptorFetcher::begin`] uses the oldest one up.
//!
//! Its tags are its own, behind those of data and of the channels before it. What a descriptor says is not looked at: the engine was told by the plan.

use crate::tlp::{Tlp, TlpKind, span};
use lanemark_engine::Visitor;
use lanemark_units::Ticks;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its number as a requester.
    pub requester: u16,
    /// The first of its tags.
    pub first_tag: u16,
    /// Descriptors held or on their way.
    pub depth: u16,
    /// Bytes of one.
    pub entry_bytes: u64,
    /// Bus address of the ring.
    pub ring: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorFetcher {
    spec: Spec,
    /// How many of the lists so far have not been asked for.
    wanted: u64,
    /// How many were asked for in all.
    asked: u64,
    /// Those that are on their way.
    coming: u16,
    held: u16,
    /// When the last one came, and when the last one was begun.
    came_at: Ticks,
    room_at: Ticks,
    /// When the last read of each tag was made.
    asked_at: Vec<Ticks>,
}

impl DescriptorFetcher {
    /// With nothing to fetch.
    #[must_use]
    pub fn new(spec: Spec) -> DescriptorFetcher {
        let (came_at, room_at) = (Ticks::ZERO, Ticks::ZERO);
        let asked_at = vec![Ticks::ZERO; usize::from(spec.depth)];
        DescriptorFetcher { spec, wanted: 0, asked: 0, coming: 0, held: 0, came_at, room_at, asked_at }
    }

    /// There are so many more in the ring.
    pub fn want(&mut self, now: Ticks, descriptors: u64) {
        self.wanted += descriptors;
        self.room_at = self.room_at.max(now);
    }

    /// Forgets what it wanted and held; what is on its way comes and is dropped.
    pub fn stop(&mut self) {
        (self.wanted, self.held) = (0, 0);
    }

    /// From when on it asks for the next one.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        let has_room = self.coming + self.held < self.spec.depth;
        if self.wanted > 0 && has_room { self.room_at } else { Ticks::NEVER }
    }

    /// Bus address of the next one.
    #[must_use]
    pub fn next_at(&self) -> u64 {
        let Spec { entry_bytes, ring, ring_bytes, .. } = self.spec;
        ring + self.asked % (ring_bytes / entry_bytes) * entry_bytes
    }

    /// The next read, if it is due.
    pub fn ask(&mut self, now: Ticks) -> Option<Tlp> {
        if self.due() > now {
            return None;
        }
        let Spec { requester, first_tag, depth, entry_bytes, .. } = self.spec;
        let at = self.next_at();
        let nth = (self.asked % u64::from(depth)) as u16;
        let tag = first_tag + nth;
        self.asked_at[usize::from(nth)] = now;
        (self.wanted, self.asked, self.coming) = (self.wanted - 1, self.asked + 1, self.coming + 1);
        let (address, length_dw, first_be, last_be) = span(at, entry_bytes);
        Some(Tlp { address, length_dw, first_be, last_be, requester, tag, ..Tlp::of(TlpKind::MRd) })
    }

    /// When the last read of this tag was made.
    #[must_use]
    pub fn asked_at(&self, tag: u16) -> Option<Ticks> {
        self.asked_at.get(usize::from(tag.checked_sub(self.spec.first_tag)?)).copied()
    }

    /// One came.
    pub fn arrive(&mut self, now: Ticks) {
        (self.coming, self.held, self.came_at) = (self.coming - 1, self.held + 1, now);
    }

    /// Since when there is one to begin; never if none is held.
    #[inline]
    #[must_use]
    pub fn held_since(&self) -> Ticks {
        match self.held {
            0 => Ticks::NEVER,
            // What lay here already is not what the engine waited for.
            1 => self.came_at,
            _ => Ticks::ZERO,
        }
    }

    /// The oldest one is begun, and leaves room for another.
    pub fn begin(&mut self, now: Ticks) {
        (self.held, self.room_at) = (self.held - 1, self.room_at.max(now));
    }

    /// Shows everything that changes.
    pub fn visit(&mut self, view: &mut impl Visitor) {
        let DescriptorFetcher { spec: _, wanted, asked, coming, held, came_at, room_at, asked_at } = self;
        for count in [*wanted, *asked, u64::from(*coming), u64::from(*held)] {
            view.state(count);
        }
        view.time(came_at);
        view.time(room_at);
        // Looked at where something goes wrong only, and there nothing is skipped.
        for asked_at in asked_at {
            view.mark(asked_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetcher(depth: u16) -> DescriptorFetcher {
        let (ring, ring_bytes) = (0x1000, 64);
        DescriptorFetcher::new(Spec { requester: 1, first_tag: 32, depth, entry_bytes: 16, ring, ring_bytes })
    }

    #[test]
    fn as_many_are_asked_for_as_there_is_room_for_and_the_next_when_one_is_begun() {
        let mut fetcher = fetcher(2);
        assert_eq!(fetcher.due(), Ticks::NEVER);
        fetcher.want(Ticks(5), 6);
        assert_eq!(fetcher.ask(Ticks(4)), None);
        let tags = [fetcher.ask(Ticks(5)), fetcher.ask(Ticks(6)), fetcher.ask(Ticks(7))].map(|tlp| Some(tlp?.tag));
        assert_eq!(tags, [Some(32), Some(33), None]);
        assert_eq!([31, 32, 33, 34].map(|tag| fetcher.asked_at(tag)), [None, Some(Ticks(5)), Some(Ticks(6)), None]);
        fetcher.arrive(Ticks(9));
        assert_eq!((fetcher.held_since(), fetcher.due()), (Ticks(9), Ticks::NEVER));
        fetcher.begin(Ticks(10));
        assert_eq!((fetcher.held_since(), fetcher.due()), (Ticks::NEVER, Ticks(10)));
    }

    #[test]
    fn the_ring_begins_again_at_its_start() {
        let mut fetcher = fetcher(6);
        fetcher.want(Ticks::ZERO, 6);
        let places: Vec<u64> = (0..6).map(|_| fetcher.ask(Ticks::ZERO).unwrap().address).collect();
        assert_eq!(places, [0x1000, 0x1010, 0x1020, 0x1030, 0x1000, 0x1010]);
    }
}
