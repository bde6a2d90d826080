//! Where a curve steps up, if it does, and how sure that is.
//!
//! The rule. The height of a place is the 5th percentile of its samples: whoever else uses the core or its
//! buffers can only make it wait longer, so the calmest samples are the truest. Its spread is the distance from
//! there to the 10th percentile. Between two neighbouring places there is a *gap* if every place to the right is at
//! least twice as high as every place to the left, and if that holds even when each place is moved towards the other
//! side by twice its own spread. Neighbouring gaps are one climb over several places. Then:
//!
//! - one gap is a step, and the answer;
//! - one climb: there is something, and noise or a slope hides where it begins;
//! - no gap, and the right end less than twice as high as the left one: there is no step;
//! - no gap, but the right end twice as high or more: there is something, and noise or a slope hides where;
//! - several steps: none of them is *the* step.
//!
//! At either end there must be two places, because one place alone may be an accident.

/// How many times as high the right side must be.
const TIMES: f64 = 2.0;
/// How many spreads each place is moved towards the other side.
const SPREADS: f64 = 2.0;
/// Places a side must have.
const PLACES: usize = 2;

/// One place of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Height {
    /// The 5th percentile of its samples.
    pub(crate) low: f64,
    /// From there to the 10th.
    pub(crate) spread: f64,
}

impl Height {
    /// Of these samples; `None` if there are none, or one is no number.
    pub(crate) fn of(samples: &[f64]) -> Option<Height> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let percentile = |percent: usize| sorted.get((sorted.len().checked_sub(1)? * percent + 50) / 100).copied();
        let (low, tenth) = (percentile(5)?, percentile(10)?);
        sorted.iter().all(|sample| sample.is_finite()).then_some(Height { low, spread: tenth - low })
    }
}

/// Why a curve has no one step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NoStep {
    /// Both ends are about as high.
    Level {
        /// The right end over the left one.
        times: f64,
    },
    /// The right end is higher, and nowhere is the curve low on one side and high on the other.
    Blurred {
        /// The right end over the left one.
        times: f64,
    },
    /// It steps at each of these places.
    Several(Vec<usize>),
    /// There are too few places, or some are no number.
    TooFew,
}

impl NoStep {
    /// In words; `name` says what stands at a place.
    pub(crate) fn in_words(&self, name: &dyn Fn(usize) -> u64) -> String {
        match self {
            NoStep::Level { times } => {
                format!("there is no step: the time of a line grows {times:.1}-fold over the whole curve")
            }
            NoStep::Blurred { times } => format!(
                "there is no clear step: the time of a line grows {times:.1}-fold over the curve, but samples spread \
                 or it climbs slowly, so that no place parts low from high"
            ),
            NoStep::Several(places) => {
                let names: Vec<String> = places.iter().map(|place| name(*place).to_string()).collect();
                format!("there are several steps, after {} lines", names.join(" and after "))
            }
            NoStep::TooFew => "there are too few points for a step".to_owned(),
        }
    }
}

/// The place after which the curve steps up, by the rule above.
///
/// # Errors
/// [`NoStep`] with the reason.
pub(crate) fn steps(curve: &[Height]) -> Result<usize, NoStep> {
    let is_sound = |height: &Height| height.low.is_finite() && height.low > 0.0 && height.spread.is_finite();
    if curve.len() < 2 * PLACES || !curve.iter().all(is_sound) {
        return Err(NoStep::TooFew);
    }
    let highest = |left: &[Height]| left.iter().map(|h| h.low + SPREADS * h.spread).fold(0.0, f64::max);
    let lowest = |right: &[Height]| right.iter().map(|h| h.low - SPREADS * h.spread).fold(f64::INFINITY, f64::min);
    let is_gap = |end: &usize| lowest(&curve[*end..]) >= TIMES * highest(&curve[..*end]);
    let gaps: Vec<usize> = (PLACES..=curve.len() - PLACES).filter(is_gap).map(|end| end - 1).collect();
    let begins = |place: &&usize| **place == 0 || !gaps.contains(&(**place - 1));
    let begun: Vec<usize> = gaps.iter().filter(begins).copied().collect();
    match &*begun {
        [one] if gaps.len() == 1 => Ok(*one),
        [] | [_] => {
            let end = |places: &[Height]| places.iter().map(|height| height.low).sum::<f64>() / places.len() as f64;
            let third = (curve.len() / 3).max(1);
            let times = end(&curve[curve.len() - third..]) / end(&curve[..third]);
            Err(if times < TIMES { NoStep::Level { times } } else { NoStep::Blurred { times } })
        }
        _ => Err(NoStep::Several(begun)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(heights: &[f64], spread: f64) -> Vec<Height> {
        heights.iter().map(|low| Height { low: *low, spread }).collect()
    }

    #[test]
    fn a_height_is_that_of_the_calmest_twentieth() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(Height::of(&samples), Some(Height { low: 5.0, spread: 5.0 }));
        assert_eq!(Height::of(&[7.0]), Some(Height { low: 7.0, spread: 0.0 }));
        assert_eq!(Height::of(&[]), None);
        assert_eq!(Height::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn samples_that_somebody_spoilt_do_not_hide_a_step() {
        // Seven of eight samples of each low place took five to forty times as long.
        let spoilt = |low: f64| (0..200).map(move |n| if n % 8 == 0 { low } else { low * f64::from(5 + n % 35) });
        let places = (0..20).map(|place| Height::of(&spoilt(if place < 8 { 20.0 } else { 350.0 }).collect::<Vec<_>>()));
        assert_eq!(steps(&places.map(Option::unwrap).collect::<Vec<_>>()), Ok(7));
    }

    #[test]
    fn a_step_of_twice_the_height_is_found_and_one_a_little_lower_is_not() {
        assert_eq!(steps(&curve(&[10.0, 10.0, 10.0, 20.0, 20.0], 0.0)), Ok(2));
        let lower = steps(&curve(&[10.0, 10.0, 10.0, 19.9, 19.9], 0.0));
        assert!(matches!(lower, Err(NoStep::Level { .. })), "{lower:?}");
    }

    #[test]
    fn a_step_must_be_clear_of_two_spreads_on_both_sides() {
        // 10 + 2 x 1.5 = 13, doubled 26; 29 - 3 = 26.
        assert_eq!(steps(&curve(&[10.0, 10.0, 29.0, 29.0], 1.5)), Ok(1));
        let blurred = steps(&curve(&[10.0, 10.0, 28.9, 28.9], 1.5));
        assert!(matches!(blurred, Err(NoStep::Blurred { .. })), "{blurred:?}");
    }

    #[test]
    fn noise_that_lifts_one_low_place_among_the_high_hides_the_step() {
        let found = steps(&curve(&[20.0, 21.0, 350.0, 20.0, 21.0, 354.0, 360.0, 368.0], 0.5));
        assert!(matches!(found, Err(NoStep::Blurred { .. })), "{found:?}");
    }

    #[test]
    fn two_steps_are_both_named() {
        let found = steps(&curve(&[10.0, 10.0, 10.0, 40.0, 40.0, 40.0, 160.0, 160.0], 0.1));
        assert_eq!(found, Err(NoStep::Several(vec![2, 5])));
    }

    #[test]
    fn a_climb_over_several_places_begins_nowhere_for_sure() {
        let climb = steps(&curve(&[10.0, 10.0, 10.0, 40.0, 160.0, 160.0], 0.1));
        assert!(matches!(climb, Err(NoStep::Blurred { .. })), "{climb:?}");
        // The place between is less than twice as high as those below: one gap, which is the step.
        assert_eq!(steps(&curve(&[10.0, 10.0, 10.0, 19.0, 160.0, 160.0], 0.1)), Ok(3));
    }

    #[test]
    fn a_level_curve_and_a_slope_have_none() {
        assert!(matches!(steps(&curve(&[20.0; 40], 1.0)), Err(NoStep::Level { .. })));
        let slope: Vec<f64> = (1..=40).map(|place| f64::from(place) * 10.0).collect();
        assert!(matches!(steps(&curve(&slope, 0.1)), Err(NoStep::Blurred { .. })));
        let falling: Vec<f64> = slope.into_iter().rev().collect();
        assert!(matches!(steps(&curve(&falling, 0.1)), Err(NoStep::Level { .. })));
    }

    #[test]
    fn one_place_at_an_end_is_an_accident_and_not_a_step() {
        assert!(steps(&curve(&[10.0, 10.0, 10.0, 10.0, 90.0], 0.1)).is_err());
        assert!(steps(&curve(&[10.0, 90.0, 90.0, 90.0, 90.0], 0.1)).is_err());
    }

    #[test]
    fn too_few_places_and_what_is_no_number_have_none() {
        assert_eq!(steps(&curve(&[1.0, 9.0, 9.0], 0.0)), Err(NoStep::TooFew));
        assert_eq!(steps(&curve(&[1.0, 1.0, f64::NAN, 9.0], 0.0)), Err(NoStep::TooFew));
        assert_eq!(steps(&[]), Err(NoStep::TooFew));
    }
}
