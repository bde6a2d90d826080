//! ATS: a device requests each translation once, uses it, and stops using it before the invalidation completes.

use lanemark_dma::{Backend, Buffer, Device, Domain, Invalidation, IovaRange, MapRequest, Mapping, Permission, Purge};
use lanemark_dma::{Invalidated, Ranges, Space};
use lanemark_machine::{
    Cause, Completion, Descriptors, Direction, DmaCall, Frame, Machine, MachineError, OnChannels, Partner, Pattern,
    Plan, Relay, Samples, Share, Trace, Transfer, Verb, Window,
};
use lanemark_platform::{Origin, PRESETS, Platform, preset};
use lanemark_sim::{AddressType, Board, CardIndex, SimulatedMachine, Tlp, TlpKind, span};
use lanemark_sim::{AtcCounts, FaultReason, InvalidationCommand};
use lanemark_units::{HostPhys, Iova, Ticks};
use lanemark_wire::ats::{AddressRange, TranslationEntry};
use lanemark_wire::{AddressType as OnWire, Header, ats};
use std::collections::BTreeSet;

const PAGE: u64 = 4096;
/// Requester ID of the first card.
const CARD: u16 = 0x8000;
/// Number of pages of host memory that are compared.
const LOOKED_AT: u64 = 64;

fn platform(set: &[(&str, &str)]) -> Platform {
    let preset = preset("card-gen5-x16-iommu").unwrap().unwrap();
    [&[("dma.ats_entries", "8")], set].concat().iter().fold(preset, |platform, (key, value)| {
        platform.with_text(key, value, Origin::Assumed("a test".to_owned())).unwrap()
    })
}

fn domain_on(platform: &Platform, policy: Invalidation) -> Domain<Ranges, Board> {
    let mut board = Board::new(platform).unwrap();
    board.map_nothing().unwrap();
    let ranges = Ranges::of_pages(Space::of_device(32).unwrap(), 16).unwrap();
    let mut domain = Domain::new("test", ranges, board, policy).unwrap();
    domain.attach("card").unwrap();
    domain
}

/// Maps `pages` pages of the host from `page` on.
fn map_pages(domain: &mut Domain<Ranges, Board>, page: u64, pages: u64, permission: Permission) -> Mapping {
    let at = domain.backend().mapped_at() + page * PAGE;
    let now = domain.backend().now();
    domain.map(&mut Buffer::new(HostPhys(at), pages * PAGE), MapRequest::new(Device(0), permission), now).unwrap()
}

fn whole(verb: Verb, bytes: u64) -> Transfer {
    let window = Window { offset: 0, len: bytes, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count: 1, window, outstanding: None }
}

/// Moves `bytes` bytes by a card at an address, to its end; returns the bytes that arrived.
fn moves(board: &mut Board, verb: Verb, at: Iova, bytes: u64) -> u64 {
    let transfer = whole(verb, bytes);
    let before = board.moved(&transfer).0;
    board.start_transfer_at(&transfer, at, 1).unwrap();
    while board.step() {}
    board.moved(&transfer).0 - before
}

fn counted(board: &Board) -> AtcCounts {
    board.engine(CardIndex(0)).unwrap().atc.as_ref().unwrap().counted
}

/// Returns all bytes that a test may have changed.
fn memory(board: &mut Board) -> Vec<u8> {
    let mut bytes = vec![0; (LOOKED_AT * PAGE) as usize];
    board.memory_mut().read(0, &mut bytes);
    bytes
}

fn changed(before: &[u8], after: &[u8]) -> Vec<usize> {
    let pages = before.chunks(PAGE as usize).zip(after.chunks(PAGE as usize));
    pages.enumerate().filter(|(_, (before, after))| before != after).map(|page| page.0).collect()
}

#[test]
fn each_page_is_translated_once_and_bytes_reach_it() {
    let mut domain = domain_on(&platform(&[]), Invalidation::Strict);
    let there = map_pages(&mut domain, 20, 4, Permission::ReadWrite).iova();
    let board = domain.backend_mut();
    let before = memory(board);
    assert_eq!(moves(board, Verb::Store, there, 4 * PAGE), 4 * PAGE);
    let after = memory(board);
    assert_eq!(changed(&before, &after), [20, 21, 22, 23]);
    assert_eq!(counted(board).questions, 4);
    // Requests of 512 B, all of them translated.
    assert_eq!(counted(board).lookups, 32);
    assert_eq!(moves(board, Verb::Load, there, 4 * PAGE), 4 * PAGE);
    let mut read = vec![0; 4 * PAGE as usize];
    board.engine_mut(CardIndex(0)).unwrap().sink.read(0, &mut read);
    assert_eq!(read, after[20 * PAGE as usize..24 * PAGE as usize]);
    assert_eq!(counted(board).questions, 4, "the translations are cached");
    assert!(board.errors().is_empty() && board.slots_in_use() == 0);
}

#[test]
fn page_size_tags_and_cache_size_affect_timing_only() {
    for set in [
        &[("dma.ats_entries", "1")][..],
        &[("dma.tags", "1")],
        &[("dma.tags", "1"), ("dma.ats_entries", "1"), ("dma.send_buffers", "1")],
        &[("iommu.page_bytes", "2MiB"), ("iommu.walk_reads", "3")],
        &[("dma.relaxed_ordering", "true"), ("dma.id_based_ordering", "true")],
        &[("iommu.walkers", "1"), ("root_complex.nonposted_header_credits", "1")],
    ] {
        for verb in [Verb::Load, Verb::Store] {
            let transfer = Transfer { count: 24, ..whole(verb, 5000) };
            let transfer = Transfer { window: Window { len: 24 * 5000, ..transfer.window }, ..transfer };
            let plan = Plan::new(transfer, 3);
            let mut samples = Samples::wanted(1);
            SimulatedMachine::new(&platform(set)).unwrap().run(&plan, &mut samples).unwrap();
            let confirmed = samples.confirmed.unwrap();
            assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (120_000, 120_000), "{verb:?} {set:?}");
        }
    }
}

#[test]
fn channels_that_share_one_cache_entry_all_complete() {
    let set = &[("dma.ats_entries", "1"), ("dma.channels", "4"), ("dma.tags", "2"), ("dma.send_buffers", "1")];
    for verb in [Verb::Load, Verb::Store] {
        let transfer = Transfer { count: 64, ..whole(verb, PAGE) };
        let transfer = Transfer { window: Window { len: 64 * PAGE, ..transfer.window }, ..transfer };
        let plan = Plan::new(OnChannels { transfer, channels: 4 }, 2);
        let mut samples = Samples::wanted(1);
        SimulatedMachine::new(&platform(set)).unwrap().run(&plan, &mut samples).unwrap();
        let confirmed = samples.confirmed.unwrap();
        assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (64 * PAGE, 64 * PAGE), "{verb:?}");
    }
}

/// The platform of these tests with FIFOs between each engine and its user circuit.
fn with_queues(set: &[(&str, &str)]) -> Platform {
    let number = |key: &str, value: u64| format!("{key} = {{ value = {value}, assumed = \"a test\" }}\n");
    let queues = ["rx_bytes", "tx_bytes", "ep_rx_bytes", "ep_tx_bytes"].map(|key| number(key, 64 << 10)).concat();
    let fifos = format!("[fifos]\nep_rx = \"memory\"\n{queues}{}{}", number("beat_bytes", 64), number("beat_ns", 1));
    let plain = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16-iommu").unwrap();
    let text = plain.text.replacen("[[bar]]", &format!("{fifos}\n[[bar]]"), 1);
    set.iter().fold(Platform::parse("queues", &text).unwrap(), |platform, (key, value)| {
        platform.with_text(key, value, Origin::Assumed("a test".to_owned())).unwrap()
    })
}

#[test]
fn a_full_queue_blocks_neither_translation_completions_nor_requests() {
    let bytes = 1 << 20;
    let window = |offset| Window { offset, len: bytes, pattern: Pattern::Sequential };
    let (from, to) = (window(0), window(8 << 20));
    for (entries, channels, tags) in [("1", "2", "1"), ("2", "2", "16"), ("8", "2", "256"), ("64", "4", "256")] {
        let set = [("dma.ats_entries", entries), ("dma.channels", channels), ("dma.tags", tags)];
        let relay = Relay { cards: vec![0], bar: 0, at_peers: window(0), bytes, count: 1, from, to, is_stored: false };
        let mut machine = SimulatedMachine::new(&with_queues(&set)).unwrap();
        let mut samples = Samples::wanted(1);
        machine.run(&Plan::new(relay, 1), &mut samples).unwrap_or_else(|error| {
            panic!("{set:?}: {error}");
        });
        let confirmed = samples.confirmed.unwrap();
        assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (bytes, bytes), "{set:?}");
        assert_eq!(machine.board_mut().slots_in_use(), 0, "{set:?}");
    }
}

#[test]
fn descriptors_and_completion_words_are_translated_but_messages_are_not() {
    for completion in [Completion::Flag, Completion::Interrupt, Completion::Register] {
        let (share, descriptors) = (Share::Doorbell, Descriptors::Fetched);
        let call = DmaCall { transfer: whole(Verb::Store, 4 * PAGE), channel: 0, share, descriptors, completion };
        let timeout = Ticks::whole_ns(1_000_000_000);
        let plan = Plan { timeout, ..Plan::new(call, 5) };
        let mut machine = SimulatedMachine::new(&platform(&[])).unwrap();
        let mut samples = Samples::wanted(1);
        machine.run(&plan, &mut samples).unwrap();
        // Four pages, and that of the driver's ring and word; each has 32 writes, four descriptors and the word.
        let word = u64::from(completion == Completion::Flag);
        let all = AtcCounts { lookups: 5 * (32 + 4 + word), questions: 5 };
        assert_eq!(counted(machine.board_mut()), all, "{completion:?}");
        assert!(samples.confirmed.is_none_or(|bytes| bytes.claimed_bytes == bytes.confirmed_bytes));
    }
}

#[test]
fn a_stall_for_a_translation_is_charged_to_translation() {
    let platform = platform(&[("dma.ats_entries", "1"), ("iommu.walk_read_ns", "2000")]);
    let transfer = Transfer { count: 64, ..whole(Verb::Store, PAGE) };
    let transfer = Transfer { window: Window { len: 64 * PAGE, ..transfer.window }, ..transfer };
    let mut samples = Samples::wanted(1);
    let plan = Plan::new(transfer, 1);
    SimulatedMachine::new(&platform).unwrap().run(&plan, &mut samples).unwrap();
    let longest = samples.waits.iter().max_by_key(|wait| wait.span).unwrap();
    assert_eq!(longest.cause, Cause::Translation, "{:?}", samples.waits);
}

#[test]
fn unmapped_or_forbidden_accesses_are_refused_and_recorded_without_changing_memory() {
    let mut domain = domain_on(&platform(&[]), Invalidation::Strict);
    let read_only = map_pages(&mut domain, 4, 1, Permission::Read).iova();
    let write_only = map_pages(&mut domain, 5, 1, Permission::Write).iova();
    let board = domain.backend_mut();
    let (before, nowhere) = (memory(board), Iova(0x7654_3000));
    for (verb, at, reason) in [
        (Verb::Store, nowhere, FaultReason::NotMapped),
        (Verb::Load, nowhere, FaultReason::NotMapped),
        (Verb::Store, read_only, FaultReason::NotWritable),
        (Verb::Load, write_only, FaultReason::NotReadable),
    ] {
        assert_eq!(moves(board, verb, at, 64), 0);
        let fault = board.take_translation_fault().unwrap();
        assert_eq!((fault.requester, fault.at, fault.reason), (CARD, at, reason), "{verb:?}");
    }
    assert_eq!(memory(board), before);
    assert!(board.take_translation_fault().is_none() && board.slots_in_use() == 0);
    // Permitted accesses still work, translated.
    assert_eq!(moves(board, Verb::Load, read_only, 64), 64);
    assert_eq!(moves(board, Verb::Store, write_only, 64), 64);
    assert_eq!(changed(&before, &memory(board)), [5]);
    // Each of the two pages once; the unmapped page each time, because that is not cached.
    assert_eq!(counted(board).questions, 4);
}

#[test]
fn an_unmapped_page_is_not_reached_by_a_cached_translation() {
    let mut board = Board::new(&platform(&[])).unwrap();
    let there = Iova(board.mapped_at());
    assert_eq!(moves(&mut board, Verb::Store, there, 64), 64);
    board.map_nothing().unwrap();
    let before = memory(&mut board);
    assert_eq!(moves(&mut board, Verb::Store, there, 64), 0);
    assert_eq!(memory(&mut board), before);
    let fault = board.take_translation_fault().map(|fault| (fault.at, fault.reason));
    assert_eq!(fault, Some((there, FaultReason::NotMapped)));
}

#[test]
fn a_read_that_misses_takes_longer_by_the_translation() {
    let latencies = |entries| {
        // Each page twice, and more pages than cache entries.
        let window = Window { offset: 0, len: 16 * PAGE, pattern: Pattern::Strided(PAGE / 2) };
        let read = Transfer { count: 32, window, outstanding: Some(1), ..whole(Verb::Load, 64) };
        let mut samples = Samples::wanted(1);
        let mut machine = SimulatedMachine::new(&platform(&[("dma.ats_entries", entries)])).unwrap();
        let plan = Plan { warmup_passes: 2, ..Plan::new(read, 1) };
        machine.run(&plan, &mut samples).unwrap();
        samples.latencies
    };
    let (asking, knowing) = (latencies("8"), latencies("16"));
    assert_eq!((asking.len(), knowing.len()), (32, 32));
    let known = knowing[0];
    assert!(knowing.iter().all(|took| *took == known), "{knowing:?}");
    let asked = asking[0];
    // A round trip, which is that of a read without memory access.
    assert!(asked > known + Ticks::whole_ns(300) && asked < known * 2, "{asked:?} and {known:?}");
    for (nth, took) in asking.iter().enumerate() {
        assert_eq!(*took, if nth % 2 == 0 { asked } else { known }, "read {nth}");
    }
}

#[test]
fn translated_requests_are_accepted_from_devices_with_ats_only() {
    for (entries, reaches) in [("8", true), ("0", false)] {
        let mut board = Board::new(&platform(&[("dma.ats_entries", entries)])).unwrap();
        board.map_nothing().unwrap();
        let before = memory(&mut board);
        let (address, length_dw, first_be, last_be) = span(board.mapped_at() + 3 * PAGE, 4);
        let payload = board.payload(&[0xaa; 4]);
        let at = AddressType::Translated;
        let of_card = Tlp { requester: CARD, payload, at, ..Tlp::of(TlpKind::MWr) };
        board.inject_at_card(CardIndex(0), Ticks::ZERO, Tlp { address, length_dw, first_be, last_be, ..of_card });
        while board.step() {}
        assert_eq!(!changed(&before, &memory(&mut board)).is_empty(), reaches, "{entries} entries");
        let fault = board.take_translation_fault().map(|fault| (fault.at, fault.reason));
        let refused = (Iova(address), FaultReason::NotEnabled);
        assert_eq!(fault, (!reaches).then_some(refused));
        assert_eq!(board.errors().len(), usize::from(!reaches));
    }
}

#[test]
fn a_device_reaches_an_unmapped_page_until_the_invalidation() {
    let longest = Ticks::whole_ns(1_000_000);
    let mut domain = domain_on(&platform(&[]), Invalidation::Deferred { entries: 8, longest });
    let mapping = map_pages(&mut domain, 20, 1, Permission::ReadWrite);
    let at = mapping.iova();
    assert_eq!(moves(domain.backend_mut(), Verb::Store, at, 64), 64);
    let now = domain.backend().now();
    domain.unmap(mapping, now).unwrap();
    let board = domain.backend_mut();
    assert_eq!(moves(board, Verb::Store, Iova(at.0 + 128), 64), 64, "the translation is still cached");
    let now = board.now();
    domain.flush(now).unwrap();
    let board = domain.backend_mut();
    let before = memory(board);
    assert_eq!(moves(board, Verb::Store, at, 64), 0);
    assert_eq!(memory(board), before);
    assert_eq!(board.take_translation_fault().map(|fault| fault.reason), Some(FaultReason::NotMapped));
}

#[test]
fn an_invalidation_completes_after_device_requests_that_used_the_page() {
    for (verb, set) in [
        (Verb::Store, &[("memory.write_tlp_ns", "50")][..]),
        (Verb::Store, &[("link.latency_ns", "3000"), ("root_complex.posted_header_credits", "8")]),
        (Verb::Store, &[("dma.relaxed_ordering", "true"), ("root_complex.posted_header_credits", "4")]),
        (Verb::Load, &[("memory.read_ns", "5000")]),
        (Verb::Load, &[("root_complex.nonposted_header_credits", "1"), ("memory.read_request_ns", "100")]),
    ] {
        let mut domain = domain_on(&platform(set), Invalidation::Strict);
        let mapping = map_pages(&mut domain, 20, 16, Permission::ReadWrite);
        let range = IovaRange { at: mapping.iova(), len_bytes: 16 * PAGE };
        let board = domain.backend_mut();
        let transfer = whole(verb, 16 * PAGE);
        board.start_transfer_at(&transfer, mapping.iova(), 100).unwrap();
        board.run_until(Ticks::whole_ns(30_000));
        board.unmap(range).unwrap();
        let took = board.invalidate(Invalidated::Range { range, by: Purge::Matching }).unwrap();
        assert!(took > Ticks::whole_ns(1200), "it waits for the device: {took:?}");
        let moved = board.moved(&transfer).0;
        assert!(moved > 0 && !board.is_idle(), "the transfer is in progress: {moved}");
        let after = memory(board);
        while board.step() {}
        assert_eq!(memory(board), after, "{verb:?} {set:?}");
        if verb == Verb::Load {
            assert_eq!(board.moved(&transfer).0, moved, "no read completes after it: {set:?}");
        }
    }
}

#[test]
fn a_device_uses_other_pages_during_an_invalidation() {
    let mut domain = domain_on(&platform(&[]), Invalidation::Strict);
    let kept = map_pages(&mut domain, 20, 4, Permission::ReadWrite);
    let gone = map_pages(&mut domain, 30, 1, Permission::ReadWrite);
    let board = domain.backend_mut();
    assert_eq!(moves(board, Verb::Store, gone.iova(), 64), 64);
    let transfer = whole(Verb::Store, 4 * PAGE);
    board.start_transfer_at(&transfer, kept.iova(), 200).unwrap();
    let now = board.now();
    board.run_until(now + Ticks::whole_ns(5000));
    let now = domain.backend().now();
    domain.unmap(gone, now).unwrap();
    let board = domain.backend_mut();
    assert!(!board.is_idle());
    while board.step() {}
    assert_eq!(board.moved(&transfer).0, 800 * PAGE + 64);
    assert_eq!(counted(board).questions, 5, "four pages and the invalidated one");
    assert!(board.errors().is_empty() && board.slots_in_use() == 0);
}

#[test]
fn a_missing_invalidate_completion_names_the_device_and_its_page_is_not_reused() {
    // There are no reads: the first request that it does not complete is the Invalidate Request.
    let platform = platform(&[]).with_fault("no_completion@card:1".parse().unwrap()).unwrap();
    let mut domain = domain_on(&platform, Invalidation::Strict);
    let stuck = map_pages(&mut domain, 2, 1, Permission::ReadWrite);
    let at = stuck.iova();
    assert_eq!(moves(domain.backend_mut(), Verb::Store, at, 64), 64);
    let now = domain.backend().now();
    let error = domain.unmap(stuck, now).unwrap_err().to_string();
    assert!(error.contains("no Invalidate Completion of card after 1000000000 ns"), "{error}");
    let now = domain.backend().now();
    assert_ne!(map_pages(&mut domain, 2, 1, Permission::ReadWrite).iova(), at, "{now:?}");
    assert_eq!(domain.backend().injected_faults(&platform)[0].because_not, None);
    // After a reset its cache is empty, and the command completes.
    let board = domain.backend_mut();
    board.reset(&platform).unwrap();
    assert!(board.put_invalidation(InvalidationCommand::All).is_ok());
    let now = board.now();
    board.run_until(now + Ticks::whole_ns(10_000));
    assert!(board.is_idle());
    assert_eq!(moves(board, Verb::Store, at, 64), 0);
}

#[test]
fn faults_of_translation_requests_and_completions_are_reported_and_traffic_continues() {
    for fault in [
        "unmapped@root/card:1",
        "unsupported_request@root/card:1",
        "completer_abort@root/card:1",
        "no_completion@root/card:1",
        "poisoned@card:1",
        "ecrc@card:1",
        "ecrc@root/card:1",
    ] {
        let platform = platform(&[]).with_fault(fault.parse().unwrap()).unwrap();
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let plan = Plan::new(whole(Verb::Load, 4 * PAGE), 1);
        let Err(MachineError::Bus(error)) = machine.run(&plan, &mut Samples::wanted(1)) else { panic!("{fault}") };
        assert!(error.arrived[0].bytes < 4 * PAGE, "{fault}: {error}");
        if fault != "unmapped@root/card:1" {
            machine.run(&plan, &mut Samples::wanted(1)).unwrap_or_else(|error| panic!("{fault}: {error}"));
        }
        assert_eq!(machine.board_mut().slots_in_use(), 0, "{fault}");
    }
}

#[test]
fn iommu_faults_count_untranslated_requests_only() {
    for (fault, entries, came) in [
        ("read_only@root/card:1", "8", "no write came untranslated (dma.ats_entries is 8) to root/card until"),
        ("unmapped@root/card:3", "8", "only 2 requests came untranslated (dma.ats_entries is 8) to root/card until"),
        ("unmapped@root/card:30", "0", "only 16 requests came to root/card until"),
        ("poisoned@root/card:30", "8", "only 16 TLPs with data came to root/card until"),
    ] {
        let platform = platform(&[("dma.ats_entries", entries)]).with_fault(fault.parse().unwrap()).unwrap();
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let plan = Plan::new(whole(Verb::Store, 2 * PAGE), 1);
        machine.run(&plan, &mut Samples::wanted(1)).unwrap();
        let said = machine.board_mut().injected_faults(&platform).remove(0).because_not.unwrap();
        assert!(said.starts_with(came), "{said}");
    }
}

#[test]
fn a_trace_shows_translation_requests_completions_and_translated_requests() {
    let plan = Plan::new(whole(Verb::Store, 2 * PAGE), 1);
    let mut machine = SimulatedMachine::new(&platform(&[])).unwrap();
    let trace = machine.trace(&plan, &mut Samples::wanted(1), Trace::MOST).unwrap();
    assert_eq!(trace.dropped.illegal, 0);
    let memory = |frame: &Frame| match Header::parse_whole(&frame.tlp).unwrap().0 {
        Header::Memory(request) => Some((request.at, request.length)),
        _ => None,
    };
    let of = |at| trace.frames.iter().filter(|frame| memory(frame).is_some_and(|(other, _)| other == at)).count();
    let question = OnWire::TranslationRequest { no_write: false };
    assert_eq!([of(question), of(OnWire::Translated), of(OnWire::Untranslated)], [2, 16, 0]);
    let answers: Vec<(u64, TranslationEntry)> = trace
        .frames
        .iter()
        .filter(|frame| frame.direction == Direction::Downstream)
        .filter_map(|frame| {
            let (_, data) = Header::parse_whole(&frame.tlp).unwrap();
            Some((frame.request, TranslationEntry::from_bytes(data.try_into().ok()?)))
        })
        .collect();
    let at = machine.board_mut().mapped_at();
    let leads = |page| AddressRange::new(at + page * PAGE, 12);
    let said: Vec<AddressRange> = answers.iter().map(|(_, entry)| entry.leads_to).collect();
    assert_eq!(said, [leads(0), leads(1)]);
    let asked: Vec<u64> =
        trace.frames.iter().filter(|frame| memory(frame) == Some((question, 2))).map(|frame| frame.request).collect();
    assert_eq!(answers.iter().map(|(request, _)| *request).collect::<Vec<_>>(), asked);
}

#[test]
fn an_invalidation_has_a_request_to_each_card_and_a_completion_behind_its_writes() {
    let platform = platform(&[]);
    let mut domain = domain_on(&platform, Invalidation::Strict);
    let mapping = map_pages(&mut domain, 20, 4, Permission::ReadWrite);
    let range = IovaRange { at: mapping.iova(), len_bytes: 4 * PAGE };
    let board = domain.backend_mut();
    board.observe(&platform, Trace::MOST).unwrap();
    board.start_transfer_at(&whole(Verb::Store, 4 * PAGE), mapping.iova(), 1000).unwrap();
    board.run_until(Ticks::whole_ns(5000));
    board.unmap(range).unwrap();
    board.invalidate(Invalidated::Range { range, by: Purge::Matching }).unwrap();
    let trace = board.take_trace();
    assert_eq!(trace.dropped.illegal, 0);
    let messages: Vec<(usize, &Frame, &'static str)> = trace
        .frames
        .iter()
        .enumerate()
        .filter_map(|(nth, frame)| match Header::parse_whole(&frame.tlp).unwrap() {
            (Header::Message(message), data) => {
                let (what, to) = ats::what(&message).unwrap();
                assert_eq!(to.bus(), u8::from(frame.direction == Direction::Downstream), "{what}");
                let asked: Option<[u8; 8]> = data.try_into().ok();
                let meant = AddressRange::new(mapping.iova().0, 14);
                assert!(asked.is_none_or(|bytes| AddressRange::from_bytes(bytes) == meant), "four pages");
                Some((nth, frame, what))
            }
            _ => None,
        })
        .collect();
    let [(_, request, "Invalidate Request"), (nth, completion, "Invalidate Completion")] = messages[..] else {
        panic!("{messages:?}")
    };
    assert_eq!(request.request, completion.request);
    assert!(request.arrives < completion.starts && completion.direction == Direction::Upstream);
    let is_translated = |frame: &&Frame| {
        let header = Header::parse_whole(&frame.tlp).unwrap().0;
        matches!(header, Header::Memory(request) if request.at == OnWire::Translated)
    };
    assert_eq!(trace.frames[nth..].iter().filter(is_translated).count(), 0, "all of them precede it");
}

/// Returns a platform of eight cards behind switches, with an IOMMU.
fn many_cards(fault: Option<&str>) -> Platform {
    let rosta = PRESETS.iter().find(|preset| preset.name == "rosta-virtex7").unwrap();
    let number = |key: &str, value: u64| format!("{key} = {{ value = {value}, assumed = \"a test\" }}\n");
    let keys = [("iotlb_entries", 64), ("iotlb_ways", 8), ("lookup_ns", 10), ("walk_read_ns", 80)];
    let section: String = keys.iter().map(|(key, value)| number(key, *value)).collect();
    let text = rosta.text.replacen("[link]", &format!("[iommu]\n{section}\n[link]"), 1);
    let plain = Platform::parse("rosta", &text).unwrap();
    let with_ats = plain.with_text("dma.ats_entries", "8", Origin::Assumed("a test".to_owned())).unwrap();
    fault.map_or(with_ats.clone(), |fault| with_ats.with_fault(fault.parse().unwrap()).unwrap())
}

#[test]
fn every_card_behind_switches_gets_the_request_and_missing_completions_are_named() {
    for (fault, silent) in [(None, None), (Some("link_down@fpga5:1"), Some("of fpga5 after"))] {
        let platform = many_cards(fault);
        assert_eq!(platform.cards(), 8);
        let mut board = Board::new(&platform).unwrap();
        board.observe(&platform, Trace::MOST).unwrap();
        let said = board.invalidate(Invalidated::All).map_err(|error| error.to_string());
        let frames = board.take_trace().frames;
        let requests = frames.iter().filter(|frame| frame.direction == Direction::Downstream);
        let named: BTreeSet<u16> = requests
            .filter_map(|frame| match Header::parse_whole(&frame.tlp).unwrap().0 {
                Header::Message(message) => ats::what(&message).map(|(_, to)| to.0),
                _ => None,
            })
            .collect();
        assert_eq!(named.len(), 8);
        let of = |direction| frames.iter().filter(move |frame| frame.direction == direction);
        for answer in of(Direction::Upstream) {
            let mut wait = of(Direction::Downstream).filter(|wait| wait.link == answer.link);
            assert!(wait.any(|wait| wait.arrives < answer.starts), "{answer:?} precedes its request");
        }
        match silent {
            None => assert!(said.unwrap() > Ticks::whole_ns(1000), "and a round trip"),
            Some(silent) => assert!(said.as_ref().is_err_and(|error| error.contains(silent)), "{said:?}"),
        }
    }
}
