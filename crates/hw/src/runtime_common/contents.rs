//! Contents of memory that kernels read, of which sums are known without adding them.

/// Factor of the word number, odd: neighbouring words differ.
pub(crate) const FACTOR: u32 = 0x9E37_79B1;

/// Word number `number` of a window.
pub(crate) const fn content(number: u64, summand: u32) -> u32 {
    (number as u32).wrapping_mul(FACTOR).wrapping_add(summand)
}

/// Sum of `count` words from number `first` on.
pub(crate) const fn sum_of(first: u64, count: u64, summand: u32) -> u32 {
    // The sum of the numbers, of which only the low half matters; one of two successive numbers is even.
    let pairs = if count.is_multiple_of(2) {
        (count / 2).wrapping_mul(count.wrapping_sub(1))
    } else {
        count.wrapping_mul(count.wrapping_sub(1) / 2)
    };
    let numbers = count.wrapping_mul(first).wrapping_add(pairs) as u32;
    numbers.wrapping_mul(FACTOR).wrapping_add((count as u32).wrapping_mul(summand))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_words_is_known_without_adding_them() {
        for (first, count) in [(0, 0), (0, 1), (5, 1), (7, 4), (1 << 33, 1025), (3, 1 << 20)] {
            let added = (first..first + count).fold(0_u32, |sum, word| sum.wrapping_add(content(word, 77)));
            assert_eq!(sum_of(first, count, 77), added, "{count} words from {first} on");
        }
    }
}
