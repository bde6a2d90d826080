//! Payloads and messages of Address Translation Services (ATS): translations and invalidations.
//!
//! Both payloads are 8 B, big endian like headers. Bits 63:12 are an address; if S (bit 11) is set, the low bits of the
//! address encode the size of the range.
//!
//! Source: PCI Express Base Specification 5.0, sections 10.2.3 (Translation Completions) and 10.3 (invalidation).

use crate::{CommonFields, FunctionId, Message, Routing};

/// Size of a payload in bytes.
pub const ENTRY_BYTES: u32 = 8;
/// Size of a payload in DW: the Length of a request for one translation.
pub const ENTRY_DW: u16 = 2;

const SMALLEST_BITS: u32 = 12;
const S: u64 = 1 << 11;
const W: u64 = 1 << 1;
const R: u64 = 1;

const INVALIDATE_REQUEST: u8 = 0x01;
const INVALIDATE_COMPLETION: u8 = 0x02;

/// A naturally aligned range of a power of two of addresses, at least 4 KiB.
///
/// ```
/// use lanemark_wire::ats::AddressRange;
/// let two_mib = AddressRange::new(0x1_2340_0000, 21);
/// assert_eq!(two_mib.to_bytes(), [0, 0, 0, 1, 0x23, 0x4f, 0xf8, 0]);
/// assert_eq!(AddressRange::from_bytes(two_mib.to_bytes()), two_mib);
/// assert!(two_mib.contains(0x1_235f_ffff) && !two_mib.contains(0x1_2360_0000));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddressRange {
    start: u64,
    bits: u32,
}

impl AddressRange {
    /// All addresses.
    pub const ALL: AddressRange = AddressRange { start: 0, bits: 64 };

    /// The addresses that equal `address` except in the lowest `bits` bits; `bits` is clamped to 12 to 64.
    #[must_use]
    pub const fn new(address: u64, bits: u32) -> AddressRange {
        let bits = if bits < SMALLEST_BITS { SMALLEST_BITS } else { bits };
        if bits >= 64 { AddressRange::ALL } else { AddressRange { start: address >> bits << bits, bits } }
    }

    /// First address.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// Whether `address` is in the range.
    #[must_use]
    pub const fn contains(&self, address: u64) -> bool {
        self.bits >= 64 || address >> self.bits == self.start >> self.bits
    }

    /// Bits 63:11. Above 4 KiB, the bits from 12 on encode the size: a run of ones, then a zero.
    const fn word(self) -> u64 {
        match self.bits {
            SMALLEST_BITS => self.start,
            bits => self.start | S | ((1 << (bits - 1)) - 1) >> SMALLEST_BITS << SMALLEST_BITS,
        }
    }

    const fn of_word(word: u64) -> AddressRange {
        let ones = (word >> SMALLEST_BITS).trailing_ones();
        AddressRange::new(word, if word & S == 0 { SMALLEST_BITS } else { SMALLEST_BITS + 1 + ones })
    }

    /// The payload of an Invalidate Request for this range.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        self.word().to_be_bytes()
    }

    /// Decodes the payload of an Invalidate Request.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> AddressRange {
        AddressRange::of_word(u64::from_be_bytes(bytes))
    }
}

/// Payload of a Translation Completion: the translated range and its permissions.
///
/// ```
/// use lanemark_wire::ats::{AddressRange, TranslationEntry};
/// let entry = TranslationEntry { leads_to: AddressRange::new(0x7000, 12), reads: true, writes: false };
/// assert_eq!(entry.to_bytes(), [0, 0, 0, 0, 0, 0, 0x70, 1]);
/// assert_eq!(TranslationEntry::from_bytes(entry.to_bytes()), entry);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TranslationEntry {
    /// The translated range.
    pub leads_to: AddressRange,
    /// R: reads are permitted.
    pub reads: bool,
    /// W: writes are permitted.
    pub writes: bool,
}

impl TranslationEntry {
    /// A translation without permissions: the page is not accessible.
    pub const NONE: TranslationEntry =
        TranslationEntry { leads_to: AddressRange::new(0, SMALLEST_BITS), reads: false, writes: false };

    /// Encodes the payload.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        let permission = if self.writes { W } else { 0 } | if self.reads { R } else { 0 };
        (self.leads_to.word() | permission).to_be_bytes()
    }

    /// Decodes the payload.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> TranslationEntry {
        let word = u64::from_be_bytes(bytes);
        TranslationEntry { leads_to: AddressRange::of_word(word), reads: word & R != 0, writes: word & W != 0 }
    }
}

/// An Invalidate Request to function `to`; its payload is an [`AddressRange`]. `itag` (0 to 31) identifies the request.
#[must_use]
pub const fn invalidate_request(common: CommonFields, from: FunctionId, to: FunctionId, itag: u8) -> Message {
    let [high, low] = to.0.to_be_bytes();
    Message {
        common,
        routing: Routing::ById,
        requester_id: from,
        tag: itag as u16 & 31,
        code: INVALIDATE_REQUEST,
        code_specific: [high, low, 0, 0, 0, 0, 0, 0],
        length: ENTRY_DW,
    }
}

/// The only Invalidate Completion (CC = 1) for the request with this `itag`.
#[must_use]
pub const fn invalidate_completion(common: CommonFields, from: FunctionId, to: FunctionId, itag: u8) -> Message {
    let [high, low] = to.0.to_be_bytes();
    let [a, b, c, d] = (1_u32 << (itag & 31)).to_be_bytes();
    Message {
        common,
        routing: Routing::ById,
        requester_id: from,
        tag: 0,
        code: INVALIDATE_COMPLETION,
        code_specific: [high, low, 0, 1, a, b, c, d],
        length: 0,
    }
}

/// The name and destination of an invalidation message; `None` for any other message.
#[must_use]
pub fn what(message: &Message) -> Option<(&'static str, FunctionId)> {
    let [high, low, ..] = message.code_specific;
    let name = match message.code {
        INVALIDATE_REQUEST => "Invalidate Request",
        INVALIDATE_COMPLETION => "Invalidate Completion",
        _ => return None,
    };
    (message.routing == Routing::ById).then_some((name, FunctionId(u16::from_be_bytes([high, low]))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;

    #[test]
    fn the_size_of_a_range_is_encoded_as_ones_and_a_zero() {
        for (bits, word) in [
            (12, 0xabcd_e000_0000_0000_u64),
            (13, 0xabcd_e000_0000_0800),
            (14, 0xabcd_e000_0000_1800),
            (30, 0xabcd_e000_1fff_f800),
            (40, 0xabcd_e07f_ffff_f800),
        ] {
            let range = AddressRange::new(0xabcd_e000_0000_0000, bits);
            assert_eq!(range.to_bytes(), word.to_be_bytes(), "{bits} bits");
            assert_eq!(AddressRange::from_bytes(word.to_be_bytes()), range);
            let last = 0xabcd_e000_0000_0000 + ((1 << bits) - 1);
            assert!(range.contains(last) && !range.contains(last + 1) && !range.contains(range.start() - 1));
        }
        let all = 0x7fff_ffff_ffff_f800_u64;
        assert_eq!(AddressRange::ALL.to_bytes(), all.to_be_bytes());
        assert_eq!(AddressRange::from_bytes(all.to_be_bytes()), AddressRange::ALL);
        assert!(AddressRange::ALL.contains(0) && AddressRange::ALL.contains(u64::MAX));
    }

    #[test]
    fn a_translation_entry_round_trips_with_every_permission() {
        for (reads, writes) in [(false, false), (false, true), (true, false), (true, true)] {
            for bits in [12, 21, 30] {
                let entry = TranslationEntry { leads_to: AddressRange::new(0xabc_4000_0000, bits), reads, writes };
                assert_eq!(TranslationEntry::from_bytes(entry.to_bytes()), entry);
            }
        }
        assert_eq!(TranslationEntry::NONE.to_bytes(), [0; 8]);
    }

    #[test]
    fn invalidation_messages_have_the_bytes_of_the_specification() {
        let (root, card) = (FunctionId(0x00ff), FunctionId(0x0100));
        let bytes = |message| {
            let mut bytes = [0; 16];
            assert_eq!(Header::Message(message).emit(&mut bytes), Ok(16));
            bytes
        };
        let request = invalidate_request(CommonFields::default(), root, card, 5);
        assert_eq!(bytes(request), [0x72, 0, 0, 2, 0, 0xff, 5, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
        let completion = invalidate_completion(CommonFields::default(), card, root, 5);
        assert_eq!(bytes(completion), [0x32, 0, 0, 0, 1, 0, 0, 2, 0, 0xff, 0, 1, 0, 0, 0, 32]);
    }
}
