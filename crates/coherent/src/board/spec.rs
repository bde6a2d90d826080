//! Constants of a coherent board.

use crate::adapter_tlb::{self, PAGE_BYTES, PageEntry};
use crate::bus::{self, MOST_LINE_BYTES};
use crate::processor_cache::{self, Indexed};
use crate::{bus::Line, io_adapter, processor};
use lanemark_units::{HostPhys, Ticks};

/// Constants of a coherent board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Number of processors, 1 to 4.
    pub processors: usize,
    /// Every processor.
    pub processor: processor::Spec,
    /// The processor bus.
    pub bus: bus::Spec,
    /// The I/O bus of the devices.
    pub io_bus: bus::Spec,
    /// The adapter between the two buses.
    pub adapter: io_adapter::Spec,
    /// From the end of a transaction until memory has supplied a line.
    pub memory_read: Ticks,
    /// From the end of a transaction until another cache has supplied a line.
    pub copy: Ticks,
}

/// A constant out of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a board with {what} of {wanted}: it must be {least} to {most}{}", if *is_power { ", a power of two" } else { "" })]
pub struct NoBoard {
    /// The quantity.
    pub what: &'static str,
    /// Its value.
    pub wanted: u64,
    /// Its least value.
    pub least: u64,
    /// Its largest value.
    pub most: u64,
    /// Whether it must be a power of two.
    pub is_power: bool,
}

impl Spec {
    /// The largest number of processors.
    pub const MOST_PROCESSORS: u64 = 4;
    /// The largest number of devices.
    pub const MOST_DEVICES: u64 = 256;

    /// Returns a machine with coherent I/O: two processors with virtually indexed caches and lines of 32 B, and two
    /// devices with transactions of up to 32 B. The adapter has 256 entries, with 8 bits of chain ID and 12 of block
    /// ID.
    /// Times are assumed, as none is published for such a machine. Caches have 256 KiB (assumed); processors do not
    /// prefetch.
    #[must_use]
    pub fn coherent() -> Spec {
        Spec {
            processors: 2,
            processor: processor::Spec {
                cache: processor_cache::Spec { size_bytes: 256 << 10, line_bytes: 32, indexed: Indexed::Virtually },
                hit: Ticks::whole_ns(10),
                prefetches: false,
            },
            bus: bus::Spec::runway_like(),
            io_bus: bus::Spec::hsc_like(),
            adapter: io_adapter::Spec {
                tlb: adapter_tlb::Spec { entries: 256, chain_bits: 8, block_bits: 12, directory: HostPhys(1 << 32) },
                line_bytes: 32,
                coherent: true,
                lookup: Ticks::whole_ns(10),
                modify: Ticks::whole_ns(10),
                devices: vec![32; 2],
            },
            memory_read: Ticks::whole_ns(150),
            copy: Ticks::whole_ns(50),
        }
    }

    /// Returns the same machine with a non-coherent adapter: software flushes and purges lines.
    #[must_use]
    pub fn not_coherent(cpu_prefetches: bool) -> Spec {
        let mut spec = Spec::coherent();
        spec.adapter.coherent = false;
        spec.processor.prefetches = cpu_prefetches;
        spec
    }

    /// Checks the range of every constant.
    pub(super) fn check(&self) -> Result<(), NoBoard> {
        let within = |what, wanted: u64, least, most| {
            let is_power = false;
            if (least..=most).contains(&wanted) { Ok(()) } else { Err(NoBoard { what, wanted, least, most, is_power }) }
        };
        let power = |what, wanted: u64, least, most| {
            let refused = NoBoard { what, wanted, least, most, is_power: true };
            if (least..=most).contains(&wanted) && wanted.is_power_of_two() { Ok(()) } else { Err(refused) }
        };
        let (cache, tlb) = (&self.processor.cache, &self.adapter.tlb);
        within("processors", self.processors as u64, 1, Spec::MOST_PROCESSORS)?;
        power("lines of bytes", self.adapter.line_bytes, 16, MOST_LINE_BYTES as u64)?;
        let line_bytes = self.adapter.line_bytes;
        within("lines of a cache of bytes", cache.line_bytes, line_bytes, line_bytes)?;
        power("a cache of bytes", cache.size_bytes, line_bytes, 1 << Line::INDEX_BITS)?;
        within("bytes a cycle of the bus", self.bus.cycle_bytes, 1, 1 << 16)?;
        within("bytes a cycle of the I/O bus", self.io_bus.cycle_bytes, 1, 1 << 16)?;
        power("TLB entries", tlb.entries, 1, 1 << 16)?;
        within("bits of a chain ID", tlb.chain_bits.into(), 0, tlb.entries.trailing_zeros().into())?;
        within("bits of a page's number", u64::from(tlb.chain_bits) + u64::from(tlb.block_bits), 1, 20)?;
        let last = (1 << PageEntry::PHYSICAL_BITS) - tlb.directory_bytes();
        within("a page directory at", tlb.directory.0, 0, last)?;
        within("bytes of the directory's address in a page", tlb.directory.0 % PAGE_BYTES, 0, 0)?;
        within("devices", self.adapter.devices.len() as u64, 1, Spec::MOST_DEVICES)?;
        for most_bytes in &self.adapter.devices {
            power("a device's transactions of bytes", *most_bytes, io_adapter::LEAST_BYTES, line_bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::CoherentBoard;

    fn refused(change: impl FnOnce(&mut Spec)) -> Option<String> {
        let mut spec = Spec::coherent();
        // A short directory keeps the construction of boards fast.
        spec.adapter.tlb.block_bits = 1;
        change(&mut spec);
        CoherentBoard::new(spec).err().map(|error| error.to_string())
    }

    #[test]
    fn constants_out_of_range_are_rejected_and_limits_are_accepted() {
        assert_eq!(refused(|spec| spec.processors = 1), None);
        assert_eq!(refused(|spec| spec.processors = 4), None);
        for processors in [0, 5] {
            let meant = format!("a board with processors of {processors}: it must be 1 to 4");
            assert_eq!(refused(|spec| spec.processors = processors), Some(meant));
        }
        let lines = |bytes| {
            refused(|spec| {
                spec.adapter.line_bytes = bytes;
                spec.processor.cache.line_bytes = bytes;
                spec.adapter.devices = vec![4];
            })
        };
        assert_eq!((lines(16), lines(128)), (None, None));
        assert!(lines(8).is_some() && lines(256).is_some() && lines(48).is_some());
        assert!(refused(|spec| spec.processor.cache.line_bytes = 64).is_some());
        assert_eq!(refused(|spec| spec.processor.cache.size_bytes = 16 << 20), None);
        assert!(refused(|spec| spec.processor.cache.size_bytes = 32 << 20).is_some());
        let bits =
            |chain, block| refused(|spec| (spec.adapter.tlb.chain_bits, spec.adapter.tlb.block_bits) = (chain, block));
        assert_eq!((bits(0, 1), bits(8, 0), bits(8, 12)), (None, None, None));
        assert!(bits(9, 1).is_some() && bits(0, 0).is_some() && bits(8, 13).is_some());
        let device = |bytes| refused(|spec| spec.adapter.devices = vec![bytes]);
        assert_eq!((device(4), device(32)), (None, None));
        assert!(device(2).is_some() && device(64).is_some() && device(12).is_some());
        assert!(refused(|spec| spec.adapter.devices.clear()).is_some());
        let directory = |at| refused(|spec| spec.adapter.tlb.directory = HostPhys(at));
        assert_eq!(directory((1 << 40) - 4096), None);
        assert!(directory(1 << 40).is_some() && directory(8).is_some());
    }
}
