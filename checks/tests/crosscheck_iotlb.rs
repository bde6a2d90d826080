//! Comparison of the formula and the simulation of DMA behind an IOTLB: windows of about its size, in order and at
//! random, cold and warm.

mod random_platform;

use lanemark_machine::{Machine, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
use lanemark_model::predict;
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use random_platform::behind_iommu::{numbers, platform};
use random_platform::{Random, set};

/// Simulated time over that of the formula, minus 1, after `warmup_passes` iterations.
fn gap(platform: &Platform, transfer: Transfer, warmup_passes: u64) -> Option<f64> {
    let timeout = Ticks::whole_ns(1_000_000_000_000);
    let plan = Plan { timeout, warmup_passes, ..Plan::new(transfer, 1) };
    let said = predict(platform, &plan)?;
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    Some(samples.taken[0].delivered.as_ns() / said.delivered_ns - 1.0)
}

/// Gaps of the formula of one class of windows, and the cases.
#[derive(Default)]
struct Gaps(Vec<(f64, String)>);

impl Gaps {
    /// The smallest gap that at most this share of the cases exceeds, in either direction.
    fn of_all_but(&self, share: f64) -> f64 {
        let mut sizes: Vec<f64> = self.0.iter().map(|(gap, _)| gap.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        sizes[(sizes.len() - 1) - (sizes.len() as f64 * share) as usize]
    }

    /// Prints the median, what 95 % do not exceed and the worst case, and demands these limits.
    fn are_within(&self, class: &str, [median, of_95_percent, worst]: [f64; 3]) {
        let [at_half, at_95_percent, at_worst] = [0.5, 0.05, 0.0].map(|share| self.of_all_but(share));
        println!("{class}: {} cases, median {at_half:.4}, 95 % within {at_95_percent:.4}", self.0.len());
        let largest = self.0.iter().max_by(|one, other| one.0.abs().total_cmp(&other.0.abs()));
        println!("  worst {largest:?}");
        assert!(at_half <= median && at_95_percent <= of_95_percent && at_worst <= worst, "{class}: {largest:?}");
        // Times of arrival are lower bounds, so that a page may be taken for a miss that is a hit.
        let fastest = self.0.iter().min_by(|one, other| one.0.total_cmp(&other.0));
        assert!(fastest.is_some_and(|(gap, _)| *gap >= -FASTER), "{class}: {fastest:?}");
    }
}

/// Largest share by which the simulation may be faster than the formula.
const FASTER: f64 = 0.01;

/// A random window of about as many pages as the IOTLB has entries, and transfers through it.
fn transfer(random: &mut Random, platform: &Platform, is_random: bool) -> Transfer {
    let iommu = platform.iommu.as_ref().unwrap();
    let (page, entries) = (iommu.page_bytes.value, u64::from(iommu.iotlb_entries.value));
    let room = platform.memory.as_ref().unwrap().size_bytes.value / 2 / page;
    let pages = match random.below(4) {
        0 => 1 + random.below(2 * entries),
        1 => 1 + random.below(600),
        _ => entries * (8 + random.below(6)) / 10 + random.below(3),
    };
    let (bytes, verb) = (random.pick(&[64, 512, 4096, 10_000]), random.pick(&[Verb::Load, Verb::Store]));
    let stride = (page / random.pick(&[1, 1, 4])).max(bytes);
    let pattern = if is_random { Pattern::RandomStrided(stride) } else { Pattern::Strided(stride) };
    let len = (pages.clamp(1, room.min(2600)) * page).max(stride);
    let window = Window { offset: random.pick(&[0, 0, 64]), len, pattern };
    let places = window.places(bytes);
    let count = if is_random {
        // So few that the formula of requests without walks computes each transfer.
        random.pick(&[500, if bytes > 4096 { 500 } else { 1500 }])
    } else {
        random.pick(&[places, places, places.div_ceil(3), 2 * places + 1]).min(2500)
    };
    let outstanding = (verb == Verb::Load && random.below(3) == 0).then_some(1);
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding }
}

/// Misses of several outstanding requests, walks that wait for walkers and for each other, requests for a page whose walk
/// is outstanding, and pages that are evicted before their next use.
#[test]
fn windows_near_the_reach_of_the_iotlb_take_as_long_as_requests_that_wait_for_walks() {
    let mut random = Random(211);
    let mut classes = [Gaps::default(), Gaps::default(), Gaps::default(), Gaps::default()];
    for number in 0..720 {
        let mut platform = platform(&mut random);
        if random.below(2) == 0 {
            set(&mut platform, "dma.tags", random.pick(&[1.0, 4.0, 16.0, 64.0]));
        }
        let (is_random, warmup_passes) = (number % 2 == 1, [0, 1, 2][number / 2 % 3]);
        let transfer = transfer(&mut random, &platform, is_random);
        let Some(gap) = gap(&platform, transfer, warmup_passes) else { continue };
        let of = format!("{transfer:?} after {warmup_passes} on {}: {}", platform.name, numbers(&platform));
        classes[usize::from(is_random) * 2 + usize::from(warmup_passes > 0)].0.push((gap, of));
    }
    let names = ["in order, cold", "in order, warm", "at random, cold", "at random, warm"];
    for (gaps, name) in classes.iter().zip(names) {
        assert!(gaps.0.len() > 100, "{name}");
        gaps.are_within(name, [0.001, 0.03, 0.2]);
    }
}

/// The formula follows at most 65,536 requests. The others take the time of the last half of them.
#[test]
fn more_requests_than_are_followed_take_as_long_as_the_formula() {
    let mut random = Random(223);
    let mut gaps = Gaps::default();
    for number in 0..12 {
        let mut platform = platform(&mut random);
        for (key, value) in [("iommu.iotlb_ways", 1.0), ("iommu.iotlb_entries", 256.0), ("iommu.iotlb_ways", 4.0)] {
            set(&mut platform, key, value);
        }
        let page = platform.iommu.as_ref().unwrap().page_bytes.value;
        let pages = 200 + random.below(150).min(50_000_000 / page * 10);
        let is_random = number % 2 == 1;
        let pattern = if is_random { Pattern::RandomStrided(page / 4) } else { Pattern::Strided(page / 4) };
        let pages = pages.min(platform.memory.as_ref().unwrap().size_bytes.value / 2 / page);
        let window = Window { offset: 0, len: pages * page, pattern };
        let (verb, count) = (random.pick(&[Verb::Load, Verb::Store]), 65_537 + random.below(40_000));
        let transfer = Transfer { card: 0, verb, partner: Partner::Host, bytes: 64, count, window, outstanding: None };
        let warmup_passes = u64::from(number % 4 > 1);
        let gap = gap(&platform, transfer, warmup_passes).unwrap();
        let of = format!("{transfer:?} after {warmup_passes} on {}: {}", platform.name, numbers(&platform));
        gaps.0.push((gap, of));
    }
    gaps.are_within("more than are followed", [0.001, 0.01, 0.01]);
}
