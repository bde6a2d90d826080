//! How much does a core pay to share a buffer with a device?
//!
//! Traffic: none on links. A core writes a buffer for a device, or reads one that a device has
//! written.
//!
//! Unit: nanoseconds per buffer, from the first byte until a fence completes: then the doorbell
//! could be rung, or the data are available. The cost of a method beyond coherence is its figure
//! minus that of `coherent`, in the same table.
//!
//! Methods: `coherent`, only the loads or stores; `flushed`, each line by the named instruction,
//! and from a device twice, before and after the transfer; `uncached` and `write_combining`
//! mappings; `streaming_stores` to ordinary memory; `bounced`, a copy to or from a coherent or
//! write-combining buffer that the device accesses.
//!
//! Spoiled by: caches smaller than the buffer; other users of memory. No device accesses the
//! buffer, so the movement of lines caused by its reads is not measured. Data written by a device
//! are in no cache here; a coherent device may do better.
//!
//! In real time, this state is set up before each sample, which has only one iteration. A small
//! buffer is therefore only as exact as the timer.

use crate::case::{Axes, Case};
use crate::needs;
use crate::question::Question;
use lanemark_machine::{BufferHandoff, Facts, Plan, Verb};
use lanemark_method::{CopyDirection, Method};
use lanemark_record::Quantity;
use lanemark_units::Ticks;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "coherence_cost",
    summary: "CPU time to share a buffer with a device: coherent, flushed, uncached, streamed, bounced, by size",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 1,
    most_passes: |case| if handover(case).is_some_and(|shared| shared.finds_written_lines()) { 1 } else { 1 << 10 },
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: false,
    left_out: needs::memory_sharing,
};

/// A line, a page, and common sizes of driver buffers.
const SIZES: [u64; 4] = [64, 4 << 10, 64 << 10, 1 << 20];

/// Timeout of a sample, whose iterations may take milliseconds.
const TIMEOUT: Ticks = Ticks::whole_ns(30_000_000_000);

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let sizes = axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let mut cases = Vec::new();
    for verb in [Verb::Store, Verb::Load] {
        for &discipline in &facts.disciplines {
            // A size that cannot be shared is refused by name; an invalid combination is left out.
            if (BufferHandoff { verb, discipline, bytes: BufferHandoff::LINE_BYTES }).check().is_err() {
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
    let Some(shared) = handover(case) else { return Plan::empty() };
    // With warm-up, lines start where the previous iteration leaves them.
    let warmup_passes = u64::from(!shared.finds_written_lines());
    Plan { timeout: TIMEOUT, warmup_passes, ..Plan::new(shared, passes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Discipline, Flush, Operation, Region, RegionKind, Task, TimeBase};
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
            tables: vec![],
            disciplines: disciplines.to_vec(),
            line_sources: vec![],
            runtime: None,
        }
    }

    #[test]
    fn every_discipline_is_measured_in_its_valid_directions_and_all_sizes() {
        let all = cases(&facts(&Discipline::ALL), &Axes::default());
        assert_eq!(all.len(), (2 * 9 - 2) * 4);
        assert!(all.iter().enumerate().all(|(place, case)| !all[..place].contains(case)));
        let Task::Operation(Operation::BufferHandoff(first)) = plan(&all[1], 3).work.lanes()[0].task else {
            panic!("{:?}", plan(&all[1], 3))
        };
        assert_eq!(first, BufferHandoff { verb: Verb::Store, discipline: Discipline::Coherent, bytes: 4096 });
        assert!(cases(&facts(&[]), &Axes::default()).is_empty());
    }

    #[test]
    fn samples_of_device_data_have_one_iteration_and_others_a_warm_up() {
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
    fn disciplines_without_a_mapping_are_left_out_with_a_reason() {
        let left_out = |disciplines: &[Discipline]| (QUESTION.left_out)(&facts(disciplines));
        assert_eq!(left_out(&Discipline::ALL), None);
        assert!(left_out(&[]).unwrap().is_all());
        let some = left_out(&[Discipline::Coherent, Discipline::Flushed(Flush::Clflush)]).unwrap();
        assert!(!some.is_all() && some.because.contains("WB"), "{some:?}");
    }
}
