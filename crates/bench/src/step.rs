//! Detection of a step in a curve.
//!
//! The rule: the height of a point is the 5th percentile of its samples, because disturbances only
//! make samples longer. Its spread is the distance from there to the 10th percentile. Between two
//! neighbouring points there is a *gap* if every point to the right is at least twice as high as
//! every point to the left. That must hold even when each point is moved towards the other side by
//! twice its own spread. Neighbouring gaps form one climb over several points. The result is:
//! - one gap: it is the step;
//! - one climb: there is a rise, and noise or a slope hides its position;
//! - no gap, and the right end is less than twice as high as the left end: there is no step;
//! - no gap, but the right end is at least twice as high: there is a rise, and noise or a slope
//!   hides its position;
//! - several steps: none of them is *the* step.
//!
//! Each side needs at least two points, because a single point may be an outlier.

/// Smallest ratio of heights of the right to the left side.
const TIMES: f64 = 2.0;
/// Number of spreads by which each point is moved towards the other side.
const SPREADS: f64 = 2.0;
/// Smallest number of points per side.
const PLACES: usize = 2;

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Height {
    /// The 5th percentile of its samples.
    pub(crate) low: f64,
    /// Distance from there to the 10th percentile.
    pub(crate) spread: f64,
}

impl Height {
    /// The height of these samples; `None` for no samples, or if one is not finite.
    pub(crate) fn of(samples: &[f64]) -> Option<Height> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let percentile = |percent: usize| sorted.get((sorted.len().checked_sub(1)? * percent + 50) / 100).copied();
        let (low, tenth) = (percentile(5)?, percentile(10)?);
        sorted.iter().all(|sample| sample.is_finite()).then_some(Height { low, spread: tenth - low })
    }
}

/// A curve has no single step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NoStep {
    /// Both ends are similarly high.
    Level {
        /// Height of the right end over that of the left end.
        times: f64,
    },
    /// The right end is higher, but no point separates low from high.
    Blurred {
        /// Height of the right end over that of the left end.
        times: f64,
    },
    /// There are steps after all of these points.
    Several(Vec<usize>),
    /// There are too few points, or some are not finite.
    TooFew,
}

impl NoStep {
    /// The reason in words; `name` converts a point's index to its number of lines.
    pub(crate) fn in_words(&self, name: &dyn Fn(usize) -> u64) -> String {
        match self {
            NoStep::Level { times } => {
                format!("there is no step: the time of a line grows {times:.1}-fold over the whole curve")
            }
            NoStep::Blurred { times } => format!(
                "there is no clear step: the time of a line grows {times:.1}-fold over the curve, but samples spread \
                 or it climbs slowly, so that no point separates low from high"
            ),
            NoStep::Several(places) => {
                let names: Vec<String> = places.iter().map(|place| name(*place).to_string()).collect();
                format!("there are several steps, after {} lines", names.join(" and after "))
            }
            NoStep::TooFew => "there are too few points for a step".to_owned(),
        }
    }
}

/// The index of the point before the step, by the rule above.
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
    fn a_height_is_the_fifth_percentile() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(Height::of(&samples), Some(Height { low: 5.0, spread: 5.0 }));
        assert_eq!(Height::of(&[7.0]), Some(Height { low: 7.0, spread: 0.0 }));
        assert_eq!(Height::of(&[]), None);
        assert_eq!(Height::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn disturbed_samples_do_not_hide_a_step() {
        // Seven of eight samples of each low point are five to forty times longer.
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
    fn a_step_must_exceed_two_spreads_on_both_sides() {
        // 10 + 2 x 1.5 = 13, doubled 26; 29 - 3 = 26.
        assert_eq!(steps(&curve(&[10.0, 10.0, 29.0, 29.0], 1.5)), Ok(1));
        let blurred = steps(&curve(&[10.0, 10.0, 28.9, 28.9], 1.5));
        assert!(matches!(blurred, Err(NoStep::Blurred { .. })), "{blurred:?}");
    }

    #[test]
    fn one_low_point_among_high_ones_hides_the_step() {
        let found = steps(&curve(&[20.0, 21.0, 350.0, 20.0, 21.0, 354.0, 360.0, 368.0], 0.5));
        assert!(matches!(found, Err(NoStep::Blurred { .. })), "{found:?}");
    }

    #[test]
    fn two_steps_are_both_named() {
        let found = steps(&curve(&[10.0, 10.0, 10.0, 40.0, 40.0, 40.0, 160.0, 160.0], 0.1));
        assert_eq!(found, Err(NoStep::Several(vec![2, 5])));
    }

    #[test]
    fn a_climb_over_several_points_has_no_position() {
        let climb = steps(&curve(&[10.0, 10.0, 10.0, 40.0, 160.0, 160.0], 0.1));
        assert!(matches!(climb, Err(NoStep::Blurred { .. })), "{climb:?}");
        // The middle point is less than twice as high as the lower ones, so there is one gap, the
        // step.
        assert_eq!(steps(&curve(&[10.0, 10.0, 10.0, 19.0, 160.0, 160.0], 0.1)), Ok(3));
    }

    #[test]
    fn a_level_curve_and_a_slope_have_no_step() {
        assert!(matches!(steps(&curve(&[20.0; 40], 1.0)), Err(NoStep::Level { .. })));
        let slope: Vec<f64> = (1..=40).map(|place| f64::from(place) * 10.0).collect();
        assert!(matches!(steps(&curve(&slope, 0.1)), Err(NoStep::Blurred { .. })));
        let falling: Vec<f64> = slope.into_iter().rev().collect();
        assert!(matches!(steps(&curve(&falling, 0.1)), Err(NoStep::Level { .. })));
    }

    #[test]
    fn a_single_point_at_an_end_is_not_a_step() {
        assert!(steps(&curve(&[10.0, 10.0, 10.0, 10.0, 90.0], 0.1)).is_err());
        assert!(steps(&curve(&[10.0, 90.0, 90.0, 90.0, 90.0], 0.1)).is_err());
    }

    #[test]
    fn too_few_points_and_invalid_numbers_have_no_step() {
        assert_eq!(steps(&curve(&[1.0, 9.0, 9.0], 0.0)), Err(NoStep::TooFew));
        assert_eq!(steps(&curve(&[1.0, 1.0, f64::NAN, 9.0], 0.0)), Err(NoStep::TooFew));
        assert_eq!(steps(&[]), Err(NoStep::TooFew));
    }
}
