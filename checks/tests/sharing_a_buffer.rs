//! Four methods to share a buffer with a device, tested by bytes: none (hardware coherence), flushes and purges, uncached
//! accesses, and a bounce buffer. With all of its steps each method is correct on every board. Without any one of them there
//! are cases with stale bytes, and these are exactly the cases stated here.
//!
//! The question `coherence_cost` measures the cost of these methods. It is also H2 of the HP 9000 J/K class: without coherence,
//! software flushes before outbound transfers and purges before inbound ones, and again after those if processors prefetch.

use lanemark_coherent::{CoherentBoard, Spec, TransactionKind};
use lanemark_dma::{Buffer, Domain, Hints, Invalidation, MapRequest, Mapping, Owner, Permission, Ranges, Space};
use lanemark_units::{HostVirt, Ticks};

const LINE: usize = 32;
const CACHE_BYTES: u64 = 8 << 10;
/// Lines of the buffer; the line before them belongs to the processor.
const BUFFER: HostVirt = HostVirt(0x2_5020);
const BEFORE: HostVirt = HostVirt(0x2_5000);
const LEN: usize = 5 * LINE;
/// A private buffer of the program, not mapped for devices.
const OWN: HostVirt = HostVirt(0x4_0400);
/// The processor that shares the buffer, and another one.
const CPU: usize = 1;
const OTHER: usize = 0;
/// Number of handoffs: the cache state after one is the start of the next.
const ROUNDS: u8 = 2;

type Bytes = [u8; LEN];

/// Unique bytes for each line and each write.
fn written(nth: u8) -> Bytes {
    std::array::from_fn(|place| nth * 40 + (place / LINE * 8 + place % 8) as u8)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// No software action.
    Coherent,
    /// Calls of `sync` for each handoff.
    Flushed,
    /// Uncached accesses of the processor.
    Uncached,
    /// A private buffer of the processor, with uncached copies.
    Bounced,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Hardware coherence: caches snoop devices.
    Coherence,
    /// `sync` for the device: a flush of outbound data, a purge of inbound data.
    ForDevice,
    /// `sync` for the processor: a purge of prefetched lines.
    ForCpu,
    /// A flush of the cached lines of a buffer before uncached use.
    Emptied,
    /// Uncached accesses.
    PastCaches,
    /// A copy of the private buffer to the device's buffer.
    CopyOut,
    /// A copy of the device's buffer to the private buffer.
    CopyIn,
}

/// Cache state of the buffer's lines when it is mapped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    Nothing,
    Clean,
    Dirty,
}

/// Other activity while the device owns the buffer: outbound before the device reads, inbound as stated.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meanwhile {
    Nothing,
    /// The processor evicts all lines of the buffer by other accesses; inbound after the device has written.
    CrowdsOut,
    /// The processor reads its own line before the buffer; inbound before the device writes.
    ReadsBeside,
    /// Another processor reads the buffer.
    OtherReads,
}

const OUT: [Meanwhile; 4] = [Meanwhile::Nothing, Meanwhile::CrowdsOut, Meanwhile::ReadsBeside, Meanwhile::OtherReads];
/// A buffer may not be read before the device has written it.
const IN: [Meanwhile; 3] = [Meanwhile::Nothing, Meanwhile::CrowdsOut, Meanwhile::ReadsBeside];

#[derive(Clone, Copy, Debug)]
struct Case {
    coherent: bool,
    prefetches: bool,
    held: Held,
    meanwhile: Meanwhile,
}

fn cases(meanwhile: &'static [Meanwhile]) -> impl Iterator<Item = Case> {
    let boards = [(true, false), (true, true), (false, false), (false, true)];
    boards.into_iter().flat_map(move |(coherent, prefetches)| {
        [Held::Nothing, Held::Clean, Held::Dirty].into_iter().flat_map(move |held| {
            meanwhile.iter().map(move |meanwhile| Case { coherent, prefetches, held, meanwhile: *meanwhile })
        })
    })
}

/// Whether every line contains the bytes of this round; a line with bytes that were never written is an error.
fn is_right(seen: &Bytes, round: u8) -> bool {
    let known: Vec<Bytes> = (0..=FIRST_ROUND + round).map(written).collect();
    for (line, place) in seen.chunks(LINE).zip((0..).step_by(LINE)) {
        assert!(known.iter().any(|bytes| bytes[place..place + LINE] == *line), "{line:?} at {place} was never written");
    }
    *seen == written(FIRST_ROUND + round)
}

/// Initial content of memory.
const OLD: u8 = 0;
/// Changes of the processor before the buffer was mapped.
const SCRIBBLE: u8 = 1;
/// Initial content of the private buffer.
const OWN_OLD: u8 = 2;
/// Content written in the first round.
const FIRST_ROUND: u8 = 3;

/// A board with a DMA domain and a mapped buffer.
struct Machine {
    domain: Domain<Ranges, CoherentBoard>,
    mapping: Mapping,
    way: Way,
    left_out: Option<Step>,
    case: Case,
}

impl Machine {
    fn new(case: Case, way: Way, left_out: Option<Step>) -> Machine {
        let mut spec = Spec::not_coherent(case.prefetches);
        spec.adapter.coherent = case.coherent;
        // A small directory is fast to build.
        (spec.adapter.tlb.chain_bits, spec.adapter.tlb.block_bits) = (4, 6);
        spec.processor.cache.size_bytes = CACHE_BYTES;
        let mut board = CoherentBoard::new(spec).unwrap();
        for (at, bytes) in [(BUFFER, written(OLD)), (OWN, written(OWN_OLD))] {
            board.store_uncached(OTHER, at, &bytes).unwrap();
        }
        let ranges = Ranges::new(Space::of_device(22).unwrap()).unwrap().over_entries(16).unwrap();
        let mut domain = Domain::new("machine", ranges, board, Invalidation::Strict).unwrap();
        let lend = MapRequest::new(domain.attach("device 0").unwrap(), Permission::ReadWrite)
            .hints(Hints::NO_PREFETCH | Hints::ANY_ALIGNMENT);
        let mapping = domain.map(&mut Buffer::new(BUFFER, LEN as u64), lend, Ticks::ZERO).unwrap();
        let mut machine = Machine { domain, mapping, way, left_out, case };
        match case.held {
            Held::Nothing => {}
            Held::Clean => machine.board().load(CPU, BUFFER, &mut [0; LEN]).map(drop).unwrap(),
            Held::Dirty => machine.board().store(CPU, BUFFER, &written(SCRIBBLE)).map(drop).unwrap(),
        }
        if machine.takes(Step::Emptied) && matches!(way, Way::Uncached | Way::Bounced) {
            machine.board().flush(CPU, BUFFER, LEN).unwrap();
        }
        machine
    }

    fn board(&mut self) -> &mut CoherentBoard {
        self.domain.backend_mut()
    }

    fn takes(&self, step: Step) -> bool {
        self.left_out != Some(step)
    }

    fn sync(&mut self, step: Step, permission: Permission, turn: Owner) {
        if self.way == Way::Flushed && self.takes(step) {
            self.domain.sync(Buffer::new(BUFFER, LEN as u64), permission, turn).unwrap();
        }
    }

    fn goes_past(&self) -> bool {
        matches!(self.way, Way::Uncached | Way::Bounced) && self.takes(Step::PastCaches)
    }

    /// The processor writes the data for the device.
    fn write(&mut self, bytes: &Bytes) {
        if self.goes_past() {
            self.board().store_uncached(CPU, BUFFER, bytes).unwrap();
        } else {
            self.board().store(CPU, BUFFER, bytes).unwrap();
        }
    }

    /// The processor reads the data of the device.
    fn read(&mut self) -> Bytes {
        let mut seen = [0; LEN];
        if self.goes_past() {
            self.board().load_uncached(CPU, BUFFER, &mut seen).unwrap();
        } else {
            self.board().load(CPU, BUFFER, &mut seen).unwrap();
        }
        seen
    }

    fn own(&mut self) -> Bytes {
        let mut seen = [0; LEN];
        self.board().load(CPU, OWN, &mut seen).unwrap();
        seen
    }

    fn meanwhile(&mut self) {
        let board = self.domain.backend_mut();
        match self.case.meanwhile {
            Meanwhile::Nothing => {}
            // Other lines that conflict in the cache.
            Meanwhile::CrowdsOut => {
                board.load(CPU, HostVirt(BUFFER.0 + 2 * CACHE_BYTES), &mut [0; LEN]).map(drop).unwrap();
            }
            Meanwhile::ReadsBeside => board.load(CPU, BEFORE, &mut [0; LINE]).map(drop).unwrap(),
            Meanwhile::OtherReads => board.load(OTHER, BUFFER, &mut [0; LEN]).map(drop).unwrap(),
        }
        // Prefetches complete too.
        let later = board.now() + Ticks::whole_ns(100_000);
        board.run_until(later);
    }

    /// The processor writes, then the device reads, repeatedly; returns whether the device sees the new bytes.
    fn outward(&mut self) -> bool {
        (0..ROUNDS).all(|round| {
            let bytes = written(FIRST_ROUND + round);
            if self.way == Way::Bounced {
                self.board().store(CPU, OWN, &bytes).unwrap();
                if self.takes(Step::CopyOut) {
                    let own = self.own();
                    self.write(&own);
                }
            } else {
                self.write(&bytes);
            }
            self.sync(Step::ForDevice, Permission::Read, Owner::Device);
            self.meanwhile();
            let (mut seen, at) = ([0; LEN], self.mapping.iova());
            self.board().device_read(0, at, &mut seen).unwrap();
            self.sync(Step::ForCpu, Permission::Read, Owner::Cpu);
            is_right(&seen, round)
        })
    }

    /// The device writes, then the processor reads, repeatedly; returns whether processor and memory have the new bytes.
    fn inward(&mut self) -> bool {
        (0..ROUNDS).all(|round| {
            self.sync(Step::ForDevice, Permission::Write, Owner::Device);
            let crowds_out = self.case.meanwhile == Meanwhile::CrowdsOut;
            if !crowds_out {
                self.meanwhile();
            }
            let at = self.mapping.iova();
            self.board().device_write(0, at, &written(FIRST_ROUND + round)).unwrap();
            if crowds_out {
                self.meanwhile();
            }
            self.sync(Step::ForCpu, Permission::Write, Owner::Cpu);
            if self.way != Way::Bounced {
                return is_right(&self.read(), round);
            }
            if self.takes(Step::CopyIn) {
                let there = self.read();
                self.board().store(CPU, OWN, &there).unwrap();
            }
            is_right(&self.own(), round)
        })
    }
}

/// Checks that a method without one step gives stale bytes exactly in the cases of `is_stale`.
fn outward_without(way: Way, step: Step, is_stale: impl Fn(Case) -> bool) {
    let mut stale = 0;
    for case in cases(&OUT) {
        let sees = Machine::new(case, way, Some(step)).outward();
        assert_eq!(!sees, is_stale(case), "{way:?} without {step:?}: {case:?}");
        stale += u32::from(!sees);
    }
    assert!(stale > 0, "{way:?} without {step:?} is never stale");
}

fn inward_without(way: Way, step: Step, is_stale: impl Fn(Case) -> bool) {
    let mut stale = 0;
    for case in cases(&IN) {
        let sees = Machine::new(case, way, Some(step)).inward();
        assert_eq!(!sees, is_stale(case), "{way:?} without {step:?}: {case:?}");
        stale += u32::from(!sees);
    }
    assert!(stale > 0, "{way:?} without {step:?} is never stale");
}

#[test]
fn complete_methods_are_correct_on_every_board() {
    for way in [Way::Coherent, Way::Flushed, Way::Uncached, Way::Bounced] {
        let has_all = |case: &Case| way != Way::Coherent || case.coherent;
        for case in cases(&OUT).filter(has_all) {
            assert!(Machine::new(case, way, None).outward(), "{way:?}: {case:?}");
        }
        for case in cases(&IN).filter(has_all) {
            assert!(Machine::new(case, way, None).inward(), "{way:?}: {case:?}");
        }
    }
}

// No software action.

#[test]
fn without_coherence_a_device_reads_stale_bytes_unless_lines_were_evicted() {
    outward_without(Way::Coherent, Step::Coherence, |case| {
        !case.coherent && matches!(case.meanwhile, Meanwhile::Nothing | Meanwhile::ReadsBeside)
    });
}

#[test]
fn without_coherence_a_processor_reads_stale_bytes_and_dirty_lines_overwrite_device_data() {
    inward_without(Way::Coherent, Step::Coherence, |case| {
        !case.coherent && (case.held == Held::Dirty || case.meanwhile != Meanwhile::CrowdsOut)
    });
}

// Flushes and purges.

#[test]
fn outbound_data_must_be_flushed() {
    outward_without(Way::Flushed, Step::ForDevice, |case| {
        !case.coherent && matches!(case.meanwhile, Meanwhile::Nothing | Meanwhile::ReadsBeside)
    });
}

#[test]
fn inbound_buffers_must_be_purged_before_the_transfer() {
    inward_without(Way::Flushed, Step::ForDevice, |case| {
        let is_crowded_out = case.meanwhile == Meanwhile::CrowdsOut;
        // A purge afterwards removes clean lines, but is too late for dirty lines that were written back.
        let purged_after = (case.held == Held::Dirty) && is_crowded_out;
        let never_purged = (case.held == Held::Dirty) || !is_crowded_out;
        !case.coherent && if case.prefetches { purged_after } else { never_purged }
    });
}

#[test]
fn inbound_buffers_must_be_purged_after_the_transfer_if_processors_prefetch() {
    inward_without(Way::Flushed, Step::ForCpu, |case| {
        !case.coherent && case.prefetches && case.meanwhile == Meanwhile::ReadsBeside
    });
}

#[test]
fn outbound_data_needs_no_sync_afterwards() {
    for case in cases(&OUT) {
        assert!(Machine::new(case, Way::Flushed, Some(Step::ForCpu)).outward(), "{case:?}");
    }
}

#[test]
fn only_non_coherent_machines_flush_and_purge_lines() {
    let cared = |coherent, prefetches| {
        let case = Case { coherent, prefetches, held: Held::Dirty, meanwhile: Meanwhile::Nothing };
        let count = |machine: &Machine| {
            [TransactionKind::Flush, TransactionKind::Purge].map(|kind| machine.domain.backend().bus().count(kind))
        };
        let mut machine = Machine::new(case, Way::Flushed, None);
        let first = count(&machine);
        assert!(machine.outward());
        let out = count(&machine);
        assert!(machine.inward());
        let both = count(&machine);
        let more = |now: [u64; 2], then: [u64; 2]| [now[0] - then[0], now[1] - then[1]];
        [more(out, first), more(both, out)]
    };
    let lines = u64::from(ROUNDS) * (LEN / LINE) as u64;
    assert_eq!([cared(true, false), cared(true, true)], [[[0, 0]; 2]; 2]);
    assert_eq!(cared(false, false), [[lines, 0], [0, lines]]);
    assert_eq!(cared(false, true), [[lines, 0], [0, 2 * lines]]);
}

#[test]
fn the_library_preserves_data_that_shares_a_line_with_the_buffer() {
    for by_library in [true, false] {
        let case = Case { coherent: false, prefetches: false, held: Held::Nothing, meanwhile: Meanwhile::Nothing };
        let mut machine = Machine::new(case, Way::Flushed, None);
        // From the middle of the first line to the middle of the last one.
        let (inner, len) = (HostVirt(BUFFER.0 + 16), LEN - LINE);
        machine.board().store(CPU, BUFFER, &written(SCRIBBLE)).unwrap();
        if by_library {
            machine.domain.sync(Buffer::new(inner, len as u64), Permission::Write, Owner::Device).unwrap();
        } else {
            machine.board().purge(CPU, inner, len).unwrap();
        }
        let seen = machine.read();
        let ends = [&seen[..16], &seen[LEN - 16..]].concat();
        let of = |nth| [&written(nth)[..16], &written(nth)[LEN - 16..]].concat();
        assert_eq!(ends, of(if by_library { SCRIBBLE } else { OLD }), "by the library: {by_library}");
    }
}

// Uncached accesses.

#[test]
fn devices_see_uncached_stores_and_not_cached_ones() {
    for way in [Way::Uncached, Way::Bounced] {
        outward_without(way, Step::PastCaches, |case| {
            !case.coherent && matches!(case.meanwhile, Meanwhile::Nothing | Meanwhile::ReadsBeside)
        });
    }
}

#[test]
fn cached_loads_return_stale_bytes_after_a_device_write() {
    for way in [Way::Uncached, Way::Bounced] {
        inward_without(way, Step::PastCaches, |case| !case.coherent && case.meanwhile != Meanwhile::CrowdsOut);
    }
}

#[test]
fn dirty_lines_overwrite_uncached_stores_and_are_returned_to_snooping_devices() {
    for way in [Way::Uncached, Way::Bounced] {
        outward_without(way, Step::Emptied, |case| {
            let leaves = matches!(case.meanwhile, Meanwhile::CrowdsOut | Meanwhile::OtherReads);
            case.held == Held::Dirty && (case.coherent || leaves)
        });
        // A coherent machine invalidates cached lines on a device write.
        inward_without(way, Step::Emptied, |case| {
            !case.coherent && case.held == Held::Dirty && case.meanwhile == Meanwhile::CrowdsOut
        });
    }
}

// A bounce buffer.

#[test]
fn a_bounce_buffer_without_copies_is_stale_on_every_board() {
    outward_without(Way::Bounced, Step::CopyOut, |_| true);
    inward_without(Way::Bounced, Step::CopyIn, |_| true);
}
