//! ATS messages between the root complex and devices.

use super::Board;
use crate::fabric::credit::Cost;
use crate::index::{CardIndex, RootPortIndex, Side};
use crate::iommu::Iommu;
use crate::iommu::invalidation_queue::Command;
use crate::iommu::translation_table::Entry;
use crate::ports::root_input;
use crate::tlp::{Tlp, TlpKind, span};
use lanemark_machine::Cause;
use lanemark_units::Ticks;
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
        self.give_back(port.up(), Cost::of(tlp), because.unwrap_or(Cause::Translation));
        self.offer(port.down(), root_input::MEMORY, self.now, Tlp { kind: TlpKind::CplD, payload, ..*tlp });
    }

    /// Sends Invalidate Requests for the first command of the invalidation queue to every device with ATS; returns
    /// whether there is any.
    #[inline(never)]
    pub(super) fn request_invalidations(&mut self) -> bool {
        let has_ats = |card: &CardIndex| self.engine(*card).is_some_and(|engine| engine.atc.is_some());
        let devices: Vec<u16> = self.each_card().filter(has_ats).map(CardIndex::requester).collect();
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
        for requester in devices {
            let payload = self.slab.take();
            let bytes = range.to_bytes();
            self.slab.bytes_mut(payload)[..bytes.len()].copy_from_slice(&bytes);
            let (_, length_dw, first_be, last_be) = span(0, u64::from(ENTRY_BYTES));
            let tlp = Tlp { length_dw, first_be, last_be, requester, tag, payload, ..Tlp::of(TlpKind::MsgD) };
            if let Some(port) = self.root_routes.below(&tlp) {
                self.offer(port.down(), root_input::MEMORY, self.now, tlp);
            }
        }
        true
    }

    /// Receives an Invalidate Completion, behind the earlier writes of its device.
    pub(super) fn receive_invalidate_completion(&mut self, port: RootPortIndex, because: Option<Cause>, tlp: &Tlp) {
        self.give_back(port.up(), Cost::of(tlp), because.unwrap_or(Cause::Credit));
        let (now, until) = (self.now, self.reached_at());
        if let Some(queue) = self.iommu.as_mut().and_then(Iommu::queue_mut)
            && queue.answered(now, tlp.requester, tlp.tag)
        {
            queue.wait_until(until.unwrap_or(now));
        }
    }

    /// Returns when every request now at root ports has reached memory.
    pub(super) fn reached_at(&self) -> Option<Ticks> {
        self.roots.iter().map(|root| root.port.reached_at()).max()
    }

    /// Returns the name of a card's port, by its requester ID.
    pub(super) fn port_of_card(&self, requester: u16) -> &str {
        let card = CardIndex::of_requester(requester);
        self.endpoint_up.get(card.0).map_or("a card", |up| self.ports[*up][Side::Sender].name.as_str())
    }
}
