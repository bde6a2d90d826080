//! Intervals have their stated coverage, and two modes are detected reliably.

use lanemark_record::{Interval, two_humps};

/// Number of sets of samples per distribution and count.
const SETS: usize = 2000;

/// A random value of a distribution.
type Draw = fn(&mut fastrand::Rng) -> f64;

fn normal(random: &mut fastrand::Rng) -> f64 {
    // Box and Muller.
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

fn exponential(random: &mut fastrand::Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

/// Distributions with their true medians, all positive.
const DISTRIBUTIONS: [(&str, Draw, f64); 4] = [
    ("normal", |random| 100.0 + 10.0 * normal(random), 100.0),
    ("uniform", |random| 50.0 + 100.0 * random.f64(), 100.0),
    ("exponential", |random| 10.0 + 50.0 * exponential(random), 10.0 + 50.0 * std::f64::consts::LN_2),
    ("log-normal", |random| normal(random).exp(), 1.0),
];

fn set(draw: Draw, count: usize, random: &mut fastrand::Rng) -> Vec<f64> {
    (0..count).map(|_| draw(random)).collect()
}

/// Percentage of 100 cases in which a condition holds.
fn percent(mut is_so: impl FnMut() -> bool) -> f64 {
    100.0 * (0..SETS).filter(|_| is_so()).count() as f64 / SETS as f64
}

fn holds(interval: Interval, truth: f64) -> bool {
    (interval.low..=interval.high).contains(&truth)
}

#[test]
fn intervals_of_medians_cover_95_percent() {
    let mut random = fastrand::Rng::with_seed(3);
    for (name, draw, truth) in DISTRIBUTIONS {
        for (count, least, most) in
            [(8, 92.0, 99.5), (10, 92.0, 99.0), (15, 92.0, 97.5), (40, 92.0, 98.0), (101, 93.0, 97.0)]
        {
            let found = percent(|| holds(Interval::of_median(&set(draw, count, &mut random)).unwrap(), truth));
            assert!((least..=most).contains(&found), "{name}, {count} samples: {found} %");
        }
    }
}

#[test]
fn intervals_of_ratios_cover_95_percent() {
    let mut random = fastrand::Rng::with_seed(4);
    for (name, draw, truth) in DISTRIBUTIONS {
        let [(_, other, other_truth), ..] = DISTRIBUTIONS;
        for count in [15, 40] {
            let found = percent(|| {
                let (over, under) = (set(draw, count, &mut random), set(other, 30, &mut random));
                holds(Interval::of_ratio(&over, &under).unwrap(), truth / other_truth)
            });
            assert!((92.0..=98.0).contains(&found), "{name}, {count} samples: {found} %");
        }
    }
}

#[test]
fn interval_widths_shrink_with_the_square_root_of_the_count() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut width = |count| {
        let widths = (0..200).map(|_| {
            let interval = Interval::of_median(&set(DISTRIBUTIONS[0].1, count, &mut random)).unwrap();
            interval.high - interval.low
        });
        widths.sum::<f64>()
    };
    let ratio = width(25) / width(400);
    assert!((3.3..=4.7).contains(&ratio), "16 times the samples: {ratio} times narrower");
}

#[test]
fn one_hump_is_rarely_taken_for_two() {
    let mut random = fastrand::Rng::with_seed(6);
    for (name, draw, _) in DISTRIBUTIONS {
        for (count, most) in [(15, 5.0), (30, 2.0), (60, 0.9), (1000, 0.1)] {
            let found = percent(|| two_humps(&set(draw, count, &mut random)).is_some());
            assert!(found <= most, "{name}, {count} samples: {found} %");
        }
    }
}

#[test]
fn two_humps_are_usually_detected() {
    let mut random = fastrand::Rng::with_seed(7);
    let pair = |random: &mut fastrand::Rng, apart: f64, spread: f64, count: usize| {
        let one = |place: usize, random: &mut fastrand::Rng| {
            (if place.is_multiple_of(2) { 1.0 } else { apart }) * (1.0 + spread * normal(random))
        };
        (0..count).map(|place| one(place, random)).collect::<Vec<f64>>()
    };
    for (apart, spread, least) in [(3.0, 0.1, 93.0), (1.5, 0.03, 95.0), (1.25, 0.02, 95.0)] {
        for count in [15, 30, 60, 200, 1000] {
            let found = percent(|| two_humps(&pair(&mut random, apart, spread, count)).is_some());
            assert!(found >= least, "{apart} times apart, {count} samples: {found} %");
        }
    }
}
