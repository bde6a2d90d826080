//! Choice of a method for many small copies: the look-up that a program makes before each group of copies.

use super::{ROUNDS, row};
use lanemark_copy_plan::{CopyPlan, CopyPoint, CopyTable};
use lanemark_method::{CopyBy, CopyDirection};
use std::hint::black_box;
use std::time::Instant;

/// Choices per round; each has another count and size.
const CHOICES: u64 = 1 << 22;

/// Counts and sizes change from choice to choice, so the whole table is in use.
pub fn copy_plan() {
    let Ok(table) = CopyTable::new("a machine".to_owned(), points()) else { return eprintln!("copy_plan: no table") };
    let plan = CopyPlan::new(&table);
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let mut state = 1_u64;
        let start = Instant::now();
        for _ in 0..CHOICES {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            let (bytes, count) = (state >> 44, (state >> 32) as u32 & 511);
            let direction = if state >> 63 == 0 { CopyDirection::ToDevice } else { CopyDirection::FromDevice };
            black_box(plan.choose(black_box(bytes), black_box(count), direction));
        }
        times.push(start.elapsed().as_secs_f64() * 1e9 / CHOICES as f64);
    }
    row("copy_plan: a choice, with a random count and size, ns (target: 20)", times);
}

/// A loop that takes 2 us per piece, and a kernel that takes 9 us for all.
fn points() -> Vec<CopyPoint> {
    let mut points = Vec::new();
    for direction in [CopyDirection::ToDevice, CopyDirection::FromDevice] {
        for (copies, size_bytes) in [(1, 64), (500, 64), (1, 1 << 20), (500, 1 << 20)] {
            let moved = f64::from(copies) * size_bytes as f64 / 50.0;
            let costs = [(CopyBy::Loop, 3000.0 + 2000.0 * f64::from(copies)), (CopyBy::InPlace, 9000.0)];
            points.extend(costs.map(|(by, ns)| CopyPoint { direction, by, copies, size_bytes, ns: ns + moved }));
        }
    }
    points
}
