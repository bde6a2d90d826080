//! TLPs received by the root complex.

use super::Board;
use crate::fabric::credit::Cost;
use crate::fabric::link::Sent;
use crate::host::last_level_cache::LastLevelCache;
use crate::host::rc_ingress::Taken;
use crate::host::root_port::Notice;
use crate::index::{CardIndex, RootPortIndex, Side};
use crate::iommu::{Iommu, Translated};
use crate::ports::{Port, root_input};
use crate::requester::{FIRST_CARD, OUTSIDE};
use crate::tlp::{AddressType, Flaw, Tlp, TlpKind};
use lanemark_engine::Slot;
use lanemark_machine::{Cause, HostMemory, Partner, Socket, Transfer, Verb, Writer};
use lanemark_platform::{Memory, Platform};
use lanemark_units::{Iova, Ticks};
use lanemark_wire::FlowClass;
use lanemark_wire::config::AerError;

impl Board {
    /// Receives a TLP at a root port.
    #[inline(never)]
    pub(super) fn reach_root(&mut self, port: RootPortIndex, sent: &Sent) {
        if self.ingress.limits() {
            self.ingress.receive(sent.arrives, port, sent.tlp);
            let due = self.ingress.due().max(self.now);
            return self.set(Port::RcIngress, due);
        }
        self.admit(port, sent.arrives, false, &sent.tlp);
    }

    /// Forwards the due TLPs of the ingress.
    #[inline(never)]
    pub(super) fn take_in(&mut self) {
        while let Some(Taken { port, waited, tlp }) = self.ingress.take(self.now) {
            self.admit(port, self.now, waited, &tlp);
        }
        let due = self.ingress.due();
        self.set(Port::RcIngress, due);
    }

    /// Passes a TLP that arrived at `at` to the IOMMU, if there is one, or on to its destination.
    #[inline]
    fn admit(&mut self, port: RootPortIndex, at: Ticks, waited: bool, tlp: &Tlp) {
        let because = if waited { Some(Cause::RootComplex) } else { None };
        let Some(iommu) = &mut self.iommu else { return self.pass(port, at, because, tlp, None) };
        iommu.receive(at, port, because, *tlp);
        let due = iommu.due().max(self.now);
        self.set(Port::Iommu, due);
    }

    /// Lets the IOMMU look up arrived requests, and forwards the translated ones.
    #[inline(never)]
    pub(super) fn translate(&mut self) {
        let now = self.now;
        if let Some(iommu) = &mut self.iommu {
            iommu.look(now, &mut self.cache);
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
        self.set(Port::Iommu, due);
    }

    /// Ends a request that the IOMMU refused: a read is completed with Unsupported Request, a write is dropped.
    ///
    /// Source: Intel Virtualization Technology for Directed I/O, section 7.2.
    #[cold]
    fn refuse_untranslated(&mut self, port: RootPortIndex, because: Option<Cause>, tlp: Tlp) {
        self.note(AerError::UnsupportedRequest, port.up(), Side::Receiver, self.now, &tlp);
        self.slab.give_back(tlp.payload);
        self.give_back(port.up(), Cost::of(&tlp), because.unwrap_or(Cause::Translation));
        if tlp.kind == TlpKind::MRd {
            let refusal = Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, ..tlp };
            self.offer(port.down(), root_input::MEMORY, self.now, refusal);
        }
    }

    /// Passes a TLP received by a root port to its destination at `at`. `because` is its stall cause, and `named` its
    /// untranslated address if that differs.
    #[inline]
    fn pass(&mut self, port: RootPortIndex, at: Ticks, because: Option<Cause>, tlp: &Tlp, named: Option<Iova>) {
        let is_completion = tlp.kind.class() == FlowClass::Completion;
        if is_completion && tlp.requester < FIRST_CARD || tlp.requester == OUTSIDE {
            let pushed_until = self.roots[port].port.pushed_until();
            self.roots[port].upstream.send(at.max(pushed_until), *tlp);
            let due = self.roots[port].upstream.due();
            return self.set(Port::Return(port), due);
        }
        if self.forward_at_root(port, at, tlp) {
            return;
        }
        if is_completion {
            return self.lose(port.up(), tlp);
        }
        let root = &mut self.roots[port].port;
        if let Some(named) = named {
            root.name(tlp, named);
        }
        root.receive(at, because, tlp);
        let due = self.roots[port].port.accept_due();
        self.set(Port::Take(port), due);
    }

    /// Sets the initial cache state of host memory, and the extra one-way latency `remote` to the memory of another
    /// socket.
    pub fn find_memory(&mut self, memory: HostMemory, remote: Ticks) {
        self.written_by = memory.written_by;
        let remote = if memory.socket == Socket::Remote { remote } else { Ticks::ZERO };
        self.roots.iter_mut().for_each(|root| root.port.set_remote(remote));
    }

    /// Puts the buffer of a transfer in the last-level cache, as left by its writer; of a write only where that
    /// affects timing.
    pub(super) fn fill_cache(&mut self, transfer: &Transfer) {
        let matters = transfer.verb == Verb::Load || self.roots.iter().any(|root| root.port.is_held_by_lines());
        if !self.cache.is_there() || transfer.partner != Partner::Host || !matters {
            return;
        }
        let bytes = transfer.window.places(transfer.bytes).saturating_mul(transfer.window.step(transfer.bytes));
        let start = self.mapped_at.saturating_add(transfer.window.offset);
        match self.written_by {
            Writer::Nobody => self.cache.invalidate(start, bytes),
            Writer::Core => self.cache.write_by_core(start, bytes),
            Writer::Device => self.cache.fill_by_device(start, bytes),
        }
    }

    #[inline(never)]
    pub(super) fn take_at_root(&mut self, port: RootPortIndex) {
        let root = &mut self.roots[port].port;
        if let Some((cost, because)) = root.accept(self.now, &mut self.memory, &mut self.cache, &mut self.slab) {
            let (due, fetched) = (root.accept_due(), root.answer_due());
            let tells = root.notice.is_some() || root.refused.is_some();
            self.set(Port::Take(port), due);
            if cost.class == FlowClass::NonPosted {
                self.set(Port::Fetched(port), fetched);
            }
            self.give_back(port.up(), cost, because);
            if tells {
                self.tell_of_taken(port);
            }
        }
    }

    /// Delivers the notification of the request that a root port accepted last.
    fn tell_of_taken(&mut self, port: RootPortIndex) {
        let root = &mut self.roots[port].port;
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
        let channel = usize::from(notice.channel);
        let Some(done) = self.done_of(card, channel) else { return };
        let number = self.callers[card][channel];
        self.cores[number].notify(notice, done);
        self.schedule.set(number, self.cores[number].due());
    }

    #[inline(never)]
    pub(super) fn fetched(&mut self, port: RootPortIndex) {
        let (now, root, down) = (self.now, &mut self.roots[port].port, &mut self.directions[port.down()].transmitter);
        let send = |tlp| {
            down.offer(root_input::MEMORY, now, tlp);
        };
        root.answer(now, &mut self.memory, &mut self.slab, send);
        let (due, refused) = (root.answer_due(), root.refused.take());
        self.set(Port::Fetched(port), due);
        self.refresh(port.down());
        if let Some(tlp) = refused {
            self.note_refused(port.up(), &tlp);
        }
    }
}

/// Creates the last-level cache of a platform.
pub(super) fn cache_of(platform: &Platform) -> LastLevelCache {
    let lines = |memory: &Memory| LastLevelCache::new(memory.cached_lines(), memory.ddio_ways.value as u8);
    platform.memory.as_ref().map_or_else(|| LastLevelCache::new(0, 1), lines)
}
