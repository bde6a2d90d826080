//! A board whose first card is compiled from its source: TLPs between its link and its streams.

use super::Board;
use crate::critical_path::Place;
use crate::device::compiled_card::{CompiledCard, Load, Sender};
use crate::fabric::credit::Cost;
use crate::index::CardIndex;
use crate::ports::{Port, endpoint_input};
use crate::tlp::{Flaw, Tlp, TlpKind, span};
use lanemark_engine::Slot;
use lanemark_machine::Cause;
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use lanemark_wire::{Packet, TlpKind as WireKind, byte_enable};

/// Completion Status: Completer Abort.
const COMPLETER_ABORT: u8 = 0b100;
/// Bits of `Attr[2:0]`.
const RELAXED: u8 = 0b010;
const ID_BASED: u8 = 0b100;
/// Bytes of a digest.
const DIGEST_BYTES: usize = 4;

impl Board {
    /// Puts a compiled card in place of the first card, which keeps its hard block: the latency and the buffers.
    pub(crate) fn attach(&mut self, mut card: CompiledCard, platform: &Platform) {
        card.configure(platform);
        self.endpoints[CardIndex::FIRST].empty(card.ingress());
        self.compiled = Some(Box::new(card));
    }

    /// Takes the compiled card out.
    pub(crate) fn detach(&mut self) -> Option<CompiledCard> {
        self.compiled.take().map(|card| *card)
    }

    /// The compiled card.
    pub(crate) fn compiled(&self) -> Option<&CompiledCard> {
        self.compiled.as_deref()
    }

    /// The compiled card.
    pub(crate) fn compiled_mut(&mut self) -> Option<&mut CompiledCard> {
        self.compiled.as_deref_mut()
    }

    /// Stops the clock of the compiled card; TLPs to it are lost.
    pub(super) fn halt_compiled(&mut self) {
        let Some(card) = &mut self.compiled else { return };
        card.halt();
        self.is_clocked = false;
        self.events.set(Port::Issue(CardIndex::FIRST), Ticks::NEVER);
    }

    /// Advances an idle board to the next edge of the compiled card's clock, so that equal samples take equal times.
    pub(crate) fn align_to_clock(&mut self) {
        if let Some(card) = &self.compiled
            && self.events.first().is_none()
        {
            self.events.now = card.next_edge(self.events.now);
        }
    }

    /// Whether the compiled card has failed.
    pub(crate) fn has_failed_design(&self) -> bool {
        self.compiled.as_ref().is_some_and(|card| card.failure().is_some())
    }

    /// Passes the TLPs that the hard block has checked to the compiled card.
    #[cold]
    pub(super) fn hand_over(&mut self) {
        let first = CardIndex::FIRST;
        let Some(card) = &mut self.compiled else { return };
        let endpoint = &mut self.endpoints[first];
        while let Some(tlp) = endpoint.hand_over(self.events.now) {
            card.receive(tlp, &self.slab);
            self.slab.give_back(tlp.payload);
        }
        let due = endpoint.accept_due().max(self.events.now);
        self.events.set(Port::Accept(first), due);
        self.wake();
    }

    /// Schedules the next clock of the compiled card, if it is not.
    fn wake(&mut self) {
        let Some(card) = &self.compiled else { return };
        if !card.is_halted() && !self.is_clocked {
            self.is_clocked = true;
            self.events.set(Port::Issue(CardIndex::FIRST), card.next_edge(self.events.now));
        }
    }

    /// Makes a clock of the compiled card.
    #[cold]
    pub(super) fn clock(&mut self) {
        let first = CardIndex::FIRST;
        let Some(card) = &mut self.compiled else { return };
        let up = self.fabric.up_from(first);
        let crossed = card.clock(self.events.now, self.fabric.directions[up].transmitter.queued());
        let edge = self.events.now + card.period();
        if let Some(sender) = crossed.taken {
            self.taken(edge, sender);
        }
        if let Some(bytes) = crossed.sent
            && let Err(what) = self.sent_by_card(edge, &bytes)
            && let Some(card) = &mut self.compiled
        {
            card.fail(what);
        }
        if self.has_failed_design() {
            return self.halt_compiled();
        }
        let due = self.compiled.as_ref().map_or(Ticks::NEVER, |card| card.due(self.events.now));
        self.is_clocked = due != Ticks::NEVER;
        self.events.set(Port::Issue(first), due);
    }

    /// Counts a TLP that the compiled card has taken by `at`, and returns its credits.
    fn taken(&mut self, at: Ticks, sender: Sender) {
        let first = CardIndex::FIRST;
        let Some(card) = &mut self.compiled else { return };
        let Sender::Link(tlp) = sender else {
            card.registers_taken_at = at;
            return;
        };
        let milestone = self.events.path.add(tlp.milestone, at, Place::card(first), Cause::Device);
        card.last_taken = milestone;
        match tlp.kind {
            TlpKind::CplD | TlpKind::Cpl => {
                card.received_bytes += u64::from(tlp.enabled_bytes());
                (card.received_at, card.received) = (at, milestone);
                return;
            }
            TlpKind::MWr => self.endpoints[first].count_write(at, &tlp, milestone),
            TlpKind::MRd | TlpKind::Msg | TlpKind::MsgD => {}
        }
        let down = self.fabric.up_from(first).opposite();
        self.fabric.return_credits(&mut self.events, down, Cost::of(&tlp), Cause::Device, milestone);
    }

    /// Passes a TLP of the compiled card, complete at `at`, to the hard block. An error is a TLP that no link carries, or
    /// that the simulation cannot represent.
    fn sent_by_card(&mut self, at: Ticks, bytes: &[u8]) -> Result<(), String> {
        let packet = Packet::new(bytes).map_err(|error| format!("the card sends a malformed TLP: {error}"))?;
        let announced = packet.data_bytes();
        let digest = if packet.td() { DIGEST_BYTES } else { 0 };
        let got = bytes.len().saturating_sub(packet.prefixes().len() + packet.header_bytes() + digest);
        if got != announced {
            return Err(format!("the card sends {got} B of data, and the header of the TLP says {announced} B"));
        }
        if announced > self.slab.slot_bytes() {
            return Err(format!("the card sends {announced} B of data, more than Max_Payload_Size"));
        }
        if packet.ep() {
            return Err("the card sends a poisoned TLP, which the simulation does not carry".to_owned());
        }
        match packet.kind() {
            Some(WireKind::MRd | WireKind::MWr) => self.requested_by_card(at, &packet),
            Some(WireKind::CplD | WireKind::Cpl) if CompiledCard::is_own(packet.tag()) => {
                let is_refused = packet.kind() == Some(WireKind::Cpl) || packet.status() != 0;
                let data = (!is_refused).then(|| packet.data());
                self.compiled.as_mut().map_or(Ok(()), |card| card.complete_own(packet.tag(), data))
            }
            Some(WireKind::CplD | WireKind::Cpl) => self.completed_by_card(at, &packet),
            Some(kind) => Err(format!("the card sends {kind:?}; only MRd, MWr, Cpl and CplD are simulated")),
            None => Err("the card sends a TLP with a reserved Fmt and Type".to_owned()),
        }
    }

    /// Passes a request of the compiled card to the hard block.
    fn requested_by_card(&mut self, at: Ticks, packet: &Packet<&[u8]>) -> Result<(), String> {
        let kind = if packet.kind() == Some(WireKind::MRd) { TlpKind::MRd } else { TlpKind::MWr };
        let (first_be, last_be, length_dw) = (packet.first_be(), packet.last_be(), packet.length());
        // From the first enabled byte to the last one without holes.
        let is_whole = if length_dw == 1 {
            last_be == 0 && matches!(first_be, 0 | 1 | 2 | 3 | 4 | 6 | 7 | 8 | 12 | 14 | 15)
        } else {
            matches!(first_be, 8 | 12 | 14 | 15) && matches!(last_be, 1 | 3 | 7 | 15)
        };
        if !is_whole {
            return Err(format!(
                "the card sends {kind:?} with byte enables {first_be:04b} and {last_be:04b}, which are not simulated"
            ));
        }
        if packet.at() != 0 {
            return Err(format!("the card sends {kind:?} with AT {:02b}, which is not simulated", packet.at()));
        }
        let payload = if kind == TlpKind::MWr { self.payload(packet.data()) } else { Slot::NONE };
        let tlp = Tlp {
            address: packet.address(),
            length_dw,
            first_be,
            last_be,
            requester: CardIndex::FIRST.requester(),
            tag: packet.tag(),
            payload,
            relaxed: packet.attr() & RELAXED != 0,
            id_based: packet.attr() & ID_BASED != 0,
            ..Tlp::of(kind)
        };
        if let Some(card) = &mut self.compiled {
            card.count(at, &tlp);
        }
        self.pass_up(at, tlp);
        Ok(())
    }

    /// Completes a load of a core.
    fn completed_by_card(&mut self, at: Ticks, packet: &Packet<&[u8]>) -> Result<(), String> {
        let tag = packet.tag();
        let Some(card) = &mut self.compiled else { return Ok(()) };
        let Some(Load { tlp }) = card.load(tag) else {
            return Err(format!("the card completes a read with tag {tag}, which is not outstanding"));
        };
        let total = tlp.returned_bytes();
        if packet.kind() == Some(WireKind::Cpl) || packet.status() != 0 {
            card.completed(tag);
            let flaw = if packet.status() == COMPLETER_ABORT { Flaw::Abort } else { Flaw::None };
            let refusal = Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, flaw, ..tlp };
            self.note_refused(self.fabric.up_from(CardIndex::FIRST).opposite(), &Tlp { flaw, ..tlp });
            self.pass_up(at, refusal);
            return Ok(());
        }
        let (count, lower) = (u32::from(packet.byte_count()), packet.lower_address());
        let expected = byte_enable::lower_address(tlp.address, tlp.first_be);
        if (count, lower) != (total.max(1), expected) {
            return Err(format!(
                "the card completes a read of {total} B at {:#x} with Byte Count {count} and Lower Address {lower:#x}",
                tlp.address
            ));
        }
        // A load of a core is within 64 B, and an endpoint may split completions at multiples of 128 B only.
        if packet.length() != tlp.length_dw {
            let (found, asked) = (packet.length(), tlp.length_dw);
            return Err(format!("the card completes a read of {asked} DW with {found} DW"));
        }
        card.completed(tag);
        card.show(tlp.address, packet.data());
        let start = tlp.address + u64::from(tlp.first_be.trailing_zeros() % 4);
        let (address, length_dw, first_be, last_be) = span(start, u64::from(total));
        let payload = self.payload(packet.data());
        let first_be = if total == 0 { 0 } else { first_be };
        let length_dw = length_dw.max(1);
        self.pass_up(at, Tlp { address, length_dw, first_be, last_be, payload, kind: TlpKind::CplD, ..tlp });
        Ok(())
    }

    /// Offers a TLP of the compiled card to its link, in the order in which the card sends.
    fn pass_up(&mut self, at: Ticks, tlp: Tlp) {
        let first = CardIndex::FIRST;
        let at_link = at + self.endpoints[first].egress();
        let after = self.compiled.as_ref().map_or(tlp.milestone, |card| card.last_taken);
        let made = self.events.path.add(after, at, Place::card(first), Cause::Device);
        let milestone = self.events.path.add(made, at_link, Place::card(first), Cause::Transit);
        let up = self.fabric.up_from(first);
        self.fabric.offer(&mut self.events, up, endpoint_input::ENGINE, at_link, Tlp { milestone, ..tlp });
    }

    /// Lets the register port store to a register of the compiled card, or load one if `value` is absent. A BAR that the
    /// platform lacks is ignored: [`of_compiled`](crate::SimulatedMachine::of_compiled) compares them.
    pub(crate) fn access(&mut self, bar: u8, offset: u64, width: u8, value: Option<u64>) {
        let Some(card) = &mut self.compiled else { return };
        let Some(bar) = card.bar(bar) else { return };
        card.access(bar, offset, width, value);
        self.wake();
    }

    /// Begins or ends a wait of a plan for the compiled card.
    pub(crate) fn await_card(&mut self, is_awaited: bool) {
        if let Some(card) = &mut self.compiled {
            card.set_awaited(is_awaited);
        }
        if is_awaited {
            self.wake();
        }
    }
}
