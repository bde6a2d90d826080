//! The coherent board compared with plain memory: every access sees the latest write.

use lanemark_coherent::{CoherentBoard, Indexed, NoAccess, Request, Spec, TransactionKind};
use lanemark_dma::{
    Backend, Buffer, Coherence, Domain, Hints, Invalidated, Invalidation, MapRequest, Mapping, Permission, Ranges,
    Space,
};
use lanemark_units::{HostPhys, HostVirt, Iova, Ticks};

const NOW: Ticks = Ticks::ZERO;
const AT: u64 = 0x2_5000;

fn small(mut spec: Spec) -> Spec {
    spec.adapter.tlb.block_bits = 8;
    spec
}

fn domain(spec: Spec) -> Domain<Ranges, CoherentBoard> {
    let ranges = Ranges::new(Space::of_device(28).unwrap()).unwrap().over_entries(256).unwrap();
    let board = CoherentBoard::new(small(spec)).unwrap();
    let mut domain = Domain::new("test", ranges, board, Invalidation::Strict).unwrap();
    domain.attach("device").unwrap();
    domain
}

fn lend(domain: &mut Domain<Ranges, CoherentBoard>, at: u64, bytes: u64, hints: Hints) -> Mapping {
    let lend = MapRequest::new(lanemark_dma::Device(0), Permission::ReadWrite).hints(hints);
    domain.map(&mut Buffer::new(HostVirt(at), bytes), lend, NOW).unwrap()
}

/// A deterministic pseudo-random generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn every_access_sees_the_latest_write_of_any_processor_or_device() {
    for (seed, line_bytes, cache_bytes, indexed) in [
        (1, 32, 256 << 10, Indexed::Virtually),
        (2, 32, 64, Indexed::Virtually),
        (3, 64, 1024, Indexed::Physically),
        (4, 16, 16, Indexed::Physically),
    ] {
        let mut spec = Spec::coherent();
        spec.processors = 4;
        spec.processor.prefetches = true;
        spec.adapter.line_bytes = line_bytes;
        spec.adapter.devices = vec![line_bytes, line_bytes / 2];
        spec.processor.cache.line_bytes = line_bytes;
        spec.processor.cache.size_bytes = cache_bytes;
        spec.processor.cache.indexed = indexed;
        let mut domain = domain(spec);
        domain.backend_mut().place(HostVirt(AT), HostPhys(0x7_9000), 1).unwrap();
        let iova = lend(&mut domain, AT, 4096, Hints::SAFE | Hints::NO_PREFETCH).iova();
        let board = domain.backend_mut();
        let (mut numbers, mut meant) = (Numbers(seed), [0; 256]);
        board.store(0, HostVirt(AT), &meant).unwrap();
        for turn in 0..3000 {
            let (is_write, who) = (numbers.below(2) == 0, numbers.below(6) as usize);
            let word = if who < 4 { 1 } else { 4 };
            let first = (numbers.below(256) / word * word) as usize;
            let len = ((numbers.below(100) + 4) / word * word).min(256 - first as u64) as usize;
            let data: Vec<u8> = (0..len).map(|_| numbers.below(256) as u8).collect();
            let (virt, at) = (HostVirt(AT + first as u64), Iova(iova.0 + first as u64));
            if is_write {
                meant[first..first + len].copy_from_slice(&data);
                let written =
                    if who < 4 { board.store(who, virt, &data) } else { board.device_write(who - 4, at, &data) };
                written.unwrap();
            } else {
                let mut seen = vec![0; len];
                let read =
                    if who < 4 { board.load(who, virt, &mut seen) } else { board.device_read(who - 4, at, &mut seen) };
                read.unwrap();
                assert_eq!(seen, meant[first..first + len], "seed {seed}, turn {turn}: {who} at {first}");
            }
        }
    }
}

#[test]
fn concurrent_writes_to_words_of_one_line_are_all_kept() {
    let mut spec = Spec::coherent();
    spec.processors = 4;
    spec.processor.cache.size_bytes = 64;
    spec.adapter.devices = vec![32, 16, 8, 4];
    let mut domain = domain(spec);
    let iova = lend(&mut domain, AT, 4096, Hints::SAFE | Hints::NO_PREFETCH).iova();
    let board = domain.backend_mut();
    board.store(0, HostVirt(AT), &[0; 128]).unwrap();
    let mut tickets = Vec::new();
    for round in 1..=50_u8 {
        for line in 0..4 {
            for who in 0..4 {
                let at = HostVirt(AT + line * 32 + 4 * who as u64);
                let data = vec![round ^ who as u8; 4];
                tickets.push(board.ask(Request::Store { processor: who, at, data: data.clone() }).unwrap());
                let at = Iova(iova.0 + line * 32 + 16 + 4 * who as u64);
                tickets.push(board.ask(Request::DeviceWrite { device: who, at, data }).unwrap());
            }
        }
        board.run_until(board.now() + Ticks::whole_ns(333));
    }
    for ticket in tickets {
        assert_eq!(board.wait(ticket).unwrap().fault, None);
    }
    assert!(board.counts().held_up > 0, "no request stalled on a line being merged");
    let mut seen = [0; 128];
    board.load(1, HostVirt(AT), &mut seen).unwrap();
    let meant: [u8; 128] = std::array::from_fn(|place| 0x32 ^ (place / 4 % 4) as u8);
    assert_eq!(seen, meant);
    assert_eq!(board.next_at(), Ticks::NEVER);
}

#[test]
fn the_same_requests_yield_the_same_board() {
    let run = || {
        let mut domain = domain(Spec::coherent());
        let mapping = lend(&mut domain, AT, 8192, Hints::NONE);
        let board = domain.backend_mut();
        for device in 0..2 {
            let at = Iova(mapping.iova().0 + device as u64 * 4096);
            board.ask(Request::DeviceWrite { device, at, data: vec![3; 4096] }).unwrap();
            board.ask(Request::Load { processor: device, at: HostVirt(AT) }).unwrap();
        }
        board.run_until(Ticks::whole_ns(1_000_000));
        board.clone()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_wider_bus_shortens_misses_and_leaves_hits_unchanged() {
    let read = |bytes| {
        let mut spec = Spec::coherent();
        spec.bus.cycle_bytes = bytes;
        let mut board = CoherentBoard::new(small(spec)).unwrap();
        let took = [(); 2].map(|()| board.load(0, HostVirt(AT), &mut [0; 32]).unwrap());
        (took, board.bus().count(TransactionKind::Read(32)))
    };
    // Arbitration, address and data, then memory.
    let times = |bus: u64| [Ticks::whole_ns(bus + 150), Ticks::whole_ns(10)];
    assert_eq!(read(8), (times(60), 1));
    assert_eq!(read(16), (times(40), 1));
}

#[test]
fn requests_out_of_range_are_rejected_and_limits_are_accepted() {
    let mut board = CoherentBoard::new(small(Spec::coherent())).unwrap();
    let message = |error: NoAccess| error.to_string();
    let load = |board: &mut CoherentBoard, processor, at| board.load(processor, HostVirt(at), &mut [0; 1]).map(|_| ());
    assert_eq!(load(&mut board, 1, (1 << 40) - 1), Ok(()));
    let error = load(&mut board, 1, 1 << 40).unwrap_err();
    assert_eq!(message(error), "0x10000000000 is at 0x10000000000, and memory ends at 2^40 B; map the page lower");
    let error = load(&mut board, 2, 0).unwrap_err();
    assert_eq!(message(error), "there is no processor 2: there are 2, numbered from 0");
    let store = |at, len| Request::Store { processor: 0, at: HostVirt(at), data: vec![0; len] };
    assert!(board.ask(store(4, 28)).is_ok());
    assert_eq!(board.ask(store(4, 29)), Err(NoAccess::TwoLines { at: HostVirt(4), len_bytes: 29 }));
    assert_eq!(board.ask(store(0, 0)), Err(NoAccess::Length { len_bytes: 0, most: 32 }));
    assert_eq!(board.device_write(0, Iova(4), &[0; 6]), Err(NoAccess::NoWords { at: Iova(4), len_bytes: 6 }));
    assert_eq!(board.device_write(0, Iova(2), &[0; 4]), Err(NoAccess::NoWords { at: Iova(2), len_bytes: 4 }));
    assert!(matches!(
        board.device_read(2, Iova(0), &mut [0; 4]),
        Err(NoAccess::UnknownRequester { what: "device", .. })
    ));
    let last = HostPhys((1 << 40) - 8192);
    assert_eq!(board.place(HostVirt(AT), last, 2), Ok(()));
    assert_eq!(board.place(HostVirt(AT), last, 3), Err(NoAccess::NoMemory { at: HostVirt(AT), physical: last }));
    let ask = |board: &mut CoherentBoard| board.ask(Request::Load { processor: 1, at: HostVirt(AT) });
    for _ in 0..CoherentBoard::MOST_WAITING {
        ask(&mut board).unwrap();
    }
    assert!(matches!(ask(&mut board), Err(NoAccess::Busy { number: 1, .. })));
    board.run_until(Ticks::whole_ns(1000));
    assert!(ask(&mut board).is_ok());
}

#[test]
fn requests_are_refused_once_too_many_answers_have_not_been_taken() {
    let mut board = CoherentBoard::new(small(Spec::coherent())).unwrap();
    let mut tickets = Vec::new();
    let refused = loop {
        match board.ask(Request::Load { processor: 0, at: HostVirt(AT) }) {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => break error,
        }
        board.run_until(board.now() + Ticks::whole_ns(1000));
    };
    assert_eq!(refused, NoAccess::NotTaken { most: tickets.len() });
    assert_eq!(tickets.len(), CoherentBoard::MOST_ANSWERS);
    assert!(board.answer(tickets[0]).is_some() && board.answer(tickets[0]).is_none());
    assert_eq!(board.load(0, HostVirt(AT), &mut [0; 32]), Ok(Ticks::whole_ns(10)));
}

#[test]
fn the_backend_rejects_double_maps_missing_unmaps_and_addresses_beyond_the_directory() {
    let mut board = CoherentBoard::new(small(Spec::coherent())).unwrap();
    let range = |at, len_bytes| lanemark_dma::IovaRange { at: Iova(at), len_bytes };
    let attributes = MapRequest::new(lanemark_dma::Device(0), Permission::Read).attributes();
    board.map(range(0x1000, 0x2000), HostVirt(AT), attributes).unwrap();
    let error = board.map(range(0x0000, 0x2000), HostVirt(AT), attributes).unwrap_err();
    assert_eq!((error.to_string(), board.directory_entries()), ("0x1000 is mapped already".into(), 2));
    let error = board.unmap(range(0x2000, 0x2000)).unwrap_err();
    assert_eq!((error.to_string(), board.directory_entries()), ("0x3000 is not mapped".into(), 2));
    let last = (1 << 28) - 0x1000;
    board.map(range(last, 0x1000), HostVirt(AT), attributes).unwrap();
    assert!(board.map(range(last + 0x1000, 0x1000), HostVirt(AT), attributes).is_err());
    let error = board.map(range(0x8000, 0x2000), HostVirt((1 << 40) - 0x1000), attributes).unwrap_err();
    assert!(error.to_string().starts_with("the page at 0x10000000000 cannot be pinned"), "{error}");
    assert_eq!((board.directory_entries(), board.coherence()), (3, Coherence::Coherent));
    // The first chain ID and the last one.
    board.device_read(0, Iova(0x1000), &mut [0; 4]).unwrap();
    board.device_read(0, Iova(last), &mut [0; 4]).unwrap();
    assert_eq!(board.adapter().tlb().valid(), 2);
    assert!(board.invalidate(Invalidated::All).unwrap() > Ticks::ZERO);
    assert_eq!(board.adapter().tlb().valid(), 0);
}
