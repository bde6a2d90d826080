//! The fast-forward of steady states gives the results of a full simulation. Single cases, and those where it does
//! not apply; `checks/tests/steady.rs` has random platforms.

use lanemark_machine::{
    Cause, EngineJob, Machine, OnChannels, Partner, Pattern, Plan, Relay, Samples, Steady, Transfer, Unsteady, Verb,
    Window, Work, WriteRead,
};
use lanemark_platform::{OrderingChoice, Origin, PRESETS, Platform, preset};
use lanemark_sim::{CardIndex, SimulatedMachine};
use lanemark_units::Ticks;

fn rosta() -> Platform {
    preset("rosta-virtex7").unwrap().unwrap()
}

/// Writes of 128 B, one TLP each, by card 0 to a window of 1 MiB of another card.
fn writes(to: u32, count: u64) -> Transfer {
    let window = Window { offset: 8 << 20, len: 1 << 20, pattern: Pattern::Sequential };
    let partner = Partner::Peer { card: to, bar: 0 };
    Transfer { card: 0, verb: Verb::Store, partner, bytes: 128, count, window, outstanding: None }
}

/// Transfers of 128 B with host memory.
fn host(verb: Verb, count: u64) -> Transfer {
    let window = Window { offset: 0, len: 1 << 20, pattern: Pattern::Sequential };
    Transfer { verb, partner: Partner::Host, window, ..writes(1, count) }
}

fn plan(work: &Work) -> Plan {
    Plan { timeout: Ticks::whole_ns(1 << 45), ..Plan::new(work.clone(), 1) }
}

/// Returns the samples, and the result of the search for a steady state.
fn run(mut machine: SimulatedMachine, work: &Work) -> (Samples, Steady) {
    let mut samples = Samples::wanted(1);
    machine.run(&plan(work), &mut samples).unwrap_or_else(|error| panic!("{error}"));
    let steady = samples.steady.take().unwrap();
    (samples, steady)
}

fn skipping(platform: &Platform, work: &Work) -> (Samples, Steady) {
    run(SimulatedMachine::new(platform).unwrap(), work)
}

fn in_detail(platform: &Platform, work: &Work) -> (Samples, Steady) {
    run(SimulatedMachine::new(platform).unwrap().in_detail(), work)
}

#[test]
fn peer_writes_repeat_with_the_common_period_of_writes_and_ordered_sets() {
    // 76 ns of the line each, and ordered sets of 8 ns each 2360 ns: both repeat after 19 sets, between which 588
    // writes fit.
    let ops = Work::from(writes(1, 100_000));
    let (quick, steady) = skipping(&rosta(), &ops);
    assert_eq!((steady.transfers, steady.period), (100_000, 588));
    assert!(steady.skipped > 95_000 && steady.skipped.is_multiple_of(588), "{steady:?}");
    let (detailed, unwanted) = in_detail(&rosta(), &ops);
    assert_eq!(quick, detailed);
    assert_eq!((unwanted.skipped, unwanted.because), (0, Some(Unsteady::Unwanted)));
    // Without ordered sets, every write is like the previous one, whatever its target.
    let mut plain = rosta();
    plain.link.skp.value = false;
    for to in [1, 4] {
        let ops = Work::from(writes(to, 20_000));
        let (quick, steady) = skipping(&plain, &ops);
        assert_eq!(steady.period, 1, "to card {to}");
        assert_eq!(quick, in_detail(&plain, &ops).0, "to card {to}");
    }
}

#[test]
fn strided_and_random_transfers_have_the_period_of_sequential_ones() {
    let mut plain = rosta();
    plain.link.skp.value = false;
    for (pattern, len, step) in [
        (Pattern::Strided(4096), 1 << 20, 1),
        (Pattern::Strided(384), 1 << 20, 1),
        (Pattern::Random, 1 << 20, 1),
        (Pattern::RandomStrided(256), 1 << 20, 1),
        // Some of these transfers cross a page: 64 of them are three pages.
        (Pattern::Strided(192), 192 << 12, 64),
    ] {
        for transfer in [host(Verb::Store, 50_000), host(Verb::Load, 50_000), writes(4, 50_000)] {
            let window = Window { pattern, len, ..transfer.window };
            let ops = Work::from(Transfer { window, ..transfer });
            let (quick, steady) = skipping(&plain, &ops);
            let (_, sequential) = skipping(&plain, &Work::from(transfer));
            assert!(steady.skipped > 40_000, "{steady:?}");
            if step == 1 {
                assert_eq!(steady.period, sequential.period, "{ops:?}");
            } else {
                assert!(steady.period > 0 && steady.period.is_multiple_of(step), "{steady:?}");
            }
            assert_eq!(quick, in_detail(&plain, &ops).0, "{ops:?}");
        }
    }
}

/// The share of the critical path that each cause has.
fn causes(samples: &Samples) -> Vec<(Cause, f64)> {
    let all: Ticks = samples.path.iter().map(|share| share.span).sum();
    assert_eq!(all, samples.taken[0].delivered);
    let of = |cause| samples.path.iter().filter(|share| share.cause == cause).map(|share| share.span).sum::<Ticks>();
    Cause::ALL.into_iter().map(|cause| (cause, of(cause).as_ns() / all.as_ns())).collect()
}

/// The log of the critical path is shorter than such a period.
#[test]
fn a_long_period_has_the_causes_of_its_last_part() {
    let long = Work::from(host(Verb::Load, 8_000_000));
    let (quick, steady) = skipping(&rosta(), &long);
    assert!(steady.period > 3000 && steady.skipped > 7_000_000, "{steady:?}");
    let (detailed, _) = in_detail(&rosta(), &Work::from(host(Verb::Load, 200_000)));
    for ((cause, quick), (_, detailed)) in causes(&quick).into_iter().zip(causes(&detailed)) {
        assert!((quick - detailed).abs() < 0.02, "{cause:?}: {quick} of the skipped run, {detailed} of the other one");
    }
}

#[test]
fn partial_line_writes_are_skipped_like_full_ones() {
    let assumed = Origin::Assumed("a test".to_owned());
    let mut held = rosta().with("memory.partial_line_ns", 300.0, assumed).unwrap();
    held.link.skp.value = false;
    for (offset, is_held) in [(32, true), (0, false)] {
        let whole = host(Verb::Store, 50_000);
        let window = Window { offset, ..whole.window };
        let ops = Work::from(Transfer { window, ..whole });
        let (quick, steady) = skipping(&held, &ops);
        assert!(steady.skipped > 25_000, "{steady:?}");
        assert_eq!(quick, in_detail(&held, &ops).0, "from {offset} on");
        assert_eq!(quick.taken[0].delivered > Ticks::whole_ns(600 * 49_000), is_held, "{:?}", quick.taken[0]);
    }
}

/// 1 TiB of writes of 128 B through the Virtex-7 tree cannot be simulated in full in a test. Its time must exceed
/// that of a shorter run by its additional periods.
#[test]
fn the_time_of_a_tebibyte_grows_exactly_by_its_periods() {
    let short = (1 << 33) % 588 + 588 * 40;
    let (few, none) = in_detail(&rosta(), &Work::from(writes(1, short)));
    let (more, _) = in_detail(&rosta(), &Work::from(writes(1, short + 588)));
    let (all, steady) = skipping(&rosta(), &Work::from(writes(1, 1 << 33)));
    let periods = ((1 << 33) - short) / 588;
    assert_eq!(((1 << 33) - short) % 588, 0);
    assert_eq!(none.skipped, 0);
    let later = |of: fn(&Samples) -> u64| of(&few) + periods * (of(&more) - of(&few));
    assert_eq!(all.taken[0].delivered.0, later(|samples| samples.taken[0].delivered.0));
    assert_eq!(all.taken[0].issue.0, later(|samples| samples.taken[0].issue.0));
    assert_eq!(all.traffic.unwrap().payload_bytes, 1 << 40);
    for place in 0..all.links.len() {
        assert_eq!(
            all.links[place].tlps.0,
            few.links[place].tlps.0 + periods * (more.links[place].tlps.0 - few.links[place].tlps.0)
        );
        let dllps = |samples: &Samples| samples.links[place].dllps.0;
        assert_eq!(dllps(&all), dllps(&few) + periods * (dllps(&more) - dllps(&few)));
    }
    for wait in &all.waits {
        let of =
            |samples: &Samples| samples.waits.iter().find(|other| other.cause == wait.cause).map_or(0, |w| w.span.0);
        assert_eq!(wait.span.0, of(&few) + periods * (of(&more) - of(&few)), "{:?}", wait.cause);
    }
    assert_eq!(all.confirmed.map(|bytes| bytes.claimed_bytes == bytes.confirmed_bytes), Some(true));
    assert!(steady.transfers - steady.skipped < 10_000, "{steady:?}");
}

#[test]
fn the_reason_is_reported_where_fast_forward_does_not_apply() {
    let many = 20_000;
    let plain = rosta();
    let mut damaged = rosta();
    damaged.link.tlps_per_error.value = 1000;
    let mut at_random = rosta();
    at_random.link.ordering.value = OrderingChoice::Random;
    let mut relaxed = rosta();
    relaxed.dma.as_mut().unwrap().relaxed_ordering.value = true;
    let assumed = || Origin::Assumed("a cache".to_owned());
    let cached = rosta().with("memory.cache_bytes", 65536.0, assumed()).unwrap();
    let cached = cached.with("memory.cached_read_ns", 100.0, assumed()).unwrap();
    // Some of the places of 96 B cross a page, and are split there.
    let somewhere = Transfer {
        bytes: 96,
        window: Window { pattern: Pattern::Random, ..host(Verb::Store, many).window },
        ..host(Verb::Store, many)
    };
    let same = WriteRead { write: host(Verb::Store, many), read: host(Verb::Store, many).window, is_mixed: false };
    let same = WriteRead { write: Transfer { outstanding: Some(1), ..same.write }, ..same };
    for (platform, ops, because) in [
        (&damaged, Work::from(writes(1, many)), Unsteady::Errors),
        (&at_random, Work::from(writes(1, many)), Unsteady::RandomOrdering),
        (&plain, Work::from(somewhere), Unsteady::RandomPlaces),
        (&cached, Work::from(host(Verb::Load, many)), Unsteady::Cached),
        (&plain, same.into(), Unsteady::SharedBytes),
        (
            &plain,
            [writes(2, many), Transfer { card: 1, ..writes(2, many) }].map(EngineJob::Transfer).to_vec().into(),
            Unsteady::SharedBytes,
        ),
        (
            &relaxed,
            Work::from(Transfer { window: Window { len: 4096, ..writes(1, many).window }, ..writes(1, many) }),
            Unsteady::ReorderedWrites,
        ),
        (&plain, Work::from(writes(1, 60)), Unsteady::Few),
        // Two clocks of ordered sets: their common period exceeds a million writes.
        (&plain, Work::from(writes(4, many)), Unsteady::Irregular),
    ] {
        let (_, steady) = skipping(platform, &ops);
        assert_eq!((steady.skipped, steady.because), (0, Some(because)), "{ops:?}");
    }
}

/// One preset has queues, whose circuit is as fast as the engine; with a slower clock they are the limit.
#[test]
fn unconnected_queues_are_part_of_the_state() {
    for beat_ns in [4.0, 7.0, 33.0] {
        let mut platform = rosta().with("fifos.beat_ns", beat_ns, Origin::Assumed("a clock".to_owned())).unwrap();
        platform.link.skp.value = false;
        for transfer in [writes(4, 20_000), host(Verb::Store, 20_000), host(Verb::Load, 20_000)] {
            let ops = Work::from(transfer);
            let (quick, steady) = skipping(&platform, &ops);
            assert!(steady.skipped > 15_000, "{beat_ns} ns, {transfer:?}: {steady:?}");
            assert_eq!(quick, in_detail(&platform, &ops).0, "{beat_ns} ns, {transfer:?}");
        }
    }
}

/// The first block of a line is fast, and the following ones take longer than the latency of all requests in flight.
#[test]
fn blocks_of_a_line_are_distinguished_if_its_first_block_is_faster() {
    let text = PRESETS.iter().find(|preset| preset.name == "rosta-virtex7").unwrap().text;
    let platform = Platform::parse("ways", &format!("{text}\n[dma_write]\n")).unwrap();
    let mut platform = platform.with("dma_write.many_lines_ns", 5000.0, Origin::Assumed("slow".to_owned())).unwrap();
    platform.link.skp.value = false;
    for (bytes, period) in [(4, 16), (64, 1)] {
        let ops = Work::from(Transfer { bytes, ..host(Verb::Store, 4000) });
        let (quick, steady) = skipping(&platform, &ops);
        assert_eq!(steady.period, period, "{steady:?}");
        assert_eq!(quick, in_detail(&platform, &ops).0);
    }
}

/// The cards below different root ports.
fn apart() -> Platform {
    let mut platform = rosta();
    platform.link.skp.value = false;
    "root".clone_into(&mut platform.switches[2].below);
    platform
}

#[test]
fn peer_requests_forwarded_whole_are_skipped_and_split_ones_are_not() {
    let read = Transfer { verb: Verb::Load, ..writes(4, 5000) };
    assert_eq!(skipping(&apart(), &Work::from(read)).1.because, Some(Unsteady::SplitReads));
    // Peer requests below one switch do not reach the root complex.
    let near = Transfer { verb: Verb::Load, ..writes(1, 5000) };
    let whole = apart().with("root_complex.peer_read_bytes", 0.0, Origin::Assumed("whole".to_owned())).unwrap();
    let split = apart();
    for (platform, transfer) in [(&split, near), (&split, writes(4, 5000)), (&whole, read)] {
        let (quick, steady) = skipping(platform, &Work::from(transfer));
        assert!(steady.skipped > 2000, "{transfer:?}: {steady:?}");
        assert_eq!(quick, in_detail(platform, &Work::from(transfer)).0, "{transfer:?}");
    }
}

#[test]
fn slow_reads_of_a_completer_repeat_with_the_period_of_their_count() {
    let read = Transfer { verb: Verb::Load, ..writes(1, 5000) };
    let plain = in_detail(&rosta(), &Work::from(read)).0;
    for every in [3, 7] {
        let mut platform = rosta();
        for region in &mut platform.regions {
            (region.slow_read_every.value, region.slow_read_ns.value) = (every, Ticks::whole_ns(900));
        }
        let (quick, steady) = skipping(&platform, &Work::from(read));
        let detailed = in_detail(&platform, &Work::from(read)).0;
        assert!(steady.skipped > 2000, "{every}: {steady:?}");
        assert!(quick == detailed && quick != plain, "{every}");
    }
}

#[test]
fn channels_relays_and_faults_are_not_skipped() {
    let dealt = |channels| OnChannels { transfer: writes(1, 5000), channels };
    let (_, steady) = skipping(&rosta(), &Work::from(dealt(3)));
    let because = Some(Unsteady::Channels);
    assert_eq!(steady, Steady { transfers: 5000, skipped: 0, period: 0, because });
    // A transfer uses one channel.
    assert_eq!(skipping(&rosta(), &Work::from(dealt(1))), skipping(&rosta(), &Work::from(writes(1, 5000))));
    let window = |offset| Window { offset, len: 64 << 10, pattern: Pattern::Sequential };
    let (at_peers, from, to) = (window(8 << 20), window(0), window(1 << 20));
    let relay = Relay { cards: vec![0, 1], bar: 0, at_peers, bytes: 64, count: 1000, from, to, is_stored: false };
    let (_, steady) = skipping(&rosta(), &Work::from(relay.clone()));
    assert_eq!((steady.transfers, steady.skipped, steady.because), (3000, 0, Some(Unsteady::Relayed)));
    assert_eq!(in_detail(&rosta(), &Work::from(relay)).1.because, Some(Unsteady::Unwanted));
    let port = rosta().port_names().pop().unwrap();
    // A fault that triggers much later.
    let broken = rosta().with_fault(format!("ecrc@{port}:1000000").parse().unwrap()).unwrap();
    assert_eq!(skipping(&broken, &Work::from(writes(1, 5000))).1.because, Some(Unsteady::Faults));
}

#[test]
fn a_trace_contains_every_tlp() {
    let mut machine = SimulatedMachine::new(&rosta()).unwrap();
    let (ops, mut samples) = (Work::from(writes(1, 2000)), Samples::wanted(1));
    let trace = machine.trace(&plan(&ops), &mut samples, 100_000).unwrap();
    assert_eq!(samples.steady.unwrap().because, Some(Unsteady::Watched));
    assert_eq!(trace.frames.len(), 4000, "two links each");
    let mut machine = SimulatedMachine::new(&rosta()).unwrap();
    machine.board_mut().record_crossings();
    machine.run(&plan(&ops), &mut samples).unwrap();
    assert_eq!(samples.steady.unwrap().because, Some(Unsteady::Watched));
    assert_eq!(machine.board_mut().crossings().len(), 2000);
    let mut machine = SimulatedMachine::new(&rosta()).unwrap();
    machine.board_mut().observe_dllps(100);
    machine.run(&plan(&ops), &mut samples).unwrap();
    assert_eq!(samples.steady.unwrap().because, Some(Unsteady::Watched));
}

#[test]
fn latencies_of_single_reads_are_all_kept() {
    // Fewer and more than the log keeps.
    for count in [3000, 20_000] {
        let read = Transfer { outstanding: Some(1), ..host(Verb::Load, count) };
        let mut platform = rosta();
        platform.link.skp.value = false;
        let (quick, steady) = skipping(&platform, &Work::from(read));
        assert!(steady.skipped > count / 2, "{steady:?}");
        assert_eq!(quick, in_detail(&platform, &Work::from(read)).0);
        assert_eq!(quick.latencies.len() as u64, count.min(Samples::MOST_LATENCIES as u64));
    }
}

#[test]
fn reads_of_clear_on_read_registers_are_not_skipped() {
    let mut machine = SimulatedMachine::new(&rosta()).unwrap();
    let read = Transfer { verb: Verb::Load, ..writes(1, 5000) };
    let region = rosta().region_at(0, 8 << 20, 128).unwrap().name.clone();
    machine.board_mut().region_of_mut(CardIndex(1), &region).unwrap().clear_on_read(0);
    assert_eq!(run(machine, &Work::from(read)).1.because, Some(Unsteady::Registers));
}

/// Slower than the links, within the range of their load, and faster; below one root port and two.
#[test]
fn a_serialising_root_complex_is_part_of_the_state() {
    for request_ns in [5.0, 77.0, 150.25] {
        for platform in [rosta(), apart()] {
            let origin = Origin::Assumed("a root complex".to_owned());
            let mut platform = platform.with("root_complex.request_ns", request_ns, origin).unwrap();
            platform.link.skp.value = false;
            let other =
                Transfer { card: 4, window: Window { offset: 4 << 20, ..host(Verb::Load, 0).window }, ..writes(1, 0) };
            for ops in [
                vec![host(Verb::Store, 20_000)],
                vec![host(Verb::Load, 20_000)],
                vec![host(Verb::Store, 20_000), Transfer { partner: Partner::Host, count: 20_000, ..other }],
            ] {
                let ops = Work::from(ops.into_iter().map(EngineJob::Transfer).collect::<Vec<EngineJob>>());
                let (quick, steady) = skipping(&platform, &ops);
                assert!(steady.skipped > 10_000, "{request_ns} ns, {ops:?}: {steady:?}");
                assert_eq!(quick, in_detail(&platform, &ops).0, "{request_ns} ns, {ops:?}");
            }
        }
    }
}
