//! TLPs and DLLPs on the links of a board: sending, delivery and credits.

use super::Board;
use crate::fabric::credit::Cost;
use crate::fabric::dllp::DllpKind;
use crate::fabric::link::Sent;
use crate::index::{CardIndex, DirectionIndex, PortIndex, Side};
use crate::observer::Went;
use crate::ports::{Port, endpoint_input, root_input};
use crate::tlp::{Flaw, Tlp, TlpKind};
use crate::topology::End;
use lanemark_machine::Cause;
use lanemark_units::Ticks;
use lanemark_wire::config::AerError;

impl Board {
    #[inline]
    pub(super) fn refresh(&mut self, direction: DirectionIndex) {
        let mut due = self.directions[direction].transmitter.due(self.now);
        if due.awaits_dllp && self.hear(direction) {
            due = self.directions[direction].transmitter.due(self.now);
        }
        let awaited = std::mem::replace(&mut self.directions[direction].awaits_dllp, due.awaits_dllp);
        self.set_send(direction, due.at);
        if awaited || due.awaits_dllp {
            self.set_send(direction.opposite(), self.directions[direction.opposite()].transmitter.due(self.now).at);
        }
    }

    /// Schedules a direction: at its next TLP, or at a DLLP that the other end waits for.
    #[allow(clippy::inline_always)] // For every TLP, several times: all such calls are 3 % of a run.
    #[inline(always)]
    pub(super) fn set_send(&mut self, direction: DirectionIndex, next_tlp: Ticks) {
        let mut at = next_tlp;
        if self.directions[direction.opposite()].awaits_dllp {
            at = at.min(self.directions[direction].transmitter.next_dllp_at());
        }
        self.set(Port::Send(direction), at.max(self.now));
    }

    /// Delivers the DLLPs sent to a direction up to now; returns whether there were any. It is called only when a TLP
    /// waits or many were sent, because the sending times do not depend on it.
    #[inline(never)]
    pub(super) fn hear(&mut self, direction: DirectionIndex) -> bool {
        let both = self.directions.get_disjoint_mut([direction.0, direction.opposite().0]);
        both.is_ok_and(|[hears, tells]| tells.transmitter.tell(self.now, &mut hears.transmitter))
    }

    /// Delivers the DLLPs sent up to now, in every direction.
    pub(super) fn deliver_all_dllps(&mut self) {
        for direction in DirectionIndex::all(self.directions.len()) {
            if self.hear(direction) && self.directions[direction].awaits_dllp {
                self.refresh(direction);
            }
        }
    }

    /// Delivers the DLLPs of this direction, if the other direction waits for one.
    #[inline]
    fn pass_on_dllps(&mut self, direction: DirectionIndex) {
        if self.directions[direction.opposite()].awaits_dllp && self.hear(direction.opposite()) {
            self.refresh(direction.opposite());
        }
    }

    /// Schedules a DLLP of a direction for the other one.
    #[allow(clippy::inline_always)] // For every TLP, several times: all such calls are 3 % of a run.
    #[inline(always)]
    pub(super) fn schedule_dllp(&mut self, direction: DirectionIndex, kind: DllpKind, from: Ticks) {
        let are_many = self.directions[direction].transmitter.schedule_dllp(kind, from);
        if self.directions[direction.opposite()].awaits_dllp {
            self.pass_on_dllps(direction);
            self.refresh(direction);
        } else if are_many {
            self.hear(direction.opposite());
        }
    }

    #[inline]
    pub(super) fn offer(&mut self, direction: DirectionIndex, input: usize, at: Ticks, tlp: Tlp) {
        if self.directions[direction].transmitter.offer(input, at, tlp) {
            self.refresh(direction);
        }
    }

    #[cold]
    pub(super) fn observe_sent(&mut self, direction: DirectionIndex, sent: &Sent, is_damaged: bool) {
        if let Some(observer) = &mut self.observer {
            let on_line = self.directions[direction].transmitter.time_of(&sent.tlp);
            observer.sent(Went { at: self.now, on_line, direction, sent, is_damaged }, &self.slab);
        }
    }

    /// Sends a TLP on its link: frees the sender's buffer and delivers the TLP to the other end.
    #[inline(never)]
    pub(super) fn send(&mut self, direction: DirectionIndex) {
        // The replay of a corrupted TLP is chosen anew, from all that can be sent.
        if self.directions[direction].transmitter.is_replaying() {
            self.hear(direction);
        }
        let transmitter = &mut self.directions[direction].transmitter;
        let mut sent = Sent::INVALID;
        if transmitter.send_as(self.now, &mut sent) {
            if self.observer.is_some() {
                self.observe_sent(direction, &sent, false);
            }
            self.make_room(direction, &sent);
            self.deliver(direction, &sent);
        } else {
            let (damaged, found) = (transmitter.damaged.take(), transmitter.take_damaged());
            if let Some(until) = transmitter.take_training() {
                // DLLPs that could be sent before the recovery have been sent.
                self.hear(direction);
                self.directions[direction.opposite()].transmitter.pause(until);
                self.refresh(direction.opposite());
            }
            if let Some(sent) = damaged {
                self.observe_sent(direction, &sent, true);
            }
            if let Some(at) = found {
                self.schedule_dllp(direction.opposite(), DllpKind::Nak, at);
                self.refresh(direction.opposite());
            }
        }
        self.pass_on_dllps(direction);
        self.refresh(direction);
    }

    #[inline]
    pub(super) fn make_room(&mut self, direction: DirectionIndex, sent: &Sent) {
        match self.directions[direction].from {
            End::Root(_) if sent.input == root_input::CORES => {
                self.waiting_requests -= 1;
                self.root_complex.left(self.now, sent.because);
                self.take_requests();
            }
            End::Root(_) if sent.input < root_input::PEERS => {}
            End::Root(_) if sent.input == root_input::own(self.roots.len()) => self.own_left(&sent.tlp),
            End::Root(_) => {
                let below = root_input::came_up_at(sent.input);
                self.give_back(below.up(), Cost::of(&sent.tlp), sent.because.unwrap_or(Cause::Credit));
            }
            End::Switch { switch, .. } => {
                let came_by = self.switch_ports[switch][PortIndex(sent.input)].opposite();
                self.give_back(came_by, Cost::of(&sent.tlp), sent.because.unwrap_or(Cause::Credit));
            }
            End::Endpoint(card) => {
                if sent.input >= endpoint_input::ENGINE
                    && let Some(engine) = &mut self.endpoints[card].dma
                    && sent.input - endpoint_input::ENGINE < engine.channels()
                    && engine.left(self.now, sent.input - endpoint_input::ENGINE, sent.because)
                {
                    self.refresh_issue(card);
                }
            }
        }
    }

    #[inline]
    pub(super) fn deliver(&mut self, direction: DirectionIndex, sent: &Sent) {
        let line = &mut self.directions[direction];
        if line.transmitter.counts(DllpKind::Ack) {
            line.transmitter.free(DllpKind::Ack, sent.arrives, 0, Cause::Replay);
        }
        self.schedule_dllp(direction.opposite(), DllpKind::Ack, sent.arrives);
        if self.faults.is_none() {
            return self.land(direction, sent);
        }
        if let Some(tlp) = self.apply_faults(direction, sent) {
            self.land(direction, &Sent { tlp, ..*sent });
        }
    }

    /// Delivers a TLP at the other end of a link.
    #[inline]
    fn land(&mut self, direction: DirectionIndex, sent: &Sent) {
        if sent.tlp.payload_bytes() > self.directions[direction].most_payload {
            return self.refuse(direction, sent);
        }
        if sent.tlp.flaw != Flaw::None && self.ends_flawed(direction, sent) {
            return;
        }
        match self.directions[direction].to {
            End::Endpoint(card) => self.reach_endpoint(card, sent),
            End::Switch { switch, port } => self.forward(switch, port, sent),
            End::Root(port) => self.reach_root(port, sent),
        }
    }

    #[inline]
    pub(super) fn reach_endpoint(&mut self, card: CardIndex, sent: &Sent) {
        let endpoint = &mut self.endpoints[card];
        if let (TlpKind::CplD | TlpKind::Cpl, Some(engine)) = (sent.tlp.kind, &mut endpoint.dma) {
            engine.arrive(sent.arrives, sent.tlp);
            let due = engine.data_due().max(self.now);
            return self.set(Port::Data(card), due);
        }
        endpoint.receive(sent.arrives, sent.tlp);
        let due = endpoint.accept_due().max(self.now);
        self.set(Port::Accept(card), due);
    }

    #[inline(never)]
    pub(super) fn forward(&mut self, switch: usize, came_in_at: PortIndex, sent: &Sent) {
        let Some(port) = self.switches[switch].way_of(&sent.tlp, came_in_at) else {
            return self.lose(self.switch_ports[switch][came_in_at].opposite(), &sent.tlp);
        };
        let out = self.switch_ports[switch][port];
        let time_out = self.directions[out].transmitter.time_of(&sent.tlp);
        let ready = self.switches[switch].ready(sent, time_out);
        self.offer(out, came_in_at.0, ready, sent.tlp);
    }

    /// Drops a TLP that is too long for a port, and logs it as malformed.
    #[cold]
    pub(super) fn refuse(&mut self, direction: DirectionIndex, sent: &Sent) {
        let is_too_long_here = sent.tlp.payload_bytes() > self.ports[direction][0].mps_bytes;
        let side = if is_too_long_here { Side::Sender } else { Side::Receiver };
        self.note(AerError::MalformedTlp, direction, side, sent.arrives, &sent.tlp);
        self.lose(direction, &sent.tlp);
    }

    /// Drops a TLP without a route.
    #[cold]
    pub(super) fn lose(&mut self, came_by: DirectionIndex, tlp: &Tlp) {
        self.lost += 1;
        self.slab.give_back(tlp.payload);
        self.give_back(came_by, Cost::of(tlp), Cause::Credit);
    }

    /// Frees space at the receiver of a direction.
    #[inline]
    pub(super) fn give_back(&mut self, direction: DirectionIndex, cost: Cost, because: Cause) {
        let (line, kind) = (&mut self.directions[direction], DllpKind::update(cost.class));
        if !line.transmitter.counts(kind) {
            return;
        }
        line.transmitter.free(kind, self.now, cost.data, because);
        self.schedule_dllp(direction.opposite(), kind, self.now);
        if self.is_exhausted(direction, kind) {
            self.directions[direction.opposite()].transmitter.hurry(self.now, kind);
            self.refresh(direction.opposite());
            self.pass_on_dllps(direction.opposite());
        }
        if self.directions[direction].awaits_dllp {
            self.refresh(direction);
        }
    }

    /// Returns whether the sender of a direction has used every credit returned up to now.
    #[inline]
    fn is_exhausted(&mut self, direction: DirectionIndex, kind: DllpKind) -> bool {
        let is_exhausted = |board: &Board| board.directions[direction].transmitter.is_exhausted(kind);
        is_exhausted(self) && {
            self.hear(direction);
            is_exhausted(self)
        }
    }
}
