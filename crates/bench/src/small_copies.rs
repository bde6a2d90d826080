//! How should a program copy many small pieces to a device, or back?
//!
//! Traffic: that of the method: copies by the engine, or loads and stores of a kernel.
//!
//! Unit: nanoseconds from the first call until all pieces have arrived and the program continues,
//! for all pieces together. The pieces are in page-locked memory, apart from each other.
//!
//! Spoiled by: other programs; an idle device, whose first calls are slower.
//!
//! Origin: the copy benchmarks of GPU programmers, who compare a loop of asynchronous copies with a
//! batch call, a packed copy and a kernel. Where these cross depends on the machine, so counts and
//! sizes are few and far apart: the crate `copy_plan` interpolates between them.
//!
//! Accesses of a core through a BAR are left out: no backend maps the memory of a GPU into a
//! program, and the questions about MMIO have their cost on a card.

use crate::case::{Axes, Case};
use crate::needs;
use crate::question::{LeftOut, Question};
use lanemark_machine::{CopyBy, Facts, Plan, SmallCopies};
use lanemark_method::{CopyDirection, Method};
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "small_copies",
    summary: "time of many small copies by a loop, a batch call, a packed copy, and a kernel",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 1,
    most_passes: |_| 64,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: false,
    left_out,
};

/// Sizes of a piece: a factor of eight apart, from a cache line on.
const SIZES: [u64; 5] = [64, 512, 4096, 32_768, 262_144];
/// Numbers of pieces: a factor of about eight apart, up to the most.
const COUNTS: [u32; 4] = [1, 8, 64, SmallCopies::MOST_COPIES];

fn left_out(facts: &Facts) -> Option<LeftOut> {
    if let Some(all) = needs::kernel_runtime(facts) {
        return Some(all);
    }
    let made = facts.runtime.as_ref().map_or(&[][..], |runtime| &runtime.small_copies);
    if made.is_empty() {
        let needs = "this runtime is not driven with batches and kernels that copy: use cuda:0, or a platform with sections [runtime], [driver] and [dma]";
        return Some(LeftOut::all(needs));
    }
    let missing: Vec<&str> = CopyBy::ALL.into_iter().filter(|by| !made.contains(by)).map(CopyBy::in_words).collect();
    let because = if made.contains(&CopyBy::Batch) {
        "no backend maps the memory of a GPU into a program; the questions about MMIO have the cost of accesses through a BAR"
    } else {
        "no backend maps the memory of a GPU into a program, and a batch needs CUDA 12.8 or later"
    };
    (!missing.is_empty()).then(|| LeftOut { what: missing.join(", "), because: because.to_owned() })
}

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(runtime) = facts.runtime.as_ref().filter(|_| needs::has_queue(facts)) else { return Vec::new() };
    let sizes = axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let mut all = Vec::new();
    for direction in [CopyDirection::ToDevice, CopyDirection::FromDevice] {
        for copies in COUNTS {
            for by in &runtime.small_copies {
                let method = Method::SmallCopies { direction, copies, by: *by };
                let cases = sizes.iter().map(|size| Case::of_runtime(*size, method.clone()));
                // Many long pieces need more memory than a program should lock.
                all.extend(cases.filter(|case| axes.sizes.is_some() || case.size <= case.most_window(facts)));
            }
        }
    }
    all
}

fn plan(case: &Case, passes: u64) -> Plan {
    let Method::SmallCopies { direction, copies, by } = case.method else { return Plan::empty() };
    let copies = SmallCopies { verb: direction.verb(), bytes: case.size, count: copies, by };
    // The first launch of a kernel compiles it.
    Plan { warmup_passes: 1, ..Plan::new(copies, passes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_fixture::facts;
    use lanemark_machine::{Allocation, QueueRequest, Verb};

    fn with(small_copies: &[CopyBy]) -> Facts {
        let mut facts = facts(&[Allocation::Host]);
        facts.runtime.as_mut().unwrap().small_copies = small_copies.to_vec();
        facts
    }

    #[test]
    fn each_method_is_asked_in_both_directions_with_every_count() {
        let facts = with(&[CopyBy::Loop, CopyBy::InPlace]);
        let axes = Axes { sizes: Some(vec![64]), ..Axes::default() };
        let all = cases(&facts, &axes);
        assert_eq!(all.len(), 2 * COUNTS.len() * 2);
        let plan = (QUESTION.plan)(&all[1], 3);
        let copies = SmallCopies { verb: Verb::Store, bytes: 64, count: 1, by: CopyBy::InPlace };
        assert_eq!((plan.work.request(), plan.passes), (Some(&QueueRequest::SmallCopies(copies)), 3));
        assert_eq!(plan.check(), Ok(()));
    }

    #[test]
    fn the_longest_pieces_are_not_asked_with_the_largest_count() {
        let asked = |count| {
            let all = cases(&with(&[CopyBy::Loop]), &Axes::default());
            let of_count = all.into_iter().filter(
                |case| matches!(case.method, Method::SmallCopies { copies, direction, .. } if copies == count && direction == CopyDirection::ToDevice),
            );
            of_count.map(|case| case.size).max()
        };
        assert_eq!([8, 64, 500].map(asked), [Some(262_144), Some(262_144), Some(32_768)]);
    }

    #[test]
    fn methods_that_a_runtime_lacks_are_named_with_the_reason() {
        assert!(left_out(&with(&[])).unwrap().is_all());
        let four = [CopyBy::Loop, CopyBy::Batch, CopyBy::Packed, CopyBy::InPlace];
        let stores = left_out(&with(&four)).unwrap();
        assert_eq!(stores.what, "accesses of a core through a BAR");
        let old = left_out(&with(&[CopyBy::Loop, CopyBy::Packed, CopyBy::InPlace])).unwrap();
        assert!(old.what.contains("one batch call") && old.because.contains("CUDA 12.8"), "{old:?}");
        assert_eq!(left_out(&with(&CopyBy::ALL)), None);
    }
}
