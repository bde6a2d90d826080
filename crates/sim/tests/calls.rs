//! Driver calls for transfers of a card: duration, stall causes, and the bytes that arrive.

mod stage;

use lanemark_engine::first_byte;
use lanemark_machine::{
    Cause, Completion, Descriptors, DmaCall, Lane, Machine, MachineError, Partner, Pattern, Plan, Samples, Share,
    Transfer, Verb, Window,
};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;
use lanemark_units::{MemoryType, Ticks};
use stage::{ns, platform, tree_platform};

const UC: Descriptors = Descriptors::Written(MemoryType::Uc);

/// Returns a call that rings the doorbell for `bytes` bytes from the card to memory, and polls a word.
fn call(bytes: u64) -> DmaCall {
    let window = Window { offset: 0, len: 64 << 10, pattern: Pattern::Sequential };
    let partner = Partner::Host;
    let transfer = Transfer { card: 0, verb: Verb::Store, partner, bytes, count: 1, window, outstanding: None };
    DmaCall { transfer, channel: 0, share: Share::Doorbell, descriptors: UC, completion: Completion::Flag }
}

fn plan(calls: &[DmaCall]) -> Plan {
    let lanes = calls.iter().zip(0..).map(|(call, core)| Lane { core, task: (*call).into() });
    Plan::new(lanes.collect::<Vec<Lane>>(), 1)
}

fn run(platform: &Platform, calls: &[DmaCall]) -> Samples {
    let mut machine = SimulatedMachine::new(platform).unwrap();
    let mut samples = Samples::wanted(1);
    machine.run(&plan(calls), &mut samples).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(machine.board_mut().slots_in_use(), 0);
    samples
}

fn took(changes: &[(&str, f64)], call: &DmaCall) -> Ticks {
    let samples = run(&platform("8B", changes), &[*call]);
    assert_eq!(samples.taken[0].issue, samples.taken[0].delivered);
    samples.taken[0].delivered
}

fn wait(samples: &Samples, cause: Cause) -> Ticks {
    samples.waits.iter().find(|wait| wait.cause == cause).map_or(Ticks::ZERO, |wait| wait.span)
}

/// Latency of a doorbell: 50 to the root complex, 32 B on the link 8, link latency 100, ingress 50, a beat of 10.
const BELL: u64 = 218;
/// From the start until the last bit of 64 B is on the link: five beats 20, egress 50, 88 B 22.
const WRITTEN: u64 = 92;

#[test]
fn a_polled_word_arrives_after_the_last_write() {
    // 28 B 7, link latency 100, 50 until it is visible, a load of 4.
    assert_eq!(took(&[], &call(64)), ns(BELL + WRITTEN + 7 + 100 + 50 + 4));
    let late = [("dma.start_ns", 1000.0), ("memory.write_ns", 80.0)];
    assert_eq!(took(&late, &call(64)), ns(BELL + 1000 + WRITTEN + 7 + 100 + 80 + 4));
    // The engine's time for the word, once the link is free: two beats of 4, after 22.
    let slow = took(&[("dma.write_request_ns", 30.0)], &call(64));
    assert_eq!(slow, ns(BELL + 20 + 30 + 8 + 30 + 50 + 7 + 100 + 50 + 4));
}

#[test]
fn a_message_interrupts_the_core_and_its_handler_wakes_the_thread() {
    let told = DmaCall { completion: Completion::Interrupt, ..call(64) };
    // 24 B 6, link latency 100; then the interrupt latency, handler and thread.
    assert_eq!(took(&[], &told), ns(BELL + WRITTEN + 6 + 100 + 1000 + 500 + 1500));
    let samples = run(&platform("8B", &[]), &[told]);
    assert_eq!(wait(&samples, Cause::Interrupt), ns(1000));
    assert_eq!(wait(&samples, Cause::Driver), ns(2000));
    // An interrupt that is faster than memory: the handler still sees the earlier writes.
    let quick = [("driver.interrupt_ns", 0.0), ("driver.handler_ns", 0.0), ("driver.wake_ns", 0.0)];
    assert_eq!(took(&quick, &told), ns(BELL + WRITTEN + 6 + 100 + 50));
}

#[test]
fn a_register_is_polled_until_completion() {
    let polled = DmaCall { completion: Completion::Register, ..call(64) };
    // The store is acknowledged after 100. A load: 50, 24 B 6, 100, ingress 50, 40 and a beat of 10, egress 50, 28 B
    // 7, 100, 50.
    assert_eq!(took(&[], &polled), ns(100 + 463));
    // The last write leaves for the link at 218 + 70, and a load reads the register at 100 + 256: a delay of 68 is
    // seen, 69 is not. The completion of the load waits for the earlier write in both cases.
    assert_eq!(took(&[("dma.start_ns", 68.0)], &polled), ns(BELL + 68 + WRITTEN + 100 + 50 + 50));
    assert_eq!(took(&[("dma.start_ns", 69.0)], &polled), ns(100 + 463 + 16 + 463));
    assert_eq!(took(&[("memory.write_ns", 500.0)], &polled), ns(BELL + WRITTEN + 100 + 500 + 50));
}

#[test]
fn descriptors_cost_stores_or_a_fetch() {
    let bare = BELL + WRITTEN + 7 + 100 + 50 + 4;
    // Two stores of 8 B, each acknowledged after 100, and 20 to build one.
    assert_eq!(took(&[], &DmaCall { share: Share::List, ..call(64) }), ns(20 + 200 + bare));
    assert_eq!(took(&[("driver.copy_bytes", 4.0)], &DmaCall { share: Share::List, ..call(64) }), ns(20 + 400 + bare));
    // A beat 4, egress 50, 24 B 6, 100, memory 200, 36 B 9, 100, ingress 50, two beats 8.
    let fetched = DmaCall { descriptors: Descriptors::Fetched, ..call(64) };
    assert_eq!(took(&[], &fetched), ns(527 + bare));
    assert_eq!(took(&[], &DmaCall { share: Share::List, ..fetched }), ns(20 + 527 + bare));
    let samples = run(&platform("8B", &[]), &[fetched]);
    assert_eq!(wait(&samples, Cause::Descriptor), ns(527));
}

#[test]
fn a_whole_call_pins_and_unpins_each_page() {
    let whole = |bytes, offset| {
        let mut whole = DmaCall { share: Share::Call, ..call(bytes) };
        whole.transfer.window.offset = offset;
        let bare = DmaCall { share: Share::Doorbell, ..whole };
        took(&[], &whole) - took(&[], &bare)
    };
    // The call 200, 100 + 50 a page, 20 and two stores a descriptor.
    assert_eq!(whole(64, 0), ns(200 + 150 + 220));
    assert_eq!(whole(4096, 0), ns(200 + 150 + 220));
    assert_eq!(whole(4097, 0), ns(200 + 2 * (150 + 220)));
    assert_eq!(whole(2, 4095), ns(200 + 2 * (150 + 220)));
}

#[test]
fn prefetched_descriptors_share_one_memory_latency() {
    let fetched = DmaCall { descriptors: Descriptors::Fetched, ..call(16 * 4096) };
    let waited = |ahead: f64| {
        let fast = [("dma.prefetch_descriptors", ahead), ("memory.read_ns", 200_000.0)];
        wait(&run(&platform("8B", &fast), &[fetched]), Cause::Descriptor)
    };
    // Moving a page takes 1.2 us.
    let latency = 200_327.0;
    let rounds = |ahead| (waited(ahead).as_ns() / latency).round();
    assert_eq!([1.0, 2.0, 4.0, 8.0, 16.0].map(rounds), [16.0, 8.0, 4.0, 2.0, 1.0]);
}

#[test]
fn every_kind_of_call_moves_its_bytes_before_the_next_begins() {
    let wc = Descriptors::Written(MemoryType::Wc);
    for verb in [Verb::Store, Verb::Load] {
        for share in [Share::Call, Share::List, Share::Doorbell] {
            for descriptors in [UC, wc, Descriptors::Fetched] {
                for completion in Completion::ALL {
                    let transfer = Transfer { verb, bytes: 5000, count: 3, ..call(0).transfer };
                    let asked = DmaCall { transfer, channel: 0, share, descriptors, completion };
                    let samples = run(&platform("8B", &[]), &[asked]);
                    let confirmed = samples.confirmed.unwrap();
                    assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (15_000, 15_000), "{asked:?}");
                    let once =
                        run(&platform("8B", &[]), &[DmaCall { transfer: Transfer { count: 1, ..transfer }, ..asked }]);
                    let times = samples.taken[0].delivered.as_ns() / once.taken[0].delivered.as_ns();
                    assert!((2.5..4.1).contains(&times), "{asked:?}: {times}");
                }
            }
        }
    }
}

#[test]
fn a_descriptor_list_in_wc_memory_is_written_in_lines() {
    let list = |memory_type| {
        let listed = DmaCall { share: Share::List, descriptors: Descriptors::Written(memory_type), ..call(16 * 4096) };
        run(&platform("8B", &[]), &[listed]).traffic.unwrap().write_tlps
    };
    // 256 B in stores of 8 B or lines of 64 B; the doorbell; 512 writes of 128 B and the word.
    assert_eq!(list(MemoryType::Uc), 32 + 1 + 512 + 1);
    assert_eq!(list(MemoryType::Wc), 4 + 1 + 512 + 1);
}

#[test]
fn several_cores_with_a_card_each_share_the_common_link() {
    let tree = tree_platform(&[("core.cores", 4.0)]);
    let of = |card: u32| {
        let window = Window { offset: u64::from(card) * 0x20000, len: 0x20000, pattern: Pattern::Sequential };
        DmaCall { transfer: Transfer { card, bytes: 65536, window, ..call(0).transfer }, ..call(0) }
    };
    let alone = run(&tree, &[of(0)]);
    assert_eq!(alone.together, None);
    let all = run(&tree, &[of(0), of(1), of(2), of(3)]);
    let together = all.together.unwrap();
    assert!(together.each.iter().all(|moved| moved.bytes == 65536 && moved.delivered >= together.common));
    assert!(together.each.iter().all(|moved| moved.common_bytes <= 65536));
    let first = together.each.iter().map(|moved| moved.delivered).min().unwrap();
    assert_eq!(first, together.common);
    assert!(first.as_ns() > 2.0 * alone.taken[0].delivered.as_ns(), "the upstream link is shared: {first:?}");
}

#[test]
fn a_plan_takes_the_same_time_in_every_run() {
    let asked = DmaCall { share: Share::Call, descriptors: Descriptors::Fetched, ..call(9000) };
    let mut machine = SimulatedMachine::new(&platform("8B", &[])).unwrap();
    let mut samples = Samples::wanted(3);
    machine.run(&plan(&[asked]), &mut samples).unwrap();
    assert!(samples.taken.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", samples.taken);
    assert_eq!(samples.taken[0], run(&platform("8B", &[]), &[asked]).taken[0]);
}

#[test]
fn a_call_waits_for_its_own_bytes_after_the_calls_of_an_earlier_plan() {
    for completion in [Completion::Flag, Completion::Interrupt, Completion::Register] {
        let asked = DmaCall { completion, ..call(9000) };
        let mut machine = SimulatedMachine::new(&platform("8B", &[])).unwrap();
        let mut took = || {
            let mut samples = Samples::wanted(2);
            machine.run(&plan(&[asked]), &mut samples).unwrap();
            samples.taken
        };
        assert_eq!(took(), took(), "{completion:?}");
    }
}

#[test]
fn a_call_that_times_out_names_its_stall_cause_and_leaves_an_idle_board() {
    let mut machine = SimulatedMachine::new(&platform("8B", &[])).unwrap();
    let good = plan(&[DmaCall { descriptors: Descriptors::Fetched, ..call(16 * 4096) }]);
    let mut samples = Samples::wanted(1);
    machine.run(&good, &mut samples).unwrap();
    let (whole, mut stopped) = (samples.taken[0].delivered, 0);
    for nth in 1..40 {
        let short = Plan { timeout: Ticks(whole.0 * nth / 40), ..good.clone() };
        let error = machine.run(&short, &mut Samples::wanted(1)).unwrap_err();
        let MachineError::Timeout { waiting_for, .. } = error else { panic!("{error}") };
        stopped += u32::from(waiting_for.contains("DMA transfer"));
        assert_eq!(machine.board_mut().slots_in_use(), 0);
        machine.run(&good, &mut samples).unwrap();
        assert_eq!(samples.taken[0].delivered, whole, "after {nth} of 40");
    }
    assert!(stopped > 30, "{stopped}");
}

#[test]
fn unsupported_driver_calls_are_refused_with_the_reason() {
    let mut machine = SimulatedMachine::new(&platform("8B", &[])).unwrap();
    let good = call(64);
    let peer = Partner::Peer { card: 1, bar: 0 };
    let moves = |transfer| DmaCall { transfer, ..good };
    for (bad, because) in [
        (moves(Transfer { card: 1, ..good.transfer }), "there is no card 1"),
        (moves(Transfer { partner: peer, ..good.transfer }), "not other cards"),
        (moves(Transfer { bytes: 0, ..good.transfer }), "moves nothing"),
        (moves(Transfer { outstanding: Some(1), ..good.transfer }), "the next call begins after it"),
        (moves(Transfer { bytes: (1 << 20) - 16384 + 1, ..good.transfer }), "reach beyond DMA memory"),
        (DmaCall { descriptors: Descriptors::Written(MemoryType::Wb), ..good }, "UC or WC"),
    ] {
        let error = machine.run(&plan(&[bad]), &mut Samples::wanted(1)).unwrap_err();
        assert!(error.to_string().contains(because), "{error}");
    }
    let twice = machine.run(&plan(&[good, good]), &mut Samples::wanted(1)).unwrap_err();
    assert!(twice.to_string().contains("one call at a time"), "{twice}");
    let without = |platform: &Platform| {
        SimulatedMachine::new(platform).unwrap().run(&plan(&[good]), &mut Samples::wanted(1)).unwrap_err().to_string()
    };
    assert!(without(&Platform { driver: None, ..platform("8B", &[]) }).contains("no section [driver]"));
    assert!(without(&Platform { dma: None, ..platform("8B", &[]) }).contains("no section [dma]"));
    let small = without(&platform("8B", &[("memory.size_bytes", 131_072.0)]));
    assert!(small.contains("256 KiB per card"), "{small}");
    // All of the DMA memory but the driver's part.
    let mut most = moves(Transfer { bytes: (1 << 20) - 16384, ..good.transfer });
    most.transfer.window.len = most.transfer.bytes;
    machine.run(&plan(&[most]), &mut Samples::wanted(1)).unwrap();
}

#[test]
fn an_interrupt_after_a_timed_out_plan_is_ignored() {
    let mut machine = SimulatedMachine::new(&platform("8B", &[("driver.interrupt_ns", 1e8)])).unwrap();
    let by_message = DmaCall { completion: Completion::Interrupt, ..call(64) };
    let impatient = Plan { timeout: ns(50_000_000), ..plan(&[by_message]) };
    for _ in 0..2 {
        let error = machine.run(&impatient, &mut Samples::wanted(1)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("timed out after") && text.contains("waiting for interrupt"), "{text}");
    }
    machine.run(&plan(&[call(64)]), &mut Samples::wanted(1)).unwrap();
}

/// Three calls of 8 KiB each; the second one cannot pin its second page.
fn unpinnable(verb: Verb, descriptors: Descriptors, completion: Completion) -> (SimulatedMachine, Plan) {
    let mut whole = DmaCall { share: Share::Call, descriptors, completion, ..call(8192) };
    (whole.transfer.verb, whole.transfer.count) = (verb, 3);
    let platform = platform("8B", &[]).with_fault("unpinnable@card:4".parse().unwrap()).unwrap();
    (SimulatedMachine::new(&platform).unwrap(), plan(&[whole]))
}

#[test]
fn a_call_that_cannot_pin_a_page_moves_nothing_and_the_next_call_works() {
    for verb in [Verb::Load, Verb::Store] {
        for descriptors in [UC, Descriptors::Written(MemoryType::Wc), Descriptors::Fetched] {
            for completion in [Completion::Flag, Completion::Interrupt, Completion::Register] {
                let (mut machine, plan) = unpinnable(verb, descriptors, completion);
                let error = machine.run(&plan, &mut Samples::wanted(1)).unwrap_err();
                let text = error.to_string();
                let MachineError::Bus(error) = error else { panic!("{text}") };
                assert_eq!((error.error, error.noticed_by.as_str()), (None, "the driver of card"));
                // The call, two pages pinned and one unpinned.
                assert!(error.at >= ns(200 + 200 + 50), "{text}");
                assert!(text.contains("page 2 of a buffer of 2 cannot be pinned"), "{text}");
                assert!(
                    text.contains("the one before it was unpinned again") && text.contains("RLIMIT_MEMLOCK"),
                    "{text}"
                );
                assert_eq!((error.arrived[0].bytes, error.arrived[0].wanted_bytes), (8192, Some(3 * 8192)));
                let board = machine.board_mut();
                assert_eq!(error.address, Some(board.mapped_at() + 3 * 4096));
                let mut found = vec![0; 2 * 8192];
                board.memory_mut().read(8192, &mut found);
                assert!(
                    (8192..).zip(found).all(|(place, byte)| byte == first_byte(place)),
                    "only bytes of completed calls"
                );
                assert_eq!(board.slots_in_use(), 0);
                let mut samples = Samples::wanted(1);
                machine.run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(samples.taken.len(), 1, "the fault triggers once");
            }
        }
    }
}

#[test]
fn a_fault_at_a_page_that_is_never_pinned_is_reported_as_not_triggered() {
    let (mut machine, mut plan) = unpinnable(Verb::Store, UC, Completion::Flag);
    let Some(mut call) = plan.work.dma_calls().next().copied() else { panic!("{plan:?}") };
    call.transfer.count = 1;
    plan.work = call.into();
    machine.run(&plan, &mut Samples::wanted(1)).unwrap();
    let not = machine.injected_faults()[0].because_not.clone().unwrap();
    assert!(not.starts_with("no core pinned more than 2 pages for card until the end of the run at "), "{not}");
    // Two more pages: the last of them is the fourth.
    let error = machine.run(&plan, &mut Samples::wanted(1)).unwrap_err().to_string();
    assert!(error.contains("page 2 of a buffer of 2"), "{error}");
    assert_eq!(machine.injected_faults()[0].because_not, None);
}
