//! Injected faults: the error of a plan, and the bytes that have arrived.

mod stage;

use lanemark_engine::first_byte;
use lanemark_machine::{
    BusError, Completion, Descriptors, Direction, DmaCall, Machine, MachineError, Partner, Pattern, Plan, Samples,
    Share, Transfer, Verb, Window,
};
use lanemark_platform::Platform;
use lanemark_sim::stored_bytes;
use lanemark_sim::{Board, CardIndex, SimulatedMachine, Tlp};
use lanemark_units::{MemoryType, Ticks};
use lanemark_wire::config::{AerError, ConfigSpace, Errors};
use lanemark_wire::{Packet, TlpKind};
use stage::{BAR, load, ns, platform, span, store, tree_platform};

/// Bytes of a transfer, of each of its writes or completions, and of each of its reads.
const BYTES: u64 = 4096;
const WRITE: u64 = 128;
const READ: u64 = 512;

fn with(fault: &str, changes: &[(&str, f64)]) -> Platform {
    platform("8B", changes).with_fault(fault.parse().unwrap()).unwrap()
}

fn machine(fault: &str) -> SimulatedMachine {
    SimulatedMachine::new(&with(fault, &[])).unwrap()
}

fn moves(verb: Verb) -> Plan {
    let window = Window { offset: 0, len: BYTES, pattern: Pattern::Sequential };
    let partner = Partner::Host;
    let transfer = Transfer { card: 0, verb, partner, bytes: BYTES, count: 1, window, outstanding: None };
    Plan::new(transfer, 1)
}

fn stores(bytes: u64) -> Plan {
    Plan::new(vec![store(8, span("sram", MemoryType::Uc, 0, bytes))], 1)
}

fn loads(bytes: u64) -> Plan {
    Plan::new(vec![load(8, span("sram", MemoryType::Uc, 0, bytes))], 1)
}

#[track_caller]
fn fails(machine: &mut SimulatedMachine, plan: &Plan) -> BusError {
    match machine.run(plan, &mut Samples::wanted(1)) {
        Err(MachineError::Bus(error)) => {
            assert_eq!(machine.board_mut().slots_in_use(), 0);
            assert!(machine.board_mut().is_idle());
            *error
        }
        Err(other) => panic!("{other}"),
        Ok(()) => panic!("the run succeeded"),
    }
}

#[track_caller]
fn works(machine: &mut SimulatedMachine, plan: &Plan) {
    let mut samples = Samples::wanted(1);
    machine.run(plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    if let Some(confirmed) = samples.confirmed {
        assert_eq!(confirmed.confirmed_bytes, confirmed.claimed_bytes);
    }
}

/// Returns the pieces of a transfer that have arrived, each completely or not at all.
#[track_caller]
fn arrived(machine: &mut SimulatedMachine, verb: Verb) -> Vec<u64> {
    let mapped_at = machine.board_mut().mapped_at();
    let mut found = vec![0; BYTES as usize];
    match verb {
        Verb::Store => machine.board_mut().memory_mut().read(0, &mut found),
        Verb::Load => machine.board_mut().engine_mut(CardIndex(0)).unwrap().sink.read(0, &mut found),
    }
    let is_there = |piece: &u64| {
        let (mut meant, mut before) = (vec![0; WRITE as usize], vec![0; WRITE as usize]);
        for (place, (meant, before)) in (piece * WRITE..).zip(meant.iter_mut().zip(&mut before)) {
            (*meant, *before) = (first_byte(place), first_byte(place));
            if verb == Verb::Load {
                // The initial content of a card's memory differs from that of host memory.
                *before ^= 0x5A;
            }
        }
        if verb == Verb::Store {
            stored_bytes(mapped_at + piece * WRITE, 0, &mut meant);
        }
        let found = &found[(piece * WRITE) as usize..][..WRITE as usize];
        assert!(found == meant || found == before, "piece {piece} has partly arrived");
        found == meant
    };
    (0..BYTES / WRITE).filter(is_there).collect()
}

/// Checks that the arrived pieces are as many bytes as the error reports.
#[track_caller]
fn is_known_to_the_byte(error: &BusError, pieces: &[u64]) {
    let [flow] = &error.arrived[..] else { panic!("{:?}", error.arrived) };
    assert_eq!((flow.bytes, flow.wanted_bytes), (pieces.len() as u64 * WRITE, Some(BYTES)));
}

/// Decodes the TLP in a header log.
fn logged(error: &BusError) -> Packet<Vec<u8>> {
    let bytes = error.header_log.unwrap().iter().flat_map(|dw| dw.to_be_bytes()).collect::<Vec<u8>>();
    Packet::new(bytes).unwrap()
}

#[test]
fn only_the_faulty_write_is_missing() {
    for (kind, bit) in [
        ("unsupported_request", AerError::UnsupportedRequest),
        ("completer_abort", AerError::CompleterAbort),
        ("poisoned", AerError::PoisonedTlp),
        ("ecrc", AerError::Ecrc),
    ] {
        let mut machine = machine(&format!("{kind}@root/card:3"));
        let error = fails(&mut machine, &moves(Verb::Store));
        assert_eq!((error.error, error.noticed_by.as_str()), (Some(bit), "00:01.0 (root/card)"));
        assert_eq!(error.address, Some(machine.board_mut().mapped_at() + 2 * WRITE));
        let packet = logged(&error);
        assert_eq!((packet.kind(), packet.address()), (Some(TlpKind::MWr), error.address.unwrap()));
        assert_eq!((packet.ep(), packet.td()), (kind == "poisoned", kind == "ecrc"));
        assert_eq!(packet.requester_id().to_string(), "01:00.0");
        let pieces = arrived(&mut machine, Verb::Store);
        is_known_to_the_byte(&error, &pieces);
        assert_eq!(pieces[..3], [0, 1, 3], "{kind}");
        let last = *pieces.last().unwrap();
        assert_eq!(pieces.len() as u64, last, "exactly one is missing before the last one: {pieces:?}");
        works(&mut machine, &moves(Verb::Store));
    }
}

#[test]
fn only_the_faulty_completion_of_a_read_is_dropped() {
    for (kind, bit) in [("poisoned", AerError::PoisonedTlp), ("ecrc", AerError::Ecrc)] {
        let mut machine = machine(&format!("{kind}@card:3"));
        let error = fails(&mut machine, &moves(Verb::Load));
        assert_eq!((error.error, error.noticed_by.as_str()), (Some(bit), "01:00.0 (card)"));
        let packet = logged(&error);
        assert_eq!((packet.kind(), packet.ep()), (Some(TlpKind::CplD), kind == "poisoned"));
        assert_eq!(u64::from(packet.byte_count()), READ - 2 * WRITE, "it is the third completion of its read");
        let pieces = arrived(&mut machine, Verb::Load);
        is_known_to_the_byte(&error, &pieces);
        assert_eq!(pieces[..3], [0, 1, 3]);
        // A read that lost a completion times out; one with a poisoned completion is complete.
        let followed = error.followed_by.iter().map(|(error, by)| (*error, by.as_str())).collect::<Vec<_>>();
        let timeout = [(AerError::CompletionTimeout, "01:00.0 (card)")];
        assert_eq!(followed, timeout[..usize::from(kind == "ecrc")]);
        works(&mut machine, &moves(Verb::Load));
    }
}

#[test]
fn a_refused_or_aborted_read_returns_no_data_and_others_are_complete() {
    for (kind, bit) in
        [("unsupported_request", AerError::UnsupportedRequest), ("completer_abort", AerError::CompleterAbort)]
    {
        let mut machine = machine(&format!("{kind}@root/card:2"));
        let error = fails(&mut machine, &moves(Verb::Load));
        assert_eq!((error.error, error.noticed_by.as_str()), (Some(bit), "00:01.0 (root/card)"));
        let packet = logged(&error);
        assert_eq!((packet.kind(), u64::from(packet.length()) * 4, packet.tag()), (Some(TlpKind::MRd), READ, 1));
        let pieces = arrived(&mut machine, Verb::Load);
        is_known_to_the_byte(&error, &pieces);
        assert_eq!(pieces[..5], [0, 1, 2, 3, 8], "{kind}");
        works(&mut machine, &moves(Verb::Load));
    }
}

#[test]
fn an_unanswered_read_ends_exactly_at_the_completion_timeout() {
    for (timeout, changes) in [
        (50_000_000, &[][..]),
        (50_000, &[("endpoint.completion_timeout_ns", 50_000.0), ("root_complex.completion_timeout_ns", 50_000.0)]),
    ] {
        let platform = with("no_completion@root/card", changes);
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let error = fails(&mut machine, &moves(Verb::Load));
        assert_eq!((error.error, error.noticed_by.as_str()), (Some(AerError::CompletionTimeout), "01:00.0 (card)"));
        assert_eq!(error.at, ns(timeout), "it was issued at the start");
        assert_eq!((logged(&error).tag(), logged(&error).address()), (0, machine.board_mut().mapped_at()));
        assert_eq!(arrived(&mut machine, Verb::Load), Vec::<u64>::new());
        works(&mut machine, &moves(Verb::Load));

        let platform = with("no_completion@card:3", changes);
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        machine.board_mut().observe_loads(0);
        let error = fails(&mut machine, &loads(64));
        assert_eq!(
            (error.error, error.noticed_by.as_str()),
            (Some(AerError::CompletionTimeout), "00:01.0 (root/card)")
        );
        assert_eq!(error.address, Some(stage::bus("sram", 16)));
        assert_eq!((error.arrived[0].bytes, error.arrived[0].wanted_bytes), (16, Some(64)));
        works(&mut machine, &loads(64));
    }
}

#[test]
fn a_failed_load_of_a_core_returns_all_ones() {
    for fault in [
        "unsupported_request@card:2",
        "completer_abort@card:2",
        "ecrc@card:2",
        "poisoned@root/card:2",
        "no_completion@card:2",
        "link_down@card:2",
    ] {
        let mut board = Board::new(&with(fault, &[])).unwrap();
        for tag in 0..2 {
            board.inject_read(ns(2000 * u64::from(tag)), stage::bus("sram", 8 * u64::from(tag)), 8, tag);
        }
        while board.step() {}
        let mut seen: Vec<(u16, [u8; 8])> =
            board.outbox().iter().map(|(_, tlp, data)| (tlp.tag, data[..8].try_into().unwrap())).collect();
        seen.sort_unstable();
        let first = std::array::from_fn(|place| first_byte(place as u64));
        assert_eq!(seen, [(0, first), (1, [0xFF; 8])], "{fault}");
        assert_eq!(board.slots_in_use(), 0);
    }
}

#[test]
fn stores_of_a_core_arrive_up_to_the_lost_one() {
    for (kind, bit) in [
        ("poisoned", AerError::PoisonedTlp),
        ("ecrc", AerError::Ecrc),
        ("unsupported_request", AerError::UnsupportedRequest),
    ] {
        let mut machine = machine(&format!("{kind}@card:4"));
        let error = fails(&mut machine, &stores(256));
        assert_eq!((error.error, error.address), (Some(bit), Some(stage::bus("sram", 24))));
        let mut found = vec![0; 256];
        machine.board_mut().region_mut("sram").unwrap().memory.read(0, &mut found);
        let (bytes, mut meant) = (error.arrived[0].bytes, vec![0; 256]);
        stored_bytes(stage::bus("sram", 0), 0, &mut meant);
        for (place, byte) in meant.iter_mut().enumerate() {
            // The lost store, and those that the core had not issued.
            if (24..32).contains(&place) || place as u64 >= bytes + 8 {
                *byte = first_byte(place as u64);
            }
        }
        assert_eq!(found, meant, "{kind}");
        works(&mut machine, &stores(256));
    }
}

#[test]
fn a_link_down_at_the_nth_tlp_delivers_the_tlps_before_it() {
    for n in [1, 2, 7] {
        let mut machine = machine(&format!("link_down@root/card:{n}"));
        let error = fails(&mut machine, &moves(Verb::Store));
        assert_eq!((error.error, error.noticed_by.as_str()), (Some(AerError::SurpriseDown), "00:01.0 (root/card)"));
        assert_eq!(error.header_log, None, "the error has no TLP");
        let pieces = arrived(&mut machine, Verb::Store);
        assert_eq!(pieces, (0..n - 1).collect::<Vec<u64>>());
        is_known_to_the_byte(&error, &pieces);
        // The link stays down, which is not a new error.
        let error = fails(&mut machine, &moves(Verb::Store));
        assert_eq!((error.error, error.arrived[0].bytes), (None, 0));
        assert!(error.what.starts_with("01:00.0 (card) is gone: its link is down since"), "{}", error.what);
    }
}

#[test]
fn a_tlp_is_lost_exactly_from_the_time_of_link_down() {
    let mut machine = machine("link_down@root/card:3");
    let third = fails(&mut machine, &moves(Verb::Store)).at;
    for (at, pieces) in [(third, 2), (third + Ticks(1), 3)] {
        let mut machine = self::machine(&format!("link_down@root/card:{}ns", at.as_ns()));
        let error = fails(&mut machine, &moves(Verb::Store));
        assert_eq!(error.at, at);
        assert_eq!(arrived(&mut machine, Verb::Store).len(), pieces);
    }
}

#[test]
fn a_link_that_recovers_works_again_and_a_removed_card_does_not() {
    let mut back = machine("link_down@root/card:3+1ns");
    assert_eq!(fails(&mut back, &moves(Verb::Store)).error, Some(AerError::SurpriseDown));
    works(&mut back, &moves(Verb::Store));
    let mut removed = machine("surprise_removal@card:200ns");
    assert_eq!(fails(&mut removed, &moves(Verb::Load)).error, Some(AerError::SurpriseDown));
    for plan in [moves(Verb::Load), moves(Verb::Store), loads(8), stores(8)] {
        let error = fails(&mut removed, &plan);
        assert!(error.what.contains("is gone"), "{error}");
        assert_eq!(error.arrived[0].bytes, 0);
    }
}

#[test]
fn reads_below_a_down_link_are_refused_by_the_port_above_and_others_continue() {
    let platform = tree_platform(&[]).with_fault("link_down@lower".parse().unwrap()).unwrap();
    let mut board = Board::new(&platform).unwrap();
    let sram = |card: u64| BAR + (card << 20) + 0x10000;
    for card in 0..4 {
        board.inject_write(Ticks::ZERO, sram(card), &[7; 8]);
        board.inject_read(Ticks::ZERO, sram(card), 8, card as u16);
    }
    while board.step() {}
    let mut seen: Vec<(u16, u8)> =
        board.outbox().iter().map(|(_, tlp, data): &(_, Tlp, [u8; 64])| (tlp.tag, data[0])).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(0, 7), (1, 7), (2, 0xFF), (3, 0xFF)]);
    let noticed: Vec<_> = board.errors().iter().map(|noticed| (noticed.error, noticed.port.as_str())).collect();
    assert_eq!(noticed, [(AerError::SurpriseDown, "upper/lower")]);
    assert_eq!(board.cut_off_tlps().unwrap().tlps, 4);
    assert_eq!(board.slots_in_use(), 0);
}

#[test]
fn credit_starvation_names_the_receiver_its_tlps_and_those_waiting() {
    let mut machine = machine("credit_starvation@card:2");
    let error = fails(&mut machine, &stores(4096));
    // No timer of the specification ends it: the receiver keeps returning the same counts.
    assert_eq!((error.error, error.noticed_by.as_str()), (None, "00:01.0 (root/card)"));
    let wanted = "01:00.0 (card) has returned no credits since then: 32 posted stay in its receive buffer and 8 TLPs wait for \
                  it, the first MWr of 8 B by core 0 (00:00.0)";
    assert_eq!(error.what, wanted);
    assert_eq!((error.address, error.arrived[0].bytes), (Some(stage::bus("sram", 8)), 8));
    let mut found = [0; 16];
    machine.board_mut().region_mut("sram").unwrap().memory.read(0, &mut found);
    assert_eq!(found[8..], std::array::from_fn::<u8, 8, _>(|place| first_byte(8 + place as u64)));
    works(&mut machine, &stores(4096));
}

#[test]
fn writes_in_a_receive_buffer_that_is_not_drained_have_not_arrived() {
    let mut machine = machine("credit_starvation@root/card:31");
    let error = fails(&mut machine, &moves(Verb::Store));
    assert!(error.what.contains(": 2 posted stay in its receive buffer and 0 TLPs wait"), "{}", error.what);
    let pieces = arrived(&mut machine, Verb::Store);
    assert_eq!(pieces, (0..30).collect::<Vec<u64>>());
    is_known_to_the_byte(&error, &pieces);
}

#[test]
fn a_plan_that_times_out_before_the_completion_timeout_names_the_completer() {
    let mut machine = machine("no_completion@card");
    let plan = Plan { timeout: ns(5000), ..loads(8) };
    let error = fails(&mut machine, &plan);
    assert_eq!((error.error, error.noticed_by.as_str()), (Some(AerError::CompletionTimeout), "00:01.0 (root/card)"));
}

#[test]
fn a_fault_after_the_last_tlp_is_not_triggered() {
    for kind in ["poisoned", "ecrc", "unsupported_request", "completer_abort", "credit_starvation", "link_down"] {
        works(&mut machine(&format!("{kind}@root/card:33")), &moves(Verb::Store));
        let error = fails(&mut machine(&format!("{kind}@root/card:32")), &moves(Verb::Store));
        assert_eq!(error.arrived[0].bytes, 31 * WRITE, "{kind}");
    }
}

#[test]
fn the_same_fault_gives_the_same_message() {
    for fault in [
        "poisoned@card:3",
        "completer_abort@root/card:2",
        "no_completion@root/card:3",
        "credit_starvation@root/card:5",
        "surprise_removal@card:900ns",
    ] {
        for verb in [Verb::Store, Verb::Load] {
            let said = |_| {
                let mut machine = machine(fault);
                [0, 1].map(|_| machine.run(&moves(verb), &mut Samples::wanted(1)).map_err(|error| error.to_string()))
            };
            let [once, twice] = [0, 1].map(said);
            assert_eq!(once, twice, "{fault}");
        }
    }
}

/// Returns the status bits of a port by their `lspci` names, uncorrectable and correctable, and the header log.
fn status(machine: &SimulatedMachine, port: &str) -> (Vec<&'static str>, Vec<&'static str>, [u32; 4]) {
    let functions = machine.functions().unwrap();
    let function = functions.iter().find(|function| function.port == port).unwrap();
    let reporting = ConfigSpace::new(&function.bytes).error_reporting().unwrap();
    let names = |errors: Errors| errors.names().collect();
    let (fatal, corrected) = (reporting.uncorrectable_status().unwrap(), reporting.correctable_status().unwrap());
    (names(fatal), names(corrected), reporting.header_log().unwrap())
}

#[test]
fn the_registers_of_a_port_show_its_errors_and_the_header_of_the_first() {
    let mut machine = machine("ecrc@card:3");
    let nothing = (vec![], vec![], [0; 4]);
    assert_eq!(status(&machine, "card"), nothing);
    let error = fails(&mut machine, &moves(Verb::Load));
    assert_eq!(status(&machine, "card"), (vec!["CmpltTO", "ECRC"], vec![], error.header_log.unwrap()));
    assert_eq!(status(&machine, "root/card"), nothing);
    // They stay until they are cleared.
    works(&mut machine, &moves(Verb::Load));
    assert_eq!(status(&machine, "card").0, ["CmpltTO", "ECRC"]);
}

#[test]
fn corrected_link_errors_are_counted_and_fail_no_plan() {
    let platform = platform("8B", &[("link.tlps_per_error", 3.0)]);
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    works(&mut machine, &moves(Verb::Store));
    let corrected: Vec<_> =
        machine.board_mut().corrected().map(|(port, error, count)| (port.to_owned(), error, count)).collect();
    let (_, crossed) = machine.board_mut().crossed(CardIndex(0));
    assert!(crossed.replays > crossed.replay_timeouts && crossed.replay_timeouts > 0, "{crossed:?}");
    let of = |port: &str, error, count| (port.to_owned(), error, count);
    let meant = [
        of("root/card", AerError::BadTlp, crossed.replays),
        of("card", AerError::BadDllp, crossed.replay_timeouts),
        of("card", AerError::ReplayTimerTimeout, crossed.replay_timeouts),
    ];
    assert_eq!(corrected, meant);
    assert_eq!(status(&machine, "root/card"), (vec![], vec!["BadTLP"], [0; 4]));
    assert_eq!(status(&machine, "card"), (vec![], vec!["BadDLLP", "Timeout"], [0; 4]));
}

#[test]
fn samples_list_corrected_errors_by_port_without_those_of_the_warm_up() {
    let mut machine = SimulatedMachine::new(&platform("8B", &[("link.tlps_per_error", 2.0)])).unwrap();
    let mut samples = Samples::wanted(2);
    let mut plan = moves(Verb::Store);
    plan.warmup_passes = 1;
    machine.run(&plan, &mut samples).unwrap();
    let all: Vec<_> =
        machine.board_mut().corrected().map(|(port, error, count)| (port.to_owned(), error, count)).collect();
    let ports = |samples: &Samples| -> Vec<_> {
        samples.corrected.iter().map(|found| (found.port.clone(), found.error)).collect()
    };
    assert_eq!(ports(&samples), all.iter().map(|(port, error, _)| (port.clone(), *error)).collect::<Vec<_>>());
    assert!(samples.corrected.iter().zip(&all).any(|(found, all)| 0 < found.count && found.count < all.2), "{all:?}");
    let rolled = ("card".to_owned(), AerError::ReplayNumRollover);
    assert!(ports(&samples).contains(&rolled), "{:?}", samples.corrected);
    assert_eq!(status(&machine, "card").1, ["BadDLLP", "Rollover", "Timeout"]);
    let mut clean = Samples::wanted(1);
    SimulatedMachine::new(&platform("8B", &[])).unwrap().run(&plan, &mut clean).unwrap();
    assert_eq!(clean.corrected, []);
}

/// Returns why the only fault of a machine has not triggered; empty if it has.
fn missed(machine: &SimulatedMachine) -> String {
    let [injected_fault] = &machine.injected_faults()[..] else { panic!("one fault") };
    injected_fault.because_not.clone().unwrap_or_default()
}

#[test]
fn a_fault_that_is_not_triggered_reports_how_many_tlps_were_eligible() {
    for (kind, some) in [
        ("poisoned", "TLPs with data"),
        ("unsupported_request", "requests"),
        ("credit_starvation", "TLPs"),
        ("link_down", "TLPs"),
    ] {
        let mut behind = machine(&format!("{kind}@root/card:33"));
        assert!(missed(&behind).starts_with("no ") && missed(&behind).ends_with(" until the end of the run at 0 ns"));
        works(&mut behind, &moves(Verb::Store));
        assert!(
            missed(&behind).starts_with(&format!("only 32 {some} came to root/card until ")),
            "{}",
            missed(&behind)
        );
        let mut last = machine(&format!("{kind}@root/card:32"));
        let _ = fails(&mut last, &moves(Verb::Store));
        assert_eq!(missed(&last), "", "{kind}");
        assert_eq!(last.injected_faults()[0].to_string(), format!("{kind}@root/card:32 injected by --fault"));
    }
    let mut never = machine("no_completion@root/card:1");
    works(&mut never, &moves(Verb::Store));
    assert!(missed(&never).starts_with("no read came to root/card until the end of the run at "), "{}", missed(&never));
}

#[test]
fn a_link_down_without_traffic_has_no_effect() {
    let mut later = machine("link_down@card:900000ns");
    works(&mut later, &moves(Verb::Store));
    assert!(missed(&later).starts_with("the run ended at "), "{}", missed(&later));
    let mut between = machine("link_down@card:0ns+1ns");
    works(&mut between, &loads(8));
    assert_eq!(missed(&between), "nothing was sent over that link while it was down");
}

#[test]
fn of_two_faults_at_one_tlp_the_second_reports_the_first() {
    let platform = with("poisoned@root/card:3", &[]).with_fault("ecrc@root/card:3".parse().unwrap()).unwrap();
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    assert_eq!(fails(&mut machine, &moves(Verb::Store)).error, Some(AerError::PoisonedTlp));
    let because: Vec<_> =
        machine.injected_faults().into_iter().map(|injected_fault| injected_fault.because_not).collect();
    assert_eq!(because, [None, Some("another fault affected its TLP".to_owned())]);
}

#[test]
fn the_completion_timeout_of_a_descriptor_counts_from_its_request() {
    let window = Window { offset: 0, len: BYTES, pattern: Pattern::Sequential };
    let (partner, share, completion) = (Partner::Host, Share::Doorbell, Completion::Flag);
    let transfer = Transfer { card: 0, verb: Verb::Store, partner, bytes: BYTES, count: 1, window, outstanding: None };
    for channel in [0, 1] {
        let call = DmaCall { transfer, channel, share, descriptors: Descriptors::Fetched, completion };
        let mut machine = SimulatedMachine::new(&with("no_completion@root/card", &[("dma.channels", 2.0)])).unwrap();
        let (trace, done) = machine.trace_to_the_end(&Plan::new(call, 1), &mut Samples::wanted(1), 1000);
        let Err(MachineError::Bus(error)) = done else { panic!("{done:?}") };
        let read = trace.frames.iter().find(|frame| frame.direction == Direction::Upstream).unwrap();
        // Its header takes a beat of 4 ns, and 50 ns to the link.
        assert_eq!(error.at + ns(4 + 50), read.starts + ns(50_000_000), "channel {channel}");
    }
}

#[test]
fn a_timeout_during_an_engine_pause_names_the_engine() {
    let changes = [("dma_write.segment_bytes", 128.0), ("dma_write.segment_ns", 1e6)];
    let mut machine = SimulatedMachine::new(&platform("8B", &changes)).unwrap();
    let plan = Plan { timeout: ns(5000), ..moves(Verb::Store) };
    let error = machine.run(&plan, &mut Samples::wanted(1)).unwrap_err().to_string();
    assert!(
        error.contains("waiting for engine (the device's DMA engine issues requests at a limited rate)"),
        "{error}"
    );
}

#[test]
fn a_failing_run_keeps_its_trace_even_in_the_warm_up() {
    for warmup_passes in [0, 1] {
        let mut machine = machine("poisoned@card:3");
        let plan = Plan { warmup_passes, ..moves(Verb::Load) };
        let (trace, done) = machine.trace_to_the_end(&plan, &mut Samples::wanted(1), 1000);
        assert!(matches!(done, Err(MachineError::Bus(_))));
        // The poisoned completion, and those that completed after it.
        let came = trace.frames.iter().filter(|frame| frame.direction == Direction::Downstream).count();
        assert!(came > 3 && came < 33, "{came}");
        let (_, done) = machine.trace_to_the_end(&plan, &mut Samples::wanted(1), 1000);
        assert!(done.is_ok());
    }
    let mut late = SimulatedMachine::new(&platform("8B", &[])).unwrap();
    let plan = Plan { timeout: ns(10), ..loads(8) };
    let (trace, done) = late.trace_to_the_end(&plan, &mut Samples::wanted(1), 1000);
    assert!(matches!(done, Err(MachineError::Timeout { .. })) && !trace.frames.is_empty());
}

#[test]
fn a_driver_call_fails_with_the_error_of_its_transfer() {
    let window = Window { offset: 0, len: BYTES, pattern: Pattern::Sequential };
    for (verb, fault, descriptors, bit) in [
        (Verb::Load, "completer_abort@root/card:2", Descriptors::Written(MemoryType::Uc), AerError::CompleterAbort),
        (Verb::Store, "poisoned@root/card:2", Descriptors::Written(MemoryType::Uc), AerError::PoisonedTlp),
        // The first read is the descriptor's.
        (Verb::Store, "no_completion@root/card", Descriptors::Fetched, AerError::CompletionTimeout),
        // The doorbell does not arrive.
        (Verb::Store, "ecrc@card", Descriptors::Fetched, AerError::Ecrc),
    ] {
        let (partner, share, completion) = (Partner::Host, Share::Doorbell, Completion::Flag);
        let transfer = Transfer { card: 0, verb, partner, bytes: BYTES, count: 1, window, outstanding: None };
        let call = DmaCall { transfer, channel: 0, share, descriptors, completion };
        let plan = Plan::new(call, 1);
        let mut machine = machine(fault);
        let error = fails(&mut machine, &plan);
        assert_eq!(error.error, Some(bit), "{fault}");
        let pieces = arrived(&mut machine, verb);
        is_known_to_the_byte(&error, &pieces);
        assert!(pieces.len() < 32, "{fault}: {pieces:?}");
        works(&mut machine, &plan);
    }
}

#[test]
fn a_fault_of_a_peer_write_is_detected_by_the_completer() {
    let platform = tree_platform(&[]).with_fault("poisoned@d:2".parse().unwrap()).unwrap();
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    let window = Window { offset: 0x10000, len: BYTES, pattern: Pattern::Sequential };
    let partner = Partner::Peer { card: 3, bar: 0 };
    let transfer = Transfer { card: 0, verb: Verb::Store, partner, bytes: BYTES, count: 1, window, outstanding: None };
    let plan = Plan::new(transfer, 1);
    let error = fails(&mut machine, &plan);
    assert_eq!((error.error, error.arrived[0].flow.as_str()), (Some(AerError::PoisonedTlp), "0:3"));
    assert!(error.noticed_by.ends_with(" (d)") && error.what.starts_with("MWr of 128 B by a ("), "{error}");
    assert_eq!(error.address, Some(BAR + (3 << 20) + 0x10000 + WRITE));
    let mut found = vec![0; BYTES as usize];
    machine.board_mut().region_of_mut(CardIndex(3), "sram").unwrap().memory.read(0, &mut found);
    let there = |place: &usize| found[*place] != first_byte(*place as u64);
    let untouched: Vec<usize> = (0..BYTES as usize)
        .step_by(WRITE as usize)
        .filter(|piece| !(*piece..piece + 128).any(|place| there(&place)))
        .collect();
    assert_eq!(BYTES - error.arrived[0].bytes, untouched.len() as u64 * WRITE);
    assert_eq!(untouched[0], WRITE as usize);
    works(&mut machine, &plan);
}
