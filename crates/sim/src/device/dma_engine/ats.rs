//! ATS of a DMA engine: Translation Requests and invalidations.
//!
//! A channel's requests wait for the translation of the next one; other channels continue.

use super::{DmaEngine, Made};
use crate::critical_path::CriticalPath;
use crate::device::atc::Lookup;
use crate::device::channel::Channel;
use crate::device::descriptor_fetcher::DescriptorFetcher;
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::Slab;
use lanemark_machine::{Cause, Completion, Partner};
use lanemark_units::Ticks;
use lanemark_wire::ats::AddressRange;

impl DmaEngine {
    /// Issues a Translation Request or an Invalidate Completion instead of the next request of a channel; returns
    /// whether it did.
    pub(super) fn issue_ats_message(
        &mut self,
        place: usize,
        now: Ticks,
        path: &mut CriticalPath,
        made: &mut Made,
    ) -> bool {
        let next = self.next_address(place, now);
        let channel = &mut self.channels[place];
        channel.wait_for_last(&[(channel.open_at, channel.ended, Cause::ReadRoundTrip)]);
        let Some(atc) = &mut self.atc else { return false };
        if let Some(done) = atc.take_done() {
            (made.tlp, made.channel) = (done, place);
            made.at = self.send(place, now, self.spec.write.request, path, &mut made.tlp);
            return true;
        }
        let Some(address) = next else {
            atc.skip();
            return false;
        };
        if let Lookup::Known(_) = atc.find(place, address) {
            return false;
        }
        made.tlp = atc.ask(now, place, address);
        made.at = self.send(place, now, self.spec.read.request, path, &mut made.tlp);
        true
    }

    /// Returns the host address of a channel's next request; `None` if it needs no translation.
    fn next_address(&self, place: usize, now: Ticks) -> Option<u64> {
        let Channel { calls, fetcher, job, .. } = &self.channels[place];
        if let Some(calls) = calls {
            let channel = &self.channels[place];
            if channel.fetch_due(calls, &self.spec) <= now {
                return fetcher.as_ref().map(DescriptorFetcher::next_at);
            }
            if channel.notice_due(calls, &self.spec) <= now {
                return (calls.completion == Completion::Flag).then_some(calls.mailbox.flag);
            }
        }
        let job = job.as_ref().filter(|job| job.transfer.partner == Partner::Host)?;
        job.piece.map(|piece| piece.chunk.address)
    }

    /// Translates a request, if the translation of its page is cached.
    pub(super) fn translate(&mut self, tlp: &mut Tlp) {
        let Some(atc) = &mut self.atc else { return };
        let above = atc.translate(tlp);
        if let Some(read) = self.reads.get_mut(usize::from(tlp.tag)).filter(|_| tlp.kind == TlpKind::MRd) {
            read.end = read.end.wrapping_sub(above);
        }
    }

    /// Processes an answer that has arrived; returns whether there was one.
    pub(super) fn take_answer(&mut self, now: Ticks, slab: &mut Slab) -> bool {
        let Some(atc) = &mut self.atc else { return false };
        let Some(tlp) = atc.take_answer(now) else { return false };
        let mut data = [0; 8];
        if tlp.kind == TlpKind::CplD {
            data.copy_from_slice(&slab.line(tlp.payload)[..8]);
        }
        slab.give_back(tlp.payload);
        atc.learn(now, &tlp, data);
        self.answered = tlp.milestone;
        self.taken_at = now;
        true
    }

    /// Receives an Invalidate Request: new requests do not use these translations.
    pub(crate) fn invalidate_translations(&mut self, range: AddressRange, itag: u16) {
        if let Some(atc) = &mut self.atc {
            atc.invalidate(range, itag);
            self.all_left();
        }
    }

    /// Lets an invalidation continue once every earlier request has left; returns whether it does.
    pub(super) fn all_left(&mut self) -> bool {
        let Some(atc) = self.atc.as_mut().filter(|atc| atc.awaits_leaving()) else { return false };
        let has_left = self.channels.iter().all(|channel| channel.unsent == 0);
        if has_left {
            atc.all_left();
        }
        has_left
    }
}
