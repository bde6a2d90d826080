//! A TLP as passed between parts: small and copyable, with its payload in the slab.

use crate::critical_path::Milestone;
use lanemark_engine::Slot;
use lanemark_wire::{FlowClass, Mps, Ordered, Rcb, byte_enable, split};

/// Kind of a TLP.
///
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum TlpKind {
    /// Memory write, posted.
    MWr,
    /// Memory read, non-posted.
    MRd,
    /// Completion with data.
    CplD,
    /// Completion without data, with an error status.
    Cpl,
    /// Invalidate Request, posted. [`Tlp::requester`] is its target, and its data are the addresses.
    MsgD,
    /// Invalidate Completion, posted.
    Msg,
}

impl TlpKind {
    /// Returns its flow-control and ordering class.
    #[inline]
    #[must_use]
    pub const fn class(self) -> FlowClass {
        CLASSES[self as usize]
    }

    /// Returns its name in the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TlpKind::MWr => "MWr",
            TlpKind::MRd => "MRd",
            TlpKind::CplD => "CplD",
            TlpKind::Cpl => "Cpl",
            TlpKind::MsgD => "MsgD",
            TlpKind::Msg => "Msg",
        }
    }
}

/// Table by kind: a match would compile to an unpredictable jump.
const CLASSES: [FlowClass; 6] = [
    FlowClass::Posted,
    FlowClass::NonPosted,
    FlowClass::Completion,
    FlowClass::Completion,
    FlowClass::Posted,
    FlowClass::Posted,
];
const PAYLOAD_BYTES_OF_DW: [u32; 6] = [4, 0, 4, 0, 4, 0];

/// AT: the address type of a request, or of the request that a completion belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum AddressType {
    /// Untranslated: an IOMMU translates it.
    Untranslated,
    /// Translation Request.
    TranslationRequest,
    /// Translated by ATS.
    Translated,
}

/// A defect of a TLP, or an injected fault that it carries to its completer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Flaw {
    /// None. A [`TlpKind::Cpl`] then has the status Unsupported Request.
    None,
    /// EP is set: its data are poisoned.
    Poisoned,
    /// Its ECRC is wrong.
    BadEcrc,
    /// Its completer returns Unsupported Request.
    Unsupported,
    /// Its completer returns Completer Abort.
    Abort,
    /// Its completer accepts it and returns no completion.
    Unanswered,
    /// Its page is unmapped on arrival at the IOMMU.
    Unmapped,
    /// Its page becomes read-only on arrival at the IOMMU.
    ReadOnly,
}

/// A transaction layer packet.
///
/// It is four words of 8 B without padding, so that it is copied in words. A copy in smaller parts that is read soon
/// after would cause store-forwarding stalls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Tlp {
    /// Bus address of the first DW; of a completion, the address that was read.
    pub address: u64,
    /// DWs of payload, or DWs requested.
    pub length_dw: u16,
    /// First DW Byte Enables.
    pub first_be: u8,
    /// Last DW Byte Enables; 0 if there is one DW only.
    pub last_be: u8,
    /// Requester ID: a core, a card, or outside.
    pub requester: u16,
    /// Tag of the request.
    pub tag: u16,
    /// Payload, from the first DW on; [`Slot::NONE`] for reads.
    pub payload: Slot,
    /// The Relaxed Ordering attribute.
    pub relaxed: bool,
    /// The ID-Based Ordering attribute.
    pub id_based: bool,
    /// Number of pauses of the first link before it.
    pub pauses: u8,
    /// Its defect.
    pub flaw: Flaw,
    /// Its address type.
    pub at: AddressType,
    /// Its kind.
    pub kind: TlpKind,
    /// When it became ready here, and what it waited for.
    pub milestone: Milestone,
}

/// Number of disabled bytes of a DW by its byte enables: a table, because some processors of this kind lack a
/// population count.
const DISABLED: [u8; 16] = [4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0];

impl Tlp {
    /// Creates a TLP of this kind with every other field empty.
    #[must_use]
    pub const fn of(kind: TlpKind) -> Tlp {
        Tlp {
            kind,
            address: 0,
            length_dw: 0,
            first_be: 0,
            last_be: 0,
            requester: 0,
            tag: 0,
            payload: Slot::NONE,
            pauses: 0,
            relaxed: false,
            id_based: false,
            flaw: Flaw::None,
            at: AddressType::Untranslated,
            milestone: Milestone::NONE,
        }
    }

    /// Returns its properties for the ordering rules.
    #[must_use]
    pub const fn ordered(&self) -> Ordered {
        Ordered {
            class: self.kind.class(),
            relaxed: self.relaxed,
            id_based: self.id_based,
            requester: self.requester,
            tag: self.tag,
        }
    }

    /// Returns whether it has Relaxed or ID-Based Ordering.
    #[inline]
    #[must_use]
    pub const fn is_free(&self) -> bool {
        self.relaxed || self.id_based
    }

    /// Returns the DWs of its header: 4 for messages and memory requests from 4 GiB on, 3 for all others.
    ///
    /// Source: PCI Express Base Specification, "TLP Header Size", 64-bit and 32-bit address formats.
    #[must_use]
    pub const fn header_dw(&self) -> u8 {
        match self.kind {
            TlpKind::MWr | TlpKind::MRd if self.address >= 1 << 32 => 4,
            TlpKind::MsgD | TlpKind::Msg => 4,
            _ => 3,
        }
    }

    /// Returns the payload bytes on the link.
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        self.length_dw as u32 * PAYLOAD_BYTES_OF_DW[self.kind as usize]
    }

    /// Returns the mask of its enabled bytes, from the first DW on; for at most 16 DWs.
    #[must_use]
    pub const fn byte_mask(&self) -> u64 {
        let dws = self.length_dw as u32;
        if dws <= 1 {
            return self.first_be as u64;
        }
        let all = if dws >= 16 { u64::MAX } else { (1 << (dws * 4)) - 1 };
        let last = (dws - 1) * 4;
        (all & !0xF & !(0xF << last)) | self.first_be as u64 | ((self.last_be as u64) << last)
    }

    /// Returns the number of its enabled bytes.
    #[must_use]
    pub const fn enabled_bytes(&self) -> u32 {
        // Most are whole.
        if self.first_be == 0xF && (self.last_be == 0xF || self.length_dw == 1) {
            return self.length_dw as u32 * 4;
        }
        // Only the first and the last DW may be partial.
        let last = if self.length_dw > 1 { DISABLED[self.last_be as usize & 0xF] } else { 0 };
        self.length_dw as u32 * 4 - (DISABLED[self.first_be as usize & 0xF] + last) as u32
    }

    /// Returns the bytes that a read returns: from its first to its last enabled byte, with the disabled ones between
    /// them; 0 for a zero-length read.
    ///
    /// Source: PCI Express Base Specification 5.0, section 2.3.1.1, table of the Byte Count.
    #[inline]
    #[must_use]
    pub const fn returned_bytes(&self) -> u32 {
        if self.first_be == 0 { 0 } else { byte_enable::byte_count(self.first_be, self.last_be, self.length_dw) as u32 }
    }
}

/// How a completer splits completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Read Completion Boundary.
    pub rcb: Rcb,
    /// Largest payload; 64 for one completion for each 64 B.
    pub most: u32,
    /// Whether the bytes after the last RCB have a completion of their own.
    pub odd_end_apart: bool,
}

/// Returns the completions of a read, without their payload.
pub fn completions(read: &Tlp, Cut { rcb, most, odd_end_apart }: Cut) -> impl Iterator<Item = Tlp> {
    let start = read.address + u64::from(byte_enable::lower_address(0, read.first_be));
    let bytes = read.returned_bytes();
    let chunks = match Mps::new(most) {
        Some(mps) if odd_end_apart => split::completions(start, bytes, rcb, mps).with_odd_end_apart(),
        Some(mps) => split::completions(start, bytes, rcb, mps),
        None => split::completions(start, bytes, Rcb::B64, Mps::ALL[0]).at_every_rcb(),
    };
    let Tlp { requester, tag, relaxed, id_based, milestone, .. } = *read;
    chunks.map(move |chunk| {
        let (address, length_dw, first_be, last_be) = span(chunk.address, u64::from(chunk.bytes));
        Tlp {
            address,
            length_dw,
            // The completion of a zero-length read has one DW, with no enabled byte.
            first_be: if chunk.bytes == 0 { 0 } else { first_be },
            last_be,
            requester,
            tag,
            relaxed,
            id_based,
            milestone,
            ..Tlp::of(TlpKind::CplD)
        }
    })
}

/// Returns the bus address of the first DW, the Length and the byte enables of `len` bytes at `address`.
#[must_use]
pub const fn span(address: u64, len: u64) -> (u64, u16, u8, u8) {
    let start = address % 4;
    let dws = (start + len).div_ceil(4);
    let first = (0xF << start) & 0xF;
    let last = 0xF >> ((4 - (start + len) % 4) % 4);
    if dws <= 1 {
        (address - start, 1, (first & last) as u8, 0)
    } else {
        (address - start, dws as u16, first as u8, last as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(address: u64, len: u64) -> Tlp {
        let (address, length_dw, first_be, last_be) = span(address, len);
        Tlp { address, length_dw, first_be, last_be, ..Tlp::of(TlpKind::MWr) }
    }

    #[test]
    fn byte_enables_count_exactly_the_bytes_of_the_span() {
        for address in 0..8 {
            for len in 1..=56 {
                let tlp = write(address, len);
                let mask = tlp.byte_mask() << (tlp.address % 64);
                assert_eq!(mask, (((1_u128 << len) - 1) << address) as u64, "{len} B at {address}");
                assert_eq!(u64::from(tlp.enabled_bytes()), len);
            }
        }
        assert_eq!(write(0, 64).byte_mask(), u64::MAX);
    }

    #[test]
    fn completions_return_the_bytes_between_the_first_and_the_last_enabled_one() {
        let returned = |length_dw, first_be, last_be| {
            let read = Tlp { address: 0x1040, length_dw, first_be, last_be, ..Tlp::of(TlpKind::MRd) };
            let cut = Cut { rcb: Rcb::B128, most: 128, odd_end_apart: false };
            let all: Vec<Tlp> = completions(&read, cut).collect();
            assert_eq!(all.len(), 1);
            (all[0].address, all[0].length_dw, all[0].enabled_bytes())
        };
        assert_eq!(returned(2, 0b1011, 0b0010), (0x1040, 2, 6));
        assert_eq!(returned(1, 0b1001, 0), (0x1040, 1, 4));
        assert_eq!(returned(1, 0b0110, 0), (0x1040, 1, 2));
        assert_eq!(returned(1, 0, 0), (0x1040, 1, 0), "a zero-length read");
    }

    #[test]
    fn four_dw_headers_start_at_4_gib() {
        assert_eq!(write(0xFFFF_FFFC, 4).header_dw(), 3);
        assert_eq!(write(0x1_0000_0000, 4).header_dw(), 4);
    }
}
