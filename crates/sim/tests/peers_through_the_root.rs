//! Peer-to-peer requests of cards below different root ports.

mod stage;

use lanemark_machine::{
    BusError, Direction, Frame, Machine, MachineError, Partner, Pattern, Plan, Samples, Trace, Transfer, Verb, Window,
};
use lanemark_platform::Platform;
use lanemark_sim::{CardIndex, SimulatedMachine};
use lanemark_units::Ticks;
use lanemark_wire::config::AerError;
use lanemark_wire::{FunctionId, Header, MemoryRequest};
use stage::{ns, offset_of, tree_platform};

/// The stage's tree with the last card below its own root port.
fn platform(changes: &[(&str, f64)]) -> Platform {
    let mut tree = tree_platform(changes);
    "root".clone_into(&mut tree.slots[3].below);
    tree
}

fn transfer(card: u32, verb: Verb, peer: u32, bytes: u64, count: u64) -> Transfer {
    let window = Window { offset: offset_of("sram"), len: 0x8000, pattern: Pattern::Sequential };
    Transfer { card, verb, partner: Partner::Peer { card: peer, bar: 0 }, bytes, count, window, outstanding: None }
}

fn plan(moved: &Transfer) -> Plan {
    Plan::new(*moved, 1)
}

fn delivered(platform: &Platform, moved: &Transfer) -> Ticks {
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(&plan(moved), &mut samples).unwrap();
    samples.taken[0].delivered
}

fn traced(platform: &Platform, moved: &Transfer) -> Trace {
    SimulatedMachine::new(platform).unwrap().trace(&plan(moved), &mut Samples::wanted(1), Trace::MOST).unwrap()
}

/// Returns the reads sent down to the card of slot `to`.
fn reads_down(trace: &Trace, to: &str) -> Vec<MemoryRequest> {
    let goes_there = |frame: &&Frame| trace.links[frame.link] == to && frame.direction == Direction::Downstream;
    let header = |frame: &Frame| match Header::parse(&frame.tlp).unwrap().0 {
        Header::Memory(request) => Some(request),
        _ => None,
    };
    trace.frames.iter().filter(goes_there).filter_map(header).collect()
}

#[test]
fn a_read_of_512_is_split_into_eight_of_64_by_the_root_complex_only() {
    let platform = platform(&[("link.mrrs_bytes", 512.0), ("dma.read_bytes", 512.0)]);
    let by_switch = traced(&platform, &transfer(2, Verb::Load, 0, 512, 1));
    let by_root = traced(&platform, &transfer(3, Verb::Load, 0, 512, 1));
    let spans =
        |trace: &Trace| -> Vec<u32> { reads_down(trace, "a").iter().filter_map(|read| Some(read.span()?.1)).collect() };
    assert_eq!((spans(&by_switch), spans(&by_root)), (vec![512], vec![64; 8]));
    let asked = reads_down(&by_root, "a");
    let tags: Vec<u16> = asked.iter().map(|read| read.tag).collect();
    assert_eq!(tags, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(asked.iter().all(|read| read.requester_id == FunctionId::new(0, 31, 7).unwrap()));
    // The completions to the requesting card have its tag and a decreasing Byte Count.
    let back = by_root.frames.iter().filter(|frame| by_root.links[frame.link] == "d");
    let back: Vec<(u32, u16)> = back
        .filter_map(|frame| match Header::parse(&frame.tlp).unwrap().0 {
            Header::Completion(back) => Some((u32::from(back.byte_count), back.tag)),
            _ => None,
        })
        .collect();
    let tag = back[0].1;
    assert_eq!(back, (1..=8).rev().map(|left| (64 * left, tag)).collect::<Vec<_>>());
    let mut whole = platform;
    whole.root_complex.peer_read_bytes.value = 0;
    assert_eq!(spans(&traced(&whole, &transfer(3, Verb::Load, 0, 512, 1))), [512]);
}

#[test]
fn a_peer_read_takes_the_sum_of_its_latencies_and_twice_that_of_the_root_complex() {
    for (read_bytes, forward) in [(64.0, 0), (64.0, 300), (0.0, 0), (0.0, 300)] {
        let keys = [("root_complex.peer_read_bytes", read_bytes), ("root_complex.peer_forward_ns", f64::from(forward))];
        let platform = platform(&keys);
        // There: a beat for the header, egress, up; down with two headers and a switch between; ingress. Region and
        // four beats. Back: egress, up through the switch, down, ingress and five beats.
        let there = 4 + 50 + 6 + 100 + forward + 6 + 10 + 150 + 6 + 100 + 50;
        let back = 50 + 5 + 100 + 150 + 21 + 10 + forward + 21 + 100 + 50 + 20;
        let found = delivered(&platform, &transfer(3, Verb::Load, 0, 64, 1));
        assert_eq!(found, ns(there as u64 + 40 + 40 + back as u64), "{read_bytes} B, {forward} ns");
    }
}

/// Returns the completions that the root complex sends down to the card of slot `to`: Completer ID, Byte Count, DWs.
fn completions_down(trace: &Trace, to: &str) -> Vec<(FunctionId, u16, u16)> {
    let goes_there = |frame: &&Frame| trace.links[frame.link] == to && frame.direction == Direction::Downstream;
    let header = |frame: &Frame| match Header::parse(&frame.tlp).unwrap().0 {
        Header::Completion(back) => Some((back.completer_id, back.byte_count, back.length)),
        _ => None,
    };
    trace.frames.iter().filter(goes_there).filter_map(header).collect()
}

#[test]
fn collected_completions_have_the_maximum_payload_and_every_byte_arrives() {
    let mut platform = platform(&[("link.mrrs_bytes", 512.0), ("dma.read_bytes", 512.0)]);
    let each = delivered(&platform, &transfer(3, Verb::Load, 0, 512, 20));
    platform.root_complex.peer_collects.value = true;
    let mps = platform.smallest_mps_bytes();
    let trace = traced(&platform, &transfer(3, Verb::Load, 0, 512, 1));
    let back = completions_down(&trace, "d");
    let expected = (1..=512 / mps).rev().map(|left| ((left * mps) as u16, (mps / 4) as u16));
    assert_eq!(back.iter().map(|back| (back.1, back.2)).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let mut samples = Samples::wanted(1);
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    machine.run(&plan(&transfer(3, Verb::Load, 0, 512, 20)), &mut samples).unwrap();
    let confirmed = samples.confirmed.unwrap();
    assert_eq!(confirmed.confirmed_bytes, confirmed.claimed_bytes);
    assert_ne!(samples.taken[0].delivered, each, "fewer headers, and later first bytes");
}

#[test]
fn ids_on_the_way_to_and_back_are_those_of_the_platform() {
    let mut platform = platform(&[("root_complex.peer_requester_id", f64::from(0x0028))]);
    for (is_root, completer) in [(false, None), (true, Some(FunctionId(0x28)))] {
        platform.root_complex.peer_completer_is_root.value = is_root;
        let trace = traced(&platform, &transfer(3, Verb::Load, 0, 256, 1));
        assert!(reads_down(&trace, "a").iter().all(|read| read.requester_id == FunctionId(0x28)));
        let back = completions_down(&trace, "d");
        assert!(!back.is_empty());
        let of_card = reads_up_to_completer(&trace);
        assert!(back.iter().all(|(id, ..)| *id == completer.unwrap_or(of_card)), "{back:?}");
    }
}

/// Returns the Completer ID of the completions of card `a`.
fn reads_up_to_completer(trace: &Trace) -> FunctionId {
    let from_card = |frame: &&Frame| trace.links[frame.link] == "a" && frame.direction == Direction::Upstream;
    let found = trace.frames.iter().filter(from_card).find_map(|frame| match Header::parse(&frame.tlp).unwrap().0 {
        Header::Completion(back) => Some(back.completer_id),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_completer_with_slow_reads_answers_out_of_order_and_every_byte_arrives() {
    let tags_up = |platform: &Platform| -> Vec<u16> {
        let trace = traced(platform, &transfer(3, Verb::Load, 0, 512, 1));
        let from_card = |frame: &&Frame| trace.links[frame.link] == "a" && frame.direction == Direction::Upstream;
        trace.frames.iter().filter(from_card).map(|frame| header_of_completion(frame).tag).collect()
    };
    let mut platform = platform(&[("link.mrrs_bytes", 512.0), ("dma.read_bytes", 512.0)]);
    assert_eq!(tags_up(&platform), [0, 1, 2, 3, 4, 5, 6, 7]);
    for region in &mut platform.regions {
        (region.slow_read_every.value, region.slow_read_ns.value) = (4, ns(10_000));
    }
    assert_eq!(tags_up(&platform), [0, 1, 2, 4, 5, 6, 3, 7], "the fourth of four is slow");
    for collects in [false, true] {
        platform.root_complex.peer_collects.value = collects;
        // The requester receives the completions in order.
        let trace = traced(&platform, &transfer(3, Verb::Load, 0, 512, 1));
        assert!(completions_down(&trace, "d").is_sorted_by(|a, b| a.1 > b.1));
        let mut samples = Samples::wanted(1);
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        machine.run(&plan(&transfer(3, Verb::Load, 0, 512, 40)), &mut samples).unwrap();
        let confirmed = samples.confirmed.unwrap();
        assert_eq!(confirmed.confirmed_bytes, confirmed.claimed_bytes);
    }
}

fn header_of_completion(frame: &Frame) -> lanemark_wire::Completion {
    match Header::parse(&frame.tlp).unwrap().0 {
        Header::Completion(back) => back,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_peer_write_passes_the_root_complex_unchanged() {
    let with = |forward| {
        delivered(&platform(&[("root_complex.peer_forward_ns", forward)]), &transfer(3, Verb::Store, 0, 64, 1))
    };
    assert_eq!(with(300.0), with(0.0) + ns(300));
    let trace = traced(&platform(&[]), &transfer(3, Verb::Store, 0, 64, 1));
    assert!(trace.frames.iter().all(|frame| frame.request == 1));
    assert_eq!(trace.frames.len(), 3, "up from d, down to the switch, down to a");
}

/// The stage's tree with P2P Request Redirect on these ports: of card 0, and the upstream link of its switch.
fn redirecting(ports: &[&str]) -> Platform {
    let origin = || lanemark_platform::Origin::Assumed("test".to_owned());
    let redirect = |tree: Platform, port: &&str| tree.with_acs_redirect(port, true, origin()).unwrap();
    ports.iter().fold(tree_platform(&[]), redirect)
}

#[test]
fn acs_redirects_peer_requests_to_the_root_but_not_their_completions() {
    let links = |platform: &Platform, moved: &Transfer| -> Vec<String> {
        let trace = traced(platform, moved);
        let line = |frame: &Frame| format!("{} {}", trace.links[frame.link], frame.direction.name());
        trace.frames.iter().map(line).collect()
    };
    let (write, read) = (transfer(0, Verb::Store, 1, 64, 1), transfer(0, Verb::Load, 1, 64, 1));
    let plain = redirecting(&[]);
    assert_eq!(links(&plain, &write), ["a up", "b down"]);
    let mut redirected = redirecting(&["upper/a"]);
    let up_and_down = ["a up", "upper up", "upper down", "b down"];
    assert_eq!(links(&redirected, &write), up_and_down);
    // A read is split, so its completions are routed by the requester ID of the root complex.
    let back = ["b up", "upper up", "upper down", "a down"];
    assert_eq!(links(&redirected, &read), [up_and_down, back].concat());
    redirected.root_complex.peer_read_bytes.value = 0;
    assert_eq!(links(&redirected, &read), [&up_and_down[..], &["b up", "a down"]].concat());
    // Requests of card 1 are not redirected, and requests to host memory go up in any case.
    assert_eq!(links(&redirected, &transfer(1, Verb::Store, 0, 64, 1)), ["b up", "a down"]);
}

#[test]
fn redirected_requests_arrive_and_those_that_would_turn_back_are_refused() {
    for (ports, card, peer) in [(&["upper/a"][..], 0, 1), (&["lower/c", "upper/lower"], 2, 3), (&["upper/lower"], 2, 0)]
    {
        for verb in [Verb::Store, Verb::Load] {
            let mut samples = Samples::wanted(1);
            let mut machine = SimulatedMachine::new(&redirecting(ports)).unwrap();
            machine.run(&plan(&transfer(card, verb, peer, 1000, 3)), &mut samples).unwrap();
            let confirmed = samples.confirmed.unwrap();
            assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (3000, 3000));
            assert_eq!((machine.board_mut().slots_in_use(), machine.board_mut().lost()), (0, 0));
        }
    }
    let mut machine = SimulatedMachine::new(&redirecting(&["lower/c"])).unwrap();
    let error = machine.supports(&plan(&transfer(2, Verb::Store, 3, 64, 1))).unwrap_err();
    assert!(error.because.contains("port upper/lower does not forward it"), "{error}");
    machine.board_mut().start_transfer(&transfer(2, Verb::Store, 3, 64, 1), 1, 0).unwrap();
    while machine.board_mut().step() {}
    assert_eq!(machine.board_mut().lost(), 1, "a request sent in spite of that is lost");
}

#[test]
fn every_byte_arrives_with_any_order_and_piece_size() {
    let held: Vec<u8> = (0..0x1_0000_u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (pieces, tags) in [(0.0, 32.0), (64.0, 32.0), (64.0, 1.0), (128.0, 3.0), (512.0, 2.0)] {
        for (bytes, from, in_order) in
            [(64, 0, true), (63, 1, false), (65, 63, true), (4096, 100, false), (9000, 4090, true)]
        {
            let keys = [("root_complex.peer_read_bytes", pieces), ("root_complex.peer_tags", tags)];
            let mut platform = platform(&keys);
            platform.root_complex.peer_in_order.value = in_order;
            let mut read = transfer(3, Verb::Load, 1, bytes, 2);
            read.window.offset += from;
            let mut machine = SimulatedMachine::new(&platform).unwrap();
            machine.board_mut().region_of_mut(CardIndex(1), "sram").unwrap().memory.write(0, &held);
            let mut samples = Samples::wanted(1);
            machine.run(&plan(&read), &mut samples).unwrap();
            let confirmed = samples.confirmed.unwrap();
            assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (2 * bytes, 2 * bytes));
            let mut found = vec![0; 2 * bytes as usize];
            machine.board_mut().engine_mut(CardIndex(3)).unwrap().sink.read(read.window.offset, &mut found);
            assert!(found == held[from as usize..][..found.len()], "{bytes} B in pieces of {pieces}");
            assert_eq!((machine.board_mut().slots_in_use(), machine.board_mut().lost()), (0, 0));
        }
    }
}

#[test]
fn outstanding_pieces_are_limited_by_the_tags_of_the_root_complex() {
    let with = |tags| delivered(&platform(&[("root_complex.peer_tags", tags)]), &transfer(3, Verb::Load, 0, 4096, 1));
    // The round trip of a piece: down, a switch, ingress, region and beats, and back.
    let round = (6 + 10 + 150 + 6 + 100 + 50) + (40 + 40) + (50 + 5 + 100 + 150 + 21 + 10);
    let one = with(1.0);
    let more = |times: u64| ns(63 / times * round);
    assert!(one >= more(1) && one < more(1) + ns(2000), "{one:?}");
    assert!(with(2.0) < ns(one.as_ns() as u64) - more(3), "{:?}", with(2.0));
}

#[test]
fn peer_requests_that_are_not_forwarded_are_refused_with_their_key_and_complete_with_ur() {
    let mut platform = platform(&[]);
    platform.root_complex.peer_reads.value = false;
    platform.root_complex.peer_writes.value = false;
    for (verb, key) in [(Verb::Load, "peer_reads"), (Verb::Store, "peer_writes")] {
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let error = machine.supports(&plan(&transfer(3, verb, 0, 64, 1))).unwrap_err();
        for hint in ["a request of card 3 to card 0 goes up to the root complex", "UR", key, "false"] {
            assert!(error.because.contains(hint), "{error}");
        }
        assert!(machine.supports(&plan(&transfer(2, verb, 0, 64, 1))).is_ok(), "below one root port");
        // A read in spite of that is completed with UR, a write is dropped.
        let board = machine.board_mut();
        board.start_transfer(&transfer(3, verb, 0, 64, 1), 1, 0).unwrap();
        while board.step() {}
        assert_eq!(board.engine(CardIndex(3)).unwrap().refused.is_some(), verb == Verb::Load);
        assert_eq!(board.card(CardIndex(0)).unwrap().accepted_from(0x8003).0, 0);
        assert_eq!(board.slots_in_use(), 0);
    }
}

/// Returns the error of a peer read from card a by card d with this fault, and the machine.
fn fails(fault: &str) -> (BusError, SimulatedMachine) {
    let platform = platform(&[]).with_fault(fault.parse().unwrap()).unwrap();
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    match machine.run(&plan(&transfer(3, Verb::Load, 0, 4096, 4)), &mut Samples::wanted(1)) {
        Err(MachineError::Bus(error)) => (*error, machine),
        other => panic!("{fault}: {other:?}"),
    }
}

#[test]
fn a_lost_or_refused_piece_ends_its_read_and_the_error_names_the_requester() {
    let root_complex = FunctionId::new(0, 31, 7).unwrap();
    for (fault, wanted) in [
        ("no_completion@a:3", AerError::CompletionTimeout),
        ("ecrc@a:3", AerError::Ecrc),
        ("ecrc@root/upper:2", AerError::Ecrc),
        ("completer_abort@a:2", AerError::CompleterAbort),
        ("unsupported_request@a:2", AerError::UnsupportedRequest),
        ("poisoned@root/upper:2", AerError::PoisonedTlp),
    ] {
        let (error, mut machine) = fails(fault);
        assert_eq!(error.error, Some(wanted), "{fault}: {error}");
        assert!(error.to_string().contains(&format!("({root_complex})")), "{fault}: {error}");
        assert_eq!(machine.board_mut().slots_in_use(), 0, "{fault}");
        assert!(machine.board_mut().is_idle(), "{fault}");
        let after = machine.run(&plan(&transfer(3, Verb::Load, 0, 4096, 4)), &mut Samples::wanted(1));
        assert!(fault.starts_with("no_completion") || after.is_ok(), "{fault}: {after:?}");
    }
}

#[test]
fn a_peer_read_to_a_down_link_is_refused_and_leaves_no_state() {
    for fault in [
        "surprise_removal@a:0ns",
        "surprise_removal@root/upper:0ns",
        "surprise_removal@a:3",
        "link_down@upper:2+500ns",
        "credit_starvation@a:3",
    ] {
        let (error, mut machine) = fails(fault);
        assert!(machine.board_mut().is_idle(), "{fault}: {error}");
        assert_eq!(machine.board_mut().slots_in_use(), 0, "{fault}");
    }
    let (error, mut machine) = fails("surprise_removal@a:0ns");
    assert_eq!(error.error, Some(AerError::SurpriseDown));
    assert!(machine.board_mut().outbox().is_empty(), "a UR completion had no requester");
}

#[test]
fn a_fault_of_a_root_port_affects_only_tlps_that_end_there() {
    let moved = transfer(3, Verb::Store, 0, 4096, 4);
    let platform = platform(&[]).with_fault("poisoned@root/d:2".parse().unwrap()).unwrap();
    // A peer write only passes the port.
    SimulatedMachine::new(&platform).unwrap().run(&plan(&moved), &mut Samples::wanted(1)).unwrap();
    let to_host = Transfer { partner: Partner::Host, window: Window { offset: 0, ..moved.window }, ..moved };
    let ended = SimulatedMachine::new(&platform).unwrap().run(&plan(&to_host), &mut Samples::wanted(1));
    assert!(matches!(ended, Err(MachineError::Bus(_))), "{ended:?}");
}
