//! Injection of TLPs below the root or at a card, without a core or a DMA engine.

use super::Board;
use crate::device::dma_engine::Fetched;
use crate::index::CardIndex;
use crate::ports::endpoint_input;
use crate::requester::{FIRST_INJECTED_TAG, OUTSIDE};
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_engine::Slot;
use lanemark_units::Ticks;

impl Board {
    /// Injects a memory write below the root, behind queued requests, at `at` at the earliest.
    pub fn inject_write(&mut self, at: Ticks, address: u64, data: &[u8]) {
        let (start, length_dw, first_be, last_be) = span(address, data.len() as u64);
        let payload = self.slab.take();
        let skip = (address - start) as usize;
        self.slab.line_mut(payload)[skip..skip + data.len()].copy_from_slice(data);
        self.inject(
            at,
            Tlp { address: start, length_dw, first_be, last_be, requester: OUTSIDE, payload, ..Tlp::of(TlpKind::MWr) },
        );
    }

    /// Injects a memory read below the root; [`Board::outbox`] receives its completion with this tag.
    pub fn inject_read(&mut self, at: Ticks, address: u64, len: u64, tag: u16) {
        let (address, length_dw, first_be, last_be) = span(address, len);
        let requester = OUTSIDE;
        self.inject(at, Tlp { address, length_dw, first_be, last_be, requester, tag, ..Tlp::of(TlpKind::MRd) });
    }

    /// Injects a TLP below the root, as if from a core, at `at` at the earliest but not before now. A TLP without a
    /// route goes below the first root port.
    pub fn inject(&mut self, at: Ticks, tlp: Tlp) {
        self.request(at.max(self.events.now), tlp);
        self.root_complex.requests.refresh(&mut self.events);
    }

    /// Injects a TLP at the upstream link of a card, as if from the card, at `at` at the earliest but not before now.
    pub fn inject_at_card(&mut self, card: CardIndex, at: Ticks, tlp: Tlp) {
        if let Some(up) = self.fabric.find_up_from(card) {
            let at = at.max(self.events.now);
            self.fabric.offer(&mut self.events, up, endpoint_input::ANSWERS, at, tlp);
        }
    }

    /// Injects a memory write at the upstream link of a card, as if by its DMA engine, at `at` at the earliest: one TLP, so
    /// `data` must be within one 4 KiB page and not longer than `Max_Payload_Size`.
    pub fn inject_card_write(&mut self, card: CardIndex, at: Ticks, address: u64, data: &[u8]) {
        let (start, length_dw, first_be, last_be) = span(address, data.len() as u64);
        let payload = self.slab.take();
        let skip = (address - start) as usize;
        self.slab.bytes_mut(payload)[skip..skip + data.len()].copy_from_slice(data);
        let requester = card.requester();
        let tlp = Tlp { address: start, length_dw, first_be, last_be, requester, payload, ..Tlp::of(TlpKind::MWr) };
        self.inject_at_card(card, at, tlp);
    }

    /// Injects a memory read at the upstream link of a card, as if by its DMA engine, at `at` at the earliest: one TLP, so
    /// the bytes must be within one 4 KiB page and not more than `Max_Read_Request_Size`. Its completions have the tag
    /// `FIRST_INJECTED_TAG + tag` and go to [`Board::take_fetched`]. Returns false if the card has no DMA engine.
    pub fn inject_card_read(&mut self, card: CardIndex, at: Ticks, address: u64, len: u64, tag: u16) -> bool {
        if self.engine(card).is_none() {
            return false;
        }
        let (address, length_dw, first_be, last_be) = span(address, len);
        let (requester, tag) = (card.requester(), FIRST_INJECTED_TAG | tag);
        let tlp = Tlp { address, length_dw, first_be, last_be, requester, tag, ..Tlp::of(TlpKind::MRd) };
        self.inject_at_card(card, at, tlp);
        true
    }

    /// Returns the completions of reads that were injected at a card, in order of their arrival, and forgets them.
    pub fn take_fetched(&mut self, card: CardIndex) -> Vec<Fetched> {
        self.engine_mut(card).map(|engine| std::mem::take(&mut engine.fetched)).unwrap_or_default()
    }

    /// Returns the most bytes of a payload.
    #[must_use]
    pub fn most_payload_bytes(&self) -> usize {
        self.slab.slot_bytes()
    }

    /// Allocates a payload slot for an injected TLP.
    pub fn payload(&mut self, bytes: &[u8]) -> Slot {
        let slot = self.slab.take();
        let room = self.slab.bytes_mut(slot);
        let len = bytes.len().min(room.len());
        room[..len].copy_from_slice(&bytes[..len]);
        slot
    }
}
