//! A board whose first card is compiled from its source: TLPs between its link and its streams.

use super::Board;
use crate::critical_path::Place;
use crate::device::compiled_card::{BENCH_ID, CompiledCard, Load, Sender};
use crate::fabric::credit::Cost;
use crate::index::CardIndex;
use crate::ports::{Port, endpoint_input};
use crate::tlp::{Flaw, Tlp, TlpKind, span};
use lanemark_engine::Slot;
use lanemark_machine::Cause;
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use lanemark_wire::{Packet, TlpKind as WireKind};

/// Completion Status: Completer Abort.
const COMPLETER_ABORT: u8 = 0b100;

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
            card.bench_done_at = at;
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

    /// Passes a TLP of the compiled card, complete at `at`, to the hard block. An error is a TLP that no link carries.
    fn sent_by_card(&mut self, at: Ticks, bytes: &[u8]) -> Result<(), String> {
        let packet = Packet::new(bytes).map_err(|error| format!("the card sends a malformed TLP: {error}"))?;
        let (data, announced) = (packet.data(), packet.data_bytes());
        let got = bytes.len() - packet.header_bytes().min(bytes.len());
        if got != announced {
            return Err(format!("the card sends {got} B of data, and the header of the TLP says {announced} B"));
        }
        if announced > self.slab.slot_bytes() {
            return Err(format!("the card sends {announced} B of data, more than Max_Payload_Size"));
        }
        match packet.kind() {
            Some(WireKind::MRd | WireKind::MWr) => {
                let kind = if packet.kind() == Some(WireKind::MRd) { TlpKind::MRd } else { TlpKind::MWr };
                let tlp = Tlp {
                    address: packet.address(),
                    length_dw: packet.length(),
                    first_be: packet.first_be(),
                    last_be: packet.last_be(),
                    requester: CardIndex::FIRST.requester(),
                    tag: packet.tag(),
                    ..Tlp::of(kind)
                };
                let payload = if kind == TlpKind::MWr { self.payload(data) } else { Slot::NONE };
                let tlp = Tlp { payload, ..tlp };
                if let Some(card) = &mut self.compiled {
                    card.count(at, &tlp);
                }
                self.pass_up(at, tlp);
                Ok(())
            }
            Some(WireKind::CplD | WireKind::Cpl) if packet.requester_id() == BENCH_ID => {
                if let Some(card) = &mut self.compiled {
                    match announced {
                        0 => card.fail("the card refuses a load of a register of its device file".to_owned()),
                        _ => card.answer(data),
                    }
                }
                Ok(())
            }
            Some(WireKind::CplD | WireKind::Cpl) => self.completed_by_card(at, &packet),
            kind => Err(format!("the card sends a TLP that the simulated link does not carry: {kind:?}")),
        }
    }

    /// Completes a load of a core.
    fn completed_by_card(&mut self, at: Ticks, packet: &Packet<&[u8]>) -> Result<(), String> {
        let tag = packet.tag();
        let Some(card) = &mut self.compiled else { return Ok(()) };
        let Some(Load { tlp, done }) = card.load(tag) else {
            return Err(format!("the card completes a read with tag {tag}, which is not outstanding"));
        };
        let total = tlp.returned_bytes();
        if packet.kind() == Some(WireKind::Cpl) {
            card.completed(tag, total.max(1));
            let flaw = if packet.status() == COMPLETER_ABORT { Flaw::Abort } else { Flaw::None };
            self.pass_up(at, Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, flaw, ..tlp });
            return Ok(());
        }
        let count = u32::from(packet.byte_count());
        if count != total.max(1) - done {
            return Err(format!(
                "the card completes a read of which {} B are missing with Byte Count {count}",
                total - done
            ));
        }
        let skip = u32::from(packet.lower_address() % 4);
        let bytes = (packet.data_bytes() as u32).saturating_sub(skip).min(count);
        card.completed(tag, bytes);
        card.show(tlp.address, packet.data());
        let start = tlp.address + u64::from(tlp.first_be.trailing_zeros() % 4) + u64::from(done);
        let (address, length_dw, first_be, last_be) = span(start, u64::from(bytes));
        let payload = self.payload(packet.data());
        let first_be = if total == 0 { 0 } else { first_be };
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

    /// Lets the bench store to a register of the compiled card, or load one if `value` is absent.
    pub(crate) fn access(&mut self, bar: u8, offset: u64, width: u8, value: Option<u64>) -> Result<(), String> {
        let Some(card) = &mut self.compiled else { return Ok(()) };
        let found = card.bar(bar).filter(|found| offset + u64::from(width) <= found.len);
        let found = found.ok_or_else(|| format!("the platform has no BAR {bar} with an offset {offset:#x}"))?;
        card.access(found, offset, width, value);
        self.wake();
        Ok(())
    }

    /// Keeps the clock of the compiled card running for what it does without a request.
    pub(crate) fn keep_clocked(&mut self) {
        if let Some(card) = &mut self.compiled {
            card.wake();
        }
        self.wake();
    }
}
