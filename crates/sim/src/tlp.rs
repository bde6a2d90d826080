//! A TLP as the parts hand it on: small, copyable, its payload in the slab.

use lanemark_engine::Slot;
use lanemark_wire::{FlowClass, Mps, Ordered, Rcb, split};

/// What kind of TLP.
///
/// A word, so that it is what tells a [`Tlp`] from none: a byte would be copied apart from the bytes around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum TlpKind {
    /// A memory write, posted.
    MWr,
    /// A memory read, non-posted.
    MRd,
    /// A completion with data.
    CplD,
    /// A completion without data and with an error status.
    Cpl,
    /// An Invalidate Request, posted: [`Tlp::requester`] is whom it is for, and its data say which addresses.
    MsgD,
    /// An Invalidate Completion, posted.
    Msg,
}

impl TlpKind {
    /// Its class of flow control and ordering.
    #[inline]
    #[must_use]
    pub const fn class(self) -> FlowClass {
        CLASSES[self as usize]
    }
}

/// Tables, by kind: a match would be a jump that no processor foresees.
const CLASSES: [FlowClass; 6] = [
    FlowClass::Posted,
    FlowClass::NonPosted,
    FlowClass::Completion,
    FlowClass::Completion,
    FlowClass::Posted,
    FlowClass::Posted,
];
const PAYLOAD_BYTES_OF_DW: [u32; 6] = [4, 0, 4, 0, 4, 0];

/// AT: what kind of address a request has, and of what kind of request a completion is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum AddressType {
    /// As its requester was told it: somebody has yet to translate it.
    Untranslated,
    /// It is asked where it leads.
    TranslationRequest,
    /// As its requester was answered that.
    Translated,
}

/// What is wrong with a TLP, which it takes with it to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Flaw {
    /// Nothing. A [`TlpKind::Cpl`] says Unsupported Request.
    None,
    /// EP is set: its data are known to be bad.
    Poisoned,
    /// Its digest does not fit it.
    BadEcrc,
    /// Its completer refuses it: Unsupported Request.
    Unsupported,
    /// Its completer gives it up: Completer Abort.
    Abort,
    /// Its completer takes it and does not answer.
    Unanswered,
    /// Its page is unmapped when it comes to the IOMMU.
    Unmapped,
    /// Its page may only be read when it comes there.
    ReadOnly,
}

/// One transaction-layer packet.
///
/// Four words of 8 B without a hole, so that it is copied as such: a copy in pieces, read before the pieces it was
/// written in have reached memory, waits for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Tlp {
    /// Bus address of the first DW; for completions the address that was read.
    pub address: u64,
    /// DWs of payload, or DWs asked for.
    pub length_dw: u16,
    /// Which bytes of the first DW count.
    pub first_be: u8,
    /// Which bytes of the last DW count; 0 if there is only one.
    pub last_be: u8,
    /// Who asked: a core, a card, or somebody outside.
    pub requester: u16,
    /// Which of its requests.
    pub tag: u16,
    /// The payload, DW by DW from the first; [`Slot::NONE`] for reads.
    pub payload: Slot,
    /// Relaxed ordering.
    pub relaxed: bool,
    /// ID-based ordering.
    pub id_based: bool,
    /// What is wrong with it.
    pub flaw: Flaw,
    /// What kind of address it has.
    pub at: AddressType,
    /// What kind.
    pub kind: TlpKind,
}

/// Bytes of a DW that its byte enables leave out: a table, because not every processor of this kind counts bits.
const DISABLED: [u8; 16] = [4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0];

impl Tlp {
    /// One of this kind with nothing else in it.
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
            relaxed: false,
            id_based: false,
            flaw: Flaw::None,
            at: AddressType::Untranslated,
        }
    }

    /// What the rules of ordering ask of it.
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

    /// Whether it may pass some that others of its kind may not.
    #[inline]
    #[must_use]
    pub const fn is_free(&self) -> bool {
        self.relaxed || self.id_based
    }

    /// DWs of its header: memory requests from 4 GiB on and messages have 4, all others 3.
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

    /// Bytes of payload on the link.
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        self.length_dw as u32 * PAYLOAD_BYTES_OF_DW[self.kind as usize]
    }

    /// Which bytes count, as a mask over the DWs from the first; at most 16 DWs.
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

    /// Bytes that count.
    #[must_use]
    pub const fn enabled_bytes(&self) -> u32 {
        // Only the first and the last DW may be partial.
        let last = if self.length_dw > 1 { DISABLED[self.last_be as usize & 0xF] } else { 0 };
        self.length_dw as u32 * 4 - (DISABLED[self.first_be as usize & 0xF] + last) as u32
    }
}

/// How a completer cuts what it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// At multiples of this.
    pub rcb: Rcb,
    /// As much as so many bytes each; at every 64 B if it is that.
    pub most: u32,
    /// Whether what is behind the last RCB comes by itself.
    pub odd_end_apart: bool,
}

/// The completions that answer a read, without their payload.
pub fn completions(read: &Tlp, Cut { rcb, most, odd_end_apart }: Cut) -> impl Iterator<Item = Tlp> {
    let start = read.address + u64::from(read.first_be.trailing_zeros().min(3));
    let bytes = read.enabled_bytes();
    let chunks = match Mps::new(most) {
        Some(mps) if odd_end_apart => split::completions(start, bytes, rcb, mps).with_odd_end_apart(),
        Some(mps) => split::completions(start, bytes, rcb, mps),
        None => split::completions(start, bytes, Rcb::B64, Mps::ALL[0]).at_every_rcb(),
    };
    let (requester, tag, relaxed, id_based) = (read.requester, read.tag, read.relaxed, read.id_based);
    chunks.map(move |chunk| {
        let (address, length_dw, first_be, last_be) = span(chunk.address, u64::from(chunk.bytes));
        Tlp { address, length_dw, first_be, last_be, requester, tag, relaxed, id_based, ..Tlp::of(TlpKind::CplD) }
    })
}

/// Bus address of the first DW, Length and byte enables of `len` bytes at `address`.
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
    fn four_dw_headers_start_at_4_gib() {
        assert_eq!(write(0xFFFF_FFFC, 4).header_dw(), 3);
        assert_eq!(write(0x1_0000_0000, 4).header_dw(), 4);
    }
}
