//! A trace contains every event and changes no result.

mod random;
mod stage;

use lanemark_machine::{
    Cause, CoreWork, Direction, DllpKind, Frame, Lane, Machine, Partner, Pattern, Plan, Samples, StallSite, Trace,
    Transfer, Verb, Window,
};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;
use lanemark_units::{MemoryType, Ticks};
use lanemark_wire::{FunctionId, Header, TlpKind};
use random::{Random, plan};
use stage::{bus, ns};

fn traced(platform: &Platform, plan: &Plan, most: usize) -> (Samples, Trace) {
    let mut samples = Samples::wanted(1);
    let trace = SimulatedMachine::new(platform).unwrap().trace(plan, &mut samples, most).unwrap();
    (samples, trace)
}

fn header(frame: &Frame) -> Header {
    Header::parse_whole(&frame.tlp).unwrap().0
}

fn moves(card: u32, verb: Verb, partner: Partner, bytes: u64, count: u64) -> Plan {
    let window = Window { offset: 0x10000, len: 64 << 10, pattern: Pattern::Sequential };
    let transfer = Transfer { card, verb, partner, bytes, count, window, outstanding: None };
    Plan::new(transfer, 1)
}

#[test]
fn a_trace_changes_no_result_and_has_every_tlp_and_stall() {
    let mut tlps = 0;
    for seed in 0..150 {
        let platform = Random::new(seed).platform();
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let plan = plan(&mut Random::new(seed), &machine);
        let mut samples = Samples::wanted(1);
        machine.run(&plan, &mut samples).unwrap();
        let (seen, trace) = traced(&platform, &plan, Trace::MOST);
        assert_eq!(seen, samples, "seed {seed}");
        let kinds = |kind| trace.frames.iter().filter(|frame| header(frame).kind() == kind).count() as u64;
        let traffic = samples.traffic.unwrap();
        assert_eq!(kinds(TlpKind::MWr), traffic.write_tlps, "seed {seed}");
        assert_eq!(kinds(TlpKind::MRd), traffic.read_tlps, "seed {seed}");
        assert_eq!(kinds(TlpKind::CplD), traffic.completion_tlps, "seed {seed}");
        assert_eq!((trace.dropped.frames, trace.dropped.waits, trace.dropped.illegal), (0, 0, 0));
        for cause in Cause::ALL {
            let of_core = trace.waits.iter().filter(|wait| wait.who == StallSite::Core(0) && wait.cause == cause);
            let sum: Ticks = of_core.map(|wait| wait.until.since(wait.from)).sum();
            let charged = samples.waits.iter().find(|wait| wait.cause == cause).map_or(Ticks::ZERO, |wait| wait.span);
            assert_eq!(sum, charged, "seed {seed}, {cause:?}");
        }
        tlps += trace.frames.len();
    }
    assert!(tlps > 1000, "only {tlps} TLPs were seen");
}

#[test]
fn dllps_are_traced_on_demand_change_no_result_and_do_not_overlap_tlps() {
    let mut seen = 0;
    for seed in 0..100 {
        let platform = Random::new(seed).platform();
        let plan = plan(&mut Random::new(seed), &SimulatedMachine::new(&platform).unwrap());
        let (samples, without) = traced(&platform, &plan, Trace::MOST);
        let mut machine = SimulatedMachine::new(&platform).unwrap().with_dllps(true);
        let mut same = Samples::wanted(1);
        let trace = machine.trace(&plan, &mut same, Trace::MOST).unwrap();
        assert_eq!((&same, &trace.frames, &trace.waits), (&samples, &without.frames, &without.waits), "seed {seed}");
        assert_eq!((without.dllps.len(), trace.dropped.dllps), (0, 0));
        for direction in [Direction::Downstream, Direction::Upstream] {
            let frames = trace.frames.iter().filter(|frame| frame.direction == direction);
            let mut line: Vec<(Ticks, Ticks)> = frames.map(|frame| (frame.starts, frame.ends)).collect();
            let dllps = trace.dllps.iter().filter(|dllp| dllp.direction == direction);
            line.extend(dllps.map(|dllp| (dllp.starts, dllp.ends)));
            line.sort_unstable();
            assert!(line.windows(2).all(|pair| pair[0].1 <= pair[1].0), "seed {seed}: {line:?}");
        }
        // Every TLP is acknowledged, at the latest by the last Ack of its receiver.
        for frame in &trace.frames {
            let acks =
                trace.dllps.iter().filter(|dllp| dllp.kind == DllpKind::Ack && dllp.direction != frame.direction);
            assert!(acks.clone().any(|ack| ack.starts >= frame.arrives), "seed {seed}: {frame:?}");
        }
        seen += trace.dllps.len();
    }
    assert!(seen > 500, "only {seen} DLLPs were seen");
}

#[test]
fn an_ack_is_sent_on_an_idle_line_without_observation() {
    let store = stage::store(2, stage::span("sram", MemoryType::Uc, 1, 2));
    let platform = stage::platform("8B", &[]);
    let mut machine = SimulatedMachine::new(&platform).unwrap().with_dllps(true);
    let trace = machine.trace(&Plan::new(vec![store], 1), &mut Samples::wanted(1), 10).unwrap();
    let ack = trace.dllps.iter().find(|dllp| dllp.kind == DllpKind::Ack).unwrap();
    // The store arrives after 157 ns; a DLLP is 8 B at 4 GB/s.
    assert_eq!((ack.direction, ack.starts, ack.ends, ack.arrives), (Direction::Upstream, ns(157), ns(159), ns(259)));
    let credits = trace.dllps.iter().filter(|dllp| dllp.kind == DllpKind::UpdateFcPosted).count();
    assert_eq!((credits, trace.dllps.len()), (1, 2));
}

#[test]
fn a_corrupted_tlp_is_traced_at_each_transmission_with_one_number() {
    let mut platform = stage::tree_platform(&[]);
    platform.link.tlps_per_error.value = 3;
    let plan = moves(0, Verb::Load, Partner::Host, 512, 20);
    let mut machine = SimulatedMachine::new(&platform).unwrap().with_dllps(true);
    let trace = machine.trace(&plan, &mut Samples::wanted(1), Trace::MOST).unwrap();
    let damaged: Vec<(usize, &Frame)> = trace.frames.iter().enumerate().filter(|(_, frame)| frame.is_damaged).collect();
    assert!(damaged.len() > 10, "{}", damaged.len());
    let mut naks = 0;
    for (place, frame) in damaged {
        let is_it = |other: &&Frame| {
            (other.link, other.direction, other.request) == (frame.link, frame.direction, frame.request)
                && other.tlp == frame.tlp
        };
        let again = trace.frames[place + 1..].iter().find(is_it).unwrap();
        assert!(again.because == Some(Cause::Replay) && again.starts > frame.arrives, "{frame:?} {again:?}");
        // Its Nak arrived or, if that was corrupted too, REPLAY_TIMER expired.
        let nak = trace
            .dllps
            .iter()
            .find(|dllp| (dllp.kind, dllp.link) == (DllpKind::Nak, frame.link) && dllp.arrives == again.starts);
        naks += usize::from(nak.is_some_and(|nak| nak.starts >= frame.arrives && nak.direction != frame.direction));
    }
    assert!(naks > 5, "{naks}");
    let well = trace.frames.iter().filter(|frame| !frame.is_damaged);
    let requests = well.clone().filter(|frame| header(frame).kind() == TlpKind::MRd).map(|frame| frame.request);
    assert_eq!(requests.collect::<std::collections::BTreeSet<_>>().len(), 20);
}

#[test]
fn times_of_a_tlp_increase_and_tlps_do_not_overlap_on_a_line() {
    for seed in 0..100 {
        let platform = Random::new(seed).platform();
        let plan = plan(&mut Random::new(seed), &SimulatedMachine::new(&platform).unwrap());
        let (_, trace) = traced(&platform, &plan, Trace::MOST);
        for frame in &trace.frames {
            let Frame { ready, starts, ends, arrives, .. } = *frame;
            assert!(ready <= starts && starts < ends && ends <= arrives, "seed {seed}: {frame:?}");
        }
        for direction in [Direction::Downstream, Direction::Upstream] {
            let line: Vec<&Frame> = trace.frames.iter().filter(|frame| frame.direction == direction).collect();
            assert!(line.windows(2).all(|pair| pair[0].ends <= pair[1].starts), "seed {seed}");
        }
        for who in [StallSite::Core(0), StallSite::Core(1)] {
            let waits: Vec<_> = trace.waits.iter().filter(|wait| wait.who == who).collect();
            assert!(waits.windows(2).all(|pair| pair[0].until <= pair[1].from), "seed {seed}: {waits:?}");
        }
    }
}

#[test]
fn a_store_is_traced_with_its_address_and_its_bytes() {
    let store = stage::store(2, stage::span("sram", MemoryType::Uc, 1, 2));
    let (_, trace) = traced(&stage::platform("8B", &[]), &Plan::new(vec![store], 1), 10);
    let [frame] = trace.frames.as_slice() else { panic!("{trace:?}") };
    let Header::Memory(write) = header(frame) else { panic!("{frame:?}") };
    assert_eq!((write.span(), write.requester_id), (Some((bus("sram", 1), 2)), FunctionId(0)));
    let mut stored = [0; 4];
    lanemark_sim::stored_bytes(bus("sram", 1), 0, &mut stored[1..3]);
    assert_ne!(stored, [0; 4]);
    assert_eq!(frame.tlp[16..], stored);
    assert_eq!((frame.starts, frame.ends, frame.arrives), (ns(50), ns(57), ns(157)), "28 B at 4 GB/s, 100 ns");
    assert_eq!((trace.links, frame.direction), (vec!["card".to_owned()], Direction::Downstream));
}

#[test]
fn a_peer_write_is_one_request_on_every_link() {
    let partner = Partner::Peer { card: 3, bar: 0 };
    let (_, trace) = traced(&stage::tree_platform(&[]), &moves(0, Verb::Store, partner, 64, 2), 100);
    let ways: Vec<Vec<(&str, Direction)>> = (1..=2)
        .map(|request| {
            let frames = trace.frames.iter().filter(|frame| frame.request == request);
            frames.map(|frame| (trace.links[frame.link].as_str(), frame.direction)).collect()
        })
        .collect();
    assert_eq!(ways[0], ways[1]);
    assert_eq!(trace.frames.len(), ways[0].len() * 2);
    assert_eq!(ways[0].first(), Some(&("a", Direction::Upstream)));
    assert_eq!(ways[0].last(), Some(&("d", Direction::Downstream)));
    assert!(ways[0].len() > 2);
    let asks = header(&trace.frames[0]).requester_id();
    assert!(trace.frames.iter().all(|frame| header(frame).requester_id() == asks));
    assert_ne!(asks.bus(), 0, "bus 0 has the root complex");
}

#[test]
fn completions_have_a_byte_count_and_a_completer_id() {
    let (_, trace) = traced(&stage::tree_platform(&[]), &moves(1, Verb::Load, Partner::Host, 512, 3), 1000);
    for request in 1..=3 {
        for link in 0..trace.links.len() {
            let frames = trace.frames.iter().filter(|frame| (frame.request, frame.link) == (request, link));
            let headers: Vec<Header> = frames.map(header).collect();
            let Some((Header::Memory(read), answers)) = headers.split_first() else { continue };
            let mut left = 512;
            assert_eq!(read.span().map(|(_, bytes)| bytes), Some(left));
            for answer in answers {
                let Header::Completion(answer) = answer else { panic!("{answer:?}") };
                assert_eq!((u32::from(answer.byte_count), answer.completer_id), (left, FunctionId(0)));
                assert_eq!((answer.requester_id, answer.tag), (read.requester_id, read.tag));
                left -= u32::from(answer.length) * 4;
            }
            assert_eq!(left, 0);
        }
    }
    let of_engine = trace.waits.iter().all(|wait| wait.who == StallSite::Channel { card: 1, channel: 0 });
    assert!(of_engine && !trace.waits.is_empty());
}

#[test]
fn requests_and_completions_carry_the_ordering_attributes_of_their_engine() {
    for (relaxed, id_based) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut platform = stage::tree_platform(&[]);
        let dma = platform.dma.as_mut().unwrap();
        (dma.relaxed_ordering.value, dma.id_based_ordering.value) = (relaxed, id_based);
        for verb in [Verb::Load, Verb::Store] {
            let (_, trace) = traced(&platform, &moves(1, verb, Partner::Host, 512, 2), 1000);
            assert!(!trace.frames.is_empty());
            for frame in &trace.frames {
                let common = match header(frame) {
                    Header::Memory(request) => request.common,
                    Header::Completion(completion) => completion.common,
                    other => panic!("{other:?}"),
                };
                let attr = (common.attr.relaxed_ordering, common.attr.id_based_ordering);
                assert_eq!(attr, (relaxed, id_based), "{verb:?}: {frame:?}");
            }
        }
    }
}

#[test]
fn a_long_trace_keeps_its_end_and_counts_the_dropped_frames() {
    let loads = stage::load(8, stage::span("sram", MemoryType::Uc, 0, 80));
    let plan = Plan::new(vec![loads], 1);
    let (_, whole) = traced(&stage::platform("8B", &[]), &plan, 20);
    assert_eq!((whole.frames.len(), whole.dropped.frames), (20, 0));
    let (_, end) = traced(&stage::platform("8B", &[]), &plan, 19);
    assert_eq!((end.frames.len(), end.dropped.frames), (19, 1));
    assert_eq!(end.frames, whole.frames[1..]);
    let (_, one) = traced(&stage::platform("8B", &[]), &plan, 0);
    assert_eq!((one.frames.len(), one.waits.len(), one.dropped.waits), (1, 1, whole.waits.len() as u64 - 1));
}

#[test]
fn a_trace_excludes_the_warm_up() {
    let load = || stage::load(8, stage::span("sram", MemoryType::Uc, 0, 8));
    let plan = Plan { warmup_passes: 3, ..Plan::new(CoreWork::after(vec![load()], load()), 1) };
    let (_, trace) = traced(&stage::platform("8B", &[]), &plan, 100);
    assert_eq!(trace.frames.len(), 2);
    assert_eq!(trace.frames[0].starts, ns(50), "times begin with the sample");
}

#[test]
fn cores_and_cards_have_distinct_requester_ids() {
    let lane = |core| Lane { core, task: stage::load(8, stage::span("sram", MemoryType::Uc, 0, 8)).into() };
    let plan = Plan::new(vec![lane(0), lane(1)], 1);
    let (_, trace) = traced(&stage::platform("8B", &[]), &plan, 100);
    let mut asked: Vec<FunctionId> = trace.frames.iter().map(|frame| header(frame).requester_id()).collect();
    asked.sort();
    asked.dedup();
    assert_eq!(asked, [FunctionId(0), FunctionId(1)]);
    let cards = (0..4).map(|card| {
        let (_, trace) = traced(&stage::tree_platform(&[]), &moves(card, Verb::Store, Partner::Host, 64, 1), 100);
        header(&trace.frames[0]).requester_id()
    });
    let mut cards: Vec<FunctionId> = cards.collect();
    cards.sort();
    cards.dedup();
    assert_eq!(cards.len(), 4);
    assert!(cards.iter().all(|id| id.bus() > 0 && id.device() == 0));
}
