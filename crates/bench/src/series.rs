//! Series of default sizes, and which of them are measured if the time budget does not suffice for
//! all.
//!
//! The smallest and the largest size of each series are measured, except one that takes longer than
//! all other sizes together. The others are ranked by their distance from those ranked before: first
//! the middle, then the quarters, and so on. All series have the same ranking, so that the same sizes
//! remain everywhere.

use crate::case::Case;
use lanemark_units::Ticks;

/// Series of cases. Cases of one series differ in nothing but their size.
pub(crate) struct Series {
    cases: Vec<Place>,
    /// Number of different sizes.
    sizes: usize,
}

/// A case in its series.
struct Place {
    /// Whether it has the smallest or the largest size of its series.
    is_end: bool,
    /// Whether it has the smallest size of its series.
    is_least: bool,
    /// Rank of its size among all sizes.
    rank: usize,
}

impl Series {
    pub(crate) fn of(cases: &[Case]) -> Series {
        let mut sizes: Vec<u64> = cases.iter().map(|case| case.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let ranked = spread(sizes.len());
        let rank = |size: u64| ranked.iter().position(|place| sizes[*place] == size).unwrap_or(0);
        let place = |case: &Case| {
            let same = || cases.iter().filter(|other| is_same_series(case, other)).map(|other| other.size);
            let is_least = same().min() == Some(case.size);
            Place { is_end: is_least || same().max() == Some(case.size), is_least, rank: rank(case.size) }
        };
        Series { cases: cases.iter().map(place).collect(), sizes: sizes.len() }
    }

    /// Whether each case is measured further, if it needs the time `missing` and all together have
    /// `remaining`. Sizes are kept in the order of their ranks, up to the last rank that all fit; a
    /// cheap size behind an expensive one is left out with it. The ends stay, except a size that needs
    /// more time than all others together. A case that needs no time stays.
    pub(crate) fn affordable(&self, missing: &[Ticks], remaining: Ticks) -> Vec<bool> {
        let outsized = self.outsized(missing, remaining);
        let kept = |ranks: usize| {
            let cases = self.cases.iter().zip(missing);
            cases.map(move |(case, missing)| {
                let is_chosen = case.is_end || case.rank < ranks;
                let is_outsized = Some(case.rank) == outsized && !case.is_least;
                is_chosen && !is_outsized || *missing == Ticks::ZERO
            })
        };
        let total = |ranks: usize| {
            let times = kept(ranks).zip(missing).filter(|(is_kept, _)| *is_kept).map(|(_, missing)| missing.0);
            times.fold(0, u64::saturating_add)
        };
        let ranks = (0..=self.sizes).rev().find(|ranks| total(*ranks) <= remaining.0).unwrap_or(0);
        kept(ranks).collect()
    }

    /// Rank of the size that needs more time than all others together, if not all sizes are affordable.
    fn outsized(&self, missing: &[Ticks], remaining: Ticks) -> Option<usize> {
        let mut prices = vec![0_u64; self.sizes];
        for (case, missing) in self.cases.iter().zip(missing) {
            prices[case.rank] = prices[case.rank].saturating_add(missing.0);
        }
        let total = prices.iter().copied().fold(0, u64::saturating_add);
        let is_outsized = |price: &u64| total > remaining.0 && *price > total - price;
        // Of two sizes, the dearer one is no exception.
        prices.iter().position(is_outsized).filter(|_| self.sizes > 2)
    }
}

/// Whether two cases differ in nothing but their size.
fn is_same_series(a: &Case, b: &Case) -> bool {
    a.method == b.method && a.alignment == b.alignment && a.region == b.region && a.caller == b.caller
}

/// The places 0 to `count - 1`, ranked: the ends, then each the farthest from those before.
fn spread(count: usize) -> Vec<usize> {
    let mut ranked: Vec<usize> = if count > 1 { vec![0, count - 1] } else { (0..count).collect() };
    while ranked.len() < count {
        let distance = |place: usize| ranked.iter().map(|other| other.abs_diff(place)).min().unwrap_or(0);
        // Of equally distant places the first.
        let Some(next) = (0..count).rev().max_by_key(|place| distance(*place)) else { break };
        ranked.push(next);
    }
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::Fence;
    use lanemark_method::Method;

    fn case(fence: Fence, size: u64) -> Case {
        Case::of_runtime(size, Method::Fence { fence })
    }

    fn ticks(times: &[u64]) -> Vec<Ticks> {
        times.iter().map(|time| Ticks(*time)).collect()
    }

    /// Nine sizes of one fence, and three of another.
    fn two_series() -> Vec<Case> {
        let long = (0..9).map(|power| case(Fence::Sfence, 64 << (2 * power)));
        long.chain([64, 256, 1024].map(|size| case(Fence::Mfence, size))).collect()
    }

    #[test]
    fn places_are_ranked_by_their_distance() {
        assert_eq!(spread(9), [0, 8, 4, 2, 6, 1, 3, 5, 7]);
        assert_eq!((spread(0), spread(1), spread(2), spread(3)), (vec![], vec![0], vec![0, 1], vec![0, 2, 1]));
    }

    #[test]
    fn as_many_sizes_are_kept_as_the_time_suffices_for() {
        let series = Series::of(&two_series()[..9]);
        let kept = |remaining| {
            let kept = series.affordable(&ticks(&[10; 9]), Ticks(remaining));
            (0..9).filter(|place| kept[*place]).collect::<Vec<_>>()
        };
        assert_eq!(kept(90), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(kept(89), [0, 1, 2, 3, 4, 5, 6, 8]);
        assert_eq!(kept(50), [0, 2, 4, 6, 8]);
        assert_eq!(kept(49), [0, 2, 4, 8]);
        assert_eq!(kept(30), [0, 4, 8]);
        assert_eq!(kept(20), [0, 8]);
        assert_eq!(kept(0), [0, 8], "the smallest and the largest stay");
    }

    #[test]
    fn a_size_dearer_than_all_others_together_is_left_out_first_unless_it_is_the_smallest() {
        let series = Series::of(&two_series()[..3]);
        let kept = |prices: [u64; 3], remaining| series.affordable(&ticks(&prices), Ticks(remaining));
        assert_eq!(kept([10, 10, 21], 41), [true; 3]);
        assert_eq!(kept([10, 10, 21], 40), [true, true, false]);
        assert_eq!(kept([10, 10, 20], 39), [true, false, true], "as dear as the others together");
        assert_eq!(kept([21, 10, 10], 40), [true, false, true]);
    }

    #[test]
    fn each_series_keeps_its_own_ends() {
        let series = Series::of(&two_series());
        let kept = series.affordable(&ticks(&[10; 12]), Ticks::ZERO);
        assert_eq!((0..12).filter(|place| kept[*place]).collect::<Vec<_>>(), [0, 8, 9, 11]);
    }

    #[test]
    fn complete_cases_stay() {
        let series = Series::of(&two_series()[..9]);
        let kept = series.affordable(&ticks(&[10, 10, 10, 0, 10, 10, 10, 10, 10]), Ticks::ZERO);
        assert_eq!((0..9).filter(|place| kept[*place]).collect::<Vec<_>>(), [0, 3, 8]);
    }

    #[test]
    fn cases_of_different_methods_or_alignments_are_never_left_out() {
        let other = Case { alignment: 8, ..case(Fence::Sfence, 64) };
        let cases = [case(Fence::Sfence, 64), other, case(Fence::Mfence, 256), case(Fence::Lfence, 1024)];
        assert_eq!(Series::of(&cases).affordable(&ticks(&[10; 4]), Ticks::ZERO), [true; 4]);
        assert_eq!(Series::of(&[]).affordable(&[], Ticks::ZERO), [false; 0]);
    }
}
