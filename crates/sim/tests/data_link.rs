//! The data link layer of a board: replay, replay buffers, SKP ordered sets, FLITs.

mod stage;

use lanemark_machine::{Cause, Machine, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
use lanemark_platform::Platform;
use lanemark_sim::{CardIndex, SimulatedMachine};
use lanemark_units::Ticks;
use stage::{ns, platform};

fn run_on(platform: &Platform, verb: Verb, bytes: u64, count: u64) -> (Samples, SimulatedMachine) {
    let window = Window { offset: 0, len: 64 << 10, pattern: Pattern::Sequential };
    run_transfer(platform, Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding: None })
}

fn run_transfer(platform: &Platform, transfer: Transfer) -> (Samples, SimulatedMachine) {
    let mut machine = SimulatedMachine::new(platform).unwrap();
    let mut samples = Samples::wanted(1);
    machine.run(&Plan::new(transfer, 1), &mut samples).unwrap();
    let confirmed = samples.confirmed.unwrap();
    assert_eq!(confirmed.claimed_bytes, confirmed.confirmed_bytes);
    assert_eq!(machine.board_mut().slots_in_use(), 0);
    (samples, machine)
}

fn run(changes: &[(&str, f64)], verb: Verb, bytes: u64, count: u64) -> (Samples, SimulatedMachine) {
    run_on(&platform("8B", changes), verb, bytes, count)
}

fn delivered(changes: &[(&str, f64)], verb: Verb, bytes: u64, count: u64) -> Ticks {
    run(changes, verb, bytes, count).0.taken[0].delivered
}

fn wait(samples: &Samples, cause: Cause) -> Ticks {
    samples.waits.iter().find(|wait| wait.cause == cause).map_or(Ticks::ZERO, |wait| wait.span)
}

#[test]
fn a_corrupted_tlp_costs_a_nak_round_trip_and_its_line_time() {
    // A request is 24 B, 6 ns; its completion 84 B, 21 ns; a Nak 2 ns; the latency 100 ns each way.
    let (request, completion) = (6 + 100 + 2 + 100, 21 + 100 + 2 + 100);
    let one_at_a_time = |tlps_per_error: f64| {
        let window = Window { offset: 0, len: 64 << 10, pattern: Pattern::Sequential };
        let (verb, partner) = (Verb::Load, Partner::Host);
        let transfer = Transfer { card: 0, verb, partner, bytes: 64, count: 50, window, outstanding: Some(1) };
        let (samples, mut machine) =
            run_transfer(&platform("8B", &[("link.tlps_per_error", tlps_per_error)]), transfer);
        (samples.taken[0].delivered, machine.board_mut().crossed(CardIndex(0)))
    };
    let (clean, mut replays) = (one_at_a_time(0.0).0, 0);
    for tlps_per_error in [10.0, 15.0, 20.0, 25.0, 30.0] {
        let (taken, (down, up)) = one_at_a_time(tlps_per_error);
        if down.replay_timeouts + up.replay_timeouts == 0 {
            assert_eq!(taken, clean + ns(request * up.replays + completion * down.replays), "{tlps_per_error}");
            replays += up.replays + down.replays;
        }
    }
    assert!(replays >= 5, "{replays}");
}

#[test]
fn every_byte_arrives_with_one_corrupted_tlp_in_five_and_stalls_show_replay() {
    for verb in [Verb::Store, Verb::Load] {
        let (samples, mut machine) = run(&[("link.tlps_per_error", 5.0)], verb, 5000, 20);
        let (down, up) = machine.board_mut().crossed(CardIndex(0));
        assert!(down.replays + up.replays > 50 && down.replay_timeouts + up.replay_timeouts > 5, "{down:?} {up:?}");
        let clean = delivered(&[], verb, 5000, 20);
        assert!(samples.taken[0].delivered > clean + clean, "{verb:?}");
    }
    let (samples, _) = run(&[("link.tlps_per_error", 5.0)], Verb::Store, 5000, 20);
    assert!(wait(&samples, Cause::Replay) > ns(1000), "{:?}", samples.waits);
}

#[test]
fn a_replay_buffer_limits_the_tlps_of_a_round_trip() {
    let time = |tlps: f64| delivered(&[("link.replay_tlps", tlps)], Verb::Store, 64, 100);
    // Line time 22 ns, latency 100, Ack 2 ns, latency 100.
    let round_trip = ns(22 + 100 + 2 + 100);
    let one = time(1.0);
    assert_eq!(one, delivered(&[], Verb::Store, 64, 1) + Ticks(round_trip.0 * 99));
    // 11 TLPs of 22 ns are 242 ns, longer than the round trip; 10 of them are shorter.
    assert_eq!(time(11.0), time(0.0));
    assert!(time(10.0) > time(0.0));
    let (samples, _) = run(&[("link.replay_tlps", 1.0)], Verb::Store, 64, 100);
    assert!(wait(&samples, Cause::Replay) > ns(15_000), "{:?}", samples.waits);
}

#[test]
fn ordered_sets_take_their_share_of_a_busy_link() {
    let [with, without] = [true, false].map(|skp| {
        let mut platform = platform("8B", &[]);
        platform.link.skp.value = skp;
        run_on(&platform, Verb::Store, 4096, 1000).0.taken[0].delivered.as_ns()
    });
    // 4 symbols for each 1176 of TLPs.
    let share = with / without - 1.0;
    assert!((share - 4.0 / 1176.0).abs() < 0.0002, "{share}");
}

#[test]
fn at_64_gts_writes_fill_236_bytes_of_each_flit() {
    let changes = [("link.generation", 6.0), ("link.width_lanes", 1.0), ("dma.beat_ns", 1.0)];
    let first = delivered(&changes, Verb::Store, 64, 1).as_ns();
    let many = delivered(&changes, Verb::Store, 64, 5901).as_ns();
    // 20 DWs each, without framing; 59 of 64 DWs of a FLIT of 32 ns.
    let each = 20.0 * 32.0 / 59.0;
    assert!(((many - first) / 5900.0 - each).abs() < 0.01, "{} and {each}", (many - first) / 5900.0);
}

#[test]
fn minimum_credits_with_bidirectional_traffic_do_not_deadlock() {
    use lanemark_sim::{Board, Tlp, TlpKind};
    for (credits, width) in [(8.0, 8.0), (9.0, 8.0), (12.0, 8.0), (12.0, 1.0)] {
        for seed in 0..150_u64 {
            let changes = [
                ("link.posted_data_credits", credits),
                ("root_complex.posted_data_credits", credits),
                ("link.width_lanes", width),
                ("link.latency_ns", 5.0),
                ("link.mps_bytes", 128.0),
            ];
            let mut board = Board::new(&platform("8B", &changes)).unwrap();
            let mut state = seed;
            let mut random = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            for place in 0..30 {
                board.inject_write(ns(random(900)), stage::bus("ddr", place * 128), &[1; 128][..=random(64) as usize]);
                let payload = board.payload(&[2; 128]);
                let length_dw = 2 + random(31) as u16;
                let address = board.mapped_at() + place * 128;
                let requester = 0x8000;
                let tlp = Tlp {
                    address,
                    length_dw,
                    first_be: 0xF,
                    last_be: 0xF,
                    requester,
                    payload,
                    ..Tlp::of(TlpKind::MWr)
                };
                board.inject_at_card(CardIndex(0), ns(random(900)), tlp);
            }
            while board.step() {}
            assert_eq!(board.slots_in_use(), 0, "{credits} credits, x{width}, seed {seed}");
        }
    }
}
