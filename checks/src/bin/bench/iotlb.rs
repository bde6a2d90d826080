//! Lookups in the simulated IOTLB, compared with a hash map.

use super::{ROUNDS, row};
use lanemark_sim::{Iotlb, IotlbSpec};
use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

const LOOKUPS: u64 = 20_000_000;
/// Shapes of the adapter of 1995 and of the preset `card-gen5-x16-iommu`.
const SHAPES: [(&str, IotlbSpec); 2] = [
    ("256 sets of 1", IotlbSpec { sets: 256, ways: 1, index_bit: 0 }),
    ("64 sets of 8", IotlbSpec { sets: 64, ways: 8, index_bit: 0 }),
];

/// Looks up random pages, as many as fit and twice as many.
pub fn iotlb() {
    for (shape, spec) in SHAPES {
        let room = spec.sets * spec.ways as u64;
        for (what, pages) in [("that all fit", room), ("of which half fit", 2 * room)] {
            // A division would take as long as a lookup.
            let within = pages.next_power_of_two() - 1;
            let mut iotlb = Iotlb::new(spec);
            let rates = rates(|page| {
                let is_there = iotlb.find(page & within);
                if !is_there {
                    iotlb.enter(page & within);
                }
                is_there
            });
            row(&format!("iotlb: {shape}, pages {what}, M lookups/s (target: 50)"), rates);
        }
        let mut map: HashMap<u64, u64> = (0..room).map(|page| (page, page)).collect();
        row(
            "  baseline: the same pages in a hash map, counted",
            rates(|page| {
                map.get_mut(&(page & (room.next_power_of_two() - 1))).is_some_and(|count| {
                    *count += 1;
                    true
                })
            }),
        );
    }
}

fn rates(mut look_up: impl FnMut(u64) -> bool) -> Vec<f64> {
    let round = |_| {
        let start = Instant::now();
        let (mut state, mut found) = (1_u64, 0_u64);
        for _ in 0..LOOKUPS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            found += u64::from(look_up(state >> 40));
        }
        black_box(found);
        LOOKUPS as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    (0..ROUNDS).map(round).collect()
}
