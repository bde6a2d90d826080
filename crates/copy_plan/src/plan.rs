//! The fastest method of every count and size, for look-ups.

use crate::table::CopyTable;
use lanemark_method::{CopyBy, CopyDirection};

/// The fastest method of each count and size.
///
/// Counts and sizes are in classes, four for each power of two; a class has one method, that of the middle of it. All
/// classes together have 20 KB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPlan {
    /// By direction, class of the count, and class of the size.
    methods: Vec<Option<CopyBy>>,
}

/// Classes of counts up to 2^17, and of sizes up to 2^36: what is larger is in the last class.
const COUNT_CLASSES: usize = 4 * 17;
const SIZE_CLASSES: usize = 4 * 36;

impl CopyPlan {
    /// Determines the fastest method of each class, which takes some milliseconds.
    #[must_use]
    pub fn new(table: &CopyTable) -> CopyPlan {
        let mut methods = Vec::with_capacity(2 * COUNT_CLASSES * SIZE_CLASSES);
        let sizes: Vec<u64> = (0..SIZE_CLASSES).map(middle).collect();
        for direction in [CopyDirection::ToDevice, CopyDirection::FromDevice] {
            for count in 0..COUNT_CLASSES {
                let copies = u32::try_from(middle(count)).unwrap_or(u32::MAX);
                let best = table.best_of_sizes(direction, copies, &sizes).into_iter();
                methods.extend(best.map(|best| best.map(|(by, _)| by)));
            }
        }
        CopyPlan { methods }
    }

    /// The fastest method for `count` pieces of `bytes` bytes; `None` if the table has no point of this direction. Zero
    /// counts as one.
    ///
    /// It takes a few nanoseconds, and neither allocates nor locks.
    #[must_use]
    #[inline]
    pub fn choose(&self, bytes: u64, count: u32, direction: CopyDirection) -> Option<CopyBy> {
        let place = match direction {
            CopyDirection::ToDevice => 0,
            CopyDirection::FromDevice => COUNT_CLASSES,
        };
        let count = class(count.into()).min(COUNT_CLASSES - 1);
        let size = class(bytes).min(SIZE_CLASSES - 1);
        self.methods[(place + count) * SIZE_CLASSES + size]
    }
}

/// Class of a number: four times its power of two, plus its next two bits.
#[inline]
const fn class(number: u64) -> usize {
    let number = if number == 0 { 1 } else { number };
    let power = number.ilog2();
    // The bits below the highest one, as if the number had at least three.
    let next = if power >= 2 { number >> (power - 2) } else { number << (2 - power) };
    (4 * power) as usize + (next & 3) as usize
}

/// A number in the middle of a class.
fn middle(class: usize) -> u64 {
    let (power, next) = (class / 4, class as u64 % 4);
    let (from, to) = (4 + next, 5 + next);
    match power {
        0..3 => (from << power) / 4,
        power => ((from + to) << power) / 8,
    }
    .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::CopyPoint;

    #[test]
    fn classes_ascend_and_the_middle_of_a_class_is_in_it() {
        let mut before = 0;
        for number in 1..100_000_u64 {
            let class = class(number);
            assert!(class >= before, "{number}");
            before = class;
            if number >= 4 {
                assert_eq!(super::class(middle(class)), class, "{number}");
                assert!((middle(class) as f64 / number as f64).log2().abs() < 0.2, "{number} {}", middle(class));
            } else {
                assert_eq!(middle(class), number);
            }
        }
        assert_eq!((class(0), class(1), class(u64::MAX)), (0, 0, 255));
    }

    #[test]
    fn every_count_and_size_has_the_best_method_of_its_class() {
        let point =
            |by, copies, size_bytes, ns| CopyPoint { direction: CopyDirection::FromDevice, by, copies, size_bytes, ns };
        let points = vec![
            point(CopyBy::Loop, 1, 64, 1000.0),
            point(CopyBy::Loop, 100, 64, 100_000.0),
            point(CopyBy::Batch, 1, 64, 8000.0),
            point(CopyBy::Batch, 100, 64, 9000.0),
        ];
        let plan = CopyPlan::new(&CopyTable::new(String::new(), points).unwrap());
        let chosen = |count| plan.choose(64, count, CopyDirection::FromDevice);
        assert_eq!([0, 1, 7, 10, 500, u32::MAX].map(chosen), {
            let (one, other) = (Some(CopyBy::Loop), Some(CopyBy::Batch));
            [one, one, one, other, other, other]
        });
        assert_eq!(plan.choose(u64::MAX, 1, CopyDirection::FromDevice), Some(CopyBy::Loop));
        assert_eq!(plan.choose(64, 1, CopyDirection::ToDevice), None);
    }
}
