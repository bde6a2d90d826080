//! Splitting of transfers into TLPs.
//!
//! Requests are split at `Max_Payload_Size` or `Max_Read_Request_Size` and at 4 KiB boundaries; completions at
//! multiples of the Read Completion Boundary. Limits apply to whole DWs: a write of 256 B that starts inside a DW needs
//! 65 DW and exceeds an MPS of 256 B.
//!
//! All functions split as late as the specification permits. Real requesters and completers may split earlier; for
//! requesters, [`Chunks::within`] adds a smaller boundary.

use crate::byte_enable::contiguous;
use std::fmt;
use std::iter::FusedIterator;

const PAGE: u64 = 4096;

macro_rules! size_setting {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(u16);

        impl $name {
            /// Every size, by its code in Device Control.
            pub const ALL: [$name; 6] = [$name(128), $name(256), $name(512), $name(1024), $name(2048), $name(4096)];

            /// The size `bytes`; `None` unless it is a power of two from 128 to 4096.
            #[must_use]
            pub const fn new(bytes: u32) -> Option<$name> {
                if bytes.is_power_of_two() && bytes >= 128 && bytes <= 4096 { Some($name(bytes as u16)) } else { None }
            }

            /// The size with code 0 to 5 in Device Control.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<$name> {
                if code < 6 { Some($name(128 << code)) } else { None }
            }

            /// Size in bytes.
            #[inline]
            #[must_use]
            pub const fn bytes(self) -> u32 {
                self.0 as u32
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} B", self.0)
            }
        }
    };
}

size_setting! {
    /// `Max_Payload_Size`: maximum data in one TLP, 128 to 4096 B.
    ///
    /// Source: PCI Express Base Specification 5.0, section 7.5.3.4 (Device Control).
    ///
    /// ```
    /// use lanemark_wire::Mps;
    /// assert_eq!(Mps::new(256).unwrap().bytes(), 256);
    /// assert_eq!(Mps::new(64), None);
    /// ```
    Mps
}

size_setting! {
    /// `Max_Read_Request_Size`: maximum data requested by one `MRd`, 128 to 4096 B.
    ///
    /// Source: PCI Express Base Specification 5.0, section 7.5.3.4 (Device Control).
    ///
    /// ```
    /// use lanemark_wire::Mrrs;
    /// assert_eq!(Mrrs::new(512).unwrap().to_string(), "512 B");
    /// assert_eq!(Mrrs::new(8192), None);
    /// ```
    Mrrs
}

/// Read Completion Boundary: the boundary at which a completer may split the data of a read, 64 or 128 B.
///
/// A root complex reports its RCB in Link Control; all other completers use 128 B.
///
/// Source: PCI Express Base Specification 5.0, section 2.3.1.1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rcb(u16);

impl Rcb {
    /// 64 B.
    pub const B64: Rcb = Rcb(64);
    /// 128 B.
    pub const B128: Rcb = Rcb(128);

    /// The boundary `bytes`; `None` unless it is 64 or 128.
    #[must_use]
    pub const fn new(bytes: u32) -> Option<Rcb> {
        match bytes {
            64 => Some(Rcb::B64),
            128 => Some(Rcb::B128),
            _ => None,
        }
    }

    /// Boundary in bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.0 as u32
    }
}

/// The part of a transfer covered by one request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Chunk {
    /// First byte.
    pub address: u64,
    /// Length in bytes, at least 1.
    pub bytes: u32,
}

/// The `MWr` requests that write `bytes` from `address`; none for 0 bytes.
///
/// ```
/// use lanemark_wire::{Mps, split};
/// let sizes: Vec<u32> = split::writes(0x1002, 600, Mps::new(256).unwrap()).map(|chunk| chunk.bytes).collect();
/// assert_eq!(sizes, [254, 256, 90]);
/// ```
#[must_use]
pub const fn writes(address: u64, bytes: u64, mps: Mps) -> Chunks {
    Chunks { address, remaining: bytes, most: mps.bytes() as u64, boundary: PAGE }
}

/// The `MRd` requests that read `bytes` from `address`; none for 0 bytes.
///
/// ```
/// use lanemark_wire::{Mrrs, split};
/// let reads: Vec<u64> = split::reads(0x1f80, 512, Mrrs::new(512).unwrap()).map(|chunk| chunk.address).collect();
/// assert_eq!(reads, [0x1f80, 0x2000]);
/// ```
#[must_use]
pub const fn reads(address: u64, bytes: u64, mrrs: Mrrs) -> Chunks {
    Chunks { address, remaining: bytes, most: mrrs.bytes() as u64, boundary: PAGE }
}

/// The requests of a requester with its own limit of `most` bytes, at least a DW, independent of MPS and MRRS.
///
/// ```
/// use lanemark_wire::split;
/// assert_eq!(split::requests(0x1002, 20, 8).map(|chunk| chunk.bytes).collect::<Vec<_>>(), [6, 8, 6]);
/// ```
#[must_use]
pub const fn requests(address: u64, bytes: u64, most: u32) -> Chunks {
    Chunks { address, remaining: bytes, most: if most < 4 { 4 } else { most as u64 }, boundary: PAGE }
}

/// Iterator of [`writes`], [`reads`] and [`requests`]. A transfer beyond the top of the address space wraps to 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    address: u64,
    remaining: u64,
    most: u64,
    /// A power of two, at most a page.
    boundary: u64,
}

impl Chunks {
    /// Splits the requests also at multiples of `boundary` bytes, which is rounded up to a power of two, and limited to 4 to
    /// 4096.
    ///
    /// ```
    /// use lanemark_wire::split;
    /// let lines = split::requests(96, 96, 4096).within(128);
    /// assert_eq!(lines.map(|chunk| (chunk.address, chunk.bytes)).collect::<Vec<_>>(), [(96, 32), (128, 64)]);
    /// ```
    #[must_use]
    pub const fn within(mut self, boundary: u32) -> Chunks {
        let boundary = if boundary < 4 { 4 } else { boundary as u64 };
        self.boundary = if boundary < PAGE { boundary.next_power_of_two() } else { PAGE };
        self
    }

    /// Address and number of the remaining bytes.
    #[must_use]
    pub const fn rest(&self) -> (u64, u64) {
        (self.address, self.remaining)
    }

    /// Starts another transfer with the same limits.
    pub const fn begin(&mut self, address: u64, bytes: u64) {
        (self.address, self.remaining) = (address, bytes);
    }
}

impl Iterator for Chunks {
    type Item = Chunk;

    #[inline]
    fn next(&mut self) -> Option<Chunk> {
        if self.remaining == 0 {
            return None;
        }
        let address = self.address;
        let by_size = self.most - (address & 3);
        let by_boundary = self.boundary - (address & (self.boundary - 1));
        let bytes = by_size.min(by_boundary).min(self.remaining);
        self.address = address.wrapping_add(bytes);
        self.remaining -= bytes;
        Some(Chunk { address, bytes: bytes as u32 })
    }
}

impl FusedIterator for Chunks {}

/// The part of a read covered by one completion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompletionChunk {
    /// First byte.
    pub address: u64,
    /// Data bytes; 0 only for a zero-length read.
    pub bytes: u16,
    /// Byte Count: remaining bytes, this completion included; 1 for a zero-length read.
    pub byte_count: u16,
    /// Lower Address: `address` modulo 128.
    pub lower_address: u8,
    /// Length in DW.
    pub length: u16,
}

/// The `CplD` completions of a read of `bytes` from `address`: at most 4096 B, within 4 KiB.
///
/// Each carries as much as `mps` allows and, except the last, ends at a multiple of `rcb`, so the first one is shorter
/// if the read does not start at such a multiple. A zero-length read has one completion of one DW.
///
/// Source: PCI Express Base Specification 5.0, section 2.3.1.1.
///
/// ```
/// use lanemark_wire::{Mps, Rcb, split};
/// let sizes: Vec<u16> = split::completions(0x1010, 512, Rcb::B64, Mps::new(256).unwrap())
///     .map(|chunk| chunk.bytes)
///     .collect();
/// assert_eq!(sizes, [240, 256, 16]);
/// ```
///
/// # Panics
/// If the read exceeds 4096 B or crosses a 4 KiB boundary.
#[must_use]
pub const fn completions(address: u64, bytes: u32, rcb: Rcb, mps: Mps) -> Completions {
    assert!((address & (PAGE - 1)) + bytes as u64 <= PAGE, "a read must not exceed 4096 B or go across 4 KiB");
    Completions {
        address,
        remaining: bytes as u16,
        rcb: rcb.0,
        most: mps.0,
        at_every_rcb: false,
        odd_end_apart: false,
        zero_length: bytes == 0,
    }
}

/// Iterator of [`completions`].
#[derive(Clone, Debug)]
pub struct Completions {
    address: u64,
    remaining: u16,
    rcb: u16,
    most: u16,
    at_every_rcb: bool,
    odd_end_apart: bool,
    zero_length: bool,
}

impl Completions {
    /// Models a completer that sends the data after the last RCB in a separate completion, even if it would fit.
    ///
    /// ```
    /// use lanemark_wire::{Mps, Rcb, split};
    /// let cut = split::completions(0x1010, 128, Rcb::B64, Mps::new(256).unwrap()).with_odd_end_apart();
    /// assert_eq!(cut.map(|chunk| chunk.bytes).collect::<Vec<_>>(), [112, 16]);
    /// ```
    #[must_use]
    pub const fn with_odd_end_apart(self) -> Completions {
        Completions { odd_end_apart: true, ..self }
    }

    /// Models a completer that splits at every RCB, independent of MPS.
    ///
    /// ```
    /// use lanemark_wire::{Mps, Rcb, split};
    /// let cut = split::completions(0x1010, 128, Rcb::B64, Mps::new(256).unwrap()).at_every_rcb();
    /// assert_eq!(cut.map(|chunk| chunk.bytes).collect::<Vec<_>>(), [48, 64, 16]);
    /// ```
    #[must_use]
    pub const fn at_every_rcb(self) -> Completions {
        Completions { at_every_rcb: true, ..self }
    }
}

impl Iterator for Completions {
    type Item = CompletionChunk;

    #[inline]
    fn next(&mut self) -> Option<CompletionChunk> {
        let (address, byte_count) = (self.address, self.remaining);
        let lower_address = address as u8 & 0x7f;
        if byte_count == 0 {
            let chunk =
                CompletionChunk { address, bytes: 0, byte_count: 1, lower_address: lower_address & !3, length: 1 };
            return std::mem::take(&mut self.zero_length).then_some(chunk);
        }
        let offset = address as u16 & (self.rcb - 1);
        let bytes = if self.at_every_rcb {
            byte_count.min(self.rcb - offset)
        } else if (address as u16 & 3) + byte_count <= self.most {
            // A read does not cross 4 KiB, so the offset in the page determines its end.
            let odd = ((address & (PAGE - 1)) as u16 + byte_count) & (self.rcb - 1);
            if self.odd_end_apart && odd < byte_count { byte_count - odd } else { byte_count }
        } else {
            // MPS is a multiple of RCB, so this ends at a boundary.
            self.most - offset
        };
        self.address = address.wrapping_add(u64::from(bytes));
        self.remaining -= bytes;
        let length = contiguous(address, u32::from(bytes)).2;
        Some(CompletionChunk { address, bytes, byte_count, lower_address, length })
    }
}

impl FusedIterator for Completions {}

#[cfg(test)]
mod tests {
    use super::*;

    fn mps(bytes: u32) -> Mps {
        Mps::new(bytes).unwrap()
    }

    #[test]
    fn sizes_are_powers_of_two_from_128_to_4096() {
        let accepted: Vec<u32> = (0..=8192).filter(|bytes| Mps::new(*bytes).is_some()).collect();
        assert_eq!(accepted, [128, 256, 512, 1024, 2048, 4096]);
        assert_eq!(Mps::ALL.map(Mps::bytes).as_slice(), accepted);
        assert_eq!(Mrrs::ALL.map(Mrrs::bytes).as_slice(), accepted);
        for code in 0..8 {
            assert_eq!(Mps::from_code(code), Mps::ALL.get(usize::from(code)).copied());
        }
        assert_eq!((0..=256).filter(|bytes| Rcb::new(*bytes).is_some()).collect::<Vec<_>>(), [64, 128]);
    }

    #[test]
    fn an_aligned_write_takes_its_length_divided_by_mps() {
        assert_eq!(writes(0x1000, 4096, mps(256)).count(), 16);
        assert_eq!(writes(0x1000, 4097, mps(256)).count(), 17);
        assert_eq!(writes(0x1000, 0, mps(256)).count(), 0);
    }

    #[test]
    fn a_write_that_starts_inside_a_dw_needs_one_more_tlp() {
        let sizes = |address| writes(address, 256, mps(256)).map(|chunk| chunk.bytes).collect::<Vec<_>>();
        assert_eq!(sizes(0x1004), [256]);
        assert_eq!(sizes(0x1001), [255, 1]);
    }

    #[test]
    fn requests_are_split_at_page_boundaries() {
        let chunks: Vec<Chunk> = reads(0x1ffe, 4096, Mrrs::new(4096).unwrap()).collect();
        assert_eq!(chunks, [Chunk { address: 0x1ffe, bytes: 2 }, Chunk { address: 0x2000, bytes: 4094 }]);
    }

    #[test]
    fn a_transfer_beyond_the_top_of_the_address_space_wraps() {
        assert_eq!(writes(u64::MAX - 3, 8, mps(128)).map(|chunk| chunk.bytes).collect::<Vec<_>>(), [4, 4]);
    }

    /// The example of section 2.3.1.1: a read that crosses no boundary has one completion.
    #[test]
    fn a_read_within_one_rcb_has_one_completion() {
        for (address, bytes) in [(0x1000, 64), (0x103f, 1), (0x1001, 63)] {
            assert_eq!(completions(address, bytes, Rcb::B64, mps(128)).at_every_rcb().count(), 1);
        }
        assert_eq!(completions(0x103f, 2, Rcb::B64, mps(128)).at_every_rcb().count(), 2);
    }

    #[test]
    fn only_data_after_the_last_rcb_are_sent_separately() {
        let cut = |address, bytes, rcb| -> Vec<u16> {
            completions(address, bytes, rcb, mps(256)).with_odd_end_apart().map(|chunk| chunk.bytes).collect()
        };
        assert_eq!((cut(0, 256, Rcb::B64), cut(0, 255, Rcb::B64)), (vec![256], vec![192, 63]));
        assert_eq!(
            (cut(0, 65, Rcb::B64), cut(0, 64, Rcb::B64), cut(0, 63, Rcb::B64)),
            (vec![64, 1], vec![64], vec![63])
        );
        assert_eq!((cut(60, 4, Rcb::B64), cut(60, 5, Rcb::B64)), (vec![4], vec![4, 1]));
        assert_eq!((cut(0, 192, Rcb::B64), cut(0, 192, Rcb::B128)), (vec![192], vec![128, 64]));
        assert_eq!(cut(4000, 96, Rcb::B128), [96], "up to the end of a page");
        assert_eq!(cut(0, 600, Rcb::B64), [256, 256, 64, 24]);
    }

    #[test]
    fn byte_count_decreases_with_each_completion() {
        let parts: Vec<_> = completions(0x1044, 300, Rcb::B64, mps(128)).collect();
        let shown: Vec<_> = parts.iter().map(|c| (c.lower_address, c.bytes, c.byte_count, c.length)).collect();
        assert_eq!(shown, [(0x44, 124, 300, 31), (0x40, 128, 176, 32), (0x40, 48, 48, 12)]);
    }

    #[test]
    fn a_zero_length_read_has_one_completion_of_one_dw() {
        let parts: Vec<_> = completions(0x1044, 0, Rcb::B128, mps(128)).collect();
        let one = CompletionChunk { address: 0x1044, bytes: 0, byte_count: 1, lower_address: 0x44, length: 1 };
        assert_eq!(parts, [one]);
    }

    #[test]
    #[should_panic(expected = "across 4 KiB")]
    fn a_read_across_4_kib_panics() {
        let _ = completions(0x1ffc, 5, Rcb::B64, mps(128));
    }

    #[test]
    fn a_read_up_to_a_4_kib_boundary_is_accepted() {
        assert_eq!(completions(0x1ffc, 4, Rcb::B64, mps(128)).count(), 1);
        assert_eq!(completions(0x1000, 4096, Rcb::B128, mps(4096)).count(), 1);
    }
}
