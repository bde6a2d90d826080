//! Regions of a device file: BARs and configuration space.

use super::capability::{chain, long, word};
use vfio_bindings::bindings::vfio::{
    VFIO_REGION_INFO_CAP_SPARSE_MMAP, VFIO_REGION_INFO_FLAG_CAPS, VFIO_REGION_INFO_FLAG_MMAP,
    VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE, vfio_region_info,
};

/// A region of a device file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VfioRegion {
    /// Offset in the device file.
    pub start: u64,
    /// Length in bytes; 0 if the device has no such region.
    pub len: u64,
    /// Whether it can be read.
    pub may_read: bool,
    /// Whether it can be written.
    pub may_write: bool,
    /// Parts that can be mapped, by first byte and length; all others are read and written by system calls.
    pub mappable: Vec<(u64, u64)>,
}

impl VfioRegion {
    /// The region of the kernel's answer, whose capabilities are in `bytes`.
    pub(super) fn of(info: &vfio_region_info, bytes: &[u8]) -> VfioRegion {
        let has = |flag: u32| info.flags & flag != 0;
        let sparse = if has(VFIO_REGION_INFO_FLAG_CAPS) { areas(bytes, info.cap_offset) } else { None };
        let mappable = match sparse {
            _ if !has(VFIO_REGION_INFO_FLAG_MMAP) || info.size == 0 => Vec::new(),
            Some(areas) => areas,
            None => vec![(0, info.size)],
        };
        VfioRegion {
            start: info.offset,
            len: info.size,
            may_read: has(VFIO_REGION_INFO_FLAG_READ),
            may_write: has(VFIO_REGION_INFO_FLAG_WRITE),
            mappable,
        }
    }

    /// Whether the pages of these bytes can be mapped.
    #[must_use]
    pub fn is_mappable(&self, from: u64, to: u64) -> bool {
        self.mappable.iter().any(|(first, len)| *first <= from && to <= first.saturating_add(*len))
    }
}

/// The parts that can be mapped, of a region with such a list.
fn areas(bytes: &[u8], start: u32) -> Option<Vec<(u64, u64)>> {
    let (_, at) = chain(bytes, start).into_iter().find(|(id, _)| *id == VFIO_REGION_INFO_CAP_SPARSE_MMAP)?;
    let count = word(bytes, at + 8)? as usize;
    let area = |nth: usize| Some((long(bytes, at + 16 + 16 * nth)?, long(bytes, at + 24 + 16 * nth)?));
    Some((0..count).map_while(area).filter(|(_, len)| *len > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPED: u32 = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE | VFIO_REGION_INFO_FLAG_MMAP;

    fn info(flags: u32) -> vfio_region_info {
        vfio_region_info { argsz: 0, flags, index: 0, cap_offset: 32, size: 0x4000, offset: 1 << 40 }
    }

    /// An answer with a list of two parts around the page at 0x2000, which has the MSI-X table.
    fn answer() -> Vec<u8> {
        let mut bytes = vec![0; 32];
        bytes.extend([1_u16.to_ne_bytes(), 1_u16.to_ne_bytes()].concat());
        bytes.extend([0_u32, 2, 0].map(u32::to_ne_bytes).concat());
        bytes.extend([0_u64, 0x2000, 0x3000, 0x1000].map(u64::to_ne_bytes).concat());
        bytes
    }

    #[test]
    fn without_a_list_the_whole_region_is_mappable_or_nothing_of_it() {
        let whole = VfioRegion::of(&info(MAPPED), &answer());
        assert!(whole.is_mappable(0, 0x4000) && !whole.is_mappable(0, 0x4001));
        let none = VfioRegion::of(&info(MAPPED & !VFIO_REGION_INFO_FLAG_MMAP), &answer());
        assert!(none.mappable.is_empty() && none.may_read && none.may_write);
    }

    #[test]
    fn only_the_parts_of_a_list_are_mappable() {
        let region = VfioRegion::of(&info(MAPPED | VFIO_REGION_INFO_FLAG_CAPS), &answer());
        assert_eq!(region.mappable, [(0, 0x2000), (0x3000, 0x1000)]);
        assert!(region.is_mappable(0x1000, 0x2000) && region.is_mappable(0x3000, 0x4000));
        assert!(!region.is_mappable(0x1fff, 0x2001) && !region.is_mappable(0x2fff, 0x3001));
    }

    #[test]
    fn a_damaged_list_has_the_parts_that_are_complete() {
        let mut bytes = answer();
        bytes.truncate(bytes.len() - 1);
        let region = VfioRegion::of(&info(MAPPED | VFIO_REGION_INFO_FLAG_CAPS), &bytes);
        assert_eq!(region.mappable, [(0, 0x2000)]);
    }
}
