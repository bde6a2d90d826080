//! TLPs received by the root complex.

use super::Board;
use crate::fabric::credit::Cost;
use crate::fabric::link::Sent;
use crate::host::rc_ingress::Taken;
use crate::host::root_port::Notice;
use crate::index::{CardIndex, RootPortIndex, Side};
use crate::iommu::{Iommu, Translated};
use crate::ports::{Port, root_input};
use crate::requester::{FIRST_CARD, OUTSIDE};
use crate::tlp::{AddressType, Flaw, Tlp, TlpKind};
use lanemark_engine::Slot;
use lanemark_machine::{Cause, HostMemory, Socket, Transfer, Verb};
use lanemark_units::{Iova, Ticks};
use lanemark_wire::FlowClass;
use lanemark_wire::config::AerError;

impl Board {
    /// Receives a TLP at a root port.
    #[inline]
    pub(super) fn reach_root(&mut self, port: RootPortIndex, sent: &Sent) {
        if self.root_complex.ingress.limits() {
            self.root_complex.ingress.receive(sent.arrives, port, sent.tlp);
            let due = self.root_complex.ingress.due().max(self.events.now);
            return self.events.set(Port::RcIngress, due);
        }
        self.admit(port, sent.arrives, false, &sent.tlp);
    }

    /// Forwards the due TLPs of the ingress.
    #[inline(never)]
    pub(super) fn take_in(&mut self) {
        while let Some(Taken { port, waited, tlp }) =
            self.root_complex.ingress.take(self.events.now, &mut self.events.path)
        {
            self.admit(port, self.events.now, waited, &tlp);
        }
        let due = self.root_complex.ingress.due();
        self.events.set(Port::RcIngress, due);
    }

    /// Passes a TLP that arrived at `at` to the IOMMU, if there is one, or on to its destination.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    fn admit(&mut self, port: RootPortIndex, at: Ticks, waited: bool, tlp: &Tlp) {
        let because = if waited { Some(Cause::RootComplex) } else { None };
        let Some(iommu) = &mut self.iommu else { return self.pass(port, at, because, tlp, None) };
        iommu.receive(at, port, because, *tlp);
        let due = iommu.due().max(self.events.now);
        self.events.set(Port::Iommu, due);
    }

    /// Lets the IOMMU look up arrived requests, and forwards the translated ones.
    #[inline(never)]
    pub(super) fn translate(&mut self) {
        let now = self.events.now;
        if let Some(iommu) = &mut self.iommu {
            iommu.look(now, &mut self.memory.cache, &mut self.events.path);
        }
        while let Some(translated) = self.iommu.as_mut().and_then(|iommu| iommu.take(now)) {
            let Translated { port, because, tlp, named, refused, entry } = translated;
            if tlp.at == AddressType::TranslationRequest && tlp.flaw == Flaw::None {
                self.complete_translation_request(port, because, &tlp, entry);
            } else if tlp.kind == TlpKind::Msg {
                self.receive_invalidate_completion(port, because, &tlp);
            } else if refused.is_some() {
                self.refuse_untranslated(port, because, tlp);
            } else {
                self.pass(port, now, because, &tlp, named);
            }
        }
        self.invalidate_what_is_due();
        let due = self.iommu.as_ref().map_or(Ticks::NEVER, Iommu::due);
        self.events.set(Port::Iommu, due);
    }

    /// Ends a request that the IOMMU refused: a read is completed with Unsupported Request, a write is dropped.
    ///
    /// Source: Intel Virtualization Technology for Directed I/O, section 7.2.
    #[cold]
    fn refuse_untranslated(&mut self, port: RootPortIndex, because: Option<Cause>, tlp: Tlp) {
        self.note(AerError::UnsupportedRequest, port.up(), Side::Receiver, self.events.now, &tlp);
        self.slab.give_back(tlp.payload);
        self.fabric.return_credits(
            &mut self.events,
            port.up(),
            Cost::of(&tlp),
            because.unwrap_or(Cause::Translation),
            tlp.milestone,
        );
        if tlp.kind == TlpKind::MRd {
            let (now, refusal) = (self.events.now, Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, ..tlp });
            self.fabric.offer(&mut self.events, port.down(), root_input::MEMORY, now, refusal);
        }
    }

    /// Passes a TLP received by a root port to its destination at `at`. `because` is its stall cause, and `named` its
    /// untranslated address if that differs.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    fn pass(&mut self, port: RootPortIndex, at: Ticks, because: Option<Cause>, tlp: &Tlp, named: Option<Iova>) {
        let is_completion = tlp.kind.class() == FlowClass::Completion;
        if is_completion && tlp.requester < FIRST_CARD || tlp.requester == OUTSIDE {
            let at = at.max(self.root_complex.roots[port].port.pushed_until());
            return self.root_complex.send_upstream(&mut self.events, port, at, *tlp);
        }
        if self.root_complex.forward(&mut self.fabric, &mut self.events, port, at, tlp) {
            return;
        }
        if is_completion {
            return self.lose(port.up(), tlp);
        }
        let root = &mut self.root_complex.roots[port].port;
        if let Some(named) = named {
            root.name(tlp, named);
        }
        if root.receive(at, because, tlp) {
            self.events.set(Port::Take(port), root.accept_due());
        }
    }

    /// Sets the initial cache state of host memory, and the extra one-way latency `remote` to the memory of another
    /// socket.
    pub fn find_memory(&mut self, memory: HostMemory, remote: Ticks) {
        self.memory.written_by = memory.written_by;
        self.root_complex.set_remote(if memory.socket == Socket::Remote { remote } else { Ticks::ZERO });
    }

    /// Puts the buffer of a transfer in the last-level cache, as left by its writer; of a write only where that
    /// affects timing.
    pub(crate) fn fill_cache(&mut self, transfer: &Transfer) {
        if transfer.verb == Verb::Load || self.root_complex.is_held_by_lines() {
            self.memory.fill_cache(transfer);
        }
    }

    #[inline(never)]
    pub(super) fn take_at_root(&mut self, port: RootPortIndex) {
        let root = &mut self.root_complex.roots[port].port;
        let path = &mut self.events.path;
        let accepted =
            root.accept(self.events.now, &mut self.memory.bytes, &mut self.memory.cache, &mut self.slab, path);
        if let Some((cost, because, milestone)) = accepted {
            let (due, fetched) = (root.accept_due(), root.answer_due());
            let tells = root.notice.is_some() || root.refused.is_some();
            self.events.set(Port::Take(port), due);
            if cost.class == FlowClass::NonPosted {
                self.events.set(Port::Fetched(port), fetched);
            }
            self.fabric.return_credits(&mut self.events, port.up(), cost, because, milestone);
            if tells {
                self.tell_of_taken(port);
            }
        }
    }

    /// Delivers the notification of the request that a root port accepted last.
    fn tell_of_taken(&mut self, port: RootPortIndex) {
        let root = &mut self.root_complex.roots[port].port;
        let (notice, refused) = (root.notice.take(), root.refused.take());
        if let Some(notice) = notice {
            self.tell(notice);
        }
        if let Some(tlp) = refused {
            self.note_refused(port.up(), &tlp);
        }
    }

    /// Notifies the core that called the driver of a card's channel.
    fn tell(&mut self, notice: Notice) {
        let card = CardIndex::of_requester(notice.requester);
        if let Some(card) = self.compiled_mut() {
            card.interrupts_at = Some(notice.known);
            return;
        }
        if let Some(done) = self.endpoints.done(card, usize::from(notice.channel)) {
            self.cores.notify(&mut self.events, card, notice, done);
        }
    }

    #[inline(never)]
    pub(super) fn fetched(&mut self, port: RootPortIndex) {
        let (now, root, down) = (
            self.events.now,
            &mut self.root_complex.roots[port].port,
            &mut self.fabric.directions[port.down()].transmitter,
        );
        let path = &mut self.events.path;
        let send = |tlp| {
            down.offer(root_input::MEMORY, now, tlp);
        };
        root.answer(now, &mut self.memory.bytes, &mut self.slab, path, send);
        let (due, refused) = (root.answer_due(), root.refused.take());
        self.events.set(Port::Fetched(port), due);
        self.fabric.refresh(&mut self.events, port.down());
        if let Some(tlp) = refused {
            self.note_refused(port.up(), &tlp);
        }
    }
}
