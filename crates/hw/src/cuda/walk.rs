//! Which warp of the kernel `transfers` moves which bytes.

use super::ptx::{UNIT_BYTES, slice_bytes};
use lanemark_machine::Transfer;

/// Distribution of transfers over the warps of a kernel.
///
/// A transfer is cut into slices. If the number of outstanding transfers is limited, each warp has one of them at a
/// time. If not, all warps share each transfer: the slices go round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Walk {
    pub(super) transfer: Transfer,
    /// Transfers in all.
    pub(super) count: u64,
    /// Bytes of one instruction of a thread.
    pub(super) unit: u32,
    /// Slices of a transfer.
    pub(super) slices: u64,
    pub(super) warps: u32,
    /// Whether warps share transfers.
    pub(super) is_shared: bool,
}

/// A slice: its transfer, its place in the window, and its length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Slice {
    pub(super) transfer: u64,
    /// Bytes from the start of the window.
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Walk {
    /// Distributes `count` transfers over at most `most_warps` warps; `None` if bytes or places are no multiples of 4 B.
    pub(super) fn new(transfer: Transfer, count: u64, most_warps: u32) -> Option<Walk> {
        let distance = transfer.window.step(transfer.bytes);
        let fits = |unit: &u32| {
            let unit = u64::from(*unit);
            [transfer.bytes, transfer.window.offset, distance].iter().all(|value| value.is_multiple_of(unit))
        };
        let unit = UNIT_BYTES.into_iter().find(fits)?;
        Some(Walk { transfer, count, unit, slices: 1, warps: 1, is_shared: false }.with_unit(unit, most_warps))
    }

    /// The same transfers in units of `unit` bytes, over at most `most_warps` warps.
    pub(super) fn with_unit(self, unit: u32, most_warps: u32) -> Walk {
        let Walk { transfer, count, .. } = self;
        let slices = transfer.bytes.div_ceil(slice_bytes(unit)).max(1);
        let (is_shared, most) = match transfer.outstanding {
            Some(outstanding) => (false, count.min(outstanding.into())),
            None => (true, count.saturating_mul(slices)),
        };
        let warps = most.min(most_warps.into()).max(1) as u32;
        Walk { transfer, count, unit, slices, warps, is_shared }
    }

    /// First slice of a warp: number of the transfer, and of the slice within it.
    fn first(&self, warp: u32) -> (u64, u64) {
        let warp = u64::from(warp);
        if self.is_shared { (warp / self.slices, warp % self.slices) } else { (warp, 0) }
    }

    /// Steps to the next slice of a warp: transfers, slices, and transfers after the last slice.
    pub(super) fn steps(&self) -> [u64; 3] {
        let warps = u64::from(self.warps);
        if self.is_shared { [warps / self.slices, warps % self.slices, 1] } else { [0, 1, warps] }
    }

    /// Slices of a warp, in order.
    pub(super) fn slices_of(&self, warp: u32) -> impl Iterator<Item = Slice> + '_ {
        let [transfers, slices, carry] = self.steps();
        let next = move |(nth, slice): &(u64, u64)| {
            let (nth, slice) = (nth + transfers, slice + slices);
            Some(if slice >= self.slices { (nth + carry, slice - self.slices) } else { (nth, slice) })
        };
        let all = std::iter::successors(Some(self.first(warp)), next);
        all.take_while(|(nth, _)| *nth < self.count).map(|(nth, slice)| {
            let within = slice * slice_bytes(self.unit);
            let Transfer { window, bytes, .. } = self.transfer;
            let offset = window.place(nth, bytes) - window.offset + within;
            Slice { transfer: nth, offset, len: (bytes - within).min(slice_bytes(self.unit)) }
        })
    }

    /// Distinct places of the last `count` transfers, as offsets from the start of the window.
    pub(super) fn last_places(&self, count: u64) -> Vec<u64> {
        let Transfer { window, bytes, .. } = self.transfer;
        let first = self.count.saturating_sub(count);
        let mut places: Vec<u64> = (first..self.count).map(|nth| window.place(nth, bytes) - window.offset).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Partner, Pattern, Verb, Window};

    fn transfer(bytes: u64, outstanding: Option<u32>, pattern: Pattern) -> Transfer {
        let window = Window { offset: 64, len: 1 << 16, pattern };
        Transfer { card: 0, verb: Verb::Load, partner: Partner::Host, bytes, count: 1, window, outstanding }
    }

    #[test]
    fn all_warps_together_move_every_byte_of_every_transfer_once() {
        for outstanding in [None, Some(1), Some(3), Some(40)] {
            for (bytes, count) in [(4, 9), (64, 100), (4096, 7), (4100, 7), (20_000, 3)] {
                for most_warps in [1, 2, 5, 64] {
                    let asked = transfer(bytes, outstanding, Pattern::Sequential);
                    let walk = Walk::new(asked, count, most_warps).unwrap();
                    let mut slices: Vec<Slice> = (0..walk.warps).flat_map(|warp| walk.slices_of(warp)).collect();
                    slices.sort_unstable();
                    let expected = (0..count).flat_map(|nth| {
                        let slice = slice_bytes(walk.unit);
                        (0..bytes.div_ceil(slice)).map(move |part| Slice {
                            transfer: nth,
                            offset: asked.window.place(nth, bytes) - 64 + part * slice,
                            len: (bytes - part * slice).min(slice),
                        })
                    });
                    assert_eq!(slices, expected.collect::<Vec<_>>(), "{walk:?}");
                }
            }
        }
    }

    #[test]
    fn a_limit_of_outstanding_transfers_is_the_number_of_warps() {
        let warps = |outstanding, count| {
            Walk::new(transfer(64, outstanding, Pattern::Random), count, 100).map(|walk| walk.warps)
        };
        assert_eq!((warps(Some(7), 1000), warps(Some(7), 3), warps(Some(200), 1000)), (Some(7), Some(3), Some(100)));
        assert_eq!((warps(None, 1000), warps(None, 30)), (Some(100), Some(30)));
    }

    #[test]
    fn the_unit_is_the_largest_that_divides_size_place_and_distance() {
        let unit = |bytes, pattern| Walk::new(transfer(bytes, None, pattern), 1, 1).map(|walk| walk.unit);
        assert_eq!((unit(4096, Pattern::Sequential), unit(24, Pattern::Sequential)), (Some(16), Some(8)));
        assert_eq!((unit(64, Pattern::Strided(68)), unit(20, Pattern::Sequential)), (Some(4), Some(4)));
        assert_eq!(unit(6, Pattern::Sequential), None);
    }

    #[test]
    fn places_that_repeat_are_counted_once() {
        let walk = Walk::new(transfer(1 << 15, None, Pattern::Sequential), 10, 4).unwrap();
        assert_eq!(walk.last_places(1), [1 << 15]);
        assert_eq!(walk.last_places(3), [0, 1 << 15]);
    }
}
