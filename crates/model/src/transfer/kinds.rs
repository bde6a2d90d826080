//! How many transfers have the same sum, where these do not repeat in order: at random places, and beside a cache.
//!
//! A fit predicts the same transfers many times, with other times of the parts of the card. Which of them are alike depends on
//! their addresses only, so it is counted once for each thread.

use super::alike::Alike;
use super::way::Way;
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
    static KNOWN: RefCell<FxHashMap<Counted, Option<Rc<[Kind]>>>> = RefCell::default();
}

impl Way<'_> {
    /// The kinds of `transfers` transfers from number `first` on, in the order in which they occur first; `None` if there are
    /// many kinds or the addresses matter.
    pub(super) fn kinds(&self, first: u64, transfers: u64) -> Option<Rc<[Kind]>> {
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
            let kinds = self.counted(first, transfers).map(Rc::from);
            known.insert(counted, kinds.clone());
            kinds
        })
    }

    fn counted(&self, first: u64, transfers: u64) -> Option<Vec<Kind>> {
        let mut kinds: Vec<(Alike, Kind)> = Vec::new();
        for nth in first..first + transfers {
            let alike = self.alike(nth)?;
            let is_between = nth != first && nth + 1 != first + transfers;
            match kinds.iter_mut().find(|(other, _)| *other == alike) {
                Some((_, kind)) => kind.between += u64::from(is_between),
                None => kinds.push((alike, Kind { nth, between: u64::from(is_between) })),
            }
            if kinds.len() > MOST_KINDS {
                return None;
            }
        }
        Some(kinds.into_iter().map(|(_, kind)| kind).collect())
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
            let between: Vec<u64> = found.iter().map(|kind| kind.between).collect();
            assert_eq!((between.len(), between.iter().sum::<u64>()), (2, 998));
        }
        assert_eq!(kinds(128, Pattern::Random, 1000).unwrap()[..], [Kind { nth: 3, between: 998 }]);
        assert_eq!(kinds(100, Pattern::Random, 1000), None);
        assert_eq!(kinds(128, Pattern::Sequential, 1000).unwrap()[..], [Kind { nth: 3, between: 998 }]);
        assert_eq!(kinds(128, Pattern::Random, 1), None);
    }
}
