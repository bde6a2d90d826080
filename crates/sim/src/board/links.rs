//! TLPs on the links of a board: sending and delivery.

use super::Board;
use crate::critical_path::{Milestone, Place};
use crate::fabric::credit::Cost;
use crate::fabric::dllp::DllpKind;
use crate::fabric::link::{Sent, WaitedFor};
use crate::fabric::{End, Fabric};
use crate::index::{DirectionIndex, PortIndex, Side};
use crate::observer::Went;
use crate::ports::{endpoint_input, root_input};
use crate::tlp::{Flaw, Tlp};
use lanemark_machine::Cause;
use lanemark_wire::config::AerError;

impl Board {
    #[cold]
    fn observe_sent(&mut self, direction: DirectionIndex, sent: &Sent, is_damaged: bool) {
        let transmitter = &self.fabric.directions[direction].transmitter;
        let (on_line, credits_left) = (transmitter.time_of(&sent.tlp), transmitter.credits_left(sent.tlp.kind.class()));
        let went = Went { at: self.events.now, on_line, direction, sent, credits_left, is_damaged };
        self.observation.sent(went, &self.slab);
    }

    /// Sends a TLP on its link: frees the sender's buffer and delivers the TLP to the other end.
    #[inline(never)]
    pub(super) fn send(&mut self, direction: DirectionIndex) {
        let (line, back) = self.fabric.pair(direction);
        // The replay of a corrupted TLP is chosen anew, from all that can be sent.
        if line.transmitter.is_replaying() {
            back.transmitter.tell(self.events.now, &mut line.transmitter);
        }
        let mut sent = Sent::INVALID;
        // If the other direction waits for a DLLP, it must also be scheduled. A trace shows credits as of the last
        // time when they were needed.
        let is_lazy = back.awaits_dllp || self.observation.is_traced();
        let other = if is_lazy { None } else { Some(&mut back.transmitter) };
        if line.transmitter.send_as(self.events.now, other, &mut sent) {
            if self.observation.is_traced() {
                self.observe_sent(direction, &sent, false);
            }
            let departed = self.depart(direction, &mut sent);
            self.make_room(direction, &sent, departed);
            self.deliver(direction, &sent);
        } else {
            self.look_for_damage(direction);
        }
        let (line, back) = self.fabric.pair(direction);
        if back.awaits_dllp {
            self.fabric.pass_on_dllps(&mut self.events, direction);
            return self.fabric.refresh(&mut self.events, direction);
        }
        Fabric::refresh_pair(&mut self.events, direction, line, back);
    }

    /// Handles a TLP that was corrupted, and the retraining of the link after several of them.
    fn look_for_damage(&mut self, direction: DirectionIndex) {
        let transmitter = &mut self.fabric.directions[direction].transmitter;
        let (damaged, found) = (transmitter.damaged.take(), transmitter.take_damaged());
        if let Some(until) = transmitter.take_training() {
            // DLLPs that could be sent before the recovery have been sent.
            self.fabric.receive_dllps(self.events.now, direction);
            self.fabric.directions[direction.opposite()].transmitter.pause(until);
            self.fabric.refresh(&mut self.events, direction.opposite());
        }
        if let Some(sent) = damaged {
            self.observe_sent(direction, &sent, true);
        }
        if let Some(at) = found {
            self.fabric.schedule_dllp(&mut self.events, direction.opposite(), DllpKind::Nak, at);
            self.fabric.refresh(&mut self.events, direction.opposite());
        }
    }

    /// Adds the milestones of a TLP that was sent: its departure, which is returned, and its arrival.
    #[inline]
    fn depart(&mut self, direction: DirectionIndex, sent: &mut Sent) -> Milestone {
        let (path, now) = (&mut self.events.path, self.events.now);
        if !path.is_on() {
            return Milestone::NONE;
        }
        let line = Place::link(direction);
        let departed = match sent.waited_for {
            WaitedFor::Itself => sent.tlp.milestone,
            WaitedFor::Line(before) => {
                let cause = if sent.because == Some(Cause::Replay) { Cause::Replay } else { Cause::LinkBusy };
                path.add(before, now, line, cause)
            }
            WaitedFor::Dllps(ready) => {
                let ready = path.add(sent.tlp.milestone, ready, line, Cause::Transit);
                path.add(ready, now, line, Cause::LinkBusy)
            }
            WaitedFor::Credits(freed) => path.add_after(Cause::Credit, freed, now, line, Cause::Transit),
            WaitedFor::Acknowledgment(freed) => path.add_after(Cause::Replay, freed, now, line, Cause::Transit),
        };
        // A pause of the link before a segment is time of the engine that sends it.
        let begun = match self.fabric.directions[direction].from {
            End::Endpoint(card) if sent.begins > now => {
                path.add(departed, sent.begins, Place::engine(card), Cause::Engine)
            }
            _ => departed,
        };
        self.fabric.directions[direction].transmitter.set_departed(begun);
        sent.tlp.milestone = path.add(begun, sent.arrives, line, Cause::Transit);
        departed
    }

    #[inline]
    fn make_room(&mut self, direction: DirectionIndex, sent: &Sent, departed: Milestone) {
        match self.fabric.directions[direction].from {
            End::Root(_) if sent.input == root_input::CORES => {
                if self.root_complex.requests.left(self.events.now, sent.because, departed) {
                    self.take_requests();
                }
            }
            End::Root(_) if sent.input < root_input::PEERS => {}
            End::Root(_) if sent.input == self.root_complex.own_input() => {
                self.root_complex.own_left(&mut self.fabric, &mut self.events, &sent.tlp);
            }
            End::Root(_) => {
                let below = root_input::came_up_at(sent.input);
                self.fabric.return_credits(
                    &mut self.events,
                    below.up(),
                    Cost::of(&sent.tlp),
                    sent.because.unwrap_or(Cause::Credit),
                    departed,
                );
            }
            End::Switch { switch, .. } => {
                let came_by = self.fabric.arriving_at(switch, PortIndex(sent.input));
                self.fabric.return_credits(
                    &mut self.events,
                    came_by,
                    Cost::of(&sent.tlp),
                    sent.because.unwrap_or(Cause::Credit),
                    departed,
                );
            }
            End::Endpoint(card) => {
                if sent.input >= endpoint_input::ENGINE
                    && let Some(engine) = &mut self.endpoints[card].dma
                    && sent.input - endpoint_input::ENGINE < engine.channels()
                    && engine.left(
                        self.events.now,
                        sent.input - endpoint_input::ENGINE,
                        sent.because,
                        departed,
                        &mut self.events.path,
                    )
                {
                    self.endpoints.refresh_issue(&mut self.events, card);
                }
            }
        }
    }

    #[inline]
    fn deliver(&mut self, direction: DirectionIndex, sent: &Sent) {
        let (line, back) = self.fabric.pair(direction);
        if line.transmitter.counts(DllpKind::Ack) {
            line.transmitter.free(DllpKind::Ack, sent.arrives, 0, Cause::Replay, sent.tlp.milestone);
        }
        if line.awaits_dllp {
            self.fabric.schedule_dllp(&mut self.events, direction.opposite(), DllpKind::Ack, sent.arrives);
        } else if back.transmitter.schedule_dllp(DllpKind::Ack, sent.arrives) {
            back.transmitter.tell(self.events.now, &mut line.transmitter);
        }
        if self.failures.injected.is_none() {
            return self.land(direction, sent);
        }
        if let Some(tlp) = self.apply_faults(direction, sent) {
            self.observation.flawed(direction, tlp.flaw);
            self.land(direction, &Sent { tlp, ..*sent });
        }
    }

    /// Delivers a TLP at the other end of a link.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    fn land(&mut self, direction: DirectionIndex, sent: &Sent) {
        if sent.tlp.payload_bytes() > self.fabric.directions[direction].most_payload {
            return self.refuse(direction, sent);
        }
        if sent.tlp.flaw != Flaw::None && self.ends_flawed(direction, sent) {
            return;
        }
        match self.fabric.directions[direction].to {
            End::Endpoint(card) => self.endpoints.receive(&mut self.events, card, sent.arrives, sent.tlp),
            End::Switch { switch, port } => self.forward(switch, port, sent),
            End::Root(port) => self.reach_root(port, sent),
        }
    }

    #[inline]
    fn forward(&mut self, switch: usize, came_in_at: PortIndex, sent: &Sent) {
        let Some(out) = self.fabric.out_of_switch(switch, came_in_at, &sent.tlp) else {
            return self.lose(self.fabric.arriving_at(switch, came_in_at), &sent.tlp);
        };
        let ready = self.fabric.ready(switch, out, sent);
        self.fabric.offer(&mut self.events, out, came_in_at.0, ready, sent.tlp);
    }

    /// Drops a TLP that is too long for a port, and logs it as malformed.
    #[cold]
    fn refuse(&mut self, direction: DirectionIndex, sent: &Sent) {
        let is_too_long_here = sent.tlp.payload_bytes() > self.fabric.port(direction, Side::Sender).mps_bytes;
        let side = if is_too_long_here { Side::Sender } else { Side::Receiver };
        self.note(AerError::MalformedTlp, direction, side, sent.arrives, &sent.tlp);
        self.lose(direction, &sent.tlp);
    }

    /// Drops a TLP without a route.
    #[cold]
    pub(super) fn lose(&mut self, came_by: DirectionIndex, tlp: &Tlp) {
        self.failures.lose();
        self.slab.give_back(tlp.payload);
        self.fabric.return_credits(&mut self.events, came_by, Cost::of(tlp), Cause::Credit, tlp.milestone);
    }
}
