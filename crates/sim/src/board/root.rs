//! What comes up to the root complex, and what it does for it.

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
    /// A TLP comes up to a root port.
    #[inline(never)]
    pub(super) fn reach_root(&mut self, port: RootPortIndex, sent: &Sent) {
        if self.ingress.limits() {
            self.ingress.receive(sent.arrives, port, sent.tlp);
            let due = self.ingress.due().max(self.now);
            return self.set(Port::RcIngress, due);
        }
        self.admit(port, sent.arrives, false, &sent.tlp);
    }

    /// The root complex takes what it is the turn of.
    #[inline(never)]
    pub(super) fn take_in(&mut self) {
        while let Some(Taken { port, waited, tlp }) = self.ingress.take(self.now) {
            self.admit(port, self.now, waited, &tlp);
        }
        let due = self.ingress.due();
        self.set(Port::RcIngress, due);
    }

    /// What came up to a root port at `at`, and may have waited since, is translated if anything is.
    #[inline]
    fn admit(&mut self, port: RootPortIndex, at: Ticks, waited: bool, tlp: &Tlp) {
        let because = if waited { Some(Cause::RootComplex) } else { None };
        let Some(iommu) = &mut self.iommu else { return self.pass(port, at, because, tlp, None) };
        iommu.receive(at, port, because, *tlp);
        let due = iommu.due().max(self.now);
        self.set(Port::Iommu, due);
    }

    /// The IOMMU looks up what has come to it, and what it knows goes on.
    #[inline(never)]
    pub(super) fn translate(&mut self) {
        let now = self.now;
        if let Some(iommu) = &mut self.iommu {
            iommu.look(now, &mut self.cache);
        }
        while let Some(translated) = self.iommu.as_mut().and_then(|iommu| iommu.take(now)) {
            let Translated { port, because, tlp, named, refused, entry } = translated;
            if tlp.at == AddressType::TranslationRequest && tlp.flaw == Flaw::None {
                self.answer_question(port, because, &tlp, entry);
            } else if tlp.kind == TlpKind::Msg {
                self.has_forgotten(port, because, &tlp);
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

    /// A request that the IOMMU refused goes no further: a read is answered with Unsupported Request, a write is dropped.
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

    /// What came up to a root port goes at `at` where it is for; `because` says why no earlier, and `named` which address it
    /// came with, if it was another one.
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

    /// What transfers find of host memory from now on, `remote` farther away, each way, if it is not the root ports' own.
    pub fn find_memory(&mut self, memory: HostMemory, remote: Ticks) {
        self.written_by = memory.written_by;
        let remote = if memory.socket == Socket::Remote { remote } else { Ticks::ZERO };
        self.roots.iter_mut().for_each(|root| root.port.set_remote(remote));
    }

    /// What a card is to read of host memory somebody has just written, from its start to its end; what it is to write too, where
    /// that makes a difference.
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

    /// What a root port took last tells somebody.
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

    /// The core that called the driver of a card's channel is told.
    fn tell(&mut self, notice: Notice) {
        let card = CardIndex::of_requester(notice.requester);
        let channel = usize::from(notice.channel);
        let Some(done) = self.done_of(card, channel) else { return };
        let number = self.callers[card][channel];
        self.cores[number].hear(notice, done);
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

/// A platform's last-level cache.
pub(super) fn cache_of(platform: &Platform) -> LastLevelCache {
    let lines = |memory: &Memory| LastLevelCache::new(memory.cached_lines(), memory.ddio_ways.value as u8);
    platform.memory.as_ref().map_or_else(|| LastLevelCache::new(0, 1), lines)
}
