//! Semantics and cost of each memory type (T21, T25): widths, order, overlap, caching, staleness and side effects.

mod stage;

use lanemark_machine::{Access, Cause, Fence, Step, Stream, Task, Verb, Width};
use lanemark_sim::TlpKind;
use lanemark_units::MemoryType::{Uc, Wc, Wp, Wt};
use lanemark_units::{MemoryType, Ticks};
use stage::{Stage, fence, load, ns, span, store, stream};

/// A load of 8 B from SRAM: 100 to the root complex and back, 6 and 7 on the link, latency 2 x 100, ingress 50,
/// region 40 + 10, egress 50.
const LOAD_8: u64 = 463;
/// A load of a line: four beats, and a completion of 21 ns.
const LOAD_64: u64 = 507;

fn streaming(len: u64) -> Step {
    stream(Verb::Load, Access::NonTemporal(Width::B16), span("sram", Wc, 0, len))
}

fn fenced(kind: MemoryType, fence: Fence, len: u64) -> Step {
    Step::Stream(Stream {
        fence_each: Some(fence),
        ..Stream::over(Verb::Load, stage::plain(8), span("sram", kind, 0, len))
    })
}

#[test]
fn uc_loads_and_stores_have_the_width_of_the_instruction() {
    for width in [1, 2, 4, 8, 16, 32] {
        let mut stage = Stage::new();
        stage.run(vec![load(width, span("sram", Uc, 0, 32))]);
        let reads: Vec<_> = (0..32 / width).map(|number| (number * width, width)).collect();
        assert_eq!(stage.quiesce().reads("sram"), reads);
        stage.run(vec![store(width, span("sram", Uc, 0, 32))]);
        let writes = stage.quiesce().crossed();
        assert_eq!(writes.len() as u64, 32 / width);
        assert!(writes.iter().all(|crossing| u64::from(crossing.tlp.enabled_bytes()) == width));
    }
}

#[test]
fn uc_loads_are_serialised() {
    for loads in 1..5 {
        assert_eq!(Stage::new().run(vec![load(8, span("sram", Uc, 0, loads * 8))]), ns(LOAD_8 * loads));
    }
}

#[test]
fn uc_loads_and_stores_keep_program_order() {
    let mut stage = Stage::new();
    let at = |offset| span("sram", Uc, offset, 8);
    let time = stage.run(vec![store(8, at(0)), load(8, at(0)), store(8, at(64)), load(8, at(64))]);
    let kinds: Vec<_> = stage.quiesce().crossed().iter().map(|crossing| crossing.tlp.kind).collect();
    assert_eq!(kinds, [TlpKind::MWr, TlpKind::MRd, TlpKind::MWr, TlpKind::MRd]);
    assert_eq!(time, ns(2 * (100 + LOAD_8)), "each waits for the previous one");
    assert_eq!(stage.seen(), stage.stored("sram", 64, 8));
}

#[test]
fn a_uc_store_stalls_the_core_until_it_is_acknowledged() {
    for stores in 1..5 {
        let mut stage = Stage::new();
        assert_eq!(stage.run(vec![store(4, span("sram", Uc, 0, stores * 4))]), ns(stores * 100));
        assert_eq!(stage.waited(Cause::StrongOrdering), ns(stores * 100));
    }
}

#[test]
fn unfenced_wc_loads_overlap() {
    let mut stage = Stage::new();
    let time = stage.run(vec![load(8, span("sram", Wc, 0, 16))]);
    // The second load is issued a cycle later and completes a beat later, because the region serialises them.
    assert_eq!(time, ns(LOAD_8 + 10));
    let many = Stage::with("8B", &[("core.wc_loads_in_flight", 4.0)]).run(vec![load(8, span("sram", Wc, 0, 32))]);
    assert_eq!(many, ns(LOAD_8 + 30), "four in flight");
    let more = Stage::with("8B", &[("core.wc_loads_in_flight", 3.0)]).run(vec![load(8, span("sram", Wc, 0, 32))]);
    assert_eq!(more, ns(2 * LOAD_8), "the fourth waits for the first of three");
}

#[test]
fn wc_loads_do_not_overlap_with_one_in_flight() {
    let mut stage = Stage::with("8B", &[("core.wc_loads_in_flight", 1.0)]);
    assert_eq!(stage.run(vec![load(8, span("sram", Wc, 0, 32))]), ns(4 * LOAD_8));
}

#[test]
fn a_fence_serialises_wc_loads() {
    for (kind, cost) in [(Fence::Lfence, 2), (Fence::Mfence, 10), (Fence::Locked, 10)] {
        let time = Stage::new().run(vec![fenced(Wc, kind, 32)]);
        assert_eq!(time, ns(4 * (LOAD_8 + cost)), "{kind}");
    }
    let time = Stage::new().run(vec![fenced(Wc, Fence::Sfence, 16)]);
    assert!(time < ns(2 * LOAD_8), "SFENCE does not order loads: {time:?}");
}

#[test]
fn four_streaming_loads_of_a_line_are_one_read_of_64_bytes() {
    let mut stage = Stage::new();
    assert_eq!(stage.run(vec![streaming(64)]), ns(LOAD_64));
    assert_eq!(stage.quiesce().reads("sram"), [(0, 64)]);
    let seen: Vec<u8> = stage.seen_on(0).iter().flat_map(|seen| seen.bytes.clone()).collect();
    assert_eq!(seen, stage.device("sram", 0, 64));
}

#[test]
fn streaming_buffers_limit_the_reads_in_flight() {
    for (buffers, lines, trips) in [(2.0, 2_u64, 1_u64), (2.0, 3, 2), (3.0, 3, 1), (3.0, 4, 2), (1.0, 2, 2)] {
        let mut stage = Stage::with("8B", &[("core.streaming_load_buffers", buffers)]);
        let time = stage.run(vec![streaming(lines * 64)]);
        let (least, most) = (ns(trips * LOAD_64), ns(trips * LOAD_64 + 40 * lines));
        assert!(time >= least && time <= most, "{lines} lines with {buffers} buffers: {time:?}");
    }
}

#[test]
fn mfence_empties_streaming_buffers_and_lfence_does_not() {
    let quarter = |number: u64| stream(Verb::Load, Access::NonTemporal(Width::B16), span("sram", Wc, number * 16, 16));
    for (kind, reads) in
        [(Fence::Lfence, 1), (Fence::Sfence, 1), (Fence::Mfence, 2), (Fence::Locked, 2), (Fence::Interrupt, 2)]
    {
        let mut stage = Stage::new();
        stage.run(vec![quarter(0), fence(Fence::Lfence)]);
        stage.device_writes("sram", 16, &[0xEE; 16]);
        stage.run(vec![fence(kind), quarter(1)]);
        assert_eq!(stage.quiesce().reads("sram").len(), reads, "{kind}");
        assert_eq!(stage.seen() == [0xEE; 16], reads == 2, "{kind}: a buffer is not coherent with the device");
    }
}

#[test]
fn a_streaming_buffer_supplies_each_byte_once() {
    let mut stage = Stage::new();
    stage.run(vec![streaming(16), fence(Fence::Lfence), streaming(16)]);
    assert_eq!(stage.quiesce().reads("sram"), [(0, 64), (0, 64)], "a second load of the same bytes fetches again");
}

#[test]
fn movntdqa_is_an_ordinary_load_on_uc_and_without_buffers() {
    let mut stage = Stage::new();
    let from_uc = stream(Verb::Load, Access::NonTemporal(Width::B16), span("sram", Uc, 0, 64));
    let time = stage.run(vec![from_uc]);
    assert_eq!(stage.quiesce().reads("sram"), [(0, 16), (16, 16), (32, 16), (48, 16)]);
    assert_eq!(time, Stage::new().run(vec![load(16, span("sram", Uc, 0, 64))]));
    let mut stage = Stage::with("8B", &[("core.streaming_load_buffers", 0.0)]);
    stage.run(vec![streaming(64)]);
    assert_eq!(stage.quiesce().reads("sram").len(), 4);
}

#[test]
fn a_cached_line_is_fetched_once_and_goes_stale_when_the_device_writes() {
    for kind in [Wt, Wp] {
        let mut stage = Stage::new();
        let old = stage.device("sram", 0, 64);
        assert_eq!(stage.run(vec![load(8, span("sram", kind, 0, 64))]), ns(LOAD_64));
        stage.device_writes("sram", 0, &[0xEE; 64]);
        let hit = stage.run(vec![load(8, span("sram", kind, 8, 8))]);
        assert_eq!(hit, ns(4), "{kind}: a hit takes what the first-level cache takes");
        assert_eq!(stage.seen(), old[8..16], "{kind}: stale");
        assert_eq!(stage.quiesce().reads("sram"), [(0, 64)], "{kind}");
        let flush = Step::FlushLines(span("sram", kind, 0, 64));
        stage.run(vec![flush, load(8, span("sram", kind, 0, 8))]);
        assert_eq!(stage.seen(), [0xEE; 8], "{kind}: flushed and loaded again");
    }
}

#[test]
fn fill_buffers_limit_concurrent_line_fetches() {
    let lines = |count: u64| Stage::new().run(vec![load(64, span("sram", Wt, 0, count * 64))]);
    assert_eq!(lines(4), ns(LOAD_64 + 3 * 40), "four buffers; the region needs 40 ns a line");
    assert_eq!(lines(5), ns(2 * LOAD_64), "the fifth waits for the first");
}

#[test]
fn a_wt_store_updates_the_cached_line_and_the_device() {
    let mut stage = Stage::new();
    stage.run(vec![load(8, span("sram", Wt, 0, 8)), store(8, span("sram", Wt, 0, 8)), load(8, span("sram", Wt, 0, 8))]);
    stage.quiesce();
    assert_eq!(stage.seen(), stage.stored("sram", 0, 8));
    assert_eq!(stage.device("sram", 0, 8), stage.stored("sram", 0, 8));
    assert_eq!(stage.reads("sram"), [(0, 64)], "the second load hits");
}

#[test]
fn a_wp_store_drops_the_cached_line_and_reaches_the_device() {
    let mut stage = Stage::new();
    stage.run(vec![load(8, span("sram", Wp, 0, 8)), store(8, span("sram", Wp, 0, 8)), load(8, span("sram", Wp, 0, 8))]);
    stage.quiesce();
    assert_eq!(stage.seen(), stage.stored("sram", 0, 8));
    assert_eq!(stage.device("sram", 0, 8), stage.stored("sram", 0, 8));
    assert_eq!(stage.reads("sram"), [(0, 64), (0, 64)], "the second load fetches again");
}

#[test]
fn a_store_invalidates_the_line_in_other_cores() {
    let at = |kind, len| span("sram", kind, 0, len);
    let stores = [
        ("WT", Wt, store(8, at(Wt, 8))),
        ("WP", Wp, store(8, at(Wp, 8))),
        ("MOVDIRI", Wt, stream(Verb::Store, Access::Movdiri(Width::B8), at(Wt, 8))),
        ("MOVDIR64B", Wt, stream(Verb::Store, Access::Movdir64b, at(Wt, 64))),
        ("MOVNTI", Wt, stream(Verb::Store, Access::NonTemporal(Width::B8), at(Wt, 8))),
    ];
    for (what, kind, op) in stores {
        let mut stage = Stage::new();
        stage.run_on(1, vec![load(8, at(kind, 8))]);
        stage.run(vec![op, fence(Fence::Sfence)]);
        let new = stage.stored("sram", 0, 8);
        stage.run_on(1, vec![load(8, at(kind, 8))]);
        assert_eq!(stage.seen_on(1).last().unwrap().bytes, new, "{what}");
    }
}

#[test]
fn a_line_stored_to_during_a_fetch_of_another_core_is_not_cached_there() {
    let mut stage = Stage::new();
    let lane = |core, op| lanemark_machine::Lane { core, task: Task::from(op) };
    stage.board.start(&lane(1, load(8, span("sram", Wt, 0, 8))), 1, 0);
    stage.board.run_until(ns(100));
    stage.run(vec![store(8, span("sram", Wt, 0, 8))]);
    stage.quiesce();
    stage.run_on(1, vec![load(8, span("sram", Wt, 0, 8))]);
    let device = stage.device("sram", 0, 8);
    assert_eq!(stage.seen_on(1).last().unwrap().bytes, device);
}

#[test]
fn wt_stores_are_acknowledged_one_at_a_time() {
    let stores = |count: u64| Stage::new().run(vec![store(8, span("sram", Wt, 0, count * 8))]);
    assert_eq!(stores(8), ns(8), "eight fit into the store buffer");
    assert_eq!(stores(9), ns(9), "and one is outstanding");
    assert_eq!(stores(10), ns(100), "the tenth waits for the first acknowledgment");
    assert_eq!(stores(20), ns(1100));
}

#[test]
fn registers_with_read_side_effects_read_once_under_uc() {
    for width in [4, 8] {
        let mut stage = Stage::new();
        stage.device_writes("registers", 0, &[0xFF; 24]);
        stage.board.region_mut("registers").unwrap().clear_on_read(8);
        stage.run(vec![load(width, span("registers", Uc, 8, width))]);
        assert_eq!(stage.seen(), vec![0xFF; width as usize]);
        stage.run(vec![load(width, span("registers", Uc, 8, width))]);
        assert_eq!(stage.seen(), vec![0; width as usize], "cleared by the first");
        assert_eq!(stage.device("registers", 0, 8), [0xFF; 8], "its neighbours are not");
        assert_eq!(stage.device("registers", 16, 8), [0xFF; 8]);
        assert_eq!(stage.quiesce().reads("registers").len(), 2);
    }
}

#[test]
fn a_cached_or_streamed_load_clears_registers_outside_its_bytes() {
    let loads = [
        ("WT", load(8, span("registers", Wt, 0, 8))),
        ("WP", load(8, span("registers", Wp, 0, 8))),
        ("MOVNTDQA", stream(Verb::Load, Access::NonTemporal(Width::B16), span("registers", Wc, 0, 16))),
    ];
    for (what, op) in loads {
        let mut stage = Stage::new();
        stage.device_writes("registers", 0, &[0xFF; 64]);
        stage.board.region_mut("registers").unwrap().clear_on_read(56);
        stage.run(vec![op]);
        assert_eq!(stage.quiesce().reads("registers"), [(0, 64)], "{what}");
        assert_eq!(stage.device("registers", 56, 8), [0; 8], "{what} lost a register that was never read");
    }
}

#[test]
fn a_cached_load_does_not_see_a_later_register_value() {
    let mut stage = Stage::new();
    stage.device_writes("registers", 0, &[1; 8]);
    stage.run(vec![load(8, span("registers", Wt, 0, 8))]);
    stage.device_writes("registers", 0, &[2; 8]);
    stage.run(vec![load(8, span("registers", Wt, 0, 8))]);
    assert_eq!(stage.seen(), [1; 8], "polling a cached register never ends");
    stage.run(vec![load(8, span("registers", Uc, 0, 8))]);
    assert_eq!(stage.seen(), [2; 8]);
}

#[test]
fn registers_with_write_side_effects_get_every_uc_store_but_only_the_last_wc_store() {
    for (kind, both) in [(Uc, true), (Wt, true), (Wp, true), (Wc, false)] {
        let mut stage = Stage::new();
        stage.device_writes("registers", 8, &[0; 8]);
        stage.board.region_mut("registers").unwrap().set_on_write(8);
        stage.run(vec![store(4, span("registers", kind, 8, 4))]);
        let first = stage.stored("registers", 8, 4);
        stage.run(vec![store(4, span("registers", kind, 8, 4)), fence(Fence::Sfence)]);
        stage.quiesce();
        let second = stage.stored("registers", 8, 4);
        let or: Vec<u8> = first.iter().zip(&second).map(|(first, second)| first | second).collect();
        assert_ne!(or, second);
        assert_eq!(stage.device("registers", 8, 4), if both { or } else { second }, "{kind}");
    }
}

#[test]
fn a_combined_write_sets_bits_of_each_register_it_covers() {
    let mut stage = Stage::new();
    stage.device_writes("registers", 0, &[0x0F; 64]);
    stage.board.region_mut("registers").unwrap().set_on_write(16);
    stage.run(vec![store(8, span("registers", Wc, 0, 64))]);
    stage.quiesce();
    let mut meant = stage.stored("registers", 0, 64);
    meant[16..24].iter_mut().for_each(|byte| *byte |= 0x0F);
    assert_eq!(stage.device("registers", 0, 64), meant);
}

#[test]
fn popping_a_queue_takes_one_entry_a_uc_load_and_loses_entries_to_wider_reads() {
    let mut stage = Stage::new();
    stage.run(vec![store(8, span("fifo", Uc, 0, 64))]);
    stage.quiesce();
    let entries = |stage: &mut Stage| stage.board.region_mut("fifo").unwrap().fifo.len();
    assert_eq!(entries(&mut stage), 8);
    stage.run(vec![load(8, span("fifo", Uc, 0, 8)), load(8, span("fifo", Uc, 0, 8))]);
    assert_eq!(entries(&mut stage), 6, "one a load");
    stage.run(vec![load(8, span("fifo", Wt, 0, 64))]);
    assert_eq!(entries(&mut stage), 5, "eight cached loads pop once: seven of them got no entry");
}

#[test]
fn an_unloaded_load_takes_the_sum_of_its_latencies() {
    // 64 B, 8 B and 4 B of each type, unloaded: the same latencies with other payloads.
    for (kind, bytes, beats, completion) in
        [(Uc, 4, 1, 6), (Uc, 8, 1, 7), (Uc, 64, 4, 21), (Wc, 4, 1, 6), (Wc, 64, 4, 21), (Wt, 4, 4, 21), (Wp, 8, 4, 21)]
    {
        let time = Stage::new().run(vec![load(bytes, span("sram", kind, 0, bytes))]);
        let parts = [100, 6, 100, 50, 40, beats * 10, 50, completion, 100];
        assert_eq!(time, parts.into_iter().map(ns).sum::<Ticks>(), "{bytes} B from {kind}");
    }
}
