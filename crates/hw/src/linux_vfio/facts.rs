//! Facts of a device behind VFIO.

use super::{AddressSpace, PeerRange};
use crate::linux_sysfs::Address;
use crate::x86::cpu::Cpu;
use crate::x86::pin::usable_cores;
use lanemark_machine::{Facts, MapUnmap, Region, RegionKind, Table, TimeBase};
use lanemark_units::{BarOffset, MemoryType, format_size};

/// Most host memory that is mapped for an engine: more pages than an IOTLB holds.
pub(super) const MAPPED: u64 = 64 << 20;

/// Longest window of transfers in host memory of `len` bytes, of which queues, lists and the transfer that is verified take up to
/// `more`. Without an IOMMU, the memory may be shorter than that: then the window is half of it.
pub(super) const fn mapped_of(len: u64, more: u64) -> u64 {
    let half = len / 2;
    if len.saturating_sub(more) > half { len.saturating_sub(more) } else { half }
}

/// Adds another device with memory for transfers.
pub(super) fn with_peer(facts: &mut Facts, peer: PeerRange) {
    let PeerRange { range, .. } = peer;
    if let Some(dma) = &mut facts.dma {
        dma.cards = 2;
        dma.peer = Some((BarOffset { bar: range.bar, offset: range.from }, range.len()));
    }
    facts.summary = format!("transfers to and from {peer}; {}", facts.summary);
}

/// The facts of an open device without ranges and without an engine.
pub(super) fn facts(address_space: &AddressSpace, cpu: &Cpu, cpus: usize, is_emulated: bool) -> Facts {
    let facts = facts_without_device(address_space.device().address(), cpu, cpus, is_emulated);
    let tables = if address_space.interface().is_translated() { facts.tables } else { vec![] };
    Facts { summary: format!("{}; {}", pages(address_space), cpu.brand), tables, ..facts }
}

/// The interface and the page sizes of the IOMMU, in words.
pub(super) fn pages(address_space: &AddressSpace) -> String {
    let (by, properties) = (address_space.interface().in_words(), address_space.properties());
    if !address_space.interface().is_translated() {
        return format!("{by}: DMA by physical addresses, which nothing checks");
    }
    match properties.page_sizes {
        Some(bits) => format!("{by}, pages of {}", page_sizes(bits)),
        None => format!("{by}, mappings in multiples of {}", format_size(properties.granule)),
    }
}

/// Page sizes in words, from one bit each.
fn page_sizes(bits: u64) -> String {
    let smallest = 1 << bits.trailing_zeros().min(63);
    // An IOMMU of a hypervisor has no page table, and takes mappings of any size.
    if bits.leading_zeros() == 0 && bits == u64::MAX - (smallest - 1) {
        return format!("{} and every larger power of two", format_size(smallest));
    }
    let pages = (0..64).filter(|bit| bits & (1 << bit) != 0).map(|bit| format_size(1 << bit));
    pages.collect::<Vec<_>>().join(", ")
}

/// The facts that hold before the device is opened.
pub(super) fn facts_without_device(device: Address, cpu: &Cpu, cpus: usize, is_emulated: bool) -> Facts {
    Facts {
        name: device.to_string(),
        summary: format!("VFIO; {}", cpu.brand),
        time_base: if is_emulated { TimeBase::Emulated } else { TimeBase::Real },
        cores: usable_cores(cpus),
        regions: vec![Region {
            name: "memory".to_owned(),
            at: BarOffset { bar: 0, offset: 0 },
            len: MapUnmap::MOST_BYTES,
            kind: RegionKind::Storage,
        }],
        memory_types: vec![MemoryType::Wb],
        stores: vec![],
        loads: vec![],
        memcpy: String::new(),
        dma: None,
        driver_width: None,
        tables: vec![Table::Iommu],
        disciplines: vec![],
        line_sources: vec![],
        runtime: None,
    }
}

#[cfg(test)]
mod tests {
    use super::page_sizes;

    #[test]
    fn page_sizes_are_listed_unless_every_larger_one_is_there() {
        assert_eq!(page_sizes(0x4020_1000), "4KiB, 2MiB, 1GiB");
        assert_eq!(page_sizes(!0xfff), "4KiB and every larger power of two");
        assert_eq!(page_sizes(!0x1fff & !(1 << 20)).split(", ").count(), 50, "one size is missing");
    }
}
