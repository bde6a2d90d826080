//! Relays through cards: the returned bytes, duration, and back-pressure of full and empty queues.

mod stage;

use lanemark_machine::{
    Cause, Machine, MachineError, OnChannels, Partner, Pattern, Plan, Relay, Samples, Transfer, Verb, Window,
};
use lanemark_platform::{Origin, Platform, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;

/// Window of the queue for peer writes in a BAR of the preset.
const AT_PEERS: Window = Window { offset: 8 << 20, len: 8 << 20, pattern: Pattern::Sequential };

fn rosta(changes: &[(&str, f64)]) -> Platform {
    let rosta = preset("rosta-virtex7").unwrap().unwrap();
    changes
        .iter()
        .fold(rosta, |platform, (key, value)| platform.with(key, *value, Origin::Assumed("a test".to_owned())).unwrap())
}

fn relay(cards: &[u32], bytes: u64) -> Relay {
    let window = |offset| Window { offset, len: bytes, pattern: Pattern::Sequential };
    let (from, to) = (window(0), window(8 << 20));
    Relay { cards: cards.to_vec(), bar: 0, at_peers: AT_PEERS, bytes, count: 1, from, to, is_stored: false }
}

fn plan(relay: &Relay) -> Plan {
    Plan::new(relay.clone(), 1)
}

fn run(platform: &Platform, relay: &Relay) -> Samples {
    let mut machine = SimulatedMachine::new(platform).unwrap();
    let mut samples = Samples::wanted(2);
    machine.run(&plan(relay), &mut samples).unwrap();
    assert_eq!(machine.board_mut().slots_in_use(), 0);
    let confirmed = samples.confirmed.unwrap();
    assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (relay.bytes, relay.bytes));
    samples
}

fn mib_per_s(samples: &Samples, bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0 / (samples.taken[1].delivered.as_ns() / 1e9)
}

fn wait(samples: &Samples, cause: Cause) -> Ticks {
    samples.waits.iter().find(|wait| wait.cause == cause).map_or(Ticks::ZERO, |wait| wait.span)
}

#[test]
fn bytes_return_unchanged_through_one_card_and_through_all() {
    let platform = rosta(&[]);
    for bytes in [1, 63, 64, 65, 4096, 70_001] {
        for cards in [&[0][..], &[3], &[0, 1], &[4, 0], &[0, 1, 2, 3, 4, 5, 6, 7]] {
            run(&platform, &relay(cards, bytes));
        }
    }
}

#[test]
fn a_chain_is_limited_by_the_reads_of_its_first_card() {
    let platform = rosta(&[]);
    let bytes = 1 << 20;
    let through = mib_per_s(&run(&platform, &relay(&[0, 1, 2, 3, 4, 5, 6, 7], bytes)), bytes);
    let window = Window { offset: 0, len: bytes, pattern: Pattern::Sequential };
    let (verb, partner) = (Verb::Load, Partner::Host);
    let read = Transfer { card: 0, verb, partner, bytes, count: 1, window, outstanding: None };
    let mut samples = Samples::wanted(2);
    let plan = Plan::new(read, 1);
    SimulatedMachine::new(&platform).unwrap().run(&plan, &mut samples).unwrap();
    let alone = mib_per_s(&samples, bytes);
    assert!(through < alone && through > 0.98 * alone, "{through} and {alone}");
}

#[test]
fn the_user_clock_limits_the_rate_of_the_queues() {
    let bytes = 1 << 18;
    // A beat of 8 B each 20 ns.
    let slow = rosta(&[("fifos.beat_ns", 20.0)]);
    let samples = run(&slow, &relay(&[0], bytes));
    let beats = Ticks::whole_ns(20) * (bytes / 8);
    let taken = samples.taken[1].delivered;
    assert!(taken > beats && taken.as_ns() < 1.02 * beats.as_ns(), "{taken:?} and {beats:?}");
    assert!(wait(&samples, Cause::Fifo) > wait(&samples, Cause::Tag), "{:?}", samples.waits);
}

#[test]
fn an_unconnected_queue_limits_nothing_unless_the_user_clock_is_slower() {
    let delivered = |platform: &Platform, verb: Verb, partner: Partner| {
        let bytes = 1 << 16;
        let offset = if partner == Partner::Host { 0 } else { AT_PEERS.offset };
        let window = Window { offset, len: bytes, pattern: Pattern::Sequential };
        let transfer = Transfer { card: 0, verb, partner, bytes, count: 1, window, outstanding: None };
        let mut samples = Samples::wanted(1);
        SimulatedMachine::new(platform).unwrap().run(&Plan::new(transfer, 1), &mut samples).unwrap();
        samples.taken[0].delivered
    };
    let without = Platform { fifos: None, ..rosta(&[]) };
    let peer = Partner::Peer { card: 1, bar: 0 };
    for (verb, partner) in [(Verb::Load, Partner::Host), (Verb::Store, Partner::Host), (Verb::Store, peer)] {
        assert_eq!(delivered(&rosta(&[]), verb, partner), delivered(&without, verb, partner));
        // Bytes beyond the capacity of the queue move with the user clock.
        let slow = delivered(&rosta(&[("fifos.beat_ns", 30.0)]), verb, partner);
        let beats = Ticks::whole_ns(30) * ((65536 - 4096) / 8);
        assert!(slow > beats && slow.as_ns() < 1.05 * beats.as_ns(), "{verb:?} {partner:?}: {slow:?} and {beats:?}");
    }
}

#[test]
fn a_whole_transfer_must_fit_into_the_queue() {
    let platform = rosta(&[]);
    let stored = |bytes| Relay { is_stored: true, ..relay(&[0], bytes) };
    let (whole, streamed) = (run(&platform, &stored(4096)), run(&platform, &relay(&[0], 4096)));
    assert!(whole.taken[0].delivered > streamed.taken[0].delivered);
    let machine = SimulatedMachine::new(&platform).unwrap();
    let refused = machine.supports(&plan(&stored(4097))).unwrap_err().to_string();
    assert!(refused.contains("4097 B") && refused.contains("fifos.tx_bytes"), "{refused}");
}

#[test]
fn a_full_duplex_engine_relays_with_one_channel_and_is_not_slower_than_two_on_one_data_path() {
    let duplex = |channels: f64| {
        let origin = Origin::Assumed("a test".to_owned());
        rosta(&[("dma.channels", channels)]).with_text("dma.full_duplex", "true", origin).unwrap()
    };
    let bytes = 70_001;
    for cards in [&[0][..], &[0, 1]] {
        let two = mib_per_s(&run(&rosta(&[]), &relay(cards, bytes)), bytes);
        for channels in [1.0, 2.0] {
            let rate = mib_per_s(&run(&duplex(channels), &relay(cards, bytes)), bytes);
            assert!(rate >= two * 0.99, "{cards:?}, {channels}: {rate} {two}");
        }
    }
}

#[test]
fn an_unsupported_relay_is_refused_with_the_missing_part() {
    let refused = |platform: &Platform, relay: &Relay| {
        SimulatedMachine::new(platform).unwrap().supports(&plan(relay)).unwrap_err().to_string()
    };
    let usual = relay(&[0, 1], 4096);
    assert!(refused(&Platform { fifos: None, ..rosta(&[]) }, &usual).contains("[fifos]"));
    assert!(refused(&rosta(&[("dma.channels", 1.0)]), &usual).contains("dma.channels is 1"));
    assert!(refused(&rosta(&[]), &relay(&[0, 1, 0], 64)).contains("twice"));
    assert!(refused(&rosta(&[]), &relay(&[], 64)).contains("no cards"));
    assert!(refused(&rosta(&[]), &relay(&[8], 64)).contains("no card 8"));
    let registers = Window { offset: 0, len: 4096, pattern: Pattern::Sequential };
    assert!(refused(&rosta(&[]), &Relay { at_peers: registers, ..usual.clone() }).contains("region ep_rx"));
    let over = Window { offset: 4095, ..usual.from };
    assert!(refused(&rosta(&[]), &Relay { to: over, ..usual.clone() }).contains("overwrite its source"));
    let beside = Window { offset: 4096, ..usual.from };
    assert!(SimulatedMachine::new(&rosta(&[])).unwrap().supports(&plan(&Relay { to: beside, ..usual })).is_ok());
}

#[test]
fn a_relay_that_times_out_names_its_stall_cause_and_leaves_an_idle_machine() {
    let platform = rosta(&[("fifos.beat_ns", 1_000_000.0)]);
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    let short = Plan { timeout: Ticks::whole_ns(1_000_000), ..plan(&relay(&[0, 1], 65536)) };
    let error = machine.run(&short, &mut Samples::wanted(1)).unwrap_err();
    assert!(matches!(error, MachineError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("a FIFO inside the device"), "{error}");
    assert!(machine.board_mut().is_idle());
    assert_eq!(machine.board_mut().slots_in_use(), 0);
}

/// Four channels, descriptors of a microsecond, and memory without a write limit.
fn with_channels(channels: f64) -> Platform {
    rosta(&[
        ("dma.channels", channels),
        ("dma.descriptor_ns", 1000.0),
        ("memory.write_tlp_ns", 0.0),
        ("fifos.beat_ns", 0.0),
    ])
}

fn writes(bytes: u64, count: u64) -> Transfer {
    let window = Window { offset: 0, len: 1 << 20, pattern: Pattern::Sequential };
    Transfer { card: 0, verb: Verb::Store, partner: Partner::Host, bytes, count, window, outstanding: None }
}

fn on_channels(platform: &Platform, transfer: Transfer, channels: u32) -> Ticks {
    let mut samples = Samples::wanted(1);
    let op = OnChannels { transfer, channels };
    SimulatedMachine::new(platform).unwrap().run(&Plan::new(op, 1), &mut samples).unwrap();
    let confirmed = samples.confirmed.unwrap();
    assert_eq!(confirmed.claimed_bytes, confirmed.confirmed_bytes);
    samples.taken[0].delivered
}

#[test]
fn channels_process_descriptors_concurrently() {
    let between = |channels: u32| {
        let time = |count| on_channels(&with_channels(8.0), writes(128, count), channels);
        Ticks((time(801) - time(161)).0 / 640)
    };
    // A descriptor of 1000 ns and 18 beats of 4 ns, divided by the channels, up to the limit of the data path.
    assert_eq!(between(1), Ticks::whole_ns(1072));
    for channels in [2, 4, 8] {
        let one = 1072.0 / f64::from(channels);
        let each = between(channels).as_ns();
        assert!(each >= 0.99 * one && each < 1.02 * one, "{channels} channels: {each} and {one}");
    }
}

#[test]
fn channels_share_the_data_path() {
    let platform = rosta(&[
        ("dma.channels", 8.0),
        ("dma.descriptor_ns", 0.0),
        ("dma.beat_ns", 40.0),
        ("memory.write_tlp_ns", 0.0),
        ("fifos.beat_ns", 0.0),
    ]);
    let time = |channels| on_channels(&platform, writes(128, 64), channels);
    assert_eq!(time(1), time(8));
}

#[test]
fn too_many_channels_and_zero_channels_are_refused() {
    let machine = SimulatedMachine::new(&rosta(&[])).unwrap();
    let refused = |channels| {
        let op = OnChannels { transfer: writes(64, 4), channels };
        machine.supports(&Plan::new(op, 1)).is_err()
    };
    assert_eq!([0, 1, 3, 4].map(refused), [true, false, false, true]);
}
