//! Concurrent driver calls of several cores, on channels of one card and on several cards.

mod stage;

use lanemark_machine::{
    Completion, Concurrent, Descriptors, DmaCall, Lane, Machine, MachineError, Partner, Pattern, Plan, Samples, Share,
    Transfer, Verb, Window,
};
use lanemark_platform::Platform;
use lanemark_sim::stored_bytes;
use lanemark_sim::{CardIndex, SimulatedMachine};
use lanemark_units::{MemoryType, Ticks};
use stage::{platform, tree_platform};

const UC: Descriptors = Descriptors::Written(MemoryType::Uc);
const WAYS: [Descriptors; 3] = [UC, Descriptors::Written(MemoryType::Wc), Descriptors::Fetched];
/// DMA memory of each thread, in bytes.
const PART: u64 = 64 << 10;

/// Four cores and a card of four channels, with some numbers replaced.
fn card(changes: &[(&str, f64)]) -> Platform {
    platform("8B", &[&[("core.cores", 4.0), ("dma.channels", 4.0)], changes].concat())
}

/// Returns a call on a channel that rings the doorbell for `bytes` bytes to memory, and polls a word.
fn call(channel: u32, bytes: u64) -> DmaCall {
    let window = Window { offset: u64::from(channel) * PART, len: PART, pattern: Pattern::Sequential };
    let (verb, partner) = (Verb::Store, Partner::Host);
    let transfer = Transfer { card: 0, verb, partner, bytes, count: 1, window, outstanding: None };
    DmaCall { transfer, channel, share: Share::Doorbell, descriptors: UC, completion: Completion::Flag }
}

fn plan(calls: &[DmaCall]) -> Plan {
    let lanes = calls.iter().zip(0..).map(|(call, core)| Lane { core, task: (*call).into() });
    Plan::new(lanes.collect::<Vec<Lane>>(), 1)
}

fn run(machine: &mut SimulatedMachine, calls: &[DmaCall]) -> Samples {
    let mut samples = Samples::wanted(1);
    machine.run(&plan(calls), &mut samples).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(machine.board_mut().slots_in_use(), 0);
    samples
}

fn run_on(platform: &Platform, calls: &[DmaCall]) -> Samples {
    run(&mut SimulatedMachine::new(platform).unwrap(), calls)
}

fn took(platform: &Platform, calls: &[DmaCall]) -> Ticks {
    run_on(platform, calls).taken[0].delivered
}

/// Returns whether every byte of a call has reached its destination.
fn is_there(machine: &mut SimulatedMachine, call: &DmaCall) -> bool {
    let Transfer { bytes, count, window, verb, .. } = call.transfer;
    let board = machine.board_mut();
    (0..count).all(|nth| {
        let (mut found, mut meant) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        let offset = window.place(nth, bytes);
        match verb {
            Verb::Store => {
                board.memory_mut().read(offset, &mut found);
                stored_bytes(board.mapped_at() + offset, 0, &mut meant);
            }
            Verb::Load => {
                board.memory_mut().read(offset, &mut meant);
                board.engine_mut(CardIndex(0)).unwrap().sink.read(offset, &mut found);
            }
        }
        found == meant
    })
}

#[test]
fn every_thread_moves_its_own_bytes_with_any_kind_of_call() {
    for verb in [Verb::Store, Verb::Load] {
        for descriptors in WAYS {
            for share in [Share::Call, Share::List, Share::Doorbell] {
                let calls: Vec<DmaCall> = (0..4)
                    .map(|channel| {
                        let asked = call(channel, 5000 + 100 * u64::from(channel));
                        let completion = Completion::ALL[channel as usize % 3];
                        // The threads have different numbers of transfers.
                        let transfer = Transfer { verb, count: 1 + u64::from(channel), ..asked.transfer };
                        DmaCall { transfer, share, descriptors, completion, ..asked }
                    })
                    .collect();
                let mut machine = SimulatedMachine::new(&card(&[])).unwrap();
                let samples = run(&mut machine, &calls);
                let Concurrent { common, each } = samples.together.unwrap();
                for (call, moved) in calls.iter().zip(&each) {
                    assert_eq!(moved.bytes, call.transfer.bytes_per_pass(), "{call:?}");
                    assert!(is_there(&mut machine, call), "{call:?}");
                }
                // The thread with the fewest transfers completes first, before the others.
                assert_eq!(common, each[0].delivered);
                assert_eq!(each[0].common_bytes, each[0].bytes);
                assert!(each[1..].iter().all(|moved| moved.common_bytes < moved.bytes && moved.delivered > common));
                let last = each.iter().map(|moved| moved.delivered).max().unwrap();
                assert_eq!((samples.taken[0].issue, samples.taken[0].delivered), (common, last));
            }
        }
    }
}

#[test]
fn a_single_thread_is_equally_fast_on_every_channel() {
    for verb in [Verb::Store, Verb::Load] {
        for descriptors in WAYS {
            for completion in Completion::ALL {
                let alone = |channel: u32| {
                    let asked = call(channel, 9000);
                    let transfer = Transfer { verb, count: 3, ..asked.transfer };
                    let share = Share::List;
                    took(&card(&[]), &[DmaCall { transfer, descriptors, completion, share, ..asked }])
                };
                let [first, second, last] = [0, 1, 3].map(alone);
                assert_eq!((first, first), (second, last), "{verb:?} {descriptors:?} {completion}");
            }
        }
    }
}

#[test]
fn costs_of_a_channel_overlap_and_shared_costs_do_not() {
    let [one, four] = [1, 4].map(|threads| (0..threads).map(|channel| call(channel, 4096)).collect::<Vec<_>>());
    // A page costs a channel 20 us before its first request, and the link 1 us.
    let slow = card(&[("dma.descriptor_ns", 20_000.0)]);
    let (alone, all) = (took(&slow, &one), took(&slow, &four));
    assert!(all > alone && all.as_ns() < 1.3 * alone.as_ns(), "{alone:?} {all:?}");
    // Beats of a microsecond on the shared data path.
    let narrow = card(&[("dma.beat_ns", 1000.0)]);
    let (alone, all) = (took(&narrow, &one), took(&narrow, &four));
    assert!(all.as_ns() > 3.8 * alone.as_ns() && all.as_ns() < 4.0 * alone.as_ns(), "{alone:?} {all:?}");
}

#[test]
fn each_channel_prefetches_its_descriptors() {
    let of = |channels: u32| {
        let fetched = |channel| DmaCall { descriptors: Descriptors::Fetched, ..call(channel, 8 * 4096) };
        (0..channels).map(fetched).collect::<Vec<_>>()
    };
    // A memory latency for each page of a channel; four channels overlap theirs.
    let far = card(&[("memory.read_ns", 100_000.0)]);
    let (alone, all) = (took(&far, &of(1)), took(&far, &of(4)));
    assert!(alone.as_ns() > 8.0 * 100_000.0 && all.as_ns() < 1.05 * alone.as_ns(), "{alone:?} {all:?}");
}

#[test]
fn a_plan_may_have_threads_on_several_cards_and_channels() {
    let tree = tree_platform(&[("core.cores", 4.0), ("dma.channels", 2.0)]);
    let of = |card: u32, channel: u32| {
        let asked = call(channel, 16384);
        let offset = u64::from(2 * card + channel) * PART;
        let window = Window { offset, ..asked.transfer.window };
        DmaCall { transfer: Transfer { card, window, ..asked.transfer }, ..asked }
    };
    let samples = run_on(&tree, &[of(0, 0), of(0, 1), of(3, 1), of(1, 0)]);
    let each = samples.together.unwrap().each;
    assert_eq!(each.iter().map(|moved| moved.bytes).collect::<Vec<_>>(), [16384; 4]);
    assert!(samples.taken[0].delivered > took(&tree, &[of(0, 0)]));
}

#[test]
fn the_same_threads_take_the_same_time_in_every_run() {
    let calls: Vec<DmaCall> = (0..4)
        .map(|channel| DmaCall { share: Share::Call, descriptors: Descriptors::Fetched, ..call(channel, 9000) })
        .collect();
    let mut machine = SimulatedMachine::new(&card(&[])).unwrap();
    let first = run(&mut machine, &calls);
    assert_eq!(run(&mut machine, &calls).taken, first.taken);
    assert_eq!(run_on(&card(&[]), &calls).together, first.together);
}

#[test]
fn a_missing_or_shared_channel_is_refused() {
    let refused = |platform: &Platform, calls: &[DmaCall]| {
        let mut machine = SimulatedMachine::new(platform).unwrap();
        machine.run(&plan(calls), &mut Samples::wanted(1)).unwrap_err().to_string()
    };
    let error = refused(&card(&[]), &[call(4, 64)]);
    assert!(error.contains("channel 4 of a card") && error.contains("has 4 (dma.channels)"), "{error}");
    let error = refused(&platform("8B", &[]), &[call(0, 64), call(1, 64)]);
    assert!(error.contains("channel 1 of a card") && error.contains("has 1 (dma.channels)"), "{error}");
    let error = refused(&card(&[]), &[call(0, 64), call(3, 64), call(3, 64)]);
    assert!(error.contains("two concurrent driver calls for one channel"), "{error}");
    // 4 KiB of registers hold lists of 64 B for 32 channels, but not for 33.
    let many = |channels: f64| platform("8B", &[("dma.channels", channels), ("memory.size_bytes", 1_048_576.0)]);
    run_on(&many(32.0), &[call(3, 64)]);
    let error = refused(&many(33.0), &[call(3, 64)]);
    assert!(error.contains("128 B per channel"), "{error}");
}

#[test]
fn a_fault_reports_the_bytes_of_each_channel() {
    let faulty = card(&[]).with_fault("poisoned@root/card:20".parse().unwrap()).unwrap();
    let mut machine = SimulatedMachine::new(&faulty).unwrap();
    let calls = [call(0, 16384), call(2, 8192)];
    let error = machine.run(&plan(&calls), &mut Samples::wanted(1)).unwrap_err();
    let MachineError::Bus(error) = error else { panic!("{error}") };
    let flows: Vec<&str> = error.arrived.iter().map(|arrived| arrived.flow.as_str()).collect();
    assert_eq!(flows, ["0:host", "0:host on channel 2"]);
    assert_eq!(error.arrived.iter().map(|arrived| arrived.wanted_bytes).collect::<Vec<_>>(), [Some(16384), Some(8192)]);
    let came: u64 = error.arrived.iter().map(|arrived| arrived.bytes).sum();
    assert!(error.arrived.iter().all(|arrived| arrived.bytes > 0) && came < 16384 + 8192, "{error}");
    run(&mut machine, &calls);
}
