//! Write-combining: the rules of F8 and F7 on the TLPs and bytes that arrive.

mod stage;

use lanemark_machine::MachineError;
use lanemark_machine::{Access, DriverCall, Fence, Machine, Order, Plan, Samples, Step, Stream, Verb, Width};
use lanemark_sim::{CardIndex, SimulatedMachine};
use lanemark_units::MemoryType::{Uc, Wc, Wp, Wt};
use lanemark_units::Ticks;
use stage::{Stage, bus, fence, load, ns, offset_of, span, store, stream};

const LINE: (u64, u16, u8, u8) = (0, 16, 0xF, 0xF);

#[test]
fn a_fifo_behind_wc_loses_writes_to_the_same_address() {
    let mut stage = Stage::new();
    let six_times = Stream {
        order: Order::SameAddress { times: 6 },
        ..Stream::over(Verb::Store, stage::plain(1), span("fifo", Wc, 0, 1))
    };
    stage.run(vec![Step::Stream(six_times.clone()), fence(Fence::Sfence)]);
    stage.quiesce();
    assert_eq!(stage.writes("fifo"), [(0, 1, 0b0001, 0)]);
    let fifo = &stage.board.region_mut("fifo").unwrap().fifo;
    assert_eq!(fifo.iter().map(|entry| (entry.offset, entry.len)).collect::<Vec<_>>(), [(0, 1)]);

    let mut uncached = six_times;
    uncached.span.memory_type = Uc;
    stage.board.region_mut("fifo").unwrap().fifo.clear();
    stage.run(vec![Step::Stream(uncached)]);
    stage.quiesce();
    assert_eq!(stage.board.region_mut("fifo").unwrap().fifo.len(), 6, "UC keeps the number of writes");
}

#[test]
fn a_fifo_behind_wc_gets_every_byte_if_addresses_differ() {
    let mut stage = Stage::new();
    stage.run(vec![store(1, span("fifo", Wc, 0, 6)), fence(Fence::Sfence)]);
    stage.quiesce();
    let stored = stage.stored("fifo", 0, 6);
    let entry = *stage.board.region_mut("fifo").unwrap().fifo.front().unwrap();
    assert_eq!((entry.offset, entry.len, &entry.data[..6]), (0, 6, &stored[..]));
    assert_eq!(stage.writes("fifo"), [(0, 2, 0b1111, 0b0011)], "the number of writes is not kept: one instead of six");
}

#[test]
fn a_partly_stored_line_reaches_a_fifo_as_several_writes() {
    let mut stage = Stage::new();
    stage.run(vec![store(4, span("fifo", Wc, 0, 60)), fence(Fence::Sfence)]);
    stage.quiesce();
    let fifo = &stage.board.region_mut("fifo").unwrap().fifo;
    assert_eq!(fifo.iter().map(|entry| entry.len).collect::<Vec<_>>(), [8, 8, 8, 8, 8, 8, 8, 4]);
}

#[test]
fn the_order_of_writes_is_not_kept() {
    let mut stage = Stage::new();
    // Line 1 is opened after line 0 and is full first.
    stage.run(vec![store(8, span("sram", Wc, 0, 8)), store(64, span("sram", Wc, 64, 64)), fence(Fence::Sfence)]);
    stage.quiesce();
    assert_eq!(stage.writes("sram"), [(64, 16, 0xF, 0xF), (0, 2, 0xF, 0xF)]);

    let mut stage = Stage::new();
    stage.run(vec![store(8, span("sram", Uc, 0, 8)), store(8, span("sram", Uc, 64, 8))]);
    stage.quiesce();
    assert_eq!(stage.writes("sram"), [(0, 2, 0xF, 0xF), (64, 2, 0xF, 0xF)], "UC keeps it");
}

#[test]
fn a_partial_flush_splits_by_policy() {
    // Bytes 2..9, 16..20 and 63 of a line.
    let body = || {
        let part = |offset, len| store(1, span("sram", Wc, offset, len));
        vec![part(2, 7), part(16, 4), part(63, 1), fence(Fence::Sfence)]
    };
    let splits = [
        ("8B", vec![(0, 2, 0b1100, 0b1111), (8, 1, 0b0001, 0), (16, 1, 0b1111, 0), (60, 1, 0b1000, 0)]),
        ("dw", vec![(0, 1, 0b1100, 0), (4, 1, 0b1111, 0), (8, 1, 0b0001, 0), (16, 1, 0b1111, 0), (60, 1, 0b1000, 0)]),
        ("contiguous", vec![(0, 3, 0b1100, 0b0001), (16, 1, 0b1111, 0), (60, 1, 0b1000, 0)]),
    ];
    for (policy, tlps) in splits {
        let mut stage = Stage::with(policy, &[]);
        let before = stage.device("sram", 0, 64);
        stage.run(body());
        stage.quiesce();
        assert_eq!(stage.writes("sram"), tlps, "{policy}");
        let mut after = before;
        for part in [2..9, 16..20, 63..64] {
            let stored = stage.stored("sram", part.start as u64, part.len() as u64);
            after[part].copy_from_slice(&stored);
        }
        assert_eq!(stage.device("sram", 0, 64), after, "{policy}: these bytes and no others");
    }
}

#[test]
fn a_line_of_64_bytes_is_one_tlp_and_63_bytes_are_not() {
    for policy in ["8B", "dw", "contiguous"] {
        let mut stage = Stage::with(policy, &[]);
        stage.run(vec![store(1, span("sram", Wc, 0, 63))]);
        assert_eq!(stage.quiesce().writes("sram"), [], "{policy}: one byte short, no TLP is sent");
        stage.run(vec![store(1, span("sram", Wc, 63, 1))]);
        assert_eq!(stage.quiesce().writes("sram"), [LINE], "{policy}: full, it is evicted");
    }
}

#[test]
fn other_cores_read_stale_data_until_the_flush() {
    let mut stage = Stage::new();
    let old = stage.device("sram", 0, 8);
    stage.run(vec![store(8, span("sram", Wc, 0, 8))]);
    let new = stage.stored("sram", 0, 8);
    stage.quiesce();
    stage.run_on(1, vec![load(8, span("sram", Uc, 0, 8))]);
    assert_eq!(stage.seen_on(1).last().unwrap().bytes, old, "the other core");
    assert_eq!(stage.device("sram", 0, 8), old, "the device");
    stage.run(vec![fence(Fence::Sfence)]);
    stage.quiesce();
    stage.run_on(1, vec![load(8, span("sram", Uc, 0, 8))]);
    assert_eq!(stage.seen_on(1).last().unwrap().bytes, new);
    assert_eq!(stage.device("sram", 0, 8), new);
}

#[test]
fn a_core_sees_its_own_stores_with_any_load() {
    for (access, kind) in [
        (stage::plain(8), Wc),
        (stage::plain(8), Uc),
        (stage::plain(8), Wt),
        (stage::plain(8), Wp),
        (Access::NonTemporal(Width::B16), Wc),
    ] {
        let mut stage = Stage::new();
        // Loaded first, so that the line may be in a cache or a streaming buffer, and then stored to.
        let len = access.width().unwrap().bytes();
        stage.run(vec![
            stream(Verb::Load, access, span("sram", kind, 0, len)),
            stream(Verb::Load, access, span("sram", kind, 16, len)),
            stream(Verb::Store, Access::NonTemporal(Width::B16), span("sram", if kind == Wc { Wc } else { Wt }, 0, 16)),
            stream(Verb::Load, access, span("sram", kind, 0, len)),
        ]);
        assert_eq!(stage.seen(), stage.stored("sram", 0, len), "{access} from {kind}");
    }
}

#[test]
fn a_line_beyond_the_six_buffers_evicts() {
    let touch = |line: u64| store(8, span("sram", Wc, line * 64, 8));
    let mut stage = Stage::new();
    stage.run((0..6).map(touch).collect::<Vec<Step>>());
    assert_eq!(stage.quiesce().writes("sram"), []);
    stage.run(vec![touch(5), touch(0)]);
    assert_eq!(stage.quiesce().writes("sram"), [], "six lines fit into six buffers");
    stage.run(vec![touch(6)]);
    assert_eq!(stage.quiesce().writes("sram"), [(0, 2, 0xF, 0xF)], "the oldest line is evicted");
    let mut ten = Stage::with("8B", &[("core.wc_buffers", 10.0)]);
    ten.run((0..10).map(touch).collect::<Vec<Step>>());
    assert_eq!(ten.quiesce().writes("sram"), []);
}

#[test]
fn writes_of_another_region_evict() {
    let mut stage = Stage::new();
    stage.run(vec![store(8, span("ddr", Wc, 0, 8))]);
    let stored = stage.stored("ddr", 0, 8);
    stage.run((0..5).map(|line| store(8, span("sram", Wc, line * 64, 8))).collect::<Vec<Step>>());
    assert_eq!(stage.quiesce().crossed(), []);
    stage.run(vec![store(8, span("sram", Wc, 5 * 64, 8))]);
    assert_eq!(stage.quiesce().writes("ddr"), [(0, 2, 0xF, 0xF)]);
    assert_eq!(stage.device("ddr", 0, 8), stored);
}

#[test]
fn serialising_operations_drain_wc_buffers_but_lfence_does_not() {
    let registers = |verb| stream(verb, stage::plain(8), span("registers", Uc, 0, 8));
    let call = |verb| Step::Driver(DriverCall { verb, span: span("ddr", Uc, 0, 8), call_bytes: 8, width: Width::B8 });
    let drains = [
        ("sfence", fence(Fence::Sfence), true),
        ("mfence", fence(Fence::Mfence), true),
        ("locked instruction", fence(Fence::Locked), true),
        ("interrupt", fence(Fence::Interrupt), true),
        ("UC store", registers(Verb::Store), true),
        ("UC load", registers(Verb::Load), true),
        ("driver call, read", call(Verb::Load), true),
        ("driver call, write", call(Verb::Store), true),
        ("lfence", fence(Fence::Lfence), false),
        ("WC load of another line", load(8, span("sram", Wc, 256, 8)), false),
        ("WT load of another line", load(8, span("sram", Wt, 256, 8)), false),
        ("pause", Step::Pause(ns(10_000)), false),
    ];
    for (what, op, drained) in drains {
        let mut stage = Stage::new();
        let old = stage.device("sram", 0, 4);
        stage.run(vec![store(4, span("sram", Wc, 0, 4))]);
        let new = stage.stored("sram", 0, 4);
        stage.run(vec![op]);
        stage.quiesce();
        assert_eq!(stage.device("sram", 0, 4), if drained { new } else { old }, "{what}");
    }
}

#[test]
fn a_uc_store_arrives_after_earlier_wc_stores() {
    let mut stage = Stage::new();
    stage.run(vec![store(8, span("sram", Wc, 0, 16)), store(8, span("sram", Uc, 128, 8))]);
    stage.quiesce();
    let offsets: Vec<u64> = stage.writes("sram").into_iter().map(|write| write.0).collect();
    assert_eq!(offsets, [0, 8, 128]);
}

#[test]
fn sfence_waits_for_the_acknowledgment_not_the_delivery() {
    let mut stage = Stage::new();
    // 64 B are sent at 0; the acknowledgment arrives after 100 ns; SFENCE itself takes 2.
    let time = stage.run(vec![store(64, span("sram", Wc, 0, 64)), fence(Fence::Sfence)]);
    assert_eq!(time, ns(102));
    assert_eq!(stage.writes("sram"), [], "the line is still on the link");
    assert_eq!(stage.quiesce().writes("sram"), [LINE]);
}

#[test]
fn a_line_stored_to_again_waits_for_its_acknowledgment() {
    let mut stage = Stage::new();
    let line = || store(64, span("sram", Wc, 0, 64));
    stage.run(vec![line(), line(), fence(Fence::Sfence)]);
    assert_eq!(stage.waited(lanemark_machine::Cause::SameLine), ns(99), "all but the cycle it issued in");
    assert_eq!(stage.quiesce().writes("sram"), [LINE, LINE]);
}

#[test]
fn sixteen_stores_of_4_bytes_make_16_beats_on_uc_and_1_on_wc() {
    let mut stage = Stage::new();
    let beats = |stage: &mut Stage| stage.board.region_mut("ddr").unwrap().take_beats();
    for (kind, count) in [(Uc, 16), (Wc, 1)] {
        stage.run(vec![store(4, span("ddr", kind, 0, 64))]);
        stage.quiesce();
        let first = beats(&mut stage);
        assert_eq!((first.write, first.read), (count, 0), "{kind}");
        let second = beats(&mut stage);
        assert_eq!((second.write, second.read), (0, 0), "{kind}: reading clears");
    }
    stage.run(vec![load(4, span("ddr", Uc, 0, 16))]);
    assert_eq!(beats(&mut stage).read, 4);
}

#[test]
fn movdiri_is_never_combined() {
    for kind in [Wc, Uc, Wt, Wp] {
        let mut stage = Stage::new();
        stage.run(vec![stream(Verb::Store, Access::Movdiri(Width::B4), span("sram", kind, 0, 16))]);
        stage.quiesce();
        let dws = [0, 4, 8, 12].map(|offset| (offset, 1, 0xF, 0));
        assert_eq!(stage.writes("sram"), dws, "{kind}");
        assert_eq!(stage.device("sram", 0, 16), stage.stored("sram", 0, 16));
    }
}

#[test]
fn movdir64b_is_one_tlp_of_64_bytes_even_on_uc() {
    for kind in [Wc, Uc, Wt, Wp] {
        let mut stage = Stage::new();
        let time = stage.run(vec![stream(Verb::Store, Access::Movdir64b, span("sram", kind, 0, 128))]);
        stage.quiesce();
        assert_eq!(stage.writes("sram"), [LINE, (64, 16, 0xF, 0xF)], "{kind}");
        assert_eq!(time, ns(2), "{kind}: weakly ordered, without a stall");
    }
}

#[test]
fn a_direct_store_evicts_gathered_stores_of_its_line_first() {
    let mut stage = Stage::new();
    stage.run(vec![
        store(8, span("sram", Wc, 0, 16)),
        stream(Verb::Store, Access::Movdiri(Width::B8), span("sram", Wc, 8, 8)),
    ]);
    stage.quiesce();
    assert_eq!(stage.writes("sram"), [(0, 2, 0xF, 0xF), (8, 2, 0xF, 0xF), (8, 2, 0xF, 0xF)]);
}

#[test]
fn non_temporal_stores_combine_on_wc_and_wt_and_stay_single_on_uc_and_wp() {
    for (kind, writes) in [(Wc, 1), (Wt, 1), (Uc, 4), (Wp, 4)] {
        let mut stage = Stage::new();
        stage.run(vec![stream(Verb::Store, Access::NonTemporal(Width::B16), span("sram", kind, 0, 64))]);
        stage.quiesce();
        assert_eq!(stage.writes("sram").len(), writes, "{kind}");
        assert_eq!(stage.device("sram", 0, 64), stage.stored("sram", 0, 64), "{kind}");
    }
}

#[test]
fn a_wt_store_does_not_overtake_a_non_temporal_one_to_its_line() {
    let mut stage = Stage::new();
    stage.run(vec![
        stream(Verb::Store, Access::NonTemporal(Width::B8), span("sram", Wt, 0, 8)),
        store(4, span("sram", Wt, 0, 4)),
        fence(Fence::Sfence),
    ]);
    stage.quiesce();
    assert_eq!(stage.writes("sram"), [(0, 2, 0xF, 0xF), (0, 1, 0xF, 0)], "the earlier one first");
}

#[test]
fn a_store_does_not_pass_an_earlier_load() {
    let mut stage = Stage::new();
    let old = stage.device("sram", 0, 64);
    stage.run(vec![load(8, span("sram", Wc, 0, 8)), store(64, span("sram", Wc, 0, 64))]);
    stage.quiesce();
    assert_eq!(stage.seen(), old[..8], "the load is older");
    let kinds: Vec<_> = stage.crossed().iter().map(|crossing| crossing.tlp.kind).collect();
    assert_eq!(kinds, [lanemark_sim::TlpKind::MRd, lanemark_sim::TlpKind::MWr]);
}

#[test]
fn stores_issue_until_the_store_buffer_is_full() {
    // Consecutive lines fill six buffers; then each store stalls, and eight more may issue.
    let stored = |lines: u64| Stage::new().run(vec![store(64, span("ddr", Wc, 0, lines * 64))]);
    assert_eq!(stored(6), ns(6));
    assert_eq!(stored(14), ns(14), "six in WC buffers, eight in the store buffer");
    assert_eq!(stored(15), ns(100), "the fifteenth needs the first buffer back");
}

#[test]
fn a_wb_bar_and_a_misaligned_movdir64b_are_refused_before_any_tlp() {
    let mut machine = SimulatedMachine::new(&stage::platform("8B", &[])).unwrap();
    let plans = [
        store(8, span("sram", lanemark_units::MemoryType::Wb, 0, 8)),
        stream(Verb::Store, Access::Movdir64b, span("sram", Wc, 8, 64)),
        stream(Verb::Store, Access::Movdir64b, span("sram", Wc, 0, 63)),
        stream(Verb::Store, Access::NonTemporal(Width::B16), span("sram", Wc, 8, 16)),
    ];
    for op in plans {
        let error = machine.run(&Plan::new(vec![op], 1), &mut Samples::wanted(1)).unwrap_err();
        assert!(matches!(error, MachineError::Unsupported(_)), "{error}");
    }
    assert_eq!(machine.board_mut().crossed(CardIndex(0)).0.writes, 0);
    let aligned = stream(Verb::Store, Access::Movdir64b, span("sram", Wc, 64, 64));
    machine.run(&Plan::new(vec![aligned], 1), &mut Samples::wanted(1)).unwrap();
    assert_eq!(machine.board_mut().crossed(CardIndex(0)).0.writes, 1);
    assert_eq!(bus("sram", 0) - bus("registers", 0), offset_of("sram"));
    assert!(machine.board_mut().now() > Ticks::ZERO);
}
