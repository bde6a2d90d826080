//! Endpoint and link without cores, driven by the three calls; and the stall causes of a core when they are slow.

mod stage;

use lanemark_machine::{Cause, Direction, Machine, MachineError, Plan, Samples};
use lanemark_sim::{Board, CardIndex, SimulatedMachine, TlpKind};
use lanemark_units::MemoryType::{Uc, Wc};
use lanemark_units::Ticks;
use stage::{BAR, Stage, bus, load, ns, platform, span, store};

fn board(changes: &[(&str, f64)]) -> Board {
    let mut board = Board::new(&platform("8B", changes)).unwrap();
    board.record_crossings();
    board
}

fn arrivals(board: &Board) -> Vec<Ticks> {
    board.crossings().iter().map(|crossing| crossing.at).collect()
}

#[test]
fn an_injected_write_arrives_and_changes_the_bytes_it_covers() {
    let mut board = board(&[]);
    assert_eq!(board.next_at(), None);
    board.inject_write(ns(1000), bus("sram", 5), &[1, 2, 3, 4]);
    assert_eq!(board.next_at(), Some(ns(1000)));
    assert_eq!(board.slots_in_use(), 1, "its payload");
    let mut bytes = [0; 8];
    // 8 B in two DWs with 24 B of header and framing: 8 ns; latency 100; ingress 50; a beat of 10.
    board.run_until(Ticks(ns(1168).0 - 1));
    board.region_mut("sram").unwrap().memory.read(4, &mut bytes);
    let before = bytes;
    board.run_until(ns(1168));
    board.region_mut("sram").unwrap().memory.read(4, &mut bytes);
    assert_eq!(board.endpoint().last_accepted, ns(1168));
    assert_eq!(bytes[1..5], [1, 2, 3, 4]);
    assert_eq!((bytes[0], &bytes[5..]), (before[0], &before[5..]));
    assert_eq!(board.slots_in_use(), 0);
}

#[test]
fn an_injected_read_completes_with_the_bytes_behind_it() {
    let mut board = board(&[]);
    let data: Vec<u8> = (1..=64).collect();
    board.inject_write(ns(0), bus("sram", 64), &data);
    board.inject_read(ns(0), bus("sram", 70), 7, 9);
    while board.step() {}
    let (_, tlp, bytes) = board.outbox().pop_front().unwrap();
    assert_eq!((tlp.kind, tlp.tag, tlp.length_dw), (TlpKind::CplD, 9, 3));
    assert_eq!(bytes[2..9], data[6..13], "from the DW in which the read begins");
    assert_eq!(board.slots_in_use(), 0);
}

#[test]
fn a_read_does_not_pass_earlier_writes() {
    let mut board = board(&[("region.sram.beat_ns", 5000.0)]);
    for value in 1..=3 {
        board.inject_write(ns(0), bus("sram", 0), &[value; 8]);
    }
    board.inject_read(ns(0), bus("sram", 0), 8, 0);
    while board.step() {}
    assert_eq!(board.outbox().pop_front().unwrap().2[..8], [3; 8]);
}

#[test]
fn a_read_of_no_region_completes_with_all_ones_and_is_counted() {
    let mut board = board(&[]);
    board.inject_read(ns(0), BAR + 0xF_0000, 8, 3);
    board.inject_write(ns(0), BAR + 0xF_0000, &[1; 8]);
    while board.step() {}
    let (_, tlp, bytes) = board.outbox().pop_front().unwrap();
    assert_eq!((tlp.kind, tlp.tag, bytes), (TlpKind::Cpl, 3, [0xFF; 64]));
    assert_eq!(board.endpoint().unsupported, 2);
    assert_eq!((board.endpoint().accepted_bytes, board.slots_in_use()), (0, 0));
}

#[test]
fn a_region_ends_at_its_last_byte() {
    let mut board = board(&[]);
    board.inject_read(ns(0), bus("sram", 0xFFFC), 4, 0);
    board.inject_read(ns(0), bus("sram", 0xFFFC), 8, 1);
    while board.step() {}
    let kinds: Vec<_> = board.outbox().iter().map(|(_, tlp, _)| (tlp.tag, tlp.kind)).collect();
    assert!(kinds.contains(&(0, TlpKind::CplD)) && kinds.contains(&(1, TlpKind::Cpl)), "{kinds:?}");
}

#[test]
fn writes_beyond_the_header_credits_wait_for_a_credit() {
    for credits in [1_u32, 2, 5] {
        let mut board = board(&[("link.posted_header_credits", f64::from(credits))]);
        for number in 0..=credits {
            board.inject_write(ns(0), bus("ddr", u64::from(number) * 64), &[1; 64]);
        }
        while board.step() {}
        let at = arrivals(&board);
        for (number, at) in at.iter().enumerate().take(credits as usize) {
            assert_eq!(*at, ns(22 * (number as u64 + 1) + 100), "back to back at 22 ns");
        }
        // The first write is accepted at 182; its UpdateFC takes 2 ns of the line and arrives at 284.
        assert_eq!(at[credits as usize], ns(284.max(22 * u64::from(credits)) + 22 + 100), "{credits} credits");
    }
}

#[test]
fn writes_beyond_the_data_credits_wait_for_a_credit() {
    // 8 data credits are two writes of 64 B or eight of 16 B.
    for (bytes, together) in [(64_u64, 2), (16, 8), (17, 4)] {
        let mut board = board(&[("link.posted_data_credits", 8.0)]);
        for number in 0..=together {
            board.inject_write(ns(0), bus("ddr", number * 64), &vec![1; bytes as usize]);
        }
        while board.step() {}
        let at = arrivals(&board);
        let first_credit = at[0] + ns(50 + 10 + 2 + 100);
        let sent = at[together as usize] - (at[0] - ns(0));
        assert_eq!(sent, first_credit, "{together} writes of {bytes} B and one more");
        assert!(at[together as usize - 1] < first_credit);
    }
}

#[test]
fn reads_have_credits_of_their_own() {
    let mut board = board(&[("link.nonposted_header_credits", 1.0)]);
    for tag in 0..2 {
        board.inject_read(ns(0), bus("sram", 0), 4, tag);
    }
    while board.step() {}
    // 24 B take 6 ns; the first read is accepted at 156, and its UpdateFC of 2 ns arrives at 258.
    assert_eq!(arrivals(&board), [ns(106), ns(258 + 106)]);
}

#[test]
fn writes_arrive_at_the_link_rate() {
    let mut board = board(&[]);
    for number in 0..20 {
        board.inject_write(ns(0), bus("ddr", number * 64), &[1; 64]);
    }
    while board.step() {}
    assert!(arrivals(&board).windows(2).all(|pair| pair[1] - pair[0] == ns(22)));
    let (down, _) = board.crossed(CardIndex(0));
    assert_eq!((down.writes, down.payload_bytes, down.wire_bytes), (20, 20 * 64, 20 * 88));
}

#[test]
fn injected_tlps_are_sent_in_the_order_of_their_times() {
    let mut board = board(&[]);
    board.inject_write(ns(500), bus("sram", 0), &[1]);
    board.inject_write(ns(100), bus("sram", 0), &[2]);
    while board.step() {}
    let mut last = [0];
    board.region_mut("sram").unwrap().memory.read(0, &mut last);
    assert_eq!(last, [2]);
    assert_eq!(arrivals(&board).len(), 2);
}

#[test]
fn injected_tlps_and_stores_of_a_core_keep_their_order() {
    let mut stage = Stage::new();
    stage.board.inject_write(ns(10_000), bus("sram", 0), &[7; 8]);
    stage.run(vec![store(8, span("sram", Uc, 0, 8))]);
    stage.quiesce();
    assert_eq!(stage.device("sram", 0, 8), stage.stored("sram", 0, 8), "the store arrived later");
}

/// Stores 256 lines on a changed platform; returns the main stall cause and its share.
fn most_waited(changes: &[(&str, f64)]) -> (Cause, f64) {
    let mut stage = Stage::with("8B", changes);
    let time = stage.run(vec![store(64, span("ddr", Wc, 0, 0x4000))]);
    let (cause, span) =
        Cause::ALL.into_iter().map(|cause| (cause, stage.waited(cause))).max_by_key(|wait| wait.1).unwrap();
    (cause, span.as_ns() / time.as_ns())
}

#[test]
fn backpressure_is_charged_to_its_cause() {
    let quick = ("root_complex.core_round_trip_ns", 10.0);
    for (changes, cause) in [
        (vec![("region.ddr.beat_ns", 200.0), quick], Cause::Device),
        (vec![("link.width_lanes", 1.0), quick], Cause::LinkBusy),
        (vec![("link.posted_header_credits", 2.0), ("link.latency_ns", 1000.0), quick], Cause::Credit),
        (vec![("root_complex.core_round_trip_ns", 1000.0)], Cause::WcBuffers),
    ] {
        let (found, share) = most_waited(&changes);
        assert_eq!(found, cause, "{changes:?}");
        assert!(share > 0.8, "{cause:?} is {share} of the time");
    }
}

#[test]
fn a_store_stalls_only_when_buffers_queue_and_credits_are_exhausted() {
    // Six buffers, a queue of two and two credits to a device that accepts nothing for 10 us; the store buffer holds
    // eight more.
    let changes = [
        ("region.ddr.beat_ns", 10_000.0),
        ("root_complex.posted_queue_entries", 2.0),
        ("link.posted_header_credits", 2.0),
    ];
    let time = |lines: u64| Stage::with("8B", &changes).run(vec![store(64, span("ddr", Wc, 0, lines * 64))]);
    let absorbed = 6 + 2 + 2 + 8;
    assert!(time(absorbed) < ns(1000), "{:?}", time(absorbed));
    assert!(time(absorbed + 1) > ns(10_000), "{:?}", time(absorbed + 1));
}

#[test]
fn a_plan_longer_than_its_timeout_ends_with_an_error_and_the_next_one_runs() {
    let mut machine = SimulatedMachine::new(&platform("8B", &[])).unwrap();
    let mut plan = Plan::new(vec![load(8, span("sram", Uc, 0, 64)), store(8, span("sram", Uc, 0, 64))], 1000);
    plan.timeout = ns(5000);
    let error = machine.run(&plan, &mut Samples::wanted(1)).unwrap_err();
    assert!(matches!(error, MachineError::Timeout { after, .. } if after == ns(5000)), "{error}");
    assert!(machine.board_mut().is_idle());
    assert_eq!(machine.board_mut().slots_in_use(), 0);

    let plan = Plan::new(vec![store(8, span("sram", Uc, 0, 64))], 2);
    let mut after = Samples::wanted(1);
    machine.run(&plan, &mut after).unwrap();
    let mut fresh = Samples::wanted(1);
    SimulatedMachine::new(&platform("8B", &[])).unwrap().run(&plan, &mut fresh).unwrap();
    assert_eq!((after.taken, after.waits), (fresh.taken, fresh.waits), "the failed plan leaves no state");
}

#[test]
fn a_direction_of_a_link_is_in_use_if_it_carries_tlps_or_dllps() {
    let plan = Plan::new(vec![store(8, span("sram", Uc, 0, 64))], 20);
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(&platform("8B", &[])).unwrap().run(&plan, &mut samples).unwrap();
    let uses = |direction| samples.links.iter().find(|link| link.direction == direction).unwrap();
    let (down, up) = (uses(Direction::Downstream), uses(Direction::Upstream));
    // Stores go down, and nothing but their acknowledgments and credits comes back.
    assert!(down.tlps > Ticks::ZERO && down.dllps == Ticks::ZERO, "{down:?}");
    assert!(up.tlps == Ticks::ZERO && up.dllps > Ticks::ZERO, "{up:?}");
    assert_eq!(samples.links.len(), 2);
}

#[test]
fn a_device_that_does_not_accept_within_the_timeout_is_an_error() {
    let mut machine = SimulatedMachine::new(&platform("8B", &[("region.ddr.beat_ns", 1e9)])).unwrap();
    let mut plan = Plan::new(vec![store(64, span("ddr", Wc, 0, 64))], 1);
    plan.timeout = ns(1_000_000);
    let error = machine.run(&plan, &mut Samples::wanted(1)).unwrap_err();
    assert!(matches!(error, MachineError::Timeout { .. }), "{error}");
}

#[test]
fn a_write_larger_than_all_credits_is_an_error_not_a_hang() {
    // The file parser requires at least four data credits; with fewer, a line could never be sent.
    let mut platform = platform("8B", &[("link.posted_data_credits", 8.0)]);
    platform.link.posted_data_credits.value = 3;
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    let plan = Plan::new(vec![store(64, span("ddr", Wc, 0, 0x10000))], 1);
    let error = machine.run(&plan, &mut Samples::wanted(1)).unwrap_err();
    assert!(matches!(error, MachineError::Stuck { .. }), "{error}");
}
