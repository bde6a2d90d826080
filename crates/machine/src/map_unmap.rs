//! Memory that a program lends to a device and takes back, with nobody at the other end.

use crate::Means;

/// A buffer is lent and taken back, some times in a row.
///
/// No device is told of it and no byte is touched: what is asked about is what the program does for it, which is to
/// find addresses for the device, to have somebody translate them, and to remember that it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapUnmap {
    /// By which means.
    pub means: Means,
    /// Bytes of the buffer, which starts with a page; up to [`MapUnmap::MOST_BYTES`], and for a pool a power of two.
    pub bytes: u64,
    /// How often in one pass; at least 1.
    pub pairs: u64,
}

impl MapUnmap {
    /// The longest buffer: 32 MiB. With it, as many pairs as a queue of deferred invalidations holds end in time.
    pub const MOST_BYTES: u64 = 32 << 20;

    /// Why nobody can lend that; `None` if it makes sense.
    ///
    /// ```
    /// use lanemark_machine::{MapUnmap, Means};
    /// let object = MapUnmap { means: Means::Pool, bytes: 4096, pairs: 1 };
    /// assert_eq!(object.nonsense(), None);
    /// assert!(MapUnmap { bytes: 5000, ..object }.nonsense().is_some());
    /// ```
    #[must_use]
    pub const fn nonsense(&self) -> Option<&'static str> {
        if self.bytes == 0 || self.pairs == 0 {
            return Some("nothing would be lent");
        }
        if self.bytes > MapUnmap::MOST_BYTES {
            return Some("one pass could not be ended when the time is over; ask for at most 32 MiB");
        }
        match self.means {
            Means::Pool if !self.bytes.is_power_of_two() => Some("an object of a pool is a power of two of bytes"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_and_too_much_are_nonsense_and_objects_of_a_pool_are_powers_of_two() {
        for means in Means::all() {
            let lend = MapUnmap { means, bytes: MapUnmap::MOST_BYTES, pairs: 1 };
            assert_eq!(lend.nonsense(), None);
            assert_eq!(MapUnmap { bytes: 1, ..lend }.nonsense(), None);
            for bad in [
                MapUnmap { bytes: 0, ..lend },
                MapUnmap { pairs: 0, ..lend },
                MapUnmap { bytes: lend.bytes + 1, ..lend },
            ] {
                assert!(bad.nonsense().is_some(), "{bad:?}");
            }
            assert_eq!(MapUnmap { bytes: 12_288, ..lend }.nonsense().is_some(), means == Means::Pool, "{means}");
        }
    }
}
