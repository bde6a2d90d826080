//! DMA transfers that a device makes without a driver.

use crate::{Flow, Peer, Verb};

/// Transfers by a device's DMA engine, in sequence or several concurrently.
///
/// The engine is started once, and the device takes the times. A sample begins when the engine starts. Its *issue*
/// time ends with the last request, its *delivered* time with the arrival of the last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Card, counted from 0.
    pub card: u32,
    /// Direction as seen by the card: `Load` reads from the partner, `Store` writes to it.
    pub verb: Verb,
    /// The other end.
    pub partner: Partner,
    /// Bytes of one transfer.
    pub bytes: u64,
    /// Transfers of one iteration.
    pub count: u64,
    /// Addresses of the transfers.
    pub window: Window,
    /// Maximum number of outstanding transfers. Applies to reads, and to writes followed by a read ([`WriteRead`]); a
    /// plain write is complete when it has been sent.
    pub outstanding: Option<u32>,
}

impl Transfer {
    /// Bytes moved in one iteration.
    #[must_use]
    pub const fn bytes_per_pass(&self) -> u64 {
        self.bytes.saturating_mul(self.count)
    }
}

/// Writes by a device's DMA engine, each followed by a read of the same length.
///
/// A read does not pass an earlier posted write, so that it returns the data written if it goes to the same address.
/// [`Transfer::outstanding`] of `write` limits the number of outstanding pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteRead {
    /// The writes, to host memory.
    pub write: Transfer,
    /// Window of the reads.
    pub read: Window,
    /// Whether the requests of a write and of its read alternate. If not, the requests of the read follow those of
    /// the write.
    pub is_mixed: bool,
}

impl WriteRead {
    /// The reads as transfers.
    #[must_use]
    pub const fn read(&self) -> Transfer {
        Transfer { verb: Verb::Load, window: self.read, ..self.write }
    }

    /// Bytes moved in one iteration, in both directions.
    #[must_use]
    pub const fn bytes_per_pass(&self) -> u64 {
        self.write.bytes_per_pass().saturating_mul(2)
    }
}

/// The other end of DMA transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Partner {
    /// Host memory mapped for the device.
    Host,
    /// A BAR of another card.
    Peer {
        /// Card, counted from 0.
        card: u32,
        /// Index of the BAR.
        bar: u8,
    },
}

impl Partner {
    /// The other end of a flow; a card by the BAR its storage is in.
    #[must_use]
    pub const fn of(flow: Flow, bar: u8) -> Partner {
        match flow.peer {
            Peer::Host => Partner::Host,
            Peer::Card(card) => Partner::Peer { card, bar },
        }
    }
}

/// Address range at the other end, and the order of accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Window {
    /// Start offset.
    pub offset: u64,
    /// Length; after the last transfer that fits, addresses start over.
    pub len: u64,
    /// Order of the accesses.
    pub pattern: Pattern,
}

/// Order in which places of a window are accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Pattern {
    /// Ascending, without gaps.
    Sequential,
    /// Random multiples of the transfer length (fixed seed, the same in every run).
    Random,
    /// Ascending, with this many bytes from the start of one transfer to the next; at least the transfer length.
    Strided(u64),
    /// Random multiples (fixed seed) of the transfer length rounded up to a whole number of this many bytes: with 64,
    /// random offsets at cache lines.
    RandomStrided(u64),
}

impl Pattern {
    /// Whether the order is random.
    #[must_use]
    pub const fn is_random(self) -> bool {
        matches!(self, Pattern::Random | Pattern::RandomStrided(_))
    }
}

impl Window {
    /// Offset of transfer number `nth` of `bytes` bytes.
    ///
    /// ```
    /// use lanemark_machine::{Pattern, Window};
    /// let window = Window { offset: 64, len: 1024, pattern: Pattern::Sequential };
    /// let places: Vec<u64> = (0..4).map(|nth| window.place(nth, 300)).collect();
    /// assert_eq!(places, [64, 364, 664, 64]);
    /// ```
    #[must_use]
    pub const fn place(&self, nth: u64, bytes: u64) -> u64 {
        self.order_of(bytes).place(nth)
    }

    /// The places of transfers of `bytes` bytes in their order, for many of them.
    ///
    /// ```
    /// use lanemark_machine::{Pattern, Window};
    /// let window = Window { offset: 64, len: 1024, pattern: Pattern::Random };
    /// let order = window.order_of(64);
    /// assert!((0..100).all(|nth| order.place(nth) == window.place(nth, 64)));
    /// ```
    #[must_use]
    pub const fn order_of(&self, bytes: u64) -> PlaceOrder {
        let (places, step) = (self.places(bytes), self.step(bytes));
        PlaceOrder { offset: self.offset, places, step, is_random: self.pattern.is_random() }
    }

    /// Number of transfers of `bytes` bytes that fit; at least one.
    ///
    /// ```
    /// use lanemark_machine::{Pattern, Window};
    /// let window = Window { offset: 0, len: 1024, pattern: Pattern::Strided(256) };
    /// assert_eq!((window.places(64), window.place(3, 64), window.place(4, 64)), (4, 768, 0));
    /// ```
    #[must_use]
    pub const fn places(&self, bytes: u64) -> u64 {
        match self.len.checked_div(self.step(bytes)) {
            Some(places) if places > 0 => places,
            _ => 1,
        }
    }

    /// Distance between the starts of two places.
    ///
    /// ```
    /// use lanemark_machine::{Pattern, Window};
    /// let window = Window { offset: 0, len: 4096, pattern: Pattern::RandomStrided(64) };
    /// assert_eq!([window.step(8), window.step(64), window.step(200)], [64, 64, 256]);
    /// ```
    #[must_use]
    pub const fn step(&self, bytes: u64) -> u64 {
        match self.pattern {
            Pattern::Strided(stride) if stride > bytes => stride,
            Pattern::RandomStrided(stride) if stride > 0 => match bytes.checked_next_multiple_of(stride) {
                Some(0) => stride,
                Some(step) => step,
                None => bytes,
            },
            _ => bytes,
        }
    }
}

/// Places of transfers of one length in a window, in their order.
#[derive(Clone, Copy, Debug)]
pub struct PlaceOrder {
    offset: u64,
    places: u64,
    step: u64,
    is_random: bool,
}

impl PlaceOrder {
    /// Offset of transfer number `nth`.
    #[must_use]
    pub const fn place(&self, nth: u64) -> u64 {
        let place = if self.is_random { mixed(nth) % self.places } else { nth % self.places };
        self.offset + place * self.step
    }
}

/// `SplitMix64`: maps consecutive numbers to pseudo-random ones.
const fn mixed(nth: u64) -> u64 {
    let a = nth.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let b = (a ^ (a >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    c ^ (c >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_offsets_are_aligned_within_the_window_and_cover_it() {
        let window = Window { offset: 4096, len: 640, pattern: Pattern::Random };
        let mut met = [false; 10];
        for nth in 0..200 {
            let place = window.place(nth, 64) - 4096;
            assert!(place.is_multiple_of(64) && place < 640);
            met[(place / 64) as usize] = true;
        }
        assert!(met.iter().all(|met| *met));
        assert_ne!(window.place(0, 64) + 64, window.place(1, 64), "consecutive transfers are not adjacent");
    }

    #[test]
    fn random_offsets_with_a_stride_are_whole_multiples_of_it_and_do_not_overlap() {
        for (bytes, step, places) in [(64, 64, 10), (65, 128, 5), (8, 64, 10), (128, 128, 5), (640, 640, 1)] {
            let window = Window { offset: 4096, len: 640, pattern: Pattern::RandomStrided(64) };
            assert_eq!((window.step(bytes), window.places(bytes)), (step, places), "{bytes} B");
            let mut met = vec![false; places as usize];
            for nth in 0..200 {
                let place = window.place(nth, bytes) - 4096;
                assert!(place.is_multiple_of(step) && place + bytes <= 640);
                met[(place / step) as usize] = true;
            }
            assert!(met.iter().all(|met| *met), "{bytes} B");
        }
        let window = |pattern| Window { offset: 0, len: 1 << 20, pattern };
        let (usual, aligned) = (window(Pattern::Random), window(Pattern::RandomStrided(64)));
        assert!((0..99).all(|nth| usual.place(nth, 256) == aligned.place(nth, 256)), "multiples of 64 B already");
        assert!((0..99).any(|nth| usual.place(nth, 200) != aligned.place(nth, 200)));
        assert!(Pattern::Random.is_random() && Pattern::RandomStrided(1).is_random());
        assert!(!Pattern::Strided(64).is_random() && !Pattern::Sequential.is_random());
        let largest = Window { offset: 0, len: u64::MAX, pattern: Pattern::RandomStrided(u64::MAX) };
        assert_eq!((largest.step(1), largest.step(0), largest.places(1)), (u64::MAX, u64::MAX, 1));
    }

    #[test]
    fn a_window_smaller_than_a_transfer_has_one_place() {
        let window = Window { offset: 7, len: 10, pattern: Pattern::Sequential };
        assert_eq!((window.places(11), window.place(5, 11), window.places(0)), (1, 7, 1));
    }
}
