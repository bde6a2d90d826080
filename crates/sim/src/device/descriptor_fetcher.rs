//! A descriptor fetcher: reads descriptors from host memory ahead of the requests that need them.
//!
//! ```text
//!  ring --> descriptor reads --link--> host memory
//!           held, in order <---link--- completion
//! ```
//!
//! Ports: [`DescriptorFetcher::want`] announces descriptors, [`DescriptorFetcher::ask`] returns the next read while
//! the buffer has space for it, [`DescriptorFetcher::arrive`] receives a descriptor, [`DescriptorFetcher::begin`]
//! consumes the oldest one.
//!
//! Its tags follow those of data and of the previous channels. The content of a descriptor is not decoded: the plan
//! has configured the engine.

use crate::critical_path::Milestone;
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_engine::Visitor;
use lanemark_units::Ticks;

/// Constants of the fetcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Requester ID of the device.
    pub requester: u16,
    /// First of its tags.
    pub first_tag: u16,
    /// Capacity: descriptors held or outstanding.
    pub depth: u16,
    /// Size of a descriptor, in bytes.
    pub entry_bytes: u64,
    /// Bus address of the ring.
    pub ring: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
}

/// State of the fetcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorFetcher {
    spec: Spec,
    /// Announced descriptors that have not been requested.
    wanted: u64,
    /// Descriptors requested since construction.
    asked: u64,
    /// Outstanding descriptor reads.
    coming: u16,
    held: u16,
    /// Time of the last arrival, and of the last consumption.
    came_at: Ticks,
    room_at: Ticks,
    came: Milestone,
    room: Milestone,
    /// Issue time of the last read of each tag.
    asked_at: Vec<Ticks>,
}

impl DescriptorFetcher {
    /// Creates an idle fetcher.
    #[must_use]
    pub fn new(spec: Spec) -> DescriptorFetcher {
        let (came_at, room_at) = (Ticks::ZERO, Ticks::ZERO);
        let asked_at = vec![Ticks::ZERO; usize::from(spec.depth)];
        let (came, room) = (Milestone::NONE, Milestone::NONE);
        DescriptorFetcher { spec, wanted: 0, asked: 0, coming: 0, held: 0, came_at, room_at, came, room, asked_at }
    }

    /// Announces further descriptors in the ring.
    pub fn want(&mut self, now: Ticks, descriptors: u64) {
        self.wanted += descriptors;
        self.room_at = self.room_at.max(now);
    }

    /// Drops announced and held descriptors; outstanding ones are dropped on arrival.
    pub fn stop(&mut self) {
        (self.wanted, self.held) = (0, 0);
    }

    /// Returns when the next read is issued.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        let has_room = self.coming + self.held < self.spec.depth;
        if self.wanted > 0 && has_room { self.room_at } else { Ticks::NEVER }
    }

    /// Returns the bus address of the next descriptor.
    #[must_use]
    pub fn next_at(&self) -> u64 {
        let Spec { entry_bytes, ring, ring_bytes, .. } = self.spec;
        ring + self.asked % (ring_bytes / entry_bytes) * entry_bytes
    }

    /// Returns the next read, if it is due.
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

    /// Returns the issue time of the last read with this tag.
    #[must_use]
    pub fn asked_at(&self, tag: u16) -> Option<Ticks> {
        self.asked_at.get(usize::from(tag.checked_sub(self.spec.first_tag)?)).copied()
    }

    /// Receives a descriptor.
    pub fn arrive(&mut self, now: Ticks, milestone: Milestone) {
        (self.coming, self.held, self.came_at) = (self.coming - 1, self.held + 1, now);
        self.came = milestone;
    }

    /// Returns the arrival of the last descriptor.
    pub(crate) fn came(&self) -> Milestone {
        self.came
    }

    /// Returns when the next read could be issued, and the milestone.
    pub(crate) fn room(&self) -> (Ticks, Milestone) {
        (self.room_at, self.room)
    }

    /// Records the event that made the next read possible.
    pub(crate) fn set_room(&mut self, milestone: Milestone) {
        self.room = milestone;
    }

    /// Returns when the oldest descriptor arrived; [`Ticks::NEVER`] if none is held.
    #[inline]
    #[must_use]
    pub fn held_since(&self) -> Ticks {
        match self.held {
            0 => Ticks::NEVER,
            // With more than one held, the engine did not wait for descriptors.
            1 => self.came_at,
            _ => Ticks::ZERO,
        }
    }

    /// Consumes the oldest descriptor, which frees its space.
    pub fn begin(&mut self, now: Ticks) {
        (self.held, self.room_at) = (self.held - 1, self.room_at.max(now));
    }

    /// Visits the state.
    pub fn visit(&mut self, view: &mut impl Visitor) {
        let DescriptorFetcher { spec: _, wanted, asked, coming, held, came_at, room_at, came: _, room: _, asked_at } =
            self;
        for count in [*wanted, *asked, u64::from(*coming), u64::from(*held)] {
            view.state(count);
        }
        view.time(came_at);
        view.time(room_at);
        // Used after faults only, where no steady state is skipped.
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
    fn descriptor_reads_are_limited_by_the_depth_until_one_is_consumed() {
        let mut fetcher = fetcher(2);
        assert_eq!(fetcher.due(), Ticks::NEVER);
        fetcher.want(Ticks(5), 6);
        assert_eq!(fetcher.ask(Ticks(4)), None);
        let tags = [fetcher.ask(Ticks(5)), fetcher.ask(Ticks(6)), fetcher.ask(Ticks(7))].map(|tlp| Some(tlp?.tag));
        assert_eq!(tags, [Some(32), Some(33), None]);
        assert_eq!([31, 32, 33, 34].map(|tag| fetcher.asked_at(tag)), [None, Some(Ticks(5)), Some(Ticks(6)), None]);
        fetcher.arrive(Ticks(9), Milestone::NONE);
        assert_eq!((fetcher.held_since(), fetcher.due()), (Ticks(9), Ticks::NEVER));
        fetcher.begin(Ticks(10));
        assert_eq!((fetcher.held_since(), fetcher.due()), (Ticks::NEVER, Ticks(10)));
    }

    #[test]
    fn the_ring_wraps_around() {
        let mut fetcher = fetcher(6);
        fetcher.want(Ticks::ZERO, 6);
        let places: Vec<u64> = (0..6).map(|_| fetcher.ask(Ticks::ZERO).unwrap().address).collect();
        assert_eq!(places, [0x1000, 0x1010, 0x1020, 0x1030, 0x1000, 0x1010]);
    }
}
