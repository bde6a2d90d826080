//! What does a core pay so that a device and itself see the same bytes?
//!
//! Traffic: none on links. A core writes a buffer that a device is to read, or reads one that a device has written.
//! Unit: nanoseconds for each buffer, from the first byte until a fence is over: the doorbell could ring then, or the bytes are there.
//! What a way costs beyond coherence is its figure minus that of `coherent`, which the table has beside it.
//! Ways: `coherent`, nothing but the loads or stores; `flushed`, each line by the instruction that is named, and from a device
//! twice: before the transfer and behind it; `uncached` and `write_combining` mappings; `streaming_stores` to ordinary memory;
//! `bounced`, a copy to or from a buffer that the device sees, which is coherent or write-combining.
//! Spoiled by: caches that a buffer does not fit into; whatever else uses memory. No device touches the buffer: where lines
//! go when it reads them is not seen, and what a device has written is in no cache, which a coherent device may do better.
//! Where time is real, the last of these is made so before each sample, whose only pass it is: a small one is as exact as the timer.

use crate::case::{Axes, Case};
use crate::needs;
use crate::question::Question;
use lanemark_machine::{BufferHandoff, Facts, Op, Plan, Verb};
use lanemark_method::{CopyDirection, Method};
use lanemark_record::Quantity;
use lanemark_units::Ticks;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "coherence_cost",
    summary: "time a core pays for a buffer that a device sees too: coherent, flushed, uncached, streamed, bounced, by size",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 1,
    most_passes: |case| if handover(case).is_some_and(|shared| shared.finds_written_lines()) { 1 } else { 1 << 10 },
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: false,
    left_out: needs::disciplines,
};

/// A line, a page, and what drivers lend at a time.
const SIZES: [u64; 4] = [64, 4 << 10, 64 << 10, 1 << 20];

/// Of one sample, of which a pass may be some milliseconds long.
const TIMEOUT: Ticks = Ticks::whole_ns(30_000_000_000);

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let sizes = axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let mut cases = Vec::new();
    for verb in [Verb::Store, Verb::Load] {
        for &discipline in &facts.disciplines {
            // A size that nobody can share is refused by name; a way that makes no sense is not asked at all.
            if (BufferHandoff { verb, discipline, bytes: BufferHandoff::LINE_BYTES }).nonsense().is_some() {
                continue;
            }
            let of_nothing =
                Case::of_nothing(facts, Method::SharedBuffer { direction: CopyDirection::of(verb), discipline });
            cases.extend(sizes.iter().filter_map(|size| Some(Case { size: *size, ..of_nothing.clone()? })));
        }
    }
    cases
}

fn handover(case: &Case) -> Option<BufferHandoff> {
    let Method::SharedBuffer { direction, discipline } = case.method else { return None };
    Some(BufferHandoff { verb: direction.verb(), discipline, bytes: case.size })
}

fn plan(case: &Case, passes: u64) -> Plan {
    let Some(shared) = handover(case) else { return Plan::on_one_core(Vec::new(), passes) };
    // Lines are then where a pass leaves them.
    let warmup_passes = u64::from(!shared.finds_written_lines());
    Plan { timeout: TIMEOUT, warmup_passes, ..Plan::on_one_core(vec![Op::BufferHandoff(shared)], passes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Discipline, Flush, Region, RegionKind, TimeBase};
    use lanemark_units::{BarOffset, MemoryType};

    fn facts(disciplines: &[Discipline]) -> Facts {
        Facts {
            name: "a machine".to_owned(),
            summary: String::new(),
            time_base: TimeBase::Real,
            cores: 1,
            regions: vec![Region {
                name: "memory".to_owned(),
                at: BarOffset { bar: 0, offset: 0 },
                len: 4096,
                kind: RegionKind::Storage,
            }],
            memory_types: vec![MemoryType::Wb],
            stores: vec![],
            loads: vec![],
            memcpy: String::new(),
            dma: None,
            driver_width: None,
            disciplines: disciplines.to_vec(),
            line_sources: vec![],
            runtime: None,
        }
    }

    #[test]
    fn every_discipline_is_asked_both_ways_where_it_makes_sense_and_of_every_size() {
        let all = cases(&facts(&Discipline::ALL), &Axes::default());
        assert_eq!(all.len(), (2 * 9 - 2) * 4);
        assert!(all.iter().enumerate().all(|(place, case)| !all[..place].contains(case)));
        let [Op::BufferHandoff(first)] = plan(&all[1], 3).lanes[0].body[..] else { panic!("{:?}", plan(&all[1], 3)) };
        assert_eq!(first, BufferHandoff { verb: Verb::Store, discipline: Discipline::Coherent, bytes: 4096 });
        assert!(cases(&facts(&[]), &Axes::default()).is_empty());
    }

    #[test]
    fn what_a_device_wrote_is_found_by_the_only_pass_of_a_sample_and_all_else_after_a_pass_that_does_not_count() {
        for case in cases(&facts(&Discipline::ALL), &Axes::default()) {
            let is_written = matches!(
                case.method,
                Method::SharedBuffer {
                    direction: CopyDirection::FromDevice,
                    discipline: Discipline::Coherent | Discipline::Bounced
                }
            );
            assert_eq!((QUESTION.most_passes)(&case) == 1, is_written, "{}", case.method);
            assert_eq!(plan(&case, 3).warmup_passes, u64::from(!is_written), "{}", case.method);
        }
    }

    #[test]
    fn a_machine_that_cannot_map_memory_otherwise_says_which_ways_are_left_out() {
        let left_out = |disciplines: &[Discipline]| (QUESTION.left_out)(&facts(disciplines));
        assert_eq!(left_out(&Discipline::ALL), None);
        assert!(left_out(&[]).unwrap().is_all());
        let some = left_out(&[Discipline::Coherent, Discipline::Flushed(Flush::Clflush)]).unwrap();
        assert!(!some.is_all() && some.because.contains("WB"), "{some:?}");
    }
}
