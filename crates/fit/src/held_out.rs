//! Sizes that a fit does not see, to tell how good it is.

use lanemark_record::Residual;

/// With fewer sizes than these, nothing is held out: a curve of three points is no curve.
const LEAST_SIZES: usize = 6;

/// An error that is still called small, in percent.
const SMALL_PERCENT: f64 = 10.0;

/// Which of these are held out, by place: of each curve, which is those of one name, every second size, the first and
/// the last not among them where their number is odd.
pub(crate) fn held_out<'a>(curves: impl Iterator<Item = (&'a str, u64)>) -> Vec<bool> {
    let all: Vec<(&str, u64)> = curves.collect();
    let is_held_out = |(name, size): &(&str, u64)| {
        let mut sizes: Vec<u64> = all.iter().filter(|(other, _)| other == name).map(|(_, size)| *size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.len() >= LEAST_SIZES && sizes.iter().position(|one| one == size).is_some_and(|place| place % 2 == 1)
    };
    all.iter().map(is_held_out).collect()
}

/// How large some errors are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// How many there are.
    pub count: usize,
    /// The middle one without its sign, in percent.
    pub median_percent: f64,
    /// The largest without its sign, in percent.
    pub worst_percent: f64,
}

impl Errors {
    /// Of these; `None` of none.
    #[must_use]
    pub fn of(residuals: &[Residual]) -> Option<Errors> {
        let mut sizes: Vec<f64> = residuals.iter().map(|residual| residual.error_percent.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let worst_percent = *sizes.last()?;
        let (below, above) = (sizes[(sizes.len() - 1) / 2], sizes[sizes.len() / 2]);
        Some(Errors { count: sizes.len(), median_percent: f64::midpoint(below, above), worst_percent })
    }
}

/// What sizes that were held out say about a fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They come out as they were measured.
    Predicts,
    /// They do not, though those that were fitted to do.
    FollowsTheDataOnly,
    /// Those that were fitted to do not come out either.
    LacksSomething,
}

impl Verdict {
    /// From the errors of both halves: 10 % of the worst is where it turns.
    #[must_use]
    pub fn of(fitted: &Errors, held_out: &Errors) -> Verdict {
        match (fitted.worst_percent <= SMALL_PERCENT, held_out.worst_percent <= SMALL_PERCENT) {
            (false, _) => Verdict::LacksSomething,
            (true, false) => Verdict::FollowsTheDataOnly,
            (true, true) => Verdict::Predicts,
        }
    }

    /// In a sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Verdict::Predicts => "good: sizes that the fit has not seen come out within 10 %",
            Verdict::FollowsTheDataOnly => {
                "doubtful: it follows the sizes it was fitted to and not those between: measure more sizes, or let fewer \
                 numbers be unknown"
            }
            Verdict::LacksSomething => {
                "wrong: no values of these numbers follow the data: something that is taken as known is otherwise, or \
                 the card does what the platform cannot say"
            }
        }
    }

    /// In a word, for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Predicts => "predicts",
            Verdict::FollowsTheDataOnly => "follows_the_data_only",
            Verdict::LacksSomething => "lacks_something",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_size_of_a_curve_of_six_is_held_out_and_none_of_five() {
        let curve = |name, count| (1..=count).map(move |size| (name, size * 64));
        let which = held_out(curve("a", 6).chain(curve("b", 5)));
        assert_eq!(which[..6], [false, true, false, true, false, true]);
        assert!(which[6..].iter().all(|out| !out));
        assert_eq!(held_out(curve("a", 7)).iter().filter(|out| **out).count(), 3);
    }

    #[test]
    fn a_size_measured_twice_is_in_one_half() {
        let sizes = [64, 64, 128, 128, 256, 256, 512, 1024, 2048];
        let which = held_out(sizes.iter().map(|size| ("a", *size)));
        assert_eq!(which, [false, false, true, true, false, false, true, false, true]);
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
    fn errors_are_summed_up_without_their_signs() {
        let found = errors(&[1.0, -4.0, 2.0, -3.0]);
        assert_eq!((found.count, found.median_percent, found.worst_percent), (4, 2.5, 4.0));
        assert_eq!(Errors::of(&[]), None);
    }

    #[test]
    fn ten_percent_is_where_a_verdict_turns() {
        let verdict = |fitted, held_out| Verdict::of(&errors(&[fitted]), &errors(&[held_out]));
        assert_eq!(verdict(10.0, 10.0), Verdict::Predicts);
        assert_eq!(verdict(10.0, 10.1), Verdict::FollowsTheDataOnly);
        assert_eq!(verdict(10.1, 10.0), Verdict::LacksSomething);
    }
}
