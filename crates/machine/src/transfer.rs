//! What a device moves by itself.

use crate::{Flow, Peer, Verb};

/// Transfers by a device's own DMA engine, one after the other or several at once.
///
/// The device is told once what to do and keeps the time itself: a sample begins when its engine does, its *issue*
/// time ends with the last request, its *delivered* time with the last byte at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Which card, counted from 0.
    pub card: u32,
    /// As the card sees it: a load reads what is at the other end, a store writes it.
    pub verb: Verb,
    /// What is at the other end.
    pub partner: Partner,
    /// Bytes of one transfer.
    pub bytes: u64,
    /// Transfers of one pass.
    pub count: u64,
    /// Where they go, one after the other.
    pub window: Window,
    /// Transfers that may be under way at once; reads only, for a write is done when it has left, unless a read
    /// [follows](WriteRead) it.
    pub outstanding: Option<u32>,
}

impl Transfer {
    /// Bytes moved in one pass.
    #[must_use]
    pub const fn bytes_of_pass(&self) -> u64 {
        self.bytes.saturating_mul(self.count)
    }
}

/// Writes by a device's own DMA engine, each followed by a read of as many bytes.
///
/// Nothing passes a posted write, so what is read from where was written is what was written. As many pairs are under way as
/// the write's [`outstanding`](Transfer::outstanding) says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteRead {
    /// The writes, to host memory.
    pub write: Transfer,
    /// Where is read.
    pub read: Window,
    /// Whether requests of a write and of its read take turns, as many bytes each way, instead of the read's following all of
    /// the write's.
    pub is_mixed: bool,
}

impl WriteRead {
    /// The reads, as transfers of their own.
    #[must_use]
    pub const fn read(&self) -> Transfer {
        Transfer { verb: Verb::Load, window: self.read, ..self.write }
    }

    /// Bytes moved in one pass, both ways.
    #[must_use]
    pub const fn bytes_of_pass(&self) -> u64 {
        self.write.bytes_of_pass().saturating_mul(2)
    }
}

/// The other end of a device's transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Partner {
    /// Host memory that was lent to it.
    Host,
    /// The BAR of this index of another card.
    Peer {
        /// Which card, counted from 0.
        card: u32,
        /// Which BAR.
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

/// Bytes at the other end, and in which order they are touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// From its start on.
    pub offset: u64,
    /// Its length: transfers that do not fit behind the last one begin at its start again.
    pub len: u64,
    /// In which order.
    pub pattern: Pattern,
}

/// In which order places of a window are touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// One behind the other.
    Sequential,
    /// Anywhere, as far apart as one transfer is long: the same places in every run.
    Random,
    /// One behind the other, so many bytes from the start of one to that of the next; no fewer than it is long.
    Strided(u64),
}

impl Window {
    /// Where in the window transfer number `nth` of `bytes` bytes begins, from `offset` on.
    ///
    /// ```
    /// use lanemark_machine::{Pattern, Window};
    /// let window = Window { offset: 64, len: 1024, pattern: Pattern::Sequential };
    /// let places: Vec<u64> = (0..4).map(|nth| window.place(nth, 300)).collect();
    /// assert_eq!(places, [64, 364, 664, 64]);
    /// ```
    #[must_use]
    pub const fn place(&self, nth: u64, bytes: u64) -> u64 {
        let places = self.places(bytes);
        let place = match self.pattern {
            Pattern::Sequential | Pattern::Strided(_) => nth % places,
            Pattern::Random => mixed(nth) % places,
        };
        self.offset + place * self.step(bytes)
    }

    /// How many transfers of `bytes` bytes it has places for; one at the least.
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

    /// From the start of one place to that of the next.
    #[must_use]
    pub const fn step(&self, bytes: u64) -> u64 {
        match self.pattern {
            Pattern::Strided(stride) if stride > bytes => stride,
            _ => bytes,
        }
    }
}

/// `SplitMix64`: neighbours in, strangers out.
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
    fn random_places_are_whole_transfers_inside_the_window_and_all_of_them_are_met() {
        let window = Window { offset: 4096, len: 640, pattern: Pattern::Random };
        let mut met = [false; 10];
        for nth in 0..200 {
            let place = window.place(nth, 64) - 4096;
            assert!(place.is_multiple_of(64) && place < 640);
            met[(place / 64) as usize] = true;
        }
        assert!(met.iter().all(|met| *met));
        assert_ne!(window.place(0, 64) + 64, window.place(1, 64), "neighbours do not follow each other");
    }

    #[test]
    fn a_window_too_small_for_a_transfer_has_one_place() {
        let window = Window { offset: 7, len: 10, pattern: Pattern::Sequential };
        assert_eq!((window.places(11), window.place(5, 11), window.places(0)), (1, 7, 1));
    }
}
