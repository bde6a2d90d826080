//! How many transfers have the same sum, where these do not repeat in order: at random places, and beside a cache.
//!
//! A fit predicts the same transfers many times, with other times of the parts of the card. Which of them are alike depends on
//! their addresses only, so it is counted once for each thread.

use super::alike::Alike;
use super::way::{MOST_PIECES, Way};
use lanemark_machine::Window;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// Transfers with the same sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// Number of one of them.
    pub(super) nth: u64,
    /// How many there are between the first and the last of all transfers.
    pub(super) between: u64,
}

/// The kinds of some transfers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kinds {
    /// In the order in which they occur first.
    pub(super) all: Vec<Kind>,
    /// Index of the kind of each transfer, of the first [`MOST_PIECES`].
    pub(super) order: Vec<u8>,
}

/// All that [`Way::alike`] of these transfers depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Counted {
    window: Window,
    bytes: u64,
    base: u64,
    cached: Range<u64>,
    descriptor_bytes: u32,
    first: u64,
    transfers: u64,
}

/// Number of results that are kept: the figures of a large table, with several sizes of a cache.
const MOST_KEPT: usize = 1024;

/// Largest number of kinds: with more, it is quicker to add the transfers one by one.
const MOST_KINDS: usize = 64;

thread_local! {
    static KNOWN: RefCell<FxHashMap<Counted, Option<Rc<Kinds>>>> = RefCell::default();
}

impl Way<'_> {
    /// The kinds of `transfers` transfers from number `first` on; `None` if there are many kinds or the addresses matter.
    pub(super) fn kinds(&self, first: u64, transfers: u64) -> Option<Rc<Kinds>> {
        if self.channels > 1 || transfers < 2 {
            return None;
        }
        self.alike(first)?;
        let counted = Counted {
            window: self.transfer.window,
            bytes: self.transfer.bytes,
            base: self.base,
            cached: self.cached.clone(),
            descriptor_bytes: self.dma.descriptor_bytes.value,
            first,
            transfers,
        };
        KNOWN.with_borrow_mut(|known| {
            if let Some(kinds) = known.get(&counted) {
                return kinds.clone();
            }
            if known.len() >= MOST_KEPT {
                known.clear();
            }
            let kinds = self.counted(first, transfers).map(Rc::new);
            known.insert(counted, kinds.clone());
            kinds
        })
    }

    fn counted(&self, first: u64, transfers: u64) -> Option<Kinds> {
        let (mut alike, mut all, mut order): (Vec<Alike>, Vec<Kind>, Vec<u8>) = Default::default();
        for nth in first..first + transfers {
            let of_one = self.alike(nth)?;
            let is_between = nth != first && nth + 1 != first + transfers;
            let place = alike.iter().position(|other| *other == of_one).unwrap_or(alike.len());
            if place == alike.len() {
                alike.push(of_one);
                all.push(Kind { nth, between: 0 });
            }
            if all.len() > MOST_KINDS {
                return None;
            }
            all[place].between += u64::from(is_between);
            if nth - first < MOST_PIECES {
                order.push(place as u8);
            }
        }
        Some(Kinds { all, order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Partner, Pattern, Transfer, Verb};

    #[test]
    fn lines_at_random_places_are_of_two_kinds_and_bytes_of_too_many() {
        let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        let kinds = |bytes, pattern, transfers| {
            let window = Window { offset: 0, len: 1 << 20, pattern };
            let (card_number, verb, partner) = (0, Verb::Load, Partner::Host);
            let transfer = Transfer { card: card_number, verb, partner, bytes, count: 1, window, outstanding: None };
            Way::of(&card, &transfer).unwrap().kinds(3, transfers)
        };
        // Halves of the longest RCB; asked again, the answer is the same.
        for _ in 0..2 {
            let found = kinds(64, Pattern::Random, 1000).unwrap();
            let between: Vec<u64> = found.all.iter().map(|kind| kind.between).collect();
            assert_eq!((between.len(), between.iter().sum::<u64>()), (2, 998));
            let of_second: u64 = found.order[1..999].iter().map(|kind| u64::from(*kind)).sum();
            assert_eq!((found.order.len(), of_second), (1000, between[1]));
        }
        assert_eq!(kinds(128, Pattern::Random, 1000).unwrap().all, [Kind { nth: 3, between: 998 }]);
        assert_eq!(kinds(100, Pattern::Random, 1000), None);
        assert_eq!(kinds(128, Pattern::Sequential, 1000).unwrap().all, [Kind { nth: 3, between: 998 }]);
        assert_eq!(kinds(128, Pattern::Random, 1), None);
    }
}
