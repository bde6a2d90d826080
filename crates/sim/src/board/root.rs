//! What comes up to the root complex, and what it does for it.

use super::{Board, FIRST_CARD};
use crate::part::intake::Taken;
use crate::part::iommu::{Iommu, Translated};
use crate::part::link::Sent;
use crate::part::root_port::Notice;
use crate::ports::{Port, root_input};
use crate::tlp::Tlp;
use lanemark_machine::{Cause, Partner, Transfer, Verb};
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;

impl Board {
    /// A TLP comes up to a root port.
    #[inline(never)]
    pub(super) fn reach_root(&mut self, port: usize, sent: &Sent) {
        if self.intake.limits() {
            self.intake.receive(sent.arrives, port, sent.tlp);
            let due = self.intake.due().max(self.now);
            return self.set(Port::Intake, due);
        }
        self.admit(port, sent.arrives, false, sent.tlp);
    }

    /// The root complex takes what it is the turn of.
    #[inline(never)]
    pub(super) fn take_in(&mut self) {
        while let Some(Taken { port, waited, tlp }) = self.intake.take(self.now) {
            self.admit(port, self.now, waited, tlp);
        }
        let due = self.intake.due();
        self.set(Port::Intake, due);
    }

    /// What came up to a root port at `at`, and may have waited since, is translated if anything is.
    #[inline]
    fn admit(&mut self, port: usize, at: Ticks, waited: bool, tlp: Tlp) {
        let because = if waited { Some(Cause::RootComplex) } else { None };
        let Some(iommu) = &mut self.iommu else { return self.pass(port, at, because, tlp) };
        iommu.receive(at, port, because, tlp);
        let due = iommu.due().max(self.now);
        self.set(Port::Iommu, due);
    }

    /// The IOMMU looks up what has come to it, and what it knows goes on.
    #[inline(never)]
    pub(super) fn translate(&mut self) {
        let now = self.now;
        if let Some(iommu) = &mut self.iommu {
            iommu.look(now);
        }
        while let Some(Translated { port, because, tlp }) = self.iommu.as_mut().and_then(|iommu| iommu.take(now)) {
            self.pass(port, now, because, tlp);
        }
        let due = self.iommu.as_ref().map_or(Ticks::NEVER, Iommu::due);
        self.set(Port::Iommu, due);
    }

    /// What came up to a root port goes at `at` where it is for; `because` says why no earlier.
    #[inline]
    fn pass(&mut self, port: usize, at: Ticks, because: Option<Cause>, tlp: Tlp) {
        let is_completion = tlp.kind.class() == FlowClass::Completion;
        if is_completion && tlp.requester < FIRST_CARD || tlp.requester == super::OUTSIDE {
            let pushed_until = self.roots[port].port.pushed_until();
            self.roots[port].upstream.send(at.max(pushed_until), tlp);
            let due = self.roots[port].upstream.due();
            return self.set(Port::Return(port), due);
        }
        if self.forward_at_root(port, at, tlp) {
            return;
        }
        if is_completion {
            return self.lose(2 * port + 1, &tlp);
        }
        self.roots[port].port.receive(at, because, tlp);
        let due = self.roots[port].port.accept_due();
        self.set(Port::Take(port), due);
    }

    /// What a card is to read of host memory, a core has just written, from its start to its end.
    pub(super) fn fill_cache(&mut self, transfer: &Transfer) {
        if self.cache.is_there() && (transfer.partner, transfer.verb) == (Partner::Host, Verb::Load) {
            let bytes = transfer.window.places(transfer.bytes).saturating_mul(transfer.window.step(transfer.bytes));
            self.cache.write(self.lent_at.saturating_add(transfer.window.offset), bytes);
        }
    }

    #[inline(never)]
    pub(super) fn take_at_root(&mut self, port: usize) {
        let root = &mut self.roots[port].port;
        if let Some((cost, because)) = root.accept(self.now, &mut self.memory, &mut self.cache, &mut self.slab) {
            let (due, fetched) = (root.accept_due(), root.answer_due());
            let tells = root.notice.is_some() || root.refused.is_some();
            self.set(Port::Take(port), due);
            if cost.class == FlowClass::NonPosted {
                self.set(Port::Fetched(port), fetched);
            }
            self.give_back(2 * port + 1, cost, because);
            if tells {
                self.tell_of_taken(port);
            }
        }
    }

    /// What a root port took last tells somebody.
    fn tell_of_taken(&mut self, port: usize) {
        let root = &mut self.roots[port].port;
        let (notice, refused) = (root.notice.take(), root.refused.take());
        if let Some(notice) = notice {
            self.tell(notice);
        }
        if let Some(tlp) = refused {
            self.note_refused(2 * port + 1, &tlp);
        }
    }

    /// The core that called the driver of a card's channel is told.
    fn tell(&mut self, notice: Notice) {
        let card = usize::from(notice.requester.wrapping_sub(FIRST_CARD));
        let channel = usize::from(notice.channel);
        let Some(done) = self.engine(card).and_then(|engine| engine.done(channel)) else { return };
        let number = self.callers[card][channel];
        self.cores[number].hear(notice, done);
        self.schedule.set(number, self.cores[number].due());
    }

    #[inline(never)]
    pub(super) fn fetched(&mut self, port: usize) {
        let (now, root, down) = (self.now, &mut self.roots[port].port, &mut self.directions[2 * port].transmitter);
        let send = |tlp| {
            down.offer(root_input::MEMORY, now, tlp);
        };
        root.answer(now, &mut self.memory, &mut self.slab, send);
        let (due, refused) = (root.answer_due(), root.refused.take());
        self.set(Port::Fetched(port), due);
        self.refresh(2 * port);
        if let Some(tlp) = refused {
            self.note_refused(2 * port + 1, &tlp);
        }
    }
}
