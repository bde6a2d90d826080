//! ATS messages between the root complex and devices.

use super::Board;
use crate::fabric::credit::Cost;
use crate::index::{CardIndex, RootPortIndex};
use crate::iommu::Iommu;
use crate::iommu::invalidation_queue::Command;
use crate::iommu::translation_table::Entry;
use crate::ports::root_input;
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_machine::Cause;
use lanemark_wire::ats::{AddressRange, ENTRY_BYTES, TranslationEntry};

impl Board {
    /// Completes the Translation Request of a device; a page without a mapping has a completion without permissions.
    #[inline(never)]
    pub(super) fn complete_translation_request(
        &mut self,
        port: RootPortIndex,
        because: Option<Cause>,
        tlp: &Tlp,
        entry: Option<Entry>,
    ) {
        let page_bytes = self.iommu.as_ref().map_or(1, Iommu::page_bytes);
        let leads = |entry: Entry| TranslationEntry {
            leads_to: AddressRange::new(entry.page * page_bytes, page_bytes.trailing_zeros()),
            reads: entry.permission.reads(),
            writes: entry.permission.writes(),
        };
        let payload = self.slab.take();
        let bytes = entry.map_or(TranslationEntry::NONE, leads).to_bytes();
        self.slab.bytes_mut(payload)[..bytes.len()].copy_from_slice(&bytes);
        self.fabric.return_credits(
            &mut self.events,
            port.up(),
            Cost::of(tlp),
            because.unwrap_or(Cause::Translation),
            tlp.milestone,
        );
        let (now, completion) = (self.events.now, Tlp { kind: TlpKind::CplD, payload, ..*tlp });
        self.fabric.offer(&mut self.events, port.down(), root_input::MEMORY, now, completion);
    }

    /// Sends Invalidate Requests for the first command of the invalidation queue to every device with ATS; returns
    /// whether there is any.
    #[inline(never)]
    pub(super) fn request_invalidations(&mut self) -> bool {
        let has_ats = |card: &CardIndex| self.endpoints.engine(*card).is_some_and(|engine| engine.atc.is_some());
        let devices: Vec<u16> = self.endpoints.each_card().filter(has_ats).map(CardIndex::requester).collect();
        let queue = self.iommu.as_mut().and_then(Iommu::queue_mut);
        let Some((command, tag)) = queue.and_then(|queue| queue.await_devices(&devices)) else { return false };
        let page_bytes = self.iommu.as_ref().map_or(1, Iommu::page_bytes);
        let range = match command {
            Command::All => AddressRange::ALL,
            Command::Pages { first, pages } => AddressRange::new(
                first.wrapping_mul(page_bytes),
                page_bytes.trailing_zeros() + pages.max(1).next_power_of_two().trailing_zeros(),
            ),
        };
        let now = self.events.now;
        for requester in devices {
            let payload = self.slab.take();
            let bytes = range.to_bytes();
            self.slab.bytes_mut(payload)[..bytes.len()].copy_from_slice(&bytes);
            let (_, length_dw, first_be, last_be) = span(0, u64::from(ENTRY_BYTES));
            let tlp = Tlp { length_dw, first_be, last_be, requester, tag, payload, ..Tlp::of(TlpKind::MsgD) };
            if let Some(port) = self.root_complex.routes.below(&tlp) {
                self.fabric.offer(&mut self.events, port.down(), root_input::MEMORY, now, tlp);
            }
        }
        true
    }

    /// Receives an Invalidate Completion, behind the earlier writes of its device.
    pub(super) fn receive_invalidate_completion(&mut self, port: RootPortIndex, because: Option<Cause>, tlp: &Tlp) {
        self.fabric.return_credits(
            &mut self.events,
            port.up(),
            Cost::of(tlp),
            because.unwrap_or(Cause::Credit),
            tlp.milestone,
        );
        let (now, until) = (self.events.now, self.root_complex.reached_at());
        if let Some(queue) = self.iommu.as_mut().and_then(Iommu::queue_mut)
            && queue.answered(now, tlp.requester, tlp.tag)
        {
            queue.wait_until(until.unwrap_or(now));
        }
    }
}
