//! Ownership of mapped memory, and the cache maintenance at each handover.

use crate::attributes::Permission;
use crate::backend::{CacheCare, Coherence};
use crate::buffer::{Buffer, HostAddress};

/// The next owner of mapped memory. [`Domain::sync`](crate::Domain::sync) does this maintenance where caches are not
/// coherent:
///
/// | next owner | device reads | device writes | both |
/// | --- | --- | --- | --- |
/// | device | flush | purge | flush |
/// | CPU | | purge, if the CPU prefetches | purge, if the CPU prefetches |
///
/// A line that is only partly in the buffer is flushed in place of a purge, so that other data in it is not lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The device: the CPU has written the data, and does not touch the buffer until it owns the buffer again.
    Device,
    /// The CPU: the device has finished.
    Cpu,
}

/// Cache maintenance operations for `buffer`, in order.
pub(crate) fn maintenance_ops<M: HostAddress>(
    coherence: Coherence,
    line_bytes: u64,
    buffer: Buffer<M>,
    permission: Permission,
    owner: Owner,
) -> impl Iterator<Item = (CacheCare, Buffer<M>)> {
    let care = match (coherence, owner) {
        (Coherence::Coherent, _) => None,
        (Coherence::BySoftware { .. }, Owner::Device) if permission.reads() => Some(CacheCare::Flush),
        (Coherence::BySoftware { .. }, Owner::Device) => Some(CacheCare::Purge),
        (Coherence::BySoftware { cpu_prefetches }, Owner::Cpu) => {
            (cpu_prefetches && permission.writes()).then_some(CacheCare::Purge)
        }
    };
    let start = buffer.at.value();
    let end = start.saturating_add(buffer.len_bytes);
    let mask = line_bytes - 1;
    // The whole lines, if any, and the partial lines before and after them.
    let middle = start.checked_add(mask).map_or(end, |up| up & !mask).min(end);
    let last = (end & !mask).max(middle);
    let parts = match care {
        None => [None; 3],
        Some(CacheCare::Flush) => [Some((CacheCare::Flush, start, end)), None, None],
        Some(CacheCare::Purge) => [
            Some((CacheCare::Flush, start, middle)),
            Some((CacheCare::Purge, middle, last)),
            Some((CacheCare::Flush, last, end)),
        ],
    };
    let is_some = |&(_, from, to): &(CacheCare, u64, u64)| from < to;
    parts
        .into_iter()
        .flatten()
        .filter(is_some)
        .map(|(care, from, to)| (care, Buffer::new(M::from_value(from), to - from)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_units::HostPhys;

    const PREFETCHING: Coherence = Coherence::BySoftware { cpu_prefetches: true };
    const PLAIN: Coherence = Coherence::BySoftware { cpu_prefetches: false };

    fn at(
        start: u64,
        end: u64,
        coherence: Coherence,
        permission: Permission,
        owner: Owner,
    ) -> Vec<(CacheCare, u64, u64)> {
        maintenance_ops(coherence, 32, Buffer::new(HostPhys(start), end - start), permission, owner)
            .map(|(care, part)| (care, part.at.0, part.at.0 + part.len_bytes))
            .collect()
    }

    #[test]
    fn a_coherent_platform_needs_no_maintenance() {
        for permission in [Permission::Read, Permission::Write, Permission::ReadWrite] {
            for owner in [Owner::Device, Owner::Cpu] {
                assert_eq!(at(0, 64, Coherence::Coherent, permission, owner), []);
            }
        }
    }

    #[test]
    fn memory_that_a_device_reads_is_flushed_and_memory_that_it_writes_is_purged() {
        let whole = |coherence, permission, owner| at(32, 96, coherence, permission, owner);
        for coherence in [PLAIN, PREFETCHING] {
            assert_eq!(whole(coherence, Permission::Read, Owner::Device), [(CacheCare::Flush, 32, 96)]);
            assert_eq!(whole(coherence, Permission::ReadWrite, Owner::Device), [(CacheCare::Flush, 32, 96)]);
            assert_eq!(whole(coherence, Permission::Write, Owner::Device), [(CacheCare::Purge, 32, 96)]);
            assert_eq!(whole(coherence, Permission::Read, Owner::Cpu), []);
        }
    }

    #[test]
    fn a_cpu_that_prefetches_needs_a_second_purge() {
        for permission in [Permission::Write, Permission::ReadWrite] {
            assert_eq!(at(32, 96, PLAIN, permission, Owner::Cpu), []);
            assert_eq!(at(32, 96, PREFETCHING, permission, Owner::Cpu), [(CacheCare::Purge, 32, 96)]);
        }
    }

    #[test]
    fn a_line_shared_with_other_data_is_never_purged() {
        use CacheCare::{Flush, Purge};
        let written = |start, end| at(start, end, PLAIN, Permission::Write, Owner::Device);
        assert_eq!(written(31, 97), [(Flush, 31, 32), (Purge, 32, 96), (Flush, 96, 97)]);
        assert_eq!(written(33, 95), [(Flush, 33, 64), (Flush, 64, 95)]);
        assert_eq!(written(33, 63), [(Flush, 33, 63)]);
        assert_eq!(written(32, 63), [(Flush, 32, 63)]);
        assert_eq!(written(32, 64), [(Purge, 32, 64)]);
        assert_eq!(written(u64::MAX - 31, u64::MAX), [(Flush, u64::MAX - 31, u64::MAX)]);
    }
}
