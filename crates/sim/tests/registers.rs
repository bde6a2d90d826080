//! Timers of a card, as a core reads and sets them, and user registers.

mod stage;

use lanemark_machine::{
    Completion, Descriptors, DmaCall, Lane, Machine, MachineError, Partner, Pattern, Plan, Samples, Share, Step,
    Transfer, Verb, Window,
};
use lanemark_platform::Platform;
use lanemark_sim::{Board, CardIndex, SimulatedMachine};
use lanemark_units::MemoryType::Uc;
use lanemark_units::Ticks;
use stage::{REGISTERS, Stage, load, ns, platform_with, span, store};

/// Offsets of the free-running timer and of the user registers; timers of channels follow the former.
const CLOCK: u64 = 0x400;
const USER: u64 = 0x600;
/// Period of the clock.
const TICK: u64 = 4;
/// From a load until its region completes it: 50 to the root complex, 24 B 6, 100, ingress 50, 40 and a beat of 10.
const LOOKED: u64 = 256;

fn card(changes: &[(&str, f64)]) -> Platform {
    platform_with(REGISTERS, &[&[("dma.channels", 2.0)], changes].concat())
}

fn timer(channel: u64) -> u64 {
    CLOCK + 8 * (1 + channel)
}

/// Returns the value of a register as loaded by core 1.
fn shown(board: &mut Board, offset: u64) -> u64 {
    board.observe_loads(1);
    let task = load(8, span("registers", Uc, offset, 8)).into();
    board.start(&Lane { core: 1, task }, 1, 0);
    while !board.core(1).is_done() {
        assert!(board.step());
    }
    let seen = board.loads_seen(1).last().unwrap();
    u64::from_le_bytes(seen.bytes.as_slice().try_into().unwrap())
}

fn whole(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn ticks(from: Ticks, to: Ticks) -> u64 {
    to.0 / ns(TICK).0 - from.0 / ns(TICK).0
}

/// Returns transfers of the card with the start of DMA memory.
fn transfer(verb: Verb, bytes: u64, count: u64) -> Transfer {
    let window = Window { offset: 0, len: 64 << 10, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding: None }
}

fn call(channel: u32, verb: Verb, bytes: u64) -> DmaCall {
    let (share, descriptors) = (Share::Doorbell, Descriptors::Written(Uc));
    DmaCall { transfer: transfer(verb, bytes, 1), channel, share, descriptors, completion: Completion::Flag }
}

#[test]
fn user_registers_keep_writes_of_any_width_and_other_registers_ignore_them() {
    for width in [1, 2, 4, 8] {
        let mut stage = Stage::of(&card(&[]));
        for offset in [USER, USER + 64 - width] {
            stage.run(vec![store(width, span("registers", Uc, offset, width))]);
            let meant = stage.quiesce().stored("registers", offset, width);
            stage.run(vec![load(width, span("registers", Uc, offset, width))]);
            assert_eq!(stage.quiesce().seen(), meant, "{width} B at {offset:#x}");
        }
        for offset in [USER - width, USER + 64] {
            let at = span("registers", Uc, offset, width);
            stage.run(vec![load(width, at)]);
            let before = stage.quiesce().seen();
            stage.run(vec![store(width, at), load(width, at)]);
            assert_eq!(stage.quiesce().seen(), before, "{width} B at {offset:#x}");
            assert_ne!(before, stage.stored("registers", offset, width));
        }
    }
    // Half of a register, and then all of it.
    let mut stage = Stage::of(&card(&[]));
    stage.run(vec![store(8, span("registers", Uc, USER, 8))]);
    let low = stage.stored("registers", USER, 4);
    stage.run(vec![store(4, span("registers", Uc, USER + 4, 4))]);
    let high = stage.stored("registers", USER + 4, 4);
    stage.run(vec![load(8, span("registers", Uc, USER, 8))]);
    assert_eq!(stage.quiesce().seen(), [low, high].concat());
}

#[test]
fn a_card_without_declared_registers_keeps_every_write() {
    let mut stage = Stage::new();
    stage.run(vec![store(8, span("registers", Uc, CLOCK, 8))]);
    let meant = stage.stored("registers", CLOCK, 8);
    stage.run(vec![load(8, span("registers", Uc, CLOCK, 8))]);
    assert_eq!(stage.quiesce().seen(), meant);
}

#[test]
fn the_clock_is_read_when_its_region_completes_the_load() {
    let mut stage = Stage::of(&card(&[]));
    let at = |width| load(width, span("registers", Uc, CLOCK, width));
    stage.run(vec![at(8), Step::Pause(ns(1000)), at(8), at(4)]);
    let seen: Vec<u64> = stage.seen_on(0).iter().map(|seen| whole(&seen.bytes)).collect();
    // The completion takes egress 50, 7 on the link, 100, and 50 to the core.
    let round_trip = LOOKED + 50 + 7 + 100 + 50;
    let meant = [LOOKED, round_trip + 1000 + LOOKED, 2 * round_trip + 1000 + LOOKED].map(|time| time / TICK);
    assert_eq!(seen, meant);
}

#[test]
fn a_write_sets_a_timer() {
    let mut stage = Stage::of(&card(&[]));
    stage.run(vec![store(8, span("registers", Uc, CLOCK, 8))]);
    let set = whole(&stage.stored("registers", CLOCK, 8));
    // The store is accepted after 50, 8 on the link, 100, ingress 50 and a beat of 10; the load begins after its
    // acknowledgment.
    stage.run(vec![load(8, span("registers", Uc, CLOCK, 8))]);
    assert_eq!(whole(&stage.seen()), set + ticks(ns(218), ns(100 + LOOKED)));
    // Writing the upper half only: the lower half continues.
    let mut stage = Stage::of(&card(&[]));
    stage.run(vec![store(4, span("registers", Uc, CLOCK + 4, 4))]);
    let high = whole(&stage.stored("registers", CLOCK + 4, 4));
    stage.run(vec![load(8, span("registers", Uc, CLOCK, 8))]);
    assert_eq!(whole(&stage.seen()), (high << 32) | ((100 + LOOKED) / TICK));
    // The timer of an idle channel keeps its value.
    stage.run(vec![store(8, span("registers", Uc, timer(1), 8))]);
    let set = stage.stored("registers", timer(1), 8);
    stage.run(vec![Step::Pause(ns(5000)), load(8, span("registers", Uc, timer(1), 8))]);
    assert_eq!(stage.seen(), set);
}

#[test]
fn a_channel_timer_counts_from_its_command_to_its_last_byte() {
    // The doorbell is accepted after 218 ns; 64 B take five beats of 4 ns.
    let mut stage = Stage::of(&card(&[]));
    let took = stage.run(call(1, Verb::Store, 64));
    assert_eq!(shown(&mut stage.quiesce().board, timer(1)), ticks(ns(218), ns(218 + 20)));
    assert_eq!(shown(&mut stage.board, timer(0)), 0, "the other channel did nothing");
    // The core also waits for the latencies of its doorbell, of the data, and of the word behind them.
    assert_eq!(took, ns(218 + 20 + 50 + 22 + 7 + 100 + 50 + 4));
    // Read data are complete with the last beat: the beat of the request, 50, 6 and 100, memory, the completion of 84
    // B 21, 100 and 50, and five beats.
    let mut stage = Stage::of(&card(&[]));
    stage.run(call(0, Verb::Load, 64));
    let received_at = stage.quiesce().board.engine(CardIndex(0)).unwrap().received_at;
    assert_eq!(received_at, ns(218 + 4 + 50 + 6 + 100 + 200 + 21 + 100 + 50 + 20));
    assert_eq!(shown(&mut stage.board, timer(0)), ticks(ns(218), received_at));
}

#[test]
fn a_channel_timer_accumulates_over_transfers() {
    let mut stage = Stage::of(&card(&[("dma.start_ns", 10_000.0)]));
    let start = |stage: &mut Stage| {
        let call = call(0, Verb::Store, 64);
        stage.board.start(&Lane { core: 0, task: call.into() }, 1, 0);
    };
    start(&mut stage);
    // The load follows the doorbell, and its region completes it 40 and a beat of 10 later.
    assert_eq!(shown(&mut stage.board, timer(0)), ticks(ns(218), ns(218 + 50)));
    stage.quiesce();
    let once = shown(&mut stage.board, timer(0));
    assert_eq!(once, ticks(ns(218), ns(218 + 10_000 + 20)));
    start(&mut stage);
    stage.quiesce();
    let twice = shown(&mut stage.board, timer(0));
    assert!(twice.abs_diff(2 * once) <= 1, "{once} {twice}");
}

#[test]
fn a_channel_timer_counts_dma_with_and_without_fast_forward() {
    let mut shown_by = Vec::new();
    for (is_detailed, verb) in [(false, Verb::Store), (true, Verb::Store), (false, Verb::Load), (true, Verb::Load)] {
        let machine = SimulatedMachine::new(&card(&[])).unwrap();
        let mut machine = if is_detailed { machine.in_detail() } else { machine };
        let plan = Plan { passes: 50, ..Plan::new(transfer(verb, 512, 100), 1) };
        let mut samples = Samples::wanted(2);
        machine.run(&plan, &mut samples).unwrap();
        assert_eq!(samples.steady.unwrap().skipped > 0, !is_detailed);
        let counted = shown(machine.board_mut(), timer(0));
        let both = samples.taken[0].delivered + samples.taken[1].delivered;
        // The card does not observe the delivery of a write: 172 ns and the latency before the link.
        let unseen = both.as_ns() - (counted * TICK) as f64;
        assert!((0.0..2.0 * 1000.0).contains(&unseen) && both.as_ns() > 100_000.0, "{verb:?} {unseen} of {both:?}");
        assert_eq!(shown(machine.board_mut(), timer(1)), 0);
        shown_by.push((counted, shown(machine.board_mut(), CLOCK)));
    }
    assert_eq!((shown_by[0], shown_by[2]), (shown_by[1], shown_by[3]));
}

#[test]
fn stopping_a_transfer_stops_its_timer() {
    let mut machine = SimulatedMachine::new(&card(&[])).unwrap();
    let plan = Plan::new(transfer(Verb::Load, 4096, 1000), 1);
    let short = Plan { timeout: ns(50_000), ..plan.clone() };
    let error = machine.run(&short, &mut Samples::wanted(1)).unwrap_err();
    assert!(matches!(error, MachineError::Timeout { .. }), "{error}");
    let stopped = shown(machine.board_mut(), timer(0));
    assert!((11_000..=12_500).contains(&stopped), "{stopped}");
    assert_eq!(shown(machine.board_mut(), timer(0)), stopped);
    let mut samples = Samples::wanted(1);
    machine.run(&plan, &mut samples).unwrap();
    let more = shown(machine.board_mut(), timer(0)) - stopped;
    assert!(more.abs_diff(samples.taken[0].delivered.0 / ns(TICK).0) <= 1, "{more}");
}

#[test]
fn timers_and_user_registers_survive_a_link_reset() {
    let faulty = card(&[]).with_fault("poisoned@root/card:2".parse().unwrap()).unwrap();
    let mut machine = SimulatedMachine::new(&faulty).unwrap();
    let body = vec![store(8, span("registers", Uc, USER, 8))];
    machine.run(&Plan::new(body, 1), &mut Samples::wanted(1)).unwrap();
    let kept = shown(machine.board_mut(), USER);
    assert_ne!(kept, 0);
    let write = Plan::new(transfer(Verb::Store, 4096, 1), 1);
    assert!(matches!(machine.run(&write, &mut Samples::wanted(1)), Err(MachineError::Bus(_))));
    assert_eq!(shown(machine.board_mut(), USER), kept);
    let looked_at = machine.board_mut().now() + ns(LOOKED);
    assert_eq!(shown(machine.board_mut(), CLOCK), ticks(Ticks::ZERO, looked_at));
}
