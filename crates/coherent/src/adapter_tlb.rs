//! The I/O TLB of an adapter: cached entries of the I/O page directory in memory.
//!
//! ```text
//!  address of a device:  | 0 ... 0 | chain ID | block ID | 12-bit page offset |
//!                                  TLB index    tag
//! ```
//!
//! The page number has k bits: the chain ID and the block ID. The directory has 2^k entries; address bits above them
//! are 0. Software thus selects the TLB entry by the address that it gives to a device.

use lanemark_dma::Attributes;
use lanemark_units::{HostPhys, Iova};
use std::fmt;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// Constants of the I/O TLB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Number of entries, a power of two.
    pub entries: u64,
    /// Bits of a chain ID: at most the binary logarithm of `entries`; if fewer, some entries are never used.
    pub chain_bits: u32,
    /// Bits of a block ID.
    pub block_bits: u32,
    /// Address of the page directory in memory.
    pub directory: HostPhys,
}

impl Spec {
    /// Returns the bits of a page number, k.
    #[must_use]
    pub const fn page_bits(&self) -> u32 {
        self.chain_bits + self.block_bits
    }

    /// Returns the size of the page directory in bytes: the size of an entry times 2^k.
    ///
    /// ```
    /// use lanemark_coherent::AdapterTlbSpec;
    /// # use lanemark_units::HostPhys;
    /// let spec = AdapterTlbSpec { entries: 256, chain_bits: 8, block_bits: 12, directory: HostPhys(0) };
    /// assert_eq!(spec.directory_bytes(), 8 << 20);
    /// ```
    #[must_use]
    pub const fn directory_bytes(&self) -> u64 {
        PageEntry::BYTES << self.page_bits()
    }

    /// Returns the address of the directory entry for `at`; `None` beyond the directory.
    #[must_use]
    pub const fn entry_at(&self, at: Iova) -> Option<HostPhys> {
        let page = at.0 / PAGE_BYTES;
        if page >> self.page_bits() == 0 { Some(HostPhys(self.directory.0 + page * PageEntry::BYTES)) } else { None }
    }

    /// Returns the TLB index of an address, its chain ID.
    #[must_use]
    pub const fn chain_id(&self, at: Iova) -> u64 {
        ((at.0 / PAGE_BYTES) >> self.block_bits) & ((1 << self.chain_bits) - 1)
    }

    /// Returns the tag of an address, its block ID.
    #[must_use]
    pub const fn block_id(&self, at: Iova) -> u64 {
        (at.0 / PAGE_BYTES) & ((1 << self.block_bits) - 1)
    }
}

/// An entry of the I/O page directory: the physical page, its virtual index in caches, and its attributes.
///
/// | bits | |
/// | --- | --- |
/// | 0 | valid |
/// | 1 | the adapter may prefetch |
/// | 2 | atomic |
/// | 3 | half-line writes are safe |
/// | 4, 5 | the device may read, may write |
/// | 12 to 39 | physical page number |
/// | 40 to 51 | virtual index |
///
/// The fields of an entry are published, their layout is not. Bits 4 and 5 are additions; without them, the
/// permission of a mapping would not be enforced.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct PageEntry(u64);

const VALID: u64 = 1;
const PREFETCH: u64 = 1 << 1;
const ATOMIC: u64 = 1 << 2;
const SAFE: u64 = 1 << 3;
const MAY_READ: u64 = 1 << 4;
const MAY_WRITE: u64 = 1 << 5;
const INDEX_AT: u32 = 40;

impl PageEntry {
    /// Size of an entry in memory, in bytes.
    pub const BYTES: u64 = 8;
    /// Width of a physical address.
    pub const PHYSICAL_BITS: u32 = 40;

    /// Creates a valid entry for the page at `physical` with the coherence index `index`. The page offsets of both
    /// are ignored.
    #[must_use]
    pub const fn new(physical: HostPhys, index: u64, attributes: Attributes) -> PageEntry {
        const fn when(is: bool, bit: u64) -> u64 {
            if is { bit } else { 0 }
        }
        PageEntry(
            VALID
                | when(attributes.may_prefetch(), PREFETCH)
                | when(attributes.is_atomic(), ATOMIC)
                | when(attributes.is_safe(), SAFE)
                | when(attributes.permission().reads(), MAY_READ)
                | when(attributes.permission().writes(), MAY_WRITE)
                | physical.0 & ((1 << PageEntry::PHYSICAL_BITS) - PAGE_BYTES)
                | ((index / PAGE_BYTES) & 0xfff) << INDEX_AT,
        )
    }

    /// Returns the entry as stored in memory.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// Decodes an entry from memory.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> PageEntry {
        PageEntry(u64::from_le_bytes(bytes))
    }

    const fn has(self, bit: u64) -> bool {
        self.0 & bit != 0
    }

    /// Returns whether the entry is valid.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.has(VALID)
    }

    /// Returns whether the adapter may prefetch ahead of the device.
    #[must_use]
    pub const fn may_prefetch(self) -> bool {
        self.has(PREFETCH)
    }

    /// Returns whether transfers to this page are atomic: they lock memory.
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        self.has(ATOMIC)
    }

    /// Returns whether half-line writes preserve the other half of a dirty line.
    #[must_use]
    pub const fn is_safe(self) -> bool {
        self.has(SAFE)
    }

    /// Returns whether the device may write, or read.
    #[must_use]
    pub const fn permits(self, is_write: bool) -> bool {
        self.has(if is_write { MAY_WRITE } else { MAY_READ })
    }

    /// Returns the physical address of the page.
    #[must_use]
    pub const fn physical(self) -> HostPhys {
        HostPhys(self.0 & ((1 << PageEntry::PHYSICAL_BITS) - PAGE_BYTES))
    }

    /// Returns the coherence index of the page.
    #[must_use]
    pub const fn index(self) -> u64 {
        (self.0 >> INDEX_AT & 0xfff) * PAGE_BYTES
    }
}

impl fmt::Debug for PageEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_valid() {
            return f.write_str("not valid");
        }
        let flag = |bit, name| if self.has(bit) { name } else { "" };
        let (prefetch, atomic) = (flag(PREFETCH, " prefetch"), flag(ATOMIC, " atomic"));
        let half = if self.is_safe() { "safe" } else { "fast" };
        write!(f, "{} index {:#x}{prefetch}{atomic} {half}", self.physical(), self.index())
    }
}

/// A command from software to the I/O TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlbCommand {
    /// Direct write: invalidates an entry, whatever page it translates.
    Invalidate {
        /// Index of the entry.
        chain_id: u64,
    },
    /// Purge: invalidates the entry that translates a page, if there is one.
    Purge {
        /// An address in the page.
        at: Iova,
    },
}

/// State of the I/O TLB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterTlb {
    spec: Spec,
    entries: Vec<Option<(u64, PageEntry)>>,
}

impl AdapterTlb {
    /// Creates an empty TLB.
    #[must_use]
    pub fn new(spec: Spec) -> AdapterTlb {
        let entries = vec![None; spec.entries as usize];
        AdapterTlb { spec, entries }
    }

    /// Returns the constants.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the cached translation of an address.
    #[must_use]
    pub fn find(&self, at: Iova) -> Option<PageEntry> {
        let (tag, entry) = (*self.entries.get(self.spec.chain_id(at) as usize)?)?;
        (tag == self.spec.block_id(at)).then_some(entry)
    }

    /// Inserts the translation of an address, replacing the entry at its index.
    pub fn insert(&mut self, at: Iova, entry: PageEntry) {
        let tag = self.spec.block_id(at);
        if let Some(place) = self.entries.get_mut(self.spec.chain_id(at) as usize) {
            *place = Some((tag, entry));
        }
    }

    /// Executes a command of software.
    pub fn command(&mut self, command: TlbCommand) {
        let chain_id = match command {
            TlbCommand::Invalidate { chain_id } => chain_id,
            TlbCommand::Purge { at } if self.find(at).is_some() => self.spec.chain_id(at),
            TlbCommand::Purge { .. } => return,
        };
        if let Some(place) = self.entries.get_mut(chain_id as usize) {
            *place = None;
        }
    }

    /// Returns the number of valid entries.
    #[must_use]
    pub fn valid(&self) -> usize {
        self.entries.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_dma::{Device, Hints, MapRequest, Permission};

    fn spec(chain_bits: u32, block_bits: u32) -> Spec {
        Spec { entries: 256, chain_bits, block_bits, directory: HostPhys(0x10_0000) }
    }

    fn entry(hints: Hints) -> PageEntry {
        let attributes = MapRequest::new(Device(0), Permission::Write).hints(hints).attributes();
        PageEntry::new(HostPhys(0xab_cdef_1234), 0x0065_4321, attributes)
    }

    #[test]
    fn the_upper_bits_of_a_page_number_are_the_index_and_the_lower_bits_the_tag() {
        let at = Iova(0xabcd_e123);
        assert_eq!((spec(8, 12).chain_id(at), spec(8, 12).block_id(at)), (0xab, 0xcde));
        assert_eq!((spec(4, 16).chain_id(at), spec(4, 16).block_id(at)), (0xa, 0xbcde));
        let small = Iova(0x0bcd_e123);
        assert_eq!((spec(8, 8).chain_id(small), spec(8, 8).block_id(small)), (0xbc, 0xde));
    }

    #[test]
    fn the_directory_has_an_entry_for_each_page_number_of_k_bits() {
        assert_eq!(spec(8, 8).directory_bytes(), 8 << 16);
        assert_eq!(spec(8, 8).entry_at(Iova(0x0fff_f000)), Some(HostPhys(0x10_0000 + 0xffff * 8)));
        assert_eq!(spec(8, 8).entry_at(Iova(0x1000_0000)), None);
    }

    #[test]
    fn an_entry_survives_encoding_and_decoding() {
        let there = PageEntry::from_bytes(entry(Hints::SAFE | Hints::NO_PREFETCH).to_bytes());
        assert_eq!((there.physical(), there.index()), (HostPhys(0xab_cdef_1000), 0x0065_4000));
        assert!(there.is_valid() && there.is_safe() && !there.may_prefetch() && !there.is_atomic());
        assert!(there.permits(true) && !there.permits(false));
        assert!(entry(Hints::ATOMIC).is_atomic() && entry(Hints::NONE).may_prefetch());
        assert!(!PageEntry::from_bytes([0; 8]).is_valid());
    }

    #[test]
    fn a_purge_invalidates_its_page_only_and_a_direct_write_any_page() {
        let (one, other) = (Iova(0x0100_0000), Iova(0x0100_1000));
        let mut tlb = AdapterTlb::new(spec(8, 12));
        tlb.insert(one, entry(Hints::NONE));
        assert!(tlb.find(one).is_some() && tlb.find(other).is_none());
        tlb.command(TlbCommand::Purge { at: other });
        assert_eq!(tlb.valid(), 1);
        tlb.command(TlbCommand::Invalidate { chain_id: 2 });
        assert_eq!(tlb.valid(), 1);
        tlb.command(TlbCommand::Purge { at: one });
        assert_eq!(tlb.valid(), 0);
        tlb.insert(other, entry(Hints::NONE));
        tlb.command(TlbCommand::Invalidate { chain_id: 1 });
        assert_eq!(tlb.valid(), 0);
    }
}
