//! Sizes that are held out from a fit, to judge it.

use lanemark_record::Residual;

/// Fewest sizes of a curve of which some are held out: the remaining half needs at least three points.
const LEAST_SIZES: usize = 6;

/// Largest error that counts as small, in percent.
pub(crate) const SMALL_PERCENT: f64 = 10.0;

/// Fewest sizes of reads and writes at once of which some are held out. The figures of single directions predict them, too.
const LEAST_SIZES_OF_BOTH: usize = 2;

/// Part of a curve that is predicted by a fit to the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Half {
    /// Which of both.
    pub(crate) is_second: bool,
    /// Whether the figure is of the smallest or largest size of its curve. The rest of the curve may not determine it: a time
    /// that shows at the smallest size only, for example. So the choice of a structure never holds it out.
    pub(crate) is_end: bool,
}

/// The half of its curve in which each of these figures is; `None` if the curve has too few sizes. A figure is the name of its
/// curve, its size, and whether it is of both directions at once.
///
/// The sizes of a curve are in the halves alternately; of an odd number of sizes, the first and the last are in the first
/// half. Both directions at once are held out from two sizes on, if another curve has enough sizes.
pub(crate) fn halves<'a>(curves: impl Iterator<Item = (&'a str, u64, bool)>) -> Vec<Option<Half>> {
    let all: Vec<(&str, u64, bool)> = curves.collect();
    let half = |(name, size, _): &(&str, u64, bool), least: usize| {
        let mut sizes: Vec<u64> = all.iter().filter(|(other, ..)| other == name).map(|(_, size, _)| *size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let place = sizes.iter().position(|one| one == size)?;
        let is_end = sizes.len() >= LEAST_SIZES && (place == 0 || place + 1 == sizes.len());
        (sizes.len() >= least).then_some(Half { is_second: place % 2 == 1, is_end })
    };
    let is_long = |figure: &(&str, u64, bool)| half(figure, LEAST_SIZES).is_some();
    let least_of_both = if all.iter().any(is_long) { LEAST_SIZES_OF_BOTH } else { LEAST_SIZES };
    all.iter().map(|figure| half(figure, if figure.2 { least_of_both } else { LEAST_SIZES })).collect()
}

/// As [`halves`], for figures of several windows of the same size: the curve and the window of each, `None` for one that has a
/// half already or no window.
pub(crate) fn halves_of_windows(figures: &[Option<(String, u64)>]) -> Vec<Option<Half>> {
    let of_windows = halves(figures.iter().flatten().map(|(curve, window)| (curve.as_str(), *window, false)));
    let mut next = of_windows.into_iter();
    figures.iter().map(|figure| figure.as_ref().and_then(|_| next.next().flatten())).collect()
}

/// Summary of a set of errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Number of errors.
    pub count: usize,
    /// Median absolute error, in percent.
    pub median_percent: f64,
    /// Mean absolute error, in percent.
    pub mean_percent: f64,
    /// Largest absolute error, in percent.
    pub worst_percent: f64,
}

impl Errors {
    /// Summarises the errors of `residuals`; `None` if it is empty.
    #[must_use]
    pub fn of(residuals: &[Residual]) -> Option<Errors> {
        let mut sizes: Vec<f64> = residuals.iter().map(|residual| residual.error_percent.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let worst_percent = *sizes.last()?;
        let (below, above) = (sizes[(sizes.len() - 1) / 2], sizes[sizes.len() / 2]);
        let (median_percent, mean_percent) =
            (f64::midpoint(below, above), sizes.iter().sum::<f64>() / sizes.len() as f64);
        Some(Errors { count: sizes.len(), median_percent, mean_percent, worst_percent })
    }
}

/// Verdict about a fit from its held-out sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The held-out sizes are predicted correctly.
    Predicts,
    /// The held-out sizes are predicted correctly, except for the smallest or the largest size of some curves.
    PredictsBetweenEnds,
    /// The fitted sizes are reproduced, the held-out ones are not, also between the ends of curves.
    FollowsTheDataOnly,
    /// Not even the fitted sizes are reproduced.
    LacksSomething,
}

impl Verdict {
    /// Verdict from the errors of both halves; the threshold is a largest error of 10 %. `misses_ends_only`: each held-out figure
    /// with a larger error is an end of its curve.
    #[must_use]
    pub fn of(fitted: &Errors, held_out: &Errors, misses_ends_only: bool) -> Verdict {
        match (fitted.worst_percent <= SMALL_PERCENT, held_out.worst_percent <= SMALL_PERCENT) {
            (false, _) => Verdict::LacksSomething,
            (true, false) if misses_ends_only => Verdict::PredictsBetweenEnds,
            (true, false) => Verdict::FollowsTheDataOnly,
            (true, true) => Verdict::Predicts,
        }
    }

    /// The verdict as a sentence for people.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Verdict::Predicts => "good: held-out sizes are predicted within 10 %",
            Verdict::PredictsBetweenEnds => {
                "good except at the ends of curves listed below: all other held-out sizes are predicted within 10 %; measure \
                 any size that you need near or beyond these ends"
            }
            Verdict::FollowsTheDataOnly => {
                "doubtful: it follows the fitted sizes and not the held-out ones between them: measure more sizes, or make \
                 fewer numbers unknown"
            }
            Verdict::LacksSomething => {
                "wrong: no values of these numbers follow the data: a number taken as known is wrong, or the platform \
                 cannot describe the card"
            }
        }
    }

    /// The verdict as an identifier, for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Predicts => "predicts",
            Verdict::PredictsBetweenEnds => "predicts_between_ends",
            Verdict::FollowsTheDataOnly => "follows_the_data_only",
            Verdict::LacksSomething => "lacks_something",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A curve of so many sizes, of one direction.
    fn curve(name: &str, count: u64) -> impl Iterator<Item = (&str, u64, bool)> {
        (1..=count).map(move |size| (name, size * 64, false))
    }

    /// Whether each figure is in the second half.
    fn seconds<'a>(figures: impl Iterator<Item = (&'a str, u64, bool)>) -> Vec<Option<bool>> {
        halves(figures).into_iter().map(|half| Some(half?.is_second)).collect()
    }

    #[test]
    fn sizes_of_a_curve_of_six_are_in_the_halves_alternately_and_those_of_five_in_none() {
        let which = seconds(curve("a", 6).chain(curve("b", 5)));
        assert_eq!(which[..6], [false, true, false, true, false, true].map(Some));
        assert!(which[6..].iter().all(Option::is_none));
        assert_eq!(seconds(curve("a", 7)).iter().filter(|half| **half == Some(true)).count(), 3);
    }

    #[test]
    fn the_ends_of_a_curve_of_six_are_its_smallest_and_its_largest_size() {
        let is_end = |figures: &[(&str, u64, bool)]| -> Vec<bool> {
            halves(figures.iter().copied()).into_iter().map(|half| half.is_some_and(|half| half.is_end)).collect()
        };
        let mut figures: Vec<(&str, u64, bool)> = curve("a", 6).collect();
        assert_eq!(is_end(&figures), [true, false, false, false, false, true]);
        // Two figures of both directions are predicted by the curve of one direction.
        figures.extend([("both", 64, true), ("both", 128, true)]);
        assert_eq!(is_end(&figures)[6..], [false, false]);
    }

    #[test]
    fn two_sizes_of_both_directions_are_held_out_beside_a_curve_of_six_only() {
        let both = |count| curve("both", count).map(|(name, size, _)| (name, size, true));
        assert_eq!(seconds(curve("a", 6).chain(both(2)))[6..], [Some(false), Some(true)]);
        assert_eq!(seconds(curve("a", 6).chain(both(1)))[6..], [None]);
        assert!(halves(curve("a", 5).chain(both(5))).iter().all(Option::is_none));
        assert!(halves(both(6)).iter().all(Option::is_some));
    }

    #[test]
    fn a_size_measured_twice_is_in_one_half() {
        let sizes = [64, 64, 128, 128, 256, 256, 512, 1024, 2048];
        let which = seconds(sizes.iter().map(|size| ("a", *size, false)));
        assert_eq!(which, [false, false, true, true, false, false, true, false, true].map(Some));
    }

    #[test]
    fn six_windows_of_a_size_are_in_the_halves_and_figures_without_a_window_in_none() {
        let of = |window: u64| Some(("reads of 64 B".to_owned(), window));
        let mut figures: Vec<Option<(String, u64)>> = vec![None];
        figures.extend((1..=5).map(of));
        assert!(halves_of_windows(&figures).iter().all(Option::is_none), "five windows");
        figures.extend([None, of(6)]);
        let found: Vec<Option<bool>> =
            halves_of_windows(&figures).into_iter().map(|half| Some(half?.is_second)).collect();
        let (first, second) = (Some(false), Some(true));
        assert_eq!(found, [None, first, second, first, second, first, None, second]);
    }

    fn errors(percents: &[f64]) -> Errors {
        let residual = |error_percent: &f64| Residual {
            what: String::new(),
            unit: "ns".to_owned(),
            measured: 1.0,
            simulated: 1.0,
            formula: None,
            error_percent: *error_percent,
        };
        Errors::of(&percents.iter().map(residual).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn errors_are_summarised_without_their_signs() {
        let found = errors(&[1.0, -4.0, 2.0, -3.0]);
        assert_eq!((found.count, found.median_percent, found.worst_percent), (4, 2.5, 4.0));
        assert_eq!(Errors::of(&[]), None);
    }

    #[test]
    fn the_verdict_changes_at_ten_percent() {
        let verdict = |fitted, held_out| Verdict::of(&errors(&[fitted]), &errors(&[held_out]), false);
        assert_eq!(verdict(10.0, 10.0), Verdict::Predicts);
        assert_eq!(verdict(10.0, 10.1), Verdict::FollowsTheDataOnly);
        assert_eq!(verdict(10.1, 10.0), Verdict::LacksSomething);
    }

    #[test]
    fn missed_ends_of_curves_limit_where_a_fit_predicts_and_nothing_else() {
        let verdict = |fitted, held_out| Verdict::of(&errors(&[fitted]), &errors(&[held_out]), true);
        assert_eq!(verdict(10.0, 10.0), Verdict::Predicts);
        assert_eq!(verdict(10.0, 10.1), Verdict::PredictsBetweenEnds);
        assert_eq!(verdict(10.1, 10.1), Verdict::LacksSomething);
    }
}
