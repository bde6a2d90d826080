//! DMA transfers: duration, stall causes, and the bytes that arrive.

mod stage;

use lanemark_machine::{
    Cause, EngineJob, Machine, MachineError, Partner, Pattern, Plan, Sample, Samples, Transfer, Verb, Window, WriteRead,
};
use lanemark_platform::Platform;
use lanemark_sim::{Board, CardIndex, SimulatedMachine};
use lanemark_sim::{Tlp, TlpKind};
use lanemark_units::Ticks;
use stage::{ns, offset_of, platform, tree_platform};

/// Returns transfers of `bytes` bytes between card 0 and host memory.
fn transfer(verb: Verb, bytes: u64, count: u64) -> Transfer {
    let window = Window { offset: 0, len: 64 << 10, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding: None }
}

fn plan(transfers: &[Transfer]) -> Plan {
    Plan::new(transfers.iter().copied().map(EngineJob::Transfer).collect::<Vec<EngineJob>>(), 1)
}

fn run(platform: &Platform, transfers: &[Transfer]) -> Samples {
    let mut machine = SimulatedMachine::new(platform).unwrap();
    let mut samples = Samples::wanted(1);
    machine.run(&plan(transfers), &mut samples).unwrap();
    assert_eq!(machine.board_mut().slots_in_use(), 0);
    samples
}

fn delivered(platform: &Platform, transfer: &Transfer) -> Ticks {
    let samples = run(platform, std::slice::from_ref(transfer));
    let [Sample { delivered, .. }] = samples.taken[..] else { panic!("one sample") };
    delivered
}

fn wait(samples: &Samples, cause: Cause) -> Ticks {
    samples.waits.iter().find(|wait| wait.cause == cause).map_or(Ticks::ZERO, |wait| wait.span)
}

#[test]
fn completions_are_split_only_if_a_write_arrives_during_the_read() {
    let completions = |write_at: Ticks, loaded: f64| {
        let platform = platform("8B", &[("memory.loaded_completion_bytes", loaded), ("link.mps_bytes", 256.0)]);
        let mut board = Board::new(&platform).unwrap();
        let (address, requester) = (board.mapped_at(), 0x8000);
        let at = |length_dw, kind| Tlp { address, length_dw, first_be: 0xF, last_be: 0xF, requester, ..Tlp::of(kind) };
        let payload = board.payload(&[7; 8]);
        let mut both = [(ns(1000), at(64, TlpKind::MRd)), (write_at, Tlp { payload, ..at(2, TlpKind::MWr) })];
        both.sort_by_key(|(at, _)| *at);
        for (at, tlp) in both {
            board.inject_at_card(CardIndex(0), at, tlp);
        }
        while board.step() {}
        board.crossed(CardIndex(0)).0.completions
    };
    // The data arrives 200 ns after the read; the write of 32 B takes 2 ns longer on the line than the read.
    let late = ns(1198);
    assert_eq!(completions(Ticks(late.0 - 1), 64.0), 4, "a tick before the data arrives");
    assert_eq!(completions(Ticks(late.0 - 1), 128.0), 2);
    assert_eq!(completions(Ticks(late.0 - 1), 0.0), 1, "no difference");
    assert_eq!(completions(late + Ticks(1), 64.0), 1, "after it");
    assert_eq!(completions(ns(990), 64.0), 1, "before it");
}

#[test]
fn an_odd_end_has_its_own_completion_if_configured() {
    let mut apart = platform("8B", &[("link.mps_bytes", 256.0)]);
    let count =
        |platform: &Platform, bytes| run(platform, &[transfer(Verb::Load, bytes, 1)]).traffic.unwrap().completion_tlps;
    assert_eq!([64, 65, 128, 129, 255].map(|bytes| count(&apart, bytes)), [1, 1, 1, 1, 1]);
    apart.memory.as_mut().unwrap().odd_end_completion.value = true;
    assert_eq!([63, 64, 65, 128, 129, 255].map(|bytes| count(&apart, bytes)), [1, 1, 2, 1, 2, 2]);
}

#[test]
fn a_read_takes_the_sum_of_the_latencies_of_its_round_trip() {
    // A beat for the header 4, egress 50, 24 B on the link 6, latency 100, memory 200, 84 B 21, 100, ingress 50, five
    // beats 20.
    assert_eq!(delivered(&platform("8B", &[]), &transfer(Verb::Load, 64, 1)), ns(551));
    // Memory below 4 GiB: a header of 12 B is also one beat, and a DW less on the link.
    let low = platform("8B", &[("memory.address_bytes", 1_048_576.0)]);
    assert_eq!(delivered(&low, &transfer(Verb::Load, 64, 1)), ns(550));
}

#[test]
fn a_write_takes_the_sum_of_the_latencies_until_a_core_sees_it() {
    // Five beats 20, egress 50, 88 B on the link 22, latency 100, 50 until it is visible.
    assert_eq!(delivered(&platform("8B", &[]), &transfer(Verb::Store, 64, 1)), ns(242));
    let late = platform("8B", &[("dma.start_ns", 1000.0), ("dma.write_request_ns", 7.0)]);
    assert_eq!(delivered(&late, &transfer(Verb::Store, 64, 1)), ns(1249));
}

#[test]
fn the_write_rate_is_limited_by_the_slower_of_engine_and_link() {
    let between = |platform: &Platform| {
        let time = |count| delivered(platform, &transfer(Verb::Store, 4096, count));
        // 32 TLPs of 128 B in each transfer.
        Ticks((time(9) - time(1)).0 / (8 * 32))
    };
    // 152 B take 38 ns on the link, nine beats 36.
    assert_eq!(between(&platform("8B", &[])), ns(38));
    assert_eq!(between(&platform("8B", &[("dma.beat_ns", 5.0)])), ns(45));
    assert_eq!(between(&platform("8B", &[("dma.write_request_ns", 20.0)])), ns(56));
    assert_eq!(between(&platform("8B", &[("memory.write_tlp_ns", 60.0)])), ns(60));
}

#[test]
fn the_stall_cause_of_writes_is_their_bottleneck() {
    for (changes, cause) in [
        (&[][..], Cause::LinkBusy),
        (&[("dma.beat_ns", 5.0)], Cause::Engine),
        (&[("memory.write_tlp_ns", 60.0)], Cause::Memory),
        (&[("root_complex.posted_header_credits", 2.0)], Cause::Credit),
    ] {
        let samples = run(&platform("8B", changes), &[transfer(Verb::Store, 4096, 64)]);
        let most = samples.waits.iter().max_by_key(|wait| wait.span).unwrap();
        assert_eq!(most.cause, cause, "{changes:?}: {:?}", samples.waits);
        assert!(most.span.0 * 10 > samples.taken[0].issue.0 * 8, "{changes:?}: {:?}", samples.waits);
    }
}

#[test]
fn tags_limit_the_reads_of_a_round_trip() {
    // 128 B: 4 + 50 + 6 + 100 + 200 + 37 + 100 + 50 + 9 x 4 = 583.
    let one = platform("8B", &[("dma.tags", 1.0), ("dma.read_bytes", 128.0)]);
    assert_eq!(delivered(&one, &transfer(Verb::Load, 128, 1)), ns(583));
    assert_eq!(delivered(&one, &transfer(Verb::Load, 128, 10)), ns(5830));
    let two = platform("8B", &[("dma.tags", 2.0), ("dma.read_bytes", 128.0)]);
    let samples = run(&two, &[transfer(Verb::Load, 128, 100)]);
    // The second read completes later by the time of its data: 36 ns of beats, 37 on the link.
    assert_eq!(samples.taken[0].delivered, ns(50 * 583 + 37));
    assert!(wait(&samples, Cause::Tag) > ns(28_000), "{:?}", samples.waits);
}

#[test]
fn one_outstanding_transfer_stalls_for_its_round_trip() {
    let one = Transfer { outstanding: Some(1), ..transfer(Verb::Load, 64, 10) };
    let samples = run(&platform("8B", &[]), &[one]);
    assert_eq!(samples.taken[0].delivered, ns(5510));
    assert_eq!(wait(&samples, Cause::ReadRoundTrip), ns(9 * 551));
}

/// Returns pairs of a write and a read of `bytes` bytes.
fn pairs(bytes: u64, count: u64, read_at: u64, is_mixed: bool) -> WriteRead {
    let write = transfer(Verb::Store, bytes, count);
    WriteRead { write, read: Window { offset: read_at, ..write.window }, is_mixed }
}

fn run_pairs(pairs: WriteRead) -> Samples {
    let mut machine = SimulatedMachine::new(&platform("8B", &[])).unwrap();
    let mut samples = Samples::wanted(1);
    machine.run(&Plan::new(pairs, 1), &mut samples).unwrap();
    assert_eq!(machine.board_mut().slots_in_use(), 0);
    let moved = pairs.bytes_per_pass();
    assert_eq!(samples.confirmed.map(|bytes| (bytes.claimed_bytes, bytes.confirmed_bytes)), Some((moved, moved)));
    samples
}

#[test]
fn a_read_behind_a_write_waits_for_the_link_and_returns_the_written_bytes() {
    // Five beats 20 for the write, one for the read, which is ready 4 ns into the 22 ns of the write. Then as alone.
    let one = run_pairs(pairs(64, 1, 0, false));
    assert_eq!(one.taken[0].delivered, ns(20 + 18 + 551));
    let mut several = pairs(64, 10, 0, false);
    several.write.outstanding = Some(1);
    let samples = run_pairs(several);
    assert_eq!(samples.taken[0].delivered, ns(10 * 589));
    // From the request of each read, 20 after the start of its write.
    assert_eq!(wait(&samples, Cause::ReadRoundTrip), ns(9 * (589 - 20)));
}

#[test]
fn mixed_pairs_overlap_and_sequential_pairs_do_not() {
    let took = |is_mixed| run_pairs(pairs(16 << 10, 2, 32 << 10, is_mixed)).taken[0].delivered.as_ns();
    assert!(took(false) > 1.3 * took(true), "{} and {}", took(false), took(true));
}

#[test]
fn completions_are_split_at_read_completion_boundaries() {
    let completions = |changes: &[(&str, f64)], offset: u64, bytes: u64| {
        let window = Window { offset, len: 4096, pattern: Pattern::Sequential };
        let samples = run(&platform("8B", changes), &[Transfer { window, ..transfer(Verb::Load, bytes, 1) }]);
        let traffic = samples.traffic.unwrap();
        assert_eq!(samples.confirmed.map(|bytes| (bytes.claimed_bytes, bytes.confirmed_bytes)), Some((bytes, bytes)));
        (traffic.read_tlps, traffic.completion_tlps)
    };
    assert_eq!(completions(&[], 0, 512), (1, 4), "MPS 128");
    assert_eq!(completions(&[], 4, 512), (1, 5), "split at boundaries");
    assert_eq!(completions(&[("memory.completion_bytes", 64.0)], 0, 512), (1, 8));
    assert_eq!(completions(&[("memory.completion_bytes", 64.0)], 63, 2), (1, 2));
    assert_eq!(completions(&[("dma.read_bytes", 64.0)], 0, 512), (8, 8));
    assert_eq!(completions(&[("link.mrrs_bytes", 128.0)], 1, 128), (2, 2), "a start inside a DW needs one more");
    assert_eq!(completions(&[], 4090, 12), (2, 2), "a request does not cross 4 KiB");
}

#[test]
fn every_byte_arrives_at_any_alignment() {
    for verb in [Verb::Load, Verb::Store] {
        for offset in [0, 1, 3, 4, 63, 4095] {
            for bytes in [1, 2, 5, 63, 64, 65, 127, 128, 129, 4096, 5000] {
                let window = Window { offset, len: 8 * bytes, pattern: Pattern::Sequential };
                let moved = Transfer { window, ..transfer(verb, bytes, 5) };
                let confirmed = run(&platform("8B", &[]), &[moved]).confirmed.unwrap();
                assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (5 * bytes, 5 * bytes), "{moved:?}");
            }
        }
    }
}

#[test]
fn unmoved_bytes_are_not_confirmed() {
    let mut board = Board::new(&platform("8B", &[])).unwrap();
    let moved = transfer(Verb::Load, 64, 1);
    board.start_transfer(&moved, 1, 0).unwrap();
    while board.step() {}
    let (mut there, mut here) = ([0; 128], [0; 128]);
    board.memory_mut().read(0, &mut there);
    board.engine_mut(CardIndex(0)).unwrap().sink.read(0, &mut here);
    assert_eq!(there[..64], here[..64]);
    assert!(there[64..].iter().zip(&here[64..]).all(|(there, here)| there != here));
}

#[test]
fn a_read_outside_dma_memory_fails_with_its_address() {
    let mut board = Board::new(&platform("8B", &[])).unwrap();
    let window = Window { offset: (1 << 20) - 64, len: 128, pattern: Pattern::Sequential };
    board.start_transfer(&Transfer { window, ..transfer(Verb::Load, 128, 1) }, 1, 0).unwrap();
    while board.step() {}
    assert_eq!(board.engine(CardIndex(0)).unwrap().refused, Some((4 << 30) + (1 << 20)));
    assert_eq!(board.engine(CardIndex(0)).unwrap().received_bytes, 64, "reads inside DMA memory complete");
    assert_eq!(board.slots_in_use(), 0);
}

#[test]
fn a_timed_out_transfer_names_its_stall_cause_and_affects_no_other() {
    let mut machine = SimulatedMachine::new(&platform("8B", &[("dma.tags", 1.0)])).unwrap();
    let read = transfer(Verb::Load, 4096, 4);
    let mut samples = Samples::wanted(1);
    machine.run(&plan(&[read]), &mut samples).unwrap();
    let in_time = samples.taken[0].delivered;
    for part in 1..8 {
        let short = Plan { timeout: Ticks(in_time.0 / 8 * part), ..plan(&[read]) };
        let error = machine.run(&short, &mut samples).unwrap_err();
        assert!(matches!(&error, MachineError::Timeout { waiting_for, .. } if waiting_for.contains("tag")), "{error}");
        assert_eq!(machine.board_mut().slots_in_use(), 0);
        machine.run(&plan(&[read]), &mut samples).unwrap();
        assert_eq!(samples.taken[0].delivered, in_time);
        let confirmed = samples.confirmed.unwrap();
        assert_eq!(confirmed.claimed_bytes, confirmed.confirmed_bytes);
    }
}

#[test]
fn an_invalid_transfer_is_refused_before_any_tlp() {
    let mut machine = SimulatedMachine::new(&platform("8B", &[])).unwrap();
    let good = transfer(Verb::Store, 64, 1);
    let peer = |card, bar| Transfer { partner: Partner::Peer { card, bar }, ..good };
    for (bad, because) in [
        (Transfer { card: 1, ..good }, "there is no card 1"),
        (Transfer { bytes: 0, ..good }, "moves nothing"),
        (Transfer { count: 0, ..good }, "moves nothing"),
        (Transfer { outstanding: Some(0), ..good }, "moves nothing"),
        (Transfer { bytes: (1 << 20) + 1, ..good }, "reach beyond DMA memory"),
        (Transfer { window: Window { offset: u64::MAX, ..good.window }, ..good }, "reach beyond"),
        (peer(0, 0), "is no peer"),
        (peer(1, 0), "is no peer"),
    ] {
        let MachineError::Unsupported(error) = machine.run(&plan(&[bad]), &mut Samples::wanted(1)).unwrap_err() else {
            panic!("{bad:?}");
        };
        assert!(error.because.contains(because), "{error}");
    }
    let twice = machine.run(&plan(&[good, good]), &mut Samples::wanted(1)).unwrap_err();
    assert!(twice.to_string().contains("one transfer at a time"), "{twice}");
    let none = Platform { dma: None, ..platform("8B", &[]) };
    let none = SimulatedMachine::new(&none).unwrap().run(&plan(&[good]), &mut Samples::wanted(1)).unwrap_err();
    assert!(none.to_string().contains("no section [dma]"), "{none}");
}

#[test]
fn peer_writes_pass_the_switches_without_the_root_complex() {
    let tree = tree_platform(&[]);
    let to = |from, card| {
        let window = Window { offset: 0x80000, len: 4096, pattern: Pattern::Sequential };
        let partner = Partner::Peer { card, bar: 0 };
        let moved = Transfer { card: from, partner, window, ..transfer(Verb::Store, 64, 1) };
        let samples = run(&tree, &[moved]);
        let confirmed = samples.confirmed.unwrap();
        assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (64, 64));
        samples.taken[0].delivered
    };
    // 20 + 50; header of 24 B 6, latency 100, switch 150; 22, 100, ingress 50, a beat of 10.
    let one = ns(20 + 50 + 6 + 100 + 150 + 22 + 100 + 50 + 10);
    assert_eq!(to(0, 1), one);
    assert_eq!(to(3, 2), one);
    // One more switch: its link of 10 ns, the header again 6, 150.
    assert_eq!(to(0, 3), one + ns(10 + 6 + 150));
    assert_eq!(to(2, 1), one + ns(10 + 6 + 150));
}

#[test]
fn peer_reads_through_switches_return_every_byte() {
    let tree = tree_platform(&[]);
    let sram = offset_of("sram");
    let held: Vec<u8> = (0..0x1_0000_u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (card, other, bytes, from) in
        [(0, 1, 64, 0), (0, 3, 63, 1), (2, 1, 65, 63), (3, 0, 4096, 100), (1, 2, 10_000, 4090)]
    {
        let window = Window { offset: sram + from, len: 0x8000, pattern: Pattern::Sequential };
        let partner = Partner::Peer { card: other, bar: 0 };
        let read = Transfer { card, partner, window, ..transfer(Verb::Load, bytes, 2) };
        let mut machine = SimulatedMachine::new(&tree).unwrap();
        machine.board_mut().region_of_mut(other.into(), "sram").unwrap().memory.write(0, &held);
        let mut samples = Samples::wanted(1);
        machine.run(&plan(&[read]), &mut samples).unwrap();
        let confirmed = samples.confirmed.unwrap();
        assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (2 * bytes, 2 * bytes));
        let mut found = vec![0; 2 * bytes as usize];
        machine.board_mut().engine_mut(card.into()).unwrap().sink.read(sram + from, &mut found);
        assert!(found == held[from as usize..][..found.len()], "{bytes} B of card {other}");
        assert_eq!((machine.board_mut().slots_in_use(), machine.board_mut().lost()), (0, 0));
    }
}

#[test]
fn a_peer_read_takes_the_sum_of_the_latencies_of_its_round_trip() {
    let tree = tree_platform(&[]);
    let read = |card, other| {
        let window = Window { offset: offset_of("sram"), len: 4096, pattern: Pattern::Sequential };
        let partner = Partner::Peer { card: other, bar: 0 };
        delivered(&tree, &Transfer { card, partner, window, ..transfer(Verb::Load, 64, 1) })
    };
    // A beat for the header 4, egress 50, 24 B on each link 6, latency 100, switch 150, ingress 50; region 40 and
    // four beats of 10; egress 50, 84 B on each link: 20 B of header 5 before the switch, 21 after it; ingress 50,
    // five beats 20.
    let there = ns(4 + 50 + 6 + 100 + 150 + 6 + 100 + 50);
    let one = there + ns(40 + 40) + ns(50 + 5 + 100 + 150 + 21 + 100 + 50 + 20);
    assert_eq!(read(0, 1), one);
    assert_eq!(read(3, 2), one);
    // One more switch: its link of 10 ns, the headers again, 150, in both directions.
    assert_eq!(read(0, 3), one + ns(10 + 6 + 150 + 10 + 5 + 150));
}

#[test]
fn a_store_and_forward_switch_waits_for_the_last_bit() {
    let mut tree = tree_platform(&[]);
    for switch in &mut tree.switches {
        switch.forwarding.value = lanemark_platform::Forwarding::StoreAndForward;
    }
    let window = Window { offset: 0x80000, len: 4096, pattern: Pattern::Sequential };
    let partner = Partner::Peer { card: 1, bar: 0 };
    let moved = Transfer { partner, window, ..transfer(Verb::Store, 64, 1) };
    assert_eq!(delivered(&tree, &moved), ns(20 + 50 + 22 + 100 + 150 + 22 + 100 + 50 + 10));
}

#[test]
fn ports_that_share_a_link_share_it_equally() {
    let tree = tree_platform(&[("memory.read_ns", 100.0), ("core.cores", 4.0)]);
    let flows = |cards: std::ops::Range<u32>| -> Vec<Transfer> {
        cards.map(|card| Transfer { card, ..transfer(Verb::Store, 4096, 64) }).collect()
    };
    let alone = run(&tree, &flows(0..1)).taken[0].delivered;
    let times = |flows: &[Transfer]| run(&tree, flows).taken[0].delivered.as_ns() / alone.as_ns();
    assert!((times(&flows(0..2)) / 2.0 - 1.0).abs() < 0.01);
    // Round-robin by port: two cards behind one port of the upper switch share its turn.
    let from_below: Vec<Transfer> = flows(0..4).into_iter().rev().collect();
    assert!((times(&flows(0..4)) / 3.0 - 1.0).abs() < 0.01, "{}", times(&flows(0..4)));
    assert!((times(&from_below) / 4.0 - 1.0).abs() < 0.01, "{}", times(&from_below));
}

#[test]
fn completions_return_to_the_requesting_card() {
    let tree = tree_platform(&[]);
    for card in 0..4 {
        let window = Window { offset: 4096 * u64::from(card), len: 4096, pattern: Pattern::Sequential };
        let samples = run(&tree, &[Transfer { card, window, ..transfer(Verb::Load, 4096, 3) }]);
        let confirmed = samples.confirmed.unwrap();
        assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (4096, 4096), "card {card}");
    }
}

#[test]
fn acks_and_credit_updates_take_line_time_of_the_other_direction() {
    let window = Window { offset: 0x80000, len: 4096, pattern: Pattern::Sequential };
    let to = |card, peer| Transfer {
        card,
        window,
        partner: Partner::Peer { card: peer, bar: 0 },
        ..transfer(Verb::Store, 4096, 64)
    };
    let tree = tree_platform(&[]);
    let one_way = run(&tree, &[to(0, 1)]).taken[0].delivered.as_ns();
    let both_ways = run(&tree, &[to(0, 1), to(1, 0)]).taken[0].delivered.as_ns();
    // At Gen2 x8 and 128 B, a receiver delays acknowledgment by up to 118.75 symbol times of 2 ns, and restarts with
    // the next TLP: every seventh TLP of 38 ns. Then 8 B acknowledge, and 8 B return credits.
    let times = both_ways / one_way;
    assert!((times - (1.0 + 16.0 / (7.0 * 152.0))).abs() < 0.003, "{times}");
}

#[test]
fn tlps_start_at_the_configured_alignment() {
    let between = |slot: f64| {
        let tree = platform("8B", &[("link.tlp_alignment_bytes", slot), ("memory.address_bytes", 1_048_576.0)]);
        let time = |count| delivered(&tree, &transfer(Verb::Store, 4096, count));
        Ticks((time(9) - time(1)).0 / (8 * 32))
    };
    // 148 B at 4 GB/s; aligned to 8 B, 152; to 16 B, 160.
    assert_eq!([4.0, 8.0, 16.0].map(between), [ns(37), ns(38), ns(40)]);
}

#[test]
fn a_descriptor_costs_once_a_page_and_once_a_transfer_but_not_for_peers() {
    let with = |cost: f64, moved: &Transfer| {
        delivered(&tree_platform(&[("dma.descriptor_ns", cost), ("dma.send_buffers", 1024.0)]), moved)
    };
    for (bytes, count, offset, descriptors) in
        [(4096, 1, 0, 1), (4096, 3, 0, 3), (8192, 1, 0, 2), (4096, 1, 64, 2), (64, 5, 0, 5)]
    {
        let window = Window { offset, len: 1 << 16, pattern: Pattern::Sequential };
        let moved = Transfer { window, ..transfer(Verb::Load, bytes, count) };
        // One outstanding transfer, so that no cost is hidden.
        let moved = Transfer { outstanding: Some(1), ..moved };
        let more = with(1_000_000.0, &moved) - with(0.0, &moved);
        assert!((more.as_ns() / 1e6 - f64::from(descriptors)).abs() < 0.01, "{moved:?}: {more:?}");
    }
    let window = Window { offset: 0x80000, len: 4096, pattern: Pattern::Sequential };
    let peer = Transfer { window, partner: Partner::Peer { card: 1, bar: 0 }, ..transfer(Verb::Store, 4096, 2) };
    assert_eq!(with(1_000_000.0, &peer), with(0.0, &peer));
}

#[test]
fn random_concurrent_flows_all_complete_and_time_never_decreases() {
    let mut state = 5_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..150 {
        let credits = [1.0, 2.0, 8.0, 32.0][random(4) as usize];
        let tree = tree_platform(&[
            ("dma.tags", [1.0, 4.0, 8.0, 32.0][random(4) as usize]),
            ("dma.read_bytes", [64.0, 128.0, 512.0][random(3) as usize]),
            ("memory.completion_bytes", [64.0, 128.0][random(2) as usize]),
            ("link.width_lanes", [1.0, 4.0, 8.0][random(3) as usize]),
            ("root_complex.posted_header_credits", credits),
            ("root_complex.nonposted_header_credits", credits),
            ("link.posted_header_credits", credits),
        ]);
        let mut board = Board::new(&tree).unwrap();
        let bytes = 1 + random(1000);
        let flows: Vec<Transfer> = (0..4)
            .map(|card| {
                let peer = (card + 1 + random(3) as u32) % 4;
                let window = Window { offset: u64::from(card) << 16, len: 1 << 16, pattern: Pattern::Sequential };
                let in_ddr = Window { offset: 0x80000, ..window };
                match random(3) {
                    0 => Transfer { card, window, ..transfer(Verb::Store, bytes, 40) },
                    1 => Transfer { card, window, ..transfer(Verb::Load, bytes, 40) },
                    _ => {
                        let partner = Partner::Peer { card: peer, bar: 0 };
                        Transfer { card, partner, window: in_ddr, ..transfer(Verb::Store, bytes, 40) }
                    }
                }
            })
            .collect();
        for flow in &flows {
            board.start_transfer(flow, 1, 0).unwrap();
        }
        let mut last = board.now();
        while board.step() {
            assert!(board.now() >= last, "{flows:?}");
            last = board.now();
        }
        for flow in &flows {
            assert_eq!(board.moved(flow).0, flow.bytes_per_pass(), "{flow:?} of {flows:?}");
        }
        assert_eq!((board.slots_in_use(), board.lost()), (0, 0));
    }
}

#[test]
fn pairs_require_writes_to_host_memory() {
    let mut board = Board::new(&tree_platform(&[])).unwrap();
    let write = transfer(Verb::Store, 64, 10);
    for write in
        [Transfer { verb: Verb::Load, ..write }, Transfer { partner: Partner::Peer { card: 1, bar: 0 }, ..write }]
    {
        let pairs = WriteRead { write, read: write.window, is_mixed: false };
        assert_eq!(board.start_pairs(&pairs, 1, 0), Err("the write must be to host memory, which is then read"));
    }
    assert!(!board.step(), "nothing was started");
    let pairs = WriteRead { write, read: write.window, is_mixed: false };
    assert_eq!(board.start_pairs(&pairs, 1, 0), Ok(()));
}

#[test]
fn equal_transfers_take_equal_times_and_boards_are_independent() {
    let tree = tree_platform(&[("core.cores", 4.0)]);
    let window = Window { offset: 0, len: 1 << 16, pattern: Pattern::Random };
    let flows: Vec<Transfer> = (0..4)
        .map(|card| {
            let verb = if card % 2 == 0 { Verb::Load } else { Verb::Store };
            Transfer { card, window, ..transfer(verb, 300, 100) }
        })
        .collect();
    let first = run(&tree, &flows);
    let second = std::thread::scope(|scope| {
        let beside = scope.spawn(|| run(&tree, &flows));
        (run(&tree, &flows), beside.join().unwrap())
    });
    assert_eq!(format!("{first:?}"), format!("{:?}", second.0));
    assert_eq!(format!("{first:?}"), format!("{:?}", second.1));
}
