//! A set of free numbers that finds the lowest one in constant time.

/// One bit per number, set if it is free, and summary levels: one bit per nonzero word of the level below.
#[derive(Debug, Clone)]
pub(super) struct Bitmap {
    /// One bit per number.
    words: Box<[u64]>,
    /// Summary levels, up to a level of one word; none if `words` is one word.
    above: Vec<Box<[u64]>>,
    /// Index of the first nonzero word, so that taking the lowest number reads one word; arbitrary if all are zero.
    lowest: usize,
    len: usize,
}

const BITS: usize = u64::BITS as usize;

impl Bitmap {
    /// Numbers 0 to `len` - 1, none of them free.
    pub fn none_free(len: usize) -> Bitmap {
        let empty = |words| vec![0; words].into_boxed_slice();
        let words = empty(len.div_ceil(BITS).max(1));
        let mut above: Vec<Box<[u64]>> = Vec::new();
        let mut below = words.len();
        while below > 1 {
            below = below.div_ceil(BITS);
            above.push(empty(below));
        }
        Bitmap { words, above, lowest: 0, len }
    }

    /// Number of free numbers, by counting.
    pub fn free(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Takes the lowest free number.
    #[inline]
    pub fn take_lowest(&mut self) -> Option<usize> {
        let word = self.words.get_mut(self.lowest)?;
        if *word == 0 {
            return None;
        }
        let number = self.lowest * BITS + word.trailing_zeros() as usize;
        *word &= *word - 1;
        if *word == 0 {
            self.emptied(self.lowest);
        }
        Some(number)
    }

    /// Whether `number` is free.
    #[inline]
    pub fn is_free(&self, number: usize) -> bool {
        self.words.get(number / BITS).is_some_and(|word| word >> (number % BITS) & 1 != 0)
    }

    /// Takes `number`; false if it is not free.
    pub fn take(&mut self, number: usize) -> bool {
        if !self.is_free(number) {
            return false;
        }
        let word = &mut self.words[number / BITS];
        *word &= !(1 << (number % BITS));
        if *word == 0 {
            self.emptied(number / BITS);
        }
        true
    }

    /// Whether `number` is in the range of the bitmap.
    pub fn contains(&self, number: usize) -> bool {
        number < self.len
    }

    /// Frees `number`; false if it is free already.
    #[inline]
    pub fn put(&mut self, number: usize) -> bool {
        let at = number / BITS;
        let Some(word) = self.words.get_mut(at) else { return false };
        let bit = 1 << (number % BITS);
        if *word & bit != 0 {
            return false;
        }
        let was_empty = *word == 0;
        *word |= bit;
        if was_empty {
            self.filled(at);
        }
        true
    }

    /// Updates the summary levels after `word` became nonzero; stops at the first level that was nonzero before.
    #[cold]
    fn filled(&mut self, word: usize) {
        // While all words are zero, `lowest` is arbitrary.
        if word < self.lowest || self.words[self.lowest] == 0 {
            self.lowest = word;
        }
        let mut number = word;
        for level in &mut self.above {
            let above = &mut level[number / BITS];
            let was_nonzero = *above != 0;
            *above |= 1 << (number % BITS);
            if was_nonzero {
                return;
            }
            number /= BITS;
        }
    }

    /// Updates the summary levels and `lowest` after `word` became zero.
    #[cold]
    fn emptied(&mut self, word: usize) {
        let mut number = word;
        for level in &mut self.above {
            let above = &mut level[number / BITS];
            *above &= !(1 << (number % BITS));
            if *above != 0 {
                break;
            }
            number /= BITS;
        }
        if word == self.lowest {
            let top = self.above.last().map_or(0, |top| top[0]);
            if top != 0 {
                let down = |at: usize, level: &[u64]| at * BITS + level[at].trailing_zeros() as usize;
                self.lowest = self.above.iter().rev().fold(0, |at, level| down(at, level));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_come_in_order_and_none_after_the_last() {
        for len in [1, 63, 64, 65, 4096, 4097, 64 * 4096 + 1] {
            let mut bitmap = Bitmap::none_free(len);
            assert_eq!(bitmap.take_lowest(), None);
            assert!((0..len).rev().all(|number| bitmap.put(number)));
            assert!((0..len).all(|number| bitmap.take_lowest() == Some(number)), "{len}");
            assert_eq!((bitmap.take_lowest(), bitmap.free()), (None, 0));
            assert!(!bitmap.contains(len) && bitmap.contains(len - 1));
        }
    }

    proptest! {
        #[test]
        fn a_bitmap_equals_a_set_of_numbers(len in 1_usize..9000, acts in prop::collection::vec((0_u8..4, 0_usize..9000), 1..400)) {
            let (mut bitmap, mut set) = (Bitmap::none_free(len), BTreeSet::new());
            for (act, number) in acts {
                let number = number % len;
                match act {
                    0 => prop_assert_eq!(bitmap.take_lowest(), set.pop_first()),
                    1 => prop_assert_eq!(bitmap.take(number), set.remove(&number)),
                    _ => prop_assert_eq!(bitmap.put(number), set.insert(number)),
                }
                prop_assert_eq!(bitmap.free(), set.len() as u64);
                prop_assert_eq!(bitmap.is_free(number), set.contains(&number));
            }
        }
    }
}
