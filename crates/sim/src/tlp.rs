//! A TLP as the parts hand it on: small, copyable, its payload in the slab.

use crate::engine::Slot;

/// What kind of TLP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlpKind {
    /// A memory write, posted.
    MWr,
    /// A memory read, non-posted.
    MRd,
    /// A completion with data.
    CplD,
    /// A completion without data and with an error status.
    Cpl,
}

/// One transaction-layer packet of at most 64 B of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tlp {
    /// What kind.
    pub kind: TlpKind,
    /// Bus address of the first DW; for completions the address that was read.
    pub address: u64,
    /// DWs of payload, or DWs asked for.
    pub length_dw: u16,
    /// Which bytes of the first DW count.
    pub first_be: u8,
    /// Which bytes of the last DW count; 0 if there is only one.
    pub last_be: u8,
    /// Who asked: the core.
    pub requester: u16,
    /// Which of its requests.
    pub tag: u16,
    /// The payload, DW by DW from the first; [`Slot::NONE`] for reads.
    pub payload: Slot,
}

impl Tlp {
    /// DWs of its header: memory requests from 4 GiB on have 4, all others 3.
    ///
    /// Source: PCI Express Base Specification, "TLP Header Size", 64-bit and 32-bit address formats.
    #[must_use]
    pub const fn header_dw(&self) -> u8 {
        match self.kind {
            TlpKind::MWr | TlpKind::MRd if self.address >= 1 << 32 => 4,
            _ => 3,
        }
    }

    /// Bytes of payload on the link.
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        match self.kind {
            TlpKind::MWr | TlpKind::CplD => self.length_dw as u32 * 4,
            TlpKind::MRd | TlpKind::Cpl => 0,
        }
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
        let last = if self.length_dw > 1 { 4 - self.last_be.count_ones() } else { 0 };
        self.length_dw as u32 * 4 - (4 - self.first_be.count_ones()) - last
    }
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
        Tlp { kind: TlpKind::MWr, address, length_dw, first_be, last_be, requester: 0, tag: 0, payload: Slot::NONE }
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
