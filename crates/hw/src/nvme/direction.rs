//! The transfers of one direction of a plan, and their blocks of the medium.

use super::drive_queue::{DataAt, DriveQueue, Spot};
use super::identify::Namespace;
use super::plan::DrivePlan;
use lanemark_machine::{PlaceOrder, Transfer, Verb};
use std::collections::BTreeSet;

/// The transfers of one direction: each place of its window has blocks of its own, as far as the namespace reaches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direction {
    pub(super) transfer: Transfer,
    data: DataAt,
    order: PlaceOrder,
    /// Number of its first place, among the places of all directions.
    first_place: u64,
    /// Logical blocks of a transfer.
    blocks: u32,
    first_block: u64,
    /// Transfers that fit from the first block on.
    pieces: u64,
}

impl Direction {
    /// The directions of a plan: what a drive writes to its medium is at the start of the namespace, and what it reads
    /// behind that.
    pub(super) fn all(asked: &DrivePlan, namespace: &Namespace) -> Vec<Direction> {
        let overwritten = asked.overwritten() / namespace.block_bytes;
        let mut first_place = 0;
        let direction = |transfer: Transfer| {
            let blocks = (transfer.bytes / namespace.block_bytes) as u32;
            let first_block = if transfer.verb == Verb::Load { 0 } else { overwritten };
            let pieces = ((namespace.blocks - first_block) / u64::from(blocks)).max(1);
            let order = transfer.window.order_of(transfer.bytes);
            let found = Direction { transfer, data: asked.data, order, first_place, blocks, first_block, pieces };
            first_place += found.places();
            found
        };
        asked.transfers().map(direction).collect()
    }

    /// Number of places.
    pub(super) const fn places(&self) -> u64 {
        self.transfer.window.places(self.transfer.bytes)
    }

    /// Offset in the memory of a place.
    pub(super) const fn at(&self, place: u64) -> u64 {
        self.transfer.window.offset + place * self.transfer.window.step(self.transfer.bytes)
    }

    /// First block of a place, and the number of its blocks.
    pub(super) fn blocks(&self, place: u64) -> (u64, u32) {
        (self.first_block + place % self.pieces * u64::from(self.blocks), self.blocks)
    }

    /// The place of transfer number `nth`.
    #[inline]
    pub(super) fn place(&self, nth: u64) -> u64 {
        (self.order.place(nth) - self.transfer.window.offset) / self.transfer.window.step(self.transfer.bytes)
    }

    /// The command of a place; `None` if it is a write and the queue only reads.
    pub(super) fn command<Q: DriveQueue>(&self, queue: &Q, place: u64) -> Option<Q::Command> {
        let ((first, blocks), bytes) = (self.blocks(place), self.transfer.bytes);
        let spot = Spot { place: self.data, at: self.at(place), list: self.first_place + place };
        match self.transfer.verb {
            Verb::Store => Some(queue.read(first, blocks, spot, bytes)),
            Verb::Load => queue.write(first, blocks, spot, bytes),
        }
    }

    /// The places of the last of `passes` iterations.
    pub(super) fn last(&self, passes: u64) -> BTreeSet<u64> {
        let transfers = passes.saturating_mul(self.transfer.count);
        (transfers.saturating_sub(self.transfer.count)..transfers).map(|nth| self.place(nth)).collect()
    }
}
